"""Statements of the language: assignments, branches and the types that follow from them, loops, conditions."""

from __future__ import annotations

import ast
from typing import Any

from . import ir
from .errors import CompileError, NotSupportedError, unsupported
from .sugar import (
    _INPLACE,
    _STATEMENTS,
    BINARY,
    Form,
    Missing,
    OpName,
    Part,
    Parts,
    Scope,
    Sugar,
    TypeRef,
    Value,
    _in_loop,
    _int,
    _known,
    _load,
)  # fmt: skip
from .types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    NUMBERS,
    STR,
    TENSOR,
    ClassType,
    EnumType,
    Type,
    choices,
    is_kind,
    is_subtype,
    is_tuple,
    list_of,
    optional,
    tuple_of,
    unify,
    union,
)  # fmt: skip


class Statements(Part):
    """The compilation of statements."""

    loops: int
    returned: Type | None

    # ---- bodies -----------------------------------------------------------------------------------------------------
    def compile(self, statements: list[ast.stmt]) -> None:
        """Fill in the function's body, places and result."""
        body, left = self.block(statements)
        if not left:
            if self.function.declared not in (None, NONE) and self.function.declared is not ANY:
                if not (self.function.declared.name == "Optional" or self.function.name == "__init__"):
                    self.fail(
                        statements[-1],
                        f"Function was not annotated as having type None, but does not return along all paths; "
                        f"expected "
                        f"{self.function.declared}",
                    )
            self.returned = optional(self.returned) if self.returned is not None else NONE
        self.function.body = body
        self.function.slots = self.places
        if self.function.declared is None:
            self.function.result = self.returned or NONE

    def block(self, statements: list[ast.stmt]) -> tuple[list[ir.Stmt], bool]:
        """The statements, and whether they always leave the block."""
        out: list[ir.Stmt] = []
        for node in statements:
            if self.statement(node, out):
                return out, True
        return out, False

    def nested(self, statements: list[ast.stmt], refined: Scope) -> tuple[list[ir.Stmt], bool, Scope]:
        """A block of its own scope, in which some variables are narrower."""
        self.scopes.append(dict(refined))
        try:
            out, left = self.block(statements)
        finally:
            scope = self.scopes.pop()
        return out, left, scope

    def statement(self, node: ast.stmt, out: list[ir.Stmt]) -> bool:
        """Append what ``node`` does; whether it leaves the block."""
        method = getattr(self, "_" + type(node).__name__, None) if type(node) in _STATEMENTS else None
        if method is None:
            unsupported(self.source, node)
            raise AssertionError
        return bool(method(node, out))

    def _Pass(self, node: ast.Pass, out: list) -> None:
        pass

    def _Expr(self, node: ast.Expr, out: list) -> None:
        if isinstance(node.value, ast.Constant):
            return
        value = self.emit(node.value)
        if isinstance(value, ir.Expr):
            out.append(ir.Do(value, node.lineno))

    def _Assign(self, node: ast.Assign, out: list) -> None:
        if len(node.targets) > 1:
            value = self.expr(node.value)
            variable = self.new_variable(f"_chain{self.places}", value.type)
            out.append(ir.Assign(variable, value, node.lineno))
            for target in node.targets:
                self.assign(target, variable, node, out)
            return
        (target,) = node.targets
        hint = None
        if isinstance(target, ast.Name):
            hint = self.declared.get(target.id)
            known = self.lookup(target.id)
            if hint is None and isinstance(known, ir.Expr):
                hint = known.type
        elif isinstance(target, ast.Attribute):
            owner = self.emit(target.value)
            if isinstance(owner, ir.Expr) and isinstance(owner.type, ClassType):
                hint = owner.type.attributes.get(target.attr)
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(node.value.elts):
                self._assign_pairs(target.elts, node.value.elts, node, out)
                return
        self.assign(target, self.emit(node.value, hint), node, out)

    def _assign_pairs(self, targets: list[ast.expr], values: list[ast.expr], node: ast.stmt, out: list) -> None:
        """``a, b = x, y``: all values first."""
        made = []
        for target, v in zip(targets, values, strict=True):
            known = self.lookup(target.id) if isinstance(target, ast.Name) else None
            made.append(self.emit(v, known.type if isinstance(known, ir.Expr) else None))
        if all(isinstance(m, (ir.Const, Sugar)) for m in made):
            for target, value in zip(targets, made, strict=True):
                self.assign(target, value, node, out)
            return
        whole = self.tuple_of_items([self.value(m, node) for m in made])
        self.assign(ast.Tuple(targets, ast.Store(), lineno=node.lineno), whole, node, out)

    def assign(self, target: ast.expr, value: Value, node: ast.stmt, out: list) -> None:
        if isinstance(target, ast.Name):
            declared = self.declared.get(target.id)
            if isinstance(value, ir.Expr) and declared is not None and not is_subtype(value.type, declared):
                try:
                    value = self.coerce(value, declared, node, f"Variable '{target.id}'")
                except CompileError:
                    if target.id not in self.scopes[-1]:
                        raise
                    del self.declared[target.id]  # in the block of the annotation the name may get another type
            statement = self.store(target.id, value, node)
            if statement is not None:
                out.append(statement)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, node, out)
        elif isinstance(target, ast.Attribute):
            owner = self.expr(target.value)
            self._set_attribute(owner, target.attr, self.value(value, node), node, out)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, self.value(value, node), node, out)
        else:
            unsupported(self.source, target)

    def _set_attribute(self, owner: ir.Expr, name: str, value: ir.Expr, node: ast.stmt, out: list) -> None:
        kind = owner.type
        if not isinstance(kind, ClassType):
            self.fail(node, f"attributes of values of type '{kind}' cannot be set")
        assert isinstance(kind, ClassType)
        wanted = kind.attributes.get(name)
        if wanted is None:
            done = self.set_property(owner, kind, name, value, node)
            if isinstance(done, ir.Expr):
                out.append(ir.Do(done, node.lineno))
                return
            if self.function.name == "__init__" and self.function.owner is kind and not kind.is_module:
                wanted = kind.attributes[name] = value.type
            else:
                self.fail(
                    node, f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?"
                )
        assert wanted is not None
        out.append(ir.SetAttr(owner, name, self.coerce(value, wanted, node, f"attribute '{name}'"), node.lineno))

    def _unpack(self, targets: list[ast.expr], value: Value, node: ast.stmt, out: list) -> None:
        parts = self.parts(value, node)
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), -1)
        if parts is None:
            value = self.value(value, node)
            if value.type.name != "List":
                self.fail(node, f"'{value.type}' cannot be used as a tuple")
            made = []
            for t in targets:
                if not isinstance(t, ast.Name):
                    self.fail(node, "lists are unpacked into plain names")
                assert isinstance(t, ast.Name)
                self.store(t.id, ir.Const(None, value.type.element), node)
                made.append(self.lookup(t.id))
            out.append(ir.Unpack(made, value, node.lineno))
            return
        count = len(parts)
        if (star < 0 and count != len(targets)) or count < len(targets) - (star >= 0):
            self.fail(node, f"need {len(targets)} values to unpack, got {count}")
        if isinstance(value, ir.Expr):
            if star < 0 and all(isinstance(t, ast.Name) and t.id not in self.declared for t in targets):
                made = []
                for t, kind in zip(targets, value.type.args, strict=True):
                    made += self._loop_target(t, kind, node)
                out.append(ir.Unpack(made, value, node.lineno))
                return
            variable = self.new_variable(f"_unpack{self.places}", value.type)
            out.append(ir.Assign(variable, value, node.lineno))
            parts = [ir.TupleItem(variable, i, t) for i, t in enumerate(value.type.args)]
        if star >= 0:
            tail = len(targets) - star - 1
            parts = [*parts[:star], Parts(parts[star : count - tail]), *parts[count - tail :]]
        for t, item in zip(targets, parts, strict=True):
            self.assign(t.value if isinstance(t, ast.Starred) else t, item, node, out)

    def parts(self, value: Value, node: ast.AST) -> list[Value] | None:
        """The elements of a value that is a tuple at compile time; None if it is no tuple."""
        if isinstance(value, Parts):
            return value.items
        if isinstance(value, ir.MakeTuple):
            return list(value.items)
        if isinstance(value, ir.Expr):
            if is_tuple(value.type):
                return [ir.TupleItem(value, i, t) for i, t in enumerate(value.type.args)]
            container = self.items_of_container(value)
            return None if container is None else container.items
        return None

    def _AnnAssign(self, node: ast.AnnAssign, out: list) -> None:
        wanted = self.annotation(node.annotation)
        if node.value is None:
            self.fail(node, "a declaration needs a value")
        assert node.value is not None
        value = self.coerce(self.expr(node.value, wanted), wanted, node, "the annotated variable")
        if isinstance(node.target, ast.Name):
            self.declared[node.target.id] = wanted
            known = self.lookup(node.target.id)
            if (
                isinstance(known, ir.Expr)
                and node.target.id not in self.scopes[-1]
                and not is_subtype(wanted, known.type)
            ):
                self.fail(
                    node, f"Variable '{node.target.id}' previously had type {known.type}, and is annotated as {wanted}"
                )
            out.append(self.store(node.target.id, value, node, wanted))
        elif isinstance(node.target, ast.Attribute):
            owner = self.expr(node.target.value)
            kind = owner.type
            if isinstance(kind, ClassType) and self.function.name == "__init__" and not kind.is_module:
                kind.attributes.setdefault(node.target.attr, wanted)
            self._set_attribute(owner, node.target.attr, value, node, out)
        else:
            unsupported(self.source, node)

    def _AugAssign(self, node: ast.AugAssign, out: list) -> None:
        if type(node.op) not in BINARY:
            unsupported(self.source, node)
        target = node.target
        if isinstance(target, ast.Subscript):
            self._augment_item(target, node, out)
            return
        old = self.expr(ast.copy_location(_load(target), node))
        value = self.expr(node.value)
        inplace = _INPLACE.get(type(node.op), "")
        if old.type == TENSOR and inplace.endswith("_"):
            out.append(ir.Do(self.op(f"aten::{inplace}", [old, value], {}, node), node.lineno))
            return
        if old.type.name == "List" and isinstance(node.op, ast.Add):
            out.append(ir.Do(self.op("aten::add_", [old, value], {}, node), node.lineno))
            return
        self.assign(target, self._augmented(old, value, node), node, out)

    def _augmented(self, old: ir.Expr, value: ir.Expr, node: ast.AugAssign) -> ir.Expr:
        """``old op value`` of an augmented assignment that makes a new value."""
        if isinstance(node.op, ast.Mod) and old.type in (*NUMBERS, BOOL, TENSOR):
            return self.op("aten::fmod", [old, value], {}, node)
        return self.binary(node.op, old, value, node)

    def _augment_item(self, target: ast.Subscript, node: ast.AugAssign, out: list) -> None:
        owner = self.expr(target.value)
        value = self.expr(node.value)
        if owner.type != TENSOR:
            key = self.expr(target.slice)
            old = self.op("aten::__getitem__", [owner, key], {}, node)
            new = self._augmented(old, value, node)
            out.append(ir.Do(self.op("aten::_set_item", [owner, key, new], {}, node), node.lineno))
            return
        view, indices = self.tensor_view(owner, target.slice)
        inplace = _INPLACE.get(type(node.op), "")
        if not indices and inplace.endswith("_"):
            out.append(ir.Do(self.op(f"aten::{inplace}", [view, value], {}, node), node.lineno))
            return
        old = self.op("aten::index", [view, self.index_list(indices)], {}, node) if indices else view
        new = self._augmented(old, value, node)
        self._store_item(view, indices, new, node, out)

    def _If(self, node: ast.If, out: list) -> bool:
        condition, when_true, when_false = self.condition(node.test)
        known = _known(condition)
        if known is not None:
            branch, left, scope = self.nested(node.body if known else node.orelse, when_true if known else when_false)
            out += branch
            self.scopes[-1].update(scope)
            return left
        then, left_then, scope_then = self.nested(node.body, when_true)
        other, left_other, scope_other = self.nested(node.orelse, when_false)
        out.append(ir.If(condition, then, other, node.lineno))
        if left_then and left_other:
            return True
        if left_then or left_other:
            self.scopes[-1].update(scope_other if left_then else scope_then)
        else:
            self._merge(scope_then, scope_other, node)
        return False

    def _merge(self, a: Scope, b: Scope, node: ast.AST) -> None:
        """Merge the variables of two branches."""
        for name in [*a, *(n for n in b if n not in a)]:
            one = a.get(name) or self.lookup(name)
            two = b.get(name) or self.lookup(name)
            if one is None or two is None:
                side = "true" if one is None else "false"
                self.scopes[-1][name] = Missing(f"{name} is not defined in the {side} branch")
            elif isinstance(one, ir.Expr) and isinstance(two, ir.Expr):
                wanted, outer = self.declared.get(name), self.lookup(name)
                if wanted is None and isinstance(outer, ir.Expr) and is_subtype(one.type, outer.type):
                    wanted = outer.type  # each branch may narrow it
                t = unify(one.type, two.type)
                if wanted is not None and (t is None or not is_subtype(t, wanted)) and is_subtype(two.type, wanted):
                    t = wanted
                if t is None:
                    self.scopes[-1][name] = Missing(
                        f"Type mismatch: {name} is set to type {one.type} in the true branch and type {two.type} in "
                        f"the "
                        "false branch"
                    )
                else:
                    self.scopes[-1][name] = self.new_variable(name, t)
            elif one is not two:
                self.scopes[-1][name] = Missing(f"{name} is not the same kind of thing in both branches")

    def _While(self, node: ast.While, out: list) -> None:
        if node.orelse:
            self.fail(node, "else branches of while loops aren't supported", NotSupportedError)
        self.loops += 1
        condition, when_true, _ = self.condition(node.test)
        body, _, scope = self.nested(node.body, when_true)
        self.loops -= 1
        self._after_loop(scope)
        out.append(ir.While(condition, body, node.lineno))

    def _after_loop(self, scope: Scope) -> None:
        for name, value in scope.items():
            outer = self.lookup(name)
            if outer is None:
                self.scopes[-1][name] = Missing(f"{name} is not defined before the loop that sets it")
            elif isinstance(outer, ir.Expr) and isinstance(value, ir.Expr) and not is_subtype(value.type, outer.type):
                self.scopes[-1][name] = self.new_variable(name, self.declared.get(name, outer.type))

    def _For(self, node: ast.For, out: list) -> bool:
        if node.orelse:
            self.fail(node, "else branches of for loops aren't supported", NotSupportedError)
        over = self.iterable(node.iter)
        if isinstance(over, Parts):
            return self._unrolled(node, over, out)
        self.loops += 1
        self.scopes.append({})
        try:
            target = self._loop_target(node.target, over.type.element, node)
            body, _ = self.block(node.body)
        finally:
            scope = self.scopes.pop()
            self.loops -= 1
        self._after_loop(scope)
        out.append(ir.For(target, over, body, node.lineno))
        return False

    def _unrolled(self, node: ast.For, over: Parts, out: list) -> bool:
        for inner in ast.walk(ast.Module(node.body, [])):
            if isinstance(inner, (ast.Break, ast.Continue)) and not _in_loop(inner, node):
                word = "break" if isinstance(inner, ast.Break) else "continue"
                self.fail(inner, f"'{word}' is not supported in a loop over modules or a tuple: it is unrolled")
        for item in over.items:
            self.assign(node.target, item, node, out)
            body, left = self.block(node.body)
            out += body
            if left:
                return True
        return False

    def _loop_target(self, target: ast.expr, t: Type, node: ast.AST) -> list[Any]:
        if isinstance(target, ast.Name):
            self.store(target.id, ir.Const(None, t), node)
            return [self.lookup(target.id)]
        if not isinstance(target, (ast.Tuple, ast.List)):
            self.fail(node, "a loop's variable is a name, or several")
        assert isinstance(target, (ast.Tuple, ast.List))
        if not is_tuple(t) or len(t.args) != len(target.elts):
            self.fail(node, f"expected {len(target.elts)} values to unpack, the loop gives values of type {t}")
        out: list[Any] = []
        for sub, kind in zip(target.elts, t.args, strict=True):
            made = self._loop_target(sub, kind, node)
            out.append(made[0] if isinstance(sub, ast.Name) else made)
        return out

    def iterable(self, node: ast.expr) -> ir.Iterate | Parts:
        """The values that a loop goes over."""
        if isinstance(node, ast.Call):
            callee = self.emit(node.func)
            if isinstance(callee, Form) and callee.name in ("range", "enumerate", "zip", "reversed"):
                return self._iterable_form(callee.name, node)
        return self._iterate(self.emit(node), node)

    def _iterate(self, value: Value, node: ast.AST) -> ir.Iterate | Parts:
        parts = self.parts(value, node)
        if parts is not None:
            return Parts(parts)
        if isinstance(value, ir.Iterate):
            return value
        if isinstance(value, TypeRef) and isinstance(value.type, EnumType):
            members: list[ir.Expr] = [ir.Const(member, value.type) for member in value.type.members.values()]
            value = ir.MakeList(members, list_of(value.type))
        value = self.value(value, node)
        t = value.type
        if t == TENSOR:
            value = self.op("aten::unbind", [value], {}, node)
            t = value.type
        element = t.element if t.name == "List" else t.args[0] if t.name == "Dict" else STR if t is STR else None
        if element is None:
            self.fail(node, f"'{t}' object is not iterable")
        assert element is not None
        return ir.Iterate("", [value], list_of(element))

    def _iterable_form(self, word: str, node: ast.Call) -> ir.Iterate | Parts:
        if word == "range":
            args = [self.coerce(self.expr(a), INT, a, "range") for a in node.args]
            if not 1 <= len(args) <= 3 or node.keywords:
                self.fail(node, f"range expected 1 to 3 arguments, got {len(args)}")
            return ir.Iterate("range", args, list_of(INT))
        inner = [self.iterable(a) for a in (node.args[:1] if word == "enumerate" else node.args)]
        if word == "reversed":
            (one,) = inner
            if not isinstance(one, Parts):
                self.fail(node, "reversed() is for modules and tuples; of a list take x[::-1]", NotSupportedError)
            assert isinstance(one, Parts)
            return Parts(one.items[::-1])
        if word == "enumerate":
            start: Any = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords), None)
            (first,) = inner
            if isinstance(first, Parts):
                base = _known(self.expr(start)) if start is not None else 0
                if not isinstance(base, int):
                    self.fail(node, "enumerate over modules starts at a number that is known")
                return Parts([Parts([_int(i), v]) for i, v in enumerate(first.items, base)])
            extra = [] if start is None else [self.coerce(self.expr(start), INT, node, "enumerate")]
            return ir.Iterate("enumerate", [first, *extra], list_of(tuple_of(INT, first.type.element)))
        if any(isinstance(i, Parts) for i in inner):
            lists = [self._known_items(i, inner, node) for i in inner]
            return Parts([Parts(list(row)) for row in zip(*lists, strict=False)])
        plain: list[ir.Expr] = [i for i in inner if isinstance(i, ir.Iterate)]
        return ir.Iterate("zip", plain, list_of(tuple_of(*[i.type.element for i in plain])))

    def _known_items(self, one: ir.Iterate | Parts, others: list, node: ast.AST) -> list[Value]:
        """The elements that are zipped with modules."""
        if isinstance(one, Parts):
            return one.items
        count = min(len(o.items) for o in others if isinstance(o, Parts))
        if one.word == "range":
            numbers = [_known(p) for p in one.parts]
            if None not in numbers:
                return [_int(i) for i in list(range(*numbers))[:count]]
        elif one.word == "" and one.parts[0].type.name == "List":
            return [self.op("aten::__getitem__", [one.parts[0], _int(i)], {}, node) for i in range(count)]
        self.fail(node, "only lists and ranges can be zipped with modules")
        raise AssertionError

    def _Break(self, node: ast.Break, out: list) -> bool:
        return self._leave("break", node, out)

    def _Continue(self, node: ast.Continue, out: list) -> bool:
        return self._leave("continue", node, out)

    def _leave(self, word: str, node: ast.stmt, out: list) -> bool:
        if not self.loops:
            self.fail(node, f"'{word}' outside of a loop")
        out.append(ir.Leave(word, node.lineno))
        return True

    def _Return(self, node: ast.Return, out: list) -> bool:
        declared = self.function.declared
        value = ir.Const(None, NONE) if node.value is None else self.expr(node.value, declared)
        if declared is not None:
            value = self.coerce(
                value, declared, node, "", "Return value was annotated as having type {} but is actually of type {}"
            )
        elif self.returned is None:
            self.returned = value.type
        else:
            joined = unify(self.returned, value.type)
            if joined is None:
                self.fail(
                    node,
                    f"Previous return statement returned a value of type {self.returned} but this return statement "
                    f"returns "
                    f"a value of type {value.type}",
                )
            self.returned = joined
        out.append(ir.Return(value, node.lineno))
        return True

    def _Raise(self, node: ast.Raise, out: list) -> bool:
        if node.exc is None:
            self.fail(node, "raise needs an exception")
        kind, message = "Exception", None
        exc = node.exc
        name = exc.func if isinstance(exc, ast.Call) else exc
        if isinstance(name, (ast.Name, ast.Attribute)):
            kind = name.id if isinstance(name, ast.Name) else name.attr
        if isinstance(exc, ast.Call) and exc.args:
            message = self.text(self.expr(exc.args[0]), exc)
        elif isinstance(exc, ast.Name) and isinstance(held := self.lookup(exc.id), ir.Expr):
            kind, message = "Exception", self.text(held, exc)
        out.append(ir.Raise(kind, message, node.lineno))
        return True

    def text(self, value: ir.Expr, node: ast.AST) -> ir.Expr:
        """``str(value)``."""
        return value if value.type is STR else self.op("aten::format", [ir.Const("{}", STR), value], {}, node)

    def _Assert(self, node: ast.Assert, out: list) -> None:
        condition, when_true, _ = self.condition(node.test)
        message: ir.Expr = ir.Const("", STR) if node.msg is None else self.text(self.expr(node.msg), node)
        if isinstance(message, ir.Const):
            message = ir.Const(f"AssertionError: {message.value}", STR)
        else:
            message = self.op("aten::add", [ir.Const("AssertionError: ", STR), message], {}, node)
        known = _known(condition)
        if known is not True:
            out.append(ir.If(condition, [], [ir.Raise("Exception", message, node.lineno)], node.lineno))
        self.scopes[-1].update(when_true)

    def _Delete(self, node: ast.Delete, out: list) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                owner, key = self.expr(target.value), self.expr(target.slice)
                if isinstance(owner.type, ClassType):
                    call = self.value(self.call_method(owner, "__delitem__", [key], {}, node), node)
                else:
                    call = self.op("aten::Delete", [owner, key], {}, node)
                out.append(ir.Do(call, node.lineno))
            elif isinstance(target, ast.Name):
                self.scopes[-1][target.id] = Missing(f"{target.id} was deleted")
            else:
                unsupported(self.source, target)

    def _With(self, node: ast.With, out: list) -> bool:
        (item, *more) = node.items
        inner: list[ast.stmt] = [ast.copy_location(ast.With(more, node.body), node)] if more else node.body
        value = self.expr(item.context_expr)
        kind = value.type
        enter, leave = (
            (kind.method("__enter__"), kind.method("__exit__")) if isinstance(kind, ClassType) else (None, None)
        )
        if enter is None or leave is None:
            self.fail(item.context_expr, f"'{kind}' has no __enter__ and __exit__")
        assert enter is not None and leave is not None
        variable = None
        if item.optional_vars is not None:
            if not isinstance(item.optional_vars, ast.Name):
                unsupported(self.source, item.optional_vars)
            assert isinstance(item.optional_vars, ast.Name)
            name = item.optional_vars.id
            variable = self.scopes[-1][name] = self.new_variable(name, enter.result)
        held = self.new_variable(f"_with{self.places}", kind)
        body, left = self.block(inner)
        out.append(ir.With(value, variable, enter, leave, body, held.slot, node.lineno))
        return left

    # ---- conditions -------------------------------------------------------------------------------------------------
    def condition(self, node: ast.expr) -> tuple[ir.Expr, Scope, Scope]:
        """A bool, and the facts about variables where it is true, and where it is false."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner, a, b = self.condition(node.operand)
            known = _known(inner)
            if known is not None:
                return ir.Const(not known, BOOL), b, a
            return self.op("aten::__not__", [inner], {}, node), b, a
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self._is(node.left, node.comparators[0], isinstance(node.ops[0], ast.Is), node)
        if isinstance(node, ast.Call):
            callee = self.emit(node.func)
            if isinstance(callee, OpName) and callee.qualified in ("aten::__is__", "aten::__isnot__"):
                return self._is(node.args[0], node.args[1], callee.qualified == "aten::__is__", node)
            if isinstance(callee, OpName) and callee.qualified == "aten::__not__":
                inner, a, b = self.condition(node.args[0])
                return self.op("aten::__not__", [inner], {}, node), b, a
            if isinstance(callee, Form) and callee.name == "isinstance":
                return self._isinstance(node)
        value = self.emit(node)
        if isinstance(value, Parts):
            return ir.Const(bool(value.items), BOOL), {}, {}
        return self.truth(self.value(value, node), node), {}, {}

    def truth(self, value: ir.Expr, node: ast.AST) -> ir.Expr:
        """``bool(value)``."""
        if value.type is BOOL:
            return value
        if value.type == TENSOR or value.type in (INT, FLOAT):
            return self.op("aten::Bool", [value], {}, node)
        if value.type is STR:
            return self.op("aten::ne", [value, ir.Const("", STR)], {}, node)
        if value.type.name in ("List", "Dict"):
            return self.op("aten::Bool", [self.op("aten::len", [value], {}, node)], {}, node)
        if isinstance(value.type, ClassType):
            method = value.type.method("__bool__") or value.type.method("__len__")
            if method is not None:
                return self.truth(ir.Call(method, [value], method.result), node)
        self.fail(node, f"Could not cast value of type {value.type} to bool")
        raise AssertionError

    def _bool_op(self, node: ast.BoolOp) -> tuple[ir.Expr, Scope, Scope]:
        is_and = isinstance(node.op, ast.And)
        value, true, false = self.condition(node.values[0])
        for right in node.values[1:]:
            known = _known(value)
            if known is not None and known is not is_and:  # decided
                return value, true, false
            self.scopes.append(dict(true if is_and else false))
            try:
                other, more_true, more_false = self.condition(right)
            finally:
                self.scopes.pop()
            if known is not None:
                value, true, false = other, {**true, **more_true}, {**false, **more_false}
                continue
            both: ir.Expr = ir.Both(value, other, is_and)
            right_known = _known(other)
            if right_known is not None and right_known is is_and:
                both = value
            if is_and:
                value, true, false = both, {**true, **more_true}, {}
            else:
                value, true, false = both, {}, {**false, **more_false}
        return value, true, false

    def _is(self, left: ast.expr, right: ast.expr, positive: bool, node: ast.AST) -> tuple[ir.Expr, Scope, Scope]:
        a, b = self.value(self.emit(left), left), self.value(self.emit(right), right)
        if a.type is NONE and b.type is not NONE:
            a, b, left = b, a, right
        if b.type is not NONE:
            name = "aten::__is__" if positive else "aten::__isnot__"
            return self.op(name, [a, b], {}, node), {}, {}
        if a.type is NONE:
            return ir.Const(positive, BOOL), {}, {}
        if NONE not in choices(a.type) and a.type is not ANY:
            return ir.Const(not positive, BOOL), {}, {}
        op = self.op("aten::__is__" if positive else "aten::__isnot__", [a, b], {}, node)
        if a.type is ANY:
            return op, {}, {}
        # where it is None it stays Optional: the branch may assign the other type
        rest = self._narrowed(left, [t for t in choices(a.type) if t is not NONE])
        return (op, {}, rest) if positive else (op, rest, {})

    def _narrowed(self, node: ast.expr, types: list[Type]) -> Scope:
        """The variable that ``node`` is, as one of some types."""
        if not isinstance(node, ast.Name) or not types:
            return {}
        variable = self.lookup(node.id)
        if not isinstance(variable, ir.Var):
            return {}
        return {node.id: ir.Var(variable.slot, variable.name, union(types))}

    def _isinstance(self, node: ast.Call) -> tuple[ir.Expr, Scope, Scope]:
        if len(node.args) != 2:
            self.fail(node, f"isinstance expected 2 arguments, got {len(node.args)}")
        value = self.value(self.emit(node.args[0]), node)
        wanted = self._types(node.args[1])
        given = choices(value.type)
        yes = [t for t in given if any(is_kind(t, w) for w in wanted)]
        no = [t for t in given if t not in yes]
        if value.type is not ANY:
            if not no:
                return ir.Const(True, BOOL), {}, {}
            if not yes:
                return ir.Const(False, BOOL), {}, {}
            return ir.IsInstance(value, yes), self._narrowed(node.args[0], yes), self._narrowed(node.args[0], no)
        return ir.IsInstance(value, wanted), self._narrowed(node.args[0], wanted), {}

    def _types(self, node: ast.expr) -> list[Type]:
        if isinstance(node, ast.Tuple):
            return [t for e in node.elts for t in self._types(e)]
        if isinstance(node, ast.Name) and node.id in ("list", "tuple", "dict"):
            return [Type({"list": "List", "tuple": "Tuple", "dict": "Dict"}[node.id])]
        return choices(self.annotation(node))
