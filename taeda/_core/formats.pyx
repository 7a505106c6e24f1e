"""Memory formats: images of four or five dimensions whose channels are last in memory."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor, alias_tensor, copy_into, empty_tensor

from .callbacks import callbacks
from .tensor import contiguous_format

cdef object ROW_MAJOR = contiguous_format


cdef bint is_last(Tensor t) noexcept:
    """Whether ``t`` is laid out with channels last; where sizes of 1 leave it open, strides decide as in PyTorch."""
    cdef int64_t least = 0
    cdef int i, n, d
    if t.nd != 4 and t.nd != 5 or t.strides[1] == 0:
        return False
    for i in range(t.nd):
        d = 1 if i == 0 else 0 if i == t.nd - 1 else t.nd - i
        if t.sizes[d] == 0 or t.strides[d] < least or d == 0 and least == t.strides[1]:
            return False
        least = t.strides[d] * max(t.sizes[d], <int64_t>1)
    return True


cdef Tensor in_order(Tensor t, bint last):
    """A view of ``t`` whose dimensions are in the order of memory: channels moved to the end or, from there, back."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n, d
    for n in range(t.nd):
        if last:
            d = 0 if n == 0 else 1 if n == t.nd - 1 else n + 1
        else:
            d = 0 if n == 0 else t.nd - 1 if n == 1 else n - 1
        sizes[n], strides[n] = t.sizes[d], t.strides[d]
    return alias_tensor(t, t.nd, sizes, strides, 0)


cdef Tensor empty_last(int code, int nd, int64_t* sizes):
    """Memory for an image with channels last."""
    cdef int64_t order[5]
    cdef int n
    for n in range(nd):
        order[n] = sizes[0 if n == 0 else 1 if n == nd - 1 else n + 1]
    return in_order(empty_tensor(code, nd, order), False)


def is_channels_last(Tensor t):
    """Whether ``t`` is an image or a volume laid out with channels last."""
    return is_last(t)


def contiguous(input, memory_format=contiguous_format):
    """``input`` itself if its elements lie in memory in the given order, else a copy that does.

    Args:
        memory_format: the order; ``taeda.contiguous_format`` is row-major.
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> x = taeda.tensor([[1, 2], [3, 4]])
        >>> x.contiguous() is x, x.t().contiguous().stride()
        (True, (2, 1))
    """
    if type(input) is Tensor and (<Tensor>input).contiguous and memory_format is ROW_MAJOR:
        return input
    return input if input.is_contiguous(memory_format) else callbacks.clone(input, memory_format=memory_format)


def keep_format(Tensor out, Tensor like):
    """``out``, channels-last in memory if ``like`` is; a copy only if elements must move."""
    cdef Tensor moved
    if not is_last(like) or out.nd != like.nd or is_last(out):
        return out
    moved = empty_last(out.code, out.nd, out.sizes)
    copy_into(moved, out)
    return moved
