"""Transforms of functions: alone, in one another, with ordinary autograd, inside and around ``vmap``."""

import functools

import pytest

import taeda
from taeda.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from taeda.func.control_flow import associative_scan, foreach_map
from taeda.utils.checkpoint import checkpoint


def t(*values):
    return taeda.tensor(values, dtype=taeda.float64)


X = t(0.5, -1.0, 2.0)


def f(x):
    return taeda.stack([x.prod(), (x * x).sum()])


JACOBIAN = [[-2.0, 1.0, -0.5], [1.0, -2.0, 4.0]]


def close(a, b):
    assert taeda.allclose(a, b if isinstance(b, taeda.Tensor) else taeda.tensor(b, dtype=a.dtype)), (a, b)


def test_grad():
    made = grad(lambda x: (x**3).sum())(X)
    close(made, 3 * X**2)
    assert not made.requires_grad
    value = grad_and_value(lambda x, w: (x * w).sum(), argnums=(0, 1))(X, X * 2)
    close(value[0][0], X * 2)
    close(value[0][1], X)
    close(value[1], (X * X * 2).sum())
    made, aux = grad(lambda p: ((p["a"] * p["b"]).sum(), "aux"), has_aux=True)({"a": X, "b": X * 3})
    close(made["b"], X)
    assert aux == "aux"


def test_grads_nest_without_confusion():
    assert grad(grad(grad(lambda x: x**4)))(taeda.tensor(2.0)).item() == 48.0
    assert grad(lambda x: x * grad(lambda y: x + y)(taeda.tensor(1.0)))(taeda.tensor(3.0)).item() == 1.0
    assert grad(lambda x: x * grad(lambda y: x * y * y)(x))(taeda.tensor(3.0)).item() == 54.0


def test_grad_of_an_unused_argument_is_zero():
    close(grad(lambda x: taeda.ones((), dtype=taeda.float64))(X), t(0.0, 0.0, 0.0))


def test_errors():
    with pytest.raises(RuntimeError, match="scalar tensor"):
        grad(lambda x: x)(X)
    with pytest.raises(RuntimeError, match="return a Tensor"):
        grad(lambda x: 3)(X)
    with pytest.raises(RuntimeError, match="argnum"):
        grad(lambda x: x.sum(), argnums=2)(X)
    with pytest.raises(RuntimeError, match="floating point"):
        grad(lambda x: x.sum())(taeda.ones(2, dtype=taeda.int64))
    with pytest.raises(RuntimeError, match="aux"):
        grad(lambda x: x.sum(), has_aux=True)(X)
    with pytest.raises(RuntimeError, match="real scalar outputs but got"):
        grad(lambda x: x.sum() * 1j)(X)
    for of in (jacrev(lambda x: (x, x > 1)), lambda x: vjp(lambda x: x.long(), x)):
        with pytest.raises(RuntimeError, match="must be floating-point or complex Tensors, got Tensor with dtype"):
            of(X)


def test_transforms_and_ordinary_autograd():
    w = t(2.0, 3.0, 4.0).requires_grad_()
    made = grad(lambda x: (x * x * w).sum())(X)
    assert made.requires_grad
    made.sum().backward()
    close(w.grad, 2 * X)
    x = X.clone().requires_grad_()
    grad(lambda x: (x**3).sum())(x).sum().backward()
    close(x.grad, 6 * X)
    with taeda.no_grad():
        close(grad(lambda x: (x**2).sum())(X), 2 * X)
        assert not grad(lambda x: (x * w).sum())(X).requires_grad


def test_inputs_may_be_written_in_the_function():
    def g(x):
        x.mul_(2)
        y = x.clone()
        y.mul_(x)
        return (x * y).sum()

    x = X.clone()
    close(grad(g)(x), 24 * X**2)
    close(x, 2 * X)


def test_vjp_and_jvp():
    out, pull = vjp(f, X)
    close(out, f(X))
    close(pull(t(1.0, 2.0))[0], [a + 2 * b for a, b in zip(*JACOBIAN, strict=True)])
    close(pull(t(0.0, 1.0))[0], JACOBIAN[1])
    out, pull, aux = vjp(lambda x, w: (x * w, 3), X, X, has_aux=True)
    assert aux == 3
    assert [p.tolist() for p in pull(t(1.0, 1.0, 1.0))] == [X.tolist()] * 2
    out, tangent = jvp(f, (X,), (t(1.0, 1.0, 0.0),))
    close(tangent, [-1.0, -1.0])
    out, push = linearize(f, X)
    close(push(t(0.0, 0.0, 1.0)), [-0.5, 4.0])
    close(push(t(1.0, 0.0, 0.0)), [-2.0, 1.0])
    with pytest.raises(RuntimeError, match="shape of its output"):
        vjp(f, X)[1](X)
    with pytest.raises(RuntimeError, match="shape of its primal"):
        jvp(f, (X,), (t(1.0),))


def test_jacobians():
    close(jacrev(f)(X), JACOBIAN)
    close(jacfwd(f)(X), JACOBIAN)
    close(jacrev(f, chunk_size=1)(X), JACOBIAN)
    two = jacrev(lambda x, w: {"a": x * w, "b": w.sum()}, argnums=(0, 1))(X, X)
    close(two["a"][0], taeda.diag(X))
    close(two["b"][1], [1.0, 1.0, 1.0])
    columns = [jacfwd(lambda x: x.sum() * taeda.rand(()), randomness=r)(X).flatten() for r in ("same", "different")]
    assert [len(c.unique()) for c in columns] == [1, X.numel()]  # numbers of their own for each column
    two = jacfwd(lambda x, w: {"a": x * w, "b": w.sum()}, argnums=(0, 1))(X, X)
    close(two["a"][0], taeda.diag(X))
    close(two["b"][0], [0.0, 0.0, 0.0])


def test_hessians():
    expected = [[3.0, 1.0, 0.0], [1.0, -6.0, 0.0], [0.0, 0.0, 12.0]]
    g = lambda x: (x**3).sum() + x[0] * x[1]  # noqa: E731
    close(hessian(g)(X), expected)
    close(jacrev(jacrev(g))(X), expected)
    close(jacfwd(jacfwd(g))(X), expected)


def test_vmap_basics():
    a, b = taeda.randn(4, 3), taeda.randn(4, 3)
    close(vmap(lambda x, y: x @ y)(a, b), (a * b).sum(1))
    close(vmap(lambda x, y: x + y, in_dims=(0, None))(a, b[0]), a + b[0])
    close(vmap(lambda x: x * 2, in_dims=1, out_dims=1)(a), a * 2)
    close(vmap(lambda p: p["x"] + p["y"][0])({"x": a, "y": [b]}), a + b)
    close(vmap(lambda x, y: x.sum() * y.sum(), chunk_size=3)(a, b), a.sum(1) * b.sum(1))
    close(vmap(lambda x: taeda.ones(2))(a), taeda.ones(4, 2))
    first, second = vmap(lambda x: (x.sum(), x.view(3, 1)), out_dims=(0, 1))(a)
    assert first.shape == (4,)
    assert second.shape == (3, 4, 1)
    close(vmap(vmap(lambda x, y: x * y, in_dims=(0, None)), in_dims=(None, 0))(a[0], a[1]), taeda.outer(a[1], a[0]))


def test_vmap_promotes_as_a_single_example_does():
    x, y = taeda.ones(3, dtype=taeda.float64), taeda.ones(3, 2)
    assert vmap(lambda a, b: a * b)(x, y).dtype == taeda.float32
    assert vmap(lambda a: a * taeda.ones(2, dtype=taeda.int64))(x).dtype == taeda.float64


def test_vmap_with_views_and_writes():
    x = taeda.randn(4, 3)

    def g(a):
        out = taeda.zeros_like(a)
        out[0] = a[1] * 2
        out[1:].add_(a[1:])
        flat = a.new_zeros(3)
        flat.copy_(out)
        return flat

    want = taeda.zeros(4, 3)
    want[:, 0] = x[:, 1] * 2
    want[:, 1:] += x[:, 1:]
    close(vmap(g)(x), want)
    plain = taeda.zeros(3)
    with pytest.raises(RuntimeError, match="not possible"):
        vmap(lambda a: plain.add_(a))(x)
    assert plain.tolist() == [0.0] * 3


def test_vmap_indexing():
    x, i = taeda.randn(4, 5, 2), taeda.tensor([0, 2, 1, 4])
    close(vmap(lambda a, k: a[k])(x, i[:, None]), x[taeda.arange(4), i][:, None])
    close(vmap(lambda a: a[1:3, ::2])(x), x[:, 1:3, ::2])
    close(vmap(lambda a: a[taeda.tensor([2, 0])])(x), x[:, [2, 0]])
    close(vmap(lambda k: x[0][k])(i[:, None]), x[0][i[:, None]])
    close(vmap(lambda a, k: a[k])(x, i), x[taeda.arange(4), i])
    close(vmap(lambda k: x[0][k])(i), x[0][i])
    close(vmap(lambda k: vmap(lambda j: x[j, k])(taeda.arange(4)))(i), x[:, i].transpose(0, 1))
    close(vmap(lambda a, k: a[..., k % 2])(x, i), x[taeda.arange(4), :, i % 2])
    close(vmap(lambda a, k: a[None, k, :, None])(x, i), x[taeda.arange(4), i][:, None, :, None])
    close(vmap(lambda a, k: a[k, k % 2])(x, i), x[taeda.arange(4), i, i % 2])

    def put(a, k):
        a = a.clone()
        a[k] = 7.0
        return a

    close(vmap(put)(x, i), x.index_put((taeda.arange(4), i), taeda.tensor(7.0)))


def test_vmap_refuses_what_depends_on_data():
    x = taeda.randn(4, 3)
    for function in (
        lambda a: a.sum().item(),
        lambda a: a if a.sum() > 0 else -a,
        lambda a: float(a[0]),
        lambda a: a.numpy(),
    ):
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(function)(x)
    with pytest.raises(RuntimeError, match="different size"):
        vmap(lambda a: a.bincount())(taeda.tensor([[1, 2], [3, 3]]))
    for name in ("unique", "unique_consecutive"):  # also where the results of these examples have equal sizes
        for same in (x, taeda.ones(2, 3)):
            with pytest.raises(RuntimeError, match="size depends on values"):
                vmap(lambda a, name=name: getattr(a, name)())(same)
    with pytest.raises(RuntimeError, match="size depends on values"):
        vmap(lambda a: a.masked_select(a == a))(x)
    assert vmap(lambda a: a.masked_select(taeda.tensor([True, False, True])))(x).equal(x[:, ::2])
    with pytest.raises(ValueError, match="same size"):
        vmap(lambda a, b: a)(x, taeda.ones(3))
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda a: 3)(x)
    with pytest.raises(ValueError, match="no inputs"):
        vmap(lambda: 3)()
    with pytest.raises(RuntimeError, match="inside vmap"):
        vmap(lambda a: taeda.autograd.backward((a * taeda.ones(3, requires_grad=True)).sum()))(x)
    assert taeda._core.mode_stack() == []


def test_what_escapes_vmap_has_no_values():
    kept = []
    vmap(lambda a: kept.append(a) or a * 2)(taeda.randn(4, 3))
    assert kept[0].shape == (0,)


def test_vmap_and_randomness():
    x = taeda.zeros(4, 3)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda a: a + taeda.rand(3))(x)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda a: taeda.rand_like(a))(x)
    same = vmap(lambda a: taeda.rand_like(a), randomness="same")(x)
    assert same.eq(same[0]).all()
    different = vmap(lambda a: taeda.rand_like(a), randomness="different")(x)
    assert not different.eq(different[0]).all()


def test_gradients_per_example():
    taeda.manual_seed(0)
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 5), taeda.nn.Tanh(), taeda.nn.Linear(5, 2))
    params = {k: v.detach() for k, v in model.named_parameters()}
    x, y = taeda.randn(6, 3), taeda.tensor([0, 1, 1, 0, 1, 0])

    def loss(params, x, y):
        return taeda.nn.functional.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))

    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(6):
        one = grad(loss)(params, x[i], y[i])
        for name, g in one.items():
            close(each[name][i], g)


def test_gradients_mix_examples_only_where_they_should():
    x, w = taeda.randn(4, 3, dtype=taeda.float64), X
    per_example = vmap(grad(lambda w, x: (x * w).sin().sum()), in_dims=(None, 0))(w, x)
    close(per_example, x * (x * w).cos())
    total = grad(lambda w: vmap(lambda x: (x * w).sin().sum())(x).sum())(w)
    close(total, per_example.sum(0))
    leaf = w.clone().requires_grad_()
    vmap(lambda x: (x * leaf).sin().sum())(x).sum().backward()
    close(leaf.grad, total)
    with pytest.raises(RuntimeError, match="would mix the examples"):
        vmap(lambda x: taeda.autograd.grad((x * leaf).sum(), leaf)[0])(x)


def test_vmap_around_and_inside_jacobians():
    xs = taeda.randn(4, 3, dtype=taeda.float64)
    close(vmap(jacrev(f))(xs), taeda.stack([jacrev(f)(x) for x in xs]))
    close(vmap(jacfwd(f))(xs), taeda.stack([jacrev(f)(x) for x in xs]))
    g = lambda x: (x**3).prod() + x.sin().sum()  # noqa: E731
    close(vmap(hessian(g))(xs), taeda.stack([hessian(g)(x) for x in xs]))
    close(jacrev(lambda xs: vmap(g)(xs))(xs), taeda.func.jacfwd(lambda xs: vmap(g)(xs))(xs))
    _out, tangents = vmap(lambda x, v: jvp(f, (x,), (v,)))(xs, xs)
    close(tangents, taeda.stack([jvp(f, (x,), (x,))[1] for x in xs]))


def test_vmap_of_functions():
    class Cube(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    class WithRule(Cube):
        @staticmethod
        def vmap(info, in_dims, x):
            assert info.batch_size == 4
            return WithRule.apply(x), 0

    xs = taeda.randn(4, 3, dtype=taeda.float64)
    for function in (Cube, WithRule):
        close(vmap(function.apply)(xs), xs**3)
        close(vmap(grad(lambda x, function=function: function.apply(x).sum()))(xs), 3 * xs**2)


def test_ensembles():
    models = [taeda.nn.Linear(3, 2) for _ in range(5)]
    params, _buffers = stack_module_state(models)
    assert params["weight"].shape == (5, 2, 3)
    x = taeda.randn(7, 3)
    out = vmap(lambda p: functional_call(models[0], p, (x,)))(params)
    close(out, taeda.stack([m(x) for m in models]))
    out.sum().backward()
    close(params["bias"].grad, taeda.full((5, 2), 7.0))
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([models[0], taeda.nn.ReLU()])
    with pytest.raises(ValueError, match="multiple dictionaries"):
        functional_call(models[0], [params, params], (x,))


def test_functional_call_takes_any_tensor_of_a_module_and_gives_what_was_assigned():
    class Counter(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", taeda.zeros(1))
            self.scale, self.name = taeda.ones(1), "counter"

        def forward(self, x):
            self.count = self.count + 1
            return x * self.scale + self.count + getattr(self, "extra", 0)

    module, state = Counter(), {"count": taeda.tensor([2.0])}
    x = taeda.ones(1)
    assert functional_call(module, state, x).item() == 4 and state["count"].item() == 3 and module.count.item() == 0
    others = {"scale": taeda.full((1,), 10.0), "extra": taeda.full((1,), 100.0), "count": taeda.zeros(1)}
    assert functional_call(module, others, x).item() == 111
    assert module.scale.item() == 1 and not hasattr(module, "extra")
    with pytest.raises(TypeError, match="attribute `name`: 'counter' is not an instance of"):
        functional_call(module, {"scale": taeda.zeros(1), "name": x}, x)
    with pytest.raises(TypeError, match="3 is not an instance of"):
        functional_call(module, {"scale": 3}, x)
    with pytest.raises(AttributeError, match="no attribute `below`"):
        functional_call(module, {"scale": taeda.zeros(1), "below.x": x}, x)
    assert module.scale.item() == 1
    module.child = taeda.nn.Linear(1, 1)
    module.child.parent = module
    functional_call(module, {"child.parent.count": taeda.zeros(1)}, x, tie_weights=False)  # a module below itself
    assert module.count.item() == 0


SHARED = {  # derivatives with respect to what is the same for all examples, or for one of two vmaps
    "once": lambda x, t, u: jvp(lambda v: v.sin() * v, (x,), (t,))[1] * u,
    "one meets it": lambda x, t, u: jvp(lambda v: v.sin() * t, (x,), (u,))[1],
    "each meets one": lambda x, t, u: jvp(lambda v: (v.sin() * t) * (v.exp() * u), (x,), (x,))[1],
    "gradient": lambda x, t, u: grad(lambda v: ((v.sin() * t) * (v * u)).sum())(x),
    "one is mapped": lambda x, t, u: jvp(lambda v: v.sin() * t, (u,), (u,))[1],
    "two": lambda x, t, u: grad(lambda v, w: ((v * w) * t + v.exp() * (w * u)).prod(), argnums=(0, 1))(x, t)[0],
    "unused": lambda x, t, u: grad(lambda v, w: v.prod(), argnums=(0, 1))(x, t)[1] + u,
    "second": lambda x, t, u: hessian(lambda v: ((v.sin() * t) * (v.exp() * u)).cumsum(0).prod())(x),
    "jacrev": lambda x, t, u: jacrev(lambda v: (v.sin() * t).cumsum(0) + v * v * u)(x),
}


@pytest.mark.parametrize("name", SHARED)
def test_derivative_of_what_is_not_mapped(name):
    x, t, u = taeda.rand(3).double(), taeda.rand(2, 3).double(), taeda.rand(4, 3).double()
    function = SHARED[name]
    made = vmap(lambda t: vmap(lambda u: function(x, t, u))(u))(t)
    close(made, taeda.stack([taeda.stack([function(x, t[i], u[j]) for j in range(4)]) for i in range(2)]))


def test_what_is_not_mapped_is_computed_once():
    x, tangents = taeda.rand(3), taeda.rand(4, 3)
    drawn = []

    def noisy(x):
        drawn.append(taeda.rand_like(x))
        return x * drawn[-1]

    made = vmap(lambda t: jvp(noisy, (x,), (t,))[1], randomness="same")(tangents)
    assert len(drawn) == 1 and type(drawn[0]) is taeda.Tensor
    close(made, tangents * drawn[0])
    mean, var = taeda.zeros(3), taeda.ones(3)
    vmap(
        lambda t: jvp(lambda x: taeda.nn.functional.batch_norm(x, mean, var, training=True), (x.expand(2, 3),), (t,))[1]
    )(taeda.rand(4, 2, 3))
    close(mean, 0.1 * x)


def test_batch_norm_without_elements_under_vmap():
    mean = taeda.ones(2, 0)
    made = vmap(lambda x, m: taeda.nn.functional.batch_norm(x, m, m + 1, training=True))(taeda.ones(2, 0), mean)
    assert made.shape == (2, 0)
    assert vmap(taeda.nn.BatchNorm2d(3, track_running_stats=False))(taeda.rand(2, 0, 3, 4, 4)).shape == (2, 0, 3, 4, 4)


def test_control_flow():
    x = taeda.arange(3.0, requires_grad=True)
    y = taeda.cond(x.sum() > 2, lambda x: x * 2, lambda x: -x, (x,))
    y.sum().backward()
    assert y.tolist() == [0, 2, 4] and x.grad.tolist() == [2, 2, 2]
    assert taeda.cond(False, lambda: 1, lambda: 2) == 2
    n, total = taeda.while_loop(lambda n, s: n < 4, lambda n, s: (n + 1, s + n), (taeda.tensor(0), taeda.tensor(0)))
    assert (n.item(), total.item()) == (4, 6)
    with pytest.raises(RuntimeError, match="one element"):
        taeda.cond(x > 1, lambda: 1, lambda: 2)
    with pytest.raises(RuntimeError, match="takes 1 values and gives 2"):
        taeda.while_loop(lambda n: True, lambda n: (n, n), (1,))


@pytest.mark.parametrize("n", (1, 2, 5, 8))
@pytest.mark.parametrize("mode", ("pointwise", "generic"))
def test_associative_scan(n, mode):
    x = taeda.rand(3, n, 2, dtype=taeda.float64, requires_grad=True)
    y = associative_scan(lambda a, b: a + b, x, 1, combine_mode=mode)
    close(y, x.cumsum(1))
    (y * y).sum().backward()
    close(x.grad, taeda.autograd.grad((x.cumsum(1) ** 2).sum(), x)[0])
    close(associative_scan(taeda.mul, x, 1, reverse=True, combine_mode=mode), x.flip(1).cumprod(1).flip(1))
    # a linear recurrence h = a h + b, of pairs (a, b)
    pairs = associative_scan(
        lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x[:, :, 0], x[:, :, 1]), 1, combine_mode=mode
    )
    h = taeda.zeros(3, dtype=taeda.float64)
    for i in range(n):
        h = x[:, i, 0] * h + x[:, i, 1]
        close(pairs[1][:, i], h)
    with pytest.raises(ValueError, match="one size"):
        associative_scan(taeda.mul, (x, x[:, :0]), 1)


def _of_tuples(checkpoint, x):
    def f(pair, named, more):
        return {"a": pair[0] * pair[1], "b": (named["x"].sin(), more["y"] * 2)}

    made = checkpoint(f, (x, x * 2), {"x": x * 3}, more={"y": x * x})
    return made["a"].sum() + made["b"][0].sum() + made["b"][1].prod()


def _of_layers(checkpoint, x):
    w = taeda.linspace(-1, 1, 9).double().reshape(3, 3)

    def loss(w, x):
        return checkpoint(lambda w, x: (taeda.nn.functional.linear(x, w).tanh() * x).sum(), w, x)

    return vmap(grad(loss), (None, 0))(w, x)


RECOMPUTED = {  # functions of what stands for `checkpoint`, and of a batch
    "vmap": lambda c, x: vmap(lambda x: c(lambda x: x.sin() * x.exp(), x))(x),
    "grad": lambda c, x: grad(lambda x: c(lambda x: x.sin() * x.exp(), x).sum())(x),
    "vmap of grad": lambda c, x: vmap(grad(lambda x: c(lambda x: x.sin() * x.exp(), x).sum()))(x),
    "jacrev": lambda c, x: jacrev(lambda x: c(lambda x: x.sin() * x.exp(), x))(x[0]),
    "jvp": lambda c, x: jvp(lambda x: c(lambda x: x.sin() * x.exp(), x), (x,), (x,))[1],
    "hessian": lambda c, x: vmap(hessian(lambda x: c(lambda x: x.sin() * x.exp(), x).prod()))(x),
    "in itself": lambda c, x: vmap(grad(lambda x: c(lambda x: c(lambda y: (y * x).sin(), x * 2) * x, x).sum()))(x),
    "tuples and dicts": lambda c, x: vmap(grad(lambda x: _of_tuples(c, x)))(x),
    "one for all": _of_layers,
    "random": lambda c, x: vmap(
        grad(lambda x: c(lambda x: (x * taeda.rand_like(x)).sin(), x).sum()), randomness="different"
    )(x),
}


@pytest.mark.parametrize("name", RECOMPUTED)
def test_checkpoint(name):
    def plainly(f, *args, use_reentrant, **kwargs):
        return f(*args, **kwargs)

    made = []
    for keep in (checkpoint, plainly):
        taeda.manual_seed(0)
        x = (taeda.arange(12.0).double().reshape(4, 3) / 10).requires_grad_()
        out = RECOMPUTED[name](functools.partial(keep, use_reentrant=False), x)
        out.sum().backward()
        made.append((out.detach(), x.grad))
    close(*(m[0] for m in made))
    close(*(m[1] for m in made))


def test_registered_classes_are_trees_in_every_transformation():
    from collections import deque

    from taeda.utils._pytree import SUPPORTED_NODES, register_pytree_node

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda items, _: Pair(*items))
    try:
        x = taeda.arange(6.0).reshape(3, 2)
        made = taeda.func.vmap(lambda p: Pair(p.a.sum(), deque([p.b * 2])))(Pair(x, x))
        assert made.a.tolist() == [1.0, 5.0, 9.0] and (made.b[0] == x * 2).all()
        slopes = taeda.func.grad(lambda p: (p.a * p.b).sum())(Pair(x, x + 1))
        assert (slopes.a == x + 1).all() and (slopes.b == x).all()
    finally:
        del SUPPORTED_NODES[Pair]


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_a_mask_of_each_example_serves_all_of_its_batch(in_dims):
    """``vmap`` lays the examples' batches end to end: masks without a batch dimension are repeated."""
    query, mask = taeda.randn(3, 4, 2, 5, 8), taeda.randn(3, 5, 5)
    query, mask = (x if dim == 0 else x[0] for x, dim in zip((query, mask), in_dims, strict=True))

    def attend(q, m):
        return taeda.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=m)

    one_by_one = [
        attend(query if in_dims[0] is None else query[i], mask if in_dims[1] is None else mask[i]) for i in range(3)
    ]
    assert taeda.allclose(vmap(attend, in_dims)(query, mask), taeda.stack(one_by_one), atol=1e-6)


def test_vmap_of_an_encoder_clears_padding():
    """As each example alone does: at ends of sequences, not in a batch with gaps."""
    taeda.manual_seed(0)
    encoder = taeda.nn.TransformerEncoder(taeda.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    x, padding = taeda.randn(3, 2, 5, 8), taeda.zeros(3, 2, 5, dtype=taeda.bool)
    padding[:, 0, 3:] = True
    padding[1, 1, 1] = True
    with taeda.no_grad():
        got = taeda.func.vmap(lambda x, p: encoder(x, src_key_padding_mask=p))(x, padding)
        want = taeda.stack([encoder(a, src_key_padding_mask=p) for a, p in zip(x, padding, strict=True)])
    assert taeda.allclose(got, want, atol=1e-5) and not want[0, 0, 3:].any() and want[1, 0, 3:].any()


def test_foreach_map():
    a, b = [taeda.ones(2), taeda.ones(3)], (taeda.zeros(2), taeda.full((3,), 2.0))
    assert [x.tolist() for x in foreach_map(taeda.lerp, a, b, 0.5)] == [[0.5, 0.5], [1.5, 1.5, 1.5]]
    assert [x.tolist() for x in foreach_map(taeda.add, a, b, alpha=2)] == [[1.0, 1.0], [5.0, 5.0, 5.0]]
    assert foreach_map(taeda.add, a[0], 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("transform", ["grad", "jvp", "vjp", "jacrev"])
def test_what_a_function_captured_is_not_written(transform):
    c, w = taeda.zeros(3), taeda.ones(3, requires_grad=True)

    def run(write):
        def f(t):
            write(t)
            return (t * 2).sum()

        x = taeda.ones(3)
        return getattr(taeda.func, transform)(
            f, *(((x,), (x,)) if transform == "jvp" else (x,) if transform == "vjp" else ())
        )

    def call(write):
        made = run(write)
        return made(taeda.ones(3)) if callable(made) else made

    for write in (lambda t: c.copy_(t), lambda t: c.__setitem__(0, t[1]), lambda t: c.add_(t * 2)):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            call(write)
    assert not c.requires_grad and c.tolist() == [0, 0, 0]
    call(lambda t: c.add_(1))
    call(lambda t: taeda.zeros(3).copy_(t))
    call(lambda t: t.clone().mul_(t))
    call(lambda t: c.copy_(w))
    assert c.requires_grad


def test_outputs_that_are_no_floats_have_tangents_of_zeros():
    x = taeda.ones(2)
    out, tangent = taeda.func.jvp(lambda x: x == 1, (x,), (x,))
    assert out.tolist() == [True, True] and tangent.dtype is taeda.bool and tangent.tolist() == [False, False]
    _, tangents = taeda.func.jvp(lambda x: (x * 2, x > 1, x.argmax()), (x,), (x,))
    assert [t.tolist() for t in tangents] == [[2, 2], [False, False], 0]


@pytest.mark.parametrize("outer", ["grad", "jvp", "jacrev", "jacfwd", "hessian", "vmap", "dual"])
@pytest.mark.parametrize("inner", ["grad", "vjp", "jvp", "jacrev"])
def test_results_lead_to_no_inner_derivative(outer, inner):
    x = taeda.tensor([0.5, -1.0])

    def value(a, b):
        return (a * b).sin().sum()

    def derivative(b):  # with respect to a constant
        if inner == "grad":
            return grad(value)(x, b)
        if inner == "vjp":
            return vjp(value, x, b)[1](taeda.tensor(1.0))[0]
        if inner == "jvp":
            return jvp(lambda a: value(a, b), (x,), (x,))[1] * x
        return jacrev(value)(x, b)

    def results(b):
        if outer == "grad":
            return [grad(lambda b: derivative(b).sum())(b)]
        if outer == "jvp":
            return jvp(derivative, (b,), (x,))
        if outer == "vmap":
            return jvp(vmap(derivative), (b.expand(3, 2),), (b.expand(3, 2),))
        if outer == "dual":
            with taeda.autograd.forward_ad.dual_level():
                return taeda.autograd.forward_ad.unpack_dual(
                    derivative(taeda.autograd.forward_ad.make_dual(b, taeda.ones(2)))
                )
        return [{"jacrev": jacrev, "jacfwd": jacfwd, "hessian": hessian}[outer](derivative)(b)]

    assert not any(made.requires_grad for made in results(x))
    b = x.clone().requires_grad_()
    made = results(b)
    assert all(m.requires_grad for m in made)
    made[0].sum().backward()
    assert b.grad.abs().sum() > 0


@pytest.mark.parametrize("made", [None, (), {}])
def test_functions_without_a_result(made):
    x = taeda.ones(2)
    for call in (
        lambda f: taeda.func.jvp(f, (x,), (x,)),
        lambda f: taeda.func.vjp(f, x),
        lambda f: taeda.func.jacfwd(f)(x),
        lambda f: taeda.func.jacrev(f)(x),
    ):
        with pytest.raises(RuntimeError):
            call(lambda x: made)


def test_types_of_the_errors_of_arguments():
    x = taeda.ones(3)
    for name in ("grad", "jacrev", "jacfwd", "hessian"):
        with pytest.raises(RuntimeError, match="argnums"):
            getattr(taeda.func, name)(lambda a, b: (a * b).sum(), argnums=(0, "1"))(x, x)
    with pytest.raises(RuntimeError, match="Tensors"):
        taeda.func.jvp(lambda a: a * 2, (1.0,), (x,))
    with pytest.raises(ValueError, match="operand"):
        taeda.einsum("", [])


def test_transforms_record_within_inference_mode():
    x, c = t(1.0, 2.0), None

    def f(x):
        return (x**2 * c).sum()

    with taeda.inference_mode():
        c = t(3.0, 4.0)  # an inference tensor, which the derivative saves
        for given in (x, x * 1):
            assert grad(f)(given).tolist() == [6.0, 16.0]
            assert vjp(f, given)[1](t(1.0)[0])[0].tolist() == [6.0, 16.0]
            assert jacrev(lambda x: x * c)(given).tolist() == [[3.0, 0.0], [0.0, 4.0]]
            assert hessian(f)(given).tolist() == [[6.0, 0.0], [0.0, 8.0]]
            assert vmap(grad(f))(given[None]).tolist() == [[6.0, 16.0]]
            assert grad(lambda x: grad(f)(x).sum())(given).tolist() == [6.0, 8.0]
        assert taeda.is_inference_mode_enabled() and not taeda.is_grad_enabled()
        given = [grad(f)(x), vjp(f, x)[1](t(1.0)[0])[0], jacrev(lambda x: x * c)(x)]
        given += [*jvp(lambda x: x * c, (x,), (x,)), jacfwd(lambda x: x * c)(x), hessian(f)(x)]

        def stopped(x):
            with taeda.no_grad():
                scale = x.sum()
            return (x * scale).sum()

        assert grad(stopped)(x).tolist() == [3.0, 3.0]
        inside = []
        grad(lambda x: (inside.append(taeda.is_inference_mode_enabled()), x.sum())[1])(x)
        assert inside == [False] and t(1.0).is_inference()

    w = t(1.0, 1.0).requires_grad_()
    for g in given:  # plain tensors, as PyTorch's
        (g * w).sum().backward()
        g.add_(1)
