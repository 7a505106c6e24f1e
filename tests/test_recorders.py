"""Ops of libraries, in NumPy, are one step of what ``make_fx`` and ``jit.trace`` record, as in PyTorch."""

from __future__ import annotations

import importlib
import io
import warnings

import numpy as np
import pytest

import taeda
import taeda.export
import taeda.library

torch = pytest.importorskip("torch")


def declared(t):
    """Ops of a library in package ``t``, and a function of them."""
    define = t.library.custom_op

    @define("recorded::wave", mutates_args=(), schema="(Tensor x, int n=2) -> Tensor")
    def wave(x, n=2):
        return t.from_numpy(np.sin(x.detach().numpy()) * n)

    @define("recorded::add_", mutates_args={"x"}, schema="(Tensor(a!) x) -> ()")
    def add_(x):
        x.numpy()[...] += 1

    @define("recorded::two", mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)")
    def two(x):
        return x.clone(), t.from_numpy(np.cos(x.numpy()))

    @define("recorded::parts", mutates_args=(), schema="(Tensor x, SymInt[] sizes, Tensor? more=None) -> Tensor[]")
    def parts(x, sizes, more=None):
        return [t.from_numpy(x.numpy() * n) for n in sizes]

    wave.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.n, None),
        setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "n", inputs[1])),
    )

    def f(x):
        y, z = wave(x, n=3) + wave(x), x.clone()
        add_(z)
        a, b = two(x)
        c, d = parts(x, [2, 3])
        return y * 2 + z + a + b + c + d

    return f, wave


@pytest.fixture(scope="module")
def pairs():
    """The function and the op, here and in PyTorch."""
    return declared(taeda), declared(torch)


def recorded(t, f, *args):
    """The module of ``make_fx`` in package ``t``."""
    return importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor").make_fx(f)(*args)


def steps(module):
    """The steps that call an op of the library: name, op, arguments."""
    calls = [n for n in module.graph.nodes if "recorded." in str(n.target)]
    return [(n.name, str(n.target), str(n.args), str(n.kwargs)) for n in calls]


def test_make_fx(pairs):
    (ours, _), (theirs, _) = pairs
    x, other = taeda.rand(3), taeda.rand(3)
    module = recorded(taeda, ours, x)
    assert steps(module) == steps(recorded(torch, theirs, torch.rand(3)))
    np.testing.assert_allclose(module(other), theirs(torch.from_numpy(other.numpy())), rtol=1e-6)


def test_gradients_in_make_fx(pairs):
    (_, ours), (_, theirs) = pairs

    def gradient(t, op):
        return lambda x: t.autograd.grad((op(x) * op(x, 3)).sum(), x)[0]

    x, other = taeda.rand(3, requires_grad=True), taeda.rand(3, requires_grad=True)
    module = recorded(taeda, gradient(taeda, ours), x)
    given = torch.from_numpy(other.detach().numpy()).requires_grad_()
    assert steps(module) == steps(recorded(torch, gradient(torch, theirs), given))
    np.testing.assert_allclose(module(other).detach(), gradient(torch, theirs)(given), rtol=1e-5)


def test_trace(pairs):
    (ours, _), (theirs, _) = pairs
    other = taeda.rand(3)
    want = theirs(torch.from_numpy(other.numpy()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", taeda.jit.TracerWarning)
        traced = taeda.jit.trace(ours, taeda.rand(3))
    found = [n.kind() for n in traced.graph.nodes() if n.kind().startswith("recorded::")]
    there = torch.jit.trace(theirs, torch.rand(3)).graph
    assert found == [n.kind() for n in there.nodes() if n.kind().startswith("recorded::")]
    file = io.BytesIO()
    taeda.jit.save(traced, file)
    for load in (taeda.jit.load, torch.jit.load):
        given = other if load is taeda.jit.load else torch.from_numpy(other.numpy())
        np.testing.assert_allclose(load(io.BytesIO(file.getvalue()))(given), want, rtol=1e-6)
    np.testing.assert_allclose(traced(other), want, rtol=1e-6)


@pytest.mark.parametrize("t", [taeda, torch], ids=["taeda", "torch"])
def test_what_stands_for_its_ops_is_recorded_as_these(t):
    library = t.library.Library("recorded", "FRAGMENT")
    for name, key in (("whole", "CPU"), ("open", "CompositeImplicitAutograd")):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x.sin() + 1, key)
    ops = t.library.ops.recorded if t is taeda else t.ops.recorded
    called = [n.name for n in recorded(t, lambda x: ops.open(x) + ops.whole(x), t.rand(2)).graph.nodes]
    assert called == ["x_1", "sin", "add", "whole", "add_1", "output"]


@pytest.mark.parametrize("t", [taeda, torch], ids=["taeda", "torch"])
def test_numbers_that_an_op_gives(t):
    """A constant in ``make_fx``; ``jit.trace`` refuses them."""

    @t.library.custom_op("recorded::size_of", mutates_args=(), schema="(Tensor x) -> int")
    def size_of(x):
        return x.numel()

    def f(x):
        return x * size_of(x)

    module = recorded(t, f, t.ones(3))
    assert module(t.arange(3.0)).tolist() == [0, 3, 6]
    with pytest.raises(RuntimeError, match="recorded::size_of"):
        t.jit.trace(f, t.ones(3))


def nested(t):
    """An op that gives a list beside a tensor, and a model of it."""

    def pair(x):
        return x * 1, [x * 2, x * 3]

    schema = "(Tensor x) -> (Tensor, Tensor[])"
    op = t.library.custom_op("recorded::pair", pair, mutates_args=(), schema=schema)
    op.register_fake(lambda x: (t.empty_like(x), [t.empty_like(x), t.empty_like(x)]))

    class Model(t.nn.Module):
        def forward(self, x):
            a, b = op(x)
            return a + b[0] * b[1]

    return Model()


def test_lists_beside_other_results():
    here, there = nested(taeda), nested(torch)
    x = taeda.rand(4, 2)
    for mode in ("real", "symbolic", "fake"):
        make_fx = importlib.import_module("taeda.fx.experimental.proxy_tensor").make_fx
        assert make_fx(here, tracing_mode=mode)(taeda.rand(2, 3))(x).equal(here(x))
    with pytest.raises(NotImplementedError, match="recorded::pair gives a list of tensors beside"):
        taeda.export.export(here, (x,))
    file = io.BytesIO()
    torch.export.save(torch.export.export(there, (torch.rand(4, 2),)), file)
    assert taeda.export.load(io.BytesIO(file.getvalue())).module()(x).equal(here(x))
