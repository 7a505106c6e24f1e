"""Deferred ops of deferred tensors: their list, and which thread may compute. ``fusion.pyx`` explains deferred ops."""

import atexit
import os

from ..kernels import forks  # its functions at exit must run after those of this module

cimport cython
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcmp, memcpy

from . cimport memory
from .devices cimport META_NUMBER, MOST_DEVICES, behind, elsewhere, here, nstreams
from .memory cimport Pending, Storage, give_block
from . cimport tensor
from .tensor cimport BOOL, F32, F64, I32, I64, U8, VALUES, Tensor

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()
    PyObject* PyWeakref_GetObject(object)

cdef extern from *:
    """
    #if defined(_MSC_VER)
      static __declspec(thread) int taeda_defers = 0;
      #include <windows.h>
      static void taeda_pause(void) { Sleep(0); }
    #else
      static __thread int taeda_defers = 0;
      #include <sched.h>
      static void taeda_pause(void) { sched_yield(); }
    #endif
    """
    int defers "taeda_defers"     # whether this thread defers ops
    void taeda_pause() noexcept nogil

cdef PyObject* oldest = NULL
cdef PyObject* newest = NULL
cdef int64_t written = 0
cdef int away = 0
cdef bint[MOST_DEVICES] fusing    # devices whose ops are deferred, by number
cdef int64_t least = 6144  # smaller results are not faster when deferred
cdef unsigned long owner = 0      # the thread that computes
cdef bint collects = False        # whether Python's collector was on before
cdef int depth = 0                # how many computations of that thread are nested
cdef unsigned long last = 0       # the thread that ends the process: once set, no other thread computes
cdef computer_t computer = NULL


@cython.final
@cython.no_gc
cdef class Deferred(Pending):
    """An op and its operands, whose result the memory of a storage should hold."""

    def __dealloc__(self):
        forget(self)


cdef class Later:
    """Computes a deferred op that is not pointwise."""

    cdef int run_alone(self, Deferred r) except -1:
        raise NotImplementedError

    cdef bint compute_reader(self, Deferred root, int rows) except -1:
        return False


cdef bint is_recording() noexcept:
    return defers


cdef bint swap_recording(bint on) noexcept:
    global defers
    cdef bint before = defers
    defers = on
    tensor.recorders += on - before
    return before


cdef void set_computer(computer_t function) noexcept:
    global computer
    computer = function


cdef int compute(Deferred r) except -1:
    return computer(r)


cdef bint may_defer_here() noexcept:
    return fusing[here()]


cdef inline int current_stream(int number) noexcept:
    return behind[number].stream(number) if nstreams and behind[number].stream != NULL else 0


cdef bint is_of_here(Deferred r) noexcept:
    return r.device == here() and r.stream == current_stream(r.device)


def let_defer(int number, bint on):
    """Say whether ops on a device, by its number, may be deferred."""
    fusing[number] = on


cdef void forget(Deferred r) noexcept:
    """Take a deferred op off the list, and release its operands."""
    global oldest, newest, written, away
    cdef int i
    cdef PyObject* storage
    cdef PyObject* part
    if not r.listed:
        return
    r.listed = False
    written -= r.inplace
    away -= r.device != 0
    if r.before != NULL:
        (<Deferred>r.before).after = r.after
    else:
        oldest = r.after
    if r.after != NULL:
        (<Deferred>r.after).before = r.before
    else:
        newest = r.before
    memory.n_deferred -= 1
    for i in range(r.nsources):
        storage, part = r.sources[i].storage, r.sources[i].deferred
        r.sources[i].storage = r.sources[i].deferred = NULL
        if storage != NULL:
            (<Storage>storage).waits -= 1
            Py_DECREF(<object>storage)
        if part != NULL:
            (<Deferred>part).readers -= 1
            Py_DECREF(<object>part)


cdef inline bint is_plain(int code) noexcept:
    """Whether kernels compute in the dtype itself, without rounding."""
    return code == F32 or code == F64 or code == I64 or code == BOOL or code == I32 or code == U8


cdef bint same_form(Deferred r, Tensor t, Tensor out) noexcept:
    """Whether ``r`` computes exactly ``t``, in the form of ``out``."""
    cdef size_t n = t.nd * sizeof(int64_t)
    return (t.raw == r.data and t.code == r.code and r.nd == t.nd and t.nd == out.nd
            and memcmp(r.sizes, t.sizes, n) == 0 and memcmp(t.sizes, out.sizes, n) == 0
            and (r.contiguous and t.contiguous or memcmp(r.strides, t.strides, n) == 0) and same_order(t, out))


cdef bint is_free(Tensor t) noexcept:
    """Whether only taeda can read and write the memory of ``t``, and deferred ops support its dtype."""
    return holds_values(t) and is_plain(t.code) and not (t.storage.shown or t.storage.exports
                                                         or t.storage.owner is not None)


cdef bint holds_values(Tensor t) noexcept:
    """Whether the memory of ``t`` is in this thread's place, and holds what it shows."""
    if not elsewhere:
        return t.holds == VALUES
    return t.device_type == here() and (t.holds == VALUES or t.device_type > META_NUMBER and t.storage is not None)


cdef void enlist(Deferred r) noexcept:
    """Append ``r`` to the list. It is computed in the place and on the stream of now."""
    global oldest, newest, written, away
    if elsewhere and here():
        r.device, r.stream = here(), current_stream(here())
        away += 1
    memory.n_deferred += 1
    r.listed = True
    written += r.inplace
    r.before, r.after = newest, NULL
    if newest != NULL:
        (<Deferred>newest).after = <PyObject*>r
    else:
        oldest = <PyObject*>r
    newest = <PyObject*>r


cdef void take_form(Deferred r, Tensor t) noexcept:
    """Give ``r`` the dtype, sizes and strides of ``t``."""
    r.code = r.compute = t.code
    r.nd, r.count, r.contiguous = t.nd, t.count, t.contiguous
    memcpy(r.sizes, t.sizes, t.nd * sizeof(int64_t))
    memcpy(r.strides, t.strides, t.nd * sizeof(int64_t))


cdef void fill_later(Deferred r, Tensor out) noexcept:
    """Make ``r``, whose operands are held, the deferred op of the memory of ``out``."""
    r.storage, r.data = <PyObject*>out.storage, out.raw
    out.storage.waits += 1
    out.storage.deferred = r
    enlist(r)


cdef int give_memory(Storage storage) except -1:
    """Allocate the memory of a storage that was made without."""
    cdef char* before = storage.data
    cdef int number = storage.device, stream = -1
    if number and behind[number].swap_stream != NULL and storage.deferred is not None:
        stream = behind[number].swap_stream(number, (<Deferred>storage.deferred).stream)
    try:
        give_block(storage, storage.block, number)
    finally:
        if stream >= 0:
            behind[number].swap_stream(number, stream)
    return tell_address(storage, before)


cdef bint move_block(Storage old, Storage storage) except -1:
    """Give ``storage``, which has no memory, the block of ``old``, which is no longer used; False if it does not
    fit."""
    cdef char* before = storage.data
    if (storage.late is None or old.late is not None or old.block != storage.block or old.owner is not None
            or old.device or old.exports or old.shown or not old.may_resize):
        return False
    storage.data, old.owner = old.data, ()  # the old storage must not release it
    tell_address(storage, before)
    return True


cdef int move_back(Storage old, Storage storage, char* before, list late) except -1:
    """Undo :func:`move_block`, before which ``storage`` had this address and this ``late``."""
    cdef char* block = storage.data
    storage.data, old.owner, storage.late = before, None, late
    tell_address(storage, block)
    storage.late = late
    return 0


cdef int tell_address(Storage storage, char* before) except -1:
    """Update the address in the tensors on a storage, which all begin where it does."""
    cdef list holders = storage.late
    storage.late = None
    for reference in holders:
        holder = <object>PyWeakref_GetObject(reference)
        if isinstance(holder, Tensor) and (<Tensor>holder).storage is storage and (<Tensor>holder).raw == before:
            (<Tensor>holder).raw = storage.data
    if storage.deferred is not None:
        (<Deferred>storage.deferred).data = storage.data
    return 0


cdef int finish(Deferred r, Storage storage) except -1:
    """Mark ``r`` as computed. Its readers read the memory from now on."""
    cdef PyObject* at = r.after
    cdef Source* s
    cdef int i
    r.done = True
    while r.readers:  # readers are newer
        for i in range((<Deferred>at).nsources):
            s = &(<Deferred>at).sources[i]
            if s.deferred != <PyObject*>r:
                continue
            if s.storage == NULL:
                s.storage = <PyObject*>storage
                Py_INCREF(storage)
                storage.waits += 1
            s.deferred, s.data = NULL, r.data
            r.readers -= 1
            Py_DECREF(r)
        at = (<Deferred>at).after
    forget(r)
    storage.waits -= 1
    storage.deferred = None
    return 0


cdef Deferred with_memory(Deferred r):
    """``r`` or the deferred op that superseded it, if its memory is held; else a deferred op that depends on it."""
    cdef PyObject* at
    cdef int i
    if r.storage != NULL:
        return <Deferred>(<Storage>r.storage).deferred
    at = r.after
    while at != NULL:
        for i in range((<Deferred>at).nsources):
            if (<Deferred>at).sources[i].deferred == <PyObject*>r:
                return with_memory(<Deferred>at)
        at = (<Deferred>at).after
    raise RuntimeError("found a deferred op that nothing needs")


cdef bint reads(Deferred r, Storage storage) noexcept:
    cdef int i
    for i in range(r.nsources):
        if r.sources[i].storage == <PyObject*>storage:
            return True
    return False


cdef void begin() noexcept:
    """Wait until no other thread computes, and keep others from it.

    Python's collector waits as well: objects that it frees may ask for elements, and deferred ops in use would be gone.
    """
    global owner, depth, collects
    cdef unsigned long me = PyThread_get_thread_ident()
    while (depth and owner != me) or (last and last != me):  # the other thread has released the GIL
        with nogil:
            taeda_pause()
    owner = me
    if not depth:
        collects = PyGC_Disable()
    depth += 1


cdef void end() noexcept:
    global depth
    depth -= 1
    if not depth and collects:
        PyGC_Enable()


def _at_exit():
    """Wait for a daemon thread that computes: it may be building a kernel, and would wait for this thread."""
    global last
    begin()
    last = owner
    end()


def _after_fork():
    """In a forked process no other thread computes."""
    global depth, last
    last = 0
    if depth:
        depth = 1
        end()


atexit.register(_at_exit)  # called before kernels/forks.py locks: the order in which other threads take the two
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
