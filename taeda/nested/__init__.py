"""Nested tensors: a batch of tensors of different sizes, without padding.

A :class:`NestedTensor` keeps its parts. What treats every element, or every row along dimensions that all parts share,
alike is done part by part; what has no rule in ``rules.py`` says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .._core import contiguous_format, strided
from .._typed import Tensor
from ..ops.exchange import as_tensor
from ..types import jagged
from . import rules as rules
from .tensor import NestedTensor, nest

__all__ = [
    "NestedTensor", "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip


def _checked(tensors: Any, layout: Any, dtype: Any, device: Any) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"nested_tensor: expected a list of tensors, got {type(tensors).__name__}")
    if layout not in (strided, jagged):
        raise RuntimeError(f"nested_tensor: expected layout taeda.strided or taeda.jagged, got {layout}")
    parts: list[Tensor] = []
    for x in tensors:  # those of a strided one are of the dtype of the first
        parts.append(
            as_tensor(x, dtype=dtype or (parts[0].dtype if parts and layout is strided else None), device=device)
        )
    if layout is jagged and not parts:
        raise RuntimeError("nested_tensor: Cannot construct a nested tensor from an empty tensor list")
    if len({x.dtype for x in parts}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dtype. "
            f"Found {sorted(str(x.dtype) for x in parts)} among them."
        )
    if len({x.dim() for x in parts}) > 1:
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension. "
            f"Found dimensions {sorted({x.dim() for x in parts})} among them."
        )
    return parts


def _jagged_or_strided(parts: Sequence[Tensor], layout: Any) -> NestedTensor:
    ragged = [d + 1 for d, sizes in enumerate(zip(*(x.shape for x in parts), strict=True)) if len(set(sizes)) > 1]
    if layout is jagged and len(ragged) > 1:
        raise RuntimeError("a jagged nested tensor's parts may differ in one dimension only; use layout=strided")
    return nest(parts, layout, ragged[0] if ragged and layout is jagged else 1)


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """A nested tensor of copies of the tensors (or arrays, or lists) in ``tensor_list``, as a leaf.

    Args:
        tensor_list: of the same number of dimensions each.
        dtype: of the parts; by default that of the first.
        layout: ``taeda.strided`` (default) or ``taeda.jagged``, whose parts differ in one dimension only.
        device: where they are.
        requires_grad: whether operations on it are recorded.
        pin_memory: whether that is page-locked.
    Returns:
        The nested tensor.
    Raises:
        RuntimeError: the numbers of dimensions differ, or sizes do that may not.
    """
    layout = layout or strided
    given = _checked(tensor_list, layout, dtype, device)
    parts = [x.detach().clone(memory_format=contiguous_format).requires_grad_(requires_grad) for x in given]
    return _jagged_or_strided(parts, layout)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor:
    """A nested tensor of the tensors in ``ts``, or of the rows of a tensor, through which gradients flow to them."""
    layout = layout or strided
    parts = ts.unbind(0) if isinstance(ts, Tensor) else ts
    if not isinstance(parts, (list, tuple)) or not all(isinstance(x, Tensor) for x in parts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    return _jagged_or_strided(_checked(tuple(parts), layout, dtype, device), layout)


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """The pieces of ``values`` that begin at ``offsets``, as a jagged nested tensor.

    Args:
        values: ``(total, ...)``; the total is the size of dimension ``jagged_dim - 1``.
        offsets: ``(parts + 1,)``, from 0 to the total; or
        lengths: of the parts, one behind the other; with ``offsets``, how much of each piece counts.
        jagged_dim: of the result, in which the parts differ; 1 by default.
        min_seqlen: accepted; lengths are known.
        max_seqlen: accepted; lengths are known.
    Returns:
        The nested tensor.
    Raises:
        RuntimeError: neither ``offsets`` nor ``lengths`` is given, or there is no dimension ``jagged_dim``.
        TypeError: one of them is no tensor.
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    for name, x in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(f"nested_tensor_from_jagged(): expected a tensor as {name}, got {type(x).__name__}")
    ragged = 1 if jagged_dim is None else jagged_dim
    if not 1 <= ragged <= values.dim():
        raise RuntimeError(f"nested_tensor_from_jagged(): expected jagged_dim of 1 to {values.dim()}, got {jagged_dim}")
    if offsets is None:
        assert lengths is not None
        return nest(values.split(lengths.tolist(), ragged - 1), jagged, ragged)
    starts = offsets.tolist()
    sizes = lengths.tolist() if lengths is not None else [b - a for a, b in itertools.pairwise(starts)]
    parts = [values.narrow(ragged - 1, a, n) for a, n in zip(starts, sizes, strict=False)]
    return nest(parts, jagged, ragged)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """The part of each row of ``tensor`` that begins at ``start`` and is ``length`` long. Both are a number, or a
    tensor of one number per row."""
    if dim != 1 or layout is not jagged:
        raise RuntimeError("nested.narrow(): expected dim 1 and layout jagged")
    starts, lengths = ([n] * len(tensor) if isinstance(n, int) else n.tolist() for n in (start, length))
    return nest([x[a : a + n] for x, a, n in zip(tensor, starts, lengths, strict=True)], jagged)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of each row of ``tensor`` where ``mask`` holds, as a jagged nested tensor."""
    if not isinstance(tensor, Tensor) or not isinstance(mask, Tensor):
        raise TypeError(
            f"masked_select(): expected a tensor and a mask, got {type(tensor).__name__} and {type(mask).__name__}"
        )
    return nest([x[m] for x, m in zip(tensor, mask.expand_as(tensor), strict=True)], jagged)


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """:meth:`NestedTensor.to_padded_tensor`."""
    if not isinstance(input, NestedTensor):
        raise TypeError(f"to_padded_tensor(): expected a nested tensor, got {type(input).__name__}")
    return input.to_padded_tensor(padding, output_size)
