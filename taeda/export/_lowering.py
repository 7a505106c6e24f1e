"""The expression of a pointwise op's stanza, run on tensors: the op in other ops."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

from taeda._core import Op, Tensor
from taeda.ops.meta import planning
from taeda.ops.table import METHODS, OPS, asked_for

from .. import _core

#: Scalar functions that ops have other names for.
_OTHER = {
    "at_least": "maximum", "at_most": "minimum", "exp_negative": "exp", "expm1_negative": "expm1",
}  # fmt: skip
#: Scalar functions that no canonical op has the name of, of the functions ``s`` and operands.
_WRITTEN: dict[str, Callable] = {
    "conj": lambda s, x: x,
    "exp2": lambda s, x: s.exp(x * math.log(2)),
    "fma": lambda s, x, y, z: x * y + z,
    "fmax": lambda s, x, y: s.select(s.isnan(y), x, s.select(s.isnan(x), y, s.maximum(x, y))),
    "fmin": lambda s, x, y: s.select(s.isnan(y), x, s.select(s.isnan(x), y, s.minimum(x, y))),
    "frac": lambda s, x: x - s.trunc(x),
    "gated": lambda s, y, x: y * s.sigmoid(x),
    "isfinite": lambda s, x: s.abs(x) < math.inf,
    "isneginf": lambda s, x: x == -math.inf,
    "isposinf": lambda s, x: x == math.inf,
    "log1p_of_exponential": lambda s, x: s.log1p(s.exp(-x)),
    "log_sigmoid": lambda s, x: s.at_most(x, 0.0) - s.log1p_of_exponential(s.abs(x)),
    "logaddexp": lambda s, x, y: s.select(
        (x == y) & (s.abs(x) == math.inf), x, s.maximum(x, y) + s.log1p_of_exponential(s.abs(x - y))
    ),
    "logaddexp2": lambda s, x, y: s.select(
        (x == y) & (s.abs(x) == math.inf), x,
        s.maximum(x, y) + s.log1p_of_exponential(s.abs(x - y) * math.log(2)) / math.log(2),
    ),
    "ndtr": lambda s, x: (s.erf(x * math.sqrt(0.5)) + 1.0) * 0.5,
    "real": lambda s, x: x,
    "sgn": lambda s, x: s.sign(x),
    "softplus": lambda s, x: s.at_least(x, 0.0) + s.log1p_of_exponential(s.abs(x)),
    "truth": lambda s, x: x if x.dtype is _core.bool_ else x != 0,
    "xlog1py": lambda s, x, y: s.select((x == 0) & ~s.isnan(y), s.like(x, 0.0), x * s.log1p(y)),
    "xlogy": lambda s, x, y: s.select((x == 0) & ~s.isnan(y), s.like(x, 0.0), x * s.log(y)),
}  # fmt: skip


class _Lacking(Exception):
    """No function of tensors is the scalar function that an expression calls."""


class _OfTensors:
    """Replaces the module of scalar functions in an expression by functions of tensors."""

    Complex = ()  # complex operands do not come here

    def __init__(self, like: Tensor) -> None:
        self._like = like

    def __getattr__(self, name: str) -> Any:
        if name in _WRITTEN:
            return functools.partial(_WRITTEN[name], self)
        function = OPS.get(_OTHER.get(name, name)) or METHODS.get(_OTHER.get(name, name))
        if function is None:
            raise _Lacking
        if name in ("at_least", "at_most", "maximum", "minimum"):
            return lambda *args: function(*(self._tensor(a) for a in args))
        return function

    def _tensor(self, x: Any) -> Any:
        return x if isinstance(x, Tensor) else OPS["full_like"](self._like, x)

    def abs(self, x: Any) -> Any:
        return OPS["abs"](x) if isinstance(x, Tensor) else abs(x)

    def constant(self, x: Any, value: Any) -> Any:
        return self.like(x, value)

    def like(self, x: Any, value: Any) -> Any:
        return OPS["full_like"](x if isinstance(x, Tensor) else self._like, value)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        if not isinstance(condition, Tensor):
            return x if condition else y
        return OPS["where"](condition, self._tensor(x), self._tensor(y))


def of_expression(op: Op, *args: Any, **kwargs: Any) -> Any:
    """The value of ``op`` by its expression; NotImplemented where that is no expression of tensors."""
    function = op.__wrapped__
    if op.traits.get("outs") or kwargs.get("out") is not None:
        return NotImplemented
    values = dict(zip(op.params, op.defaults, strict=True))
    values.update(zip(op.params, args, strict=False))
    values.update({k: v for k, v in kwargs.items() if k != "out"})
    named = op.params[function.__code__.co_argcount :]
    tensors = [v for v in values.values() if isinstance(v, Tensor)]
    with tensors[0].capture.aside(), planning():
        metas = {n: _meta(v) for n, v in values.items()}
        result = op(*(v for n, v in metas.items() if n not in named), **{n: metas[n] for n in named})
    kind = _computing(tensors, result)
    if kind is None:
        return NotImplemented  # promotion is the op's own
    body = _of_tensors(function, _OfTensors(tensors[0] if tensors[0].dtype is kind else tensors[0].to(kind)))
    given = {n: v.to(kind) if isinstance(v, Tensor) and v.dtype is not kind else v for n, v in values.items()}
    mode = tensors[0].capture
    before = [mode.memory(x).version for x in tensors]
    try:
        made = body(*(given[n] for n in asked_for(body)), **{n: given[n] for n in named})
    except _Lacking:
        return NotImplemented
    written = [mode.memory(x).version for x in tensors] != before  # ``x += 1`` makes another scalar, but not a tensor
    if written or not isinstance(made, Tensor) or _meta(made).shape != result.shape:
        return NotImplemented
    return made if made.dtype is result.dtype else made.to(result.dtype)


def _computing(tensors: Sequence[Tensor], result: Tensor) -> Any:
    """The dtype in which an expression of ``tensors`` is computed; None if it is not known."""
    dtype = tensors[0].dtype
    if any(x.dtype is not dtype for x in tensors) or dtype.is_complex:
        return None
    if not dtype.is_floating_point:
        return result.dtype if result.is_floating_point() or result.dtype is dtype else None
    return _core.float32 if dtype.itemsize < 4 else dtype


def _of_tensors(function: Any, scalars: _OfTensors) -> Any:
    """``function`` and the functions of its module that it calls, with functions of tensors instead of scalars."""
    scope = {**function.__globals__, "s": scalars}
    names = set(function.__code__.co_names)
    while names:
        name = names.pop()
        helper = scope.get(name)
        if isinstance(helper, types.FunctionType) and helper.__globals__ is function.__globals__:
            scope[name] = types.FunctionType(
                helper.__code__, scope, helper.__name__, helper.__defaults__, helper.__closure__
            )
            names |= set(helper.__code__.co_names)
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _meta(x: Any) -> Any:
    return x.metas[0] if isinstance(x, Tensor) else x
