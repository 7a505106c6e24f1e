"""The row-wise schedule: kernels whose unit of work is a whole row, which they may read several times.

A *row* is one dimension of the operands, or two nested ones. The body decides what is done with it: a reduction folds
it to a scalar, softmax folds it twice and then writes it. The body is Python over a :class:`Row`, written once, and is
laid out in two modes. In ``row`` mode vectors run along the row and each fold ends by combining lanes. In ``column``
mode vectors run across neighbouring rows, so lanes are never combined: this suits rows with a large stride whose
neighbours are adjacent (a sum over dimension 0, a softmax over channels).

On a machine without vectors, ``row`` mode has vectors of 32 lanes all the same: on a GPU each thread of a warp has a
lane (``cuda/_warps.py``). In ``column`` mode a thread has a row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .build import build, kernel
from .fused import apply_steps, numbers_of
from .ir import BOOL, F32, PTR, TYPES, Function, Type, Value
from .pointwise import part
from .rows import FRONT, FRONT_BYTES, FRONT_LEAST, Epilogue, FrontRow, Number, Operand, Prologue, Row, State, _flat
from .target import here

#: Tiles of column mode for light bodies. Memory is fastest in long runs, best when rows are read to their end,
#: sequentially: on 4096 x 2048 float32, summing over dimension 0 takes 2.1 ms with runs of 4096 bytes and 0.9 with the
#: 8192 of a whole row (Zen 4, one core).
LONG_TILES = (1024, 128, 64, 32, 8, 4, 2)
#: At most this many rows are read in parallel, a few vectors of each: 8 of 1M float32 take 1.4 ms so and 2.6 by long
#: runs.
FEW, NARROW = 16, 8
#: Bytes of rows that are processed together: they stay in the first-level cache.
TOGETHER = 16384
#: Threads that process a row together where there are no vectors: the lanes of row mode there.
WARP = 32


class Group:
    """Consecutive rows, at most as many as a vector has lanes. Their folded results are the lanes of one vector.

    Where rows are short, most of the time went into combining lanes and into computations per row: layer norm of 768 x
    128 float32 took 44 us one row at a time.
    """

    def __init__(self, schedule: Schedule, first: Value, count: Value, shared: dict[int, Value]):
        self.schedule, self.f, self.count, self._shared = schedule, schedule.f, count, shared
        f, m = self.f, schedule.neighbours
        self._places = [f.scratch(8 * schedule.lanes) for _ in schedule.operands]
        with f.loop(0, count, carry=(first / m, first % m)) as L:
            a, b = L.carry
            for place, base in zip(self._places, schedule.bases(a, b), strict=True):
                f.store(f.offset(place, L.index * 8), base)
            b = b + 1
            full = b == m
            L.carry = (f.select(full, a + 1, a), f.select(full, 0, b))

    def row(self, r: Value) -> Row:
        """Row ``r`` of the group."""
        f, s = self.f, self.schedule
        bases = [f.load(f.offset(place, r * 8), PTR) for place in self._places]
        bases = [self._shared.get(i, base) for i, base in enumerate(bases)]
        row = Row(s, r, bases, s.lanes, None)
        row.ahead = self.count
        return row

    def fold(
        self, ins: Sequence[int], init: Sequence[tuple[str, float]], step: Callable,
        combine: Callable[[Value, Value], Value] = operator.add, **more,
    ) -> list[Value]:  # fmt: skip
        """The folds of all rows, one lane per row: :meth:`Row.fold` with ``step(r)`` for row ``r``."""
        f, lanes = self.f, self.schedule.lanes
        types = [part(dtype) for dtype, _ in init]
        kept = [f.scratch(lanes * lanes * t.bytes) for t in types]

        def both(a: State, b: State) -> State:
            return tuple(combine(x, y) for x, y in zip(a, b, strict=True))

        with f.loop(0, self.count) as L:
            of_row = step(L.index)
            sums = self.row(L.index).fold(ins, init, of_row, both, joined=False, **more)
            for place, t, x in zip(kept, types, _flat(sums), strict=True):
                f.store(f.offset(place, L.index * (lanes * t.bytes)), x)
        return [
            self._join([f.load(f.offset(place, r * lanes * t.bytes), t, lanes) for r in range(lanes)], combine)
            for place, t in zip(kept, types, strict=True)
        ]

    def heads(self, i: int, fns: Sequence[Callable[[Value], Value]]) -> list[Value]:
        """Sums of ``fn(x)`` over the first vector of operand ``i`` in each row, one lane per row."""
        f, lanes, t = self.f, self.schedule.lanes, part(self.schedule.operands[i].working)
        size = lanes * t.bytes
        kept = [f.scratch(lanes * size) for _ in fns]
        with f.loop(0, self.count) as L:
            x = self.row(L.index).head(i)
            for place, fn in zip(kept, fns, strict=True):
                f.store(f.offset(place, L.index * size), fn(x))
        return [
            self._join([f.load(f.offset(place, r * size), t, lanes) for r in range(lanes)], operator.add)
            for place in kept
        ]

    @staticmethod
    def _join(rows: list[Value], combine: Callable[[Value, Value], Value]) -> Value:
        """Reduce each vector, by halves; the results are the lanes of one vector."""
        size = rows[0].lanes
        while size > 1:
            half, both = size // 2, 2 * rows[0].lanes
            low = [i for i in range(both) if i % size < half]
            high = [i + half for i in low]
            rows = [combine(a.shuffle(low, b), a.shuffle(high, b)) for a, b in zip(rows[::2], rows[1::2], strict=True)]
            size = half
        return rows[0]

    def keep(self, x: Value) -> Kept:
        """Store one value per row."""
        kept = Kept(self.f, x.type, x.lanes, self.f.scratch(x.lanes * x.type.bytes))
        self.f.store(kept.place, x)
        return kept

    def each(self, ins: Sequence[int], outs: Sequence[int], fn: Callable, fetch: Sequence[int] = ()) -> None:
        """Store ``fn(r)(*xs)`` for every element of every row."""
        with self.f.loop(0, self.count) as L:
            self.row(L.index).each(ins, outs, fn(L.index), fetch=fetch)


@dataclass
class Kept:
    """One value per row of a group, in memory; a call with a row's number in the group returns its value."""

    f: Function
    type: Type
    lanes: int
    place: Value

    def __call__(self, r: Value) -> Value:
        return self.f.load(self.f.offset(self.place, r * self.type.bytes), self.type)

    def put(self, r: Value, x: Value) -> None:
        self.f.store(self.f.offset(self.place, r * self.type.bytes), x)

    def all(self) -> Value:
        """All values, a lane per row."""
        return self.f.load(self.place, self.type, self.lanes)


class Schedule:
    """Lays a body out over all rows; see :func:`rowwise`."""

    def __init__(self, f: Function, operands: Sequence[Operand], compute: Type, columns: bool, levels: int):
        self.f, self.columns, self.levels = f, columns, levels
        #: The last operand that is read; with a prologue, the computed operand. ``leaves``: the operands that it is
        #: computed from.
        self.source, self.leaves = len(operands) - 1, range(0)
        #: The epilogue, if there is one; then its leaves' and results' operands, and its numbers, are set too.
        self.epilogue: Epilogue | None = None
        operands = self._with_prologue(operands) if f.prologue else tuple(operands)
        operands = self._with_epilogue(operands) if f.epilogue else operands
        if f.vector_bytes < 16 and not columns:
            f.threads = WARP
            operands = tuple(replace(operand, stream=False) for operand in operands)
        self.operands = operands
        self.lanes = f.lanes(compute) if f.vector_bytes >= 16 or f.threads > 1 else 1
        self.n0, self.n1, self.neighbours = f.size(0), f.size(1), f.size(2)
        self.strides = [[f.size(3 + 4 * i + k) for k in range(4)] for i in range(len(operands))]
        self.pointers = [f.data(i) for i in range(len(operands))]
        self._params = 3 + 4 * len(operands)

    def _with_prologue(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """The operands with the prologue's computed one, and its leaves."""
        prologue = self.f.prologue
        assert isinstance(prologue, Prologue)
        first, count = len(operands), len(prologue.leaves)
        numbers = numbers_of(
            self.f, prologue.steps, 3 + 4 * (first + count + self._epilogue_operands()) + prologue.skip
        )

        def made(load: Callable[[int], Number], lanes: int) -> Number:
            return apply_steps(self.f, prologue.steps, [load(first + k) for k in range(count)], numbers, lanes)[-1]

        found = [*operands, *prologue.leaves]
        found[prologue.operand] = replace(found[prologue.operand], made=made)
        self.source, self.leaves = prologue.operand, range(first, first + count)
        return tuple(found)

    def _epilogue_operands(self) -> int:
        """The number of operands of the epilogue."""
        epilogue = self.f.epilogue
        if epilogue is None:
            return 0
        assert isinstance(epilogue, Epilogue)
        return len(epilogue.leaves) - epilogue.leaves.count(None) + len(epilogue.outs) - 1

    def _with_epilogue(self, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The operands with the epilogue's leaves and results."""
        epilogue = self.f.epilogue
        assert isinstance(epilogue, Epilogue)
        leaves = [leaf for leaf in epilogue.leaves if leaf is not None]
        found = [*operands, *leaves, *[operands[0]] * (len(epilogue.outs) - 1)]
        memory = iter(range(len(operands), len(found)))
        self.follows = [None if leaf is None else next(memory) for leaf in epilogue.leaves]
        self.results = [0, *memory]
        self.numbers = numbers_of(self.f, epilogue.steps, 3 + 4 * len(found) + epilogue.skip)
        self.epilogue = epilogue
        return tuple(found)

    def prefetched_of(self, operands: Iterable[int]) -> list[int]:
        """The operands to prefetch where ``operands`` are read: themselves; for a computed one, its leaves that run
        along the row.
        """
        leaves = [k for k in self.leaves if self.operands[k].layout == "c"]
        return [k for i in operands for k in (leaves if self.operands[i].made else (i,))]

    def prefetched_leaves(self) -> list[int]:
        """The operands to prefetch where results are stored: the epilogue's leaves that run along the row."""
        follows = self.follows if self.epilogue else ()
        return [k for k in follows if k is not None and self.operands[k].layout == "c"]

    def distances(self, i: int, found: Sequence[Value | int]) -> Sequence[Value | int]:
        """Prefetch distances of operand ``i``: 0 where rows read the same memory again, as it is in the cache."""
        if i not in self.leaves and i not in self.prefetched_leaves():  # the kernel's own operands are read once
            return found
        again = (self.following(i) == 0) | ((self.strides[i][2] == 0) & (self.neighbours < self.f.end))
        return [self.f.select(again, 0, self.f.i64(n) if isinstance(n, int) else n) for n in found]

    def param(self, i: int, t: Type) -> Value:
        """Scalar parameter ``i``."""
        return self.f.scalar(self._params + i, t)

    def local(self, dtype: str, nbytes: int, step: int = 0) -> int:
        """Add an operand on the stack, of ``nbytes``; return its number. In column mode elements of a row are
        ``step`` bytes apart."""
        self.operands = (*self.operands, Operand(dtype))
        self.strides.append([self.f.i64(step), *[self.f.i64(0)] * 3])
        self.pointers.append(self.f.scratch(nbytes))
        return len(self.operands) - 1

    def following(self, i: int) -> Value:
        """Bytes from a row of operand ``i`` to the next, where rows are evenly spaced."""
        return self.f.select(self.neighbours == 1, self.strides[i][2], self.strides[i][3])

    def bases(self, a: Value, b: Value) -> list[Value]:
        """The start of row ``(a, b)`` of each operand."""
        f, bases = self.f, []
        for i, (pointer, stride) in enumerate(zip(self.pointers, self.strides, strict=True)):
            inner = stride[3]
            if self.columns and self.operands[i].layout == "c":
                inner = f.i64(self.operands[i].bytes)
            elif self.columns and self.operands[i].layout == "s":
                inner = f.i64(0)
            bases.append(f.offset(f.offset(pointer, a * stride[2]), b * inner))
        return bases

    def rows(self, body: Callable[[Row], None]) -> None:
        f, n = self.f, self.neighbours
        with f.loop(f.begin, f.end, carry=(f.begin / n, f.begin % n)) as L:
            a, b = L.carry
            body(Row(self, a, self.bases(a, b), self.lanes, None))
            b = b + 1
            full = b == n
            L.carry = (f.select(full, a + 1, a), f.select(full, 0, b))

    def rows_in_line(self, body: Callable[[Row], None]) -> None:
        """:meth:`rows` for a body so short that finding the row dominates: pointers advance where rows are evenly
        spaced.

        Negative log-likelihood of 65536 x 16: 278 to 129 us (Zen 4).
        """
        f, n = self.f, self.neighbours
        a, steps = f.begin / n, [self.following(i) for i in range(len(self.operands))]
        with f.branch((n == 1) | (a == (f.end - 1) / n)) as B:
            with f.loop(f.begin, f.end, carry=self.bases(a, f.begin % n)) as L:
                body(Row(self, a, list(L.carry), self.lanes, None))
                L.carry = [f.offset(p, step) for p, step in zip(L.carry, steps, strict=True)]
            B.otherwise()
            self.rows(body)

    def by_length(self, short: Value, few: Callable[[], None], many: Callable[[], None]) -> None:
        """``few()`` where rows are ``short``, else ``many()``; always ``many()`` where threads share a row.

        Short rows are processed several at a time, or stay in memory of the kernel: neither suits threads.
        """
        if self.f.threads > 1:
            many()
            return
        with self.f.branch(short) as B:
            few()
            B.otherwise()
            many()

    def groups(
        self, body: Callable[[Group], None], first: Value, end: Value, size: Value,
        shared: dict[int, Value] | None = None,
    ) -> None:  # fmt: skip
        """``body`` for groups of rows, which have ``size`` bytes each, from ``first`` on.

        ``shared`` are operands that are the same for all rows.
        """
        f = self.f
        most = f.i64(TOGETHER) / (size + 1)
        most = f.select(most > self.lanes, f.i64(self.lanes), f.select(most < 1, f.i64(1), most))
        with f.loop(first, end, most) as L:
            left = end - L.index
            body(Group(self, L.index, f.select(left < most, left, most), shared or {}))

    def _prefetch_offsets(self, u: Value, units: Value, tile: int) -> list[Value]:
        """Prefetch distance in column mode, per operand: about 64 vectors of tiles ahead, or the start of the next
        rows."""
        f = self.f
        ahead = (f.i64(64) / (self.n0 + 1) + 1) * tile
        left = u + ahead - units
        far = [(self.strides[i][2], operand.bytes * self.lanes) for i, operand in enumerate(self.operands)]
        return [f.select(left < 0, ahead * size, stride + (ahead - units) * size) for stride, size in far]

    def tiles(self, body: Callable[[Row], None], sizes: Sequence[int]) -> None:
        f, n, lanes = self.f, self.neighbours, self.lanes
        units, whole = (n + (lanes - 1)) / lanes, n / lanes
        with f.while_((f.begin, f.begin / units, f.begin % units)) as L:
            at, a, u = L.carry
            L.test(at < f.end)
            step, pending = f.i64(1), f.const(BOOL, True)
            for tile in sizes if lanes > 1 else ():  # without vectors, neighbours belong to other threads
                size = f.i64(tile)
                if tile >= FRONT:
                    left = f.select(whole - u < f.end - at, whole - u, f.end - at)
                    size = f.select(left < FRONT, left & -4, size)
                    fits = (size >= FRONT_LEAST) & (self.n0 * self.strides[self.source][0] > FRONT_BYTES)
                else:
                    fits = (u + tile <= whole) & (at + tile <= f.end) & pending
                if tile > NARROW:
                    fits = fits & (self.n0 > FEW)
                step, pending = f.select(fits, size, step), pending & ~fits
                with f.when(fits):
                    if tile < FRONT:
                        row = Row(self, a, self.bases(a, u * lanes), lanes * tile, None)
                        row.prefetch_offsets = self._prefetch_offsets(u, units, tile)
                        body(row)
                        continue
                    front = FrontRow(self, a, self.bases(a, u * lanes), size)
                    body(front)
                    front.close()
            with f.when(pending):
                body(Row(self, a, self.bases(a, u * lanes), lanes, n - u * lanes if lanes > 1 else None))
            u = u + step
            full = u == units
            L.carry = (at + step, f.select(full, a + 1, a), f.select(full, 0, u))


def build_with(emit: kernel, key: tuple, prologue: Prologue | None, epilogue: Epilogue | None, label: str) -> int:
    """The address of the kernel ``emit(f, *key)`` with a prologue, an epilogue or both; profiles call it ``label``.

    The results equal those of the kernel with separate pointwise kernels before and after it.
    """

    def write() -> Function:
        f = Function(vector_bytes=here().vector_bytes)
        f.label, f.prologue, f.epilogue = label, prologue, epilogue
        emit.emit(f, *key)
        return f

    return build(write(), write)


def rowwise(
    f: Function, body: Callable[[Row], None], operands: Sequence[Operand], compute: Type = F32, *,
    columns: bool = False, levels: int = 1, tiles: Sequence[int] = (8,),
) -> None:  # fmt: skip
    """Write a kernel that runs ``body`` on every row.

    ``arg = [n0, n1, m, (s0, s1, sa, sb) per operand, parameters]``: a row has ``n1`` x ``n0`` elements (``n1`` is
    ignored unless ``levels`` is 2), rows are numbered ``a * m + b`` with ``m`` > 0. ``s0``, ``s1`` are byte strides
    along the row, ``sa``, ``sb`` from row to row. ``[begin, end)`` are rows in row mode; in column mode units of
    ``f.lanes(compute)`` neighbours, ``ceil(m / lanes)`` for each ``a``.

    Args:
        f: the builder.
        body: called with a :class:`Row`; in column mode once for each tile size and once for single, masked vectors.
        operands: memory operands, outputs first.
        compute: the widest type that fills a register; it decides the number of lanes.
        columns: the mode.
        levels: dimensions of a row, 1 or 2.
        tiles: vectors of neighbours processed at once in column mode, largest first.
    """
    schedule = Schedule(f, operands, compute, columns, levels)
    if columns:
        schedule.tiles(body, tiles)
    else:
        schedule.rows(body)


@kernel
def divide(f: Function, dtype: str) -> None:
    """One number by another, in place: ``ptr = [number, divisor]``."""
    t = TYPES[dtype]
    f.store(f.data(0), f.load(f.data(0), t) / f.load(f.data(1), t))
