"""Transforms of random variables, with the logarithms of their Jacobian determinants."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from .. import linalg
from .._core import Size, Tensor
from ..nn.functional import logsigmoid, pad, softplus
from ..ops.creation import eye, full_like
from ..ops.views import broadcast_shapes
from ..types import finfo
from . import constraints
from .joined_transforms import CatTransform, CumulativeDistributionTransform, StackTransform
from .transform import (  # noqa: F401 (programs ask this module for _InverseTransform)
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,
    _need_dimensions,
    _Plain,
    _widened,
    identity_transform,
)
from .utils import _sum_rightmost, broadcast_all, formula, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


# ---- of each element -------------------------------------------------------------------------------------------------
class _Increasing(_Plain):
    """An increasing function of real numbers, without parameters."""

    domain = constraints.real
    bijective = True
    sign = +1


class ExpTransform(_Increasing):
    """``y = exp(x)``: real to positive numbers.

    Examples:
        >>> t, x = taeda.distributions.ExpTransform(), taeda.tensor(1.0)
        >>> t(x), t.log_abs_det_jacobian(x, t(x))
        (tensor(2.7183), tensor(1.))
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """``y = x ** exponent`` of positive numbers.

    Args:
        exponent: a number or tensor that broadcasts.
        cache_size: see :class:`Transform`.

    Examples:
        >>> taeda.distributions.PowerTransform(taeda.tensor(0.5))(taeda.tensor(2.0))
        tensor(1.4142)
    """

    _arguments = ("exponent",)
    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _inside_unit(x: Tensor) -> Tensor:
    """``x`` kept away from 0 and 1."""
    limits = finfo(x.dtype)
    return x.clamp(min=limits.tiny, max=1.0 - limits.eps)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The sigmoid of ``x``, kept away from 0 and 1; packages use it under this name."""
    return _inside_unit(x.sigmoid())


class SigmoidTransform(_Increasing):
    """``y = 1 / (1 + exp(-x))``: real numbers to the unit interval.

    Examples:
        >>> t = taeda.distributions.SigmoidTransform()
        >>> t(taeda.tensor(0.0)), t.inv(taeda.tensor(0.5))
        (tensor(0.5000), tensor(0.))
    """

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        y = _inside_unit(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Increasing):
    """``y = log(1 + exp(x))``: real to positive numbers.

    Examples:
        >>> taeda.distributions.SoftplusTransform()(taeda.tensor([-1.0, 0.0, 1.0]))
        tensor([0.3133, 0.6931, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(_Increasing):
    """``y = tanh(x)``: real numbers to the interval from -1 to 1.

    Examples:
        >>> taeda.distributions.TanhTransform()(taeda.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.7616,  0.0000,  0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))  # of 1 - tanh(x)**2, without cancellation


class AbsTransform(_Plain):
    """``y = abs(x)``. It is not one to one: the inverse gives the positive number.

    Examples:
        >>> t = taeda.distributions.AbsTransform()
        >>> t(taeda.tensor(-2.0)), t.inv(taeda.tensor(2.0))
        (tensor(2.), tensor(2.))
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


def _same(a: Any, b: Any) -> bool:
    """Whether two numbers or tensors are equal everywhere."""
    if isinstance(a, Number) and isinstance(b, Number):
        return a == b
    return bool((a == b).all())


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Args:
        loc: a number or tensor that broadcasts.
        scale: a number or tensor that broadcasts, not 0.
        event_dim: how many dimensions make one event.
        cache_size: see :class:`Transform`.

    Examples:
        >>> t = taeda.distributions.AffineTransform(1.0, 2.0)
        >>> t(taeda.tensor(3.0)), t.inv(taeda.tensor(7.0))
        (tensor(7.), tensor(3.))
    """

    _arguments = ("loc", "scale", "_event_dim")
    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim = formula(lambda self: self._event_dim)
    domain = constraints.dependent_property(lambda self: _widened(constraints.real, self._event_dim), is_discrete=False)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale, n = self.scale, self._event_dim
        result = scale.abs().log() if isinstance(scale, Tensor) else full_like(x, math.log(abs(scale)))
        if not n:
            return result.expand(x.shape)
        return _sum_rightmost(result.expand((*result.shape[:-n], *x.shape[-n:])), n).expand(x.shape[:-n])

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


# ---- of vectors and matrices -----------------------------------------------------------------------------------------
class CorrCholeskyTransform(Transform):
    """A vector to the Cholesky factor of a correlation matrix, by canonical partial correlations.

    Each row is a unit vector in hyperspherical coordinates ``tanh(x)``. Source: Lewandowski, Kurowicka & Joe 2009,
    "Generating random correlation matrices based on vines and extended onion method".

    Shape:
        x: ``(*, n * (n - 1) / 2)``. Floating-point.
        y: ``(*, n, n)``, lower triangular, with rows of length 1.

    Raises:
        ValueError: in a call, the size is not of that form.

    Examples:
        >>> L = taeda.distributions.CorrCholeskyTransform()(taeda.zeros(3))
        >>> L
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), -1)
        left = (1 - r * r).sqrt().cumprod(-1)  # what is left of the row's length after each column
        return (r + eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dimensions(shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(f"Input is not a flattened lower-diagonal number: {shape[-1]}")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        _need_dimensions(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: {tuple(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class SoftmaxTransform(_Plain):
    """The softmax of a vector, ``exp(x) / sum(exp(x))``. It is not one to one: ``log(y)`` is one inverse.

    Shape:
        x: ``(*, n)``. Floating-point.
        y: ``(*, n)``, positive, with sum 1.

    Examples:
        >>> taeda.distributions.SoftmaxTransform()(taeda.zeros(4))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _need_dimensions(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """A vector to a point of the simplex with one coordinate more: each breaks its share off what is left of a stick.

    Shape:
        x: ``(*, n)``. Floating-point.
        y: ``(*, n + 1)``, positive, with sum 1.

    Examples:
        >>> taeda.distributions.StickBreakingTransform()(taeda.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x: Tensor, n: int) -> Tensor:
        """Logarithms of how many pieces are still to come, so that zeros give equal shares."""
        return (n - x.new_ones(n - 1).cumsum(-1)).log()

    def _call(self, x: Any) -> Any:
        share = _clipped_sigmoid(x - self._offset(x, x.shape[-1] + 1))
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - left.log() + self._offset(y, y.shape[-1])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._offset(x, x.shape[-1] + 1)
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _need_dimensions(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        _need_dimensions(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Plain):
    """A matrix to a lower triangular one with positive diagonal: the exponential of the diagonal, and what is below it.

    Shape:
        x: ``(*, n, n)``. Floating-point.
        y: ``(*, n, n)``.

    Examples:
        >>> taeda.distributions.LowerCholeskyTransform()(taeda.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """A matrix to a positive definite one: ``L L^T`` with ``L`` of :class:`LowerCholeskyTransform`.

    Shape:
        x: ``(*, n, n)``. Floating-point.
        y: ``(*, n, n)``.

    Examples:
        >>> taeda.distributions.PositiveDefiniteTransform()(taeda.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
