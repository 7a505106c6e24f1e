"""Class losses of cut scores (along the batch, along the classes, or both), and the number that a loss is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ... import nn
from ..._typed import Tensor
from .dispatch import COMPOSITES, WITH_PLAIN, layout_of, part_of
from .dtensor import DTensor, wrap
from .layout import Layout, replicated
from .moves import redistribute
from .placement_types import Partial, Placement, Replicate


def _class_loss(
    func: Any, input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The loss from the parts; NotImplemented where the options ask for whole scores."""
    plain = weight is None and size_average is None and reduce is None and not label_smoothing
    if not isinstance(input, DTensor) or not plain or target.is_floating_point() or input.dim() < 2:
        return NotImplemented
    by_class = [j for j, p in enumerate(input.placements) if p.is_shard(1)]
    by_batch = [j for j, p in enumerate(input.placements) if p.is_shard(0)]
    logits = func.__name__ == "cross_entropy"
    if reduction not in ("mean", "sum") or len(by_class) > 1 or not (by_class or by_batch) or (by_class and not logits):
        return NotImplemented
    kept = {*by_class, *by_batch}
    x = input._as(tuple(p if j in kept else Replicate() for j, p in enumerate(input.placements)))
    mesh = x.device_mesh
    of_target = tuple(p if p.is_shard(0) else Replicate() for p in x.placements)
    classes = redistribute(part_of(target), layout_of(target, mesh), of_target)
    counts = classes != ignore_index
    if by_class:
        each = _cut_classes(x, classes.masked_fill(~counts, 0), by_class[0])
        total = each.masked_fill(~counts, 0.0).sum()
    else:
        options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": "sum"}
        functional = nn.functional
        total = (functional.cross_entropy if logits else functional.nll_loss)(x._local, classes, **options)
    terms = tuple(Partial() if j in by_batch else Replicate() for j in range(mesh.ndim))
    result = wrap(total, Layout(mesh, terms, ()))
    if reduction == "sum":
        return result
    return result / redistribute(counts.sum(), Layout(mesh, terms, ()), replicated(mesh))


def _cut_classes(x: DTensor, classes: Tensor, at: int) -> Tensor:
    """``-log_softmax(x)[class]`` of scores whose dimension 1 is cut over mesh dimension ``at``: no scores are moved."""
    part, layout = x._local, x._layout
    start, length = layout.offsets()[1], part.shape[1]

    def over_classes(t: Tensor, kind: str) -> Tensor:
        places: list[Placement] = [Replicate()] * x.device_mesh.ndim
        places[at] = Partial(kind)
        return redistribute(t, Layout(x.device_mesh, tuple(places), tuple(t.shape)), replicated(x.device_mesh))

    here = part.detach()
    top = here.amax(1) if length else here.new_full((here.shape[0], *here.shape[2:]), float("-inf"))
    top = over_classes(top, "max")
    total = over_classes((part - top.unsqueeze(1)).exp().sum(1), "sum")
    index = classes - start
    inside = (index >= 0) & (index < length)
    if length:
        picked = part.gather(1, index.masked_fill(~inside, 0).unsqueeze(1)).squeeze(1).masked_fill(~inside, 0.0)
    else:
        picked = part.sum(1)
    return total.log() + top - over_classes(picked, "sum")


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Within it, ``cross_entropy`` of scores that are DTensors takes a plain target, which every process has whole.

    Scores that are cut along the classes are not moved, here and outside of it.
    """
    before = set(WITH_PLAIN)
    WITH_PLAIN.update(("cross_entropy", "nll_loss"))
    try:
        yield
    finally:
        WITH_PLAIN.intersection_update(before)


def _item(func: Any, x: DTensor) -> Any:
    """The number that the processes have together."""
    return x.full_tensor().item()


COMPOSITES["item"] = _item
COMPOSITES.update(cross_entropy=_class_loss, nll_loss=_class_loss)
