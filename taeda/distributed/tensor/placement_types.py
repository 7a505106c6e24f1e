"""Placements on one dimension of a mesh: cut along a dimension, whole at each process, or as terms of a sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The placement of a tensor on one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut (along ``dim``)."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes have terms that are still to be reduced (by ``reduce_op``)."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Cut along the tensor's dimension ``dim`` as ``torch.chunk`` cuts: the last parts may be smaller, or empty."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """The size of part ``rank`` of ``num_chunks`` of a dimension, and where it begins (an empty one at the end)."""
        full = -(-curr_local_size // num_chunks)
        offset = min(full * rank, curr_local_size)
        return min(full, curr_local_size - offset), offset

    def at(self, dim: int) -> Shard:
        """The same cut of another dimension."""
        return Shard(dim)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """A cut of a dimension that a *later* dimension of the mesh has cut into ``split_factor`` parts already.

    ``fully_shard`` makes it of a parameter that is cut along the same dimension by tensor parallelism.
    """

    split_factor: int = 1

    def at(self, dim: int) -> Shard:
        return _StridedShard(dim, split_factor=self.split_factor)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """The processes have terms that are still to be reduced by ``reduce_op``: sum, avg, product, min or max."""

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in ("sum", "avg", "product", "min", "max"):
            raise ValueError(f"Partial: expected sum, avg, product, min or max, got {self.reduce_op!r}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
