"""Matrix products for other modules of the core."""

from libc.stdint cimport int64_t

cdef struct Matrix:      # [rows, columns] behind two batch dimensions; strides in bytes
    char* ptr
    int64_t rows, columns, outer, inner

cdef struct Product:     # c = a @ b + d, by [m, k] and [k, n]
    int code             # dtype; one that has kernels of its own (see `compute_code`)
    int init             # d: 0 none, 1 given, with columns that are contiguous or all the same
    int64_t m, n, k
    int64_t n0, n1       # batch
    Matrix a, b, c, d

# Every stride of a and b is allowed as long as one of the two of each matrix is the item size; c has contiguous rows.
cdef int multiply(Product* p) except -1
