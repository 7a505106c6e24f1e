"""Convolution and pooling against loops over windows; derivatives against finite differences; errors."""

import itertools
import math

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck
from taeda.nn import functional as F

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def rand(*shape, dtype=taeda.float64, requires_grad=True):
    return taeda.rand(*shape, dtype=dtype).sub_(0.5).requires_grad_(requires_grad)


def convolution(x, w, stride, padding, dilation, groups):
    """The definition, tap by tap."""
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    size = [(x.shape[2 + d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // stride[d] + 1 for d in range(n)]
    out = np.zeros((len(x), len(w), *size), np.result_type(x, w))
    m, c = len(w) // groups, w.shape[1]
    for g in range(groups):
        for tap in itertools.product(*(range(k) for k in w.shape[2:])):
            cut = tuple(
                slice(t * dilation[d], t * dilation[d] + (size[d] - 1) * stride[d] + 1, stride[d])
                for d, t in enumerate(tap)
            )
            part = x[(slice(None), slice(g * c, (g + 1) * c), *cut)]
            out[:, g * m : (g + 1) * m] += np.einsum(
                "nc...,mc->nm...", part, w[(slice(g * m, (g + 1) * m), slice(None), *tap)]
            )
    return out


CASES = [  # input, weight, stride, padding, dilation, groups
    ((2, 3, 8, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 9, 7), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), 2),
    ((2, 8, 10, 11), (16, 1, 3, 3), (2, 2), (1, 1), (1, 1), 8),
    ((3, 24, 10, 19), (24, 1, 7, 7), (1, 1), (3, 3), (1, 1), 24),
    ((2, 40, 11, 20), (40, 1, 5, 5), (2, 2), (2, 2), (1, 1), 40),
    ((2, 20, 9, 5), (20, 1, 3, 7), (1, 1), (4, 3), (1, 1), 20),
    ((3, 16, 17, 19), (70, 16, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((2, 5, 20, 20), (7, 5, 5, 5), (3, 3), (2, 2), (2, 2), 1),
    ((1, 300, 6, 6), (7, 300, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 40, 40), (3, 2, 17, 17), (1, 1), (8, 8), (1, 1), 1),
    ((2, 4, 5, 5), (4, 4, 2, 2), (3, 3), (0, 0), (1, 1), 1),
    ((4, 128, 8, 8), (100, 128, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 50), (6, 2, 5), (2,), (1,), (2,), 2),
    ((1, 4, 500), (6, 4, 300), (1,), (0,), (1,), 1),
    ((2, 4, 7, 8, 9), (6, 2, 3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 2, 1), 2),
]


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case):
    """The definition; both gradients from the definition too, since the convolution is linear in each operand."""
    x_shape, w_shape, *geometry = case
    taeda.manual_seed(0)
    conv = CONV[len(x_shape) - 2]
    x, w, b = (
        rand(*x_shape, dtype=taeda.float32),
        rand(*w_shape, dtype=taeda.float32),
        rand(w_shape[0], dtype=taeda.float32),
    )
    y = conv(x, w, b, *geometry)
    a, c = x.detach().numpy().astype("f8"), w.detach().numpy().astype("f8")
    want = convolution(a, c, *geometry)
    lead = (slice(None), *[None] * (len(x_shape) - 2))
    assert np.allclose(y.detach().numpy(), want + b.detach().numpy()[lead], atol=1e-3)
    g = rand(*y.shape, dtype=taeda.float32, requires_grad=False)
    gx, gw, gb = taeda.autograd.grad(y, (x, w, b), g)
    other_x, other_w = (
        np.random.default_rng(0).standard_normal(a.shape),
        np.random.default_rng(1).standard_normal(c.shape),
    )
    weights = g.numpy().astype("f8")
    assert np.isclose(
        (gx.numpy() * other_x).sum(), (weights * convolution(other_x, c, *geometry)).sum(), atol=1e-2, rtol=1e-3
    )
    assert np.isclose(
        (gw.numpy() * other_w).sum(), (weights * convolution(a, other_w, *geometry)).sum(), atol=1e-2, rtol=1e-3
    )
    assert np.allclose(gb.numpy(), weights.sum((0, *range(2, weights.ndim))), atol=1e-3)


@pytest.mark.parametrize(
    ("x", "w", "rest"),
    [
        ((2, 4, 5, 4), (4, 2, 3, 2), (None, (2, 1), (1, 0), (1, 2), 2)),
        ((2, 4, 4), (2, 2, 3, 3), (None, 1, "same")),
        ((1, 2, 5), (3, 2, 2), (None, 2)),
        ((2, 2, 3, 3, 3), (2, 2, 2, 2, 1), (None, 1, 1)),
    ],
)
@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128])
def test_derivatives(x, w, rest, dtype):
    """First and second derivatives by finite differences; an input without batch; padding by name."""
    taeda.manual_seed(0)
    if len(x) == len(w) - 1 and isinstance(rest[2], str):
        x = (w[1], *x[1:])
    conv = CONV[len(w) - 2]
    inputs = rand(*x, dtype=dtype), rand(*w, dtype=dtype)
    assert gradcheck(lambda a, b: conv(a, b, *rest), inputs)
    if dtype == taeda.float64:
        assert gradgradcheck(lambda a, b: conv(a, b, *rest), inputs)


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        (
            (2, 4, 3, 4),
            (4, 3, 3, 2),
            {"stride": (2, 1), "padding": (1, 0), "output_padding": (1, 0), "groups": 2, "dilation": (1, 2)},
        ),
        ((4, 3, 3), (4, 2, 2, 2), {"stride": 3, "output_padding": 2}),
        ((1, 2, 5), (2, 3, 3), {"stride": 2, "padding": 1}),
        ((1, 2, 2, 3, 2), (2, 3, 3, 2, 3), {"stride": 2, "padding": 1}),
        ((2, 1, 7, 2), (1, 16, 1, 1), {"output_padding": (0, 1), "dilation": 3}),  # 1x1, and pixels that meet no tap
        ((2, 3, 4), (3, 5, 1), {"output_padding": 1, "dilation": 2}),
    ],
)
def test_transposed(x, w, options):
    """The adjoint of the convolution with the same geometry, and its derivatives."""
    taeda.manual_seed(0)
    n = len(w) - 2
    x, w = rand(*x), rand(*w)
    y = TRANSPOSED[n](x, w, **options)
    space = {k: v for k, v in options.items() if k != "output_padding"}
    other = rand(*y.shape, requires_grad=False)
    back = CONV[n](other, w, **space)[tuple(slice(size) for size in x.shape)]  # padded outputs may make room for more
    assert np.isclose((y * other).sum().item(), (back * x).sum().item())
    assert gradcheck(lambda a, b: TRANSPOSED[n](a, b, **options), (x, w))
    assert gradgradcheck(lambda a, b: TRANSPOSED[n](a, b, **options), (x, w))
    bias = rand(y.shape[-n - 1])
    shifted = TRANSPOSED[n](x, w, bias, **options) - y
    assert np.allclose(shifted.detach().numpy(), np.broadcast_to(bias.detach().numpy()[(..., *[None] * n)], y.shape))


def test_unfold_and_fold():
    """Columns hold the windows; fold is the adjoint."""
    taeda.manual_seed(0)
    x = rand(2, 3, 7, 8)
    columns = F.unfold(x, (2, 3), dilation=(1, 2), padding=1, stride=2)
    padded = np.pad(x.detach().numpy(), [(0, 0), (0, 0), (1, 1), (1, 1)])
    first = padded[:, :, 0:2, 0:5:2].reshape(2, -1)
    assert np.allclose(columns[:, :, 0].detach().numpy(), first)
    other = rand(*columns.shape)
    folded = F.fold(other, (7, 8), (2, 3), dilation=(1, 2), padding=1, stride=2)
    assert np.isclose((folded * x).sum().item(), (columns * other).sum().item())
    assert gradcheck(lambda t: F.unfold(t, 2, padding=1, stride=2), (x,))
    assert gradcheck(lambda t: F.fold(t, (7, 8), (2, 3), (1, 2), 1, 2), (other,))


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16, taeda.int32, taeda.uint8])
def test_other_dtypes(dtype):
    """Integers wrap; half precision is summed in float32."""
    taeda.manual_seed(0)
    x, w = taeda.randint(0, 5, (2, 3, 6, 6)).to(dtype), taeda.randint(0, 5, (4, 3, 3, 3)).to(dtype)
    got = F.conv2d(x, w, padding=1)
    want = convolution(x.to(taeda.float64).numpy(), w.to(taeda.float64).numpy(), (1, 1), (1, 1), (1, 1), 1)
    assert got.dtype == dtype
    got, want = got.to(taeda.float64).numpy(), want % 256 if dtype == taeda.uint8 else want
    assert np.allclose(got, want, rtol=2**-8)


def test_empty():
    """No images, and no channels."""
    assert F.conv2d(taeda.rand(0, 3, 4, 4), taeda.rand(2, 3, 3, 3)).shape == (0, 2, 2, 2)
    x = taeda.rand(0, 3, 4, 4).requires_grad_()
    w = taeda.rand(2, 3, 3, 3).requires_grad_()
    F.conv2d(x, w).sum().backward()
    assert x.grad.shape == x.shape and not w.grad.any()


POOLS = [
    (lambda x: F.max_pool2d(x, 3, 2, 1), True),
    (lambda x: F.max_pool2d(x, 2, dilation=2, ceil_mode=True), True),
    (lambda x: F.avg_pool2d(x, 3, 2, 1), False),
    (lambda x: F.avg_pool2d(x, (3, 2), 2, 1, True, False), False),
    (lambda x: F.avg_pool2d(x, 2, divisor_override=3), False),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 4)), False),
    (lambda x: F.adaptive_max_pool2d(x, (3, 4)), True),
    (lambda x: F.lp_pool2d(x.abs() + 0.1, 2.0, 3), False),
    (lambda x: F.max_pool3d(x.unsqueeze(2), (1, 2, 2)), True),
    (lambda x: F.avg_pool1d(x.flatten(2), 5, 3, 2), False),
]


@pytest.mark.parametrize("i", range(len(POOLS)))
def test_pooling_derivatives(i):
    """Values far enough apart that a finite difference does not change which is the largest."""
    function, distinct = POOLS[i]
    x = (taeda.randperm(2 * 2 * 7 * 9).reshape(2, 2, 7, 9).double() / 50 if distinct else rand(2, 2, 7, 9)).detach()
    x.requires_grad_()
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_unpooling():
    """Back where the maxima were."""
    x = taeda.arange(32.0).reshape(1, 2, 4, 4)
    y, index = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, index, 2)
    assert back.shape == x.shape and np.allclose(back.sum().item(), y.sum().item())
    assert bool((back[back != 0] == x[back != 0]).all())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: F.conv2d(taeda.rand(1, 3, 4, 4), taeda.rand(2, 4, 3, 3)), "to have 4 channels, but got 3 channels"),
        (lambda: F.conv2d(taeda.rand(1, 3, 2, 2), taeda.rand(2, 3, 3, 3)), "Kernel size can't be greater"),
        (lambda: F.conv2d(taeda.rand(1, 3), taeda.rand(2, 3, 3, 3)), r"Expected 3D \(unbatched\) or 4D"),
        (lambda: F.conv2d(taeda.rand(1, 3, 4, 4), taeda.rand(2, 3, 3, 3), taeda.rand(3)), "expected bias"),
        (lambda: F.conv2d(taeda.rand(1, 3, 4, 4), taeda.rand(2, 3, 3, 3), stride=0), "non-positive stride"),
        (lambda: F.conv2d(taeda.rand(1, 3, 4, 4), taeda.rand(2, 3, 3, 3).double()), "float32 but found float64"),
        (lambda: F.conv2d(taeda.rand(1, 4, 4, 4), taeda.rand(3, 2, 3, 3), groups=2), "divisible by 2"),
        (lambda: F.conv2d(taeda.rand(1, 3, 4, 4), taeda.rand(2, 3, 3, 3), stride=2, padding="same"), "strided"),
        (lambda: F.max_pool2d(taeda.rand(1, 3, 4, 4), 2, padding=2), "half of kernel size"),
        (lambda: F.max_pool2d(taeda.rand(1, 3, 9, 9), 3, padding=2, dilation=2), "half of kernel size"),
        (lambda: F.avg_pool3d(taeda.rand(1, 3, 3, 4, 4), 4, ceil_mode=True), "smaller than kernel size"),
        (lambda: F.lp_pool3d(taeda.rand(1, 3, 3, 4, 4), 2.0, 4, ceil_mode=True), "smaller than kernel size"),
        (lambda: F.max_pool2d(taeda.rand(1, 3, 4, 4), 7), "Output size is too small"),
        (lambda: F.avg_pool2d(taeda.rand(4, 4), 2), "Expected 3D or 4D"),
    ],
)
def test_errors(call, says):
    """RuntimeError, with sizes."""
    with pytest.raises(RuntimeError, match=says):
        call()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_windows_of_padding_alone(n):
    """Dilated windows may hold no element: minus infinity, and no gradient, which was written beside the plane."""
    x = taeda.arange(1.0, 2 * 3**n + 1).reshape((1, 2) + (3,) * n).requires_grad_()
    pool = getattr(F, f"max_pool{n}d")
    y, places = pool(x, 2, stride=1, padding=1, dilation=4, return_indices=True)
    (2 * y).sum().backward()
    assert y.flatten().tolist() == [-math.inf] * 2 and places.flatten().tolist() == [-1] * 2 and not x.grad.any()
    y = pool(x, 2, stride=1, padding=1, dilation=3)  # windows of one element, or of one and padding
    (slope,) = taeda.autograd.grad((y**2).sum(), x, create_graph=True)
    assert taeda.equal(slope, taeda.where(slope != 0, 2 * x, 0.0)) and slope.count_nonzero() == y.numel()


def test_threads_do_not_change_a_bit():
    """Forward and both gradients."""
    taeda.manual_seed(0)
    x, w = rand(4, 20, 33, 35, dtype=taeda.float32), rand(24, 20, 3, 3, dtype=taeda.float32)
    results = []
    for n in (1, 2, 3):
        taeda.set_num_threads(n)
        y = F.max_pool2d(F.conv2d(x, w, padding=1), 2)
        results.append([y, *taeda.autograd.grad(y.sum(), (x, w))])
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))
