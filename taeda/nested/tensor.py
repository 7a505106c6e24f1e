"""The class of nested tensors, which keep their parts."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda.ops.parts import QUERIES, OfParts, expect_kind, of_dense
from taeda.ops.registry import name_of, op_of
from taeda.ops.table import is_pointwise, trait

from .._typed import Tensor

#: The rule for nested arguments of each op that is not pointwise, by the op's name; ``rules.py`` fills it.
RULES: dict[str, Callable] = {}


def _kind(func: Any) -> str:
    """The name of the rule of an op that has none by its own name."""
    if is_pointwise(func):
        return "pointwise"
    reduces = trait(func, "batch") == "reduction" and func.params[1] == "dim"
    return "reduction" if reduces else ""


class RaggedSize:
    """The size of a jagged tensor's dimension in which its parts differ: above 1, and equal to itself alone."""

    __slots__ = ("number", "times")
    ragged = True  #: a ``Size`` takes it
    _numbers = itertools.count(1)

    def __init__(self, number: int | None = None, times: int = 1) -> None:
        self.number = next(self._numbers) if number is None else number
        self.times = times  #: what strides multiply the size by

    def __repr__(self) -> str:
        return f"j{self.number}" if self.times == 1 else f"{self.times}*j{self.number}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, RaggedSize) and (self.number, self.times) == (other.number, other.times)

    def __hash__(self) -> int:
        return hash((self.number, self.times))

    def __mul__(self, n: int) -> RaggedSize:
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            return NotImplemented
        return self if n == 1 else RaggedSize(self.number, self.times * n)

    __rmul__ = __mul__

    def __gt__(self, n: Any) -> bool:
        return self._above(n, 1)

    def __ge__(self, n: Any) -> bool:
        return n is self or self._above(n, 2)

    def __lt__(self, n: Any) -> bool:
        return not self >= n

    def __le__(self, n: Any) -> bool:
        return not self > n

    def _above(self, n: Any, least: int) -> bool:
        if isinstance(n, int) and n <= least * self.times:
            return True
        raise RuntimeError(f"the parts differ in size {self}: it is above 1, and no more is known; got {n}")


class NestedTensor(OfParts):
    """Tensors with the same number of dimensions, as one; its first dimension counts them.

    Of a jagged one the parts differ in the dimension ``_ragged_idx``, whose size is ``_ragged``, and in no other.
    """

    _without_memory = "a nested tensor (unbind() gives its parts, to_padded_tensor(0.0) a tensor that has)"
    _parts: tuple[Tensor, ...]
    _layout: Any
    _ragged: RaggedSize
    _ragged_idx: int

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        func = op_of(func)
        name = name_of(func)
        rule = None
        if not kwargs or kwargs.get("out") is None:
            rule = RULES.get(str(name)) or RULES.get(_kind(func))
        if rule is None and name in QUERIES:
            return of_dense(func, args, kwargs or {})
        if rule is None:
            raise NotImplementedError(
                f"{name}(): not for nested tensors; compute with x.unbind(), or with x.to_padded_tensor(0.0)"
            )
        expect_kind(name, rule, args, kwargs or {}, NestedTensor, at=1)
        return rule(func, *args, **(kwargs or {}))

    is_nested = True

    @property
    def layout(self) -> Any:
        """``taeda.strided`` or ``taeda.jagged``."""
        return self._layout

    def _graph_parts(self) -> tuple[Tensor, ...]:
        return self._parts

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        if not isinstance(g, NestedTensor):
            raise RuntimeError(f"the gradient of a nested tensor is nested too, got a {type(g).__name__}")
        if [x.shape for x in g._parts] != [x.shape for x in self._parts]:
            raise RuntimeError(
                f"Mismatch in shape: the gradient has parts of sizes {[tuple(x.shape) for x in g._parts]}, the nested "
                f"tensor of {[tuple(x.shape) for x in self._parts]}"
            )
        return g._parts

    def _whole_gradient(self, grads: Sequence[Tensor | None]) -> Tensor:
        parts = zip(self._parts, grads, strict=True)
        return like(self, [taeda.zeros_like(x) if g is None else g for x, g in parts])

    def _of_graph_parts(self, parts: Sequence[Tensor]) -> NestedTensor:
        return like(self, parts)

    @staticmethod
    def _of_parts(parts: Sequence[Tensor]) -> NestedTensor:
        """A strided one."""
        return nest(parts, taeda.strided)

    def _become(self, new: NestedTensor) -> NestedTensor:
        if new.dtype != self.dtype:
            taeda._core.set_data(self, new)
        self.__dict__.update(vars(new))
        return self

    @property
    def shape(self) -> Any:
        """The sizes, with ``j1`` or so, which no number is equal to, where the parts of a jagged tensor differ.

        Raises:
            RuntimeError: the layout is not jagged, and sizes differ.
        """
        sizes = [self._size(d) for d in range(self.dim())]
        if None in sizes:
            raise RuntimeError(
                "shape: sizes differ between the parts of this nested tensor; ask size(dim) or each part"
            )
        return taeda.Size(sizes)

    def _size(self, dim: int) -> Any:
        if dim == 0:
            return len(self._parts)
        if self._layout is taeda.jagged and dim == self._ragged_idx:
            return self._ragged
        sizes = {x.shape[dim - 1] for x in self._parts}
        return sizes.pop() if len(sizes) == 1 else None

    def size(self, dim: int | None = None) -> Any:
        """The size along ``dim``, which all parts of a strided one must share; without ``dim`` all of them."""
        if dim is None:
            return self.shape
        n = self._size(self._dim(dim))
        if n is None:
            raise RuntimeError(
                f"size(): Given dimension {dim} is irregular and does not have a size: it differs between the parts"
            )
        return n

    def _dim(self, dim: int, more: int = 0) -> int:
        n = self.dim() + more
        if not -n <= dim < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
        return dim % n

    def dim(self) -> int:
        """Number of dimensions, that of the parts included."""
        return self._parts[0].dim() + 1 if self._parts else 1

    ndimension = dim
    ndim = property(dim)

    def numel(self) -> int:
        """Number of elements of all parts."""
        return sum(x.numel() for x in self._parts)

    nelement = numel

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of all parts."""
        return self.numel() * self.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """The strides of a jagged one: those of :meth:`values`, and in front the number of elements of a part.

        Args:
            dim: no difference.

        Returns:
            Nothing.

        Raises:
            RuntimeError: the layout is not jagged: each part has strides of its own.
        """
        if self._layout is not taeda.jagged:
            raise RuntimeError("stride(): each part of a nested tensor has strides of its own; ask x.unbind()")
        own = (self._parts or (self.values(),))[0].stride()
        strides = (self._ragged * own[self._ragged_idx - 1], *own)
        return strides if dim is None else strides[self._dim(dim)]

    @property
    def mT(self) -> NestedTensor:
        """The last two dimensions swapped."""
        return RULES["transpose"](None, self, -2, -1)

    @property
    def mH(self) -> NestedTensor:
        """The conjugate transpose of the last two dimensions."""
        return self.mT.conj()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether all parts are, and the parts of a jagged one differ in their first dimension."""
        first = self._layout is not taeda.jagged or self._ragged_idx == 1
        return first and all(x.is_contiguous() for x in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def _nested_tensor_size(self) -> Tensor:
        """The sizes of the parts of a strided one, a row for each."""
        if self._layout is taeda.jagged:
            raise RuntimeError(
                "_nested_tensor_size: expected a nested tensor of layout strided, got jagged; see offsets()"
            )
        return taeda.tensor([list(x.shape) for x in self._parts], dtype=taeda.int64)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts."""
        if dim != 0:
            raise RuntimeError(f"unbind(): expected dim 0 of a nested tensor, got {dim}")
        return self._parts

    def __iter__(self) -> Any:
        return iter(self._parts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int):
            return self._parts[index]
        if isinstance(index, slice):
            return like(self, self._parts[index], new=True)
        if isinstance(index, tuple) and index and isinstance(index[0], int):
            return self._parts[index[0]][index[1:]]
        return RULES["index"](self, index if isinstance(index, tuple) else (index,))

    def values(self) -> Tensor:
        """All parts, one behind the other: along the dimension in which those of a jagged one differ, else as one
        row."""
        if self._layout is not taeda.jagged:
            return taeda.cat([x.reshape(-1) for x in self._parts])
        return taeda.cat(self._parts, self._ragged_idx - 1)

    def _ends(self) -> list[int]:
        return list(itertools.accumulate((x.shape[self._ragged_idx - 1] for x in self._parts), initial=0))

    def offsets(self) -> Tensor:
        """The start of each part in :meth:`values`, and their total length."""
        return taeda.tensor(self._ends(), device=self._parts[0].device if self._parts else None)

    def lengths(self) -> None:
        """None: parts follow each other without gaps."""
        return

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """A dense tensor with ``padding`` where a part is shorter than the longest."""
        if not self._parts:
            return taeda.empty(0, dtype=self.dtype, device=self.device)
        longest = [max(x.shape[d] for x in self._parts) for d in range(self.dim() - 1)]
        if output_size is not None:
            short = self._layout is not taeda.jagged and any(
                a < b for a, b in zip(output_size[1:], longest, strict=False)
            )
            if len(output_size) != self.dim() or short:
                raise RuntimeError(
                    f"to_padded_tensor(): expected output_size at least {[len(self), *longest]}, got "
                    f"{list(output_size)}"
                )
            longest = list(output_size[1:])
        rows = []
        for x in self._parts:
            pad = [n for d in reversed(range(x.dim())) for n in (0, longest[d] - x.shape[d])]
            rows.append(taeda.nn.functional.pad(x, pad, value=padding))
        return taeda.stack(rows)

    def backward(
        self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
        inputs: Any = None,
    ) -> None:  # fmt: skip
        """``taeda.autograd.backward`` of the parts, for a nested ``gradient``."""
        taeda.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        return like(self, [copy.deepcopy(x, memo) for x in self._parts])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._parts, self._layout is taeda.jagged, self._ragged_idx)

    def __repr__(self, **kwargs: Any) -> str:
        if self._layout is taeda.jagged:
            more = f", device={self.device}" if str(self.device) != "cpu" else ""
            grad = ", requires_grad=True" if self.requires_grad and self.is_leaf else ""
            return (
                f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{grad}, "
                f"contiguous={self.is_contiguous()}{more})"
            )
        lines = (repr(x.detach()).replace("\n", "\n  ") for x in self._parts)
        return "nested_tensor([\n" + ",\n".join("  " + x for x in lines) + "\n])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


def nest(parts: Sequence[Tensor], layout: Any, ragged_idx: int = 1, ragged: RaggedSize | None = None) -> NestedTensor:
    """A nested tensor of ``parts``; without ``ragged`` its ragged size is a new one."""
    parts = tuple(parts)
    first = parts[0] if parts else taeda.empty(0)
    made: NestedTensor = Tensor._make_subclass(NestedTensor, first.detach().new_empty(()))
    made._parts, made._layout, made._ragged_idx = parts, layout, ragged_idx
    if layout is taeda.jagged:
        made._ragged = ragged or RaggedSize()
    return made


def like(x: NestedTensor, parts: Sequence[Tensor], ragged_idx: int | None = None, new: bool = False) -> NestedTensor:
    """A nested tensor of ``parts`` with the layout of ``x`` and, unless ``new``, its ragged size."""
    ragged = None if new or x._layout is not taeda.jagged else x._ragged
    return nest(parts, x._layout, x._ragged_idx if ragged_idx is None else ragged_idx, ragged)


def _rebuild(parts: Sequence[Tensor], jagged: bool, ragged_idx: int) -> NestedTensor:
    return nest(parts, taeda.jagged if jagged else taeda.strided, ragged_idx)
