"""What a checkpoint holds, as JSON: nothing in it is code, and everything is checked before it is used."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from taeda import _core

__all__ = ["CheckpointException", "Chunk", "Metadata", "TensorStorageMetadata"]

_FORMAT = "taeda.distributed.checkpoint"


class CheckpointException(RuntimeError):
    """A checkpoint is not there, is damaged, or does not fit what it is loaded into."""


@dataclass
class Chunk:
    """A part of a tensor: where it begins, its sizes, and its file and name there."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    name: str


@dataclass
class TensorStorageMetadata:
    """The dtype and the sizes of a tensor, and its parts."""

    dtype: str
    size: tuple[int, ...]
    chunks: list[Chunk] = field(default_factory=list)


@dataclass
class Metadata:
    """Tensors and other values by their paths in the state dict, joined by dots."""

    state_dict_metadata: dict[str, TensorStorageMetadata] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    paths: dict[str, list] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text of the file."""
        tensors = {name: asdict(t) for name, t in self.state_dict_metadata.items()}
        return json.dumps(
            {"format": _FORMAT, "version": 1, "tensors": tensors, "values": self.values, "paths": self.paths}, indent=1
        )

    @staticmethod
    def from_json(text: str) -> Metadata:
        """What :meth:`to_json` wrote.

        Raises:
            CheckpointException: it is something else.
        """
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT or found["version"] != 1:
                raise ValueError(f"format {found['format']!r}, version {found['version']!r}")
            tensors = {str(name): _tensor(t) for name, t in found["tensors"].items()}
            return Metadata(tensors, dict(found["values"]), {k: list(v) for k, v in found["paths"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CheckpointException(f"the checkpoint's metadata cannot be read: {error!r}") from error


def _sizes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(n) is int and n >= 0 for n in values):
        raise ValueError(f"expected sizes, got {values!r}")
    return tuple(values)


def _tensor(found: dict) -> TensorStorageMetadata:
    size = _sizes(found["size"])
    _core.dtype_by_name(found["dtype"])
    chunks = []
    for c in found["chunks"]:
        chunk = Chunk(_sizes(c["offsets"]), _sizes(c["sizes"]), c["file"], c["name"])
        if (
            not isinstance(chunk.file, str)
            or not isinstance(chunk.name, str)
            or chunk.file != chunk.file.split("/")[-1]
        ):
            raise ValueError(f"expected the name of a file in the checkpoint's folder, got {chunk.file!r}")
        ends = zip(chunk.offsets, chunk.sizes, size, strict=True)
        if any(start + n > whole for start, n, whole in ends):
            raise ValueError(f"a part {chunk.offsets} + {chunk.sizes} of a tensor of sizes {size}")
        chunks.append(chunk)
    if sum(math.prod(c.sizes) for c in chunks) != math.prod(size):
        raise ValueError(f"the parts of a tensor of sizes {size} are not all of it")
    return TensorStorageMetadata(found["dtype"], size, chunks)
