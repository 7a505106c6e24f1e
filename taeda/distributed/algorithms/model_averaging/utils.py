"""Averages of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...._typed import Tensor
from ....autograd import no_grad
from ....ops.joining import cat
from ...collectives import all_reduce
from ...groups import ReduceOp, resolve

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Tensor], process_group: Any) -> None:
    """Let all processes of a group have the mean of their parameters; nothing happens outside the group.

    The parameters of one dtype go in one message, so as much memory is needed again.
    """
    group = resolve(process_group)
    if group is None:
        return
    by_dtype: dict[Any, list[Tensor]] = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    with no_grad():
        for alike in by_dtype.values():
            vector = cat([p.reshape(-1) for p in alike])
            all_reduce(vector, ReduceOp.AVG, group)
            for p, part in zip(alike, vector.split([p.numel() for p in alike]), strict=True):
                p.copy_(part.reshape(p.shape))


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """The parameters that have gradients.

    Args:
        params: of a model, or the parameter groups of an optimizer.
    Returns:
        A list.
    Raises:
        NotImplementedError: they are something else.
    """
    found: list[Tensor] = []
    for p in params:
        if not isinstance(p, (Tensor, dict)):
            raise NotImplementedError(f"expected parameters or parameter groups, got {type(p).__name__}")
        found += p["params"] if isinstance(p, dict) else [p]
    return [p for p in found if p.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """:func:`average_parameters` of those that have gradients."""
    average_parameters(get_params_to_average(params), process_group)
