"""One pass over the batches of a DataLoader."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from ...._core.devices import accelerator
from ...._core.random import Generator
from ....ops.exchange import tensor
from ..sampler import draw_seed
from .fetch import create_fetcher

#: Opens a range of the given name around each fetch while a profile is recorded (``taeda/profiler``), else None.
record_fetch: Callable[[str], Any] | None = None


def pinned(batch: Any) -> Any:
    """``batch`` with its tensors in pinned memory; objects with a method ``pin_memory`` do it themselves."""
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pinned, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(map(pinned, batch))
    if isinstance(batch, dict):
        return type(batch)({key: pinned(value) for key, value in batch.items()})
    return batch


def is_pipe(dataset: Any, kind: str = "_Pipe") -> bool:
    """Whether ``dataset`` is a data pipe (of the class ``kind``). Their module is loaded if there is one."""
    module = sys.modules.get(f"{__package__.removesuffix('._utils')}.datapipes.datapipe")
    return module is not None and isinstance(dataset, getattr(module, kind))


def seed_pipes(dataset: Any, seed: int) -> None:
    """Seed the pipes of a chain for a pass, equally in all processes."""
    from ..graph_settings import apply_random_seed

    apply_random_seed(dataset, Generator().manual_seed(seed))


def _ranks() -> tuple[int, int]:
    """The number of processes that train, and which this is."""
    dist = sys.modules.get("taeda.distributed")
    return (dist.get_world_size(), dist.get_rank()) if dist is not None and dist.is_initialized() else (1, 0)


def share_pipes(dataset: Any, ranks: tuple[int, int], worker: int, workers: int) -> None:
    """Let the pipes of a chain take the share of a worker, or of the only process of a rank."""
    from ..graph_settings import apply_sharding

    world, rank = ranks
    apply_sharding(dataset, workers * world, worker * world + rank)


class _DatasetKind:
    """Ways to fetch samples: by index, or one after the other."""

    Map = 0
    Iterable = 1


class _BaseDataLoaderIter:
    """One pass over the batches of a loader."""

    def __init__(self, loader: Any):
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device={loader.pin_memory_device!r}.",
                stacklevel=4,
            )
        self._pins = loader.pin_memory and accelerator() is not None
        if loader.pin_memory and not self._pins:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=4,
            )
        # No reference to the loader: one that keeps its workers keeps this iterator, and would end only in a
        # collection.
        self._dataset = loader.dataset
        self._iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._ranks = _ranks() if is_pipe(self._dataset) else (1, 0)
        self._begin(loader)
        # PyTorch draws the seed of the worker processes here, whether there are any or not.
        self._base_seed = draw_seed(loader.generator)

    def _begin(self, loader: Any) -> None:
        self._draw_shared_seed(loader)
        self._index_sampler = loader._index_sampler
        self._sampler_iter = iter(self._index_sampler)
        self._promised = loader._IterableDataset_len_called
        self._given = 0

    def _draw_shared_seed(self, loader: Any) -> None:
        """Seed data pipes, equally in all processes that train."""
        self._shared_seed: int | None = None
        if not is_pipe(self._dataset, "IterDataPipe"):
            return
        self._shared_seed = draw_seed(loader.generator)
        if self._ranks[0] > 1:
            shared = tensor(self._shared_seed)
            sys.modules["taeda.distributed"].broadcast(shared, src=0)
            self._shared_seed = int(shared)
        seed_pipes(self._dataset, self._shared_seed)

    def _reset(self, loader: Any) -> None:
        """Begin another pass."""
        self._begin(loader)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        if record_fetch is None:
            batch = self._next_data()
        else:
            with record_fetch(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
                batch = self._next_data()
        if self._pins:
            batch = pinned(batch)
        self._given += 1
        if self._iterable:
            promised = self._promised
            if promised is not None and self._given > promised:
                warnings.warn(
                    f"Length of IterableDataset {type(self._dataset).__name__} was reported to be {promised} "
                    f"(when accessing len(dataloader)), but {self._given} were fetched. With worker processes, each "
                    "has the whole dataset unless it takes its share by get_worker_info().",
                    stacklevel=2,
                )
        return batch

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One pass in the process that asks for the batches."""

    def __init__(self, loader: Any):
        super().__init__(loader)
        if loader.timeout:
            raise AssertionError(f"DataLoader: a timeout needs num_workers > 0, got timeout={loader.timeout}")
        if is_pipe(self._dataset):
            share_pipes(self._dataset, self._ranks, 0, 1)
        self._fetch = create_fetcher(
            loader.dataset, self._iterable, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_data(self) -> Any:
        return self._fetch(next(self._sampler_iter))
