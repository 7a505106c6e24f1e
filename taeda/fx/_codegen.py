"""The Python code of a Graph: names, annotations, one line for each Node."""

from __future__ import annotations

import builtins
import enum
import inspect
import keyword
import math
import re
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from taeda._core import Tensor, device
from taeda.utils import _pytree as pytree

from . import _names
from ._readable import annotation, write_comments
from .node import Node, _type_repr

#: Operators as code writes them, by the name of their function in ``operator``.
magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">="), ("add", "+"), ("sub", "-"),
        ("mul", "*"), ("floordiv", "//"), ("truediv", "/"), ("div", "/"), ("mod", "%"), ("pow", "**"), ("lshift", "<<"),
        ("rshift", ">>"), ("and_", "&"), ("or_", "|"), ("xor", "^"), ("matmul", "@"),
    )},
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "getitem": "{}[{}]",
}  # fmt: skip
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in "add sub mul floordiv truediv div mod pow lshift rshift and_ or_ xor getitem matmul".split()
}
inplace_methods = {
    f"i{name.rstrip('_')}": magic_methods[name].replace(" {}", "= {}")
    for name in "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split()
}
inplace_methods["setitem"] = "{}[{}] = {}"


@dataclass
class PythonCode:
    """Code and the names that it needs."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The nesting of the arguments and the result of a Graph."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _Builtin(NamedTuple):
    """A name that code may use, the import that gives it, and its object."""

    import_str: str
    obj: Any


def custom_builtins() -> dict[str, _Builtin]:
    """Names that generated code always has."""
    ns = _names.namespace()
    return {
        "inf": _Builtin("from math import inf", math.inf),
        "nan": _Builtin("from math import nan", math.nan),
        "NoneType": _Builtin("NoneType = type(None)", type(None)),
        ns: _Builtin(f"import {ns}", _names.root()),
        "device": _Builtin(f"from {ns} import device", device),
        "fx_pytree": _Builtin(f"import {ns}.fx._pytree as fx_pytree", _names.module_of("fx._pytree")),
        "pytree": _Builtin(f"import {ns}.utils._pytree as pytree", pytree),
    }


def _snake_case(s: str) -> str:
    """``LayerNorm`` as ``layer_norm``."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


class _Namespace:
    """Names that are taken, and new ones made of candidates."""

    def __init__(self) -> None:
        self._of: dict[Any, str] = {}
        self._used: set[str] = set()
        self._count: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any) -> str:
        """A free name like ``candidate``; ``obj``, unless None, has the same name whenever it asks."""
        if obj is not None and obj in self._of:
            return self._of[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, 0)
        candidate = f"{base}_{number}" if match else base
        if not number:
            number = self._count[base]
        while candidate in self._used or self._is_taken(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._count[base] = number
        if obj is not None:
            self._of[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        self._of.setdefault(obj, name)

    def _is_taken(self, name: str, obj: Any) -> bool:
        """Whether Python or the generated code gives ``name`` another meaning."""
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return getattr(builtins, name) is not obj
        if name in _RESERVED:
            return custom_builtins()[name].obj is not obj if name in custom_builtins() else False
        return False

    def _rename_object(self, obj: Any, name: str) -> None:
        self._of[obj] = name
        self._used.add(name)


_RESERVED = frozenset("inf nan NoneType torch taeda device fx_pytree pytree".split())


def _format_target(base: str, target: str) -> str:
    """``base.target``, with ``getattr`` for parts that are no identifiers."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


#: The classes of annotations as ``typing`` names them.
_ORIGINS: dict[Any, Any] = {
    list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple,  # noqa: UP006
}  # fmt: skip


@dataclass
class _Writer:
    """The code of one Graph while it is written."""

    root: str
    namespace: _Namespace
    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False

    def __post_init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self.body: list[str] = []
        self.free_vars: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        self.stack = ""

    def add_global(self, hint: str, obj: Any) -> str:
        """The name by which code reaches ``obj``."""
        if _names.is_own(obj) and obj is not device and not is_local(obj):
            private = type(obj) in _names.OPS and not _names.space_of(obj) and not _names.is_method(obj)
            if not private and not (isinstance(obj, type) and obj.__module__.startswith("taeda.ops.")):
                return _names.qualified_name(obj)
            hint = obj.__name__  # no path leads to a private op, and none that programs share to its arguments' class
        name = self.namespace.create_name(hint.replace(".", "_"), obj)
        if name in self.globals:
            if self.globals[name] is not obj:
                raise AssertionError(f"two objects are called {name}")
        else:
            self.globals[name] = obj
        return name

    def type_repr(self, o: Any) -> str:
        if o == ():
            return "()"
        name = _type_repr(o)
        if isinstance(o, types.UnionType) and all(isinstance(x, type) for x in o.__args__):
            return " | ".join(self.type_repr(x) for x in o.__args__)
        origin = getattr(o, "__origin__", None)
        if origin is not None:
            origin = _ORIGINS.get(origin, origin)
            text = self.add_global(_type_repr(origin), origin)
            arguments = getattr(o, "__args__", ())
            return f"{text}[{','.join(map(self.type_repr, arguments))}]" if arguments else text
        return self.add_global(name, o)

    def repr(self, arg: Any) -> str:
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                return f"{self.add_global(_type_repr(type(arg)), type(arg))}({', '.join(map(self.repr, arg))})"
            return f"({', '.join(map(self.repr, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.repr, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.repr(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.repr(arg.start)}, {self.repr(arg.stop)}, {self.repr(arg.step)})"
        if isinstance(arg, enum.Enum):
            cls = type(arg)
            return f"{self.add_global(cls.__name__, cls)}.{arg.name}"
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, Tensor):
            return f"Tensor(size={list(arg.shape)}, dtype={arg.dtype})"
        if isinstance(arg, type) or _is_function(arg):
            return self.add_global(_type_repr(arg) if isinstance(arg, type) else _names.qualified_name(arg), arg)
        if isinstance(arg, device):
            self.add_global("device", device)
        return repr(arg)

    def arguments(self, args: Iterable, kwargs: dict) -> str:
        return ", ".join([*map(self.repr, args), *(f"{k} = {self.repr(v)}" for k, v in kwargs.items())])

    # ---- one node ----

    def emit(self, node: Node) -> None:
        """Append the line of ``node``."""
        getattr(self, f"_emit_{node.op}")(node, f"{node!r}{self._annotation(node)}")

    def _annotation(self, node: Node) -> str:
        if node.type is not None:
            return f" : {self.type_repr(node.type)}"
        return annotation(node, self.include_stride, self.include_device) if self.verbose else ""

    def _emit_placeholder(self, node: Node, left: str) -> None:
        if not isinstance(node.target, str):
            raise AssertionError(f"the target of a placeholder is a str, not {type(node.target)}")
        default = f" = {self.repr(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{node.target}{self._annotation(node)}{default}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def _emit_call_method(self, node: Node, left: str) -> None:
        receiver = _format_target(self.repr(node.args[0]), node.target)
        self.body.append(f"{left} = {receiver}({self.arguments(node.args[1:], node.kwargs)})")

    def _emit_call_function(self, node: Node, left: str) -> None:
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            if name in magic_methods and len(args) == magic_methods[name].count("{}"):
                self.body.append(f"{left} = {magic_methods[name].format(*map(self.repr, args))}")
                return
            if name in inplace_methods and len(args) == inplace_methods[name].count("{}"):
                text = inplace_methods[name].format(*map(self.repr, args))
                self.body.append(f"{text};  {left} = {self.repr(args[0])}")
                return
        called = self.add_global(_names.qualified_name(target), target)
        if called == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            self.body.append(f"{left} = {_format_target(self.repr(args[0]), args[1])}")
            return
        self.body.append(f"{left} = {called}({self.arguments(args, node.kwargs)})")
        if node.meta.get("is_wrapped", False):
            self.wrapped[called] = None

    def _emit_call_module(self, node: Node, left: str) -> None:
        self.body.append(f"{left} = {_format_target(self.root, node.target)}({self.arguments(node.args, node.kwargs)})")

    def _emit_get_attr(self, node: Node, left: str) -> None:
        self.body.append(f"{left} = {_format_target(self.root, node.target)}")


def is_local(obj: Any) -> bool:
    """Whether no path of modules leads to ``obj``."""
    return "<locals>" in (getattr(obj, "__qualname__", None) or "") or (
        not isinstance(obj, type) and getattr(obj, "__name__", None) == "<lambda>"
    )


def _is_function(arg: Any) -> bool:
    return isinstance(arg, (types.FunctionType, types.BuiltinFunctionType)) or type(arg) in _names.OPS


class CodeGen:
    """The code that makes a Graph a function. Subclass it to change the head of the function or what it returns."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **options: Any) -> str:
        """The line that begins the function.

        Args:
            free_vars: the arguments, with annotations and defaults.
            maybe_return_annotation: ``" -> type"``, or ``""``.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr, **options: Any) -> str:
        """The line that returns."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of a call, from the value of the output Node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the code needs besides those that the Nodes use."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: _Namespace, **options: Any) -> PythonCode:
        nodes = list(nodes)
        comments = options.pop("verbose", False)
        shown = {name: options.get(name, False) for name in ("include_stride", "include_device")}
        writer = _Writer(root_module, namespace, comments, **shown)
        for name, value in (*((k, v.obj) for k, v in custom_builtins().items()), *self.additional_globals()):
            writer.add_global(name, value) if name == "device" else writer.globals.setdefault(name, value)
        last_uses = _last_uses(nodes)
        lines: list[tuple[int, Node]] = []
        for node in nodes:
            if comments:
                write_comments(writer, node)
            lines.append((len(writer.body), node))
            if node.op == "output":
                if node.type is not None:
                    writer.returns = f" -> {writer.type_repr(node.type)}"
                writer.body.append(self._returning(node, writer) + "\n")
                continue
            writer.emit(node)
            if node.op == "placeholder":
                continue
            unused = [*last_uses.get(node, ()), *([] if node.users else [node])]
            if comments and unused and not options.get("delete", True):
                unused = []
            writer.body.append(f";  {' = '.join([*map(repr, unused), 'None'])}\n" if unused else "\n")
        return self._assemble(writer, nodes, lines)

    def _returning(self, node: Node, writer: _Writer) -> str:
        taken = inspect.signature(self.generate_output).parameters.values()
        named = any(p.name == "repr_fn" or p.kind == p.VAR_KEYWORD for p in taken)
        return self.generate_output(node.args[0], **({"repr_fn": writer.repr} if named else {}))

    def _assemble(self, writer: _Writer, nodes: list[Node], lines: list[tuple[int, Node]]) -> PythonCode:
        """The parts of the code in one text, and the Node of each line."""
        body = writer.body or ["pass\n"]
        wrap = f"{_names.namespace()}.fx._symbolic_trace.wrap"
        wrapped = "\n".join(f'{wrap}("{name}")' for name in writer.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        head = self.gen_fn_def(writer.free_vars, writer.returns)
        code = "".join(body).lstrip("\n")
        code = "\n".join(f"    {line}" for line in code.split("\n"))
        start = wrapped.count("\n") + head.count("\n") + 4
        numbers: dict[int, int | None] = {}
        index = {node: i for i, node in enumerate(nodes)}
        for position, node in lines:
            before = "".join(writer.body[:position]).lstrip("\n").count("\n")
            numbers[before + 1 + head.count("\n")] = index[node]
        return PythonCode(f"\n{wrapped}\n\n{head}\n{code}", writer.globals, numbers, start)


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """The Nodes that each Node is the last to use."""
    last: dict[Node, Node] = {}
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in last:
                last[used] = user
                found.setdefault(user, []).append(used)
    return found


class _PyTreeCodeGen(CodeGen):
    """Code whose arguments and result are nested, while the Graph has one placeholder for each leaf."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        if not isinstance(out, (list, tuple)):
            out = [out]
        if self.pytree_info.out_spec is None:
            raise AssertionError("the Graph has no output to tell how its result nests")
        return pytree.tree_unflatten(out, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **options: Any) -> str:
        names = self.pytree_info.orig_args
        has_self = bool(names) and names[0] == "self"
        annotated = [var for var in free_vars if var.partition(":")[0].strip() != var.strip()]
        names_only = [re.split(r"[:=]", var)[0].strip() for var in free_vars]
        head = super().gen_fn_def(list(names), maybe_return_annotation)
        if not free_vars:
            return head
        given = names[1:] if has_self else names
        text = head
        if annotated:
            text += "\n    " + "; ".join(var.partition("=")[0].strip() for var in annotated)
        return (
            f"{text}\n    {', '.join(names_only)}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"
        )

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr, **options: Any) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, repr_fn=repr_fn)
        values = output_args if isinstance(output_args, (list, tuple)) else [output_args]
        return f"return pytree.tree_unflatten([{', '.join(map(repr_fn, values))}], self._out_spec)"
