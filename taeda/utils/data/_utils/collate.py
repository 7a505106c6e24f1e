"""From samples to a batch: ``default_collate`` stacks samples of one type, in any nesting of containers."""

from __future__ import annotations

import collections.abc
import copy
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .... import _core
from ...._core import Tensor
from ....ops.exchange import as_tensor, tensor
from ....ops.joining import stack

#: NumPy's dtypes of strings and objects, as ``dtype.str`` writes them; packages test arrays with it.
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _numpy() -> Any:
    """NumPy if something has imported it: without that, nothing can be an array."""
    return sys.modules.get("numpy")


def default_convert(data: Any) -> Any:
    """NumPy arrays as tensors, in any nesting of containers; everything else as it is.

    Args:
        data: anything.

    Returns:
        The same, with tensors of the shapes and dtypes of the arrays.

    Examples:
        >>> taeda.utils.data.default_convert({"x": np.array([1.5, 2.0]), "name": "a"})
        {'x': tensor([1.5000, 2.0000], dtype=taeda.float64), 'name': 'a'}
    """
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


def collate_tensor_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors, stacked."""
    return stack(batch)


def collate_numpy_array_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Any:
    """NumPy arrays, as the tensors of their values."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
            f"{batch[0].dtype}"
        )
    return collate([as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy numbers, as a tensor."""
    import numpy

    return as_tensor(numpy.stack([numpy.asarray(b) for b in batch]))


def collate_float_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Tensor:
    """Floats, as a float64 tensor."""
    return tensor(batch, dtype=_core.float64)


def collate_int_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Tensor:
    """Ints or bools, as a tensor."""
    return tensor(batch)


def collate_str_fn(batch: Sequence, *, collate_fn_map: Any = None) -> Sequence:
    """Strings or bytes, as they are."""
    return batch


#: How samples of a type (or of a class derived from it) are collated; NumPy's types are known besides.
default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    Tensor: collate_tensor_fn, float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn,
}  # fmt: skip


def _numpy_collate(first: Any) -> Callable | None:
    """How to collate samples like ``first``, if that is NumPy's."""
    numpy = _numpy()
    if numpy is None:
        return None
    if isinstance(first, numpy.ndarray):
        return collate_numpy_array_fn
    if isinstance(first, (numpy.bool_, numpy.number, numpy.object_)):
        return collate_numpy_scalar_fn
    return None


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
    """A batch from samples: containers are traversed, and a function for the elements' type collates them.

    Args:
        batch: samples of equal structure.
        collate_fn_map: from a type (or a tuple of types) to ``f(batch, *, collate_fn_map)``; the first that fits
            counts. See :data:`default_collate_fn_map`.
    """
    first = batch[0]
    if collate_fn_map:
        function = collate_fn_map.get(type(first)) or _numpy_collate(first)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
        for kinds, function in collate_fn_map.items():
            if isinstance(first, kinds):
                return function(batch, collate_fn_map=collate_fn_map)

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
    """A batch from a list of samples: tensors, arrays and numbers are stacked, containers are entered, strings stay a
    list.

    Args:
        batch: samples of one type: tensors ``(*)`` of equal shapes, NumPy arrays, numbers, strings, or dicts, tuples,
            lists and named tuples of them.

    Returns:
        Tensors ``(N, *)`` in the containers of a sample; float64 and int64 for numbers.

    Raises:
        TypeError: a sample is of another type.
        RuntimeError: the shapes differ, or the lengths of lists.

    Examples:
        >>> taeda.utils.data.default_collate([(taeda.tensor([1, 2]), 0.5), (taeda.tensor([3, 4]), 1.5)])
        [tensor([[1, 2],
                [3, 4]]), tensor([0.5000, 1.5000], dtype=taeda.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
