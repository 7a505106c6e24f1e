"""Collectives: what the processes of a group do together with tensors, each of them calling the same.

Each is written for any number of processes, with messages to the *other* ones; in a group of one there are none, and what
is left copies input to output. Values are combined in the order of ranks, by one process for each part of a tensor, so
that the results are bitwise equal everywhere.
"""

from __future__ import annotations

import operator
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce as fold
from typing import Any

import taeda
from taeda import Tensor

from ..futures import Future
from .errors import DistBackendError
from .groups import ProcessGroup, ReduceOp, Work, resolve, warn_not_in_group
from .links import Key

_COMBINE: dict[ReduceOp, Callable[[Tensor, Tensor], Tensor]] = {
    ReduceOp.SUM: operator.add, ReduceOp.AVG: operator.add, ReduceOp.PRODUCT: operator.mul, ReduceOp.MIN: taeda.minimum,
    ReduceOp.MAX: taeda.maximum, ReduceOp.BAND: operator.and_, ReduceOp.BOR: operator.or_, ReduceOp.BXOR: operator.xor,
}  # fmt: skip


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    if value.layout is not taeda.strided:
        raise ValueError(f"`{name}`: expected a dense tensor, got layout {value.layout}; use to_dense()")
    return value.detach()


def _tensors(values: Any, name: str) -> list[Tensor]:
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    return [_tensor(value, name) for value in values]


def _same_dtype(*tensors: Tensor) -> None:
    for t in tensors[1:]:
        if t.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypes. Found {tensors[0].dtype} and {t.dtype}")


def _check_op(name: str, op: Any, tensor: Tensor) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: expected op to be a ReduceOp, got {op!r}")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{name}: ReduceOp.PREMUL_SUM is not supported; multiply the tensor first")
    if tensor.is_complex() and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"{name} does not support {op!r} on complex tensors")
    if op.name.startswith("B") and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(
            f"{name}: ReduceOp.AVG of {tensor.dtype}: the mean is not a whole number; use SUM and divide"
        )
    return op


def _bytes(tensor: Tensor) -> Any:
    flat = tensor.contiguous().reshape(-1)
    return memoryview(flat.view(taeda.uint8).numpy()) if flat.numel() else b""


def _values(payload: memoryview, like: Tensor, what: str) -> Tensor:
    if len(payload) != like.numel() * like.element_size():
        raise DistBackendError(
            f"{what}: expected {like.numel()} elements of {like.dtype}, got {len(payload)} bytes: the sizes that the "
            f"processes give do not agree"
        )
    if not payload:
        return taeda.empty(like.shape, dtype=like.dtype)
    return taeda.frombuffer(payload, dtype=taeda.uint8).view(like.dtype).reshape(like.shape)


def _received(group: ProcessGroup, rank: int, key: Key, doing: str, like: Tensor) -> Tensor:
    """The tensor that process ``rank`` sent, of the sizes and dtype of ``like``."""
    return _values(group.receive([rank], key, doing)[2], like, doing)


def _of_all(group: ProcessGroup, key: Key, doing: str, own: Tensor) -> list[Tensor]:
    """What the processes have, in the order of ranks: ``own``, and what the others sent."""
    return [own if rank == group.rank() else _received(group, rank, key, doing, own) for rank in range(group.size())]


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


def _combined(op: ReduceOp, parts: Sequence[Tensor]) -> Tensor:
    result = fold(_COMBINE[op], parts)
    return result / len(parts) if op is ReduceOp.AVG and len(parts) > 1 else result


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Combine the ``tensor`` of all processes, elementwise, into that of each.

    Args:
        tensor: any shape and dtype, the same everywhere; written to.
        op: how to combine.
        group: the processes, all by default.
        async_op: go on meanwhile; ``wait()`` on what is returned before using the tensor.
    Raises:
        RuntimeError: a process is gone, does something else, or did not come in time.
    """
    value = _tensor(tensor, "tensor")
    processes = _member("all_reduce", group)
    if processes is None:
        return None
    op = _check_op("all_reduce", op, value)
    doing = _doing("all_reduce", value, op.name)

    def body(key: Key) -> list[Tensor]:
        if processes.others:
            flat = value.reshape(-1)  # the same memory where it is contiguous
            _reduce_everywhere(processes, key, doing, flat, op)
            if not value.is_contiguous():
                value.copy_(flat.reshape(value.shape))
        return [tensor]

    return processes.run(body, async_op)


def _reduce_everywhere(group: ProcessGroup, key: Key, doing: str, flat: Tensor, op: ReduceOp) -> None:
    """Combine ``flat`` in place: each process does one part of it, and sends that to the others."""
    parts = list(flat.tensor_split(group.size()))
    for rank in group.others:
        group.send(rank, key, doing, _bytes(parts[rank]))
    mine = parts[group.rank()]
    mine.copy_(_combined(op, _of_all(group, key, doing, mine)))
    for rank in group.others:
        group.send(rank, key, doing, _bytes(mine))
    for rank in group.others:
        parts[rank].copy_(_received(group, rank, key, doing, parts[rank]))


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """:func:`all_reduce` of several tensors of one dtype at once."""
    values = [_tensor(tensors, "tensors")] if isinstance(tensors, Tensor) else _tensors(tensors, "tensors")
    processes = _member("all_reduce_coalesced", group)
    if processes is None or not values:
        return None
    _same_dtype(*values)
    op = _check_op("all_reduce_coalesced", op, values[0])
    flat = taeda.cat([v.reshape(-1) for v in values])
    doing = _doing("all_reduce_coalesced", flat, op.name)

    def body(key: Key) -> list[Tensor]:
        if processes.others:
            _reduce_everywhere(processes, key, doing, flat, op)
            for value, part in zip(values, flat.split([v.numel() for v in values]), strict=True):
                value.copy_(part.reshape(value.shape))
        return values

    return processes.run(body, async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the ``tensor`` of process ``src`` to that of the others."""
    value = _tensor(tensor, "tensor")
    processes = _member("broadcast", group)
    if processes is None:
        return None
    root = _group_rank(processes, src, group_src, None, "broadcast")
    doing = _doing("broadcast", value, f"src={root}")

    def body(key: Key) -> list[Tensor]:
        if processes.rank() != root:
            value.copy_(_received(processes, root, key, doing, value))
        else:
            for rank in processes.others:
                processes.send(rank, key, doing, _bytes(value))
        return [tensor]

    return processes.run(body, async_op)


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Combine the ``tensor`` of all processes into that of ``dst``; the others keep theirs."""
    value = _tensor(tensor, "tensor")
    processes = _member("reduce", group)
    if processes is None:
        return None
    root = _group_rank(processes, dst, group_dst, None, "reduce")
    op = _check_op("reduce", op, value)
    doing = _doing("reduce", value, op.name, f"dst={root}")

    def body(key: Key) -> list[Tensor]:
        if processes.rank() != root:
            processes.send(root, key, doing, _bytes(value))
        elif processes.others:
            value.copy_(_combined(op, _of_all(processes, key, doing, value)))
        return [tensor]

    return processes.run(body, async_op)


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


def _gather_into(group: ProcessGroup, key: Key, doing: str, value: Tensor, slots: Sequence[Tensor]) -> None:
    for rank in group.others:
        group.send(rank, key, doing, _bytes(value))
    slots[group.rank()].copy_(value)
    for rank in group.others:
        slots[rank].copy_(_received(group, rank, key, doing, slots[rank]))


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the ``tensor`` of process ``i`` to ``tensor_list[i]``, at each process."""
    slots = _tensors(tensor_list, "tensor_list")
    value = _tensor(tensor, "tensor")
    processes = _member("all_gather", group)
    if processes is None:
        return None
    _check_list("all_gather", processes, slots, value, "output")
    doing = _doing("all_gather", value)

    def body(key: Key) -> list[Tensor]:
        _gather_into(processes, key, doing, value, slots)
        return tensor_list

    return processes.run(body, async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """:func:`all_gather` of several tensors: ``output_tensor_lists[i]`` are those of process ``i``."""
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
    _same_dtype(output, value)
    if output.numel() != value.numel() * processes.size():
        raise RuntimeError(
            f"all_gather_into_tensor: expected an output of {processes.size()} times the input's "
            f"{value.numel()} elements, got {output.numel()}"
        )
    doing = _doing("all_gather_into_tensor", value)

    def body(key: Key) -> list[Tensor]:
        slots = [taeda.empty_like(value) for _ in range(processes.size())]
        _gather_into(processes, key, doing, value, slots)
        output.copy_(taeda.stack(slots).reshape(output.shape))
        return [output_tensor]

    return processes.run(body, async_op)


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
    root = _group_rank(processes, dst, group_dst, 0, "gather")
    if processes.rank() != root and slots:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if processes.rank() == root:
        if not slots:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list("gather", processes, slots, value, "output")
    doing = _doing("gather", value, f"dst={root}")

    def body(key: Key) -> list[Tensor]:
        if processes.rank() != root:
            processes.send(root, key, doing, _bytes(value))
            return []
        slots[root].copy_(value)
        for rank in processes.others:
            slots[rank].copy_(_received(processes, rank, key, doing, value))
        return gather_list or []

    return processes.run(body, async_op)


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
    root = _group_rank(processes, src, group_src, 0, "scatter")
    if processes.rank() != root and parts:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    if processes.rank() == root:
        if not parts:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_list("scatter", processes, parts, value, "input")
    doing = _doing("scatter", value, f"src={root}")

    def body(key: Key) -> list[Tensor]:
        if processes.rank() != root:
            value.copy_(_received(processes, root, key, doing, value))
        else:
            for rank in processes.others:
                processes.send(rank, key, doing, _bytes(parts[rank]))
            value.copy_(parts[root])
        return [tensor]

    return processes.run(body, async_op)


def _scatter_reduced(
    name: str, output: Tensor, parts: list[Tensor], op: Any, processes: ProcessGroup, async_op: bool
) -> Work | None:
    op = _check_op(name, op, output)
    doing = _doing(name, output, op.name)

    def body(key: Key) -> list[Tensor]:
        for rank in processes.others:
            processes.send(rank, key, doing, _bytes(parts[rank]))
        output.copy_(_combined(op, _of_all(processes, key, doing, parts[processes.rank()])))
        return [output]

    return processes.run(body, async_op)


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
        raise ValueError(
            f"reduce_scatter_tensor: expected an input of {processes.size()} times the output's {made.numel()} "
            f"elements, got {value.numel()}"
        )
    parts = [part.reshape(made.shape) for part in value.reshape(-1).tensor_split(processes.size())]
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
    return _exchange("all_to_all", outputs, inputs, processes, async_op)


def _exchange(
    name: str, outputs: list[Tensor], inputs: list[Tensor], processes: ProcessGroup, async_op: bool
) -> Work | None:
    doing = f"{name}({str(inputs[0].dtype).rpartition('.')[2]})"
    own = processes.rank()
    if outputs[own].shape != inputs[own].shape:
        raise RuntimeError(
            f"{name}: expected an output of {tuple(inputs[own].shape)} for this process's own input, got "
            f"{tuple(outputs[own].shape)}"
        )

    def body(key: Key) -> list[Tensor]:
        for rank in processes.others:
            processes.send(rank, key, doing, _bytes(inputs[rank]))
        outputs[own].copy_(inputs[own])
        for rank in processes.others:
            outputs[rank].copy_(_received(processes, rank, key, doing, outputs[rank]))
        return outputs

    return processes.run(body, async_op)


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

    def parts(tensor: Tensor, sizes: list[int] | None) -> list[Tensor]:
        if not sizes:
            if tensor.shape[0] % processes.size():
                raise RuntimeError(
                    f"Tensor's dim 0 does not divide equally across group size: {tensor.shape[0]} rows, "
                    f"{processes.size()} processes"
                )
            return list(tensor.tensor_split(processes.size()))
        if len(sizes) != processes.size() or sum(sizes) != tensor.shape[0]:
            raise RuntimeError(
                f"Split sizes doesn't match total dim 0 size: {list(sizes)}, {tensor.shape[0]} rows, "
                f"{processes.size()} processes"
            )
        return list(tensor.split(list(sizes)))

    outputs, inputs = parts(made, output_split_sizes), parts(value, input_split_sizes)
    return _exchange("all_to_all_single", outputs, inputs, processes, async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all processes of the group are here."""
    processes = _member("barrier", group)
    if processes is None:
        return None

    def body(key: Key) -> list[Tensor]:
        for rank in processes.others:
            processes.send(rank, key, "barrier()")
        for rank in processes.others:
            processes.receive([rank], key, "barrier()", timeout)
        return []

    return processes.run(body, async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """:func:`barrier`; the error names the rank that did not come, as that of every collective does here."""
    barrier(group, timeout=timeout)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send ``tensor`` to process ``dst``, which has to :func:`recv` it under the same ``tag``."""
    isend(tensor, dst, group, tag, group_dst)


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """:func:`send`, which never waits for the receiver; the tensor may be written to at once."""
    value = _tensor(tensor, "tensor")
    processes = _member("send", group)
    if processes is None:
        return None
    to = _group_rank(processes, dst, group_dst, None, "send")
    if to == processes.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    processes.send(to, _tagged(processes, tag), _doing("message", value), _bytes(value))
    future = Future()
    future.set_result([tensor])
    return Work(future)


def _tagged(group: ProcessGroup, tag: int) -> Key:
    return group.group_name, f"tag {int(tag)}"


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Write what process ``src`` sends, or whichever does if None, to ``tensor``; gives the sender's rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source


class _Receiving(Work):
    """A message to come. Those from one process under one tag are taken in the order in which they were asked for."""

    def __init__(self, group: ProcessGroup, ranks: list[int], key: Key, tensor: Tensor) -> None:
        super().__init__(Future())
        self._group, self._ranks, self._key, self._tensor = group, ranks, key, tensor
        self._line = _pending[group, tuple(ranks), key]
        self._line.append(self)
        self.source = -1

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is here; what went wrong is raised."""
        while not self._future.done():
            self._line.popleft()._take(timeout)
        return super().wait()

    def _take(self, timeout: timedelta | None) -> None:
        try:
            doing = _doing("message", self._tensor)
            rank, _, payload = self._group.receive(self._ranks, self._key, doing, timeout)
            with taeda.no_grad():
                self._tensor.copy_(_values(payload, self._tensor, doing))
            self.source = self._group.ranks[rank]
            self._future.set_result([self._tensor])
        except BaseException as error:
            self._future.set_exception(error)

    def is_completed(self) -> bool:
        """Whether it is here."""
        while self._line and not self._future.done() and self._group.has(self._ranks, self._key):
            self._line.popleft()._take(None)
        return self._future.done()


_pending: dict[Any, deque[_Receiving]] = defaultdict(deque)


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> _Receiving | None:
    """:func:`recv` that does not wait until ``wait()`` is called on what it returns."""
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
    return _Receiving(processes, ranks, _tagged(processes, tag), value)


class P2POp:
    """A call for :func:`batch_isend_irecv`: ``op`` is :func:`isend` or :func:`irecv`."""

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op, tensor, peer, group, tag, group_peer,
        )  # fmt: skip


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all of them; gives what to ``wait()`` on."""
    works = [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
    return [work for work in works if work is not None]
