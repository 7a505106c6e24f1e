"""``Timer``: times statements in blocks, on a given number of threads, and gives statistics of the blocks."""

from __future__ import annotations

import enum
import statistics
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from timeit import default_timer as timer
from typing import Any

import taeda

__all__ = [
    "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip


_UNITS = (("s", "second", 1.0), ("ms", "millisecond", 1e-3), ("us", "microsecond", 1e-6), ("ns", "nanosecond", 1e-9))


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to show ``t`` seconds, and how long it is: ``("us", 1e-6)``."""
    return next(((unit, scale) for unit, _, scale in _UNITS if t >= scale), ("ns", 1e-9))


def unit_to_english(u: str) -> str:
    """The name of a unit."""
    return next(name for unit, name, _ in _UNITS if unit == u)


def trim_sigfig(x: float, n: int) -> float:
    """``x`` rounded to ``n`` significant figures."""
    return float(f"{x:.{n - 1}e}")


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in order."""
    return list(dict.fromkeys(elements))


@dataclass(frozen=True)
class TaskSpec:
    """The timed code, and its name."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The name: the labels, or the statement."""
        return ": ".join(part for part in (self.label or self.stmt, self.sub_label) if part)

    def setup_str(self) -> str:
        """The setup as reports show it."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + textwrap.indent(self.setup, "  ")

    def summarize(self) -> str:
        """Name, description and setup, a line each."""
        return "\n".join(part for part in (self.title, self.description, self.setup_str()) if part)


class Measurement:
    """The times of a statement: seconds per run of each block in ``times``."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict | None = None
    ) -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

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
    def _quartiles(self) -> tuple[float, float]:
        if len(self.times) < 2:
            return self.times[0], self.times[0]
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """The distance between the quartiles of :attr:`times`."""
        low, high = self._quartiles
        return high - low

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the quartiles lie within ``threshold`` of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary by more than a tenth."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The title of the timed code."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The description of the environment in which it was timed."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        """``label``, ``stmt`` and what else describes the statement."""
        if name == "task_spec" or not hasattr(self.task_spec, name):
            raise AttributeError(f"'Measurement' object has no attribute '{name}'", name=name, obj=self)
        return getattr(self.task_spec, name)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each statement, with the times of all of it."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in group for t in m.times], spec) for spec, group in groups.items()]

    def __repr__(self) -> str:
        n, (unit, scale), (low, high) = len(self.times), select_unit(self.median), self._quartiles
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}")
        if n >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        plural = "s" if n > 1 else ""
        lines.append(
            f"  {n} measurement{plural}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        if self.has_warnings:
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
                "           This could indicate system fluctuation."
            )
        return "\n".join(lines)


class Language(enum.Enum):
    """The language of a statement; only Python's can be timed."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement.

    Args:
        stmt: Python code, or a function's call.
        setup: Python code that runs before it, once in each measurement.
        global_setup: Python code that runs before ``setup``, once.
        timer: gives the time in seconds.
        globals: names that the code sees.
        label: what the result is called in reports.
        sub_label: a second name.
        description: a name of the variant, the head of a column.
        env: a name of the environment.
        num_threads: threads to use meanwhile.
        language: must be ``"python"``.
    Raises:
        ValueError: ``language`` is another.
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
        stmt, setup, global_setup = (textwrap.dedent(text).strip() for text in (stmt, setup, global_setup))
        self._task = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        start = self._timer()
        self._run(number)
        return self._timer() - start

    def _with_threads(self, work: Callable[[], Any]) -> Any:
        before = taeda.get_num_threads()
        taeda.set_num_threads(self._task.num_threads)
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

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Refused: instructions of kernels that are compiled at run time have no names."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are not counted. Use blocked_autorange")

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
        self._trims = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show no more figures than the times are worth."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted."""

    def __str__(self) -> str:
        labels = ordered_unique(m.task_spec.label for m in self._results)
        return "\n".join(self._table([m for m in self._results if m.task_spec.label == label]) for label in labels)

    def _table(self, results: list[Measurement]) -> str:
        """The rows of one label, a block for each number of threads."""
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.task_spec.description or "" for m in results)
        envs = ordered_unique(m.env for m in results)
        merged = {self._place(m): m for m in Measurement.merge(results)}
        texts = {place: self._figure(m, scale) for place, m in merged.items()}
        widths = [
            max(len(c), *(len(text) for place, text in texts.items() if place[-1] == c)) if texts else len(c)
            for c in columns
        ]
        blocks, names = [], []
        for threads in sorted({m.num_threads for m in results}):
            rows = ordered_unique((m.env, m.as_row_name) for m in results if m.num_threads == threads)
            shown = [(f"{f'({env}) ' if len(envs) > 1 else ''}{name}", env, name) for env, name in rows]
            names += [name for name, _, _ in shown]
            blocks.append((threads, shown))
        first = max(len(name) for name in names) + 6

        def line(name: str, cells: list[str]) -> str:
            return f"{name:<{first}}" + "".join(f"  |  {c:>{w}}" for c, w in zip(cells, widths, strict=True))

        head = line("", [f"{c:^{w}}" for c, w in zip(columns, widths, strict=True)])
        title = f" {results[0].task_spec.label or ''} "
        out = [f"[{title:-^{len(head) - 2}}]", head]
        for threads, shown in blocks:
            out.append(f"{threads} threads: ".ljust(len(head), "-"))
            for text, env, name in shown:
                out.append(line(f"      {text}", [texts.get((threads, env, name, c), "") for c in columns]))
        return "\n".join([*out, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])

    @staticmethod
    def _place(m: Measurement) -> tuple[int, str, str, str]:
        return m.num_threads, m.env, m.as_row_name, m.task_spec.description or ""

    def _figure(self, m: Measurement, scale: float) -> str:
        t = m.median / scale
        if not self._trims:
            return f"{t:.1f}"
        figures = 3 if m.iqr < 0.01 * m.median else 2
        return f"{trim_sigfig(t, figures):.{1 if t < 10 else 0}f}"

    def print(self) -> None:
        """Print the table."""
        print(str(self))
