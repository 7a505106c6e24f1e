"""The ops of decomposed programs by their names and arguments in PyTorch's library, ATen."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from taeda._core import Op, Tensor
from taeda.aten.signatures import PLACES, matched, signature
from taeda.aten.spellings import CDIST_MODES
from taeda.fx import Node
from taeda.fx.experimental.symbolic_shapes import SymBool

from .. import _core
from ._unknown_sizes import _bound

Call = tuple[str, list[tuple[str, Any, bool]]]


def _value(x: Any) -> Any:
    """The value of an argument: that of the step which computes it in the example."""
    value = x.meta.get("val") if isinstance(x, Node) else x
    return True if isinstance(value, SymBool) else value


def _matched(function: Any, given: dict[str, Any]) -> Call | None:
    """The first of ATen's overloads of the same name that takes these arguments."""
    ours = list(function.params if isinstance(function, Op) else inspect.signature(function).parameters)
    given = {**given, **given.get("kwargs", {})}
    given.pop("kwargs", None)
    found = matched(function.__name__, ours, given, _value)
    if found is None:
        return None
    schema, values = found
    if "memory_format" in given:
        values = {**values, "memory_format": given["memory_format"]}
    arguments = [a for a in schema.arguments if a.name not in PLACES or a.name == "memory_format"]
    given_here = [(a.name, values[a.name], a.keyword_only) for a in arguments if a.name in values]
    name = schema.name.removeprefix("aten::")
    return _arranged(name if "." in name else f"{name}.default", given_here, [a.name for a in arguments])


def results_of(target: str) -> int:
    """The number of results of an overload of ATen."""
    name, _, overload = target.partition(".")
    found = signature(name, overload)
    return 1 if found is None else len(found.returns)


def refuse(node: Any, why: str) -> ValueError:
    """The error for a step that PyTorch's files have no form for."""
    name = getattr(node.target, "__name__", node.target)
    where = node.meta.get("stack_trace", "").rstrip()
    return ValueError(f"export.save: '{name}' cannot be written for PyTorch: {why}. Save with format='taeda'\n{where}")


def call_of(node: Node) -> Call:
    """The ATen overload of a step, and its arguments: name, value, and whether it is given by name."""
    found = aten_call(node)
    if found is None:
        special = node.target.__name__ in _SPECIAL
        raise refuse(
            node,
            "this form of it has no counterpart in ATen"
            if special
            else "ATen has no op of this name with these arguments",
        )
    return found


def aten_call(node: Node) -> Call | None:
    """As :func:`call_of`, or None."""
    given = _bound(node.target, tuple(node.args), dict(node.kwargs))
    given = {k: v for k, v in given.items() if v is not None}
    special = _SPECIAL.get(node.target.__name__)
    if special is None:
        return _matched(node.target, given)
    found = special(node, given)
    if found is None or isinstance(found[1], list):
        return found
    target, values = found
    return _arranged(target, [(k.lstrip("*"), v, k.startswith("*")) for k, v in values.items()])


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


def _compared(node: Node, g: dict) -> Any:
    if _tensor(g["input"]):
        return _matched(node.target, g)
    swapped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(node.target.__name__, node.target.__name__)
    return f"{swapped}.Scalar", {"self": g["other"], "other": g["input"]}


def _commuting(node: Node, g: dict) -> Any:
    if _tensor(g["input"]):
        return _matched(node.target, g)
    if g.get("alpha", 1) != 1:
        return None
    other = {"sub": "rsub.Scalar"}.get(node.target.__name__, f"{node.target.__name__}.Tensor")
    return other, {"self": g["other"], "other": g["input"]}


def _to(node: Node, g: dict) -> Any:
    given = [*g.get("args", ()), *g.get("kwargs", {}).values()] + [
        v for k, v in g.items() if k not in ("input", "args", "kwargs")
    ]
    dtype = next((x for x in given if isinstance(x, _core.dtype)), None)
    value = node.meta.get("val")
    dtype = dtype or (value.dtype if isinstance(value, Tensor) else None)
    layout = next((x for x in given if isinstance(x, _core.memory_format)), None)
    return "_to_copy.default", {"self": g["input"], "*dtype": dtype} | ({"*memory_format": layout} if layout else {})


def _arange(node: Node, g: dict) -> Any:
    places, named = g.get("args", ()), g.get("bounds", {})
    keys = ("end",) if len(places) == 1 and "end" not in named else ("start", "end", "step")
    bounds = {**dict(zip(keys, places, strict=False)), **named}
    overload = "start_step" if "step" in bounds else "start" if "start" in bounds else "default"
    if overload == "start_step":
        bounds.setdefault("start", 0)
    return f"arange.{overload}", {**bounds, "*dtype": g.get("dtype") or node.meta["val"].dtype}


def _cdist(node: Node, g: dict) -> Any:
    mode = CDIST_MODES.index(g.get("compute_mode", CDIST_MODES[0]))
    return "cdist.default", {"x1": g["x1"], "x2": g["x2"], "p": float(g.get("p", 2.0)), "compute_mode": mode}


def _sort(node: Node, g: dict) -> Any:
    dim, descending = g.get("dim", -1), g.get("descending", False)
    return "sort.stable", {"self": g["input"], "*stable": True, "*dim": dim, "*descending": descending}


def _view(node: Node, g: dict) -> Any:
    size = g.get("size", g.get("args"))
    dtype = g.get("dtype", next((x for x in (size if isinstance(size, (tuple, list)) else [size])), None))
    if isinstance(dtype, _core.dtype):
        return "view.dtype", {"self": g["input"], "dtype": dtype}
    return "reshape.default", {"self": g["input"], "shape": list(size) if isinstance(size, (tuple, list)) else [size]}


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


def _unpool(node: Node, g: dict) -> Any:
    """ATen's op takes the size of the result."""
    rank = int(node.target.__name__[-2])
    size = list(node.meta["val"].shape[-rank:])
    given = {"self": g["input"], "indices": g["indices"], "output_size": size}
    if rank == 3:
        many = lambda v: list(v) if isinstance(v, (tuple, list)) else [v] * 3  # noqa: E731
        given |= {"stride": many(g.get("stride", g["kernel_size"])), "padding": many(g.get("padding", 0))}
    return f"max_unpool{rank}d.default", given


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


def _affine(node: Node, g: dict) -> Any:
    given = {"theta": g["theta"], "size": list(g["size"]), "align_corners": bool(g.get("align_corners", False))}
    return "affine_grid_generator.default", given


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


def _unique(node: Node, g: dict) -> Any:
    flags = {"return_inverse": g.get("return_inverse", False), "return_counts": g.get("return_counts", False)}
    if "dim" in g:
        return "unique_dim.default", {"self": g["input"], "dim": g["dim"], "sorted": g.get("sorted", True), **flags}
    return "_unique2.default", {"self": g["input"], "sorted": g.get("sorted", True), **flags}


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
    **dict.fromkeys("eq ne lt le gt ge".split(), _compared), **dict.fromkeys(("add", "sub", "mul"), _commuting),
    "to": _to, "arange": _arange, "sort": _sort, "view": _view,
    "interpolate": _interpolate, "grid_sample": _grid, "grid_sampler_2d": _grid,
    **{f"fft_{kinds}": _fft(f"_fft_{kinds}") for kinds in ("c2c", "r2c", "c2r")}, "einsum": _einsum,
    "cdist": _cdist, "unique": _unique,
    "batch_norm": _batch_norm, "batch_norm_functional": _norm_functional,
    **{f"max_pool{d}d{end}": _pooled for d in (1, 2, 3) for end in ("", "_with_indices")},
    **{f"adaptive_{kind}_pool{d}d": _adaptive for kind in ("avg", "max") for d in (1, 2, 3)},
    **{f"max_unpool{d}d": _unpool for d in (2, 3)},
    **dict.fromkeys(("affine_grid",), _affine),
    "randint": _randint, "ctc_loss": _ctc_loss,
    "assert_scalar": lambda node, g: ("_assert_scalar.default", {"self": g["condition"], "assert_msg": g["message"]}),
    "edge_pad": lambda node, g: ("pad.default", {"self": g["input"], "pad": g["pad"], "mode": g["mode"]}),
    "sym_size": lambda node, g: ("sym_size.int", {"self": g["x"], "dim": g["dim"]}),
}  # fmt: skip
