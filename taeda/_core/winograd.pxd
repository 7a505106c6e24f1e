"""Convolution by the transforms of Winograd."""

from libc.stdint cimport int64_t

from .geometry cimport Geometry
from .tensor cimport Tensor

# Whether the transforms apply to a convolution, and it is large enough to repay them.
cdef bint is_winograd(Geometry* g, int code, int64_t images, int64_t groups, int64_t c, int64_t m) noexcept
# `w_m, w_c` are the strides of the weights' channels in items.
cdef int convolve_winograd(Geometry* g, Tensor x, char* w, int64_t w_m, int64_t w_c, Tensor bias,
                           Tensor out) except -1
# Gradient of the weights `[part, m, c, tap]`.
cdef Tensor winograd_gradient(Geometry* g, Tensor x, Tensor y)
