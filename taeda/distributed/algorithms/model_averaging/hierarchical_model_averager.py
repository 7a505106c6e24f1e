"""Averages over neighbours often, and over more processes more rarely."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ...groups import get_world_size
from ...subgroups import new_subgroups
from . import utils
from .averagers import _NO_NEED, ModelAverager

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages over groups of sizes that grow with the period; where several periods are due, over the largest.

    Args:
        period_group_size_dict: the size of the groups for each period, both in rising order. The last group is all.
        warmup_steps: how many steps come before the first average.
        process_group: all processes by default.
    Raises:
        ValueError: there are no periods, a number is too small, or the last size is not that of the group.
    """

    def __init__(
        self, period_group_size_dict: Mapping[int, int] | None = None, warmup_steps: int = 0, process_group: Any = None
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods, sizes = list(period_group_size_dict), list(period_group_size_dict.values())
        if periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if periods[-1] == 1:
            warnings.warn(_NO_NEED, stacklevel=2)
        whole = get_world_size(self.process_group)
        if sizes[-1] != whole:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {whole}."
            )
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {
            period: self.process_group if size == whole else new_subgroups(size, self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }

    def average_parameters(self, params: Iterable[Any]) -> None:
        """See :meth:`ModelAverager.average_parameters`. Parameters without gradients are left as they are."""
        due = [period for period in self.period_process_group_dict if self.step % period == 0]
        if self.step >= self.warmup_steps and due:
            utils.average_parameters_or_parameter_groups(params, self.period_process_group_dict[due[-1]])
        self.step += 1
