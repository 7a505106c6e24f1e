"""From syntax to typed expressions and statements: one front end for scripts and for the code in archives.

What a name means is a subclass's matter (:mod:`.script`, :mod:`.archive`). Here are the language's rules: types, narrowing of
Optionals, which branches are taken, indexing, overloads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .._core import device
from . import ir, schemas
from .errors import FrontendError, NotSupportedError, Source, UnsupportedNodeError, unsupported
from .schemas import IMPLICIT, SPREAD, TO_LIST, WRAP_INT, NoMatch, Schema
from .types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    NUMBERS,
    PLAIN,
    REQUIRED,
    STR,
    TENSOR,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    NamedTupleType,
    Parameter,
    Type,
    choices,
    dict_of,
    is_subtype,
    is_tuple,
    list_of,
    optional,
    tuple_of,
    type_of,
    unify,
    union,
)  # fmt: skip

#: Ops of Python's operators, and the method that a class may have for it.
BINARY: dict[type, tuple[str, str]] = {
    ast.Add: ("aten::add", "__add__"), ast.Sub: ("aten::sub", "__sub__"), ast.Mult: ("aten::mul", "__mul__"),
    ast.Div: ("aten::div", "__truediv__"), ast.FloorDiv: ("aten::floordiv", "__floordiv__"),
    ast.Mod: ("aten::remainder", "__mod__"), ast.Pow: ("aten::pow", "__pow__"), ast.MatMult: ("aten::matmul", "__matmul__"),
    ast.BitAnd: ("aten::__and__", "__and__"), ast.BitOr: ("aten::__or__", "__or__"),
    ast.BitXor: ("aten::__xor__", "__xor__"), ast.LShift: ("aten::__lshift__", "__lshift__"),
    ast.RShift: ("aten::__rshift__", "__rshift__"),
}  # fmt: skip
COMPARE: dict[type, tuple[str, str]] = {
    ast.Lt: ("aten::lt", "__lt__"), ast.LtE: ("aten::le", "__le__"), ast.Gt: ("aten::gt", "__gt__"),
    ast.GtE: ("aten::ge", "__ge__"), ast.Eq: ("aten::eq", "__eq__"), ast.NotEq: ("aten::ne", "__ne__"),
}  # fmt: skip
_INPLACE = {ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_", ast.MatMult: "matmul"}
#: Functions of Python's own that are ops.
FUNCTIONS = {
    "abs": "prim::abs", "min": "prim::min", "max": "prim::max", "round": "aten::round", "sum": "aten::sum",
    "sorted": "aten::sorted", "any": "aten::any", "all": "aten::all", "ord": "aten::ord", "chr": "aten::chr",
    "hex": "aten::hex", "oct": "aten::oct", "bin": "aten::bin", "hash": "aten::hash", "divmod": "aten::divmod",
    "pow": "aten::pow", "len": "aten::len", "print": "prim::Print", "id": "prim::id",
}  # fmt: skip
CASTS = {"int": ("aten::Int", INT), "float": ("aten::Float", FLOAT), "bool": ("aten::Bool", BOOL)}
#: Attributes of tensors that are ops.
PROPERTIES = {
    **{n: f"prim::{n}" for n in (
        "dtype device grad requires_grad is_cuda is_sparse is_quantized is_mkldnn is_meta is_cpu is_nested layout data "
        "itemsize nbytes name is_xpu is_mps"
    ).split()},
    "shape": "aten::size", "ndim": "aten::dim", "T": "aten::numpy_T", "mT": "aten::mT", "mH": "aten::mH",
    "H": "aten::matrix_H", "real": "aten::real", "imag": "aten::imag", "is_leaf": "aten::is_leaf",
}  # fmt: skip


# ---- what stands for no value ------------------------------------------------------------------------------------------
class Sugar:
    """Something that a name stands for and that is no value: a namespace, a class, a function of the language."""


class Form(Sugar):
    """A function of the language itself, such as ``annotate``, ``range`` or ``len``."""

    def __init__(self, name: str) -> None:
        self.name = name


class OpName(Sugar):
    """An op, with what precedes its arguments."""

    def __init__(self, qualified: str, first: ir.Expr | None = None) -> None:
        self.qualified, self.first = qualified, first


class Method(Sugar):
    """A method of an object, or what reads like one."""

    def __init__(self, object: ir.Expr, name: str) -> None:
        self.object, self.name = object, name


class FunctionRef(Sugar):
    """A function that is compiled."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function


class TypeRef(Sugar):
    """A class, named tuple, enum or plain type."""

    def __init__(self, type: Type) -> None:
        self.type = type


class Parts(Sugar):
    """Several things that are known apart, of which some may be no values: modules of a list, a zip of them."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


class Missing(Sugar):
    """A variable that only some ways here define."""

    def __init__(self, why: str) -> None:
        self.why = why


Value = Any  # an Expr or a Sugar
Scope = dict[str, Value]
MAX_DEPTH = 200


class Frontend:
    """Compiles one function.

    Args:
        function: what is compiled; its parameters are known.
        source: its text, for messages.
    """

    def __init__(self, function: ir.Function, source: Source) -> None:
        self.function, self.source = function, source
        self.scopes: list[Scope] = [{}]
        self.names: dict[str, int] = {}
        self.places = 0
        self.declared: dict[str, Type] = {}  # of variables that were annotated
        self.loops = 0
        self.returned: Type | None = function.declared
        for p in function.parameters:
            self.scopes[0][p.name] = self.new_variable(p.name, p.type)

    # ---- what subclasses know ---------------------------------------------------------------------------------------
    def global_name(self, name: str, node: ast.AST) -> Value:
        """What a name that is no variable means; None: nothing."""
        raise NotImplementedError

    def attribute_of(self, value: Sugar, name: str, node: ast.AST) -> Value:
        """An attribute of something of the subclass's own."""
        self.fail(node, f"it has no attribute '{name}'")

    def call_other(self, callee: Sugar, node: ast.Call, hint: Type | None) -> Value:
        """A call of something of the subclass's own."""
        self.fail(node, "this cannot be called here")

    def type_of_sugar(self, value: Sugar, node: ast.AST) -> Type | None:
        """The type that something of the subclass's own stands for, or None."""
        return None

    def as_expression(self, value: Sugar, node: ast.AST) -> ir.Expr:
        """The value of something of the subclass's own."""
        self.fail(node, "expected a value here, not a module, class or function")
        raise AssertionError

    def module_attribute(self, value: ir.Expr, kind: ClassType, name: str, node: ast.AST) -> Value:
        """An attribute of a module that its type does not list; None: there is none."""
        return None

    def items_of_container(self, value: ir.Expr) -> Parts | None:
        """The modules in a container, or None: it is none."""
        return None

    # ---- errors -----------------------------------------------------------------------------------------------------
    def fail(self, node: ast.AST, message: str, kind: type[Exception] = RuntimeError) -> Any:
        """Raise with the line of ``node``."""
        self.source.fail(node, message, kind)

    # ---- variables --------------------------------------------------------------------------------------------------
    def new_variable(self, name: str, t: Type) -> ir.Var:
        """A variable's place, new where the name is."""
        slot = self.names.get(name)
        if slot is None:
            slot = self.names[name] = self.places
            self.places += 1
        return ir.Var(slot, name, t)

    def lookup(self, name: str) -> Value | None:
        """What a variable is now, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def store(self, name: str, value: Value, node: ast.AST, annotated: Type | None = None) -> ir.Stmt | None:
        """``name = value``."""
        if isinstance(value, Sugar):
            if isinstance(value, Parts) and all(isinstance(i, ir.Expr) and not _is_module(i) for i in value.items):
                value = self.tuple_of_items(value.items)
            else:
                self.scopes[-1][name] = value
                return None
        t = annotated or value.type
        for scope in reversed(self.scopes[:-1]):
            if name in scope:
                outer = scope[name]
                if isinstance(outer, ir.Expr) and not is_subtype(t, outer.type):
                    declared = self.declared.get(name)
                    if declared is None or not is_subtype(t, declared):
                        self.fail(
                            node,
                            f"Variable '{name}' previously had type {outer.type} but is now being assigned to a value of "
                            f"type {t}",
                        )
                break
        variable = self.scopes[-1][name] = self.new_variable(name, t)
        return ir.Assign(variable, value, getattr(node, "lineno", 0))

    # ---- bodies -----------------------------------------------------------------------------------------------------
    def compile(self, statements: list[ast.stmt]) -> None:
        """Fill in the function's body, places and result."""
        body, left = self.block(statements)
        if not left:
            if self.function.declared not in (None, NONE) and self.function.declared is not ANY:
                if not (self.function.declared.name == "Optional" or self.function.name == "__init__"):
                    self.fail(
                        statements[-1],
                        f"Function was not annotated as having type None, but does not return along all paths; expected "
                        f"{self.function.declared}",
                    )
            elif self.function.declared is None and self.returned is not None and self.returned is not NONE:
                self.fail(statements[-1], "Function does not return along all paths")
            self.returned = self.returned or NONE
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
        """Store ``value`` at ``target``."""
        if isinstance(target, ast.Name):
            declared = self.declared.get(target.id)
            if isinstance(value, ir.Expr) and declared is not None:
                if not is_subtype(value.type, declared):
                    value = self.coerce(value, declared, node, f"Variable '{target.id}'")
                statement = self.store(target.id, value, node)
            else:
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
        """The elements of what is a tuple when it is compiled; None: it is none."""
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
        new = self.binary(node.op, old, value, node)
        self.assign(target, new, node, out)

    def _augment_item(self, target: ast.Subscript, node: ast.AugAssign, out: list) -> None:
        owner = self.expr(target.value)
        value = self.expr(node.value)
        if owner.type != TENSOR:
            key = self.expr(target.slice)
            old = self.op("aten::__getitem__", [owner, key], {}, node)
            new = self.binary(node.op, old, value, node)
            out.append(ir.Do(self.op("aten::_set_item", [owner, key, new], {}, node), node.lineno))
            return
        view, indices = self.tensor_view(owner, target.slice)
        inplace = _INPLACE.get(type(node.op), "")
        if not indices and inplace.endswith("_"):
            out.append(ir.Do(self.op(f"aten::{inplace}", [view, value], {}, node), node.lineno))
            return
        old = self.op("aten::index", [view, self.index_list(indices)], {}, node) if indices else view
        new = self.binary(node.op, old, value, node)
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
        """What variables are after two branches."""
        for name in [*a, *(n for n in b if n not in a)]:
            one = a.get(name) or self.lookup(name)
            two = b.get(name) or self.lookup(name)
            if one is None or two is None:
                side = "true" if one is None else "false"
                self.scopes[-1][name] = Missing(f"{name} is not defined in the {side} branch")
            elif isinstance(one, ir.Expr) and isinstance(two, ir.Expr):
                wanted = self.declared.get(name)
                t = unify(one.type, two.type)
                if wanted is not None and (t is None or not is_subtype(t, wanted)):
                    t = wanted
                if t is None:
                    self.scopes[-1][name] = Missing(
                        f"Type mismatch: {name} is set to type {one.type} in the true branch and type {two.type} in the "
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
        """What a loop goes over."""
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
        inner = [self.iterable(a) for a in node.args]
        if word == "reversed":
            (one,) = inner
            if not isinstance(one, Parts):
                self.fail(node, "reversed() is for modules and tuples; of a list take x[::-1]", NotSupportedError)
            assert isinstance(one, Parts)
            return Parts(one.items[::-1])
        if word == "enumerate":
            start: Any = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords), None)
            inner = [self.iterable(node.args[0])]
            first = inner[0]
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
        """The elements of what is zipped with modules."""
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
                    f"Previous return statement returned a value of type {self.returned} but this return statement returns "
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
                owner = self.expr(target.value)
                out.append(ir.Do(self.op("aten::Delete", [owner, self.expr(target.slice)], {}, node), node.lineno))
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
        """A bool, and what is known of variables where it is true, and where it is false."""
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
        none, rest = self._narrowed(left, [NONE]), self._narrowed(left, [t for t in choices(a.type) if t is not NONE])
        if a.type is ANY:
            return op, {}, {}
        return (op, none, rest) if positive else (op, rest, none)

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
        yes = [t for t in given if any(_is_kind(t, w) for w in wanted)]
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

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expr(self, node: ast.expr, hint: Type | None = None) -> ir.Expr:
        """The value of an expression."""
        return self.value(self.emit(node, hint), node)

    def value(self, value: Value, node: ast.AST) -> ir.Expr:
        """What was emitted, as a value."""
        if isinstance(value, ir.Expr):
            if isinstance(value, ir.Iterate):
                return self.list_of_iterable(value)
            return value
        if isinstance(value, Missing):
            self.fail(node, value.why)
        if isinstance(value, Parts):
            return self.tuple_of_items([self.value(i, node) for i in value.items])
        if isinstance(value, FunctionRef):
            return ir.Const(value.function, FunctionType(value.function))
        if isinstance(value, Method):
            self.fail(node, f"method '{value.name}' must be called")
        return self.as_expression(value, node)

    def list_of_iterable(self, over: ir.Iterate) -> ir.Expr:
        """``list(range(n))`` and its kin."""
        variable = self.new_variable(f"_item{self.places}", over.type.element)
        return ir.Comprehension([variable], over, None, None, variable, over.type)

    def tuple_of_items(self, items: list[ir.Expr]) -> ir.Expr:
        """A tuple of values."""
        return ir.MakeTuple(items, tuple_of(*[i.type for i in items]))

    def emit(self, node: ast.expr, hint: Type | None = None) -> Value:
        """An expression, or what stands in its place."""
        method = _EXPRESSIONS.get(type(node))
        if method is None:
            unsupported(self.source, node)
        assert method is not None
        return method(self, node, hint)

    def _name(self, node: ast.Name, hint: Type | None) -> Value:
        found = self.lookup(node.id)
        if isinstance(found, Missing):
            self.fail(node, found.why)
        if found is None:
            found = self.global_name(node.id, node)
        if found is None:
            self.fail(node, f"undefined value {node.id}")
        return found

    def _constant(self, node: ast.Constant, hint: Type | None) -> Value:
        value = node.value
        if value is Ellipsis:
            self.fail(node, "... stands in subscripts only")
        if type(value) not in (int, float, bool, str, complex, type(None)):
            self.fail(node, f"constants of type {type(value).__name__} aren't supported", NotSupportedError)
        if type(value) is int and not -(2**63) <= value < 2**64:
            self.fail(node, f"{value} does not fit 64 bits")
        return ir.Const(value, type_of(value))

    def _attribute(self, node: ast.Attribute, hint: Type | None) -> Value:
        return self.attribute(self.emit(node.value), node.attr, node)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """``value.name``."""
        if isinstance(value, TypeRef):
            if isinstance(value.type, EnumType) and name in value.type.members:
                return ir.Const(value.type.members[name], value.type)
            if isinstance(value.type, ClassType) and value.type.method(name) is not None:
                return FunctionRef(value.type.method(name))
            found = self.attribute_of(value, name, node)
            return found if found is not None else self.fail(node, f"'{value.type}' has no attribute '{name}'")
        if isinstance(value, (Missing, Parts, Method)):
            if isinstance(value, Parts):
                return self.attribute(self.value(value, node), name, node)
            self.value(value, node)
        if isinstance(value, Sugar):
            return self.attribute_of(value, name, node)
        return self._attribute_of_value(value, name, node)

    def _attribute_of_value(self, value: ir.Expr, name: str, node: ast.AST) -> Value:
        t = value.type
        if isinstance(t, ClassType):
            found = self._class_attribute(value, t, name, node)
            if found is not None:
                return found
            self.fail(node, f"{'Module' if t.is_module else 'Class'} '{t.short}' has no attribute '{name}'")
        if isinstance(t, InterfaceType):
            if name in t.methods:
                return Method(value, name)
            self.fail(node, f"interface '{t.short}' has no method '{name}'")
        if isinstance(t, NamedTupleType):
            if name in t.fields:
                i = t.fields.index(name)
                return ir.TupleItem(value, i, t.args[i])
            return Method(value, name)
        if isinstance(t, EnumType):
            if name == "name":
                return self.op_of_any("prim::EnumName", [value], STR)
            if name == "value":
                return self.op_of_any("prim::EnumValue", [value], t.value_type)
            self.fail(node, f"enum '{t.short}' has no attribute '{name}'")
        if t == TENSOR and name in PROPERTIES:
            return self.op(PROPERTIES[name], [value], {}, node)
        if t is DEVICE and name in ("type", "index"):
            return self.op(f"prim::{name}", [value], {}, node)
        if t is COMPLEX and name in ("real", "imag"):
            return self.op(f"aten::{name}", [value], {}, node)
        return Method(value, name)

    def _class_attribute(self, value: ir.Expr, t: ClassType, name: str, node: ast.AST) -> Value:
        if name in t.attributes:
            return ir.GetAttr(value, name, t.attributes[name])
        if name in t.constants:
            return self.constant(t.constants[name], node)
        if t.is_module and name == "training":
            return ir.GetAttr(value, name, BOOL)
        if t.method(name) is not None:
            return Method(value, name)
        return self.module_attribute(value, t, name, node)

    def constant(self, value: Any, node: ast.AST) -> Value:
        """A value that is known when the function is compiled."""
        if isinstance(value, Sugar):
            return value
        if isinstance(value, (tuple, list)) and not isinstance(value, tuple(_SCALAR)):
            items = [self.value(self.constant(v, node), node) for v in value]
            if isinstance(value, tuple):
                return self.tuple_of_items(items)
            return ir.MakeList(items, type_of(value))
        try:
            return ir.Const(value, type_of(value))
        except TypeError as error:
            self.fail(node, str(error))

    def op_of_any(self, qualified: str, args: list[ir.Expr], result: Type) -> ir.Expr:
        """A call of the op's first signature, whatever its arguments are."""
        schema = schemas.overloads(qualified)[0]
        return ir.Op(schema, list(args), result)

    # ---- calls ------------------------------------------------------------------------------------------------------
    def _call(self, node: ast.Call, hint: Type | None) -> Value:
        callee = self.emit(node.func)
        if isinstance(callee, Form):
            return self.form(callee.name, node, hint)
        if isinstance(callee, TypeRef):
            return self.construct(callee.type, node, hint)
        if isinstance(callee, (OpName, Method, FunctionRef, ir.Expr)):
            return self.apply(callee, *self.arguments(node, callee), node)
        return self.call_other(callee, node, hint)

    def arguments(self, node: ast.Call, callee: Any = None) -> tuple[list[ir.Expr], dict[str, ir.Expr]]:
        """The values of a call's arguments."""
        wanted = self._hints(callee)
        args: list[ir.Expr] = []
        for i, a in enumerate(node.args):
            if isinstance(a, ast.Starred):
                value = self.emit(a.value)
                parts = self.parts(value, a)
                if parts is None:
                    self.fail(a, "only tuples, whose length is known, are spread out with *")
                args += [self.value(p, a) for p in parts or ()]
            else:
                args.append(self.expr(a, wanted[i] if i < len(wanted) else None))
        by_name = dict(zip(self._hint_names(callee), wanted, strict=False))
        keywords = {}
        for k in node.keywords:
            if k.arg is None:
                self.fail(node, "keyword arguments spread out with ** aren't supported", NotSupportedError)
            assert k.arg is not None
            keywords[k.arg] = self.expr(k.value, by_name.get(k.arg))
        return args, keywords

    def _hints(self, callee: Any) -> list[Type]:
        return [p.type for p in self._hinting(callee)]

    def _hint_names(self, callee: Any) -> list[str]:
        return [p.name for p in self._hinting(callee)]

    def _hinting(self, callee: Any) -> list[Parameter]:
        """The parameters of what is called, where they are known."""
        if isinstance(callee, FunctionRef):
            return callee.function.parameters
        if isinstance(callee, ir.Expr) and isinstance(callee.type, FunctionType):
            return callee.type.function.parameters
        target, name = (callee.object, callee.name) if isinstance(callee, Method) else (callee, "forward")
        if isinstance(target, ir.Expr) and isinstance(target.type, ClassType):
            method = target.type.method(name)
            if isinstance(method, ir.Function):
                return method.parameters[1:]
        return []

    def apply(self, callee: Value, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> Value:
        """A call with values."""
        if isinstance(callee, OpName):
            first = [] if callee.first is None else [callee.first]
            return self.op(callee.qualified, [*first, *args], keywords, node)
        if isinstance(callee, FunctionRef):
            return self.call_function(callee.function, args, keywords, node)
        if isinstance(callee, Method):
            return self.call_method(callee.object, callee.name, args, keywords, node)
        t = callee.type
        if isinstance(t, FunctionType):
            return self.call_function(t.function, args, keywords, node)
        if isinstance(t, ClassType):
            name = "forward" if t.is_module else "__call__"
            return self.call_method(callee, name, args, keywords, node)
        if isinstance(t, InterfaceType):
            return self.call_method(callee, "forward", args, keywords, node)
        self.fail(node, f"a value of type '{t}' cannot be called")

    def call_function(self, function: ir.Function, args: list, keywords: dict, node: ast.AST) -> ir.Expr:
        """A call of a function that is compiled."""
        bound = self.bound(function.parameters, args, keywords, function.name, node)
        return ir.Call(function, bound, function.result)

    def bound(self, parameters: list[Parameter], args: list, keywords: dict, name: str, node: ast.AST) -> list[ir.Expr]:
        """One value for each parameter."""
        try:
            sources, _ = schemas.bind(
                parameters, [a.type for a in args], {k: v.type for k, v in keywords.items()}, True
            )
        except NoMatch as error:
            shown = ", ".join(f"{p.type} {p.name}" for p in parameters)
            self.fail(node, f"{name}({shown}): {error}")
        out: list[ir.Expr] = []
        for p, (source, how) in zip(parameters, sources, strict=True):
            if source is None:
                out.append(ir.Const(p.default, p.type))
            else:
                given = args[source] if isinstance(source, int) else keywords[source]
                out.append(self.changed(given, how, p, args, source, node))
        return out

    def changed(self, given: ir.Expr, how: str, p: Parameter, args: list, source: Any, node: ast.AST) -> ir.Expr:
        """An argument as the parameter takes it."""
        if how == WRAP_INT:
            inner = p.type.element if p.type.name == "Optional" else p.type
            return ir.MakeList([given] * p.broadcast, inner)
        if how == SPREAD:
            return ir.MakeList(args[source:], list_of(INT))
        if how == TO_LIST:
            whole: list[ir.Expr] = [ir.TupleItem(given, i, t) for i, t in enumerate(given.type.args)]
            if isinstance(given, ir.MakeTuple):
                whole = list(given.items)
            inner = p.type.element if p.type.name == "Optional" else p.type
            return ir.MakeList(whole, inner if not schemas.has_var(inner) else list_of(given.type.args[0]))
        if how == IMPLICIT:
            return self.implicit(given, p.type, node)
        return given

    def implicit(self, given: ir.Expr, wanted: Type, node: ast.AST) -> ir.Expr:
        """The conversions that need not be spelled."""
        if wanted.name == "Optional":
            wanted = wanted.element
        if given.type == TENSOR:
            name = {INT: "IntImplicit", FLOAT: "FloatImplicit", BOOL: "Bool"}.get(wanted, "ScalarImplicit")
            return self.op(f"aten::{name}", [given], {}, node)
        if wanted is DEVICE:
            return (
                self.op("aten::device", [given], {}, node) if not isinstance(given, ir.Const) else _device(given.value)
            )
        if wanted is FLOAT:
            return self.op("aten::Float", [given], {}, node)
        return self.op("aten::Int", [given], {}, node)

    def call_method(self, target: ir.Expr, name: str, args: list, keywords: dict, node: ast.AST) -> Value:
        """``target.name(...)``."""
        t = target.type
        if isinstance(t, ClassType):
            method = t.method(name)
            if method is None:
                attribute = self._class_attribute(target, t, name, node)
                if attribute is None:
                    self.fail(node, f"'{t.short}' has no method '{name}'")
                return self.apply(attribute, args, keywords, node)
            if isinstance(method, Sugar):
                return self.call_sugar_method(method, target, args, keywords, node)
            bound = self.bound(method.parameters[1:], args, keywords, name, node)
            return ir.Call(method, [target, *bound], method.result)
        if isinstance(t, InterfaceType):
            if name not in t.methods:
                self.fail(node, f"interface '{t.short}' has no method '{name}'")
            parameters, result = t.methods[name]
            return ir.Invoke(target, name, self.bound(parameters, args, keywords, name, node), result)
        if t.name in ("Optional", "Union"):
            self.fail(node, f"'{t}' has no method '{name}'; check first whether it is None")
        if t == TENSOR and name == "tolist":
            return self.op_of_any("prim::tolist", [target], ANY)
        if t.name == "Future" and name == "wait":
            return self.op("aten::wait", [target], {}, node)
        for qualified in (f"aten::{name}", f"prim::{name}"):
            if schemas.overloads(qualified):
                return self.op(qualified, [target, *args], keywords, node)
        self.fail(node, f"'{t}' object has no attribute or method '{name}'")

    def call_sugar_method(self, method: Sugar, target: ir.Expr, args: list, keywords: dict, node: ast.AST) -> Value:
        """A method that is no compiled function."""
        self.fail(node, "this method cannot be called here")

    def op(self, qualified: str, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> ir.Expr:
        """A call of the op whose signature fits best."""
        found = self.find_overload(qualified, args, keywords)
        if isinstance(found, list):
            if "out" in keywords:  # computed apart, and stored
                rest = {k: v for k, v in keywords.items() if k != "out"}
                return self.op("prim::StoreOut", [keywords["out"], self.op(qualified, args, rest, node)], {}, node)
            if qualified == "aten::__contains__" and len(args) == 2:
                container = args[0].type
                element = container.args[0] if container.name in ("List", "Dict") else container
                if (container is STR or container.args) and is_subtype(args[1].type, element):
                    return ir.Op(schemas.overloads(qualified)[0], list(args), BOOL)
            if qualified in ("aten::eq", "aten::ne") and len(args) == 2 and TENSOR not in (args[0].type, args[1].type):
                if unify(args[0].type, args[1].type) is not None or NUMBER in (args[0].type, args[1].type):
                    return self.generic_equal(args[0], args[1], qualified, node)
            given = ", ".join([str(a.type) for a in args] + [f"{v.type} {k}" for k, v in keywords.items()])
            tried = "\n".join(f"  {text}\n    {why}" for text, why in found[:8])
            if not found:
                self.fail(
                    node,
                    f"Unknown builtin op: {qualified}",
                    NotSupportedError if "::" not in qualified else RuntimeError,
                )
            self.fail(
                node,
                f"Arguments for call are not valid: {qualified}({given}). The following variants are available:\n{tried}",
            )
        assert isinstance(found, tuple)
        schema, sources, types = found
        made: list[ir.Expr | None] = []
        used: set[int] = set()
        for p, (source, how) in zip(schema.parameters, sources, strict=True):
            if source is None:
                made.append(None)
                continue
            given_arg = args[source] if isinstance(source, int) else keywords[source]
            if isinstance(source, int):
                used.add(source)
            made.append(self.changed(given_arg, how, p, args, source, node))
        more = [a for i, a in enumerate(args) if i not in used] if schema.variadic else []
        try:
            return ir.Op(schema, made, schemas.fill(schema.result, types), more)
        except NoMatch as error:
            self.fail(node, f"{schema}: {error}")
            raise AssertionError from None

    def find_overload(self, qualified: str, args: list[ir.Expr], keywords: dict[str, ir.Expr]) -> Any:
        """``(schema, sources, open types)`` of the best signature, or a list of what was tried and why it does not fit."""
        given, named = [a.type for a in args], {k: v.type for k, v in keywords.items()}
        candidates = [*schemas.overloads(qualified)]
        if qualified == "aten::floordiv":
            candidates += schemas.overloads("aten::floor_divide")
        elif qualified == "aten::remainder" and given and given[0] is STR:
            candidates = [*schemas.overloads("aten::percentFormat")]
        failed: list[tuple[Schema, str]] = []
        for implicit in (False, True):
            best, cost = None, 10**9
            for schema in candidates:
                try:
                    sources, types = schemas.bind(schema.parameters, given, named, implicit, schema.variadic)
                except NoMatch as error:
                    failed.append((schema, str(error)))
                    continue
                this = _cost(schema, sources, given, named)
                if this < cost:
                    best, cost = (schema, sources, types), this
            if best is not None:
                return best
        return failed

    # ---- functions of the language ----------------------------------------------------------------------------------
    def form(self, name: str, node: ast.Call, hint: Type | None) -> Value:
        """A call of a function of the language."""
        method = _FORMS.get(name)
        if method is not None:
            return method(self, node, hint)
        if name in ("range", "enumerate", "zip", "reversed"):
            return self._iterable_form(name, node)
        if name in CASTS:
            return self._cast(name, node)
        if name in ("min", "max") and len(node.args) > 2:
            whole = self.expr(node.args[0])
            for a in node.args[1:]:
                whole = self.op(f"prim::{name}", [whole, self.expr(a)], {}, node)
            return whole
        if name == "len":
            return self._len(node)
        args, keywords = self.arguments(node)
        if name in ("abs", "round", "sum", "min", "max", "pow") and args and isinstance(args[0].type, ClassType):
            method_name = f"__{name}__"
            return self.call_method(args[0], method_name, args[1:], keywords, node)
        qualified = FUNCTIONS[name]
        if args and args[0].type == TENSOR and qualified.startswith("prim::") and name in ("min", "max"):
            qualified = f"aten::{name}"
        return self.op(qualified, args, keywords, node)

    def _len(self, node: ast.Call) -> Value:
        value = self.emit(node.args[0])
        parts = self.parts(value, node)
        if parts is not None:
            return _int(len(parts))
        value = self.value(value, node)
        if isinstance(value.type, ClassType):
            return self.call_method(value, "__len__", [], {}, node)
        return self.op("aten::len", [value], {}, node)

    def _cast(self, name: str, node: ast.Call) -> ir.Expr:
        op, t = CASTS[name]
        if not node.args:
            return ir.Const((t is BOOL and False) or {INT: 0, FLOAT: 0.0}.get(t, False), t)
        value = self.expr(node.args[0])
        if value.type is t:
            return value
        if isinstance(value.type, ClassType):
            return self.call_method(value, f"__{name}__", [], {}, node)
        if value.type.name == "Optional":
            self.fail(node, f"Could not cast value of type {value.type} to {name}")
        return self.op(op, [value], {}, node)

    def _form_annotate(self, node: ast.Call, hint: Type | None) -> Value:
        if len(node.args) != 2:
            self.fail(node, f"annotate expected 2 arguments, got {len(node.args)}")
        wanted = self.annotation(node.args[0])
        return self.coerce(self.expr(node.args[1], wanted), wanted, node, "annotate")

    def _form_unchecked_cast(self, node: ast.Call, hint: Type | None) -> Value:
        wanted = self.annotation(node.args[0])
        return ir.Cast(self.expr(node.args[1]), wanted, "unchecked_cast")

    def _form_uninitialized(self, node: ast.Call, hint: Type | None) -> Value:
        return ir.Cast(ir.Const(None, NONE), self.annotation(node.args[0]), "uninitialized")

    def _form_str(self, node: ast.Call, hint: Type | None) -> Value:
        value = self.expr(node.args[0]) if node.args else ir.Const("", STR)
        if isinstance(value.type, ClassType):
            return self.call_method(value, "__str__", [], {}, node)
        return value if value.type is STR else self.op("aten::str", [value], {}, node)

    def _form_complex(self, node: ast.Call, hint: Type | None) -> Value:
        return self.op("aten::Complex", [self.expr(a) for a in node.args], {}, node)

    def _form_isinstance(self, node: ast.Call, hint: Type | None) -> Value:
        return self._isinstance(node)[0]

    def _form_getattr(self, node: ast.Call, hint: Type | None) -> Value:
        name = node.args[1]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            self.fail(node, "getattr's second argument must be a string literal")
        assert isinstance(name, ast.Constant)
        owner = self.emit(node.args[0])
        if len(node.args) == 3 and not self.has_attribute(owner, str(name.value), node):
            return self.emit(node.args[2])
        return self.attribute(owner, str(name.value), node)

    def has_attribute(self, value: Value, name: str, node: ast.AST) -> bool:
        """Whether ``value.name`` is known."""
        if isinstance(value, ir.Expr) and isinstance(value.type, ClassType):
            try:
                return self._class_attribute(value, value.type, name, node) is not None
            except RuntimeError:
                return False
        if isinstance(value, ir.Expr) and isinstance(value.type, NamedTupleType):
            return name in value.type.fields
        return (
            isinstance(value, ir.Expr)
            and value.type == TENSOR
            and (name in PROPERTIES or bool(schemas.overloads(f"aten::{name}")))
        )

    def _form_hasattr(self, node: ast.Call, hint: Type | None) -> Value:
        name = node.args[1]
        if not isinstance(name, ast.Constant):
            self.fail(node, "hasattr's second argument must be a string literal")
        assert isinstance(name, ast.Constant)
        return ir.Const(self.has_attribute(self.emit(node.args[0]), str(name.value), node), BOOL)

    def _form_list(self, node: ast.Call, hint: Type | None) -> Value:
        if not node.args:
            return ir.MakeList([], hint if hint is not None and hint.name == "List" else list_of(TENSOR))
        over = self.iterable(node.args[0])
        if isinstance(over, Parts):
            return self.list_literal([self.value(i, node) for i in over.items], None, node)
        return self.list_of_iterable(over) if over.word else self.op("aten::list", self._listed(over, node), {}, node)

    def _listed(self, over: ir.Iterate, node: ast.AST) -> list[ir.Expr]:
        (whole,) = over.parts
        return [self.op("aten::keys", [whole], {}, node) if whole.type.name == "Dict" else whole]

    def _form_dict(self, node: ast.Call, hint: Type | None) -> Value:
        wanted = hint if hint is not None and hint.name == "Dict" else None
        if not node.args:
            keys: list[ir.Expr] = [ir.Const(k.arg, STR) for k in node.keywords]
            return self._dict_of(keys, [self.expr(k.value) for k in node.keywords], wanted, node)
        if isinstance(node.args[0], ast.Dict):
            return self.emit(node.args[0], wanted)
        return self.op("aten::dict", [self.expr(node.args[0])], {}, node)

    def _form_tuple(self, node: ast.Call, hint: Type | None) -> Value:
        parts = self.parts(self.emit(node.args[0]), node) if node.args else []
        if parts is None:
            self.fail(node, "only what has a known length can become a tuple")
        return Parts(list(parts or ()))

    def _form_fork(self, node: ast.Call, hint: Type | None) -> Value:
        inner = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
        call = self.value(self._call(inner, None), node)
        return ir.Fork(call, Type("Future", call.type))

    def _form_wait(self, node: ast.Call, hint: Type | None) -> Value:
        return self.op("aten::wait", [self.expr(node.args[0])], {}, node)

    def construct(self, t: Type, node: ast.Call, hint: Type | None) -> Value:
        """A call of a class."""
        if isinstance(t, EnumType):
            return self._enum_of(t, node)
        if isinstance(t, NamedTupleType):
            parameters = [Parameter(n, k, t.defaults.get(n, REQUIRED)) for n, k in zip(t.fields, t.args, strict=True)]
            args, keywords = self.arguments(node, FunctionRef(ir.Function(t.name, parameters, t)))
            return ir.MakeTuple(self.bound(parameters, args, keywords, t.short, node), t)
        if isinstance(t, ClassType) and not t.is_module:
            init = t.method("__init__")
            if init is None:
                if node.args or node.keywords:
                    self.fail(node, f"'{t.short}' takes no arguments")
                return ir.New(t, None, [])
            init.define()
            args, keywords = self.arguments(node, FunctionRef(ir.Function("__init__", init.parameters[1:], NONE)))
            return ir.New(t, init, self.bound(init.parameters[1:], args, keywords, t.short, node))
        if t is DEVICE:
            args, keywords = self.arguments(node)
            if len(args) == 1 and isinstance(args[0], ir.Const) and args[0].type is STR:
                return _device(args[0].value)
            return (
                args[0] if len(args) == 1 and args[0].type is DEVICE else self.op("aten::device", args, keywords, node)
            )
        self.fail(node, f"'{t}' cannot be made here")

    def _enum_of(self, t: EnumType, node: ast.Call) -> ir.Expr:
        value = _known(self.expr(node.args[0]))
        for member in t.members.values():
            if member.value == value:
                return ir.Const(member, t)
        self.fail(node, f"'{t.short}' has no member of that value that is known")
        raise AssertionError

    # ---- operators --------------------------------------------------------------------------------------------------
    def _bin_op(self, node: ast.BinOp, hint: Type | None) -> Value:
        if type(node.op) not in BINARY:
            unsupported(self.source, node)
        left, right = self.emit(node.left), self.emit(node.right)
        a, b = self.parts(left, node), self.parts(right, node)
        if isinstance(node.op, ast.Add) and a is not None and b is not None:
            return Parts([*a, *b])
        left = self.value(left, node)
        if isinstance(node.op, ast.Mod) and left.type is STR:
            return self.op("aten::percentFormat", [left, self.value(right, node)], {}, node)
        return self.binary(node.op, left, self.value(right, node), node)

    def binary(self, op: ast.operator, a: ir.Expr, b: ir.Expr, node: ast.AST) -> ir.Expr:
        """``a op b``."""
        name, method = BINARY[type(op)]
        if isinstance(a.type, ClassType) and a.type.method(method) is not None:
            return self.call_method(a, method, [b], {}, node)
        known, other = _known(a), _known(b)
        if type(known) is int and type(other) is int and isinstance(op, (ast.Add, ast.Sub, ast.Mult)):
            value = (
                known + other
                if isinstance(op, ast.Add)
                else known - other
                if isinstance(op, ast.Sub)
                else known * other
            )
            return _int(value)
        if (
            a.type != TENSOR
            and b.type == TENSOR
            and isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.LShift)
        ):
            if a.type in NUMBERS or a.type is NUMBER:
                if isinstance(op, ast.Sub):
                    return self.op("aten::rsub", [b, a], {}, node)
                if isinstance(op, ast.Div):
                    return self.op("aten::mul", [self.op("aten::reciprocal", [b], {}, node), a], {}, node)
        if a.type != TENSOR and b.type == TENSOR and isinstance(op, (ast.Add, ast.Mult)) and a.type is not BOOL:
            return self.op(name, [b, a], {}, node)
        return self.op(name, [a, b], {}, node)

    def _unary_op(self, node: ast.UnaryOp, hint: Type | None) -> Value:
        if isinstance(node.op, ast.Not):
            return self.condition(node)[0]
        value = self.expr(node.operand)
        known = _known(value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            return self.op("aten::bitwise_not", [value], {}, node)
        if type(known) in (int, float, complex):
            return ir.Const(-known, value.type)
        if isinstance(value.type, ClassType):
            return self.call_method(value, "__neg__", [], {}, node)
        return self.op("aten::neg", [value], {}, node)

    def _bool(self, node: ast.BoolOp, hint: Type | None) -> Value:
        return self._bool_op(node)[0]

    def _compare(self, node: ast.Compare, hint: Type | None) -> Value:
        whole: ir.Expr | None = None
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            one = self._compare_two(op, left, right, node)
            if whole is None:
                whole = one
            elif whole.type == TENSOR or one.type == TENSOR:
                whole = self.op("aten::__and__", [whole, one], {}, node)
            else:
                whole = ir.Both(whole, one, True)
            left = right
        return whole

    def _compare_two(self, op: ast.cmpop, left: ast.expr, right: ast.expr, node: ast.AST) -> ir.Expr:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._is(left, right, isinstance(op, ast.Is), node)[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contains(left, right, isinstance(op, ast.NotIn), node)
        a, b = self.expr(left), self.expr(right)
        name, method = COMPARE[type(op)]
        if isinstance(a.type, ClassType) and a.type.method(method) is not None:
            return self.call_method(a, method, [b], {}, node)
        known, other = _known(a), _known(b)
        if type(known) is type(other) is int or (type(known) is type(other) is str):
            compare: Callable = getattr(type(known), method)
            return ir.Const(compare(known, other), BOOL)
        return self.op(name, [a, b], {}, node)

    def generic_equal(self, a: ir.Expr, b: ir.Expr, name: str, node: ast.AST) -> ir.Expr:
        """``==`` or ``!=`` of values of any types."""
        if name not in ("aten::eq", "aten::ne"):
            self.fail(node, f"values of type {a.type} and {b.type} have no order")
        schema = next((s for s in schemas.overloads(name) if s.overload in ("enum", "int")), None)
        assert schema is not None
        return ir.Op(schema, [a, b], BOOL)

    def _contains(self, left: ast.expr, right: ast.expr, negated: bool, node: ast.AST) -> ir.Expr:
        container = self.emit(right)
        key = self.expr(left)
        parts = self.parts(container, node)
        if parts is not None:
            known = [_known(p) if isinstance(p, ir.Expr) else None for p in parts]
            if _known(key) is not None and None not in known:
                return ir.Const((_known(key) in known) is not negated, BOOL)
            container = self.list_literal([self.value(p, node) for p in parts], None, node)
        container = self.value(container, node)
        if isinstance(container.type, ClassType):
            found = self.call_method(container, "__contains__", [key], {}, node)
        else:
            found = self.op("aten::__contains__", [container, key], {}, node)
        return self.op("aten::__not__", [found], {}, node) if negated else found

    def _if_exp(self, node: ast.IfExp, hint: Type | None) -> Value:
        condition, true, false = self.condition(node.test)
        known = _known(condition)
        if known is not None:
            return self._in_scope(true if known else false, node.body if known else node.orelse, hint)
        a = self.value(self._in_scope(true, node.body, hint), node)
        b = self.value(self._in_scope(false, node.orelse, hint), node)
        t = unify(a.type, b.type)
        if t is None and hint is not None:
            t = hint
        if t is None:
            self.fail(node, f"if-expression's true branch has type {a.type} but false branch has type {b.type}")
        assert t is not None
        return ir.Choose(condition, a, b, t)

    def _in_scope(self, scope: Scope, node: ast.expr, hint: Type | None) -> Value:
        self.scopes.append(dict(scope))
        try:
            return self.emit(node, hint)
        finally:
            self.scopes.pop()

    def _joined_str(self, node: ast.JoinedStr, hint: Type | None) -> Value:
        template, values = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                template += str(part.value)
                continue
            assert isinstance(part, ast.FormattedValue)
            if part.format_spec is not None or part.conversion not in (-1, 115):
                self.fail(part, "formats and conversions in f-strings aren't supported", NotSupportedError)
            template += "{}"
            values.append(self.expr(part.value))
        return self.op("aten::format", [ir.Const(template, STR), *values], {}, node)

    # ---- containers -------------------------------------------------------------------------------------------------
    def _tuple(self, node: ast.Tuple, hint: Type | None) -> Value:
        wanted: Any = hint.args if hint is not None and is_tuple(hint) and len(hint.args) == len(node.elts) else None
        if hint is not None and hint.name == "Optional":
            return self._tuple(node, hint.element)
        items: list[Value] = []
        for i, e in enumerate(node.elts):
            if isinstance(e, ast.Starred):
                parts = self.parts(self.emit(e.value), e)
                if parts is None:
                    self.fail(e, "only tuples are spread out with *")
                items += parts or ()
            else:
                items.append(self.emit(e, wanted[i] if wanted else None))
        if all(isinstance(i, ir.Expr) and not isinstance(i, ir.Iterate) for i in items):
            if wanted and hint is not None and hint.name == "Tuple":
                items = [
                    self.coerce(i, w, node, "tuple") if is_subtype(i.type, w) else i
                    for i, w in zip(items, wanted, strict=True)
                ]
            return self.tuple_of_items(items)
        return Parts(items)

    def _list(self, node: ast.List, hint: Type | None) -> Value:
        if hint is not None and hint.name in ("Optional", "Union"):
            hint = next((t for t in choices(hint) if t.name == "List"), None)
        element = hint.element if hint is not None and hint.name == "List" else None
        items = [self.emit(e, element) for e in node.elts]
        if any(isinstance(i, Sugar) and not isinstance(i, Parts) for i in items):
            return Parts(items)
        return self.list_literal([self.value(i, node) for i in items], element, node)

    def list_literal(self, items: list[ir.Expr], element: Type | None, node: ast.AST) -> ir.Expr:
        """``[items]``."""
        return ir.MakeList(*self._same([*items], element, node))

    def _same(self, items: list[ir.Expr], wanted: Type | None, node: ast.AST) -> tuple[list[ir.Expr], Type]:
        if wanted is not None and all(is_subtype(i.type, wanted) for i in items):
            return items, list_of(wanted)
        t: Type | None = items[0].type if items else wanted or TENSOR
        for i in items[1:]:
            joined = unify(t, i.type) if t is not None else None
            if joined is None:
                if {t, i.type} <= {*NUMBERS, NUMBER, BOOL}:
                    joined = NUMBER
                else:
                    self.fail(node, f"elements of a list must be of one type, got {t} and {i.type}")
            t = joined
        assert t is not None
        return items, list_of(t)

    def _dict(self, node: ast.Dict, hint: Type | None) -> Value:
        if hint is not None and hint.name == "Optional":
            hint = hint.element
        wanted = hint if hint is not None and hint.name == "Dict" else None
        if None in node.keys:
            self.fail(node, "dictionaries spread out with ** aren't supported", NotSupportedError)
        keys = [self.expr(k) for k in node.keys if k is not None]
        return self._dict_of(
            keys, [self.expr(v, wanted.args[1] if wanted else None) for v in node.values], wanted, node
        )

    def _dict_of(self, keys: list, values: list, wanted: Type | None, node: ast.AST) -> ir.Expr:
        if not keys:
            return ir.MakeDict([], [], wanted or dict_of(STR, TENSOR))
        k = self._same(keys, wanted.args[0] if wanted else None, node)[1].element
        v = self._same(values, wanted.args[1] if wanted else None, node)[1].element
        if k not in (STR, INT, FLOAT, BOOL, COMPLEX, TENSOR) and not isinstance(k, EnumType):
            self.fail(node, f"keys of dictionaries are numbers, strings or tensors, got {k}")
        return ir.MakeDict(keys, values, dict_of(k, v))

    def _comprehension(self, node: ast.ListComp | ast.DictComp, hint: Type | None) -> Value:
        if len(node.generators) != 1:
            self.fail(node, "comprehensions have one loop", NotSupportedError)
        (generator,) = node.generators
        if len(generator.ifs) > 1:
            self.fail(node, "comprehensions have one condition at most", NotSupportedError)
        over = self.iterable(generator.iter)
        if isinstance(over, Parts):
            return self._unrolled_comprehension(node, generator, over, hint)
        self.scopes.append({})
        own = _target_names(generator.target)  # its variables are its own: they get new places
        outer = {name: self.names.pop(name) for name in own if name in self.names}
        try:
            target = self._loop_target(generator.target, over.type.element, node)
            condition: ir.Expr | None = None
            narrowed: Scope = {}
            if generator.ifs:
                condition, narrowed, _ = self.condition(generator.ifs[0])
            self.scopes[-1].update(narrowed)
            key = self.expr(node.key) if isinstance(node, ast.DictComp) else None
            inner = hint.args[-1] if hint is not None and hint.name in ("List", "Dict") else None
            value = self.expr(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        finally:
            self.scopes.pop()
            for name in own:
                self.names.pop(name, None)
            self.names.update(outer)
        element = inner if inner is not None and is_subtype(value.type, inner) else value.type
        t = list_of(element) if key is None else dict_of(key.type, element)
        return ir.Comprehension(target, over, condition, key, value, t)

    def _unrolled_comprehension(self, node: Any, generator: ast.comprehension, over: Parts, hint: Type | None) -> Value:
        made: list[Value] = []
        keys: list[ir.Expr] = []
        for item in over.items:
            self.scopes.append({})
            try:
                self._bind_known(generator.target, item, node)
                if generator.ifs and not _known(self.condition(generator.ifs[0])[0]):
                    continue
                if isinstance(node, ast.DictComp):
                    keys.append(self.expr(node.key))
                made.append(self.emit(node.value if isinstance(node, ast.DictComp) else node.elt))
            finally:
                self.scopes.pop()
        values = [self.value(m, node) for m in made]
        if isinstance(node, ast.DictComp):
            return self._dict_of(keys, values, hint, node)
        return self.list_literal(values, hint.element if hint is not None and hint.name == "List" else None, node)

    def _bind_known(self, target: ast.expr, item: Value, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = item
            return
        parts = self.parts(item, node)
        if not isinstance(target, ast.Tuple) or parts is None or len(parts) != len(target.elts):
            self.fail(node, "this cannot be taken apart here")
        assert isinstance(target, ast.Tuple) and parts is not None
        for sub, part in zip(target.elts, parts, strict=True):
            self._bind_known(sub, part, node)

    # ---- subscripts -------------------------------------------------------------------------------------------------
    def _subscript(self, node: ast.Subscript, hint: Type | None) -> Value:
        value = self.emit(node.value)
        if isinstance(value, Sugar) and not isinstance(value, Parts):
            t = self.type_of_sugar(value, node)
            if t is not None or isinstance(value, TypeRef):
                return TypeRef(self.annotation(node))
        parts = self.parts(value, node)
        if parts is not None:
            return self._item_of_tuple(value, parts, node)
        value = self.value(value, node)
        t = value.type
        if t == TENSOR:
            view, indices = self.tensor_view(value, node.slice)
            return self.op("aten::index", [view, self.index_list(indices)], {}, node) if indices else view
        if isinstance(node.slice, ast.Slice) and (t.name == "List" or t is STR):
            return self.op("aten::slice", [value, *self._bounds(node.slice)], {}, node)
        if isinstance(t, ClassType):
            if t.is_module:
                found = self.module_item(value, node)
                if found is not None:
                    return found
            return self.call_method(value, "__getitem__", [self.expr(node.slice)], {}, node)
        if t.name == "Optional":
            self.fail(node, f"'{t}' object is not subscriptable; check first whether it is None")
        return self.op("aten::__getitem__", [value, self.expr(node.slice)], {}, node)

    def module_item(self, value: ir.Expr, node: ast.Subscript) -> Value:
        """A module of a container, by a key that is no number."""
        return None

    def _item_of_tuple(self, value: Value, parts: list[Value], node: ast.Subscript) -> Value:
        if isinstance(node.slice, ast.Slice):
            bounds = []
            for b in (node.slice.lower, node.slice.upper, node.slice.step):
                known = None if b is None else _known(self.expr(b))
                if b is not None and type(known) is not int:
                    self.fail(node, "tuple slices must be known integers")
                bounds.append(known)
            return Parts(parts[slice(*bounds)])
        key = self.expr(node.slice)
        i = _known(key)
        if type(i) is str or key.type is STR:
            found = self.module_item(self.value(value, node), node) if isinstance(value, ir.Expr) else None
            return found if found is not None else self.fail(node, "tuples have no keys")
        if type(i) is not int:
            found = self.module_item(value, node) if isinstance(value, ir.Expr) and not is_tuple(value.type) else None
            if found is not None:
                return found
            if parts and len({self.value(p, node).type for p in parts}) == 1 and not _is_module(parts[0]):
                whole = self.list_literal([self.value(p, node) for p in parts], None, node)
                return self.op("aten::__getitem__", [whole, key], {}, node)
            self.fail(node, "tuple index must be a compile-time integer, or all elements of one type")
        assert type(i) is int
        if not -len(parts) <= i < len(parts):
            self.fail(node, f"Tuple index out of range: it has {len(parts)} elements, the index is {i}")
        if isinstance(value, ir.Expr) and is_tuple(value.type):
            return ir.TupleItem(value, i % len(parts), value.type.args[i])
        return parts[i]

    def _bounds(self, node: ast.Slice) -> list[ir.Expr]:
        out = [ir.Const(None, NONE) if b is None else self.expr(b) for b in (node.lower, node.upper)]
        return [*out, _int(1) if node.step is None else self.expr(node.step)]

    def tensor_view(self, value: ir.Expr, node: ast.expr) -> tuple[ir.Expr, list[ir.Expr | None]]:
        """``value[node]`` as a view by slices and single numbers, and the tensors that index what is left."""
        parts = list(node.elts) if isinstance(node, ast.Tuple) else [node]
        spec: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis):
                spec.append(part)
                continue
            one = self.emit(part)
            known = self.parts(one, part)
            if known is not None and isinstance(node, ast.Tuple) is False:
                spec += [self.value(k, part) for k in known]
            else:
                spec.append(self.value(one, part))
        after = 0  # dimensions from the end that what follows an ellipsis takes
        dim = 0
        indices: list[ir.Expr | None] = []
        dots = next((i for i, p in enumerate(spec) if isinstance(p, ast.Constant)), -1)
        if dots >= 0:
            after = sum(not (isinstance(p, ir.Expr) and p.type is NONE) for p in spec[dots + 1 :])
            tail = spec[dots + 1 :]
            if any(isinstance(p, ir.Expr) and p.type not in (INT, NONE) for p in spec):
                self.fail(node, "... together with tensors as indices isn't supported", NotSupportedError)
            for head in spec[:dots]:
                value, dim = self._one_index(value, head, dim, node)
            rest = after
            for one in tail:
                if isinstance(one, ir.Expr) and one.type is NONE:
                    value = self.op("aten::unsqueeze", [value, _int(-rest - 1)], {}, node)
                    continue
                if isinstance(one, ir.Expr):
                    value = self.op("aten::select", [value, _int(-rest), one], {}, node)
                else:
                    value = self.op("aten::slice", [value, _int(-rest), *self._bounds(one)], {}, node)
                rest -= 1
            return value, []
        for p in spec:
            if isinstance(p, ir.Expr) and p.type not in (INT, NONE):
                if p.type is BOOL:
                    self.fail(node, "a bool is no index")
                if p.type.name == "List":
                    p = self.op("aten::tensor", [p], {}, node)
                if p.type != TENSOR:
                    self.fail(
                        node,
                        f"Unsupported operation: indexing tensor with unsupported index type '{p.type}'. Only ints, "
                        "slices, lists and tensors are supported",
                    )
                indices += [None] * (dim - len(indices)) + [p]
                dim += 1
            else:
                value, dim = self._one_index(value, p, dim, node)
        return value, indices

    def _one_index(self, value: ir.Expr, p: Any, dim: int, node: ast.AST) -> tuple[ir.Expr, int]:
        if isinstance(p, ast.Slice):
            return self.op("aten::slice", [value, _int(dim), *self._bounds(p)], {}, node), dim + 1
        if p.type is NONE:
            return self.op("aten::unsqueeze", [value, _int(dim)], {}, node), dim + 1
        return self.op("aten::select", [value, _int(dim), p], {}, node), dim

    def index_list(self, indices: list[ir.Expr | None]) -> ir.Expr:
        """The tensors of an index, as the op takes them."""
        if None not in indices:
            return ir.MakeList([i for i in indices if i is not None], list_of(TENSOR))
        items = [ir.Const(None, NONE) if i is None else i for i in indices]
        return ir.MakeList(items, list_of(optional(TENSOR)))

    def _set_item(self, target: ast.Subscript, value: ir.Expr, node: ast.stmt, out: list) -> None:
        owner = self.expr(target.value)
        if isinstance(owner.type, ClassType):
            call = self.call_method(owner, "__setitem__", [self.expr(target.slice), value], {}, node)
            out.append(ir.Do(call, node.lineno))
            return
        if owner.type == TENSOR:
            view, indices = self.tensor_view(owner, target.slice)
            self._store_item(view, indices, value, node, out)
            return
        if isinstance(target.slice, ast.Slice):
            self.fail(node, "slices of lists cannot be assigned", NotSupportedError)
        if owner.type.name in ("List", "Dict"):
            value = self.coerce(value, owner.type.args[-1], node, "the element")
        out.append(ir.Do(self.op("aten::_set_item", [owner, self.expr(target.slice), value], {}, node), node.lineno))

    def _store_item(self, view: ir.Expr, indices: list, value: ir.Expr, node: ast.stmt, out: list) -> None:
        if value.type != TENSOR:
            dtype, device = self.op("prim::dtype", [view], {}, node), self.op("prim::device", [view], {}, node)
            value = self.op("aten::tensor", [value], {"dtype": dtype, "device": device}, node)
        if indices:
            call = self.op("aten::index_put_", [view, self.index_list(indices), value], {}, node)
        else:
            call = self.op("aten::copy_", [view, value], {}, node)
        out.append(ir.Do(call, node.lineno))

    # ---- types ------------------------------------------------------------------------------------------------------
    def coerce(self, value: ir.Expr, wanted: Type, node: ast.AST, what: str, text: str = "") -> ir.Expr:
        """``value`` as one of type ``wanted``."""
        given = value.type
        if is_subtype(given, wanted):
            return value if given == wanted else ir.Cast(value, wanted)
        if given is ANY and wanted is not ANY and isinstance(value, ir.Op) and value.schema.name == "tolist":
            return ir.Cast(value, wanted, "tolist")
        inner = wanted.element if wanted.name == "Optional" else wanted
        how = schemas.match_type(inner, given, {}, True)
        if how == IMPLICIT:
            return self.implicit(value, inner, node)
        if how == TO_LIST:
            return self.changed(value, how, Parameter("", inner), [], 0, node)
        if isinstance(value, ir.MakeList) and not value.items and inner.name == "List":
            return ir.MakeList([], inner)
        if isinstance(value, ir.MakeDict) and not value.keys and inner.name == "Dict":
            return ir.MakeDict([], [], inner)
        if isinstance(value, ir.MakeTuple) and inner.name == "Tuple" and len(inner.args) == len(value.items):
            items = [self.coerce(v, t, node, what, text) for v, t in zip(value.items, inner.args, strict=True)]
            return ir.MakeTuple(items, inner)
        if isinstance(inner, NamedTupleType) and given.name == "Tuple" and len(inner.args) == len(given.args):
            if all(map(is_subtype, given.args, inner.args)):
                return ir.MakeTuple([ir.TupleItem(value, i, t) for i, t in enumerate(given.args)], inner)
        if text:
            self.fail(node, text.format(wanted, given))
        self.fail(node, f"Expected a value of type '{wanted}' for {what} but instead found type '{given}'")
        raise AssertionError

    def annotation(self, node: ast.expr | None) -> Type:
        """The type that an annotation means."""
        if node is None:
            return TENSOR
        if isinstance(node, ast.Constant):
            if node.value is None:
                return NONE
            if isinstance(node.value, str):
                try:
                    return self.annotation(ast.parse(node.value, mode="eval").body)
                except SyntaxError:
                    self.fail(node, f"{node.value!r} is no type")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union([self.annotation(node.left), self.annotation(node.right)])
        if isinstance(node, ast.Subscript):
            name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            return self._generic(name, node)
        if isinstance(node, ast.Name):
            if node.id in PLAIN:
                return PLAIN[node.id]
            if node.id in ("Layout", "MemoryFormat", "Dtype"):
                return INT
        found = self.emit(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if isinstance(found, TypeRef):
            return found.type
        if isinstance(found, Form) and found.name in PLAIN:
            return PLAIN[found.name]
        t = self.type_of_sugar(found, node) if isinstance(found, Sugar) else None
        if t is None:
            self.fail(node, f"Unknown type name '{ast.unparse(node)}'")
        assert t is not None
        return t

    def _generic(self, name: str, node: ast.Subscript) -> Type:
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in ("Tuple", "tuple"):
            return tuple_of(*[self.annotation(a) for a in inner])
        args = [self.annotation(a) for a in inner if not isinstance(a, ast.List)]
        if name in ("List", "list") and len(args) == 1:
            return list_of(args[0])
        if name in ("Dict", "dict") and len(args) == 2:
            return dict_of(*args)
        if name == "Optional" and len(args) == 1:
            return optional(args[0])
        if name == "Union":
            return union(args)
        if name in ("Final", "Annotated", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3") and args:
            return args[0] if name in ("Final", "Annotated") else list_of(args[0])
        if name in ("Future", "RRef", "Await") and len(args) == 1:
            return Type("Future", args[0])
        self.fail(node, f"Unknown type constructor {name or ast.unparse(node)}")
        raise AssertionError


_SCALAR = (str,)


def _known(value: Any) -> Any:
    """The value of a constant; None where it is none."""
    return value.value if isinstance(value, ir.Const) else None


def _int(value: int) -> ir.Const:
    return ir.Const(value, INT)


def _device(text: str) -> ir.Const:
    return ir.Const(device(text), DEVICE)


def _is_module(value: Any) -> bool:
    return isinstance(value, ir.Expr) and isinstance(value.type, ClassType) and value.type.is_module


def _is_kind(t: Type, wanted: Type) -> bool:
    return (
        is_subtype(t, wanted)
        or (not wanted.args and wanted.name == t.name)
        or (wanted.name == "Tuple" and not wanted.args and is_tuple(t))
    )


def _load(target: ast.expr) -> ast.expr:
    """A target as what is read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


def _target_names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _in_loop(node: ast.AST, outer: ast.For) -> bool:
    """Whether ``node`` is within a loop that is within ``outer``."""
    for inner in ast.walk(ast.Module(outer.body, [])):
        if isinstance(inner, (ast.For, ast.While)) and any(n is node for n in ast.walk(inner)):
            return True
    return False


def _cost(schema: Schema, sources: list, given: list[Type], named: dict[str, Type]) -> int:
    """How far the arguments are from a signature: 0 where all are just what it says."""
    cost = 0
    for p, (source, how) in zip(schema.parameters, sources, strict=True):
        if source is None:
            continue
        t = given[source] if isinstance(source, int) else named[source]
        wanted = p.type.element if p.type.name == "Optional" and t.name != "Optional" else p.type
        if how == SPREAD:
            continue
        if wanted is ANY:
            cost += 4
        elif wanted != t:
            cost += 2 + (wanted is NUMBER) + 4 * (how == IMPLICIT)
    return cost + 3 * schema.variadic


_STATEMENTS = {
    ast.Pass, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Break, ast.Continue,
    ast.Return, ast.Raise, ast.Assert, ast.Delete, ast.With,
}  # fmt: skip
_EXPRESSIONS: dict[type, Callable] = {
    ast.Name: Frontend._name, ast.Constant: Frontend._constant, ast.Attribute: Frontend._attribute,
    ast.Call: Frontend._call, ast.BinOp: Frontend._bin_op, ast.UnaryOp: Frontend._unary_op, ast.BoolOp: Frontend._bool,
    ast.Compare: Frontend._compare, ast.IfExp: Frontend._if_exp, ast.JoinedStr: Frontend._joined_str,
    ast.Tuple: Frontend._tuple, ast.List: Frontend._list, ast.Dict: Frontend._dict,
    ast.ListComp: Frontend._comprehension, ast.DictComp: Frontend._comprehension, ast.Subscript: Frontend._subscript,
}  # fmt: skip
_FORMS: dict[str, Callable] = {
    name: getattr(Frontend, f"_form_{name}")
    for name in (
        "annotate unchecked_cast uninitialized str complex isinstance getattr hasattr list dict tuple fork wait"
    ).split()
}
#: All names of the language itself.
FORM_NAMES = frozenset([*_FORMS, *FUNCTIONS, *CASTS, "range", "enumerate", "zip", "reversed"])

__all__ = [
    "FORM_NAMES",
    "Form",
    "Frontend",
    "FrontendError",
    "FunctionRef",
    "Method",
    "NotSupportedError",
    "OpName",
    "Parts",
    "Sugar",
    "TypeRef",
    "UnsupportedNodeError",
]
