"""cuSOLVER and cuBLAS: LAPACK's routines on a GPU, for the bodies of ops that call them.

A routine gets the arguments that LAPACK's has (``ops/linalg/lapack.py``), and runs for one matrix of a batch after the
other on the current stream. Matrices lie by columns, as in LAPACK; factors, pivots and error codes are LAPACK's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from .. import _core
from ..ops.creation import arange, eye, full
from ..ops.linalg.lapack import LAPACK_DTYPES, H, columns, empty_columns
from . import _native
from ._driver import INT, POINTER, SIZE
from ._library import Library, address, calling

_I64, _BYTE = ctypes.c_int64, ctypes.c_byte
_SIZES = (POINTER, POINTER)  # where a function writes the sizes of its work areas, on the device and on the host
_WORK = (POINTER, SIZE, POINTER, SIZE, POINTER)  # work areas, and the error code of the matrix


def _own(*between: Any) -> tuple:
    """The parameters of a function of the 64-bit interface, and of that which gives the sizes of its work areas."""
    return (POINTER, POINTER, *between, *_WORK), (POINTER, POINTER, *between, *_SIZES)


_MATRIX = (INT, POINTER, _I64)  # dtype, address, leading dimension
_X = {
    "potrf": _own(INT, _I64, *_MATRIX, INT),
    "geqrf": _own(_I64, _I64, *_MATRIX, INT, POINTER, INT),
    "syevd": _own(INT, INT, _I64, *_MATRIX, INT, POINTER, INT),
    "gesvd": _own(_BYTE, _BYTE, _I64, _I64, *_MATRIX, INT, POINTER, *_MATRIX, *_MATRIX, INT),
}
#: The types of the parameters of each function (cuSOLVER 12); a result is an int, 0 for success.
SIGNATURES: dict[str, tuple] = {
    "cusolverDnCreate": (POINTER,),
    "cusolverDnCreateParams": (POINTER,),
    "cusolverDnSetStream": (POINTER, POINTER),
    "cusolverDnSetDeterministicMode": (POINTER, INT),
    "cusolverDnXgetrf": (POINTER, POINTER, _I64, _I64, *_MATRIX, POINTER, INT, *_WORK),
    "cusolverDnXgetrf_bufferSize": (POINTER, POINTER, _I64, _I64, *_MATRIX, INT, *_SIZES),
    "cusolverDnXgetrs": (POINTER, POINTER, INT, _I64, _I64, *_MATRIX, POINTER, *_MATRIX, POINTER),
}
for _name, (_run, _size) in _X.items():
    SIGNATURES[f"cusolverDnX{_name}"], SIGNATURES[f"cusolverDnX{_name}_bufferSize"] = _run, _size
_PRODUCT = (POINTER, INT, INT, INT, POINTER, INT, POINTER)
_TIMES = (POINTER, INT, INT, INT, INT, INT, POINTER, INT, POINTER, POINTER, INT)
for _letter, _kind in ("S", "or"), ("D", "or"), ("C", "un"), ("Z", "un"):
    for _name, _given in ("gqr", _PRODUCT), ("mqr", _TIMES):
        SIGNATURES[f"cusolverDn{_letter}{_kind}{_name}"] = (*_given, POINTER, INT, POINTER)
        SIGNATURES[f"cusolverDn{_letter}{_kind}{_name}_bufferSize"] = (*_given, POINTER)
SIGNATURES |= {f"cusolverDn{letter}potrfBatched": (POINTER, INT, INT, POINTER, INT, POINTER, INT) for letter in "SDCZ"}
LIBRARY = Library("cuSOLVER", "libcusolver.so.12", "nvidia.cu13", "nvidia-cusolver", SIGNATURES)

BLAS_SIGNATURES: dict[str, tuple] = {
    "cublasCreate_v2": (POINTER,),
    "cublasSetStream_v2": (POINTER, POINTER),
    "cublasSetWorkspace_v2": (POINTER, POINTER, SIZE),
} | {
    f"cublas{letter}trsm_v2_64": (POINTER, INT, INT, INT, INT, _I64, _I64, POINTER, POINTER, _I64, POINTER, _I64)
    for letter in "SDCZ"
}
# Of functions for many matrices: tables of addresses on the device, and how many there are.
_BATCHED: dict[str, tuple] = {
    "getrf": (INT, POINTER, INT, POINTER, POINTER, INT),
    "getrs": (INT, INT, INT, POINTER, INT, POINTER, POINTER, INT, POINTER, INT),
    "geqrf": (INT, INT, POINTER, INT, POINTER, POINTER, INT),
    "trsm": (INT, INT, INT, INT, INT, INT, POINTER, POINTER, INT, POINTER, INT, INT),
}
for _letter in "SDCZ":
    for _name, _given in _BATCHED.items():
        BLAS_SIGNATURES[f"cublas{_letter}{_name}Batched"] = POINTER, *_given
BLAS = Library("cuBLAS", "libcublas.so.13", "nvidia.cu13", "nvidia-cublas", BLAS_SIGNATURES)

#: The names of errors that both have, by the numbers of each.
_ERRORS = {
    "cuSOLVER": {1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH", 5: "MAPPING_ERROR",
                 6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED", 9: "NOT_SUPPORTED"},
    "cuBLAS": {1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
               13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED"},
}  # fmt: skip
_TYPES = {"float32": 0, "float64": 1, "complex64": 4, "complex128": 5}  # cudaDataType
_UPLO, _SIDE, _FORM, _DIAGONAL = {"L": 0, "U": 1}, {"L": 0, "R": 1}, {"N": 0, "T": 1, "C": 2}, {"N": 0, "U": 1}
_BLAS_WORK = 4 << 20  # bytes
#: Several matrices of up to so many rows and columns are one call, which has a block of threads for each.
SMALL = 128


def _call(library: Library, name: str, *args: Any) -> None:
    code = library.functions[name](*args)
    if code:
        raise RuntimeError(f"{library.what} error: {_ERRORS[library.what].get(code, code)} ({name})")


class _Handles:
    """The libraries' handles for one GPU, made when they are first used. They live as long as the process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a handle is for one thread at a time
        self.found: dict[str, int] = {}

    def handle(self, library: Library, create: str) -> int:
        if create not in self.found:
            made = POINTER()
            _call(library, create, ctypes.byref(made))
            self.found[create] = made.value or 0
            if create == "cusolverDnCreate":
                _call(library, "cusolverDnSetDeterministicMode", made, 1)  # CUSOLVER_DETERMINISTIC_RESULTS
        return self.found[create]


_handles: dict[int, _Handles] = {}


class _Matrices:
    """The matrices of a call: for each the addresses of its arguments, and calls of the library."""

    def __init__(self, handles: _Handles, dtype: Any, count: int, stream: int) -> None:
        self.handles, self.count, self.stream = handles, count, stream
        self.type, self.real = _TYPES[dtype.name], _TYPES[dtype.to_real().name]
        self.letter, self.dtype = LAPACK_DTYPES[dtype.name].upper(), dtype
        self.solver = self.parameters = 0
        self.area: Any = None  # for work on the device; the matrices take turns at it
        self.own: Any = None  # and on the host, with its size
        self.tables: list = []

    def at(self, x: Any, i: int) -> int:
        """The address of what matrix ``i`` has of ``x``: its part, or all where it is ``(x,)``."""
        if isinstance(x, tuple):
            return address(x[0])
        return address(x) + i * (x.numel() // self.count) * x.element_size()

    def small(self, *sizes: int) -> bool:
        """Whether one call computes all matrices."""
        return self.count > 1 and max(sizes) <= SMALL

    def table(self, x: Any) -> int:
        """The address of a table on the device: where each matrix has its part of ``x``."""
        first = self.at(x, 0)
        step = self.at(x, 1) - first
        made = arange(first, first + self.count * step, step) if step else full((self.count,), first)
        self.tables.append(made)
        return address(made)

    def blas(self) -> int:
        """The handle of cuBLAS, with a work area."""
        handle = self.handles.handle(BLAS, "cublasCreate_v2")
        self.blas_area = _core.empty((_BLAS_WORK,), _core.uint8)
        _call(BLAS, "cublasSetStream_v2", handle, self.stream)
        _call(BLAS, "cublasSetWorkspace_v2", handle, address(self.blas_area), _BLAS_WORK)
        return handle

    def batch(self, name: str, *args: Any) -> None:
        """``cublas<letter><name>Batched``."""
        _call(BLAS, f"cublas{self.letter}{name}Batched", self.blas(), *args, self.count)

    def begin(self) -> None:
        self.solver = self.handles.handle(LIBRARY, "cusolverDnCreate")
        self.parameters = self.handles.handle(LIBRARY, "cusolverDnCreateParams")
        _call(LIBRARY, "cusolverDnSetStream", self.solver, self.stream)

    def solve(self, name: str, i: int, args: tuple, info: Any, pivots: Any = None) -> None:
        """``cusolverDnX<name>`` for matrix ``i``. Pivots come before the last argument, and have no part in sizes."""
        function = f"cusolverDnX{name}"
        given = self.solver, self.parameters, *args
        if i == 0:
            there, here = SIZE(), SIZE()
            _call(LIBRARY, f"{function}_bufferSize", *given, ctypes.byref(there), ctypes.byref(here))
            self.area = _core.empty((there.value,), _core.uint8)
            self.own = ctypes.create_string_buffer(max(here.value, 1)), here
        if pivots is not None:
            given = *given[:-1], self.at(pivots, i), given[-1]
        _call(LIBRARY, function, *given, address(self.area), self.area.numel(), *self.own, self.at(info, i))

    def solve_old(self, name: str, i: int, args: tuple, info: Any) -> None:
        """``cusolverDn<letter><name>`` for matrix ``i``: a function without a 64-bit form."""
        name = name.replace("or", "un", 1) if self.dtype.is_complex else name
        function = f"cusolverDn{self.letter}{name}"
        if i == 0:
            size = INT()
            _call(LIBRARY, f"{function}_bufferSize", self.solver, *args, ctypes.byref(size))
            self.area = _core.empty((size.value,), self.dtype)
        _call(LIBRARY, function, self.solver, *args, address(self.area), self.area.numel(), self.at(info, i))


# ---- the routines ----------------------------------------------------------------------------------------------------


def _potrf(x: _Matrices, uplo: str, n: int, A: Any, lead: int, info: Any) -> None:
    if x.small(n):
        name = f"cusolverDn{x.letter}potrfBatched"
        _call(LIBRARY, name, x.solver, _UPLO[uplo], n, x.table(A), lead, x.at(info, 0), x.count)
        return
    for i in range(x.count):
        x.solve("potrf", i, (_UPLO[uplo], n, x.type, x.at(A, i), lead, x.type), info)


def _getrf(x: _Matrices, m: int, n: int, A: Any, lead: int, pivots: Any, info: Any) -> None:
    if m == n and x.small(n) and not BLAS.why_none:
        x.batch("getrf", n, x.table(A), lead, x.at(pivots, 0), x.at(info, 0))
        return
    wide = _core.empty(pivots.shape, _core.int64)
    for i in range(x.count):
        x.solve("getrf", i, (m, n, x.type, x.at(A, i), lead, x.type), info, wide)
    _core.copy_tensor(pivots, wide)


def _getrs(
    x: _Matrices, form: str, n: int, width: int, A: Any, lead: int, pivots: Any, B: Any, ldb: int, info: Any
) -> None:
    shared = isinstance(pivots, tuple)
    if not shared and x.small(n, width) and not BLAS.why_none:
        at = x.table(A), lead, x.at(pivots, 0), x.table(B), ldb
        x.batch("getrs", _FORM[form], n, width, *at, ctypes.byref(INT()))
        return
    narrow = pivots[0] if shared else pivots
    wide = _core.empty(narrow.shape, _core.int64)
    _core.copy_tensor(wide, narrow)
    for i in range(x.count):
        _call(
            LIBRARY, "cusolverDnXgetrs", x.solver, x.parameters, _FORM[form], n, width, x.type, x.at(A, i), lead,
            x.at((wide,) if shared else wide, i), x.type, x.at(B, i), ldb, x.at(info, i),
        )  # fmt: skip


def _getri(x: _Matrices, n: int, A: Any, lead: int, pivots: Any, work: Any, info: Any) -> None:
    """The inverse in place of the factors; error codes are those of the factorisation."""
    factors = columns(A)
    _core.copy_tensor(A, eye(n, dtype=A.dtype).expand(A.shape))
    _getrs(x, "N", n, n, factors, lead, pivots, A, lead, (_core.empty((1,), _core.int32),))


def _geqrf(x: _Matrices, m: int, n: int, A: Any, lead: int, tau: Any, work: Any, info: Any) -> None:
    if x.small(m, n) and not BLAS.why_none:
        x.batch("geqrf", m, n, x.table(A), lead, x.table(tau), ctypes.byref(INT()))
        return
    for i in range(x.count):
        x.solve("geqrf", i, (m, n, x.type, x.at(A, i), lead, x.type, x.at(tau, i), x.type), info)


def _orgqr(x: _Matrices, m: int, n: int, k: int, A: Any, lead: int, tau: Any, work: Any, info: Any) -> None:
    for i in range(x.count):
        x.solve_old("orgqr", i, (m, n, k, x.at(A, i), lead, x.at(tau, i)), info)


def _ormqr(
    x: _Matrices, side: str, form: str, m: int, n: int, k: int, A: Any, lead: int, tau: Any, C: Any, ldc: int,
    work: Any, info: Any,
) -> None:  # fmt: skip
    for i in range(x.count):
        given = _SIDE[side], _FORM[form], m, n, k, x.at(A, i), lead, x.at(tau, i), x.at(C, i), ldc
        x.solve_old("ormqr", i, given, info)


def _syevd(x: _Matrices, job: str, uplo: str, n: int, A: Any, lead: int, w: Any, *rest: Any) -> None:
    for i in range(x.count):
        given = int(job == "V"), _UPLO[uplo], n, x.type, x.at(A, i), lead, x.real, x.at(w, i), x.type
        x.solve("syevd", i, given, rest[-1])


def _gesdd(
    x: _Matrices, job: str, m: int, n: int, A: Any, lead: int, S: Any, U: Any, ldu: int, Vh: Any, *rest: Any
) -> None:
    """By ``gesvd``, which takes matrices of no more columns than rows: others by their adjoint."""
    vectors, turned = job != "N", m < n
    left, right = U, Vh
    if turned:
        A, m, n = columns(H(A)), n, m
        if vectors:
            left, right = (empty_columns((*y.shape[:-2], y.shape[-1], y.shape[-2]), y.dtype) for y in (Vh, U))
    letter = ord(job)
    for i in range(x.count):
        outer = [x.at(y, i) if vectors else 0 for y in (left, right)]
        x.solve("gesvd", i, (
            letter, letter, m, n, x.type, x.at(A, i), m, x.real, x.at(S, i), x.type, outer[0], m, x.type, outer[1],
            right.shape[-2] if vectors else n, x.type,
        ), rest[-1])  # fmt: skip
    if turned and vectors:
        _core.copy_tensor(U, H(right))
        _core.copy_tensor(Vh, H(left))


def _trsm(
    x: _Matrices, side: str, uplo: str, form: str, diagonal: str, m: int, n: int, one: Any, A: Any, lead: int, B: Any,
    ldb: int,
) -> None:  # fmt: skip
    alpha = (ctypes.c_float * 2)(1.0, 0.0) if x.letter in "SC" else (ctypes.c_double * 2)(1.0, 0.0)
    given = _SIDE[side], _UPLO[uplo], _FORM[form], _DIAGONAL[diagonal], m, n, alpha
    if x.small(m, n):
        x.batch("trsm", *given, x.table(A), lead, x.table(B), ldb)
        return
    handle = x.blas()
    for i in range(x.count):
        _call(BLAS, f"cublas{x.letter}trsm_v2_64", handle, *given, x.at(A, i), lead, x.at(B, i), ldb)


_BY_SOLVER: dict[str, Callable] = {
    "potrf": _potrf, "getrf": _getrf, "getrs": _getrs, "getri": _getri, "geqrf": _geqrf, "orgqr": _orgqr,
    "ormqr": _ormqr, "syevd": _syevd, "gesdd": _gesdd,
}  # fmt: skip


def routines() -> frozenset[str]:
    """The names of LAPACK's routines that there are."""
    found = [] if LIBRARY.why_none else list(_BY_SOLVER)
    return frozenset(found if BLAS.why_none else [*found, "trsm"])


def run(index: int, name: str, dtype: Any, count: int, *arguments: Any) -> None:
    """Run a routine for ``count`` matrices on the current stream of a GPU."""
    if _native.captured_here() is not None:
        raise RuntimeError(
            f"{name} of {BLAS.what if name == 'trsm' else LIBRARY.what} cannot be captured into a CUDA graph: it may "
            "wait for the GPU. Compute before or after the capture"
        )
    handles = _handles.setdefault(index, _Handles())
    with handles.lock, calling(index) as (stream,):
        matrices = _Matrices(handles, dtype, count, stream)
        if name == "trsm":
            _trsm(matrices, *arguments)
        else:
            matrices.begin()
            _BY_SOLVER[name](matrices, *arguments)
