"""Special functions under the names of ``torch.special``."""

from .ops.elementary import exp2, expm1, log1p, logit, sinc, xlog1py, xlogy
from .ops.elementary import sigmoid as expit
from .ops.pointwise import round
from .ops.reduction import logsumexp
from .ops.softmax import log_softmax, softmax
from .ops.special import (
    digamma,
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    ndtr,
    polygamma,
    zeta,
)
from .ops.special import (
    digamma as psi,
)
from .ops.special import (
    lgamma as gammaln,
)
from .ops.special import (
    mvlgamma as multigammaln,
)

__all__ = [name for name in dir() if not name.startswith("_")]
