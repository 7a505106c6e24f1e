"""Tensors that are joined, and not yet."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

# Tensors joined along a dimension, contiguous and of these sizes, not computed; None where they had better be at once.
# Pointwise ops that read it are computed part by part, each from its operand.
cdef Tensor put_off_joined(object tensors, int along, int nd, const int64_t* sizes)
