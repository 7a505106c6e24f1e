"""The standard's extension of Fourier transforms: :mod:`taeda.fft` with ``axis`` for ``dim``."""

from __future__ import annotations

from typing import Any

import taeda

from .._typed import Tensor

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip


def _one(name: str) -> Any:
    run = getattr(taeda.fft, name)

    def transform(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return run(x, n, axis, norm)

    return _named(transform, name, run)


def _several(name: str) -> Any:
    run = getattr(taeda.fft, name)

    def transform(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return run(x, s, axes, norm)

    return _named(transform, name, run)


def _named(function: Any, name: str, run: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = run.__doc__
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several, ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of :func:`fft` of ``n`` samples, ``d`` apart."""
    return taeda.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of :func:`rfft` of ``n`` samples, ``d`` apart."""
    return taeda.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Frequency zero moved to the middle."""
    return taeda.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Frequency zero moved to the front: the inverse of :func:`fftshift`."""
    return taeda.fft.ifftshift(x, axes)
