"""The geometry of a convolution, and images in the form that its launchers take."""

from libc.stdint cimport int64_t

from .dims cimport ceil_div
from .tensor cimport Tensor

cdef enum:
    LARGE_WEIGHTS = 1 << 20   # bytes: half of a second-level cache
    FEW_BLOCKS = 8            # with fewer blocks of pixels, output channels are cut as well

cdef struct Geometry:    # three of each: output, input, kernel, stride, dilation, padding
    int64_t o[3]
    int64_t i[3]
    int64_t k[3]
    int64_t s[3]
    int64_t d[3]
    int64_t p[3]
    int64_t taps, pixels


cdef inline int64_t even(int64_t size, int64_t most) noexcept nogil:
    """The size of equal parts of ``size`` that are at most ``most``."""
    return size if size <= most else ceil_div(size, ceil_div(size, most))

# `t` with `lead` leading dimensions and exactly three spatial ones.
cdef Tensor spatial(Tensor t, int lead)
# `x`, copied unless the rows of its images are contiguous.
cdef Tensor whole_planes(Tensor x)
# A tensor of another dtype in the same memory format.
cdef Tensor cast_image(Tensor t, int code)
