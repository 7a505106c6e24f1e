"""Making plans, and the memory of their blocks; also used for traces of whole calls (`replay.pyx`)."""

from libc.stdint cimport int64_t

from .plan cimport Plan
from .tensor cimport Tensor

cdef struct Room:            # of a block in the memory of a run
    int64_t block, first, last   # the launches that use it
    int64_t nbytes, offset
    int64_t bin              # 0: in the workspace; else one more than the number of the result's block that has it

# The plan of a function of these arguments, which include the tensors.
cdef Plan record(object function, list args, list tensors)
cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept
cdef int64_t arrange(Room* rooms, int64_t n, int64_t begin) except -1
cdef int arrange_in(Room* rooms, int64_t n, Room* bins, int64_t nbins) except -1
