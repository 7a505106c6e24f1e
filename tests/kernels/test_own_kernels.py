"""taeda.kernel: formulas over elements and rows, their derivatives to the third order, transforms, errors with the line."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import taeda
from taeda import kernel, nn
from taeda.kernels import build
from taeda.ops.registry import OPS

UNARY = {
    "abs": (-2, 2), "acos": (-0.9, 0.9), "acosh": (1.2, 3), "asin": (-0.9, 0.9), "asinh": (-2, 2), "atan": (-2, 2),
    "atanh": (-0.9, 0.9), "ceil": (-2, 2), "cos": (-3, 3), "cosh": (-2, 2), "erf": (-2, 2), "erfc": (-2, 2),
    "exp": (-2, 2), "exp2": (-2, 2), "expm1": (-1, 1), "floor": (-2, 2), "log": (0.2, 3), "log10": (0.2, 3),
    "log1p": (-0.8, 2), "log2": (0.2, 3), "reciprocal": (0.3, 2), "round": (-2, 2), "rsqrt": (0.3, 3),
    "sigmoid": (-3, 3), "sign": (-2, 2), "sin": (-3, 3), "sinh": (-2, 2), "sqrt": (0.3, 3), "tan": (-1, 1),
    "tanh": (-2, 2), "trunc": (-2, 2),
}  # fmt: skip


@pytest.fixture(autouse=True)
def tables():
    """What a test declares is gone after it."""
    before = dict(OPS)
    yield
    OPS.clear()
    OPS.update(before)


def test_every_function_is_tried():
    others = {"isnan", "isinf", "isfinite", "atan2", "hypot", "maximum", "minimum", "where"}
    assert set(UNARY) | others == set(kernel.FUNCTIONS)


@pytest.mark.parametrize("name", UNARY)
def test_functions_and_their_derivatives(name):
    own = kernel.elementwise(lambda x: getattr(kernel, name)(x), name=f"kernels::{name}")
    low, high = UNARY[name]
    x = taeda.linspace(low, high, 7, dtype=taeda.float64) + 0.013
    plain = getattr(taeda, name)
    np.testing.assert_allclose(own(x).numpy(), plain(x).numpy(), rtol=1e-12)
    assert math.isclose(getattr(kernel, name)(x[3].item()), plain(x)[3].item(), rel_tol=1e-12)
    assert taeda.equal(kernel.FUNCTIONS[name] and getattr(kernel, name)(x), plain(x))
    x.requires_grad_()
    assert taeda.autograd.gradcheck(own, x)
    if own(x).grad_fn is not None and taeda.autograd.grad(own(x).sum(), x, create_graph=True)[0].requires_grad:
        assert taeda.autograd.gradgradcheck(own, x)


FORMULAS = {
    "operators": lambda x, y: (x + y) * 2 - x / (y + 3) + 1 / y - (-x) + 3 % y + x % 0.77,
    "powers": lambda x, y: x**3 + y**-2 + y**0.5 + 2.0**x + y**x + x**1 + x**0,
    "choices": lambda x, y: kernel.where((x > 0) & ~(y < 0.5) | (x == 9.0), x * y, y * y),
    "extremes": lambda x, y: kernel.maximum(x, y) * kernel.minimum(x, 0.3) + abs(x),
    "two operands": lambda x, y: kernel.atan2(x, y) + kernel.hypot(x, y),
    "a constant": lambda x, y: 2.0,
    "one of them": lambda x, y: y,
    "shared parts": lambda x, y: (lambda z: z * z + kernel.sin(z))(kernel.exp(x * y)),
    "nothing is a number": lambda x, y: kernel.where(kernel.isnan(x) | kernel.isinf(y), 0.0, x) * kernel.isfinite(y),
    "whole parts": lambda x, y: x - x // 0.77 * 0.77 + kernel.floor(y) * x,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    f = FORMULAS[name]
    own = kernel.elementwise(f, name="kernels::own")
    x = taeda.tensor([[-1.3], [0.41], [1.9]], dtype=taeda.float64, requires_grad=True)
    y = taeda.tensor([0.37, 0.8, 2.3, 1.1], dtype=taeda.float64, requires_grad=True)
    if name == "nothing is a number":
        f = lambda x, y: taeda.where(x.isnan() | y.isinf(), 0.0, x) * y.isfinite()  # noqa: E731
    with taeda.no_grad():
        want = f(x, y) if name not in ("powers", "choices") else taeda.stack(
            [taeda.tensor([reference(name, a, b) for b in y.tolist()], dtype=taeda.float64) for a in x[:, 0].tolist()]
        )  # fmt: skip
    np.testing.assert_allclose(
        own(x, y).detach().numpy(),
        np.broadcast_to(np.asarray(want.detach() if name != "a constant" else want), (3, 4)),
        rtol=1e-11,
    )
    if name == "powers":
        x = taeda.tensor([[1.3], [0.41], [1.9]], dtype=taeda.float64, requires_grad=True)
    if name not in ("a constant",):
        assert taeda.autograd.gradcheck(own, (x, y)) and taeda.autograd.gradgradcheck(own, (x, y))


def reference(name, x, y):
    if name == "powers":
        return x**3 + y**-2 + y**0.5 + 2.0**x + y**x + x + 1
    return x * y if (x > 0 and not y < 0.5) or x == 9.0 else y * y


def softabs(x, sharpness=1.0):
    """A smooth absolute value."""
    return kernel.sqrt(1 + (sharpness * x) ** 2) - 1


def plain_softabs(x, sharpness=1.0):
    return taeda.sqrt(1 + (sharpness * x) ** 2) - 1


def test_everywhere():
    own = kernel.elementwise(name="kernels::softabs")(softabs)
    x = taeda.randn(3, 4, dtype=taeda.float64)
    assert own.__doc__.startswith("A smooth absolute value.") and own.name == "kernels::softabs"
    f = taeda.func
    for transform in (f.grad, f.hessian, lambda g: f.grad(lambda x: f.grad(lambda x: f.grad(g)(x).sum())(x).sum())):
        got = transform(lambda x: own(x, 3.0).sum())(x)
        want = transform(lambda x: plain_softabs(x, 3.0).sum())(x)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-8, atol=1e-10)
    value, tangent = f.jvp(own, (x,), (x,))
    want = f.jvp(plain_softabs, (x,), (x,))
    assert taeda.allclose(value, want[0]) and taeda.allclose(tangent, want[1])
    assert taeda.allclose(taeda.vmap(f.grad(lambda x: own(x).sum()))(x), f.grad(lambda x: plain_softabs(x).sum())(x))
    assert own(taeda.empty(2, 3, device="meta")).shape == (2, 3)
    assert own(taeda.arange(3)).dtype == taeda.float32 and own(x.half()).dtype == taeda.float16
    out = taeda.empty(3, 4, dtype=taeda.float64)
    assert own(x, out=out) is out and taeda.equal(out, own(x))
    with pytest.raises((RuntimeError, NotImplementedError), match="softabs"):
        own(x.to(taeda.complex128))

    def step(x):
        return (own(x * 2, 3.0) + 1).sum()

    compiled = taeda.compile(step)
    y = x.clone().requires_grad_()
    for _ in range(3):
        y.grad = None
        compiled(y).backward()
        np.testing.assert_allclose(y.grad.numpy(), f.grad(step)(x).numpy(), rtol=1e-12)
    assert taeda.equal(compiled(x), step(x))


def test_in_a_program_that_is_exported(tmp_path):
    own = kernel.elementwise(name="kernels::softabs")(softabs)
    rows = kernel.row(name="kernels::softmax")(lambda x: kernel.exp(x) / kernel.sum(kernel.exp(x)))

    class Model(nn.Module):
        def forward(self, x):
            return own(x, 2.0) + rows(x)

    x = taeda.randn(3, 4)
    program = taeda.export.export(Model(), (x,))
    want = plain_softabs(x, 2.0) + x.softmax(-1)
    assert taeda.allclose(program.module()(x), want, atol=1e-6)


def test_a_rule_of_ones_own():
    through = kernel.elementwise(lambda x: kernel.round(x), name="kernels::through", grad={"x": lambda g: g * 2})
    x = taeda.tensor([0.2, 1.7], requires_grad=True)
    through(x).sum().backward()
    assert through(x).tolist() == [0, 2] and x.grad.tolist() == [2, 2]
    none = kernel.elementwise(lambda x: x * 2, name="kernels::none", grad={})
    assert not none(x).requires_grad


def test_in_the_dtype_of_the_operands():
    twice = kernel.elementwise(lambda x: x * 2 + 1, name="kernels::twice", promote="type")
    assert twice(taeda.arange(3)).tolist() == [1, 3, 5] and twice(taeda.arange(3)).dtype == taeda.int64
    with pytest.raises(ValueError, match="promote"):
        kernel.elementwise(lambda x: x, name="kernels::wrong", promote="int")


def test_settings_and_names():
    def gate(x, y, form="soft", scale=2):
        if form == "hard":
            return kernel.where(y > 0, x, 0.0) * scale
        return x * kernel.sigmoid(y) * scale

    own = kernel.elementwise(gate, name="kernels::gate")
    x, y = (taeda.randn(4, dtype=taeda.float64, requires_grad=True) for _ in range(2))
    assert taeda.allclose(own(x, y), x * y.sigmoid() * 2)
    assert taeda.allclose(own(x, y, form="hard", scale=3), taeda.where(y > 0, x, 0.0) * 3)
    for form in ("soft", "hard"):
        assert taeda.autograd.gradcheck(lambda x, y, form=form: own(x, y, form, 0.5), (x, y))
    named = kernel.elementwise(lambda _g, _g_g: _g * _g * _g_g, name="kernels::named_g")  # names that derivatives use
    assert taeda.autograd.gradgradcheck(named, (x, y))
    with pytest.raises(TypeError, match="'g' has a meaning in derivatives"):
        kernel.elementwise(lambda g: g, name="kernels::wrong")
    for wrong in ("aten::x", "a::b::c"):
        with pytest.raises(ValueError, match=r"namespace|expected a name"):
            kernel.elementwise(lambda x: x, name=wrong)
    with pytest.raises(ValueError, match="the library has an op"):
        kernel.elementwise(lambda x: x, name="exp")
    assert taeda.exp(taeda.zeros(1)).item() == 1


ERRORS = {
    "math": (lambda x: math.sin(x), "functions of math and numpy cannot take it: use those of taeda.kernel"),
    "numpy": (lambda x: np.sin(x), "."),
    "if": (lambda x: x if x > 0 else 0.0, r"use kernel.where\(condition, a, b\)"),
    "a chain": (lambda x: kernel.where(0 < x < 1, x, 0.0), "use kernel.where"),
    "a method": (lambda x: x.exp(), r"use kernel.exp\(x\)"),
    "a fold as a method": (lambda x: x - x.mean(), r"use kernel.mean\(x\)"),
    "an unknown function": (lambda x: kernel.expp(x), "has no attribute 'expp'. In an expression stand"),
    "a tensor's function": (lambda x: taeda.exp(x), "."),
    "an index": (lambda x: x[0], "."),
    "text": (lambda x: x + "a", r"unsupported operand.*In an expression stand"),
    "too many": (lambda x: kernel.exp(x, x), "takes 1 arguments, got 2"),
    "a tuple": (lambda x: (x, x), "one value of the expression, got tuple"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_show_the_line_and_what_is_allowed(name):
    function, says = ERRORS[name]
    for declare in (kernel.elementwise, kernel.row):
        with pytest.raises((TypeError, AttributeError), match=says) as caught:
            declare(function, name="kernels::wrong")
        assert f'File "{__file__}", line {function.__code__.co_firstlineno}' in str(caught.value)
        assert "kernels::wrong" not in OPS


def test_more_errors():
    for function, says in (
        (lambda x: x > 0, "truth value"),
        (lambda x: kernel.sum(x), "kernel.row"),
        (lambda *x: x[0], "by position"),
        (lambda x=1.0: x, "without a default"),
    ):
        with pytest.raises(TypeError, match=says):
            kernel.elementwise(function, name="kernels::wrong")
    for decorator in (kernel.elementwise, kernel.row, functools.partial(kernel.grid, out=lambda x: x)):
        with pytest.raises(TypeError, match="the name of an op is a keyword: name='softabs'"):
            decorator("softabs")
    with pytest.raises(TypeError, match="'dim' is the dimension"):
        kernel.row(lambda x, dim: x, name="kernels::wrong")
    with pytest.raises(TypeError, match=r"kernel.sum: expected a value of the expression"):
        kernel.sum(taeda.ones(2))


def _softmax(x):
    e = kernel.exp(x - kernel.max(x))
    return e / kernel.sum(e)


def _layer_norm(x, w, b, eps=1e-5):
    return (x - kernel.mean(x)) * kernel.rsqrt(kernel.var(x) + eps) * w + b


ROWS = {
    "softmax": (_softmax, lambda x, w, b: x.softmax(-1), 1),
    "layer_norm": (_layer_norm, lambda x, w, b: nn.functional.layer_norm(x, x.shape[-1:], w, b), 3),
    "logsumexp": (lambda x: kernel.max(x) + kernel.log(kernel.sum(kernel.exp(x - kernel.max(x)))),
                  lambda x, w, b: x.logsumexp(-1), 1),
    "a fold": (lambda x, w: kernel.sum(x * w), lambda x, w, b: (x * w).sum(-1), 2),
    "a fold of an operand": (lambda x: kernel.min(x), lambda x, w, b: x.amin(-1), 1),
    "a product": (lambda x: kernel.prod(x) * kernel.mean(x), lambda x, w, b: x.prod(-1) * x.mean(-1), 1),
    "a sum of a smaller operand": (lambda x, w: x * kernel.sum(w), lambda x, w, b: x * w.sum(-1), 2),
    "a sum of a constant": (lambda x: x / kernel.sum(1.0), lambda x, w, b: x / x.shape[-1], 1),
    "no fold": (lambda x: x * 2, lambda x, w, b: x * 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rows(name):
    function, plain, n = ROWS[name]
    own = kernel.row(function, name="kernels::rows")
    x = taeda.randn(2, 3, 5, dtype=taeda.float64, requires_grad=True)
    w, b = (taeda.randn(5, dtype=taeda.float64, requires_grad=True) for _ in range(2))
    given = (x, w, b)[:n]
    want = plain(x, w, b)
    assert own(*given).shape == want.shape
    np.testing.assert_allclose(own(*given).detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)
    assert taeda.autograd.gradcheck(own, given) and taeda.autograd.gradgradcheck(own, given)
    each = taeda.vmap(own, (0, *(None,) * (n - 1)))(*given)
    np.testing.assert_allclose(each.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)
    assert own(*(t.detach().to("meta") for t in given)).shape == want.shape
    compiled = taeda.compile(lambda *given: own(*given) * 2)
    for _ in range(3):
        np.testing.assert_allclose(compiled(*given).detach().numpy(), 2 * want.detach().numpy(), rtol=1e-9, atol=1e-12)
    if n == 1:
        first = own(x.transpose(0, 2).contiguous(), dim=0)
        want = want.transpose(0, 2) if want.dim() == 3 else want.transpose(0, 1)
        np.testing.assert_allclose(first.detach().numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)
    with pytest.raises(IndexError, match="out of range"):
        own(*given, dim=3)


def test_rows_of_narrow_dtypes_and_integers():
    own = kernel.row(_softmax, name="kernels::softmax")
    x = taeda.randn(4, 33)
    for dtype in (taeda.float16, taeda.bfloat16, taeda.float32):
        got = own(x.to(dtype))
        assert got.dtype == dtype and taeda.allclose(got.float(), x.softmax(-1), atol=1e-2)
    with pytest.raises(TypeError, match="expected a tensor"):
        own(1.0)


@pytest.mark.parametrize("name", ROWS)
def test_rows_in_one_kernel(name):
    """What is not recorded is one kernel for the whole row: the same as in parts."""
    function, plain, n = ROWS[name]
    own = kernel.row(function, name="kernels::one")
    if not any(word in function.__code__.co_names for word in ("sum", "mean", "max", "min", "prod")):
        return
    for size in (1, 5, 16, 700):
        x = taeda.randn(2, 3, size, dtype=taeda.float64)
        w, b = taeda.randn(size, dtype=taeda.float64), taeda.randn(size, dtype=taeda.float64)
        given = (x, w, b)[:n]
        before = set(build._sources)
        got = own(*given)
        if size == 700:  # a kernel of its own, and none of parts
            made = [f().label for address, f in build._sources.items() if address not in before]
            assert [label.startswith("kernels::one_of_rows_") for label in made if "::one" in label] == [True]
        np.testing.assert_allclose(got.numpy(), plain(x, w, b).numpy(), rtol=1e-9, atol=1e-12)
        with_parts = own(*(t.clone().requires_grad_() for t in given)).detach()
        np.testing.assert_allclose(got.numpy(), with_parts.numpy(), rtol=1e-9, atol=1e-12)
    assert own(taeda.randn(0, 3), *(taeda.randn(3) for _ in given[1:])).numel() == 0


def test_parameters_may_have_any_name():
    """Names such as k, n, A and beta say what the library's own parameters take, and nothing of a program's."""

    @kernel.elementwise(name="names::line")
    def line(input, A, k=1.0, n=0, beta=2):
        return input * A * k + n + beta

    x = taeda.tensor([1.0, 2.0])
    assert taeda.allclose(line(x, 3.0, 0.5, 1.5, 0.25), x * 1.5 + 1.75)

    @kernel.row(name="names::scaled")
    def scaled(A, k):
        return A / kernel.sum(A) * k

    assert taeda.allclose(scaled(x, 1.5), x / 2)
    with pytest.raises(TypeError, match=r"'dim' .*must be int, not float"):
        scaled(x, 1.5, 0.5)


def test_rows_of_operands_that_are_none():
    @kernel.row(name="names::share")
    def share(x, y):
        return x / kernel.sum(x) * y

    with pytest.raises(IndexError, match=r"names::share.*expected a tensor with a dimension"):
        share(taeda.tensor(1.0), 2.0)
    for wrong in (None, [1.0], 2j, np.ones(2)):
        with pytest.raises(TypeError, match=r"names::share.*'y' must be Tensor"):
            share(taeda.ones(2), wrong)


def deep(x, n, first=0):
    y = x
    for k in range(first, n):
        y = kernel.sin(y) + x if k % 3 else y * 0.5
    return y


def test_an_expression_of_thousands_of_operations():
    op = kernel.elementwise(name="test_ops::deep")(lambda x: deep(x, 1500))
    x = taeda.linspace(-1, 1, 1003, dtype=taeda.float64, requires_grad=True)
    y = op(x)
    assert taeda.allclose(y, deep(x, 1500), rtol=1e-12)
    (slope,) = taeda.autograd.grad(y.sum(), x)
    (expected,) = taeda.autograd.grad(deep(x, 1500).sum(), x)
    assert taeda.allclose(slope, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_functions_that_are_called_have_the_same_bits(dtype, monkeypatch):
    def body(x):
        y = x
        for function in (kernel.exp, kernel.tanh, kernel.sin, kernel.log1p, kernel.atan):
            y = kernel.where(y > 3, function(y / 8), (y % 2.5 + 1) ** 0.7) + x // 3
        return kernel.where(kernel.isfinite(y), y, 0)

    x = taeda.linspace(-300, 900, 10_007).to(getattr(taeda, dtype))
    results = []
    for most in (0, 1000):
        monkeypatch.setattr(kernel, "MOST_IN_PLACE", most)
        results.append(kernel.elementwise(name=f"test_ops::body{most}")(body)(x))
    assert len(results[0].unique()) > 1000 and taeda.equal(*results)


def test_a_row_of_thousands_of_operations():
    op = kernel.row(name="test_ops::deep_row")(lambda x: deep(x - kernel.max(x), 1500) + kernel.mean(x))
    x = taeda.linspace(-1, 1, 512, dtype=taeda.float64).reshape(4, 128)
    apart = x - x.amax(1, True)
    assert taeda.allclose(op(x), deep(apart, 1500) + x.mean(1, keepdim=True), rtol=1e-12)
