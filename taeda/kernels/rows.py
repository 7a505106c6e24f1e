"""One row of the row-wise schedule (``rowwise.py``): its folds, loads and stores.

Floating-point folds are *blocked*: each lane adds at most :data:`BLOCK` elements before its partial result goes to the
next level (of two in row mode; of three in column mode and with one vector at a time). That keeps the rounding error of
a long sum near that of pairwise summation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .fused import Step, apply_steps
from .ir import BF16, BOOL, F16, I64, U16, Function, Type, Value
from .pointwise import WORKING, is_complex, part, to_type
from .scalar import Complex

if TYPE_CHECKING:
    from .rowwise import Schedule

#: Elements that one lane adds before its sum moves up a level.
BLOCK = 16
#: A tile of this many vectors (or the rest of one, at least FRONT_LEAST) keeps its sums in memory, and each row is read
#: to the tile's end before the next. It is used for rows that span more than FRONT_BYTES: 2048 x 4096 takes 1.3 ms this
#: way and 2.9 by tiles of 128, 25088 x 256 0.6 and 1.9. For data in the cache, sums in registers are faster by a fifth.
FRONT, FRONT_LEAST, FRONT_BYTES = 1024, 16, 1 << 21
#: Rows that are added to sums in memory at once, if their stride is more than WIDE_ROW bytes: 1024 x 8192 float64 takes
#: 2.5 ms so and 4.1 row by row. Several shorter rows of one page are several streams for the hardware prefetcher: 65536
#: x 128 float64 takes 12 ms so and 2.2 row by row.
ROWS, WIDE_ROW = 4, 8192

Number = Value | Complex
State = tuple[Number, ...]


@dataclass(frozen=True)
class Prologue:
    """Pointwise ops that compute the elements of an operand where a kernel would load them.

    Attributes:
        operand: its number. Nothing is read at its address.
        steps: the ops; the last one gives the elements.
        leaves: what they read: operands that follow the kernel's own.
        skip: words of the kernel's parameters. The numbers of the steps, two words each, come after them.
    """

    operand: int
    steps: Sequence[Step]
    leaves: Sequence[Operand]
    skip: int


@dataclass(frozen=True)
class Epilogue:
    """Pointwise ops that are applied to the elements of operand 0 where a kernel would store them.

    Attributes:
        steps: the ops.
        leaves: what they read: operands that follow those of a prologue; None for the kernel's own result.
        outs: what is stored, as numbers of steps, -1 for the kernel's own result. The first goes to operand 0, the
            others to operands that follow the leaves. All have the dtype of operand 0.
        skip: words of the kernel's parameters. The numbers of the steps, two words each, come after them.
    """

    steps: Sequence[Step]
    leaves: Sequence[Operand | None]
    outs: Sequence[int]
    skip: int


@dataclass(frozen=True)
class Operand:
    """A kernel's declaration of one memory operand.

    ``layout`` is for the dimension that vectors run along: ``c`` contiguous, ``v`` any stride, ``s`` stride 0 (one
    value for all lanes). ``compute`` is the dtype that loads are converted to. None converts only dtypes that are only
    stored, such as float16. ``stream``: whole registers are stored past the cache; rows then begin at cache lines, and
    the kernel ends with a fence.

    ``made`` computes elements instead of loading them. Its arguments are a function that loads other operands at the
    same place of the row, and the number of lanes.
    """

    dtype: str
    layout: str = "c"
    compute: str | None = None
    stream: bool = False
    made: Callable[[Callable[[int], Number], int], Number] | None = None

    @property
    def working(self) -> str:
        return self.compute or WORKING.get(self.dtype, self.dtype)

    @property
    def bytes(self) -> int:
        return part(self.dtype).bytes * (2 if is_complex(self.dtype) else 1)


def _flat(state: Sequence[Number]) -> list[Value]:
    return [v for x in state for v in ((x.re, x.im) if isinstance(x, Complex) else (x,))]


def _like(state: Sequence[Number], values: Sequence[Value]) -> State:
    """``values`` in the shape of ``state``: pairs become Complex again."""
    it = iter(values)
    return tuple(Complex(next(it), next(it)) if isinstance(x, Complex) else next(it) for x in state)


def _map(state: Sequence[Number], fn: Callable[[Value], Value]) -> State:
    return _like(state, [fn(v) for v in _flat(state)])


def _select(f: Function, mask: Value, a: Sequence[Number], b: Sequence[Number]) -> State:
    return _like(a, [f.select(mask, x, y) for x, y in zip(_flat(a), _flat(b), strict=True)])


def by_register(fn: Callable[..., Value], *xs: Value) -> Value:
    """``fn(*xs)`` one register at a time: only so do some functions find their machine instruction."""
    f, lanes = xs[0].fn, xs[0].fn.lanes(xs[0].type)
    n = max(x.lanes for x in xs)
    if n <= lanes:
        return fn(*xs)
    xs = tuple(f.splat(x, n) for x in xs)
    parts = [fn(*(x.slice(i, lanes) for x in xs)) for i in range(0, n, lanes)]
    if lanes == 1:
        joined = f.const(parts[0].type, 0, n)
        for i, x in enumerate(parts):
            joined = joined.with_lane(i, x)
        return joined
    while len(parts) > 1:
        parts = [a.shuffle(range(2 * a.lanes), b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


class Row:
    """One row (or, in column mode, ``lanes`` neighbouring rows) as a kernel body sees it."""

    def __init__(self, schedule: Schedule, a: Value, bases: list[Value], lanes: int, count: Value | None):
        self.schedule = schedule
        self.f = schedule.f
        self.a = a  # the first of the row's two numbers
        self.n0 = schedule.n0
        self.bases = bases
        self.width = lanes
        self.ahead: Value | int = 1  # rows from this one to the prefetched one
        self.prefetch_offsets: Sequence[Value] = ()  # the same in column mode: bytes, per operand
        self.count = count  # column mode: how many of the lanes are rows, or None for all
        self.mask = None if count is None else self.f.first(count, lanes)

    @property
    def size(self) -> Value:
        """Elements in the row, as int64."""
        s = self.schedule
        return s.n0 * s.n1 if s.levels == 2 else s.n0

    # ---- memory -----------------------------------------------------------------------------------------------------
    def _address(self, i: int, outer: Value | None, inner: Value) -> Value:
        s = self.schedule
        operand, pointer = s.operands[i], self.bases[i]
        if outer is not None:
            pointer = self.f.offset(pointer, outer * s.strides[i][1])
        if not s.columns and operand.layout == "s":
            return pointer
        step = self.f.i64(operand.bytes) if not s.columns and operand.layout == "c" else s.strides[i][0]
        return self.f.offset(pointer, inner * step)

    def _load(self, i: int, at: Callable[[int], Value], lanes: int, count: Value | None, mask: Value | None) -> Number:
        """``lanes`` values of operand ``i`` along the vector dimension, converted for computing; ``at`` gives
        addresses."""
        s, f = self.schedule, self.f
        operand = s.operands[i]
        if operand.made is None:
            return self._read(i, operand, at(i), lanes, count, mask)
        size, target, parts = min(lanes, s.lanes), part(operand.working), []
        for first in range(0, lanes, size):

            def load(k: int, first: int = first) -> Number:
                other = s.operands[k]
                place = f.offset(at(k), first * other.bytes) if first and other.layout == "c" else at(k)
                return self._read(k, other, place, size, count, mask)

            parts.append(to_type(operand.made(load, size), target))
        while len(parts) > 1:
            parts = [a.shuffle(range(2 * a.lanes), b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def _read(
        self, i: int, operand: Operand, pointer: Value, lanes: int, count: Value | None, mask: Value | None
    ) -> Number:
        f = self.f
        t = part(operand.dtype)
        raw = U16 if t in (F16, BF16) else t  # not every target masks half-precision moves
        target = part(operand.working)
        if operand.layout == "s" or lanes == 1:
            parts = [f.load(f.offset(pointer, k * t.bytes), t) for k in range(2 if is_complex(operand.dtype) else 1)]
        elif operand.layout == "v":
            stride = self.schedule.strides[i][3 if self.schedule.columns else 0]
            starts = [f.offset(pointer, k * t.bytes) for k in range(2 if is_complex(operand.dtype) else 1)]
            parts = [f.gather(p, stride, raw, lanes, count).bits(t) for p in starts]
        elif is_complex(operand.dtype):
            both = f.load(pointer, raw, 2 * lanes, None if count is None else f.first(count * 2, 2 * lanes)).bits(t)
            parts = [both.shuffle(range(k, 2 * lanes, 2)) for k in (0, 1)]
        else:
            parts = [f.load(pointer, raw, lanes, mask).bits(t) if raw is not t else f.load(pointer, t, lanes, mask)]
        parts = [to_type(p, target) for p in parts]
        if is_complex(operand.working):
            return Complex(*parts)
        return parts[0]

    def _store(self, i: int, pointer: Value, x: Number, count: Value | None, mask: Value | None) -> None:
        f, operand = self.f, self.schedule.operands[i]
        t = part(operand.dtype)
        parts = [to_type(v, t) for v in _flat([x])]
        if t is BOOL:
            parts = [v.to(part("uint8")) for v in parts]
        lanes = parts[0].lanes
        if lanes == 1:
            for k, v in enumerate(parts):
                f.store(f.offset(pointer, k * t.bytes), v)
        elif operand.layout != "c":
            stride = self.schedule.strides[i][3 if self.schedule.columns else 0]
            for k, v in enumerate(parts):
                f.scatter(f.offset(pointer, k * t.bytes), stride, v, count)
        elif len(parts) == 1:
            v = parts[0].bits(U16) if t in (F16, BF16) else parts[0]
            f.store(pointer, v, mask, nontemporal=operand.stream)
        else:
            both = parts[0].shuffle([k // 2 + (k & 1) * lanes for k in range(2 * lanes)], parts[1])
            f.store(pointer, both, None if count is None else f.first(count * 2, 2 * lanes))

    def _write(self, i: int, at: Callable[[int], Value], x: Number, count: Value | None, mask: Value | None) -> None:
        """Store a result of the kernel; ``at`` gives addresses of operands at the same place of the row."""
        s, f = self.schedule, self.f
        epilogue = s.epilogue
        if i or epilogue is None:
            self._store(i, at(i), x, count, mask)
            return
        (value,) = _flat([x])
        value = to_type(value, part(s.operands[0].dtype))
        size = min(value.lanes, s.lanes)
        for first in range(0, value.lanes, size):

            def place(k: int, first: int = first) -> Value:
                operand = s.operands[k]
                return f.offset(at(k), first * operand.bytes) if first and operand.layout == "c" else at(k)

            own = value.slice(first, size) if value.lanes > size else value
            loaded = [
                own if k is None else self._read(k, s.operands[k], place(k), size, count, mask) for k in s.follows
            ]
            results = [*apply_steps(f, epilogue.steps, loaded, s.numbers, size), own]
            for k, step in zip(s.results, epilogue.outs, strict=True):
                self._store(k, place(k), f.splat(results[step], size), count, mask)

    def load(self, i: int, index: Value, lanes: int, count: Value | None = None, mask: Value | None = None) -> Number:
        """``lanes`` elements of operand ``i`` from position ``index`` of the row (row mode)."""
        return self._load(i, lambda k: self._address(k, None, index), lanes, count, mask)

    def head(self, i: int) -> Value:
        """The first vector of operand ``i``, with zeros where the row is shorter (row mode)."""
        n0, lanes = self.schedule.n0, self.schedule.lanes
        return self.load(i, self.f.i64(0), lanes, n0, self.f.first(n0, lanes))

    def store(self, i: int, index: Value, x: Number, count: Value | None = None, mask: Value | None = None) -> None:
        """The inverse of :meth:`load`, of results."""
        self._write(i, lambda k: self._address(k, None, index), x, count, mask)

    def from_register(self, out: int) -> tuple[Value, Row]:
        """Elements before the first whole register of operand ``out``, and the row without them (row mode).

        Registers are aligned to cache lines, so that lines are stored whole.
        """
        f, s = self.f, self.schedule
        item = s.operands[out].bytes
        before = (-f.address(self.bases[out]) & (s.lanes * item - 1)) / item
        before = f.select(before < self.n0, before, self.n0)
        whole = [operand.layout == "c" for operand in s.operands]
        bases = [
            f.offset(base, before * operand.bytes) if runs else base
            for base, operand, runs in zip(self.bases, s.operands, whole, strict=True)
        ]
        rest = Row(s, self.a, bases, self.width, None)
        rest.n0 = self.n0 - before
        return before, rest

    def prefetch(self, operands: Sequence[int], index: Value, lanes: int) -> None:
        """Prefetch the same place ``ahead`` rows on; in column mode, the next rows."""
        s, f = self.schedule, self.f
        for i in s.prefetched_of(operands) if self.prefetch_offsets or not s.columns else ():
            if not s.columns:
                at, cache = f.offset(self._address(i, None, index), s.following(i) * self.ahead), 3
            else:
                at, cache = f.offset(self._address(i, None, index), self.prefetch_offsets[i]), 2
            for line in range(0, lanes * s.operands[i].bytes, 64):
                f.prefetch(f.offset(at, line), cache)

    def get(self, i: int) -> Number:
        """The row's one value of operand ``i`` (an operand that does not run along the row)."""
        if self.schedule.columns:
            return self._load(i, self.bases.__getitem__, self.width, self.count, self.mask)
        return self._load(i, self.bases.__getitem__, 1, None, None)

    def put(self, i: int, x: Number) -> None:
        """Store ``x``, one value per row, to operand ``i``."""
        if self.schedule.columns:
            x = _map([x], lambda v: self.f.splat(v, self.width))[0]
        self._store(i, self.bases[i], x, self.count, self.mask)

    def at(self, i: int, index: Value) -> Number:
        """Element ``index`` (int64, one per row) of operand ``i``. It must lie inside the row. One-level rows only."""
        f, stride = self.f, self.schedule.strides[i][0]
        if index.lanes == 1:
            return self._load(i, lambda k: self._address(k, None, index), 1, None, None)
        operand, step = self.schedule.operands[i], self.schedule.strides[i][3]
        lane = f.iota(I64, self.width)
        if self.mask is not None:  # lanes that are no rows read row 0 again
            lane, index = (f.select(self.mask, v, 0) for v in (lane, index))
        t = part(operand.dtype)
        found = f.gather_at(self.bases[i], lane * step + index * stride, U16 if t in (F16, BF16) else t)
        return to_type(found.bits(t), part(operand.working))

    # ---- going over the row -----------------------------------------------------------------------------------------
    def fold(
        self, ins: Sequence[int], init: Sequence[tuple[str, float]], step: Callable, combine: Callable,
        outs: Sequence[int] = (), *, blocked: bool = True, index: Type | None = None, unroll: int = 4,
        fetch: Sequence[int] = (), joined: bool = True,
    ) -> State:  # fmt: skip
        """Go over the row with accumulators and return their final values, one per row.

        Args:
            ins: operands that are loaded.
            init: per accumulator its dtype and its identity under ``combine``.
            step: ``step(acc, *xs)`` gives the next ``acc``; with ``outs``, ``(acc, ys)``. With ``index``, the position
                in the row comes last.
            combine: joins two accumulators.
            outs: operands that ``ys`` are stored to.
            blocked: keep the chain of additions short (sums); not needed where combining is exact.
            index: the integer type of positions, if ``step`` takes them.
            unroll: vectors that row mode processes at once. LLVM reorders eight loads, later ones first, and the
                hardware prefetcher of Zen 4 stops: sums of magnitudes of 32 MiB took 2.5 ms by eight, 0.8 by four.
            fetch: operands to prefetch, at the same place one row on (row mode): pays where a pass takes long enough
                for the memory to catch up (log_softmax of 512 x 1024 takes 204 us without, 148 with).
            joined: combine the lanes of a register at the end (row mode).
        """
        fold = _Fold(self, ins, init, step, combine, outs, blocked, index, fetch, joined)
        return fold.columns() if self.schedule.columns else fold.rows(unroll)

    def each(
        self, ins: Sequence[int], outs: Sequence[int], fn: Callable, *, index: Type | None = None,
        fetch: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Store ``fn(*xs)`` for every element of the row."""

        def step(_, *xs):
            y = fn(*xs)
            return (), y if isinstance(y, tuple) else (y,)

        self.fold(ins, (), step, lambda a, b: (), outs, blocked=False, index=index, unroll=4, fetch=fetch)


@dataclass
class _Fold:
    """One pass over a row."""

    row: Row
    ins: Sequence[int]
    init: Sequence[tuple[str, float]]
    step: Callable
    combine: Callable
    outs: Sequence[int]
    blocked: bool
    index: Type | None
    fetch: Sequence[int]
    joined: bool = True

    def start(self, lanes: int) -> State:
        f, state = self.row.f, []
        for dtype, x in self.init:
            v = f.const(part(dtype), x, lanes)
            state.append(Complex(v, f.const(part(dtype), 0, lanes)) if is_complex(dtype) else v)
        return tuple(state)

    def apply(
        self, acc: State, outer: Value | None, inner: Value, lanes: int, count: Value | None, mask: Value | None
    ) -> State:
        """One step at position ``(outer, inner)``."""
        row, s = self.row, self.row.schedule
        at = {i: row._address(i, outer, inner) for i in {*self.ins, *self.outs}}

        def place(k: int) -> Value:
            return at[k] if k in at else row._address(k, outer, inner)

        args = [row._load(i, place, lanes, count, mask) for i in self.ins]
        if s.levels == 1 and count is None:
            row.prefetch(self.fetch, inner, lanes)
        if self.index is not None:
            position = inner if outer is None else outer * s.n0 + inner
            position = position.to(self.index)
            args.append(position if s.columns else row.f.splat(position, lanes) + row.f.iota(self.index, lanes))
        result = self.step(acc, *args)
        if self.outs:
            result, ys = result
            for i, y in zip(self.outs, ys, strict=True):
                y = _map([y], lambda v: row.f.splat(v, lanes))[0]
                row._write(i, place, y, count, mask)
        return _map(result, lambda v: row.f.splat(v, lanes))

    def outer_loop(self, carry: State, inside: Callable[[State, Value | None], State]) -> State:
        s = self.row.schedule
        if s.levels == 1:
            return inside(carry, None)
        with self.row.f.loop(0, s.n1, carry=_flat(carry)) as L:
            L.carry = tuple(_flat(inside(_like(carry, L.carry), L.index)))
        return _like(carry, L.carry)

    def blocks(self, total: State, stop: Value, stride: int, lanes: int, body: Callable, depth: int) -> State:
        """Run ``body`` over ``range(0, stop, stride)``, in ``depth`` levels of blocks where the fold is blocked."""
        return self._block(total, self.row.f.i64(0), stop, stride, lanes, body, depth if self.blocked else 0)

    def _block(
        self, total: State, start: Value, stop: Value, stride: int, lanes: int, body: Callable, depth: int
    ) -> State:
        f = self.row.f
        span = stride * BLOCK**depth
        with f.loop(start, stop, span, carry=_flat(total)) as L:
            acc = _like(total, L.carry)
            if depth:
                last = L.index + span
                last = f.select(last < stop, last, stop)
                part = self._block(self.start(lanes), L.index, last, stride, lanes, body, depth - 1)
                acc = self.combine(acc, part)
            else:
                acc = body(acc, L.index)
            L.carry = tuple(_flat(acc))
        return _like(total, L.carry)

    def columns(self) -> State:
        row = self.row
        lanes = row.width

        def inside(total: State, outer: Value | None) -> State:
            def body(acc: State, i: Value) -> State:
                return self.apply(acc, outer, i, lanes, row.count, row.mask)

            return self.blocks(total, row.schedule.n0, 1, lanes, body, 2)

        return self.outer_loop(self.start(lanes), inside)

    def rows(self, unroll: int) -> State:
        f, s = self.row.f, self.row.schedule
        lanes = s.lanes
        wide = lanes * unroll if "v" not in [s.operands[i].layout for i in (*self.ins, *self.outs)] else lanes
        n0 = self.row.n0
        whole = n0 & -wide if wide > 1 else n0

        def inside(carry: State, outer: Value | None) -> State:
            half = len(carry) // 2
            big, small = carry[:half], carry[half:]
            body, depth = lambda acc, i: self.apply(acc, outer, i, wide, None, None), 2 if unroll == 1 else 1
            big = self.blocks(big, whole, wide, wide, body, depth)
            if wide == 1:
                return (*big, *small)
            rest = self.start(lanes) if s.levels == 2 and self.blocked else small
            with f.loop(whole, n0, lanes, carry=_flat(rest)) as L:
                count = n0 - L.index
                mask = f.first(count, lanes)
                acc = _like(rest, L.carry)
                after = self.apply(acc, outer, L.index, lanes, count, mask)
                L.carry = tuple(_flat(_select(f, mask, after, acc)))
            rest = _like(rest, L.carry)
            return (*big, *(self.combine(small, rest) if s.levels == 2 and self.blocked else rest))

        result = self.outer_loop((*self.start(wide), *self.start(lanes)), inside)
        half = len(result) // 2
        if not half:
            return ()
        big, small = result[:half], result[half:]
        if wide == 1:
            return self.combine(big, small)
        # If the row was too short for the wide loop there is nothing to join: a loop that runs at most once.
        with f.loop(0, f.select(whole > 0, f.i64(1), 0), carry=_flat(small)) as L:
            joined = big
            while _flat(joined)[0].lanes > lanes:
                joined = self._halve(joined)
            L.carry = tuple(_flat(self.combine(joined, _like(small, L.carry))))
        state = _like(small, L.carry)
        while self.joined and _flat(state)[0].lanes > 1:
            state = self._halve(state)
        return state

    def _halve(self, state: State) -> State:
        half = _flat(state)[0].lanes // 2
        return self.combine(_map(state, lambda v: v.slice(0, half)), _map(state, lambda v: v.slice(half, half)))


class FrontRow(Row):
    """Neighbouring rows whose sums are in memory, for a body with one fold in column mode: see :data:`FRONT`.

    The fold ends with an open loop over vectors, in which the rest of the body runs; :meth:`close` ends it.
    """

    def __init__(self, schedule: Schedule, a: Value, bases: list[Value], size: Value):
        super().__init__(schedule, a, bases, schedule.lanes, None)
        self.wide = size * schedule.lanes
        self._open = ExitStack()

    def fold(self, ins, init, step, combine, outs=(), *, blocked=True, **more) -> State:
        """:meth:`Row.fold`, with the same blocks of sums."""
        f, lanes, (source,) = self.f, self.width, ins
        if self.schedule.levels != 1 or outs or any(is_complex(d) for d, _ in init):
            raise TypeError("sums in memory: one fold of one operand over rows of one dimension")
        types = [part(d) for d, _ in init]
        start = tuple(f.const(t, x, lanes) for t, (_, x) in zip(types, init, strict=True))
        levels = [[f.scratch(FRONT * lanes * t.bytes) for t in types] for _ in range(3 if blocked else 1)]

        def load(arrays: list[Value], i: Value) -> State:
            return tuple(f.load(f.offset(p, i * t.bytes), t, lanes) for p, t in zip(arrays, types, strict=True))

        def store(arrays: list[Value], i: Value, state: State) -> None:
            for p, t, x in zip(arrays, types, state, strict=True):
                f.store(f.offset(p, i * t.bytes), x)

        def each_vector(fn: Callable[[Value], None], unroll: int = 4) -> None:
            with f.loop(0, self.wide, lanes * unroll) as L:
                for k in range(unroll):
                    fn(L.index + k * lanes)

        n0, stride = self.schedule.n0, self.schedule.strides[source][0]

        def take(first: Value, count: int) -> Callable[[Value], None]:
            """Add ``count`` rows at once, so that sums are loaded and stored less often."""
            steps = [stride[0] for stride in self.schedule.strides]
            rows = {o: f.offset(self.bases[o], first * steps[o]) for o in (source, *self.schedule.leaves)}

            def fn(i: Value) -> None:
                at, acc = {}, load(levels[0], i)
                for o, row in rows.items():
                    operand = self.schedule.operands[o]
                    at[o] = f.offset(row, i * operand.bytes) if operand.layout == "c" else row
                for k in range(count):
                    place = {o: f.offset(row, steps[o] * k) for o, row in at.items()}
                    acc = step(acc, self._load(source, place.__getitem__, lanes, None, None))
                store(levels[0], i, acc)

            return fn

        def lift(depth: int) -> Callable[[Value], None]:
            def fn(i: Value) -> None:
                low, high = levels[depth - 1 : depth + 1]
                store(high, i, combine(load(high, i), load(low, i)))
                store(low, i, start)

            return fn

        def blocks(first: Value, end: Value, depth: int) -> None:
            """Add the rows from ``first`` on to the sums of level ``depth``."""
            if not depth:
                some = f.select(stride > WIDE_ROW, first + ((end - first) & -ROWS), first)
                for start, stop, count in ((first, some, ROWS), (some, end, 1)):
                    with f.loop(start, stop, count) as L:
                        each_vector(take(L.index, count))
                return
            with f.loop(first, end, BLOCK**depth) as L:
                last = L.index + BLOCK**depth
                blocks(L.index, f.select(last < end, last, end), depth - 1)
                each_vector(lift(depth))

        for arrays in levels:
            each_vector(lambda i, arrays=arrays: store(arrays, i, start))
        blocks(f.i64(0), n0, len(levels) - 1)
        vector = self._open.enter_context(f.loop(0, self.wide, lanes)).index
        bytes_of = [self.schedule.operands[i].bytes for i in range(len(self.bases))]
        self.bases = [f.offset(p, vector * size) for p, size in zip(self.bases, bytes_of, strict=True)]
        return load(levels[-1], vector)

    def close(self) -> None:
        """End the loop."""
        self._open.close()
