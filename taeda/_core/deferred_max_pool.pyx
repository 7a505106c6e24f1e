"""Deferred gradients of maxima over windows. Pointwise ops on them are computed plane by plane: see ``fusion.pyx``."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .callbacks import callbacks
from .devices cimport elsewhere, here
from .memory cimport compute_to_read
from .planners cimport known_key, of_arguments, of_key
from .pool cimport kernel_t, launch
from .deferred cimport MOST_NUMBERS, MOST_RESULTS, Epilogue, Rows, is_free, is_recording, least
from .rows cimport RowOp, epilogue_parts, memory_of, defer_whole
from .tensor cimport INLINE, ITEMSIZE, MOST_FUSED, Tensor, alias_tensor, empty_strided_like


cdef enum:
    OWN = 3               # operands of the kernel
    SIZES = 2             # its numbers
    MOST_ROOM = 1 << 16   # bytes of a plane on the stack


cdef class Placed(RowOp):
    """Gradients added to the elements of planes that indices name: ``pool_place`` of :mod:`taeda.kernels.pool`.

    Args:
        key: of the kernel.
        sizes: of the result, whose last ``n`` dimensions are a plane.
        inputs: gradients in a plane.
        grain: planes in a piece.
    """

    cdef tuple key
    cdef int64_t sizes[INLINE]
    cdef int64_t planes, elements, inputs, grain
    cdef int nd

    def __init__(self, tuple key, tuple sizes, int n, int64_t inputs, int64_t grain):
        self.name, self.key, self.inputs, self.grain = "max_pool_backward", key, inputs, grain
        self.nd = min(<int>len(sizes), INLINE + 1)
        self.planes = self.elements = 1
        for d in range(min(self.nd, INLINE)):
            self.sizes[d] = sizes[d]
            if d < self.nd - n:
                self.planes *= sizes[d]
            else:
                self.elements *= sizes[d]

    def defer(self, Tensor g not None, Tensor indices not None):
        """The deferred sums; None if they should be computed at once."""
        cdef int64_t strides[INLINE]
        cdef int64_t count = 1
        cdef Tensor like
        cdef int d
        if (not is_recording() or self.nd > INLINE or self.planes * self.elements < least or not g.count
                or not g.contiguous or not indices.contiguous or not is_free(g) or not is_free(indices)
                or elsewhere and here()):
            return None
        compute_to_read(g.storage)
        compute_to_read(indices.storage)
        for d in range(self.nd - 1, -1, -1):
            strides[d] = count
            count *= self.sizes[d]
        like = alias_tensor(g, self.nd, self.sizes, strides, 0)
        return defer_whole(self, [g, indices], empty_strided_like(g.code, like, True))

    cdef bint run_rows(self, Tensor like, Rows* rows, object before, object after) except -1:
        cdef char* pointers[OWN + MOST_FUSED + MOST_RESULTS]
        cdef int64_t args[SIZES + 2 * MOST_NUMBERS]
        cdef Epilogue* e = rows.epilogue
        cdef kernel_t fn
        cdef int i, d, count = OWN, n = SIZES
        pointers[0], pointers[1], pointers[2] = rows.own, rows.pointers[0], rows.pointers[1]
        args[0], args[1] = self.elements, self.inputs
        if e == NULL:
            fn = of_arguments("pool.pool_place", self.key)
        else:
            if self.elements * ITEMSIZE[like.code] > MOST_ROOM:
                return False
            for i in range(e.kernel.nleaves):
                if i == e.own:
                    continue
                if e.kernel.leaves[i].code != like.code:
                    return False
                for d in range(like.nd):
                    if like.sizes[d] > 1 and e.kernel.leaves[i].strides[d] != like.strides[d] * ITEMSIZE[like.code]:
                        return False
                e.letters[count - OWN] = b"c"
                pointers[count] = e.pointers[count - OWN]
                count += 1
            if not e.writes_own:
                pointers[0] = memory_of(e, 0)
            for i in range(not e.writes_own, e.kernel.nouts):
                pointers[count] = memory_of(e, i)
                count += 1
            memcpy(args + n, e.numbers, e.nnumbers * sizeof(int64_t))
            n += e.nnumbers
            fn = self.find_before(e, after)
        launch(fn, pointers, count, args, n, self.planes, self.grain, False)
        return True

    cdef kernel_t find_before(self, Epilogue* e, object after) except NULL:
        """The kernel with this epilogue."""
        cdef int64_t room = 1024
        while room < self.elements * ITEMSIZE[e.kernel.leaves[e.own].code]:
            room *= 2
        cdef tuple key = (*self.key, room)
        cdef object full = ("max_pool_backward", key, after)
        cdef kernel_t fn = known_key(full)
        if fn == NULL:
            fn = of_key(full, callbacks.build_between, (
                None, epilogue_parts(e), "pool.pool_place", key, 0, 0, self.name))
        return fn
