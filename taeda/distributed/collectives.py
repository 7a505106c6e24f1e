"""Collectives: operations on tensors that all processes of a group call together.

These functions check arguments, lay tensors out as flat memory, and copy results back if that memory is not the
tensors' own. The group's engine moves the memory (``engines/contract.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from .. import _core
from .._core import int64, strided
from .._typed import Tensor
from ..autograd import no_grad
from ..ops import exchange
from ..ops.creation import zeros
from ..ops.joining import cat
from ..ops.sparse import sparse_coo_tensor
from ..types import sparse_coo
from .engines.contract import Call, Engine
from .groups import ProcessGroup, check_timeout, resolve, warn_not_in_group
from .reduction import ReduceOp, check_op
from .work import Work, done


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type taeda.Tensor\n"
            f"             but got {type(value)} instead."
        )
    if value.layout is not strided:
        raise ValueError(f"`{name}`: expected a dense tensor, got layout {value.layout}; use to_dense()")
    return value.detach()


def _tensors(values: Any, name: str) -> list[Tensor]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[taeda.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    return [_tensor(value, name) for value in values]


def _same_dtype(*tensors: Tensor) -> None:
    for t in tensors[1:]:
        if t.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and {t.dtype}")


def _engine(processes: ProcessGroup, tensor: Tensor) -> Engine:
    """The group's engine for tensors of that device."""
    return processes.engine_for(tensor.device)


def _read(tensor: Tensor) -> Tensor:
    """The elements as flat memory: the tensor's own where it is contiguous."""
    return tensor.contiguous().reshape(-1)


class _Written:
    """Flat memory for tensors that are written to: their own where they are contiguous."""

    def __init__(self, *tensors: Tensor, result: list | None = None) -> None:
        self.tensors = tensors
        self.result = list(tensors) if result is None else result
        self.flats = [_read(t) for t in tensors]

    def finish(self) -> list:
        """Copy results to tensors that are not their own memory. Returns the result of the collective's Work."""
        for tensor, flat in zip(self.tensors, self.flats, strict=True):
            if not tensor.is_contiguous():
                tensor.copy_(flat.reshape(tensor.shape))
        return self.result


def _doing(name: str, tensor: Tensor | None = None, *more: str) -> str:
    of = [] if tensor is None else [f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"]
    return f"{name}({', '.join([*of, *more])})"


def _member(name: str, group: Any) -> ProcessGroup | None:
    found = resolve(group)
    if found is None:
        warn_not_in_group(name)
    return found


def _group_rank(group: ProcessGroup, world: int | None, inner: int | None, default: int | None, name: str) -> int:
    """A rank in ``group``, given as one in the world or in the group."""
    if world is not None and inner is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if world is None and inner is None:
        if default is None:
            raise ValueError("Must specify global_rank or group_rank")
        world = default
    if inner is not None:
        if not 0 <= inner < group.size():
            raise ValueError(f"{name}: expected a rank from 0 to {group.size() - 1} in the group, got {inner}")
        return inner
    if world not in group.ranks:
        if group.size() == len(group.ranks) and group.ranks == list(range(group.size())):
            raise RuntimeError(f"{name}: invalid root rank: {world}")
        raise ValueError(f"Global rank {world} is not part of group {group}")
    return group.ranks.index(world)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combine the ``tensor`` of all processes elementwise; each process's ``tensor`` gets the result.

    Args:
        tensor: any shape and dtype, the same everywhere; written to.
        op: how to combine.
        group: the processes, all by default.
        async_op: go on meanwhile; ``wait()`` on what is returned before using the tensor.
    Returns:
        What to ``wait()`` on with ``async_op``, else None.
    Raises:
        RuntimeError: a process is gone, does something else, or did not come in time.
    """
    if isinstance(tensor, Tensor) and tensor.layout is sparse_coo:
        return sparse_all_reduce(tensor, op, group)
    value = _tensor(tensor, "tensor")
    processes = _member("all_reduce", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    op = check_op("all_reduce", op, value)
    out = _Written(value, result=[tensor])

    def begin(call: Call) -> Any:
        return engine.all_reduce(call, out.flats[0], op)

    return processes.run(_doing("all_reduce", value, op.name), begin, out.finish, async_op, engine)


def sparse_all_reduce(tensor: Tensor, op: Any, group: Any) -> Work | None:
    """:func:`all_reduce` of sparse tensors, whose numbers of elements may differ; over when it returns."""
    processes = _member("all_reduce", group)
    if processes is None:
        return None
    if op is not ReduceOp.SUM:
        raise ValueError(f"all_reduce: expected ReduceOp.SUM for sparse tensors, got {op!r}")
    own: Any = tensor.detach().coalesce()
    counts = zeros(processes.size(), dtype=int64, device=tensor.device)
    all_gather_into_tensor(counts, exchange.tensor([own.values().shape[0]], device=tensor.device), processes)
    longest = int(counts.max())

    def everyones(part: Tensor) -> Tensor:
        """The rows of all processes, one after the other."""
        padded = part.new_zeros(longest, *part.shape[1:])
        padded[: part.shape[0]] = part
        rows = part.new_empty(processes.size(), *padded.shape)
        all_gather_into_tensor(rows, padded, processes)
        return cat([r[:n] for r, n in zip(rows, counts.tolist(), strict=True)])

    indices, values = everyones(own.indices().t().contiguous()), everyones(own.values())
    with no_grad():
        tensor.copy_(sparse_coo_tensor(indices.t(), values, own.shape).coalesce())
    return done([tensor])


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """:func:`all_reduce` of several tensors of one dtype at once."""
    values = [_tensor(tensors, "tensors")] if isinstance(tensors, Tensor) else _tensors(tensors, "tensors")
    processes = _member("all_reduce_coalesced", group)
    if processes is None or not values:
        return None
    engine = _engine(processes, values[0])
    _same_dtype(*values)
    op = check_op("all_reduce_coalesced", op, values[0])
    flat = cat([v.reshape(-1) for v in values])

    def begin(call: Call) -> Any:
        return engine.all_reduce(call, flat, op)

    def finish() -> list[Tensor]:
        for value, part in zip(values, flat.split([v.numel() for v in values]), strict=True):
            value.copy_(part.reshape(value.shape))
        return values

    return processes.run(_doing("all_reduce_coalesced", flat, op.name), begin, finish, async_op, engine)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the ``tensor`` of process ``src`` to the ``tensor`` of the others."""
    value = _tensor(tensor, "tensor")
    processes = _member("broadcast", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    root = _group_rank(processes, src, group_src, None, "broadcast")
    out = _Written(value, result=[tensor])

    def begin(call: Call) -> Any:
        return engine.broadcast(call, out.flats[0], root)

    finish = out.finish if processes.rank() != root else lambda: [tensor]  # what was not written is not copied
    return processes.run(_doing("broadcast", value, f"src={root}"), begin, finish, async_op, engine)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Combine the ``tensor`` of all processes into the ``tensor`` of ``dst``; the others keep theirs."""
    value = _tensor(tensor, "tensor")
    processes = _member("reduce", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    root = _group_rank(processes, dst, group_dst, None, "reduce")
    op = check_op("reduce", op, value)
    out = _Written(value, result=[tensor])

    def begin(call: Call) -> Any:
        return engine.reduce(call, out.flats[0], op, root)

    finish = out.finish if processes.rank() == root else lambda: [tensor]
    return processes.run(_doing("reduce", value, op.name, f"dst={root}"), begin, finish, async_op, engine)


def _check_list(name: str, group: ProcessGroup, tensors: list[Tensor], like: Tensor, which: str) -> None:
    if len(tensors) != group.size():
        raise RuntimeError(
            f"{name}: invalid {which} tensor list at index 0 (expected length {group.size()}, got {len(tensors)})"
        )
    _same_dtype(like, *tensors)
    for i, t in enumerate(tensors):
        if t.shape != like.shape:
            raise RuntimeError(
                f"{name}: invalid tensor size at index {i} (expected {tuple(like.shape)}, got {tuple(t.shape)})"
            )


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the ``tensor`` of process ``i`` to ``tensor_list[i]``, at each process."""
    slots = _tensors(tensor_list, "tensor_list")
    value = _tensor(tensor, "tensor")
    processes = _member("all_gather", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    _check_list("all_gather", processes, slots, value, "output")
    out, flat = _Written(*slots, result=tensor_list), _read(value)

    def begin(call: Call) -> Any:
        return engine.all_gather(call, out.flats, flat)

    return processes.run(_doing("all_gather", value), begin, out.finish, async_op, engine)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """:func:`all_gather` of several tensors: ``output_tensor_lists[i]`` gets the tensors of process ``i``."""
    work = None
    for i, tensor in enumerate(input_tensor_list):
        work = all_gather([outputs[i] for outputs in output_tensor_lists], tensor, group, async_op)
    return work


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the ``input_tensor`` of all processes, one after the other or stacked, to ``output_tensor``."""
    output, value = _tensor(output_tensor, "output_tensor"), _tensor(input_tensor, "input_tensor")
    processes = _member("all_gather_into_tensor", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    _same_dtype(output, value)
    if output.numel() != value.numel() * processes.size():
        raise RuntimeError(
            f"all_gather_into_tensor: expected an output of {processes.size()} times the input's "
            f"{value.numel()} elements, got {output.numel()}"
        )
    out, flat = _Written(output, result=[output_tensor]), _read(value)
    slots = list(out.flats[0].tensor_split(processes.size()))

    def begin(call: Call) -> Any:
        return engine.all_gather(call, slots, flat)

    return processes.run(_doing("all_gather_into_tensor", value), begin, out.finish, async_op, engine)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Write the ``tensor`` of process ``i`` to ``gather_list[i]`` at process ``dst``, 0 by default."""
    value = _tensor(tensor, "tensor")
    slots = _tensors(gather_list or [], "gather_list")
    processes = _member("gather", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    root = _group_rank(processes, dst, group_dst, 0, "gather")
    if processes.rank() != root and slots:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if processes.rank() == root:
        if not slots:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list("gather", processes, slots, value, "output")
    out, flat = _Written(*slots, result=gather_list or []), _read(value)

    def begin(call: Call) -> Any:
        return engine.gather(call, out.flats, flat, root)

    return processes.run(_doing("gather", value, f"dst={root}"), begin, out.finish, async_op, engine)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Write ``scatter_list[i]`` of process ``src``, 0 by default, to the ``tensor`` of process ``i``."""
    value = _tensor(tensor, "tensor")
    parts = _tensors(scatter_list or [], "scatter_list")
    processes = _member("scatter", group)
    if processes is None:
        return None
    engine = _engine(processes, value)
    root = _group_rank(processes, src, group_src, 0, "scatter")
    if processes.rank() != root and parts:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    if processes.rank() == root:
        if not parts:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_list("scatter", processes, parts, value, "input")
    out, flats = _Written(value, result=[tensor]), [_read(part) for part in parts]

    def begin(call: Call) -> Any:
        return engine.scatter(call, out.flats[0], flats, root)

    return processes.run(_doing("scatter", value, f"src={root}"), begin, out.finish, async_op, engine)


def _scatter_reduced(
    name: str, output: Tensor, parts: list[Tensor], op: Any, processes: ProcessGroup, async_op: bool
) -> Work | None:
    op = check_op(name, op, output)
    engine = _engine(processes, output)
    out, flats = _Written(output), [_read(part) for part in parts]

    def begin(call: Call) -> Any:
        return engine.reduce_scatter(call, out.flats[0], flats, op)

    return processes.run(_doing(name, output, op.name), begin, out.finish, async_op, engine)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine ``input_list[i]`` of all processes into the ``output`` of process ``i``."""
    made, parts = _tensor(output, "output"), _tensors(input_list, "input_list")
    processes = _member("reduce_scatter", group)
    if processes is None:
        return None
    _check_list("reduce_scatter", processes, parts, made, "input")
    return _scatter_reduced("reduce_scatter", made, parts, op, processes, async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine part ``i`` of the ``input`` of all processes into the ``output`` of process ``i``."""
    made, value = _tensor(output, "output"), _tensor(input, "input")
    processes = _member("reduce_scatter_tensor", group)
    if processes is None:
        return None
    _same_dtype(made, value)
    if value.numel() != made.numel() * processes.size():
        raise RuntimeError(
            f"reduce_scatter_tensor: expected an input of {processes.size()} times the output's {made.numel()} "
            f"elements, got {value.numel()}"
        )
    parts = list(_read(value).tensor_split(processes.size()))
    return _scatter_reduced("reduce_scatter_tensor", made, parts, op, processes, async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Write ``input_tensor_list[j]`` of process ``i`` to ``output_tensor_list[i]`` of process ``j``."""
    outputs, inputs = (
        _tensors(output_tensor_list, "output_tensor_list"),
        _tensors(input_tensor_list, "input_tensor_list"),
    )
    processes = _member("all_to_all", group)
    if processes is None:
        return None
    for which, tensors in (("input", inputs), ("output", outputs)):
        if len(tensors) != processes.size():
            raise RuntimeError(
                f"all_to_all: {which} tensor list size {len(tensors)} does not match world size {processes.size()}"
            )
    _same_dtype(*inputs, *outputs)
    return _exchange("all_to_all", _Written(*outputs), [_read(x) for x in inputs], processes, async_op)


def _exchange(
    name: str, out: _Written, parts: list[Tensor], processes: ProcessGroup, async_op: bool,
    slots: Sequence[Tensor] | None = None,
) -> Work | None:  # fmt: skip
    slots = out.flats if slots is None else slots
    own = processes.rank()
    engine = _engine(processes, parts[0])
    if slots[own].numel() != parts[own].numel():
        raise RuntimeError(
            f"{name}: expected an output of {parts[own].numel()} elements for this process's own input, got "
            f"{slots[own].numel()}"
        )

    def begin(call: Call) -> Any:
        return engine.all_to_all(call, slots, parts)

    doing = f"{name}({str(parts[0].dtype).rpartition('.')[2]})"
    return processes.run(doing, begin, out.finish, async_op, engine)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """:func:`all_to_all` of the parts of ``input`` along its first dimension, equal ones unless sizes are given."""
    made, value = _tensor(output, "output"), _tensor(input, "input")
    processes = _member("all_to_all_single", group)
    if processes is None:
        return None
    _same_dtype(made, value)

    def parts(tensor: Tensor, flat: Tensor, sizes: list[int] | None) -> list[Tensor]:
        rows = tensor.shape[0]
        if not sizes:
            if rows % processes.size():
                raise RuntimeError(
                    f"Tensor's dim 0 does not divide equally across group size: {rows} rows, "
                    f"{processes.size()} processes"
                )
            sizes = [rows // processes.size()] * processes.size()
        if len(sizes) != processes.size() or sum(sizes) != rows:
            raise RuntimeError(
                f"Split sizes doesn't match total dim 0 size: {list(sizes)}, {rows} rows, {processes.size()} processes"
            )
        row = flat.numel() // max(rows, 1)
        return list(flat.split([size * row for size in sizes]))

    out = _Written(made)
    slots, flats = parts(made, out.flats[0], output_split_sizes), parts(value, _read(value), input_split_sizes)
    return _exchange("all_to_all_single", out, flats, processes, async_op, slots)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all processes of the group are here.

    Args:
        group: the processes, all by default.
        async_op: go on meanwhile.
        device_ids: the GPU by which NCCL waits; the one of ``init_process_group``, or the current one, by default.
        timeout: that of the group by default.

    Returns:
        What to ``wait()`` on with ``async_op``, else None.
    """
    processes = _member("barrier", group)
    if processes is None:
        return None
    device = processes.own_device()
    if device.type != "cpu":
        device = _core.device(device.type, device_ids[0]) if isinstance(device_ids, list) else _current(device)
    engine = processes.engine_for(device)

    def begin(call: Call) -> Any:
        return engine.barrier(call, timeout or processes.timeout)

    return processes.run("barrier()", begin, list, async_op, engine)


def _current(device: Any) -> Any:
    """``device`` with its index."""
    return zeros(0, device=device).device


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """:func:`barrier`. The error names the rank that did not come, as in every collective here.

    Args:
        group: the processes, all by default.
        timeout: that of the group by default.
        wait_all_ranks: accepted.

    Raises:
        TypeError: ``timeout`` is no timedelta.
    """
    if timeout is not None:
        check_timeout(timeout)
    barrier(group, timeout=timeout)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send ``tensor`` to process ``dst``, which has to :func:`recv` it under the same ``tag``."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Like :func:`send`, without waiting. The tensor must not be written to until ``wait()`` on the returned work."""
    value = _tensor(tensor, "tensor")
    processes = _member("send", group)
    if processes is None:
        return None
    to = _group_rank(processes, dst, group_dst, None, "send")
    if to == processes.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    return _engine(processes, value).send(_read(value), to, tag, _doing("message", value))


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Write what process ``src`` sends, or whichever does if None, to ``tensor``; gives the sender's rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    processes = resolve(group)
    assert processes is not None
    return processes.ranks[work.source]


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Like :func:`recv`, without waiting. The tensor is complete after ``wait()`` on the returned work."""
    value = _tensor(tensor, "tensor")
    processes = _member("recv", group)
    if processes is None:
        return None
    if src is None and group_src is None:
        ranks = processes.others
    else:
        ranks = [_group_rank(processes, src, group_src, None, "recv")]
    if ranks == [processes.rank()] or not ranks:
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    out = _Written(value, result=[tensor])
    work = _engine(processes, value).receive(out.flats[0], ranks, tag, _doing("message", value))
    if not value.is_contiguous():
        work.when_done(out.finish)
    return work


class P2POp:
    """A call for :func:`batch_isend_irecv`: ``op`` is :func:`isend` or :func:`irecv`."""

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``taeda.distributed.isend`` or "
                "``taeda.distributed.irecv``."
            )
        _tensor(tensor, "tensor")
        if peer is None and group_peer is None:
            raise ValueError("P2POp: expected a peer or a group_peer, got neither")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op, tensor, peer, group, tag, group_peer,
        )  # fmt: skip

    def __repr__(self) -> str:
        group: Any = resolve(self.group)
        ends = [group.rank(), _group_rank(group, self.peer, self.group_peer, None, "P2POp")]
        source, to = ends if self.op is isend else reversed(ends)
        return (
            f"P2POp({self.op.__name__} pg={group.group_name}, group_src={source}, group_dst={to},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all of them; gives what to ``wait()`` on.

    Args:
        p2p_op_list: what to send and receive.

    Returns:
        A Work for each.

    Raises:
        ValueError: it is no list of P2POp, or they are of several groups.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``taeda.distributed.P2POp``.")
    if len({id(resolve(one.group)) for one in p2p_op_list}) > 1:
        raise ValueError("All ops need to use the same group.")
    if not p2p_op_list:
        return []
    processes = _member("batch_isend_irecv", p2p_op_list[0].group)
    if processes is None:
        return []
    with _engine(processes, p2p_op_list[0].tensor).together():
        works = [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
    return list({id(work): work for work in works if work is not None}.values())


class _CoalescingManager:
    """The result of :func:`_coalescing_manager`. ``wait()`` waits for the collectives that were started within it."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        """Wait for ``work`` too."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Until all are done."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Within it PyTorch collects collectives, and does them together at the end; here each is done at once."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()
