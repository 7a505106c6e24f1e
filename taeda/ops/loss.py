"""Losses: what training minimises, as functions with ``nn.functional``'s signatures.

Each is an elementwise op and a reduction. Cross entropy is in ``cross_entropy.py``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._core import Tensor, bool_, int64, label_node
from ..kernels import scalar as s
from .activation import inside
from .elementary import sigmoid_backward
from .out import can_cast
from .reduction import extent
from .table import OPS, composite, expect_tensors, pointwise
from .views import broadcast_shapes, broadcast_tensors


def reduction_of(size_average, reduce, reduction):
    """The reduction that the older arguments ``size_average`` and ``reduce`` ask for, or ``reduction``."""
    if size_average is not None or reduce is not None:
        meant = "mean" if size_average is None or size_average else "sum"
        meant = meant if reduce is None or reduce else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction={meant!r} instead.", stacklevel=4
        )
        return meant
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction (expected 'none', 'mean' or 'sum')")
    return reduction


def _reduced(loss, size_average, reduce, reduction):
    reduction = reduction_of(size_average, reduce, reduction)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _as_dtype(name, loss, dtype):
    """``loss`` in ``dtype``, which a result of its dtype may be stored as."""
    if not can_cast(loss.dtype, dtype):
        raise RuntimeError(f"{name}: result type {loss.dtype} can't be cast to the desired output type {dtype}")
    return loss.to(dtype)


def _laid_out_like(target, loss, reduction):
    """A loss of every element, contiguous where ``target`` is: the first operand of the formula."""
    return loss.contiguous() if reduction == "none" and target.is_contiguous() else loss


def _of_one_size(name, input, target):
    """Both, with a warning if they differ in size; one without dimensions is broadcast, so that its dtype counts."""
    if input.shape == target.shape:
        return input, target
    from .._core.mends import for_pair

    warnings.warn(
        f"{name}: using a target size ({tuple(target.shape)}) that is different to the input size "
        f"({tuple(input.shape)}). This will likely lead to incorrect results due to broadcasting. Please ensure "
        f"they have the same size{for_pair(input.shape, target.shape)}.",
        UserWarning,
        stacklevel=3,
    )
    return broadcast_tensors(input, target) if 0 in (input.dim(), target.dim()) else (input, target)


# ---- regression -----------------------------------------------------------------------------------------------------
_ELEMENTWISE = {"promote": "type", "method": False, "inplace": False, "dtypes": ("float",)}


@pointwise(**_ELEMENTWISE)
def _squared_error(input, target):
    d = input - target
    return d * d


@pointwise(**_ELEMENTWISE, operands=3, node="MseLossBackwardBackward0")
def _squared_slope(grad, input, target):
    """The derivative of :func:`_squared_error` by ``input``, times ``grad``."""
    return grad * ((input - target) * 2.0)


_squared_error.vjp(
    input=lambda g, input, target: _squared_slope(g, input, target),
    target=lambda g, input, target: _squared_slope(g, target, input),
)
_squared_slope.vjp(
    grad=lambda g, input, target: _squared_slope(g, input, target),
    input=lambda g, grad: g * grad * 2,
    target=lambda g, grad: g * grad * -2,
)


@pointwise(promote="type", method=False, inplace=False, copied=("input", "target"))
def _absolute_error(input, target):
    return s.abs(input - target)


_absolute_error.vjp(
    input=lambda g, input, target: g * (input - target).sgn(),
    target=lambda g, input, target: g * (target - input).sgn(),
)


@pointwise(**_ELEMENTWISE)
def _smooth_error(input, target, beta=1.0):
    d = s.abs(input - target)
    return s.select(d < beta, d * d * 0.5 / beta, d - beta * 0.5)


@pointwise(**_ELEMENTWISE, operands=3)
def _held_slope(grad, input, target, limit, scale):
    """``grad * scale`` times the difference, which is held between ``-limit`` and ``limit``."""
    return grad * (s.at_least(s.at_most(input - target, limit), -limit) * scale)


def _held_bend(g, grad, input, target, limit, scale):
    return inside(g * grad, input - target, -limit, limit) * scale


_held_slope.vjp(
    grad=lambda g, input, target, limit, scale: _held_slope(g, input, target, limit, scale),
    input=_held_bend,
    target=lambda g, grad, input, target, limit, scale: -_held_bend(g, grad, input, target, limit, scale),
)
_smooth_error.vjp(
    input=lambda g, input, target, beta: _held_slope(g, input, target, beta, 1 / beta),
    target=lambda g, input, target, beta: _held_slope(g, target, input, beta, 1 / beta),
)


@pointwise(**_ELEMENTWISE)
def _huber_error(input, target, delta=1.0):
    d = s.abs(input - target)
    return s.select(d <= delta, d * d * 0.5, (d - delta * 0.5) * delta)


_huber_error.vjp(
    input=lambda g, input, target, delta: _held_slope(g, input, target, delta, 1.0),
    target=lambda g, input, target, delta: _held_slope(g, target, input, delta, 1.0),
)


@composite(method=False, autocast="float32")
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squared error: ``(input - target) ** 2`` per element, then the mean.

    Args:
        input: any shape; floating-point.
        target: the same shape; another one broadcasts, with a warning.
        weight: a factor of each element, of the shape of ``input``, or None. The mean is over the weights.

    Returns:
        ``()``; with ``reduction="none"`` the sizes to which the two broadcast.

    Raises:
        ValueError: ``weight`` has another shape, or ``reduction`` is unknown.

    Examples:
        >>> F.mse_loss(taeda.tensor([1.0, 2.0]), taeda.tensor([0.0, 5.0]))
        tensor(5.)
    """
    if weight is not None:
        sizes, (input, target) = input.shape, _of_one_size("mse_loss", input, target)
        return _weighted((input - target).square(), sizes, weight, size_average, reduce, reduction)
    input, target = _of_one_size("mse_loss", input, target)
    return label_node(_reduced(_squared_error(input, target), size_average, reduce, reduction), "MseLossBackward0")


@composite(method=False, autocast="float32")
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute error: ``abs(input - target)`` per element, then the mean.
    The rest as of :func:`nn.functional.mse_loss`.

    Args:
        input: any shape; floating-point or complex.

    Raises:
        ValueError: there is no such reduction.
        RuntimeError: the inputs do not broadcast.

    Examples:
        >>> F.l1_loss(taeda.tensor([1.0, 2.0]), taeda.tensor([0.0, 5.0]))
        tensor(2.)
    """
    expect_tensors("l1_loss", input=input, target=target)
    sizes = input.shape
    input, target = _of_one_size("l1_loss", input, target)
    if not (input.is_floating_point() and target.is_floating_point()):
        return _weighted((input - target).abs(), sizes, weight, size_average, reduce, reduction)
    return _weighted(_absolute_error(input, target), sizes, weight, size_average, reduce, reduction)


def _weighted(loss, sizes, weight, size_average, reduce, reduction):
    """Each element times its weight, of which there are as many as the input of ``sizes`` has elements."""
    if weight is None:
        return _reduced(loss, size_average, reduce, reduction)
    if weight.shape != sizes:
        raise ValueError("Weights and input must have the same size.")
    reduction = reduction_of(size_average, reduce, reduction)
    loss = loss * weight
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weight.expand(loss.shape).sum()


@composite(method=False, autocast="float32")
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """``d ** 2 / (2 * beta)`` where ``d < beta``, else ``d - beta / 2``, with ``d = abs(input - target)`` (Girshick
    2015). The rest as of :func:`nn.functional.mse_loss`.

    Args:
        beta: where the two forms meet, at least 0; 0 is :func:`l1_loss`.

    Raises:
        RuntimeError: ``beta`` is negative.

    Examples:
        >>> F.smooth_l1_loss(taeda.tensor([0.5, 4.0]), taeda.zeros(2), reduction="none")
        tensor([0.1250, 3.5000])
    """
    input, target = _of_one_size("smooth_l1_loss", input, target)
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta (got {beta})")
    loss = _smooth_error(input, target, float(beta)) if beta else _absolute_error(input, target)
    return label_node(_reduced(loss, size_average, reduce, reduction), "SmoothL1LossBackward0")


@composite(method=False, autocast="float32")
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """``d ** 2 / 2`` where ``d <= delta``, else ``delta * (d - delta / 2)``, with ``d = abs(input - target)`` (Huber
    1964). Arguments as of :func:`nn.functional.mse_loss`.

    Args:
        delta: where the two forms meet, above 0.

    Returns:
        ``()``; with ``reduction="none"`` the sizes to which the two broadcast. The dtype of ``input``.

    Raises:
        RuntimeError: ``delta`` is not positive.

    Examples:
        >>> F.huber_loss(taeda.tensor([0.5, 4.0]), taeda.zeros(2), reduction="none")
        tensor([0.1250, 3.5000])
    """
    sizes = input.shape
    input, target = _of_one_size("huber_loss", input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta (got {delta})")
    loss = _as_dtype("huber_loss", _huber_error(input, target, float(delta)), input.dtype)
    loss = loss if weight is None else _weighted(loss, sizes, weight, None, None, "none")
    return label_node(_reduced(loss, None, None, reduction), "HuberLossBackward0")


# ---- probabilities --------------------------------------------------------------------------------------------------
@pointwise(**_ELEMENTWISE)
def _binary_entropy(input, target):
    """Logarithms are held above -100, so that the loss stays finite."""
    f = input.fn
    yes, no = s.log(input), s.log1p(-input)
    yes, no = f.select(yes < -100.0, -100.0, yes), f.select(no < -100.0, -100.0, no)
    return (target - 1.0) * no - target * yes


_binary_entropy.traits["lowering"] = lambda input, target: (
    (target - 1.0) * (1 - input).log().clamp(min=-100) - target * input.log().clamp(min=-100)
)
_binary_entropy.vjp(
    input=lambda g, input, target: g * (input - target) / (input * (1 - input)).clamp(min=1e-12),
    target=lambda g, input: g * ((1 - input).log().clamp(min=-100) - input.log().clamp(min=-100)),
)


@pointwise(**_ELEMENTWISE, copied=("input",))
def _binary_entropy_of_logits(input, target):
    """``max(x, 0) - x t + log(1 + exp(-|x|))``."""
    return s.at_least(input, 0.0) - input * target + s.log1p_of_exponential(s.abs(input))


_binary_entropy_of_logits.traits["lowering"] = lambda input, target: (
    input.clamp(min=0) - input * target + input.abs().neg().exp().log1p()
)


@pointwise(**_ELEMENTWISE, operands=3)
def _binary_slope_of_logits(grad, input, target):
    """The derivative of :func:`_binary_entropy_of_logits` by ``input``, times ``grad``."""
    return grad * (s.sigmoid(input) - target)


_binary_entropy_of_logits.vjp(
    input=lambda g, input, target: _binary_slope_of_logits(g, input, target), target=lambda g, input: -g * input
)
_binary_slope_of_logits.vjp(
    grad=lambda g, input, target: _binary_slope_of_logits(g, input, target),
    input=lambda g, grad, input: sigmoid_backward(g * grad, input.sigmoid()),
    target=lambda g, grad: -g * grad,
)


@pointwise(**_ELEMENTWISE)
def _divergence(input, target):
    """``t (log t - x)``, 0 where ``t`` is 0."""
    return s.xlogy(target, target) - target * input


_divergence.vjp(
    input=lambda g, target: -g * target,
    target=lambda g, input, target: (g * (target.log() + 1 - input)).masked_fill(target == 0, 0),
)


def _times_weight(loss, weight):
    """``loss`` times a weight that broadcasts to it."""
    if weight is None:
        return loss
    _require_broadcast(weight, loss.shape)
    return loss * weight


def _require_broadcast(x, shape):
    whole = broadcast_shapes(x.shape, shape)
    if tuple(whole) != tuple(shape):
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(whole)}")


def _require_same_shape(name, input, target):
    if input.shape != target.shape:
        from .._core.mends import for_pair

        hint = for_pair(input.shape, target.shape)
        raise ValueError(
            f"{name}: target size ({tuple(target.shape)}) must be the same as input size ({tuple(input.shape)}){hint}"
        )


@composite(method=False, autocast="float32")
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Binary cross entropy of probabilities: ``-(y * log(x) + (1 - y) * log(1 - x))``, each logarithm at least -100.

    Args:
        input: probabilities, any shape; floating-point.
        target: the same shape and dtype, in ``[0, 1]``.
        weight: a factor of each element, which broadcasts, or None.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``input``. Its dtype.

    Raises:
        RuntimeError: an input is not in ``[0, 1]``, or the dtypes differ.
        ValueError: the shapes differ.

    Examples:
        >>> F.binary_cross_entropy(taeda.tensor([0.9, 0.9]), taeda.tensor([1.0, 0.0]), reduction="none")
        tensor([0.1054, 2.3026])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _require_same_shape("binary_cross_entropy", input, target)
    if input.dtype is target.dtype and not input.is_floating_point():
        raise NotImplementedError(f'"binary_cross_entropy" not implemented for {input.dtype}; use .float()')
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"binary_cross_entropy: expected a target of {input.dtype}, got {target.dtype}; use target.to(input.dtype)"
        )
    hint = "; for unnormalised scores use binary_cross_entropy_with_logits"
    for name, x, mend in (("input", input, hint), ("target", target, "")):
        if x.numel() and not x.is_meta:
            low, high = extent(x)
            if not (low >= 0 and high <= 1):
                raise RuntimeError(
                    f"binary_cross_entropy: all elements of {name} should be between 0 and 1, got values in "
                    f"[{low:g}, {high:g}]{mend}"
                )
    loss = _as_dtype("binary_cross_entropy", _times_weight(_binary_entropy(input, target), weight), input.dtype)
    return label_node(_reduced(loss, None, None, reduction), "BinaryCrossEntropyBackward0")


@composite(method=False, autocast="float32")
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Binary cross entropy of ``sigmoid(input)``, without overflow: ``max(x, 0) - x * y + log(1 + exp(-abs(x)))``.

    Args:
        input: any numbers, any shape; floating-point.
        target: the same shape, in ``[0, 1]``; floating-point.
        weight: a factor of each element, which broadcasts, or None.
        pos_weight: a factor of the term of ``y``, which broadcasts, or None.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``input``. The dtype of ``target``.

    Raises:
        ValueError: the shapes differ.
        RuntimeError: a target is no float, or a weight does not broadcast.

    Examples:
        >>> scores, target = taeda.tensor([2.0, -200.0]), taeda.tensor([1.0, 1.0])
        >>> F.binary_cross_entropy_with_logits(scores, target, reduction="none")
        tensor([1.2693e-01, 2.0000e+02])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _require_same_shape("binary_cross_entropy_with_logits", input, target)
    if not (input.is_floating_point() and target.is_floating_point()):
        raise (RuntimeError if input.is_floating_point() else NotImplementedError)(
            f"binary_cross_entropy_with_logits: expected floating point input and target, got {input.dtype} and "
            f"{target.dtype}; use target.float()"
        )
    if pos_weight is None:
        loss = _binary_entropy_of_logits(input, target)
    else:
        _require_broadcast(pos_weight, target.shape)
        loss = (1 - target) * input + ((pos_weight - 1) * target + 1) * OPS["softplus"](-input)
    loss = _as_dtype("binary_cross_entropy_with_logits", _times_weight(loss, weight), target.dtype)
    loss = _laid_out_like(target, loss, reduction)
    return label_node(_reduced(loss, None, None, reduction), "BinaryCrossEntropyWithLogitsBackward0")


@composite(method=False, autocast="float32")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback-Leibler divergence ``y * (log(y) - x)`` of ``target`` from log-probabilities ``input``, 0 where ``y`` is
    0.

    Args:
        input: log-probabilities, any shape; floating-point.
        target: probabilities, of a shape that broadcasts; their logarithms with ``log_target``.
        reduction: ``"batchmean"`` (the definition: the sum over ``N``), ``"mean"`` (over elements), ``"sum"`` or
            ``"none"``.
        log_target: see ``target``.

    Returns:
        ``()``; with ``reduction="none"`` the sizes to which the two broadcast.

    Raises:
        RuntimeError: a dtype is not floating-point.

    Examples:
        >>> F.kl_div(taeda.tensor([[0.5, 0.5]]).log(), taeda.tensor([[0.9, 0.1]]), reduction="batchmean")
        tensor(0.3681)
    """
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "kl_div: reduction 'mean' divides by the number of elements; the divergence divides by the batch size "
            "alone, as reduction='batchmean' does",
            UserWarning,
            stacklevel=2,
        )
    if not (input.dtype.is_floating_point or input.is_complex()) or not (
        target.dtype.is_floating_point or target.is_complex()
    ):
        raise RuntimeError(f"kl_div: expected floating-point input and target, got {input.dtype} and {target.dtype}")
    loss = target.exp() * (target - input) if log_target else _divergence(input, target)
    if reduction == "batchmean" and size_average is None and reduce is None:
        return loss.sum() / input.shape[0] if input.dim() else loss.sum()
    return _reduced(loss, size_average, reduce, reduction)


@composite(method=False, autocast="float32")
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction="mean"
):
    """Negative log-likelihood of counts under a Poisson distribution: ``exp(input) - target * input``.

    Args:
        input: logarithm of the rate, any shape; the rate itself with ``log_input=False``. Floating-point.
        target: counts, of a shape that broadcasts.
        log_input: see ``input``; without it the loss is ``input - target * log(input + eps)``.
        full: add Stirling's approximation of ``log(target!)`` where the target is above 1.
        eps: keeps ``log(0)`` away.

    Returns:
        ``()``; with ``reduction="none"`` the sizes to which the two broadcast.

    Raises:
        RuntimeError: the sizes do not broadcast.
        ValueError: ``reduction`` is none of these.

    Examples:
        >>> F.poisson_nll_loss(taeda.tensor([0.0, 1.0]), taeda.tensor([2.0, 3.0]))
        tensor(0.3591)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, None, None, reduction)


@composite(method=False)
def gaussian_nll_loss(input, target, var, full: Any = False, eps: Any = 1e-06, reduction="mean"):
    """Negative log-likelihood under a normal distribution: ``(log(var) + (input - target) ** 2 / var) / 2``.

    Args:
        input: the mean, ``(N, *)``; floating-point.
        target: the same shape.
        var: the variance: a number, or a tensor of the shape of ``input``, or without its last dimension, or with size
            1 there.
        full: add the constant ``log(2 * pi) / 2``.
        eps: least variance that is used.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``input``.

    Raises:
        ValueError: ``var`` has another shape or is negative.

    Examples:
        >>> F.gaussian_nll_loss(taeda.zeros(2), taeda.tensor([0.0, 2.0]), taeda.tensor([1.0, 4.0]), reduction="none")
        tensor([0.0000, 1.1931])
    """
    if not isinstance(var, Tensor):
        if not isinstance(var, (int, float)):
            raise TypeError(f"gaussian_nll_loss(): argument 'var' must be Tensor or float, not {type(var).__name__}")
        var = input.new_full(input.shape, float(var))
    elif var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(y for x, y in zip(input.shape, var.shape, strict=True) if x != y) != 1:
            raise ValueError(
                f"gaussian_nll_loss: var is of incorrect size {tuple(var.shape)} for input {tuple(input.shape)}"
            )
    reduction = reduction_of(None, None, reduction)
    if not (var.is_floating_point() or var.is_complex()):
        raise RuntimeError(f"gaussian_nll_loss: a result of float32 can't be cast to the dtype of var, {var.dtype}")
    if var.numel() and not var.is_meta and extent(var)[0] < 0:
        raise ValueError("gaussian_nll_loss: var has negative entry/entries")
    if eps is None:
        raise RuntimeError("gaussian_nll_loss: expected eps to be a number, got None")
    held = var.clone()
    held = OPS["where"](held.detach() >= eps, held, held.detach().clamp(min=eps) + (held - held.detach()))
    loss = 0.5 * (held.log() + (input - target).square() / held)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, None, None, reduction)


@composite(method=False, autocast="float32")
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """``log(1 + exp(-target * input))`` for targets of 1 and -1.

    Args:
        input: any shape; floating-point.
        target: of a shape that broadcasts to it.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``input``. Its dtype.

    Raises:
        RuntimeError: ``target`` does not broadcast.

    Examples:
        >>> F.soft_margin_loss(taeda.tensor([2.0, 2.0]), taeda.tensor([1.0, -1.0]), reduction="none")
        tensor([0.1269, 2.1269])
    """
    _require_broadcast(target, input.shape)
    product = -input * target
    loss = (product.exp() + 1).log() if product.is_complex() else OPS["softplus"](product)
    loss = _as_dtype("soft_margin_loss", loss, input.dtype)
    return label_node(_reduced(loss, size_average, reduce, reduction), "SoftMarginLossBackward0")


# ---- margins --------------------------------------------------------------------------------------------------------
def _positive(x):
    return x.clamp(min=0)


@composite(method=False, autocast="float32")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Args:
        input: distances, any shape; floating-point.
        target: of 1 and -1, of a shape that broadcasts.
        margin: a distance below it costs something.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``input``. Its dtype.

    Raises:
        RuntimeError: the sizes do not broadcast.
        ValueError: ``reduction`` is none of these.

    Examples:
        >>> F.hinge_embedding_loss(taeda.tensor([0.25, 0.25]), taeda.tensor([1, -1]), reduction="none")
        tensor([0.2500, 0.7500])
    """
    expect_tensors("hinge_embedding_loss", input=input, target=target)
    margin = int(margin) if not input.dtype.is_floating_point else float(margin)
    loss = _positive(margin - input).masked_fill(target == 1, 0) + input.masked_fill(target == -1, 0)
    return _reduced(loss, size_average, reduce, reduction)


@composite(method=False, autocast="float32")
def margin_ranking_loss(input1, input2, target, margin: float = 0, size_average=None, reduce=None, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``: where the target is 1 the first should be ranked higher.

    Args:
        input1: any shape; floating-point.
        input2: a shape that broadcasts.
        target: of 1 and -1, of a shape that broadcasts.
        margin: by how much higher.

    Returns:
        ``()``; with ``reduction="none"`` the sizes to which they broadcast.

    Raises:
        RuntimeError: the numbers of dimensions differ.

    Examples:
        >>> x1, x2 = taeda.tensor([3.0, 1.0]), taeda.tensor([1.0, 3.0])
        >>> F.margin_ranking_loss(x1, x2, taeda.tensor([1, 1]), reduction="none")
        tensor([0., 2.])
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss: all input tensors should have the same number of dimensions, got sizes "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    return _reduced(_positive(-target * (input1 - input2) + float(margin)), size_average, reduce, reduction)


@composite(method=False, autocast="float32")
def cosine_embedding_loss(input1, input2, target, margin: float = 0, size_average=None, reduce=None, reduction="mean"):
    """``1 - c`` where the target is 1, ``max(0, c - margin)`` where it is -1, with ``c`` the cosine of the angle.

    Args:
        input1: ``(N, D)`` or ``(D,)``; floating-point.
        input2: the same shape.
        target: of 1 and -1, ``(N,)`` or ``()``.
        margin: a cosine above it costs something where the target is -1.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``target``.

    Raises:
        RuntimeError: the shapes do not fit.

    Examples:
        >>> F.cosine_embedding_loss(taeda.tensor([[1.0, 0.0]]), taeda.tensor([[1.0, 1.0]]), taeda.tensor([1]))
        tensor(0.2929)
    """
    if target.dim() > 1 or input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"cosine_embedding_loss: expected inputs [batch, features] with a target [batch], or inputs [features] "
            f"with a target [], got {tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    tiny = 1e-12
    cosine = (input1 * input2).sum(-1) / ((input1.square().sum(-1) + tiny) * (input2.square().sum(-1) + tiny)).sqrt()
    loss = (1 - cosine).masked_fill(target != 1, 0) + _positive(cosine - float(margin)).masked_fill(target != -1, 0)
    return _reduced(loss, size_average, reduce, reduction)


@composite(method=False, autocast="float32")
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p: float = 2, eps=1e-06, swap=False, size_average=None, reduce=None,
    reduction="mean",
):  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, ``d`` the ``p``-norm over the last dimension.

    Source: Balntas et al. 2016, "Learning local feature descriptors with triplets and shallow convolutional neural
    networks".

    Args:
        anchor: ``(*, D)``; floating-point.
        positive: the same shape.
        negative: the same shape.
        margin: by how much nearer the positive should be, above 0.
        p: of the norm.
        eps: added to each difference.
        swap: use the distance of positive and negative where it is below that of anchor and negative.

    Returns:
        ``()``; with ``reduction="none"`` ``(*)``.

    Raises:
        ValueError: ``margin`` is not positive.
        RuntimeError: the numbers of dimensions differ.

    Examples:
        >>> F.triplet_margin_loss(taeda.tensor([0.0]), taeda.tensor([1.0]), taeda.tensor([1.5]))
        tensor(0.5000)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")

    def distance(a, b):
        return (a - b + eps).norm(p, -1)

    return _triplet(distance, anchor, positive, negative, margin, swap, reduction_of(size_average, reduce, reduction))


def _triplet(distance, anchor, positive, negative, margin, swap, reduction):
    expect_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced(_positive(near - far + margin), None, None, reduction)


@composite(method=False)
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin: Any = 1.0, swap: Any = False, reduction="mean"
):
    """:func:`triplet_margin_loss` with a distance function of one's own.
    Arguments as of :func:`nn.functional.triplet_margin_loss`.

    Args:
        anchor: as the distance function takes it; floating-point.
        distance_function: a function of two tensors; the Euclidean distance over the last dimension if None.

    Returns:
        ``()``; with ``reduction="none"`` the shape of the distances.

    Raises:
        ValueError: ``margin`` is not positive.

    Examples:
        >>> def largest(a, b):
        ...     return (a - b).abs().amax(-1)
        >>> a, p, n = taeda.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.5]])
        >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=largest)
        tensor(0.5000)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or (lambda a, b: (a - b + 1e-06).norm(2, -1))
    return _triplet(distance, anchor, positive, negative, margin, swap, reduction_of(None, None, reduction))


@composite(method=False, autocast="float32")
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of several classes: ``sum over i != y of max(0, margin - x[y] + x[i]) ** p / C``.

    Args:
        input: scores, ``(N, C)`` or ``(C,)``; floating-point.
        target: class numbers, ``(N,)`` or ``()``, int64.
        p: 1 or 2.
        margin: by how much the right class should be ahead.
        weight: ``(C,)``, a factor for each right class, or None.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``target``.

    Raises:
        ValueError: ``p`` is neither 1 nor 2.
        RuntimeError: the shapes do not fit.

    Examples:
        >>> F.multi_margin_loss(taeda.tensor([[0.1, 0.2, 0.4, 0.8]]), taeda.tensor([3]))
        tensor(0.3250)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported, got p={p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional, got shape {tuple(weight.shape)}")
    single = input.dim() < 2 or not target.dim()
    _check_classes("multi_margin_loss", input, target, weight)
    x, t = (input.reshape(1, -1), target.reshape(1)) if single else (input, target)
    at = t.unsqueeze(1)
    terms = _positive(float(margin) - x.gather(1, at) + x)
    terms = terms if p == 1 else terms.square()
    if weight is not None:
        terms = terms * weight[t].unsqueeze(1)
    loss = terms.scatter(1, at, 0.0).sum(1) / x.shape[1]
    loss = loss.reshape(target.shape) if single else loss
    return _reduced(loss, None, None, reduction)


def _check_classes(name, input, target, weight):
    """Refuse what does not fit scores of one sample or of several."""
    classes = input.shape[-1] if input.dim() else 1
    if input.dim() > 2 or not classes:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    samples = input.shape[0] if input.dim() == 2 else 1
    if target.dim() > 1 or target.numel() != samples:
        raise RuntimeError(
            f"{name}: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{samples}], but got {list(target.shape)}"
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_dtypes(name, input, target)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"{name}: expected weight of {input.dtype}, got {weight.dtype}")


def _check_dtypes(name, input, target):
    if not input.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}; convert it with .float()')
    if target.dtype is not int64:
        raise RuntimeError(f"{name}: expected class numbers of int64, got {target.dtype}; use target.long()")


@composite(method=False)
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """:func:`binary_cross_entropy_with_logits`, averaged over classes: each sample may have several labels.

    Args:
        input: scores, ``(*, C)``; floating-point.
        target: of 0 and 1, the same shape.
        weight: ``(C,)``, a factor for each class, or None.

    Returns:
        ``()``; with ``reduction="none"`` ``(*)``.

    Raises:
        NotImplementedError: ``input`` is not floating-point.

    Examples:
        >>> F.multilabel_soft_margin_loss(taeda.tensor([[2.0, -2.0, 0.0]]), taeda.tensor([[1.0, 0.0, 1.0]]))
        tensor(0.3157)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not input.is_floating_point():
        raise NotImplementedError(f'"multilabel_soft_margin_loss" not implemented for {input.dtype}; use .float()')
    if target.is_complex() or target.dtype is bool_:
        softplus = OPS["softplus"]
        loss = target * softplus(-input) + (1 - target) * softplus(input)
    else:
        loss = _binary_entropy_of_logits(input, target)
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.dim() - 1) / input.shape[-1]  # also where the target has more dimensions
    return _reduced(loss, None, None, reduction)


@composite(method=False, autocast="float32")
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of several right classes: ``sum over labels j, others i of max(0, 1 - (x[j] - x[i])) / C``.

    Args:
        input: scores, ``(N, C)`` or ``(C,)``; floating-point.
        target: the labels of each sample, ended by the first -1; the same shape, int64.

    Returns:
        ``()``; with ``reduction="none"`` ``(N,)`` or ``()``.

    Raises:
        RuntimeError: the shapes do not fit.

    Examples:
        >>> F.multilabel_margin_loss(taeda.tensor([[0.1, 0.2, 0.4, 0.8]]), taeda.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    fits = input.shape == target.shape if input.dim() == 2 else max(input.dim(), target.dim()) < 2
    if not fits or input.numel() != target.numel() or 0 in input.shape[-1:]:
        raise RuntimeError(
            "multilabel_margin_loss: expected scores of at least one class and a target of the input's shape, at most "
            f"2-d, got {tuple(input.shape)} and {tuple(target.shape)}"
        )
    _check_dtypes("multilabel_margin_loss", input, target)
    if target.numel() and not target.is_meta and extent(target)[0] < -1:
        raise RuntimeError("multilabel_margin_loss: target is out of range: expected class numbers, ended by -1")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    t = target.reshape(x.shape)
    valid = (t < 0).to(int64).cumsum(1) == 0  # up to the first -1
    at = t.masked_fill(valid.logical_not(), 0)
    is_label = (x.detach() * 0).scatter_add(1, at, valid.to(x.dtype)) > 0
    terms = _positive(1 - x.gather(1, at).unsqueeze(2) + x.unsqueeze(1))
    terms = terms.masked_fill(valid.logical_not().unsqueeze(2), 0).masked_fill(is_label.unsqueeze(1), 0)
    loss = terms.sum((1, 2)) / max(x.shape[1], 1)
    return _reduced(loss.reshape(()) if input.dim() < 2 else loss, None, None, reduction)
