"""Collectives of Python objects, which travel pickled: receive them from processes that you trust only."""

from __future__ import annotations

import pickle
from typing import Any

from .collectives import _group_rank, _member, _tagged
from .links import Key


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """Put the ``obj`` of process ``i`` at ``object_list[i]``, at each process."""
    processes = _member("all_gather_object", group)
    if processes is None:
        return
    mine = pickle.dumps(obj)
    _check_length("all_gather_object", object_list, processes.size())

    def body(key: Key) -> None:
        for rank in processes.others:
            processes.send(rank, key, "all_gather_object()", mine)
        object_list[processes.rank()] = pickle.loads(mine)
        for rank in processes.others:
            object_list[rank] = pickle.loads(processes.receive([rank], key, "all_gather_object()")[2])

    processes.run(body)


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
    mine = pickle.dumps(obj)
    doing = f"gather_object(dst={root})"

    def body(key: Key) -> None:
        if object_gather_list is None or processes.rank() != root:
            processes.send(root, key, doing, mine)
            return
        object_gather_list[root] = pickle.loads(mine)
        for rank in processes.others:
            object_gather_list[rank] = pickle.loads(processes.receive([rank], key, doing)[2])

    processes.run(body)


def broadcast_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Put the objects in the list of process ``src``, 0 by default, into those of the others."""
    processes = _member("broadcast_object_list", group)
    if processes is None:
        return
    root = _group_rank(processes, src, group_src, 0, "broadcast_object_list")
    doing = f"broadcast_object_list({len(object_list)} objects, src={root})"

    def body(key: Key) -> None:
        if processes.rank() != root:
            object_list[:] = pickle.loads(processes.receive([root], key, doing)[2])
        elif processes.others:
            payload = pickle.dumps(list(object_list))
            for rank in processes.others:
                processes.send(rank, key, doing, payload)

    processes.run(body)


def scatter_object_list(
    scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put object ``i`` of the input list of process ``src``, 0 by default, first into the output list of process ``i``."""
    processes = _member("scatter_object_list", group)
    if processes is None:
        return
    root = _group_rank(processes, src, group_src, 0, "scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if processes.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        _check_length("scatter_object_list", scatter_object_input_list, processes.size())
    doing = f"scatter_object_list(src={root})"

    def body(key: Key) -> None:
        if scatter_object_input_list is None or processes.rank() != root:
            scatter_object_output_list[0] = pickle.loads(processes.receive([root], key, doing)[2])
            return
        for rank in processes.others:
            processes.send(rank, key, doing, pickle.dumps(scatter_object_input_list[rank]))
        scatter_object_output_list[0] = scatter_object_input_list[root]

    processes.run(body)


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
    doing = f"message({len(object_list)} objects)"
    processes.send(to, _tagged(processes, 0), doing, pickle.dumps(list(object_list)))


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
    rank, _, payload = processes.receive(ranks, _tagged(processes, 0), f"message({len(object_list)} objects)")
    object_list[:] = pickle.loads(payload)
    return processes.ranks[rank]


def _check_length(name: str, objects: list, size: int) -> None:
    if len(objects) != size:
        raise RuntimeError(f"{name}: expected a list of {size} objects, one for each process, got {len(objects)}")


__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
    "scatter_object_list", "send_object_list",
]  # fmt: skip
