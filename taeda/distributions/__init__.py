"""Probability distributions: sampling, densities, entropies, divergences, transforms and regions."""

import sys

from . import constraints, discrete, distribution, kl, matrices, positive, real, simplex, transforms, utils
from .constraint_registry import biject_to, transform_to
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .distribution import Distribution, ExponentialFamily, Independent
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .mixture_same_family import MixtureSameFamily
from .positive import (
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Pareto,
    StudentT,
    Weibull,
)
from .real import Cauchy, GeneralizedPareto, Gumbel, Laplace, Normal, Uniform, VonMises
from .simplex import (
    Beta,
    ContinuousBernoulli,
    Dirichlet,
    Kumaraswamy,
    LogisticNormal,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .transformed_distribution import TransformedDistribution
from .transforms import *  # noqa: F403

#: PyTorch has a module for each distribution: their names, for programs that import from them.
_MODULES = {
    distribution: "exp_family independent",
    real: "cauchy generalized_pareto gumbel laplace normal uniform von_mises",
    positive: (
        "chi2 exponential fishersnedecor gamma half_cauchy half_normal inverse_gamma log_normal pareto studentT weibull"
    ),
    discrete: "bernoulli binomial categorical geometric multinomial negative_binomial one_hot_categorical poisson",
    simplex: "beta continuous_bernoulli dirichlet kumaraswamy logistic_normal relaxed_bernoulli relaxed_categorical",
    matrices: "lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart",
}
for _module, _names in _MODULES.items():
    for _name in _names.split():
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
    "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
    "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "kl_divergence", "register_kl",
    "transform_to", *transforms.__all__,
]  # fmt: skip
