"""Pipes that change the order of samples."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ...sampler import SequentialSampler, draw_seed
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, length_of

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """A pipe of what a sampler gives for a pipe.

    Args:
        datapipe: the sampler's data.
        sampler: its class.
        sampler_args: its other arguments.
        sampler_kwargs: its arguments by name.
    """

    def __init__(
        self, datapipe: IterDataPipe, sampler: Any = SequentialSampler, sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ):  # fmt: skip
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)[0]


class Shuffling(IterDataPipe):
    """Base of pipes in random order: a generator, which a loader seeds, and a switch."""

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Shuffling:
        """Turn the shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffling:
        """The seed of the next pass. Default: one of the global generator's."""
        self._seed = seed
        return self

    def _draw(self) -> None:
        """Seed the generator for a pass."""
        self._rng.seed(draw_seed() if self._seed is None else self._seed)
        self._seed = None


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling):
    """A pipe in random order: each sample is drawn from a buffer (``pipe.shuffle()``).

    Args:
        datapipe: where samples come from.
        buffer_size: samples among which one is drawn.
        unbatch_level: levels of lists that are taken apart before.
    """

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0):
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        self.buffer_size = buffer_size
        self._buffer: list = []

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        for x in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(x)
                continue
            i = self._rng.randint(0, self.buffer_size - 1)
            drawn, self._buffer[i] = self._buffer[i], x
            yield drawn
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]

    def reset(self) -> None:
        """Empty the buffer, and seed the generator."""
        self._buffer = []
        if self._enabled:
            self._draw()
