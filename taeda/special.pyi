"""Types of taeda.special. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
_name_within: Any

def airy_ai(x: Any, *, out: Any = None) -> Tensor:
    r"""Airy's function of the first kind: the solution of ``y'' = x * y`` that falls to 0 for large ``x``"""
def bessel_j0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the first kind of order 0, ``J_0``: the solution of ``x y'' + y' + x y = ..."""
def bessel_j1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the first kind of order 1, ``J_1 = -J_0'``. Not differentiable."""
def bessel_y0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the second kind of order 0, ``Y_0``: minus infinity at 0, NaN below"""
def bessel_y1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the second kind of order 1, ``Y_1 = -Y_0'``: minus infinity at 0, NaN below"""
def chebyshev_polynomial_t(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the first kind and degree ``n``: ``cos(n a)`` at ``x = cos(a)``."""
def chebyshev_polynomial_u(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the second kind and degree ``n``: ``sin((n + 1) a) / sin(a)`` at ``x = ..."""
def chebyshev_polynomial_v(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the third kind and degree ``n``: ``cos((n + 1/2) a) / cos(a / 2)`` at ..."""
def chebyshev_polynomial_w(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the fourth kind and degree ``n``: ``sin((n + 1/2) a) / sin(a / 2)`` at ..."""
def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`: ``gamma'(input) / gamma(input)``."""
def entr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input * log(input)``: 0 at 0, minus infinity below. Its sum over probabilities is their entropy."""
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` for ``t`` from 0 to ..."""
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 - erf(input)``, accurate also where it is small."""
def erfcx(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``exp(input ** 2) * erfc(input)``, which does not vanish where :func:`erfc` does."""
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`erf`; infinite at -1 and 1, NaN beyond."""
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``2 ** input``."""
def expit(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``: any number to a probability."""
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input - 1``, exact also for small ``input``, where the difference would cancel."""
def gammainc(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised lower incomplete gamma function: the integral of ``t ** (input - 1) * exp(-t)`` ..."""
def gammaincc(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised upper incomplete gamma function: ``1 - igamma(input, other)``, accurate also ..."""
def gammaln(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm of ``|gamma(input)|``; at ``n + 1`` it is the logarithm of the factorial of ``n``."""
def hermite_polynomial_h(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""The physicists' Hermite polynomial of degree ``n``; NaN above degree 128 (``float32``) or 512 ..."""
def hermite_polynomial_he(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""The probabilists' Hermite polynomial of degree ``n``; NaN above degree 128 (``float32``) or 512 ..."""
def i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0, ``I_0``: the sum of ``(input ** 2 / ..."""
def i0e(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``I_0(input) * exp(-|input|)``, which does not overflow. See :func:`i0`."""
def i1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 1, ``I_1``: the derivative of :func:`i0`."""
def i1e(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``I_1(input) * exp(-|input|)``, which does not overflow. See :func:`i1`."""
def laguerre_polynomial_l(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Laguerre's polynomial of degree ``n``."""
def legendre_polynomial_p(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r"""Legendre's polynomial of degree ``n``."""
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(1 + input)``, exact also for small ``input``, where the sum would be 1."""
def log_ndtr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(ndtr(input))``, accurate also where the area is tiny."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its ..."""
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    r"""``log(input / (1 - input))``: the inverse of :func:`sigmoid`."""
def logsumexp(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``log(sum(exp(input)))`` over ``dim``, without overflow: a smooth maximum."""
def modified_bessel_i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0, ``I_0``: the sum of ``(input ** 2 / ..."""
def modified_bessel_i1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 1, ``I_1``: the derivative of :func:`i0`."""
def modified_bessel_k0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the second kind of order 0, ``K_0``: infinite at 0, NaN below"""
def modified_bessel_k1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the second kind of order 1, ``K_1``: infinite at 0, NaN below"""
def multigammaln(input: Tensor, p: Any, *, out: Any = None) -> Tensor:
    r"""The logarithm of the multivariate gamma function: ``p * (p - 1) / 4 * log(pi)`` plus the sum of ..."""
def ndtr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The area under the standard normal density left of ``input``: ``(1 + erf(input / sqrt(2))) / 2``."""
def ndtri(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`ndtr`: the argument left of which the area is ``input``; NaN outside of ..."""
def polygamma(n: builtins.int, input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of order ``n`` of :func:`digamma`: ``(-1) ** (n + 1) * n! * zeta(n + 1, input)`` ..."""
def psi(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`: ``gamma'(input) / gamma(input)``."""
def round(input: Tensor, *, decimals: builtins.int = 0, out: Any = None) -> Tensor:
    r"""The nearest whole number, or the nearest multiple of ``10 ** -decimals``; a half goes to the ..."""
def scaled_modified_bessel_k0(x: Any, *, out: Any = None) -> Tensor:
    r"""``K_0(x) * exp(x)``, which does not underflow. Not differentiable. See :func:`modified_bessel_k0`."""
def scaled_modified_bessel_k1(x: Any, *, out: Any = None) -> Tensor:
    r"""``K_1(x) * exp(x)``, which does not underflow. Not differentiable. See :func:`modified_bessel_k1`."""
def shifted_chebyshev_polynomial_t(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_t` at ``2 * x - 1``, for ``x`` in [0, 1]."""
def shifted_chebyshev_polynomial_u(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_u` at ``2 * x - 1``, for ``x`` in [0, 1]."""
def shifted_chebyshev_polynomial_v(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_v` at ``2 * x - 1``, for ``x`` in [0, 1]."""
def shifted_chebyshev_polynomial_w(x: Any, n: builtins.int, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_w` at ``2 * x - 1``, for ``x`` in [0, 1]."""
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``sin(pi * input) / (pi * input)``, 1 at 0."""
def softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow: scores become probabilities ..."""
def spherical_bessel_j0(x: Any, *, out: Any = None) -> Tensor:
    r"""The spherical Bessel function of the first kind of order 0: ``sin(x) / x``, 1 at 0"""
def xlog1py(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log1p(other)``, 0 where ``input`` is 0 and ``other`` is not NaN."""
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN: a term of an entropy."""
def zeta(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Hurwitz's zeta function: the sum of ``(k + other) ** -input`` for ``k`` from 0 on; infinite at ..."""
