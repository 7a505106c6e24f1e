"""Signals of spectrograms: inverse transform, window and overlap in one transposed convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..writer import Unsupported, Value, Writer
from .complex import Pair, of_pairs, pair


def _window(g: Writer, window: Value | None, width: int, n: int, dtype: Any) -> Value:
    """The window with zeros on both sides, ``n`` points."""
    left = (n - width) // 2
    if window is None:
        return g.constant(np.pad(np.ones(width), (left, n - width - left)), dtype)
    window = g.cast(window, dtype)
    return window if width == n else g.Pad(window, [left, n - width - left], dtype=dtype)


@of_pairs("istft", always=True)
def istft(
    g: Writer, input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Value | Pair | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Value | Pair:  # fmt: skip
    x = pair(g, input)
    if isinstance(window, Pair):
        raise Unsupported("istft with a complex window; multiply the pieces by its parts")
    real, used = x.real, n_fft if return_complex else n_fft // 2 + 1
    dtype, alone, axis = real.dtype, real.rank == 2, real.rank - 2
    spectrum = g.Concat(*(g.slice(part, [0], [used], [axis]) for part in x), axis=axis)
    spectrum = g.Unsqueeze(spectrum, [0]) if alone else spectrum
    step = {"strides": [n_fft // 4 if hop_length is None else hop_length], "kernel_shape": [n_fft]}
    placed = _window(g, window, n_fft if win_length is None else win_length, n_fft, dtype)
    ones = g.Expand(g.constant(1.0, dtype), g.Concat(g.ints([1, 1]), g.Shape(real, start=axis + 1), axis=0))
    envelope = g.ConvTranspose(ones, g.Reshape(g.Mul(placed, placed), [1, 1, n_fft]), **step)
    start = n_fft // 2 if center else 0
    end = 2**62 if length is None and not (center and start) else -start if length is None else start + length
    parts = []
    for basis in _bases(n_fft, normalized, return_complex):
        y = g.ConvTranspose(spectrum, g.Mul(g.constant(basis[:, None], dtype), placed), **step)
        over = envelope
        if length is not None:  # zeros where the signal is shorter
            y = g.Pad(y, [0, 0, 0, 0, 0, length])
            over = g.Pad(over, [0, 0, 0, 0, 0, length], g.constant(1.0, dtype))
        y, over = (g.slice(v, [start], [end], [2]) for v in (y, over))
        parts.append(g.Squeeze(g.Div(y, over), [0, 1] if alone else [1]))
    return Pair(*parts) if return_complex else parts[0]


def _bases(n: int, normalized: bool, both: bool) -> list[np.ndarray]:
    """The contributions of the real parts of the frequencies, and then of the imaginary ones, to each point of a piece.

    For a real signal half of them is there, and pairs of conjugates count twice. With ``both``, all of them add to a
    real and to an imaginary signal.
    """
    count = n if both else n // 2 + 1
    places = np.arange(count)
    angles = 2 * math.pi / n * (places[:, None] * np.arange(n) % n)
    alone = both | (places == 0) | (2 * places == n)
    factor = np.where(alone, 1.0, 2.0)[:, None] / (math.sqrt(n) if normalized else n)
    cos, sin = np.cos(angles) * factor, np.sin(angles) * factor
    return [np.concatenate([cos, -sin]), *([np.concatenate([sin, cos])] if both else [])]
