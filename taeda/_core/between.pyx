"""Kernels of batch norm between pointwise ops that were put off: see ``fusion.pyx``.

A row is a channel of ``[batch, channels, *]``, of two dimensions: positions, which lie together, and the batch.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from .fusion cimport MOST_NUMBERS, Prologue, Source, begin, end, prologue_of, prologue_parts, tell_prologue
from .memory cimport unsettled
from .planners cimport known_key, of_key
from .pool cimport kernel_t, launch as run_kernel
from .tensor cimport ITEMSIZE, MOST_FUSED, VALUES, Tensor, address_of, address_to_read

from .tensor import HELPERS

cdef enum:
    OWN = 8               # operands of the kernels
    MOST_ARGS = 8 + 4 * (OWN + MOST_FUSED + 4) + 4 * MOST_NUMBERS


cdef bint place(const Source* leaf, int nd, const int64_t* sizes, int64_t* args, char* letter) noexcept:
    """Where a leaf goes along a channel and from one to the next; False where its positions are not one dimension."""
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
    """Run a kernel of :mod:`taeda.kernels.normalize` that computes the elements of its operand ``g``, which was put off,
    where it reads them; False where that cannot be, and nothing was done.

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
    cdef int i, n = <int>len(args), own = <int>len(tensors), operand = -1
    cdef Tensor t
    cdef kernel_t fn
    if not unsettled or g.holds != VALUES or g.storage.recipe is None or not g.contiguous:
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
            pointers[own + i] = p.pointers[i]
        n += 4 * p.nleaves
        memcpy(values + n, p.numbers, p.nnumbers * sizeof(int64_t))
        full = (kernel, key, operand, found, (<char*>p.letters)[:p.nleaves])
        fn = known_key(full)
        if fn == NULL:
            fn = of_key(full, HELPERS["build_between"], (
                prologue_parts(&p), None, kernel, key, operand, 0, kernel.rpartition(".")[2]))
        pointers[operand] = p.pointers[0]
        tell_prologue(&p)
        run_kernel(fn, pointers, own + p.nleaves, values, n + p.nnumbers, total, grain, False)
    finally:
        end()
    return True
