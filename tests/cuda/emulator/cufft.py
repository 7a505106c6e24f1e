"""A stand-in of cuFFT for the emulated devices: ``table()`` gives the C address of each function.

Names, arguments and numbers are those of NVIDIA's ``cufft.h`` and ``cufftXt.h`` (cuFFT 12). NumPy computes. A plan takes
a work area, which is overwritten; a transform to real numbers of several dimensions overwrites what it reads.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .capture import put
from .library import I, L, N, Operand, P, Refused, StandIn, table_of

SIGNATURES: dict[str, tuple] = {
    "cufftGetVersion": (P,), "cufftCreate": (P,), "cufftDestroy": (I,), "cufftSetAutoAllocation": (I, I),
    "cufftXtMakePlanMany": (I, I, P, P, L, L, I, P, L, L, I, L, P, I), "cufftSetStream": (I, P),
    "cufftSetWorkArea": (I, P), "cufftXtExec": (I, P, P, I),
}  # fmt: skip
INVALID_PLAN, ALLOC_FAILED, INVALID_TYPE, INVALID_VALUE, INTERNAL, EXEC_FAILED = range(1, 7)
INVALID_SIZE, UNALIGNED, NO_WORKSPACE = 8, 9, 13
DTYPES = {0: "f4", 1: "f8", 4: "c8", 5: "c16"}
COMPLEX = {"f4": "c8", "f8": "c16", "c8": "c8", "c16": "c16"}


class Plan:
    def __init__(self, context: Any):
        self.context, self.stream, self.auto, self.area = context, 0, True, 0
        self.made = self.destroyed = False
        self.last: Any = None


class Cufft(StandIn):
    name, CUDA_ERROR, INTERNAL, INVALID = "cufft", EXEC_FAILED, INTERNAL, INVALID_PLAN

    def cufftGetVersion(self, to):
        put(to, 12500, I)

    def cufftCreate(self, to):
        number = next(self.numbers)
        self.handles[number] = Plan(self.context())
        put(to, number, I)

    def cufftDestroy(self, handle):
        plan = self.take(handle, Plan)
        if plan.last is not None and hasattr(plan.last, "done"):
            self.driver.finish(plan.last)
        plan.destroyed = True
        del self.handles[handle]

    def cufftSetAutoAllocation(self, handle, auto):
        self.take(handle, Plan).auto = bool(auto)

    def cufftXtMakePlanMany(
        self, handle, rank, n, inembed, istride, idist, intype, onembed, ostride, odist, outtype, batch, work, exectype
    ):
        plan = self.take(handle, Plan)
        if plan.made:
            raise Refused(INVALID_PLAN, "the plan is made")
        if not 1 <= rank <= 3 or batch < 1:
            raise Refused(INVALID_SIZE, f"{batch} rows of {rank} dimensions")
        sizes = list((L * rank).from_address(n))
        if min(sizes) < 1:
            raise Refused(INVALID_SIZE, f"sizes {sizes}")
        kinds = [DTYPES.get(x, "") for x in (intype, outtype, exectype)]
        if "" in kinds or {COMPLEX[kinds[0]], COMPLEX[kinds[1]]} != {kinds[2]} or kinds[0] == kinds[1] == kinds[2][0] or (
            kinds[0][0] == kinds[1][0] == "f"
        ):  # fmt: skip
            raise Refused(INVALID_TYPE, f"types {intype}, {outtype}, {exectype}")
        half = [*sizes[:-1], sizes[-1] // 2 + 1]
        real_in, real_out = kinds[0][0] == "f", kinds[1][0] == "f"
        self.layout(plan, "source", kinds[0], batch, half if real_out else sizes, inembed, istride, idist)
        self.layout(plan, "result", kinds[1], batch, half if real_in else sizes, onembed, ostride, odist)
        plan.sizes, plan.real_in, plan.real_out, plan.made = sizes, real_in, real_out, True
        plan.work = math.prod(sizes) * batch * np.dtype(kinds[2]).itemsize
        put(work, plan.work, N)

    def layout(self, plan: Plan, name: str, kind: str, batch: int, sizes: list, embed: int, stride: int, dist: int):
        inner = sizes
        if embed:
            inner = list((L * len(sizes)).from_address(embed))
        else:
            stride, dist = 1, math.prod(sizes)
        strides = [math.prod(inner[d + 1 :]) * stride for d in range(len(sizes))]
        setattr(plan, name, (kind, (batch, *sizes), (dist, *strides)))

    def cufftSetStream(self, handle, stream):
        plan = self.take(handle, Plan)
        if self.driver.stream(stream).context is not plan.context:
            raise Refused(INVALID_VALUE, "a stream of another device")
        plan.stream = stream

    def cufftSetWorkArea(self, handle, address):
        self.take(handle, Plan).area = address

    def cufftXtExec(self, handle, source, to, direction):
        plan = self.take(handle, Plan)
        if not plan.made:
            raise Refused(INVALID_PLAN, "the plan is not made")
        if direction not in (-1, 1):
            raise Refused(INVALID_VALUE, f"direction {direction}")
        if not plan.auto and not plan.area:
            raise Refused(NO_WORKSPACE, "no work area")
        if any(x % np.dtype(COMPLEX[plan.source[0]]).itemsize for x in (source, to)):
            raise Refused(UNALIGNED, "data is not aligned to a complex number")
        forward = plan.real_in or (direction < 0 and not plan.real_out)
        spoils = plan.real_out and len(plan.sizes) > 1
        axes = tuple(range(1, len(plan.sizes) + 1))

        def do(x, y, area):
            given = x.copy()
            area[...] = 0xA5
            if spoils:
                x[...] = np.nan
            if plan.real_out:
                y[...] = np.fft.irfftn(given, plan.sizes, axes, norm="forward")
            elif plan.real_in:
                y[...] = np.fft.rfftn(given, axes=axes)
            else:
                y[...] = np.fft.fftn(given, axes=axes) if forward else np.fft.ifftn(given, axes=axes, norm="forward")

        operands = [
            Operand(source, *plan.source, writes=spoils, reads=True), Operand(to, *plan.result, writes=True),
            Operand(plan.area, "u1", (plan.work,), writes=True),
        ]  # fmt: skip
        stream = self.driver.stream(plan.stream)
        plan.last = self.queue("cufftXtExec", stream, operands, do, lambda: not plan.destroyed)


@functools.cache
def cufft() -> Cufft:
    from . import driver

    return Cufft(driver(), SIGNATURES)


def table() -> dict[str, int]:
    """The C address of each function, by the name under which ``libcufft`` exports it."""
    return table_of(cufft, "cufft")
