"""Ops that pick elements along a dimension: how they are declared, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .table import primitive, result_type
from .views import blank, reshape, unsqueeze


def choice(body: Callable, named: str, **traits: Any) -> Callable:
    """Declare an op that gives ``(values, indices)``: elements along ``dim``, and where they were.

    Args:
        body: what computes both.
        named: the class of the results.
        traits: as of :func:`primitive`.
    """
    pair = {"outputs": ("values", "indices"), "differentiable": (0,), "out": "same", "batch": "along"}
    return primitive(body, result_type=result_type(named, *pair["outputs"]), **{**pair, **traits})


def picked(g, input_shape, dim, indices):
    """The gradient of values that were picked along ``dim``."""
    return blank(g, input_shape).scatter(dim, indices, g) if input_shape else reshape(g, ())


def picked_one(g, input_shape, dim, indices, keepdim):
    """The same where one value of each row was picked, and ``dim`` is gone unless ``keepdim``."""
    if input_shape and not keepdim:
        g, indices = unsqueeze(g, dim), unsqueeze(indices, dim)
    return picked(g, input_shape, dim, indices)
