"""Sizes that are not fixed: numbers that remember how they follow from the sizes of a program's inputs.

A :class:`SymInt` is an int: the size in the example. It also knows its :class:`Expr` and its value for other sizes of
the inputs (its *samples*). Arithmetic keeps all three. A comparison is asked for every sample, and must come out the
same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "Expr", "GuardOnDataDependentSymNode", "SymBool", "SymFloat", "SymInt", "ValueRanges", "guard_or_false",
    "guard_or_true", "guard_size_oblivious", "int_oo", "is_concrete_int", "statically_known_true",
]  # fmt: skip

int_oo = math.inf


class GuardOnDataDependentSymNode(RuntimeError):
    """A program asks for the value of a tensor while it is recorded without values."""


class ValueRanges:
    """The whole numbers from ``lower`` to ``upper``, both included."""

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = lower, upper

    def __contains__(self, x: Any) -> bool:
        return self.lower <= x <= self.upper

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRanges) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        low, high = ("-int_oo" if n == -int_oo else "int_oo" if n == int_oo else n for n in (self.lower, self.upper))
        return f"VR[{low}, {high}]"


#: The functions in expressions: name, function, sign and how tightly it binds.
_FUNCTIONS: dict[str, tuple[Callable, str, int]] = {
    "add": (operator.add, "+", 1), "sub": (operator.sub, "-", 1), "mul": (operator.mul, "*", 2),
    "floordiv": (operator.floordiv, "//", 2), "truediv": (operator.truediv, "/", 2), "mod": (operator.mod, "%", 2),
    "pow": (operator.pow, "**", 3), "neg": (operator.neg, "-", 2), "abs": (operator.abs, "abs", 9),
    "ceil": (math.ceil, "ceil", 9), "floor": (math.floor, "floor", 9),
    "eq": (operator.eq, "==", 0), "ne": (operator.ne, "!=", 0), "lt": (operator.lt, "<", 0),
    "le": (operator.le, "<=", 0),
    "gt": (operator.gt, ">", 0), "ge": (operator.ge, ">=", 0), "and": (operator.and_, "&", 0),
    "or": (operator.or_, "|", 0), "not": (operator.not_, "not ", 9), "float": (float, "float", 9),
    "max": (max, "max", 9), "min": (min, "min", 9), "ite": (lambda b, x, y: x if b else y, "ite", 9),
}  # fmt: skip

#: What holds where a comparison does not.
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class Expr:
    """A number that follows from symbols: ``head`` is a symbol's name, or a key of the table above with its
    arguments."""

    __slots__ = ("args", "head")

    def __init__(self, head: str, *args: Any) -> None:
        self.head, self.args = head, args

    def value(self, symbols: Mapping[str, Any]) -> Any:
        """The number for these values of the symbols.

        Args:
            symbols: values by name.

        Returns:
            A number.

        Raises:
            KeyError: a symbol has none.
        """
        if not self.args:
            return symbols[self.head]
        return _FUNCTIONS[self.head][0](*(a.value(symbols) if isinstance(a, Expr) else a for a in self.args))

    def symbols(self) -> set[str]:
        """The names of the symbols in it."""
        if not self.args:
            return {self.head}
        return set().union(*(a.symbols() for a in self.args if isinstance(a, Expr)))

    def linear(self) -> tuple[dict[str, int], int] | None:
        """Whole factors of symbols, and the number added to them; None if it is not of that form."""
        if not self.args:
            return {self.head: 1}, 0
        if self.head not in ("add", "sub", "mul", "neg"):
            return None
        parts = [a.linear() if isinstance(a, Expr) else ({}, a) if isinstance(a, int) else None for a in self.args]
        if any(p is None for p in parts):
            return None
        (f, c), (g, d) = parts[0], parts[1] if len(parts) > 1 else ({}, 0)  # type: ignore[misc]
        if self.head == "mul":
            if f and g:
                return None
            return {k: v * (d if f else c) for k, v in {**f, **g}.items()}, c * d
        first, second = {"add": (1, 1), "sub": (1, -1), "neg": (-1, 0)}[self.head]
        total = {k: first * f.get(k, 0) + second * g.get(k, 0) for k in {**f, **g}}
        return {k: v for k, v in total.items() if v}, first * c + second * d

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def _show(self, outside: int) -> str:
        if not self.args:
            return self.head
        _, sign, binds = _FUNCTIONS[self.head]
        inner = [a._show(binds + i) if isinstance(a, Expr) else str(a) for i, a in enumerate(self.args)]
        if binds == 9:
            return f"{sign}({', '.join(inner)})"
        text = f"-{inner[0]}" if len(inner) == 1 else f" {sign} ".join(inner) if binds < 2 else sign.join(inner)
        return f"({text})" if binds < outside else text

    def __repr__(self) -> str:
        return self._show(0)


class _Symbolic:
    """The base of SymInt and SymFloat. ``owner`` makes the values that follow from them; without it they are only for
    display.
    """

    expr: Expr
    samples: tuple
    owner: Any
    source: Any

    def _become(self, expr: Expr, samples: Sequence, owner: Any = None, source: Any = None) -> Any:
        self.expr, self.samples, self.owner, self.source = expr, tuple(samples), owner, source
        return self

    def __repr__(self) -> str:
        return repr(self.expr)

    def __str__(self) -> str:
        return repr(self.expr)

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.samples[0], self.expr.head, self.expr.args, self.samples)


def _restore(kind: type, value: Any, head: str, args: tuple, samples: tuple) -> Any:
    return kind(value)._become(Expr(head, *args), samples)


class SymInt(_Symbolic, int):
    """An int that follows from sizes."""

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __bool__(self) -> bool:
        return self != 0


class SymBool(_Symbolic):
    """A condition on numbers that are known only when the program runs. Asking for its truth is an error, unless
    ``owner`` knows it."""

    def __init__(self, value: Any = None) -> None:
        super().__init__()

    def __bool__(self) -> bool:
        return bool(self.samples[0]) if self.owner is None else self.owner.decide(self)

    def __and__(self, other: Any) -> Any:
        return combine("and", self, other) if isinstance(other, (SymBool, bool)) else NotImplemented

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return combine("or", self, other) if isinstance(other, (SymBool, bool)) else NotImplemented

    __ror__ = __or__

    def __invert__(self) -> Any:
        return combine("not", self)

    __sym_not__ = __invert__

    def __sym_ite__(self, then: Any, other: Any) -> Any:
        return combine("ite", self, then, other)

    def __sym_int__(self) -> Any:
        return combine("ite", self, 1, 0)

    def __sym_float__(self) -> Any:
        return combine("ite", self, 1.0, 0.0)


class SymFloat(_Symbolic, float):
    """A float that follows from sizes."""

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __bool__(self) -> bool:
        return self != 0.0


def is_concrete_int(a: Any) -> bool:
    """Whether ``a`` is an int that is known."""
    return isinstance(a, int) and not isinstance(a, SymInt)


def combine(name: str, *args: Any) -> Any:
    """The function ``name`` of numbers, of which at least one is symbolic: a SymInt, SymFloat, number or bool."""
    symbolic = [a for a in args if isinstance(a, _Symbolic)]
    owner = next((a.owner for a in symbolic if a.owner is not None), None)
    function, count = _FUNCTIONS[name][0], len(symbolic[0].samples)
    values = [function(*(a.samples[i] if isinstance(a, _Symbolic) else a for a in args)) for i in range(count)]
    expr = Expr(name, *(a.expr if isinstance(a, _Symbolic) else a for a in args))
    if isinstance(values[0], bool):
        return values[0] if owner is None else owner.guard(expr, values, (name, *args))
    if all(v == values[0] for v in values) and not (owner is not None and owner.unknown(expr)):
        return values[0]
    kind: Any = SymInt if isinstance(values[0], int) else SymFloat
    return kind(values[0])._become(expr, values, owner, (name, *args))


def _install() -> None:
    """Give both classes their operators."""

    def binary(name: str) -> Callable:
        return lambda self, other: combine(name, self, other) if isinstance(other, (int, float)) else NotImplemented

    def reflected(name: str) -> Callable:
        return lambda self, other: combine(name, other, self) if isinstance(other, (int, float)) else NotImplemented

    for kind in (SymInt, SymFloat):
        for name in "add sub mul floordiv truediv mod pow".split():
            setattr(kind, f"__{name}__", binary(name))
            setattr(kind, f"__r{name}__", reflected(name))
        for name in "eq ne lt le gt ge".split():
            setattr(kind, f"__{name}__", binary(name))
        for name in "neg abs ceil floor".split():
            setattr(kind, f"__{name}__", lambda self, name=name: combine(name, self))
    SymInt.__pos__ = SymInt.__ceil__ = SymInt.__floor__ = SymInt.__trunc__ = lambda self: self  # type: ignore
    SymInt.__divmod__ = lambda self, other: (self // other, self % other)  # type: ignore
    SymInt.__sym_int__ = lambda self: self  # type: ignore[attr-defined]
    SymFloat.__sym_int__ = lambda self: combine("floor" if self >= 0 else "ceil", self)  # type: ignore[attr-defined]
    SymInt.__sym_float__ = lambda self: combine("truediv", self, 1)  # type: ignore[attr-defined]
    SymFloat.__sym_float__ = lambda self: self  # type: ignore[attr-defined]


_install()


def guard_size_oblivious(expr: Any) -> bool:
    """``bool(expr)``."""
    return bool(expr)


def guard_or_false(expr: Any) -> bool:
    """``bool(expr)``; False for a condition that is known only when the program runs."""
    return False if isinstance(expr, SymBool) and expr.owner is not None else bool(expr)


def guard_or_true(expr: Any) -> bool:
    """``bool(expr)``; True for a condition that is known only when the program runs."""
    return True if isinstance(expr, SymBool) and expr.owner is not None else bool(expr)


statically_known_true = guard_or_false


def fitted(values: Sequence[int], samples: list[dict[str, int]]) -> Expr | None:
    """A short expression that has these values at the samples, if one is found."""
    first, changed = _apart(samples)
    base, start = samples[first], values[first]
    depends = [name for name, i in changed.items() if values[i] != start]
    factors, constant = {}, start
    for name in depends:
        step, rise = samples[changed[name]][name] - base[name], values[changed[name]] - start
        if step == 0 or rise % step:
            break
        factors[name] = rise // step
        constant -= factors[name] * base[name]

    def power(name: str) -> int:
        """How often a product has this factor."""
        size, value = samples[changed[name]][name], values[changed[name]]
        return next((n for n in (1, 2, 3) if value * base[name] ** n == start * size**n), 1)

    def candidates() -> Iterator[Expr]:
        if len(factors) == len(depends) and depends:
            yield _sum(factors, constant)
        powers = [name for name in depends for _ in range(power(name))]
        product = math.prod(base[n] for n in powers)
        if depends and product and start % product == 0:
            expr = Expr(powers[0])
            for name in powers[1:]:
                expr = Expr("mul", expr, Expr(name))
            yield Expr("mul", start // product, expr) if start != product else expr
        for c in range(2, 65) if len(depends) == 1 else ():
            b = start * c - base[depends[0]]
            sizes = [sample[depends[0]] for sample in samples]
            for shift in range(b, b + c):
                if any((n + shift) // c != v for n, v in zip(sizes, values, strict=True)):
                    continue
                symbol = Expr(depends[0])
                shifted = Expr("add", symbol, shift) if shift > 0 else Expr("sub", symbol, -shift) if shift else symbol
                yield Expr("floordiv", shifted, c)

    for expr in candidates():
        if all(expr.value(sample) == v for sample, v in zip(samples, values, strict=True)):
            return expr
    return None


def _apart(samples: list[dict[str, int]]) -> tuple[int, dict[str, int]]:
    """A sample, and for each symbol the sample that differs from it in that symbol alone, by their places."""
    for first, base in enumerate(samples):
        changed: dict[str, int] = {}
        for i, other in enumerate(samples):
            differ = [name for name in base if other[name] != base[name]]
            if len(differ) == 1:
                changed.setdefault(differ[0], i)
        if len(changed) == len(base):
            return first, {name: changed[name] for name in base}
    return 0, {name: i + 1 for i, name in enumerate(samples[0])}


def _sum(factors: dict[str, int], constant: int) -> Expr:
    total: Any = None
    for name, factor in factors.items():
        term: Any = Expr(name) if abs(factor) == 1 else Expr("mul", abs(factor), Expr(name))
        if total is None:
            total = term if factor > 0 else Expr("neg", term)
        else:
            total = Expr("add" if factor > 0 else "sub", total, term)
    if constant:
        total = Expr("add" if constant > 0 else "sub", total, abs(constant))
    return total
