"""Interpolation and sampling: adjoints, second derivatives, special values, errors."""

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F
from taeda.ops import resample

MODES = [
    ("nearest", 1),
    ("nearest-exact", 2),
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
    ("area", 2),
]


def draw(*shape, dtype=taeda.float64, seed=0):
    return taeda.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=dtype).reshape(shape)


@pytest.mark.parametrize(("mode", "n"), MODES)
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.3])
def test_gradient_is_the_adjoint(mode, n, factor):
    """``<A x, y> = <x, A' y>``: interpolation is linear, so this is the whole of its derivative."""
    x = draw(2, 3, *range(6, 6 + n)).requires_grad_(True)
    out = F.interpolate(x, scale_factor=factor, mode=mode)
    y = draw(*out.shape, seed=1)
    (g,) = taeda.autograd.grad((out * y).sum(), x)
    assert float((out * y).sum()) == pytest.approx(float((x * g).sum()), rel=1e-10)


@pytest.mark.parametrize(("mode", "n"), MODES)
def test_constants_stay_constant(mode, n):
    x = taeda.full((1, 2, *range(5, 5 + n)), 3.0)
    for size in (3, 5, 11):
        np.testing.assert_allclose(F.interpolate(x, size=size, mode=mode).numpy(), 3.0, rtol=1e-6)


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16, taeda.float32])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_narrow_dtypes(mode, dtype):
    x = draw(1, 2, 6, 7)
    want = F.interpolate(x, size=(9, 4), mode=mode).numpy()
    got = F.interpolate(x.to(dtype), size=(9, 4), mode=mode)
    assert got.dtype is dtype
    tolerance = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 5e-2}[dtype.name]
    np.testing.assert_allclose(got.double().numpy(), want, rtol=tolerance, atol=tolerance)


def by_taps(x, line, axis):
    """``x`` resampled by the tables in float64."""
    index, weight = resample._taps(line)
    along = (len(weight), -1, *(1,) * (x.ndim - 1 - axis))
    return sum(np.take(x, i, axis) * w for i, w in zip(index, weight.reshape(along), strict=True))


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("size", [(9, 30), (3, 9000), (20, 700), (5, 2), (8, 4500)])
def test_planes(size, last, dtype):
    """Rows that are put together whole, those that go by pieces, and those that are much longer than their results."""
    x = draw(1, 3, 7, 4500).to(dtype)
    x = x.contiguous(memory_format=taeda.channels_last) if last else x
    near = {"float32": 1e-5, "float64": 1e-11, "bfloat16": 4e-2}[dtype.name]
    for mode, kind in (("nearest", "nearest"), ("bilinear", "linear"), ("bicubic", "cubic"), ("area", "area")):
        double = dtype is taeda.float64 and mode != "nearest"
        sizes = zip((7, 4500), size, strict=True)
        lines = [resample.Line(kind, i, o, 0.0, False, False, double) for i, o in sizes]
        y = x.detach().clone().requires_grad_(True)
        got = F.interpolate(y, size=size, mode=mode)
        want = by_taps(by_taps(x.double().numpy(), lines[0], 2), lines[1], 3)
        np.testing.assert_allclose(got.detach().double().numpy(), want, rtol=near, atol=near)
        (g,) = taeda.autograd.grad(got, y, got.detach())
        lines = [line._replace(transposed=True) for line in lines]
        want = by_taps(by_taps(got.detach().double().numpy(), lines[0], 2), lines[1], 3)
        np.testing.assert_allclose(g.double().numpy(), want, rtol=near, atol=near * np.abs(want).max())


def test_what_is_not_finite_stays_where_it_is_seen():
    x = taeda.zeros(1, 1, 4, 4).requires_grad_(True)
    out = F.interpolate(x, size=(7, 9), mode="nearest")
    g = taeda.zeros_like(out)
    g[..., 0, 0] = float("inf")
    (dx,) = taeda.autograd.grad(out, x, g)
    assert dx[0, 0, 0, 0] == float("inf") and int(dx.isfinite().sum()) == 15


def test_whole_numbers_and_views():
    x = taeda.arange(12).reshape(1, 1, 3, 4)
    assert F.interpolate(x, scale_factor=2, mode="nearest")[0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    y = draw(1, 4, 5, 6).transpose(2, 3)
    np.testing.assert_array_equal(
        F.interpolate(y, size=(3, 8), mode="bilinear").numpy(),
        F.interpolate(y.contiguous(), size=(3, 8), mode="bilinear").numpy(),
    )
    same = F.interpolate(x, size=(3, 4))
    assert same.data_ptr() != x.data_ptr()
    assert F.interpolate(draw(0, 3, 4, 4), scale_factor=2).shape == (0, 3, 8, 8)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"size": 3, "scale_factor": 2}, ValueError),
        ({}, ValueError),
        ({"size": (3,)}, ValueError),
        ({"size": 3, "align_corners": True}, ValueError),
        ({"size": 3, "mode": "linear"}, NotImplementedError),
        ({"size": 3, "mode": "strange"}, NotImplementedError),
        ({"size": 0}, RuntimeError),
        ({"size": 3, "antialias": True}, ValueError),
        ({"size": 3, "recompute_scale_factor": True}, ValueError),
    ],
)
def test_errors(args, error):
    with pytest.raises(error):
        F.interpolate(draw(1, 2, 4, 4), **args)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("channels", [2, 19])
def test_sampling_gradients(channels, mode, padding_mode, align_corners):
    """Against differences, and the differentiable gradients against the kernels'."""
    image = draw(2, channels, 4, 5).requires_grad_(True)
    grid = (draw(2, 3, 2, 2, seed=1) * 0.9).requires_grad_(True)
    weight = draw(2, channels, 3, 2, seed=2)

    def loss(i, g):
        return (F.grid_sample(i, g, mode, padding_mode, align_corners) * weight).sum()

    fused = taeda.autograd.grad(loss(image, grid), (image, grid))
    in_ops = taeda.autograd.grad(loss(image, grid), (image, grid), create_graph=True)
    for a, b in zip(fused, in_ops, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)
    if mode != "nearest":
        step = 1e-6
        with taeda.no_grad():
            for index in ((0, 1, 1, 0), (1, 2, 0, 1)):
                moved = [grid.clone(), grid.clone()]
                moved[0][index] += step
                moved[1][index] -= step
                slope = (float(loss(image, moved[0])) - float(loss(image, moved[1]))) / (2 * step)
                assert slope == pytest.approx(float(fused[1][index]), rel=1e-4, abs=1e-6)


def test_sampling_second_derivative():
    image = draw(1, 2, 4, 4).requires_grad_(True)
    grid = (draw(1, 2, 3, 2, seed=1) * 0.4).requires_grad_(True)
    (g,) = taeda.autograd.grad(
        (F.grid_sample(image, grid, "bicubic", align_corners=True) ** 2).sum(), grid, create_graph=True
    )
    (g * g).sum().backward()
    got = grid.grad[0, 1, 2, 0]
    step = 1e-5
    values = []
    for sign in (1, -1):
        moved = grid.detach().clone()
        moved[0, 1, 2, 0] += sign * step
        moved.requires_grad_(True)
        (h,) = taeda.autograd.grad(
            (F.grid_sample(image.detach(), moved, "bicubic", align_corners=True) ** 2).sum(), moved
        )
        values.append(float((h * h).sum()))
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(float(got), rel=1e-4)


@pytest.mark.parametrize("channels", [1, 7])
def test_points_outside_do_not_read(channels):
    image = taeda.full((1, channels, 2, 2), float("nan"))
    grid = taeda.full((1, 1, 1, 2), 5.0)
    assert not F.grid_sample(image, grid, align_corners=False).any()


@pytest.mark.parametrize(
    ("image", "grid", "options"),
    [
        ((1, 2, 3, 3), (2, 3, 3, 2), {}),
        ((1, 2, 3, 3), (1, 3, 3, 3), {}),
        ((1, 2, 3), (1, 3, 2), {}),
        ((1, 2, 3, 3, 3), (1, 2, 2, 2, 3), {"mode": "bicubic"}),
    ],
)
def test_sampling_errors(image, grid, options):
    with pytest.raises(RuntimeError):
        F.grid_sample(draw(*image), draw(*grid), align_corners=False, **options)


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.int32, taeda.uint8, taeda.bool])
def test_means_of_areas_are_not_of_whole_numbers(dtype):
    x = taeda.ones(1, 1, 4, 4).to(dtype)
    for call in (
        lambda: F.adaptive_avg_pool2d(x, 2), lambda: F.adaptive_avg_pool1d(x[0], 2),
        lambda: F.adaptive_avg_pool2d(x, 3), lambda: F.interpolate(x, size=2, mode="area"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call()


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("sizes", [((5,), (3,)), ((2, 2), (3, 3)), ((4, 3), (3, 5)), ((3, 2, 5), (2, 3, 3))])
def test_means_of_areas_keep_infinity_and_nan_in_their_windows(sizes, value):
    space, size = sizes
    x = np.arange(np.prod(space), dtype=np.float32).reshape(1, 1, *space)
    x[..., -1] = value
    pool = getattr(F, f"adaptive_avg_pool{len(space)}d")
    result = pool(taeda.tensor(x), size)[0, 0].numpy()
    for place in np.ndindex(*size):
        window = tuple(slice(o * i // n, -(-(o + 1) * i // n)) for o, i, n in zip(place, space, size, strict=True))
        np.testing.assert_allclose(result[place], x[0, 0][window].mean(), rtol=1e-6)


@pytest.mark.parametrize("space", [(6, 5, 1), (1, 8, 9), (4, 7, 7), (6, 1, 1), (1, 1, 40), (2, 20, 21)])
@pytest.mark.parametrize("kernel", [(5, 1, 1), (1, 7, 7), (2, 7, 7), (1, 1, 1), (1, 1, 20), (6, 5, 1)])
@pytest.mark.parametrize("step", [None, 1, 5])
def test_windows_of_whole_lines_are_windows_of_fewer_dimensions(space, kernel, step):
    """Sums of windows and their gradients, as sums of the moved image."""
    if any(k > i for k, i in zip(kernel, space, strict=True)):
        return
    x = draw(2, 3, *space).requires_grad_(True)
    y = F.avg_pool3d(x, kernel, step, divisor_override=1)
    windows = x
    for d, k in enumerate(kernel):
        windows = windows.unfold(2 + d, k, step or k)
    w = draw(*y.shape, seed=1)
    expected = windows.sum((-3, -2, -1))
    np.testing.assert_allclose(y.tolist(), expected.tolist(), rtol=1e-12, atol=1e-13)
    assert (F.max_pool3d(x, kernel, step) == windows.amax((-3, -2, -1))).all()
    a, b = (taeda.autograd.grad(z, x, w)[0] for z in (y, expected))
    np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12, atol=1e-13)
