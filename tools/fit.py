"""Fits the polynomials of ``taeda/kernels/scalar/tables.py``: minimax by Remez's exchange. For development only.

Run ``python tools/fit.py`` to write the tables again, ``python tools/fit.py name...`` to see the errors of some.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
TABLES = Path(__file__).parent.parent / "taeda/kernels/scalar/tables.py"
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
    """A function of ``t = x * x``."""
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


# name: (target, weight, lo, hi, degrees by column). "middle" is for float64 work whose result is rounded to float32.
FITS = {
    # exp(r) = 1 + r + r^2 p(r)
    "EXP": (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -0.3469, 0.3469, (4, 9, 5)),
    # 2^r = 1 + r p(r)
    "EXP2": (lambda r: mp.expm1(r * LN2) / r, lambda r: r / mp.exp(r * LN2), -0.5005, 0.5005, (5, 10, 6)),
    # log(1 + r) = r + r^2 p(r)
    "LOG": (lambda r: (mp.log1p(r) - r) / r**2, lambda r: r**2 / mp.log1p(r), -0.25, 0.5, (9, 20, 12)),
    # atanh(s) = s + s^3 (1/3 + s^2 p(s^2)), where a pair of doubles carries the rest
    "ATANH": (
        even(lambda s: ((mp.atanh(s) - s) / s**3 - mp.mpf(1) / 3) / s**2),
        even(lambda s: s**5 / mp.atanh(s)),
        TINY,
        0.201**2,
        (None, 8, None),
    ),
    # sin(r) = r + r^3 p(r^2), to half a turn
    "SIN": (even(lambda r: (mp.sin(r) - r) / r**3), even(lambda r: r**3 / mp.sin(r)), TINY, 1.6**2, (3, 7, None)),
    # the same and cos(r) = 1 - r^2 / 2 + r^4 p(r^2), to an eighth of a turn
    "SIN_SHORT": (even(lambda r: (mp.sin(r) - r) / r**3), even(lambda r: r**3 / mp.sin(r)), TINY, 0.79**2, (2, 5, 3)),
    "COS_SHORT": (even(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), even(lambda r: r**4), TINY, 0.79**2, (2, 5, 3)),
    # atan(z) = z + z^3 p(z^2)
    "ATAN": (even(lambda z: (mp.atan(z) - z) / z**3), even(lambda z: z**3 / mp.atan(z)), TINY, 1, (8, 19, None)),
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
    # exp(x^2) erfc(x) = p(q) / (1 + 2 x), q = (x - 4) / (x + 4)
    "ERFCX": (erfcx_at, lambda q: 1 / erfcx_at(q), -1, 0.99999, (None, 23, 14)),
    # erfinv(x) = x p(w - 2.5), w = -log(1 - x^2) to 5, and x p(sqrt(w) - 4.2) beyond. Halley's method does the rest.
    "ERFINV_NEAR": (lambda u: erfinv_at(u + 2.5), lambda u: 1, -2.5 + TINY, 2.5, (None, 13, None)),
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
COLUMNS = {"float32": 24, "float64": 53, "middle": 24}

#: Last places added to a rounded coefficient. With -2 here no float32 sine exceeds 1, and the error at the peaks, where
#: it is largest, falls from 2.1 to 1.9 ulp (all float32 in [0.1, 13]).
NUDGES = {("SIN", "float32", 1): -2}


def literal(x, kind: str) -> str:
    """The nearest float32 or float64, as Python writes it."""
    return repr(float(np.float32(float(x)))) if kind == "float32" else repr(float(x))


def split(x, kind: str, parts: int) -> list[str]:
    """``x`` as an unevaluated sum of floats of one sign (so that infinity times it is no NaN), largest first."""
    found, number = [], np.float32 if kind == "float32" else np.float64
    for _ in range(parts):
        head = number(float(x))
        if mp.mpf(float(head)) > x:
            head = np.nextafter(head, number(0))
        found.append(repr(float(head)))
        x -= mp.mpf(float(head))
    return found


def constants() -> list[str]:
    """The constants that need more digits than one float has."""
    lines = ["# Sums of floats, largest first."]
    for name, value, parts in (
        ("PI", mp.pi, 4),
        ("LN2", LN2, 3),
        ("LOG2_E", 1 / LN2, 2),
        ("LOG10_E", 1 / mp.log(10), 2),
        ("LOG10_2", mp.log10(2), 2),
        ("DIGAMMA_ROOT", DIGAMMA_ROOT, 2),
    ):
        inside = ", ".join(f'"{k}": ({", ".join(split(value, k, parts))})' for k in ("float32", "float64"))
        lines.append(f"{name} = {{{inside}}}")
    lines += ["", "# The bits of 1/pi after the point, in words of 32 and 64 bits."]
    mp.mp.dps = 420
    for bits, count in ((32, 8), (64, 21)):
        words = [int(mp.floor(mp.ldexp(1 / mp.pi, bits * (i + 1)))) & ((1 << bits) - 1) for i in range(count)]
        lines.append(f"INVERSE_PI_{bits} = (")
        lines += [f"    0x{w:0{bits // 4}X}," for w in words]
        lines.append(")")
    mp.mp.dps = 60
    return lines


def main() -> None:
    names = sys.argv[1:] or list(FITS)
    lines = [
        '"""Polynomial coefficients, constant term first, by type. Written by tools/fit.py, which explains each."""',
        "",
        *constants(),
        "",
    ]
    for name in names:
        target, weight, lo, hi, degrees = FITS[name]
        lines.append(f"{name} = {{")
        for (kind, precision), degree in zip(COLUMNS.items(), degrees, strict=True):
            if degree is None:
                continue
            coefficients, worst = remez(target, weight, lo, hi, degree)
            half_ulps = mp.nstr(worst * 2**precision, 3)
            print(f"{name:12} {kind} degree {degree:2}  error {mp.nstr(worst, 3):>10} = {half_ulps} half ulp")
            lines.append(f'    "{kind}": (')
            for i, c in enumerate(coefficients):
                steps = NUDGES.get((name, kind, i), 0)
                if steps:
                    c = (np.float32(float(c)).view(np.int32) + np.int32(steps)).view(np.float32)
                lines.append(f"        {literal(c, kind)},")
            lines.append("    ),")
        lines += ["}", ""]
    if not sys.argv[1:]:
        TABLES.write_text("\n".join(lines[:-1]) + "\n")


if __name__ == "__main__":
    main()
