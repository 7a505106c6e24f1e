"""Schedules: in which order a process runs microbatches forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda import Tensor
from taeda.utils._pytree import tree_map

from .stage import PipelineStage

__all__ = ["Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B"]


class Action(NamedTuple):
    """A microbatch through one of this process's stages."""

    forward: bool
    stage: int
    microbatch: int


class _Schedule:
    """Runs the stages of this process.

    Args:
        stages: those.
        n_microbatches: into how many parts of equal size, about, a batch is cut along dimension 0.
        loss_fn: ``(output, target)`` to a scalar, the mean over a microbatch. Without, steps run forward only.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: not taken: dimension 0.
        scale_grads: divide gradients by the number of microbatches.
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        if not (args_chunk_spec is kwargs_chunk_spec is output_merge_spec is None):
            raise NotImplementedError(f"{type(self).__name__}: batches are cut along dimension 0; specs are not taken")
        self._stages, self._n, self._loss_fn, self._scale = stages, n_microbatches, loss_fn, scale_grads
        for stage in stages:
            stage.neighbours = {other.stage_index: other for other in stages if other is not stage}
        self._check()

    def _check(self) -> None:
        """Raise where the numbers of stages or microbatches do not fit the schedule."""

    def _actions(self) -> list[Action]:
        raise NotImplementedError

    def step(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """A batch forward and backward: ``args`` at the first stage, ``target`` and ``losses`` at the last.

        Returns:
            The outputs of the batch at the last stage, None at others.
        """
        return self._run(args, target, losses, kwargs, training=self._loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """A batch forward."""
        return self._run(args, target, losses, kwargs, training=False)

    def _run(self, args: tuple, target: Any, losses: list | None, kwargs: dict, training: bool) -> Any:
        if training and target is None and any(stage.is_last for stage in self._stages):
            raise ValueError(f"{type(self).__name__}.step: the process of the last stage has to give target")
        inputs, options, targets = (self._cut(x) for x in (args, kwargs, target))
        for stage in self._stages:
            stage.clear()
        found: dict[int, Tensor] = {}
        left = dict.fromkeys(range(len(self._stages)), self._n)
        for action in self._actions():
            stage = self._stages[action.stage]
            i = action.microbatch
            if action.forward:
                output = stage.forward_one(i, inputs[i], options[i], training)
                if stage.is_last and self._loss_fn is not None and target is not None:
                    with taeda.set_grad_enabled(training):
                        found[i] = self._loss_fn(output, targets[i])
            elif training:
                left[action.stage] -= 1
                scale = 1.0 / self._n if self._scale else 1.0
                stage.backward_one(i, found.get(i) if stage.is_last else None, scale, left[action.stage] == 0)
        if losses is not None:
            losses[:] = [found[i].detach() for i in sorted(found)]
        return self._merged()

    def _merged(self) -> Any:
        last = next((stage for stage in self._stages if stage.is_last), None)
        if last is None:
            return None
        outputs = last.outputs
        if isinstance(outputs[0], tuple):
            return tuple(taeda.cat([y.detach() for y in column]) for column in zip(*outputs, strict=True))
        return taeda.cat([y.detach() for y in outputs])

    def _cut(self, values: Any) -> list:
        def part(i: int) -> Any:
            return tree_map(lambda x: x.tensor_split(self._n)[i] if isinstance(x, Tensor) and x.dim() else x, values)

        return [part(i) for i in range(self._n)]


class _OneStage(_Schedule):
    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Callable | None = None, **options: Any
    ) -> None:
        super().__init__([stage], n_microbatches, loss_fn, **options)
        self._stage = stage

    def _check(self) -> None:
        if self._stages[0].num_stages != self._stages[0].group.size():
            raise ValueError(f"{type(self).__name__}: expected one stage at each process; use ScheduleInterleaved1F1B")


class ScheduleGPipe(_OneStage):
    """All microbatches forward, then all backward (Huang et al. 2018)."""

    def _actions(self) -> list[Action]:
        return [Action(forward, 0, i) for forward in (True, False) for i in range(self._n)]


class Schedule1F1B(_OneStage):
    """One forward, one backward: as many microbatches are kept as stages come after this one (Narayanan et al. 2019)."""

    def _actions(self) -> list[Action]:
        ahead = min(self._n, self._stage.num_stages - self._stage.stage_index)
        return _alternating(
            [Action(True, 0, i) for i in range(self._n)], ahead, [Action(False, 0, i) for i in range(self._n)]
        )


class ScheduleInterleaved1F1B(_Schedule):
    """The same with several stages at each process: less time is idle (Narayanan et al. 2021)."""

    def _check(self) -> None:
        size = self._stages[0].group.size()
        if len(self._stages) * size != self._stages[0].num_stages:
            raise ValueError(
                f"ScheduleInterleaved1F1B: expected {self._stages[0].num_stages // size} stages at this process, got "
                f"{len(self._stages)}"
            )
        if self._n % size:
            raise ValueError(
                f"ScheduleInterleaved1F1B: the number of microbatches, {self._n}, must be a multiple of that of processes, "
                f"{size}"
            )

    def _actions(self) -> list[Action]:
        size, rank, own = self._stages[0].group.size(), self._stages[0].group.rank(), len(self._stages)
        order = [(k // size % own, k // (size * own) * size + k % size) for k in range(self._n * own)]
        forward = [Action(True, stage, i) for stage, i in order]
        backward = [Action(False, own - 1 - stage, i) for stage, i in order]
        return _alternating(forward, min(len(forward), (size - rank - 1) * 2 + (own - 1) * size + 1), backward)


def _alternating(forward: list[Action], ahead: int, backward: list[Action]) -> list[Action]:
    """``ahead`` forward, then backward and forward in turn, then the rest backward."""
    found = forward[:ahead]
    for i, action in enumerate(backward):
        found.append(action)
        found += forward[ahead + i : ahead + i + 1]
    return found
