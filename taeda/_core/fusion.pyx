"""Pointwise ops that are deferred until their values are needed, and then computed together.

On a thread that defers ops, a pointwise op makes its result as always: sizes, strides, dtype, node of the graph. But it
does not launch. Instead, the result's storage gets a *deferred op*: the op and the addresses of its operands. All
access to the elements of a tensor calls `address_of`. That computes the deferred op before it returns the address. If
other deferred ops have yet to read that memory, it computes them first. So any reader or writer, on any thread, finds
the values that it would find without deferring.

One kernel computes a deferred op together with those of its operands, if these have the same form. Intermediate values
stay in registers. A result that nothing holds any more is never written. A held result is also written if it fits the
cache. A large held result of few ops stays a deferred op: recomputing it costs less than writing and reading it.
"""


from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from . cimport memory, deferred
from .devices cimport behind, elsewhere, end_call, here, swap_place
from .fused cimport gather, gather_all, generation, join, launch, measure, places_of, run, shares, start
from .memory cimport Storage, compute_to_read, ensure_computed, set_compute
from .deferred cimport (
    AGAIN, ALONE, FITS, LEAST_ELEMENTS, MOST_NODES, MOST_NUMBERS, MOST_READ, MOST_SOURCES, NEIGHBOURS, UNKNOWN,
    Deferred, Kernel, Source, away, begin, end, enlist, is_free, is_held, is_of_here, is_plain, is_recording, least,
    may_defer_here, newest, oldest, reads, same_form, same_order, set_computer, swap_recording, with_memory, written,
)
from .rows cimport compute_asked, compute_rows_of, compute_with_rows
from .deferred_slices cimport slice_of
from .tensor cimport (
    INLINE, ITEMSIZE, MAXDIM, PARAM, VALUES, Op, Tensor, broadcast_shape, is_dense, new_output,
    number_slots, out_code, same_sizes,
)

from .fused import count_kernels, watch

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef extern from *:
    """
    #if defined(_MSC_VER)
      static __declspec(thread) int taeda_state = 0;
    #else
      static __thread int taeda_state = 0;
    #endif
    """
    int state "taeda_state"      # of this thread: the bits below

#: Bits of a thread's state: it runs a compiled function, or one that may not be compiled.
COMPILING, DISABLED = 1, 2


cdef object defer(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target):
    """The deferred result of a pointwise op; None if it should be computed at once. The op writes to ``target``, if
    given."""
    cdef int64_t shape[MAXDIM]
    cdef Tensor first = target, t, out
    cdef Deferred r
    cdef Source* s
    cdef PyObject* parts[MOST_SOURCES]
    cdef list slices = None
    cdef int i, d, nd, code, inner = -1
    cdef int64_t count, enough = least
    cdef bint flat = True
    if not is_recording() or nin > MOST_SOURCES or op.nouts != 1 or op.fuses == ALONE or not is_plain(compute):
        return None
    if op.fuses == UNKNOWN:
        op.fuses = FITS if "require" not in op.traits else ALONE
        if op.fuses == ALONE:
            return None
    if elsewhere and here():
        if not may_defer_here():
            return None
        compute_others(inputs, nin)
        enough = 1  # each launch costs more than recording, and a kernel has a thread for each element
    code = out_code(op, compute)
    if not is_plain(code) or target is not None and (code != target.code or not is_free(target)):
        return None
    for i in range(nin):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        t = <Tensor>inputs[i]
        if not is_free(t) or target is not None and t.storage is target.storage and not (
                t.raw == target.raw and t.code == target.code and same_sizes(t, target) and same_order(t, target)):
            return None
        if first is None:
            first = t
        elif flat and not (same_sizes(t, first) and same_order(t, first)):
            flat = False
    flat = flat and is_dense(first)
    if flat:
        if first.nd > INLINE or first.count < enough or first.count == 0:
            return None
        out = target if target is not None else new_output(inputs, op.noperands, code, first.nd, first.sizes, True)
    else:
        nd = broadcast_shape(op, inputs, nin, shape)
        if nd > INLINE or target is not None and not (
                nd == target.nd and memcmp(shape, target.sizes, nd * sizeof(int64_t)) == 0 and is_dense(target)):
            return None
        count = 1
        for i in range(nd):
            count *= shape[i]
        if count < enough or count == 0:
            return None
        out = target if target is not None else new_output(inputs, op.noperands, code, nd, shape, True)
        if out.count >= LEAST_ELEMENTS:
            for d in range(nd):
                if out.strides[d] == 1 and out.sizes[d] > 1:
                    inner = d
            for i in range(nin):
                if inner >= 0 and isinstance(<object>inputs[i], Tensor):
                    t = <Tensor>inputs[i]
                    d = inner - (nd - t.nd)
                    if d >= 0 and t.sizes[d] > 1 and t.strides[d] != 1 and t.strides[d] != 0:
                        return None  # strided along the output's vectors: copying is faster
    if target is not None and (target.storage.deferred is None and target.storage.waits
                               or target.storage.deferred is not None and (
                                   target.storage.waits > 1  # other deferred ops have yet to read the old contents
                                   or (<Deferred>target.storage.deferred).is_row
                                   or Py_REFCNT(<PyObject*>target.storage.deferred) > 1
                                   or not same_form(<Deferred>target.storage.deferred, target, target))):
        ensure_computed(target.storage)
    r = <Deferred>Deferred.__new__(Deferred)
    r.op, r.variant, r.compute, r.code, r.nd, r.count = op, variant, compute, code, out.nd, out.count
    r.contiguous, r.inplace, r.nsources = out.contiguous, target is not None, nin
    memcpy(r.sizes, out.sizes, out.nd * sizeof(int64_t))
    memcpy(r.strides, out.strides, out.nd * sizeof(int64_t))
    for i in range(nin):  # first, because a number may raise an error
        s = &r.sources[i]
        if isinstance(<object>inputs[i], Tensor):
            t = <Tensor>inputs[i]
            s.code = t.code
            if t.storage.deferred is not None and not same_form(<Deferred>t.storage.deferred, t, out):
                part = slice_of(<Deferred>t.storage.deferred, t, out)
                if part is None:
                    compute_to_read(t.storage)
                else:
                    slices = [None] * nin if slices is None else slices
                    slices[i] = part
        else:
            s.code = PARAM
            number_slots(<object>inputs[i], compute, s.slots)
    for i in range(nin):  # the deferred ops of operands, read again: computing one may have computed another
        parts[i] = NULL
        if slices is not None and slices[i] is not None:
            parts[i] = <PyObject*>slices[i]
        elif r.sources[i].code != PARAM and (<Tensor>inputs[i]).storage.deferred is not None:
            parts[i] = <PyObject*>(<Tensor>inputs[i]).storage.deferred
    count_parts(r, parts)
    if too_large(r):
        measure(r, parts)
        if too_large(r):
            for i in range(nin):
                if r.sources[i].code != PARAM:
                    compute_own((<Tensor>inputs[i]).storage)
                    parts[i] = NULL
            count_parts(r, parts)
    keep(r, inputs, parts, out, flat)
    return out


cdef int compute_others(PyObject** inputs, int nin) except -1:
    """Compute operands that are deferred in another place, or on another stream: a kernel has one of each."""
    cdef int i
    cdef Storage storage
    for i in range(nin):
        if isinstance(<object>inputs[i], Tensor):
            storage = (<Tensor>inputs[i]).storage
            if storage is not None and storage.deferred is not None and not is_of_here(<Deferred>storage.deferred):
                ensure_computed(storage)
    return 0


cdef inline bint too_large(Deferred r) noexcept:
    return r.nodes > MOST_NODES or r.reads > MOST_READ or r.numbers > MOST_NUMBERS


cdef int count_parts(Deferred r, PyObject** parts) except -1:
    """Set upper bounds for the kernel of ``r``: parts that two operands share are counted twice."""
    cdef int i
    cdef Deferred part
    r.nodes, r.own, r.own_numbers, r.below = 1, 0, 0, False
    for i in range(r.nsources):  # its own operands first
        if r.sources[i].code == PARAM:
            r.own_numbers += 1
        else:
            r.own += parts[i] == NULL or (<Deferred>parts[i]).is_row
    r.reads, r.numbers = r.own, r.own_numbers
    for i in range(r.nsources):
        if parts[i] != NULL:
            part = <Deferred>parts[i]
            r.below = r.below or part.below or part.is_row
            if part.is_row:
                continue
            r.nodes += part.nodes
            r.reads += part.reads
            r.numbers += part.numbers
    return 0


cdef void keep(Deferred r, PyObject** inputs, PyObject** parts, Tensor out, bint flat) noexcept:
    """Make ``r`` the deferred op of the memory of ``out``."""
    cdef Source* s
    cdef Tensor t
    cdef int i, d, at, item
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            continue
        t = <Tensor>inputs[i]
        s.data = t.raw
        if parts[i] != NULL:
            s.deferred = parts[i]
            Py_INCREF(<object>s.deferred)
            (<Deferred>s.deferred).readers += 1
        if t.storage is out.storage:
            r.reads_own = r.reads_own or s.deferred == NULL or (<Deferred>s.deferred).reads_own
        elif s.deferred == NULL or (<Deferred>s.deferred).reads_own or (<Deferred>s.deferred).is_row:
            s.storage = <PyObject*>t.storage
            Py_INCREF(t.storage)
            t.storage.waits += 1
        item = ITEMSIZE[t.code]
        for d in range(out.nd):
            at = d - (out.nd - t.nd)
            if flat:
                s.strides[d] = out.strides[d] * item
            else:
                s.strides[d] = 0 if at < 0 or t.sizes[at] == 1 and out.sizes[d] != 1 else t.strides[at] * item
    r.storage, r.data = <PyObject*>out.storage, out.raw
    if out.storage.deferred is not None:  # an in-place write: `r` includes the deferred op that was there
        (<Deferred>out.storage.deferred).superseded = True
        (<Deferred>out.storage.deferred).storage = NULL
    else:
        out.storage.waits += 1
    out.storage.deferred = r
    enlist(r)


cdef int compute(Deferred root) except -1:
    """Compute ``root``, and other results that its kernel should write."""
    cdef Kernel k
    if not is_of_here(root):
        return compute_there(root.device, root.stream, root, None)
    if root.is_row:
        return compute_asked(root)
    if root.below and compute_with_rows(root):
        return 0
    gather_all(&k, root)
    k.outs[0] = <PyObject*>root
    k.nouts = 1
    return run(&k)


cdef int compute_there(int number, int stream, Deferred root, list storages) except -1:
    """Compute ``root``, or what ``storages`` hold, in the place ``number`` and on a stream of that device."""
    cdef int place = swap_place(number), before = -1
    if behind[number].swap_stream != NULL:
        before = behind[number].swap_stream(number, stream)
    try:
        if storages is None:
            compute(root)
        else:
            compute_together(storages)
    finally:
        if before >= 0:
            behind[number].swap_stream(number, before)
        swap_place(place)
    return end_call()


cdef bint same_shape(Deferred a, Deferred b) noexcept:
    return (a.nd == b.nd and memcmp(a.sizes, b.sizes, a.nd * sizeof(int64_t)) == 0
            and memcmp(a.strides, b.strides, a.nd * sizeof(int64_t)) == 0)


cdef int compute_all(list storages) except -1:
    """Compute the deferred ops of all these storages. Those of one form share a kernel as far as it has room."""
    if len(storages) == 1:
        return ensure_computed(<Storage>storages[0])
    if away or elsewhere:
        return compute_by_place(storages)
    return compute_together(storages) if storages else 0


cdef int compute_by_place(list storages) except -1:
    """The same for storages of several places and streams."""
    cdef Deferred r
    cdef dict found = {}
    for storage in storages:
        if (<Storage>storage).deferred is not None:
            r = <Deferred>(<Storage>storage).deferred
            found.setdefault((r.device, r.stream), []).append(storage)
    r = None  # else this variable would count as a holder
    for (number, stream), group in found.items():
        compute_there(number, stream, None, group)
    return 0


cdef int compute_together(list storages) except -1:
    cdef Kernel k, before
    cdef Deferred first, r
    cdef Storage other
    cdef Py_ssize_t i, j, n = len(storages)
    cdef uint64_t* places = <uint64_t*>malloc(n * sizeof(uint64_t))
    cdef uint64_t own
    if places == NULL:
        raise MemoryError()
    begin()
    try:
        for i in range(n):  # row-wise ops run with an epilogue if possible, else alone
            other = <Storage>storages[i]
            if other.deferred is not None and (<Deferred>other.deferred).below:
                compute_with_rows(<Deferred>other.deferred)
        for i in range(n):
            other = <Storage>storages[i]
            if other.deferred is not None and (<Deferred>other.deferred).is_row:
                compute(<Deferred>other.deferred)
        for i in range(n):
            other = <Storage>storages[i]
            places[i] = places_of(<Deferred>other.deferred) if other.deferred is not None else 0
        for i in range(n):
            if (<Storage>storages[i]).deferred is None:
                continue
            first = <Deferred>(<Storage>storages[i]).deferred
            own = places[i]
            start(&k)
            join(&k, first)
            for j in range(i + 1, min(n, i + NEIGHBOURS)):
                if not own & places[j]:
                    continue
                other = <Storage>storages[j]
                r = <Deferred>other.deferred if other.deferred is not None else None
                if r is None or r.mark == generation or not same_shape(first, r) or not shares(&k, r):
                    continue
                before = k
                if not join(&k, r):
                    k = before
                    break
                own |= places[j]
            run(&k)
    finally:
        end()
        free(places)
    return 0


cdef bint compute_into(Tensor target, Tensor source) except -1:
    """Compute the elements of ``source``, which has a deferred op, into ``target``; whether that could be done.

    ``source`` keeps its deferred op: mostly it is an operand of ``cat``, which is not read again.
    """
    cdef Deferred r = <Deferred>source.storage.deferred
    cdef Kernel k
    cdef int i, j, d
    if r.is_row:
        return False
    if target.holds != VALUES or target.code != source.code or not same_sizes(target, source):
        return False
    if not same_form(r, source, source):
        r = slice_of(r, source, source)
    if (r is None or target.storage is source.storage
            or r.nodes > AGAIN and Py_REFCNT(r.storage) > (<Storage>r.storage).waits):
        return False
    for d in range(r.nd):  # both must be contiguous along one dimension; else copying is faster
        if r.sizes[d] > 1 and (r.strides[d] == 1) != (target.strides[d] == 1) and r.count >= LEAST_ELEMENTS:
            return False
    begin()
    try:
        if r.below:
            compute_rows_of(r)
        start(&k)
        if not gather(&k, r):
            return False
        for i in range(k.nnodes):
            for j in range((<Deferred>k.nodes[i]).nsources):
                if (<Deferred>k.nodes[i]).sources[j].storage == <PyObject*>target.storage:
                    return False
        k.outs[0] = <PyObject*>r
        k.nouts = 1
        launch(&k, target)
    finally:
        end()
    return True


cdef int compute_own(Storage storage) except -1:
    """Compute the deferred op of ``storage``."""
    if storage.deferred is not None:
        begin()
        try:
            compute(<Deferred>storage.deferred)
        finally:
            end()
    return 0


cdef int compute_storage(Storage storage, bint reading) except -1:
    """Compute the deferred op of ``storage``, and unless it is only for ``reading``, all deferred ops that read it."""
    cdef PyObject* at
    begin()
    try:
        if storage.deferred is not None:
            compute(<Deferred>storage.deferred)
        while storage.waits and not reading:
            at = newest
            while at != NULL and not reads(<Deferred>at, storage):
                at = (<Deferred>at).before
            if at == NULL:
                raise RuntimeError("a storage is read by a deferred op that is not in the list")
            compute(with_memory(<Deferred>at))  # in no variable, which would keep it alive
    finally:
        end()
    return 0


def defer_ops(bint on):
    """Set whether this thread defers pointwise ops; the old value."""
    return swap_recording(on)


def thread_state():
    """The bits of this thread's state."""
    return state


def set_thread_state(int bits):
    """Set the bits of this thread's state."""
    global state
    state = bits


def run_compiled(function, tuple args, dict kwargs):
    """``function(*args, **kwargs)`` in the state COMPILING, on a thread that has none."""
    global state
    state = 1  # COMPILING
    try:
        return function(*args, **kwargs)
    finally:
        state = 0


def call(function, *args, **kwargs):
    """``function(*args, **kwargs)`` with ops deferred. When it returns, tensors in its result and those that it wrote
    to are computed."""
    cdef bint before = defer_ops(True)
    try:
        return compute_now(function(*args, **kwargs))
    finally:
        defer_ops(before)
        if not before and written:
            compute_written()


def defers_ops():
    """Whether this thread defers pointwise ops."""
    return is_recording()


cdef inline bint is_deferred(Tensor t) noexcept:
    return (t.holds == VALUES or t.device_type) and t.storage is not None and t.storage.deferred is not None


cdef int collect(object x, list found) except -1:
    """Append the storages of tensors in ``x`` that have deferred ops."""
    if isinstance(x, Tensor):
        if is_deferred(<Tensor>x):
            found.append((<Tensor>x).storage)
    elif isinstance(x, (tuple, list)):
        for y in x:
            collect(y, found)
    elif isinstance(x, dict):
        for y in (<dict>x).values():
            collect(y, found)
    return 0


def compute_now(x):
    """Compute deferred tensors: ``x``, and those in tuples, lists and dicts; returns ``x``."""
    cdef list found
    if type(x) is Tensor:
        if is_deferred(<Tensor>x):
            ensure_computed((<Tensor>x).storage)
    elif memory.n_deferred:
        found = []
        collect(x, found)
        compute_all(found)
    return x


def compute_written():
    """Compute deferred in-place ops."""
    cdef PyObject* at = oldest
    cdef Deferred r
    cdef list found = []
    while at != NULL and written:
        r = <Deferred>at
        if r.inplace and not r.superseded and r.storage != NULL and is_held(r):
            found.append(<Storage>(<Deferred>at).storage)
        at = (<Deferred>at).after
    r = None  # else this variable would count as a holder
    compute_all(found)


def compute_on(int number):
    """Compute what is deferred on the device of that number, so that the work of its streams is there."""
    cdef PyObject* at = oldest if away else NULL
    cdef Deferred r
    cdef list found = []
    while at != NULL:
        r = <Deferred>at
        if r.device == number and not r.superseded and r.storage != NULL and is_held(r):
            found.append(<Storage>r.storage)
        at = r.after
    r = None
    compute_all(found)


def is_computed(Tensor t):
    """Whether the elements of ``t`` are in memory."""
    return t.storage.deferred is None


def set_least(int64_t elements):
    """Defer only results of at least so many elements (default 6144); the old value."""
    cdef int64_t before = least
    deferred.least = elements
    return before


def count_deferred():
    """The number of deferred tensors."""
    return memory.n_deferred


set_computer(compute)
set_compute(compute_storage)
from . import recompute  # it sets the recorder
