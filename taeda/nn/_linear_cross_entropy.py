"""The cross entropy of a linear layer's output, whole or piece by piece without ever holding all the logits."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from .._core import float32, int64
from .._typed import Tensor
from ..ops.cross_entropy import cross_entropy
from ..ops.joining import cat, stack
from ..ops.matmul import linear

__all__ = ["LinearCrossEntropyOptions", "linear_cross_entropy"]

_POLICIES = ("auto", "accurate", "balanced", "compact")
_FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How :func:`linear_cross_entropy` cuts the batch into pieces. Each computes its scores again for the backward
    pass.

    Args:
        allow_retain_graph: accepted for compatibility: a second backward pass is always possible.
        batch_chunk_size: rows of a piece.
        chunking_method: what chooses them otherwise: ``"aspect_ratio"`` makes a piece's scores about as large as the
            input, ``"aspect_ratio:n"`` one ``n``-th of that, ``"auto"`` is ``"aspect_ratio:2"``, and ``"aspect_ratio"``
            for float16 and bfloat16; None is one piece.
        acc_policy: ``"auto"``, ``"accurate"``, ``"balanced"`` or ``"compact"``; accepted for compatibility: sums are
            always in float32 or more.
        acc_dtype: what losses are computed in; float32 for narrower inputs by default.

    Raises:
        ValueError: an option is none of these.

    Examples:
        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=16).batch_chunk_size
        16
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

    def _divisor(self) -> int | None:
        """The ``n`` of ``chunking_method``; None if it does not name one."""
        if self.chunking_method is None or self.chunking_method == "auto":
            return None
        name, colon, number = self.chunking_method.partition(":")
        number = number if colon else "1"
        if name != "aspect_ratio" or not number.isdigit() or int(number) == 0:
            raise ValueError(
                f"invalid chunking_method: {self.chunking_method!r}; expected 'auto', 'aspect_ratio', 'aspect_ratio:n' "
                "or None"
            )
        return int(number)

    def _adjust(
        self, num_batches: int, in_features: int, num_classes: int, dtype: Any, device: Any = None
    ) -> LinearCrossEntropyOptions:
        """These options for a call: ``"auto"`` and None are replaced by their meanings."""
        narrow = dtype.itemsize == 2 and device is not None
        policy = ("accurate" if narrow else "compact") if self.acc_policy == "auto" else self.acc_policy
        method, given = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if given is not None else "aspect_ratio" if narrow else "aspect_ratio:2"
        rows = num_batches if given is None else min(given, num_batches)
        if method is not None:
            divisor = dataclasses.replace(self, chunking_method=method, acc_policy=policy)._divisor() or 1
            target = -(-num_batches // -(-num_classes // in_features))
            rows = min((1 << (target - 1).bit_length()) // divisor, num_batches)
            if given is not None and given != rows:
                raise ValueError(
                    f"batch_chunk_size (={given}) and chunking_method ({method!r}) give different chunk sizes ({given} "
                    f"vs {rows}); pass only one."
                )
        acc_dtype = self.acc_dtype
        if acc_dtype is None:
            acc_dtype = float32 if narrow and self.acc_policy == "auto" else dtype
        return dataclasses.replace(
            self, acc_policy=policy, chunking_method=method, batch_chunk_size=max(1, rows), acc_dtype=acc_dtype
        )


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
) -> Tensor:  # fmt: skip
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``, whose scores need not be held as a whole.

    Args:
        input: ``(N, D)`` or ``(D,)``; floating-point.
        linear_weight: ``(C, D)``, or ``(C, d1, ..., D)`` for scores with further dimensions.
        target: class numbers, ``(N,)``, ``()`` or ``(N, d1, ...)``, int64; or probabilities of the shape of the scores.
        linear_bias: of the shape of ``linear_weight`` without its last dimension, or None.
        weight: ``(C,)``, a weight for each class, or None.
        reduction: ``"mean"`` (over the weights that count), ``"sum"`` or ``"none"``.
        ignore_index: a class number that does not count, -100 by default; not with probabilities.
        label_smoothing: share of the target that is spread over all classes.
        options: compute piece by piece; for class numbers, without smoothing and without further dimensions.

    Returns:
        ``()``; with ``reduction="none"`` the shape of the class numbers.

    Raises:
        RuntimeError: shapes do not fit.

    Examples:
        >>> options = nn.LinearCrossEntropyOptions(batch_chunk_size=16)  # 16 rows of scores in memory at a time
        >>> x, weight = taeda.ones(64, 2), taeda.zeros(50_000, 2)
        >>> F.linear_cross_entropy(x, weight, taeda.zeros(64, dtype=taeda.int64), options=options)
        tensor(10.8198)
    """
    shape = _check(input, linear_weight, linear_bias)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    more = tuple(linear_weight.shape[1:-1])
    if options is not None:
        if not more and label_smoothing == 0.0 and target.dtype is int64 and reduction in ("mean", "sum", "none"):
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
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got shape {tuple(input.shape)}"
        )
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options) -> Tensor:
    """The same over pieces of the batch. Their logits are computed twice and never kept."""
    from ..utils.checkpoint import checkpoint

    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    if not isinstance(options, LinearCrossEntropyOptions):
        raise TypeError(
            "linear_cross_entropy(): argument 'options' must be LinearCrossEntropyOptions, not "
            f"{type(options).__name__}"
        )
    options = options._adjust(input.shape[0], input.shape[1], linear_weight.shape[0], input.dtype, input.device)
    dtype, rows = options.acc_dtype, options.batch_chunk_size
    if dtype is not input.dtype and not (dtype is float32 and input.dtype.itemsize == 2):
        raise RuntimeError(
            f"linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got acc_dtype={dtype} "
            f"with an input of {input.dtype}; pass acc_dtype=None"
        )
    if dtype.itemsize < 4:  # sums are never in less
        dtype = float32
    kind = "none" if reduction == "none" else "sum"
    # Kept for the backward pass: copies, because the caller may write to the originals before it (PyTorch keeps the
    # gradients).
    input, linear_weight, target = input.clone(), linear_weight.clone(), target.clone()
    linear_bias = None if linear_bias is None else linear_bias.clone()
    class_weight = None if weight is None else weight.to(dtype, copy=True)

    def piece(x, t, w, b):
        logits = linear(x.to(dtype), w.to(dtype), None if b is None else b.to(dtype))
        return cross_entropy(logits, t, class_weight, reduction=kind, ignore_index=ignore_index)

    losses = [
        checkpoint(piece, x, t, linear_weight, linear_bias, use_reentrant=False)
        for x, t in zip(input.split(rows), target.split(rows), strict=True)
    ]
    if kind == "none":
        result = cat(losses)
        return (result[0] if single else result).to(input.dtype)
    result = losses[0] if len(losses) == 1 else stack(losses).sum()
    if reduction == "mean":
        counted = target != ignore_index
        if class_weight is None:
            total = counted.sum().to(dtype)
        else:
            total = class_weight[target.masked_fill(~counted, 0)].masked_fill(~counted, 0).sum()
        result = result / total
    return result.to(input.dtype)
