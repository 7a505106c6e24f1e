"""Plans: what a trace of a whole call (`replay.pyx`) is made of as well."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from .memory cimport Storage
from .tensor cimport Tensor

cdef enum:
    LINE = 64                # bytes: what addresses are aligned to
    MOST_STORAGES = 64       # of the arguments
    MOST_WORDS = 512         # of a key

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

cdef struct Key:             # what a call depends on, besides what its tensors hold
    int64_t* words
    int64_t n
    int64_t ntensors
    PyObject** tensors       # in order

cdef struct Room:            # of a block that a run has memory for
    int64_t block, first, last   # the launches that it is given to
    int64_t nbytes, offset
    int64_t bin              # 0: in that memory; else one more than the number of the block of a result that it lies in

cdef bint add_word(Key* key, int64_t tag, int64_t value) noexcept
# Whether the argument is of a kind that a plan can be kept by.
cdef bint add_argument(Key* key, PyObject* x) except -1
cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept
cdef int64_t arrange(Room* rooms, int64_t n, int64_t begin) except -1
cdef int arrange_in(Room* rooms, int64_t n, Room* bins, int64_t nbins) except -1
# A tensor of the form of `t`, without memory; one like it in memory.
cdef Tensor prototype(Tensor t)
cdef Tensor placed(Tensor like, Storage storage, char* first)
