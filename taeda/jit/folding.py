"""Frozen functions in fewer steps: batch normalisation, sums and products with constants go into the layer before."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .._core import Tensor
from ..autograd import no_grad
from ..nn.utils.fusion import fuse_conv_bn_weights
from ..ops.creation import full, zeros_like
from . import ir
from .flattening import Flattener, assigned, inside
from .schemas import Schema
from .types import BOOL, INT, TENSOR, ClassType

_CONVOLUTIONS = frozenset(f"aten::conv{n}d" for n in (1, 2, 3))
_TRANSPOSED = frozenset(f"aten::conv_transpose{n}d" for n in (1, 2, 3))
_GENERAL = frozenset(("aten::convolution", "aten::_convolution"))
#: Ops that ask for the sizes of a tensor alone: they give the same for the normalised one.
_SIZES = frozenset(("aten::dim", "aten::size", "aten::len", "aten::numel"))
_DIM = Schema("aten::dim(Tensor self) -> int")
_EQ = Schema("aten::eq.int(int a, int b) -> bool")


def optimize(kind: ClassType, roots: list[ir.Function]) -> None:
    """Rewrite the methods of a frozen module: calls are written into ``roots``, layers are folded.

    Methods that nothing calls any more are left out.
    """
    waiting, kept = list(roots), {}
    while waiting:
        function = waiting.pop()
        if function.name in kept:
            continue
        kept[function.name] = function
        _rewrite(function)
        waiting += [x.function for x in inside(function.body) if isinstance(x, ir.Call) and x.function.owner is kind]
    for name in [n for n in kind.methods if n not in kept]:
        del kind.methods[name]


def _rewrite(function: ir.Function) -> None:
    changed, count = True, 0
    while changed or count < 2:  # the first time gives variables one value each, the second puts it in
        flattener = Flattener(function)
        body = flattener.body()
        function.body, function.slots, function._run = body, flattener.slots, None
        changed, count = _fold(function), count + 1


class _Uses:
    """The places where variables are assigned and read."""

    def __init__(self, function: ir.Function) -> None:
        self.assigned = assigned(function.body)
        self.made: dict[int, ir.Assign] = {}
        self.reads: Counter[int] = Counter()
        for node in inside(function.body):
            if isinstance(node, ir.Assign):
                self.made[node.target.slot] = node
                self.reads[node.target.slot] -= 1
            elif isinstance(node, ir.Var):
                self.reads[node.slot] += 1
            elif isinstance(node, ir.Op) and node.schema.qualified in _SIZES and isinstance(node.args[0], ir.Var):
                self.reads[node.args[0].slot] -= 1

    def maker(self, e: Any) -> ir.Assign | None:
        """The step whose result is read by nothing but the expression that reads the variable ``e``."""
        if not isinstance(e, ir.Var) or self.assigned[e.slot] != 1 or self.reads[e.slot] != 1:
            return None
        return self.made.get(e.slot)


def _fold(function: ir.Function) -> bool:
    """Fold what can be folded. Whether something was."""
    uses, changed = _Uses(function), False
    for step in [s for s in inside(function.body) if isinstance(s, ir.Assign)]:
        op = step.value
        if not isinstance(op, ir.Op) or not op.args:
            continue
        layer = uses.maker(op.args[0])
        if layer is None or not isinstance(layer.value, ir.Op) or layer.value is op:
            continue
        if op.schema.qualified == "aten::batch_norm":
            made = _normalized(layer, op)
        else:
            made = _scaled(layer, op)
        if made is not None:
            step.value, changed = made, True
    return changed


def _constant(e: Any) -> Any:
    """The value of a constant; NotImplemented for anything else."""
    return e.value if isinstance(e, ir.Const) else None if e is None else NotImplemented


def _weights(op: ir.Op) -> tuple[Any, Any, bool] | None:
    """Weight and bias of a convolution or linear layer that are known, and whether it is transposed."""
    name = op.schema.qualified
    if name not in _CONVOLUTIONS | _TRANSPOSED | _GENERAL and name != "aten::linear":
        return None
    transposed: Any = name in _TRANSPOSED
    groups: Any = 1
    for p, a in zip(op.schema.parameters, op.args, strict=True):
        if p.name in ("transposed", "groups"):
            value = p.default if a is None else _constant(a)
            transposed, groups = (value, groups) if p.name == "transposed" else (transposed, value)
    weight, bias = _constant(op.args[1]), _constant(op.args[2])
    if not isinstance(weight, Tensor) or not weight.is_floating_point() or bias is NotImplemented:
        return None
    if not isinstance(transposed, bool) or not isinstance(groups, int) or (transposed and groups != 1):
        return None
    return weight, bias, transposed


def _with_weights(op: ir.Op, weight: Tensor, bias: Tensor) -> ir.Op:
    args = list(op.args)
    args[1:3] = [ir.Const(x.detach(), TENSOR) for x in (weight, bias)]
    return ir.Op(op.schema, args, op.type, op.rest)


def _normalized(layer: ir.Assign, norm: ir.Op) -> Any:
    """The expression that replaces ``norm`` of a layer's result, with new weights in the layer; else None."""
    op: Any = layer.value
    found = _weights(op)
    names = "weight bias running_mean running_var training momentum eps".split()
    given = {p.name: _constant(a) for p, a in zip(norm.schema.parameters, norm.args, strict=True) if p.name in names}
    if found is None or given["training"] is not False:
        return None
    weight, bias, transposed = found
    mean, variance = given["running_mean"], given["running_var"]
    if any(x is NotImplemented for x in given.values()) or mean is None or variance is None:
        return None
    if mean.dtype is not weight.dtype or mean.numel() != weight.shape[1 if transposed else 0]:
        return None
    made = fuse_conv_bn_weights(weight, bias, mean, variance, given["eps"], given["weight"], given["bias"], transposed)
    folded = _with_weights(op, *made)
    if op.schema.qualified != "aten::linear":
        layer.value = folded
        return layer.target
    if not isinstance(op.args[0], ir.Var):
        return None
    # The features of a linear layer are the channels only where its result has two dimensions.
    layer.value = ir.Choose(_is_matrix(op.args[0]), folded, op, TENSOR)
    return ir.Choose(_is_matrix(layer.target), layer.target, norm, TENSOR)


def _is_matrix(x: Any) -> ir.Op:
    return ir.Op(_EQ, [ir.Op(_DIM, [x], INT), ir.Const(2, INT)], BOOL)


def _scaled(layer: ir.Assign, step: ir.Op) -> Any:
    """The expression for a convolution's result with a constant added or multiplied; None if it cannot be folded."""
    op: Any = layer.value
    name, found = step.schema.name, _weights(op)
    if found is None or step.schema.space != "aten" or name not in ("add", "sub", "mul", "div") or len(step.args) < 2:
        return None
    weight, bias, transposed = found
    if op.schema.qualified == "aten::linear" or any(_constant(a) not in (None, 1) for a in step.args[2:]):
        return None
    channels, constant = weight.shape[1 if transposed else 0], _constant(step.args[1])
    if isinstance(constant, Tensor):
        spatial = weight.dim() - 2
        sizes = (1,) * (spatial + 2 - constant.dim()) + tuple(constant.shape)
        if constant.dtype is not weight.dtype or sizes not in ((1, n, *(1,) * spatial) for n in (1, channels)):
            return None
        constant = constant.reshape(-1).expand(channels)
    elif isinstance(constant, bool) or not isinstance(constant, (int, float)):
        return None
    else:
        constant = full((channels,), float(constant), dtype=weight.dtype, device=weight.device)
    with no_grad():
        if not constant.isfinite().all() or (name == "div" and (constant == 0).any()):
            return None
        bias = zeros_like(constant) if bias is None else bias
        if name in ("add", "sub"):
            layer.value = _with_weights(op, weight, bias + constant if name == "add" else bias - constant)
            return layer.target
        shape = [1] * weight.dim()
        shape[1 if transposed else 0] = -1
        factor = constant if name == "mul" else 1 / constant
        layer.value = _with_weights(op, weight * factor.reshape(shape), bias * factor)
        return layer.target
