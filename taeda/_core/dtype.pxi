# dtype, device, Size, layout and memory formats, and the promotion rules.

cdef list DTYPES = []          # dtype objects by code
PYTHON_TYPES = {}              # Python's types of numbers -> dtypes
cdef signed char PROMOTE[CODES][CODES]
cdef int DEFAULT_FLOAT = F32   # set_default_dtype
cdef str NAMESPACE = "taeda"   # the name before reprs: `set_namespace`


@cython.final
@cython.binding(False)
cdef class dtype:
    """The type of a tensor's elements: ``taeda.float32``, ``taeda.int64``, ``taeda.bool``, ... It cannot be made.

    ``itemsize`` is the size of an element in bytes; ``is_floating_point``, ``is_complex`` and ``is_signed`` say its
    kind; ``to_real()`` and ``to_complex()`` give its kin.

    Examples:
        >>> taeda.ones(2).dtype, taeda.float32.itemsize, taeda.float32.to_complex()
        (taeda.float32, 4, taeda.complex64)
    """

    def __init__(self, *args, **kwargs):
        raise TypeError(f"cannot create '{NAMESPACE}.dtype' instances; take one of {NAMESPACE}.float32, "
                        f"{NAMESPACE}.int64, ...")

    def __repr__(self):
        return f"{NAMESPACE}.{self.name}"

    def __reduce__(self):
        return _dtype_by_name, (self.name,)

    def __hash__(self):
        return hash(self.name)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def to_complex(self):
        """The complex dtype of the same precision."""
        if COMPLEX_OF[self.code] < 0:
            raise RuntimeError(f"to_complex: expected a floating-point or complex dtype, got {self}")
        return DTYPES[COMPLEX_OF[self.code]]

    def to_real(self):
        """The real dtype of a complex dtype's parts."""
        return DTYPES[REAL_OF[self.code]]


def _dtype_by_name(name):
    for d in DTYPES:
        if (<dtype>d).name == name:
            return d
    raise ValueError(f"no dtype is named {name!r}")


cdef void _make_dtypes():
    cdef dtype d
    names = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
             "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "complex32",
             "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
             "float4_e2m1fn_x2")
    sizes = (1, 1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 8, 16, 4, 1, 1, 1, 1, 1, 1)
    cdef int i, j
    for i in range(NDTYPES):
        d = dtype.__new__(dtype)
        d.code = i
        d.itemsize = sizes[i]
        d.name = names[i]
        KIND[i] = 0 if i == BOOL else 1 if i < F16 else 3 if C64 <= i <= C32 else 2
        DOMAIN[i] = NOWHERE if i == F4_E2M1FN_X2 else FLOAT8 if i >= F8_E4M3FN else KIND[i]
        ITEMSIZE[i] = sizes[i]
        WORK[i] = F32 if i == F16 or i == BF16 or i >= F8_E4M3FN else C64 if i == C32 else i
        REAL_OF[i] = F16 if i == C32 else F32 if i == C64 else F64 if i == C128 else i
        COMPLEX_OF[i] = (C32 if i == F16 or i == C32 else C64 if i in (BF16, F32, C64) else C128 if i == F64
                         or i == C128
                         else -1)
        d.is_floating_point = KIND[i] == 2
        d.is_complex = KIND[i] == 3
        d.is_signed = KIND[i] >= 2 and i != F8_E8M0FNU or i in (I8, I16, I32, I64)
        DTYPES.append(d)
    PYTHON_TYPES.update({bool: DTYPES[BOOL], int: DTYPES[I64], float: DTYPES[F64], complex: DTYPES[C128]})
    for i in range(CODES):
        if i >= NDTYPES:
            KIND[i], DOMAIN[i], COMPLEX_OF[i] = 2, NOWHERE, -1
        for j in range(CODES):
            PROMOTE[i][j] = _promote_rule(i, j) if i < NDTYPES and j < NDTYPES else NO_COMMON


cdef int _promote_rule(int a, int b):
    """PyTorch's table; NumPy's rule where PyTorch has none (wide unsigned with signed)."""
    if a == b:
        return a
    if DOMAIN[a] >= FLOAT8 or DOMAIN[b] >= FLOAT8:
        return NO_COMMON
    if KIND[a] > KIND[b] or (KIND[a] == KIND[b] and ITEMSIZE[a] > ITEMSIZE[b]):
        a, b = b, a
    # now b is the wider kind or, within a kind, at least as wide
    if KIND[b] == 3:
        return b if KIND[a] < 2 or ITEMSIZE[COMPLEX_OF[a]] <= ITEMSIZE[b] else COMPLEX_OF[a]
    if KIND[b] == 2:
        return F32 if KIND[a] == 2 and ITEMSIZE[a] == ITEMSIZE[b] else b
    if KIND[a] == 0:
        return b
    cdef bint sa = (<dtype>DTYPES[a]).is_signed
    cdef bint sb = (<dtype>DTYPES[b]).is_signed
    if sa == sb or (sb and ITEMSIZE[b] > ITEMSIZE[a]):
        return b
    # signed with an unsigned at least as wide: the next wider signed type
    return {1: I16, 2: I32, 4: I64}.get(ITEMSIZE[b], F32)


cdef inline int combine_categories(int higher, int lower) noexcept:
    """Result of a dtype of higher priority with one of lower; -1 is "none"."""
    if higher < 0:
        return lower
    if lower < 0 or KIND[higher] == 3:
        return higher
    if KIND[higher] == 2:
        if KIND[lower] == 3:
            return COMPLEX_OF[higher] if COMPLEX_OF[higher] >= 0 else NO_COMMON
        return higher
    if KIND[higher] == 0 or KIND[lower] >= 2:
        return PROMOTE[higher][lower]
    return higher


cdef int scalar_code(object x) except -1:
    """The dtype a Python number stands for, in the default precision."""
    if PyBool_Check(x):
        return BOOL
    if PyLong_Check(x):
        return I64
    if PyFloat_Check(x):
        return DEFAULT_FLOAT
    if PyComplex_Check(x):
        return COMPLEX_OF[DEFAULT_FLOAT]
    if hasattr(type(x), "dtype") and hasattr(type(x), "item"):  # a number of NumPy's; a fx.Proxy has any attribute
        return scalar_code(x.item())
    raise TypeError(f"expected a number, got {type(x).__name__}")


cdef dtype common_dtype(int code):
    """The dtype of a promotion; an error where there is none."""
    if code == NO_COMMON:
        raise RuntimeError("Promotion for Float8 Types is not supported: a float8 has no common dtype with another; "
                           "convert both with .to(dtype)")
    return <dtype>DTYPES[code]


def promote_types(type1, type2):
    """The dtype of a result of two dtypes: the one of the higher kind (bool, integer, floating point, complex); of one
    kind the smallest that holds both.

    Args:
        type1: a dtype, or one of Python's types of numbers.
        type2: likewise.
    Returns:
        A dtype.
    Raises:
        TypeError: an argument is no dtype.
    Examples:
        >>> taeda.promote_types(taeda.int64, taeda.float16), taeda.promote_types(taeda.uint8, taeda.int8)
        (taeda.float16, taeda.int16)
    """
    return common_dtype(PROMOTE[as_dtype("type1", type1).code][as_dtype("type2", type2).code])


cdef dtype as_dtype(str name, object given):
    """The dtype of an argument of `promote_types`."""
    if PyType_Check(given):
        given = PYTHON_TYPES.get(given, given)
    if type(given) is not dtype:
        raise TypeError(f"promote_types: expected {name} to be a dtype, got {type(given).__name__}")
    return <dtype>given


def get_default_dtype():
    """The dtype of new floating-point tensors.

    Returns:
        A dtype; ``float32`` unless :func:`set_default_dtype` set another.
    Examples:
        >>> taeda.get_default_dtype()
        taeda.float32
    """
    return DTYPES[DEFAULT_FLOAT]


def set_default_dtype(d):
    """Sets the dtype of new floating-point tensors.

    Args:
        d: ``float16``, ``bfloat16``, ``float32`` or ``float64``.
    Raises:
        TypeError: ``d`` is another dtype.
    Examples:
        >>> taeda.set_default_dtype(taeda.float64)
        >>> taeda.tensor([0.5]).dtype
        taeda.float64
        >>> taeda.set_default_dtype(taeda.float32)
    """
    global DEFAULT_FLOAT
    if not isinstance(d, dtype) or KIND[(<dtype>d).code] != 2 or DOMAIN[(<dtype>d).code] >= FLOAT8:
        raise TypeError(f"set_default_dtype: expected float16, bfloat16, float32 or float64, got {d!r}")
    DEFAULT_FLOAT = (<dtype>d).code


def result_type(*operands, **named):
    """The dtype of an arithmetic operation on two tensors or numbers.

    Only a higher kind (bool, integer, floating point, complex) of a number changes the dtype of a tensor, and only a
    higher kind of a tensor without dimensions that of one with dimensions.

    Args:
        operands: two tensors or numbers.
        named: the same by any names.
    Returns:
        A dtype.
    Raises:
        TypeError: there are not two, or one is something else.
    Examples:
        >>> x = taeda.tensor([1], dtype=taeda.uint8)
        >>> taeda.result_type(x, 1000), taeda.result_type(x, 0.5)
        (taeda.uint8, taeda.float32)
    """
    cdef int levels[3]
    operands += tuple(named.values())
    if len(operands) != 2:
        raise TypeError(f"result_type() takes 2 tensors or numbers, got {len(operands)}")
    levels[0] = levels[1] = levels[2] = -1
    for x in operands:
        _accumulate_type(x, levels)
    return common_dtype(combine_categories(levels[0], combine_categories(levels[1], levels[2])))


cdef int _accumulate_type(object x, int* levels) except -1:
    """Take ``x`` into (dimensioned, 0-d, number) dtypes."""
    cdef int level, code
    if isinstance(x, Tensor):
        level = 0 if (<Tensor>x).nd else 1
        code = (<Tensor>x).code
    else:
        level, code = 2, scalar_code(x)
    levels[level] = code if levels[level] < 0 else PROMOTE[levels[level]][code]
    return 0


#: The names that devices have in PyTorch, whether or not one is there.
DEVICE_NAMES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
                "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")


@cython.final
cdef class device:
    """The place of memory: ``device("cpu")``, ``device("meta")``, ``device("cuda", 0)`` or ``device("cuda:0")``.
    As a context manager it makes new tensors there.

    Args:
        type: the kind of device, also with a number after a colon, or a device.
        index: which device of that kind. Default: None, for the current one.
    Raises:
        RuntimeError: there is no such kind, or ``index`` does not fit.
    Examples:
        >>> taeda.device("cuda:1").index
        1
        >>> with taeda.device("meta"):
        ...     x = taeda.zeros(10000, 10000)  # sizes and dtype, without memory
        >>> x.device
        device(type='meta')
    """

    def __init__(self, type, index=None):
        if isinstance(type, device) and index is None:
            self.type, self.index = (<device>type).type, (<device>type).index
            return
        if PyLong_Check(type) and not PyBool_Check(type) and index is None:
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            found = accelerator()
            if found is None:
                raise RuntimeError("Cannot access accelerator device when none is available; name the device, as in "
                                   "device('cpu')")
            self.type, self.index = DEVICES[found.number].partition(":")[0], type
            return
        if not isinstance(type, str):
            raise TypeError(f"device: expected a device, a string or an index, not {type.__class__.__name__}")
        if index is not None and (PyBool_Check(index) or not hasattr(index, "__index__")):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if not type:
            raise RuntimeError("Device string must not be empty")
        name, colon, number = str(type).partition(":")
        if colon:
            if index is not None:
                raise RuntimeError("type (string) must not include an index because index was passed explicitly: "
                                   f"{type}")
            if not number.isdecimal() or len(number) > 9 or number != str(int(number)):
                raise RuntimeError(f"Invalid device string: {type!r}")
            index = int(number)
        if name not in DEVICE_NAMES and name not in DEVICE_TYPES:
            raise RuntimeError(f"Expected one of {', '.join(DEVICE_NAMES)} device type at start of device string: "
                               f"{name}")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        self.type, self.index = name, index

    def __repr__(self):
        return (f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, "
                                                                         f"index={self.index})")

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __hash__(self):
        return hash((self.type, self.index))

    def __eq__(self, other):
        return isinstance(other, device) and self.type == (<device>other).type and self.index == (<device>other).index

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        before = callbacks.entered_devices()
        try:
            return callbacks.enter_device(self)
        except BaseException:  # also Ctrl-C: the block is not entered
            uninterrupted(callbacks.leave_devices, (before,), [])
            raise

    def __exit__(self, *exc):
        interrupts = []
        count = uninterrupted(callbacks.entered_devices, (), interrupts)
        uninterrupted(callbacks.leave_devices, (count - 1,), interrupts)
        if interrupts:
            raise interrupts[0]

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef object uninterrupted(function, tuple args, list interrupts):
    """Call ``function``, again after each Ctrl-C, until it returns. The exceptions are appended to ``interrupts``."""
    while True:
        try:
            return function(*args)
        except KeyboardInterrupt as error:
            interrupts.append(error)


cdef device CPU = device("cpu")
cdef device META = device("meta")
cdef list device_objects = [CPU, META]   # by number


cdef device device_at(int number):
    """The device of that number."""
    while len(device_objects) <= number:
        device_objects.append(device(DEVICES[len(device_objects)]))
    return device_objects[number]


class NoCudaError(RuntimeError, AssertionError):
    """Work for a device in a build without support of it. PyTorch raises AssertionError there, and RuntimeError where a
    driver is missing."""


cdef int check_device(object given) except -1:
    """The number of the device; raises if there is none, or tensors are not put there in this way."""
    if given is None or given is CPU:
        return CPU_NUMBER
    cdef device d = given if isinstance(given, device) else device(given)
    cdef int number = number_of(d.type, d.index)
    if number == CPU_NUMBER or number > META_NUMBER and number == here():
        return number
    if number > META_NUMBER:
        if here() == META_NUMBER:
            return number  # a program is planned that runs there
        raise NotImplementedError(f"tensors of this kind cannot be put on device {d}")
    if d.type in ("cuda", "xpu", "mtia"):
        if not is_registered(d.type):
            raise NoCudaError(f"Torch not compiled with {d.type.upper()} enabled: tensors can be put on device 'cpu' "
                              f"only, as {ABSENT.get(d.type) or f'taeda has no support for {d.type.upper()}'}. A "
                              f"program for both asks first: device = '{d.type}' if taeda.{d.type}.is_available() "
                              f"else 'cpu'")
    if d.type == "meta":
        if here() == META_NUMBER:
            return META_NUMBER
        raise NotImplementedError("device meta is not available here: only ops and modules make tensors without values")
    if is_registered(d.type):
        raise RuntimeError(f"{d.type.upper()} error: invalid device ordinal: there are {device_count(d.type)} devices "
                           f"of type {d.type}, and {d.index} was asked for")
    raise NotImplementedError(f"device {d} is not available; tensors can be put on device 'cpu'")


class layout:
    """The layout of elements: ``taeda.strided``, ``taeda.sparse_coo``, ``taeda.sparse_csr``, ...

    Args:
        name: what it is called.
    Examples:
        >>> taeda.ones(2).layout
        taeda.strided
    """

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{NAMESPACE}.{self.name}"

    def __reduce__(self):
        return self.name


class memory_format:
    """The order of the dimensions in memory of a new tensor: ``taeda.contiguous_format``, ``taeda.channels_last``,
    ``taeda.channels_last_3d`` or ``taeda.preserve_format``.

    Args:
        name: what it is called.
    Examples:
        >>> images = taeda.zeros(8, 3, 32, 32).to(memory_format=taeda.channels_last)
        >>> images.shape, images.stride()
        (taeda.Size([8, 3, 32, 32]), (3072, 1, 96, 3))
    """

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{NAMESPACE}.{self.name}"

    def __reduce__(self):
        return self.name


strided = layout("strided")
sparse_coo = layout("sparse_coo")  # the layout of a SparseTensor, see ops/sparse.py
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class Size(tuple):
    """The sizes of a tensor's dimensions: a tuple that knows its product, ``numel()``.

    Args:
        sizes: ints.
    Raises:
        TypeError: an item is no int.
    Examples:
        >>> size = taeda.ones(2, 3).shape
        >>> size, size[0], size.numel()
        (taeda.Size([2, 3]), 2, 6)
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        sizes = tuple(sizes)
        for i, n in enumerate(sizes):
            if not PyLong_CheckExact(n):
                return tuple.__new__(cls, [_as_size(n, i) for i, n in enumerate(sizes)])
        return tuple.__new__(cls, sizes)

    def numel(self):
        """The number of elements."""
        n = 1
        for s in self:
            n = n * s
        return n

    def __repr__(self):
        return f"{NAMESPACE}.Size({list(self)})"

    __str__ = __repr__

    def __getitem__(self, index):
        return size_item(self, index)

    def __add__(self, other):
        return as_size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return as_size(tuple(other) + tuple(self))

    def __mul__(self, n):
        return as_size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


def _as_size(n, i):
    if PyLong_Check(n) and not PyBool_Check(n) or getattr(n, "ragged", False):  # the latter: of a jagged nested tensor
        return n
    if not hasattr(n, "__index__"):
        raise TypeError(f"Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')")
    return n.__index__()


cdef PyTypeObject* SIZE = <PyTypeObject*>Size


cdef object size_item(object self, object index):
    item = (<PyTypeObject*>tuple).tp_as_mapping.mp_subscript(self, index)
    return as_size(item) if PySlice_Check(index) else item


SIZE.tp_as_mapping.mp_subscript = size_item  # takes a quarter of the time of the method above


cdef object as_size(tuple items):
    """The Size of ``items``."""
    cdef Py_ssize_t i
    cdef object x, t = SIZE.tp_alloc(SIZE, len(items))
    for i in range(len(items)):
        x = items[i]
        if not PyLong_Check(x):
            x = _as_size(x, i)
        Py_INCREF(x)
        PyTuple_SET_ITEM(t, i, x)
    return t


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
      #define TAEDA_GIL 0
    #else
      #define TAEDA_GIL 1
    #endif
    """
    const bint HAS_GIL "TAEDA_GIL"   # one thread at a time runs this: what is kept needs no lock

cdef struct Made:         # a Size that was made
    int ndim
    int64_t sizes[6]
    PyObject* size

cdef enum:
    MOST_MADE = 256       # a power of 2

cdef Made[MOST_MADE] made_sizes


cdef object make_size(int ndim, const int64_t* sizes):
    """The Size of these sizes: that which was made for the same ones lately, or a new one."""
    cdef object t
    cdef int i
    cdef uint64_t mixed = ndim
    cdef Made* last
    cdef PyObject* before
    if ndim > 6 or not HAS_GIL:
        return new_size(ndim, sizes)
    for i in range(ndim):
        mixed = (mixed ^ <uint64_t>sizes[i]) * 0x9E3779B97F4A7C15ULL
    last = &made_sizes[mixed >> 56]
    if last.size != NULL and last.ndim == ndim and memcmp(last.sizes, sizes, ndim * 8) == 0:
        return <object>last.size
    t = new_size(ndim, sizes)
    before = last.size
    last.ndim = ndim
    memcpy(last.sizes, sizes, ndim * 8)
    Py_INCREF(t)
    last.size = <PyObject*>t
    if before != NULL:
        Py_DECREF(<object>before)
    return t


cdef object new_size(int ndim, const int64_t* sizes):
    return fill_tuple(SIZE.tp_alloc(SIZE, ndim), ndim, sizes)


cdef tuple whole_tuple(int n, const int64_t* values):
    """A tuple of these ints."""
    return fill_tuple(PyTuple_New(n), n, values)


cdef inline object fill_tuple(object t, int ndim, const int64_t* sizes):
    cdef int i
    cdef object x
    for i in range(ndim):
        x = PyLong_FromLongLong(sizes[i])
        Py_INCREF(x)
        PyTuple_SET_ITEM(t, i, x)
    return t
