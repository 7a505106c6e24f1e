"""Special functions, by approximations in ops that ONNX has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..writer import Value, Writer
from .elementwise import floating, log1p
from .table import translates

#: Lanczos's coefficients for g = 7, n = 9 (Godfrey 2001).
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
#: The asymptotic series of digamma, B_2k / 2k.
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)


def polynomial(g: Writer, x: Value, coefficients: Sequence[float]) -> Value:
    """The value of a polynomial, its highest power first, by Horner's rule."""
    total: Value = g.constant(float(coefficients[0]), x.dtype)
    for c in coefficients[1:]:
        total = g.Add(g.Mul(total, x), g.constant(float(c), x.dtype))
    return total


def _where(g: Writer, condition: Value, a: Value, b: Value) -> Value:
    return g.Where(condition, a, b, dtype=b.dtype)


def _constant(g: Writer, x: Value, value: float) -> Value:
    return g.constant(value, x.dtype)


@translates("lgamma")
def lgamma(g: Writer, input: Value) -> Value:
    """Lanczos's approximation in double precision; below 1/2 the reflection."""
    import taeda

    x = g.cast(floating(g, input), taeda.float64)
    low = g.Less(x, 0.5)
    z = g.Sub(_where(g, low, g.Sub(_constant(g, x, 1.0), x), x), 1.0)
    total = _constant(g, x, _LANCZOS[0])
    for i, c in enumerate(_LANCZOS[1:], 1):
        total = g.Add(total, g.Div(_constant(g, x, c), g.Add(z, float(i))))
    t = g.Add(z, 7.5)
    above = g.Add(g.Sub(g.Mul(g.Add(z, 0.5), g.Log(t)), t), g.Add(g.Log(total), 0.5 * math.log(2 * math.pi)))
    turned = g.Sub(x, g.Mul(g.Floor(g.Mul(x, 0.5)), 2.0))
    below = g.Sub(g.Sub(_constant(g, x, math.log(math.pi)), g.Log(g.Abs(g.Sin(g.Mul(turned, math.pi))))), above)
    pole = g.And(g.LessOrEqual(x, 0.0), g.Equal(x, g.Floor(x)))
    made = _where(g, g.Or(pole, g.IsInf(x)), _constant(g, x, math.inf), _where(g, low, below, above))
    return g.cast(made, g.result.dtype)


@translates("digamma")
def digamma(g: Writer, input: Value) -> Value:
    """Above 6 its asymptotic series, below by recurrence; negative numbers by reflection."""
    import taeda

    x = g.cast(floating(g, input), taeda.float64)
    negative = g.Less(x, 0.0)
    z = _where(g, negative, g.Sub(_constant(g, x, 1.0), x), x)
    shift = _constant(g, x, 0.0)
    for _ in range(6):
        small = g.Less(z, 6.0)
        shift = _where(g, small, g.Sub(shift, g.Reciprocal(z)), shift)
        z = _where(g, small, g.Add(z, 1.0), z)
    square = g.Reciprocal(g.Mul(z, z))
    series = g.Mul(polynomial(g, square, _DIGAMMA[::-1]), square)
    above = g.Add(shift, g.Sub(g.Sub(g.Log(z), g.Div(_constant(g, x, 0.5), z)), series))
    turned = g.Mul(g.Sub(x, g.Floor(x)), math.pi)
    made = _where(g, negative, g.Sub(above, g.Div(_constant(g, x, math.pi), g.Tan(turned))), above)
    pole = g.And(negative, g.Equal(x, g.Floor(x)))
    return g.cast(_where(g, pole, _constant(g, x, math.nan), made), g.result.dtype)


@translates("erfinv")
def erfinv(g: Writer, input: Value) -> Value:
    """Winitzki's approximation, then two steps of Newton's method for ``erf``."""
    x = floating(g, input)
    log = log1p(g, g.Neg(g.Mul(x, x)))
    first = g.Add(g.Mul(log, 0.5), 2 / (math.pi * 0.147))
    start = g.Sub(g.Sqrt(g.Sub(g.Mul(first, first), g.Div(log, 0.147))), first)
    y = g.Mul(g.Sign(x), g.Sqrt(start))
    for _ in range(2):
        slope = g.Mul(g.Exp(g.Neg(g.Mul(y, y))), 2 / math.sqrt(math.pi))
        y = g.Sub(y, g.Div(g.Sub(g.Erf(y), x), slope))
    ends = g.Equal(g.Abs(x), 1.0)
    made = _where(g, ends, g.Mul(x, math.inf), y)
    return _where(g, g.Greater(g.Abs(x), 1.0), _constant(g, x, math.nan), made)


@translates("special.ndtr")
def ndtr(g: Writer, input: Value) -> Value:
    x = floating(g, input)
    return g.Mul(g.Add(g.Erf(g.Mul(x, math.sqrt(0.5))), 1.0), 0.5)


@translates("special.ndtri")
def ndtri(g: Writer, input: Value) -> Value:
    x = floating(g, input)
    return g.Mul(erfinv(g, g.Sub(g.Mul(x, 2.0), 1.0)), math.sqrt(2))


#: Modified Bessel functions of order 0 and 1: in (x / 3.75) ** 2 below 3.75, in 3.75 / x above; to 3e-7 (Abramowitz and
#: Stegun, 9.8.1 to 9.8.4).
_BESSEL_LOW = (
    (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0),
    (0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594, 0.5),
)
_BESSEL_HIGH = (
    (0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319, 0.01328592, 0.39894228),
    (-0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555, 0.00163801, -0.00362018, -0.03988024, 0.39894228),
)


def _bessel(name: str, order: int, scaled: bool) -> None:
    @translates(name)
    def translator(g: Writer, input: Value) -> Value:
        x = floating(g, input)
        size = g.Abs(x)
        t = g.Mul(g.Min(size, 3.75), 1 / 3.75)
        low = polynomial(g, g.Mul(t, t), _BESSEL_LOW[order])
        low = low if not order else g.Mul(low, size)
        large = g.Max(size, 3.75)
        high = g.Div(polynomial(g, g.Div(_constant(g, x, 3.75), large), _BESSEL_HIGH[order]), g.Sqrt(large))
        low, high = (g.Mul(low, g.Exp(g.Neg(size))), high) if scaled else (low, g.Mul(high, g.Exp(large)))
        made = _where(g, g.Less(size, 3.75), low, high)
        return g.Mul(made, g.Sign(x)) if order else made


for _name, _order, _scaled in (
    ("i0", 0, False),
    ("special.i0e", 0, True),
    ("special.i1", 1, False),
    ("special.i1e", 1, True),
):
    _bessel(_name, _order, _scaled)
