"""What a thread that plans would have run: its launches, in order, and the memory that they read and write."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef enum Purpose:
    MEMORY      # of a storage, or for the time of an op
    FLAG        # words of the caller's that a kernel writes to where it meets bad values; zeros before, and else after
    HELD        # of a tensor on the CPU that is not among the arguments: a table that is kept, a parameter
    CONSTANT    # a table that the body has filled, from sizes and strides, and that is only read
    NUMBERS     # a block that the body has filled with numbers that it was given, and that may be written to


cdef struct Block:
    char* data
    int64_t nbytes
    int64_t made         # launches before it was made
    int64_t gone         # launches before it was given up; -1 while it is in use
    Purpose purpose
    PyObject* owner      # the storage of what is HELD; a reference


cdef struct Step:        # a launch
    void* kernel
    int64_t pointers, npointers   # the first of its pointers, and how many there are
    int64_t numbers, nnumbers     # likewise its arguments
    int64_t total, grain
    bint small


cdef struct Recorder:
    Block* blocks
    Step* steps
    char** pointers
    int64_t* numbers
    int64_t nblocks, nsteps, npointers, nnumbers
    int64_t room_blocks, room_steps, room_pointers, room_numbers
    const char* refused  # why what this thread does cannot be repeated from what was kept; NULL while it can

# This thread's, NULL where it keeps nothing.
cdef Recorder* current() noexcept nogil
# Keep what this thread plans from now on. Raises where it does already.
cdef Recorder* begin_recording() except NULL
cdef void end_recording() noexcept
cdef void free_recorder(Recorder* recorder) noexcept

cdef void note_launch(void* kernel, char** pointers, int64_t npointers, const int64_t* numbers, int64_t nnumbers,
                      int64_t total, int64_t grain, bint small) noexcept nogil
cdef void note_flag(void* data, int64_t nbytes) noexcept nogil
# Say that the body has filled a block, and with what.
cdef void note_filled(const void* data, Purpose purpose) noexcept nogil
cdef void note_held(object storage, char* data, int64_t nbytes) noexcept
# Say that a thread that plans does something that is no launch. Nothing happens where nothing is kept.
cdef void refuse_recording(const char* why) noexcept nogil

# Memory of device meta: addresses that nothing writes to. Small blocks are aligned as real ones are.
cdef void* allocate_planned(int64_t nbytes) noexcept nogil
cdef void release_planned(void* data, int64_t nbytes) noexcept nogil
# Whether something was written to a block since it was allocated, which no launch does; only of blocks that a recorder
# keeps.
cdef bint is_touched(const Block* block) noexcept nogil
