"""What the default planners let a program choose. Plans of a program's own are refused."""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class _Planner:
    """Nested state dicts are saved by their paths and DTensors by their parts; there is no other way."""

    def __init__(self, flatten_state_dict: bool, flatten_sharded_tensors: bool) -> None:
        if not (flatten_state_dict and flatten_sharded_tensors):
            raise NotImplementedError(
                f"{type(self).__name__}: flatten_state_dict and flatten_sharded_tensors have to be True"
            )


class DefaultSavePlanner(_Planner):
    """Who writes what.

    Args:
        flatten_state_dict, flatten_sharded_tensors: True.
        dedup_replicated_tensors: accepted; what several processes have is written once.
        dedup_save_to_lowest_rank: by the first of them, rather than by the one with the least to write.
        enable_plan_caching: accepted.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(flatten_state_dict, flatten_sharded_tensors)
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank


class DefaultLoadPlanner(_Planner):
    """What has to be there.

    Args:
        flatten_state_dict, flatten_sharded_tensors: True.
        allow_partial_load: entries that the checkpoint lacks keep their values, rather than being an error.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        super().__init__(flatten_state_dict, flatten_sharded_tensors)
        self.allow_partial_load = allow_partial_load


def check_planner(name: str, planner: Any, kind: type) -> Any:
    """``planner``, or the default one.

    Raises:
        NotImplementedError: it is of a program's own class.
    """
    if planner is None:
        return kind()
    if type(planner) is not kind:
        raise NotImplementedError(
            f"{name}: expected planner to be None or a {kind.__name__}, got {type(planner).__name__}: plans of other "
            f"classes are not followed"
        )
    return planner
