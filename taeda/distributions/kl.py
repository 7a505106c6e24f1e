"""Kullback-Leibler divergences ``KL(p || q) = E_p[log p(x) - log q(x)]`` in closed form.

Most are ``-entropy(p) - E_p[log q]``, where the second term needs a few means under p: of x, of its square, of log x,
of ``exp(-x / scale)``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import linalg
from .._core import Tensor
from ..nn.functional import softplus
from ..ops.creation import full_like
from ..ops.elementary import xlogy
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, ExponentialFamily, Independent
from .matrices import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
    _batch_mahalanobis,
    _half_log_det,
)
from .positive import Exponential, Gamma, HalfNormal, Pareto
from .real import Cauchy, Gumbel, Laplace, Normal, Uniform
from .simplex import Beta, ContinuousBernoulli, Dirichlet
from .transformed_distribution import TransformedDistribution
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_found: dict[tuple[type, type], Callable | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: the function gives ``KL(p || q)`` for instances of two classes, and of classes derived from them.

    Args:
        type_p: a class of distributions.
        type_q: another.

    Returns:
        A decorator of ``f(p, q)``, which gives a tensor of the batch shape.

    Raises:
        TypeError: one is no class.

    Examples:
        >>> class Fair(taeda.distributions.Bernoulli):
        ...     def __init__(self):
        ...         super().__init__(probs=taeda.tensor(0.5))
        >>> @taeda.distributions.register_kl(Fair, Fair)
        ... def same(p, q):
        ...     return taeda.tensor(0.0)
        >>> taeda.distributions.kl_divergence(Fair(), Fair())
        tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def declare(function: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = function
        _found.clear()
        return function

    return declare


def _dispatch(type_p: type, type_q: type) -> Callable | None:
    """The function for the most derived pair of classes; None where there is none."""
    fits = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        return None

    def distance(pair: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    left = min(fits, key=distance)
    right = min(fits, key=lambda pair: distance(pair)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """``KL(p || q)``, the mean of ``log(p(x) / q(x))`` over ``x`` of ``p``, in nats: how unlike ``p`` the other one is.

    Args:
        p: a distribution.
        q: another, with a formula for the two classes.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: there is no formula for their classes; see :func:`register_kl`.

    Examples:
        >>> Normal = taeda.distributions.Normal
        >>> taeda.distributions.kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _found:
        _found[kinds] = _dispatch(*kinds)
    function = _found[kinds]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _infinite(like: Tensor) -> Tensor:
    return full_like(like, math.inf)


# ---- of one family ---------------------------------------------------------------------------------------------------
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return one + zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * one).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    return each.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Chyzak & Nielsen 2019."""
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    def constant(d: Any) -> Tensor:
        return d._cont_bern_log_norm() + (-d.probs).log1p()

    return p.mean * (p.logits - q.logits) + constant(p) - constant(q)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    normalizers = a.sum(-1).lgamma() - a.lgamma().sum(-1) - b.sum(-1).lgamma() + b.lgamma().sum(-1)
    return normalizers + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log-normaliser (Nielsen & Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families ({type(p).__name__}, {type(q).__name__}) "
            "cannot be computed using Bregman divergences"
        )
    natural, value, slopes = p._normalizer_and_slopes()
    theirs = q._natural_params
    result = q._log_normalizer(*theirs) - value
    for theta, other, slope in zip(natural, theirs, slopes, strict=True):
        result = result - _sum_rightmost((other - theta) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    shapes = b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return b * (p.rate / q.rate).log() + shapes + (q.rate - p.rate) * a / p.rate


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    growth = (shift + (1 + ratio).lgamma()).exp()
    return ratio * euler_constant - ratio.log() - shift + growth - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions with different transforms is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents with different event dimensions is not implemented")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), n)


# ---- normal vectors: (tr(inv(Sq) Sp) + distance - n + log det Sq - log det Sp) / 2 -----------------------------------
def _log_det(d: Any) -> Tensor:
    if isinstance(d, MultivariateNormal):
        return 2 * _half_log_det(d._unbroadcasted_scale_tril)
    return _batch_lowrank_logdet(*d._parts)


def _distance(q: Any, x: Tensor) -> Tensor:
    if isinstance(q, MultivariateNormal):
        return _batch_mahalanobis(q._unbroadcasted_scale_tril, x)
    factor, diagonal, capacitance = q._parts
    return _batch_lowrank_mahalanobis(factor, diagonal, x, capacitance)


def _roots(p: Any) -> list[Tensor]:
    """Matrices whose products with their own transposes add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _trace(q: Any, root: Tensor) -> Tensor:
    """``tr(inv(Sq) @ root @ root.T)``."""
    if isinstance(q, MultivariateNormal):
        return linalg.solve_triangular(q._unbroadcasted_scale_tril, root, upper=False).pow(2).sum((-2, -1))
    factor, diagonal, capacitance = q._parts
    inner = linalg.solve_triangular(capacitance, factor.mT / diagonal.unsqueeze(-2), upper=False)
    direct = (root * diagonal.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    return direct - (inner @ root).pow(2).sum((-2, -1))


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed: "
            f"{tuple(p.event_shape)}, {tuple(q.event_shape)}"
        )
    trace = sum(_trace(q, root) for root in _roots(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance(q, q.loc - p.loc) - p.event_shape[0])


# ---- means under p ---------------------------------------------------------------------------------------------------
def _uniform_mean_log(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log x over an interval."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _mean_log(p: Any) -> Tensor:
    """``E[log x]``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    return _uniform_mean_log(p.low, p.high)


def _mean_decay(p: Any, scale: Tensor) -> Tensor:
    """``E[exp(-x / scale)]``."""
    if isinstance(p, Exponential):
        return 1 / (1 + 1 / (p.rate * scale))
    if isinstance(p, Gamma):
        return (1 + 1 / (p.rate * scale)) ** -p.concentration
    if isinstance(p, Normal):
        return (0.5 * (p.scale / scale) ** 2 - p.loc / scale).exp()
    return ((-p.low / scale).exp() - (-p.high / scale).exp()) * scale / (p.high - p.low)


# ---- of different families -------------------------------------------------------------------------------------------
def _register(kinds: tuple[type, ...], type_q: type) -> Callable:
    def declare(function: Callable) -> Callable:
        for kind in kinds:
            register_kl(kind, type_q)(function)
        return function

    return declare


@_register((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    distance = p.variance + (p.mean - q.loc) ** 2
    result = 0.5 * (distance / q.scale**2 + math.log(2 * math.pi)) + q.scale.log() - p.entropy()
    return result.masked_fill(p.alpha <= 2, math.inf) if isinstance(p, Pareto) else result


def _outside_positive(p: Any, result: Tensor) -> Tensor:
    """Infinite where p reaches below 0, or its mean is infinite."""
    if isinstance(p, Uniform):
        return result.masked_fill(p.low < 0, math.inf)
    return result.masked_fill(p.alpha <= 1, math.inf) if isinstance(p, Pareto) else result


@_register((Beta, ContinuousBernoulli, Gamma, Pareto, Uniform), Exponential)
def _to_exponential(p: Any, q: Any) -> Tensor:
    return _outside_positive(p, q.rate * p.mean - q.rate.log() - p.entropy())


@_register((Beta, Exponential, Pareto, Uniform), Gamma)
def _to_gamma(p: Any, q: Any) -> Tensor:
    a = q.concentration
    cross = a.lgamma() - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean
    return _outside_positive(p, cross - p.entropy())


@_register((Exponential, Gamma, Normal, Uniform), Gumbel)
def _to_gumbel(p: Any, q: Any) -> Tensor:
    shift = q.loc / q.scale
    return p.mean / q.scale - shift + shift.exp() * _mean_decay(p, q.scale) + q.scale.log() - p.entropy()


@_register((Beta, Uniform), ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    if isinstance(p, Uniform):  # PyTorch's bounds: also where the interval only touches an end
        return result.masked_fill((p.high >= 1) | (p.low <= 0), math.inf)
    return result


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    means = (a - 1) * _uniform_mean_log(p.low, p.high) + (b - 1) * _uniform_mean_log(1 - p.high, 1 - p.low)
    result = a.lgamma() + b.lgamma() - (a + b).lgamma() - means - p.entropy()
    return result.masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    density = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return (-density - p.entropy()).masked_fill(p.low < q.scale, math.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    return (q.entropy() - p.entropy()).masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    # PyTorch's bounds: also where the interval only touches an end
    return (q.entropy() - p.entropy()).masked_fill((q.low >= 0) | (q.high <= 1), math.inf)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    """With the mean distance of a normal number from a point (folded normal distribution)."""
    distance = p.loc - q.loc
    z = distance / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z * z).exp() + distance * (math.sqrt(0.5) * z).erf()
    return mean / q.scale + (2 * q.scale).log() - p.entropy()


_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)  # supports that do not have all positive numbers


def _outside(type_p: type, parameter: str, *kinds: type) -> None:
    """p reaches where q has no density."""
    for type_q in kinds:
        register_kl(type_p, type_q)(lambda p, q: _infinite(getattr(p, parameter)))


_outside(Beta, "concentration1", Pareto)
_outside(ContinuousBernoulli, "probs", Pareto)
_outside(Exponential, "rate", *_BOUNDED)
_outside(Gamma, "concentration", *_BOUNDED)
_outside(Gumbel, "loc", *_BOUNDED, Exponential, Gamma)
_outside(Laplace, "loc", *_BOUNDED, Exponential, Gamma)
_outside(Normal, "loc", *_BOUNDED, Exponential, Gamma)
_outside(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_outside(Poisson, "rate", Bernoulli, Binomial)
