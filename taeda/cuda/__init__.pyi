"""Names of taeda.cuda. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .. import Number, Size, Tensor, _device, _dtype
from . import amp as amp
from .._no_device import answering as answering
from . import nccl as nccl
from . import nvtx as nvtx
from .._no_device import refusing as refusing

class BFloat16Tensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class BoolTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ByteTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CUDAGraph:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CUDAPluggableAllocator:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CharTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class CudaError(builtins.RuntimeError): ...
class DoubleTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class Event:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class ExternalStream:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class FloatTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class HalfTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class IntTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class LongTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class MemPool:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class NoCudaError(builtins.RuntimeError): ...
class OutOfMemoryError(builtins.RuntimeError): ...
class ShortTensor:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class Stream:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class StreamContext:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...
def caching_allocator_alloc(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def caching_allocator_delete(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def can_device_access_peer(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def cudart(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def current_blas_handle(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def current_device(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def current_stream(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
default_generators: Any
def default_stream(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
class device:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...
def device_count() -> Tensor:
    r"""The number of GPUs: 0."""
def device_memory_used(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
class device_of:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> None: ...
def empty_cache() -> Tensor:
    r"""Give unused GPU memory back: nothing to do."""
def get_allocator_backend() -> Tensor:
    r"""The allocator of GPU memory: "native"."""
def get_arch_list() -> Tensor:
    r"""The architectures that kernels were compiled for: none."""
def get_device_capability(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def get_device_name(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def get_device_properties(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def get_gencode_flags() -> Tensor:
    r"""Compiler flags of those architectures: none."""
def get_rng_state(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def get_rng_state_all() -> Tensor:
    r"""The states of all GPUs' generators: none."""
def get_sync_debug_mode() -> Tensor:
    r"""What to do where a call waits for the GPU: 0, nothing."""
class graph:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
has_half: Any
def init(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def initial_seed(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def ipc_collect() -> Tensor:
    r"""Collect memory shared with other processes: nothing to do."""
def is_available() -> Tensor:
    r"""Whether tensors can be put on a GPU: False."""
def is_bf16_supported(including_emulation: builtins.bool = True) -> Tensor:
    r"""Whether the GPU computes in bfloat16: False without one."""
def is_current_stream_capturing() -> Tensor:
    r"""Whether a CUDA graph is being captured: False."""
def is_initialized() -> Tensor:
    r"""Whether a GPU is in use: False."""
def is_tf32_supported() -> Tensor:
    r"""Whether the GPU computes in TF32: False without one."""
def make_graphed_callables(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def manual_seed(seed: Any) -> Tensor:
    r"""Seed the current GPU's generator; without a GPU nothing."""
def manual_seed_all(seed: Any) -> Tensor:
    r"""Seed the generators of all GPUs; without a GPU nothing."""
def max_memory_allocated(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def max_memory_cached(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def max_memory_reserved(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def mem_get_info(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def memory_allocated(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def memory_cached(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def memory_reserved(device: _device | builtins.str | None = None) -> Tensor:
    r"""Bytes of GPU memory in use: 0."""
def memory_snapshot(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def memory_stats(device: _device | builtins.str | None = None) -> Tensor:
    r"""Statistics of GPU memory: none."""
def memory_summary(device: _device | builtins.str | None = None, abbreviated: builtins.bool = False) -> Tensor:
    r"""A table of :func:`memory_stats`: empty."""
def reset_accumulated_memory_stats(device: _device | builtins.str | None = None) -> Tensor:
    r"""Forget the peak of GPU memory: nothing to do."""
def reset_max_memory_allocated(device: _device | builtins.str | None = None) -> Tensor:
    r"""Forget the peak of GPU memory: nothing to do."""
def reset_max_memory_cached(device: _device | builtins.str | None = None) -> Tensor:
    r"""Forget the peak of GPU memory: nothing to do."""
def reset_peak_memory_stats(device: _device | builtins.str | None = None) -> Tensor:
    r"""Forget the peak of GPU memory: nothing to do."""
def seed() -> Tensor:
    r"""As :func:`manual_seed` with a random seed: nothing."""
def seed_all() -> Tensor:
    r"""As :func:`manual_seed_all` with a random seed: nothing."""
def set_device(device: _device | builtins.str) -> Tensor:
    r"""Choose the current GPU."""
def set_per_process_memory_fraction(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def set_rng_state(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def set_rng_state_all(new_states: Any) -> Tensor:
    r"""Restore :func:`get_rng_state_all`."""
def set_stream(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def set_sync_debug_mode(debug_mode: Any) -> Tensor:
    r"""Set :func:`get_sync_debug_mode`: nothing waits for a GPU."""
def stream(stream: Any) -> Tensor:
    r"""Within the block, work goes to ``stream``: None does nothing, and there is no other without a GPU."""
def synchronize(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
def utilization(*args: Any, **kwargs: Any) -> Tensor:
    r"""Refused: there is no GPU."""
