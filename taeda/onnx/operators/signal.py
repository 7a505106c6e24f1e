"""ONNX's discrete Fourier transforms; a complex number is a pair in the last dimension."""

from __future__ import annotations

from ... import fft
from ..._typed import Tensor
from ...ops.creation import arange
from ...ops.elementary import log10
from ...ops.exchange import tensor
from ...ops.extrema import clamp
from ...ops.indexing import where
from ...ops.pointwise import floor
from ...ops.views import view_as_complex, view_as_real
from ..table import op
from ..values import DTYPES


def _complex(x: Tensor) -> Tensor:
    if x.shape[-1] not in (1, 2):
        raise ValueError(f"expected a last dimension of 1 (real) or 2 (complex), got shape {list(x.shape)}")
    return x[..., 0] if x.shape[-1] == 1 else view_as_complex(x.contiguous())


@op("DFT", 17)
def dft_17(x: Tensor, length: Tensor | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    return dft(x, length, tensor(axis), inverse=inverse, onesided=onesided)


@op("DFT", 20)
def dft(
    x: Tensor, length: Tensor | None = None, axis: Tensor | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    dim = -2 if axis is None else int(axis)
    dim = dim % x.ndim
    n = None if length is None else int(length)
    signal = _complex(x.double() if x.shape[-1] == 1 else x)  # in float32, zeros of real signals would be 1e-6
    if onesided and inverse:
        made = fft.irfft(signal, n, dim).unsqueeze(-1)
    elif onesided:
        made = view_as_real(fft.rfft(signal, n, dim))
    else:
        made = view_as_real((fft.ifft if inverse else fft.fft)(signal, n, dim))
    return made.to(x.dtype)


@op("STFT")
def stft(
    x: Tensor, step: Tensor, window: Tensor | None = None, length: Tensor | None = None, *, onesided: int = 1
) -> Tensor:
    signal = _complex(x) if x.ndim == 3 else x
    if length is None and window is None:
        raise ValueError("expected a window or a frame length")
    size = int(length) if length is not None else window.shape[0]  # type: ignore[union-attr]
    frames = signal.unfold(1, size, int(step))
    frames = frames if window is None else frames * window
    one = onesided and not frames.is_complex()
    return view_as_real((fft.rfft if one else fft.fft)(frames, size, -1))


@op("MelWeightMatrix")
def mel_weight_matrix(
    num_mel_bins: Tensor, dft_length: Tensor, rate: Tensor, low: Tensor, high: Tensor, *, output_datatype: int = 1
) -> Tensor:
    """Triangles that overlap by half, evenly spaced on the mel scale ``2595 log10(1 + hertz / 700)``.

    The range is cut into ``num_mel_bins + 2`` parts, of which the last one holds no corner.
    """
    bins, length = int(num_mel_bins), int(dft_length)

    def mel(hertz: Tensor) -> Tensor:
        return 2595 * log10(1 + hertz.double() / 700)

    corners = arange(bins + 2).double() * ((mel(high) - mel(low)) / (bins + 2)) + mel(low)
    hertz = 700 * (10 ** (corners / 2595) - 1)
    places = floor((length + 1) * hertz / float(rate))
    lower, centre, upper = places[:-2], places[1:-1], places[2:]
    at = arange(length // 2 + 1).double().unsqueeze(1)
    rising = where(centre == lower, (at == centre).double(), (at - lower) / clamp(centre - lower, min=1))
    falling = (upper - at) / clamp(upper - centre, min=1)
    weights = where((at >= lower) & (at <= centre), rising, 0.0)
    weights = where((at > centre) & (at < upper), falling, weights)
    return weights.to(DTYPES[output_datatype])
