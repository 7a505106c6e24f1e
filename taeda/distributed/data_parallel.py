"""DistributedDataParallel: a module that several processes train together, each with batches of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from taeda.nn import Module, Parameter
from taeda.ops.parts import OfParts

from .. import nn
from .._core import int32, int64
from .._core.settings import within
from .._typed import Tensor
from ..autograd import is_grad_enabled, no_grad
from ..futures import Future
from ..ops import creation, exchange
from ..ops.joining import cat
from ..ops.sparse import sparse_coo_tensor
from .algorithms.join import Join, Joinable, JoinHook, _Config
from .collectives import all_reduce, broadcast, sparse_all_reduce
from .groups import ProcessGroup, ReduceOp, device_of, resolve
from .objects import all_gather_object

__all__ = ["DistributedDataParallel", "GradBucket"]

_FIRST_BUCKET = 1 << 20  # bytes; a small one first, so that communication begins early
_MB = 1 << 20


class GradBucket:
    """Gradients that are communicated together, one after the other in ``buffer()``: the argument of a communication
    hook.
    """

    def __init__(self, index: int, last: bool, buffer: Tensor, parameters: list[Parameter]) -> None:
        self._index, self._last, self._buffer, self._parameters = index, last, buffer, parameters

    def index(self) -> int:
        """The number of the bucket, from 0 in the order in which they are averaged."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients as a vector."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another vector in its place."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Views of the vector with the parameters' sizes."""
        parts = self._buffer.split([p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Parameter]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket comes after it."""
        return self._last


class _Bucket:
    """Parameters of one dtype whose gradients travel together."""

    def __init__(self, index: int = 0) -> None:
        self.index, self.last, self.sparse = index, False, False
        self.parameters: list[Parameter] = []
        self.left: set[Parameter] = set()
        self.result: Future | None = None

    def launch(self, ddp: DistributedDataParallel, zeros: bool = False) -> None:
        """Begin to average the gradients. A missing gradient counts as zeros, and so do all at a process without
        inputs.
        """
        without = [zeros or p.grad is None for p in self.parameters]
        if self.sparse:
            self.result = _sparse_mean(ddp, self.parameters[0], without[0])
            return
        with no_grad():
            parts = [
                p.new_zeros(p.numel()) if no else p.grad.detach().reshape(-1)  # type: ignore[union-attr]
                for p, no in zip(self.parameters, without, strict=True)
            ]
            flat = cat(parts)
            if ddp._hook is not None:
                self.result = ddp._hook[1](ddp._hook[0], GradBucket(self.index, self.last, flat, self.parameters))
                return
            share = ddp._divide_by_active
            work = all_reduce(flat, ReduceOp.SUM if share else ReduceOp.AVG, ddp.process_group, async_op=True)
        assert work is not None
        count = ddp._join_config.active if share else 1
        future = work.get_future()
        self.result = future.then(lambda done: done.value()[0] if count == 1 else done.value()[0].div_(count))

    def finish(self, used: set[Parameter]) -> None:
        """Wait, and write the averages back. Parameters that no process used keep their gradients."""
        assert self.result is not None
        with no_grad():
            flat = self.result.wait()
            if self.sparse:
                if self.parameters[0] in used:
                    self.parameters[0].grad = flat
                self.result = None
                return
            parts = flat.split([p.numel() for p in self.parameters])
            for p, part in zip(self.parameters, parts, strict=True):
                if p not in used:
                    continue
                if p.grad is None:
                    p.grad = part.reshape(p.shape).clone()
                else:
                    p.grad.copy_(part.reshape(p.shape))
        self.result = None


class DistributedDataParallel(Module, Joinable):
    """Wraps ``module``: its parameters begin equal at all processes, and ``backward`` leaves the averages of the
    gradients.

    Gradients are averaged in buckets while ``backward`` goes on. Each process gives its own optimiser the same
    gradients, so parameters stay equal.

    Args:
        module: what to train; the same at each process.
        device_ids: the GPU of a module on one GPU alone.
        output_device: the GPU of the results of such a module.
        dim: accepted.
        broadcast_buffers: copy the buffers of rank 0 to the others before each forward pass.
        init_sync: make parameters and buffers equal now: those of rank 0.
        process_group: the processes, all by default.
        bucket_cap_mb: megabytes of gradients that travel together, 25 by default.
        find_unused_parameters: look for parameters that the outputs do not depend on; without, one is an error in the
            next forward pass.
        check_reduction: accepted.
        gradient_as_bucket_view: accepted.
        static_graph: the same parameters are used in every iteration; which these are is found in the first.
        device_mesh: the processes, a line, in place of ``process_group``.
        **unused: accepted.
    Raises:
        RuntimeError: no parameter requires a gradient, or the modules of the processes differ.
        ValueError: there is no group, or devices are named for a module that is not on one GPU.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, device_mesh: Any = None, **unused: Any,
    ) -> None:  # fmt: skip
        Module.__init__(self)
        self._join_config = _Config()
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        trained = [_leaf(p) for name, p in module.named_parameters() if name not in ignored and p.requires_grad]
        group = resolve(device_mesh.get_group() if device_mesh is not None else process_group)
        if group is None:
            raise ValueError("DistributedDataParallel: this process is not in the given group")
        self.process_group: ProcessGroup = group
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.is_multi_device_module = len({p.device for p in trained}) > 1
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if (device_ids or output_device) and (trained[0].device.type == "cpu" or self.is_multi_device_module):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU "
                f"modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                f"{ {p.device for p in trained} }. Leave both out."
            )
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
        self._buckets = _buckets(trained, _with_sparse_gradients(module), int((bucket_cap_mb or 25) * _MB))
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        self._launched = 0
        self._left: set[Parameter] = set()
        self._found_unused: set[Parameter] = set()
        self._begun = False
        self._hook: tuple[Any, Callable] | None = None
        self._divide_by_active = False
        self._used: set[Parameter] | None = None  # used by any process, in a static graph
        if init_sync and not self._alone:
            self._compare()
            self._broadcast([t for name, t in _state(module) if name not in ignored])
        for p in trained:
            p.register_post_accumulate_grad_hook(self._arrived)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Sizes and settings by PyTorch's names, which trainers write to their logs."""
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "backend_name": self.process_group.engine_for(self.device).name,
            "module_name": type(self.module).__name__,
            "num_parameter_tensors": len(self._trained),
            "total_parameter_size_bytes": sum(p.nbytes for p in self._trained),
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
        }

    def _compare(self) -> None:
        """Whether all processes have parameters of the same sizes."""
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

    def _broadcast(self, tensors: list[Tensor], root: int = 0) -> None:
        """Copy the tensors of process ``root`` of the group to the others, grouped by dtype."""
        with no_grad():
            for dtype in dict.fromkeys(t.dtype for t in tensors):
                some = [t.detach() for t in tensors if t.dtype == dtype]
                flat = cat([t.reshape(-1) for t in some])
                broadcast(flat, group=self.process_group, group_src=root)
                if self.process_group.rank() != root:
                    for t, part in zip(some, flat.split([t.numel() for t in some]), strict=True):
                        t.copy_(part.reshape(t.shape))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """``module(*inputs, **kwargs)``.

        Args:
            *inputs: for the module.
            **kwargs: for the module.

        Returns:
            What the module gives.

        Raises:
            RuntimeError: the last ``backward`` did not reach all parameters.
        """
        self._before_forward()
        return self._after_forward(self.module(*inputs, **kwargs))

    def _before_forward(self) -> None:
        training = is_grad_enabled() and self.require_backward_grad_sync
        Join.notify_join_context(self)
        joining = self._join_config.enable and not self._alone
        if joining:
            self._agree(training)
        if training:
            if self._begun and self._left:
                names = [name for name, p in self.module.named_parameters() if _leaf(p) in self._left]
                raise RuntimeError(
                    "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                    "indicates that your module has parameters that were not used in producing loss. You can enable "
                    "unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                    "`taeda.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs "
                    f"participate in calculating loss. Parameters without a gradient: {', '.join(names)}"
                )
            self._begin()
        if self.broadcast_buffers and not self._alone and self.require_forward_param_sync:
            self._broadcast_buffers(True)

    def _after_forward(self, outputs: Any) -> Any:
        training = is_grad_enabled() and self.require_backward_grad_sync
        if training and (self.find_unused_parameters or self.static_graph):
            if not self.static_graph or self._used is None:
                self._found_unused = set(self._trained) - _reached(outputs)
        return outputs

    def _agree(self, mine: bool) -> bool:
        """Whether a process will average gradients in this iteration. Processes without inputs have to know."""
        return _largest(int(mine), self.process_group) > 0

    def _broadcast_buffers(self, active: bool) -> None:
        """Copy the buffers of one process, which has inputs, to the others."""
        buffers = [_leaf(b) for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]
        if not buffers:
            return
        root = 0
        if self._join_config.enable:
            root = _largest(self.process_group.rank() if active else -1, self.process_group)
        self._broadcast(buffers, root)

    def _begin(self) -> None:
        self._begun = False
        self._left = set(self._trained)
        if not self.static_graph:
            self._found_unused = set()
        self._launched = 0
        for bucket in self._buckets:
            bucket.left = set(bucket.parameters)

    @property
    def reducer(self) -> _Reducer:
        """Averages the gradients, for programs that decide between forward and backward whether to."""
        return _Reducer(self)

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
        if self._alone and self._hook is None:
            return
        while self._launched < len(self._buckets) and not self._buckets[self._launched].left:
            self._buckets[self._launched].launch(self)  # in one order everywhere
            self._launched += 1
        if not self._left:
            used = self._used_anywhere()
            for bucket in self._buckets:
                bucket.finish(used)

    def _used_anywhere(self, active: bool = True) -> set[Parameter]:
        if not (self.find_unused_parameters or self.static_graph):
            return set(self._trained)
        if self._used is not None:
            return self._used
        counts = exchange.tensor(
            [active and p not in self._found_unused for p in self._trained], dtype=int32,
            device=device_of(self.process_group),
        )  # fmt: skip
        all_reduce(counts, ReduceOp.SUM, self.process_group)
        used = {p for p, count in zip(self._trained, counts.tolist(), strict=True) if count}
        if self.static_graph:
            self._used = used
        return used

    def no_sync(self) -> AbstractContextManager:
        """Within it, ``backward`` adds up gradients at each process; they are averaged by the first one after it."""
        return within(self, require_backward_grad_sync=False)

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context manager for processes with different numbers of batches: a process without batches counts as zeros.

        Args:
            divide_by_initial_world_size: divide the sum of gradients by the number of processes, or else by that of
                those that have batches left.
            enable: whether to do anything.
            throw_on_early_termination: raise at all processes when the first has none left.

        Returns:
            The context manager.
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable and not self._alone, throw_on_early_termination, **options)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of a process that has no more batches."""
        self._divide_by_active = not kwargs.get("divide_by_initial_world_size", True)
        if self._divide_by_active and self._hook is not None:
            raise RuntimeError("join: divide_by_initial_world_size=False is not for a communication hook")
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The processes."""
        return self.process_group

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Leave these names of ``module``, which is wrapped afterwards, as they are at each process."""
        module._ddp_params_and_buffers_to_ignore = list(params_and_buffers_to_ignore)

    def _set_static_graph(self) -> None:
        self.static_graph = True

    def register_comm_hook(self, state: Any, hook: Callable) -> None:
        """Average gradients by ``hook(state, bucket)``, which gives a Future of the vector for :class:`GradBucket`.

        Args:
            state: given to the hook.
            hook: the function.

        Raises:
            TypeError: it is no function.
            ValueError: its annotations say that it takes or gives something else.
            RuntimeError: there is one already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        said = getattr(hook, "__annotations__", {})
        if said.get("bucket", GradBucket) is not GradBucket and not isinstance(said["bucket"], str):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if not isinstance(said.get("return", ""), str) and said["return"] not in (Future, Future[Tensor]):  # type: ignore[misc]
            raise ValueError("Communication hook: return annotation should be taeda.futures.Future[taeda.Tensor].")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = state, hook


class _Reducer:
    """The averaging of a module's gradients."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def prepare_for_backward(self, outputs: list) -> None:
        """Let the next ``backward`` average, also that of a forward pass within ``no_sync``.

        Args:
            outputs: of that pass, to find the parameters that are not used; none: all are used.
        """
        self.ddp._begin()
        if outputs:
            self.ddp._found_unused = set(self.ddp._trained) - _reached(outputs)


class _Shadow(JoinHook):
    """The collectives of an iteration of DistributedDataParallel, of a process without a batch."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        """Zeros for gradients; buffers are taken from the others."""
        ddp = self.ddp
        synchronises = ddp._agree(False)
        if ddp.broadcast_buffers and ddp.require_forward_param_sync:
            ddp._broadcast_buffers(False)
        if not synchronises:
            return
        for bucket in ddp._buckets:
            bucket.launch(ddp, zeros=True)
        for bucket in ddp._buckets:
            assert bucket.result is not None
            bucket.result.wait()
        ddp._used_anywhere(active=False)

    def post_hook(self, is_last_joiner: bool) -> None:
        """The model of one of those that came last, for all."""
        group = self.ddp.process_group
        root = _largest(group.rank() if is_last_joiner else -1, group)
        ignored = self.ddp.parameters_to_ignore
        self.ddp._broadcast([t for name, t in _state(self.ddp.module) if name not in ignored], root)
        self.ddp._divide_by_active = False


def _largest(mine: int, group: Any) -> int:
    found = exchange.tensor(mine, dtype=int64, device=device_of(group))
    all_reduce(found, ReduceOp.MAX, group)
    return int(found.item())


def _leaf(p: Any) -> Any:
    """This process's part of a parameter that tensor parallelism has cut. Other groups have other parts."""
    return p._graph_parts()[0] if isinstance(p, OfParts) and p._same_elements else p


def _state(module: Module) -> Iterator[tuple[str, Tensor]]:
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        yield name, _leaf(t)


def _with_sparse_gradients(module: Module) -> set:
    """The parameters of embeddings with ``sparse=True``."""
    kinds = nn.Embedding, nn.EmbeddingBag
    return {m.weight for m in module.modules() if isinstance(m, kinds) and m.sparse}


def _sparse_mean(ddp: DistributedDataParallel, p: Parameter, without: bool) -> Future:
    """The mean of a sparse gradient. Communication hooks, which take vectors, do not see it."""
    nothing = p.detach().new_zeros(0, *p.shape[1:])
    total: Any = p.grad
    if without:
        total = sparse_coo_tensor(creation.zeros(1, 0, dtype=int64, device=p.device), nothing, p.shape)
    with no_grad():
        total = total.detach().clone()
        sparse_all_reduce(total, ReduceOp.SUM, ddp.process_group)
        total /= ddp._join_config.active if ddp._divide_by_active else ddp.process_group.size()
    mean = Future()
    mean.set_result(total)
    return mean


def _buckets(parameters: list[Parameter], sparse: set, cap: int) -> list[_Bucket]:
    """Buckets of parameters in about the order in which gradients come: from the last, by dtype, sparse ones alone."""
    made: list[_Bucket] = []
    open_ones: dict[Any, tuple[_Bucket, int]] = {}
    for p in reversed(parameters):
        if p in sparse:
            made.append(_Bucket(len(made)))
            made[-1].parameters, made[-1].sparse = [p], True
            continue
        bucket, size = open_ones.get(p.dtype, (None, 0))
        if bucket is None or size >= (min(_FIRST_BUCKET, cap) if bucket is made[0] else cap):
            bucket, size = _Bucket(len(made)), 0
            made.append(bucket)
        bucket.parameters.append(p)
        open_ones[p.dtype] = bucket, size + p.numel() * p.element_size()
    made[-1].last = True
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
