"""From samples to a batch: ``default_collate`` stacks what is alike, through any nesting of containers."""

from __future__ import annotations

import collections.abc
import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ... import _core, as_tensor, stack, tensor
from ..._core import Tensor


def _numpy() -> Any:
    """NumPy if something has imported it: without that, nothing can be an array."""
    return sys.modules.get("numpy")


def default_convert(data: Any) -> Any:
    """NumPy arrays in ``data`` as tensors; everything else as it is."""
    numpy = _numpy()
    if isinstance(data, Tensor):
        return data
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        return data if data.dtype.kind in "SUOMm" else as_tensor(data)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, collections.abc.Sequence):
        return _like_sequence(data, [default_convert(d) for d in data])
    return data


def _like_mapping(original: Any, items: dict) -> Any:
    """``items`` in a container like ``original``, or in a dict where that kind cannot be made."""
    try:
        if isinstance(original, collections.abc.MutableMapping):
            made = copy.copy(original)
            made.update(items)
            return made
        return type(original)(items)
    except TypeError:
        return items


def _like_sequence(original: Any, items: list) -> Any:
    try:
        if isinstance(original, collections.abc.MutableSequence):
            made = copy.copy(original)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(original)(items)
    except TypeError:
        return items


def _collate_numpy(batch: Sequence, numpy: Any) -> Any:
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(
            f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {first.dtype}"
        )
    if isinstance(first, numpy.ndarray) and first.ndim:
        return stack([as_tensor(b) for b in batch])
    return as_tensor(numpy.stack([numpy.asarray(b) for b in batch]))


def _collate_sequence(batch: Sequence, collate: Callable) -> Any:
    size = len(batch[0])
    if any(len(b) != size for b in batch):
        raise RuntimeError(
            f"each element in list of batch should be of equal size, got sizes {sorted({len(b) for b in batch})}"
        )
    columns = [collate(column) for column in zip(*batch, strict=True)]
    first = batch[0]
    if isinstance(first, tuple):
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return _like_sequence(first, columns)


def collate(batch: Sequence, *, collate_fn_map: dict[type | tuple[type, ...], Callable] | None = None) -> Any:
    """A batch from samples, with functions of one's own for some types.

    Args:
        batch: samples of equal structure.
        collate_fn_map: from a type (or a tuple of types) to ``f(batch, *, collate_fn_map)``.
    """
    first = batch[0]
    for kinds, function in (collate_fn_map or {}).items():
        if isinstance(first, kinds):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, bool | int):
        return tensor(batch)
    if type(first) is float:
        return tensor(batch, dtype=_core.float64)
    if isinstance(first, (str, bytes)):
        return batch
    numpy = _numpy()
    if numpy is not None and isinstance(first, (numpy.ndarray, numpy.generic)):
        return _collate_numpy(batch, numpy)
    if isinstance(first, float):
        return tensor(batch, dtype=_core.float64)

    def again(part: Sequence) -> Any:
        return collate(part, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: again([b[key] for b in batch]) for key in first})
    if isinstance(first, collections.abc.Sequence):
        return _collate_sequence(batch, again)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}; give the DataLoader a collate_fn"
    )


def default_collate(batch: list) -> Any:
    """A batch from samples of equal structure: tensors and arrays are stacked, numbers become tensors, strings a list;
    a tuple, list or mapping of such becomes one of batches.

    Raises:
        TypeError: a sample contains something else.
        RuntimeError: tensors or lists of unequal sizes.
    """
    return collate(batch)
