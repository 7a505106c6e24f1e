"""Code of functions, in the language of archives: what :mod:`.archive` and PyTorch read."""

from __future__ import annotations

import keyword
import math
from typing import Any

from .._core import Tensor, device
from . import ir
from .errors import CompileError
from .types import FLOAT, NONE, REQUIRED, EnumType, EnumValue, FunctionType, NamedTupleType, ScriptObject, Type

_CALLS = {"aten::Int": "int", "aten::Float": "float", "aten::Bool": "bool", "aten::str": "str", "prim::Print": "print"}
_IMPLICIT = {"aten::IntImplicit": "int", "aten::FloatImplicit": "float", "aten::ScalarImplicit": "number"}


def code(function: ir.Function, constants: dict[int, Any] | None = None) -> str:
    """``def`` and the body; tensors and objects among the constants are noted in ``constants`` under their ids."""
    return "\n".join(Printer({} if constants is None else constants).function(function)) + "\n"


def quoted(text: str) -> str:
    """A string literal; bytes outside of ASCII in octal, as PyTorch writes and reads them."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        c = chr(byte)
        if c in '\\"':
            out.append("\\" + c)
        elif 32 <= byte < 127:
            out.append(c)
        else:
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c) or f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def number(value: float) -> str:
    """A float literal."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    return text if math.isnan(value) or "." in text or "e" in text else text + "."


class Printer:
    """Writes code; notes the constants and the functions and types that it names."""

    def __init__(self, constants: dict[int, Any]) -> None:
        self.constants = constants
        self.functions: list[ir.Function] = []
        self.types: list[Type] = []
        self.result: Type = NONE
        self.forks = 0
        self.lines: list[str] = []
        self.depth = 0

    def name(self, t: Type) -> str:
        self.types.append(t)
        return str(t)

    def function(self, function: ir.Function) -> list[str]:
        function.define()
        self.result = function.result
        parameters = []
        for p in function.parameters:
            default = "" if p.default is REQUIRED else f"={self.value(p.default)}"
            parameters.append(f"{p.name}: {self.name(p.type)}{default}")
        head = f"def {function.name}({', '.join(parameters)}) -> {self.name(function.result)}:"
        self.lines, self.depth = [], 1
        self.block(function.body)
        return [head.replace(", ", ",\n    ") if len(head) > 100 and "[" not in head else head, *self.lines]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, statements: list[ir.Stmt]) -> None:
        if not statements:
            self.line("pass")
        for s in statements:
            _STATEMENTS[type(s)](self, s)

    def nested(self, statements: list[ir.Stmt]) -> None:
        """A block within a statement."""
        self.depth += 1
        self.block(statements)
        self.depth -= 1

    # ---- values -----------------------------------------------------------------------------------------------------
    def value(self, value: Any, t: Type | None = None) -> str:
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, int):
            return number(float(value)) if t is FLOAT else str(value)
        if isinstance(value, float):
            return number(value)
        if isinstance(value, complex):
            return f"complex({number(value.real)}, {number(value.imag)})"
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, device):
            return f'torch.device("{value}")'
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.value, value))}{',' * (len(value) == 1)})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in value.items())}}}"
        if isinstance(value, ir.Function):
            self.functions.append(value)
            return value.qualified
        if isinstance(value, EnumValue):
            self.types.append(value.kind)
            return f"{value.kind}.{value.name}"
        if isinstance(t, EnumType):
            self.types.append(t)
            return f"{t}.{value.name}"
        if isinstance(value, (Tensor, ScriptObject)):
            self.constants.setdefault(id(value), value)
            return f"CONSTANTS.c{list(self.constants).index(id(value))}"
        raise CompileError(f"a constant of type {type(value).__name__} has no form in an archive")

    def show(self, e: ir.Expr) -> str:
        return _EXPRESSIONS[type(e)](self, e)

    def _const(self, e: ir.Const) -> str:
        if isinstance(e.type, FunctionType):
            return self.value(e.type.function)
        if isinstance(e.value, (list, dict)) and not e.value:
            return f"annotate({self.name(e.type)}, {self.value(e.value)})"
        return self.value(e.value, e.type)

    def _var(self, e: ir.Var) -> str:
        return e.name

    def _get_attr(self, e: ir.GetAttr) -> str:
        inner = self.show(e.object)
        if not e.name.isidentifier() or keyword.iskeyword(e.name):
            return f"getattr({inner}, {quoted(e.name)})"
        return f"{inner}.{e.name}" if isinstance(e.object, ir.Var) else f"({inner}).{e.name}"

    def _op(self, e: ir.Op) -> str:
        name = e.schema.qualified
        given = [self.show(a) for a in e.args if a is not None] + [self.show(a) for a in e.rest]
        if name in _CALLS:
            return f"{_CALLS[name]}({', '.join(given)})"
        if name in _IMPLICIT:
            return f"annotate({_IMPLICIT[name]}, {given[0]})"
        if name in ("aten::__is__", "aten::__isnot__"):
            return f"({given[0]} {'is' if name == 'aten::__is__' else 'is not'} {given[1]})"
        if name == "aten::__contains__":
            return f"({given[1]} in {given[0]})"
        if name == "aten::__not__":
            return f"(not {given[0]})"
        if name == "aten::__getitem__":
            return f"({given[0]})[{given[1]}]"
        if name == "prim::StoreOut":
            return f"torch.copy_({given[0]}, {given[1]})"
        if name == "prim::EnumValue" or name == "prim::EnumName":
            return f"({given[0]}).{'value' if name.endswith('Value') else 'name'}"
        if name == "prim::tolist":
            return f"({given[0]}).tolist()"
        space, _, short = name.partition("::")
        parts: list[str] = []
        last = max((i for i, a in enumerate(e.args) if a is not None), default=-1)
        for i, (p, a) in enumerate(zip(e.schema.parameters, e.args, strict=True)):
            if p.keyword and a is not None:
                parts.append(f"{p.name}={self.show(a)}")
            elif not p.keyword and i <= last:
                parts.append(self.value(p.default) if a is None else self.show(a))
        parts += [self.show(a) for a in e.rest]
        prefix = "torch" if space == "aten" else f"ops.{space}"
        return f"{prefix}.{short}({', '.join(parts)})"

    def _call(self, e: ir.Call) -> str:
        args = [self.show(a) for a in e.args]
        if e.function.owner is not None:
            return f"({args[0]}).{e.function.name}({', '.join(args[1:])})"
        self.functions.append(e.function)
        return f"{e.function.qualified}({', '.join(args)})"

    def _invoke(self, e: ir.Invoke) -> str:
        return f"({self.show(e.object)}).{e.name}({', '.join(map(self.show, e.args))})"

    def _python_call(self, e: ir.PythonCall) -> str:
        return f"^{e.name}({', '.join(map(self.show, e.args))})"

    def _new(self, e: ir.New) -> str:
        self.types.append(e.type)
        if e.init is None:
            return f"{e.type}.__new__({e.type})"
        return f"{e.type}({', '.join(map(self.show, e.args))})"

    def _make_tuple(self, e: ir.MakeTuple) -> str:
        items = [self.show(i) for i in e.items]
        if isinstance(e.type, NamedTupleType) and e.type.cls is not tuple:
            return f"{self.name(e.type)}({', '.join(items)})"
        return f"({', '.join(items)}{',' * (len(items) == 1)})" if items else "()"

    def _make_list(self, e: ir.MakeList) -> str:
        text = f"[{', '.join(map(self.show, e.items))}]"
        plain = e.items and all(i.type == e.type.element for i in e.items)
        return text if plain else f"annotate({self.name(e.type)}, {text})"

    def _make_dict(self, e: ir.MakeDict) -> str:
        text = f"{{{', '.join(f'{self.show(k)}: {self.show(v)}' for k, v in zip(e.keys, e.values, strict=True))}}}"
        return text if e.keys else f"annotate({self.name(e.type)}, {text})"

    def _tuple_item(self, e: ir.TupleItem) -> str:
        return f"({self.show(e.object)})[{e.index}]"

    def _tuple_slice(self, e: ir.TupleSlice) -> str:
        return f"({self.show(e.object)})[{e.index.start or 0}:{e.index.stop}]"

    def _both(self, e: ir.Both) -> str:
        return f"({self.show(e.a)} {'and' if e.is_and else 'or'} {self.show(e.b)})"

    def _choose(self, e: ir.Choose) -> str:
        return f"({self.show(e.a)} if {self.show(e.condition)} else {self.show(e.b)})"

    def _cast(self, e: ir.Cast) -> str:
        if e.word == "uninitialized":
            return f"uninitialized({self.name(e.type)})"
        word = "unchecked_cast" if e.word == "unchecked_cast" else "annotate"
        return f"{word}({self.name(e.type)}, {self.show(e.value)})"

    def _is_instance(self, e: ir.IsInstance) -> str:
        bare = ("List", "Tuple", "Dict")
        types = [t.name.lower() if t.name in bare and not t.args else self.name(t) for t in e.types]
        return f"isinstance({self.show(e.value)}, {types[0] if len(types) == 1 else '(' + ', '.join(types) + ')'})"

    def _iterate(self, e: ir.Iterate) -> str:
        inner = ", ".join(map(self.show, e.parts))
        return f"{e.word}({inner})" if e.word else inner

    def targets(self, targets: list[Any]) -> str:
        """The text of an assignment's targets."""
        parts = []
        for t in targets:
            if isinstance(t, ir.Star):
                parts.append(f"*{t.target.name}")
            else:
                parts.append(f"({self.targets(t)})" if isinstance(t, list) else t.name)
        return ", ".join(parts)

    def _comprehension(self, e: ir.Comprehension) -> str:
        value = self.show(e.value) if e.key is None else f"{self.show(e.key)}: {self.show(e.value)}"
        condition = "" if e.condition is None else f" if {self.show(e.condition)}"
        targets = f"({self.targets(e.target)})" if len(e.target) > 1 else self.targets(e.target)
        text = f"{value} for {targets} in {self.show(e.over)}{condition}"
        return f"[{text}]" if e.key is None else f"{{{text}}}"

    def _fork(self, e: ir.Fork) -> str:
        name = f"__forked_function{self.forks}"
        self.forks += 1
        self.line(f"def {name}():")
        self.depth += 1
        body, value = (e.call.body, e.call.value) if isinstance(e.call, ir.Block) else ([], e.call)
        if body:
            self.block(body)
        self.line(f"return {self.show(value)}")
        self.depth -= 1
        return f"fork({name})"

    # ---- statements -------------------------------------------------------------------------------------------------
    def _assign(self, s: ir.Assign) -> None:
        annotated = f" : {self.name(s.target.type)}" if s.target.type != s.value.type else ""
        self.line(f"{s.target.name}{annotated} = {self.show(s.value)}")

    def _unpack(self, s: ir.Unpack) -> None:
        self.line(f"{self.targets(s.targets)}, = {self.show(s.value)}")

    def _set_attr(self, s: ir.SetAttr) -> None:
        self.line(f"{self.show(s.object)}.{s.name} = {self.show(s.value)}")

    def _do(self, s: ir.Do) -> None:
        self.line(self.show(s.value))

    def _if(self, s: ir.If) -> None:
        self.line(f"if {self.show(s.condition)}:")
        self.nested(s.then)
        if s.other:
            self.line("else:")
            self.nested(s.other)

    def _while(self, s: ir.While) -> None:
        self.line(f"while {self.show(s.condition)}:")
        self.nested(s.body)

    def _for(self, s: ir.For) -> None:
        self.line(f"for {self.targets(s.target)} in {self.show(s.over)}:")
        self.nested(s.body)

    def _with(self, s: ir.With) -> None:
        target = "" if s.target is None else f" as {s.target.name}"
        self.line(f"with {self.show(s.value)}{target}:")
        self.nested(s.body)

    def _leave(self, s: ir.Leave) -> None:
        self.line(s.word)

    def _return(self, s: ir.Return) -> None:
        self.line(f"return {self.show(s.value)}")

    def _raise(self, s: ir.Raise) -> None:
        message = '""' if s.message is None else self.show(s.message)
        kind = "" if s.kind == "Exception" else f', "builtins.{s.kind}"'
        self.line(f"ops.prim.RaiseException({message}{kind})")
        self.line("return None" if self.result is NONE else f"return uninitialized({self.name(self.result)})")


_EXPRESSIONS: dict[type, Any] = {
    ir.Const: Printer._const, ir.Var: Printer._var, ir.GetAttr: Printer._get_attr, ir.Op: Printer._op,
    ir.Call: Printer._call, ir.Invoke: Printer._invoke, ir.PythonCall: Printer._python_call, ir.New: Printer._new,
    ir.MakeTuple: Printer._make_tuple, ir.MakeList: Printer._make_list, ir.MakeDict: Printer._make_dict,
    ir.TupleItem: Printer._tuple_item, ir.TupleSlice: Printer._tuple_slice, ir.Both: Printer._both,
    ir.Choose: Printer._choose, ir.Cast: Printer._cast, ir.IsInstance: Printer._is_instance,
    ir.Iterate: Printer._iterate, ir.Comprehension: Printer._comprehension, ir.Fork: Printer._fork,
}  # fmt: skip
_STATEMENTS: dict[type, Any] = {
    ir.Assign: Printer._assign, ir.Unpack: Printer._unpack, ir.SetAttr: Printer._set_attr, ir.Do: Printer._do,
    ir.If: Printer._if, ir.While: Printer._while, ir.For: Printer._for, ir.With: Printer._with,
    ir.Leave: Printer._leave, ir.Return: Printer._return, ir.Raise: Printer._raise,
}  # fmt: skip
