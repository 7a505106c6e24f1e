"""The ops of decomposed programs by their names and arguments in PyTorch's library, ATen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from taeda import _core
from taeda._core import Tensor
from taeda.fx import Node
from taeda.ops.aten import SCALAR_OVERLOADS

from ._unknown_sizes import _bound

#: One op a line: its name with the overload, and its arguments there. ``self`` is ``input`` here, ``a:b`` is ``b``
#: here, ``a[]`` is a list also where there is one item, and what follows ``*`` is given by name.
_TABLE = """
empty_strided size stride *dtype
zeros size:args[] *dtype
ones size:args[] *dtype
full size[] fill_value *dtype
full_like self fill_value *dtype
scalar_tensor s *dtype
permute self dims[]
unsqueeze self dim
expand self size[]
reshape self shape[]
select.int self dim index
diagonal self offset dim1 dim2
as_strided self size stride storage_offset
copy self src
clone self
copy_ self src
add.Tensor self other *alpha
sub.Tensor self other *alpha
mul.Tensor self other
maximum self other
minimum self other
logical_and self other
logical_or self other
logical_xor self other
atan2 self other
cat tensors dim
split_with_sizes self split_sizes dim
nonzero self
argwhere self
masked_select self mask
masked_scatter self mask source
bincount self weights minlength
gelu self *approximate
mm self mat2
bmm self mat2
addmm self mat1 mat2 *beta *alpha
amax self dim[] keepdim
amin self dim[] keepdim
argmax self dim keepdim
argmin self dim keepdim
gather self dim index
scatter_add self dim index src
scatter_reduce.two self dim index src reduce *include_self
index_select self dim index
flip self dims[]
repeat self repeats[]
constant_pad_nd self pad value
pad self pad mode value
embedding weight indices padding_idx scale_grad_by_freq sparse
embedding_dense_backward grad_output indices num_weights padding_idx scale_grad_by_freq
topk self k dim largest sorted
randperm n *dtype
rand size[] *dtype
randn size[] *dtype
layer_norm input normalized_shape weight bias eps
group_norm input num_groups weight bias eps
softmax.int self dim dtype
log_softmax.int self dim dtype
cumsum self dim *dtype
cumprod self dim *dtype
select_scatter self src dim index
slice_scatter self src dim start end step
as_strided_scatter self src size stride storage_offset
native_dropout input p train
convolution input weight bias stride[] padding[] dilation[] transposed output_padding[] groups
adaptive_avg_pool1d self output_size[]
adaptive_avg_pool2d self output_size[]
adaptive_avg_pool3d self output_size[]
avg_pool1d self kernel_size[] stride[] padding[] ceil_mode count_include_pad
avg_pool2d self kernel_size[] stride[] padding[] ceil_mode count_include_pad divisor_override
avg_pool3d self kernel_size[] stride[] padding[] ceil_mode count_include_pad divisor_override
max_pool1d self kernel_size[] stride[] padding[] dilation[] ceil_mode
max_pool2d self kernel_size[] stride[] padding[] dilation[] ceil_mode
max_pool3d self kernel_size[] stride[] padding[] dilation[] ceil_mode
hardtanh self min_val max_val
leaky_relu self negative_slope
elu self alpha
linear input weight bias
index_put self indices values accumulate
scaled_dot_product_attention query key value attn_mask dropout_p is_causal *scale *enable_gqa
linalg_vector_norm self:x ord dim[] keepdim *dtype
kthvalue self k dim keepdim
mode self dim keepdim
cummax self dim
cummin self dim
logcumsumexp self dim
lstm.input input hx params has_biases num_layers dropout train bidirectional batch_first
rnn_tanh.input input hx params has_biases num_layers dropout train bidirectional batch_first
rnn_relu.input input hx params has_biases num_layers dropout train bidirectional batch_first
gru.input input hx params has_biases num_layers dropout train bidirectional batch_first
"""
_ALONE = (
    "neg abs sign floor ceil trunc sqrt rsqrt reciprocal exp expm1 log log2 log10 log1p sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sigmoid erf relu detach isnan isinf logical_not bitwise_not erfc erfinv "
    "lgamma digamma i0 square"
).split()
#: Arguments that say where a result is, or that hold by themselves.
_PLACES = frozenset(
    "device layout pin_memory requires_grad memory_format non_blocking out inplace implicit sparse_grad".split()
)

Call = tuple[str, list[tuple[str, Any, bool]]]


def _rows() -> Iterator[tuple[str, tuple[str, list[str]]]]:
    for line in _TABLE.strip().splitlines():
        name, *args = line.split()
        yield name.partition(".")[0], (name if "." in name else f"{name}.default", args)
    for name in _ALONE:
        yield name, (f"{name}.default", ["self"])


TABLE = dict(_rows())


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
    name = function.__name__.rstrip("_") if function.__name__ == "view_" else function.__name__
    given = _bound(function, tuple(node.args), dict(node.kwargs))
    given = {k: v for k, v in given.items() if v is not None}
    special = _SPECIAL.get(name)
    if special is not None:
        found = special(node, given)
        if found is not None:
            target, values = found
            return _arranged(target, [(k.lstrip("*"), v, k.startswith("*")) for k, v in values.items()])
        raise refuse(node, "this form of it has no counterpart in ATen")
    if name not in TABLE:
        raise refuse(node, "ATen has no op for it that is known here")
    target, args = TABLE[name]
    values = []
    for arg in args:
        listed, keyword = arg.endswith("[]"), arg.startswith("*")
        theirs, _, ours = arg.strip("*[]").partition(":")
        ours = ours or ("input" if theirs == "self" else theirs)
        if ours in given:
            value = given.pop(ours)
            if listed and not isinstance(value, (tuple, list)):
                value = [value] * (int(name[-2]) if name[-2:] in ("1d", "2d", "3d") else 1)
            if listed and ours == "args" and len(value) == 1 and isinstance(value[0], (tuple, list)):
                value = value[0]
            values.append((theirs, value, keyword))
    left = [k for k, v in given.items() if k not in _PLACES and v is not False]
    if left:
        raise refuse(node, f"ATen's {target} has no {', '.join(left)}")
    return _arranged(target, values, args)


def _arranged(target: str, values: list, args: list[str] | None = None) -> Call:
    """Arguments after one that is left out are given by name."""
    order = [a.strip("*[]").partition(":")[0] for a in args] if args is not None else [v[0] for v in values]
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


def _scalar(node: Node, g: dict) -> Any:
    name = node.target.__name__
    if not _tensor(g["input"]):
        swapped = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}.get(name, name)
        if swapped in ("remainder", "fmod"):
            return None
        return f"{swapped}.Scalar", {"self": g["other"], "other": g["input"]}
    return f"{name}.{'Tensor' if _tensor(g['other']) else 'Scalar'}", {"self": g["input"], "other": g["other"]}


def _commuting(name: str) -> Callable:
    def call(node: Node, g: dict) -> Any:
        extra = {"*alpha": g["alpha"]} if g.get("alpha", 1) != 1 else {}
        if _tensor(g["input"]):
            return f"{name}.Tensor", {"self": g["input"], "other": g["other"], **extra}
        if extra:
            return None
        other = "rsub.Scalar" if name == "sub" else f"{name}.Tensor"
        return other, {"self": g["other"], "other": g["input"]}

    return call


def _div(node: Node, g: dict) -> Any:
    if not _tensor(g["input"]):
        return None
    mode = g.get("rounding_mode")
    more = {} if mode is None else {"*rounding_mode": mode}
    return f"div.Tensor{'' if mode is None else '_mode'}", {"self": g["input"], "other": g["other"], **more}


def _pow(node: Node, g: dict) -> Any:
    x, y = _tensor(g["input"]), _tensor(g["exponent"])
    overload = "Tensor_Tensor" if x and y else "Tensor_Scalar" if x else "Scalar"
    return f"pow.{overload}", {"self": g["input"], "exponent": g["exponent"]}


def _reduction(plain: str, along: str, one: bool = False) -> Callable:
    def call(node: Node, g: dict) -> Any:
        name = node.target.__name__
        dtype = {"*dtype": g["dtype"]} if "dtype" in g else {}
        dim = g.get("dim")
        if dim is None or (isinstance(dim, (tuple, list)) and not dim):
            return (f"{name}.{plain}", {"self": g["input"], **dtype}) if not g.get("keepdim") else None
        many = isinstance(dim, (tuple, list))
        if many and one:
            return None
        dim = dim if one else list(dim) if many else [dim]
        return f"{name}.{along}", {"self": g["input"], "dim": dim, "keepdim": g.get("keepdim", False), **dtype}

    return call


def _var(node: Node, g: dict) -> Any:
    dim: Any = g.get("dim")
    correction = g.get("correction", 1 if g.get("unbiased", True) else 0)
    if isinstance(dim, bool):
        dim, correction = None, int(dim)
    dims = {} if dim is None else {"*dim": list(dim) if isinstance(dim, (tuple, list)) else [dim]}
    more = {"*correction": correction, "*keepdim": g.get("keepdim", False)}
    return f"{node.target.__name__}.correction", {"self": g["input"], **dims, **more}


def _extreme(node: Node, g: dict) -> Any:
    name = node.target.__name__
    other = g.get("dim", g.get("other"))
    if other is None:
        return f"{name}.default", {"self": g["input"]}
    if _tensor(other):
        return f"{name}.other", {"self": g["input"], "other": other}
    return f"{name}.dim", {"self": g["input"], "dim": other, "keepdim": g.get("keepdim", False)}


def _median(node: Node, g: dict) -> Any:
    name = node.target.__name__
    if "dim" not in g:
        return f"{name}.default", {"self": g["input"]}
    return f"{name}.dim", {"self": g["input"], "dim": g["dim"], "keepdim": g.get("keepdim", False)}


def _clamp(node: Node, g: dict) -> Any:
    low, high = g.get("min"), g.get("max")
    kind = "Tensor" if _tensor(low) or _tensor(high) else "default"
    return f"clamp.{kind}", {"self": g["input"], "min": low, "max": high}


def _where(node: Node, g: dict) -> Any:
    if "input" not in g:
        return "where.default", {"condition": g["condition"]}
    x, y = _tensor(g["input"]), _tensor(g["other"])
    overload = "self" if x and y else "ScalarOther" if x else "ScalarSelf" if y else "Scalar"
    return f"where.{overload}", {"condition": g["condition"], "self": g["input"], "other": g["other"]}


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
    src = g.get("src", g.get("value"))
    kind = "src" if _tensor(src) else "value"
    return f"scatter.{kind}", {"self": g["input"], "dim": g["dim"], "index": g["index"], kind: src}


def _squeeze(node: Node, g: dict) -> Any:
    dim = g.get("dim")
    if dim is None:
        return "squeeze.default", {"self": g["input"]}
    return ("squeeze.dims" if isinstance(dim, (tuple, list)) else "squeeze.dim"), {"self": g["input"], "dim": dim}


def _fill(node: Node, g: dict) -> Any:
    return f"fill.{'Tensor' if _tensor(g['value']) else 'Scalar'}", {"self": g["input"], "value": g["value"]}


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


def _edge_pad(node: Node, g: dict) -> Any:
    return "pad.default", {"self": g["input"], "pad": g["pad"], "mode": g["mode"]}


def _pooled(node: Node, g: dict) -> Any:
    """Pools with indices: the arguments as they were given."""
    keys = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    args = {**dict(zip(keys, g.get("args", ()), strict=False)), **g.get("kwargs", {})}
    args.update({k: v for k, v in g.items() if k in keys})
    if node.target.__name__.startswith("max_pool1d"):
        return None
    names = {k: v for k, v in args.items() if k in keys[1:] and v is not None}
    listed = {k: v if k == "ceil_mode" or isinstance(v, (tuple, list)) else [v] for k, v in names.items()}
    rank = node.target.__name__[8]
    keyed = {k if k == "kernel_size" else f"*{k}": v for k, v in listed.items()}
    return f"max_pool{rank}d_with_indices.default", {"self": args["input"], **keyed}


def _interpolate(node: Node, g: dict) -> Any:
    x, mode = g["input"], g.get("mode", "nearest")
    rank = len(x.meta["val"].shape) - 2
    size, scale = g.get("size"), g.get("scale_factor")
    if g.get("antialias") or g.get("recompute_scale_factor") or mode == "area":
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
            "_fft_r2c": {"onesided": True},
            "_fft_c2r": {},
        }[name]
        more = {"last_dim_size": g["n"]} if name == "_fft_c2r" else last
        return f"{name}.default", {"self": g["input"], "dim": list(g["dims"]), "normalization": near[0], **more}

    return call


def _assert_scalar(node: Node, g: dict) -> Any:
    return "_assert_scalar.default", {"self": g["condition"], "assert_msg": g["message"]}


def _index(node: Node, g: dict) -> Any:
    return "index.Tensor", {"self": g["input"], "indices": list(g["indices"])}


def _split(node: Node, g: dict) -> Any:
    size = g.get("split_size_or_sections", g.get("split_size"))
    if isinstance(size, (tuple, list)):
        return "split_with_sizes.default", {
            "self": g.get("tensor", g.get("input")),
            "split_sizes": list(size),
            "dim": g.get("dim", 0),
        }
    return "split.Tensor", {"self": g.get("tensor", g.get("input")), "split_size": size, "dim": g.get("dim", 0)}


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


def _batch_norm(node: Node, g: dict) -> Any:
    keys = ("input", "weight", "bias", "running_mean", "running_var")
    more = {"training": g.get("training", False), "momentum": g.get("momentum", 0.1), "eps": g.get("eps", 1e-5)}
    return "batch_norm.default", {**{k: g.get(k) for k in keys}, **more, "cudnn_enabled": False}


def _norm_functional(node: Node, g: dict) -> Any:
    keys = ("input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps")
    return "_native_batch_norm_legit_functional.default", {k: g.get(k) for k in keys}


_SPECIAL: dict[str, Callable] = {
    **dict.fromkeys(SCALAR_OVERLOADS, _scalar),
    **{n: _commuting(n) for n in ("add", "sub", "mul")},
    "div": _div, "true_divide": _div, "pow": _pow, "sum": _reduction("default", "dim_IntList"),
    "mean": _reduction("default", "dim"), "prod": _reduction("default", "dim_int", True),
    "any": _reduction("default", "dims"), "all": _reduction("default", "dims"), "var": _var, "std": _var,
    "max": _extreme, "min": _extreme, "clamp": _clamp, "where": _where, "to": _to, "arange": _arange,
    "scatter": _scatter, "squeeze": _squeeze, "fill": _fill, "round": _round, "sort": _sort, "view": _view,
    "empty": _empty, "edge_pad": _edge_pad, "interpolate": _interpolate, "grid_sample": _grid, "grid_sampler_2d": _grid,
    "fft_c2c": _fft("_fft_c2c"), "fft_r2c": _fft("_fft_r2c"), "fft_c2r": _fft("_fft_c2r"), "index": _index,
    "einsum": _einsum, "split": _split,
    "histogram": _histogram, "median": _median, "nanmedian": _median,
    "unique": _unique, "repeat_interleave": _repeat_interleave,
    "batch_norm": _batch_norm,
    "assert_scalar": _assert_scalar, "batch_norm_functional": _norm_functional,
    **{f"max_pool{d}d_with_indices": _pooled for d in (1, 2, 3)},
    "sym_size": lambda node, g: ("sym_size.int", {"self": g["x"], "dim": g["dim"]}),
    "item": lambda node, g: ("item.default", {"self": g["x"]}),
}  # fmt: skip
