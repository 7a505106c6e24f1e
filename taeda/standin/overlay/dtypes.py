"""Dtypes that taeda has no tensors of: they can be named and compared, as tables of sizes do; no op takes one."""

from __future__ import annotations

from typing import Any

import taeda

_BITS = {
    "bits16": 16, "bits1x8": 8, "bits2x4": 8, "bits4x2": 8, "bits8": 8, "complex32": 32, "float4_e2m1fn_x2": 8,
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8, "int1": 8,
    "int2": 8, "int3": 8, "int4": 8, "int5": 8, "int6": 8, "int7": 8, "qint32": 32, "qint8": 8, "quint2x4": 8,
    "quint4x2": 8, "quint8": 8, "uint1": 8, "uint2": 8, "uint3": 8, "uint4": 8, "uint5": 8, "uint6": 8, "uint7": 8,
}  # fmt: skip


class AbsentDtype:
    """The name of a dtype, and its size in bytes."""

    def __init__(self, name: str, bits: int) -> None:
        self.name = name
        self.itemsize = bits // 8
        self.is_floating_point = name.startswith("float")
        self.is_complex = name.startswith("complex")
        self.is_signed = not name.startswith(("uint", "quint", "bits"))

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return _by_name, (self.name,)


DTYPES = {name: AbsentDtype(name, bits) for name, bits in _BITS.items()}
DTYPES["chalf"] = DTYPES["complex32"]


def _by_name(name: str) -> AbsentDtype:
    return DTYPES[name]


# Formats of the Open Compute Project's specification of 8-bit floating point (2023): largest value, eps, smallest normal.
_LIMITS = {
    "float8_e4m3fn": (448.0, 0.125, 2.0**-6),
    "float8_e4m3fnuz": (240.0, 0.125, 2.0**-7),
    "float8_e5m2": (57344.0, 0.25, 2.0**-14),
    "float8_e5m2fnuz": (57344.0, 0.25, 2.0**-15),
}


class finfo(taeda.finfo):
    """``taeda.finfo``, which also knows the limits of 8-bit floating point."""

    def __init__(self, type: Any = None) -> None:
        if not isinstance(type, AbsentDtype) or type.name not in _LIMITS:
            super().__init__(type)
            return
        self.dtype = type.name
        self.bits = 8
        self.max, self.eps, self.tiny = _LIMITS[type.name]
        self.min, self.smallest_normal, self.resolution = -self.max, self.tiny, 1.0
