"""Deferred row-wise ops, with their prologues (ops that compute their operands) and epilogues (ops on their results).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .devices cimport elsewhere, here
from .fused cimport (
    bytes_read, describe, end_taking, gather, gather_all, is_watched, names_of, nodes_of, numbers_of, place_of,
    readings, start, take_over, tell, tell_watcher, write_along,
)
from .memory cimport Storage, compute_to_read, ensure_computed
from .deferred cimport (
    AGAIN, MOST_RESULTS, MOST_WORDS, Deferred, Epilogue, Kernel, Later, Prologue, Rows, Source, compute, compute_row,
    fill_later, finish, hold, holds_values, is_free, is_held, is_of_here, is_recording, is_undone_row, least, oldest,
    pending, same_form, take_form, written,
)
from .tensor cimport INLINE, ITEMSIZE, MOST_FUSED, VALUES, Tensor, alias_tensor, empty_strided_like, need_memory

from .tensor import ALL_DTYPES

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)


cdef class RowOp:
    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1:
        raise NotImplementedError

    cdef bint compute_reader(self, Deferred root, int rows) except -1:
        return rows == 1 and compute_after_one(root)

    cdef int run_alone(self, Deferred r) except -1:
        cdef Storage storage = <Storage>r.storage
        need_memory(storage)
        if not run_row(r, NULL):
            raise RuntimeError("a deferred row-wise op cannot run")
        return finish(r, storage)


cdef int compute_asked(Deferred row) except -1:
    cdef Deferred reader = held_reader(row) if isinstance(row.rows, RowOp) else None
    return 0 if reader is not None and compute_after(row, reader) else compute_row(row)


cdef Deferred held_reader(Deferred row):
    """The oldest held result that depends on ``row`` and no other row-wise op, since one kernel may store both. None if
    there is none.
    """
    cdef Kernel k
    cdef Deferred r
    cdef PyObject* at = row.after if row.readers else NULL
    cdef int i, rows
    cdef bint found
    while at != NULL:
        r, at = <Deferred>at, (<Deferred>at).after
        if not r.below or r.is_row or r.superseded or r.storage == NULL or not is_held(r):
            continue
        gather_all(&k, r)
        rows, found = 0, False
        for i in range(k.nleaves):
            rows += is_undone_row(k.leaves[i])
            found = found or k.leaves[i].deferred == <PyObject*>row
        if found and rows == 1:
            return r
    return None


cdef object prologue_of(Tensor x, Prologue* p):
    """Fill in the prologue that computes the elements of ``x``, and return its key. None if ``x`` should be computed
    first.
    """
    cdef Deferred root
    if not holds_values(x) or x.storage.deferred is None:
        return None
    root = <Deferred>x.storage.deferred
    if root.is_row or not is_of_here(root) or not same_form(root, x, x):
        return None
    if root.below and compute_with_rows(root):
        return None
    return prologue_from(root, p)


cdef object prologue_from(Deferred root, Prologue* p):
    """The same for ``root``, which reads only memory."""
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
    """The nodes, and dtype and letter of each leaf, for the builder of the kernel."""
    cdef int i
    return nodes_of(&p.kernel), [(ALL_DTYPES[p.kernel.leaves[i].code].name, chr(p.letters[i]))
                                 for i in range(p.nleaves)]


cdef Tensor defer_rows(RowOp op, Tensor x, Tensor other, int first, double p, double q):
    cdef Deferred r, part
    cdef Tensor out, t
    cdef Source* s
    cdef int i
    if (not is_recording() or x.count < least or x.count == 0 or x.nd > INLINE or not x.contiguous or not is_free(x)
            or other is not None and not (other.contiguous and is_free(other) and other.code == x.code)
            or elsewhere and here()):
        return None
    if other is not None and other.storage.deferred is not None:
        compute_to_read(other.storage)
    if x.storage.deferred is not None:
        part = <Deferred>x.storage.deferred
        if part.is_row or part.below or not same_form(part, x, x):  # so that no deferred row depends on another
            compute_to_read(x.storage)
    out = empty_strided_like(x.code, x, True)
    r = <Deferred>Deferred.__new__(Deferred)
    r.is_row, r.rows, r.first, r.p, r.q = True, op, first, p, q
    r.reads = 1
    take_form(r, x)
    for i in range(1 + (other is not None)):
        s, t = &r.sources[i], other if i else x
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        Py_INCREF(t.storage)
        t.storage.waits += 1
        if t.storage.deferred is not None:
            s.deferred = <PyObject*>t.storage.deferred
            Py_INCREF(<object>s.deferred)
            (<Deferred>s.deferred).readers += 1
        r.nsources = i + 1
    fill_later(r, out)
    return out


cdef Tensor defer_whole(Later op, list operands, Tensor out):
    cdef Deferred r = <Deferred>Deferred.__new__(Deferred)
    cdef Source* s
    cdef Tensor t
    r.is_row, r.rows, r.reads, r.inplace = True, op, 1, op.ends
    take_form(r, out)
    for t in operands:
        s = &r.sources[r.nsources]
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        if t.storage.deferred is not None:
            s.deferred = <PyObject*>t.storage.deferred
        hold(s)
        r.nsources += 1
    fill_later(r, out)
    return out


cdef int compute_ended() except -1:
    """Compute the held results that are due at the end of the compiled function, so that their operands are
    released."""
    cdef PyObject* at = oldest if written else NULL
    cdef list found = []
    while at != NULL:
        if (<Deferred>at).rows is not None and (<Deferred>at).rows.ends and (<Deferred>at).storage != NULL \
                and is_held(<Deferred>at):
            found.append(<Storage>(<Deferred>at).storage)
        at = (<Deferred>at).after
    for storage in found:
        ensure_computed(<Storage>storage)
    return 0


cdef bint run_row(Deferred r, Epilogue* e) except -1:
    """Run a row-wise op with the prologue that computes its first operand, and with an epilogue; False if there is no
    such kernel. Without an epilogue, the operand is then computed first."""
    cdef Rows rows
    cdef Prologue p
    cdef Deferred part
    cdef Tensor like = <Tensor>Tensor.__new__(Tensor)
    cdef Source* s = &r.sources[0]
    cdef object before = None, after = None
    cdef bint found
    cdef int i
    like.code, like.holds = r.code, VALUES
    like = alias_tensor(like, r.nd, r.sizes, r.strides, 0)
    rows.own, rows.first, rows.p, rows.q, rows.prologue, rows.epilogue = r.data, r.first, r.p, r.q, NULL, e
    if pending(s) != NULL:
        before = prologue_from(<Deferred>s.deferred, &p)
        if before is not None:
            rows.prologue = &p
        elif e == NULL:
            compute(<Deferred>s.deferred)
        else:
            return False
    for i in range(r.nsources):
        rows.pointers[i] = r.sources[i].data
    if e != NULL:
        after = epilogue_of(r, e)
    try:
        found = (<RowOp>r.rows).run_rows(like, &rows, before, after)
    except:
        if e != NULL:
            end_taking(&e.kernel, False)
        raise
    if e != NULL:
        end_taking(&e.kernel, True)
    if not found:
        if before is None or e != NULL:
            return False
        compute(<Deferred>s.deferred)
        rows.prologue, rows.pointers[0] = NULL, s.data
        if not (<RowOp>r.rows).run_rows(like, &rows, None, None):
            return False
    if is_watched():
        tell_row(r, rows.prologue, e)
    return True


cdef object epilogue_of(Deferred row, Epilogue* e):
    """Gather the ops of an epilogue whose outputs are known; its key."""
    cdef int64_t words[MOST_WORDS + 4]
    cdef int i, n = 3, nouts = e.kernel.nouts, at = 0
    cdef PyObject* outs[MOST_FUSED]
    memcpy(outs, e.kernel.outs, sizeof(outs))
    gather_all(&e.kernel, <Deferred>outs[0])
    memcpy(e.kernel.outs, outs, sizeof(outs))
    e.kernel.nouts = nouts
    for i in range(e.kernel.nleaves):
        if e.kernel.leaves[i].deferred == <PyObject*>row:
            e.own = i
        else:
            e.pointers[at] = e.kernel.leaves[i].data
            at += 1
        words[n] = e.kernel.leaves[i].code
        n += 1
    for i in range(nouts):
        words[n] = (<Deferred>outs[i]).place
        n += 1
    words[0], words[1], words[2] = e.own, e.writes_own, nouts
    e.nnumbers = numbers_of(&e.kernel, e.numbers)
    n += describe(&e.kernel, words + n)
    return PyBytes_FromStringAndSize(<const char*>words, n * sizeof(int64_t))


cdef object epilogue_parts(Epilogue* e):
    """The nodes; dtype and letter of each leaf, None for the other kernel's result; the numbers of the nodes whose
    results are written."""
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


cdef bint on_lines(Epilogue* e) noexcept:
    cdef int i
    for i in range(e.kernel.nouts):
        if (<Storage>e.kernel.storages[i]).late is None and <size_t>(<Deferred>e.kernel.outs[i]).data % 64:
            return False
    return True


cdef char* memory_of(Epilogue* e, int i) except NULL:
    """The memory of output ``i``, mostly taken over from an operand that is not read afterwards. The kernel must run
    now.
    """
    if not take_over(&e.kernel, i):
        need_memory(<Storage>e.kernel.storages[i])
    return (<Deferred>e.kernel.outs[i]).data


cdef int compute_rows_of(Deferred root) except -1:
    """Run the row-wise ops that ``root`` reads."""
    cdef Kernel k
    cdef int i
    cdef bint found = True
    while found:
        found = False
        gather_all(&k, root)
        for i in range(k.nleaves):
            if is_undone_row(k.leaves[i]):
                compute_row(<Deferred>k.leaves[i].deferred)
                found = True
                break
    return 0


cdef bint compute_with_rows(Deferred root) except -1:
    cdef Kernel k
    cdef Later op = None  # no variable for the deferred op, which would keep it alive
    cdef int i, rows = 0
    gather_all(&k, root)
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            rows += 1
            op = (<Deferred>k.leaves[i].deferred).rows
            if op.leads:
                break
    if op is not None and op.compute_reader(root, rows):
        return True
    compute_rows_of(root)
    return False


cdef bint compute_after_one(Deferred root) except -1:
    """Compute ``root`` as the epilogue of the only row-wise op that it reads; False if there is no such kernel."""
    cdef Kernel k
    cdef Deferred row = None
    cdef int i
    gather_all(&k, root)
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            row = <Deferred>k.leaves[i].deferred
    if compute_after(row, root):
        return True
    if pending(&row.sources[0]) == NULL:
        return False
    compute(<Deferred>row.sources[0].deferred)  # one kernel has too little room; this may compute more than the operand
    return compute_after(row, root)


cdef bint compute_after(Deferred row, Deferred root) except -1:
    """Compute ``root`` as the epilogue of ``row``; False if there is no such kernel."""
    cdef Epilogue e
    cdef Kernel* k = &e.kernel
    cdef Deferred r
    cdef Storage own = <Storage>row.storage
    cdef int i, j
    cdef bint chosen
    if not root.contiguous or root.code != row.code or root.nd != row.nd:
        return False
    gather_all(k, root)
    choose_results(k, root)
    # The row itself is stored if anything else will read it; `own` is one more reference.
    e.writes_own = Py_REFCNT(<PyObject*>own) > own.waits or row.readers > readings(k, row)
    for i in range(k.nnodes):
        r = <Deferred>k.nodes[i]
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


cdef int choose_results(Kernel* k, Deferred root) except -1:
    """Set the outputs of an epilogue: ``root``, and the results of the same form that `write_along` chooses."""
    cdef Deferred r
    cdef int i
    k.outs[0] = <PyObject*>root
    k.nouts = 1
    write_along(k)
    for i in range(k.nouts):
        r = <Deferred>k.outs[i]
        if i >= MOST_RESULTS or not r.contiguous or r.code != root.code:
            k.nouts = i
            break
    return 0


cdef list nodes_to_hold(Kernel* k):
    """References to the deferred ops of a kernel: code that runs before it may release them."""
    cdef int i
    return [<Deferred>k.nodes[i] for i in range(k.nnodes)]


cdef list storages_to_fill(Kernel* k):
    """The storages that an epilogue writes; `memory_of` allocates their memory."""
    cdef int i
    for i in range(k.nouts):
        k.storages[i] = (<Deferred>k.outs[i]).storage
    return [<Storage>k.storages[i] for i in range(k.nouts)]


cdef int finish_results(Kernel* k, list storages) except -1:
    """Mark the results of an epilogue as computed."""
    cdef Deferred r
    cdef int i
    for i in range(len(storages)):
        r = <Deferred>k.outs[i]
        if (<Storage>storages[i]).deferred is r:
            finish(r, <Storage>storages[i])
    return 0


cdef int tell_row(Deferred r, Prologue* p, Epilogue* e) except -1:
    """Tell the watcher of a deferred row-wise op."""
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
    return tell_watcher([*before, r.rows.name, *after], results, read, results * whole, r.count)


cdef int tell_prologue(Prologue* p) except -1:
    if is_watched():
        tell(&p.kernel, [], <Deferred>p.kernel.nodes[p.kernel.nnodes - 1])
    return 0
