"""NVIDIA GPUs, of which this build has none: questions are answered so, and work on one is refused.

Programs ask ``cuda.is_available()`` and go on with the CPU. What would have no effect without a GPU (seeding it, emptying
its cache, waiting for it) has none; what needs one raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import taeda

from .._core import NoCudaError, OutOfMemoryError
from . import amp, nvtx

_WHY = "taeda was installed without CUDA support: put tensors and modules on device 'cpu'"

has_half = False
default_generators: tuple = ()


def _no_device(name: str) -> NoReturn:
    raise NoCudaError(f"cuda.{name}: {_WHY}")


def is_available() -> bool:
    """Whether tensors can be put on a GPU: False."""
    return False


_initialized = False


def is_initialized() -> bool:
    """Whether a GPU is in use: False."""
    return False


def init() -> None:
    """Refused: there is no GPU to start."""
    _no_device("init")


def device_count() -> int:
    """The number of GPUs: 0."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16: False without one."""
    return False


def is_tf32_supported() -> bool:
    """Whether the GPU computes in TF32: False without one."""
    return False


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph is being captured: False."""
    return False


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """Compiler flags of those architectures: none."""
    return ""


# ---- without effect -----------------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator; without a GPU nothing."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; without a GPU nothing."""
    int(seed)


def seed() -> None:
    """As :func:`manual_seed` with a random seed: nothing."""


def seed_all() -> None:
    """As :func:`manual_seed_all` with a random seed: nothing."""


def get_rng_state_all() -> list:
    """The states of all GPUs' generators: none."""
    return []


def set_rng_state_all(new_states: Iterable) -> None:
    """Restore :func:`get_rng_state_all`.

    Raises:
        RuntimeError: there are states, and no GPU to take them.
    """
    if list(new_states):
        _no_device("set_rng_state_all")


def empty_cache() -> None:
    """Give unused GPU memory back: nothing to do."""


def ipc_collect() -> None:
    """Collect memory shared with other processes: nothing to do."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the peak of GPU memory: nothing to do."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def set_device(device: Any) -> None:
    """Choose the current GPU.

    Raises:
        RuntimeError: there is none (a negative index chooses nothing and is allowed).
    """
    index = device if isinstance(device, int) else taeda.device(device).index
    if index is None or index >= 0:
        _no_device("set_device")


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use: 0."""
    return 0


memory_reserved = memory_cached = max_memory_allocated = max_memory_reserved = max_memory_cached = memory_allocated


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of GPU memory: none."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of :func:`memory_stats`: empty."""
    return ""


class device:
    """Context manager: within it, a GPU is the current one. Without a GPU it does nothing for a negative index or None."""

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


# ---- what needs a GPU ----------------------------------------------------------------------------------------------------


def _needs(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        _no_device(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Refused: there is no GPU."
    return function


def _needs_class(name: str) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _no_device(name)

    return type(name, (), {"__init__": __init__, "__doc__": "Refused: there is no GPU.", "__module__": __name__})


(
    caching_allocator_alloc,
    caching_allocator_delete,
    can_device_access_peer,
    cudart,
    device_memory_used,
    current_blas_handle,
    current_device,
    current_stream,
    default_stream,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_rng_state,
    initial_seed,
    make_graphed_callables,
    mem_get_info,
    memory_snapshot,
    set_per_process_memory_fraction,
    set_rng_state,
    set_stream,
    synchronize,
    utilization,
) = map(
    _needs,
    (
        "caching_allocator_alloc caching_allocator_delete can_device_access_peer cudart device_memory_used current_blas_handle current_device current_stream default_stream get_device_capability "
        "get_device_name get_device_properties get_rng_state initial_seed make_graphed_callables mem_get_info memory_snapshot "
        "set_per_process_memory_fraction set_rng_state set_stream synchronize utilization"
    ).split(),
)
CUDAGraph, CUDAPluggableAllocator, Event, ExternalStream, MemPool, Stream, graph = map(
    _needs_class,
    ("CUDAGraph", "CUDAPluggableAllocator", "Event", "ExternalStream", "MemPool", "Stream", "graph"),
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


def get_sync_debug_mode() -> int:
    """What to do where a call waits for the GPU: 0, nothing."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Set :func:`get_sync_debug_mode`: nothing waits for a GPU."""


def get_allocator_backend() -> str:
    """The allocator of GPU memory: "native"."""
    return "native"


def _typed(name: str) -> Any:
    class Meta(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
            _no_device(name)

        def __instancecheck__(cls, x: Any) -> bool:
            return False

    return Meta(name, (), {"__doc__": "Tensors on a GPU: none.", "__module__": __name__})


(
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
) = map(
    _typed,
    (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"
    ).split(),
)


class _CudaDeviceProperties:
    """What ``get_device_properties`` would give; there is none."""


def _is_compiled() -> bool:
    return False


def _lazy_call(function: Any, **kwargs: Any) -> None:
    """Run ``function`` once a GPU is in use: never."""


def _lazy_init() -> None:
    _no_device("init")


def _is_in_bad_fork() -> bool:
    return False


def __getattr__(name: str) -> Any:
    """``cuda.memory`` and ``cuda.random`` are this module: their functions are here. Typed storages have no GPU form."""
    import sys

    if name in ("memory", "random", "streams", "graphs"):
        return sys.modules[__name__]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
