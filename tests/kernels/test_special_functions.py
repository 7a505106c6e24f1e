"""Bessel, Airy and incomplete gamma functions, ndtri and orthogonal polynomials against mpmath, and at their edges."""

import math

import mpmath as mp
import numpy as np
import pytest

from taeda.kernels import scalar as s

from .test_scalar import FLOAT, evaluate

INF, NAN = math.inf, math.nan


def spread(low, high, dtype, n=60):
    """Numbers in ``[low, high]``: of every magnitude from 1e-12 on, of both signs, and even ones near 0."""
    rng = np.random.default_rng(5)
    size = 10 ** rng.uniform(-12, np.log10(max(abs(low), abs(high))), n)
    x = np.concatenate([size, -size, rng.uniform(max(low, -30), min(high, 30), n)]).astype(dtype)
    return x[(x >= low) & (x <= high)]


def errors(body, reference, dtype, *xs):
    """The largest relative error, in units of the type's epsilon."""
    found, worst = evaluate(body, dtype, *xs), 0.0
    for i, y in enumerate(found):
        want = reference(*[mp.mpf(float(x[i])) for x in xs])
        scale = max(abs(want), mp.mpf(float(np.finfo(dtype).tiny)))
        worst = max(worst, float(abs(mp.mpf(float(y)) - want) / scale) / np.finfo(dtype).eps)
    return worst


OSCILLATING = {
    "bessel_j0": (lambda x: mp.besselj(0, x), -1e6, 1e6),
    "bessel_j1": (lambda x: mp.besselj(1, x), -1e6, 1e6),
    "bessel_y0": (lambda x: mp.bessely(0, x), 1e-12, 1e6),
    "bessel_y1": (lambda x: mp.bessely(1, x), 1e-12, 1e6),
    "airy_ai": (mp.airyai, -1e4, 14),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, -1e6, 1e6),
}


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("name", OSCILLATING)
def test_oscillating(name, dtype):
    reference, low, high = OSCILLATING[name]
    x = spread(low, high, dtype)
    found = evaluate(getattr(s, name), dtype, x)
    for a, y in zip(x, found, strict=True):
        want = reference(mp.mpf(float(a)))
        # the amplitude: what the function would be in the next quarter of its wave
        size = max(abs(want), 1 / mp.sqrt(1 + abs(mp.mpf(float(a)))) if name != "airy_ai" or a < 0 else 0)
        assert abs(mp.mpf(float(y)) - want) <= 6 * np.finfo(dtype).eps * size, (a, y, want)


MONOTONE = {
    "bessel_k0": (lambda x: mp.besselk(0, x), 1e-12, 80),
    "bessel_k1": (lambda x: mp.besselk(1, x), 1e-12, 80),
    "bessel_k0e": (lambda x: mp.besselk(0, x) * mp.exp(x), 1e-12, 1e5),
    "bessel_k1e": (lambda x: mp.besselk(1, x) * mp.exp(x), 1e-12, 1e5),
}


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("name", MONOTONE)
def test_macdonald(name, dtype):
    reference, low, high = MONOTONE[name]
    with mp.workprec(90):
        assert errors(getattr(s, name), reference, dtype, spread(low, high, dtype, 12)) < 6


@pytest.mark.parametrize("dtype", FLOAT)
def test_ndtri(dtype):
    rng = np.random.default_rng(1)
    small = 10 ** rng.uniform(-30, -0.3, 60)
    p = np.concatenate([small, 1 - 2.0 ** -np.arange(1, 20), rng.uniform(0, 1, 60)])
    assert errors(s.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), dtype, p[p != 0.5].astype(dtype)) < 6
    ends = evaluate(s.ndtri, dtype, [0.0, 0.5, 1.0, -0.1, 1.1, NAN])
    np.testing.assert_array_equal(ends, [-INF, 0.0, INF, NAN, NAN, NAN])


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("upper", [False, True])
def test_incomplete_gamma(dtype, upper):
    rng = np.random.default_rng(3)
    a = 10 ** rng.uniform([-8, -3, -2, 1.6], [3, 5, 2.3, 4], (50, 4))
    x = np.stack(
        [
            10 ** rng.uniform(-8, 3, 50),
            *(a[:, i] * 10 ** rng.uniform(-w, w, 50) for i, w in ((1, 0), (2, 1), (3, 0.3))),
        ],
        1,
    )
    x[:, 1] = abs(a[:, 1] * (1 + 3 * rng.normal(size=50) / np.sqrt(a[:, 1])))
    a, x = a.ravel().astype(dtype), x.ravel().astype(dtype)
    found = evaluate(s.igammac if upper else s.igamma, dtype, a, x)
    tiny, eps = float(np.finfo(dtype).tiny), np.finfo(dtype).eps
    for u, v, y in zip(a, x, found, strict=True):
        with mp.workdps(40):
            bounds = (mp.mpf(float(v)), mp.inf) if upper else (0, mp.mpf(float(v)))
            want = mp.gammainc(mp.mpf(float(u)), *bounds, regularized=True)
        if want < tiny:
            assert y <= tiny * (1 + eps)
            continue
        # the logarithm of a small result is rounded like any number
        assert abs(mp.mpf(float(y)) - want) <= want * eps * (20 + 8 * abs(mp.log(want))), (u, v, y, want)


@pytest.mark.parametrize("dtype", FLOAT)
def test_incomplete_gamma_edges(dtype):
    a = [0, 0, 0, 1, 1, INF, INF, 2, -1, 1, INF, NAN]
    x = [0, 1, INF, 0, INF, 1, INF, -1, 1, -0.0, 0, 1]
    want = [NAN, 1, 1, 0, 1, 0, NAN, NAN, NAN, 0, 0, NAN]
    np.testing.assert_array_equal(evaluate(s.igamma, dtype, a, x), want)
    np.testing.assert_array_equal(evaluate(s.igammac, dtype, a, x), 1 - np.array(want))


EDGES = {  # at 0, -0, inf, -inf, nan, -1
    "bessel_j0": (1, 1, 0, 0, NAN, None),
    "bessel_j1": (0, 0, 0, 0, NAN, None),
    "bessel_y0": (-INF, -INF, 0, NAN, NAN, NAN),
    "bessel_y1": (-INF, -INF, 0, NAN, NAN, NAN),
    "bessel_k0": (INF, INF, 0, NAN, NAN, NAN),
    "bessel_k1": (INF, INF, 0, NAN, NAN, NAN),
    "bessel_k0e": (INF, INF, 0, NAN, NAN, NAN),
    "bessel_k1e": (INF, INF, 0, NAN, NAN, NAN),
    "spherical_bessel_j0": (1, 1, 0, 0, NAN, None),
    "airy_ai": (None, None, 0, 0, NAN, None),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    for dtype in FLOAT:
        found = evaluate(getattr(s, name), dtype, [0.0, -0.0, INF, -INF, NAN, -1.0])
        for got, want in zip(found, EDGES[name], strict=True):
            assert want is None or got == want or (got != got and want != want)


def recurrence(first, step):
    def evaluate_at(x, n):
        before, value = mp.mpf(1), first(x)
        for k in range(1, int(n)):
            before, value = value, step(k, x, value, before)
        return value if n >= 1 else mp.mpf(1)

    return evaluate_at


def chebyshev_step(k, x, p, q):
    return 2 * x * p - q


POLYNOMIALS = {
    "chebyshev_t": recurrence(lambda x: x, chebyshev_step),
    "chebyshev_u": recurrence(lambda x: 2 * x, chebyshev_step),
    "chebyshev_v": recurrence(lambda x: 2 * x - 1, chebyshev_step),
    "chebyshev_w": recurrence(lambda x: 2 * x + 1, chebyshev_step),
    "hermite_h": recurrence(lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q),
    "hermite_he": recurrence(lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_l": recurrence(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_p": recurrence(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}
POLYNOMIALS |= {
    f"shifted_chebyshev_{kind}": lambda x, n, plain=POLYNOMIALS[f"chebyshev_{kind}"]: plain(2 * x - 1, n)
    for kind in "tuvw"
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    rng = np.random.default_rng(4)
    near = 10.0 ** -rng.uniform(0, 9, 15)
    x = np.concatenate([rng.uniform(-1, 1, 40), rng.uniform(-3, 3, 20), near, 1 - near, near - 1, [0, 1, -1, 0.5]])
    for dtype, most in (("float32", 1.0), ("float64", 300.0)):
        a, n = x.astype(dtype), rng.integers(0, 40, x.size).astype(dtype)
        found = evaluate(getattr(s, name), dtype, a, n)
        for u, k, y in zip(a, n, found, strict=True):
            want = POLYNOMIALS[name](mp.mpf(float(u)), k)
            size = abs(want)
            if "hermite" in name:  # its terms are larger than their sum; at an imaginary argument they do not cancel
                size = max(size, 0 if dtype == "float32" else abs(POLYNOMIALS[name](mp.mpc(0, abs(float(u))), k)))
            assert abs(mp.mpf(float(y)) - want) <= most * np.finfo(dtype).eps * max(1, size), (u, k, y, want)


def test_polynomial_edges():
    x = [0.3, NAN, 0.3, 2.0, -2.0, -2.0, INF, -INF, 0.3]
    n = [-1, 3, 2.9, 3000, 3000, 3001, 2, 2, NAN]
    t = [0, NAN, -0.82, INF, INF, -INF, INF, INF, 0]
    np.testing.assert_allclose(evaluate(s.chebyshev_t, "float64", x, n), t)
    assert evaluate(s.laguerre_l, "float64", [1e300, 1e300], [3, 4]).tolist() == [-INF, INF]
    assert np.isnan(evaluate(s.hermite_h, "float64", [0.3], [513])).all()
