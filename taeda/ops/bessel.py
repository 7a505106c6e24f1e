"""Bessel functions of the first and second kind, the modified ones, and Airy's function, of real argument."""

from __future__ import annotations

from ..kernels import scalar as s
from .pointwise import mul, neg, over_nonzero, sub, times_itself, true_divide, where_nonzero
from .table import alias, pointwise

# ---- modified, first kind --------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference="i0")
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
    other=lambda g, input: over_nonzero(g, input),
)
i0.vjp(input=lambda g, input: mul(g, i1(input)))
i0e.vjp(input=lambda g, input, out: mul(g, sub(i1e(input), mul(input.sgn(), out))))
i1.vjp(input=lambda g, input, out: mul(g, sub(i0(input), i1_over(input, out))))
i1e.vjp(input=lambda g, input, out: mul(g, sub(sub(i0e(input), mul(input.sgn(), out)), i1_over(input, out))))


# ---- modified, second kind -------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def modified_bessel_k0(input):
    """The modified Bessel function of the second kind of order 0: infinite at 0, NaN below. Not differentiable."""
    return s.bessel_k0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def modified_bessel_k1(input):
    """The modified Bessel function of the second kind of order 1: infinite at 0, NaN below. Not differentiable."""
    return s.bessel_k1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def scaled_modified_bessel_k0(x):
    """:func:`modified_bessel_k0` times ``exp(x)``, which does not underflow. Not differentiable."""
    return s.bessel_k0e(x)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def scaled_modified_bessel_k1(x):
    """:func:`modified_bessel_k1` times ``exp(x)``, which does not underflow. Not differentiable."""
    return s.bessel_k1e(x)


alias(i0, "modified_bessel_i0", method=False)
alias(i1, "modified_bessel_i1", method=False)


# ---- first and second kind -------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def bessel_j0(input):
    """The Bessel function of the first kind of order 0. Not differentiable."""
    return s.bessel_j0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def bessel_j1(input):
    """The Bessel function of the first kind of order 1. Not differentiable."""
    return s.bessel_j1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def bessel_y0(input):
    """The Bessel function of the second kind of order 0: minus infinity at 0, NaN below. Not differentiable."""
    return s.bessel_y0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def bessel_y1(input):
    """The Bessel function of the second kind of order 1: minus infinity at 0, NaN below. Not differentiable."""
    return s.bessel_y1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def spherical_bessel_j0(x):
    """The spherical Bessel function of the first kind of order 0, ``sin(x) / input``. Not differentiable."""
    return s.spherical_bessel_j0(x)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def airy_ai(x):
    """Airy's function of the first kind, the solution of ``y'' = x * y`` that falls to 0. Not differentiable."""
    return s.airy_ai(x)
