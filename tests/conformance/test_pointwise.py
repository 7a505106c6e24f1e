"""Pointwise ops beside PyTorch: values, dtypes and refusals, over every dtype, broadcasting, strides and numbers."""

import contextlib
import functools
import itertools
import math

import numpy as np
import pytest

import taeda
from tests.agree import close

torch = pytest.importorskip("torch")

FLOAT = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGER = ["uint8", "int8", "int16", "int32", "int64"]
DTYPES = ["bool", *INTEGER, *FLOAT, *COMPLEX]
#: Agreement asked for, relative and absolute; PyTorch's own errors are part of it.
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 4e-6,
    "float64": 1e-12,
    "complex32": 4e-3,
    "complex64": 1e-5,
    "complex128": 1e-11,
}

UNARY = """i0 abs absolute neg negative sgn sign square sqrt rsqrt reciprocal floor ceil trunc fix frac round exp
exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinc
sigmoid logit deg2rad rad2deg erf erfc erfinv lgamma digamma angle isnan isinf isfinite isposinf
isneginf isreal signbit logical_not bitwise_not relu conj_physical positive nan_to_num""".split()
FUNCTIONAL = """relu6 hardtanh leaky_relu elu celu selu gelu silu mish softplus logsigmoid tanhshrink softsign
hardsigmoid hardswish hardshrink softshrink""".split()
BINARY = """add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin eq ne lt le gt
ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor atan2 hypot copysign
nextafter heaviside gcd lcm logaddexp logaddexp2 xlogy rsub bitwise_left_shift bitwise_right_shift
ldexp float_power""".split()
DIVISIONS = "floor_divide remainder fmod".split()


def make(dtype, shape, seed=0, positive=False):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGER:
        low = 0 if dtype == "uint8" or positive else -7
        return rng.integers(low, 8, shape).astype(dtype)
    x = rng.normal(size=shape) * 2
    if positive:
        x = np.abs(x) + 0.1
    if dtype in COMPLEX:
        return (x + 1j * rng.normal(size=shape) * 2).astype(dtype)
    return x


def pair(dtype, shape, seed=0, positive=False):
    """The same tensor in both frameworks."""
    a = make(dtype, shape, seed, positive)
    if dtype in ("float16", "bfloat16"):
        a = a.astype(np.float32)
        return torch.from_numpy(a.copy()).to(getattr(torch, dtype)), taeda.from_numpy(a.copy()).to(
            getattr(taeda, dtype)
        )
    a = np.asarray(a, dtype)
    return torch.from_numpy(a.copy()), taeda.from_numpy(a.copy())


def assert_same(theirs, ours, what):
    for a, b in zip(ours, theirs, strict=True) if isinstance(ours, (tuple, list)) else [(ours, theirs)]:
        tolerance = max(TOLERANCE.get(word, 0) for word in [a.dtype.name, *what.split()])
        close(a, b, what, tolerance, tolerance)


def both(f, g, their_args, our_args, what, **keywords):
    """Run both; what PyTorch computes we must, and what it computes must agree."""
    try:
        theirs = f(*their_args, **keywords)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        theirs = None
    if theirs is None:  # we may refuse as well, or compute more; never fail otherwise
        with contextlib.suppress(RuntimeError, TypeError, ValueError):
            g(*our_args, **keywords)
        return
    with np.errstate(all="ignore"):
        assert_same(theirs, g(*our_args, **keywords), what)


def functions(name):
    """The function called ``name`` in both frameworks; those that are not in ``torch`` are in ``nn.functional``."""
    if hasattr(torch, name):
        return getattr(torch, name), getattr(taeda, name)
    return getattr(torch.nn.functional, name), getattr(taeda.nn.functional, name)


@pytest.mark.parametrize("name", UNARY + FUNCTIONAL)
def test_unary(name):
    theirs, ours = functions(name)
    for dtype in DTYPES:
        positive = name in ("lgamma", "digamma", "acosh", "log", "sqrt", "rsqrt")
        a, b = pair(dtype, (5, 7), 1, positive)
        if name in ("lgamma", "digamma") and dtype in FLOAT:
            a, b = a.abs() + 0.5, b.abs() + 0.5
        both(theirs, ours, (a,), (b,), f"{name} {dtype}")
        both(theirs, ours, (a.t()[::2],), (b.t()[::2],), f"{name} {dtype} strided")
        both(theirs, ours, (a[0, 0],), (b[0, 0],), f"{name} {dtype} 0-d")
        both(theirs, ours, (a[:0],), (b[:0],), f"{name} {dtype} empty")


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    theirs, ours = functions(name)
    for first, second in itertools.product(DTYPES, DTYPES):
        positive = name == "pow" and second in INTEGER
        a, b = pair(first, (4, 1, 5), 1)
        c, d = pair(second, (3, 1), 2, positive)
        if name in DIVISIONS:
            c, d = torch.where(c == 0, torch.ones_like(c), c), taeda.where(d == 0, d * 0 + 1, d).to(d.dtype)
        both(theirs, ours, (a, c), (b, d), f"{name} {first} {second}")
        both(theirs, ours, (a, c[0, 0]), (b, d[0, 0]), f"{name} {first} {second} 0-d")


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [2, 3, -1, 2.5, -0.5, 1.0, True, 1 + 2j])
def test_binary_with_number(name, number):
    theirs, ours = functions(name)
    for dtype in DTYPES:
        a, b = pair(dtype, (3, 5), 1)
        both(theirs, ours, (a, number), (b, number), f"{name} {dtype} {number}")


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator):
    forward = eval(f"lambda a, b: a {operator} b")
    for dtype in DTYPES:
        a, b = pair(dtype, (3, 5), 1, operator == "**")
        for number in (2, 2.5, True, 3 - 1j):
            both(forward, forward, (a, number), (b, number), f"{dtype} {operator} {number}")
            if operator in ("//", "%") and dtype in ("bool", *INTEGER):
                continue  # division by zero is an error in both
            both(forward, forward, (number, a), (number, b), f"{number} {operator} {dtype}")


def _run_inplace(operator, x, y):
    scope = {"x": x, "y": y}
    exec(f"x {operator} y", scope)
    return scope["x"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^="])
def test_inplace_operators(operator, dtype):
    for second in (2, 2.5, True, "same"):
        a, b = pair(dtype, (3, 5), 1, operator == "**=")
        c, d = pair(dtype, (5,), 2, True) if second == "same" else (second, second)
        if operator in ("//=", "%=") and second == "same" and dtype in ("bool", *INTEGER):
            c, d = c.clone().fill_(3), d.clone().fill_(3)

        run = functools.partial(_run_inplace, operator)
        both(run, run, (a, c), (b, d), f"{dtype} {operator} {second}")


@pytest.mark.parametrize("dtype", FLOAT)
def test_special_values(dtype):
    """Signed zeros, infinities, NaN and subnormals; results must agree in the sign of zero as well."""
    tiny = {"float16": 6e-8, "bfloat16": 1e-39, "float32": 1e-40, "float64": 1e-310}[dtype]
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, tiny, -tiny, 2.0, -3.0, 100.0, -100.0])
    a = torch.from_numpy(values).to(getattr(torch, dtype))
    b = taeda.from_numpy(values).to(getattr(taeda, dtype))
    for name in UNARY + FUNCTIONAL:
        theirs, ours = functions(name)
        skip = [6, 7] if name == "gelu" else []  # PyTorch gives NaN for gelu(inf)
        keep = [i for i in range(len(values)) if i not in skip]
        both(theirs, ours, (a[keep],), (b[keep],), f"{name} {dtype}")
    for name in BINARY:
        if name in ("nextafter", "xlogy", "gcd", "lcm"):
            continue
        theirs, ours = functions(name)
        both(theirs, ours, (a[:, None], a), (b[:, None], b), f"{name} {dtype}")


NO_GRADIENT = """isnan isinf isfinite isposinf isneginf isreal signbit logical_not bitwise_not eq ne lt le gt ge
logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm bitwise_left_shift bitwise_right_shift
floor_divide nextafter heaviside""".split()


def gradients(f, xs):
    """The gradients of a weighted sum of ``f(*xs)``, and those of a function of them."""
    out = f(*xs)
    weight = (out.detach() * 0 + 1).clone()
    first = type_grad(xs)(out, xs, weight, create_graph=True)
    total = sum((g * g.conj()).real.sum() if g.is_complex() else (g * g).sum() for g in first)
    second = type_grad(xs)(total, xs, allow_unused=True) if total.requires_grad else [None] * len(xs)
    return [*first, *[x * 0 if g is None else g for g, x in zip(second, xs, strict=True)]]


def _values(w):
    """The values of a gradient of PyTorch's, which may be its symbolic zero or a lazy conjugate."""
    return (torch.zeros(w.shape, dtype=w.dtype) if w._is_zerotensor() else w.detach().resolve_conj()).numpy()


def type_grad(xs):
    return (torch if isinstance(xs[0], torch.Tensor) else taeda).autograd.grad


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [n for n in UNARY + FUNCTIONAL + BINARY if n not in NO_GRADIENT])
def test_gradients(name, dtype):
    theirs, ours = functions(name)
    rng = np.random.default_rng(5)
    made = []
    for _ in range(2 if name in BINARY else 1):
        x = rng.uniform(0.05, 0.95, (3, 4))
        if name == "acosh":
            x = x + 1
        made.append(x + 1j * rng.uniform(-1, 1, (3, 4)) if dtype == "complex128" else x)
    a = [torch.from_numpy(x.copy()).requires_grad_() for x in made]
    b = [taeda.from_numpy(x.copy()).requires_grad_() for x in made]
    try:
        want = gradients(theirs, a)
    except (RuntimeError, NotImplementedError):
        return
    for g, w in zip(gradients(ours, b), want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), _values(w), rtol=1e-9, atol=1e-9, err_msg=name)


def test_numbers_among_the_attributes():
    """The kernel depends on which of them are given, and not on the numbers."""
    values = [math.nan, math.inf, -math.inf, 1.0]
    names = ("nan", "posinf", "neginf")
    for numbers in itertools.product((None, 2, 3.5), repeat=3):
        given = {name: x for name, x in zip(names, numbers, strict=True) if x is not None}
        for x in (numbers[0], 7.25):
            given.update({"nan": x} if "nan" in given else {})
            want = torch.tensor(values).nan_to_num(**given).tolist()
            assert taeda.tensor(values).nan_to_num(**given).tolist() == want
    for a in (2, 0.5, np.float64(3), taeda.tensor(4.0), 2, 0.5):
        assert taeda.add(taeda.ones(2), 1, alpha=a).tolist() == [1 + float(a)] * 2
        assert taeda.ones(2).addcmul_(taeda.ones(2), taeda.ones(2), value=a).tolist() == [1 + float(a)] * 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_with_attributes(dtype):
    calls = [
        ("add", 2, {"alpha": 3}),
        ("sub", 2, {"alpha": 3}),
        ("add", 2, {"alpha": 0.5}),
        ("rsub", 2, {"alpha": 2}),
        ("div", 2, {"rounding_mode": "floor"}),
        ("div", 2, {"rounding_mode": "trunc"}),
        ("div", 2, {"rounding_mode": None}),
        ("addcmul", 3, {"value": 2}),
        ("addcdiv", 3, {"value": 0.5}),
        ("lerp", 2, {"weight": 0.3}),
        ("lerp", 2, {"weight": 0.8}),
        ("lerp", 3, {}),
        ("round", 1, {"decimals": 1}),
        ("round", 1, {"decimals": -1}),
        ("clamp", 1, {"min": 0}),
        ("clamp", 1, {"max": 1}),
        ("clamp", 1, {"min": 0.5, "max": 1.5}),
        ("clamp", 3, {}),
        ("clamp_min", 1, {"min": 1}),
        ("clamp_max", 1, {"max": 1}),
        ("logit", 1, {"eps": 0.1}),
        ("nan_to_num", 1, {"nan": 1.0}),
        ("isclose", 2, {"rtol": 0.5}),
        ("isclose", 2, {"atol": 2.0, "equal_nan": True}),
        ("threshold", 1, {"threshold": 0.5, "value": 3}),
        ("hardtanh", 1, {"min_val": -0.5, "max_val": 0.7}),
        ("leaky_relu", 1, {"negative_slope": 0.3}),
        ("elu", 1, {"alpha": 0.7}),
        ("celu", 1, {"alpha": 0.7}),
        ("celu", 1, {"alpha": -0.7}),
        ("gelu", 1, {"approximate": "tanh"}),
        ("softplus", 1, {"beta": 2, "threshold": 3}),
        ("hardshrink", 1, {"lambd": 1.0}),
        ("softshrink", 1, {"lambd": 1.0}),
        ("glu", 1, {"dim": 0}),
        ("frexp", 1, {}),
    ]
    for name, n, keywords in calls:
        theirs, ours = functions(name)
        made = [pair(dtype, (4, 5), i, positive=name in ("addcdiv", "div") and i > 0) for i in range(n)]
        if name == "div" and dtype in ("bool", *INTEGER):
            made[1] = (made[1][0] * 0 + 3, made[1][1] * 0 + 3)
        args, ours_args = [m[0] for m in made], [m[1] for m in made]
        both(theirs, ours, args, ours_args, f"{name} {dtype} {keywords}", **keywords)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.tensor([1, 2]) // t.tensor([1, 0]),
        lambda t: t.tensor([1, 2]) % 0,
        lambda t: t.tensor([True]) - t.tensor([True]),
        lambda t: -t.tensor([True]),
        lambda t: t.tensor([1]) ** -1,
        lambda t: t.tensor([1]).add(1, alpha=0.5),
        lambda t: t.tensor([1j]) < 1,
        lambda t: t.tensor([1.5]) & 1,
        lambda t: t.tensor([1, 2]).add_(1.5),
        lambda t: t.tensor([1.0]).clamp(),
        lambda t: t.ones(2, 3) + t.ones(4),
        lambda t: t.ones(3).add_(t.ones(2, 3)),
        lambda t: t.div(t.ones(1), 1, rounding_mode="up"),
        lambda t: t.add(t.ones(1)),
        lambda t: t.add(t.ones(1), "1"),
    ],
)
def test_errors(call):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value)):
        call(taeda)


@pytest.mark.parametrize("threads", [1, 3])
def test_large_tensors(threads):
    """What moves more bytes than the cache holds is stored past it, where rows begin at cache lines."""
    taeda.set_num_threads(threads)
    (a, x), (b, y) = (pair("float32", (1051, 4160), seed) for seed in (1, 2))
    odd = slice(3, None)
    for call in (
        lambda a, b: a + b,
        lambda a, b: a.reshape(-1)[odd] * b.reshape(-1)[odd],
        lambda a, b: a + b[0],
        lambda a, b: a[:, 5:] - b[:, 5:],
        lambda a, b: a.t() * b.t(),
        lambda a, b: a.double(),
        lambda a, b: a.clone(),
        lambda a, b: a.reshape(-1)[odd].clone(),
        lambda a, b: (a * 2).mul_(b),
        lambda a, b: a.clone().add_(a),
    ):
        assert_same(call(a, b), call(x, y), "large")


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
@pytest.mark.parametrize("a, b", [(7, 2), (-7, 2), (-7.5, 2), (7, 0), (7.0, 0)])
def test_division_of_two_numbers(a, b, mode):
    def divide(t):
        try:
            result = t.div(a, b, rounding_mode=mode)
        except RuntimeError as error:
            return "ZeroDivisionError" in str(error)
        return result.item(), str(result.dtype).rpartition(".")[2]

    assert divide(taeda) == divide(torch)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_division_by_zero_of_no_elements(name):
    for b in (0, torch.zeros(3, dtype=torch.int64)):
        want = getattr(torch, name)(torch.zeros(0, 3, dtype=torch.int32), b)
        other = b if isinstance(b, int) else taeda.zeros(3, dtype=taeda.int64)
        assert_same(want, getattr(taeda, name)(taeda.zeros(0, 3, dtype=taeda.int32), other), name)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_masked_fill_gives_rows_in_order(device):
    """However the input lies in memory; what is written in place stays as it lies."""
    for t in (torch, taeda):
        x = t.arange(24.0, device=device).reshape(2, 3, 4).permute(2, 0, 1)
        for mask in (x > 3, x[0] > 3, t.ones(5, 1, 1, 1, dtype=t.bool, device=device)):
            got = x.masked_fill(mask, 0)
            assert got.is_contiguous() and got.view(-1).shape == (got.numel(),)
        y = t.empty_strided((4, 2, 3), (1, 12, 4), device=device).copy_(x)
        assert y.masked_fill_(x > 3, 0).stride() == (1, 12, 4)
