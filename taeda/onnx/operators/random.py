"""ONNX ops that draw numbers. With ``seed`` each call gives the same ones, without they come from taeda's generator."""

from __future__ import annotations

import struct

import taeda

from ..._typed import Tensor
from ..table import op
from ..values import DTYPES


def generator_of(seed: float | None) -> taeda.Generator | None:
    """A generator that starts at ``seed``, which may be any float."""
    if seed is None:
        return None
    whole = int(seed) if float(seed).is_integer() else struct.unpack("<q", struct.pack("<d", seed))[0]
    return taeda.Generator().manual_seed(whole)


@op("RandomUniform")
def random_uniform(
    *, shape: list[int], dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    return taeda.rand(shape, generator=generator_of(seed), dtype=DTYPES[dtype]) * (high - low) + low


@op("RandomNormal")
def random_normal(
    *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return taeda.randn(shape, generator=generator_of(seed), dtype=DTYPES[dtype]) * scale + mean


def _like(x: Tensor, dtype: int | None) -> int:
    return dtype or next(code for code, known in DTYPES.items() if known == x.dtype)


@op("RandomUniformLike")
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    return random_uniform(shape=list(x.shape), dtype=_like(x, dtype), high=high, low=low, seed=seed)


@op("RandomNormalLike")
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return random_normal(shape=list(x.shape), dtype=_like(x, dtype), mean=mean, scale=scale, seed=seed)


@op("Bernoulli")
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    return taeda.bernoulli(x, generator=generator_of(seed)).to(DTYPES[_like(x, dtype)])


@op("Multinomial")
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """Classes drawn with the logarithms ``x`` of probabilities that need not sum to 1."""
    drawn = taeda.multinomial(taeda.softmax(x, -1), sample_size, True, generator=generator_of(seed))
    return drawn.to(DTYPES[dtype])
