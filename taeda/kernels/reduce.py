"""Reductions: each is declared once by its folds, its merge and its finish, and run by the row-wise schedule.

A long reduction is cut, by shape alone, into chunks. The *part* kernel leaves one state per chunk; the *merge* kernel
joins the states in a fixed tree and finishes. So the result does not depend on the number of threads. A short one is a
single kernel. Sums of float32 are carried between chunks in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from . import scalar as s
from .build import kernel
from .ir import BOOL, F64, I32, I64, TYPES, Function, Type, Value
from .pointwise import COMPLEX, WORKING, is_complex, part
from .rows import FRONT, Operand, Row, State, by_register
from .rowwise import LONG_TILES, rowwise
from .scalar import Complex
from .target import here

Number = Value | Complex


@dataclass(frozen=True)
class Reduction:
    """The declaration of a reduction.

    Attributes:
        states: the states of one row, from the row, the number of its input operand, and its working dtype.
        stored: the dtypes of the states in memory, from the working dtype.
        merge: joins the states of two chunks.
        finish: the results, from the state, the number of elements as a float of the state's type, and the parameters.
        working: the dtype to compute in, from the input's and the output's.
        tiles: widths of column mode.
        nparams: number of float parameters.
    """

    states: Callable[[Row, int, str], State]
    stored: Callable[[str], tuple[str, ...]]
    merge: Callable[[Function, State, State], State]
    finish: Callable[..., tuple[Number, ...]] = field(default=lambda f, state, n: state)
    working: Callable[[str, str], str] = field(default=lambda dtype, out: dtype)
    tiles: tuple[int, ...] = LONG_TILES
    nparams: int = 0


REDUCTIONS: dict[str, Reduction] = {}

#: Positional parameters of the part and whole kernels, before the reduction's own.
BASE, STEP, COUNT, PARAMS = range(4)


# ---- dtypes ---------------------------------------------------------------------------------------------------------
def wide(dtype: str) -> str:
    """The dtype of sums of ``dtype`` between chunks."""
    return {"float32": "float64", "complex64": "complex128"}.get(dtype, dtype)


def real(dtype: str) -> str:
    """The dtype of a complex dtype's parts; a real dtype itself."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def compute(dtype: str) -> str:
    """The dtype that values of ``dtype`` are computed in: float32 for half precision, bytes for bool."""
    return "uint8" if dtype == "bool" else WORKING.get(dtype, dtype)


def accumulator(dtype: str, out: str) -> str:
    """The dtype of the accumulator of a sum of ``dtype`` whose result is ``out``."""
    kind = TYPES[out].kind if out in TYPES else "c"
    return compute(out) if kind in "fc" else "int64"


def convert(x: Number, dtype: str) -> Number:
    """Convert to a dtype by name, including real to complex."""
    if is_complex(dtype):
        x = x if isinstance(x, Complex) else Complex(x)
    return x.to(part(dtype))


def _ordinary(dtype: str, out: str) -> str:
    return compute(dtype)


# ---- the folds ------------------------------------------------------------------------------------------------------
def add(a: State, b: State) -> State:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sums(mapping: Callable[..., tuple[Number, ...]], dtypes: Callable[[str], tuple[str, ...]]):
    """The states of a reduction that adds up ``mapping(x)``."""

    def states(row: Row, x: int, dtype: str) -> State:
        names = dtypes(dtype)
        acc = row.fold([x], [(d, 0.0) for d in names], lambda acc, v: add(acc, mapping(v)), add)
        return tuple(convert(v, wide(d)) for v, d in zip(acc, names, strict=True))

    return states


def greater(f: Function, a: Value, b: Value) -> Value:
    """The larger; NaN where either is."""
    return f.select((b > a) | (b != b) if b.type.kind == "f" else b > a, b, a)


def less(f: Function, a: Value, b: Value) -> Value:
    """The smaller; NaN where either is."""
    return f.select((b < a) | (b != b) if b.type.kind == "f" else b < a, b, a)


def lowest(t: Type) -> float:
    """The identity of max."""
    return -math.inf if t.kind == "f" else -(1 << (t.bits - 1)) if t.kind == "i" else 0


def highest(t: Type) -> float:
    """The identity of min."""
    return math.inf if t.kind == "f" else (1 << (t.bits - 1)) - 1 if t.kind == "i" else (1 << t.bits) - 1


def magnitude(x: Number) -> Value:
    """|x|."""
    if isinstance(x, Complex):
        return s.abs(x)
    if x.type.kind == "f":
        return x.fn.unary("fabs", x)
    return x if x.type.kind == "u" else x.fn.select(x < 0, -x, x)


def square(x: Number) -> Value:
    """|x| ** 2."""
    return x.re * x.re + x.im * x.im if isinstance(x, Complex) else x * x


def _sum(mapping=lambda x: (x,), dtypes=lambda d: (d,), **more) -> Reduction:
    more.setdefault("working", accumulator)
    return Reduction(sums(mapping, dtypes), lambda d: tuple(map(wide, dtypes(d))), lambda f, a, b: add(a, b), **more)


def _no_nan(x: Number) -> tuple[Number]:
    f = x.fn
    if isinstance(x, Complex):
        bad = (x.re != x.re) | (x.im != x.im)
        return (Complex(f.select(bad, 0.0, x.re), f.select(bad, 0.0, x.im)),)
    return (f.select(x != x, 0.0, x),) if x.type.kind == "f" else (x,)


def _root(f: Function, state: State, n: Value) -> State:
    return (f.unary("sqrt", state[0]),)


REDUCTIONS["sum"] = _sum()
REDUCTIONS["mean"] = _sum(finish=lambda f, state, n: (state[0] / n,))
REDUCTIONS["nansum"] = _sum(_no_nan)
REDUCTIONS["norm1"] = _sum(lambda x: (magnitude(x),), lambda d: (real(d),), working=_ordinary)
REDUCTIONS["norm2"] = _sum(lambda x: (square(x),), lambda d: (real(d),), working=_ordinary, finish=_root)
REDUCTIONS["sumsq"] = _sum(lambda x: (square(x),), lambda d: (real(d),), working=_ordinary)
REDUCTIONS["count_nonzero"] = _sum(lambda x: ((x != 0).to(I64),), lambda d: ("int64",), working=_ordinary, tiles=(8,))
REDUCTIONS["norm0"] = _sum(lambda x: ((x != 0).to(I64),), lambda d: ("int64",), working=_ordinary, tiles=(8,))


def _power_sum(row: Row, x: int, dtype: str) -> State:
    p = row.schedule.param(PARAMS, part(real(dtype)))
    acc = row.fold(
        [x], [(real(dtype), 0.0)], lambda acc, v: (acc[0] + s.pow(magnitude(v), p.fn.splat(p, v.lanes)),), add, unroll=2
    )
    return (convert(acc[0], wide(real(dtype))),)


def _power_root(f: Function, state: State, n: Value, p: Value) -> State:
    (x,) = state
    return (s.pow(x, f.splat(1.0 / p, x.lanes)),)


REDUCTIONS["normp"] = Reduction(
    _power_sum, lambda d: (wide(real(d)),), lambda f, a, b: add(a, b), _power_root, _ordinary, (1,), nparams=1
)


def _prod_states(row: Row, x: int, dtype: str) -> State:
    def multiply(a: State, b: State) -> State:
        return (a[0] * b[0],)

    return row.fold([x], [(dtype, 1)], lambda acc, v: multiply(acc, (v,)), multiply, blocked=False)


REDUCTIONS["prod"] = Reduction(
    _prod_states, lambda d: (d,), lambda f, a, b: (a[0] * b[0],), working=accumulator, tiles=(8,)
)


# ---- order ----------------------------------------------------------------------------------------------------------
def _extremes(f: Function, a: Sequence[Number], b: Sequence[Number], choices: tuple) -> State:
    """The extremes of pairs of numbers without NaN."""
    return tuple(
        f.select(q > p if choose is greater else q < p, q, p) for p, q, (choose, _) in zip(a, b, choices, strict=True)
    )


def _extreme(*choices: tuple[Callable, Callable], mapping=lambda x: x, dtype_of=lambda d: d) -> Reduction:
    """One state per ``(choose, identity)``: amax, amin, aminmax."""

    def states(row: Row, x: int, dtype: str) -> State:
        f, t = row.f, part(dtype_of(dtype))

        def combine(a, b):
            return tuple(choose(f, p, q) for p, q, (choose, _) in zip(a, b, choices, strict=True))

        def step(acc, v):
            return combine(acc, [mapping(v)] * len(choices))

        init = [(dtype_of(dtype), identity(t)) for _, identity in choices]

        def exactly() -> State:
            return row.fold([x], init, step, combine, blocked=False)

        if t.kind != "f" or is_complex(dtype) or row.schedule.columns:
            return exactly()
        # One instruction per number is enough without NaN; a sum, one more instruction, tells whether there is one. The
        # sum is also NaN for infinities of both signs: then the row is read again.
        best = row.fold(
            [x],
            [*init, (dtype_of(dtype), 0.0)],
            lambda acc, v: (*_extremes(f, acc[:-1], [mapping(v)] * len(choices), choices), acc[-1] + mapping(v)),
            lambda a, b: (*_extremes(f, a[:-1], b[:-1], choices), a[-1] + b[-1]),
            blocked=False,
        )
        again = f.select(best[-1] != best[-1], f.i64(1), f.i64(0))
        with f.loop(0, again, carry=list(best[:-1])) as L:
            L.carry = exactly()
        return tuple(L.carry)

    def merge(f: Function, a: State, b: State) -> State:
        return tuple(choose(f, p, q) for p, q, (choose, _) in zip(a, b, choices, strict=True))

    return Reduction(states, lambda d: (dtype_of(d),) * len(choices), merge, working=_ordinary)


REDUCTIONS["amax"] = _extreme((greater, lowest))
REDUCTIONS["amin"] = _extreme((less, highest))
REDUCTIONS["aminmax"] = _extreme((less, highest), (greater, lowest))
REDUCTIONS["norminf"] = _extreme((greater, lambda t: 0), mapping=magnitude, dtype_of=real)
REDUCTIONS["normninf"] = _extreme((less, highest), mapping=magnitude, dtype_of=real)


def _position(dtype: str) -> Type:
    """The integer type of a chunk's positions: as wide as the values where that is possible."""
    return I64 if part(dtype).bits == 64 else I32


def _indexed(largest: bool) -> Reduction:
    """Value and position of the first largest (or smallest) element; NaN wins."""

    def better(f: Function, a: State, b: State) -> Value:
        (x, i), (y, j) = a, b
        wins = y > x if largest else y < x
        same = y == x
        if x.type.kind == "f":
            x_nan, y_nan = x != x, y != y
            wins, same = wins | (y_nan & ~x_nan), same | (x_nan & y_nan)
        return wins | (same & (j < i))

    def choose(f: Function, a: State, b: State) -> State:
        take = better(f, a, b)
        return f.select(take, b[0], a[0]), f.select(take, b[1], a[1])

    def states(row: Row, x: int, dtype: str) -> State:
        f, t, position = row.f, part(dtype), _position(dtype)
        none = highest(position)

        def step(acc: State, v: Value, at: Value) -> State:
            best, index = acc  # positions only grow, so an equal element never replaces an earlier one
            take = v > best if largest else v < best
            if t.kind == "f":
                take = take | ((v != v) & (best == best))
            return f.select(take, v, best), f.select(take, f.splat(at, take.lanes), index)

        value, index = row.fold(
            [x], [(dtype, lowest(t) if largest else highest(t)), (position.name, none)], step,
            lambda a, b: choose(f, a, b), blocked=False, index=position,
        )  # fmt: skip
        index = f.select(index == none, 0, index).to(I64)  # no element beat the identity: all are equal to it
        base = row.schedule.param(BASE, I64) + row.a * row.schedule.param(STEP, I64)
        return value, index + base

    return Reduction(states, lambda d: (d, "int64"), choose, working=_ordinary, tiles=(4,))


REDUCTIONS["max"] = _indexed(True)
REDUCTIONS["min"] = _indexed(False)


def _position_only(f: Function, state: State, n: Value) -> State:
    return (state[1],)


REDUCTIONS["argmax"] = replace(REDUCTIONS["max"], finish=_position_only)
REDUCTIONS["argmin"] = replace(REDUCTIONS["min"], finish=_position_only)


def _logical(every: bool) -> Reduction:
    def combine(a: State, b: State) -> State:
        return (a[0] & b[0],) if every else (a[0] | b[0],)

    def states(row: Row, x: int, dtype: str) -> State:
        def step(acc: State, v: Number) -> State:
            return combine(acc, ((v != 0).to(TYPES["uint8"]),))

        return row.fold([x], [("uint8", int(every))], step, combine, blocked=False)

    return Reduction(states, lambda d: ("uint8",), lambda f, a, b: combine(a, b), working=_ordinary, tiles=(8,))


REDUCTIONS["all"] = _logical(True)
REDUCTIONS["any"] = _logical(False)


# ---- in two passes --------------------------------------------------------------------------------------------------
def _moments(row: Row, x: int, dtype: str) -> State:
    """Mean, sum of squared differences from it, and count. The second pass also repairs the mean's rounding error."""
    t = part(dtype)
    n = row.size.to(t)
    (total,) = row.fold([x], [(dtype, 0.0)], lambda acc, v: (acc[0] + v,), add)
    mean = total / n

    def step(acc: State, v: Number) -> State:
        d = v - mean
        return acc[0] + square(d), acc[1] + d

    m2, drift = row.fold([x], [(real(dtype), 0.0), (dtype, 0.0)], step, add, unroll=4)
    w, wr = wide(dtype), part(wide(real(dtype)))
    n, m2, drift = row.size.to(wr), m2.to(wr), convert(drift, w)
    shift = drift / n
    return convert(mean, w) + shift, m2 - square(drift) / n, n


def _merge_moments(f: Function, a: State, b: State) -> State:
    """Chan, Golub and LeVeque (1979)."""
    (mean_a, m2_a, n_a), (mean_b, m2_b, n_b) = a, b
    n = n_a + n_b
    share = n_b / n
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + square(delta) * (n_a * share), n


def _variance(f: Function, state: State, correction: Value) -> Value:
    _, m2, n = state
    freedom = n - f.splat(correction, n.lanes)
    freedom = f.select(freedom > 0.0, freedom, 0.0)
    m2 = f.select(m2 < 0.0, 0.0, m2)  # rounding can leave it slightly below 0
    return m2 / freedom


def _variances(*outputs: Callable[[Function, Value, State], Number]) -> Reduction:
    def finish(f: Function, state: State, n: Value, correction: Value) -> State:
        v = _variance(f, state, correction)
        return tuple(o(f, v, state) for o in outputs)

    def stored(d: str) -> tuple[str, ...]:
        return wide(d), wide(real(d)), wide(real(d))

    return Reduction(_moments, stored, _merge_moments, finish, _ordinary, (4,), nparams=1)


def _just_variance(f, v, state):
    return v


def _deviation(f, v, state):
    return f.unary("sqrt", v)


def _mean(f, v, state):
    return state[0]


REDUCTIONS["var"] = _variances(_just_variance)
REDUCTIONS["std"] = _variances(_deviation)
REDUCTIONS["var_mean"] = _variances(_just_variance, _mean)
REDUCTIONS["std_mean"] = _variances(_deviation, _mean)


def _finite(f: Function, m: Value) -> Value:
    return f.select(f.unary("fabs", m) == math.inf, 0.0, m)


def _exponentials(row: Row, x: int, dtype: str) -> State:
    """The largest element, and the sum of ``exp(x - largest)``."""
    f = row.f
    (top,) = row.fold(
        [x], [(dtype, -math.inf)], lambda acc, v: (greater(f, acc[0], v),), lambda a, b: (greater(f, a[0], b[0]),),
        blocked=False,
    )  # fmt: skip
    base = _finite(f, top)
    (total,) = row.fold([x], [(dtype, 0.0)], lambda acc, v: (acc[0] + by_register(s.exp, v - base),), add, unroll=2)
    return top, total


def _merge_exponentials(f: Function, a: State, b: State) -> State:
    top = greater(f, a[0], b[0])
    base = _finite(f, top)
    return top, a[1] * s.exp(a[0] - base) + b[1] * s.exp(b[0] - base)


def _log_of_sum(f: Function, state: State, n: Value) -> State:
    return (s.log(state[1]) + _finite(f, state[0]),)


def _softmax_terms(f: Function, state: State, n: Value) -> State:
    """The largest element, and the sum of exponentials, NaN where softmax is."""
    top, total = state
    return top, f.select(f.unary("fabs", top) == math.inf, math.nan, total)


REDUCTIONS["logsumexp"] = Reduction(_exponentials, lambda d: (d, d), _merge_exponentials, _log_of_sum, _ordinary, (2,))
REDUCTIONS["softmax_terms"] = replace(REDUCTIONS["logsumexp"], finish=_softmax_terms)


# ---- kernels --------------------------------------------------------------------------------------------------------
def _counted(stored: tuple[str, ...]) -> Type:
    """The float type in which the number of elements is passed to ``finish``."""
    t = part(stored[0])
    return t if t.kind == "f" else F64


def _finished(f: Function, reduction: Reduction, state: State, stored: tuple[str, ...], count: Value, params) -> State:
    t = _counted(stored)
    values = [p.to(t) for p in params]
    return reduction.finish(f, state, count.to(t), *values)


@kernel
def reduce(f: Function, op: str, dtype: str, outs: tuple[str, ...], mode: str, levels: int, whole: bool) -> None:
    """One reduction over rows. ``mode`` is ``rc``, ``rv`` (row mode, contiguous or strided), ``cc`` or ``cv``.

    ``ptr``: the outputs (``whole``) or the states, then the input. Parameters: the position of the first element, its
    increment per ``a``, the number of elements, then the reduction's own.
    """
    reduction = REDUCTIONS[op]
    working = reduction.working(dtype, outs[0])
    stored = reduction.stored(working)
    targets = outs if whole else stored
    operands = [*map(Operand, targets), Operand(dtype, mode[1], working)]

    def body(row: Row) -> None:
        state = reduction.states(row, len(targets), working)
        if whole:
            params = [row.schedule.param(PARAMS + i, F64) for i in range(reduction.nparams)]
            count = row.schedule.param(COUNT, I64)
            state = _finished(f, reduction, state, stored, count, params)
        for i, x in enumerate(state):
            row.put(i, x)

    tiles = (1,) if mode[1] == "v" else (min(8, reduction.tiles[0]),) if is_complex(working) else reduction.tiles
    tiles = tuple(size for size in tiles if size < FRONT or levels == 1)
    rowwise(f, body, operands, lane_type(op, working), columns=mode[0] == "c", levels=levels, tiles=tiles)


@kernel
def merge(f: Function, op: str, dtype: str, outs: tuple[str, ...], together: int = 0) -> None:
    """Join the states of chunks and finish.

    ``ptr``: outputs, then states, each ``[chunks, m]`` and overwritten. ``arg = [chunks, m, elements, parameters]``.
    ``[begin, end)`` are rows of ``m``. ``together``: so many rows that threads of a device join (``cuda/_reduce.py``).
    """
    join_chunks(f, op, dtype, outs, f.i64(0), 1, lambda: None, together)


def join_chunks(
    f: Function, op: str, dtype: str, outs: tuple[str, ...], thread: Value, threads: int, barrier: Callable[[], None],
    together: int = 1,
) -> None:  # fmt: skip
    """The body of :func:`merge` for one of several threads, which all wait at a barrier.

    ``together``: units are so many neighbouring rows, and neighbouring threads have one after the other.
    """
    reduction = REDUCTIONS[op]
    stored = reduction.stored(reduction.working(dtype, outs[0]))
    operands = [Operand(d) for d in (*outs, *stored)]
    chunks, m, n = f.size(0), f.size(1), f.size(2)
    params = [f.scalar(3 + i, F64) for i in range(reduction.nparams)]
    sizes = [o.bytes for o in operands]
    first = len(outs)
    begin, end, shared = f.begin, f.end, together > 1 and threads > 1
    if together > 1 and not shared:  # a device whose threads share nothing
        begin, end = begin * together, f.select(end * together < m, end * together, m)
    with f.loop(begin, end) as C:
        row = C.index
        if shared:
            row = row * together + thread % together
            thread = f.select(row < m, thread / together, f.i64(1 << 40))  # past all chunks
            threads //= together
        at = [f.offset(f.data(i), row * size) for i, size in enumerate(sizes)]

        def load(chunk: Value) -> State:
            values = []
            for pointer, size, o in zip(at[first:], sizes[first:], operands[first:], strict=True):
                p, t = f.offset(pointer, chunk * m * size), part(o.dtype)
                x = f.load(p, t)
                values.append(Complex(x, f.load(f.offset(p, t.bytes), t)) if o.dtype in COMPLEX else x)
            return tuple(values)

        def store(pointers: list[Value], state: State, names: tuple[str, ...]) -> None:
            for p, x, name in zip(pointers, state, names, strict=True):
                x, t = convert(x, name) if name in COMPLEX else x, part(name)
                for k, v in enumerate((x.re, x.im) if isinstance(x, Complex) else (x,)):
                    f.store(f.offset(p, k * t.bytes), v.to(BOOL).to(TYPES["uint8"]) if t is BOOL else v.to(t))

        with f.while_((f.i64(1),)) as S:
            (step,) = S.carry
            S.test(step < chunks)
            with f.loop(step * 2 * thread, chunks - step, step * (2 * threads)) as L:
                state = reduction.merge(f, load(L.index), load(L.index + step))
                into = [f.offset(p, L.index * m * b) for p, b in zip(at[first:], sizes[first:], strict=True)]
                store(into, state, stored)
            barrier()
            S.carry = (step * 2,)
        with f.when(thread == 0):
            store(at[:first], _finished(f, reduction, load(f.i64(0)), stored, n, params), outs)


def lane_type(op: str, working: str) -> Type:
    """The type that decides the number of lanes: the values' type, or the positions' if it is wider."""
    types = [part(working)]
    if op in ("max", "min", "argmax", "argmin"):
        types.append(_position(working))
    return max(types, key=lambda t: t.bits)


def lanes(op: str, dtype: str, outs: tuple[str, ...]) -> int:
    """Rows that column mode counts as one unit of ``[begin, end)``."""
    vector_bytes = here().vector_bytes
    return (
        max(vector_bytes // lane_type(op, REDUCTIONS[op].working(dtype, outs[0])).bytes, 1) if vector_bytes >= 16 else 1
    )


def state_bytes(op: str, dtype: str, outs: tuple[str, ...]) -> tuple[int, ...]:
    """The size in memory of each state."""
    reduction = REDUCTIONS[op]
    return tuple(Operand(d).bytes for d in reduction.stored(reduction.working(dtype, outs[0])))
