"""Contents of a checkpoint: tensors in chunks, and values that are bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core import Size, contiguous_format, get_default_dtype, strided
from ..._typed import Tensor

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
    "TensorProperties", "TensorStorageMetadata",
]  # fmt: skip


class CheckpointException(RuntimeError):
    """A checkpoint does not exist, is damaged, or does not fit the state dict to load into."""


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its sizes."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """The dtype of a tensor; the other attributes are as PyTorch has them, and not used."""

    dtype: Any = field(default_factory=get_default_dtype)
    layout: Any = strided
    requires_grad: bool = False
    memory_format: Any = contiguous_format
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """The properties of ``tensor``."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """A tensor: its dtype, its sizes, and the parts that were saved."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


@dataclass
class StorageMeta:
    """The checkpoint that a storage writes or reads."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A checkpoint.

    Attributes:
        state_dict_metadata: by the names of the entries.
        planner_data: the planner's own: of the default one, the path of each name in the state dict.
        storage_data: the storage's own: of files, where each chunk is.
        storage_meta: which checkpoint it is.
        version: of the format.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an entry and, of a tensor, where its chunk begins; ``index`` is a hint, and not compared."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(default=None, hash=False, compare=False)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))
        object.__setattr__(self, "index", index)
