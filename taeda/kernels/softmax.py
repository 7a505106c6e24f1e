"""Softmax, its logarithm and their gradients, and cross entropy fused with them, as row-wise kernels.

Each kernel is a table from ``(dtypes, columns)`` to an address: a dtype name per operand, outputs first, None for an
operand that was left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import scalar as s
from .build import kernel
from .ir import F64, I64, Function, Value
from .pipeline import Stage, pipeline
from .pointwise import part
from .reduce import add, compute
from .rowwise import Group, Operand, Row, Schedule, State, by_register, rowwise
from .scalar.exponential import exp_negative

_TILES = (2,)  # exp needs many registers


def _operands(
    dtypes: tuple[str | None, ...], columns: bool, along: str, working: str, stream: bool = False
) -> list[Operand]:
    """Operands by letter: ``f`` every element, ``r`` one value per row, ``w`` one row shared by all, ``s`` a value.

    ``stream``: the first is stored past the cache.
    """
    found = []
    for dtype, letter in zip(dtypes, along, strict=True):
        layout = "s" if letter == "s" or (letter == "w" and columns) or (letter == "r" and not columns) else "c"
        real = dtype not in (None, "int64")
        found.append(Operand(dtype or "uint8", layout, working if real else None, stream and not found))
    return found


def _greater(a: Value, b: Value) -> Value:
    """The larger, and where either is NaN any of them: NaN comes through the sum of exponentials anyway."""
    return a.fn.select(b > a, b, a)


def largest(row: Row, x: int, dtype: str) -> Value:
    """The largest element of the row."""

    def both(a: State, b: State) -> State:
        return (_greater(a[0], b[0]),)

    return row.fold([x], [(dtype, -math.inf)], lambda acc, v: both(acc, (v,)), both, blocked=False)[0]


def sum_exp(row: Row, x: int, dtype: str, top: Value, fetch: Sequence[int] = ()) -> Value:
    """The sum of ``exp(x - top)`` over the row."""
    return row.fold([x], [(dtype, 0.0)], _add_exp(top), add, unroll=4, fetch=fetch)[0]


def _add_exp(top: Value) -> Callable[[State, Value], State]:
    return lambda acc, v: (acc[0] + by_register(exp_negative, v - top),)


def _group_largest(group: Group, x: int, dtype: str) -> Callable[[Value], Value]:
    """:func:`largest` of each row, by its number in the group."""

    def step(_: Value) -> Callable[[State, Value], State]:
        return lambda acc, v: (_greater(acc[0], v),)

    return group.keep(group.fold([x], [(dtype, -math.inf)], step, _greater, blocked=False)[0])


def _group_sum_exp(group: Group, x: int, dtype: str, top: Callable[[Value], Value], fetch: Sequence[int] = ()) -> Value:
    """:func:`sum_exp`, a lane per row."""
    return group.fold([x], [(dtype, 0.0)], lambda r: _add_exp(top(r)), unroll=4, fetch=fetch)[0]


def _rows_together(
    f: Function,
    body: Callable[[Group], None],
    operands: list[Operand],
    dtype: str,
    x: int,
    stages: Sequence[Stage],
    fresh: Sequence[int] | None,
    fresh_if_long: Sequence[int] | None = None,
) -> None:
    """Run ``body`` for groups of short rows of operand ``x`` (row mode), take longer ones through ``stages``.

    What stores nothing does not know whether its rows are in the cache; asking ahead pays where they are long (cross entropy
    of 2048 x 8192 takes 4.4 ms so and 5.4 without, but 512 x 1024 130 us and 105).

    For what needs a logarithm per row, then one for a group: log_softmax of 16384 x 64 took 935 us one row at a time, 414 so.
    Softmax, which divides, and the gradients gain nothing.
    """
    schedule = Schedule(f, operands, part(dtype), False, 1)
    size = schedule.n0 * operands[x].bytes
    with f.branch(size <= SHORT) as B:
        schedule.groups(body, f.begin, f.end, size)
        B.otherwise()
        if fresh_if_long is None:
            pipeline(schedule, stages, f.begin, f.end, unroll=2 if fresh else 4, fresh=fresh)
            return
        with f.branch(size > KEPT) as C:
            pipeline(schedule, stages, f.begin, f.end, unroll=2, fresh=fresh_if_long)
            C.otherwise()
            pipeline(schedule, stages, f.begin, f.end, fresh=fresh)


def _backward_rows(f: Function, operands: list[Operand], dtype: str, body: Callable, stages: Sequence[Stage]) -> None:
    """The same for gradients of operands 1 and 2: ``body`` for short rows."""
    schedule, stream = Schedule(f, operands, part(dtype), False, 1), operands[0].stream
    with f.branch(schedule.n0 * part(dtype).bytes <= SHORT) as B:
        schedule.rows(body)
        B.otherwise()
        pipeline(schedule, stages, f.begin, f.end, unroll=2 if stream else 4, fresh=[1, 2] if stream else None)
    if stream:
        f.fence()


def _totals(row: Row, known: Sequence[Value], totals: State) -> State:
    return totals


def _top_stage(x: int, dtype: str) -> Stage:
    """The largest element of a row."""

    def both(a: State, b: State) -> State:
        return (_greater(a[0], b[0]),)

    return Stage([x], lambda known, acc, v: (_greater(acc[0], v),), [(dtype, -math.inf)], finish=_totals, combine=both)


def _exp_stage(x: int, dtype: str, finish: Callable, outs: Sequence[int] = ()) -> Stage:
    """The sum of ``exp(x - top)``; with ``outs`` these are stored."""

    def step(known: Sequence[Value], acc: State, v: Value):
        e = by_register(exp_negative, v - known[0])
        return ((acc[0] + e,), (e,)) if outs else (acc[0] + e,)

    return Stage([x], step, [(dtype, 0.0)], outs=outs, finish=finish)


#: Bytes up to which rows are taken one by one, or in groups, rather than through a pipeline.
SHORT = 512
#: Bytes of rows whose exponentials are kept on the stack until their sum is known; those of longer rows go to the output,
#: which is not stored past the cache then: computing them twice instead took 3.8 ms for 160 x 50256, so 3.3.
KEPT = 16384


@kernel
def softmax(f: Function, dtypes: tuple[str, str], columns: bool, stream: bool = False) -> None:
    """``exp(x) / sum(exp(x))``."""
    working = compute(dtypes[0])
    t = part(working)
    exact = dtypes[0] == working  # the output can hold the exponentials until their sum is known
    operands = _operands(dtypes, columns, "ff", working, stream)

    def body(row: Row) -> None:
        top = largest(row, 1, working)
        if exact:

            def step(acc: State, v: Value):
                e = by_register(exp_negative, v - top)
                return (acc[0] + e,), (e,)

            (total,) = row.fold([1], [(working, 0.0)], step, add, [0], unroll=4, fetch=[0, 1])
            scale = 1.0 / total
            row.each([0], [0], lambda e: e * scale)
        else:
            scale = 1.0 / sum_exp(row, 1, working, top, [0, 1])
            row.each([1], [0], lambda v: by_register(exp_negative, v - top) * scale)

    if columns:
        rowwise(f, body, operands, t, columns=True, tiles=_TILES)
        return
    schedule = Schedule(f, operands, t, False, 1)
    buffer = schedule.local(working, 2 * KEPT)
    stages = [
        _top_stage(1, working),
        _exp_stage(1, working, lambda row, known, totals: (1.0 / totals[0],), [buffer]),
        Stage([buffer], lambda known, acc, e: ((), (e * known[0],)), outs=[0]),
    ]
    kept = {buffer: lambda row: f.offset(schedule.pointers[buffer], (row & 1) * KEPT)}
    size = schedule.n0 * t.bytes
    with f.branch((size > SHORT) & (size <= KEPT)) as B:
        pipeline(
            schedule, stages, f.begin, f.end, shared=kept, unroll=2 if stream else 4, fresh=[1] if stream else None
        )
        B.otherwise()
        Schedule(f, _operands(dtypes, False, "ff", working), t, False, 1).rows(body)
    if stream:
        f.fence()


@kernel
def log_softmax(f: Function, dtypes: tuple[str, str], columns: bool, stream: bool = False) -> None:
    """``x - log(sum(exp(x)))``."""
    working = compute(dtypes[0])
    operands = _operands(dtypes, columns, "ff", working, stream)

    def together(group: Group) -> None:
        top = _group_largest(group, 1, working)
        total = group.keep(s.log(_group_sum_exp(group, 1, working, top, [1] if stream else [0, 1])))

        def fn(r: Value) -> Callable[[Value], Value]:
            high, log = top(r), total(r)
            return lambda v: (v - high) - log

        group.each([1], [0], fn)

    stages = [
        _top_stage(1, working),
        _exp_stage(1, working, lambda row, known, totals: (known[0], s.log(totals[0]))),
        Stage([1], lambda known, acc, v: ((), ((v - known[0]) - known[1],)), outs=[0]),
    ]
    if not columns:
        _rows_together(f, together, operands, working, 1, stages, [1] if stream else None)
        if stream:
            f.fence()
        return

    def body(row: Row) -> None:
        top = largest(row, 1, working)
        total = s.log(sum_exp(row, 1, working, top, [0, 1]))
        row.each([1], [0], lambda v: (v - top) - total)

    rowwise(f, body, operands, part(working), columns=True, tiles=_TILES)


@kernel
def softmax_backward(f: Function, dtypes: tuple[str, str, str], columns: bool, stream: bool = False) -> None:
    """``y * (g - sum(g * y))`` of gradient and output."""
    working = compute(dtypes[0])
    operands = _operands(dtypes, columns, "fff", working, stream)

    def body(row: Row) -> None:
        (dot,) = row.fold([1, 2], [(working, 0.0)], lambda acc, g, y: (f.fma(g, y, acc[0]),), add)
        row.each([1, 2], [0], lambda g, y: y * (g - dot), fetch=[1, 2] if stream else [0, 1, 2])

    if columns:
        rowwise(f, body, operands, part(working), columns=True)
        return
    stages = [
        Stage([1, 2], lambda known, acc, g, y: (f.fma(g, y, acc[0]),), [(working, 0.0)], finish=_totals),
        Stage([1, 2], lambda known, acc, g, y: ((), (y * (g - known[0]),)), outs=[0]),
    ]
    _backward_rows(f, operands, working, body, stages)


@kernel
def log_softmax_backward(f: Function, dtypes: tuple[str, str, str], columns: bool, stream: bool = False) -> None:
    """``g - exp(y) * sum(g)`` of gradient and output."""
    working = compute(dtypes[0])
    operands = _operands(dtypes, columns, "fff", working, stream)

    def result(g: Value, y: Value, total: Value) -> Value:
        return g - by_register(exp_negative, y) * total

    def body(row: Row) -> None:
        (total,) = row.fold([1], [(working, 0.0)], lambda acc, g: (acc[0] + g,), add)
        row.each([1, 2], [0], lambda g, y: result(g, y, total), fetch=[1, 2] if stream else [0, 1, 2])

    if columns:
        rowwise(f, body, operands, part(working), columns=True, tiles=_TILES)
        return
    stages = [
        Stage([1], lambda known, acc, g: (acc[0] + g,), [(working, 0.0)], finish=_totals),
        Stage([1, 2], lambda known, acc, g, y: ((), (result(g, y, known[0]),)), outs=[0]),
    ]
    _backward_rows(f, operands, working, body, stages)


# ---- cross entropy --------------------------------------------------------------------------------------------------
def _target(row: Row, target: int, ignored: Value, report: int) -> tuple[Value, Value]:
    """The row's class, made safe to index with, and whether the row counts. A class out of range is reported."""
    f = row.f
    t = row.get(target)
    counts = t != ignored
    inside = (t >= 0) & (t < row.schedule.n0)
    wrong = counts & ~inside
    for lane in range(t.lanes):
        bad = wrong.lane(lane) if t.lanes > 1 else wrong
        if row.count is not None:
            bad = bad & (f.i64(lane) < row.count)
        with f.when(bad):
            f.store(row.bases[report], t.lane(lane) if t.lanes > 1 else t)
            f.store(f.offset(row.bases[report], 8), f.i64(1))
    return f.select(inside, t, 0), counts


@kernel
def cross_entropy(f: Function, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """Per row ``w[t] * (logsumexp(x) - x[t])``, the row's weight ``w[t]``, and the parts of ``logsumexp(x)``.

    The parts are the largest element and the logarithm of the sum of ``exp(x - largest)``: their sum in one number would
    have a rounding error that grows with it, and the gradient would have that error in every element.

    Operands: loss, weight, largest, logarithm, x, target, w (may be left out), report (a class out of range, and whether
    there was one). Parameter: the ignored class.
    """
    working = compute(dtypes[4])
    operands = _operands(dtypes, columns, "rrrrfrws", working)

    def finish(row: Row, top: Value, logs: Value) -> None:
        t, counts = _target(row, 5, row.schedule.param(0, F64).to(I64), 7)
        weight = f.select(counts, row.at(6, t) if dtypes[6] else f.const(part(working), 1.0), 0.0)
        row.put(0, f.select(counts, (logs + (top - row.at(4, t))) * weight, 0.0))
        row.put(1, weight)
        row.put(2, top)
        row.put(3, logs)

    def together(group: Group) -> None:
        top = _group_largest(group, 4, working)
        logs = group.keep(s.log(_group_sum_exp(group, 4, working, top, [4])))
        with f.loop(0, group.count) as L:
            finish(group.row(L.index), top(L.index), logs(L.index))

    def body(row: Row) -> None:
        top = largest(row, 4, working)
        finish(row, top, s.log(sum_exp(row, 4, working, top)))

    def last(row: Row, known: Sequence[Value], totals: State) -> tuple[()]:
        finish(row, known[0], s.log(totals[0]))
        return ()

    if columns:
        rowwise(f, body, operands, part(working), columns=True, tiles=_TILES)
    else:
        stages = [_top_stage(4, working), _exp_stage(4, working, last)]
        _rows_together(f, together, operands, working, 4, stages, None, [4])


def _row_gradient(row: Row, dtypes: tuple[str | None, ...], g: int, weight: int, count: int) -> Value:
    """The gradient of a row's loss times the row's weight, over the divisor where there is one."""
    x = row.get(g) * row.get(weight)
    return x if dtypes[count] is None else x / row.get(count)


@kernel
def cross_entropy_backward(
    f: Function, per_row: bool, dtypes: tuple[str | None, ...], columns: bool, stream: bool = False
) -> None:
    """``g * w / count * (exp(x - logsumexp) - [class is t])`` per element.

    Operands: the result, x, g (of each row with ``per_row``), w, count (may be left out), the two parts of logsumexp,
    target.
    """
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        g, top, logs, t = _row_gradient(row, dtypes, 2, 3, 4), row.get(5), row.get(6), row.get(7)

        def fn(x: Value, at: Value) -> Value:
            p = by_register(exp_negative, (x - top) - logs)
            return f.select(at == t, p - 1.0, p) * g

        row.each([1], [0], fn, index=I64)

    operands = _operands(dtypes, columns, "ffrrsrrr" if per_row else "ffsrsrrr", working, stream)
    rowwise(f, body, operands, part(working), columns=columns, tiles=_TILES)
    if stream:
        f.fence()


@kernel
def nll_loss(f: Function, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """Per row ``-w[t] * x[t]`` and the row's weight ``w[t]``.

    Operands: loss, weight, x, target, w (may be left out), report. Parameter: the ignored class.
    """
    working = compute(dtypes[2])

    def body(row: Row) -> None:
        t, counts = _target(row, 3, row.schedule.param(0, F64).to(I64), 5)
        weight = f.select(counts, row.at(4, t) if dtypes[4] else f.const(part(working), 1.0), 0.0)
        row.put(0, f.select(counts, -row.at(2, t) * weight, 0.0))
        row.put(1, weight)

    rowwise(f, body, _operands(dtypes, columns, "rrfrws", working), part(working), columns=columns, tiles=())


@kernel
def nll_loss_backward(f: Function, per_row: bool, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """``-g * w / count`` at class ``t`` of each row, 0 elsewhere.

    Operands: the result, something of its shape, g (of each row with ``per_row``), w, count (may be left out), target.
    """
    working = compute(dtypes[0])

    def body(row: Row) -> None:
        g, t = -_row_gradient(row, dtypes, 2, 3, 4), row.get(5)
        row.each([], [0], lambda at: f.select(at == t, g, 0.0), index=I64)

    operands = _operands(dtypes, columns, "ffrrsr" if per_row else "ffsrsr", working)
    rowwise(f, body, operands, part(working), columns=columns)
