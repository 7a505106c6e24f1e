"""Values of programs as JSON, and back. ``docs/export-format.md`` describes it."""

from __future__ import annotations

import keyword
import math
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from taeda._core import Tensor
from taeda.fx import Node
from taeda.fx.experimental.symbolic_shapes import (
    _FUNCTIONS,
    Expr,
    SymBool,
    SymFloat,
    SymInt,
    ValueRanges,
    _Symbolic,
    int_oo,
)
from taeda.ops.meta import without_values
from taeda.utils import _pytree as pytree
from taeda.utils._pytree import LeafSpec, TreeSpec

from .. import _core
from ._values import fake

_LAYOUTS = {str(x): x for x in (_core.strided,)}
_FORMATS = {
    str(getattr(_core, n)): getattr(_core, n)
    for n in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
    if hasattr(_core, n)
}
_KINDS = {"tuple": tuple, "list": list, "dict": dict, "OrderedDict": OrderedDict}

#: Classes that programs take and give, by the name that files have for them.
CLASSES: dict[str, type] = {}
#: The names of their fields.
FIELDS: dict[type, list[str]] = {}


def register_dataclass(
    cls: type, *, serialized_type_name: str | None = None, field_names: list[str] | None = None, **options: Any
) -> None:
    """Let programs take and give objects of a dataclass. A program in a file needs it registered before it is loaded.

    Args:
        cls: the dataclass.
        serialized_type_name: its name in files; ``module.name`` by default.
        field_names: accepted: all fields are taken.
        **options: accepted.

    Raises:
        AssertionError: ``cls`` is no dataclass.
        ValueError: it is registered already.

    Examples:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Pair:
        ...     left: taeda.Tensor
        ...     right: taeda.Tensor
        >>> taeda.export.register_dataclass(Pair, serialized_type_name="docs.Pair")
        >>> class Sum(nn.Module):
        ...     def forward(self, pair):
        ...         return pair.left + pair.right
        >>> program = taeda.export.export(Sum(), (Pair(taeda.ones(2), taeda.ones(2)),))
        >>> program.module()(Pair(taeda.tensor([1.0, 2.0]), taeda.ones(2)))
        tensor([2., 3.])
    """
    import dataclasses

    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls, field_names=field_names)
    FIELDS[cls] = field_names or [field.name for field in dataclasses.fields(cls)]
    CLASSES[serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"] = cls


def bad(what: str) -> ValueError:
    """The error for a file with forbidden content."""
    return ValueError(f"export.load: {what}")


# ---- checks that decoding starts with --------------------------------------------------------------------------------


def identifier(x: Any) -> str:
    """A name that may stand in code."""
    if not isinstance(x, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,500}", x) or keyword.iskeyword(x):
        raise bad(f"{x!r:.80} is no name")
    return x


def path(x: Any) -> str:
    """A path of attributes."""
    if not isinstance(x, str) or not re.fullmatch(r"[^\s.'\"\\{}]+(\.[^\s.'\"\\{}]+)*", x) or not x.isprintable():
        raise bad(f"{x!r:.80} is no path")
    return x


def items(x: Any, count: int | None = None) -> list:
    """A list, of that many items."""
    if not isinstance(x, list) or (count is not None and len(x) != count):
        raise bad(f"expected a list{'' if count is None else f' of {count}'}, got {x!r:.80}")
    return x


def fields(x: Any, *names: str) -> list:
    """The values of these keys of an object, which has no others; None for a missing key."""
    if not isinstance(x, dict) or not set(x) <= set(names):
        raise bad(f"expected an object of {', '.join(names)}, got {x!r:.80}")
    return [x.get(name) for name in names]


def whole(x: Any, low: int = 0) -> int:
    """An int of at least ``low`` that fits 62 bits."""
    if type(x) is not int or not low <= x < 2**62:
        raise bad(f"expected a whole number of at least {low}, got {x!r:.80}")
    return x


# ---- arguments -------------------------------------------------------------------------------------------------------


def encode(x: Any) -> Any:
    """An argument as JSON."""
    if isinstance(x, SymInt):
        raise ValueError("export: a size that may change stands outside of the graph")
    if x is None or isinstance(x, (bool, str)) or type(x) is int:
        return x
    if isinstance(x, float):
        return float(x) if math.isfinite(x) else {"float": str(x)}
    if isinstance(x, int):
        return int(x)
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, tuple):
        return {"tuple": [encode(y) for y in x]}
    if isinstance(x, list):
        return {"list": [encode(y) for y in x]}
    if isinstance(x, dict):
        return {"dict": [[encode(k), encode(v)] for k, v in x.items()]}
    if isinstance(x, slice):
        return {"slice": [encode(y) for y in (x.start, x.stop, x.step)]}
    if isinstance(x, complex):
        return {"complex": [encode(x.real), encode(x.imag)]}
    if x is Ellipsis:
        return {"ellipsis": True}
    for name, kind in (
        ("dtype", _core.dtype), ("device", _core.device), ("layout", _core.layout),
        ("memory_format", _core.memory_format)
    ):  # fmt: skip
        if isinstance(x, kind):
            return {name: x.name if name == "dtype" else str(x)}
    raise ValueError(f"export: {type(x).__name__} {x!r:.80} cannot be written to a file")


def decode(x: Any, nodes: dict[str, Any]) -> Any:
    """An argument from JSON, with the nodes that its names stand for."""
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if not isinstance(x, dict) or len(x) != 1:
        raise bad(f"expected an argument, got {x!r:.80}")
    ((kind, value),) = x.items()
    if kind not in _DECODERS:
        raise bad(f"unknown kind of argument {kind!r:.80}")
    return _DECODERS[kind](value, nodes)


def _node(value: Any, nodes: dict[str, Any]) -> Any:
    if not isinstance(value, str) or value not in nodes:
        raise bad(f"{value!r:.80} is used before it is made")
    return nodes[value]


def _named(found: dict[str, Any]) -> Callable:
    def decoded(value: Any, nodes: dict[str, Any]) -> Any:
        if not isinstance(value, str) or value not in found:
            raise bad(f"{value!r:.80} is none of {', '.join(found)}")
        return found[value]

    return decoded


def dtype(value: Any, nodes: Any = None) -> Any:
    known = {d.name: d for d in vars(_core).values() if isinstance(d, _core.dtype)}
    return _named(known)(value, {})


def device(value: Any, nodes: Any = None) -> Any:
    if not isinstance(value, str) or not re.fullmatch(r"(cpu|cuda|meta)(:\d{1,3})?", value):
        raise bad(f"{value!r:.80} is no device")
    return _core.device(value)


def _number(value: Any) -> float:
    if isinstance(value, dict):
        value = decode(value, {})
    if not isinstance(value, (int, float)):
        raise bad(f"{value!r:.80} is no number")
    return value


_DECODERS: dict[str, Callable] = {
    "node": _node,
    "tuple": lambda v, nodes: tuple(decode(y, nodes) for y in items(v)),
    "list": lambda v, nodes: [decode(y, nodes) for y in items(v)],
    "dict": lambda v, nodes: {_key(k): decode(y, nodes) for k, y in (items(pair, 2) for pair in items(v))},
    "slice": lambda v, nodes: slice(*(decode(y, nodes) for y in items(v, 3))),
    "complex": lambda v, nodes: complex(*(_number(y) for y in items(v, 2))),
    "ellipsis": lambda v, nodes: Ellipsis,
    "float": _named({"inf": math.inf, "-inf": -math.inf, "nan": math.nan}),
    "dtype": dtype,
    "device": device,
    "layout": _named(_LAYOUTS),
    "memory_format": _named(_FORMATS),
}


def _key(k: Any) -> Any:
    if not isinstance(k, (str, int)):
        raise bad(f"{k!r:.80} is no key")
    return k


# ---- structures ------------------------------------------------------------------------------------------------------


def encode_spec(spec: Any) -> Any:
    """A TreeSpec as JSON."""
    if spec is None:
        return None
    if spec.is_leaf():
        return "leaf"
    children = [encode_spec(s) for s in spec.children_specs]
    for name, kind in _KINDS.items():
        if spec.type is kind:
            context = [encode(k) for k in spec.context] if name in ("dict", "OrderedDict") else None
            return {"kind": name, "context": context, "children": children}
    for name, cls in CLASSES.items():
        if spec.type is cls:
            return {"kind": "class", "context": [name, *spec.context], "children": children}
    raise ValueError(
        f"export: {getattr(spec.type, '__name__', spec.type)} is among the arguments or results, and cannot be "
        f"written to a "
        "file. Register dataclasses with export.register_dataclass"
    )


def decode_spec(x: Any) -> Any:
    """A TreeSpec from JSON."""
    if x == "leaf":
        return LeafSpec()
    kind, context, children = fields(x, "kind", "context", "children")
    specs = [decode_spec(c) for c in items(children)]
    if kind == "class":
        name, *names = items(context)
        cls = CLASSES.get(name) if isinstance(name, str) else None
        if cls is None:
            raise bad(f"the class {name!r:.80} is not registered; call export.register_dataclass before loading")
        if names != FIELDS[cls] or len(names) != len(specs):
            raise bad(f"the fields of {name!r} are {FIELDS[cls]}, not {names!r:.80}")
        return TreeSpec(cls, names, specs)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise bad(f"unknown structure {kind!r:.80}")
    if kind in ("dict", "OrderedDict"):
        keys = [_key(k) for k in items(context, len(specs))]
        if len(set(keys)) != len(keys):
            raise bad("a dict has a key twice")
        return TreeSpec(_KINDS[kind], keys, specs)
    return TreeSpec(_KINDS[kind], None, specs)


# ---- sizes -----------------------------------------------------------------------------------------------------------


def encode_expr(x: Any) -> Any:
    """A size, number or expression as JSON."""
    if isinstance(x, _Symbolic):
        x = x.expr
    if isinstance(x, Expr):
        return [x.head, *map(encode_expr, x.args)]
    return encode(x)


def decode_expr(x: Any, depth: int = 0) -> Any:
    """A size, number or expression from JSON."""
    if not isinstance(x, list):
        if type(x) not in (int, float):
            raise bad(f"{x!r:.80} is no size")
        return x
    if not x or depth > 50:
        raise bad("an expression is empty, or too deep")
    head, *args = x
    if not args:
        return Expr(identifier(head))
    if not isinstance(head, str) or head not in _FUNCTIONS or len(args) > 3:
        raise bad(f"unknown function of sizes {head!r:.80}")
    arity = 1 if head in ("neg", "abs", "ceil", "floor", "not", "float") else 3 if head == "ite" else 2
    made = [decode_expr(a, depth + 1) for a in args]
    if len(args) != arity or (head == "pow" and not (_is_small(made[1]) and not _has_power(made[0]))):
        raise bad(f"{head} of {len(args)} sizes")  # powers of powers are numbers of any length
    return Expr(head, *made)


def _is_small(x: Any) -> bool:
    return not isinstance(x, Expr) and abs(x) <= 8


def _has_power(x: Any) -> bool:
    return isinstance(x, Expr) and (x.head == "pow" or any(map(_has_power, x.args)))


def encode_ranges(ranges: dict[str, ValueRanges]) -> Any:
    """Ranges of symbols as JSON; no bound is null."""
    return {n: [None if abs(x) == int_oo else int(x) for x in (r.lower, r.upper)] for n, r in ranges.items()}


def decode_ranges(x: Any) -> dict[str, ValueRanges]:
    """Ranges of symbols from JSON."""
    if not isinstance(x, dict):
        raise bad("the ranges are no object")
    found = {}
    for name, pair in x.items():
        low, high = items(pair, 2)
        least, most = (None if x is None else whole(x, -(2**61)) for x in (low, high))
        found[identifier(name)] = ValueRanges(-int_oo if least is None else least, int_oo if most is None else most)
    return found


def encode_value(x: Any) -> Any:
    """The form of a node's value as JSON; None unless it is a tensor, a size or a tuple of tensors."""
    if isinstance(x, SymInt):
        return {"size": encode_expr(x), "hint": int(x.samples[0])}
    if isinstance(x, (SymBool, SymFloat)):
        return {"condition" if isinstance(x, SymBool) else "number": encode_expr(x)}
    if isinstance(x, Tensor):
        sizes, hints = [encode_expr(n) for n in x.shape], [int(n) for n in x.shape]
        return {"tensor": [x.dtype.name, sizes, hints, [int(n) for n in x.stride()], str(x.device)]}
    if isinstance(x, (tuple, list)) and x and all(isinstance(y, Tensor) for y in x):
        return {"tensors": [encode_value(y) for y in x]}
    return None


def decode_value(x: Any) -> Any:
    """The form of a node's value from JSON."""
    size, hint, tensor, tensors, condition, number = fields(
        x, "size", "hint", "tensor", "tensors", "condition", "number"
    )
    for given, kind in ((condition, SymBool), (number, SymFloat)):
        if given is not None:
            expr = decode_expr(given)
            if not isinstance(expr, Expr):
                raise bad(f"{given!r:.80} depends on nothing")
            return kind(1.0)._become(expr, (1.0,))
    if tensors is not None:
        return tuple(decode_value(y) for y in items(tensors))
    if tensor is None:
        return _size(size, whole(hint, -(2**61)))
    kind, sizes, hints, strides, where = items(tensor, 5)
    hints = [whole(n) for n in items(hints)]
    if len(hints) > 64 or math.prod(max(n, 1) for n in hints) >= 2**55:
        raise bad("a tensor is too large")
    strides = [whole(n, -(2**40)) for n in items(strides, len(hints))]
    if any(abs(n * s) >= 2**55 for n, s in zip(hints, strides, strict=True)):
        raise bad("a tensor is too large")
    shown = [_size(s, n) for s, n in zip(items(sizes, len(hints)), hints, strict=True)]
    return fake(without_values(hints, [max(s, 0) for s in strides], dtype(kind)), shown, device(where))


def _size(x: Any, hint: int) -> Any:
    expr = decode_expr(x)
    return SymInt(hint)._become(expr, (hint,)) if isinstance(expr, Expr) else hint
