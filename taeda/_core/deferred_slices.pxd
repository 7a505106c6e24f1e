"""Deferred ops for a part of a deferred op's result, or for the same ops on other operands."""

from libc.stdint cimport int64_t

from .deferred cimport Deferred, Kernel
from .tensor cimport Tensor

cdef Deferred slice_of(Deferred r, Tensor t, Tensor out)
cdef Deferred remade(Deferred r, Tensor t, const int64_t* start, Kernel* k, list leaves, int which, dict made)
# The operands of a pointwise result, and the same function of others: for ops that read few of its elements.
cdef list leaves_of(Tensor x)
cdef Tensor computed_from(Tensor x, list leaves, Tensor like)
