"""Pointwise ops that are put off until somebody needs their values, and are then computed together.

On a thread that records (`recording`) a pointwise op makes its result as always: sizes, strides, dtype, memory, the
node of the graph. It does not launch: the result's storage keeps a *recipe*, which is the op and where its operands
lie. `address_of` is the only way to the elements of a tensor. It computes a recipe before it gives the address, and
before it gives that of memory that other recipes are still to read. So it does not matter who asks, on which thread,
nor whether to read or to write: everybody meets the values that they would have met without recording.

A recipe whose operands have recipes of the same form is computed with them by one kernel, which keeps what lies between
in registers. What nobody holds any more is never written. What somebody holds is written along where it stays in the
cache; a large result of few ops stays a recipe: computing it again costs less than writing and reading it.
"""

import os

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int8_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from . cimport memory
from .memory cimport Heir, Pending, Storage, give_block, is_planning, set_settler, settle, settle_to_read
from .pool cimport kernel_t
from . cimport tensor
from .tensor cimport (
    BOOL, COPY, DOMAIN, F32, F64, I32, I64, INLINE, ITEMSIZE, MAXDIM, MOST_FUSED, PARAM, STREAM_GRAIN, STREAM_LEAST, U8,
    VALUES, Launch, Op, Tensor, alias_tensor, broadcast_shape, coalesce, empty_strided_like, empty_tensor, is_dense,
    layout_class, need_memory, new_output, number_slots, out_code, run_elements, same_sizes, set_recorder,
    stores_stream,
)

from .tensor import ALL_DTYPES, HELPERS

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)
    int PyGC_Disable()
    int PyGC_Enable()
    PyObject* PyWeakref_GetObject(object)

cdef extern from *:
    """
    #if defined(_MSC_VER)
      static __declspec(thread) int taeda_puts_off = 0;
      #include <windows.h>
      static void taeda_pause(void) { Sleep(0); }
    #else
      static __thread int taeda_puts_off = 0;
      #include <sched.h>
      static void taeda_pause(void) { sched_yield(); }
    #endif
    """
    int puts_off "taeda_puts_off"     # whether this thread records
    void taeda_pause() noexcept nogil

@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class Recipe(Pending):
    """What the memory of a storage should hold: an op and its operands."""

    def __dealloc__(self):
        forget(self)


cdef PyObject* oldest = NULL
cdef PyObject* newest = NULL
cdef unsigned long owner = 0      # the thread that computes
cdef bint collects = False        # whether Python's collector was on before
cdef int depth = 0                # how often it is on its way
cdef int generation = 0           # of marks
cdef int64_t written = 0          # recipes of in-place ops


cdef void forget(Recipe r) noexcept:
    """Take a recipe off the list, and let go of what it reads."""
    global oldest, newest, written
    cdef int i
    cdef PyObject* storage
    cdef PyObject* part
    if not r.listed:
        return
    r.listed = False
    written -= r.inplace
    if r.before != NULL:
        (<Recipe>r.before).after = r.after
    else:
        oldest = r.after
    if r.after != NULL:
        (<Recipe>r.after).before = r.before
    else:
        newest = r.before
    memory.unsettled -= 1
    for i in range(r.nsources):
        storage, part = r.sources[i].storage, r.sources[i].recipe
        r.sources[i].storage = r.sources[i].recipe = NULL
        if storage != NULL:
            (<Storage>storage).waits -= 1
            Py_DECREF(<object>storage)
        if part != NULL:
            (<Recipe>part).readers -= 1
            Py_DECREF(<object>part)


# ---- recording -------------------------------------------------------------------------------------------------------

least = 6144  # smaller ones take no longer eagerly


cdef inline bint is_plain(int code) noexcept:
    """Whether kernels compute in the dtype itself, without rounding."""
    return code == F32 or code == F64 or code == I64 or code == BOOL or code == I32 or code == U8


cdef bint same_form(Recipe r, Tensor t, Tensor out) noexcept:
    """Whether ``t`` is all that ``r`` computes, in the form of ``out``."""
    cdef size_t n = t.nd * sizeof(int64_t)
    return (t.raw == r.data and t.code == r.code and r.nd == t.nd and t.nd == out.nd
            and memcmp(r.sizes, t.sizes, n) == 0 and memcmp(t.sizes, out.sizes, n) == 0
            and (r.contiguous and t.contiguous or memcmp(r.strides, t.strides, n) == 0) and same_order(t, out))


cdef bint is_free(Tensor t) noexcept:
    """Whether taeda alone can read and write the memory of ``t``, and recipes know its dtype."""
    return t.holds == VALUES and is_plain(t.code) and not (t.storage.shown or t.storage.exports
                                                            or t.storage.owner is not None)


cdef object put_off(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target):
    """The result of a pointwise op, not computed; None where it had better be at once. A ``target`` is written to."""
    cdef int64_t shape[MAXDIM]
    cdef Tensor first = target, t, out
    cdef Recipe r
    cdef Source* s
    cdef PyObject* parts[MOST_SOURCES]
    cdef list slices = None
    cdef int i, d, nd, code, inner = -1
    cdef int64_t count
    cdef bint flat = True
    if not puts_off or nin > MOST_SOURCES or op.nouts != 1 or op.fuses == ALONE or not is_plain(compute):
        return None
    if op.fuses == UNKNOWN:
        op.fuses = FITS if "require" not in op.traits else ALONE
        if op.fuses == ALONE:
            return None
    if memory.planners and is_planning():
        return None
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
        if first.nd > INLINE or first.count < least or first.count == 0:
            return None
        out = target if target is not None else empty_strided_like(code, first, True)
    else:
        nd = broadcast_shape(op, inputs, nin, shape)
        if nd > INLINE or target is not None and not (
                nd == target.nd and memcmp(shape, target.sizes, nd * sizeof(int64_t)) == 0 and is_dense(target)):
            return None
        count = 1
        for i in range(nd):
            count *= shape[i]
        if count < least or count == 0:
            return None
        out = target if target is not None else new_output(inputs, nin, code, nd, shape, True)
        if out.count >= LEAST_ELEMENTS:
            for d in range(nd):
                if out.strides[d] == 1 and out.sizes[d] > 1:
                    inner = d
            for i in range(nin):
                if inner >= 0 and isinstance(<object>inputs[i], Tensor):
                    t = <Tensor>inputs[i]
                    d = inner - (nd - t.nd)
                    if d >= 0 and t.sizes[d] > 1 and t.strides[d] != 1 and t.strides[d] != 0:
                        return None  # across the order of the output: a copy serves better
    if target is not None and (target.storage.recipe is None and target.storage.waits
                               or target.storage.recipe is not None and (
                                   target.storage.waits > 1  # others are still to read what is there
                                   or (<Recipe>target.storage.recipe).is_row
                                   or Py_REFCNT(<PyObject*>target.storage.recipe) > 1
                                   or not same_form(<Recipe>target.storage.recipe, target, target))):
        settle(target.storage)
    r = <Recipe>Recipe.__new__(Recipe)
    r.op, r.variant, r.compute, r.code, r.nd, r.count = op, variant, compute, code, out.nd, out.count
    r.contiguous, r.inplace, r.nsources = out.contiguous, target is not None, nin
    memcpy(r.sizes, out.sizes, out.nd * sizeof(int64_t))
    memcpy(r.strides, out.strides, out.nd * sizeof(int64_t))
    for i in range(nin):  # before anything is kept: a number may be refused
        s = &r.sources[i]
        if isinstance(<object>inputs[i], Tensor):
            t = <Tensor>inputs[i]
            s.code = t.code
            if t.storage.recipe is not None and not same_form(<Recipe>t.storage.recipe, t, out):
                part = slice_of(<Recipe>t.storage.recipe, t, out)
                if part is None:
                    settle_to_read(t.storage)
                else:
                    slices = [None] * nin if slices is None else slices
                    slices[i] = part
        else:
            s.code = PARAM
            number_slots(op, <object>inputs[i], compute, s.slots)
    for i in range(nin):  # what computes them: each may have been computed with another
        parts[i] = NULL
        if slices is not None and slices[i] is not None:
            parts[i] = <PyObject*>slices[i]
        elif r.sources[i].code != PARAM and (<Tensor>inputs[i]).storage.recipe is not None:
            parts[i] = <PyObject*>(<Tensor>inputs[i]).storage.recipe
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


cdef Recipe slice_of(Recipe r, Tensor t, Tensor out):
    """A recipe for a slice ``t`` of what ``r`` computes, which operands of the size of ``out`` are computed with; None
    where there is none, or it would take many ops."""
    cdef int64_t start[INLINE]
    cdef int64_t left = (t.raw - r.data) // ITEMSIZE[t.code]
    cdef int d, i, next
    cdef bint seen[INLINE]
    if (t.code != r.code or t.nd != r.nd or r.nodes > AGAIN or not same_sizes(t, out) or left < 0
            or not reads_only(r)):
        return None
    for d in range(r.nd):
        start[d], seen[d] = 0, r.sizes[d] == 1
        if t.sizes[d] != 1 and t.strides[d] != r.strides[d]:
            return None
    for i in range(r.nd):  # the largest stride first
        next = -1
        for d in range(r.nd):
            if not seen[d] and (next < 0 or r.strides[d] > r.strides[next]):
                next = d
        if next < 0:
            break
        seen[next] = True
        start[next], left = left // r.strides[next], left % r.strides[next]
        if start[next] + t.sizes[next] > r.sizes[next]:
            return None
    return remade(r, t, start, NULL, None, 0, {}) if left == 0 else None


cdef bint reads_only(Recipe r) noexcept:
    """Whether ``r`` and what it is computed with are pointwise, and write over nothing that they read."""
    cdef int i
    if r.inplace or r.is_row:
        return False
    for i in range(r.nsources):
        if is_undone_row(&r.sources[i]) or (pending(&r.sources[i]) != NULL
                                            and not reads_only(<Recipe>r.sources[i].recipe)):
            return False
    return True


cdef Recipe remade(Recipe r, Tensor t, const int64_t* start, Kernel* k, list leaves, int which, dict made):
    """``r`` for the sizes of ``t`` from ``start`` on, or with ``leaves``, contiguous, for those of ``k``.

    Where ``r`` reads what is joined, ``t`` is of the size of part ``which``, and that is read instead.

    It has no memory: only what reads it computes it.
    """
    cdef Recipe part = made.get(<size_t><void*>r), of
    cdef int i, d
    cdef Source* s
    cdef Tensor leaf
    if part is not None:
        return part
    part = made[<size_t><void*>r] = <Recipe>Recipe.__new__(Recipe)
    part.op, part.variant, part.compute, part.code = r.op, r.variant, r.compute, r.code
    part.nd, part.count, part.data, part.contiguous = r.nd, t.count, r.data, leaves is not None
    part.nodes, part.reads, part.numbers, part.nsources = r.nodes, r.reads, r.numbers, r.nsources
    memcpy(part.sizes, t.sizes, r.nd * sizeof(int64_t))
    memcpy(part.strides, &r.strides[0] if leaves is None else &t.strides[0], r.nd * sizeof(int64_t))
    for i in range(r.nsources):
        s = &part.sources[i]
        s[0] = r.sources[i]
        if s.code == PARAM:
            continue
        if pending(s) != NULL:
            s.storage = s.recipe = NULL
            of = remade(<Recipe>r.sources[i].recipe, t, start, k, leaves, which, made)
            s.recipe = <PyObject*>of
            Py_INCREF(of)
            of.readers += 1
            continue
        if is_undone_row(s):
            s[0] = (<Recipe>s.recipe).sources[which]
            hold(s)
            continue
        s.storage = r.sources[i].storage
        s.recipe = NULL
        if leaves is not None:
            leaf = <Tensor>leaves[leaf_of(k, &r.sources[i], r.nd)]
            s.storage, s.data = <PyObject*>leaf.storage, leaf.raw
        for d in range(r.nd):
            if leaves is None:
                s.data += start[d] * s.strides[d]
            else:
                s.strides[d] = t.strides[d] * ITEMSIZE[s.code]
        Py_INCREF(<object>s.storage)
        (<Storage>s.storage).waits += 1
    enlist(part)
    return part


cdef list leaves_of(Tensor x):
    """Tensors of the sizes of ``x`` that its elements are computed from, each from those at its place; None where ``x``
    lies in memory, or it takes many ops."""
    cdef Kernel k
    cdef Recipe r
    cdef int64_t strides[MAXDIM]
    cdef int i, d
    cdef Tensor like, leaf
    cdef list found = []
    if x.holds != VALUES or x.storage.recipe is None:
        return None
    r = <Recipe>x.storage.recipe
    start(&k)
    if r.nodes > AGAIN or not same_form(r, x, x) or not reads_only(r) or not gather(&k, r):
        return None
    for i in range(k.nleaves):
        like = <Tensor>Tensor.__new__(Tensor)
        like.code, like.holds = k.leaves[i].code, VALUES
        for d in range(x.nd):
            strides[d] = k.leaves[i].strides[d] // ITEMSIZE[like.code]
        leaf = alias_tensor(like, x.nd, x.sizes, strides, 0)
        leaf.storage, leaf.raw = <Storage>k.leaves[i].storage, k.leaves[i].data
        found.append(leaf)
    return found


cdef Tensor computed_from(Tensor x, list leaves, Tensor like):
    """What ``x`` is computed from its `leaves_of`, from others: contiguous ones of the sizes of ``like``."""
    cdef Tensor out = empty_tensor(x.code, like.nd, like.sizes)
    cdef Recipe root = <Recipe>x.storage.recipe
    cdef Kernel k
    start(&k)
    gather(&k, root)
    root = remade(root, out, NULL, &k, leaves, 0, {})
    root.storage, root.data, root.contiguous = <PyObject*>out.storage, out.raw, True
    out.storage.recipe = root
    out.storage.waits += 1
    return out


cdef inline bint too_large(Recipe r) noexcept:
    return r.nodes > MOST_NODES or r.reads > MOST_READ or r.numbers > MOST_NUMBERS


cdef int count_parts(Recipe r, PyObject** parts) except -1:
    """An upper bound of what a kernel for ``r`` holds: what two operands share is counted twice."""
    cdef int i
    cdef Recipe part
    r.nodes, r.own, r.own_numbers, r.below = 1, 0, 0, False
    for i in range(r.nsources):  # its own first
        if r.sources[i].code == PARAM:
            r.own_numbers += 1
        else:
            r.own += parts[i] == NULL or (<Recipe>parts[i]).is_row
    r.reads, r.numbers = r.own, r.own_numbers
    for i in range(r.nsources):
        if parts[i] != NULL:
            part = <Recipe>parts[i]
            r.below = r.below or part.below or part.is_row
            if part.is_row:
                continue
            r.nodes += part.nodes
            r.reads += part.reads
            r.numbers += part.numbers
    return 0


cdef void enlist(Recipe r) noexcept:
    """Append ``r`` to the list."""
    global oldest, newest, written
    memory.unsettled += 1
    r.listed = True
    written += r.inplace
    r.before, r.after = newest, NULL
    if newest != NULL:
        (<Recipe>newest).after = <PyObject*>r
    else:
        oldest = <PyObject*>r
    newest = <PyObject*>r


cdef void take_form(Recipe r, Tensor t) noexcept:
    """Let ``r`` compute elements of the dtype of ``t``, which lie as those do."""
    r.code = r.compute = t.code
    r.nd, r.count, r.contiguous = t.nd, t.count, t.contiguous
    memcpy(r.sizes, t.sizes, t.nd * sizeof(int64_t))
    memcpy(r.strides, t.strides, t.nd * sizeof(int64_t))


cdef void fill_later(Recipe r, Tensor out) noexcept:
    """Make ``r``, whose operands are held, what the memory of ``out`` should hold."""
    r.storage, r.data = <PyObject*>out.storage, out.raw
    out.storage.waits += 1
    out.storage.recipe = r
    enlist(r)


cdef void keep(Recipe r, PyObject** inputs, PyObject** parts, Tensor out, bint flat) noexcept:
    """Make ``r`` the recipe of the memory of ``out``."""
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
            s.recipe = parts[i]
            Py_INCREF(<object>s.recipe)
            (<Recipe>s.recipe).readers += 1
        if t.storage is out.storage:
            r.reads_own = r.reads_own or s.recipe == NULL or (<Recipe>s.recipe).reads_own
        elif s.recipe == NULL or (<Recipe>s.recipe).reads_own or (<Recipe>s.recipe).is_row:
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
    if out.storage.recipe is not None:  # it is written to: what it should have held, `r` computes along
        (<Recipe>out.storage.recipe).superseded = True
        (<Recipe>out.storage.recipe).storage = NULL
    else:
        out.storage.waits += 1
    out.storage.recipe = r
    enlist(r)


# ---- computing -------------------------------------------------------------------------------------------------------

cdef bint same_place(const Source* a, const Source* b, int nd) noexcept:
    return a.data == b.data and a.code == b.code and memcmp(a.strides, b.strides, nd * sizeof(int64_t)) == 0


cdef int leaf_of(Kernel* k, Source* s, int nd) noexcept:
    """The number of what an operand reads; -1 where there is no more room."""
    cdef int i
    for i in range(k.nleaves):
        if same_place(k.leaves[i], s, nd):
            return i
    if k.nleaves == MOST_FUSED:
        return -1
    k.leaves[k.nleaves] = s
    k.nleaves += 1
    return k.nleaves - 1


cdef bint are_alike(Recipe a, Recipe b) noexcept:
    """Whether two recipes of one form compute the same."""
    cdef int i
    cdef Source* s
    cdef Source* t
    if a is b:
        return True
    if a.op is not b.op or a.variant != b.variant or a.compute != b.compute or a.nsources != b.nsources:
        return False
    for i in range(a.nsources):
        s, t = &a.sources[i], &b.sources[i]
        if s.code != t.code:
            return False
        if s.code == PARAM:
            if s.slots[0] != t.slots[0] or s.slots[1] != t.slots[1]:
                return False
        elif pending(s) != NULL and pending(t) != NULL:
            if not are_alike(<Recipe>s.recipe, <Recipe>t.recipe):
                return False
        elif pending(s) != pending(t) or not same_place(s, t, a.nd):
            return False
    return True


cdef bint gather(Kernel* k, Recipe r) noexcept:
    """Append what ``r`` is computed from, and ``r``; whether there was room. Recursive: at most MOST_NODES deep."""
    cdef int i
    cdef Source* s
    if r.mark == generation:
        return True
    r.mark = generation
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            k.nnumbers += 1
        elif pending(s) != NULL:
            if not gather(k, <Recipe>s.recipe):
                return False
        elif leaf_of(k, s, r.nd) < 0:
            return False
    for i in range(k.nnodes):  # two recipes for the same values are computed once
        if are_alike(<Recipe>k.nodes[i], r):
            r.place = i
            return True
    if k.nnodes == MOST_NODES:
        return False
    r.place = k.nnodes
    k.nodes[k.nnodes] = <PyObject*>r
    k.nnodes += 1
    return True


cdef int start(Kernel* k) noexcept:
    global generation
    generation += 1
    k.nnodes = k.nouts = k.nleaves = k.nnumbers = 0
    return 0


cdef int measure(Recipe r, PyObject** parts) except -1:
    """Count what a kernel for ``r``, which is not kept yet, holds exactly."""
    cdef Kernel k
    cdef int i
    cdef bint fits = True
    start(&k)
    for i in range(r.nsources):
        if parts[i] != NULL and not (<Recipe>parts[i]).is_row:
            fits = fits and gather(&k, <Recipe>parts[i])
    if fits:
        r.nodes, r.reads, r.numbers = k.nnodes + 1, r.own + k.nleaves, r.own_numbers + k.nnumbers
    return 0


cdef int compute(Recipe root) except -1:
    """Compute what ``root`` describes, with what is worth writing on the way."""
    cdef Kernel k
    if root.is_row:
        return compute_row(root)
    if root.below and compute_with_rows(root):
        return 0
    gather_all(&k, root)
    k.outs[0] = <PyObject*>root
    k.nouts = 1
    return run(&k)


cdef int gather_all(Kernel* k, Recipe root) except -1:
    start(k)
    if not gather(k, root):  # cannot be: `put_off` sees to it
        raise RuntimeError("a recipe is larger than a kernel may be")
    return 0


cdef bint same_shape(Recipe a, Recipe b) noexcept:
    return (a.nd == b.nd and memcmp(a.sizes, b.sizes, a.nd * sizeof(int64_t)) == 0
            and memcmp(a.strides, b.strides, a.nd * sizeof(int64_t)) == 0)


cdef int settle_all(list storages) except -1:
    """Compute what all of these should hold, those of one form by one kernel as far as it has room."""
    if len(storages) == 1:
        return settle(<Storage>storages[0])
    return settle_together(storages) if storages else 0


cdef int settle_together(list storages) except -1:
    cdef Kernel k, before
    cdef Recipe first, r
    cdef Storage other
    cdef Py_ssize_t i, j, n = len(storages)
    begin()
    try:
        for i in range(n):  # row-wise ops run with what goes on with them, or else alone
            other = <Storage>storages[i]
            if other.recipe is not None and (<Recipe>other.recipe).below:
                compute_with_rows(<Recipe>other.recipe)
        for i in range(n):
            other = <Storage>storages[i]
            if other.recipe is not None and (<Recipe>other.recipe).is_row:
                compute(<Recipe>other.recipe)
        for i in range(n):
            if (<Storage>storages[i]).recipe is None:
                continue
            first = <Recipe>(<Storage>storages[i]).recipe
            start(&k)
            join(&k, first)
            for j in range(i + 1, min(n, i + NEIGHBOURS)):
                other = <Storage>storages[j]
                r = <Recipe>other.recipe if other.recipe is not None else None
                if r is None or r.mark == generation or not same_shape(first, r) or not shares(&k, r):
                    continue
                before = k
                if not join(&k, r):
                    k = before
                    break
            run(&k)
    finally:
        end()
    return 0


cdef bint join(Kernel* k, Recipe r) except -1:
    """Have a kernel compute ``r`` too; whether there was room. Where there was none, the kernel is spoiled."""
    if k.nouts + 1 > MOST_FUSED // 2 or not gather(k, r):
        return False
    k.outs[k.nouts] = <PyObject*>r
    k.nouts += 1
    return k.nouts + k.nleaves <= MOST_FUSED and k.nnumbers <= MOST_NUMBERS


cdef bint shares(Kernel* k, Recipe r) noexcept:
    """Whether ``r`` reads something that the kernel reads or computes."""
    cdef int i, j
    cdef Source* s
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            continue
        if pending(s) != NULL:
            if (<Recipe>s.recipe).mark == generation or shares(k, <Recipe>s.recipe):
                return True
            continue
        for j in range(k.nleaves):
            if same_place(k.leaves[j], s, r.nd):
                return True
    return False


cdef inline bint is_held(Recipe r) noexcept:
    """Whether anything but recipes holds the memory that ``r`` describes: these have a reference for each reading."""
    return Py_REFCNT(r.storage) > (<Storage>r.storage).waits - 1


cdef void write_along(Kernel* k) noexcept:
    """Have results written that others hold: what stays in the cache, what in-place ops write in any case, and of the
    rest so much that nothing which is computed again takes many ops."""
    cdef int i, j
    cdef int[MOST_NODES] cost
    cdef Recipe r
    cdef Source* s
    cdef bint chosen
    for i in range(k.nnodes):
        r = <Recipe>k.nodes[i]
        cost[i] = 1
        for j in range(r.nsources):
            s = &r.sources[j]
            if pending(s) != NULL:
                cost[i] += cost[(<Recipe>s.recipe).place]
        chosen = False
        if r.superseded or r.storage == NULL:
            continue
        for j in range(k.nouts):
            chosen = chosen or k.outs[j] == k.nodes[i]
        if (not chosen and k.nouts + k.nleaves < MOST_FUSED
                and (r.inplace or cost[i] > AGAIN or r.count * ITEMSIZE[r.code] <= CACHED)
                and is_held(r)):
            k.outs[k.nouts] = k.nodes[i]
            k.nouts += 1
            chosen = True
        if chosen:
            cost[i] = 0


cdef int run(Kernel* kernel) except -1:
    """Compute what ``kernel`` is to write, and what is worth writing on the way."""
    cdef Kernel k
    cdef Recipe r
    cdef int i
    write_along(kernel)
    k = kernel[0]
    for i in range(k.nnodes):  # what follows may let go of them
        Py_INCREF(<object>k.nodes[i])
    for i in range(k.nouts):
        k.storages[i] = (<Recipe>k.outs[i]).storage
        Py_INCREF(<object>k.storages[i])
    try:
        for i in range(k.nouts):
            if not take_over(&k, i):
                need_memory(<Storage>k.storages[i])
        launch(&k, None)
        for i in range(k.nouts):
            r = <Recipe>k.outs[i]
            if (<Storage>k.storages[i]).recipe is r:
                finish(r, <Storage>k.storages[i])
    finally:
        for i in range(k.nouts):
            Py_DECREF(<object>k.storages[i])
        for i in range(k.nnodes):
            Py_DECREF(<object>k.nodes[i])
    return 0


cdef bint take_over(Kernel* k, int which) except -1:
    """Let output ``which`` have the memory of an operand that nobody reads afterwards; False where there is none."""
    cdef Recipe out = <Recipe>k.outs[which], r
    cdef Storage storage = <Storage>k.storages[which]
    cdef PyObject* old
    cdef int i, j, d, places, readers
    cdef bint same, ends = True
    if storage.late is None:
        return False
    for i in range(k.nnodes):  # what reads it must not outlive this launch
        r = <Recipe>k.nodes[i]
        same = False
        for j in range(k.nouts):
            same = same or k.outs[j] == k.nodes[i] and (<Storage>k.storages[j]).recipe is r
        ends = ends and (same or r.storage == NULL and r.readers == readings(k, r))
    for i in range(k.nleaves if ends else 0):
        old = k.leaves[i].storage
        if old == NULL or (<Storage>old).recipe is not None or k.leaves[i].data != (<Storage>old).data:
            continue
        places = readers = 0
        for j in range(k.nleaves):
            places += k.leaves[j].storage == old
        for j in range(k.nnodes):
            for d in range((<Recipe>k.nodes[j]).nsources):
                readers += (<Recipe>k.nodes[j]).sources[d].storage == old
        same = places == 1 and ITEMSIZE[k.leaves[i].code] == ITEMSIZE[out.code]
        for d in range(out.nd):
            same = same and k.leaves[i].strides[d] == out.strides[d] * ITEMSIZE[out.code]
        if same and readers == (<Storage>old).waits == Py_REFCNT(old) and move_block(<Storage>old, storage):
            return True
    return False


cdef int launch(Kernel* k, Tensor target) except -1:
    """Run the kernel of these nodes; the first time, make it. A ``target`` is where the only output goes."""
    cdef Launch L
    cdef char classes[MOST_FUSED + 1]
    cdef int64_t words[MOST_WORDS]
    cdef Recipe root = <Recipe>k.outs[0], r
    cdef int i, d, n = 0, nslots
    cdef int64_t grain = 16384
    cdef void* address
    # where everything lies
    L.nd, L.nmem = root.nd, k.nouts + k.nleaves
    memcpy(L.sizes, root.sizes, root.nd * sizeof(int64_t))
    for i in range(k.nouts):
        r = <Recipe>k.outs[i]
        L.ptr[i] = r.data
        for d in range(root.nd):
            L.strides[i][d] = r.strides[d] * ITEMSIZE[r.code]
    if target is not None:
        L.ptr[0] = target.raw
        for d in range(root.nd):
            L.strides[0][d] = target.strides[d] * ITEMSIZE[root.code]
    for i in range(k.nleaves):
        L.ptr[k.nouts + i] = k.leaves[i].data
        memcpy(L.strides[k.nouts + i], k.leaves[i].strides, root.nd * sizeof(int64_t))
    coalesce(&L)
    for i in range(L.nmem):
        classes[i] = layout_class(&L, i, ITEMSIZE[(<Recipe>k.outs[i]).code if i < k.nouts
                                                  else k.leaves[i - k.nouts].code])
    classes[L.nmem] = 0
    if root.count >= STREAM_LEAST and stores_stream(&L, k.nouts, classes, root.count):
        memset(classes, b"n", k.nouts)
        grain = STREAM_GRAIN
    # the kernel
    for i in range(L.nmem):
        words[i] = classes[i] << 8 | (k.leaves[i - k.nouts].code if i >= k.nouts else (<Recipe>k.outs[i]).place)
    n = describe(k, words + L.nmem) + L.nmem
    address = find(words, n)
    if address == NULL:
        address = <void*><size_t>HELPERS["build_fused"](
            nodes_of(k), [(<Recipe>k.outs[i]).place for i in range(k.nouts)],
            [ALL_DTYPES[k.leaves[i].code].name for i in range(k.nleaves)], (<bytes>classes).decode())
        add(words, n, address)
    # its numbers
    L.kernel = <kernel_t>address
    L.arg[0] = L.sizes[L.nd - 1]
    for i in range(L.nmem):
        L.arg[2 + 2 * i] = L.strides[i][L.nd - 1]
        L.arg[3 + 2 * i] = L.strides[i][L.nd - 2] if L.nd > 1 else 0
    nslots = 2 + 2 * L.nmem
    L.narg = nslots + numbers_of(k, L.arg + nslots)
    done = [<Recipe>k.outs[i] for i in range(k.nouts)]
    if WATCHER is not None:
        tell(k, [(<Recipe>k.outs[i]).place for i in range(k.nouts)], root)
    run_elements(&L, root.count, grain)
    return 0


cdef bint compute_into(Tensor target, Tensor source) except -1:
    """Compute the elements of ``source``, which has a recipe, into ``target``; whether that could be done.

    ``source`` keeps its recipe: mostly it is a part of what is joined, and nobody will ask for it again.
    """
    cdef Recipe r = <Recipe>source.storage.recipe
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
    for d in range(r.nd):  # in the order of memory on both sides, or it is a matter of copying
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
            for j in range((<Recipe>k.nodes[i]).nsources):
                if (<Recipe>k.nodes[i]).sources[j].storage == <PyObject*>target.storage:
                    return False
        k.outs[0] = <PyObject*>r
        k.nouts = 1
        launch(&k, target)
    finally:
        end()
    return True


cdef int give_memory(Storage storage) except -1:
    """Memory for a storage that was made without."""
    cdef char* before = storage.data
    give_block(storage, storage.block, False)
    return tell_address(storage, before)


cdef bint move_block(Storage old, Storage storage) except -1:
    """Give ``storage``, which was made without memory, the block of ``old``, which nobody will use any more; False
    where that does not fit."""
    cdef char* before = storage.data
    if (storage.late is None or old.late is not None or old.block != storage.block or old.owner is not None
            or old.device or old.exports or old.shown or not old.may_resize):
        return False
    storage.data, old.owner = old.data, ()  # what lies there is not the old one's to give back
    tell_address(storage, before)
    return True


cdef int tell_address(Storage storage, char* before) except -1:
    """Tell its tensor, the only one on it, where its memory lies by now."""
    holder = <object>PyWeakref_GetObject(storage.late)
    storage.late = None
    if isinstance(holder, Tensor) and (<Tensor>holder).storage is storage and (<Tensor>holder).raw == before:
        (<Tensor>holder).raw = storage.data
    if storage.recipe is not None:
        (<Recipe>storage.recipe).data = storage.data
    return 0


cdef int finish(Recipe r, Storage storage) except -1:
    """The memory holds what the recipe says: whatever reads it, reads there from now on."""
    cdef PyObject* at = r.after
    cdef Source* s
    cdef int i
    r.done = True
    while r.readers:  # they are younger
        for i in range((<Recipe>at).nsources):
            s = &(<Recipe>at).sources[i]
            if s.recipe != <PyObject*>r:
                continue
            if s.storage == NULL:
                s.storage = <PyObject*>storage
                Py_INCREF(storage)
                storage.waits += 1
            s.recipe, s.data = NULL, r.data
            r.readers -= 1
            Py_DECREF(r)
        at = (<Recipe>at).after
    forget(r)
    storage.waits -= 1
    storage.recipe = None
    return 0


cdef Recipe with_memory(Recipe r):
    """``r``, or where nobody holds its own memory or what superseded it, one that is computed from it."""
    cdef PyObject* at
    cdef int i
    if r.storage != NULL:
        return <Recipe>(<Storage>r.storage).recipe
    at = r.after
    while at != NULL:
        for i in range((<Recipe>at).nsources):
            if (<Recipe>at).sources[i].recipe == <PyObject*>r:
                return with_memory(<Recipe>at)
        at = (<Recipe>at).after
    raise RuntimeError("a recipe is there that nobody needs")


cdef void begin() noexcept:
    """Wait until no other thread computes, and keep others from it.

    Python's collector waits, too: what it frees may ask for elements, and recipes that are looked at would be gone.
    """
    global owner, depth, collects
    cdef unsigned long me = PyThread_get_thread_ident()
    while depth and owner != me:  # the other thread has given up the GIL meanwhile
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


cdef int compute_own(Storage storage) except -1:
    """Compute what ``storage`` should hold."""
    if storage.recipe is not None:
        begin()
        try:
            compute(<Recipe>storage.recipe)
        finally:
            end()
    return 0


cdef int settle_storage(Storage storage, bint reading) except -1:
    """Compute what ``storage`` should hold, and unless it is for ``reading``, whatever waits to read it."""
    cdef PyObject* at
    begin()
    try:
        if storage.recipe is not None:
            compute(<Recipe>storage.recipe)
        while storage.waits and not reading:
            at = newest
            while at != NULL and not reads(<Recipe>at, storage):
                at = (<Recipe>at).before
            if at == NULL:
                raise RuntimeError("a storage waits for a recipe that is not there")
            compute(with_memory(<Recipe>at))  # no name for it: nothing here may keep it
    finally:
        end()
    return 0


cdef bint reads(Recipe r, Storage storage) noexcept:
    cdef int i
    for i in range(r.nsources):
        if r.sources[i].storage == <PyObject*>storage:
            return True
    return False


cdef struct Entry:
    uint64_t hash
    int64_t* words
    int n
    void* address

cdef Entry* table = NULL      # the kernels by what describes them; open addressing
cdef int table_size = 0, table_used = 0


cdef uint64_t hash_of(const int64_t* words, int n) noexcept:
    cdef uint64_t h = n
    cdef int i
    for i in range(n):
        h = (h ^ <uint64_t>words[i]) * <uint64_t>0x9E3779B97F4A7C15
        h ^= h >> 29
    return h | 1


cdef void* find(const int64_t* words, int n) noexcept:
    """The kernel that these words describe; NULL where there is none yet."""
    cdef uint64_t h = hash_of(words, n)
    cdef int i = <int>(h >> 20) & (table_size - 1)
    if table_size == 0:
        return NULL
    while table[i].hash:
        if table[i].hash == h and table[i].n == n and memcmp(table[i].words, words, n * sizeof(int64_t)) == 0:
            return table[i].address
        i = (i + 1) & (table_size - 1)
    return NULL


cdef int add(const int64_t* words, int n, void* address) except -1:
    """Keep a kernel."""
    global table, table_size, table_used
    cdef Entry* old = table
    cdef Entry* larger
    cdef int i, j, size = table_size
    cdef Entry made
    made.hash, made.n, made.address = hash_of(words, n), n, address
    if 2 * (table_used + 1) > size:
        size = max(2 * size, 64)
        larger = <Entry*>calloc(size, sizeof(Entry))
        if larger == NULL:
            raise MemoryError()
        for j in range(table_size):
            if old[j].hash:
                i = <int>(old[j].hash >> 20) & (size - 1)
                while larger[i].hash:
                    i = (i + 1) & (size - 1)
                larger[i] = old[j]
        table, table_size = larger, size
        free(old)
    made.words = <int64_t*>malloc(n * sizeof(int64_t))
    if made.words == NULL:
        raise MemoryError()
    memcpy(made.words, words, n * sizeof(int64_t))
    i = <int>(made.hash >> 20) & (size - 1)
    while table[i].hash:
        i = (i + 1) & (size - 1)
    table[i] = made
    table_used += 1
    return 0


cdef object WATCHER = None


def watch(function):
    """Call ``function(names of ops, numbers of those written, bytes read, bytes written, elements)`` for each kernel of
    this process that computes recipes, also where it reads them; None: no more. The one before."""
    global WATCHER
    before = WATCHER
    WATCHER = function
    return before


cdef int64_t bytes_read(Kernel* k, int nd, const int64_t* sizes) noexcept:
    """Bytes of what a kernel reads from memory."""
    cdef int64_t n, read = 0
    cdef int i, d
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            continue
        n = ITEMSIZE[k.leaves[i].code]
        for d in range(nd):
            n *= sizes[d] if k.leaves[i].strides[d] else 1
        read += n
    return read


cdef list names_of(Kernel* k):
    return [(<Recipe>k.nodes[i]).op.name for i in range(k.nnodes)]


cdef int tell(Kernel* k, list outs, Recipe root) except -1:
    """Tell the watcher of a kernel."""
    cdef int64_t written = 0
    cdef int i
    for i in range(len(outs)):
        written += root.count * ITEMSIZE[(<Recipe>k.outs[i]).code]
    WATCHER(names_of(k), outs, bytes_read(k, root.nd, root.sizes), written, root.count)
    return 0


cdef int tell_row(Recipe r, Prologue* p, Epilogue* e) except -1:
    """Tell the watcher of a row-wise op that was put off."""
    cdef int64_t whole = r.count * ITEMSIZE[r.code], read = 0, results = 1
    cdef list before = [], after = []
    read = whole * (r.nsources - (p != NULL))
    if p != NULL:
        before = names_of(&p.kernel)
        read += bytes_read(&p.kernel, r.nd, r.sizes)
    if e != NULL:
        after = names_of(&e.kernel)
        read += bytes_read(&e.kernel, r.nd, r.sizes)
        results = e.kernel.nouts + e.writes_own
    WATCHER([*before, r.rows.name, *after], list(range(results)), read, results * whole, r.count)
    return 0


cdef int tell_prologue(Prologue* p) except -1:
    if WATCHER is not None:
        tell(&p.kernel, [], <Recipe>p.kernel.nodes[p.kernel.nnodes - 1])
    return 0


cdef int describe(Kernel* k, int64_t* words) noexcept:
    """The nodes of a kernel and what each reads, as numbers; how many they are."""
    cdef int i, j, n = 3
    cdef Recipe r
    cdef Source* s
    words[0], words[1], words[2] = k.nnodes, k.nouts, k.nleaves
    for i in range(k.nnodes):
        r = <Recipe>k.nodes[i]
        words[n] = <int64_t><void*>r.op
        words[n + 1] = r.variant << 16 | r.compute << 8 | r.code
        n += 2
        for j in range(r.nsources):
            s = &r.sources[j]
            if s.code == PARAM:
                words[n] = NUMBER
            elif pending(s) != NULL:
                words[n] = NODE | (<Recipe>s.recipe).place
            else:
                words[n] = LEAF | leaf_of(k, s, r.nd)
            n += 1
    return n


cdef int numbers_of(Kernel* k, int64_t* slots) noexcept:
    """The numbers that the nodes are given, two words each; how many words."""
    cdef int i, j, n = 0
    cdef Recipe r
    for i in range(k.nnodes):
        r = <Recipe>k.nodes[i]
        for j in range(r.nsources):
            if r.sources[j].code == PARAM:
                slots[n], slots[n + 1] = r.sources[j].slots[0], r.sources[j].slots[1]
                n += 2
    return n


cdef int place_of(Kernel* k, PyObject* node) noexcept:
    """The number of a node: what it is marked with may be that of a kernel which was gathered since."""
    cdef int i
    for i in range(k.nnodes):
        if are_alike(<Recipe>k.nodes[i], <Recipe>node):
            return i
    return -1


cdef list nodes_of(Kernel* k):
    """What builds a kernel is told of its nodes (``ops/table.py``)."""
    cdef Recipe r
    cdef Source* s
    cdef int i, j
    cdef list nodes = []
    for i in range(k.nnodes):
        r = <Recipe>k.nodes[i]
        statics = r.op.defaults[r.op.noperands:]
        if r.variant:
            statics = [x for x, v in r.op.variants.items() if v == r.variant][0]
        sources = []
        for j in range(r.nsources):
            s = &r.sources[j]
            if s.code == PARAM:
                sources.append(None)
            elif pending(s) != NULL:
                sources.append(("node", place_of(k, s.recipe)))
            else:
                sources.append(("leaf", leaf_of(k, s, r.nd)))
        nodes.append((r.op, tuple(statics), ALL_DTYPES[r.compute].name, ALL_DTYPES[r.code].name, tuple(sources)))
    return nodes


# ---- what is computed on the way into another kernel -----------------------------------------------------------------

cdef object prologue_of(Tensor x, Prologue* p):
    """How to compute the elements of ``x`` where they are read, and a key that stands for it; None where they are had
    better written first."""
    cdef Recipe root
    if x.holds != VALUES or x.storage.recipe is None:
        return None
    root = <Recipe>x.storage.recipe
    if root.is_row or not same_form(root, x, x):
        return None
    if root.below and compute_with_rows(root):
        return None
    return prologue_from(root, p)


cdef object prologue_from(Recipe root, Prologue* p):
    """The same of what ``root`` describes, which reads nothing but memory."""
    cdef Kernel k
    cdef int64_t words[MOST_WORDS]
    cdef int i
    start(&k)
    if root.nodes > AGAIN or not gather(&k, root):
        return None
    p.nleaves = k.nleaves
    for i in range(k.nleaves):
        p.pointers[i] = k.leaves[i].data
        words[i] = k.leaves[i].code
    p.nnumbers = numbers_of(&k, p.numbers)
    i = k.nleaves + describe(&k, words + k.nleaves)
    p.kernel = k
    return PyBytes_FromStringAndSize(<const char*>words, i * sizeof(int64_t))


cdef object prologue_parts(Prologue* p):
    """The nodes, and dtype and letter of each leaf, for what builds the kernel."""
    cdef int i
    return nodes_of(&p.kernel), [(ALL_DTYPES[p.kernel.leaves[i].code].name, chr(p.letters[i]))
                                 for i in range(p.nleaves)]


# ---- row-wise ops that are put off -----------------------------------------------------------------------------------

cdef class RowOp:
    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1:
        raise NotImplementedError

    cdef int run_alone(self, Recipe r) except -1:
        cdef Storage storage = <Storage>r.storage
        need_memory(storage)
        if not run_row(r, NULL):
            raise RuntimeError("a row-wise op that was put off cannot run")
        return finish(r, storage)


cdef Tensor put_off_rows(RowOp op, Tensor x, Tensor other, int first, double p, double q):
    cdef Recipe r, part
    cdef Tensor out, t
    cdef Source* s
    cdef int i
    if (not puts_off or x.count < least or x.count == 0 or x.nd > INLINE or not x.contiguous or not is_free(x)
            or other is not None and not (other.contiguous and is_free(other) and other.code == x.code)
            or memory.planners and is_planning()):
        return None
    if other is not None and other.storage.recipe is not None:
        settle_to_read(other.storage)
    if x.storage.recipe is not None:
        part = <Recipe>x.storage.recipe
        if part.is_row or part.below or not same_form(part, x, x):  # so that none waits for another
            settle_to_read(x.storage)
    out = empty_strided_like(x.code, x, True)
    r = <Recipe>Recipe.__new__(Recipe)
    r.is_row, r.rows, r.first, r.p, r.q = True, op, first, p, q
    r.reads = 1
    take_form(r, x)
    for i in range(1 + (other is not None)):
        s, t = &r.sources[i], other if i else x
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        Py_INCREF(t.storage)
        t.storage.waits += 1
        if t.storage.recipe is not None:
            s.recipe = <PyObject*>t.storage.recipe
            Py_INCREF(<object>s.recipe)
            (<Recipe>s.recipe).readers += 1
        r.nsources = i + 1
    fill_later(r, out)
    return out


cdef Tensor put_off_whole(RowOp op, list operands, Tensor out):
    cdef Recipe r = <Recipe>Recipe.__new__(Recipe)
    cdef Source* s
    cdef Tensor t
    r.is_row, r.rows, r.reads = True, op, 1
    take_form(r, out)
    for t in operands:
        s = &r.sources[r.nsources]
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        hold(s)
        r.nsources += 1
    fill_later(r, out)
    return out


cdef int compute_row(Recipe r) except -1:
    """Run a row-wise op alone, or join its operands."""
    cdef Storage storage
    if r.rows is not None:
        return r.rows.run_alone(r)
    storage = <Storage>r.storage
    need_memory(storage)
    return join_parts(r, storage)


cdef bint run_row(Recipe r, Epilogue* e) except -1:
    """Run a row-wise op, with what computes its first operand and with an epilogue; False where there is no such
    kernel. Without an epilogue, the operand is then computed first."""
    cdef Rows rows
    cdef Prologue p
    cdef Recipe part
    cdef Tensor like = <Tensor>Tensor.__new__(Tensor)
    cdef Source* s = &r.sources[0]
    cdef object before = None, after = None
    cdef int i
    like.code, like.holds = r.code, VALUES
    like = alias_tensor(like, r.nd, r.sizes, r.strides, 0)
    rows.own, rows.first, rows.p, rows.q, rows.prologue, rows.epilogue = r.data, r.first, r.p, r.q, NULL, e
    if pending(s) != NULL:
        before = prologue_from(<Recipe>s.recipe, &p)
        if before is not None:
            rows.prologue = &p
        elif e == NULL:
            compute(<Recipe>s.recipe)
        else:
            return False
    for i in range(r.nsources):
        rows.pointers[i] = r.sources[i].data
    if e != NULL:
        after = epilogue_of(r, e)
    if not r.rows.run_rows(like, &rows, before, after):
        if before is None or e != NULL:
            return False
        compute(<Recipe>s.recipe)
        rows.prologue, rows.pointers[0] = NULL, s.data
        if not r.rows.run_rows(like, &rows, None, None):
            return False
    if WATCHER is not None:
        tell_row(r, rows.prologue, e)
    return True


cdef object epilogue_of(Recipe row, Epilogue* e):
    """Gather what an epilogue does, whose outputs are known; a key that stands for it."""
    cdef int64_t words[MOST_WORDS + 4]
    cdef int i, n = 3, nouts = e.kernel.nouts, at = 0
    cdef PyObject* outs[MOST_FUSED]
    memcpy(outs, e.kernel.outs, sizeof(outs))
    gather_all(&e.kernel, <Recipe>outs[0])
    memcpy(e.kernel.outs, outs, sizeof(outs))
    e.kernel.nouts = nouts
    for i in range(e.kernel.nleaves):
        if e.kernel.leaves[i].recipe == <PyObject*>row:
            e.own = i
        else:
            e.pointers[at] = e.kernel.leaves[i].data
            at += 1
        words[n] = e.kernel.leaves[i].code
        n += 1
    for i in range(nouts):
        words[n] = (<Recipe>outs[i]).place
        n += 1
    words[0], words[1], words[2] = e.own, e.writes_own, nouts
    e.nnumbers = numbers_of(&e.kernel, e.numbers)
    n += describe(&e.kernel, words + n)
    return PyBytes_FromStringAndSize(<const char*>words, n * sizeof(int64_t))


cdef object epilogue_parts(Epilogue* e):
    """The nodes, dtype and letter of each leaf, None for the other kernel's result, and the numbers of what is
    written."""
    cdef int i, at = 0
    leaves = []
    for i in range(e.kernel.nleaves):
        if i == e.own:
            leaves.append(None)
        else:
            leaves.append((ALL_DTYPES[e.kernel.leaves[i].code].name, chr(e.letters[at])))
            at += 1
    outs = [place_of(&e.kernel, e.kernel.outs[i]) for i in range(e.kernel.nouts)]
    return nodes_of(&e.kernel), leaves, [-1] * e.writes_own + outs


cdef char* memory_of(Epilogue* e, int i) noexcept:
    return (<Recipe>e.kernel.outs[i]).data


cdef int compute_rows_of(Recipe root) except -1:
    """Run the row-wise ops that ``root`` reads."""
    cdef Kernel k
    cdef int i
    cdef bint found = True
    while found:
        found = False
        gather_all(&k, root)
        for i in range(k.nleaves):
            if is_undone_row(k.leaves[i]):
                compute_row(<Recipe>k.leaves[i].recipe)
                found = True
                break
    return 0


cdef bint compute_with_rows(Recipe root) except -1:
    """Compute ``root`` where a row-wise op stores what it is computed from; False where that cannot be: then it reads
    nothing but memory."""
    cdef Kernel k
    cdef Recipe row = None
    cdef int i, rows = 0
    gather_all(&k, root)
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            rows += 1
            row = <Recipe>k.leaves[i].recipe
            if isinstance(row.rows, ChannelOp):
                row = None
                return compute_channels(root)
    if row is not None and row.rows is None:
        row = None
        if compute_by_parts(root):
            return True
    elif rows == 1:
        if compute_after(row, root):
            return True
        if pending(&row.sources[0]) != NULL:  # too much for one kernel; this may compute more than the operand
            compute(<Recipe>row.sources[0].recipe)
            if compute_after(row, root):
                return True
    row = None  # a name for it would keep it
    compute_rows_of(root)
    return False


cdef int readings(Kernel* k, Recipe r) noexcept:
    """How often the nodes of a kernel read what ``r`` computes."""
    cdef int i, j, n = 0
    for i in range(k.nnodes):
        for j in range((<Recipe>k.nodes[i]).nsources):
            n += (<Recipe>k.nodes[i]).sources[j].recipe == <PyObject*>r
    return n


cdef bint compute_after(Recipe row, Recipe root) except -1:
    """Compute ``root`` as the epilogue of ``row``; False where that cannot be."""
    cdef Epilogue e
    cdef Kernel* k = &e.kernel
    cdef Recipe r
    cdef Storage own = <Storage>row.storage
    cdef int i, j
    cdef bint chosen
    if not root.contiguous or root.code != row.code or root.nd != row.nd:
        return False
    gather_all(k, root)
    choose_results(k, root)
    # The row itself is stored, if anything else will read it; `own` is one more name.
    e.writes_own = Py_REFCNT(<PyObject*>own) > own.waits or row.readers > readings(k, row)
    for i in range(k.nnodes):
        r = <Recipe>k.nodes[i]
        chosen = False
        for j in range(k.nouts):
            chosen = chosen or k.outs[j] == k.nodes[i]
        if not chosen and (r.storage != NULL and is_held(r) or r.readers > readings(k, r)):
            e.writes_own = True
    cdef list nodes = nodes_to_hold(k)
    cdef list storages = storages_to_fill(k)
    if e.writes_own:
        need_memory(own)
    if not run_row(row, &e):
        return False
    finish_results(k, storages)
    if e.writes_own:
        finish(row, own)
    return True


cdef int choose_results(Kernel* k, Recipe root) except -1:
    """Let an epilogue write ``root``, and along with it what is worth it and of the same form."""
    cdef Recipe r
    cdef int i
    k.outs[0] = <PyObject*>root
    k.nouts = 1
    write_along(k)
    for i in range(k.nouts):
        r = <Recipe>k.outs[i]
        if i >= MOST_RESULTS or not r.contiguous or r.code != root.code:
            k.nouts = i
            break
    return 0


cdef list nodes_to_hold(Kernel* k):
    """The recipes of a kernel: what runs before it does may let go of them."""
    cdef int i
    return [<Recipe>k.nodes[i] for i in range(k.nnodes)]


cdef list storages_to_fill(Kernel* k):
    """What an epilogue writes to, with memory: mostly of an operand that nobody reads afterwards."""
    cdef int i
    cdef list storages = [<Storage>(<Recipe>k.outs[i]).storage for i in range(k.nouts)]
    for i in range(k.nouts):
        k.storages[i] = (<Recipe>k.outs[i]).storage
    for i in range(k.nouts):
        if not take_over(k, i):
            need_memory(<Storage>storages[i])
    return storages


cdef int finish_results(Kernel* k, list storages) except -1:
    """An epilogue has been run."""
    cdef Recipe r
    cdef int i
    for i in range(len(storages)):
        r = <Recipe>k.outs[i]
        if (<Storage>storages[i]).recipe is r:
            finish(r, <Storage>storages[i])
    return 0


# ---- batch norm in training -----------------------------------------------------------------------------------------
# Its result is pointwise in x and the statistics, so that it can be computed again, and need not be kept. The
# statistics have recipes as rows have: the mean's has the form of x, the others refer to it. Whatever asks for one of
# them computes all. Where somebody asks for what is computed from the result, one kernel does both.

cdef inline Recipe of_mean(Recipe r):
    """The recipe of the mean, from that of any of the statistics."""
    return <Recipe>r.sources[0].recipe if r.first else r


cdef Recipe statistic(ChannelOp rows, Tensor t, Tensor x, Recipe mean, int which):
    """A recipe for one of the statistics, in the memory of ``t``. That of the mean is number 0, and reads ``x``."""
    cdef Recipe r = <Recipe>Recipe.__new__(Recipe)
    cdef Tensor form = x if mean is None else t
    cdef Source* s = &r.sources[0]
    r.is_row, r.rows, r.first, r.reads, r.inplace = True, rows, which, 1, which > 1
    r.nsources = 1
    take_form(r, form)
    s.code, s.data = t.code, x.raw
    if mean is None:
        s.storage = <PyObject*>x.storage
    else:
        s.recipe = <PyObject*>mean
    hold(s)
    fill_later(r, t)
    return r


cdef bint is_statistic(Tensor t, Tensor x):
    """Whether a kernel can read and write ``t``, which has a value for each channel of ``x``."""
    return (t.nd == 1 and t.count == x.sizes[1] and t.code == x.code and t.contiguous and t.holds == VALUES
            and t.storage is not x.storage)


cdef tuple put_off_channels(Op op, ChannelOp rows, Tensor x, Tensor weight, Tensor bias, Tensor running_mean,
                            Tensor running_var, double eps, double momentum):
    cdef Tensor mean, rstd, y, t
    cdef Recipe first, r
    cdef Source* s
    cdef int i, d
    cdef bint late = is_free(running_mean) and is_free(running_var)
    cdef list given = [x, None, None, weight, bias]
    if (not puts_off or x.count < least or x.nd > INLINE or not x.contiguous or not is_free(x)
            or memory.planners and is_planning() or running_mean.storage is running_var.storage):
        return None
    for t in (weight, bias, running_mean, running_var):
        if not is_statistic(t, x):
            return None
    for t in (weight, bias):
        if not is_free(t) or t.storage is running_mean.storage or t.storage is running_var.storage:
            return None
    for t in (running_mean, running_var):
        settle(t.storage)
    for t in (x, weight, bias):
        settle_to_read(t.storage)
    given[1] = mean = empty_tensor(x.code, 1, &x.sizes[1])
    given[2] = rstd = empty_tensor(x.code, 1, &x.sizes[1])
    y = empty_strided_like(x.code, x, True)
    first = statistic(rows, mean, x, None, 0)
    first.p, first.q = eps, momentum
    statistic(rows, rstd, x, first, 1)
    statistic(rows, running_mean, x, first, 2)
    statistic(rows, running_var, x, first, 3)
    r = <Recipe>Recipe.__new__(Recipe)
    r.op, r.below, r.nsources, r.nodes = op, True, 5, 1
    take_form(r, y)
    r.own = r.reads = 3  # what has one value per channel counts half, so that two of these go into one kernel
    for i in range(5):
        s, t = &r.sources[i], <Tensor>given[i]
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        if t.storage.recipe is not None:
            s.recipe = <PyObject*>t.storage.recipe
        hold(s)
        if i:
            s.strides[1] = ITEMSIZE[x.code]
        else:
            for d in range(x.nd):
                s.strides[d] = x.strides[d] * ITEMSIZE[x.code]
    fill_later(r, y)
    if not late:  # somebody may look at the running statistics, and would not be seen
        settle_to_read(mean.storage)
    return y, mean, rstd


cdef bint run_channels(Recipe mean, Recipe y, Epilogue* e) except -1:
    """Compute the statistics, and with them ``y`` or what its epilogue makes of it; False where there is no such
    kernel: never without an epilogue."""
    cdef Channels c
    cdef Recipe r
    cdef Tensor spare = None, like = <Tensor>Tensor.__new__(Tensor)
    cdef PyObject* at = mean.after
    cdef object after = None
    cdef int i
    cdef list others = []
    like.code, like.holds = mean.code, VALUES
    like = alias_tensor(like, mean.nd, mean.sizes, mean.strides, 0)
    memset(c.pointers, 0, sizeof(c.pointers))
    while at != NULL:  # nobody holds some of them any more
        r = <Recipe>at
        if r.is_row and r.nsources == 1 and r.first and r.sources[0].recipe == <PyObject*>mean:
            others.append(r)
            c.pointers[1 + r.first] = r.data
        at = r.after
    if mean.storage != NULL:
        c.pointers[1] = mean.data
    for i in range(1, 5):
        if c.pointers[i] == NULL:
            spare = empty_tensor(mean.code, 1, &mean.sizes[1]) if spare is None else spare
            c.pointers[i] = spare.raw
    c.pointers[5] = mean.sources[0].data
    c.alone, c.eps, c.momentum, c.epilogue = y is None, mean.p, mean.q, e
    if y is not None:
        c.pointers[0], c.pointers[6], c.pointers[7] = y.data, y.sources[3].data, y.sources[4].data
    if e != NULL:
        after = epilogue_of(y, e)
    if not (<ChannelOp>mean.rows).run_channels(like, &c, after):
        return False
    if WATCHER is not None:
        tell_channels(mean, y, e)
    for r in others:
        if r.storage != NULL:
            finish(r, <Storage>r.storage)
    if mean.storage != NULL:
        finish(mean, <Storage>mean.storage)
    mean.done = True
    return True


cdef int tell_channels(Recipe mean, Recipe y, Epilogue* e) except -1:
    """Tell the watcher of a batch norm that was put off."""
    cdef int64_t whole = mean.count * ITEMSIZE[mean.code], read = whole, results = y is not None
    cdef list after = []
    if e != NULL:
        after = names_of(&e.kernel)
        read += bytes_read(&e.kernel, y.nd, y.sizes)
        results = e.kernel.nouts + e.writes_own
    WATCHER([mean.rows.name, *after], list(range(results)), read, results * whole, mean.count)
    return 0


cdef bint compute_channels(Recipe root) except -1:
    """Compute ``root``, which reads statistics of batch norm, by the kernel that finds them; False where that cannot
    be: then it reads nothing but memory."""
    cdef Kernel k
    cdef Recipe mean = None, y = None, r
    cdef int i
    cdef bint other = True
    while other:
        other = False
        gather_all(&k, root)
        for i in range(k.nleaves):
            if not is_undone_row(k.leaves[i]):
                continue
            r = <Recipe>k.leaves[i].recipe
            if isinstance(r.rows, ChannelOp) and (mean is None or of_mean(r) is mean):
                mean = of_mean(r)
                continue
            compute_row(r)  # one is enough
            other = True
            break
    r = None
    if mean is None:
        return False
    for i in range(k.nnodes):
        if (<Recipe>k.nodes[i]).nsources == 5 and (<Recipe>k.nodes[i]).sources[1].recipe == <PyObject*>mean:
            y = <Recipe>k.nodes[i]
    if y is not None and compute_after_channels(mean, y, root):
        return True
    run_channels(mean, None, NULL)
    return False


cdef bint compute_after_channels(Recipe mean, Recipe y, Recipe root) except -1:
    """Compute ``root`` where batch norm stores its result ``y``; False where that cannot be."""
    cdef Epilogue e
    cdef Kernel* k = &e.kernel
    cdef Recipe r
    cdef Storage own = None
    cdef int i
    cdef bint done
    if y is root:
        own = <Storage>y.storage
        need_memory(own)
        run_channels(mean, y, NULL)
        finish(y, own)
        return True
    if not root.contiguous or root.code != y.code or root.nd != y.nd:
        return False
    y.is_row = True  # what reads it reads a result, as of rows
    try:
        gather_all(k, root)
        for i in range(k.nleaves):
            if is_undone_row(k.leaves[i]) and k.leaves[i].recipe != <PyObject*>y:
                return False
        choose_results(k, root)
        e.writes_own = y.storage != NULL and y.count * ITEMSIZE[y.code] <= CACHED and is_held(y)
        nodes = nodes_to_hold(k)
        storages = storages_to_fill(k)
        if e.writes_own:
            own = <Storage>y.storage
            need_memory(own)
        done = run_channels(mean, y, &e)
    finally:
        y.is_row = False
    if done:
        finish_results(k, storages)
        if own is not None:
            finish(y, own)
    return done


cdef class ChannelOp(RowOp):
    cdef bint run_channels(self, Tensor like, Channels* c, object after) except -1:
        raise NotImplementedError

    cdef int run_alone(self, Recipe r) except -1:
        run_channels(of_mean(r), None, NULL)
        return 0


# ---- what is joined, and not yet ------------------------------------------------------------------------------------

cdef Tensor put_off_joined(object tensors, int along, int nd, const int64_t* sizes):
    cdef Recipe r, part
    cdef Tensor out, t, like
    cdef int64_t strides[INLINE]
    cdef Source* s
    cdef int i, d, n = len(tensors)
    cdef int64_t end = 0
    cdef list parts = []
    if not puts_off or n < 2 or n > MOST_SOURCES or nd > INLINE or memory.planners and is_planning():
        return None
    for i in range(n):
        t = <Tensor>tensors[i]
        if (t.code != (<Tensor>tensors[0]).code or t.nd != nd or t.count < least or t.count == 0 or not is_free(t)
                or t.sizes[t.nd - 1] < LEAST_ALONG or t.strides[t.nd - 1] != 1):
            return None
    for i in range(n):
        t = <Tensor>tensors[i]
        part = None
        if t.storage.recipe is not None:
            part = <Recipe>t.storage.recipe
            if part.is_row or part.below:  # so that none waits for another
                part = None
            elif not same_form(part, t, t):
                part = slice_of(part, t, t)
            if part is None:
                settle_to_read(t.storage)
        parts.append(part)
    end = 1
    for d in range(nd - 1, -1, -1):
        strides[d] = end
        end *= sizes[d]
    like = <Tensor>Tensor.__new__(Tensor)
    like.code, like.holds = (<Tensor>tensors[0]).code, VALUES
    like = alias_tensor(like, nd, sizes, strides, 0)
    out = empty_strided_like(like.code, like, True)
    end = 0
    r = <Recipe>Recipe.__new__(Recipe)
    r.is_row, r.first, r.nsources = True, along, n
    r.reads = 1
    take_form(r, like)
    for i in range(n):
        t = <Tensor>tensors[i]
        part = <Recipe>parts[i]
        if part is not None and part.done:  # computed with another one
            part = None
        s = &r.sources[i]
        s.code, s.data = t.code, t.raw
        for d in range(t.nd):
            s.strides[d] = t.strides[d] * ITEMSIZE[t.code]
        if part is not None:
            s.recipe = <PyObject*>part
            r.nodes = max(r.nodes, part.nodes)
        if part is None or part.reads_own:
            s.storage = <PyObject*>t.storage
        hold(s)
        end += t.sizes[along]
        r.ends[i] = end
    fill_later(r, out)
    return out


cdef Tensor part_of(Recipe form, Recipe joined, int i, char* data):
    """Part ``i`` of a tensor of this form in ``data``, as ``joined`` is divided. For launches: it keeps no memory."""
    cdef Tensor like = <Tensor>Tensor.__new__(Tensor)
    cdef int64_t sizes[INLINE]
    cdef int64_t begins = joined.ends[i - 1] if i else 0
    memcpy(sizes, form.sizes, form.nd * sizeof(int64_t))
    sizes[joined.first] = joined.ends[i] - begins
    like.code, like.holds = form.code, VALUES
    like = alias_tensor(like, form.nd, sizes, form.strides, 0)
    like.raw = data + begins * form.strides[joined.first] * ITEMSIZE[form.code]
    return like


cdef int join_parts(Recipe joined, Storage storage) except -1:
    """Compute each part to where it goes, or copy it there."""
    cdef Recipe part
    cdef Tensor t
    cdef Source* s
    cdef Kernel k
    cdef int i
    for i in range(joined.nsources):
        t = part_of(joined, joined, i, joined.data)
        s = &joined.sources[i]
        if pending(s) != NULL and (<Recipe>s.recipe).nodes > AGAIN and (<Recipe>s.recipe).storage != NULL and is_held(
                <Recipe>s.recipe):
            compute(<Recipe>s.recipe)
        part = copy_of(s, t) if pending(s) == NULL else <Recipe>s.recipe
        gather_all(&k, part)
        k.outs[0] = <PyObject*>part
        k.nouts = 1
        launch(&k, t)
    finish(joined, storage)
    return 0


cdef Recipe copy_of(Source* s, Tensor like):
    """A recipe for a copy of an operand that lies in memory."""
    cdef Recipe r = <Recipe>Recipe.__new__(Recipe)
    r.op, r.nsources, r.nodes, r.reads = <Op>COPY, 1, 1, 1
    take_form(r, like)
    r.sources[0] = s[0]
    hold(&r.sources[0])
    enlist(r)
    return r


cdef bint compute_by_parts(Recipe root) except -1:
    """Compute ``root`` for each part of what it reads that is joined; False where that cannot be."""
    cdef Kernel k
    cdef Recipe joined = None, r
    cdef Storage storage = <Storage>root.storage
    cdef Tensor t
    cdef int64_t start_at[INLINE]
    cdef int i
    cdef list parts = []
    gather_all(&k, root)
    for i in range(k.nnodes):
        if (<Recipe>k.nodes[i]).inplace:
            return False
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            r = <Recipe>k.leaves[i].recipe
            if r.rows is not None or joined is not None and not (
                    r.first == joined.first and r.nsources == joined.nsources
                    and memcmp(r.ends, joined.ends, r.nsources * sizeof(int64_t)) == 0):
                return False
            if r.nodes + k.nnodes > AGAIN and (is_held(r) or r.readers > readings(&k, r)):
                return False
            joined = r
    for i in range(joined.nsources):
        t = part_of(root, joined, i, root.data)
        memset(start_at, 0, sizeof(start_at))
        start_at[joined.first] = joined.ends[i - 1] if i else 0
        r = remade(root, t, start_at, NULL, None, i, {})
        start(&k)
        if not gather(&k, r) or k.nleaves >= MOST_FUSED:
            return False
        parts.append(r)
    need_memory(storage)
    for i in range(len(parts)):
        gather_all(&k, <Recipe>parts[i])
        k.outs[0] = <PyObject*><Recipe>parts[i]
        k.nouts = 1
        launch(&k, part_of(root, joined, i, root.data))
    finish(root, storage)
    return True


# ---- what Python calls -----------------------------------------------------------------------------------------------

def put_off_ops(bint on):
    """Whether this thread puts pointwise ops off from now on; what it did before."""
    global puts_off
    cdef bint before = puts_off
    puts_off = on
    tensor.recorders += on - before
    return before


cdef bint is_recording() noexcept:
    return puts_off


def call(function, *args, **kwargs):
    """``function(*args, **kwargs)``; tensors in what it gives, and what it wrote to, are computed when it returns."""
    cdef bint before = put_off_ops(True)
    try:
        return compute_now(function(*args, **kwargs))
    finally:
        put_off_ops(before)
        if not before and written:
            compute_written()


def puts_off_ops():
    """Whether this thread puts pointwise ops off."""
    return bool(puts_off)


cdef int collect(object x, list found) except -1:
    """Append the storages of tensors in ``x`` that have recipes."""
    if isinstance(x, Tensor):
        if (<Tensor>x).holds == VALUES and (<Tensor>x).storage.recipe is not None:
            found.append((<Tensor>x).storage)
    elif isinstance(x, (tuple, list)):
        for y in x:
            collect(y, found)
    elif isinstance(x, dict):
        for y in (<dict>x).values():
            collect(y, found)
    return 0


def compute_now(x):
    """Compute the elements of tensors that were put off: of ``x``, and of those in tuples, lists and dicts; gives
    ``x``."""
    cdef list found
    if type(x) is Tensor:
        if (<Tensor>x).holds == VALUES and (<Tensor>x).storage.recipe is not None:
            settle((<Tensor>x).storage)
    elif memory.unsettled:
        found = []
        collect(x, found)
        settle_all(found)
    return x


def compute_written():
    """Compute what in-place ops have put off."""
    cdef PyObject* at = oldest
    cdef Recipe r
    cdef list found = []
    while at != NULL and written:
        r = <Recipe>at
        if r.inplace and not r.superseded and r.storage != NULL and is_held(r):
            found.append(<Storage>(<Recipe>at).storage)
        at = (<Recipe>at).after
    r = None  # a recipe that only this name held would seem to be needed
    settle_all(found)


def is_computed(Tensor t):
    """Whether the elements of ``t`` lie in memory."""
    return t.storage.recipe is None


def set_least(int64_t elements):
    """Put off results of so many elements and more, whose default is 6144; what it was before."""
    global least
    cdef int64_t before = least
    least = elements
    return before


def count_recipes():
    """How many tensors wait to be computed."""
    return memory.unsettled


def count_kernels():
    """How many kernels of several ops this process has made or loaded."""
    return table_used


def _after_fork():
    """In a forked process no other thread computes."""
    global depth
    if depth:
        depth = 1
        end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
set_settler(settle_storage)
from . import twins  # it sets the recorder
