"""Random numbers: the same distributions, from other generators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from taeda.ops.dropout import _ALPHA

from ..._core import bool_, float32, int32
from ..writer import Unsupported, Value, Writer, is_static
from .creation import _form, filled
from .shape import flat
from .table import translates


@translates("rand")
def rand(g: Writer, *size: Any, **options: Any) -> Value:
    return _drawn(g, "RandomUniformLike", high=1.0, low=0.0)


translates("randn")(lambda g, *size, **options: _drawn(g, "RandomNormalLike", mean=0.0, scale=1.0))


@translates("rand_like")
def rand_like(g: Writer, input: Value, **options: Any) -> Value:
    return g.RandomUniformLike(g.cast(input, g.result.dtype), high=1.0, low=0.0)


@translates("randn_like")
def randn_like(g: Writer, input: Value, **options: Any) -> Value:
    return g.RandomNormalLike(g.cast(input, g.result.dtype), mean=0.0, scale=1.0)


def _drawn(g: Writer, kind: str, **bounds: float) -> Value:
    if not is_static(g.result.shape):
        raise Unsupported("random tensors need fixed sizes; use rand_like or randn_like of a tensor")
    return g.op(kind, filled(g, g.result.shape, 0, g.result.dtype), **bounds)


@translates("randint")
def randint(g: Writer, *args: Any, **options: Any) -> Value:
    low, high = (args[0], args[1]) if len(args) > 2 or isinstance(args[1], int) else (0, args[0])
    return g.Floor(g.RandomUniformLike(filled(g, g.result.shape, 0, float32), low=float(low), high=float(high)))


@translates("randint_like")
def randint_like(g: Writer, input: Value, *bounds: int, **options: Any) -> Value:
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    like = filled(g, g.sizes_of(input), 0, float32)
    return g.Floor(g.RandomUniformLike(like, low=float(low), high=float(high)))


@translates("randperm")
def randperm(g: Writer, n: int, **options: Any) -> Value:
    return g.TopK(g.RandomUniformLike(filled(g, [n], 0, float32)), [n], outputs=2)[1]


@translates("normal")
def normal(g: Writer, mean: Any = 0, std: Any = 1, *size: Any, **options: Any) -> Value:
    like = next((x for x in (mean, std) if isinstance(x, Value)), None)
    base = filled(g, _form(g, flat(size)), 0, g.result.dtype) if like is None else g.Add(*g.promoted(mean, std))
    drawn = g.RandomNormalLike(base, mean=0.0, scale=1.0)
    return g.Add(g.Mul(drawn, g.cast(std, drawn.dtype)), g.cast(mean, drawn.dtype))


@translates("bernoulli")
def bernoulli(g: Writer, input: Value, p: Any = None, *, generator: Any = None) -> Value:
    chance = input if p is None else filled(g, g.sizes_of(input), p, float32)
    return coin(g, chance)


def coin(g: Writer, chance: Value) -> Value:
    """1 with this chance, else 0. Not by Bernoulli: onnxruntime 1.32 gives it the opposite chance."""
    return g.cast(g.Less(g.RandomUniformLike(chance, high=1.0, low=0.0), chance), chance.dtype)


@translates("multinomial")
def multinomial(g: Writer, input: Value, num_samples: int, replacement: bool = False, **options: Any) -> Value:
    """Without replacement the first of exponential waiting times, which are as much shorter as a class is likely."""
    if not replacement and num_samples > 1:
        waits = g.Div(g.Max(_exponential(g, input), 1e-30), input)
        return g.TopK(waits, [num_samples], axis=-1, largest=0, outputs=2)[1]
    x = g.Log(input if input.rank == 2 else g.unsqueeze(input, [0]))
    made = g.Multinomial(x, sample_size=num_samples, dtype=int32)
    return made if input.rank == 2 else g.Squeeze(made, [0])


@translates("nn.functional.dropout")
def dropout(g: Writer, input: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    if not training:
        return input
    if p == 1:
        return g.Mul(input, 0.0)
    return g.Dropout(input, g.constant(float(p), float32), g.constant(True), outputs=2)[0]


translates("dropout")(lambda g, input, p, train: dropout(g, input, p, train))


@translates("feature_dropout")
def feature_dropout(g: Writer, input: Value, p: float, train: bool) -> Value:
    """Whole channels are left out."""
    if not train:
        return input
    return g.Mul(input, dropout(g, g.Expand(g.constant(1, input.dtype), _channels(g, input)), p))


def _channels(g: Writer, input: Value) -> Value:
    """The sizes of a mask that drops whole channels."""
    if input.rank < 2:
        raise Unsupported("dropout of channels of fewer than two dimensions")
    lead = g.slice(g.sizes_of(input), [0], [2], [0])
    return g.Concat(lead, g.ints([1] * (input.rank - 2)), axis=0) if input.rank > 2 else lead


translates("alpha_dropout")(lambda g, input, p, train: _drop_alpha(g, input, p, train, g.sizes_of(input)))


@translates("feature_alpha_dropout")
def feature_alpha_dropout(g: Writer, input: Value, p: float, train: bool) -> Value:
    return _drop_alpha(g, input, p, train, _channels(g, input)) if train else input


def _drop_alpha(g: Writer, input: Value, p: float, train: bool, sizes: Value) -> Value:
    """Set dropped elements to selu's lower limit; scale and shift to keep mean and variance."""
    if p == 0 or not train:
        return input
    if p == 1:
        return g.Mul(input, 0.0)
    scale = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    noise = coin(g, g.Expand(g.constant(1.0 - p, input.dtype), sizes))
    shift = g.Add(g.Mul(g.Sub(noise, 1.0), _ALPHA * scale), _ALPHA * scale * p)
    return g.Add(g.Mul(input, g.Mul(noise, scale)), shift)


@translates("native_dropout")
def native_dropout(g: Writer, input: Value, p: float, train: Any = True) -> tuple:
    if train is False:
        return input, g.Expand(g.constant(True), g.sizes_of(input))
    made = g.Dropout(input, g.constant(float(p), float32), g.constant(True), outputs=2)
    made[1].dtype = bool_
    return made


# ---- filled with numbers that are drawn ------------------------------------------------------------------------------


def _drawing(name: str, write: Callable) -> None:
    @translates(f"Tensor.{name}_")
    def translator(g: Writer, input: Value, *args: Any, generator: Any = None, **named: Any) -> Value:
        x = input if input.dtype.is_floating_point else g.cast(input, float32)
        return write(g, x, *args, **named)


def _uniform(g: Writer, x: Value, low: float = 0.0, high: float = 1.0, **named: Any) -> Value:
    return g.RandomUniformLike(x, low=float(named.get("from", low)), high=float(named.get("to", high)))


def _normal(g: Writer, x: Value, mean: float = 0.0, std: float = 1.0) -> Value:
    return g.RandomNormalLike(x, mean=float(mean), scale=float(std))


def _exponential(g: Writer, x: Value, lambd: float = 1.0) -> Value:
    return g.Div(g.Neg(g.Log(_positive(g, x))), float(lambd))


def _geometric(g: Writer, x: Value, p: float) -> Value:
    return g.Ceil(g.Div(g.Log(_positive(g, x)), math.log1p(-p)))


def _cauchy(g: Writer, x: Value, median: float = 0.0, sigma: float = 1.0) -> Value:
    turned = g.Tan(g.Mul(g.Sub(_uniform(g, x), 0.5), math.pi))
    return g.Add(g.Mul(turned, float(sigma)), float(median))


def _positive(g: Writer, x: Value) -> Value:
    """Uniform numbers above 0."""
    return g.Sub(g.constant(1.0, x.dtype), _uniform(g, x))


for _name, _write in {
    "uniform": _uniform, "normal": _normal, "exponential": _exponential, "geometric": _geometric, "cauchy": _cauchy,
    "log_normal": lambda g, x, mean=1.0, std=2.0: g.Exp(_normal(g, x, mean, std)),
    "bernoulli": lambda g, x, p=0.5: coin(g, filled(g, g.sizes_of(x), p, x.dtype)),
}.items():  # fmt: skip
    _drawing(_name, _write)
