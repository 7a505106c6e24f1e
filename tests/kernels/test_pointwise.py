"""The pointwise schedule: every dtype, layout and length, parameters, several outputs, any cut, and every target."""

import ctypes
import itertools
import struct

import numpy as np
import pytest

from taeda.kernels import pointwise as schedule
from taeda.kernels import scalar as s

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]


def bits(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


def classes_of(arrays):
    def one(a):
        inner = a.strides[1]
        return "c" if inner == a.itemsize else "s" if inner == 0 else "v"

    return "".join(one(a) for a in arrays)


def call(body, arrays, outs, ins, compute, parameters=(), pieces=1, classes=None):
    """Run on two-dimensional arrays, outputs first."""
    address = schedule.build_pointwise(body, outs, ins, compute, classes or classes_of(arrays))
    rows, inner = arrays[0].shape
    args = [inner, rows, *itertools.chain.from_iterable((a.strides[1], a.strides[0]) for a in arrays)]
    for p in parameters:
        if isinstance(p, complex):
            args += [bits(p.real), bits(p.imag)]
        else:
            args += [bits(p) if isinstance(p, float) else p, 0]
    pointers = np.array([a.ctypes.data for a in arrays], np.int64)
    args = np.array(args, np.int64)
    cuts = [rows * i // pieces for i in range(pieces + 1)]
    for begin, end in reversed(list(itertools.pairwise(cuts))):
        SIGNATURE(address)(pointers.ctypes.data, args.ctypes.data, begin, end)


def make(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if "int" in dtype:
        return rng.integers(0, 60, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def compute_of(dtype):
    return "float32" if dtype == "float16" else dtype


LENGTHS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 200]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_length(dtype):
    """Nothing is written past the end, at whatever place a row ends."""
    for n in LENGTHS:
        a, b = make(dtype, (2, n), 1), make(dtype, (2, n), 2)
        frame = np.full((2, n + 8), make(dtype, (1, 1), 3)[0, 0])
        before = frame.copy()
        call(lambda x, y: x + y, [frame[:, 4:-4], a, b], [dtype], [dtype, dtype], compute_of(dtype))
        np.testing.assert_array_equal(frame[:, 4:-4], a + b)
        np.testing.assert_array_equal(frame[:, :4], before[:, :4])
        np.testing.assert_array_equal(frame[:, -4:], before[:, -4:])


def streamed(n, dtype):
    """Two rows of ``n`` that begin at cache lines, a line between them, in memory filled with something else."""
    dtype = np.dtype(dtype)
    row = ((n * dtype.itemsize + 63) // 64 + 1) * 64 // dtype.itemsize
    memory = np.full(2 * row + 64, make(dtype.name, (1, 1), 3)[0, 0])
    start = -memory.ctypes.data % 64 // dtype.itemsize
    return memory[start : start + 2 * row].reshape(2, row)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64", "complex64", "complex128"])
def test_stores_past_the_cache(dtype):
    """Rows that begin at a cache line, to the last element and not beyond."""
    for n in LENGTHS:
        a, b = make(dtype, (2, n), 1), make(dtype, (2, n), 2)
        frame = streamed(n, dtype)
        before = frame.copy()
        call(lambda x, y: x * 2 + y, [frame[:, :n], a, b], [dtype], [dtype, dtype], compute_of(dtype), (), 2, "ncc")
        np.testing.assert_allclose(frame[:, :n], a * 2 + b, rtol=2e-3 if dtype == "float16" else 1e-6)
        np.testing.assert_array_equal(frame[:, n:], before[:, n:])


def forms(a):
    """The same shape in every layout class: contiguous, a broadcast scalar per row, stepped, reversed, transposed."""
    wide = np.repeat(a, 2, axis=1)
    return {
        "contiguous": a,
        "splat": np.broadcast_to(a[:, :1], a.shape),
        "stepped": wide[:, ::2],
        "reversed": a[:, ::-1],
        "transposed": np.asfortranarray(a),
        "rows": np.broadcast_to(a[:1], a.shape),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["contiguous", "splat", "stepped", "reversed", "transposed", "rows"])
def test_layouts(dtype, form):
    a, b = make(dtype, (5, 37), 1), forms(make(dtype, (5, 37), 2))[form]
    out = np.zeros_like(a)
    call(lambda x, y: x * y, [out, a, b], [dtype], [dtype, dtype], compute_of(dtype))
    np.testing.assert_allclose(out, a * b, rtol=1e-6)
    target = np.zeros((5, 74), a.dtype)
    call(lambda x, y: x * y, [target[:, ::2], a, b], [dtype], [dtype, dtype], compute_of(dtype))
    np.testing.assert_allclose(target[:, ::2], a * b, rtol=1e-6)
    assert not target[:, 1::2].any()


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversion(source, target):
    a = make(source, (2, 141))  # whole steps, which fill a register of the narrower type, and a rest
    out = np.zeros((2, 141), target)
    real_of_complex = source.startswith("complex") and not target.startswith("complex") and target != "bool"
    want = (a.real if real_of_complex else a).astype(target)
    if ("int" in target and "float" in source) or ("int" in target and real_of_complex):
        whole = np.trunc(a.real).astype(np.int64)
        want = whole.astype(target)  # through a wide integer, so that negative numbers wrap
    compute = source if source.startswith("complex") else compute_of(source)
    call(lambda x: x, [out, a], [target], [source], compute)
    np.testing.assert_array_equal(out, want)
    frame = streamed(141, target)
    call(lambda x: x, [frame[:, :141], a], [target], [source], compute, classes="nc")
    np.testing.assert_array_equal(frame[:, :141], want)


def test_bfloat16_rounds_to_even():
    edges = np.float32([np.inf, -np.inf, np.nan, 3.4e38, 1e-40])
    edges = np.append(edges, np.uint32([0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000001]).view(np.float32))
    x = np.concatenate([edges, np.linspace(-3, 3, 1001, dtype=np.float32), edges])  # in whole steps and in the rest
    stored = np.zeros((1, x.size), np.uint16)
    call(lambda v: v, [stored, x[None]], ["bfloat16"], ["float32"], "float32")
    raw = x.view(np.uint32)
    want = ((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16).astype(np.uint16)
    want[np.isnan(x)] = 0x7FC0
    np.testing.assert_array_equal(stored[0], want)
    back = np.zeros_like(x)[None]
    call(lambda v: v, [back, stored], ["float32"], ["bfloat16"], "float32")
    np.testing.assert_array_equal(back[0], (stored[0].astype(np.uint32) << 16).view(np.float32))


@pytest.mark.parametrize(
    ("dtype", "number"), [("float32", 2.5), ("int32", -7), ("uint8", 3), ("complex64", 2 - 3j), ("bool", 1)]
)
def test_parameters(dtype, number):
    a = make(dtype, (2, 50))
    out = np.zeros_like(a)
    call(lambda x, p: x * p, [out, a], [dtype], [dtype, "param"], dtype, [number])
    np.testing.assert_allclose(out, (a * number).astype(dtype), rtol=1e-6)


def test_mixed_operands():
    a, b, c = make("int64", (4, 45)), make("bool", (4, 45)), make("float32", (4, 45))
    out = np.zeros((4, 45), np.float64)
    call(lambda x, y, z: s.select(y != 0.0, x, z), [out, a, b, c], ["float64"], ["int64", "bool", "float32"], "float64")
    np.testing.assert_array_equal(out, np.where(b, a, c))


def test_several_outputs():
    a = make("float64", (3, 29))
    low, high, positive = np.zeros_like(a), np.zeros_like(a, np.int32), np.zeros_like(a, bool)
    call(
        lambda x: (s.floor(x), s.ceil(x), x > 0),
        [low, high, positive, a],
        ["float64", "int32", "bool"],
        ["float64"],
        "float64",
    )
    np.testing.assert_array_equal(low, np.floor(a))
    np.testing.assert_array_equal(high, np.ceil(a).astype(np.int32))
    np.testing.assert_array_equal(positive, a > 0)


def test_in_place():
    a, b = make("float32", (3, 101), 1), make("float32", (3, 101), 2)
    want = a + b
    call(lambda x, y: x + y, [a, a, b], ["float32"], ["float32"] * 2, "float32")
    np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("name", ["exp", "sin", "erf", "tanh", "log"])
def test_any_cut_gives_the_same_bits(name):
    """An element's result does not depend on its place in a vector, in the rest of a row, or on the pieces."""
    a = make("float32", (6, 67), 1)
    whole, pieces, single = np.zeros_like(a), np.zeros_like(a), np.zeros((6 * 67, 1), np.float32)
    body = getattr(s, name)
    call(body, [whole, a], ["float32"], ["float32"], "float32")
    call(body, [pieces, a], ["float32"], ["float32"], "float32", pieces=4)
    call(body, [single, a.reshape(-1, 1)], ["float32"], ["float32"], "float32")
    np.testing.assert_array_equal(whole.view(np.int32), pieces.view(np.int32))
    np.testing.assert_array_equal(whole.ravel().view(np.int32), single.ravel().view(np.int32))


@pytest.mark.parametrize("layout", ["cc", "cv", "vc", "vv"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layout_gives_the_same_bits(dtype, layout):
    a = make(dtype, (3, 131))
    want = np.zeros_like(a)
    call(s.tanh, [want, a], [dtype], [dtype], "float32")
    source = np.repeat(a, 2, 1)[:, ::2] if layout[1] == "v" else a
    out = np.zeros((3, 262), dtype)[:, ::2] if layout[0] == "v" else np.zeros_like(a)
    call(s.tanh, [out, source], [dtype], [dtype], "float32")
    np.testing.assert_array_equal(out, want)


CODE = """
import sys
from taeda.kernels import build, pointwise, scalar as s, target
from taeda.kernels.ir import Function

where = getattr(target, sys.argv[1])
calls = {"X86_64_AVX2": "call", "X86_64_AVX512": "call", "ARM64": "\\tbl\\t", "PTX": "call.uni"}[sys.argv[1]]
names = "copysign exp expm1 log log1p tanh sigmoid sin tan atan2 pow erf erfc erfinv lgamma digamma fmod hypot".split()
two = {"copysign", "atan2", "pow", "fmod", "hypot"}
made = 0
for name in names:
    for dtype, compute in (("float32",) * 2, ("float64",) * 2, ("bfloat16", "float32"), ("float16", "float32")):
        for layout in ("c", "v"):
            n = 3 if name in two else 2
            f = Function(vector_bytes=where.vector_bytes)
            pointwise.pointwise(f, getattr(s, name), [dtype], [dtype] * (n - 1), compute, layout * n)
            code = build.compiler(where).assembly(f.text())
            assert len(code) > 100
            # a call would be to a library that nobody loads
            assert calls not in code, (name, dtype, layout, [x for x in code.splitlines() if calls in x])
            made += 1
for name in ("exp", "log", "tanh", "asin"):
    f = Function(vector_bytes=where.vector_bytes)
    pointwise.pointwise(f, getattr(s, name), ["complex64"], ["complex64"], "complex64", "cc")
    build.compiler(where).assembly(f.text())
    made += 1
for dtype in ("int8", "int32", "int64", "uint8"):
    for body in (s.floor_divide, s.remainder, s.pow, s.gcd):
        f = Function(vector_bytes=where.vector_bytes)
        pointwise.pointwise(f, body, [dtype], [dtype] * 2, dtype, "ccc")
        build.compiler(where).assembly(f.text())
        made += 1
for sources in (["float16", "float64"], ["float64", "float16"]):  # conversions between dtypes two steps apart
    f = Function(vector_bytes=where.vector_bytes)
    pointwise.pointwise(f, s.copysign, ["float16"], sources, "float32", "ccs")
    assert calls not in build.compiler(where).assembly(f.text())
    made += 1
print(made)
"""


@pytest.mark.parametrize("where", ["X86_64_AVX2", "X86_64_AVX512", "ARM64", "PTX"])
def test_code_for_every_target(run_python, where):
    assert int(run_python(CODE, where)) == 18 * 8 + 4 + 16 + 2


RESULTS = """
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
import test_scalar
for name in ("exp", "log", "sin", "tanh", "erf", "sigmoid", "log1p", "lgamma"):
    test_scalar.test_error(name, "float32")
    test_scalar.test_special_values(name, "float32") if hasattr(np, name) else None
import test_pointwise
for dtype in test_pointwise.DTYPES:
    test_pointwise.test_every_length(dtype)
    for form in test_pointwise.forms(np.zeros((2, 2))):
        test_pointwise.test_layouts(dtype, form)
test_pointwise.test_bfloat16_rounds_to_even()
print("good")
"""


def test_avx2(run_python):
    """The same on a machine without AVX-512 (on one without AVX2 this is what ran above)."""
    from pathlib import Path

    assert run_python(RESULTS, str(Path(__file__).parent), TAEDA_TARGET="avx2").strip() == "good"
