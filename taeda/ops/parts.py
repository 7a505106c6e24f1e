"""Tensors that keep their values in other tensors, their *parts*: sparse and nested ones.

The parts alone are in the graph. ``backward`` and ``grad`` put them in the place of such a tensor and make a gradient
of its kind of theirs.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .out import can_cast, check_out, write_out
from .registry import name_of

#: Functions, methods and access to attributes that ask for no element: of sizes, dtype, device and the like.
QUERIES = frozenset(
    """__get__ __set__ __delete__ __len__ _is_view dim element_size get_device is_complex is_conj is_contiguous
    is_distributed is_floating_point is_inference is_neg is_pinned is_shared is_signed ndimension nelement numel
    register_hook retain_grad size storage_offset stride""".split()
)
_NO_SUBCLASSES = 4  # a flag of change_overrides: subclasses are not asked


def of_dense(func: Any, args: Sequence, kwargs: dict) -> Any:
    """The result of ``func`` for a dense tensor of the same sizes and dtype."""
    before = _core.change_overrides(_NO_SUBCLASSES, 0)
    try:
        return func(*args, **kwargs)
    finally:
        if not before & _NO_SUBCLASSES:
            _core.change_overrides(0, _NO_SUBCLASSES)


class OfParts(Tensor):
    """A tensor that keeps its values in its parts."""

    _same_elements = False  #: whether what is done with each element by itself can be done with the parts instead

    def _graph_parts(self) -> tuple[Tensor, ...]:
        """The tensors that hold the values."""
        raise NotImplementedError

    def _output_parts(self) -> tuple[Tensor, ...]:
        """The tensors that are differentiated in place of this one."""
        return self._graph_parts()

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        """The gradients of :meth:`_output_parts` for the gradient ``g`` of this tensor.

        Raises:
            RuntimeError: ``g`` is of another kind or other sizes.
        """
        raise NotImplementedError

    def _whole_gradient(self, grads: Sequence[Tensor | None]) -> Tensor:
        """The gradient of this tensor, from the gradients of its parts. At least one of these is not None."""
        raise NotImplementedError

    def _of_graph_parts(self, parts: Sequence[Tensor]) -> Any:
        """The same of other parts."""
        raise NotImplementedError

    def _detached(self) -> Any:
        """The same of detached parts."""
        return self._of_graph_parts([x.detach() for x in self._graph_parts()])

    def _become(self, new: Any) -> Any:
        """Take the parts of ``new``, a tensor of the same class, sizes and dtype; gives ``self``."""
        raise NotImplementedError

    def _overwrite(self, new: Any) -> Any:
        """Take the elements of ``new``, the result of an op in place: the dtype stays."""
        if not can_cast(new.dtype, self.dtype):
            raise RuntimeError(f"result type {new.dtype} can't be cast to the desired output type {self.dtype}")
        return self._become(new.to(self.dtype))

    @property  # type: ignore[misc]
    def data(self) -> Any:
        """The same outside the graph. Assigning another tensor of this layout replaces the elements, not the place in
        the graph and the gradient."""
        return self._detached()

    @data.setter
    def data(self, value: Any) -> None:
        if type(value) is not type(self) or value.layout is not self.layout:
            raise RuntimeError(
                f"data: incompatible tensor type: {self._without_memory} of layout {self.layout} cannot be set to a "
                f"{type(value).__name__} of layout {value.layout}"
            )
        own, given = self._graph_parts(), [x.detach() for x in value._graph_parts()]
        if len(own) == len(given):
            for part, x in zip(own, given, strict=True):
                part.data = x
            given = list(own)
        elif self.requires_grad:
            given = [x.requires_grad_() for x in given]
        self._become(value._of_graph_parts(given))

    @property  # type: ignore[misc]
    def requires_grad(self) -> bool:
        """Whether a part is in a graph."""
        return any(x.requires_grad for x in self._graph_parts())

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        for x in self._graph_parts():
            x.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Whether operations on the parts are recorded."""
        self.requires_grad = requires_grad
        return self

    def is_inference(self) -> bool:
        """Whether a part was made in inference mode."""
        return any(x.is_inference() for x in self._graph_parts())

    def is_shared(self) -> bool:
        """Whether several processes share the memory of all parts."""
        return all(x.is_shared() for x in self._graph_parts())

    def storage_offset(self) -> int:
        """0: the parts have places of their own."""
        return 0

    def data_ptr(self) -> int:
        """Raises: each part has an address of its own.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"Cannot access data pointer of {self._without_memory}: it has no storage of its own")

    @property
    def is_leaf(self) -> bool:
        """Whether no part is the result of an op."""
        return all(x.is_leaf for x in self._graph_parts())

    @property
    def grad_fn(self) -> Any:
        """The node of the first part that is the result of an op."""
        return next((x.grad_fn for x in self._graph_parts() if x.grad_fn is not None), None)

    @property
    def grad(self) -> Tensor | None:
        """The gradient of a leaf, of the kind that the leaf is."""
        grads = [x.grad for x in self._graph_parts()] if self.is_leaf else []
        return None if all(g is None for g in grads) else self._whole_gradient(grads)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        parts = self._graph_parts()
        for x, g in zip(parts, [None] * len(parts) if value is None else self._part_gradients(value), strict=True):
            x.grad = g

    def _no_hooks(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"hooks and retain_grad() are not for {self._without_memory}; put them on the tensors that it was made from"
        )

    register_hook = register_post_accumulate_grad_hook = _no_hooks

    def retain_grad(self) -> None:
        """A leaf keeps its gradient anyway.

        Raises:
            RuntimeError: the tensor requires no gradient.
            NotImplementedError: it is the result of an op.
        """
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self.is_leaf:
            self._no_hooks()


class OfValues(OfParts):
    """A tensor with one part, the values ``_v`` of the elements that it keeps."""

    _v: Tensor
    _dense: Tensor | None = None  #: what ``to_sparse`` made it of: its gradient has elements where this tensor has none

    def _with(self, values: Tensor) -> Any:
        """The same with other values."""
        raise NotImplementedError

    def _graph_parts(self) -> tuple[Tensor, ...]:
        return (self._v,)

    def _output_parts(self) -> tuple[Tensor, ...]:
        return (self._v,) if self._dense is None else (self._dense,)

    def _whole_gradient(self, grads: Sequence[Tensor | None]) -> Tensor:
        (g,) = grads
        assert g is not None
        return self._with(g)

    def _of_graph_parts(self, parts: Sequence[Tensor]) -> Any:
        return self._with(parts[0])

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment; copy x.detach()"
            )
        made = memo[id(self)] = self._detached().clone()
        made._v.requires_grad_(self.requires_grad)
        made._v.grad = copy.deepcopy(self._v.grad, memo)
        return made


def expect_kind(name: Any, rule: Callable, args: Sequence, kwargs: dict, kind: type, at: int = 0) -> None:
    """Raise where a parameter of ``rule`` that is annotated with the class ``kind`` is given something else.

    Args:
        at: which parameter takes the first of ``args``.
    """
    code = rule.__code__
    for i, parameter in enumerate(code.co_varnames[at : code.co_argcount]):
        given = args[i] if i < len(args) else kwargs.get(parameter)
        if rule.__annotations__.get(parameter) == kind.__name__ and not isinstance(given, kind):
            raise NotImplementedError(
                f"{name}(): expected a {kind.__name__} as {parameter!r}, got {type(given).__name__}; convert the "
                f"arguments to one kind"
            )


def into_out(cls: type[Tensor], func: Any, types: Sequence, args: Sequence, kwargs: dict) -> Any:
    """A call that names ``out``, of a class with parts: the result of the call without it, put there.

    Raises:
        TypeError: the op takes no ``out``, or it is no tensor.
        NotImplementedError: ``out`` has another layout than the result.
        RuntimeError: it has another dtype or other sizes, or a derivative is asked for.
    """
    name = name_of(func)
    kwargs = dict(kwargs)
    out = kwargs.pop("out")
    if not getattr(func, "traits", {}).get("has_out") and "out" not in inspect.signature(func).parameters:
        raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
    given = [x for a in (*args, *kwargs.values()) for x in (a if isinstance(a, (tuple, list)) else (a,))]
    with_parts = any(isinstance(x, OfParts) for x in given)
    result = cls.__torch_function__(func, types, args, kwargs) if with_parts else func(*args, **kwargs)
    if isinstance(out, Tensor) and (not isinstance(result, Tensor) or out.layout is not result.layout):
        raise NotImplementedError(
            f"{name}(): expected an out of the layout of the result, {getattr(result, 'layout', 'strided')}, got "
            f"{out.layout}"
        )
    if not isinstance(out, OfParts):
        return write_out(func, out, result, {})
    check_out(func, name, out._graph_parts()[0], result._graph_parts()[0])
    if out.shape != result.shape:
        raise RuntimeError(f"{name}(): expected an out of sizes {list(result.shape)}, got {list(out.shape)}")
    return out._become(result)
