"""Rules of ``taeda.func.batching`` for matrix products, layers and indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor, modes
from ..ops.table import OPS
from .batching import Call, _aligned, _pointwise, rule
from .families import folded, unfolded

# ---- products --------------------------------------------------------------------------------------------------------


def _product(call: Call, a: Any, b: Any) -> Tensor:
    """The matrix product of two examples, for the whole batch."""
    mode = call.mode
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are 0D and 0D or the like")
    vector_a, vector_b = a.dim() == 1, b.dim() == 1
    rank = max(a.dim(), b.dim(), 2)
    pa, pb = (x.physical if mode.holds(x) else x for x in (a, b))
    pa = pa.unsqueeze(-2) if vector_a else pa
    pb = pb.unsqueeze(-1) if vector_b else pb

    def align(x: Tensor, held: bool) -> Tensor:
        missing = rank + 1 - x.dim() if held else 0
        return x.reshape(x.shape[0], *([1] * missing), *x.shape[1:]) if missing else x

    made = OPS["matmul"](align(pa, mode.holds(a)), align(pb, mode.holds(b)))
    if vector_b:
        made = made.squeeze(-1)
    return made.squeeze(-1 if vector_b else -2) if vector_a else made


_PRODUCTS = {
    "matmul": ("input", "other"), "mm": ("input", "mat2"), "bmm": ("input", "mat2"),
    "mv": ("input", "vec"), "dot": ("input", "tensor"),
}  # fmt: skip


_DIMS = {
    "mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "addmm": (2, 2), "addmv": (2, 1), "baddbmm": (3, 3),
}  # fmt: skip


def _check_dims(call: Call, a: Any, b: Any) -> None:
    """Raise unless the examples have the dimensions that the op takes: ``matmul`` takes more."""
    dims = a.dim(), b.dim()
    if dims != _DIMS.get(call.op.name, dims):
        raise RuntimeError(f"{call.op.name}: shapes of the examples do not fit: {list(a.shape)} and {list(b.shape)}")


@rule(*_PRODUCTS)
def _matmul(call: Call) -> Any:
    a, b = (call[n] for n in _PRODUCTS[call.op.name])
    _check_dims(call, a, b)
    return call.wrap(_product(call, a, b))


@rule("_vdot")
def _conjugated_product(call: Call) -> Any:
    with modes([*_core.mode_stack(), call.mode]):
        return OPS["dot"](call["input"].conj_physical(), call["other"])


@rule("addmm", "addmv", "baddbmm")
def _add_product(call: Call) -> Any:
    first, a, b, beta, alpha = (call[n] for n in call.op.params)
    _check_dims(call, a, b)
    product = call.mode.wrap(_product(call, a, b)) if call.mode.holds(a) or call.mode.holds(b) else OPS["matmul"](a, b)
    with modes([*_core.mode_stack(), call.mode]):
        product = product if alpha == 1 else product * alpha
        return product if beta == 0 else product + (first if beta == 1 else first * beta)


@rule("linear")
def _linear(call: Call) -> Any:
    x, weight, bias = call["input"], call["weight"], call["bias"]
    if call.only("input"):
        return call()
    if weight.dim() > 2:
        raise RuntimeError(f"linear: expected a weight of 1 or 2 dimensions in each example, got {list(weight.shape)}")
    with modes([*_core.mode_stack(), call.mode]):
        made = OPS["matmul"](x, weight if weight.dim() == 1 else weight.transpose(0, 1))
        return made if bias is None else made + bias


# ---- layers ----------------------------------------------------------------------------------------------------------


@rule("_convolution", "_conv_input", "_conv_weight")
def _bilinear(call: Call) -> Any:
    """The maps between image, kernel and result: an image of every example in a row, or every example a group of
    channels."""
    first, second = call.op.params[:2]
    if call.only(first) and second == "weight":
        return unfolded(call, call.run({**call.values, first: folded(call.physical(first))}))

    def channels(name: str) -> Tensor:
        merged = call.physical(name)
        return folded(merged) if name == "weight" else _beside(merged)

    made = call.run(
        {**call.values, first: channels(first), second: channels(second), "groups": call["groups"] * call.mode.size}
    )
    if second == "grad":  # a kernel for each example
        return unfolded(call, made)
    return call.mode.wrap(made.reshape(made.shape[0], call.mode.size, -1, *made.shape[2:]).transpose(0, 1))


def _beside(x: Tensor) -> Tensor:
    """Put the channels of the examples side by side."""
    x = x.transpose(0, 1)
    return x.reshape(x.shape[0], -1, *x.shape[3:])


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _convolution(call: Call) -> Any:
    mode, x, weight, bias = call.mode, call["input"], call["weight"], call["bias"]
    space = weight.dim() - 2
    if call.only("input"):
        if x.dim() == space + 1:
            return call()
        made = call.run({**call.values, "input": folded(x.physical)})
        return mode.wrap(made.reshape(mode.size, x.shape[0], *made.shape[1:]))
    # weights differ: every example is a group of channels
    single = x.dim() == space + 1
    physical = mode.physical(x)
    physical = physical.unsqueeze(1) if single else physical
    bias = None if bias is None else mode.physical(bias).reshape(-1)
    changed = {
        "input": _beside(physical),
        "weight": folded(mode.physical(weight)),
        "bias": bias,
        "groups": call["groups"] * mode.size,
    }
    made = call.run({**call.values, **changed})
    made = made.reshape(made.shape[0], mode.size, -1, *made.shape[2:]).transpose(0, 1)
    return mode.wrap(made.squeeze(1) if single else made)


@rule("_group_norm")
def _group_norm(call: Call) -> Any:
    """Groups of channels of each row."""
    x, rest = call["input"], (1,) * (call["input"].dim() - 2)
    common: dict[str, Any] = {} if call.only("input") else dict.fromkeys(("weight", "bias"))
    made = call.run({**call.values, **common, "input": folded(call.physical("input"))})
    made = made.reshape(call.mode.size, *x.shape)
    return _scaled(call, made, lambda t: t.reshape(t.shape[0], 1, -1, *rest)) if common else call.mode.wrap(made)


@rule("layer_norm", "_rms_norm")
def _normalized(call: Call) -> Any:
    """Rows of each example."""
    if call.only("input"):
        return call()
    common: dict[str, Any] = {name: None for name in ("weight", "bias") if name in call.values}
    made = call.run({**call.values, **common, "input": call.physical("input")})
    lead = (1,) * (made.dim() - 1)
    return _scaled(call, made, lambda t: t.reshape(t.shape[0], *lead[t.dim() - 1 :], *t.shape[1:]))


def _scaled(call: Call, made: Tensor, place: Callable[[Tensor], Tensor]) -> Any:
    """``made`` by each example's own weight and bias, of which ``place`` makes tensors that broadcast."""
    for name, op in (("weight", "mul"), ("bias", "add")):
        if call.values.get(name) is not None:
            made = OPS[op](made, place(call.physical(name))).to(made.dtype)
    return call.mode.wrap(made)


# ---- indexing --------------------------------------------------------------------------------------------------------


def _plain_indices(call: Call) -> tuple | None:
    """Indices for the whole batch, if they are the same for every example, whole numbers, and next to each other."""
    indices = tuple(call["indices"])
    if any(call.mode.holds(i) or (i is not None and i.dtype is _core.bool_) for i in indices):
        return None
    places = [k for k, i in enumerate(indices) if i is not None]
    if not places or places[-1] - places[0] + 1 != len(places):
        return None
    return (None, *indices)


@rule("index")
def _index(call: Call) -> Any:
    indices = _plain_indices(call)
    if indices is not None:
        return call(indices=indices)
    return _index_each(call)


def _index_each(call: Call) -> Any:
    """Indices that differ between examples: the number of the example becomes the first index."""
    mode, indices = call.mode, tuple(call["indices"])
    places = [k for k, i in enumerate(indices) if i is not None]
    if any(i is not None and i.dtype is _core.bool_ for i in indices) or places != list(range(len(places))):
        return NotImplemented
    rank = max(indices[k].dim() for k in places)
    aligned = _aligned(mode, [indices[k] for k in places], rank)
    number = OPS["arange"](mode.size).reshape(-1, *[1] * rank)
    changes = {"input": call.physical("input"), "indices": (number, *aligned)}
    if "values" in call.values:
        changes["values"] = _aligned(mode, [call["values"]], rank + call["input"].dim() - len(places))[0]
    return call(**changes)


@rule("index_put")
def _index_put(call: Call) -> Any:
    indices = _plain_indices(call)
    values = call["values"]
    if not isinstance(values, Tensor):
        return NotImplemented
    if indices is None:
        return _index_each(call)
    places = [k for k, i in enumerate(indices) if i is not None]
    shown = max(indices[k].dim() for k in places) + call["input"].dim() - len(places)
    if values.dim() > shown:
        return NotImplemented
    return call(input=call.physical("input"), indices=indices, values=_aligned(call.mode, [values], shown)[0])


@rule("masked_fill", "masked_fill_")
def _masked_fill(call: Call) -> Any:
    """A value for each example is a tensor like the others."""
    if not call.held("value"):
        return _pointwise(call)
    x, mask, value = call["input"], call["mask"], call["value"]
    with modes([*_core.mode_stack(), call.mode]):
        made = OPS["where"](mask, value.to(x.dtype), x)
    if call.op.name == "masked_fill_":
        x.physical.copy_(made.physical)
    return made
