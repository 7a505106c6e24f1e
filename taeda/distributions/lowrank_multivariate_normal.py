"""Normal vectors whose covariance is a low-rank matrix plus a diagonal."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import broadcast_tensors, diag_embed, eye, linalg
from .._core import Tensor
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """Lower factor of the capacitance ``C = I + W.T @ inv(D) @ W`` of ``W @ W.T + D``."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    return linalg.cholesky(scaled @ factor + eye(factor.shape[-1], dtype=factor.dtype))


def _batch_lowrank_logdet(factor: Tensor, diagonal: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``log det(W @ W.T + D) = log det(C) + log det(D)``: the matrix determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(factor: Tensor, diagonal: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``x.T @ inv(W @ W.T + D) @ x``, by Woodbury's identity."""
    inner = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x * x / diagonal).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``; the cost is that of the rank.

    Args:
        loc: (..., n): the mean.
        cov_factor: (..., n, rank).
        cov_diag: (..., n), positive.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "loc": 1,
        "cov_factor": 2,
        "cov_diag": 1,
        "scale_tril": 2,
        "covariance_matrix": 2,
        "precision_matrix": 2,
    }

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.shape[-1:] != loc.shape[-1:]:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(loc.shape[-1:])}")
        try:
            wide, self.cov_factor, diagonal = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor {tuple(cov_factor.shape)}, "
                f"cov_diag {tuple(cov_diag.shape)}"
            ) from error
        self.loc = wide[..., 0]
        self.cov_diag = diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], (n,), validate_args=validate_args)

    @property
    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        factor, diagonal, _ = self._parts
        return (factor.pow(2).sum(-1) + diagonal).expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Lower Cholesky factor of the covariance: that of ``I + inv(sqrt(D)) @ W @ W.T @ inv(sqrt(D))``, scaled."""
        factor, diagonal, _ = self._parts
        root = diagonal.sqrt().unsqueeze(-1)
        scaled = factor / root
        inner = scaled @ scaled.mT + eye(scaled.shape[-2], dtype=scaled.dtype)
        return self._square(root * linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor, diagonal, _ = self._parts
        return self._square(factor @ factor.mT + diag_embed(diagonal))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        factor, diagonal, capacitance = self._parts
        solved = linalg.solve_triangular(capacitance, factor.mT / diagonal.unsqueeze(-2), upper=False)
        return self._square(diag_embed(diagonal.reciprocal()) - solved.mT @ solved)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        factor, diagonal, _ = self._parts
        of_factor = _standard_normal((*shape[:-1], factor.shape[-1]), self.loc.dtype)
        of_diagonal = _standard_normal(shape, self.loc.dtype)
        return self.loc + _batch_mv(factor, of_factor) + diagonal.sqrt() * of_diagonal

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        factor, diagonal, capacitance = self._parts
        distance = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, capacitance)
        log_det = _batch_lowrank_logdet(factor, diagonal, capacitance)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + _batch_lowrank_logdet(*self._parts))).expand(self._batch_shape)
