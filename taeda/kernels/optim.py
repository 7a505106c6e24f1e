"""One kernel per update rule of an optimiser, run once over all parameters.

``ptr[0]`` is a table with one row of 8-byte slots per parameter: address of the parameter, of its gradient, of each
state tensor, then the rule's scalars as doubles. ``ptr[1]`` is a list of chunks: row, first element, number of
elements. The parallel dimension is the chunks, which are cut by the sizes of the parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .build import kernel
from .ir import BF16, F16, F32, F64, I32, I64, PTR, TYPES, Function, Type, Value
from .rowwise import WARP
from .scalar import basic
from .target import here

CHUNK = 16384

#: Prefetch distance of an update in bytes. Over 150 tensors of 128 KiB (Emerald Rapids, 1 thread) RMSprop then takes
#: 0.88 of the time, Adagrad 0.9, SGD with momentum 0.95; AdamW gains nothing.
AHEAD = 2048


def chunk() -> int:
    """Elements of one chunk; without vectors the threads of a warp share it, and there are more."""
    return CHUNK if here().vector_bytes >= 16 else CHUNK // 4


def _share(f: Function) -> None:
    """Let the threads of a warp share a chunk, on a target without vectors."""
    if f.vector_bytes < 16:
        f.threads = WARP


class VectorMath:
    """The functions that an update rule uses, on kernel values; rules call the same names on tensors elsewhere."""

    abs = staticmethod(basic.abs)
    sign = staticmethod(basic.sign)
    maximum = staticmethod(basic.maximum)
    minimum = staticmethod(basic.minimum)

    @staticmethod
    def sqrt(x: Value) -> Value:
        """Square root."""
        return x.fn.unary("sqrt", x)

    @staticmethod
    def where(condition: Value, a: Value | float, b: Value | float) -> Value:
        return condition.fn.select(condition, a, b)

    @staticmethod
    def fma(a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``."""
        return a.fn.fma(a, b, c)


def _update(f: Function, rule: Callable, flags: tuple, t: Type, bases: list[Value], scalars: list[Value],
            at: Value, lanes: int, mask: Value | None) -> None:  # fmt: skip
    """Apply ``rule`` to ``lanes`` elements from ``at``."""
    work = F64 if t is F64 else F32
    offset = at * t.bytes
    places = [f.offset(base, offset) for base in bases]
    if mask is None and f.threads == 1:
        for i, place in enumerate(places):
            f.prefetch(f.offset(place, AHEAD), write=i != 1)
    p, g, *state = (f.load(place, t, lanes, mask).to(work) for place in places)
    results = rule(VectorMath, flags, scalars, p, g, *state)
    for place, result in zip([places[0], *places[2:]], results, strict=True):
        f.store(place, result.to(t), mask)


@contextmanager
def _without_denormals(f: Function) -> Iterator[None]:
    """Treat denormal numbers as zero inside the block, on processors that are slow with them (x86).

    The moments of an element whose gradient stays 0 end as such numbers: the step of Adam over 4,610 of them took 58
    us, and takes 5.6.
    """
    if f.vector_bytes < 32:
        yield
        return
    before, during = f.scratch(4), f.scratch(4)
    for name in ("stmxcsr", "ldmxcsr"):
        f.declarations[name] = f"declare void @llvm.x86.sse.{name}(ptr)"
    f.lines.append(f"  call void @llvm.x86.sse.stmxcsr({before.typed})")
    f.store(during, f.load(before, I32) | 0x8040)
    f.lines.append(f"  call void @llvm.x86.sse.ldmxcsr({during.typed})")
    yield
    f.lines.append(f"  call void @llvm.x86.sse.ldmxcsr({before.typed})")


def emit(f: Function, rule: Callable, flags: tuple, dtype: str, nstates: int, nscalars: int) -> None:
    """Write the kernel of ``rule(math, flags, scalars, p, g, *state) -> (p, *state)`` into ``f``."""
    t = TYPES[dtype]
    work = F32 if t in (F16, BF16) else t
    _share(f)
    lanes = f.lanes(work)
    width = 2 + nstates + nscalars
    table, chunks = f.load(f.ptr, PTR), f.load(f.offset(f.ptr, 8), PTR)
    with _without_denormals(f), f.loop(f.begin, f.end, 1) as chunk:
        entry = f.offset(chunks, chunk.index * 24)
        row = f.offset(table, f.load(entry, I64) * (8 * width))
        first, count = f.load(f.offset(entry, 8), I64), f.load(f.offset(entry, 16), I64)
        bases = [f.offset(f.load(f.offset(row, 8 * i), PTR), first * t.bytes) for i in range(2 + nstates)]
        scalars = [f.splat(f.load(f.offset(row, 8 * (2 + nstates + i)), F64).to(work), lanes) for i in range(nscalars)]
        for at, _, mask in f.strips(0, count, lanes):
            _update(f, rule, flags, t, bases, scalars, at, lanes, mask)


def table(name: str, rule: Callable, nstates: Callable[[tuple], int], nscalars: int) -> kernel:
    """A table from (flags, dtype name) to the address of the kernel of ``rule``, called ``name`` in profiles."""

    def build(f: Function, flags: tuple, dtype: str) -> None:
        emit(f, rule, flags, dtype, nstates(flags), nscalars)

    build.__name__ = name
    build.__doc__ = rule.__doc__
    return kernel(build)


@kernel
def norm(f: Function, dtype: str, order: str) -> None:
    """Partial norms of many tensors: ``ptr = [partial (float64 per chunk), addresses, chunks]``, parallel over chunks.

    ``order`` is ``"1"``, ``"2"`` (sums of squares) or ``"inf"``. Sums are kept in double precision.
    """
    t = TYPES[dtype]
    _share(f)
    lanes = f.lanes(F64)
    partial, addresses, chunks = (f.data(i) for i in range(3))
    with f.loop(f.begin, f.end, 1) as chunk:
        entry = f.offset(chunks, chunk.index * 24)
        first, count = f.load(f.offset(entry, 8), I64), f.load(f.offset(entry, 16), I64)
        base = f.offset(f.load(f.offset(addresses, f.load(entry, I64) * 8), PTR), first * t.bytes)

        def add(total: Value, at: Value, mask: Value | None) -> Value:
            x = f.load(f.offset(base, at * t.bytes), t, lanes, mask)
            x = (x.to(F32) if t in (F16, BF16) else x).to(F64)
            if order == "2":
                return f.fma(x, x, total)
            x = basic.abs(x)
            return total + x if order == "1" else basic.maximum(total, x)

        zero = f.const(F64, 0.0, lanes)
        step = 4 * lanes  # four sums hide the latency of the addition
        whole = count - count % step
        with f.loop(f.i64(0), whole, step, [zero] * 4) as body:
            body.carry = tuple(add(total, body.index + i * lanes, None) for i, total in enumerate(body.carry))
        combine = basic.maximum if order == "inf" else lambda a, b: a + b
        total = combine(combine(body.carry[0], body.carry[1]), combine(body.carry[2], body.carry[3]))
        with f.loop(whole, count, lanes, [total]) as tail:
            tail.carry = (add(tail.carry[0], tail.index, f.first(count - tail.index, lanes)),)
        f.store(f.offset(partial, chunk.index * 8), tail.carry[0].reduce(combine))


@kernel
def join_norms(f: Function, order: str) -> None:
    """The norm of all tensors from those of the chunks: ``ptr = [norm, partial]``, ``arg = [chunks]``.

    The chunks are added in order, so that the number of threads does not matter; of the order of infinity the largest
    is taken, or a NaN.
    """
    with f.loop(0, f.size(0), carry=[f.const(F64, 0)]) as L:
        x, total = f.load(f.offset(f.data(1), L.index * 8), F64), L.carry[0]
        stays = (x <= total) | (total != total)
        L.carry = (f.select(stays, total, x) if order == "inf" else total + x,)
    f.store(f.data(0), f.unary("sqrt", L.carry[0]) if order == "2" else L.carry[0])


@kernel
def join_each(f: Function, dtype: str, order: str) -> None:
    """The norm of each tensor from those of its chunks: ``ptr = [norms (dtype), partial, starts]``, parallel over
    tensors, whose chunks begin at ``starts`` and end where the next one's do."""
    t = TYPES[dtype]
    _share(f)
    lanes = f.lanes(F64)
    norms, partial, starts = (f.data(i) for i in range(3))
    combine = basic.maximum if order == "inf" else lambda a, b: a + b
    with f.loop(f.begin, f.end, 1) as tensor:
        at = f.offset(starts, tensor.index * 8)
        first, last = f.load(at, I64), f.load(f.offset(at, 8), I64)
        with f.loop(first, last, lanes, [f.const(F64, 0.0, lanes)]) as L:
            x = f.load(f.offset(partial, L.index * 8), F64, lanes, f.first(last - L.index, lanes))
            L.carry = (combine(L.carry[0], x),)
        total = L.carry[0].reduce(combine)
        total = f.unary("sqrt", total) if order == "2" else total
        f.store(f.offset(norms, tensor.index * t.bytes), (total.to(F32) if t in (F16, BF16) else total).to(t))


@kernel
def give_number(f: Function) -> None:
    """A float64 number, that in memory where there is one: ``ptr = [to, from or NULL]``, ``arg = [number]``."""
    source = f.data(1)
    with f.branch(f.address(source) == 0) as b:
        f.store(f.data(0), f.size(0))
        b.otherwise()
        f.store(f.data(0), f.load(source, I64))


def _lerp(f: Function, x: Value, y: Value, weight: Value) -> Value:
    """From the nearer end, as in ``lerp``."""
    away = y - x
    return f.select(weight < 0.5, f.fma(weight, away, x), y - away * (1.0 - weight))


#: The result of :func:`each` from an element, the element of the other list (None if there is none) and the number.
_EACH: dict[str, Callable[[Function, Value, Value, Value], Value]] = {
    "scale": lambda f, x, y, number: x * number,
    "bound": lambda f, x, y, number: f.select(x > number, number, f.select(x < -number, -number, x)),  # NaN stays
    "lerp": _lerp,
}


@kernel
def each(f: Function, dtype: str, what: str) -> None:
    """Change many tensors: ``ptr = [number (float64), addresses, chunks, addresses of others]``, parallel over chunks.

    ``what`` is ``scale``, ``bound`` (to the number's absolute value) or ``lerp`` (towards the others).
    """
    t = TYPES[dtype]
    work = F32 if t in (F16, BF16) else t
    _share(f)
    lanes = f.lanes(work)
    addresses, chunks = f.data(1), f.data(2)
    number = f.splat(f.load(f.data(0), F64).to(work), lanes)
    lists = [addresses, f.data(3)] if what == "lerp" else [addresses]
    with f.loop(f.begin, f.end, 1) as chunk:
        entry = f.offset(chunks, chunk.index * 24)
        first, count = f.load(f.offset(entry, 8), I64), f.load(f.offset(entry, 16), I64)
        row = f.load(entry, I64) * 8
        bases = [f.offset(f.load(f.offset(places, row), PTR), first * t.bytes) for places in lists]

        def step(at: Value, mask: Value | None, bases=bases) -> None:
            places = [f.offset(base, at * t.bytes) for base in bases]
            x, *y = (f.load(place, t, lanes, mask).to(work) for place in places)
            f.store(places[0], _EACH[what](f, x, y[0] if y else x, number).to(t), mask)

        for at, _, mask in f.strips(0, count, lanes):
            step(at, mask)


def applied(name: str, body: Callable[..., Value], letters: str) -> kernel:
    """A table from dtype name to the address of the kernel that applies an op's body to many tensors.

    ``ptr = [table, chunks]``; a row of the table has the address of the result, those of the operands that are tensors,
    then numbers (float64). ``letters`` are the body's arguments: ``t`` a tensor, ``s`` one of one element, ``n`` a
    number.
    """
    tensors = letters.replace("n", "")

    def apply(f: Function, dtype: str) -> None:
        t = TYPES[dtype]
        work = F32 if t in (F16, BF16) else t
        _share(f)
        lanes, width = f.lanes(work), 1 + len(letters)
        table, chunks = f.data(0), f.data(1)
        with f.loop(f.begin, f.end, 1) as chunk:
            entry = f.offset(chunks, chunk.index * 24)
            row = f.offset(table, f.load(entry, I64) * (8 * width))
            first, count = f.load(f.offset(entry, 8), I64), f.load(f.offset(entry, 16), I64)
            to, *places = (f.load(f.offset(row, 8 * i), PTR) for i in range(1 + len(tensors)))
            numbers = iter([f.load(f.offset(row, 8 * i), F64) for i in range(1 + len(tensors), width)])
            given = iter(places)
            operands = [(c, next(numbers if c == "n" else given)) for c in letters]
            operands = [(c, f.load(x, t) if c == "s" else x) for c, x in operands]
            operands = [(c, x if c == "t" else f.splat(x.to(work), lanes)) for c, x in operands]
            for at, _, mask in f.strips(0, count, lanes):
                here = (first + at) * t.bytes
                xs = [f.load(f.offset(x, here), t, lanes, mask).to(work) if c == "t" else x for c, x in operands]
                f.store(f.offset(to, here), body(*xs).to(t), mask)

    apply.__name__ = f"foreach_{name}"
    return kernel(apply)
