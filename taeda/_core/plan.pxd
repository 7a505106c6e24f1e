"""Plans: what a trace of a whole call (`replay.pyx`) is made of as well."""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t

from .memory cimport Storage
from .recorder cimport Step
from .tensor cimport Tensor

cdef enum:
    LINE = 64                # bytes: what addresses are aligned to
    MOST_STORAGES = 512      # of the arguments, and of the results
    MOST_WORDS = 512         # of the key of an op's plan
    MOST_POINTERS = 512      # of a launch
    MOST_PREPARED = 4        # blocks of a plan that are kept from run to run

cdef enum Place:             # where a block of a plan is
    FIXED                    # an address that does not change: a kernel, NULL, a table of the plan's own
    GIVEN                    # in the storage of an argument
    MADE                     # in the storage of a result
    SCRATCH                  # in the memory of the run
    PREPARED                 # in a block that is kept from run to run, see Ready

cdef class Form:
    cdef Place place
    cdef int64_t index, offset
    cdef Tensor like         # of the form, without memory
    cdef readonly object argument   # the argument that is given back itself, its number; or None

cdef class Fields:
    cdef object kind
    cdef tuple items

cdef class Ready:            # a block that a launch computes from other memory, while that is not written to
    cdef Storage memory
    cdef int64_t version     # of what it was computed from; -1 where it was not
    cdef int64_t before      # the version before
    cdef char* data          # and where that was
    cdef bint stands(self, Storage source) noexcept
    cdef void note(self, Storage source) noexcept

cdef Ready make_ready(int64_t nbytes)

cdef struct Pointer:
    Place place
    int64_t index            # of the storage
    int64_t offset           # bytes; of FIXED, the address

cdef class Plan:
    cdef Step* steps
    cdef Pointer* pointers
    cdef int64_t* numbers
    cdef int8_t* flagged     # for each step whether one of its pointers is a flag
    cdef int64_t nsteps, npointers, nnumbers
    cdef int64_t scratch, nflags
    cdef list made           # bytes of each result's storage
    cdef list filled         # (whether in a result, its number, offset, table): what is there before the launches
    # for each storage of the arguments: (number of an argument in it, bytes before its first element)
    cdef list given
    cdef list prepared       # of each block that is kept: (the launch that computes it, number in `given`, bytes)
    cdef list writes         # (number of an argument, how many in-place writes its storage counts)
    cdef list held           # storages that fixed addresses are in
    cdef list tables         # of the body's own
    cdef list addresses      # where those storages lay
    cdef object result       # Forms in tuples and lists, and constants
    cdef bytes key           # of the forms of the arguments
    cdef object repeat(self, list tensors)
    cdef int count_writes(self, list tensors) except -1
    cdef Storage source(self, int64_t i, list tensors)
    cdef list look_up(self, list tensors, char** bases)
    cdef object give(self, object x, list tensors, list storages)

# The result of `repeat` if a kernel met a bad value.
cdef object BAD

cdef struct Key:             # what a call depends on, besides what its tensors hold
    int64_t* words
    int64_t n, room          # how many there are, and may be
    int64_t ntensors
    PyObject** tensors       # in order

cdef bint add_word(Key* key, int64_t tag, int64_t value) noexcept
cdef bint add_tensor(Key* key, Tensor t) noexcept
# Whether the argument is of a kind that a plan can be kept by.
cdef bint add_argument(Key* key, PyObject* x) except -1
# The key of tensors alone; None where they are not of a kind that there are plans for.
cdef bytes form_key(list tensors)
# A tensor of the form of `t`, without memory; one like it in memory.
cdef Tensor prototype(Tensor t)
cdef Tensor placed(Tensor like, Storage storage, char* first)
