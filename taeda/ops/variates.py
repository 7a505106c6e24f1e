"""Random numbers whose distribution is given element by element: binomial, gamma and Dirichlet, with the derivatives of
the continuous ones with respect to their parameters.

A sample ``x`` of a distribution with the cumulative function ``F(x; a)`` and the density ``p(x; a)`` moves with its
parameter as ``dx/da = -(dF/da) / p`` (implicit reparametrisation, Figurnov, Mohamed and Mnih 2018). ``dF/da`` is the
integral of the score over one side of ``x``; it is taken here over the side on which the score keeps its sign or that
is small, so that little cancels, by the double-exponential rule of Takahasi and Mori (1974).
"""

from __future__ import annotations

import functools
import math

from .. import _core
from .._core import Tensor
from .._core import sampling as core
from .._core.mends import not_tensor
from .elementary import exp, expm1, log, log1p
from .extrema import minimum
from .indexing import where
from .pointwise import abs
from .powers import sqrt
from .special import digamma
from .table import composite, no_derivative, primitive
from .views import broadcast_tensors

_STEP = 1 / 12
_FAR = 700.0  # exp of more is infinite, and derivatives of what it makes 0 are 0 * inf
_TINY = {"float32": 1.1754943508222875e-38, "float64": 2.2250738585072014e-308}
_INSIDE = {"float32": (_TINY["float32"], 1 - 2.0**-24), "float64": (_TINY["float64"], 1 - 2.0**-53)}  # 0 to 1


def _float64(name: str, label: str, x: Tensor) -> Tensor:
    """``x`` in float64 and contiguous, refused in the dtypes that PyTorch has no samples in."""
    if not isinstance(x, Tensor):
        raise not_tensor(f"{name}(): argument '{label}'", x)
    if x.dtype.name not in _TINY:
        raise NotImplementedError(f"{name}: expected '{label}' of float32 or float64, got {x.dtype}. Convert it first")
    return x.detach().to(_core.float64).contiguous()


# ---- binomial --------------------------------------------------------------------------------------------------------


@primitive(method=False, random=True)
def binomial(count, prob, generator=None):
    """Random numbers of successes in ``count`` trials that each succeed with probability ``prob``.

    Args:
        count: how many trials, ``float32`` or ``float64``, any sizes.
        prob: probabilities, of the same dtype; broadcasts with ``count``.
    Returns:
        The sizes to which both broadcast, in their dtype.
    Raises:
        RuntimeError: the dtypes differ.
    Examples:
        >>> generator = taeda.manual_seed(0)
        >>> heads = taeda.binomial(taeda.full((1000,), 10.0), taeda.tensor(0.5))
        >>> bool(4.7 < heads.mean() < 5.3), heads.max() <= 10
        (True, tensor(True))
    """
    n, p = _float64("binomial", "count", count), _float64("binomial", "prob", prob)
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"binomial: expected prob of the dtype of count, {count.dtype}, but found {prob.dtype}")
    n, p = (x.contiguous() for x in broadcast_tensors(n, p))
    drawn = _core.empty(n.shape, _core.float64)
    core.fill_binomial(drawn, n, p, generator)
    return drawn.to(count.dtype)


binomial.vjp(count=no_derivative("binomial", "count"), prob=no_derivative("binomial", "prob"))


# ---- gamma and Dirichlet ---------------------------------------------------------------------------------------------


@primitive(method=False, random=True)
def _standard_gamma(input, generator=None):
    """Gamma numbers of the shapes in ``input`` and scale 1, differentiable with respect to the shapes.

    Args:
        input: float32 or float64, not negative.
        generator: a Generator. Default: the global one.
    """
    shapes = _float64("_standard_gamma", "input", input)
    drawn = _core.empty(shapes.shape, _core.float64)
    core.fill_gamma(drawn, shapes, _TINY[input.dtype.name], generator)
    return drawn.to(input.dtype)


_standard_gamma.vjp(input=lambda g, input, out: g * _standard_gamma_grad(input, out))


@primitive(method=False, random=True)
def _sample_dirichlet(input, generator=None):
    """Samples of the Dirichlet distribution with the concentrations in the last dimension of ``input``, differentiable
    with respect to them.

    Args:
        input: (*, n), float32 or float64, positive.
        generator: a Generator. Default: the global one.
    Returns:
        (*, n): each row is positive, below 1 and has the sum 1.
    """
    shapes = _float64("_sample_dirichlet", "input", input)
    drawn = _core.empty(shapes.shape, _core.float64)
    core.fill_gamma(drawn, shapes, 0.0, generator)
    # not 1, where the density of one component may be infinite
    return (drawn / drawn.sum(-1, True)).to(input.dtype).clamp(*_INSIDE[input.dtype.name])


@_sample_dirichlet.vjp_all("input")
def _(g, input, out):
    slope = _dirichlet_grad(out, input, input.sum(-1, True).expand(input.shape))
    return (slope * (g - (g * out).sum(-1, True)),)


@functools.cache
def _nodes() -> tuple[tuple[float, float], ...]:
    """Abscissas and weights of the double-exponential rule on (0, inf), for functions that decay over a length of about
    1.
    """
    nodes = []
    for i in range(-44, 31):
        t = i * _STEP
        v = math.exp(math.pi / 2 * math.sinh(t))
        nodes.append((v, _STEP * math.pi / 2 * math.cosh(t) * v))
    return tuple(nodes)


@composite(method=False)
def _standard_gamma_grad(input, output):
    """The derivative of samples ``output`` of gamma distributions by the shapes ``input``.

    With ``t = x exp(sv)`` for ``s`` of 1 (above ``x``) or -1 (below), ``dx/da`` is ``s x`` times the integral over
    ``v > 0`` of ``(log t - digamma(a)) exp(s a v - x (exp(sv) - 1))``.
    """
    a, x = input.to(_core.float64), output.to(_core.float64).clamp(_TINY["float64"])
    gap = log(x) - digamma(a)
    side = where((gap.detach() < 0) | (x.detach() < 0.5), -1.0, 1.0)
    length = 1 / (abs(a - x) + minimum(a, sqrt(a)))
    total = 0
    for node, weight in _nodes():
        v = (side * (length * node)).clamp(max=_FAR)
        total = total + (gap + v) * exp(a * v - x * expm1(v)) * weight
    return (side * x * length * total).to(input.dtype)


@composite(method=False)
def _dirichlet_grad(x, alpha, total):
    """The derivative of a component ``x`` of a Dirichlet sample by its concentration ``alpha``, over
    ``1 - x``: as a sample of the beta distribution of ``alpha`` and ``total - alpha``.

    Below ``x`` with ``y, p, q = x, a, b`` and above it with ``1 - x, b, a``, the integral is taken over ``v > 0``, of
    ``y exp(-p v) ((1 - y exp(-v)) / (1 - y)) ** (q - 1)`` times the score.
    """
    y, a, b = x.to(_core.float64).clamp(_TINY["float64"]), alpha.to(_core.float64), (total - alpha).to(_core.float64)
    mean = digamma(a) - digamma(a + b)
    below = (log(y) < mean).detach() | ((y < 0.5) & (y * (a + b) < 0.5)).detach()
    rest = 1 - y
    near, far = where(below, y, rest), where(below, rest, y)
    p, q = where(below, a, b), where(below, b, a)
    ratio = near / far
    length = 1 / (abs(p - q * ratio) + sqrt(p) + sqrt(q * near) / far)
    log_x = log(y)
    sum = 0
    for node, weight in _nodes():
        v = length * node
        drop = -expm1(-v)
        away = log1p(ratio * drop)  # log((1 - near exp(-v)) / (1 - near))
        score = where(below, log_x - v, log_x + away) - mean
        sum = sum + score * exp((q - 1) * away - p * v) * weight
    return (where(below, -sum * ratio, sum) * length).to(x.dtype)
