"""Short-time Fourier transforms and their inverse: Griffin & Lim, "Signal estimation from modified short-time Fourier
transform" (1984), whose least-squares overlap-add is what :func:`istft` computes."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._core import Tensor
from .creation import arange, ones
from .fft import fft_c2c, fft_c2r, fft_r2c
from .reduction import extent
from .shape import pad
from .table import composite
from .views import view_as_real


def _described(name, input, n_fft, hop_length, win_length, window):
    """The call's arguments, for errors."""
    shape = None if window is None else f"{window.dtype}{list(window.shape)}"
    return (
        f"{name}({input.dtype}{list(input.shape)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}, "
        f"window={shape})"
    )


def _placed(window, n_fft, win_length, like):
    """The window with zeros on both sides up to ``n_fft`` points; None if it is all ones."""
    if window is None and win_length == n_fft:
        return None
    if window is None:
        dtype = like.dtype.to_real() if like.is_complex() else like.dtype
        window = ones(win_length, dtype=dtype)
    left = (n_fft - win_length) // 2
    return pad(window, (left, n_fft - win_length - left)) if win_length < n_fft else window


def _check_window(where, window, win_length):
    if window is not None and (window.dim() != 1 or window.shape[0] != win_length):
        raise RuntimeError(
            f"{where}: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window.shape)}"
        )


def _warn_of_no_window(why: str) -> None:
    warnings.warn(
        f"A window was not provided. A rectangular window will be applied: {why}. To say so, pass "
        "window=taeda.ones(n_fft)",
        UserWarning,
        stacklevel=4,
    )


@composite(autocast="float32")
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center: Any = True, pad_mode="reflect",
    normalized=False, onesided=None, return_complex=None, align_to_window=None,
):  # fmt: skip
    """The Fourier transforms of overlapping pieces of a signal: ``out[f, t]`` is the sum of ``window[k] * input[t *
    hop_length + k] * exp(-2 pi i f k / n_fft)`` over ``k``. It shows which frequencies there are when.

    Args:
        input: ``(time,)`` or ``(batch, time)``, floating point or complex.
        n_fft: points of each transform.
        hop_length: points from a piece to the next. Default: ``n_fft // 4``.
        win_length: points of the window, which lies in the middle of the piece. Default: ``n_fft``.
        window: ``(win_length,)``. Default: ones. :func:`hann_window` is the usual one.
        center: pad the signal by ``n_fft // 2`` points on both sides, so that piece ``t`` is centred at ``t *
            hop_length``.
        pad_mode: how to pad, as :func:`taeda.nn.functional.pad` has it.
        normalized: multiply by ``1 / sqrt(n_fft)``.
        onesided: keep frequencies 0 to ``n_fft // 2``. Default: where signal and window are real.
        return_complex: required for real signals: True gives a complex tensor, False real and imaginary parts in a last
            dimension.
        align_to_window: without ``center``: let the window, rather than the piece, start at the first point.
    Returns:
        ``(frequency, piece)`` or ``(batch, frequency, piece)``.
    Raises:
        RuntimeError: the sizes do not fit, or ``return_complex`` is missing.
    Examples:
        >>> signal = taeda.cos(2 * math.pi * taeda.arange(32) / 4)  # 8 periods in 32 points
        >>> spectrum = taeda.stft(signal, 16, window=taeda.hann_window(16), return_complex=True)
        >>> spectrum.shape
        taeda.Size([9, 9])
        >>> spectrum.abs()[:, 4].argmax()  # 4 periods in each piece of 16
        tensor(4)
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        side = n_fft // 2
        padded = pad(input.reshape((1,) * (3 - input.dim()) + tuple(input.shape)), (side, side), pad_mode)
        input = padded.reshape(padded.shape[3 - input.dim() :] if input.dim() < 3 else padded.shape)
    complex_in = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_in:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs: use return_complex=True"
            )
        return_complex = True
    elif not return_complex:
        warnings.warn(
            "stft with return_complex=False is deprecated: use return_complex=True, and view_as_real on its result",
            UserWarning,
            stacklevel=2,
        )
    if window is None:
        _warn_of_no_window("taeda.hann_window(n_fft) leaks less")
    where = _described("stft", input, n_fft, hop, width, window)
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"{where}: expected a tensor of floating point or complex values")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{where}: expected a 1D or 2D tensor")
    alone = input.dim() == 1
    x = input.unsqueeze(0) if alone else input
    length = x.shape[1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{where}: expected 0 < n_fft <= {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{where}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{where}: expected 0 < win_length <= n_fft, but got win_length={width}")
    _check_window(where, window, width)
    if onesided is None:
        onesided = not complex_in
    elif onesided and complex_in:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if align_to_window:
        left = (n_fft - width) // 2
        x = pad(x, (left, left))
    pieces = x.unfold(-1, n_fft, hop)
    placed = _placed(window, n_fft, width, x)
    if placed is not None:
        pieces = pieces * placed
    if pieces.dtype.itemsize == 2:
        raise RuntimeError(f"stft: Unsupported dtype {pieces.dtype}; convert it with .to(taeda.float32)")
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    if pieces.is_complex():
        made = fft_c2c(pieces, (2,), True, scale)
    else:
        made = fft_r2c(pieces, (2,), scale, onesided)
    made = made.transpose(1, 2)
    made = made.squeeze(0) if alone else made
    return made if return_complex else view_as_real(made)


@composite()
def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
    length=None, return_complex=False,
):  # fmt: skip
    """The signal whose :func:`stft` is nearest to ``input``: inverse transforms times the window, overlapped and added,
    divided by the sum of the windows' squares (Griffin and Lim 1984).

    Args:
        input: ``(frequency, piece)`` or ``(batch, frequency, piece)``, complex.
        n_fft: points of each transform, as for :func:`stft`.
        hop_length: points from a piece to the next. Default: ``n_fft // 4``.
        win_length: points of the window. Default: ``n_fft``.
        window: the window that :func:`stft` had. Default: ones.
        center: whether the signal was padded.
        normalized: whether the transforms were multiplied by ``1 / sqrt(n_fft)``.
        onesided: whether only frequencies 0 to ``n_fft // 2`` are there. Default: by the size.
        length: points of the result. Default: what the pieces cover, less the padding.
        return_complex: give a complex signal; then all frequencies must be there.
    Returns:
        ``(time,)`` or ``(batch, time)``.
    Raises:
        RuntimeError: the sizes do not fit, or the windows leave a point without weight.
    Examples:
        >>> signal, window = taeda.arange(32.0), taeda.hann_window(16)
        >>> spectrum = taeda.stft(signal, 16, window=window, return_complex=True)
        >>> taeda.allclose(taeda.istft(spectrum, 16, window=window), signal, atol=1e-4)
        True
    """
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor, as stft gives it with return_complex=True, got "
            f"{input.dtype}"
        )
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        _warn_of_no_window("it must be the window of the stft")
    where = _described("istft", input, n_fft, hop, width, window)
    if input.numel() == 0:
        raise RuntimeError(f"{where}: input tensor cannot be empty.")
    if input.dim() < 2:
        raise IndexError(
            f"{where}: Dimension out of range: expected a tensor with 2 or 3 dimensions, got {input.dim()}"
        )
    if input.dim() > 3:
        raise RuntimeError(f"{where}: expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    alone = input.dim() == 2
    x = input.unsqueeze(0) if alone else input
    if onesided is None:
        onesided = x.shape[1] != n_fft
    if x.shape[1] != (n_fft // 2 + 1 if onesided else n_fft):
        need = "n_fft / 2 + 1" if onesided else "n_fft"
        raise RuntimeError(
            f"{where}: expected the frequency dimension (3rd to the last) of the input tensor to match {need} when "
            f"onesided={onesided}, but got {x.shape[1]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{where}: expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{where}: expected 0 < win_length <= n_fft")
    _check_window(where, window, width)
    if window is not None and window.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    scale = 1 / math.sqrt(n_fft) if normalized else 1 / n_fft
    x = x.transpose(1, 2)
    if return_complex:
        pieces = fft_c2c(x, (2,), False, scale)
    else:
        pieces = fft_c2r(x[..., : n_fft // 2 + 1], (2,), n_fft, scale)
    placed = _placed(window, n_fft, width, x)
    count = x.shape[1]
    total = n_fft + hop * (count - 1)
    squares = ones(n_fft, dtype=pieces.dtype.to_real()) if placed is None else placed * placed
    y = _overlapped(pieces if placed is None else pieces * placed, hop, total)
    envelope = _overlapped(squares.expand(1, count, n_fft), hop, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    y, envelope = y[:, start:end], envelope[:, start:end]
    if envelope.numel() == 0:
        raise RuntimeError(f"{where}: no points are left between start {start} and end {end}")
    least = 1 if envelope.is_meta else extent(envelope.detach().abs())[0]
    if least < 1e-11:
        raise RuntimeError(
            f"{where}: window overlap add min: {least}: the windows leave points of the signal uncovered"
        )
    y = y / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Zeros follow the signal.", stacklevel=2
        )
        y = pad(y, (0, end - total))
    return y.squeeze(0) if alone else y


def _overlapped(pieces: Tensor, hop: int, total: int) -> Tensor:
    """``[batch, piece, point]`` summed where each piece lies ``hop`` points after the one before it."""
    batch, count, n = pieces.shape
    if hop >= n or n % hop == 0:  # in blocks of a hop, each piece's k-th block lies k blocks on
        blocks = max(1, n // hop)
        wide = pieces if hop <= n else pad(pieces, (0, hop - n))
        parts = wide.reshape(batch, count, blocks, -1)
        made = sum(pad(parts[:, :, k], (0, 0, k, blocks - 1 - k)) for k in range(blocks))
        return made.reshape(batch, -1)[:, :total]
    at = (arange(count).unsqueeze(-1) * hop + arange(n)).reshape(-1)
    return pieces.new_zeros((batch, total)).index_add(1, at, pieces.reshape(batch, -1))
