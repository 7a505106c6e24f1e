"""Python's functions and classes: their names in archives, their source, and the replacements of taeda's own."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types as python_types
from typing import Any

from . import layers, library
from .errors import CompileError, Source, UnsupportedNodeError

#: The modules whose functions and classes replace those of ``taeda.nn``.
LIBRARY = (library.__name__, layers.__name__)


def module_of(obj: Any) -> str:
    """The module that defines something, by taeda's name of it: the stand-in gives taeda's modules PyTorch's names."""
    name = getattr(obj, "__module__", "") or ""
    return "taeda" + name[5:] if name.split(".")[0] == "torch" else name


LIBRARY_CLASSES = {
    name: cls for name, cls in vars(layers).items() if isinstance(cls, type) and module_of(cls) == layers.__name__
}

_used: dict[str, int] = {}


def qualified_name(obj: Any) -> str:
    """A name for archives that nothing else has: ``__torch__.module.Class``."""
    module = getattr(obj, "__module__", "") or ""
    name = getattr(obj, "__qualname__", getattr(obj, "__name__", "f")).rpartition("<locals>.")[2]
    name = re.sub(r"<(\w+)>", r"_\1", name)  # a lambda, or within a comprehension
    parts = ["__torch__", *(p for p in module.split(".") if p.isidentifier() and p != "__main__"), *name.split(".")]
    whole = ".".join(parts)
    count = _used.get(whole, -1) + 1
    _used[whole] = count
    if count:
        parts.insert(-1, f"___torch_mangle_{count}")
    return ".".join(parts)


def own_method(cls: type, name: str) -> tuple[Any, type] | None:
    """The function ``name`` of a class itself, or the library's replacement."""
    if module_of(cls).startswith("taeda.nn") and cls.__name__ in LIBRARY_CLASSES:
        for base in LIBRARY_CLASSES[cls.__name__].__mro__[:-1]:
            if name in vars(base):
                return vars(base)[name], cls
        if name == "forward" and hasattr(LIBRARY_CLASSES[cls.__name__], "forward__0"):
            return None
    found = vars(cls).get(name)
    return (found, cls) if isinstance(found, python_types.FunctionType) else None


def definer(cls: type, name: str) -> type:
    return next(c for c in cls.__mro__ if name in vars(c))


def parse_function(fn: Any) -> tuple[ast.FunctionDef, Source]:
    """The definition of a function, and its text for messages."""
    fn = inspect.unwrap(fn)
    try:
        lines, first = inspect.getsourcelines(fn)
        file = inspect.getsourcefile(fn) or "<string>"
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {fn}. TorchScript requires source access in order to carry out compilation, make "
            f"sure "
            "original .py files are available."
        ) from error
    text = textwrap.dedent("".join(lines))
    source = Source(text, file, first)
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a lambda within an expression, mostly
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == fn.__name__:
            if isinstance(node, ast.AsyncFunctionDef):
                source.fail(node, "async functions aren't supported", UnsupportedNodeError)
            if {"slice", "Ellipsis"} & {*fn.__code__.co_names} - fn.__globals__.keys():
                write_slices(node)
            return node, source  # type: ignore[return-value]
    raise CompileError(f"expected a function that is defined with def, got {fn}: lambda expressions aren't supported")


def write_slices(function: ast.AST) -> None:
    """``x[slice(a, b), Ellipsis]`` as ``x[a:b, ...]``: code that :mod:`taeda.fx` writes has the former."""

    def written(index: ast.expr) -> ast.expr:
        if isinstance(index, ast.Name) and index.id == "Ellipsis":
            return ast.copy_location(ast.Constant(...), index)
        if not isinstance(index, ast.Call) or not isinstance(index.func, ast.Name) or index.func.id != "slice":
            return index
        bounds = [None if isinstance(b, ast.Constant) and b.value is None else b for b in index.args]
        if index.keywords or not 1 <= len(bounds) <= 3:
            return index
        lower, upper, step = [None, *bounds, None] if len(bounds) == 1 else [*bounds, None][:3]
        return ast.copy_location(ast.Slice(lower, upper, step), index)

    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Tuple):
                node.slice.elts = [written(e) for e in node.slice.elts]
            else:
                node.slice = written(node.slice)


_COMMENT = re.compile(r"#(\s*type\s*):\s*(\(.*)$")
_BESIDE = re.compile(r"# type:\s*(?!ignore)([^(\s].*)$")


def annotate(source: Source, node: ast.FunctionDef, own: bool = False) -> None:
    """Make annotations of ``# type: (Tensor, int) -> Tensor``; of ``(...)``, with the types beside the arguments.

    ``own``: the first argument has its type already.
    """
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs][own:]
    for line in source.lines[node.lineno - 1 : node.body[0].lineno]:
        match = _COMMENT.search(line)
        if not match or match[2].startswith("(ignore"):
            continue
        if match[1] != " type":
            source.fail(node, "the annotation prefix is not '# type:'")
        whole = ast.parse(match[2].replace("->", ",", 1).join(["(", "\n)"]), mode="eval").body
        if "->" not in line:
            source.fail(node, "a comment with types has no '->'")
        given, result = whole.elts  # type: ignore[attr-defined] # a tuple
        types: list = list(given.elts) if isinstance(given, ast.Tuple) else [given]
        if isinstance(given, ast.Constant) and given.value is ...:
            beside = [_BESIDE.search(source.lines[a.lineno - 1]) for a in arguments]
            types = [m and ast.parse(m[1], mode="eval").body for m in beside]
        for argument, t in zip(arguments, types, strict=False):
            argument.annotation = argument.annotation or t
        node.returns = node.returns or result
        return
