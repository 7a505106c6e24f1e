"""Windows of signals: the functions of ``torch.signal.windows``, and the older ones, which are periodic by default.

Formulas: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978); Nuttall,
"Some windows with very good sidelobe behavior" (1981). Values are computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from functools import partial

from .. import _core
from .bessel import i0e
from .creation import arange, ones
from .table import composite


def _made(values, M, sym, dtype, requires_grad):
    """``values(k, n)`` at ``M`` points ``k``, where ``n`` is the distance from the first to the last or, if periodic,
    the period."""
    if M < 2:
        return ones(M, dtype=dtype).requires_grad_(requires_grad)
    return values(arange(M, dtype=_core.float64), M - 1 if sym else M).to(dtype).requires_grad_(requires_grad)


# ---- formulas --------------------------------------------------------------------------------------------------------


def _cosines(*coefficients):
    """Alternating sum of cosines of multiples of the base frequency."""

    def values(k, n):
        return sum((-1) ** i * a * (2 * math.pi * i * k / n).cos() for i, a in enumerate(coefficients))

    return values


def _triangle(k, n):
    return 1 - (2 * k / n - 1).abs()


def _sine(k, n):
    return (math.pi * (k + 0.5) / (n + 1)).sin()


def _gauss(std):
    return lambda k, n: (-(((k - n / 2) / (std * math.sqrt(2))) ** 2)).exp()


def _decay(centre, tau):
    return lambda k, n: (-(k - (n / 2 if centre is None else centre)).abs() / tau).exp()


def _kaiser(beta):
    beta = abs(float(beta))  # I0 is even

    def values(k, n):
        x = beta * (1 - (2 * k / n - 1) ** 2).clamp(min=0).sqrt()
        return i0e(x) / i0e(k.new_full((), beta)) * (x - beta).exp()  # i0e(x) is exp(-x) * I0(x), which stays finite

    return values


# ---- torch.signal.windows --------------------------------------------------------------------------------------------


def _window(name, M, values, sym, dtype, layout, device, requires_grad):
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, _core.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or _core.get_default_dtype()
    if dtype not in (_core.float32, _core.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    _core.require_device(device)
    if not isinstance(M, int):
        raise TypeError(f"{name}(): argument 'M' must be int, not {type(M).__name__}")
    return _made(values, M, sym, dtype, requires_grad)


_SHARED = """
        sym: symmetric, with ``n = M - 1``; otherwise periodic, with ``n = M``.
        dtype: ``float32`` or ``float64``. Default: that of :func:`get_default_dtype`.
        layout: ``taeda.strided``.
        device: the CPU.
        requires_grad: whether operations on the result are recorded for a backward pass.
    Returns:
        A vector of ``M`` elements.
    Raises:
        ValueError: ``M`` is negative, {}or the dtype or the layout is another.
    Examples:
"""


def _documented(function, refused=""):
    """``function``, with the arguments, the result and the errors that all windows share added to its docstring."""
    function.__doc__ = (function.__doc__ or "").replace("\n    Examples:\n", _SHARED.format(refused))
    return function


@_documented
def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Bartlett's window, a triangle: ``w[k] = 1 - |2 k / n - 1|`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", M, _triangle, sym, dtype, layout, device, requires_grad)


@_documented
def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Blackman's window: ``w[k] = 0.42 - 0.5 * cos(2 pi k / n) + 0.08 * cos(4 pi k / n)`` for ``k`` from 0 to ``M -
    1``.

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.blackman(5).round(decimals=4).abs()
        tensor([0.0000, 0.3400, 1.0000, 0.3400, 0.0000])
    """
    return _window("blackman", M, _cosines(0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


@_documented
def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Half a period of a sine: ``w[k] = sin(pi * (k + 1/2) / (n + 1))`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    return _window("cosine", M, _sine, sym, dtype, layout, device, requires_grad)


@partial(_documented, refused="``tau`` is not positive, a symmetric window has a ``center``, ")
def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A window that falls off on both sides: ``w[k] = exp(-|k - center| / tau)`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
        center: where it is 1, of periodic windows only. Default: the middle, ``n / 2``.
        tau: the distance in which it falls to ``1 / e``, positive.
    Examples:
        >>> taeda.signal.windows.exponential(5)
        tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, _decay(center, tau), sym, dtype, layout, device, requires_grad)


@partial(_documented, refused="``std`` is not positive, ")
def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """The density of a normal distribution, 1 in the middle: ``w[k] = exp(-((k - n / 2) / std) ** 2 / 2)`` for ``k``
    from 0 to ``M - 1``.

    Args:
        M: how many points.
        std: the deviation, in points, positive.
    Examples:
        >>> taeda.signal.windows.gaussian(5)
        tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, _gauss(std), sym, dtype, layout, device, requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """An alternating sum of cosines: ``w[k]`` is the sum of ``(-1) ** i * a[i] * cos(2 pi i k / n)`` over ``i``, for
    ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
        a: the coefficients, a list or tuple.
        sym: symmetric, with ``n = M - 1``; otherwise periodic, with ``n = M``.
        dtype: ``float32`` or ``float64``. Default: that of :func:`get_default_dtype`.
        layout: ``taeda.strided``.
        device: the CPU.
        requires_grad: whether operations on the result are recorded for a backward pass.
    Returns:
        A vector of ``M`` elements.
    Raises:
        ValueError: ``M`` is negative, there are no coefficients, or the dtype or the layout is another.
        TypeError: ``a`` is no list or tuple.
    Examples:
        >>> taeda.signal.windows.general_cosine(5, a=[0.5, 0.5])  # Hann's
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if M < 0:
        raise ValueError(f"general_cosine requires non-negative window length, got M={M}")
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"Coefficients must be a list/tuple, got {type(a).__name__}")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", M, _cosines(*a), sym, dtype, layout, device, requires_grad)


@_documented
def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A raised cosine: ``w[k] = alpha - (1 - alpha) * cos(2 pi k / n)`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
        alpha: the constant; 0.5 gives Hann's window.
    Examples:
        >>> taeda.signal.windows.general_hamming(5, alpha=0.75)
        tensor([0.5000, 0.7500, 1.0000, 0.7500, 0.5000])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


@_documented
def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Hamming's window: ``w[k] = 0.54 - 0.46 * cos(2 pi k / n)`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@_documented
def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Hann's window: ``w[k] = 0.5 - 0.5 * cos(2 pi k / n)`` for ``k`` from 0 to ``M - 1``.

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


@partial(_documented, refused="``beta`` is negative, ")
def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Kaiser's window: ``w[k] = I0(beta * sqrt(1 - (2 k / n - 1) ** 2)) / I0(beta)`` for ``k`` from 0 to ``M - 1``,
    with the Bessel function :func:`taeda.i0`.

    Args:
        M: how many points.
        beta: the shape, not negative: the larger, the lower the side lobes and the wider the main lobe.
    Examples:
        >>> taeda.signal.windows.kaiser(5, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, _kaiser(beta), sym, dtype, layout, device, requires_grad)


@_documented
def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Nuttall's window of four terms, with side lobes below -98 dB: :func:`taeda.signal.windows.general_cosine` with
    ``a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]`` (Nuttall 1981).

    Args:
        M: how many points.
    Examples:
        >>> taeda.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


# ---- the older functions ---------------------------------------------------------------------------------------------


def _older(name, values, window_length, periodic, dtype, device, requires_grad):
    window_length = int(window_length)
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    dtype = dtype or _core.get_default_dtype()
    if dtype.is_complex:
        raise NotImplementedError(f"{name}: not implemented for {dtype}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    _core.require_device(device)
    return _made(values, window_length, not periodic, dtype, requires_grad)


@composite(method=False, meta="numbers")
def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):  # fmt: skip
    """Hann's window: ``w[k] = 0.5 - 0.5 * cos(2 pi k / N)`` for ``k`` from 0 to ``window_length - 1``.

    A window fades a piece of a signal in and out before its Fourier transform, so that the cut is not seen as high
    frequencies.

    Args:
        window_length: how many points.
        periodic: ``N`` is ``window_length``: what :func:`stft` needs. Otherwise ``N`` is ``window_length - 1``, and the
            window is symmetric.
        dtype: a floating-point dtype. Default: that of :func:`get_default_dtype`.
    Returns:
        A vector of ``window_length`` elements; of one or none, ones.
    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not a floating-point one.
    Examples:
        >>> taeda.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
        >>> taeda.hann_window(5, periodic=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _older("hann_window", _cosines(0.5, 0.5), window_length, periodic, dtype, device, requires_grad)


@composite(method=False, meta="numbers")
def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):  # fmt: skip
    """Blackman's window: ``w[k] = 0.42 - 0.5 * cos(2 pi k / N) + 0.08 * cos(4 pi k / N)`` for ``k`` from 0 to
    ``window_length - 1``.

    Its side lobes are lower than those of :func:`hann_window`, its main lobe is wider.
    The rest as of :func:`hann_window`.

    Args:
        periodic: ``N`` is ``window_length``. Otherwise ``N`` is ``window_length - 1``, and the window is symmetric.

    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not a floating-point one.

    Examples:
        >>> taeda.blackman_window(4).round(decimals=4).abs()
        tensor([0.0000, 0.3400, 1.0000, 0.3400])
    """
    return _older("blackman_window", _cosines(0.42, 0.5, 0.08), window_length, periodic, dtype, device, requires_grad)


@composite(method=False, meta="numbers")
def hamming_window(
    window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False,
):  # fmt: skip
    """Hamming's window: ``w[k] = alpha - beta * cos(2 pi k / N)`` for ``k`` from 0 to ``window_length - 1``.
    The rest as of :func:`hann_window`.

    Args:
        periodic: ``N`` is ``window_length``. Otherwise ``N`` is ``window_length - 1``, and the window is symmetric.
        alpha: the constant.
        beta: the height of the cosine.

    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not a floating-point one.

    Examples:
        >>> taeda.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _older("hamming_window", _cosines(alpha, beta), window_length, periodic, dtype, device, requires_grad)


@composite(method=False, meta="numbers")
def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):  # fmt: skip
    """Bartlett's window, a triangle: ``w[k] = 1 - |2 k / N - 1|`` for ``k`` from 0 to ``window_length - 1``.
    The rest as of :func:`hann_window`.

    Args:
        periodic: ``N`` is ``window_length``. Otherwise ``N`` is ``window_length - 1``, and the window is symmetric.

    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not a floating-point one.

    Examples:
        >>> taeda.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
        >>> taeda.bartlett_window(5, periodic=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _older("bartlett_window", _triangle, window_length, periodic, dtype, device, requires_grad)


@composite(method=False, meta="numbers")
def kaiser_window(
    window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False,
):  # fmt: skip
    """Kaiser's window: ``w[k] = I0(beta * sqrt(1 - (2 k / N - 1) ** 2)) / I0(beta)`` for ``k`` from 0 to
    ``window_length - 1``.

    ``I0`` is the modified Bessel function :func:`i0`: the sum of ``(x ** 2 / 4) ** m / (m!) ** 2`` for ``m`` from 0 on.
    The larger ``beta``, the lower the side lobes and the wider the main lobe; 0 gives a rectangle.

    Source: Kaiser and Schafer 1980, "On the use of the I0-sinh window for spectrum analysis".
    The rest as of :func:`hann_window`.

    Args:
        periodic: ``N`` is ``window_length``. Otherwise ``N`` is ``window_length - 1``, and the window is symmetric.
        beta: the shape, not negative.

    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not a floating-point one.

    Examples:
        >>> taeda.kaiser_window(5, periodic=False, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    return _older("kaiser_window", _kaiser(beta), window_length, periodic, dtype, device, requires_grad)
