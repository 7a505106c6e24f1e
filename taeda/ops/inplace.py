"""In-place methods as functions: ``exp_(x)`` is ``x.exp_()``."""

from __future__ import annotations

from .._core import Tensor, renamed
from .table import METHODS

_NAMES = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_
    atanh_ ceil_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ i0_
    lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_
    sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_
""".split()


def _function(name):
    method = METHODS.get(name) or getattr(Tensor, name)
    if method.__name__ == name:
        return method
    function = renamed(method, name)
    function.__module__ = __name__
    return function


globals().update({name: _function(name) for name in _NAMES})
