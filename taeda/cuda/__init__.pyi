"""Names of taeda.cuda. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype
from ..cuda._driver import CudaError as CudaError
AcceleratorError = CudaError
from ..cuda.graphs import CUDAGraph as CUDAGraph
from ..cuda.memory import CUDAPluggableAllocator as CUDAPluggableAllocator
from ..cuda._driver import CudaError as CudaError
from ..cuda.streams import Event as Event
from ..cuda.streams import ExternalStream as ExternalStream
from ..cuda.memory import MemPool as MemPool
from ..cuda.streams import Stream as Stream
from ..cuda.streams import StreamContext as StreamContext
from . import amp as amp
from .._no_device import answering as answering
from ..cuda.memory import caching_allocator_alloc as caching_allocator_alloc
from ..cuda.memory import caching_allocator_delete as caching_allocator_delete
from ..cuda.memory import caching_allocator_disabled as caching_allocator_disabled
from ..cuda.memory import caching_allocator_enable as caching_allocator_enable
from ..cuda.devices import can_device_access_peer as can_device_access_peer
from ..cuda.memory import change_current_allocator as change_current_allocator
from ..cuda.devices import clock_rate as clock_rate
from . import comm as comm
from ..cuda.devices import current_device as current_device
from ..cuda.streams import current_stream as current_stream
from ..cuda.streams import default_stream as default_stream
from ..cuda.devices import device as device
from ..cuda.devices import device_count as device_count
from ..cuda.memory import device_memory_used as device_memory_used
from ..cuda.devices import device_of as device_of
from . import devices as devices
from ..cuda.memory import empty_cache as empty_cache
from ..cuda._driver import error_of as error_of
from ..cuda.memory import get_allocator_backend as get_allocator_backend
from ..cuda.devices import get_arch_list as get_arch_list
from ..cuda.devices import get_device_capability as get_device_capability
from ..cuda.devices import get_device_name as get_device_name
from ..cuda.devices import get_device_properties as get_device_properties
from ..cuda.devices import get_gencode_flags as get_gencode_flags
from ..cuda.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from ..cuda.random import get_rng_state as get_rng_state
from ..cuda.random import get_rng_state_all as get_rng_state_all
from ..cuda.streams import get_stream_from_external as get_stream_from_external
from ..cuda.graphs import graph as graph
from ..cuda.graphs import graph_pool_handle as graph_pool_handle
from . import graphs as graphs
from ..cuda.memory import host_memory_stats as host_memory_stats
from ..cuda.memory import host_memory_stats_as_nested_dict as host_memory_stats_as_nested_dict
from ..cuda.devices import init as init
from ..cuda.random import initial_seed as initial_seed
from ..cuda.devices import is_available as is_available
from ..cuda.devices import is_bf16_supported as is_bf16_supported
from ..cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
from ..cuda.devices import is_initialized as is_initialized
from ..cuda.devices import is_tf32_supported as is_tf32_supported
from ..cuda.devices import list_gpu_processes as list_gpu_processes
from ..cuda.graphs import make_graphed_callables as make_graphed_callables
from ..cuda.random import manual_seed as manual_seed
from ..cuda.random import manual_seed_all as manual_seed_all
from ..cuda.memory import max_memory_allocated as max_memory_allocated
from ..cuda.memory import max_memory_cached as max_memory_cached
from ..cuda.memory import max_memory_reserved as max_memory_reserved
from ..cuda.memory import mem_get_info as mem_get_info
from . import memory as memory
from ..cuda.memory import memory_allocated as memory_allocated
from ..cuda.memory import memory_cached as memory_cached
from ..cuda.memory import memory_reserved as memory_reserved
from ..cuda.memory import memory_snapshot as memory_snapshot
from ..cuda.memory import memory_stats as memory_stats
from ..cuda.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from ..cuda.memory import memory_summary as memory_summary
from ..cuda.devices import memory_usage as memory_usage
from . import nccl as nccl
from ..cuda.devices import need as need
from . import nvtx as nvtx
from ..cuda.devices import power_draw as power_draw
from . import profiler as profiler
from . import random as random
from ..cuda.memory import reset_accumulated_host_memory_stats as reset_accumulated_host_memory_stats
from ..cuda.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from ..cuda.memory import reset_max_memory_allocated as reset_max_memory_allocated
from ..cuda.memory import reset_max_memory_cached as reset_max_memory_cached
from ..cuda.memory import reset_peak_host_memory_stats as reset_peak_host_memory_stats
from ..cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from ..cuda.random import seed as seed
from ..cuda.random import seed_all as seed_all
from ..cuda.devices import set_device as set_device
from ..cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from ..cuda.random import set_rng_state as set_rng_state
from ..cuda.random import set_rng_state_all as set_rng_state_all
from ..cuda.streams import set_stream as set_stream
from ..cuda.streams import stream as stream
from . import streams as streams
from ..cuda.devices import synchronize as synchronize
from ..cuda.devices import temperature as temperature
from . import tunable as tunable
from ..cuda.memory import use_mem_pool as use_mem_pool
from ..cuda.devices import utilization as utilization

class BFloat16Storage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class BFloat16Tensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class BoolStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class BoolTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ByteStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ByteTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CharStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CharTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ComplexDoubleStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ComplexFloatStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class DeferredCudaCallError:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class DoubleStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class DoubleTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class FloatStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class FloatTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class GreenContext:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class HalfStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class HalfTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class IntStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class IntTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class LongStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class LongTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class NoCudaError(builtins.RuntimeError): ...
class OutOfMemoryError(builtins.RuntimeError): ...
class ShortStorage:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ShortTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
def check_error(res: builtins.int) -> Tensor:
    r"""Raise for the number of an error of CUDA."""
class cudaStatus:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def ERROR_NOT_READY(self) -> Any: ...
    @property
    def SUCCESS(self) -> Any: ...
def cudart(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: not there yet."""
def current_blas_handle(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: not there yet."""
def current_solver_handle(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: not there yet."""
def get_sync_debug_mode() -> Tensor:
    r"""What to do where a call waits for the GPU: 0, nothing."""
has_half: Any
has_magma: Any
def ipc_collect() -> Tensor:
    r"""Collect memory shared with other processes: nothing to do, none is."""
def jiterator(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: not there yet."""
def set_sync_debug_mode(debug_mode: Any) -> Tensor:
    r"""Set :func:`get_sync_debug_mode`: accepted, calls that wait say nothing."""
