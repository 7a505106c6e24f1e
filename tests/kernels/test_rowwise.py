"""The row-wise schedule: both modes, both levels, any strides, any cut; and the reductions made with it."""

import ctypes

import numpy as np
import pytest

from taeda.kernels import reduce as family
from taeda.kernels.build import compiler
from taeda.kernels.ir import F32, F64, Function
from taeda.kernels.reduce import REDUCTIONS, merge, reduce
from taeda.kernels.rows import Operand, by_register
from taeda.kernels.rowwise import rowwise
from taeda.kernels.softmax import log_softmax, softmax
from taeda.kernels.target import ARM64, PTX, X86_64_AVX2, X86_64_AVX512, host

LANES = {4: host().vector_bytes // 4, 8: host().vector_bytes // 8}


def draw(*shape, dtype="float32"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def units(m, lanes, columns):
    return -(-m // lanes) if columns else m


def whole(op, x, outs, mode="rc", params=(), pieces=1, call=None):
    """Reduce the second dimension of ``x``, of any strides."""
    m, n = x.shape
    names = tuple(str(o.dtype) for o in outs)
    lanes = family.lanes(op, str(x.dtype), names)
    args = [n, 1, m]
    for o in outs:
        args += [0, 0, 0, o.itemsize]
    args += [x.strides[1], 0, 0, x.strides[0], 0, 0, n, *map(float, params)]
    address = reduce(op, str(x.dtype), names, mode, 1, True)
    call(address, [*outs, x.ctypes.data], args, units(m, lanes, mode[0] == "c"), pieces)
    return outs


@pytest.mark.parametrize("mode", ["rc", "rv", "cc", "cv"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (40, 16), (5, 1000), (1500, 20), (7, 0)])
def test_sum(run, mode, shape):
    x = draw(*shape)
    if mode == "cc":
        x = np.asfortranarray(x)
    elif mode[1] == "v":
        x = np.repeat(x, 3, 1)[:, ::3]
    expected = x.sum(1, dtype=np.float64)
    (y,) = whole("sum", x, [np.zeros(shape[0], np.float32)], mode, call=run)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)
    (z,) = whole("sum", x, [np.zeros(shape[0], np.float32)], mode, pieces=3, call=run)
    np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("mode", ["rc", "cc"])
def test_two_levels(run, mode):
    """A row may be two nested dimensions: here the sum over the first and one other of three."""
    x = draw(6, 33, 40)
    y = np.zeros(33 if mode == "rc" else 40, np.float32)
    s0, s1, s2 = x.strides
    if mode == "rc":
        args = [40, 6, 33, 0, 0, 0, 4, s2, s0, 0, s1, 0, 0, 240]
        run(reduce("sum", "float32", ("float32",), mode, 2, True), [y, x], args, 33)
        expected = x.sum((0, 2), dtype=np.float64)
    else:
        args = [33, 6, 40, 0, 0, 0, 4, s1, s0, 0, s2, 0, 0, 198]
        run(reduce("sum", "float32", ("float32",), mode, 2, True), [y, x], args, units(40, LANES[4], True))
        expected = x.sum((0, 1), dtype=np.float64)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_many_tiles(run):
    """Column mode takes wide tiles, narrow ones and single masked vectors; the result is the same for any cut."""
    x = draw(50, 64 * 16 + 8 * 16 + 21)
    y = [np.zeros(x.shape[1], np.float32) for _ in range(2)]
    for out, pieces in zip(y, (1, 37), strict=True):
        whole("sum", x.T, [out], "cc", pieces=pieces, call=run)
    np.testing.assert_allclose(y[0], x.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(y[0], y[1])


@pytest.mark.parametrize("op", sorted(REDUCTIONS))
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_parts_and_merge(run, op, dtype):
    """A reduction cut into chunks gives what it gives whole."""
    floating = op in ("mean", "nansum", "logsumexp", "softmax_terms", "normp", "norm2", "sumsq")
    floating = floating or "var" in op or "std" in op
    if dtype == "int32" and floating:
        pytest.skip("floating point only")
    x = draw(4, 23, dtype="float64")
    x = (x * 5).astype(dtype) if dtype == "int32" else x.astype(dtype)
    integer = {
        "count_nonzero": "int64",
        "norm0": dtype,
        "any": "bool",
        "all": "bool",
        "argmax": "int64",
        "argmin": "int64",
    }
    first = integer.get(op, "int64" if dtype == "int32" and op in ("sum", "prod") else dtype)
    more = "int64" if op in ("max", "min") else dtype if "_mean" in op or op in ("aminmax", "softmax_terms") else None
    names = (first,) if more is None else (first, more)
    params = [2.5] if op == "normp" else [1.0] if REDUCTIONS[op].nparams else []
    m, n, chunk = 4, 23, 5
    outs = [[np.zeros(m, d) for d in names] for _ in range(2)]
    whole(op, x, outs[0], params=params, call=run)
    working = REDUCTIONS[op].working(dtype, first)
    states = [np.zeros((5, m), d) for d in REDUCTIONS[op].stored(working)]
    address = reduce(op, dtype, names, "rc", 1, False)
    for start, a, length in ((0, 4, chunk), (20, 1, 3)):
        args = [length, 1, m]
        for s in states:
            args += [0, 0, m * s.itemsize, s.itemsize]
        args += [x.itemsize, 0, chunk * x.itemsize, x.strides[0], start, chunk, n, *params]
        pointers = [s[start // chunk :].ctypes.data for s in states] + [x.ctypes.data + start * x.itemsize]
        run(address, pointers, args, a * m)
    run(merge(op, dtype, names), [*outs[1], *states], [5, m, n, *params], m)
    for a, b in zip(*outs, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5)


def test_first_of_equals(run):
    x = np.zeros((3, 200), np.float32)
    x[0, [70, 90]] = 5
    x[1, [3, 150]] = np.nan
    x[2] = -np.inf
    (y,) = whole("argmax", x, [np.zeros(3, np.int64)], call=run)
    assert y.tolist() == [70, 3, 0]


@pytest.mark.parametrize("stream", [(), (True,)])
@pytest.mark.parametrize("columns", [False, True])
def test_softmax(run, columns, stream):
    """Rows one by one and by stretches, kept and read again; copied by columns, and longer; any cut."""
    for rows, n in ((1, 1), (3, 9), (20, 100), (200, 17), (5, 640), (3, 70000), (16, 1040), (9, 5003), (4, 70001)):
        if stream and (rows % 16 if columns else n % 16 and n < 1000):  # only long rows may begin between lines then
            continue
        x = draw(rows, n) * 5
        x[0, 1:2] = -np.inf
        x[-1, : n // 2] -= 300  # the first stretches have a maximum far below the last
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = e / e.sum(1, keepdims=True)
            logarithm = np.log(expected)
        data = np.ascontiguousarray(x.T) if columns else x
        step = [rows * 4, 0, 0, 4] if columns else [4, 0, 0, n * 4]
        total = units(rows, LANES[4], columns)
        for kernel, reference in ((softmax, expected), (log_softmax, logarithm)):
            found = []
            for pieces in (1, min(total, 3)):
                block = np.zeros(x.size + 16, np.float32)
                y = block[-block.ctypes.data % 64 // 4 :][: x.size].reshape(data.shape)
                address = kernel(("float32", "float32"), columns, *stream)
                run(address, [y, data], [n, 1, rows, *step, *step], total, pieces)
                found.append(y)
            np.testing.assert_array_equal(*found)
            seen = np.isfinite(reference) & (
                reference > -90
            )  # the logarithm of what float64 gives 0 is finite in float32
            y = y.T if columns else y
            np.testing.assert_allclose(y[seen], reference[seen], rtol=3e-6, atol=2e-6)


def test_body_of_several_outputs(run):
    """A body is Python over one row: here it folds twice and writes two results."""
    x = draw(5, 70, dtype="float64")

    def body(row):
        total, top = row.fold(
            [2],
            [("float64", 0.0), ("float64", -np.inf)],
            lambda acc, v: (acc[0] + v, row.f.select(v > acc[1], v, acc[1])),
            lambda a, b: (a[0] + b[0], row.f.select(b[1] > a[1], b[1], a[1])),
        )
        row.each([2], [0], lambda v: v - top)
        row.put(1, total)

    f = Function(vector_bytes=host().vector_bytes)
    rowwise(f, body, [Operand("float64"), Operand("float64"), Operand("float64")], F64)
    y, total = np.zeros_like(x), np.zeros(5)
    code = compiler().object(f.text())
    address = compiler().load("kernel", code)
    run(address, [y, total, x], [70, 1, 1, 8, 0, 560, 0, 0, 0, 8, 0, 8, 0, 560, 0], 5)
    np.testing.assert_array_equal(y, x - x.max(1, keepdims=True))
    np.testing.assert_allclose(total, x.sum(1), rtol=1e-13, atol=1e-13)


def test_by_register_joins_what_it_split():
    f = Function(vector_bytes=16)
    x = f.splat(f.const(F32, 2.0), 16)
    assert by_register(lambda v: v + 1, x).lanes == 16


@pytest.mark.parametrize("target", [X86_64_AVX2, X86_64_AVX512, ARM64, PTX], ids=lambda t: f"{t.cpu}")
def test_targets(target):
    """Kernels of both modes compile for every target."""
    machine = compiler(target)
    for mode in ("rc", "cv"):
        assert machine.assembly(reduce.text("sum", "bfloat16", ("bfloat16",), mode, 2, True, target=target).text())
        assert machine.assembly(
            reduce.text("max", "float32", ("float32", "int64"), mode, 1, True, target=target).text()
        )
    for columns in (False, True):
        assert machine.assembly(log_softmax.text(("float32", "float32"), columns, target=target).text())


def test_kernel_abi():
    """A kernel does nothing for an empty range, whatever its pointers."""
    address = reduce("sum", "float32", ("float32",), "rc", 1, True)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    pointers, args = np.zeros(2, np.int64), np.ones(16, np.int64)
    kernel(pointers.ctypes.data, args.ctypes.data, 0, 0)
