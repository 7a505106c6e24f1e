"""The GPUs: how many there are, which one is current, and what each can do."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _core
from .._core import NoCudaError
from . import _contract, _driver, _native

__all__ = [
    "can_device_access_peer", "clock_rate", "current_device", "device", "device_count", "device_of", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags", "init",
    "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "list_gpu_processes",
    "memory_usage", "power_draw", "set_device", "synchronize",
    "temperature", "utilization",
]  # fmt: skip


def need(name: str) -> None:
    """Raise, for the function of that name, where there is no GPU."""
    if not _contract.count():
        raise NoCudaError(
            f"Torch not compiled with CUDA enabled (cuda.{name}): there is no CUDA device, as {_contract.why_none()}; "
            "put tensors and modules on device 'cpu'"
        )


def index_of(device: Any = None, optional: bool = True) -> int:
    """The index of a GPU that is given as a device, a name, an index or None for the current one.

    Args:
        device: the device.
        optional: whether the index may be left out.
    Returns:
        The index.
    Raises:
        RuntimeError: there is no such GPU.
        ValueError: it is another kind of device, or one without an index where there must be one.
    """
    need("current_device")
    if device is None:
        return _native.get_index()
    if isinstance(device, str):
        device = _core.device(device)
    if isinstance(device, _core.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        if device.index is None and not optional:
            raise ValueError(f"Expected a taeda.device with a specified index or an integer, but got:{device}")
        device = _native.get_index() if device.index is None else device.index
    index = int(device)
    if not 0 <= index < _contract.count():
        raise _driver.CudaError(
            f"CUDA error: invalid device ordinal: there are {_contract.count()} GPUs, and number {index} was asked for"
        )
    return index


def is_available() -> bool:
    """Whether tensors can be put on a GPU."""
    return _contract.count() > 0


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return bool(_contract.devices) and not _native.is_forked()


def init() -> None:
    """Look for the GPUs, as the first use does."""
    need("init")


def device_count() -> int:
    """The number of GPUs."""
    return _contract.count()


def current_device() -> int:
    """The index of this thread's current GPU."""
    return index_of(None)


def set_device(device: Any) -> None:
    """Choose this thread's current GPU; a negative index chooses none.

    Args:
        device: a device, its name or its index.
    Raises:
        RuntimeError: there is no such GPU.
    """
    if isinstance(device, int) and device < 0:
        return
    need("set_device")
    _native.set_index(index_of(device))


class device:
    """Context manager: within it, a GPU is the current one. None and negative indices change nothing."""

    def __init__(self, device: Any) -> None:
        if device is None or (isinstance(device, int) and device < 0):
            self.idx = -1
        elif isinstance(device, int):
            self.idx = device
        else:
            found = _core.device(device)
            if found.type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {found}")
            self.idx = found.index if found.index is not None else (_native.get_index() if is_available() else 0)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            need("device")
            self.prev_idx = _native.set_index(index_of(self.idx))

    def __exit__(self, *exc: Any) -> None:
        if self.idx >= 0:
            _native.set_index(self.prev_idx)


class device_of(device):
    """As :class:`device`, with the GPU of a tensor; nothing for a tensor on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device: Any = None) -> None:
    """Wait until all work on a GPU has ended.

    Args:
        device: a device, its name or index, or None for the current one.
    Raises:
        RuntimeError: there is no such GPU, or something that ran on it failed.
    """
    _contract.devices[index_of(device)].synchronize()


# ---- facts -----------------------------------------------------------------------------------------------------------

#: Names of facts, and the numbers of ``CU_DEVICE_ATTRIBUTE`` that give them.
_ATTRIBUTES = {
    "major": 75, "minor": 76, "multi_processor_count": 16, "max_threads_per_multi_processor": 39, "warp_size": 10,
    "regs_per_multiprocessor": 82, "shared_memory_per_block": 8, "shared_memory_per_block_optin": 97,
    "shared_memory_per_multiprocessor": 81, "L2_cache_size": 38, "is_integrated": 18, "is_multi_gpu_board": 84,
    "clock_rate": 13, "memory_clock_rate": 36, "memory_bus_width": 37, "pci_bus_id": 33, "pci_device_id": 34,
    "pci_domain_id": 50, "max_threads_per_block": 1,
}  # fmt: skip


class _CudaDeviceProperties:
    """Facts about a GPU, as attributes: ``name``, ``major``, ``minor``, ``total_memory`` (bytes),
    ``multi_processor_count``, ``warp_size``, ..."""

    def __init__(self, index: int) -> None:
        found = _contract.devices[index]
        text = ctypes.create_string_buffer(256)
        _driver.call("cuDeviceGetName", text, len(text), found.handle)
        self.name = text.value.decode()
        self.total_memory = _driver.get(_driver.SIZE, "cuDeviceTotalMem_v2", found.handle)
        for name, number in _ATTRIBUTES.items():
            setattr(self, name, found.attribute(number))
        self.gcnArchName = self.name
        uuid = ctypes.create_string_buffer(16)
        _driver.call("cuDeviceGetUuid_v2", uuid, found.handle)
        text_of = uuid.raw.hex()
        self.uuid = "-".join((text_of[:8], text_of[8:12], text_of[12:16], text_of[16:20], text_of[20:]))

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "  # type: ignore[attr-defined]
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count}, "  # type: ignore[attr-defined]
            f"uuid={self.uuid}, L2_cache_size={self.L2_cache_size // 2**20}MB)"  # type: ignore[attr-defined]
        )


def _describe(found: Any) -> dict[str, Any]:
    return {**vars(_CudaDeviceProperties(found.index)), "libraries": ", ".join(_contract.libraries())}


_contract.HOOKS["describe"] = _describe


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Facts about a GPU.

    Args:
        device: a device, its name or index, or None for the current one.
    Returns:
        The facts, as attributes.
    Raises:
        RuntimeError: there is no such GPU.
    """
    need("get_device_properties")
    return _CudaDeviceProperties(index_of(device))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    need("get_device_name")
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU: ``(9, 0)``, say."""
    need("get_device_capability")
    found = _contract.devices[index_of(device)]
    return found.attribute(_ATTRIBUTES["major"]), found.attribute(_ATTRIBUTES["minor"])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16: all that taeda runs on do. False without one."""
    return is_available()


def is_tf32_supported() -> bool:
    """Whether products of float32 may be computed in TF32: kernels here never do."""
    return False


def get_arch_list() -> list[str]:
    """The architectures that kernels are written for; the driver compiles them for newer ones. None without a GPU."""
    return ["compute_80"] if is_available() else []


def get_gencode_flags() -> str:
    """Compiler flags of those architectures."""
    return "-gencode compute=compute_80,code=compute_80" if is_available() else ""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU reads the memory of another one directly: copies between GPUs go by way of the host, so False."""
    index_of(device), index_of(peer_device)
    return False


def _managed(name: str) -> Any:
    def function(device: Any = None) -> Any:
        need(name)
        raise ModuleNotFoundError(f"cuda.{name}: it needs NVIDIA's management library, which taeda does not use")

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = __name__, "Refused: it would take NVIDIA's management library."
    return function


clock_rate, list_gpu_processes, memory_usage, power_draw, temperature, utilization = (
    _managed(n) for n in "clock_rate list_gpu_processes memory_usage power_draw temperature utilization".split()
)
