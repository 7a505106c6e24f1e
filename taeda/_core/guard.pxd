"""Keys of calls and forms of tensors, with which traces (`replay.pyx`) recognise calls and gradients."""

cimport cython

from .tensor cimport Tensor

@cython.final
cdef class Guard:
    cdef list dicts, sequences, sets, cells, tensors
    cdef dict storages
    cpdef object differs(self)

cpdef object key_of(tuple args, dict kwargs)
cdef bytes form_of(Tensor t)
cdef bint has_form(Tensor t, bytes form) noexcept
