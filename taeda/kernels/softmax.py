"""Softmax, its logarithm and their gradients, as row-wise kernels.

Each kernel is a table from ``(dtypes, columns)`` to an address: a dtype name per operand, outputs first, None for one
that was left out. Long contiguous rows are processed by ``online.py``. In column mode a few vectors of neighbouring
rows are processed together, and what is read is kept in the cache in the order of its use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from . import scalar as s
from .build import kernel
from .ir import Function, Value
from .online import KEPT, Online, decay, greater
from .pipeline import Stage, pipeline
from .pointwise import part
from .reduce import add, compute
from .rows import Operand, Row, State
from .rowwise import Group, Schedule, rowwise

#: Rows of at most so many bytes are processed one by one, or in groups.
SHORT = 512
#: Vectors of neighbouring rows that are processed together in column mode, and the longest rows whose elements are kept
#: on the stack (twice, for gradients). Longer rows are read again, two vectors at a time.
TILE, MOST = 4, 1024


def operands_of(
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


def largest(row: Row, x: int, dtype: str, keep: Sequence[int] = ()) -> Value:
    """The largest element of the row; the row is copied to the operand ``keep``."""

    def step(acc: State, v: Value):
        after = (greater(acc[0], v),)
        return (after, (v,)) if keep else after

    def both(a: State, b: State) -> State:
        return (greater(a[0], b[0]),)

    return row.fold([x], [(dtype, -math.inf)], step, both, keep, blocked=False)[0]


def sum_exp(row: Row, x: int, dtype: str, top: Value, fetch: Sequence[int] = ()) -> Value:
    """The sum of ``exp(x - top)`` over the row."""
    return row.fold([x], [(dtype, 0.0)], _add_exp(top), add, unroll=4, fetch=fetch)[0]


def _add_exp(top: Value) -> Callable[[State, Value], State]:
    return lambda acc, v: (acc[0] + decay(v - top),)


def _exp_and_sum(row: Row, x: int, to: int, dtype: str, top: Value, fetch: Sequence[int] = ()) -> Value:
    """:func:`sum_exp`, with the exponentials stored."""

    def step(acc: State, v: Value):
        e = decay(v - top)
        return (acc[0] + e,), (e,)

    return row.fold([x], [(dtype, 0.0)], step, add, [to], unroll=4, fetch=fetch)[0]


def group_largest(group: Group, x: int, dtype: str) -> Callable[[Value], Value]:
    """:func:`largest` of each row, by its number in the group."""

    def step(_: Value) -> Callable[[State, Value], State]:
        return lambda acc, v: (greater(acc[0], v),)

    return group.keep(group.fold([x], [(dtype, -math.inf)], step, greater, blocked=False)[0])


def group_sum_exp(group: Group, x: int, dtype: str, top: Callable[[Value], Value], fetch: Sequence[int] = ()) -> Value:
    """:func:`sum_exp`, a lane per row."""
    return group.fold([x], [(dtype, 0.0)], lambda r: _add_exp(top(r)), unroll=4, fetch=fetch)[0]


def by_columns(
    f: Function, operands: Sequence[Operand], dtype: str, ins: Sequence[int],
    body: Callable[[Row, Sequence[int], bool], None],
) -> None:  # fmt: skip
    """Column mode with ``body(row, kept, copies)``.

    ``kept`` are operands on the stack, as many as ``ins``, or none for long rows. With ``copies`` the body copies what
    the first pass reads to them: elements of a row that are a multiple of 4 KiB apart map to so few sets of the cache
    that they are evicted (softmax of 512 x 1024 over dimension 0 took twice as long without). Prefetch in the pass that
    computes most: in the first pass loads come in bursts (softmax of 32 x 64 x 56 x 56 over dimension 1: 2.9 ms, 1.8 in
    the second pass).
    """
    t, n = part(dtype), len(ins)
    schedule = Schedule(f, operands, t, True, 1)
    if schedule.lanes == 1:  # a thread for each row: no memory of a thread is as near as what neighbours read together
        schedule.tiles(lambda row: body(row, (), False), ())
        return
    step = TILE * schedule.lanes * t.bytes
    kept = [schedule.local(dtype, MOST // n * step, step) for _ in ins]

    def whole(copies: bool) -> Callable[[Row], None]:
        def run(row: Row) -> None:
            for i in kept:
                row.bases[i] = schedule.pointers[i]
            body(row, kept, copies)

        return run

    with f.branch(schedule.n0 <= MOST // n) as B:
        with f.branch((schedule.strides[ins[0]][0] & 4095) == 0) as C:
            schedule.tiles(whole(True), (TILE,))
            C.otherwise()
            schedule.tiles(whole(False), (TILE,))
        B.otherwise()
        rowwise(f, lambda row: body(row, (), False), operands, t, columns=True, tiles=(2,))


@kernel
def softmax(f: Function, dtypes: tuple[str, str], columns: bool, stream: bool = False) -> None:
    """``exp(x) / sum(exp(x))``."""
    working = compute(dtypes[0])
    t = part(working)
    # the output can hold the exponentials until their sum is known
    exact = dtypes[0] == working and not stream and f.epilogue is None
    operands = operands_of(dtypes, columns, "ff", working, stream)

    def body(row: Row, kept: Sequence[int] = (), copies: bool = False) -> None:
        top = largest(row, 1, working, kept if copies else ())
        if kept or exact:
            to = kept[0] if kept else 0
            scale = 1.0 / _exp_and_sum(row, to if copies else 1, to, working, top, [1] if columns else [0, 1])
            row.each([to], [0], lambda e: e * scale)
        else:
            scale = 1.0 / sum_exp(row, 1, working, top, [1] if columns else [0, 1])
            row.each([1], [0], lambda v: decay(v - top) * scale)

    if columns:
        by_columns(f, operands, working, [1], body)
    else:
        schedule = Schedule(f, operands, t, False, 1)
        size = schedule.n0 * t.bytes

        def kept() -> None:
            online = Online(schedule, 1, working, stream, kept=True)
            online.rows(f.begin, f.end, lambda top, total: [top, 1.0 / total], lambda _, e, factor: e * factor)

        def again() -> None:
            online = Online(schedule, 1, working, stream)
            online.rows(
                f.begin,
                f.end,
                lambda top, total: [top, 1.0 / total],
                lambda known, v, _: decay(v - known[0]) * known[1],
            )

        schedule.by_length(
            size <= SHORT, lambda: schedule.rows(body), lambda: schedule.by_length(size <= KEPT, kept, again)
        )
    if stream:
        f.fence()


@kernel
def log_softmax(f: Function, dtypes: tuple[str, str], columns: bool, stream: bool = False) -> None:
    """``x - log(sum(exp(x)))``."""
    working = compute(dtypes[0])
    t = part(working)
    operands = operands_of(dtypes, columns, "ff", working, stream)

    def together(group: Group) -> None:
        """A logarithm per row would take longer than the rest: 16384 x 64 takes 935 us, by groups of rows 414."""
        top = group_largest(group, 1, working)
        total = group.keep(s.log(group_sum_exp(group, 1, working, top, [1] if stream else [0, 1])))

        def fn(r: Value) -> Callable[[Value], Value]:
            high, log = top(r), total(r)
            return lambda v: (v - high) - log

        group.each([1], [0], fn)

    def body(row: Row, kept: Sequence[int], copies: bool) -> None:
        top = largest(row, 1, working, kept if copies else ())
        source = kept[0] if copies else 1
        total = s.log(sum_exp(row, source, working, top, [1]))
        row.each([source], [0], lambda v: (v - top) - total)

    if columns:
        by_columns(f, operands, working, [1], body)
    else:
        schedule = Schedule(f, operands, t, False, 1)
        size = schedule.n0 * operands[1].bytes
        schedule.by_length(
            size <= SHORT,
            lambda: schedule.groups(together, f.begin, f.end, size),
            lambda: Online(schedule, 1, working, stream).rows(
                f.begin, f.end, lambda top, total: [top, s.log(total)], lambda known, v, _: (v - known[0]) - known[1]
            ),
        )
    if stream:
        f.fence()


def _gradient(
    f: Function, dtypes: tuple[str, str, str], columns: bool, stream: bool, ins: Sequence[int], step: Callable, result
) -> None:
    """``result(g, y, total)`` of gradient and output (operands 1 and 2), with ``step`` for the sum over ``ins``."""
    working = compute(dtypes[0])
    operands = operands_of(dtypes, columns, "fff", working, stream)
    init = [(working, 0.0)]

    def body(row: Row, kept: Sequence[int] = (), copies: bool = False) -> None:
        if copies:  # both are read and kept, whatever is summed

            def both(acc: State, g: Value, y: Value):
                return step(acc, *(g, y)[: len(ins)]), (g, y)

            (total,) = row.fold([1, 2], init, both, add, kept)
        else:
            (total,) = row.fold(ins, init, step, add)
        fetch = [1, 2] if columns or stream else [0, 1, 2]
        row.each(kept if copies else [1, 2], [0], lambda g, y: result(g, y, total), fetch=fetch)

    if columns:
        by_columns(f, operands, working, [1, 2], body)
    else:
        schedule = Schedule(f, operands, part(working), False, 1)
        stages = [
            Stage(ins, lambda known, acc, *xs: step(acc, *xs), init, finish=lambda row, known, totals: totals),
            Stage([1, 2], lambda known, acc, g, y: ((), (result(g, y, known[0]),)), outs=[0]),
        ]
        fresh = [1, 2] if stream else None
        schedule.by_length(
            schedule.n0 * part(working).bytes <= SHORT,
            lambda: schedule.rows(body),
            lambda: pipeline(schedule, stages, f.begin, f.end, fresh=fresh),
        )
    if stream:
        f.fence()


@kernel
def softmax_backward(f: Function, dtypes: tuple[str, str, str], columns: bool, stream: bool = False) -> None:
    """``y * (g - sum(g * y))`` of gradient and output."""
    _gradient(
        f, dtypes, columns, stream, [1, 2], lambda acc, g, y: (f.fma(g, y, acc[0]),), lambda g, y, dot: y * (g - dot)
    )


@kernel
def log_softmax_backward(f: Function, dtypes: tuple[str, str, str], columns: bool, stream: bool = False) -> None:
    """``g - exp(y) * sum(g)`` of gradient and output."""
    _gradient(f, dtypes, columns, stream, [1], lambda acc, g: (acc[0] + g,), lambda g, y, total: g - decay(y) * total)


# ---- chunks of long rows ---------------------------------------------------------------------------------------------
# What a chunk needs to know of its row comes from reductions: see ``ops/_long_rows.py``.


@kernel
def chunk_softmax(f: Function, dtypes: tuple[str, ...], log: bool) -> None:
    """Operands: y, x, the largest element of a row, the sum of its exponentials."""
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        top, total = row.get(2), row.get(3)
        if log:
            low = s.log(total)
            row.each([1], [0], lambda v: (v - top) - low)
        else:
            scale = 1.0 / total
            row.each([1], [0], lambda v: decay(v - top) * scale)

    rowwise(f, body, operands_of(dtypes, False, "ffrr", working), part(working))


@kernel
def chunk_sum(f: Function, dtypes: tuple[str, ...], log: bool) -> None:
    """Sum over a chunk for the gradient of softmax, ``g * y``, or ``g`` for that of log_softmax. Operands: the sum,
    g, y."""
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        init = [(working, 0.0)]
        if log:
            (total,) = row.fold([1], init, lambda acc, g: (acc[0] + g,), add)
        else:
            (total,) = row.fold([1, 2], init, lambda acc, g, y: (f.fma(g, y, acc[0]),), add)
        row.put(0, total)

    rowwise(f, body, operands_of(dtypes, False, "rff", working), part(working))


@kernel
def chunk_softmax_backward(f: Function, dtypes: tuple[str, ...], log: bool) -> None:
    """Operands: dx, g, y, the sum of a row."""
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        total = row.get(3)
        if log:
            row.each([1, 2], [0], lambda g, y: g - decay(y) * total)
        else:
            row.each([1, 2], [0], lambda g, y: y * (g - total))

    rowwise(f, body, operands_of(dtypes, False, "fffr", working), part(working))
