"""Functions that compute the ops of scripts: numbers, strings, lists and dictionaries, and tensor ops whose arguments
have another order than taeda's. All other ops come from the op table, by name.

Functions take arguments in the order of the signatures in ``schemas.txt``.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core, autograd, random
from .._core import Tensor, device
from ..amp import autocast_mode
from ..nn import functional as F
from ..nn.utils import rnn
from ..ops.table import OPS
from ..ops.views import broadcast_shapes
from .arithmetic import ARITHMETIC, from_float, from_tensor, from_text, larger, smaller, wrapping
from .dtypes import CONVERT, number
from .types import ScriptObject

INT_MAX = 2**63 - 1


# ---- exceptions ------------------------------------------------------------------------------------------------------
class ScriptError(RuntimeError):
    """An exception that a script raises; PyTorch's ``torch.jit.Error``."""


def raise_exception(message: Any, name: str | None = None) -> None:
    """``raise name(message)``; the message names the exception's class where it is not plain."""
    kind = (name or "").removeprefix("builtins.")
    text = message if isinstance(message, str) else show(message)
    raise ScriptError(f"{kind}: {text}" if kind and kind != "Exception" else text)


class ScriptLookupError(RuntimeError, LookupError):
    """A key or an index that a container has not: a RuntimeError, as in PyTorch's scripts."""


def _item(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except IndexError as error:
        raise ScriptLookupError(str(error)) from None
    except KeyError:
        raise ScriptLookupError(f"KeyError: {show(key)}") from None


# ---- text ------------------------------------------------------------------------------------------------------------
def show(value: Any) -> str:
    """``str(value)`` as scripts have it."""
    if isinstance(value, float):
        whole = -(2**63) <= value < 2**63 and value == int(value)
        return f"{int(value)}." if whole else f"{value:.17g}"
    if isinstance(value, complex):
        imag = show(value.imag)
        return f"{show(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"
    if isinstance(value, list):
        return f"[{', '.join(map(show, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{show(k)}: {show(v)}' for k, v in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' * (len(value) == 1)})"
    return str(value)


def format_text(template: str, *values: Any) -> str:
    """``{}`` by the values in turn; nothing else in braces has a meaning."""
    parts = template.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {template}")
    out = [parts[0]]
    for value, part in zip(values, parts[1:], strict=False):
        out += [show(value), part]
    return "".join(out)


def percent_format(template: str, *values: Any) -> str:
    """``template % values``."""
    if len(values) == 1 and isinstance(values[0], tuple):
        (values,) = values
    return template % tuple(v if isinstance(v, (int, float, str)) else show(v) for v in values)


def _split(text: str, separator: str | None = None, limit: int = -1) -> list[str]:
    return text.split(separator, limit)


def _slice(x: Any, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return x[start:end:step]


def _find(text: str, part: str, start: int = 0, end: int = -1) -> int:
    return text.find(part, start, _end(text, end))


def _end(text: str, end: int) -> int:
    return len(text) if end == -1 else end


def _affix(method: Callable) -> Callable:
    return lambda text, part, start=0, end=-1: method(text, part, start, _end(text, end))


# ---- numbers ---------------------------------------------------------------------------------------------------------
def _to_int(x: Any) -> int:
    if isinstance(x, str):
        return from_text(x)
    return from_float(x.item() if isinstance(x, Tensor) else x)


def _to_float(x: Any) -> float:
    if isinstance(x, str):
        return _float_from_text(x)
    return float(x.item() if isinstance(x, Tensor) else x)


def _float_from_text(text: str) -> float:
    """The float that a text spells, as C reads it: hexadecimal digits too, and none beyond the range."""
    try:
        if "_" in text:
            raise ValueError(text)
        value = float.fromhex(text) if "0x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise RuntimeError(f"could not convert string to float: {text!r}") from None
    digits = text.lower().partition("e")[0]
    if (math.isinf(value) and "n" not in text.lower()) or (value == 0 and any(c in "123456789" for c in digits)):
        raise RuntimeError(f"the float that {text!r} spells is out of range")
    return value


def _math(name: str) -> Callable:
    function = getattr(math, name)

    def compute(*args: Any) -> Any:
        try:
            return function(*args)
        except (ValueError, OverflowError):  # as the C library has it
            pole = name == "gamma" and not -math.inf <= args[0] < 0
            return math.inf if pole or name in ("exp", "expm1", "sinh", "cosh", "pow", "lgamma") else math.nan

    return compute


def _mul(a: Any, b: Any) -> Any:
    if isinstance(a, (list, str)) or isinstance(b, (list, str)):
        sequence, times = (a, b) if isinstance(a, (list, str)) else (b, a)
        if len(sequence) * times > 2**27:
            raise RuntimeError(f"a list of {len(sequence) * times} elements is too long")
    return a * b


# ---- lists and dictionaries ------------------------------------------------------------------------------------------
def _sort(x: list, reverse: bool = False) -> None:
    x.sort(key=_order(x), reverse=reverse)


def _sorted(x: list) -> list:
    return sorted(x, key=_order(x))


def _order(x: list) -> Any:
    """A key that compares elements. Objects of scripts are compared by their own ``__lt__``."""
    if not x or not isinstance(x[0], ScriptObject):
        return None
    less = x[0]._kind.method("__lt__")
    return functools.cmp_to_key(lambda a, b: -1 if less.run(a, b) else int(less.run(b, a)))


def _pop(x: Any, key: Any = -1, *default: Any) -> Any:
    if isinstance(x, list):
        if not x:
            raise IndexError("pop from empty list")
        return x.pop(key)
    return x.pop(key, *default)


def _set_item(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _append(x: list, value: Any) -> list:
    x.append(value)
    return x


def _min_max(pick: Callable, of_two: Callable) -> Callable:
    def compute(a: Any, *b: Any) -> Any:
        if not b:
            if not a:
                raise RuntimeError(f"{pick.__name__}() arg is an empty sequence")
            return pick(a)
        found = of_two(a, *b)
        return float(found) if isinstance(a, float) != isinstance(b[0], float) else found

    return compute


def _infer_size(a: list, b: list) -> list:
    return list(broadcast_shapes(a, b))


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, stacklevel=2)


def _unwrap(x: Any) -> Any:
    if x is None:
        raise RuntimeError("Unwrapping null optional")
    return x


#: Ops of values that are no tensors.
SCALARS: dict[str, Callable] = {
    "add": operator.add, "sub": operator.sub, "mul": _mul, "neg": operator.neg, "abs": abs,
    "mathremainder": _math("remainder"), "floor": math.floor, "ceil": math.ceil, "gcd": math.gcd,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__not__": operator.not_,
    "__lshift__": operator.lshift, "__rshift__": operator.rshift, "bitwise_not": operator.invert,
    "__is__": operator.is_, "__isnot__": operator.is_not, "__contains__": operator.contains,
    "__getitem__": _item, "slice": _slice, "len": len, "list": list, "dict": dict,
    "append": _append, "extend": lambda x, other: x.extend(other), "insert": lambda x, i, v: x.insert(i, v),
    "pop": _pop, "remove": list.remove, "reverse": lambda x: x.reverse(), "clear": lambda x: x.clear(),
    "copy": lambda x: x.copy(), "count": lambda x, *v: x.count(*v), "index": lambda x, *v: x.index(*v),
    "index.str": lambda x, part, start=0, end=-1: x.index(part, start, _end(x, end)),
    "sort": _sort, "sorted": _sorted, "_set_item": _set_item, "Delete": operator.delitem,
    "keys": list, "values": lambda x: list(x.values()), "items": lambda x: list(x.items()), "update": dict.update,
    "get": lambda x, key, default=None: x.get(key, default), "setdefault": dict.setdefault,
    "popitem": lambda x: x.popitem(), "sum": sum, "any": any, "all": all, "set": list,
    "Int": _to_int, "Float": _to_float, "Bool": bool, "Complex": complex, "str": show, "format": format_text,
    "percentFormat": percent_format, "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin,
    "join": lambda s, parts: s.join(parts), "split": _split, "rsplit": lambda s, sep=None, n=-1: s.rsplit(sep, n),
    "splitlines": lambda s, keepends=False: s.splitlines(keepends), "find": _find,
    "rfind": lambda s, part, start=0, end=-1: s.rfind(part, start, _end(s, end)),
    "rindex": lambda s, part, start=0, end=-1: s.rindex(part, start, _end(s, end)),
    "startswith": _affix(str.startswith), "endswith": _affix(str.endswith),
    "replace": lambda s, old, new, n=-1: s.replace(old, new, n), "expandtabs": lambda s, n=8: s.expandtabs(n),
    "warn": _warn, "_unwrap_optional": _unwrap, "_range_length": lambda lo, hi, step: len(range(lo, hi, step)),
    "__range_length": lambda lo, hi, step: len(range(lo, hi, step)),
    "__derive_index": lambda i, start, step: start + i * step, "manual_seed": lambda seed: random.manual_seed(seed),
    "is_grad_enabled": lambda: _core.is_grad_enabled(), "set_grad_enabled": lambda on: autograd.set_grad_enabled(on),
    "is_autocast_enabled": autocast_mode.is_autocast_enabled,
    "is_autocast_cpu_enabled": autocast_mode.is_autocast_cpu_enabled, "is_scripting": lambda: True,
    "has_torch_function": lambda *a: False, "_get_tracing_state": lambda: False, "device": device,
    "_infer_size": _infer_size, "wait": lambda future: future.wait(), "degrees": math.degrees, "radians": math.radians,
    "modf": math.modf, "isfinite": math.isfinite,
    "isnan": math.isnan, "isinf": math.isinf, "frexp": math.frexp, "copysign": math.copysign,
    "real": lambda x: x.real, "imag": lambda x: x.imag, "polar": lambda r, a: complex(r * math.cos(a), r * math.sin(a)),
    "_print": print, "can_cast": lambda a, b: OPS["can_cast"](CONVERT["ScalarType"](a), CONVERT["ScalarType"](b)),
}  # fmt: skip
SCALARS |= ARITHMETIC
SCALARS |= {
    name: _math(name)
    for name in (
        "sqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 fabs "
        "lgamma gamma erf erfc hypot"
    ).split()
}
SCALARS |= {
    name: getattr(str, name)
    for name in (
        "lower upper capitalize title swapcase strip lstrip rstrip center ljust rjust zfill isalnum isalpha isdigit "
        "isdecimal isidentifier islower isnumeric isprintable isspace istitle isupper partition rpartition"
    ).split()
}


# ---- tensors ---------------------------------------------------------------------------------------------------------
def _to(x: Tensor, *args: Any, **keywords: Any) -> Tensor:
    return x.to(*args, **{k: v for k, v in keywords.items() if v is not None and k not in ("layout", "pin_memory")})


def _to_dtype(
    x: Tensor, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    return x.to(dtype=_dtype(dtype), copy=copy) if dtype is not None else x.clone() if copy else x


def _to_device(
    x: Tensor, where: Any, dtype: Any = None, non_blocking: bool = False, copy: bool = False, form: Any = None
):
    return x.to(
        device=where if where is not None else x.device, dtype=x.dtype if dtype is None else _dtype(dtype), copy=copy
    )


def _dtype(code: Any) -> Any:
    return CONVERT["ScalarType"](code)


def _arange(n: int) -> Tensor:
    return OPS["arange"](n)


def _interpolate(x, size=None, scale=None, mode="nearest", align_corners=None, recompute=None, antialias=False):
    return F.interpolate(x, size, scale, mode, align_corners, recompute, antialias)


def _pack(x: Tensor, lengths: Tensor, batch_first: bool) -> tuple:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed(data: Tensor, sizes: Tensor, batch_first: bool, value: Any, total: int) -> tuple:
    packed = rnn.PackedSequence(data, sizes, None, None)
    return tuple(rnn.pad_packed_sequence(packed, batch_first, value, total if total > 0 else None))


def _tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    return OPS["tensor"](_plain(data), dtype=dtype, requires_grad=requires_grad)


def _plain(data: Any) -> Any:
    if isinstance(data, list):
        return [_plain(x) for x in data]
    return data.item() if isinstance(data, Tensor) and data.dim() == 0 else data


def _as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return _tensor(data, dtype=dtype)


def _convolution_mode(x, weight, bias, stride, padding, dilation, groups):
    return OPS[f"conv{weight.dim() - 2}d"](x, weight, bias, stride, padding, dilation, groups)


def _old_div(x: Tensor, other: Any) -> Tensor:
    floating = x.is_floating_point() or isinstance(other, float)
    if floating or (isinstance(other, Tensor) and other.is_floating_point()):
        return OPS["div"](x, other)
    return OPS["div"](x, other, rounding_mode="trunc")


def _store_out(out: Tensor, value: Tensor) -> Tensor:
    return (out if out.shape == value.shape else out.resize_(tuple(value.shape))).copy_(value)


def _size(x: Tensor, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


def _backward(x: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False) -> None:
    if isinstance(x, list):
        autograd.backward(x, gradient, retain_graph, create_graph)
    else:
        x.backward(gradient, retain_graph, create_graph)


def _grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    given = None if grad_outputs is None else list(grad_outputs)
    return list(autograd.grad(outputs, inputs, given, retain_graph, create_graph, allow_unused=allow_unused))


def member(name: str) -> Callable:
    """A function that calls the method ``name`` of a tensor, or reads the attribute: a sparse tensor's class has its
    own.
    """
    if not callable(getattr(Tensor, name)):
        return operator.attrgetter(name)

    def call(self: Tensor, *args: Any, **keywords: Any) -> Any:
        return getattr(self, name)(*args, **keywords)

    return call


def _contiguous(x: Tensor, *, memory_format: Any = None) -> Tensor:
    return x.contiguous(memory_format=memory_format) if memory_format is not None else x.contiguous()


#: Ops of tensors that are called otherwise than taeda's op of that name, by name or ``name.overload``.
TENSORS: dict[str, Callable] = {
    "to": _to, "to.dtype": _to_dtype, "to.prim_dtype": _to_dtype, "to.device": _to_device,
    "to.prim_Device": _to_device,
    "to.other": lambda x, y, non_blocking=False, copy=False, memory_format=None: x.to(y, copy=copy),
    "to.prim_other": lambda x, *rest: x,
    "index.str": SCALARS["index.str"],
    "_unique": lambda x, *rest: OPS["unique"](x, True, True),
    "__interpolate": _interpolate, "size": _size, "size.int": _size,
    "len": len,
    "_pack_padded_sequence": _pack,
    "_pad_packed_sequence": _pad_packed, "tensor": _tensor, "as_tensor": _as_tensor, "Int": _to_int, "Float": _to_float,
    "Bool": bool, "IntImplicit": from_tensor, "FloatImplicit": _to_float, "ScalarImplicit": lambda x: x.item(),
    "Complex": lambda *parts: complex(*[x.item() if isinstance(x, Tensor) else x for x in parts]),
    "backward": _backward, "grad": _grad,
    "__ilshift__": operator.ilshift, "__irshift__": operator.irshift,
    "contiguous": _contiguous, "format": format_text, "str": show,
    "_convolution_mode": _convolution_mode,
    "pad_sequence": rnn.pad_sequence,
    "_shape_as_tensor": lambda x: _tensor(list(x.shape)),
    "numpy_T": lambda x: x.T, "T": lambda x: x.T, "H": lambda x: x.H,
    "nonzero_numpy": lambda x: OPS["nonzero"](x, as_tuple=True), "stride": lambda x: list(x.stride()),
    "stride.int": lambda x, dim: x.stride(dim),
    "_tensor_to_list": lambda x: x.tolist(), "_list_to_tensor": _tensor, "_set_item": _set_item, "append": _append,
    "__contains__": operator.contains, "dict": dict, "_dim_arange": lambda like, dim: _arange(like.shape[dim]),
    "eq.Tensor_list": operator.eq, "ne.Tensor_list": operator.ne, "index.list_Tensor": SCALARS["index"],
    "sort.Tensor": _sort, "sorted.Tensor": sorted, "is_non_overlapping_and_dense": lambda x: True,
    "infer_size": _infer_size, "gelu_": lambda x, *, approximate="none": x.copy_(OPS["gelu"](x, approximate)),
    "storage_offset": Tensor.storage_offset,
    "add_.t": lambda a, b: a.__iadd__(b), "manual_seed": SCALARS["manual_seed"], "wait": SCALARS["wait"],
}  # fmt: skip
TENSORS |= {
    name: member(name)
    for name in (
        "is_coalesced _coalesced_ values _nnz _indices _values to_dense to_sparse to_sparse_csr to_sparse_csc "
        "to_sparse_bsr to_sparse_bsc"
    ).split()
}
TENSORS["split.str"] = _split
# ---- what is part of the language ------------------------------------------------------------------------------------
#: Ops of the namespace ``prim``.
PRIMITIVES: dict[str, Callable] = {
    "RaiseException": raise_exception, "StoreOut": _store_out, "OldDiv": _old_div,
    "NumToTensor": lambda x: OPS["tensor"](x), "Print": lambda *a: print(*map(show, a)),
    "dtype": lambda x: number(x.dtype), "device": lambda x: x.device, "layout": lambda x: number(x.layout),
    "data": lambda x: x.detach(),
    "is_cuda": lambda x: x.is_cuda, "is_meta": lambda x: x.is_meta, "is_cpu": lambda x: x.device.type == "cpu",
    "is_sparse": lambda x: x.is_sparse, "is_quantized": lambda x: False, "is_mkldnn": lambda x: False,
    "is_xpu": lambda x: False, "is_mps": lambda x: False, "is_xla": lambda x: False, "is_nested": lambda x: False,
    "requires_grad": lambda x: x.requires_grad, "grad": lambda x: x.grad, "itemsize": lambda x: x.itemsize,
    "nbytes": lambda x: x.nbytes, "index": lambda d: d.index, "type": lambda d: d.type, "min": _min_max(min, smaller),
    "max": _min_max(max, larger), "abs": wrapping(abs), "rangelist": lambda n: list(range(n)),
    "StringIndex": operator.getitem,
    "EnumName": lambda x: x.name, "tolist": TENSORS["_tensor_to_list"], "EnumValue": lambda x: x.value,
    "unchecked_unwrap_optional": lambda x: x,
    "id": id, "name": lambda x: None, "VarConcat": lambda *a: OPS["cat"](list(a[:-1]), a[-1]),
    "VarStack": lambda *a: OPS["stack"](list(a[:-1]), a[-1]),
}  # fmt: skip
