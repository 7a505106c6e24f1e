"""Special functions under the names of ``torch.special``."""

from .ops.elementary import exp2, expm1, log1p, logit, sigmoid as expit, sinc, xlog1py, xlogy
from .ops.pointwise import round
from .ops.reduction import logsumexp
from .ops.softmax import log_softmax, softmax
from .ops.special import (
    digamma,
    digamma as psi,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    lgamma as gammaln,
    log_ndtr,
    mvlgamma as multigammaln,
    ndtr,
    polygamma,
    zeta,
)

__all__ = [name for name in dir() if not name.startswith("_")]
