"""Averages of gradients over all processes at first, then over neighbours alone, beside averages of parameters."""

from __future__ import annotations

from typing import Any

from ....futures import Future
from ...subgroups import new_subgroups
from .default_hooks import allreduce_hook

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of :func:`post_localSGD_hook`.

    Args:
        process_group: of the first steps; all processes by default.
        subgroup: of those after; by default what ``new_subgroups()`` gives.
        start_localSGD_iter: how many steps the first ones are.
        post_local_gradient_allreduce: False to average no gradients after them.
    """

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future:
    """The mean of the bucket, over the processes whose turn it is (Lin et al. 2018, https://arxiv.org/abs/1808.07217)."""
    if state.iter < state.start_localSGD_iter:
        state.iter += bucket.is_last()
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        own = Future()
        own.set_result(bucket.buffer())
        return own
    if state.subgroup is None:
        state.subgroup = new_subgroups()[0]
    return allreduce_hook(state.subgroup, bucket)
