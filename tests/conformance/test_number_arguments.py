"""Python numbers as arguments, at the limits of every dtype: which ops wrap, which give infinity, which raise.

The table has one entry per form in which PyTorch takes a number. Each is called as in PyTorch, and must give the same
values or raise the same type of error.
"""

import operator

import pytest

torch = pytest.importorskip("torch")

import taeda  # noqa: E402

INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "bool")
FLOATS = ("float16", "bfloat16", "float32", "float64")
LARGE = (300, -300, -1, 2**16, -(2**15) - 1, 2**40, 2**63 - 1, 1.5, -0.5, 300.7, 1e10, 1e30, float("inf"), float("nan"))
WIDE = (-1e9, 1e5, 65504, 65519.9, 3.39e38, 3.4e38, 1e39, -1e300, 2**62, float("inf"), float("nan"))


def _index(t, n=1):
    return t.tensor(list(range(n)))


def _mask(t):
    return t.tensor([True, False, True])


def _assigned(index):
    def write(t, a, v):
        a[index(t)] = v
        return a

    return write


def _matrix(a):
    return a[:2].reshape(1, 2).expand(2, 2).clone()


FORMS = {
    **{
        f"{name}, alpha": lambda t, a, v, name=name: getattr(t, name)(a, a.clone(), alpha=v)
        for name in ("add", "sub", "rsub")
    },
    "add_, alpha": lambda t, a, v: a.add_(a.clone(), alpha=v),
    "add, alpha, out": lambda t, a, v: t.add(a, a.clone(), alpha=v, out=t.empty_like(a)),
    "addcmul": lambda t, a, v: t.addcmul(a, a, a, value=v),
    "addcdiv": lambda t, a, v: t.addcdiv(a, a, a, value=v),
    **{
        f"addmm, {key}": lambda t, a, v, key=key: t.addmm(_matrix(a), _matrix(a), _matrix(a), **{key: v})
        for key in ("alpha", "beta")
    },
    "addr, alpha": lambda t, a, v: t.addr(_matrix(a), a[:2], a[:2], alpha=v),
    "baddbmm, alpha": lambda t, a, v: t.baddbmm(*[_matrix(a)[None]] * 3, alpha=v),
    "index_add, alpha": lambda t, a, v: t.index_add(a, 0, _index(t), a[:1], alpha=v),
    "pad": lambda t, a, v: t.nn.functional.pad(a, (1, 1), value=v),
    "constant_pad_nd": lambda t, a, v: t.constant_pad_nd(a, (1, 1), v),
    "linspace": lambda t, a, v: t.linspace(v, 1, 2, dtype=a.dtype),
    "linspace of one": lambda t, a, v: t.linspace(v, v, 1, dtype=a.dtype),
    "full": lambda t, a, v: t.full((2,), v, dtype=a.dtype),
    "full of one": lambda t, a, v: t.full((1,), v, dtype=a.dtype),
    "full of none": lambda t, a, v: t.full((0,), v, dtype=a.dtype),
    "new_full of one": lambda t, a, v: a.new_full((), v),
    "full_like": lambda t, a, v: t.full_like(a, v),
    "scalar_tensor": lambda t, a, v: t.scalar_tensor(v, dtype=a.dtype),
    "tensor": lambda t, a, v: t.tensor([v], dtype=a.dtype),
    "fill_": lambda t, a, v: a.fill_(v),
    "fill_ of one": lambda t, a, v: a[:1].fill_(v),
    "index_fill": lambda t, a, v: t.index_fill(a, 0, _index(t), v),
    "masked_fill": lambda t, a, v: t.masked_fill(a, _mask(t), v),
    "masked_fill by a tensor": lambda t, a, v: t.masked_fill(a, _mask(t), t.tensor(v)),
    "scatter": lambda t, a, v: t.scatter(a, 0, _index(t), v),
    "where": lambda t, a, v: t.where(_mask(t), v, a),
    "where, other": lambda t, a, v: t.where(_mask(t), a, v),
    "clamp": lambda t, a, v: t.clamp(a, max=v),
    "hardtanh": lambda t, a, v: t.nn.functional.hardtanh(a, min(v, -1), max(v, 1)),
    "threshold": lambda t, a, v: t.nn.functional.threshold(a, v, 5),
    "threshold, value": lambda t, a, v: t.nn.functional.threshold(a, 1, v),
    "leaky_relu": lambda t, a, v: t.nn.functional.leaky_relu(-a, v),
    "softplus": lambda t, a, v: t.nn.functional.softplus(a, 1, v),
    "hardshrink": lambda t, a, v: t.nn.functional.hardshrink(a, v),
    "lerp": lambda t, a, v: t.lerp(a, a * 2, v),
    "nan_to_num": lambda t, a, v: t.nan_to_num(a, v, v, v),
    "t[0] =": _assigned(lambda t: 0),
    "t[:2] =": _assigned(lambda t: slice(2)),
    "t[...] =": _assigned(lambda t: ...),
    "t[mask] =": _assigned(_mask),
    "t[list] =": _assigned(lambda t: [0, 1]),
    "t[index] =": _assigned(_index),
    **{
        name: lambda t, a, v, f=f: f(a, v)
        for name, f in (("+", operator.add), ("*", operator.mul), ("//", operator.floordiv), ("%", operator.mod))
    },
    "==": lambda t, a, v: a == v,
    "pow": lambda t, a, v: t.pow(a, v),
    "isin": lambda t, a, v: t.isin(a, v),
}


def outcome(t, form, dtype, value):
    try:
        result = form(t, t.tensor([1, 0, 3], dtype=getattr(t, dtype)), value)
    except Exception as error:
        return type(error)
    return str(result.dtype).split(".")[1], result.flatten().tolist()


def same(got, want):
    if isinstance(want, type) or isinstance(got, type):
        return isinstance(want, type) and isinstance(got, type) and issubclass(got, want)
    if got[1] == pytest.approx(want[1], rel=1e-6, nan_ok=True):
        return got[0] == want[0]
    half = want[0] in ("float16", "bfloat16")  # computed in float32 here, rounded on the way there
    return half and got[1] == pytest.approx(want[1], rel=1e-2, nan_ok=True)


#: Where the result differs: PyTorch converts the whole number to a float, has NaN as a bound or a factor for zeros, or
#: rounds a number to float16 before it adds it.
MEANT = {
    *(("pad", "int64"), ("addmm, alpha", "float64"), ("+", "float16")),
    *(("hardtanh", dtype) for dtype in ("float16", "bfloat16", "float32", "float64")),
}


def differences(name, dtypes, values):
    for dtype in dtypes:
        for value in values:
            want, got = (outcome(t, FORMS[name], dtype, value) for t in (torch, taeda))
            if want is NotImplementedError or (name, dtype) in MEANT or same(got, want):
                continue
            if name == "addmm, alpha" and value == float("inf"):  # whether it is a factor of the sum or of its terms,
                continue  # whose signs differ, depends on the processor in PyTorch
            yield f"{dtype}, {value}: torch {want}, taeda {got}"


@pytest.mark.parametrize("name", list(FORMS))
def test_numbers(name):
    found = [*differences(name, ("uint8", "int32"), (300, -300, -1, 2**40, 1.5, -0.5, 1e30))]
    found += differences(name, ("float16", "float32"), (-1e9, 65504, 1e39, float("inf")))
    assert not found, "\n".join(found)


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(FORMS))
def test_numbers_of_all_dtypes(name):
    found = [*differences(name, INTEGERS, LARGE), *differences(name, FLOATS, WIDE)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
def test_float8(dtype):
    for form in ("t[0] =", "full of one", "where", "scalar_tensor", "full", "fill_ of one"):
        for value in (1e5, -1e39, 3.0):
            got = []
            for t in (torch, taeda):
                a = t.tensor([1.0, 0.0, 3.0]).to(getattr(t, dtype))
                try:
                    got.append(repr(FORMS[form](t, a, value).float().tolist()))
                except RuntimeError:
                    got.append("error")
            assert got[0] == got[1], (form, value)


def test_refused_numbers_leave_tensors_alone():
    for call in (
        lambda a: a.add_(a, alpha=300), lambda a: a.fill_(2**40), lambda a: a.addcmul_(a, a, value=1e30),
        lambda a: a.__setitem__(0, 300), lambda a: taeda.full((2,), 300, out=a), lambda a: taeda.add(a, a, alpha=300, out=a),
    ):  # fmt: skip
        a = taeda.ones(2, dtype=taeda.int8)
        with pytest.raises(RuntimeError, match="without overflow"):
            call(a)
        assert a.tolist() == [1, 1]


ADDR = {
    "of larger products": lambda t, i: t.addr(i.float(), i[0], i[0], alpha=2),
    "of integers": lambda t, i: t.addr(i.int(), i[0], i[0], beta=300),
    "with a larger factor": lambda t, i: t.addr(i, i[0], i[0].long(), beta=300),
    "of bools": lambda t, i: t.addr(i, i[0].bool(), i[0].bool(), alpha=3),
    "of products alone": lambda t, i: t.addr(i, i[0].bool(), i[0].bool(), beta=0),
}


@pytest.mark.parametrize("name", ADDR)
def test_addr_computes_in_the_common_dtype(name):
    want, got = (ADDR[name](t, t.full((2, 2), 100, dtype=t.int8)) for t in (torch, taeda))
    assert str(got.dtype)[6:] == str(want.dtype)[6:] and got.tolist() == want.tolist()
