"""Kernels of ``examples/kernels`` beside the library's own: medians of processor time taken in turn, one thread.

Processor time leaves out the turns of other processes.

``python bench/own_kernels.py [name ...]``; a name is a part of a row's.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import taeda
from taeda import kernel
from taeda.autograd import Function

F = taeda.nn.functional
EXAMPLES = Path(__file__).parents[1] / "examples" / "kernels"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(name: str, own: Callable, ours: Callable, runs: int = 31) -> None:
    if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
        return
    own(), ours(), own(), ours()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for f, found in zip((own, ours), times, strict=True):
            start = time.process_time()
            f()
            found.append(time.process_time() - start)
    a, b = map(median, times)
    fastest = min(times[0]) / min(times[1])
    print(
        f"{name:34} {a * 1e6:10.1f} us {b * 1e6:10.1f} us   ratio {a / b:5.2f}, of the fastest {fastest:5.2f}",
        flush=True,
    )


def per_call(name: str, f: Callable, number: int = 50, runs: int = 200) -> None:
    if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
        return
    found = []
    for _ in range(runs):
        start = time.process_time()
        for _ in range(number):
            f()
        found.append((time.process_time() - start) / number)
    print(f"{name:34} {median(found) * 1e6:10.2f} us   fastest {min(found) * 1e6:.2f} us", flush=True)


def kernels() -> None:
    x, y = taeda.randn(1 << 20), taeda.randn(1 << 20)
    add = example("vector_addition").add
    compare("vector addition, 1M", lambda: add(x, y), lambda: x + y)
    softmax = example("softmax").softmax
    for shape in ((1024, 1000), (4096, 256)):
        z = taeda.randn(*shape)
        compare(f"softmax, {shape[0]} x {shape[1]}", lambda z=z: softmax(z), lambda z=z: z.softmax(1))

    @kernel.row(name="bench::softmax")
    def rows(x):
        e = kernel.exp(x - kernel.max(x))
        return e / kernel.sum(e)

    compare("softmax by kernel.row, 4096 x 256", lambda: rows(z), lambda: z.softmax(1))
    linear_gelu = example("product").linear_gelu
    a, b, c = taeda.randn(512, 512), taeda.randn(512, 512), taeda.randn(512)
    compare("product and gelu, 512", lambda: linear_gelu(a, b, c), lambda: F.gelu(a @ b + c))
    dropout = example("dropout").dropout
    compare("dropout, 1M", lambda: dropout(x, 0.3, 1), lambda: F.dropout(x, 0.3))
    layer_norm = example("layer_norm").layer_norm
    z, w = taeda.randn(1024, 768, requires_grad=True), taeda.randn(768, requires_grad=True)
    g = taeda.randn(1024, 768)
    with taeda.no_grad():
        compare("layer norm, 1024 x 768", lambda: layer_norm(z, w, w), lambda: F.layer_norm(z, (768,), w, w))
    compare(
        "layer norm and gradient",
        lambda: taeda.autograd.grad(layer_norm(z, w, w), (z, w), g),
        lambda: taeda.autograd.grad(F.layer_norm(z, (768,), w, w), (z, w), g),
    )
    attention = example("attention").attention
    q, k, v = (taeda.randn(1, 8, 512, 64) for _ in range(3))
    for causal in (False, True):
        compare(
            f"attention, 8 heads, 512 x 64{', causal' if causal else ''}",
            lambda causal=causal: attention(q, k, v, 0.125, causal),
            lambda causal=causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            15,
        )


def calls() -> None:
    """What a call costs beside its kernel, on 8 x 8."""
    x, gx = taeda.ones(8, 8), taeda.ones(8, 8, requires_grad=True)

    @kernel.grid(name="bench::one", out=lambda x: x)
    def one(x, out):
        i, j = kernel.tiles(out, (1, 8))
        out[i, j] = x[i, j] + 1.0

    @taeda.library.custom_op("bench::nothing", mutates_args=())
    def nothing(x: taeda.Tensor) -> taeda.Tensor:
        return x.clone()

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    per_call("call: x.clone()", lambda: x.clone())
    per_call("call: custom_op around clone", lambda: nothing(x))
    per_call("call: Function around clone", lambda: Same.apply(gx))
    per_call("call: kernel.grid", lambda: one(x))
    swap = taeda.library.bind("void swab(const uint8_t *x, uint8_t *y, int64_t n)", name="bench::swap")
    u = taeda.ones(8, 8, dtype=taeda.uint8)
    per_call("call: library.bind", lambda: swap(u))


if __name__ == "__main__":
    taeda.set_num_threads(1)
    calls()
    kernels()
