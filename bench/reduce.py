"""Reductions, softmax, normalisation, losses and scans against PyTorch: ``bench/reduce.py [name ...] [--threads n]``.

Each expression is timed in both libraries by turns in one process: the fastest of ten batches per turn. Printed are the
median times over the turns and the median of the ratios taeda / torch.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from typing import Any

from worker import by_turns

SIZES = {"8": (8, 8), "4K": (64, 64), "512K": (512, 1024), "8M": (4096, 2048)}

FORWARD = {
    "sum": "a.sum()",
    "sum 0": "a.sum(0)",
    "sum 1": "a.sum(1)",
    "mean": "a.mean()",
    "mean 1": "a.mean(1)",
    "max": "a.max()",
    "max 1": "a.max(1)",
    "amax 0": "a.amax(0)",
    "argmax": "a.argmax()",
    "argmax 1": "a.argmax(1)",
    "any": "m.any()",
    "all 1": "m.all(1)",
    "prod 1": "a.prod(1)",
    "var": "a.var()",
    "var 0": "a.var(0)",
    "std 1": "a.std(1)",
    "norm": "a.norm()",
    "logsumexp 1": "a.logsumexp(1)",
    "sum of int64": "i.sum()",
    "sum of bfloat16, 1": "h.sum(1)",
    "softmax": "a.softmax(-1)",
    "softmax 0": "a.softmax(0)",
    "log_softmax": "a.log_softmax(-1)",
    "layer_norm": "F.layer_norm(a, (n,), w, v)",
    "rms_norm": "F.rms_norm(a, (n,), w)",
    "group_norm": "F.group_norm(a, 8, w, v)",
    "batch_norm": "F.batch_norm(a, v, w2, w, v, True)",
    "batch_norm, images": "F.batch_norm(p, None, None, training=True)",
    "cross_entropy": "F.cross_entropy(a, t)",
    "nll_loss": "F.nll_loss(a, t)",
    "mse_loss": "F.mse_loss(a, b)",
    "bce_with_logits": "F.binary_cross_entropy_with_logits(a, m1)",
    "cumsum 1": "a.cumsum(1)",
    "cumsum 0": "a.cumsum(0)",
    "cumprod 1": "a.cumprod(1)",
    "cummax 1": "a.cummax(1)",
    "logcumsumexp 1": "a.logcumsumexp(1)",
}
BACKWARD = {
    "sum, backward": "x.sum()",
    "mean 0, backward": "x.mean(0).sum()",
    "softmax, backward": "(x.softmax(-1) * b).sum()",
    "log_softmax, backward": "(x.log_softmax(-1) * b).sum()",
    "layer_norm, backward": "(F.layer_norm(x, (n,), gw, gv) * b).sum()",
    "batch_norm, backward": "(F.batch_norm(x, None, None, gw, gv, True) * b).sum()",
    "cross_entropy, backward": "F.cross_entropy(x, t)",
    "var 1, backward": "x.var(1).sum()",
}
BARS = {  # of issue 2, one thread
    ("sum", "8M"): 1.0,
    ("sum 0", "8M"): 0.8,
    ("softmax", "512K"): 0.7,
    ("log_softmax", "512K"): 0.7,
    ("layer_norm", "512K"): 0.9,
}
SLOW_AT_8M = {"var", "var 0", "std 1", "logcumsumexp 1", "cummax 1"}  # PyTorch takes tens of milliseconds


def scope(T: Any, shape: tuple[int, int]) -> dict[str, Any]:
    """The names that expressions use."""
    T.manual_seed(0)
    rows, n = shape
    a, b = T.randn(*shape), T.randn(*shape)
    w, v = T.rand(n), T.randn(n)
    return {
        "T": T,
        "F": T.nn.functional,
        "n": n,
        "a": a,
        "b": b,
        "m": a > 0,
        "m1": (a > 0).to(T.float32),
        "i": T.randint(0, 100, shape),
        "h": a.to(T.bfloat16),
        "w": w,
        "v": v,
        "w2": T.rand(n) + 1,
        "t": T.randint(0, n, (rows,)),
        "p": a.reshape(8, 8, -1) if rows * n > 64 else a.reshape(2, 4, 8),
        "x": T.randn(*shape).requires_grad_(),
        "gw": w.clone().requires_grad_(),
        "gv": v.clone().requires_grad_(),
    }


def compiled(expression: str, names: dict[str, Any], backward: bool) -> Callable[[], Any]:
    """The expression as a function; with ``backward``, also of its gradients."""
    source = f"lambda: ({expression}).backward()" if backward else f"lambda: {expression}"
    return eval(source, dict(names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only cases whose name starts with one of these")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02)
    options = parser.parse_args()

    import torch

    import taeda

    frameworks = (taeda, torch)
    for T in frameworks:
        T.set_num_threads(options.threads)
    print(f"{'case':26} {'size':>5} {'taeda us':>10} {'torch us':>10} {'ratio':>6}  bar")
    ratios = []
    for size in options.sizes:
        ours, theirs = (scope(T, SIZES[size]) for T in frameworks)
        for name, expression in {**FORWARD, **BACKWARD}.items():
            if options.names and not any(name.startswith(n) for n in options.names):
                continue
            if size == "8M" and (name in BACKWARD or name in SLOW_AT_8M) and not options.names:
                continue
            fns = [compiled(expression, names, name in BACKWARD) for names in (ours, theirs)]
            a, b, r = by_turns(*fns, options.rounds, 10, options.seconds / 10)
            bar = BARS.get((name, size), "")
            print(f"{name:26} {size:>5} {a * 1e6:10.2f} {b * 1e6:10.2f} {r:6.2f}  {bar}", flush=True)
            ratios.append(r)
    if ratios:
        print(f"geometric mean of {len(ratios)}: {math.exp(statistics.fmean(math.log(r) for r in ratios)):.2f}")


if __name__ == "__main__":
    main()
