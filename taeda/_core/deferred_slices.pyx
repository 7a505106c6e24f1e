"""Deferred ops for a part of a deferred op's result, or for the same ops on other operands."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .fused cimport gather, leaf_of, start
from .memory cimport Storage
from .deferred cimport AGAIN, Deferred, Kernel, Source, enlist, hold, is_undone_row, pending, same_form
from .tensor cimport INLINE, ITEMSIZE, MAXDIM, PARAM, VALUES, Tensor, alias_tensor, empty_tensor, same_sizes


cdef Deferred slice_of(Deferred r, Tensor t, Tensor out):
    """A deferred op for a slice ``t`` of the result of ``r``, for an op whose result is ``out``. None if there is none,
    or if it would take many ops.
    """
    cdef int64_t start[INLINE]
    cdef int64_t left = (t.raw - r.data) // ITEMSIZE[t.code]
    cdef int d, i, next
    cdef bint seen[INLINE]
    if (t.code != r.code or t.nd != r.nd or r.nodes > AGAIN or not same_sizes(t, out) or left < 0
            or not reads_only(r)):
        return None
    for d in range(r.nd):
        start[d], seen[d] = 0, r.sizes[d] == 1
        if t.sizes[d] > r.sizes[d] or t.sizes[d] != 1 and t.strides[d] != r.strides[d]:
            return None  # a transposed row is larger than a column, where the stride of one element says nothing
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


cdef bint reads_only(Deferred r) noexcept:
    """Whether ``r`` and the deferred ops that it depends on are pointwise, and none works in place."""
    cdef int i
    if r.inplace or r.is_row:
        return False
    for i in range(r.nsources):
        if is_undone_row(&r.sources[i]) or (pending(&r.sources[i]) != NULL
                                            and not reads_only(<Deferred>r.sources[i].deferred)):
            return False
    return True


cdef Deferred remade(Deferred r, Tensor t, const int64_t* start, Kernel* k, list leaves, int which, dict made):
    """``r`` for the sizes of ``t`` from ``start`` on, or with ``leaves``, contiguous, for the sizes of ``k``.

    If ``r`` reads a deferred ``cat``, ``t`` has the size of part ``which``, and that is read instead.

    It has no memory: the ops that read it compute it.
    """
    cdef Deferred part = made.get(<size_t><void*>r), of
    cdef int i, d
    cdef Source* s
    cdef Tensor leaf
    if part is not None:
        return part
    part = made[<size_t><void*>r] = <Deferred>Deferred.__new__(Deferred)
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
            s.storage = s.deferred = NULL
            of = remade(<Deferred>r.sources[i].deferred, t, start, k, leaves, which, made)
            s.deferred = <PyObject*>of
            Py_INCREF(of)
            of.readers += 1
            continue
        if is_undone_row(s):
            s[0] = (<Deferred>s.deferred).sources[which]
            hold(s)
            continue
        s.storage = r.sources[i].storage
        s.deferred = NULL
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
    """The tensors of the sizes of ``x`` from which pointwise ops compute it. None if ``x`` is in memory, or takes many
    ops.
    """
    cdef Kernel k
    cdef Deferred r
    cdef int64_t strides[MAXDIM]
    cdef int i, d
    cdef Tensor like, leaf
    cdef list found = []
    if x.holds != VALUES or x.storage.deferred is None:
        return None
    r = <Deferred>x.storage.deferred
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
    """The function that computes ``x`` from its `leaves_of`, of other ``leaves``: contiguous, of the sizes of
    ``like``."""
    cdef Tensor out = empty_tensor(x.code, like.nd, like.sizes)
    cdef Deferred root = <Deferred>x.storage.deferred
    cdef Kernel k
    start(&k)
    gather(&k, root)
    root = remade(root, out, NULL, &k, leaves, 0, {})
    root.storage, root.data, root.contiguous = <PyObject*>out.storage, out.raw, True
    out.storage.deferred = root
    out.storage.waits += 1
    return out
