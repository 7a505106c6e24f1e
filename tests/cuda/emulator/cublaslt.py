"""A stand-in of cuBLASLt for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cublasLt.h`` (cuBLAS 13). NumPy computes, sums in float32 or
float64. With TF32 operands are rounded to 10 bits behind the point. What was chosen holds for one form of a call alone.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

import numpy as np

from .capture import put
from .library import I, L, N, Operand, P, Refused, StandIn, table_of

U = ctypes.c_uint64
SIGNATURES: dict[str, tuple] = {
    "cublasLtCreate": (P,), "cublasLtMatmulDescCreate": (P, I, I), "cublasLtMatmulDescDestroy": (P,),
    "cublasLtMatmulDescSetAttribute": (P, I, P, N), "cublasLtMatrixLayoutCreate": (P, I, U, U, L),
    "cublasLtMatrixLayoutDestroy": (P,), "cublasLtMatrixLayoutSetAttribute": (P, I, P, N),
    "cublasLtMatmulPreferenceCreate": (P,), "cublasLtMatmulPreferenceDestroy": (P,),
    "cublasLtMatmulPreferenceSetAttribute": (P, I, P, N), "cublasLtMatmulAlgoGetHeuristic": (*(P,) * 7, I, P, P),
    "cublasLtMatmul": (*(P,) * 14, N, P),
}  # fmt: skip
INVALID, EXECUTION_FAILED, INTERNAL, NOT_SUPPORTED = 7, 13, 14, 15
DTYPES = {0: "f4", 1: "f8", 2: "f2", 14: "u2"}  # the last is bfloat16
COMPUTE = {68: (0, 2, 14), 70: (1,), 77: (0,)}  # which dtypes each takes
WORKSPACE = 128
#: Bytes of the attributes that are known, by the kind of thing.
SIZES = {"Desc": {3: 4, 4: 4, 7: 4, 8: 8}, "Layout": {5: 4, 6: 8}, "Preference": {1: 8, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4}}


class Thing:
    """A handle or description, with its attributes."""

    def __init__(self, context: Any, kind: str, *given: int):
        self.context, self.kind, self.given = context, kind, given
        self.attributes: dict[int, int] = {}


def wide(x: np.ndarray, compute: int) -> np.ndarray:
    if x.dtype == np.uint16:
        return (x.astype(np.uint32) << 16).view(np.float32)
    x = x.astype(np.float64 if compute == 70 else np.float32)
    if compute == 77:
        return ((x.view(np.uint32) + np.uint32(0xFFF) + (x.view(np.uint32) >> 13 & 1)) & ~np.uint32(0x1FFF)).view(
            np.float32
        )
    return x


def narrow(x: np.ndarray, kind: str) -> np.ndarray:
    if kind != "u2":
        return x.astype(kind)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class Cublaslt(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cublaslt", EXECUTION_FAILED, INTERNAL, INVALID
    refuses = False  # it has nothing for any product

    def new(self, to: int, kind: str, *given: int) -> None:
        number = next(self.numbers)
        self.handles[number] = Thing(self.context(), kind, *given)
        put(to, number)

    def find(self, handle: int, kind: str) -> Thing:
        thing = self.take(handle, Thing)
        if thing.kind != kind:
            raise self.refuse(f"{handle:#x} is a {thing.kind}, no {kind}")
        return thing

    def set(self, kind: str, handle: int, attribute: int, source: int, size: int) -> None:
        if SIZES[kind].get(attribute) != size:
            raise self.refuse(f"{size} bytes for attribute {attribute} of a {kind}")
        value = int.from_bytes(ctypes.string_at(source, size), "little", signed=attribute != 8)
        self.find(handle, kind).attributes[attribute] = value

    def end(self, kind: str, handle: int) -> None:
        if self.handles.get(handle) is None or self.handles[handle].kind != kind:
            raise self.refuse(f"{handle:#x} is no {kind}")
        del self.handles[handle]

    def cublasLtCreate(self, to):
        self.new(to, "Handle")

    def cublasLtMatmulDescCreate(self, to, compute, scale):
        if compute not in COMPUTE or scale != (1 if compute == 70 else 0):
            raise self.refuse(f"compute type {compute}, scale type {scale}")
        self.new(to, "Desc", compute)

    def cublasLtMatrixLayoutCreate(self, to, dtype, rows, columns, lead):
        if dtype not in DTYPES or lead < rows or not rows or not columns:
            raise self.refuse(f"{rows} x {columns}, leading dimension {lead}, dtype {dtype}")
        self.new(to, "Layout", dtype, rows, columns, lead)

    def cublasLtMatmulPreferenceCreate(self, to):
        self.new(to, "Preference")

    def form(self, handle: int, descriptor: int, *layouts: int) -> tuple:
        """All that a choice depends on, but for alignments."""
        self.find(handle, "Handle")
        desc, found = self.find(descriptor, "Desc"), [self.find(x, "Layout") for x in layouts]
        attributes = {k: v for k, v in desc.attributes.items() if k != 8}
        return (
            desc.given,
            tuple(sorted(attributes.items())),
            *((x.given, tuple(sorted(x.attributes.items()))) for x in found),
        )

    def cublasLtMatmulAlgoGetHeuristic(self, handle, descriptor, a, b, c, d, preference, wanted, results, found):
        form, asked = self.form(handle, descriptor, a, b, c, d), self.find(preference, "Preference").attributes
        if asked.get(3) != 2:
            raise self.refuse("sums of parts may be rounded, or in another order in each run")
        dtypes = {x[0][0] for x in form[2:]}
        if wanted < 1 or len(dtypes) > 1 or not dtypes <= set(COMPUTE[form[0][0]]):
            put(found, 0, I)
            raise Refused(NOT_SUPPORTED, "")
        if self.refuses:
            raise Refused(NOT_SUPPORTED, "")
        words = struct.pack("<4I", *(asked[5 + i] for i in range(4))) + struct.pack("<q", hash(form))
        ctypes.memset(results, 0, 96)
        ctypes.memmove(results, words, len(words))
        put(results + 64, min(WORKSPACE, asked[1]), N)
        put(found, 1, I)

    def cublasLtMatmul(self, handle, descriptor, alpha, A, a, B, b, beta, C, c, D, d, algo, area, size, stream):
        form = self.form(handle, descriptor, a, b, c, d)
        words = ctypes.string_at(algo, 24)
        if struct.unpack("<q", words[16:])[0] != hash(form):
            raise self.refuse("what was chosen is for products of another form")
        for address, least in zip((A, B, C, D), struct.unpack("<4I", words[:16]), strict=True):
            if address % least:
                raise self.refuse(f"{address:#x} is not a multiple of {least}")
        if size < WORKSPACE or area % 256:
            raise self.refuse(f"a work area of {size} bytes at {area:#x}")
        compute, attributes = form[0][0], dict(form[1])
        scalar = ctypes.c_double if compute == 70 else ctypes.c_float
        one, factor = scalar.from_address(alpha).value, scalar.from_address(beta).value

        def operand(layout: tuple, address: int, **how: bool) -> Operand:
            (dtype, rows, columns, lead), more = layout[0], dict(layout[1])
            return Operand(address, DTYPES[dtype], (more.get(5, 1), rows, columns), (more.get(6, 0), 1, lead), **how)

        kind, rows = DTYPES[form[5][0][0]], form[5][0][1]
        operands = [operand(form[2], A), operand(form[3], B), operand(form[5], D, writes=True)]
        operands.append(Operand(area, "u1", (WORKSPACE,), writes=True))
        epilogue, in_place = attributes.get(7, 1), C == D
        if epilogue not in (1, 4) or (in_place and factor):
            raise self.refuse(f"epilogue {epilogue}, C is D: {in_place}")
        if factor:
            operands.append(operand(form[4], C))
        if epilogue == 4:
            operands.append(Operand(self.find(descriptor, "Desc").attributes[8], kind, (rows,)))

        def do(x, y, to, work, *rest):
            work[...] = 0xA5
            x, y = wide(x, compute), wide(y, compute)
            x = x.swapaxes(1, 2) if attributes.get(3) else x
            y = y.swapaxes(1, 2) if attributes.get(4) else y
            made = one * (x @ y)
            rest = [wide(z, 70 if compute == 70 else 68) for z in rest]
            if factor:
                made = made + factor * rest.pop(0)
            if epilogue == 4:
                made = made + rest[0][None, :, None]
            to[...] = narrow(made, kind)

        self.queue("matmul", self.driver.stream(stream), operands, do)


for _kind, _name in (("Desc", "MatmulDesc"), ("Layout", "MatrixLayout"), ("Preference", "MatmulPreference")):
    setattr(Cublaslt, f"cublasLt{_name}SetAttribute", functools.partialmethod(Cublaslt.set, _kind))
    setattr(Cublaslt, f"cublasLt{_name}Destroy", functools.partialmethod(Cublaslt.end, _kind))


@functools.cache
def cublaslt() -> Cublaslt:
    from . import driver

    return Cublaslt(driver(), SIGNATURES)


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libcublasLt`` exports it."""
    return table_of(cublaslt, "cublaslt")
