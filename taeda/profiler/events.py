"""Events, their averages, and lists of both, under PyTorch's names.

Times are in microseconds from the beginning of the recording, as floats.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from .table import format_table, format_time


class DeviceType(enum.Enum):
    """The device of an event: ``CPU``.

    Examples:
        >>> taeda.profiler.DeviceType.CPU.name
        'CPU'
    """

    CPU = 0
    CUDA = 1


class Interval:
    """From ``start`` to ``end``, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """The duration."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"


class KernelRun:
    """Runs of one kernel that follow each other without a pause, below one event and on one thread.

    ``start`` and ``end`` in microseconds, ``busy`` the microseconds inside the kernel, ``pieces`` how often it was
    called. Of a launch that several threads share, the run on the launching thread has the others in ``helpers``.
    """

    device = 0

    def __init__(self, name: str, thread: int, start: float, end: float, busy: float, pieces: int) -> None:
        self.name, self.thread, self.start, self.end, self.busy, self.pieces = name, thread, start, end, busy, pieces
        self.event: FunctionEvent | None = None
        self.helps: KernelRun | None = None
        self.helpers: list[KernelRun] = []
        self.moved = self.written = self.flops = 0

    @property
    def elapsed(self) -> float:
        """Microseconds until the last thread was done."""
        return max([self.end, *(run.end for run in self.helpers)]) - self.start

    @property
    def duration(self) -> float:
        """PyTorch's name of ``elapsed``."""
        return self.elapsed

    def __repr__(self) -> str:
        return f"<KernelRun {self.name} {format_time(self.elapsed)}>"


_CPU_TIMES = ("cpu_time", "cpu_time_total", "self_cpu_time_total")
_DEVICE_TIMES = ("device_time", "device_time_total", "self_device_time_total")


def _as_text(name: str) -> Any:
    """The attribute ``name``, microseconds, as text."""
    return property(lambda self: format_time(getattr(self, name)))


class _Times:
    """The base of an event and an average: text forms, times per call, and zeros for devices that are not present."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    use_device: str | None = None
    device_type = DeviceType.CPU
    node_id = -1
    is_async = is_remote = is_legacy = False
    overload_name = ""

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    cpu_time_str, cpu_time_total_str, self_cpu_time_total_str = map(_as_text, _CPU_TIMES)
    device_time_str, device_time_total_str, self_device_time_total_str = map(_as_text, _DEVICE_TIMES)


class FunctionEvent(_Times):
    """One call that was recorded: of an op, a node of the graph (``scope`` 1), a range or a module (``scope`` 7).

    ``cpu_parent`` and ``cpu_children`` are the events around and below it, ``kernels`` the runs of kernels that it made
    itself, ``moved`` the bytes of the tensors that an op read and wrote (``written``: wrote), ``allocated`` the bytes
    in use when it ended.

    Args:
        id: its number.
        name: such as ``"aten::mm"``.
        thread: number of the thread.
        start_us: when it began, in microseconds.
        end_us: when it ended.
        scope: what it is a call of.
        sequence_nr: number that it shares with its node of the backward pass; -1 for none.
        cpu_memory_usage: bytes taken less bytes given back.
        is_user_annotation: whether it is a range of the user's.
        is_python_function: whether it is a module.
        input_shapes: sizes of its arguments, or None.
        stack: lines of the program, or None.
        flops: arithmetic operations.

    Examples:
        >>> with taeda.profiler.profile() as prof:
        ...     _ = taeda.ones(4, 4) @ taeda.ones(4, 4)
        >>> "aten::mm" in [event.name for event in prof.events()]
        True
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, *, scope: int = 0, sequence_nr: int = -1,
        cpu_memory_usage: int = 0, is_user_annotation: bool = False, is_python_function: bool = False,
        input_shapes: list | None = None, stack: list[str] | None = None, flops: int = 0,
    ) -> None:  # fmt: skip
        self.id, self.name, self.thread, self.scope, self.sequence_nr = id, name, thread, scope, sequence_nr
        self.trace_name = name
        self.time_range = Interval(start_us, end_us)
        self.cpu_memory_usage = cpu_memory_usage
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.input_shapes: list = input_shapes or []
        self.structured_input_shapes: list = []
        self.concrete_inputs: list = []
        self.kwinputs: dict[str, Any] = {}
        self.stack: list[str] = stack or []
        self.flops = flops
        self.count = 1
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[KernelRun] = []
        self.moved = self.written = self.allocated = 0
        self.fwd_thread: int | None = None
        self.device_index = 0

    @property
    def key(self) -> str:
        """The key for averages: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Without the events below it; its kernels are its own time."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def kernel_time_total(self) -> float:
        """The time in kernels, also of the events below it."""
        return sum(k.elapsed for k in self.kernels) + sum(child.kernel_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} seq_nr={self.sequence_nr}>"
        )


_SUMS = (
    "count", "cpu_time_total", "self_cpu_time_total", "kernel_time_total", "cpu_memory_usage", "self_cpu_memory_usage",
    "flops", "moved", "written",
)  # fmt: skip


class FunctionEventAvg(_Times):
    """The sums over events of one name: ``count``, ``cpu_time_total``, ``flops``, ...; ``cpu_time`` is the mean.

    Examples:
        >>> with taeda.profiler.profile() as prof:
        ...     for _ in range(3):
        ...         x = taeda.ones(4, 4) @ taeda.ones(4, 4)
        >>> [average.count for average in prof.key_averages() if average.key == "aten::mm"]
        [3]
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = self.kernel_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.moved = self.written = 0
        self.input_shapes: list | str = []
        self.stack: list[str] = []
        self.scope = 0
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count ``other`` in, which must have the same key."""
        if self.key is None:
            self.key = other.key
            for name in ("input_shapes", "stack", "scope", "cpu_parent", "cpu_children", "is_user_annotation"):
                setattr(self, name, getattr(other, name))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} count={self.count} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """A list of events or averages, with ways to look at them: ``table()``, ``key_averages()``,
    ``export_chrome_trace(path)``.

    Args:
        *args: the events.
        use_device: accepted.
        profile_memory: show memory in tables.
        with_flops: show arithmetic in tables.

    Examples:
        >>> with taeda.profiler.profile() as prof:
        ...     _ = taeda.ones(4, 4) @ taeda.ones(4, 4)
        >>> type(prof.key_averages()).__name__
        'EventList'
        >>> "aten::mm" in prof.key_averages().table(row_limit=10)
        True
    """

    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from .._html import table
        from .table import format_time

        averages = self if all(isinstance(event, FunctionEventAvg) for event in self) else self.key_averages()
        whole = sum(event.self_cpu_time_total for event in averages) or 1.0
        rows = [
            (event.key, str(event.count), format_time(event.self_cpu_time_total), format_time(event.cpu_time_total),
             f"{100 * event.self_cpu_time_total / whole:.1f}%")
            for event in sorted(averages, key=lambda event: -event.self_cpu_time_total)[:50]
        ]  # fmt: skip
        return table(("Name", "Calls", "Self", "Total", "Share of self"), rows)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of the events' own times, which is all the time that was seen."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None, floors: Any = None,
    ) -> str:  # fmt: skip
        """The events as text.

        Args:
            sort_by: an attribute, largest first: ``"self_cpu_time_total"``, ``"cpu_time_total"``, ``"cpu_time"``,
                ``"count"``, ``"cpu_memory_usage"``, ``"self_cpu_memory_usage"``, ``"flops"`` ...; default: as recorded.
            row_limit: at most so many rows; -1: all.
            max_src_column_width: of the source's lines.
            max_name_column_width: of the names.
            max_shapes_column_width: of the sizes.
            header: a line above.
            top_level_events_only: leave out what runs inside something else.
            time_unit: ``"s"``, ``"ms"`` or ``"us"``; default: what suits each time.
            floors: what :func:`measure_floors` gave, or True to measure now: adds bytes per second, FLOP per second,
                and how many per cent of the time the machine could not have done without.

        Returns:
            Text of several lines.
        """
        return format_table(
            self, sort_by=sort_by, row_limit=row_limit, source_width=max_src_column_width,
            name_width=max_name_column_width, shapes_width=max_shapes_column_width, header=header,
            memory=self._profile_memory, flops=self._with_flops, top_level=top_level_events_only, unit=time_unit,
            floors=floors,
        )  # fmt: skip

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums over the events of one name (and sizes, and the innermost lines of the stack).

        Args:
            group_by_input_shapes: one row for each combination of sizes, which must have been recorded.
            group_by_stack_n: one row for each of the innermost ``n`` lines.
            group_by_overload_name: ops have no overloads here: no difference.

        Returns:
            An event for each name.
        """
        sums: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key: tuple = (event.key, event.is_user_annotation)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            sums.setdefault(key, FunctionEventAvg()).add(event)
        averages = EventList(sums.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """One sum over everything, called ``Total``."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def floor_seconds(self, floors: Any) -> float:
        """The sum of the floors of the recorded ops, each counted once: the least time that the machine would need.

        Args:
            floors: what :func:`measure_floors` gave. Arithmetic counts where ``with_flops`` was set.

        Returns:
            Seconds.
        """
        return sum(_floor(event, floors) for event in self if event.cpu_parent is None)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for ``chrome://tracing`` or https://ui.perfetto.dev; compressed where ``path`` ends in
        .gz."""
        from .trace import write_trace

        write_trace(path, self, (), {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that :meth:`export_stacks` can weigh lines by."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write one line per event, ``outer;inner 12``: what flame graph programs read.

        Args:
            path: the file.
            metric: of :meth:`supported_export_stacks_metrics`.

        Raises:
            ValueError: there is no such metric.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        name = metric if "cpu" in metric else "self_device_time_total"
        clean = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, name))
                if event.stack and value > 0:
                    file.write(";".join(line.translate(clean) for line in reversed(event.stack)) + f" {value}\n")


def _floor(event: Any, floors: Any) -> float:
    """The floor of an event: its own if a formula counted it or it calls nothing, else the sum of those below it."""
    if event.flops or not event.cpu_children:
        return floors.seconds(event.moved, event.flops, written=event.written) if event.moved or event.flops else 0.0
    return sum(_floor(child, floors) for child in event.cpu_children)


class KernelSum(NamedTuple):
    """The runs of one kernel together."""

    name: str
    runs: int
    elapsed: float
    moved: int
    flops: int
    written: int


class KernelAverages(list):
    """Sums over the runs of each kernel: ``name``, ``runs``, ``elapsed`` (us), ``moved`` and ``written`` (bytes),
    ``flops``."""

    def table(self, row_limit: int = 100, floors: Any = None, total: float | None = None) -> str:
        """The kernels as text, the longest first.

        Args:
            row_limit: at most so many rows; -1: all.
            floors: as for :meth:`EventList.table`.
            total: microseconds that are 100 %; default: those of all kernels.

        Returns:
            Text of several lines.
        """
        from .table import format_kernels

        return format_kernels(sorted(self, key=lambda row: -row.elapsed), row_limit, floors, total)

    def _repr_html_(self) -> str:
        from .._html import table
        from .table import format_time

        rows = sorted(self, key=lambda row: -row.elapsed)[:50]
        return table(("Kernel", "Runs", "Time"), [(row.name, str(row.runs), format_time(row.elapsed)) for row in rows])


def average_kernels(runs: list[KernelRun]) -> KernelAverages:
    """Sums by name over the runs of the launching threads."""
    sums: dict[str, list] = {}
    for run in runs:
        if run.helps is None:
            row = sums.setdefault(run.name, [0, 0.0, 0, 0, 0])
            for i, value in enumerate((1, run.elapsed, run.moved, run.flops, run.written)):
                row[i] += value
    return KernelAverages(KernelSum(name, *row) for name, row in sums.items())
