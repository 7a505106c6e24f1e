"""Jumps of the random number generator to states far ahead.

The sequence is serial, but a state further on is a sum of states near by: which ones, `t ** distance` modulo the
characteristic polynomial says.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    WIDTH = 312           # words of 64 bits of a polynomial
    KEPT = 32             # distances whose terms are kept: 40 KiB each at most

cdef int[135] _exponents  # exponents of the characteristic polynomial
cdef bint _is_known = False  # whether they are there yet
cdef dict _jumps = {}


cdef void reduce_square(uint64_t* p, uint64_t* square) noexcept nogil:
    """``p * p`` modulo the characteristic polynomial, over GF(2): bits move apart, then the terms that are too high are
    reduced.
    """
    cdef int64_t i, j, at
    cdef uint64_t x, half
    for i in range(2 * WIDTH):
        half = (p[i >> 1] >> (32 * (i & 1))) & 0xFFFFFFFFu
        half = (half | half << 16) & 0x0000FFFF0000FFFFu
        half = (half | half << 8) & 0x00FF00FF00FF00FFu
        half = (half | half << 4) & 0x0F0F0F0F0F0F0F0Fu
        half = (half | half << 2) & 0x3333333333333333u
        square[i] = (half | half << 1) & 0x5555555555555555u
    for i in range(2 * WIDTH - 1, WIDTH - 1, -1):  # the next highest term is 623 lower, so reduced terms land below
        x = square[i]
        for j in range(134):
            at = i * 64 - DEGREE + _exponents[j]
            square[at >> 6] ^= x << (at & 63)
            if at & 63:
                square[(at >> 6) + 1] ^= x >> (64 - (at & 63))
    put_back(square)
    memcpy(p, square, WIDTH * 8)


cdef void put_back(uint64_t* p) noexcept nogil:
    """The bits of the last word that are beyond the degree."""
    cdef uint64_t x = p[WIDTH - 1] >> (DEGREE & 63)
    cdef int64_t j, at
    p[WIDTH - 1] &= (<uint64_t>1 << (DEGREE & 63)) - 1
    for j in range(134):
        at = _exponents[j]
        p[at >> 6] ^= x << (at & 63)
        if at & 63:
            p[(at >> 6) + 1] ^= x >> (64 - (at & 63))


cdef void find_terms(Jump* found, int64_t distance) noexcept:
    """The terms of ``t ** (distance - 1)``, each one higher: the first word of a state is no sum of others' first
    words."""
    cdef uint64_t p[WIDTH]
    cdef uint64_t square[2 * WIDTH]
    cdef uint64_t carry, x
    cdef int64_t i, bit, at, n = 0, rest, e = distance - 1
    cdef int top = 62
    with nogil:
        memset(p, 0, sizeof(p))
        p[0] = 1
        while top >= 0 and not (e >> top) & 1:
            top -= 1
        while top >= 0:
            reduce_square(p, square)
            if (e >> top) & 1:
                carry = 0
                for i in range(WIDTH):
                    x = p[i]
                    p[i] = x << 1 | carry
                    carry = x >> 63
                put_back(p)
            top -= 1
        found.distance = distance
        for rest in range(16):
            found.starts[rest] = n
            for bit in range(rest, DEGREE + 1, 16):
                at = bit - 1
                if bit and (p[at >> 6] >> (at & 63)) & 1:
                    found.places[n] = <uint16_t>(bit >> 4)
                    n += 1
        found.starts[16] = n


cdef bytes jump_over(int64_t distance):
    """The :class:`Jump` for a distance. The last few are kept (one takes 1.6 ms to find; Zen 4)."""
    global _is_known
    found = _jumps.get(distance)
    if found is not None:
        return found
    if not _is_known:
        from ..kernels import random as source

        for i, exponent in enumerate(source.characteristic()):
            _exponents[i] = exponent
        _is_known = True
    found = PyBytes_FromStringAndSize(NULL, sizeof(Jump))
    find_terms(<Jump*>PyBytes_AS_STRING(found), distance)
    if len(_jumps) >= KEPT:
        _jumps.pop(next(iter(_jumps)), None)
    _jumps[distance] = found
    return found
