"""Pipes that join pipes, or are several pipes of one."""

from __future__ import annotations

import copy as copies
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from .._hook_iterator import described
from ..datapipe import IterDataPipe, length_of
from ..utils.common import StreamWrapper, _check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe", "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]  # fmt: skip


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """A pipe of several, one after the other (``pipe.concat(other)``)."""

    def __init__(self, *datapipes: IterDataPipe):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, *self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """A pipe of tuples with a sample of each; it ends with the shortest (``pipe.zip(other)``)."""

    def __init__(self, *datapipes: IterDataPipe):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """A pipe that takes a sample of each in turn; it ends with the shortest (``pipe.mux(other)``)."""

    def __init__(self, *datapipes: IterDataPipe):
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes)) * len(self.datapipes)


class _Shared(IterDataPipe):
    """A pipe that several read from.

    Args:
        datapipe: where samples come from.
        num_instances: how many read.
        buffer_size: samples that may wait for a reader; negative: without limit.
    """

    #: The attributes of a pass, which are not pickled.
    _PASS: tuple[str, ...] = ("_iterator", "_stopped", "_ended")

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int):
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        if buffer_size < 0:
            name = "fork" if isinstance(self, _ForkerIterDataPipe) else "demux"
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
                UserWarning,
                stacklevel=4,
            )
        self.reset()

    def reset(self) -> None:
        """Begin another pass."""
        self._iterator: Iterator | None = None
        self._stopped = [True] * self.num_instances
        self._ended = False

    def __getstate__(self) -> Any:
        state = {key: value for key, value in vars(self).items() if key not in self._PASS}
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        vars(self).update(state)
        self.reset()

    def is_every_instance_exhausted(self) -> bool:
        """Whether all have read everything."""
        return self._ended and all(self._stopped)

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The samples of one reader."""
        if self._iterator is None and self._stopped[instance_id]:
            self._iterator = iter(self.main_datapipe)
            self._stopped = [False] * self.num_instances
        try:
            yield from self._elements(instance_id)
        finally:
            self._stopped[instance_id] = True
            if all(self._stopped):
                self._iterator = None
            self._drop(instance_id)

    def _next(self) -> Any:
        """The next sample of the source; StopIteration at its end."""
        assert self._iterator is not None
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = None
            self._ended = True
            raise

    def _elements(self, reader: int) -> Iterator[Any]:
        raise NotImplementedError

    def _drop(self, reader: int) -> None:
        """Forget what waits for a reader that has stopped."""
        raise NotImplementedError

    def get_length_by_instance(self, instance_id: int) -> int:
        """The number of samples of one reader."""
        raise TypeError


def _close(waiting: deque) -> None:
    while waiting:
        StreamWrapper.close_streams(waiting.popleft())


class _ForkerIterDataPipe(_Shared):
    _PASS = (*_Shared._PASS, "buffer", "_read", "_dropped")

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int, copy: str | None):
        kinds = {None: _same, "shallow": copies.copy, "deep": copies.deepcopy}
        if copy not in kinds:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn: Callable = kinds[copy]
        super().__init__(datapipe, num_instances, buffer_size)

    def reset(self) -> None:
        super().reset()
        self.buffer: deque = deque()
        self._read = [0] * self.num_instances  # samples that each has read
        self._dropped = 0  # those that all have read

    def _elements(self, reader: int) -> Iterator[Any]:
        while not self._stopped[reader]:
            at = self._read[reader] - self._dropped
            if at == len(self.buffer):
                if self._ended:
                    return
                try:
                    self.buffer.append(self._next())
                except StopIteration:
                    return
            value = self.buffer[at]
            self._read[reader] += 1
            if min(self._read) > self._dropped:
                self.buffer.popleft()
                self._dropped += 1
            if 0 <= self.buffer_size < len(self.buffer):
                raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient.")
            yield self.copy_fn(value)

    def _drop(self, reader: int) -> None:
        if all(self._stopped):
            _close(self.buffer)

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def get_length_by_instance(self, instance_id: int) -> int:
        return len(self)


def _same(value: Any) -> Any:
    return value


class _DemultiplexerIterDataPipe(_Shared):
    _PASS = (*_Shared._PASS, "child_buffers")

    def __init__(
        self, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool, buffer_size: int
    ):
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        super().__init__(datapipe, num_instances, buffer_size)

    def reset(self) -> None:
        super().reset()
        self.child_buffers: list[deque] = [deque() for _ in range(self.num_instances)]

    def _elements(self, reader: int) -> Iterator[Any]:
        mine = self.child_buffers[reader]
        while not self._stopped[reader]:
            if mine:
                yield mine.popleft()
                continue
            if self._ended:
                return
            try:
                value = self._next()
            except StopIteration:
                return
            kind = self.classifier_fn(value)
            if kind is None and self.drop_none:
                StreamWrapper.close_streams(value)
                continue
            if kind is None or not 0 <= kind < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {kind} is "
                    "returned."
                )
            self.child_buffers[kind].append(value)
            if kind != reader and 0 <= self.buffer_size < sum(map(len, self.child_buffers)):
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )

    def _drop(self, reader: int) -> None:
        _close(self.child_buffers[reader])


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that read from a shared one."""

    def __init__(self, main_datapipe: _Shared, instance_id: int):
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _begin_iterator(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:  # the others read in a pass that is over
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=3,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_iterator(self, number: int) -> None:
        if not number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id:
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the "
                f"ChildDataPipes of {described(self.main_datapipe)}."
            )


def _children(main: _Shared) -> list[_ChildDataPipe]:
    return [_ChildDataPipe(main, i) for i in range(main.num_instances)]


def _check_instances(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes of the same samples; the source is read once (``a, b = pipe.fork(2)``)."""

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        """Make the pipes.

        Args:
            datapipe: where samples come from.
            num_instances: how many pipes.
            buffer_size: samples that may wait for the slowest; -1: without limit.
            copy: how each pipe gets its own: ``"shallow"``, ``"deep"``. Default: all get the same object.
        Returns:
            A list of them; for one pipe the source itself.
        """
        _check_instances(num_instances)
        if num_instances == 1:
            return datapipe
        return _children(_ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy))


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes, each with some of the samples (``odd, even = pipe.demux(2, classifier_fn)``)."""

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:  # fmt: skip
        """Make the pipes.

        Args:
            datapipe: where samples come from.
            num_instances: how many pipes.
            classifier_fn: gives the number of a sample's pipe, or None.
            drop_none: leave out samples of None; otherwise they are an error.
            buffer_size: samples that may wait; -1: without limit.
        Returns:
            A list of them.
        """
        _check_instances(num_instances)
        _check_unpickable_fn(classifier_fn)
        return _children(_DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size))
