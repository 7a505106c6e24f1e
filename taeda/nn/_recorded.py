"""Common parts of recorders of programs: tensors from outside, which last from run to run, and the mode's place."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Size, Storage, Tensor
from .._core.callbacks import callbacks
from .._core.tensor import new_generation
from ..ops.meta import place_of
from ..ops.table import trait
from ..utils import _pytree as pytree
from .modules.module import Module

__all__ = ["Lasting", "Recorder", "distinct", "form_of", "is_value", "refuse_form", "refuse_storages", "tensors_of"]


def form_of(x: Tensor) -> tuple:
    """The form of a tensor, for which programs are recorded."""
    return x.dtype, tuple(x.shape), x.stride() if x._without_memory is None else ()


def tensors_of(module: Module) -> dict[tuple[str, str, Any], Tensor]:
    """The tensors that a module and those in it hold.

    Returns:
        By the place of each: a path; the table of parameters or buffers, or nothing; and the place among tensors there.
    """
    found: dict[tuple[str, str, Any], Tensor] = {}
    for path, part in module.named_modules():
        for table, held in (("_parameters", part._parameters), ("_buffers", part._buffers), ("", vars(part))):
            for name, value in held.items():
                leaves = () if name in ("_parameters", "_buffers", "_modules") else pytree.tree_leaves(value)
                for i, x in enumerate(leaves):
                    if isinstance(x, Tensor):
                        found[f"{path}.{name}" if path else name, table, i] = x
    return found


def is_value(function: Any, result: Any) -> bool:
    """Whether ``result`` is a bool that ``function`` has computed of values."""
    return isinstance(result, bool) and trait(function, "meta", "") == "values"


def refuse_storages(function: Any, args: tuple, kwargs: dict) -> None:
    """Raise for a step that is given a storage: programs hold tensors."""
    for x in (*args, *kwargs.values()):
        if isinstance(getattr(x, "_untyped_storage", x), Storage):
            raise RuntimeError(
                f"{function.__name__}(): a recorded program holds no storage; give a tensor, such as one on the storage"
            )


def distinct(args: Any, held: Iterable[Tensor] = ()) -> Any:
    """Arguments of a program: a tensor that is given twice, or is among ``held``, is another view of its memory."""
    seen = set(map(id, held))

    def once(x: Any) -> Any:
        if isinstance(x, Tensor) and id(x) in seen:
            return x.detach().requires_grad_(x.requires_grad)
        seen.add(id(x))
        return x

    return pytree.tree_map(once, args)


class Lasting:
    """State that a program finds, and must leave as it is but for its elements.

    Args:
        root: what is recorded.
    """

    def __init__(self, root: Any = None) -> None:
        self.born = new_generation()
        self.root = root if isinstance(root, Module) else getattr(root, "__self__", None)
        self.held = tensors_of(self.root) if isinstance(self.root, Module) else {}
        self.read: dict[int, tuple[Tensor, tuple]] = {}

    def has(self, x: Tensor) -> bool:
        """Whether the memory of ``x`` lasts."""
        return x._without_memory is None and x.untyped_storage().born < self.born

    def holds(self, storage: Storage, tensors: Iterable[Any]) -> bool:
        """Whether ``storage`` lasts, or is the memory of one of ``tensors``, which the program has made or read."""
        return storage.born < self.born or any(
            isinstance(t, Tensor) and t._without_memory is None and t.untyped_storage() is storage for t in tensors
        )

    def note(self, x: Tensor) -> None:
        """The program reads ``x``."""
        self.read.setdefault(id(x), (x, form_of(x)))

    def check(self, who: str) -> None:
        """Raise if tensors that were read have another form now, or modules hold others in their place.

        Args:
            who: who records.

        Raises:
            RuntimeError: a tensor has another dtype, other sizes or strides.
            ValueError: an attribute of a module is another tensor.
        """
        for x, form in self.read.values():
            refuse_form(who, form, form_of(x))
        now = tensors_of(self.root) if isinstance(self.root, Module) else {}
        for place in [*self.held, *now]:
            x = self.held.get(place)
            used = id(x) in self.read if x is not None else place[1]
            if used and now.get(place) is not x:
                raise ValueError(
                    f"{who}: {place[0]} is set to another tensor, which the next run of the program would not see; "
                    f"write to a buffer with copy_()"
                )


def refuse_form(who: str, before: tuple, now: tuple, name: str = "a tensor") -> None:
    """Raise if the form of ``name``, which lasts from run to run, is another one."""
    if before != now:
        raise RuntimeError(
            f"{who}: {name}, which lasts from run to run, gets another form: dtype, sizes and strides {now}, before "
            f"{before}. The next run would need another program; change the form of a view of it, such as x.view_as(x)"
        )


class Recorder:
    """A mode that records the ops of a program, which runs on real tensors. It is below all other modes, so that it
    sees the computed ops. Each subclass records apart from the others.

    Args:
        root: what is recorded.
    """

    composites = True
    records_ops = True  #: it would lose an op in which an exception ends
    _thread: Any
    _tracers = 0  #: how many tracers it counts as, while which sizes are those of the trace

    def __init_subclass__(cls) -> None:
        cls._thread = threading.local()

    def __init__(self, root: Any = None) -> None:
        self.lasting = Lasting(root)
        self.made: dict[Any, Tensor] = {}  # from Python's values in this run, by their places

    @classmethod
    def current(cls) -> Any:
        """The recorder of this thread, or None."""
        return getattr(cls._thread, "recorder", None)

    @classmethod
    @contextmanager
    def recording(cls, recorder: Recorder | None) -> Iterator[None]:
        """``recorder`` records within it; None: none of this class does."""
        before, rest = cls.current(), [mode for mode in _core.mode_stack() if not isinstance(mode, cls)]
        tracers = 0 if recorder is None else recorder._tracers
        cls._thread.recorder = recorder
        _core.count_tracers(tracers)
        try:
            with _core.modes(rest if recorder is None else [recorder, *rest]):
                yield
        finally:
            cls._thread.recorder = before
            _core.count_tracers(-tracers)

    def sizes_of(self, t: Tensor, plain: Size) -> Size:
        """The sizes that Python reads off a tensor, in place of ``plain``."""
        return plain

    def alive(self) -> Iterable[Any]:
        """The tensors that the program has made or read, among others."""
        raise NotImplementedError

    def holds(self, storage: Storage) -> bool:
        """Whether ``storage`` is memory of the program's tensors."""
        with self.recording(None):
            return self.lasting.holds(storage, self.alive())

    def note_made(self, x: Tensor) -> Tensor:
        """A tensor that the program makes of Python's values: in-place ops write to a copy, in every run."""
        with self.recording(None):
            place = None if x.requires_grad else place_of(x)  # a leaf is not written
        if place is not None:
            self.made.setdefault(place, x)
        return x

    def taken(self, x: Any) -> tuple[Tensor, Tensor] | None:
        """The tensor of :meth:`note_made` that ``x`` is, or shows, and a copy of its values. None at the next call."""
        if not self.made or not isinstance(x, Tensor) or x.requires_grad:
            return None
        with self.recording(None):
            made = self.made.pop(place_of(x), None)
            return None if made is None else (made, made.clone())

    def was_read(self, source: Tensor | None) -> bool:
        """Whether Python, which reads ``source``, has values of it that the program computes."""
        with self.recording(None):
            return source is not None and place_of(source) not in self.made


def _traced_sizes(t: Tensor) -> Size:
    """The value of ``shape`` while any thread traces."""
    stack, plain = _core.mode_stack(), Size(_core.plain_sizes(t))
    return stack[0].sizes_of(t, plain) if stack and isinstance(stack[0], Recorder) else plain


callbacks.traced_sizes = _traced_sizes
