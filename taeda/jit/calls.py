"""Calls of ops, by the signature that fits best, of functions and methods, and of the language's built-in functions."""

from __future__ import annotations

import ast
from typing import Any

from . import hooked, ir, schemas
from .errors import CompileError, NotSupportedError
from .schemas import IMPLICIT, SPREAD, TO_LIST, WRAP_INT, NoMatch, Schema
from .sugar import (
    CASTS,
    FORM_METHODS,
    FUNCTIONS,
    PROPERTIES,
    Form,
    FunctionRef,
    Method,
    OpName,
    Part,
    Parts,
    Sugar,
    TypeRef,
    Value,
    _cost,
    _device,
    _int,
    _known,
)  # fmt: skip
from .types import (
    ANY,
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
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
    is_subtype,
    list_of,
    unify,
)  # fmt: skip


class Calls(Part):
    """The compilation of calls."""

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
        hints = {p.name: p.type for p in self._hinting(callee)}
        wanted = list(hints.values())
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
        keywords = {}
        for k in node.keywords:
            if k.arg is None:
                self.fail(node, "keyword arguments spread out with ** aren't supported", NotSupportedError)
            assert k.arg is not None
            keywords[k.arg] = self.expr(k.value, hints.get(k.arg))
        return args, keywords

    def _hinting(self, callee: Any) -> list[Parameter]:
        """The parameters of the called function, if they are known."""
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
            if t.pre_hooks or t.hooks:
                name = hooked.called(t).name
            return self.call_method(callee, name, args, keywords, node)
        if isinstance(t, InterfaceType):
            return self.call_method(callee, "forward", args, keywords, node)
        self.fail(node, f"a value of type '{t}' cannot be called")

    def call_function(self, function: ir.Function, args: list, keywords: dict, node: ast.AST) -> ir.Expr:
        """A call of a function that is compiled."""
        bound = self.bound(function.parameters, args, keywords, function.name, node)
        if function.defining and function.declared is None:
            self.fail(node, f"function '{function.name}' is called recursively. Recursive calls are not supported")
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
        if t == TENSOR and name == "tolist" and schemas.overloads("prim::tolist"):
            return self.op_of_any("prim::tolist", [target], ANY)
        if t.name == "Future" and name == "wait":
            return self.op("aten::wait", [target], {}, node)
        for qualified in (f"aten::{name}", f"prim::{name}"):
            if overloads := schemas.overloads(qualified):
                names = [[p.name for p in s.parameters] for s in overloads]
                at = max((n.index("self") for n in names if "self" in n), default=0)  # where, polygamma: not first
                if len(args) < at:
                    return self.op(qualified, args, {**keywords, "self": target}, node)
                return self.op(qualified, [*args[:at], target, *args[at:]], keywords, node)
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
                f"Arguments for call are not valid: {qualified}({given}). The following variants are "
                f"available:\n{tried}",
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
        """``(schema, sources, open types)`` of the best signature, or a list of the signatures tried and why each does
        not fit.
        """
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
        if name in FORM_METHODS:
            return getattr(self, f"_form_{name}")(node, hint)
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
        if args and all(a.type == TENSOR for a in args) and qualified.startswith("prim::") and name in ("min", "max"):
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
        if t is BOOL and (value.type is STR or value.type.name in ("List", "Dict")):
            return self.truth(value, node)
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
            except CompileError:
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
        whole = self.emit(node.args[0], wanted) if isinstance(node.args[0], ast.Dict) else None
        whole = whole or self.op("aten::dict", [self.expr(node.args[0])], {}, node)
        if not node.keywords:
            return whole
        more = [self.tuple_of_items([ir.Const(k.arg, STR), self.expr(k.value)]) for k in node.keywords]
        items = [self.op("aten::items", [whole], {}, node), self.list_literal(more, None, node)]
        return self.op("aten::dict", [self.op("aten::add", items, {}, node)], {}, node)

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
