"""What ``run.py --target`` and ``run.py --neighbour`` time: kernels near the machine's limit, in short windows.

Both frameworks are held to one instruction set (:data:`TARGETS`) and take turns by windows of 25 ms, alone or beside a
neighbour: a process that streams through the caches, or one that multiplies matrices in them. Printed are the times
that 10, 50 and 90 per cent of the windows do not exceed, and the ratios taeda / torch of these. On one thread it is
processor time: what a neighbour takes of the processor is left out, what it does to the caches is not.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import workloads
from cases import Case, Make
from timing import FRAMEWORKS, Worker, _seconds, cpu, verdict

#: Environments that hold both frameworks to an instruction set. MKL keeps to AVX2 on AMD in any case.
TARGETS = {
    "avx2": {
        "TAEDA_TARGET": "avx2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "avx512": {"TAEDA_TARGET": "avx512"},
}
NEIGHBOURS = ("streams", "multiplies")
WINDOW = 0.025
#: Windows of one turn; one where a call takes longer than four.
TOGETHER = 4
QUANTILES = (0.1, 0.5, 0.9)
HEADING = "## AVX2"

CASES: list[Case] = []


def _case(name: str, bar: float | None, make: Make, threads: tuple[int, ...] = (1,)) -> None:
    CASES.extend(Case(f"{name}, {n} thread{'s' * (n > 1)}", "limits", make, bar, n) for n in threads)


# ---- products ------------------------------------------------------------------------------------------------------
def _product(m: int, n: int, k: int, form: str = "NN", dtype: str = "float32") -> Make:
    def make(T: Any) -> Callable[[], Any]:
        size_a, size_b = (k, m) if form[0] == "T" else (m, k), (n, k) if form[1] == "T" else (k, n)
        a, b = (T.randn(*size, dtype=getattr(T, dtype)) for size in (size_a, size_b))
        a, b = a.t() if form[0] == "T" else a, b.t() if form[1] == "T" else b
        return lambda: a @ b

    return make


for _n in (128, 256, 384, 512, 1024, 2048):
    _case(f"product {_n}", 0.97, _product(_n, _n, _n), (1, 2))
for _form in ("NT", "TN"):
    for _n in (128, 256, 512, 1024):
        _case(f"product {_n} {_form}", 0.97, _product(_n, _n, _n, _form))
for _n in (129, 250, 515, 1001):
    _case(f"product {_n}", 0.97, _product(_n, _n, _n))
for _n in (256, 512, 1024):
    _case(f"product {_n} float64", 0.97, _product(_n, _n, _n, dtype="float64"))
for _m, _k, _o in ((768, 128, 384), (1024, 512, 2048)):
    for _form in ("NN", "NT", "TN"):
        _case(f"product {_m}x{_k}x{_o} {_form}", 0.97, _product(_m, _o, _k, _form))


def _bmm(T: Any) -> Callable[[], Any]:
    a, b = T.randn(64, 64, 64), T.randn(64, 64, 64)
    return lambda: T.bmm(a, b)


_case("bmm 64x64x64x64", 0.95, _bmm, (1, 2))


# ---- attention, mathematics, convolutions, rows --------------------------------------------------------------------
def _attention(b: int, h: int, n: int, e: int, causal: bool) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        q, k, v = (T.randn(b, h, n, e) for _ in range(3))
        return lambda: T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return make


for _shape in ((12, 4, 64, 32), (4, 8, 256, 64), (1, 8, 1024, 64)):
    for _causal in (True, False):
        _label = f"attention {'x'.join(map(str, _shape))}" + ", causal" * _causal
        _case(_label, 0.80, _attention(*_shape, _causal))


def _unary(name: str) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        x, out = T.randn(1_000_000), T.empty(1_000_000)
        inner = T._C._nn if T.__name__ == "torch" else T.ops.activation
        function = getattr(inner if name in ("gelu", "silu") else T, name)
        return lambda: function(x, out=out)

    return make


for _name, _bar in (("gelu", 0.70), ("erf", 0.60), ("silu", 0.55), ("sigmoid", 0.55), ("exp", 0.60), ("tanh", 0.60)):
    _case(f"{_name} of 1M, out=", _bar, _unary(_name))


def _convolution(x: tuple[int, ...], w: tuple[int, ...], gradient: int | None = None, **options: int) -> Make:
    def make(T: Any) -> Callable[[], Any]:
        inputs = T.randn(*x), T.randn(*w)
        if gradient is None:
            return lambda: T.nn.functional.conv2d(*inputs, **options)
        inputs[gradient].requires_grad_()
        out = T.nn.functional.conv2d(*inputs, **options)
        g = T.randn(*out.shape)
        return lambda: T.autograd.grad(out, inputs[gradient], g, retain_graph=True)

    return make


for _c, _side, _stride in ((96, 32, 1), (144, 56, 1), (96, 56, 2)):
    for _gradient, _what in ((None, ""), (0, ", input's gradient"), (1, ", weights' gradient")):
        _make = _convolution((16, _c, _side, _side), (_c, 1, 3, 3), _gradient, padding=1, groups=_c, stride=_stride)
        _case(f"depthwise 3x3, 16x{_c}x{_side}x{_side}, stride {_stride}{_what}", 1.0, _make)
for _gradient, _what in ((None, ""), (1, ", weights' gradient")):
    _make = _convolution((4, 3, 112, 112), (64, 3, 7, 7), _gradient, padding=3, stride=2)
    _case(f"7x7 stem, 4x3x112x112, stride 2{_what}", 1.0, _make)
_case("conv2d 3x3, 16x64x32x32", 1.0, _convolution((16, 64, 32, 32), (64, 64, 3, 3), padding=1))


def _embedding(T: Any) -> Callable[[], Any]:
    rows, table = T.randint(0, 10000, (16384,)), T.randn(10000, 256)
    return lambda: T.nn.functional.embedding(rows, table)


def _index_add(T: Any) -> Callable[[], Any]:
    rows, table, x = T.randint(0, 1024, (1024,)), T.randn(1024, 1024), T.randn(1024, 1024)
    return lambda: table.index_add_(0, rows, x)


_case("embedding, 16384 of 10000 rows of 256", 0.95, _embedding)
_case("index_add, 1024 rows of 1024", 0.95, _index_add)


# ---- models ----------------------------------------------------------------------------------------------------------
def _lstm(T: Any) -> Callable[[], Any]:
    model, x = T.nn.LSTM(256, 256), T.randn(32, 16, 256)

    def step() -> Any:
        model.zero_grad()
        model(x)[0].sum().backward()

    return step


_case("LSTM 256, 32 steps, batch 16, with gradients", 0.85, _lstm, (1, 2))
_case("LSTM language model 2x200", 0.85, workloads.lstm_language_model, (1, 2))
_case("char-GPT training step", 0.78, models.char_gpt, (1, 2))
_case("GPT 512 wide training step", 0.82, workloads.gpt, (1, 2))
_case("ResNet-18 training step", 0.62, workloads.resnet18, (1, 2))


# ---- neighbours ------------------------------------------------------------------------------------------------------
def neighbour(kind: str, cpu: int) -> None:
    """Disturb what runs on or beside ``cpu`` until killed: with NumPy, so that neither framework is its own
    neighbour."""
    import numpy as np

    os.sched_setaffinity(0, {cpu})
    if kind == "streams":
        x = np.ones(1 << 24, np.float32)
        while True:
            x += 1
    a = np.ones((512, 512), np.float32)
    while True:
        a @ a


def placements() -> dict[str, tuple[int, int]]:
    """``(our processor, the neighbour's)`` by name: another core, the other thread of a core, the same processor."""
    cpus = sorted(os.sched_getaffinity(0))
    text = Path(f"/sys/devices/system/cpu/cpu{cpus[0]}/topology/thread_siblings_list")
    siblings: set[int] = set()
    for part in text.read_text().strip().split(",") if text.exists() else ():
        first, _, last = part.partition("-")
        siblings |= set(range(int(first), int(last or first) + 1))
    others = {"the other core": [c for c in cpus[1:] if c not in siblings]}
    others["the same core"] = [c for c in cpus[1:] if c in siblings]
    return {name: (cpus[0], found[0]) for name, found in others.items() if found} | {
        "the same processor": (cpus[0], cpus[0])
    }


def quantile(values: list[float], share: float) -> float:
    """The smallest of ``values`` that at least ``share`` of them do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def _row(case: Case, times: dict[str, list[float]]) -> list[str]:
    found = {f: [quantile(times[f], q) for q in QUANTILES] for f in FRAMEWORKS}
    best = min(times["taeda"]) / min(times["torch"])
    ratios = [ours / theirs for ours, theirs in zip(*found.values(), strict=True)]
    cells = [" / ".join(_seconds(t) for t in found[f]) for f in FRAMEWORKS]
    return [case.name, *cells, *(f"{r:.2f}" for r in (best, *ratios)), *verdict(ratios[0], case.bar)]


def measure(cases: list[Case], rounds: int, place: tuple[int, int] | None) -> list[list[str]]:
    """A row for each case: each framework in turn, ``rounds`` times :data:`TOGETHER` windows; on our processor of
    ``place``."""
    rows = []
    for threads in sorted({c.threads for c in cases}):
        workers = {f: Worker(f, threads) for f in FRAMEWORKS}
        if place:
            for worker in workers.values():
                os.sched_setaffinity(worker.process.pid, {place[0]})
        for case in (c for c in cases if c.threads == threads):
            times: dict[str, list[float]] = {f: [] for f in FRAMEWORKS}
            error = ""
            for _ in range(rounds):
                for framework, worker in workers.items():
                    slow = max(times[framework], default=0.0) > 0.1
                    answer = worker.time(case, WINDOW, windows=1 if slow else TOGETHER)
                    error = error or answer.get("error", "")
                    times[framework] += answer.get("windows", [])
                if error:
                    break
            rows.append([case.name, error, *[""] * 7] if error else _row(case, times))
            print("  ".join(rows[-1]), flush=True)
        for worker in workers.values():
            worker.close()
    return rows


def _table(rows: list[list[str]]) -> str:
    from sweep import markdown

    head = ["what", "taeda 10 / 50 / 90 %", "torch", "ratio of the best", "10 %", "50 %", "90 %", "at most", "met"]
    return markdown(head, rows)


def run(args: argparse.Namespace) -> None:
    """Print the tables; ``--write`` puts that of a quiet machine and those beside neighbours into RESULTS.md."""
    import sweep

    cases = [c for c in CASES if c.threads in args.threads]
    cases = [c for c in cases if not args.only or any(text in c.name for text in args.only)]
    rounds = args.rounds
    start = (
        f"Measured {datetime.date.today().isoformat()} with `{args.command}` on {cpu()}: {rounds} turns of each "
        f"framework, {TOGETHER} windows of 25 ms in a turn, one where a call takes longer than 100 ms. On one thread "
        "processor time."
    )
    parts = [start]
    if args.neighbour is None:
        parts.append(_table(measure(cases, rounds, None)))
    else:
        cases = [c for c in cases if c.threads == 1]
        for kind in args.neighbour or NEIGHBOURS:
            for name, place in placements().items():
                print(f"beside a neighbour that {kind} on {name}")
                command = [sys.executable, __file__, kind, str(place[1])]
                process = subprocess.Popen(command, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
                try:
                    rows = measure(cases, rounds, place)
                finally:
                    process.kill()
                    process.wait()
                parts += [f"Beside a neighbour that {kind} on {name}:", _table(rows)]
    page = "\n\n".join(parts)
    print("\n" + page)
    if args.write:
        alone = f"{HEADING}, on Intel" if "Intel" in cpu() else HEADING
        sweep.put(alone if args.neighbour is None else f"{HEADING}, beside a neighbour", page)


if __name__ == "__main__":
    neighbour(sys.argv[1], int(sys.argv[2]))
