"""ONNX ops that change the element type, and constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ..._core import bfloat16, bool_, float8_e8m0fnu, float32, int64, uint8
from ..._typed import Tensor
from ...ops.comparison import isnan, isposinf
from ...ops.creation import zeros
from ...ops.elementary import frexp
from ...ops.exchange import from_numpy, tensor
from ...ops.extrema import clamp
from ...ops.indexing import where
from ...types import finfo
from ..table import op
from ..values import DTYPES, FLOAT8, FLOAT8_E8M0, NARROW, STRING, code_of, dtype_of, from_array, narrow_dtype, to_array


@op("Constant")
def constant(**attributes: Any) -> Any:
    """The one attribute that is set."""
    ((name, value),) = attributes.items()
    if name.startswith("value_string"):
        return np.array(value, dtype=object)
    if name in ("value", "sparse_value"):
        return value
    return tensor(value, dtype=float32 if name.startswith("value_float") else int64)


@op("ConstantOfShape")
def constant_of_shape(shape: Tensor, *, value: Any = None) -> Any:
    if isinstance(value, np.ndarray):
        return np.full(shape.tolist(), value.reshape(-1)[0], dtype=value.dtype)
    if value is None:
        return zeros(shape.tolist())
    return value.reshape(()).expand(shape.tolist()).clone()


@op("Cast", 1)
def cast_1(x: Any, *, to: str) -> Any:
    names = {str(dtype).removeprefix("taeda.").upper(): code for code, dtype in DTYPES.items()}
    return cast(x, to={**names, "FLOAT": 1, "DOUBLE": 11, "STRING": STRING}[to.upper()])


@op("Cast", 6)
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Convert ``x`` to the element type ``to``.

    Float8 saturates unless told not to. Numbers of less than 8 bits and strings are converted by NumPy.
    """
    if isinstance(x, np.ndarray):
        if to == STRING or to in NARROW:
            return x.astype(str).astype(object) if to == STRING else x.astype(narrow_dtype(NARROW[to]))
        x = _numbers(x, dtype_of(to))
    if to == STRING:
        return to_array(x if x.dtype != bfloat16 else x.float()).astype(str).astype(object)
    if to in NARROW:
        wide = x.float() if x.is_floating_point() else x
        return to_array(wide).astype(narrow_dtype(NARROW[to]))
    if to == FLOAT8_E8M0:
        return _power_of_two(x.float(), saturate, round_mode)
    if to in FLOAT8:
        return _float8(x, to, saturate)
    return x.to(dtype_of(to))


def _numbers(x: np.ndarray, dtype: _core.dtype) -> Tensor:
    """The numbers that strings spell, or that are narrow."""
    if x.dtype == object and dtype == bool_:
        x = np.array([text.lower() not in ("", "0", "false") for text in x.reshape(-1)]).reshape(x.shape)
    kind = np.float64 if dtype.is_floating_point or x.dtype.name.startswith("float") else np.int64
    return from_numpy(x.astype(kind))


def _float8(x: Tensor, to: int, saturate: int) -> Tensor:
    dtype = dtype_of(to)
    if not saturate:
        wide = x.float() if x.is_floating_point() else x
        return from_array(to_array(wide).astype(narrow_dtype(FLOAT8[to])))  # type: ignore[return-value]
    largest = finfo(dtype).max
    return clamp(x.float(), -largest, largest).to(dtype)


def _power_of_two(x: Tensor, saturate: int, round_mode: str) -> Tensor:
    """float8_e8m0fnu: 8 bits of exponent, with a bias of 127 and NaN in the last code (OCP Microscaling Formats
    1.0)."""
    mantissa, exponent = frexp(x)
    limit = {"up": 0.5, "nearest": 0.75, "down": 1.0}[round_mode]
    up = mantissa >= limit if round_mode == "nearest" else mantissa > limit
    code = where(up, exponent, exponent - 1).to(int64) + 127
    code = where(isposinf(x), 255, where(x == 0, -1, code))
    code = clamp(code, 0, 254) if saturate else where((code < 0) | (code > 254), 255, code)
    return where(isnan(x), 255, code).to(uint8).view(float8_e8m0fnu)


@op("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return cast(x, to=code_of(like), saturate=saturate, round_mode=round_mode)


op("BitCast")(lambda x, *, to: x.contiguous().view(dtype_of(to)))
