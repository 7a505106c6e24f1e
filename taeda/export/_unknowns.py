"""Numbers that only a run finds (``item``, ``nonzero``): symbols ``u0``, ``u1``, known facts about them, and values to
record a program at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from taeda.fx.experimental.symbolic_shapes import _OPPOSITE, Expr

_FLOATS = (1.5, 2.25, 0.75, 3.5, 0.5, 0.25, 5.5, 10.5, 100.5, -0.5, -1.5, -5.5)


@dataclass
class Unknown:
    """A number that a run finds: where it comes from, and which values are not to be tried."""

    name: str
    kind: str
    low: float
    high: float
    where: str
    avoid: set = field(default_factory=set)
    highest: float = math.inf

    def values(self, low: float, high: float) -> Iterator[Any]:
        """Values to try, the best first."""
        if self.kind == "float":
            middle = [low + (high - low) * part for part in (0.5, 0.25, 0.75)] if math.isfinite(high - low) else []
            yield from (v for v in (*_FLOATS, *middle) if low <= v <= high)
            return
        high = min(high, self.highest)
        start = int(max(low, 2)) if low > -math.inf else 2
        upwards = range(start, int(min(high, start + 60)) + 1)
        below = max(low, -4)
        downwards = range(int(min(high, 1)), int(below) - 1, -1) if high >= below else ()
        yield from (v for v in (*upwards, *downwards) if v not in self.avoid)
        if high < -4:
            yield from (v for v in range(int(high), int(max(low, high - 20)) - 1, -1) if v not in self.avoid)


class Again(BaseException):
    """The program must be recorded anew: numbers were met for the first time, or conditions on them."""


class Unknowns:
    """The unknown numbers of a program.

    Attributes:
        symbols: by name.
        facts: conditions that hold.
        fixed: symbols that are another expression, or one number.
        assumed: the conditions among them that the program itself implies, not its author.
    """

    def __init__(self) -> None:
        self.symbols: dict[str, Unknown] = {}
        self.facts: dict[str, Expr] = {}
        self.fixed: dict[str, Any] = {}
        self.assumed: dict[str, Expr] = {}

    def copy(self) -> Unknowns:
        """One that changes apart from this."""
        made = Unknowns()
        made.symbols, made.facts = dict(self.symbols), dict(self.facts)
        made.fixed, made.assumed = dict(self.fixed), dict(self.assumed)
        return made

    def forget(self, names: set[str]) -> None:
        """Leave out symbols, and conditions on them."""
        for table in (self.symbols, self.fixed):
            for name in names & set(table):
                del table[name]
        for facts in (self.facts, self.assumed):
            for text in [text for text, fact in facts.items() if fact.symbols() & names]:
                del facts[text]

    def add(self, fact: Expr) -> None:
        """``fact`` holds from now on."""
        if fact.head == "and":
            for part in fact.args:
                self.add(part)
            return
        solved = self._solved(fact)
        if solved is None:
            self.facts[repr(fact)] = fact
        else:
            self.fixed[solved[0]] = solved[1]

    def assume(self, fact: Expr) -> None:
        """``fact`` must hold for the program to run; it will check it."""
        self.assumed[repr(fact)] = fact
        self.add(fact)

    def _solved(self, fact: Expr) -> tuple[str, Any] | None:
        """A symbol alone on one side of an equation, and the other side."""
        if fact.head != "eq":
            return None
        left, right = fact.args
        for one, other in ((left, right), (right, left)):
            if not isinstance(one, Expr) or one.args or one.head not in self.symbols or one.head in self.fixed:
                continue
            other = self._without_fixed(other)
            if not isinstance(other, Expr) or one.head not in other.symbols():
                return one.head, other
        return None

    def _without_fixed(self, expr: Any) -> Any:
        if not isinstance(expr, Expr):
            return expr
        if not expr.args:
            return self._without_fixed(self.fixed[expr.head]) if expr.head in self.fixed else expr
        made = Expr(expr.head, *(self._without_fixed(a) for a in expr.args))
        return made if made.symbols() else made.value({})

    def free(self) -> list[str]:
        return [name for name in self.symbols if name not in self.fixed]

    def value(self, name: str, sample: Mapping[str, Any]) -> Any:
        if name not in self.fixed:
            return sample[name]
        fixed = self._without_fixed(self.fixed[name])
        return fixed.value(sample) if isinstance(fixed, Expr) else fixed

    # ---- samples ----

    def extended(self, samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Samples of the sizes, with values of the unknown numbers: one more sample for each, in which it alone
        differs."""
        names = self.free()
        if not names:
            return [dict(s) for s in samples]
        base = self._found(samples[0], {}, set())
        if base is None:
            says = ", ".join(self.facts)
            raise RuntimeError(
                f"export: no numbers were found for {', '.join(names)} of which all of these hold: {says}"
            )
        count = len(samples[0])
        kept = {name: base[name] for name in names}
        changed = [self._found(s, kept, set()) or {**s, **kept} for s in samples[1 : 1 + count]]
        for name in names:
            others = {n: v for n, v in kept.items() if n != name}
            found = self._found(samples[0], others, set(), {name: base[name]})
            changed.append(found or base)
        taken = {v for s in (base, *changed) for v in s.values()}
        last = []
        for s in samples[1 + count :] or ({}, {}):
            last.append(self._found(s, {}, taken) or self._found(s, kept, set()) or {**s, **kept})
            taken |= set(last[-1].values())
        return [base, *changed, *last]

    def _found(self, sample: dict, wanted: dict, taken: set, never: Mapping[str, Any] | None = None) -> dict | None:
        """``sample`` with values of the symbols for which the facts hold, as in ``wanted`` where possible."""
        names = self.free()
        budget = itertools.count()
        conditions = self._conditions()
        if not all(_fits(c, sample) for needed, c in conditions if needed <= sample.keys()):
            return None

        def place(i: int, chosen: dict) -> dict | None:
            if i == len(names):
                return chosen
            symbol = self.symbols[names[i]]
            low, high = self._bounds(symbol)
            known = {*chosen, symbol.name}
            asked = [c for needed, c in conditions if symbol.name in needed and needed <= known]
            values = list(symbol.values(low, high))
            first = [wanted[symbol.name]] if symbol.name in wanted else []
            better = [v for v in values if v not in taken and v not in chosen.values()]
            for v in dict.fromkeys([*first, *better, *values]):
                if (never or {}).get(symbol.name, None) == v or next(budget) > 4000:
                    continue
                trial = {**chosen, symbol.name: v}
                if all(_fits(c, trial) for c in asked):
                    found = place(i + 1, trial)
                    if found is not None:
                        return found
            return None

        return place(0, dict(sample))

    def _bounds(self, symbol: Unknown) -> tuple[float, float]:
        """The range that facts of one symbol give it."""
        low, high = symbol.low, symbol.high
        for fact in self.facts.values():
            if fact.symbols() == {symbol.name} and fact.head in ("ge", "gt", "le", "lt"):
                linear = difference(fact)
                if linear is not None and symbol.kind != "float":
                    low, high = _narrowed(fact.head, linear[0][symbol.name], linear[1], low, high)
        return low, high

    def _conditions(self) -> list[tuple[set[str], tuple[Expr, Unknown | None]]]:
        """The conditions that must hold, each with its symbols: facts, and the ranges of fixed symbols."""
        given = [(fact, None) for fact in self.facts.values()]
        given += [(other, self.symbols[name]) for name, other in self.fixed.items()]  # type: ignore[misc]
        made = ((self._without_fixed(expr), symbol) for expr, symbol in given)
        return [(expr.symbols(), (expr, symbol)) for expr, symbol in made if isinstance(expr, Expr)]

    def narrow(self, name: str, value: Any) -> bool:
        """A step fails with this value, which is its own to say: do not try it. False where none is left."""
        symbol = self.symbols[name]
        if symbol.kind == "float":
            return False
        if value > 2:
            symbol.highest = min(symbol.highest, value - 1)
        else:
            symbol.avoid.add(value)
        low, high = self._bounds(symbol)
        return next(symbol.values(low, high), None) is not None


def _fits(condition: tuple[Expr, Unknown | None], sample: dict) -> bool:
    """Whether a condition holds for these values."""
    expr, symbol = condition
    try:
        value = expr.value(sample)
    except ArithmeticError:
        return False
    return bool(value) if symbol is None else symbol.low <= value <= symbol.high


def _narrowed(head: str, factor: int, constant: int, low: float, high: float) -> tuple[float, float]:
    """The range of whole numbers in which ``factor * x + constant`` is ``head`` 0."""
    if head in ("le", "lt"):
        factor, constant, head = -factor, -constant, {"le": "ge", "lt": "gt"}[head]
    least = 1 if head == "gt" else 0
    bound = (least - constant) / factor
    return (max(low, math.ceil(bound)), high) if factor > 0 else (low, min(high, math.floor(bound)))


def difference(expr: Expr) -> tuple[dict[str, int], int] | None:
    """The left side of a comparison less the right one, as whole factors of symbols and a number; None if it has no
    such form.
    """
    if expr.head not in _OPPOSITE:
        return None
    sides = []
    for a in expr.args:
        linear = a.linear() if isinstance(a, Expr) else ({}, a) if isinstance(a, int) else None
        if linear is None:
            return None
        sides.append(linear)
    (f, c), (g, d) = sides
    factors = {k: f.get(k, 0) - g.get(k, 0) for k in {**f, **g}}
    return {k: v for k, v in factors.items() if v}, c - d


class Knowledge:
    """Knowledge at one place of the program: ranges of symbols, and conditions that were checked before."""

    def __init__(self, bounds: dict[str, tuple[float, float]]) -> None:
        self.bounds = dict(bounds)
        self.forms: list[tuple[dict[str, int], int]] = []  # each is at least 0
        self.texts: set[str] = set()

    def learn(self, expr: Expr) -> None:
        """``expr`` was checked."""
        self.texts.add(repr(expr))
        if expr.head == "and":
            for part in expr.args:
                self.learn(part)
            return
        linear = self._whole(expr)
        if linear is None:
            return
        for form in _at_least_zero(expr.head, *linear):
            self.forms.append(form)
            factors, constant = form
            if len(factors) == 1:
                ((name, factor),) = factors.items()
                low, high = self.bounds.get(name, (-math.inf, math.inf))
                self.bounds[name] = _narrowed("ge", factor, constant, low, high)

    def knows(self, expr: Expr) -> bool | None:
        """Whether ``expr`` holds; None if that is not known."""
        if repr(expr) in self.texts:
            return True
        if expr.head == "not":
            inner = self.knows(expr.args[0])
            return None if inner is None else not inner
        if expr.head in ("and", "or"):
            parts = [a if isinstance(a, bool) else self.knows(a) for a in expr.args]
            decisive = expr.head == "or"
            return decisive if decisive in parts else None if None in parts else not decisive
        linear = self._whole(expr)
        if linear is None:
            return None
        if self._holds(expr.head, *linear):
            return True
        return False if self._holds(_OPPOSITE[expr.head], *linear) else None

    def _whole(self, expr: Expr) -> tuple[dict[str, int], int] | None:
        return None if any(name.startswith("zuf") for name in expr.symbols()) else difference(expr)

    def _holds(self, head: str, factors: dict[str, int], constant: int) -> bool:
        if head == "ne":
            return any(self._holds(h, factors, constant) for h in ("gt", "lt"))
        return all(self._at_least_zero(*form) for form in _at_least_zero(head, factors, constant))

    def _at_least_zero(self, factors: dict[str, int], constant: int) -> bool:
        if self._least(factors, constant) >= 0:
            return True
        for known, at in self.forms:
            rest = {k: factors.get(k, 0) - known.get(k, 0) for k in {**factors, **known}}
            if self._least({k: v for k, v in rest.items() if v}, constant - at) >= 0:
                return True
        return False

    def _least(self, factors: dict[str, int], constant: int) -> float:
        ends: Iterable[tuple[int, tuple[float, float]]]
        ends = [(f, self.bounds.get(k, (-math.inf, math.inf))) for k, f in factors.items()]
        return constant + sum(f * (low if f > 0 else high) for f, (low, high) in ends)


def _at_least_zero(head: str, factors: dict[str, int], constant: int) -> list[tuple[dict[str, int], int]]:
    """A comparison of whole numbers with 0 as forms that are at least 0; none where it has no such form."""
    negative = {k: -v for k, v in factors.items()}
    if head == "eq":
        return [(factors, constant), (negative, -constant)]
    return {
        "ge": [(factors, constant)], "gt": [(factors, constant - 1)],
        "le": [(negative, -constant)], "lt": [(negative, -constant - 1)],
    }.get(head, [])  # fmt: skip
