"""Where the time of a workload goes: by op and by kernel, with what was achieved and how near it is to the floor.

    python bench/run.py --profile char-GPT --threads 1

See ``docs/profiling.md`` for what a floor is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from cases import CASES, Case
from timing import environment


def find(text: str) -> Case:
    """The case whose name contains ``text``, workloads first.

    Raises:
        SystemExit: there is none.
    """
    ordered = sorted(CASES, key=lambda c: c.group != "workloads")
    for case in ordered:
        if text.lower() in case.name.lower():
            return case
    raise SystemExit(f"no case has {text!r} in its name; see python bench/run.py --list")


def profile_case(text: str, threads: int, steps: int = 10, rows: int = 25) -> str:
    """Run a case some times under the profiler; its tables."""
    import taeda
    from taeda.profiler import measure_floors, profile

    case = find(text)
    taeda.set_num_threads(threads)
    taeda.manual_seed(0)
    step = case.make(taeda)
    for _ in range(3):
        step()
    floors = measure_floors(threads)
    with profile(with_flops=True) as prof:
        for _ in range(steps):
            step()
    total = sum(event.cpu_time_total for event in prof.events() if event.cpu_parent is None)
    kernels = prof.kernel_averages()
    inside = sum(row.elapsed for row in kernels)
    floor = prof.events().floor_seconds(floors) * 1e6
    rates = ", ".join(f"{rate / 1e9:.0f} GB/s at {size >> 10} KiB" for size, rate in floors.copies)
    return "\n".join(
        [
            f"{case.name}, {threads} thread{'s' if threads > 1 else ''}: {steps} steps",
            f"{total / steps:.0f} us a step under the profiler, {100 * inside / total:.0f}% of it in kernels, "
            f"{100 * floor / total:.0f}% of floor",
            f"floors: {floors.flops / 1e9:.0f} GFLOP/s in the tile; copying {rates}",
            "",
            prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=rows, floors=floors),
            kernels.table(row_limit=rows, floors=floors, total=total),
        ]
    )


def run(args: argparse.Namespace) -> None:
    """Print the profile of ``args.profile`` for every number of threads, each from a process of its own."""
    for threads in args.threads:
        command = [sys.executable, str(Path(__file__)), args.profile, str(threads)]
        subprocess.run(command, env=environment(threads), check=True)


if __name__ == "__main__":
    print(profile_case(sys.argv[1], int(sys.argv[2])))
