"""Products of bfloat16 and int8 by tile and dot-product instructions, against exact sums."""

import itertools

import numpy as np
import pytest

import taeda
from taeda import _core
from taeda.kernels import short_gemm
from taeda.kernels.target import host

ENGINES = [
    (dtype, kind)
    for dtype, vectors in (("bfloat16", "avx512bf16"), ("int8", "avx512vnni"))
    for kind, there in (("amx", short_gemm.engine(dtype) == "amx"), ("dot", f"+{vectors}" in host().features))
    if there
]


def operand(dtype, shape, seed):
    if dtype == "int8":
        values = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
        return taeda.from_numpy(values), values.astype(np.int64)
    x = taeda.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).bfloat16()
    return x, np.asarray(x.double())


@pytest.mark.parametrize(("dtype", "kind"), ENGINES)
@pytest.mark.parametrize("sizes", [(70, 1100, 45), (5, 33, 3), (32, 64, 48), (130, 20, 260)])
def test_kernels(dtype, kind, sizes):
    m, k, n = sizes
    steps = -(-k // (16 * short_gemm.group(dtype)))
    for left_turned, right_turned in itertools.product((False, True), repeat=2):
        a, a_values = operand(dtype, (k, m) if left_turned else (m, k), 1)
        b, b_values = operand(dtype, (n, k) if right_turned else (k, n), 2)
        item = a.element_size()
        packed = [_core.empty((-(-size // 16) * steps * 256,), taeda.int32) for size in (m, n)]
        strides = (
            (item, m * item) if left_turned else (k * item, item),
            (k * item, item) if right_turned else (item, n * item),
        )
        for to, x, size, (across, along), left in zip(packed, (a, b), (m, n), strides, (True, False), strict=True):
            address = short_gemm.pack(dtype, left, along == item, kind)
            _core.launch(address, (to, x), (size, k, across, along, 1, 0, 0), -(-size // 32), 1)
        c = _core.empty((m, n), taeda.int32 if dtype == "int8" else taeda.bfloat16)
        args = (m, n, steps, 16 * steps, 64, 1024, 1024 * steps, n * c.element_size(), 0, 0, 0, 64, 64, 1, *(0,) * 7)
        tasks = -(-m // 64) * -(-n // 64)
        _core.launch(short_gemm.product(dtype, c.dtype.name, kind), (c, *packed, c), args, tasks, 1)
        want = (a_values.T if left_turned else a_values) @ (b_values.T if right_turned else b_values)
        if dtype == "int8":
            np.testing.assert_array_equal(np.asarray(c), want)
        else:
            np.testing.assert_allclose(np.asarray(c.double()), want, rtol=0.005, atol=0.01 * np.sqrt(k))


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((40, 64), (64, 33)), ((3, 40, 64), (64, 33)), ((3, 40, 64), (3, 64, 33)), ((2, 1, 40, 64), (3, 64, 33)), ((64,), (64, 600)),
     ((700, 64), (64,)), ((0, 64), (64, 33)), ((300, 300), (300, 300))],
)  # fmt: skip
def test_matmul(dtype, left, right):
    (a, a_values), (b, b_values) = operand(dtype, left, 3), operand(dtype, right, 4)
    want = a_values @ b_values
    got = a @ b
    assert got.dtype == a.dtype
    if dtype == "int8":
        np.testing.assert_array_equal(np.asarray(got), want.astype(np.int8))
    else:
        np.testing.assert_allclose(np.asarray(got.double()), want, rtol=0.005, atol=0.02)
    if len(left) == len(right) == 2 and dtype == "int8":
        got = taeda._int_mm(a, b)
        assert got.dtype is taeda.int32
        np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("k", [32, 52, 63, 1100])
def test_rows_in_place(dtype, k):
    """Rows of the left operand that do not follow each other: what lies between them is not read."""
    (a, a_values), (b, b_values) = operand(dtype, (77, k), 7), operand(dtype, (k, 150), 8)
    wide = taeda.full((77, k + 8), float("nan") if dtype == "bfloat16" else 99, dtype=a.dtype)
    wide[:, 3 : k + 3] = a
    got = taeda._int_mm(wide[:, 3 : k + 3], b) if dtype == "int8" else wide[:, 3 : k + 3] @ b
    if dtype == "int8":
        np.testing.assert_array_equal(np.asarray(got), a_values @ b_values)
    else:
        np.testing.assert_allclose(np.asarray(got.double()), a_values @ b_values, rtol=0.005, atol=0.01 * np.sqrt(k))
        np.testing.assert_array_equal(np.asarray(got.float()), np.asarray((a.t().clone().t() @ b).float()))


@pytest.mark.parametrize("rows", [1, 3, 6, 7])
@pytest.mark.parametrize("bias", [False, True])
def test_few_rows(rows, bias):
    """Few rows against weights, and the other way round: sums along memory."""
    (x, x_values), (w, w_values), (d, d_values) = (
        operand("bfloat16", s, i) for i, s in enumerate(((rows, 300), (130, 300), (130,)))
    )
    want = x_values @ w_values.T
    got = taeda.nn.functional.linear(x, w, d) if bias else x @ w.t()
    np.testing.assert_allclose(np.asarray(got.double()), want + d_values * bias, rtol=0.005, atol=0.02)
    assert got.dtype is taeda.bfloat16
    np.testing.assert_allclose(np.asarray((w @ x.t()).double()), want.T, rtol=0.005, atol=0.02)


@pytest.mark.parametrize("bias", [(33,), (40, 33), (40, 1), (1,), ()])
def test_added(bias):
    (a, a_values), (b, b_values), (d, d_values) = (
        operand("bfloat16", s, i) for i, s in enumerate(((40, 64), (64, 33), bias))
    )
    got = taeda.addmm(d, a, b)
    np.testing.assert_allclose(np.asarray(got.double()), a_values @ b_values + d_values, rtol=0.005, atol=0.02)


def test_threads_and_gradients():
    (a, _), (b, b_values) = operand("bfloat16", (400, 130), 5), operand("bfloat16", (130, 300), 6)
    results = []
    for threads in (1, 3):
        taeda.set_num_threads(threads)
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        z = x @ y
        z.sum().backward()
        results.append([np.asarray(t.detach().float()) for t in (z, x.grad, y.grad)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(results[0][1], np.broadcast_to(b_values.sum(1), (400, 130)), rtol=0.01, atol=0.2)


def test_errors():
    a = taeda.ones(4, 4, dtype=taeda.int8)
    for left, right in ((a, a.int()), (a[0], a), (a, taeda.ones(3, 4, dtype=taeda.int8))):
        with pytest.raises(RuntimeError, match="_int_mm"):
            taeda._int_mm(left, right)
