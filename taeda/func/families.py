"""Rules of ``taeda.func.batching`` for families of ops, by their trait ``batch``.

========== ============================================================================================================
reduction  over ``dim`` (an int, several, or None for all of an example) of ``input``
along      along ``dim`` (or ``dims``) of one tensor
together   several tensors of the same rank, along ``dim``
leading    tensors of the same rank, whose last two dimensions are the op's own and whose leading ones broadcast
trailing   counts dimensions of ``input`` from the last; what else it takes is the same for every example
rows       all tensors have a first dimension over which the op does the same thing: the batch joins it
fold       the same of images, whose first dimension may not be there
check      gives plain numbers, of all that the arguments hold
indexed    ``index`` names places along ``dim``: the places of all examples, one after the other, are those of the batch
sized by   the sizes of the result depend on values: no rule
values
========== ============================================================================================================
"""

from __future__ import annotations

from typing import Any

from .._core import Tensor
from ..ops.table import OPS
from .batching import Call, _shift, _shift_all, family, rule


@family("sized by values")
def _sized_by_values(call: Call) -> Any:
    """Refused, even where the results of these examples have equal sizes."""
    raise RuntimeError(
        f"vmap: {call.op.name}() gives a result whose size depends on values. vmap does not support ops of dynamic "
        "shape; compute with masks, as taeda.where does, or call it outside"
    )


@rule("masked_select")
def _masked_select(call: Call) -> Any:
    """One mask for all examples gives results of one size."""
    return NotImplemented if call.only("input") else _sized_by_values(call)


# ---- along a dimension -----------------------------------------------------------------------------------------------


@family("reduction")
def _reduction(call: Call) -> Any:
    """Over given dimensions, or all of an example's."""
    x = call["input"]
    if not call.only("input"):
        return NotImplemented
    dim = call["dim"]
    physical = x.physical
    if x.dim() == 0:
        if dim is not None and not isinstance(dim, (tuple, list)):
            _shift(dim, 0, call.op.name)
        whole = physical.unsqueeze(1)
        return call(input=whole, dim=1, **({"keepdim": False} if "keepdim" in call.values else {}))
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        if call.op.name in ("argmax", "argmin", "prod", "aminmax"):  # these take one dimension
            keep = call["keepdim"]
            made = call(input=physical.reshape(call.mode.size, -1), dim=1, **({"keepdim": False}))
            return _restored(call, made, (1,) * x.dim()) if keep else made
        return call(dim=tuple(range(1, x.dim() + 1)))
    return call(dim=_shift_all(dim, x.dim(), call.op.name))


def _restored(call: Call, made: Any, shape: tuple) -> Any:
    if isinstance(made, tuple):
        items = [_restored(call, m, shape) for m in made]
        return type(made)(*items) if hasattr(made, "_fields") else tuple(items)
    return call.mode.wrap(made.physical.reshape(call.mode.size, *shape))


@rule("_max_all", "_min_all")
def _extreme(call: Call) -> Any:
    name = "amax" if call.op.name == "_max_all" else "amin"
    return (
        call.wrap(OPS[name](call["input"].physical.reshape(call.mode.size, -1), 1))
        if call["input"].numel()
        else NotImplemented
    )


@rule("median_all", "nanmedian_all")
def _middle(call: Call) -> Any:
    """Along each example as a row; where a gradient is asked for, example by example: equal numbers share it, and along
    a dimension they do not."""
    if not call["input"].numel() or call["input"].physical.requires_grad:
        return NotImplemented
    name = "median_dim" if call.op.name == "median_all" else "nanmedian_dim"
    return call.wrap(OPS[name](call["input"].physical.reshape(call.mode.size, -1), 1)[0])


@family("along")
def _along(call: Call) -> Any:
    """Along one dimension or several of one tensor. An example without dimensions is given one for the while."""
    name = "dim" if "dim" in call.values else "dims"
    first = call.op.params[0]
    x = call[first]
    if not call.only(first):
        return NotImplemented
    dims = call[name]
    if x.dim():
        return call(**{name: _shift_all(dims, x.dim(), call.op.name)})
    if isinstance(dims, (tuple, list)) or ("dtype" in call.values and name == "dims"):
        return NotImplemented
    _shift(dims, 0, call.op.name)
    made = call.run({**{n: call.plain(v) for n, v in call.values.items()}, first: x.physical.unsqueeze(1), name: 1})

    def single(t: Tensor) -> Any:
        return call.mode.wrap(t.squeeze(1) if t.dim() == 2 else t)

    if not isinstance(made, tuple):
        return single(made)
    return type(made)(*map(single, made)) if hasattr(made, "_fields") else tuple(map(single, made))


@family("together")
def _together(call: Call) -> Any:
    """Several tensors of the same rank, along one dimension."""
    tensors = {n: v for n, v in call.values.items() if isinstance(v, Tensor)}
    rank = max(x.dim() for x in tensors.values())
    if any(x.dim() != rank for x in tensors.values()):
        return NotImplemented
    made = call(**{n: _with_a_dimension(call, n) for n in tensors}, dim=_shift(call["dim"], rank, call.op.name))
    return made if rank else call.mode.wrap(made.physical.squeeze(1))


def _with_a_dimension(call: Call, name: str) -> Tensor:
    """The argument ``name``, whose examples get a dimension if they have none."""
    physical = call.physical(name)
    return physical if physical.dim() > 1 else physical.unsqueeze(1)


# ---- the whole batch as more of the same -----------------------------------------------------------------------------


@family("leading")
def _leading(call: Call) -> Any:
    """Matrices, rows of keys: all dimensions before the op's own broadcast. Pivots, ``tau`` and determinants have fewer
    dimensions than the matrices.
    """
    names = [n for n, v in call.values.items() if isinstance(v, Tensor)]
    rank, *others = {call[n].dim() + _LESS.get(n, 0) for n in names}
    if others or rank < 2:  # of vectors the batch would be a dimension of the op's own
        return NotImplemented
    return call(**{n: call.physical(n) for n in names})


_LESS = {"pivots": 1, "tau": 1, "det": 2}  # dimensions, by the names of parameters


@family("trailing")
def _trailing(call: Call) -> Any:
    """Ops that count dimensions from the last."""
    counted = len(call["pad"]) // 2 if "pad" in call.values else 2
    return call() if call["input"].dim() >= max(counted, 1) and call.only("input") else NotImplemented


def folded(x: Tensor) -> Tensor:
    """Batch and first dimension as one."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def unfolded(call: Call, made: Any) -> Any:
    """The inverse of :func:`folded`, for each result."""
    if isinstance(made, tuple):
        return tuple(unfolded(call, t) for t in made)
    return call.mode.wrap(made.reshape(call.mode.size, made.shape[0] // call.mode.size, *made.shape[1:]))


@family("rows")
def _rows(call: Call) -> Any:
    names = [n for n, v in call.values.items() if isinstance(v, Tensor)]
    return unfolded(call, call.run({**call.values, **{n: folded(call.physical(n)) for n in names}}))


@family("fold")
def _fold(call: Call) -> Any:
    return NotImplemented if any(isinstance(v, Tensor) and v.dim() < 3 for v in call.values.values()) else _rows(call)


@rule("_recurrent_layer")
def _recurrent_layer(call: Call) -> Any:
    """The examples' rows side by side in each step, if the weights are the same for all."""
    if not call.only("gates", "h0", "c0"):
        return NotImplemented
    size = call.mode.size
    values = {**call.values, "sizes": tuple(n * size for n in call["sizes"])}
    for name in ("gates", "h0", "c0"):
        if call[name] is not None:
            rows, width = call[name].shape
            values[name] = call.physical(name).transpose(0, 1).reshape(rows * size, width)
    return tuple(
        call.mode.wrap(t.reshape(t.shape[0] // size, size, t.shape[1]).transpose(0, 1)) if t.dim() == 2 else t
        for t in call.run(values)
    )


@rule("_attention")
def _attention(call: Call) -> Any:
    """All examples as one batch, for each row of which an example's mask is repeated."""
    mask, query = call["mask"], call["query"]
    if mask is None or query.dim() < 3:
        return _fold(call)
    if mask.dim() != query.dim():
        return NotImplemented
    values = {n: folded(call.physical(n)) for n, v in call.values.items() if isinstance(v, Tensor) and n != "mask"}
    masks = call.physical("mask")
    values["mask"] = folded(masks.expand(masks.shape[0], query.shape[0], *masks.shape[2:]))
    return unfolded(call, call.run({**call.values, **values}))


@family("check")
def _check(call: Call) -> Any:
    """A number that decides whether arguments are valid: over all examples at once."""
    return call.run({n: call.plain(v) for n, v in call.values.items()})


# ---- indices ---------------------------------------------------------------------------------------------------------


@family("indexed")
def _indexed(call: Call) -> Any:
    """The examples' slices along ``dim`` are laid end to end, and each example's index is moved on to its own part."""
    x, index, dim = call["input"], call["index"], call["dim"]
    size, rank = call.mode.size, max(x.dim(), 1)
    if index.dim() > 1 or not isinstance(dim, int):
        return NotImplemented
    dim = _shift(dim, rank, call.op.name)
    length = x.shape[dim - 1] if x.dim() else 1
    sources = [
        n for n in ("source", "value") if isinstance(call.values.get(n), Tensor) and (call[n].dim() or n == "source")
    ]
    if any(max(call[n].dim(), 1) != rank for n in sources) or any(
        call.held(n) for n in call.values if n not in ("input", "index", *sources)
    ):
        return NotImplemented

    def joined(t: Tensor) -> Tensor:
        return folded(t.movedim(dim, 1))

    index = call.physical("index").reshape(size, -1)
    low, high = OPS["extent"](index) if index.numel() else (0, 0)
    if low < 0 or high >= max(length, 1):
        raise IndexError(f"{call.op.name}(): index out of range: {low if low < 0 else high} for a size of {length}")
    if "functional" in call.op.traits:
        values = {n: call.plain(v) for n, v in call.values.items()}
        op = call.op.traits["functional"]
    else:
        values, op = dict(call.values), call.op
    values |= {n: joined(_with_a_dimension(call, n)) for n in ("input", *sources)}
    values |= {"dim": 0, "index": (index + OPS["arange"](size).unsqueeze(1) * length).reshape(-1).to(index.dtype)}
    n = op.npositional
    made = op(*[values[p] for p in op.params[:n]], **{p: values[p] for p in op.params[n:]})
    made = made.reshape(size, made.shape[0] // size, *made.shape[1:]).movedim(1, dim)
    made = made if x.dim() else made.squeeze(1)
    if op is not call.op:
        x.physical.copy_(made)
    return call.mode.wrap(made)


@rule("take", "put", "put_")
def _take(call: Call) -> Any:
    """All examples one after the other as one row of elements."""
    index, count = call.physical("index"), call["input"].numel()
    low, high = OPS["extent"](index) if index.numel() else (0, 0)
    if low < -count or (high >= count and index.numel()):
        raise IndexError(f"{call.op.name}(): index out of range")
    start = OPS["arange"](call.mode.size).reshape(-1, *[1] * call["index"].dim()) * count
    places = OPS["where"](index < 0, index + count, index) + start
    source = {"source": call.physical("source")} if "source" in call.values else {}
    return call(input=call.physical("input"), index=places, **source)


@rule("embedding")
def _embedding(call: Call) -> Any:
    if call.only("indices"):
        return call()
    weight, indices = call["weight"], call.physical("indices")
    if call["padding_idx"] not in (None, -1) or call["scale_grad_by_freq"] or call["sparse"]:
        return NotImplemented
    start = OPS["arange"](call.mode.size).reshape(-1, *[1] * call["indices"].dim()) * weight.shape[0]
    return call.mode.wrap(OPS["embedding"](folded(call.physical("weight")), indices + start))


@rule("_search")
def _search(call: Call) -> Any:
    sequence, values = call["sequence"], call["values"]
    if call.only("values") and sequence.dim() == 1:
        return call()
    if sequence.dim() == 1:
        size = call.mode.size
        made = call.run(
            {**call.values, "sequence": call.physical("sequence"), "values": call.physical("values").reshape(size, -1)}
        )
        return call.mode.wrap(made.reshape(size, *values.shape))
    return call(sequence=call.physical("sequence"), values=call.physical("values"))


# ---- losses ----------------------------------------------------------------------------------------------------------


@rule("_cross_entropy", "_nll_loss")
def _class_loss(call: Call) -> Any:
    """Each example's loss by itself: all losses first, the sum or the weighted mean of each example after."""
    x, target, weight, reduction = call["input"], call["target"], call["weight"], call["reduction"]
    if call.held("weight") or target.dtype.is_floating_point:
        return NotImplemented
    logits, classes = call.physical("input"), call.physical("target")
    size = call.mode.size
    one = x.dim() == 1
    logits = logits if one else folded(logits)
    classes = classes if one else folded(classes)
    named = {"input": logits, "target": classes, "reduction": "none"}
    made = call.run({**call.values, **named})
    made = made[0].reshape(size, *target.shape)
    if reduction == "none":
        return call.mode.wrap(made), None, None
    made = made.reshape(size, -1).sum(1)
    if reduction == "mean":
        kept = classes.reshape(size, -1) != call["ignore_index"]
        if weight is None:
            made = made / kept.sum(1)
        else:
            shown = OPS["where"](kept, classes.reshape(size, -1), 0)
            made = made / (weight[shown] * kept).sum(1)
    return call.mode.wrap(made), None, None  # the rest is for the derivative


@rule("_ctc_loss")
def _alignment_loss(call: Call) -> Any:
    """The sequences of all examples side by side."""
    time, batch, classes = call["log_probs"].shape
    size, targets = call.mode.size, call.physical("targets")
    made = call.run(
        {
            "log_probs": call.physical("log_probs").transpose(0, 1).reshape(time, size * batch, classes),
            "targets": targets.reshape(-1) if targets.dim() == 2 else folded(targets),
            "steps": call.physical("steps").reshape(-1),
            "lengths": call.physical("lengths").reshape(-1),
            "blank": call["blank"],
        }
    )
    return call.mode.wrap(made[0].reshape(size, batch)), None, None, None  # the rest is for the derivative


@rule("_batch_norm", "_deferred_batch_norm")
def _batch_norm(call: Call) -> Any:
    """Each example has its own statistics: its channels lie beside those of the others."""
    x, size = call["input"], call.mode.size
    if x.dim() < 2 and not x.numel():  # PyTorch lets it pass
        none = x.new_empty((0,))
        return call.wrap(OPS["clone"](call.physical("input"))), none, none
    if x.dim() < 2 or any(call.held(n) != call.held("running_mean") for n in ("running_mean", "running_var")):
        return NotImplemented
    running = call["running_mean"] is not None and not call.held("running_mean")
    if running and call["training"]:
        raise RuntimeError(
            "vmap: batch_norm would write the statistics of each example into running_mean and running_var, which are "
            "one for all. Use track_running_stats=False, group_norm, or give each example its own."
        )
    physical = x.physical if call.mode.holds(x) else call.mode.physical(x)
    merged = physical.transpose(0, 1).reshape(x.shape[0], size * x.shape[1], *x.shape[2:])
    values = {**call.values, "input": merged}
    for name in ("weight", "bias", "running_mean", "running_var"):
        if call[name] is not None:
            values[name] = call.physical(name).reshape(-1)
    if call["training"] and call.held("running_mean"):  # moved here, unlike the values that the derivative keeps
        values |= {name: values[name].clone() for name in ("running_mean", "running_var")}
    made, mean, rstd = call.run(values)
    if call["training"] and call.held("running_mean"):
        for name in ("running_mean", "running_var"):
            call[name].physical.copy_(values[name].reshape(size, -1))
    y = made.reshape(x.shape[0], size, *x.shape[1:]).transpose(0, 1)
    return call.wrap((y, mean.reshape(size, -1), rstd.reshape(size, -1)))
