"""What a program costs besides time in its steps: memory at its peak, its values, the time until its first step is
done.

    python bench/run.py --costs               # both; --only, --write

Each figure is of a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sweep
from timing import FRAMEWORKS, environment, table

HERE = Path(__file__).resolve().parent
MEMORY_BAR, COLD_BAR, WARM_BAR, SIZE_BAR, VALUE_BAR = 1.0, 10.0, 1.5, 30.0, 1e-4
FIRST = "char-GPT 4 layers, 128 wide, context 64, batch 12, AdamW"
STEPS, VALUES = 5, 3  # run, and of which losses are compared


def _resident(field: str) -> int:
    """A field of this process's memory, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def child(framework: str, workload: str, threads: int) -> dict[str, Any]:
    """Run some steps of a workload here; bytes that it took at most, beyond the imported framework's."""
    import importlib

    T = importlib.import_module(framework)
    T.set_num_threads(threads)
    import workloads

    T.randn(8) + 1
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _resident("VmRSS")
    T.manual_seed(0)
    step = workloads.WORKLOADS[workload][0](T)
    start, busy = time.perf_counter(), time.process_time()
    results = [step()]
    first, busy = time.perf_counter() - start, time.process_time() - busy
    for _ in range(VALUES - 1):
        results.append(step())
    losses = [float(x.detach()) for x in results if x is not None and x.dim() == 0]
    results.clear()
    for _ in range(STEPS - VALUES):
        step()
    return {"peak": _resident("VmHWM") - before, "first": first, "first_cpu": busy, "losses": losses}


def run_child(framework: str, workload: str, threads: int = 1, cache: str | None = None) -> dict[str, Any]:
    """:func:`child` in a new process, with the seconds since that was started; ``{"error": ...}`` where it failed."""
    env = environment(threads) | ({"TAEDA_CACHE": cache} if cache else {})
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / "costs.py"), framework, workload, str(threads)],
        capture_output=True,
        text=True,
        env=env,
        cwd=HERE,
    )
    took = time.perf_counter() - start
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["?"])[-1]}
    return {**json.loads(done.stdout.splitlines()[-1]), "whole": took}


def memory_rows(only: list[str] | None) -> tuple[list[list[str]], list[list[str]]]:
    """A row for each workload: megabytes at the peak in both frameworks and their ratio; and one with their losses."""
    import workloads

    rows, values = [], []
    for name in workloads.WORKLOADS:
        if only and not any(text in name for text in only):
            continue
        found = {f: run_child(f, name) for f in FRAMEWORKS}
        errors = [f"{f}: {r['error']}" for f, r in found.items() if "error" in r]
        peaks = [found[f].get("peak", math.nan) for f in FRAMEWORKS]
        ratio = peaks[0] / peaks[1]
        verdict = "failed" if errors else "yes" if ratio <= MEMORY_BAR else "no"
        rows.append([name, *(f"{p / 1e6:.1f} MB" for p in peaks), f"{ratio:.2f}", f"{MEMORY_BAR:.2f}", verdict, ""])
        print("  ".join(rows[-1][:6]), *errors, flush=True)
        losses = [found[f].get("losses", []) for f in FRAMEWORKS]
        if losses[0] and losses[1]:
            apart = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(*losses, strict=True))
            verdict = "yes" if apart <= VALUE_BAR else "no"
            last = (f"{loss[-1]:.6g}" for loss in losses)
            values.append([name, *last, f"{apart:.0e}", f"{VALUE_BAR:.0e}", verdict, ""])
            print("  ".join(values[-1][:6]), flush=True)
    return rows, values


def installed_bytes() -> int:
    """What the installed package takes, with compiled Python; of a checkout, what would be installed of it."""
    try:
        files = importlib.metadata.files("taeda")
        if files and not any("__editable__" in str(f) for f in files) and len(files) > 100:
            return sum(Path(str(f.locate())).stat().st_size for f in files if Path(str(f.locate())).is_file())
    except importlib.metadata.PackageNotFoundError:
        pass
    package = HERE.parent / "taeda"
    return sum(p.stat().st_size for p in package.rglob("*") if p.is_file() and p.suffix not in (".c", ".o"))


def start_rows() -> list[list[str]]:
    """From the start of the interpreter to the end of five steps, with no compiled kernel on disk and with all of
    them."""

    def row(what: str, value: float, unit: str, bar: float) -> list[str]:
        return [what, f"{value:.2f} {unit}", "", "", f"{bar:g} {unit}", "yes" if value <= bar else "no", ""]

    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (run_child("taeda", FIRST, cache=cache) for _ in range(2))
        warm = min(
            warm, *(run_child("taeda", FIRST, cache=cache) for _ in range(2)), key=lambda r: r.get("whole", math.inf)
        )
    theirs = run_child("torch", FIRST)
    rows = [
        row(f"{FIRST}: first {STEPS} steps, empty kernel cache", cold.get("whole", math.nan), "s", COLD_BAR),
        row("the same, kernels from the cache", warm.get("whole", math.nan), "s", WARM_BAR),
        row("installed size without dependencies", installed_bytes() / 1e6, "MB", SIZE_BAR),
    ]
    for line in rows[:2]:
        line[2] = f"{theirs.get('whole', math.nan):.2f} s"
    return rows


def run(args: argparse.Namespace) -> None:
    """Measure both, print the tables, and with ``--write`` put them into RESULTS.md."""
    memory, values = memory_rows(args.only)
    start = [] if args.only else start_rows()
    lines = [
        f"Measured {datetime.date.today().isoformat()} with `{args.command}`, one thread, every figure of a new "
        f"process. Peak memory: resident bytes at most during {STEPS} steps, beyond those of the imported framework.",
        table(memory),
        f"Values: the loss of step {VALUES} from the same seed; the ratio is the largest relative difference of "
        f"{VALUES} steps. Where steps amplify rounding PyTorch is as far from itself: with and without oneDNN, "
        "ResNet-18 4e-3 and MobileNetV2 1e-2; MobileNetV2 in float64 from weights that differ by 1e-7, up to 3e-2. "
        "From equal weights in float64 the two frameworks agree on both to 3e-13 (2026-11-22).",
        table(values),
        *(
            [f"Start: seconds from the start of the interpreter until {STEPS} steps are done.", table(start)]
            if start
            else []
        ),
    ]
    print("\n" + "\n\n".join(lines))
    if args.write:
        sweep.put(sweep.HEADINGS[1], "\n\n".join(lines))


if __name__ == "__main__":
    os.chdir(HERE)
    print(json.dumps(child(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
