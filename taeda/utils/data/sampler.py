"""Samplers: the order of a dataset's samples, and their grouping into batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ... import _core
from ..._core.random import Generator, default_generator
from ...ops.exchange import tensor
from ...ops.random import multinomial, randint, randperm

T_co = TypeVar("T_co", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """A seed from the global generator (or ``generator``): 63 bits, as PyTorch draws it."""
    return (generator or default_generator).random64() & (2**63 - 1)


def _length(dataset: Any) -> int:
    """The number of samples."""
    if not hasattr(type(dataset), "__len__"):
        raise TypeError(
            f"object of type '{type(dataset).__name__}' has no len(): give its class __len__(self), or make it an "
            "IterableDataset"
        )
    return len(dataset)


def _check_count(num_samples: Any) -> None:
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
        raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")


def _check_replacement(value: Any, error: type[Exception] = TypeError) -> None:
    if not isinstance(value, bool):
        raise error(f"replacement should be a boolean value, but got replacement={value}")


class Sampler(Generic[T_co]):
    """Base class of samplers: a subclass defines ``__iter__``, which gives indices, or lists of them, a batch each.

    Examples:
        >>> class Backwards(taeda.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.n = len(data)
        ...
        ...     def __iter__(self):
        ...         return iter(range(self.n - 1, -1, -1))
        ...
        ...     def __len__(self):
        ...         return self.n
        >>> list(taeda.utils.data.DataLoader("abc", sampler=Backwards("abc"), batch_size=2))
        [['c', 'b'], ['a']]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} is a Sampler: define __iter__ in it")


class SequentialSampler(Sampler[int]):
    """The indices in order.

    Args:
        data_source: the dataset.

    Examples:
        >>> list(taeda.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(_length(self.data_source)))

    def __len__(self) -> int:
        return _length(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices in random order, a new one in each pass.

    Args:
        data_source: the dataset.
        replacement: whether an index may be drawn again.
        num_samples: how many to draw; as many as there are samples if None.
        generator: what draws; one that is seeded from the global generator at the start of each pass if None.

    Raises:
        ValueError: ``num_samples`` is not positive.
        TypeError: ``replacement`` is no bool.

    Examples:
        >>> sorted(taeda.utils.data.RandomSampler(range(5)))
        [0, 1, 2, 3, 4]
        >>> len(list(taeda.utils.data.RandomSampler(range(5), replacement=True, num_samples=100)))
        100
    """

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ):  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_replacement(replacement)
        _check_count(self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of indices that a pass gives."""
        return _length(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = _length(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(draw_seed())
        if self.replacement:
            for start in range(0, count, 32):
                yield from randint(n, (min(32, count - start),), generator=generator).tolist()
            return
        for _ in range(count // n):
            yield from randperm(n, generator=generator).tolist()
        yield from randperm(n, generator=generator).tolist()[: count % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Args:
        indices: the indices.
        generator: what draws; the global one if None.

    Examples:
        >>> sorted(taeda.utils.data.SubsetRandomSampler([3, 5, 8]))
        [3, 5, 8]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, as for classes that are rare.

    Args:
        weights: probabilities up to a factor, one for each sample, ``(N,)``.
        num_samples: how many to draw.
        replacement: whether an index may be drawn again.
        generator: what draws; the global one if None.

    Raises:
        ValueError: ``num_samples`` is not positive, or ``replacement`` is no bool.

    Examples:
        >>> drawn = list(taeda.utils.data.WeightedRandomSampler([0.0, 3.0, 1.0], 1000))
        >>> 0 in drawn, drawn.count(1) > drawn.count(2)
        (False, True)
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ):
        _check_count(num_samples)
        _check_replacement(replacement, ValueError)
        given = weights if isinstance(weights, _core.Tensor) else tensor(list(weights), dtype=_core.float64)
        self.weights = given.to(_core.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler.

    Args:
        sampler: any iterable of indices.
        batch_size: indices in a batch.
        drop_last: leave out a last batch that is not full.

    Raises:
        ValueError: ``batch_size`` is not positive, or ``drop_last`` is no bool.

    Examples:
        >>> list(taeda.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size
