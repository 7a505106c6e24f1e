"""``out=``: the tensors that results are written to, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Op, Tensor
from .._core.mends import not_tensor
from .._warn import warn_caller


def write_out(op: Any, out: Any, result: Any, arguments: Any = ()) -> Any:
    """Put ``result`` into ``out``, which is resized where it has another shape.

    Args:
        op: an op, or a function made by :func:`with_out`.
        out: a tensor, or as many as there are results.
        result: what the op made.
        arguments: of an op all of them, in order; of a function those given, by name.
    Raises:
        RuntimeError: ``out`` has a dtype that the op does not write, or elements that share memory with each other or,
            as the op does not allow, with an argument; or a derivative is asked for.
        TypeError: ``out`` is not a tensor, or not as many as there are results.
    """
    label = getattr(op, "name", None) or op.__name__
    if isinstance(result, tuple) and not isinstance(result, Tensor):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(
                f"{label}(): argument 'out' must be a tuple of {len(result)} Tensors, got {type(out).__name__}"
            )
        made = [write_out(op, o, r, arguments) for o, r in zip(out, result, strict=True)]
        kind = getattr(op, "traits", {}).get("result_type") or type(result)
        return kind(*made) if hasattr(kind, "_fields") else tuple(made)
    check_out(op, label, out, result)
    if out is result:
        return out
    if out.shape != result.shape:
        _resize_out(out, result, isinstance(op, Op))
    _check_sharing(op, label, out, arguments)
    _core.copy_tensor(out, result)
    _core.bump(out)
    return out


def check_out(op: Any, label: str, out: Any, result: Tensor) -> None:
    """Refuse an ``out`` that can't take ``result``: no tensor, of another dtype, recorded, or with elements twice."""
    if not isinstance(out, Tensor):
        raise not_tensor(f"{label}(): argument 'out'", out)
    if _core.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{label}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            f"arguments requires grad."
        )
    if result.dtype != out.dtype:
        _check_out_dtype(op, label, out, result)
    if not out.is_contiguous() and any(n > 1 and step == 0 for n, step in zip(out.shape, out.stride(), strict=True)):
        raise RuntimeError(
            f"{label}: unsupported operation: more than one element of the written-to tensor refers to a single memory "
            f"location. Please clone() the tensor before performing the operation."
        )


def _check_sharing(op: Any, label: str, out: Tensor, arguments: Any) -> None:
    """Raise where ``out``, with its final sizes, shares memory with an argument as the op's stanza does not allow."""
    traits = getattr(op, "traits", {})
    apart = traits.get("out_apart", ())
    aligned = op.params[: traits["operands"]] if traits.get("pointwise") else traits.get("out_aligned", ())
    if not apart and not aligned:
        return
    if not isinstance(arguments, dict):
        arguments = dict(zip(op.params, arguments, strict=True))
    for name in (*apart, *aligned):
        given = arguments.get(name)
        for x in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(x, Tensor) and _core.memory_overlap(out, x) > (name not in apart):
                raise RuntimeError(
                    f"{label}: unsupported operation: some elements of the input tensor '{name}' and the written-to "
                    "tensor refer to a single memory location. Please clone() the tensor before performing the "
                    "operation."
                )


def _check_out_dtype(op: Any, name: str, out: Tensor, result: Tensor) -> None:
    rule = getattr(op, "traits", {}).get("out_dtype", True)
    if rule == "same" or (isinstance(rule, tuple) and out.dtype.name not in rule):
        raise RuntimeError(
            f"{name}(): Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead; make it with "
            f"dtype={result.dtype}"
        )
    if rule != "any" and not can_cast(result.dtype, out.dtype):
        raise (TypeError if rule == "type" else RuntimeError)(
            f"{name}: result type {result.dtype} can't be cast to the desired output type {out.dtype}"
        )


def warn_resized(out: Tensor, shape: Sequence[int]) -> None:
    """Warn that ``out``, which has elements, gets another shape."""
    warn_caller(
        f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
        f"match the required output shape {list(shape)}. Make it of that shape, or empty it with out.resize_(0)."
    )


def _resize_out(out: Tensor, result: Tensor, keep_strides: bool) -> None:
    """Give ``out`` the sizes of ``result``, maybe its strides, in its own storage; warn where it had elements."""
    if out.numel():
        warn_resized(out, result.shape)
    out.resize_(result.shape)
    if keep_strides and not result.is_contiguous() and _core.is_dense_tensor(result):
        _core.set_data(out, _core.strided_view(out, result.shape, result.stride()))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a result of one dtype may be stored as another: not complex as real, not floating point as integer,
    nothing but bool as bool.

    Args:
        from_: the dtype of the result.
        to: the dtype that it is stored in.
    Returns:
        A bool.
    Raises:
        TypeError: an argument is no dtype.
    Examples:
        >>> taeda.can_cast(taeda.int64, taeda.float16), taeda.can_cast(taeda.float32, taeda.int64)
        (True, False)
    """
    order = {"b": 0, "i": 1, "f": 2, "c": 3}

    def kind(d):
        d = _core.PYTHON_TYPES.get(d, d) if isinstance(d, type) else d
        if not isinstance(d, _core.dtype):
            raise TypeError(f"can_cast(): expected two dtypes, got {type(d).__name__}; of a tensor it is x.dtype")
        return order["c" if d.is_complex else "f" if d.is_floating_point else "b" if d.name == "bool" else "i"]

    return kind(from_) <= kind(to)
