"""The Wishart distribution of positive definite matrices."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any, ClassVar

from .. import arange, broadcast_shapes, cholesky_solve, eye, finfo, linalg, randn, tensor, tril_indices
from .._core import Tensor
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _half_log_det, one_matrix, scale_tril_of
from .utils import lazy_property

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """The sum of the outer products of ``df`` normal vectors with a covariance.

    Args:
        df: degrees of freedom, above ``n - 1``.
        covariance_matrix: (..., n, n), positive definite.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.
        validate_args: see :class:`Distribution`.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched: ClassVar[dict[str, int]] = {"covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, matrix = one_matrix(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        df = tensor(df, dtype=matrix.dtype) if isinstance(df, Number) else df
        batch_shape = tuple(broadcast_shapes(matrix.shape[:-2], df.shape))
        n = matrix.shape[-1]
        self.df = df.expand(batch_shape)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if bool((self.df < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - arange(n, dtype=matrix.dtype))

    @property
    def arg_constraints(self) -> dict:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Lower Cholesky factor of the covariance."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        return self._square(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._square(cholesky_solve(eye(factor.shape[-1], dtype=factor.dtype), factor))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.reshape((*self._batch_shape, 1, 1)) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times(self.df, self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._times(factor.masked_fill(factor <= 0, math.nan), self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._times(self.df, covariance**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        """By Bartlett's decomposition: roots of chi-squared numbers on the diagonal, normal ones below."""
        n = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=finfo(roots.dtype).eps).diag_embed()
        rows, columns = tril_indices(n, n, offset=-1).unbind()
        noise[..., rows, columns] = randn((*sample_shape, *self._batch_shape, n * (n - 1) // 2), dtype=noise.dtype)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Samples; what is singular in floating point is drawn again, at most ``max_try_correction`` times (10).

        PyTorch draws what is regular at first a second time: so does this, to stay on its random stream.
        """
        shape = self._extended_shape(sample_shape)
        sample = self._bartlett_sampling(sample_shape).reshape((-1, *self._batch_shape, *self._event_shape))
        again = self._any_of_batch(self.support.check(sample))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not bool(again.any()):
                break
            drawn = self._bartlett_sampling((int(again.sum()),))
            sample = sample.index_put((again,), drawn)
            again = again.index_put((again,), self._any_of_batch(~self.support.check(drawn)))
        return sample.reshape(shape)

    def _any_of_batch(self, flags: Tensor) -> Tensor:
        """For each draw, whether it is so for one matrix of the batch."""
        n = len(self._batch_shape)
        return flags.flatten(flags.dim() - n).any(-1) if n else flags

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, n, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        normalizer = nu * (n * math.log(2) / 2 + _half_log_det(factor)) + (nu / 2).mvlgamma(n)
        return (nu - n - 1) / 2 * linalg.slogdet(value).logabsdet - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        nu, n = self.df, self._event_shape[-1]
        slope = (nu.unsqueeze(-1) / 2 - arange(n, dtype=nu.dtype) / 2).digamma().sum(-1)
        scale = n * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril)
        return (n + 1) * scale + (nu / 2).mvlgamma(n) - (nu - n - 1) / 2 * slope + nu * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + half.mvlgamma(n)
