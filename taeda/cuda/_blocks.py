"""Kernels that the threads of a block run together: shared memory, barriers, numbers of other threads of a warp.

Such a kernel is written for one thread. Its unit is a block's: ``f.begin`` is the same in all threads. Loops that have
a barrier must have the same length in all threads of the block.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels.ir import I32, PTR, Function, Type, Value, llvm_type

THREADS = 128  # of a block; _compile.py has the same
WARP = 32
MOST_SHARED = 48 << 10  # bytes that every GPU gives a block


class Block:
    """A thread's view of its block. ``f`` is the builder of the kernel.

    ``shared`` says who has a unit, ``f.begin``: a ``"block"``, a ``"warp"``, or for ``"lines"`` each thread; that of
    the last threads may then be past ``f.end``.
    """

    def __init__(self, f: Function, shared: str = "block") -> None:
        f.threads, f.shared = {"block": THREADS, "warp": WARP, "lines": 1}[shared], shared
        self.f = f
        self.size = 0  # bytes of shared memory
        self.thread = f.emit("call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", I32)  # the entry declares it

    # ---- shared memory -----------------------------------------------------------------------------------------------
    def room(self, nbytes: int) -> Value:
        """The place of new shared memory, in bytes: what :meth:`load` and :meth:`store` take."""
        at, self.size = self.size, self.size + -(-nbytes // 16) * 16
        if self.size > MOST_SHARED:
            raise NotImplementedError(f"a block with {self.size} bytes of shared memory")
        self.f.declarations["@shared"] = f"@shared = internal addrspace(3) global [{self.size} x i8] undef, align 16"
        return self.f.const(I32, at)

    def _at(self, place: Value) -> str:
        return self.f.emit(f"getelementptr i8, ptr addrspace(3) @shared, {place.typed}", PTR).text

    def load(self, place: Value, t: Type, lanes: int = 1) -> Value:
        """As many numbers as one access has."""
        spelled = llvm_type(t, lanes)
        return self.f.emit(f"load {spelled}, ptr addrspace(3) {self._at(place)}, align {t.bytes * lanes}", t, lanes)

    def store(self, place: Value, x: Value) -> None:
        self.f.lines.append(f"  store {x.typed}, ptr addrspace(3) {self._at(place)}, align {x.type.bytes * x.lanes}")

    # ---- other threads -----------------------------------------------------------------------------------------------
    def barrier(self) -> None:
        """Wait for all threads of the block, and see what they stored."""
        self._call("llvm.nvvm.barrier0")

    def warp_barrier(self) -> None:
        """The same for the threads of a warp."""
        self._call("llvm.nvvm.bar.warp.sync", self.f.const(I32, -1))

    def _call(self, name: str, *args: Value) -> None:
        self.f.declarations[name] = f"declare void @{name}({', '.join(a.llvm for a in args)})"
        self.f.lines.append(f"  call void @{name}({', '.join(a.typed for a in args)})")

    def _partner(self, x: Value, distance: int) -> Value:
        f = self.f
        bits, every, inside = f.const(I32, distance), f.const(I32, -1), f.const(I32, 31)
        return f.intrinsic("llvm.nvvm.shfl.sync.bfly.i32", I32, 1, every, x, bits, inside)

    def partner(self, x: Value, distance: int) -> Value:
        """``x`` of the thread whose number in the warp differs by the bit ``distance``."""
        f = self.f
        if x.type.bytes < 8:
            return self._partner(x.bits(I32), distance).bits(x.type)
        pair = f.emit(f"bitcast {x.typed} to <2 x i32>", I32, 2)
        for i in range(2):
            pair = pair.with_lane(i, self._partner(pair.lane(i), distance))
        return f.emit(f"bitcast {pair.typed} to {x.llvm}", x.type)

    def join(self, x: Value, threads: int, combine: Callable[[Value, Value], Value]) -> Value:
        """``x`` of so many neighbouring threads, combined in a fixed order; all of them get the result."""
        distance = 1
        while distance < threads:
            x = combine(x, self.partner(x, distance))
            distance *= 2
        return x

    def _votes(self, here: Value) -> Value:
        return self.f.intrinsic("llvm.nvvm.vote.ballot.sync", I32, 1, self.f.const(I32, -1), here)

    def count(self, here: Value) -> Value:
        """The number of threads of the warp for which ``here`` holds."""
        return self.f.unary("ctpop", self._votes(here))

    def count_before(self, here: Value) -> tuple[Value, Value]:
        """The same of the threads before, and of all."""
        votes = self._votes(here)
        return self.before(votes), self.f.unary("ctpop", votes)

    def peers(self, x: Value, bits: int, here: Value) -> Value:
        """The threads of the warp for which ``here`` holds and whose ``x`` has the same ``bits`` lowest bits, as a
        mask."""
        f = self.f
        mask = self._votes(here)
        for i in range(bits):
            one = ((x >> i) & 1) != 0
            votes = self._votes(one)
            mask = mask & f.select(one, votes, ~votes)
        return mask

    def before(self, mask: Value) -> Value:
        """The number of threads of a mask that come before this one."""
        return self.f.unary("ctpop", mask & ((self.f.const(I32, 1) << (self.thread & (WARP - 1))) - 1))
