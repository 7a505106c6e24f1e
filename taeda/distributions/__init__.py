"""Probability distributions: sampling, densities, entropies, divergences, transforms and regions."""

# ruff: noqa: I001 - lists of names are paragraphs

import sys

from .._docstrings import complete_docstrings
from . import constraints, discrete, distribution, kl, matrices, positive, real, simplex, transforms, utils
from .constraint_registry import biject_to, transform_to
from .discrete import (
    Bernoulli, Binomial, Categorical, Geometric, Multinomial, NegativeBinomial, OneHotCategorical,
    OneHotCategoricalStraightThrough, Poisson,
)  # fmt: skip
from .distribution import Distribution, ExponentialFamily, Independent
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .mixture_same_family import MixtureSameFamily
from .positive import (
    Chi2, Exponential, FisherSnedecor, Gamma, HalfCauchy, HalfNormal, InverseGamma, LogNormal, Pareto, StudentT,
    Weibull,
)  # fmt: skip
from .real import Cauchy, GeneralizedPareto, Gumbel, Laplace, Normal, Uniform, VonMises
from .simplex import (
    Beta, ContinuousBernoulli, Dirichlet, Kumaraswamy, LogisticNormal, RelaxedBernoulli, RelaxedOneHotCategorical,
)  # fmt: skip
from .transformed_distribution import TransformedDistribution
from .transforms import *  # noqa: F403

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
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
    "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
    "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "kl_divergence", "register_kl",
    "transform_to", *transforms.__all__,
]  # fmt: skip

complete_docstrings(globals()[_name] for _name in __all__ if isinstance(globals()[_name], type))
