"""Kernels of batch norm between deferred pointwise ops: see ``fusion.pyx``.

A row is a channel of ``[batch, channels, *]``, of two dimensions: positions, which lie together, and the batch.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .callbacks import callbacks
from .deferred_batch_norm cimport ChannelOp, Channels, defer_channels
from .memory cimport n_deferred
from .planners cimport known_key, of_arguments, of_key
from .pool cimport kernel_t, launch as run_kernel
from .deferred cimport MOST_NUMBERS, MOST_RESULTS, Prologue, Source, begin, end
from .rows cimport epilogue_parts, memory_of, on_lines, prologue_of, prologue_parts, tell_prologue
from .tensor cimport ITEMSIZE, MOST_FUSED, VALUES, Op, Tensor, address_to_read


cdef enum:
    OWN = 8               # operands of the kernels
    SIZES = 3             # numbers before the operands' strides
    MOST_WHOLE = 3        # operands of the gradient's size: of more, less is read if the gradient is written first
    MOST_ARGS = SIZES + 4 * (OWN + MOST_FUSED + MOST_RESULTS) + 4 * MOST_NUMBERS


cdef bint place(const Source* leaf, int nd, const int64_t* sizes, int64_t* args, char* letter) noexcept:
    """Find a leaf's steps along a channel and to the next one; False where its positions are not one dimension."""
    cdef int64_t step = 0, item = ITEMSIZE[leaf.code], span = 0
    cdef int d
    for d in range(nd - 1, 1, -1):
        if sizes[d] == 1:
            continue
        if span == 0:
            step, span = leaf.strides[d], leaf.strides[d] * sizes[d]
            if step != 0 and step != item:
                return False
            span = span if span else -1
        elif leaf.strides[d] != (span if span > 0 else 0):
            return False
        elif span > 0:
            span *= sizes[d]
    args[0], args[1], args[2], args[3] = step, leaf.strides[0] if sizes[0] > 1 else 0, 0, leaf.strides[1]
    letter[0] = b"c" if step else b"s"
    return True


def compute_gradient(str kernel, tuple key, Tensor g, tuple tensors, tuple args, int64_t total, int64_t grain):
    """Run a kernel of :mod:`taeda.kernels.normalize` that computes the elements of its operand ``g``, which was
    deferred, where it reads them; False where that cannot be, and nothing was done.

    Args:
        kernel, key: what makes the kernel.
        g: of the form of what ``tensors`` hold for it, contiguous.
        tensors: the operands, outputs first; None for one that is left out.
        args: sizes, and the strides of each.
        total, grain: as for ``launch``.
    """
    cdef Prologue p
    cdef char* pointers[OWN + MOST_FUSED]
    cdef int64_t values[MOST_ARGS]
    cdef int i, n = <int>len(args), own = <int>len(tensors), operand = -1, whole = 0
    cdef Tensor t
    cdef kernel_t fn
    if not n_deferred or g.holds != VALUES or g.storage.deferred is None or not g.contiguous:
        return False
    for i in range(own):
        if tensors[i] is g:
            operand, pointers[i] = i, NULL
        elif tensors[i] is None:
            pointers[i] = NULL
        else:
            t = <Tensor>tensors[i]
            pointers[i] = address_to_read(t)
    for i in range(n):
        values[i] = args[i]
    begin()
    try:
        found = prologue_of(g, &p)
        if found is None:
            return False
        for i in range(p.nleaves):
            if not place(p.kernel.leaves[i], g.nd, g.sizes, &values[n + 4 * i], &p.letters[i]):
                return False
            whole += p.letters[i] == b"c" and p.kernel.leaves[i].strides[1] != 0
            pointers[own + i] = p.pointers[i]
        if whole > MOST_WHOLE:
            return False
        n += 4 * p.nleaves
        memcpy(values + n, p.numbers, p.nnumbers * sizeof(int64_t))
        full = (kernel, key, operand, found, (<char*>p.letters)[:p.nleaves])
        fn = known_key(full)
        if fn == NULL:
            fn = of_key(full, callbacks.build_between, (
                prologue_parts(&p), None, kernel, key, operand, 0, kernel.rpartition(".")[2]))
        pointers[operand] = p.pointers[0]
        tell_prologue(&p)
        run_kernel(fn, pointers, own + p.nleaves, values, n + p.nnumbers, total, grain, False)
    finally:
        end()
    return True


cdef class BatchNorm(ChannelOp):
    """Batch norm in training of images of one form, all in one dtype.

    Args:
        key: of the kernel.
        args: sizes, and the strides of each operand.
        total, grain: as for ``launch``.
    """

    cdef tuple key
    cdef int64_t args[SIZES + 4 * OWN]
    cdef int64_t total, grain
    cdef bint streams

    def __init__(self, tuple key, tuple args, int64_t total, int64_t grain):
        self.name, self.key, self.total, self.grain, self.streams = "batch_norm", key, total, grain, key[len(key) - 1]
        for i in range(SIZES + 4 * OWN):
            self.args[i] = args[i]

    def defer(self, Op op, Tensor x, weight, bias, mean, var, double eps, double momentum):
        """Return ``(y, mean, rstd)``, deferred; the pointwise ``op`` computes ``y`` from x, mean, rstd, weight and
        bias. The running statistics ``mean`` and ``var`` move. Returns None if the op should run at once.
        """
        return defer_channels(op, self, x, <Tensor?>weight, <Tensor?>bias, <Tensor?>mean, <Tensor?>var, eps, momentum)

    cdef bint run_channels(self, Tensor like, Channels* c, object after) except -1:
        cdef char* pointers[OWN + MOST_FUSED + MOST_RESULTS]
        cdef int64_t args[MOST_ARGS]
        cdef kernel_t fn
        cdef int i, own, n = SIZES + 4 * OWN, count = OWN, results = 0
        memcpy(args, self.args, sizeof(self.args))
        memcpy(pointers, c.pointers, sizeof(c.pointers))
        if c.epilogue != NULL:
            own = c.epilogue.own
            for i in range(c.epilogue.kernel.nleaves):
                if i != own:
                    pointers[count] = c.epilogue.pointers[count - OWN]
                    if not place(c.epilogue.kernel.leaves[i], like.nd, like.sizes, args + n,
                                 &c.epilogue.letters[count - OWN]):
                        return False
                    count += 1
                    n += 4
            if self.streams and (c.epilogue.writes_own and <size_t>pointers[0] % 64 or not on_lines(c.epilogue)):
                return False
            for i in range(c.epilogue.kernel.nouts):
                if i == 0 and not c.epilogue.writes_own:
                    pointers[0] = memory_of(c.epilogue, 0)
                    continue
                memcpy(args + n, args + SIZES, 4 * sizeof(int64_t))
                pointers[count + results] = memory_of(c.epilogue, i)
                results += 1
                n += 4
            fn = self.find_before(c, after)
        else:
            fn = of_arguments("normalize.batch_moments" if c.alone else "normalize.batch_norm", self.key)
        memcpy(args + n, &c.eps, 8)
        memcpy(args + n + 1, &c.momentum, 8)
        n += 2
        if c.epilogue != NULL:
            memcpy(args + n, c.epilogue.numbers, c.epilogue.nnumbers * sizeof(int64_t))
            n += c.epilogue.nnumbers
        run_kernel(fn, pointers, count + results, args, n, self.total, self.grain, False)
        return True

    cdef kernel_t find_before(self, Channels* c, object after) except NULL:
        """The kernel with this epilogue."""
        cdef object full = ("batch_norm", self.key, after,
                            (<char*>c.epilogue.letters)[: c.epilogue.kernel.nleaves - 1])
        cdef kernel_t fn = known_key(full)
        if fn == NULL:
            fn = of_key(full, callbacks.build_between, (
                None, epilogue_parts(c.epilogue), "normalize.batch_norm", self.key, 0, 2, self.name))
        return fn
