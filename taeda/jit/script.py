"""``script``: compiles functions, classes and modules of Python from their source."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import types as python_types
from typing import Any

from .. import nn
from .._core import Tensor
from . import hooked, ir, marks
from .classes import TYPES, annotation_type, class_type, enum_type, python_type
from .dtypes import number
from .errors import CompileError, Source
from .frontend import FunctionRef, OpName, Sugar, TypeRef
from .hooks import HOOKS
from .modules import RecursiveScriptModule, ScriptFunction, TopLevelTracedModule
from .python import Ignored, Overloads, SourceFrontend, compile_method, overloaded, raising, result_of, script_function
from .source import LIBRARY_CLASSES, module_of, own_method, parse_function, qualified_name
from .types import (
    BOOL,
    INT,
    NONE,
    TENSOR,
    ClassType,
    InterfaceType,
    Mismatch,
    NamedType,
    Type,
    _convert,
    dict_of,
    list_of,
    optional,
    tuple_of,
    type_of,
)  # fmt: skip

_INTERNAL = frozenset(vars(nn.Module())) - {"training"}


def _module_method(module: nn.Module, kind: ClassType, name: str) -> Any:
    """The compiled method of a module's class, or its replacement."""
    if kind.container and name.startswith("__"):
        return None  # the container's own, which the front end knows
    short = name.removeprefix(hooked.METHOD)
    if short in kind.pre_hooks or short in kind.hooks:
        hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
        return compile_method(next(h for h in hooks if h.__name__ == short), kind, None, f"{kind.name}.{name}")
    for cls in type(module).__mro__:
        if cls is nn.Module:
            break
        found = own_method(cls, name)
        if found is None:
            if name == "forward" and module_of(cls).startswith("taeda.nn") and cls.__name__ in ("LSTM", "RNNBase"):
                return None
            continue
        fn, home = found
        if marks.is_unused(fn):
            return raising(fn, kind)
        if marks.is_ignored(fn):
            fn = getattr(vars(module).get(name), "__func__", fn)  # the object may have another
            return Ignored(fn, result_of(fn))
        declared = marks.OVERLOADS.get(marks.key_of(fn))
        if declared:
            several = overloaded(fn, declared, kind, home)
            kind.methods.update({f.name: f for f in several})
            return Overloads(several)
        return compile_method(fn, kind, home, f"{kind.name}.{name}")
    return None


def _declared_attributes(module: nn.Module) -> tuple[dict[str, Any], set[str]]:
    """Annotations of attributes, and which are constants. Those in ``__init__`` count where the value has no type."""
    annotations: dict[str, Any] = {}
    constants: set[str] = set()
    for cls in reversed(type(module).__mro__):
        if cls in (object, nn.Module):
            continue
        constants.update(vars(cls).get("__constants__", ()))
        if module_of(cls).startswith("taeda.nn"):
            constants.update(getattr(LIBRARY_CLASSES.get(cls.__name__), "__constants__", ()))
        space = vars(inspect.getmodule(cls)) if inspect.getmodule(cls) else {}
        own = inspect.get_annotations(cls)
        if module_of(cls).startswith("taeda."):
            continue  # a parameter that may be None is None or a tensor, which is known here
        init = vars(cls).get("__init__")
        own |= {n: a for n, a in _annotations_in(init).items() if "Final" in a or not _has_type(vars(module).get(n))}
        for name, annotation in own.items():
            text = annotation if isinstance(annotation, str) else ""
            if "Final" in (text or str(annotation)):
                constants.add(name)
                continue
            try:
                annotations[name] = annotation_type(annotation, _Space(space, init))
            except (TypeError, CompileError, KeyError, AttributeError):
                pass  # an annotation that scripts do not use
    return annotations, constants


class _Space(dict):
    """A module's names and those around a function."""

    def __init__(self, space: dict[str, Any], fn: Any) -> None:
        super().__init__(space)
        if isinstance(fn, python_types.FunctionType):
            for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
                try:
                    self[name] = cell.cell_contents
                except ValueError:
                    pass


def _annotations_in(init: Any) -> dict[str, str]:
    """``self.name: T = ...`` of an ``__init__``."""
    if not isinstance(init, python_types.FunctionType):
        return {}
    try:
        node, _ = parse_function(init)
    except (OSError, CompileError):
        return {}
    out = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Attribute):
            if isinstance(inner.target.value, ast.Name) and inner.target.value.id == "self":
                out[inner.target.attr] = ast.unparse(inner.annotation)
    return out


_kinds: dict[Any, ClassType] = {}


def script_module(
    module: nn.Module, memo: dict[int, RecursiveScriptModule] | None = None, shared: bool = True
) -> RecursiveScriptModule:
    """The script of a module: its parameters, buffers and modules' scripts, its attributes with types.

    Args:
        memo: modules that were met, with their scripts.
        shared: whether modules of one structure have one type, as those of a script do; a trace's have none.
    """
    memo = {} if memo is None else memo
    if isinstance(module, RecursiveScriptModule):
        return module
    if id(module) in memo:
        return memo[id(module)]
    if module is None:
        raise RuntimeError("script: a module is None")
    prepared = module.__prepare_scriptable__() if shared and hasattr(module, "__prepare_scriptable__") else module
    if prepared is not module:
        memo[id(module)] = script_module(prepared, memo)
        return memo[id(module)]
    kind = ClassType("", True)
    made = memo[id(module)] = RecursiveScriptModule(kind)
    made.__dict__["training"] = module.training
    made.__dict__["_original"] = module
    annotations, constants = _declared_attributes(module)
    if shared:  # a trace records what hooks do
        before, after = hooked.names_of(module)
        kind.pre_hooks, kind.hooks = list(before), list(after)
        hooked.attach(made)
    _add_tensors(module, kind, made, annotations)
    children: list[tuple[str, ClassType]] = []
    for name, child in module._modules.items():
        if child is None:
            kind.constants[name] = None
            continue
        inner = script_module(child, memo, shared)
        wanted = annotations.get(name)
        if isinstance(wanted, InterfaceType) and (inner._kind.pre_hooks or inner._kind.hooks):
            raise RuntimeError(f"script: {name!r} is called through the interface {wanted.short}: it cannot have hooks")
        kind.attributes[name] = wanted if shared and isinstance(wanted, InterfaceType) else inner._kind
        made._modules[name] = inner
        children.append((name, inner._kind))
    kind.attributes["training"] = BOOL
    _add_values(module, kind, made, annotations, constants)
    for cls, word in (
        (nn.ModuleList, "list"), (nn.Sequential, "list"), (nn.ModuleDict, "dict"), (nn.ParameterList, "list"),
    ):  # fmt: skip
        if isinstance(module, cls):
            kind.container = word
            kind.children = list(module._modules) if cls is not nn.ParameterList else list(module._parameters)
    key = _structure(module, kind) if shared else None
    known = _kinds.get(key) if key is not None else None
    if known is not None:
        made.__dict__["_kind"] = known
        return made
    kind.name = qualified_name(type(module))
    kind.python = module
    kind.find = functools.partial(_module_method, module, kind)
    if key is not None:
        _kinds[key] = kind
    return made


def _structure(module: nn.Module, kind: ClassType) -> Any:
    """The parts that modules of one type share; None if they cannot be determined."""
    constants = []
    for name, value in kind.constants.items():
        if isinstance(value, (Sugar, Tensor)):
            value = id(getattr(value, "function", value))
        constants.append((name, repr(value)))
    own = [n for n, v in vars(module).items() if isinstance(v, python_types.MethodType)]
    if own or kind.pre_hooks or kind.hooks or getattr(type(module), "__module__", "") == "__main__":
        return None
    attributes = tuple((n, t) for n, t in kind.attributes.items())
    return type(module), attributes, tuple(constants), frozenset(kind.parameters), frozenset(kind.buffers)


def _add_tensors(module: nn.Module, kind: ClassType, made: RecursiveScriptModule, annotations: dict[str, Any]) -> None:
    for table, names in (("_parameters", kind.parameters), ("_buffers", kind.buffers)):
        for name, value in getattr(module, table).items():
            if value is None and annotations.get(name) != optional(TENSOR):
                kind.constants[name] = None
                continue
            kind.attributes[name] = annotations[name] if annotations.get(name) == optional(TENSOR) else TENSOR
            names.add(name)
            made.__dict__[table][name] = value
    made.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    if isinstance(module, nn.RNNBase):
        kind.attributes["_script_weights"] = list_of(TENSOR)
        made._attributes["_script_weights"] = list(module._flat_weights)
        kind.constants["bias"] = bool(module.bias)
    if type(module).__name__.startswith("ConvTranspose") and module_of(type(module)).startswith("taeda.nn"):
        for name in ("output_padding", "dilation", "kernel_size", "stride", "padding"):
            kind.attributes[f"_script_{name}"] = list_of(INT)
            made._attributes[f"_script_{name}"] = list(getattr(module, name))


def _add_values(
    module: nn.Module, kind: ClassType, made: RecursiveScriptModule, annotations: dict[str, Any], constants: set[str]
) -> None:
    own = {n: v for n, v in vars(module).items() if n not in _INTERNAL and n != "training"}
    for name in constants:
        if name not in own and name not in kind.attributes and hasattr(type(module), name):
            own[name] = getattr(type(module), name)
    for name, value in own.items():
        if name in kind.attributes or name in kind.constants:
            continue
        if isinstance(value, marks.Attribute):
            annotations = {**annotations, name: python_type(value.type)}
            value = value.value
        if isinstance(value, python_types.MethodType):
            continue
        code = number(value)
        if code is not None:
            value = code
        if callable(value) and not isinstance(value, (enum.Enum, nn.Module)):
            found = _function_attribute(value)
            if found is not None:
                kind.constants[name] = found
            continue
        if name in constants and not isinstance(value, dict):
            kind.constants[name] = value
            continue
        try:
            wanted = annotations.get(name)
            t = wanted if wanted is not None else _type_of_attribute(value)
            made._attributes[name] = _convert(value, t)
            kind.attributes[name] = t
        except (TypeError, Mismatch, NotImplementedError):  # the last of a class's own `__len__`
            continue  # a script that uses it gets an error that it does not exist


def _has_type(value: Any) -> bool:
    """Whether the value of an attribute says its type: None and empty containers do not."""
    try:
        return value is not None and _type_of_attribute(value) is not None
    except (TypeError, Mismatch):
        return False


def _type_of_attribute(value: Any) -> Type:
    if isinstance(value, enum.Enum):
        return enum_type(type(value))
    if isinstance(value, (list, dict)) and not value:
        raise TypeError("an empty container has no type")
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return python_type(type(value))
    if isinstance(value, (list, tuple)):
        parts = [_type_of_attribute(v) for v in value]
        if isinstance(value, tuple):
            return tuple_of(*parts)
        if len(set(parts)) == 1:
            return list_of(parts[0])
    if hasattr(value, "_script_type") and isinstance(value._script_type, NamedType):
        return value._script_type
    if isinstance(value, dict):
        keys, values = [{_type_of_attribute(x) for x in part} for part in (value, value.values())]
        if len(keys) == len(values) == 1:
            return dict_of(keys.pop(), values.pop())
    try:
        return type_of(value)
    except TypeError:
        return _type_of_instance(type(value))


def _type_of_instance(cls: type) -> Type:
    """The type of the instances of a class of the program, which is compiled for it."""
    if cls not in TYPES and (
        not isinstance(vars(cls).get("__init__"), python_types.FunctionType) or issubclass(cls, nn.Module)
    ):
        raise TypeError(f"{cls} is no type of scripts")
    try:
        kind = class_type(cls)
        init = kind.method("__init__")
        if isinstance(init, ir.Function):
            ir.define_all([init])  # it defines the attributes
    except (CompileError, OSError) as error:
        TYPES.pop(cls, None)
        raise TypeError(str(error)) from None
    return kind


def _function_attribute(value: Any) -> Sugar | None:
    front = SourceFrontend(ir.Function("types", [], NONE), Source(""), lambda name: None)
    try:
        found = front.python_value(value, ast.Pass())
    except (OSError, CompileError):
        return None
    return found if isinstance(found, (FunctionRef, OpName, Ignored, TypeRef)) else None


def _compile_module(made: RecursiveScriptModule, done: set[int]) -> None:
    """Compile the methods that a module starts with: ``forward``, and those that are exported."""
    kind = made._kind
    if id(kind) in done or isinstance(made, TopLevelTracedModule):  # a trace has its methods, its modules need none
        return
    done.add(id(kind))
    for child in made._modules.values():
        _compile_module(child, done)
    module = kind.python
    for name in dir(type(module)):
        fn = inspect.getattr_static(type(module), name, None)
        if marks.is_exported(fn) or name == "forward":
            kind.method(name)
    if kind.pre_hooks or kind.hooks:
        hooked.called(kind)
        for name in (*kind.pre_hooks, *kind.hooks):
            kind.method(name)


def script(
    obj: Any = None, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Compile a function, class or module from its source: control flow, types and all; it runs without the source
    then.

    Args:
        obj: a function gives a :class:`ScriptFunction`, a module a :class:`RecursiveScriptModule`; a class can be used
            in scripts from then on, and comes back as it is.
        optimize: accepted.
        _frames_up: accepted.
        _rcb: accepted.
        example_inputs: accepted.
    Raises:
        taeda.jit.frontend.NotSupportedError: the source has something that scripts do not; the message shows its line.
        RuntimeError: types do not fit.
        OSError: there is no source.
    """
    if isinstance(obj, (ScriptFunction, RecursiveScriptModule)) or obj is None or not marks.enabled():
        return obj
    if isinstance(obj, nn.Module):
        made = script_module(obj)
        _compile_module(made, set())
        start = list(made._kind.methods.values())
        for m in made.modules():
            if isinstance(m, RecursiveScriptModule):
                python = type(m._kind.python)
                start += [f for n, f in m._kind.methods.items() if marks.is_exported(getattr(python, n, None))]
        ir.define_all([f for f in start if isinstance(f, ir.Function)])
        return made
    if isinstance(obj, type):
        if issubclass(obj, nn.Module):
            raise RuntimeError(
                f"Type '{obj.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an "
                f"instance instead"
            )
        if not issubclass(obj, (enum.Enum, tuple)):
            kind = class_type(obj)
            for name, fn in vars(obj).items():
                if isinstance(fn, python_types.FunctionType):
                    method = kind.method(name)
                    if isinstance(method, ir.Function):
                        ir.define_all([method])
        return obj
    if isinstance(obj, (dict, list)):
        return obj
    if not callable(obj):
        raise RuntimeError(f"script: expected a function, class or module, got {type(obj).__name__}")
    if isinstance(obj, python_types.MethodType):
        raise RuntimeError(
            "script: methods are compiled with their module: script the module, or mark the method with export"
        )
    function = script_function(obj)
    ir.define_all([function])
    return ScriptFunction(function, obj)


HOOKS["script"] = script
