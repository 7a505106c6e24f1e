"""Function transforms and hooks against PyTorch: the same programs, the same numbers."""

import functools

import numpy as np
import pytest

import taeda
import taeda.func

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.2, 0.9, (4, 3)), RNG.uniform(0.2, 0.9, (3,))


def mlp(m, x, w):
    return m.stack([(x * w).sin().sum(), m.tanh(x @ w), x.prod() * w[0]])


def partly(m, x, w):
    """No gradient passes by the shares; tangents do."""
    with m.no_grad():
        share = (x * w).tanh().softmax(-1)
    return share * x


def inner_gradient(m, x):
    with m.no_grad():
        return m.func.grad(lambda y: (y * y.exp() * x).sum())(x)


def written(m, x, w):
    y = w.clone()
    y[1:].mul_(w[1:])
    return y * x


def repeated(m, x, w):
    """What no_grad has repeated for each example is no constant after it."""
    y = x * x
    with m.no_grad():
        m.sigmoid(y * w)
    return (y * w).sum()


def inside(mode, function):
    with mode:
        return function()


PROGRAMS = {
    "grad": lambda m, a, b: m.func.grad(lambda x: mlp(m, x, b).sum())(a[0]),
    "grad of both": lambda m, a, b: m.func.grad(lambda x, w: mlp(m, x, w).sum(), argnums=(0, 1))(a[0], b),
    "per example": lambda m, a, b: m.func.vmap(m.func.grad(lambda x, w: mlp(m, x, w).sum()), (0, None))(a, b),
    "per example of the shared": lambda m, a, b: m.func.vmap(m.func.grad(lambda w, x: mlp(m, x, w).sum()), (None, 0))(
        b, a
    ),
    "jacrev": lambda m, a, b: m.func.jacrev(lambda x: mlp(m, x, b))(a[0]),
    "jacfwd": lambda m, a, b: m.func.jacfwd(lambda x: mlp(m, x, b))(a[0]),
    "hessian": lambda m, a, b: m.func.hessian(lambda x: mlp(m, x, b).sum())(a[0]),
    "vmap of hessian": lambda m, a, b: m.func.vmap(m.func.hessian(lambda x: mlp(m, x, b).sum()))(a),
    "jacobian of vmap": lambda m, a, b: m.func.jacrev(lambda x: m.func.vmap(lambda r: mlp(m, r, b))(x))(a),
    "vjp": lambda m, a, b: m.func.vjp(lambda x: mlp(m, x, b), a[0])[1](b)[0],
    "jvp": lambda m, a, b: m.func.jvp(lambda x: mlp(m, x, b), (a[0],), (b,)),
    "nested vmap": lambda m, a, b: m.func.vmap(lambda r: m.func.vmap(lambda x, y: x * y.cumsum(0), (0, None))(r, b))(a),
    "softmax": lambda m, a, b: m.func.vmap(m.func.jacrev(lambda r: r.softmax(0).log()))(a),
    "sort": lambda m, a, b: m.func.vmap(lambda r: r.sort(descending=True)[0].flip(0))(a),
    "matrices": lambda m, a, b: m.func.vmap(lambda r: m.outer(r, b) @ m.outer(b, r) + r.unsqueeze(1))(a),
    "tangents under no_grad": lambda m, a, b: m.func.jvp(lambda x: partly(m, x, b), (a[0],), (b,)),
    "jacfwd under no_grad": lambda m, a, b: m.func.jacfwd(lambda x: partly(m, x, b))(a[0]),
    "jacrev under no_grad": lambda m, a, b: m.func.jacrev(lambda x: partly(m, x, b))(a[0]),
    "hessian under no_grad": lambda m, a, b: m.func.hessian(lambda x: partly(m, x, b).sum())(a[0]),
    "jacfwd twice under no_grad": lambda m, a, b: m.func.jacfwd(m.func.jacfwd(lambda x: partly(m, x, b)))(a[0]),
    "jacrev of tangents under no_grad": lambda m, a, b: m.func.jacrev(m.func.jacfwd(lambda x: partly(m, x, b)))(a[0]),
    "gradient of a value with tangents under no_grad": lambda m, a, b: m.func.grad(
        lambda x: m.func.jvp(lambda y: partly(m, y, b), (x,), (b,))[0].sum()
    )(a[0]),
    "vmap of tangents under no_grad": lambda m, a, b: m.func.vmap(
        lambda x: m.func.jvp(lambda y: partly(m, y, b), (x,), (b,))[1]
    )(a),
    "tangents of a gradient under no_grad": lambda m, a, b: m.func.jvp(lambda x: inner_gradient(m, x), (a[0],), (b,)),
    "jacfwd of a gradient under no_grad": lambda m, a, b: m.func.jacfwd(lambda x: inner_gradient(m, x))(a[0]),
    "gradient of a gradient under no_grad": lambda m, a, b: m.func.grad(lambda x: inner_gradient(m, x).sum())(a[0]),
    "gradient of tangents of a gradient under no_grad": lambda m, a, b: m.func.grad(
        lambda x: m.func.jvp(lambda y: inner_gradient(m, y) * y * y, (x,), (b,))[1].sum()
    )(a[0]),
    "tangents of a gradient at what no_grad made": lambda m, a, b: m.func.jvp(
        lambda x: m.func.grad(lambda y: (y * y.sin()).sum())(partly(m, x, b) * 1.0), (a[0],), (b,)
    ),
    "hessian of what no_grad made": lambda m, a, b: m.func.hessian(lambda x: inside(m.no_grad(), lambda: (x**3).sum()))(
        b
    ),
    "jacobians of a shared tensor written in place": lambda m, a, b: m.func.vmap(
        m.func.jacrev(lambda x, w: written(m, x, w), (0, 1)), (0, None)
    )(a, b),
    "gradients of a shared tensor repeated under no_grad": lambda m, a, b: m.func.vmap(
        m.func.grad(lambda x, w: repeated(m, x, w)), (None, 0)
    )(b, a),
    "all under no_grad": lambda m, a, b: inside(
        m.no_grad(), lambda: m.func.jvp(lambda x: partly(m, x, b), (a[0],), (b,))
    ),
    "places": lambda m, a, b: m.func.vmap(lambda r: r.unsqueeze(0), in_dims=1, out_dims=-1)(a),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    made = []
    for m in (taeda, torch):
        out = PROGRAMS[name](m, m.tensor(A.tolist(), dtype=m.float64), m.tensor(B.tolist(), dtype=m.float64))
        made.append(out if isinstance(out, tuple) else (out,))
    for ours, theirs in zip(*made, strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=1e-8, atol=1e-10)


def test_hooks_run_in_the_same_order():
    logs = []
    for m in (taeda, torch):
        log = []
        x = m.ones(2, requires_grad=True)
        node = x.expand_as(x).grad_fn.next_functions[0][0]
        node.register_hook(lambda *a, log=log: log.append(("leaf node", len(a[0]), a[1][0].tolist())))
        node.register_prehook(lambda *a, log=log: log.append(("leaf pre", a[0][0].tolist())))
        y = x * 2
        y.register_hook(lambda g, log=log: log.append(("tensor", g.tolist())))
        y.grad_fn.register_prehook(lambda g, log=log: log.append(("pre", g[0].tolist())))
        y.grad_fn.register_hook(lambda i, o, log=log: log.append(("post", i[0].tolist(), o[0].tolist())))
        y.retain_grad()
        y.add_(1)
        y.register_hook(lambda g, log=log: log.append(("after", g.tolist())))
        (y * 3).sum().backward()
        log.append((y.grad.tolist(), x.grad.tolist()))
        logs.append(log)
    assert logs[0] == logs[1]


DRAWS = {  # of an example, by random ops
    "rand": lambda fw, x: x.sum() + fw.rand(20),
    "randn": lambda fw, x: x.sum() + fw.randn(20),  # in blocks of 16
    "rand_like": lambda fw, x: fw.rand_like(x),
    "randint_like": lambda fw, x: fw.randint_like(x, 0, 9),
    "randperm": lambda fw, x: x.sum() + fw.randperm(5),
    "normal of means": lambda fw, x: fw.normal(x, 1.0),
    "normal of deviations": lambda fw, x: fw.normal(0.0, x + 1),
    "normal of both": lambda fw, x: fw.normal(x, x + 1),
    "normal of one": lambda fw, x: x.sum() + fw.normal(fw.zeros(20), fw.ones(20)),
    "bernoulli": lambda fw, x: fw.bernoulli(x),
    "dropout": lambda fw, x: fw.nn.functional.dropout(x, 0.5),
    "dropout of one": lambda fw, x: x.sum() + fw.nn.functional.dropout(fw.ones(20), 0.5),
    "alpha_dropout": lambda fw, x: fw.nn.functional.alpha_dropout(x, 0.5),
    "multinomial": lambda fw, x: fw.multinomial(x + 0.1, 2),
    "gumbel_softmax": lambda fw, x: fw.nn.functional.gumbel_softmax(x),
    "normal_": lambda fw, x: x.clone().normal_(),
    "exponential_": lambda fw, x: x.clone().exponential_(),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("randomness", ("different", "same"))
@pytest.mark.parametrize("dim", (0, 2))
def test_streams_under_vmap(name, randomness, dim):
    made = []
    for framework in (taeda, torch):
        framework.manual_seed(3)
        draw = functools.partial(DRAWS[name], framework)
        mapped = framework.func.vmap(draw, in_dims=dim, randomness=randomness)
        try:
            made.append(mapped(framework.arange(24.0).reshape(2, 3, 4) / 30).tolist())
        except RuntimeError:
            made.append("an error")
    assert made[0] == pytest.approx(made[1], abs=1e-6) if "an error" in made else np.allclose(*made, atol=1e-6)


ATTENTION_WITH_DROPOUT = {
    "attention": lambda f, a: f.nn.functional.scaled_dot_product_attention(*[a[None, None]] * 3, dropout_p=0.5),
    "masked": lambda f, a: f.nn.functional.scaled_dot_product_attention(
        *[a[None, None]] * 3, attn_mask=f.zeros(5, 5), dropout_p=0.5
    ),
    "gradient": lambda f, a: f.func.grad(
        lambda x: f.nn.functional.scaled_dot_product_attention(*[x[None, None]] * 3, dropout_p=0.5).pow(2).sum()
    )(a),
}


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
@pytest.mark.parametrize("name", ATTENTION_WITH_DROPOUT)
def test_attention_draws_for_the_examples_as_asked(name, randomness):
    found = []
    for f in (torch, taeda):
        x = f.arange(40.0).reshape(4, 5, 2).sin()
        f.manual_seed(7)
        try:
            y = f.func.vmap(lambda a, f=f: ATTENTION_WITH_DROPOUT[name](f, a), randomness=randomness)(x)
            found.append(y.detach().numpy())
        except RuntimeError:
            found.append(None)
        found.append(f.rand(1).item())
    want, left, got, ours = found
    assert left == ours and (want is None) == (got is None) == (randomness == "error")
    if want is not None:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
