"""The CPU random number generator: what other modules of the core may draw from it."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock

cdef class Generator:
    cdef uint32_t state[624]
    cdef int64_t position       # next word of the state; 624 when it is used up
    cdef bint fresh             # seeded, and nothing drawn yet
    cdef uint64_t seeded_with
    cdef bint has_double        # the second half of a pair of normal numbers waits
    cdef double next_double
    cdef bint has_float
    cdef float next_float
    cdef PyThread_type_lock guard
    cdef object __weakref__

# The caller holds the generator: enter() before, leave() after.
cdef int enter(Generator g) except -1
cdef void leave(Generator g) noexcept nogil
cdef uint32_t next32(Generator g) noexcept nogil
cdef uint64_t next64(Generator g) noexcept nogil
cdef double next_unit(Generator g) noexcept nogil
# The generator that an op was given, or the default one.
cdef Generator which(object generator)
