"""The form that programs have between their source and their run: typed expressions and statements in blocks.

Variables are numbered places of a frame. An expression knows its type; a function knows its parameters, its result and
its body. :mod:`.interpreter` makes closures of it, :mod:`.printer` code, :mod:`.graph` a graph of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import CompileError
from .hooks import HOOKS
from .schemas import Schema
from .types import BOOL, NONE, REQUIRED, ClassType, Parameter, Type, convert


class Expr:
    """Something with a value of type ``type``."""

    type: Type


@dataclass(slots=True)
class Const(Expr):
    """A value that is known."""

    value: Any
    type: Type
    name: str = ""  # a tensor's or object's name among an archive's constants


@dataclass(slots=True)
class Var(Expr):
    """The value of a variable; ``type`` may be narrower than the variable's own."""

    slot: int
    name: str
    type: Type


@dataclass(slots=True)
class GetAttr(Expr):
    """An attribute of an instance of a class, or of a module."""

    object: Expr
    name: str
    type: Type


@dataclass(slots=True)
class Op(Expr):
    """A call of an op. ``args`` are as many as the schema's parameters, None if left out; ``rest`` are variadic."""

    schema: Schema
    args: list[Expr | None]
    type: Type
    rest: list[Expr] = field(default_factory=list)


@dataclass(slots=True)
class Call(Expr):
    """A call of a function, or of a method whose first argument is the object; ``args`` as many as it has
    parameters."""

    function: Function
    args: list[Expr]
    type: Type


@dataclass(slots=True)
class Invoke(Expr):
    """A call of a method that is looked up on the object: one of an interface."""

    object: Expr
    name: str
    args: list[Expr]
    type: Type


@dataclass(slots=True)
class PythonCall(Expr):
    """A call of a function of Python: one that is ignored."""

    function: Callable
    name: str
    args: list[Expr]
    type: Type


@dataclass(slots=True)
class New(Expr):
    """A new instance, after its ``__init__``, if there is one."""

    type: ClassType
    init: Function | None
    args: list[Expr]


@dataclass(slots=True)
class MakeTuple(Expr):
    """A tuple, or a named one."""

    items: list[Expr]
    type: Type


@dataclass(slots=True)
class MakeList(Expr):
    """A list."""

    items: list[Expr]
    type: Type


@dataclass(slots=True)
class MakeDict(Expr):
    """A dictionary."""

    keys: list[Expr]
    values: list[Expr]
    type: Type


@dataclass(slots=True)
class TupleItem(Expr):
    """An element of a tuple."""

    object: Expr
    index: int
    type: Type


@dataclass(slots=True)
class TupleSlice(Expr):
    """Some elements of a tuple."""

    object: Expr
    index: slice
    type: Type


@dataclass(slots=True)
class Both(Expr):
    """``a and b`` or ``a or b`` of two bools."""

    a: Expr
    b: Expr
    is_and: bool
    type: Type = BOOL


@dataclass(slots=True)
class Choose(Expr):
    """``a if condition else b``."""

    condition: Expr
    a: Expr
    b: Expr
    type: Type


@dataclass(slots=True)
class Cast(Expr):
    """The same value under another type: ``annotate``, ``unchecked_cast``."""

    value: Expr
    type: Type
    word: str = "annotate"


@dataclass(slots=True)
class IsInstance(Expr):
    """Whether a value is of one of some types."""

    value: Expr
    types: list[Type]
    type: Type = BOOL


@dataclass(slots=True)
class Iterate(Expr):
    """The values that a loop goes over: ``range``, ``enumerate``, ``zip`` of ``parts``, or one list, text or dictionary
    (``""``)."""

    word: str
    parts: list[Expr]
    type: Type


@dataclass(slots=True)
class Comprehension(Expr):
    """``[value for target in over if condition]``, or of a dictionary where there is a ``key``."""

    target: list[Any]
    over: Iterate
    condition: Expr | None
    key: Expr | None
    value: Expr
    type: Type


@dataclass(slots=True)
class Fork(Expr):
    """A call whose result is a future."""

    call: Expr
    type: Type


@dataclass(slots=True)
class Block(Expr):
    """A value after some statements."""

    body: list[Stmt]
    value: Expr
    type: Type


# ---- statements ------------------------------------------------------------------------------------------------------
class Stmt:
    """Something done. ``line`` is where the source has it, 0 where there is none."""

    line: int = 0


@dataclass(slots=True)
class Assign(Stmt):
    """``name = value``."""

    target: Var
    value: Expr
    line: int = 0


@dataclass(slots=True)
class Unpack(Stmt):
    """``a, (b, c), *d = value``: targets are Vars, nested lists of them, or a Star."""

    targets: list[Any]
    value: Expr
    line: int = 0


@dataclass(slots=True)
class Star:
    """``*name`` among targets."""

    target: Var


@dataclass(slots=True)
class SetAttr(Stmt):
    """``object.name = value``."""

    object: Expr
    name: str
    value: Expr
    line: int = 0


@dataclass(slots=True)
class Do(Stmt):
    """An expression for its effect."""

    value: Expr
    line: int = 0


@dataclass(slots=True)
class If(Stmt):
    """``if``."""

    condition: Expr
    then: list[Stmt]
    other: list[Stmt]
    line: int = 0


@dataclass(slots=True)
class While(Stmt):
    """``while``."""

    condition: Expr
    body: list[Stmt]
    line: int = 0


@dataclass(slots=True)
class For(Stmt):
    """``for target in over``."""

    target: list[Any]
    over: Iterate
    body: list[Stmt]
    line: int = 0


@dataclass(slots=True)
class With(Stmt):
    """``with value as target``; ``enter`` and ``exit`` are its methods."""

    value: Expr
    target: Var | None
    enter: Function
    exit: Function
    body: list[Stmt]
    slot: int
    line: int = 0


@dataclass(slots=True)
class Leave(Stmt):
    """``break`` or ``continue``."""

    word: str
    line: int = 0


@dataclass(slots=True)
class Return(Stmt):
    """``return value``."""

    value: Expr
    line: int = 0


@dataclass(slots=True)
class Raise(Stmt):
    """``raise kind(message)``."""

    kind: str
    message: Expr | None
    line: int = 0


# ---- functions -------------------------------------------------------------------------------------------------------
class Function:
    """A function: ``define(function)`` fills in its body when it is first needed.

    Args:
        name: qualified, such as ``__torch__.f``.
        parameters: with a method, ``self`` is the first.
        result: its type; None where the body decides.
        define: sets ``body``, ``slots`` and ``result``.
    """

    def __init__(
        self, name: str, parameters: list[Parameter], result: Type | None,
        define: Callable[[Function], None] | None = None, owner: ClassType | None = None,
    ) -> None:  # fmt: skip
        self.qualified, self.parameters, self._result = name, parameters, result
        self.name = name.rpartition(".")[2]
        self.owner = owner
        self.body: list[Stmt] = []
        self.slots = len(parameters)
        self._define, self.defining = define, False
        self._run: Callable | None = None
        self.source = ""

    def define(self) -> Function:
        """Make the body, if it is not there yet.

        Raises:
            RuntimeError: the function calls itself, and its type is not known.
        """
        if self._define is not None:
            if self.defining:
                raise CompileError(f"function '{self.name}' is called recursively. Recursive calls are not supported")
            self.defining = True
            try:
                self._define(self)
            finally:
                self.defining = False
            self._define = None
        return self

    @property
    def result(self) -> Type:
        if self._result is None:
            self.define()
        return NONE if self._result is None else self._result

    @result.setter
    def result(self, value: Type) -> None:
        self._result = value

    @property
    def declared(self) -> Type | None:
        """The type of the result as far as it is known without the body."""
        return self._result

    @property
    def run(self) -> Callable:
        """The callable that computes it. It takes all arguments by position, as values of their types."""
        if self._run is None:
            self._run = HOOKS["compile"](self.define())
        return self._run

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The values of all parameters, for a call from Python."""
        values = []
        if len(args) > len(self.parameters):
            self._fail(
                f"expected at most {len(self.parameters)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self.schema()}"
            )
        for i, p in enumerate(self.parameters):
            if i < len(args):
                if p.name in kwargs:
                    self._fail(f"Argument '{p.name}' specified both as positional and keyword argument")
                value = args[i]
            elif p.name in kwargs:
                value = kwargs[p.name]
            elif p.default is not REQUIRED:
                values.append(p.default)
                continue
            else:
                self._fail(f"is missing value for argument '{p.name}'. Declaration: {self.schema()}", " ")
            try:
                values.append(convert(value, p.type, p.name))
            except RuntimeError as error:
                raise RuntimeError(f"{self.name}() {error}\nPosition: {i}\nDeclaration: {self.schema()}") from None
        unknown = set(kwargs) - {p.name for p in self.parameters}
        if unknown:
            self._fail(f"Unknown keyword argument '{sorted(unknown)[0]}'. Declaration: {self.schema()}")
        return values

    def _fail(self, text: str, between: str = " ") -> Any:
        raise RuntimeError(f"{self.name}(){between}{text}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for arguments from Python."""
        values = self.bind(args, kwargs)
        try:
            return self.run(*values)
        except RuntimeError:
            raise
        except Exception as error:
            raise RuntimeError(f"{self.name}(): {type(error).__name__}: {error}") from error

    def schema(self) -> str:
        """Name, parameters and result, as PyTorch shows them."""
        parts = []
        for p in self.parameters:
            default = "" if p.default is REQUIRED else f"={p.default!r}"
            parts.append(f"{p.type} {p.name}{default}")
        return f"{self.name}({', '.join(parts)}) -> {self.result}"


def define_all(functions: list[Function]) -> None:
    """Make the bodies of functions and of all that they call, so that errors are raised before anything runs."""
    waiting, done = list(functions), set()
    while waiting:
        function = waiting.pop()
        if id(function) not in done:
            done.add(id(function))
            waiting += _called(function.define().body)


def _called(node: Any) -> Iterator[Function]:
    if isinstance(node, list):
        for part in node:
            yield from _called(part)
    elif isinstance(node, (Expr, Stmt)):
        for f in fields(node):  # type: ignore[arg-type]
            value = getattr(node, f.name)
            if isinstance(value, Function):
                yield value
            elif isinstance(value, (list, Expr)):
                yield from _called(value)
