"""ONNX ops that reduce dimensions, and those that sort or accumulate along one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda

from ..._typed import Tensor
from ..table import op
from ..values import integers


def _reduction(name: str, function: Callable) -> None:
    """``function(x, dims)``, which keeps dimensions, runs the ONNX op ``name``."""

    @op(name)
    def run(x: Tensor, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        chosen = [axis % x.ndim for axis in integers(axes)] if axes is not None else []
        if not chosen and not noop_with_empty_axes:
            chosen = list(range(x.ndim))
        result = function(x, tuple(chosen)).to(x.dtype)
        return result if keepdims or not chosen else result.squeeze(tuple(chosen))


def _sum(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return taeda.sum(x, dims, keepdim=True) if dims else x


def _is_empty(x: Tensor, dims: tuple[int, ...]) -> bool:
    return any(x.shape[dim] == 0 for dim in dims)


def _extreme(x: Tensor, dims: tuple[int, ...], function: Callable, of_nothing: Any) -> Tensor:
    if _is_empty(x, dims):
        return x.new_full([1 if i in dims else n for i, n in enumerate(x.shape)], of_nothing)
    if x.dtype == taeda.bool:
        return function(x.to(taeda.uint8), dims, keepdim=True) if dims else x
    return function(x, dims, keepdim=True) if dims else x


def _limits(x: Tensor) -> tuple[Any, Any]:
    if x.is_floating_point():
        return -taeda.inf, taeda.inf
    return (False, True) if x.dtype == taeda.bool else (taeda.iinfo(x.dtype).min, taeda.iinfo(x.dtype).max)


def _wide(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.double()


def _product(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    for dim in dims:
        x = taeda.prod(x, dim, keepdim=True)
    return x


def _length(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    if x.is_floating_point() and dims:
        return taeda.linalg.vector_norm(x, 2, dims, keepdim=True)
    return taeda.sqrt(_sum(x * x, dims).double())


def _log_sum_exp(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    if not dims or _is_empty(x, dims):
        return taeda.log(_sum(taeda.exp(_wide(x)), dims))
    return taeda.logsumexp(_wide(x), dims, keepdim=True)


_reduction("ReduceSum", _sum)
_reduction("ReduceMean", lambda x, dims: taeda.mean(_wide(x), dims, keepdim=True) if dims else x)
_reduction("ReduceMax", lambda x, dims: _extreme(x, dims, taeda.amax, _limits(x)[0]))
_reduction("ReduceMin", lambda x, dims: _extreme(x, dims, taeda.amin, _limits(x)[1]))
_reduction("ReduceProd", _product)
_reduction("ReduceL1", lambda x, dims: _sum(taeda.abs(x), dims))
_reduction("ReduceL2", _length)
_reduction("ReduceSumSquare", lambda x, dims: _sum(x * x, dims))
_reduction("ReduceLogSum", lambda x, dims: taeda.log(_sum(x, dims)))
_reduction("ReduceLogSumExp", _log_sum_exp)


def _arg(x: Tensor, function: Callable, axis: int, keepdims: int, last: int) -> Tensor:
    if last:
        return x.shape[axis] - 1 - function(taeda.flip(x, [axis]), axis, keepdim=bool(keepdims))
    return function(x, axis, keepdim=bool(keepdims))


@op("ArgMax")
def arg_max(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(x, taeda.argmax, axis, keepdims, select_last_index)


@op("ArgMin")
def arg_min(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(x, taeda.argmin, axis, keepdims, select_last_index)


# ---- along one dimension ---------------------------------------------------------------------------------------------
def _cumulative(x: Tensor, axis: int, function: Callable, first: int, exclusive: int, reverse: int) -> Tensor:
    if reverse:
        x = taeda.flip(x, [axis])
    if exclusive:  # each result is of the elements before it
        head = x.narrow(axis, 0, 1) * 0 + first if x.shape[axis] else x
        x = taeda.cat([head, x.narrow(axis, 0, max(x.shape[axis] - 1, 0))], axis)
    result = function(x, axis).to(x.dtype)
    return taeda.flip(result, [axis]) if reverse else result


@op("CumSum")
def cum_sum(x: Tensor, axis: Tensor, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(x, int(axis), taeda.cumsum, 0, exclusive, reverse)


@op("CumProd")
def cum_prod(x: Tensor, axis: Tensor, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(x, int(axis), taeda.cumprod, 1, exclusive, reverse)


op("TopK", 1)(lambda x, *, k, axis=-1: tuple(taeda.topk(x, k, axis)))


@op("TopK", 10)
def top_k(x: Tensor, k: Tensor, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Tensor, ...]:
    return tuple(taeda.topk(x, int(k), axis, bool(largest), bool(sorted)))
