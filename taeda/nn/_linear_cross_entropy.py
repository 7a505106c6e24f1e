"""The cross entropy of a linear layer's output, whole or piece by piece without ever holding all the logits."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import taeda
from taeda import Tensor

from ..ops.loss import cross_entropy
from ..ops.matmul import linear

__all__ = ["LinearCrossEntropyOptions", "linear_cross_entropy"]

_POLICIES = ("auto", "accurate", "balanced", "compact")
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How :func:`linear_cross_entropy` cuts the batch into pieces, of which each computes its logits again for the backward
    pass.

    Args:
        allow_retain_graph: accepted for compatibility: a second backward pass is always possible.
        batch_chunk_size: rows of a piece.
        chunking_method: what chooses them otherwise: ``"aspect_ratio"`` makes a piece's logits about as large as the
            input, ``"aspect_ratio:n"`` one ``n``-th of that, ``"auto"`` is ``"aspect_ratio:2"``; None is one piece.
        acc_policy: ``"auto"``, ``"accurate"``, ``"balanced"`` or ``"compact"``; accepted for compatibility: sums are
            always in float32 or more.
        acc_dtype: what losses are computed in; float32 for narrower inputs by default.
    Raises:
        ValueError: an option is none of these.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}; expected one of {', '.join(_POLICIES)}")
        self._divisor()
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and getattr(self.acc_dtype, "name", None) not in _FLOATS:
            raise ValueError(f"acc_dtype must be None or one of {', '.join(_FLOATS)}, got {self.acc_dtype!r}")

    def _divisor(self) -> int:
        """The ``n`` of ``chunking_method``."""
        if self.chunking_method is None or self.chunking_method == "auto":
            return 2
        name, colon, number = self.chunking_method.partition(":")
        number = number if colon else "1"
        if name != "aspect_ratio" or not number.isdigit() or int(number) == 0:
            raise ValueError(
                f"invalid chunking_method: {self.chunking_method!r}; expected 'auto', 'aspect_ratio', 'aspect_ratio:n' or None"
            )
        return int(number)

    def rows(self, batch: int, features: int, classes: int) -> int:
        """Rows of a piece.

        Raises:
            ValueError: ``batch_chunk_size`` and ``chunking_method`` say different things.
        """
        given = None if self.batch_chunk_size is None else min(self.batch_chunk_size, batch)
        if self.chunking_method is None or (self.chunking_method == "auto" and given is not None):
            return max(given or batch, 1)
        target = -(-batch // -(-classes // features))
        found = min((1 << (target - 1).bit_length()) // self._divisor(), batch)
        if given is not None and self.batch_chunk_size != found:
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ({self.chunking_method!r}, which gives "
                f"{found}) differ; pass only one"
            )
        return max(found, 1)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
) -> Tensor:  # fmt: skip
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input: ``(features)`` or ``(N, features)``.
        linear_weight: ``(C, features)``, or ``(C, d1, ..., dK, features)`` for a K-dimensional loss.
        target: class indices ``()``, ``(N)`` or ``(N, d1, ..., dK)``, or probabilities in the shape of the logits.
        linear_bias: of the shape of ``linear_weight`` without its last dimension, or None.
        weight: one per class, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        ignore_index: a class that does not count, -100 by default; not with probabilities.
        label_smoothing: how much of the target is spread over all classes.
        options: compute piece by piece; for class indices, without smoothing and without further dimensions.
    Raises:
        RuntimeError: shapes do not fit.
    """
    shape = _check(input, linear_weight, linear_bias)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    more = tuple(linear_weight.shape[1:-1])
    if options is not None:
        if not more and label_smoothing == 0.0 and target.dtype is taeda.int64 and reduction in ("mean", "sum", "none"):
            return _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        warnings.warn(
            "linear_cross_entropy: options are ignored: they need a target of class indices, no label_smoothing, and a "
            f"linear_weight of two dimensions; got target of {target.dtype}, label_smoothing={label_smoothing}, "
            f"linear_weight of shape {tuple(linear_weight.shape)}, reduction={reduction!r}",
            stacklevel=2,
        )
    if more:
        linear_weight = linear_weight.reshape(-1, input.shape[-1])
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        logits, target, weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )


def _check(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    """The shape of the logits."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"linear_cross_entropy: expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias shape {tuple(weight.shape[:-1])}, got {tuple(bias.shape)}"
        )
    if weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires batched "
            f"input, (N, {input.shape[-1]}), got shape {tuple(input.shape)}"
        )
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options) -> Tensor:
    """The same over pieces of the batch, whose logits are made twice and kept never."""
    from ..utils.checkpoint import checkpoint

    dtype = options.acc_dtype
    if dtype is None:
        dtype = taeda.float32 if input.dtype.itemsize == 2 else input.dtype
    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    kind = "none" if reduction == "none" else "sum"
    class_weight = None if weight is None else weight.to(dtype)

    def piece(x, t, w, b):
        logits = linear(x.to(dtype), w.to(dtype), None if b is None else b.to(dtype))
        return cross_entropy(logits, t, class_weight, reduction=kind, ignore_index=ignore_index)

    rows = options.rows(input.shape[0], input.shape[1], linear_weight.shape[0])
    losses = [
        checkpoint(piece, x, t, linear_weight, linear_bias, use_reentrant=False)
        for x, t in zip(input.split(rows), target.split(rows), strict=True)
    ]
    if kind == "none":
        result = taeda.cat(losses)
        return (result[0] if single else result).to(input.dtype)
    result = losses[0] if len(losses) == 1 else taeda.stack(losses).sum()
    if reduction == "mean":
        counted = target != ignore_index
        if class_weight is None:
            total = counted.sum().to(dtype)
        else:
            total = class_weight[target.masked_fill(~counted, 0)].masked_fill(~counted, 0).sum()
        result = result / total
    return result.to(input.dtype)
