"""The contract of a device: all that a device is to the core. Device numbers and the place of a call are here too.

A *device* has memory and runs launches on it. The CPU, device meta and every registered device are rows of one table.
A *place* is the device on which the calls of a thread run: what they allocate is there, their kernels are built for it,
and their launches run there. The call path sets it where it meets a tensor of another device.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# The kernel ABI (see taeda/kernels/ir.py).
ctypedef void (*kernel_t)(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil

cdef enum:
    CPU_NUMBER, META_NUMBER   # numbers of devices; registered ones follow
    MOST_DEVICES = 32

cdef enum Way:
    # Kinds of copies: on the device, from or to the processor's memory, from a table that an op made there.
    WITHIN, FROM_HOST, TO_HOST, FROM_TABLE

# Functions that a device provides. An error is kept, and raised when the call that met it ends (`end_call`).
cdef struct Device:
    # Memory, aligned to 64 bytes; NULL: there is no more.
    void* (*allocate)(int number, int64_t nbytes) noexcept
    void (*release)(int number, void* data, int64_t nbytes) noexcept
    # Run a kernel that `build` gave over [0, total), in pieces of `grain`, after whatever was launched before.
    void (*launch)(int number, kernel_t kernel, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                   int64_t grain) noexcept
    # Copy bytes; one to the host has ended when this returns. The two may overlap on the device.
    void (*copy)(int number, void* to, const void* source, int64_t nbytes, Way way) noexcept
    void (*fill)(int number, void* to, int value, int64_t nbytes) noexcept
    void (*synchronise)(int number) noexcept
    # Whether it runs launches of `run_piece`, which are over elements of any number of dimensions.
    bint elements

cdef Device* devices         # by number

# Functions of a device that works asynchronously. NULLs: work is done when a launch returns.
cdef struct Behind:
    # Two words on the device that a launch writes to where it finds bad values, zeros now. When the device is next
    # waited for, `error` is raised if they are not: a class, and a text with a place for the first word.
    char* (*report)(int number, PyObject* error) noexcept
    # The number of this thread's current stream; 0 for the default one. Device 0 means the current device.
    int (*stream)(int number) noexcept
    # Let this thread's work go to a stream; gives the one before. It stays where the stream is another device's.
    int (*swap_stream)(int number, int stream) noexcept
    # Let the current stream wait for the work that another one has now.
    void (*join)(int number, int stream) noexcept
    # Memory is used on the current stream: it is not given out again before that is done.
    void (*keep)(int number, void* data) noexcept

cdef Behind* behind          # by number
# How many streams there are beside the default ones.
cdef int nstreams
cdef void count_streams(int count) noexcept
# The number of the stream to which the work of this thread's place goes.
cdef int stream_here() noexcept

# The number of threads that are observed or have a place other than the CPU. At 0 no code needs to ask for the place.
cdef int elsewhere
cdef void count_elsewhere(int change) noexcept nogil
# This thread's place: the number of a device.
cdef int here() noexcept nogil
# Set it; gives the place before.
cdef int swap_place(int number) noexcept nogil
# The number under which kernels for this thread's place are kept. Device meta uses the CPU's.
cdef int kernel_place() noexcept nogil
# Raise what went wrong in this thread's launches on a device since it was last asked.
cdef int end_call() except -1
# The kernel that the device of that number has for these arguments of a function of `taeda.kernels`.
cdef object build_there(int number, str name, tuple args, object compile=*)
# The number of the device that `type` and `index` (None: the current one) name; -1: there is none.
cdef int number_of(str type, object index) except -2
