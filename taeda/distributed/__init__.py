"""``taeda.distributed``: several processes that work together.

Collectives (``all_reduce``, ``broadcast``, ...) are functions that every process of a group calls; see
:func:`init_process_group`. A process that is gone, calls something else, or does not come in time is an error at the
others that names it. Two backends move the memory: ``gloo``, which is TCP and shared memory here and needs nothing
installed, and ``mpi``. One process alone is a group too: programs written for many run as they are.
"""

# ruff: noqa: I001 - lists of names are paragraphs

import importlib
from typing import Any

from .collectives import (
    P2POp, all_gather, all_gather_coalesced, all_gather_into_tensor, all_reduce, all_reduce_coalesced, all_to_all,
    all_to_all_single, barrier, batch_isend_irecv, broadcast, gather, irecv, isend, monitored_barrier, recv, reduce,
    reduce_scatter, reduce_scatter_tensor, scatter, send,
)  # fmt: skip
from .debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .device_mesh import DeviceMesh, init_device_mesh
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .groups import (
    Backend, GroupMember, ProcessGroup, default_pg_timeout, destroy_process_group, get_backend,
    get_backend_config, get_default_backend_for_device, get_global_rank, get_group_rank, get_node_local_rank,
    get_pg_count, get_process_group_ranks, get_rank, get_world_size, group, init_process_group, is_available,
    is_backend_available, is_gloo_available, is_initialized, is_mpi_available, is_nccl_available,
    is_torchelastic_launched, is_ucc_available, is_xccl_available, new_group,
)  # fmt: skip
from .objects import (
    all_gather_object, broadcast_object_list, gather_object, recv_object_list, scatter_object_list, send_object_list,
)  # fmt: skip
from .reduction import ReduceOp, supports_complex
from .rendezvous import register_rendezvous_handler, rendezvous
from .stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from .subgroups import new_subgroups, new_subgroups_by_enumeration, shrink_group, split_group
from .work import Work

ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]
reduce_op = ReduceOp
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor


#: Where names are that load modules (layers, optimisers) which not every program with several processes needs.
_LAZY = {"DistributedDataParallel": "data_parallel", "GradBucket": "data_parallel", "simulate": "simulation"}
_PACKAGES = (
    "algorithms", "checkpoint", "distributed_c10d", "elastic", "fsdp", "launcher", "nn", "optim", "pipelining",
    "tensor",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'taeda.distributed' has no attribute '{name}'", name=name)
