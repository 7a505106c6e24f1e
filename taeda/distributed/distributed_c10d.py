"""``torch.distributed.distributed_c10d``: the functions of ``taeda.distributed`` under the name of the module that has
them there."""

# ruff: noqa: I001, F401 - lists of names are paragraphs

from . import all_gather_single, reduce_op, reduce_scatter_single
from .collectives import (
    P2POp, _coalescing_manager, _CoalescingManager, all_gather, all_gather_coalesced,
    all_gather_into_tensor, all_reduce, all_reduce_coalesced, all_to_all,
    all_to_all_single, barrier, batch_isend_irecv, broadcast, gather, irecv, isend, monitored_barrier, recv, reduce,
    reduce_scatter, reduce_scatter_tensor, scatter, send,
)  # fmt: skip
from .debug import (
    DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env,
)  # fmt: skip
from .errors import (
    DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError,
)  # fmt: skip
from .groups import (
    Backend, GroupMember, ProcessGroup, _get_default_group, _get_default_store, _world, default_pg_timeout,
    destroy_process_group, get_backend, get_backend_config, get_default_backend_for_device, get_global_rank,
    get_group_rank, get_node_local_rank, get_pg_count, get_process_group_ranks, get_rank, get_world_size, group,
    init_process_group, is_available, is_backend_available, is_gloo_available, is_initialized, is_mpi_available,
    is_nccl_available, is_torchelastic_launched, is_ucc_available, is_xccl_available, new_group,
)  # fmt: skip
from .objects import (
    all_gather_object, broadcast_object_list, gather_object, recv_object_list, scatter_object_list, send_object_list,
)  # fmt: skip
from .reduction import (
    ReduceOp, supports_complex,
)  # fmt: skip
from .subgroups import (
    new_subgroups, new_subgroups_by_enumeration, shrink_group, split_group,
)  # fmt: skip
from .stores import (
    FileStore, HashStore, PrefixStore, Store, TCPStore,
)  # fmt: skip
from .work import (
    Work,
)  # fmt: skip

_get_global_rank = get_global_rank  # the older name
