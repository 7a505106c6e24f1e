"""The error function and related ones, and the gamma function's logarithm and derivative, for float32 and float64
Values.
"""

from __future__ import annotations

from ..ir import F32, F64, Value
from .basic import (
    MAGIC,
    SIGNED,
    abs,
    any_lane,
    at_least,
    at_most,
    copysign,
    fma,
    like,
    nearest,
    pick,
    poly,
    power_of_two,
    rarely,
    round,
    scale,
    select,
    table_entries,
)
from .coefficients import bessel_tables, piece_tables, tables
from .exponential import (
    INF,
    NAN,
    _by_table,
    _exp_pair,
    _fast_two_sum,
    _has_rare_path,
    _log_double,
    _log_reduced,
    _octave_below,
    _octave_rests,
    _split,
    _two_product,
    _two_sum,
    exp,
    exp_negative,
    half_exp2_rough,
    in_double,
    log,
    pow,
    sqrt,
    table,
)
from .pieces import around_middle, by_pieces, odd, settling
from .trigonometric import PI, sin, tan

TWO_OVER_ROOT_PI = 1.1283791670955126
DENSITY = 0.3989422804014327  # the density of the standard normal at 0
LN2 = 0.6931471805599453
LOG_ROOT_TWO_PI = 0.9189385332046728


# ---- error functions -------------------------------------------------------------------------------------------------
def erf(x: Value) -> Value:
    """The error function, within 1.3 ulp (float32) and 2 ulp (float64)."""
    if by_pieces(x):
        return odd("ERF", x)
    return _erf_single(x) if x.type is F32 else _erf_double(x)


def _erf_single(x: Value) -> Value:
    """``1 - 2 ** h`` with ``h = log2(1 - erf(|x|))`` a polynomial: no division. Where the result is small, its two
    more roundings matter: below 1 :func:`_erf_rest` is used."""
    a = at_most(abs(x), 3.95)  # the result rounds to 1 from 3.92 on
    # The leading coefficients come last in both polynomials, so that the rounding of the others hardly matters.
    first, *others = (-c for c in table("ERF_LOG", x))
    h = fma(a, first, (a * a) * poly(a, others))
    n, k = nearest(h)
    r = h - n
    first, *others = (-c for c in table("EXP2", x))
    s = power_of_two(k, F32)
    outer = fma(s, fma(r, first, (r * r) * poly(r, others)), 1.0 - s)
    return copysign(select(a < 1.0, a + _erf_rest(a), outer), x)


def _erf_rest(x: Value) -> Value:
    """``erf(x) - x`` for ``|x| <= 1``: at most a sixth of it."""
    return x * poly(x * x, (TWO_OVER_ROOT_PI - 1.0, *table("ERF", x)[1:]))


def _erf_double(x: Value) -> Value:
    a = abs(x)
    square = a * a
    p, p_low, n = _exp_pair(at_least(-square, -40.0))  # the result rounds to 1 from a = 5.9 on
    outer = scale((p + p_low) * _erfcx_positive(a), n)  # less than a sixth of 1, so it need not be exact
    return select(a < 1.0, x + _erf_rest(x), copysign(1.0 - outer, x))


def _erfcx_parts(a: Value, middle: bool = False) -> tuple[Value, Value, Value]:
    """``(y, low, s)`` with ``exp(a * a) * erfc(a) = (y + low) / s`` for ``a >= 0``:
    ``p((a - 4) / (a + 4)) / (1 + 2 a)``."""
    q = select(a < INF, (a - 4.0) / (a + 4.0), like(a, 1.0))
    first, *others = table("ERFCX", a, middle)
    y, low = _fast_two_sum(first, q * poly(q, others))
    return y, low, fma(a, 2.0, 1.0)


def _erfcx_positive(a: Value, middle: bool = False) -> Value:
    y, low, s = _erfcx_parts(a, middle)
    return (y + low) / s


def _erfc_positive(a: Value) -> tuple[Value, Value, Value]:
    """``(y, low, e)`` with ``erfc(a) = y + low`` for ``a >= 0`` of float64, and ``e`` nearly ``exp(-a * a)``."""
    a = at_most(a, 28.0)  # the result rounds to 0 from 27.3 on
    square = a * a
    p, p_low, n = _exp_pair(-square)
    p_low = fma(p + p_low, -fma(a, a, -square), p_low)
    y, low, s = _erfcx_parts(a)
    top, top_low = _two_product(p, y)
    top_low = top_low + fma(p, low, p_low * y)
    inverse = 1.0 / s
    quotient = top * inverse
    rest = fma(-quotient, s, top) + fma(-quotient, fma(a, 2.0, 1.0 - s), top_low)
    return scale(quotient, n), scale(rest * inverse, n), scale(p + p_low, n)


def erfc(x: Value) -> Value:
    """``1 - erf(x)``, accurate to the end of the tail: within 1.5 ulp (float32) and 1 ulp (float64)."""
    if not table_entries(x):
        return _erfc_single(x) if x.type is F32 else _erfc_double(x)
    far = abs(x) > 9.1  # there some results are no normal numbers
    if _has_rare_path(x):
        x.fn.rare.append(far)
        return _erfc_by_pieces(x)
    return select(far, _erfc_single(x), _erfc_by_pieces(x))


def _erfc_by_pieces(x: Value) -> Value:
    """``exp(-a * a) * erfcx(a)`` for ``a`` up to 9.1, both from tables in registers."""
    a = abs(x)
    square = a * a
    lost = fma(a, a, -square)
    j, q = _by_table(-square)
    q = q + pick(_octave_rests(x), j)
    first, rest = _erfcx_by_pieces(a)
    s = _octave_below(j, 0)
    y = s * first
    y = y + fma(s, fma(fma(q, -lost, q - lost), first + rest, rest), fma(s, first, -y))
    return select(x < 0, 2.0 - y, y)


def _erfcx_by_pieces(a: Value) -> tuple[Value, Value]:
    """``exp(a * a) * erfc(a)`` for ``a`` in [0, 9.3] as a sum of two, in pieces by the bits of ``a + 1``."""
    parts = table_entries(a)
    j = (a + 1.0).bits(SIGNED[F32]) >> {8: 22, 16: 21}[parts]
    return around_middle(getattr(piece_tables, f"ERFCX_{parts}"), j, a)


def _erfc_double(x: Value) -> Value:
    a = abs(x)
    y, low, _ = _erfc_positive(a)
    near, lost = _fast_two_sum(1.0, -x)
    return select(a < 0.5, near + (lost - _erf_rest(x)), select(x < 0, (2.0 - y) - low, y + low))


def _erfc_single(x: Value) -> Value:
    """``2 ** h``: ``h``, down to -150, needs float64, but its fraction does not; no division."""
    a = at_most(abs(x), 10.2).to(F64)
    h = a * poly(a, table("ERFC_LOG", a, True))
    n, _ = nearest(h)
    y = scale(poly((h - n).to(F32), (1.0, *table("EXP2", x))), n.to(F32))
    y = select(abs(x) > 10.1, like(x, 0.0), y)  # under a mask the instruction never rounds to 0, which is slow
    return select(x < 0, 2.0 - y, y)


@in_double
def erfcx(x: Value, middle: bool = False) -> Value:
    """``exp(x * x) * erfc(x)``."""
    a = abs(x)
    y = _erfcx_positive(a, middle)
    square = a * a
    rest = fma(a, a, -square)
    growth = exp(square, middle)
    growth = select(growth < INF, fma(growth, rest, growth), growth)
    return select(x < 0, growth + growth - y, y)


def erfinv(x: Value) -> Value:
    """The inverse error function, within 1.3 ulp (float32) and 1 ulp (float64)."""
    a = abs(x)
    y = (_erfinv_single if x.type is F32 else _erfinv_double)(a)
    return copysign(select(a < 1.0, y, select(a == 1.0, like(x, INF), like(x, NAN))), x)


def _erfinv_single(a: Value) -> Value:
    """``a`` times ``erfinv(x) / x``, by pieces. Without tables the logarithm's fraction is computed in float32, its sum
    with the exponent and the rest in float64."""
    if table_entries(a):
        w = -log(fma(a, -a, 1.0))
        width, *rows = getattr(piece_tables, f"ERFINV_{table_entries(a)}")
        first, rest = around_middle(rows, fma(w, 1 / width, MAGIC[F32]).bits(SIGNED[F32]), w)
        y = a * first
        return y + fma(a, rest, fma(a, first, -y))
    e, m, _ = _split(fma(a, -a, 1.0))
    w = fma(e.to(F64), -LN2, -_log_reduced(m - 1.0).to(F64))
    return (_erfinv_of_log(w, True) * a.to(F64)).to(F32)


def _erfinv_double(a: Value) -> Value:
    """One step of Halley's method on differences of nearby numbers: with erfc in the tail these are as small as it
    is."""
    gap = 1.0 - a
    y = _erfinv_of_log(-log(gap * (1.0 + a))) * a
    tail, low, bell = _erfc_positive(y)
    value = select(a < 0.75, (y - a) + _erf_rest(y), (gap - tail) - low)
    step = value / (bell * TWO_OVER_ROOT_PI)
    return y - step / fma(y, step, 1.0)


def _erfinv_of_log(w: Value, middle: bool = False) -> Value:
    """``erfinv(x) / x`` from ``w = -log(1 - x^2)``, by a polynomial in ``w`` or its root, to 3e-8 (after Giles
    2010)."""

    def far() -> list[Value]:
        return [poly(at_most(sqrt(w), 6.2) - 4.2, table("ERFINV_FAR", w))]

    # from 5 on x is above 0.9966
    return rarely(w > 5.0, [poly(w - 2.5, table("ERFINV_NEAR", w, middle))], far)[0]


def ndtr(x: Value) -> Value:
    """The cumulative distribution of the standard normal, with relative accuracy in the lower tail."""
    return erfc(x * -0.7071067811865476) * 0.5


@in_double
def ndtri(p: Value, middle: bool = False) -> Value:
    """The inverse of :func:`ndtr`, within 4 ulp: by :func:`erfinv` where ``p`` is in [1/4, 3/4]; in the tails by a
    polynomial good to 3e-6 and one step of Halley's method on the logarithm, in which the tail keeps every digit."""
    upper = p > 0.5
    q = select(upper, 1.0 - p, p)
    inner = erfinv(p + p - 1.0) * 1.4142135623730951
    tail = at_most(q, 0.25)
    logarithm = log(tail, middle)
    s = sqrt(logarithm * -2.0)
    y = s * poly(1.0 / s, bessel_tables.NDTRI["float64"])
    # h = log P(X < -y) - log q, h' = -1 / m and h'' = (y - 1 / m) / m with m = P(X < -y) / density(y)
    mills = _erfcx_positive(y * 0.7071067811865476, middle) * 1.2533141373155003
    h = log(mills, middle) - (y * y * 0.5 + logarithm + LOG_ROOT_TWO_PI)
    y = y + h * mills / (1.0 - h * (y * mills - 1.0) * 0.5)
    result = select(q < 0.25, select(upper, y, -y), inner)
    result = select(q == 0, select(upper, like(p, INF), like(p, -INF)), result)
    return select((p >= 0) & (p <= 1.0), result, like(p, NAN))


def _upper_tail(a: Value) -> Value:
    """``P(X > a)`` of the standard normal for ``0 <= a <= 10.4``, float32: to 2^-20 where it is above 1e-3.

    Further out only the absolute error falls: the result is meant for a sum with ``a``.
    """
    h = a * poly(a, table("TAIL_LOG", a))
    return half_exp2_rough(h)


def gelu(x: Value) -> Value:
    """``x P(X <= x)`` for standard normal ``X``.

    In float32 within 2.5 ulp for positive ``x``. For negative ``x``, PyTorch's formula with erf has an absolute error
    of 1e-6 between -6 and -1. Here it is 2e-8 by pieces; without them it is within 16 ulp down to 1e-3 and 1e-9
    absolute below that.
    """
    if x.type is not F32:
        return x * 0.5 * erfc(x * -0.7071067811865476)
    if by_pieces(x):
        return at_least(x, 0.0) - settling("TAIL_TIMES", abs(x))
    a = at_most(abs(x), 10.4)
    return fma(-a, _upper_tail(a), at_least(x, 0.0))


def gelu_slope(x: Value) -> Value:
    """The derivative of :func:`gelu`, ``P(X <= x) + x * density(x)``."""
    if x.type is not F32:
        return erfc(x * -0.7071067811865476) * 0.5 + x * (exp(x * x * -0.5) * DENSITY)
    if by_pieces(x):
        lower = settling("TAIL_SLOPE", abs(x))
        return select(x < 0, lower, 1.0 - lower)
    a = at_most(abs(x), 10.4)
    tail = _upper_tail(a)
    bell = a * (exp_negative(a * a * -0.5) * DENSITY)
    return select(x < 0, tail - bell, (1.0 - tail) + bell)


# ---- gamma -----------------------------------------------------------------------------------------------------------
@in_double
def lgamma(x: Value, middle: bool = False) -> Value:
    """The logarithm of ``|gamma(x)|``: within 1 ulp for ``x > 0``.

    For ``x < 0``, by reflection, the error is that of the larger of two terms that cancel near the function's roots.
    """

    def reflected() -> list[Value]:
        result = -log(abs(_sin_pi(x)) * (1 / PI), middle) - _lgamma_positive(1.0 - x, middle)
        return [select(x == round(x), like(x, INF), result)]

    return rarely(x < 0, [_lgamma_positive(abs(x), middle)], reflected)[0]


def _lgamma_positive(y: Value, middle: bool) -> Value:
    """:func:`lgamma` for ``y >= 0``."""
    low, high = y < 1.0, y >= 7.5
    # Down to [1.5, 2.5) by the product of the factors: lgamma(y) = lgamma(y - k) + log((y - 1) ... (y - k)).
    product, z = like(y, 1.0), y
    for _ in range(5):
        more = z >= 2.5
        z = select(more, z - 1.0, z)
        product = select(more, product * z, product)
    z = select(low, y + 1.0, z)
    first, second = select(low, y, z - 1.0), select(low, y - 1.0, z - 2.0)
    leading, *others = table("LGAMMA", y, middle)
    u = z - 1.75
    inverse = 1.0 / y
    rest = inverse * poly(inverse * inverse, table("STIRLING", y, middle))
    inner = select(low | high, y, product)
    if middle:
        near = first * second * fma(poly(u, others), u, leading)
        logarithm = log(inner, middle)
        far = (y - 0.5) * (logarithm - 1.0) + (LOG_ROOT_TWO_PI - 0.5 + rest)
        near = select(low, near - logarithm, near + logarithm)
    else:
        both, both_low = _two_product(first, second)
        series, series_low = _fast_two_sum(leading, u * poly(u, others))
        near, near_low = _two_product(both, series)
        near_low = fma(both, series_low, fma(both_low, series, near_low))
        logarithm, log_low = _log_double(inner)
        beside, beside_low = _two_sum(select(low, -logarithm, logarithm), near)
        near = beside + (beside_low + (near_low + select(low, -log_low, log_low)))
        less, less_low = _two_sum(logarithm, like(y, -1.0))
        half = y - 0.5
        far, far_low = _two_product(half, less)
        far_low = fma(half, less_low + log_low, far_low)
        far = far + (far_low + (LOG_ROOT_TWO_PI - 0.5 + rest))
    far = select(y < 1e305, far, y * (logarithm - 1.0))
    return select((y == 0) | (y == INF), like(y, INF), select(high, far, near))


def _sin_pi(x: Value) -> Value:
    """``sin(pi x)``, exactly 0 at integers, with the sign of ``x`` minus the nearest integer."""
    r = (x - round(x)) * PI
    r2 = r * r
    return fma(r * r2, poly(r2, tables.SIN["float64"]), r)


@in_double
def digamma(x: Value, middle: bool = False) -> Value:
    """The derivative of :func:`lgamma`: within 1 ulp (float32, through float64) and 6 ulp (float64) for ``x > 0``.

    For ``x < 0``, by reflection, the error is that of the larger of two terms that cancel near the function's roots.
    """

    def reflected() -> list[Value]:
        r = x - round(x)
        pole = select(r == 0, like(x, NAN), select(abs(r) == 0.5, like(x, 0.0), PI / tan(r * PI)))
        return [_digamma_positive(1.0 - x, middle) - pole]

    (result,) = rarely(x < 0, [_digamma_positive(x, middle)], reflected)
    return select(x == 0, copysign(like(x, INF), -x), result)


def _digamma_positive(y: Value, middle: bool) -> Value:
    """:func:`digamma` for ``y >= 0``."""
    high, low = tables.DIGAMMA_ROOT["float64"]
    # The polynomial is for [1, 2]; the recurrence, one reciprocal, reaches one further on both sides.
    left, right = y < 1.0, y > 2.0
    inner = select(left, y + 1.0, select(right, y - 1.0, y))
    near = ((inner - high) - low) * poly(inner - 1.5, table("DIGAMMA", y, middle))
    beside = 1.0 / select(left, -y, inner)
    near = select(left | right, near + beside, near)

    def far() -> list[Value]:
        # The asymptotic series holds from 8 on. The sum of 1 / (y + k) for k up to 4 is the logarithmic derivative of
        # the product t (t^2 - 1) (t^2 - 4).
        less, t = y < 8.0, y + 2.0
        u = t * t
        passed = fma(u, fma(u, 5.0, -15.0), 4.0) / (t * (u - 1.0) * (u - 4.0))
        z = select(less, y + 5.0, y)
        inverse = 1.0 / z
        square = inverse * inverse
        series = fma(square, poly(square, table("DIGAMMA_FAR", y, middle)), select(less, passed, like(y, 0.0)))
        return [select(y == INF, y, (log(z, middle) - inverse * 0.5) - series)]

    return rarely(y > 3.0, [near], far)[0]


#: Bernoulli's numbers B2, B4, ...
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


@in_double
def trigamma(x: Value, middle: bool = False) -> Value:
    """The derivative of :func:`digamma`, infinite at 0, -1, ...: within 1 ulp (float32, through float64) and 6 ulp
    (float64).

    Sums ``1 / x^2`` until the asymptotic series holds (Abramowitz & Stegun 6.4.6, 6.4.12); below 0 by reflection,
    6.4.7.
    """
    negative = x < 0
    z, passed = select(negative, 1.0 - x, x), like(x, 0.0)
    start = 5.0 if middle else 9.0
    for _ in range(int(start)):
        more = z < start
        passed = select(more, passed + 1.0 / (z * z), passed)
        z = select(more, z + 1.0, z)
    inverse = 1.0 / z
    t = inverse * inverse
    series = poly(t, _TRIGAMMA[: 8 if middle else 10])
    positive = passed + fma(inverse * t, series, fma(t, 0.5, inverse))
    turn = sin((x - round(x)) * PI)
    return select(negative, (PI / turn) * (PI / turn) - positive, positive)


# ---- Bessel functions ------------------------------------------------------------------------------------------------
def _bessel_i(x: Value, order: int, scaled: bool, middle: bool) -> Value:
    """``I0`` or ``I1`` of float64, times ``exp(-|x|)`` where ``scaled``."""
    a = abs(x)
    inner = poly(a * a, table(f"I{order}", x, middle))
    if order:
        inner = inner * a
    if scaled:
        inner = inner * exp_negative(-a, middle)

    def outer() -> list[Value]:
        inverse = 1.0 / at_least(a, 8.0)
        result = poly(inverse, table(f"I{order}_FAR", x, middle)) * sqrt(inverse)
        if scaled:
            return [result]
        half = exp(at_most(a, 1500.0) * 0.5, middle)  # in two steps: exp(a) overflows before the function does
        return [result * half * half]

    (result,) = rarely(a > 8.0, [inner], outer)
    return copysign(result, x) if order else result


@in_double
def i0(x: Value, middle: bool = False) -> Value:
    """The modified Bessel function of order 0: within 1 ulp (float32, through float64) and 5 ulp (float64)."""
    return _bessel_i(x, 0, False, middle)


@in_double
def i0e(x: Value, middle: bool = False) -> Value:
    """:func:`i0` times ``exp(-|x|)``."""
    return _bessel_i(x, 0, True, middle)


@in_double
def i1(x: Value, middle: bool = False) -> Value:
    """The modified Bessel function of order 1: within 1 ulp (float32, through float64) and 5 ulp (float64)."""
    return _bessel_i(x, 1, False, middle)


@in_double
def i1e(x: Value, middle: bool = False) -> Value:
    """:func:`i1` times ``exp(-|x|)``."""
    return _bessel_i(x, 1, True, middle)


#: Bernoulli numbers B_2k over (2k)!, for the Euler-Maclaurin sum.
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000,
)  # fmt: skip


@in_double
def zeta(s: Value, q: Value, middle: bool = False) -> Value:
    """Hurwitz's zeta function by the Euler-Maclaurin formula from the tenth term on that is above 10, for ``s > 1``.

    NaN where ``s < 1``, infinite at ``s = 1`` and at the poles ``q = 0, -1, ...``; its limit at infinite ``s``.
    """
    pole = (q <= 0) & (q == round(q))
    with s.fn.while_([like(s, 0.0), like(s, 0.0), select(pole, like(q, 1.0), q)]) as L:
        k, total, term = L.carry
        going = (k < 10.0) | (term < 10.0)
        L.test(any_lane(going))
        L.carry = (k + 1.0, select(going, total + pow(term, -s), total), select(going, term + 1.0, term))
    _, total, a = L.carry
    power = pow(a, -s)
    total = total + power * a / (s - 1.0) + power * 0.5
    factor, term = s, power / a
    square = a * a
    for k, b in enumerate(_BERNOULLI):
        total = total + term * factor * b
        factor = factor * (s + (2.0 * k + 1.0)) * (s + (2.0 * k + 2.0))
        term = term / square
    total = select((q < 0) & (s != round(s)), like(s, NAN), total)
    total = select(pole, like(s, INF), total)
    total = select(s == 1.0, like(s, INF), total)
    limit = select(q < 1.0, like(s, INF), select(q == 1.0, like(s, 1.0), like(s, 0.0)))
    total = select((s == INF) & (q == q), limit, total)
    return select(s < 1.0, like(s, NAN), total)
