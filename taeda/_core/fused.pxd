"""Kernels of several pointwise ops."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from .deferred cimport Deferred, Kernel, Source
from .tensor cimport Tensor

cdef int generation       # the mark of deferred ops that `gather` has visited since `start`
# The ops and operands of a kernel for `r`; False if it has no room.
cdef int start(Kernel* k) noexcept
cdef bint gather(Kernel* k, Deferred r) noexcept
cdef int gather_all(Kernel* k, Deferred root) except -1
cdef int leaf_of(Kernel* k, Source* s, int nd) noexcept
cdef int measure(Deferred r, PyObject** parts) except -1
cdef bint join(Kernel* k, Deferred r) except -1
cdef uint64_t places_of(Deferred r) noexcept
cdef bint shares(Kernel* k, Deferred r) noexcept
cdef int readings(Kernel* k, Deferred r) noexcept
cdef void write_along(Kernel* k) noexcept
cdef bint take_over(Kernel* k, int which) except -1
cdef int end_taking(Kernel* k, bint computed) except -1
# Run a kernel: with the results of `write_along`, or into `target` alone.
cdef int run(Kernel* kernel) except -1
cdef int launch(Kernel* k, Tensor target) except -1
# Keys of kernels, and the arguments of their builder.
cdef int describe(Kernel* k, int64_t* words) noexcept
cdef int numbers_of(Kernel* k, int64_t* slots) noexcept
cdef int place_of(Kernel* k, PyObject* node) noexcept
cdef list nodes_of(Kernel* k)
# For the watcher.
cdef bint is_watched() noexcept
cdef int tell(Kernel* k, list outs, Deferred root) except -1
cdef int tell_watcher(list names, int results, int64_t read, int64_t written, int64_t count) except -1
cdef int64_t bytes_read(Kernel* k, int nd, const int64_t* sizes) noexcept
cdef list names_of(Kernel* k)
