"""Traces: see `replay.pyx`; made in `trace_record.pyx`."""

cimport cython

from .guard cimport Guard
from .program cimport Program
from .tensor cimport Tensor

@cython.final
cdef class Trace(Program):
    cdef list leaves             # (leaf or number of an argument, None or form of its gradient, its number if GIVEN)
    cdef list grads              # (leaf or number of an argument, form of its gradient at the end)
    cdef list dropped            # leaves or numbers whose gradients are neither read nor kept: their memory is free
    cdef readonly tuple signature
    cdef readonly bytes start    # which gradients exist at the beginning
    cdef Py_ssize_t nargs
    cdef public Guard guard      # checks Python objects; None: they are not checked
    cdef object attempt_on(self, list tensors)
    cdef bint differs(self) except -1
    cdef bint fits(self, list tensors) except -1
    cdef object run(self, list tensors)
