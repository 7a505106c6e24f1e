"""``make_fx(tracing_mode="symbolic")``: a program is recorded at several sizes of its inputs, and holds for all at
which it does the same.

What Python computes of a ``shape`` is steps from the start (the recorder's SymInts). Other numbers that differ between
the recordings, as those of derivatives, become expressions of the sizes that fit. A size without which the program is
another one, or fails, stays that of the example: the graph checks it.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taeda._core import Tensor

from ..graph_module import GraphModule
from ..node import Node, has_side_effect
from .symbolic_shapes import _FUNCTIONS, Expr, fitted

_MOST = 300  #: how far from the example sizes are tried


def sym_size(x: Tensor, dim: int) -> int:
    return x.shape[dim]


@has_side_effect
def assert_scalar(condition: Any, message: str) -> None:
    """Raise a RuntimeError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise RuntimeError(message)


@dataclass
class Recording:
    """A program as it was recorded once. ``inputs`` are the Nodes of its tensors, ``guards`` its comparisons of sizes
    and how they came out."""

    module: GraphModule
    inputs: list[Node]
    guards: list[tuple[Expr, bool]]


class Differs(Exception):
    """Two recordings are not of one program."""


def symbol(node: Node, dim: int) -> str:
    """The name of a size of the tensor that ``node`` makes."""
    return f"{node.name}.shape[{dim}]"


def grown(x: Tensor, sizes: Sequence[int]) -> Tensor:
    """``x`` repeated, or cut, to ``sizes``, with its dimensions in the same order in memory."""
    times = [-(-size // n) if n else 1 for size, n in zip(sizes, x.shape, strict=True)]
    made = x.detach().repeat(times)[tuple(map(slice, sizes))] if times else x.detach().clone()
    order = sorted(range(x.dim()), key=lambda d: (-x.stride(d), d))
    back = [order.index(d) for d in range(x.dim())]
    return made.permute(order).contiguous().permute(back).requires_grad_(x.requires_grad)


def recorded_for(guard: Expr) -> str:
    """The message of a run for which ``guard`` does not hold."""
    return f"make_fx: the program was recorded for sizes with {guard}"


# ---- numbers that differ between recordings --------------------------------------------------------------------------


def differences(first: GraphModule, other: GraphModule) -> dict[tuple[int, tuple], tuple]:
    """The numbers of ``first`` that are others in ``other``: their pairs, by the place of the Node and the path in its
    arguments.

    Raises:
        Differs: the graphs differ in more than numbers.
    """
    found: dict[tuple[int, tuple], tuple] = {}
    pairs: dict[Node, Node] = {}
    nodes, others = list(first.graph.nodes), list(other.graph.nodes)
    if len(nodes) != len(others):
        raise Differs
    for i, (a, b) in enumerate(zip(nodes, others, strict=True)):
        if a.op != b.op or (a.op == "get_attr" and not _same(_held(first, a), _held(other, b))):
            raise Differs
        if a.op not in ("placeholder", "output", "get_attr") and a.target != b.target:
            raise Differs
        last = 1 if a.target is assert_scalar else None  # its message tells of the example's sizes
        _compare((a.args[:last], a.kwargs), (b.args[:last], b.kwargs), pairs, i, (), found)
        pairs[a] = b
    return found


def _held(module: GraphModule, node: Node) -> Any:
    return operator.attrgetter(str(node.target))(module)


def _same(a: Any, b: Any) -> bool:
    """Whether constants or inner graphs are the same."""
    if isinstance(a, GraphModule) and isinstance(b, GraphModule):
        return not differences(a, b)
    if a is b or not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return a is b
    same = a.dtype == b.dtype and a.device == b.device and a.shape == b.shape and a.stride() == b.stride()
    return same and bool(((a == b) | ((a != a) & (b != b))).all())


def _compare(a: Any, b: Any, pairs: dict, node: int, path: tuple, found: dict) -> None:
    parts, others = _parts(a), _parts(b)
    if type(a) is not type(b) or (parts is None) != (others is None):
        raise Differs
    if parts is not None:
        if parts.keys() != others.keys():  # type: ignore[union-attr]
            raise Differs
        for key, part in parts.items():
            _compare(part, others[key], pairs, node, (*path, key), found)  # type: ignore[index]
    elif isinstance(a, Node):
        if pairs.get(a) is not b:
            raise Differs
    elif type(a) in (int, float):
        if a != b and (a == a or b == b):
            found[node, path] = a, b
    elif a is not b and a != b:
        raise Differs


def _parts(x: Any) -> dict | None:
    """What a tree consists of, by keys; None for a leaf."""
    if isinstance(x, (tuple, list)):
        return dict(enumerate(x))
    if isinstance(x, slice):
        return {"start": x.start, "stop": x.stop, "step": x.step}
    return x if isinstance(x, dict) else None


def _put(tree: Any, path: tuple, value: Any) -> Any:
    """``tree`` with ``value`` at ``path``."""
    if not path:
        return value
    parts = dict(_parts(tree))  # type: ignore[arg-type]
    parts[path[0]] = _put(parts[path[0]], path[1:], value)
    if isinstance(tree, slice):
        return slice(*parts.values())
    if isinstance(tree, dict):
        return parts
    return getattr(type(tree), "_make", type(tree))(parts.values())  # a named tuple is made of single values


#: Floats that are computed of whole numbers: the function, and its inverse.
_OF_WHOLE: tuple[tuple[Callable[[Any], Expr], Callable[[float], float]], ...] = (
    (lambda n: Expr("float", n), lambda v: v),
    (lambda n: Expr("truediv", 1, n), lambda v: 1 / v),
    (lambda n: Expr("pow", n, 0.5), lambda v: v * v),
    (lambda n: Expr("truediv", 1, Expr("pow", n, 0.5)), lambda v: 1 / (v * v)),
)


def _fit(values: list, samples: list[dict[str, int]]) -> Expr | None:
    """An expression that has these values at the samples, if one is found."""
    if all(type(v) is int for v in values):
        return fitted(values, samples)
    if not all(math.isfinite(v) and v * v > 0 for v in values):
        return None
    for function, inverse in _OF_WHOLE:
        numbers = [round(inverse(v)) for v in values]
        if not all(
            n and math.isclose(function(n).value({}), v, rel_tol=4e-16) for n, v in zip(numbers, values, strict=True)
        ):
            continue
        whole = fitted(numbers, samples)
        if whole is not None:
            return function(whole)
    return None


# ---- sizes to record at ----------------------------------------------------------------------------------------------


class _Sizes:
    """The sizes of the inputs of a recorded program, which vary together in groups."""

    def __init__(self, first: Recording, inputs: list[Tensor], record: Callable[[list[Tensor]], Recording]) -> None:
        self.first, self.inputs, self.record = first, inputs, record
        self.place = {symbol(at, d): (i, d) for i, at in enumerate(first.inputs) for d in range(inputs[i].dim())}
        self.base = {name: inputs[i].shape[d] for name, (i, d) in self.place.items()}
        self.groups: dict[str, list[str]] = {}  # that vary, by their first symbol
        self.found: list[tuple[dict[str, int], dict]] = []  # sizes of all symbols, and the differing numbers there

    def differences(self, sizes: dict[str, int]) -> dict | None:
        """The numbers that differ at these sizes; None if the program fails there or its guards say no.

        Raises:
            Differs: the program is another one there, and no guard tells.
        """
        wanted: list[list[int]] = [[] for _ in self.inputs]
        for name, (i, _) in self.place.items():
            wanted[i].append(sizes[name])
        given = [x if list(x.shape) == n else grown(x, n) for x, n in zip(self.inputs, wanted, strict=True)]
        try:
            made = self.record(given)
        except Exception:  # with whatever error
            return None
        if any(a[1] != b[1] for a, b in zip(self.first.guards, made.guards, strict=False)):
            return None  # from the first such guard on, it may be another program
        return differences(self.first.module, made.module)

    def _holds(self, expr: Expr, outcome: bool, sizes: dict[str, int]) -> bool:
        try:
            return not expr.symbols() <= sizes.keys() or bool(expr.value(sizes)) == outcome
        except ArithmeticError:
            return False

    def vary(self) -> None:
        """Find which sizes may vary: each alone, else with those of equal size in the same dimension, or anywhere."""
        waiting = [s for s, n in self.base.items() if n]
        tried: set[tuple[str, ...]] = set()
        for kind in (lambda s: s, self._column, lambda s: self.base[s]):
            groups: dict[Any, list[str]] = {}
            for s in waiting:
                groups.setdefault(kind(s), []).append(s)
            for group in groups.values():
                if tuple(group) not in tried and self._varies(group):
                    self.groups[group[0]] = group
                    waiting = [s for s in waiting if s not in group]
                tried.add(tuple(group))

    def _column(self, name: str) -> tuple[int, int]:
        i, d = self.place[name]
        return self.base[name], d - self.inputs[i].dim()

    def _varies(self, group: list[str]) -> bool:
        for n in self._values(group):
            sizes = {**self.base, **dict.fromkeys(group, n)}
            try:
                found = self.differences(sizes)
            except Differs:
                return False
            if found is not None:
                self.found.append((sizes, found))
                return True
        return False

    def _values(self, group: list[str]) -> Iterator[int]:
        """Sizes to try: the next one that the guards allow, the next one, as numbers in guards may follow from sizes of
        which Python lost sight, and multiples."""
        hint = self.base[group[0]]

        def allowed(n: int) -> bool:
            sizes = {**self.base, **dict.fromkeys(group, n)}
            return all(self._holds(*guard, sizes) for guard in self.first.guards)

        near = [n for n in itertools.chain(range(hint + 1, hint + _MOST), range(hint - 1, 1, -1)) if allowed(n)]
        yield from dict.fromkeys([*near[:1], hint + 1, 2 * hint, 3 * hint])

    def together(self) -> None:
        """Record with all sizes changed at once, by some steps. No size varies if that is another program."""
        steps = {s: next(at[s] for at, _ in self.found if at[s] != self.base[s]) - self.base[s] for s in self.groups}
        for times in (1, 2, 7) if self.groups else ():
            sizes = dict(self.base)
            for name, group in self.groups.items():
                sizes.update(dict.fromkeys(group, self.base[name] + times * steps[name]))
            if any(n < 1 and n != self.base[s] for s, n in sizes.items()) or times * max(steps.values()) > _MOST:
                continue
            try:
                found = self.differences(sizes)
                if found is None and times == 1:
                    raise Differs
            except Differs:
                self.groups, self.found = {}, []
                return
            if found is not None:
                self.found.append((sizes, found))

    def not_one(self) -> list[str]:
        """The sizes at which 1, which is broadcast, makes another program."""
        return [name for name, group in self.groups.items() if self.base[name] > 1 and self._differs(group)]

    def _differs(self, group: list[str]) -> bool:
        try:
            self.differences({**self.base, **dict.fromkeys(group, 1)})
        except Differs:
            return True
        return False

    def fit(self) -> dict[tuple[int, tuple], Expr]:
        """Expressions for the differing numbers. The sizes that others depend on do not vary from here on."""
        while self.groups:
            samples = [{name: at[name] for name in self.groups} for at in (self.base, *(at for at, _ in self.found))]
            made, wrong = {}, set()
            places = {place: pair[0] for _, found in self.found for place, pair in found.items()}
            for place, value in places.items():
                values = [value, *(found[place][1] if place in found else value for _, found in self.found)]
                expr = _fit(values, samples)
                if expr is None:
                    wrong |= {
                        name for name in self.groups
                        for at, v in zip(samples[1:], values[1:], strict=True)
                        if v != value and all((at[s] != samples[0][s]) == (s == name) for s in self.groups)
                    } or set(self.groups)  # fmt: skip
                else:
                    made[place] = expr
            if not wrong:
                return made
            self.groups = {name: group for name, group in self.groups.items() if name not in wrong}
            fixed = [s for s in self.base if not any(s in group for group in self.groups.values())]
            self.found = [(at, found) for at, found in self.found if all(at[s] == self.base[s] for s in fixed)]
            self.together()
        return {}


def generalise(first: Recording, inputs: list[Tensor], record: Callable[[list[Tensor]], Recording]) -> None:
    """Make the graph of ``first`` hold for other sizes.

    Args:
        first: the program, recorded with ``inputs``.
        inputs: its tensors.
        record: record the program with other tensors.
    """
    sizes = _Sizes(first, inputs, record)
    sizes.vary()
    sizes.together()
    expressions = sizes.fit()
    graph = first.module.graph
    nodes = list(graph.nodes)
    start = next(node for node in nodes if node.op != "placeholder")
    made: dict[str, Node] = {}

    def node_of(expr: Any, before: Node) -> Any:
        if not isinstance(expr, Expr):
            return expr
        if expr.args:
            args = tuple(node_of(a, before) for a in expr.args)
            with graph.inserting_before(before):
                return graph.call_function(_FUNCTIONS[expr.head][0], args)
        if expr.head not in made:
            i, d = sizes.place[expr.head]
            with graph.inserting_before(start):
                made[expr.head] = graph.call_function(sym_size, (first.inputs[i], d))
        return made[expr.head]

    varying = {s for group in sizes.groups.values() for s in group}
    checks = [Expr("ne", Expr(name), 1) for name in sizes.not_one()]
    checks += [Expr("eq", Expr(other), Expr(name)) for name, (_, *others) in sizes.groups.items() for other in others]
    checks += [Expr("eq", Expr(name), n) for name, n in sizes.base.items() if name not in varying]
    for check in checks:
        condition = node_of(check, start)
        with graph.inserting_before(start):
            graph.call_function(assert_scalar, (condition, recorded_for(check)))
    for (i, path), expr in expressions.items():
        node = nodes[i]
        node.args, node.kwargs = _put((node.args, node.kwargs), path, node_of(expr, node))
    first.module.recompile()
