"""DistributedDataParallel: a module that several processes train together, each with batches of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import Module, Parameter

from .collectives import all_reduce, broadcast
from .groups import ProcessGroup, ReduceOp, Work, resolve
from .objects import all_gather_object

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET = 1 << 20  # bytes; a small one first, so that communication begins early
_MB = 1 << 20


class _Bucket:
    """Parameters of one dtype whose gradients travel together."""

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.left: set[Parameter] = set()
        self.flat: Tensor | None = None
        self.work: Work | None = None

    def launch(self, group: Any) -> None:
        """Begin to average the gradients; what has none counts as zeros."""
        grads = [taeda.zeros_like(p) if p.grad is None else p.grad.detach() for p in self.parameters]
        with taeda.no_grad():
            self.flat = taeda.cat([g.reshape(-1) for g in grads])
        self.work = all_reduce(self.flat, ReduceOp.AVG, group, async_op=True)

    def finish(self, used: set[Parameter]) -> None:
        """Wait, and write the averages back; what no process used keeps what it had."""
        assert self.flat is not None and self.work is not None
        self.work.wait()
        with taeda.no_grad():
            parts = self.flat.split([p.numel() for p in self.parameters])
            for p, part in zip(self.parameters, parts, strict=True):
                if p not in used:
                    continue
                if p.grad is None:
                    p.grad = part.reshape(p.shape).clone()
                else:
                    p.grad.copy_(part.reshape(p.shape))
        self.flat = self.work = None


class DistributedDataParallel(Module):
    """Wraps ``module``: its parameters begin equal at all processes, and ``backward`` leaves the averages of the gradients.

    Gradients are averaged in buckets while ``backward`` goes on. Each process gives its own optimiser the same gradients, so
    parameters stay equal.

    Args:
        module: what to train; the same at each process.
        device_ids, output_device, dim, check_reduction, gradient_as_bucket_view, static_graph, device_mesh: accepted.
        broadcast_buffers: copy the buffers of rank 0 to the others before each forward pass.
        init_sync: make parameters and buffers equal now: those of rank 0.
        process_group: the processes, all by default.
        bucket_cap_mb: megabytes of gradients that travel together, 25 by default.
        find_unused_parameters: look for parameters that the outputs do not depend on; without, one is an error in the next
            forward pass.
    Raises:
        RuntimeError: no parameter requires a gradient, or the modules of the processes differ.
        ValueError: there is no group.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, device_mesh: Any = None, **unused: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        trained = [p for name, p in module.named_parameters() if name not in ignored and p.requires_grad]
        group = resolve(device_mesh.get_group() if device_mesh is not None else process_group)
        if group is None:
            raise ValueError("DistributedDataParallel: this process is not in the given group")
        self.process_group: ProcessGroup = group
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.module = module
        self.dim = dim
        self.device = trained[0].device
        self.device_type = self.device.type
        self.device_ids = None if device_ids is None else list(device_ids)
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.parameters_to_ignore = ignored
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self._trained = trained
        self._alone = self.process_group.size() == 1
        self._buckets = _buckets(trained, int((bucket_cap_mb or 25) * _MB))
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        self._launched = 0
        self._left: set[Parameter] = set()
        self._found_unused: set[Parameter] = set()
        self._begun = False
        if init_sync and not self._alone:
            self._compare()
            self._broadcast([t for name, t in _state(module) if name not in ignored])
        for p in trained:
            p.register_post_accumulate_grad_hook(self._arrived)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What trainers write to their logs: sizes and settings, by PyTorch's names."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": "gloo",
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(self._trained),
            "total_parameter_size_bytes": sum(p.nbytes for p in self._trained),
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
        }

    def _compare(self) -> None:
        """Whether all processes have parameters of the same sizes.

        Raises:
            RuntimeError: they have not.
        """
        mine = [(tuple(p.shape), str(p.dtype)) for p in self._trained]
        everyones: list[Any] = [None] * self.process_group.size()
        all_gather_object(everyones, mine, self.process_group)
        for rank, theirs in enumerate(everyones):
            if len(theirs) != len(mine):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.process_group.rank()} has {len(mine)} "
                    f"params, while rank {rank} has inconsistent {len(theirs)} params."
                )
            for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                if a != b:
                    raise RuntimeError(
                        f"DDP expects same model across all ranks, but parameter {i} is {a} at rank "
                        f"{self.process_group.rank()} and {b} at rank {rank}."
                    )

    def _broadcast(self, tensors: list[Tensor]) -> None:
        """Copy the tensors of the group's rank 0 to the others, those of a dtype together."""
        with taeda.no_grad():
            for dtype in dict.fromkeys(t.dtype for t in tensors):
                some = [t.detach() for t in tensors if t.dtype == dtype]
                flat = taeda.cat([t.reshape(-1) for t in some])
                broadcast(flat, group=self.process_group, group_src=0)
                if self.process_group.rank() != 0:
                    for t, part in zip(some, flat.split([t.numel() for t in some]), strict=True):
                        t.copy_(part.reshape(t.shape))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """``module(*inputs, **kwargs)``.

        Raises:
            RuntimeError: the last ``backward`` did not reach all parameters.
        """
        training = taeda.is_grad_enabled() and self.require_backward_grad_sync
        if training:
            if self._begun and self._left:
                names = [name for name, p in self.module.named_parameters() if p in self._left]
                raise RuntimeError(
                    "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                    "indicates that your module has parameters that were not used in producing loss. You can enable "
                    "unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                    "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
                    f"participate in calculating loss. Parameters without a gradient: {', '.join(names)}"
                )
            self._begin()
        if self.broadcast_buffers and not self._alone and self.require_forward_param_sync:
            buffers = [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]
            if buffers:
                self._broadcast(buffers)
        outputs = self.module(*inputs, **kwargs)
        if training and self.find_unused_parameters:
            self._found_unused = set(self._trained) - _reached(outputs)
        return outputs

    def _begin(self) -> None:
        self._begun = False
        self._left = set(self._trained)
        self._found_unused = set()
        self._launched = 0
        for bucket in self._buckets:
            bucket.left = set(bucket.parameters)

    def _arrived(self, parameter: Any) -> None:
        """The gradient of ``parameter`` is there: begin what can be averaged now, and end with the last."""
        if not self.require_backward_grad_sync or parameter not in self._left:
            return
        come = [parameter]
        if not self._begun:
            self._begun = True
            come += self._found_unused - {parameter}
        for p in come:
            self._left.discard(p)
            self._bucket_of[p].left.discard(p)
        if self._alone:
            return
        while self._launched < len(self._buckets) and not self._buckets[self._launched].left:
            self._buckets[self._launched].launch(self.process_group)  # in one order everywhere
            self._launched += 1
        if not self._left:
            used = self._used_anywhere()
            for bucket in self._buckets:
                bucket.finish(used)

    def _used_anywhere(self) -> set[Parameter]:
        if not self.find_unused_parameters:
            return set(self._trained)
        counts = taeda.tensor([p not in self._found_unused for p in self._trained], dtype=taeda.int32)
        all_reduce(counts, ReduceOp.SUM, self.process_group)
        return {p for p, count in zip(self._trained, counts.tolist(), strict=True) if count}

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, ``backward`` adds up gradients at each process; they are averaged by the first one after it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, **kwargs: Any) -> Iterator[None]:
        """For processes with batches of different number, which only one process alone may have here.

        Raises:
            RuntimeError: there are several.
        """
        if enable and not self._alone:
            raise RuntimeError("DistributedDataParallel.join: give every process the same number of batches")
        yield

    def _set_static_graph(self) -> None:
        self.static_graph = True

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Refused.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("DistributedDataParallel.register_comm_hook: gradients are averaged as they are")


def _state(module: Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _buckets(parameters: list[Parameter], cap: int) -> list[_Bucket]:
    """Parameters in the order in which gradients come, about: from the last; those of a dtype together."""
    made: list[_Bucket] = []
    open_ones: dict[Any, tuple[_Bucket, int]] = {}
    for p in reversed(parameters):
        bucket, size = open_ones.get(p.dtype, (None, 0))
        if bucket is None or size >= (_FIRST_BUCKET if bucket is made[0] else cap):
            bucket, size = _Bucket(), 0
            made.append(bucket)
        bucket.parameters.append(p)
        open_ones[p.dtype] = bucket, size + p.numel() * p.element_size()
    return made


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        yield from _tensors_in(vars(value))


def _reached(outputs: Any) -> set:
    """The leaves that ``outputs`` depend on."""
    found: set = set()
    seen: set = set()
    todo = []
    for tensor in _tensors_in(outputs):
        if tensor.grad_fn is not None:
            todo.append(tensor.grad_fn)
        elif tensor.requires_grad:
            found.add(tensor)
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(node.variable)
        todo += [edge[0] for edge in node.next_functions if edge[0] is not None]
    return found
