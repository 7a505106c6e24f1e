"""Conditions on the sizes of arguments, as PyTorch's files have them: ``(L['x'].size()[0] % 2) == 0``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from taeda.fx.experimental.symbolic_shapes import Expr
from taeda.utils import _pytree as pytree

from ._checks import InputCheck

_HEADS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.USub: "neg",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.And: "and",
    ast.Or: "or", ast.Not: "not",
}  # fmt: skip


def places(in_spec: Any, positional: Sequence[str]) -> list[str]:
    """The place of each argument: ``L['x'][0]``."""
    leaves = pytree.tree_flatten_with_path(in_spec.unflatten(range(in_spec.num_leaves)))[0]
    first = [f"L[{positional[path[1].idx]!r}]" if path[0].idx == 0 else f"L{path[1]}" for path, _ in leaves]
    return [place + pytree.keystr(path[2:]) for place, (path, _) in zip(first, leaves, strict=True)]


def written(guards: Sequence[tuple[Expr, bool]], inputs: Sequence[InputCheck], where: Sequence[str]) -> list[str]:
    """The conditions as texts.

    Args:
        guards: comparisons, and how they must come out.
        inputs: what each argument must be.
        where: the place of each argument.
    """
    sources: dict[str, str] = {}
    for check, place in zip(inputs, where, strict=True):
        for d, size in enumerate(check.sizes or ()):
            for name in size.symbols() if isinstance(size, Expr) else ():
                linear = size.linear()
                if linear is not None and list(linear[0]) == [name]:
                    sources.setdefault(name, f"(({place}.size()[{d}] - {linear[1]}) // {linear[0][name]})")
                if not size.args:
                    sources[name] = f"{place}.size()[{d}]"
    texts = []
    for expr, outcome in guards:
        tree = _Named(sources).visit(ast.parse(f"{expr}" if outcome else f"not ({expr})", mode="eval"))
        texts.append(ast.unparse(tree))
    return texts


class _Named(ast.NodeTransformer):
    """Puts the places of symbols in the place of their names."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self.sources[node.id], mode="eval").body if node.id in self.sources else node


def read(texts: Sequence[str], inputs: Sequence[InputCheck], where: Sequence[str]) -> list[tuple[Expr, bool]]:
    """Comparisons and their outcomes. A condition of another form than those of sizes is left out."""
    sizes = {place: check.sizes for check, place in zip(inputs, where, strict=True) if check.sizes is not None}
    found = []
    for text in texts:
        try:
            expr = _read(ast.parse(text, mode="eval").body, sizes, 0)
        except (SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, MemoryError):
            continue  # the last two: Python's parser of a text that is nested too deep
        if isinstance(expr, Expr):
            found.append((expr.args[0], False) if expr.head == "not" else (expr, True))
    return found


def _read(node: ast.AST, sizes: dict[str, list], depth: int) -> Any:
    if depth > 50:
        raise ValueError("too deep")
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Subscript):  # L['x'].size()[0]
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "size":
            raise ValueError("no size")
        return sizes[ast.unparse(call.func.value)][ast.literal_eval(node.slice)]
    parts: list[ast.expr]
    if isinstance(node, ast.BinOp):
        head, parts = _HEADS[type(node.op)], [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        head, parts = _HEADS[type(node.op)], [node.operand]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        head, parts = _HEADS[type(node.ops[0])], [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
        head, parts = _HEADS[type(node.op)], node.values
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        head, parts = {"max": "max", "min": "min", "Max": "max", "Min": "min"}[node.func.id], node.args
    else:
        raise ValueError("another form")
    args = [_read(part, sizes, depth + 1) for part in parts]
    if not any(isinstance(a, Expr) for a in args):
        return Expr(head, *args).value({})
    return Expr(head, *args)
