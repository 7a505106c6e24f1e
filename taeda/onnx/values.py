"""Values of ONNX models: their element types as dtypes, and arrays as tensors.

A value is a Tensor, a list (a sequence), a dict (a map) or None (an empty optional). Elements that taeda has no dtype
for, which are strings and numbers of less than 8 bits, stay NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import taeda

from .._typed import Tensor

STRING = 8
FLOAT8_E8M0 = 24

#: Number of an element type in the ONNX format: the dtype.
DTYPES: dict[int, taeda.dtype] = {
    1: taeda.float32, 2: taeda.uint8, 3: taeda.int8, 4: taeda.uint16, 5: taeda.int16, 6: taeda.int32, 7: taeda.int64,
    9: taeda.bool, 10: taeda.float16, 11: taeda.float64, 12: taeda.uint32, 13: taeda.uint64, 14: taeda.complex64,
    15: taeda.complex128, 16: taeda.bfloat16, 17: taeda.float8_e4m3fn, 18: taeda.float8_e4m3fnuz,
    19: taeda.float8_e5m2, 20: taeda.float8_e5m2fnuz, FLOAT8_E8M0: taeda.float8_e8m0fnu,
}  # fmt: skip

#: Dtypes that only NumPy has, by the names of ml_dtypes.
NARROW = {
    21: "uint4", 22: "int4", 23: "float4_e2m1fn", 25: "uint2", 26: "int2", 27: "float6_e2m3fn", 28: "float6_e3m2fn",
}  # fmt: skip

FLOAT8 = {17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz"}

#: Dtypes that NumPy does not have itself: (the type of ml_dtypes, one of NumPy's of the same size).
_LENT = {
    "bfloat16": (taeda.bfloat16, "int16"), **{name: (DTYPES[n], "uint8") for n, name in FLOAT8.items()},
    "float8_e8m0fnu": (taeda.float8_e8m0fnu, "uint8"),
}  # fmt: skip
_LENT_OF = {dtype: (name, stored) for name, (dtype, stored) in _LENT.items()}


def narrow_dtype(name: str) -> np.dtype:
    """NumPy's dtype of a type of ml_dtypes, which the package onnx depends on."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def dtype_of(code: int) -> taeda.dtype:
    """The dtype of an element type.

    Args:
        code: ONNX's number of the type.

    Returns:
        The dtype.

    Raises:
        NotImplementedError: taeda has no such dtype.
    """
    if code not in DTYPES:
        name = "string" if code == STRING else NARROW.get(code, f"type {code}")
        raise NotImplementedError(f"expected an element type that taeda has a dtype for, got {name}")
    return DTYPES[code]


def code_of(value: Tensor | np.ndarray) -> int:
    """The number of the element type of a tensor or array."""
    if isinstance(value, Tensor):
        return next(code for code, dtype in DTYPES.items() if dtype == value.dtype)
    return next((code for code, name in NARROW.items() if name == value.dtype.name), STRING)


def from_array(array: np.ndarray) -> Tensor | np.ndarray:
    """A tensor with a copy of ``array``; an array where taeda has no such dtype, with strings as objects."""
    name = array.dtype.name
    if array.dtype.kind in "USO":
        return array.astype(object)
    if name in NARROW.values():
        return array
    array = np.array(array, order="C", copy=True)
    if name in _LENT:
        dtype, stored = _LENT[name]
        return taeda.from_numpy(array.view(stored)).view(dtype)
    return taeda.from_numpy(array)


def to_array(value: Any) -> Any:
    """The NumPy array of a tensor, of its own dtype; sequences and maps item by item."""
    if isinstance(value, list):
        return [to_array(item) for item in value]
    if not isinstance(value, Tensor):
        return value
    value = value.detach().cpu()
    if value.dtype in _LENT_OF:
        name, stored = _LENT_OF[value.dtype]
        return value.contiguous().view(getattr(taeda, stored)).numpy().view(narrow_dtype(name))
    return value.numpy()


def integers(value: Any) -> list[int]:
    """The numbers of a one-dimensional tensor, or of the list that an attribute is."""
    if isinstance(value, Tensor):
        return value.reshape(-1).tolist()
    return [int(x) for x in value]


def describe(value: Any) -> str:
    """A value's description in a message: dtype and shape."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('taeda.')}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"{'string' if value.dtype == object else value.dtype.name}{list(value.shape)}"
    if isinstance(value, list):
        return f"sequence of {len(value)}" + (f" {describe(value[0])}" if value else "")
    return "nothing" if value is None else type(value).__name__
