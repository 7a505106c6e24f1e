"""Types of the graph language: what variables, attributes and arguments of scripts and archives are.

A type is immutable. Plain ones are equal where they read the same; classes, named tuples, enums and interfaces are
themselves only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core import Tensor, device
from .dtypes import number


class Type:
    """``name`` and the types of its elements: ``List`` of ``int``. ``str()`` is its annotation in code."""

    __slots__ = ("_hash", "args", "name")

    def __init__(self, name: str, *args: Type) -> None:
        self.name, self.args = name, args
        self._hash = hash((name, args))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is type(self) is Type and self.name == other.name and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self.name == "Tuple" and not self.args:
            return "Tuple[()]"
        return f"{self.name}[{', '.join(map(str, self.args))}]" if self.args else self.name

    __repr__ = __str__

    def kind(self) -> str:
        """PyTorch's name of the kind of type."""
        return _KINDS.get(self.name, self.name + "Type")

    def annotation_str(self) -> str:
        return str(self)

    @property
    def element(self) -> Type:
        """The type of the elements of a list, an optional or a future."""
        return self.args[0]


_KINDS = {"number": "NumberType", "str": "StringType", "NoneType": "NoneType", "Device": "DeviceObjType"}
for _name in ("int", "float", "bool", "complex"):
    _KINDS[_name] = _name.capitalize() + "Type"

TENSOR, INT, FLOAT, BOOL, COMPLEX, STR = (Type(n) for n in ("Tensor", "int", "float", "bool", "complex", "str"))
NUMBER, NONE, DEVICE, ANY, GENERATOR, STREAM = (
    Type(n) for n in ("number", "NoneType", "Device", "Any", "Generator", "Stream")
)
NUMBERS = (INT, FLOAT, COMPLEX)
PLAIN = {t.name: t for t in (TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, NUMBER, NONE, DEVICE, ANY, GENERATOR, STREAM)}
PLAIN["Scalar"] = NUMBER


class Var(Type):
    """A type that a signature leaves open: ``t`` of ``append(t[] self, t el)``."""

    __slots__ = ()


class NamedType(Type):
    """A type of the program's own: equal to itself only."""

    __slots__ = ("__dict__",)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self) >> 4

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


class TupleFields:
    """The tuple that values of a :class:`NamedTupleType` are; made without compiling code, as ``namedtuple`` would."""


class NamedTupleType(NamedType):
    """A tuple with names: ``fields``, of the types ``args``; ``cls`` makes the values."""

    def __init__(self, name: str, fields: list[str], types: list[Type], defaults: dict[str, Any], cls: Any = None):
        super().__init__(name, *types)
        self.fields, self.defaults = fields, defaults
        self.cls = cls if cls is not None else _tuple_class(self.short, fields)

    def kind(self) -> str:
        return "TupleType"


def _tuple_class(name: str, fields: list[str]) -> type:
    def field(i: int) -> property:
        return property(lambda self: self[i])

    space: dict[str, Any] = {name: field(i) for i, name in enumerate(fields)}

    def show(self: tuple) -> str:
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in zip(fields, self, strict=True))})"

    def make(cls: type, *values: Any) -> Any:
        return tuple.__new__(cls, values)

    space.update(
        __slots__=(),
        __new__=make,
        __repr__=show,
        __getnewargs__=lambda self: tuple(self),  # for copies
        _fields=tuple(fields),
        _asdict=lambda self: dict(zip(fields, self, strict=True)),
    )
    return type(name, (tuple, TupleFields), space)


class EnumValue:
    """A member of an enum that an archive declares: ``name`` and ``value``."""

    __slots__ = ("kind", "name", "value")

    def __init__(self, kind: EnumType, name: str, value: Any) -> None:
        self.kind, self.name, self.value = kind, name, value

    def __repr__(self) -> str:
        return f"<{self.kind.short}.{self.name}: {self.value!r}>"

    def __str__(self) -> str:
        return f"{self.kind.short}.{self.name}"


class EnumType(NamedType):
    """An enum: ``members`` by name, whose values are of the type ``value_type``."""

    def __init__(self, name: str, value_type: Type, members: dict[str, Any]) -> None:
        super().__init__(name)
        self.value_type, self.members = value_type, members


class InterfaceType(NamedType):
    """The type of every class with these ``methods`` (name: argument types without self, result)."""

    def __init__(self, name: str, is_module: bool = False) -> None:
        super().__init__(name)
        self.is_module = is_module
        self.methods: dict[str, tuple[list[Parameter], Type]] = {}


class ClassType(NamedType):
    """A class or module: types of attributes, constants, methods. ``methods`` are compiled when first asked for."""

    def __init__(self, name: str, is_module: bool = False) -> None:
        super().__init__(name)
        self.is_module = is_module
        self.attributes: dict[str, Type] = {}
        self.parameters: set[str] = set()
        self.buffers: set[str] = set()
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, Any] = {}
        self.find: Callable[[str], Any] = lambda name: None
        self.python: Any = None
        self.method_names: list[str] = []  # methods of an archive's class
        self.container = ""  # "list" or "dict" of the modules ``children``
        self.children: list[str] = []
        self.pre_hooks: list[str] = []  # methods that run before and after ``forward``
        self.hooks: list[str] = []

    def method(self, name: str) -> Any:
        """The Function of a method, or None."""
        found = self.methods.get(name)
        if found is None:
            found = self.find(name)
            if found is not None:
                self.methods[name] = found
        return found


class FunctionType(NamedType):
    """A function that is known: the type of a name for it."""

    def __init__(self, function: Any) -> None:
        super().__init__("Function")
        self.function = function


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


class Parameter:
    """An argument of a function: its name, type, and default value (``default`` is REQUIRED where there is none)."""

    __slots__ = ("broadcast", "convert", "default", "keyword", "name", "type")

    def __init__(
        self, name: str, type: Type, default: Any = REQUIRED, keyword: bool = False, broadcast: int = 0,
        convert: str = "",
    ):  # fmt: skip
        self.name, self.type, self.default, self.keyword = name, type, default, keyword
        self.broadcast, self.convert = broadcast, convert


# ---- making types ----------------------------------------------------------------------------------------------------
def list_of(t: Type) -> Type:
    """``List[t]``."""
    return Type("List", t)


def dict_of(key: Type, value: Type) -> Type:
    """``Dict[key, value]``."""
    return Type("Dict", key, value)


def tuple_of(*types: Type) -> Type:
    """``Tuple[types]``."""
    return Type("Tuple", *types)


def optional(t: Type) -> Type:
    """``Optional[t]``; what may be None already is left."""
    return t if t.name in ("Optional", "Any", "NoneType") else Type("Optional", t)


def union(types: list[Type]) -> Type:
    """``Union[types]``, or the type that this comes to."""
    flat: list[Type] = []
    for t in types:
        parts = list(t.args) if t.name == "Union" else [t.element, NONE] if t.name == "Optional" else [t]
        flat += [p for p in parts if p not in flat]
    flat = [t for t in flat if not any(o is not t and is_subtype(t, o) for o in flat)]
    if len(flat) == 1:
        return flat[0]
    if NONE in flat and len(flat) == 2:
        return optional(next(t for t in flat if t is not NONE))
    if set(flat) == {INT, FLOAT, COMPLEX}:
        return NUMBER
    return Type("Union", *flat)


def is_tuple(t: Type) -> bool:
    """Whether values are tuples."""
    return t.name == "Tuple" or isinstance(t, NamedTupleType)


def choices(t: Type) -> list[Type]:
    """The types that a value of type ``t`` may be of."""
    if t.name == "Optional":
        return [*choices(t.element), NONE]
    if t.name == "Union":
        return list(t.args)
    return [INT, FLOAT, COMPLEX] if t == NUMBER else [t]


def is_subtype(a: Type, b: Type) -> bool:
    """Whether a value of type ``a`` is one of type ``b``."""
    if a is b or a == b or b is ANY:
        return True
    if a.name in ("Optional", "Union"):
        return all(is_subtype(x, b) for x in choices(a))
    if b.name == "Optional":
        return a is NONE or is_subtype(a, b.element)
    if b.name == "Union":
        return any(is_subtype(a, x) for x in b.args)
    if b is NUMBER:
        return a in NUMBERS
    if b.name == "Tuple" and is_tuple(a):
        return len(a.args) == len(b.args) and all(map(is_subtype, a.args, b.args))
    if isinstance(b, InterfaceType) and isinstance(a, (ClassType, InterfaceType)):
        return implements(a, b)
    return False


def is_kind(t: Type, wanted: Type) -> bool:
    """Whether ``isinstance`` holds for a value of type ``t``; a bare ``list``, ``tuple`` or ``dict`` has any items."""
    return (
        is_subtype(t, wanted)
        or (not wanted.args and wanted.name == t.name)
        or (wanted.name == "Tuple" and not wanted.args and is_tuple(t))
    )


def implements(a: ClassType | InterfaceType, b: InterfaceType) -> bool:
    """Whether ``a`` has the methods of the interface ``b``."""
    for name, (wanted, result) in b.methods.items():
        found: Any = a.methods.get(name) if isinstance(a, InterfaceType) else a.method(name)
        if found is None:
            return False
        own, given = found if isinstance(found, tuple) else (found.parameters[1:], found.result)
        if len(own) != len(wanted) or not all(is_subtype(w.type, o.type) for w, o in zip(wanted, own, strict=True)):
            return False
        if given is not None and not is_subtype(given, result):
            return False
    return True


def unify(a: Type, b: Type) -> Type | None:
    """The type of a value that is of type ``a`` or ``b``; None if there is none but Union."""
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if a is NONE or b is NONE:
        return optional(b if a is NONE else a)
    if a.name == "Optional" or b.name == "Optional":
        inner = unify(*[t.element if t.name == "Optional" else t for t in (a, b)])
        return None if inner is None else optional(inner)
    if a.name == b.name == "Tuple" and len(a.args) == len(b.args):
        parts = [unify(x, y) for x, y in zip(a.args, b.args, strict=True)]
        return None if None in parts else tuple_of(*[p for p in parts if p is not None])
    return None


# ---- values ----------------------------------------------------------------------------------------------------------
class ScriptObject:
    """An instance of a class of a script: its :class:`ClassType` and the values of its attributes."""

    __slots__ = ("_fields", "_kind")

    def __init__(self, kind: ClassType) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_fields", {})

    def __getattr__(self, name: str) -> Any:
        if name in self._fields:
            return self._fields[name]
        if name in self._kind.constants:
            return self._kind.constants[name]
        method = self._kind.method(name)
        if method is None:
            raise AttributeError(f"{self._kind.short} has no attribute {name!r}")
        return lambda *args, **kwargs: method(self, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        wanted = self._kind.attributes.get(name)
        if wanted is None:
            raise AttributeError(f"{self._kind.short} has no attribute {name!r}")
        self._fields[name] = convert(value, wanted, name)

    def __repr__(self) -> str:
        return f"<script object of {self._kind.short}>"


_SCALARS: dict[Type, type] = {INT: int, FLOAT: float, BOOL: bool, COMPLEX: complex, STR: str, NONE: type(None)}


class NoType(TypeError):
    """Scripts have no type for a value of Python."""


def type_of(value: Any) -> Type:
    """The type of a value of Python."""
    for t, cls in _SCALARS.items():
        if type(value) is cls:
            return t
    if isinstance(value, Tensor):
        return TENSOR
    if isinstance(value, device):
        return DEVICE
    kind = getattr(type(value), "_script_type", None) or getattr(value, "_kind", None) or getattr(value, "kind", None)
    if isinstance(kind, Type):
        return kind
    if isinstance(value, tuple):
        return tuple_of(*map(type_of, value))
    if isinstance(value, list):
        return list_of(_common([type_of(x) for x in value]) if value else TENSOR)
    if isinstance(value, dict):
        if not value:
            return dict_of(STR, TENSOR)
        return dict_of(_common([type_of(k) for k in value]), _common([type_of(v) for v in value.values()]))
    raise NoType(f"values of type {type(value).__name__} have no type in scripts")


def _common(types: list[Type]) -> Type:
    first = types[0]
    for other in types[1:]:
        found = unify(first, other)
        if found is None:
            raise NoType(f"expected values of one type, got {first} and {other}")
        first = found
    return first


class Mismatch(Exception):
    """A value is not of the type that is wanted."""


def convert(value: Any, wanted: Type, name: str = "") -> Any:
    """``value`` as a value of type ``wanted``: containers are checked throughout, an int may stand for a float."""
    try:
        return _convert(value, wanted)
    except Mismatch:
        try:
            found: Any = type_of(value)
        except TypeError:
            found = type(value).__name__
        where = f" for argument '{name}'" if name else ""
        raise RuntimeError(
            f"Expected a value of type '{wanted}'{where} but instead found type '{found}'. Value: {value!r:.200}"
        ) from None


def _convert(value: Any, wanted: Type) -> Any:
    name = wanted.name
    if isinstance(wanted, NamedType):
        return _convert_named(value, wanted)
    if name == "Tensor":
        if isinstance(value, Tensor):
            return value
    elif wanted in _SCALARS:
        return _convert_scalar(value, wanted)
    elif name == "Any":
        return value
    elif name == "Optional":
        return None if value is None else _convert(value, wanted.element)
    elif name == "List":
        if isinstance(value, (list, tuple, range)):
            return [_convert(x, wanted.element) for x in value]
    elif name == "Dict":
        if isinstance(value, dict):
            return {_convert(k, wanted.args[0]): _convert(v, wanted.args[1]) for k, v in value.items()}
    elif name == "Tuple":
        if isinstance(value, (tuple, list)) and len(value) == len(wanted.args):
            return tuple(map(_convert, value, wanted.args))
    elif name == "number":
        if isinstance(value, (int, float, complex)):
            return value
    elif name == "Device":
        if isinstance(value, (device, str)):
            return device(value)
    elif name == "Union":
        for choice in wanted.args:
            try:
                if is_subtype(type_of(value), choice):
                    return _convert(value, choice)
            except TypeError:
                pass
        for choice in wanted.args if not isinstance(value, Tensor) else ():
            try:
                return _convert(value, choice)
            except Mismatch:
                pass
    elif name in ("Future", "Generator", "Stream"):
        return value
    raise Mismatch


def _convert_scalar(value: Any, wanted: Type) -> Any:
    """A number, text or device of Python's, or the element of a tensor, as one of a script."""
    python = _SCALARS[wanted]
    if type(value) is not python:
        code = number(value) if wanted is INT else None
        if code is not None:
            return code
        if wanted in (INT, FLOAT, BOOL, COMPLEX) and isinstance(value, Tensor) and value.numel() == 1:
            value = python(value.item())
        elif wanted is BOOL and hasattr(type(value), "__bool__") and not isinstance(value, Tensor):
            return bool(value)  # numbers and None have a truth value of their own; lists have a length
        elif isinstance(value, np.generic) and wanted in _TAKES:
            value = python(value.item())
        elif type(value) is bool or not isinstance(value, python):
            if not isinstance(value, _TAKES.get(wanted, ())):
                raise Mismatch
            value = python(value)
    if wanted is INT and not -(2**63) <= value < 2**63:
        raise Mismatch
    return value


#: Numbers of Python's that are given for a number of a script.
_TAKES: dict[Type, Any] = {INT: int, FLOAT: (int, float), COMPLEX: (int, float, complex)}


def _convert_named(value: Any, wanted: NamedType) -> Any:
    if isinstance(wanted, NamedTupleType):
        if isinstance(value, tuple) and len(value) == len(wanted.args):
            return wanted.cls(*map(_convert, value, wanted.args))
    elif isinstance(wanted, EnumType):
        if any(value is member for member in wanted.members.values()):
            return value
    elif isinstance(wanted, FunctionType):
        return value
    else:
        kind = getattr(value, "_kind", None)
        if kind is wanted or (
            isinstance(wanted, InterfaceType) and isinstance(kind, Type) and is_subtype(kind, wanted)
        ):
            return value
        python = getattr(wanted, "python", None)
        if kind is None and isinstance(python, type) and type(value) is python and isinstance(wanted, ClassType):
            made = ScriptObject(wanted)
            for key, t in wanted.attributes.items():
                made._fields[key] = _convert(vars(value).get(key), t)
            return made
    raise Mismatch


def walk(t: Type) -> Iterator[Type]:
    """``t`` and all its parts."""
    yield t
    for part in t.args:
        yield from walk(part)
