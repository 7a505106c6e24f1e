"""Records of the launches of a thread that plans or is observed, and of their memory."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef enum Purpose:
    MEMORY      # a storage's, or for the time of an op
    FLAG        # words of the caller's that a kernel writes to where it meets bad values; zeros before, and else after
    HELD        # a tensor's on the CPU that is not among the arguments: a table that is kept, a parameter
    CONSTANT    # a table that the body has filled, from sizes and strides, and that is only read
    NUMBERS     # a block that the body has filled with numbers that it was given, and that may be written to
    TABLE       # the caller's own, for the next launch that is given it: rows of addresses and then numbers


cdef struct Block:
    char* data
    int64_t nbytes
    int64_t made         # launches before it was made
    int64_t gone         # launches before it was given up; -1 while it is in use
    Purpose purpose
    PyObject* owner      # the storage of HELD memory; a reference
    bint used            # whether a launch was given it
    bint prepared        # one launch computes it, from blocks that it only reads, and no other launch writes to it
    char* content        # observed thread: the block's old contents, if it had any
    int64_t width, naddresses   # of a TABLE: words of a row, and how many of them are addresses
    int64_t* found       # and the blocks that those are in


cdef struct Step:        # a launch
    void* kernel         # NULL: a call of Python, see note_call
    int64_t pointers, npointers   # the first of its pointers, and how many there are
    int64_t numbers, nnumbers     # likewise its arguments
    int64_t total, grain
    bint small


cdef struct Recorder:
    Block* blocks
    Step* steps
    char** pointers
    int64_t* found       # for each pointer the number of the block that it is in; -1 for none
    int64_t* numbers
    int64_t* live        # numbers of the blocks in use, by address
    int64_t* own         # numbers of the FLAGs and TABLEs that no launch was given yet
    int64_t nlive, nown, room_found, room_live, room_own
    int64_t nblocks, nsteps, npointers, nnumbers
    int64_t room_blocks, room_steps, room_pointers, room_numbers
    const char* refused  # why this thread's work cannot be repeated from the launches kept; NULL while it can
    bint observing       # work is done as well as kept
    bint dry             # kernels are not run, so memory is undefined
    PyObject* calls      # arguments of note_call, a list; a reference
    PyObject* place      # where the refusal came from, as `on_refusal` has told; a reference, or NULL

# This thread's, NULL where it keeps nothing.
cdef Recorder* current() noexcept nogil
# Keep what this thread plans from now on, or with `observing` what it does. Raises if it already does so.
cdef Recorder* begin_recording(bint observing=*) except NULL
cdef void end_recording() noexcept
# Do work that is kept otherwise, or is not observed. Returns the recorder that was current.
cdef Recorder* suspend() noexcept nogil
cdef void resume(Recorder* recorder) noexcept nogil
cpdef bint is_observing() noexcept nogil
cdef bint is_dry() noexcept nogil
cdef void free_recorder(Recorder* recorder) noexcept

cdef void note_launch(void* kernel, char** pointers, int64_t npointers, const int64_t* numbers, int64_t nnumbers,
                      int64_t total, int64_t grain, bint small, bint planned) noexcept nogil
# Memory that an observed thread has allocated, or released.
cdef void note_allocated(void* data, int64_t nbytes) noexcept nogil
cdef void note_released(void* data) noexcept nogil
# The caller's own memory that the next launch is given: rows of `width` words, of which the first are addresses.
cdef void note_table(const void* data, int64_t rows, int64_t width, int64_t naddresses) noexcept nogil
# Note a call that an observed thread makes with numbers of its own before the next launch: `thing.replay(address of its
# table)`. With an address it is a question about the contents there, as `replay.Skip`.
cdef int note_call(object thing, char* address=*) except -1
cdef void note_flag(void* data, int64_t nbytes) noexcept nogil
# Say that the body has filled a block, and with what.
cdef void note_filled(const void* data, Purpose purpose) noexcept nogil
# Note that one launch computes a block, from blocks that it only reads, and that no other launch writes to it.
cdef void note_prepared(const void* data) noexcept nogil
cdef void note_held(object storage, char* data, int64_t nbytes) noexcept
# Note that this thread does work that is no launch. Without a recorder nothing happens.
cdef void refuse_recording(const char* why) noexcept nogil

# Memory of device meta: addresses that nothing writes to. Small blocks are aligned as real ones are.
cdef void* allocate_planned(int64_t nbytes) noexcept nogil
cdef void release_planned(void* data, int64_t nbytes) noexcept nogil
# Whether something was written to a block since it was allocated, which no launch does; only of blocks that a recorder
# keeps.
cdef bint is_touched(const Block* block) noexcept nogil
# The number of the block in use that an address is in; -1 for none.
cdef int64_t find_block(const Recorder* r, const char* address) noexcept nogil
