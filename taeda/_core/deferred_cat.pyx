"""Deferred ``cat``: ops on its result are computed part by part."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

from .devices cimport elsewhere, here
from .fused cimport gather, gather_all, launch, readings, start
from .memory cimport Storage, compute_to_read
from .deferred cimport (
    AGAIN, LEAST_ALONG, MOST_SOURCES, Deferred, Kernel, Later, Source, compute, enlist, fill_later, finish, hold,
    is_free, is_held, is_recording, is_undone_row, least, pending, same_form, take_form,
)
from .deferred_slices cimport remade, slice_of
from .tensor cimport (
    COPY, INLINE, ITEMSIZE, MOST_FUSED, VALUES, Op, Tensor, alias_tensor, empty_strided_like, need_memory,
)


cdef class Joined(Later):
    """Computes ``cat``."""

    cdef int run_alone(self, Deferred r) except -1:
        cdef Storage storage = <Storage>r.storage
        need_memory(storage)
        return join_parts(r, storage)

    cdef bint compute_reader(self, Deferred root, int rows) except -1:
        return compute_by_parts(root)


cdef Joined JOINED = Joined()


cdef Tensor defer_joined(object tensors, int along, int nd, const int64_t* sizes):
    cdef Deferred r, part
    cdef Tensor out, t, like
    cdef int64_t strides[INLINE]
    cdef Source* s
    cdef int i, d, n = len(tensors)
    cdef int64_t end = 0
    cdef list parts = []
    if not is_recording() or n < 2 or n > MOST_SOURCES or nd > INLINE or elsewhere and here():
        return None
    for i in range(n):
        t = <Tensor>tensors[i]
        if (t.code != (<Tensor>tensors[0]).code or t.nd != nd or t.count < least or t.count == 0 or not is_free(t)
                or t.sizes[t.nd - 1] < LEAST_ALONG or t.strides[t.nd - 1] != 1):
            return None
    for i in range(n):
        t = <Tensor>tensors[i]
        part = None
        if t.storage.deferred is not None:
            part = <Deferred>t.storage.deferred
            if part.is_row or part.below:  # so that no deferred row depends on another
                part = None
            elif not same_form(part, t, t):
                part = slice_of(part, t, t)
            if part is None:
                compute_to_read(t.storage)
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
    r = <Deferred>Deferred.__new__(Deferred)
    r.is_row, r.rows, r.first, r.nsources = True, JOINED, along, n
    r.reads = 1
    take_form(r, like)
    for i in range(n):
        t = <Tensor>tensors[i]
        part = <Deferred>parts[i]
        if part is not None and part.done:  # computed with another one
            part = None
        s = &r.sources[i]
        s.code, s.data = t.code, t.raw
        for d in range(t.nd):
            s.strides[d] = t.strides[d] * ITEMSIZE[t.code]
        if part is not None:
            s.deferred = <PyObject*>part
            r.nodes = max(r.nodes, part.nodes)
        if part is None or part.reads_own:
            s.storage = <PyObject*>t.storage
        hold(s)
        end += t.sizes[along]
        r.ends[i] = end
    fill_later(r, out)
    return out


cdef Tensor part_of(Deferred form, Deferred joined, int i, char* data):
    """Part ``i`` of a tensor of this form in ``data``, divided like ``joined``. For launches: it keeps no memory
    alive."""
    cdef Tensor like = <Tensor>Tensor.__new__(Tensor)
    cdef int64_t sizes[INLINE]
    cdef int64_t begins = joined.ends[i - 1] if i else 0
    memcpy(sizes, form.sizes, form.nd * sizeof(int64_t))
    sizes[joined.first] = joined.ends[i] - begins
    like.code, like.holds = form.code, VALUES
    like = alias_tensor(like, form.nd, sizes, form.strides, 0)
    like.raw = data + begins * form.strides[joined.first] * ITEMSIZE[form.code]
    return like


cdef int join_parts(Deferred joined, Storage storage) except -1:
    """Compute each part into its place, or copy it there."""
    cdef Deferred part
    cdef Tensor t
    cdef Source* s
    cdef Kernel k
    cdef int i
    for i in range(joined.nsources):
        t = part_of(joined, joined, i, joined.data)
        s = &joined.sources[i]
        if (pending(s) != NULL and (<Deferred>s.deferred).nodes > AGAIN and (<Deferred>s.deferred).storage != NULL
                and is_held(<Deferred>s.deferred)):
            compute(<Deferred>s.deferred)
        part = copy_of(s, t) if pending(s) == NULL else <Deferred>s.deferred
        gather_all(&k, part)
        k.outs[0] = <PyObject*>part
        k.nouts = 1
        launch(&k, t)
    finish(joined, storage)
    return 0


cdef Deferred copy_of(Source* s, Tensor like):
    """A deferred op for a copy of an operand in memory."""
    cdef Deferred r = <Deferred>Deferred.__new__(Deferred)
    r.op, r.nsources, r.nodes, r.reads = <Op>COPY, 1, 1, 1
    take_form(r, like)
    r.sources[0] = s[0]
    hold(&r.sources[0])
    enlist(r)
    return r


cdef bint compute_by_parts(Deferred root) except -1:
    """Compute ``root`` for each part of the ``cat`` that it reads; False if that is not possible."""
    cdef Kernel k
    cdef Deferred joined = None, r
    cdef Storage storage = <Storage>root.storage
    cdef Tensor t
    cdef int64_t start_at[INLINE]
    cdef int i
    cdef list parts = []
    gather_all(&k, root)
    for i in range(k.nnodes):
        if (<Deferred>k.nodes[i]).inplace:
            return False
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            r = <Deferred>k.leaves[i].deferred
            if not isinstance(r.rows, Joined) or joined is not None and not (
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
        gather_all(&k, <Deferred>parts[i])
        k.outs[0] = <PyObject*><Deferred>parts[i]
        k.nouts = 1
        launch(&k, part_of(root, joined, i, root.data))
    finish(root, storage)
    return True
