"""Slots: memory that a thread has for the time of a piece, for kernels that lay out much."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .dims cimport ceil_div
from .planners cimport IN_SLOT, host_function
from .pool cimport grain_of, kernel_t, launch_work
from .tensor cimport U8, Tensor, address_of, empty_tensor, host_tensor, zero_bytes

from .pool import get_num_threads

cdef enum:
    MOST_SLOT_ARGS = 72
    MOST_SLOT_POINTERS = 16


cdef Tensor working(int64_t size):
    """Memory for the time of an op."""
    return empty_tensor(U8, 1, &size)


cdef Tensor working_on_host(int64_t size):
    """The same, for memory that the host fills and reads."""
    return host_tensor(U8, 1, &size)


cdef Tensor make_slots(Slots* s, int64_t size, int64_t tasks):
    """Slots of ``size`` bytes for at most ``tasks`` tasks; they live as long as the result."""
    s.count, s.size = min(<int64_t>get_num_threads(), tasks), ceil_div(size, 4096) * 4096
    cdef Tensor memory = working(s.count * (s.size + 64))
    s.data = address_of(memory)
    zero_bytes(s.data, s.count * 64)
    return memory


cdef int run_in_slots(Slots* s, kernel_t fn, char** given, int64_t pointers, const int64_t* arg, int64_t args,
                      int64_t tasks, double work) except -1:
    cdef char* ptr[MOST_SLOT_POINTERS + 2]
    cdef int64_t more[MOST_SLOT_ARGS + 3]
    memcpy(ptr + 2, given, pointers * sizeof(char*))
    memcpy(more + 3, arg, args * 8)
    ptr[0], ptr[1] = <char*>fn, s.data
    more[0], more[1], more[2] = s.count, s.size, pointers
    return launch_work(host_function(IN_SLOT), ptr, <int>pointers + 2, more, <int>args + 3, tasks,
                       grain_of(work, tasks), work)
