# Elements as Python numbers.


cdef object read_scalar(const char* p, int code):
    """The element at ``p`` as a Python number."""
    if elsewhere:
        refuse_recording(b"a number is read from a tensor")
    if code == F32:
        return <double>(<const float*>p)[0]
    if code == F64:
        return (<const double*>p)[0]
    if code == I64:
        return (<const int64_t*>p)[0]
    if code == BOOL:
        return (<const uint8_t*>p)[0] != 0
    if code == I32:
        return (<const int32_t*>p)[0]
    if code == U8:
        return (<const uint8_t*>p)[0]
    if code == I8:
        return (<const int8_t*>p)[0]
    if code == I16:
        return (<const int16_t*>p)[0]
    if code == U16:
        return (<const uint16_t*>p)[0]
    if code == U32:
        return (<const uint32_t*>p)[0]
    if code == U64:
        return (<const uint64_t*>p)[0]
    cdef uint32_t bits
    cdef float real
    if code == BF16:
        bits = <uint32_t>(<const uint16_t*>p)[0] << 16
        memcpy(&real, &bits, 4)
        return <double>real
    if code == F16:
        return PyFloat_Unpack2(p, 1)
    if code == C64:
        return complex((<const float*>p)[0], (<const float*>p)[1])
    if code == C128:
        return complex((<const double*>p)[0], (<const double*>p)[1])
    if code == C32:
        return complex(PyFloat_Unpack2(p, 1), PyFloat_Unpack2(p + 2, 1))
    if code == F4_E2M1FN_X2:
        raise NotImplementedError("item: float4_e2m1fn_x2 is only stored, two numbers to a byte; read .view(uint8)")
    return read_float8(p, code)


cdef object read_float8(const char* p, int code):
    """The float8 at ``p`` as a Python number, by the kernel that converts them."""
    cdef int64_t none = 0
    cdef Tensor number = empty_tensor(code, 0, &none), real = empty_tensor(F32, 0, &none)
    address_of(number)[0] = p[0]
    copy_into(real, number)
    return <double>(<float*>address_of(real))[0]
