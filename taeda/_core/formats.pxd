"""Memory formats: images whose channels are last in memory."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

cdef bint is_last(Tensor t) noexcept
cdef Tensor in_order(Tensor t, bint last)
cdef Tensor empty_last(int code, int nd, int64_t* sizes)
