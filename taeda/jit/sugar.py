"""Things of the front end that are no values: names of the language, modules and classes, small helpers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from .._core import device
from . import ir
from .schemas import IMPLICIT, SPREAD, Schema
from .types import ANY, BOOL, DEVICE, FLOAT, INT, NUMBER, TENSOR, ClassType, Type  # fmt: skip

#: Ops of Python's operators, and the method that a class may have for it.
BINARY: dict[type, tuple[str, str]] = {
    ast.Add: ("aten::add", "__add__"), ast.Sub: ("aten::sub", "__sub__"), ast.Mult: ("aten::mul", "__mul__"),
    ast.Div: ("aten::div", "__truediv__"), ast.FloorDiv: ("aten::floordiv", "__floordiv__"),
    ast.Mod: ("aten::remainder", "__mod__"), ast.Pow: ("aten::pow", "__pow__"),
    ast.MatMult: ("aten::matmul", "__matmul__"), ast.BitAnd: ("aten::__and__", "__and__"),
    ast.BitOr: ("aten::__or__", "__or__"), ast.BitXor: ("aten::__xor__", "__xor__"),
    ast.LShift: ("aten::__lshift__", "__lshift__"), ast.RShift: ("aten::__rshift__", "__rshift__"),
}  # fmt: skip
COMPARE: dict[type, tuple[str, str]] = {
    ast.Lt: ("aten::lt", "__lt__"), ast.LtE: ("aten::le", "__le__"), ast.Gt: ("aten::gt", "__gt__"),
    ast.GtE: ("aten::ge", "__ge__"), ast.Eq: ("aten::eq", "__eq__"), ast.NotEq: ("aten::ne", "__ne__"),
}  # fmt: skip
#: Ops of augmented assignments to tensors. ``%=`` means ``fmod`` for numbers, too.
_INPLACE = {
    ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_", ast.Mod: "fmod_", ast.LShift: "__ilshift__",
    ast.RShift: "__irshift__", ast.MatMult: "matmul",
}  # fmt: skip
#: Functions of Python's own that are ops.
FUNCTIONS = {
    "abs": "prim::abs", "min": "prim::min", "max": "prim::max", "round": "aten::round", "sum": "aten::sum",
    "sorted": "aten::sorted", "any": "aten::any", "all": "aten::all", "ord": "aten::ord", "chr": "aten::chr",
    "hex": "aten::hex", "oct": "aten::oct", "bin": "aten::bin", "hash": "aten::hash", "divmod": "aten::divmod",
    "pow": "aten::pow", "len": "aten::len", "print": "prim::Print", "id": "prim::id",
}  # fmt: skip
CASTS = {"int": ("aten::Int", INT), "float": ("aten::Float", FLOAT), "bool": ("aten::Bool", BOOL)}
#: Attributes of tensors that are ops.
PROPERTIES = {
    **{n: f"prim::{n}" for n in (
        "dtype device grad requires_grad is_cuda is_sparse is_quantized is_mkldnn is_meta is_cpu is_nested layout data "
        "itemsize nbytes name is_xpu is_mps"
    ).split()},
    "shape": "aten::size", "ndim": "aten::dim", "T": "aten::numpy_T", "mT": "aten::mT", "mH": "aten::mH",
    "H": "aten::matrix_H", "real": "aten::real", "imag": "aten::imag", "is_leaf": "aten::is_leaf",
}  # fmt: skip


# ---- names without a value -------------------------------------------------------------------------------------------
class Sugar:
    """Something that a name stands for and that is no value: a namespace, a class, a function of the language."""


class Form(Sugar):
    """A function of the language itself, such as ``annotate``, ``range`` or ``len``."""

    def __init__(self, name: str) -> None:
        self.name = name


class OpName(Sugar):
    """An op, with what precedes its arguments."""

    def __init__(self, qualified: str, first: ir.Expr | None = None) -> None:
        self.qualified, self.first = qualified, first


class Method(Sugar):
    """A method of an object, or what reads like one."""

    def __init__(self, object: ir.Expr, name: str) -> None:
        self.object, self.name = object, name


class FunctionRef(Sugar):
    """A function that is compiled."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function


class TypeRef(Sugar):
    """A class, named tuple, enum or plain type."""

    def __init__(self, type: Type) -> None:
        self.type = type


class Parts(Sugar):
    """Several things that are known apart, of which some may be no values: modules of a list, a zip of them."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


class Missing(Sugar):
    """A variable that only some ways here define."""

    def __init__(self, why: str) -> None:
        self.why = why


Value = Any  # an Expr or a Sugar
Scope = dict[str, Value]


class Part:
    """A part of :class:`.frontend.Frontend`, which has the others too."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


_SCALAR = (str,)


def _known(value: Any) -> Any:
    """The value of a constant, or of ``a or b`` and ``a and b`` that ``b`` decides; None if there is none."""
    if isinstance(value, ir.Both):
        decisive = _known(value.b)
        return None if decisive is value.is_and else decisive
    return value.value if isinstance(value, ir.Const) else None


def _int(value: int) -> ir.Const:
    return ir.Const(value, INT)


def _device(text: str) -> ir.Const:
    return ir.Const(device(text), DEVICE)


def _is_module(value: Any) -> bool:
    return isinstance(value, ir.Expr) and isinstance(value.type, ClassType) and value.type.is_module


def _load(target: ast.expr) -> ast.expr:
    """A target, as an expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


def _target_names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _in_loop(node: ast.AST, outer: ast.For) -> bool:
    """Whether ``node`` is within a loop that is within ``outer``."""
    for inner in ast.walk(ast.Module(outer.body, [])):
        if isinstance(inner, (ast.For, ast.While)) and any(n is node for n in ast.walk(inner)):
            return True
    return False


def _cost(schema: Schema, sources: list, given: list[Type], named: dict[str, Type]) -> int:
    """The distance of the arguments from a signature: 0 if all match it exactly."""
    cost = 0
    for p, (source, how) in zip(schema.parameters, sources, strict=True):
        if source is None:
            continue
        t = given[source] if isinstance(source, int) else named[source]
        wanted = p.type.element if p.type.name == "Optional" and t.name != "Optional" else p.type
        if how == SPREAD:
            continue
        if wanted is ANY:
            cost += 4
        elif wanted != t:
            cost += 2 + (wanted is NUMBER) + (4 + 4 * (t == TENSOR)) * (how == IMPLICIT)  # a tensor's element last
    return cost + 3 * schema.variadic


_STATEMENTS = {
    ast.Pass, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.While, ast.For, ast.Break, ast.Continue,
    ast.Return, ast.Raise, ast.Assert, ast.Delete, ast.With,
}  # fmt: skip

#: Functions of the language that are methods of the front end, and all names of the language itself.
FORM_METHODS = frozenset(
    "annotate unchecked_cast uninitialized str complex isinstance getattr hasattr list dict tuple fork wait".split()
)
FORM_NAMES = frozenset([*FORM_METHODS, *FUNCTIONS, *CASTS, "range", "enumerate", "zip", "reversed"])
