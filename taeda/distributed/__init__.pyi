"""Names of taeda.distributed. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype
from ..distributed.groups import Backend as Backend
from ..distributed.debug import DebugLevel as DebugLevel
from ..distributed.device_mesh import DeviceMesh as DeviceMesh
from ..distributed.errors import DistBackendError as DistBackendError
from ..distributed.errors import DistError as DistError
from ..distributed.errors import DistNetworkError as DistNetworkError
from ..distributed.errors import DistStoreError as DistStoreError
from ..distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from ..distributed.stores import FileStore as FileStore
from ..distributed.data_parallel import GradBucket as GradBucket
from ..distributed.groups import GroupMember as GroupMember
from ..distributed.stores import HashStore as HashStore
from ..distributed.collectives import P2POp as P2POp
from ..distributed.stores import PrefixStore as PrefixStore
from ..distributed.groups import ProcessGroup as ProcessGroup
from ..distributed.errors import QueueEmptyError as QueueEmptyError
from ..distributed.reduction import ReduceOp as ReduceOp
from ..distributed.stores import Store as Store
from ..distributed.stores import TCPStore as TCPStore
from ..distributed.work import Work as Work
from . import algorithms as algorithms
from ..distributed.collectives import all_gather as all_gather
from ..distributed.collectives import all_gather_coalesced as all_gather_coalesced
from ..distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
from ..distributed.objects import all_gather_object as all_gather_object
from ..distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
all_gather_single = all_gather_into_tensor
from ..distributed.collectives import all_reduce as all_reduce
from ..distributed.collectives import all_reduce_coalesced as all_reduce_coalesced
from ..distributed.collectives import all_to_all as all_to_all
from ..distributed.collectives import all_to_all_single as all_to_all_single
from ..distributed.collectives import barrier as barrier
from ..distributed.collectives import batch_isend_irecv as batch_isend_irecv
from ..distributed.collectives import broadcast as broadcast
from ..distributed.objects import broadcast_object_list as broadcast_object_list
from . import checkpoint as checkpoint
from . import collectives as collectives
from . import debug as debug
from ..distributed.groups import destroy_process_group as destroy_process_group
from . import device_mesh as device_mesh
from . import distributed_c10d as distributed_c10d
from . import elastic as elastic
from . import engines as engines
from . import errors as errors
from . import fsdp as fsdp
from ..distributed.collectives import gather as gather
from ..distributed.objects import gather_object as gather_object
from ..distributed.groups import get_backend as get_backend
from ..distributed.groups import get_backend_config as get_backend_config
from ..distributed.debug import get_debug_level as get_debug_level
from ..distributed.groups import get_default_backend_for_device as get_default_backend_for_device
from ..distributed.groups import get_global_rank as get_global_rank
from ..distributed.groups import get_group_rank as get_group_rank
from ..distributed.groups import get_node_local_rank as get_node_local_rank
from ..distributed.groups import get_pg_count as get_pg_count
from ..distributed.groups import get_process_group_ranks as get_process_group_ranks
from ..distributed.groups import get_rank as get_rank
from ..distributed.groups import get_world_size as get_world_size
from ..distributed.groups import GroupMember as GroupMember
group = GroupMember
from . import groups as groups
from ..distributed.device_mesh import init_device_mesh as init_device_mesh
from ..distributed.groups import init_process_group as init_process_group
from ..distributed.collectives import irecv as irecv
from ..distributed.groups import is_available as is_available
from ..distributed.groups import is_backend_available as is_backend_available
from ..distributed.groups import is_gloo_available as is_gloo_available
from ..distributed.groups import is_initialized as is_initialized
from ..distributed.groups import is_mpi_available as is_mpi_available
from ..distributed.groups import is_nccl_available as is_nccl_available
from ..distributed.groups import is_torchelastic_launched as is_torchelastic_launched
from ..distributed.groups import is_ucc_available as is_ucc_available
from ..distributed.groups import is_ucc_available as is_ucc_available
is_xccl_available = is_ucc_available
from ..distributed.collectives import isend as isend
from . import launched as launched
from . import launcher as launcher
from . import links as links
from ..distributed.collectives import monitored_barrier as monitored_barrier
from ..distributed.groups import new_group as new_group
from ..distributed.subgroups import new_subgroups as new_subgroups
from ..distributed.subgroups import new_subgroups_by_enumeration as new_subgroups_by_enumeration
from . import nn as nn
from . import objects as objects
from . import optim as optim
from . import pipelining as pipelining
from ..distributed.collectives import recv as recv
from ..distributed.objects import recv_object_list as recv_object_list
from ..distributed.collectives import reduce as reduce
from ..distributed.reduction import ReduceOp as ReduceOp
reduce_op = ReduceOp
from ..distributed.collectives import reduce_scatter as reduce_scatter
from ..distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
reduce_scatter_single = reduce_scatter_tensor
from ..distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
from . import reduction as reduction
from ..distributed.rendezvous import register_rendezvous_handler as register_rendezvous_handler
from ..distributed.rendezvous import rendezvous as rendezvous
from ..distributed.collectives import scatter as scatter
from ..distributed.objects import scatter_object_list as scatter_object_list
from ..distributed.collectives import send as send
from ..distributed.objects import send_object_list as send_object_list
from ..distributed.debug import set_debug_level as set_debug_level
from ..distributed.debug import set_debug_level_from_env as set_debug_level_from_env
from ..distributed.subgroups import shrink_group as shrink_group
from ..distributed.simulation.step import simulate as simulate
from ..distributed.subgroups import split_group as split_group
from . import stores as stores
from . import subgroups as subgroups
from ..distributed.reduction import supports_complex as supports_complex
from . import tensor as tensor
from . import watching as watching
from . import work as work

default_pg_timeout: Any
