"""The chain that a data pipe is the end of."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Collection
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe, dill

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[Any, "DataPipeGraph"]]


def _connected(pipe: Any, only_datapipe: bool, seen: set[int]) -> list:
    """The pipes that ``pipe`` holds: those that pickling it meets."""
    found: list = []

    def kept(state: Any) -> Any:
        wanted = (IterDataPipe, MapDataPipe, Collection)
        if isinstance(state, dict):
            return {key: value for key, value in state.items() if isinstance(value, wanted)}
        if isinstance(state, (tuple, list)):
            return [value for value in state if isinstance(value, wanted)]
        return state if isinstance(state, wanted) else None

    def meet(other: Any) -> Any:
        if other is pipe or id(other) in seen:
            raise NotImplementedError
        found.append(other)
        seen.add(id(other))
        return str, ()

    try:
        for cls in (IterDataPipe, MapDataPipe):
            cls.set_reduce_ex_hook(meet)
            if only_datapipe:
                cls.set_getstate_hook(kept)
        try:
            pickle.Pickler(io.BytesIO()).dump(pipe)
        except (pickle.PickleError, AttributeError, TypeError):
            if dill() is None:
                raise
            dill().Pickler(io.BytesIO()).dump(pipe)
    finally:
        for cls in (IterDataPipe, MapDataPipe):
            cls.set_reduce_ex_hook(None)
            if only_datapipe:
                cls.set_getstate_hook(None)
    return found


def _traversed(pipe: Any, only_datapipe: bool, path: set[int]) -> DataPipeGraph:
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in path:
        return {}
    path = path | {id(pipe)}
    inner: DataPipeGraph = {}
    for other in _connected(pipe, only_datapipe, set(path)):
        inner.update(_traversed(other, only_datapipe, path))
    return {id(pipe): (pipe, inner)}


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """The pipes that ``datapipe`` reads from, in its attributes that are pipes or collections.

    Args:
        datapipe: the end of a chain.
    Returns:
        A dict from the id of a pipe to the pipe and the dict of those that it reads from.

    Examples:
        >>> from taeda.utils.data.datapipes.iter import IterableWrapper
        >>> source = IterableWrapper([1, 2])
        >>> batches = source.batch(2)
        >>> taeda.utils.data.graph.traverse_dps(batches)[id(batches)][1] == {id(source): (source, {})}
        True
    """
    return _traversed(datapipe, True, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """As :func:`traverse_dps`; by default in all attributes. Deprecated."""
    message = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead." + (
        "" if only_datapipe else " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    )
    warnings.warn(message, FutureWarning, stacklevel=2)
    return _traversed(datapipe, bool(only_datapipe), set())
