"""The front end of Python's source: what objects of Python are in scripts, and functions compiled from their source."""

from __future__ import annotations

import ast
import builtins
import contextlib
import enum
import functools
import inspect
import math
import re
import types as python_types
import typing
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core, fft, linalg, nn, sparse, special
from .._core import Tensor, device, dtype
from ..aten import OpOverload, OpOverloadPacket
from ..nn import functional, lower
from ..ops.conversion import CASTS
from ..ops.linalg import lu as triangular
from ..ops.table import METHODS, OPS
from . import ir, layers, library, marks, schemas
from .builtins import SCALARS
from .dtypes import CODES, number
from .errors import CompileError, NotSupportedError, Source
from .frontend import FORM_NAMES, Form, Frontend, FunctionRef, OpName, Parts, Sugar, TypeRef, Value
from .hooks import HOOKS
from .modules import ScriptFunction
from .source import LIBRARY, annotate, definer, module_of, own_method, parse_function, qualified_name
from .types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    REQUIRED,
    STR,
    TENSOR,
    ClassType,
    Mismatch,
    Parameter,
    Type,
    _convert,
    is_tuple,
    list_of,
    type_of,
)  # fmt: skip


class PythonValue(Sugar):
    """A module or another object of Python, whose attributes are known."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Ignored(Sugar):
    """A function that stays Python's; ``target`` is the object of a method."""

    def __init__(self, function: Callable, result: Type, target: ir.Expr | None = None) -> None:
        self.function, self.result, self.target = function, result, target


class Overloads(Sugar):
    """A function of several signatures."""

    def __init__(self, functions: list[ir.Function], target: ir.Expr | None = None) -> None:
        self.functions, self.target = functions, target


class ContainerMethod(Sugar):
    """``items``, ``keys`` or ``values`` of a container of modules."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts


PLAIN_TYPES: dict[Any, Type] = {
    Tensor: TENSOR, int: INT, float: FLOAT, bool: BOOL, str: STR, complex: COMPLEX, type(None): NONE, None: NONE,
    device: DEVICE, dtype: INT, Any: ANY, typing.Any: ANY, nn.Parameter: TENSOR, _core.Size: list_of(INT),
    list: list_of(TENSOR), _core.layout: INT, _core.memory_format: INT, object: ANY,
}  # fmt: skip
_FORMS: dict[Any, str] = {getattr(builtins, name): name for name in FORM_NAMES if hasattr(builtins, name)}
#: Python's functions of numbers that scripts have.
_MATH = {getattr(math, name): f"aten::{name}" for name in (*SCALARS, "ldexp") if hasattr(math, name)}
_MATH[math.remainder] = "aten::mathremainder"
_MATH[marks._unwrap_optional] = "aten::_unwrap_optional"


#: Ops whose list of tensors Python spells out, and where it begins.
_SPREAD = {
    "aten::einsum": 1, "aten::meshgrid": 0, "aten::broadcast_tensors": 0, "aten::block_diag": 0,
    "aten::cartesian_prod": 0, "aten::chain_matmul": 0,
}  # fmt: skip
#: The parameters after the first of functions with as many results as they are asked for.
_UNIQUE = {
    "aten::unique": ("sorted", "return_inverse", "return_counts", "dim"),
    "aten::unique_consecutive": ("return_inverse", "return_counts", "dim"),
}
#: Methods of tensors that cast, by the number of the dtype.
_CASTS = {f"aten::{name}": CODES[kind] for name, kind in CASTS.items() if name != "chalf"}  # ATen has that one


@functools.cache
def _op_names() -> dict[int, str]:
    """The op of each function of taeda's, by the function's id."""
    found: dict[int, str] = {}
    named = [
        (name, f"aten::{name}") for space, _, name in (q.partition("::") for q in schemas.names()) if space == "aten"
    ]
    for name, qualified in named:
        for place in (OPS, METHODS, vars(lower)):
            if name in place:
                found.setdefault(id(place[name]), qualified)
    for name, qualified in named:  # names of one function that say its module come second
        for prefix, module in (("linalg_", linalg), ("special_", special), ("fft_", fft), ("_sparse_", sparse)):
            if name.startswith(prefix):
                function = getattr(module, name.removeprefix(prefix), None)
                if function is not None:
                    found.setdefault(id(function), qualified)
    return found


def _is_in_the_language(name: str, function: python_types.FunctionType) -> bool:
    """Whether ``nn.functional`` defines a function whose parameters have types, and ATen has none with these names."""
    own = (module_of(function), function.__name__) == ("taeda.nn.functional", name)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    typed = all(function.__annotations__.get(parameter, "Any") != "Any" for parameter in names)
    alike = any(tuple(p.name for p in s.parameters[1:]) == names[1:] for s in schemas.overloads(f"aten::{name}"))
    return own and bool(names) and typed and not alike


@functools.cache
def _library_functions() -> dict[int, Any]:
    """The source that scripts compile for a function of ``nn.functional``, by its id: its own, or the library's."""
    found = {}
    for name, function in vars(functional).items():
        plain = inspect.unwrap(function) if callable(function) else None
        if isinstance(plain, python_types.FunctionType) and _is_in_the_language(name, plain):
            found[id(function)] = plain
    for name, function in {**vars(library), **vars(layers)}.items():
        if isinstance(function, python_types.FunctionType) and function.__module__ in LIBRARY:
            for place in (functional, nn.modules.transformer, nn.modules.batchnorm, nn.utils.rnn, triangular):
                if hasattr(place, name):
                    found[id(getattr(place, name))] = function
    return found


# ---- the front end of Python's source --------------------------------------------------------------------------------
class SourceFrontend(Frontend):
    """Compiles a function of Python; ``names`` are what its names mean, ``cls`` the class that defines it."""

    def __init__(self, function: ir.Function, source: Source, names: Callable[[str], Any], cls: Any = None) -> None:
        super().__init__(function, source)
        self.python_name, self.cls = names, cls

    def global_name(self, name: str, node: ast.AST) -> Value:
        """A name of the function's surroundings."""
        if name == "super" or (
            name == "aten" and self.python_name(name) is None and self.python_name is _library_names
        ):
            return PythonValue(None if name == "aten" else super)
        try:
            value = self.python_name(name)
        except KeyError:
            return None
        return self.python_value(value, node, name)

    def _generic(self, name: str, node: ast.Subscript) -> Type:
        with contextlib.suppress(KeyError):  # typing's names may be imported under others
            value = self.python_name(name)
            name = value.__name__ if getattr(value, "__module__", "") == "typing" else name
        return super()._generic(name, node)

    def python_value(self, value: Any, node: ast.AST, name: str = "") -> Value:
        """The value in a script of an object of Python."""
        if isinstance(value, (Sugar, ir.Expr)):
            return value
        if value is None or type(value) in (bool, int, float, str, complex):
            return ir.Const(value, type_of(value))
        if isinstance(value, device):
            return ir.Const(value, DEVICE)
        code = number(value)
        if code is not None:
            return ir.Const(code, INT)
        if isinstance(value, ScriptFunction):
            return FunctionRef(value.function)
        if isinstance(value, (OpOverload, OpOverloadPacket)):
            packet = value.overloadpacket if isinstance(value, OpOverload) else value
            return OpName(f"{packet.namespace}::{packet.__name__}")
        if isinstance(value, enum.Enum):
            return ir.Const(value, HOOKS["enum_type"](type(value)))
        if isinstance(value, tuple) and not isinstance(value, type):
            return Parts([self.python_value(v, node, name) for v in value])
        if isinstance(value, python_types.ModuleType):
            return PythonValue(value)
        try:
            hash(value)
        except TypeError:
            return PythonValue(value)
        if value in _FORMS:
            return Form(_FORMS[value])
        if value in marks.FORMS:
            return Form(marks.FORMS[value])
        if value in PLAIN_TYPES:
            return TypeRef(PLAIN_TYPES[value])
        if value in _MATH:
            return OpName(_MATH[value])
        if value is warnings.warn:
            return OpName("aten::warn")
        if getattr(value, "__name__", "") in ("no_grad",) and isinstance(value, type):
            return TypeRef(HOOKS["class_type"](layers.no_grad))
        if isinstance(value, type):
            return self._python_class(value, node)
        if callable(value):
            return self._python_function(value, node)
        return PythonValue(value)

    def _python_class(self, value: type, node: ast.AST) -> Value:
        if issubclass(value, BaseException):
            return PythonValue(value)
        if issubclass(value, enum.Enum):
            return TypeRef(HOOKS["enum_type"](value))
        if issubclass(value, nn.Module) and not hasattr(value, "__script_interface__"):
            return PythonValue(value)
        try:
            return TypeRef(HOOKS["python_type"](value))
        except TypeError:
            return PythonValue(value)

    def _python_function(self, value: Any, node: ast.AST) -> Value:
        own = value if getattr(value, "__module__", "") in LIBRARY else _library_functions().get(id(value))
        if own is not None:
            return FunctionRef(script_function(own))
        constant = marks.CONSTANTS.get(value)
        if constant is not None:
            return Form("constant:" + str(constant))
        op = _op_names().get(id(value))
        if op is not None:
            return OpName(op)
        name = getattr(value, "__name__", "")
        module = module_of(value)
        if module.split(".")[0] == "taeda":
            if f"aten::{name}" in _UNIQUE:
                return OpName(f"aten::{name}")
            for qualified in (f"aten::{name}", f"prim::{name}"):
                if schemas.overloads(qualified):
                    return OpName(qualified)
            if not isinstance(value, python_types.FunctionType) or module.startswith(
                ("taeda.ops", "taeda.nn", "taeda._")
            ):
                return Ignored(value, result_of(value))
        if marks.is_ignored(value):
            return Ignored(value, result_of(value))
        registered = marks.OVERLOADS.get(marks.key_of(value))
        if registered:
            return Overloads(overloaded(value, registered, None))
        if isinstance(value, python_types.FunctionType):
            return FunctionRef(script_function(value))
        if isinstance(value, functools.partial):
            self.fail(node, "functools.partial objects aren't supported", NotSupportedError)
        return PythonValue(value)

    def attribute_of(self, value: Sugar, name: str, node: ast.AST) -> Value:
        """An attribute of a module or class of Python."""
        if isinstance(value, TypeRef):
            python = getattr(value.type, "python", None)
            if python is not None and hasattr(python, name):
                return self.python_value(getattr(python, name), node, name)
            return OpName(f"aten::{name}") if value.type is TENSOR else None
        if not isinstance(value, PythonValue):
            self.fail(node, f"it has no attribute '{name}'")
        assert isinstance(value, PythonValue)
        if value.value is None:  # `aten` of the library
            return ir.Const(11, INT) if name == "bool_dtype" else OpName(f"aten::{name}")
        try:
            found = getattr(value.value, name)
        except AttributeError:
            self.fail(node, f"{getattr(value.value, '__name__', value.value)!r} has no attribute '{name}'")
        return self.python_value(found, node, name)

    def as_expression(self, value: Sugar, node: ast.AST) -> ir.Expr:
        """A value of Python's in a script."""
        if isinstance(value, PythonValue):
            what = type(value.value).__name__
            self.fail(
                node,
                f"python value of type '{what}' cannot be used as a value. Perhaps it is a closed over global "
                f"variable? If so, "
                "please consider passing it in as an argument or use a local variable instead",
            )
        return super().as_expression(value, node)

    def type_of_sugar(self, value: Sugar, node: ast.AST) -> Type | None:
        """The type that a name stands for."""
        if isinstance(value, TypeRef):
            return value.type
        if isinstance(value, PythonValue):
            try:
                return HOOKS["python_type"](value.value)
            except TypeError:
                return None
        return None

    def _attribute(self, node: ast.Attribute, hint: Type | None) -> Value:
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "super":
            return self._of_super(node)
        return super()._attribute(node, hint)

    def _of_super(self, node: ast.Attribute) -> Value:
        owner = self.function.owner
        me = self.lookup(self.function.parameters[0].name) if self.function.parameters else None
        if owner is None or self.cls is None or not isinstance(me, ir.Expr):
            self.fail(node, "super() is for methods")
        assert owner is not None and isinstance(me, ir.Expr)
        python = owner.python if isinstance(owner.python, type) else type(owner.python)
        after = (
            python.__mro__[python.__mro__.index(self.cls) + 1 :] if self.cls in python.__mro__ else self.cls.__mro__[1:]
        )
        for cls in after:
            found = own_method(cls, node.attr)
            if found is not None:
                function, home = found
                name = f"{node.attr}__super_{cls.__name__}"
                if name not in owner.methods:
                    owner.methods[name] = compile_method(function, owner, home, f"{owner.name}.{name}")
                from .frontend import Method

                return Method(me, name)
        self.fail(node, f"super() has no method '{node.attr}'")

    def module_attribute(self, value: ir.Expr, kind: ClassType, name: str, node: ast.AST) -> Value:
        """A property, class attribute or method of Python's of a class."""
        python = kind.python
        cls = python if isinstance(python, type) else type(python)
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, property) and static.fget is not None:
            getter = f"__get_{name}"
            if getter not in kind.methods:
                kind.methods[getter] = compile_method(static.fget, kind, definer(cls, name), f"{kind.name}.{getter}")
            return self.call_method(value, getter, [], {}, node)
        if static is not None and not isinstance(static, python_types.FunctionType):
            found = static.__func__ if isinstance(static, (staticmethod, classmethod)) else static
            if isinstance(static, classmethod) or inspect.isdatadescriptor(static):
                return None
            return self.python_value(found, node, name)
        return None

    def set_property(self, owner: ir.Expr, kind: ClassType, name: str, value: ir.Expr, node: ast.AST) -> Value:
        """The call of the function that sets a property of a class; None: there is none."""
        python = kind.python
        cls = python if isinstance(python, type) else type(python)
        static = inspect.getattr_static(cls, name, None)
        if not isinstance(static, property) or static.fset is None:
            return None
        setter = f"__set_{name}"
        if setter not in kind.methods:
            kind.methods[setter] = compile_method(static.fset, kind, definer(cls, name), f"{kind.name}.{setter}")
        return self.call_method(owner, setter, [value], {}, node)

    def _class_attribute(self, value: ir.Expr, t: ClassType, name: str, node: ast.AST) -> Value:
        if name in ("items", "keys", "values") and t.container:
            parts = self.items_of_container(value, name)
            assert parts is not None
            return ContainerMethod(parts)
        method = t.method(name) if name not in t.attributes and name not in t.constants else None
        if isinstance(method, Ignored):
            return Ignored(method.function, method.result, value)
        if isinstance(method, Overloads):
            return Overloads(method.functions, value)
        return super()._class_attribute(value, t, name, node)

    def items_of_container(self, value: ir.Expr, what: str = "") -> Parts | None:
        """The modules of a container, by place or by name."""
        kind = value.type
        if not isinstance(kind, ClassType) or not kind.container:
            return None
        word, names = kind.container, kind.children
        modules = [ir.GetAttr(value, n, kind.attributes[n]) for n in names]
        keys: list[Any] = [ir.Const(n, STR) for n in names]
        if what == "items":
            return Parts([Parts([k, m]) for k, m in zip(keys, modules, strict=True)])
        if what == "keys" or (what == "" and word == "dict"):
            return Parts(keys)
        return Parts(list(modules))

    def module_item(self, value: ir.Expr, node: ast.Subscript) -> Value:
        """``modules["key"]``."""
        kind = value.type
        key = self.expr(node.slice)
        if (
            isinstance(kind, ClassType)
            and isinstance(key, ir.Const)
            and type(key.value) is str
            and key.value in kind.attributes
        ):
            return ir.GetAttr(value, key.value, kind.attributes[key.value])
        if isinstance(kind, ClassType) and kind.is_module and kind.container:
            self.fail(
                node,
                "Unable to extract string literal index. ModuleDict indexing is only supported with string literals"
                if kind.container == "dict"
                else "Expected integer literal for index. ModuleList/Sequential indexing is only supported with "
                "integer literals; "
                "enumeration is supported, e.g. 'for index, v in enumerate(self): ...'",
            )
        return None

    def call_other(self, callee: Sugar, node: ast.Call, hint: Type | None) -> Value:
        """A call of something of Python's."""
        if isinstance(callee, ContainerMethod):
            return callee.parts
        args, keywords = self.arguments(node)
        if isinstance(callee, (Ignored, Overloads)):
            return self.apply(callee, args, keywords, node)
        if isinstance(callee, PythonValue) and isinstance(callee.value, type) and issubclass(callee.value, nn.Module):
            self.fail(node, "modules cannot be made in scripts: make them in __init__", NotSupportedError)
        what = getattr(getattr(callee, "value", callee), "__name__", callee)
        self.fail(node, f"Python builtin {what!r} is currently not supported in Torchscript", NotSupportedError)

    def _call_ignored(self, callee: Ignored, args: list, keywords: dict) -> ir.Expr:
        first = [] if callee.target is None else [callee.target]
        names, count, function = list(keywords), len(first) + len(args), callee.function

        def call(*values: Any) -> Any:
            return function(*values[:count], **dict(zip(names, values[count:], strict=True)))

        name = getattr(function, "__name__", "function")
        return ir.PythonCall(call, name, [*first, *args, *keywords.values()], callee.result)

    def _call_overloads(self, callee: Overloads, args: list, keywords: dict, node: ast.AST) -> Value:
        failed = []
        for implicit, function in [(i, f) for i in (False, True) for f in callee.functions]:
            parameters = function.parameters[callee.target is not None :]
            try:
                schemas.bind(parameters, [a.type for a in args], {k: v.type for k, v in keywords.items()}, implicit)
            except schemas.NoMatch as error:
                failed.append(f"{function.name}: {error}")
                continue
            bound = self.bound(parameters, args, keywords, function.name, node)
            return ir.Call(function, [*([] if callee.target is None else [callee.target]), *bound], function.result)
        self.fail(node, "Arguments for call are not valid. The following variants are available:\n" + "\n".join(failed))

    def apply(self, callee: Value, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> Value:
        """A call with values, of a function that may be Python's."""
        if isinstance(callee, Ignored):
            return self._call_ignored(callee, args, keywords)
        if isinstance(callee, Overloads):
            return self._call_overloads(callee, args, keywords, node)
        if isinstance(callee, ContainerMethod):
            return callee.parts
        if isinstance(callee, FunctionRef):
            callee = self._with_indices(callee, args, keywords, node)
        return super().apply(callee, args, keywords, node)

    def _with_indices(self, callee: FunctionRef, args: list, keywords: dict, node: ast.AST) -> Value:
        """The function that a pooling function is with ``return_indices=True``: its results are others."""
        name = callee.function.name
        function = getattr(library, f"{name}_with_indices", None)
        if function is None or callee.function is not script_function(getattr(library, name)):
            return callee
        given = dict(zip([p.name for p in callee.function.parameters], args, strict=False)) | keywords
        asked = given.get("return_indices")
        return self.python_value(function, node) if isinstance(asked, ir.Const) and asked.value else callee

    def call_method(self, target: ir.Expr, name: str, args: list, keywords: dict, node: ast.AST) -> Value:
        """A method; a module with overloads of ``forward`` is called by the one that fits."""
        kind = target.type
        if isinstance(kind, ClassType) and name == "forward" and kind.method("forward") is None:
            several = [f for n in range(9) if (f := kind.method(f"forward__{n}")) is not None]
            if several:
                return self._call_overloads(Overloads(several, target), args, keywords, node)
        if (kind == TENSOR and f"aten::{name}" in _CASTS) or (kind == TENSOR and name == "type" and args):
            return self.op(f"aten::{name}", [target, *args], keywords, node)
        if isinstance(kind, ClassType):
            method = kind.method(name)
            if isinstance(method, (Ignored, Overloads)):
                return self.apply(self._class_attribute(target, kind, name, node), args, keywords, node)
        return super().call_method(target, name, args, keywords, node)

    def form(self, name: str, node: ast.Call, hint: Type | None) -> Value:
        """A function of the language; ``is_scripting`` and its kin are known."""
        if name.startswith("constant:"):
            return ir.Const(name == "constant:True", BOOL)
        return super().form(name, node, hint)

    def op(self, qualified: str, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> ir.Expr:
        """An op as Python calls it, where that differs from the op's signature."""
        first = _SPREAD.get(qualified)
        if first is not None and len(args) > first and all(a.type == TENSOR for a in args[first:]):
            args = [*args[:first], ir.MakeList(args[first:], list_of(TENSOR))]
        if qualified in _UNIQUE:
            return self._unique(qualified, args, keywords, node)
        if qualified == "aten::stft" and len(args) < 6:  # ATen has another without centring
            keywords = {"center": ir.Const(True, BOOL), **keywords}
        if qualified == "aten::norm" and len(args) < 3 and "dim" in keywords:
            p = args[1] if len(args) > 1 else keywords.get("p", ir.Const(2, INT))
            p = ir.Const(2, INT) if getattr(p, "value", None) == "fro" else p
            return super().op(qualified, args[:1], {**keywords, "p": p}, node)
        if qualified == "aten::tensordot" and len(args) < 4 and "dims_self" not in keywords:
            return self._tensordot(args, keywords, node)
        if qualified in _CASTS and len(args) == 1:
            more = [ir.Const(_CASTS[qualified], INT)]
            return super().op("aten::to", [*args, *more], {}, node)
        if qualified == "aten::type" and len(args) == 2:
            return super().op("aten::to", args, keywords, node)
        return super().op(qualified, args, keywords, node)

    def _unique(self, qualified: str, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> ir.Expr:
        """The results that the flags ask for: ATen's ops have three."""
        given = {**dict(zip(_UNIQUE[qualified], args[1:], strict=False)), **keywords}
        given = {name: value for name, value in given.items() if value.type != NONE}
        if qualified == "aten::unique":
            qualified = "aten::unique_dim" if "dim" in given else "aten::_unique2"
        whole = super().op(qualified, args[:1], given, node)
        asked = [getattr(given.get(flag), "value", False) for flag in ("return_inverse", "return_counts")]
        kept: list[ir.Expr] = [ir.TupleItem(whole, i, TENSOR) for i in range(3) if i == 0 or asked[i - 1]]
        return kept[0] if len(kept) == 1 else self.tuple_of_items(kept)

    def _tensordot(self, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> ir.Expr:
        """``dims`` as Python has it: a number, or lists of each tensor's dimensions."""
        dims = args[2] if len(args) > 2 else keywords.get("dims", ir.Const(2, INT))
        rest = {name: value for name, value in keywords.items() if name != "dims"}
        if dims.type == INT:
            return self.apply(FunctionRef(script_function(library.tensordot)), [*args[:2], dims], rest, node)
        lists: list[ir.Expr] = (
            [ir.TupleItem(dims, i, part) for i, part in enumerate(dims.type.args)]
            if is_tuple(dims.type)
            else [self.op("aten::__getitem__", [dims, ir.Const(i, INT)], {}, node) for i in (0, 1)]
        )
        return super().op("aten::tensordot", [*args[:2], *lists], rest, node)


# ---- functions -------------------------------------------------------------------------------------------------------
def names_of(fn: Any, cls: Any = None) -> Callable[[str], Any]:
    """A function that looks up the names in a function. ``cls`` may not be bound to its own name yet."""
    fn = inspect.unwrap(fn)
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))
    space = fn.__globals__

    def find(name: str) -> Any:
        try:
            if name in cells:
                return cells[name].cell_contents
        except ValueError:
            pass  # not bound yet
        else:
            if name in space:
                return space[name]
            if hasattr(builtins, name):
                return getattr(builtins, name)
        if cls is not None and name == cls.__name__:
            return cls
        noted = [*fn.__annotations__.values()]  # classes around a function may be named in its annotations alone
        for t in noted:
            if isinstance(t, type) and t.__name__ == name:
                return t
            noted += typing.get_args(t)
        raise KeyError(name)

    return _library_names if space.get("__name__") in LIBRARY else find


def _library_names(name: str) -> Any:
    for space in (vars(library), vars(layers)):
        if name in space:
            return space[name]
    return getattr(builtins, name)


def signature(
    node: ast.FunctionDef, source: Source, names: Callable, owner: ClassType | None, fn: Any
) -> tuple[list[Parameter], Type | None]:
    """Parameters and declared result of a definition. Those of an unused function have any type."""
    front = SourceFrontend(ir.Function("types", [], NONE), source, names)
    a, unused = node.args, marks.is_unused(fn)
    if not unused and (a.vararg is not None or a.kwarg is not None):
        source.fail(
            node,
            "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults",
            NotSupportedError,
        )
    arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs]
    python = inspect.unwrap(fn)
    given = python.__defaults__ or ()
    defaults: list[Any] = [REQUIRED] * (len(a.posonlyargs) + len(a.args) - len(given)) + list(given)
    defaults += [(python.__kwdefaults__ or {}).get(k.arg, REQUIRED) for k in a.kwonlyargs]
    own = owner is not None
    annotate(source, node, own)
    parameters = []
    for i, (arg, default) in enumerate(zip(arguments, defaults, strict=True)):
        if own and i == 0:
            assert owner is not None
            t: Type = owner
        else:
            t = ANY if unused else front.annotation(arg.annotation)
        if default is not REQUIRED:
            default = _default(default, t, arg, source)
        single = isinstance(arg.annotation, ast.Subscript) and t == list_of(INT) and isinstance(default, int)
        parameters.append(Parameter(arg.arg, t, default, broadcast=int(single)))
        if python.__module__ in LIBRARY and t.name in ("List", "Optional"):
            dims = re.search(r"(\d)d$", node.name)
            parameters[-1].broadcast = int(dims[1]) if dims else 1
            if isinstance(default, int) and t == list_of(INT):
                parameters[-1].default = [default] * parameters[-1].broadcast
    result = front.annotation(node.returns) if node.returns is not None else None
    return parameters, result


def _default(value: Any, t: Type, node: ast.AST, source: Source) -> Any:
    code = number(value)
    value = code if code is not None else value
    try:
        return _convert(value, t)
    except Mismatch:
        if isinstance(value, int) and t.name == "List":
            return value
        source.fail(node, f"Expected a default value of type {t} on parameter, got {value!r}")


def define(node: ast.FunctionDef, source: Source, names: Callable, cls: Any = None) -> Callable[[ir.Function], None]:
    """A function that fills in a function's body."""

    def compile_body(function: ir.Function) -> None:
        SourceFrontend(function, source, names, cls).compile(node.body)

    return compile_body


_functions: dict[Any, ir.Function] = {}


def script_function(fn: Any) -> ir.Function:
    """The compiled form of a function of Python; made once."""
    fn = _library_functions().get(id(fn), fn)
    found = _functions.get(fn)
    if found is None:
        if marks.is_unused(fn):
            found = raising(fn, None)
        else:
            node, source = parse_function(fn)
            names = names_of(fn)
            parameters, result = signature(node, source, names, None, fn)
            found = ir.Function(qualified_name(fn), parameters, result, define(node, source, names))
        _functions[fn] = found
    return found


def raising(fn: Any, owner: ClassType | None) -> ir.Function:
    """A replacement for an unused function: to call it is an error."""
    node, source = parse_function(fn)
    parameters, result = signature(node, source, names_of(fn), owner, fn)
    name = f"{owner.name}.{fn.__name__}" if owner is not None else qualified_name(fn)
    made = ir.Function(name, parameters, result or TENSOR, None, owner)
    text = f"{fn.__name__} is unused: it was marked with @torch.jit.unused, and is called by a script"
    made.body = [ir.Raise("Exception", ir.Const(text, STR))]
    return made


def result_of(fn: Any) -> Type:
    """The declared result of a function that stays Python's; Tensor where there is none."""
    try:
        node, source = parse_function(fn)
        front = SourceFrontend(ir.Function("types", [], NONE), source, names_of(fn))
        annotate(source, node)
        return TENSOR if node.returns is None else front.annotation(node.returns)
    except (OSError, CompileError):
        return TENSOR


def compile_method(fn: Any, owner: ClassType, cls: Any, name: str) -> ir.Function:
    """A method of a class, compiled when it is first needed."""
    node, source = parse_function(fn)
    names = names_of(fn, cls)
    parameters, result = signature(node, source, names, owner, fn)
    return ir.Function(name, parameters, result, define(node, source, names, cls), owner)


def overloaded(fn: Any, declared: list[Any], owner: ClassType | None, cls: Any = None) -> list[ir.Function]:
    """A function once for each of the signatures that were declared for it."""
    node, source = parse_function(fn)
    names = names_of(fn)
    out = []
    base = f"{owner.name}.{fn.__name__}" if owner is not None else qualified_name(fn)
    for i, one in enumerate(declared):
        other, other_source = parse_function(one)
        parameters, result = signature(other, other_source, names_of(one), owner, one)
        own, _ = signature(node, source, names, owner, fn)
        for p, implemented in zip(parameters, own, strict=False):
            if p.default is REQUIRED:
                p.default = implemented.default
        out.append(ir.Function(f"{base}__{i}", parameters, result, define(node, source, names, cls), owner))
    return out
