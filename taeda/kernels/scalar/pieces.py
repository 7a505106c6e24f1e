"""Functions by pieces, whose polynomials' coefficients lie in registers: float32 with AVX-512's permutation of two registers.

What bounds a function on numbers in a cache is the count of its vector instructions. A coefficient, looked up among 32 in
two registers, and its multiply-add take 2.2 cycles together (Zen 4, 16 lanes), so polynomials of degree 4 cost little more
than one exponential, and need no division.
"""

from __future__ import annotations

from ..ir import F32, Value
from . import piece_tables
from .basic import MAGIC, SIGNED, abs, at_most, copysign, fma, pick

COUNT = 32


def by_pieces(x: Value) -> bool:
    """Whether functions of ``x`` go by pieces: float32 with AVX-512."""
    return x.type is F32 and x.fn.vector_bytes >= 64 and x.lanes <= 16


def piecewise(name: str, x: Value) -> Value:
    """A function of ``piece_tables`` of ``x``, which must be in one of its pieces; NaN for NaN."""
    width, *rows = getattr(piece_tables, name)
    if width.as_integer_ratio()[0] == 1:  # a power of two: adding a large number rounds to its multiples
        magic = MAGIC[F32] * width
        moved = x + magic
        d = x - (moved - magic)
    else:
        moved = fma(x, 1 / width, MAGIC[F32])
        d = fma(moved - MAGIC[F32], -width, x)
    k = moved.bits(SIGNED[F32])
    *others, last = (pick(row, k) for row in rows)
    result = last
    for c in reversed(others):
        result = fma(result, d, c)
    return result


def settling(name: str, x: Value) -> Value:
    """A function for ``x >= 0`` that is constant from its last piece on."""
    return piecewise(name, at_most(x, getattr(piece_tables, name)[0] * (COUNT - 1)))


def odd(name: str, x: Value) -> Value:
    """An odd function, given for positive numbers and constant from its last piece on."""
    return copysign(settling(name, abs(x)), x)
