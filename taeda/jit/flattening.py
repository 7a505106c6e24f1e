"""Functions without calls: other functions' bodies are written into their callers, and known values are substituted.

``freeze`` uses it, so that a convolution and the normalisation after it stand in one function. Loops are not unrolled.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from . import ir
from .types import BOOL, NONE, Type, is_subtype

#: Ops on numbers and texts that are computed where their arguments are known.
_KNOWN = frozenset(f"aten::{name}" for name in "__is__ __isnot__ __not__ eq ne lt gt le ge".split())
#: Ops that do nothing where their last argument, ``train``, is False.
_DROPOUT = frozenset(f"aten::{n}{w}" for n in "dropout feature_dropout alpha_dropout".split() for w in ("", "_"))
#: Ops whose results get names, so that :mod:`.folding` finds them.
_NAMED = frozenset(
    f"aten::{name}"
    for name in "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution "
    "linear batch_norm add sub mul div".split()
)


def parts_of(node: Any) -> Iterator[Any]:
    """The expressions and statements right inside of one, or inside of a list of them."""
    for value in node if isinstance(node, (list, tuple)) else (getattr(node, f.name) for f in fields(node)):
        if isinstance(value, (ir.Expr, ir.Stmt, ir.Star)):
            yield value
        elif isinstance(value, list):
            yield from parts_of(value)


def inside(node: Any) -> Iterator[Any]:
    """All expressions and statements in a list of them."""
    for part in parts_of(node):
        yield part
        yield from inside(part)


def assigned(body: list[Any]) -> Counter[int]:
    """The number of assignments to each variable, by slot."""
    found: Counter[int] = Counter()
    for node in inside(body):
        if isinstance(node, ir.Assign):
            found[node.target.slot] += 1
        elif isinstance(node, (ir.For, ir.Comprehension)):
            found.update(2 * [v.slot for v in inside(node.target) if isinstance(v, ir.Var)])
        elif isinstance(node, ir.Unpack):
            found.update(v.slot for v in inside(node.targets) if isinstance(v, ir.Var))
        elif isinstance(node, ir.With):
            found.update([node.slot, *([] if node.target is None else [node.target.slot])])
    return found


class _Frame:
    """The variables of an inlined function, in the function that its body is written into."""

    def __init__(self, function: ir.Function, counts: Counter[int], same: bool) -> None:
        self.counts, self.same = counts, same
        self.variables = {i: ir.Var(i, p.name, p.type) for i, p in enumerate(function.parameters)}
        for node in inside(function.body):  # a variable has the widest of the types that are assigned to it
            target = node.target if isinstance(node, ir.Assign) else node
            if not isinstance(target, ir.Var):
                continue
            known = self.variables.get(target.slot)
            if known is None or (target is not node and is_subtype(known.type, target.type)):
                self.variables[target.slot] = target
        self.values: dict[int, Any] = {}
        self.depth = 0  # depth of branches and loops


class Flattener:
    """Writes the body of a function anew."""

    def __init__(self, function: ir.Function) -> None:
        self.function, self.slots = function, function.slots
        self.active: list[ir.Function] = []
        self.names = {x.name for x in inside(function.body) if isinstance(x, ir.Var)}
        self.names |= {p.name for p in function.parameters}
        #: How often variables of the new body are assigned to.
        self.counts = assigned(function.body) + Counter(range(len(function.parameters)))

    def body(self) -> list[Any]:
        return self.block(self.function.body, _Frame(self.function, self.counts, True))

    def fresh(self, t: Type, name: str = "v", count: int = 1) -> ir.Var:
        """A variable of its own, which is assigned to ``count`` times."""
        numbered = (f"{name}{i}" for i in itertools.count())
        label = next(n for n in numbered if n not in self.names)
        self.names.add(label)
        self.counts[self.slots] = count
        self.slots += 1
        return ir.Var(self.slots - 1, label, t)

    # ---- statements -------------------------------------------------------------------------------------------------
    def block(self, statements: list[Any], frame: _Frame) -> list[Any]:
        """Statements, up to one that leaves them."""
        out: list[Any] = []
        for s in statements:
            self._statement(s, frame, out)
            if out and isinstance(out[-1], (ir.Return, ir.Raise, ir.Leave)):
                break
        return out

    def _nested(self, statements: list[Any], frame: _Frame) -> list[Any]:
        """The statements of a branch or a loop."""
        frame.depth += 1
        made = self.block(statements, frame)
        frame.depth -= 1
        return made

    def _settle(self, s: Any, frame: _Frame, out: list[Any]) -> None:
        """Give variables that are assigned to within ``s`` one place: outside of it each assignment has its own."""
        if frame.depth:
            return
        for slot in assigned([s]):
            value = frame.values.pop(slot, None)
            if value is not None:
                place = self._target(frame.variables[slot], frame)
                self.counts[place.slot] = 2
                out.append(ir.Assign(place, value))

    def _statement(self, s: Any, frame: _Frame, out: list[Any]) -> None:
        if isinstance(s, ir.Assign):
            self._assign(s, frame, out)
            return
        if isinstance(s, ir.If):
            condition = self.expression(s.condition, frame, out)
            if isinstance(condition, ir.Const):
                for inner in s.then if condition.value else s.other:
                    self._statement(inner, frame, out)
                    if isinstance(out[-1] if out else None, (ir.Return, ir.Raise, ir.Leave)):
                        break
                return
            self._settle(s, frame, out)
            out.append(ir.If(condition, self._nested(s.then, frame), self._nested(s.other, frame), s.line))
            return
        self._settle(s, frame, out)
        if isinstance(s, ir.While):
            out.append(ir.While(self.expression(s.condition, frame, None), self._nested(s.body, frame), s.line))
        elif isinstance(s, ir.For):
            over = self.expression(s.over, frame, out)
            out.append(ir.For(self._targets(s.target, frame), over, self._nested(s.body, frame), s.line))
        elif isinstance(s, ir.With):
            value = self.expression(s.value, frame, out)
            target = None if s.target is None else self._target(s.target, frame)
            slot = self._target(ir.Var(s.slot, "manager", value.type), frame).slot
            out.append(replace(s, value=value, target=target, slot=slot, body=self._nested(s.body, frame)))
        elif isinstance(s, ir.Unpack):
            value = self.expression(s.value, frame, out)
            out.append(ir.Unpack(self._targets(s.targets, frame), value, s.line))
        elif isinstance(s, ir.Do):
            value = self.expression(s.value, frame, out)
            if not isinstance(value, (ir.Const, ir.Var)):
                out.append(ir.Do(value, s.line))
        else:  # statements that contain only expressions
            given = {f.name: getattr(s, f.name) for f in fields(s)}
            changes = {k: self.expression(v, frame, out) for k, v in given.items() if isinstance(v, ir.Expr)}
            out.append(replace(s, **changes))

    def _assign(self, s: ir.Assign, frame: _Frame, out: list[Any]) -> None:
        slot = s.target.slot
        self._settle(s.value, frame, out)
        value = self.expression(s.value, frame, out)
        if self._is_fixed(value) and (not frame.depth or frame.counts[slot] == 1):
            frame.values[slot] = value
        elif frame.depth:
            out.append(ir.Assign(self._target(s.target, frame), value, s.line))
        else:
            keeps = frame.same and frame.counts[slot] == 1
            narrow = value.type if is_subtype(value.type, s.target.type) else s.target.type
            frame.values[slot] = s.target if keeps else self.fresh(narrow, s.target.name)
            out.append(ir.Assign(frame.values[slot], value, s.line))

    def _is_fixed(self, value: Any) -> bool:
        """Whether a variable with this value may be replaced by it wherever it is read."""
        if isinstance(value, ir.Const):
            return not isinstance(value.value, (list, dict))
        return isinstance(value, ir.Var) and self.counts[value.slot] == 1

    def _target(self, v: ir.Var, frame: _Frame) -> ir.Var:
        if frame.same:
            return v
        made = frame.values.get(v.slot)
        if made is None:
            made = frame.values[v.slot] = self.fresh(v.type, v.name, frame.counts[v.slot])
        assert isinstance(made, ir.Var)
        return ir.Var(made.slot, made.name, v.type)

    def _targets(self, targets: list[Any], frame: _Frame) -> list[Any]:
        found: list[Any] = []
        for t in targets:
            if isinstance(t, ir.Star):
                found.append(ir.Star(self._target(t.target, frame)))
            else:
                found.append(self._targets(t, frame) if isinstance(t, list) else self._target(t, frame))
        return found

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expression(self, e: Any, frame: _Frame, out: list[Any] | None) -> Any:
        """An expression, after the statements that it needs, which go to ``out``. None means that no statement can go
        there.
        """
        if isinstance(e, ir.Const):
            return e
        if isinstance(e, ir.Var):
            return self._variable(e, frame)
        if isinstance(e, (ir.Choose, ir.Both)):
            return self._conditional(e, frame, out)
        if isinstance(e, ir.Block):
            body = self._nested(e.body, frame)
            return ir.Block(body, self.expression(e.value, frame, body), e.type)
        if isinstance(e, ir.Comprehension):
            return self._comprehension(e, frame, out)
        changes = self._children(e, frame, None if isinstance(e, (ir.Fork, ir.MakeDict)) else out)
        e = replace(e, **changes) if changes else e
        if isinstance(e, ir.Op):
            return self._op(e, out)
        if isinstance(e, ir.Cast) and isinstance(e.value, ir.Const) and e.word in ("annotate", "unchecked_cast"):
            return ir.Const(e.value.value, e.type, e.value.name)
        if isinstance(e, ir.Call) and out is not None:
            return self._call(e, out)
        return e

    def _variable(self, e: ir.Var, frame: _Frame) -> Any:
        """A read of a variable. The branch that narrowed its type, such as a check for None, may be gone."""
        value = frame.values.get(e.slot)
        if value is None:
            own = frame.variables[e.slot]
            value = own if frame.same else self._target(own, frame)
        if not isinstance(value, ir.Var) or is_subtype(value.type, e.type):
            return value
        return ir.Cast(value, e.type, "unchecked_cast")

    def _conditional(self, e: Any, frame: _Frame, out: list[Any] | None) -> Any:
        first = self.expression(e.condition if isinstance(e, ir.Choose) else e.a, frame, out)
        if isinstance(first, ir.Const):
            if isinstance(e, ir.Choose):
                return self.expression(e.a if first.value else e.b, frame, out)
            return self.expression(e.b, frame, out) if bool(first.value) is e.is_and else ir.Const(not e.is_and, BOOL)
        if isinstance(e, ir.Choose):
            a, b = (self.expression(x, frame, None) for x in (e.a, e.b))
            return ir.Choose(first, a, b, e.type)
        second = self.expression(e.b, frame, None)
        if isinstance(second, ir.Const):
            second = ir.Const(bool(second.value), BOOL)
            if second.value is e.is_and:
                return first
            if _is_pure(first):
                return second
        return ir.Both(first, second, e.is_and, e.type)

    def _comprehension(self, e: ir.Comprehension, frame: _Frame, out: list[Any] | None) -> Any:
        over = self.expression(e.over, frame, out)
        target = self._targets(e.target, frame)
        inner = {
            n: getattr(e, n) and self.expression(getattr(e, n), frame, None) for n in ("condition", "key", "value")
        }
        return replace(e, target=target, over=over, **inner)

    def _children(self, e: Any, frame: _Frame, out: list[Any] | None) -> dict[str, Any]:
        """The parts of an expression, computed in their order."""
        places: list[tuple[str, int | None, Any]] = []
        for f in fields(e):
            value = getattr(e, f.name)
            if isinstance(value, ir.Expr):
                places.append((f.name, None, value))
            elif isinstance(value, list):
                places += [(f.name, i, v) for i, v in enumerate(value) if isinstance(v, ir.Expr)]
        before: list[list[Any]] = [[] for _ in places]
        values = [
            self.expression(v, frame, None if out is None else b) for (*_, v), b in zip(places, before, strict=True)
        ]
        last = max((i for i, b in enumerate(before) if b), default=-1)
        for n in range(last):
            if not _is_stable(values[n]):
                named = self.fresh(values[n].type)
                before[n].append(ir.Assign(named, values[n]))
                values[n] = named
        changes: dict[str, Any] = {}
        for (name, i, _), value in zip(places, values, strict=True):
            if i is None:
                changes[name] = value
            else:
                changes.setdefault(name, list(getattr(e, name)))[i] = value
        if out is not None:
            out += [s for statements in before for s in statements]
        return changes

    def _op(self, e: ir.Op, out: list[Any] | None) -> Any:
        name = e.schema.qualified
        known = [a for a in e.args if isinstance(a, ir.Const)]
        if name in _KNOWN and len(known) == len(e.args):
            values = [a.value for a in known]
            if "__is" in name:
                return ir.Const((values[0] is values[1]) == (name == "aten::__is__"), BOOL)
            if all(isinstance(v, (bool, int, float, str)) for v in values):
                return ir.Const(e.schema.function(*values), BOOL)
        if name in _DROPOUT and isinstance(e.args[-1], ir.Const) and e.args[-1].value is False:
            return e.args[0]
        if out is None or name not in _NAMED or not any(isinstance(a, ir.Const) for a in e.args[1:]):
            return e
        named = self.fresh(e.type)
        out.append(ir.Assign(named, e))
        return named

    # ---- calls ------------------------------------------------------------------------------------------------------
    def _call(self, e: ir.Call, out: list[Any]) -> Any:
        """Write the function's statements and return its result; a call of it if it returns from inside a loop."""
        function = e.function
        if function in self.active:
            return e
        self.active.append(function)
        body = function.define().body
        frame = _Frame(function, assigned(body), False)
        before: list[Any] = []
        for i, (parameter, arg) in enumerate(zip(function.parameters, e.args, strict=True)):
            frame.values[i] = arg
            if not isinstance(arg, (ir.Const, ir.Var)):
                narrow = arg.type if is_subtype(arg.type, parameter.type) else parameter.type
                frame.values[i] = self.fresh(narrow, parameter.name)
                before.append(ir.Assign(frame.values[i], arg))
        body = self.block(body, frame)
        self.active.pop()
        value: Any = ir.Const(None, NONE)
        last = body[-1] if body else None
        if isinstance(last, ir.Return) and not any(map(_returns, body[:-1])):
            value = last.value
            body.pop()
        elif any(map(_returns, body)):
            value = self.fresh(e.type, "result")
            made = _with_result(body, value)
            if made is None:
                return e
            body, value = made, ir.Const(None, NONE) if e.type == NONE else value
        out += before + body
        return ir.Cast(value, e.type) if value.type != e.type and not isinstance(value, (ir.Const, ir.Var)) else value


def _is_stable(e: Any) -> bool:
    """Whether an expression has the same value after other statements."""
    if isinstance(e, (ir.MakeList, ir.MakeTuple)):
        return all(map(_is_stable, e.items))
    return isinstance(e, (ir.Const, ir.Var))


def _is_pure(e: Any) -> bool:
    """Whether an expression may be left out."""
    if isinstance(e, ir.Op):
        return e.schema.qualified in _KNOWN and all(map(_is_pure, e.args))
    return (isinstance(e, ir.Both) and _is_pure(e.a) and _is_pure(e.b)) or _is_stable(e)


def _returns(s: Any) -> bool:
    return isinstance(s, ir.Return) or any(isinstance(x, ir.Return) for x in inside([s]))


def _ends(body: list[Any]) -> bool:
    return bool(body) and isinstance(body[-1], (ir.Return, ir.Raise))


def _with_result(body: list[Any], result: ir.Var) -> list[Any] | None:
    """The statements with assignments to ``result`` in place of returns. None if a return is in a loop, or in a branch
    that may go on as well.
    """
    for i, s in enumerate(body):
        if isinstance(s, ir.Return):
            return [*body[:i], ir.Assign(result, s.value, s.line)]
        if not _returns(s):
            continue
        if not isinstance(s, ir.If) or not (_ends(s.then) or _ends(s.other)):
            return None
        rest = body[i + 1 :]
        then, other = (_with_result(b if _ends(b) else [*b, *rest], result) for b in (s.then, s.other))
        return None if then is None or other is None else [*body[:i], ir.If(s.condition, then, other, s.line)]
    if not _ends(body) and result.type != NONE:
        return None
    return body
