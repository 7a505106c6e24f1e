"""The register tile of products, and small pieces that many kernels share.

A tile keeps ``rows x (vectors * lanes)`` accumulators in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ir import TYPES, Function, Value


@dataclass(frozen=True)
class Shape:
    """The register tile of one target: ``rows x (vectors * lanes)`` accumulators, and the panel widths in vectors."""

    rows: int
    widths: tuple[int, ...]

    #: Items between one k and the next in packed A: ``rows`` rounded up to a power of two, so that squares transpose.
    pitch = 8

    @property
    def vectors(self) -> int:
        return self.widths[0]


def tile_shape(vector_bytes: int) -> Shape:
    """The tile that fills the registers: 24 accumulators of 32 (AVX-512, NEON), 12 of 16 (AVX2, SSE)."""
    if vector_bytes < 16:  # one element at a time, on devices: what counts is how much code there is
        return Shape(6, (1,))
    if vector_bytes == 64 or vector_bytes == 16:
        return Shape(6, (4, 2, 1))
    return Shape(6, (2, 1))


def prefetches_a(vector_bytes: int) -> bool:
    """Whether a tile prefetches the next rows of A: with AVX2 a step has half the multiplications to hide that."""
    return vector_bytes != 32


def panel(dtype: str, vector_bytes: int) -> int:
    """Columns of a full panel."""
    return tile_shape(vector_bytes).vectors * max(vector_bytes // TYPES[dtype].bytes, 1)


def multiply_add(f: Function, a: Value, b: Value, c: Value) -> Value:
    """``a * b + c``, fused for floats; integers wrap."""
    return f.fma(a, b, c) if a.type.kind == "f" else a * b + c


def smaller(f: Function, a: Value, b: Value | int) -> Value:
    """The smaller of two integers."""
    return f.select(a < b, a, b)


def transpose(rows: list[Value]) -> list[Value]:
    """Transpose every square of ``len(rows)`` lanes across the vectors, in log2(len(rows)) rounds of shuffles."""
    n, lanes = len(rows), rows[0].lanes
    step = 1
    while step < n:
        # Swap the off-diagonal blocks of every 2x2 arrangement of step x step blocks.
        low = [j if not j & step else lanes + (j ^ step) for j in range(lanes)]
        high = [(j ^ step) if not j & step else lanes + j for j in range(lanes)]
        out = list(rows)
        for i in range(n):
            if not i & step:
                out[i], out[i | step] = rows[i].shuffle(low, rows[i | step]), rows[i].shuffle(high, rows[i | step])
        rows = out
        step *= 2
    return rows


def transpose_halves(rows: list[Value]) -> list[Value]:
    """Transpose the 4 x 4 squares in both halves of four registers of eight: two rounds of one x86 instruction each."""
    a, b, c, d = rows
    low, high = [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]
    left, right = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    pairs = [(a.shuffle(pick, b), c.shuffle(pick, d)) for pick in (low, high)]
    return [x.shuffle(pick, y) for x, y in pairs for pick in (left, right)]
