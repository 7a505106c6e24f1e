"""Reads archives of TorchScript: code, constants and data of a program that PyTorch or taeda wrote.

An archive is not trusted. Its code is parsed and compiled by :mod:`.frontend`, which knows the ops of a table and no
other function; its pickles are read by taeda's own reader, which makes data, and objects of the archive's own classes.
"""

from __future__ import annotations

import ast
import mmap
import os
import warnings
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from ..io.checkpoint import ZipLoader, read_all
from ..io.objects import find as find_data
from ..io.pickling import Constructor, Reader, UnpicklingError
from . import hooked, ir
from .errors import Source
from .frontend import FORM_NAMES, Form, Frontend, FunctionRef, OpName, Sugar, TypeRef, Value
from .modules import RecursiveScriptModule
from .types import (
    BOOL,
    INT,
    NONE,
    PLAIN,
    REQUIRED,
    TENSOR,
    ClassType,
    EnumType,
    EnumValue,
    InterfaceType,
    Mismatch,
    NamedTupleType,
    Parameter,
    ScriptObject,
    Type,
    _convert,
    type_of,
)  # fmt: skip

MAX_CODE = 2**26  # bytes of one file of code
#: Errors that damaged code leads to, unless a more precise message is raised.
_DAMAGE = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, SyntaxError)
MAX_NESTING = 90  # parentheses that are open at once, and levels of indentation


class Space(Sugar):
    """A part of a qualified name: ``torch``, ``ops.prim``, ``__torch__.torch.nn``."""

    def __init__(self, path: str) -> None:
        self.path = path


class ArchiveFrontend(Frontend):
    """Compiles a function of an archive."""

    def __init__(self, function: ir.Function, unit: Unit, source: Source) -> None:
        super().__init__(function, source)
        self.unit = unit

    def global_name(self, name: str, node: ast.AST) -> Value:
        """The value of ``name`` in the language."""
        if name in ("torch", "ops", "CONSTANTS", "__torch__"):
            return Space(name)
        if name in FORM_NAMES:
            return Form(name)
        if name in PLAIN:
            return TypeRef(PLAIN[name])
        if name in ("inf", "nan", "infj", "nanj"):
            value = float(name[:3])
            return ir.Const(
                complex(0, value) if name.endswith("j") else value, PLAIN["complex" if name.endswith("j") else "float"]
            )
        return None

    def attribute_of(self, value: Sugar, name: str, node: ast.AST) -> Value:
        """The value of a qualified name, or of its part so far."""
        if not isinstance(value, Space):
            return None
        path = value.path
        if path == "torch":
            return Form("fork") if name == "fork" else OpName(f"aten::{name}")
        if path == "CONSTANTS":
            found = self.unit.constant(name)
            return ir.Const(found, type_of(found), name)
        if path == "ops":
            return Space(f"ops.{name}")
        if path.startswith("ops."):
            return OpName(f"{path[4:]}::{name}")
        whole = f"{path}.{name}"
        found = self.unit.find(whole)
        if found is not None:
            return FunctionRef(found) if isinstance(found, ir.Function) else TypeRef(found)
        return Space(whole)

    def type_of_sugar(self, value: Sugar, node: ast.AST) -> Type | None:
        """The type that a name stands for."""
        return value.type if isinstance(value, TypeRef) else None

    def op(self, qualified: str, args: list[ir.Expr], keywords: dict[str, ir.Expr], node: ast.AST) -> ir.Expr:
        """An op, as it was when the archive was written."""
        if self.unit.version < 4 and qualified == "aten::div" and len(args) == 2 and args[0].type == TENSOR:
            qualified = "prim::OldDiv"
        if self.unit.version < 5 and qualified == "aten::full" and len(args) > 1 and args[1].type in (INT, BOOL):
            self.fail(node, "full with an int or a bool gave floats in archives of versions below 5: not supported")
        return super().op(qualified, args, keywords, node)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """An attribute; ``__new__`` of a class makes an instance before its ``__init__`` is called."""
        if name == "__new__" and isinstance(value, TypeRef) and isinstance(value.type, ClassType):
            return New(value.type)
        return super().attribute(value, name, node)

    def call_other(self, callee: Sugar, node: ast.Call, hint: Type | None) -> Value:
        """``C.__new__(C)``, and what ``fork`` is given: a local function without arguments."""
        if isinstance(callee, New) and not callee.type.is_module:
            return ir.New(callee.type, None, [])
        return super().call_other(callee, node, hint)

    def statement(self, node: ast.stmt, out: list[ir.Stmt]) -> bool:
        """A statement, or a function that is forked."""
        if isinstance(node, ast.FunctionDef):
            last = node.body[-1]
            if node.args.args or not isinstance(last, ast.Return) or last.value is None:
                self.fail(node, "a local function has no arguments, and returns a value")
            self.scopes[-1][node.name] = Local(node)
            return False
        return super().statement(node, out)

    def form(self, name: str, node: ast.Call, hint: Type | None) -> Value:
        """``fork(f)`` of a local function is a block that runs now; all else is the language's."""
        local = self.emit(node.args[0]) if name == "fork" and len(node.args) == 1 else None
        if not isinstance(local, Local):
            return super().form(name, node, hint)
        self.scopes.append({})
        try:
            body, _ = self.block(local.node.body[:-1])
            last = local.node.body[-1]
            assert isinstance(last, ast.Return) and last.value is not None
            value = self.expr(last.value)
        finally:
            self.scopes.pop()
        return ir.Fork(ir.Block(body, value, value.type), Type("Future", value.type))


class New(Sugar):
    """``C.__new__``."""

    def __init__(self, type: ClassType) -> None:
        self.type = type


class Local(Sugar):
    """A function within a function."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node


class Unit:
    """The code of one archive: classes and functions by qualified name, compiled when first asked for."""

    def __init__(self, read: Callable[[str], str | None], constants: Callable[[], Any]) -> None:
        self.read, self.read_constants = read, constants
        self.frontend: type[ArchiveFrontend] = ArchiveFrontend
        self.version = 10  # the file's version: the meaning of some ops changed between versions
        self.files: dict[str, dict[str, tuple[ast.stmt, Source]] | None] = {}
        self.found: dict[str, Any] = {}
        self.functions: list[ir.Function] = []
        self._constants: Any = None

    def constant(self, name: str) -> Any:
        """``CONSTANTS.c0``."""
        if self._constants is None:
            self._constants = self.read_constants()
        if not name.startswith("c") or not name[1:].isdigit() or not isinstance(self._constants, tuple):
            raise RuntimeError(f"load: the archive has no constant {name!r}")
        if int(name[1:]) >= len(self._constants):
            raise RuntimeError(f"load: the archive has {len(self._constants)} constants, {name!r} is asked for")
        return self._constants[int(name[1:])]

    def definitions(self, module: str) -> dict[str, tuple[ast.stmt, Source]]:
        """The classes and functions of a file of code, by name."""
        if module not in self.files:
            text = self.read("code/" + module.replace(".", "/") + ".py")
            self.files[module] = None if text is None else parse_file(text, module)
        return self.files[module] or {}

    def find(self, qualified: str) -> Any:
        """The Function or Type of a qualified name, or None."""
        if qualified in self.found:
            return self.found[qualified]
        module, _, name = qualified.rpartition(".")
        entry = self.definitions(module).get(name)
        if entry is None:
            return None
        node, source = entry
        if isinstance(node, ast.FunctionDef):
            made: Any = self.function(qualified, node, source, None)
        else:
            assert isinstance(node, ast.ClassDef)
            made = self.class_of(qualified, node, source)
        self.found[qualified] = made
        return made

    # ---- functions --------------------------------------------------------------------------------------------------
    def scratch(self, source: Source) -> ArchiveFrontend:
        """A front end that reads types and constants outside of functions."""
        return self.frontend(ir.Function("types", [], NONE), self, source)

    def function(self, qualified: str, node: ast.FunctionDef, source: Source, owner: ClassType | None) -> ir.Function:
        """A function whose body is compiled later."""
        front = self.scratch(source)
        a = node.args
        if a.vararg or a.kwarg or a.posonlyargs or node.decorator_list:
            source.fail(node, "functions of archives have plain parameters")
        names = [*a.args, *a.kwonlyargs]
        defaults = [None] * (len(a.args) - len(a.defaults)) + list(a.defaults) + list(a.kw_defaults)
        parameters = []
        for i, (arg, default) in enumerate(zip(names, defaults, strict=True)):
            t: Type = owner if owner is not None and i == 0 else front.annotation(arg.annotation)
            value = REQUIRED if default is None else self._value(front, default, t)
            parameters.append(Parameter(arg.arg, t, value))
        result = front.annotation(node.returns) if node.returns is not None else None

        def define(function: ir.Function) -> None:
            self.frontend(function, self, source).compile(node.body)

        made = ir.Function(qualified, parameters, result, define, owner)
        self.functions.append(made)
        return made

    def _value(self, front: ArchiveFrontend, node: ast.expr, t: Type) -> Any:
        """The value of a default or of a class's constant."""
        try:
            return _convert(_literal(front.coerce(front.expr(node, t), t, node, "a constant")), t)
        except (Mismatch, TypeError) as error:
            front.fail(node, f"this is no value of type {t}: {error}")

    # ---- classes ----------------------------------------------------------------------------------------------------
    def class_of(self, qualified: str, node: ast.ClassDef, source: Source) -> Type:
        """A class, module, named tuple, enum or interface."""
        base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        if base == "NamedTuple":
            return self._named_tuple(qualified, node, source)
        if base == "Enum":
            return self._enum(qualified, node, source)
        if base in ("Interface", "ModuleInterface"):
            return self._interface(qualified, node, source, base == "ModuleInterface")
        kind = self.found[qualified] = ClassType(qualified, base == "Module")
        front = self.scratch(source)
        methods: dict[str, ast.FunctionDef] = {}
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                methods[statement.name] = statement
            else:
                self._member(kind, statement, front)

        def find(name: str) -> ir.Function | None:
            found = methods.get(name)
            return None if found is None else self.function(f"{qualified}.{name}", found, source, kind)

        kind.find = find
        kind.method_names = list(methods)
        return kind

    def _member(self, kind: ClassType, node: ast.stmt, front: ArchiveFrontend) -> None:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            t = front.annotation(node.annotation)
            if node.value is None:
                kind.attributes[node.target.id] = t
            else:
                kind.constants[node.target.id] = self._value(front, node.value, t)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("__parameters__", "__buffers__", "__forward_pre_hooks__", "__forward_hooks__"):
                held = ast.literal_eval(node.value)
                if not isinstance(held, list) or not all(type(n) is str for n in held):
                    front.fail(node, f"{name} is a list of names")
                if "hooks" in name:
                    (kind.pre_hooks if "pre" in name else kind.hooks).extend(held)
                else:
                    (kind.parameters if name == "__parameters__" else kind.buffers).update(held)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if not isinstance(target.slice, ast.Constant) or type(target.slice.value) is not str:
                front.fail(node, "this is no declaration of an attribute")
            assert isinstance(target.slice, ast.Constant)
            kind.attributes[str(target.slice.value)] = front.annotation(node.value)
        elif not isinstance(node, (ast.Pass, ast.Expr)):
            front.fail(node, "this is no part of a class")

    def _named_tuple(self, qualified: str, node: ast.ClassDef, source: Source) -> NamedTupleType:
        front = self.scratch(source)
        names, types, defaults = [], [], {}
        for s in node.body:
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                if s.target.id.startswith("_") or s.target.id in ("count", "index"):
                    front.fail(s, f"{s.target.id!r} is no name of a field")
                names.append(s.target.id)
                types.append(front.annotation(s.annotation))
                if s.value is not None:
                    defaults[s.target.id] = self._value(front, s.value, types[-1])
        return NamedTupleType(qualified, names, types, defaults)

    def _enum(self, qualified: str, node: ast.ClassDef, source: Source) -> EnumType:
        values = {}
        for s in node.body:
            if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name):
                values[s.targets[0].id] = ast.literal_eval(s.value)
        if not values or any(type(v) not in (int, float, str) for v in values.values()):
            source.fail(node, "an enum has members, whose values are numbers or strings")
        kind = EnumType(qualified, type_of(next(iter(values.values()))), {})
        for name, value in values.items():
            kind.members[name] = EnumValue(kind, name, value)
        return kind

    def _interface(self, qualified: str, node: ast.ClassDef, source: Source, is_module: bool) -> InterfaceType:
        kind = self.found[qualified] = InterfaceType(qualified, is_module)
        for s in node.body:
            if isinstance(s, ast.FunctionDef):
                function = self.function(f"{qualified}.{s.name}", s, source, None)
                self.functions.pop()  # it has no body
                kind.methods[s.name] = (function.parameters[1:], function.result)
        return kind

    def compile_all(self) -> None:
        """Compile every function that was found; those that this finds too."""
        done = 0
        while done < len(self.functions):
            self.functions[done].define()
            done += 1


def parse_file(text: str, module: str) -> dict[str, tuple[ast.stmt, Source]]:
    """The classes and functions in a file of code."""
    if len(text) > MAX_CODE or _nesting(text) > MAX_NESTING:
        raise RuntimeError(f"load: the code of {module} is too large, or nested too deeply")
    source = Source(text, f"code/{module.replace('.', '/')}.py")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise RuntimeError(f"load: the code of {module} is damaged: {error}") from None
    out: dict[str, tuple[ast.stmt, Source]] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            out[node.name] = node, source
        elif not isinstance(node, (ast.Assign, ast.Import, ast.ImportFrom, ast.Expr)):  # op_version_set = 1, import ...
            source.fail(node, "archives have classes and functions only")
    return out


def _nesting(text: str) -> int:
    """The greatest depth of nested brackets: Python's parser uses the stack for them."""
    depth = most = 0
    for c in text:
        if c in "([{":
            depth += 1
            most = max(most, depth)
        elif c in ")]}":
            depth -= 1
    return most


def _literal(e: ir.Expr) -> Any:
    """The value of an expression that needs no computation."""
    if isinstance(e, ir.Const):
        return e.value
    if isinstance(e, ir.Cast) and e.word == "annotate":
        return _literal(e.value)
    if isinstance(e, ir.MakeList):
        return [_literal(i) for i in e.items]
    if isinstance(e, ir.MakeTuple):
        return tuple(_literal(i) for i in e.items)
    if isinstance(e, ir.MakeDict):
        return {_literal(k): _literal(v) for k, v in zip(e.keys, e.values, strict=True)}
    raise TypeError("it is computed")


# ---- objects ---------------------------------------------------------------------------------------------------------
class _Objects(Reader):
    """The reader of pickles, which also makes objects of the archive's classes."""

    def _new(self, cls: Any, args: Any, keywords: Any) -> Any:  # type: ignore[override]
        if not isinstance(cls, ClassType) or args != () or keywords:
            raise UnpicklingError("the pickle in the archive makes an instance of what is no class of it")
        if not cls.is_module:
            return ScriptObject(cls)
        made = RecursiveScriptModule(cls)
        hooked.attach(made)
        return made

    def _call(self, constructor: Any, args: Any) -> Any:  # type: ignore[override]
        return _member_of(constructor, args) if isinstance(constructor, EnumType) else super()._call(constructor, args)

    def _build(self, target: Any, state: Any) -> None:
        if not isinstance(target, (RecursiveScriptModule, ScriptObject)):
            super()._build(target, state)
            return
        kind: ClassType = target._kind
        restore = kind.method("__setstate__")
        if restore is not None:
            restore.define()
            (parameter,) = restore.parameters[1:]
            restore.run(target, _checked(state, parameter.type, f"the state of {kind.short}"))
            return
        if type(state) is not dict:
            raise UnpicklingError(
                f"the state of {kind.short} in the archive is a {type(state).__name__}, expected a dict"
            )
        for name in state:
            if name not in kind.attributes:
                raise UnpicklingError(f"{kind.short} in the archive has no attribute {name!r}")
        for name, t in kind.attributes.items():
            if name not in state:
                raise UnpicklingError(f"attribute {name!r} of {kind.short} is missing in the archive")
            put(target, kind, name, _checked(state[name], t, f"attribute {name!r} of {kind.short}"))


def put(target: Any, kind: ClassType, name: str, value: Any) -> None:
    """Store an attribute of a new object or module in its table."""
    if isinstance(target, ScriptObject):
        target._fields[name] = value
        return
    space = target.__dict__
    if name == "training":
        space["training"] = value
    elif name in kind.parameters or name in kind.buffers:
        if value is not None and not isinstance(value, Tensor):
            raise UnpicklingError(f"{name!r} of {kind.short} in the archive is a parameter or buffer, and no tensor")
        space["_parameters" if name in kind.parameters else "_buffers"][name] = value
    elif isinstance(value, RecursiveScriptModule):
        space["_modules"][name] = value
    else:
        space["_attributes"][name] = value


def _checked(value: Any, wanted: Type, what: str) -> Any:
    """``value``, which must be of type ``wanted``; containers stay the objects that they are, for others may share
    them."""
    try:
        _convert(value, wanted)
    except (Mismatch, RecursionError):
        raise UnpicklingError(f"{what} in the archive is a {type(value).__name__}, expected {wanted}") from None
    if wanted == PLAIN["float"] and type(value) is int:
        return float(value)
    return value


def _typed_list(name: str) -> Constructor:
    def build(*args: Any) -> list:
        if len(args) != 1 or type(args[0]) is not list:
            raise UnpicklingError(f"{name} in the archive is not made of a list")
        return args[0]

    return Constructor(name, build)


def _tagged(*args: Any) -> Any:
    if len(args) != 2 or type(args[0]) not in (list, dict):
        raise UnpicklingError("restore_type_tag in the archive is not made of a container")
    return args[0]


_HELPERS = {
    name: _typed_list(name)
    for name in ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist", "build_complexlist")
}
_HELPERS["restore_type_tag"] = Constructor("restore_type_tag", _tagged)


class ArchiveLoader(ZipLoader):
    """Loads a program."""

    def __init__(self, data: Any, map_location: Any) -> None:
        super().__init__(data, map_location, False, self.unpickle_objects)
        self.unit = Unit(self.text, self.constants)

    def text(self, name: str) -> str | None:
        """A file of code, or None."""
        return self.archive.read_text(name) if self.archive.has(name) else None

    def unpickle_objects(self, data: bytes, start: int, persistent: Callable) -> tuple[Any, int]:
        """The object that is pickled from byte ``start``, and where its pickle ends."""
        reader = _Objects(data, self.find, persistent, start)
        return reader.load(), reader.position

    def find(self, module: str, name: str) -> Any:
        """The object for a name in a pickle."""
        if module == "torch.jit._pickle":
            if name not in _HELPERS:
                raise UnpicklingError(f"the archive asks for {module}.{name}, which is not known")
            return _HELPERS[name]
        if module.split(".")[0] != "__torch__":
            return find_data(module, name)
        found = self.unit.find(f"{module}.{name}")
        if isinstance(found, EnumType):
            return found
        if isinstance(found, NamedTupleType):
            return Constructor(found.short, lambda *values: _convert(tuple(values), found))
        if not isinstance(found, ClassType):
            raise UnpicklingError(f"the archive has objects of {module}.{name}, and no such class")
        return found

    def constants(self) -> Any:
        """The tuple in ``constants.pkl``."""
        return self._pickle("constants")

    def _pickle(self, name: str) -> Any:
        before, self.folder = self.folder, name
        held, self.stored = self.stored, {}
        try:
            return self.unpickle(bytes(self.archive.read(f"{name}.pkl")), 0, self.persistent)[0]
        finally:
            self.folder, self.stored = before, held

    def load(self) -> RecursiveScriptModule:
        """The program's module, all of whose code is compiled."""
        if not self.archive.has("constants.pkl") or not self.archive.has("data.pkl"):
            raise RuntimeError("load: the file is no TorchScript archive: it lacks constants.pkl or data.pkl")
        version = bytes(self.archive.read("version" if self.archive.has("version") else ".data/version")).strip()
        if not version.isdigit() or not 1 <= int(version[:9]) <= 10:
            raise RuntimeError(f"load: the archive's version is {version!r:.20}, expected a number up to 10")
        self.unit.version = int(version)
        made = self._pickle("data")
        if not isinstance(made, RecursiveScriptModule):
            raise RuntimeError(f"load: the archive has a {type(made).__name__}, expected a module")
        for kind in list(self.unit.found.values()):
            if isinstance(kind, ClassType):
                for name in kind.method_names:
                    kind.method(name)
        self.unit.compile_all()
        return made

    def extra(self, files: dict[str, Any]) -> None:
        """Fill in the contents of files under ``extra/``."""
        for name in files:
            record = f"extra/{name}"
            files[name] = bytes(self.archive.read(record)) if self.archive.has(record) else files[name]


def _member_of(kind: EnumType, value: Any) -> EnumValue:
    for member in kind.members.values():
        if type(member.value) is type(value) and member.value == value:
            return member
    raise UnpicklingError(f"enum {kind.short} in the archive has no member of value {value!r}")


def load(f: Any, map_location: Any = None, _extra_files: dict | None = None, _restore_shapes: bool = False) -> Any:
    """Load a TorchScript archive: a program that ``torch.jit.save`` or :func:`taeda.jit.save` wrote.

    The file is not trusted: its code can call the ops of taeda's table and nothing else, and no code of Python's is
    run.

    Args:
        f: a path, or a file open for reading in binary.
        map_location: ``"cpu"`` for programs whose tensors were on a device that is not here.
        _extra_files: names of extra files; their contents (bytes) are filled in.
    Returns:
        A module, in the mode (training or not) in which it was saved.
    Raises:
        RuntimeError: the archive is damaged, or asks for an op that taeda lacks.
        pickle.UnpicklingError: its data is damaged, or not what its code declares.
        ValueError: the file does not exist.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
        with open(f, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise RuntimeError("load: the file is empty")
            data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    else:
        data = read_all(f)
    try:
        loader = ArchiveLoader(data, map_location)
        made = loader.load()
    except RecursionError:
        raise RuntimeError("load: something in the archive is nested too deeply, or contains itself") from None
    except _DAMAGE as error:
        raise RuntimeError(f"load: the archive is damaged: {type(error).__name__}: {error}") from error
    if _extra_files is not None:
        loader.extra(_extra_files)
    return made


__all__ = ["ArchiveFrontend", "ArchiveLoader", "Unit", "load"]
