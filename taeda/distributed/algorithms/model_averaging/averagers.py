"""When parameters are averaged: every so many steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...groups import resolve
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]

_NO_NEED = (
    "With a period of 1, averaging parameters costs as much as averaging gradients: "
    "DistributedDataParallel alone does it."
)


class ModelAverager(ABC):
    """Averages the parameters of the processes of a group; ``step`` counts the calls.

    Args:
        process_group: all processes by default.
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = resolve(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called after each step of the optimizer, with parameters or parameter groups."""


class PeriodicModelAverager(ModelAverager):
    """Averages every ``period`` steps, after ``warmup_steps`` (Lin et al. 2018, https://arxiv.org/abs/1808.07217).

    Args:
        period: in steps.
        warmup_steps: how many come before the first average.
        process_group: all processes by default.
    Raises:
        ValueError: a number is too small.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(_NO_NEED, stacklevel=2)
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """See :meth:`ModelAverager.average_parameters`. Parameters without gradients are left as they are."""
        past = self.step - self.warmup_steps
        if past >= 0 and past % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
