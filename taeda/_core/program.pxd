"""Programs: launches that are repeated on other memory; see `program.pyx`."""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t

from .memory cimport Storage
from .recorder cimport Step
from .tensor cimport Node, Tensor

cdef enum:
    LINE = 64                # bytes: what addresses are aligned to

cdef enum Place:             # where memory of a program is
    OWN                      # in a storage that the program holds
    GIVEN                    # in the storage of a tensor of the run
    MADE                     # in the storage of a result
    SCRATCH                  # in the memory of the run
    PREPARED                 # in a block that is kept from run to run, and found by the run, see Ready

cdef struct Patch:           # an address that a run updates if its base has moved
    int64_t base
    int64_t offset           # bytes; where the base is GIVEN, from the first element of the tensor on
    char** slot

cdef struct Write:           # writes that a storage counts: one that the program holds, or a numbered tensor's
    PyObject* storage        # NULL if there is a number
    int64_t number, times

cdef class Form:
    cdef Place place
    cdef int64_t index, offset
    cdef int64_t number          # its number in the program
    cdef Tensor like             # of the form, without memory
    cdef readonly object argument   # the argument that is given back itself, its number; or None
    cdef Node node               # the node that made it; its graph has been released
    cdef int nr
    cdef bint leaf_grad, inference

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

cdef class Skip:
    cdef int64_t length      # number of launches

cdef class Program:
    cdef Step* steps
    cdef int64_t* numbers
    cdef char** at               # the pointers of all launches
    cdef list tables             # copies of tables and constants, of class bytearray
    cdef int8_t* flags
    cdef int64_t* flag_ends      # by step: where its flags end
    cdef Patch* patches
    cdef int64_t* first          # by base: the first of its patches
    cdef char** bases            # where each base was at the last run
    cdef int64_t nsteps, npatches, nbases, scratch
    cdef int64_t busy            # whether a thread runs it
    cdef list given              # numbers of tensors of the run
    cdef list held, made         # storages; bytes
    cdef list filled             # (base, offset, content)
    cdef list calls              # (object, address of its table)
    cdef list prepared           # of blocks that are kept: (launch, storage that it reads, Ready); of a plan see there
    cdef Write* writes           # counts of writes
    cdef int64_t nwrites
    cdef list forms              # of the tensors that a run makes or gives back
    cdef object result           # Forms in tuples, lists and dicts, and constants
    cdef int8_t* alone           # by step: whether it runs on this thread alone; NULL if none does
    cdef object clock            # the clock while launches are measured
    cdef readonly list took      # by step: the time when it was last measured
    cdef bint take(self) noexcept
    cdef void leave(self) noexcept
    cdef tuple place_of(self, int64_t base)
    cdef int64_t first_base(self, Place place) noexcept
    cdef void move(self, int64_t b, char* address) noexcept
    cdef list execute(self, list tensors, list prepared)
    cdef bint launch_all(self, list prepared) except -1
    cdef int launch(self, int64_t i) except -1
    cdef int count_writes(self, list tensors) except -1
    cdef list make_forms(self, list tensors, list storages)
    cdef Tensor make_form(self, Form form, list tensors, list storages)
    cdef object give(self, object x, list made)

# A tensor of the form of `t`, without memory; one like it in memory.
cdef Tensor prototype(Tensor t)
