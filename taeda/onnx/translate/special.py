"""Special functions: the kernels' computations, as nodes."""

from __future__ import annotations

import inspect
from typing import Any

from taeda._core import Op
from taeda.ops import bessel, orthogonal, special
from taeda.ops.table import OPS
from taeda.ops.traits import is_pointwise

from ..writer import Value, Writer
from .scalars import write
from .table import translates

#: Those with shorter forms than their expressions.
_SHORTER = frozenset(("erf", "erfc", "ndtr", "entr", "log_ndtr_kernel", "i1_over"))
#: Ops whose expression is written as it is: the pointwise ops of these modules.
EXPRESSIONS = [
    name
    for module in (special, bessel, orthogonal)
    for name, op in vars(module).items()
    if type(op) is Op and is_pointwise(op) and op.__module__ == module.__name__ and op.name == name
    if not op.writes and name not in _SHORTER
]


def _expression(name: str) -> None:
    def translator(g: Writer, *operands: Any) -> Value:
        return write(g, OPS[name], *operands)

    own = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("g", *OPS[name].params)]
    translator.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    translates(name)(translator)


for _name in EXPRESSIONS:
    _expression(_name)


translates("log_ndtr")(lambda g, input: write(g, OPS["log_ndtr_kernel"], input))
