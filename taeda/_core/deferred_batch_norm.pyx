"""Deferred batch norm in training.

Its result is pointwise in x and the statistics. So it can be recomputed, and need not be kept. The statistics have
deferred ops like a row-wise op's: the mean's has the form of x, the others refer to it. Reading one of them computes
all. If a pointwise function of the result is needed, one kernel computes both.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memset

from .devices cimport elsewhere, here
from .fused cimport bytes_read, end_taking, gather_all, is_watched, names_of, tell_watcher
from .memory cimport Storage, compute_to_read, ensure_computed
from .deferred cimport (
    CACHED, Deferred, Epilogue, Kernel, Source, compute_row, fill_later, finish, hold, is_free, is_held, is_recording,
    is_undone_row, least, take_form,
)
from .rows cimport RowOp, choose_results, epilogue_of, finish_results, nodes_to_hold, storages_to_fill
from .tensor cimport (
    INLINE, ITEMSIZE, VALUES, Op, Tensor, alias_tensor, empty_strided_like, empty_tensor, need_memory,
)


cdef class ChannelOp(RowOp):
    def __cinit__(self):
        self.leads = True

    cdef bint compute_reader(self, Deferred root, int rows) except -1:
        return compute_channels(root)

    cdef bint run_channels(self, Tensor like, Channels* c, object after) except -1:
        raise NotImplementedError

    cdef int run_alone(self, Deferred r) except -1:
        run_channels(of_mean(r), None, NULL)
        return 0


cdef inline Deferred of_mean(Deferred r):
    """The deferred op of the mean, found from the deferred op of any of the statistics."""
    return <Deferred>r.sources[0].deferred if r.first else r


cdef Deferred statistic(ChannelOp rows, Tensor t, Tensor x, Deferred mean, int which):
    """A deferred op for one of the statistics, in the memory of ``t``. The mean's is number 0, and reads ``x``."""
    cdef Deferred r = <Deferred>Deferred.__new__(Deferred)
    cdef Tensor form = x if mean is None else t
    cdef Source* s = &r.sources[0]
    r.is_row, r.rows, r.first, r.reads, r.inplace = True, rows, which, 1, which > 1
    r.nsources = 1
    take_form(r, form)
    s.code, s.data = t.code, x.raw
    if mean is None:
        s.storage = <PyObject*>x.storage
    else:
        s.deferred = <PyObject*>mean
    hold(s)
    fill_later(r, t)
    return r


cdef bint is_statistic(Tensor t, Tensor x):
    """Whether a kernel can read and write ``t``, which has a value for each channel of ``x``."""
    return (t.nd == 1 and t.count == x.sizes[1] and t.code == x.code and t.contiguous and t.holds == VALUES
            and t.storage is not x.storage)


cdef tuple defer_channels(Op op, ChannelOp rows, Tensor x, Tensor weight, Tensor bias, Tensor running_mean,
                            Tensor running_var, double eps, double momentum):
    cdef Tensor mean, rstd, y, t
    cdef Deferred first, r
    cdef Source* s
    cdef int i, d
    cdef bint late = is_free(running_mean) and is_free(running_var)
    cdef list given = [x, None, None, weight, bias]
    if (not is_recording() or x.count < least or x.nd > INLINE or not x.contiguous or not is_free(x)
            or elsewhere and here() or running_mean.storage is running_var.storage):
        return None
    for t in (weight, bias, running_mean, running_var):
        if not is_statistic(t, x):
            return None
    for t in (weight, bias):
        if not is_free(t) or t.storage is running_mean.storage or t.storage is running_var.storage:
            return None
    for t in (running_mean, running_var):
        ensure_computed(t.storage)
    for t in (x, weight, bias):
        compute_to_read(t.storage)
    given[1] = mean = empty_tensor(x.code, 1, &x.sizes[1])
    given[2] = rstd = empty_tensor(x.code, 1, &x.sizes[1])
    y = empty_strided_like(x.code, x, True)
    first = statistic(rows, mean, x, None, 0)
    first.p, first.q = eps, momentum
    statistic(rows, rstd, x, first, 1)
    statistic(rows, running_mean, x, first, 2)
    statistic(rows, running_var, x, first, 3)
    r = <Deferred>Deferred.__new__(Deferred)
    r.op, r.below, r.nsources, r.nodes = op, True, 5, 1
    take_form(r, y)
    r.own = r.reads = 3  # operands with one value per channel count half, so that two batch norms fit one kernel
    for i in range(5):
        s, t = &r.sources[i], <Tensor>given[i]
        s.code, s.data, s.storage = t.code, t.raw, <PyObject*>t.storage
        if t.storage.deferred is not None:
            s.deferred = <PyObject*>t.storage.deferred
        hold(s)
        if i:
            s.strides[1] = ITEMSIZE[x.code]
        else:
            for d in range(x.nd):
                s.strides[d] = x.strides[d] * ITEMSIZE[x.code]
    fill_later(r, y)
    if not late:  # the running statistics are exposed, so reads of them would not be noticed
        compute_to_read(mean.storage)
    return y, mean, rstd


cdef bint run_channels(Deferred mean, Deferred y, Epilogue* e) except -1:
    """Compute the statistics, and with them ``y`` or what its epilogue makes of it; False where there is no such
    kernel: never without an epilogue."""
    cdef Channels c
    cdef Deferred r
    cdef Tensor spare = None, like = <Tensor>Tensor.__new__(Tensor)
    cdef PyObject* at = mean.after
    cdef object after = None
    cdef bint found
    cdef int i
    cdef list others = []
    like.code, like.holds = mean.code, VALUES
    like = alias_tensor(like, mean.nd, mean.sizes, mean.strides, 0)
    memset(c.pointers, 0, sizeof(c.pointers))
    while at != NULL:  # some may not be held any more
        r = <Deferred>at
        if r.is_row and r.nsources == 1 and r.first and r.sources[0].deferred == <PyObject*>mean:
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
    try:
        found = (<ChannelOp>mean.rows).run_channels(like, &c, after)
    except:
        if e != NULL:
            end_taking(&e.kernel, False)
        raise
    if e != NULL:
        end_taking(&e.kernel, True)
    if not found:
        return False
    if is_watched():
        tell_channels(mean, y, e)
    for r in others:
        if r.storage != NULL:
            finish(r, <Storage>r.storage)
    if mean.storage != NULL:
        finish(mean, <Storage>mean.storage)
    mean.done = True
    return True


cdef int tell_channels(Deferred mean, Deferred y, Epilogue* e) except -1:
    """Tell the watcher of a deferred batch norm."""
    cdef int64_t whole = mean.count * ITEMSIZE[mean.code], read = whole, results = y is not None
    cdef list after = []
    if e != NULL:
        after = names_of(&e.kernel)
        read += bytes_read(&e.kernel, y.nd, y.sizes)
        results = e.kernel.nouts + e.writes_own
    return tell_watcher([mean.rows.name, *after], results, read, results * whole, mean.count)


cdef bint compute_channels(Deferred root) except -1:
    """Compute ``root``, which reads statistics of batch norm, in the kernel that computes them; False if there is no
    such kernel: then ``root`` reads only memory."""
    cdef Kernel k
    cdef Deferred mean = None, y = None, r
    cdef int i
    cdef bint other = True
    while other:
        other = False
        gather_all(&k, root)
        for i in range(k.nleaves):
            if not is_undone_row(k.leaves[i]):
                continue
            r = <Deferred>k.leaves[i].deferred
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
        if (<Deferred>k.nodes[i]).nsources == 5 and (<Deferred>k.nodes[i]).sources[1].deferred == <PyObject*>mean:
            y = <Deferred>k.nodes[i]
    if y is not None and compute_after_channels(mean, y, root):
        return True
    run_channels(mean, None, NULL)
    return False


cdef bint compute_after_channels(Deferred mean, Deferred y, Deferred root) except -1:
    """Compute ``root`` as the epilogue of batch norm, whose result is ``y``; False if there is no such kernel."""
    cdef Epilogue e
    cdef Kernel* k = &e.kernel
    cdef Deferred r
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
    y.is_row = True  # it is read as a result, like a row-wise op's
    try:
        gather_all(k, root)
        for i in range(k.nleaves):
            if is_undone_row(k.leaves[i]) and k.leaves[i].deferred != <PyObject*>y:
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
