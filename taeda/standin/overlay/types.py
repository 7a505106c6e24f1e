"""``torch.types``: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from taeda import Size, Tensor, device, dtype, layout
from taeda.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_dtype, _device, _layout, _size = dtype, device, layout, Size | list[int] | tuple[int, ...]
_int, _float, _bool, _complex = int, float, bool, complex
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
DeviceLikeType: TypeAlias = str | device | int
FileLike: TypeAlias = str | os.PathLike | IO[bytes]
Storage: TypeAlias = UntypedStorage | TypedStorage
IntLikeType = int
FloatLikeType = float
BoolLikeType = bool
py_sym_types = ()
