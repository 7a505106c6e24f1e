# distutils: sources = taeda/standin/stable/guard.cpp
# distutils: libraries = stdc++
"""The C functions of PyTorch's stable ABI (``torch/csrc/stable/c/shim.h``), which extension libraries call.

A handle of a tensor, a list, a string or a library is a reference to a Python object. A ``StableIValue`` is a word of 64
bits: a number, a handle, or for an optional type NULL or the address of another word. Functions return 0, or 1 after an
error, which is kept for the call of the library's function that led to it.
"""

import threading
import warnings

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from taeda._core.tensor cimport (
    BF16, BOOL, C128, C32, C64, F16, F32, F4_E2M1FN_X2, F64, F8_E4M3FN, F8_E4M3FNUZ, F8_E5M2, F8_E5M2FNUZ, F8_E8M0FNU,
    I16, I32, I64, I8, NDTYPES, Tensor, U16, U32, U64, U8, VALUES, elements_of,
)

from taeda import _core
from taeda.standin.stable import calls

ctypedef void (*kernel_t)(uint64_t*, uint64_t, uint64_t) noexcept nogil
ctypedef void (*deleter_t)(void*, void*) noexcept nogil

cdef extern from *:
    """
    int taeda_guarded(void (*)(uint64_t*, uint64_t, uint64_t), uint64_t*, uint64_t, uint64_t, char*, size_t);
    """
    int taeda_guarded(kernel_t f, uint64_t* stack, uint64_t n, uint64_t m, char* what, size_t size) nogil

cdef enum:  # kinds of devices, layouts and memory formats, as this ABI numbers them
    CPU, CUDA, META, XPU, MPS, PRIVATE
    STRIDED = 0, COO, CSR, CSC, BSR, BSC, MKLDNN, JAGGED
    CONTIGUOUS = 0, PRESERVE, CHANNELS_LAST, CHANNELS_LAST_3D

DEVICES = ("cpu", "cuda", "meta", "xpu", "mps", "privateuseone")
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "jagged")
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
DTYPES = {x.code: x for x in vars(_core).values() if isinstance(x, _core.dtype)}

_thread = threading.local()


cdef int failed(error) except -1:
    """Keep an error of this thread; gives 1."""
    _thread.error = error
    _thread.what = str(error).encode()
    return 1


cdef void* handle(object x) noexcept:
    """A new reference."""
    Py_INCREF(x)
    return <void*>x


cdef object taken(void* h):
    """The object of a reference, which is given up."""
    x = <object>h
    Py_DECREF(x)
    return x


# ---- words ------------------------------------------------------------------------------------------------------------

cdef uint64_t word_of_float(double x) noexcept:
    cdef uint64_t w
    memcpy(&w, &x, 8)
    return w


cdef uint64_t word(object x, tuple form) except? 0xFFFFFFFFFFFFFFFF:
    """A value as a word, by the form that a signature gives it: `calls.Form`."""
    cdef uint64_t* place
    kind, optional, is_list, inner = form
    if optional:
        if x is None:
            return 0
        place = <uint64_t*>malloc(8)
        place[0] = word(x, (kind, False, is_list, inner))
        return <uint64_t>place
    if is_list:
        return <uint64_t>handle([word(y, (kind, inner, False, False)) for y in x])
    if kind == "Tensor":
        if not isinstance(x, Tensor):
            raise TypeError(f"expected a Tensor, got {type(x).__name__}")
        return <uint64_t>handle(x)
    if kind == "int":
        return <uint64_t><int64_t>int(x)
    if kind == "bool":
        return 1 if x else 0
    if kind == "float":
        return word_of_float(float(x))
    if kind == "str":
        return <uint64_t>handle(x.encode())
    if kind == "ScalarType":
        return <uint64_t><int32_t>x.code
    if kind == "Device":
        x = _core.device(x)
        return (<uint64_t>DEVICES.index(x.type)) << 32 | <uint32_t>(-1 if x.index is None else x.index)
    if kind == "Layout":
        return LAYOUTS.index(str(x).rpartition(".")[2])
    if kind == "MemoryFormat":
        return FORMATS.index(str(x).rpartition(".")[2])
    if kind == "Generator":
        return <uint64_t>handle(x)
    raise TypeError(f"the stable ABI has no form for the type {kind}")


cdef object value(uint64_t w, tuple form):
    """The value of a word; what the word owns is given up."""
    cdef uint64_t* place
    cdef uint64_t own
    cdef double x
    kind, optional, is_list, inner = form
    if optional:
        if w == 0:
            return None
        place = <uint64_t*>w
        own = place[0]
        free(place)
        return value(own, (kind, False, is_list, inner))
    if is_list:
        return [value(<uint64_t>y, (kind, inner, False, False)) for y in taken(<void*>w)]
    if kind == "Tensor" or kind == "Generator":
        return taken(<void*>w)
    if kind == "int":
        return <int64_t>w
    if kind == "bool":
        return (w & 0xFF) != 0
    if kind == "float":
        memcpy(&x, &w, 8)
        return x
    if kind == "str":
        return taken(<void*>w).decode()
    if kind == "ScalarType":
        return DTYPES[<int32_t>w]
    if kind == "Device":
        place_type = DEVICES[w >> 32]
        index = <int32_t><uint32_t>w
        return _core.device(place_type) if index < 0 else _core.device(place_type, index)
    if kind == "Layout":
        return getattr(_core, LAYOUTS[w])
    if kind == "MemoryFormat":
        return getattr(_core, FORMATS[w])
    raise TypeError(f"the stable ABI has no form for the type {kind}")


def call(size_t function, list given, list forms, list results):
    """Call a library's function with values, by their forms ``(kind, optional, listed, inner optional)``.

    Raises:
        RuntimeError: the function threw an exception, with its text; or an error of an op that it called.
    """
    cdef uint64_t n = len(given), m = len(results), i, j
    cdef uint64_t* stack = <uint64_t*>malloc(8 * max(n, m, 1))
    cdef char what[2048]
    cdef int bad
    cdef kernel_t f = <kernel_t>function
    _thread.error = None
    try:
        for i in range(n):
            try:
                stack[i] = word(given[i], forms[i])
            except BaseException:
                for j in range(i):
                    value(stack[j], forms[j])
                raise
        with nogil:
            bad = taeda_guarded(f, stack, n, m, what, sizeof(what))
        if bad:
            error, _thread.error = _thread.error, None
            if isinstance(error, KeyboardInterrupt):
                raise error
            raise RuntimeError((<bytes>what).decode(errors="replace")) from error
        return [value(stack[i], results[i]) for i in range(m)]
    finally:
        free(stack)


# ---- constants --------------------------------------------------------------------------------------------------------

cdef public uint64_t aoti_torch_abi_version() noexcept nogil: return (<uint64_t>2 << 56) | (<uint64_t>13 << 48)

cdef public int32_t aoti_torch_device_type_cpu() noexcept nogil: return CPU
cdef public int32_t aoti_torch_device_type_cuda() noexcept nogil: return CUDA
cdef public int32_t aoti_torch_device_type_meta() noexcept nogil: return META
cdef public int32_t aoti_torch_device_type_xpu() noexcept nogil: return XPU
cdef public int32_t aoti_torch_device_type_mps() noexcept nogil: return MPS
cdef public int32_t aoti_torch_device_type_privateuse1() noexcept nogil: return PRIVATE

cdef public int32_t aoti_torch_dtype_bool() noexcept nogil: return BOOL
cdef public int32_t aoti_torch_dtype_uint8() noexcept nogil: return U8
cdef public int32_t aoti_torch_dtype_uint16() noexcept nogil: return U16
cdef public int32_t aoti_torch_dtype_uint32() noexcept nogil: return U32
cdef public int32_t aoti_torch_dtype_uint64() noexcept nogil: return U64
cdef public int32_t aoti_torch_dtype_int8() noexcept nogil: return I8
cdef public int32_t aoti_torch_dtype_int16() noexcept nogil: return I16
cdef public int32_t aoti_torch_dtype_int32() noexcept nogil: return I32
cdef public int32_t aoti_torch_dtype_int64() noexcept nogil: return I64
cdef public int32_t aoti_torch_dtype_float16() noexcept nogil: return F16
cdef public int32_t aoti_torch_dtype_bfloat16() noexcept nogil: return BF16
cdef public int32_t aoti_torch_dtype_float32() noexcept nogil: return F32
cdef public int32_t aoti_torch_dtype_float64() noexcept nogil: return F64
cdef public int32_t aoti_torch_dtype_complex32() noexcept nogil: return C32
cdef public int32_t aoti_torch_dtype_complex64() noexcept nogil: return C64
cdef public int32_t aoti_torch_dtype_complex128() noexcept nogil: return C128
cdef public int32_t aoti_torch_dtype_float8_e4m3fn() noexcept nogil: return F8_E4M3FN
cdef public int32_t aoti_torch_dtype_float8_e4m3fnuz() noexcept nogil: return F8_E4M3FNUZ
cdef public int32_t aoti_torch_dtype_float8_e5m2() noexcept nogil: return F8_E5M2
cdef public int32_t aoti_torch_dtype_float8_e5m2fnuz() noexcept nogil: return F8_E5M2FNUZ
cdef public int32_t aoti_torch_dtype_float8_e8m0fnu() noexcept nogil: return F8_E8M0FNU
cdef public int32_t aoti_torch_dtype_float4_e2m1fn_x2() noexcept nogil: return F4_E2M1FN_X2
cdef public int32_t torch_dtype_float8_e8m0fnu() noexcept nogil: return F8_E8M0FNU
cdef public int32_t torch_dtype_float4_e2m1fn_x2() noexcept nogil: return F4_E2M1FN_X2

cdef public int32_t aoti_torch_layout_strided() noexcept nogil: return STRIDED
cdef public int32_t aoti_torch_layout_sparse_coo() noexcept nogil: return COO
cdef public int32_t aoti_torch_layout_sparse_csr() noexcept nogil: return CSR
cdef public int32_t aoti_torch_layout_sparse_csc() noexcept nogil: return CSC
cdef public int32_t aoti_torch_layout_sparse_bsr() noexcept nogil: return BSR
cdef public int32_t aoti_torch_layout_sparse_bsc() noexcept nogil: return BSC
cdef public int32_t aoti_torch_layout__mkldnn() noexcept nogil: return MKLDNN
cdef public int32_t aoti_torch_layout_jagged() noexcept nogil: return JAGGED

cdef public int32_t aoti_torch_memory_format_contiguous_format() noexcept nogil: return CONTIGUOUS
cdef public int32_t aoti_torch_memory_format_preserve_format() noexcept nogil: return PRESERVE
cdef public int32_t aoti_torch_memory_format_channels_last() noexcept nogil: return CHANNELS_LAST
cdef public int32_t aoti_torch_memory_format_channels_last_3d() noexcept nogil: return CHANNELS_LAST_3D


# ---- tensors ----------------------------------------------------------------------------------------------------------

cdef Tensor plain(object t):
    """A tensor whose elements a library may read.

    Raises:
        TypeError: it has no values in memory of its own.
    """
    if (<Tensor>t).holds != VALUES or (<Tensor>t).device_type != 0:
        raise TypeError(
            "a library of PyTorch's stable ABI reads the memory of tensors, and a "
            f"{type(t).__name__} on device {t.device} has none"
        )
    return <Tensor>t


cdef public int aoti_torch_delete_tensor_object(void* t) noexcept with gil:
    taken(t)
    return 0


cdef public int aoti_torch_new_tensor_handle(void* t, void** ret) noexcept with gil:
    ret[0] = handle(<object>t)
    return 0


cdef public int aoti_torch_new_uninitialized_tensor(void** ret) noexcept with gil:
    return give(ret, "empty", ([0],), {})


cdef public int torch_get_mutable_data_ptr(void* t, void** ret) noexcept with gil:
    cdef Tensor x
    try:
        x = plain(<object>t)
        ret[0] = <void*>elements_of(x) if x.count else NULL
        return 0
    except BaseException as error:
        return failed(error)


cdef public int torch_get_const_data_ptr(void* t, const void** ret) noexcept with gil:
    return torch_get_mutable_data_ptr(t, <void**>ret)


cdef public int aoti_torch_get_data_ptr(void* t, void** ret) noexcept with gil:
    return torch_get_mutable_data_ptr(t, ret)


cdef public int aoti_torch_get_dim(void* t, int64_t* ret) noexcept with gil:
    ret[0] = (<Tensor>t).nd
    return 0


cdef public int aoti_torch_get_numel(void* t, int64_t* ret) noexcept with gil:
    ret[0] = (<Tensor>t).count
    return 0


cdef public int aoti_torch_get_sizes(void* t, int64_t** ret) noexcept with gil:
    ret[0] = (<Tensor>t).sizes
    return 0


cdef public int aoti_torch_get_strides(void* t, int64_t** ret) noexcept with gil:
    ret[0] = (<Tensor>t).strides
    return 0


cdef public int aoti_torch_get_size(void* t, int64_t d, int64_t* ret) noexcept with gil:
    try:
        ret[0] = (<object>t).size(d)
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_stride(void* t, int64_t d, int64_t* ret) noexcept with gil:
    try:
        ret[0] = (<object>t).stride(d)
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_dtype(void* t, int32_t* ret) noexcept with gil:
    ret[0] = (<Tensor>t).code
    return 0


cdef public int aoti_torch_get_device_type(void* t, int32_t* ret) noexcept with gil:
    try:
        ret[0] = DEVICES.index((<object>t).device.type)
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_device_index(void* t, int32_t* ret) noexcept with gil:
    try:
        index = (<object>t).device.index
        ret[0] = -1 if index is None else index
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_layout(void* t, int32_t* ret) noexcept with gil:
    try:
        ret[0] = LAYOUTS.index(str((<object>t).layout).rpartition(".")[2])
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_storage_offset(void* t, int64_t* ret) noexcept with gil:
    try:
        ret[0] = (<object>t).storage_offset()
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_get_storage_size(void* t, int64_t* ret) noexcept with gil:
    try:
        ret[0] = (<object>t).untyped_storage().nbytes()
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_is_contiguous(void* t, bint* ret) noexcept with gil:
    (<char*>ret)[0] = 1 if (<object>t).is_contiguous() else 0  # a bool of C++ has one byte
    return 0


cdef public int aoti_torch_is_defined(void* t, bint* ret) noexcept with gil:
    (<char*>ret)[0] = 1
    return 0


cdef public int torch_set_requires_grad(void* t, bint requires_grad) noexcept with gil:
    try:
        (<object>t).requires_grad_(requires_grad & 0xFF)
        return 0
    except BaseException as error:
        return failed(error)


cdef public size_t aoti_torch_dtype_element_size(int32_t code) noexcept with gil:
    return DTYPES[code].itemsize if code in DTYPES else 0


cdef public int torch_from_blob(
    void* data, int64_t nd, const int64_t* sizes, const int64_t* strides, int64_t offset, int32_t code,
    int32_t device_type, int32_t device_index, void** ret, int32_t layout, const uint8_t* opaque, int64_t opaque_size,
    void* deleter, void* context,
) noexcept with gil:
    try:
        if device_type != CPU or layout != STRIDED:
            raise RuntimeError("torch_from_blob: expected strided memory of the processor")
        ret[0] = handle(calls.over_memory(
            <size_t>data, [sizes[i] for i in range(nd)], [strides[i] for i in range(nd)], offset, DTYPES[code],
            None if deleter == NULL else Deleter.of(<deleter_t>deleter, data, context),
        ))
        return 0
    except BaseException as error:
        return failed(error)


cdef class Deleter:
    """Gives memory back to the library that it came from, when it is called."""
    cdef deleter_t function
    cdef void* data
    cdef void* context

    @staticmethod
    cdef Deleter of(deleter_t function, void* data, void* context):
        cdef Deleter made = Deleter.__new__(Deleter)
        made.function, made.data, made.context = function, data, context
        return made

    def __call__(self):
        with nogil:
            self.function(self.data, self.context)


# ---- lists, strings, words on the heap --------------------------------------------------------------------------------

cdef public int torch_new_list_reserve_size(size_t size, void** ret) noexcept with gil:
    ret[0] = handle([])
    return 0


cdef public int torch_list_size(void* items, size_t* ret) noexcept with gil:
    ret[0] = len(<list>items)
    return 0


cdef public int torch_list_get_item(void* items, size_t i, uint64_t* ret) noexcept with gil:
    try:
        ret[0] = (<list?><object>items)[i]
        return 0
    except BaseException as error:
        return failed(error)


cdef public int torch_list_set_item(void* items, size_t i, uint64_t w) noexcept with gil:
    try:
        (<list?><object>items)[i] = w
        return 0
    except BaseException as error:
        return failed(error)


cdef public int torch_list_push_back(void* items, uint64_t w) noexcept with gil:
    (<list>items).append(w)
    return 0


cdef public int torch_delete_list(void* items) noexcept with gil:
    taken(items)
    return 0


cdef public int torch_new_string_handle(const char* data, size_t length, void** ret) noexcept with gil:
    ret[0] = handle(data[:length])
    return 0


cdef public int torch_delete_string(void* text) noexcept with gil:
    taken(text)
    return 0


cdef public int torch_string_length(void* text, size_t* ret) noexcept with gil:
    ret[0] = len(<bytes>text)
    return 0


cdef public int torch_string_c_str(void* text, const char** ret) noexcept with gil:
    ret[0] = <bytes>text
    return 0


cdef public int torch_new_stable_ivalue(uint64_t** ret) noexcept nogil:
    ret[0] = <uint64_t*>malloc(8)
    return 0


cdef public int torch_delete_stable_ivalue(uint64_t* w) noexcept nogil:
    if w == NULL:
        return 1
    free(w)
    return 0


# ---- calls of ops -----------------------------------------------------------------------------------------------------

cdef public int torch_call_dispatcher(
    const char* name, const char* overload, uint64_t* stack, uint64_t version
) noexcept with gil:
    cdef Py_ssize_t i
    try:
        function, forms, results = calls.op_of(name.decode(), overload.decode())
        made = function([value(stack[i], form) for i, form in enumerate(forms)])
        for i, form in enumerate(results):
            stack[i] = word(made[i], form)
        return 0
    except BaseException as error:
        return failed(error)


cdef public int aoti_torch_call_dispatcher(const char* name, const char* overload, uint64_t* stack) noexcept with gil:
    return torch_call_dispatcher(name, overload, stack, 0)


cdef object options(int32_t* code, int32_t* device_type, int32_t index):
    """The keyword arguments ``dtype`` and ``device`` that are given."""
    made = {} if code == NULL else {"dtype": DTYPES[code[0]]}
    if device_type != NULL:
        made["device"] = _core.device(DEVICES[device_type[0]], index) if device_type[0] == CUDA else (
            _core.device(DEVICES[device_type[0]])
        )
    return made


cdef int give(void** ret, str name, tuple args, dict named) noexcept:
    """The result of a native op as a new handle."""
    try:
        ret[0] = handle(calls.native(name)(*args, **named))
        return 0
    except BaseException as error:
        return failed(error)


cdef list listed(const int64_t* items, int64_t n):
    return [items[i] for i in range(n)]


cdef public int aoti_torch_aten_amax(
    void* x, const int64_t* dim, int64_t n, int32_t keepdim, void** ret
) noexcept with gil:
    return give(ret, "amax", (<object>x, listed(dim, n), bool(keepdim)), {})


cdef public int aoti_torch_aten_fill__Scalar(void* x, double number) noexcept with gil:
    cdef void* made = NULL
    cdef int bad = give(&made, "fill_", (<object>x, number), {})
    if not bad:
        taken(made)
    return bad


cdef public int aoti_torch_aten_full(
    const int64_t* size, int64_t n, double number, int32_t* code, int32_t* layout, int32_t* device_type,
    int32_t index, int32_t* pin, void** ret,
) noexcept with gil:
    return give(ret, "full", (listed(size, n), number), options(code, device_type, index))


cdef public int aoti_torch_aten_narrow(void* x, int64_t dim, int64_t start, int64_t n, void** ret) noexcept with gil:
    return give(ret, "narrow", (<object>x, dim, start, n), {})


cdef public int aoti_torch_aten_new_empty(
    void* x, const int64_t* size, int64_t n, int32_t* code, int32_t* layout, int32_t* device_type, int32_t index,
    int32_t* pin, void** ret,
) noexcept with gil:
    return give(ret, "new_empty", (<object>x, listed(size, n)), options(code, device_type, index))


cdef public int aoti_torch_aten_new_zeros(
    void* x, const int64_t* size, int64_t n, int32_t* code, int32_t* layout, int32_t* device_type, int32_t index,
    int32_t* pin, void** ret,
) noexcept with gil:
    return give(ret, "new_zeros", (<object>x, listed(size, n)), options(code, device_type, index))


cdef public int aoti_torch_aten_pad(
    void* x, const int64_t* pad, int64_t n, const char* mode, double* number, void** ret
) noexcept with gil:
    return give(ret, "pad", (<object>x, listed(pad, n), mode.decode(), None if number == NULL else number[0]), {})


cdef public int aoti_torch_aten_subtract_Tensor(void* x, void* other, double alpha, void** ret) noexcept with gil:
    return give(ret, "sub", (<object>x, <object>other), {} if alpha == 1 else {"alpha": alpha})


cdef public int aoti_torch_empty_strided(
    int64_t n, const int64_t* sizes, const int64_t* strides, int32_t code, int32_t device_type, int32_t index,
    void** ret,
) noexcept with gil:
    return give(ret, "empty_strided", (listed(sizes, n), listed(strides, n)), options(&code, &device_type, index))


# ---- libraries and their ops ------------------------------------------------------------------------------------------

cdef public int aoti_torch_library_init_def(const char* ns, const char* file, uint32_t line, void** ret) noexcept with gil:
    ret[0] = handle((ns.decode(), "DEF", ""))
    return 0


cdef public int aoti_torch_library_init_fragment(
    const char* ns, const char* file, uint32_t line, void** ret
) noexcept with gil:
    ret[0] = handle((ns.decode(), "FRAGMENT", ""))
    return 0


cdef public int aoti_torch_library_init_impl(
    const char* ns, const char* key, const char* file, uint32_t line, void** ret
) noexcept with gil:
    ret[0] = handle((ns.decode(), "IMPL", key.decode()))
    return 0


cdef public int aoti_torch_delete_library_object(void* library) noexcept nogil:
    return 0  # when the process ends: Python may have ended before


cdef public int aoti_torch_library_def(void* library, const char* schema) noexcept with gil:
    calls.declared.append((<object>library, schema.decode()))
    return 0


cdef public int torch_library_def_with_tags(
    void* library, const char* schema, const int32_t* tags, int32_t n
) noexcept with gil:
    return aoti_torch_library_def(library, schema)


cdef public int torch_library_set_python_module(void* library, const char* module, const char* context) noexcept nogil:
    return 0


cdef public int aoti_torch_library_impl(void* library, const char* name, void* function) noexcept with gil:
    calls.implemented.append((<object>library, name.decode(), <size_t>function))
    return 0


cdef public int torch_library_impl(
    void* library, const char* name, void* function, uint64_t version
) noexcept with gil:
    return aoti_torch_library_impl(library, name, function)


# ---- errors, threads, devices -----------------------------------------------------------------------------------------

cdef public const char* torch_exception_get_what() noexcept with gil:
    if getattr(_thread, "what", None) is None:
        return ""
    return <bytes>_thread.what


cdef public const char* torch_exception_get_what_without_backtrace() noexcept with gil:
    return torch_exception_get_what()


cdef public void aoti_torch_warn(const char* function, const char* file, uint32_t line, const char* text) noexcept with gil:
    try:
        warnings.warn(text.decode(errors="replace"), UserWarning, stacklevel=2)
    except BaseException as error:
        failed(error)


cdef public bint aoti_torch_grad_mode_is_enabled() noexcept with gil:
    return _core.is_recorded()


cdef public int torch_get_num_threads(uint32_t* ret) noexcept nogil:
    ret[0] = 1
    return 0


cdef public int torch_get_thread_idx(uint32_t* ret) noexcept nogil:
    ret[0] = 0
    return 0


cdef public int torch_parse_device_string(const char* text, uint32_t* kind, int32_t* index) noexcept with gil:
    try:
        parsed = _core.device(text.decode())
        kind[0] = DEVICES.index(parsed.type)
        index[0] = -1 if parsed.index is None else parsed.index
        return 0
    except BaseException as error:
        return failed(error)


cdef int no_device() noexcept with gil:
    return failed(NotImplementedError("libraries of PyTorch's stable ABI run on the processor alone"))


cdef public int aoti_torch_create_device_guard(int32_t index, void** ret) noexcept nogil: return no_device()
cdef public int aoti_torch_delete_device_guard(void* guard) noexcept nogil: return 0
cdef public int aoti_torch_device_guard_set_index(void* guard, int32_t index) noexcept nogil: return no_device()
cdef public int aoti_torch_get_current_device_index(int32_t* ret) noexcept nogil: return no_device()
cdef public int aoti_torch_get_current_stream(int32_t index, void** ret) noexcept nogil: return no_device()
cdef public int aoti_torch_delete_stream(void* stream) noexcept nogil: return 0
cdef public int aoti_torch_stream_id(void* stream, int64_t* ret) noexcept nogil: return no_device()
cdef public int aoti_torch_get_current_cuda_stream(int32_t index, void** ret) noexcept nogil: return no_device()
cdef public int torch_get_cuda_stream_from_pool(bint high, int32_t index, void** ret) noexcept nogil: return no_device()
cdef public int torch_cuda_stream_synchronize(void* stream, int32_t index) noexcept nogil: return no_device()
cdef public int torch_set_current_cuda_stream(void* stream, int32_t index) noexcept nogil: return no_device()
cdef public int torch_get_current_cuda_blas_handle(void** ret) noexcept nogil: return no_device()


cdef public int torch_c10_cuda_check_msg(
    int32_t error, const char* file, const char* function, uint32_t line, bint device, char** text
) noexcept nogil:
    text[0] = NULL
    return 0 if error == 0 else no_device()


cdef public void torch_c10_cuda_free_error_msg(char* text) noexcept nogil:
    free(text)
