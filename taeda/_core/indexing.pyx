"""Launchers of reads and writes by index: rows, elements along a dimension, masks.

An index out of range raises before anything is written. :mod:`taeda.ops.indexing` interprets indices (slices, masks,
broadcasting); here the indexed dimensions of a tensor are adjacent.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from .devices cimport (
    CPU_NUMBER, FROM_TABLE, META_NUMBER, TO_HOST, behind, devices, elsewhere, end_call, here, swap_place,
)
from .kernel_args cimport AlongArgs, RowArgs
from .planners cimport WRITE_RANGE, build, host_function, known, new_owner, of_family, of_number
from .dims cimport merge_dims
from .memory cimport release_scratch, take_scratch
from .pool cimport PIECE_BYTES as PIECE, UNHEARD, Watch, heed, kernel_t, launch as run_kernel, launch_units, watch
from .recorder cimport note_flag, refuse_recording
from .tensor cimport (
    I64, ITEMSIZE, KIND, MAXDIM, REAL_OF, Tensor, address_of, address_to_read, alias_tensor, contiguous_tensor,
    copy_into, elements_of, empty_tensor, to_host, zero_tensor,
)

from .tensor import DTYPE_NAMES

cdef enum:
    ONE = 0, RUN, STRIDED, FILL, EACH    # kinds of rows: see kernels/indexing.py
    OFFSET = 0, PLAIN, WRAP              # kinds of index entries
    SMALL_BYTES = 1 << 17                # bytes of work below which one thread does all
    PART_BYTES = 1 << 16                 # bytes of the indexed side that are moved before the next ones
    BLOCK = 4096                         # as in kernels/indexing.py
    AT_ONCE = 1 << 26                    # bytes of work between two looks for Ctrl-C
    LEAST_SHARED = 64                    # bytes of a run that the threads of a warp share
    MOST_PARTS = 256                     # of the indexed side, on a device

cdef tuple ACTIONS = ("get", "put", "add", "mul", "min", "max")
cdef tuple INNER = ("1", "c", "v", "f", "e")
cdef tuple HOW = ("offset", "plain", "wrap")
cdef tuple LAYOUTS = ("any", "last", "dense", "run")
cdef tuple NAMES = DTYPE_NAMES
cdef uint64_t ROWS = new_owner("indexing.rows"), ADD_ROWS = new_owner("indexing.accumulate_rows")
cdef uint64_t ALONG = new_owner("indexing.along"), OFFSETS = new_owner("indexing.offsets")
cdef uint64_t CHECK = new_owner("indexing.check_bounds"), POSITIONS = new_owner("indexing.mask_positions")
cdef uint64_t COUNT_MASK = new_owner("indexing.count_mask"), TOTAL = new_owner("indexing.running_total")
cdef uint64_t EXTENT = new_owner("indexing.extent"), BINCOUNT = new_owner("indexing.bincount")
cdef uint64_t SELECT = new_owner("indexing.mask_select"), SCATTER = new_owner("indexing.mask_scatter")


cdef int launch(kernel_t fn, char** ptr, int nptr, const int64_t* arg, int narg, int64_t total,
                int64_t unit_bytes) except -1:
    """Run a kernel; each unit is ``unit_bytes`` bytes of work."""
    launch_units(fn, ptr, nptr, arg, narg, total, max(unit_bytes, <int64_t>16), SMALL_BYTES)
    return 0


cdef Tensor as_index(Tensor t):
    """The index as contiguous int64."""
    cdef Tensor made
    if t.code == I64:
        return contiguous_tensor(t)
    made = empty_tensor(I64, t.nd, t.sizes)
    copy_into(made, t)
    return made


def int64_index(Tensor t):
    """``t`` as contiguous int64; ``t`` itself if it is that already."""
    return as_index(t)


cdef tuple OUT_OF_RANGE = (IndexError, "an index is out of range")
cdef tuple OUT_OF_BOUNDS = (RuntimeError, "an index is out of bounds")


cdef char* flag_there(int64_t* flag, int64_t nbytes, tuple error) except NULL:
    cdef char* there
    if here() <= META_NUMBER:
        note_flag(flag, nbytes)
        return <char*>flag
    if behind[here()].report != NULL:
        there = behind[here()].report(here(), <PyObject*>error)
        if there == NULL:
            end_call()
        return there
    there = <char*>take_scratch(nbytes)
    if there == NULL:
        end_call()
        raise MemoryError(f"no memory for a flag of {nbytes} bytes")
    devices[here()].copy(here(), there, flag, nbytes, FROM_TABLE)
    return there


cdef int flag_back(char* there, int64_t* flag, int64_t nbytes) except -1:
    if there != <char*>flag and behind[here()].report == NULL:
        devices[here()].copy(here(), flag, there, nbytes, TO_HOST)
        release_scratch(there, nbytes)
        end_call()
    return 0


cdef bint is_late() noexcept:
    return here() > META_NUMBER and behind[here()].report != NULL


cdef bint in_range(Tensor index, int64_t size, bint wrap, tuple error, char** found) except -1:
    """Whether all of a contiguous int64 index is within ``[0, size)`` (``[-size, size)`` with ``wrap``)."""
    cdef int64_t bad = 0
    cdef char* ptr[2]
    cdef kernel_t fn = known(CHECK, wrap)
    ptr[0], ptr[1] = flag_there(&bad, 8, error), address_of(index)
    launch(fn if fn != NULL else build(CHECK, wrap, (bool(wrap),)), ptr, 2, &size, 1, index.count, 8)
    flag_back(ptr[0], &bad, 8)
    if found != NULL:
        found[0] = ptr[0] if is_late() else NULL
    return bad == 0


def check_index(Tensor index, int64_t size, bint wrap=False):
    """Whether every element of an int64 index is within a dimension of that size."""
    return in_range(as_index(index), size, wrap, OUT_OF_RANGE, NULL)


def extent(Tensor index):
    """The smallest and the largest of a few adjacent int64 numbers; None for any other tensor."""
    cdef int64_t[2] found
    cdef char* ptr[2]
    cdef int before
    if index.code != I64 or not index.contiguous or not 0 < index.count * 8 <= SMALL_BYTES:
        return None
    if index.device_type > META_NUMBER:
        before = swap_place(CPU_NUMBER)
        try:
            return extent(to_host(index))
        finally:
            swap_place(before)
    ptr[0], ptr[1] = <char*>found, elements_of(index)
    run_kernel(of_family(EXTENT), ptr, 2, &index.count, 1, 1, 1, True)
    return found[0], found[1]


def counts(Tensor index, int64_t size):
    """The count of each number below ``size`` in a contiguous int64 vector of such numbers."""
    cdef Tensor made = empty_tensor(I64, 1, &size)
    cdef char* ptr[3]
    cdef kernel_t fn = known(BINCOUNT, 0)
    cdef int64_t done = 0, some = index.count if elsewhere else min(index.count, <int64_t>AT_ONCE // 8)
    cdef Watch w = watch(index.count)
    if index.device_type == CPU_NUMBER:
        elements_of(index)   # tells a recorder
    ptr[0], ptr[1], ptr[2] = address_of(made), address_of(index), NULL
    zero_tensor(made)
    if fn == NULL:
        fn = build(BINCOUNT, 0, (None,))
    while done < index.count:
        some = min(some, index.count - done)
        run_kernel(fn, ptr, 3, &some, 1, 1, 1, True)
        ptr[1] += some * 8
        done += some
        heed(&w, some)
    return made


cdef int raise_out_of_range(list indices, Tensor source, int first) except -1:
    """Raise an error that names the index out of range, once one is known to be."""
    cdef int k
    cdef int64_t i, n
    cdef Tensor t
    for k in range(len(indices)):
        t = <Tensor>indices[k]
        if t.device_type > META_NUMBER:
            t = to_host(t)
        n = source.sizes[first + k]
        for i in range(t.count):
            if (<int64_t*>elements_of(t))[i] < -n or (<int64_t*>elements_of(t))[i] >= n:
                raise IndexError(f"index {(<int64_t*>elements_of(t))[i]} is out of bounds for dimension {first + k} "
                                 f"with size {n}")
    raise IndexError("index out of range")


cdef struct Dims:
    int n
    int64_t size[MAXDIM + 1]      # the parts of complex numbers are one more dimension
    int64_t far[MAXDIM + 1]
    int64_t near[MAXDIM + 1]


cdef void add_dim(Dims* d, int64_t size, int64_t far, int64_t near) noexcept:
    """Append an inner dimension, merged with the last one where both sides allow it."""
    if size == 1:
        return
    d.size[d.n], d.far[d.n], d.near[d.n] = size, far, near
    d.n += 1
    if d.n > 1:
        d.n += merge_dims(d.size + d.n - 2, d.far + d.n - 2, 2, 2, MAXDIM + 1, 1) - 2


cdef Tensor total_offsets(list indices, Tensor source, int first, bint* good, char** found):
    """Byte offsets of several combined indices; ``found`` as of :func:`in_range`."""
    cdef int k, n = len(indices)
    cdef Tensor t = <Tensor>indices[0]
    cdef Tensor out = empty_tensor(I64, 1, &t.count)
    cdef int64_t arg[2 * MAXDIM]
    cdef char* ptr[2 + MAXDIM]
    cdef int64_t bad = 0
    cdef kernel_t fn = of_number(OFFSETS, n)
    ptr[0], ptr[1] = address_of(out), flag_there(&bad, 8, OUT_OF_RANGE)
    for k in range(n):
        t = <Tensor>indices[k]
        ptr[2 + k] = address_of(t)
        arg[2 * k] = source.sizes[first + k]
        arg[2 * k + 1] = source.strides[first + k] * ITEMSIZE[source.code]
    launch(fn, ptr, 2 + n, arg, 2 * n, out.count, 8 * n)
    flag_back(ptr[1], &bad, 8)
    good[0] = bad == 0
    found[0] = ptr[1] if is_late() else NULL
    return out


cdef int move_rows(Tensor far, Tensor near, list indices, int first, int action, bint wrap) except -1:
    """``far[..., index, ...]`` to or from ``near``, which has the dimensions of far before the index, of the index, and
    of far after it.

    ``indices`` are contiguous int64 tensors of one shape, one per indexed dimension.
    """
    cdef int m = len(indices), d, k, how, inner, key, item = ITEMSIZE[near.code], code = near.code
    cdef Tensor index = <Tensor>indices[0]
    cdef int nb = index.nd
    cdef int64_t total = index.count, step, bad = 0, p = 1, work, low = 0, extent = 1
    cdef Dims outer, rest, middle
    cdef RowArgs arg
    cdef char* ptr[4]
    cdef char* found = NULL      # where a check has written that the rows must not be
    cdef bint good = True
    cdef kernel_t fn
    cdef int64_t apart = 0
    for d in range(m if total else 0):
        if far.sizes[first + d] == 0:
            raise IndexError(f"index is out of bounds for dimension {first + d} with size 0")
    if near.count == 0:
        for d in range(m if total and not wrap else 0):
            if not in_range(<Tensor>indices[d], far.sizes[first + d], False, OUT_OF_RANGE, NULL):
                raise IndexError(f"index is out of bounds for dimension {first + d} with size {far.sizes[first + d]}")
        return 0
    for d in range(m):
        step = (far.sizes[first + d] - 1) * far.strides[first + d] * item
        low += min(step, 0)
        extent += abs(step)
    outer.n = rest.n = middle.n = 0
    for d in range(first):
        add_dim(&outer, far.sizes[d], far.strides[d] * item, near.strides[d] * item)
    for d in range(nb):
        add_dim(&middle, index.sizes[d], 0, near.strides[first + d] * item)
    for d in range(first + m, far.nd):
        add_dim(&rest, far.sizes[d], far.strides[d] * item, near.strides[d - m + nb] * item)
    if action > PUT and KIND[code] == 3:  # sums of complex numbers are sums of their parts
        code = REAL_OF[code]
        item //= 2
        add_dim(&rest, 2, item, item)
    if outer.n > 2 or rest.n > 2 or middle.n > 1:
        return move_rows_slowly(far, near, indices, first, action, wrap, outer.n > 2 or rest.n > 2)
    if m > 1:
        index = total_offsets(indices, far, first, &good, &found)
        if not good:
            raise_out_of_range(indices, far, first)
        how, step = OFFSET, 0
    else:
        if action != GET and not in_range(index, far.sizes[first], wrap, OUT_OF_RANGE, &found):
            raise_out_of_range(indices, far, first)
        how, step = (WRAP if wrap else PLAIN), far.strides[first] * ITEMSIZE[near.code]
    memset(&arg, 0, sizeof(arg))
    arg.nb = total
    arg.n0 = rest.size[rest.n - 1] if rest.n else 1
    arg.n1 = rest.size[0] if rest.n == 2 else 1
    arg.pb = outer.size[outer.n - 1] if outer.n else 1
    for k in range(outer.n):
        p *= outer.size[k]
    if rest.n:
        arg.far_n0, arg.near_n0 = rest.far[rest.n - 1], rest.near[rest.n - 1]
    else:
        arg.far_n0, arg.near_n0 = item, item
    if rest.n == 2:
        arg.far_n1, arg.near_n1 = rest.far[0], rest.near[0]
    if outer.n:
        arg.far_pb, arg.near_pb = outer.far[outer.n - 1], outer.near[outer.n - 1]
    if outer.n == 2:
        arg.far_pa, arg.near_pa = outer.far[0], outer.near[0]
    arg.near_b = middle.near[0] if middle.n else 0
    arg.size, arg.stride = far.sizes[first], step
    if rest.n == 0 and outer.n == 0 and (action != GET or arg.near_b == item or total == 1):
        inner = ONE
        if total == 1:
            arg.near_b = item
    elif rest.n == 0 and action <= PUT and (action != GET or arg.near_b == item or total == 1):
        inner = EACH
        if total == 1:
            arg.near_b = item
    elif rest.n == 0 and action > PUT:
        inner = ONE
    elif arg.far_n0 == item and arg.near_n0 == item and rest.n:
        inner = RUN
    elif action == PUT and arg.near_n0 == 0:
        inner = FILL
    else:
        inner = STRIDED
    if here() > META_NUMBER:
        if action == GET:
            inner = RUN if inner == RUN and arg.n0 * item >= LEAST_SHARED else STRIDED
        elif inner == ONE or inner == EACH:
            inner = RUN
    ptr[1] = found if found != NULL else flag_there(&bad, 8, OUT_OF_RANGE)
    ptr[3] = address_to_read(index)
    ptr[0], ptr[2] = ((address_of(near), address_to_read(far)) if action == GET
                      else (address_of(far), address_to_read(near)))
    work = arg.n0 * arg.n1 * item
    if here() > META_NUMBER:
        apart = work if inner == RUN else item
    if action <= PUT:
        key = item << 16 | action << 8 | inner << 4 | how
        fn = known(ROWS, key)
        if fn == NULL:
            fn = build(ROWS, key, (item, ACTIONS[action], INNER[inner], HOW[how]))
        if inner == EACH:
            launch(fn, ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, p, total * item)
        elif action == PUT:
            launch_ordered(fn, ptr, &arg, p, total if inner == ONE else 1, work, low, extent, apart)
        else:
            launch(fn, ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, p * total, work)
        flag_back(ptr[1], &bad, 8)
        if bad:
            raise_out_of_range(indices, far, first)
    else:
        key = code << 16 | action << 8 | inner << 4 | how
        fn = known(ADD_ROWS, key)
        if fn == NULL:
            fn = build(ADD_ROWS, key, (NAMES[code], ACTIONS[action], INNER[inner], HOW[how]))
        launch_ordered(fn, ptr, &arg, p, 1, work, low, extent, apart)
        flag_back(ptr[1], &bad, 8)
    return 0


cdef struct Ranges:      # the indexed side's kernel and units, and the first byte and the bytes of a range
    RowArgs rows
    int64_t kernel, units, low, nbytes


cdef int launch_ordered(kernel_t fn, char** ptr, RowArgs* arg, int64_t p, int64_t units, int64_t work, int64_t low,
                        int64_t extent, int64_t apart) except -1:
    """Keep writes to one place in the order of the index: a thread does the whole index, for its outer positions or for
    the rows of the indexed side that it owns.

    There are ``p`` outer positions, ``units`` of the kernel for each, ``work`` bytes of each row, and byte offsets of
    rows within ``extent`` from ``low`` on. Threads that shared parts of rows took three times as long as one: the
    processor prefetches lines of the other thread's part. On a device the threads of a warp share a row; rows begin
    ``apart`` bytes from each other, or more.
    """
    cdef int64_t total = arg.nb * work, parts = 8 if work >= 1024 else 4
    cdef int64_t done = 0, whole = arg.nb, some = max(AT_ONCE // max(p * work, 1), 1)
    cdef Ranges ranges
    cdef RowArgs part
    cdef char* at[4]
    cdef Watch w = watch(whole)
    if whole > some and not elsewhere:  # a part of the index at a time
        part = arg[0]
        while done < whole:
            part.nb = min(some, whole - done)
            at[0], at[1], at[2], at[3] = ptr[0], ptr[1], ptr[2] + done * arg.near_b, ptr[3] + done * 8
            launch_ordered(fn, at, &part, p, part.nb if units > 1 else 1, work, low, extent, apart)
            done += part.nb
            heed(&w)
        return 0
    arg.low, arg.high, arg.parts = low, low + extent, 1
    if apart:
        if p >> 32:
            raise RuntimeError(f"writes by an index at {p} outer positions are too many for one launch")
        arg.parts = max(min(extent // apart + 1, MOST_PARTS // p), <int64_t>1)
        arg.high = low + (extent + arg.parts - 1) // arg.parts
        run_kernel(fn, ptr, 4, <int64_t*>arg, sizeof(RowArgs) // 8, p * arg.parts, 1, True)
        return 0
    cdef bint small = p * total <= (2 if p >= 8 else 4) * PIECE or (p == 1 and work < 128)
    if small or p >= 8 or work < 128:
        run_kernel(fn, ptr, 4, <int64_t*>arg, sizeof(RowArgs) // 8, p * units,
                   (PIECE // total + 1 if total < PIECE else 1) * units, small)
    else:
        ranges.rows, ranges.kernel, ranges.units = arg[0], <int64_t>fn, p * units
        ranges.low, ranges.nbytes = low, (extent + parts - 1) // parts
        run_kernel(host_function(WRITE_RANGE), ptr, 4, <int64_t*>&ranges, sizeof(ranges) // 8, parts, 1, False)
    return 0


cdef int move_rows_slowly(Tensor far, Tensor near, list indices, int first, int action, bint wrap,
                          bint far_too) except -1:
    """Layouts that the kernel's arguments do not cover, through contiguous copies."""
    cdef Tensor f = contiguous_tensor(far) if far_too else far
    cdef Tensor n
    if action == GET:
        n = near if near.contiguous else empty_tensor(near.code, near.nd, near.sizes)
        move_rows(f, n, indices, first, action, wrap)
        if n is not near:
            copy_into(near, n)
        return 0
    n = contiguous_tensor(near)
    move_rows(f, n, indices, first, action, wrap)
    if f is not far:
        copy_into(far, f)
    return 0


cdef Tensor take_rows(Tensor source, list indices, int first, bint wrap):
    """``source[:, ..., index 0, index 1, ..., :]`` for contiguous int64 indices of one shape."""
    cdef int64_t sizes[MAXDIM]
    cdef int d, n = 0, m = len(indices)
    cdef Tensor index = <Tensor>indices[0]
    cdef Tensor out
    if source.nd - m + index.nd > MAXDIM:
        raise IndexError(f"a tensor has at most {MAXDIM} dimensions")
    for d in range(first):
        sizes[n] = source.sizes[d]
        n += 1
    for d in range(index.nd):
        sizes[n] = index.sizes[d]
        n += 1
    for d in range(first + m, source.nd):
        sizes[n] = source.sizes[d]
        n += 1
    out = empty_tensor(source.code, n, sizes)
    move_rows(source, out, indices, first, GET, wrap)
    return out


def index_get(Tensor source, list indices, int first, bint wrap=True):
    """``source[:, ..., index 0, index 1, ..., :]``: indices of one shape, for the dimensions from ``first`` on."""
    return take_rows(source, [as_index(<Tensor>t) for t in indices], first, wrap)


def index_set(Tensor target, list indices, int first, Tensor values, int action=PUT, bint wrap=True):
    """Write ``values``, of the shape of :func:`index_get`'s result, or accumulate them (``action``).

    ``action`` is 1 to write, 2 to add, 3 to multiply, 4 for the minimum, 5 for the maximum. If several writes go to one
    place, the last one counts.
    """
    cdef list ready = [as_index(<Tensor>t) for t in indices]
    move_rows(target, values, ready, first, action, wrap)


# ---- along a dimension -----------------------------------------------------------------------------------------------

def along(Tensor far, Tensor near, Tensor index, int dim, int action):
    """Gather from (``action`` 0) or scatter to ``far`` along ``dim``, at all positions of ``index``.

    ``near`` has at least the sizes of ``index``, and so has ``far`` in dimensions other than ``dim``. False if an index
    is out of range: then nothing was written.
    """
    return move_along(far, near, index, dim, action)


cdef Tensor first_sizes(Tensor t, Tensor like, int dim):
    """The part of ``t`` at the positions of ``like``; along ``dim``, all of it."""
    cdef int64_t sizes[MAXDIM]
    cdef int d
    for d in range(t.nd):
        sizes[d] = t.sizes[d] if d == dim else like.sizes[d]
    return alias_tensor(t, t.nd, sizes, t.strides, 0)


cdef bint move_along(Tensor far, Tensor near, Tensor index, int dim, int action) except -1:
    """:func:`along`. An index that is expanded after ``dim`` (one row number for a whole row) is not materialized."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int d, nd = index.nd
    cdef int64_t before = 1, repeated = 1, one = 1, size
    cdef char* found = NULL
    cdef Tensor at
    if index.count == 0:
        return True
    for d in range(nd):
        sizes[d], strides[d] = index.sizes[d], index.strides[d]
        if d > dim:
            repeated = 0 if sizes[d] > 1 and strides[d] else repeated * sizes[d]
            sizes[d] = 1
        elif d < dim and strides[d]:
            before *= sizes[d]
    if repeated < 2:
        return move_each(far, near, as_index(index), dim, action, False, NULL)
    for d in range(dim):
        if before == 1:
            sizes[d] = 1
    at = as_index(alias_tensor(index, nd, sizes, strides, 0))
    size = far.sizes[dim]
    if size == 0 or (action != GET or before == 1) and not in_range(at, size, False, OUT_OF_BOUNDS, &found):
        return False
    if before == 1:  # whole slices
        at = alias_tensor(at, 1, &at.count, &one, 0)
        move_rows(first_sizes(far, index, dim), first_sizes(near, index, -1), [at], dim, action, False)
        return True
    for d in range(nd):
        strides[d] = 0 if d > dim else at.strides[d]
    return move_each(far, near, alias_tensor(at, nd, index.sizes, strides, 0), dim, action, True, found)


cdef struct OuterDim:    # bytes from one position to the next on the two sides and in the index
    int64_t count, far, near, index


cdef struct Along:
    AlongArgs head
    OuterDim outer[MAXDIM]


cdef bint move_each(Tensor far, Tensor near, Tensor at, int dim, int action, bint trusted, char* found) except -1:
    """:func:`along` for an int64 index: contiguous, or at any strides where it was checked (``trusted``; ``found`` as
    of :func:`in_range`)."""
    cdef int d, nd = at.nd, inner, outer = 0, what, parts, kind, key
    cdef int item = ITEMSIZE[near.code], code = near.code
    cdef Along numbers
    cdef AlongArgs* arg = &numbers.head
    cdef OuterDim* o = numbers.outer
    cdef int64_t bad = 0, total = 1, size, size_bytes, units, some, done = 0, whole
    cdef char* ptr[4]
    cdef kernel_t fn
    cdef bint last
    cdef Watch w = watch(at.count)
    size = far.sizes[dim] if far.nd else 1
    if not trusted and action != GET and not in_range(at, size, False, OUT_OF_BOUNDS, &found):
        return False
    if size == 0:
        return False
    if action > PUT and KIND[code] == 3:
        return along_complex(far, near, at, dim, action)
    last = nd == 0 or dim == nd - 1
    inner = nd - 1
    memset(arg, 0, sizeof(AlongArgs))
    arg.nd = whole = at.sizes[dim] if nd else 1
    arg.nj = 1 if last else at.sizes[inner]
    arg.size = size
    if nd:
        arg.far_d, arg.near_d, arg.index_d = far.strides[dim] * item, near.strides[dim] * item, at.strides[dim] * 8
    if not last:
        arg.far_j, arg.near_j = far.strides[inner] * item, near.strides[inner] * item
        arg.index_j = at.strides[inner] * 8
        for d in range(nd - 2, dim, -1):  # merge dimensions that are adjacent in all three
            if far.strides[d] * item != arg.far_j * arg.nj or near.strides[d] * item != arg.near_j * arg.nj \
                    or at.strides[d] * 8 != arg.index_j * arg.nj:
                break
            arg.nj *= at.sizes[d]
            inner = d
    for d in range(nd):
        if d == dim or (d >= inner and not last) or at.sizes[d] == 1:
            continue
        o[outer].count, o[outer].index = at.sizes[d], at.strides[d] * 8
        o[outer].far, o[outer].near = far.strides[d] * item, near.strides[d] * item
        total *= at.sizes[d]
        outer += 1
    if outer > 1:
        outer = merge_dims(&o.count, &o.far, outer, 3, 1, 4)
    if here() > META_NUMBER and action == GET:  # a thread for each item: all positions are outer ones
        o[outer].count, o[outer].index = arg.nd, arg.index_d
        o[outer].far, o[outer].near = 0, arg.near_d
        total *= arg.nd
        outer += 1
        arg.nd = whole = 1
    # Units: outer positions times parts of the inner dimension. The indexed side of a part should stay in the cache,
    # and a part has at least 256 items (with 64, 1024 x 1024 float32 took 5.8 ms, with 256 3.1).
    arg.chunk = arg.nj
    if here() > META_NUMBER:
        arg.chunk = 1
    elif not last and at.count >= 16384:
        size_bytes = size * item
        arg.chunk = max(PART_BYTES // size_bytes if size_bytes < PART_BYTES else 1, <int64_t>256)
        if total < 16 and arg.index_j == 0:  # whole runs are moved
            arg.chunk = (arg.nj + 7) // 8
    parts = <int>((arg.nj + arg.chunk - 1) // arg.chunk)
    units = total * parts
    what = item if action <= PUT else code
    kind = <int>last
    if here() > META_NUMBER:
        pass
    elif last and arg.far_d == item and arg.near_d == item and arg.index_d == 8:
        kind = 2
    elif not last and arg.index_j == 0 and arg.far_j == item and arg.near_j == item:
        kind = 3
    key = what << 24 | action << 16 | kind << 8 | outer
    fn = known(ALONG, key)
    if fn == NULL:
        fn = build(ALONG, key, (item if action <= PUT else NAMES[code], ACTIONS[action], LAYOUTS[kind], outer))
    ptr[0], ptr[2] = ((address_of(near), address_to_read(far)) if action == GET
                      else (address_of(far), address_to_read(near)))
    ptr[1] = found if found != NULL else flag_there(&bad, 8, OUT_OF_BOUNDS)
    ptr[3] = address_to_read(at)
    some = max(AT_ONCE // 16 * arg.nd // at.count, 1) if not elsewhere else arg.nd
    while done < whole:  # a part of the index at a time
        arg.nd = min(some, whole - done)
        launch(fn, ptr, 4, <int64_t*>&numbers, <int>(sizeof(AlongArgs) + outer * sizeof(OuterDim)) // 8, units,
               at.count // whole * arg.nd // units * 16)
        ptr[0 if action == GET else 2] += arg.nd * arg.near_d
        ptr[3] += arg.nd * arg.index_d
        done += arg.nd
        heed(&w)
    flag_back(ptr[1], &bad, 8)
    return bad == 0


cdef bint along_complex(Tensor far, Tensor near, Tensor at, int dim, int action) except -1:
    """Add complex numbers part by part."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t index_strides[MAXDIM]
    cdef Tensor t, index
    cdef int k, d, n
    cdef list made
    if at.nd == 0 or far.nd == 0 or near.nd == 0:
        return along_complex(far if far.nd else expanded(far), near if near.nd else expanded(near),
                             at if at.nd else expanded(at), dim, action)
    made = []
    for k in range(2):
        t = far if k == 0 else near
        n = t.nd
        for d in range(n):
            sizes[d], strides[d] = t.sizes[d], t.strides[d] * 2
        sizes[n], strides[n] = 2, 1
        t = alias_tensor(t, n + 1, sizes, strides, 0)
        t.code = REAL_OF[t.code]
        made.append(t)
    for d in range(at.nd):
        sizes[d], index_strides[d] = at.sizes[d], at.strides[d]
    sizes[at.nd], index_strides[at.nd] = 2, 0
    index = alias_tensor(at, at.nd + 1, sizes, index_strides, 0)
    return move_along(made[0], made[1], index, dim, action)


cdef Tensor expanded(Tensor t):
    cdef int64_t one = 1
    return alias_tensor(t, 1, &one, &one, 0)


# ---- masks -----------------------------------------------------------------------------------------------------------

cdef Tensor count_true(Tensor mask):
    """The number of true elements before each block of a contiguous mask, and of all (the last element)."""
    cdef int64_t blocks = (mask.count + BLOCK - 1) // BLOCK, n = mask.count, m = blocks + 1
    cdef Tensor counts = empty_tensor(I64, 1, &blocks)
    cdef Tensor starts = empty_tensor(I64, 1, &m)
    cdef char* ptr[2]
    ptr[0], ptr[1] = address_of(counts), address_of(mask)
    launch(of_family(COUNT_MASK), ptr, 2, &n, 1, blocks, BLOCK)
    ptr[0], ptr[1] = address_of(starts), address_of(counts)
    launch(of_family(TOTAL), ptr, 2, &blocks, 1, 1, 1)
    return starts


cdef inline int64_t last_of(Tensor starts) except -1:
    cdef Tensor last = alias_tensor(starts, 0, NULL, NULL, starts.count - 1)
    return (<int64_t*>elements_of(to_host(last) if last.device_type > META_NUMBER else last))[0]


def mask_starts(Tensor mask):
    """``(starts, total)`` of a contiguous mask of bytes, for kernels that work by blocks."""
    cdef Tensor starts = count_true(mask)
    return starts, last_of(starts)


def true_positions(Tensor mask, Tensor starts=None):
    """Coordinates of the true elements in row-major order: the rows of a column-major int64 matrix.

    ``starts`` is the result of :func:`mask_starts`, if it is known.
    """
    return positions_of(mask, starts)


cdef Tensor positions_of(Tensor mask, Tensor starts=None):
    cdef Tensor m = contiguous_tensor(mask)
    if starts is None:
        starts = count_true(m)
    cdef int64_t sizes[2]
    cdef int64_t strides[2]
    cdef int64_t arg[MAXDIM + 2]
    cdef char* ptr[3]
    cdef int d, nd = m.nd
    sizes[0], sizes[1] = nd, last_of(starts)
    cdef Tensor out = empty_tensor(I64, 2, sizes)
    sizes[0], sizes[1] = last_of(starts), nd
    strides[0], strides[1] = 1, sizes[0]
    out = alias_tensor(out, 2, sizes, strides, 0)
    if out.count == 0:
        return out
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(m), address_of(starts)
    arg[0] = m.count
    for d in range(1, nd):
        arg[d] = m.sizes[d]
    arg[nd] = sizes[0]
    launch(of_number(POSITIONS, nd), ptr, 3, arg, nd + 1, starts.count - 1, BLOCK * 8)
    return out


def mask_get(Tensor source, Tensor mask, Tensor starts=None):
    """The elements of ``source`` where ``mask``, of the same shape, is true; ``starts`` as for
    :func:`true_positions`."""
    return select_where(source, mask, starts)


cdef Tensor select_where(Tensor source, Tensor mask, Tensor starts=None):
    cdef Tensor m = contiguous_tensor(mask)
    cdef Tensor s = contiguous_tensor(source)
    if starts is None:
        starts = count_true(m)
    cdef int64_t n = last_of(starts)
    cdef Tensor out = empty_tensor(s.code, 1, &n)
    cdef char* ptr[4]
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(out), address_of(s), address_of(m), address_of(starts)
    if n:
        launch(of_number(SELECT, ITEMSIZE[s.code]), ptr, 4, &m.count, 1, starts.count - 1, BLOCK * 8)
    return out


def mask_set(Tensor target, Tensor mask, Tensor source):
    """Write the elements of ``source``, in order, where ``mask`` is true; False if there are too few of them."""
    cdef Tensor m = contiguous_tensor(mask)
    cdef Tensor s = contiguous_tensor(source)
    cdef Tensor t = contiguous_tensor(target)
    cdef Tensor starts = count_true(m)
    cdef char* ptr[4]
    if here() != META_NUMBER and last_of(starts) > s.count:
        return False
    refuse_recording(b"elements are counted")
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(t), address_of(s), address_of(m), address_of(starts)
    launch(of_number(SCATTER, ITEMSIZE[t.code]), ptr, 4, &m.count, 1, starts.count - 1, BLOCK * 8)
    if t is not target:
        copy_into(target, t)
    return True
