"""Forms of tensors, as traces (`replay.pyx`) keep those of gradients."""

from .tensor cimport Tensor

cdef bytes form_of(Tensor t)
cdef bint has_form(Tensor t, bytes form) noexcept
