"""Types of taeda.special. Written by tools/stubs.py: do not edit."""

# ruff: noqa
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from . import Number, Size, Tensor, _device, _dtype, return_types
_name_within: Any

def airy_ai(x: Any, *, out: Any = None) -> Tensor:
    r"""Airy's function of the first kind, the solution of ``y'' = x * y`` that falls to 0. Not differentiable."""
def bessel_j0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the first kind of order 0. Not differentiable."""
def bessel_j1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the first kind of order 1. Not differentiable."""
def bessel_y0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the second kind of order 0: minus infinity at 0, NaN below. Not differentiable."""
def bessel_y1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The Bessel function of the second kind of order 1: minus infinity at 0, NaN below. Not differentiable."""
def chebyshev_polynomial_t(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the first kind and degree ``n``: ``cos(n a)`` at ``x = cos(a)``."""
def chebyshev_polynomial_u(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the second kind and degree ``n``: ``sin((n + 1) a) / sin(a)`` at ``x = cos(a)``."""
def chebyshev_polynomial_v(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the third kind and degree ``n``: ``cos((n + 1/2) a) / cos(a / 2)`` at"""
def chebyshev_polynomial_w(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Chebyshev's polynomial of the fourth kind and degree ``n``: ``sin((n + 1/2) a) / sin(a / 2)`` at"""
def digamma(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`."""
def entr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``-input * log(input)``: 0 at 0, minus infinity below."""
def erf(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``input``."""
def erfc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 - erf(input)``, accurate in the tail."""
def erfcx(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``exp(input ** 2) * erfc(input)``."""
def erfinv(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`erf`; infinite at -1 and 1."""
def exp2(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``2 ** input``."""
def expit(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``1 / (1 + exp(-input))``."""
def expm1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``e ** input - 1``, exact for small ``input``."""
def gammainc(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised lower incomplete gamma function: the integral of ``t^(input - 1) exp(-t)`` from 0 to
    ``other``,"""
def gammaincc(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""The regularised upper incomplete gamma function, ``1 - igamma(input, other)``, accurate where it is small."""
def gammaln(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The logarithm of ``|gamma(input)|``."""
def hermite_polynomial_h(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""The physicists' Hermite polynomial of degree ``n``; NaN above degree 128 (float32) or 512 (float64)."""
def hermite_polynomial_he(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""The probabilists' Hermite polynomial of degree ``n``; NaN above degree 128 (float32) or 512 (float64)."""
def i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0."""
def i0e(input: Tensor, *, out: Any = None) -> Tensor:
    r""":func:`i0` times ``exp(-|input|)``, which does not overflow."""
def i1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 1."""
def i1e(input: Tensor, *, out: Any = None) -> Tensor:
    r""":func:`i1` times ``exp(-|input|)``, which does not overflow."""
def laguerre_polynomial_l(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Laguerre's polynomial of degree ``n``."""
def legendre_polynomial_p(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r"""Legendre's polynomial of degree ``n``."""
def log1p(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(1 + input)``, exact for small ``input``."""
def log_ndtr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``log(ndtr(input))``, accurate in the lower tail."""
def log_softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``input - log(sum(exp(input)))`` along ``dim``: the logarithm of :func:`softmax`, without its loss of
    precision."""
def logit(input: Tensor, eps: Any = None, *, out: Any = None) -> Tensor:
    r"""``log(input / (1 - input))``; with ``eps``, of ``input`` held between ``eps`` and ``1 - eps``."""
def logsumexp(input: Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> Tensor:
    r"""``log(sum(exp(input)))`` over ``dim``, without overflow. Integers are taken as the default float."""
def modified_bessel_i0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 0."""
def modified_bessel_i1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the first kind of order 1."""
def modified_bessel_k0(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the second kind of order 0: infinite at 0, NaN below. Not differentiable."""
def modified_bessel_k1(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The modified Bessel function of the second kind of order 1: infinite at 0, NaN below. Not differentiable."""
def multigammaln(input: Tensor, p: Any, *, out: Any = None) -> Tensor:
    r"""The logarithm of the multivariate gamma function of dimension ``p``."""
def ndtr(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The area under the standard normal density left of ``input``."""
def ndtri(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The inverse of :func:`ndtr`: the argument left of which the area is ``input``; NaN outside [0, 1]."""
def polygamma(n: Any, input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of order ``n`` of :func:`digamma`, for ``n >= 0``: ``(-1)^(n+1) n! zeta(n + 1, input)``."""
def psi(input: Tensor, *, out: Any = None) -> Tensor:
    r"""The derivative of :func:`lgamma`."""
def round(input: Tensor, *, decimals: Number = 0, out: Any = None) -> Tensor:
    r"""To the nearest integer, or the nearest multiple of ``10 ** -decimals``; halves to the even one."""
def scaled_modified_bessel_k0(x: Any, *, out: Any = None) -> Tensor:
    r""":func:`modified_bessel_k0` times ``exp(x)``, which does not underflow. Not differentiable."""
def scaled_modified_bessel_k1(x: Any, *, out: Any = None) -> Tensor:
    r""":func:`modified_bessel_k1` times ``exp(x)``, which does not underflow. Not differentiable."""
def shifted_chebyshev_polynomial_t(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_t` at ``2 * x - 1``."""
def shifted_chebyshev_polynomial_u(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_u` at ``2 * x - 1``."""
def shifted_chebyshev_polynomial_v(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_v` at ``2 * x - 1``."""
def shifted_chebyshev_polynomial_w(x: Any, n: Any, *, out: Any = None) -> Tensor:
    r""":func:`chebyshev_polynomial_w` at ``2 * x - 1``."""
def sinc(input: Tensor, *, out: Any = None) -> Tensor:
    r"""``sin(pi x) / (pi x)``, 1 at 0."""
def softmax(input: Tensor, dim: builtins.int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor:
    r"""``exp(input) / sum(exp(input))`` along ``dim``, without overflow."""
def spherical_bessel_j0(x: Any, *, out: Any = None) -> Tensor:
    r"""The spherical Bessel function of the first kind of order 0, ``sin(x) / input``. Not differentiable."""
def xlog1py(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log1p(other)``, 0 where ``input`` is 0 and ``other`` is not NaN."""
def xlogy(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""``input * log(other)``, 0 where ``input`` is 0 and ``other`` is not NaN."""
def zeta(input: Tensor, other: Tensor | Number, *, out: Any = None) -> Tensor:
    r"""Hurwitz's zeta function, the sum of ``(k + other) ** -input`` over k from 0; infinite at ``input`` 1."""
