"""A stage: some of the layers, and the messages to the stages before and after it."""

from __future__ import annotations

import contextlib
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import Module

from ..collectives import recv, send
from ..data_parallel import DistributedDataParallel
from ..fsdp import FSDPModule
from ..groups import ProcessGroup, resolve

__all__ = ["PipelineStage"]

_HEADER = 64  # numbers that say the forms of the tensors of a message
_DTYPES = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16, taeda.int64, taeda.int32, taeda.bool)


class PipelineStage:
    """Layers ``submodule`` as stage ``stage_index`` of ``num_stages``; stage ``i`` is at process ``i % processes``.

    What ``submodule`` gives, a tensor or a tuple of tensors, are the positional arguments of the next stage.

    Args:
        submodule: the layers; a DistributedDataParallel or a module of ``fully_shard`` reduces once for each step.
        stage_index, num_stages: from 0.
        device: the CPU.
        input_args, output_args, dw_builder: accepted; forms travel with the tensors.
        group: the processes of the pipeline, all by default.
    """

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any = "cpu", input_args: Any = None,
        output_args: Any = None, group: Any = None, dw_builder: Any = None,
    ) -> None:  # fmt: skip
        processes = resolve(group)
        if processes is None:
            raise ValueError("PipelineStage: this process is not in the given group")
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if num_stages % processes.size() or stage_index % processes.size() != processes.rank():
            raise ValueError(
                f"PipelineStage: {num_stages} stages on {processes.size()} processes: stage i is at process i % "
                f"{processes.size()}, got stage {stage_index} at {processes.rank()}"
            )
        self.submod, self.stage_index, self.num_stages, self.device = submodule, stage_index, num_stages, device
        self.group: ProcessGroup = processes
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.neighbours: dict[int, PipelineStage] = {}  # stages at this process
        self.clear()

    def clear(self) -> None:
        """Forget the microbatches of a step."""
        self._kept: dict[int, tuple[tuple, tuple]] = {}  # inputs and outputs, until the backward pass
        self._handed: dict[tuple[int, bool], tuple] = {}  # from a stage at this process
        self.outputs: list[Any] = []

    # ---- messages
    def _tag(self, stage: int, microbatch: int, forward: bool) -> int:
        return ((microbatch * self.num_stages) + stage) * 2 + forward

    def _send(self, to: int, microbatch: int, forward: bool, tensors: tuple) -> None:
        if to in self.neighbours:
            self.neighbours[to]._handed[microbatch, forward] = tuple(
                t.detach() if t is not None else None for t in tensors
            )
            return
        header = [len(tensors)]
        for t in tensors:
            header += [-1] if t is None else [_DTYPES.index(t.dtype), t.dim(), *t.shape]
        if len(header) > _HEADER:
            raise NotImplementedError("PipelineStage: too many tensors between two stages")
        header += [0] * (_HEADER - len(header))
        tag, rank = self._tag(to, microbatch, forward), to % self.group.size()
        send(taeda.tensor(header, dtype=taeda.int64), group=self.group, group_dst=rank, tag=tag)
        for t in tensors:
            if t is not None:
                send(t.detach().contiguous(), group=self.group, group_dst=rank, tag=tag)

    def _receive(self, source: int, microbatch: int, forward: bool) -> tuple:
        if source in self.neighbours:
            return self._handed.pop((microbatch, forward))
        tag, rank = self._tag(self.stage_index, microbatch, forward), source % self.group.size()
        numbers = taeda.empty(_HEADER, dtype=taeda.int64)
        recv(numbers, group=self.group, group_src=rank, tag=tag)
        header = iter(numbers.tolist())
        made: list[Any] = []
        for _ in range(next(header)):
            kind = next(header)
            if kind < 0:
                made.append(None)
                continue
            t = taeda.empty([next(header) for _ in range(next(header))], dtype=_DTYPES[kind])
            recv(t, group=self.group, group_src=rank, tag=tag)
            made.append(t)
        return tuple(made)

    # ---- passes
    def forward_one(self, microbatch: int, args: tuple, kwargs: dict, training: bool) -> Any:
        """Run a microbatch forward: ``args`` at the first stage, else what the stage before sends."""
        if not self.is_first:
            args = self._receive(self.stage_index - 1, microbatch, True)
            if training:
                args = tuple(x.requires_grad_() if x.is_floating_point() else x for x in args)
        with self._without_reduction(), taeda.set_grad_enabled(training):
            output = self.submod(*args, **kwargs)
        outputs = output if isinstance(output, tuple) else (output,)
        if training:
            self._kept[microbatch] = (args, outputs)
        if self.is_last:
            self.outputs.append(output)
        else:
            self._send(self.stage_index + 1, microbatch, True, outputs)
        return output

    def backward_one(self, microbatch: int, loss: Tensor | None, scale: float, last: bool) -> None:
        """Run it backward: from the loss at the last stage, else from what the stage after sends."""
        args, outputs = self._kept.pop(microbatch)
        if loss is not None:
            pairs = [(loss, loss.new_full((), scale))]
        else:
            grads = self._receive(self.stage_index + 1, microbatch, False)
            pairs = [(y, g) for y, g in zip(outputs, grads, strict=True) if g is not None and y.requires_grad]
        with self._reduction() if last else self._without_reduction():
            taeda.autograd.backward([y for y, _ in pairs], [g for _, g in pairs])
        if not self.is_first:
            found = tuple(x.grad if x.requires_grad else None for x in args)
            self._send(self.stage_index - 1, microbatch, False, found)

    @contextlib.contextmanager
    def _without_reduction(self) -> Any:
        if isinstance(self.submod, DistributedDataParallel):
            with self.submod.no_sync():
                yield
        elif isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(False)
            yield
            self.submod.set_requires_gradient_sync(True)
        else:
            yield

    @contextlib.contextmanager
    def _reduction(self) -> Any:
        if isinstance(self.submod, DistributedDataParallel):
            self.submod._begin()
        yield
