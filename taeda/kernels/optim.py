"""One kernel per update rule of an optimiser, run once over all parameters.

``ptr[0]`` is a table with one row of 8-byte slots per parameter: address of the parameter, of its gradient, of each state
tensor, then the rule's scalars as doubles. ``ptr[1]`` is a list of chunks: row, first element, number of elements. The
parallel dimension is the chunks, which are cut by the sizes of the parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable

from .build import kernel
from .ir import BF16, F16, F32, F64, I64, PTR, TYPES, Function, Type, Value
from .scalar import basic

#: Elements of one chunk.
CHUNK = 16384


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
        """``a`` where ``condition`` else ``b``."""
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
    p, g, *state = (f.load(place, t, lanes, mask).to(work) for place in places)
    results = rule(VectorMath, flags, scalars, p, g, *state)
    for place, result in zip([places[0], *places[2:]], results, strict=True):
        f.store(place, result.to(t), mask)


def emit(f: Function, rule: Callable, flags: tuple, dtype: str, nstates: int, nscalars: int) -> None:
    """Write the kernel of ``rule(math, flags, scalars, p, g, *state) -> (p, *state)`` into ``f``."""
    t = TYPES[dtype]
    work = F32 if t in (F16, BF16) else t
    lanes = f.lanes(work)
    width = 2 + nstates + nscalars
    table, chunks = f.load(f.ptr, PTR), f.load(f.offset(f.ptr, 8), PTR)
    with f.loop(f.begin, f.end, 1) as chunk:
        entry = f.offset(chunks, chunk.index * 24)
        row = f.offset(table, f.load(entry, I64) * (8 * width))
        first, count = f.load(f.offset(entry, 8), I64), f.load(f.offset(entry, 16), I64)
        bases = [f.offset(f.load(f.offset(row, 8 * i), PTR), first * t.bytes) for i in range(2 + nstates)]
        scalars = [f.splat(f.load(f.offset(row, 8 * (2 + nstates + i)), F64).to(work), lanes) for i in range(nscalars)]
        whole = count - count % lanes
        with f.loop(f.i64(0), whole, lanes) as inner:
            _update(f, rule, flags, t, bases, scalars, inner.index, lanes, None)
        with f.when(whole < count):
            _update(f, rule, flags, t, bases, scalars, whole, lanes, f.first(count - whole, lanes))


def table(rule: Callable, nstates: Callable[[tuple], int], nscalars: int) -> kernel:
    """A table from (flags, dtype name) to the address of the kernel of ``rule``."""

    def build(f: Function, flags: tuple, dtype: str) -> None:
        emit(f, rule, flags, dtype, nstates(flags), nscalars)

    build.__name__ = rule.__name__
    build.__doc__ = rule.__doc__
    return kernel(build)
