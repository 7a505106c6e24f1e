"""Fits the polynomials of ``taeda/kernels/scalar/*tables.json``: minimax by Remez's exchange. For development only.

Run ``python tools/fit.py`` to write the tables again (``bessel_tables`` alone writes that file), ``python tools/fit.py
name...`` to see the errors of some.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
SCALAR = Path(__file__).parent.parent / "taeda/kernels/scalar"
Curve = Callable[[mp.mpf], mp.mpf]


def remez(target: Curve, weight: Curve, lo, hi, degree: int, rounds: int = 6):
    """The polynomial of ``degree`` that minimises ``max |weight * (p - target)|`` on ``[lo, hi]``, and that maximum."""
    lo, hi, n = mp.mpf(lo), mp.mpf(hi), degree + 2
    points = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    # A weight of 0 (a relative error at a root) would force the error itself to 0 there.
    points = [x + (hi - lo) / (20 * n) if abs(weight(x)) < 1e-9 else x for x in points]
    # The grid is dense at the ends, where the extrema of a minimax error are.
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (i + 0.5) / (20 * n)) for i in range(20 * n)]
    values = [(x, target(x), weight(x)) for x in grid]
    best = None
    for _ in range(rounds):
        rows = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                rows[i, j] = x**j
            rows[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = target(x)
        solution = mp.lu_solve(rows, right)
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [(w * (mp.polyval(coefficients[::-1], x) - y), x) for x, y, w in values]
        worst = max(abs(e) for e, _ in errors)
        if best is None or worst < best[1]:
            best = (coefficients, worst)
        runs: list[tuple[mp.mpf, mp.mpf]] = []  # the largest error of each run of one sign
        for e, x in errors:
            if runs and (runs[-1][0] > 0) == (e > 0):
                if abs(e) > abs(runs[-1][0]):
                    runs[-1] = (e, x)
            else:
                runs.append((e, x))
        while len(runs) > n:
            runs.pop(0 if abs(runs[0][0]) < abs(runs[-1][0]) else -1)
        if len(runs) < n or abs(abs(solution[degree + 1]) / worst - 1) < 1e-3:
            break
        points = [x for _, x in runs]
    return best


def even(function: Curve) -> Curve:
    return lambda t: function(mp.sqrt(t))


LN2 = mp.log(2)
TINY = mp.mpf(10) ** -12  # where a quotient is 0 / 0 at 0


def erfcx(x):
    """``exp(x * x) * erfc(x)``, by its asymptotic series where erfc would underflow."""
    if x < 50:
        return mp.exp(x * x) * mp.erfc(x)
    total = term = mp.mpf(1)
    for k in range(1, 30):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


def erf_log(x):
    """``-log2(1 - erf(x)) / x``."""
    return -mp.log(mp.erfc(x), 2) / x


def tail_log(a):
    """``log2(2 P(X < -a)) / a`` of the standard normal."""
    return mp.log(mp.erfc(a / mp.sqrt(2)), 2) / a


def tail_weight(a):
    """What an error of :func:`tail_log` does to ``a P(X < -a)``: relative to it, to 1/256, then absolute."""
    size = a * mp.erfc(a / mp.sqrt(2)) / 2
    return a * LN2 * size / (size + mp.mpf(1) / 256)


def erfcx_at(q):
    """``(1 + 2 x) * erfcx(x)`` at ``x = 4 (1 + q) / (1 - q)``."""
    x = 4 * (1 + q) / (1 - q)
    return (1 + 2 * x) * erfcx(x)


def erfinv_at(w):
    """``erfinv(x) / x`` at ``x = sqrt(1 - exp(-w))``, by Newton's method on erfc, which keeps its digits near 1."""
    x = mp.sqrt(-mp.expm1(-w))
    gap = mp.exp(-w) / (1 + x)  # 1 - x
    y = mp.erfinv(x) if w < 20 else mp.sqrt(w)
    for _ in range(12):
        y += (mp.erfc(y) - gap) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y / x


def far_bessel(order, y):
    """``I(x) exp(-x) sqrt(x)`` at ``x = 1 / y``, by the asymptotic series where it is exact enough."""
    x = 1 / y
    if x < 200:
        return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)
    total = term = mp.mpf(1)
    for k in range(1, 60):
        term *= -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * x)
        total += term
    return total / mp.sqrt(2 * mp.pi)


def lgamma_at(u):
    """``lgamma(z) / ((z - 1) (z - 2))`` at ``z = u + 1.75``."""
    z = u + mp.mpf(1.75)
    return mp.loggamma(z) / ((z - 1) * (z - 2))


def stirling_at(t):
    """What Stirling's formula leaves of lgamma, times ``y``, at ``y = 1 / sqrt(t)``."""
    y = 1 / mp.sqrt(t)
    return (mp.loggamma(y) - ((y - 0.5) * mp.log(y) - y + mp.log(2 * mp.pi) / 2)) * y


def digamma_at(t):
    """What ``log(x) - 1 / (2 x)`` leaves of digamma, over ``t``, at ``x = 1 / sqrt(t)``."""
    x = 1 / mp.sqrt(t)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / t


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616)


@functools.cache
def bessel_roots(order):
    """The two positive roots of ``J`` below 8."""
    return [mp.besseljzero(order, k) for k in (1, 2)]


def deflated_bessel(order, w):
    """``J(x) / x^order`` over its factors ``x^2 - root^2``, at ``x^2 = 64 - w``: what is left has no root there."""
    x = mp.sqrt(64 - w)
    a, b = bessel_roots(order)
    return mp.besselj(order, x) / x**order / ((x * x - a * a) * (x * x - b * b))


def modulus(order, y):
    """``sqrt(J^2 + Y^2) sqrt(x)`` at ``x = 1 / sqrt(y)``."""
    x = 1 / mp.sqrt(y)
    return mp.sqrt((mp.besselj(order, x) ** 2 + mp.bessely(order, x) ** 2) * x)


def phase(order, y):
    """What the phase of ``J + iY`` exceeds ``x - pi / 4 - order pi / 2`` by, times ``x``, at ``x = 1 / sqrt(y)``."""
    x = 1 / mp.sqrt(y)
    turn = mp.atan2(mp.bessely(order, x), mp.besselj(order, x)) - x + mp.pi / 4 + order * mp.pi / 2
    return (turn - 2 * mp.pi * mp.nint(turn / (2 * mp.pi))) * x


def neumann(order, z):
    """What is left of ``Y(x) / x^order`` without its logarithm and its pole, at ``x^2 = z``."""
    x = mp.sqrt(z)
    rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
    return (rest + 2 / (mp.pi * x)) / x if order else rest


def macdonald(order, z):
    """What is left of ``K(x) x^order`` without its logarithm, at ``x^2 = z``."""
    x = mp.sqrt(z)
    return (mp.besselk(order, x) - (-1) ** (order + 1) * mp.log(x / 2) * mp.besseli(order, x)) * x**order


def far_macdonald(order, v):
    """``K(x) exp(x) sqrt(x)`` at ``x = 4 / (1 + v)``."""
    x = 4 / (1 + v)
    return mp.besselk(order, x) * mp.exp(x) * mp.sqrt(x)


AIRY_ROOTS = [mp.airyaizero(k) for k in (1, 2)]


def deflated_airy(w):
    """``Ai(x)`` over its first two factors ``x - root``, at ``x = w - 2``."""
    return mp.airyai(w - 2) / ((w - 2 - AIRY_ROOTS[0]) * (w - 2 - AIRY_ROOTS[1]))


def far_airy(u):
    """``2 sqrt(pi) x^(1/4) exp(zeta) Ai(x)`` at ``zeta = 2/3 x^(3/2) = 1 / u``."""
    x = (mp.mpf(3) / (2 * u)) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi * mp.sqrt(x)) * mp.exp(1 / u) * mp.airyai(x)


def airy_modulus(y):
    """``sqrt(Ai^2 + Bi^2) x^(1/4)`` at ``-x``, ``zeta = 2/3 x^(3/2) = 1 / sqrt(y)``."""
    x = (mp.mpf(3) / (2 * mp.sqrt(y))) ** (mp.mpf(2) / 3)
    return mp.sqrt((mp.airyai(-x) ** 2 + mp.airybi(-x) ** 2) * mp.sqrt(x))


def airy_phase(y):
    """What the phase of ``Bi + i Ai`` at ``-x`` exceeds ``zeta + pi / 4`` by, times ``zeta``."""
    zeta = 1 / mp.sqrt(y)
    x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
    turn = mp.atan2(mp.airyai(-x), mp.airybi(-x)) - zeta - mp.pi / 4
    return (turn - 2 * mp.pi * mp.nint(turn / (2 * mp.pi))) * zeta


def ndtri_at(u):
    """``y / s`` with ``P(X < -y) = q`` of the standard normal and ``s = sqrt(-2 log q) = 1 / u``."""
    s = 1 / u
    y = mp.sqrt(max(s * s - mp.log(2 * mp.pi * s * s), mp.mpf("0.3")))
    for _ in range(40):  # Newton's method on the logarithm
        tail = mp.erfc(y / mp.sqrt(2)) / 2
        step = (mp.log(tail) + s * s / 2) * tail * mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)
        y += step
        if abs(step) < mp.mpf(10) ** -40:
            break
    return y / s


# name: (target, weight, lo, hi, degrees by column). "middle" is for float64 work whose result is rounded to float32.
FITS = {
    # exp(r) = 1 + r + r^2 p(r)
    "EXP": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.3469, 0.3469, (4, 9, 5)),
    "EXP_SIXTEENTH": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.0217, 0.0217, (1, None, None)),
    "EXP_EIGHTH": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.0434, 0.0434, (2, None, None)),
    # exp(r) - 1 = r + r^2 p(r)
    "EXPM1_SIXTEENTH": (
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / abs(mp.expm1(r)),
        -0.0217,
        0.0217,
        (2, None, None),
    ),
    # tanh(d) = d + d^3 p(d^2)
    "TANH": (
        even(lambda d: (mp.tanh(d) / d - 1) / d**2),
        even(lambda d: d**3 / mp.tanh(d)),
        TINY,
        0.57**2,
        (4, None, None),
    ),
    # 2^r = 1 + r p(r)
    "EXP2": (lambda r: mp.expm1(r * LN2) / r, lambda r: r / mp.exp(r * LN2), -0.5005, 0.5005, (5, 10, 6)),
    # log(1 + r) = r + r^2 p(r)
    "LOG": (lambda r: (mp.log1p(r) - r) / r**2, lambda r: r**2 / mp.log1p(r), -0.25, 0.5, (9, 20, 12)),
    "LOG_SIXTEENTH": (
        lambda r: (mp.log1p(r) - r) / r**2,
        lambda r: r**2 / abs(mp.log1p(r)),
        -0.03126,
        0.0625,
        (3, None, None),
    ),
    "LOG1P_FIFTEENTH": (
        lambda r: (mp.log1p(r) - r) / r**2,
        lambda r: r**2 / abs(mp.log1p(r)),
        -0.0313,
        0.0334,
        (2, None, None),
    ),
    # atanh(s) = s + s^3 (1/3 + s^2 p(s^2)), where a pair of doubles carries the rest
    "ATANH": (
        even(lambda s: ((mp.atanh(s) - s) / s**3 - mp.mpf(1) / 3) / s**2),
        even(lambda s: s**5 / mp.atanh(s)),
        TINY,
        0.201**2,
        (None, 8, None),
    ),
    # sin(r) = r + r^3 p(r^2), to half a turn
    "SIN": (even(lambda r: (mp.sin(r) - r) / r**3), even(lambda r: r**3 / mp.sin(r)), TINY, 1.6**2, (None, 7, None)),
    # the same and cos(r) = 1 - r^2 / 2 + r^4 p(r^2), to an eighth of a turn
    "SIN_SHORT": (even(lambda r: (mp.sin(r) - r) / r**3), even(lambda r: r**3 / mp.sin(r)), TINY, 0.79**2, (2, 5, 3)),
    "COS_SHORT": (even(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), even(lambda r: r**4), TINY, 0.79**2, (2, 5, 3)),
    # atan(z) = z + z^3 p(z^2), to a sixteenth of a turn
    "ATAN": (
        even(lambda z: (mp.atan(z) - z) / z**3),
        even(lambda z: z**3 / mp.atan(z)),
        TINY,
        0.4143**2,
        (4, 10, None),
    ),
    # asin(z) = z + z^3 p(z^2)
    "ASIN": (even(lambda z: (mp.asin(z) - z) / z**3), even(lambda z: z**3 / mp.asin(z)), TINY, 0.3026, (4, 12, None)),
    # sinh(x) = x + x^3 p(x^2)
    "SINH": (even(lambda x: (mp.sinh(x) - x) / x**3), even(lambda x: x**3 / mp.sinh(x)), TINY, 1, (3, 6, None)),
    # erf(x) = x p(x^2)
    "ERF": (even(lambda x: mp.erf(x) / x), even(lambda x: x / mp.erf(x)), TINY, 1, (6, 12, None)),
    # erf(x) = 1 - 2^(-x p(x))
    "ERF_LOG": (erf_log, lambda x: x * mp.erfc(x) * LN2 / mp.erf(x), TINY, 3.95, (8, None, None)),
    # P(X < -a) = 2^(a p(a) - 1)
    "TAIL_LOG": (tail_log, tail_weight, TINY, 6, (9, None, None)),
    # erfc(a) = 2^(a p(a)), to where it is below the smallest float32
    "ERFC_LOG": (lambda a: mp.log(mp.erfc(a), 2) / a, lambda a: a * LN2, TINY, 10.2, (None, None, 17)),
    # exp(x^2) erfc(x) = p(q) / (1 + 2 x), q = (x - 4) / (x + 4)
    "ERFCX": (erfcx_at, lambda q: 1 / erfcx_at(q), -1, 0.99999, (None, 23, 14)),
    # erfinv(x) = x p(w - 2.5), w = -log(1 - x^2) to 5, and x p(sqrt(w) - 4.2) beyond. Halley's method does the rest.
    "ERFINV_NEAR": (lambda u: erfinv_at(u + 2.5), lambda u: 1, -2.5 + TINY, 2.5, (None, 13, 9)),
    "ERFINV_FAR": (lambda u: erfinv_at((u + 4.2) ** 2), lambda u: 1, -1.97, 2.0, (None, 13, None)),
    # I0(x) = p(x^2) and I1(x) = x p(x^2) to 8; beyond, exp(x) / sqrt(x) p(1 / x)
    "I0": (even(lambda x: mp.besseli(0, x)), even(lambda x: 1 / mp.besseli(0, x)), TINY, 64, (None, 16, 10)),
    "I1": (even(lambda x: mp.besseli(1, x) / x), even(lambda x: x / mp.besseli(1, x)), TINY, 64, (None, 16, 10)),
    "I0_FAR": (lambda y: far_bessel(0, y), lambda y: 1 / far_bessel(0, y), 1e-6, 1 / 8, (None, 24, 8)),
    "I1_FAR": (lambda y: far_bessel(1, y), lambda y: 1 / far_bessel(1, y), 1e-6, 1 / 8, (None, 24, 8)),
    # lgamma(z) = (z - 1) (z - 2) p(z - 1.75)
    "LGAMMA": (lgamma_at, lambda u: 1 / lgamma_at(u), -0.75 - TINY, 0.75 - TINY, (None, 25, 13)),
    # lgamma(y) = (y - 1/2) log(y) - y + log(2 pi) / 2 + p(1 / y^2) / y, from 7.5 on
    "STIRLING": (stirling_at, lambda t: mp.sqrt(t) / mp.loggamma(1 / mp.sqrt(t)), 1e-6, 1 / 7.5**2, (None, 7, 3)),
    # digamma(x) = (x - root) p(x - 1.5) on [1, 2]
    "DIGAMMA": (lambda u: mp.digamma(u + 1.5) / (u + 1.5 - DIGAMMA_ROOT), lambda u: 1, -0.5, 0.5, (None, 22, 11)),
    # digamma(x) = log(x) - 1 / (2 x) - p(1 / x^2) / x^2, from 8 on
    "DIGAMMA_FAR": (digamma_at, lambda t: t, 1e-4, 1 / 64, (None, 6, 3)),
}

BESSEL_FITS = {
    # log(1 + r) = r + r^2 p(r), where the difference from r is what counts
    "LOG1P_REST": (lambda r: (mp.log1p(r) - r) / r**2, lambda r: 1, -0.35, 0.5, (None, 22, 11)),
    # J(x) = x^order (x^2 - root^2) (x^2 - root'^2) p(64 - x^2) to 8: every coefficient is positive
    "J0": (lambda w: deflated_bessel(0, w), lambda w: 1 / deflated_bessel(0, w), TINY, 64 - TINY, (None, 13, 8)),
    "J1": (lambda w: deflated_bessel(1, w), lambda w: 1 / deflated_bessel(1, w), TINY, 64 - TINY, (None, 13, 8)),
    # Y0(x) = 2 / pi log(x) J0(x) + p(x^2 / 32 - 1) and Y1(x) = 2 / pi (log(x) J1(x) - 1 / x) + x p(x^2 / 32 - 1) to 8
    "Y0": (lambda u: neumann(0, 32 * (u + 1)), lambda u: 1, -1 + TINY, 1, (None, 16, 10)),
    "Y1": (lambda u: neumann(1, 32 * (u + 1)), lambda u: 1, -1 + TINY, 1, (None, 16, 10)),
    # J + iY = p(1 / x^2) / sqrt(x) cis(x - pi / 4 - order pi / 2 + q(1 / x^2) / x) from 8 on
    "MODULUS0": (lambda y: modulus(0, y), lambda y: 1, 1e-9, 1 / 64, (None, 12, 5)),
    "MODULUS1": (lambda y: modulus(1, y), lambda y: 1, 1e-9, 1 / 64, (None, 12, 5)),
    "PHASE0": (lambda y: phase(0, y), lambda y: mp.sqrt(y), 1e-9, 1 / 64, (None, 12, 5)),
    "PHASE1": (lambda y: phase(1, y), lambda y: mp.sqrt(y), 1e-9, 1 / 64, (None, 12, 5)),
    # K0(x) = p(x^2) - log(x / 2) I0(x) and K1(x) = p(x^2) / x + log(x / 2) I1(x) to 2
    "K0": (lambda z: macdonald(0, z), lambda z: 1 / mp.besselk(0, mp.sqrt(z)), TINY, 4, (None, 9, 6)),
    "K1": (lambda z: macdonald(1, z), lambda z: 1, TINY, 4, (None, 9, 6)),
    # K(x) = exp(-x) / sqrt(x) p(4 / x - 1) from 2 on
    "K0_FAR": (lambda v: far_macdonald(0, v), lambda v: 1, -1 + 1e-6, 1, (None, 22, 9)),
    "K1_FAR": (lambda v: far_macdonald(1, v), lambda v: 1, -1 + 1e-6, 1, (None, 22, 9)),
    # Ai(x) = p(4 - x) on [0, 4], (x - root) (x - root') p(x + 2) on [-4.5, 0]
    "AIRY_RIGHT": (lambda w: mp.airyai(4 - w), lambda w: 1 / mp.airyai(4 - w), 0, 4, (None, 24, 15)),
    "AIRY_LEFT": (lambda w: deflated_airy(w), lambda w: 1 / deflated_airy(w), -2.5, 2, (None, 25, 16)),
    # Ai(x) = exp(-zeta) p(1 / zeta) / (2 sqrt(pi) x^(1/4)) from 4 on
    "AIRY_FAR": (far_airy, lambda u: 1, 1e-6, 3 / 16, (None, 18, 8)),
    # Bi(-x) + i Ai(-x) = p(1 / zeta^2) x^(-1/4) cis(zeta + pi / 4 + q(1 / zeta^2) / zeta) from 4.5 on
    "AIRY_MODULUS": (airy_modulus, lambda y: 1, 1e-8, 1 / 6.36**2, (None, 13, 5)),
    "AIRY_PHASE": (airy_phase, mp.sqrt, 1e-8, 1 / 6.36**2, (None, 13, 5)),
    # the y with P(X < -y) = q, over s, is p(1 / s), s = sqrt(-2 log q), for q < 1/4. Halley's method does the rest.
    "NDTRI": (ndtri_at, lambda u: 1, 0.0259, 0.6006, (None, 9, None)),
}
FILES = {"tables": FITS, "bessel_tables": BESSEL_FITS}


def tail_times(a):
    """``a P(X > a)`` of the standard normal."""
    return a * mp.erfc(a / mp.sqrt(2)) / 2


def tail_slope(a):
    """The derivative of :func:`tail_times`."""
    return mp.erfc(a / mp.sqrt(2)) / 2 - a * mp.exp(-a * a / 2) / mp.sqrt(2 * mp.pi)


# Functions by pieces for float32, whose number ends the name: in piece k p_k(x - middle), where the middle is k widths.
# name: (function, weight of an error at its value, width, degree, value at 0, value at the end) Piece 0 begins at its
# middle. A value at the end replaces the constant of the last piece, which then ends at its middle.
# ERF_8 is as wide as leaves the constants of its pieces nearly float32 (of eight pieces each counts).
PIECES = {
    "ERF_32": (mp.erf, lambda y: 1 / y, 1 / 8, 5, 0.0, 1.0),
    "ERF_8": (mp.erf, lambda y: 1 / y, 589 / 1024, 7, 0.0, 1.0),
    "TAIL_TIMES_32": (tail_times, lambda y: 1, 25 / 128, 4, 0.0, 0.0),
    "TAIL_TIMES_8": (tail_times, lambda y: 1, 55 / 64, 7, 0.0, 0.0),
    "TAIL_SLOPE_32": (tail_slope, lambda y: 1, 25 / 128, 4, 0.5, 0.0),
    "TAIL_SLOPE_8": (tail_slope, lambda y: 1, 55 / 64, 7, 0.5, 0.0),
}
#: Those that are odd: the first piece is x + p(x).
ODD = {"ERF_32", "ERF_8"}


def near_float32(function: Curve, x: float) -> mp.mpf:
    """A float32 near ``x`` where the function's value is within 1/512 ulp of a float32, and so loses nothing to
    rounding (Gal 1986)."""
    start = np.float32(x)
    step = 16 * np.spacing(start)
    for i in range(1 << 16):
        at = start + np.float32((i // 2 + i % 2) * (1 - 2 * (i % 2))) * step
        value = function(mp.mpf(float(at)))
        rounded = np.float32(float(value))
        if abs(value - mp.mpf(float(rounded))) < mp.mpf(float(np.spacing(abs(rounded)))) / 512:
            return mp.mpf(float(at))
    raise ValueError(f"no such number near {x}")


def count(name: str) -> int:
    """How many pieces one of ``PIECES`` has."""
    return int(name.rpartition("_")[2])


def piece(name: str, k: int):
    """The coefficients of one piece, and its largest error."""
    function, weight, width, degree, start, end = PIECES[name]
    half, middle, last = mp.mpf(width) / 2, mp.mpf(width) * k, k == count(name) - 1 and end is not None
    if k == 0:
        rest, factor = lambda d: (function(d) - start) / d, lambda d: d * weight(function(d))
        c, worst = remez(rest, factor, TINY, half, degree - 1)
        if name in ODD:
            c[0] -= 1
        return [mp.mpf(start), *c], worst
    hi = -TINY if last else half
    c, worst = remez(lambda d: function(middle + d), lambda d: weight(function(middle + d)), -half, hi, degree)
    if last:
        worst += abs(weight(function(middle)) * (end - c[0]))
        c[0] = mp.mpf(end)
    return c, worst


def pieces(name: str) -> list:
    """The table of one of ``PIECES``: its width, and a row per power of the coefficients of every piece."""
    width, degree = PIECES[name][2:4]
    fits = [piece(name, k) for k in range(count(name))]
    errors = [worst for _, worst in fits]
    print(f"{name:12} pieces  degree {degree:2}  error {mp.nstr(max(errors), 3):>10}", flush=True)
    return [width, *(row([c[power] for c, _ in fits]) for power in range(degree + 1))]


def row(numbers: list) -> list[float]:
    """The shortest decimals of float32 numbers."""
    return [float(str(np.float32(float(x)))) for x in numbers]


def inverses(middles: list[float]) -> list[list[float]]:
    """For 16 pieces of a logarithm: float32 numbers near ``1 / middle`` and minus their logarithms, nearly float32
    too."""
    found = [mp.mpf(1) if x == 1 else near_float32(lambda y: -mp.log(y), 1 / x) for x in middles]
    return [row(found), row([-mp.log(x) for x in found])]


def tanh_middles() -> list:
    """Where the pieces of tanh begin; the middles of 16, four an octave, in the order of their bits; its values
    there."""
    start = np.float32(TANH_FROM).view(np.int32)
    found = {}
    for i in range(16):
        low, high = (np.int32(start + ((i + j) << 21)).view(np.float32) for j in (0, 1))
        found[((start >> 21 << 21) + (i << 21)) >> 21 & 15] = near_float32(mp.tanh, (low + high) / 2)
    middles = [found[i] for i in range(16)]
    return [TANH_FROM, row(middles), row([mp.tanh(x) for x in middles])]


TANH_FROM = float(np.float32(0.57))
ERFC_TO = 9.3  # beyond, erfc has no normal float32


def erfcx_pieces(count: int, degree: int) -> list:
    """``exp(a^2) erfc(a)`` in pieces by the bits of ``a + 1``, ``count / 4`` an octave, in the order of their last
    bits: their middles, and a row per power of the polynomials in the distance from them."""
    shift = {8: 22, 16: 21}[count]
    start, found, worst = int(np.float32(1).view(np.int32)) >> shift, {}, mp.mpf(0)
    for i in range(count):
        low, high = (min(float(np.int32((start + i + j) << shift).view(np.float32)) - 1, ERFC_TO) for j in (0, 1))
        if low == high:
            found[(start + i) % count] = [0.0] * (degree + 2)  # no piece
            continue
        middle = near_float32(erfcx, (low + high) / 2)
        c, error = remez(
            lambda d, m=middle: erfcx(m + d), lambda d, m=middle: 1 / erfcx(m + d), low - middle, high - middle, degree
        )
        found[(start + i) % count], worst = [middle, *c], max(worst, error)
    print(f"ERFCX_{count:<6} pieces  degree {degree:2}  error {mp.nstr(worst, 3):>10}", flush=True)
    return [row([found[i][power] for i in range(count)]) for power in range(degree + 2)]


def erfinv_pieces(count: int, width: float, degree: int) -> list:
    """``erfinv(x) / x`` of ``w = -log(1 - x^2)`` in pieces around multiples of ``width``: as :func:`erfcx_pieces`, the
    width first."""
    found, worst = [], mp.mpf(0)
    for k in range(count):
        low, high = max((k - 0.5) * width, TINY), (k + 0.5) * width
        middle = near_float32(erfinv_at, max(k, 0.3) * width)
        c, error = remez(
            lambda d, m=middle: erfinv_at(m + d), lambda d, m=middle: 1 / erfinv_at(m + d), low - middle, high - middle,
            degree,
        )  # fmt: skip
        found.append([middle, *c])
        worst = max(worst, error)
    print(f"ERFINV_{count:<5} pieces  degree {degree:2}  error {mp.nstr(worst, 3):>10}", flush=True)
    return [width, *(row([c[power] for c in found]) for power in range(degree + 2))]


#: Where the pieces of log lie by the four highest bits of a mantissa in [0.75, 1.5): from 1 on sixteenths, below 1 half
#: of that. The two at 1 leave it as it is. Those of ``log(1 + z)`` lie at fifteenths.
LOG_MIDDLES = [1.0, *(1 + (i + 0.5) / 16 for i in range(1, 8)), *(0.75 + (i + 0.5) / 32 for i in range(7)), 1.0]
LOG1P_MIDDLES = [1 + i / 15 for i in range(16)]


def write_pieces(names: list[str]) -> None:
    """Fit the pieces of ``names`` and, where they are all there are, write their file."""
    found = {name: pieces(name) for name in names}
    if names == list(PIECES):
        logarithms = {"LOG": inverses(LOG_MIDDLES), "LOG1P": inverses(LOG1P_MIDDLES)}
        tails = {"ERFCX_16": erfcx_pieces(16, 6), "ERFCX_8": erfcx_pieces(8, 8)}
        tails |= {"ERFINV_16": erfinv_pieces(16, 1.0625, 5), "ERFINV_8": erfinv_pieces(8, 2.25, 7)}
        save("piece_tables", {**found, **logarithms, "TANH": tanh_middles(), **tails})


def save(file: str, content: dict) -> None:
    """Write names and their numbers, a line for each list of them."""

    def lines(x, indent: str) -> str:
        if isinstance(x, dict):
            inside = [f"{indent} {json.dumps(name)}: {lines(value, indent + ' ')}" for name, value in x.items()]
        elif isinstance(x, list) and any(isinstance(item, list) for item in x):
            inside = [f"{indent} {json.dumps(item)}" for item in x]
        else:
            return json.dumps(x)
        left, right = "{}" if isinstance(x, dict) else "[]"
        return "\n".join([left, ",\n".join(inside), indent + right])

    (SCALAR / f"{file}.json").write_text(lines(content, "") + "\n")


COLUMNS = {"float32": 24, "float64": 53, "middle": 24}


def nearest(x, kind: str) -> float:
    """The nearest float32 or float64."""
    return float(np.float32(float(x))) if kind == "float32" else float(x)


def split(x, kind: str, parts: int) -> list[float]:
    """``x`` as an unevaluated sum of floats of one sign (so that infinity times it is no NaN), largest first."""
    found, number = [], np.float32 if kind == "float32" else np.float64
    for _ in range(parts):
        head = number(float(x))
        if mp.mpf(float(head)) > x:
            head = np.nextafter(head, number(0))
        found.append(float(head))
        x -= mp.mpf(float(head))
    return found


def constants() -> dict:
    """The constants that need more digits than one float has: sums of floats, and 1/pi in words of 32 and 64 bits."""
    values = {
        "PI": (mp.pi, 4),
        "LN2": (LN2, 3),
        "LOG2_E": (1 / LN2, 2),
        "LOG10_E": (1 / mp.log(10), 2),
        "LOG10_2": (mp.log10(2), 2),
        "DIGAMMA_ROOT": (DIGAMMA_ROOT, 2),
    }
    found: dict = {name: {k: split(v[0], k, v[1]) for k in ("float32", "float64")} for name, v in values.items()}
    with mp.workdps(420):
        for bits, count in ((32, 8), (64, 21)):  # after the point
            found[f"INVERSE_PI_{bits}"] = [
                int(mp.floor(mp.ldexp(1 / mp.pi, bits * (i + 1)))) & ((1 << bits) - 1) for i in range(count)
            ]
    return found


def bessel_constants() -> dict:
    """The roots, and Temme's coefficients of the uniform expansion of the incomplete gamma functions: a row per power
    of 1 / a, in powers of eta."""
    roots = {f"J{order}_ROOTS": bessel_roots(order) for order in (0, 1)} | {"AIRY_ROOTS": AIRY_ROOTS}
    return {
        **{name: [split(v, "float64", 2) for v in values] for name, values in roots.items()},
        "TEMME": [[float(c) for c in row] for row in temme()],
    }


def temme(rows: int = 9, size: int = 28, least: float = 1e-18) -> list[list]:
    """The power series of ``C_k(eta)``, by the recurrence of DLMF 8.12.12; row ``k`` counts from ``a = 64`` on."""
    n_all = size + 2 * rows + 2
    alpha = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, n_all + 2):
        rest = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - rest) / (n + 1))
    stirling = [mp.mpf(1)]
    bernoulli = [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, rows + 1)]
    logarithm = [mp.mpf(0)] * (2 * rows + 2)
    for k, b in enumerate(bernoulli):
        logarithm[2 * k + 1] = b
    for n in range(1, rows + 1):  # the exponential of a series
        stirling.append(sum(j * logarithm[j] * stirling[n - j] for j in range(1, n + 1)) / n)
    first = [-mp.mpf(1) / 3] + [(n + 2) * alpha[n + 2] for n in range(1, n_all)]
    table, found = [first], []
    for k in range(1, rows):
        last = table[-1]
        table.append([(-1) ** k * stirling[k] * first[n] + (n + 2) * last[n + 2] for n in range(len(last) - 2)])
    for k, row in enumerate(table):
        kept = row[:size]
        while kept and abs(kept[-1]) / mp.mpf(64) ** k < least:
            kept.pop()
        if kept:
            found.append(kept)
    return found


def write(file: str, names: list[str]) -> None:
    """Fit ``names`` and, where they are all there are, write the file."""
    fits = FILES[file]
    found = constants() if file == "tables" else bessel_constants()
    for name in names:
        target, weight, lo, hi, degrees = fits[name]
        found[name] = {}
        for (kind, precision), degree in zip(COLUMNS.items(), degrees, strict=True):
            if degree is None:
                continue
            coefficients, worst = remez(target, weight, lo, hi, degree)
            half_ulps = mp.nstr(worst * 2**precision, 3)
            print(
                f"{name:12} {kind} degree {degree:2}  error {mp.nstr(worst, 3):>10} = {half_ulps} half ulp", flush=True
            )
            found[name][kind] = [nearest(c, kind) for c in coefficients]
    if names == list(fits):
        save(file, found)


def main() -> None:
    asked = sys.argv[1:] or list(FILES)
    for file, fits in FILES.items():
        names = list(fits) if file in asked else [n for n in fits if n in asked]
        if names:
            write(file, names)
    names = list(PIECES) if "piece_tables" in asked or not sys.argv[1:] else [n for n in PIECES if n in asked]
    if names:
        write_pieces(names)


if __name__ == "__main__":
    main()
