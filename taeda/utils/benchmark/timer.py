"""``Timer``: times statements in blocks, on a given number of threads, and gives statistics of the blocks."""

from __future__ import annotations

import statistics
import textwrap
import time
from collections.abc import Callable, Iterable
from timeit import default_timer as timer
from typing import Any

import taeda

__all__ = ["Compare", "Measurement", "Timer", "timer"]


class Measurement:
    """The times of a statement: seconds per run of each block in ``times``."""

    def __init__(self, number_per_run: int, raw_times: list[float], task: dict[str, Any]) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task
        self.metadata: dict | None = None

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of :attr:`times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of :attr:`times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles of :attr:`times`."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def num_threads(self) -> int:
        """Threads used."""
        return self.task_spec["num_threads"]

    @property
    def title(self) -> str:
        """What was timed."""
        spec = self.task_spec
        parts = [spec["label"] or spec["stmt"], spec["sub_label"]]
        return ": ".join(part for part in parts if part)

    @property
    def as_row_name(self) -> str:
        """Its name in a table."""
        return self.task_spec["sub_label"] or self.task_spec["stmt"]

    def __getattr__(self, name: str) -> Any:
        """``label``, ``stmt`` and what else describes the statement."""
        if name == "task_spec" or name not in self.task_spec:
            raise AttributeError(f"'Measurement' object has no attribute '{name}'", name=name, obj=self)
        return self.task_spec[name]

    def __repr__(self) -> str:
        n = len(self.times)
        lines = [object.__repr__(self), self.title]
        if self.task_spec["description"]:
            lines.append(self.task_spec["description"])
        if n > 1:
            lines += [f"  Median: {_seconds(self.median)}", f"  IQR:    {_seconds(self.iqr)}"]
        else:
            lines.append(f"  {_seconds(self.median)}")
        plural = "s" if n > 1 else ""
        lines.append(
            f"  {n} measurement{plural}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join(lines)


def _seconds(t: float) -> str:
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if t >= scale:
            return f"{t / scale:.2f} {unit}"
    return f"{t * 1e9:.2f} ns"


class Timer:
    """Times a statement.

    Args:
        stmt, setup: Python code, with ``global_setup`` before them once.
        timer: gives the time in seconds.
        globals: names that the code sees.
        label, sub_label, description, env: what the result is called in reports.
        num_threads: threads to use meanwhile.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1, language: Any = "python",
    ) -> None:  # fmt: skip
        if str(language).lower().rpartition(".")[2] not in ("python", "py"):
            raise ValueError(f"Timer: only Python statements can be timed, got language={language!r}")
        self._timer = timer
        space = dict(globals or {})
        space.setdefault("taeda", taeda)
        space.setdefault("torch", taeda)
        exec(textwrap.dedent(global_setup), space)
        exec(textwrap.dedent(setup), space)
        body = textwrap.indent(textwrap.dedent(stmt).strip() or "pass", " " * 8)
        exec(f"def _run(_n):\n    for _ in range(_n):\n{body}\n", space)
        self._run = space["_run"]
        self._task = {
            "stmt": textwrap.dedent(stmt).strip(), "setup": setup, "label": label, "sub_label": sub_label,
            "description": description, "env": env, "num_threads": num_threads,
        }  # fmt: skip

    def _time(self, number: int) -> float:
        start = self._timer()
        self._run(number)
        return self._timer() - start

    def _with_threads(self, work: Callable[[], Any]) -> Any:
        before = taeda.get_num_threads()
        taeda.set_num_threads(self._task["num_threads"])
        try:
            return work()
        finally:
            taeda.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One block of ``number`` runs, after a short one that is not counted."""

        def work() -> Measurement:
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task)

        return self._with_threads(work)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refused, as in PyTorch: see :meth:`timeit` and :meth:`blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        number = 1
        while True:
            if self._time(number) > min(min_run_time / 1000, 1e-3) or number > 1 << 30:
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks long enough to be timed well, until ``min_run_time`` seconds are spent."""

        def work() -> Measurement:
            number = self._block(min_run_time)
            times: list[float] = []
            end = time.perf_counter() + min_run_time
            while True:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                if time.perf_counter() >= end:
                    return Measurement(number, times, self._task)

        return self._with_threads(work)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable | None = None,
    ) -> Measurement:  # fmt: skip
        """As :meth:`blocked_autorange`, until the quartiles lie within ``threshold`` of the median."""

        def work() -> Measurement:
            number = self._block(min_run_time)
            times: list[float] = []
            start = time.perf_counter()
            while True:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                spent = time.perf_counter() - start
                made = Measurement(number, times, self._task)
                if spent >= max_run_time or (
                    spent >= min_run_time and len(times) > 3 and made.iqr < threshold * made.median
                ):
                    return made

        return self._with_threads(work)


class Compare:
    """A table of measurements: a row per statement, a column per description."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Accepted."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted."""

    def __str__(self) -> str:
        columns = list(dict.fromkeys(m.task_spec["description"] or "" for m in self._results))
        rows = list(dict.fromkeys((m.num_threads, m.as_row_name) for m in self._results))
        cells = {
            (m.num_threads, m.as_row_name, m.task_spec["description"] or ""): _seconds(m.median) for m in self._results
        }
        head = ["", *columns]
        lines = [
            [f"{name} ({threads} threads)", *(cells.get((threads, name, c), "") for c in columns)]
            for threads, name in rows
        ]
        widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
        return "\n".join(
            " | ".join(f"{text:>{w}}" for text, w in zip(line, widths, strict=True)) for line in [head, *lines]
        )

    def print(self) -> None:
        """Print the table."""
        print(str(self))
