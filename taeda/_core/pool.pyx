"""The thread pool: one function that runs a kernel over a range.

A launch publishes one job. The calling thread and the workers take its pieces from atomic counters until none is left.
Each thread has a counter, of neighbouring pieces: the next op reads on the same processor the elements that this one
wrote. A thread that finishes its share takes work from the others.

The first launch that has work for them starts the workers. They spin for some hundreds of microseconds after each job
(only while the machine really has a processor for each), and then sleep on a lock. They never touch Python, so they
need no GIL and do not matter at interpreter exit. A second Python thread that launches while a job runs does its pieces
itself; so does a piece that launches.

A worker and a launch agree in this way that the job is over: a worker first adds itself to `active` and then looks at
`open`; the launch first clears `open` and then waits for `active` to fall to zero. Either the worker sees that the job
is closed, or the launch sees that the worker is in it.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from . cimport atomics
from .devices cimport META_NUMBER, devices, end_call, here
from .recorder cimport is_dry, note_launch

import signal
import threading

from .apart import run_apart

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    unsigned long PyThread_start_new_thread(void (*start)(void*) noexcept nogil, void* argument)
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait)
    void PyThread_release_lock(PyThread_type_lock lock)
    unsigned long PYTHREAD_INVALID_THREAD_ID

cdef extern from "time.h" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int timespec_get(timespec* when, int base)
    int TIME_UTC

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      static __declspec(thread) int taeda_inside = 0;
    #else
      static __thread int taeda_inside = 0;
    #endif
    """
    int inside "taeda_inside"   # this thread is running a piece

cdef extern from *:
    """
    #if defined(__SSE2__) || defined(_M_X64)
      #include <xmmintrin.h>
      #define TAEDA_FLUSH 0x8040u                 /* MXCSR: flush to zero, denormals are zero */
      static unsigned taeda_control(void) { return _mm_getcsr(); }
      static void taeda_set_control(unsigned bits) { _mm_setcsr(bits); }
    #elif defined(__aarch64__) && defined(__GNUC__)
      #define TAEDA_FLUSH (1u << 24)              /* FPCR.FZ */
      static unsigned taeda_control(void) { unsigned long v; __asm__("mrs %0, fpcr" : "=r"(v)); return (unsigned)v; }
      static void taeda_set_control(unsigned bits) { __asm__("msr fpcr, %0" : : "r"((unsigned long)bits)); }
    #else
      #define TAEDA_FLUSH 0u
      static unsigned taeda_control(void) { return 0; }
      static void taeda_set_control(unsigned bits) { (void)bits; }
    #endif
    static unsigned taeda_flushing(void) { return taeda_control() & TAEDA_FLUSH; }
    static void taeda_set_flushing(unsigned bits) {
        unsigned now = taeda_control();
        if ((now & TAEDA_FLUSH) != bits) taeda_set_control((now & ~TAEDA_FLUSH) | bits);
    }
    """
    unsigned FLUSH "TAEDA_FLUSH"
    unsigned flushing "taeda_flushing"() nogil            # how this thread treats denormal numbers
    void set_flushing "taeda_set_flushing"(unsigned bits) nogil

cdef extern from *:
    """
    /* Linux looks for an idle processor to wake a thread on only while the group that shares a cache is far from busy
       (SIS_UTIL), of two processors hardly ever: the worker would wait for the one on which the launch runs. It is kept
       from that one until it is awake. */
    #if defined(__linux__)
      #include <sched.h>
      #include <sys/syscall.h>
      #include <unistd.h>
      typedef struct { int thread, moved; cpu_set_t allowed; } taeda_place;
      static void taeda_settle(taeda_place *p) { p->moved = 0; p->thread = (int)syscall(SYS_gettid); }
      static void taeda_elsewhere(taeda_place *p) {
          cpu_set_t others;
          int here = sched_getcpu();
          if (p->thread == 0 || here < 0 || here >= CPU_SETSIZE) return;
          if (sched_getaffinity(p->thread, sizeof p->allowed, &p->allowed)) return;
          others = p->allowed;
          CPU_CLR(here, &others);
          if (CPU_COUNT(&others) && !CPU_EQUAL(&others, &p->allowed))
              p->moved = !sched_setaffinity(p->thread, sizeof others, &others);
      }
      static void taeda_anywhere(taeda_place *p) {
          if (p->moved) sched_setaffinity(0, sizeof p->allowed, &p->allowed);
          p->moved = 0;
      }
    #else
      typedef struct { int moved; } taeda_place;
      static void taeda_settle(taeda_place *p) { p->moved = 0; }
      static void taeda_elsewhere(taeda_place *p) { (void)p; }
      static void taeda_anywhere(taeda_place *p) { (void)p; }
    #endif
    """
    ctypedef struct Place "taeda_place":
        pass
    void settle "taeda_settle"(Place* p) nogil         # by the worker, once
    void move_off "taeda_elsewhere"(Place* p) nogil   # by the launch that is about to wake it
    void anywhere "taeda_anywhere"(Place* p) nogil     # by the worker that was woken

cdef extern from "Python.h":
    int PyOS_InterruptOccurred()    # whether SIGINT came, which is then forgotten
    void PyErr_SetInterrupt()       # as if SIGINT came
    unsigned long PyThread_get_thread_ident() nogil

cdef enum:
    LOOK_NS = 250000000         # a launch that takes longer looks for Ctrl-C, and again after as long
    MOST = 256                  # workers
    MOST_APART = 8              # addresses, and numbers, of a launch that Ctrl-C leaves behind
    COUNTERS = 8                # at most: each launch sets them all


cdef struct Job:                # written by the launch while `open` is 0
    kernel_t fn
    char** ptr
    const int64_t* arg
    int64_t total
    int64_t grain
    int64_t pieces
    int64_t batch               # pieces taken from the counter at a time
    int64_t workers             # how many of them may take part
    int64_t counters            # among which the pieces are shared out
    int64_t dropped             # Ctrl-C came: pieces that have not begun are left out
    unsigned flush              # how the launching thread treats denormal numbers


cdef struct Worker:
    int64_t sleeping
    int64_t index
    PyThread_type_lock wake
    char pad[40]


cdef struct Shared:             # written by several threads, each on a cache line of its own
    char pad1[64]
    int64_t active              # workers inside the job
    char pad2[56]
    int64_t epoch               # counts jobs
    int64_t open
    char pad3[48]
    int64_t busy                # a launch owns the pool
    int64_t waiting             # the launch sleeps until `active` is 0
    char pad4[48]


cdef struct Counter:
    int64_t next                # the first of its pieces that is not taken
    char pad[56]


cdef Job job
cdef Shared shared
cdef Counter[COUNTERS] counters
cdef Worker[MOST] team
cdef Place[MOST] places         # the workers': a launch writes one before it wakes its worker
cdef PyThread_type_lock done = NULL
cdef int64_t started = 0
cdef int64_t threads = 0        # 0: not known yet
cdef int64_t spins = 0          # busy turns before sleeping; 0 where there are more threads than processors
cdef int64_t spin_ns = 200000
cdef unsigned long main_thread = 0  # the only one that hears of signals


cdef inline int64_t now() noexcept nogil:
    cdef timespec t
    timespec_get(&t, TIME_UTC)
    return <int64_t>t.tv_sec * 1000000000 + t.tv_nsec


# ---- the workers' side -----------------------------------------------------------------------------------------------
cdef inline bint run_pieces(Job* j, int64_t thread, int64_t look) noexcept nogil:
    """Take pieces as thread number ``thread`` of those that take part; whether Ctrl-C, looked for from the time
    ``look`` on (0: never), dropped the rest."""
    cdef int64_t first, last, stop, i, end, k, own = thread * j.counters // (j.workers + 1)
    for k in range(own, own + j.counters):
        if k >= j.counters:
            k -= j.counters
        stop = (k + 1) * j.pieces // j.counters
        while True:
            first = atomics.add(&counters[k].next, j.batch)
            if first >= stop:
                break
            last = first + j.batch
            if last > stop:
                last = stop
            for i in range(first, last):
                if atomics._load(&j.dropped, atomics.RELAXED):
                    return False
                if look and is_stopped(&look):
                    atomics.store(&j.dropped, 1)
                    return True
                end = (i + 1) * j.grain
                j.fn(j.ptr, j.arg, i * j.grain, end if end < j.total else j.total)
    return False


cdef inline void take_part(Worker* self) noexcept nogil:
    atomics.add(&shared.active, 1)
    if atomics.load(&shared.open) and self.index < job.workers:
        set_flushing(job.flush)
        run_pieces(&job, self.index + 1, 0)
    if atomics.sub(&shared.active, 1) == 1 and atomics.exchange(&shared.waiting, 0):
        PyThread_release_lock(done)


cdef void work(void* argument) noexcept nogil:
    global inside
    cdef Worker* self = <Worker*>argument
    cdef int64_t seen = 0, turn, epoch
    inside = 1
    settle(&places[self.index])
    while True:
        turn = 0
        while True:
            epoch = atomics._load(&shared.epoch, atomics.ACQUIRE)
            if epoch != seen:
                break
            turn += 1
            if turn < spins:
                atomics.pause()
                continue
            atomics.store(&self.sleeping, 1)
            if atomics.load(&shared.epoch) == seen or not atomics.exchange(&self.sleeping, 0):
                PyThread_acquire_lock(self.wake, 1)  # the thread that clears `sleeping` releases the lock
                anywhere(&places[self.index])
            turn = 0
        seen = epoch
        take_part(self)


# ---- the launch's side -----------------------------------------------------------------------------------------------
cdef void calibrate() noexcept nogil:
    """Measure the number of pauses that make the spinning time."""
    global spins
    cdef int64_t start = now(), i, spent
    for i in range(1000):
        atomics.pause()
        atomics._load(&shared.epoch, atomics.ACQUIRE)
    spent = now() - start
    spins = spin_ns * 1000 // (spent if spent > 1000 else 1000)


cdef void learn() noexcept with gil:
    global threads, spins, spin_ns
    cdef int64_t count = 1, cpus = 1
    try:
        import os

        from . import machine

        count = machine.default_threads()
        cpus = machine.cpus()
        spin_ns = int(float(os.environ.get("TAEDA_SPIN_US", "200")) * 1000)
    except Exception:
        pass
    if threads == 0:
        threads = max(1, min(count, MOST))
    if threads <= cpus:
        calibrate()
    else:
        spins = 0


cdef int64_t start_workers(int64_t wanted) noexcept nogil:
    """Start workers until `wanted` run. Returns how many run (fewer if the system refuses)."""
    global started, done
    cdef Worker* worker
    if done == NULL:
        done = PyThread_allocate_lock()
        if done == NULL:
            return 0
        PyThread_acquire_lock(done, 1)
    while started < wanted:
        worker = &team[started]
        memset(worker, 0, sizeof(Worker))
        worker.index = started
        worker.wake = PyThread_allocate_lock()
        if worker.wake == NULL:
            break
        PyThread_acquire_lock(worker.wake, 1)
        if PyThread_start_new_thread(work, worker) == PYTHREAD_INVALID_THREAD_ID:
            break
        started += 1
    return started if started < wanted else wanted


cdef inline bint is_stopped(int64_t* look) noexcept nogil:
    """Whether Ctrl-C came, for which to look from the time ``look`` on."""
    cdef int64_t at = now()
    if at < look[0]:
        return False
    look[0] = at + LOOK_NS
    return is_interrupted()


cdef bint is_interrupted() noexcept with gil:
    """Whether Ctrl-C came and is to end what runs. Where a program handles SIGINT itself, its handler runs after the
    op, as it does after any other: in between it would see tensors that are half written."""
    if not PyOS_InterruptOccurred():
        return False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    PyErr_SetInterrupt()
    return False


cdef int raise_interrupt() except -1:
    raise KeyboardInterrupt


cdef int look_up(Watch* w) except -1 nogil:
    if is_stopped(&w.look):
        with gil:
            raise_interrupt()
    return 0


cdef bint serial(kernel_t fn, char** ptr, const int64_t* arg, int64_t total, int64_t grain,
                 int64_t look) noexcept nogil:
    cdef int64_t at = 0
    while total - at > grain:
        if look and is_stopped(&look):
            return True
        fn(ptr, arg, at, at + grain)
        at += grain
    fn(ptr, arg, at, total)
    return False


cdef int launch_alone(kernel_t fn, char** ptr, const int64_t* arg, int64_t total, int64_t grain) except -1:
    cdef bint dropped
    with nogil:
        dropped = serial(fn, ptr, arg, total, grain, first_look())
    if dropped:
        raise_interrupt()
    return 0


cdef int64_t first_look() noexcept nogil:
    """When a launch that begins now looks for Ctrl-C first: 0, never, unless on the main thread outside a piece."""
    return now() + LOOK_NS if not inside and PyThread_get_thread_ident() == main_thread else 0


cdef void wait_for_workers() noexcept nogil:
    cdef int64_t turn = 0
    while atomics.load(&shared.active):
        turn += 1
        if turn < spins:
            atomics.pause()
            continue
        turn = 0
        atomics.store(&shared.waiting, 1)
        if atomics.load(&shared.active) or not atomics.exchange(&shared.waiting, 0):
            PyThread_acquire_lock(done, 1)  # the thread that clears `waiting` releases the lock


cdef bint share(int64_t workers, int64_t look) noexcept nogil:
    """Publish `job`, help with it, and wait until all workers have left it. Returns whether its rest was dropped."""
    global inside
    cdef int64_t i
    cdef bint dropped
    for i in range(job.counters):
        atomics.store(&counters[i].next, i * job.pieces // job.counters)
    atomics.store(&shared.open, 1)
    atomics.add(&shared.epoch, 1)
    for i in range(workers):
        if atomics.load(&team[i].sleeping) and atomics.exchange(&team[i].sleeping, 0):
            move_off(&places[i])
            PyThread_release_lock(team[i].wake)
    inside = 1
    dropped = run_pieces(&job, 0, look)
    inside = 0
    atomics.store(&shared.open, 0)
    wait_for_workers()
    return dropped


cdef bint parallel_for(kernel_t fn, char** ptr, const int64_t* arg, int64_t total, int64_t grain,
                       bint stoppable) noexcept nogil:
    cdef int64_t pieces, workers, look
    cdef bint dropped
    if total <= 0:
        return False
    if grain < 1:
        grain = 1
    if total <= grain:
        fn(ptr, arg, 0, total)
        return False
    if threads == 0:
        learn()
    look = first_look() if stoppable else 0
    if threads == 1 or inside or not atomics.swap_if(&shared.busy, 0, 1):
        return serial(fn, ptr, arg, total, grain, look)
    pieces = total // grain + (total % grain != 0)
    workers = start_workers((threads if threads < pieces else pieces) - 1)
    if workers == 0:
        atomics.store(&shared.busy, 0)
        return serial(fn, ptr, arg, total, grain, look)
    job.fn = fn
    job.ptr = ptr
    job.arg = arg
    job.total = total
    job.grain = grain
    job.pieces = pieces
    job.batch = pieces // ((workers + 1) * 16)
    if job.batch < 1:
        job.batch = 1
    job.workers = workers
    job.counters = min(workers + 1, <int64_t>COUNTERS)
    job.flush = flushing()
    job.dropped = 0
    dropped = share(workers, look)
    atomics.store(&shared.busy, 0)
    return dropped


cdef class LongLaunch:
    """A launch, with the tensors that it reads and writes."""

    cdef kernel_t fn
    cdef char* ptr[MOST_APART]
    cdef int64_t arg[MOST_APART]
    cdef int64_t total, grain
    cdef tuple tensors

    def run(self):
        with nogil:
            parallel_for(self.fn, self.ptr, self.arg, self.total, self.grain, False)


cdef int launch_apart(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total, int64_t grain,
                      tuple tensors) except -1:
    cdef LongLaunch long
    if elsewhere:  # it may be recorded
        return launch(fn, ptr, nptr, arg, narg, total, grain, False)
    long = LongLaunch.__new__(LongLaunch)
    long.fn, long.total, long.grain, long.tensors = fn, total, grain, tensors
    memcpy(long.ptr, ptr, nptr * sizeof(char*))
    memcpy(long.arg, arg, narg * sizeof(int64_t))
    run_apart(long.run)
    return 0


cdef int64_t thread_count() noexcept nogil:
    if threads == 0:
        learn()
    return threads


cdef bint launched_elsewhere(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                             int64_t grain, bint small) except -1:
    cdef int number = here()
    if number > META_NUMBER:
        if total > 0:
            devices[number].launch(number, fn, ptr, nptr, arg, narg, total, max(grain, <int64_t>1))
            end_call()
        return True
    if total > 0:
        note_launch(<void*>fn, ptr, nptr, arg, narg, total, grain, small, number == META_NUMBER)
    return number == META_NUMBER or is_dry()


# ---- Python ----------------------------------------------------------------------------------------------------------
def get_num_threads():
    """The number of threads that an operation may use.

    The default is the number of cores that the process may use (affinity and cgroup quota), unless
    ``TAEDA_NUM_THREADS`` or ``OMP_NUM_THREADS`` sets it.

    Returns:
        An int of at least 1.
    Examples:
        >>> taeda.get_num_threads() >= 1
        True
    """
    return thread_count()


def set_num_threads(count):
    """Lets operations use ``count`` threads. Results do not depend on it.

    Args:
        count: a positive int.
    Raises:
        RuntimeError: ``count`` is not a positive int.
    Examples:
        >>> before = taeda.get_num_threads()
        >>> taeda.set_num_threads(1)
        >>> taeda.get_num_threads()
        1
        >>> taeda.set_num_threads(before)
    """
    global threads
    if not isinstance(count, int) or isinstance(count, bool):
        raise RuntimeError(f"set_num_threads expects an int, got {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    threads = min(count, MOST)
    learn()


def set_flush_denormal(bint mode):
    """Take denormal numbers for zero on this thread, and on workers while they work for it; whether it can be done."""
    set_flushing(FLUSH if mode else 0)
    return FLUSH != 0


def started_workers():
    """The number of worker threads that exist now, the calling thread aside."""
    return started


def _run(uintptr, uintptr_ptr, uintptr_arg, total, grain, release_gil=False):
    """Run the kernel at an address over [0, total), for tests and benchmarks."""
    cdef kernel_t fn = <kernel_t><size_t>uintptr
    cdef char** ptr = <char**><size_t>uintptr_ptr
    cdef const int64_t* arg = <const int64_t*><size_t>uintptr_arg
    cdef int64_t n = total, g = grain
    if release_gil:
        with nogil:
            parallel_for(fn, ptr, arg, n, g, False)
    else:
        parallel_for(fn, ptr, arg, n, g, False)


def _time(uintptr, uintptr_ptr, uintptr_arg, total, grain, repeats):
    """Nanoseconds that one of `repeats` launches takes on average, for benchmarks."""
    cdef kernel_t fn = <kernel_t><size_t>uintptr
    cdef char** ptr = <char**><size_t>uintptr_ptr
    cdef const int64_t* arg = <const int64_t*><size_t>uintptr_arg
    cdef int64_t n = total, g = grain, i, count = repeats, start
    with nogil:
        start = now()
        for i in range(count):
            parallel_for(fn, ptr, arg, n, g, False)
        start = now() - start
    return start / count


def _after_fork():
    """Reset the pool in a forked child, which has none of the parent's workers or jobs."""
    global started, done, inside, main_thread
    memset(&shared, 0, sizeof(shared))
    memset(&team, 0, sizeof(team))
    started = 0
    inside = 0
    done = NULL  # the old lock may be in any state; a few bytes are given up
    main_thread = PyThread_get_thread_ident()


import os as _os

main_thread = threading.main_thread().ident

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork)
