"""A stand-in of cuSOLVER for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cusolverDn.h`` (cuSOLVER 12). NumPy computes, by LAPACK's
conventions. Work areas are overwritten, and so is what LAPACK overwrites.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .capture import put
from .library import I, N, Operand, P, StandIn, table_of

L, B = P, I
_END = (P, N, P, N, P)
_SIZES = (P, P)
_X = {
    "potrf": (I, L, I, P, L, I), "getrf": (L, L, I, P, L, I), "geqrf": (L, L, I, P, L, I, P, I),
    "syevd": (I, I, L, I, P, L, I, P, I), "gesvd": (B, B, L, L, I, P, L, I, P, I, P, L, I, P, L, I),
}  # fmt: skip
_PRODUCT, _TIMES = (I, I, I, P, I, P), (I, I, I, I, I, P, I, P, P, I)
SIGNATURES: dict[str, tuple] = {
    "cusolverDnCreate": (P,), "cusolverDnCreateParams": (P,), "cusolverDnSetStream": (P, P),
    "cusolverDnSetDeterministicMode": (P, I), "cusolverDnXgetrs": (P, P, I, L, L, I, P, L, P, I, P, L, P),
}  # fmt: skip
for _name, _args in _X.items():
    run = (*_args[:-1], P, _args[-1]) if _name == "getrf" else _args
    SIGNATURES[f"cusolverDnX{_name}"] = (P, P, *run, *_END)
    SIGNATURES[f"cusolverDnX{_name}_bufferSize"] = (P, P, *_args, *_SIZES)
for _letter in "SDCZ":
    for _name, _args in (("gqr", _PRODUCT), ("mqr", _TIMES)):
        full = f"cusolverDn{_letter}{'or' if _letter in 'SD' else 'un'}{_name}"
        SIGNATURES[full], SIGNATURES[f"{full}_bufferSize"] = (P, *_args, P, I, P), (P, *_args, P)
SIGNATURES |= {f"cusolverDn{letter}potrfBatched": (P, I, I, P, I, P, I) for letter in "SDCZ"}
DTYPES = {0: "f4", 1: "f8", 4: "c8", 5: "c16"}
LETTERS = {"S": "f4", "D": "f8", "C": "c8", "Z": "c16"}
NOT_INITIALIZED, INVALID, EXECUTION_FAILED, INTERNAL = 1, 3, 6, 7


class Handle:
    def __init__(self, context: Any):
        self.context, self.stream, self.deterministic = context, 0, False


class Parameters:
    def __init__(self, context: Any):
        self.context = context


# ---- LAPACK by NumPy -------------------------------------------------------------------------------------------------


def real_of(kind: str) -> str:
    return {"c8": "f4", "c16": "f8"}.get(kind, kind)


def potrf(A: np.ndarray, upper: bool) -> int:
    """The factor over the triangle that is read; the other one is left as it is."""
    T = A.conj().T if upper else A  # a view for real numbers, a copy for others
    work = T.copy()
    code = 0
    for j in range(len(A)):
        d = work[j, j].real - (np.abs(work[j, :j]) ** 2).sum()
        if not d > 0:
            code = j + 1
            break
        work[j, j] = np.sqrt(d)
        work[j + 1 :, j] = (work[j + 1 :, j] - work[j + 1 :, :j] @ work[j, :j].conj()) / work[j, j]
    made = work.conj().T if upper else work
    inside = np.triu(np.ones(A.shape, bool)) if upper else np.tril(np.ones(A.shape, bool))
    A[inside] = made[inside]
    return code


def getrf(A: np.ndarray, pivots: np.ndarray) -> int:
    code = 0
    for j in range(min(A.shape)):
        p = j + int((np.abs(A[j:, j].real) + np.abs(A[j:, j].imag)).argmax())  # as BLAS measures complex numbers
        pivots[j] = p + 1
        A[[j, p]] = A[[p, j]]
        if A[j, j] == 0:
            code = code or j + 1
            continue
        A[j + 1 :, j] /= A[j, j]
        A[j + 1 :, j + 1 :] -= np.outer(A[j + 1 :, j], A[j, j + 1 :])
    return code


def substituted(A: np.ndarray, B: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """``X`` with ``A X = B`` for a triangle."""
    X, n = B.copy(), len(A)
    for j in range(n - 1, -1, -1) if upper else range(n):
        if not unit:
            X[j] /= A[j, j]
        rest = slice(0, j) if upper else slice(j + 1, n)
        X[rest] -= np.outer(A[rest, j], X[j])
    return X


def op(A: np.ndarray, form: int) -> np.ndarray:
    return (A, A.T, A.conj().T)[form]


def getrs(A: np.ndarray, pivots: np.ndarray, B: np.ndarray, form: int) -> None:
    rows = np.arange(len(A))
    for j, p in enumerate(pivots):
        rows[[j, p - 1]] = rows[[p - 1, j]]
    if form == 0:
        B[...] = substituted(A, substituted(A, B[rows], False, True), True, False)
    else:
        T = op(A, form)
        B[rows] = substituted(T, substituted(T, B, False, False), True, True)


def geqrf(A: np.ndarray, tau: np.ndarray) -> None:
    m, n = A.shape
    for j in range(min(m, n)):
        x = A[j:, j].copy()
        norm = np.linalg.norm(x)
        if np.linalg.norm(x[1:]) == 0 and x[0].imag == 0:
            tau[j] = 0
            continue
        beta = -norm if x[0].real >= 0 else norm
        tau[j] = (beta - x[0]) / beta
        v = x / (x[0] - beta)
        v[0] = 1
        A[j:, j + 1 :] -= np.conj(tau[j]) * np.outer(v, v.conj() @ A[j:, j + 1 :])
        A[j, j], A[j + 1 :, j] = beta, v[1:]


def product(A: np.ndarray, tau: np.ndarray, C: np.ndarray, adjoint: bool) -> np.ndarray:
    """``Q C`` (``Q^H C``) for the reflectors of ``geqrf``."""
    C = C.copy()
    for j in range(len(tau)) if adjoint else range(len(tau) - 1, -1, -1):
        v = A[:, j].copy()
        v[:j], v[j] = 0, 1
        C -= (np.conj(tau[j]) if adjoint else tau[j]) * np.outer(v, v.conj() @ C)
    return C


# ---- the functions ---------------------------------------------------------------------------------------------------


class Cusolver(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cusolver", EXECUTION_FAILED, INTERNAL, INVALID

    def __getattr__(self, name: str) -> Any:
        """The functions that give sizes, and those of several letters."""
        if not name.startswith("cusolverDn"):
            raise AttributeError(name)
        if name.startswith("cusolverDnX") and name.endswith("_bufferSize"):
            return lambda handle, parameters, *args: self.sizes(handle, parameters, *args[-2:])
        kind, what = LETTERS[name[10]], name[11 if name.endswith("Batched") else 13 :]
        if what.endswith("_bufferSize"):
            return lambda handle, *args: (self.take(handle, Handle), put(args[-1], 16, I))
        return functools.partial(getattr(self, what), kind)

    def sizes(self, handle: int, parameters: int, there: int, here: int) -> None:
        self.take(handle, Handle), self.take(parameters, Parameters)
        put(there, 64, N), put(here, 32, N)

    def new(self, to: int, kind: type) -> None:
        number = next(self.numbers)
        self.handles[number] = kind(self.context())
        put(to, number)

    def cusolverDnCreate(self, to):
        self.new(to, Handle)

    def cusolverDnCreateParams(self, to):
        self.new(to, Parameters)

    def cusolverDnSetStream(self, handle, stream):
        self.take(handle, Handle).stream = stream

    def cusolverDnSetDeterministicMode(self, handle, mode):
        self.take(handle, Handle).deterministic = mode == 1

    def matrix(self, kind: str, m: int, n: int, address: int, lead: int, writes: bool = True, reads: bool = True):
        if lead < max(m, 1):
            raise self.refuse(f"a leading dimension of {lead} for {m} rows")
        return Operand(address, kind, (m, n), (1, lead), writes, reads)

    def vector(self, kind: str, n: int, address: int, writes: bool = True):
        return Operand(address, kind, (n,), writes=writes)

    def run(self, name: str, handle: int, operands: list, do: Any, info: int, area: tuple | None = None) -> None:
        h = self.take(handle, Handle)
        if not h.deterministic:
            raise self.refuse("results may differ from run to run")
        stream = self.driver.stream(h.stream)
        if stream in self.driver.captures:
            raise self.refuse("the stand-in knows no captures")
        work = []
        if area is not None:
            address, given, need = area
            if given < need:
                raise self.refuse(f"a work area of {given}, not {need}")
            work = [Operand(address, "u1", (need,), writes=True)]

        def did(code, *arrays):
            if work:
                arrays[0][...] = 0xA5
                arrays = arrays[1:]
            with np.errstate(all="ignore"):
                code[...] = do(*arrays) or 0

        self.queue(name, stream, [Operand(info, "i4", (1,), writes=True), *work, *operands], did)

    def x(self, name, handle, parameters, operands, do, device, size, host, here, info):
        self.take(parameters, Parameters)
        if here < 32 or not host:
            raise self.refuse("no work area on the host")
        self.run(name, handle, operands, do, info, (device, size, 64))

    def cusolverDnXpotrf(self, handle, parameters, uplo, n, kind, A, lead, compute, *end):
        k = DTYPES[kind]
        self.x("potrf", handle, parameters, [self.matrix(k, n, n, A, lead)], lambda a: potrf(a, uplo == 1), *end)

    def cusolverDnXgetrf(self, handle, parameters, m, n, kind, A, lead, pivots, compute, *end):
        operands = [self.matrix(DTYPES[kind], m, n, A, lead), self.vector("i8", min(m, n), pivots)]
        self.x("getrf", handle, parameters, operands, getrf, *end)

    def cusolverDnXgetrs(self, handle, parameters, form, n, width, kind, A, lead, pivots, kind_b, B, ldb, info):
        self.take(parameters, Parameters)
        k = DTYPES[kind]
        operands = [
            self.matrix(k, n, n, A, lead, writes=False), self.vector("i8", n, pivots, writes=False),
            self.matrix(k, n, width, B, ldb),
        ]  # fmt: skip
        self.run("getrs", handle, operands, lambda a, p, b: getrs(a, p, b, form), info)

    def cusolverDnXgeqrf(self, handle, parameters, m, n, kind, A, lead, kind_tau, tau, compute, *end):
        k = DTYPES[kind]
        operands = [self.matrix(k, m, n, A, lead), self.vector(k, min(m, n), tau)]
        self.x("geqrf", handle, parameters, operands, geqrf, *end)

    def cusolverDnXsyevd(self, handle, parameters, job, uplo, n, kind, A, lead, kind_w, w, compute, *end):
        k = DTYPES[kind]
        if DTYPES[kind_w] != real_of(k):
            raise self.refuse("eigenvalues are real")

        def do(a, values):
            found, vectors = np.linalg.eigh(a, "U" if uplo else "L")
            values[...] = found
            a[...] = vectors if job else np.nan

        self.x("syevd", handle, parameters, [self.matrix(k, n, n, A, lead), self.vector(real_of(k), n, w)], do, *end)

    def cusolverDnXgesvd(
        self,
        handle,
        parameters,
        job_u,
        job_v,
        m,
        n,
        kind,
        A,
        lead,
        kind_s,
        S,
        kind_u,
        U,
        ldu,
        kind_v,
        V,
        ldv,
        compute,
        *end,
    ):
        k = DTYPES[kind]
        if m < n:
            raise self.refuse(f"fewer rows, {m}, than columns, {n}")
        if job_u != job_v or chr(job_u) not in "ASN" or DTYPES[kind_s] != real_of(k):
            raise self.refuse(f"jobs {job_u}, {job_v}")
        vectors, full = chr(job_u) != "N", chr(job_u) == "A"
        operands = [self.matrix(k, m, n, A, lead), self.vector(real_of(k), n, S)]
        if vectors:
            operands.append(self.matrix(k, m, m if full else n, U, ldu, reads=False))
            operands.append(self.matrix(k, n, n, V, ldv, reads=False))

        def do(a, s, u=None, v=None):
            if vectors:
                u[...], s[...], v[...] = np.linalg.svd(a, full_matrices=full)
            else:
                s[...] = np.linalg.svd(a, compute_uv=False)
            a[...] = np.nan

        self.x("gesvd", handle, parameters, operands, do, *end)

    def potrfBatched(self, kind, handle, uplo, n, A, lead, info, count):
        def do(i, a, code):
            code[i] = potrf(a, uplo == 1)

        h = self.take(handle, Handle)
        if lead < max(n, 1) or count < 1:
            raise self.refuse(f"{count} matrices, a leading dimension of {lead}")
        tables = [(A, lambda at: self.matrix(kind, n, n, at, lead))]
        others = [Operand(info, "i4", (count,), writes=True)]
        self.queue_batch("potrfBatched", self.driver.stream(h.stream), count, tables, others, do)

    def gqr(self, kind, handle, m, n, k, A, lead, tau, work, size, info):
        def do(a, t):
            a[...] = product(a[:, :k], t, np.eye(m, n, dtype=kind), False)

        # columns beyond the reflectors are written alone
        operands = [self.matrix(kind, m, n, A, lead, reads=k == n), self.vector(kind, k, tau, writes=False)]
        self.run(
            "orgqr", handle, operands, do, info, (work, size * np.dtype(kind).itemsize, 16 * np.dtype(kind).itemsize)
        )

    def mqr(self, kind, handle, side, form, m, n, k, A, lead, tau, C, ldc, work, size, info):
        if form == (1 if kind in ("c8", "c16") else 2):
            raise self.refuse(f"form {form} of {kind}")

        def do(a, t, c):
            c[...] = product(a, t, c, form != 0) if side == 0 else product(a, t, c.conj().T, form == 0).conj().T

        operands = [
            self.matrix(kind, m if side == 0 else n, k, A, lead, writes=False), self.vector(kind, k, tau, writes=False),
            self.matrix(kind, m, n, C, ldc),
        ]  # fmt: skip
        self.run(
            "ormqr", handle, operands, do, info, (work, size * np.dtype(kind).itemsize, 16 * np.dtype(kind).itemsize)
        )


@functools.cache
def cusolver() -> Cusolver:
    from . import driver

    return Cusolver(driver(), SIGNATURES)


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libcusolver`` exports it."""
    return table_of(cusolver, "cusolver")
