"""Dtypes, layouts and memory formats as the numbers that scripts have them as, which PyTorch's archives fix."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import dtype
from ..ops.compressed import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..types import jagged

_NAMES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 8: "complex32",
    9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn",
    27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
DTYPES: dict[int, Any] = {code: _core.dtype_by_name(n) for code, n in _NAMES.items() if n in _core.DTYPE_NAMES}
CODES: dict[Any, int] = {made: code for code, made in DTYPES.items()}
_LAYOUTS: dict[int, Any] = {
    0: _core.strided, 1: _core.sparse_coo, 2: sparse_csr, 4: sparse_csc, 5: sparse_bsr, 6: sparse_bsc, 7: jagged,
}  # fmt: skip
_FORMATS = {
    0: _core.contiguous_format, 1: _core.preserve_format, 2: _core.channels_last, 3: _core.channels_last_3d,
}  # fmt: skip


def _of(table: dict[int, Any], what: str) -> Any:
    def find(value: Any) -> Any:
        if type(value) is not int:
            return value
        if value not in table:
            raise RuntimeError(f"expected the number of a {what}, got {value}")
        return table[value]

    return find


#: From the number to the object, by the name that signatures have for it.
CONVERT = {
    "ScalarType": _of(DTYPES, "dtype"), "Layout": _of(_LAYOUTS, "layout"), "MemoryFormat": _of(_FORMATS,
    "memory format"),
}  # fmt: skip


def number(value: Any) -> int | None:
    """The number of a dtype, layout or memory format; None for anything else."""
    if isinstance(value, dtype):
        return CODES.get(value)
    for table in (_LAYOUTS, _FORMATS):
        for code, made in table.items():
            if made is value:
                return code
    return None
