"""Programs with sizes that change, as people write them: ``PROGRAMS[name](package)`` gives (module, inputs, sizes).

``inputs(*ns)`` makes the arguments of some sizes: a tuple, or a tuple and a dict. The first sizes are the example's.
"""

from __future__ import annotations

import math

PROGRAMS: dict = {}


def program(*examples):
    def add(make):
        PROGRAMS[make.__name__] = make, examples
        return make

    return add


def module(T, forward, **parts):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    Net.forward = forward
    return Net()


@program((2, 5), (3, 9), (4, 2))
def causal_mask(T):
    def forward(self, q, k):
        n = q.shape[1]
        mask = T.full((n, n), float("-inf")).triu(1)
        scores = q @ k.transpose(1, 2) / math.sqrt(8) + mask
        return scores.softmax(-1)

    b, n = T.export.Dim("b"), T.export.Dim("n")
    return module(T, forward), lambda b, n: (T.ones(b, n, 8), T.ones(b, n, 8)), ({0: b, 1: n}, {0: b, 1: n})


@program((2, 5), (3, 9), (1, 2))
def padding_mask(T):
    def forward(self, ids, attention_mask=None):
        if attention_mask is None:
            attention_mask = T.ones_like(ids)
        m = (1.0 - attention_mask[:, None, None, :].to(T.float32)) * T.finfo(T.float32).min
        positions = (attention_mask.cumsum(-1) - 1).masked_fill(attention_mask == 0, 1)
        return self.embed(ids) + m.mean((1, 2)).unsqueeze(-1) * 0, positions

    def inputs(b, n):
        return (T.arange(b * n).reshape(b, n) % 7,), {
            "attention_mask": (T.arange(n) < n - 1).long().expand(b, n).clone()
        }

    d = T.export.Dim.DYNAMIC
    shapes = {"ids": {0: d, 1: d}, "attention_mask": {0: d, 1: d}}
    return module(T, forward, embed=T.nn.Embedding(7, 4)), inputs, shapes


@program((2, 3), (2, 7), (4, 1))
def cache(T):
    def forward(self, x, past):
        k = T.cat([past["k"], x], dim=1)
        v = T.cat([past["v"], x * 2], dim=1)
        y = T.nn.functional.scaled_dot_product_attention(x, k, v)
        return y, {"k": k, "v": v}

    def inputs(b, n):
        return T.ones(b, 1, 4), {"k": T.ones(b, n, 4) / 3, "v": T.ones(b, n, 4)}

    b, n = T.export.Dim("b"), T.export.Dim("n")
    return module(T, forward), inputs, ({0: b}, {"k": {0: b, 1: n}, "v": {0: b, 1: n}})


@program((2, 6), (3, 10))
def rotary(T):
    def forward(self, x):
        n = x.size(1)
        angles = T.outer(T.arange(n, dtype=T.float32), self.frequency)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., ::2], x[..., 1::2]
        return T.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    net = module(T, forward)
    net.register_buffer("frequency", T.ones(4) / 2, persistent=False)
    d = T.export.Dim.AUTO
    return net, lambda b, n: (T.ones(b, n, 8),), ({0: d, 1: d},)


@program((4,), (6,), (9,))
def cut_and_pad(T):
    def forward(self, x):
        half = x.shape[0] // 2
        y = T.nn.functional.pad(x[half:], (0, 0, half, 0))
        return y, x.narrow(0, 0, 2), x[-1:], x.new_zeros(x.shape[0] + 1)

    return module(T, forward), lambda n: (T.arange(n * 3).reshape(n, 3).to(T.float32),), ({0: T.export.Dim.AUTO},)


@program((3, 4), (5, 2))
def tied_sizes(T):
    def forward(self, x, y, z):
        return x + y, z[: x.shape[0]].sum(0)

    b, n = T.export.Dim("b"), T.export.Dim("n")
    return (
        module(T, forward), lambda b, n: (T.ones(b, n), T.ones(b, n), T.ones(2 * b, 3)),
        ({0: b, 1: n}, {0: b, 1: n}, {0: 2 * b}),
    )  # fmt: skip


@program((3,), (6,))
def checked(T):
    def forward(self, x):
        T._check(x.shape[0] > 1)
        T._check(x.shape[0] <= 64)
        return x[1:] - x[:-1]

    return module(T, forward), lambda n: (T.arange(n) * 1.0,), ({0: T.export.Dim("n", min=3, max=64)},)


@program((2, 8), (3, 12))
def windows(T):
    def forward(self, x):
        b, n, c = x.shape
        y = x.view(b, n // 4, 4, c).transpose(1, 2).reshape(b * 4, n // 4, c)
        return self.norm(y).view(b, 4, n // 4, c).mean(2)

    d = T.export.Dim
    return module(T, forward, norm=T.nn.LayerNorm(3)), lambda b, n: (T.ones(b, n, 3),), ({0: d("b"), 1: 4 * d("q")},)


@program((2, 5), (4, 3))
def pooled(T):
    def forward(self, x, lengths):
        keep = T.arange(x.shape[1])[None] < lengths[:, None]
        total = (x * keep[..., None]).sum(1)
        return total / lengths.clamp(min=1)[:, None], keep.any(), T.where(keep, 1, 0).argmax(1)

    d = T.export.Dim.AUTO
    sizes = ({0: d, 1: d}, {0: d})
    return module(T, forward), lambda b, n: (T.ones(b, n, 3), T.arange(b) + 1), sizes


@program((2, 3), (4, 5))
def nested_arguments(T):
    def forward(self, batch, *, scale=None, options=()):
        x = batch["image"] * (1 if scale is None else scale)
        return {"out": [x + batch["more"][0], batch["more"][1]], "n": len(options), "sum": x.sum()}

    def inputs(b, n):
        args = ({"image": T.ones(b, n), "more": [T.ones(b, n), T.ones(n)]},)
        return args, {"scale": T.ones(()) * 3, "options": (1, 2)}

    d = T.export.Dim.DYNAMIC
    shapes = {"batch": {"image": {0: d, 1: d}, "more": [{0: d, 1: d}, {0: d}]}, "scale": None, "options": (None, None)}
    return module(T, forward), inputs, shapes


@program((6, 9), (8, 15))
def images(T):
    def forward(self, x):
        y = self.conv(x)
        y = T.nn.functional.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return T.cat([x, y], 1), T.nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)

    d = T.export.Dim
    sizes = ({2: d("h", min=4, max=64), 3: d("w", min=4, max=64)},)
    return module(T, forward, conv=T.nn.Conv2d(2, 3, 3, padding=1, stride=2)), lambda h, w: (T.ones(1, 2, h, w),), sizes


@program((4, 2), (7, 3))
def gathered(T):
    def forward(self, x, index):
        picked = x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
        top = x.sum(-1).topk(2, dim=1)
        return picked, top.values, top.indices, x.flatten(0, 1).index_select(0, index.flatten())

    def inputs(n, b):
        return T.arange(b * n * 3).reshape(b, n, 3) * 1.0, T.arange(b * 2).reshape(b, 2) % n

    b, n = T.export.Dim("b"), T.export.Dim("n", min=3)
    return module(T, forward), inputs, ({0: b, 1: n}, {0: b})


@program((5,), (3,), (11,))
def numbers_of_sizes(T):
    def forward(self, x):
        n = x.shape[0]
        scale = n**0.5
        return x * scale + n, T.full((n,), 2.0) / n, x.sum() / max(n, 1), T.arange(0, 2 * n, 2), T.linspace(0, 1, n)

    return module(T, forward), lambda n: (T.ones(n),), ({0: T.export.Dim("n", min=2)},)


@program((3, 4), (5, 6))
def layers(T):
    def forward(self, x):
        out, (h, _) = self.lstm(x)
        return self.norm(out.transpose(1, 2)), h, out.chunk(2, -1)[0]

    d = T.export.Dim
    net = module(T, forward, lstm=T.nn.LSTM(3, 4, batch_first=True), norm=T.nn.GroupNorm(2, 4))
    return (
        net,
        lambda b, n: (T.ones(b, n, 3) / 2,),
        ({0: d("b")},) if T.__name__ == "torch" else ({0: d("b"), 1: d("n")},),
    )


@program((2, 3), (4, 5))
def updated(T):
    def forward(self, x, out):
        self.count += x.shape[0]
        out[:, 1:].add_(x[:, :-1])
        out.mul_(2)
        return out.sum(), self.count * 1

    net = module(T, forward)
    net.register_buffer("count", T.zeros((), dtype=T.int64))
    b, n = T.export.Dim("b"), T.export.Dim("n", min=3)
    return net, lambda b, n: (T.ones(b, n), T.ones(b, n)), ({0: b, 1: n}, {0: b, 1: n})


@program((4,), (6,))
def broadcast(T):
    def forward(self, x, y):
        a, b = T.broadcast_tensors(x[:, None], y[None])
        grid = T.stack(T.meshgrid(x, y, indexing="ij"), -1)
        return a * b, grid, T.cdist(x[:, None], y[:, None]), T.einsum("i,j->ij", x, y), x.repeat(2), x.expand(3, -1)

    n, m = T.export.Dim("n", max=25), T.export.Dim("m", max=25)
    return module(T, forward), lambda n: (T.arange(n) * 1.0, T.arange(n + 1) * 1.0), ({0: n}, {0: m})


@program((3,), (5,))
def mapped(T):
    def forward(self, x):
        return T.vmap(lambda row: (row * row).sum() + row)(x), T.vmap(lambda a, b: a @ b, in_dims=(0, None))(x, x[0])

    return module(T, forward), lambda n: (T.arange(n * 2).reshape(n, 2) * 1.0,), ({0: T.export.Dim("n")},)


@program((2, 6), (3, 9))
def experts(T):
    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = self.gate(flat).softmax(-1).topk(2, -1)
        hot = T.nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
        y = T.zeros_like(flat)
        for i in range(3):
            y = y + (hot[i].to(flat.dtype) * weights.t()).sum(0)[:, None] * flat * (i + 1)
        return y.view(x.shape), hot.sum((1, 2))

    d = T.export.Dim.AUTO
    return (
        module(T, forward, gate=T.nn.Linear(4, 3)),
        lambda b, n: (T.arange(b * n * 4).reshape(b, n, 4) / 9,),
        ({0: d, 1: d},),
    )


@program((3, 4), (2, 7))
def branches(T):
    def forward(self, x, flag):
        y = T.cond(flag.all(), lambda t: t.relu() * 2, lambda t: t - 1, (x,))
        return y if x.shape[1] > 1 else x

    def inputs(b, n):
        return T.arange(b * n).reshape(b, n) * 1.0, T.arange(2) < b - 1

    return module(T, forward), inputs, ({0: T.export.Dim("b", min=2), 1: T.export.Dim("n", min=2)}, None)


@program((5, 3), (9, 4))
def losses(T):
    def forward(self, x, target):
        logits = self.head(x)
        loss = T.nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=-100, label_smoothing=0.1
        )
        shifted = logits[:, :-1].argmax(-1) == target[:, 1:]
        return loss, shifted.float().mean()

    def inputs(n, b):
        target = T.arange(b * n).reshape(b, n) % 4
        return T.arange(b * n * 2).reshape(b, n, 2) / 10, target.masked_fill(target == 3, -100)

    b, n = T.export.Dim("b"), T.export.Dim("n", min=3)
    return module(T, forward, head=T.nn.Linear(2, 4)), inputs, ({0: b, 1: n}, {0: b, 1: n})
