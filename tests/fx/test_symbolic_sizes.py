"""``make_fx(tracing_mode="symbolic")``: graphs for other sizes than those of the example, as PyTorch's."""

import math
import operator
import warnings

import pytest

import taeda
from taeda import nn
from taeda.fx.experimental._sizes import assert_scalar, sym_size
from taeda.fx.experimental.proxy_tensor import make_fx

torch = pytest.importorskip("torch")
torch_make_fx = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx

SIZES = (5, 6), (2, 7), (8, 3)


def tensor(t, *sizes):
    return (t.arange(sizes[0] * sizes[1], dtype=t.float32).reshape(*sizes) / 7).sin()


def slope(t, f, x):
    return t.func.grad(f)(x)


PROGRAMS = {
    "view": lambda t, x: x.view(x.shape[0] * x.shape[1]),
    "number": lambda t, x: x / x.shape[0],
    "zeros": lambda t, x: t.zeros(x.size(0), x.size(-1) + 1),
    "numel": lambda t, x: x.sum() * x.numel() + x.nelement(),
    "arange": lambda t, x: t.arange(x.shape[0]) + t.arange(0, 2 * x.shape[0], 2),
    "expand": lambda t, x: x.mean(0).expand(x.shape),
    "repeat": lambda t, x: x.repeat(x.shape[0], 1),
    "slice": lambda t, x: x[x.shape[0] // 2 :, : x.shape[1] - 1],
    "split": lambda t, x: x.split([1, x.shape[0] - 1]),
    "power": lambda t, x: t.softmax(x @ x.t() / x.shape[-1] ** 0.5, -1) @ x,
    "strides": lambda t, x: x.as_strided((x.shape[0],), (x.stride(0),)),
    "norm": lambda t, x: t.nn.functional.layer_norm(x, x.shape[1:]),
    "pad": lambda t, x: t.nn.functional.pad(x, (0, x.shape[0])),
    "resample": lambda t, x: t.nn.functional.interpolate(x[None, None], size=(x.shape[0] * 2, x.shape[1] + 3)),
    "square root": lambda t, x: x * math.sqrt(x.shape[0]) / math.sqrt(2 * x.shape[1]),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "full": lambda t, x: t.full((x.shape[1],), float(x.shape[0])),
    "intermediate": lambda t, x: t.cat([x, x])[1:] / t.cat([x, x])[1:].shape[0],
    "in place": lambda t, x: x.clone().mul_(x.shape[0]).unsqueeze_(0) + x.dim(),
    "mask": lambda t, x: t.ones(x.shape[1], x.shape[1]).tril() @ x.t(),
    "sizes": lambda t, x: [x.sum(), x.shape[0] * 2, x.shape],
    "rest": lambda t, x: x.roll(x.shape[0] % 3, 0) * max(x.shape[0], 1),
    "vmap": lambda t, x: t.func.vmap(lambda row: row / row.shape[0])(x),
    "slope of sum": lambda t, x: slope(t, lambda x: x.sum(), x),
    "slope of mean": lambda t, x: slope(t, lambda x: (x * x).mean(), x),
    "slope of squares": lambda t, x: slope(t, lambda x: (x @ x.t()).mean(), x),
    "slope of variance": lambda t, x: slope(t, lambda x: x.var(), x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_graph_at_other_sizes(name):
    f = PROGRAMS[name]
    graph = make_fx(lambda x: f(taeda, x), tracing_mode="symbolic")(tensor(taeda, 3, 4))
    for sizes in SIZES:
        found, wanted = taeda.utils._pytree.tree_leaves(graph(tensor(taeda, *sizes))), f(torch, tensor(torch, *sizes))
        wanted = torch.utils._pytree.tree_leaves(wanted)
        for x, y in zip(found, wanted, strict=True):
            if not isinstance(y, torch.Tensor):
                assert x == y
                continue
            assert x.shape == y.shape
            assert str(x.dtype).split(".")[1] == str(y.dtype).split(".")[1]
            torch.testing.assert_close(torch.tensor(x.tolist(), dtype=y.dtype), y, rtol=1e-4, atol=1e-6)


def test_the_steps_are_those_of_pytorch():
    def f(x):
        return x.view(x.shape[0] * x.shape[1])

    graph, other = (
        made(f, tracing_mode="symbolic")(x).graph
        for made, x in ((make_fx, taeda.ones(3, 4)), (torch_make_fx, torch.ones(3, 4)))
    )
    assert [n.name.removesuffix("_int").replace("_int_", "_") for n in other.nodes] == [n.name for n in graph.nodes]
    assert [n.target for n in graph.nodes][1:4] == [sym_size, sym_size, operator.mul]


@pytest.mark.parametrize(
    ("f", "fits"),
    [
        (lambda x: x + 1 if x.shape[0] > 2 else x - 1, [True, False, True]),
        (lambda x: x + 1 if x.shape[0] % 2 else x - 1, [True, False, False]),
        (lambda x: x + 1 if len(x) > 4 else x - 1, [False] * 3),  # the number itself is not followed
        (lambda x: x + 1 if len(x) % 2 else x - 1, [False] * 3),
        (lambda x: sum(x[i] for i in range(x.shape[0])), [False] * 3),
        (lambda x: sum([*x]), [False] * 3),
        (lambda x: x * taeda.tensor([1.0] * x.shape[0])[:, None], [False] * 3),
        (lambda x: x * 2.0 ** int(x.shape[0]), [False] * 3),
        (lambda x: x @ taeda.ones(4, 2), [False] * 3),
    ],
)
def test_sizes_for_which_the_program_is_another_one(f, fits):
    graph = make_fx(f, tracing_mode="symbolic")(tensor(taeda, 3, 4))
    for sizes, fit in zip(((3, 4), *SIZES), (True, *fits), strict=True):
        x = tensor(taeda, *sizes)
        if fit:
            assert taeda.equal(graph(x), f(x))
        else:
            with pytest.raises(RuntimeError, match=r"the program was recorded for sizes with x_1\.shape"):
                graph(x)


def test_sizes_of_several_inputs():
    def f(x, y):
        return taeda.func.grad(lambda x: (x * y).mean())(x) * (x.shape[0] + y.shape[1])

    graph = make_fx(f, tracing_mode="symbolic")(tensor(taeda, 3, 4), tensor(taeda, 3, 4))
    for sizes in SIZES:
        x, y = tensor(taeda, *sizes), tensor(taeda, *sizes).cos()
        assert taeda.allclose(graph(x, y), f(x, y))
    with pytest.raises(RuntimeError, match=r"y_1.shape\[0\] == x_1.shape\[0\]"):
        graph(tensor(taeda, 3, 4), tensor(taeda, 1, 4))
    product = make_fx(lambda x, y: x @ y / y.shape[0], tracing_mode="symbolic")(
        tensor(taeda, 4, 4), tensor(taeda, 4, 4)
    )
    assert product(taeda.ones(2, 3), taeda.ones(3, 5)).equal(taeda.ones(2, 5))


def test_a_size_of_one_that_is_broadcast_is_refused():
    def f(x):
        return taeda.func.grad(lambda y: (x * y).sum())(taeda.zeros(x.shape))

    def g(x, y):
        return taeda.autograd.grad((x[:, :1] * y).sum(), y)[0]

    x = tensor(taeda, 3, 4)
    assert make_fx(f, tracing_mode="symbolic")(x)(x[:1]).equal(x[:1])
    y = tensor(taeda, 3, 4).requires_grad_()
    graph = make_fx(g, tracing_mode="symbolic")(x, y)
    try:
        assert graph(x[:1], y).equal(g(x[:1], y))
    except RuntimeError as error:
        assert "make_fx: the program was recorded for sizes with" in str(error)


def test_what_the_function_writes_is_written_once():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten())
    model(taeda.rand(2, 2, 5, 5))
    mean, count = model[1].running_mean.clone(), model[1].num_batches_tracked.clone()
    x, state = taeda.rand(2, 2, 5, 5), taeda.get_rng_state()
    graph = make_fx(model, tracing_mode="symbolic")(x)
    assert model[1].num_batches_tracked == count + 1
    assert taeda.get_rng_state().equal(state)
    assert not model[1].running_mean.equal(mean)
    other = taeda.rand(4, 2, 6, 7)
    assert taeda.allclose(graph(other), model(other))
    with pytest.raises(RuntimeError, match=r"shape\[1\] == 2"):
        graph(taeda.rand(4, 3, 6, 7))


def test_other_modes_have_the_numbers_of_the_example():
    for mode in ("real", "fake"):
        graph = make_fx(lambda x: x / x.shape[0], tracing_mode=mode)(taeda.ones(3))
        assert graph(taeda.ones(6)).equal(taeda.ones(6) / 3)
        assert not any(n.target in (sym_size, assert_scalar) for n in graph.graph.nodes)


def test_sizes_in_a_branch():
    def f(x):
        return taeda.cond(x.sum() > 0, lambda x: x / x.shape[0], lambda x: x * x.shape[1], (x,))

    graph = make_fx(f, tracing_mode="symbolic")(taeda.ones(3, 4))
    for x in (taeda.ones(5, 6), -taeda.ones(2, 7)):
        assert taeda.allclose(graph(x), f(x))


def test_the_size_of_a_selection():
    def f(x):
        y = x[x > 0]
        return y / y.shape[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = make_fx(f, tracing_mode="symbolic")(taeda.tensor([1.0, -1.0, 2.0]))
    x = taeda.tensor([1.0, 5.0, 2.0, -3.0])
    assert graph(x).equal(f(x))
