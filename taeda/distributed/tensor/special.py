"""Ops whose work on parts is not said by letters: indexing, dropout, a cut vocabulary, an optimiser's step, norms."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from taeda.ops.table import OPS
from taeda.utils._pytree import tree_map

from ... import linalg, nn
from ..._core import device
from ..._typed import Tensor
from ...ops.comparison import equal
from ...ops.joining import stack
from . import dispatch
from .dispatch import COMPOSITES, OWN, _call, _refuse_copy, part_of
from .dtensor import DTensor, wrap
from .layout import Layout, chunk, replicated, without_partial
from .moves import redistribute
from .placement_types import Partial, Replicate


def own(*names: str) -> Callable:
    """Decorator: the function implements the ops called ``names``."""
    return functools.partial(_declare, OWN, names)


def composite(*names: str) -> Callable:
    """Decorator: the same of composites and methods."""
    return functools.partial(_declare, COMPOSITES, names)


def _declare(table: dict[str, Callable], names: tuple[str, ...], function: Callable) -> Callable:
    table.update(dict.fromkeys(names, function))
    return function


# ---- devices ---------------------------------------------------------------------------------------------------------


@composite("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "to")
def _on_device(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Onto device meta or from there: each process does that with its part."""
    named = [x for x in (*args, kwargs.get("device")) if isinstance(x, (str, device))]
    if not named or not (input._local.is_meta or device(named[0]).type == "meta"):
        return NotImplemented
    layout = input._layout._replace(placements=without_partial(input.placements))
    return wrap(func(input._local, *args, **kwargs), layout)


# ---- indexing --------------------------------------------------------------------------------------------------------


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(x is None or x is ... or isinstance(x, slice) or type(x) is int for x in items)


def _whole(x: Any) -> Any:
    return x._as(replicated(x.device_mesh))._local if isinstance(x, DTensor) else x


@composite("__getitem__")
def _getitem(func: Any, input: Any, index: Any) -> Any:
    if _is_basic(index) and isinstance(input, DTensor):
        return OPS["basic_index"](input, index)
    mesh = next(x.device_mesh for x in (input, *_flat(index)) if isinstance(x, DTensor))
    made = _whole(input)[tree_map(_whole, index)]
    return wrap(made, Layout(mesh, replicated(mesh), tuple(made.shape)))


def _flat(index: Any) -> tuple:
    return index if isinstance(index, tuple) else (index,)


@composite("__setitem__")
def _setitem(func: Any, input: Any, index: Any, value: Any) -> None:
    if not isinstance(input, DTensor):
        raise RuntimeError("a plain tensor cannot be changed in place to a DTensor; use full_tensor()")
    if _is_basic(index):
        view = OPS["basic_index"](input, index)
        if not view._copied:
            if isinstance(value, Tensor):
                view.copy_(value)
            else:
                view.fill_(value)
            return
    _refuse_copy("__setitem__", input)
    whole = _whole(input)
    whole = whole if whole is input._local else whole.clone()
    whole[tree_map(_whole, index)] = _whole(value)
    if whole is not input._local:
        mesh = input.device_mesh
        layout = Layout(mesh, replicated(mesh), tuple(whole.shape))
        input._local.copy_(redistribute(whole, layout, input.placements))


@composite("item", "tolist")
def _value(func: Any, input: Any) -> Any:
    return getattr(input, dispatch.name_of(func))()


@composite("untyped_storage", "storage", "data_ptr")
def _refused(func: Any, input: Any, *args: Any) -> Any:
    raise NotImplementedError(f"{dispatch.name_of(func)}: not of a DTensor; use to_local() or full_tensor()")


@composite("equal")
def _equal(func: Any, input: Any, other: Any) -> bool:
    return equal(_whole(input), _whole(other))


# ---- layers ----------------------------------------------------------------------------------------------------------


@own("_dropout")
def _dropout(op: Any, values: dict[str, Any]) -> Any:
    """The mask of the whole is drawn at every process, of which each keeps its part."""
    x = values["input"]
    x = x._as(without_partial(x.placements))
    kept = _call(op, {**values, "input": x.to_local().new_ones(tuple(x.shape))})[0]
    whole = Layout(x.device_mesh, replicated(x.device_mesh), tuple(x.shape))
    mask = redistribute(kept, whole, x.placements)
    return x._with(x._local * mask), x._with(mask)


@own("embedding")
def _embedding(op: Any, values: dict[str, Any]) -> Any:
    """Rows of a table that is cut along its rows: each process looks up those that it has, and the sum is partial."""
    weight, indices = values["weight"], values["indices"]
    if not isinstance(weight, DTensor) or not any(p.is_shard(0) for p in weight.placements):
        return NotImplemented
    mesh = weight.device_mesh
    cuts = [j for j, p in enumerate(weight.placements) if p.is_shard(0)]
    layout = dispatch.layout_of(indices, mesh)
    free = layout.placements[cuts[0]].is_replicate() and all(p.is_replicate() for p in weight.placements[1:])
    if mesh.ndim > 1 or len(cuts) > 1 or not free or values["scale_grad_by_freq"] or values["sparse"]:
        return NotImplemented
    start, length = chunk(weight.shape[0], mesh.size(), mesh.get_local_rank())
    here = part_of(indices) - start
    outside = (here < 0) | (here >= length)
    if length:
        padding = values["padding_idx"]
        padding = -1 if padding is None or padding < 0 else padding - start  # a negative one is none
        padding = padding if 0 <= padding < length else None
        found = nn.functional.embedding(here.masked_fill(outside, 0), weight._local, padding)
    else:
        found = weight._local.new_zeros((*here.shape, weight.shape[1])) + weight._local.sum()
    found = found.masked_fill(outside.unsqueeze(-1), 0.0)
    return wrap(found, Layout(mesh, (Partial(),), (*indices.shape, weight.shape[1])))


# ---- many tensors at once --------------------------------------------------------------------------------------------


@own("total_norm")
def _total_norm(op: Any, values: dict[str, Any]) -> Any:
    """The norm of all elements: powers of the parts are added up over the processes that have other parts, those of
    tensors that lie alike together."""
    order = float(values["order"])
    mesh = next(x.device_mesh for x in values["tensors"] if isinstance(x, DTensor))
    norms, alike = [], defaultdict(list)
    for x in values["tensors"]:
        if isinstance(x, DTensor):
            x = x._as(without_partial(x.placements))
            kinds = tuple(p.is_shard() for p in x.placements)
            alike[x.device_mesh, kinds].append(_norm_of_part(x._local, order))
        else:
            norms.append(linalg.vector_norm(x, order))
    for (own_mesh, cut), parts in alike.items():
        norms += _over_processes(stack([p.to(parts[0].dtype) for p in parts]), own_mesh, cut, order).unbind()
    total = linalg.vector_norm(stack([n.to(norms[0].dtype) for n in norms]), order)
    return wrap(total, Layout(mesh, replicated(mesh), ()))


def _norm_of_part(part: Tensor, order: float) -> Tensor:
    if not part.numel() and math.isinf(order):
        return part.new_full((), 0.0 if order > 0 else math.inf)
    return linalg.vector_norm(part, order)


def _over_processes(norms: Tensor, mesh: Any, cut: tuple[bool, ...], order: float) -> Tensor:
    plain = math.isinf(order) or order == 0
    kind = "sum" if not math.isinf(order) else "max" if order > 0 else "min"
    terms = tuple(Partial(kind) if c else Replicate() for c in cut)
    layout = Layout(mesh, terms, tuple(norms.shape))
    whole = redistribute(norms if plain else norms**order, layout, replicated(mesh))
    return whole if plain else whole ** (1.0 / order)


@own("change_all")
def _change_all(op: Any, values: dict[str, Any]) -> None:
    """Each element by itself: the parts."""
    tensors, others, number = values["tensors"], values["others"], values["number"]
    if others is not None:
        others = [
            part_of(o._as(t.placements) if isinstance(o, DTensor) else o)
            for t, o in zip(tensors, others, strict=True)
        ]  # fmt: skip
    number = number.full_tensor() if isinstance(number, DTensor) else number
    op([part_of(t) for t in tensors], values["how"], number, others)


@own("update_all")
def _update_all(op: Any, values: dict[str, Any]) -> None:
    """A step of an optimiser whose rule is of each element by itself: of the parts."""

    def alike(x: Any, p: Any) -> Any:
        return part_of(x._as(p.placements) if isinstance(x, DTensor) else x)

    params = values["params"]
    grads = [alike(g, p) for g, p in zip(values["grads"], params, strict=True)]
    states = [[alike(s, p) for s in own] for own, p in zip(values["states"], params, strict=True)]
    op([part_of(p) for p in params], grads, states, values["scalars"], values["rule"])
