"""Layers and optimisers against PyTorch: ``bench/nn.py [part of a name] [--threads n]``.

Each case is timed in both libraries by turns in one process. Printed are the median times in microseconds and the
median of the ratios taeda / torch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import taeda
import taeda.nn
import taeda.optim

CASES: dict[str, tuple[Callable[[Any], Callable[[], Any]], int]] = {}


def case(name: str, count: int):
    """Register a function from a library to what is timed, ``count`` calls per turn."""

    def register(make):
        CASES[name] = (make, count)
        return make

    return register


@case("Linear(4, 4) call", 2000)
def linear(L):
    layer, x = L.nn.Linear(4, 4), L.randn(4, 4)
    return lambda: layer(x)


def cell(kind):
    def make(L):
        layer, x, h, c = getattr(L.nn, kind)(32, 32), L.randn(8, 32), L.randn(8, 32), L.randn(8, 32)
        state = (h, c) if kind == "LSTMCell" else h
        return lambda: layer(x, state)

    return make


for kind in ("LSTMCell", "GRUCell", "RNNCell"):
    case(f"{kind}(32)", 300)(cell(kind))


@case("MLP 4-64-64-2, batch 32, Adam step", 50)
def mlp(L):
    nn = L.nn
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer, loss = L.optim.Adam(model.parameters()), nn.MSELoss()
    x, y = L.randn(32, 4), L.randn(32, 2)

    def step():
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def language_model(kind):
    def make(L):
        nn = L.nn
        embed, rnn, head = nn.Embedding(2000, 200), getattr(nn, kind)(200, 200, 2), nn.Linear(200, 2000)
        optimizer = L.optim.SGD(nn.ModuleList([embed, rnn, head]).parameters(), lr=0.1)
        x, y, loss = L.randint(0, 2000, (35, 20)), L.randint(0, 2000, (700,)), nn.CrossEntropyLoss()

        def step():
            optimizer.zero_grad()
            loss(head(rnn(embed(x))[0]).view(-1, 2000), y).backward()
            optimizer.step()

        return step

    return make


for kind in ("LSTM", "GRU", "RNN"):
    case(f"{kind} language model 2x200, 35x20, step", 2)(language_model(kind))


def optimizer(kind):
    def make(L):
        params = [L.randn(64).requires_grad_(True) for _ in range(150)]
        for p in params:
            p.grad = L.randn(64)
        return getattr(L.optim, kind)(params, lr=1e-3).step

    return make


for kind in ("AdamW", "Adam", "SGD"):
    case(f"{kind}, 150 tensors of 64", 10)(optimizer(kind))


@case("clip_grad_norm_, 150 tensors of 64", 10)
def clip(L):
    params = [L.randn(64).requires_grad_(True) for _ in range(150)]
    for p in params:
        p.grad = L.randn(64)
    return lambda: L.nn.utils.clip_grad_norm_(params, 1.0)


@case("TransformerEncoderLayer 128, 12x64, forward and backward", 2)
def encoder(L):
    layer, x = L.nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True), L.randn(12, 64, 128)
    return lambda: layer(x).sum().backward()


#: Of an image ``x`` and, to sample, a ``grid``; each with channels first and last, forward and backward.
IMAGES = {
    **{
        f"interpolate {mode}": f"F.interpolate(x, scale_factor=2, mode={mode!r})"
        for mode in ("nearest", "bilinear", "bicubic")
    },
    "interpolate bilinear by a half": "F.interpolate(x, scale_factor=0.5, mode='bilinear')",
    "adaptive_avg_pool2d 6": "F.adaptive_avg_pool2d(x, 6)",
    "adaptive_max_pool2d 8": "F.adaptive_max_pool2d(x, 8)",
    **{f"pad {mode}": f"F.pad(x, (1, 1, 1, 1), {mode!r})" for mode in ("constant", "reflect", "replicate", "circular")},
    "pixel_shuffle": "F.pixel_shuffle(x, 2)",
    "channel_shuffle": "F.channel_shuffle(x, 4)",
    **{
        f"grid_sample {mode}": f"F.grid_sample(x, grid, {mode!r}, align_corners=False)"
        for mode in ("bilinear", "bicubic")
    },
}


def image(expression, last):
    code = compile(expression, "<case>", "eval")

    def make(L):
        x = L.randn(4, 16, 64, 64)
        x = (x.contiguous(memory_format=L.channels_last) if last else x).requires_grad_(True)
        names = {"F": L.nn.functional, "x": x, "grid": (L.rand(4, 64, 64, 2) * 2 - 1).requires_grad_(True)}
        g = L.randn_like(eval(code, names).detach())
        return lambda: eval(code, names).backward(g)

    return make


for name, expression in IMAGES.items():
    for last in (False, True):
        case(f"{name} 4x16x64x64{', channels last' if last else ''}, both ways", 2)(image(expression, last))


@case("embedding_bag max, 512 bags of 32 rows of 64, forward and backward", 2)
def bags(L):
    weight, items = L.randn(10000, 64, requires_grad=True), L.randint(0, 10000, (512, 32))
    return lambda: L.nn.functional.embedding_bag(items, weight, mode="max").sum().backward()


@case("cumsum 16x64x28x28, forward and backward", 2)
def running(L):
    x, g = L.randn(16, 64, 28, 28, requires_grad=True), L.randn(16, 64, 28, 28)
    return lambda: x.cumsum(-1).backward(g)


@case("load_state_dict of 2,000 tensors", 1)
def load(L):
    model = L.nn.ModuleList([L.nn.Linear(4, 4) for _ in range(1000)])
    state = model.state_dict()
    return lambda: model.load_state_dict(state)


def timed(function: Callable, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    taeda.set_num_threads(options.threads)
    print(f"{'':60} {'taeda us':>10} {'torch us':>10} {'ratio':>7}")
    for name, (make, count) in CASES.items():
        if options.names and not any(n in name for n in options.names):
            continue
        ours, theirs = make(taeda), make(torch)
        ours(), theirs()
        turns = [(timed(ours, count), timed(theirs, count)) for _ in range(9)]
        a, b = (statistics.median(t[i] for t in turns) for i in range(2))
        print(f"{name:60} {a:10.1f} {b:10.1f} {statistics.median(x / y for x, y in turns):7.3f}", flush=True)


if __name__ == "__main__":
    main()
