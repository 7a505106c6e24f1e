"""Launchers of kernels that move whole blocks: transposed copies, joining, reversing, triangles and padding."""

from .machine import stream_bytes

from cpython.list cimport PyList_Check
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .deferred_cat cimport defer_joined
from .memory cimport n_deferred
from .kernel_args cimport TransposeArgs
from .planners cimport TRANSPOSE_PIECE, build, host_function, known, new_owner, of_number
from .dims cimport merge_dims, plus, times
from .formats cimport empty_last, is_last
from .pool cimport PIECE_BYTES, kernel_t, launch, launch_units, units_in
from .tensor cimport (
    ITEMSIZE, MAXDIM, VALUES, Tensor, address_of, address_to_read, alias_tensor, contiguous_tensor, copy_into,
    dtype, empty_strided_like, empty_tensor, is_dense, parse_sizes, recorders, wrap_dim,
)

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)

cdef enum:
    LARGE_BYTES = 4 << 20     # from here on a transposed copy is stored past the cache
    PARALLEL_BYTES = 1 << 18  # below this one thread does it all

cdef int64_t STREAM_BYTES = stream_bytes()
cdef int64_t STRIP[5]         # rows of the result per unit of the kernel's parallel dimension
cdef int64_t BLOCK[5][2]      # rows and columns of it where it is large

cdef uint64_t TRANSPOSE = new_owner("copy.transpose"), TRANSPOSE_LARGE = new_owner("copy.transpose_large")
cdef uint64_t TRIANGLE = new_owner("copy.triangle"), REVERSE = new_owner("copy.reverse_rows")


cdef int log2_item(int itemsize) noexcept:
    return 0 if itemsize == 1 else 1 if itemsize == 2 else 2 if itemsize == 4 else 3 if itemsize == 8 else 4


cdef kernel_t transpose_kernel(int item, bint large) except NULL:
    cdef int k = log2_item(item)
    if STRIP[k] == 0:
        from taeda.kernels import copy
        STRIP[k] = copy.transpose_rows(item)
        BLOCK[k][0], BLOCK[k][1] = copy.transpose_block(item)
    return of_number(TRANSPOSE_LARGE if large else TRANSPOSE, item)


cdef struct OuterDim:      # a size, and its strides in the target and in the source in bytes
    int64_t size, target, source


cdef struct Transposed:    # the kernel, its units for each position of the dimensions outside of it, and those
    TransposeArgs args
    int64_t kernel, units, ndims
    OuterDim dims[MAXDIM]


cdef int pair_with(int n, int few, int along, const int64_t* sizes, const int64_t* strides) noexcept:
    """The dimension of two that makes four items side by side of the two along ``few``, of which ``along`` has many; or
    -1."""
    cdef int d
    if sizes[few] == 2 and strides[along] == 4:
        for d in range(n):
            if d != few and d != along and sizes[d] == 2 and strides[d] == 2:
                return d
    return -1


def copy_transposed(Tensor target, Tensor source):
    """Copy where the two run through memory in different orders; False where this is not such a copy.

    Both have one dtype and one shape. Each needs a dimension of its own in which it is contiguous.
    """
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[2 * MAXDIM]
    cdef int64_t* ts = strides
    cdef int64_t* ss = strides + MAXDIM
    cdef Transposed t
    cdef TransposeArgs* arg = &t.args
    cdef char** ptr = [address_of(target), address_to_read(source)]
    cdef int d, n = 0, item = ITEMSIZE[target.code], row = -1, column = -1, k, pair = -1
    cdef int64_t total, outer = 1, rest
    cdef bint large
    if target.nd != source.nd or target.nd < 2:
        return False
    for d in range(target.nd):
        if target.sizes[d] != source.sizes[d]:
            return False
        if target.sizes[d] != 1:
            sizes[n], ts[n], ss[n] = target.sizes[d], target.strides[d], source.strides[d]
            n += 1
    n = merge_dims(sizes, strides, n, 2, MAXDIM, 1)
    for d in range(n):
        if ts[d] == 1:
            column = d
        if ss[d] == 1:
            row = d
    if row < 0 or column < 0 or row == column or ss[column] == 0:  # a repeated column is no matrix to transpose
        return False
    arg.rows, arg.columns = sizes[row], sizes[column]
    arg.dst_row, arg.src_row = ts[row] * item, ss[column] * item
    arg.far = arg.few = 0
    large = target.count * item >= LARGE_BYTES and arg.rows >= 64 and arg.columns * item >= 256
    if item < 16 and not large:
        # Few columns or rows that lie side by side; pixels of 2 x 2 are four of them.
        pair = pair_with(n, column, row, sizes, ts)
        if pair >= 0:
            arg.columns, arg.far, arg.few = 4, ss[pair] * item, 4
        elif 1 < sizes[column] <= 4 and ts[row] == sizes[column]:
            arg.far, arg.few = 2 * arg.src_row, sizes[column]
        else:
            pair = pair_with(n, row, column, sizes, ss)
            if pair >= 0:
                arg.rows, arg.far, arg.few = 4, ts[pair] * item, -4
            elif 1 < sizes[row] <= 4 and ss[column] == sizes[row]:
                arg.far, arg.few = 2 * arg.dst_row, -sizes[row]
    k = 0  # the rest: two batch dimensions for the kernel, a loop over the others
    for d in range(n):
        if d != row and d != column and d != pair:
            sizes[k], ts[k], ss[k] = sizes[d], ts[d] * item, ss[d] * item
            k += 1
    arg.b1 = sizes[k - 1] if k else 1
    arg.dst_b1 = ts[k - 1] if k else 0
    arg.src_b1 = ss[k - 1] if k else 0
    arg.dst_b0 = ts[k - 2] if k > 1 else 0
    arg.src_b0 = ss[k - 2] if k > 1 else 0
    n = k - 2 if k > 2 else 0
    for d in range(n):
        outer *= sizes[d]
        t.dims[d].size, t.dims[d].target, t.dims[d].source = sizes[d], ts[d], ss[d]
    t.kernel = <int64_t>transpose_kernel(item, large)
    total = arg.b1 * (sizes[k - 2] if k > 1 else 1)
    d = log2_item(item)
    if large:
        total *= (arg.rows + BLOCK[d][0] - 1) // BLOCK[d][0] * ((arg.columns + BLOCK[d][1] - 1) // BLOCK[d][1])
        rest = 1
    else:
        total *= (arg.rows + STRIP[d] - 1) // STRIP[d]
        rest = units_in(PIECE_BYTES, min(STRIP[d], arg.rows) * arg.columns * item)
    t.units, t.ndims = total, n
    launch(host_function(TRANSPOSE_PIECE), ptr, 2, <int64_t*>&t,
           <int>(sizeof(t) - (MAXDIM - n) * sizeof(OuterDim)) // 8, outer * total, rest,
           target.count * item < PARALLEL_BYTES)
    return True


# ---- joining ---------------------------------------------------------------------------------------------------------

cdef void copy_rows(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    """Units are chunks of rows: of ``nbytes``, ``target_row`` apart, in chunks of so many bytes, so many to a row."""
    cdef int64_t nbytes = arg[0], target_row = arg[1], chunk = arg[2], chunks = arg[3], i, row, start
    if nbytes == 4:
        for i in range(begin, end):
            memcpy(ptr[0] + i * target_row, ptr[1] + i * 4, 4)
    elif nbytes == 8:
        for i in range(begin, end):
            memcpy(ptr[0] + i * target_row, ptr[1] + i * 8, 8)
    elif chunks == 1:
        for i in range(begin, end):
            memcpy(ptr[0] + i * target_row, ptr[1] + i * nbytes, nbytes)
    else:
        for i in range(begin, end):
            row = i // chunks
            start = (i - row * chunks) * chunk
            memcpy(ptr[0] + row * target_row + start, ptr[1] + row * nbytes + start, min(nbytes - start, chunk))


cdef int put_block(char* target, char* source, int64_t rows, int64_t nbytes, int64_t target_row) except -1:
    """Copy rows that lie one after the other in ``source`` to rows ``target_row`` apart."""
    cdef char** ptr = [target, source]
    cdef int64_t* arg = [nbytes, target_row, nbytes, 1]
    if rows * nbytes < PARALLEL_BYTES:
        return launch(copy_rows, ptr, 2, arg, 4, rows, 1, True)
    arg[2] = min(nbytes, <int64_t>PARALLEL_BYTES)
    arg[3] = (nbytes + arg[2] - 1) // arg[2]
    return launch(copy_rows, ptr, 2, arg, 4, rows * arg[3], max(PARALLEL_BYTES // arg[2], <int64_t>1), False)


cdef inline bint by_rows(Tensor t, int code, int64_t rows, int64_t nbytes) noexcept:
    """Whether `put_block` can and should copy ``t``. Many rows of one item each go faster through registers, and so do
    stores past the cache. Pending contents are computed straight into the target.
    """
    return (t.code == code and t.contiguous and (nbytes > ITEMSIZE[code] or rows * nbytes < PARALLEL_BYTES)
            and (2 * rows * nbytes < STREAM_BYTES or nbytes % 64 != 0)
            and (not n_deferred or t.holds == VALUES and t.storage.deferred is None))


cdef inline Tensor item_of(object tensors, Py_ssize_t i, str name):
    cdef PyObject* x
    x = PyTuple_GET_ITEM(tensors, i) if PyTuple_Check(tensors) else PyList_GET_ITEM(tensors, i)
    if not isinstance(<object>x, Tensor):
        raise TypeError(f"{name}(): expected Tensor as element {i} in argument 0, but got {type(<object>x).__name__}")
    return <Tensor><object>x


cdef object as_sequence(object tensors, str name):
    if PyTuple_Check(tensors) or PyList_Check(tensors):
        return tensors
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    return tuple(tensors)


cdef int common_code(object tensors, Py_ssize_t n, str name) except -1:
    """The dtype of the result: the shared one, else the one that all promote to."""
    cdef int code = item_of(tensors, 0, name).code
    cdef Py_ssize_t i
    cdef Tensor t
    for i in range(1, n):
        t = item_of(tensors, i, name)
        if t.code != code:
            break
    else:
        return code
    from taeda._core.tensor import promote_types
    kind = item_of(tensors, 0, name).dtype
    for i in range(1, n):
        kind = promote_types(kind, item_of(tensors, i, name).dtype)
    return (<dtype>kind).code


cdef bint are_last(object tensors, Py_ssize_t n) except -1:
    """Whether channels vary fastest in all of these, with gaps or without."""
    cdef Py_ssize_t i
    for i in range(n):
        if not is_last(item_of(tensors, i, "cat")):
            return False
    return True


cdef int keep_channels_last(Tensor out, int stacked=-1) except -1:
    """Give ``out`` strides that make channels vary fastest.

    ``stacked``: the new dimension, just outside of the one that it stands before.
    """
    cdef int order[MAXDIM]
    cdef int64_t step = 1
    cdef int d, i, k = 0, nd = out.nd - (stacked >= 0)
    for i in range(nd):  # from the innermost outwards
        d = 1 if i == 0 else 0 if i == nd - 1 else nd - i
        order[k] = d + (0 <= stacked <= d)
        k += 1
        if d == stacked:
            order[k] = d
            k += 1
    for i in range(k):
        out.strides[order[i]] = step
        step *= out.sizes[order[i]]
    out.contiguous = False
    return 0


def cat(tensors, dim=0):
    """Join tensors along a dimension that they have: the body of ``taeda.cat``."""
    cdef int64_t sizes[MAXDIM]
    cdef Tensor t, out, first = None
    cdef Py_ssize_t i, n
    cdef int d, at, code
    cdef int64_t rows = 1, inner, along = 0, place
    cdef bint last
    tensors = as_sequence(tensors, "cat")
    n = len(tensors)
    if n == 0:
        raise ValueError("cat(): expected a non-empty list of Tensors")
    code = common_code(tensors, n, "cat")
    for i in range(n):
        t = item_of(tensors, i, "cat")
        if t.nd == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if first is None and not (t.nd == 1 and t.count == 0):
            first = t
    if first is None:
        first = item_of(tensors, 0, "cat")
    at = wrap_dim(dim, first.nd, "cat")
    for i in range(n):
        t = item_of(tensors, i, "cat")
        if t.nd == 1 and t.count == 0 and first.nd != 1:  # a long-standing exception: joins with anything
            continue
        if t.nd != first.nd:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.nd} and {t.nd} "
                               f"(cat of shapes {list(first.shape)} and {list(t.shape)})")
        for d in range(t.nd):
            if d != at and t.sizes[d] != first.sizes[d]:
                from .mends import for_cat
                raise RuntimeError(f"Sizes of tensors must match except in dimension {at}. Expected size "
                                   f"{first.sizes[d]} but got size {t.sizes[d]} for tensor number {i} in the list "
                                   f"(shapes {list(first.shape)} and {list(t.shape)})."
                                   f"{for_cat(first.shape, t.shape, at)}")
        along = plus(along, t.sizes[at])
    memcpy(sizes, first.sizes, first.nd * sizeof(int64_t))
    sizes[at] = along
    last = (first.nd == 4 or first.nd == 5) and are_last(tensors, n)
    if recorders and not last:
        out = defer_joined(tensors, at, first.nd, sizes)
        if out is not None:
            return out
    out = empty_tensor(code, first.nd, sizes)
    if out.count == 0:
        return out
    if last:
        keep_channels_last(out)
    inner = ITEMSIZE[code]
    for d in range(at):
        rows *= sizes[d]
    for d in range(at + 1, first.nd):
        inner *= sizes[d]
    place = 0
    for i in range(n):
        t = item_of(tensors, i, "cat")
        if t.count == 0:
            continue
        if out.contiguous and by_rows(t, code, rows, t.sizes[at] * inner):
            put_block(address_of(out) + place * inner, address_to_read(t), rows, t.sizes[at] * inner, along * inner)
        else:
            copy_into(alias_tensor(out, t.nd, t.sizes, out.strides, place * out.strides[at]), t)
        place += t.sizes[at]
    return out


def stack(tensors, dim=0):
    """Join tensors of one shape along a new dimension: the body of ``taeda.stack``."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef Tensor t, out, first
    cdef Py_ssize_t i, n
    cdef int d, at, code
    cdef int64_t rows = 1, inner
    tensors = as_sequence(tensors, "stack")
    n = len(tensors)
    if n == 0:
        raise RuntimeError("stack expects a non-empty TensorList")
    code = common_code(tensors, n, "stack")
    first = item_of(tensors, 0, "stack")
    at = wrap_dim(dim, first.nd + 1, "stack")
    for i in range(1, n):
        t = item_of(tensors, i, "stack")
        for d in range(t.nd if t.nd == first.nd else -1):
            if t.sizes[d] != first.sizes[d]:
                break
        else:
            if t.nd == first.nd:
                continue
        raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and "
                           f"{list(t.shape)} at entry {i}; pad them to one size, as nn.utils.rnn.pad_sequence does "
                           f"(for a DataLoader in its collate_fn), or join them with cat()")
    if first.nd + 1 > MAXDIM:
        raise RuntimeError(f"stack: a tensor has at most {MAXDIM} dimensions")
    for d in range(first.nd):
        sizes[d + (d >= at)] = first.sizes[d]
    sizes[at] = n
    out = empty_tensor(code, first.nd + 1, sizes)
    if out.count == 0:
        return out
    if not first.contiguous and at < first.nd and is_last(first):
        if are_last(tensors, n):
            keep_channels_last(out, at)
    inner = ITEMSIZE[code]
    for d in range(at):
        rows *= sizes[d]
    for d in range(at + 1, out.nd):
        inner *= sizes[d]
    for d in range(first.nd):
        strides[d] = out.strides[d + (d >= at)]
    for i in range(n):
        t = item_of(tensors, i, "stack")
        if out.contiguous and by_rows(t, code, rows, inner):
            put_block(address_of(out) + i * inner, address_to_read(t), rows, inner, n * inner)
        else:
            copy_into(alias_tensor(out, t.nd, t.sizes, strides, i * out.strides[at]), t)
    return out


def adjoining(tensors, int dim, bint stacked):
    """A view that joins tensors which are already adjacent in one storage; None if they are not.

    This is for derivatives, whose pieces no other code writes to. ``stacked`` means along a new dimension, else along
    an existing one.
    """
    cdef Tensor first, before, t
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef Py_ssize_t i, n = len(tensors)
    cdef int d, at, nd
    cdef int64_t step, distance
    if n < 2 or type(tensors[0]) is not Tensor or type(tensors[1]) is not Tensor:
        return None
    first, t = <Tensor>tensors[0], <Tensor>tensors[1]
    nd = first.nd
    at = dim + nd + stacked if dim < 0 else dim
    distance = t.raw - first.raw
    if distance <= 0 or distance % ITEMSIZE[first.code] or nd + stacked > MAXDIM:
        return None
    step = 0
    before = first
    for i in range(n):
        if type(tensors[i]) is not Tensor:
            return None
        t = <Tensor>tensors[i]
        if t.storage is not first.storage or t.code != first.code or t.nd != nd:
            return None
        for d in range(nd):
            if t.strides[d] != first.strides[d] or t.sizes[d] != first.sizes[d] and (stacked or d != at):
                return None
        if i and t.raw - before.raw != (distance if stacked
                                                        else before.sizes[at] * first.strides[at] * ITEMSIZE[t.code]):
            return None
        step += 1 if stacked else t.sizes[at]
        before = t
    for d in range(nd):
        sizes[d + (stacked and d >= at)], strides[d + (stacked and d >= at)] = first.sizes[d], first.strides[d]
    sizes[at] = step
    if stacked:
        strides[at] = distance // ITEMSIZE[first.code]
    return alias_tensor(first, nd + stacked, sizes, strides, 0)


# ---- within a tensor -------------------------------------------------------------------------------------------------

cdef int run(kernel_t fn, char** ptr, const int64_t* arg, int64_t rows, int64_t row_bytes) except -1:
    """Run a kernel whose units are rows."""
    launch_units(fn, ptr, 2, arg, 3, rows, row_bytes, PARALLEL_BYTES)
    return 0


cdef Tensor triangle(Tensor input, object diagonal, bint upper, str name):
    cdef Tensor source, out
    cdef char* ptr[2]
    cdef int64_t arg[3]
    cdef int item = ITEMSIZE[input.code]
    cdef kernel_t fn
    if input.nd < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions, got shape {list(input.shape)}")
    source = contiguous_tensor(input)
    out = empty_tensor(input.code, input.nd, input.sizes)
    if out.count == 0:
        return out
    fn = known(TRIANGLE, item << 1 | upper)
    if fn == NULL:
        fn = build(TRIANGLE, item << 1 | upper, (item, bool(upper)))
    ptr[0], ptr[1] = address_of(out), address_to_read(source)
    arg[0], arg[1] = input.sizes[input.nd - 2], input.sizes[input.nd - 1]
    arg[2] = max(-arg[0], min(<int64_t>diagonal, arg[1]))
    run(fn, ptr, arg, out.count // arg[1], arg[1] * item)
    return out


def tril(Tensor input, diagonal=0):
    """The body of ``taeda.tril``."""
    return triangle(input, PyNumber_Index(diagonal), False, "tril")


def triu(Tensor input, diagonal=0):
    """The body of ``taeda.triu``."""
    return triangle(input, PyNumber_Index(diagonal), True, "triu")


def flip(Tensor input, dims):
    """The body of ``taeda.flip``."""
    cdef int64_t strides[MAXDIM]
    cdef int64_t arg[3]
    cdef char* ptr[2]
    cdef int64_t offset = 0, length = 1, row, piece, rest
    cdef unsigned long long rolled = 0
    cdef int d, tail = input.nd, item = ITEMSIZE[input.code]
    cdef kernel_t fn
    cdef Tensor source, out
    for x in dims if PyTuple_Check(dims) or PyList_Check(dims) else (dims,):
        d = wrap_dim(x, input.nd, "flip")
        if rolled >> d & 1:
            raise RuntimeError(f"flip: dim {d} appears multiple times in the list of dims {dims}")
        rolled |= <unsigned long long>1 << d
    cdef bint last = is_last(input), dense = not last and not input.contiguous and is_dense(input)
    out = (empty_last(input.code, input.nd, input.sizes) if last else empty_strided_like(input.code, input) if dense
           else empty_tensor(input.code, input.nd, input.sizes))
    if out.count == 0:
        return out
    while tail and rolled >> (tail - 1) & 1:
        tail -= 1
        length *= input.sizes[tail]
    if (last or dense or rolled == 0 or input.nd == 0 or tail == input.nd
            or rolled & ((<unsigned long long>1 << tail) - 1)):
        for d in range(input.nd):
            strides[d] = input.strides[d]
            if rolled >> d & 1:
                offset += (input.sizes[d] - 1) * strides[d]
                strides[d] = -strides[d]
        copy_into(out, alias_tensor(input, input.nd, input.sizes, strides, offset))
        return out
    source = contiguous_tensor(input)  # the dimensions from `tail` on are one run of memory, read from its end
    fn = of_number(REVERSE, item)
    if length * item < 4 * PIECE_BYTES:
        ptr[0], ptr[1] = address_of(out), address_to_read(source)
        arg[0], arg[1], arg[2] = length, length * item, length * item
        run(fn, ptr, arg, out.count // length, length * item)
        return out
    for row in range(out.count // length):  # by pieces of a run: the last becomes the first
        piece = PIECE_BYTES // item
        rest = length % piece
        ptr[0], ptr[1] = address_of(out) + row * length * item, address_of(source) + ((row + 1) * length - piece) * item
        arg[0], arg[1], arg[2] = piece, piece * item, -piece * item
        run(fn, ptr, arg, length // piece, piece * item)
        ptr[0], ptr[1] = address_of(out) + ((row + 1) * length - rest) * item, address_of(source) + row * length * item
        arg[0] = rest
        launch(fn, ptr, 2, arg, 3, 1, 1, True)
    return out


def pad_constant(Tensor input, pad, value=0):
    """The body of ``taeda.constant_pad_nd``."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t inner[MAXDIM]
    cdef int64_t source = 0, target = 0, before, after
    cdef int d, n = len(pad), i
    cdef Tensor out
    if n % 2 or n // 2 > input.nd:
        raise RuntimeError("Length of pad should be even and no more than twice the number of dimensions of the input: "
                           f"got {list(pad)} for shape {list(input.shape)}")
    for d in range(input.nd):
        sizes[d] = inner[d] = input.sizes[d]
    for i in range(n // 2):
        d = input.nd - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        sizes[d] = plus(sizes[d], plus(before, after))
        if sizes[d] < 0:
            raise RuntimeError(f"The input size {input.sizes[d]}, plus negative padding {before} and {after}, resulted "
                               f"in a negative output size, which is invalid. Check dimension {d} of your input.")
        inner[d] = plus(inner[d], plus(min(before, <int64_t>0), min(after, <int64_t>0)))
        inner[d] = inner[d] if inner[d] > 0 else 0
    out = empty_last(input.code, input.nd, sizes) if is_last(input) else empty_tensor(input.code, input.nd, sizes)
    out.fill_(value)
    for i in range(n // 2):
        d = input.nd - 1 - i
        before = pad[2 * i]
        if before > 0:
            target += before * out.strides[d]
        else:
            source -= before * input.strides[d]
    for d in range(input.nd):
        if inner[d] == 0:
            return out
    copy_into(alias_tensor(out, input.nd, inner, out.strides, target),
              alias_tensor(input, input.nd, inner, input.strides, source))
    return out


cdef Tensor strip(Tensor t, int dim, int64_t start, int64_t count, int step=1):
    """``count`` slices along ``dim`` from ``start`` on, backwards where ``step`` is -1, or the same one (0)."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int d
    for d in range(t.nd):
        sizes[d], strides[d] = t.sizes[d], t.strides[d]
    sizes[dim], strides[dim] = count, t.strides[dim] * step
    return alias_tensor(t, t.nd, sizes, strides, start * t.strides[dim])


def edges(Tensor padded, pad, str mode):
    """The inside of a padded tensor, and pairs of views: a part beside the inside, and the values that go there.

    The pairs are in the order in which they may be copied: the last dimension's, then those of the one before, which
    include the parts filled already. ``pad`` has two amounts per dimension, the last dimension first, none negative.
    """
    cdef list pairs = []
    cdef int i, d, step = -1 if mode == "reflect" else 1 if mode == "circular" else 0
    cdef int64_t before, after, size, end, first, last
    cdef Tensor inside = padded, view
    for i in range(len(pad) // 2 - 1, -1, -1):
        d = padded.nd - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        view, size = inside, padded.sizes[d] - before - after
        end = before + size
        if (before or after) and (min(before, after) < 0 or size < 1
                                  or step and max(before, after) > size - (step < 0)):
            raise RuntimeError(f"edge_pad: expected a padding that {mode} has for a dimension of size {size}, got "
                               f"({before}, {after})")
        inside = strip(view, d, before, size)
        if mode == "reflect":
            first, last = 2 * before, end - 2
        elif mode == "circular":
            first, last = size, before
        else:
            first, last = before, end - 1
        if after:
            pairs.append((strip(view, d, end, after), strip(view, d, last, after, step)))
        if before:
            pairs.append((strip(view, d, 0, before), strip(view, d, first, before, step)))
    pairs.reverse()
    return inside, pairs


def fits(Tensor input, tuple pad, str mode):
    """Whether ``edge_pad`` takes ``pad`` for this mode as it is: some amounts, none negative or too large, at
    dimensions with elements."""
    cdef int count = <int>len(pad) // 2, i, d
    cdef int64_t n, most
    cdef bint some = False
    if len(pad) % 2 or not input.nd - 2 <= count <= input.nd - 1:
        return False
    for d in range(input.nd - count - 1, input.nd):
        if input.sizes[d] == 0:
            return False
    for i in range(2 * count):
        n, most = pad[i], input.sizes[input.nd - 1 - i // 2] - (mode == "reflect")
        if n < 0 or n > most and mode != "replicate":
            return False
        some = some or n
    return some


def pad_edges(Tensor input, pad, str mode):
    """The body of ``taeda.edge_pad``: it copies the inside, then fills the edges."""
    cdef int64_t sizes[MAXDIM]
    cdef int d, i
    cdef Tensor out
    for d in range(input.nd):
        sizes[d] = input.sizes[d]
    for i in range(len(pad) // 2):
        d = input.nd - 1 - i
        sizes[d] = plus(plus(sizes[d], pad[2 * i]), pad[2 * i + 1])
    out = empty_last(input.code, input.nd, sizes) if is_last(input) else empty_tensor(input.code, input.nd, sizes)
    if out.count:
        inside, pairs = edges(out, pad, mode)
        copy_into(<Tensor>inside, input)
        for beside, shown in pairs:
            copy_into(<Tensor>beside, <Tensor>shown)
    return out


def roll(Tensor input, shifts, dims=None):
    """The body of ``taeda.roll``."""
    cdef int64_t turn[MAXDIM]
    cdef int64_t sizes[MAXDIM]
    cdef int64_t source, target
    cdef int d, n, i, piece, pieces
    cdef int64_t first
    cdef Tensor flat, out
    shifts = shifts if PyTuple_Check(shifts) or PyList_Check(shifts) else (shifts,)
    dims = () if dims is None else dims if PyTuple_Check(dims) or PyList_Check(dims) else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and (dims or len(shifts) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if dims and is_last(input):
        out = empty_last(input.code, input.nd, input.sizes)
    else:
        out = empty_tensor(input.code, input.nd, input.sizes)
    if dims and not input.nd:
        raise IndexError(f"roll(): Dimension specified as {dims[0]} but tensor has no dimensions")
    if out.count == 0:
        return out
    if not dims:  # as one dimension
        input = contiguous_tensor(input)
        first = 1
        flat = roll(alias_tensor(input, 1, &input.count, &first, 0), shifts, (0,))
        return alias_tensor(flat, out.nd, out.sizes, out.strides, 0)
    for d in range(input.nd):
        turn[d] = 0
    for x, shift in zip(dims, shifts):
        d = wrap_dim(x, input.nd, "roll")
        turn[d] = (turn[d] + <int64_t>shift % input.sizes[d]) % input.sizes[d]
        if turn[d] < 0:
            turn[d] += input.sizes[d]
    # Each dimension that turns is two pieces: all combinations of them.
    n = 0
    for d in range(input.nd):
        n += turn[d] != 0
    pieces = 1 << n
    for piece in range(pieces):
        source = target = 0
        i = 0
        for d in range(input.nd):
            sizes[d] = input.sizes[d]
            if turn[d]:
                if piece >> i & 1:  # indices beyond the end wrap around to the start
                    sizes[d] = turn[d]
                    source += (input.sizes[d] - turn[d]) * input.strides[d]
                else:
                    sizes[d] -= turn[d]
                    target += turn[d] * out.strides[d]
                i += 1
        copy_into(alias_tensor(out, out.nd, sizes, out.strides, target),
                  alias_tensor(input, input.nd, sizes, input.strides, source))
    return out


def repeat(Tensor input, repeats):
    """The body of ``taeda.repeat``: one copy between views in which each dimension is two, of the repeats and its own.
    """
    cdef int64_t counts[MAXDIM]
    cdef int64_t sizes[2 * MAXDIM]
    cdef int64_t strides[2][2 * MAXDIM]
    cdef int d, n = parse_sizes(repeats, counts), more = n - input.nd
    cdef int64_t size
    cdef Tensor out
    if more < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of "
                           f"tensor: got {list(repeats)} for shape {list(input.shape)}")
    for d in range(n):
        if counts[d] < 0:
            raise RuntimeError(f"repeat: repeats must not be negative, got {list(repeats)}")
        sizes[d] = times(counts[d], input.sizes[d - more]) if d >= more else counts[d]
    out = empty_tensor(input.code, n, sizes)
    if out.count == 0:
        return out
    for d in range(n):
        size = input.sizes[d - more] if d >= more else 1
        sizes[2 * d], sizes[2 * d + 1] = counts[d], size
        strides[0][2 * d], strides[0][2 * d + 1] = out.strides[d] * size, out.strides[d]
        strides[1][2 * d], strides[1][2 * d + 1] = 0, input.strides[d - more] if d >= more else 0
    copy_into(alias_tensor(out, 2 * n, sizes, strides[0], 0), alias_tensor(input, 2 * n, sizes, strides[1], 0))
    return out


def repeat_each(Tensor input, int64_t repeats, dim):
    """Each slice along ``dim`` repeated in place."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t source[MAXDIM]
    cdef int d, at = wrap_dim(dim, input.nd, "repeat_interleave"), n = input.nd
    cdef Tensor out
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    for d in range(n):
        sizes[d] = times(input.sizes[d], repeats) if d == at else input.sizes[d]
    out = empty_tensor(input.code, n, sizes)
    if out.count == 0:
        return out
    for d in range(n):
        sizes[d + (d > at)] = input.sizes[d]
        strides[d + (d > at)] = out.strides[d] * (repeats if d == at else 1)
        source[d + (d > at)] = input.strides[d]
    sizes[at + 1], strides[at + 1], source[at + 1] = repeats, out.strides[at], 0
    copy_into(alias_tensor(out, n + 1, sizes, strides, 0), alias_tensor(input, n + 1, sizes, source, 0))
    return out


#: Functions of this module that launches run, and their addresses: `kernels/host_functions.py` has each as a kernel.
HOST_FUNCTIONS = {
    "copy_rows": <size_t><void*>copy_rows,
}
