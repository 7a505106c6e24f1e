"""Functions by pieces, whose polynomials' coefficients lie in registers: float32 with AVX-512's permutation of two
registers (32 pieces), or AVX2's of one (8).

What bounds a function on numbers in a cache is the count of its vector instructions. A coefficient, looked up among 32
in two registers, and its multiply-add take 2.2 cycles together (Zen 4, 16 lanes), so polynomials of degree 4 cost
little more than one exponential, and need no division.
"""

from __future__ import annotations

from ..ir import F32, Value
from .basic import MAGIC, SIGNED, abs, at_most, copysign, fma, pick, select, table_entries
from .coefficients import piece_tables


def by_pieces(x: Value) -> int:
    """How many pieces functions of ``x`` have; 0 where there are none."""
    entries = table_entries(x)
    return 2 * entries if entries == 16 else entries


def _table(name: str, x: Value) -> tuple:
    return getattr(piece_tables, f"{name}_{by_pieces(x)}")


def piecewise(name: str, x: Value, odd: bool = False) -> Value:
    """A function of ``piece_tables`` of ``x``, which must be in one of its pieces; NaN for NaN. ``odd``: see
    :func:`odd`."""
    width, *rows = _table(name, x)
    power = width.as_integer_ratio()[0] == 1  # of two: adding a large number rounds to its multiples
    magic = MAGIC[F32] * width if power else MAGIC[F32]
    moved = x + magic if power else fma(x, 1 / width, magic)
    n, k = moved - magic, moved.bits(SIGNED[F32])
    d = x - n if power else fma(n, -width, x)
    first, *others, last = (pick(row, k) for row in rows)
    if odd:
        first = select(n == 0, d, first)
    result = last
    for c in reversed([first, *others]):
        result = fma(result, d, c)
    return result


def settling(name: str, x: Value, odd: bool = False) -> Value:
    """A function for ``x >= 0`` that is constant from its last piece on."""
    return piecewise(name, at_most(x, _table(name, x)[0] * (by_pieces(x) - 1)), odd)


def odd(name: str, x: Value) -> Value:
    """An odd function, given for positive numbers, of which the first piece adds to ``x``; constant from its last piece
    on."""
    return copysign(settling(name, abs(x), True), x)
