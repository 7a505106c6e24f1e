# New tensors, and their sizes and strides.

cdef inline bint compute_contiguous(Tensor t) noexcept:
    cdef int64_t expected = 1
    cdef int i
    for i in range(t.nd - 1, -1, -1):
        if t.sizes[i] != 1:
            if t.strides[i] != expected:
                return t.count == 0
            expected *= t.sizes[i]
    return True


cdef int refresh(Tensor t) except -1:
    """Recompute the fields that follow from sizes and strides."""
    t.count = count_of(t.nd, t.sizes)
    t.contiguous = compute_contiguous(t)
    return 0


cdef bint same_sizes(Tensor a, Tensor b) noexcept:
    return a.nd == b.nd and memcmp(a.sizes, b.sizes, a.nd * sizeof(int64_t)) == 0


def same_shape(Tensor a, Tensor b):
    """``a.shape == b.shape``."""
    return same_sizes(a, b)


def all_true(Tensor t):
    """``bool(t.all())``, of bools."""
    if elsewhere or t.overrides or t.device_type or mode_active() or not is_dense(t):
        return bool(t.all())
    return memchr(elements_of(t), 0, t.count) == NULL


cdef bint is_dense(Tensor t) noexcept:
    """Whether the elements fill a block of memory without holes or overlap, in any order of dimensions."""
    cdef int64_t expected = 1
    cdef int i, found
    cdef uint64_t used = 0
    if t.contiguous:
        return True
    for _ in range(t.nd):
        found = -1
        for i in range(t.nd):
            if not (used >> i) & 1 and (t.sizes[i] == 1 or t.strides[i] == expected):
                found = i
                break
        if found < 0:
            return False
        used |= <uint64_t>1 << found
        expected *= t.sizes[found]
    return True


cdef inline int init_dims(Tensor t, int ndim) except -1:
    t.nd = ndim
    if ndim <= INLINE:
        t.sizes = t.dims
        t.strides = t.dims + INLINE
    else:
        if ndim > MAXDIM:
            raise RuntimeError(f"a tensor has at most {MAXDIM} dimensions, got {ndim}")
        t.heap_dims = PyBytes_FromStringAndSize(NULL, 2 * ndim * sizeof(int64_t))
        t.sizes = <int64_t*>PyBytes_AS_STRING(t.heap_dims)
        t.strides = t.sizes + ndim
    return 0


cdef int check_window(Storage storage, int item, int n, const int64_t* sizes, const int64_t* strides,
                      int64_t offset) except -1:
    """Refuse a window of memory that does not lie in its storage."""
    cdef double low = offset, high = offset
    cdef int d
    if count_of(n, sizes) == 0:
        return 0
    for d in range(n):
        if strides[d] >= 0:
            high += <double>(sizes[d] - 1) * strides[d]
        else:
            low += <double>(sizes[d] - 1) * strides[d]
    if low < 0 or (high + 1) * item > storage.capacity:
        raise RuntimeError(f"setStorage: sizes {[sizes[d] for d in range(n)]}, strides "
                           f"{[strides[d] for d in range(n)]}, storage offset {offset}, and itemsize {item} requiring "
                           f"elements {low:.0f} to {high:.0f} are out of bounds for storage of size {storage.capacity}")
    return 0


cdef int parse_sizes(object sizes, int64_t* out) except -1:
    """A size given as an int or a sequence of ints; the number of dimensions."""
    cdef Py_ssize_t i, n
    cdef object s
    if PyLong_Check(sizes) and not PyBool_Check(sizes):
        out[0] = size_of(sizes)
        return 1
    if isinstance(sizes, Tensor):
        sizes = sizes.tolist()
    if PyIndex_Check(sizes) and not PyBool_Check(sizes):
        out[0] = sizes.__index__()
        return 1
    if not PyTuple_Check(sizes):
        try:
            sizes = tuple(sizes)
        except TypeError:
            raise no_sizes(type(sizes).__name__) from None
    n = PyTuple_GET_SIZE(sizes)
    if n > MAXDIM:
        raise RuntimeError(f"a tensor has at most {MAXDIM} dimensions, got {n}")
    for i in range(n):
        s = <object>PyTuple_GET_ITEM(sizes, i)
        if i == 0 and PyBool_Check(s):  # PyTorch looks at the first alone
            raise no_sizes("an element of type bool")
        if PyLong_Check(s):
            out[i] = size_of(s)
        elif hasattr(s, "__index__"):
            out[i] = size_of(s.__index__())
        else:
            raise no_sizes(f"an element of type {type(s).__name__}")
    return <int>n


cdef object no_sizes(str got):
    """The error for sizes that are no ints."""
    from .blame import called
    name = called("")
    return TypeError(f"{name}{'(): ' if name else ''}expected sizes as a tuple of ints, got {got}")


cdef inline int64_t size_of(object n) except? -1:
    """``n``, an int, as a size.

    Raises:
        TypeError: it does not fit 64 bits.
    """
    cdef int overflow = 0
    cdef int64_t size = PyLong_AsLongLongAndOverflow(n, &overflow)
    if overflow:
        raise TypeError(f"expected sizes as a tuple of ints of 64 bits, got {n}")
    return size


cdef int wrap_dim(object dim, int ndim, str name) except -1:
    """A dimension in ``[0, ndim)``; a 0-d tensor takes 0 and -1 as well."""
    cdef long d
    if not PyLong_Check(dim):
        if not hasattr(dim, "__index__"):
            raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
        dim = dim.__index__()
    d = dim
    cdef int n = ndim if ndim > 0 else 1
    if d < -n or d >= n:
        from .blame import called
        from .mends import for_dim
        raise IndexError(f"{called(name)}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], "
                         f"but got {d}){for_dim(ndim)}")
    return d + n if d < 0 else d


cdef enum:
    LATE_LEAST = 1 << 16      # bytes of a result that gets its memory when it is computed


cdef Tensor empty_tensor(int dtype, int ndim, const int64_t* sizes, bint late=False):
    """An uninitialised contiguous tensor; a large one that is ``late`` gets its memory when it is computed."""
    cdef Tensor t = <Tensor>Tensor.__new__(Tensor)
    cdef int64_t n = 1
    cdef int i
    cdef bint empty = False, lost = False
    init_dims(t, ndim)
    for i in range(ndim - 1, -1, -1):
        t.sizes[i] = sizes[i]
        t.strides[i] = n
        if sizes[i] > 1:
            lost |= overflows_times(n, sizes[i], &n)
        elif sizes[i] == 0:
            empty = True
        elif sizes[i] < 0:
            raise RuntimeError(f"sizes must not be negative, got {make_size(ndim, sizes)}")
    if lost and empty:
        contiguous_strides(ndim, sizes, t.strides)  # raises unless they are right
    t.count = 0 if empty else n
    lost |= overflows_times(n, ITEMSIZE[dtype], &n)
    if empty:
        n = 0
    elif lost or n > <int64_t>1 << 62:
        count_of(ndim, sizes)  # raises where the number of elements does not fit
        raise RuntimeError(f"a tensor of sizes {make_size(ndim, sizes)} is too large")
    t.code = dtype
    t.contiguous = True
    t.storage = late_storage(n, t) if late and n >= LATE_LEAST else new_storage(n)
    t.raw = t.storage.data
    if t.storage.device:
        t.device_type, t.holds = t.storage.device, NOTHING
    if INFERENCE[0]:
        t.inference = INFERENCE[0] != INFERENCE_RECORDED
    return t


cdef Tensor empty_strided_like(int dtype, Tensor like, bint late=False):
    """As ``like``, which is dense, with its strides."""
    cdef Tensor t = empty_tensor(dtype, like.nd, like.sizes, late)
    cdef int i
    if not like.contiguous:
        for i in range(like.nd):
            t.strides[i] = like.strides[i]
        t.contiguous = compute_contiguous(t)
    return t


cdef Tensor alias_tensor(Tensor source, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset,
                         bint late=False):
    """A tensor over the same storage, ``offset`` elements after the first of ``source``; no graph, no base.

    A storage without memory gets it now, unless ``late``.
    """
    cdef Tensor t = <Tensor>Tensor.__new__(Tensor)
    cdef int i
    init_dims(t, ndim)
    for i in range(ndim):
        t.sizes[i] = sizes[i]
        t.strides[i] = strides[i]
    t.count = count_of(ndim, sizes)
    t.code = source.code
    if source.storage is not None and source.storage.late is not None:
        if late:
            source.storage.late.append(PyWeakref_NewRef(t, None))
        else:
            need_memory(source.storage)
    t.storage = source.storage
    t.raw = source.raw + offset * ITEMSIZE[source.code]
    t.contiguous = compute_contiguous(t)
    t.inference = source.inference
    if source.holds != VALUES:
        t.holds, t.device_type = source.holds, source.device_type
    return t


# ---- what Python calls -----------------------------------------------------------------------------------------------

def empty(sizes, dtype dtype=None):
    """An uninitialised contiguous tensor. Low level: no argument forms beyond a sequence of sizes and a dtype."""
    cdef int64_t shape[MAXDIM]
    cdef int n = parse_sizes(sizes, shape)
    return empty_tensor(DEFAULT_FLOAT if dtype is None else dtype.code, n, shape)


def empty_strided(sizes, strides, dtype dtype=None):
    """An uninitialised tensor with given strides (in elements, not negative)."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t steps[MAXDIM]
    cdef int64_t extent = 1
    cdef int i, n = parse_sizes(sizes, shape)
    if parse_sizes(strides, steps) != n:
        raise RuntimeError(f"empty_strided: got {n} sizes but {len(strides)} strides")
    for i in range(n):
        if shape[i] < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {shape[i]}: {make_size(n, shape)}")
        if shape[i] == 0:
            extent = 0
    if extent:
        for i in range(n):
            if steps[i] < 0:
                raise RuntimeError(f"empty_strided: strides must not be negative, got {tuple(strides)}")
            extent = plus(extent, times(shape[i] - 1, steps[i]))
    cdef int code = DEFAULT_FLOAT if dtype is None else dtype.code
    cdef Tensor block = empty_tensor(code, 1, &extent)
    return alias_tensor(block, n, shape, steps, 0)


def empty_like(Tensor like, dtype dtype=None):
    """An uninitialised tensor with the sizes of ``like`` and its dimensions in the same order in memory."""
    cdef int code = like.code if dtype is None else dtype.code
    cdef PyObject* inputs[1]
    cdef Tensor t
    if like.holds == NOTHING and hasattr(like, "_empty_like"):
        return like._empty_like(dtype)
    if is_dense(like):
        t = empty_tensor(code, like.nd, like.sizes)
        memcpy(t.strides, like.strides, like.nd * sizeof(int64_t))
        t.contiguous = like.contiguous
        return t
    inputs[0] = <PyObject*>like
    return new_output(inputs, 1, code, like.nd, like.sizes)


def strided_view(Tensor t, sizes, strides, int64_t offset=0):
    """A view of the same storage, ``offset`` elements after the first of ``t``; not recorded, not checked."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t steps[MAXDIM]
    cdef int n = parse_sizes(sizes, shape)
    parse_sizes(strides, steps)
    return alias_tensor(t, n, shape, steps, offset)


def reinterpret(Tensor t, dtype d, sizes, strides, int64_t byte_offset=0):
    """A view of the same bytes as another dtype; not recorded."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t steps[MAXDIM]
    cdef int n = parse_sizes(sizes, shape)
    parse_sizes(strides, steps)
    cdef Tensor r = alias_tensor(t, n, shape, steps, 0)
    if is_conjugate_view(t):
        raise RuntimeError("reinterpret: the bytes of a conjugated or negated view are not those of what it shows")
    r.code = d.code
    r.raw = t.raw + byte_offset
    refresh(r)
    return r


def from_storage(Storage storage, dtype d, sizes, strides, int64_t offset=0):
    """A tensor on ``storage``, ``offset`` elements after its start."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t steps[MAXDIM]
    cdef int n = parse_sizes(sizes, shape)
    if parse_sizes(strides, steps) != n:
        raise RuntimeError(f"mismatch in length of strides and shape: {tuple(strides)} and {tuple(sizes)}")
    return storage_tensor(storage, d.code, n, shape, steps, offset)


cdef Tensor storage_tensor(Storage storage, int code, int n, const int64_t* sizes, const int64_t* strides,
                           int64_t offset):
    """:func:`from_storage` of sizes and strides that are read."""
    cdef Tensor t = <Tensor>Tensor.__new__(Tensor)
    cdef int i
    check_window(storage, ITEMSIZE[code], n, sizes, strides, offset)
    init_dims(t, n)
    for i in range(n):
        t.sizes[i] = sizes[i]
        t.strides[i] = strides[i]
    t.code = code
    need_memory(storage)
    t.storage = storage
    t.raw = storage.data + offset * ITEMSIZE[code]
    if storage.device:
        t.device_type, t.holds = storage.device, NOTHING
    refresh(t)
    return t
