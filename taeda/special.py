"""Special functions under the names of ``torch.special``."""

# ruff: noqa: I001 - by family

from .ops.bessel import (
    airy_ai, bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i0 as modified_bessel_i0, i0e, i1,
    i1 as modified_bessel_i1, i1e, modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0,
    scaled_modified_bessel_k1, spherical_bessel_j0,
)  # fmt: skip
from .ops.elementary import exp2, expm1, log1p, logit, sigmoid as expit, sinc, xlog1py, xlogy
from .ops import orthogonal as _orthogonal
from .ops.pointwise import round
from .ops.reduction import logsumexp
from .ops.softmax import log_softmax, softmax
from .ops.special import (
    digamma, digamma as psi, entr, erf, erfc, erfcx, erfinv, igamma as gammainc, igammac as gammaincc,
    lgamma as gammaln, log_ndtr, mvlgamma as multigammaln, ndtr, ndtri, polygamma, zeta,
)  # fmt: skip

from .ops.registry import PUBLIC as _PUBLIC, name_within as _name_within

globals().update(_PUBLIC["special"])  # ops whose stanza says so: all orthogonal polynomials
__all__ = [name for name in dir() if not name.startswith("_")]
_name_within(globals(), "special_", __all__)
