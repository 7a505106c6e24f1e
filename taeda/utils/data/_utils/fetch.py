"""Getting the samples of a batch: by index, from a stream, or rows of tensors all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....ops.exchange import tensor
from ....ops.scatter import index_select
from ..dataset import Dataset, Subset, TensorDataset
from .collate import default_collate


def _fetch_rows(dataset: TensorDataset, indices: list[int]) -> list:
    """The result of collating the rows one by one, by one gather per tensor."""
    where = tensor(indices, device="cpu")
    n = len(dataset)
    if int(where.min()) < 0:  # negative indices count from the end; index_select reports those out of range
        where = tensor([i + n if i < 0 else i for i in indices], device="cpu")
    return [index_select(t, 0, where.to(t.device)) for t in dataset.tensors]


def _rows(dataset: Any) -> bool:
    """Whether samples are exactly the rows of tensors."""
    return type(dataset) is TensorDataset and len(dataset.tensors) > 0


def map_fetcher(dataset: Any, auto_collation: bool, collate: Callable) -> Callable[[Any], Any]:
    """A function from a list of indices (or from an index, without ``auto_collation``) to a batch."""
    if not auto_collation:
        return lambda index: collate(dataset[index])
    if collate is default_collate and _rows(dataset):
        return lambda indices: _fetch_rows(dataset, indices)
    if collate is default_collate and type(dataset) is Subset and _rows(dataset.dataset):
        inner = dataset.dataset
        return lambda indices: _fetch_rows(inner, [dataset.indices[i] for i in indices])  # type: ignore[arg-type]
    many = getattr(dataset, "__getitems__", None)
    if many:
        return lambda indices: collate(many(indices))
    return lambda indices: collate([dataset[i] for i in indices])


class StreamFetcher:
    """Batches of an iterable dataset; StopIteration at its end."""

    def __init__(self, dataset: Iterable, auto_collation: bool, collate: Callable, drop_last: bool):
        self.stream = iter(dataset)
        self.auto_collation = auto_collation
        self.collate = collate
        self.drop_last = drop_last
        self.ended = False

    def __call__(self, indices: Any) -> Any:
        """The next batch, as long as ``indices``."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate(next(self.stream))
        batch = []
        for _ in indices:
            try:
                batch.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate(batch)


def create_fetcher(
    dataset: Dataset, iterable: bool, auto_collation: bool, collate: Callable, drop_last: bool
) -> Callable[[Any], Any]:
    """The function that gets the batch for the sampler's indices."""
    if iterable:
        return StreamFetcher(dataset, auto_collation, collate, drop_last)  # type: ignore[arg-type]
    return map_fetcher(dataset, auto_collation, collate)
