"""``profile``: recording by steps, and the results."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .._core import get_num_threads
from .events import EventList, FunctionEventAvg, KernelAverages, KernelRun, average_kernels
from .recording import Recording, record_function
from .trace import write_trace


class ProfilerActivity(enum.Enum):
    """The activity that can be measured: ``CPU``.

    Examples:
        >>> taeda.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU = 0
    XPU = 1
    CUDA = 2


class ProfilerAction(enum.Enum):
    """A profile's action in a step: nothing, warm up, record, or record and hand over.

    Examples:
        >>> [action.name for action in taeda.profiler.ProfilerAction]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be measured here: the CPU.

    Returns:
        A set of :class:`ProfilerActivity`.

    Examples:
        >>> [activity.name for activity in taeda.profiler.supported_activities()]
        ['CPU']
    """
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: False, and nothing needs it.

    Returns:
        False.

    Examples:
        >>> taeda.profiler.kineto_available()
        False
    """
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to a profile's action in it.

    ``wait`` steps nothing, ``warmup`` steps nothing that is kept, ``active`` steps recorded, and so on in turn.

    Args:
        wait: steps that pass.
        warmup: steps before recording begins, in which kernels get compiled.
        active: steps that are recorded.
        repeat: how many turns; 0: until the end.
        skip_first: steps before the first turn.
        skip_first_wait: if not 0, the first turn has no ``wait``.

    Returns:
        A function from the number of a step to a :class:`ProfilerAction`.

    Raises:
        AssertionError: a number is negative, or ``active`` is 0.

    Examples:
        >>> action = taeda.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [action(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        turn, place = divmod(step, length)
        if place < wait or (repeat and turn >= repeat):
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """For ``on_trace_ready``: write each trace into a folder, where TensorBoard's plugin finds it.

    Args:
        dir_name: the folder, made if it is not there.
        worker_name: the first part of the file's name; host and process if None.
        use_gzip: compress.
        use_python_export: there is one way to write a trace: no difference.

    Returns:
        A function of the profile.

    Raises:
        RuntimeError: the folder cannot be made.

    Examples:
        >>> import os
        >>> handler = taeda.profiler.tensorboard_trace_handler("traces")
        >>> with taeda.profiler.profile(on_trace_ready=handler):
        ...     _ = taeda.ones(4) + 1
        >>> len(os.listdir("traces"))
        1
    """

    def handler(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


def _check_activities(activities: Iterable[Any] | None) -> None:
    """Check that CPU is among them; missing GPUs are ignored with a warning, as in PyTorch."""
    if activities is None:
        return
    found = set()
    for item in activities:
        found |= set(item) if isinstance(item, dict) else {item}
    for item in found:
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"profile: activities must be ProfilerActivity members, got {item!r}")
    if not found:
        raise AssertionError("No valid profiler activities found")
    if ProfilerActivity.CPU not in found:
        raise AssertionError("profile: only ProfilerActivity.CPU can be measured; give it among the activities")
    for item in found - supported_activities():
        warnings.warn(f"{item.name} is not available, disabling {item.name} profiling", stacklevel=4)


class profile:
    """Record what runs inside: ``with profile() as prof: ...``, then ``print(prof.key_averages().table())``.

    Ops (``aten::mm``), nodes of the backward pass (``MmBackward0``), optimisers' steps and ranges of
    :class:`record_function` become events, kernels are found below them. All threads that start inside are seen, as are
    kernels on any thread.

    Args:
        activities: what to measure; only the CPU can be.
        schedule: which steps to record, see :func:`schedule`; default: everything between enter and exit. :meth:`step`
            is to be called after every step.
        on_trace_ready: called with the profile whenever a stretch of recorded steps is over.
        record_shapes: keep the sizes of arguments.
        profile_memory: count the bytes that ops take and give back.
        with_stack: keep the lines of the program.
        with_flops: count arithmetic: of products, convolutions, attention and recurrent layers by formula, of pointwise
            ops one per element.
        with_modules: a range for every call of an ``nn.Module``.
        experimental_config: accepted: it is for PyTorch's tracing library.
        execution_trace_observer: refused: that format is PyTorch's own.
        acc_events: add the events of each stretch to those of the one before.
        use_cuda: deprecated in PyTorch; there is no GPU to measure.
        custom_trace_id_callback: gives the name of a trace.
        post_processing_timeout_s: no events are parsed in a way that could take long: no difference.

    Raises:
        NotImplementedError: ``execution_trace_observer`` is given.

    Examples:
        >>> model, x = nn.Linear(8, 8), taeda.randn(4, 8)
        >>> with taeda.profiler.profile(record_shapes=True) as prof:
        ...     model(x).sum().backward()
        >>> table = prof.key_averages().table(row_limit=5)  # to print
        >>> "aten::linear" in [event.name for event in prof.events()]
        True
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None, record_shapes: bool = False, profile_memory: bool = False,
        with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, experimental_config: Any = None,
        execution_trace_observer: Any = None, acc_events: bool = False, use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None, post_processing_timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        _check_activities(activities)
        if use_cuda:
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        if execution_trace_observer is not None:
            raise NotImplementedError("profile: execution_trace_observer is PyTorch's own; use export_chrome_trace")
        self.activities = supported_activities()
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.on_trace_ready = on_trace_ready
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_range: record_function | None = None
        self._recording: Recording | None = None
        self._unread: Recording | None = None
        self._events: EventList | None = None
        self._runs: list[KernelRun] = []
        self._trace_id = ""
        self._metadata: dict[str, Any] = {}

    # ---- recording ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        if self.current_action in _RECORDING:
            self._begin()
        self._enter_step()

    def stop(self) -> None:
        """End with the step under way, whatever its action."""
        self._leave_step()
        if self._recording is not None:
            self._finish()
            self._ready()

    def step(self) -> None:
        """The next step begins."""
        self._leave_step()
        before, self.current_action = self.current_action, self.schedule(self.step_num + 1)
        self.step_num += 1
        goes_on = before is ProfilerAction.RECORD and self.current_action in _RECORDING
        if self._recording is not None and not goes_on:
            if before is ProfilerAction.RECORD:
                warnings.warn(f"Incorrect schedule: RECORD followed by {self.current_action.name}", stacklevel=2)
            self._finish()
            if before is ProfilerAction.RECORD_AND_SAVE:
                self._ready()
        if self.current_action in _RECORDING and self._recording is None:
            self._begin()
        self._enter_step()

    def _begin(self) -> None:
        self._settle()
        recording = Recording(self.record_shapes, self.with_stack, self.with_flops, self.with_modules)
        recording.start()
        self._recording = recording
        callback = self.custom_trace_id_callback
        self._trace_id = callback() if callback is not None else uuid.uuid4().hex.upper()

    def _finish(self) -> None:
        recording, self._recording = self._recording, None
        assert recording is not None
        recording.stop()
        self._unread = recording
        self._settle()

    def _settle(self) -> None:
        """Make events of the recorded data, before the buffer is used again."""
        if self._unread is None:
            return
        events, runs = self._unread.events(self.profile_memory)
        self._unread = None
        if self.acc_events and self._events is not None:
            self._events.extend(events)
            self._runs = self._runs + runs
        else:
            self._events, self._runs = events, runs

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _enter_step(self) -> None:
        if self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _leave_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    # ---- results
    # --------------------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """Every event of the last stretch that was recorded, in the order in which they began.

        Returns:
            The events.

        Raises:
            AssertionError: nothing was recorded yet, or recording is under way.
        """
        if self._events is None:
            raise AssertionError("Profiler must be stopped before its events are read: leave the `with` block first")
        return self._events

    def kernels(self) -> list[KernelRun]:
        """The runs of kernels, also those outside of ops."""
        self.events()
        return self._runs

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums over the events of one name; see :meth:`EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def kernel_averages(self) -> KernelAverages:
        """Sums over the runs of each kernel. An op's bytes and arithmetic are counted for its longest kernel."""
        self.events()
        return average_kernels(self._runs)

    def total_average(self) -> FunctionEventAvg:
        """One sum over everything."""
        return self.events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """``key_averages().table(...)``."""
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit, **options)

    def _repr_html_(self) -> str:
        from .._html import pre

        return pre("profile: nothing was recorded yet") if self._events is None else self.key_averages()._repr_html_()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write everything for ``chrome://tracing`` or https://ui.perfetto.dev; compressed where ``path`` ends in
        .gz."""
        metadata = {"trace_id": self._trace_id, "num_threads": get_num_threads(), **self._metadata}
        for name in ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"):
            metadata[name] = int(getattr(self, name))
        metadata |= {"host_name": socket.gethostname(), "traceName": str(path)}
        write_trace(path, self.events(), self.kernels(), metadata)

    def export_html(self, path: str, title: str = "taeda profile") -> None:
        """Write a page with a timeline to zoom in: ops, modules and ranges of each thread, kernels below them, and with
        ``profile_memory`` the memory in use. It is one file, and needs no network.

        Args:
            path: the file.
            title: what stands above.
        """
        from .page import timeline_page

        page = timeline_page(self.events(), self.kernels(), title)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks, weighed by ``metric``, for flame graph programs; needs ``with_stack``."""
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON, to the trace file."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str:
        """The name of the trace."""
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Name traces by ``callback()`` from now on."""
        self.custom_trace_id_callback = callback

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Refused: an activity stays on until :meth:`stop`."""
        raise NotImplementedError("profile.toggle_collection_dynamic: stop the profile and start another one")

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Refused: PyTorch has deprecated it. :func:`taeda.utils.memory_use` tells who holds what memory over time."""
        raise NotImplementedError("profile.export_memory_timeline: use taeda.utils.memory_use(step, model, optimizer)")
