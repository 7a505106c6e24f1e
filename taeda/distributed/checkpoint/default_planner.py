"""The planners that are used where a program gives none: nested state dicts by their paths, DTensors by their parts."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..._core import Size
from ..._typed import Tensor
from ...ops.creation import empty
from ..tensor.dtensor import DTensor
from ..tensor.layout import without_partial
from .flatten import assign, flat_name, leaves
from .metadata import (
    BytesStorageMetadata,
    CheckpointException,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


def _part(x: Tensor) -> tuple[Size, ChunkStorageMetadata, Tensor]:
    """The sizes of the whole, this process's part of it, and the part's memory."""
    x = x.detach()
    if isinstance(x, DTensor):
        x = x._as(without_partial(x.placements))
        return x.shape, ChunkStorageMetadata(Size(x._layout.offsets()), Size(x._layout.local_shape())), x._local
    return x.shape, ChunkStorageMetadata(Size([0] * x.dim()), x.shape), x


def _flattened(state_dict: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple]]:
    """The state dict by names, and the path of each."""
    flat: dict[str, Any] = {}
    paths: dict[str, tuple] = {}
    for path, value in leaves(state_dict):
        name = flat_name(path)
        if name in paths:
            raise ValueError(f"two entries of the state dict have the name {name!r}")
        flat[name], paths[name] = value, path
    return flat, paths


def _text(name: str, value: Any) -> bytes:
    """A value as JSON: nothing that is loaded is code."""
    try:
        return json.dumps(value, allow_nan=True).encode()
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected a tensor, a number, a string, a bool, None, or lists and dicts of such, got "
            f"{type(value).__name__}: checkpoints hold no objects"
        ) from None


# ---- saving ----------------------------------------------------------------------------------------------------------


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Everything that this process has of ``state_dict``, whose keys are names."""
    items = []
    for name, value in state_dict.items():
        if not isinstance(value, Tensor):
            items.append(
                WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, BytesIOWriteData(len(_text(name, value))))
            )
            continue
        size, chunk, part = _part(value)
        if 0 in chunk.sizes and 0 not in size:  # this process has nothing of it
            continue
        kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
        data = TensorWriteData(chunk, TensorProperties.create_from_tensor(part), size)
        items.append(WriteItem(MetadataIndex(name, chunk.offsets), kind, tensor_data=data))
    return SavePlan(items)


def _without_repetition(plans: list[SavePlan], to_lowest_rank: bool) -> list[SavePlan]:
    """Let one process write each repeated entry: the one with the least to write so far, or the first."""
    having: dict[tuple, list[int]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            sizes = tuple(item.tensor_data.chunk.sizes) if item.tensor_data else ()
            having.setdefault((item.index, sizes), []).append(rank)
    load, kept = [0] * len(plans), [set() for _ in plans]  # type: ignore[var-annotated]
    for key, ranks in having.items():
        index, sizes = key
        rank = ranks[0] if to_lowest_rank or index.offset is None else min(ranks, key=load.__getitem__)
        load[rank] += math.prod(sizes) if index.offset is not None else 0
        kept[rank].add(key)

    def mine(rank: int, item: WriteItem) -> bool:
        sizes = tuple(item.tensor_data.chunk.sizes) if item.tensor_data else ()
        return (item.index, sizes) in kept[rank]

    return [replace(plan, items=[i for i in plan.items if mine(rank, i)]) for rank, plan in enumerate(plans)]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans, and the metadata of the values that they write.

    Args:
        all_plans: a plan of each process.
        rewrite_index_hints: number the entries in the metadata anew.

    Returns:
        The plans, and the metadata.

    Raises:
        ValueError: processes have tensors of other dtypes or sizes under one name.
    """
    found: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if data is None:
                found[name] = BytesStorageMetadata()
                items.append(item)
                continue
            known = found.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if (known.properties.dtype, known.size) != (data.properties.dtype, data.size):
                raise ValueError(f"{name}: processes have tensors of other dtypes or sizes")
            index = MetadataIndex(name, item.index.offset, len(known.chunks))
            items.append(replace(item, index=index) if rewrite_index_hints else item)
            known.chunks.append(data.chunk)
        plans.append(replace(plan, items=items))
    return plans, Metadata(found)


class DefaultSavePlanner(SavePlanner):
    """Decides which process writes which entry. Subclasses may change any of its methods, as in PyTorch.

    Args:
        flatten_state_dict: True.
        flatten_sharded_tensors: True.
        dedup_replicated_tensors: accepted; what several processes have is written once.
        dedup_save_to_lowest_rank: by the first of them, rather than by the one with the least to write.
        enable_plan_caching: accepted.
    Attributes:
        state_dict: by names; ``mappings`` has the path of each.
        plan: this process's.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        _check_flat(self, flatten_state_dict, flatten_sharded_tensors)
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """See :meth:`SavePlanner.set_up_planner`."""
        self.state_dict, self.mappings = _flattened(state_dict)
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """See :meth:`SavePlanner.create_local_plan`."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """See :meth:`SavePlanner.create_global_plan`."""
        plans = _without_repetition(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, metadata = create_default_global_save_plan(plans)
        paths: dict[str, tuple] = {}
        for plan in reversed(all_plans):  # if several have a name, the first one's path counts
            paths.update(plan.planner_data or {})
        self.metadata = replace(metadata, planner_data=paths)
        return self.global_plan, self.metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """See :meth:`SavePlanner.finish_plan`."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """See :meth:`SavePlanner.resolve_data`."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of that name; of a DTensor this process's part."""
        value = self.state_dict[index.fqn]
        return _part(value)[2] if isinstance(value, Tensor) else value

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The bytes that are written for a value: JSON."""
        if write_item.type is WriteItemType.BYTE_IO:
            return io.BytesIO(_text(write_item.index.fqn, object))
        return object


def _check_flat(planner: Any, flatten_state_dict: bool, flatten_sharded_tensors: bool) -> None:
    if not (flatten_state_dict and flatten_sharded_tensors):
        raise NotImplementedError(
            f"{type(planner).__name__}: flatten_state_dict and flatten_sharded_tensors have to be True"
        )


# ---- loading ---------------------------------------------------------------------------------------------------------


def _overlaps(name: str, saved: TensorStorageMetadata, own: ChunkStorageMetadata) -> list[ReadItem]:
    """The blocks of the saved chunks that ``own`` needs."""
    items, filled = [], 0
    for i, chunk in enumerate(saved.chunks):
        starts = [max(a, b) for a, b in zip(own.offsets, chunk.offsets, strict=True)]
        ends = [
            min(a + m, b + n)
            for a, m, b, n in zip(own.offsets, own.sizes, chunk.offsets, chunk.sizes, strict=True)
        ]  # fmt: skip
        lengths = Size(max(b - a, 0) for a, b in zip(starts, ends, strict=True))
        if 0 in lengths:
            continue
        items.append(ReadItem(
            LoadItemType.TENSOR, MetadataIndex(name, own.offsets), _minus(starts, own.offsets),
            MetadataIndex(name, chunk.offsets, i), _minus(starts, chunk.offsets), lengths,
        ))  # fmt: skip
        filled += math.prod(lengths)
    if filled != math.prod(own.sizes):
        raise CheckpointException(
            f"{name}: the checkpoint's parts do not cover {list(own.offsets)} + {list(own.sizes)}"
        )
    return items


def _minus(a: Sequence[int], b: Sequence[int]) -> Size:
    return Size(x - y for x, y in zip(a, b, strict=True))


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """The entries of the checkpoint that this process needs for ``state_dict``, whose keys are names.

    Args:
        state_dict: what is to be loaded into.
        metadata: of the checkpoint.
        strict: whether a missing entry is an error.

    Returns:
        The plan.

    Raises:
        CheckpointException: the checkpoint lacks an entry, unless ``strict`` is False; or sizes differ.
    """
    known = metadata.state_dict_metadata
    missing = [name for name in state_dict if name not in known]
    if missing and strict:
        raise CheckpointException(f"Missing key in checkpoint state_dict: {', '.join(missing[:10])}")
    items = []
    for name, value in state_dict.items():
        saved = known.get(name)
        if isinstance(saved, BytesStorageMetadata):
            if isinstance(value, Tensor):
                raise CheckpointException(f"{name}: a tensor is to be loaded, and the checkpoint has a value")
            index, none = MetadataIndex(name), Size([0])
            items.append(ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none))
        elif saved is not None:
            size, own, _ = _part(value)
            if size != saved.size:
                raise CheckpointException(
                    f"Size mismatch between saved {list(saved.size)} and current: {list(size)} for {name}"
                )
            items += _overlaps(name, saved, own)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans, unchanged: each process reads the values that it needs."""
    return all_plans


class DefaultLoadPlanner(LoadPlanner):
    """Decides which entries are read and where they go. Subclasses may change any of its methods, as in PyTorch.

    Args:
        flatten_state_dict: True.
        flatten_sharded_tensors: True.
        allow_partial_load: entries that the checkpoint lacks keep their values, rather than being an error.
    Attributes:
        original_state_dict: the dict to load into; ``state_dict`` has its values by names, ``mappings`` the paths.
        metadata: the content of the checkpoint.
    """

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        _check_flat(self, flatten_state_dict, flatten_sharded_tensors)
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict: dict[str, Any] = {}
        self.mappings: dict[str, tuple] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """See :meth:`LoadPlanner.set_up_planner`. A value in whose place a tensor was saved becomes a new tensor."""
        if metadata is None:
            raise CheckpointException("checkpoint.load: the planner needs the checkpoint's metadata")
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        self.state_dict, self.mappings = _flattened(state_dict)
        for name, value in self.state_dict.items():
            saved = metadata.state_dict_metadata.get(name)
            if isinstance(saved, TensorStorageMetadata) and not isinstance(value, Tensor):
                self.state_dict[name] = made = empty(saved.size, dtype=saved.properties.dtype)
                assign(state_dict, self.mappings[name], made)

    def create_local_plan(self) -> LoadPlan:
        """See :meth:`LoadPlanner.create_local_plan`."""
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """See :meth:`LoadPlanner.create_global_plan`."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """See :meth:`LoadPlanner.finish_plan`."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """See :meth:`LoadPlanner.load_bytes`.

        Args:
            read_item: the entry.
            value: its bytes.

        Raises:
            CheckpointException: they are no JSON.
        """
        name = read_item.dest_index.fqn
        try:
            made = json.loads(value.getvalue())
        except (ValueError, RecursionError) as error:
            raise CheckpointException(f"{name}: the saved value cannot be read: {error}") from error
        assign(self.original_state_dict, self.mappings[name], made)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """See :meth:`LoadPlanner.resolve_tensor`."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """See :meth:`LoadPlanner.commit_tensor`."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """This process's part of the tensor of that name."""
        return _part(self.state_dict[index.fqn])[2]

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The block of ``tensor`` that is read into."""
        return block(tensor, read_item.dest_offsets, read_item.lengths)


def block(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """The part of ``tensor`` that begins at ``offsets``."""
    return tensor[tuple(slice(a, a + n) for a, n in zip(offsets, lengths, strict=True))]
