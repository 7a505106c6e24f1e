"""A batch cut into microbatches, and their outputs put together."""

from __future__ import annotations

from typing import Any

from ..._typed import Tensor
from ...ops.joining import cat
from ...utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """A tensor is cut along dimension ``split_dim``."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each number."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each name."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """Every microbatch gets the whole value."""


def _chunks(value: Any, spec: Any, chunks: int, name: str) -> list:
    if spec is _Replicate or isinstance(spec, _Replicate) or not isinstance(value, Tensor):
        return [value] * chunks
    dim = 0 if spec is None else spec.split_dim
    if not value.dim():
        raise ValueError(f"pipeline: cannot cut {name} into {chunks} microbatches: it has no dimensions")
    if value.shape[dim] < chunks:
        raise ValueError(
            f"pipeline: expected at least {chunks} rows along dimension {dim} of {name} for {chunks} microbatches, got "
            f"{tuple(value.shape)}"
        )
    return list(value.tensor_split(chunks, dim))


def split_tree(tree: Any, spec: Any, chunks: int, name: str) -> list:
    """``tree`` for each microbatch: its tensors cut, everything else as it is.

    Args:
        tree: tensors in tuples, lists and dicts.
        spec: a :class:`TensorChunkSpec` for each leaf in the same form, or None: dimension 0.
        chunks: how many.
        name: for messages.
    Returns:
        A tree for each microbatch.
    Raises:
        ValueError: ``spec`` has another form, or a tensor is too short.
    """
    leaves, form = pytree.tree_flatten(tree)
    specs = [None] * len(leaves) if spec is None else pytree.tree_leaves(spec)
    if len(specs) != len(leaves):
        raise ValueError(f"pipeline: expected a chunk spec for each of the {len(leaves)} values of {name}, got {spec}")
    parts = [_chunks(*pair, chunks, name) for pair in zip(leaves, specs, strict=True)]
    return [pytree.tree_unflatten([part[i] for part in parts], form) for i in range(chunks)]


def split_args_kwargs_into_chunks(
    args: tuple, kwargs: dict[str, Any] | None, chunks: int, args_chunk_spec: tuple | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple], list[dict]]:  # fmt: skip
    """Arguments for each of ``chunks`` microbatches: tensors are cut along dimension 0, or as the specs say.

    Args:
        args: positional arguments of the batch.
        kwargs: arguments by name.
        chunks: how many microbatches.
        args_chunk_spec: how ``args`` are cut.
        kwargs_chunk_spec: how ``kwargs`` are cut.
    Returns:
        Two lists with an entry for each microbatch.
    Raises:
        ValueError: a spec does not fit, or a tensor is too short.
    """
    kwargs = kwargs or {}
    return (
        split_tree(tuple(args), args_chunk_spec, chunks, "args"),
        split_tree(kwargs, kwargs_chunk_spec, chunks, "kwargs"),
    )


def merge_chunks(chunks: list, chunk_spec: Any) -> Any:
    """The outputs of microbatches as one: tensors are put together along dimension 0, or as ``chunk_spec`` says."""
    if not chunks:
        raise ValueError("merge_chunks: expected the outputs of at least one microbatch")
    flat = [pytree.tree_flatten(chunk) for chunk in chunks]
    specs = [None] * len(flat[0][0]) if chunk_spec is None else pytree.tree_leaves(chunk_spec)
    merged = []
    for values, spec in zip(zip(*(leaves for leaves, _ in flat), strict=True), specs, strict=True):
        whole = isinstance(spec, _Replicate) or not isinstance(values[0], Tensor) or not values[0].dim()
        merged.append(values[0] if whole else cat(values, 0 if spec is None else spec.split_dim))
    return pytree.tree_unflatten(merged, flat[0][1])
