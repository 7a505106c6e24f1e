"""*Lazy copies*: tensors with a deferred op and no memory, which derivatives keep in place of tensors that can be
recomputed.

A product needs its operand in memory. The operand's lazy copy is computed when the backward pass needs it, from
tensors that other derivatives keep anyway. ``fusion.pyx`` explains deferred ops.
"""

from cpython.object cimport PyObject
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from .deferred_batch_norm cimport ChannelOp
from .devices cimport elsewhere, here
from .fused cimport gather, start
from .fusion cimport compute_all, compute_into, defer
from .memory cimport Original, Storage
from .deferred cimport (
    AGAIN, CACHED, MOST_SOURCES, Deferred, Kernel, Later, Source, fill_later, finish, give_memory, hold, is_free,
    is_recording, is_undone_row, move_block, same_form, same_order, take_form,
)
from .rows cimport defer_whole
from .tensor cimport (
    INLINE, ITEMSIZE, VALUES, Op, Tensor, alias_tensor, empty_strided_like, is_dense, need_memory, same_sizes,
    set_recorder,
)

cdef extern from "Python.h":
    PyObject* PyWeakref_GetObject(object)


cdef Tensor lazy_copy_of(Tensor t, bint is_output):
    """A tensor with the same deferred op, which a derivative keeps in place of ``t``; None if it keeps ``t`` itself.

    Mostly ``t`` is written for a product, and then released. Its lazy copy is computed when the derivative needs it, or
    in the kernel that reads it. The derivative of the op that made ``t`` is the first to keep it.
    """
    cdef Storage storage = t.storage
    cdef Original original = storage.original
    cdef Tensor lazy_copy
    cdef Deferred r
    if not is_recording() or t.count * ITEMSIZE[t.code] <= CACHED or t.holds != VALUES or not is_free(t):
        return None
    lazy_copy = known_lazy_copy(original)
    if lazy_copy is not None:  # another derivative keeps it
        if (original.version != storage.version or lazy_copy.storage.deferred is None or lazy_copy.code != t.code
                or not same_sizes(t, lazy_copy) or not same_order(t, lazy_copy) or t.raw != storage.data):
            return None
        return lazy_copy if original.shared else copy_uncomputed(<Deferred>lazy_copy.storage.deferred, t)
    if not is_output or storage.deferred is None:
        return None
    r = <Deferred>storage.deferred
    if r.is_row or r.reads_own or not same_form(r, t, t) or not is_kept_anyway(r, 1):
        return None
    lazy_copy = copy_uncomputed(r, t)
    note_lazy_copy(storage, lazy_copy, False)
    return lazy_copy


cdef Tensor known_lazy_copy(Original original):
    """The lazy copy that a derivative keeps, or None."""
    return <Tensor>PyWeakref_GetObject(original.lazy_copy) if (
        original is not None and PyWeakref_GetObject(original.lazy_copy) != <PyObject*>None) else None


cdef int note_lazy_copy(Storage storage, Tensor lazy_copy, bint shared) except -1:
    cdef Original original = storage.original
    if original is None:
        original = storage.original = <Original>Original.__new__(Original)
        original.storage = <PyObject*>storage
    original.version, original.lazy_copy, original.shared = storage.version, PyWeakref_NewRef(lazy_copy, None), shared
    return 0


cdef bint keep_lazy_copy(Tensor t, Tensor lazy_copy) except -1:
    """Whether derivatives should keep ``lazy_copy``, which the op that made ``t`` recomputes, in place of ``t``.

    They share one lazy copy. The last of them to read it releases it.
    """
    cdef Deferred r = <Deferred>lazy_copy.storage.deferred
    if (r is None or lazy_copy.code != t.code or not same_sizes(t, lazy_copy) or not same_order(t, lazy_copy)
            or t.raw != t.storage.data or not isinstance(r.rows, Again) and not is_kept_anyway(r, 2)):
        return False
    note_lazy_copy(t.storage, lazy_copy, True)
    return True


cdef class Again(Later):
    """Reruns an op that is not pointwise, with arguments that are kept."""

    cdef Op op
    cdef list args

    cdef int run_alone(self, Deferred r) except -1:
        cdef Storage storage = <Storage>r.storage
        cdef Tensor made = <Tensor?>self.op.run_bound(*self.args)
        if made.nd != r.nd or memcmp(made.strides, r.strides, r.nd * sizeof(int64_t)):
            raise RuntimeError(f"{self.op.name}: its second result has another form")
        if not move_block(made.storage, storage):
            need_memory(storage)
            memcpy(r.data, made.raw, r.count * ITEMSIZE[r.code])
        return finish(r, storage)


cdef Tensor run_again(Op op, PyObject** bound, Tensor t):
    """The deferred result of ``op`` for these arguments, of the form of ``t``; None if ``t`` should be kept."""
    cdef Again again
    cdef Tensor x
    cdef list operands = []
    cdef int i
    if not is_dense(t) or t.nd > INLINE or elsewhere and here():
        return None
    again = <Again>Again.__new__(Again)
    again.op, again.args = op, []
    for i in range(op.nparams):
        again.args.append(<object>bound[i])
        if not isinstance(<object>bound[i], Tensor):
            continue
        x = <Tensor>bound[i]
        if (len(operands) == MOST_SOURCES or not is_free(x) or x.storage.deferred is not None
                or not x.storage.saved):
            return None
        operands.append(x)
        again.args[i] = alias_tensor(x, x.nd, x.sizes, x.strides, 0)
    return defer_whole(again, operands, empty_strided_like(t.code, t, True))


cdef bint is_kept_anyway(Deferred r, int most) noexcept:
    """Whether ``r`` takes few ops, and at most ``most`` operands of its size, which other derivatives keep.

    The result of one op that others read (``most`` is 1) is recomputed from one operand. With two (the sum with a
    residual), ResNet-18 takes 2.3 % more time than without lazy copies; with one, 0.6 %.
    """
    cdef Kernel k
    cdef Source* s
    cdef int i, d, whole = 0
    cdef bint all_of_it
    start(&k)
    if r.nodes > AGAIN or not gather(&k, r):
        return False
    for i in range(k.nleaves):
        s = k.leaves[i]
        if s.storage == NULL or is_undone_row(s) and not isinstance((<Deferred>s.deferred).rows, ChannelOp):
            return False
        all_of_it = True
        for d in range(r.nd):
            all_of_it = all_of_it and (r.sizes[d] == 1 or s.strides[d] != 0)
        whole += all_of_it
        if all_of_it and not (<Storage>s.storage).saved:
            return False
    return 1 <= whole <= most


cdef Tensor copy_uncomputed(Deferred r, Tensor t):
    """A tensor of the form of ``t`` with a deferred op like ``r``."""
    cdef Tensor out = empty_strided_like(t.code, t, True)
    cdef Deferred made = <Deferred>Deferred.__new__(Deferred)
    cdef int i
    take_form(made, out)
    made.op, made.variant, made.compute, made.below = r.op, r.variant, r.compute, r.below
    made.nodes, made.reads, made.numbers, made.nsources = r.nodes, r.reads, r.numbers, r.nsources
    made.own, made.own_numbers = r.own, r.own_numbers
    for i in range(r.nsources):
        made.sources[i] = r.sources[i]
        hold(&made.sources[i])
    fill_later(made, out)
    return out


set_recorder(defer, compute_all, compute_into, give_memory, lazy_copy_of, run_again, keep_lazy_copy)
