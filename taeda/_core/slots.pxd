"""Slots: memory that a thread has for the time of a piece, for kernels that lay out much."""

from libc.stdint cimport int64_t

from .pool cimport kernel_t
from .tensor cimport Tensor

cdef enum:
    MOST_SLOT = 1 << 23    # bytes that a kernel should ask for at most

cdef struct Slots:
    char* data         # a line per slot that tells whether it is taken, then the slots
    int64_t count, size

# Memory of so many bytes for the time of an op.
cdef Tensor working(int64_t size)
cdef Tensor working_on_host(int64_t size)
cdef Tensor make_slots(Slots* s, int64_t size, int64_t tasks)
# Run a kernel over its tasks, each piece with a slot as the last pointer.
cdef int run_in_slots(Slots* s, kernel_t fn, char** given, int64_t pointers, const int64_t* arg, int64_t args,
                      int64_t tasks, double work) except -1
