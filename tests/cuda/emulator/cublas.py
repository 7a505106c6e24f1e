"""A stand-in of cuBLAS for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cublas_api.h`` (cuBLAS 13). NumPy computes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .capture import put
from .cusolver import LETTERS, op, substituted
from .library import I, N, Operand, P, StandIn, table_of

SIGNATURES: dict[str, tuple] = {
    "cublasCreate_v2": (P,), "cublasSetStream_v2": (P, P), "cublasSetWorkspace_v2": (P, P, N),
} | {f"cublas{letter}trsm_v2_64": (P, I, I, I, I, P, P, P, P, P, P, P) for letter in "SDCZ"}  # fmt: skip
INVALID, EXECUTION_FAILED, INTERNAL = 7, 13, 14


class Handle:
    def __init__(self, context: Any):
        self.context, self.stream, self.area = context, 0, (0, 0)


class Cublas(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cublas", EXECUTION_FAILED, INTERNAL, INVALID

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("trsm_v2_64"):
            raise AttributeError(name)
        return functools.partial(self.trsm, LETTERS[name[6]])

    def cublasCreate_v2(self, to):
        number = next(self.numbers)
        self.handles[number] = Handle(self.context())
        put(to, number)

    def cublasSetStream_v2(self, handle, stream):
        h = self.take(handle, Handle)
        h.stream, h.area = stream, (0, 0)  # the work area is the library's own again

    def cublasSetWorkspace_v2(self, handle, address, nbytes):
        self.take(handle, Handle).area = address, nbytes

    def trsm(self, kind, handle, side, uplo, form, diagonal, m, n, alpha, A, lead, B, ldb):
        h = self.take(handle, Handle)
        if not h.area[0]:
            raise self.refuse("no work area: those of several streams would share the library's")
        k = m if side == 0 else n
        if lead < max(k, 1) or ldb < max(m, 1):
            raise self.refuse(f"leading dimensions {lead} and {ldb}")
        factor = np.frombuffer(ctypes.string_at(alpha, np.dtype(kind).itemsize), kind)[0]

        def do(area, a, b):
            area[...] = 0xA5
            T, upper = op(a, form), (uplo == 1) == (form == 0)
            given = factor * b
            with np.errstate(all="ignore"):
                b[...] = (
                    substituted(T, given, upper, diagonal == 1)
                    if side == 0
                    else substituted(T.T, given.T, not upper, diagonal == 1).T
                )

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
