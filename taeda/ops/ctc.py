"""Connectionist temporal classification: the loss of an unaligned label sequence."""

from __future__ import annotations

from .._core import Tensor, bool_, empty, int64, launch, whole_numbers
from .._core.exchange import tensor as make_tensor
from ..kernels import ctc as kernels
from .reduction import extent
from .table import OPS, composite, no_derivative, primitive


def _lengths(name, x, batch, device):
    x = x if isinstance(x, Tensor) else make_tensor(whole_numbers(tuple(x), "ctc_loss", name), dtype=int64)
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype is bool_:
        raise RuntimeError(f"ctc_loss: {name} must be integral, got {x.dtype}")
    x = x.reshape(-1).to(device, int64, copy=True)  # the caller may write to its tensor before the backward pass
    if x.shape[0] != batch:
        raise RuntimeError(f"ctc_loss: {name} must be of size batch_size={batch}, got {x.shape[0]}")
    return x


def _extended(targets, lengths, blank, most):
    """Labels with blanks between and around them, ``[batch, 2 most + 1]``."""
    batch = lengths.shape[0]
    labels = targets.new_full((batch, 2 * most + 1), blank)
    if not most:
        return labels
    if targets.dim() == 1:  # concatenated
        starts = (lengths.cumsum(0) - lengths).unsqueeze(1)
        at = starts + OPS["arange"](most).unsqueeze(0)
        padded = targets[at.clamp(max=max(targets.shape[0] - 1, 0))] if targets.shape[0] else at * 0
    else:
        padded = targets[:, :most]
    inside = OPS["arange"](most).unsqueeze(0) < lengths.unsqueeze(1)
    labels[:, 1::2] = padded.masked_fill(inside.logical_not(), blank)
    return labels


def _skips(labels, dtype):
    """0 where a state can be entered from two before it (a label that differs from the last one), else -inf."""
    batch, states = labels.shape
    skips = OPS["full"]((batch, states + kernels.PAD), float("-inf"), dtype=dtype)
    if states > 3:
        skips[:, 3:states:2] = skips[:, 3:states:2].masked_fill(labels[:, 3::2] != labels[:, 1:-2:2], 0.0)
    return skips


def _check(log_probs, targets, steps, lengths, blank):
    time, batch, classes = log_probs.shape
    if targets.dim() not in (1, 2) or (targets.dim() == 2 and targets.shape[0] != batch):
        raise RuntimeError(
            f"ctc_loss: expected targets of shape [{batch}, labels] or of 1 dimension, got {tuple(targets.shape)}"
        )
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range [0, {classes - 1}], got {blank}")
    if steps.is_meta:
        return
    (fewest, most), (shortest, longest) = (extent(steps), extent(lengths)) if batch else ((0, 0), (0, 0))
    if most > time or fewest < 0:
        raise RuntimeError(f"ctc_loss: expected input_lengths to have values in [0, {time}], got {fewest} to {most}")
    if shortest < 0:
        raise RuntimeError(f"ctc_loss: expected target_lengths to be non-negative, got {shortest}")
    if targets.dim() == 1:
        low, high = extent(lengths.sum())
        if not low == high == targets.shape[0]:
            raise RuntimeError(
                f"ctc_loss: expected a 1-d targets of as many labels as target_lengths adds up to ({high}), got "
                f"{targets.shape[0]}"
            )
    elif longest > targets.shape[1]:
        raise RuntimeError(
            f"ctc_loss: expected targets of at least {longest} labels per sample, got shape {tuple(targets.shape)}"
        )


@primitive(method=False, out=False, outputs=("loss", "alpha", "labels", "skips"), differentiable=[0], name="_ctc_loss")
def _ctc(log_probs, targets, steps, lengths, blank):
    x, steps, lengths = log_probs.contiguous(), steps.contiguous(), lengths.contiguous()
    time, batch, classes = x.shape
    most = targets.shape[-1] if lengths.is_meta else int(lengths.max()) if batch else 0
    labels = _extended(targets, lengths, blank, most).contiguous()
    if labels.numel() and not labels.is_meta and not (int(labels.min()) >= 0 and int(labels.max()) < classes):
        raise RuntimeError(f"ctc_loss: expected targets to be class numbers in [0, {classes - 1}]")
    skips = _skips(labels, x.dtype)
    states = labels.shape[1]
    loss = empty((batch,), x.dtype)
    alpha = empty((batch, time, states + 2 * kernels.PAD), x.dtype)
    address = kernels.ctc_forward(x.dtype.name)
    launch(address, (loss, alpha, x, labels, skips, steps, lengths), (time, batch, classes, states), batch, 1)
    return loss, alpha, labels, skips


@primitive(method=False, out=False, planned=True)
def _ctc_loss_backward(grad, log_probs, loss, alpha, labels, skips, steps, lengths):
    """The gradient of the log-probabilities, from what :func:`_ctc` gave."""
    x = log_probs.contiguous()
    time, batch, classes = x.shape
    result, beta = OPS["zeros_like"](x), empty(tuple(alpha.shape), x.dtype)
    given = [t.contiguous() for t in (labels, skips, steps, lengths, alpha, loss, grad)]
    args = (time, batch, classes, labels.shape[1])
    launch(kernels.ctc_backward(x.dtype.name), (result, beta, x, *given), args, batch, 1)
    return result


_ctc.vjp(
    log_probs=lambda g, loss, alpha, labels, skips, log_probs, steps, lengths: _ctc_loss_backward(
        g, log_probs, loss.detach(), alpha.detach(), labels, skips.detach(), steps, lengths
    )
)
_ctc_loss_backward.vjp(
    grad=lambda g, grad, log_probs, loss, alpha, labels, skips, steps, lengths: (
        g * _ctc_loss_backward(OPS["ones_like"](grad), log_probs, loss, alpha, labels, skips, steps, lengths)
    ).sum((0, 2)),
    log_probs=no_derivative("_ctc_loss_backward", "log_probs"),
)


@composite(method=False, autocast="float32", meta="mixed")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """``-log`` of the probability of a label sequence, summed over all its alignments with the input.

    An alignment is a path of one class per step that gives the labels when repetitions are merged, then blanks removed.
    The gradient takes ``log_probs`` to be the result of :func:`log_softmax`; it cannot be differentiated again. Source:
    Graves et al. 2006, "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent
    Neural Networks".

    Args:
        log_probs: ``(T, N, C)`` or ``(T, C)``, log-probabilities, float32 or float64.
        targets: ``(N, S)``, or all labels one after another; integers, none of them ``blank``.
        input_lengths: number of steps of each sample, ``(N,)``, integers.
        target_lengths: number of labels of each sample, ``(N,)``, integers.
        blank: the class that stands for no label.
        reduction: ``"mean"`` (each loss over its target's length, then over the batch), ``"sum"`` or ``"none"``.
        zero_infinity: losses of targets that do not fit count as 0, and have no gradient.

    Returns:
        ``()``; with ``reduction="none"`` ``(N,)``. The dtype of ``log_probs``.

    Raises:
        ValueError: ``reduction`` is unknown.
        RuntimeError: shapes, lengths or dtypes do not fit.

    Examples:
        >>> log_p = taeda.full((2, 1, 3), 1 / 3).log()  # two steps, three classes
        >>> F.ctc_loss(log_p, taeda.tensor([[1]]), taeda.tensor([2]), taeda.tensor([1]))  # 11, 01, 10: -log(3 / 9)
        tensor(1.0986)
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction (expected 'none', 'mean' or 'sum')")
    if isinstance(input_lengths, Tensor) is not isinstance(target_lengths, Tensor):
        raise TypeError("ctc_loss(): input_lengths and target_lengths must both be Tensors, or both tuples of ints")
    if not log_probs.dim():
        raise IndexError("ctc_loss: expected log_probs of 2 or 3 dimensions, got shape ()")
    if log_probs.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f'"ctc_loss" not implemented for {log_probs.dtype}: expected float32 or float64')
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    if log_probs.dim() != 3:
        raise RuntimeError(f"ctc_loss: expected log_probs of 2 or 3 dimensions, got shape {tuple(log_probs.shape)}")
    batch = log_probs.shape[1]
    device = log_probs.device
    steps = _lengths("input_lengths", input_lengths, batch, device)
    lengths = _lengths("target_lengths", target_lengths, batch, device)
    targets = targets.to(device, int64)
    _check(log_probs, targets, steps, lengths, blank)
    loss = _ctc(log_probs, targets, steps, lengths, blank)[0]
    if zero_infinity:
        loss = loss.masked_fill(loss == float("inf"), 0.0)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss.squeeze(0) if single else loss
