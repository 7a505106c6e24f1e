"""Reads and writes by index, for other modules of the core."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

cdef enum:
    GET, PUT, ADD, MUL, MIN, MAX    # what to do at an indexed place

# Where a launch writes into `flag`: there itself, or in memory of this thread's place. `flag_back` ends it.
cdef char* flag_there(int64_t* flag, int64_t nbytes) except NULL
cdef int flag_back(char* there, int64_t* flag, int64_t nbytes) except -1
# The index as contiguous int64.
cdef Tensor as_index(Tensor t)
# Whether all of a contiguous int64 index is within [0, size) ([-size, size) with `wrap`).
cdef bint in_range(Tensor index, int64_t size, bint wrap) except -1
# far[..., index, ...] to or from near; `indices` are contiguous int64 tensors of one shape. Raises IndexError.
cdef int move_rows(Tensor far, Tensor near, list indices, int first, int action, bint wrap) except -1
# A new tensor of far[..., index, ...].
cdef Tensor take_rows(Tensor source, list indices, int first, bint wrap)
# Gather or scatter along a dimension at an index of integers; False where one is out of range.
cdef bint move_along(Tensor far, Tensor near, Tensor index, int dim, int action) except -1
# Coordinates of the true elements, as rows.
cdef Tensor positions_of(Tensor mask, Tensor starts=*)
# The elements where the mask, of the same shape, is true.
cdef Tensor select_where(Tensor source, Tensor mask, Tensor starts=*)
