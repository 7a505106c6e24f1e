"""What the benchmark measures: every case is written once against a framework module ``T`` (taeda or torch)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import everyday
import models
import workloads

Make = Callable[[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """``make(T)`` prepares the inputs and gives the function to time; ``bar`` is the highest ratio aimed at."""

    name: str
    group: str
    make: Make
    bar: float | None
    threads: int = 1


CASES: list[Case] = []


def case(name: str, group: str, bar: float | None, threads: tuple[int, ...] = (1,)) -> Callable[[Make], Make]:
    """Add a function that makes a case, once for each number of threads."""

    def add(make: Make) -> Make:
        for n in threads:
            label = f"{name}, {n} thread{'s' if n > 1 else ''}" if len(threads) > 1 else name
            CASES.append(Case(label, group, make, bar, n))
        return make

    return add


# ---- 40 small ops: only their geometric mean has a bar -------------------------------------------------------------
def _small_inputs(T: Any) -> dict[str, Any]:
    nn, F = T.nn, T.nn.functional
    T.manual_seed(0)
    a, b = T.randn(8, 8), T.randn(8, 8)
    cell = nn.LSTMCell(32, 32)
    return {
        "T": T,
        "F": F,
        "a": a,
        "b": b,
        "c": a.abs() + 1,
        "m": a > b,
        "g": T.randn(8, 8, requires_grad=True),
        "h": T.randn(8, 8, requires_grad=True),
        "w": T.randn(8, 8),
        "v": T.randn(8),
        "ones": T.ones(8),
        "idx": T.tensor([3, 1, 7, 0]),
        "image": T.randn(1, 8, 8, 8),
        "filter": T.randn(8, 8, 3, 3),
        "cell": cell,
        "step": T.randn(4, 32),
        "state": (T.zeros(4, 32), T.zeros(4, 32)),
        "one": T.tensor(1.5),
    }


SMALL = {
    "a + b": "a + b",
    "a - b": "a - b",
    "a * b": "a * b",
    "a / c": "a / c",
    "a * 2.0": "a * 2.0",
    "a + 1": "a + 1",
    "1.0 - a": "1.0 - a",
    "-a": "-a",
    "a ** 2": "a ** 2",
    "exp": "T.exp(a)",
    "tanh": "T.tanh(a)",
    "relu": "F.relu(a)",
    "sqrt": "c.sqrt()",
    "a > b": "a > b",
    "a == 0": "a == 0",
    "where": "T.where(m, a, b)",
    "clamp": "a.clamp(-1.0, 1.0)",
    "add_": "w.add_(b)",
    "sum": "a.sum()",
    "sum(0)": "a.sum(0)",
    "mean(1)": "a.mean(1)",
    "max": "a.max()",
    "argmax(1)": "a.argmax(1)",
    "t": "a.t()",
    "view": "a.view(64)",
    "a[0]": "a[0]",
    "a[:, 1:3]": "a[:, 1:3]",
    "a[idx]": "a[idx]",
    "cat": "T.cat([a, b])",
    "stack": "T.stack([a, b])",
    "softmax": "F.softmax(a, -1)",
    "layer_norm": "F.layer_norm(a, (8,), ones, v)",
    "a @ b": "a @ b",
    "linear": "F.linear(a, w, v)",
    "conv2d 1x8x8x8, 3x3": "F.conv2d(image, filter, padding=1)",
    "g + h, with grad": "g + h",
    "g @ h, with grad": "g @ h",
    "(g * h).sum().backward()": "(g * h).sum().backward()",
    "LSTMCell(32), batch 4": "cell(step, state)",
    "item": "one.item()",
}


def _small(expression: str) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        return eval(f"lambda: {expression}", _small_inputs(T))

    return make


for _name, _expression in SMALL.items():
    case(_name, "small_ops", None)(_small(_expression))


# ---- a hundred everyday calls: each has a bar -----------------------------------------------------------------------
for _expression in everyday.EXPRESSIONS:
    case(f"everyday: {_expression}", "everyday", 0.5)(everyday.maker(_expression))


# ---- training steps of small programs ------------------------------------------------------------------------------
case("tanh RNN by hand, 50 steps, hidden 64, batch 8: training step", "small_models", 0.35)(models.tanh_rnn)
case("MLP 4-64-64-2, batch 32, Adam: training step", "small_models", 0.30)(models.small_mlp)


# ---- mathematics of large tensors ----------------------------------------------------------------------------------
def _unary(name: str) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        x = T.randn(1_000_000)
        if name == "log":
            x = x.abs() + 1e-3
        out = T.empty(1_000_000)
        if name in ("gelu", "silu"):  # both have an out= form, but not under a public name
            function = getattr(T._C._nn if T.__name__ == "torch" else T.ops.activation, name)
        else:
            function = getattr(T, name)
        return lambda: function(x, out=out)

    return make


for _name in ("exp", "tanh", "erf", "sin", "log", "sigmoid", "gelu", "silu"):
    case(f"{_name} of 1M float32, out=", "unary", 0.60)(_unary(_name))


def _large(expression: str) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        return eval(f"lambda: {expression}", {"a": T.randn(4096, 2048), "b": T.randn(4096, 2048)})

    return make


case("4096x2048: a + b", "memory", 0.5)(_large("a + b"))
case("4096x2048: sum", "memory", 1.0)(_large("a.sum()"))
case("4096x2048: sum over dim 0", "memory", 0.8)(_large("a.sum(0)"))
case("4096x2048: transposed copy", "memory", 0.6)(_large("a.t().contiguous()"))


@case("softmax 512x1024", "rows", 0.7)
def _softmax(T: Any) -> Callable[[], Any]:
    x = T.randn(512, 1024)
    return lambda: T.nn.functional.softmax(x, -1)


@case("log_softmax 512x1024", "rows", 0.7)
def _log_softmax(T: Any) -> Callable[[], Any]:
    x = T.randn(512, 1024)
    return lambda: T.nn.functional.log_softmax(x, -1)


@case("layer_norm 512x1024", "rows", 0.9)
def _layer_norm(T: Any) -> Callable[[], Any]:
    x, weight, bias = T.randn(512, 1024), T.randn(1024), T.randn(1024)
    return lambda: T.nn.functional.layer_norm(x, (1024,), weight, bias)


# ---- products and convolution --------------------------------------------------------------------------------------
def _matmul(n: int) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        a, b = T.randn(n, n), T.randn(n, n)
        return lambda: a @ b

    return make


for _n in (64, 256, 512, 1024):
    case(f"matmul {_n}", "matmul", 1.05, (1, 2))(_matmul(_n))


@case("bmm 64x64x64x64", "matmul", 1.05, (1, 2))
def _bmm(T: Any) -> Callable[[], Any]:
    a, b = T.randn(64, 64, 64), T.randn(64, 64, 64)
    return lambda: T.bmm(a, b)


@case("conv2d 3x3, 64 to 64 channels, 32x32, batch 16", "conv", 1.3, (1, 2))
def _conv2d(T: Any) -> Callable[[], Any]:
    x, weight = T.randn(16, 64, 32, 32), T.randn(64, 64, 3, 3)
    return lambda: T.nn.functional.conv2d(x, weight, padding=1)


# ---- training steps of larger programs -----------------------------------------------------------------------------
case("char-GPT 4 layers, 128 wide, context 64, batch 12, AdamW: training step", "models", 0.85, (1, 2))(models.char_gpt)
case("MLP 784-512-512-10, batch 128, SGD: training step", "models", 0.95, (1, 2))(models.large_mlp)


# ---- what people train and run: `run.py --workloads` -----------------------------------------------------------------
for _name, (_make, _bar) in workloads.WORKLOADS.items():
    case(_name, "workloads", _bar, (1, 2))(_make)
