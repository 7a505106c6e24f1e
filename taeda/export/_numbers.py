"""Recording numbers that only a run finds: ``item``, sizes that depend on values, and conditions on both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from taeda.fx.experimental.symbolic_shapes import _FUNCTIONS, Expr, SymBool, SymFloat, SymInt, _Symbolic, combine
from taeda.fx.node import map_aggregate

from .. import _core
from ..library.fake import FakeImplCtx, fake_context
from ._steps import assert_scalar, item, sym_size
from ._unknowns import Again, Knowledge, Unknown, Unknowns
from ._values import Traced, undecided


def exact(x: Any) -> bool:
    """Whether the expression of a number is known to hold, not found from samples."""
    if not isinstance(x, _Symbolic):
        return True
    kind, *args = x.source
    return kind in ("input", "item") or (kind != "size" and all(map(exact, args)))


class Numbers:
    """The part of the mode that records programs which knows numbers that only a run finds."""

    samples: list[dict[str, Any]]
    again: bool  # numbers or conditions were met that the samples do not know
    unknowns: Unknowns
    knowledge: Knowledge
    found: dict[str, Unknown]  # numbers that were met, and sizes that follow from them
    masks: dict[Any, str]  # how many elements they select
    scope: Any
    alive: list[Any]
    _names: int
    create: Callable
    node_of: Callable
    where: Callable
    value_of: Callable
    aside: Callable

    @contextmanager
    def complete(self) -> Iterator[None]:
        """Within it, a program is recorded.

        Raises:
            Again: the samples did not know a number or a condition. What the program raised then is about values that
                were made up for it, and may be anything.
        """
        try:
            yield
        except Exception:
            if not self.again:
                raise
        if self.again:
            raise Again

    def _of_unknown_size(
        self, rule: Callable, low: Any, high: Any, mask: Traced | None, found: dict, sample: int, given: tuple
    ) -> Any:
        """The result of an op with an unknown size. The same mask always selects the same number of elements."""
        if low is None:
            return rule(None, given)
        if "name" not in found:
            key = None if mask is None else (id(mask), mask.metas[0]._version)
            found["name"] = self.masks[key] if key in self.masks else self.fresh("size", low, high)
            if key is not None:
                self.masks[key] = found["name"]
        result = rule(self.unknowns.value(found["name"], self.samples[sample]), given)
        if result is NotImplemented:
            raise NotImplementedError("this form of the call, which is not recorded")
        return result

    def _of_own_op(self, op: Any, found: dict, sample: int, given: tuple) -> Any:
        """The result that ``register_fake`` gives; one of its sizes may be unknown."""
        asked = []

        def size(least: int, most: int | None) -> Any:
            asked.append(least)
            if len(asked) > 1:
                raise NotImplementedError("a second unknown size, which is not recorded")
            if found.setdefault("range", (least, most)) != (least, most):
                raise ValueError(f"new_dynamic_size(min={least}, max={most}): these depend on sizes of the input")
            high = math.inf if most is None else most
            return self._of_unknown_size(lambda n, given: n, least, high, None, found, sample, given)

        with fake_context(lambda: FakeImplCtx(size)):
            return op._sizes(*given[0], **given[1])

    def fresh(self, kind: str, low: float, high: float) -> str:
        """The name of the next unknown number.

        One that is met for the first time has one value at all samples: the program is recorded again afterwards.
        """
        if kind == "float":
            name = f"zuf{sum(s.kind == 'float' for s in self.found.values())}"
        else:
            name = f"u{self._names}"
            self._names += 1
        if name not in self.unknowns.symbols or self.unknowns.symbols[name].kind != kind:
            made = self.unknowns.symbols[name] = Unknown(name, kind, low, high, self.where())
            value = next(made.values(low, high), 2)
            for sample in self.samples:
                sample[name] = value
            self.again = True
        self.found[name] = self.unknowns.symbols[name]
        self.knowledge.bounds[name] = low, high
        return name

    def number(self, x: Traced) -> Any:
        """The element of ``x`` as a symbolic number."""
        if x.numel() != 1:
            raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
        value = self.value_of(x)
        if value is not None:
            with self.aside():
                return value.item()
        if x.dtype.is_complex:
            raise NotImplementedError(
                f"export: item() of {x.dtype} cannot be recorded; take its real part\n{self.where()}"
            )
        kind = "float" if x.is_floating_point() else "bool" if x.dtype is _core.bool_ else "int"
        name = self.fresh(kind, *((0, 1) if kind == "bool" else (-math.inf, math.inf)))
        values = [self.unknowns.value(name, s) for s in self.samples]
        expr: Any = Expr(name)
        node = self.create(item, (self.node_of(x),), {})
        if kind == "bool":
            values, expr = [v == 1 for v in values], Expr("eq", expr, 1)
        made: Any = {"float": SymFloat, "bool": SymBool, "int": SymInt}[kind](values[0])
        made._become(expr, values, self, ("item", x, x.metas[0]._version))
        node.meta["val"] = type(made)(values[0])._become(expr, values)
        self.scope.sizes[repr(expr)] = node
        self.alive.append(made)
        self._assert_assumed()
        return made

    def unknown(self, expr: Expr) -> bool:
        """Whether ``expr`` depends on numbers that only a run finds."""
        return bool(self.found) and not self.found.keys().isdisjoint(expr.symbols())

    def _condition(self, expr: Expr, values: list, source: tuple) -> Any:
        """A comparison of unknown numbers: its outcome if that is known, else a SymBool."""
        made = SymBool()._become(expr, values, self, source)
        known = self.knowledge.knows(expr)
        if known is None:
            return made
        if not all(exact(a) for a in source[1:]):
            self._assert(made if known else combine("not", made))
        return known

    def decide(self, condition: SymBool) -> bool:
        """The truth of a condition that Python asks for.

        Raises:
            GuardOnDataDependentSymNode: it is known only when the program runs.
        """
        known = self.knowledge.knows(condition.expr)
        if known is None:
            names = [self.found[n] for n in sorted(condition.expr.symbols()) if n in self.found]
            undecided(str(condition.expr), self.where(), [(s.name, s.where) for s in names])
        return known

    def require(self, condition: SymBool, message: str | None = None) -> None:
        """``condition`` holds from here on; the program checks it. It is recorded again if that does not hold at the
        samples."""
        fact = condition.expr
        if not all(condition.samples) and fact.symbols() <= {*self.samples[0], *self.unknowns.symbols}:
            if repr(fact) in self.unknowns.facts or self.knowledge.knows(fact) is False:
                raise RuntimeError(f"export: '{fact}' excludes what was checked before\n{self.where()}")
            self.unknowns.add(fact)
            self.again = True
        self._assert(condition, message)
        self.knowledge.learn(fact)

    def _assert(self, condition: Any, message: str | None = None) -> None:
        node = self.node_of(condition)
        text = message or f"Runtime assertion failed for expression {condition.expr} on node '{node.name}'"
        self.create(assert_scalar, (node, text), {})

    def _assert_assumed(self) -> None:
        """Check the facts that the program implies, once all their symbols are there."""
        symbols = {s for s in self.samples[0] if s not in self.unknowns.symbols} | set(self.found)
        for text, fact in self.unknowns.assumed.items():
            if fact.symbols() <= symbols and text not in self.knowledge.texts:
                nodes = map_aggregate(fact.args, self._node_of_expr)
                node = self.create(_FUNCTIONS[fact.head][0], tuple(nodes), {})
                node.meta["val"] = SymBool(1.0)._become(fact, [True] * len(self.samples))
                said = f"Runtime assertion failed for expression {fact} on node '{node.name}'"
                self.create(assert_scalar, (node, said), {})
                self.knowledge.learn(fact)

    def _node_of_expr(self, expr: Any) -> Any:
        if not isinstance(expr, Expr):
            return expr
        found: Any = self.scope.sizes.get(repr(expr))
        if isinstance(found, tuple):
            node, dim = found
            found = self.scope.sizes[repr(expr)] = self.create(sym_size, (node, dim), {})
            found.meta["val"] = node.meta["val"].shape[dim]
        if found is None:
            found = self.create(_FUNCTIONS[expr.head][0], tuple(map(self._node_of_expr, expr.args)), {})
        return found

    def _name_size(self, made: list, name: str) -> None:
        """Record which size equals the unknown number ``name`` by definition."""
        values = [self.unknowns.value(name, s) for s in self.samples]
        for x in made:
            for d, n in enumerate(x._sizes if isinstance(x, Traced) else ()):
                if [m.shape[d] for m in x.metas] == values:
                    if isinstance(n, SymInt) and n.expr == Expr(name):
                        n.source = "input", x, d
                    self.scope.sizes.setdefault(name, (self.scope.nodes[id(x)], d))
        self._assert_assumed()
