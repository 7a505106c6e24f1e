"""Layers: parts of a model whose cost is read off a run on device meta, or measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ... import _core, autograd
from ..._core.memory import memory_stats, reset_peak_memory_stats
from ..._typed import Tensor
from ...ops.creation import empty_like, ones_like
from ...ops.flops import flops_of_call
from ...utils import _pytree as pytree
from .network import COLLECTIVES, OpCost

__all__ = ["Cost", "Layer", "Traffic"]


@dataclass(frozen=True)
class Traffic:
    """A collective that a layer does on each microbatch.

    Attributes:
        kind: ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"all_to_all"`` or ``"send"``.
        dim: the dimension of the mesh along which its processes lie.
        nbytes: of the whole tensor.
        backward: whether it belongs to the backward pass.
        hidden: it goes on beside the layer's arithmetic, rather than before it.
    """

    kind: str
    dim: str
    nbytes: float
    backward: bool = False
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.kind not in COLLECTIVES:
            raise ValueError(f"Traffic: expected a kind of {COLLECTIVES}, got {self.kind!r}")


@dataclass(frozen=True)
class Layer:
    """A part of a model as one process has it.

    Attributes:
        module: a module on device meta, with the sizes that this process has of it.
        inputs: its arguments for one microbatch, on device meta.
        count: how many such layers there are, one after the other.
        traffic: what it exchanges with other processes, apart from what the step adds (gradients, sharded parameters,
            stages).
        recompute: only its inputs are kept for the backward pass, which runs the forward pass again.
        seconds: measured times of the forward and backward passes, in place of those from the plan.
        name: for the schedule.
    """

    module: Callable
    inputs: tuple
    count: int = 1
    traffic: tuple[Traffic, ...] = ()
    recompute: bool = False
    seconds: tuple[float, float] | None = None
    name: str = ""

    def measured(self, module: Callable, *inputs: Any, repeat: int = 5) -> Layer:
        """The same layer with the times of ``module(*inputs)`` on this machine: the fastest of ``repeat`` runs."""
        best = [float("inf"), float("inf")]
        for _ in range(repeat + 1):
            start = time.perf_counter()
            out = module(*inputs)
            middle = time.perf_counter()
            roots, grads = _roots(out)
            begun = time.perf_counter()
            if roots:
                autograd.backward(roots, [ones_like(g) for g in grads])
            end = time.perf_counter()
            best = [min(best[0], middle - start), min(best[1], end - begun)]
        return replace(self, seconds=(best[0], best[1]))


@dataclass(frozen=True)
class Cost:
    """The cost of one layer for one microbatch.

    Attributes:
        forward, backward: those of each op.
        parameters: bytes of parameters; ``count`` of their elements.
        count: elements of the parameters.
        inputs, outputs: bytes of what comes in and goes out.
        saved: bytes that stay between the passes, outputs included.
        work: bytes that are needed beside these at the worst moment.
    """

    forward: tuple[OpCost, ...]
    backward: tuple[OpCost, ...]
    parameters: int
    count: int
    inputs: int
    outputs: int
    saved: int
    work: int

    @property
    def flops(self) -> int:
        """Floating point operations of both passes."""
        return sum(op.flops for op in (*self.forward, *self.backward))


class _Counting:
    """The mode: notes the arithmetic and the bytes of every op that runs a kernel; of those on device meta alone, if
    asked.

    The bytes that an op reads and writes. Memory that it changes counts twice.

    Args:
        ops: something with ``append(OpCost(...))``; what ``with`` gives.
        only_meta: whether ops without a tensor on device meta are left out.
    """

    watches = True

    def __init__(self, ops: Any = None, only_meta: bool = False) -> None:
        self.ops: Any = [] if ops is None else ops
        self._only_meta = only_meta

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """The call, which counts."""
        if _core.is_mode_active() or type(op) is not _core.Op or op.traits.get("view"):
            return _core.pass_through(self, op, args, kwargs)
        read = _tensors((args, kwargs))
        before = [x._version for x in read]  # type: ignore[attr-defined]
        result = self.call(op, args, kwargs)
        written = [x for x, v in zip(read, before, strict=True) if x._version != v]  # type: ignore[attr-defined]
        made = [x for x in _tensors(result) if not any(x is old for old in written)]
        if (read or made) and (not self._only_meta or any(x.is_meta for x in (*read, *made))):
            sizes = pytree.tree_map(lambda x: x.shape if isinstance(x, Tensor) else x, (args, kwargs, result))
            moved = sum(x.nbytes for x in (*read, *written, *made))
            self.ops.append(OpCost(flops_of_call(op, *sizes), moved, op.__name__))
        return result

    def call(self, op: Any, args: tuple, kwargs: dict) -> Any:
        return op(*args, **kwargs)

    def __enter__(self) -> Any:
        _core.set_mode_stack([self, *_core.mode_stack()])
        return self.ops

    def __exit__(self, *exc: object) -> None:
        _core.set_mode_stack([mode for mode in _core.mode_stack() if mode is not self])


def _tensors(tree: Any) -> list[Tensor]:
    found = {id(x): x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor)}
    return list(found.values())


def _bytes(tree: Any) -> int:
    return sum(x.nbytes for x in pytree.tree_leaves(tree) if isinstance(x, Tensor))


def _roots(out: Any) -> tuple[list[Tensor], list[Tensor]]:
    roots = [x for x in pytree.tree_leaves(out) if isinstance(x, Tensor) and x.requires_grad]
    return roots, [empty_like(x.detach()) for x in roots]


def _parameters(module: Any) -> Sequence[Tensor]:
    return list(module.parameters()) if hasattr(module, "parameters") else []


def cost_of(layer: Layer) -> Cost:
    """Run the layer on device meta, forward and backward.

    Args:
        layer: the layer.

    Returns:
        What it costs.

    Raises:
        ValueError: a parameter or an input is not on device meta.
    """
    parameters = _parameters(layer.module)
    given = [x for x in pytree.tree_leaves(layer.inputs) if isinstance(x, Tensor)]
    for x in (*parameters, *given):
        if not x.is_meta:
            raise ValueError(
                f"simulate: expected layers on device meta, got a tensor on {x.device}: make them within "
                f"`with taeda.device('meta'):`"
            )
    for p in parameters:
        p.grad = None
    inputs = pytree.tree_map(_leaf, layer.inputs)
    before = memory_stats()["planned"]
    reset_peak_memory_stats()
    with _Counting() as forward:
        out = layer.module(*inputs)
    saved = memory_stats()["planned"] - before
    outputs = _bytes(out)
    roots, grads = _roots(out)
    with _Counting() as backward:
        if roots:
            autograd.backward(roots, grads)
    peak = memory_stats()["peak_planned"] - before
    owned = sum(p.grad.nbytes for p in parameters if p.grad is not None)
    for p in parameters:
        p.grad = None
    return Cost(
        tuple(forward), tuple(backward), _bytes(parameters), sum(p.numel() for p in parameters), _bytes(inputs),
        outputs, saved, max(0, peak - saved - owned),
    )  # fmt: skip


def _leaf(x: Any) -> Any:
    if isinstance(x, Tensor) and x.is_floating_point():
        return x.detach().requires_grad_()
    return x
