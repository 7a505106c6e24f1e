"""Matrix products for other modules of the core."""

from libc.stdint cimport int64_t

from .tensor cimport Tensor

cdef struct Matrix:      # [rows, columns] behind two batch dimensions; strides in bytes
    char* ptr
    int64_t rows, columns, outer, inner

cdef struct Product:     # c = a @ b + d, by [m, k] and [k, n]
    int code             # dtype; one that has kernels of its own (see `compute_code` and `is_short`)
    int out              # dtype of c, where `code` is one of short_gemm.pyx
    int init             # d: 0 none, 1 given, with columns that are contiguous or all equal
    int64_t m, n, k
    int64_t n0, n1       # batch
    Matrix a, b, c, d

# Whether this thread's place takes numbers of 16 bits as they are.
cdef bint has_halves() noexcept
# Whether the kernels of this thread's place have no vectors: what lays memory out for them does not pay there.
cdef bint one_lane() except *
# Every stride of a and b is allowed as long as one of the two of each matrix is the item size; c has contiguous rows.
cdef int multiply(Product* p) except -1

# Block sizes of a dtype: columns of a panel, rows of a tile, items of packed A per k, depth of a block.
cdef struct Blocks:
    int64_t panel, rows, pitch, depth

cdef Blocks blocks(int code) except *
# The address of the kernel that the others call for a panel.
cdef char* tiles(int code) except NULL
# Bytes of A [m, k] packed, and packing it.
cdef int64_t packed_size(int code, int64_t m, int64_t k) except -1
cdef int pack_left(int code, char* to, char* a, int64_t m, int64_t k, int64_t a_m, int64_t a_k) except -1
cdef int compute_code(int code) noexcept
cdef Tensor cast(Tensor t, int code)
