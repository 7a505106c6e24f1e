"""What calls depend on, and forms of tensors, as traces (`replay.pyx`) keep those of gradients."""

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
