"""Bodies of the ops that sort, select by rank and search: they move the dimension to the end and run a kernel on
rows.
"""

from cpython.float cimport PyFloat_Check
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t, uint64_t

from .dims cimport contiguous_strides
from .planners cimport build, known, new_owner, of_dtype
from .devices cimport META_NUMBER, elsewhere, here
from .pool cimport kernel_t, launch, launch_apart, units_in
from .recorder cimport CONSTANT, note_filled
from .tensor cimport (
    I32, I64, ITEMSIZE, KIND, MAXDIM, Tensor, address_of, alias_tensor, contiguous_tensor, copy_into,
    empty_strided_like, empty_tensor, host_tensor, is_dense, uploaded, wrap_dim, zero_tensor,
)

from .tensor import DTYPE_NAMES

cdef enum:
    WORK = 1 << 14       # items of a row that are worth a task of their own
    RANK_LIMIT = 64      # as in kernels/sort.py
    KTH_LIMIT = 128
    LONG = 1 << 21       # items of a row whose sort takes long

cdef tuple NAMES = DTYPE_NAMES
cdef uint64_t SORT = new_owner("sort.sort_rows"), TOP = new_owner("sort.top_rows"), KTH = new_owner("sort.kth_rows")
cdef uint64_t MEDIAN = new_owner("sort.median_places"), MODE = new_owner("sort.mode_rows")
cdef uint64_t SEARCH = new_owner("indexing.search_sorted")


cdef kernel_t with_flag(uint64_t family, int code, bint flag) except NULL:
    """A kernel of a family that has two for each dtype."""
    cdef kernel_t fn = known(family, code << 1 | flag)
    return fn if fn != NULL else build(family, code << 1 | flag, (NAMES[code], bool(flag)))


cdef int check_ordered(Tensor t, str name) except -1:
    if KIND[t.code] == 3:
        raise RuntimeError(f"{name}: Sort currently does not support complex dtypes on CPU, got {t.dtype}")
    return 0


cdef int64_t extent(Tensor t, int at) noexcept:
    return t.sizes[at] if t.nd else 1


cdef Tensor swapped(Tensor t, int at):
    """A view with dimension ``at`` and the last one swapped."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int d, last = t.nd - 1
    for d in range(t.nd):
        sizes[d], strides[d] = t.sizes[d], t.strides[d]
    sizes[at], sizes[last] = t.sizes[last], t.sizes[at]
    strides[at], strides[last] = t.strides[last], t.strides[at]
    return alias_tensor(t, t.nd, sizes, strides, 0)


cdef Tensor as_rows(Tensor t, int at):
    """The tensor, contiguous with dimension ``at`` last."""
    return contiguous_tensor(t if t.nd == 0 or at == t.nd - 1 else swapped(t, at))


cdef Tensor from_rows(Tensor rows, int at):
    """Undo :func:`as_rows` on a result that still has the dimension."""
    cdef Tensor t
    if rows.nd == 0 or at == rows.nd - 1:
        return rows
    t = contiguous_tensor(swapped(rows, at))
    contiguous_strides(t.nd, t.sizes, t.strides)  # also along dimensions of one element
    return t


cdef Tensor like_rows(Tensor rows, int code, int64_t n):
    """An uninitialized tensor with ``n`` items per row."""
    cdef int64_t sizes[MAXDIM]
    cdef int d
    for d in range(rows.nd):
        sizes[d] = rows.sizes[d]
    if rows.nd:
        sizes[rows.nd - 1] = n
    return empty_tensor(code, rows.nd, sizes)


cdef Tensor reduced(Tensor t, int at, bint keepdim):
    """A result of one item per row in the caller's shape."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t step = 1
    cdef int d, n = 0
    t = from_rows(t, at)
    if keepdim or t.nd == 0:
        for d in range(t.nd - 1, -1, -1):  # the step along one element is free: as in a contiguous tensor
            t.strides[d] = step
            step *= max(t.sizes[d], <int64_t>1)
        return t
    for d in range(t.nd):
        if d != at:
            sizes[n], strides[n] = t.sizes[d], t.strides[d]
            n += 1
    return alias_tensor(t, n, sizes, strides, 0)


cdef inline bint on_device() noexcept:
    return elsewhere and here() > META_NUMBER


cdef inline int64_t rows_of_piece(int64_t n) noexcept:
    """Rows of ``n`` items that use the same buffer, one after the other. A device has no pieces: all run at once."""
    return 1 if on_device() else units_in(WORK, n)


cdef Tensor spare_words(int64_t count, int64_t grain, int64_t words):
    """Memory of ``words`` words for each piece of ``grain`` rows."""
    cdef int64_t n = (count + grain - 1) // grain * words
    return empty_tensor(I64, 1, &n)


cdef inline int words_of(int code) noexcept:
    return 2 if ITEMSIZE[code] == 8 else 1


cdef int launch_rows(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t count, int64_t n,
                     int64_t grain, tuple tensors) except -1:
    """A launch over ``count`` rows of ``n`` items in the memory of ``tensors``, whose outputs are new."""
    if n < LONG:
        return launch(fn, ptr, nptr, arg, narg, count, grain, False)
    return launch_apart(fn, ptr, nptr, arg, narg, count, grain, tensors)


cdef int sort_into(Tensor rows, Tensor values, Tensor indices, int64_t n, bint descending, int64_t k) except -1:
    """Sort contiguous rows of ``n`` items; of short ones only the first ``k`` are kept."""
    cdef char* ptr[4]
    cdef int64_t arg[3]
    cdef int64_t grain = rows_of_piece(n)
    cdef Tensor spare = None
    cdef bint short = n <= RANK_LIMIT
    cdef int key = rows.code << 2 | descending << 1 | short
    cdef kernel_t fn = known(SORT, key)
    if rows.count == 0:
        return 0
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(values), address_of(indices), address_of(rows), NULL
    if not short:
        spare = spare_words(rows.count // n, grain, n * words_of(rows.code))
        ptr[3] = address_of(spare)
    if fn == NULL:
        fn = build(SORT, key, (NAMES[rows.code], bool(descending), bool(short)))
    arg[0], arg[1], arg[2] = n, grain, k
    return launch_rows(fn, ptr, 4, arg, 3, rows.count // n, n, grain, (rows, values, indices, spare))


def sort_rows(Tensor rows, int64_t n, bint descending=False):
    """Contiguous rows of ``n`` items sorted: ``(values, positions)``."""
    cdef Tensor values = empty_tensor(rows.code, rows.nd, rows.sizes)
    cdef Tensor indices = empty_tensor(I64, rows.nd, rows.sizes)
    sort_into(rows, values, indices, n, descending, n)
    return values, indices


def sort(Tensor input, dim=-1, descending=False, stable=None):
    """The body of ``taeda.sort``."""
    cdef int at = wrap_dim(dim, input.nd, "sort")
    check_ordered(input, "sort")
    cdef Tensor rows = as_rows(input, at)
    cdef Tensor values = empty_tensor(rows.code, rows.nd, rows.sizes)
    cdef Tensor indices = empty_tensor(I64, rows.nd, rows.sizes)
    sort_into(rows, values, indices, extent(input, at), descending, extent(input, at))
    return laid_out_as(from_rows(values, at), input), laid_out_as(from_rows(indices, at), input)


cdef Tensor laid_out_as(Tensor t, Tensor like):
    """``t`` with the strides of ``like``, of the same sizes, where they leave no gaps."""
    cdef Tensor made
    cdef int d
    if like.contiguous:
        for d in range(t.nd):
            t.strides[d] = like.strides[d]
    if like.contiguous or not is_dense(like):
        return t
    made = empty_strided_like(t.code, like)
    if made.count:
        copy_into(made, t)
    return made


cdef Tensor first_of(Tensor rows, int64_t k):
    """The first ``k`` items of each row, contiguous."""
    cdef int64_t sizes[MAXDIM]
    cdef int d
    for d in range(rows.nd):
        sizes[d] = rows.sizes[d]
    sizes[rows.nd - 1] = k
    return contiguous_tensor(alias_tensor(rows, rows.nd, sizes, rows.strides, 0))


def topk(Tensor input, k, dim=-1, largest=True, sorted=True):
    """The body of ``taeda.topk``."""
    cdef int at = wrap_dim(dim, input.nd, "topk")
    cdef int64_t n = extent(input, at), m, grain = rows_of_piece(n)
    cdef int64_t arg[4]
    cdef char* ptr[4]
    cdef Tensor rows, values, indices, spare
    check_ordered(input, "topk")
    if PyFloat_Check(k):
        raise TypeError(f"topk(): argument 'k' (position 2) must be int, not {type(k).__name__}")
    m = PyNumber_Index(k)
    if m < 0 or m > n:
        raise RuntimeError(f"selected index k out of range: k = {k}, size of dimension {at} is {n} (shape "
                           f"{list(input.shape)})")
    if input.nd == 0:  # a scalar has no dimension to select from: its top is itself
        m = 1
    rows = as_rows(input, at)
    values, indices = like_rows(rows, rows.code, m), like_rows(rows, I64, m)
    if values.count:
        if m * 4 >= n and n <= RANK_LIMIT:
            sort_into(rows, values, indices, n, largest, m)
        elif m * 4 >= n or on_device() and n > RANK_LIMIT:  # a device sorts by many threads
            values, indices = sort_rows(rows, n, largest)
            values, indices = first_of(values, m), first_of(indices, m)
        else:
            arg[0], arg[1], arg[2], arg[3] = n, m, (2 * m if m > 256 else m + 256), grain
            spare = spare_words(rows.count // n, grain, (arg[2] + 64) * 2 * words_of(rows.code))
            ptr[0], ptr[1], ptr[2], ptr[3] = (address_of(values), address_of(indices), address_of(rows),
                                              address_of(spare))
            launch_rows(with_flag(TOP, rows.code, largest), ptr, 4, arg, 4, rows.count // n, n, grain,
                        (values, indices, rows, spare))
    return from_rows(values, at), from_rows(indices, at)


# ---- one of each row -------------------------------------------------------------------------------------------------

cdef tuple pick(Tensor input, str name, object dim, object keepdim, int64_t k, int how):
    """The item of rank ``k`` of each row (``how`` 0), the median (1) or the median without NaN (2)."""
    cdef int at = wrap_dim(dim, input.nd, name)
    cdef int64_t n = extent(input, at), grain = rows_of_piece(n), count, i
    cdef int64_t arg[2]
    cdef char* ptr[5]
    cdef Tensor rows, values, indices, places, spare = None
    cdef bint short = n <= KTH_LIMIT
    check_ordered(input, name)
    if n == 0:
        raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")
    if how == 0 and (k < 1 or k > n):
        raise RuntimeError(f"{name}(): selected number k out of range for dimension {at}: k = {k}, size {n}")
    rows = as_rows(input, at)
    values, indices = like_rows(rows, rows.code, 1), like_rows(rows, I64, 1)
    count = rows.count // n
    if count:
        places = empty_tensor(I64, 1, &count) if how else host_tensor(I64, 1, &count)
        arg[0], arg[1] = n, grain
        if how:
            ptr[0], ptr[1] = address_of(places), address_of(rows)
            launch_rows(with_flag(MEDIAN, rows.code, how == 2), ptr, 2, arg, 2, count, n, grain, (places, rows))
        else:
            for i in range(count):
                (<int64_t*>address_of(places))[i] = k - 1
            note_filled(address_of(places), CONSTANT)
            places = uploaded(places)
        ptr[0], ptr[1], ptr[2], ptr[3], ptr[4] = (address_of(values), address_of(indices), address_of(rows),
                                                  address_of(places), NULL)
        if not short:
            spare = spare_words(count, grain, n * words_of(rows.code))
            ptr[4] = address_of(spare)
        launch_rows(with_flag(KTH, rows.code, short), ptr, 5, arg, 2, count, n, grain,
                    (values, indices, rows, places, spare))
    return reduced(values, at, keepdim), reduced(indices, at, keepdim)


def kthvalue(Tensor input, k, dim=-1, keepdim=False):
    """The body of ``taeda.kthvalue``."""
    return pick(input, "kthvalue", dim, keepdim, PyNumber_Index(k), 0)


def median(Tensor input, dim, keepdim=False):
    """The body of the median along a dimension."""
    return pick(input, "median", dim, keepdim, 0, 1)


def nanmedian(Tensor input, dim, keepdim=False):
    """The body of the median along a dimension, without NaN."""
    return pick(input, "nanmedian", dim, keepdim, 0, 2)


cdef Tensor middle(Tensor input, str name, int how):
    cdef int64_t one = 1, n = input.count
    cdef Tensor flat = contiguous_tensor(input)
    if n == 0:
        if KIND[input.code] != 2:
            raise RuntimeError(f"{name}() operation does not have an identity for empty input of {input.dtype}")
        flat = empty_tensor(input.code, 0, NULL)
        flat.fill_(float("nan"))
        return flat
    return pick(alias_tensor(flat, 1, &n, &one, 0), name, 0, False, 0, how)[0]


def median_all(Tensor input):
    """The body of the median of all elements."""
    return middle(input, "median", 1)


def nanmedian_all(Tensor input):
    """The body of the median of all elements that are not NaN."""
    return middle(input, "nanmedian", 2)


def mode(Tensor input, dim=-1, keepdim=False):
    """The body of ``taeda.mode``."""
    cdef int at = wrap_dim(dim, input.nd, "mode")
    cdef int64_t n = extent(input, at)
    cdef char* ptr[4]
    cdef Tensor rows, values, indices, ordered, places
    check_ordered(input, "mode")
    if n == 0:
        raise IndexError(f"mode(): Expected reduction dim {at} to have non-zero size.")
    rows = as_rows(input, at)
    ordered, places = sort_rows(rows, n)
    values, indices = like_rows(rows, rows.code, 1), like_rows(rows, I64, 1)
    if values.count:
        ptr[0], ptr[1], ptr[2], ptr[3] = (address_of(values), address_of(indices), address_of(ordered),
                                          address_of(places))
        launch_rows(of_dtype(MODE, rows.code), ptr, 4, &n, 1, values.count, n, units_in(WORK, n),
                    (values, indices, ordered, places))
    return reduced(values, at, keepdim), reduced(indices, at, keepdim)


# ---- search ----------------------------------------------------------------------------------------------------------

cdef Tensor converted(Tensor t, int code):
    """Contiguous, of dtype ``code``."""
    cdef Tensor made
    if t.code == code:
        return contiguous_tensor(t)
    made = empty_tensor(code, t.nd, t.sizes)
    copy_into(made, t)
    return made


def search(Tensor sequence, Tensor values, bint right, bint out_int32):
    """The position at which each value would be inserted into its row of ``sequence``."""
    cdef bint good = sequence.nd == 1 or sequence.nd == values.nd
    cdef int d, key, code = sequence.code
    cdef kernel_t fn
    cdef int64_t arg[3]
    cdef int64_t i
    cdef char* ptr[3]
    cdef Tensor out
    if sequence.nd == 0:
        raise RuntimeError("searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    for d in range(sequence.nd - 1 if good else 0):
        good = good and sequence.sizes[d] == values.sizes[d]
    if not good:
        raise RuntimeError("searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                           "boundaries tensor and input value tensor must match, but we got boundaries tensor "
                           f"{list(sequence.shape)} and input value tensor {list(values.shape)}")
    check_ordered(values, "searchsorted")
    check_ordered(sequence, "searchsorted")
    if code != values.code:
        from .tensor import promote_types
        kind = promote_types(sequence.dtype, values.dtype)
        code = kind.code
    sequence, values = converted(sequence, code), converted(values, code)
    out = empty_tensor(I32 if out_int32 else I64, values.nd, values.sizes)
    arg[1] = sequence.sizes[sequence.nd - 1]
    if out.count == 0:
        return out
    if arg[1] == 0:
        zero_tensor(out)
        return out
    arg[0] = out.count if sequence.nd == 1 else values.sizes[values.nd - 1]
    arg[2] = arg[1] * ITEMSIZE[code]
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(values), address_of(sequence)
    key = code << 2 | right << 1 | out_int32
    fn = known(SEARCH, key << 1 | (sequence.nd > 1))
    if fn == NULL:
        fn = build(SEARCH, key << 1 | (sequence.nd > 1),
                   (NAMES[code], bool(right), "int32" if out_int32 else "int64", sequence.nd > 1))
    launch(fn, ptr, 3, arg, 3, out.count, 4096, False)
    return out
