"""Checks of the arguments of an exported program, made when it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taeda._core import Tensor
from taeda.fx.experimental.symbolic_shapes import Expr, ValueRanges, int_oo
from taeda.nn import Module

from .. import _core


class GuardError(RuntimeError, AssertionError):
    """The arguments do not meet the conditions that an exported program was made for."""


@dataclass
class InputCheck:
    """One argument: where it is (``args[0]``), the name of its placeholder, and its sizes, or the number that it must
    be."""

    place: str
    name: str
    sizes: list[Any] | None
    value: Any


class Checks(Module):
    """Raises a GuardError for arguments, in order, that do not fit.

    Args:
        inputs: what each argument must be.
        ranges: of the symbols.
        guards: comparisons and how they must come out.
    """

    def __init__(
        self, inputs: list[InputCheck], ranges: dict[str, ValueRanges], guards: list[tuple[Expr, bool]]
    ) -> None:
        super().__init__()
        self.inputs, self.ranges, self.guards = inputs, ranges, guards

    def constraints(self) -> list[str]:
        """The constraints as sentences."""
        places: dict[str, str] = {}
        found = []
        for check in self.inputs:
            for d, size in enumerate(check.sizes or ()):
                if not isinstance(size, Expr):
                    continue
                place = f"{check.name}.shape[{d}]"
                if size.args or size.head in places:
                    found.append(f"{place} is {size}")
                else:
                    places[size.head] = place
        for name, place in places.items():
            low, high = self.ranges[name].lower, self.ranges[name].upper
            upto = "" if high == int_oo else f" and at most {high}"
            found.append(f"{place} ({name}) is at least {low}{upto}")
        found += [str(expr) if outcome else f"not {expr}" for expr, outcome in self.guards]
        return found

    def forward(self, *args: Any) -> None:
        symbols: dict[str, int] = {}
        for check, x in zip(self.inputs, args, strict=True):
            if check.sizes is None:
                if type(x) is not type(check.value) or x != check.value:
                    raise GuardError(f"Expected input at *{check.place} to be equal to {check.value!r}, but got {x!r}")
                continue
            if not isinstance(x, Tensor):
                raise GuardError(f"Expected input at *{check.place} to be a tensor, but got {type(x).__name__}")
            if x.dim() != len(check.sizes):
                raise GuardError(
                    f"Expected input at *{check.place} to have {len(check.sizes)} dimensions, but got shape "
                    f"{list(x.shape)}"
                )
            for d, (size, got) in enumerate(zip(check.sizes, x.shape, strict=True)):
                if isinstance(size, Expr):
                    self._solve(check, d, size, got, symbols)
                elif size != got:
                    raise GuardError(
                        f"Expected input at *{check.place}.shape[{d}] to be equal to {size}, but got {got}"
                    )
        for name, got in symbols.items():
            if got not in self.ranges[name]:
                low, high = self.ranges[name].lower, self.ranges[name].upper
                says = f">= {low}" if got < low else f"<= {high}"
                raise GuardError(f"Expected input at *{self._place(name)} to be {says}, but got {got} for {name}")
        for expr, outcome in self.guards:
            if bool(expr.value(symbols)) is not outcome:
                says = ", ".join(f"{name} = {symbols[name]} at *{self._place(name)}" for name in sorted(expr.symbols()))
                raise GuardError(f"Expected '{expr}' to be {outcome}, but got {says}")

    def _place(self, name: str) -> str:
        for check in self.inputs:
            for d, size in enumerate(check.sizes or ()):
                if isinstance(size, Expr) and name in size.symbols():
                    return f"{check.place}.shape[{d}]"
        return name

    def _solve(self, check: InputCheck, d: int, size: Expr, got: int, symbols: dict[str, int]) -> None:
        """Find the value of the symbol from the size, or check that it agrees."""
        where = f"input at *{check.place}.shape[{d}]"
        unknown = [s for s in size.symbols() if s not in symbols]
        if not unknown:
            if size.value(symbols) != got:
                raise GuardError(f"Expected {where} to be equal to {size.value(symbols)} ({size}), but got {got}")
            return
        (name,) = unknown
        factors, constant = size.linear() or ({name: 1}, 0)
        rest = got - constant
        if rest % factors[name]:
            raise GuardError(f"Expected {where} to be of the form {size}, where {name} is an integer, but got {got}")
        symbols[name] = rest // factors[name]


class Apart(Module):
    """Raises a GuardError for arguments that share memory with tensors that a program without writes gives back: the
    others have read the old elements.

    Args:
        written: the places of those tensors.
    """

    def __init__(self, written: list[int]) -> None:
        super().__init__()
        self.written = written

    def forward(self, *tensors: Any) -> None:
        for i in self.written:
            for j, x in enumerate(tensors):
                if i != j and isinstance(x, Tensor) and _core.memory_overlap(tensors[i], x):
                    raise GuardError(
                        f"The program writes to an argument or buffer that shares memory with another argument, number "
                        f"{min(i, j)} and {max(i, j)}: a decomposed program would read it as it was. Give a clone()"
                    )
