"""Making plans, and the memory of their blocks: what a trace of a whole call (`replay.pyx`) asks for as well."""

from libc.stdint cimport int64_t

from .plan cimport Plan
from .tensor cimport Tensor

cdef struct Room:            # of a block that a run has memory for
    int64_t block, first, last   # the launches that it is given to
    int64_t nbytes, offset
    int64_t bin              # 0: in that memory; else one more than the number of the block of a result that it lies in

# The plan of a function of these arguments, among which are the tensors.
cdef Plan record(object function, list args, list tensors)
cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept
cdef int64_t arrange(Room* rooms, int64_t n, int64_t begin) except -1
cdef int arrange_in(Room* rooms, int64_t n, Room* bins, int64_t nbins) except -1
