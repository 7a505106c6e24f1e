"""NCCL, which this build has not: ``is_available`` says so, and calls raise what they raise in PyTorch's for CPUs."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from .._no_device import refusing


def is_available(tensors: Any) -> bool:
    """Whether NCCL takes ``tensors``: False."""
    warnings.warn("taeda is not compiled with NCCL support", stacklevel=2)
    return False


def _refuse(name: str) -> NoReturn:
    raise AttributeError(f"cuda.nccl.{name}: taeda was installed without NCCL; use the backend 'gloo' or 'mpi'")


globals().update(
    refusing(
        __name__, "version unique_id init_rank all_reduce reduce broadcast all_gather reduce_scatter", _refuse,
        "Raises an AttributeError: there is no NCCL.",
    )
)  # fmt: skip
