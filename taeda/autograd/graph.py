"""The graph from outside: its nodes and edges, hooks on saved tensors, hooks on several gradients at once."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._core import Node, Tensor
from .._core.settings import within
from ..kernels.forks import free_in_children

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


class Form(NamedTuple):
    """The required form of a gradient."""

    shape: tuple
    dtype: Any


class _Edge(NamedTuple):
    """The fields of an edge, by which edges are compared."""

    node: Any
    output_nr: int
    ownership_token: Any = None


class GradientEdge(_Edge):
    """Destination of a gradient: output ``output_nr`` of ``node``. ``grad`` and ``backward`` take one for a tensor.

    Attributes:
        node: a node of the graph.
        output_nr: the number of its output.
        ownership_token: None; PyTorch keeps alive there what a node needs, which a node does here itself.

    Examples:
        >>> x = taeda.tensor(2.0, requires_grad=True)
        >>> edge = taeda.autograd.graph.get_gradient_edge(x)
        >>> taeda.autograd.grad(x**2, edge)
        (tensor(4.),)
    """

    _form: Form | None = None  # no field: edges are equal whether or not their output has been seen

    @property
    def form(self) -> Form | None:
        """The sizes and dtype of the output, where they are known."""
        if isinstance(self.node, _core.AccumulateGrad):
            return Form(self.node.variable.shape, self.node.variable.dtype)
        return self._form


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor in the graph; a leaf has the node that adds to its ``.grad``.

    Args:
        tensor: any shape, requires grad.

    Returns:
        A :class:`GradientEdge`.

    Raises:
        RuntimeError: ``tensor`` does not require grad.

    Examples:
        >>> x = taeda.tensor(2.0, requires_grad=True)
        >>> taeda.autograd.graph.get_gradient_edge(x * 3).node.name()
        'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    if node is None:
        return GradientEdge(_core.AccumulateGrad(tensor), 0)
    edge = GradientEdge(node, tensor.output_nr)
    if not tensor.is_nested:
        edge._form = Form(tensor.shape, tensor.dtype)
    return edge


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell the graph that a tensor was written by means that it cannot see, such as a C library.

    Args:
        tensor: one tensor or several, any shapes.

    Raises:
        RuntimeError: a tensor was made in inference mode, which is off now.

    Examples:
        >>> x = taeda.zeros(2)
        >>> taeda.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t.is_inference() and not _core.is_inference_mode_enabled():
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.")
        _core.bump(t)


# ---- saved tensors ---------------------------------------------------------------------------------------------------

_refusal = threading.local()


class saved_tensors_hooks:
    """A context that decides how tensors are kept for the backward pass: compressed, on disk, ...

    Args:
        pack_hook: from a tensor to anything; it must not change the tensor.
        unpack_hook: from what ``pack_hook`` gave to a tensor with the same values.

    Raises:
        RuntimeError: a hook changed a tensor, or gave something else.

    Examples:
        >>> kept = []
        >>> def pack(t):
        ...     kept.append(tuple(t.shape))
        ...     return t
        >>> x = taeda.ones(3, requires_grad=True)
        >>> with taeda.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        ...     y = x.exp()
        >>> kept
        [(3,)]
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        message = getattr(_refusal, "message", None)
        if message is not None:
            raise RuntimeError(message)
        _core.push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _core.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context in which tensors saved for backward are kept in main memory, and come back to their device when needed.

    Args:
        pin_memory: accepted.
        device_type: the device that they are moved from.

    Examples:
        >>> x = taeda.ones(3, requires_grad=True)
        >>> with taeda.autograd.graph.save_on_cpu():
        ...     y = (x**2).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Tensor) -> tuple:
            return t.device, t.detach().clone().cpu()

        def unpack(packed: tuple) -> Tensor:
            where, t = packed
            return t.to(where)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A context in which entering :class:`saved_tensors_hooks` on this thread raises an error.

    Args:
        error_message: its text.

    Raises:
        RuntimeError: hooks are active already.

    Examples:
        >>> graph = taeda.autograd.graph
        >>> with graph.disable_saved_tensors_hooks("not here"):
        ...     try:
        ...         graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
        ...     except RuntimeError as error:
        ...         print(error)
        not here
    """
    if _core.saved_hooks_active():
        raise RuntimeError(error_message)
    with within(_refusal, message=error_message):
        yield


# ---- hooks on several gradients --------------------------------------------------------------------------------------


class _Handles:
    """Removes several hooks."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> _Handles:
    """Call a function once per backward pass about the gradients of several tensors.

    Args:
        tensors: any shapes. With ``"all"`` all of them require grad; ``"any"`` leaves out those that do not.
        fn: with ``"all"``, called with a list of their gradients (None for those that the pass does not reach) when the
            last is known; with ``"any"``, called with the gradient that is known first.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle, whose ``remove()`` takes the function away.

    Raises:
        ValueError: the mode is unknown.
        AssertionError: the mode is ``"all"``, and a tensor does not require grad.

    Examples:
        >>> a, b = taeda.ones(2, requires_grad=True), taeda.ones(3, requires_grad=True)
        >>> handle = taeda.autograd.graph.register_multi_grad_hook([a, b], lambda grads: print(len(grads), "gradients"))
        >>> (a.sum() * b.sum()).backward()
        2 gradients
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        tensors = [t for t in tensors if t.requires_grad]
    elif not all(t.requires_grad for t in tensors):
        raise AssertionError("register_multi_grad_hook: expected tensors that require grad")
    edges = [get_gradient_edge(t) for t in tensors]
    passes: dict[int, list] = {}  # backward pass -> [gradients so far, how many are to come, whether one is known]
    lock = free_in_children(threading.Lock())

    def on_gradient(index: int, grad: Tensor | None) -> None:
        task = _core.current_task()
        with lock:
            state = passes.get(task)
            if state is None:
                reached = [_core.task_reaches(*edge[:2]) for edge in edges]
                reached[index] = True  # the node that runs is no longer among those to come
                state = passes[task] = [[None] * len(edges), sum(reached), False]
                _core.at_end_of_task(functools.partial(passes.pop, task, None))
            first = not state[2]
            state[0][index], state[2] = grad, True
            state[1] -= 1
            last = state[1] == 0
        if mode == "all" and last:
            fn(state[0])
        elif mode == "any" and first:
            fn(grad)

    return _Handles([t.register_hook(functools.partial(on_gradient, i)) for i, t in enumerate(tensors)])


# ---- saved tensors that may be written -------------------------------------------------------------------------------


class _Copies:
    """Copies, made just in time, of tensors that are written while they are saved for backward."""

    def __init__(self) -> None:
        self.saved: dict[int, list] = {}  # storage -> weak references to its saved tensors
        self.clear = self.saved.clear


class _Kept:
    """A saved tensor: itself for as long as its version holds, from then on a copy."""

    __slots__ = ("__weakref__", "copy", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.version, self.copy = tensor, tensor._version, None


class _CopyOnWrite:
    """A mode that copies the saved tensors of a storage before an op writes into it."""

    def __init__(self, copies: _Copies) -> None:
        self.copies = copies

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        target = kwargs["out"] if "out" in kwargs else args[0] if args and "functional" in op.traits else None
        for t in target if isinstance(target, (tuple, list)) else (target,):
            if isinstance(t, Tensor):
                self.preserve(t)
        return op(*args, **kwargs)

    def preserve(self, t: Tensor) -> None:
        with _grad_off():
            for reference in self.copies.saved.pop(id(t.untyped_storage()), ()):
                kept = reference()
                if kept is not None and kept.copy is None and kept.tensor._version == kept.version:
                    kept.copy = kept.tensor.detach().clone()


@contextlib.contextmanager
def _grad_off() -> Iterator[None]:
    previous = _core.record_nothing()
    try:
        yield
    finally:
        _core.restore_grad_mode(previous)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """A context in which a tensor saved for backward may be written in place: a copy is made first, if one is needed.

    The backward pass must run within it, too.

    Yields:
        What knows the copies.

    Raises:
        RuntimeError: the context is within another one.

    Examples:
        >>> x = taeda.tensor([2.0, 3.0], requires_grad=True)
        >>> with taeda.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x * 1
        ...     z = (y**2).sum()
        ...     _ = y.zero_()
        ...     z.backward()
        >>> x.grad
        tensor([4., 6.])
    """
    if any(isinstance(mode, _CopyOnWrite) for mode in _core.mode_stack()):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = _Copies()
    open_ = [True]

    def pack(t: Tensor) -> _Kept:
        kept = _Kept(t)
        copies.saved.setdefault(id(t.untyped_storage()), []).append(weakref.ref(kept))
        return kept

    def unpack(kept: _Kept) -> Tensor:
        if not open_[0]:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        if kept.copy is None and kept.tensor._version != kept.version:
            raise RuntimeError(
                "a tensor saved for backward was written by something that is not an op: it could not be copied"
            )
        return kept.tensor if kept.copy is None else kept.copy

    _core.push_mode(_CopyOnWrite(copies))
    try:
        with saved_tensors_hooks(pack, unpack):
            yield copies
    finally:
        _core.pop_mode()
        open_[0] = False
        copies.clear()


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted for compatibility: there are no streams on the CPU.

    Args:
        enabled: of no effect.

    Examples:
        >>> taeda.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """
