"""Pointwise ops that are put off: what `set_recorder` is given."""

from cpython.object cimport PyObject

from .tensor cimport Op, Tensor

cdef object put_off(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target)
cdef int settle_all(list storages) except -1
cdef bint compute_into(Tensor target, Tensor source) except -1
