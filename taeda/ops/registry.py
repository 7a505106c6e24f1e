"""Names of ops: plain names for the library's ops, ``namespace::name`` for a program's.

An op that a program declares never takes the place of one of the library's. It becomes a method of Tensor only if the
stanza says ``method=True``, and never an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .._core import Composite, Op, Tensor, install

#: Every op and composite by name.
OPS: dict[str, Any] = {}

#: Names installed on Tensor, and the functions that they run.
METHODS: dict[str, Any] = {}

#: By namespace, the ops that their stanza makes a public name of it (the trait `public`).
PUBLIC: dict[str, dict[str, Any]] = {"taeda": {}, "special": {}, "linalg": {}, "fft": {}}

#: Namespaces that no program may declare ops in.
RESERVED = frozenset(("aten", "prim", "prims", "taeda", "torch"))

_PACKAGE = __name__.partition(".")[0]


class Rules:
    """Rules for ops: by an op's name, or by its family, which the trait ``batch`` names."""

    def __init__(self) -> None:
        self.own: dict[str, Callable] = {}
        self.families: dict[str, Callable] = {}

    def rule(self, *names: str) -> Callable:
        """Decorator: the rule of the ops called ``names``."""

        def declare(function: Callable) -> Callable:
            self.own.update(dict.fromkeys(names, function))
            return function

        return declare

    def family(self, name: str) -> Callable:
        """Decorator: the rule of the ops whose trait ``batch`` is ``name``."""
        return lambda function: self.families.setdefault(name, function)

    def of(self, op: Op) -> Callable | None:
        """The rule of ``op``, or of its family."""
        return self.own.get(op.name) or self.families.get(op.traits.get("batch", ""))


def of_library(function: Any) -> bool:
    """Whether ``function`` is written in this package, and not in a program."""
    return function.__module__.partition(".")[0] == _PACKAGE


def name_of(function: Any) -> str:
    """The name of an op, a composite, an overload or a function of Python, as rules and messages have it."""
    name = getattr(function, "name", None)
    return (name() if callable(name) else name) or getattr(function, "__name__", str(function))


def is_in_place(function: Any) -> bool:
    """Whether ``function``, an op, a composite or the name of a method, is an in-place form: it writes to its first
    argument."""
    name = function if isinstance(function, str) else name_of(function)
    return function.writes if isinstance(function, Op) else name.endswith("_") and not name.endswith("__")


def op_of(function: Any) -> Any:
    """The op or composite that ``function`` is a further name of (see ``alias``), which rules are for; any other
    function as it is."""
    named = function.function if type(function) is Composite else None
    return named if type(named) in (Op, Composite) else function


def name_within(module: dict[str, Any], prefix: str, names: Iterable[str]) -> None:
    """Make those ``names`` of a module functions of their own, each called ``prefix`` and its name, as in PyTorch."""
    for name in names:
        made = module[name] = _core.renamed(module[name], prefix + name)
        made.__module__, made.__qualname__ = module["__name__"], name  # where pickle finds it


def label_of(function: Any, name: str | None = None) -> str:
    """The name under which ``function`` is registered.

    Args:
        name: its plain or qualified name, if it is not that of the function. A program's op without a namespace gets
            the name of the package or file that declares it.
    Raises:
        ValueError: the name is the library's, or belongs to another module of the program, or is no name.
    """
    name = name or function.__name__
    if of_library(function):
        return name
    namespace, _, short = name.rpartition("::")
    if not namespace:
        if short in OPS or hasattr(Tensor, short):
            raise ValueError(
                f"{short}: the library has an op of this name. Choose another, or a namespace: name='mylib::{short}'"
            )
        namespace = function.__module__.partition(".")[0]
    label = f"{namespace}::{short}"
    if namespace in RESERVED:
        raise ValueError(f"{label}: ops of the namespace '{namespace}' are the library's; choose another namespace")
    if not (namespace.isidentifier() and short.isidentifier()):
        raise ValueError(f"{label}: expected a name like 'mylib::softabs'")
    known = OPS.get(label)
    if known is not None and known.__module__ != function.__module__:
        raise ValueError(f"{label}: the module {known.__module__} has declared an op of this name")
    return label


def check_method(label: str) -> None:
    """Raise where a program's op would replace a method of Tensor.

    Raises:
        ValueError: there is such a method, and it is not an earlier declaration of the same op.
    """
    namespace, _, short = label.rpartition("::")
    if namespace and hasattr(Tensor, short) and (label not in OPS or of_library(METHODS.get(short, Tensor))):
        raise ValueError(f"{label}: Tensor has a method '{short}'; choose another name, or leave out method=True")


def register(label: str, function: Any) -> None:
    """Make ``function`` known as ``label``, and bind it to the operator of that name, if there is one."""
    OPS[label] = function
    _core.bind_operator(label, function)  # no operator has a qualified name


def make_public(label: str, function: Any, namespace: str) -> None:
    """Make ``function`` the public name ``label`` of a namespace of the library, such as ``"taeda"`` or ``"special"``.

    Raises:
        ValueError: the op is a program's, or there is no such namespace.
    """
    if "::" in label:
        raise ValueError(f"{label}: public={namespace!r} is for the library's ops; a program imports its own")
    if namespace not in PUBLIC:
        raise ValueError(f"{label}: public={namespace!r} is none of the namespaces {', '.join(PUBLIC)}")
    PUBLIC[namespace][label.removeprefix(namespace + "_")] = function


def add_method(label: str, function: Any) -> None:
    """Make ``function`` the method of Tensor called ``label``, without its namespace."""
    check_method(label)
    short = label.rpartition("::")[2]
    METHODS[short] = function
    install(short, function)


def find_op(label: str) -> Any:
    """The op called ``label`` (for unpickling).

    Raises:
        LookupError: nothing has declared it.
    """
    if label not in OPS:
        raise LookupError(f"there is no op '{label}'; import the module that declares it first")
    return OPS[label]
