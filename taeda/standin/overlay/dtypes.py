"""Dtypes that taeda has no tensors of: they can be named and compared, as tables of sizes do; no op takes one."""

from __future__ import annotations

_BITS = {
    "bits16": 16, "bits1x8": 8, "bits2x4": 8, "bits4x2": 8, "bits8": 8, "int1": 8, "int2": 8,
    "int3": 8, "int4": 8, "int5": 8, "int6": 8, "int7": 8, "qint32": 32, "qint8": 8, "quint2x4": 8, "quint4x2": 8,
    "quint8": 8, "uint1": 8, "uint2": 8, "uint3": 8, "uint4": 8, "uint5": 8, "uint6": 8, "uint7": 8,
}  # fmt: skip


class AbsentDtype:
    """The name of a dtype, and its size in bytes."""

    def __init__(self, name: str, bits: int) -> None:
        self.name = name
        self.itemsize = bits // 8
        self.is_floating_point = name.startswith("float")
        self.is_complex = False
        self.is_signed = not name.startswith(("uint", "quint", "bits"))

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return _by_name, (self.name,)


DTYPES = {name: AbsentDtype(name, bits) for name, bits in _BITS.items()}


def _by_name(name: str) -> AbsentDtype:
    return DTYPES[name]
