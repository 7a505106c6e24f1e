"""The types of scripts that Python's classes and annotations mean."""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import types as python_types
import typing
from typing import Any

from .. import _core, nn
from .._core import Tensor
from . import ir, marks
from .dataclass import is_field, is_written, written_method
from .errors import CompileError, Source
from .hooks import HOOKS
from .python import PLAIN_TYPES, Ignored, SourceFrontend, compile_method, names_of, result_of, signature
from .source import parse_function, qualified_name
from .types import (
    GENERATOR,
    NONE,
    TENSOR,
    ClassType,
    EnumType,
    InterfaceType,
    NamedTupleType,
    NamedType,
    Type,
    dict_of,
    list_of,
    optional,
    tuple_of,
    type_of,
    union,
)  # fmt: skip

TYPES: dict[Any, NamedType] = {}


def python_type(obj: Any) -> Type:
    """The type that an annotation's object means."""
    try:
        if obj in PLAIN_TYPES:
            return PLAIN_TYPES[obj]
        if obj in TYPES:
            return TYPES[obj]
    except TypeError:
        pass
    origin, args = typing.get_origin(obj), typing.get_args(obj)
    if origin in (list, dict) and not args:
        raise TypeError(f"{obj} does not say what it holds")
    if origin is list:
        return list_of(python_type(args[0]))
    if origin is dict:
        return dict_of(python_type(args[0]), python_type(args[1]))
    if origin is tuple:
        return tuple_of(*[python_type(a) for a in args if a != ()])
    if origin in (typing.Union, python_types.UnionType):
        return union([python_type(a) for a in args])
    if origin is typing.Final or origin is typing.Annotated:
        return python_type(args[0])
    if isinstance(obj, typing.NewType):
        return python_type(obj.__supertype__)
    if not isinstance(obj, type):
        raise TypeError(f"{obj} is no type of scripts")
    if issubclass(obj, enum.Enum):
        return enum_type(obj)
    if hasattr(obj, "__script_interface__"):
        return interface_type(obj)
    if issubclass(obj, tuple) and hasattr(obj, "_fields"):
        return _named_tuple(obj)
    if issubclass(obj, Tensor):
        return TENSOR
    if obj is _core.random.Generator if hasattr(_core, "random") and hasattr(_core.random, "Generator") else False:
        return GENERATOR
    if issubclass(obj, (nn.Module, BaseException)) or obj.__module__ in ("builtins", "typing"):
        raise TypeError(f"{obj} is no type of scripts")
    return class_type(obj)


def enum_type(cls: type[enum.Enum]) -> EnumType:
    found = TYPES.get(cls)
    if found is None:
        values = [m.value for m in cls]
        if len({type(v) for v in values}) != 1 or type(values[0]) not in (int, float, str):
            raise CompileError(
                f"Could not unify type list of the values of enum {cls.__name__}: they are numbers or strings of one "
                f"type"
            )
        found = TYPES[cls] = EnumType(qualified_name(cls), type_of(values[0]), {m.name: m for m in cls})
        cls._script_type = found  # type: ignore[attr-defined]
    return found  # type: ignore[return-value]


def _named_tuple(cls: Any) -> NamedTupleType:
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations.update(inspect.get_annotations(base))
    space = vars(inspect.getmodule(cls)) if inspect.getmodule(cls) else {}
    if issubclass(cls, nn.utils.rnn.PackedSequence):
        types = [TENSOR, TENSOR, optional(TENSOR), optional(TENSOR)]
    else:
        types = [annotation_type(annotations.get(name, Tensor), space) for name in cls._fields]
    made = NamedTupleType(qualified_name(cls), list(cls._fields), types, dict(cls._field_defaults), cls)
    TYPES[cls] = made
    if "_script_type" not in vars(cls):
        cls._script_type = made
    return made


def annotation_type(annotation: Any, space: dict[str, Any]) -> Type:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return python_type(annotation)

    def names(name: str) -> Any:
        return space[name] if name in space else getattr(builtins, name)

    node = ast.parse(annotation, mode="eval").body
    front = SourceFrontend(ir.Function("types", [], NONE), Source(annotation), names)
    return front.annotation(node)


def class_type(cls: type) -> ClassType:
    """The type of a class of Python that scripts make instances of."""
    found = TYPES.get(cls)
    if found is not None:
        return found  # type: ignore[return-value]
    if cls.__bases__ != (object,) and any(b not in (object, typing.Generic) for b in cls.__bases__):
        raise CompileError(
            "Currently class type is required to have no base but object: " + cls.__name__ + " has another"
        )
    kind = TYPES[cls] = ClassType(qualified_name(cls))
    kind.python = cls
    space = vars(inspect.getmodule(cls)) if inspect.getmodule(cls) else {}
    for name, annotation in inspect.get_annotations(cls).items():  # which Python 3.14 makes when asked
        if is_field(cls, name):
            kind.attributes[name] = annotation_type(annotation, space)

    def find(name: str) -> Any:
        fn = vars(cls).get(name)
        if isinstance(fn, staticmethod):
            return None
        if not isinstance(fn, python_types.FunctionType):
            return None
        if marks.is_ignored(fn):
            return Ignored(fn, result_of(fn))
        if is_written(cls, fn):
            fn = written_method(cls, name)
            if fn is None:
                return None
        made = kind.methods[name] = compile_method(fn, kind, cls, f"{kind.name}.{name}")
        if name != "__init__":
            init = kind.method("__init__")
            if isinstance(init, ir.Function) and not init.defining:
                init.define()  # it defines the attributes
        return made

    kind.find = find
    return kind


def interface_type(cls: type) -> InterfaceType:
    found = TYPES.get(cls)
    if found is None:
        found = TYPES[cls] = InterfaceType(qualified_name(cls), issubclass(cls, nn.Module))
        for name, fn in vars(cls).items():
            if isinstance(fn, python_types.FunctionType):
                node, source = parse_function(fn)
                parameters, result = signature(node, source, names_of(fn), ClassType("self"), fn)
                found.methods[name] = (parameters[1:], result or TENSOR)
    return found  # type: ignore[return-value]


HOOKS.update(python_type=python_type, enum_type=enum_type, class_type=class_type)
