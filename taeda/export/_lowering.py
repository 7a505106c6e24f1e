"""The expression of a pointwise op's stanza, run on tensors: the op in other ops."""

from __future__ import annotations

import types
from typing import Any

from taeda import _core
from taeda._core import Op, Tensor
from taeda.ops.meta import planning
from taeda.ops.table import METHODS, OPS, asked_for

#: Scalar functions that ops have other names for.
_OTHER = {"select": "where", "like": "full_like", "at_least": "maximum", "at_most": "minimum"}


class _OfTensors:
    """Stands for the module of scalar functions in an expression: its functions are those of tensors."""

    def __init__(self, like: Tensor) -> None:
        self._like = like

    def __getattr__(self, name: str) -> Any:
        function = OPS.get(_OTHER.get(name, name)) or METHODS.get(_OTHER.get(name, name))
        if function is None:
            raise AttributeError(name)
        if name in ("at_least", "at_most", "select"):
            return lambda *args: function(*(self._tensor(a) for a in args))
        return function

    def _tensor(self, x: Any) -> Any:
        return x if isinstance(x, Tensor) else OPS["full_like"](self._like, x)


def of_expression(op: Op, *args: Any, **kwargs: Any) -> Any:
    """The value of ``op`` by its expression; NotImplemented where that is no expression of tensors."""
    function = op.__wrapped__
    if op.traits.get("outs") or kwargs.get("out") is not None:
        return NotImplemented
    values = dict(zip(op.params, op.defaults, strict=True))
    values.update(zip(op.params, args, strict=False))
    values.update({k: v for k, v in kwargs.items() if k != "out"})
    tensors = [v for v in values.values() if isinstance(v, Tensor)]
    with tensors[0].capture.aside(), planning():
        result = op(*map(_meta, values.values()))
    if not all(x.is_floating_point() and x.dtype is tensors[0].dtype for x in tensors):
        return NotImplemented  # promotion is the op's own
    scope = {**function.__globals__, "s": _OfTensors(tensors[0])}
    body = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    half = tensors[0].itemsize < 4
    given = [v.to(_core.float32) if half and isinstance(v, Tensor) else v for v in (values[n] for n in asked_for(body))]
    made = body(*given)
    if not isinstance(made, Tensor) or made.shape != result.shape:
        return NotImplemented
    return made if made.dtype is result.dtype else made.to(result.dtype)


def _meta(x: Any) -> Any:
    return x.metas[0] if isinstance(x, Tensor) else x
