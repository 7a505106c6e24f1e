"""Convolutions with enough to do for windows of a volume, in one to three dimensions and three dtypes."""

import itertools

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

CASES = [  # input, output channels, kernel, stride, padding, dilation, groups
    ((2, 16, 8, 8), 32, (3, 3), 2, 1, 1, 1),
    ((3, 40, 17, 19), 70, (3, 3), 2, 1, 1, 1),
    ((9, 80, 8, 8), 96, (3, 3), 2, 1, 1, 1),
    ((5, 130, 8, 8), 65, (1, 1), 2, 0, 1, 1),
    ((2, 17, 30, 5), 33, (5, 3), (3, 2), (2, 1), 1, 1),
    ((2, 64, 14, 14), 64, (7, 7), 2, 3, 1, 1),
    ((2, 48, 20, 20), 40, (5, 5), 2, 2, 1, 1),
    ((2, 100, 9, 9), 80, (3, 3), 1, 2, 2, 1),
    ((2, 32, 7, 7), 32, (3, 3), 3, 0, 1, 1),
    ((2, 32, 7, 7), 48, (2, 2), 3, (0, 1), 1, 1),
    ((4, 128, 4, 4), 96, (1, 1), 1, 0, 1, 1),
    ((3, 20, 1, 1), 30, (1, 1), 2, 0, 1, 1),
    ((2, 33, 12, 12), 40, (3, 3), 2, 1, (2, 3), 1),
    ((1, 24, 3, 3), 24, (3, 3), 1, 4, 1, 1),
    ((2, 3, 40, 33), 24, (7, 7), 2, 3, 1, 1),
    ((2, 1, 30, 30), 20, (5, 5), 1, 2, 1, 1),
    ((2, 9, 30, 30), 20, (3, 3), 1, 1, 1, 1),
    ((2, 96, 10, 10), 60, (3, 3), 1, 1, 1, 2),
    ((2, 32, 18, 18), 64, (3, 3), 2, 1, 1, 4),
    ((2, 2, 4, 1500), 16, (3, 5), 1, 1, 1, 1),
    ((2, 20, 1500), 24, (9,), 1, 4, 1, 1),
    ((1, 64, 700), 70, (3,), 2, 0, 4, 1),
    ((2, 16, 6, 7, 8), 24, (3, 3, 3), 1, 1, 1, 1),
    ((1, 3, 8, 20, 21), 40, (3, 5, 5), (1, 2, 2), (1, 2, 2), 1, 1),
    ((2, 70, 5, 6, 4), 24, (3, 2, 3), 2, 1, (1, 2, 1), 1),
    ((3, 70, 20, 33), 40, (1, 1), 1, 0, 1, 1),
    ((2, 300, 20, 20), 24, (1, 1), 1, 0, 1, 1),
    ((2, 40, 16, 16), 24, (1, 1), 1, 0, 1, 2),
    ((2, 40, 17, 16), 24, (1, 1), (2, 3), 0, 1, 2),
    ((2, 17, 5, 6, 7), 24, (1, 1, 1), 1, 0, 1, 1),
    ((2, 64, 20, 18), 64, (3, 3), 1, 1, 1, 8),
    ((3, 3, 32, 48), 40, (8, 8), 8, 0, 1, 1),
    ((2, 20, 19, 23), 24, (3, 2), (2, 3), 0, (2, 1), 2),
    ((2, 40, 60, 50), 2, (1, 1), 1, 0, 1, 1),
    ((2, 40, 60, 50), 1, (1, 1), 1, 0, 1, 1),
    ((2, 32, 30, 30), 40, (3, 3), 2, 1, 1, 8),
    ((2, 20, 30, 30), 3, (5, 5), 1, 2, 1, 1),
    ((40, 24, 4, 4), 32, (4, 4), 1, 0, 1, 1),
    ((9, 24, 3, 5), 32, (3, 5), 2, 0, 1, 2),
    ((5, 18, 40, 20), 30, (3, 3), 1, 1, 1, 2),
    ((3, 48, 26, 18), 64, (3, 3), 2, 1, 1, 16),
    ((3, 450, 7, 6), 460, (1, 1), 1, 0, 1, 1),
    ((2, 64, 20, 20), 72, (1, 1), 1, 0, 1, 1),
    # Many images, whose positions are sorted by the taps that meet padding alone.
    ((37, 20, 7, 7), 70, (3, 3), 1, 1, 1, 1),
    ((17, 24, 6, 5), 20, (3, 3), 1, 2, 2, 1),
    ((23, 40, 5, 4), 33, (5, 5), 2, 2, 1, 1),
    ((19, 3, 9, 9), 24, (5, 3), 1, (2, 1), 1, 1),
    ((11, 18, 3, 4, 3), 20, (3, 3, 3), 1, 1, 1, 1),
    ((5, 34, 12, 12), 66, (3, 3), 1, 7, 6, 1),
    ((8, 24, 9), 40, (4,), 1, 6, 1, 1),
    # Few images, cut into blocks of rows or slices: sorted by column.
    ((2, 70, 28, 29), 66, (3, 3), 1, 6, 6, 1),
    ((1, 20, 40, 11), 70, (3, 5), 2, (1, 2), 1, 1),
    ((1, 18, 20, 9, 10), 20, (3, 3, 3), 1, (1, 2, 1), (1, 2, 1), 1),
    # Pixels of all images in one row, as those of one leave registers empty.
    ((3, 300, 3, 3), 260, (1, 1), 1, 0, 1, 1),
    ((2, 640, 5), 512, (1,), 1, 0, 1, 2),
    ((3, 280, 5, 6), 270, (1, 1), 2, 0, 1, 1),
    # The phases of a gradient in one volume: blocks that are cut in each dimension, sizes that the stride does not divide.
    ((2, 20, 2603), 24, (5,), 2, 2, 1, 1),
    ((1, 12, 9, 2200), 24, (3, 4), (2, 3), (1, 0), (3, 1), 1),
    ((1, 16, 41, 37), 130, (3, 5), (3, 2), (0, 2), (2, 1), 2),
    ((1, 70, 11, 32, 27), 18, (3, 3, 4), 2, 1, 1, 1),
    ((3, 8, 21, 5, 6), 24, (4, 3, 3), (3, 2, 2), (2, 0, 1), 1, 1),
    ((3, 40, 33, 24), 7, (3, 3), 2, 1, 1, 1),
    # Padding that reaches further than the kernel: gradients have a negative one.
    ((13, 17, 81), 8, (3,), 2, 4, 1, 1),
    ((3, 17, 20, 23), 8, (2, 2), 1, 3, 1, 1),
    ((3, 9, 20, 23), 30, (3, 3), 3, 5, 1, 1),
]
DEPTHWISE = [
    ((3, 40, 19, 22), 40, (3, 3), 1, 1, 1, 40),
    ((3, 40, 19, 22), 40, (3, 3), 2, 1, 1, 40),
    ((3, 33, 19, 22), 33, (5, 5), 2, 2, 1, 33),
    ((2, 40, 19, 22), 40, (2, 3), 3, 0, 1, 40),
    ((2, 16, 15, 15), 16, (4, 4), (1, 2), (0, 3), 2, 16),
    ((2, 32, 100), 32, (7,), 1, 3, 1, 32),
]


def definition(x, w, b, stride, padding, dilation, groups):
    """A sum over taps, in float64."""
    nd = x.ndim - 2
    stride, padding, dilation = (v if isinstance(v, tuple) else (v,) * nd for v in (stride, padding, dilation))
    x = np.pad(x.astype("f8"), [(0, 0), (0, 0), *((p, p) for p in padding)])
    kernel = w.shape[2:]
    size = [(i - d * (k - 1) - 1) // s + 1 for i, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    out = np.zeros((len(x), len(w), *size)) + b.astype("f8")[(slice(None), *(None,) * nd)]
    m, c = len(w) // groups, w.shape[1]
    for tap in itertools.product(*(range(k) for k in kernel)):
        cut = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, size, stride, strict=True)
        )
        for g in range(groups):
            part, weights = (
                x[(slice(None), slice(g * c, g * c + c), *cut)],
                w[(slice(g * m, g * m + m), slice(None), *tap)],
            )
            out[:, g * m : g * m + m] += np.einsum("nc...,mc->nm...", part, weights.astype("f8"))
    return out


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case, dtype):
    """Output against the definition; gradients too, since the output is linear in input and weights."""
    shape, m, kernel, *geometry = case
    taeda.manual_seed(0)
    x, w, b = (
        taeda.randn(*shape, dtype=dtype),
        taeda.randn(m, shape[1] // geometry[-1], *kernel, dtype=dtype),
        taeda.randn(m, dtype=dtype),
    )
    for t in (x, w, b):
        t.requires_grad_()
    y = getattr(F, f"conv{len(kernel)}d")(x, w, b, *geometry)
    a, c, d = (t.detach().numpy() for t in (x, w, b))
    near = 2e-6 if dtype is taeda.float32 else 1e-14
    want = definition(a, c, d, *geometry)
    assert np.abs(y.detach().numpy() - want).max() <= 20 * near * np.sqrt((want**2).mean())
    g = taeda.randn(*y.shape, dtype=dtype)
    gx, gw = taeda.autograd.grad(y, (x, w), g)
    rng, none = np.random.default_rng(0), np.zeros(m)
    g = g.numpy().astype("f8")
    for got, shape_of, other in ((gx, a, lambda z: (z, c)), (gw, c, lambda z: (a, z))):
        # One direction per element would be exact; some random ones, sparse so that nothing hides in a sum, do.
        for _ in range(8):
            z = rng.standard_normal(shape_of.shape) * (rng.random(shape_of.shape) < 50 / shape_of.size)
            terms = g * definition(*other(z), none, *geometry)
            scale = np.sqrt((got.numpy().astype("f8") ** 2).mean()) * (np.abs(z).sum() + 1)
            assert abs((got.numpy() * z).sum() - terms.sum()) <= 20 * near * scale


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("half", [taeda.bfloat16, taeda.float16])
@pytest.mark.parametrize("case", CASES + DEPTHWISE)
def test_half_precision_sums_integers_exactly(case, half, last):
    """Small integers: products and their sums are exact, so what is left is one rounding of the exact result."""
    shape, m, kernel, *geometry = case
    if last and len(kernel) == 1:
        pytest.skip("one dimension has no channels last")
    taeda.manual_seed(0)
    x, w = taeda.randint(-3, 4, shape), taeda.randint(-3, 4, (m, shape[1] // geometry[-1], *kernel))
    b = taeda.randint(-3, 4, (m,))
    order = (taeda.channels_last if len(kernel) == 2 else taeda.channels_last_3d) if last else taeda.contiguous_format
    found = []
    for dtype in (taeda.float64, half):
        a, c = (t.to(dtype).to(memory_format=order).requires_grad_() for t in (x, w))
        y = getattr(F, f"conv{len(kernel)}d")(a, c, b.to(dtype), *geometry)
        if dtype is taeda.float64:
            g = taeda.randint(-2, 3, y.shape)
        found.append((y, *taeda.autograd.grad(y, (a, c), g.to(dtype).to(memory_format=order))))
    for want, got in zip(*found, strict=True):
        assert got.dtype is half
        assert taeda.equal(want.to(half), got)


def test_gradient_of_one_deep_slice():
    """Several outputs in depth from one: images must not be taken for slices of a deeper one."""
    taeda.manual_seed(0)
    x, w = taeda.randn(2, 32, 4, 8, 3), taeda.randn(96, 8, 3, 3, 1)
    x.requires_grad_()
    geometry = (2, 1, 3), (0, 1, 0), (1, 2, 2), 4
    g = taeda.randn(2, 96, 1, 6, 1)
    (gx,) = taeda.autograd.grad(F.conv3d(x, w, None, *geometry), x, g)
    z = np.random.default_rng(0).standard_normal(x.shape)
    want = (g.numpy() * definition(z, w.numpy(), np.zeros(96), *geometry)).sum()
    assert abs((gx.numpy() * z).sum() - want) <= 1e-4 * np.abs(gx.numpy() * z).sum()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("c", [8, 18, 24, 52])
def test_nothing_is_left_of_an_earlier_call(c, dtype):
    """Channels are rounded up where images are laid out; what another image left there must not be multiplied."""
    taeda.manual_seed(0)
    x, w = taeda.randn(2, c, 12, 12, dtype=dtype), taeda.randn(40, c, 3, 3, dtype=dtype)
    more = -(-c // 32) * 32
    F.conv2d(
        taeda.full((2, more, 12, 12), float("nan"), dtype=dtype), taeda.randn(40, more, 3, 3, dtype=dtype), stride=2
    )
    assert np.isfinite(F.conv2d(x, w, stride=2).numpy()).all()


def test_any_strides():
    """Channels last and every other image: the same bits as from a contiguous tensor."""
    taeda.manual_seed(0)
    x, w = taeda.randn(6, 48, 11, 9), taeda.randn(40, 48, 3, 3)
    want = F.conv2d(x, w, stride=2, padding=1).numpy()
    last = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert (F.conv2d(last, w, stride=2, padding=1).numpy() == want).all()
    assert (F.conv2d(x[::2], w, stride=2, padding=1).numpy() == want[::2]).all()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16])
@pytest.mark.parametrize(
    "case",
    [CASES[i] for i in (1, 2, 3, 10, 14, 18, 20, 22, 25, 28, 30, 31, 33, 50, 51, 52, 56, 57, 59)] + DEPTHWISE[:2],
)
def test_bits_do_not_depend_on_threads(case, dtype):
    shape, m, kernel, *geometry = case
    taeda.manual_seed(0)
    found = set()
    x, w = taeda.randn(*shape, dtype=dtype), taeda.randn(m, shape[1] // geometry[-1], *kernel, dtype=dtype)
    x, w = x.requires_grad_(), w.requires_grad_()
    for threads in (1, 2, 3, 5):
        taeda.set_num_threads(threads)
        y = getattr(F, f"conv{len(kernel)}d")(x, w, None, *geometry)
        gradients = taeda.autograd.grad((y * y).sum(), (x, w))
        found.add(b"".join(t.detach().float().numpy().tobytes() for t in (y, *gradients)))
    assert len(found) == 1


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int64])
@pytest.mark.parametrize(
    "shape, c, kernel, groups",
    [
        ((1, 8, 1), 12, (5,), 1),
        ((3, 12, 9, 7), 10, (2, 2), 2),
        ((70, 8, 16, 15), 8, (2, 3), 1),  # some images at a time
        ((2, 6, 150, 131), 16, (2, 2), 1),  # some rows
        ((1, 4, 3, 60, 41), 12, (3, 2, 2), 2),  # some slices
        ((1, 4, 70000), 6, (3,), 1),  # some pixels
    ],
)
def test_windows_that_do_not_overlap(shape, c, kernel, groups, dtype):
    """Each position is in one window: the transposed convolution is a product whose results are put in place."""
    taeda.manual_seed(0)
    m, nd = shape[1], len(kernel)
    x = taeda.randint(-5, 6, shape).to(dtype)
    w = taeda.randint(-5, 6, (m, c // groups, *kernel)).to(dtype)
    b = taeda.randint(-5, 6, (c,)).to(dtype)
    pairs = zip(np.split(x.numpy(), groups, 1), np.split(w.numpy(), groups, 0), strict=True)
    space, taps = "xyz"[:nd], "ijk"[:nd]
    order = "".join(a + b for a, b in zip(space, taps, strict=True))
    want = np.concatenate([np.einsum(f"nm{space},mc{taps}->nc{order}", *pair) for pair in pairs], 1)
    want = want.reshape(len(want), c, *(n * k for n, k in zip(shape[2:], kernel, strict=True)))
    want = want + b.numpy().reshape(c, *(1,) * nd)
    function = getattr(F, f"conv_transpose{nd}d")
    for threads in (1, 3):
        taeda.set_num_threads(threads)
        assert (function(x, w, b, kernel, groups=groups).numpy() == want).all()
        turned = x.transpose(0, -1).contiguous().transpose(0, -1)
        assert (function(turned, w, b, kernel, groups=groups).numpy() == want).all()


@pytest.mark.parametrize("kernel, stride", [(16, 16), (7, 2)])
def test_images_of_few_channels_are_not_turned(kernel, stride):
    """What a call takes beyond its result is a few blocks of the image, however large the image is."""
    from taeda._core import memory

    x, w = taeda.randn(1, 3, 512, 512), taeda.randn(32, 3, kernel, kernel).requires_grad_()
    taeda.set_num_threads(1)
    y = F.conv2d(x, w, None, stride)
    taken = []
    for call in (
        lambda: F.conv2d(x, w.detach(), None, stride),
        lambda: taeda.autograd.grad(y.sum(), w, retain_graph=True),
    ):
        call()
        memory.reset_peak_memory_stats()
        start = memory.memory_stats()["allocated"]
        call()
        taken.append(memory.memory_stats()["peak_allocated"] - start - y.numel() * 4)
    assert max(taken) < 4 << 20, taken
