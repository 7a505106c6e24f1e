# Launching pointwise kernels: dtype promotion, layout classes, the kernel table.

cdef enum:
    PROMOTE_TYPE, PROMOTE_FLOAT, PROMOTE_NONE
    OUT_SAME = 0
    OUT_BOOL = 1
    OUT_REAL = 2

cdef enum:
    PARALLEL_ELEMENTS = 32768     # below this, waking a thread costs more than it saves
    TRANSPOSE_ELEMENTS = 16384    # from here on it pays to lay an operand out as the output is


cdef int64_t STREAM_BYTES = stream_bytes()


cdef bint stores_stream(Launch* L, int nout, const char* classes, int64_t count) except -1:
    """Whether the outputs had better be stored past the cache: they would not stay there, and need not be read for it.

    It does not apply if an output is also an input, whose lines are in the cache, or if little is read: filling runs at
    40 GB/s through the cache and at 28 past it. Each row of an output must begin at a cache line.
    """
    cdef int64_t moved = 0, written = 0, item
    cdef int i, k, d
    if elsewhere and here() > META_NUMBER:
        return False
    for k in range(L.nmem):
        if classes[k] == b"c":
            moved += count * L.strides[k][L.nd - 1]
            if k < nout:
                written = moved
    if moved < STREAM_BYTES or 3 * written > 2 * moved:
        return False
    for i in range(nout):
        item = L.strides[i][L.nd - 1]
        if classes[i] != b"c" or <size_t>L.ptr[i] % 64 != 0:
            return False
        if L.nd > 1 and L.sizes[L.nd - 1] * item % 64 != 0:
            return False
        for d in range(L.nd - 1):
            if L.strides[i][d] % 64 != 0:
                return False
        for k in range(nout, L.nmem):
            if L.ptr[k] == L.ptr[i]:
                return False
    return True


cdef enum:
    HEAD = 4                      # numbers of a piece before its sizes: kernel, memory operands, dimensions, arguments
    MOST_NUMBERS = HEAD + (1 + MOST_FUSED) * MAXDIM + 2 + 2 * MOST_FUSED + 2 * MAXARGS


cdef int run_slabs(Launch* L, int64_t count) except -1:
    """A launch for each index of all but the last two dimensions: for a device, which runs kernels alone."""
    cdef char* p[MOST_FUSED]
    cdef int64_t slab, rest, index, k, d
    L.arg[0], L.arg[1] = L.sizes[L.nd - 1], L.sizes[L.nd - 2] if L.nd > 1 else 1
    for slab in range(count // (L.arg[0] * L.arg[1])):
        rest = slab
        memcpy(p, L.ptr, L.nmem * sizeof(char*))
        for d in range(L.nd - 3, -1, -1):
            index = rest % L.sizes[d]
            rest = rest // L.sizes[d]
            for k in range(L.nmem):
                p[k] += index * L.strides[k][d]
        run_kernel(L.kernel, p, L.nmem, L.arg, L.narg, L.arg[1], 1, True)
    return 0


cdef int run_elements(Launch* L, int64_t count, int64_t grain) except -1:
    """Run a pointwise kernel over ``count`` elements."""
    cdef int64_t arg[MOST_NUMBERS]
    cdef bint away = elsewhere and here() > META_NUMBER
    if away and not devices[here()].elements:
        return run_slabs(L, count)
    cdef int64_t* to = arg + HEAD
    cdef int k
    if count < PARALLEL_ELEMENTS and L.nd <= 2 and not away:
        L.arg[1] = L.sizes[0] if L.nd == 2 else 1
        return run_kernel(L.kernel, L.ptr, L.nmem, L.arg, L.narg, L.arg[1], 1, True)
    L.arg[1] = 0   # each piece sets its own
    arg[0], arg[1], arg[2], arg[3] = <int64_t>L.kernel, L.nmem, L.nd, L.narg
    memcpy(to, L.sizes, L.nd * sizeof(int64_t))
    for k in range(L.nmem):
        to += L.nd
        memcpy(to, L.strides[k], L.nd * sizeof(int64_t))
    to += L.nd
    memcpy(to, L.arg, L.narg * sizeof(int64_t))
    return run_kernel(host_function(RUN_PIECE), L.ptr, L.nmem, arg, <int>(to - arg) + L.narg, count, grain,
                      count < PARALLEL_ELEMENTS)


cdef double largest(int code) noexcept:
    """The largest finite number of a floating-point dtype, of each part where it is complex."""
    if DOMAIN[code] == FLOAT8:
        return (448.0 if code == F8_E4M3FN else 240.0 if code == F8_E4M3FNUZ else 2.0 ** 127 if code == F8_E8M0FNU
                else 57344.0)
    return (65504.0 if code == F16 or code == C32 else 3.3895313892515355e38 if code == BF16
            else 1.7976931348623157e308 if code == F64 or code == C128 else 3.4028234663852886e38)


cdef bint has_infinity(int code) noexcept:
    """Whether a floating-point dtype has infinite numbers."""
    return DOMAIN[code] != FLOAT8 or code == F8_E5M2


cdef bint beyond(int code, int64_t x) noexcept:
    """Whether an integer dtype cannot hold ``x``. Unsigned ones take negative numbers, modulo their range."""
    cdef int bits = 8 * ITEMSIZE[code]
    if bits == 64 or code == BOOL:
        return False
    if code == U8 or code == U16 or code == U32:
        return x >= <int64_t>1 << bits or x <= -(<int64_t>1 << bits)
    return x >= <int64_t>1 << (bits - 1) or x < -(<int64_t>1 << (bits - 1))


cdef bint beyond_real(int code, double x) noexcept:
    """Whether a dtype cannot hold the float ``x``. Unsigned ones take no negative floats; an integer has no NaN."""
    cdef bint is_unsigned
    cdef int bits
    if code == BOOL:
        return False
    if KIND[code] >= 2:
        return fabs(x) > largest(code) and (x - x == 0 or x == x and not has_infinity(code))
    is_unsigned = code == U8 or code == U16 or code == U32 or code == U64
    bits = 8 * ITEMSIZE[code] - (0 if is_unsigned else 1)
    return not ((0.0 if is_unsigned else -ldexp(1.0, bits)) <= x <= ldexp(1.0, bits) - (1 if bits < 53 else 0))


cdef int raise_overflow(object x, int code) except -1:
    # as PyTorch reads its arguments
    kind = OverflowError if isinstance(x, int) and not -2**63 <= x < 2**64 else RuntimeError
    raise kind(f"value cannot be converted to type {DTYPES[code]} without overflow: {x}")


cdef int check_number(object x, int code) except -1:
    """Refuse a Python number that a dtype cannot hold, by the rules of PyTorch's conversions."""
    cdef bint lost
    if PyFloat_Check(x):
        lost = beyond_real(code, PyFloat_AS_DOUBLE(x))
    elif PyComplex_Check(x):
        lost = (x.imag != 0 and KIND[code] != 3 and code != BOOL or beyond_real(code, x.real)
                or KIND[code] == 3 and beyond_real(code, x.imag))
    elif PyBool_Check(x):
        return 0
    elif KIND[code] >= 2:
        lost = not -2**63 <= x < 2**64 or beyond_real(code, x)
    elif -2**63 <= x < 2**63:
        lost = beyond(code, x)
    else:
        lost = not 0 <= x < 2**64 or code != U64 and code != BOOL
    if lost:
        raise_overflow(x, code)
    return 0


def fitting(x, dtype d):
    """A Python number as one of the kind of ``d``: a float becomes an int for whole numbers, say.

    Raises:
        RuntimeError: the dtype cannot hold it (OverflowError for an int of more than 64 bits).
    """
    cdef int kind = KIND[d.code]
    x = x.item() if isinstance(x, Tensor) else x
    check_number(x, d.code)
    if kind == 3 or kind == 2 and not PyComplex_Check(x):
        return x + 0 if PyBool_Check(x) else x
    x = x.real if PyComplex_Check(x) else x
    return bool(x) if kind == 0 else int(x) if kind == 1 else x


def is_infinite_in(Tensor t, x):
    """Whether the number ``x``, to be written into ``t``, is too large for float16, bfloat16 or float8.

    Raises:
        ValueError: an int of more than 64 bits.
    """
    if PyLong_Check(x) and not -2**63 <= x < 2**63:
        raise ValueError(f"Overflow when unpacking long long: {x} does not fit int64")
    return WORK[t.code] != t.code and KIND[t.code] == 2 and not PyComplex_Check(x) and beyond_real(t.code, x)


cdef int check_fits(Op op, int i, object x, int compute) except -1:
    """Refuse a number for parameter ``i`` that the dtype cannot hold, where the op says so."""
    if (op.fits >> i) & 1:
        check_number(x, compute)
    elif (op.fits >> i) & (1 << FITS_WORK):
        check_number(x, WORK[compute])
    return 0


cdef int check_operands(Op op, PyObject** inputs, int compute) except -1:
    """:func:`check_fits` for the operands that are numbers. Numbers beyond the range of float16, bfloat16 and float8
    become infinite in an op with the trait ``rounds``; on meta there are no elements to hold them.
    """
    cdef int i
    if isinstance(<object>inputs[0], Tensor) and (<Tensor>inputs[0]).device_type == META_NUMBER:
        return 0
    if KIND[compute] == 2 and WORK[compute] != compute and (
            op.rounds == ROUND_ALL or op.rounds == ROUND_ONE and (<Tensor>inputs[0]).count == 1):
        compute = F64
    for i in range(op.noperands):
        if not isinstance(<object>inputs[i], Tensor):
            check_fits(op, i, <object>inputs[i], compute)
    return 0


cdef int number_slots(object x, int compute, int64_t* slots) except -1:
    """A Python number as the two argument slots of a parameter.

    Numbers beyond the computing dtype's range wrap, or become infinite. An int that neither int64 nor uint64 holds is
    refused.
    """
    cdef double real, imag
    cdef int64_t whole = 0
    cdef int overflow = 0
    slots[1] = 0
    if PyLong_Check(x):
        whole = PyLong_AsLongLongAndOverflow(x, &overflow)
        if overflow and not 0 <= x < 2**64:
            raise_overflow(x, compute)
    if compute == BOOL:
        slots[0] = 1 if x else 0
        return 0
    if PyComplex_Check(x):
        real, imag = x.real, x.imag
        if imag != 0 and KIND[compute] != 3:
            raise_overflow(x, compute)
        memcpy(&slots[1], &imag, 8)
    elif PyLong_Check(x) and KIND[compute] < 2:
        slots[0] = <int64_t><uint64_t>x if overflow else whole
        return 0
    else:
        real = x
    if KIND[compute] < 2:
        slots[0] = <int64_t>real
    else:
        memcpy(&slots[0], &real, 8)
    return 0


cdef int check_and_find_variant(Op op, PyObject** bound, PyObject** params, int* nparams, int compute) except -1:
    """The number of this combination of attributes, of which the op looks at those that are not the default."""
    cdef int i, variant
    cdef uint32_t given = 0
    cdef bint numbers = True
    for i in range(op.noperands, op.nparams):
        if bound[i] != <PyObject*>PyTuple_GET_ITEM(op.defaults, i):
            given |= <uint32_t>1 << (i - op.noperands)
            numbers &= PyFloat_CheckExact(<object>bound[i]) or PyLong_CheckExact(<object>bound[i])
    if op.body_check is not None and (given or op.nparams == op.noperands):
        if not op.one_dtype or not of_one_dtype(op, params):
            op.body_check(*[<object>bound[i] for i in range(op.nparams)])
    if not given:
        return 0
    if op.exact:
        check_exact(op, bound, compute)
    if not numbers or given >= KNOWN_VARIANTS:
        return variant_of(op, bound, params, nparams, compute)
    variant = op.known_variants[given]
    if not variant:
        variant = op.known_variants[given] = variant_of(op, bound, params, nparams, compute)
        return variant
    for i in range(op.noperands, op.nparams):
        if given >> (i - op.noperands) & 1:
            check_fits(op, i, <object>bound[i], compute)
            params[nparams[0]] = bound[i]
            nparams[0] += 1
    return variant


cdef bint of_one_dtype(Op op, PyObject** inputs) noexcept:
    """Whether the tensors among the operands are all of one dtype."""
    cdef int i, code = -1
    for i in range(op.noperands):
        if is_tensor(inputs[i]):
            if code >= 0 and (<Tensor>inputs[i]).code != code:
                return False
            code = (<Tensor>inputs[i]).code
    return True


cdef int check_exact(Op op, PyObject** bound, int compute) except -1:
    """Refuse an attribute of a higher kind than the computing dtype: a fraction would be cut off."""
    cdef int i, kind
    cdef object x
    for i in range(op.noperands, op.nparams):
        x = <object>bound[i]
        kind = (KIND[(<Tensor>x).code] if isinstance(x, Tensor) else 3 if PyComplex_Check(x) else 2 if PyFloat_Check(x)
                else 0 if PyBool_Check(x) else 1)
        if kind > max(KIND[compute], 1):
            raise RuntimeError(
                f"For {'integral' if KIND[compute] < 2 else 'non-complex'} input tensors, argument {op.params[i]} must "
                f"not be a {'complex' if kind == 3 else 'floating point'} number (got {op.params[i]}={x})")
        if not kind and KIND[compute]:
            raise RuntimeError(f"Boolean {op.params[i]} only supported for Boolean results.")
    return 0


cdef int variant_of(Op op, PyObject** bound, PyObject** params, int* nparams, int compute) except -1:
    """The number of this combination of static attributes; numeric attributes are appended to ``params``.

    An attribute that the dtype cannot hold is refused where the op says so (traits ``fits`` and ``fits_work``).
    """
    cdef int i
    cdef object x
    key = []
    for i in range(op.noperands, op.nparams):
        x = <object>bound[i]
        if isinstance(x, Tensor) and (<Tensor>x).count == 1 and not wants_grad(<Tensor>x):
            x = (<Tensor>x).item() if (<Tensor>x).device_type else read_scalar(address_of(<Tensor>x), (<Tensor>x).code)
            _numbers_alive.append(x)
            bound[i] = <PyObject*>x  # what the derivative saves
        elif not (PyFloat_Check(x) or PyLong_Check(x) or x is None or isinstance(x, Tensor)) and hasattr(x,
                                                                                                         "__array__"):
            x = callbacks.operand(x)
            _numbers_alive.append(x)
        if bound[i] == <PyObject*>PyTuple_GET_ITEM(op.defaults, i):
            key.append(x)
        elif (PyFloat_Check(x) or PyLong_Check(x) or PyComplex_Check(x)) and not PyBool_Check(x):
            check_fits(op, i, x, compute)
            if len(_numbers_alive) > 64:
                del _numbers_alive[:32]
            params[nparams[0]] = <PyObject*>x
            nparams[0] += 1
            key.append(PARAM_MARK)
        elif x is None or PyBool_Check(x) or PyUnicode_Check(x):
            key.append(x)
        else:
            raise TypeError(f"{op.name}(): argument '{op.params[i]}' (position {i + 1}) must be a number, "
                            f"not {type(x).__name__}")
    found = op.variants.get(tuple(key))
    if found is None:
        found = len(op.variants) + 1
        if found > 255:
            raise RuntimeError(f"{op.name}: too many combinations of static arguments")
        op.variants[tuple(key)] = found
    return found


cdef list _numbers_alive = []


class _ParamMark:
    def __repr__(self):
        return "param"


PARAM_MARK = _ParamMark()


cdef inline int class_bits(char layout) noexcept:
    return 0 if layout == b"n" else 1 if layout == b"c" else 2 if layout == b"s" else 3


cdef kernel_t lookup(Op op, int variant, int compute, int nout, int nmem, int nin, const int* codes,
                     const int* outcodes,
                     const char* classes) except NULL:
    """The kernel of these dtypes and layout classes, compiled if need be. Codes of inputs may be PARAM.

    The key has 7 bits for each operand. The variant and the computing dtype are with the owner. (Numbers among the
    attributes follow from the variant.)
    """
    cdef uint64_t key = 0, owner = op.owner | <uint64_t>(variant << 5 | compute) << 40
    cdef int i, k = nout
    cdef kernel_t fn
    cdef size_t address
    for i in range(nout):
        key = key << 7 | outcodes[i] << 2 | class_bits(classes[i])
    for i in range(op.noperands):
        if codes[i] == PARAM:
            key = key << 7 | PARAM << 2
        else:
            key = key << 7 | codes[i] << 2 | class_bits(classes[k])
            k += 1
    fn = known(owner, key)
    if fn == NULL:
        statics = ()
        for x, v in op.variants.items():
            if v == variant:
                statics = x
        if variant == 0:
            statics = op.defaults[op.noperands:]
        key_of_text = (
            op, statics,
            tuple([(<dtype>DTYPES[outcodes[i]]).name for i in range(nout)]),
            tuple(["param" if codes[i] == PARAM else (<dtype>DTYPES[codes[i]]).name for i in range(nin)]),
            (<dtype>DTYPES[compute if "native" in op.traits else WORK[compute]]).name,
            bytes(classes[:nmem]).decode())
        if kernel_place():
            address = build_there(kernel_place(), "pointwise", key_of_text)
        else:
            address = callbacks.build_pointwise(*key_of_text)
        fn = <kernel_t>address
        keep(owner, key, fn)
    return fn


cdef object as_operand(Op op, PyObject** bound, int i):
    """An argument that is neither a tensor nor a Python number: a NumPy scalar or array, or an error."""
    cdef object x = callbacks.operand(<object>bound[i])
    if x is None:
        raise_not_tensor(op, bound, i)
    return x


cdef int result_code(Op op, PyObject** inputs) except -1:
    """The dtype in which to compute."""
    cdef int dims = -1, zeros = -1, numbers = -1, i, code
    cdef PyObject* x
    for i in range(op.noperands):
        if not (op.promote_mask >> i) & 1:
            continue
        x = inputs[i]
        if is_tensor(x):
            code = (<Tensor>x).code
            if (<Tensor>x).nd:
                dims = code if dims < 0 else PROMOTE[dims][code]
            else:
                zeros = code if zeros < 0 else PROMOTE[zeros][code]
        else:
            code = scalar_code(<object>x)
            numbers = code if numbers < 0 else PROMOTE[numbers][code]
    code = combine_categories(dims, combine_categories(zeros, numbers))
    if op.promote == PROMOTE_FLOAT and KIND[code] < 2:
        return DEFAULT_FLOAT
    return code


cdef int out_code(Op op, int compute) noexcept:
    if op.out_rule == OUT_BOOL:
        return BOOL
    return REAL_OF[compute] if op.out_rule == OUT_REAL else compute


cdef object pointwise_call(Op op, PyObject** bound, object out, bint at_once):
    """Compute a pointwise op into a new tensor, into ``out``, or of an in-place form into the first argument.

    None if that is not deferred, unless ``at_once``.
    """
    cdef PyObject* inputs[MAXARGS]
    cdef object keep = None, zero_dim = None
    cdef int i, n = op.noperands, nt = 0, compute, variant
    cdef PyObject* x
    cdef int nparams = n
    if out is not None:
        return pointwise_out(op, bound, out)
    for i in range(n):
        x = bound[i]
        inputs[i] = x
        if is_tensor(x):
            nt += 1
        elif not (PyFloat_Check(<object>x) or PyLong_Check(<object>x) or PyComplex_Check(<object>x)):
            converted = as_operand(op, bound, i)
            if keep is None:
                keep = []
            keep.append(converted)
            inputs[i] = <PyObject*>converted
            if isinstance(converted, Tensor):
                nt += 1
        elif (op.tensor_mask >> i) & 1:
            raise_not_tensor(op, bound, i)
    if nt == 0 and "numbers" in op.traits and not op.inplace:
        zero_dim = callbacks.operand_tensor(<object>inputs[0], None)
        inputs[0] = <PyObject*>zero_dim
    elif nt == 0 or nt > MAXOPERANDS - op.nouts:
        raise_not_tensor(op, bound, 0)
    compute = result_code(op, inputs)
    if not (op.kinds >> DOMAIN[compute]) & 1:
        raise_bad_dtype(op, compute)
    if op.strict_bool:
        refuse_bools(op, inputs)
    variant = check_and_find_variant(op, bound, inputs, &nparams, compute)
    if nt < n and op.fits:
        check_operands(op, inputs, compute)
    if recorders:
        result = RECORDER(op, inputs, nparams, compute, variant, <Tensor>bound[0] if op.inplace else None)
        if result is not None:
            if op.inplace:
                (<Tensor>bound[0]).storage.version += 1
            return result
        if not at_once:
            return None
    return launch_pointwise(op, inputs, nparams, compute, variant, <Tensor>bound[0] if op.inplace else None)


cdef int refuse_bools(Op op, PyObject** inputs) except -1:
    """A bool operand of an op that has no meaning for bools is refused, although another operand made it a number."""
    cdef int i
    for i in range(op.noperands):
        if PyBool_Check(<object>inputs[i]) or (isinstance(<object>inputs[i], Tensor)
                                               and (<Tensor>inputs[i]).code == BOOL):
            raise_bad_dtype(op, BOOL)
    return 0


cdef int raise_bad_dtype(Op op, int compute) except -1:
    if op.strict_bool and compute == BOOL:
        raise RuntimeError(f"{op.traits['strict_bool']} a bool tensor is not supported. If you are trying to invert "
                           "a mask, use the `~` or `logical_not()` operator instead.")
    common_dtype(compute)
    kinds = ("bool", "integer", "floating point", "complex")
    allowed = " or ".join([kinds[k] for k in sorted(op.traits.get("dtypes", (0, 1, 2, 3)))])
    raise NotImplementedError(f"\"{op.name}\" not implemented for '{DTYPES[compute]}': expected {allowed} input; "
                              f"convert it with .to(dtype)")


cdef recorder_t RECORDER = NULL
cdef compute_all_t COMPUTE_ALL = NULL
cdef compute_into_t COMPUTE_INTO = NULL
cdef give_memory_t GIVE_MEMORY = NULL
cdef lazy_copy_of_t LAZY_COPY_OF = NULL
cdef run_again_t RUN_AGAIN = NULL
cdef keep_lazy_copy_t KEEP_LAZY_COPY = NULL
cdef int recorders = 0


cdef int compute_late(list storages) except -1:
    """Compute deferred storages together."""
    return COMPUTE_ALL(storages)


cdef void set_recorder(recorder_t recorder, compute_all_t compute_all, compute_into_t compute_into,
                       give_memory_t give_memory, lazy_copy_of_t lazy_copy_of, run_again_t run_again,
                       keep_lazy_copy_t keep_lazy_copy) noexcept:
    global RECORDER, COMPUTE_ALL, COMPUTE_INTO, GIVE_MEMORY, LAZY_COPY_OF, RUN_AGAIN, KEEP_LAZY_COPY
    RECORDER, COMPUTE_ALL, COMPUTE_INTO, GIVE_MEMORY = recorder, compute_all, compute_into, give_memory
    LAZY_COPY_OF, RUN_AGAIN, KEEP_LAZY_COPY = lazy_copy_of, run_again, keep_lazy_copy


cdef int need_memory(Storage storage) except -1:
    return GIVE_MEMORY(storage) if storage.late is not None else 0


cdef object outputs_apart(Op op, PyObject** inputs, int nin, const int* outcodes, Tensor target):
    """The output where operands are not all laid out alike; a list where the op has several."""
    cdef int64_t shape[MAXDIM]
    cdef int k, nd = broadcast_shape(op, inputs, nin, shape)
    if target is not None:
        if target.nd != nd or memcmp(target.sizes, shape, nd * sizeof(int64_t)):
            target_broadcast(op, target, nd, shape)
        check_overlap(op, target, inputs, nin)
        return target
    if op.row_major:
        return empty_tensor(outcodes[0], nd, shape)
    if op.nouts == 1:
        return new_output(inputs, op.noperands, outcodes[0], nd, shape)
    return [new_output(inputs, op.noperands, outcodes[k], nd, shape) for k in range(op.nouts)]


cdef int place_apart(Launch* L, Tensor out, list outs, int nout, PyObject** inputs, int nin, const int* codes,
                     const int* outcodes, char* classes) except -1:
    """Fill in where operands lie that are not all laid out alike, and their layout classes."""
    cdef Tensor t
    cdef int i, d, k, nd = out.nd
    for k in range(nout):
        t = out if k == 0 else <Tensor>outs[k]
        L.ptr[k] = address_of(t)
        for d in range(nd):
            L.strides[k][d] = t.strides[d] * ITEMSIZE[t.code]
    k = nout
    for i in range(nin):
        if codes[i] == PARAM:
            continue
        t = <Tensor>inputs[i]
        L.ptr[k] = address_to_read(t)
        for d in range(nd):
            if d < nd - t.nd or t.sizes[d - (nd - t.nd)] == 1:
                L.strides[k][d] = 0
            else:
                L.strides[k][d] = t.strides[d - (nd - t.nd)] * ITEMSIZE[t.code]
        k += 1
    L.nmem = k
    memcpy(L.sizes, out.sizes, nd * sizeof(int64_t))
    L.nd = nd
    coalesce(L)
    for i in range(nout):
        classes[i] = layout_class(L, i, ITEMSIZE[outcodes[i]])
    k = nout
    for i in range(nin):
        if codes[i] != PARAM:
            classes[k] = layout_class(L, k, ITEMSIZE[codes[i]])
            k += 1
    return 0


cdef inline bint laid_out_alike(Tensor a, Tensor b) noexcept:
    """Whether two tensors have the same sizes and strides."""
    return (a.nd == b.nd and memcmp(a.sizes, b.sizes, a.nd * sizeof(int64_t)) == 0 and
            (a.contiguous and b.contiguous or memcmp(a.strides, b.strides, a.nd * sizeof(int64_t)) == 0))


cdef inline Tensor output_alike(Op op, PyObject** inputs, int code, Tensor first, bint numbers):
    """An output where the operands that are tensors are all laid out like ``first``."""
    if first.contiguous and (not numbers or op.row_major or is_row_major(first)):
        return empty_tensor(code, first.nd, first.sizes)
    return new_output(inputs, op.noperands, code, first.nd, first.sizes)


cdef object launch_pointwise(Op op, PyObject** inputs, int nin, int compute, int variant, Tensor target):
    cdef Launch L
    cdef int codes[MAXARGS]
    cdef int outcodes[MAXOPERANDS]
    cdef char classes[MAXOPERANDS + 1]
    cdef Tensor first = None, t, out
    cdef list outs = None
    cdef list transposed = None, apart = None       # keep copies alive
    cdef object made
    cdef int i, k, nout = op.nouts, nslots
    cdef bint flat = True, numbers = False
    cdef int64_t count, grain = 16384
    # 1. shapes: the common case is that all are alike and laid out alike
    for i in range(nin):
        if is_tensor(inputs[i]):
            codes[i] = (<Tensor>inputs[i]).code
            if first is None:
                first = <Tensor>inputs[i]
            elif flat and not laid_out_alike(<Tensor>inputs[i], first):
                flat = False
        else:
            codes[i] = PARAM
            numbers = True
    if flat and not first.contiguous and (not is_dense(first) or target is None and op.row_major):
        flat = False
    if flat and target is not None and target is not first and not laid_out_alike(target, first):
        flat = False
    outcodes[0] = out_code(op, compute)
    if nout > 1:
        rules = op.traits["outs"]
        for i in range(nout):
            outcodes[i] = BOOL if rules[i] == "bool" else I32 if rules[i] == "int32" else \
                REAL_OF[compute] if rules[i] == "real" else compute
    if target is not None:
        if KIND[outcodes[0]] > KIND[target.code]:
            raise RuntimeError(f"{op.name}: result type {DTYPES[outcodes[0]]} can't be cast to the desired output type "
                               f"{DTYPES[target.code]}")
        outcodes[0] = target.code
    # 2. outputs
    if flat:
        out = target if target is not None else output_alike(op, inputs, outcodes[0], first, numbers)
        L.ptr[0] = address_of(out)
        if nout > 1:
            outs = [out]
            for k in range(1, nout):
                t = output_alike(op, inputs, outcodes[k], first, numbers)
                outs.append(t)
                L.ptr[k] = address_of(t)
        count = out.count
        if target is not None:
            check_overlap(op, target, inputs, nin)
        L.nd = 1
        L.sizes[0] = count
        k = nout
        for i in range(nin):
            if codes[i] != PARAM:
                L.ptr[k] = address_to_read(<Tensor>inputs[i])
                L.strides[k][0] = ITEMSIZE[codes[i]]
                k += 1
        for i in range(nout):
            L.strides[i][0] = ITEMSIZE[outcodes[i]]
        L.nmem = k
        memset(classes, b"c", k)
    else:
        made = outputs_apart(op, inputs, nin, outcodes, target)
        outs = <list>made if type(made) is list else None
        out = <Tensor>made if outs is None else <Tensor>outs[0]
        count = out.count
        if target is not None:
            apart = copy_crossing(inputs, nin, target)
        if count >= TRANSPOSE_ELEMENTS and out.nd > 1 and is_dense(out):
            transposed = transpose_crossing(inputs, nin, out)
        place_apart(&L, out, outs, nout, inputs, nin, codes, outcodes, classes)
    if target is not None:
        target.storage.version += 1
    if count == 0:
        return out if outs is None else tuple(outs) if op.result_type is None else tuple.__new__(op.result_type, outs)
    # 3. the kernel and its arguments
    classes[L.nmem] = 0
    if count >= STREAM_LEAST and stores_stream(&L, nout, classes, count):
        memset(classes, b"n", nout)
        grain = STREAM_GRAIN
    L.kernel = lookup(op, variant, compute, nout, L.nmem, nin, codes, outcodes, classes)
    L.arg[0] = L.sizes[L.nd - 1]
    for k in range(L.nmem):
        L.arg[2 + 2 * k] = L.strides[k][L.nd - 1]
        L.arg[3 + 2 * k] = L.strides[k][L.nd - 2] if L.nd > 1 else 0
    nslots = 2 + 2 * L.nmem
    for i in range(nin):
        if codes[i] == PARAM:
            number_slots(<object>inputs[i], compute, L.arg + nslots)
            nslots += 2
    L.narg = nslots
    # 4. run
    run_elements(&L, count, grain)
    return out if outs is None else tuple(outs) if op.result_type is None else tuple.__new__(op.result_type, outs)


cdef object pointwise_out(Op op, PyObject** bound, object out):
    """The ``out=`` form: resize if empty, cast, write."""
    cdef Tensor t
    cdef object result
    cdef PyObject* inputs[MAXARGS]
    cdef int nparams = op.noperands, i, compute, variant, code
    cdef bint simple = op.nouts == 1 and isinstance(out, Tensor)
    if simple:
        t = <Tensor>out
        for i in range(op.noperands):
            inputs[i] = bound[i]
            if isinstance(<object>bound[i], Tensor):
                if not same_sizes(t, <Tensor>bound[i]) or (<Tensor>bound[i]).storage is t.storage:
                    simple = False
            elif not (PyFloat_Check(<object>bound[i]) or PyLong_Check(<object>bound[i])):
                simple = False
    if simple:
        compute = result_code(op, inputs)
        code = out_code(op, compute)
        simple = code == t.code or KIND[code] <= KIND[t.code] and "out_dtype" not in op.traits
        if simple and (op.kinds >> DOMAIN[compute]) & 1:
            check_inplace(t, False)
            variant = check_and_find_variant(op, bound, inputs, &nparams, compute)
            if op.fits:
                check_operands(op, inputs, compute)
            return launch_pointwise(op, inputs, nparams, compute, variant, t)
    result = pointwise_call(op, bound, None, True)
    return callbacks.write_out(op, out, result, tuple([<object>bound[i] for i in range(op.nparams)]))


cdef int pointwise_metas(Node node, Op op, PyObject** bound, object result) except -1:
    """Remember the sizes and dtype of inputs whose gradients must be summed or cast to fit."""
    cdef Tensor out = <Tensor>(result if isinstance(result, Tensor) else result[0])
    cdef Tensor t
    cdef int i
    cdef bint plain = True
    for i in range(op.ndiff):
        if node.targets[i] is not None:
            t = <Tensor>bound[op.diff_pos[i]]
            if not same_sizes(t, out) or t.code != out.code:
                plain = False
                break
    if plain:
        return 0
    metas = []
    for i in range(op.ndiff):
        if node.targets[i] is None:
            metas.append(None)
        else:
            t = <Tensor>bound[op.diff_pos[i]]
            metas.append((make_size(t.nd, t.sizes), <int>t.code))
    node.metas = tuple(metas)
    return 0


# ---- checks of ops ---------------------------------------------------------------------------------------------------

cdef inline bint is_inexact(object x):
    """Whether ``x``, a number or a tensor, is of floats or complex numbers."""
    return KIND[(<Tensor>x).code] >= 2 if isinstance(x, Tensor) else PyFloat_Check(x) or PyComplex_Check(x)


cdef bint wraps_to_zero(object input, object number) except -1:
    """Whether the dtype of ``input`` keeps none of the bits of a whole number."""
    if PyIndex_Check(number):
        number = int(number)  # one of NumPy's has too few bits for what follows
    return isinstance(input, Tensor) and (<Tensor>input).code != BOOL and not (
        number % 256 ** <object>ITEMSIZE[(<Tensor>input).code])


def check_divisor(input, other):
    """Refuse a division of whole numbers by zero, or by a number that wraps to zero: the kernels give 0 there."""
    if is_inexact(input) or is_inexact(other) or isinstance(input, Tensor) and not (<Tensor>input).count:
        return
    if not (other.is_meta or other.all()) if isinstance(other, Tensor) else other == 0 or wraps_to_zero(input, other):
        raise RuntimeError("ZeroDivisionError: integer division or remainder by zero; mask the zeros or divide floats")
