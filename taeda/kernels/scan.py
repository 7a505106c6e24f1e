"""Scans: running sums, products, extremes and log-sum-exps along a dimension, as row-wise kernels.

Along a contiguous row, a vector is scanned in ``log2(lanes)`` steps of shift and combine, and the last lane is carried
into the next vector. Across rows (column mode) it is one combine per element. float32 sums and products are computed in
float64, so that the thousandth is as exact as the first.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from . import scalar as s
from .build import kernel
from .ir import BOOL, I32, I64, Function, Value
from .pointwise import is_complex, part
from .reduce import accumulator, compute, greater, highest, lowest, wide
from .rows import Operand, Row, State, by_register
from .rowwise import rowwise
from .scalar import Complex
from .scalar.basic import any_lane

SCANNED = 4  # vectors that are scanned together


@dataclass(frozen=True)
class Scan:
    """The declaration of a scan.

    Attributes:
        enter: the state of one element, from it and its position (int64).
        init: dtypes and identities of the state, from the working dtype.
        combine: the state of two runs of elements, the earlier first.
        leave: what is stored, from the state.
        working: the dtype to compute in, from the input's and the output's.
        cheap: whether a combine costs less than waiting for its result.
        beats: for extremes, whose state has a value and its position: whether a value stays in spite of a later one.
    """

    enter: Callable
    init: Callable[[str], list[tuple[str, float]]]
    combine: Callable[[Function, State, State], State]
    leave: Callable = lambda f, state: state
    working: Callable[[str, str], str] = lambda dtype, out: compute(dtype)
    cheap: bool = True
    beats: Callable[[Value, Value], Value] | None = None


def _sum_dtype(dtype: str, out: str) -> str:
    return wide(accumulator(dtype, out))


def _last_extreme(largest: bool) -> Scan:
    """Value and position of the extreme so far: the last among equal ones, and NaN once there was one."""

    def combine(f: Function, a: State, b: State) -> State:
        (x, i), (y, j) = a, b
        take = y >= x if largest else y <= x
        if x.type.kind == "f":
            take = (take & (x == x)) | (y != y)
        return f.select(take, y, x), f.select(take, j, i)

    def init(dtype: str) -> list[tuple[str, float]]:
        t = part(dtype)
        return [(dtype, lowest(t) if largest else highest(t)), ("int64", 0)]

    return Scan(lambda x, at: (x, at), init, combine, beats=operator.gt if largest else operator.lt)


def _join_exponentials(f: Function, a: State, b: State) -> State:
    top = greater(f, a[0], b[0])
    base = f.select(f.unary("fabs", top) == math.inf, 0.0, top)
    first, second = (by_register(s.exp, x[0] - base) for x in (a, b))
    return top, a[1] * first + b[1] * second


def _log_of_sum(f: Function, state: State) -> State:
    top, total = state
    base = f.select(f.unary("fabs", top) == math.inf, 0.0, top)
    return (by_register(s.log, total) + base,)


SCANS = {
    "cumsum": Scan(lambda x, at: (x,), lambda d: [(d, 0)], lambda f, a, b: (a[0] + b[0],), working=_sum_dtype),
    "cumprod": Scan(lambda x, at: (x,), lambda d: [(d, 1)], lambda f, a, b: (a[0] * b[0],), working=_sum_dtype),
    "cummax": _last_extreme(True),
    "cummin": _last_extreme(False),
    "logcumsumexp": Scan(
        lambda x, at: (x, x.fn.const(x.type, 1.0, x.lanes)),
        lambda d: [(d, -math.inf), (d, 0.0)],
        _join_exponentials,
        _log_of_sum,
        cheap=False,
    ),
}


def _constants(f: Function, init: list[tuple[str, float]], lanes: int) -> list[Value]:
    state = []
    for dtype, x in init:
        state.append(f.const(part(dtype), x, lanes))
        if is_complex(dtype):
            state.append(f.const(part(dtype), 0, lanes))
    return state


def _pack(init: list[tuple[str, float]], values: list[Value]) -> State:
    it = iter(values)
    return tuple(Complex(next(it), next(it)) if is_complex(dtype) else next(it) for dtype, _ in init)


def _unpack(state: State) -> list[Value]:
    return [v for x in state for v in ((x.re, x.im) if isinstance(x, Complex) else (x,))]


def _scanned(run: list[Value], none: list[Value], combine: Callable[[list[Value], list[Value]], list[Value]]):
    """The state of one vector, scanned: lane i gets lanes i - shift and before; the first ones get the identity."""
    lanes, shift = run[0].lanes, 1
    while shift < lanes:
        picks = [i - shift if i >= shift else lanes for i in range(lanes)]
        run = combine([v.shuffle(picks, e) for v, e in zip(run, none, strict=True)], run)
        shift *= 2
    return run


def _last(x: Value) -> Value:
    """The last lane in all lanes."""
    return x.shuffle([x.lanes - 1] * x.lanes) if x.lanes > 1 else x


def _scan_row(
    row: Row, scan: Scan, x: int, outs: list[int], working: str, backward: bool, before: list[Value] | None = None
) -> None:
    """One contiguous row: several vectors at a time, each scanned by itself before they are joined.

    Only one combine goes from a vector to the next: of its last lane, broadcast to all lanes. ``before`` is the state
    that the row begins with.
    """
    f, lanes, n = row.f, row.schedule.lanes, row.schedule.n0
    init = scan.init(working)
    none = _constants(f, init, lanes)
    begin = none if before is None else [f.splat(v, lanes) for v in before]

    def combine(a: list[Value], b: list[Value]) -> list[Value]:
        return _unpack(scan.combine(f, _pack(init, a), _pack(init, b)))

    def place(at: Value, count: Value | None) -> Value:
        """The address of the vector that holds the scan's elements from ``at`` on."""
        if not backward:
            return at
        first = n - at - lanes
        return first if count is None else f.select(first > 0, first, 0)

    def transposed(values: list[Value]) -> list[Value]:
        return [v.shuffle(range(lanes - 1, -1, -1)) for v in values] if backward and lanes > 1 else values

    def alone(at: Value, count: Value | None) -> list[Value]:
        """The vector at ``at``, scanned."""
        mask = None if count is None or lanes == 1 else f.first(count, lanes)
        value = row.load(x, place(at, count), lanes, count if lanes > 1 else None, mask)
        run = transposed(_unpack(scan.enter(value, f.splat(at, lanes) + f.iota(I64, lanes))))
        if backward and mask is not None:  # lanes past the end come first
            (mask,) = transposed([mask])
            run = [f.select(mask, v, e) for v, e in zip(run, none, strict=True)]
        return _scanned(run, none, combine)

    def put(at: Value, run: list[Value], count: Value | None) -> None:
        mask = None if count is None or lanes == 1 else f.first(count, lanes)
        for i, y in zip(outs, scan.leave(f, _pack(init, transposed(run))), strict=True):
            row.store(i, place(at, count), y, count if lanes > 1 else None, mask)

    def several(first: Value, carried: list[Value], vectors: int, whole: bool) -> list[Value]:
        """Some vectors, after ``carried``, and the next ``carried``."""
        places = [(at, None if whole else n - at) for at in (first + lanes * k for k in range(vectors))]
        runs = [alone(*at) for at in places]
        for at, run in zip(places, runs, strict=True):
            put(at[0], combine(carried, run), at[1])
            carried = combine(carried, [_last(v) for v in run])
        return carried

    group = SCANNED if scan.cheap else 1
    with f.loop(0, n - (lanes * group - 1), lanes * group, carry=begin) as L:
        L.carry = tuple(several(L.index, list(L.carry), group, True))
    rest, carried = n & f.i64(-lanes * group), list(L.carry)
    if group == 1 or lanes == 1:
        with f.loop(rest, n, lanes, carry=carried) as L:
            L.carry = tuple(several(L.index, list(L.carry), 1, lanes == 1))
        return
    with f.when(n - rest > lanes):
        several(rest, carried, group, False)
    with f.when((n - rest <= lanes) & (rest < n)):
        several(rest, carried, 1, False)


def _extremes_of_row(row: Row, scan: Scan, x: int, outs: list[int], working: str) -> None:
    """Running extremes of one contiguous row, with positions; several vectors at a time.

    Vectors in which nothing reaches the extreme so far only repeat it. Else the values are scanned alone. A value that
    equals the result has its own position, and others the greatest one before: a scan of integers as wide as the
    values, relative to the first vector, with -1 for what was carried. Only vectors with NaN scan both together.
    """
    f, lanes, n = row.f, row.schedule.lanes, row.schedule.n0
    t, beats = part(working), scan.beats
    places = I64 if t.bytes == 8 else I32
    none = [f.const(t, scan.init(working)[0][1], lanes), f.const(places, -1, lanes)]

    def slowly(a: list[Value], b: list[Value]) -> list[Value]:
        return list(scan.combine(f, tuple(a), tuple(b)))

    def kept(a: Value, b: Value) -> Value:
        return f.select(beats(a, b), a, b)

    def greatest(a: Value, b: Value) -> Value:
        return f.select(a > b, a, b)

    def values(xs: list[Value], carried: list[Value]) -> list[list[Value]]:
        """The states of vectors without NaN after ``carried``."""
        found, (top, latest) = [], carried
        runs = [_scanned([v], none[:1], lambda a, b: [kept(a[0], b[0])])[0] for v in xs]
        for k, (v, run) in enumerate(zip(xs, runs, strict=True)):
            run = kept(top, run)
            own = f.select(v == run, f.iota(places, lanes) + lanes * k, none[1])
            (at,) = _scanned([own], none[1:], lambda a, b: [greatest(a[0], b[0])])
            at = greatest(latest, at)
            top, latest = _last(run), _last(at)
            found.append([run, at])
        return found

    def numbers(xs: list[Value], carried: list[Value]) -> list[list[Value]]:
        """The same of any vectors."""
        found = []
        for k, v in enumerate(xs):
            run = slowly(carried, _scanned([v, f.iota(places, lanes) + lanes * k], none, slowly))
            carried = [_last(part) for part in run]
            found.append(run)
        return found

    def step(first: Value, vectors: int, whole: bool, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        at = [first + lanes * k for k in range(vectors)]
        counts = [None if whole or lanes == 1 else n - i for i in at]
        masks = [None if count is None else f.first(count, lanes) for count in counts]
        xs = [row.load(x, *args) for args in zip(at, [lanes] * vectors, counts, masks, strict=True)]

        def put(states: list[list[Value]], position: Value) -> None:
            for i, (top, latest), count, mask in zip(at, states, counts, masks, strict=True):
                row.store(outs[0], i, top, count, mask)
                wide = latest.to(I64)
                row.store(outs[1], i, f.select(wide < 0, position, wide + first), count, mask)

        def again(test: Value, carried: tuple[Value, ...], write: Callable) -> tuple[Value, ...]:
            """``carried``, or if ``test`` holds what ``write`` makes of it."""
            with f.while_([test, *carried]) as L:  # at most once
                L.test(L.carry[0])
                top, position = L.carry[1:]
                states = write(xs, [top, none[1]])
                put(states, position)
                top, latest = (_last(v) for v in states[-1])
                wide = latest.to(I64)
                L.carry = (f.const(BOOL, False), top, f.select(wide < 0, position, wide + first))
            return L.carry[1:]

        top, position = carried
        reached = any_lane(functools.reduce(operator.or_, [~beats(top, v) for v in xs]))
        with f.when(~reached):
            put([[top, none[1]]] * vectors, position)
        if t.kind != "f":
            return again(reached, carried, values)
        strange = any_lane(functools.reduce(operator.or_, [v != v for v in [top, *xs]]))
        return again(reached & strange, again(reached & ~strange, carried, values), numbers)

    carried: tuple[Value, ...] = (none[0], f.const(I64, 0, lanes))
    with f.loop(0, n - (lanes * SCANNED - 1), lanes * SCANNED, carry=carried) as L:
        L.carry = step(L.index, SCANNED, True, L.carry)
    with f.loop(n & f.i64(-lanes * SCANNED), n, lanes, carry=L.carry) as L:
        L.carry = step(L.index, 1, lanes == 1, L.carry)


@contextmanager
def _from_the_end(row: Row) -> Iterator[None]:
    """Column mode: rows run from the last element to the first."""
    f, schedule = row.f, row.schedule
    bases, strides = row.bases, schedule.strides
    schedule.strides = [(f.i64(0) - s[0], *s[1:]) for s in strides]
    row.bases = [f.offset(b, (schedule.n0 - 1) * s[0]) for b, s in zip(bases, strides, strict=True)]
    yield
    row.bases, schedule.strides = bases, strides


@kernel
def scan(f: Function, op: str, backward: bool, dtypes: tuple[str, ...], columns: bool) -> None:
    """One scan over rows, or backward from their ends. Operands: the outputs (value, then position if there is one),
    the input."""
    rule = SCANS[op]
    outs = list(range(len(dtypes) - 1))
    x = len(outs)
    working = rule.working(dtypes[-1], dtypes[0])
    operands = [Operand(d) for d in dtypes[:-1]] + [Operand(dtypes[-1], "c", working)]

    def body(row: Row) -> None:
        if rule.beats and not columns:
            _extremes_of_row(row, rule, x, outs, working)
            return
        if not columns:
            _scan_row(row, rule, x, outs, working, backward)
            return

        def step(acc: State, v: Value, at: Value):
            state = rule.combine(f, acc, rule.enter(v, f.splat(at, v.lanes)))
            return state, rule.leave(f, state)

        with _from_the_end(row) if backward else nullcontext():
            row.fold([x], rule.init(working), step, lambda a, b: a, outs, blocked=False, index=I64)

    widest = part(working)
    if rule.beats:
        widest = I64 if columns or widest.bytes == 8 else I32
    rowwise(f, body, operands, widest, columns=columns, tiles=(4,))


def state_dtype(op: str, dtype: str, out: str) -> str:
    """The dtype of a chunk's result in memory."""
    return SCANS[op].working(dtype, out)


@kernel
def chunk_total(f: Function, dtypes: tuple[str, ...], op: str, out: str) -> None:
    """Last value of a scan of a chunk of a long row (``ops/_long_rows.py``). Operands: it, the input."""
    rule = SCANS[op]
    working = rule.working(dtypes[1], out)

    def body(row: Row) -> None:
        def step(acc: State, v: Value) -> State:
            return rule.combine(f, acc, rule.enter(v, f.const(I64, 0, v.lanes)))

        def join(a: State, b: State) -> State:
            return rule.combine(f, a, b)

        row.put(0, rule.leave(f, row.fold([1], rule.init(working), step, join, blocked=False))[0])

    rowwise(f, body, [Operand(dtypes[0]), Operand(dtypes[1], "c", working)], part(working))


@kernel
def chunk_scan(f: Function, dtypes: tuple[str, ...], op: str, backward: bool) -> None:
    """The scan of a chunk of a long row. Operands: the output, the input, what the chunks before end with."""
    rule = SCANS[op]
    working = rule.working(dtypes[1], dtypes[0])

    def body(row: Row) -> None:
        state = _unpack(rule.enter(row.get(2), f.const(I64, 0)))
        _scan_row(row, rule, 1, [0], working, backward, state)

    operands = [Operand(dtypes[0]), Operand(dtypes[1], "c", working), Operand(dtypes[2], "s")]
    rowwise(f, body, operands, part(working))
