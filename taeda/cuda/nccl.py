"""PyTorch's collectives of several GPUs of one process, which are not there: ``taeda.distributed`` has those of several
processes, a GPU each."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from .._no_device import refusing
from . import _nccl


def is_available(tensors: Any) -> bool:
    """Whether the functions here take ``tensors``: False."""
    warnings.warn("taeda is not compiled with NCCL support", stacklevel=2)
    return False


def version() -> tuple[int, int, int]:
    """The version of NCCL, as (2, 28, 3).

    Returns:
        Three numbers.

    Raises:
        AttributeError: it is not installed.
    """
    if why := _nccl.LIBRARY.why_none:
        raise AttributeError(f"cuda.nccl.version: {why}")
    number = _nccl.version()
    return number // 10000, number // 100 % 100, number % 100


def _refuse(name: str) -> NoReturn:
    raise AttributeError(
        f"cuda.nccl.{name}: there are no collectives of several GPUs of one process; use taeda.distributed, with a "
        f"process for each GPU"
    )


globals().update(
    refusing(
        __name__, "unique_id init_rank all_reduce reduce broadcast all_gather reduce_scatter", _refuse,
        "Raises an AttributeError: it is not there.",
    )
)  # fmt: skip
