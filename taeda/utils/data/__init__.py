"""Loading data: datasets, samplers and the DataLoader."""

from typing import Any

from ._utils.collate import default_collate, default_convert
from .dataloader import DataLoader, _DatasetKind, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataChunk", "DataLoader", "Dataset", "DistributedSampler",
    "IterDataPipe", "IterableDataset", "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset",
    "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
    "functional_datapipe", "get_worker_info", "guaranteed_datapipes_determinism", "non_deterministic", "random_split",
]  # fmt: skip

#: Names of data pipes, which are imported when they are asked for, and their modules.
_PIPES = {
    "DataChunk": "datapipes.datapipe", "IterDataPipe": "datapipes.datapipe", "MapDataPipe": "datapipes.datapipe",
    "functional_datapipe": "datapipes._decorator", "guaranteed_datapipes_determinism": "datapipes._decorator",
    "non_deterministic": "datapipes._decorator",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    if name in _PIPES:
        return getattr(importlib.import_module(f"{__name__}.{_PIPES[name]}"), name)
    if name in ("datapipes", "graph", "graph_settings"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
