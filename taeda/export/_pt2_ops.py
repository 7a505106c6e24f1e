"""The ops of decomposed programs by their names and arguments in PyTorch's library, ATen."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from taeda._core import Op, Tensor
from taeda.aten import overload_of
from taeda.aten.spellings import CDIST_MODES
from taeda.fx import Node
from taeda.fx.experimental.symbolic_shapes import SymBool, SymFloat, SymInt
from taeda.jit.schemas import Schema, overloads
from taeda.jit.types import BOOL, FLOAT, INT, NUMBER, REQUIRED, STR, TENSOR, Type

from .. import _core
from ._unknown_sizes import _bound

#: Arguments that say where a result is, or that hold by themselves.
_PLACES = frozenset(
    "device layout pin_memory requires_grad memory_format non_blocking out inplace implicit sparse_grad".split()
)

Call = tuple[str, list[tuple[str, Any, bool]]]


def _schemas(name: str) -> list[Schema]:
    """The signatures of ATen's ops that may be the op ``name``."""
    return [s for prefix in ("", "special_") for s in overloads(f"aten::{prefix}{name}")]


def _matched(function: Any, given: dict[str, Any]) -> Call | None:
    """The first of ATen's overloads of the same name that takes these arguments.

    Arguments go by name, or by place where an argument is called otherwise here (``self`` is ``input``).
    """
    ours = list(function.params if isinstance(function, Op) else inspect.signature(function).parameters)
    given = {**given, **given.get("kwargs", {})}
    given.pop("kwargs", None)
    for schema in _schemas(function.__name__):
        names, left, values = {p.name for p in schema.parameters}, dict(given), []
        for i, p in enumerate(schema.parameters):
            key = p.name
            if key not in given and i < len(ours) and ours[i] not in names and ours[i] not in _PLACES:
                key = ours[i]
            if p.name in _PLACES:
                continue
            if key not in left:
                if p.default is not REQUIRED:
                    continue
                if p.type.name != "Optional":
                    break
                left[key] = None  # an argument that the native op requires, such as a bias of None
            value = left.pop(key)
            if isinstance(value, (tuple, list)) and len(value) == 1 and isinstance(value[0], (tuple, list)):
                value = value[0]
            if p.broadcast and not isinstance(value, (tuple, list)):
                value = [value] * p.broadcast
            if not _fits(value, p.type, p.convert):
                break
            values.append((p.name, value, p.keyword))
        else:
            if all(k in _PLACES or v is False for k, v in left.items()):
                target = f"{schema.name}.{schema.overload or 'default'}"
                return _arranged(target, values, [p.name for p in schema.parameters if p.name not in _PLACES])
    return None


def results_of(target: str) -> int:
    """How many results an overload of ATen's has."""
    name, _, overload = target.partition(".")
    found = [s.result for s in overloads(f"aten::{name}") if s.overload == overload.replace("default", "")]
    return len(found[0].args) if found and found[0].name not in ("List", "Optional") and found[0] != TENSOR else 1


def _fits(value: Any, wanted: Type, convert: str) -> bool:
    """Whether ``value`` can be an argument of this type."""
    if wanted.name == "Optional":
        return value is None or _fits(value, wanted.element, convert)
    if wanted.name == "List":
        return isinstance(value, (tuple, list)) and all(_fits(v, wanted.element, convert) for v in value)
    if convert:
        return isinstance(value, _core.dtype)
    value = value.meta.get("val") if isinstance(value, Node) else value
    if wanted == TENSOR or isinstance(value, Tensor):
        return wanted == TENSOR and isinstance(value, Tensor)
    kinds: dict[Type, tuple] = {
        BOOL: (bool, SymBool),
        STR: (str,),
        INT: (int, SymInt),
        FLOAT: (int, float, SymInt, SymFloat),
    }
    kinds[NUMBER] = (*kinds[FLOAT], complex)
    return isinstance(value, kinds.get(wanted, ())) and (wanted in (BOOL, NUMBER) or not isinstance(value, bool))


def refuse(node: Any, why: str) -> ValueError:
    """The error for a step that PyTorch's files have no form for."""
    name = getattr(node.target, "__name__", node.target)
    where = node.meta.get("stack_trace", "").rstrip()
    return ValueError(f"export.save: '{name}' cannot be written for PyTorch: {why}. Save without format='pt2'\n{where}")


def call_of(node: Node) -> Call:
    """The ATen overload of a step, and its arguments: name, value, and whether it is given by name.

    Raises:
        ValueError: there is none.
    """
    function = node.target
    name = function.__name__
    given = _bound(function, tuple(node.args), dict(node.kwargs))
    given = {k: v for k, v in given.items() if v is not None}
    special = _SPECIAL.get(name)
    if special is not None:
        found = special(node, given)
        if found is not None and isinstance(found[1], list):
            return found
        if found is not None:
            target, values = found
            return _arranged(target, [(k.lstrip("*"), v, k.startswith("*")) for k, v in values.items()])
        raise refuse(node, "this form of it has no counterpart in ATen")
    found = _matched(function, given)
    if found is None:
        raise refuse(node, "ATen has no op of this name with these arguments")
    return found


def _arranged(target: str, values: list, args: list[str] | None = None) -> Call:
    """Arguments after one that is left out are given by name."""
    order = args if args is not None else [v[0] for v in values]
    found, gap = [], False
    given = {v[0] for v in values}
    for name in order:
        if name not in given:
            gap = True
            continue
        value, keyword = next((v[1], v[2]) for v in values if v[0] == name)
        found.append((name, value, keyword or gap))
    return target, found


def _tensor(x: Any) -> bool:
    return isinstance(x, Node) and isinstance(x.meta.get("val"), Tensor)


def _overload(node: Node, g: dict) -> str:
    return overload_of(node.target.__name__, g, _tensor)


def _in_order(*names: str) -> Callable:
    """The op with the arguments of these names, in ATen's order."""

    def call(node: Node, g: dict) -> Any:
        return _overload(node, g), {"self" if k == "input" else k: g[k] for k in names if k in g}

    return call


def _compared(node: Node, g: dict) -> Any:
    name = node.target.__name__
    if not _tensor(g["input"]):
        swapped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(name, name)
        if swapped in ("remainder", "fmod"):
            return None
        return f"{swapped}.Scalar", {"self": g["other"], "other": g["input"]}
    return _overload(node, g), {"self": g["input"], "other": g["other"]}


def _commuting(node: Node, g: dict) -> Any:
    extra = {"*alpha": g["alpha"]} if g.get("alpha", 1) != 1 else {}
    if _tensor(g["input"]):
        return _overload(node, g), {"self": g["input"], "other": g["other"], **extra}
    if extra:
        return None
    other = "rsub.Scalar" if node.target.__name__ == "sub" else _overload(node, g)
    return other, {"self": g["other"], "other": g["input"]}


def _div(node: Node, g: dict) -> Any:
    more = {"*rounding_mode": g["rounding_mode"]} if "rounding_mode" in g else {}
    return _overload(node, g), {"self": g["input"], "other": g["other"], **more}


def _reduction(node: Node, g: dict) -> Any:
    target = _overload(node, g)
    dtype = {"*dtype": g["dtype"]} if "dtype" in g else {}
    if target.endswith(".default"):
        return (target, {"self": g["input"], **dtype}) if not g.get("keepdim") else None
    many = isinstance(g["dim"], (tuple, list))
    if many and target == "prod.dim_int":
        return None
    dim = g["dim"] if target in ("prod.dim_int", "any.dim", "all.dim") else list(g["dim"]) if many else [g["dim"]]
    return target, {"self": g["input"], "dim": dim, "keepdim": g.get("keepdim", False), **dtype}


def _var(node: Node, g: dict) -> Any:
    dim: Any = g.get("dim")
    correction = g.get("correction", 1 if g.get("unbiased", True) else 0)
    if isinstance(dim, bool):
        dim, correction = None, int(dim)
    dims = {} if dim is None else {"*dim": list(dim) if isinstance(dim, (tuple, list)) else [dim]}
    more = {"*correction": correction, "*keepdim": g.get("keepdim", False)}
    return f"{node.target.__name__}.correction", {"self": g["input"], **dims, **more}


def _extreme(node: Node, g: dict) -> Any:
    """Maxima, minima and medians: of all elements, of two tensors, along a dimension."""
    target = _overload(node, g)
    other = g.get("dim", g.get("other"))
    given = {"dim": other, "keepdim": g.get("keepdim", False)} if target.endswith(".dim") else {"other": other}
    return target, {"self": g["input"], **({} if other is None else given)}


def _to(node: Node, g: dict) -> Any:
    given = [*g.get("args", ()), *g.get("kwargs", {}).values()] + [
        v for k, v in g.items() if k not in ("input", "args", "kwargs")
    ]
    dtype = next((x for x in given if isinstance(x, _core.dtype)), None)
    value = node.meta.get("val")
    dtype = dtype or (value.dtype if isinstance(value, Tensor) else None)
    return "_to_copy.default", {"self": g["input"], "*dtype": dtype}


def _arange(node: Node, g: dict) -> Any:
    bounds = [*g.get("args", ()), *(g[k] for k in ("start", "end", "step") if k in g)]
    dtype = {"*dtype": g.get("dtype") or node.meta["val"].dtype}
    names = {1: ("default", ("end",)), 2: ("start", ("start", "end")), 3: ("start_step", ("start", "end", "step"))}
    if len(bounds) not in names:
        return None
    overload, keys = names[len(bounds)]
    return f"arange.{overload}", {**dict(zip(keys, bounds, strict=True)), **dtype}


def _scatter(node: Node, g: dict) -> Any:
    if g.get("reduce") is not None:
        return None
    target = _overload(node, g)
    kind = target.partition(".")[2]
    return target, {"self": g["input"], "dim": g["dim"], "index": g["index"], kind: g.get("src", g.get("value"))}


def _cdist(node: Node, g: dict) -> Any:
    mode = CDIST_MODES.index(g.get("compute_mode", CDIST_MODES[0]))
    return "cdist.default", {"x1": g["x1"], "x2": g["x2"], "p": float(g.get("p", 2.0)), "compute_mode": mode}


def _round(node: Node, g: dict) -> Any:
    if g.get("decimals", 0):
        return "round.decimals", {"self": g["input"], "*decimals": g["decimals"]}
    return "round.default", {"self": g["input"]}


def _sort(node: Node, g: dict) -> Any:
    dim, descending = g.get("dim", -1), g.get("descending", False)
    return "sort.stable", {"self": g["input"], "*stable": True, "*dim": dim, "*descending": descending}


def _view(node: Node, g: dict) -> Any:
    size = g.get("size", g.get("args"))
    dtype = g.get("dtype", next((x for x in (size if isinstance(size, (tuple, list)) else [size])), None))
    if isinstance(dtype, _core.dtype):
        return "view.dtype", {"self": g["input"], "dtype": dtype}
    return "reshape.default", {"self": g["input"], "shape": list(size) if isinstance(size, (tuple, list)) else [size]}


def _empty(node: Node, g: dict) -> Any:
    size = g.get("size", g.get("args"))
    size = (
        size[0] if isinstance(size, (tuple, list)) and len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    )
    return "empty.memory_format", {"size": size, **({"*dtype": g["dtype"]} if "dtype" in g else {})}


def _adaptive(node: Node, g: dict) -> Any:
    """ATen's adaptive pools take sizes as numbers, and those of maxima always return two results."""
    values = node.meta["val"]
    name = node.target.__name__
    size = list((values[0] if isinstance(values, (tuple, list)) else values).shape[-int(name[-2]) :])
    return f"{name}.default", {"self": g["input"], "output_size": size}


def _pooled(node: Node, g: dict) -> Any:
    """Pools with indices: the arguments as they were given."""
    if not isinstance(node.meta["val"], (tuple, list)):
        return _matched(node.target, g)
    keys = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    args = {**dict(zip(keys, g.get("args", ()), strict=False)), **g.get("kwargs", {})}
    args.update({k: v for k, v in g.items() if k in keys})
    names = {k: v for k, v in args.items() if k in keys[1:] and v is not None}
    listed = {k: v if k == "ceil_mode" or isinstance(v, (tuple, list)) else [v] for k, v in names.items()}
    rank = node.target.__name__[8]
    keyed = {k if k == "kernel_size" else f"*{k}": v for k, v in listed.items()}
    return f"max_pool{rank}d_with_indices.default", {"self": args["input"], **keyed}


def _interpolate(node: Node, g: dict) -> Any:
    x, mode = g["input"], g.get("mode", "nearest")
    rank = len(x.meta["val"].shape) - 2
    size, scale = g.get("size"), g.get("scale_factor")
    if mode == "area":
        return f"adaptive_avg_pool{rank}d.default", {"self": x, "output_size": list(node.meta["val"].shape[2:])}
    if g.get("antialias") or g.get("recompute_scale_factor"):
        return None
    many = lambda v: list(v) if isinstance(v, (tuple, list)) else [v] * rank  # noqa: E731
    sizes = {"output_size": None if size is None else many(size)}
    scales = {"scale_factors": None if size is not None else [float(s) for s in many(scale)]}
    if mode in ("nearest", "nearest-exact"):
        kind = "upsample_nearest" if mode == "nearest" else "_upsample_nearest_exact"
        return f"{kind}{rank}d.vec", {"input": x, **sizes, **scales}
    if mode not in ("linear", "bilinear", "bicubic", "trilinear"):
        return None
    name = f"upsample_{mode}{rank}d.vec"
    return name, {"input": x, **sizes, "align_corners": bool(g.get("align_corners")), **scales}


def _grid(node: Node, g: dict) -> Any:
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    pads = {"zeros": 0, "border": 1, "reflection": 2}
    mode, pad = g.get("mode", g.get("interpolation_mode", "bilinear")), g.get("padding_mode", "zeros")
    values = {"interpolation_mode": modes.get(mode, mode), "padding_mode": pads.get(pad, pad)}
    aligned = bool(g.get("align_corners", False))
    return "grid_sampler.default", {"input": g["input"], "grid": g["grid"], **values, "align_corners": aligned}


def _fft(name: str) -> Callable:
    def call(node: Node, g: dict) -> Any:
        sizes = [int(n) for n in (node if name == "_fft_c2r" else g["input"]).meta["val"].shape]
        count = math.prod(sizes[d] for d in g["dims"])
        scales = {1.0: 0, 1 / math.sqrt(count): 1, 1 / count: 2}
        near = [c for s, c in scales.items() if math.isclose(s, float(g.get("scale", 1.0)), rel_tol=1e-9)]
        if not near:
            return None
        last: Any = {
            "_fft_c2c": {"forward": g.get("forward")},
            "_fft_r2c": {"onesided": g.get("onesided", True)},
            "_fft_c2r": {},
        }[name]
        more = {"last_dim_size": g["n"]} if name == "_fft_c2r" else last
        return f"{name}.default", {"self": g["input"], "dim": list(g["dims"]), "normalization": near[0], **more}

    return call


def _split(node: Node, g: dict) -> Any:
    target = _overload(node, g)
    size: Any = g.get("split_size_or_sections", g.get("split_size"))
    sizes = {"split_size": size} if target == "split.Tensor" else {"split_sizes": list(size)}
    return target, {"self": g.get("tensor", g.get("input")), **sizes, "dim": g.get("dim", 0)}


def _histogram(node: Node, g: dict) -> Any:
    bins = g.get("bins", 100)
    more = {f"*{k}": g[k] for k in ("range", "weight", "density") if k in g}
    return f"histogram.{'bins_tensor' if _tensor(bins) else 'bin_ct'}", {"self": g["input"], "bins": bins, **more}


def _unique(node: Node, g: dict) -> Any:
    if "dim" in g:
        return None
    flags = {"return_inverse": g.get("return_inverse", False), "return_counts": g.get("return_counts", False)}
    return "_unique2.default", {"self": g["input"], "sorted": g.get("sorted", True), **flags}


def _repeat_interleave(node: Node, g: dict) -> Any:
    size = {"*output_size": g["output_size"]} if "output_size" in g else {}
    if "repeats" not in g:
        return "repeat_interleave.Tensor", {"repeats": g["input"], **size}
    kind = "self_Tensor" if _tensor(g["repeats"]) else "self_int"
    dim = {"*dim": g["dim"]} if "dim" in g else {}
    return f"repeat_interleave.{kind}", {"self": g["input"], "repeats": g["repeats"], **dim, **size}


def _einsum(node: Node, g: dict) -> Any:
    args = [*node.args]
    if not isinstance(args[0], str):
        return None
    tensors = list(args[1]) if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
    return "einsum.default", {"equation": args[0], "tensors": tensors}


def _randint(node: Node, g: dict) -> Any:
    low, high, size = (0, *g["args"])[-3:]
    return "randint.low", {"low": low, "high": high, "size": list(size), "*dtype": node.meta["val"].dtype}


def _ctc_loss(node: Node, g: dict) -> Any:
    lengths = [g["input_lengths"], g["target_lengths"]]
    kind = "Tensor" if _tensor(lengths[0]) else "IntList"
    options = {"blank": g.get("blank", 0), "reduction": ["none", "mean", "sum"].index(g.get("reduction", "mean"))}
    given = {k: g[k] for k in ("log_probs", "targets", "input_lengths", "target_lengths")}
    return f"ctc_loss.{kind}", {**given, **options, "zero_infinity": g.get("zero_infinity", False)}


def _batch_norm(node: Node, g: dict) -> Any:
    keys = ("input", "weight", "bias", "running_mean", "running_var")
    more = {"training": g.get("training", False), "momentum": g.get("momentum", 0.1), "eps": g.get("eps", 1e-5)}
    return "batch_norm.default", {**{k: g.get(k) for k in keys}, **more, "cudnn_enabled": False}


def _norm_functional(node: Node, g: dict) -> Any:
    keys = ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps")
    return "_native_batch_norm_legit_functional.default", {k: g.get(k) for k in keys}


_SPECIAL: dict[str, Callable] = {
    **dict.fromkeys("eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor remainder fmod".split(), _compared),
    **dict.fromkeys(("add", "sub", "mul"), _commuting), **dict.fromkeys(("div", "true_divide"), _div),
    **dict.fromkeys(("sum", "mean", "prod", "any", "all"), _reduction), "var": _var, "std": _var,
    **dict.fromkeys(("max", "min", "median", "nanmedian"), _extreme), "pow": _in_order("input", "exponent"),
    "where": _in_order("condition", "input", "other"), "fill": _in_order("input", "value"),
    "squeeze": _in_order("input", "dim"),
    "clamp": lambda node, g: (_overload(node, g), {"self": g["input"], "min": g.get("min"), "max": g.get("max")}),
    "to": _to, "arange": _arange, "scatter": _scatter, "round": _round, "sort": _sort,
    "view": _view, "empty": _empty, "interpolate": _interpolate, "grid_sample": _grid, "grid_sampler_2d": _grid,
    "fft_c2c": _fft("_fft_c2c"), "fft_r2c": _fft("_fft_r2c"), "fft_c2r": _fft("_fft_c2r"),
    "einsum": _einsum, "split": _split, "histogram": _histogram, "cdist": _cdist, "unique": _unique,
    "repeat_interleave": _repeat_interleave, "batch_norm": _batch_norm, "batch_norm_functional": _norm_functional,
    **{f"max_pool{d}d{end}": _pooled for d in (1, 2, 3) for end in ("", "_with_indices")},
    **{f"adaptive_{kind}_pool{d}d": _adaptive for kind in ("avg", "max") for d in (1, 2, 3)},
    "randint": _randint, "ctc_loss": _ctc_loss,
    "assert_scalar": lambda node, g: ("_assert_scalar.default", {"self": g["condition"], "assert_msg": g["message"]}),
    "edge_pad": lambda node, g: ("pad.default", {"self": g["input"], "pad": g["pad"], "mode": g["mode"]}),
    "index": lambda node, g: ("index.Tensor", {"self": g["input"], "indices": list(g["indices"])}),
    "sym_size": lambda node, g: ("sym_size.int", {"self": g["x"], "dim": g["dim"]}),
    "item": lambda node, g: ("item.default", {"self": g["x"]}),
}  # fmt: skip
