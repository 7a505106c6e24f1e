"""Resampling along one dimension: each output is a short weighted sum of inputs, given by a table of taps.

``out[a, o, b] = sum_t weight[t, o] * in[a, index[t, o], b]``. Interpolation of any kind is this, and so is its gradient, with
the transposed table.

``ptr = [out, in, index, weight]``: int64 indices and float64 weights, tap-major.
``arg = [outputs, inputs, inner, taps]``. The parallel dimension is ``a`` where ``inner`` is 1 (the last dimension: lanes run
over the outputs, inputs are gathered), else ``a * outputs`` (lanes run over ``b``).
"""

from __future__ import annotations

from .build import kernel
from .ir import BF16, F16, F32, F64, I64, TYPES, Function, Type, Value


def _compute(t: Type) -> Type:
    return F32 if t in (F16, BF16) else t


def _args(f: Function) -> list[Value]:
    return [f.load(f.offset(f.arg, 8 * i), I64) for i in range(4)]


@kernel
def last(f: Function, dtype: str) -> None:
    """Along the last dimension."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = min(f.lanes(work), f.lanes(F64) * 2)
    outputs, inputs, _, taps = _args(f)
    out, src, index, weight = (f.data(i) for i in range(4))
    with f.loop(f.begin, f.end) as row:
        here = f.offset(src, row.index * inputs * t.bytes)
        there = f.offset(out, row.index * outputs * t.bytes)
        with f.loop(f.i64(0), outputs, lanes) as o:
            mask = f.first(outputs - o.index, lanes)
            with f.loop(f.i64(0), taps, 1, [f.const(work, 0, lanes)]) as tap:
                at = (tap.index * outputs + o.index) * 8
                offsets = f.load(f.offset(index, at), I64, lanes, mask) * t.bytes
                w = f.load(f.offset(weight, at), F64, lanes, mask).to(work)
                x = f.gather_at(here, offsets, t, mask).to(work)
                tap.carry = (f.fma(w, x, tap.carry[0]),)
            f.store(f.offset(there, o.index * t.bytes), tap.carry[0].to(t), mask)


@kernel
def outer(f: Function, dtype: str) -> None:
    """Along any other dimension."""
    t = TYPES[dtype]
    work = _compute(t)
    lanes = f.lanes(work)
    outputs, inputs, inner, taps = _args(f)
    out, src, index, weight = (f.data(i) for i in range(4))
    with f.loop(f.begin, f.end) as row:
        a, o = row.index / outputs, row.index % outputs
        here = f.offset(src, a * inputs * inner * t.bytes)
        there = f.offset(out, row.index * inner * t.bytes)

        def block(at: Value, mask: Value | None) -> None:
            with f.loop(f.i64(0), taps, 1, [f.const(work, 0, lanes)]) as tap:
                entry = (tap.index * outputs + o) * 8
                line = f.load(f.offset(index, entry), I64) * inner + at
                w = f.splat(f.load(f.offset(weight, entry), F64).to(work), lanes)
                x = f.load(f.offset(here, line * t.bytes), t, lanes, mask).to(work)
                tap.carry = (f.fma(w, x, tap.carry[0]),)
            f.store(f.offset(there, at * t.bytes), tap.carry[0].to(t), mask)

        whole = inner - inner % lanes
        with f.loop(f.i64(0), whole, lanes) as b:
            block(b.index, None)
        with f.when(whole < inner):
            block(whole, f.first(inner - whole, lanes))
