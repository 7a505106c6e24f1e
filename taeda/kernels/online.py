"""The largest element of a row and the sum of its exponentials in one reading, while the row before is written.

A row goes by in stretches that the first-level cache holds: each is gone over for its maximum, lane by lane, then for its
exponentials; sums follow where a maximum grows (Milakov and Gimelshein 2018). Exponentials may be kept, each as large as its
stretch's maximum made it: what they lack is a factor per stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .ir import BOOL, F32, Function, Value
from .pipeline import FAR, NEAR
from .pointwise import part
from .rowwise import Row, Schedule, by_register
from .scalar.exponential import exp_difference

#: Registers of a stretch.
STRETCH = 32
#: Registers that are handled at once.
UNROLL = 4
#: Bytes of exponentials that are kept on the stack: more are computed again.
KEPT = 1 << 18

#: ``write(known, x, factor)`` gives what is stored: ``x`` is the element, or what was kept of it with its factor.
Write = Callable[[Sequence[Value], Value, Value | None], Value]


def greater(a: Value, b: Value) -> Value:
    """The larger, and where either is NaN any of them: NaN comes through the sum of exponentials anyway."""
    return a.fn.select(b > a, b, a)


def decay(x: Value) -> Value:
    """``exp(x)`` of differences from a maximum."""
    return by_register(exp_difference, x)


class Online:
    """Rows of operand ``x`` in row mode; what is written goes to operand 0.

    Args:
        schedule: of the kernel.
        x: the operand.
        dtype: what is computed in.
        fresh: whether rows come from memory: ask for what comes.
        kept: keep exponentials for :meth:`rows`, whose rows have at most :data:`KEPT` bytes of them.
    """

    def __init__(self, schedule: Schedule, x: int, dtype: str, fresh: bool, kept: bool = False):
        self.schedule, self.f, self.x, self.fresh = schedule, schedule.f, x, fresh
        self.t, self.lanes = part(dtype), schedule.lanes
        f, t = self.f, self.t
        self.wide, self.stretch = UNROLL * self.lanes, STRETCH * self.lanes
        self.low = f.const(t, -3.4028234663852886e38 if t is F32 else -1.7976931348623157e308, self.lanes)
        self.register = self.lanes * t.bytes
        if kept:
            self.exponentials = f.scratch(KEPT)
            self.factors = f.scratch(KEPT // STRETCH)
        self.kept = kept

    def totals(self, row: Row) -> tuple[Value, Value]:
        """The largest element and the sum of ``exp(x - largest)``."""
        return self._walk(row, None, (), None)

    def rows(self, first: Value, end: Value, finish: Callable[[Value, Value], Sequence[Value]], write: Write) -> None:
        """Write rows ``[first, end)``, knowing ``finish(largest, total)`` of each; kept are multiples of ``known[-1]``."""
        f = self.f

        def finished(totals: tuple[Value, Value]) -> tuple[Value, ...]:
            known = tuple(finish(*totals))
            if self.kept:
                with f.loop(0, self.schedule.n0, self.stretch) as S:
                    place = self._factor(S.index)
                    top = f.load(place, self.t, self.lanes)
                    f.store(place, decay(top - totals[0]) * known[-1])
            return known

        with f.when(first < end):
            with f.loop(first, end - 1, carry=finished(self.totals(self._row(first)))) as L:
                coming, ready = self._row(L.index + 1), self._row(L.index)
                L.carry = finished(self._walk(coming, ready, L.carry, write))
            self._walk(None, self._row(end - 1), L.carry, write)

    def _row(self, index: Value) -> Row:
        m = self.schedule.neighbours
        return Row(self.schedule, index, self.schedule.bases(index / m, index % m), self.lanes, None)

    def _factor(self, index: Value) -> Value:
        """Where the factor of the stretch that begins at ``index`` is."""
        return self.f.offset(self.factors, index / self.stretch * self.register)

    def _largest(self, row: Row, top: Value, first: Value, whole: Value, stop: Value) -> Value:
        """The maximum, lane by lane, of the stretch and ``top``."""
        f, lanes = self.f, self.lanes
        tops = [top] + [self.low] * (UNROLL - 1)
        with f.loop(first, whole, self.wide, carry=tops) as L:
            xs = [row.load(self.x, L.index + i * lanes, lanes) for i in range(UNROLL)]
            L.carry = tuple(greater(a, x) for a, x in zip(L.carry, xs, strict=True))
        tops = list(L.carry)
        while len(tops) > 1:
            tops = [greater(a, b) for a, b in zip(tops[::2], tops[1::2], strict=True)]
        with f.loop(whole, stop, lanes, carry=tops) as L:
            count = stop - L.index
            mask = f.first(count, lanes)
            x = row.load(self.x, L.index, lanes, count, mask)
            L.carry = (f.select(mask, greater(L.carry[0], x), L.carry[0]),)
        return L.carry[0]

    def _walk(self, coming: Row | None, ready: Row | None, known: Sequence[Value], write: Write | None):
        """Sum ``coming`` and write ``ready`` side by side."""
        f, t, lanes, n0 = self.f, self.t, self.lanes, self.schedule.n0
        zero = f.const(t, 0, lanes)
        with f.loop(0, n0, self.stretch, carry=(self.low, zero) if coming else ()) as S:
            stop = f.select(S.index + self.stretch < n0, S.index + self.stretch, n0)
            whole = S.index + ((stop - S.index) & -self.wide)
            factor = f.load(self._factor(S.index), t, lanes) if ready and self.kept else None
            top = self._largest(coming, S.carry[0], S.index, whole, stop) if coming else None

            def step(acc: Sequence[Value], at: Value, n: int, mask: Value | None, factor=factor, top=top, stop=stop):
                """``n`` registers from ``at``."""
                if coming and self.fresh and mask is None:
                    place = coming._address(self.x, None, at)
                    for distance, cache in ((NEAR, 3), (FAR, 2)):
                        for line in range(0, n * lanes * self.schedule.operands[self.x].bytes, 64):
                            f.prefetch(f.offset(place, distance + line), cache)
                every = range(0, n * lanes, lanes)
                count = None if mask is None else stop - at
                kept = [f.offset(self.exponentials, (at + i) * t.bytes) for i in every] if self.kept else []
                ys, after = [], []
                for i in every if ready else ():
                    source = (
                        f.load(kept[i // lanes], t, lanes) if kept else ready.load(self.x, at + i, lanes, count, mask)
                    )
                    ys.append(write(known, source, factor))
                for i in every if coming else ():
                    e = decay(coming.load(self.x, at + i, lanes, count, mask) - top)
                    if kept:
                        f.store(kept[i // lanes], e)
                    after.append(acc[i // lanes] + (e if mask is None else f.select(mask, e, 0.0)))
                for i, y in zip(every, ys, strict=False):
                    ready.store(0, at + i, y, count, mask)
                return tuple(after)

            with f.loop(S.index, whole, self.wide, carry=[zero] * (UNROLL if coming else 0)) as L:
                L.carry = step(L.carry, L.index, UNROLL, None)
            parts = list(L.carry)
            while len(parts) > 1:
                parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
            with f.loop(whole, stop, lanes, carry=parts) as L:
                mask = f.first(stop - L.index, lanes) if lanes > 1 else f.const(BOOL, True)
                L.carry = step(L.carry, L.index, 1, mask)
            if coming:
                if self.kept:
                    f.store(self._factor(S.index), top)
                S.carry = top, f.fma(S.carry[1], decay(S.carry[0] - top), L.carry[0])
        if not coming:
            return None
        largest = S.carry[0].reduce(greater)
        return largest, (S.carry[1] * decay(S.carry[0] - largest)).reduce(lambda a, b: a + b)


def sums(f: Function, schedule: Schedule, x: int, dtype: str, each: Callable[[Row, Value, Value], None]) -> None:
    """``each(row, largest, total)`` for all rows; asks ahead where rows are long.

    What stores nothing does not know whether its rows are in the cache; asking ahead pays where they are long (cross entropy
    of 2048 x 8192 takes 4.4 ms so and 5.4 without, but 512 x 1024 130 us and 105).
    """
    with f.branch(schedule.n0 * schedule.operands[x].bytes > LONG) as B:
        schedule.rows(lambda row: each(row, *Online(schedule, x, dtype, True).totals(row)))
        B.otherwise()
        schedule.rows(lambda row: each(row, *Online(schedule, x, dtype, False).totals(row)))


#: Bytes of rows that are long, for :func:`sums`.
LONG = 16384
