"""Deferred pointwise ops: the functions that `set_recorder` gets."""

from cpython.object cimport PyObject

from .tensor cimport Op, Tensor

cdef object defer(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target)
cdef int compute_all(list storages) except -1
cdef bint compute_into(Tensor target, Tensor source) except -1
