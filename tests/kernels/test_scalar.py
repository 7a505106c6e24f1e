"""Scalar mathematics against mpmath: errors in units in the last place, over all exponents, and special values."""

import ctypes
import itertools
import math
import operator

import mpmath as mp
import numpy as np
import pytest

import taeda
from taeda.kernels import pointwise as schedule
from taeda.kernels import scalar as s

mp.mp.prec = 200
SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
FLOAT = ["float32", "float64"]


def evaluate(body, dtype, *xs, out=None):
    """``body`` of contiguous arrays of ``dtype``."""
    out = out or dtype
    xs = [np.ascontiguousarray(x, dtype).ravel() for x in xs]
    result = np.empty(xs[0].shape, out)
    address = schedule.build_pointwise(body, [out], [dtype] * len(xs), dtype, "c" * (len(xs) + 1))
    arrays = [result, *xs]
    strides = itertools.chain.from_iterable((a.itemsize, 0) for a in arrays)
    args = np.array([result.size, 1, *strides], np.int64)
    pointers = np.array([a.ctypes.data for a in arrays], np.int64)
    SIGNATURE(address)(pointers.ctypes.data, args.ctypes.data, 0, 1)
    return result


def everywhere(dtype, n=400, seed=1):
    """Numbers of every exponent, subnormal too, of both signs."""
    unsigned = {"float32": np.uint32, "float64": np.uint64}[dtype]
    bits = np.random.default_rng(seed).integers(0, np.iinfo(unsigned).max, n, unsigned, endpoint=True)
    x = bits.view(dtype)
    return x[np.isfinite(x)]


def points(dtype, low, high, n=600, seed=2):
    """Numbers in ``[low, high]``: of every exponent there, even ones, and the neighbourhood of 1 and of 0."""
    rng = np.random.default_rng(seed)
    even = rng.uniform(max(low, -1e4), min(high, 1e4), n)
    close = rng.uniform(max(low, -4), min(high, 4), n)
    near = np.concatenate([1 + rng.normal(size=50) * 1e-3, rng.normal(size=50) * 1e-3])
    x = np.concatenate([everywhere(dtype), even, close, near]).astype(dtype)
    return x[(x >= low) & (x <= high)]


def ulps(got, want, dtype):
    """The distance of ``got`` from ``want`` in units of the last place of ``want``."""
    info = np.finfo(dtype)
    if mp.isnan(want) or np.isnan(got):
        return 0.0 if mp.isnan(want) and np.isnan(got) else math.inf
    largest = mp.mpf(float(info.max)) * (1 + mp.mpf(2) ** -(info.nmant + 2))
    if abs(want) > largest:
        return 0.0 if np.isinf(got) and (got > 0) == (want > 0) else math.inf
    if np.isinf(got):
        return math.inf
    exponent = max(mp.frexp(want)[1] - 1, info.minexp) if want else info.minexp
    return float(abs(mp.mpf(float(got)) - want) / mp.mpf(2) ** (exponent - info.nmant))


def worst(body, reference, dtype, *xs):
    """The largest error over the points, and where it is."""
    found = evaluate(body, dtype, *xs)
    errors = []
    for i, y in enumerate(found):
        at = [x[i] for x in xs]
        want = reference(*[mp.mpf(float(v)) for v in at])
        errors.append((ulps(y, mp.nan if isinstance(want, mp.mpc) else want, dtype), at, y, want))
    return max(errors, key=lambda e: e[0])


def log_or_limit(f):
    """A logarithm with its limit at 0 and NaN below."""
    return lambda x: f(x) if x > 0 else -mp.inf if x == 0 else mp.nan


INF = math.inf
#: name: (reference, low, high, ulp in float32, ulp in float64)
UNARY = {
    "exp": (mp.exp, -1e4, 1e4, 1, 1),
    "exp2": (lambda x: mp.power(2, x), -1e4, 1e4, 1.5, 1.5),
    "expm1": (mp.expm1, -1e4, 1e4, 2, 1),
    "log": (log_or_limit(mp.log), -INF, INF, 1.1, 1.5),
    "log2": (log_or_limit(lambda x: mp.log(x, 2)), 0, INF, 1, 1),
    "log10": (log_or_limit(mp.log10), 0, INF, 2, 2),
    "log1p": (mp.log1p, -1, INF, 1, 1),
    "sqrt": (mp.sqrt, 0, INF, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / mp.sqrt(x) if x else mp.inf, 0, INF, 1.5, 1.5),
    "sin": (mp.sin, -INF, INF, 1, 1),
    "cos": (mp.cos, -INF, INF, 1, 1),
    "tan": (mp.tan, -INF, INF, 1, 1),
    "asin": (mp.asin, -1, 1, 1.4, 1.2),
    "acos": (mp.acos, -1, 1, 1.4, 1.3),
    "atan": (mp.atan, -INF, INF, 1, 1),
    "sinh": (mp.sinh, -1e4, 1e4, 1, 1),
    "cosh": (mp.cosh, -1e4, 1e4, 1, 1),
    "tanh": (mp.tanh, -1e4, 1e4, 1, 1.1),
    "asinh": (mp.asinh, -INF, INF, 1, 1.5),
    "acosh": (mp.acosh, 1, INF, 1, 2),
    "atanh": (lambda x: mp.atanh(x) if abs(x) < 1 else x * mp.inf, -1, 1, 1.4, 1.1),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), -1e4, 1e4, 3, 3),
    "erf": (mp.erf, -30, 30, 1.3, 1.2),
    "erfc": (mp.erfc, -30, 30, 1.5, 1.2),
    "erfinv": (lambda x: mp.erfinv(x) if abs(x) < 1 else x * mp.inf, -1, 1, 1, 1.1),
    "lgamma": (lambda x: mp.loggamma(x) if x else mp.inf, 0, 1e30, 1, 1.2),
    "i0": (lambda x: mp.besseli(0, x), -80, 80, 1, 5),
    "i1": (lambda x: mp.besseli(1, x), -80, 80, 1, 5),
    "trigamma": (lambda x: mp.psi(1, x) if x else mp.inf, 0, 1e30, 1, 6),
    "digamma": (lambda x: mp.digamma(x) if x else -mp.inf, 0, 1e30, 1, 6),
}


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("name", UNARY)
def test_error(name, dtype):
    reference, low, high, *bounds = UNARY[name]
    x = points(dtype, low, high)
    error, *where = worst(getattr(s, name), reference, dtype, x)
    assert error <= bounds[FLOAT.index(dtype)], where


def test_units_by_pieces():
    """Where float32 units go by polynomials in pieces: their tails, ends and special values."""
    x = np.concatenate([points("float32", -50, 50), np.float32([-INF, INF, np.nan, -1e38, 1e38])])
    normal = {"gelu": lambda x: x * mp.ncdf(x), "gelu_slope": lambda x: mp.ncdf(x) + x * mp.npdf(x)}
    for name, reference in normal.items():
        got = evaluate(getattr(s, name), "float32", x)
        for at, y in zip(x[:-5], got, strict=False):
            want = reference(mp.mpf(float(at)))
            assert abs(mp.mpf(float(y)) - want) < 4e-8 or ulps(y, want, "float32") < 2.6, (name, at, y, want)
        limit = np.float32([0, INF, np.nan, 0, 1e38]) if name == "gelu" else np.float32([0, 1, np.nan, 0, 1])
        np.testing.assert_allclose(got[-5:], limit, rtol=0, atol=1e-20)  # without pieces not quite 0
    for name, sign in (("softplus", 1), ("log_sigmoid", -1)):
        error, *where = worst(
            getattr(s, name), lambda x, sign=sign: sign * mp.log1p(mp.exp(sign * x)), "float32", x[:-5]
        )
        assert error < 2.8, where


def test_rare_arguments_change_nothing_beside_them():
    """A vector with an argument that exp handles in another way has the same bits elsewhere."""
    x = np.random.default_rng(3).uniform(-86, 86, 999).astype(np.float32)
    alone = evaluate(s.exp, "float32", x)
    for rare in (-200.0, -90.0, 88.5, 200.0, INF, -INF, np.nan):
        beside = x.copy()
        beside[::7] = rare
        got = evaluate(s.exp, "float32", beside)
        with np.errstate(over="ignore"):
            expected = np.exp(beside.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(np.delete(got, np.s_[::7]), np.delete(alone, np.s_[::7]))
        np.testing.assert_allclose(got[::7], expected[::7], rtol=2e-7, atol=2e-45)


@pytest.mark.parametrize("name, steps", [("exp", 1), ("softplus", 1), ("sigmoid", 2)])
def test_subnormal_exponentials(name, steps):
    """From the last normal results to 0; NaN of either sign stays."""
    x = np.linspace(-104.5, -86.5, 4001, dtype=np.float32)
    got = evaluate(getattr(s, name), "float32", x)
    step = float(np.nextafter(np.float32(0), np.float32(1)))
    np.testing.assert_allclose(got, np.exp(x.astype(np.float64)), rtol=2e-7, atol=steps * step)
    nans = np.array([0x7FC00000, 0xFFC00000, 0xFFFFFFFF] * 9, np.uint32).view(np.float32)
    assert np.isnan(evaluate(getattr(s, name), "float32", nans)).all()


#: Arguments whose value is a small whole number or a half.
EXACT = [("exp", 0), ("exp2", 10), ("cos", 0), ("cosh", 0), ("log", 1), ("log2", 8), ("log10", 1000), ("acos", 1)]
EXACT += [("erfc", 0), ("sigmoid", 0), ("rsqrt", 4), ("i0", 0), ("lgamma", 2), ("acosh", 1)]


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("name, x", EXACT)
def test_exact_values(name, x, dtype):
    error, *where = worst(getattr(s, name), UNARY[name][0], dtype, np.array([x], dtype))
    assert error == 0, where


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_no_sine_exceeds_one(name):
    quarter = 0.0 if name == "cos" else math.pi / 2
    x = np.concatenate([quarter + np.linspace(-0.003, 0.003, 50001), [0.0]]).astype("float32")
    assert np.abs(evaluate(getattr(s, name), "float32", x)).max() == 1


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_and_nearly_periodic_angles(name, dtype):
    """Multiples of a quarter turn rounded to the dtype are the hard cases of argument reduction."""
    multiples = [mp.pi / 2 * k for k in [*range(1, 200), 10**4 + 1, 10**6 + 3, 10**9 + 7, 10**15 + 11]]
    with np.errstate(over="ignore"):
        x = np.array([float(m) for m in multiples] + [2.0**k for k in range(1, 1000, 13)]).astype(dtype)
    x = x[np.isfinite(x)]
    error, *where = worst(getattr(s, name), getattr(mp, name), dtype, x)
    assert error <= 1, where


@pytest.mark.parametrize("dtype", FLOAT)
def test_pow(dtype):
    rng = np.random.default_rng(3)
    x = np.exp2(rng.normal(size=1500) * 30).astype(dtype)
    y = (rng.uniform(-1.01, 1.01, 1500) * math.log(np.finfo(dtype).max) / np.abs(np.log(x.astype(float)))).astype(dtype)
    error, *where = worst(s.pow, mp.power, dtype, x, y)
    assert error <= (1 if dtype == "float32" else 2), where


@pytest.mark.parametrize("dtype", FLOAT)
def test_atan2_and_hypot(dtype):
    rng = np.random.default_rng(4)
    a, b = everywhere(dtype, 800, 5), everywhere(dtype, 800, 6)
    n = min(len(a), len(b))
    a = np.concatenate([a[:n], rng.normal(size=500)]).astype(dtype)
    b = np.concatenate([b[:n], rng.normal(size=500)]).astype(dtype)
    for name, reference, bound in (("atan2", mp.atan2, 1.5), ("hypot", mp.hypot, 1)):
        error, *where = worst(getattr(s, name), reference, dtype, a, b)
        assert error <= bound, (name, where)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, INF, -INF, math.nan, 1e-40, -1e-40, 3.0, -3.0, 1e30]


def same(got, want):
    """Equal to a few last places, infinities, NaN and the sign of zero included."""
    close = np.isclose(got, want, rtol=1e-5, atol=0, equal_nan=True)
    return close & ((want != 0) | (np.signbit(got) == np.signbit(want)) | np.isnan(want))


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize(
    "name",
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil trunc".split(),
)
def test_special_values(name, dtype):
    x = np.array(SPECIAL, dtype)
    reference = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
    reference["atanh"] = "arctanh"
    with np.errstate(all="ignore"):
        want = getattr(np, reference.get(name, name))(x)
    got = evaluate(getattr(s, name), dtype, x)
    assert same(got, want).all(), list(zip(x, got, want, strict=True))


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize(
    "name", "pow atan2 hypot fmod remainder floor_divide copysign maximum minimum fmax fmin nextafter".split()
)
def test_special_pairs(name, dtype):
    a, b = (v.ravel() for v in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    reference = {"pow": "power", "atan2": "arctan2"}
    with np.errstate(all="ignore"):
        want = getattr(np, reference.get(name, name))(a, b)
    got = evaluate(getattr(s, name), dtype, a, b)
    good = same(got, want)
    if name in ("maximum", "minimum", "fmax", "fmin", "remainder"):  # which of two zeros is not laid down
        good |= (got == 0) & (want == 0)
    assert good.all(), [(p, q, g, w) for p, q, g, w, ok in zip(a, b, got, want, good, strict=True) if not ok]


@pytest.mark.parametrize("dtype", FLOAT)
def test_fmod_is_exact(dtype):
    a, b = everywhere(dtype, 3000, 7), everywhere(dtype, 3000, 8)
    n = min(len(a), len(b))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(s.fmod, dtype, a[:n], b[:n]), np.fmod(a[:n], b[:n]))


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(dtype):
    info = np.iinfo(dtype)
    edge = [info.min, info.min + 1, 0, 1, 2, 3, 7, 100, info.max - 1, info.max]
    if info.min < 0:
        edge += [-1, -2, -3, -7]
    a, b = (v.ravel() for v in np.meshgrid(np.array(edge, dtype), np.array(edge, dtype)))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(s.floor_divide, dtype, a, b), np.where(b == 0, 0, a // b))
        np.testing.assert_array_equal(evaluate(s.remainder, dtype, a, b), np.where(b == 0, 0, a % b))
        np.testing.assert_array_equal(evaluate(s.fmod, dtype, a, b), np.where(b == 0, 0, np.fmod(a, b)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions(dtype):
    rng = np.random.default_rng(9)
    low = -9 if np.iinfo(dtype).min < 0 else 0
    a, b = rng.integers(low, 10, 200).astype(dtype), rng.integers(0, 7, 200).astype(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(s.pow, dtype, a, b), a**b)
        np.testing.assert_array_equal(evaluate(s.shift_left, dtype, a, b), a << b)
        np.testing.assert_array_equal(evaluate(s.shift_right, dtype, a, b), a >> b)
    np.testing.assert_array_equal(evaluate(s.gcd, dtype, a, b), np.gcd(a, b))
    np.testing.assert_array_equal(evaluate(s.lcm, dtype, a, b), np.lcm(a, b))
    info = np.iinfo(dtype)
    wide = rng.integers(info.min + (info.min < 0), info.max, (2, 200), dtype=dtype, endpoint=True)
    np.testing.assert_array_equal(evaluate(s.gcd, dtype, *wide), np.gcd(*wide))
    np.testing.assert_array_equal(evaluate(s.gcd, dtype, a * 12, b * 8), np.gcd(a * 12, b * 8))
    far = np.full_like(a, np.iinfo(dtype).bits)
    np.testing.assert_array_equal(evaluate(s.shift_left, dtype, a, far), np.zeros_like(a))
    np.testing.assert_array_equal(evaluate(s.shift_right, dtype, a, far), np.where(a < 0, -1, 0).astype(dtype))


def complex_error(got, want, dtype):
    """The largest error of ``got`` relative to the size of ``want``, in units of the part's epsilon."""
    size = np.maximum(np.abs(want), 1e-300)
    return np.max(np.abs(got.astype(np.complex128) - want) / size) / np.finfo(dtype).eps


COMPLEX = "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh log1p expm1 log2 log10".split()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name, dtype):
    rng = np.random.default_rng(10)
    scale = rng.choice([0.01, 1, 5], 300)
    z = ((rng.normal(size=300) + 1j * rng.normal(size=300)) * scale).astype(dtype)
    known = {"log2": lambda v: mp.log(v) / mp.log(2), "log10": lambda v: mp.log(v) / mp.log(10)}
    known |= {"log1p": lambda v: mp.log(1 + v), "expm1": lambda v: mp.exp(v) - 1}
    reference = known.get(name) or getattr(mp, name)
    want = np.array([complex(reference(mp.mpc(complex(v)))) for v in z])
    assert complex_error(evaluate(getattr(s, name), dtype, z), want, dtype) < 4


def test_branch_cuts():
    """Signed zeros choose the side of a cut, as in C and NumPy."""
    parts = [0.0, -0.0, 2.0, -2.0, 0.5, -0.5]
    z = np.array([complex(x, y) for x in parts for y in parts])
    for name in ("log", "sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"):
        got = evaluate(getattr(s, name), "complex128", z)
        other = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
        other |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
        with np.errstate(all="ignore"):
            want = getattr(np, other.get(name, name))(z)
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14, err_msg=name)


def test_complex_division_does_not_overflow():
    a = np.array([1e300 + 1e300j, 1e-300 + 1e-300j, 3 + 4j, 1 + 0j])
    b = np.array([1e300 + 1e300j, 1e-300 - 1e-300j, 1 - 2j, 0 + 2j])
    np.testing.assert_allclose(evaluate(lambda x, y: x / y, "complex128", a, b), [1, 1j, -1 + 2j, -0.5j], rtol=1e-15)


@pytest.mark.parametrize("dtype", FLOAT)
def test_frexp(dtype):
    x = np.concatenate([everywhere(dtype), np.array([0.0, -0.0, 1.0, 0.5])]).astype(dtype)
    mantissa, exponent = np.frexp(x)
    np.testing.assert_array_equal(evaluate(lambda v: s.frexp(v)[0], dtype, x), mantissa)
    np.testing.assert_array_equal(evaluate(lambda v: s.frexp(v)[1], dtype, x, out="int32"), exponent)


def test_exponentials_that_round_to_zero():
    edges = np.concatenate([np.linspace(-110, -85, 2001), [-np.inf, -1e30, -200, -104.5, -104, -103.5]])
    x = taeda.tensor(edges.astype(np.float32))
    wide = x.numpy().astype(np.float64)
    least = np.float32(2.0**-149)
    with np.errstate(under="ignore", over="ignore"):
        for found, exact in (
            (taeda.exp(x), np.exp(wide)),
            (taeda.exp2(x * 1.4), np.exp2((x * 1.4).numpy().astype(float))),
        ):
            assert (np.abs(found.numpy() - exact) <= np.maximum(1.2e-7 * exact, least)).all()
        assert (np.abs(taeda.exp(x.double()).numpy() - np.exp(wide)) <= 3e-16 * np.exp(wide)).all()
    assert taeda.exp(taeda.tensor([-750.0, -1e300, -np.inf], dtype=taeda.float64)).tolist() == [0, 0, 0]
    assert taeda.sigmoid(taeda.tensor([-200.0, -1e30, -np.inf])).tolist() == [0, 0, 0]
    assert taeda.sigmoid(taeda.tensor([87.0, 104.0, 1e30, np.inf])).tolist() == [1, 1, 1, 1]
    silu = taeda.nn.functional.silu(taeda.tensor([-200.0, 88.0, 1e30]))
    assert silu.tolist() == [0, 88, float(np.float32(1e30))]
    assert taeda.erfc(taeda.tensor([10.0, 10.05, 10.1, 10.2, 30.0])).numpy() == pytest.approx(
        [2.8e-45, 0, 0, 0, 0], abs=1.5e-45
    )
    for f in (taeda.exp, taeda.exp2, taeda.sigmoid, taeda.erfc):
        assert f(taeda.tensor([np.nan])).isnan().all()
    row = taeda.full((40,), -np.inf)
    row[[3, 30]] = 1.0
    assert row.softmax(0).tolist() == [0.5 * (i in (3, 30)) for i in range(40)]


NEIGHBOURLESS = (
    "exp exp2 expm1 log log2 log10 log1p sigmoid erf erfc erfinv tanh sinh cosh digamma lgamma sqrt rsqrt "
    "sin cos tan i0 special.i1 special.i1e special.bessel_j0 special.bessel_j1".split()
)


@pytest.mark.parametrize("name", NEIGHBOURLESS)
def test_a_result_does_not_depend_on_what_lies_beside_it(name):
    """Vectors in which some result is rare are computed again: with the same bits for the others."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-3, 3, 4096).astype(np.float32)
    x[::37] = generator.uniform(-120, 120, len(x[::37]))
    x[5:4096:501] = np.nan
    x[9:4096:503] = np.inf
    x[11:4096:507] = 1e-40
    if name == "erfinv":
        x = x / 3
    function = operator.attrgetter(name)(taeda)
    whole = function(taeda.from_numpy(x)).numpy()
    order = generator.permutation(len(x))
    moved = function(taeda.from_numpy(x[order])).numpy()
    apart = np.concatenate([function(taeda.from_numpy(x[i : i + 3])).numpy() for i in range(0, 300, 3)])
    assert np.array_equal(whole[order], moved, equal_nan=True)
    assert np.array_equal(whole[:300], apart, equal_nan=True)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "int16", "int8", "uint8"])
def test_whole_numbers_divide_exactly(dtype):
    """As Python's numbers do, also beyond what float64 holds, next to multiples of the divisor, and beside 0."""
    info, generator = np.iinfo(dtype), np.random.default_rng(5)
    edges = [info.min, info.min + 1, info.max, info.max - 1, 1, 2, 3, 0]
    edges += [s * 2**k + d for k in (24, 31, 51, 52, 53, 62) for d in (-1, 0, 1) for s in (-1, 1)]
    edges = [x for x in edges if info.min <= x <= info.max]
    small = [int(x) for x in generator.integers(max(-1000, info.min), min(1000, info.max), 400)]
    b = [x or 1 for x in edges for _ in edges] + [x or 1 for x in small]
    a = edges * len(edges) + [
        x * int(q) + int(d) for x, q, d in zip(small, *generator.integers(-1, 2, (2, 400)), strict=True)
    ]
    a = [min(max(x, info.min), info.max) for x in a]

    def wrapped(values):
        return np.array([(x - info.min) % 2**info.bits + info.min for x in values], dtype)

    order = generator.permutation(len(a))
    a, b = ([values[i] for i in order] for values in (a, b))
    x, y = (taeda.from_numpy(np.array(values, dtype)) for values in (a, b))
    quotients = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a, b, strict=True)]
    pairs = list(zip(a, b, quotients, strict=True))
    assert np.array_equal((x // y).numpy(), wrapped([p // q for p, q, _ in pairs]))
    assert np.array_equal((x % y).numpy(), wrapped([p % q for p, q, _ in pairs]))
    assert np.array_equal(taeda.div(x, y, rounding_mode="trunc").numpy(), wrapped(quotients))
    assert np.array_equal(taeda.fmod(x, y).numpy(), wrapped([p - t * q for p, q, t in pairs]))
