"""Small networks as people write them: ``NETWORKS[name]()`` gives a module, arguments, sizes that may change."""

from __future__ import annotations

import math

import taeda
from taeda import nn
from taeda.nn import functional as F

NETWORKS = {}


def network(make):
    NETWORKS[make.__name__] = make
    return make


@network
def residual():
    """A residual CNN."""

    class Block(nn.Module):
        def __init__(self, width, out, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(width, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
            self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
            self.down = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.down(x))

    net = nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), Block(8, 16, 2),
        Block(16, 16, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    return net, (taeda.randn(2, 3, 32, 32),), ({0: "batch"},)


@network
def mobile():
    """Depthwise convolutions, squeeze and excitation."""

    class Squeeze(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, width, 1), nn.Hardsigmoid())

        def forward(self, x):
            return x * self.layers(x.mean((2, 3), keepdim=True))

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 8, 3, 1, 1, groups=8),
        nn.GroupNorm(2, 8), nn.SiLU(), Squeeze(8), nn.Conv2d(8, 16, 1), nn.InstanceNorm2d(16), nn.ReLU6(),
        nn.AvgPool2d(2), nn.Flatten(), nn.LazyLinear(5),
    )  # fmt: skip
    x = taeda.randn(2, 3, 16, 16)
    net(x)
    return net, (x,), ({0: "batch"},)


@network
def unet():
    """Down and up again, with images of any size."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
            self.up, self.last = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 3, padding=1)

        def forward(self, x):
            a = F.leaky_relu(self.one(x), 0.1)
            b = F.gelu(self.two(F.max_pool2d(a, 2)))
            y = self.last(taeda.cat([self.up(b), a], 1))
            return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False).sigmoid()

    sizes = {0: taeda.export.Dim("batch"), 2: 2 * taeda.export.Dim("rows"), 3: 2 * taeda.export.Dim("columns")}
    return Net(), (taeda.randn(2, 3, 8, 12),), (sizes,)


class Attention(nn.Module):
    """Heads over one product of query, key and value."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None, past=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = taeda.cat([past[0], k], 2), taeda.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(b, t, c)), (k, v)


@network
def vit():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.cls = nn.Conv2d(3, 16, 4, 4), nn.Parameter(taeda.randn(1, 1, 16))
            self.places = nn.Parameter(taeda.randn(1, 17, 16))
            layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 7)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = taeda.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.head(self.norm(self.layers(x))[:, 0])

    return Net(), (taeda.randn(2, 3, 16, 16),), ({0: "batch"},)


@network
def bert():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm1, self.norm2 = Attention(16, 4), nn.LayerNorm(16), nn.LayerNorm(16)
            self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Dropout(0.1))

        def forward(self, x, mask):
            x = self.norm1(x + self.attention(x, mask)[0])
            return self.norm2(x + self.mlp(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places, self.kinds = (
                nn.Embedding(50, 16, padding_idx=0),
                nn.Embedding(32, 16),
                nn.Embedding(2, 16),
            )
            self.norm, self.layers, self.pool = nn.LayerNorm(16), nn.ModuleList([Layer(), Layer()]), nn.Linear(16, 16)

        def forward(self, input_ids, attention_mask, token_type_ids):
            places = taeda.arange(input_ids.shape[1], device=input_ids.device)
            x = self.norm(self.words(input_ids) + self.places(places) + self.kinds(token_type_ids))
            mask = (1.0 - attention_mask[:, None, None, :].float()) * -1e4
            for layer in self.layers:
                x = layer(x, mask)
            return {"hidden": x, "pooled": self.pool(x[:, 0]).tanh()}

    ids, mask = taeda.randint(1, 50, (2, 6)), taeda.ones(2, 6, dtype=taeda.int64)
    mask[1, 4:] = 0
    sizes = {0: "batch", 1: "length"}
    return Net(), (ids, mask, taeda.randint(0, 2, (2, 6))), (sizes, sizes, sizes)


@network
def gpt2():
    """A decoder step with the keys and values of earlier ones."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm1, self.norm2 = Attention(16, 4), nn.LayerNorm(16), nn.LayerNorm(16)
            self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16))

        def forward(self, x, mask, past):
            y, now = self.attention(self.norm1(x), mask, past)
            x = x + y
            return x + self.mlp(self.norm2(x)), now

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
            self.layers, self.norm = nn.ModuleList([Layer(), Layer()]), nn.LayerNorm(16)

        def forward(self, ids, past):
            before, length = past[0][0].shape[2], ids.shape[1]
            x = self.words(ids) + self.places(taeda.arange(before, before + length))
            mask = taeda.ones(length, before + length, dtype=taeda.bool).tril(before)
            cache = []
            for layer, old in zip(self.layers, past, strict=True):
                x, now = layer(x, mask, old)
                cache.append(now)
            return self.norm(x) @ self.words.weight.T, cache

    past = [(taeda.randn(2, 4, 5, 4), taeda.randn(2, 4, 5, 4)) for _ in range(2)]
    one = {0: "batch", 2: "before"}
    return Net(), (taeda.randint(0, 50, (2, 3)), past), ({0: "batch", 1: "length"}, [(one, one), (one, one)])


@network
def llama():
    """RMS norm, rotary embeddings, grouped heads, a gated MLP, and a cache."""

    class Net(nn.Module):
        def __init__(self, width=16, heads=4, groups=2):
            super().__init__()
            self.heads, self.groups, self.size = heads, groups, width // heads
            self.words, self.norm1, self.norm2 = nn.Embedding(50, width), nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
            self.gate, self.up = nn.Linear(width, 24, bias=False), nn.Linear(width, 24, bias=False)
            self.down = nn.Linear(24, width, bias=False)
            rates = 1 / 10000 ** (taeda.arange(0, self.size, 2).float() / self.size)
            self.register_buffer("rates", rates, persistent=False)

        def turned(self, x, cos, sin):
            a, b = x.chunk(2, -1)
            return x * cos + taeda.cat((-b, a), -1) * sin

        def forward(self, ids, positions, past_k, past_v):
            b, t = ids.shape
            x = self.words(ids)
            angle = positions[:, :, None].float() * self.rates
            angle = taeda.cat((angle, angle), -1)[:, None]
            y = self.norm1(x)
            q = self.q(y).view(b, t, self.heads, self.size).transpose(1, 2)
            k, v = (f(y).view(b, t, self.groups, self.size).transpose(1, 2) for f in (self.k, self.v))
            q, k = self.turned(q, angle.cos(), angle.sin()), self.turned(k, angle.cos(), angle.sin())
            k, v = taeda.cat([past_k, k], 2), taeda.cat([past_v, v], 2)
            mask = taeda.full((t, k.shape[2]), -math.inf).triu(past_k.shape[2] + 1)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v

    sizes = {0: "batch", 2: "before"}
    args = (
        taeda.randint(0, 50, (2, 3)),
        taeda.arange(5, 8).expand(2, 3),
        taeda.randn(2, 2, 5, 4),
        taeda.randn(2, 2, 5, 4),
    )
    return Net(), args, ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}, sizes, sizes)


@network
def whisper():
    """Convolutions over time, an encoder, and a decoder that attends to it."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv1d(8, 16, 3, padding=1), nn.Conv1d(16, 16, 3, 2, 1)
            layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.words = nn.Embedding(30, 16)
            self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 1)

        def forward(self, mel, ids):
            x = self.encoder(F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2))
            mask = nn.Transformer.generate_square_subsequent_mask(4)
            return self.decoder(self.words(ids), x, tgt_mask=mask, tgt_is_causal=True) @ self.words.weight.T

    return Net(), (taeda.randn(2, 8, 12), taeda.randint(0, 30, (2, 4))), ({0: "batch"}, {0: "batch"})


@network
def tagger():
    """An embedding, a bidirectional LSTM of two layers and a GRU."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.lstm = nn.Embedding(40, 6), nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
            self.gru, self.out = nn.GRU(10, 7), nn.Linear(7, 4)

        def forward(self, ids):
            y, (h, c) = self.lstm(self.words(ids))
            z, last = self.gru(y.transpose(0, 1))
            return self.out(z).log_softmax(-1), h, c, last

    return Net(), (taeda.randint(0, 40, (3, 6)),), ({0: "batch"},)


@network
def plain_recurrent():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.RNN(4, 5), nn.RNN(5, 3, nonlinearity="relu", bias=False, bidirectional=True)
            self.cell, self.gru = nn.LSTMCell(6, 4), nn.GRUCell(4, 4)

        def forward(self, x, h):
            y, _ = self.a(x, h)
            y, last = self.b(y)
            state = self.cell(y[-1])
            return y, last, self.gru(*state)

    return Net(), (taeda.randn(5, 2, 4), taeda.randn(1, 2, 5)), ({1: "batch"}, {1: "batch"})
