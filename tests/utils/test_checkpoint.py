"""Checkpointing, both variants: same gradients, fewer saved tensors, same random numbers, functions that change."""

import contextlib
import gc

import pytest

import taeda
from taeda import autograd
from taeda.autograd.graph import saved_tensors_hooks
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def leaf(*shape):
    taeda.manual_seed(1)
    return taeda.randn(*shape, dtype=taeda.float64).requires_grad_()


def block(x, w):
    return (x @ w).tanh().exp() * 0.5


def expected(x, w):
    return autograd.grad(block(block(x, w), w).sum(), [x, w])


@pytest.mark.parametrize("reentrant", [True, False, None])
def test_same_gradients(reentrant):
    x, w = leaf(3, 4), leaf(4, 4)
    y = checkpoint(block, x, w, use_reentrant=reentrant)
    y = checkpoint(block, y, w, use_reentrant=reentrant)
    assert y.tolist() == block(block(x, w), w).tolist()
    y.sum().backward()
    for got, want in zip((x.grad, w.grad), expected(x, w), strict=True):
        assert got.tolist() == want.tolist()


def test_a_layer_with_state_runs_twice():
    """Once forwards and once for the gradients, where two derivatives of a quotient ask for its denominator."""
    found = []
    for reentrant in (True, False):
        taeda.manual_seed(0)
        layer = taeda.nn.utils.spectral_norm(taeda.nn.Linear(4, 4, dtype=taeda.float64))
        checkpoint(layer, leaf(3, 4), use_reentrant=reentrant).sum().backward()
        found.append((layer.weight_u.tolist(), layer.weight_orig.grad.tolist()))
    assert found[0] == found[1]


def count_saved(function):
    """Tensors kept alive by the graph of ``function``, and the function's result."""
    alive = []

    class Token:
        def __init__(self, t):
            self.t = t
            alive.append(1)

        def __del__(self):
            alive.pop()

    with saved_tensors_hooks(Token, lambda token: token.t):
        y = function()
    return len(alive), y


def test_fewer_tensors_are_kept():
    x, w = leaf(3, 4), leaf(4, 4)
    plain, _ = count_saved(lambda: block(block(x, w), w))
    gc.collect()
    kept, y = count_saved(lambda: checkpoint(lambda a: block(block(a, w), w), x, use_reentrant=False))
    assert (plain, kept) == (8, 1)
    y.sum().backward()
    assert x.grad.tolist() == expected(x, w)[0].tolist()


def test_nested():
    x, w = leaf(3, 4), leaf(4, 4)
    runs = []

    def inner(a):
        runs.append("inner")
        return block(a, w)

    def outer(a):
        runs.append("outer")
        return checkpoint(inner, checkpoint(inner, a, use_reentrant=False), use_reentrant=False)

    kept, y = count_saved(lambda: checkpoint(outer, x, use_reentrant=False))
    assert kept == 1
    y.sum().backward()
    assert x.grad.tolist() == expected(x, w)[0].tolist()
    assert runs[:3] == ["outer", "inner", "inner"]


def test_grad_and_second_derivatives():
    x, w = leaf(3, 4), leaf(4, 4)

    def f(x, w):
        return checkpoint(block, checkpoint(block, x, w, use_reentrant=False), w, use_reentrant=False)

    got = autograd.grad(f(x, w).sum(), [x, w])
    for a, b in zip(got, expected(x, w), strict=True):
        assert a.tolist() == b.tolist()
    x, w = leaf(1, 2), leaf(2, 2)
    assert autograd.gradcheck(f, (x, w))
    assert autograd.gradgradcheck(f, (x, w))
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\)"):
        autograd.grad(checkpoint(block, x, w, use_reentrant=True).sum(), x)


def test_graph_kept():
    x, w = leaf(3, 4), leaf(4, 4)
    y = checkpoint(block, checkpoint(block, x, w, use_reentrant=False), w, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == (expected(x, w)[0] * 2).tolist()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_repeat(reentrant):
    x = leaf(50, 4)

    def noisy(a):
        return (a * taeda.rand_like(a)).sin()

    taeda.manual_seed(5)
    checkpoint(noisy, x, use_reentrant=reentrant).sum().backward()
    after = taeda.rand(1).item()
    taeda.manual_seed(5)
    (want,) = autograd.grad(noisy(x).sum(), x)
    assert x.grad.tolist() == want.tolist()
    assert taeda.rand(1).item() == after


def test_random_numbers_may_be_left_alone():
    x = leaf(5)
    taeda.manual_seed(5)
    checkpoint(lambda a: a * taeda.rand_like(a), x, use_reentrant=False, preserve_rng_state=False).sum().backward()
    taeda.manual_seed(5)
    first = taeda.rand(5, dtype=taeda.float64)
    assert x.grad.tolist() != first.tolist()


def test_arguments_of_all_kinds():
    x = leaf(3)

    def f(a, scale, *, options, other):
        return {"out": a * scale * options["factor"] + other}

    y = checkpoint(f, x, 2, options={"factor": 3}, other=x, use_reentrant=False)["out"]
    y.sum().backward()
    assert x.grad.tolist() == [7.0] * 3
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(f, x, 2, other=x, use_reentrant=True)


def test_the_second_run_stops_early():
    x = leaf(3)
    runs = []

    def f(a):
        y = a.exp()
        runs.append("reached the end")
        return y + 1

    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert len(runs) == 1
    with set_checkpoint_early_stop(False):
        checkpoint(f, x, use_reentrant=False).sum().backward()
    assert len(runs) == 3


def test_functions_that_change_are_noticed():
    x = leaf(3)
    calls = []

    def changes(a):
        calls.append(1)
        return a.exp() if len(calls) % 2 else a * 2.0

    with pytest.raises(CheckpointError, match="different number of tensors"):
        checkpoint(changes, x, use_reentrant=False).sum().backward()
    calls.clear()

    def reshapes(a):
        calls.append(1)
        return (a if len(calls) % 2 else a[:2]).exp().sum()

    y = checkpoint(reshapes, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.backward()
    assert taeda.is_grad_enabled()
    calls.clear()
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="forward saved"):
        checkpoint(changes, x, use_reentrant=False).sum().backward()


def test_errors_pass_through():
    x = leaf(3)

    def fails(a):
        raise KeyError("on purpose")

    for reentrant in (True, False):
        with pytest.raises(KeyError, match="on purpose"):
            checkpoint(fails, x, use_reentrant=reentrant)
        assert taeda.is_grad_enabled()
        x.exp().sum().backward()


def test_the_default_warns():
    x = leaf(3)
    with pytest.warns(UserWarning, match=r"checkpoint: expected use_reentrant to be given") as seen:
        y = checkpoint(lambda a: a.exp(), x)
    assert len(seen) == 1 and seen[0].filename == __file__
    with pytest.warns(UserWarning, match="checkpoint_sequential: expected use_reentrant") as seen:
        z = checkpoint_sequential([taeda.exp] * 3, 3, x)
    assert len(seen) == 1
    (y.sum() + z.sum()).backward()
    assert taeda.isfinite(x.grad).all()


def test_contexts():
    import contextlib

    order = []

    @contextlib.contextmanager
    def note(name):
        order.append(name)
        yield

    checkpoint(
        lambda a: a.exp(), leaf(3), use_reentrant=False, context_fn=lambda: (note("first"), note("second"))
    ).sum().backward()
    assert order == ["first", "second"]
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(lambda a: a, leaf(3), use_reentrant=True, context_fn=lambda: (note("a"), note("b")))


def test_without_recording_it_is_a_call():
    with taeda.no_grad():
        y = checkpoint(lambda a: a.exp(), leaf(3), use_reentrant=False)
    assert not y.requires_grad


@pytest.mark.parametrize("reentrant", [True, False])
def test_sequential(reentrant):
    x, w = leaf(3, 4), leaf(4, 4)
    layers = [lambda a: block(a, w)] * 5
    y = checkpoint_sequential(layers, 2, x, use_reentrant=reentrant)
    want = x
    for layer in layers:
        want = layer(want)
    assert y.tolist() == want.tolist()
    y.sum().backward()
    (gradient,) = autograd.grad(want.sum(), x)
    assert x.grad.tolist() == gradient.tolist()


def test_nothing_is_left_behind():
    x, w = leaf(3, 4), leaf(4, 4)
    gc.collect()
    gc.disable()
    try:

        def step():
            checkpoint(lambda a: checkpoint(block, a, w, use_reentrant=False), x, use_reentrant=False).sum().backward()
            x.grad = w.grad = None

        for _ in range(3):
            step()
        before = len(gc.get_objects())
        for _ in range(50):
            step()
        assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("cached", [True, False])
def test_the_second_run_has_the_precision_of_the_first(reentrant, cached):
    taeda.manual_seed(0)
    layer = taeda.nn.Linear(4, 4)
    x = taeda.randn(2, 4, requires_grad=True)

    def part(x):
        return layer(layer(x).relu())

    gradients = []
    for run in (part, lambda x: checkpoint(part, x, use_reentrant=reentrant)):
        with taeda.autocast("cpu", dtype=taeda.bfloat16, cache_enabled=cached):
            y = layer(run(x))  # a use before or after fills the cache
            with taeda.autocast("cpu", enabled=False):
                y = y.float() + run(x)
        y.sum().backward()
        gradients.append([p.grad.tolist() for p in (x, layer.weight, layer.bias)])
        for p in (x, layer.weight, layer.bias):
            p.grad = None
    for got, want in zip(*gradients, strict=True):
        if reentrant:  # parts of a gradient meet in another order, in half precision
            taeda.testing.assert_close(taeda.tensor(got), taeda.tensor(want), rtol=2e-2, atol=2e-2)
        else:
            assert got == want


@pytest.mark.parametrize("early", [False, True])
def test_a_gradient_within_the_function(early):
    def f(x):
        (g,) = autograd.grad(x.sin().exp().sum(), x, create_graph=True)
        return (g * x).sum()

    def second(run):
        x = taeda.tensor([0.3, 0.5], dtype=taeda.float64, requires_grad=True)
        (g,) = autograd.grad(run(x), x, create_graph=True)
        return g, autograd.grad(g.sum(), x)[0]

    def checkpointed(x):
        return checkpoint(f, x, use_reentrant=False, early_stop=early)

    for got, want in zip(second(checkpointed), second(f), strict=True):
        assert taeda.allclose(got, want)


def test_a_long_chain_of_reentrant_ones():
    def level(n):
        return lambda x: checkpoint(level(n - 1), x, use_reentrant=True) * 1 if n else x * 2

    x = taeda.ones(2, requires_grad=True)
    checkpoint(level(60), x, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_derivative_within_inference_mode():
    x = taeda.tensor([2.0, 3.0])
    with taeda.inference_mode():
        g = taeda.func.grad(lambda x: checkpoint(lambda x: (x * x).sin(), x, use_reentrant=False).sum())(x)
        assert taeda.allclose(g, (x * x).cos() * 2 * x)


@pytest.mark.parametrize("segments", [0, 3, 2**62])
def test_segments_are_not_more_than_functions(segments):
    with pytest.raises(ValueError, match="expected 1 to 2 segments"):
        checkpoint_sequential([taeda.exp, taeda.sin], segments, taeda.ones(2), use_reentrant=False)


@pytest.mark.parametrize("where", ["forward", "backward", "both"])
def test_dispatch_modes_around_one_of_the_runs(where):
    """A mode decomposes the ops that it sees, so that other tensors are saved."""

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    layer = taeda.nn.Sequential(taeda.nn.Linear(4, 4), taeda.nn.LayerNorm(4), taeda.nn.Softmax(-1)).double()
    x = leaf(3, 4)
    (want,) = autograd.grad(layer(x).square().sum(), x)
    with Mode() if where != "backward" else contextlib.nullcontext():
        loss = checkpoint(lambda x: layer(x).square().sum(), x, use_reentrant=False)
    with Mode() if where != "forward" else contextlib.nullcontext():
        loss.backward()
    taeda.testing.assert_close(x.grad, want)
