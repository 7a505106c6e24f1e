"""The best that the machine can do: the kernels by which ``taeda.profiler`` measures it."""

from __future__ import annotations

from .build import kernel
from .ir import TYPES, Function
from .tile import multiply_add, tile_shape


@kernel
def stream(f: Function, nontemporal: bool) -> None:
    """Copy ``[bytes, times]`` from the second pointer to the first; each task has its own part of both."""
    t, lanes = TYPES["float32"], f.lanes(TYPES["float32"])
    step, unroll = lanes * t.bytes, 4
    size, times = f.size(0), f.size(1)
    with f.loop(f.begin, f.end) as T, f.loop(0, times):
        to, source = f.offset(f.data(0), T.index * size), f.offset(f.data(1), T.index * size)
        with f.loop(0, size, step * unroll) as L:
            values = [f.load(f.offset(source, L.index + i * step), t, lanes) for i in range(unroll)]
            for i, value in enumerate(values):
                f.store(f.offset(to, L.index + i * step), value, nontemporal=nontemporal)


@kernel
def read(f: Function) -> None:
    """Add up ``[bytes, times]`` from the second pointer, each task its own part; the first pointer gets the sums."""
    t, lanes = TYPES["float32"], f.lanes(TYPES["float32"])
    step, unroll = lanes * t.bytes, 8
    size, times = f.size(0), f.size(1)
    with f.loop(f.begin, f.end) as T:
        source = f.offset(f.data(1), T.index * size)
        with f.loop(0, times, carry=[f.const(t, 0, lanes)] * unroll) as R:
            with f.loop(0, size, step * unroll, carry=R.carry) as L:
                values = [f.load(f.offset(source, L.index + i * step), t, lanes) for i in range(unroll)]
                L.carry = tuple(a + b for a, b in zip(L.carry, values, strict=True))
            R.carry = L.carry
        total = R.carry[0]
        for value in R.carry[1:]:
            total = total + value
        f.store(f.offset(f.data(0), T.index * step), total)


@kernel
def tile_rate(f: Function, dtype: str) -> None:
    """The inner loop of the matrix product's register tile on operands in the first-level cache, ``[k, times]``.

    Pointers: the sums (stored so that they are computed), A packed, B packed. Each task computes its own tile.
    """
    t, shape = TYPES[dtype], tile_shape(f.vector_bytes)
    lanes = f.lanes(t)
    rows, vectors = shape.rows, shape.vectors
    k, times = f.size(0), f.size(1)
    zero = f.const(t, 0, lanes)
    with f.loop(f.begin, f.end) as T:
        with f.loop(0, times, carry=[zero] * (rows * vectors)) as R:
            with f.loop(0, k, carry=[f.data(1), f.data(2), *R.carry]) as L:
                at_a, at_b, *acc = L.carry
                row = [f.load(f.offset(at_b, v * lanes * t.bytes), t, lanes) for v in range(vectors)]
                for i in range(rows):
                    x = f.splat(f.load(f.offset(at_a, i * t.bytes), t), lanes)
                    for v in range(vectors):
                        acc[i * vectors + v] = multiply_add(f, x, row[v], acc[i * vectors + v])
                L.carry = [f.offset(at_a, shape.pitch * t.bytes), f.offset(at_b, vectors * lanes * t.bytes), *acc]
            R.carry = list(L.carry[2:])
        out = f.offset(f.data(0), T.index * (rows * vectors * lanes * t.bytes))
        for i, value in enumerate(R.carry):
            f.store(f.offset(out, i * lanes * t.bytes), value)
