"""Layer, group, batch and RMS normalization and their gradients, as row-wise kernels.

The elements that are normalized together are a row, of one dimension (layer norm) or two (group norm: channels of the
group by positions; batch norm: batch by positions). Weight and bias are operands like any other: their strides make
them run along the row (layer norm), along its outer dimension (group norm), or from row to row (batch norm). For half
precision, statistics and their inverse are kept in float32.

A kernel's key is ``(dtypes, columns, levels, affine)``: a dtype name per operand, outputs first (None: left out), the
mode and levels of the row-wise schedule, and ``affine``, the layout of weight and bias along vectors (``c`` or ``s``).
Some take ``stream`` after the mode: the first output is stored past the cache (its rows begin at cache lines).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial

from .build import kernel
from .ir import F64, I32, I64, Function, Value
from .pipeline import Stage, pipeline
from .pointwise import part
from .reduce import add, compute
from .rows import Operand, Row, State
from .rowwise import Group, Kept, Schedule, rowwise

Dtypes = tuple[str | None, ...]

#: Rows of at most so many bytes are normalized several at a time. Longer rows go one by one: 512 x 1024 float32 takes
#: 78 us so, and 102 three at a time.
SHORT = 2048


def _operands(
    dtypes: Dtypes, columns: bool, letters: str, affine: str, working: str, stream: bool = False
) -> list[Operand]:
    """``f``: every element; ``r``: one value per row; ``w``: laid out by ``affine``. ``stream`` is for the first
    operand."""
    found = []
    for dtype, letter in zip(dtypes, letters, strict=True):
        layout = affine if letter == "w" else "s" if letter == "r" and not columns else "c"
        found.append(Operand(dtype or "uint8", layout, working if dtype else None, stream and not found))
    return found


def _given(dtypes: Dtypes, *operands: int) -> list[int]:
    return [i for i in operands if dtypes[i] is not None]


def _mean(row: Row, x: int, dtype: str) -> Value:
    return row.fold([x], [(dtype, 0.0)], lambda acc, v: (acc[0] + v,), add)[0] / row.size.to(part(dtype))


def _variance(row: Row, x: int, dtype: str, mean: Value) -> Value:
    def step(acc, v):
        d = v - mean
        return (row.f.fma(d, d, acc[0]),)

    return row.fold([x], [(dtype, 0.0)], step, add)[0] / row.size.to(part(dtype))


def _inverse_root(f: Function, variance: Value, eps: Value) -> Value:
    """``1 / sqrt(variance + eps)``."""
    return 1.0 / f.unary("sqrt", variance + f.splat(eps, variance.lanes))


def _affine(f: Function, v: Value, given: list[int], affine: Sequence[Value]) -> Value:
    """``v * weight + bias``, operands 2 and 3, as far as ``given``."""
    if len(given) == 2:
        return f.fma(v, affine[0], affine[1])
    return v * affine[0] if given == [2] else v + affine[0] if given else v


def _write(row: Row, dtypes: Dtypes, y: int, x: int, w: int, b: int, mean: Value | None, rstd: Value) -> None:
    """``(x - mean) * rstd * w + b``."""
    f, given = row.f, _given(dtypes, w, b)

    def fn(v: Value, *affine: Value) -> Value:
        return _affine(f, (v if mean is None else v - mean) * rstd, [2 + (i - w) for i in given], affine)

    row.each([x, *given], [y], fn, fetch=[] if row.schedule.columns else [y])


class _Sums:
    """All sums over a row that a norm needs, in one pass: of squares, and for the gradient of ``g * weight * x``.

    ``centred`` sums are of differences from the mean of the row's first vector, and give the mean as well. They lose
    digits where that mean is far from the row's: then they are computed again, from the row's mean, while the row is in
    the cache.
    """

    def __init__(
        self, schedule: Schedule, x: int, dtype: str, centred: bool, g: int | None = None, weight: Sequence[int] = ()
    ):
        self.schedule, self.f, self.x, self.dtype = schedule, schedule.f, x, dtype
        self.centred, self.weight = centred, weight
        size = schedule.n0 * schedule.n1 if schedule.levels == 2 else schedule.n0
        self.n = size.to(part(dtype))
        self.ins = [x] if g is None else [x, g, *weight]
        self.products = 1 if g is None else 2
        self.init = [(dtype, 0.0)] * (self.products * (2 if centred else 1))

    def begin(self, row: Row) -> tuple[Value, ...]:
        """The origin that is subtracted from the elements."""
        if not self.centred:
            return ()
        head = row.head(self.x)
        return (self._origin(head.reduce(operator.add), (head * head).reduce(operator.add)),)

    def _origin(self, total: Value, square: Value) -> Value:
        """The mean; 0 where the mean is nearer to 0 than its deviation, as that gives more digits."""
        f, lanes, n0 = self.f, self.schedule.lanes, self.schedule.n0
        count = f.select(n0 < lanes, n0, f.i64(lanes)).to(part(self.dtype))
        mean = total / count
        return f.select(mean * mean * 2.0 > square / count, mean, 0.0)

    def step(self, known: Sequence[Value], acc: State, x: Value, *more: Value) -> State:
        """Squares, products with the gradient, differences, gradients, as far as they are needed."""
        d = x - known[0] if known else x
        sums = [self.f.fma(d, d, acc[0])]
        g = more[0] * more[1] if self.weight else more[0] if more else None
        if g is not None:
            sums.append(self.f.fma(g, d, acc[1]))
        if self.centred:
            sums.append(acc[self.products] + d)
        if self.centred and g is not None:
            sums.append(acc[3] + g)
        return tuple(sums)

    def rough(self, origin: Value, means: Sequence[Value]) -> tuple[list[Value], Value]:
        """Mean square, mean product and the mean, as far as they are needed, and whether digits were lost."""
        square, away = means[0], means[self.products]
        square = square - away * away
        products = [dot - away * level for dot, level in zip(means[1:2], means[3:], strict=False)]
        return [square, *products, origin + away], ~(square > away * away * 0.5)

    def again(self, row: Row) -> tuple[Value, ...]:
        """The same means, of differences from the mean."""
        mean = _mean(row, self.x, self.dtype)
        init = [(self.dtype, 0.0)] * self.products
        totals = row.fold(self.ins, init, lambda acc, *xs: self.step((mean,), (*acc, mean, mean), *xs)[: len(acc)], add)
        return *(total / self.n for total in totals), mean

    def settle(self, row: Row, known: Sequence[Value], means: Sequence[Value]) -> Sequence[Value]:
        """Mean square, mean product and the mean, as far as they are needed, from the sums divided by the row's
        size."""
        if not self.centred:
            return means
        found, poor = self.rough(known[0], means)
        with self.f.loop(0, self.f.select(poor, self.f.i64(1), 0), carry=found) as L:
            L.carry = self.again(row)
        return L.carry

    def of_group(self, group: Group, unroll: int) -> list[Kept]:
        """:meth:`settle` for each row; for the gradient the mean of ``g * weight`` comes last."""
        f = self.f
        if not self.centred:
            totals = group.fold(self.ins, self.init, lambda r: partial(self.step, ()), unroll=unroll)
            return [group.keep(total / self.n) for total in totals]
        origins = self._origin(*group.heads(self.x, (lambda x: x, lambda x: x * x)))
        origin = group.keep(origins)
        totals = group.fold(self.ins, self.init, lambda r: partial(self.step, (origin(r),)), unroll=unroll)
        means = [total / self.n for total in totals]
        found, lost = self.rough(origins, means)
        poor = group.keep(f.select(lost, f.const(I32, 1, lost.lanes), 0))
        kept = [group.keep(x) for x in (*found, *means[3:])]
        with f.loop(0, group.count) as L, f.when(poor(L.index) != 0):
            for place, x in zip(kept, self.again(group.row(L.index)), strict=False):
                place.put(L.index, x)
        return kept


def _normalize_rows(
    f: Function, dtypes: Dtypes, letters: str, centred: bool, stream: bool, levels: int, affine: str
) -> None:
    """Layer norm, RMS norm or group norm; several rows at a time where they are short."""
    working = compute(dtypes[1])
    t = part(working)
    schedule = Schedule(f, _operands(dtypes, False, letters, affine, working, stream), t, False, levels)
    eps = schedule.param(0, F64).to(t)
    given = _given(dtypes, *range(2, len(dtypes)))
    sums = _Sums(schedule, 1, working, centred)

    def normal(known: Sequence[Value], acc: State, v: Value, *more: Value) -> tuple[State, tuple[Value]]:
        rstd, *mean = known
        return (), (_affine(f, (v - mean[0] if mean else v) * rstd, given, more),)

    def together(group: Group) -> None:
        square, *mean = sums.of_group(group, 4)
        rstd = group.keep(_inverse_root(f, square.all(), eps))
        known = [rstd, *mean]
        group.each(
            [1, *given],
            [0],
            lambda r: lambda *xs: normal([x(r) for x in known], (), *xs)[1],
            fetch=[1] if stream else [0],
        )

    def finish(row: Row, known: Sequence[Value], totals: State) -> tuple[Value, ...]:
        square, *mean = sums.settle(row, known, [total / sums.n for total in totals])
        return _inverse_root(f, square, eps), *mean

    stages = [
        Stage(sums.ins, sums.step, sums.init, begin=sums.begin, finish=finish),
        Stage([1, *given], normal, outs=[0]),
    ]
    fresh = [1] if stream else None
    if levels == 2:
        pipeline(schedule, stages, f.begin, f.end, fresh=fresh)
    else:
        schedule.by_length(
            schedule.n0 * t.bytes <= SHORT,
            lambda: schedule.groups(together, f.begin, f.end, schedule.n0 * t.bytes),
            lambda: pipeline(schedule, stages, f.begin, f.end, fresh=fresh),
        )
    if stream:
        f.fence()


@kernel
def layer_norm(
    f: Function, dtypes: Dtypes, columns: bool, stream: bool = False, levels: int = 1, affine: str = "c"
) -> None:
    """Normalise rows. Operands: y, x, weight, bias. Parameter: eps."""
    _normalize_rows(f, dtypes, "ffww", True, stream, levels, affine)


@kernel
def layer_norm_backward(f: Function, dtypes: Dtypes, columns: bool, levels: int = 1, affine: str = "c") -> None:
    """Gradient of the input of :func:`layer_norm` over rows of two dimensions, and its statistics, computed again.

    Operands: dx, mean, rstd, x, g, weight. Parameter: eps.
    """
    working = compute(dtypes[3])
    given = _given(dtypes, 5)

    def body(row: Row) -> None:
        eps = row.schedule.param(0, F64).to(part(working))
        mean = _mean(row, 3, working)
        rstd = _inverse_root(f, _variance(row, 3, working, mean), eps)
        row.put(1, mean)
        row.put(2, rstd)

        def step(acc, g, x, *w):
            g = g * w[0] if w else g
            return f.fma(g, (x - mean) * rstd, acc[0]), acc[1] + g

        dot, total = row.fold([4, 3, *given], [(working, 0.0)] * 2, step, add, unroll=4)
        n = row.size.to(part(working))
        slope, level = dot / n, total / n

        def fn(g, x, *w):
            g = g * w[0] if w else g
            return (g - level - (x - mean) * rstd * slope) * rstd

        row.each([4, 3, *given], [0], fn, fetch=[] if columns else [0, 4])

    operands = _operands(dtypes, columns, "frrffw", affine, working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels)


@kernel
def group_norm_backward(f: Function, dtypes: Dtypes, stream: bool = False) -> None:
    """Gradients of group norm over ``[channels of a group, positions]``; statistics are computed again.

    Operands: dx, dw and db of each sample, x, g, weight. Parameter: eps. The group's sums follow from those of each
    channel, so the gradients of weight and bias need no pass of their own. A group is read once for all its sums.
    Prefetching the next group while one is written, from the second-level cache, cost more than it gained
    (32x256x56x56: 13.8 ms, 11.1 without).
    """
    working = compute(dtypes[3])
    t = part(working)
    operands = _operands(dtypes, False, "frrffr", "s", working, stream)
    whole, channel = (Schedule(f, operands, t, False, levels) for levels in (2, 1))
    eps, given = whole.param(0, F64).to(t), _given(dtypes, 5)
    statistics = _Sums(whole, 3, working, True)
    zero = f.const(t, 0.0)

    def body(row: Row) -> None:
        def each_channel(index: Value) -> tuple[Row, Value]:
            bases = [f.offset(p, index * s[1]) for p, s in zip(row.bases, whole.strides, strict=True)]
            own = Row(channel, row.a, bases, channel.lanes, None)
            return own, own.get(5) if given else f.const(t, 1.0)

        (origin,) = statistics.begin(row)

        def step(acc: State, g: Value, x: Value) -> State:
            d = x - origin
            return f.fma(g, d, acc[0]), acc[1] + g, f.fma(d, d, acc[2]), acc[3] + d

        with f.loop(0, whole.n1, carry=[zero] * 4) as C:
            own, weight = each_channel(C.index)
            dot, total, square, away = own.fold([4, 3], [(working, 0.0)] * 4, step, add, unroll=2)
            own.put(1, dot)
            own.put(2, total)
            C.carry = (
                f.fma(weight, dot, C.carry[0]),
                f.fma(weight, total, C.carry[1]),
                C.carry[2] + square,
                C.carry[3] + away,
            )
        product, level, *totals = C.carry
        found, poor = statistics.rough(origin, [total / statistics.n for total in totals])
        with f.loop(0, f.select(poor, f.i64(1), 0), carry=[*found, origin, product]) as again:
            variance, mean = statistics.again(row)

            def exact(acc: State, g: Value, x: Value, mean=mean) -> State:
                return (f.fma(g, x - mean, acc[0]),)

            with f.loop(0, whole.n1, carry=[zero]) as C:
                own, weight = each_channel(C.index)
                (dot,) = own.fold([4, 3], [(working, 0.0)], exact, add)
                own.put(1, dot)
                C.carry = (f.fma(weight, dot, C.carry[0]),)
            again.carry = variance, mean, mean, C.carry[0]
        variance, mean, centre, product = again.carry
        rstd = _inverse_root(f, variance, eps)
        moved = mean - centre
        slope = (product - moved * level) / statistics.n * -rstd * rstd * rstd
        level = level / statistics.n * -rstd
        with f.loop(0, whole.n1) as C:
            own, weight = each_channel(C.index)
            own.put(1, (own.get(1) - moved * own.get(2)) * rstd)
            scale = weight * rstd
            own.each([4, 3], [0], lambda g, x: f.fma(g, scale, f.fma(x - mean, slope, level)))

    whole.rows(body)
    if stream:
        f.fence()


@kernel
def affine_backward(f: Function, dtypes: Dtypes, columns: bool, levels: int, stats: str) -> None:
    """Gradients of weight and bias: sums of ``g * (x - mean) * rstd`` and of ``g`` over all rows that share a weight.

    Operands: dw, db, g, x, mean, rstd. ``stats`` is the layout of mean and rstd (``s``: one value per vector).
    """
    working = compute(dtypes[3])

    def body(row: Row) -> None:
        def step(acc, g, x, mean, rstd):
            return f.fma(g, (x - mean) * rstd, acc[0]), acc[1] + g

        dw, db = row.fold([2, 3, 4, 5], [(working, 0.0)] * 2, step, add, unroll=4)
        row.put(0, dw)
        row.put(1, db)

    operands = _operands(dtypes, columns, "rrffww", stats, working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels)


@kernel
def rms_norm(
    f: Function, dtypes: Dtypes, columns: bool, stream: bool = False, levels: int = 1, affine: str = "c"
) -> None:
    """``x / sqrt(mean(x ** 2) + eps) * weight``. Operands: y, x, weight. Parameter: eps."""
    _normalize_rows(f, dtypes, "ffw", False, stream, levels, affine)


@kernel
def norm_backward(f: Function, dtypes: Dtypes, centred: bool, stream: bool = False) -> None:
    """Gradients of :func:`layer_norm` (``centred``) or :func:`rms_norm`; statistics are computed again.

    Operands: dx, dw and db per block of rows (may be left out), x, g, weight. Parameters: eps, number of rows, rows in
    a block. ``[begin, end)`` are blocks: the gradients of weight and bias of a block add up while its rows are in the
    cache.
    """
    working = compute(dtypes[3])
    t = part(working)
    operands = _operands(dtypes, False, "fwwffw", "c", working, stream)
    schedule = Schedule(f, operands, t, False, 1)
    eps = schedule.param(0, F64).to(t)
    rows, most = schedule.param(1, I64), schedule.param(2, I64)
    affine, weight = _given(dtypes, 1, 2), _given(dtypes, 5)
    sums = _Sums(schedule, 3, working, centred, 4, weight)
    zero = f.const(t, 0.0)

    def facts(square: Value, dot: Value, level: Value | None) -> list[Value]:
        """Factors of the result ``(g * w + (x - mean) * slope + level) * rstd``."""
        rstd = _inverse_root(f, square, eps)
        slope = rstd * rstd * -dot
        return [rstd, slope] if level is None else [rstd, slope, -level]

    def gradient(known: Sequence[Value], x: Value, g: Value, w: Sequence[Value]) -> tuple[Value, ...]:
        """The input's gradient, and two factors of the weight's."""
        rstd, slope, *centre = known
        d, product = x, g * w[0] if w else g
        if centred:  # in this order equal elements have no gradient, as their mean has the same rounding
            d = x - centre[1]
            dx = (product + f.fma(d, slope, centre[0])) * rstd
        else:
            dx = f.fma(d, slope, product) * rstd
        return dx, g * rstd, d

    def together(group: Group) -> None:
        square, dot, *rest = sums.of_group(group, 2)
        known = [group.keep(x) for x in facts(square.all(), dot.all(), rest[1].all() if centred else None)] + rest[:1]

        def strip(at: Value, lanes: int, mask: Value | None) -> None:
            """Some columns of all rows: the gradients of weight and bias add up in registers."""
            count = None if mask is None else schedule.n0 - at
            first = group.row(f.i64(0))
            w = [first.load(i, at, lanes, count, mask) for i in weight]
            before = [first.load(i, at, lanes, count, mask) for i in affine]
            with f.loop(0, group.count, carry=before) as R:
                row = group.row(R.index)
                x, g = (row.load(i, at, lanes, count, mask) for i in (3, 4))
                dx, *factors = gradient([x(R.index) for x in known], x, g, w)
                row.store(0, at, dx, count, mask)
                R.carry = [f.fma(*factors, v) if i == 1 else v + g for i, v in zip(affine, R.carry, strict=True)]
            for i, v in zip(affine, R.carry, strict=True):
                first.store(i, at, v, count, mask)

        for at, count, mask in f.strips(0, schedule.n0, schedule.lanes, 4):
            strip(at, count * schedule.lanes, mask)

    def finish(row: Row, known: Sequence[Value], totals: State) -> list[Value]:
        means = [total / sums.n for total in totals]
        square, dot, *mean = sums.settle(row, known, means)
        return [*facts(square, dot, means[3] if centred else None), *mean]

    def stored(known: Sequence[Value], acc: State, x: Value, g: Value, *more: Value) -> tuple[State, tuple]:
        w, before = more[: len(weight)], more[len(weight) :]
        dx, *factors = gradient(known, x, g, w)
        return (), (dx, *(f.fma(*factors, v) if i == 1 else v + g for i, v in zip(affine, before, strict=True)))

    stages = [
        Stage(sums.ins, sums.step, sums.init, begin=sums.begin, finish=finish),
        Stage([3, 4, *weight, *affine], stored, outs=[0, *affine]),
    ]
    with f.loop(f.begin, f.end) as B:
        first = B.index * most
        last = f.select(first + most < rows, first + most, rows)
        bases = schedule.bases(B.index, f.i64(0))
        shared = {i: bases[i] for i in affine}
        if affine:
            Row(schedule, B.index, bases, schedule.lanes, None).each([], affine, lambda: (zero,) * len(affine))
        schedule.by_length(
            schedule.n0 * t.bytes <= SHORT,
            partial(schedule.groups, together, first, last, schedule.n0 * (2 * t.bytes), shared),
            partial(pipeline, schedule, stages, first, last, shared=shared, unroll=2, fresh=[3, 4] if stream else None),
        )
    if stream:
        f.fence()


@kernel
def batch_norm(f: Function, dtypes: Dtypes, columns: bool, levels: int, stream: bool = False) -> None:
    """Normalize each channel by its own statistics and update the running ones.

    Operands: y, mean, rstd, running mean, running variance (both may be left out), x, weight, bias. Parameters: eps,
    momentum. The running variance gets the unbiased estimate.
    """
    _batch_norm(f, dtypes, columns, levels, stream, True)


@kernel
def batch_moments(f: Function, dtypes: Dtypes, columns: bool, levels: int, stream: bool = False) -> None:
    """The statistics of :func:`batch_norm` alone. Same operands; y, weight and bias are not touched."""
    _batch_norm(f, dtypes, columns, levels, stream, False)


def _batch_norm(f: Function, dtypes: Dtypes, columns: bool, levels: int, stream: bool, whole: bool) -> None:
    working = compute(dtypes[5])
    t = part(working)
    operands = _operands(dtypes, columns, "frrrrfrr", "s", working, stream)

    def keep(row: Row, mean: Value, variance: Value, rstd: Value) -> None:
        momentum = row.schedule.param(1, F64).to(t)
        row.put(1, mean)
        row.put(2, rstd)
        if dtypes[3] is not None:
            n = row.size
            unbiased = variance * (n.to(t) / f.select(n > 1, n - 1, n).to(t))
            for i, new in ((3, mean), (4, unbiased)):
                row.put(i, row.get(i) * (1.0 - momentum) + new * momentum)

    def body(row: Row) -> None:
        mean = _mean(row, 5, working)
        variance = _variance(row, 5, working, mean)
        rstd = _inverse_root(f, variance, row.schedule.param(0, F64).to(t))
        keep(row, mean, variance, rstd)
        if whole:
            _write(row, dtypes, 0, 5, 6, 7, mean, rstd)

    if columns:
        rowwise(f, body, operands, t, columns=True, levels=levels, tiles=(4,))
        return
    schedule = Schedule(f, operands, t, False, levels)
    sums, given = _Sums(schedule, 5, working, True), _given(dtypes, 6, 7)

    def finish(row: Row, known: Sequence[Value], totals: State) -> tuple[Value, ...]:
        variance, mean = sums.settle(row, known, [total / sums.n for total in totals])
        found = mean, variance, _inverse_root(f, variance, schedule.param(0, F64).to(t))
        return found if whole else end(row, found, ())

    def normal(known: Sequence[Value], acc: State, v: Value, *more: Value) -> tuple[State, tuple[Value]]:
        mean, _, rstd = known
        return (), (_affine(f, (v - mean) * rstd, [i - 4 for i in given], more),)

    def end(row: Row, known: Sequence[Value], totals: State) -> tuple[()]:
        keep(row, *known)
        return ()

    stages = [
        Stage(sums.ins, sums.step, sums.init, begin=sums.begin, finish=finish),
        Stage([5, *given], normal, outs=[0], finish=end),
    ]
    pipeline(schedule, stages if whole else stages[:1], f.begin, f.end, fresh=[5] if stream else None)
    if stream and whole:
        f.fence()


@kernel
def batch_norm_eval(f: Function, dtypes: Dtypes, columns: bool, levels: int) -> None:
    """Normalise each channel by given statistics. Operands: y, x, mean, variance, weight, bias. Parameter: eps."""
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        eps = row.schedule.param(0, F64).to(part(working))
        rstd = _inverse_root(f, row.get(3), eps)
        _write(row, dtypes, 0, 1, 4, 5, row.get(2), rstd)

    operands = _operands(dtypes, columns, "ffrrrr", "s", working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels, tiles=(4,))


@kernel
def batch_norm_backward(
    f: Function, dtypes: Dtypes, columns: bool, levels: int, training: bool, stream: bool = False
) -> None:
    """Gradients of input, weight and bias. Operands: dx, dw, db, g, x, mean, rstd, weight.

    With ``training`` the statistics are the batch's and carry gradient themselves.
    """
    working = compute(dtypes[4])
    t = part(working)
    operands = _operands(dtypes, columns, "frrffrrr", "s", working, stream)

    def step(known: Sequence[Value], acc: State, g: Value, x: Value) -> State:
        return f.fma(g, x - known[0], acc[0]), acc[1] + g

    def facts(row: Row, mean: Value, totals: State) -> tuple[Value, ...]:
        """Factors of the result ``(x - mean) * slope + (g * scale + level)``, and the sums that are gradients."""
        rstd = row.get(6)
        dot, total = totals[0] * rstd, totals[1]
        scale = rstd if dtypes[7] is None else rstd * row.get(7)
        share = scale / row.size.to(t)
        return scale, -dot * rstd * share, -total * share, dot, total

    def result(mean: Value, scale: Value, slope: Value, level: Value, g: Value, x: Value) -> Value:
        return f.fma(x - mean, slope, f.fma(g, scale, level))

    def keep(row: Row, dot: Value, total: Value) -> None:
        row.put(1, dot)
        row.put(2, total)

    init = [(working, 0.0)] * 2

    def body(row: Row) -> None:
        mean = row.get(5)
        totals = row.fold([3, 4], init, lambda acc, *xs: step((mean,), acc, *xs), add, unroll=4)
        scale, slope, level, *sums = facts(row, mean, totals)
        keep(row, *sums)
        if training:
            row.each([3, 4], [0], lambda g, x: result(mean, scale, slope, level, g, x))
        else:
            row.each([3], [0], lambda g: g * scale)

    if columns:
        rowwise(f, body, operands, t, columns=True, levels=levels, tiles=(4,))
        return

    def finish(row: Row, known: Sequence[Value], totals: State) -> tuple[Value, ...]:
        return (known[0], *facts(row, known[0], totals))

    def stored(known: Sequence[Value], acc: State, g: Value, *x: Value) -> tuple[State, tuple[Value]]:
        return (), (result(*known[:4], g, *x) if x else g * known[1],)

    def end(row: Row, known: Sequence[Value], totals: State) -> tuple[()]:
        keep(row, *known[4:])
        return ()

    stages = [
        Stage([3, 4], step, init, begin=lambda row: (row.get(5),), finish=finish),
        Stage([3, 4] if training else [3], stored, outs=[0], finish=end),
    ]
    schedule = Schedule(f, operands, t, False, levels)
    pipeline(schedule, stages, f.begin, f.end, unroll=2, fresh=[3, 4] if stream else None)
    if stream:
        f.fence()


@kernel
def chunk_normalize(f: Function, dtypes: tuple[str | None, ...], affine: str) -> None:
    """``(x - mean) * rstd * weight + bias`` of a chunk of a long row (``ops/_long_rows.py``).

    Operands: y, x, mean, rstd, weight, bias; mean, weight and bias may be left out. ``affine``: the letter of the last
    two, ``w`` or ``r``.
    """
    working = compute(dtypes[1])
    given = [i for i in (4, 5) if dtypes[i] is not None and affine == "w"]

    def body(row: Row) -> None:
        mean = row.get(2) if dtypes[2] is not None else None
        rstd = row.get(3)
        own = {i: row.get(i) for i in (4, 5) if dtypes[i] is not None and affine == "r"}

        def fn(v, *more):
            at = {**own, **dict(zip(given, more, strict=True))}
            v = (v if mean is None else v - mean) * rstd
            if 4 in at and 5 in at:
                return f.fma(v, at[4], at[5])
            return v * at[4] if 4 in at else v + at[5] if 5 in at else v

        row.each([1, *given], [0], fn)

    rowwise(f, body, _operands(dtypes, False, "ffrr" + 2 * affine, "c", working), part(working))


@kernel
def chunk_products(f: Function, dtypes: tuple[str | None, ...], columns: bool, levels: int) -> None:
    """Sums of ``g * w * (x - mean)`` and of ``g * w`` of a chunk of each row.

    Operands: the sums, g, x, mean, w; the last two may be left out.
    """
    working = compute(dtypes[3])
    given = _given(dtypes, 5)

    def body(row: Row) -> None:
        mean = row.get(4) if dtypes[4] is not None else None

        def step(acc: State, g: Value, x: Value, *w: Value) -> State:
            g = g * w[0] if w else g
            return f.fma(g, x if mean is None else x - mean, acc[0]), acc[1] + g

        fold = row.fold([2, 3, *given], [(working, 0.0)] * 2, step, add, unroll=4, blocked=columns)
        for i, total in enumerate(fold):
            row.put(i, total)

    operands = _operands(dtypes, columns, "rrffrw", "c", working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels, tiles=(4,))


@kernel
def chunk_normalize_backward(f: Function, dtypes: tuple[str | None, ...], affine: str) -> None:
    """``(g * w + ((x - mean) * slope + level)) * rstd`` of a chunk of a long row (``ops/_long_rows.py``).

    Operands: dx, g, x, mean, rstd, slope, level, w; mean, level and w may be left out. ``affine``: the letter of ``w``.
    """
    working = compute(dtypes[1])
    given = [7] if dtypes[7] is not None and affine == "w" else []

    def body(row: Row) -> None:
        mean, level, own = (row.get(i) if i in _given(dtypes, 3, 6, 7) and i not in given else None for i in (3, 6, 7))
        rstd, slope = row.get(4), row.get(5)

        def fn(g: Value, x: Value, *w: Value) -> Value:
            w = w or (() if own is None else (own,))
            d, product = x if mean is None else x - mean, g * w[0] if w else g
            return (f.fma(d, slope, product) if level is None else product + f.fma(d, slope, level)) * rstd

        row.each([1, 2, *given], [0], fn)

    rowwise(f, body, _operands(dtypes, False, "fffrrrr" + affine, "c", working), part(working))
