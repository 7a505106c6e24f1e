"""DataLoader: goes through a dataset in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ... import index_select, tensor
from ..._core.random import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

T_co = TypeVar("T_co", covariant=True)


class _Forever(Sampler):
    """Of an iterable dataset: it knows its own order."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def get_worker_info() -> None:
    """What a worker process knows about itself; None in the main process."""
    return None


# ---- fetching --------------------------------------------------------------------------------------------------------


def _fetch_samples(dataset: Dataset, collate: Callable, indices: Any) -> Any:
    """The batch of some indices, sample by sample."""
    many = getattr(dataset, "__getitems__", None)
    return collate(many(indices) if many else [dataset[i] for i in indices])


def _fetch_rows(dataset: TensorDataset, collate: Callable, indices: list[int]) -> list:
    """What collating the rows one by one would give, by one gather per tensor."""
    where = tensor(indices)
    n = len(dataset)
    if int(where.min()) < 0:  # negative indices count from the end; what is out of range is for index_select to report
        where = tensor([i + n if i < 0 else i for i in indices])
    return [index_select(t, 0, where) for t in dataset.tensors]


def _fetch_subset(dataset: Subset, collate: Callable, indices: list[int]) -> list:
    return _fetch_rows(dataset.dataset, collate, [dataset.indices[i] for i in indices])  # type: ignore[arg-type]


def _plain(dataset: Any) -> bool:
    """Whether samples are exactly the rows of tensors."""
    return type(dataset) is TensorDataset and len(dataset.tensors) > 0


def batch_fetcher(dataset: Dataset, collate: Callable) -> Callable:
    """How to get the batch of a list of indices."""
    if collate is default_collate:
        if _plain(dataset):
            return _fetch_rows
        if type(dataset) is Subset and _plain(dataset.dataset):
            return _fetch_subset
    return _fetch_samples


# ---- iterating -------------------------------------------------------------------------------------------------------


class _Iterator:
    """One pass over the batches of a loader, in the process that asks for them."""

    def __init__(self, loader: DataLoader):
        self._loader = loader
        # PyTorch draws the seed of the worker processes here, whether there are any or not.
        self._base_seed = draw_seed(loader.generator)
        self._batches = self._generate()
        self._given = 0

    def _generate(self) -> Iterator[Any]:
        loader = self._loader
        if isinstance(loader.dataset, IterableDataset):
            return self._from_stream()
        if loader.batch_sampler is None:
            return self._one_by_one()
        return self._in_batches()

    def _in_batches(self) -> Iterator[Any]:
        dataset, collate = self._loader.dataset, self._loader.collate_fn
        fetch = batch_fetcher(dataset, collate)
        for indices in self._loader.batch_sampler:  # type: ignore[union-attr]
            yield fetch(dataset, collate, indices)

    def _one_by_one(self) -> Iterator[Any]:
        dataset, collate = self._loader.dataset, self._loader.collate_fn
        for index in self._loader.sampler:
            yield collate(dataset[index])

    def _from_stream(self) -> Iterator[Any]:
        loader = self._loader
        stream = iter(loader.dataset)
        if loader.batch_sampler is None:
            for sample in stream:
                yield loader.collate_fn(sample)
            return
        batch: list = []
        for sample in stream:
            batch.append(sample)
            if len(batch) == loader.batch_size:
                yield loader.collate_fn(batch)
                batch = []
        if batch and not loader.drop_last:
            yield loader.collate_fn(batch)

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._given += 1
        if self._loader._promised is not None and self._given == self._loader._promised + 1:
            warnings.warn(
                f"Length of IterableDataset {type(self._loader.dataset).__name__} was reported to be "
                f"{self._loader._promised} (when accessing len(dataloader)), but {self._given} were fetched.",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(self._loader)


class DataLoader(Generic[T_co]):
    """Goes through a dataset in batches, in order or at random.

    Equal seeds give PyTorch's batches. Rows of a :class:`TensorDataset` are gathered, a whole batch at once.

    Args:
        dataset: where samples come from.
        batch_size: samples per batch; None gives samples as the dataset does.
        shuffle: in random order, anew in each pass.
        sampler: an order of one's own: an iterable of indices, instead of ``shuffle``.
        batch_sampler: an iterable of lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: processes that load ahead. Accepted; loading happens in the calling process, with a warning.
        collate_fn: makes a batch of a list of samples. Default: :func:`default_collate`.
        pin_memory: accepted; memory of the CPU needs none.
        drop_last: leave out a last batch that is not full.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, in_order: about worker
            processes; checked as PyTorch does.
        pin_memory_device: accepted.
        generator: of the shuffle. Default: one seeded from the global generator at the start of each pass.
    Raises:
        ValueError: arguments that exclude each other.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.generator = generator
        if isinstance(dataset, IterableDataset):
            _check_iterable(shuffle, sampler, batch_sampler)
        elif shuffle not in (True, False, None):
            raise ValueError(f"DataLoader: expected a bool for shuffle, got {shuffle!r}")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if isinstance(dataset, IterableDataset):
                sampler = _Forever()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._promised: int | None = None

    def __iter__(self) -> Iterator[Any]:
        return _Iterator(self)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            n = self._promised = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is not None:
                n = n // self.batch_size if self.drop_last else -(-n // self.batch_size)
                self._promised = n
            return n
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if num_workers > 0:
        warnings.warn(
            f"DataLoader: this version has no worker processes; the calling process loads (num_workers={num_workers}). "
            "The batches are the same.",
            stacklevel=3,
        )


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    if sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
            f"batch_sampler={batch_sampler}"
        )
