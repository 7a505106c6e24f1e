"""Softmax and its logarithm along a dimension."""

from __future__ import annotations

from .._core.callbacks import callbacks
from .._core.rowwise import Rowwise
from .table import composite, primitive

_softmax = Rowwise("softmax", "softmax.softmax", "fx", "f", stream=2, computes=True, chunks=True).unary
_log_softmax = Rowwise("log_softmax", "softmax.log_softmax", "fx", "f", stream=2, computes=True, chunks=True).unary
_softmax_grad = Rowwise(
    "softmax_backward", "softmax.softmax_backward", "fx", "ff", stream=1, computes=True, chunks=True
).along
_log_softmax_grad = Rowwise(
    "log_softmax_backward", "softmax.log_softmax_backward", "fx", "ff", stream=1, computes=True, chunks=True
).along


def _by_chunks(name, *args):
    from . import _long_rows  # few programs need it

    return getattr(_long_rows, name)(*args)


callbacks.long_rows = _by_chunks


@primitive(_softmax, batch="along", out="same", canonical=True)
def softmax(input, dim, dtype=None):
    """``exp(input) / sum(exp(input))`` along ``dim``, without overflow: scores become probabilities that sum to 1.

    Args:
        input: floating point, any sizes.
        dim: the dimension that sums to 1.
        dtype: what ``input`` is converted to first. Default: its own.
    Returns:
        The sizes of ``input``.
    Raises:
        IndexError: there is no such dimension.
        RuntimeError: ``input`` is of integers and no ``dtype`` is given.
    Examples:
        >>> taeda.softmax(taeda.tensor([[1.0, 2.0, 3.0], [1000.0, 1000.0, 1000.0]]), 1)
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
    """


def _backward_call(name):
    return lambda grad, y, dim: (f"{name}.default", (grad, y, dim, y.dtype))


@primitive(method=False, out=False, batch="together", native_call=_backward_call("_softmax_backward_data"))
def _softmax_backward(grad, y, dim):
    """``y * (g - sum(g * y))``: the gradient of softmax from its output."""
    return _softmax_grad(grad, dim, (y,))


def _as_input(g, dtype, original):
    return g if dtype is None else g.to(original)


softmax.vjp(input=lambda g, out, dim, dtype, input_dtype: _as_input(_softmax_backward(g, out, dim), dtype, input_dtype))
_softmax_backward.vjp(
    grad=lambda g, y, dim: _softmax_backward(g, y, dim),
    y=lambda g, grad, y, dim: g * (grad - (grad * y).sum(dim, True)) - grad * (g * y).sum(dim, True),
)


@primitive(_log_softmax, batch="along", out="same", canonical=True)
def log_softmax(input, dim, dtype=None):
    """``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its loss of precision.
    The rest as of :func:`softmax`.

    Args:
        dim: the dimension along which probabilities sum to 1.
    Examples:
        >>> taeda.log_softmax(taeda.tensor([0.0, 0.0, -200.0]), 0)
        tensor([  -0.6931,   -0.6931, -200.6931])
    """


@primitive(method=False, out=False, batch="together", native_call=_backward_call("_log_softmax_backward_data"))
def _log_softmax_backward(grad, y, dim):
    """``g - exp(y) * sum(g)``: the gradient of log_softmax from its output."""
    return _log_softmax_grad(grad, dim, (y,))


log_softmax.vjp(
    input=lambda g, out, dim, dtype, input_dtype: _as_input(_log_softmax_backward(g, out, dim), dtype, input_dtype)
)
_log_softmax_backward.vjp(
    grad=lambda g, y, dim: g - (g * y.exp()).sum(dim, True),
    y=lambda g, grad, y, dim: -g * y.exp() * grad.sum(dim, True),
)


@composite(method=False)
def softmin(input, dim, dtype=None):
    """``softmax(-input)`` along ``dim``."""
    return softmax(-input, dim, dtype)
