# Where the operands of pointwise kernels lie: broadcasting, the order of dimensions, the layout of outputs, shared
# memory.


cdef list transpose_crossing(PyObject** inputs, int nin, Tensor out):
    """Copy operands that run through memory across the output's order, tile by tile, into that order.

    Element by element such an operand costs a cache line each (1024 x 1024 float32: 14 ms for ``x + y.t()``, 2 ms so).
    Replaces them in ``inputs`` and gives what must stay alive.
    """
    cdef list made = None
    cdef Tensor t, copy
    cdef int i, d, inner = -1, own
    for d in range(out.nd):
        if out.sizes[d] > 1 and (inner < 0 or out.strides[d] < out.strides[inner]):
            inner = d
    if inner < 0 or out.sizes[inner] < 8:
        return None
    for i in range(nin):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        t = <Tensor>inputs[i]
        if t is out or not same_sizes(t, out) or t.strides[inner] == 1 or t.strides[inner] == 0:
            continue
        own = -1
        for d in range(t.nd):
            if t.strides[d] == 1 and t.sizes[d] >= 8:
                own = d
        if own < 0:
            continue
        copy = empty_strided_like(t.code, out)
        copy_into(copy, t)
        if made is None:
            made = []
        made.append(copy)
        inputs[i] = <PyObject*>copy
    return made


cdef char layout_class(Launch* L, int k, int itemsize) noexcept:
    cdef int64_t s = L.strides[k][L.nd - 1]
    if s == itemsize or L.sizes[L.nd - 1] == 1:
        return b"c"
    return b"s" if s == 0 else b"v"


cdef void coalesce(Launch* L) noexcept:
    """Order dimensions by the first output's strides and merge those that are one run of memory in every operand."""
    cdef int i, j, k, n = 0, nd = L.nd
    cdef int64_t size
    for i in range(nd):  # drop dimensions of size 1
        if L.sizes[i] != 1:
            if n != i:
                L.sizes[n] = L.sizes[i]
                for k in range(L.nmem):
                    L.strides[k][n] = L.strides[k][i]
            n += 1
    if n == 0:
        L.nd = 1
        L.sizes[0] = 1
        for k in range(L.nmem):
            L.strides[k][0] = 0
        return
    for i in range(1, n):  # insertion sort: largest output stride first, ties as they were
        j = i
        while j > 0 and wider(L, j, j - 1):
            size = L.sizes[j]
            L.sizes[j] = L.sizes[j - 1]
            L.sizes[j - 1] = size
            for k in range(L.nmem):
                size = L.strides[k][j]
                L.strides[k][j] = L.strides[k][j - 1]
                L.strides[k][j - 1] = size
            j -= 1
    L.nd = merge_dims(L.sizes, L.strides[0], n, L.nmem, MAXDIM, 1)


cdef inline int compare_strides(int64_t x, int64_t y, int64_t m, int64_t n) noexcept:
    """The order of two dimensions of an operand, with strides ``x``, ``y`` and sizes ``m``, ``n``: positive where the
    first lies outside, 0 where the operand does not tell. The first operand that tells decides."""
    if x == 0 or y == 0:
        return 0
    if x != y:
        return 1 if x > y else -1
    return 1 if m > n else 0


cdef inline bint wider(Launch* L, int a, int b) noexcept:
    """Whether dimension ``a`` of a launch lies outside ``b``."""
    cdef int k, c
    for k in range(L.nmem):
        c = compare_strides(distance(L.strides[k][a]), distance(L.strides[k][b]), L.sizes[a], L.sizes[b])
        if c:
            return c > 0
    return False


cdef int broadcast_shape(Op op, PyObject** inputs, int nin, int64_t* shape) except -1:
    """The common shape of the tensor inputs; its number of dimensions."""
    cdef int nd = 0, i, d, at
    cdef Tensor t
    for i in range(nin):
        if isinstance(<object>inputs[i], Tensor) and (<Tensor>inputs[i]).nd > nd:
            nd = (<Tensor>inputs[i]).nd
    for d in range(nd):
        shape[d] = 1
    for i in range(nin):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        t = <Tensor>inputs[i]
        for d in range(t.nd):
            at = nd - t.nd + d
            if t.sizes[d] != 1 and t.sizes[d] != shape[at]:
                if shape[at] != 1:
                    shapes = [make_size((<Tensor>inputs[k]).nd, (<Tensor>inputs[k]).sizes) for k in range(nin)
                              if isinstance(<object>inputs[k], Tensor)]
                    from .blame import called
                    from .mends import for_broadcast
                    raise RuntimeError(
                        f"{called(op.name)}: The size of tensor a ({shape[at]}) must match the size of tensor b "
                        f"({t.sizes[d]}) at non-singleton dimension {at}; shapes "
                        f"{', '.join([str(list(s)) for s in shapes])} do not broadcast{for_broadcast(shapes)}")
                shape[at] = t.sizes[d]
    return nd


cdef int target_broadcast(Op op, Tensor target, int nd, int64_t* shape) except -1:
    """The inputs of an in-place op must broadcast to the target."""
    cdef int d, at
    cdef bint good = nd <= target.nd
    if good:
        for d in range(nd):
            at = target.nd - nd + d
            if shape[d] != 1 and shape[d] != target.sizes[at]:
                good = False
    if not good:
        raise RuntimeError(f"{op.name}: output with shape {list(target.shape)} doesn't match the broadcast shape "
                           f"{list(make_size(nd, shape))}")
    return 0


cdef bint is_row_major(Tensor t) noexcept:
    """Whether the strides, also of dimensions of one element, equal a new tensor's."""
    cdef int64_t step = 1
    cdef int d
    for d in range(t.nd - 1, -1, -1):
        if t.strides[d] != step:
            return False
        step *= max(t.sizes[d], <int64_t>1)
    return True


cdef bint has_channels_last(Tensor t) noexcept:
    """Whether the elements of an image or a volume lie in memory with channels last, without gaps."""
    cdef int64_t step = 1
    cdef int i, d
    for i in range(t.nd):
        d = 1 if i == 0 else 0 if i == t.nd - 1 else t.nd - i
        if t.sizes[d] != 1:
            if t.strides[d] != step:
                return False
            step *= t.sizes[d]
    return True


cdef Tensor new_output(PyObject** inputs, int nin, int code, int nd, const int64_t* shape, bint late=False):
    """An output whose dimensions lie in memory as PyTorch's do.

    Operands of the result's sizes decide together: all contiguous, all channels-last, or all with the same strides.
    Otherwise, and where an operand is a number, the strides suggest the order of dimensions.
    """
    cdef Tensor out = empty_tensor(code, nd, shape, late)
    cdef Tensor t, first = None
    cdef int order[MAXDIM]
    cdef int i
    cdef bint plain = True, same = True, contiguous = True, last = nd == 4, alike = True
    if nd < 2:
        return out
    for i in range(nin):
        if not isinstance(<object>inputs[i], Tensor):
            same = False
            continue
        t = <Tensor>inputs[i]
        first = t if first is None else first
        plain = plain and is_row_major(t)
        same = same and same_sizes(t, out)
        contiguous = contiguous and t.contiguous
        last = last and same and has_channels_last(t)
        alike = alike and same and memcmp(t.strides, first.strides, nd * sizeof(int64_t)) == 0
    if plain or same and contiguous:
        return out
    if same and not last and alike and is_dense(first):
        memcpy(out.strides, first.strides, nd * sizeof(int64_t))
    else:
        if same and last:
            order[0], order[1], order[2], order[3] = 1, 3, 2, 0
        else:
            suggested_order(inputs, nin, nd, shape, order)
        restride(out, order)
    out.contiguous = compute_contiguous(out)
    return out


cdef void suggested_order(PyObject** inputs, int nin, int nd, const int64_t* shape, int* order) noexcept:
    """The order of dimensions that the inputs' strides suggest, the innermost first."""
    cdef int i, d, at, other, c
    for d in range(nd):
        order[d] = nd - 1 - d
    for i in range(1, nd):  # insertion sort
        at = i
        for d in range(i - 1, -1, -1):
            c = compare_dims(inputs, nin, nd, shape, order[d], order[at])
            if c > 0:
                other = order[d]
                order[d] = order[at]
                order[at] = other
                at = d
            elif c < 0:
                break


cdef void restride(Tensor out, const int* order) noexcept:
    """Lay the dimensions of a new tensor out in ``order``, the innermost first."""
    cdef int64_t step = 1
    cdef int i
    for i in range(out.nd):
        out.strides[order[i]] = step
        step *= out.sizes[order[i]]


cdef int compare_dims(PyObject** inputs, int nin, int nd, const int64_t* shape, int a, int b) noexcept:
    """Positive where dimension ``a`` of an output should lie outside ``b``."""
    cdef Tensor t
    cdef int i, c
    for i in range(nin):
        if isinstance(<object>inputs[i], Tensor):
            t = <Tensor>inputs[i]
            c = compare_strides(broadcast_stride(t, nd, a, shape[a]), broadcast_stride(t, nd, b, shape[b]), shape[a],
                                shape[b])
            if c:
                return c
    return 0


cdef inline int64_t broadcast_stride(Tensor t, int nd, int d, int64_t size) noexcept:
    """The stride of ``t`` along dimension ``d``, of ``size`` elements, of an output; 0 where ``t`` repeats."""
    d -= nd - t.nd
    if d < 0 or t.sizes[d] == 1 and size != 1:
        return 0
    return distance(t.strides[d])


cpdef int refuse_repeated(Op op, Tensor target) except -1:
    """Raise if elements of the tensor to be written share memory, as in an expanded tensor.

    An op that writes one value everywhere (trait ``one_value``) may.
    """
    cdef int d
    for d in range(target.nd):
        if target.strides[d] == 0 and target.sizes[d] > 1 and target.count:
            if "one_value" in op.traits:
                if op.traits["one_value"] == "deprecated":
                    import warnings
                    warnings.warn(f"Use of {op.name} on expanded tensors is deprecated. Please clone() the tensor "
                                  "before performing this operation. This also applies to advanced indexing e.g. "
                                  "tensor[mask] = scalar")
                return 0
            raise RuntimeError(f"{op.name}: unsupported operation: more than one element of the written-to tensor "
                               f"refers to a single memory location. Please clone() the tensor before performing the "
                               f"operation.")
    return 0


cdef bint same_window(Tensor a, Tensor b) noexcept:
    """Whether two tensors with one first element show the same elements in the same places."""
    cdef int d
    if not same_sizes(a, b):
        return False
    for d in range(a.nd):
        if a.sizes[d] != 1 and a.strides[d] != b.strides[d]:
            return False
    return True


cdef int check_overlap(Op op, Tensor target, PyObject** inputs, int nin) except -1:
    """Writing must not hit an element twice, nor an input's element that is read later."""
    cdef int i
    cdef Tensor t
    if not target.contiguous and not op.inplace:  # the target of an op in place has been looked at
        refuse_repeated(op, target)
    for i in range(nin):
        if inputs[i] != <PyObject*>target and is_tensor(inputs[i]):
            t = <Tensor>inputs[i]
            if t.storage.data != target.storage.data or t.count == 0:
                continue
            if t.raw == target.raw and same_window(t, target):
                continue
            if overlaps(t, target):
                if i == nin - 1 and t.count == 1 and "one_value" in op.traits:  # it may overwrite the value with itself
                    continue
                raise RuntimeError(f"{op.name}: unsupported operation: some elements of the input tensor and the "
                                   "written-to tensor refer to a single memory location. Please clone() the tensor "
                                   "before performing the operation.")
    return 0


cdef int work_in_dtype_of(Op op, PyObject** bound, object out) except -1:
    """An op with the trait ``dtype_of_out`` computes in the dtype of ``out`` where its argument ``dtype`` is None."""
    cdef int i
    if "dtype_of_out" in op.traits and isinstance(out, Tensor):
        i = op.param_index["dtype"]
        if <object>bound[i] is None:
            bound[i] = <PyObject*>DTYPES[(<Tensor>out).code]
    return 0


cdef list copy_crossing(PyObject** inputs, int nin, Tensor target):
    """Copy the inputs that share other elements with ``target``, one of the two having holes: results would depend on
    the order in which a kernel reads and writes.

    Replaces them in ``inputs`` and gives what must stay alive.
    """
    cdef list made = None
    cdef Tensor t, copy
    cdef int i
    for i in range(nin):
        if inputs[i] == <PyObject*>target or not is_tensor(inputs[i]):
            continue
        t = <Tensor>inputs[i]
        if t.storage is None or t.storage.data == NULL or t.storage.data != target.storage.data:
            continue
        if t.count == 0 or t.raw == target.raw and same_window(t, target) or not crosses(t, target):
            continue
        copy = contiguous_copy(t)
        if made is None:
            made = []
        made.append(copy)
        inputs[i] = <PyObject*>copy
    return made


cdef enum:
    MOST_TRIES = 4096  # of the search for a shared element, after which there is taken to be one


cdef bint crosses(Tensor a, Tensor b) noexcept:
    """Whether two tensors of one storage share an element, holes taken into account."""
    cdef int64_t steps[2 * MAXDIM]   # falling; the distance between two elements is a sum of multiples of them
    cdef int64_t least[2 * MAXDIM]
    cdef int64_t most[2 * MAXDIM]
    cdef int64_t size = ITEMSIZE[a.code]
    cdef int n = 0, d, tries = MOST_TRIES
    if ITEMSIZE[b.code] != size or (b.raw - a.raw) % size:
        return True
    for d in range(a.nd):
        n = add_steps(steps, least, most, n, a.strides[d], 0, a.sizes[d] - 1)
    for d in range(b.nd):
        n = add_steps(steps, least, most, n, b.strides[d], 1 - b.sizes[d], 0)
    return reaches(steps, least, most, n, (b.raw - a.raw) // size, &tries)


cdef int add_steps(int64_t* steps, int64_t* least, int64_t* most, int n, int64_t step, int64_t low,
                   int64_t high) noexcept:
    """Add ``low`` to ``high`` times ``step`` to a sum of ``n`` terms; gives the new number of terms."""
    cdef int at = n, i
    if step < 0:
        step, low, high = -step, -high, -low
    if step == 0 or low == high:
        return n
    while at and steps[at - 1] < step:
        at -= 1
    if at and steps[at - 1] == step:
        least[at - 1] += low
        most[at - 1] += high
        return n
    for i in range(n, at, -1):
        steps[i], least[i], most[i] = steps[i - 1], least[i - 1], most[i - 1]
    steps[at], least[at], most[at] = step, low, high
    return n + 1


cdef bint reaches(int64_t* steps, int64_t* least, int64_t* most, int n, int64_t distance, int* tries) noexcept:
    """Whether ``distance`` is a sum of ``least[i]`` to ``most[i]`` times ``steps[i]``. True where the tries run out."""
    cdef int64_t low = 0, high = 0, k, last
    cdef int i
    if n == 0:
        return distance == 0
    for i in range(1, n):
        low += steps[i] * least[i]
        high += steps[i] * most[i]
    k = max(least[0], -rounded_down(high - distance, steps[0]))
    last = min(most[0], rounded_down(distance - low, steps[0]))
    while k <= last:
        tries[0] -= 1
        if tries[0] < 0 or reaches(steps + 1, least + 1, most + 1, n - 1, distance - k * steps[0], tries):
            return True
        k += 1
    return False


cdef inline int64_t rounded_down(int64_t a, int64_t b) noexcept:
    return a // b if a >= 0 else -((b - 1 - a) // b)


def memory_overlap(Tensor a, Tensor b):
    """The memory that two tensors share: 0 none, 1 the same elements in the same places, 2 other elements.

    Two different tensors of which one has holes are taken to share none, as in PyTorch.
    """
    cdef char* first = a.raw
    if a is b:
        return 1
    if first == NULL or a.count == 0 or a.storage.data != b.storage.data:
        return 0
    if first == b.raw and same_window(a, b):
        return 1
    return 2 if overlaps(a, b) else 0


def refuse_overlap(Op op, Tensor target, Tensor source):
    """Raise where ``source`` shares memory with ``target``, which is to be written, other than element for element."""
    cdef PyObject* inputs[1]
    inputs[0] = <PyObject*>source
    check_overlap(op, target, inputs, 1)


cdef bint overlaps(Tensor a, Tensor b) noexcept:
    """Whether the two dense tensors share memory; tensors with holes are taken not to."""
    cdef char* alo = a.raw
    cdef char* blo = b.raw
    if not is_dense(a) or not is_dense(b):
        return False
    return alo < blo + b.count * ITEMSIZE[b.code] and blo < alo + a.count * ITEMSIZE[a.code]
