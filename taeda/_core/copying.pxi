# Copies and casts between tensors of any strides, by the kernels of one op.

COPY = None
CONJUGATE = None  # the kernels that give conjugates and negatives
NEGATE = None


def bind_copy(Op op):
    """Name the identity op, which copies and casts."""
    global COPY
    COPY = op


def bind_conjugate_views(Op conjugate, Op negate):
    """Name the ops that copy conjugates and negatives."""
    global CONJUGATE, NEGATE
    CONJUGATE, NEGATE = conjugate, negate


cdef inline bint conjugates(Tensor target, Tensor source) noexcept:
    """Whether the memory of ``target`` must hold the conjugates or negatives of the memory of ``source``."""
    cdef bint complex_source = KIND[source.code] == 3, complex_target = KIND[target.code] == 3
    if complex_source == complex_target:
        return is_conjugate_view(target) != is_conjugate_view(source)
    # a real part has no sign to mind, but its own
    return is_conjugate_view(target) if complex_source else is_conjugate_view(source)


cdef uint64_t COPY_LINES = new_owner("copy.copy_lines")

cdef enum:
    SMALL_COPY = 262144   # bytes below which a thread copies alone
    COPY_PIECE = 1 << 18


cdef int copy_into(Tensor target, Tensor source) except -1:
    """Copy and convert ``source`` into ``target``, broadcasting. They may be on different devices."""
    cdef PyObject* inputs[1]
    cdef object held = source
    if (target.device_type > META_NUMBER or source.device_type > META_NUMBER) and (
            target.device_type != source.device_type or target.device_type != here()):
        return copy_across(target, source, FROM_HOST)
    cdef char* to = stored_at(target)
    if n_deferred and source.holds == VALUES and source.storage.deferred is not None and COMPUTE_INTO(target, source):
        return 0
    cdef char* origin = stored_to_read(source)
    if target.count == 0:
        return 0
    if target.code == F4_E2M1FN_X2 or source.code == F4_E2M1FN_X2:
        return copy_bytes(target, source)
    if target.code == source.code and target.contiguous and source.contiguous and same_sizes(target, source) \
            and not conjugates(target, source):
        if to != origin:
            copy_block(to, origin, target.count * ITEMSIZE[target.code])
        return 0
    if (target.contiguous and not (elsewhere and (here() or is_observing())) and is_one_zero(source)
            and not conjugates(target, source)):
        zero_bytes(to, target.count * ITEMSIZE[target.code])
        return 0
    if target.storage is source.storage and target.storage.data != NULL and crosses(target, source):
        held = contiguous_copy(source)
    if target.code == source.code and target.nd >= 2 and target.count >= 256 and callbacks.copy_transposed is not None \
            and not conjugates(target, <Tensor>held):
        if callbacks.copy_transposed(target, held):
            return 0
    inputs[0] = <PyObject*>held
    copy_pointwise(target, inputs)
    return 0


cdef int copy_across(Tensor target, Tensor source, Way upwards) except -1:
    """`copy_into` between devices, or where neither is this thread's place: a copy of bytes, which either side makes
    dense and converts in its own place. `upwards` is the way of one to a device."""
    cdef Tensor dense, arrived
    cdef int before, number = max(target.device_type, source.device_type)
    if target.device_type and source.device_type and target.device_type != source.device_type:
        return copy_into(target, to_host(source))
    before = swap_place(source.device_type)
    try:
        dense = source
        if target.device_type != source.device_type and not is_plain_block(source):
            dense = empty_tensor(source.code, source.nd, source.sizes)
            copy_into(dense, source)
        swap_place(target.device_type)
        if target.device_type == source.device_type:
            return copy_into(target, source)
        arrived = target
        if target.code != source.code or not is_plain_block(target) or not same_sizes(target, source):
            arrived = empty_tensor(source.code, source.nd, source.sizes)
        if dense.count:
            devices[number].copy(number, arrived.raw, dense.raw, dense.count * ITEMSIZE[dense.code],
                                 upwards if target.device_type else TO_HOST)
        if arrived is not target:
            copy_into(target, arrived)
    finally:
        swap_place(before)
    return end_call()


cdef bint is_plain_block(Tensor t) except -1:
    """Whether the memory of ``t`` holds its elements, as they are and in order."""
    ensure_computed(t.storage)
    return t.contiguous and not is_conjugate_view(t)


cdef Tensor to_host(Tensor t):
    """The elements of ``t``, which is on a device, on the CPU, outside the graph."""
    cdef Tensor made
    cdef int before = swap_place(CPU_NUMBER)
    try:
        made = empty_tensor(t.code, t.nd, t.sizes)
    finally:
        swap_place(before)
    copy_across(made, t, FROM_HOST)
    return made


cdef Tensor host_tensor(int dtype, int ndim, const int64_t* sizes):
    cdef int before = here()
    if before <= META_NUMBER:
        return empty_tensor(dtype, ndim, sizes)
    swap_place(CPU_NUMBER)
    try:
        return empty_tensor(dtype, ndim, sizes)
    finally:
        swap_place(before)


cdef Tensor uploaded(Tensor t):
    cdef Tensor made
    if here() <= META_NUMBER or t.device_type == here():
        return t
    made = empty_tensor(t.code, t.nd, t.sizes)
    copy_across(made, t, FROM_TABLE)
    return made


cdef int copy_bytes(Tensor target, Tensor source) except -1:
    """Copy elements of a dtype that is only stored."""
    cdef Tensor to, given
    if target.code != source.code:
        raise NotImplementedError(f'"copy_kernel" not implemented for \'Float4_e2m1fn_x2\': it is only stored; '
                                  f'expected a copy '
                                  f"between tensors of one dtype, or a view(uint8), got {DTYPES[source.code]} to "
                                  f"{DTYPES[target.code]}")
    to = alias_tensor(target, target.nd, target.sizes, target.strides, 0)
    given = alias_tensor(source, source.nd, source.sizes, source.strides, 0)
    to.code = given.code = U8
    return copy_into(to, given)


cdef bint is_one_zero(Tensor t) noexcept:
    """Whether every element is one in memory, which `copy_into` saw that ``t`` has, of bytes that are zero: as
    gradients that are written to in places begin."""
    cdef int d
    for d in range(t.nd):
        if t.strides[d] and t.sizes[d] > 1:
            return False
    for d in range(ITEMSIZE[t.code]):
        if t.raw[d]:
            return False
    return True


cdef int copy_pointwise(Tensor target, PyObject** inputs) except -1:
    """The identity kernel, from the source's dtype to the target's."""
    cdef Tensor source = <Tensor>inputs[0]
    cdef int compute = source.code
    cdef Op op = <Op>COPY
    if conjugates(target, source):
        op = <Op>(CONJUGATE if KIND[source.code] == 3 and KIND[target.code] == 3 else NEGATE)
    # convert in the source's type unless the target's holds more: float to int truncates, int to float rounds once
    if KIND[target.code] > KIND[source.code] or (KIND[target.code] == 2
                                                 and ITEMSIZE[target.code] > ITEMSIZE[source.code]):
        compute = target.code
    if KIND[source.code] == 3 and KIND[target.code] != 3 and target.code != BOOL:  # either part makes it true
        source = callbacks.real_part(source)
        compute = (target.code if KIND[target.code] == 2 and ITEMSIZE[target.code] > ITEMSIZE[source.code]
                   else source.code)
    if not same_sizes(source, target):
        expanded = expand_view(source, target.nd, target.sizes)
        if expanded is None:
            refuse_expansion(source, target.nd, target.sizes)
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                               f"{list(source.shape)}")
        source = expanded
    cast_into(op, source, compute, target)
    return 0


cdef int cast_into(Op op, Tensor source, int compute, Tensor target) except -1:
    """Run the identity kernel on operands of one shape."""
    cdef Launch L
    cdef int codes[1]
    cdef int outcodes[1]
    cdef char classes[3]
    cdef int d, k
    cdef int64_t grain = 16384
    L.nmem = 2
    L.nd = target.nd
    L.ptr[0] = stored_at(target)
    L.ptr[1] = stored_to_read(source)
    codes[0] = source.code
    outcodes[0] = target.code
    for d in range(target.nd):
        L.sizes[d] = target.sizes[d]
        L.strides[0][d] = target.strides[d] * ITEMSIZE[target.code]
        L.strides[1][d] = source.strides[d] * ITEMSIZE[source.code]
    coalesce(&L)
    classes[0] = layout_class(&L, 0, ITEMSIZE[target.code])
    classes[1] = layout_class(&L, 1, ITEMSIZE[source.code])
    classes[2] = 0
    if target.count >= STREAM_LEAST and stores_stream(&L, 1, classes, target.count):
        classes[0] = b"n"
        grain = STREAM_GRAIN
    L.kernel = lookup(op, 0, compute, 1, 2, 1, codes, outcodes, classes)
    L.arg[0] = L.sizes[L.nd - 1]
    for k in range(2):
        L.arg[2 + 2 * k] = L.strides[k][L.nd - 1]
        L.arg[3 + 2 * k] = L.strides[k][L.nd - 2] if L.nd > 1 else 0
    L.narg = 6
    run_elements(&L, target.count, grain)
    return 0


cdef void copy_piece(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    memmove(ptr[0] + begin, ptr[1] + begin, end - begin)


cdef int copy_block(char* target, char* source, int64_t nbytes) except -1:
    """Copy memory; the two may overlap."""
    if elsewhere and here() > META_NUMBER:
        devices[here()].copy(here(), target, source, nbytes, WITHIN)
        return 0
    cdef char** p = [target, source]
    cdef int64_t lines = nbytes // 64
    cdef bint small = nbytes < SMALL_COPY or (target < source + nbytes and source < target + nbytes)
    if small or 2 * nbytes < STREAM_BYTES or <size_t>target % 64:
        run_kernel(copy_piece, p, 2, NULL, 0, nbytes, COPY_PIECE, small)
        return 0
    run_kernel(of_family(COPY_LINES), p, 2, NULL, 0, lines, 4096, False)
    p[0] += 64 * lines
    p[1] += 64 * lines
    run_kernel(copy_piece, p, 2, NULL, 0, nbytes - 64 * lines, COPY_PIECE, True)
    return 0


# ---- bodies of ops ---------------------------------------------------------------------------------------------------

def copy_from(Tensor input, src, non_blocking=False):
    """The body of ``taeda.Tensor.copy_``."""
    cdef Tensor source = src if isinstance(src, Tensor) else callbacks.operand_tensor(src, input)
    if source is input:
        return
    if input.count == 0:
        view_expand(source, input.shape)  # the shapes must fit all the same
    elif source.count > 1 and source.storage is input.storage:
        refuse_overlap(callbacks.find_op("copy_"), input, source)
    copy_into(input, source)


def cloned(Tensor input, *, memory_format=preserve_format):
    """The body of ``taeda.clone``."""
    cdef Tensor t
    if memory_format is preserve_format:
        t = empty_like(input)
    else:
        t = callbacks.empty_in_format(input.shape, input.dtype, memory_format)
    copy_into(t, input)
    return t


def converted(Tensor input, dtype dtype):
    """The body of the op that ``taeda.Tensor.to`` runs for another dtype."""
    cdef Tensor t = empty_like(input, dtype)
    copy_into(t, input)
    return t


# ---- copies outside the graph ----------------------------------------------------------------------------------------

cdef Tensor contiguous_copy(Tensor source):
    """A new contiguous tensor with the same elements, outside the graph."""
    cdef Tensor t = empty_tensor(source.code, source.nd, source.sizes)
    copy_into(t, source)
    return t


cdef Tensor contiguous_tensor(Tensor source):
    """``source`` itself if contiguous, else a contiguous copy, outside the graph."""
    return source if source.contiguous and not is_conjugate_view(source) else contiguous_copy(source)


cdef Tensor expand_view(Tensor t, int nd, const int64_t* sizes):
    """``t`` broadcast to ``sizes``, or None."""
    cdef int64_t strides[MAXDIM]
    cdef int d, at
    if nd < t.nd:
        return None
    for d in range(nd - 1, -1, -1):
        at = d - (nd - t.nd)
        if at < 0:  # a new dimension of one element steps over what follows, as in PyTorch
            strides[d] = sizes[d + 1] * strides[d + 1] if sizes[d] == 1 and t.nd else 0
        elif t.sizes[at] == 1 and sizes[d] != 1:
            strides[d] = 0
        elif t.sizes[at] == sizes[d]:
            strides[d] = t.strides[at]
        else:
            return None
    return alias_tensor(t, nd, sizes, strides, 0)


cdef enum:
    ZERO_PIECE = 1 << 18  # bytes


cdef void zero_piece(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    memset(ptr[0] + begin, 0, end - begin)


def zero(Tensor t):
    """Set every element to zero; neither recorded nor counted as a write."""
    if t.holds == NOTHING and hasattr(t, "_zero"):
        t._zero()
    else:
        zero_tensor(t)


cdef int zero_tensor(Tensor t) except -1:
    cdef int before
    if t.device_type > META_NUMBER and here() != t.device_type:
        before = swap_place(t.device_type)
        try:
            zero_tensor(t)
        finally:
            swap_place(before)
        return end_call()
    if is_dense(t):
        zero_bytes(stored_at(t), t.count * ITEMSIZE[t.code])
    else:
        copy_into(t, zero_scalar(t.code))
    return 0


cdef int zero_bytes(char* to, int64_t nbytes) except -1:
    if elsewhere and here() > META_NUMBER:
        devices[here()].fill(here(), to, 0, nbytes)
        return 0
    run_kernel(zero_piece, &to, 1, NULL, 0, nbytes, ZERO_PIECE, nbytes < 4 * ZERO_PIECE)
    return 0


cdef Tensor zero_scalar(int code):
    cdef int64_t none = 0
    cdef Tensor t = empty_tensor(code, 0, &none)
    zero_bytes(address_of(t), ITEMSIZE[code])
    return t
