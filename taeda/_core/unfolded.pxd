"""Convolution by unfolding one panel at a time."""

from libc.stdint cimport int64_t

from .geometry cimport Geometry
from .tensor cimport Tensor

# Whether images should be joined to one.
cdef bint goes_side_by_side(Geometry* g, int code, int64_t images, int64_t c, int64_t m) except -1
# Images with channels first; `w` is `[g, m, channels, taps]`.
cdef int convolve_unfolded(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1
cdef int side_by_side(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1
# Gradient of the weights `[part, g, m, (c, tap)]`.
cdef Tensor unfolded_gradient(Geometry* g, Tensor x, Tensor y, int64_t groups)
# `[part, group, (c, tap), m]` with `m` before `(c, tap)`: a view.
cdef Tensor transposed_back(Tensor sums)
# Interleave even and odd columns into `out [n, c, z, y, x]`.
cdef int interleave(Tensor out, Tensor even_columns, Tensor odd_columns) except -1
