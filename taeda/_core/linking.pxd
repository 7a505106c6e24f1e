"""Making programs; see `linking.pyx`."""

from libc.stdint cimport int64_t

from .memory cimport Storage
from .program cimport Form, Program
from .recorder cimport Recorder
from .tensor cimport Tensor

cdef struct Room:            # of a block in the memory of a run
    int64_t block, first, last   # the launches that use it
    int64_t nbytes, offset
    int64_t bin              # 0: in the workspace; else one more than the number of the result's storage that has it

cdef class Linker:
    cdef Program program
    cdef dict forms              # by the id of their tensor
    cdef list alive              # tensors of the forms
    cdef dict given              # id of a storage -> its number among those of tensors of a run
    cdef dict held               # id of a storage -> its number among those that the program holds
    cdef dict made               # number of a block -> number of its storage
    cdef dict used               # number of that storage -> the first launch that uses it
    cdef dict ready              # number of a prepared block -> its place and number there
    cdef dict copies             # number of a CONSTANT -> the storage of its copy
    cdef dict order              # number of a block -> its number in order of first use
    cdef list patches            # (place, index, offset, address of the slot)
    cdef list signature          # what the launches do: another call with the same does the same
    cdef list writes             # (storage from before the call, how many it counts)
    cdef Room* rooms
    cdef int64_t* room_of        # by block: one more than the number of its room
    cdef int64_t nrooms
    cdef object describe(self, Recorder* r, object x)
    cdef object describe_tensor(self, Recorder* r, Tensor t)
    cdef Form new_form(self, Tensor t)
    cdef int place_made(self, Recorder* r, Form form, Tensor t) except -1
    cdef int64_t hold(self, Storage storage) except -1
    cdef int link(self, Recorder* r) except -1
    cdef int64_t add_step(self, Recorder* r, int64_t i, int64_t flags) except -1
    cdef bint is_counted(self, Recorder* r, int64_t i) noexcept
    cdef char* copy(self, const char* data, int64_t nbytes) except NULL
    cdef char* add_table(self, Recorder* r, int64_t i, int64_t found) except NULL
    cdef int add_place(self, Recorder* r, int64_t i, int64_t found, char* address, char** slot) except -1
    cdef bint add_given(self, Recorder* r, int64_t found, char* address, char** slot) except -1
    cdef int prepare(self, Recorder* r, int64_t i, int64_t made) except -1
    cdef int fill(self, Recorder* r) except -1
    cdef int use_results(self, Recorder* r) except -1
    cdef int sort_patches(self) except -1
    cdef int count_writes(self) except -1

# Bytes that the elements of a tensor take before its first element, and from there on.
cdef void extent(Tensor t, int64_t* low, int64_t* high) noexcept
