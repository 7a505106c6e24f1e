"""``taeda.distributed``: work on several processes, which this build does not do.

``is_available()`` and ``is_initialized()`` are False, so programs that ask go on as one process; starting a group refuses.
"""

from __future__ import annotations

import enum
from typing import Any

from .._refuse import refuse, refused_class, refused_function

_WHY = "this build has no communication between processes. Run one process, or guard the call with is_available()"


def is_available() -> bool:
    """Whether processes can form a group: False."""
    return False


def is_initialized() -> bool:
    """Whether this process is in a group: False."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process: False."""
    return False


def is_mpi_available() -> bool:
    """False."""
    return False


is_nccl_available = is_gloo_available = is_ucc_available = is_xccl_available = is_mpi_available


def get_rank(group: Any = None) -> int:
    """The number of this process in the group.

    Raises:
        ValueError: there is no group.
    """
    raise ValueError(
        "distributed.get_rank: the default process group has not been initialized; check is_initialized() first"
    )


def get_world_size(group: Any = None) -> int:
    """The number of processes in the group.

    Raises:
        ValueError: there is no group.
    """
    raise ValueError(
        "distributed.get_world_size: the default process group has not been initialized; check is_initialized() first"
    )


def init_process_group(backend: str | None = None, init_method: str | None = None, **kwargs: Any) -> None:
    """Refused: there is no communication between processes."""
    refuse("distributed.init_process_group", _WHY)


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class Backend(str):
    """The name of a way to communicate."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"


class _Groups:
    WORLD = None


group = GroupMember = _Groups
ProcessGroup, Store, TCPStore, FileStore, HashStore, PrefixStore, Work, DeviceMesh, P2POp = (
    refused_class(f"distributed.{name}", _WHY)
    for name in "ProcessGroup Store TCPStore FileStore HashStore PrefixStore Work DeviceMesh P2POp".split()
)
(
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    init_device_mesh,
    irecv,
    isend,
    monitored_barrier,
    new_group,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
) = (
    refused_function(f"distributed.{name}", _WHY)
    for name in (
        "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier broadcast "
        "broadcast_object_list destroy_process_group gather gather_object get_backend init_device_mesh irecv isend "
        "monitored_barrier new_group recv reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send"
    ).split()
)
