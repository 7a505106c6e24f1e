"""Probability distributions: sampling, densities, entropies, divergences, transforms and regions."""

# ruff: noqa: F403, I001 - lists of names are paragraphs

import sys

from . import (
    constraints, discrete, distribution, kl, matrices, mixture_same_family, positive, real, simplex,
    transformed_distribution, transforms, utils,
)  # fmt: skip
from .constraint_registry import biject_to, transform_to
from .discrete import *
from .distribution import *
from .kl import *
from .matrices import *
from .mixture_same_family import *
from .positive import *
from .real import *
from .simplex import Beta, ContinuousBernoulli, Dirichlet, Kumaraswamy, LogisticNormal, RelaxedBernoulli
from .simplex import RelaxedOneHotCategorical
from .transformed_distribution import *
from .transforms import *

#: PyTorch has a module for each distribution: those modules exist here too, and the classes say that they are theirs.
_MODULES = {
    distribution: """
        exp_family.ExponentialFamily independent.Independent
    """,
    real: """
        cauchy.Cauchy generalized_pareto.GeneralizedPareto gumbel.Gumbel laplace.Laplace normal.Normal
        uniform.Uniform von_mises.VonMises
    """,
    positive: """
        chi2.Chi2 exponential.Exponential fishersnedecor.FisherSnedecor gamma.Gamma half_cauchy.HalfCauchy
        half_normal.HalfNormal inverse_gamma.InverseGamma log_normal.LogNormal pareto.Pareto studentT.StudentT
        weibull.Weibull
    """,
    discrete: """
        bernoulli.Bernoulli binomial.Binomial categorical.Categorical geometric.Geometric
        multinomial.Multinomial negative_binomial.NegativeBinomial one_hot_categorical.OneHotCategorical
        one_hot_categorical.OneHotCategoricalStraightThrough poisson.Poisson
    """,
    simplex: """
        beta.Beta continuous_bernoulli.ContinuousBernoulli dirichlet.Dirichlet kumaraswamy.Kumaraswamy
        logistic_normal.LogisticNormal relaxed_bernoulli.LogitRelaxedBernoulli
        relaxed_bernoulli.RelaxedBernoulli relaxed_categorical.ExpRelaxedCategorical
        relaxed_categorical.RelaxedOneHotCategorical
    """,
    matrices: """
        lkj_cholesky.LKJCholesky lowrank_multivariate_normal.LowRankMultivariateNormal
        multivariate_normal.MultivariateNormal wishart.Wishart
    """,
}
for _module, _names in _MODULES.items():
    for _name, _class in (entry.split(".") for entry in _names.split()):
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
        getattr(_module, _class).__module__ = f"{__name__}.{_name}"

__all__ = [
    "Beta", "ContinuousBernoulli", "Dirichlet", "Kumaraswamy", "LogisticNormal", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "biject_to", "constraints", "transform_to", *discrete.__all__, *distribution.__all__,
    *kl.__all__, *matrices.__all__, *mixture_same_family.__all__, *positive.__all__, *real.__all__,
    *transformed_distribution.__all__, *transforms.__all__,
]  # fmt: skip
