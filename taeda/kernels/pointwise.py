"""The pointwise schedule: one body applied to every element of strided operands, in full vectors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import float8
from .build import build
from .ir import BF16, BOOL, F16, F32, F64, I32, I64, TYPES, U8, U32, U64, Function, Type, Value
from .scalar import Complex
from .scalar.basic import abs, any_lane, beyond_doubles, trunc, whole_double, whole_number
from .target import here

#: The type of each part, by the name of the complex dtype.
COMPLEX = {"complex32": F16, "complex64": F32, "complex128": F64}

#: The dtype in which dtypes that are only stored are computed.
WORKING = {
    "float16": "float32", "bfloat16": "float32", "complex32": "complex64", **dict.fromkeys(float8.NAMES, "float32"),
}  # fmt: skip

#: Prefetch distance in bytes (:meth:`_Schedule.prefetch`).
AHEAD = 2048

Number = Value | Complex
Body = Callable[..., "Number | tuple[Number, ...]"]


def is_complex(dtype: str) -> bool:
    """Whether ``dtype`` is held as a pair of floats."""
    return dtype in COMPLEX


def part(dtype: str) -> Type:
    """The scalar type of ``dtype``, of each part if it is complex. Float8 has none: it is loaded as float32."""
    return COMPLEX.get(dtype) or TYPES[dtype]


def stored(dtype: str) -> Type:
    """The scalar type of ``dtype`` in memory, of each part if it is complex."""
    return U8 if dtype in float8.NAMES else part(dtype)


def to_type(x: Value, t: Type) -> Value:
    """Convert as PyTorch's casts do: floats truncate toward zero, integers wrap, anything but zero is true.

    A float beyond the integer's range is undefined in C. Here narrow types wrap from a wider one on every target.
    """
    s = x.type
    if s.kind == "f" and t.kind in "iu" and t not in (I32, I64):
        if s.bits == 16:
            x = x.to(F32)
        if t is U64:  # the upper half of the range has no signed conversion
            upper = x >= 2.0**63
            shifted = (x - x.fn.select(upper, x.fn.const(x.type, 2.0**63, x.lanes), 0.0)).to(I64).bits(U64)
            return x.fn.select(upper, shifted ^ (1 << 63), shifted)
        return x.to(I64 if t is U32 else I32).to(t)
    f = x.fn
    if f.rare is not None and f.vector_bytes == 32:  # AVX2 converts 64-bit integers one by one
        if t is I64 and s in (F32, F64):
            f.rare.append(~(abs(x) < 2.0**51))
            return whole_number(trunc(x).to(F64), I64)
        if s is I64 and t in (F32, F64):
            f.rare.append(beyond_doubles(x))
            return whole_double(x).to(t)
    return x.to(t)


def cast(x: Number, dtype: str) -> Number:
    """Convert to a dtype by name. Complex to real takes the real part; complex to bool is whether either part is not
    0."""
    if is_complex(dtype):
        return x.to(part(dtype)) if isinstance(x, Complex) else Complex(to_type(x, part(dtype)))
    if isinstance(x, Complex) and dtype != "bool":
        x = x.re
    if dtype in float8.NAMES:
        return float8.encode(to_type(x, F32), dtype)
    return x != 0 if isinstance(x, Complex) else to_type(x, TYPES[dtype])


@dataclass
class Operand:
    """A memory operand: its dtype, layout class, inner and outer stride in bytes; ``stream``: stored past the cache."""

    dtype: str
    layout: str
    base: Value
    inner: Value
    outer: Value
    stream: bool = False

    @property
    def bytes(self) -> int:
        return stored(self.dtype).bytes * (2 if is_complex(self.dtype) else 1)

    def at(self, f: Function, row: Value, index: Value) -> Value:
        """The address of element ``index`` of the row that starts at ``row``."""
        return f.offset(row, index * self.bytes if self.layout == "c" else index * self.inner)

    def load(self, f: Function, pointer: Value, lanes: int, count: Value | None) -> Number:
        """``lanes`` elements from ``pointer``; with ``count``, only the first ``count`` of them."""
        if self.dtype in float8.NAMES:
            return float8.decode(replace(self, dtype="uint8").load(f, pointer, lanes, count), self.dtype)
        t = part(self.dtype)
        if not is_complex(self.dtype):
            if self.layout == "c":
                return f.load(pointer, t, lanes, None if count is None else f.first(count, lanes))
            if self.layout == "s":
                return f.splat(f.load(pointer, t), lanes)
            return f.gather(pointer, self.inner, t, lanes, count)
        if self.layout == "c" and lanes > 1:
            mask = None if count is None else f.first(count * 2, 2 * lanes)
            both = f.load(pointer, t, 2 * lanes, mask)
            return Complex(both.shuffle(range(0, 2 * lanes, 2)), both.shuffle(range(1, 2 * lanes, 2)))
        second = f.offset(pointer, t.bytes)
        if self.layout == "v":
            return Complex(*(f.gather(p, self.inner, t, lanes, count) for p in (pointer, second)))
        return Complex(*(f.splat(f.load(p, t), lanes) for p in (pointer, second)))

    def store(self, f: Function, pointer: Value, x: Number, count: Value | None) -> None:
        """Store the lanes of ``x``; with ``count``, only the first ``count``."""
        parts = [x.re, x.im] if isinstance(x, Complex) else [x]
        lanes = parts[0].lanes
        if self.layout != "c":
            for i, v in enumerate(parts):
                f.scatter(
                    f.offset(pointer, i * v.type.bytes),
                    self.inner,
                    v.to(TYPES["uint8"]) if v.type is BOOL else v,
                    count,
                )
        elif len(parts) == 1:
            mask = None if count is None else f.first(count, lanes)
            f.store(pointer, parts[0], mask, nontemporal=self.stream and lanes > 1)
        elif lanes == 1:
            f.store(pointer, parts[0])
            f.store(f.offset(pointer, parts[0].type.bytes), parts[1])
        else:
            both = parts[0].shuffle([i // 2 + (i & 1) * lanes for i in range(2 * lanes)], parts[1])
            mask = None if count is None else f.first(count * 2, 2 * lanes)
            f.store(pointer, both, mask, nontemporal=self.stream)


class _Schedule:
    """The parts of one pointwise kernel."""

    def __init__(self, f: Function, body: Body, outs, ins, compute: str, classes: str):
        self.f, self.body, self.ins, self.compute = f, body, tuple(ins), compute
        dtypes = [*outs, *(d for d in ins if d != "param")]
        if len(dtypes) != len(classes):
            raise ValueError(f"pointwise: {len(dtypes)} memory operands, but classes {classes!r}")
        self.operands = [
            Operand(d, "c" if c == "n" else c, f.data(i), f.size(2 + 2 * i), f.size(3 + 2 * i), c == "n")
            for i, (d, c) in enumerate(zip(dtypes, classes, strict=True))
        ]
        self.prefetching, self.straight = False, False  # until `unroll` has seen the body
        self.joined = [1] * len(outs)  # how many vectors of each output one store joins
        self.outs, self.sources = self.operands[: len(outs)], self.operands[len(outs) :]
        self.params = self._params(2 + 2 * len(dtypes))
        widest = max(stored(d).bytes for d in [*dtypes, compute])
        strided = [stored(o.dtype).bytes for o in self.operands if o.layout == "v"]
        if strided:  # lanes are loaded one by one: many of them do not pay
            widest = max(widest, 4)
        self.lanes = f.vector_bytes // widest if f.vector_bytes >= 16 else 1
        # AVX-512 masks moves of every width and gathers of 4 and 8 bytes, AVX2 moves of 4 and 8 bytes, NEON nothing.
        # Without masks the rest of a row goes element by element.
        narrow = any(stored(o.dtype).bytes < 4 for o in self.operands)
        able = min(strided, default=4) >= 4 if f.vector_bytes >= 64 else not strided and not narrow
        self.masked = self.lanes > 1 and f.vector_bytes >= 32 and able
        # Broadcast here: LLVM would not move values that are the same for all vectors out of the loop.
        self.wide_params = [self._splat(x, self.lanes) for x in self.params]

    def _params(self, at: int) -> list[Number]:
        f, t, found = self.f, part(self.compute), []
        t = F32 if t.kind == "f" and t.bits == 16 else t
        for i in range(self.ins.count("param")):
            re = f.scalar(at + 2 * i, t)
            found.append(Complex(re, f.scalar(at + 2 * i + 1, t)) if is_complex(self.compute) else re)
        return found

    def apply(self, loaded: Sequence[Number], lanes: int) -> list[Number]:
        """The body on one vector of each input, converted to the output dtypes."""
        memory, params, args = iter(loaded), iter(self.wide_params if lanes == self.lanes else self.params), []
        for dtype in self.ins:
            x = next(params) if dtype == "param" else cast(next(memory), self.compute)
            args.append(self._splat(x, lanes))
        result = self.body(*args)
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(self.outs):
            raise ValueError(f"pointwise: the body gives {len(results)} values for {len(self.outs)} outputs")
        last = [r if self._rounds_late(r, o) else cast(r, o.dtype) for r, o in zip(results, self.outs, strict=True)]
        return [self._splat(r, lanes) for r in last]

    @staticmethod
    def _rounds_late(x: Number, o: Operand) -> bool:
        """Whether :meth:`join` converts to bfloat16: two vectors at once, next to the store.

        Where a body branches, no vector of that type may cross from one block to another: without AVX512-BF16, LLVM
        would carry it as float32 and round it by a call of a library function that does not exist.
        """
        return o.dtype == "bfloat16" and not isinstance(x, Complex) and x.type is F32

    def fetch(self, o: Operand, row: Value, index: Value, lanes: int, count: Value | None) -> Number:
        """An operand as the body gets it, maybe not yet in the working type; for bfloat16 see :meth:`_rounds_late`."""
        x = o.load(self.f, o.at(self.f, row, index), lanes, count)
        return x.to(F32) if not isinstance(x, Complex) and x.type is BF16 else x

    def join(self, o: Operand, values: Sequence[Number]) -> Number:
        """Join consecutive vectors of an output into one that fills a register."""
        if len(values) == 1:
            return cast(values[0], o.dtype) if self._rounds_late(values[0], o) else values[0]
        if self._rounds_late(values[0], o):
            values = [a.to_bf16_with(b) for a, b in zip(values[::2], values[1::2], strict=True)]
        while len(values) > 1:
            values = [a.shuffle(range(2 * a.lanes), b) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def _splat(self, x: Number, lanes: int) -> Number:
        if isinstance(x, Complex):
            return Complex(self.f.splat(x.re, lanes), self.f.splat(x.im, lanes))
        return self.f.splat(x, lanes)

    def unroll(self) -> int:
        """Vectors per iteration of the main loop: a cheap body needs several to hide the loop's own cost.

        Outputs narrower than the working type need several vectors to fill a register, which is a cache line with
        AVX-512: a store of less costs as much, and more past the cache. AVX2's vectors are half as long, and their
        dependent instructions fill the processor's window: four at a time take 0.6 to 0.95 of the time of two, or of
        one (Zen 4: gelu 17.2 cycles a vector for 19.3, erf 24.3 for 29.0, tanh 18.5 for 26.3, exp 9.0 for 10.7). Two
        of a longer body take 0.7 to 0.97 of the time of one (Emerald Rapids: logaddexp2, softplus, atan2, erfinv).
        """
        if "v" in [o.layout for o in self.operands]:
            return 1
        saved, block, self.f.lines = self.f.lines, self.f._block, []
        zeros = [
            self._splat(
                Complex(self.f.const(part(o.dtype), 0)) if is_complex(o.dtype) else self.f.const(stored(o.dtype), 0),
                self.lanes,
            )
            for o in self.sources
        ]
        self.apply(zeros, self.lanes)
        if not self._is_straight(self.f.lines):  # maybe its usual path is
            self.f.lines, self.f.rare = [], []
            self.apply(zeros, self.lanes)
        lines = self.f.lines
        self.straight = self._is_straight(lines)
        self.f.lines, self.f._block, self.f.rare = saved, block, None
        size = len(lines)
        self.prefetching = size > 12 or any(o.stream for o in self.outs)
        few, many = {32: (60, 200), 64: (12, 80)}.get(self.f.vector_bytes, (12, 40))
        if any(f"<{self.f.vector_bytes // 4} x double>" in line for line in lines):
            few = 0  # float32 computed in float64: a vector takes two registers
        times = 4 if size <= few else 2 if size <= many else 1
        filling = [self.f.vector_bytes // (self.lanes * o.bytes) for o in self.outs]
        if size * max(filling) <= 160:
            times = max(times, *filling)
        self.joined = [
            1 if is_complex(o.dtype) else max(1, min(times, n)) for o, n in zip(self.outs, filling, strict=True)
        ]
        return times

    def prefetch(self, places: Sequence[Value], index: Value, elements: int) -> None:
        """Prefetch 2 KiB ahead in a longer body, whose instructions fill the window in which loads run ahead.

        Measured over 1M float32 (Sapphire Rapids): tanh 444 to 332 us, gelu 443 to 364. Short bodies gain nothing,
        unless they write past the cache.
        """
        f = self.f
        for i, (o, place) in enumerate(zip(self.operands, places, strict=True)):
            if o.layout == "c" and not o.stream:
                for line in range(0, elements * o.bytes, 64):
                    f.prefetch(f.offset(o.at(f, place, index), line), write=i < len(self.outs))

    def ahead(self, size: Value) -> list[Value]:
        """Prefetch distance in bytes from the beginning of each operand's row.

        Where results are stored past the cache it is whole rows, unless rows are adjacent or there is only one: what is
        between the rows is not prefetched (half of the columns of 4096 x 2048, ``a + b``: 3.4 to 2.6 ms).
        """
        f, least = self.f, AHEAD
        if not any(o.stream for o in self.outs):
            return [f.i64(least)] * len(self.operands)
        if max(o.bytes for o in self.outs) < max(o.bytes for o in self.sources):
            least *= 4  # mostly reads: 8M of a > 0 take 1.9 ms with 2 KiB, 1.6 with 8; a + b gains nothing
        found = []
        for o in self.operands:
            end = size * o.bytes
            rows = f.i64(least) / f.select(end < 1, f.i64(1), end) + 1
            found.append(f.select((o.outer == end) | (o.outer == 0), f.i64(least), rows * o.outer))
        return found

    def step(self, rows: Sequence[Value], index: Value, lanes: int, times: int = 1, count: Value | None = None) -> None:
        """``times`` vectors from ``index``. All loads come first, so that they need not wait for the stores.

        The vectors go through the body together, instruction by instruction: the scheduler, which holds about 60 of
        them, then finds more that are ready (Zen 4: erf takes 10.6 cycles a vector, 12.0 one after the other).
        """
        f, n = self.f, len(self.outs)
        at = [index + j * lanes if j else index for j in range(times)]
        loaded = [
            [self.fetch(o, row, i, lanes, count) for o, row in zip(self.sources, rows[n:], strict=True)] for i in at
        ]
        f.rare = [] if lanes == self.lanes and self.straight else None
        results = self.side_by_side(loaded, lanes)
        conditions, f.rare = f.rare, None
        if not conditions:
            self.write(results, rows, at, times, count)
            return
        with f.branch(any_lane(functools.reduce(operator.or_, conditions))) as B:
            f.again = True
            self.write(self.side_by_side(loaded, lanes), rows, at, times, count)
            f.again = False
            B.otherwise()
            self.write(results, rows, at, times, count)

    def write(self, results: Sequence[Sequence[Number]], rows: Sequence[Value], at: Sequence[Value], times: int,
              count: Value | None) -> None:  # fmt: skip
        """Store the outputs of ``times`` vectors."""
        f = self.f
        for k, (o, row, joined) in enumerate(zip(self.outs, rows[: len(self.outs)], self.joined, strict=True)):
            for j in range(0, times, joined):
                value = self.join(o, [values[k] for values in results[j : j + joined]])
                o.store(f, o.at(f, row, at[j]), value, count)

    def side_by_side(self, loaded: Sequence[Sequence[Number]], lanes: int) -> list[list[Number]]:
        """:meth:`apply` to each, interleaved line by line; one after the other where the body branches."""
        f, before = self.f, self.f.lines
        results, parts = [], []
        for x in loaded:
            f.lines = []
            results.append(self.apply(x, lanes))
            parts.append(f.lines)
        f.lines = before
        straight = self._is_straight(parts[0])
        f.lines += [line for lines in (zip(*parts, strict=True) if straight else parts) for line in lines]
        return results

    @staticmethod
    def _is_straight(lines: Sequence[str]) -> bool:
        """Whether code has no branches."""
        return not any(line.endswith(":") for line in lines)

    def emit(self) -> None:
        f, lanes = self.f, self.lanes
        f.elements = tuple((o.bytes, stored(o.dtype).bytes, o.layout) for o in self.operands)
        f.outs = len(self.outs)
        size = f.size(0)
        times = self.unroll() if lanes > 1 else 1
        block = lanes * times
        whole = size & -block if lanes > 1 else f.i64(0)
        ahead = self.ahead(size) if self.prefetching else []
        with f.loop(f.begin, f.end) as R:
            rows = [f.offset(o.base, o.outer * R.index) for o in self.operands]
            if lanes > 1:
                later = [f.offset(row, x) for row, x in zip(rows, ahead, strict=False)]
                with f.loop(f.i64(0), whole, block) as L:
                    if self.prefetching:
                        self.prefetch(later, L.index, block)
                    self.step(rows, L.index, lanes, times)
            self.joined = [1] * len(self.outs)  # the rest goes vector by vector
            if self.masked:
                with f.loop(whole, size, lanes) as L:
                    self.step(rows, L.index, lanes, count=size - L.index)
            else:
                with f.loop(whole, size) as L:
                    self.step(rows, L.index, 1)
        if any(o.stream for o in self.outs):
            f.fence()


def pointwise(f: Function, body: Body, outs: Sequence[str], ins: Sequence[str], compute: str, classes: str) -> None:
    """Write a kernel that applies ``body`` to each element.

    ``arg = [n0, n1, (inner, outer) per memory operand, (lo, hi) per parameter]``, outputs first, strides in bytes;
    ``[begin, end)`` are rows. Each row runs in full vectors, then in masked ones (element by element where the target
    has no masks), so a result does not depend on how the work was divided.

    Args:
        f: the builder.
        body: gets one :class:`Value` (or :class:`Complex`) of ``compute`` per input, returns one or a tuple of them.
        outs: dtype names of the outputs.
        ins: dtype names of the inputs, ``"param"`` for a scalar parameter.
        compute: dtype name that the body works in: one of ``WORKING`` for those that are only stored.
        classes: a letter per memory operand, outputs first: ``c`` contiguous in the inner dimension, ``s`` inner stride
            0 (inputs only), ``v`` any inner stride, ``n`` contiguous and stored past the cache (outputs only, whose
            rows begin at cache lines).
    """
    _Schedule(f, body, outs, ins, compute, classes).emit()


def build_pointwise(
    body: Body, outs: Sequence[str], ins: Sequence[str], compute: str, classes: str, name: str = "pointwise"
) -> int:
    """The address of a compiled pointwise kernel for this machine; see :func:`pointwise`. Profiles call it ``name``."""

    def write() -> Function:
        f = Function(vector_bytes=here().vector_bytes)
        f.label = f"{name}({', '.join([*outs, *ins])})"
        pointwise(f, body, outs, ins, compute, classes)
        return f

    return build(write(), write)
