"""Reads and writes by index, for other modules of the core."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

cdef enum:
    GET, PUT, ADD, MUL, MIN, MAX    # the operation at an indexed place

# Where a launch writes into `flag`, of at most two words: there itself, or in memory of this thread's place.
# `flag_back` ends it. Where the place runs behind the program, nothing comes back: it raises `error` (devices.pxd).
cdef char* flag_there(int64_t* flag, int64_t nbytes, tuple error) except NULL
cdef int flag_back(char* there, int64_t* flag, int64_t nbytes) except -1
# The index as contiguous int64.
cdef Tensor as_index(Tensor t)
# Whether what launches find in this thread's place is raised later. Then launches that write look at it themselves.
cdef bint is_late() noexcept
# Whether all of a contiguous int64 index is within [0, size) ([-size, size) with `wrap`). If the check is deferred, the
# result is true, and `found`, if not NULL, is the address of its later result. Launches that write get this address,
# and write nothing if the check fails.
cdef bint in_range(Tensor index, int64_t size, bint wrap, tuple error, char** found) except -1
cdef tuple OUT_OF_RANGE, OUT_OF_BOUNDS   # errors: an IndexError and a RuntimeError
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
