"""One run of a model as a tree of calls: what each module and each op between them took and gave.

:func:`taeda.utils.summary` and :func:`taeda.utils.draw` show its content.
"""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import _core, nn
from .._core import Tensor
from .._core.memory import memory_stats, reset_peak_memory_stats
from ..autograd import no_grad
from ..nn.modules import _hooks
from ..random import fork_rng
from ._pytree import tree_flatten
from .flop_counter import FlopCounterMode

__all__ = ["Call", "Record", "Value", "record", "tensors", "untouched", "watched"]

#: Runs that are timed; the quickest one counts.
_RUNS = 3


@dataclass(eq=False)
class Value:
    """A tensor, from the call that made or wrote it on.

    Attributes:
        shape: its sizes.
        dtype: its dtype, without ``taeda.``.
        source: the call; None for what came from outside.
        tensor: a weak reference to it.
    """

    shape: tuple[int, ...]
    dtype: str
    source: Call | None
    tensor: Any = None


@dataclass(eq=False)
class Call:
    """A call of a module, or of an op outside of the innermost modules.

    Attributes:
        name: the class of the module, or the op.
        path: the module's attribute path from the model; empty for the model itself and for ops.
        module: the module; None for an op.
        parent: the call around it.
        inputs, outputs: its tensors.
        children: the calls inside, in order.
        flops: operations of products, convolutions, attention and recurrent layers, those of children aside.
        seconds: its time, children included.
        peak: bytes that tensors took at most at a time during the call, beyond those before it; 0 for an op.
    """

    name: str
    path: str = ""
    module: Any = None
    parent: Call | None = None
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    children: list[Call] = field(default_factory=list)
    flops: int = 0
    seconds: float = 0.0
    peak: int = 0

    def all_flops(self) -> int:
        """The operations of this call and of its children."""
        return self.flops + sum(child.all_flops() for child in self.children)

    def walk(self) -> Iterator[Call]:
        """This call and those inside, each before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Record:
    """A run: its outermost call, its result, and the call that recorded a node of the graph, by the node's number."""

    call: Call
    result: Any
    nodes: dict[int, Call]


def tensors(x: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(x, Tensor):
        return [x]
    if type(x) in (tuple, list, dict):
        return [t for y in (x.values() if type(x) is dict else x) for t in tensors(y)]
    if x is None or isinstance(x, (int, float, str)):
        return []
    return [t for t in tree_flatten(x)[0] if isinstance(t, Tensor)]


def _is_whole(module: Any) -> bool:
    """Whether a module is shown as one thing: its ops are not looked at."""
    return not module._modules or isinstance(module, nn.MultiheadAttention)


class _Flops(FlopCounterMode):
    """Counts for the call under way."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__(display=False)
        self.recorder = recorder

    def _add(self, name: Any, count: int) -> None:
        self.recorder.stack[-1].flops += count


class _Recorder:
    """The mode that sees ops, and the hooks that see modules."""

    watches = True
    composites = True

    def __init__(self, root: Call, names: dict[int, str]) -> None:
        self.root, self.names = root, names
        self.stack = [root]
        self.depth = 0  # depth of calls whose inside is not examined
        self.values: dict[int, Value] = {}
        self.nodes: dict[int, Call] = {}  # the call that recorded a node of the graph, by the node's number

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        if _core.is_mode_active():  # the others come first
            return _core.pass_through(self, op, args, kwargs)
        if self.depth or _core.current_task() != -1:
            result = _core.pass_through(self, op, args, kwargs)
            self._note(result)
            return result
        call = Call(getattr(op, "name", None) or op.__name__, parent=self.stack[-1])
        call.inputs = [self.value_of(t) for t in tensors((args, kwargs))]
        self.depth += 1
        self.stack.append(call)
        start = time.perf_counter()
        try:
            result = _core.pass_through(self, op, args, kwargs)
            call.seconds = time.perf_counter() - start
            self._note(result)
        finally:
            self.depth -= 1
            self.stack.pop()
        found = tensors(result)
        if found:
            call.name = call.name.strip("_") or call.name
            call.outputs = [self._made(t, call) for t in found]
            self.stack[-1].children.append(call)
        return result

    def _note(self, result: Any) -> None:
        """The nodes of the graph that ``result`` has belong to the call under way, if to none before."""
        for t in tensors(result):
            if t.grad_fn is not None:
                self.nodes.setdefault(t.grad_fn._sequence_nr(), self.stack[-1])

    def value_of(self, t: Tensor) -> Value:
        value = self.values.get(id(t))
        return value if value is not None and value.tensor() is t else self._made(t, None)

    def _made(self, t: Tensor, source: Call | None) -> Value:
        value = Value(tuple(t.shape), str(t.dtype).removeprefix("taeda."), source, weakref.ref(t))
        self.values[id(t)] = value
        return value

    def enter(self, module: Any, args: Any) -> None:
        if self.depth or _core.current_task() != -1:
            self.depth += 1
            return
        if self.root.module is module and len(self.stack) == 1:
            self.stack.append(self.root)
        else:
            path = self.names.get(id(module), "")
            call = Call(type(module).__name__, path, module, self.stack[-1])
            self.stack[-1].children.append(call)
            self.stack.append(call)
        self.depth += _is_whole(module)

    def leave(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        call = self.stack[-1]
        if call.module is not module or self.depth > _is_whole(module):
            self.depth -= 1
            return
        self.depth -= _is_whole(module)
        call.inputs = [self.value_of(t) for t in tensors((args, kwargs))]
        made = not call.children
        call.outputs = [self._made(t, call) if made else self.value_of(t) for t in tensors(output)]
        self.stack.pop()


class Watcher:
    """A watcher of modules that keeps the paths of those under way.

    Args:
        model: the model whose paths are known; a module outside of it counts as the one around it.
    """

    def __init__(self, model: Any) -> None:
        self.names = {id(m): name for name, m in model.named_modules()} if model is not None else {}
        self.stack: list[str] = []

    @property
    def module(self) -> str:
        """The path of the innermost module under way."""
        return self.stack[-1] if self.stack else ""

    def enter(self, module: Any, args: Any) -> None:
        """A module is called."""
        self.stack.append(self.names.get(id(module), self.module))

    def leave(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        """A module has returned."""
        if self.stack:
            self.stack.pop()


class _Clock:
    """The time and memory of module calls, in the order in which they begin. Its own time is left out."""

    def __init__(self, planned: bool) -> None:
        self.key = "planned" if planned else "allocated"
        self.found: list[list] = []  # seconds, peak
        self.open: list[tuple[int, float, int]] = []
        self.own = 0.0  # seconds spent here

    def _peak(self) -> int:
        stats = memory_stats()
        reset_peak_memory_stats()
        peak = stats[f"peak_{self.key}"]
        for place, _, before in self.open:
            self.found[place][1] = max(self.found[place][1], peak - before)
        return stats[self.key]

    def enter(self, module: Any, args: Any) -> None:
        begun = time.perf_counter()
        now = self._peak()
        self.open.append((len(self.found), begun - self.own, now))
        self.found.append([0.0, 0])
        self.own += time.perf_counter() - begun

    def leave(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        end = time.perf_counter()
        if self.open:
            self._peak()
            place, start, _ = self.open.pop()
            self.found[place][0] = end - self.own - start
        self.own += time.perf_counter() - end


@contextmanager
def watched(watcher: Any) -> Iterator[None]:
    handles = [
        _hooks.register_module_forward_pre_hook(watcher.enter),
        _hooks.register_module_forward_hook(watcher.leave, with_kwargs=True, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """After the block, buffers of ``model`` (running statistics) and the random generator are as before."""
    buffers = list(model.buffers()) if isinstance(model, nn.Module) and model.training else []
    kept = [(b, b.detach().clone()) for b in buffers]
    with fork_rng():
        try:
            yield
        finally:
            with no_grad():
                for buffer, before in kept:
                    buffer.copy_(before)


def record(function: Callable, args: tuple, kwargs: dict, *, timed: bool = True) -> Record:
    """Run ``function`` and return its calls.

    It runs several times: to build kernels, to record, and for the time. Afterwards buffers and the random generator
    are as before.

    Args:
        function: a module, or a function that calls some.
        args: its arguments by position.
        kwargs: its arguments by name.
        timed: measure; otherwise it runs once.

    Raises:
        TypeError: it takes arguments, and there are none.
    """
    model = function if isinstance(function, nn.Module) else None
    if not args and not kwargs and (missing := _required(function if model is None else model.forward)):
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(f"{name} is called with {', '.join(missing)}: give this after the model, as in (model, x)")
    with untouched(model):
        if timed:
            function(*args, **kwargs)
        made = _look(function, args, kwargs, model)
        if timed:
            _measure(function, args, kwargs, made.call)
    return made


def _required(function: Callable) -> list[str]:
    """The parameters without a default, as far as the signature is known."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _look(function: Callable, args: tuple, kwargs: dict, model: Any) -> Record:
    """One run in which everything is watched."""
    root = Call(type(function).__name__ if model is not None else getattr(function, "__name__", "function"))
    root.module = model
    names = {id(m): name for name, m in model.named_modules()} if model is not None else {}
    recorder = _Recorder(root, names)
    with ExitStack() as stack:
        stack.enter_context(_Flops(recorder))
        stack.enter_context(watched(recorder))
        stack.enter_context(_core.modes([*_core.mode_stack(), recorder]))
        result = function(*args, **kwargs)
    if model is None:
        root.inputs = [recorder.value_of(t) for t in tensors((args, kwargs))]
        root.outputs = [recorder.value_of(t) for t in tensors(result)]
    return Record(root, result, recorder.nodes)


def _measure(function: Callable, args: tuple, kwargs: dict, root: Call) -> None:
    """Write the time and the memory of the module calls of ``root``, from runs in which only they are watched."""
    calls = [call for call in root.walk() if call.module is not None]
    ops = [call for call in root.walk() if call.module is None and call is not root]
    planned = any(t.is_meta for t in tensors((args, kwargs)))
    first = True
    for _ in range(_RUNS):
        clock = _Clock(planned)
        start = time.perf_counter()
        with watched(clock):
            function(*args, **kwargs)
        if root.module is None:
            seconds = time.perf_counter() - start
            root.seconds = seconds if first else min(root.seconds, seconds)
        found = _outer(root, clock.found) if len(clock.found) != len(calls) else clock.found
        for call, (seconds, peak) in zip(calls, found, strict=False):
            call.seconds = 0.0 if planned else seconds if first else min(call.seconds, seconds)
            call.peak = max(call.peak, peak)
        first = False
        if ops:
            other = _look(function, args, kwargs, root.module).call
            again = [call for call in other.walk() if call.module is None and call is not other]
            same = [call.name for call in again] == [call.name for call in ops]
            for call, found_again in zip(ops, again if same else ops, strict=True):
                call.seconds = 0.0 if planned else min(call.seconds, found_again.seconds)


def _outer(root: Call, found: list) -> list:
    """Another number of calls than were recorded: only the first one, the model's, can be told."""
    return found[:1] if root.module is not None else []
