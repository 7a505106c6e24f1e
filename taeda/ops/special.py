"""Special functions: the error function and its kin, gamma, and entropies."""

from __future__ import annotations

import math

from .. import _core
from .._core import install
from ..kernels import scalar as s
from ._lazy import np
from .creation import arange
from .elementary import exp, log
from .pointwise import add, mul, neg, sub, times_itself, true_divide
from .table import METHODS, alias, before_write, composite, expect_tensors, is_index, no_derivative, pointwise
from .views import unsqueeze

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _each(function):
    """``function`` of single numbers as one of arrays."""
    return lambda x: np.vectorize(function, otypes=[float])(x)


# ---- error functions ------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference=_each(math.erf), canonical=True)
def erf(input):
    """The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` for ``t`` from 0 to ``input``.

    Examples:
        >>> taeda.erf(taeda.tensor([0.0, 0.5, math.inf]))
        tensor([0.0000, 0.5205, 1.0000])
    """
    return s.erf(input)


@pointwise(promote="float", dtypes=("float",), reference=_each(math.erfc))
def erfc(input):
    """``1 - erf(input)``, accurate also where it is small.

    Examples:
        >>> taeda.erfc(taeda.tensor([0.0, 0.5]))
        tensor([1.0000, 0.4795])
    """
    return s.erfc(input)


@pointwise(promote="float", dtypes=("float",), domain=(-0.9, 0.9))
def erfinv(input):
    """The inverse of :func:`erf`; infinite at -1 and 1, NaN beyond.

    Examples:
        >>> taeda.erfinv(taeda.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.4769,    inf])
    """
    return s.erfinv(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def erfcx(input):
    """``exp(input ** 2) * erfc(input)``, which does not vanish where :func:`erfc` does.

    Examples:
        >>> taeda.special.erfcx(taeda.tensor([0.0, 50.0]))
        tensor([1.0000, 0.0113])
    """
    return s.erfcx(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, copied=("input",))
def ndtr(input):
    """The area under the standard normal density left of ``input``: ``(1 + erf(input / sqrt(2))) / 2``.

    Examples:
        >>> taeda.special.ndtr(taeda.tensor([0.0, 1.0, 1.96]))
        tensor([0.5000, 0.8413, 0.9750])
    """
    return s.ndtr(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.1, 0.9))
def ndtri(input):
    """The inverse of :func:`ndtr`: the argument left of which the area is ``input``; NaN outside of [0, 1].

    Examples:
        >>> taeda.special.ndtri(taeda.tensor([0.5, 0.975, 1.0]))
        tensor([0.0000, 1.9600,    inf])
    """
    return s.ndtri(input)


def _bell(input):
    return mul(exp(neg(times_itself(input))), TWO_OVER_ROOT_PI)


erf.vjp(input=lambda g, input: mul(g, _bell(input)))
erfc.vjp(input=lambda g, input: neg(mul(g, _bell(input))))
erfinv.vjp(input=lambda g, input: mul(g, mul(exp(times_itself(erfinv(input))), 1 / TWO_OVER_ROOT_PI)))
erfcx.vjp(input=lambda g, input, out: mul(g, sub(mul(mul(input, out), 2), TWO_OVER_ROOT_PI)))
ndtr.vjp(input=lambda g, input: mul(g, mul(exp(mul(times_itself(input), -0.5)), 1 / math.sqrt(2 * math.pi))))
ndtri.vjp(input=lambda g, out: mul(g, mul(exp(mul(times_itself(out), 0.5)), math.sqrt(2 * math.pi))))


# ---- gamma ----------------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference=_each(math.lgamma), domain=(0.2, 4))
def lgamma(input):
    """The logarithm of ``|gamma(input)|``; at ``n + 1`` it is the logarithm of the factorial of ``n``.

    Examples:
        >>> taeda.lgamma(taeda.tensor([1.0, 5.0]))  # log(24)
        tensor([0.0000, 3.1781])
    """
    return s.lgamma(input)


@pointwise(promote="float", dtypes=("float",), domain=(0.2, 4))
def digamma(input):
    """The derivative of :func:`lgamma`: ``gamma'(input) / gamma(input)``.

    Examples:
        >>> taeda.digamma(taeda.tensor([1.0, 2.0]))  # at 1 minus Euler's constant
        tensor([-0.5772,  0.4228])
    """
    return s.digamma(input)


@pointwise(method=False, inplace=False, promote="float", dtypes=("float",), domain=(0.2, 4))
def trigamma(input):
    """The derivative of :func:`digamma`: ``polygamma(1, input)``."""
    return s.trigamma(input)


@pointwise(method=False, inplace=False, promote="float", dtypes=("float",), domain=((1.5, 4), (0.5, 4)), second=False)
def zeta(input, other):
    """Hurwitz's zeta function: the sum of ``(k + other) ** -input`` for ``k`` from 0 on; infinite at ``input`` 1.
    Differentiable with respect to ``other``.

    Examples:
        >>> taeda.special.zeta(taeda.tensor([2.0]), 1)  # pi ** 2 / 6
        tensor([1.6449])
    """
    return s.zeta(input, other)


lgamma.vjp(input=lambda g, input: mul(g, digamma(input)))
digamma.vjp(input=lambda g, input: mul(g, trigamma(input)))
trigamma.vjp(input=lambda g, input: mul(g, polygamma(2, input)))
zeta.vjp(
    input=no_derivative("zeta", "input"), other=lambda g, input, other: neg(mul(g, mul(zeta(input + 1, other), input)))
)


@composite(method=False, out=True, out_aligned=("input",))
def polygamma(n, input):
    """The derivative of order ``n`` of :func:`digamma`: ``(-1) ** (n + 1) * n! * zeta(n + 1, input)`` for ``n >= 1``.

    Args:
        n: the order, an int that is not negative.
    Returns:
        The sizes of ``input``; its dtype, for integers and bools the default floating-point dtype.
    Raises:
        RuntimeError: ``n`` is negative.
    Examples:
        >>> taeda.polygamma(1, taeda.tensor([1.0]))  # pi ** 2 / 6
        tensor([1.6449])
    """
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got n={n}")
    if n == 0:
        return digamma(input)
    if n == 1:
        return trigamma(input)
    factorial = float(math.factorial(n)) if n <= 170 else math.inf  # 171! is beyond float64
    return mul(zeta(float(n + 1), input), factorial if n % 2 else -factorial)


def _polygamma_method(input, n):
    """The derivative of order ``n`` of :func:`digamma`; see :func:`polygamma`.

    Args:
        input: a tensor of any sizes.
        n: the order, an int that is not negative.
    Returns:
        The sizes of ``input``.
    Examples:
        >>> taeda.tensor([1.0]).polygamma(1)  # pi ** 2 / 6
        tensor([1.6449])
    """
    return polygamma(n, input)


def _polygamma_inplace(input, n):
    """In-place form of :func:`polygamma`."""
    expect_tensors("polygamma_", input=input)
    if not input.is_floating_point():
        raise RuntimeError(
            f"polygamma_: result type {_core.get_default_dtype()} can't be cast to the desired output type "
            f"{input.dtype}"
        )
    return input.copy_(polygamma(n, before_write(input)))


for _name, _method in (("polygamma", _polygamma_method), ("polygamma_", _polygamma_inplace)):
    METHODS[_name] = _method
    _method.__name__ = _name
    install(_name, _method)


@composite(inplace=True, out=True)
def mvlgamma(input, p):
    """The logarithm of the multivariate gamma function: ``p * (p - 1) / 4 * log(pi)`` plus the sum of ``lgamma(input -
    j / 2)`` for ``j`` from 0 to ``p - 1``.

    Args:
        input: a tensor of any sizes, of numbers above ``(p - 1) / 2``.
        p: the dimension, an int of at least 1.
    Returns:
        The sizes of ``input``; its dtype, for integers the default floating-point dtype.
    Raises:
        RuntimeError: ``p`` is below 1.
    Examples:
        >>> taeda.mvlgamma(taeda.tensor([3.0]), 1), taeda.lgamma(taeda.tensor([3.0]))
        (tensor([0.6931]), tensor([0.6931]))
    """
    if not is_index(p):
        raise TypeError(f"mvlgamma(): argument 'p' (position 2) must be int, not {type(p).__name__}")
    p = int(p)
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    constant = 0.25 * p * (p - 1) * math.log(math.pi)
    halves = arange(p, dtype=input.dtype if input.is_floating_point() else _core.get_default_dtype()) / 2
    return add(lgamma(sub(unsqueeze(input, -1), halves)).sum(-1), constant)


@pointwise(dtypes=("float",), domain=(0.5, 4), second=False, tensors=("input", "other"))
def igamma(input, other):
    """The regularised lower incomplete gamma function: the integral of ``t ** (input - 1) * exp(-t)`` for ``t`` from 0
    to ``other``, divided by ``gamma(input)``. Differentiable with respect to ``other``.

    Args:
        input: a tensor of numbers that are not negative; NaN where one is.
        other: a tensor of the same; the two broadcast.
    Examples:
        >>> taeda.igamma(taeda.tensor([1.0]), taeda.tensor([1.0]))  # 1 - 1 / e
        tensor([0.6321])
    """
    return s.igamma(input, other)


@pointwise(dtypes=("float",), domain=(0.5, 4), second=False, tensors=("input", "other"))
def igammac(input, other):
    """The regularised upper incomplete gamma function: ``1 - igamma(input, other)``, accurate also where it is small.
    Differentiable with respect to ``other``. Arguments as of :func:`igamma`.

    Examples:
        >>> taeda.igammac(taeda.tensor([1.0]), taeda.tensor([1.0]))  # 1 / e
        tensor([0.3679])
    """
    return s.igammac(input, other)


def _gamma_density(input, other):
    """``other^(input - 1) exp(-other) / gamma(input)``."""
    return exp(sub(sub(mul(sub(input, 1), log(other)), other), lgamma(input)))


igamma.vjp(input=no_derivative("igamma", "input"), other=lambda g, input, other: mul(g, _gamma_density(input, other)))
igammac.vjp(
    input=no_derivative("igammac", "input"), other=lambda g, input, other: neg(mul(g, _gamma_density(input, other)))
)
alias(lgamma, "gammaln", method=False)
alias(digamma, "psi", method=False)
alias(igamma, "gammainc", method=False)
alias(igammac, "gammaincc", method=False)


# ---- entropy --------------------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.1, 2))
def entr(input):
    """``-input * log(input)``: 0 at 0, minus infinity below. Its sum over probabilities is their entropy.

    Examples:
        >>> taeda.special.entr(taeda.tensor([0.5, 0.25, 0.25])).sum() / math.log(2)  # in bits
        tensor(1.5000)
    """
    return s.select(
        input == 0, s.like(input, 0.0), s.select(input < 0, s.like(input, float("-inf")), -input * s.log(input))
    )


entr.vjp(input=lambda g, input: neg(mul(g, add(log(input), 1))))


@composite(method=False, out=True, out_aligned=("input",))
def log_ndtr(input):
    """``log(ndtr(input))``, accurate also where the area is tiny.

    Returns:
        The sizes of ``input``; its dtype, for integers and bools the default floating-point dtype.
    Examples:
        >>> taeda.special.log_ndtr(taeda.tensor([0.0, -40.0]))
        tensor([-6.9315e-01, -8.0461e+02])
    """
    return log_ndtr_kernel(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def log_ndtr_kernel(input):
    """The kernel of :func:`log_ndtr`: by :func:`erfcx` below -1."""
    scaled = input * -0.7071067811865476
    far = s.log(s.erfcx(scaled) * 0.5) - input * input * 0.5
    near = s.log1p(s.erfc(-scaled) * -0.5)
    return s.select(input < -1.0, far, near)


log_ndtr_kernel.vjp(
    input=lambda g, input: true_divide(mul(g, math.sqrt(2 / math.pi)), erfcx(mul(input, -math.sqrt(0.5))))
)
