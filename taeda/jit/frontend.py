"""From syntax to typed expressions and statements: one front end for scripts and for the code in archives.

Subclasses look up names (:mod:`.script`, :mod:`.archive`). This module has the language's rules: types, narrowing of
Optionals, which branches are taken, indexing, overloads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from . import ir, schemas
from .calls import Calls
from .errors import CompileError, FrontendError, NotSupportedError, Source, UnsupportedNodeError, unsupported
from .operators import Operators
from .schemas import IMPLICIT, TO_LIST
from .statements import Statements
from .sugar import (
    _SCALAR,
    FORM_NAMES,
    PROPERTIES,
    Form,
    FunctionRef,
    Method,
    Missing,
    OpName,
    Parts,
    Scope,
    Sugar,
    TypeRef,
    Value,
    _is_module,
)  # fmt: skip
from .types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    INT,
    NONE,
    PLAIN,
    STR,
    TENSOR,
    ClassType,
    EnumType,
    FunctionType,
    InterfaceType,
    NamedTupleType,
    Parameter,
    Type,
    dict_of,
    is_subtype,
    list_of,
    optional,
    tuple_of,
    type_of,
    union,
)  # fmt: skip


class Frontend(Statements, Calls, Operators):
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
        self.declared: dict[str, Type] = {}  # types of annotated variables
        self.loops = 0
        self.returned: Type | None = function.declared
        for p in function.parameters:
            self.scopes[0][p.name] = self.new_variable(p.name, p.type)

    # ---- what subclasses know ---------------------------------------------------------------------------------------
    def global_name(self, name: str, node: ast.AST) -> Value:
        """The value of a name that is no variable; None if it has no value."""
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
        """An attribute of a module that its type does not list; None if there is none."""
        return None

    def set_property(self, owner: ir.Expr, kind: ClassType, name: str, value: ir.Expr, node: ast.AST) -> Value:
        """The call of the function that sets a property of a class; None: there is none."""
        return None

    def items_of_container(self, value: ir.Expr) -> Parts | None:
        """The modules in a container, or None: it is none."""
        return None

    # ---- errors -----------------------------------------------------------------------------------------------------
    def fail(self, node: ast.AST, message: str, kind: type[Exception] = CompileError) -> Any:
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
        """The present value of a variable, or None."""
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
                            f"Variable '{name}' previously had type {outer.type} but is now being assigned to a value "
                            f"of "
                            f"type {t}",
                        )
                break
        variable = self.scopes[-1][name] = self.new_variable(name, t)
        return ir.Assign(variable, value, getattr(node, "lineno", 0))

    # ---- expressions ------------------------------------------------------------------------------------------------
    def expr(self, node: ast.expr, hint: Type | None = None) -> ir.Expr:
        """The value of an expression."""
        return self.value(self.emit(node, hint), node)

    def value(self, value: Value, node: ast.AST) -> ir.Expr:
        """The emitted expression, as a value."""
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
        return ir.MakeTuple(items, tuple_of(*[i.type for i in items]))

    def emit(self, node: ast.expr, hint: Type | None = None) -> Value:
        """The value of an expression, or an object that replaces it."""
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
        known = not isinstance(node, ast.Name) or self.lookup(node.id) or self.global_name(node.id, node)
        found = self.emit(node) if isinstance(node, (ast.Name, ast.Attribute)) and known else None
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


_EXPRESSIONS: dict[type, Callable] = {
    ast.Name: Frontend._name, ast.Constant: Frontend._constant, ast.Attribute: Frontend._attribute,
    ast.Call: Frontend._call, ast.BinOp: Frontend._bin_op, ast.UnaryOp: Frontend._unary_op, ast.BoolOp: Frontend._bool,
    ast.Compare: Frontend._compare, ast.IfExp: Frontend._if_exp, ast.JoinedStr: Frontend._joined_str,
    ast.Tuple: Frontend._tuple, ast.List: Frontend._list, ast.Dict: Frontend._dict,
    ast.ListComp: Frontend._comprehension, ast.DictComp: Frontend._comprehension, ast.Subscript: Frontend._subscript,
}  # fmt: skip

__all__ = [
    "FORM_NAMES", "Form", "Frontend", "FrontendError", "FunctionRef", "Method", "NotSupportedError", "OpName", "Parts",
    "Sugar", "TypeRef", "UnsupportedNodeError", "Value",
]  # fmt: skip
