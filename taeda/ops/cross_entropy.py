"""Cross entropy and negative log-likelihood of class numbers: one fused kernel forward and one backward."""

from __future__ import annotations

from .._core import Tensor, int64, uint8
from .._core.callbacks import callbacks
from .._core.reduce import Reducer
from .._core.rowwise import ClassLoss, Rowwise
from .loss import reduction_of
from .reduction import _TOTAL
from .softmax import log_softmax, softmax
from .table import composite, expect_tensors, primitive

_total = Reducer("sum", "sum", (_TOTAL,))


def _class_loss(name, outs):
    return ClassLoss(Rowwise(name, f"cross_entropy.{name}", outs, "frwn"), _total).run


def _class_loss_grads(name, ins, stream=0):
    """The gradient's kernel for a loss per row, and for a reduced loss."""
    kernel = f"cross_entropy.{name}_backward"
    return [Rowwise(name, kernel, "fx", "f" + g + ins, key=(g == "r",), stream=stream).along for g in ("r", "s")]


_cross_entropy_grads = _class_loss_grads("cross_entropy", "rsrrr", stream=2)
_nll_loss_grads = _class_loss_grads("nll_loss", "rsr")


def _explain(name, input, target, weight):
    """Raise the error for wrong arguments of a loss over classes."""
    if not isinstance(input, Tensor) or not isinstance(target, Tensor):
        raise TypeError(f"{name}(): expected Tensors, got {type(input).__name__} and {type(target).__name__}")
    if not (input.is_floating_point() or input.is_complex()):
        mend = f"the order is {name}(input, target)" if target.is_floating_point() else "convert it with float()"
        raise NotImplementedError(
            f"{name}: expected a floating point input, scores of each class, but got {input.dtype}; {mend}"
        )
    if not input.dim():
        refused = ValueError if name == "nll_loss" else IndexError
        raise refused(f"{name}: expected an input of 1 or more dimensions, got 0")
    dim = 1 if input.dim() > 1 else 0
    expected = tuple(input.shape[:dim]) + tuple(input.shape[dim + 1 :])
    if tuple(target.shape) != expected:
        batch = target.shape[0] if target.dim() else 0
        if dim and input.shape[0] != batch:
            raise ValueError(
                f"{name}: expected input batch_size ({input.shape[0]}) to match target batch_size ({batch}): "
                f"input {tuple(input.shape)}, target {tuple(target.shape)}"
            )
        if name == "cross_entropy" and target.shape == input.shape and not target.is_floating_point():
            raise _no_probabilities(input, target)
        hint = "; drop its last dimension, target.squeeze(-1)" if tuple(target.shape) == (*expected, 1) else ""
        raise RuntimeError(
            f"{name}: expected target size {list(expected)} for an input of size {list(input.shape)}, got "
            f"{list(target.shape)}{hint}"
        )
    if target.dtype is not int64:
        raise RuntimeError(
            f"{name}: expected target dtype to be int64 or uint8 (class numbers), but got {target.dtype}; convert "
            "it with long()"
        )
    raise _wrong_weight(name, input.shape[dim], weight)


def _no_probabilities(input, target):
    return RuntimeError(
        "cross_entropy: expected a floating point target for class probabilities of the input's sizes "
        f"{list(input.shape)}, but got {target.dtype}; convert one-hot rows with float(), or give class numbers, "
        f"target.argmax({_class_dim(input)})"
    )


def _wrong_weight(name, classes, weight):
    return RuntimeError(
        f"{name}: weight should be defined either for all {classes} classes or no classes but got weight of shape "
        f"{list(weight.shape)}"
    )


callbacks.class_loss_error = _explain


def _class_dim(input):
    return 1 if input.dim() > 1 else 0


def _divisor(count, reduction):
    return count if reduction == "mean" else None


@primitive(
    _class_loss("cross_entropy", "rararara"), method=False, out=False,
    outputs=("loss", "weights", "top", "logs", "count"), differentiable=[0], name="_cross_entropy", node="NllLoss",
    copied=("input",),
)  # fmt: skip
def _fused_cross_entropy(input, target, weight, ignore_index, reduction):
    """The loss, each row's weight, each row's largest score, the log-sum-exp relative to it, and the divisor of the
    mean.
    """


def _cross_entropy_gradient(grad, input, target, weights, count, ignore_index):
    dim, acc = _class_dim(input), input.to(weights.dtype)
    g, place = _of_rows(grad, target, weights, count, ignore_index)
    one_hot = acc.new_zeros(acc.shape).scatter(dim, place.unsqueeze(dim), 1.0)
    return ((softmax(acc, dim) - one_hot) * g.unsqueeze(dim)).to(input.dtype)


def _of_rows(grad, target, weights, count, ignore_index):
    """The gradient of each row's loss, and its class. Where that is ignored: zero, and any."""
    g, ignored = grad.to(weights.dtype), target == ignore_index
    return ((g if count is None else g / count) * weights).masked_fill(ignored, 0), target.masked_fill(ignored, 0)


@primitive(method=False, out=False, decomposition=_cross_entropy_gradient)
def _cross_entropy_backward(grad, input, target, weights, count, top, logs, ignore_index, reduced):
    """The gradient of the scores, from what :func:`_fused_cross_entropy` gave; ``count`` is None but for a mean."""
    operands = (grad, weights, count, top, logs, target)
    return _cross_entropy_grads[reduced](input, _class_dim(input), operands, None, ignore_index)


_fused_cross_entropy.vjp(
    input=lambda g, weights, top, logs, count, input, target, ignore_index, reduction: _cross_entropy_backward(
        g, input, target, weights, _divisor(count, reduction), top, logs, ignore_index, reduction != "none"
    )
)


def _cross_entropy_in_parts(input, target, weight, ignore_index, reduction):
    dim = _class_dim(input)
    loss, weights, count = _nll_loss_in_parts(log_softmax(input, dim), target, weight, ignore_index, reduction)
    top = input.amax(dim)
    return loss, weights, top, input.logsumexp(dim) - top, count


def _nll_loss_in_parts(input, target, weight, ignore_index, reduction):
    dim, ignored = _class_dim(input), target == ignore_index
    place = target.masked_fill(ignored, 0)
    loss = -input.gather(dim, place.unsqueeze(dim)).squeeze(dim)
    if weight is not None:
        weights = weight.index_select(0, place.reshape(-1)).reshape(place.shape).masked_fill(ignored, 0)
        loss = loss * weights
    else:
        weights = ignored.logical_not().to(input.dtype)
    loss, count = loss.masked_fill(ignored, 0), weights.sum()
    if reduction != "none":
        loss = loss.sum() / count if reduction == "mean" else loss.sum()
    return loss, weights, count


_fused_cross_entropy.traits["lowering"] = _cross_entropy_in_parts


@primitive(
    _class_loss("nll_loss", "rara"), method=False, out=False, outputs=("loss", "weights", "count"), differentiable=[0],
    name="_nll_loss",
)  # fmt: skip
def _fused_nll_loss(input, target, weight, ignore_index, reduction):
    """The loss, each row's weight, and the divisor of the mean."""


def _nll_loss_gradient(grad, input, target, weights, count, ignore_index):
    dim = _class_dim(input)
    g, place = _of_rows(grad, target, weights, count, ignore_index)
    return input.new_zeros(input.shape).scatter(dim, place.unsqueeze(dim), -g.unsqueeze(dim).to(input.dtype))


@primitive(method=False, out=False, decomposition=_nll_loss_gradient)
def _nll_loss_backward(grad, input, target, weights, count, ignore_index, reduced):
    """The gradient of the log-probabilities, as :func:`_cross_entropy_backward`."""
    return _nll_loss_grads[reduced](input, _class_dim(input), (grad, weights, count, target), None, ignore_index)


_fused_nll_loss.vjp(
    input=lambda g, weights, count, input, target, ignore_index, reduction: _nll_loss_backward(
        g, input, target, weights, _divisor(count, reduction), ignore_index, reduction != "none"
    )
)


_fused_nll_loss.traits["lowering"] = _nll_loss_in_parts


def _class_numbers(input, target):
    """The class numbers as int64; of one sample, which has no dimension of a batch, its number may be in a vector."""
    if input.dim() == target.dim() == 1:
        if target.shape[0] != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
        target = target.reshape(())
    return target.to(int64) if target.dtype is uint8 and input.dim() < 3 else target


def _require_dtype(name, input, weight):
    if isinstance(input, Tensor) and not input.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}: expected floating point scores')
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"{name}: expected weight of the dtype of input, {input.dtype}, but found {weight.dtype}")


@composite(method=False, autocast="float32")
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """``-weight[target] * input[target]`` of log-probabilities, as :func:`log_softmax` gives them.

    Args:
        input: log-probabilities, ``(N, C)``, ``(C,)`` or ``(N, C, d1, ...)``; floating-point.
        target: class numbers, ``(N,)``, ``()`` or ``(N, d1, ...)``, int64.
        weight: ``(C,)``, a weight for each class, or None.
        ignore_index: a class number that does not count.
        reduction: ``"mean"`` (over the weights that count), ``"sum"`` or ``"none"``.

    Returns:
        ``()``; with ``reduction="none"`` the shape of ``target``. The dtype of ``input``.

    Raises:
        IndexError: a class number is out of range.
        RuntimeError: shapes or dtypes do not fit.

    Examples:
        >>> log_p = taeda.tensor([[0.9, 0.1], [0.5, 0.5]]).log()
        >>> F.nll_loss(log_p, taeda.tensor([0, 1]), reduction="none")
        tensor([0.1054, 0.6931])
    """
    expect_tensors("nll_loss", input=input, target=target)
    reduction = reduction_of(size_average, reduce, reduction)
    _require_dtype("nll_loss", input, weight)
    return _fused_nll_loss(input, _class_numbers(input, target), weight, ignore_index, reduction)[0]


@composite(method=False, autocast="float32")
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """``-log(softmax(input)[target])``: how surprised the scores of the classes are by the right class.

    The input is any numbers, one for each class: no softmax before it.
    The rest as of :func:`nn.functional.nll_loss`.

    Args:
        input: scores, ``(N, C)``, ``(C,)`` or ``(N, C, d1, ...)``; floating-point.
        target: class numbers, ``(N,)``, ``()`` or ``(N, d1, ...)``, int64; or probabilities of the shape of ``input``.
        ignore_index: a class number that does not count, as for padding.
        label_smoothing: share of the target that is spread over all classes, in ``[0, 1]`` (Szegedy et al. 2015).

    Returns:
        ``()``; with ``reduction="none"`` the shape of the class numbers. The dtype of ``input``.

    Raises:
        IndexError: a class of ``target`` is out of bounds.
        ValueError: the numbers of examples differ, or there is no such reduction.
        RuntimeError: ``weight`` has not one number per class, or ``label_smoothing`` is not between 0 and 1.

    Examples:
        >>> scores = taeda.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> F.cross_entropy(scores, taeda.tensor([0, 2]), reduction="none")  # 1.0986 = log(3): no idea
        tensor([0.0949, 1.0986])
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if weight is not None and isinstance(target, Tensor) and target.dtype is int64:
        _require_dtype("cross_entropy", input, weight)
    if not label_smoothing and input.dim() > 1 and target.dtype is int64:
        return _fused_cross_entropy(input, target, weight, ignore_index, reduction)[0]
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape == input.shape:
        if not target.is_floating_point():
            raise _no_probabilities(input, target)
        if ignore_index >= 0:
            raise RuntimeError(
                "cross_entropy: ignore_index is not supported for floating point target, got "
                f"ignore_index={ignore_index} and target of {target.dtype}"
            )
        classes = input.shape[_class_dim(input)]
        if weight is not None and tuple(weight.shape) != (classes,):
            raise _wrong_weight("cross_entropy", classes, weight)
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    target = _class_numbers(input, target)
    if not label_smoothing:
        return _fused_cross_entropy(input, target, weight, ignore_index, reduction)[0]
    return _smooth_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing, _class_dim(input))


def _along(weight, input, dim):
    return weight.reshape([-1 if d == dim else 1 for d in range(input.dim())])


def _soft_cross_entropy(input, target, weight, reduction, smoothing):
    dim = 1 if input.dim() > 1 else 0
    classes = input.shape[dim]
    if smoothing and classes:
        target = target * (1 - smoothing) + smoothing / classes
    terms = log_softmax(input, dim) * target
    if weight is not None:
        terms = terms * _along(weight, input, dim)
    if reduction == "none":
        return -terms.sum(dim)
    if reduction == "sum":
        return -terms.sum()
    return -(terms.sum() / (input.numel() / classes if classes else 0.0))


def _smooth_cross_entropy(input, target, weight, ignore_index, reduction, smoothing, dim):
    classes = input.shape[dim]
    log_p = log_softmax(input, dim)
    loss = _fused_nll_loss(log_p, target, weight, ignore_index, reduction)[0]
    spread = -(log_p if weight is None else log_p * _along(weight, input, dim)).sum(dim)
    ignored = target == ignore_index
    spread = spread.masked_fill(ignored, 0.0)
    if reduction == "sum":
        spread = spread.sum()
    elif reduction == "mean":
        if weight is None:
            spread = spread.sum() / ignored.logical_not().sum()
        else:
            counted = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0)
            spread = spread.sum() / counted.sum()
    return loss * (1 - smoothing) + spread * (smoothing / classes)
