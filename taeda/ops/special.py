"""Special functions: the error function and its kin, gamma, and entropies."""

from __future__ import annotations

import math

from .._core import install
from ..kernels import scalar as s
from ._lazy import np
from .elementary import exp, log
from .pointwise import add, mul, neg, sub, times_itself, true_divide, where_nonzero
from .table import METHODS, alias, composite, pointwise

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _each(function):
    """``function`` of single numbers as one of arrays."""
    return lambda x: np.vectorize(function, otypes=[float])(x)


# ---- error functions ------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference=_each(math.erf))
def erf(input):
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``input``."""
    return s.erf(input)


@pointwise(promote="float", dtypes=("float",), reference=_each(math.erfc))
def erfc(input):
    """``1 - erf(input)``, accurate in the tail."""
    return s.erfc(input)


@pointwise(promote="float", dtypes=("float",), domain=(-0.9, 0.9))
def erfinv(input):
    """The inverse of :func:`erf`; infinite at -1 and 1."""
    return s.erfinv(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def erfcx(input):
    """``exp(input ** 2) * erfc(input)``."""
    return s.erfcx(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def ndtr(input):
    """The area under the standard normal density left of ``input``."""
    return s.ndtr(input)


def _bell(input):
    return mul(exp(neg(times_itself(input))), TWO_OVER_ROOT_PI)


erf.vjp(input=lambda g, input: mul(g, _bell(input)))
erfc.vjp(input=lambda g, input: neg(mul(g, _bell(input))))
erfinv.vjp(input=lambda g, out: mul(g, mul(exp(times_itself(out)), 1 / TWO_OVER_ROOT_PI)))
erfcx.vjp(input=lambda g, input, out: mul(g, sub(mul(mul(input, out), 2), TWO_OVER_ROOT_PI)))
ndtr.vjp(input=lambda g, input: mul(g, mul(exp(mul(times_itself(input), -0.5)), 1 / math.sqrt(2 * math.pi))))


# ---- gamma ----------------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference=_each(math.lgamma), domain=(0.2, 4))
def lgamma(input):
    """The logarithm of ``|gamma(input)|``."""
    return s.lgamma(input)


@pointwise(promote="float", dtypes=("float",), domain=(0.2, 4))
def digamma(input):
    """The derivative of :func:`lgamma`."""
    return s.digamma(input)


@pointwise(method=False, inplace=False, promote="float", dtypes=("float",), domain=((1.5, 4), (0.5, 4)), second=False)
def zeta(input, other):
    """Hurwitz's zeta function, the sum of ``(k + other) ** -input`` over k from 0; infinite at ``input`` 1.

    Differentiable with respect to ``other``.
    """
    return s.zeta(input, other)


lgamma.vjp(input=lambda g, input: mul(g, digamma(input)))
digamma.vjp(input=lambda g, input: mul(g, polygamma(1, input)))
zeta.vjp(other=lambda g, input, other: neg(mul(g, mul(zeta(input + 1, other), input))))


@composite(method=False)
def polygamma(n, input, *, out=None):
    """The derivative of order ``n`` of :func:`digamma`, for ``n >= 0``: ``(-1)^(n+1) n! zeta(n + 1, input)``."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got n={n}")
    if n == 0:
        return digamma(input) if out is None else digamma(input, out=out)
    result = mul(zeta(float(n + 1), input), math.factorial(n) * (1.0 if n % 2 else -1.0))
    return result if out is None else out.copy_(result)


def _polygamma_method(input, n):
    """The derivative of order ``n`` of :func:`digamma`; see :func:`polygamma`."""
    return polygamma(n, input)


METHODS["polygamma"] = _polygamma_method
install("polygamma", _polygamma_method)


@composite(inplace=True)
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function of dimension ``p``."""
    constant = 0.25 * p * (p - 1) * math.log(math.pi)
    total = lgamma(input)
    for j in range(1, p):
        total = add(total, lgamma(sub(input, j / 2)))
    return add(total, constant)


alias(lgamma, "gammaln", method=False)
alias(digamma, "psi", method=False)


# ---- Bessel functions -----------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference=lambda *x: np.i0(*x))
def i0(input):
    """The modified Bessel function of the first kind of order 0."""
    return s.i0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i0e(input):
    """:func:`i0` times ``exp(-|input|)``, which does not overflow."""
    return s.i0e(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i1(input):
    """The modified Bessel function of the first kind of order 1."""
    return s.i1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i1e(input):
    """:func:`i1` times ``exp(-|input|)``, which does not overflow."""
    return s.i1e(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i1_over(input, other):
    """``other / input``, a half where ``input`` is 0: what I1(x) / x is."""
    return s.select(input == 0, s.like(input, 0.5), other / input)


i1_over.vjp(
    input=lambda g, input, other: neg(mul(g, where_nonzero(input, true_divide(other, times_itself(input))))),
    other=lambda g, input: where_nonzero(input, true_divide(g, input)),
)
i0.vjp(input=lambda g, input: mul(g, i1(input)))
i0e.vjp(input=lambda g, input, out: mul(g, sub(i1e(input), mul(input.sgn(), out))))
i1.vjp(input=lambda g, input, out: mul(g, sub(i0(input), i1_over(input, out))))
i1e.vjp(input=lambda g, input, out: mul(g, sub(sub(i0e(input), mul(input.sgn(), out)), i1_over(input, out))))


# ---- entropy --------------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.1, 2))
def entr(input):
    """``-input * log(input)``: 0 at 0, minus infinity below."""
    return s.select(
        input == 0, s.like(input, 0.0), s.select(input < 0, s.like(input, float("-inf")), -input * s.log(input))
    )


entr.vjp(input=lambda g, input: neg(mul(g, add(log(input), 1))))


@composite(method=False)
def log_ndtr(input, *, out=None):
    """``log(ndtr(input))``, accurate in the lower tail."""
    result = log_ndtr_(input)
    return result if out is None else out.copy_(result)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def log_ndtr_(input):
    """The kernel of :func:`log_ndtr`: by :func:`erfcx` below -1."""
    scaled = input * -0.7071067811865476
    far = s.log(s.erfcx(scaled) * 0.5) - input * input * 0.5
    near = s.log1p(s.erfc(-scaled) * -0.5)
    return s.select(input < -1.0, far, near)


log_ndtr_.vjp(input=lambda g, input: true_divide(mul(g, math.sqrt(2 / math.pi)), erfcx(mul(input, -math.sqrt(0.5)))))
