"""Data in and out of tensors: Python numbers and lists, NumPy arrays and buffers.

Nothing is copied where memory can be shared: ``from_numpy``, ``as_tensor``, ``frombuffer`` and ``Tensor.numpy`` give
another view of the same bytes, which stay alive as long as a view does. ``tensor`` always copies.
"""

from cpython.bool cimport PyBool_Check
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_Check
from cpython.pycapsule cimport PyCapsule_CheckExact
from cpython.complex cimport PyComplex_Check, PyComplex_CheckExact, PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.list cimport PyList_Check, PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_Check, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_Check
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ..kernels.forks import loading
from .callbacks import callbacks
from .devices cimport CPU_NUMBER, META_NUMBER, here
from .dims cimport count_of
from .memory cimport Storage, export_of, foreign_storage, new_storage, show
from .pool cimport UNHEARD, Watch, heed, watch
from .recorder cimport NUMBERS, note_filled
from .tensor cimport (
    BF16, C32, C64, C128, F32, F64, I8, I16, I32, I64, ITEMSIZE, KIND, MAXDIM, U8, U16, U32, U64, WORK,
    NOTHING, Tensor, address_of, elements_of, is_conjugate_view,
    check_device, copy_into, dtype, empty_tensor, has_mode, host_tensor, read_scalar, scalar_code, storage_tensor,
    to_host, uploaded,
)

from .devices import REGISTERED
from .tensor import (
    ALL_DTYPES, PYTHON_TYPES, empty_like, from_storage, install, is_another, is_grad_enabled, mode_stack,
    promote_types, refuse_to_pin, tell_mode, whole_numbers,
)

cdef extern from "Python.h":
    PyObject* PyFloat_FromDouble(double) except NULL
    PyObject* PyLong_FromLongLong(long long) except NULL
    void set_new "PyList_SET_ITEM"(object, Py_ssize_t, PyObject*)
    double PyFloat_Unpack2(const char*, int) except? -1
    int PyFloat_Pack2(double, char*, int) except -1
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(object) except? 0xFFFFFFFFFFFFFFFF
    double PyLong_AsDouble(object) except? -1
    bint PySequence_Check(object)
    bint PyIndex_Check(object)

#: Dtypes that NumPy does not have, by PyTorch's name for them.
cdef dict NOT_NUMPY = {"bfloat16": "BFloat16", "complex32": "ComplexHalf", **{
    d.name: d.name.capitalize() for d in ALL_DTYPES if d.name.startswith(("float8", "float4"))}}
cdef dict CODE_BY_NAME = {d.name: (<dtype>d).code for d in ALL_DTYPES if d.name not in NOT_NUMPY}
cdef list NUMPY = []             # NumPy dtypes by code; None for those above; filled at first use
cdef dict NUMPY_CODES = {}       # dtype.name is slow
cdef object ndarray = None       # numpy.ndarray and numpy.generic, likewise
cdef object generic = None


cdef int need_numpy() except -1:
    global ndarray, generic
    if ndarray is None:
        with loading:
            import numpy

        for d in ALL_DTYPES:
            NUMPY.append(None if d.name in NOT_NUMPY else numpy.dtype(d.name))
        generic = numpy.generic
        ndarray = numpy.ndarray
    return 0


cdef inline bint numpy_loaded() except -1:
    """Whether any object can be NumPy's. The import of NumPy would cost as much as this check saves."""
    if ndarray is not None:
        return True
    import sys

    if "numpy" not in sys.modules:
        return False
    need_numpy()
    return True


cdef int code_of_numpy(object described) except -1:
    """The dtype code of a NumPy dtype."""
    cdef object code = NUMPY_CODES.get(described)
    if code is not None:
        return code
    code = CODE_BY_NAME.get(described.name)
    if code is None:
        raise TypeError(
            f"can't convert np.ndarray of type {described.type.__module__}.{described.type.__name__}; the supported "
            f"types are {', '.join(sorted(CODE_BY_NAME))}. Convert it with .astype() first"
        )
    if not described.isnative:
        raise ValueError(
            f"from_numpy: expected an array in the machine's byte order, got {described!r}; convert it with "
            ".astype(array.dtype.newbyteorder('='))"
        )
    NUMPY_CODES[described] = code
    return code


# ---- Python numbers and sequences ------------------------------------------------------------------------------------
cdef int out_of_range(int code, object x) except -1:
    # as PyTorch reads its arguments
    kind = OverflowError if isinstance(x, int) and not -2**63 <= x < 2**64 else RuntimeError
    raise kind(f"value cannot be converted to type {ALL_DTYPES[code].name} without overflow: {x!r}")


cdef int store_integer(char* p, int code, object x) except -1:
    """An int into an integer dtype. Unsigned ones take negative numbers of their width, modulo, as PyTorch does."""
    cdef int overflow = 0
    cdef int64_t v, limit
    if code == U64:
        v = PyLong_AsLongLongAndOverflow(x, &overflow)
        if overflow < 0 or v < 0 and not overflow:
            raise OverflowError(f"can't convert negative int to unsigned: {x} for uint64")
        (<uint64_t*>p)[0] = PyLong_AsUnsignedLongLong(x) if overflow > 0 else <uint64_t>v
        return 0
    v = PyLong_AsLongLongAndOverflow(x, &overflow)
    if overflow:
        raise ValueError(f"Overflow when unpacking long long: {x} does not fit int64")
    if code == I64:
        (<int64_t*>p)[0] = v
        return 0
    limit = <int64_t>1 << (8 * ITEMSIZE[code] - (1 if code in (I8, I16, I32) else 0))
    if v >= limit or v < (-limit if code in (I8, I16, I32) else 1 - limit):
        out_of_range(code, x)
    if ITEMSIZE[code] == 1:
        (<uint8_t*>p)[0] = <uint8_t>v
    elif ITEMSIZE[code] == 2:
        (<uint16_t*>p)[0] = <uint16_t>v
    else:
        (<uint32_t*>p)[0] = <uint32_t>v
    return 0


cdef inline void store_bfloat16(char* p, float x) noexcept:
    cdef uint32_t bits
    memcpy(&bits, &x, 4)
    if x != x:
        bits = 0x7FC00000
    else:
        bits += 0x7FFF + ((bits >> 16) & 1)
    (<uint16_t*>p)[0] = <uint16_t>(bits >> 16)


cdef int store_real(char* p, int code, double v) except -1:
    cdef float single = <float>v
    if code == F32:
        (<float*>p)[0] = single
    elif code == F64:
        (<double*>p)[0] = v
    elif code == BF16:
        store_bfloat16(p, single)
    elif single >= 65520.0 or single <= -65520.0:  # numbers that PyFloat_Pack2 refuses become infinite
        (<uint16_t*>p)[0] = 0x7C00 if single > 0 else 0xFC00
    else:
        PyFloat_Pack2(single, p, 1)
    return 0


cdef int store_float_as_integer(char* p, int code, double v) except -1:
    if code == U64:
        raise TypeError(f"an integer is required for uint64, got {v}")
    if not (v > -9223372036854775808.0 and v < 18446744073709551616.0) or (v < 0 and code in (U8, U16, U32, U64)):
        out_of_range(code, v)
    return store_integer(p, code, int(v))


cdef int store(char* p, int code, object x) except -1:
    """One Python number (or anything that turns into one) as an element."""
    cdef double re, im = 0.0
    cdef int kind = KIND[code]
    if PyFloat_Check(x):
        re = PyFloat_AS_DOUBLE(x)
    elif PyLong_Check(x):
        if kind == 1:
            return store_integer(p, code, x)
        if kind == 0:
            p[0] = x != 0
            return 0
        try:
            re = PyLong_AsDouble(x)
        except OverflowError:
            raise ValueError(f"Overflow when unpacking long long: {x} does not fit a float") from None
    elif PyComplex_Check(x):
        if kind < 3 and kind != 0:
            raise TypeError(f"tensor: expected real numbers for {ALL_DTYPES[code]}, got {x!r}")
        re, im = PyComplex_RealAsDouble(x), PyComplex_ImagAsDouble(x)
    else:
        return store_other(p, code, x)
    if kind == 2:
        return store_real(p, code, re)
    if code == C64:
        (<float*>p)[0], (<float*>p)[1] = <float>re, <float>im
    elif code == C128:
        (<double*>p)[0], (<double*>p)[1] = re, im
    elif kind == 0:
        p[0] = re != 0 or im != 0
    else:
        return store_float_as_integer(p, code, re)
    return 0


cdef int store_other(char* p, int code, object x) except -1:
    """Store an object that is no Python number: a NumPy scalar, a one-element tensor, an object with a number's
    protocol.
    """
    if isinstance(x, Tensor):
        if (<Tensor>x).count != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars, got sizes {x.shape}")
        return store(p, code, x.item())
    if numpy_loaded() and isinstance(x, (generic, ndarray)):
        return store(p, code, x.item())
    if PyIndex_Check(x):
        return store(p, code, x.__index__())
    if KIND[code] == 3 and hasattr(x, "__complex__"):
        return store(p, code, complex(x))
    if hasattr(type(x), "__float__"):
        return store(p, code, float(x))
    raise TypeError(f"tensor: expected a number, got {type(x).__name__}")


cdef bint nested(object x) except -1:
    """Whether ``x`` is a sequence to look into rather than an element."""
    if PyList_Check(x) or PyTuple_Check(x):
        return True
    if PyFloat_Check(x) or PyLong_Check(x) or PyUnicode_Check(x) or PyBytes_Check(x) or isinstance(x, dict):
        return False
    if isinstance(x, Tensor):
        return (<Tensor>x).nd > 0 and (<Tensor>x).count != 1  # one element stands for its number
    if numpy_loaded() and isinstance(x, (ndarray, generic)):
        return x.ndim > 0
    return PySequence_Check(x) and hasattr(x, "__len__")


cdef int find_sizes(object data, int64_t* sizes) except -1:
    """Sizes by the first element of each level; the number of dimensions."""
    cdef int nd = 0
    while nested(data):
        if nd == MAXDIM:
            raise ValueError(f"tensor: expected at most {MAXDIM} levels of nesting")
        sizes[nd] = len(data)
        nd += 1
        if sizes[nd - 1] == 0:
            break
        data = data[0]
        if isinstance(data, Tensor) and (<Tensor>data).count != 1:
            raise ValueError("only one element tensors can be converted to Python scalars, got a tensor of sizes "
                             f"{list(data.shape)} in a list; join tensors with taeda.stack or taeda.cat")
    if PyUnicode_Check(data) or PyBytes_Check(data):
        if nd == 0:
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return nd


cdef int element_code(object x) except -1:
    """The dtype of one element of a sequence."""
    if PyFloat_CheckExact(x) or PyBool_Check(x) or PyLong_CheckExact(x) or PyComplex_CheckExact(x):
        return scalar_code(x)
    if isinstance(x, Tensor):
        return (<Tensor>x).code
    if numpy_loaded() and isinstance(x, (generic, ndarray)):
        return code_of_numpy(x.dtype)
    if PyFloat_Check(x) or PyLong_Check(x) or PyComplex_Check(x):
        return scalar_code(x)
    if PyIndex_Check(x):
        return I64
    if hasattr(type(x), "__float__"):
        return scalar_code(0.0)
    if PyUnicode_Check(x) or PyBytes_Check(x) or nested(x):
        raise TypeError(f"tensor: '{type(x).__name__}' object cannot be interpreted as a number; its siblings are "
                        f"numbers")
    raise RuntimeError(f"Could not infer dtype of {type(x).__name__}: expected numbers, nested sequences or arrays")


cdef inline int promote(int a, int b) except -1:
    if a < 0 or a == b:
        return b
    if b < 0:
        return a
    return (<dtype>promote_types(ALL_DTYPES[a], ALL_DTYPES[b])).code


cdef int ragged(object item, int64_t expected, int depth) except -1:
    if not nested(item):
        raise TypeError(f"not a sequence: expected one of length {expected} at dim {depth}, got {type(item).__name__}")
    raise ValueError(f"expected sequence of length {expected} at dim {depth} (got {len(item)}); pad the lists to one "
                     f"length, or make a tensor of each: nested.nested_tensor([...]) holds tensors of unequal sizes")


cdef int find_code(object data, int depth, int nd, int code, Watch* w) except -2:
    """The dtype that all elements promote to. ``code`` is the dtype of the elements so far, -1 if there are none."""
    cdef Py_ssize_t i, n
    cdef object item
    cdef int real = scalar_code(0.0)
    if depth == nd or not (PyList_Check(data) or PyTuple_Check(data)):
        if depth < nd and not isinstance(data, Tensor) and not (numpy_loaded() and isinstance(data, ndarray)):
            if not nested(data):
                return promote(code, element_code(data))
            return find_code(list(data), depth, nd, code, w)
        return promote(code, element_code(data))
    n = PyList_GET_SIZE(data) if PyList_Check(data) else PyTuple_GET_SIZE(data)
    for i in range(n):
        item = <object>PyList_GET_ITEM(data, i) if PyList_Check(data) else <object>PyTuple_GET_ITEM(data, i)
        if depth + 1 < nd:
            code = find_code(item, depth + 1, nd, code, w)
        elif not (code == real and PyFloat_CheckExact(item)) and not (code == I64 and PyLong_CheckExact(item)):
            code = promote(code, element_code(item))
        if i % UNHEARD == UNHEARD - 1:
            heed(w)
    heed(w, n % UNHEARD)
    return code


cdef char* fill(object data, int depth, int nd, const int64_t* sizes, int code, char* p, Watch* w) except NULL:
    """Store the elements in order from ``p``; where the next one would go."""
    cdef Py_ssize_t i, n
    cdef object item
    cdef int size = ITEMSIZE[code]
    cdef bint is_list = PyList_Check(data)
    if depth == nd:
        store(p, code, data)
        return p + size
    if not is_list and not PyTuple_Check(data):
        if not nested(data):
            ragged(data, sizes[depth], depth)
        return fill(data.tolist() if hasattr(data, "tolist") else list(data), depth, nd, sizes, code, p, w)
    n = PyList_GET_SIZE(data) if is_list else PyTuple_GET_SIZE(data)
    if n != sizes[depth]:
        ragged(data, sizes[depth], depth)
    for i in range(n):
        if is_list and PyList_GET_SIZE(data) != n:
            raise RuntimeError("tensor: the list changed its length while it was read")
        item = <object>PyList_GET_ITEM(data, i) if is_list else <object>PyTuple_GET_ITEM(data, i)
        if depth + 1 < nd:
            p = fill(item, depth + 1, nd, sizes, code, p, w)
        else:
            if code == F32 and PyFloat_CheckExact(item):
                (<float*>p)[0] = <float>PyFloat_AS_DOUBLE(item)
            elif PyList_Check(item) or PyTuple_Check(item):
                raise TypeError(f"'{type(item).__name__}' object cannot be interpreted as a number")
            else:
                store(p, code, item)
            p += size
        if i % UNHEARD == UNHEARD - 1:
            heed(w)
    heed(w, n % UNHEARD)
    return p


cdef Tensor from_sequence(object data, int code):
    """A new tensor of a number or nested sequences; ``code`` -1 infers the dtype."""
    cdef int64_t sizes[MAXDIM]
    cdef int nd = find_sizes(data, sizes)
    cdef Watch w = watch(count_of(nd, sizes))
    cdef Tensor t
    if code < 0:
        code = find_code(data, 0, nd, -1, &w)
        if code < 0:
            code = scalar_code(0.0)
    if code >= C32:  # complex32 and float8: through their computing dtypes
        return cast(from_sequence(data, WORK[code]), code)
    t = host_tensor(code, nd, sizes)
    if nd and sizes[nd - 1] == 0:
        check_empty(data, 0, nd, sizes)
    else:
        fill(data, 0, nd, sizes, code, address_of(t), &w)
        note_filled(address_of(t), NUMBERS)
    return uploaded(t)


cdef int check_empty(object data, int depth, int nd, const int64_t* sizes) except -1:
    if not nested(data) or len(data) != sizes[depth]:
        ragged(data, sizes[depth], depth)
    if depth + 1 < nd:
        for item in data:
            check_empty(item, depth + 1, nd, sizes)
    return 0


# ---- tensor, as_tensor, asarray --------------------------------------------------------------------------------------
cdef int code_of(object d) except -2:
    if d is None:
        return -1
    if isinstance(d, dtype):
        return (<dtype>d).code
    if isinstance(d, type) and d in PYTHON_TYPES:
        return (<dtype>PYTHON_TYPES[d]).code
    hint = f" {d!r}; give taeda.{d}" if isinstance(d, str) and (d in CODE_BY_NAME or d in NOT_NUMPY) else ""
    raise TypeError(f"dtype: expected a taeda.dtype, got {type(d).__name__}{hint}")


cdef Tensor cast(Tensor source, int code):
    """A copy with another dtype, whose dimensions are in the same order in memory."""
    cdef Tensor t = empty_like(source, ALL_DTYPES[code if code >= 0 else source.code])
    copy_into(t, source)
    return t


cdef inline bint plain(object x):
    """Whether ``x`` certainly has no memory to share."""
    return (PyList_Check(x) or PyTuple_Check(x) or PyFloat_CheckExact(x) or PyLong_Check(x) or PyUnicode_Check(x)
            or PyBytes_Check(x) or PyComplex_CheckExact(x))


cdef Tensor storage_array(object data, int code):
    """``data``, a storage, as a vector over its memory. The bytes of an untyped one are read as elements of the dtype
    that is asked for, else as int64."""
    cdef Storage storage = <Storage?>getattr(data, "_untyped_storage", data)
    cdef bint typed = data is not storage
    cdef int64_t n = storage.nbytes()
    if code < 0:
        code = I64 if n and not typed else scalar_code(0.0)
    if typed and data.dtype is not ALL_DTYPES[code]:
        raise RuntimeError(f"Expected a Storage of type {ALL_DTYPES[code]} or an UntypedStorage, but got {data.dtype}; "
                           f"give dtype={data.dtype}")
    return from_storage(storage, ALL_DTYPES[code], (n // ITEMSIZE[code],), (1,))


cdef Tensor shared_array(object data, int code):
    """``data`` as a tensor over its own memory, where it offers that; else None. ``code``: what is asked for, or -1."""
    if isinstance(data, Storage) or hasattr(data, "_untyped_storage"):
        return storage_array(data, code)
    if numpy_loaded():
        if isinstance(data, ndarray):
            return array_tensor(data, False)
        if isinstance(data, generic):
            return array_tensor(data.reshape(()), False)
    if PyCapsule_CheckExact(data) or hasattr(data, "__dlpack__"):
        from .dlpack import from_dlpack

        return from_dlpack(data)
    for contract in REGISTERED:
        made = None if contract is None else contract.adopted(data)
        if made is not None:
            return made
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        need_numpy()
        import numpy

        return array_tensor(numpy.asarray(data), False)
    return None


cdef int defaults_elsewhere = 0  # threads whose default device is not the CPU


def count_defaults_elsewhere(int by):
    """A thread's default device becomes another than the CPU, or no longer is."""
    global defaults_elsewhere
    defaults_elsewhere += by


cdef int modes_alive = 0  # TorchFunctionModes of all threads that see more than ops


def count_modes(int by):
    """``by`` more such modes are on; return how many there are."""
    global modes_alive
    modes_alive += by
    return modes_alive


cdef int expect_flag(object x, str function, str name) except -1:
    """Raise unless ``x`` is a bool, Python's or NumPy's."""
    if not PyBool_Check(x) and not (numpy_loaded() and isinstance(x, generic) and x.dtype.kind == "b"):
        raise TypeError(f"{function}(): argument '{name}' must be bool, not {type(x).__name__}")
    return 0


cdef object made_there(object function, tuple args, object device, dict given):
    """The result of this thread's mode, or a tensor on another device; NotImplemented if the tensor is made here.

    ``given`` are the keyword arguments without the device; None if the call has none.
    """
    if modes_alive and callbacks.a_mode_asks():
        given["device"] = device
        return callbacks.overrides(function, args, {k: v for k, v in given.items() if v is not None})
    if device is None and defaults_elsewhere and not here():
        device = callbacks.default_device()
    if device is not None and is_another(device):
        return callbacks.make_there(
            function, args, {"device": device} | {k: v for k, v in given.items() if v is not None}
        )
    check_device(device)
    return NotImplemented


cdef Tensor tell_of(Tensor made):
    """``made``, of Python's values, or what stands for it in a program that a mode records."""
    for mode in mode_stack() if has_mode() else ():
        told = getattr(mode, "note_made", None)
        if told is not None:
            made = told(made)
    return made


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor with the values of ``data``, which is always copied.

    Args:
        data: a number, nested sequences of numbers, a NumPy array or scalar, or anything with ``__array__``.
        dtype: dtype of the result. Default: that of an array; ``bool``, ``int64``, the default floating-point dtype or
            a complex one for Python's numbers.
        device: where the result is. Default: that of :func:`set_default_device`.
        requires_grad: whether operations on the result are recorded for a backward pass.
        pin_memory: whether it is in memory from which the accelerator copies without waiting.
    Returns:
        A tensor with a dimension per level of nesting.
    Raises:
        ValueError: nested sequences have different lengths.
        TypeError: an element is no number.
        RuntimeError: the dtype cannot hold a value.
    Examples:
        >>> taeda.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> taeda.tensor([1, 2.5])
        tensor([1.0000, 2.5000])
        >>> weight = taeda.tensor([0.5], requires_grad=True)
    """
    if not has_mode() or isinstance(data, Tensor):
        return copied(data, dtype, device, requires_grad, pin_memory)
    tell_mode("tensor")
    return tell_of(copied(data, dtype, device, requires_grad, pin_memory))


def copied(data, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """:func:`tensor` without a word to a mode: for the core, which makes tensors of indices."""
    cdef int code = code_of(dtype)
    cdef Tensor t, source
    if requires_grad is not False:
        expect_flag(requires_grad, "tensor", "requires_grad")
    if pin_memory is not False:
        expect_flag(pin_memory, "tensor", "pin_memory")
        refuse_to_pin(pin_memory)
        if pin_memory:
            return copied(data, dtype, device or "cpu").pin_memory().requires_grad_(requires_grad)
    if device is not None or defaults_elsewhere or modes_alive:
        made = made_there(tensor, (data,), device, dict(dtype=dtype, requires_grad=requires_grad or None))
        if made is not NotImplemented:
            return made
    if PyList_Check(data) or PyTuple_Check(data) or PyFloat_CheckExact(data) or PyLong_Check(data):
        t = from_sequence(data, code)
    elif isinstance(data, Storage) or hasattr(data, "_untyped_storage"):  # PyTorch copies anything else
        t = storage_array(data, code)
    elif isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than taeda.tensor(sourceTensor).",
            UserWarning,
            stacklevel=1,
        )
        source = data
        if source.holds != NOTHING and not has_mode():
            t = cast(source, code)
        else:
            t = source.detach().to(dtype or source.dtype, copy=True)
    else:
        source = None if plain(data) else shared_array(data, code)
        if source is None:
            t = from_sequence(data, code)
        elif source.device_type:
            t = source.to(device=device or source.device, dtype=dtype or source.dtype, copy=True)
        else:
            t = cast(source, code)
    if requires_grad:
        t.requires_grad = True
    return t


def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor: itself if it is one, over the same memory if it is a NumPy array, else a copy.

    Args:
        data: a tensor, a NumPy array, a number or nested sequences of numbers.
        dtype: dtype of the result. Default: that of ``data``. Another one makes a copy.
        device: where the result is. Default: where ``data`` is.
    Returns:
        A tensor.
    Raises:
        ValueError: nested sequences have different lengths.
        TypeError: an element is no number.
    Examples:
        >>> import numpy as np
        >>> array = np.array([1.0, 2.0])
        >>> x = taeda.as_tensor(array)
        >>> x[0] = 5.0
        >>> array.tolist()
        [5.0, 2.0]
    """
    cdef int code = code_of(dtype)
    cdef Tensor t
    if device is not None or defaults_elsewhere or modes_alive:
        made = made_there(as_tensor, (data,), device, dict(dtype=dtype))
        if made is not NotImplemented:
            return made
    if isinstance(data, Tensor):
        return data if code < 0 or code == (<Tensor>data).code else data.to(ALL_DTYPES[code])
    if has_mode():
        tell_mode("as_tensor")
    t = None if plain(data) else shared_array(data, code)
    if t is None:
        return tell_of(from_sequence(data, code))
    if t.device_type:
        return t.to(device=device or t.device, dtype=dtype or t.dtype)
    return tell_of(t if code < 0 or code == t.code else cast(t, code))


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """``obj`` as a tensor, sharing memory where that is possible.

    Args:
        obj: a tensor, a NumPy array, a DLPack capsule, an object with DLPack or the buffer protocol, a number or nested
            sequences.
        dtype: dtype of the result. Default: that of the data.
        device: where the result is.
        copy: True always copies, False never does (and raises where it must), None copies only where it must.
        requires_grad: whether operations on the result are recorded. Default: as for ``obj``.
    Returns:
        A tensor.
    Raises:
        ValueError: ``copy=False`` and the data cannot be shared.
    Examples:
        >>> x = taeda.tensor([1, 2])
        >>> taeda.asarray(x) is x, taeda.asarray(x, copy=True) is x
        (True, False)
    """
    cdef int code = code_of(dtype)
    cdef Tensor t
    if device is not None or defaults_elsewhere or modes_alive:
        made = made_there(asarray, (obj,), device, dict(dtype=dtype, copy=copy, requires_grad=requires_grad))
        if made is not NotImplemented:
            return made
    if isinstance(obj, Tensor):
        t = obj
    elif plain(obj) and not PyBytes_Check(obj):
        t = None
    else:
        t = shared_array(obj, code)
        if t is None and PyObject_CheckBuffer(obj) and len(memoryview(obj)):
            t = frombuffer(obj, dtype=ALL_DTYPES[code if code >= 0 else scalar_code(0.0)])
    if t is None or (code >= 0 and code != t.code):
        if copy is False:
            raise ValueError(f"asarray: can't share the memory of a {type(obj).__name__} here; use copy=None")
        t = from_sequence(obj, code) if t is None else (t.to(ALL_DTYPES[code]) if t is obj else cast(t, code))
    elif copy:
        t = t.clone() if t is obj else cast(t, -1)
    if requires_grad is False and t.requires_grad:
        t = t.detach()
    if requires_grad and not t.requires_grad:
        t = t.detach() if t is obj else t
        t.requires_grad = True
    return t if isinstance(obj, Tensor) else tell_of(t)


# ---- NumPy -----------------------------------------------------------------------------------------------------------
cdef class Exported:
    """Holds the buffer of another object for as long as a Storage uses it."""

    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)  # does nothing if there is none


cdef Tensor array_tensor(object array, bint warn):
    """A tensor over the memory of a NumPy array; its strides may be negative."""
    cdef int code = code_of_numpy(array.dtype)
    cdef Exported held = Exported.__new__(Exported)
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t low = 0, high = 0, step
    cdef int i, item = ITEMSIZE[code]
    cdef Py_buffer* view = &held.view
    PyObject_GetBuffer(array, view, PyBUF_STRIDED_RO)
    if warn and view.readonly:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable: writing to the tensor would write to memory that the array "
            "promises not to change. Copy the array to silence this warning.",
            UserWarning,
            stacklevel=1,
        )
    for i in range(view.ndim):
        sizes[i], step = view.shape[i], view.strides[i]
        strides[i] = step // item
        if sizes[i] > 1 and step % item:
            raise ValueError(
                f"from_numpy: expected strides that are multiples of the element size {item}, got {step} bytes in "
                f"dimension {i}; copy the array first"
            )
        if sizes[i] > 1:
            if step < 0:
                low += step * (sizes[i] - 1)
            else:
                high += step * (sizes[i] - 1)
    cdef bint empty = view.len == 0
    cdef Storage storage = foreign_storage(<char*>view.buf + low, 0 if empty else high - low + item, held)
    return storage_tensor(storage, code, view.ndim, sizes, strides, -low // item)


def from_numpy(array):
    """A tensor over the memory of a NumPy array: writing to either changes both.

    Args:
        array: a ``numpy.ndarray`` of any strides.
    Returns:
        A tensor with the sizes, the strides and the dtype of ``array``.
    Raises:
        TypeError: ``array`` is no ``numpy.ndarray``, or of a dtype that tensors do not have.
        ValueError: its byte order is not the machine's, or its strides are not multiples of the element size.
    Examples:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> taeda.from_numpy(array).add_(1)
        tensor([1., 1.], dtype=taeda.float64)
        >>> array.tolist()
        [1.0, 1.0]
    """
    if not numpy_loaded() or not isinstance(array, ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__}); tensor(...) and as_tensor(...) take "
                        f"numbers and lists")
    if has_mode():
        tell_mode("from_numpy")
    return tell_of(array_tensor(array, True))


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A vector over the memory of an object with the buffer protocol: writing to either changes both.

    Args:
        buffer: for instance a bytearray, a memoryview, an mmap.
        dtype: dtype of the result.
        count: elements to take; -1 takes all.
        offset: bytes to skip.
        requires_grad: whether operations on the result are recorded for a backward pass.
    Returns:
        A vector.
    Raises:
        ValueError: the buffer is empty, or too short, or its length is no multiple of the element size.
    Examples:
        >>> taeda.frombuffer(bytearray([1, 0, 2, 0]), dtype=taeda.uint8)
        tensor([1, 0, 2, 0], dtype=taeda.uint8)
    """
    cdef int code = code_of(dtype)
    cdef Exported held = Exported.__new__(Exported)
    cdef int64_t item = ITEMSIZE[code], n = whole_numbers(count, "frombuffer", "count"), have
    cdef int64_t skip = whole_numbers(offset, "frombuffer", "offset")
    if not PyObject_CheckBuffer(buffer):
        raise ValueError(f"object does not implement Python buffer protocol: {type(buffer).__name__}")
    PyObject_GetBuffer(buffer, &held.view, PyBUF_SIMPLE)
    have = held.view.len
    if have <= 0 or n == 0:
        raise ValueError(f"both buffer length ({have}) and count ({n}) must not be 0")
    if skip < 0 or skip >= have:
        raise ValueError(
            f"offset ({skip} bytes) must be non-negative and no greater than buffer length ({have} bytes) minus 1"
        )
    if n < 0 and (have - skip) % item:
        raise ValueError(
            f"buffer length ({have} bytes) after offset ({skip} bytes) must be a multiple of element size ({item})"
        )
    if n < 0:
        n = (have - skip) // item
    if n > (have - skip) // item:
        raise ValueError(
            f"requested buffer length ({n} * {item} bytes) after offset ({skip} bytes) must not be greater than actual "
            f"buffer length ({have} bytes)"
        )
    if held.view.readonly:
        import warnings

        warnings.warn(
            "The given buffer is not writable: writing to the tensor would write to memory that its owner promises "
            "not to change. Copy the buffer to silence this warning.",
            UserWarning,
            stacklevel=1,
        )
    cdef Tensor t = from_storage(foreign_storage(<char*>held.view.buf + skip, n * item, held), ALL_DTYPES[code], (n,),
                                 (1,))
    if requires_grad:
        t.requires_grad = True
    return tell_of(t)


cdef int take_bytes(Exported held, object buffer, int64_t start, int64_t nbytes) except -1:
    PyObject_GetBuffer(buffer, &held.view, PyBUF_SIMPLE)
    if start < 0 or nbytes < 0 or start > held.view.len - nbytes:
        raise ValueError(f"expected bytes {start} to {start + nbytes} of a buffer, which has {held.view.len}")
    return 0


def copy_to_storage(buffer, int64_t start, int64_t nbytes):
    """A new Storage with a copy of some bytes of a buffer."""
    cdef Exported held = Exported.__new__(Exported)
    take_bytes(held, buffer, start, nbytes)
    cdef Storage storage = new_storage(nbytes)
    memcpy(storage.data, <char*>held.view.buf + start, nbytes)
    return storage


def share_storage(buffer, int64_t start, int64_t nbytes):
    """A Storage over some bytes of a buffer, which lives as long as it does."""
    cdef Exported held = Exported.__new__(Exported)
    take_bytes(held, buffer, start, nbytes)
    return foreign_storage(<char*>held.view.buf + start, nbytes, held)


cdef object make_array(Tensor t):
    """A NumPy array over the memory of ``t``."""
    cdef int i, item = ITEMSIZE[t.code]
    cdef char* elements
    need_numpy()
    if NUMPY[t.code] is None:
        raise TypeError(f"Got unsupported ScalarType {NOT_NUMPY[ALL_DTYPES[t.code].name]}: NumPy has no such type; "
                        f"convert with .to({ALL_DTYPES[WORK[t.code]]}) first")
    shape = tuple([t.sizes[i] for i in range(t.nd)])
    elements = elements_of(t)
    show(t.storage)
    offset = elements - t.storage.data
    if t.count == 0:
        import numpy

        return numpy.empty(shape, NUMPY[t.code])
    memory = export_of(t.storage, False)  # NumPy keeps it, not the tensor, which may come to have other memory
    if t.contiguous:
        return ndarray(shape, NUMPY[t.code], memory, offset)
    return ndarray(shape, NUMPY[t.code], memory, offset, tuple([t.strides[i] * item for i in range(t.nd)]))


def array_of(Tensor t):
    """A NumPy array over the memory of ``t``, which is on the processor, whatever the graph knows of it."""
    return make_array(t)


cdef Tensor memory_to_show(Tensor self, bint force):
    """The tensor whose memory :func:`numpy_` shows of one that is elsewhere, in a graph or conjugated."""
    if self.device_type:
        if self.device_type == META_NUMBER:
            raise TypeError("can't convert meta device type tensor to numpy: it has no values; make it on the CPU")
        if not force:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the "
                            "tensor to host memory first.")
        self = self.detach().cpu()
    if self.requires_grad:
        if not force and is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        self = self.detach()
    if is_conjugate_view(self):
        if not force:
            kind, how = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
            raise RuntimeError(f"Can't call numpy() on Tensor that has {kind} bit set. Use "
                               f"tensor.resolve_{how}().numpy() instead.")
        self = cast(self, -1)
    return self


def numpy_(self, *, force=False):
    """A NumPy array over the same memory: writing to either changes both.

    Args:
        force: also give an array (possibly of a copy) where the tensor is part of a graph or a conjugated or negated
            view.
    Raises:
        RuntimeError: the tensor requires a gradient, which is recorded, or is a conjugated or negated view, and
            ``force`` is false.
        TypeError: it is of a dtype that NumPy does not have: bfloat16, complex32, float8.
    Examples:
        >>> x = taeda.zeros(2)
        >>> x.numpy()[0] = 5.0
        >>> x
        tensor([5., 0.])
    """
    cdef Tensor t = <Tensor>self
    if has_mode() and tell_mode("NumPy array", t):
        array = make_array(memory_to_show(t, force))
        array.flags.writeable = False
        return array
    if type(self) is Tensor and t.grad_fn_ is None and t.base is None and not (
            t.device_type or t.leaf_grad or is_conjugate_view(t)):
        return make_array(t)
    return make_array(memory_to_show(t, force))


def to_array(self, dtype=None, copy=None):
    """``__array__``: see :meth:`numpy`."""
    if not (<Tensor>self).device_type and self.requires_grad and is_grad_enabled():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. To "
                           "keep the gradient, give a function of NumPy a tensor, and not a list of tensors: np.stack "
                           "makes one of the list")
    array = numpy_(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: cannot make a {dtype} array of a {self.dtype} tensor without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


# ---- to Python -------------------------------------------------------------------------------------------------------
cdef object listed(Tensor t, int dim, const char* p, Watch* w):
    cdef int64_t i, n = t.sizes[dim], step = t.strides[dim] * ITEMSIZE[t.code], first = 0, last
    cdef object item
    cdef list result = PyList_New(n)
    if dim + 1 < t.nd:
        for i in range(n):
            item = listed(t, dim + 1, p + i * step, w)
            Py_INCREF(item)
            PyList_SET_ITEM(result, i, item)
        heed(w, n)
        return result
    while first < n:
        last = min(first + UNHEARD, n)
        if t.code == F32:  # as read_scalar, at once
            for i in range(first, last):
                set_new(result, i, PyFloat_FromDouble((<const float*>(p + i * step))[0]))
        elif t.code == I64:
            for i in range(first, last):
                set_new(result, i, PyLong_FromLongLong((<const int64_t*>(p + i * step))[0]))
        else:
            for i in range(first, last):
                item = read_scalar(p + i * step, t.code)
                Py_INCREF(item)
                PyList_SET_ITEM(result, i, item)
        heed(w, last - first)
        first = last
    return result


def tolist(Tensor self):
    """The values as nested lists of Python numbers; of a tensor without dimensions, its number.

    Returns:
        A list, or a number.
    Examples:
        >>> taeda.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    if self.nd == 0:
        return self.item()
    if has_mode():
        tell_mode("list", self)
    if self.device_type > META_NUMBER:
        self = to_host(self)
    if self.code >= C32 or is_conjugate_view(self):
        self = cast(self, WORK[self.code])
    cdef Watch w = watch(self.count)
    return listed(self, 0, elements_of(self), &w)


def from_array(array):
    """A tensor of NumPy's result. It shares the memory of an array, and copies a scalar."""
    need_numpy()
    return array_tensor(array if isinstance(array, ndarray) else ndarray((), array.dtype, array.tobytes()).copy(),
                        False)


callbacks.array = to_array
callbacks.from_array = from_array
numpy_.__name__ = numpy_.__qualname__ = "numpy"
install("numpy", numpy_)
install("tolist", tolist)
