"""Events of a profile while the program runs: ops, nodes and ranges, and below them runs of kernels.

A :class:`Recorder` is a mode: it sees every op of the threads that have it, and writes one event of 80 bytes into a
buffer. The probes in the kernels (``taeda/kernels/build.py``) report runs from every thread, also the pool's workers.
Nothing here costs anything while no recorder is on. ``taeda/profiler`` interprets the events.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_Check
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from . cimport atomics
from .memory cimport bytes_in_use
from .pool cimport kernel_t
from .tensor cimport ITEMSIZE, Composite, Op, Tensor, make_size
from .tensor import is_mode_active, pass_through

import sys as _sys

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef extern from *:
    """
    #ifdef _WIN32
      #include <windows.h>
      static int64_t taeda_clock(void) {
        LARGE_INTEGER n, f;
        QueryPerformanceCounter(&n);
        QueryPerformanceFrequency(&f);
        return (int64_t)((double)n.QuadPart * 1e9 / (double)f.QuadPart);
      }
    #else
      #include <time.h>
      static int64_t taeda_clock(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
      }
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
      #define TAEDA_OWN __declspec(thread)
    #else
      #define TAEDA_OWN __thread
    #endif
    static TAEDA_OWN int64_t taeda_session = 0;   /* what the others belong to */
    static TAEDA_OWN int64_t taeda_current = -1;  /* the event that is open on this thread */
    static TAEDA_OWN int64_t taeda_last = -1;     /* the thread's last run of a kernel */
    static TAEDA_OWN int taeda_running = 0;       /* inside one */
    """
    int64_t clock "taeda_clock"() noexcept nogil
    int64_t own_session "taeda_session"
    int64_t current "taeda_current"
    int64_t last_run "taeda_last"
    int running "taeda_running"

cdef enum Kind:
    OP, NODE, RANGE, MODULE

cdef enum:
    JOIN = 2000  # ns between two runs of a kernel, in one op and on one thread, that are merged

cdef struct Event:
    int64_t start, end          # ns; end 0: still open
    int64_t parent              # event, -1: none
    int64_t thread
    int64_t number              # the node that an op recorded, or that runs; -1: none
    int64_t moved               # bytes of the tensors that came in and went out
    int64_t written             # bytes of those that went out
    int64_t before, after       # bytes in use
    int32_t name
    int32_t kind
    int32_t call                # number of the recorder's call, -1: not kept

cdef struct Run:                # several runs of a kernel in a row are one
    int64_t start, end
    int64_t busy                # ns inside the kernel
    int64_t event               # the one open on the thread, -1: none
    int64_t thread
    int64_t pieces
    int64_t kernel

cdef struct Probe:
    void* watcher
    int64_t kernel

cdef Event* events = NULL
cdef int64_t n_events = 0, room_events = 0
cdef Run* runs = NULL
cdef int64_t n_runs = 0, room_runs = 0
cdef int64_t lock = 0           # guards the runs: workers write them too
cdef int64_t session = 0
cdef int64_t recording = 0


cdef inline void acquire() noexcept nogil:
    while not atomics.swap_if(&lock, 0, 1):
        atomics.pause()


cdef inline void drop() noexcept nogil:
    atomics._store(&lock, 0, atomics.RELEASE)

atomics.around_forks(acquire, drop)


cdef inline void join_session() noexcept nogil:
    """Forget what this thread remembers of an earlier recording."""
    global own_session, current, last_run
    if own_session != session:
        own_session = session
        current = last_run = -1


cdef int64_t new_event(int kind, int name, int64_t number) except -1:
    """Open an event on this thread; its place."""
    global events, n_events, room_events, current
    cdef Event* e
    cdef void* more
    join_session()
    if n_events == room_events:
        more = realloc(events, (2 * room_events + 4096) * sizeof(Event))
        if more == NULL:
            raise MemoryError("no memory for more events: profile fewer steps")
        events = <Event*>more
        room_events = 2 * room_events + 4096
    e = &events[n_events]
    e.parent, e.thread, e.number = current, PyThread_get_thread_ident(), number
    e.end = e.moved = e.written = e.after = 0
    e.name, e.kind, e.call = name, kind, -1
    e.before = bytes_in_use()
    current = n_events
    n_events += 1
    e.start = clock()
    return current


cdef inline void close_event(int64_t place) noexcept:
    global current
    cdef int64_t now = clock()
    if own_session == session and place < n_events:
        events[place].end = now
        events[place].after = bytes_in_use()
        current = events[place].parent


cdef void watch(char** ptr, const int64_t* arg, int64_t begin, int64_t end, Probe* probe, kernel_t body) noexcept nogil:
    """The function that the probes of kernels call."""
    global running, runs, n_runs, room_runs, last_run
    cdef int64_t start, stop, event
    cdef Run* r
    cdef void* more
    if running:                 # a kernel that another one calls
        body(ptr, arg, begin, end)
        return
    running = 1
    start = clock()
    body(ptr, arg, begin, end)
    stop = clock()
    running = 0
    join_session()
    event = current
    acquire()
    if not recording:
        drop()
        return
    if last_run >= 0:
        r = &runs[last_run]
        if r.kernel == probe.kernel and r.event == event and start - r.end < JOIN:
            r.end = stop
            r.busy += stop - start
            r.pieces += 1
            drop()
            return
    if n_runs == room_runs:
        more = realloc(runs, (2 * room_runs + 4096) * sizeof(Run))
        if more == NULL:  # the run is not in the profile
            drop()
            return
        runs = <Run*>more
        room_runs = 2 * room_runs + 4096
    r = &runs[n_runs]
    r.start, r.end, r.busy = start, stop, stop - start
    r.event, r.thread = event, PyThread_get_thread_ident()
    r.pieces, r.kernel = 1, probe.kernel
    last_run = n_runs
    n_runs += 1
    drop()


def _hold(int64_t ns):
    """Hold the lock for a time, as another thread may at the moment of a fork, for tests."""
    cdef int64_t end = clock() + ns
    with nogil:
        acquire()
        while clock() < end:
            atomics.yield_slice()
        drop()


def watcher():
    """The address of the function for :func:`taeda.kernels.build.watch`."""
    return <size_t><void*>watch


cdef int64_t tensor_bytes(object x):
    """Bytes of a tensor's elements, those that a view repeats once; of a list or tuple, of its tensors together."""
    cdef int64_t n = 0
    cdef Tensor t
    if isinstance(x, Tensor):
        t = <Tensor>x
        n = t.count * ITEMSIZE[t.code]
        return n if n <= t.storage.capacity else t.storage.capacity
    if PyTuple_Check(x) or PyList_Check(x):
        for item in x:
            n += tensor_bytes(item)
    return n


cdef bint is_view_of(object function, tuple args, object result) except -1:
    """Whether ``result`` is a window on the first argument's memory, which was not written to."""
    if not args or not isinstance(args[0], Tensor) or not isinstance(result, Tensor):
        return type(function) is Op and function.kind == "view"
    if (<Tensor>args[0]).storage is not (<Tensor>result).storage:
        return False
    return type(function) is not Op or not ((<Op>function).inplace or function.kind == "mutates")


cdef object shapes_of(object x):
    """``x`` with ``(Tensor, sizes)`` in the place of tensors; hashable."""
    if isinstance(x, Tensor):
        return Tensor, make_size((<Tensor>x).nd, (<Tensor>x).sizes)
    if PyTuple_Check(x) or PyList_Check(x):
        return tuple([shapes_of(item) for item in x])
    if isinstance(x, (bool, int, float, str)) or x is None:
        return x
    return str(x)


cdef tuple call_stack():
    """(code, line) of the Python frames, innermost first."""
    cdef list found = []
    frame = _sys._getframe()
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


PRODUCTS = frozenset(("matmul", "linear"))


cdef object with_product(str name, tuple args, dict kwargs):
    """A product's name followed by the name of PyTorch's op for its operands' dimensions: ``matmul/mm``."""
    cdef int m, n
    if len(args) < 2 or not isinstance(args[0], Tensor) or not isinstance(args[1], Tensor):
        return name
    m, n = (<Tensor>args[0]).nd, (<Tensor>args[1]).nd
    if name == "linear":
        has_bias = (args[2] if len(args) > 2 else kwargs.get("bias")) is not None
        return "linear/addmm" if has_bias else "linear/mm"
    if m == 1 and n == 1:
        return "matmul/dot"
    if n == 1:
        return "matmul/mv"
    return "matmul/mm" if n == 2 or m <= 2 and n < 3 else "matmul/bmm"


cdef class Recorder:
    """The mode that records. One at a time, for all threads that have it among their modes (outermost).

    Args:
        shapes: keep the arguments of every op, with ``(Tensor, sizes)`` in the place of tensors.
        stacks: keep the Python frames of every op and range.
    """

    composites = True
    watches = True

    cdef bint shapes, stacks
    cdef dict numbers            # name -> its place in `names`
    cdef readonly list names
    cdef dict call_numbers       # (op, arguments, keyword arguments, result) -> its place in `calls`
    cdef readonly list calls
    cdef readonly dict frames    # event -> call_stack()
    cdef readonly bint active

    def __init__(self, bint shapes=False, bint stacks=False):
        self.shapes = shapes
        self.stacks = stacks
        self.numbers = {}
        self.names = []
        self.call_numbers = {}
        self.calls = []
        self.frames = {}

    cdef int name_number(self, object name) except -1:
        cdef PyObject* found = PyDict_GetItem(self.numbers, name)
        if found != NULL:
            return <object>found
        self.numbers[name] = len(self.names)
        self.names.append(name)
        return len(self.names) - 1

    def start(self):
        """Drop all events and begin."""
        global n_events, n_runs, session, recording
        acquire()
        session += 1
        n_events = n_runs = 0
        recording = 1
        drop()
        self.active = True

    def stop(self):
        """End; the events stay until the next start."""
        global recording
        acquire()
        recording = 0
        drop()
        self.active = False

    def clock(self):
        """Now, in ns of the clock that events have."""
        return clock()

    def handle(self, function, tuple args, dict kwargs):
        """Record an op or a composite: one event, and one for each call below it."""
        cdef int64_t place
        cdef Tensor t
        if not self.active:
            return function(*args, **kwargs)
        if is_mode_active():  # it is recorded when the modes have handed it on
            return pass_through(self, function, args, kwargs)
        name = (<Op>function).name if type(function) is Op else function.name
        place = new_event(OP, self.name_number(with_product(name, args, kwargs) if name in PRODUCTS else name), -1)
        if self.stacks:
            self.frames[place] = call_stack()
        if self.shapes:
            given = shapes_of(args), tuple([(key, shapes_of(value)) for key, value in kwargs.items()])
        else:
            given = None
        events[place].moved = tensor_bytes(args)
        try:
            result = pass_through(self, function, args, kwargs)
        finally:
            close_event(place)
        if own_session == session:
            if is_view_of(function, args, result):
                events[place].moved = 0
            else:
                events[place].written = tensor_bytes(result)
                events[place].moved += events[place].written
            if isinstance(result, Tensor):
                t = <Tensor>result
                if t.grad_fn_ is not None:
                    events[place].number = t.grad_fn_.seq
            if given is not None:
                events[place].call = self.call_number((function, given[0], given[1], shapes_of(result)))
        return result

    cdef int call_number(self, tuple call) except -1:
        """Each combination of sizes is kept once."""
        cdef PyObject* found = PyDict_GetItem(self.call_numbers, call)
        if found != NULL:
            return <object>found
        self.call_numbers[call] = len(self.calls)
        self.calls.append(call)
        return len(self.calls) - 1

    def enter(self, str name, int64_t number):
        """A node of the graph begins to run; gives what :meth:`leave` wants."""
        return new_event(NODE, self.name_number(name), number)

    def leave(self, int64_t place):
        close_event(place)

    def weigh(self, int64_t place, tensors):
        """Count the bytes of ``tensors``, as if half of them were written."""
        cdef int64_t nbytes = tensor_bytes(tensors)
        self.add_moved(place, nbytes, nbytes // 2)

    def enter_range(self, str name, bint module=False):
        """A range of the user's, or the call of a module, begins."""
        cdef int64_t place = new_event(MODULE if module else RANGE, self.name_number(name), -1)
        if self.stacks:
            self.frames[place] = call_stack()
        return place

    def add_moved(self, int64_t place, int64_t nbytes, int64_t written):
        """Count bytes that a range reads and writes, where it knows them, and how many of them it writes."""
        if own_session == session and place < n_events:
            events[place].moved += nbytes
            events[place].written += written

    def read_events(self):
        """The recorded events: tuples (name, kind, start, end, parent, thread, number, moved, written, before, after,
        call)."""
        cdef int64_t i
        cdef Event* e
        cdef list found = []
        for i in range(n_events):
            e = &events[i]
            found.append((self.names[e.name], e.kind, e.start, e.end, e.parent, e.thread, e.number, e.moved, e.written,
                          e.before, e.after, e.call))
        return found

    def read_runs(self):
        """The runs of kernels: tuples (kernel's number, start, end, busy, event, thread, pieces)."""
        cdef int64_t i
        return [(runs[i].kernel, runs[i].start, runs[i].end, runs[i].busy, runs[i].event, runs[i].thread,
                 runs[i].pieces)
                for i in range(n_runs)]

    def forget(self):
        """Give the buffers back."""
        global events, runs, n_events, n_runs, room_events, room_runs
        acquire()
        free(events)
        free(runs)
        events = NULL
        runs = NULL
        n_events = n_runs = room_events = room_runs = 0
        drop()
