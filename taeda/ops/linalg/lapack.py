"""LAPACK for batches of matrices: the library, its routines by dtype, memory layouts and error codes.

The library is the build of OpenBLAS that NumPy's and SciPy's maintainers publish (``scipy-openblas32``); it is loaded
when the first routine is called. Matrices are handed over by columns, as Fortran keeps them.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from ..._core import Tensor
from ..._core.devices import REGISTERED, current_place
from ..._core.lapack import any_nonzero, use_thread_setter
from ..._core.lapack import call as _call
from ..._core.lapack import columns as columns
from ..._core.lapack import empty_columns as empty_columns
from ..._core.lapack import zero_ints as ints  # noqa: F401
from ..._core.mends import not_tensor
from ...kernels.forks import loading
from ..creation import eye
from ..table import primitive
from ..views import broadcast_shapes

_DTYPES = ("float32", "float64", "complex64", "complex128")
#: LAPACK's letter for each dtype that it computes in.
LAPACK_DTYPES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
#: Names for complex matrices of the routines for real orthogonal and symmetric ones.
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}


class LinAlgError(RuntimeError):
    """A matrix that LAPACK cannot factor, such as a singular one. A RuntimeError.

    Examples:
        >>> try:
        ...     taeda.linalg.inv(taeda.zeros(2, 2))
        ... except taeda.linalg.LinAlgError:
        ...     print("singular")
        singular
    """


LinAlgError.__module__ = "taeda.linalg"


# ---- routines --------------------------------------------------------------------------------------------------------


@functools.cache
def _library() -> Any:
    with loading:
        import ctypes

        import scipy_openblas32 as blas

    library = ctypes.CDLL(os.path.join(blas.get_lib_dir(), blas.get_library(fullname=True)))
    use_thread_setter(ctypes.cast(library.scipy_openblas_set_num_threads, ctypes.c_void_p).value)
    return library


@functools.cache
def _routine(name: str, dtype: str) -> int:
    """The address of a routine for a dtype."""
    import ctypes

    letter = LAPACK_DTYPES[dtype]
    name = _COMPLEX_NAMES.get(name, name) if letter in "cz" else name
    address = ctypes.cast(getattr(_library(), f"scipy_{letter}{name}_"), ctypes.c_void_p).value
    assert address is not None
    return address


def call(name: str, dtype: Any, count: int, *arguments: Any) -> None:
    """Run a routine for ``count`` matrices; see ``_core.lapack.call`` for the arguments.

    On a device that is the device's own: an op names the routines that its body needs (the trait ``on_host``).
    """
    if not count or dtype.name not in LAPACK_DTYPES:  # such come from meta, where nothing runs
        return
    device = REGISTERED[current_place()]
    if device is not None:
        device.lapack(name, dtype, count, *arguments)
    else:
        _call(_routine(name, dtype.name), count, *arguments)


# ---- memory ----------------------------------------------------------------------------------------------------------


def readable(x: Tensor) -> tuple[Tensor, bool]:
    """Memory that holds ``x`` by columns (True: by rows), without a copy where it lies so."""
    if x.is_contiguous():
        return x, True
    if x.shape[:-2].numel() <= 1 and x.stride(-2) == 1 and x.stride(-1) == max(x.shape[-2], 1):
        return x, False
    transposed = x.transpose(-2, -1)
    return (x, False) if transposed.is_contiguous() else (x.contiguous(), True)


def by_columns(x: Tensor) -> Tensor:
    """``x`` as it lies in PyTorch's results: by columns."""
    return x if x.transpose(-2, -1).is_contiguous() else columns(x)


def batch_of(*tensors: Tensor) -> tuple[int, ...]:
    """The broadcast batch sizes of several tensors of matrices."""
    first = tuple(tensors[0].shape[:-2])
    if all(tuple(t.shape[:-2]) == first for t in tensors[1:]):
        return first
    return tuple(broadcast_shapes(*(t.shape[:-2] for t in tensors)))


def count_of(batch: Any) -> int:
    count = 1
    for size in batch:
        count *= size
    return count


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_tensor(x: Any, name: str, label: str = "A") -> None:
    if not isinstance(x, Tensor):
        raise not_tensor(f"{name}(): argument '{label}'", x)


def check_matrix(x: Any, name: str, label: str = "A") -> None:
    check_tensor(x, name, label)
    if x.dim() < 2:
        raise RuntimeError(
            f"{name}: The input tensor {label} must have at least 2 dimensions, got shape {list(x.shape)}"
        )


#: The errors for integers and for low precision: PyTorch looks at the dtype first, or lacks a kernel for it.
BY_CHECK = (RuntimeError, RuntimeError)
BY_KERNEL = (NotImplementedError, NotImplementedError)
BY_EITHER = (RuntimeError, NotImplementedError)


def check_float(x: Tensor, name: str, refused: tuple = BY_EITHER) -> None:
    if x.dtype.name in _DTYPES:
        return
    low = x.is_floating_point()
    if not (low and refused[low] is NotImplementedError and x.is_meta):  # where no kernel runs, none lacks
        what = "Low precision dtypes not supported" if low else "Expected a floating point or complex tensor"
        raise refused[low](f"{name}: {what} as input. Got {x.dtype}; convert it with .to(dtype)")


def check(x: Any, name: str, square: bool = True, label: str = "A", refused: tuple = BY_EITHER) -> None:
    """``x`` is a floating-point tensor of (square) matrices."""
    check_matrix(x, name, label)
    if square and x.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"{name}: {label} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )
    check_float(x, name, refused)


def check_same_dtype(name: str, A: Tensor, B: Tensor, a: str = "A", b: str = "B") -> None:
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected {a} and {b} to have the same dtype, but found {a} of type {A.dtype} and {b} of type "
            f"{B.dtype} instead"
        )


@primitive(method=False, out=False, batch="check", name="_failed", on_host=True)
def failed(info):
    """The first error code that is not 0, and the words that name its place in a batch."""
    info = info._whole() if hasattr(info, "_whole") else info  # the codes of every example under vmap
    if info.is_meta or not any_nonzero(info):  # on meta nothing was computed that could have failed
        return None
    codes = info.reshape(-1).tolist()
    where = next((i for i, code in enumerate(codes) if code), None)
    if where is None:
        return None
    return codes[where], f"(Batch element {where}): " if info.dim() else ""


#: Of an inverse; see :func:`raise_failed`.
SINGULAR_INVERSE = (
    "The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."
)


def raise_failed(info: Tensor, name: str, text: str) -> None:
    """LinAlgError where an error code is not 0; ``{k}`` in the text is the code."""
    found = failed(info)
    if found is not None:
        code, place = found
        raise LinAlgError(f"{name}: {place}{text.replace('{k}', str(code))}")


# ---- small things the derivatives share ------------------------------------------------------------------------------


def H(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return x.transpose(-2, -1).conj_physical() if x.is_complex() else x.transpose(-2, -1)


def eye_like(x: Tensor) -> Tensor:
    return eye(x.shape[-1], dtype=x.dtype)
