"""GPU memory: how much is in use, and what the caching allocator holds.

Memory that a tensor leaves is kept, for the stream on which it was allocated, and given to the next tensor that fits.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import _contract, _driver, _native
from ._lacking import refused, refused_class
from ._native import MEMORIES, STATISTICS
from .devices import index_of, need
from .devices import list_gpu_processes as list_gpu_processes

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator", "device_memory_used",
    "empty_cache", "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_host_memory_stats", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip

CUDAPluggableAllocator = refused_class(__name__, "CUDAPluggableAllocator")

caching_allocator_disabled, caching_allocator_enable, change_current_allocator = (
    refused(__name__, name)
    for name in ("caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator")
)

owners = itertools.count(1)  # of memory of its own

_POOLS = ("all", "small_pool", "large_pool")
_WHEN = ("current", "peak", "allocated", "freed")


def _bytes(n: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.2f} {unit}"
        n /= 1024
    return f"{n:.2f} TiB"


def explain(memory: Any, nbytes: int) -> str:
    """The message of an OutOfMemoryError."""
    free, total = mem_get_info(memory.index)
    stats = memory_stats(memory.index)
    used, held = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
    limit = f" This process may have {_bytes(memory.limit)} of it." if memory.limit >= 0 else ""
    return (
        f"CUDA out of memory. Tried to allocate {_bytes(nbytes)}. GPU {memory.index} has a total capacity of "
        f"{_bytes(total)} of which {_bytes(free)} is free.{limit} {_bytes(used)} are in use by tensors of this process"
        f", and {_bytes(held - used)} are held for new ones. Free tensors, or use smaller batches"
    )


_contract.HOOKS["explain"] = explain


def _memory(device: Any) -> Any:
    """The allocator of a device; None: there is no device."""
    return MEMORIES[index_of(device)] if _contract.count() else None


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of a device's allocator, by PyTorch's names; empty without a device.

    Args:
        device: a device, its index, or None for the current one.
    Returns:
        ``{"allocated_bytes.all.current": ...}``: counts and bytes.
    """
    memory = _memory(device)
    if memory is None:
        return {}
    made: dict[str, Any] = {}
    for name, pools in zip(STATISTICS, memory.statistics(), strict=True):
        for pool, values in zip(_POOLS, pools, strict=True):
            for when, value in zip(_WHEN, values, strict=True):
                made[f"{name}.{pool}.{when}"] = value
    made |= {
        "num_alloc_retries": memory.retries, "num_ooms": memory.failures, "num_device_alloc": memory.device_allocations,
        "num_device_free": memory.device_releases, "num_sync_all_streams": memory.synchronisations,
        "max_split_size": -1,
    }  # fmt: skip
    made |= {f"oversize_{kind}.{when}": 0 for kind in ("allocations", "segments") for when in _WHEN}
    return dict(sorted(made.items()))


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        at = made
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return made


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """:func:`memory_stats` as dicts of dicts."""
    return _nested(memory_stats(device))


def host_memory_stats() -> dict[str, Any]:
    """Statistics of pinned memory: ``{"allocated_bytes.current": ...}``; empty without a device.

    None of it is cached, so that segments are allocations.
    """
    if not _contract.count():
        return {}
    made: dict[str, Any] = {
        f"{name}.{when}": value
        for of, names in _contract.PINNED.items()
        for name in names
        for when, value in zip(_WHEN, _contract.pinned_counts[of], strict=True)
    }
    counts = _contract.pinned_counts["allocations"]
    return dict(sorted((made | {"num_host_alloc": counts[2], "num_host_free": counts[3]}).items()))


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """:func:`host_memory_stats` as dicts of dicts."""
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Let the peaks of pinned memory be what is in use now."""
    for counts in _contract.pinned_counts.values():
        counts[1] = counts[0]


def reset_accumulated_host_memory_stats() -> None:
    """Forget how much memory was pinned and freed so far."""
    for counts in _contract.pinned_counts.values():
        counts[2] = counts[3] = 0


def _stat(name: str, device: Any) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors; 0 without a device."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use by tensors since the start, or :func:`reset_peak_memory_stats`."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator has from the driver."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator had from the driver."""
    return _stat("reserved_bytes.all.peak", device)


def memory_cached(device: Any = None) -> int:
    """The older name of :func:`memory_reserved`."""
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The older name of :func:`max_memory_reserved`."""
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks be what is in use now."""
    memory = _memory(device)
    if memory is not None:
        memory.reset_peaks()


def reset_max_memory_allocated(device: Any = None) -> None:
    """The older name of :func:`reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """The older name of :func:`reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Forget what was allocated and freed so far."""
    memory = _memory(device)
    if memory is not None:
        memory.reset_sums()


def empty_cache() -> None:
    """Give memory that no tensor is in back to the driver."""
    for memory in MEMORIES:
        memory.empty()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free and all memory of a device in bytes, as the driver sees it.

    Args:
        device: a device, its index, or None for the current one.
    Returns:
        Free bytes, and all bytes.
    Raises:
        RuntimeError: there is no device.
    """
    _native.enter_context(index_of(device))
    free, total = _driver.SIZE(), _driver.SIZE()
    _driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def device_memory_used(device: Any = None) -> int:
    """Bytes of a device's memory that are in use, by this process and others."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have at most that part of a device's memory; more is an :class:`OutOfMemoryError`.

    Args:
        fraction: from 0 to 1.
        device: a device, its index, or None for the current one.
    Raises:
        ValueError: the fraction is out of range.
        TypeError: it is no float.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    memory = MEMORIES[index_of(device)]
    memory.limit = int(fraction * mem_get_info(device)[1])


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part set by :func:`set_per_process_memory_fraction`; 1.0 at first."""
    memory = MEMORIES[index_of(device)]
    return 1.0 if memory.limit < 0 else memory.limit / mem_get_info(device)[1]


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """The allocator's segments on all devices, and their blocks."""
    made = []
    for memory in MEMORIES:
        for stream, owner, small, blocks in memory.snapshot():
            if mempool_id is not None and tuple(mempool_id) != (0, owner):
                continue
            inside = [
                {"address": address, "size": size, "requested_size": requested if used else 0,
                 "state": "active_allocated" if used else "inactive", "frames": []}
                for address, size, requested, used in blocks
            ]  # fmt: skip
            used_bytes = sum(b["size"] for b in inside if b["state"] == "active_allocated")
            made.append({
                "device": memory.index, "address": inside[0]["address"], "total_size": sum(b["size"] for b in inside),
                "allocated_size": used_bytes, "active_size": used_bytes,
                "requested_size": sum(b["requested_size"] for b in inside), "stream": stream,
                "segment_type": "small" if small else "large", "segment_pool_id": (0, owner), "is_expandable": False,
                "frames": [], "blocks": inside,
            })  # fmt: skip
    return made


class MemPool:
    """Memory of its own on the current GPU, for what is allocated within :func:`use_mem_pool`.

    It goes back to the driver when the pool and the tensors in it are gone and :func:`empty_cache` is called.

    Args:
        allocator: None; others are not there yet.
        use_on_oom: False; not there yet.
        no_split: False; not there yet.
    Raises:
        NotImplementedError: an option is given.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        need("MemPool")
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError("cuda.MemPool: options are not there yet")
        self._index = index_of(None)
        self.id = 0, next(owners)
        MEMORIES[self._index].hold(self.id[1], 1)
        weakref.finalize(self, MEMORIES[self._index].hold, self.id[1], -1).atexit = False

    allocator = None

    def use_count(self) -> int:
        """The number of pools and graphs that have this memory."""
        return MEMORIES[self._index].holds_for(self.id[1])

    def snapshot(self) -> list[dict[str, Any]]:
        """Its segments, as :func:`memory_snapshot` has them."""
        return memory_snapshot(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Within the block, this thread allocates on a GPU from a pool.

    Args:
        pool: of that GPU.
        device: a device, its index, or None for the pool's.
    Raises:
        RuntimeError: the pool is of another GPU.
    """
    index = pool._index if device is None else index_of(device)
    if index != pool._index:
        raise RuntimeError(f"cuda.use_mem_pool: the pool is of cuda:{pool._index}, got cuda:{index}")
    before = _native.set_owner(index, pool.id[1])
    try:
        yield
    finally:
        _native.set_owner(index, before)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of :func:`memory_stats`; empty without a device.

    Args:
        device: a device, its index, or None for the current one.
        abbreviated: leave out the parts for small and large blocks.
    Returns:
        Text of several lines.
    """
    if _memory(device) is None:
        return ""
    stats, index = memory_stats(device), index_of(device)
    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("Allocated memory", "allocated_bytes", _bytes), ("Active memory", "active_bytes", _bytes),
        ("Requested memory", "requested_bytes", _bytes), ("GPU reserved memory", "reserved_bytes", _bytes),
        ("Non-releasable memory", "inactive_split_bytes", _bytes), ("Allocations", "allocation", str),
        ("Active allocs", "active", str), ("GPU reserved segments", "segment", str),
        ("Non-releasable allocs", "inactive_split", str),
    ]  # fmt: skip
    line = "|" + "=" * 75 + "|"
    ooms, retries = f"  CUDA OOMs: {stats['num_ooms']}", f" cudaMalloc retries: {stats['num_alloc_retries']}"
    text = [
        line, "|" + f"CUDA memory summary, device ID {index}".center(75) + "|", "|" + "-" * 75 + "|",
        f"|{ooms:<37}|{retries:<37}|", line,
        "|" + "|".join(f"{name:^{width}}" for name, width in zip(
            ("Metric", "Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed"), (23, 12, 12, 12, 12), strict=True)) + "|",
    ]  # fmt: skip
    for title, name, shown in rows:
        text.append("|" + "-" * 75 + "|")
        for pool in _POOLS[:1] if abbreviated else _POOLS:
            label = title if pool == "all" else f"      from {pool.replace('_', ' ')}"
            cells = [f"{shown(stats[f'{name}.{pool}.{when}']):>11} " for when in _WHEN]
            text.append(f"| {label:<22}|" + "|".join(cells) + "|")
    return "\n".join([*text, line]) + "\n"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of ``size`` bytes of a device's memory.

    Args:
        size: bytes.
        device: a device, its index, or None for the current one.
        stream: on which it is used first: a :class:`Stream`, its handle, or None for the current one.
    Returns:
        The address.
    """
    index = index_of(device)
    handle = _native.get_stream(index) if stream is None else getattr(stream, "cuda_stream", stream)
    address = _native.take_memory(index, size, handle)
    _held[address] = index
    return address


_held: dict[int, int] = {}  # indices of devices, by the addresses of what was given out


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what :func:`caching_allocator_alloc` gave."""
    _native.release_memory(_held.pop(mem_ptr), mem_ptr)


def get_allocator_backend() -> str:
    """The allocator of GPU memory: "native"."""
    return "native"
