"""Deferred ``cat``."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

# The deferred, contiguous result of ``cat``, of these sizes; None if it should be computed at once. Pointwise ops that
# read it are computed part by part, each from its operand.
cdef Tensor defer_joined(object tensors, int along, int nd, const int64_t* sizes)
