"""Datasets: samples by index or as a stream, and datasets made of other datasets."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ..._core import Tensor
from ..._core.random import Generator
from ...ops.random import randperm

T_co = TypeVar("T_co", covariant=True)
T_stack = TypeVar("T_stack", tuple[Any, ...], dict[str, Any])
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Base class of datasets: samples by index.

    A subclass defines ``__getitem__``, and ``__len__`` where samplers are to know the size. It may define
    ``__getitems__``, too, which takes a list of indices and gives a list of samples. A sample is anything;
    :class:`DataLoader` makes batches.

    Raises:
        NotImplementedError: a sample is asked for, and there is no ``__getitem__``.

    Examples:
        >>> class Squares(taeda.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 5
        ...
        ...     def __getitem__(self, i):
        ...         return taeda.tensor(i), taeda.tensor(i * i)
        >>> loader = taeda.utils.data.DataLoader(Squares(), batch_size=2)
        >>> for x, y in loader:
        ...     print(x, y)
        tensor([0, 1]) tensor([0, 1])
        tensor([2, 3]) tensor([4, 9])
        tensor([4]) tensor([16])
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} is a Dataset: define __getitem__ in it")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that come as a stream: samples one after the other. A subclass defines ``__iter__``.

    For data without random access. With several workers each has the whole stream: let ``__iter__`` take its share, by
    :func:`get_worker_info`.

    Examples:
        >>> class Lines(taeda.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         yield from ["one", "two", "three"]
        >>> list(taeda.utils.data.DataLoader(Lines(), batch_size=2))
        [['one', 'two'], ['three']]
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Rows of tensors: sample ``i`` is the tuple of their rows ``i``.

    Args:
        *tensors: of equal first size: ``(N, *)``, any dtype.

    Raises:
        AssertionError: the first sizes differ.

    Examples:
        >>> data = taeda.utils.data.TensorDataset(taeda.arange(6).reshape(3, 2), taeda.tensor([0, 1, 1]))
        >>> data[2]
        (tensor([4, 5]), tensor(1))
    """

    def __init__(self, *tensors: Tensor):
        if any(tensors[0].shape[0] != t.shape[0] for t in tensors):
            raise AssertionError(
                f"Size mismatch between tensors: expected equal first sizes, got {[tuple(t.shape) for t in tensors]}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[T_stack]):
    """Several datasets side by side: a sample is a tuple of theirs, or a dict if they are given by name.

    Args:
        *args: datasets of equal length, or
        **kwargs: datasets by name.

    Raises:
        ValueError: the lengths differ, both are given, or none.

    Examples:
        >>> images, texts = taeda.utils.data.TensorDataset(taeda.zeros(2, 3)), ["a", "b"]
        >>> taeda.utils.data.StackDataset(image=images, text=texts)[1]
        {'image': (tensor([0., 0., 0.]),), 'text': 'b'}
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]):
        if args and kwargs:
            raise ValueError("StackDataset: give the datasets as a tuple or by name, not both")
        if not args and not kwargs:
            raise ValueError("StackDataset: expected at least one dataset")
        self.datasets: Any = args or kwargs
        sizes = [len(d) for d in (args or kwargs.values())]  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> T_stack:
        sample: Any = (
            {name: d[index] for name, d in self.datasets.items()}
            if isinstance(self.datasets, dict)
            else tuple(d[index] for d in self.datasets)
        )
        return sample

    def __getitems__(self, indices: list) -> list:
        def rows(d: Any) -> list:
            return d.__getitems__(indices) if callable(getattr(d, "__getitems__", None)) else [d[i] for i in indices]

        if isinstance(self.datasets, dict):
            columns = {name: rows(d) for name, d in self.datasets.items()}
            return [{name: column[i] for name, column in columns.items()} for i in range(len(indices))]
        return list(zip(*(rows(d) for d in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Several datasets one after the other. ``a + b`` makes one, too.

    Args:
        datasets: datasets with a length.

    Raises:
        AssertionError: there are none, or one is an :class:`IterableDataset`.

    Examples:
        >>> both = taeda.utils.data.ConcatDataset(["ab", "cde"])
        >>> len(both), both[3]
        (5, 'd')
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError(
                    f"absolute value of index should not exceed dataset length: got {index} of {len(self)}"
                )
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """PyTorch's old spelling of ``cumulative_sizes``."""
        warnings.warn("cummulative_sizes attribute is renamed to cumulative_sizes", DeprecationWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Several iterable datasets one after the other.

    Args:
        datasets: iterable datasets.

    Raises:
        AssertionError: in iteration, one is no :class:`IterableDataset`.

    Examples:
        >>> class Count(taeda.utils.data.IterableDataset):
        ...     def __init__(self, n):
        ...         self.n = n
        ...
        ...     def __iter__(self):
        ...         return iter(range(self.n))
        >>> list(taeda.utils.data.ChainDataset([Count(2), Count(3)]))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset, got {type(d).__name__}")
            yield from d

    def __len__(self) -> int:
        return sum([len(d) for d in self.datasets])  # type: ignore[arg-type,misc]


class Subset(Dataset[T_co]):
    """The samples of a dataset at given indices.

    Args:
        dataset: where they come from.
        indices: their numbers there.

    Raises:
        IndexError: as the dataset raises it, where an index is not in it.

    Examples:
        >>> subset = taeda.utils.data.Subset("abcdef", [0, 2, 4])
        >>> len(subset), subset[1]
        (3, 'c')
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        inner = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(inner)  # type: ignore[attr-defined]
        return [self.dataset[i] for i in inner]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Split a dataset at random into parts that do not overlap, as for training and validation.

    Args:
        dataset: what to split.
        lengths: the sizes of the parts, or fractions that add up to 1 (what rounding leaves over is given out one by
            one, from the first part on).
        generator: of the permutation; the global one if None.

    Returns:
        A list of :class:`Subset`.

    Raises:
        ValueError: the lengths do not add up to that of the dataset, or a fraction is not in ``[0, 1]``.

    Examples:
        >>> train, validation = taeda.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), len(validation), sorted([*train, *validation])
        (8, 2, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    n = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1: {fraction}")
        sizes = [math.floor(n * fraction) for fraction in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
        lengths = sizes
    if sum(lengths) != n:
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset: {list(lengths)} add up to "
            f"{sum(lengths)}, the dataset has {n} samples"
        )
    order = randperm(n, generator=generator).tolist()
    ends = itertools.accumulate(int(size) for size in lengths)
    return [Subset(dataset, order[end - int(size) : end]) for end, size in zip(ends, lengths, strict=True)]
