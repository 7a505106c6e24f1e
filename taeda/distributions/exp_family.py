"""Exponential families: what follows from the log-normaliser alone."""

from __future__ import annotations

from typing import Any

from .. import autograd
from .._core import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), theta> - F(theta) + k(x))`` with natural parameters theta and log-normaliser F.

    A subclass gives ``_natural_params``, ``_log_normalizer(*natural_params)`` and ``_mean_carrier_measure``, the mean of
    k. Entropy and divergence follow from F and its gradient (Nielsen & Nock 2010, "Entropies and cross-entropies of
    exponential families").
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _normalizer_and_slopes(self) -> tuple[list[Tensor], Tensor, Any]:
        """Natural parameters, F at them, and its gradient, all differentiable."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        value = self._log_normalizer(*natural)
        return natural, value, autograd.grad(value.sum(), natural, create_graph=True)

    def entropy(self) -> Tensor:
        """``F(theta) - <theta, F'(theta)> - E[k]``."""
        natural, value, slopes = self._normalizer_and_slopes()
        result = value - self._mean_carrier_measure
        for theta, slope in zip(natural, slopes, strict=True):
            result = result - (theta * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
