"""The rest of the standard's functions against array_api_strict: shapes from none to three dimensions, empty ones too,
every axis, every dtype that the standard names for the function."""

import array
import ctypes
import itertools
import warnings

import numpy as np
import pytest

import taeda
from tests.agree import close

strict = pytest.importorskip("array_api_strict")
xp = taeda.array_api

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
INTEGERS, REAL, COMPLEX = SIGNED + UNSIGNED, ["float32", "float64"], ["complex64", "complex128"]
NUMERIC = INTEGERS + REAL + COMPLEX
ALL = ["bool", *NUMERIC]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0), (2, 3, 4)]


def make(shape, dtype, seed=0):
    """Small numbers in random order, some of them equal."""
    rng = np.random.default_rng([seed, len(shape), *shape])
    x = rng.integers(0, 4, shape)
    if dtype in REAL + COMPLEX:
        x = x - 1.5
    if dtype in COMPLEX:
        x = x + 1j * rng.integers(0, 3, shape)
    return np.asarray(x).astype(dtype)


def convert(x, to):
    if isinstance(x, (np.ndarray, np.generic)):
        return to(np.asarray(x))
    return type(x)(convert(i, to) for i in x) if isinstance(x, (list, tuple)) else x


def compare(got, want, **tolerance):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want) and getattr(got, "_fields", ()) == getattr(want, "_fields", ())
        for g, w in zip(got, want, strict=True):
            compare(g, w, **tolerance)
        return
    want = np.asarray(want)
    eps = np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
    close(got, want, **{"rtol": 32 * eps, "atol": 32 * eps, **tolerance})


def check(function, *args, **tolerance):
    """``function(namespace, *args)`` gives the same in both, or fails in both."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want, failed = function(strict, *convert(args, strict.asarray)), None
        except Exception as error:
            failed = error
        if failed is not None:
            with pytest.raises((ValueError, IndexError, TypeError, RuntimeError)):
                function(xp, *convert(args, taeda.tensor))
            return
        compare(function(xp, *convert(args, taeda.tensor)), want, **tolerance)


def axes_of(shape, several=True):
    n = len(shape)
    yield None
    yield from range(-n, n)
    if n:  # without dimensions NumPy takes 0 and -1 in some functions
        yield n  # out of range
    if several:
        yield ()
        for k in (1, 2, 3):
            yield from itertools.combinations(range(n), k)


# ---- over axes ----------------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": NUMERIC,
    "prod": NUMERIC,
    "max": INTEGERS + REAL,
    "min": INTEGERS + REAL,
    "mean": REAL + COMPLEX,
    "var": REAL,
    "std": REAL,
    "all": ALL,
    "any": ALL,
    "count_nonzero": ALL,
}


@pytest.mark.parametrize("name, dtype", [(n, d) for n, ds in REDUCTIONS.items() for d in ds])
def test_reduction(name, dtype):
    for shape in SHAPES:
        x = make(shape, dtype)
        for axis in axes_of(shape):
            for keepdims in (False, True):
                check(lambda p, x, a=axis, k=keepdims: getattr(p, name)(x, axis=a, keepdims=k), x)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", INTEGERS + REAL)
def test_arg_reduction(name, dtype):
    for shape in SHAPES:
        x = make(shape, dtype)
        for axis in axes_of(shape, several=False):
            for keepdims in (False, True):
                check(lambda p, x, a=axis, k=keepdims: getattr(p, name)(x, axis=a, keepdims=k), x)


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtype_of_sums(name):
    for dtype, to in itertools.product(["int8", "uint8", "int64", "float32"], ["int64", "float64", "float32"]):
        if dtype == "float32" and to == "int64":
            continue
        x = make((4,), dtype)
        check(lambda p, x, to=to: getattr(p, name)(x, dtype=getattr(p, to), axis=0), x)


@pytest.mark.parametrize("correction", [0, 1, 1.5, 2])
def test_correction(correction):
    x = make((4, 3), "float64")
    check(lambda p, x: (p.var(x, axis=0, correction=correction), p.std(x, correction=correction)), x)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", NUMERIC)
def test_cumulative(name, dtype):
    for shape in SHAPES[1:]:
        x = make(shape, dtype)
        for axis in axes_of(shape, several=False):
            for initial in (False, True):
                check(lambda p, x, a=axis, i=initial: getattr(p, name)(x, axis=a, include_initial=i), x)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_diff(dtype):
    for shape in SHAPES[2:]:
        x = make(shape, dtype)
        for axis in range(-len(shape), len(shape)):
            for n in (0, 1, 2):
                check(lambda p, x, a=axis, n=n: p.diff(x, axis=a, n=n), x)
            check(lambda p, x, a=axis: p.diff(x, axis=a, prepend=x, append=x), x)


# ---- shapes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "uint16", "int64", "float32", "complex128"])
def test_shapes(dtype):
    for shape in SHAPES:
        x, n = make(shape, dtype), len(shape)
        for axis in [*range(-n - 2, n + 2)] if n else []:
            check(lambda p, x, a=axis: p.expand_dims(x, axis=a), x)
            check(lambda p, x, a=axis: p.squeeze(x, axis=a), x)
            check(lambda p, x, a=axis: p.flip(x, axis=a), x)
            check(lambda p, x, a=axis: p.roll(x, 2, axis=a), x)
            check(lambda p, x, a=axis: p.concat([x, x], axis=a), x)
            check(lambda p, x, a=axis: p.stack([x, x], axis=a), x)
            check(lambda p, x, a=axis: p.unstack(x, axis=a), x)
            check(lambda p, x, a=axis: p.repeat(x, 2, axis=a), x)
        check(lambda p, x: (p.flip(x), p.roll(x, -1), p.concat([x, x], axis=None), p.repeat(x, 3)), x)
        check(lambda p, x: (p.reshape(x, (-1,)), p.reshape(x, (1, -1) if x.shape != (2, 0) else (0, 2), copy=True)), x)
        check(lambda p, x: (p.tile(x, (2,)), p.tile(x, (2, 1, 3)), p.tile(x, ())), x)
        check(lambda p, x: p.broadcast_to(x, (3, *x.shape)), x)
        check(lambda p, x: p.matrix_transpose(x), x)
        for order in itertools.permutations(range(n)):
            check(lambda p, x, o=order: p.permute_dims(x, o), x)
        for a, b in itertools.product(range(-n, n), repeat=2):
            check(lambda p, x, a=a, b=b: p.moveaxis(x, a, b), x)
    x = make((2, 1, 3, 1), dtype)
    check(lambda p, x: (p.squeeze(x, axis=(1, 3)), p.flip(x, axis=(0, -2)), p.roll(x, (1, 2), axis=(0, 2))), x)
    check(lambda p, x, r: p.repeat(x, r, axis=2), x, np.array([0, 2, 1]))
    check(lambda p, x: p.moveaxis(x, (0, 1), (-1, 0)), x)
    check(lambda p, *x: p.broadcast_arrays(*x), x, make((4, 1, 1), dtype), make((), dtype))
    assert xp.expand_dims(convert(x, taeda.tensor), 1).shape == (
        2,
        1,
        1,
        3,
        1,
    )  # by place too, as other libraries take it


@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_complex_number_is_true_if_either_part_is(dtype):
    x = np.array([0, 1, 1j, np.nan * 1j, complex(0.0, -0.0)], dtype)
    assert xp.astype(taeda.tensor(x), xp.bool).tolist() == [False, True, True, True, False]
    for i in range(5):
        check(lambda p, x: (p.any(x), p.all(x), p.count_nonzero(x)), np.asarray(x[i]))
        check(lambda p, x: (p.any(x), p.all(x), p.count_nonzero(x)), x[i : i + 1])


@pytest.mark.parametrize("axis", [0, -1])
def test_no_dimensions_have_no_axis(axis):
    x = taeda.tensor(1.0)
    for name in ("sum", "mean", "max", "argmin", "all", "flip", "squeeze", "sort", "argsort", "unstack"):
        with pytest.raises(IndexError, match="no dimensions"):
            getattr(xp, name)(x, axis=axis)
    assert xp.expand_dims(x, axis=axis).shape == (1,)


def test_join_promotes():
    x, y = make((2,), "int8"), make((2,), "uint8")
    check(lambda p, *x: (p.concat(x), p.stack(x, axis=-1)), x, y)
    check(lambda p, *x: (p.concat(x), p.stack(x)), make((2,), "float32"), make((2,), "complex128"))
    check(lambda p, c, *x: p.where(c, *x), make((2,), "bool"), x, make((), "int16"))
    check(lambda p, c, x: (p.where(c, x, 1), p.where(c, 2, x)), make((2,), "bool"), y)


def test_reshape_without_a_copy():
    x = taeda.ones(4, 6)
    assert xp.reshape(x, (24,), copy=False).data_ptr() == x.data_ptr()
    assert xp.reshape(x, (24,), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="copy=False"):
        xp.reshape(x.T, (24,), copy=False)


# ---- picks, order, sets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("index", ["int64", "uint8", "int32"])
def test_take(dtype, index):
    i = np.array([1, 0, 1, 1], index)
    for shape in SHAPES[3:]:
        x = make(shape, dtype)
        for axis in axes_of(shape, several=False):
            if axis is None or axis == len(shape) or x.shape[axis] > 1:
                check(lambda p, x, i, a=axis: p.take(x, i, axis=a), x, i)
    x = make((3, 4), dtype)
    if index != "uint8":
        back = np.array([-1, 0, -3], index)
        check(lambda p, x, i: (p.take(x, i, axis=0), p.take(x, i, axis=-1), p.take(x[0, :], i)), x, back)
        with pytest.raises(IndexError, match="index -5 is out of bounds"):
            xp.take(convert(x, taeda.tensor), taeda.tensor([-1, -5]), axis=1)
    check(lambda p, x, i: p.take_along_axis(x, i, axis=0), x, np.array([[2, 0, 1, 0]], "int64"))
    check(lambda p, x, i: p.take_along_axis(x, i), x, np.array([[2], [0], [3]], "int64"))


@pytest.mark.parametrize("dtype", INTEGERS + REAL)
def test_sort(dtype):
    for shape in SHAPES[1:]:
        x = make(shape, dtype)
        for axis in [*range(-len(shape), len(shape) + 1)]:
            for descending in (False, True):
                check(lambda p, x, a=axis, d=descending: p.sort(x, axis=a, descending=d), x)
                check(lambda p, x, a=axis, d=descending: p.argsort(x, axis=a, descending=d), x)


@pytest.mark.parametrize("dtype", ALL)
def test_unique(dtype):
    for shape in SHAPES:
        x = make(shape, dtype)
        check(lambda p, x: (p.unique_all(x), p.unique_counts(x), p.unique_inverse(x), p.unique_values(x)), x)


def test_unique_nan():
    """NaN equals nothing; zeros of both signs are one value."""
    x = taeda.tensor([1.0, float("nan"), 0.0, float("nan"), -0.0, 1.0])
    found = xp.unique_all(x)
    assert found.values.shape == (4,) and found.counts.tolist() == [2, 2, 1, 1]
    assert found.indices.tolist()[:2] == [2, 0] and sorted(found.indices.tolist()[2:]) == [1, 3]
    again = found.values[found.inverse_indices]
    assert bool(((again == x) | (again.isnan() & x.isnan())).all())


@pytest.mark.parametrize("dtype", INTEGERS + REAL)
def test_searchsorted(dtype):
    x, v = np.sort(make((5,), dtype)), make((2, 3), dtype, 1)
    for side in ("left", "right"):
        check(lambda p, x, v, s=side: p.searchsorted(x, v, side=s), x, v)
    x = make((5,), dtype)
    check(lambda p, x, v, o: p.searchsorted(x, v, sorter=o), x, v, np.argsort(x))


@pytest.mark.parametrize("dtype", ALL)
def test_nonzero(dtype):
    for shape in SHAPES:
        check(lambda p, x: p.nonzero(x), make(shape, dtype))


# ---- making -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, *NUMERIC])
def test_creation(dtype):
    def named(p):
        if dtype is None:  # the defaults differ: taeda's is float32
            return {"dtype": p.float32} if p is strict else {}
        return {"dtype": getattr(p, dtype)}

    for shape in (*SHAPES, 3):
        check(lambda p, s=shape: (p.zeros(s, **named(p)), p.ones(s, **named(p)), p.full(s, 7.0, **named(p))))
        check(lambda p, s=shape: p.empty(s, **named(p)) * 0)
        if shape != 3:
            like = make(shape, "int16")
            check(lambda p, x: (p.zeros_like(x), p.ones_like(x), p.full_like(x, 3)), like)
            if dtype is not None:
                check(lambda p, x: (p.zeros_like(x, **named(p)), p.ones_like(x, **named(p))), like)
    for n, m, k in itertools.product((0, 1, 3), (None, 0, 2, 4), (-3, -1, 0, 1, 5)):
        check(lambda p, n=n, m=m, k=k: p.eye(n, m, k=k, **named(p)))
    if dtype not in [None, *COMPLEX]:
        for args in ((5,), (0,), (-2,), (1, 5), (5, 1), (1, 6, 2), (6, 1, -2), (1, 1), (0, 5, 7)):
            check(lambda p, a=args: (p.arange(*a, **named(p)), p.arange(*a)))
    if dtype is None or dtype in REAL:
        for args in ((0, 1, 5), (1, 0, 4), (0, 1, 0), (2, 3, 1), (-1.5, 2.5, 9)):
            for end in (True, False):
                check(lambda p, a=args, e=end: p.linspace(*a, endpoint=e, **named(p)))
        for args in ((0.5, 2.5, 0.5), (1.0,), (2.0, -1.0, -0.75)):
            check(lambda p, a=args: p.arange(*a, **named(p)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float64", "complex64"])
def test_triangles_and_grids(dtype):
    for shape, k in itertools.product(((2, 3), (4, 2), (2, 3, 3), (0, 2)), (-2, 0, 1, 9)):
        check(lambda p, x, k=k: (p.tril(x, k=k), p.triu(x, k=k)), make(shape, dtype))
    x = [make((n,), dtype) for n in (2, 3, 4)]
    for indexing in ("xy", "ij"):
        for n in (1, 2, 3):
            check(lambda p, *x, i=indexing: p.meshgrid(*x, indexing=i), *x[:n])
    assert xp.meshgrid() == []


def test_asarray():
    for data in (1, 2.5, True, 1j, [1, 2], [[1.5], [2]], [True, False], [], [1, 2j], 2**40):
        got, want = xp.asarray(data), np.asarray(strict.asarray(data))
        kind = {"f": "float32", "c": "complex64"}.get(want.dtype.kind, want.dtype.name)  # taeda's defaults
        assert got.dtype.name == kind and np.array_equal(got.numpy(), want)
    for dtype in ALL:
        assert xp.asarray([0, 1], dtype=getattr(xp, dtype)).dtype.name == dtype
    x = taeda.ones(3)
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert xp.from_dlpack(np.ones(3)).dtype is taeda.float64
    shared = np.ones(3)
    assert xp.from_dlpack(shared).data_ptr() == shared.ctypes.data != xp.from_dlpack(shared, copy=True).data_ptr()


@pytest.mark.parametrize("format", "bBhHiIlLqQfd")
def test_asarray_of_a_buffer_has_its_dtype_and_shape(format):
    buffer = array.array(format, [1, 2, 3, 4, 5, 6])
    got = xp.asarray(buffer)
    assert got.dtype.name == np.asarray(buffer).dtype.name and got.tolist() == [1, 2, 3, 4, 5, 6]
    buffer[0] = 7
    assert got[0] == 7 and xp.asarray(buffer, copy=True).tolist() == [7, 2, 3, 4, 5, 6]
    assert xp.asarray(buffer, dtype=xp.float32).tolist() == [7, 2, 3, 4, 5, 6]
    view = memoryview(buffer).cast("B").cast(format, (2, 3))
    assert xp.asarray(view).tolist() == [[7, 2, 3], [4, 5, 6]]
    assert xp.asarray(memoryview(buffer)[::2]).tolist() == [7, 3, 5]
    assert xp.asarray(array.array(format)).shape == (0,)


def test_asarray_of_other_buffers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of memory that may not be written to, which is copied
        assert xp.asarray(b"ab").tolist() == [97, 98]
        assert xp.asarray(memoryview(bytes(2)).cast("?")).tolist() == [False, False]
    with pytest.raises(TypeError, match="expected a buffer of bools, integers or floating-point numbers, got format"):
        xp.asarray(memoryview((ctypes.c_wchar * 2)()))


@pytest.mark.parametrize("other", [[0.5], [True], [1j]], ids=str)
def test_indices_and_counts_are_integers(other):
    x, other = taeda.arange(3.0), taeda.tensor(other)
    for call in (
        lambda: xp.take(x, other),
        lambda: xp.take_along_axis(x, other),
        lambda: xp.repeat(x, other),
        lambda: xp.searchsorted(x, x, sorter=other.expand(3)),
    ):
        with pytest.raises(
            TypeError, match=r"(take|take_along_axis|repeat|searchsorted): expected an array of integers"
        ):
            call()


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_no_arrays_to_join(name):
    with pytest.raises(ValueError, match=f"{name}: expected at least one array"):
        getattr(xp, name)([])


# ---- dtypes -------------------------------------------------------------------------------------------------------------


def test_dtype_functions():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for a in ALL:
        d, s = getattr(xp, a), getattr(strict, a)
        for kind in (*kinds, ("bool", "integral"), ()):
            assert xp.isdtype(d, kind) == strict.isdtype(s, kind)
        for b in ALL:
            assert xp.isdtype(d, getattr(xp, b)) == (a == b)
            assert xp.can_cast(d, getattr(xp, b)) == strict.can_cast(s, getattr(strict, b)), (a, b)
            try:
                want = strict.result_type(s, getattr(strict, b))
            except TypeError:
                continue
            assert xp.result_type(d, getattr(xp, b)).name == str(want).rpartition(".")[2]
            x = make((2, 3), a)
            if a not in COMPLEX or b in [*COMPLEX, "bool"]:
                check(lambda p, x, b=b: p.astype(x, getattr(p, b)), x)
    with pytest.raises(TypeError, match="isdtype: expected a dtype, got str"):
        xp.isdtype("float32", "numeric")
    for name in REAL + COMPLEX:
        got, want = xp.finfo(getattr(xp, name)), strict.finfo(getattr(strict, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(got, field) == getattr(want, field) and type(getattr(got, field)) in (int, float)
        assert got.dtype.name == str(want.dtype).rpartition(".")[2]
    for name in INTEGERS:
        got, want = xp.iinfo(taeda.ones(1).to(getattr(xp, name))), strict.iinfo(getattr(strict, name))
        assert (got.bits, got.min, got.max) == (want.bits, want.min, want.max)
        assert got.dtype is getattr(xp, name)


def test_astype_copies():
    x = taeda.ones(3)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32).data_ptr() != x.data_ptr()
    with pytest.raises(TypeError, match="complex"):
        xp.astype(xp.ones(2, dtype=xp.complex64), xp.float32)


def test_namespace():
    x = taeda.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2024.12")
    with pytest.raises(ValueError, match=r"2030\.12"):
        x.__array_namespace__(api_version="2030.12")
    strict.set_array_api_strict_flags(api_version="2024.12")
    try:
        later = {"broadcast_shapes", "isin"}  # of the version after 2024.12
        missing = {n for n in strict.__all__ if not hasattr(xp, n)} - later
    finally:
        strict.reset_array_api_strict_flags()
    assert not {n for n in missing if "strict" not in n.lower()} - {"Device", "__version__"}
    assert not [n for n in strict.linalg.__all__ if not hasattr(xp.linalg, n)]
    assert not [n for n in strict.fft.__all__ if not hasattr(xp.fft, n)]
    assert x.to_device(x.device) is x and x.to_device("cpu") is x
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] is xp.float32
    assert set(info.dtypes()) == set(ALL) and set(info.dtypes(kind="real floating")) == set(REAL)
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", *SIGNED}
    assert info.capabilities()["boolean indexing"]
    assert xp.newaxis is None and xp.pi == np.pi and xp.e == np.e and xp.inf == np.inf and np.isnan(xp.nan)
