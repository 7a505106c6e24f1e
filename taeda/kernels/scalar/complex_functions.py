"""Elementary functions of a Complex. Branch cuts, signs, infinities and NaN follow C (C99, annex G); formulas are
Kahan's (1987) where it matters.

complex64 is computed in double: its parts are within 1 ulp, and intermediate products do not overflow. complex128 is
within a few ulp of the larger part.
"""

from __future__ import annotations

from ..ir import BOOL, F32, F64, Value
from . import basic, exponential, trigonometric
from .basic import abs, copysign, fma, like, select
from .complexes import Complex

INF, NAN = float("inf"), float("nan")
PI = 3.141592653589793
LN2, LN10 = 0.6931471805599453, 2.302585092994046


def _wide(function):
    """Decorator: compute with float64 parts."""

    def apply(*args):
        if args[0].type is not F32:
            return function(*args)
        result = function(*(a.to(F64) for a in args))
        return result.to(F32)

    apply.__doc__, apply.__name__ = function.__doc__, function.__name__
    return apply


def hypot(a: Value, b: Value) -> Value:
    """``sqrt(a^2 + b^2)`` without intermediate overflow, within 1 ulp; infinite where either is, even if the other
    is NaN."""
    a, b = a._pair(b)
    if a.type is F32:
        wide = a.to(F64), b.to(F64)
        result = exponential.sqrt(fma(wide[0], wide[0], wide[1] * wide[1])).to(F32)
    else:
        a, b = abs(a), abs(b)
        high, low = select(a > b, a, b), select(a > b, b, a)
        # scaled by a power of two, so that squares neither overflow nor underflow; then the root's error is corrected
        # (Borges 2019)
        large, small = high > 2.0**500, high < 2.0**-500
        up = select(large, like(a, 2.0**-600), select(small, like(a, 2.0**600), like(a, 1.0)))
        down = select(large, like(a, 2.0**600), select(small, like(a, 2.0**-600), like(a, 1.0)))
        high, low = high * up, low * up
        square = high * high
        root = exponential.sqrt(fma(low, low, square))
        missed = fma(-root, root, square) + fma(low, low, fma(high, high, -square))
        result = select(root == 0, root, fma(missed, 0.5 / root, root)) * down
    result = select((a != a) | (b != b), a + b, result)
    return select((abs(a) == INF) | (abs(b) == INF), like(a, INF), result)


def modulus(z: Complex) -> Value:
    """The absolute value."""
    return hypot(z.re, z.im)


def angle(z: Complex) -> Value:
    """The argument, in (-pi, pi]."""
    return trigonometric.atan2(z.im, z.re)


def sgn(z: Complex) -> Complex:
    """``z / |z|``, 0 at 0."""
    size = modulus(z)
    zero = size == 0
    size = select(zero, like(size, INF), size)
    return choose(zero, Complex(like(size, 0.0)), Complex(z.re / size, z.im / size))


def polar(size: Value, turn: Value) -> Complex:
    """The number with this absolute value and argument."""
    return Complex(size * trigonometric.cos(turn), size * trigonometric.sin(turn))


def _times_i(z: Complex) -> Complex:
    return Complex(-z.im, z.re)


def _over_i(z: Complex) -> Complex:
    return Complex(z.im, -z.re)


def choose(condition: Value, a: Complex, b: Complex) -> Complex:
    return Complex(select(condition, a.re, b.re), select(condition, a.im, b.im))


def _endless(x: Value) -> Value:
    """Whether ``x`` is infinite or NaN."""
    return ~basic.isfinite(x)


def _reduced(x: Value) -> tuple[Value, Value]:
    """``(y, c)`` with ``exp(x) = c exp(y)``: the exponential overflows where its product with a sine need not."""
    big = x > 709.0
    y = (x - 354.891356446692) - 1.1873519686893054e-14  # 512 log 2
    return select(big, y, x), select(big, like(x, 2.0**512), like(x, 1.0))


def _times(z: Complex, factor: Value) -> Complex:
    return Complex(z.re * factor, z.im * factor)


def _power(size: Value, factor: Value, z: Complex, turn: Value) -> Complex:
    """``size factor cis(turn)``, of the magnitude and angle of a power with exponent ``z``."""
    y = z.im
    result = choose(y == 0, Complex(size * factor, y), _times(polar(size, turn), factor))
    return _at_the_ends(z, result, 0.0)


def _at_the_ends(z: Complex, result: Complex, limit: float) -> Complex:
    """Correct ``result``, an exponential of ``z``, where the real part is infinite and the angle is not finite:
    ``limit``, the value at -infinity, or an infinity without direction."""
    x, y = z.re, z.im
    lost = _endless(y)
    result = choose(lost & (x == -INF), Complex(like(x, limit), copysign(like(x, 0.0), y)), result)
    return choose(lost & (x == INF), Complex(x, like(x, NAN)), result)


@_wide
def exp(z: Complex) -> Complex:
    x, factor = _reduced(z.re)
    return _power(exponential.exp(x), factor, z, z.im)


@_wide
def exp2(z: Complex) -> Complex:
    return _power(exponential.exp2(z.re), like(z.re, 1.0), z, z.im * LN2)


@_wide
def expm1(z: Complex) -> Complex:
    half = trigonometric.sin(z.im * 0.5)
    re = fma(exponential.expm1(z.re), trigonometric.cos(z.im), half * half * -2.0)
    im = exponential.exp(z.re) * trigonometric.sin(z.im)
    return _at_the_ends(z, Complex(re, select(z.im == 0, z.im, im)), -1.0)


def _log_modulus(x: Value, y: Value) -> Value:
    """``log(hypot(x, y))``; near the unit circle by ``log1p`` of ``x^2 + y^2 - 1`` without cancellation."""
    a, b = abs(x), abs(y)
    high, low = select(a > b, a, b), select(a > b, b, a)
    near = exponential.log1p(fma(high - 1.0, high + 1.0, low * low)) * 0.5
    far = exponential.log(hypot(x, y))
    return select((high < 2.0) & (high > 0.5), near, far)


@_wide
def log(z: Complex) -> Complex:
    return Complex(_log_modulus(z.re, z.im), angle(z))


def log2(z: Complex) -> Complex:
    return log(z) * (1 / LN2)


def log10(z: Complex) -> Complex:
    return log(z) * (1 / LN10)


@_wide
def log1p(z: Complex) -> Complex:
    x, y = z.re, z.im
    small = abs(x) + abs(y) < 0.5
    near = exponential.log1p(fma(y, y, x * (x + 2.0))) * 0.5
    return Complex(select(small, near, _log_modulus(x + 1.0, y)), trigonometric.atan2(y, x + 1.0))


@_wide
def logaddexp(a: Complex, b: Complex) -> Complex:
    """``log(exp(a) + exp(b))``, from the one with the larger real part."""
    swap = a.re < b.re
    high, low = choose(swap, b, a), choose(swap, a, b)
    return high + log1p(exp(low - high))


@_wide
def sqrt(z: Complex) -> Complex:
    huge = (abs(z.re) > 2.0**1020) | (abs(z.im) > 2.0**1020)
    factor = select(huge, like(z.re, 0.25), like(z.re, 1.0))
    x, y = z.re * factor, z.im * factor
    t = exponential.sqrt((abs(x) + hypot(x, y)) * 0.5)
    other = select(t == 0, abs(y), abs(y) / (t + t))
    left = x < 0
    re = select(left, other, t)
    im = select(left, t, other)
    back = select(huge, like(x, 2.0), like(x, 1.0))
    endless = abs(z.im) == INF
    re = select(endless, like(x, INF), re * back)
    im = select(endless, like(x, INF), im * back)
    return Complex(re, copysign(im, z.im))


def rsqrt(z: Complex) -> Complex:
    return 1.0 / sqrt(z)


def reciprocal(z: Complex) -> Complex:
    return 1.0 / z


@_wide
def sigmoid(z: Complex) -> Complex:
    left = z.re < 0
    e = exp(choose(left, z, -z))
    return choose(left, e, Complex(like(z.re, 1.0))) / (e + 1.0)


@_wide
def pow(z: Complex, w: Complex) -> Complex:
    """``z ** w``; 1 where ``w`` is 0, and 0 for ``z`` 0 with the real part of ``w`` positive."""
    result = exp(w * log(z))
    zero = (z == 0) & (w.re > 0)
    nothing = Complex(like(z.re, 0.0))
    return choose(w == 0, nothing + 1.0, choose(zero, nothing, result))


def _hyperbolic(z: Complex) -> tuple[Value, Value, Value]:
    """``sinh`` and ``cosh`` of the real part, and a common factor."""
    a, factor = _reduced(abs(z.re))
    x = copysign(a, z.re)
    return exponential.sinh(x), exponential.cosh(x), factor


@_wide
def sinh(z: Complex) -> Complex:
    x, y = z.re, z.im
    s, c, factor = _hyperbolic(z)
    re = s * trigonometric.cos(y) * factor
    im = c * trigonometric.sin(y) * factor
    lost = _endless(y)
    re = select((abs(x) == INF) & lost, like(x, INF), select((x == 0) & lost, x, re))
    return Complex(re, select(y == 0, y, im))


@_wide
def cosh(z: Complex) -> Complex:
    x, y = z.re, z.im
    s, c, factor = _hyperbolic(z)
    re = c * trigonometric.cos(y) * factor
    im = s * trigonometric.sin(y) * factor
    lost = _endless(y)
    re = select((abs(x) == INF) & lost, like(x, INF), re)
    im = select(y == 0, select(basic.signbit(x) & (x == x), -y, y), select((x == 0) & lost, like(x, 0.0), im))
    return Complex(re, im)


@_wide
def sin(z: Complex) -> Complex:
    return _over_i(sinh(_times_i(z)))


@_wide
def cos(z: Complex) -> Complex:
    return cosh(_times_i(z))


@_wide
def tanh(z: Complex) -> Complex:
    """Kahan's: with ``t = tan(y)``, ``s = sinh(x)``, ``b = 1 + t^2``: ``(b s cosh(x) + i t) / (1 + b s^2)``."""
    x, y = z.re, z.im
    t, s = trigonometric.tan(y), exponential.sinh(x)
    b = fma(t, t, 1.0)
    bottom = fma(b * s, s, 1.0)
    near = Complex(b * s * exponential.sqrt(fma(s, s, 1.0)) / bottom, t / bottom)
    size = exponential.exp(-abs(x))
    far = Complex(copysign(like(x, 1.0), x), trigonometric.sin(y) * trigonometric.cos(y) * 4.0 * (size * size))
    result = choose(abs(x) > 20.0, far, near)
    lost, none = _endless(y), like(x, NAN)
    re = select(lost & (abs(x) != INF), none, result.re)
    im = select(lost, select(abs(x) == INF, copysign(like(x, 0.0), y), none), result.im)
    return Complex(select((x == 0) & lost, x, re), select(y == 0, y, im))


@_wide
def tan(z: Complex) -> Complex:
    return _over_i(tanh(_times_i(z)))


@_wide
def asin(z: Complex) -> Complex:
    x, y = z.re, z.im
    low, high = sqrt(1.0 - z), sqrt(z + 1.0)
    re = trigonometric.atan2(x, fma(low.re, high.re, -(low.im * high.im)))
    im = exponential.asinh(fma(low.re, high.im, -(low.im * high.re)))
    re = select((x == 0) & (y != y), x, re)
    far = Complex(copysign(trigonometric.atan2(abs(x), abs(y)), x), copysign(like(y, INF), y))
    return choose(isinf(z), far, Complex(re, im))


@_wide
def acos(z: Complex) -> Complex:
    x, y = z.re, z.im
    low, high = sqrt(1.0 - z), sqrt(z + 1.0)
    re = trigonometric.atan2(low.re, high.re) * 2.0
    im = exponential.asinh(fma(high.re, low.im, -(high.im * low.re)))
    re = select((x == 0) & (y != y), like(x, PI / 2), re)
    far = Complex(trigonometric.atan2(abs(y), x), copysign(like(y, INF), -y))
    return choose(isinf(z), far, Complex(re, im))


@_wide
def asinh(z: Complex) -> Complex:
    return _over_i(asin(_times_i(z)))


@_wide
def acosh(z: Complex) -> Complex:
    x, y = z.re, z.im
    low, high = sqrt(z - 1.0), sqrt(z + 1.0)
    re = exponential.asinh(fma(low.re, high.re, low.im * high.im))
    im = trigonometric.atan2(low.im, high.re) * 2.0
    im = select((x == 0) & (y != y), like(x, PI / 2), im)
    return choose(isinf(z), Complex(like(x, INF), trigonometric.atan2(y, x)), Complex(re, im))


@_wide
def atanh(z: Complex) -> Complex:
    x, y = abs(z.re), z.im
    gap = 1.0 - x
    re = exponential.log1p(x * 4.0 / fma(gap, gap, y * y)) * 0.25
    im = trigonometric.atan2(y + y, fma(gap, x + 1.0, -(y * y))) * 0.5
    re = select((gap == 0) & (abs(y) < 1e-100), (LN2 - exponential.log(abs(y))) * 0.5, re)
    # Large arguments: a quarter turn, and the real part of 1 / z. NaN is not large, but infinity with NaN is.
    size = hypot(x, y)
    far_re = select(size == INF, like(x, 0.0), x / size / size)
    quarter = select(y != y, y, copysign(like(y, PI / 2), y))
    far = size > 1e100
    re, im = select(far, far_re, re), select(far, quarter, im)
    return Complex(copysign(select((x == 0) & (y != y), x, re), z.re), im)


@_wide
def atan(z: Complex) -> Complex:
    return _over_i(atanh(_times_i(z)))


def isnan(z: Complex) -> Value:
    return basic.isnan(z.re) | basic.isnan(z.im)


def isinf(z: Complex) -> Value:
    return basic.isinf(z.re) | basic.isinf(z.im)


def isfinite(z: Complex) -> Value:
    return basic.isfinite(z.re) & basic.isfinite(z.im)


def truth(x: Value | Complex) -> Value:
    return x if isinstance(x, Value) and x.type is BOOL else x != 0
