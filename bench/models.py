"""Training programs for the benchmark, written once against a framework module ``T`` (taeda or torch)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def tanh_rnn(T: Any, steps: int = 50, hidden: int = 64, batch: int = 8) -> Step:
    """A recurrent network written by hand, one matrix product at a time; forward, backward, SGD."""
    x = T.randn(steps, batch, hidden)
    w_x = (T.randn(hidden, hidden) / math.sqrt(hidden)).requires_grad_()
    w_h = (T.randn(hidden, hidden) / math.sqrt(hidden)).requires_grad_()
    bias = T.zeros(hidden, requires_grad=True)
    target = T.randn(batch, hidden)
    optimizer = T.optim.SGD([w_x, w_h, bias], lr=1e-3)

    def step():
        h = T.zeros(batch, hidden)
        for t in range(steps):
            h = T.tanh(x[t] @ w_x + h @ w_h + bias)
        loss = ((h - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _mlp(T: Any, sizes: list[int], batch: int, make_optimizer: Callable[[Any], Any]) -> Step:
    layers: list[Any] = []
    for n, m in itertools.pairwise(sizes):
        layers += [T.nn.Linear(n, m), T.nn.ReLU()]
    model = T.nn.Sequential(*layers[:-1])
    optimizer = make_optimizer(model.parameters())
    x, y = T.randn(batch, sizes[0]), T.randint(0, sizes[-1], (batch,))
    cross_entropy = T.nn.functional.cross_entropy

    def step():
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def small_mlp(T: Any) -> Step:
    """4-64-64-2, batch 32, Adam: a controller's network."""
    return _mlp(T, [4, 64, 64, 2], 32, lambda p: T.optim.Adam(p, lr=1e-3))


def large_mlp(T: Any) -> Step:
    """784-512-512-10, batch 128, SGD."""
    return _mlp(T, [784, 512, 512, 10], 128, lambda p: T.optim.SGD(p, lr=1e-2))


def char_gpt(T: Any, layers=4, heads=4, width=128, context=64, batch=12, vocabulary=97) -> Step:
    """The network of ``examples/char_gpt.py``: forward, backward, AdamW."""
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention()
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.character, self.position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, x):
            h = self.character(x) + self.position(T.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(h)))

    model = GPT()
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    window = T.randint(0, vocabulary, (batch, context + 1))
    x, y = window[:, :-1].contiguous(), window[:, 1:].reshape(-1)

    def step():
        loss = F.cross_entropy(model(x).reshape(-1, vocabulary), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step
