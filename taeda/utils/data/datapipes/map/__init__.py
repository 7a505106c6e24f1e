"""Pipes that give samples by index."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe
from ..iter.combinatorics import Shuffling
from ..utils.common import _check_unpickable_fn

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A pipe of the items of a list or dict.

    Args:
        sequence: the list or dict.
        deepcopy: copy it, so that later steps may change the items.
    """

    def __init__(self, sequence: Any, deepcopy: bool = True):
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: Any) -> Any:
    """The sample as it is."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """A pipe of ``fn(sample)`` (``pipe.map(fn)``)."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn):
        super().__init__()
        _check_unpickable_fn(fn)
        self.datapipe = datapipe
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


class _Joined(MapDataPipe):
    def __init__(self, *datapipes: MapDataPipe):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
            raise TypeError("Expected all inputs to be `Sized`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Joined):
    """A pipe of several, one after the other (``pipe.concat(other)``)."""

    def __getitem__(self, index: int) -> Any:
        at = index
        for pipe in self.datapipes:
            if at < len(pipe):
                return pipe[at]
            at -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(_Joined):
    """A pipe of tuples with a sample of each (``pipe.zip(other)``)."""

    def __getitem__(self, index: Any) -> Any:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """A pipe of lists of ``batch_size`` samples (``pipe.batch(8)``)."""

    def __init__(
        self, datapipe: MapDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: Callable = DataChunk
    ):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        batch: list = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class ShufflerIterDataPipe(Shuffling):
    """A pipe that gives the samples one after the other in random order (``pipe.shuffle()``).

    Args:
        datapipe: where samples come from.
        indices: of the samples. Default: ``range(len(datapipe))``.
    """

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled_indices = self.indices

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
        while self._enabled and self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        """Draw an order."""
        if self._enabled:
            self._draw()
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

Batcher, Concater, Mapper = BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe
SequenceWrapper, Shuffler, Zipper = SequenceWrapperMapDataPipe, ShufflerIterDataPipe, ZipperMapDataPipe
