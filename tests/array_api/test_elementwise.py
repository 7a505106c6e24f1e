"""Element-wise functions of the standard against array_api_strict (which is NumPy, checked): every dtype, special values
of floating-point and complex numbers in all pairs, promotion of arrays of no dimensions and of Python numbers."""

import itertools
import warnings

import numpy as np
import pytest

import taeda

strict = pytest.importorskip("array_api_strict")
xp = taeda.array_api

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS, REAL, COMPLEX = SIGNED + UNSIGNED, ["float32", "float64"], ["complex64", "complex128"]
KINDS = {"bool": ["bool"], "integer": INTEGERS, "real": REAL, "complex": COMPLEX}

#: What each function takes, by the standard.
UNARY = {
    "abs": "integer real complex",
    "acos": "real complex",
    "acosh": "real complex",
    "asin": "real complex",
    "asinh": "real complex",
    "atan": "real complex",
    "atanh": "real complex",
    "bitwise_invert": "bool integer",
    "ceil": "integer real",
    "conj": "integer real complex",
    "cos": "real complex",
    "cosh": "real complex",
    "exp": "real complex",
    "expm1": "real complex",
    "floor": "integer real",
    "imag": "complex",
    "isfinite": "integer real complex",
    "isinf": "integer real complex",
    "isnan": "integer real complex",
    "log": "real complex",
    "log1p": "real complex",
    "log2": "real complex",
    "log10": "real complex",
    "logical_not": "bool",
    "negative": "integer real complex",
    "positive": "integer real complex",
    "real": "integer real complex",
    "reciprocal": "real complex",
    "round": "integer real complex",
    "sign": "integer real complex",
    "signbit": "real",
    "sin": "real complex",
    "sinh": "real complex",
    "sqrt": "real complex",
    "square": "integer real complex",
    "tan": "real complex",
    "tanh": "real complex",
    "trunc": "integer real",
}
BINARY = {
    "add": "integer real complex",
    "atan2": "real",
    "bitwise_and": "bool integer",
    "bitwise_left_shift": "integer",
    "bitwise_or": "bool integer",
    "bitwise_right_shift": "integer",
    "bitwise_xor": "bool integer",
    "copysign": "real",
    "divide": "real complex",
    "equal": "bool integer real complex",
    "floor_divide": "integer real",
    "greater": "integer real",
    "greater_equal": "integer real",
    "hypot": "real",
    "less": "integer real",
    "less_equal": "integer real",
    "logaddexp": "real",
    "logical_and": "bool",
    "logical_or": "bool",
    "logical_xor": "bool",
    "maximum": "integer real",
    "minimum": "integer real",
    "multiply": "integer real complex",
    "nextafter": "real",
    "not_equal": "bool integer real complex",
    "pow": "integer real complex",
    "remainder": "integer real",
    "subtract": "integer real complex",
}

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 20.0, -20.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]


def values(dtype):
    """Numbers that matter, in ``dtype``."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in REAL:
        return np.array(SPECIAL, dtype)
    if dtype in COMPLEX:
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, 100, info.max, info.max - 1] + ([-1, -2, -7, info.min] if info.min else []), dtype)


def dtypes_of(kinds):
    return [d for kind in kinds.split() for d in KINDS[kind]]


def ours(x):
    return taeda.tensor(x)


def quietly(function, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args)


def same(got, want, *inputs, ulps=8, zeros=False):
    """Equal dtype and shape; equal integers; floating-point numbers within rounding, with equal NaN and infinities, and
    with ``zeros`` zeros of equal sign."""
    want = np.asarray(want)
    assert got.dtype.name == want.dtype.name
    assert tuple(got.shape) == want.shape
    got = got.numpy()
    if want.dtype.kind not in "fc":
        wrong = got != want
    else:
        parts = [(got, want)] if want.dtype.kind == "f" else [(got.real, want.real), (got.imag, want.imag)]
        wrong = np.zeros(want.shape, bool)
        with np.errstate(all="ignore"):
            for g, w in parts:
                scale = np.maximum(np.abs(w), np.abs(want) if want.dtype.kind == "c" else 0)
                near = np.abs(g - w) <= ulps * np.finfo(want.dtype).eps * scale + np.finfo(want.dtype).tiny
                wrong |= ~(near | (g == w) | (np.isnan(g) & np.isnan(w)))
                if zeros:
                    wrong |= (g == 0) & (w == 0) & (np.signbit(g) != np.signbit(w))
    if wrong.any():
        at = np.unravel_index(np.argmax(wrong), wrong.shape)
        operands = [np.broadcast_to(x, want.shape)[at] for x in inputs]
        raise AssertionError(f"{wrong.sum()} differ, first {operands}: {got[at]} instead of {want[at]}")


#: Of complex functions, those whose values at infinite and NaN parts the standard leaves open, or NumPy gets wrong:
#: expm1(inf + 0j) is inf + 0j.
FINITE = ("divide", "expm1", "pow", "reciprocal", "sign")

CASES = [(name, dtype) for name, kinds in UNARY.items() for dtype in dtypes_of(kinds)]


@pytest.mark.parametrize("name, dtype", CASES)
def test_unary(name, dtype):
    x = values(dtype)
    if name in FINITE and dtype in COMPLEX:
        x = x[np.isfinite(x) & (x != 0)]
    want = quietly(getattr(strict, name), strict.asarray(x))
    same(getattr(xp, name)(ours(x)), want, x, ulps=64, zeros=dtype in REAL)


@pytest.mark.parametrize("name, dtype", [(name, d) for name, kinds in BINARY.items() for d in dtypes_of(kinds)])
def test_binary(name, dtype):
    x = values(dtype)
    if name in FINITE and dtype in COMPLEX:
        x = x[np.isfinite(x) & (x != 0)]
    a, b = x[:, None], x[None, :]
    if name == "pow" and dtype in INTEGERS:
        b = np.array([[0, 1, 2, 3]], dtype)
    elif name in ("floor_divide", "remainder") and dtype in INTEGERS:
        b = b[b != 0][None, :]
        if dtype in SIGNED:
            a = a[a != np.iinfo(dtype).min][:, None]  # its quotient by -1 overflows
    elif name in ("bitwise_left_shift", "bitwise_right_shift"):
        b = np.arange(8 * np.dtype(dtype).itemsize, dtype=dtype)[None, :]
    want = quietly(getattr(strict, name), strict.asarray(a), strict.asarray(b))
    same(getattr(xp, name)(ours(a), ours(b)), want, a, b, ulps=64, zeros=dtype in REAL)


def test_gradients_of_a_remainder_that_is_zero():
    x, y = taeda.tensor([-6.0, 6.0, 0.0, -0.0, 5.0]), taeda.tensor([3.0, -3.0, 2.0, 2.0, 3.0])
    for function in (xp.remainder, taeda.remainder):
        a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
        result = function(a, b)
        result.sum().backward()
        assert a.grad.tolist() == [1.0] * 5 and b.grad.tolist() == [2.0, 2.0, 0.0, 0.0, -1.0]
    assert xp.signbit(xp.remainder(x, y)).tolist() == [False, True, False, False, False]
    mapped = taeda.func.vmap(xp.remainder)(x, y)
    assert mapped.tolist() == result.tolist() and xp.signbit(mapped).tolist() == [False, True, False, False, False]
    assert taeda.func.grad(lambda a: xp.remainder(a, y[0]))(x[0]) == 1


@pytest.mark.parametrize("dtype", COMPLEX)
def test_expm1_of_infinite_parts(dtype):
    """By the standard, where NumPy gives NaN: -1 at -infinity, an infinity of no direction at infinity."""
    inf, nan = np.inf, np.nan
    parts = [
        (-inf, inf),
        (-inf, nan),
        (-inf, 2.0),
        (inf, inf),
        (inf, nan),
        (inf, 0.0),
        (inf, 2.0),
        (nan, 0.0),
        (1.0, inf),
    ]
    x = taeda.tensor([complex(a, b) for a, b in parts], dtype=getattr(taeda, dtype))
    got = xp.expm1(x).numpy()
    want = [(-1, 0), (-1, 0), (-1, 0), (inf, nan), (inf, nan), (inf, 0), (-inf, inf), (nan, 0), (nan, nan)]
    np.testing.assert_array_equal(got.real, [w[0] for w in want])
    np.testing.assert_array_equal(got.imag, [w[1] for w in want])
    np.testing.assert_array_equal(xp.expm1(xp.conj(x)).imag.numpy(), -got.imag)


PAIRS = [
    (a, b)
    for group in (INTEGERS, REAL + COMPLEX)
    for a in group
    for b in group
    if {a, b} & {"uint64"} <= {a, b} & set(UNSIGNED) and not ("uint64" in (a, b) and {a, b} & set(SIGNED))
]


@pytest.mark.parametrize("shapes", [((2,), ()), ((), (2,)), ((), ()), ((2, 1), (3,))], ids=str)
def test_promotion_asks_for_dtypes_only(shapes):
    for a, b in PAIRS:
        left, right = np.ones(shapes[0], a), np.ones(shapes[1], b)
        want = strict.add(strict.asarray(left), strict.asarray(right))
        same(xp.add(ours(left), ours(right)), want)
        assert xp.result_type(ours(left), ours(right)).name == np.asarray(want).dtype.name


@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_on_either_side(name):
    for dtype in dtypes_of(BINARY[name]):
        x = np.ones(3, dtype)
        number = True if dtype == "bool" else 2
        for args in ((x, number), (number, x)):
            want = getattr(strict, name)(*(strict.asarray(v) if isinstance(v, np.ndarray) else v for v in args))
            same(getattr(xp, name)(*(ours(v) if isinstance(v, np.ndarray) else v for v in args)), want)


@pytest.mark.parametrize("dtype", INTEGERS + REAL)
def test_clip(dtype):
    x = values(dtype)
    x = x[~np.isnan(x)] if dtype in REAL else x
    for low, high in ((None, None), (1, None), (None, 3), (1, 3)):
        same(xp.clip(ours(x), low, high), strict.clip(strict.asarray(x), low, high), x)
    low, high = np.array([[0], [2]], dtype), np.array(3, dtype)
    want = strict.clip(strict.asarray(x), strict.asarray(low), strict.asarray(high))
    same(xp.clip(ours(x), ours(low), ours(high)), want)


def test_two_numbers_are_no_arrays():
    with pytest.raises(TypeError, match="expected an array"):
        xp.add(1, 2)
