"""Distances in a p-norm between all rows of two matrices, and their derivative; no intermediate is larger than the
result.

Lanes are rows of the second matrix, which comes transposed. ``kind`` is the norm: ``"0"`` (how many differ), ``"1"``,
``"2"``, ``"inf"``, or ``"p"`` for any other.
"""

from __future__ import annotations

from .build import kernel
from .dot import fold
from .ir import TYPES, Function, Value
from .scalar import basic, exponential

AT_ONCE = 4  # vectors of distances that are computed together, and columns whose derivatives are


def _zero(f: Function, x: Value) -> Value:
    """Zeros, as many as ``x`` has lanes."""
    return f.const(x.type, 0.0, x.lanes)


def _grown(f: Function, kind: str, total: Value, d: Value, p: Value) -> Value:
    """The sum so far, with a difference ``d`` added."""
    size = basic.abs(d)
    if kind == "0":
        return total + f.select(d != 0, 1.0, _zero(f, d))
    if kind == "inf":
        return basic.maximum(total, size)
    return total + (size if kind == "1" else d * d if kind == "2" else exponential.pow(size, p))


@kernel
def distances(f: Function, dtype: str, kind: str) -> None:
    """``out[i, j]``: the norm of ``x[i] - y[:, j]``.

    Pointers: out, x, y. ``arg = [columns of y, rows of y, p, 1 / p]``. The range counts rows of x.
    """
    t = TYPES[dtype]
    lanes, count, width = f.lanes(t), f.size(0), f.size(1)
    p, root = f.scalar(2, t), f.scalar(3, t)
    for column, vectors, mask in f.strips(0, count, lanes, AT_ONCE):
        with f.loop(f.begin, f.end) as R:
            x = f.offset(f.data(1), R.index * width * t.bytes)
            with f.loop(0, width, carry=[f.const(t, 0.0, lanes)] * vectors) as K:
                one = f.splat(f.load(f.offset(x, K.index * t.bytes), t), lanes)
                y = f.offset(f.data(2), (K.index * count + column) * t.bytes)
                others = [f.load(f.offset(y, i * lanes * t.bytes), t, lanes, mask) for i in range(vectors)]
                K.carry = [_grown(f, kind, total, one - o, p) for total, o in zip(K.carry, others, strict=True)]
            out = f.offset(f.data(0), (R.index * count + column) * t.bytes)
            for i, total in enumerate(K.carry):
                if kind == "2":
                    total = f.unary("sqrt", total)
                elif kind == "p":
                    total = exponential.pow(total, root)
                f.store(f.offset(out, i * lanes * t.bytes), total, mask)


@kernel
def distance_pull(f: Function, dtype: str, kind: str) -> None:
    """``out[i, k] = sum over j of w[i, j] * slope(x[i, k] - y[k, j])``, the slope of the p-norm but for a power of it.

    The slope is ``sign(d) |d| ** (p - 1)``; for the largest difference, the sign of all that are as large. Pointers:
    out, x, y, w, and the distances for ``"inf"``. ``arg = [columns of y, rows of y, p - 1]``. The range counts rows of
    x.
    """
    t = TYPES[dtype]
    lanes, count, width = f.lanes(t), f.size(0), f.size(1)
    power = f.scalar(2, t)
    whole = count / lanes * lanes

    def slope(d: Value, most: Value | None) -> Value:
        if kind == "2":
            return d
        zero = _zero(f, d)
        sign = f.select(d != 0, basic.copysign(zero + 1.0, d), zero)
        if kind == "p":
            return f.select(d != 0, basic.copysign(exponential.pow(basic.abs(d), power), d), zero)
        return sign if most is None else f.select(basic.abs(d) == most, sign, zero)

    with f.loop(0, width, AT_ONCE) as C, f.loop(f.begin, f.end) as R:
        last = width - 1
        columns = [f.select(C.index + i < width, C.index + i, last) for i in range(AT_ONCE)]
        ones = [f.splat(f.load(f.offset(f.data(1), (R.index * width + k) * t.bytes), t), lanes) for k in columns]
        row = R.index * count

        def step(j: Value, totals: list[Value], mask: Value | None) -> list[Value]:
            w = f.load(f.offset(f.data(3), (row + j) * t.bytes), t, lanes, mask)
            most = None
            if kind == "inf":
                most = f.load(f.offset(f.data(4), (row + j) * t.bytes), t, lanes, mask)
            made = []
            for k, one, total in zip(columns, ones, totals, strict=True):
                y = f.load(f.offset(f.data(2), (k * count + j) * t.bytes), t, lanes, mask)
                added = w * slope(one - y, most)
                made.append(total + (added if mask is None else f.select(mask, added, _zero(f, added))))
            return made

        with f.loop(0, whole, lanes, carry=[f.const(t, 0.0, lanes)] * AT_ONCE) as L:
            L.carry = step(L.index, list(L.carry), None)
        with f.loop(whole, count, lanes, carry=list(L.carry)) as L:  # at most once
            L.carry = step(L.index, list(L.carry), f.first(count - L.index, lanes))
        for i, total in enumerate(L.carry):
            with f.when(C.index + i < width):
                f.store(f.offset(f.data(0), (R.index * width + C.index + i) * t.bytes), fold([total]))
