"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import broadcast_shapes, cholesky_inverse, eye, linalg
from .._core import Tensor
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors, both batched."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """``x.T @ inv(factor @ factor.T) @ x``.

    Args:
        factor: (..., n, n), lower triangular.
        x: (..., n); its batch may have more dimensions.
    """
    batch = tuple(factor.shape[:-2])
    outer = x.dim() - 1 - len(batch)
    if outer < 0 or tuple(x.shape[outer:-1]) != batch:
        return linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False).pow(2).sum((-2, -1))
    # the further dimensions become columns, so that each factor is solved with once
    columns = x.reshape((-1, *batch, x.shape[-1])).movedim(0, -1)
    solved = linalg.solve_triangular(factor, columns, upper=False).pow(2).sum(-2)
    return solved.movedim(-1, 0).reshape(x.shape[:-1])


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower factor of the inverse: the flipped matrix has the flipped transposed factor of the inverse."""
    flipped = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return linalg.solve_triangular(flipped, eye(precision.shape[-1], dtype=precision.dtype), upper=False)


def _half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of ``factor @ factor.T``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def one_matrix(error: type[Exception], **given: Any) -> tuple[str, Tensor]:
    """The name and value of the only matrix that is given."""
    found = [(name, matrix) for name, matrix in given.items() if matrix is not None]
    if len(found) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    name, matrix = found[0]
    if matrix.dim() < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix


def scale_tril_of(name: str, matrix: Tensor) -> Tensor:
    """The lower factor of the covariance, of whichever matrix is given."""
    if name == "scale_tril":
        return matrix
    return linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    """Normal vectors, by their mean and one of three matrices.

    Args:
        loc: (..., n): the mean.
        covariance_matrix: (..., n, n), positive definite.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor: the cheapest to use.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {
        "loc": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(
            ValueError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch_shape = tuple(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Lower Cholesky factor of the covariance."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._square(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._square(cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(factor)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
