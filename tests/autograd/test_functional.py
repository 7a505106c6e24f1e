"""``vjp``, ``jvp``, ``jacobian``, ``hessian``, ``vhp``, ``hvp`` of functions."""

import pytest

import taeda
from taeda.autograd import functional as F


def t(*values):
    return taeda.tensor(values, dtype=taeda.float64)


X = t(0.5, -1.0, 2.0)
W = t(1.0, 3.0)


def f(x):
    return taeda.stack([x.prod(), (x * x).sum()])


JACOBIAN = [[X[1].item() * X[2].item(), X[0].item() * X[2].item(), X[0].item() * X[1].item()], [1.0, -2.0, 4.0]]


def test_jacobian():
    assert F.jacobian(f, X).tolist() == JACOBIAN
    assert F.jacobian(f, X, vectorize=True).tolist() == JACOBIAN
    assert F.jacobian(f, X, vectorize=True, strategy="forward-mode").tolist() == JACOBIAN
    assert not F.jacobian(f, X).requires_grad


def test_jacobian_of_several():
    def g(x, w):
        return x.sum() * w, (x * 2).unsqueeze(0)

    made = F.jacobian(g, (X, W))
    assert [[tuple(a.shape) for a in row] for row in made] == [[(2, 3), (2, 2)], [(1, 3, 3), (1, 3, 2)]]
    assert made[0][0].tolist() == [[1.0] * 3, [3.0] * 3]
    assert made[0][1].tolist() == [[1.5, 0.0], [0.0, 1.5]]
    assert made[1][1].tolist() == [[[0.0, 0.0]] * 3]


def test_jacobian_can_be_differentiated():
    x = X.clone().requires_grad_()
    jac = F.jacobian(f, x, create_graph=True)
    assert jac.requires_grad
    jac[1].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_hessian():
    def g(x):
        return (x**3).sum() + x[0] * x[1]

    expected = [[3.0, 1.0, 0.0], [1.0, -6.0, 0.0], [0.0, 0.0, 12.0]]
    assert F.hessian(g, X).tolist() == expected
    assert F.hessian(g, X, vectorize=True).tolist() == expected
    both = F.hessian(lambda x, w: x.sum() * w.prod(), (X, W))
    assert both[0][1].tolist() == [[3.0, 1.0]] * 3
    assert both[1][1].tolist() == [[0.0, 1.5], [1.5, 0.0]]


def test_products():
    v, u = t(1.0, 2.0), t(1.0, -1.0, 0.5)
    out, made = F.vjp(f, X, v)
    assert out.tolist() == f(X).tolist()
    assert made.tolist() == [a + 2 * b for a, b in zip(*JACOBIAN, strict=True)]
    out, made = F.jvp(f, X, u)
    assert made.tolist() == [sum(a * b for a, b in zip(row, u.tolist(), strict=True)) for row in JACOBIAN]
    g = lambda x: (x**3).sum() + x[0] * x[1]  # noqa: E731
    hessian = F.hessian(g, X)
    assert F.vhp(g, X, u)[1].tolist() == (u @ hessian).tolist()
    assert F.hvp(g, X, u)[1].tolist() == (hessian @ u).tolist()


def test_products_of_several():
    def g(x, w):
        return x.sum() * w

    _, (gx, gw) = F.vjp(g, (X, W), W)
    assert gx.tolist() == [10.0] * 3
    assert gw.tolist() == [1.5, 4.5]
    _, made = F.jvp(g, (X, W), (X, W))
    assert made.tolist() == [3.0, 9.0]


def test_constant_outputs_give_zeros_or_raise():
    def constant(x):
        return t(1.0)

    assert F.jacobian(constant, X).tolist() == [[0.0, 0.0, 0.0]]
    assert F.vjp(constant, X)[1].tolist() == [0.0, 0.0, 0.0]
    assert F.jvp(constant, X, X)[1].tolist() == [0.0]
    for call in (lambda: F.jacobian(constant, X, strict=True), lambda: F.vjp(constant, X, strict=True)):
        with pytest.raises(RuntimeError, match="does not require gradients"):
            call()
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.jacobian(lambda x, w: x * 2, (X, W), strict=True)


def test_errors():
    with pytest.raises(RuntimeError, match="v can only be None"):
        F.vjp(f, X)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        F.vjp(f, X, X)
    with pytest.raises(RuntimeError, match="single Tensor with a single element"):
        F.hessian(f, X)
    with pytest.raises(TypeError, match="index 1"):
        F.jacobian(lambda a, b: a, (X, 3))
    with pytest.raises(TypeError, match="outputs of the user-provided function"):
        F.jacobian(lambda x: 3, X)
    with pytest.raises(RuntimeError, match="invalid length"):
        F.jvp(f, (X, W), (X,))


def test_inputs_are_left_alone():
    x = X.clone().requires_grad_()
    F.jacobian(f, x)
    F.hessian(lambda x: x.prod(), x)
    assert x.grad is None
    with taeda.no_grad():
        assert F.jacobian(f, X).tolist() == JACOBIAN


def test_strict_results_that_are_constant():
    """With ``create_graph``, ``strict`` is about derivatives of the results, too."""
    linear, cubic, ones = (lambda x: x * 2), (lambda x: (x**3).sum()), taeda.ones(3)
    x = taeda.ones(3, requires_grad=True)
    for call in (F.vjp, F.jvp):
        with pytest.raises(RuntimeError, match="independent of the inputs"):
            call(linear, x, ones, create_graph=True, strict=True)
        call(linear, x, ones, strict=True)
    for call in (F.vhp, F.hvp):
        with pytest.raises(RuntimeError, match="independent of the inputs"):
            call(lambda x: (x * x).sum(), x, ones, create_graph=True, strict=True)
        assert call(cubic, x, ones, create_graph=True, strict=True)[1].requires_grad
