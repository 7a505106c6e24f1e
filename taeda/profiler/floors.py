"""The rates of this machine: bytes per second by the size of the working set, and arithmetic per second.

They are measured once for each number of threads and kept beside the compiled kernels. The floor of an op is the longer
of two times: that of moving as many bytes as its tensors have, and that of its arithmetic at the rate of the matrix
product's inner loop. Data that an op finds in a cache is compared with moving within that cache.

The copied memory may not be zeros: processors of AMD write zeros past the cache at twice the rate of anything else.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..kernels import build
from ..kernels.files import read_regular
from ..kernels.target import host

_SIZES = tuple(1 << n for n in range(14, 27, 2))  # bytes that each thread copies: 16 KiB to 64 MiB
_VERSION = 2


@dataclass(frozen=True)
class Floors:
    """Measured rates of this machine, at best. :func:`measure_floors` makes it.

    Args:
        threads: how many worked.
        copies: pairs (bytes read and written, bytes per second), by size.
        flops: float32 operations per second in the inner loop of the matrix product, a multiplication and an addition
            being two.
        reads: pairs (bytes read, bytes per second), by size; none: as copies.

    Examples:
        >>> floors = taeda.profiler.Floors(threads=1, copies=[(1e6, 1e10)], flops=1e11)
        >>> floors.seconds(moved=1e6, flops=0.0)  # a megabyte at 10 GB/s
        0.0001
    """

    threads: int
    copies: tuple[tuple[int, float], ...]
    flops: float
    reads: tuple[tuple[int, float], ...] = ()

    def bandwidth(self, nbytes: float, written: float = 0.5) -> float:
        """Bytes per second of an op that moves ``nbytes`` in all and writes the share ``written`` of them.

        A copy writes half. Between reading alone and copying the rate is interpolated, and so it is between the sizes
        that were measured; what writes more than half is compared with a copy.
        """
        copy = _between(self.copies, nbytes)
        if not self.reads or written >= 0.5:
            return copy
        read = _between(self.reads, nbytes)
        return read + 2 * written * (copy - read)

    def seconds(self, moved: float, flops: float, calls: int = 1, written: float | None = None) -> float:
        """The floor of ``calls`` calls that need ``flops`` operations together and move ``moved`` bytes.

        ``written`` of these are written; None: half.
        """
        share = 0.5 if written is None or not moved else written / moved
        memory = moved / self.bandwidth(moved / calls, share) if moved else 0.0
        return max(memory, flops / self.flops)


def _between(rates: tuple[tuple[int, float], ...], nbytes: float) -> float:
    """The rate at ``nbytes``, between the sizes that were measured."""
    below = rates[0]
    for above in rates:
        if nbytes <= above[0]:
            break
        below = above
    if above[0] == below[0]:
        return above[1]
    part = (math.log(nbytes) - math.log(below[0])) / (math.log(above[0]) - math.log(below[0]))
    return below[1] + min(part, 1.0) * (above[1] - below[1])


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _best(run: Callable[[int], None], seconds: float) -> float:
    """Seconds of one turn of ``run(turns)``, the fastest of many tries within about ``seconds``."""
    turns = 1
    while True:
        start = time.perf_counter()
        run(turns)
        took = time.perf_counter() - start
        if took > 1e-3:
            break
        turns *= 4
    best = math.inf
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        start = time.perf_counter()
        run(turns)
        best = min(best, (time.perf_counter() - start) / turns)
    return best


def _numbers(nbytes: int) -> Any:
    """A float32 tensor of so many bytes that counts from 0."""
    from ..kernels import copy

    made = _core.empty((nbytes // 4,), _core.float32)
    _core.launch(copy.sequence("float32"), (made,), (0.0, 1.0), nbytes // 4, nbytes // 4)
    return made


def _read_rate(size: int, threads: int) -> float:
    from ..kernels import floor

    source, sums = _numbers(size * threads), _core.empty((threads * host().vector_bytes // 4,), _core.float32)
    address = floor.read()
    seconds = _best(lambda turns: _core.launch(address, (sums, source), (size, turns), threads, 1), 0.06)
    return size * threads / seconds


def _copy_rate(size: int, threads: int) -> float:
    from ..kernels import floor

    source, to = _numbers(size * threads), _numbers(size * threads)
    best = 0.0
    for nontemporal in (False, True) if size >= 1 << 20 else (False,):

        def turns(count: int, address: int = floor.stream(nontemporal)) -> None:
            _core.launch(address, (to, source), (size, count), threads, 1)

        seconds = _best(turns, 0.06)
        best = max(best, 2 * size * threads / seconds)
    return best


def _tile_rate(threads: int) -> float:
    from ..kernels import floor
    from ..kernels.tile import tile_shape

    shape, lanes, k = tile_shape(host().vector_bytes), host().vector_bytes // 4, 64
    out = _core.empty((threads * shape.rows * shape.vectors * lanes,), _core.float32)
    a, b = (
        _core.empty((k * shape.pitch + lanes,), _core.float32),
        _core.empty((k * shape.vectors * lanes,), _core.float32),
    )
    for t in (out, a, b):
        _core.zero(t)
    address = floor.tile_rate("float32")
    seconds = _best(lambda turns: _core.launch(address, (out, a, b), (k, turns), threads, 1), 0.25)
    return 2 * shape.rows * shape.vectors * lanes * k * threads / seconds


def measure_floors(threads: int | None = None, refresh: bool = False) -> Floors:
    """The rates of this machine with so many threads. It takes about two seconds the first time, then reads a file.

    Args:
        threads: at most ``taeda.get_num_threads()`` work at a time; as many as ops use if None.
        refresh: measure again although there is a file.

    Returns:
        A :class:`Floors`.

    Examples:
        >>> floors = taeda.profiler.measure_floors()
        >>> floors.flops > 1e8
        True
    """
    threads = _core.get_num_threads() if threads is None else threads
    path = build.cache_dir() / "floors.json"
    key = f"{_VERSION} {_cpu()} {host().key} {threads}"
    kept: dict = {}
    try:
        kept = json.loads(read_regular(path) or b"{}")
        if key in kept and not refresh:
            found = kept[key]
            pairs = (tuple(map(tuple, found[name])) for name in ("copies", "reads"))
            return Floors(found["threads"], next(pairs), found["flops"], next(pairs))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    before = _core.get_num_threads()
    if threads != before:
        _core.set_num_threads(threads)
    try:
        copies = tuple((2 * size * threads, _copy_rate(size, threads)) for size in _SIZES)
        reads = tuple((size * threads, _read_rate(size, threads)) for size in _SIZES)
        floors = Floors(threads, copies, _tile_rate(threads), reads)
    finally:
        if threads != before:
            _core.set_num_threads(before)
    build.write_to_cache(path, json.dumps({**kept, key: asdict(floors)}).encode())
    return floors
