"""Nested tensors: a batch of tensors of different sizes, without padding.

A :class:`NestedTensor` keeps its parts. What treats every element, or every row along dimensions that all parts share,
alike is done part by part; what is not in :data:`RULES` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.ops import parts as of_parts
from taeda.ops.parts import OfParts
from taeda.ops.table import is_pointwise

__all__ = [
    "NestedTensor", "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip

#: What an op that is not pointwise does with nested arguments, by the op's name.
RULES: dict[str, Callable] = {}


class NestedTensor(OfParts):
    """Tensors with the same number of dimensions, as one; its first dimension counts them."""

    _without_memory = "a nested tensor (unbind() gives its parts, to_padded_tensor(0.0) a tensor that has)"
    _parts: tuple[Tensor, ...]
    _layout: Any

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        name = getattr(func, "name", None) or getattr(func, "__name__", str(func))
        rule = None
        if not kwargs or kwargs.get("out") is None:
            rule = RULES.get(str(name)) or (_each if is_pointwise(func) else None)
        if rule is None:
            raise NotImplementedError(
                f"{name}(): not for nested tensors; compute with x.unbind(), or with x.to_padded_tensor(0.0)"
            )
        of_parts.expect_kind(name, rule, args, kwargs or {}, NestedTensor, at=1)
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
        return _like(self, [taeda.zeros_like(x) if g is None else g for x, g in parts])

    def _detached(self) -> NestedTensor:
        return _like(self, [x.detach() for x in self._parts])

    @property
    def shape(self) -> Any:
        """The sizes; ``j0``, which no number is equal to, where they differ between parts.

        Raises:
            RuntimeError: the layout is not jagged, which alone shows sizes that differ.
        """
        if self._layout is not taeda.jagged and any(self._common(d) is None for d in range(1, self.dim())):
            raise RuntimeError(
                "shape: sizes differ between the parts of this nested tensor; ask size(dim) or each part"
            )
        return tuple(self.size(d, _ragged=True) for d in range(self.dim()))

    def _common(self, dim: int) -> int | None:
        sizes = {x.shape[dim - 1] for x in self._parts}
        return sizes.pop() if len(sizes) == 1 else None

    def size(self, dim: int | None = None, _ragged: bool = False) -> Any:
        """The size along ``dim``, which all parts must share; without ``dim`` all of them."""
        if dim is None:
            return self.shape
        dim = dim % self.dim()
        if dim == 0:
            return len(self._parts)
        n = self._common(dim)
        if n is None and not _ragged:
            raise RuntimeError(
                f"size(): Given dimension {dim} is irregular and does not have a size: it differs between the parts"
            )
        return "j0" if n is None else n

    def dim(self) -> int:
        """Number of dimensions, that of the parts included."""
        return self._parts[0].dim() + 1 if self._parts else 1

    ndim = property(dim)

    def numel(self) -> int:
        """Number of elements of all parts."""
        return sum(x.numel() for x in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

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
            return _like(self, self._parts[index])
        if isinstance(index, tuple) and isinstance(index[0], int):
            return self._parts[index[0]][index[1:]]
        raise NotImplementedError("a nested tensor is indexed by the number of a part or by a slice of parts")

    def values(self) -> Tensor:
        """All parts, one behind the other along the dimension in which they differ (of jagged ones)."""
        return taeda.cat(self._parts)

    def offsets(self) -> Tensor:
        """Where each part begins in :meth:`values`, and their total length."""
        return taeda.tensor([0, *(x.shape[0] for x in self._parts)]).cumsum(0)

    def lengths(self) -> None:
        """None: parts follow each other without gaps."""
        return

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """A dense tensor with ``padding`` where a part is shorter than the longest."""
        longest = [max(x.shape[d] for x in self._parts) for d in range(self.dim() - 1)]
        if output_size is not None:
            if len(output_size) != self.dim() or any(a < b for a, b in zip(output_size[1:], longest, strict=True)):
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

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """A nested tensor is no number.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("grad can be implicitly created only for scalar outputs; sum the parts first")

    def __repr__(self, **kwargs: Any) -> str:
        if self._layout is taeda.jagged:
            more = f", device={self.device}" if str(self.device) != "cpu" else ""
            grad = ", requires_grad=True" if self.requires_grad and self.is_leaf else ""
            return f"NestedTensor(size={self.shape}, offsets={self.offsets()}{grad}, contiguous=True{more})".replace(
                "'", ""
            )
        lines = (repr(x.detach()).replace("\n", "\n  ") for x in self._parts)
        return "nested_tensor([\n  " + ",\n  ".join(lines) + "\n])"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


def _nest(parts: Sequence[Tensor], layout: Any) -> NestedTensor:
    parts = tuple(parts)
    like = parts[0] if parts else taeda.empty(0)
    made: NestedTensor = Tensor._make_subclass(NestedTensor, like.detach().new_empty(()))  # type: ignore[attr-defined]
    made._parts, made._layout = parts, layout
    return made


def _like(x: NestedTensor, parts: Sequence[Tensor]) -> NestedTensor:
    return _nest(parts, x._layout)


def _checked(tensors: Any, layout: Any, dtype: Any, device: Any) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"nested_tensor: expected a list of tensors, got {type(tensors).__name__}")
    parts = [taeda.as_tensor(x, dtype=dtype, device=device) for x in tensors]
    if len({x.dim() for x in parts}) > 1:
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension. "
            f"Found dimensions {sorted({x.dim() for x in parts})} among them."
        )
    if layout is taeda.jagged and len({x.shape[1:] for x in parts}) > 1:
        raise RuntimeError(
            "a jagged nested tensor's parts may differ in their first dimension only; use layout=strided"
        )
    return parts


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """A nested tensor of copies of the tensors (or arrays, or lists) in ``tensor_list``, as a leaf.

    Args:
        tensor_list: of the same number of dimensions each.
        dtype, device, pin_memory: as everywhere.
        layout: ``taeda.strided`` (default) or ``taeda.jagged``, whose parts differ in their first dimension only.
        requires_grad: whether operations on it are recorded.
    Raises:
        RuntimeError: the numbers of dimensions differ, or sizes do that may not.
    """
    layout = layout or taeda.strided
    parts = [x.detach().clone().requires_grad_(requires_grad) for x in _checked(tensor_list, layout, dtype, device)]
    return _nest(parts, layout)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor of the tensors in ``ts``, or of the rows of a tensor, through which gradients flow to them."""
    layout = layout or taeda.strided
    parts = ts.unbind(0) if isinstance(ts, Tensor) else ts
    return _nest(_checked(tuple(parts), layout, dtype, device), layout)


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """The pieces of ``values`` that begin at ``offsets``, as a jagged nested tensor.

    Args:
        values: ``(total, ...)``.
        offsets: ``(parts + 1,)``, from 0 to the total; or
        lengths: of the parts, one behind the other; with ``offsets``, how much of each piece counts.
        jagged_dim: 1 or None: parts differ in their first dimension.
        min_seqlen, max_seqlen: accepted; lengths are known.
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    for name, x in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"nested_tensor_from_jagged(): expected a tensor as {name}, got {type(x).__name__}")
    if jagged_dim not in (None, 1):
        raise NotImplementedError(f"nested_tensor_from_jagged(): expected jagged_dim 1, got {jagged_dim}")
    if offsets is None:
        assert lengths is not None
        return _nest(values.split(lengths.tolist()), taeda.jagged)
    starts = offsets.tolist()
    ends = starts[1:] if lengths is None else [a + n for a, n in zip(starts, lengths.tolist(), strict=False)]
    return _nest([values[a:b] for a, b in zip(starts, ends, strict=False)], taeda.jagged)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """Of each row of ``tensor`` the part from ``start`` on that is ``length`` long: numbers or tensors of one per
    row."""
    if dim != 1 or layout is not taeda.jagged:
        raise RuntimeError("nested.narrow(): expected dim 1 and layout jagged")
    starts, lengths = ([n] * len(tensor) if isinstance(n, int) else n.tolist() for n in (start, length))
    return _nest([x[a : a + n] for x, a, n in zip(tensor, starts, lengths, strict=True)], taeda.jagged)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row of ``tensor`` where ``mask`` holds, as a jagged nested tensor."""
    if not isinstance(tensor, Tensor) or not isinstance(mask, Tensor):
        raise TypeError(
            f"masked_select(): expected a tensor and a mask, got {type(tensor).__name__} and {type(mask).__name__}"
        )
    return _nest([x[m] for x, m in zip(tensor, mask.expand_as(tensor), strict=True)], taeda.jagged)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """:meth:`NestedTensor.to_padded_tensor`."""
    if not isinstance(input, NestedTensor):
        raise TypeError(f"to_padded_tensor(): expected a nested tensor, got {type(input).__name__}")
    return input.to_padded_tensor(padding, output_size)


# ---- what ops do -----------------------------------------------------------------------------------------------------


def _each(func: Any, *args: Any, **kwargs: Any) -> Any:
    """``func`` of the parts: nested arguments part by part, dense ones with as many rows row by row, the others
    whole."""
    nested = next((x for x in (*args, *kwargs.values()) if isinstance(x, NestedTensor)), None)
    if nested is None:
        raise NotImplementedError(f"{func.__name__}(): nested tensors in a list are not taken here")
    n = len(nested)

    def of_part(x: Any, i: int) -> Any:
        if isinstance(x, NestedTensor):
            if len(x) != n:
                raise RuntimeError(
                    f"{func.__name__}: expected nested tensors of equally many parts, got {n} and {len(x)}"
                )
            return x._parts[i]
        if isinstance(x, Tensor) and x.dim() == nested.dim() and x.shape[0] in (1, n):
            return x[i if x.shape[0] == n else 0]
        return x

    made = [func(*(of_part(x, i) for x in args), **{k: of_part(x, i) for k, x in kwargs.items()}) for i in range(n)]
    if n and isinstance(made[0], str):  # the name of the type
        return made[0]
    if not all(isinstance(x, Tensor) for x in made):
        raise NotImplementedError(
            f"{func.__name__}(): not of nested tensors in this form, which gives no tensor for a part"
        )
    return _like(nested, made)


def _with_weights(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """An op on rows: its other arguments belong to no part."""
    return _like(input, [func(x, *args, **kwargs) for x in input._parts])


def _along(func: Any, input: NestedTensor, dim: int, *args: Any, **kwargs: Any) -> NestedTensor:
    """An op along a dimension of the parts."""
    return _like(input, [func(x, _within(func, input, dim), *args, **kwargs) for x in input._parts])


def _sum(func: Any, input: NestedTensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    if dim is None:
        total = taeda.stack([x.sum(**kwargs) for x in input._parts]).sum()
        return total / input.numel() if func.__name__ == "mean" else total
    parts = _along(func, input, dim, keepdim, **kwargs)
    return taeda.stack(parts._parts) if dim % input.dim() == 1 else parts


def _within(func: Any, input: NestedTensor, dim: int) -> int:
    """The dimension of the parts that is ``dim`` of the whole."""
    if dim % input.dim() == 0:
        raise RuntimeError(f"{func.__name__}(): not of dimension 0 of a nested tensor, which counts its parts")
    return dim % input.dim() - 1


def _flatten(func: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    first, last = _within(func, input, start_dim), _within(func, input, end_dim)
    return _like(input, [x.flatten(first, last) for x in input._parts])


def _unflatten(func: Any, input: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    return _like(input, [x.unflatten(_within(func, input, dim), sizes) for x in input._parts])


def _transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = dim0 % input.dim(), dim1 % input.dim()
    if 0 in (a, b):
        raise RuntimeError("transpose(): not of dimension 0 of a nested tensor, which counts its parts")
    return _nest([x.transpose(a - 1, b - 1) for x in input._parts], taeda.strided)


def _cat(func: Any, tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    if isinstance(tensors, Tensor) or not all(isinstance(x, NestedTensor) for x in tensors):
        raise TypeError("cat(): expected a list of nested tensors, or of tensors that are not nested")
    if dim == 0:
        return _like(tensors[0], [part for x in tensors for part in x.unbind()])
    rows = zip(*(x.unbind() for x in tensors), strict=True)
    return _like(tensors[0], [taeda.cat(row, dim - 1 if dim > 0 else dim) for row in rows])


def _attention(
    func: Any, query: NestedTensor, key: NestedTensor, value: NestedTensor, *args: Any, **kwargs: Any
) -> Any:
    return _like(
        query, [func(q, k, v, *args, **kwargs) for q, k, v in zip(query._parts, key._parts, value._parts, strict=True)]
    )


def _plain(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Questions whose answer is that of any part: dtype, device and the like."""
    return func(*(x._parts[0] if isinstance(x, NestedTensor) else x for x in args), **kwargs)


for _name in ("matmul", "bmm", "dropout", "dropout_", "detach", "requires_grad_"):
    RULES[_name] = _each
for _name in ("linear", "layer_norm", "rms_norm", "embedding"):
    RULES[_name] = _with_weights
for _name in ("softmax", "log_softmax"):
    RULES[_name] = _along
for _name in ("__get__", "is_floating_point", "is_complex", "element_size", "get_device"):
    RULES[_name] = _plain
RULES.update(
    flatten=_flatten, unflatten=_unflatten, sum=_sum, mean=_sum, transpose=_transpose, cat=_cat,
    scaled_dot_product_attention=_attention,
)  # fmt: skip
