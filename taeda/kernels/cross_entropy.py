"""Cross entropy and negative log-likelihood of class numbers, and their gradients, as row-wise kernels.

Keys are as in ``softmax.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import scalar as s
from .build import kernel
from .ir import F64, I32, I64, Function, Type, Value
from .online import decay, sums
from .pointwise import part
from .reduce import add, compute
from .rows import Row, State
from .rowwise import Group, Schedule, rowwise
from .scalar.basic import any_lane
from .softmax import SHORT, by_columns, group_largest, group_sum_exp, largest, operands_of


def _target(row: Row, target: int, ignored: Value, report: int) -> tuple[Value, Value]:
    """The row's class, clamped so that it can be used as an index, and whether the row counts. A class out of range is
    reported."""
    f = row.f
    t = row.get(target)
    counts = t != ignored
    inside = (t >= 0) & (t < row.schedule.n0)
    wrong = counts & ~inside
    if row.mask is not None:
        wrong = wrong & row.mask
    with f.when(any_lane(wrong)):
        for lane in range(t.lanes):
            with f.when(wrong.lane(lane) if t.lanes > 1 else wrong):
                f.store(row.bases[report], t.lane(lane) if t.lanes > 1 else t)
                f.store(f.offset(row.bases[report], 8), f.i64(1))
    return f.select(inside, t, 0), counts


def _number(working: str) -> Type:
    """The integer type of class numbers, as wide as ``working``: there are fewer than 2^31 classes."""
    return I64 if working == "float64" else I32


@kernel
def cross_entropy(f: Function, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """Per row ``w[t] * (logsumexp(x) - x[t])``, the row's weight ``w[t]``, and the two parts of ``logsumexp(x)``.

    The parts are the largest element and the logarithm of the sum of ``exp(x - largest)``. Added up in one number they
    would have a rounding error that grows with it, and so would every element of the gradient.

    Operands: loss, weight, largest, logarithm, x, target, w (may be left out), report (a class out of range, and
    whether there was one). Parameter: the ignored class.
    """
    working = compute(dtypes[4])
    operands = operands_of(dtypes, columns, "rrrrfrws", working)

    def weigh(row: Row) -> tuple[Value, Value, Value]:
        """The row's class, whether it counts, and its weight."""
        t, counts = _target(row, 5, row.schedule.param(0, F64).to(I64), 7)
        return t, counts, f.select(counts, row.at(6, t) if dtypes[6] else f.const(part(working), 1.0), 0.0)

    def put(row: Row, top: Value, logs: Value, own: Value, counts: Value, weight: Value) -> None:
        row.put(0, f.select(counts, (logs + (top - own)) * weight, 0.0))
        row.put(1, weight)
        row.put(2, top)
        row.put(3, logs)

    def finish(row: Row, top: Value, logs: Value) -> None:
        t, counts, weight = weigh(row)
        put(row, top, logs, row.at(4, t), counts, weight)

    def together(group: Group) -> None:
        top = group_largest(group, 4, working)
        logs = group.keep(s.log(group_sum_exp(group, 4, working, top, [4])))
        with f.loop(0, group.count) as L:
            finish(group.row(L.index), top(L.index), logs(L.index))

    def body(row: Row, kept: Sequence[int], copies: bool) -> None:
        """The target's elements are picked while rows are read: where rows run across memory, each would cost a cache
        line."""
        t, counts, weight = weigh(row)
        own = t.to(_number(working))
        top = largest(row, 4, working, kept if copies else ())

        def step(acc: State, v: Value, at: Value) -> State:
            return acc[0] + decay(v - top), f.select(own == at, v, acc[1])

        total, picked = row.fold(
            kept if copies else [4], [(working, 0.0)] * 2, step, add, index=_number(working), fetch=[4]
        )
        put(row, top, s.log(total), picked, counts, weight)

    if columns:
        by_columns(f, operands, working, [4], body)
        return
    schedule = Schedule(f, operands, part(working), False, 1)
    size = schedule.n0 * operands[4].bytes
    schedule.by_length(
        size <= SHORT,
        lambda: schedule.groups(together, f.begin, f.end, size),
        lambda: sums(schedule, 4, working, lambda row, top, total: finish(row, top, s.log(total))),
    )


def _row_gradient(row: Row, dtypes: tuple[str | None, ...], g: int, t: Value) -> Value:
    """The gradient of a row's loss times the row's weight, divided by the count where there is one.

    It is zero for the ignored class, also where the count is: all rows are ignored, and the loss is NaN.
    """
    x = row.get(g) * row.get(g + 1)
    x = x if dtypes[g + 2] is None else x / row.get(g + 2)
    return row.f.select(t == row.schedule.param(0, F64).to(I64), 0.0, x)


@kernel
def cross_entropy_backward(
    f: Function, per_row: bool, dtypes: tuple[str | None, ...], columns: bool, stream: bool = False
) -> None:
    """``g * w / count * (exp(x - logsumexp) - [class is t])`` per element.

    Operands: the result, x, g (of each row with ``per_row``), w, count (may be left out), the two parts of logsumexp,
    target. Parameter: the ignored class.
    """
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        target, top, logs = row.get(7), row.get(5), row.get(6)
        g, t = _row_gradient(row, dtypes, 2, target), target.to(_number(working))

        def each(row: Row, t: Value) -> None:
            def fn(x: Value, at: Value) -> Value:
                p = decay((x - top) - logs)
                return f.select(at == t, p - 1.0, p) * g

            row.each([1], [0], fn, index=_number(working), fetch=[1] if columns else [])

        if not stream or columns:
            each(row, t)
            return
        before, rest = row.from_register(0)
        row.n0 = before
        each(row, t)
        each(rest, t - before.to(_number(working)))

    operands = operands_of(dtypes, columns, "ffrrsrrr" if per_row else "ffsrsrrr", working, stream)
    rowwise(f, body, operands, part(working), columns=columns, tiles=(16, 4))
    if stream:
        f.fence()


@kernel
def nll_loss(f: Function, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """Per row ``-w[t] * x[t]`` and the row's weight ``w[t]``.

    Operands: loss, weight, x, target, w (may be left out), report. Parameter: the ignored class.
    """
    working = compute(dtypes[2])

    operands = operands_of(dtypes, columns, "rrfrws", working)
    schedule = Schedule(f, operands, part(working), columns, 1)
    ignored = schedule.param(0, F64).to(I64)

    def body(row: Row) -> None:
        t, counts = _target(row, 3, ignored, 5)
        weight = f.select(counts, row.at(4, t) if dtypes[4] else f.const(part(working), 1.0), 0.0)
        row.put(0, f.select(counts, -row.at(2, t) * weight, 0.0))
        row.put(1, weight)

    if columns:
        schedule.tiles(body, ())
    else:
        schedule.rows_in_line(body)


@kernel
def nll_loss_backward(f: Function, per_row: bool, dtypes: tuple[str | None, ...], columns: bool) -> None:
    """``-g * w / count`` at class ``t`` of each row, 0 elsewhere.

    Operands: the result, something of its shape, g (of each row with ``per_row``), w, count (may be left out), target.
    Parameter: the ignored class.
    """
    working = compute(dtypes[0])

    def body(row: Row) -> None:
        t = row.get(5)
        g = -_row_gradient(row, dtypes, 2, t)
        row.each([], [0], lambda at: f.select(at == t, g, 0.0), index=I64)

    operands = operands_of(dtypes, columns, "ffrrsr" if per_row else "ffsrsr", working)
    rowwise(f, body, operands, part(working), columns=columns)
