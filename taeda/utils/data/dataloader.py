"""DataLoader: goes through a dataset in batches."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..._core.nearest import ChecksKeywords
from ..._core.random import Generator
from ._utils.collate import default_collate, default_convert
from ._utils.iterating import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter, is_pipe
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

T_co = TypeVar("T_co", covariant=True)

#: Types of a loader's arguments; packages import them for annotations.
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list], Any]


class _InfiniteConstantSampler(Sampler):
    """The sampler of an iterable dataset, which has an order of its own."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def get_worker_info() -> Any:
    """Information on a worker process, for its own code; None in the process that iterates.

    Returns:
        An object with ``id``, ``num_workers``, ``seed`` and ``dataset``, or None.

    Examples:
        >>> class Count(taeda.utils.data.IterableDataset):
        ...     def __iter__(self):  # every worker its share
        ...         info = taeda.utils.data.get_worker_info()
        ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(first, 6, step))
        >>> list(Count())
        [0, 1, 2, 3, 4, 5]
    """
    worker = sys.modules.get(f"{__package__}._utils.worker")  # it is imported where there are workers
    return None if worker is None else worker.get_worker_info()


# ---- the loader ------------------------------------------------------------------------------------------------------


class DataLoader(ChecksKeywords, Generic[T_co]):
    """Goes through a dataset in batches, in order or at random.

    Equal seeds give PyTorch's batches. Rows of a :class:`TensorDataset` are gathered, a whole batch at once.

    Args:
        dataset: where samples come from.
        batch_size: samples in a batch; None gives samples as the dataset does.
        shuffle: in random order, a new one in each pass.
        sampler: a custom order: an iterable of indices, instead of ``shuffle``.
        batch_sampler: an iterable of lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and
            ``drop_last``.
        num_workers: processes that load ahead. Batches come from them in shared memory. 0: load in the calling process.
        collate_fn: makes a batch of a list of samples. Default: :func:`default_collate`.
        pin_memory: whether tensors are moved to memory from which the accelerator copies without waiting.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch of a worker; 0 waits without limit.
        worker_init_fn: called in each worker with its number, after its generators (also NumPy's and Python's) are
            seeded.
        multiprocessing_context: a start method, or a context of ``multiprocessing``. Default: that of the system.
        generator: of the shuffle and of the workers' seeds. Default: one seeded from the global generator at the start
            of each pass.
        prefetch_factor: batches that each worker loads ahead. Default: 2.
        persistent_workers: keep the processes for the next pass.
        pin_memory_device: accepted.
        in_order: give the batches in the order of the sampler, rather than as they arrive.

    Raises:
        ValueError: arguments that exclude each other.
        RuntimeError: in iteration, a worker process ended, or the timeout is over. What a worker raises is raised with
            its traceback.

    Examples:
        >>> x, y = taeda.arange(5.0).reshape(5, 1), taeda.arange(5)
        >>> data = taeda.utils.data.TensorDataset(x, y)
        >>> for inputs, targets in taeda.utils.data.DataLoader(data, batch_size=2):
        ...     print(inputs.shape, targets)
        taeda.Size([2, 1]) tensor([0, 1])
        taeda.Size([2, 1]) tensor([2, 3])
        taeda.Size([1, 1]) tensor([4])
        >>> len(taeda.utils.data.DataLoader(data, batch_size=2, shuffle=True, drop_last=True))
        2
    """

    def __init__(
        self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None, batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0, collate_fn: Callable[[list], Any] | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None, generator: Generator | None = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ):  # fmt: skip
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
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if is_pipe(dataset):
            from . import datapipes, graph_settings

            if isinstance(dataset, IterableDataset):
                dataset = graph_settings.apply_shuffle_settings(dataset, shuffle)
                shuffle = None
            self.dataset = datapipes.datapipe.wrapped(dataset)
        if isinstance(dataset, IterableDataset):
            _check_iterable(shuffle, sampler, batch_sampler)
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
                sampler = _InfiniteConstantSampler()
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
        self._IterableDataset_len_called: int | None = None
        self._iterator: Any = None
        self._check_number()
        self._initialized = True

    @property
    def multiprocessing_context(self) -> Any:
        """The way to start worker processes; None: the system's way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            context = _checked_context(context)
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and getattr(self, "_initialized", False):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        from ._utils.processes import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Iterator[Any]:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            n = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is not None:
                n = n // self.batch_size if self.drop_last else -(-n // self.batch_size)
            self._IterableDataset_len_called = n
            return n
        return len(self._index_sampler)

    def _check_number(self) -> None:
        """Warn if there are more workers than processors for this process."""
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers and (cpus is None or self.num_workers > cpus):
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {cpus}, which is smaller than what this DataLoader is going to "
                "create. More processes than processors make loading slower.",
                stacklevel=3,
            )


#: Attributes that may not be set once a loader is made.
_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


def _checked_context(context: Any) -> Any:
    import multiprocessing.context

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context


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


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}; such a "
            "dataset has an order of its own: shuffle in its __iter__()"
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


def __getattr__(name: str) -> Any:
    """The iterator over worker processes, which is imported where there are any."""
    if name == "_MultiProcessingDataLoaderIter":
        from ._utils.processes import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
