"""``kernel.row`` as one kernel for the whole row: a program of ``kernel.grid`` for each row, from the expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _tiles
from ._core import Tensor, is_recorded, mode_stack
from ._grid import GridOp
from .kernel import Expression, _evaluated, _in_order
from .kernels.programs import is_difference

#: Elements of the longest row that is computed by one program: its tiles are on the stack.
LONGEST = 8192
#: Operations of the longest expression that one program computes: tiles that it keeps in between are on the stack too.
MOST_OPERATIONS = 100
_IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_DTYPES = {"float32", "float64", "float16", "bfloat16"}


class _OnTiles:
    """Operations of an expression on tiles, with folds over the places of a row that there are."""

    def __init__(self, places: Any, size: Any) -> None:
        self.places, self.size = places, size

    def run(self, kind: str, args: list) -> Any:
        trace = _tiles._traced()
        if not kind.startswith("fold "):
            made = trace.operation(kind, args if any(isinstance(x, _tiles.Tile) for x in args) else [
                trace.tile(x) for x in args])  # fmt: skip
            if kind == "exp" and is_difference(made.node.args[0], self.places.node):
                made.node.data = "difference"
            return made
        name = kind.removeprefix("fold ")
        made = trace.operation("where", [self.places < self.size, args[0], _IDENTITY[name]])
        total = trace.fold("sum" if name == "mean" else name, made, 0)
        return total / self.size if name == "mean" else total


class OneKernel:
    """The kernels of a row op, by what its operands are: ``f`` a row each, ``w`` one row for all, ``n`` a number."""

    def __init__(
        self, label: str, symbols: Sequence[Expression], names: Sequence[str], result: Any, of_row: bool
    ) -> None:
        self.label, self.symbols, self.names, self.result, self.of_row = label, symbols, names, result, of_row
        self.short = len(list(_in_order(result))) <= MOST_OPERATIONS
        self.ops: dict[str, GridOp] = {}

    def __call__(self, values: Sequence[Any], dim: int) -> Tensor | None:
        """The result, or None where a call is not of this kind: recorded, batched, of other sizes or dtypes, long."""
        tensors = [x for x in values if isinstance(x, Tensor)]
        if not self.short or dim != -1 or mode_stack() or (is_recorded() and any(t.requires_grad for t in tensors)):
            return None
        like = max(tensors, key=lambda t: t.dim())
        n = like.shape[-1]
        if not 0 < n <= LONGEST or not like.numel() or like.dtype.name not in _DTYPES:
            return None
        forms = ""
        for x in values:
            if not isinstance(x, Tensor):
                forms += "n"
                continue
            plain = type(x) is Tensor and x.device.type == "cpu" and x.is_contiguous() and x.dtype == like.dtype
            if not plain or (x.shape != like.shape and tuple(x.shape) != (n,)):
                return None
            forms += "f" if x.shape == like.shape else "w"
        op = self.ops.get(forms)
        if op is None:
            op = self.ops[forms] = self._made(forms)
        given = [
            x.reshape(-1, n) if f == "f" else x if f == "w" else float(x) for x, f in zip(values, forms, strict=True)
        ]
        return op(*given).reshape(like.shape[:-1] if self.of_row else like.shape)

    def _made(self, forms: str) -> GridOp:
        first = self.names[forms.index("f")]

        def run(out: Any, *given: Any) -> None:
            x = given[forms.index("f")]
            row, places, size = _tiles.tiles(x.shape[0], 1), _tiles.whole(x.shape[1]), x.shape[1]
            values = [
                a[row, places] if f == "f" else a[places] if f == "w" else a for a, f in zip(given, forms, strict=True)
            ]
            (made,) = _evaluated([self.result], self.symbols, values, _OnTiles(places, size))
            out.store(row if self.of_row else (row, places), made)

        result = "out" + "_" * (max(len(n) for n in self.names))
        body = eval(f"lambda {', '.join(self.names)}, {result}: _run({result}, {', '.join(self.names)})", {"_run": run})
        body.__annotations__ = {n: float for n, f in zip(self.names, forms, strict=True) if f == "n"}
        body.__name__ = body.__qualname__ = self.label.rpartition("::")[2]
        rule: Callable = eval(f"lambda {first}: {f'({first}.shape[0],)' if self.of_row else first}")
        return GridOp(f"{self.label}_of_rows_{forms}", body, {result: rule})
