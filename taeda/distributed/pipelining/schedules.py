"""Schedules: in which order the processes of a pipeline do the passes of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import is_grad_enabled, no_grad
from . import bubbles, orders
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks, split_tree
from .orders import BACKWARD, FORWARD, WEIGHTS, Order
from .stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "get_schedule_class",
]  # fmt: skip


class _Schedule:
    """A step of a pipeline. Subclasses say in which order."""

    _plan: Callable[[int, int, int, int], Order]
    _forward_plan: Callable[[int, int, int, int], Order] = staticmethod(orders.forward_only)
    _place: Callable[[int, int], int] = staticmethod(orders.in_loop)

    def _prepare(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None, args_chunk_spec: Any,
        kwargs_chunk_spec: Any, output_merge_spec: Any, scale_grads: bool,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if n_microbatches < 1:
            raise ValueError(f"{name}: expected at least one microbatch, got {n_microbatches}")
        first = stages[0]
        ranks, count = first.group_size, first.num_stages
        place = type(self)._place
        expected = [s for s in range(count) if place(s, ranks) == first.group_rank]
        if [s.stage_index for s in stages] != expected or any(s.num_stages != count for s in stages):
            raise ValueError(
                f"{name}: expected the stages {expected} of {count} on rank {first.group_rank} of {ranks}, got "
                f"{[s.stage_index for s in stages]}"
            )
        self._stages = {s.stage_index: s for s in stages}
        for stage in stages:
            stage.channel.mail = first.channel.mail
            stage.channel.place = place
            stage.channel.forget()
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._specs = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._scale = 1 / n_microbatches if scale_grads else 1.0
        where = ranks, count, n_microbatches
        self._order = orders.check(type(self)._plan, *where)[first.group_rank]
        self._forward_order = orders.check(type(self)._forward_plan, *where)[first.group_rank]

    @property
    def pipeline_order(self) -> Order:
        """The passes of this process, in order."""
        return list(self._order)

    def step(
        self, *args: Any, target: Any = None, losses: list | None = None, return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Forward and, with a ``loss_fn``, backward on all microbatches of a batch. Every process calls it.

        Gradients are added to the parameters' gradients: the mean over microbatches, or the sum with
        ``scale_grads=False``.

        Args:
            args: the batch, at the process of the first stage.
            target: what ``loss_fn`` compares with, at the process of the last stage.
            losses: replaced by the losses of the microbatches, at the process of the last stage.
            return_outputs: give the outputs of the last stage.
            loss_kwargs: further arguments of ``loss_fn``.
            kwargs: of the module of each stage that is here, cut as ``args`` are.
        Returns:
            The outputs of the whole batch at the process of the last stage, otherwise None.
        Raises:
            RuntimeError: a stage failed, or gradients are switched off.
            ValueError: a tensor does not divide into so many microbatches.
        """
        train = self._loss_fn is not None
        if train and not is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "taeda.no_grad() context. Please call eval() instead."
            )
        order = self._order if train else self._forward_order
        return self._run(order, args, kwargs, target, losses, return_outputs, loss_kwargs or {})

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """The forward passes of :meth:`step` alone, without gradients."""
        with no_grad():
            return self._run(self._forward_order, args, kwargs, target, losses, True, {})

    def _run(
        self, order: Order, args: tuple, kwargs: dict, target: Any, losses: list | None, return_outputs: bool,
        loss_kwargs: dict,
    ) -> Any:  # fmt: skip
        n = self._n_microbatches
        args_of, kwargs_of = split_args_kwargs_into_chunks(args, kwargs, n, *self._specs)
        targets = None if target is None else split_tree(target, None, n, "target")
        found: dict[int, Any] = {}
        for stage in self._stages.values():
            stage.clear_runtime_states()
        next(iter(self._stages.values())).channel.mail.clear()
        for index, kind, m in order:
            stage, last = self._stages[index], m == n - 1
            if kind == WEIGHTS:
                stage.backward_weight_one_chunk(m)
                continue
            if kind != FORWARD:
                loss = found[m] if stage.is_last else None
                stage.backward_one_chunk(m, loss, self._scale, last, full_backward=kind == BACKWARD)
                continue
            output = stage.forward_one_chunk(m, args_of[m], kwargs_of[m], last)
            if stage.is_last and self._loss_fn is not None and (targets is not None or order is self._order):
                found[m] = self._loss_fn(output, None if targets is None else targets[m], **loss_kwargs)
        for stage in self._stages.values():
            stage.channel.flush()
        if losses is not None and found:
            losses[:] = [found[m] for m in range(n)]
        final = [stage for stage in self._stages.values() if stage.is_last]
        if not final or not return_outputs:
            return None
        return merge_chunks(final[0].output_chunks, self._output_merge_spec)


class PipelineScheduleSingle(_Schedule):
    """One stage a process."""

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None, output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        self._prepare(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )


class PipelineScheduleMulti(_Schedule):
    """Several stages a process."""

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None, output_merge_spec: Any = None,
        scale_grads: bool = True, backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(stages, (list, tuple)) or not stages:
            raise ValueError(f"{type(self).__name__}: expected the list of this process's stages, got {stages!r}")
        self._prepare(
            list(stages), n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )


class ScheduleGPipe(PipelineScheduleSingle):
    """All forward passes, then all backward passes: :func:`orders.gpipe`."""

    _plan = staticmethod(orders.gpipe)


class Schedule1F1B(PipelineScheduleSingle):
    """Backward passes as early as they can be: :func:`orders.one_forward_one_backward`."""

    _plan = staticmethod(orders.one_forward_one_backward)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B with several stages a process: :func:`orders.interleaved`."""

    _plan = staticmethod(orders.interleaved)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """GPipe with several stages a process, breadth first: :func:`orders.gpipe`."""

    _plan = staticmethod(orders.gpipe)

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Callable | None = None,
        output_merge_spec: Any = None, scale_grads: bool = True, backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, scale_grads)


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """Gradients of weights where a process would wait: :func:`bubbles.interleaved_zero_bubble`."""

    _plan = staticmethod(bubbles.interleaved_zero_bubble)


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """The same with stages in the form of a V: :func:`bubbles.vee_zero_bubble`.

    There are ``2 * ranks`` stages; rank ``r`` has stages ``r`` and ``2 * ranks - 1 - r``.
    """

    _plan = staticmethod(bubbles.vee_zero_bubble)
    _forward_plan = staticmethod(orders.forward_in_vee)
    _place = staticmethod(orders.in_vee)


class ScheduleDualPipeV(PipelineScheduleMulti):
    """Forward and backward passes in turn, with stages in the form of a V: :func:`bubbles.dual_vee`.

    DualPipeV runs the forward pass of one microbatch and the backward pass of another at the same time. Here one runs
    after the other.
    """

    _plan = staticmethod(bubbles.dual_vee)
    _forward_plan = staticmethod(orders.forward_in_vee)
    _place = staticmethod(orders.in_vee)


def get_schedule_class(schedule_name: str) -> Any:
    """The schedule of a name, ``"1F1B"`` or ``"Schedule1F1B"``, in any case.

    Args:
        schedule_name: the name.
    Returns:
        The class.
    Raises:
        ValueError: there is none.
    """
    bases = PipelineScheduleSingle, PipelineScheduleMulti
    kinds: list[type] = [kind for base in bases for kind in base.__subclasses__()]
    known = {kind.__name__.removeprefix("Schedule").lower(): kind for kind in kinds}
    found = known.get(schedule_name.lower().removeprefix("schedule"))
    if found is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {sorted(known)}")
    return found
