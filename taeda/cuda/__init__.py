"""NVIDIA GPUs: tensors on device ``cuda`` run on them, by kernels that are compiled to PTX.

The driver is looked for when a program first asks. Where there is none, queries say so, seeding and the like do
nothing, and using a GPU raises an error that says what is missing. ``docs/cuda.md`` says what is there.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .._core import NoCudaError, OutOfMemoryError
from .._no_device import answering
from . import _interface as _interface
from . import _lacking, amp, comm, graphs, nccl, nvtx, profiler, tunable
from . import random as random
from ._driver import CudaError, error_of
from .devices import (
    _CudaDeviceProperties,
    can_device_access_peer,
    clock_rate,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    list_gpu_processes,
    memory_usage,
    need,
    power_draw,
    set_device,
    synchronize,
    temperature,
    utilization,
)  # fmt: skip
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)  # fmt: skip
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)  # fmt: skip
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)  # fmt: skip

has_half = True

_ANSWERS = """
    ipc_collect() = None: Collect memory shared with other processes: nothing to do, none is.
    get_sync_debug_mode() = 0: What to do where a call waits for the GPU: 0, nothing.
    set_sync_debug_mode(debug_mode) = None: Set :func:`get_sync_debug_mode`: accepted, calls that wait say nothing.
"""
globals().update(answering(__name__, _ANSWERS))


def _is_compiled() -> bool:
    """Whether this build can use a GPU: True, as kernels are compiled when they are needed."""
    return is_available()


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that used a GPU: then it has none."""
    from . import _native

    return _native.is_forked()


def _lazy_call(function: Any, **kwargs: Any) -> None:
    """Run ``function`` if there is a GPU."""
    if is_available():
        function()


def _lazy_init() -> None:
    need("init")


# ---- what is not there yet -------------------------------------------------------------------------------------------


cudart, current_blas_handle, current_solver_handle, jiterator = (
    _lacking.refused(__name__, name) for name in ("cudart", "current_blas_handle", "current_solver_handle", "jiterator")
)
GreenContext = _lacking.refused_class(__name__, "GreenContext")
_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
_STORAGES = (f"{name}Storage" for name in (*_TYPES, "ComplexDouble", "ComplexFloat"))
globals().update({name: _lacking.refused_class(__name__, name) for name in _STORAGES})
has_magma = False
AcceleratorError = CudaError


class DeferredCudaCallError(Exception):
    """An error of a call that was put off until a GPU is used: never raised, as none is put off."""


class cudaStatus:
    """Numbers of CUDA's runtime for what a call gave."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


def check_error(res: int) -> None:
    """Raise for the number of an error of CUDA.

    Args:
        res: the number.

    Raises:
        RuntimeError: it is not 0.
    """
    if res:
        raise error_of(res, "check_error")


def _typed(name: str) -> Any:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
            if not is_available():
                raise TypeError(f"type cuda.{name} not available. Torch not compiled with CUDA enabled.")
            _lacking.lacking(name)

        def __instancecheck__(cls, x: Any) -> bool:
            from .._core import Tensor

            return isinstance(x, Tensor) and x.is_cuda and x.type().endswith(f".{name}")

    return Meta(name, (), {"__doc__": "Tensors of a dtype on a GPU.", "__module__": __name__})


globals().update({f"{name}Tensor": _typed(f"{name}Tensor") for name in _TYPES})


def __getattr__(name: str) -> Any:
    """Attributes that are known only once a GPU was looked for."""
    if name == "default_generators":
        return random.generators()
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
