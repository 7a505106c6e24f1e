"""Jumps of the random number generator to states far ahead."""

from libc.stdint cimport int64_t, uint16_t

cdef enum:
    DEGREE = 19937

cdef struct Jump:         # the terms of a polynomial: in units of 16 words, by remainder
    int64_t distance
    int64_t starts[17]
    uint16_t places[DEGREE]

# The :class:`Jump` for a distance in words.
cdef bytes jump_over(int64_t distance)
