"""Types of taeda.fft. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
_name_within: Any

def fft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The discrete Fourier transform along ``dim``: ``out[k]`` is the sum of ``input[j] * exp(-2 pi i ..."""
def fft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform along two dimensions: that of images."""
def fftfreq(
    n: builtins.int, d: Number = 1.0, *, dtype: _dtype | None = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The frequencies that belong to the elements of :func:`taeda.fft.fft`: ``[0, 1, ..., (n - 1) // ..."""
def fftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform along several dimensions, one after the other."""
def fftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""The elements in order of frequency, frequency 0 in the middle: the second half of each dimension ..."""
def hfft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The discrete Fourier transform of a signal with Hermitian symmetry, ``x[-j] = conj(x[j])``, of ..."""
def hfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform along two dimensions of a signal with Hermitian symmetry, of ..."""
def hfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform along several dimensions of a signal with Hermitian symmetry, of ..."""
def ifft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.fft`: ``out[j]`` is the sum of ``input[k] * exp(2 pi i j k / ..."""
def ifft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.fft2`."""
def ifftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.fftn`."""
def ifftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""The inverse of :func:`taeda.fft.fftshift`: frequency 0 comes first again."""
def ihfft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.hfft`: the half of a signal with Hermitian symmetry."""
def ihfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.hfft2`."""
def ihfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.hfftn`."""
def irfft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.rfft`: a real tensor."""
def irfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.rfft2`: a real tensor."""
def irfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The inverse of :func:`taeda.fft.rfftn`: a real tensor."""
def rfft(
    input: Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: Any
    = None
) -> Tensor:
    r"""The discrete Fourier transform of a real tensor: the frequencies from 0 to ``n // 2`` of ..."""
def rfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform of a real tensor along two dimensions: of the last one, half of ..."""
def rfftfreq(
    n: builtins.int, d: Number = 1.0, *, dtype: _dtype | None = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The frequencies that belong to the elements of :func:`taeda.fft.rfft`: ``[0, 1, ..., n // 2] / ..."""
def rfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: builtins.str | None =
    None, *, out: Any = None
) -> Tensor:
    r"""The discrete Fourier transform of a real tensor along several dimensions: of the last one, half ..."""
