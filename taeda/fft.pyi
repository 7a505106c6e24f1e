"""Types of taeda.fft. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
_name_within: Any

def fft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The transform along ``dim``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def fft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The transform along two dimensions. ``norm`` is backward (default), ortho or forward; sizes are cut or
    zero-padded."""
def fftfreq(
    n: Any, d: Number = 1.0, *, dtype: _dtype | None = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The frequencies of the points of a transform of ``n`` samples ``d`` apart."""
def fftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The transform along several dimensions. ``norm`` is backward (default), ortho or forward; sizes are cut or
    zero-padded."""
def fftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""Move frequency zero to the middle."""
def hfft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The transform of a Hermitian half along ``dim``, which is real. ``norm`` is backward (default), ortho or
    forward; sizes are cut or zero-padded."""
def hfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The transform of a Hermitian half along two dimensions. ``norm`` is backward (default), ortho or forward; sizes
    are cut or zero-padded."""
def hfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The transform of a Hermitian half along several dimensions. ``norm`` is backward (default), ortho or forward;
    sizes are cut or zero-padded."""
def ifft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The inverse transform along ``dim``. ``norm`` is backward (default), ortho or forward; sizes are cut or
    zero-padded."""
def ifft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse transform along two dimensions. ``norm`` is backward (default), ortho or forward; sizes are cut or
    zero-padded."""
def ifftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The inverse transform along several dimensions. ``norm`` is backward (default), ortho or forward; sizes are cut
    or zero-padded."""
def ifftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    r"""Undo :func:`fftshift`."""
def ihfft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The inverse of ``hfft``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def ihfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse of ``hfft2``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def ihfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The inverse of ``hfftn``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def irfft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The inverse of ``rfft``: real, of ``n`` elements. ``norm`` is backward (default), ortho or forward; sizes are
    cut or zero-padded."""
def irfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The inverse of ``rfft2``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def irfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The inverse of ``rfftn``. ``norm`` is backward (default), ortho or forward; sizes are cut or zero-padded."""
def rfft(input: Tensor, n: Any = None, dim: builtins.int = -1, norm: Any = None, *, out: Any = None) -> Tensor:
    r"""The transform of a real tensor along ``dim``, its non-negative half. ``norm`` is backward (default), ortho or
    forward; sizes are cut or zero-padded."""
def rfft2(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = ..., norm: Any = None, *, out: Any
    = None
) -> Tensor:
    r"""The transform of a real tensor along two dimensions. ``norm`` is backward (default), ortho or forward; sizes are
    cut or zero-padded."""
def rfftfreq(
    n: Any, d: Number = 1.0, *, dtype: _dtype | None = None, device: _device | builtins.str | None = None,
    requires_grad: builtins.bool = False, layout: Any = None, pin_memory: builtins.bool = False, out: Any = None
) -> Tensor:
    r"""The non-negative frequencies of :func:`fftfreq`."""
def rfftn(
    input: Tensor, s: Any = None, dim: builtins.int | Sequence[builtins.int] | None = None, norm: Any = None, *, out:
    Any = None
) -> Tensor:
    r"""The transform of a real tensor along several dimensions. ``norm`` is backward (default), ortho or forward; sizes
    are cut or zero-padded."""
