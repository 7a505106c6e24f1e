"""Scalar mathematics: functions from kernel Values to Values, vector or scalar, written once for every target.

A function that is defined for complex numbers takes a :class:`Complex` as well.
"""

from __future__ import annotations

import functools

from . import basic, complex_functions, exponential, trigonometric
from .basic import (
    any_lane as any_lane,
)
from .basic import (
    bits_of as bits_of,
)
from .basic import (
    ceil as ceil,
)
from .basic import (
    copysign as copysign,
)
from .basic import (
    floor as floor,
)
from .basic import (
    fma as fma,
)
from .basic import (
    fmax as fmax,
)
from .basic import (
    fmin as fmin,
)
from .basic import (
    frac as frac,
)
from .basic import (
    frexp as frexp,
)
from .basic import (
    gcd as gcd,
)
from .basic import (
    integer_divide as integer_divide,
)
from .basic import (
    integer_floor_divide as integer_floor_divide,
)
from .basic import (
    integer_fmod as integer_fmod,
)
from .basic import (
    integer_pow as integer_pow,
)
from .basic import (
    integer_remainder as integer_remainder,
)
from .basic import (
    isneginf as isneginf,
)
from .basic import (
    isposinf as isposinf,
)
from .basic import (
    lcm as lcm,
)
from .basic import (
    like as like,
)
from .basic import (
    maximum as maximum,
)
from .basic import (
    minimum as minimum,
)
from .basic import (
    nextafter as nextafter,
)
from .basic import (
    poly as poly,
)
from .basic import (
    round as round,
)
from .basic import (
    shift_left as shift_left,
)
from .basic import (
    shift_right as shift_right,
)
from .basic import (
    sign as sign,
)
from .basic import (
    signbit as signbit,
)
from .basic import (
    trunc as trunc,
)
from .complex_functions import (
    hypot as hypot,
)
from .complex_functions import (
    polar as polar,
)
from .complex_functions import (
    truth as truth,
)
from .complexes import (
    Complex as Complex,
)
from .exponential import (
    log_sigmoid as log_sigmoid,
)
from .exponential import (
    logaddexp as logaddexp,
)
from .exponential import (
    logaddexp2 as logaddexp2,
)
from .exponential import (
    xlog1py as xlog1py,
)
from .exponential import (
    xlogy as xlogy,
)
from .remainders import (
    divide as divide,
)
from .remainders import (
    floor_divide as floor_divide,
)
from .remainders import (
    fmod as fmod,
)
from .remainders import (
    remainder as remainder,
)
from .remainders import (
    trunc_divide as trunc_divide,
)
from .special import (
    digamma as digamma,
)
from .special import (
    erf as erf,
)
from .special import (
    erfc as erfc,
)
from .special import (
    erfcx as erfcx,
)
from .special import (
    erfinv as erfinv,
)
from .special import (
    lgamma as lgamma,
)
from .special import (
    ndtr as ndtr,
)
from .trigonometric import (
    atan2 as atan2,
)


def _either(name: str, real, of_complex):
    """One function for both kinds of number, by what it is given."""

    @functools.wraps(real)
    def apply(x, *args):
        if isinstance(x, Complex) or any(isinstance(a, Complex) for a in args):
            x = x if isinstance(x, Complex) else Complex(x)
            return of_complex(x, *(x._other(a) for a in args))
        return real(x, *args)

    apply.__name__ = apply.__qualname__ = name
    return apply


def _both(module, *names: str) -> None:
    for name in names:
        globals()[name] = _either(name, getattr(module, name), getattr(complex_functions, name))


_both(exponential, "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sigmoid")
_both(exponential, "pow", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
_both(trigonometric, "sin", "cos", "tan", "asin", "acos", "atan")
_both(basic, "isnan", "isinf", "isfinite")
abs = _either("abs", basic.abs, complex_functions.modulus)
sgn = _either("sgn", basic.sign, complex_functions.sgn)


def _real_angle(x):
    turned = select(x < 0, like(x, 3.141592653589793), like(x, 0.0))
    return select(x != x, x, turned)


angle = _either("angle", _real_angle, complex_functions.angle)


def conj(x):
    """The complex conjugate; a real number is its own."""
    return x.conj() if isinstance(x, Complex) else x


def select(condition, a, b):
    """``a`` where ``condition``, else ``b``."""
    if isinstance(a, Complex) or isinstance(b, Complex):
        known = a if isinstance(a, Complex) else b
        return complex_functions.choose(condition, known._other(a), known._other(b))
    return basic.select(condition, a, b)
