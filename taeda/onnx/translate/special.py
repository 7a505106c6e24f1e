"""Special functions: the kernels' computations, as nodes."""

from __future__ import annotations

import inspect
from typing import Any

from taeda.ops.table import OPS

from ..writer import Value, Writer
from .scalars import write
from .table import translates

#: Ops whose expression is written as it is.
_EXPRESSIONS = """
    lgamma digamma trigamma erfinv erfcx ndtri i0 i0e i1 i1e zeta igamma igammac
    bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
    scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p
""".split()


def _expression(name: str) -> None:
    def translator(g: Writer, *operands: Any) -> Value:
        return write(g, OPS[name], *operands)

    own = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("g", *OPS[name].params)]
    translator.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    translates(name)(translator)


for _name in _EXPRESSIONS:
    _expression(_name)


@translates("log_ndtr")
def log_ndtr(g: Writer, input: Value) -> Value:
    return write(g, OPS["log_ndtr_kernel"], input)
