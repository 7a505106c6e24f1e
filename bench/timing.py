"""What every benchmark shares: processes that hold one framework each, cases timed in turn, rows of the tables."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from cases import Case

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("taeda", "torch")
IMPORT_BAR, SMALL_BAR = 0.08, 0.30
#: Groups whose cases are compared with what the machine needs at least.
FLOORED = ("unary", "memory", "rows", "matmul", "conv", "models", "workloads")


def environment(threads: int, checkout: Path = HERE.parent) -> dict[str, str]:
    """The environment of a child: the thread count, and the taeda of ``checkout`` where it is built there."""
    count = str(threads)
    env = dict(os.environ, OMP_NUM_THREADS=count, MKL_NUM_THREADS=count, TAEDA_NUM_THREADS=count)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # imports are timed as installed packages import
    built = any((checkout / "taeda" / "_core").glob("tensor*.so"))
    if built:
        env["PYTHONPATH"] = os.pathsep.join(p for p in (str(checkout), env.get("PYTHONPATH", "")) if p)
    return env


class Worker:
    """A process that holds one framework, or the taeda of another checkout."""

    def __init__(self, framework: str, threads: int, checkout: Path = HERE.parent):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), framework, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads, checkout),
        )
        self.version = self._answer().get("version", "?")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"error": f"the process ended with code {self.process.wait()}"}

    def time(self, case: Case, batch_seconds: float = 0.02, floor: bool = False, windows: int = 0) -> dict[str, Any]:
        """``{"seconds": ...}`` or ``{"error": ...}``, from batches of about ``batch_seconds``; with the ``"floor"``.

        ``windows``: the seconds per call of so many batches, under ``"windows"``, instead.
        """
        assert self.process.stdin is not None
        try:
            request = {"name": case.name, "batch_seconds": batch_seconds, "floor": floor, "windows": windows}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"the process ended with code {self.process.wait()}"}
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Row:
    """The measurements of one case: seconds per framework (or checkout) and round, or the first error."""

    def __init__(self, name: str, group: str, bar: float | None, sides: tuple[str, ...] = FRAMEWORKS):
        self.name, self.group, self.bar = name, group, bar
        self.seconds: dict[str, list[float]] = {side: [] for side in sides}
        self.error = ""
        self.floor = 0.0

    def add(self, framework: str, answer: dict[str, Any]) -> None:
        if "error" in answer:
            self.error = self.error or f"{framework}: {answer['error']}"
        else:
            self.seconds[framework].append(answer["seconds"])
            self.floor = answer.get("floor", self.floor)

    @property
    def ratio(self) -> float:
        """Median over the rounds of taeda's time by the other's, nan where one of them failed."""
        pairs = list(zip(*self.seconds.values(), strict=False))
        return statistics.median(ours / theirs for ours, theirs in pairs) if pairs and not self.error else math.nan

    def cells(self) -> list[str]:
        times = [_seconds(statistics.median(found)) if found else "-" for found in self.seconds.values()]
        ratio = "failed" if math.isnan(self.ratio) else f"{self.ratio:.2f}"
        share = f"{100 * self.floor / min(self.seconds['taeda']):.0f}%" if self.floor else ""
        return [self.name, *times, ratio, *verdict(self.ratio, self.bar), share]


def cpu() -> str:
    """The name of the processor, as Linux says it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def verdict(ratio: float, bar: float | None) -> list[str]:
    if bar is None:
        return ["", ""]
    return [f"{bar:.2f}", "yes" if ratio <= bar else "no"]


def _seconds(x: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if x >= scale:
            return f"{x / scale:.3g} {unit}"
    return f"{x * 1e9:.0f} ns"


def run_cases(
    cases: list[Case], rounds: int, batch_seconds: float = 0.02, before: Path | None = None
) -> tuple[list[Row], dict[str, str]]:
    """Time the cases of each thread count, taking turns; give the rows and the frameworks' versions.

    With ``before``, a checkout with an older state of taeda, that takes PyTorch's place.
    """
    sides = ("taeda", "before") if before else FRAMEWORKS
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for threads in sorted({c.threads for c in cases}):
        workers = {side: Worker(side, threads) for side in sides if side != "before"}
        if before:
            workers["before"] = Worker("taeda", threads, before)
        versions = {side: worker.version for side, worker in workers.items()}
        for case in (c for c in cases if c.threads == threads):
            row = Row(case.name, case.group, None if before else case.bar, sides)
            for i in range(rounds):
                for framework in sides if i % 2 == 0 else sides[::-1]:
                    floor = framework == "taeda" and i == 0 and case.group in FLOORED
                    row.add(framework, workers[framework].time(case, batch_seconds, floor))
                if row.error:
                    break
            rows.append(row)
            print("  ".join(f"{cell:>8}" for cell in row.cells()[1:4]), f" {case.name}  {row.error}", flush=True)
        for worker in workers.values():
            worker.close()
    order = {c.name: i for i, c in reversed(list(enumerate(cases)))}
    return sorted(rows, key=lambda row: order[row.name]), versions


def table(rows: list[list[str]]) -> str:
    """Markdown, columns padded so that the source can be read too."""
    head = [["what", "taeda", "torch", "ratio", "at most", "met", "of floor"]]
    widths = [max(len(r[i]) for r in head + rows) for i in range(7)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in head + rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
