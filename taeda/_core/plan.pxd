"""Plans, and keys of calls; see `plan.pyx`."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from .program cimport Program
from .tensor cimport Tensor

cdef enum:
    MOST_STORAGES = 512      # of the arguments
    MOST_WORDS = 512         # of the key of an op's plan

cdef class Plan(Program):    # `prepared`: (launch, number in `given` of what it reads, bytes)
    cdef bytes key           # of the forms of the arguments
    cdef object repeat(self, list tensors)
    cdef object results(self, list tensors)
    cdef list look_up(self, list tensors)

# The result of `repeat` if it did nothing, or a kernel met a bad value.
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
# What a table, of values by keys, has for the key, if that is at hand; what keeps it there.
cdef object at_hand(Key* key, dict table)
cdef int keep_at_hand(Key* key, dict table, bytes name, object value) except -1
# The key of tensors alone; None where they are not of a kind that there are plans for.
cdef bytes form_key(list tensors)
