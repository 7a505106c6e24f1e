"""The processors (affinity, cgroup quota, environment) and the bytes of memory that this process may use."""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Iterator

_CGROUP = "/sys/fs/cgroup"
_CACHES = "/sys/devices/system/cpu/cpu0/cache"


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _cgroups(controller: str) -> Iterator[tuple[int, str]]:
    """``(version, folder)`` of every cgroup that bounds ``controller`` for this process, the innermost first."""
    for line in (_read("/proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        if names == "":
            version, root = 2, _CGROUP
        elif controller in names.split(","):
            version, root = 1, f"{_CGROUP}/{controller}"
        else:
            continue
        # In a container the path may be the host's, which is not mounted here: then only its tail or the root exists.
        while True:
            yield version, root + path.rstrip("/")
            if path in ("", "/"):
                break
            path = os.path.dirname(path)


def cpu_quota() -> float | None:
    """Processors that the cgroup CPU quota allows (1.5 is one and a half), or None where there is no quota."""
    found = []
    for version, folder in _cgroups("cpu"):
        if version == 2:
            words = (_read(f"{folder}/cpu.max") or "").split()
            quota, period = (_integer(words[0]), _integer(words[1])) if len(words) == 2 else (None, None)
        else:
            quota = _integer(_read(f"{folder}/cpu.cfs_quota_us"))
            period = _integer(_read(f"{folder}/cpu.cfs_period_us"))
        if quota and period and quota > 0:
            found.append(quota / period)
    return min(found, default=None)


def cpus() -> int:
    """Processors that this process may run on at once: its affinity, bounded by the cgroup quota (rounded up)."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, count if quota is None else min(count, math.ceil(quota)))


def default_threads() -> int:
    """Threads to compute with: ``TAEDA_NUM_THREADS``, else ``OMP_NUM_THREADS``, else :func:`cpus`.

    In a list, OpenMP's form for nested levels, the first number counts. Other values are ignored with a warning.
    """
    for name in ("TAEDA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if not value.strip():
            continue
        counts = [_integer(part.strip()) or 0 for part in value.split(",")]
        if min(counts) > 0:
            return counts[0]
        warnings.warn(
            f"{name}={value!r} is ignored: expected a positive number of threads; {cpus()} are used", stacklevel=2
        )
    return cpus()


@functools.cache
def caches() -> dict[int, int]:
    """Bytes of the data cache of each level, as the system says; 32 KiB, 512 KiB and 32 MiB where it does not."""
    sizes = {}
    for i in range(8):
        level, kind, size = (_read(f"{_CACHES}/index{i}/{name}") or "" for name in ("level", "type", "size"))
        if level.isdigit() and kind != "Instruction" and size.endswith("K") and size[:-1].isdigit():
            sizes[int(level)] = int(size[:-1]) << 10
    return sizes or {1: 1 << 15, 2: 1 << 19, 3: 1 << 25}


def last_cache() -> int:
    """Bytes of the last-level cache."""
    return max(caches().values())


@functools.cache
def stream_bytes() -> int:
    """The number of bytes moved by an op from which its results no longer fit the cache and are better stored past it.

    It is three quarters of the last-level cache. With 32 MiB (Zen 4), stores past the cache make ``a * 2`` that moves
    16 MB take 1.3 of the time, and ``a + b`` that moves 24 MB 0.7.
    """
    return last_cache() // 4 * 3


def memory() -> int:
    """Bytes that this process can ever have: RAM and swap, bounded by the cgroup limit (2**62 if nothing is known)."""
    total = 0
    for line in (_read("/proc/meminfo") or "").splitlines():
        name, _, rest = line.partition(":")
        if name in ("MemTotal", "SwapTotal"):
            total += int(rest.split()[0]) * 1024
    if not total:
        try:
            total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            total = 1 << 62
    for version, folder in _cgroups("memory"):
        limit = _integer(_read(f"{folder}/{'memory.max' if version == 2 else 'memory.limit_in_bytes'}"))
        if limit is not None and limit > 0:
            total = min(total, limit)
    return total
