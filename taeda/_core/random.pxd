"""The CPU random number generator: what other modules of the core may draw from it."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from .pool cimport kernel_t

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock

cdef class Generator:
    cdef str device_name
    cdef readonly bint by_counter   # a device's: numbers are made from the seed and `calls` where they are used
    cdef uint64_t calls             # so far, times 4
    cdef uint64_t graph_state       # where launches of the graph that is captured find seed and calls; 0: none
    cdef int64_t graph_calls        # in it so far, times 4
    cdef object graph_thread        # the thread that captures it
    cdef uint32_t state[624]
    cdef int64_t position       # next word of the state; 624 when it is used up
    cdef bint fresh             # seeded, and nothing drawn yet
    cdef uint64_t seeded_with
    cdef bint has_double        # the second half of a pair of normal numbers waits
    cdef double next_double
    cdef bint has_float
    cdef float next_float
    cdef PyThread_type_lock guard
    cdef int64_t forks          # forks that led to the guard's process
    cdef object __weakref__

# The caller holds the generator: enter() before, leave() after.
cdef int enter(Generator g) except -1
cdef void leave(Generator g) noexcept nogil
cdef uint32_t next32(Generator g) noexcept nogil
cdef uint64_t next64(Generator g) noexcept nogil
cdef double next_unit(Generator g) noexcept nogil
# A standard normal number in float64; the second of a pair waits in the generator.
cdef double next_normal(Generator g) noexcept nogil
# The generator that an op was given, or the default one of this thread's place.
cdef Generator which(object generator)
# One that draws word after word: `g`, or for a device's generator a new one for this call.
cdef Generator stream_of(Generator g)
# `n` units of `fn` of `kernels/philox.py` for `key`, by a launch in this thread's place.
cdef int draw_by_counter(Generator g, str fn, tuple key, char** ptr, int nptr, int64_t n, int64_t a,
                         int64_t b) except -1
# `count` untempered words, in `buffer`, which has room for BLOCKS more, or elsewhere: where they begin.
cdef uint32_t* make_raw(Generator g, uint32_t* buffer, int64_t count) noexcept nogil

cdef enum:
    BLOCKS = 1248             # words beside those asked for: the old block and the rest of the new one
    SOME = 4992               # words in flight: 20 KiB, inside the first-level cache
    LIGHT = 1 << 21           # words of a thread's part that pay for its jump (some 0.1 ms), of cheap distributions
    HEAVY = 1 << 19           # and of others
    AT_ONCE = 1 << 27         # words between two looks for Ctrl-C

cdef enum Distribution:
    UNIFORM, INTEGERS, WIDE_INTEGERS, BERNOULLI, EXPONENTIAL, GEOMETRIC, CAUCHY, NORMAL, NORMAL_PAIRS, LOG_NORMAL_PAIRS

# The kernel of a distribution and a dtype. It is compiled at its first use, with the generator's kernels.
cdef kernel_t find(int distribution, int code) except NULL
# `steps` steps of a kernel of `count` pointers, which advance by `strides` bytes a step; the second is set to the next
# words, of which each step takes `words`. `buffer` has room for SOME + BLOCKS. Long fills go by parts of at least
# `least` words, side by side. The caller holds the generator.
cdef int run_steps(Generator g, kernel_t fn, char** base, int64_t* strides, int count, int64_t steps, int64_t* arg,
                   int64_t words, int64_t least, uint32_t* buffer) except -1 nogil
# `n` elements of a distribution at `out`; `a` and `b` are the kernel's arguments, floats as the bits of a double.
# Keep a draw for a plan, on a thread that plans; whether this one does.
cdef bint is_draw_planned(Generator g, kernel_t draw, char** ptr, int nptr, const int64_t* arg, int narg) except -1
cdef int fill_memory(Generator g, int distribution, int code, char* out, int64_t n, int64_t a, int64_t b) except -1
# `n` normal numbers (or their exponentials) of float32 or float64, the way that takes them in pairs.
cdef int fill_pairs(Generator g, int code, char* out, int64_t n, double mean, double std, bint exponent) except -1
# A permutation of [0, n) at `out`.
cdef int shuffle(Generator g, int64_t* out, int64_t n) except -1
