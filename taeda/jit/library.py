"""Functions of ``nn.functional`` in the language of scripts, for scripts that call them.

They are compiled from this source, never run by Python. ``aten`` stands for PyTorch's native ops, whose arguments they
are called with, so that what is compiled can be written into an archive. Only functions whose own source will not do
are here: a comment says why.
"""

from __future__ import annotations

import inspect
import linecache
import warnings
from typing import Any, List, Optional, Tuple, Union

from .._core import Tensor
from ..aten.signatures import signature
from ..aten.spellings import losses
from ..nn import functional

aten: Any = None  # the front end knows the name


def define(name: str, source: str, space: dict[str, Any]) -> None:
    """Run the definitions of ``source`` in the module ``space``. The front end reads the source again by file name."""
    file = f"<{space['__name__']}.{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), space)


# ---- products --------------------------------------------------------------------------------------------------------
# by a number of dimensions; ATen's op takes lists of them
def tensordot(a: Tensor, b: Tensor, dims: int = 2) -> Tensor:
    return aten.tensordot(a, b, [i - dims for i in range(dims)], [i for i in range(dims)])


# its infos are a third result
def lu(A: Tensor, pivot: bool = True) -> Tuple[Tensor, Tensor]:
    return aten.linalg_lu_factor(A, pivot=pivot)


# ---- activations -----------------------------------------------------------------------------------------------------
# made by a function, and hardtanh, which checks its bounds by the dtype
for _name in ("silu", "mish", "hardswish", "hardsigmoid"):
    define(_name, f"""
def {_name}(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.{_name}_(input) if inplace else aten.{_name}(input)
""", globals())  # fmt: skip


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


# ops of taeda: ATen has another name for the first and none for the others
def logsigmoid(input: Tensor) -> Tensor:
    return aten.log_sigmoid(input)


def tanhshrink(input: Tensor) -> Tensor:
    return input - aten.tanh(input)


def softsign(input: Tensor) -> Tensor:
    return input / (aten.abs(input) + 1)


# ---- normalisation ---------------------------------------------------------------------------------------------------
# the arguments of ATen's ops are in another order
def batch_norm(
    input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    if training:
        size = input.size()
        count = size[0]
        for i in range(len(size) - 2):
            count *= size[i + 2]
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


# ---- pooling ---------------------------------------------------------------------------------------------------------
# sizes are a number or None here, and lists in ATen
def _whole(size: List[Optional[int]], input: Tensor) -> List[int]:
    out: List[int] = []
    shape = input.size()
    for i, one in enumerate(size):
        out.append(shape[len(shape) - len(size) + i] if one is None else one)
    return out


def _each(size: List[int], n: int) -> List[int]:
    return size * n if len(size) == 1 else size


def _unpooled_size(
    input: Tensor, n: int, kernel_size: List[int], stride: Optional[List[int]], padding: List[int],
    output_size: Optional[List[int]],
) -> List[int]:  # fmt: skip
    kernel, spare = _each(kernel_size, n), _each(padding, n)
    steps = kernel if stride is None or len(stride) == 0 else _each(stride, n)
    out: List[int] = []
    for i in range(n):
        size = (input.size(i - n) - 1) * steps[i] - 2 * spare[i] + kernel[i]
        if output_size is not None:
            if len(output_size) != n and len(output_size) != n + 2:
                raise ValueError(f"output_size should have {n} or {n + 2} elements, but it has {len(output_size)}")
            given = output_size[len(output_size) - n + i]
            if given <= size - steps[i] or given >= size + steps[i]:
                raise ValueError(f"invalid output_size {output_size}: dim {i} must be within {steps[i]} of {size}")
            size = given
        out.append(size)
    return out


def _fractional_size(
    input: Tensor, n: int, output_size: Optional[List[int]], output_ratio: Optional[List[float]]
) -> List[int]:
    if output_size is not None:
        return _each(output_size, n)
    if output_ratio is None:
        raise ValueError("fractional_max_pool requires specifying either an output_size or an output_ratio")
    out: List[int] = []
    for i in range(n):
        out.append(int(float(input.size(i - n)) * output_ratio[i if len(output_ratio) > 1 else 0]))
    return out


def _samples(input: Tensor, n: int, samples: Optional[Tensor]) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == n + 1 else input.size(0)
    return aten.rand([batch, input.size(-n - 1), n], dtype=input.dtype, device=input.device)


def adaptive_max_pool1d(input: Tensor, output_size: List[int], return_indices: bool = False) -> Tensor:
    return aten.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: List[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool1d(input, output_size)


_unpool = {
    1: "return aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size + [1]).squeeze(-1)",
    2: "return aten.max_unpool2d(input, indices, size)",
    3: "return aten.max_unpool3d(input, indices, size, [1, 1, 1], [0, 0, 0])",
}
for _n in (1, 2, 3):
    _parameter, _divisor = ("divisor_override: Optional[int] = None", ", divisor_override") if _n > 1 else ("", "")
    define(f"pooling{_n}d", f"""
def max_pool{_n}d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    dilation: List[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:
    steps = kernel_size if stride is None else stride
    if return_indices:
        raise RuntimeError("max_pool{_n}d: return_indices must be a constant in scripts")
    return aten.max_pool{_n}d(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_pool{_n}d_with_indices(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    dilation: List[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:
    steps = kernel_size if stride is None else stride
    return aten.max_pool{_n}d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)


def max_unpool{_n}d(
    input: Tensor, indices: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None,
    padding: List[int] = 0, output_size: Optional[List[int]] = None,
) -> Tensor:
    size = _unpooled_size(input, {_n}, kernel_size, stride, padding, output_size)
    {_unpool[_n]}


def avg_pool{_n}d(
    input: Tensor, kernel_size: List[int], stride: Optional[List[int]] = None, padding: List[int] = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, {_parameter}
) -> Tensor:
    steps = kernel_size if stride is None else stride
    return aten.avg_pool{_n}d(input, kernel_size, steps, padding, ceil_mode, count_include_pad{_divisor})
""", globals())  # fmt: skip

for _n in (2, 3):
    define(f"adaptive{_n}d", f"""
def adaptive_avg_pool{_n}d(input: Tensor, output_size: List[Optional[int]]) -> Tensor:
    return aten.adaptive_avg_pool{_n}d(input, _whole(output_size, input))


def adaptive_max_pool{_n}d(
    input: Tensor, output_size: List[Optional[int]], return_indices: bool = False
) -> Tensor:
    return aten.adaptive_max_pool{_n}d(input, _each(_whole(output_size, input), {_n}))[0]


def adaptive_max_pool{_n}d_with_indices(
    input: Tensor, output_size: List[Optional[int]], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return aten.adaptive_max_pool{_n}d(input, _each(_whole(output_size, input), {_n}))


def fractional_max_pool{_n}d_with_indices(
    input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
    output_ratio: Optional[List[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    return aten.fractional_max_pool{_n}d(
        input, _each(kernel_size, {_n}), _fractional_size(input, {_n}, output_size, output_ratio),
        _samples(input, {_n}, _random_samples),
    )


def fractional_max_pool{_n}d(
    input: Tensor, kernel_size: List[int], output_size: Optional[List[int]] = None,
    output_ratio: Optional[List[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:
    return aten.fractional_max_pool{_n}d(
        input, _each(kernel_size, {_n}), _fractional_size(input, {_n}, output_size, output_ratio),
        _samples(input, {_n}, _random_samples),
    )[0]
""", globals())  # fmt: skip


# ---- embeddings, shapes ----------------------------------------------------------------------------------------------
# ops of taeda, which an archive has no names for
def embedding(
    input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    index = -1
    if padding_idx is not None:
        rows = weight.size(0)
        assert padding_idx < rows and padding_idx >= -rows, "Padding_idx must be within num_embeddings"
        index = padding_idx if padding_idx >= 0 else rows + padding_idx
    if max_norm is not None:
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return aten.embedding(weight, input, index, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None,
) -> Tensor:  # fmt: skip
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated as a mini-batch")
        starts = aten.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = aten.reshape(input, [-1])
        if per_sample_weights is not None:
            per_sample_weights = aten.reshape(per_sample_weights, [-1])
    else:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        starts = offsets
    if mode != "sum" and mode != "mean" and mode != "max":
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None:
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    number = 0 if mode == "sum" else 1 if mode == "mean" else 2
    return aten.embedding_bag(
        weight, input, starts, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return aten.pad(input, pad, mode, value)


def unfold(
    input: Tensor, kernel_size: List[int], dilation: List[int] = 1, padding: List[int] = 0, stride: List[int] = 1
) -> Tensor:
    return aten.im2col(input, _two(kernel_size), _two(dilation), _two(padding), _two(stride))


def fold(
    input: Tensor, output_size: List[int], kernel_size: List[int], dilation: List[int] = 1, padding: List[int] = 0,
    stride: List[int] = 1,
) -> Tensor:  # fmt: skip
    return aten.col2im(input, _two(output_size), _two(kernel_size), _two(dilation), _two(padding), _two(stride))


def _two(x: List[int]) -> List[int]:
    return [x[0], x[0]] if len(x) == 1 else x


def interpolate(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    dims = input.dim() - 2
    if align_corners is not None and (mode == "nearest" or mode == "area" or mode == "nearest-exact"):
        raise ValueError("align_corners can only be set with the modes linear, bilinear, bicubic and trilinear")
    if (size is None) == (scale_factor is None):
        raise ValueError("one of size and scale_factor should be defined")
    if antialias and (dims != 2 or (mode != "bilinear" and mode != "bicubic")):
        raise ValueError("antialias is for the modes bilinear and bicubic, and for a 4-D tensor")
    if size is not None and len(size) != 1 and len(size) != dims:
        raise ValueError(f"expected a size for each of {dims} dimensions, got {size}")
    if size is not None and len(size) == 1:
        size = [size[0] for _ in range(dims)]
    factors = scale_factor
    if factors is not None and len(factors) == 1:
        factors = [factors[0] for _ in range(dims)]
    if factors is not None and recompute_scale_factor is not None and recompute_scale_factor:
        made: List[int] = []
        for i in range(dims):
            made.append(int(float(input.size(i + 2)) * factors[i]))
        size = made
        factors = None
    corners = False if align_corners is None else align_corners
    if antialias:
        if mode == "bilinear":
            return aten._upsample_bilinear2d_aa(input, size, corners, factors)
        return aten._upsample_bicubic2d_aa(input, size, corners, factors)
    if mode == "nearest":
        if dims == 1:
            return aten.upsample_nearest1d(input, size, factors)
        if dims == 2:
            return aten.upsample_nearest2d(input, size, factors)
        return aten.upsample_nearest3d(input, size, factors)
    if mode == "nearest-exact":
        if dims == 1:
            return aten._upsample_nearest_exact1d(input, size, factors)
        if dims == 2:
            return aten._upsample_nearest_exact2d(input, size, factors)
        return aten._upsample_nearest_exact3d(input, size, factors)
    if mode == "linear":
        return aten.upsample_linear1d(input, size, corners, factors)
    if mode == "bilinear":
        return aten.upsample_bilinear2d(input, size, corners, factors)
    if mode == "bicubic":
        return aten.upsample_bicubic2d(input, size, corners, factors)
    if mode == "trilinear":
        return aten.upsample_trilinear3d(input, size, corners, factors)
    if mode == "area":
        whole: List[int] = []
        for i in range(dims):
            if size is not None:
                whole.append(size[i])
            elif factors is not None:
                whole.append(int(float(input.size(i + 2)) * factors[i]))
        if dims == 1:
            return aten.adaptive_avg_pool1d(input, whole)
        if dims == 2:
            return aten.adaptive_avg_pool2d(input, whole)
        return aten.adaptive_avg_pool3d(input, whole)
    raise NotImplementedError(f"interpolate: unknown mode {mode}")


upsample = interpolate


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: Optional[bool] = None,
) -> Tensor:  # fmt: skip
    if mode != "bilinear" and mode != "nearest" and mode != "bicubic":
        raise ValueError(f"expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode != "zeros" and padding_mode != "border" and padding_mode != "reflection":
        raise ValueError(f"expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    how = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    edge = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return aten.grid_sampler(input, grid, how, edge, False if align_corners is None else align_corners)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return aten.affine_grid_generator(theta, size, False if align_corners is None else align_corners)


# ---- losses ----------------------------------------------------------------------------------------------------------
# ops of taeda, or composites of them; ATen has one op for each, which takes the reduction as a number
def _number(reduction: str, size_average: Optional[bool] = None, reduce: Optional[bool] = None) -> int:
    if size_average is not None or reduce is not None:
        meant = "mean" if size_average is None or size_average else "sum"
        reduction = meant if reduce is None or reduce else "none"
        text = f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead."
        warnings.warn(text, stacklevel=2)
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _weighted(each: Tensor, input: Tensor, weight: Tensor, number: int, by_weight: bool) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    each = each * weight
    if number == 0:
        return each
    total = each.sum()
    return total if number == 2 else total / weight.sum() if by_weight else each.mean()


def kl_div(
    input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = aten.kl_div(input, target, 2, log_target=log_target)
        return total / input.size(0) if input.dim() > 0 else total
    return aten.kl_div(input, target, _number(reduction, size_average, reduce), log_target=log_target)


def _define_as(native: str, own: str) -> None:
    """A function with the parameters of ``nn.functional``, with the types of the native op or of the defaults."""
    parameters = [
        p for p in inspect.signature(getattr(functional, own)).parameters.values() if not p.name.startswith("cudnn_")
    ]
    names, arguments = [p.name for p in parameters], signature(native, "Tensor").arguments  # type: ignore[union-attr]
    kinds = {a.name: f"List[{a.kind}]" if a.listed else a.kind for a in arguments}
    kinds |= {"size_average": "bool", "reduce": "bool", "reduction": "str"}
    typed = []
    for p in parameters:
        kind = kinds.get(p.name, "Tensor")
        kind = type(p.default).__name__ if kind == "Scalar" else kind
        default = "" if p.default is p.empty else f" = {p.default!r}"
        typed.append(f"{p.name}: {f'Optional[{kind}]' if p.default is None else kind}{default}")
    value = dict(zip([a.name for a in arguments], names, strict=False)) | {n: n for n in names}
    value |= {"reduction": "number", "cudnn_enable": "True", "cudnn_enabled": "True"}
    given = [value[a.name] for a in arguments]
    call = f"aten.{native}({', '.join(given)})"
    lines = [f"def {own}({', '.join(typed)}) -> Tensor:"]
    if "reduction" in names:
        lines.append(f"    number = _number(reduction{', size_average, reduce' * ('reduce' in names)})")
    if "weight" in set(names) - set(given):  # the native op has none
        each = call.replace("number", "0")
        lines.append("    if weight is not None:")
        lines.append(f"        return _weighted({each}, input, weight, number, {own != 'huber_loss'})")
    define(own, "\n".join([*lines, f"    return {call}", ""]), globals())


for _native, _own in losses().items():
    if _own not in ("kl_div", "nll_loss") or _native == "nll_loss_nd":
        _define_as(_native, _own)
# in PyTorch these are functions of Python, which may be scripted by themselves
for _name in ("instance_norm", "layer_norm", "group_norm", "rms_norm"):
    _define_as(_name, _name)
