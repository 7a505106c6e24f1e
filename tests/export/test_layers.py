"""Recurrent layers and transformers as programs: sizes that may change, masks, decomposed and from a file."""

import io

import pytest

import taeda
from taeda import nn
from taeda.export import Dim, export, load, save
from taeda.utils import _pytree as pytree
from tests.agree import close

AUTO = {0: Dim.AUTO, 1: Dim.AUTO}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, padding):
        return self.inner(x, x, x, key_padding_mask=padding)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x, mask, padding):
        return self.inner(x, mask=mask, src_key_padding_mask=padding)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, x, y, mask):
        return self.inner(x, y, tgt_mask=mask)


def _causal(n):
    return nn.Transformer.generate_square_subsequent_mask(n)


MODELS = {
    **{
        kind.__name__: (
            lambda kind=kind: kind(4, 5, 2, bidirectional=True, batch_first=True), lambda n, t: (taeda.randn(n, t, 4),)
        )
        for kind in (nn.LSTM, nn.GRU, nn.RNN)
    },
    "projected": (lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True, proj_size=3), lambda n, t: (taeda.randn(n, t, 4),)),
    "attention": (Attention, lambda n, t: (taeda.randn(n, t, 8), taeda.arange(n * t).reshape(n, t) % t > 3)),
    "encoder": (Encoder, lambda n, t: (taeda.randn(n, t, 8), _causal(t), taeda.zeros(n, t))),
    "translator": (Translator, lambda n, t: (taeda.randn(n, t, 8), taeda.randn(n, t, 8), _causal(t))),
}  # fmt: skip


def _expect(program, model, args):
    got, want = (pytree.tree_leaves(f(*args)) for f in (program.module(), model))
    close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_batch_and_length_may_change(name):
    make, inputs = MODELS[name]
    model = make().eval()
    program = export(model, inputs(3, 7), dynamic_shapes=tuple(AUTO for _ in inputs(3, 7)))
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for each in (program, program.run_decompositions(), load(file)):
        for sizes in ((2, 9), (3, 7), (5, 4)):
            _expect(each, model, inputs(*sizes))


def test_a_named_length_of_a_recurrent_layer():
    model = nn.GRU(4, 5)
    program = export(model, (taeda.randn(7, 3, 4),), dynamic_shapes=({0: Dim("time"), 1: Dim("batch")},))
    assert set(program.range_constraints) == {"time", "batch"}
    _expect(program, model, (taeda.randn(2, 6, 4),))


@pytest.mark.parametrize("name", ["attention", "encoder", "translator"])
def test_fixed_sizes(name):
    make, inputs = MODELS[name]
    model = make().eval()
    _expect(export(model, inputs(2, 6)), model, inputs(2, 6))


def test_convolutions_that_keep_the_size_unevenly_are_decomposed():
    layer, x = nn.Conv2d(4, 6, (4, 2), padding="same", dilation=(1, 3)), taeda.randn(2, 4, 7, 9)
    program = export(layer, (x,)).run_decompositions()
    called = {n.target.__name__ for n in program.graph.nodes if n.op == "call_function"}
    assert called == {"constant_pad_nd", "convolution"}
    for image in (x, x[0]):
        close(export(layer, (image,)).run_decompositions().module()(image), layer(image))
