"""Products of bfloat16 and int8, two and four numbers to a word."""

from libc.stdint cimport int64_t

from .gemm cimport Product
from .tensor cimport BF16, I8

# The engine for a dtype on this machine: "amx", "dot" or "".
cdef str short_engine(int code)
cdef bint short_pays(int code, int64_t m, int64_t n, int64_t k) except -1


cdef inline bint is_short(int code, int64_t m, int64_t n, int64_t k) except -1:
    """Whether a product of two matrices is worth using the engine."""
    return (code == BF16 or code == I8) and short_pays(code, m, n, k)

# `c = a @ b + d`, to `p.out`.
cdef int short_product(Product* p) except -1
