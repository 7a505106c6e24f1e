"""Pointwise ops on tensors that no cache holds (4096 x 2048), against the time of a copy of as many bytes, and PyTorch.

    python bench/run.py --large                    # or: python bench/large.py [part of a name ...] [--threads 1]

Of floor: the time that the machine needs to move what the op reads and writes, at the rate of a copy of that size
measured in the same run, in per cent of taeda's best time. The ratio is the median of taeda's time over torch's, in
turns.

Computing: what an element more costs where all is in the second-level cache, times the elements, likewise. Where that
is near 100 the kernel's instructions bound the op and no faster memory would help; where both are far below, something
else is wrong.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import torch
from worker import floor_of, seconds_per_call

import taeda

#: What the expressions below are written in; ``g`` and ``hg`` want gradients.
INPUTS = """
a, b, u = T.randn(ROWS, 2048), T.randn(ROWS, 2048), T.rand(ROWS, 2048)
m, i = a > 0, (a * 100).to(T.int64)
row, column = T.randn(2048), T.randn(ROWS, 1)
h, l = a.to(T.bfloat16), b.to(T.bfloat16)
q, d = a.to(T.float16), a.double()
p = T.randn(ROWS, 2048)
g = T.randn(ROWS, 2048).requires_grad_()
G = T.randn(ROWS, 2048)
hg = T.randn(ROWS, 2048).to(T.bfloat16).requires_grad_()
"""

_UNARY = "relu leaky_relu gelu silu sigmoid tanh hardswish elu softplus mish"
FORWARD = {name: f"F.{name}(a)" for name in _UNARY.split()} | {
    "gelu, tanh form": "F.gelu(a, approximate='tanh')",
    "dropout": "F.dropout(a, 0.1)",
    "abs": "a.abs()",
    "neg": "-a",
    "exp": "a.exp()",
    "log": "u.log()",
    "sqrt": "u.sqrt()",
    "rsqrt": "u.rsqrt()",
    "a ** 2": "a ** 2",
    "a ** 3": "a ** 3",
    "reciprocal": "u.reciprocal()",
    "a + b": "a + b",
    "a * b": "a * b",
    "a / b": "a / b",
    "a * 2": "a * 2",
    "clamp": "a.clamp(-1, 1)",
    "where": "T.where(m, a, b)",
    "where with a number": "T.where(m, a, 0.0)",
    "masked_fill": "a.masked_fill(m, 0.0)",
    "maximum": "T.maximum(a, b)",
    "addcmul": "T.addcmul(a, b, u)",
    "lerp": "T.lerp(a, b, 0.3)",
    "a > 0": "a > 0",
    "a > b": "a > b",
    "a == b": "a == b",
    "isnan": "a.isnan()",
    "row broadcast": "a + row",
    "column broadcast": "a * column",
}
CASTS = {
    "float32 to bfloat16": "a.to(T.bfloat16)",
    "float32 to float16": "a.to(T.float16)",
    "float32 to float64": "a.double()",
    "float32 to int64": "a.to(T.int64)",
    "bfloat16 to float32": "h.float()",
    "float16 to float32": "q.float()",
    "float64 to float32": "d.float()",
    "int64 to float32": "i.float()",
    "bool to float32": "m.float()",
}
INPLACE = {
    "add_": "p.add_(b)",
    "mul_ by a number": "p.mul_(0.999)",
    "relu_": "F.relu_(p)",
    "copy_": "p.copy_(a)",
    "fill_": "p.fill_(1.0)",
    "zeros": "T.zeros(4096, 2048)",
    "masked_fill_": "p.masked_fill_(m, 0.5)",
}
DTYPES = {
    "float64 d + d": "d + d",
    "float64 d * 2": "d * 2",
    "float64 relu": "F.relu(d)",
    "bfloat16 h + l": "h + l",
    "bfloat16 h * 2": "h * 2",
    "bfloat16 relu": "F.relu(h)",
    "bfloat16 gelu": "F.gelu(h)",
    "bfloat16 silu": "F.silu(h)",
    "float16 q + q": "q + q",
    "float16 relu": "F.relu(q)",
    "int64 i + i": "i + i",
    "bool m & m": "m & m",
}
STRIDED = {
    "a.t() + b.t()": "a.t() + b.t()",
    "every second column": "a[:, ::2] + b[:, ::2]",
    "half of the columns": "a[:, :1024] + b[:, :1024]",
    "a + b of other order": "a + b.view(2048, 4096).t()",
    "transposed copy": "a.t().contiguous()",
}
_BACKWARD = "relu leaky_relu gelu silu sigmoid tanh hardswish elu softplus mish"
BACKWARD = {f"{name}, backward": f"F.{name}(g)" for name in _BACKWARD.split()} | {
    "g * b, backward": "g * b",
    "g / u, backward": "g / u",
    "g + b, backward": "g + b",
    "g ** 2, backward": "g ** 2",
    "exp, backward": "g.exp()",
    "abs, backward": "g.abs()",
    "clamp, backward": "g.clamp(-1, 1)",
    "where, backward": "T.where(m, g, b)",
    "masked_fill, backward": "g.masked_fill(m, 0.0)",
    "bfloat16 gelu, backward": "F.gelu(hg)",
}


def backward(T: Any, names: dict[str, Any], expression: str) -> Any:
    """A function that takes the gradient of the expression again and again."""
    out = eval(expression, names)
    grad = names["G"].to(out.dtype)
    leaf = names["hg" if "hg" in expression else "g"]
    return lambda: T.autograd.grad(out, leaf, grad, retain_graph=True)


def prepare(T: Any, rows: int = 4096) -> dict[str, Any]:
    """The names that the expressions use."""
    names: dict[str, Any] = {"T": T, "F": T.nn.functional, "ROWS": rows}
    T.manual_seed(0)
    exec(INPUTS, names)
    return names


def ready(T: Any, names: dict[str, Any], group: dict[str, str], expression: str) -> Any:
    """What is timed."""
    return backward(T, names, expression) if group is BACKWARD else eval(f"lambda: {expression}", names)


def computing(few: list[dict[str, Any]], group: dict[str, str], expression: str) -> float:
    """Seconds that 4096 rows would take at the rate at which the second of two small sizes takes longer than the
    first."""
    times = [seconds_per_call(ready(taeda, names, group, expression), 5, 0.005) for names in few]
    return (times[1] - times[0]) / (few[1]["ROWS"] - few[0]["ROWS"]) * 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    frameworks = (taeda, torch)
    for T in frameworks:
        T.set_num_threads(args.threads)
    names = {T: prepare(T) for T in frameworks}
    few = [prepare(taeda, rows) for rows in (8, 16)]
    print(f"{'':28}   taeda    torch  ratio  of floor  computing")
    for group in (FORWARD, CASTS, INPLACE, DTYPES, STRIDED, BACKWARD):
        for name, expression in group.items():
            if args.only and not any(text in name for text in args.only):
                continue
            run = {T: ready(T, names[T], group, expression) for T in frameworks}
            floor = floor_of(taeda, run[taeda])
            times: dict[Any, list[float]] = {T: [] for T in frameworks}
            for _ in range(args.rounds):
                for T in frameworks:
                    times[T].append(seconds_per_call(run[T], 3, 0.01))
            ratio = statistics.median(x / y for x, y in zip(times[taeda], times[torch], strict=True))
            ours, theirs = (min(times[T]) for T in frameworks)
            own = ""
            if group is not STRIDED and args.threads == 1:  # small sizes go to one thread, and some views need all rows
                own = f"{100 * computing(few, group, expression) / ours:9.0f}%"
            print(
                f"{name:28} {ours * 1e3:5.2f} ms {theirs * 1e3:5.2f} ms {ratio:6.2f} {100 * floor / ours:6.0f}% {own}",
                flush=True,
            )


if __name__ == "__main__":
    main()
