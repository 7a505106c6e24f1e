"""Layer, group, batch and RMS normalisation and their gradients, as row-wise kernels.

What is normalised together is a row, of one dimension (layer norm) or two (group norm: channels of the group by
positions; batch norm: batch by positions). Weight and bias are operands like any other: their strides say whether they
run along the row (layer norm), along its outer dimension (group norm), or from row to row (batch norm). Statistics
and their inverse are kept in float32 for half precision.

A kernel's key is ``(dtypes, columns, levels, affine)``: a dtype name per operand, outputs first, None for one that was
left out, the mode and levels of the row-wise schedule, and ``affine``, how weight and bias are laid out along vectors
(``c`` or ``s``). Some take ``stream`` after the mode: the first output is stored past the cache (its rows begin at lines).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .build import kernel
from .ir import F64, I64, Function, Value
from .pointwise import part
from .reduce import add, compute
from .rowwise import Group, Operand, Row, Schedule, rowwise

Dtypes = tuple[str | None, ...]

#: Bytes up to which rows are normalised together: 512 x 1024 float32 takes 78 us one by one, 102 three at a time.
SHORT = 2048


def _operands(
    dtypes: Dtypes, columns: bool, letters: str, affine: str, working: str, stream: bool = False
) -> list[Operand]:
    """``f``: every element; ``r``: one value per row; ``w``: laid out as ``affine`` says. ``stream`` is about the first."""
    found = []
    for dtype, letter in zip(dtypes, letters, strict=True):
        layout = affine if letter == "w" else "s" if letter == "r" and not columns else "c"
        found.append(Operand(dtype or "uint8", layout, working if dtype else None, stream and not found))
    return found


def _given(dtypes: Dtypes, *operands: int) -> list[int]:
    return [i for i in operands if dtypes[i] is not None]


def _mean(row: Row, x: int, dtype: str) -> Value:
    return row.fold([x], [(dtype, 0.0)], lambda acc, v: (acc[0] + v,), add)[0] / row.size.to(part(dtype))


def _variance(row: Row, x: int, dtype: str, mean: Value, stream: bool = False) -> Value:
    def step(acc, v):
        d = v - mean
        return (row.f.fma(d, d, acc[0]),)

    return row.fold([x], [(dtype, 0.0)], step, add, fetch=[] if stream else [x])[0] / row.size.to(part(dtype))


def _inverse_root(f: Function, variance: Value, eps: Value) -> Value:
    """``1 / sqrt(variance + eps)``."""
    return 1.0 / f.unary("sqrt", variance + f.splat(eps, variance.lanes))


def _affine(f: Function, v: Value, given: list[int], affine: Sequence[Value]) -> Value:
    """``v * weight + bias`` of those that are ``given``: operands 2 and 3."""
    if len(given) == 2:
        return f.fma(v, affine[0], affine[1])
    return v * affine[0] if given == [2] else v + affine[0] if given else v


def _write(row: Row, dtypes: Dtypes, y: int, x: int, w: int, b: int, mean: Value | None, rstd: Value) -> None:
    """``(x - mean) * rstd * w + b``."""
    f, given = row.f, _given(dtypes, w, b)

    def fn(v: Value, *affine: Value) -> Value:
        return _affine(f, (v if mean is None else v - mean) * rstd, [2 + (i - w) for i in given], affine)

    row.each([x, *given], [y], fn, fetch=[y])


def _group_statistics(group: Group, x: int, dtype: str, eps: Value, centred: bool) -> tuple[Callable | None, Callable]:
    """The mean (None unless ``centred``) and the inverse deviation of each row, by its number in the group."""
    f, t = group.f, part(dtype)
    n, mean = group.schedule.n0.to(t), None
    if centred:
        (total,) = group.fold([x], [(dtype, 0.0)], lambda r: lambda acc, v: (acc[0] + v,))
        mean = group.keep(total / n)

    def square(r: Value) -> Callable:
        m = None if mean is None else mean(r)

        def step(acc, v):
            d = v if m is None else v - m
            return (f.fma(d, d, acc[0]),)

        return step

    (total,) = group.fold([x], [(dtype, 0.0)], square, fetch=[x])
    return mean, group.keep(_inverse_root(f, total / n, eps))


def _normalize_rows(f: Function, dtypes: Dtypes, letters: str, centred: bool, stream: bool) -> None:
    """Layer norm or RMS norm of rows of one dimension with weights along them; several at a time where they are short."""
    working = compute(dtypes[1])
    t = part(working)
    schedule = Schedule(f, _operands(dtypes, False, letters, "c", working, stream), t, False, 1)
    eps = schedule.param(0, F64).to(t)
    given = _given(dtypes, *range(2, len(dtypes)))
    # What is stored past the cache leaves the memory time to fetch the next row meanwhile: 4096 x 2048 takes 2.2 ms so and
    # 2.6 where the pass before fetches it.
    fetch = [1] if stream else [0]

    def normal(v: Value, mean: Value | None, rstd: Value, more: Sequence[Value]) -> Value:
        return _affine(f, (v if mean is None else v - mean) * rstd, given, more)

    def together(group: Group) -> None:
        mean, rstd = _group_statistics(group, 1, working, eps, centred)

        def fn(r: Value) -> Callable:
            m, scale = None if mean is None else mean(r), rstd(r)
            return lambda v, *more: normal(v, m, scale, more)

        group.each([1, *given], [0], fn, fetch=fetch)

    def one(row: Row) -> None:
        mean = _mean(row, 1, working) if centred else None
        if mean is None:
            rstd = _inverse_norm(row, 1, working, stream)
        else:
            rstd = _inverse_root(f, _variance(row, 1, working, mean, stream), eps)
        row.each([1, *given], [0], lambda v, *more: normal(v, mean, rstd, more), fetch=fetch)

    with f.branch(schedule.n0 * t.bytes <= SHORT) as B:
        schedule.groups(together, f.begin, f.end, schedule.n0 * t.bytes)
        B.otherwise()
        schedule.rows(one)
    if stream:
        f.fence()


@kernel
def layer_norm(
    f: Function, dtypes: Dtypes, columns: bool, stream: bool = False, levels: int = 1, affine: str = "c"
) -> None:
    """Normalise rows. Operands: y, x, weight, bias. Parameter: eps."""
    if not columns and levels == 1 and affine == "c":
        _normalize_rows(f, dtypes, "ffww", True, stream)
        return
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        eps = row.schedule.param(0, F64).to(part(working))
        mean = _mean(row, 1, working)
        rstd = _inverse_root(f, _variance(row, 1, working, mean), eps)
        _write(row, dtypes, 0, 1, 2, 3, mean, rstd)

    operands = _operands(dtypes, columns, "ffww", affine, working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels)


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

        row.each([4, 3, *given], [0], fn, fetch=[0, 4])

    operands = _operands(dtypes, columns, "frrffw", affine, working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels)


@kernel
def group_norm_backward(f: Function, dtypes: Dtypes) -> None:
    """Gradients of group norm over ``[channels of a group, positions]``, statistics computed again.

    Operands: dx, dw and db of each sample, x, g, weight. Parameter: eps. The sums of each channel are all that the group's
    need, so that gradients of weight and bias cost no pass of their own.
    """
    working = compute(dtypes[3])
    t = part(working)
    operands = _operands(dtypes, False, "frrffr", "s", working)
    whole, channel = (Schedule(f, operands, t, False, levels) for levels in (2, 1))
    eps, given = whole.param(0, F64).to(t), _given(dtypes, 5)

    def body(row: Row) -> None:
        mean = _mean(row, 3, working)
        rstd = _inverse_root(f, _variance(row, 3, working, mean), eps)

        def each_channel(index: Value) -> tuple[Row, Value]:
            bases = [f.offset(p, index * s[1]) for p, s in zip(row.bases, whole.strides, strict=True)]
            own = Row(channel, row.a, bases, channel.lanes, None)
            return own, own.get(5) if given else f.const(t, 1.0)

        def step(acc, g, x):
            return f.fma(g, (x - mean) * rstd, acc[0]), acc[1] + g

        with f.loop(0, whole.n1, carry=[f.const(t, 0.0)] * 2) as C:
            own, weight = each_channel(C.index)
            sums = own.fold([4, 3], [(working, 0.0)] * 2, step, add, unroll=4)
            for i, x in zip((1, 2), sums, strict=True):
                own.put(i, x)
            C.carry = tuple(f.fma(weight, x, total) for x, total in zip(sums, C.carry, strict=True))
        n = row.size.to(t)
        slope, level = (total / n for total in C.carry)
        with f.loop(0, whole.n1) as C:
            own, weight = each_channel(C.index)
            own.each([4, 3], [0], lambda g, x: (g * weight - level - (x - mean) * rstd * slope) * rstd)

    whole.rows(body)


@kernel
def affine_backward(f: Function, dtypes: Dtypes, columns: bool, levels: int, stats: str) -> None:
    """Gradients of weight and bias: sums of ``g * (x - mean) * rstd`` and of ``g`` over rows of what shares a weight.

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


def _inverse_norm(row: Row, x: int, dtype: str, stream: bool = False) -> Value:
    """``1 / sqrt(mean(x ** 2) + eps)``."""
    f, t = row.f, part(dtype)
    fetch = [] if stream else [x]
    (square,) = row.fold([x], [(dtype, 0.0)], lambda acc, v: (f.fma(v, v, acc[0]),), add, fetch=fetch)
    return _inverse_root(f, square / row.size.to(t), row.schedule.param(0, F64).to(t))


@kernel
def rms_norm(
    f: Function, dtypes: Dtypes, columns: bool, stream: bool = False, levels: int = 1, affine: str = "c"
) -> None:
    """``x / sqrt(mean(x ** 2) + eps) * weight``. Operands: y, x, weight. Parameter: eps."""
    if not columns and levels == 1 and affine == "c":
        _normalize_rows(f, dtypes, "ffw", False, stream)
        return
    working = compute(dtypes[1])

    def body(row: Row) -> None:
        rstd = _inverse_norm(row, 1, working)
        row.each([1, *_given(dtypes, 2)], [0], lambda v, *w: v * rstd * w[0] if w else v * rstd, fetch=[0])

    operands = _operands(dtypes, columns, "ffw", affine, working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels)


@kernel
def norm_backward(f: Function, dtypes: Dtypes, centred: bool, stream: bool = False) -> None:
    """Gradients of :func:`layer_norm` (``centred``) or :func:`rms_norm`, statistics computed again on the way.

    Operands: dx, dw and db per block of rows (may be left out), x, g, weight. Parameters: eps, number of rows, rows in a
    block. ``[begin, end)`` are blocks: in each, the gradients of weight and bias add up while its rows are at hand.
    """
    working = compute(dtypes[3])
    t = part(working)
    operands = _operands(dtypes, False, "fwwffw", "c", working, stream)
    schedule = Schedule(f, operands, t, False, 1)
    eps = schedule.param(0, F64).to(t)
    rows, most = schedule.param(1, I64), schedule.param(2, I64)
    affine, weight = _given(dtypes, 1, 2), _given(dtypes, 5)

    zero = f.const(t, 0.0)

    def gradients(group: Group) -> None:
        n = schedule.n0.to(t)
        mean, rstd = _group_statistics(group, 3, working, eps, centred)

        def normal(r: Value) -> Callable:
            m, scale = None if mean is None else mean(r), rstd(r)
            return lambda x: (x if m is None else x - m) * scale

        def step(r: Value) -> Callable:
            unit = normal(r)

            def add(acc, g, x, *w):
                g = g * w[0] if w else g
                return (f.fma(g, unit(x), acc[0]), acc[1] + g) if centred else (f.fma(g, unit(x), acc[0]),)

            return add

        sums = group.fold([4, 3, *weight], [(working, 0.0)] * (2 if centred else 1), step, unroll=4)
        slope, *level = (group.keep(x / n) for x in sums)

        def strip(at: Value, lanes: int, mask: Value | None) -> None:
            """Some columns of all rows: the gradients of weight and bias add up in registers."""
            count = None if mask is None else schedule.n0 - at
            first = group.row(f.i64(0))
            w = first.load(5, at, lanes, count, mask) if weight else None
            before = [first.load(i, at, lanes, count, mask) for i in affine]
            with f.loop(0, group.count, carry=before) as R:
                r = R.index
                row, unit = group.row(r), normal(r)
                g, x = (row.load(i, at, lanes, count, mask) for i in (4, 3))
                if mask is None:
                    row.prefetch((3, 4), at, lanes)
                u = unit(x)
                dx = (g if w is None else g * w) - u * slope(r)
                row.store(0, at, (dx - level[0](r) if centred else dx) * rstd(r), count, mask)
                R.carry = [f.fma(g, u, v) if i == 1 else v + g for i, v in zip(affine, R.carry, strict=True)]
            for i, v in zip(affine, R.carry, strict=True):
                first.store(i, at, v, count, mask)

        wide = 4 * schedule.lanes
        whole = schedule.n0 & -wide
        with f.loop(0, whole, wide) as L:
            strip(L.index, wide, None)
        with f.loop(whole, schedule.n0, schedule.lanes) as L:
            strip(L.index, schedule.lanes, f.first(schedule.n0 - L.index, schedule.lanes))

    with f.loop(f.begin, f.end) as B:
        first = B.index * most
        last = f.select(first + most < rows, first + most, rows)
        shared = schedule.bases(B.index, f.i64(0))
        if affine:
            Row(schedule, B.index, shared, schedule.lanes, None).each([], affine, lambda: (zero,) * len(affine))
        schedule.groups(gradients, first, last, schedule.n0 * (2 * t.bytes), {i: shared[i] for i in affine})
    if stream:
        f.fence()


@kernel
def batch_norm(f: Function, dtypes: Dtypes, columns: bool, levels: int) -> None:
    """Normalise each channel by its own statistics and move the running ones.

    Operands: y, mean, rstd, running mean, running variance (both may be left out), x, weight, bias. Parameters: eps,
    momentum. The running variance gets the unbiased estimate.
    """
    working = compute(dtypes[5])
    t = part(working)

    def body(row: Row) -> None:
        eps, momentum = (row.schedule.param(i, F64).to(t) for i in (0, 1))
        mean = _mean(row, 5, working)
        variance = _variance(row, 5, working, mean)
        rstd = _inverse_root(f, variance, eps)
        row.put(1, mean)
        row.put(2, rstd)
        if dtypes[3] is not None:
            n = row.size
            unbiased = variance * (n.to(t) / f.select(n > 1, n - 1, n).to(t))
            for i, new in ((3, mean), (4, unbiased)):
                row.put(i, row.get(i) * (1.0 - momentum) + new * momentum)
        _write(row, dtypes, 0, 5, 6, 7, mean, rstd)

    operands = _operands(dtypes, columns, "frrrrfrr", "s", working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels, tiles=(4,))


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
def batch_norm_backward(f: Function, dtypes: Dtypes, columns: bool, levels: int, training: bool) -> None:
    """Gradients of input, weight and bias. Operands: dx, dw, db, g, x, mean, rstd, weight.

    With ``training`` the statistics are those of the batch and carry gradient themselves.
    """
    working = compute(dtypes[4])

    def body(row: Row) -> None:
        mean, rstd = row.get(5), row.get(6)

        def step(acc, g, x):
            return f.fma(g, (x - mean) * rstd, acc[0]), acc[1] + g

        dot, total = row.fold([3, 4], [(working, 0.0)] * 2, step, add, unroll=4)
        row.put(1, dot)
        row.put(2, total)
        scale = rstd if dtypes[7] is None else rstd * row.get(7)
        if not training:
            row.each([3], [0], lambda g: g * scale)
            return
        n = row.size.to(part(working))
        slope, level = dot / n, total / n
        row.each([3, 4], [0], lambda g, x: (g - level - (x - mean) * rstd * slope) * scale)

    operands = _operands(dtypes, columns, "frrffrrr", "s", working)
    rowwise(f, body, operands, part(working), columns=columns, levels=levels, tiles=(4,))
