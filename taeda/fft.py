"""Discrete Fourier transforms under the names of ``torch.fft``."""

# ruff: noqa: I001 - lists of names are paragraphs

from .ops.fft import (
    fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft, ihfft2, ihfftn, irfft,
    irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
)  # fmt: skip

from .ops.registry import PUBLIC as _PUBLIC, name_within as _name_within

globals().update(_PUBLIC["fft"])  # ops whose stanza says so
__all__ = [name for name in dir() if not name.startswith("_")]
_name_within(globals(), "fft_", ("fftfreq", "fftshift", "ifftshift", "rfftfreq"))
