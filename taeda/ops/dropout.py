"""Dropout of elements and of channels, and the form that keeps mean and variance of selu's output."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._core import sampling as core
from .._core.devices import set_place
from .random import _fills, _fresh
from .table import composite, pointwise, primitive

#: Dtypes that a kernel multiplies while it draws; others draw factors first.
_FUSED = ("float32", "float64", "bfloat16", "float16")


def _noise(input: Tensor, p: float, feature: bool, value: float) -> Tensor:
    """``value`` with probability ``1 - p``, else 0, for each element or (``feature``) for each channel."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"dropout: result type {_core.get_default_dtype()} can't be cast to the desired output type {input.dtype}; "
            f"convert the input with .float()"
        )
    if feature:
        if input.dim() < 2:
            raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {input.dim()}")
        noise = _core.empty((*input.shape[:2], *[1] * (input.dim() - 2)), input.dtype)
    elif input._value_per_example:  # by the examples' rows, whatever their order in memory
        noise = _core.empty(input.shape, input.dtype)
    else:
        noise = _core.empty_like(input)
    return _fresh(_draw_, noise, 1.0 - p, value, None)


@_fills
def _draw_(input, chance, value, *, generator=None):
    """Fill with ``value`` with probability ``chance``, else with 0."""
    core.fill(input, "bernoulli", chance, value, generator)


@pointwise(method=False, inplace=False, operands=2, dtypes=("float",))
def dropout_backward(grad, mask, scale):
    """``grad * scale`` where the bool ``mask`` is true, ``grad * 0`` elsewhere."""
    return grad * (mask * scale)


dropout_backward.vjp(grad=lambda g, mask, scale: dropout_backward(g, mask, scale))


@primitive(
    method=False, out=False, outputs=("out", "mask"), differentiable=[0], name="_dropout", node="Mul", random="noise",
)  # fmt: skip
def _masked_dropout(input, p, scale):
    """``input * scale`` with the chance ``1 - p``, else ``input * 0``; and a bool mask, a byte where PyTorch keeps a
    factor."""
    source = input if _core.is_dense_tensor(input) else input.clone()
    out, mask = _core.empty_like(source), _core.empty_like(source, _core.bool_)
    core.dropout(out, mask, source, 1.0 - p, scale)
    return out, mask


_masked_dropout.vjp(input=lambda g, mask, scale: dropout_backward(g, mask, scale))


@functools.lru_cache(maxsize=64)
def _as_stored(x: float, dtype) -> float:
    """``x`` rounded to ``dtype``."""
    before = set_place(0)
    try:
        return _core.empty((), dtype).fill_(x).item()
    finally:
        set_place(before)


def _drop(input: Tensor, p: float, inplace: bool, feature: bool) -> Tensor:
    if not (inplace or feature) and input.dtype.name in _FUSED and not _core.mode_stack():
        return _masked_dropout(input, p, _as_stored(1.0 / (1.0 - p), input.dtype))[0]
    if input.dtype.is_complex:
        noise = _fresh(_draw_, _core.empty_like(input, _core.float32), 1.0 - p, 1.0 / (1.0 - p), None)
    else:
        noise = _noise(input, p, feature, 1.0 / (1.0 - p))
    return input.mul_(noise) if inplace else input * noise


_ALPHA = 1.7580993408473766  # -selu(-inf)


def _drop_alpha(input: Tensor, p: float, inplace: bool, feature: bool) -> Tensor:
    """What is dropped becomes selu's lower limit, and the result is shifted and scaled to keep mean and variance
    (Klambauer et al. 2017)."""
    scale = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    noise = _noise(input, p, feature, 1.0)
    shift = (noise - 1) * (_ALPHA * scale) + _ALPHA * scale * p
    noise = noise * scale
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


def _form(name: str, drop: Callable, functional: Any, feature: bool, doc: str) -> Callable:
    inplace = functional is not None

    def dropout(input, p: float, train):
        if not 0 <= p <= 1:
            raise RuntimeError(f"{name}: dropout probability has to be between 0 and 1, but got {p}")
        if p == 0 or not train or input.numel() == 0:
            return input
        if p == 1:
            return input.mul_(0) if inplace else input * 0
        return drop(input, p, inplace, feature)

    dropout.__name__ = dropout.__qualname__ = name
    dropout.__doc__ = doc
    return composite(method=False, functional=functional, random="noise")(dropout)


def _family(name: str, drop: Callable, feature: bool, doc: str) -> None:
    """``name(input, p, train)`` and ``name_``."""
    plain = globals()[name] = _form(name, drop, None, feature, doc)
    globals()[name + "_"] = _form(name + "_", drop, plain, feature, f"In-place form of :func:`{name}`.")


_ARGUMENTS = """

    See :func:`taeda.nn.functional.{name}` for a form with defaults.

    Args:
        input: floating point{sizes}.
        p: the probability that {what} is dropped, in [0, 1].
        train: whether to drop anything; otherwise the result is ``input``.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``p`` is not in [0, 1].
    Examples:
        >>> x = taeda.ones(2, 1000)
        >>> generator = taeda.manual_seed(0)
        >>> taeda.{own}(x, 0.5, True).unique().numel()  # what was dropped, and what was kept
        2
    """
for _name, _plain, _drops, _feature, _text in (
    ("dropout", "dropout", _drop, False, "Zero each element with probability ``p``, divide the others by ``1 - p``."),
    (
        "feature_dropout", "dropout1d", _drop, True,
        "Zero whole channels with probability ``p``, divide the others by ``1 - p``.",
    ),
    (
        "alpha_dropout", "alpha_dropout", _drop_alpha, False,
        "Dropout that keeps the mean and the variance of selu's output (Klambauer et al. 2017): with probability\n"
        "    ``p`` an element becomes selu's lower limit, and the result is scaled and shifted.",
    ),
    (
        "feature_alpha_dropout", "feature_alpha_dropout", _drop_alpha, True,
        "As :func:`alpha_dropout`, for whole channels at a time.",
    ),
):  # fmt: skip
    _family(_name, _drops, _feature, _text + _ARGUMENTS.format(
        name=_plain, own=_name, what="a channel" if _feature else "an element",
        sizes=", ``(n, channels, ...)``" if _feature else ", any sizes",
    ))  # fmt: skip
