"""Bodies of the most frequent indexing ops, and ``x[index]`` with tensors, lists and masks.

Wrong arguments are detected here; the errors are raised by ``EXPLAIN``, functions of :mod:`taeda.ops.scatter`.
"""

import warnings

from cpython.float cimport PyFloat_Check
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_Check
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_Check
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from .callbacks import callbacks
from .exchange import copied
from .indexing cimport (
    ADD, GET, MUL, OUT_OF_BOUNDS, OUT_OF_RANGE, PUT, as_index, in_range, is_late, move_along, move_rows, positions_of,
    select_where, take_rows,
)
from .memory cimport n_deferred
from .recorder cimport NUMBERS, note_filled
from .deferred_slices cimport computed_from, leaves_of
from .tensor import current_mode, fitting, is_infinite_in, memory_overlap
from .tensor cimport (
    BF16,
    BOOL,
    F16,
    I8,
    I16,
    I32,
    I64,
    KIND,
    MAXDIM,
    NOTHING,
    U8,
    Tensor, address_of,
    alias_tensor,
    check_number,
    contiguous_tensor,
    copy_into,
    empty_tensor,
    host_tensor,
    uploaded,
    wrap_dim, has_mode,
)


cdef str INDEX_MEND = "convert a mask with bool(), positions with long()"

cdef enum:
    FEW = 16      # if at most one of so many elements is read, computing the others does not pay

#: Functions that raise, by the kind of error.
EXPLAIN = {}
#: Ops and functions that implement indexing: index, index_put_, masked_select, masked_fill_, assign, tensor.
OPS = {}


cdef inline bint is_mask(Tensor t) noexcept:
    return t.code == BOOL or t.code == U8


cpdef int refuse_shared(Tensor given, Tensor target) except -1:
    """Raise where ``given``, which is read, shares memory with ``target``, which is written."""
    if given.storage is target.storage and memory_overlap(target, given):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer "
                           "to a single memory location. Please clone() the tensor before performing the operation.")
    return 0


cpdef Tensor unaliased(Tensor values, Tensor target):
    """``values``, copied if they lie between the elements of ``target``; refused if they share its memory."""
    cdef Tensor own
    if values.storage is not target.storage:
        return values
    refuse_shared(values, target)
    own = empty_tensor(values.code, values.nd, values.sizes)
    copy_into(own, values)
    return own


cdef Tensor filled(object value, int code, int nd, const int64_t* sizes):
    """A tensor with one number, which may be in a tensor, everywhere, by strides of 0."""
    cdef int64_t strides[MAXDIM]
    cdef int d
    cdef Tensor one = empty_tensor(code, 0, NULL)
    if isinstance(value, Tensor):
        copy_into(one, <Tensor>value)
    else:
        one.fill_(value)
    for d in range(nd):
        strides[d] = 0
    return alias_tensor(one, nd, sizes, strides, 0)


# ---- along a dimension -----------------------------------------------------------------------------------------------

cdef bint fits(Tensor input, int at, Tensor index, Tensor src) noexcept:
    """Whether an index, and the source, have sizes that gather and scatter accept."""
    cdef int d, n = index.nd if index.nd else 1
    if index.code != I64 and index.code != I32:
        return False
    if index.count == 0:
        return True
    if n != (input.nd if input.nd else 1):
        return False
    for d in range(index.nd):
        if d != at and index.sizes[d] > (input.sizes[d] if input.nd else 1):
            return False
    if src is not None:
        if n != (src.nd if src.nd else 1):
            return False
        for d in range(index.nd):
            if index.sizes[d] > (src.sizes[d] if src.nd else 1):
                return False
    return True


def gather(Tensor input, dim, Tensor index, sparse_grad=False):
    """The body of ``taeda.gather``."""
    cdef int at = wrap_dim(dim, input.nd, "gather")
    cdef int before
    cdef Tensor out
    if index.count and not fits(input, at, index, None):
        EXPLAIN["along"]("gather", input, at, index, None)
    if n_deferred and index.nd == input.nd and index.count * FEW <= input.count:  # compute only the gathered elements
        leaves = leaves_of(input)
        if leaves is not None:
            before = n_deferred
            leaves = [gather(leaf, at, index) for leaf in leaves]
            if n_deferred == before:  # none of it has been computed since
                return computed_from(input, leaves, index)
    out = empty_tensor(input.code, index.nd, index.sizes)
    if index.count and not move_along(as_vector(input), as_vector(out), as_vector(index), at, GET):
        EXPLAIN["range"]("gather", index, input, at)
    return out


cdef inline bint in_python(Tensor target, int action) noexcept:
    """Whether the kernels of an action are not enough: they round after every item where one rounding at the end is
    due, and a product of real parts is no complex product."""
    return ((action == ADD or action == MUL) and (target.code == F16 or target.code == BF16)) or (
        action == MUL and KIND[target.code] == 3)


cdef int write_along(str name, Tensor input, object dim, Tensor index, object src, int action) except -1:
    cdef int at = wrap_dim(dim, input.nd, name)
    cdef Tensor near = <Tensor>src if isinstance(src, Tensor) else None
    if index.count == 0:
        return 0
    if not fits(input, at, index, near) or (near is not None and near.code != input.code):
        EXPLAIN["along"](name, input, at, index, src)
    refuse_shared(index, input)
    if near is None:
        check_number(src, input.code)
        near = filled(src, input.code, index.nd, index.sizes)
    else:
        near = unaliased(near, input)
    if in_python(input, action):
        if not in_range(as_index(as_vector(index)), input.sizes[at] if input.nd else 1, False, OUT_OF_BOUNDS, NULL):
            EXPLAIN["range"](name, index, input, at)
        OPS["write_along"](name, as_vector(input), at, as_vector(index), as_vector(near), action)
        return 0
    if not move_along(as_vector(input), as_vector(near), as_vector(index), at, action):
        EXPLAIN["range"](name, index, input, at)
    return 0


def write(str name, Tensor input, dim, Tensor index, src, int action):
    """Write or accumulate ``src``, a tensor or a number, along a dimension; ``_core.indexing`` lists the actions."""
    write_along(name, input, dim, index, src, action)


def scatter(Tensor input, dim, Tensor index, src=None, reduce=None, value=None):
    """The body of ``taeda.scatter``."""
    if src is None:
        src = value
    if reduce is None and src is not None:
        write_along("scatter", input, dim, index, src, PUT)
    elif src is None:
        raise TypeError("scatter(): missing argument 'src' or 'value'")
    elif reduce != "add" and reduce != "multiply":
        raise RuntimeError(f"scatter(): reduce argument must be either add or multiply, got {reduce}")
    else:
        write_along("scatter", input, dim, index, src, ADD if reduce == "add" else MUL)


def scatter_add(Tensor input, dim, Tensor index, src):
    """The body of ``taeda.scatter_add``."""
    write_along("scatter_add", input, dim, index, src, ADD)


# ---- slices ----------------------------------------------------------------------------------------------------------

cdef Tensor as_vector(Tensor t):
    """A 0-dimensional tensor as a vector."""
    cdef int64_t one = 1
    return alias_tensor(t, 1, &one, &one, 0) if t.nd == 0 else t


cdef Tensor slice_index(str name, Tensor index):
    if index.nd > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, got shape {list(index.shape)}")
    if index.code != I64 and index.code != I32:
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index, got {index.dtype}")
    return as_index(as_vector(index))


def index_select(Tensor input, dim, Tensor index):
    """The body of ``taeda.index_select``."""
    cdef int at = wrap_dim(dim, input.nd, "index_select")
    cdef Tensor i = slice_index("index_select", index)
    cdef Tensor out
    if input.nd == 0:
        if index.count != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.count} value(s)")
        out = take_rows(as_vector(input), [i], 0, False)
        return alias_tensor(out, 0, NULL, NULL, 0)
    try:
        return take_rows(input, [i], at, False)
    except IndexError:
        if not is_late():  # otherwise it belongs to another call
            EXPLAIN["slices"](index, input, at)
        raise


def index_add(Tensor input, dim, Tensor index, Tensor source, alpha=1):
    """The body of ``taeda.index_add``."""
    if alpha != 1:
        source = source * fitting(alpha, source.dtype)
    write_slices("index_add_", input, dim, index, source, ADD)


def check_value(value, Tensor input):
    """Refuse a number, or a tensor of one, that the dtype of ``input`` cannot hold. Under a mode no tensor is read."""
    if not isinstance(value, Tensor):
        check_number(value, input.code)
    elif (<Tensor>value).code != input.code and not (<Tensor>value).is_meta and current_mode() is None:
        check_number(value.item(), input.code)


def index_fill(Tensor input, dim, Tensor index, value):
    """The body of ``taeda.index_fill``."""
    cdef int64_t sizes[MAXDIM]
    cdef int d, at = wrap_dim(dim, input.nd, "index_fill")
    cdef Tensor i, target = as_vector(input)
    if index.code != I64:
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, got {index.dtype}")
    if index.nd > 1:
        raise RuntimeError(f"index_fill_(): Index is supposed to be a vector, got shape {list(index.shape)}")
    i = slice_index("index_fill", index)
    if isinstance(value, Tensor) and (<Tensor>value).nd:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{(<Tensor>value).nd} dimension(s).")
    if PyComplex_Check(value) and KIND[input.code] != 3:
        raise RuntimeError(f"index_fill_(): Converting complex Scalar to non-complex type is not supported: {value} "
                           f"for {input.dtype}")
    check_value(value, input)
    if i.count == 0 or target.count == 0:
        return
    refuse_shared(index, input)
    for d in range(target.nd):
        sizes[d] = target.sizes[d]
    sizes[at] = i.count
    move_rows(target, filled(value, input.code, target.nd, sizes), [i], at, PUT, True)


def index_copy(Tensor input, dim, Tensor index, Tensor source):
    """The body of ``taeda.index_copy``."""
    cdef int64_t ones[MAXDIM]
    cdef int d
    if source.nd == 0:
        for d in range(input.nd):
            ones[d] = 1
        source = alias_tensor(source, input.nd, ones, ones, 0)
    write_slices("index_copy_", input, dim, index, source, PUT)


def write_slices(str name, Tensor input, dim, Tensor index, Tensor source, int action):
    """Write slices of ``source`` along a dimension, or accumulate them there (``action`` of ``indexing.index_set``)."""
    cdef int at = wrap_dim(dim, input.nd, name), d
    cdef Tensor i = slice_index(name, index)
    cdef Tensor target = as_vector(input)
    cdef bint good = source.code == target.code
    if source.nd == 0:
        source = as_vector(source)
    good = good and source.nd == target.nd and i.count == source.sizes[at]
    for d in range(target.nd if good else 0):
        good = good and (d == at or source.sizes[d] == target.sizes[d])
    if not good:
        source = EXPLAIN["source"](name, target, at, i, source)
    if i.count == 0 or target.count == 0:
        return
    if not in_range(i, target.sizes[at], False, OUT_OF_RANGE if name == "index_copy_" else OUT_OF_BOUNDS, NULL):
        EXPLAIN["range"](name, index, target, at)
    refuse_shared(index, input)
    if in_python(target, action):
        OPS["write_slices"](name, target, at, i, source, action)
        return
    move_rows(target, unaliased(source, input), [i], at, action, False)


def embedding(Tensor weight, Tensor indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The body of ``taeda.embedding``."""
    if weight.nd != 2:
        raise RuntimeError(f"'weight' must be 2-D, got shape {list(weight.shape)}")
    if indices.code != I64 and indices.code != I32:
        raise RuntimeError("embedding: Expected tensor for argument #1 'indices' to have one of the following scalar "
                           f"types: Long, Int; but got {indices.dtype} instead; convert them with long()")
    try:
        return take_rows(weight, [as_index(indices)], 0, False)
    except IndexError:
        if not is_late():  # otherwise it belongs to another call
            EXPLAIN["slices"](indices, weight, 0)
        raise


def take(Tensor input, Tensor index):
    """The body of ``taeda.take``."""
    cdef int64_t one = 1
    cdef Tensor flat
    if index.code != I64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    if index.count == 0:
        return empty_tensor(input.code, index.nd, index.sizes)
    if input.count == 0:
        raise IndexError("take(): tried to take from an empty tensor")
    flat = contiguous_tensor(input)
    try:
        return take_rows(alias_tensor(flat, 1, &flat.count, &one, 0), [as_index(index)], 0, True)
    except IndexError:
        if not is_late():  # otherwise it belongs to another call
            EXPLAIN["take"](index, input)
        raise


# ---- several dimensions ----------------------------------------------------------------------------------------------

cdef int check_mask(Tensor mask, Tensor input, int at) except -1:
    """Refuse a mask that has not the sizes of the input from dimension ``at`` on."""
    if mask.nd > input.nd - at or memcmp(mask.sizes, input.sizes + at, mask.nd * sizeof(int64_t)):
        EXPLAIN["mask"](mask, input, at)
    return 0


cdef int refuse_bytes(Tensor input, object indices) except -1:
    """Writing one value where a mask says takes a mask of bools."""
    cdef int at, place = -1
    for at in range(len(indices)):
        if indices[at] is not None:
            if place >= 0:
                return 0
            place = at
    if place >= 0 and (<Tensor?>indices[place]).code == U8:
        check_mask(<Tensor>indices[place], input, place)
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype uint8")
    return 0


cdef list without_masks(Tensor input, object indices):
    """One integer tensor, or None, per dimension: a mask becomes the positions of its true elements."""
    cdef list found = []
    cdef Tensor t, positions
    cdef int d, at
    cdef int64_t stride = 1, rows
    for item in indices:
        if item is None:
            found.append(None)
            continue
        t = <Tensor?>item
        if not is_mask(t):
            if t.code != I64 and t.code != I32:
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors, got "
                                 f"{t.dtype}; {INDEX_MEND}")
            found.append(t)
            continue
        if t.code == U8:
            warnings.warn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead", UserWarning)
        at = len(found)
        check_mask(t, input, at)
        positions = positions_of(t if t.code == BOOL else t.ne(0))
        rows = positions.sizes[0]
        for d in range(t.nd):
            found.append(alias_tensor(positions, 1, &rows, &stride, d * rows))
    return found


cdef bint has_scalar_mask(object indices) except -1:
    for item in indices:
        if isinstance(item, Tensor) and (<Tensor>item).nd == 0 and is_mask(<Tensor>item):
            return True
    return False


cdef tuple without_scalar_masks(Tensor input, object indices):
    """The input with a dimension of one element for each mask without dimensions, and the indices with a mask of that
    dimension in its place."""
    cdef list found = []
    cdef Tensor t
    cdef int at = 0
    for item in indices:
        t = item if isinstance(item, Tensor) and is_mask(<Tensor>item) else None
        if t is not None and t.nd == 0:
            input = insert_dim(input, at)
            t = item = as_vector(t)
        found.append(item)
        at = min(at + (1 if t is None else t.nd), input.nd)  # too many are refused later
    return input, found


cdef Tensor insert_dim(Tensor t, int at):
    """A view with a dimension of one element at ``at``."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int d
    if t.nd == MAXDIM:
        raise IndexError(f"too many indices: a tensor has at most {MAXDIM} dimensions")
    for d in range(t.nd + 1):
        sizes[d] = 1 if d == at else t.sizes[d - (d > at)]
        strides[d] = 0 if d == at else t.strides[d - (d > at)]
    return alias_tensor(t, t.nd + 1, sizes, strides, 0)


cdef list broadcast(list tensors):
    """The index tensors broadcast to one shape, contiguous int64."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int nd = 0, d, at
    cdef bint same = True
    cdef Tensor t, first = <Tensor>tensors[0]
    cdef list result = []
    for item in tensors:
        t = <Tensor>item
        nd = t.nd if t.nd > nd else nd
        same = same and t.nd == first.nd and memcmp(t.sizes, first.sizes, t.nd * sizeof(int64_t)) == 0
    if same:
        return [as_index(<Tensor>item) for item in tensors]
    for d in range(nd):
        sizes[d] = 1
    for item in tensors:
        t = <Tensor>item
        for d in range(t.nd):
            at = nd - t.nd + d
            if t.sizes[d] != 1 and t.sizes[d] != sizes[at]:
                if sizes[at] != 1:
                    raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                                     + ", ".join([str(list(x.shape)) for x in tensors]))
                sizes[at] = t.sizes[d]
    for item in tensors:
        t = <Tensor>item
        for d in range(nd):
            at = d - (nd - t.nd)
            strides[d] = 0 if at < 0 or t.sizes[at] == 1 else t.strides[at]
        result.append(as_index(alias_tensor(t, nd, sizes, strides, 0)))
    return result


cdef Tensor plan(Tensor input, object indices, list tensors, int* first):
    """The input with its indexed dimensions adjacent from ``first`` on; fills ``tensors`` with their indices."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef list found = without_masks(input, indices)
    cdef int d, n = 0, last = -1
    if len(found) > input.nd:
        raise IndexError(f"too many indices for tensor of dimension {input.nd} (got {len(found)})")
    first[0] = 0
    for d in range(len(found)):
        if found[d] is not None:
            if not tensors:
                first[0] = d
            last = d
            tensors.append(found[d])
    if not tensors:
        return input
    n = len(tensors)
    tensors[:] = broadcast(tensors)
    if last - first[0] + 1 == n:
        return input
    first[0] = 0
    n = 0
    for d in range(len(found)):  # not adjacent: the indexed dimensions first, then the others
        if found[d] is not None:
            sizes[n], strides[n] = input.sizes[d], input.strides[d]
            n += 1
    for d in range(input.nd):
        if d >= len(found) or found[d] is None:
            sizes[n], strides[n] = input.sizes[d], input.strides[d]
            n += 1
    return alias_tensor(input, input.nd, sizes, strides, 0)


def index(Tensor input, indices):
    """The body of the op behind advanced indexing."""
    cdef int first
    cdef list tensors = []
    cdef Tensor view, out
    if has_scalar_mask(indices):
        input, indices = without_scalar_masks(input, indices)
    view = plan(input, indices, tensors, &first)
    if not tensors:
        out = empty_tensor(input.code, input.nd, input.sizes)
        copy_into(out, input)
        return out
    return take_rows(view, tensors, first, True)


def index_put(Tensor input, indices, Tensor values, accumulate=False):
    """The body of ``taeda.index_put``."""
    cdef int first, d, n, m, lead
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef list tensors = []
    cdef Tensor view, at
    if values.code != input.code:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {input.dtype} for the "
                           f"destination and {values.dtype} for the source.")
    for item in indices:
        if not isinstance(item, Tensor):
            continue
        if is_mask(<Tensor>item) and item.is_meta:
            return  # where it would write depends on values
        refuse_shared(<Tensor>item, input)
    if values.count == 1 and not accumulate:
        refuse_bytes(input, indices)
    if has_scalar_mask(indices):
        input, indices = without_scalar_masks(input, indices)
    view = plan(input, indices, tensors, &first)
    if not tensors:
        copy_into(input, input + values if accumulate else values)
        return
    at = <Tensor>tensors[0]
    m = len(tensors)
    n = 0
    for d in range(first):
        sizes[n] = view.sizes[d]
        n += 1
    for d in range(at.nd):
        sizes[n] = at.sizes[d]
        n += 1
    for d in range(first + m, view.nd):
        sizes[n] = view.sizes[d]
        n += 1
    values = unaliased(values, input)
    lead = n - values.nd
    if lead < 0:
        EXPLAIN["values"](values, [sizes[d] for d in range(n)])
    for d in range(n):
        if d < lead or (values.sizes[d - lead] == 1 and sizes[d] != 1):
            strides[d] = 0
        elif values.sizes[d - lead] == sizes[d]:
            strides[d] = values.strides[d - lead]
        else:
            EXPLAIN["values"](values, [sizes[d] for d in range(n)])
    move_rows(view, alias_tensor(values, n, sizes, strides, 0), tensors, first, ADD if accumulate else PUT, True)


def masked_select(Tensor input, Tensor mask):
    """The body of ``taeda.masked_select`` where shapes are equal, else None."""
    if mask.code != BOOL:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    if mask.nd != input.nd or memcmp(mask.sizes, input.sizes, mask.nd * sizeof(int64_t)):
        input, mask = EXPLAIN["together"](input, mask)
    return select_where(input, mask)


# ---- x[...] ----------------------------------------------------------------------------------------------------------

cdef object bound_of(object x):
    if x is None or PyLong_Check(x):
        return x
    if not hasattr(x, "__index__"):
        raise TypeError(f"slice indices must be integers or None or have an __index__ method, not {type(x).__name__}")
    return x.__index__()


cdef bint is_sequence(object x):
    return PyList_Check(x) or PyTuple_Check(x) or isinstance(x, range) or hasattr(x, "__array__")


cdef object as_items(object index):
    """The parts of an index. Like PyTorch, treat a list that holds more than numbers as a tuple."""
    if PyTuple_Check(index):
        return index
    if PyList_Check(index) and len(index) < 32:
        for item in index:
            if PyLong_Check(item):
                continue
            if item is None or item is Ellipsis or PySlice_Check(item) or hasattr(item, "__len__"):  # tensors, arrays
                warnings.warn("Using a non-tuple sequence for multidimensional indexing is deprecated; use "
                              "x[tuple(seq)] instead of x[seq]", UserWarning)
                return tuple(index)
    return (index,)


cdef Tensor as_index_tensor(object x):
    """A list, an array or a tensor as an integer tensor or a mask."""
    cdef Tensor t
    cdef int64_t zero = 0
    if isinstance(x, Tensor):
        t = <Tensor>x
    elif (PyList_Check(x) or PyTuple_Check(x)) and len(x) == 0:
        return empty_tensor(I64, 1, &zero)
    else:
        t = copied(list(x) if isinstance(x, range) else x)
        if t.count == 0 and KIND[t.code] == 2:
            return empty_tensor(I64, t.nd, t.sizes)
        if KIND[t.code] == 1 and t.code != I64 and t.code != I32 and not is_mask(t):
            t = t.long()
    if t.code != I64 and t.code != I32 and not (t.nd == 0 and KIND[t.code] == 1) and not is_mask(t):
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {t.dtype}; "
                         f"{INDEX_MEND}")
    return t


cdef Tensor one_mask(bint value):
    """A mask of one element, for a bool among the indices."""
    cdef int64_t one = 1
    cdef Tensor t = host_tensor(BOOL, 1, &one)
    address_of(t)[0] = value
    note_filled(address_of(t), NUMBERS)
    return uploaded(t)


cdef Tensor split_index(Tensor t, object index, list places):
    """Apply the basic part of an index as a view; ``places`` gets the tensor or None for each dimension of that view.

    A mask covers as many dimensions as it has.
    """
    cdef object items = as_items(index)
    cdef list basic = []
    cdef int used = 0, ellipsis = -1, at = 0, k
    cdef bint trivial = True
    cdef Tensor x
    cdef Py_ssize_t count
    for count, item in enumerate(items):
        if isinstance(item, Tensor) and (<Tensor>item).nd:
            x = as_index_tensor(item)
        elif isinstance(item, Tensor):
            x = <Tensor>item
            trivial = False
            if is_mask(x):
                basic.append(None)  # a dimension of size 1, kept or dropped
                places.append(item.reshape(1) if has_mode() else one_mask(bool(item)))  # a mode sees no bool
            elif x.holds == NOTHING and item._value_per_example:
                basic.append(ALL)
                places.append(as_index_tensor(item))
                used += 1
            else:
                as_index_tensor(item)
                basic.append(int(item))
                used += 1
            continue
        elif item is None:
            trivial = False
            basic.append(None)
            places.append(None)
            continue
        elif item is Ellipsis:
            if ellipsis >= 0:
                if all([rest is Ellipsis for rest in tuple(items)[count:]]):  # no more than the one before
                    break
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = len(places)
            basic.append(Ellipsis)
            continue
        elif PySlice_Check(item):
            if item.start is not None or item.stop is not None or item.step is not None:
                item = slice(bound_of(item.start), bound_of(item.stop), bound_of(item.step))
                trivial = False
            basic.append(item)
            places.append(None)
            used += 1
            continue
        elif PyBool_Check(item):
            trivial = False
            basic.append(None)
            places.append(one_mask(item))
            continue
        elif PyLong_Check(item):
            trivial = False
            basic.append(item)
            used += 1
            continue
        elif isinstance(item, str):
            raise TypeError(f"a tensor cannot be indexed with the string {item!r}")
        elif is_sequence(item) and hasattr(item, "__len__"):
            x = as_index_tensor(item)
            if x.nd == 0:
                trivial = False
                if is_mask(x):
                    basic.append(None)
                    places.append(one_mask(bool(x)))
                else:
                    basic.append(int(x))
                    used += 1
                continue
        elif hasattr(item, "__index__") and getattr(getattr(item, "dtype", None), "kind", None) != "b":  # no np.bool_
            trivial = False
            basic.append(item.__index__())
            used += 1
            continue
        else:
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte tensors are valid "
                             f"indices (got {type(item).__name__})")
        at = x.nd if is_mask(x) else 1
        for k in range(at):
            basic.append(ALL)
        places.append(x)
        used += at
    if used > t.nd:
        raise IndexError(f"too many indices for tensor of dimension {t.nd} (got {used} for shape {list(t.shape)})")
    if ellipsis >= 0:
        for k in range(t.nd - used):
            places.insert(ellipsis, None)
    return t if trivial else t[tuple(basic)]


cdef object ALL = slice(None)


cdef Tensor only_mask(list places, Tensor view):
    """The mask, in the shape of the indexed tensor, if it is the whole index."""
    cdef Tensor mask
    if places and places[0] is not None:
        mask = <Tensor>places[0]
        if mask.code == BOOL and mask.nd == view.nd and memcmp(mask.sizes, view.sizes, mask.nd * sizeof(int64_t)) == 0:
            return mask
    return None


cdef bint plain_view(list places):
    for item in places:
        if item is not None:
            return False
    return True


def getitem(Tensor t, item):
    """``t[item]`` where ``item`` holds tensors, lists, arrays or bools."""
    cdef list places
    cdef Tensor view, mask
    if isinstance(item, Tensor) and (<Tensor>item).code == I64 and (<Tensor>item).nd and t.nd:
        return OPS["index"](t, (item,))
    for x in item if type(item) is tuple else (item,):
        if not isinstance(x, Tensor) and hasattr(type(x), "__torch_function__"):  # its class decides
            return callbacks.overrides((<object>Tensor).__getitem__, (t, item), {})
    places = []
    view = split_index(t, item, places)
    mask = only_mask(places, view)
    if mask is not None:
        return OPS["masked_select"](view, mask)
    if plain_view(places):
        return view
    return OPS["index"](view, tuple(places))


def setitem(Tensor t, item, value):
    """``t[item] = value`` where ``item`` holds tensors, lists, arrays or bools."""
    cdef list places = []
    cdef Tensor view = split_index(t, item, places)
    cdef Tensor mask, x
    cdef int extra
    if plain_view(places):
        OPS["assign"](view, value)
        return
    mask = only_mask(places, view)
    if mask is not None and mask.device_type != view.device_type:
        mask = None  # masked_fill_ takes no mask of another device, index_put_ does
    if isinstance(value, Tensor):
        if mask is not None and (<Tensor>value).nd == 0:
            if (<Tensor>value).storage is view.storage:
                value = value.clone()  # it may be among the written tensors
            OPS["masked_fill_"](view, mask, value)
            return
        x = <Tensor>value
        if x.code != t.code:
            x = x.to(t.dtype)
    elif isinstance(value, (int, float, complex)):
        if is_infinite_in(t, value):
            value = filled(value, t.code, 0, NULL)
        if mask is not None:
            OPS["masked_fill_"](view, mask, value)
            return
        x = value if isinstance(value, Tensor) else filled(value, t.code, 0, NULL)
    else:
        x = OPS["tensor"](value, dtype=t.dtype)
    extra = x.nd - result_dims(view, places)
    while extra > 0 and x.sizes[0] == 1:  # leading dimensions of size 1 that the target does not have
        x = x[0]
        extra -= 1
    OPS["index_put_"](view, tuple(places), x)


cdef int result_dims(Tensor view, list places):
    """The number of dimensions of ``view[places]``."""
    cdef int used = 0, inner = 0, n
    cdef Tensor t
    for item in places:
        if item is not None:
            t = <Tensor>item
            used += t.nd if is_mask(t) else 1
            n = 1 if is_mask(t) else t.nd
            inner = n if n > inner else inner
    return view.nd - used + inner
