"""Traces: see `replay.pyx`; made in `observing.pyx`."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t

from .guard cimport Guard
from .plan cimport Form
from .recorder cimport Step
from .tensor cimport Node, Tensor

cdef struct Patch:           # an address that a replay updates if its base has moved
    int64_t base
    int64_t offset
    char** slot

cdef struct Write:           # writes that a storage counts: one that the trace holds, or a numbered tensor's
    PyObject* storage        # NULL if there is a number
    int64_t number, times

@cython.final
cdef class Skip:
    cdef int64_t length      # number of launches

@cython.final
cdef class Kept(Form):
    cdef int64_t number          # its number in the trace
    cdef Node node               # the node that made it; its graph has been released
    cdef int nr
    cdef bint leaf_grad, inference

@cython.final
cdef class Trace:
    cdef Step* steps
    cdef int64_t* numbers
    cdef char** at               # the pointers of all launches
    cdef list tables             # copies of tables and constants: (address, bytes)
    cdef int8_t* flags
    cdef int64_t* flag_ends      # by step: where its flags end
    cdef Patch* patches
    cdef int64_t* first          # by base: the first of its patches
    cdef char** bases            # where each base was at the last replay
    cdef int64_t nsteps, npatches, nbases, ngiven, nheld, nmade, scratch
    cdef list given              # numbers of tensors: arguments, then gradients
    cdef list held, made         # storages; bytes
    cdef list filled             # (base, offset, content)
    cdef list calls              # (object, address of its table)
    cdef list leaves             # (leaf or number of an argument, None or form of its gradient, its number if GIVEN)
    cdef list grads              # (leaf or number of an argument, form of its gradient at the end)
    cdef list prepared           # (launch, storage that it reads, Ready): blocks that are kept from call to call
    cdef list dropped            # leaves or numbers whose gradients are neither read nor kept: their memory is free
    cdef Write* writes           # counts of writes
    cdef int64_t nwrites
    cdef list forms              # Kept
    cdef object result
    cdef readonly tuple signature
    cdef readonly bytes start    # which gradients exist at the beginning
    cdef Py_ssize_t nargs
    cdef bint busy
    cdef public Guard guard      # checks Python objects; None: they are not checked
    cdef int8_t* alone           # by step: whether it runs on this thread alone; NULL if none does
    cdef object clock            # the clock while launches are measured
    cdef readonly list took      # by step: the time when it was last measured
    cdef object attempt_on(self, list tensors)
    cdef bint differs(self) except -1
    cdef bint fits(self, list tensors) except -1
    cdef object run(self, list tensors)
    cdef int count_writes(self, list tensors) except -1
    cdef int launch(self, int64_t i) except -1
    cdef int64_t launch_of(self, int64_t i) except -1
    cdef bint stands(self, int64_t i) except -1
    cdef void move(self, int64_t b, char* address) noexcept
    cdef Tensor form(self, Kept form, list tensors, list storages)
    cdef object give(self, object x, list made)
