"""PyTorch's native ops that are spelled otherwise here: one record each.

A record is a function with the parameters of the op in PyTorch's library. It computes nothing. It returns the function
of taeda that is meant, with the arguments for it. A record looks at numbers, strings and lists alone, so that its
tensors may as well be steps of a graph. Its traits are those of what it means. From the records come ``taeda.aten``,
the ops of TorchScript and the reader of ``.pt2`` files. An op without a record is the function of its name here, with
the same arguments in the same order.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from .. import _core, fft, linalg, sparse, special
from .._core import Composite, Method, Op, Tensor
from .._namespaces import NAMES
from ..nn import functional as F
from ..nn import lower
from ..ops.out import write_out
from ..ops.table import METHODS, OPS
from ..ops.traits import traits
from .signatures import signature, signatures


class Call(NamedTuple):
    """The result of a record."""

    function: Callable
    args: tuple
    kwargs: dict[str, Any]


def _call(function: Callable, *args: Any, **kwargs: Any) -> Call:
    return Call(function, args, kwargs)


def itself(input: Any) -> Any:
    """The tensor: what ops are that mark constants. A graph needs no step for it."""
    return input


_moved = traits(moves=True)


# ---- views ----------------------------------------------------------------------------------------------------------


@traits(moves=True)
def _slice(self, dim=0, start=None, end=None, step=1):
    if isinstance(step, int) and step <= 0:
        raise RuntimeError("slice step must be positive")
    if not isinstance(dim, int) or not -64 <= dim < 64:  # no tensor has more; the key has an entry for each before it
        raise IndexError(f"slice(): the tensor has no dimension {dim!r:.80}")
    cut = slice(start, None if end == 2**63 - 1 else end, step)
    key = (*[slice(None)] * dim, cut) if dim >= 0 else (Ellipsis, cut, *[slice(None)] * (-dim - 1))
    return _call(operator.getitem, self, key)


def _indexed(self, indices):
    return _call(operator.getitem, self, tuple(slice(None) if i is None else i for i in indices))


def _put(name: str) -> Callable:
    return lambda self, indices, *rest, **more: _call(METHODS[name], self, tuple(indices), *rest, **more)


# ---- functions of several tensors, and with numbers for modes --------------------------------------------------------

#: How ``cdist`` computes, by the numbers of the native op.
CDIST_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _cdist(x1, x2, p=2.0, compute_mode=None):
    return _call(OPS["cdist"], x1, x2, p, CDIST_MODES[compute_mode or 0])


def _elu(self, alpha=1, scale=1, input_scale=1):
    """With scales, which the function of that name has not."""
    if scale == input_scale == 1:
        return _call(F.elu, self, alpha)
    return _call(OPS["elu_kernel"], self, float(alpha), float(scale), float(input_scale))


@traits(pointwise=True)
def _copied(
    self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None
):  # fmt: skip
    given = {"device": device, "dtype": dtype, "memory_format": memory_format}
    return _call(METHODS["to"], self, **{k: v for k, v in given.items() if v is not None}, copy=True)


def _fractional(n: int) -> Callable:
    function = getattr(F, f"fractional_max_pool{n}d_with_indices")

    def pool(self, kernel_size, output_size, random_samples):
        return _call(function, self, kernel_size, output_size, return_indices=True, _random_samples=random_samples)

    return pool


def _loss(name: str, own: str) -> Callable:
    """A loss, whose reduction is a number there."""
    arguments = signature(name).arguments  # type: ignore[union-attr]
    names = [a.name for a in arguments]
    defaults = {a.name: a.default for a in arguments if a.default is not inspect.Parameter.empty}

    def loss(*args: Any, **kwargs: Any) -> Call:
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        if len(args) > len(names) or set(given) != set(names):
            raise TypeError(f"{name}() takes {', '.join(names)}; got {len(args)} arguments and {sorted(kwargs)}")
        number = given.pop("reduction")
        if number not in (0, 1, 2):
            raise ValueError(f"{name}: expected reduction to be 0 (none), 1 (mean) or 2 (sum), got {number!r:.80}")
        first, second = given.pop(names[0]), given.pop(names[1])
        return _call(getattr(F, own), first, second, **given, reduction=("none", "mean", "sum")[number])

    return loss


def losses() -> dict[str, str]:
    """The names of losses in ATen, and of the functions of ``nn.functional`` that they are."""
    named = {"cross_entropy_loss": "cross_entropy", "nll_loss2d": "nll_loss", "nll_loss_nd": "nll_loss"}
    natives = [label.partition("::")[2] for label, texts in signatures().items() if "int reduction" in texts[0]]
    return {name: own for name in natives if hasattr(F, own := named.get(name, name))}


def _padded(mode: str) -> Callable:
    return lambda self, padding: _call(F.pad, self, list(padding), mode)


def _bags(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=-1,
):  # fmt: skip
    """PyTorch's library has -1 where no row is padding."""
    given = weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset
    return _call(lower.embedding_bag, *given, padding_idx=None if padding_idx == -1 else padding_idx)


def _without_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return _call(lower.native_batch_norm, input, weight, bias, running_mean, running_var, False, momentum, eps)


# ---- resizing -------------------------------------------------------------------------------------------------------

#: The resizing ops: the mode of ``interpolate``, and whether they are told about corners.
UPSAMPLES: dict[str, tuple[str, bool]] = {
    **{f"upsample_nearest{n}d": ("nearest", False) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": ("nearest-exact", False) for n in (1, 2, 3)},
    **{f"upsample_{m}": (m[:-2], True) for m in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")},
}


def _upsample(name: str) -> Callable:
    """Sizes, corners where the op is told about them, and factors in a list or one by one. Factors say more than the
    sizes that were made of them."""
    mode, aligned = UPSAMPLES[name]

    def upsample(input, output_size=None, *more, align_corners=None, **named):
        rest = [*more, *named.values()]
        if aligned:
            align_corners, *rest = rest if align_corners is None else (align_corners, *rest)
        factors = [x for x in rest if x is not None]
        if factors and isinstance(factors[0], (tuple, list)):
            factors = [*factors[0]]
        chosen: dict[str, Any] = {"scale_factor": factors} if factors else {"size": list(output_size)}
        corners = {"align_corners": align_corners} if aligned else {}
        return _call(OPS["interpolate"], input, **chosen, mode=mode, **corners)

    return upsample


# ---- Fourier transforms ---------------------------------------------------------------------------------------------

#: The scales of transforms, forward and back, by their number: 1, ``1 / sqrt(n)`` and ``1 / n``.
_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}


def _c2c(self, dim, normalization, forward):
    return _call(fft.fftn if forward else fft.ifftn, self, dim=dim, norm=_NORMS[bool(forward)][normalization])


def _r2c(self, dim, normalization, onesided):
    return _call(fft.rfftn if onesided else fft.fftn, self, dim=dim, norm=_NORMS[True][normalization])


def _c2r(self, dim, normalization, last_dim_size):
    sizes = [-1] * (len(dim) - 1) + [last_dim_size]
    return _call(fft.irfftn, self, s=sizes, dim=dim, norm=_NORMS[False][normalization])


def _stft(
    self, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=None, return_complex=None,
    align_to_window=None,
):  # fmt: skip
    """The overload without padding at the ends."""
    named = {"normalized": normalized, "onesided": onesided, "return_complex": return_complex}
    named |= {"align_to_window": align_to_window}
    named = {k: v for k, v in named.items() if v is not None}
    return _call(OPS["stft"], self, n_fft, hop_length, win_length, window, center=False, **named)


# ---- the records ----------------------------------------------------------------------------------------------------


def _lacking(name: str) -> Callable:
    @traits(lacking=True)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"aten::{name} is part of PyTorch's C++, which taeda has not")

    return refuse


def _other(function: Callable) -> Callable:
    """Another function of the same arguments."""
    return lambda *args, **kwargs: Call(function, args, kwargs)


#: By name, or by name and overload where only that one is spelled otherwise.
RECORDS: dict[str, Callable] = {
    "alias": _moved(lambda self: _call(OPS["view_as"], self, self)),
    "lift": _moved(lambda self: _call(itself, self)), "lift_fresh": _moved(lambda self: _call(itself, self)),
    "lift_fresh_copy": lambda self: _call(OPS["clone"], self),
    "slice": _slice, "index": _indexed, "_unsafe_index": _indexed, "index_put": _put("index_put"),
    "index_put_": _put("index_put_"),
    "view": _moved(lambda self, size: _call(OPS["view"], self, size)),  # in one of two signatures `size` is a dtype
    "_unsafe_view": _moved(lambda self, size: _call(OPS["view"], self, size)),
    "_reshape_alias": lambda self, size, stride: _call(OPS["reshape"], self, size),
    "mT": lambda self: _call(OPS["transpose"], self, -2, -1), "mH": _other(OPS["adjoint"]),
    "matrix_H": _other(OPS["adjoint"]), "numpy_T": lambda self: _call(OPS["t"], self),
    "_conj": _other(OPS["conj"]), "_conj_physical": _other(OPS["conj_physical"]),
    "item": _other(Tensor.item), "_local_scalar_dense": _other(Tensor.item), "_to_copy": _copied,
    "_stack": _other(OPS["stack"]),
    **{f"_cast_{name}": lambda self, non_blocking=False, dtype=dtype: _call(METHODS["to"], self, dtype)
       for name, dtype in {"Float": _core.float32, "Double": _core.float64, "Half": _core.float16,
                           "Int": _core.int32, "Long": _core.int64}.items()},
    "__and__": _other(OPS["bitwise_and"]), "__or__": _other(OPS["bitwise_or"]), "__xor__": _other(OPS["bitwise_xor"]),
    "elu": _elu, "log_sigmoid": _other(F.logsigmoid),
    "log_sigmoid_forward": lambda self: _call(lambda x: (F.logsigmoid(x), x.new_empty(0)), self),
    "cdist": _cdist, "_cdist_forward": _cdist,
    "_pdist_forward": _other(F.pdist), "_prelu_kernel": _other(OPS["prelu_kernel"]),
    "_linalg_svd": lambda A, full_matrices=False, compute_uv=True, *, driver=None: _call(linalg.svd, A, full_matrices),
    "_linalg_det": _other(OPS["_det"]), "_linalg_slogdet": _other(OPS["_slogdet"]),
    "_linalg_solve_ex": lambda A, B, *, left=True, check_errors=False: _call(OPS["_solve_ex"], A, B, left),
    "_linalg_eigh": lambda A, UPLO="L", compute_v=True: _call(linalg.eigh, A, UPLO),
    "linalg_matrix_power": _other(linalg.matrix_power),
    "tensordot": lambda self, other, dims_self, dims_other: _call(
        OPS["tensordot"], self, other, dims=(dims_self, dims_other)
    ),
    "block_diag": lambda tensors: _call(OPS["block_diag"], *tensors),
    "_sparse_mm": _other(sparse.mm), "_sparse_addmm": _other(sparse.addmm), "_sparse_sum": _other(sparse.sum),
    **{f"_sparse_{name}.int": lambda self, dim, dtype=None, function=function: _call(function, self, dim, dtype=dtype)
       for name, function in (("softmax", sparse.softmax), ("log_softmax", sparse.log_softmax))},
    "einsum": lambda equation, tensors, *, path=None: _call(OPS["einsum"], equation, *tensors),
    "_unique2": lambda self, sorted=True, return_inverse=False, return_counts=False: _call(
        OPS["unique"], self, sorted, True, True
    ),
    "unique_consecutive": lambda self, return_inverse=False, return_counts=False, dim=None: _call(
        OPS["unique_consecutive"], self, True, True, dim
    ),
    "_convolution": lambda *args: _call(lower.convolution, *args[:9]),
    "_native_batch_norm_legit_no_training": _without_training,
    "embedding_bag": _other(lower.embedding_bag), "_embedding_bag": _bags, "_embedding_bag_forward_only": _bags,
    "im2col": _other(F.unfold), "col2im": _other(F.fold),
    "stft.default": _stft, "_fft_c2c": _c2c, "_fft_r2c": _r2c, "_fft_c2r": _c2r,
    **{f"{kind}_pad{n}d": _padded(mode) for n in (1, 2, 3)
       for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))},
    **{f"_adaptive_avg_pool{n}d": _other(getattr(F, f"adaptive_avg_pool{n}d")) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _other(getattr(F, f"adaptive_max_pool{n}d_with_indices")) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _other(getattr(F, f"max_pool{n}d_with_indices")) for n in (2, 3)},
    **{f"max_unpool{n}d": lambda self, indices, output_size, *rest: _call(
        OPS["max_unpool_to"], self, indices, output_size) for n in (2, 3)},
    **{f"fractional_max_pool{n}d": _fractional(n) for n in (2, 3)},
    **{name: _upsample(name) for name in UPSAMPLES},
    **{name: _loss(name, own) for name, own in losses().items()},
    **{name: _lacking(name) for name in (
        "_upsample_lanczos2d_aa _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned _ctc_loss "
        "_native_multi_head_attention _lu_with_info _transformer_encoder_layer_fwd _nested_from_padded "
        "to_padded_tensor").split()},
}  # fmt: skip

_SPACES = {"linalg_": linalg, "special_": special, "fft_": fft}


def record_of(name: str, overload: str = "") -> Callable | None:
    """The record of an op, None where it is spelled as here."""
    return RECORDS.get(f"{name}.{overload or 'default'}") or RECORDS.get(name)


def same_name(name: str) -> Callable | None:
    """The function of taeda that is the native op ``name``, with its arguments in the same order."""
    own = vars(lower).get(name)
    if NAMES.get(name) == lower.__name__ or (isinstance(own, Composite) and own.__module__ == lower.__name__):
        return own
    method = vars(Tensor).get(name)
    found = OPS.get(name) or (method.function if isinstance(method, Method) else None)
    if found is not None:
        return found
    for prefix, module in _SPACES.items():
        if name.startswith(prefix):
            return vars(module).get(name.removeprefix(prefix))
    found = vars(F).get(name)
    return found if isinstance(found, (Op, Composite, FunctionType)) and not name.startswith("_") else None


@functools.cache
def function_of(name: str, overload: str = "") -> Callable | None:
    """The function that computes the native op ``name``, or None.

    Args:
        name: without its namespace.
        overload: one of its signatures.
    Returns:
        A function, or None.
    """
    record, found = record_of(name, overload), same_name(name)
    known = signature(name, overload)
    outs = () if known is None or known.outs == ("out",) else known.outs
    if record is None and (found is None or not outs):
        return found
    spelled: Callable = record or (lambda *args, **kwargs: (found, args, kwargs))

    def run(*args: Any, **kwargs: Any) -> Any:
        into = [kwargs.pop(out) for out in outs]
        function, given, named = spelled(*args, **kwargs)
        made = function(*given, **named)
        if not into:
            return made
        return write_out(run, tuple(into) if len(into) > 1 else into[0], made)

    vars(run).update(vars(found if record is None else record))
    run.__name__ = run.__qualname__ = name
    return run
