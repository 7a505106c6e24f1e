"""Arithmetic on sizes and strides that launchers share."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      static int taeda_times(int64_t a, int64_t b, int64_t* c) {
        int64_t high = 0;
        *c = _mul128(a, b, &high);
        return high != (*c >> 63);
      }
      static int taeda_plus(int64_t a, int64_t b, int64_t* c) {
        *c = (int64_t)((uint64_t)a + (uint64_t)b);
        return ((a ^ *c) & (b ^ *c)) < 0;
      }
    #else
      #define taeda_times(a, b, c) __builtin_mul_overflow((int64_t)(a), (int64_t)(b), c)
      #define taeda_plus(a, b, c) __builtin_add_overflow((int64_t)(a), (int64_t)(b), c)
    #endif
    """
    bint overflows_times "taeda_times"(int64_t a, int64_t b, int64_t* c) noexcept nogil
    bint overflows_plus "taeda_plus"(int64_t a, int64_t b, int64_t* c) noexcept nogil


# A caller's sizes are multiplied and added here: a result beyond 64 bits is an error.

cdef inline int64_t times(int64_t a, int64_t b) except? -1:
    """``a * b``."""
    cdef int64_t c
    if overflows_times(a, b, &c):
        raise RuntimeError(f"sizes are too large: {a} * {b} does not fit 64 bits (integer multiplication overflow)")
    return c


cdef inline int64_t plus(int64_t a, int64_t b) except? -1:
    """``a + b``."""
    cdef int64_t c
    if overflows_plus(a, b, &c):
        raise RuntimeError(f"sizes are too large: {a} + {b} does not fit 64 bits (integer addition overflow)")
    return c


cdef inline int64_t count_of(int n, const int64_t* sizes) except? -1:
    """The number of elements of a tensor of these sizes."""
    cdef int64_t count = 1
    cdef int d
    for d in range(n):
        if overflows_times(count, sizes[d], &count):
            for d in range(n):
                if sizes[d] == 0:
                    return 0
            raise RuntimeError(f"numel: integer multiplication overflow: the product of sizes "
                               f"{[sizes[d] for d in range(n)]} does not fit 64 bits")
    return count


cdef inline int contiguous_strides(int n, const int64_t* sizes, int64_t* strides) except -1:
    """Write the strides of a row-major tensor of these sizes."""
    cdef int64_t step = 1
    cdef int d
    for d in range(n - 1, -1, -1):
        strides[d] = step
        if d and overflows_times(step, max(sizes[d], <int64_t>1), &step):
            raise RuntimeError(f"Stride calculation overflowed: sizes {[sizes[d] for d in range(n)]}")
    return 0


cdef inline int64_t ceil_div(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline int64_t distance(int64_t stride) noexcept nogil:
    """Between neighbours, whatever the direction."""
    return -stride if stride < 0 else stride


cdef inline int merge_dims(int64_t* sizes, int64_t* strides, int n, int operands, int pitch, int step) noexcept nogil:
    """Make one of neighbouring dimensions that are one run of memory in every operand; the number left.

    Dimension ``d`` has the size ``sizes[d * step]``, and the stride ``strides[k * pitch + d * step]`` in operand ``k``.
    """
    cdef int i, k, last = 0
    cdef int64_t size
    cdef bint merge
    for i in range(1, n):
        size = sizes[i * step]
        merge = True
        for k in range(operands):
            if strides[k * pitch + last * step] != strides[k * pitch + i * step] * size:
                merge = False
                break
        if merge:
            sizes[last * step] *= size
        else:
            last += 1
            sizes[last * step] = size
        for k in range(operands):
            strides[k * pitch + last * step] = strides[k * pitch + i * step]
    return last + 1 if n else 0
