"""One stage of a pipeline: its module, and its passes on one microbatch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from taeda.nn import Module

from ... import _core, autograd
from ..._typed import Tensor
from ...autograd import is_grad_enabled
from ...ops.creation import full_like, zeros_like
from ..data_parallel import DistributedDataParallel
from ..groups import get_rank, get_world_size
from .channel import Channel, Meta, told
from .orders import in_loop, in_vee
from .split import SplitBackward

__all__ = ["PipelineStage"]

_EXAMPLES = (("inputs", "input_args"), ("outputs", "output_args"))


def _tuple(value: Any) -> tuple:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


class PipelineStage:
    """Stage ``stage_index`` of ``num_stages``, on process ``stage_index % group size``, or in the form of a V.

    Sizes need not be given: in the first step a stage tells them to the next, for each microbatch. They stay the same.

    Args:
        submodule: takes what the stage before gives, as positional arguments; gives a tensor or a tuple of them.
        stage_index: from 0.
        num_stages: how many there are in all.
        device: where received tensors are put.
        input_args: examples of one microbatch's inputs, on any device, that what comes is compared with.
        output_args: the same of its outputs.
        output_grads: accepted; gradients have the sizes of outputs.
        input_grads: accepted; gradients have the sizes of inputs.
        group: the processes, all by default.
        dw_builder: refused.
        get_mesh: refused.
    Raises:
        ValueError: there is no such stage.
        RuntimeError: there are more processes than stages, or the stage lies on another process.
        NotImplementedError: ``dw_builder`` or ``get_mesh``.
    """

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any = "cpu", input_args: Any = None,
        output_args: Any = None, output_grads: Any = None, input_grads: Any = None, group: Any = None,
        dw_builder: Any = None, get_mesh: Any = None,
    ) -> None:  # fmt: skip
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if dw_builder is not None or get_mesh is not None:
            raise NotImplementedError(
                "PipelineStage: dw_builder and get_mesh are not supported: the graph itself is cut where gradients of "
                "weights are delayed, and stages exchange plain tensors"
            )
        self.submod = submodule
        self.stage_index, self.num_stages = stage_index, num_stages
        self.device = _core.device(device)
        self.group = group
        self.group_rank, self.group_size = get_rank(group), get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        if self.group_rank not in (in_loop(stage_index, self.group_size), in_vee(stage_index, self.group_size)):
            raise RuntimeError(
                f"PipelineStage: stage {stage_index} of {num_stages} belongs on rank {stage_index % self.group_size} "
                f"of the {self.group_size} processes, this is rank {self.group_rank}"
            )
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.channel = Channel(stage_index, self.device, group, self.group_rank, self.group_size)
        self._examples = [
            None if given is None else [Meta.of(t) for t in _tuple(given)] for given in (input_args, output_args)
        ]
        self.clear_runtime_states()

    def clear_runtime_states(self) -> None:
        """Forget the tensors of the last step."""
        self.output_chunks: list[Any] = []
        self._held: dict[int, tuple[tuple, tuple]] = {}  # inputs and outputs of microbatches that wait for backward
        self._split: dict[int, SplitBackward] = {}  # backward passes of which the first part is done

    def forward_one_chunk(self, microbatch: int, args: tuple, kwargs: dict[str, Any], last: bool = True) -> Any:
        """The forward pass of a microbatch: receive, call the module, send.

        Args:
            microbatch: its number.
            args: of the first stage; the others receive theirs.
            kwargs: of this stage.
            last: whether it is the last of the step.
        Returns:
            The outputs of the module.
        Raises:
            RuntimeError: something failed, or sizes are not those expected; names stage and microbatch.
        """
        with self._named("forward", microbatch):
            inputs = tuple(args) if self.is_first else tuple(self.channel.receive_inputs(microbatch))
            self._compare(0, inputs)
            with self._without_sync(last):
                output = self.submod(*inputs, **kwargs)
            outputs = _tuple(output)
            self._compare(1, outputs)
            if self.is_last:
                self.output_chunks.append(output)
            else:
                self._check_tensors(outputs)
                self.channel.send_outputs(microbatch, outputs)
        if is_grad_enabled():
            self._held[microbatch] = inputs, outputs
        return output

    def backward_one_chunk(
        self, microbatch: int, loss: Tensor | None, scale: float, last: bool = True, full_backward: bool = True
    ) -> None:
        """Run the backward pass of a microbatch: receive the outputs' gradients, run, send the inputs' gradients.

        Args:
            microbatch: its number.
            loss: of one element at the last stage, otherwise None.
            scale: what the loss is multiplied by.
            last: whether it is the last of the step, with which data parallel wrappers average gradients.
            full_backward: False leaves the gradients of parameters to :meth:`backward_weight_one_chunk`. Wrappers that
                exchange gradients compute all of them at once, all the same.
        Raises:
            RuntimeError: something failed; names stage and microbatch.
        """
        inputs, outputs = self._held.pop(microbatch)
        with self._named("backward", microbatch):
            if loss is not None:
                roots, grads = [loss], [full_like(loss, scale)]
            else:
                roots = [t for t in outputs if t.requires_grad]
                grads = self.channel.receive_grads(microbatch, roots)
            with self._without_sync(last):
                wanted = [] if self.is_first else [t for t in inputs if t.requires_grad]
                if full_backward or not self._may_split():
                    if roots:
                        autograd.backward(roots, grads)
                else:
                    self._split[microbatch] = SplitBackward(roots, grads, wanted)
            if not self.is_first:
                found = [zeros_like(t) if t.grad is None else t.grad for t in wanted]
                self.channel.send_grads(microbatch, found)

    def backward_weight_one_chunk(self, microbatch: int) -> None:
        """Compute the gradients of the parameters that :meth:`backward_one_chunk` left.

        Args:
            microbatch: its number.
        Raises:
            RuntimeError: something failed; names stage and microbatch.
        """
        with self._named("backward of weights", microbatch):
            if microbatch in self._split:
                self._split.pop(microbatch).weights()

    def _may_split(self) -> bool:
        """Whether no module here exchanges gradients, which it does when all of them are there."""
        return not any(
            isinstance(m, DistributedDataParallel) or hasattr(m, "set_requires_gradient_sync")
            for m in self.submod.modules()
        )

    @contextlib.contextmanager
    def _named(self, what: str, microbatch: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise RuntimeError(
                f"[Stage {self.stage_index}] {what} of microbatch {microbatch} failed: {type(error).__name__}: {error}"
            ) from error

    def _without_sync(self, last: bool) -> Any:
        if not last and isinstance(self.submod, DistributedDataParallel):
            return self.submod.no_sync()
        sharded: Any = self.submod
        if hasattr(sharded, "set_requires_gradient_sync"):  # a module of fully_shard
            sharded.set_requires_gradient_sync(last)
        return contextlib.nullcontext()

    def _check_tensors(self, outputs: tuple) -> None:
        for i, t in enumerate(outputs):
            if not isinstance(t, Tensor):
                raise TypeError(f"expected tensors for the next stage, output {i} is {type(t).__name__}")

    def _compare(self, which: int, tensors: tuple) -> None:
        expected = self._examples[which]
        if expected is None:
            return
        got = [Meta.of(t) for t in tensors if isinstance(t, Tensor)]
        if [m[:2] for m in expected] != [m[:2] for m in got]:
            what, name = _EXAMPLES[which]
            raise ValueError(f"expected {what} {told(expected)} as in {name}, got {told(got)}")
