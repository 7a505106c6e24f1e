"""Modules, functions and methods of scripts, as programs hold them. They run without their source."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import nn
from .._core import Tensor
from . import ir, printer
from .graph import Graph, build
from .hooks import HOOKS
from .marks import is_ignored, is_unused
from .types import ClassType, convert


class ScriptFunction:
    """A function that is compiled. Called from Python it checks its arguments."""

    def __init__(self, function: ir.Function, python: Any = None) -> None:
        self.function = function
        self._python = python
        self.__name__ = self.name = function.name
        self.__doc__ = getattr(python, "__doc__", None)
        if python is not None:
            self.__wrapped__ = python
            self.__module__ = getattr(python, "__module__", __name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = HOOKS["recorder"]()
        return (
            self.function(*args, **kwargs) if recorder is None else recorder.call_function(self.function, args, kwargs)
        )

    @property
    def qualified_name(self) -> str:
        """The name that archives have for it."""
        return self.function.qualified

    @property
    def schema(self) -> str:
        """Name, arguments and result."""
        return self.function.define().schema()

    @property
    def code(self) -> str:
        """The function as TorchScript code."""
        return printer.code(self.function)

    @property
    def graph(self) -> Graph:
        """The function's graph."""
        return build(self.function)

    @property
    def inlined_graph(self) -> Graph:
        """The graph with the functions that it calls in their places."""
        return build(self.function, inline=True)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write an archive; see :func:`taeda.jit.save`."""
        HOOKS["save"](self, f, _extra_files)

    def __repr__(self) -> str:
        return f"<taeda.jit.ScriptFunction {self.schema}>"


class ScriptMethod(ScriptFunction):
    """A method of a script module, bound to it."""

    def __init__(self, owner: RecursiveScriptModule, function: ir.Function) -> None:
        super().__init__(function)
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.owner, *args, **kwargs)


class ScriptModule(nn.Module):
    """A module that is written to be a script: it runs as Python, and is compiled when its code is asked for or
    saved."""

    def _script(self) -> RecursiveScriptModule:
        return HOOKS["script"](self)

    @property
    def code(self) -> str:
        """``forward`` as TorchScript code."""
        return self._script().code

    @property
    def graph(self) -> Graph:
        """The graph of ``forward``."""
        return self._script().graph

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write an archive; see :func:`taeda.jit.save`."""
        HOOKS["save"](self._script(), f, _extra_files)


class RecursiveScriptModule(ScriptModule):
    """A module of an archive or of :func:`taeda.jit.script`.

    ``_kind`` knows its methods. Parameters, buffers and modules are where every module has them, other attributes in
    ``_attributes``.
    """

    def __init__(self, kind: ClassType) -> None:
        super().__init__()
        self.__dict__["_kind"] = kind
        self.__dict__["_attributes"] = {}

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return self._kind.short

    def _get_name(self) -> str:
        return self.original_name if self.__dict__.get("_is_traced") else "RecursiveScriptModule"

    def extra_repr(self) -> str:
        """The original name."""
        return f"original_name={self.original_name}"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The script's ``forward``.

        Raises:
            RuntimeError: it has none, or arguments are of other types than it takes.
        """
        method = self._kind.method("forward")
        if isinstance(method, ir.Function):
            return method(self, *args, **kwargs)
        failed: Exception = NotImplementedError(f"{self.original_name} has no method 'forward' that is compiled")
        number = 0
        while isinstance(method := self._kind.method(f"forward__{number}"), ir.Function):  # the first that fits
            try:
                method.bind((self, *args), kwargs)
            except RuntimeError as error:
                failed, number = error, number + 1
                continue
            return method(self, *args, **kwargs)
        raise failed

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            space = self.__dict__
            kind: ClassType | None = space.get("_kind")
            if kind is None:
                raise
            if name in space["_attributes"]:
                return space["_attributes"][name]
            if name in kind.constants:
                return kind.constants[name]
            original = space.get("_original")  # the scripted module, for functions that stay in Python
            plain = getattr(type(original), name, None)
            if callable(plain) and (is_ignored(plain) or is_unused(plain)):
                return types.MethodType(getattr(vars(original).get(name), "__func__", plain), self)
            found = kind.method(name)
            if isinstance(found, ir.Function):
                return ScriptMethod(self, found)
            if callable(found):  # a function that is ignored
                return lambda *args, **kwargs: found(self, *args, **kwargs)
            if original is not None and name in vars(original):
                return vars(original)[name]
            raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'") from None

    def __setattr__(self, name: str, value: Any) -> None:
        kind: ClassType = self.__dict__.get("_kind")  # type: ignore[assignment]
        if kind is not None and name in self.__dict__.get("_attributes", ()):
            self._attributes[name] = convert(value, kind.attributes[name], name)
            return
        tables = [self.__dict__.get(t, ()) for t in ("_parameters", "_buffers", "_modules")]
        if kind is not None and name in kind.attributes and isinstance(value, Tensor):
            for table in tables[:2]:
                if name in table:
                    table[name] = value
                    return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._attributes, *self._kind.constants, *self._kind.methods})

    def __len__(self) -> int:
        return self._special("__len__")()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __contains__(self, key: Any) -> bool:
        return self._special("__contains__")(key)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and not isinstance(key, bool):
            return list(self._modules.values())[key]
        return self._modules[key] if key in self._modules else self._special("__getitem__")(key)

    def __bool__(self) -> bool:
        return True

    def _special(self, name: str) -> Callable:
        method = self._kind.method(name)
        if not isinstance(method, ir.Function):
            if name == "__len__" and self._modules:
                return lambda: len(self._modules)
            if name == "__contains__":
                return lambda key: key in self._modules
            raise TypeError(f"'{self.original_name}' object has no {name}")
        return ScriptMethod(self, method)

    def __copy__(self) -> RecursiveScriptModule:
        made = RecursiveScriptModule.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for table in ("_parameters", "_buffers", "_modules", "_attributes"):
            made.__dict__[table] = dict(self.__dict__[table])
        return made

    def __deepcopy__(self, memo: dict) -> RecursiveScriptModule:
        import copy

        made = RecursiveScriptModule.__new__(type(self))
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            made.__dict__[key] = value if key in ("_kind", "_original") else copy.deepcopy(value, memo)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a script module is not pickled: save it with taeda.jit.save")

    def _method(self, name: str) -> ScriptMethod:
        found = self._kind.method(name)
        if not isinstance(found, ir.Function):
            raise AttributeError(f"'{self.original_name}' has no compiled method {name!r}")
        return ScriptMethod(self, found)

    @property
    def code(self) -> str:
        """``forward`` as TorchScript code."""
        return self._method("forward").code

    @property
    def code_with_constants(self) -> tuple[str, dict[str, Any]]:
        """``code``, and the constants that it names."""
        found: dict[int, Any] = {}
        return printer.code(self._method("forward").function, found), {f"c{i}": v for i, v in enumerate(found.values())}

    @property
    def graph(self) -> Graph:
        """The graph of ``forward``."""
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph of ``forward`` with the functions and methods that it calls in their places."""
        return self._method("forward").inlined_graph

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write an archive; see :func:`taeda.jit.save`."""
        HOOKS["save"](self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """An archive, as bytes."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()


class TopLevelTracedModule(RecursiveScriptModule):
    """A module that was traced."""


TracedModule = TopLevelTracedModule
