"""Pooling kernels against loops over windows. The convolution's kernels are tested through their ops."""

import numpy as np
import pytest

from taeda.kernels import pool


def places(o, size, n, kernel, stride, padding, dilation, adaptive):
    """The positions of a window of one dimension that lie in the image."""
    if adaptive:
        return range(o * size // n, -(-(o + 1) * size // n))
    start = o * stride - padding
    return [x for x in range(start, start + kernel * dilation, dilation) if 0 <= x < size]


CASES = [  # image, output, kernel, stride, padding, dilation, adaptive
    ((9, 20), (4, 19), (2, 2), (2, 1), (0, 0), (1, 1), 0),
    ((9, 40), (5, 20), (3, 3), (2, 2), (1, 1), (1, 1), 0),
    ((7, 37), (3, 33), (3, 3), (1, 1), (0, 0), (2, 2), 0),
    ((7, 37), (3, 5), (4, 9), (1, 1), (0, 0), (1, 1), 1),
    ((6, 41), (2, 20), (3, 2), (3, 2), (0, 0), (1, 1), 0),
    ((5, 59), (3, 20), (1, 4), (2, 3), (0, 2), (1, 1), 0),
    ((5, 90), (2, 18), (3, 4), (2, 5), (1, 1), (1, 1), 0),
]


def arguments(case, divide=1):
    image, out, kernel, stride, padding, dilation, adaptive = case
    return [1, *out, 1, *image, 1, *kernel, 1, *stride, 1, *dilation, 0, *padding, adaptive, divide]


def stride_of(case):
    """The stride along a row as kernels are told of it."""
    return case[3][1] if case[3][1] in pool.STRIDES and not case[6] else 0


def plain_of(case):
    """Whether windows are of a fixed size and without gaps."""
    return not case[6] and max(case[5]) == 1


def windows(case):
    image, out, kernel, stride, padding, dilation, adaptive = case
    for y in range(out[0]):
        for x in range(out[1]):
            sides = [
                places(o, image[d], out[d], kernel[d], stride[d], padding[d], dilation[d], adaptive)
                for d, o in enumerate((y, x))
            ]
            yield y, x, np.ix_(*[list(s) for s in sides])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("case", CASES)
def test_maximum(run, dtype, case):
    """Values and indices."""
    image, out = case[:2]
    rng = np.random.default_rng(0)
    x = rng.permutation(3 * image[0] * image[1]).reshape(3, *image).astype(dtype)
    got, index, plain = np.empty((3, *out), dtype), np.empty((3, *out), np.int64), np.empty((3, *out), dtype)
    run(pool.pool(dtype, "argmax", stride_of(case), plain_of(case)), [got, index, x], arguments(case), 3 * out[0], 4)
    run(pool.pool(dtype, "max", stride_of(case), plain_of(case)), [plain, x], arguments(case), 3 * out[0])
    for y, z, at in windows(case):
        want = np.array([plane[at].max() for plane in x])
        assert (got[:, y, z] == want).all() and (plain[:, y, z] == want).all()
    assert (np.take_along_axis(x.reshape(3, -1), index.reshape(3, -1), 1) == got.reshape(3, -1)).all()


def test_nan_wins_and_the_first_of_equals(run):
    """As PyTorch has it; a window of minus infinity names its first element."""
    x = np.array([[[1, np.nan, 3, 3], [-np.inf, -np.inf, -np.inf, -np.inf]]], np.float32)
    case = ((2, 4), (2, 2), (1, 2), (1, 2), (0, 0), (1, 1), 0)
    got, index = np.empty((1, 2, 2), np.float32), np.empty((1, 2, 2), np.int64)
    run(pool.pool("float32", "argmax", 2, True), [got, index, x], arguments(case), 2)
    assert np.isnan(got[0, 0, 0]) and got[0, 0, 1] == 3 and (got[0, 1] == -np.inf).all()
    assert index.tolist() == [[[1, 2], [4, 6]]]


@pytest.mark.parametrize("divide", [4, 0, -1])
@pytest.mark.parametrize("case", [c for c in CASES if not c[6] and c[5] == (1, 1)])
def test_sum_and_its_adjoint(run, case, divide):
    """The divisor counts the window, its part in the image, or its part in image and padding."""
    image, out, kernel, stride, padding = case[:5]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, *image)).astype(np.float32)
    got = np.empty((2, *out), np.float32)
    run(pool.pool("float32", "sum", stride_of(case), plain_of(case)), [got, x], arguments(case, divide), 2 * out[0], 3)
    for y, z, at in windows(case):
        by = divide
        if divide == 0:
            by = x[0][at].size
        elif divide < 0:
            ends = [min(o * stride[d] + kernel[d], image[d] + 2 * padding[d]) for d, o in enumerate((y, z))]
            by = (ends[0] - y * stride[0]) * (ends[1] - z * stride[1])
        assert np.allclose(got[:, y, z], [plane[at].sum() / by for plane in x], atol=1e-5)
    g, spread, summed = rng.standard_normal((2, *out)).astype(np.float32), np.empty_like(x), np.empty_like(got)
    beside = kernel[1] == stride[1] == 2 and not padding[1]
    step = stride[1] if beside or stride[1] == 1 else -2 if stride[1] == 2 else 0
    run(pool.pool_spread("float32", step), [spread, g], arguments(case), 2 * image[0], 3)
    run(pool.pool("float32", "sum", stride_of(case), plain_of(case)), [summed, x], arguments(case), 2 * out[0])
    assert np.isclose((spread * x).sum(), (g * summed).sum(), rtol=1e-3)


def test_place(run):
    """Adjoint of the maximum: places that occur twice add up."""
    g = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    index = np.array([[0, 2, 2], [3, 0, 1]], np.int64)
    out = np.full((2, 4), 9, np.float32)
    run(pool.pool_place("float32", False), [out, g, index], [4, 3], 2, 2)
    assert out.tolist() == [[1, 0, 5, 0], [5, 6, 0, 4]]
    index[0, 2] = 3
    run(pool.pool_place("float32", True), [out, g, index], [4, 3], 2, 2)
    assert out.tolist() == [[1, 0, 2, 3], [5, 6, 0, 4]]
