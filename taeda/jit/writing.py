"""Writes archives of TorchScript, in the layout that PyTorch writes and reads.

``data.pkl`` is the module and all that it holds, ``code/`` the classes and functions of the program by their
qualified names, ``constants.pkl`` the tensors that the code names, ``data/`` and ``constants/`` the bytes of tensors.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from .._core import Tensor
from ..io.archive import ArchiveWriter
from ..io.pickling import PicklingError, Writer
from ..io.saver import Saver
from ..kernels.files import atomic_write
from . import ir
from .hooks import HOOKS
from .interpreter import read_attribute
from .modules import RecursiveScriptModule, ScriptFunction, ScriptModule
from .printer import Printer, quoted
from .types import (
    BOOL,
    FLOAT,
    INT,
    TENSOR,
    ClassType,
    EnumType,
    InterfaceType,
    NamedTupleType,
    Parameter,
    ScriptObject,
    Type,
    type_of,
    walk,
)  # fmt: skip

_LISTS = {INT: "build_intlist", FLOAT: "build_doublelist", BOOL: "build_boollist", TENSOR: "build_tensorlist"}
_BASES = {True: "(Module)", False: ""}


class _Call:
    """A call in a pickle: ``module.name(*args)``."""

    def __init__(self, module: str, name: str, *args: Any) -> None:
        self.module, self.name, self.args = module, name, args


class _Instance:
    """An object with its class and state."""

    def __init__(self, kind: ClassType, state: dict[str, Any]) -> None:
        self.kind, self.state = kind, state


class _Member:
    """A member of an enum."""

    def __init__(self, kind: EnumType, value: Any) -> None:
        self.kind, self.value = kind, value


class _Pickle:
    """One pickle and the storages that it names."""

    def __init__(self) -> None:
        self.saver = Saver()
        self.made: dict[int, Any] = {}
        self.alive: list[Any] = []
        self.types: list[Type] = []

    def dump(self, value: Any, t: Type) -> bytes:
        return Writer(self._special).dump(self.prepared(value, t))

    def _special(self, writer: Writer, x: Any) -> bool:
        if isinstance(x, _Call):
            writer.call(x.module, x.name, *x.args)
        elif isinstance(x, _Instance):
            module, _, name = x.kind.name.rpartition(".")
            writer.name(module, name)
            writer.out += b")\x81"
            writer.put(id(x))
            writer.write(x.state)
            writer.out += b"b"
        elif isinstance(x, _Member):
            module, _, name = x.kind.name.rpartition(".")
            writer.name(module, name)
            writer.write(x.value)
            writer.out += b"R"
        else:
            return self.saver.special(writer, x)
        return True

    def prepared(self, value: Any, t: Type) -> Any:
        """``value`` in the form for the pickle: lists and dictionaries with their types, objects with their classes."""
        if value is None:
            return None
        if t.name in ("Optional", "Union", "Any", "number") or isinstance(t, InterfaceType):
            return self.prepared(value, value._kind if hasattr(value, "_kind") else type_of(value))
        if isinstance(t, EnumType):
            self.types.append(t)
            return _Member(t, value.value)
        known = self.made.get(id(value))
        if known is not None:
            return known
        if t.name == "List":
            items = [self.prepared(x, t.element) for x in value]
            builder = _LISTS.get(t.element)
            made: Any = _Call("torch.jit._pickle", builder, items) if builder else _tagged(items, t)
        elif t.name == "Dict":
            made = _tagged({self.prepared(k, t.args[0]): self.prepared(v, t.args[1]) for k, v in value.items()}, t)
        elif t.name == "Tuple" or isinstance(t, NamedTupleType):
            made = tuple(self.prepared(x, part) for x, part in zip(value, t.args, strict=True))
        elif isinstance(t, ClassType):
            made = self._instance(value, value._kind)
        elif isinstance(value, Tensor):
            made = plain(value)
        elif t.name in ("Future", "Function", "Generator", "Stream"):
            raise PicklingError(f"save: values of type {t} are not written")
        else:
            return value
        self.made[id(value)] = made
        self.alive.append(value)
        return made

    def _instance(self, value: Any, kind: ClassType) -> _Instance:
        self.types.append(kind)
        if kind.method("__getstate__") is not None and kind.method("__setstate__") is not None:
            getter = kind.method("__getstate__")
            made = _Instance(kind, self.prepared(getter.run(value), getter.result))
            return made
        made = self.made[id(value)] = _Instance(kind, {})
        self.alive.append(value)
        for name, t in kind.attributes.items():
            made.state[name] = self.prepared(read_attribute(value, name), t)
        return made


def _tagged(container: Any, t: Type) -> _Call:
    return _Call("torch.jit._pickle", "restore_type_tag", container, str(t))


def plain(x: Tensor) -> Tensor:
    """A tensor of the same memory that is neither a Parameter nor of a graph."""
    made = x.detach().as_subclass(Tensor)
    if x.requires_grad and x.is_leaf:
        made.requires_grad_(True)
    return made


# ---- code ------------------------------------------------------------------------------------------------------------
class _Code:
    """The text of all classes and functions that a program needs, by file."""

    def __init__(self, constants: dict[int, Any]) -> None:
        self.constants = constants
        self.files: dict[str, list[str]] = {}
        self.done: set[Any] = set()
        self.waiting: list[Any] = []

    def size(self) -> int:
        """The number of lines."""
        return sum(map(len, self.files.values()))

    def add(self, *things: Any) -> None:
        """Write things, and all that they name."""
        self.waiting += things
        while self.waiting:
            thing = self.waiting.pop()
            if isinstance(thing, Type) and not isinstance(thing, (ClassType, NamedTupleType, EnumType, InterfaceType)):
                self.waiting += [t for t in walk(thing) if t is not thing]
                continue
            key = thing.qualified if isinstance(thing, ir.Function) else thing.name
            if key in self.done or (isinstance(thing, NamedTupleType) and thing.cls is tuple):
                continue
            self.done.add(key)
            module = key.rpartition(".")[0]
            if not module.startswith("__torch__"):
                raise RuntimeError(f"save: {key} has no name that an archive may have")
            lines = self._function(thing) if isinstance(thing, ir.Function) else self._type(thing)
            self.files.setdefault(module, []).extend(lines)

    def _printer(self) -> Printer:
        return Printer(self.constants)

    def _function(self, function: ir.Function, indent: str = "") -> list[str]:
        printer = self._printer()
        lines = printer.function(function)
        self.waiting += [*printer.functions, *printer.types]
        for line in lines:
            if "^" in line and _ignored(line):
                raise RuntimeError(
                    f"save: {function.name} calls a function of Python, which has no form in an archive: {line.strip()}"
                )
        return [indent + line for line in lines]

    def _type(self, t: Any) -> list[str]:
        if isinstance(t, EnumType):
            show = self._printer().value
            return [f"class {t.short}(Enum):", *(f"  {n} = {show(m.value)}" for n, m in t.members.items())]
        if isinstance(t, NamedTupleType):
            self.waiting += t.args
            lines = [f"  {name} : {kind}" for name, kind in zip(t.fields, t.args, strict=True)]
            return [f"class {t.short}(NamedTuple):", *(lines or ["  pass"])]
        if isinstance(t, InterfaceType):
            lines = [f"class {t.short}({'ModuleInterface' if t.is_module else 'Interface'}):"]
            for name, (parameters, result) in t.methods.items():
                self.waiting += [result, *(p.type for p in parameters)]
                shown = ", ".join([f"self: {t}", *(f"{p.name}: {p.type}" for p in parameters)])
                lines += [f"  def {name}({shown}) -> {result}:", "    pass"]
            return lines
        return self._class(t)

    def _class(self, t: ClassType) -> list[str]:
        lines = [f"class {t.short}{_BASES[t.is_module]}:"]
        if t.is_module:
            for word, names in (("__parameters__", t.parameters), ("__buffers__", t.buffers)):
                lines.append(f"  {word} = [{', '.join(quoted(n) for n in t.attributes if n in names)}]")
            for word, hooks in (("__forward_pre_hooks__", t.pre_hooks), ("__forward_hooks__", t.hooks)):
                if hooks:
                    lines.append(f"  {word} = [{', '.join(map(quoted, hooks))}]")
        for name, kind in t.attributes.items():
            self.waiting.append(kind)
            plain_name = name.isidentifier()
            lines.append(f"  {name} : {kind}" if plain_name else f"  __annotations__[{quoted(name)}] = {kind}")
        for function in list(t.methods.values()):
            if isinstance(function, ir.Function):
                lines += self._function(function, "  ")
        return lines if len(lines) > 1 else [*lines, "  pass"]


def _code_of(types: list[Type]) -> _Code:
    code = _Code({})
    code.add(*types)
    return code


def _ignored(line: str) -> bool:
    """Whether a line calls a function of Python; ``^`` in a string does not count."""
    quoted_text = False
    for i, c in enumerate(line):
        if c == '"' and (i == 0 or line[i - 1] != "\\"):
            quoted_text = not quoted_text
        elif c == "^" and not quoted_text:
            return True
    return False


# ---- files -----------------------------------------------------------------------------------------------------------
def _as_module(function: ir.Function) -> RecursiveScriptModule:
    """A module whose ``forward`` is a function."""
    kind = ClassType("__torch__.ScriptProgram", True)
    kind.attributes["training"] = BOOL
    forward = ir.Function(
        f"{kind.name}.forward", [Parameter("self", kind), *function.parameters], function.result, None, kind
    )
    names = [ir.Var(i + 1, p.name, p.type) for i, p in enumerate(function.parameters)]
    forward.body = [ir.Return(ir.Call(function, list(names), function.result))]
    kind.methods["forward"] = forward
    return RecursiveScriptModule(kind)


def save(m: Any, f: Any, _extra_files: dict | None = None) -> None:
    """Write a script module or function as an archive, which :func:`taeda.jit.load` and ``torch.jit.load`` read.

    Args:
        m: what :func:`script`, :func:`trace` or :func:`load` gave.
        f: a path, or a file open for writing in binary. A path is replaced all at once.
        _extra_files: more files by name, text or bytes.
    Raises:
        RuntimeError: it calls a function of Python (one that is ignored), or is no script.
    """
    if isinstance(m, ScriptFunction):
        m = _as_module(m.function.define())
    if not isinstance(m, ScriptModule):
        raise RuntimeError(f"save: expected a script module or function, got {type(m).__name__}; see taeda.jit.script")
    m = m._script()
    data, held = _Pickle(), _Pickle()
    pickled = data.dump(m, m._kind)
    code, size = _code_of(data.types), -1
    while size != (size := code.size()):  # to write a method may compile others, of classes that were written before
        code = _code_of(data.types)
    items = list(code.constants.values())
    kinds = [x._kind if isinstance(x, ScriptObject) else TENSOR for x in items]
    constant = held.dump(tuple(items), Type("Tuple", *kinds))
    code.add(*held.types)
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        with atomic_write(f) as file:
            _write(file, folder, (pickled, data), (constant, held), code, _extra_files)
        return
    buffer = io.BytesIO()
    _write(buffer, "archive", (pickled, data), (constant, held), code, _extra_files)
    f.write(buffer.getvalue())


def _write(file: Any, folder: str, data: tuple, constants: tuple, code: _Code, extra: dict | None) -> None:
    archive = ArchiveWriter(file, folder)
    for name, (pickled, pickle) in (("data", data), ("constants", constants)):
        archive.add(f"{name}.pkl", pickled)
        for key, _, storage in pickle.saver.storages.values():
            archive.add(f"{name}/{key}", storage.cpu()._readable())
    for module, lines in code.files.items():
        archive.add(f"code/{module.replace('.', '/')}.py", "".join(f"{line}\n" for line in lines).encode())
    for name, content in (extra or {}).items():
        archive.add(f"extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
    archive.add("version", b"10\n")  # the ops are those of PyTorch 2.x
    archive.add("byteorder", sys.byteorder.encode())
    archive.close()


HOOKS["save"] = save
