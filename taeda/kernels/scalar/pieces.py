"""Piecewise polynomials whose coefficients are in registers: float32 with AVX-512's permutation of two registers (32
pieces), or AVX2's of one (8).

A function of numbers in the cache is bound by its number of vector instructions. Looking up a coefficient among 32 in
two registers, with its multiply-add, takes 2.2 cycles (Zen 4, 16 lanes). So polynomials of degree 4 cost little more
than one exponential, and need no division.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import F32, Value
from .basic import MAGIC, SIGNED, abs, at_most, copysign, fma, pick, select, table_entries
from .coefficients import piece_tables


def by_pieces(x: Value) -> int:
    """The number of pieces that functions of ``x`` have; 0 if the target has no such instruction."""
    entries = table_entries(x)
    return 2 * entries if entries == 16 else entries


def _table(name: str, x: Value) -> tuple:
    return getattr(piece_tables, f"{name}_{by_pieces(x)}")


def piecewise(name: str, x: Value, odd: bool = False) -> Value:
    """A function of ``piece_tables`` at ``x``, which must be in one of its pieces; NaN for NaN. ``odd``: see
    :func:`odd`."""
    width, *rows = _table(name, x)
    power = width.as_integer_ratio()[0] == 1  # a power of two: adding a large number rounds to its multiples
    magic = MAGIC[F32] * width if power else MAGIC[F32]
    moved = x + magic if power else fma(x, 1 / width, magic)
    n, k = moved - magic, moved.bits(SIGNED[F32])
    d = x - n if power else fma(n, -width, x)
    first, *others = (pick(row, k) for row in rows)
    return horner(d, [select(n == 0, d, first) if odd else first, *others])


def around_middle(rows: Sequence[Sequence[float]], piece: Value, x: Value) -> tuple[Value, Value]:
    """A function of ``x`` as a sum of two: its value at the middle of the ``piece``, and the change from there. The
    first of ``rows`` has the middles, the others the coefficients.
    """
    middle, first, *others = (pick(row, piece) for row in rows)
    d = x - middle
    return first, d * horner(d, others)


def horner(x: Value, coefficients: Sequence[Value]) -> Value:
    """``c0 + c1 x + c2 x^2 + ...`` of coefficients that were picked."""
    result = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = fma(result, x, c)
    return result


def settling(name: str, x: Value, odd: bool = False) -> Value:
    """A function for ``x >= 0`` that is constant from its last piece on."""
    return piecewise(name, at_most(x, _table(name, x)[0] * (by_pieces(x) - 1)), odd)


def odd(name: str, x: Value) -> Value:
    """An odd function, given for positive numbers, whose first piece is added to ``x``; constant from its last piece
    on."""
    return copysign(settling(name, abs(x), True), x)
