"""Arithmetic on sizes and strides that launchers share."""

from libc.stdint cimport int64_t


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
