"""Data pipes are not part of taeda. The module exists to say so."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(
        f"taeda.utils.data.datapipes.{name}: data pipes are not part of taeda; PyTorch no longer develops them. "
        "Write an IterableDataset, or a Dataset with a sampler"
    )
