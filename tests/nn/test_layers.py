"""Layers: what training and evaluation do, and that gradients reach every parameter."""

import numpy as np
import pytest

import taeda
from taeda import nn


def test_batch_norm_takes_both_statistics_or_none():
    with pytest.raises(ValueError, match="both be None"):
        taeda.nn.functional.batch_norm(taeda.rand(2, 3), taeda.zeros(3), None, training=True)


def test_batch_norm_statistics():
    taeda.manual_seed(0)
    layer = nn.BatchNorm1d(3, momentum=0.5)
    x = taeda.randn(64, 3) * 2 + 1
    y = layer(x)
    np.testing.assert_allclose(y.mean(0).detach().numpy(), 0, atol=1e-5)
    np.testing.assert_allclose(y.var(0, correction=0).detach().numpy(), 1, atol=1e-3)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.5 * x.mean(0).numpy(), rtol=1e-5)
    assert int(layer.num_batches_tracked) == 1
    layer.eval()
    z = layer(x[:1])
    want = (x[:1] - layer.running_mean) / (layer.running_var + layer.eps).sqrt()
    np.testing.assert_allclose(z.detach().numpy(), want.numpy(), rtol=1e-4, atol=1e-6)


def test_dropout_only_in_training():
    taeda.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = taeda.ones(10000)
    y = layer(x)
    assert float((y == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(y.max()) == pytest.approx(1 / 0.75)
    assert layer.eval()(x) is x


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_layers_are_their_cells(kind, batch_first):
    """A layer over a sequence equals its cell step by step."""
    taeda.manual_seed(0)
    layer = getattr(nn, kind)(3, 5, batch_first=batch_first)
    cell = getattr(nn, f"{kind}Cell")(3, 5)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = taeda.randn(6, 2, 3)
    out, _ = layer(x.transpose(0, 1) if batch_first else x)
    out = out.transpose(0, 1) if batch_first else out
    state = None
    for t in range(6):
        state = cell(x[t], state)
        h = state[0] if kind == "LSTM" else state
        np.testing.assert_allclose(out[t].detach().numpy(), h.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_equals_one_by_one(kind):
    """Each sequence of a packed batch gives what it gives alone, in both directions."""
    taeda.manual_seed(0)
    layer = getattr(nn, kind)(2, 4, num_layers=2, bidirectional=True)
    sequences = [taeda.randn(n, 2) for n in (2, 5, 3)]
    packed, state = layer(nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False))
    state = state[0] if kind == "LSTM" else state
    for i, (got, s) in enumerate(zip(nn.utils.rnn.unpack_sequence(packed), sequences, strict=True)):
        want, alone = layer(s)
        alone = alone[0] if kind == "LSTM" else alone
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(state[:, i].detach().numpy(), alone.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_sequences_of_a_padded_batch_are_copies():
    """A write to one does not reach the batch, and each is contiguous, as in PyTorch."""
    batch = taeda.arange(12.0).reshape(3, 2, 2)
    first, second = nn.utils.rnn.unpad_sequence(batch, taeda.tensor([3, 2]))
    assert first.stride() == second.stride() == (2, 1)
    first.zero_()
    assert batch[:, 0].tolist() == [[0, 1], [4, 5], [8, 9]]


def test_attention_masks():
    taeda.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = taeda.randn(2, 5, 8)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    out, weights = layer(x, x, x, attn_mask=causal)
    assert float(weights[:, 0, 1:].abs().max()) == 0
    np.testing.assert_allclose(weights.sum(-1).detach().numpy(), 1, rtol=1e-5)
    fast, none = layer(x, x, x, attn_mask=causal, need_weights=False, is_causal=True)
    assert none is None
    np.testing.assert_allclose(fast.detach().numpy(), out.detach().numpy(), rtol=1e-4, atol=1e-5)
    padding = taeda.zeros(2, 5, dtype=taeda.bool)
    padding[1, 3:] = True
    short, _ = layer(x[1:, :3], x[1:, :3], x[1:, :3])
    masked, _ = layer(x, x, x, key_padding_mask=padding, need_weights=False)
    np.testing.assert_allclose(masked[1, :3].detach().numpy(), short[0].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_every_parameter_of_a_transformer_learns():
    taeda.manual_seed(0)
    model = nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=True)
    model(taeda.randn(2, 4, 8), taeda.randn(2, 3, 8)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(
    ("layer", "x", "error", "words"),
    [
        (lambda: nn.BatchNorm2d(3), (2, 3), ValueError, "expected 4D input"),
        (lambda: nn.InstanceNorm1d(3, affine=True), (2, 4, 5), ValueError, "num_features"),
        (lambda: nn.LSTM(3, 4), (5, 2, 6), RuntimeError, "Expected 3, got 6"),
        (lambda: nn.LSTMCell(3, 4), (2, 5), RuntimeError, r"input \(2, 5\) has 5 features"),
        (lambda: nn.GRU(3, 4), (5, 2, 2, 3), ValueError, "2D or 3D"),
        (lambda: nn.GRU(3, 4).double(), (5, 2, 3), ValueError, "does not match weight dtype"),
        (lambda: nn.PixelShuffle(2), (1, 3, 2, 2), RuntimeError, "divisible"),
        (lambda: nn.ConvTranspose2d(1, 1, 2), (1, 2, 3, 3), RuntimeError, "ConvTranspose2d"),
    ],
)
def test_errors(layer, x, error, words):
    with pytest.raises(error, match=words):
        layer()(taeda.zeros(*x))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2d(3, 4, 2, groups=2),
        lambda: nn.Conv2d(3, 4, 2, padding="other"),
        lambda: nn.Conv2d(3, 4, 2, padding="same", stride=2),
        lambda: nn.Conv2d(3, 4, 2, padding_mode="odd"),
        lambda: nn.GroupNorm(2, 3),
        lambda: nn.Dropout(1.5),
        lambda: nn.LSTM(3, 4, dropout=2),
        lambda: nn.LSTM(3, 4, proj_size=4),
        lambda: nn.RNN(3, 4, nonlinearity="sigmoid"),
        lambda: nn.GRU(3, 4, proj_size=2),
        lambda: nn.MultiheadAttention(0, 1),
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [6]),
        lambda: nn.FractionalMaxPool2d(2),
        lambda: nn.MultiMarginLoss(p=3),
    ],
)
def test_bad_arguments(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize("sizes", [{"kernel_size": (2,)}, {"kernel_size": ()}, {"output_size": (3,)}])
@pytest.mark.parametrize("n", [2, 3])
def test_fractional_pooling_takes_one_size_or_all(n, sizes):
    pool = getattr(taeda.nn.functional, f"fractional_max_pool{n}d")
    with pytest.raises(RuntimeError, match="must be a single int, or a tuple"):
        pool(taeda.rand(1, 2, *(6,) * n), **{"kernel_size": 2, "output_size": 3} | sizes)
    assert pool(taeda.rand(2, *(6,) * n), 2, output_size=(0,) * n).shape == (2, *(0,) * n)


@pytest.mark.parametrize(
    "call",
    [lambda f: f.unfold(taeda.ones(3, 0, 4, 4), 2), lambda f: f.unfold(taeda.ones(0, 4, 4), 2),
     lambda f: f.fold(taeda.ones(3, 0, 9), 4, 2), lambda f: f.fold(taeda.ones(0, 9), 4, 2)],
)  # fmt: skip
def test_blocks_have_channels(call):
    with pytest.raises(RuntimeError, match="with channels"):
        call(taeda.nn.functional)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("lengths", [3, [[3, 2]]])
def test_lengths_of_packed_sequences_are_a_vector(lengths, ordered):
    with pytest.raises(RuntimeError, match="should be a 1D"):
        nn.utils.rnn.pack_padded_sequence(taeda.ones(3, 2, 1), taeda.tensor(lengths), enforce_sorted=ordered)


def test_rrelu_is_of_floats():
    x = taeda.ones(2, dtype=taeda.int64)
    for f in (nn.RReLU(), nn.RReLU().eval(), nn.RReLU(inplace=True)):
        for y in (x, x.bool()):
            with pytest.raises(NotImplementedError, match="not implemented for"):
                f(y)


def test_a_function_among_layers_is_told_where_it_is_called():
    with pytest.raises(TypeError, match=r"is not a Module subclass; a function is called in the forward\(\)"):
        nn.Sequential(nn.Linear(2, 2), taeda.exp)
