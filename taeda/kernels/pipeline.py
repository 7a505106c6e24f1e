"""Rows that go through several passes; the passes over neighbouring rows share one loop.

A norm needs sums over a row before it can write the row. With one pass after the other, memory idles while cached data
is computed, and the processor idles while the next row is loaded. Here one loop over the columns sums row ``i + 1`` and
writes row ``i``: memory is read evenly, and each row is computed as it would be alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .ir import Value
from .reduce import add
from .rows import Row, State, _Fold
from .rowwise import Schedule

#: Prefetch distances in bytes of operands that are read for the first time: into the second-level cache, and from there
#: into the first. Where results are stored past the cache, the gradients of layer norm of 8192 x 768 float32 take 4.8
#: ms without and 1.9 with prefetching, layer norm of 4096 x 2048 4.1 and 1.8 (Zen 4; distances 8192 and 1024: 2.1 and
#: 2.2). What a later pass reads again is left to the hardware: prefetching it took a tenth longer. Prefetching
#: everything into the first-level cache evicts what is needed next (gradients of 4096 x 2048: 5.5 ms, not 3.7).
FAR, NEAR = 16384, 2048


@dataclass
class Stage:
    """One pass over a row.

    Attributes:
        ins, outs: operands that are loaded and stored.
        step: ``step(known, acc, *xs)`` gives the next ``acc``; with ``outs``, ``(acc, ys)``.
        init: per accumulator its dtype and initial value.
        begin: gives what the first pass knows of the row, as scalars; it runs while the row before is processed.
        finish: ``finish(row, known, totals)`` gives what the next pass knows of the row.
    """

    ins: Sequence[int]
    step: Callable
    init: Sequence[tuple[str, float]] = ()
    outs: Sequence[int] = ()
    begin: Callable[[Row], Sequence[Value]] = lambda row: ()
    finish: Callable[[Row, Sequence[Value], State], Sequence[Value]] = lambda row, known, totals: ()
    combine: Callable = add


@dataclass
class _SideBySide(_Fold):
    """Several passes, each over its own row, as one pass."""

    folds: Sequence[_Fold] = field(default_factory=list)
    fresh: Sequence[int] | None = None

    def apply(self, acc, outer, inner, lanes, count, mask) -> State:
        if self.fresh is not None and count is None:
            self._prefetch(outer, inner, lanes)
        after: list = []
        for fold in self.folds:
            own = acc[len(after) : len(after) + len(fold.init)]
            after += fold.apply(own, outer, inner, lanes, count, mask)
        return tuple(after)

    def _prefetch(self, outer: Value | None, inner: Value, lanes: int) -> None:
        """Prefetch operands that come from memory, in the first pass that loads them."""
        f, s, rest = self.row.f, self.row.schedule, set(self.fresh)
        for fold in self.folds:
            new = [i for i in fold.ins if i in rest]
            rest.difference_update(new)
            for i in s.prefetched_of(new) + (s.prefetched_leaves() if fold.outs else []):
                place = fold.row._address(i, outer, inner)
                for distance, cache in zip(s.distances(i, (NEAR, self._far(i))), (3, 2), strict=True):
                    for line in range(0, lanes * s.operands[i].bytes, 64):
                        f.prefetch(f.offset(f.offset(place, distance), line), cache)

    def _far(self, i: int) -> Value | int:
        """The distance from one plane of a row to the next, if it is larger than ``FAR``."""
        s = self.row.schedule
        return FAR if s.levels == 1 else self.row.f.select(s.strides[i][1] > FAR, s.strides[i][1], FAR)


def _together(folds: Sequence[_Fold], unroll: int, fresh: Sequence[int] | None) -> list[State]:
    """The totals of each of ``folds``, over rows of one length."""

    def combine(a: State, b: State) -> State:
        after: list = []
        for fold in folds:
            own = slice(len(after), len(after) + len(fold.init))
            after += fold.combine(a[own], b[own]) if fold.init else ()
        return tuple(after)

    ins, outs, init = ([x for fold in folds for x in getattr(fold, name)] for name in ("ins", "outs", "init"))
    one = folds[0]
    side = _SideBySide(one.row, ins, init, one.step, combine, outs, bool(init), None, (), folds=folds, fresh=fresh)
    totals, found = side.rows(unroll), []
    for fold in folds:
        found.append(totals[: len(fold.init)])
        totals = totals[len(fold.init) :]
    return found


def pipeline(
    schedule: Schedule, stages: Sequence[Stage], first: Value, end: Value, *,
    shared: Mapping[int, Value | Callable[[Value], Value]] | None = None, unroll: int = 4,
    fresh: Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Take rows ``[first, end)`` through ``stages``; only the last stage stores.

    Past the last row, the stages that only read process the last row again. Where threads share a row, it goes through
    all stages before the next one: there are other rows to hide what that costs.

    Args:
        schedule: of the kernel.
        stages: see :class:`Stage`.
        first: the first row.
        end: the one after the last.
        shared: by operand number: its address, if it is the same for all rows, or a function from the row to it.
        unroll: vectors that are processed at once where nothing comes from memory. Else it is one, which mixes
            prefetches, loads and stores most evenly: group norm of 32x256x56x56 takes 7.0 ms by four, 6.5 by two and
            5.7 by one, gradients of layer norm of 1024 x 8192 4.9, 4.1 and 3.7 (Zen 4).
        fresh: operands that come from memory: prefetch them (see :data:`FAR`).
    """
    f, last, same = schedule.f, len(stages) - 1, shared or {}
    unroll = 1 if fresh else unroll

    def row_at(index: Value) -> Row:
        index = f.select(index < end, index, end - 1)
        m = schedule.neighbours
        bases = schedule.bases(index / m, index % m)
        for i, place in same.items():
            bases[i] = place if isinstance(place, Value) else place(index)
        return Row(schedule, index, bases, schedule.lanes, None)

    def fold_of(stage: Stage, row: Row, known: Sequence[Value]) -> _Fold:
        """The pass over a row of which the passes before found ``known``."""

        def step(acc, *xs):
            return stage.step(known, acc, *xs)

        return _Fold(row, stage.ins, stage.init, step, stage.combine, stage.outs, True, None, ())

    def run_stages(rows: Sequence[Value], known: Sequence[Sequence[Value]]) -> list[Sequence[Value]]:
        """Run each of the first stages on its row; ``known`` are the results of earlier passes."""
        folds = [
            fold_of(stage, row_at(index), of_row) for stage, index, of_row in zip(stages, rows, known, strict=False)
        ]
        totals = _together(folds, unroll, fresh)
        return [
            stage.finish(fold.row, of_row, total)
            for stage, fold, of_row, total in zip(stages, folds, known, totals, strict=False)
        ]

    if f.threads > 1:
        with f.loop(first, end) as L:
            row = row_at(L.index)
            found = stages[0].begin(row)
            for stage in stages:
                found = stage.finish(row, found, fold_of(stage, row, found).rows(unroll))
        return
    with f.when(first < end):
        known = [stages[0].begin(row_at(first))]
        for ready in range(last):
            following = stages[0].begin(row_at(first + (ready + 1)))
            known = [following, *run_stages([first + (ready - i) for i in range(ready + 1)], known)]
        with f.loop(first, end, carry=[x for of_row in known for x in of_row]) as L:
            values = iter(L.carry)
            carried = [[next(values) for _ in of_row] for of_row in known]
            following = stages[0].begin(row_at(L.index + (last + 1)))
            after = run_stages([L.index + (last - i) for i in range(last + 1)], carried)
            L.carry = tuple(x for of_row in (following, *after[:last]) for x in of_row)
