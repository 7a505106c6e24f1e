"""The thread pool: one function that runs a kernel over a range."""

from libc.stdint cimport int64_t

from .dims cimport ceil_div
from .devices cimport elsewhere, kernel_t

# Run `fn` over [0, total) in pieces of `grain` (a multiple of it never crosses a piece), on the pool where that pays.
# The pieces depend on total and grain alone, never on the number of threads. Serial when there is one piece, one
# thread, or the caller is itself a piece. Must be called without needing the GIL; never raises.
# With `stoppable`, Ctrl-C drops the pieces that have not begun; whether it did.
cdef bint parallel_for(kernel_t fn, char** ptr, const int64_t* arg, int64_t total, int64_t grain,
                       bint stoppable) noexcept nogil

cdef int raise_interrupt() except -1


cdef enum:
    UNHEARD = 1 << 16    # steps of a loop between two looks for Ctrl-C


cdef struct Watch:       # for Ctrl-C in a loop that is no launch
    int64_t look         # when it looks next; 0: never
    int64_t steps        # since it looked


cdef int64_t first_look() noexcept nogil

# Whether Ctrl-C came; with it KeyboardInterrupt.
cdef int look_up(Watch* w) except -1 nogil


cdef inline Watch watch(int64_t steps) noexcept nogil:
    """The watch of a loop of so many steps in all, on the thread that hears of signals."""
    cdef Watch w
    w.look, w.steps = first_look() if steps > UNHEARD else 0, 0
    return w


cdef inline int heed(Watch* w, int64_t steps=UNHEARD) except -1 nogil:
    """After so many steps of a loop: raise KeyboardInterrupt where Ctrl-C came."""
    w.steps += steps
    if w.look and w.steps >= UNHEARD:
        w.steps = 0
        return look_up(w)
    return 0


# A launch where a thread has another place, or is observed: whether it was done with, kept or dropped.
cdef bint launched_elsewhere(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                             int64_t grain, bint small) except -1


cdef inline int launch(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total, int64_t grain,
                       bint small) except -1:
    """Run ``fn`` over [0, total): the one way to a kernel for whoever holds the GIL.

    The GIL is given up while the kernel runs, unless the work is ``small`` or one piece: then giving it up would cost
    more. Where the thread's place is a device, that runs it. A thread that plans, or observes dry, runs nothing. A
    recorder keeps the launch: ``nptr`` addresses and ``narg`` numbers. Ctrl-C ends a long launch with a
    KeyboardInterrupt: its outputs are then half written.
    """
    cdef bint dropped
    if elsewhere and launched_elsewhere(fn, ptr, nptr, arg, narg, total, grain, small):
        return 0
    if small or total <= grain:
        if total > 0:
            fn(ptr, arg, 0, total)
    else:
        with nogil:
            dropped = parallel_for(fn, ptr, arg, total, grain, True)
        if dropped:
            raise_interrupt()
    return 0


# The number of threads that an operation may use.
cdef int64_t thread_count() noexcept nogil

# A launch with long pieces, on memory that no other code uses: after Ctrl-C it finishes alone (apart.py). The memory is
# that of `tensors`.
cdef int launch_apart(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total, int64_t grain,
                      tuple tensors) except -1

# `launch` on this thread alone. The pieces are the same, and so are the bits.
cdef int launch_alone(kernel_t fn, char** ptr, const int64_t* arg, int64_t total, int64_t grain) except -1


cdef enum:
    PIECE_BYTES = 1 << 16    # bytes of work that are worth a piece of their own
    FREE_GIL = 1 << 16       # multiplications, or elements, from which other Python threads may run at the same time
    TASK = 1 << 19           # multiplications worth a task of their own


cdef inline int64_t grain_of(double work, int64_t tasks) noexcept nogil:
    """Tasks per piece, so that a piece is worth handing to another thread; few pieces come in pairs of one size."""
    cdef double each = work / tasks
    cdef int64_t pieces
    if each >= TASK:
        return 1
    pieces = ceil_div(tasks, <int64_t>(TASK / each) + 1)
    if 1 < pieces < 8:
        pieces += pieces & 1
    return ceil_div(tasks, pieces)


cdef inline int64_t units_in(int64_t piece, int64_t unit) noexcept nogil:
    """The number of units of work in a piece, at least one."""
    return piece // unit if 0 < unit < piece else 1


cdef inline int launch_work(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                            int64_t grain, double work) except -1:
    """:func:`launch` of so many multiplications or elements in all."""
    return launch(fn, ptr, nptr, arg, narg, total, grain, work < FREE_GIL)


cdef inline int launch_units(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t units,
                             int64_t unit_bytes, int64_t small_bytes) except -1:
    """:func:`launch` over units of so many bytes of work each, below ``small_bytes`` in all on this thread alone."""
    return launch(fn, ptr, nptr, arg, narg, units, units_in(PIECE_BYTES, unit_bytes), units * unit_bytes < small_bytes)
