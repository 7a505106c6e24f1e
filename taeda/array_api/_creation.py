"""Making arrays."""

from __future__ import annotations

import warnings
from typing import Any

import taeda

from .._typed import Tensor
from ._dtypes import _public


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """``obj`` (numbers, nested sequences, an array, what has DLPack or the buffer protocol) as an array; see
    :func:`taeda.asarray`, which takes a buffer for float32, where here its own format counts."""
    if not isinstance(obj, (Tensor, list, tuple, float)) and not hasattr(obj, "__dlpack__"):
        try:
            view = memoryview(obj)
        except TypeError:  # no buffer
            pass
        else:
            copy = True if copy is None and view.readonly else copy
            obj = _from_buffer(view)
    return taeda.asarray(obj, dtype=dtype, device=device, copy=copy)


def _from_buffer(view: memoryview) -> Tensor:
    """The elements of a buffer, of the dtype and shape that it has; in its own memory where that is contiguous."""
    kind = (
        {"?": "bool"}
        | dict.fromkeys("bhilqn", "int")
        | dict.fromkeys("BHILQNc", "uint")
        | dict.fromkeys("efd", "float")
    )
    code = view.format.lstrip("@=")
    if code not in kind:
        raise TypeError(f"asarray: expected a buffer of bools, integers or floating-point numbers, got format {code!r}")
    dtype = getattr(taeda, kind[code] if code == "?" else f"{kind[code]}{8 * view.itemsize}")
    shape = tuple(view.shape or ())
    if 0 in shape:
        return taeda.empty(shape, dtype=dtype)
    with warnings.catch_warnings():  # that memory may not be written to: asarray copies it, unless it is told not to
        warnings.simplefilter("ignore", UserWarning)
        flat = taeda.frombuffer(view if view.c_contiguous else bytearray(view.tobytes()), dtype=dtype)
    return flat.reshape(shape)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from ``start`` to before ``stop``, ``step`` apart; with one argument, from 0 to before it. None, where
    the step leads away from ``stop``."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step must not be zero")
    if dtype is None:
        whole = all(isinstance(x, int) for x in (start, stop, step))
        dtype = taeda.int64 if whole else taeda.get_default_dtype()
    if (stop - start) / step <= 0:
        return taeda.empty(0, dtype=dtype, device=device)
    return taeda.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """``num`` numbers, evenly spaced from ``start`` to ``stop``, which is the last of them if ``endpoint``."""
    if dtype is None:
        dtype = taeda.get_default_dtype()
        dtype = dtype.to_complex() if isinstance(start, complex) or isinstance(stop, complex) else dtype
    made = taeda.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return made if endpoint else made[:-1].clone()


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Undefined elements."""
    return taeda.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros."""
    return taeda.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones."""
    return taeda.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """``fill_value`` everywhere; without ``dtype`` in the default dtype for such numbers."""
    return taeda.full(shape if isinstance(shape, (tuple, list)) else (shape,), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Undefined elements, in the shape and dtype of ``x``."""
    return taeda.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, in the shape and dtype of ``x``."""
    return taeda.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones, in the shape and dtype of ``x``."""
    return taeda.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """``fill_value`` everywhere, in the shape and dtype of ``x``."""
    return taeda.full_like(x, fill_value, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made = taeda.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        taeda.diagonal(made, k).fill_(1)
    return made


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of the last two dimensions on and below the ``k``-th diagonal, zeros above."""
    return taeda.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of the last two dimensions on and above the ``k``-th diagonal, zeros below."""
    return taeda.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """One array of coordinates per vector, over their grid."""
    return list(taeda.meshgrid(*arrays, indexing=indexing)) if arrays else []


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The memory of another library's array, shared unless ``copy``."""
    return taeda.from_dlpack(x, device=device, copy=copy)


__all__ = _public(globals())
