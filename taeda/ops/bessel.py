"""Bessel functions of the first and second kind, the modified ones, and Airy's function, of real argument."""

from __future__ import annotations

from ..kernels import scalar as s
from .pointwise import mul, neg, over_nonzero, sub, times_itself, true_divide, where_nonzero
from .table import alias, pointwise

# ---- modified, first kind --------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), reference="i0")
def i0(input):
    """The modified Bessel function of the first kind of order 0, ``I_0``: the sum of ``(input ** 2 / 4) ** k / (k!) **
    2`` for ``k`` from 0 on.

    Examples:
        >>> taeda.i0(taeda.tensor([0.0, 1.0]))
        tensor([1.0000, 1.2661])
    """
    return s.i0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i0e(input):
    """``I_0(input) * exp(-|input|)``, which does not overflow. See :func:`i0`.

    Examples:
        >>> taeda.special.i0e(taeda.tensor([0.0, 1000.0]))
        tensor([1.0000, 0.0126])
    """
    return s.i0e(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i1(input):
    """The modified Bessel function of the first kind of order 1, ``I_1``: the derivative of :func:`i0`.

    Examples:
        >>> taeda.special.i1(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5652])
    """
    return s.i1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def i1e(input):
    """``I_1(input) * exp(-|input|)``, which does not overflow. See :func:`i1`.

    Examples:
        >>> taeda.special.i1e(taeda.tensor([0.0, 1000.0]))
        tensor([0.0000, 0.0126])
    """
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
    """The modified Bessel function of the second kind of order 0, ``K_0``: infinite at 0, NaN below. Not
    differentiable.

    Examples:
        >>> taeda.special.modified_bessel_k0(taeda.tensor([0.0, 1.0]))
        tensor([   inf, 0.4210])
    """
    return s.bessel_k0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def modified_bessel_k1(input):
    """The modified Bessel function of the second kind of order 1, ``K_1``: infinite at 0, NaN below. Not
    differentiable.

    Examples:
        >>> taeda.special.modified_bessel_k1(taeda.tensor([0.0, 1.0]))
        tensor([   inf, 0.6019])
    """
    return s.bessel_k1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def scaled_modified_bessel_k0(x):
    """``K_0(x) * exp(x)``, which does not underflow. Not differentiable. See :func:`modified_bessel_k0`.

    Examples:
        >>> taeda.special.scaled_modified_bessel_k0(taeda.tensor([1.0]))
        tensor([1.1445])
    """
    return s.bessel_k0e(x)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def scaled_modified_bessel_k1(x):
    """``K_1(x) * exp(x)``, which does not underflow. Not differentiable. See :func:`modified_bessel_k1`.

    Examples:
        >>> taeda.special.scaled_modified_bessel_k1(taeda.tensor([1.0]))
        tensor([1.6362])
    """
    return s.bessel_k1e(x)


alias(i0, "modified_bessel_i0", method=False)
alias(i1, "modified_bessel_i1", method=False)


# ---- first and second kind -------------------------------------------------------------------------------------------


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def bessel_j0(input):
    """The Bessel function of the first kind of order 0, ``J_0``: the solution of ``x y'' + y' + x y = 0`` that is 1 at
    0. Not differentiable.

    Examples:
        >>> taeda.special.bessel_j0(taeda.tensor([0.0, 1.0]))
        tensor([1.0000, 0.7652])
    """
    return s.bessel_j0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def bessel_j1(input):
    """The Bessel function of the first kind of order 1, ``J_1 = -J_0'``. Not differentiable.

    Examples:
        >>> taeda.special.bessel_j1(taeda.tensor([0.0, 1.0]))
        tensor([0.0000, 0.4401])
    """
    return s.bessel_j1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def bessel_y0(input):
    """The Bessel function of the second kind of order 0, ``Y_0``: minus infinity at 0, NaN below. Not differentiable.

    Examples:
        >>> taeda.special.bessel_y0(taeda.tensor([0.0, 1.0]))
        tensor([  -inf, 0.0883])
    """
    return s.bessel_y0(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False, domain=(0.2, 4))
def bessel_y1(input):
    """The Bessel function of the second kind of order 1, ``Y_1 = -Y_0'``: minus infinity at 0, NaN below. Not
    differentiable.

    Examples:
        >>> taeda.special.bessel_y1(taeda.tensor([0.0, 1.0]))
        tensor([   -inf, -0.7812])
    """
    return s.bessel_y1(input)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def spherical_bessel_j0(x):
    """The spherical Bessel function of the first kind of order 0: ``sin(x) / x``, 1 at 0. Not differentiable.

    Examples:
        >>> taeda.special.spherical_bessel_j0(taeda.tensor([0.0, math.pi / 2]))
        tensor([1.0000, 0.6366])
    """
    return s.spherical_bessel_j0(x)


@pointwise(promote="float", dtypes=("float",), method=False, inplace=False)
def airy_ai(x):
    """Airy's function of the first kind: the solution of ``y'' = x * y`` that falls to 0 for large ``x``. Not
    differentiable.

    Examples:
        >>> taeda.special.airy_ai(taeda.tensor([0.0, 1.0]))
        tensor([0.3550, 0.1353])
    """
    return s.airy_ai(x)
