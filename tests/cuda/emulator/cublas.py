"""A stand-in of cuBLAS for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cublas_api.h`` (cuBLAS 13). NumPy computes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .capture import put
from .cusolver import LETTERS, geqrf, getrf, getrs, op, substituted
from .library import I, N, Operand, P, StandIn, table_of

SIGNATURES: dict[str, tuple] = {
    "cublasCreate_v2": (P,), "cublasSetStream_v2": (P, P), "cublasSetWorkspace_v2": (P, P, N),
} | {f"cublas{letter}trsm_v2_64": (P, I, I, I, I, P, P, P, P, P, P, P) for letter in "SDCZ"}  # fmt: skip
_BATCHED = {
    "getrf": (I, P, I, P, P, I), "getrs": (I, I, I, P, I, P, P, I, P, I), "geqrf": (I, I, P, I, P, P, I),
    "trsm": (I, I, I, I, I, I, P, P, I, P, I, I),
}  # fmt: skip
SIGNATURES |= {f"cublas{letter}{name}Batched": (P, *args) for letter in "SDCZ" for name, args in _BATCHED.items()}
INVALID, EXECUTION_FAILED, INTERNAL = 7, 13, 14


def solve(a: np.ndarray, b: np.ndarray, factor: Any, side: int, uplo: int, form: int, diagonal: int) -> None:
    """``trsm``."""
    T, upper = op(a, form), (uplo == 1) == (form == 0)
    given = factor * b
    b[...] = (
        substituted(T, given, upper, diagonal == 1)
        if side == 0
        else substituted(T.T, given.T, not upper, diagonal == 1).T
    )


class Handle:
    def __init__(self, context: Any):
        self.context, self.stream, self.area = context, 0, (0, 0)


class Cublas(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cublas", EXECUTION_FAILED, INTERNAL, INVALID

    def __getattr__(self, name: str) -> Any:
        if name not in SIGNATURES:
            raise AttributeError(name)
        return functools.partial(
            getattr(self, name[7:].replace("Batched", "_batched").partition("_v2")[0]), LETTERS[name[6]]
        )

    def cublasCreate_v2(self, to):
        number = next(self.numbers)
        self.handles[number] = Handle(self.context())
        put(to, number)

    def cublasSetStream_v2(self, handle, stream):
        h = self.take(handle, Handle)
        h.stream, h.area = stream, (0, 0)  # the work area is the library's own again

    def cublasSetWorkspace_v2(self, handle, address, nbytes):
        self.take(handle, Handle).area = address, nbytes

    def ready(self, handle: int) -> Handle:
        """A handle that may run work."""
        h = self.take(handle, Handle)
        if not h.area[0]:
            raise self.refuse("no work area: those of several streams would share the library's")
        return h

    def matrix(self, kind: str, m: int, n: int, lead: int, writes: bool = True) -> Any:
        if lead < max(m, 1):
            raise self.refuse(f"a leading dimension of {lead} for {m} rows")
        return lambda at: Operand(at, kind, (m, n), (1, lead), writes, reads=True)

    def batch(self, name: str, handle: int, count: int, tables: list, others: list, do: Any) -> None:
        h = self.ready(handle)
        if count < 1:
            raise self.refuse(f"{count} matrices")

        def quiet(*given: Any) -> None:
            with np.errstate(all="ignore"):
                do(*given)

        self.queue_batch(f"{name}Batched", self.driver.stream(h.stream), count, tables, others, quiet)

    def getrf_batched(self, kind, handle, n, A, lead, pivots, info, count):
        def do(i, a, p, code):
            code[i] = getrf(a, p[i])

        others = [Operand(pivots, "i4", (count, n), writes=True), Operand(info, "i4", (count,), writes=True)]
        self.batch("getrf", handle, count, [(A, self.matrix(kind, n, n, lead))], others, do)

    def getrs_batched(self, kind, handle, form, n, width, A, lead, pivots, B, ldb, info, count):
        tables = [(A, self.matrix(kind, n, n, lead, writes=False)), (B, self.matrix(kind, n, width, ldb))]
        put(info, 0, I)  # on the host
        others = [Operand(pivots, "i4", (count, n))]
        self.batch("getrs", handle, count, tables, others, lambda i, a, b, p: getrs(a, p[i], b, form))

    def geqrf_batched(self, kind, handle, m, n, A, lead, taus, info, count):
        tables = [(A, self.matrix(kind, m, n, lead)), (taus, lambda at: Operand(at, kind, (min(m, n),), writes=True))]
        put(info, 0, I)  # on the host
        self.batch("geqrf", handle, count, tables, [], lambda i, a, tau: geqrf(a, tau))

    def trsm_batched(self, kind, handle, side, uplo, form, diagonal, m, n, alpha, A, lead, B, ldb, count):
        k = m if side == 0 else n
        tables = [(A, self.matrix(kind, k, k, lead, writes=False)), (B, self.matrix(kind, m, n, ldb))]
        factor = np.frombuffer(ctypes.string_at(alpha, np.dtype(kind).itemsize), kind)[0]
        self.batch("trsm", handle, count, tables, [], lambda i, a, b: solve(a, b, factor, side, uplo, form, diagonal))

    def trsm(self, kind, handle, side, uplo, form, diagonal, m, n, alpha, A, lead, B, ldb):
        h = self.ready(handle)
        k = m if side == 0 else n
        if lead < max(k, 1) or ldb < max(m, 1):
            raise self.refuse(f"leading dimensions {lead} and {ldb}")
        factor = np.frombuffer(ctypes.string_at(alpha, np.dtype(kind).itemsize), kind)[0]

        def do(area, a, b):
            area[...] = 0xA5
            with np.errstate(all="ignore"):
                solve(a, b, factor, side, uplo, form, diagonal)

        operands = [
            Operand(h.area[0], "u1", (min(h.area[1], 256),), writes=True), Operand(A, kind, (k, k), (1, lead)),
            Operand(B, kind, (m, n), (1, ldb), writes=True, reads=True),
        ]  # fmt: skip
        self.queue("trsm", self.driver.stream(h.stream), operands, do)


@functools.cache
def cublas() -> Cublas:
    from . import driver

    return Cublas(driver(), SIGNATURES)


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libcublas`` exports it."""
    return table_of(cublas, "cublas")
