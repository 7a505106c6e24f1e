"""Collectives of Python objects, which travel pickled: receive them from processes that you trust only.

Pickles are read here and nowhere else. Each collective is one of numbers, the sizes, and one of bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from .._core import int64, uint8
from .._typed import Tensor
from ..ops.creation import empty, zeros
from ..ops.exchange import frombuffer, tensor
from .collectives import _group_rank, _member
from .engines.contract import Call
from .groups import ProcessGroup


def _packed(obj: Any) -> Tensor:
    return frombuffer(bytearray(pickle.dumps(obj)), dtype=uint8)


def _unpacked(data: Tensor) -> Any:
    return pickle.loads(memoryview(data.numpy()))  # type: ignore[arg-type]


def _exchange(group: ProcessGroup, doing: str, payloads: Sequence[Tensor | None], expected: Sequence[int]) -> list:
    """Send ``payloads[i]`` to process ``i``, where there is one; the objects from the processes ``expected``, by
    rank."""
    parts = [empty(0, dtype=uint8, device="cpu") if p is None else p for p in payloads]
    sizes = tensor([p.numel() for p in parts], device="cpu")
    sent = zeros(group.size(), dtype=int64, device="cpu")
    _run(group, f"{doing}, sizes", lambda call: group.engine.all_to_all(call, sent.split(1), sizes.split(1)))
    counts = sent.tolist()
    if [rank for rank, count in enumerate(counts) if count] != list(expected):
        raise RuntimeError(f"{doing}: expected objects from ranks {list(expected)}, got sizes {counts}")
    slots = [empty(count, dtype=uint8, device="cpu") for count in counts]
    _run(group, doing, lambda call: group.engine.all_to_all(call, slots, parts))
    return [_unpacked(slots[rank]) for rank in expected]


def _run(group: ProcessGroup, doing: str, begin: Callable[[Call], Any]) -> None:
    group.run(doing, begin, list)


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """Put the ``obj`` of process ``i`` at ``object_list[i]``, at each process."""
    processes = _member("all_gather_object", group)
    if processes is None:
        return
    mine = _packed(obj)
    size = processes.size()
    _check_length("all_gather_object", object_list, size)
    object_list[:] = _exchange(processes, "all_gather_object()", [mine] * size, range(size))


def gather_object(
    obj: Any, object_gather_list: list | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Put the ``obj`` of process ``i`` at ``object_gather_list[i]`` of process ``dst``, 0 by default."""
    processes = _member("gather_object", group)
    if processes is None:
        return
    root = _group_rank(processes, dst, group_dst, 0, "gather_object")
    if processes.rank() != root and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    if processes.rank() == root:
        if not object_gather_list:
            raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
        _check_length("gather_object", object_gather_list, processes.size())
    mine = _packed(obj)
    to = [mine if rank == root else None for rank in range(processes.size())]
    expected = range(processes.size() if processes.rank() == root else 0)
    found = _exchange(processes, f"gather_object(dst={root})", to, expected)
    if object_gather_list is not None and found:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Replace the objects in each process's list by those of process ``src``, 0 by default."""
    processes = _member("broadcast_object_list", group)
    if processes is None:
        return
    root = _group_rank(processes, src, group_src, 0, "broadcast_object_list")
    doing = f"broadcast_object_list({len(object_list)} objects, src={root})"
    mine = _packed(list(object_list)) if processes.rank() == root else None
    to = [mine if rank != root else None for rank in range(processes.size())]
    found = _exchange(processes, doing, to, [root] if processes.rank() != root else [])
    if found:
        object_list[:] = found[0]


def scatter_object_list(
    scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put object ``i`` of the input list of process ``src``, 0 by default, first into the output list of process
    ``i``."""
    processes = _member("scatter_object_list", group)
    if processes is None:
        return
    root = _group_rank(processes, src, group_src, 0, "scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    to: list[Tensor | None] = [None] * processes.size()
    if processes.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        _check_length("scatter_object_list", scatter_object_input_list, processes.size())
        to = [None if rank == root else _packed(obj) for rank, obj in enumerate(scatter_object_input_list)]
        scatter_object_output_list[0] = scatter_object_input_list[root]
    found = _exchange(processes, f"scatter_object_list(src={root})", to, [root] if processes.rank() != root else [])
    if found:
        scatter_object_output_list[0] = found[0]


def send_object_list(
    object_list: list, dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects to process ``dst``, which has to :func:`recv_object_list` them."""
    processes = _member("send_object_list", group)
    if processes is None:
        return
    to = _group_rank(processes, dst, group_dst, 0, "send_object_list")
    if to == processes.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    payload = _packed(list(object_list))
    doing = f"message({len(object_list)} objects)"
    size = tensor([payload.numel()], device="cpu")
    for work in [processes.engine.send(x, to, 0, doing) for x in (size, payload)]:
        work.wait()


def recv_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """Put the objects that process ``src`` sends, or whichever does if None, into the list; gives the sender's rank."""
    processes = _member("recv_object_list", group)
    if processes is None:
        return -1
    anyone = src is None and group_src is None
    ranks = processes.others if anyone else [_group_rank(processes, src, group_src, 0, "recv_object_list")]
    doing = f"message({len(object_list)} objects)"
    size = zeros(1, dtype=int64, device="cpu")
    work = processes.engine.receive(size, ranks, 0, doing)
    work.wait()
    payload = empty(size.item(), dtype=uint8, device="cpu")
    processes.engine.receive(payload, [work.source], 0, doing).wait()
    object_list[:] = _unpacked(payload)
    return processes.ranks[work.source]


def _check_length(name: str, objects: list, size: int) -> None:
    if not isinstance(objects, list):
        raise TypeError(
            f"{name}: expected a list of {size} objects, one for each process, got {type(objects).__name__}"
        )
    if len(objects) != size:
        raise RuntimeError(f"{name}: expected a list of {size} objects, one for each process, got {len(objects)}")


__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip
