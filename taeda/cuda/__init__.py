"""NVIDIA GPUs. This build has none: queries say so, and using one raises an error.

Programs ask ``cuda.is_available()`` and continue on the CPU. What would have no effect without a GPU (seeding it,
emptying its cache, waiting for it) has none; what needs one raises.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import taeda

from .._core import NoCudaError, OutOfMemoryError
from .._no_device import answering, refusing
from . import amp, nccl, nvtx

_WHY = "taeda was installed without CUDA support: put tensors and modules on device 'cpu'"

has_half = False
default_generators: tuple = ()


def _no_device(name: str) -> NoReturn:
    raise NoCudaError(f"Torch not compiled with CUDA enabled (cuda.{name}): {_WHY}")


_initialized = False

_ANSWERS = """
    is_available() = False: Whether tensors can be put on a GPU: False.
    is_initialized() = False: Whether a GPU is in use: False.
    device_count() = 0: The number of GPUs: 0.
    is_bf16_supported(including_emulation=True) = False: Whether the GPU computes in bfloat16: False without one.
    is_tf32_supported() = False: Whether the GPU computes in TF32: False without one.
    is_current_stream_capturing() = False: Whether a CUDA graph is being captured: False.
    get_arch_list() = []: The architectures that kernels were compiled for: none.
    get_gencode_flags() = "": Compiler flags of those architectures: none.
    seed() = None: As :func:`manual_seed` with a random seed: nothing.
    seed_all() = None: As :func:`manual_seed_all` with a random seed: nothing.
    get_rng_state_all() = []: The states of all GPUs' generators: none.
    empty_cache() = None: Give unused GPU memory back: nothing to do.
    ipc_collect() = None: Collect memory shared with other processes: nothing to do.
    reset_peak_memory_stats(device=None) = None: Forget the peak of GPU memory: nothing to do.
    memory_allocated(device=None) = 0: Bytes of GPU memory in use: 0.
    memory_stats(device=None) = {}: Statistics of GPU memory: none.
    memory_summary(device=None, abbreviated=False) = "": A table of :func:`memory_stats`: empty.
    get_sync_debug_mode() = 0: What to do where a call waits for the GPU: 0, nothing.
    set_sync_debug_mode(debug_mode) = None: Set :func:`get_sync_debug_mode`: nothing waits for a GPU.
    get_allocator_backend() = "native": The allocator of GPU memory: "native".
    _is_compiled() = False: Whether taeda was built with CUDA: False.
    _is_in_bad_fork() = False: Whether a GPU was in use before a fork: False.
    _lazy_call(function, **kwargs) = None: Run ``function`` once a GPU is in use: never.
"""
_NEEDS_ONE = """
    caching_allocator_alloc caching_allocator_delete can_device_access_peer cudart current_blas_handle current_device
    current_stream default_stream device_memory_used get_device_capability get_device_name get_device_properties
    get_rng_state init initial_seed make_graphed_callables mem_get_info memory_snapshot
    set_per_process_memory_fraction set_rng_state set_stream synchronize utilization
"""
globals().update(
    answering(__name__, _ANSWERS) | refusing(__name__, _NEEDS_ONE, _no_device, "Refused: there is no GPU.")
)
reset_max_memory_allocated = reset_max_memory_cached = globals()["reset_peak_memory_stats"]
reset_accumulated_memory_stats = reset_max_memory_allocated
memory_reserved = memory_cached = max_memory_allocated = globals()["memory_allocated"]
max_memory_reserved = max_memory_cached = memory_reserved


# ---- without effect --------------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; without a GPU nothing."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; without a GPU nothing."""
    int(seed)


def set_rng_state_all(new_states: Iterable) -> None:
    """Restore :func:`get_rng_state_all`.

    Raises:
        RuntimeError: there are states, and no GPU to take them.
    """
    if list(new_states):
        _no_device("set_rng_state_all")


def set_device(device: Any) -> None:
    """Choose the current GPU.

    Raises:
        RuntimeError: there is none (a negative index chooses nothing and is allowed).
    """
    index = device if isinstance(device, int) else taeda.device(device).index
    if index is None or index >= 0:
        _no_device("set_device")


class device:
    """Context manager: within it, a GPU is the current one. Without a GPU it does nothing for a negative index or
    None."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device if isinstance(device, int) else taeda.device(device).index or 0

    def __enter__(self) -> None:
        if self.idx >= 0:
            _no_device("device")

    def __exit__(self, *exc: Any) -> None:
        pass


class device_of(device):
    """As :class:`device`, with the GPU of a tensor; nothing for a tensor on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """Within the block, work goes to ``stream``: None does nothing, and there is no other without a GPU."""
    if stream is not None:
        _no_device("stream")
    yield


# ---- what needs a GPU ------------------------------------------------------------------------------------------------


def _needs_class(name: str) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _no_device(name)

    return type(name, (), {"__init__": __init__, "__doc__": "Refused: there is no GPU.", "__module__": __name__})


CUDAGraph, CUDAPluggableAllocator, Event, ExternalStream, MemPool, Stream, graph = map(
    _needs_class, ("CUDAGraph", "CUDAPluggableAllocator", "Event", "ExternalStream", "MemPool", "Stream", "graph")
)


class StreamContext:
    """What :func:`stream` gives: None does nothing, and there is no other stream without a GPU."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _no_device("StreamContext")

    def __exit__(self, *exc: Any) -> None:
        pass


class CudaError(RuntimeError):
    """An error of the GPU's driver: never raised here."""


def _typed(name: str) -> Any:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
            _no_device(name)

        def __instancecheck__(cls, x: Any) -> bool:
            return False

    return Meta(name, (), {"__doc__": "Tensors on a GPU: none.", "__module__": __name__})


_TYPES = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
globals().update({f"{name}Tensor": _typed(f"{name}Tensor") for name in _TYPES})


class _CudaDeviceProperties:
    """What ``get_device_properties`` would give; there is none."""


def _lazy_init() -> None:
    _no_device("init")


def __getattr__(name: str) -> Any:
    """``cuda.memory`` and ``cuda.random`` are this module: their functions are here. Typed storages have no GPU
    form."""
    if name in ("memory", "random", "streams", "graphs"):
        return sys.modules[__name__]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
