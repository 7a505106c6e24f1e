"""Recurrent steps and layers: the fused kernels against the same written in ops, first and second derivatives."""

import numpy as np
import pytest

import taeda
from taeda.func import batching, grad, jacfwd, jacrev, vmap
from taeda.ops import recurrent

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def draw(rng, *shape, dtype=taeda.float64):
    return taeda.tensor(rng.standard_normal(shape).tolist(), dtype=dtype).reshape(shape)


def problem(mode, sizes, hidden, dtype=taeda.float64, seed=0):
    rng = np.random.default_rng(seed)
    k, batch = GATES[mode], max(sizes)
    gates = draw(rng, sum(sizes), k * hidden, dtype=dtype)
    h0, w = draw(rng, batch, hidden, dtype=dtype), draw(rng, k * hidden, hidden, dtype=dtype) * 0.3
    c0 = draw(rng, batch, hidden, dtype=dtype) if mode == "LSTM" else None
    b = draw(rng, k * hidden, dtype=dtype)
    return [gates, h0, c0, w, b]


def leaves(tensors):
    return [t if t is None else t.detach().clone().requires_grad_(True) for t in tensors]


def weighted(outputs):
    """A loss in which every element has a weight of its own."""
    total = 0
    for n, out in enumerate(o for o in outputs if o is not None):
        weight = taeda.tensor(np.cos(np.arange(out.numel()) + n).tolist(), dtype=out.dtype).reshape(out.shape)
        total = total + (out * weight).sum()
    return total


@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 2, 2, 1), (1,), (2, 2, 0)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", list(GATES))
def test_layer_and_gradients(mode, reverse, sizes):
    """Hidden sizes below, at and above a vector; packed sizes; both directions."""
    check_layer(mode, reverse, sizes, (1, 5, 19))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", list(GATES))
def test_wide_and_tall_layers(mode, reverse):
    """Several panels of units and tiles of rows: weights that stay in the cache, weights that do not, many rows."""
    check_layer(mode, reverse, (17, 17, 13, 4), (70,))
    check_layer(mode, reverse, (7, 7, 3), (230,))
    check_layer(mode, reverse, (101, 100), (33, 230))


def check_layer(mode, reverse, sizes, widths):
    for hidden in widths:
        plain = problem(mode, sizes, hidden)
        fused, composed = leaves(plain), leaves(plain)
        got = recurrent.recurrent_layer(mode, *fused, sizes, reverse, True)[: 3 if mode == "LSTM" else 2]
        want = recurrent._layer_in_ops(mode, *composed, sizes, reverse)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-11)
        weighted(got).backward()
        weighted(want).backward()
        for g, w in zip(fused, composed, strict=True):
            if g is not None:
                np.testing.assert_allclose(g.grad.numpy(), w.grad.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", list(GATES))
def test_second_derivatives(mode, reverse):
    sizes = (3, 2, 1)
    plain = problem(mode, sizes, 3)
    results = []
    for layer in (lambda *a: recurrent.recurrent_layer(mode, *a, sizes, reverse, True), None):
        inputs = leaves(plain)
        out = layer(*inputs) if layer else recurrent._layer_in_ops(mode, *inputs, sizes, reverse)
        present = [t for t in inputs if t is not None]
        first = taeda.autograd.grad(weighted(out[: 3 if mode == "LSTM" else 2]), present, create_graph=True)
        weighted([g * g for g in first]).backward()
        results.append([t.grad.numpy() for t in present])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", list(GATES))
def test_cell(mode):
    rng = np.random.default_rng(1)
    k = GATES[mode]
    x, hidden, h = draw(rng, 4, k * 6), draw(rng, 4, k * 6), draw(rng, 4, 6)
    c = draw(rng, 4, 6) if mode == "LSTM" else None
    for second in (False,) if mode == "RNN_RELU" else (False, True):  # ReLU has no second derivative
        results = []
        for fused in (True, False):
            inputs = leaves([x, hidden, h, c])
            state = (inputs[2],) if c is None else (inputs[2], inputs[3])
            out = recurrent.cell(mode, *inputs) if fused else recurrent.step_in_ops(mode, inputs[0], inputs[1], state)
            present = [t for t in inputs if t is not None]
            loss = weighted(out)
            if second:
                found = taeda.autograd.grad(loss, present, create_graph=True, allow_unused=True)
                loss = weighted([g * g for g in found if g is not None])
            loss.backward()
            zero = np.zeros(1)
            results.append(
                [o.detach().numpy() for o in out] + [zero if t.grad is None else t.grad.numpy() for t in present]
            )
        for got, want in zip(*results, strict=True):
            np.testing.assert_allclose(got + 0 * want, want + 0 * got, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16, taeda.float16])
@pytest.mark.parametrize("mode", list(GATES))
def test_dtypes(mode, dtype):
    plain = problem(mode, (2, 2), 9)
    want = recurrent._layer_in_ops(mode, *plain, (2, 2), False)[0]
    narrow = [t if t is None else t.to(dtype) for t in plain]
    got = recurrent.recurrent_layer(mode, *narrow, (2, 2), False, False)[0]
    assert got.dtype is dtype
    tolerance = {"float32": 1e-5, "float16": 2e-2, "bfloat16": 1e-1}[dtype.name]
    np.testing.assert_allclose(got.double().numpy(), want.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", list(GATES))
@pytest.mark.parametrize("hidden, sizes", [(50, (40, 40, 31)), (300, (64, 64))])
def test_threads_do_not_matter(mode, hidden, sizes):
    """Forward and backward, by rows of the batch and by panels of units."""
    plain = problem(mode, sizes, hidden, taeda.float32)
    results = set()
    for threads in (1, 2, 3, 8):
        taeda.set_num_threads(threads)
        given = leaves(plain)
        out = recurrent.recurrent_layer(mode, *given, sizes, False, True)[0]
        out.square().sum().backward()
        found = [out.detach(), *(t.grad for t in given if t is not None and t.grad is not None)]
        results.add(b"".join(t.numpy().tobytes() for t in found))
    assert len(results) == 1


@pytest.mark.parametrize("name", ["rnn_tanh", "rnn_relu", "gru", "lstm"])
def test_no_hidden_units(name):
    x = taeda.ones(2, 5, 3, requires_grad=True)
    h = taeda.ones(1, 5, 0)
    weights = [taeda.ones(*sizes) for sizes in ((0, 3), (0, 0), (0,), (0,))]
    out = getattr(taeda, name)(x, (h, h) if name == "lstm" else h, weights, True, 1, 0.0, False, False, False)
    out[0].sum().backward()
    assert out[0].shape == (2, 5, 0) and out[1].shape == (1, 5, 0) and not x.grad.any()


@pytest.mark.parametrize("kind", ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"))
def test_recurrence_over_all_examples_at_once(kind, monkeypatch):
    layer = getattr(taeda.nn, kind)(3, 5).double()
    x = taeda.rand(4, 2, 3).double() if kind.endswith("Cell") else taeda.rand(4, 6, 2, 3).double()

    def run(x):
        made = layer(x)
        return made[0] if isinstance(made, tuple) else made

    want = taeda.stack([run(row) for row in x]), taeda.stack([grad(lambda x: run(x).sin().sum())(row) for row in x])
    monkeypatch.setattr(batching, "_by_example", None)
    taeda.testing.assert_close(vmap(run)(x), want[0])
    taeda.testing.assert_close(vmap(grad(lambda x: run(x).sin().sum()))(x), want[1])


@pytest.mark.parametrize("kind", ("LSTMCell", "GRUCell"))
def test_jacobian_of_a_cell_of_one_row(kind):
    cell, x = getattr(taeda.nn, kind)(3, 5).double().requires_grad_(False), taeda.rand(3).double()

    def run(x):
        made = cell(x)
        return made[0] if isinstance(made, tuple) else made

    taeda.testing.assert_close(jacrev(run)(x), jacfwd(run)(x))


def test_recurrence_over_packed_rows():
    layer = taeda.nn.GRU(3, 5, bidirectional=True).double()
    x = taeda.rand(4, 6, 3, 3).double()

    def run(x):
        return layer(taeda.nn.utils.rnn.pack_padded_sequence(x, taeda.tensor([6, 4, 1])))[0].data

    taeda.testing.assert_close(vmap(run)(x), taeda.stack([run(row) for row in x]))
