"""From one placement to another: each move along one dimension of the mesh, with the move that brings gradients back.

The gradient of a replicated tensor is replicated, and that of a cut tensor is cut alike. The gradient of the terms of a
sum is replicated, since it is the same for each term. So the derivative of a move is another move, whose derivative is
the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from taeda.autograd import Function

from ..._core import contiguous_format
from ..._typed import Tensor
from ...autograd import is_grad_enabled, no_grad
from ...ops.creation import empty_like, ones_like, zeros_like
from ...ops.joining import cat
from .. import collectives
from ..groups import ReduceOp
from ..watching import functional
from .layout import Layout, chunk, cut_order
from .placement_types import Partial, Placement, Replicate, Shard

Step = Callable[[Tensor], Tensor]

_OPS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX,
}  # fmt: skip


class _Move(Function):
    """A step forward, and the step that is its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Step, back: Step) -> Tensor:
        ctx.steps = step, back
        with functional():
            return step(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        step, back = ctx.steps
        return move(g, back, step), None, None


def move(x: Tensor, step: Step, back: Step) -> Tensor:
    """``step(x)``, whose gradient goes through ``back``."""
    if x.requires_grad and is_grad_enabled():
        return _Move.apply(x, step, back)
    with no_grad(), functional():
        return step(x)


# ---- steps -----------------------------------------------------------------------------------------------------------


def _same(x: Tensor) -> Tensor:
    return x.view_as(x)


def _gather(group: Any, dim: int, size: int, x: Tensor) -> Tensor:
    """All parts, one after the other along ``dim``, where they are ``size`` long together."""
    n = group.size()
    longest = chunk(size, n, 0)[1]
    sizes = [chunk(size, n, i)[1] for i in range(n)]
    x = x.contiguous()
    if x.shape[dim] < longest:
        missing = list(x.shape)
        missing[dim] = longest - x.shape[dim]
        x = cat([x, x.new_zeros(missing)], dim)
    parts = [empty_like(x) for _ in range(n)]
    collectives.all_gather(parts, x, group)
    return cat([part.narrow(dim, 0, length) for part, length in zip(parts, sizes, strict=True)], dim)


def _cut(group: Any, dim: int, x: Tensor) -> Tensor:
    start, length = chunk(x.shape[dim], group.size(), group.rank())
    return x.narrow(dim, start, length).clone(memory_format=contiguous_format)


def _reduce(group: Any, op: str, x: Tensor) -> Tensor:
    result = x.clone(memory_format=contiguous_format)
    collectives.all_reduce(result, _OPS[op], group)
    return result


def _reduce_scatter(group: Any, dim: int, op: str, x: Tensor) -> Tensor:
    """The part of this process of the sum. Parts are padded to the longest."""
    n, size = group.size(), x.shape[dim]
    longest = chunk(size, n, 0)[1]
    parts = []
    for i in range(n):
        start, length = chunk(size, n, i)
        part = x.narrow(dim, start, length)
        if length < longest:
            missing = list(part.shape)
            missing[dim] = longest - length
            part = cat([part, part.new_zeros(missing)], dim)
        parts.append(part.contiguous())
    result = empty_like(parts[0])
    collectives.reduce_scatter(result, parts, _OPS[op], group)
    return result.narrow(dim, 0, chunk(size, n, group.rank())[1]).contiguous()


def _exchange(group: Any, cut_now: int, cut_next: int, size: int, x: Tensor) -> Tensor:
    """From parts along ``cut_now``, where the whole is ``size`` long, to parts along ``cut_next``."""
    n, me = group.size(), group.rank()
    width = x.shape[cut_next]
    inputs = [x.narrow(cut_next, *chunk(width, n, i)).contiguous() for i in range(n)]
    outputs = []
    for i in range(n):
        shape = list(x.shape)
        shape[cut_next], shape[cut_now] = chunk(width, n, me)[1], chunk(size, n, i)[1]
        outputs.append(x.new_empty(shape))
    collectives.all_to_all(outputs, inputs, group)
    return cat(outputs, cut_now)


def _first_alone(group: Any, op: str, x: Tensor) -> Tensor:
    if op in ("max", "min", "avg"):
        return _same(x)
    if group.rank() == 0:
        return _same(x)
    return zeros_like(x) if op == "sum" else ones_like(x)


def _over(n: int, x: Tensor) -> Tensor:
    return x / n


def _no_derivative(op: str, x: Tensor) -> Tensor:
    raise RuntimeError(f"Partial({op}): the derivative of a {op} over processes is not there; redistribute before it")


# ---- moves -----------------------------------------------------------------------------------------------------------


def spread(x: Tensor, group: Any) -> Tensor:
    """``x``, a replicated tensor that is about to meet one that is not: its gradients are terms, to be added up."""
    return move(x, _same, partial(_reduce, group, "sum"))


def _reducing(group: Any, op: str) -> tuple[Step, Step]:
    back: Step = _same if op == "sum" else partial(_over, group.size()) if op == "avg" else partial(_no_derivative, op)
    return partial(_reduce, group, op), back


def _step(x: Tensor, layout: Layout, at: int, new: Placement) -> Tensor:
    """Change the placement on mesh dimension ``at``, which is the last cut of the tensor dimensions concerned."""
    old, group = layout.placements[at], layout.mesh.get_group(at)
    if old == new or group.size() == 1:
        return x
    if isinstance(old, Shard):
        size = layout.sizes_before(at)[old.dim]
        gather, cut = partial(_gather, group, old.dim, size), partial(_cut, group, old.dim)
        if isinstance(new, Replicate):
            return move(x, gather, cut)
        if isinstance(new, Shard):
            width = x.shape[new.dim]
            forth = partial(_exchange, group, old.dim, new.dim, size)
            return move(x, forth, partial(_exchange, group, new.dim, old.dim, width))
        raise ValueError(f"redistribute: from {old!r} to {new!r} is not there; redistribute to Replicate() first")
    if isinstance(old, Partial):
        if isinstance(new, Replicate):
            return move(x, *_reducing(group, old.reduce_op))
        if isinstance(new, Shard) and old.reduce_op == "sum":
            gather = partial(_gather, group, new.dim, x.shape[new.dim])
            return move(x, partial(_reduce_scatter, group, new.dim, "sum"), gather)
        x = _step(x, layout, at, Replicate())
    if isinstance(new, Shard):
        return move(x, partial(_cut, group, new.dim), partial(_gather, group, new.dim, x.shape[new.dim]))
    if isinstance(new, Partial):
        back: Step = partial(_reduce, group, "sum") if new.reduce_op == "avg" else _same
        return move(x, partial(_first_alone, group, new.reduce_op), back)
    return x


def redistribute(x: Tensor, layout: Layout, placements: tuple[Placement, ...]) -> Tensor:
    """This process's part ``x`` of a tensor laid out as ``layout``, as its part under ``placements``."""
    goal = Layout(layout.mesh, placements, layout.shape)
    if layout.placements == placements:
        return x
    kept = _cuts_that_stay(layout, goal)
    single = _exchanges(layout, goal)
    for j in reversed(cut_order(layout.placements)):
        if isinstance(layout.placements[j], Shard) and j not in kept and j not in single:
            x, layout = _change(x, layout, j, Replicate())
    for j in single:
        x, layout = _change(x, layout, j, placements[j])
    for j in cut_order(placements):
        x, layout = _change(x, layout, j, placements[j])
    return x


def _change(x: Tensor, layout: Layout, at: int, new: Placement) -> tuple[Tensor, Layout]:
    places = list(layout.placements)
    places[at] = new
    return _step(x, layout, at, new), layout._replace(placements=tuple(places))


def _cuts_that_stay(old: Layout, new: Layout) -> set[int]:
    """Cuts that both have, made after the same earlier cuts of that dimension."""
    kept: set[int] = set()
    for dim in range(len(old.shape)):
        for a, b in zip(old.cuts(dim), new.cuts(dim), strict=False):
            if a != b:
                break
            kept.add(a[0])
    return kept


def _exchanges(old: Layout, new: Layout) -> list[int]:
    """Mesh dimensions on which one exchange moves the cut, as nothing else cuts the two dimensions before or after."""
    found = []
    for j, (a, b) in enumerate(zip(old.placements, new.placements, strict=True)):
        if isinstance(a, Shard) and isinstance(b, Shard) and a.dim != b.dim:
            cuts = [layout.cuts(dim) for layout in (old, new) for dim in (a.dim, b.dim)]
            if sum(map(len, cuts)) == 2:
                found.append(j)
    return found
