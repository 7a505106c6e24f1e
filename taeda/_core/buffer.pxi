# The buffer protocol: memoryview(t), and what NumPy and others read through it.

cdef extern from *:
    """
    #include <limits.h>
    /* of several types of 64 bits NumPy's int64 is `long` */
    #define TAEDA_INT64_FORMAT (LONG_MAX > INT_MAX ? "l" : "q")
    #define TAEDA_UINT64_FORMAT (LONG_MAX > INT_MAX ? "L" : "Q")
    """
    const char* INT64_FORMAT "TAEDA_INT64_FORMAT"
    const char* UINT64_FORMAT "TAEDA_UINT64_FORMAT"

cdef const char** FORMATS = [
    "?", "B", "b", "h", "i", INT64_FORMAT, "H", "I", UINT64_FORMAT, "e", NULL, "f", "d", "Zf", "Zd", NULL,
    NULL, NULL, NULL, NULL, NULL,
]


cdef int export_buffer(Tensor t, Py_buffer* view, int flags) except -1:
    """Describe the memory of ``t``; BufferError if it does not meet the consumer's request."""
    cdef Py_ssize_t* numbers
    cdef int i
    if wants_grad(t):
        raise BufferError("cannot export the memory of a tensor that requires grad; use tensor.detach()")
    if is_conjugate_view(t):
        raise BufferError("cannot export the memory of a conjugated or negated view, which is not what it shows; use "
                          "tensor.resolve_conj() or tensor.resolve_neg()")
    if t.device_type:
        raise BufferError(f"cannot export memory of device '{DEVICES[t.device_type]}'; copy the tensor with .cpu()")
    cdef bint readonly = MODES[0] != NULL and tell_mode("buffer", t)
    if readonly and flags & PyBUF_WRITABLE:
        raise BufferError("a program that is recorded has read this tensor: a write to its memory would be lost")
    show(t.storage)
    cdef char* start = elements_of(t)
    if FORMATS[t.code] == NULL:
        raise BufferError(f"the buffer protocol has no format for {DTYPES[t.code]}; convert it first")
    if not t.contiguous and flags & PyBUF_STRIDES != PyBUF_STRIDES:
        raise BufferError("the consumer asks for contiguous memory, this tensor is not; use tensor.contiguous()")
    if flags & PyBUF_F_CONTIGUOUS == PyBUF_F_CONTIGUOUS and t.nd > 1:
        raise BufferError("the consumer asks for Fortran order, this tensor is in C order")
    numbers = <Py_ssize_t*>calloc(2 * t.nd + 1, sizeof(Py_ssize_t))
    if numbers == NULL:
        raise MemoryError()
    for i in range(t.nd):
        numbers[i] = t.sizes[i]
        numbers[t.nd + i] = t.strides[i] * ITEMSIZE[t.code]
    view.buf = start
    view.obj = export_of(t.storage, False)
    if keeps_address(flags):
        keep_for(t, view.obj)
    view.len = t.count * ITEMSIZE[t.code]
    view.itemsize = ITEMSIZE[t.code]
    view.readonly = readonly
    view.ndim = t.nd
    view.format = <char*>FORMATS[t.code] if flags & PyBUF_FORMAT else NULL
    view.shape = numbers if flags & PyBUF_ND else NULL
    view.strides = numbers + t.nd if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
    view.suboffsets = NULL
    view.internal = numbers
    return 0


cdef int keep_for(Tensor t, export) except -1:
    """Keep ``export`` for as long as the tensor lives, whatever memory it has by then."""
    from weakref import finalize

    finalize(t, id, export).atexit = False
    return 0
