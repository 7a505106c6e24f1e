# Views: tensors over the same memory with other sizes and strides. Bodies of the ops declared in taeda/ops/views.py.

def view_transpose(Tensor input, dim0, dim1):
    cdef int a = wrap_dim(dim0, input.nd, "transpose"), b = wrap_dim(dim1, input.nd, "transpose")
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    if input.nd == 0:
        return alias_tensor(input, 0, sizes, strides, 0)
    memcpy(sizes, input.sizes, input.nd * sizeof(int64_t))
    memcpy(strides, input.strides, input.nd * sizeof(int64_t))
    sizes[a], sizes[b] = sizes[b], sizes[a]
    strides[a], strides[b] = strides[b], strides[a]
    return alias_tensor(input, input.nd, sizes, strides, 0)


def view_permute(Tensor input, dims):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef uint64_t seen = 0
    cdef int i, d
    if len(dims) != input.nd:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
                           f"the desired ordering of dimensions i.e. input.dim() = {input.nd} is not equal to "
                           f"len(dims) = {len(dims)}".replace("(sparse_coo)", ""))
    for i in range(input.nd):
        d = wrap_dim(dims[i], input.nd, "permute")
        if (seen >> d) & 1:
            raise RuntimeError(f"permute(): duplicate dims are not allowed, got {tuple(dims)}")
        seen |= <uint64_t>1 << d
        sizes[i] = input.sizes[d]
        strides[i] = input.strides[d]
    return alias_tensor(input, input.nd, sizes, strides, 0)


cdef int refuse_expansion(Tensor t, int nd, const int64_t* sizes) except -1:
    """Raise for the dimension in which ``t`` cannot be expanded to ``sizes``; nothing where ``t`` has more
    dimensions."""
    cdef int d, at
    for d in reversed(range(nd if t.nd <= nd else 0)):
        at = d - (nd - t.nd)
        if at >= 0 and t.sizes[at] != 1 and t.sizes[at] != sizes[d]:
            raise RuntimeError(f"The expanded size of the tensor ({sizes[d]}) must match the existing size "
                               f"({t.sizes[at]}) at non-singleton dimension {d}.  Target sizes: "
                               f"{[sizes[i] for i in range(nd)]}.  Tensor sizes: {list(t.shape)}")
    return 0


def view_expand(Tensor input, size, implicit=False):
    cdef int64_t sizes[MAXDIM]
    cdef int n = parse_sizes(size, sizes), d, at
    if n < input.nd:
        raise RuntimeError(f"expand({list(input.shape)}, size={list(size)}): the number of sizes provided ({n}) must "
                           f"be greater or equal to the number of dimensions in the tensor ({input.nd})")
    for d in range(n):
        at = d - (n - input.nd)
        if sizes[d] == -1:
            if at < 0:
                raise RuntimeError("expand: the expanded size of the tensor (-1) isn't allowed in a leading, "
                                   f"non-existing dimension {d}")
            sizes[d] = input.sizes[at]
        elif sizes[d] < 0:
            raise RuntimeError(f"expand: sizes must not be negative, got {list(size)}")
    count_of(n, sizes)
    cdef Tensor t = expand_view(input, n, sizes)
    if t is None:
        refuse_expansion(input, n, sizes)
    return t


cdef int64_t checked_count_but(int n, int64_t* sizes, int left_out) except -1:
    cdef int64_t kept, count
    if left_out < 0:
        return count_of(n, sizes)
    kept, sizes[left_out] = sizes[left_out], 1
    try:
        count = count_of(n, sizes)
    finally:
        sizes[left_out] = kept
    return count


cdef int infer_size(Tensor t, int n, int64_t* sizes, object asked) except -1:
    """Fill in a -1 and check the product."""
    cdef int64_t known = 1
    cdef int i, free_dim = -1
    for i in range(n):
        if sizes[i] == -1:
            if free_dim >= 0:
                raise RuntimeError("only one dimension can be inferred")
            free_dim = i
        elif sizes[i] < 0:
            raise RuntimeError(f"invalid shape dimension {sizes[i]} at index {i} of shape {list(asked)}")
    known = checked_count_but(n, sizes, free_dim)
    if free_dim >= 0:
        if known == 0:
            raise RuntimeError(f"cannot reshape tensor of {t.count} elements into shape {list(asked)} because the "
                               f"unspecified dimension size -1 can be any value and is ambiguous")
        if t.count % known == 0:
            sizes[free_dim] = t.count // known
            return 0
    if known != t.count or free_dim >= 0:
        shown = list(asked) if not PyLong_Check(asked) else [asked]
        from .mends import for_reshape
        raise RuntimeError(f"shape '{shown}' is invalid for input of size {t.count} (a tensor of shape "
                           f"{list(t.shape)}){for_reshape(t.shape, shown, t.count)}")
    return 0


cdef bint view_strides(Tensor t, int n, const int64_t* sizes, int64_t* strides) except -1:
    """Strides that give ``t`` the new sizes without moving an element; False where there are none."""
    cdef int64_t step, span, inner
    cdef int d, v = n - 1
    if t.count == 1 or (t.contiguous and (t.nd == 0 or t.strides[t.nd - 1] == 1)):
        contiguous_strides(n, sizes, strides)
        return True
    if t.count == 0:
        return False
    # walk runs of dimensions that are one block of memory; each must hold a whole number of new dimensions
    inner = t.strides[t.nd - 1] if t.nd else 1
    span = 1
    step = 1
    for d in range(t.nd - 1, -1, -1):
        span *= t.sizes[d]
        if d == 0 or (t.sizes[d - 1] != 1 and t.strides[d - 1] != span * inner):
            while v >= 0 and (step < span or sizes[v] == 1):
                strides[v] = step * inner
                step *= sizes[v]
                v -= 1
            if step != span:
                return False
            if d > 0:
                inner = t.strides[d - 1]
                span = 1
                step = 1
    return v == -1


def view_view(Tensor input, size=None, object dtype_=None):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int n
    if size is None:  # x.view(dtype=...)
        if dtype_ is None:
            raise TypeError("view(): expected sizes or a dtype, got neither")
        size = dtype_
    if type(size) is dtype:
        return view_dtype(input, size)
    n = parse_sizes(size, sizes)
    infer_size(input, n, sizes, size)
    if input.count == 0:
        return alias_contiguous(input, n, sizes)
    if not view_strides(input, n, sizes, strides):
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           f"spans across two contiguous subspaces): shape {list(input.shape)}, strides "
                           f"{list(input.stride())}, asked for {list(size)}. Use .reshape(...) instead.")
    return alias_tensor(input, n, sizes, strides, 0)


cdef Tensor alias_contiguous(Tensor t, int n, int64_t* sizes):
    cdef int64_t strides[MAXDIM]
    contiguous_strides(n, sizes, strides)
    return alias_tensor(t, n, sizes, strides, 0)


def view_dtype(Tensor input, dtype d):
    """The same bytes as another dtype; the last dimension scales with the item size. It has no derivative."""
    cdef int old = ITEMSIZE[input.code], new = d.itemsize, i
    if is_conjugate_view(input) and input.code != d.code:
        how = "conj" if KIND[input.code] == 3 else "neg"
        raise RuntimeError(f"view is not supported for tensors of which is_{how}() is true when "
                           f"converting to a different dtype; resolve_{how}() gives a copy that can be")
    cdef Tensor t = alias_tensor(input, input.nd, input.sizes, input.strides, 0)
    if old != new:
        if input.nd == 0:
            raise RuntimeError(f"self.dim() cannot be 0 to view {DTYPES[input.code]} as {d} (different element sizes)")
        if input.strides[input.nd - 1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {DTYPES[input.code]} as {d} (different element "
                               f"sizes), but got {input.strides[input.nd - 1]}")
        if new < old:
            for i in range(t.nd - 1):
                t.strides[i] = times(t.strides[i], old // new)
            t.sizes[t.nd - 1] = times(t.sizes[t.nd - 1], old // new)
        else:
            if t.sizes[t.nd - 1] % (new // old) or (input.raw - input.storage.data) % new:
                raise RuntimeError(f"self.size(-1) and self.storage_offset() must be divisible by {new // old} to view "
                                   f"{DTYPES[input.code]} as {d} (different element sizes), but got "
                                   f"{list(input.shape)}")
            for i in range(t.nd - 1):
                if t.strides[i] % (new // old):
                    raise RuntimeError(f"self.stride({i}) must be divisible by {new // old} to view "
                                       f"{DTYPES[input.code]} as "
                                       f"{d} (different element sizes), but got {input.strides[i]}")
                t.strides[i] //= new // old
            t.sizes[t.nd - 1] //= new // old
    t.code = d.code
    t.creation = UNTIED
    refresh(t)
    return t


def view_reshape(Tensor input, shape):
    """A view where strides allow, else a contiguous copy."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int n = parse_sizes(shape, sizes)
    infer_size(input, n, sizes, shape)
    if input.count == 0:
        return alias_contiguous(input, n, sizes)
    if view_strides(input, n, sizes, strides):
        return alias_tensor(input, n, sizes, strides, 0)
    cdef Tensor t = contiguous_copy(input)
    view_strides(t, n, sizes, strides)
    return alias_tensor(t, n, sizes, strides, 0)


def merged_sizes(Tensor input, start_dim, end_dim):
    """The sizes of ``input`` with dimensions ``start_dim`` to ``end_dim`` merged into one; None where they are one."""
    cdef int first = wrap_dim(start_dim, input.nd, "flatten"), last = wrap_dim(end_dim, input.nd, "flatten")
    cdef tuple sizes
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if input.nd == 0:
        return (1,)
    if first == last:
        return None
    if tracers or type(<object>input) is not Tensor:
        sizes = tuple(input.shape)  # of a tensor that stands for others: they may not be numbers
    else:
        sizes = whole_tuple(input.nd, input.sizes)
    merged = 1
    for size in sizes[first:last + 1]:
        merged = merged * size
    return (*sizes[:first], merged, *sizes[last + 1:])


def view_squeeze(Tensor input, dim=None):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef uint64_t drop = 0
    cdef int d, n = 0
    if dim is None:
        drop = <uint64_t>-1
    elif PyTuple_Check(dim) or PyList_Check(dim):
        for x in dim:
            d = wrap_dim(x, input.nd, "squeeze")
            if (drop >> d) & 1:
                raise RuntimeError(f"squeeze: dim {d} appears multiple times in the list of dims {tuple(dim)}")
            drop |= <uint64_t>1 << d
    else:
        drop = <uint64_t>1 << wrap_dim(dim, input.nd, "squeeze")
    for d in range(input.nd):
        if not ((drop >> d) & 1 and input.sizes[d] == 1):
            sizes[n] = input.sizes[d]
            strides[n] = input.strides[d]
            n += 1
    return alias_tensor(input, n, sizes, strides, 0)


def view_unsqueeze(Tensor input, dim):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int at = wrap_dim(dim, input.nd + 1, "unsqueeze"), d
    if input.nd == MAXDIM:
        raise RuntimeError(f"unsqueeze: a tensor has at most {MAXDIM} dimensions")
    for d in range(input.nd):
        sizes[d + (d >= at)] = input.sizes[d]
        strides[d + (d >= at)] = input.strides[d]
    sizes[at] = 1
    strides[at] = input.sizes[at] * input.strides[at] if at < input.nd else 1
    return alias_tensor(input, input.nd + 1, sizes, strides, 0)


def view_select(Tensor input, dim, index):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    if input.nd == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    cdef int at = wrap_dim(dim, input.nd, "select"), d
    cdef int64_t i = index
    if i < -input.sizes[at] or i >= input.sizes[at]:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(input.shape)} at dimension {at}")
    if i < 0:
        i += input.sizes[at]
    for d in range(input.nd - 1):
        sizes[d] = input.sizes[d + (d >= at)]
        strides[d] = input.strides[d + (d >= at)]
    return alias_tensor(input, input.nd - 1, sizes, strides, i * input.strides[at])


def view_slice(Tensor input, dim, start, end, step):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t offset = 0
    if input.nd == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    cdef int at = wrap_dim(dim, input.nd, "slice")
    memcpy(sizes, input.sizes, input.nd * sizeof(int64_t))
    memcpy(strides, input.strides, input.nd * sizeof(int64_t))
    slice_dim(slice(start, end, step), &sizes[at], &strides[at], &offset)
    return alias_tensor(input, input.nd, sizes, strides, offset)


cdef int slice_dim(object s, int64_t* size, int64_t* stride, int64_t* offset) except -1:
    """Apply a Python slice (negative steps too) to one dimension."""
    cdef Py_ssize_t start, stop, step, n
    PySlice_Unpack(s, &start, &stop, &step)
    n = PySlice_AdjustIndices(size[0], &start, &stop, step)
    if n or step > 0:
        offset[0] += start * stride[0]
    size[0] = n
    stride[0] *= step
    return 0


def view_as_strided(Tensor input, size, stride, storage_offset=None):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int n = parse_sizes(size, sizes), d
    cdef int64_t offset
    cdef int item = ITEMSIZE[input.code]
    if parse_sizes(stride, strides) != n:
        raise RuntimeError(f"as_strided: mismatch in length of strides and shape: {list(stride)} and {list(size)}")
    offset = (input.raw - input.storage.data) // item if storage_offset is None else storage_offset
    for d in range(n):
        if sizes[d] < 0:
            raise RuntimeError(f"as_strided: sizes must not be negative, got {list(size)}")
    check_window(input.storage, item, n, sizes, strides, offset)
    cdef Tensor t = alias_tensor(input, n, sizes, strides, 0)
    t.raw = input.storage.data + offset * item
    return t


def view_diagonal(Tensor input, offset, dim1, dim2):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int a = wrap_dim(dim1, input.nd, "diagonal"), b = wrap_dim(dim2, input.nd, "diagonal"), d, n = 0
    cdef int64_t k = offset, start = 0, length
    if a == b or input.nd < 2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = min(input.sizes[a], input.sizes[b] - k) if k >= 0 else min(input.sizes[a] + k, input.sizes[b])
    length = max(length, 0)
    if length:
        start = k * input.strides[b] if k >= 0 else -k * input.strides[a]
    for d in range(input.nd):
        if d != a and d != b:
            sizes[n] = input.sizes[d]
            strides[n] = input.strides[d]
            n += 1
    sizes[n] = length
    strides[n] = input.strides[a] + input.strides[b]
    return alias_tensor(input, n + 1, sizes, strides, start)


def view_unfold(Tensor input, dimension, size, step):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int at = wrap_dim(dimension, input.nd, "unfold")
    cdef int64_t width = size, hop = step
    cdef int64_t have = input.sizes[at] if input.nd else 1
    if width > have or width < 0:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {have} but size is {width}")
    if hop <= 0:
        raise RuntimeError(f"step is {hop} but must be > 0")
    memcpy(sizes, input.sizes, input.nd * sizeof(int64_t))
    memcpy(strides, input.strides, input.nd * sizeof(int64_t))
    strides[input.nd if input.nd else 0] = strides[at] if input.nd else 1
    if input.nd == 0:
        sizes[0] = width
        return alias_tensor(input, 1, sizes, strides, 0)
    sizes[input.nd] = width
    sizes[at] = (have - width) // hop + 1
    strides[at] *= hop
    return alias_tensor(input, input.nd + 1, sizes, strides, 0)


def view_unbind(Tensor input, dim):
    cdef int at = wrap_dim(dim, input.nd, "unbind"), d
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t i
    cdef Watch w
    cdef list made = []
    if input.nd == 0:
        raise IndexError("unbind: dimension specified as 0 but tensor has no dimensions")
    w = watch(input.sizes[at])
    for d in range(input.nd - 1):
        sizes[d] = input.sizes[d + (d >= at)]
        strides[d] = input.strides[d + (d >= at)]
    for i in range(input.sizes[at]):
        made.append(alias_tensor(input, input.nd - 1, sizes, strides, i * input.strides[at]))
        heed(&w, 1)
    return tuple(made)


def view_split(Tensor input, split_sizes, dim):
    cdef int at = wrap_dim(dim, input.nd, "split")
    cdef int64_t sizes[MAXDIM]
    cdef int64_t start = 0, n
    cdef Watch w
    if input.nd == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    w = watch(input.sizes[at])
    memcpy(sizes, input.sizes, input.nd * sizeof(int64_t))
    made = []
    for s in split_sizes:
        n = s
        if n < 0:
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, got "
                               f"{list(split_sizes)}")
        if n > input.sizes[at] - start:
            start = -1
            break
        sizes[at] = n
        made.append(alias_tensor(input, input.nd, sizes, input.strides, start * input.strides[at]))
        heed(&w, 1)
        start += n
    if start != input.sizes[at]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {input.sizes[at]} (the size of "
                           f"dimension {at}), got {list(split_sizes)}")
    return tuple(made)


def view_real(Tensor input):
    """The real part of each complex element, in place."""
    return complex_part(input, 0)


def view_imag(Tensor input):
    return complex_part(input, 1)


cdef Tensor complex_part(Tensor input, int part):
    cdef int d
    cdef Tensor t = alias_tensor(input, input.nd, input.sizes, input.strides, 0)
    if KIND[input.code] != 3:
        return input if part == 0 else t
    t.code = REAL_OF[input.code]
    for d in range(t.nd):
        t.strides[d] = times(t.strides[d], 2)
    t.raw = input.raw + part * ITEMSIZE[t.code]
    if is_conjugate_view(input) and part == 0:
        t.holds = holding(t)  # the real part is the conjugate's too
    refresh(t)
    return t


def view_conjugated(Tensor input):
    """A view of the same memory that shows the conjugates of the values of ``input``, or for a real dtype the
    negatives.
    """
    cdef Tensor t = alias_tensor(input, input.nd, input.sizes, input.strides, 0)
    if is_conjugate_view(input):
        t.holds = holding(t)
    elif t.holds == VALUES or t.device_type:
        t.holds = CONJUGATES
    return t


cdef inline Holding holding(Tensor t) noexcept:
    """The state ``holds`` of a plain tensor on that device: one that shows its memory unchanged."""
    return NOTHING if t.device_type else VALUES


def view_as_real_body(Tensor input):
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int d
    if KIND[input.code] != 3:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {DTYPES[input.code]}")
    if is_conjugate_view(input):
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate "
                           "tensor so you can view it as real, use self.resolve_conj(); the resulting tensor will not "
                           "alias the original.")
    for d in range(input.nd):
        sizes[d] = input.sizes[d]
        strides[d] = times(input.strides[d], 2)
    sizes[input.nd] = 2
    strides[input.nd] = 1
    cdef Tensor t = alias_tensor(input, input.nd + 1, sizes, strides, 0)
    t.code = REAL_OF[input.code]
    return t


def view_as_complex_body(Tensor input):
    cdef int64_t strides[MAXDIM]
    cdef int d
    if input.code != F16 and input.code != F32 and input.code != F64:
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {DTYPES[input.code]}")
    if is_conjugate_view(input):
        raise RuntimeError("view_as_complex doesn't work on unresolved negated tensors; resolve_neg() gives a copy "
                           "that it can view")
    if input.nd == 0 or input.sizes[input.nd - 1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got shape {list(input.shape)}")
    if input.strides[input.nd - 1] != 1:
        raise RuntimeError(f"Tensor must have a last dimension with stride 1, got strides {list(input.stride())}")
    for d in range(input.nd - 1):
        if input.strides[d] % 2 and input.sizes[d] > 1:  # a dimension of one element is not stepped along
            raise RuntimeError(f"Tensor must have a stride divisible by 2 for all but last dimension, got "
                               f"{list(input.stride())}")
        strides[d] = input.strides[d] // 2
    cdef Tensor t = alias_tensor(input, input.nd - 1, input.sizes, strides, 0)
    t.code = COMPLEX_OF[input.code]
    return t


# ---- indexing --------------------------------------------------------------------------------------------------------

cdef Op GETITEM = None


def bind_getitem(Op op):
    """Name the op whose derivative basic indexing has."""
    global GETITEM
    GETITEM = op


cdef bint only_ellipses(tuple items, Py_ssize_t first):
    """Whether nothing but ellipses follows, which are no more than the one before: ``x[..., ...]`` is ``x[...]``."""
    cdef Py_ssize_t k
    for k in range(first, PyTuple_GET_SIZE(items)):
        if <object>PyTuple_GET_ITEM(items, k) is not Ellipsis:
            return False
    return True


cdef Tensor basic_index(Tensor t, object index):
    """The view for ints, slices, None and Ellipsis; None if the index needs more than a view."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t offset = 0, i
    cdef int d = 0, n = 0, used = 0, k, m
    cdef object item
    cdef bint ellipsis_seen = False
    if PyLong_CheckExact(index) and t.nd:
        i = index
        if i < 0:
            i += t.sizes[0]
        if i < 0 or i >= t.sizes[0]:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {t.sizes[0]}")
        return alias_tensor(t, t.nd - 1, t.sizes + 1, t.strides + 1, i * t.strides[0])
    if not PyTuple_Check(index):
        index = (index,)
    m = PyTuple_GET_SIZE(index)
    for k in range(m):
        item = <object>PyTuple_GET_ITEM(index, k)
        if item is None or item is Ellipsis:
            continue
        if PyBool_Check(item) or not (PyLong_Check(item) or PySlice_Check(item)):
            return None
        used += 1
    if used > t.nd == 0:
        raise IndexError("invalid index of a 0-dim tensor. Use tensor.item() to convert it to a number")
    if used > t.nd:
        raise IndexError(f"too many indices for tensor of dimension {t.nd} (got {used} for shape {list(t.shape)})")
    for k in range(m):
        item = <object>PyTuple_GET_ITEM(index, k)
        if item is None:
            sizes[n] = 1
            strides[n] = 1 if d >= t.nd else t.sizes[d] * t.strides[d]
            n += 1
        elif item is Ellipsis:
            if ellipsis_seen:
                if only_ellipses(index, k):
                    break
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis_seen = True
            for _ in range(t.nd - used):
                sizes[n] = t.sizes[d]
                strides[n] = t.strides[d]
                n += 1
                d += 1
        elif PyLong_Check(item):
            i = item
            if i < 0:
                i += t.sizes[d]
            if i < 0 or i >= t.sizes[d]:
                raise IndexError(f"index {item} is out of bounds for dimension {d} with size {t.sizes[d]}")
            offset += i * t.strides[d]
            d += 1
        else:
            sizes[n] = t.sizes[d]
            strides[n] = t.strides[d]
            try:
                slice_dim(item, &sizes[n], &strides[n], &offset)
            except TypeError:
                return None  # bounds given as tensors
            n += 1
            d += 1
        if n > MAXDIM - 1:
            raise IndexError(f"a tensor has at most {MAXDIM} dimensions")
    while d < t.nd:
        sizes[n] = t.sizes[d]
        strides[n] = t.strides[d]
        n += 1
        d += 1
    return alias_tensor(t, n, sizes, strides, offset)


cdef object getitem(Tensor t, object index):
    cdef PyObject* bound[2]
    cdef Tensor result
    result = basic_index(t, index)
    if result is None:
        return callbacks.getitem(t, index)
    if MODES[0] != NULL or t.overrides:
        return GETITEM(t, index)
    bound[0] = <PyObject*>t
    bound[1] = <PyObject*>index
    return finish_view(GETITEM, bound, result, is_followed(t))


def basic_getitem(Tensor input, index):
    """The body of the indexing op: a view for a basic index."""
    result = basic_index(input, index)
    if result is None:
        raise IndexError(f"not a basic index: {index}")
    return result


cdef int setitem(Tensor t, object index, object value) except -1:
    cdef Tensor place
    cdef PyObject* bound[2]
    place = basic_index(t, index)
    if place is None:
        callbacks.setitem(t, index, value)
        return 0
    if MODES[0] != NULL or t.overrides:
        callbacks.assign(GETITEM(t, index), value)
        return 0
    bound[0] = <PyObject*>t
    bound[1] = <PyObject*>index
    place = finish_view(GETITEM, bound, place, is_followed(t))
    callbacks.assign(place, value)
    return 0
