"""Models written once, for taeda and for PyTorch: ``MODELS[name](package)`` gives (module, args, kwargs, dynamic
sizes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MODELS: dict[str, Any] = {}


def model(make):
    """Add ``make`` to the table. It gives a class, example arguments, and optionally keyword arguments and sizes."""

    def build(T):
        cls, args, *rest = make(T)
        T.manual_seed(0)
        return cls, args, (rest[0] if rest else {}), (rest[1] if len(rest) > 1 else None)

    MODELS[make.__name__] = build
    return make


@dataclass
class OurPair:
    """The dataclass that taeda's models take and give."""

    a: Any
    b: Any


@dataclass
class TheirPair:
    """The dataclass that PyTorch's models take and give."""

    a: Any
    b: Any


PAIRS = {"taeda": OurPair, "torch": TheirPair}
registered: set[str] = set()


def pair(T):
    """The dataclass of this package, registered."""
    name = T.__name__
    if name not in registered:
        T.export.register_dataclass(PAIRS[name], serialized_type_name="models.Pair")
        registered.add(name)
    return PAIRS[name]


def batch(T):
    """A Dim for sizes of batches."""
    return T.export.Dim("batch")


@model
def mlp(T):
    net = T.nn.Sequential(T.nn.Linear(4, 8), T.nn.ReLU(), T.nn.Linear(8, 8), T.nn.GELU(), T.nn.Linear(8, 2))
    return net, (T.randn(3, 4),), {}, ({0: batch(T)},)


class _CNN:
    def __new__(cls, T):
        nn = T.nn
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, stride=2),
            nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
        )  # fmt: skip


@model
def cnn_eval(T):
    return _CNN(T).eval(), (T.randn(2, 3, 16, 16),), {}, ({0: batch(T)},)


@model
def cnn_train(T):
    return _CNN(T).train(), (T.randn(2, 3, 16, 16),), {}, ({0: batch(T)},)


@model
def lstm(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = T.nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True)
            self.out = T.nn.Linear(12, 3)

        def forward(self, x):
            y, (h, _) = self.rnn(x)
            return self.out(y[:, -1]), h

    return Net(), (T.randn(2, 4, 5),)


@model
def gru(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = T.nn.GRU(5, 6)

        def forward(self, x):
            return self.rnn(x)[0].sum(0)

    return Net(), (T.randn(4, 2, 5),)


@model
def transformer_encoder(T):
    layer = T.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = T.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return net.eval(), (T.randn(2, 5, 8),), {}, ({0: batch(T)},)


@model
def attention_with_mask(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = T.nn.Linear(8, 24), T.nn.Linear(8, 8)

        def forward(self, x, *, causal_from: int = 0):
            b, t, c = x.shape
            q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in self.qkv(x).split(c, dim=-1))
            mask = T.ones(t, t, dtype=T.bool).tril(causal_from)
            y = T.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            scores = (q @ k.transpose(-2, -1)).masked_fill(~mask, float("-inf")).softmax(-1)
            return self.out(y.transpose(1, 2).reshape(b, t, c)) + (scores @ v).transpose(1, 2).flatten(2)

    sizes = {"x": {0: batch(T), 1: T.export.Dim("time", min=2, max=64)}, "causal_from": None}
    return Net(), (T.randn(2, 5, 8),), {"causal_from": 0}, sizes


@model
def multihead_attention(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = T.nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x, mask):
            y, w = self.attention(x, x, x, key_padding_mask=mask)
            return y, w

    mask = T.tensor([[False, False, True], [False, True, True]])
    return Net(), (T.randn(2, 3, 8), mask)


@model
def embedding_bag(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.one = T.nn.EmbeddingBag(10, 4, mode="mean"), T.nn.Embedding(10, 4, padding_idx=0)

        def forward(self, x, offsets):
            return self.bag(x, offsets) + self.one(x).sum(0)

    return Net(), (T.tensor([1, 2, 4, 5, 4, 3]), T.tensor([0, 2, 4]))


@model
def views(T):
    class Net(T.nn.Module):
        def forward(self, x):
            b = x.shape[0]
            y = x.view(b, -1).unflatten(1, (3, -1)).permute(0, 2, 1).contiguous()
            z = y.reshape(-1, 3)[: b * 2].expand(2, -1, -1).squeeze(0).unsqueeze(-1)
            return z.flatten(1), x[..., 1:], x[:, None, 0], x.new_zeros(b, 2) + T.arange(b)[:, None]

    return Net(), (T.randn(4, 6, 5),), {}, ({0: batch(T)},)


@model
def joining(T):
    class Net(T.nn.Module):
        def forward(self, xs, y):
            x = T.cat([xs[0], xs[1], y], dim=1)
            a, b = x.split([2, x.shape[1] - 2], dim=1)
            c, d = x.chunk(2, dim=0)
            return T.stack([a.sum(1), b.mean(1)], 0), c + d, T.hstack([a, b]), x.unbind(1)[0]

    return Net(), ([T.randn(4, 2), T.randn(4, 3)], T.randn(4, 1))


@model
def einsum(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = T.nn.Parameter(T.randn(3, 4, 5))

        def forward(self, x):
            return T.einsum("bi,ijk->bjk", x, self.weight), T.einsum("bi,ci->bc", x, x)

    return Net(), (T.randn(2, 3),), {}, ({0: batch(T)},)


@model
def interpolate(T):
    class Net(T.nn.Module):
        def forward(self, x):
            F = T.nn.functional
            y = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            return F.interpolate(y, size=(5, 7), mode="nearest"), F.pad(x, (1, 2, 0, 1), mode="reflect")

    return Net(), (T.randn(2, 3, 4, 6),), {}, ({0: batch(T)},)


@model
def buffers(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", T.zeros((), dtype=T.int64))
            self.register_buffer("mean", T.zeros(3))
            self.register_buffer("last", T.zeros(2, 3), persistent=False)
            self.scale = T.full((3,), 2.0)

        def forward(self, x):
            self.count += 1
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            self.last[0] = x[0]
            self.last.mul_(self.scale)
            return (x - self.mean) * self.count + self.last.sum()

    return Net(), (T.randn(4, 3),)


@model
def written_input(T):
    class Net(T.nn.Module):
        def forward(self, x, y):
            x.add_(1)
            x[:, 0] = y
            z = x[1:].transpose(0, 1)
            z.mul_(2)
            return x.sum(), z

    return Net(), (T.randn(3, 4), T.randn(3))


@model
def containers(T):
    Pair = pair(T)

    class Net(T.nn.Module):
        def forward(self, table, pair, *rest, scale):
            a, b = table["a"], table["b"]
            return {"sum": a + b[0] + pair.a, "pair": Pair(a * scale, [pair.b, rest[0], rest[1]]), "none": None, "n": 3}

    args = ({"a": T.randn(2, 3), "b": (T.randn(3),)}, Pair(T.randn(3), T.randn(1)), T.randn(2), T.randn(3))
    return Net(), args, {"scale": 2.5}


@model
def normalisations(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            nn = T.nn
            self.layers = nn.ModuleList([nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4), nn.RMSNorm(6)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return T.nn.functional.log_softmax(x, -1), x.std(-1), x.var(dim=0, unbiased=False)

    return Net(), (T.randn(3, 4, 6),), {}, ({0: batch(T)},)


@model
def reductions(T):
    class Net(T.nn.Module):
        def forward(self, x):
            top, index = x.topk(2, dim=1)
            values, _ = x.sort(dim=1)
            low = x.min(dim=1)
            return top, index, values, low.values, x.argmax(1), T.cumsum(x, 1), x.amax(), T.where(x > 0, x, -x).prod(1)

    return Net(), (T.randn(3, 5),), {}, ({0: batch(T)},)


@model
def convolutions(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            nn = T.nn
            self.one = nn.Conv1d(4, 6, 3, padding="same")
            self.up = nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1)
            self.depth = nn.Conv1d(4, 4, 3, groups=4, dilation=2)

        def forward(self, x):
            return self.depth(self.up(self.one(x)))

    sizes = ({0: batch(T), 2: T.export.Dim("length", min=8)},)
    return Net(), (T.randn(2, 4, 9),), {}, sizes


@model
def no_grad_inside(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = T.nn.Linear(3, 3)

        def forward(self, x):
            with T.no_grad():
                y = self.lin(x)
            return self.lin(x) + y.detach() + T.tensor([1.0, 2.0, 3.0])

    return Net(), (T.randn(2, 3),)


@model
def dropout_eval(T):
    net = T.nn.Sequential(T.nn.Linear(4, 4), T.nn.Dropout(0.5), T.nn.LeakyReLU(0.1), T.nn.Hardtanh(), T.nn.PReLU())
    return net.eval(), (T.randn(2, 4),)


@model
def shared_weights(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = T.nn.Embedding(7, 4), T.nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    return Net(), (T.tensor([[1, 2], [3, 4], [5, 6]]),), {}, ({0: batch(T)},)


@model
def casts(T):
    class Net(T.nn.Module):
        def forward(self, x, n):
            y = x.to(T.float64) * n.to(x.dtype)
            return y.float(), x.type_as(n), (x > 0).long() + n, x.half().float(), T.zeros_like(x), x.to("cpu") + 1

    return Net(), (T.randn(3), T.tensor([1, 2, 3]))


@model
def branch_on_size(T):
    class Net(T.nn.Module):
        def forward(self, x):
            if x.shape[0] >= 2:
                return x * 2
            return x

    return Net(), (T.randn(4, 3),), {}, ({0: T.export.Dim("batch", min=2)},)


@model
def conditional(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = T.nn.Linear(3, 3)

        def forward(self, x):
            return T.cond(x.sum() > 0, lambda y: self.lin(y), lambda y: y.cos(), (x,))

    return Net(), (T.randn(2, 3),)
