"""Random correlation matrices (Lewandowski, Kurowicka & Joe 2009)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import arange, cat, finfo, no_grad, randn
from .._core import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors L of correlation matrices with density proportional to ``det(L @ L.T) ** (concentration - 1)``.

    Sampled by the onion method: row after row, its length without the diagonal from a beta distribution, its direction
    uniform (section 3.2 of the paper).

    Args:
        dim: rows and columns.
        concentration: positive; 1 is uniform.
        validate_args: see :class:`Distribution`.
    """

    arg_constraints: ClassVar[dict] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        rows = arange(dim - 1, dtype=self.concentration.dtype)
        rows = cat([rows.new_zeros((1,)), rows])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(rows + 0.5, marginal.unsqueeze(-1) - 0.5 * rows)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = randn(self._extended_shape(sample_shape), dtype=length.dtype).tril(-1)
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
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - arange(2, self.dim + 1)
        a = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + (a - 0.5).mvlgamma(n) - n * a.lgamma()
        return (powers * diagonal.log()).sum(-1) - normalizer
