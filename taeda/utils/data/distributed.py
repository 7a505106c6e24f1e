"""The share of a dataset that one of several processes goes through."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sized

from ..._core.random import Generator
from ..._namespaces import above
from ...ops.random import randperm
from .dataset import Dataset
from .sampler import Sampler, T_co


class DistributedSampler(Sampler[T_co]):
    """This process's share of the indices, where several processes go through one dataset together.

    Args:
        dataset: what is shared out.
        num_replicas: how many processes there are, by default those of the group that this one is in.
        rank: which of them this is, from 0; by default as the group says.
        shuffle: in an order that depends on ``seed`` and the epoch (see :meth:`set_epoch`), equal on all processes.
        seed: of the shuffle.
        drop_last: leave samples out, rather than repeat some, to make equal shares.

    Raises:
        ValueError: there is no group to ask, or no such rank.

    Examples:
        >>> sampler = taeda.utils.data.DistributedSampler(range(7), num_replicas=2, rank=1, shuffle=False)
        >>> list(sampler)  # 0 is repeated, so that both processes have four
        [1, 3, 5, 0]
    """

    def __init__(
        self, dataset: Dataset | Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ):  # fmt: skip
        if num_replicas is None or rank is None:
            group = above("distributed")
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset: Sized = dataset  # type: ignore[assignment]
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        n = len(self.dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[T_co]:
        n = len(self.dataset)
        if self.shuffle:
            indices: list = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            indices = list(range(n))
        if len(indices) < self.total_size:
            indices = list(itertools.islice(itertools.cycle(indices), self.total_size))
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Call before each epoch, for another order in each."""
        self.epoch = epoch
