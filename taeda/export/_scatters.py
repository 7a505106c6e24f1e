"""Writes to views without writes: the new value of the viewed tensor, for each op that gives a view."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import Tensor
from taeda.ops.exchange import tensor as as_tensor
from taeda.ops.table import METHODS, OPS

from .. import _core
from ._unknown_sizes import _bound

__all__ = ["put", "scattered"]

_Call = Callable[[Any, tuple, dict], Any]


def scattered(call: _Call, function: Any, args: tuple, kwargs: dict, part: int, source: Any, value: Any) -> Any:
    """``source`` with ``value`` in the place of its view ``function(*args, **kwargs)``; None if no op does that.

    Args:
        call: calls a function: ``call(function, args, kwargs)``.
        function: gives the view.
        args: its arguments by position.
        kwargs: its arguments by name.
        part: which of its results the view is, where it gives several.
        source: the tensor that is viewed.
        value: what is written, of the view's sizes.
    """
    name = getattr(function, "__name__", "")
    if name in ("getitem", "basic_index"):
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        return _indexed(call, source, index, value)
    given = _bound(function, args, kwargs)
    if name in ("detach", "alias"):
        return value
    if name in ("view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "view_as", "reshape_as"):
        if value.dtype is not source.dtype or isinstance(given.get("dtype"), type(value.dtype)):
            return None
        return call(METHODS["reshape"], (value, tuple(source.shape)), {})
    if name in ("transpose", "swapaxes", "swapdims"):
        return call(function, (value, *args[1:]), kwargs)
    if name in ("t", "mT", "mH") and source.dim() >= 2 and not source.is_complex():
        return call(METHODS["transpose"], (value, -2, -1), {})
    if name == "permute":
        order = [d % source.dim() for d in given["dims"]]
        return call(METHODS["permute"], (value, [order.index(d) for d in range(len(order))]), {})
    if name == "select":
        return call(OPS["select_scatter"], (source, value, given["dim"], given["index"]), {})
    if name == "narrow" and not isinstance(given["start"], Tensor):
        start, length = given["start"], given["length"]
        if isinstance(start, int) and start < 0:
            start = start + source.shape[given["dim"]]
        return call(OPS["slice_scatter"], (source, value, given["dim"], start, start + length), {})
    if name == "diagonal":
        ends = (given.get("offset", 0), given.get("dim1", 0), given.get("dim2", 1))
        return call(OPS["diagonal_scatter"], (source, value, *ends), {})
    if name in ("chunk", "split", "split_with_sizes", "tensor_split", "unbind"):
        parts = list(call(function, args, kwargs))
        parts[part] = value
        joined = OPS["stack"] if name == "unbind" else OPS["cat"]
        return call(joined, (parts, given.get("dim") or 0), {})
    return None


def _whole(index: Sequence, rank: int) -> list:
    """An index with an item for each dimension."""
    items = list(index)
    count = sum(_dims(i) for i in items)
    place = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[place : place + 1] = [slice(None)] * (rank - count)
    return items


def _dims(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.dim() if _is_mask(item) else 1


def _is_mask(x: Any) -> bool:
    return isinstance(x, Tensor) and str(x.dtype).rpartition(".")[2] in ("bool", "uint8")


def _indexed(call: _Call, source: Any, index: Sequence, value: Any) -> Any:
    """``source[index] = value`` for numbers, slices and None, as ``slice_scatter``."""
    items = _whole(index, source.dim())
    place = 0
    for item in items:  # the value with the dimensions of the source
        if item is None:
            value = call(METHODS["squeeze"], (value, place), {})
            continue
        if not isinstance(item, slice):
            value = call(METHODS["unsqueeze"], (value, place), {})
        place += 1
    return _sliced(call, source, [i for i in items if i is not None], 0, value)


def _sliced(call: _Call, source: Any, items: list, dim: int, value: Any) -> Any:
    while dim < len(items) and items[dim] == slice(None):
        dim += 1
    if dim == len(items):
        return value
    item = items[dim]
    if not isinstance(item, slice):
        after = None if isinstance(item, int) and item == -1 else item + 1
        item = slice(item, after, 1)
    if any(items[d] != slice(None) for d in range(dim + 1, len(items))):
        inner = call(operator.getitem, (source, (slice(None),) * dim + (item,)), {})
        value = _sliced(call, inner, items, dim + 1, value)
    return call(OPS["slice_scatter"], (source, value, dim, item.start, item.stop, item.step or 1), {})


def _chosen(call: _Call, target: Any, mask: Any, rest: int, value: Any) -> Any:
    """``target`` with ``value`` where the mask, of all but the last ``rest`` dimensions, is true."""
    if mask.dtype is not _core.bool_:
        mask = call(METHODS["to"], (mask, _core.bool_), {})
    for _ in range(rest):
        mask = call(METHODS["unsqueeze"], (mask, -1), {})
    if not isinstance(value, Tensor):
        return call(OPS["masked_fill"], (target, mask, value), {})
    if value.dtype is not target.dtype:
        value = call(METHODS["to"], (value, target.dtype), {})
    return call(OPS["where"], (mask, value, target), {})


def put(call: _Call, target: Any, index: Any, value: Any) -> tuple[Any, Any] | None:
    """``target[index] = value`` with tensors in the index. Returns a view of ``target``, and its value afterwards.

    Returns None if ``index_put`` has no such form.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    items = [as_tensor(i) if isinstance(i, list) else i for i in items]
    if any(_is_mask(i) and not i.dim() for i in items):
        return None
    items = _whole(items, target.dim())
    if _is_mask(items[0]) and all(isinstance(i, slice) and i == slice(None) for i in items[1:]):
        rest = len(items) - 1
        if not isinstance(value, Tensor) or value.dim() <= rest:
            return target, _chosen(call, target, items[0], rest, value)
    basic: list[Any] = []
    indices: list[Any] = []
    for item in items:
        if isinstance(item, Tensor):
            basic += [slice(None)] * _dims(item)
            indices.append(item)
            continue
        basic.append(item)
        if item is None or isinstance(item, slice):
            indices.append(None)
    view = target if all(isinstance(i, slice) and i == slice(None) for i in basic) else None
    view = call(operator.getitem, (target, tuple(basic)), {}) if view is None else view
    if not isinstance(value, Tensor):
        value = call(OPS["scalar_tensor"], (value,), {"dtype": target.dtype})
    elif value.dtype is not target.dtype:
        value = call(METHODS["to"], (value, target.dtype), {})
    return view, call(OPS["index_put"], (view, indices, value), {})
