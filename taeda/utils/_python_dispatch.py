"""``TorchDispatchMode``: a context manager that sees every op that runs, also those of a backward pass.

An op comes as ``torch.ops.aten.add.Tensor``, with the arguments of taeda's own op, which has the same parameters. Ops
that PyTorch always decomposes are decomposed here too: ``linear`` and ``matmul`` come as products of matrices, layers
of convolution as ``convolution``, ``cross_entropy`` as ``_log_softmax`` and ``nll_loss_forward``. What PyTorch's
library has as one op comes whole: losses, pooling, attention. Gradients are recorded below the mode, for the ops that
it calls.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Composite, Op, Tensor
from .._namespaces import above
from .._schema import Schema
from ..aten import OpOverload, OpOverloadPacket, packet
from ..aten.signatures import PLACES, composites, matched, signature
from ..ops.table import OPS, asked_for, trait

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


#: Overloads that the arguments by name do not tell, by the arguments by position.
_OVERLOADS: dict[str, Callable] = {
    "arange": lambda args: ("", "", "start", "start_step")[min(len(args), 3)],
    "empty": lambda args: "memory_format",
}


def _is_native(label: str) -> bool:
    """Whether PyTorch has a signature of that name, such as ``aten::add.Tensor``."""
    found = signature(*label.removeprefix("aten::").partition(".")[::2])
    return found is not None and found.name == label


@functools.cache
def _params(op: Any) -> tuple[str, ...]:
    """The names of the positional parameters."""
    if isinstance(op, Op):
        return op.params
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return tuple(p.name for p in inspect.signature(op).parameters.values() if p.kind in kinds)


def _matched(op: Any, args: tuple, kwargs: dict) -> tuple[tuple[Schema, dict] | None, str]:
    """The signature of PyTorch's that a call of ``op`` fits, and the arguments by its names; and what the op's name has
    behind that of the signature."""
    plain = op.name.removesuffix("_") or op.name
    params = _params(op)
    given = {name: x for name, x in (dict(zip(params, args, strict=False)) | kwargs).items() if x is not None}
    call, ending = matched(plain, params, given), op.name[len(plain) :]
    if ending and (call is None or not _is_native(call[0].name.replace(plain, op.name, 1))):
        call, ending = matched(op.name, params, given), ""
    return call, ending


def _whole(op: Composite, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple, dict] | None:
    """The call of PyTorch's that a call of a composite is; None where PyTorch decomposes it too, or has none."""
    params = _params(op)
    by_place = {k: v for k, v in zip(params, args, strict=False) if k in PLACES}
    if op.name in _PARTS or kwargs.get("out") is not None or len(args) > len(params) or any(by_place.values()):
        return None
    call, ending = _matched(op, args, kwargs)
    if call is None or ending or call[0].name in composites():
        return None
    schema, found = call
    places = {k: v for k, v in kwargs.items() if k in PLACES and v is not None}
    if places.keys() - {a.name for a in schema.arguments}:
        return None
    known, _, overload = schema.name.removeprefix("aten::").partition(".")
    func = getattr(packet(known), overload or "default")
    if packet(known).function is None:
        return None
    usual = {a.name: a.default for a in schema.arguments}
    order = [a.name for a in schema.arguments if not a.keyword_only]
    while order and _is_usual(found.get(order[-1], usual[order[-1]]), usual[order[-1]]):
        order.pop()
    named = {k: v for k, v in found.items() if k not in order and not _is_usual(v, usual[k])}
    return func, tuple(_as_list(found.get(name, usual[name])) for name in order), named | places


def _is_usual(value: Any, default: Any) -> bool:
    if isinstance(value, Tensor) or default is inspect.Parameter.empty:
        return False
    return value is default or (type(value) is type(default) and value == default)


def _overload_of(op: Any, args: tuple, kwargs: dict) -> OpOverload:
    """The op of PyTorch's library that a call of ``op`` is."""
    call, ending = _matched(op, args, kwargs)
    known, _, overload = (op.name if call is None else call[0].name.removeprefix("aten::")).partition(".")
    overload = overload or _OVERLOADS.get(known, lambda args: "")(args)
    found = packet(known + (ending if call is not None else ""))
    if found.function is None or trait(found.function, "lacking", False):
        found = OpOverloadPacket("aten", found.__name__, op)
    return getattr(found, overload or "default")


#: By the name of an op or a composite, the calls that PyTorch makes for it; NotImplemented where it makes none.
_PARTS: dict[str, Callable] = {}


def _parts(*names: str) -> Callable:
    """Enter a function as the parts of the ops of these names."""

    def enter(function: Callable) -> Callable:
        _PARTS.update(dict.fromkeys(names, function))
        return function

    return enter


@_parts("linear")
def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1]) if input.dim() != 2 else input
    product = rows.mm(weight.t()) if bias is None else OPS["addmm"](bias, rows, weight.t())
    return product if input.dim() == 2 else product.reshape(*input.shape[:-1], weight.shape[0])


@_parts("matmul")
def _matmul(input: Tensor, other: Tensor, **out: Any) -> Tensor:
    ranks = input.dim(), other.dim()
    if out or min(ranks) == 0:
        return NotImplemented
    if ranks == (1, 1):
        return input.dot(other)
    if ranks == (2, 2):
        return input.mm(other)
    if ranks == (2, 1):
        return input.mv(other)
    if other.dim() == 2:  # all rows of a batch at once
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1]).mm(other)
        return _native("_unsafe_view.default", rows, [*input.shape[:-1], other.shape[1]])
    if min(ranks) < 3:
        return NotImplemented
    batch = OPS["broadcast_shapes"](input.shape[:-2], other.shape[:-2]) if ranks != (3, 3) else input.shape[:1]
    count = math.prod(batch)
    left = input.expand(*batch, *input.shape[-2:]).reshape(count, *input.shape[-2:])
    right = other.expand(*batch, *other.shape[-2:]).reshape(count, *other.shape[-2:])
    return _native("_unsafe_view.default", left.bmm(right), [*batch, input.shape[-2], other.shape[-1]])


def _convolution(size: int) -> Callable:
    def convolution(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        if isinstance(padding, str) or input.dim() not in (size + 1, size + 2):
            return NotImplemented
        if input.dim() == size + 1:
            return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
        numbers = [[n] * size if isinstance(n, int) else list(n) for n in (stride, padding, dilation)]
        return _native("convolution.default", input, weight, bias, *numbers, False, [0] * size, groups)

    return convolution


@_parts("_convolution")
def _convolution_of_size(
    input: Tensor, weight: Tensor, size: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """The gradient of a transposed convolution, which leaves out what its output padding added."""
    numbers = [list(n) for n in (stride, padding, dilation)]
    made = _native("convolution.default", input, weight, None, *numbers, False, [0] * len(size), groups)
    for dim, length in enumerate(size, 2):
        made = made if made.shape[dim] == length else made.narrow(dim, 0, length)
    return made


def _single_steps(input: Tensor, index: Any) -> list[tuple[int, Any]]:
    """A basic index as steps on one dimension after the other; dimensions are those at that step."""
    items = list(index) if isinstance(index, tuple) else [index]
    for i, item in enumerate(items):
        if item is Ellipsis:
            items[i : i + 1] = [slice(None)] * (input.dim() - sum(x is not None for x in items) + 1)
            break
    steps, dim = [], 0
    for item in items:
        if not (isinstance(item, slice) and item == slice(None)):
            steps.append((dim, item))
        dim += item is None or isinstance(item, slice)
    return steps


@_parts("basic_index")
def _basic_index(input: Tensor, index: Any) -> Tensor:
    steps = _single_steps(input, index)
    if len(steps) < 2:
        return NotImplemented
    for dim, item in steps:
        input = OPS["basic_index"](input, (slice(None),) * dim + (item,))
    return input


class Unrecorded(Exception):
    """A native op that parts ask a class for: what it gives would not be recorded, where a gradient is wanted."""


def _native(call: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a native op, which the innermost mode is asked for, or the class of an argument; ``call`` is its
    name with that of a signature.

    For parts: the mode is on while they run.
    """
    name, _, overload = call.partition(".")
    func = getattr(packet(name), overload or "default")
    *rest, mode = _core.mode_stack() or [None]
    if not isinstance(mode, TorchDispatchMode):
        return above("utils._wrapper_subclass").ask_for(func, args, kwargs)
    with _core.modes(rest):
        return mode.__torch_dispatch__(func, (), args, kwargs)


def _first(call: str, *args: Any, **kwargs: Any) -> Any:
    """The first result of a native op that also gives what its derivative needs."""
    return _native(call, *args, **kwargs)[0]


_REDUCTIONS = ("none", "mean", "sum")


def _numbered(reduction: str, *legacy: Any) -> tuple[int, ...] | None:
    """The number of a reduction, left out where it is the mean; None where the call says it in the old way."""
    if reduction not in _REDUCTIONS or any(x is not None for x in legacy):
        return None
    return () if reduction == "mean" else (_REDUCTIONS.index(reduction),)


def _loss(name: str, *options: str) -> Callable:
    """A loss of PyTorch's library; of ``options`` those that are not as usual follow the reduction."""

    def loss(
        input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        weight: Any = None, **named: Any,
    ) -> Any:  # fmt: skip
        number = _numbered(reduction, size_average, reduce, weight)
        if number is None or input.shape != target.shape or input.dtype != target.dtype:
            return NotImplemented
        more = [float(named[o]) for o in options if o in named and named[o] != 1]
        if more and not number:
            number = (1,)
        return _native(f"{name}.default", input, target, *number, *more)

    return loss


@_parts("huber_loss")
def _huber(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    return _loss("huber_loss", "delta")(input, target, None, None, reduction, weight, delta=delta)


@_parts("smooth_l1_loss")
def _smooth_l1(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta == 0:
        return NotImplemented
    return _loss("smooth_l1_loss", "beta")(input, target, size_average, reduce, reduction, beta=beta)


@_parts("binary_cross_entropy")
def _entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    number = _numbered(reduction, size_average, reduce)
    if number is None or input.shape != target.shape:
        return NotImplemented
    if weight is None:
        return _native("binary_cross_entropy.default", input, target, *((None, *number) if number else ()))
    weight = weight.expand(OPS["broadcast_shapes"](target.shape, weight.shape))
    return _native("binary_cross_entropy.default", input, target, weight, *number)


@_parts("binary_cross_entropy_with_logits")
def _entropy_of_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    number = _numbered(reduction, size_average, reduce)
    if number is None or input.shape != target.shape:
        return NotImplemented
    more = (weight, pos_weight, *number) if pos_weight is not None or number else () if weight is None else (weight,)
    return _native("binary_cross_entropy_with_logits.default", input, target, *more)


@_parts("nll_loss")
def _nll(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    number = _numbered(reduction, size_average, reduce)
    if number is None or input.dim() not in (2, 4) or input.shape[:1] + input.shape[2:] != target.shape:
        return NotImplemented
    name = "nll_loss_forward" if input.dim() == 2 else "nll_loss2d_forward"
    return _first(f"{name}.default", input, target, weight, _REDUCTIONS.index(reduction), ignore_index)


@_parts("cross_entropy")
def _cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
    label_smoothing=0.0,
):  # fmt: skip
    if label_smoothing or target.is_floating_point() or input.dim() not in (2, 4):
        return NotImplemented
    return OPS["nll_loss"](OPS["log_softmax"](input, 1), target, weight, size_average, ignore_index, reduce, reduction)


@_parts("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return _first("native_layer_norm.default", input, list(normalized_shape), weight, bias, eps)


@_parts("batch_norm")
def _batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return _first("native_batch_norm.default", input, weight, bias, running_mean, running_var, training, momentum, eps)


@_parts("group_norm")
def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    if input.dim() < 2 or not input.is_floating_point() or input.shape[1] % num_groups:
        return NotImplemented
    n, c = input.shape[:2]
    area = math.prod(input.shape[2:])
    return _first("native_group_norm.default", input, weight, bias, n, c, area, num_groups, eps)


@_parts("dropout")
def _dropout(input, p=0.5, training=True, inplace=False):
    if not training or inplace or not 0 < p < 1 or not input.is_floating_point() or not input.numel():
        return NotImplemented
    kept = _native("empty_like.default", input)
    kept = _native("bernoulli_.float", kept, 1 - p)
    return input * _native("div_.Scalar", kept, 1 - p)


def _each(x: Any, size: int) -> list[int]:
    return [x] * size if isinstance(x, int) else list(x)


def _max_pool(size: int) -> Callable:
    def pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        window = _each(kernel_size, size)
        given = [window, _each(stride, size) if stride is not None else window, _each(padding, size),
                 _each(dilation, size), ceil_mode]  # fmt: skip
        while given[-1] in (False, [0] * size if len(given) == 3 else [1] * size) and len(given) > 2:
            given.pop()
        both = _native(f"max_pool{size}d_with_indices.default", input, *given)
        return both if return_indices else both[0]

    return pool


def _avg_pool(size: int) -> Callable:
    def pool(
        input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        given = [_each(padding, size), ceil_mode, count_include_pad, divisor_override]
        usual = [[0] * size, False, True, None]
        while given and given[-1] == usual[len(given) - 1]:
            given.pop()
        sizes = _each(kernel_size, size), _each(kernel_size if stride is None else stride, size)
        return _native(f"avg_pool{size}d.default", input, *sizes, *given)

    return pool


def _adaptive_pool(name: str, size: int) -> Callable:
    def pool(input, output_size, return_indices=False):
        sizes = _each(output_size, size)
        if None in sizes:
            sizes = [n if m is None else m for m, n in zip(sizes, input.shape[-size:], strict=True)]
        if name == "max":
            both = _native(f"adaptive_max_pool{size}d.default", input, sizes)
            return both if return_indices else both[0]
        if sizes == [1] * size:
            return NotImplemented
        return _native(f"_adaptive_avg_pool{size}d.default", input, sizes)

    return pool


def _of_rows(pool: Callable, count: int) -> Callable:
    """Pooling of rows as that of planes of one row; the first ``count`` arguments have a number for each dimension."""

    def of_rows(input, *args, **kwargs):
        def planar(x: Any, other: int) -> Any:
            return x if x is None else [other, *_each(x, 1)]

        others = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1, "output_size": 1}
        names = ["output_size"] if count == 1 else ["kernel_size", "stride", "padding", "dilation"][:count]
        args = tuple(planar(x, others[n]) for n, x in zip(names, args, strict=False)) + args[count:]
        kwargs = {k: planar(x, others[k]) if k in names else x for k, x in kwargs.items()}
        made = pool(input.unsqueeze(-2), *args, **kwargs)
        if made is NotImplemented:
            return made
        return made.squeeze(-2) if isinstance(made, Tensor) else tuple(x.squeeze(-2) for x in made)

    return of_rows


@_parts("interpolate")
def _interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):  # fmt: skip
    spatial = input.dim() - 2
    names = {"nearest": f"nearest{spatial}d", "nearest-exact": f"_nearest_exact{spatial}d", "linear": "linear1d",
             "bilinear": "bilinear2d", "bicubic": "bicubic2d", "trilinear": "trilinear3d"}  # fmt: skip
    ranks = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
    if antialias or mode not in names or ranks.get(mode, spatial) != spatial or not 1 <= spatial <= 3:
        return NotImplemented
    if isinstance(scale_factor, str) or (size is None) == (scale_factor is None):
        return NotImplemented
    factors: list[Any] = [None] * spatial
    if scale_factor is None:
        sizes = [size] * spatial if isinstance(size, int) else list(size)
    else:
        given = [scale_factor] * spatial if isinstance(scale_factor, (int, float)) else list(scale_factor)
        sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], given, strict=True)]
        factors = [] if recompute_scale_factor else [float(f) for f in given]
    name = names[mode]
    name = f"_upsample_{name[1:]}" if name.startswith("_") else f"upsample_{name}"
    corners = () if mode.startswith("nearest") else (bool(align_corners),)
    return _native(f"{name}.default", input, sizes, *corners, *(factors if any(factors) else ()))


@_parts("grid_sample")
def _grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if input.dim() not in (4, 5) or mode not in modes or padding_mode not in paddings:
        return NotImplemented
    name = f"grid_sampler_{input.dim() - 2}d.default"
    return _native(name, input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners))


@_parts("pad")
def _pad(input, pad, mode="constant", value=None):
    kind = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if kind is None or len(pad) not in (2, 4, 6) or any(n < 0 for n in pad):
        return NotImplemented
    return _native(f"{kind}_pad{len(pad) // 2}d.default", input, list(pad))


def _transposed(size: int) -> Callable:
    def convolution(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        if input.dim() == size + 1:
            more = stride, padding, output_padding, groups, dilation
            return convolution(input.unsqueeze(0), weight, bias, *more).squeeze(0)
        if input.dim() != size + 2:
            return NotImplemented
        lists = [[n] * size if isinstance(n, int) else list(n) for n in (stride, padding, dilation, output_padding)]
        return _native("convolution.default", input, weight, bias, *lists[:3], True, lists[3], groups)

    return convolution


@_parts("scaled_dot_product_attention")
def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    plain = query.dim() == key.dim() == value.dim() == 4 and query.shape[-1] == value.shape[-1] and not dropout_p
    if not plain or enable_gqa or query.shape[:2] != key.shape[:2] or not query.is_floating_point():
        return NotImplemented
    if attn_mask is not None and (attn_mask.requires_grad or attn_mask.dim() not in (2, 4)):
        return NotImplemented
    named = {"attn_mask": attn_mask, "scale": scale}
    return _first(
        "_scaled_dot_product_flash_attention_for_cpu.default", query, key, value, *((0.0, True) if is_causal else ()),
        **{name: x for name, x in named.items() if x is not None},
    )  # fmt: skip


@_parts("chunk")
def _chunk(input, chunks, dim=0):
    if not isinstance(chunks, int) or chunks <= 0 or not input.dim():
        return NotImplemented
    size = -(-input.shape[dim] // chunks)
    return _native("split.Tensor", input, size, *((dim,) if dim else ())) if size else NotImplemented


@_parts("equal")
def _equal(input, other):
    return _native("equal.default", input, other)


@_parts("allclose")
def _allclose(input, other, *more, **named):
    return _native("allclose.default", input, other, *more, **named)


@_parts("glu")
def _glu(input, dim=-1):
    return _native("glu.default", input, *(() if dim == -1 else (dim,)))


@_parts("pixel_shuffle")
def _pixel_shuffle(input, upscale_factor):
    return _native("pixel_shuffle.default", input, upscale_factor)


@_parts("relu6")
def _relu6(input, inplace=False):
    return NotImplemented if inplace else _native("hardtanh.default", input, 0.0, 6.0)


@_parts("rdiv")
def _rdiv(input, other):
    return NotImplemented if isinstance(other, Tensor) else input.reciprocal() * other


@_parts("_draw_")
def _draw(input, chance, value, *, generator=None):
    drawn = _native("bernoulli_.float", input, chance)
    return drawn if value == 1 else _native("div_.Scalar", drawn, 1 / value)


@_parts("_failed")
def _failed(info):
    if not _native("any.default", info):
        return None
    with _core.modes([]):
        return OPS["_failed"](info)


@_parts("norm")
def _python_function(*args: Any, **kwargs: Any) -> Any:
    """PyTorch has an op of this name too, which its function does not call."""
    return NotImplemented


@_parts("extent")
def _extent(input):
    low, high = _native("aminmax.default", input)
    return low.item(), high.item()


@_parts("unique")
def _unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if dim is None:
        made = _native("_unique2.default", input, sorted, return_inverse, return_counts)
    else:
        made = _native("unique_dim.default", input, dim, sorted, return_inverse, return_counts)
    return _asked_for(made, return_inverse, return_counts)


@_parts("unique_consecutive")
def _unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    made = _native("unique_consecutive.default", input, return_inverse, return_counts, *(() if dim is None else (dim,)))
    return _asked_for(made, return_inverse, return_counts)


def _asked_for(made: tuple, inverse: bool, counts: bool) -> Any:
    wanted = made[0], *made[1:2][: bool(inverse)], *made[2:][: bool(counts)]
    return wanted if len(wanted) > 1 else wanted[0]


@_parts("_filled")
def _filled(input, fill, numbers, generator):
    return fill(_native("empty_like.default", input), *numbers, generator=generator)


@_parts("repeat_each")
def _repeat_each(input, repeats, dim):
    shape = input.shape
    each = input.unsqueeze(dim + 1).expand(*shape[: dim + 1], repeats, *shape[dim + 1 :])
    each = each.clone(memory_format=_core.contiguous_format)
    return each.view(*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :])


@_parts("cdist")
def _cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    mode = above("aten.spellings").CDIST_MODES.index(compute_mode)
    return _native("_cdist_forward.default", x1, x2, float(p), mode or None)


_PARTS["conj_physical"] = lambda input: _native("_conj_physical.default", input) if input.is_complex() else input
_PARTS["pdist"] = lambda input, p=2.0: _native("_pdist_forward.default", input, float(p))
_PARTS["_svd"] = lambda A, full_matrices: _native("_linalg_svd.default", A, *((True,) if full_matrices else ()))
_PARTS["_svdvals"] = lambda A: _native("_linalg_svd.default", A, False, False)[1]
_PARTS["linalg_eigh"] = lambda A, UPLO="L": _native("_linalg_eigh.default", A, *((UPLO,) if UPLO != "L" else ()))
_PARTS["linalg_eigvalsh"] = lambda A, UPLO="L": _native("_linalg_eigh.default", A, UPLO, False)[0]
_PARTS["elu_kernel"] = lambda input, *numbers, unit=False: _native("elu.default", input, *numbers)
_PARTS["elu_kernel_"] = lambda input, *numbers, unit=False: _native("elu_.default", input, *numbers)
_PARTS["logsigmoid"] = lambda input: _first("log_sigmoid_forward.default", input)
_PARTS["softsign"] = lambda input: input / (input.abs() + 1)
_PARTS["tanhshrink"] = lambda input: input - input.tanh()
_PARTS["_absolute_error"] = lambda input, target: (input - target).abs()
for _name in ("mse_loss", "soft_margin_loss"):
    _PARTS[_name] = _loss(_name)
for _rank in (2, 3):
    _PARTS[f"max_pool{_rank}d"] = _max_pool(_rank)
    _PARTS[f"avg_pool{_rank}d"] = _avg_pool(_rank)
    _PARTS[f"adaptive_avg_pool{_rank}d"] = _adaptive_pool("avg", _rank)
    _PARTS[f"adaptive_max_pool{_rank}d"] = _adaptive_pool("max", _rank)
_PARTS["max_pool1d"] = _of_rows(_PARTS["max_pool2d"], 4)
_PARTS["avg_pool1d"] = _of_rows(_PARTS["avg_pool2d"], 3)
_PARTS["adaptive_avg_pool1d"] = _of_rows(_PARTS["adaptive_avg_pool2d"], 1)
_PARTS["adaptive_max_pool1d"] = _of_rows(_PARTS["adaptive_max_pool2d"], 1)
for _rank in (1, 2, 3):
    _PARTS[f"conv{_rank}d"] = _convolution(_rank)
    _PARTS[f"conv_transpose{_rank}d"] = _transposed(_rank)


def _index_call(x: Tensor, index: Any) -> tuple:
    steps = _single_steps(x, index)
    if not steps:
        return "alias.default", (x,)
    ((dim, item),) = steps
    if item is None:
        return "unsqueeze.default", (x, dim)
    if isinstance(item, slice):
        ends = (item.start or 0, sys.maxsize if item.stop is None else item.stop)
        return "slice.Tensor", (x, dim, *ends, *(() if item.step in (None, 1) else (item.step,)))
    return "select.int", (x, dim, item)


def _view_call(x: Tensor, *size: Any) -> tuple:
    if len(size) == 1 and isinstance(size[0], _core.dtype):
        return "view.dtype", (x, size[0])
    return "view.default", (x, list(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else list(size))


def _reshape_call(x: Tensor, *shape: Any) -> tuple:
    name, args = _view_call(x, *shape)
    return (name if x.is_contiguous() else "reshape.default"), args


def _softmax_call(name: str) -> Callable:
    def call(x: Tensor, dim: int, dtype: Any = None) -> tuple:
        return f"{name}.default", (x if dtype is None else x.to(dtype), dim, False)

    return call


def _deviation_call(name: str) -> Callable:
    def call(x: Tensor, dim: Any, correction: Any, keepdim: bool = False) -> tuple:
        more = {"keepdim": True} if keepdim else {}
        return f"{name}.correction", (x, *(() if dim is None else (dim,))), {"correction": correction, **more}

    return call


#: Ops that PyTorch calls with other arguments: the name there, the arguments and perhaps the named ones. Other ops have
#: it as their trait ``native_call``.
_CALLS: dict[str, Callable] = {
    **{f"_{name}": _deviation_call(name) for name in ("std", "var", "std_mean", "var_mean")},
    "basic_index": _index_call,
    "transpose": lambda x, a, b: (
        ("t.default", (x,)) if _core.current_task() != -1 and x.dim() == 2 else ("transpose.int", (x, a, b))
    ),
    "log_softmax": _softmax_call("_log_softmax"),
    "matrix_exp": lambda x: ("linalg_matrix_exp.default", (x,)),
    "reshape": _reshape_call,
    "softmax": _softmax_call("_softmax"),
    "view": _view_call,
}


#: Methods that take sizes or dimensions one by one, too.
_SPREAD = frozenset("expand flip new_empty new_ones new_zeros permute repeat".split())


def native_call(op: Any, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple, dict]:
    """The call of PyTorch's library that a call of ``op`` is; named arguments that have a position get it."""
    if isinstance(op, Composite) and not trait(op, "native", False) and not getattr(op, "pointwise", False):
        whole = _whole(op, args, kwargs)
        if whole is not None:
            return whole
    if _is_activation(op):  # the native op has not the argument that comes last
        args = args[: len(_params(op)) - 1]
        kwargs = {k: v for k, v in kwargs.items() if k != "inplace"}
    kwargs = {k: v for k, v in kwargs.items() if k != "out" or v is not None}
    params = getattr(op, "params", ())[: getattr(op, "npositional", 0)]
    while len(args) < len(params) and params[len(args)] in kwargs:
        args, kwargs = (*args, kwargs[params[len(args)]]), {k: v for k, v in kwargs.items() if k != params[len(args)]}
    if trait(op, "meta", "") == "sizes" and args and all(isinstance(n, int) for n in args):
        args = (list(args),)  # sizes one by one
    if op.name in _SPREAD and len(args) > 1 and all(isinstance(n, int) for n in args[1:]):
        args = (args[0], list(args[1:]))
    call = _CALLS.get(op.name) or trait(op, "native_call", None)
    if call is None or kwargs:
        func = _overload_of(op, args, kwargs)
        return func, args if func.signature is None else tuple(map(_as_list, args)), kwargs
    name, args, *named = call(*args)
    known, _, overload = name.partition(".")
    return getattr(packet(known), overload), tuple(map(_as_list, args)), named[0] if named else {}


def _as_list(x: Any) -> Any:
    """``x``; as a list if it is a tuple of numbers, which come as lists in PyTorch."""
    return list(x) if isinstance(x, tuple) and all(isinstance(n, int) for n in x) else x


def _is_activation(op: Any) -> bool:
    return isinstance(op, Composite) and getattr(op, "pointwise", False) and "inplace" in _params(op)


def seen_whole(op: Any, args: tuple, kwargs: dict) -> bool:
    """Whether a call of ``op`` is one of an op that PyTorch's library has, not of a function written in such ops."""
    if _is_activation(op):
        return not kwargs.get("inplace") and not any(args[len(_params(op)) - 1 :])
    return (
        isinstance(op, Op)
        or trait(op, "native", False)
        or getattr(op, "pointwise", False)
        or _whole(op, args, kwargs) is not None
    )


def parts_of(op: Any, args: tuple, kwargs: dict) -> Any:
    """The result of ``op`` by the calls that PyTorch decomposes it into; NotImplemented if it does not.

    Of an op that PyTorch has not, or decomposes, the parts are those of its stanza.
    """
    if kwargs.get("out") is not None:
        return NotImplemented
    if op.name in _PARTS:
        return _PARTS[op.name](*args, **kwargs)
    rule = trait(op, "lowering") or trait(op, "decomposition")
    if rule is None or not isinstance(op, Op) or op.writes or op.name in _CALLS or trait(op, "native_call"):
        return NotImplemented
    call, _ = _matched(op, args, kwargs)
    if call is not None and call[0].name not in composites():
        return NotImplemented
    before = _replaced.names
    if op.name in before:  # its parts come back to it
        return NotImplemented
    bound = dict(zip(op.params, op.defaults, strict=True)) | dict(zip(op.params, args, strict=False)) | kwargs
    _replaced.names = before | {op.name}
    try:
        return rule(*(bound[name] for name in asked_for(rule)))
    finally:
        _replaced.names = before


class _Replaced(threading.local):
    names: frozenset[str] = frozenset()  #: of the ops whose stanzas' parts run


_replaced = _Replaced()


class TorchDispatchMode:
    """Context manager whose ``__torch_dispatch__(func, types, args, kwargs)`` sees every op within it.

    While it runs, the mode is off, so that it may call ``func`` or other ops. ``types`` is empty.
    """

    composites = True

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._before: list[list] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__(func, types, args, kwargs)")

    def __enter__(self) -> Any:
        before = _core.mode_stack()
        self.__dict__.setdefault("_before", []).append(before)  # a subclass may not call __init__
        _core.set_mode_stack([*before, self])
        return self

    def __exit__(self, *exc: Any) -> None:
        _core.set_mode_stack(self._before.pop())

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """Called by the core for every op."""
        whole = seen_whole(op, args, kwargs)
        others = (mode for mode in _core.mode_stack() if not isinstance(mode, TorchDispatchMode))
        rest = [mode for mode in others if not getattr(mode, "watches", False)]
        if rest and (isinstance(op, Op) or any(getattr(mode, "composites", False) for mode in rest)):
            return _core.pass_through(self, op, args, kwargs)  # autocast and the like come first
        with _core.modes([*_core.mode_stack(), self]):
            result = NotImplemented if rest else parts_of(op, args, kwargs)
            if result is NotImplemented and (rest or not whole):
                return op.unwatched(args, kwargs, True)
        if result is not NotImplemented:
            return result
        func, args, kwargs = native_call(op, args, kwargs)
        result = self.__torch_dispatch__(func, (), args, kwargs)
        if result is NotImplemented:
            raise TypeError(f"{type(self).__name__}.__torch_dispatch__ gave NotImplemented for {op.name}")
        return result

    def item(self, tensor: Tensor) -> Any:
        """Called by the core where a number is read."""
        with _core.modes(_core.mode_stack()[:-1]):
            return self.__torch_dispatch__(packet("_local_scalar_dense").default, (), (tensor,), {})


@contextmanager
def _disable_current_modes() -> Iterator[list]:
    before = _core.mode_stack()
    with _core.modes([mode for mode in before if not isinstance(mode, TorchDispatchMode)]):
        yield [mode for mode in before if isinstance(mode, TorchDispatchMode)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    modes = [mode for mode in _core.mode_stack() if isinstance(mode, TorchDispatchMode)]
    return modes[-1] if modes else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode of this kind is on."""
    return _get_current_dispatch_mode() is not None


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether ``t`` wraps other tensors through ``__tensor_flatten__``."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether ``t`` is the class of tensors that :func:`is_traceable_wrapper_subclass` is true of."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """The result of a ``__torch_dispatch__``: for an op that writes, the tensors it wrote to; else ``out``."""
    known = getattr(func, "signature", None)
    if known is None:
        return args[0] if getattr(func, "mutates", False) and args else out
    given = dict(zip([a.name for a in known.arguments], args, strict=False)) | kwargs
    written = {a.alias: given.get(a.name) for a in known.arguments if a.mutated}
    found = tuple(written[r.alias] for r in known.returns if r.alias in written)
    return (found if len(found) > 1 else found[0]) if found else out


def transform_subclass(t: Any, callback: Callable, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A tensor of the class of ``t`` of ``callback(name, inner)`` in place of each tensor that it wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(inner, context, size, t.stride() if outer_stride is None else outer_stride)
