"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any, ClassVar

from .. import linalg
from .._core import Tensor
from ..autograd import no_grad
from ..ops.creation import arange, eye
from ..ops.exchange import tensor
from ..ops.joining import cat
from ..ops.linalg import cholesky_inverse, cholesky_solve
from ..ops.matrices import diag_embed, tril_indices
from ..ops.random import randn
from ..ops.views import broadcast_shapes, broadcast_tensors
from ..types import finfo
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .positive import Chi2
from .simplex import Beta
from .utils import _standard_normal, broadcast_all, formula, lazy_property

__all__ = [
    "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart",
]  # fmt: skip


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
    return linalg.solve_triangular(
        flipped, eye(precision.shape[-1], dtype=precision.dtype, device=precision.device), upper=False
    )


def _half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of ``factor @ factor.T``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def one_matrix(error: type[Exception], *given: Any) -> tuple[str, Tensor]:
    """The name and value of the only matrix that is given, of covariance, precision and scale."""
    names = ("covariance_matrix", "precision_matrix", "scale_tril")
    found = [(name, matrix) for name, matrix in zip(names, given, strict=True) if matrix is not None]
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


class _OneMatrix(Distribution):
    """A distribution that is given one of three matrices and computes the other two."""

    _unbroadcasted_scale_tril: Tensor

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, *self._event_shape[-1:], *self._event_shape[-1:]))

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


class MultivariateNormal(_OneMatrix):
    """Normal vectors: density ``exp(-(x - loc)^T C^-1 (x - loc) / 2) / sqrt((2 pi)^n det(C))`` with covariance ``C``.

    Give one of three matrices. The support is all vectors. The batch shape is that to which the parameters broadcast
    without their vectors and matrices; the event shape is ``(n,)``.

    Args:
        loc: ``(*, n)``, the mean.
        covariance_matrix: ``C``, ``(*, n, n)``, positive definite.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor: the cheapest to use.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: ``loc`` has no dimensions, a matrix less than two, or not exactly one matrix is given; or they are
            out of their range, if that is checked.

    Examples:
        >>> d = taeda.distributions.MultivariateNormal(taeda.zeros(2), taeda.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> d.sample((5,)).shape, d.log_prob(taeda.zeros(2))
        (taeda.Size([5, 2]), tensor(-2.3872))
    """

    arg_constraints: ClassVar[dict] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(ValueError, covariance_matrix, precision_matrix, scale_tril)
        batch_shape = tuple(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(factor)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


def _batch_capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """Lower factor of the capacitance ``C = I + W.T @ inv(D) @ W`` of ``W @ W.T + D``."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    return linalg.cholesky(scaled @ factor + eye(factor.shape[-1], dtype=factor.dtype, device=factor.device))


def _batch_lowrank_logdet(factor: Tensor, diagonal: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``log det(W @ W.T + D) = log det(C) + log det(D)``: the matrix determinant lemma."""
    return 2 * _half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(factor: Tensor, diagonal: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """``x.T @ inv(W @ W.T + D) @ x``, by Woodbury's identity."""
    inner = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x * x / diagonal).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(_OneMatrix):
    """Normal vectors with covariance ``W @ W.T + diag(D)``; the cost grows with the rank, not with ``n ** 3``.

    The support is all vectors; the event shape is ``(n,)``.

    Args:
        loc: ``(*, n)``, the mean.
        cov_factor: ``W``, ``(*, n, rank)``.
        cov_diag: ``D``, ``(*, n)``, above 0.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: the parameters have too few dimensions, or sizes that do not go together; or they are out of their
            range, if that is checked.

    Examples:
        >>> W, D = taeda.tensor([[1.0], [2.0]]), taeda.ones(2)
        >>> d = taeda.distributions.LowRankMultivariateNormal(taeda.zeros(2), W, D)
        >>> d.covariance_matrix
        tensor([[2., 2.],
                [2., 5.]])
    """

    arg_constraints: ClassVar[dict] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _batched: ClassVar[dict[str, int]] = {"scale_tril": 2, "covariance_matrix": 2, "precision_matrix": 2}

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

    _parts = formula(
        lambda self: (self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril)
    )

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

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
        inner = scaled @ scaled.mT + eye(scaled.shape[-2], dtype=scaled.dtype, device=scaled.device)
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
        of_factor = _standard_normal((*shape[:-1], factor.shape[-1]), self.loc.dtype, self.loc.device)
        of_diagonal = _standard_normal(shape, self.loc.dtype, self.loc.device)
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


class LKJCholesky(Distribution):
    """Lower Cholesky factors ``L`` of correlation matrices, with density proportional to ``det(L L^T) ** (concentration
    - 1)``.

    Sampled by the onion method: row after row, its length without the diagonal from a beta distribution, its direction
    uniform (section 3.2 of the paper). The batch shape is that of ``concentration``; the event shape is ``(dim, dim)``.
    Source: Lewandowski, Kurowicka & Joe 2009, "Generating random correlation matrices based on vines and extended onion
    method".

    Args:
        dim: number of rows and columns, at least 2.
        concentration: above 0; 1 is uniform, more is nearer to the identity.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: ``dim`` is less than 2; or ``concentration`` is out of its range, if that is checked.

    Examples:
        >>> L = taeda.distributions.LKJCholesky(3, 0.5).sample()
        >>> bool(taeda.allclose((L @ L.T).diagonal(), taeda.ones(3)))
        True
    """

    arg_constraints: ClassVar[dict] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        rows = arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rows = cat([rows.new_zeros((1,)), rows])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(rows + 0.5, marginal.unsqueeze(-1) - 0.5 * rows)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = randn(self._extended_shape(sample_shape), dtype=length.dtype, device=length.device).tril(-1)
            direction = normal / normal.norm(dim=-1, keepdim=True)
            direction[..., 0, :] = 0.0  # the first row has nothing left of the diagonal
            rows = length.sqrt() * direction
            rest = (1 - (rows * rows).sum(-1)).clamp(min=finfo(rows.dtype).tiny)
            return rows + rest.sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the factor; its normaliser is formula (16) of the paper."""
        self._check(value)
        n = self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        places = arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - places
        a = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + (a - 0.5).mvlgamma(n) - n * a.lgamma()
        return (powers * diagonal.log()).sum(-1) - normalizer


class Wishart(_OneMatrix, ExponentialFamily):
    """The sum of the outer products of ``df`` normal vectors with a covariance: a random covariance matrix, up to a
    factor.

    Density proportional to ``det(X) ** ((df - n - 1) / 2) * exp(-trace(C^-1 X) / 2)``. Give one of three matrices. The
    support is positive definite matrices; the event shape is ``(n, n)``.

    Args:
        df: degrees of freedom, above ``n - 1``.
        covariance_matrix: ``C``, ``(*, n, n)``, positive definite.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.
        validate_args: whether parameters and values are checked; None: as
            :meth:`Distribution.set_default_validate_args` says.

    Raises:
        ValueError: ``df`` is at most ``n - 1``; or the matrix is out of its range, if that is checked.
        AssertionError: not exactly one matrix is given.

    Examples:
        >>> d = taeda.distributions.Wishart(taeda.tensor(3.0), covariance_matrix=taeda.eye(2))
        >>> d.mean, d.sample().shape
        (tensor([[3., 0.],
                [0., 3.]]), taeda.Size([2, 2]))
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ):  # fmt: skip
        name, matrix = one_matrix(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        df = tensor(df, dtype=matrix.dtype, device=matrix.device) if isinstance(df, Number) else df
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
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - arange(n, dtype=matrix.dtype, device=matrix.device))

    @property
    def arg_constraints(self) -> dict:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._square(cholesky_solve(eye(factor.shape[-1], dtype=factor.dtype, device=factor.device), factor))

    def _times(self, factor: Tensor, matrix: Tensor) -> Tensor:
        return factor.reshape((*self._batch_shape, 1, 1)) * matrix

    mean = formula(lambda self: self._times(self.df, self.covariance_matrix))

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
        sizes = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise[..., rows, columns] = randn(sizes, dtype=noise.dtype, device=noise.device)
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
        slope = (nu.unsqueeze(-1) / 2 - arange(n, dtype=nu.dtype, device=nu.device) / 2).digamma().sum(-1)
        scale = n * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril)
        return (n + 1) * scale + (nu / 2).mvlgamma(n) - (nu - n - 1) / 2 * slope + nu * n / 2

    _natural_params = formula(lambda self: (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + half.mvlgamma(n)
