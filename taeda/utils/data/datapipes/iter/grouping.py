"""Pipes that put samples into lists, or take lists apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe, length_of
from ..utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """A pipe of lists of ``batch_size`` samples (``pipe.batch(8)``).

    Args:
        datapipe: where samples come from.
        batch_size: samples in a list.
        drop_last: leave out a last list that is not full.
        wrapper_class: makes the list.
    """

    def __init__(
        self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: Callable = DataChunk
    ):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        n = length_of(self, self.datapipe)[0]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """A pipe of the items of lists (``pipe.unbatch()``).

    Args:
        datapipe: where lists come from.
        unbatch_level: levels of lists that are taken apart; -1: all.
    """

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1):
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if unbatch_level and isinstance(element, list):
            for item in element:
                yield from self._dive(item, max(unbatch_level - 1, -1))
        elif unbatch_level > 0:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            yield element


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """A pipe of lists of samples with the same key (``pipe.groupby(group_key_fn)``).

    A group is given when it is full, when the buffer is full and no group is larger, or at the end.

    Args:
        datapipe: where samples come from.
        group_key_fn: gives the key.
        keep_key: give pairs of the key and the list.
        buffer_size: samples that are kept at most.
        group_size: samples in a group at most.
        guaranteed_group_size: samples in a group at least, if the buffer is full. Default: ``group_size``.
        drop_remaining: leave out smaller groups then; otherwise they are an error.
    """

    def __init__(
        self, datapipe: IterDataPipe, group_key_fn: Callable, *, keep_key: bool = False, buffer_size: int = 10000,
        group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ):  # fmt: skip
        _check_unpickable_fn(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk
        self.reset()

    def reset(self) -> None:
        """Forget the samples of the pass before."""
        self.curr_buffer_size = 0
        self.buffer_elements: defaultdict[Any, list] = defaultdict(list)

    def _give(self, key: Any) -> Any:
        """The group of ``key``, out of the buffer."""
        group = self.wrapper_class(self.buffer_elements.pop(key))
        self.curr_buffer_size -= len(group)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        for x in self.datapipe:
            key = self.group_key_fn(x)
            self.buffer_elements[key].append(x)
            self.curr_buffer_size += 1
            if len(self.buffer_elements[key]) == self.group_size:
                yield self._give(key)
            if self.curr_buffer_size == self.max_buffer_size:
                largest = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
                group = self.buffer_elements[largest]
                enough = len(group) >= (self.guaranteed_group_size or 0)
                if not enough and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
                given = self._give(largest)
                if enough:
                    yield given
        for key in list(self.buffer_elements):
            yield self._give(key)
