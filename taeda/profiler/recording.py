"""A recording: switches the sources of events on, and turns their data into events.

The core writes (``taeda/_core/profile.pyx``). Here a :class:`Recording` puts the recorder among the modes of every
thread that it can reach, switches on the probes of the kernels, watches nodes, optimisers and modules, and undoes all
of it.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import profile as _writer
from ..kernels import build
from ..ops.flops import flops_of_call
from .events import EventList, FunctionEvent, KernelRun

OP, NODE, RANGE, MODULE = range(4)
_SCOPES = {OP: 0, NODE: 1, RANGE: 7, MODULE: 7}  # PyTorch's numbers: function, backward function, user's
_HERE = os.path.dirname(__file__)

#: The recording under way, of which there is one at most.
current: Recording | None = None


class Recording:
    """One stretch of time that is recorded.

    Args:
        shapes: keep the sizes of arguments.
        stacks: keep the lines of the program.
        flops: count arithmetic, which needs the sizes.
        modules: a range for every call of a module.
    """

    def __init__(self, shapes: bool = False, stacks: bool = False, flops: bool = False, modules: bool = False) -> None:
        self.shapes, self.flops, self.modules = shapes, flops, modules
        self.recorder = _writer.Recorder(shapes or flops, stacks)
        self.handles: list[Any] = []
        self.main = threading.get_ident()
        self._numbers: dict[str, int] = {}
        self._names: dict[int, tuple[Any, str]] = {}

    # ---- on and off --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: another recording is under way.
        """
        global current
        if current is not None:
            raise RuntimeError(
                "Profiler is already enabled: only one profile can be recorded at a time; leave the other first"
            )
        current = self
        self._watch_optimisers()
        _watch_loaders(True)
        if self.modules:
            self._watch_modules()
        self._join_threads()
        self.recorder.start()
        self.begun = self.recorder.clock()
        _core.watch_nodes(self.recorder)
        build.watch(_writer.watcher())
        self._join()

    def stop(self) -> None:
        """End; the events stay in the buffer until the next recording."""
        global current
        if current is not self:
            return
        build.watch(0)
        _core.watch_nodes(None)
        self.ended = self.recorder.clock()
        self.recorder.stop()
        self._leave()
        threading.setprofile(self._before)
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        _watch_loaders(False)
        current = None

    def _join(self) -> None:
        """Put the recorder among this thread's modes, as the outermost: it sees the computed ops."""
        stack = _core.mode_stack()
        if self.recorder not in stack:
            _core.set_mode_stack([self.recorder, *stack])

    def _leave(self) -> None:
        _core.set_mode_stack([mode for mode in _core.mode_stack() if mode is not self.recorder])

    def _join_threads(self) -> None:
        """Let threads join when they start (from Python 3.12 on, running threads too, at their next call)."""
        self._before = threading.getprofile()

        def joins(frame: Any, event: str, arg: Any) -> None:
            sys.setprofile(self._before)
            if self.recorder.active:
                self._join()

        threading.setprofile(joins)
        if hasattr(threading, "setprofile_all_threads"):
            here = sys.getprofile()
            threading.setprofile_all_threads(joins)
            sys.setprofile(here)

    def _watch_optimisers(self) -> None:
        from ..optim import optimizer

        def begin(optimizer: Any, args: Any, kwargs: Any) -> None:
            optimizer.__dict__["_profiled"] = enter_range(f"Optimizer.step#{type(optimizer).__name__}.step")

        def end(optimizer: Any, args: Any, kwargs: Any) -> None:
            place = optimizer.__dict__.pop("_profiled", None)
            if place is not None:
                leave_range(place)
                self.recorder.add_moved(place, *_bytes_of_step(optimizer))

        self.handles.append(optimizer.register_optimizer_step_pre_hook(begin))
        self.handles.append(optimizer.register_optimizer_step_post_hook(end))

    def _watch_modules(self) -> None:
        from ..nn.modules import _hooks

        open_: dict[int, list[Any]] = {}

        def begin(module: Any, args: Any) -> None:
            place = self.recorder.enter_range(f"nn.Module: {self._module_name(module)}", True)
            open_.setdefault(threading.get_ident(), []).append(place)

        def end(module: Any, args: Any, output: Any) -> None:
            stack = open_.get(threading.get_ident())
            if stack:
                self.recorder.leave(stack.pop())

        self.handles.append(_hooks.register_module_forward_pre_hook(begin))
        self.handles.append(_hooks.register_module_forward_hook(end, always_call=True))

    def _module_name(self, module: Any) -> str:
        """Class and number, in the order of first calls: ``Linear_0``."""
        found = self._names.get(id(module))
        if found is None:
            kind = type(module).__name__
            number = self._numbers[kind] = self._numbers.get(kind, -1) + 1
            found = self._names[id(module)] = (module, f"{kind}_{number}")  # kept alive: another may not get its id
        return found[1]

    # ---- results
    # --------------------------------------------------------------------------------------------------------

    def events(self, memory: bool) -> tuple[EventList, list[KernelRun]]:
        """The events in the order in which they began, and the runs of kernels."""
        raw = self.recorder.read_events()
        made: list[FunctionEvent] = []
        products: dict[int, str] = {}
        for i, (name, kind, start, end, parent, thread, number, moved, written, before, after, call) in enumerate(raw):
            name, _, product = name.partition("/") if kind == OP else (name, "", "")
            if product:
                products[i] = product
            event = FunctionEvent(
                id=i, name=_public_name(name) if kind == OP else name, thread=thread,
                start_us=(start - self.begun) / 1000, end_us=((end or self._end_of(raw, parent)) - self.begun) / 1000,
                scope=_SCOPES[kind], sequence_nr=number, is_user_annotation=kind == RANGE,
                is_python_function=kind == MODULE, cpu_memory_usage=after - before if memory and end else 0,
            )  # fmt: skip
            event.allocated = after
            event.moved, event.written = moved, written
            if call >= 0:
                self._add_call(event, *self.recorder.calls[call])
            if parent >= 0:
                event.cpu_parent = made[parent]
                made[parent].cpu_children.append(event)
            made.append(event)
        if self.flops:
            _count_once(made)
        for place, frames in self.recorder.frames.items():
            made[place].stack = [
                f"{code.co_filename}({line}): {code.co_name}"
                for code, line in frames
                if os.path.dirname(code.co_filename) != _HERE
            ]
        runs = self._kernels(made)
        made = _with_products(made, products)
        made = _without_doubles(made)
        _settle_bytes(made)
        return EventList(made, profile_memory=memory, with_flops=self.flops), runs

    def _end_of(self, raw: list, parent: int) -> int:
        """An event that an exception left open ends with the one around it."""
        while parent >= 0:
            if raw[parent][3]:
                return raw[parent][3]
            parent = raw[parent][4]
        return self.ended

    def _add_call(self, event: FunctionEvent, function: Any, args: tuple, kwargs: tuple, result: Any) -> None:
        if self.shapes:
            event.structured_input_shapes = [_dims(x) for x in args]
            event.input_shapes = [
                x if all(isinstance(n, int) for n in x) else [] for x in event.structured_input_shapes
            ]
            event.concrete_inputs = [x if isinstance(x, (bool, int, float, str)) else "" for x in args]
            event.kwinputs = {k: v for k, v in kwargs if isinstance(v, (bool, int, float, str))}
        if self.flops:
            event.flops = flops_of_call(function, _sizes(args), {k: _sizes(v) for k, v in kwargs}, _sizes(result))

    def _kernels(self, made: list[FunctionEvent]) -> list[KernelRun]:
        """The runs of kernels. The parts of a launch that other threads did belong to the launch, and a run on a thread
        that has no events (the pool did all of a launch) to the innermost event of its time.
        """
        names = build.watched_names()
        runs, strays = [], []
        launched: dict[int, list[KernelRun]] = {}
        for kernel, start, end, busy, event, thread, pieces in self.recorder.read_runs():
            run = KernelRun(
                names[kernel], thread, (start - self.begun) / 1000, (end - self.begun) / 1000, busy / 1000, pieces
            )
            runs.append(run)
            if event >= 0:
                run.event = made[event]
                made[event].kernels.append(run)
                launched.setdefault(kernel, []).append(run)
            else:
                strays.append((run, kernel))
        starts = [event.time_range.start for event in made]
        for run, kernel in strays:
            for other in reversed(launched.get(kernel, ())):
                if other.thread != run.thread and run.start <= other.end and other.start <= run.end:
                    run.helps = other
                    other.helpers.append(run)
                    break
            else:
                run.event = _innermost(made, starts, run)
                if run.event is not None:
                    run.event.kernels.append(run)
                launched.setdefault(kernel, []).append(run)
        return runs


def _watch_loaders(on: bool) -> None:
    """A range for each batch that a DataLoader gives."""
    from ..utils.data._utils import iterating

    iterating.record_fetch = record_function if on else None


def _innermost(made: list[FunctionEvent], starts: list[float], run: KernelRun) -> FunctionEvent | None:
    """The innermost event that was open while ``run`` went."""
    place = bisect.bisect_right(starts, run.start) - 1
    event = made[place] if place >= 0 else None
    while event is not None and event.time_range.end < run.end:
        event = event.cpu_parent
    return event


def _without_doubles(made: list[FunctionEvent]) -> list[FunctionEvent]:
    """A composite and the op of the same name that is all it calls are one event."""
    dropped = set()
    for event in reversed(made):
        above = event.cpu_parent
        if above is None or above.name != event.name or len(above.cpu_children) > 1 or event.scope or above.scope:
            continue
        above.cpu_children = event.cpu_children
        for child in event.cpu_children:
            child.cpu_parent = above
        above.kernels += event.kernels
        for run in event.kernels:
            run.event = above
        above.moved, above.flops = max(above.moved, event.moved), max(above.flops, event.flops)
        above.written = max(above.written, event.written)
        above.sequence_nr = max(above.sequence_nr, event.sequence_nr)
        dropped.add(event.id)
    return [event for event in made if event.id not in dropped]


def _with_products(made: list[FunctionEvent], products: dict[int, str]) -> list[FunctionEvent]:
    """``aten::mm`` and the like below ``aten::matmul`` and ``aten::linear``, which do the product themselves here: what
    they took is the inner event's. Nodes, and the op of that name itself, have the inner one alone, as in PyTorch.
    """
    result = []
    for event in made:
        result.append(event)
        product = products.get(event.id)
        if product is None or event.cpu_children:
            continue
        name, above = _public_name(product), event.cpu_parent
        if above is not None and (above.scope == _SCOPES[NODE] or above.name == name):
            event.name = event.trace_name = name
            continue
        inner = FunctionEvent(
            id=len(made) + event.id, name=name, thread=event.thread, start_us=event.time_range.start,
            end_us=event.time_range.end, sequence_nr=event.sequence_nr, cpu_memory_usage=event.cpu_memory_usage,
            input_shapes=event.input_shapes, stack=event.stack, flops=event.flops,
        )  # fmt: skip
        for kept in (
            "structured_input_shapes", "concrete_inputs", "kwinputs", "allocated", "moved", "written", "kernels",
        ):  # fmt: skip
            setattr(inner, kept, getattr(event, kept))
        for run in inner.kernels:
            run.event = inner
        event.kernels, event.flops, event.moved, event.written = [], 0, 0, 0
        inner.cpu_parent, event.cpu_children = event, [inner]
        result.append(inner)
    return result


def _settle_bytes(made: list[FunctionEvent]) -> None:
    """Give the bytes and the arithmetic of an op to the kernel that took most of its time, for ``kernel_averages``.

    The other kernels of an op (packing, say) do work that the op could in principle avoid: their floor is zero.
    """
    for event in made:
        if event.kernels and event.moved:
            longest = max(event.kernels, key=lambda run: run.elapsed)
            longest.moved, longest.written = event.moved, event.written
        if event.flops:
            runs = list(_kernels_below(event))
            if runs:
                max(runs, key=lambda run: run.elapsed).flops = event.flops


def _kernels_below(event: FunctionEvent) -> Iterator[KernelRun]:
    yield from event.kernels
    for child in event.cpu_children:
        yield from _kernels_below(child)


def _bytes_of_step(optimizer: Any) -> tuple[int, int]:
    """The bytes that a step moves: it reads parameters, gradients and state, and writes parameters and state. Also the
    bytes that it writes.
    """
    moved = written = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.grad is not None:
                state = [t for t in (optimizer.state.get(p) or {}).values() if isinstance(t, _core.Tensor) and t.dim()]
                own = sum(t.nbytes for t in (p, *state))
                moved += p.grad.nbytes + 2 * own
                written += own
    return moved, written


def _count_once(made: list[FunctionEvent]) -> None:
    """Operations that an op's formula counted are not counted again in the ops that it calls."""
    inside: set[int] = set()
    for event in made:  # in order of beginning: parents first
        above = event.cpu_parent
        if above is not None and (above.flops or above.id in inside):
            event.flops = 0
            inside.add(event.id)


def _is_tensor(x: Any) -> bool:
    return type(x) is tuple and len(x) == 2 and x[0] is _core.Tensor


def _sizes(x: Any) -> Any:
    """A recorded value with plain sizes in the place of tensors, and lists for lists."""
    if _is_tensor(x):
        return x[1]
    return [_sizes(item) for item in x] if type(x) is tuple else x


def _dims(x: Any) -> list:
    """The sizes of an argument as PyTorch shows them: of a tensor, of each tensor of a list, nothing for anything
    else."""
    if _is_tensor(x):
        return list(x[1])
    return [list(item[1]) for item in x] if type(x) is tuple and x and all(map(_is_tensor, x)) else []


#: Ops whose name in PyTorch differs from their stanza's.
_NAMES = {
    "true_divide": "div", "true_divide_": "div_", "power": "pow", "power_": "pow_", "slice_view": "slice",
    "where_select": "where", "to_dtype": "_to_copy", "_convolution": "convolution", "_batch_norm": "native_batch_norm",
    "_group_norm": "native_group_norm", "_attention": "_scaled_dot_product_flash_attention_for_cpu",
    "_attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip


@functools.cache
def _public_name(name: str) -> str:
    """PyTorch's name of an op: programs look for ``aten::mm``. Ops that PyTorch lacks keep their own name after
    ``aten::``.
    """
    return name if "::" in name else f"aten::{_NAMES.get(name, name)}"


# ---- ranges ----------------------------------------------------------------------------------------------------------


def enter_range(name: str) -> int | None:
    """Begin a range of the user's; None if nothing is recorded."""
    return None if current is None else current.recorder.enter_range(name)


def leave_range(place: int | None) -> None:
    """The range that :func:`enter_range` gave ends."""
    if place is not None and current is not None:
        current.recorder.leave(place)


class record_function(contextlib.ContextDecorator):
    """Name what runs inside, for tables and traces; a context or a decorator. Without a profile it does nothing.

    Args:
        name: what tables and traces show.
        args: more text, which traces show.

    Examples:
        >>> with taeda.profiler.profile() as prof:
        ...     with taeda.profiler.record_function("my step"):
        ...         _ = taeda.ones(4) + 1
        >>> [event.name for event in prof.events() if event.is_user_annotation]
        ['my step']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._place: int | None = None
        self._recording: Recording | None = None

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)

    def __enter__(self) -> record_function:
        self._recording = current
        if current is not None:
            self._place = current.recorder.enter_range(self.name if self.args is None else f"{self.name}({self.args})")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._place is not None and self._recording is current:
            leave_range(self._place)
        self._place = None
