"""Images in the form that the launchers of convolutions take: three spatial dimensions, in the working dtype."""

from libc.stdint cimport int64_t

from .formats cimport in_order, is_last
from .gemm cimport cast
from .tensor cimport Tensor, alias_tensor, contiguous_tensor


cdef Tensor spatial(Tensor t, int lead):
    """``t`` with ``lead`` leading dimensions and exactly three spatial ones."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n, missing = 3 - (t.nd - lead)
    if missing == 0:
        return t
    for n in range(lead):
        sizes[n], strides[n] = t.sizes[n], t.strides[n]
    for n in range(missing):
        sizes[lead + n], strides[lead + n] = 1, 0
    for n in range(lead + missing, lead + 3):
        sizes[n], strides[n] = t.sizes[n - missing], t.strides[n - missing]
    return alias_tensor(t, lead + 3, sizes, strides, 0)


cdef Tensor whole_planes(Tensor x):
    """``x``, copied unless the rows of its images are contiguous."""
    if (x.strides[4] == 1 or x.sizes[4] == 1) and (x.strides[3] == x.sizes[4] or x.sizes[3] == 1):
        return x
    return contiguous_tensor(x)


cdef Tensor cast_image(Tensor t, int code):
    """:func:`cast` that keeps the memory format."""
    if t.code != code and is_last(t):
        return in_order(cast(in_order(t, True), code), False)
    return cast(t, code)
