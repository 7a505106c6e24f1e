"""Launchers of row-wise kernels that keep the shape (softmax, norms), and of losses over classes."""

from .callbacks import callbacks
from .machine import stream_bytes
from .tensor import DTYPE_NAMES

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .memory cimport n_deferred
from .devices cimport elsewhere, kernel_place
from .planners cimport build, known, known_key, new_owner, of_dtype, of_key
from .pool cimport kernel_t, launch as run_kernel
from .indexing cimport flag_back, flag_there
from .deferred cimport MOST_NUMBERS, MOST_RESULTS, Epilogue, Prologue, Rows, begin, end, holds_values
from .reduce cimport PIECE, WARP_CHUNK, Group, Kernel, Reducer, are_few_and_long, coalesce_leaves, launch_rows
from .rows cimport RowOp, epilogue_parts, memory_of, prologue_of, prologue_parts, defer_rows, tell_prologue
from .tensor cimport (
    CODES, F32, I64, ITEMSIZE, KIND, MAXDIM, MOST_FUSED, NO_COMMON, WORK, Tensor, address_of,
    address_to_read, contiguous_tensor, dtype, empty_tensor, recorders, wrap_dim,
)

cdef enum:
    MAXROWWISE = 10
    STREAM_BIT = 62           # in a row-wise kernel's key
    STREAM_LEAST = 262144     # elements below which nothing is stored past the cache
    ANYWHERE = 4096           # bytes of rows from which they may have any alignment

cdef uint64_t DIVIDE = new_owner("rowwise.divide")
cdef tuple NAMES = DTYPE_NAMES
cdef int64_t STREAM_BYTES = stream_bytes()


cdef tuple out_of_bounds(str name, int64_t classes):
    """The error that a device raises later for a class that is out of range."""
    return IndexError, f"{name}(): target {{}} is out of bounds: expected a class in [0, {classes - 1}]"


@cython.final
cdef class Rowwise(RowOp):
    """A row-wise kernel over contiguous operands, callable with the dimensions that make a row.

    Args:
        name: of the op, for messages.
        kernel: ``"module.function"`` under ``taeda.kernels``, imported on first use; ``function(*key, dtypes,
            columns)`` gives the address, where ``dtypes`` has a name per operand, outputs first, None for one that was
            left out.
        outs: per output a letter for its shape and one for its dtype: ``f`` as the input, ``r`` one value per row,
            ``R`` the same with the row's dimensions kept as 1, ``w`` one row, ``s`` a single value; ``x`` as the input,
            ``a`` its working dtype, ``s`` the dtype of its sum (int64 for integers), ``i`` int64.
        ins: per input its shape in the same letters; the first is the input itself. A last ``n`` is not passed: there
            the kernel reports a class that is out of range.
        floating: whether integers are refused.
        wide: whether float32 is computed in float64.
        key: what the kernel's key starts with.
        real: whether complex numbers are refused.
        stream: whether there is a kernel that stores past the cache: ``function(*key, dtypes, columns, True)``. 2: long
            rows may have any alignment.
        computes: whether the op takes part in fusion: a deferred input is computed where it is read, and the op itself
            is deferred, so that pointwise ops on its result run where that is stored. All operands have the shape of
            the input.
        chunks: whether the function of this name in ``ops/_long_rows.py`` computes few long rows where there are no
            vectors.
    """

    cdef readonly str kernel
    cdef readonly tuple key
    cdef bytes outs, ins
    cdef int nouts, nins
    cdef bint floating, wide, real, computes
    cdef int stream
    cdef uint64_t owner    # id of its kernels, see planners.pxd
    cdef int vector_bytes
    cdef bint chunks

    def __init__(self, str name, str kernel, str outs, str ins, bint floating=True, bint wide=False, tuple key=(),
                 bint real=False, int stream=0, bint computes=False, bint chunks=False):
        self.computes, self.chunks = computes, chunks
        self.name, self.kernel, self.floating, self.wide, self.key = name, kernel, floating, wide, key
        self.real, self.stream = real, stream
        self.outs, self.ins = outs.encode(), ins.encode()
        self.nouts, self.nins = len(outs) // 2, len(ins)
        if self.nouts + self.nins > MAXROWWISE:
            raise ValueError(f"a row-wise kernel has at most {MAXROWWISE} operands")
        self.owner = new_owner(kernel)

    cdef kernel_t find(self, uint64_t key, bint columns) except NULL:
        cdef kernel_t fn = known(self.owner, key)
        return fn if fn != NULL else build(self.owner, key, self.arguments(key, columns))

    cdef tuple arguments(self, uint64_t key, bint columns):
        """The arguments of the function that makes the kernel."""
        cdef int i, code
        names = []
        for i in range(self.nouts + self.nins):
            code = (key >> (5 * i)) & (CODES - 1)
            names.append(None if code == NO_COMMON else NAMES[code])
        return (*self.key, tuple(names), bool(columns), *((True,) if key >> STREAM_BIT else ()))

    def along(self, x, dim, tuple more=(), dtype out=None, double p=0.0, double q=0.0):
        """Run on rows along one dimension."""
        cdef int d = self.wrap(x, dim)
        return self.run(<Tensor>x, d, d + ((<Tensor>x).nd > 0), more, out, p, q)

    def unary(self, x, dim, dtype out=None):
        """:meth:`along` for an op of ``(input, dim, dtype)``: the input is converted first."""
        cdef int d
        if out is not None and isinstance(x, Tensor) and (<Tensor>x).code != out.code:
            x = callbacks.grad_cast(x, out)
        d = self.wrap(x, dim)
        return self.run(<Tensor>x, d, d + ((<Tensor>x).nd > 0), (), None, 0.0, 0.0)

    def affine(self, x, shape, weight, bias, double eps, unused=None):
        """:meth:`last` for an op of ``(input, normalized_shape, weight, bias, eps)``."""
        cdef Py_ssize_t n, i
        cdef int code
        cdef bint fits
        cdef Tensor t
        if not isinstance(x, Tensor):
            self.raise_not_tensor(x)
        if type(shape) is not tuple:
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
        t = <Tensor>x
        n = len(<tuple>shape)
        fits = 0 < n <= t.nd
        if fits:
            for i in range(n):
                if <int64_t>shape[i] != t.sizes[t.nd - n + i]:
                    fits = False
            code = t.code
            if WORK[code] == F32 and (is_float32(weight) or is_float32(bias)):
                code = F32
            if fits and weight is not None and not is_affine(weight, t, n, code):
                fits = False
            if fits and bias is not None and not is_affine(bias, t, n, code):
                fits = False
        if not fits:
            callbacks.normalized_shape_error(self.name, x, shape, weight, bias)
        return self.run(t, t.nd - <int>n, t.nd, (weight, bias), None, eps, 0.0)

    def last(self, x, int n, tuple more=(), dtype out=None, double p=0.0, double q=0.0):
        """Run on rows made of the last ``n`` dimensions."""
        if not isinstance(x, Tensor):
            self.raise_not_tensor(x)
        return self.run(<Tensor>x, (<Tensor>x).nd - n, (<Tensor>x).nd, more, out, p, q)

    cdef int wrap(self, object x, object dim) except -1:
        cdef int nd
        if not isinstance(x, Tensor):
            self.raise_not_tensor(x)
        nd = (<Tensor>x).nd if (<Tensor>x).nd else 1
        return wrap_dim(dim, nd, self.name)

    cdef int raise_not_tensor(self, object x) except -1:
        from .mends import not_tensor
        raise not_tensor(f"{self.name}(): argument 'input' (position 1)", x)

    cdef object run(self, Tensor x, int first, int last, tuple more, dtype out, double p, double q):
        """Rows made of dimensions ``[first, last)`` of ``x``; return the output or a tuple of them.

        ``more`` are the other inputs (None for one that is left out); ``out`` is the dtype of outputs that are as the
        input.
        """
        cdef Tensor source
        cdef Tensor t
        cdef list alive = []
        cdef char* pointers[MAXROWWISE + MOST_FUSED]
        cdef int64_t args[3 + 4 * MAXROWWISE + 2]
        cdef int64_t report[2]
        cdef bint late, fills = False  # whether an output has elements where rows have none
        cdef int64_t a = 1, n = 1, b = 1
        cdef int i, code, at, acc = WORK[x.code]
        cdef uint64_t key = 0
        cdef char shape, kind
        if self.floating and KIND[x.code] != 2:
            raise NotImplementedError(f"{self.name}(): not defined for a tensor of dtype {NAMES[x.code]} (shape "
                                      f"{tuple(x.shape)}); "
                               f"expected a floating-point one. Convert it first, as in x.float()")
        if self.real and KIND[x.code] == 3:
            raise NotImplementedError(f"{self.name}(): not defined for a tensor of dtype {NAMES[x.code]} (shape "
                                      f"{tuple(x.shape)}): complex numbers have no order")
        if len(more) + 1 + (self.ins[self.nins - 1] == b"n") != self.nins:
            raise TypeError(f"{self.name}(): expected {self.nins - 1} more operands, got {len(more)}")
        source = x if x.contiguous else contiguous_tensor(x)
        for i in range(first):
            a *= source.sizes[i]
        for i in range(first, last):
            n *= source.sizes[i]
        for i in range(last, source.nd):
            b *= source.sizes[i]
        cdef bint columns = b > 1
        if n >= 2 * WARP_CHUNK and self.chunks and not columns and a and ITEMSIZE[x.code] > 1:
            if (out is None or out.code == x.code) and are_few_and_long(a, n):
                made = callbacks.long_rows(self.name, source, a, n, more, p)
                if made is not None:
                    return made
        if self.computes and recorders and not columns and source is x and (out is None or out.code == x.code):
            t = self.defer(x, more, first, p, q)
            if t is not None:
                return t
        late = (self.computes and n_deferred and not columns and source is x and x.count
                and holds_values(x) and x.storage.deferred is not None)
        for i in range(self.nouts):
            shape, kind = self.outs[2 * i], self.outs[2 * i + 1]
            code = I64 if kind == b"i" else acc if kind == b"a" else x.code if out is None else out.code
            if kind == b"s" and out is None and KIND[code] < 2:
                code = I64
            t = make_output(source, shape, code, first, last)
            alive.append(t)
            fills = fills or shape != b"f"
            pointers[i] = address_of(t)
            key |= <uint64_t>code << (5 * i)
            fill_strides(args + 3 + 4 * i, shape, ITEMSIZE[code], n, b)
        for i in range(self.nins):
            at = self.nouts + i
            shape = self.ins[i]
            if i == 0:
                t = source
            elif shape == b"n":
                report[0] = report[1] = 0
                pointers[at] = flag_there(report, sizeof(report), out_of_bounds(self.name, n) if elsewhere else None)
                key |= <uint64_t>I64 << (5 * at)
                fill_strides(args + 3 + 4 * at, b"0", 0, n, b)
                continue
            elif more[i - 1] is None:
                key |= <uint64_t>NO_COMMON << (5 * at)
                pointers[at] = NULL
                fill_strides(args + 3 + 4 * at, b"0", 0, n, b)
                continue
            else:
                if not isinstance(more[i - 1], Tensor):
                    raise TypeError(f"{self.name}(): expected a Tensor, got {type(more[i - 1]).__name__}")
                t = <Tensor>more[i - 1]
                if not t.contiguous:
                    t = contiguous_tensor(t)
                    alive.append(t)
                if t.count != (a * n * b if shape == b"f" else n if shape == b"w" else 1 if shape == b"s" else a * b):
                    raise RuntimeError(f"{self.name}(): operand {i} of shape {tuple(t.shape)} does not fit rows of {n} "
                                       f"elements in a tensor of shape {tuple(x.shape)}")
            pointers[at] = NULL if late and i == 0 else address_to_read(t)
            key |= <uint64_t>t.code << (5 * at)
            fill_strides(args + 3 + 4 * at, shape, ITEMSIZE[t.code], n, b)
        if a * b > 0 and (n > 0 or fills):
            key |= <uint64_t>(2 + columns) << 60
            if self.stream and x.count >= STREAM_LEAST and self.streams(x, (<Tensor>alive[0]).code, pointers[0],
                                                                        b if columns else n, columns):
                key |= <uint64_t>1 << STREAM_BIT
            args[0], args[1], args[2] = n, 1, b
            i = 3 + 4 * (self.nouts + self.nins)
            memcpy(&args[i], &p, 8)
            memcpy(&args[i + 1], &q, 8)
            if late:
                late = self.run_late(x, key, pointers, first, p, q)
                if late:
                    return alive[0]
                pointers[self.nouts] = address_to_read(x)
            code = acc if out is None else out.code
            self.launch(key, pointers, args, a, b, n, 8 if self.wide or ITEMSIZE[acc] == 8 or ITEMSIZE[code] == 8
                        else 4,
                        columns)
            if self.ins[self.nins - 1] == b"n":
                flag_back(pointers[self.nouts + self.nins - 1], report, sizeof(report))
            if self.ins[self.nins - 1] == b"n" and report[1]:
                from .mends import for_class
                raise IndexError(f"{self.name}(): target {report[0]} is out of bounds: expected a class in [0, "
                                 f"{n - 1}], "
                                 f"since the input of shape {tuple(x.shape)} has {n} classes{for_class(report[0], n)}")
        if self.nouts == 1:
            return alive[0]
        return tuple(alive[: self.nouts])

    cdef Tensor defer(self, Tensor x, tuple more, int first, double p, double q):
        """The result, deferred; None if it should be computed at once."""
        cdef Tensor other = None
        if more:
            if not isinstance(more[0], Tensor) or (<Tensor>more[0]).count != x.count:
                return None
            other = <Tensor>more[0]
        return defer_rows(self, x, other, first, p, q)

    cdef bint run_late(self, Tensor x, uint64_t key, char** pointers, int first, double p, double q) except -1:
        """Compute the elements of a deferred ``x`` where they are read; False if that is not possible."""
        cdef Prologue prologue
        cdef Rows rows
        cdef int i
        for i in range(1 + self.nins):  # `run_rows` is for operands of one dtype
            if <int>(key >> (5 * i) & (CODES - 1)) != x.code:
                return False
        begin()
        try:
            found = prologue_of(x, &prologue)
            if found is None:
                return False
            rows.own, rows.first, rows.p, rows.q = pointers[0], first, p, q
            rows.prologue, rows.epilogue = &prologue, NULL
            for i in range(self.nins):
                rows.pointers[i] = pointers[1 + i]
            if not self.run_rows(x, &rows, found, None):
                return False
            tell_prologue(&prologue)
        finally:
            end()
        return True

    cdef bint run_rows(self, Tensor x, Rows* rows, object before, object after) except -1:
        """See ``rows.pxd``."""
        cdef Prologue* p = rows.prologue
        cdef Epilogue* e = rows.epilogue
        cdef Prologue leaves      # of both operands
        cdef Group outer[2]
        cdef Group inner[2]
        cdef int64_t steps[2][MOST_FUSED]
        cdef int64_t along[2][MOST_FUSED]
        cdef char* pointers[MAXROWWISE + MOST_FUSED + MOST_RESULTS]
        cdef int64_t args[5 + 4 * (MAXROWWISE + MOST_FUSED + MOST_RESULTS) + 4 * MOST_NUMBERS]
        cdef int dims[MAXDIM]
        cdef int i, k, no = 0, ni = 0, count = 1 + self.nins, extra = 0, nbefore = 0
        cdef int64_t a = 1, n = 1, item = ITEMSIZE[x.code]
        cdef uint64_t key = <uint64_t>2 << 60
        cdef char letter
        cdef Kernel kernel
        for i in range(count):
            key |= <uint64_t>x.code << (5 * i)
        # what the leaves of both have in common
        leaves.nleaves = 0
        if p != NULL:
            nbefore = leaves.nleaves = p.nleaves
            for i in range(p.nleaves):
                leaves.kernel.leaves[i], leaves.pointers[i] = p.kernel.leaves[i], p.pointers[i]
        if e != NULL:
            if leaves.nleaves + e.kernel.nleaves > MOST_FUSED:
                return False
            for i in range(e.kernel.nleaves):
                if i != e.own:
                    leaves.kernel.leaves[leaves.nleaves] = e.kernel.leaves[i]
                    leaves.pointers[leaves.nleaves] = e.pointers[leaves.nleaves - nbefore]
                    leaves.nleaves += 1
        for i in range(x.nd):
            if i < rows.first:
                a *= x.sizes[i]
            else:
                n *= x.sizes[i]
        for i in range(rows.first):
            if x.sizes[i] != 1:
                dims[no] = i
                no += 1
        no = coalesce_leaves(x, dims, no, &leaves, outer, steps)
        for i in range(rows.first, x.nd):
            if x.sizes[i] != 1:
                dims[ni] = i
                ni += 1
        ni = coalesce_leaves(x, dims, ni, &leaves, inner, along)
        if no > 2 or leaves.nleaves and ni != 1:
            return False
        args[0], args[1], args[2] = n, 1, outer[1].size if no == 2 else 1
        # operands: the result, the op's own, the leaves, further results
        for i in range(leaves.nleaves):
            k = 3 + 4 * (count + i)
            args[k], args[k + 1] = along[0][i], 0
            args[k + 2] = steps[0][i] if no else 0
            args[k + 3] = steps[1][i] if no == 2 else 0
            if along[0][i] and along[0][i] != ITEMSIZE[leaves.kernel.leaves[i].code]:
                return False
            letter = b"c" if along[0][i] else b"s"
            if i < nbefore:
                p.letters[i] = letter
            else:
                e.letters[i - nbefore] = letter
            pointers[count + i] = leaves.pointers[i]
        for i in range(self.nins):
            pointers[1 + i] = rows.pointers[i]
        if p != NULL:
            pointers[1] = p.pointers[0]
        pointers[0] = rows.own
        if e != NULL:
            extra = e.kernel.nouts - (not e.writes_own)
            for i in range(extra):
                pointers[count + leaves.nleaves + i] = memory_of(e, i + (not e.writes_own))
            if not e.writes_own:
                pointers[0] = memory_of(e, 0)
        for i in range(count + extra):  # all have the shape of `x`
            k = 3 + 4 * (i if i < count else i + leaves.nleaves)
            args[k], args[k + 1], args[k + 3] = item, 0, n * item
            args[k + 2] = args[2] * n * item
        k = 3 + 4 * (count + leaves.nleaves + extra)
        memcpy(&args[k], &rows.p, 8)
        memcpy(&args[k + 1], &rows.q, 8)
        k += 2
        if p != NULL:
            memcpy(args + k, p.numbers, p.nnumbers * sizeof(int64_t))
            k += p.nnumbers
        if e != NULL:
            memcpy(args + k, e.numbers, e.nnumbers * sizeof(int64_t))
            k += e.nnumbers
        if self.stream and x.count >= STREAM_LEAST and self.streams(x, x.code, pointers[0], n, False):
            key |= <uint64_t>1 << STREAM_BIT
            for i in range(extra):
                if <size_t>pointers[count + leaves.nleaves + i] % 64:
                    key &= ~(<uint64_t>1 << STREAM_BIT)
        kernel.fn = self.find_with(before, p, after, e, key)
        launch_rows(kernel, pointers, count + leaves.nleaves + extra, args, k, a // args[2], args[2],
                    share(key, a, n, False), False, False)
        return True

    cdef kernel_t find_with(self, object before, Prologue* p, object after, Epilogue* e, uint64_t key) except NULL:
        cdef object full = (self.kernel, self.key, key, before, after,
                            (<char*>p.letters)[:p.nleaves] if p != NULL else None,
                            (<char*>e.letters)[: e.kernel.nleaves - 1] if e != NULL else None)
        cdef kernel_t fn = known_key(full)
        if fn == NULL:
            fn = of_key(full, callbacks.build_between, (
                prologue_parts(p) if p != NULL else None, epilogue_parts(e) if e != NULL else None,
                self.kernel, self.arguments(key, False), self.nouts, 2, self.name))
        return fn

    cdef bint streams(self, Tensor x, int code, const char* out, int64_t n, bint columns) noexcept:
        """Whether inputs and output exceed the cache, and ``n`` elements of the output are whole cache lines."""
        cdef int i
        cdef int64_t item = ITEMSIZE[code], moved = item
        for i in range(self.nins):
            if self.ins[i] == b"f":
                moved += ITEMSIZE[x.code]
        if n * item % 64 and (columns or self.stream < 2 or n * item < ANYWHERE):
            return False
        return item >= 4 and <size_t>out % 64 == 0 and x.count * moved >= STREAM_BYTES

    cdef int launch(self, uint64_t key, char** pointers, int64_t* args, int64_t a, int64_t b, int64_t n, int width,
                    bint columns) except -1:
        cdef Kernel kernel
        kernel.fn = self.find(key, columns)
        if columns:
            if not self.vector_bytes:
                from ..kernels.target import host

                self.vector_bytes = host().vector_bytes
            kernel.lanes = lanes_here(self.vector_bytes, width)
        launch_rows(kernel, pointers, self.nouts + self.nins, args, 5 + 4 * (self.nouts + self.nins), a, b,
                    share(key, a * b, n, columns), columns, False)
        return 0


cdef int lanes_here(int vector_bytes, int width) except -1:
    """Elements of a vector in this thread's place; ``vector_bytes`` are the processor's."""
    if elsewhere and kernel_place():
        from ..kernels.target import here

        vector_bytes = here().vector_bytes
    return vector_bytes // width if vector_bytes >= 16 else 1


cdef int64_t share(uint64_t key, int64_t rows, int64_t n, bint columns) noexcept:
    """The weight of a row of ``n`` elements when rows are divided into pieces.

    Each piece that stores past the cache ends by waiting for its stores, so there are fewer pieces. Long rows, too,
    come several to a piece: one is read while the one before is written.
    """
    if not key >> STREAM_BIT:
        return n * 4
    return n // 2 if columns else min(n // 2, PIECE // max(1, min(8, rows // 16)))


cdef inline bint is_float32(object x):
    return isinstance(x, Tensor) and (<Tensor>x).code == F32


cdef bint is_affine(object affine, Tensor x, int n, int code):
    """Whether ``affine`` is a tensor of dtype ``code`` with the last ``n`` sizes of ``x``."""
    cdef Tensor t
    cdef int i
    if not isinstance(affine, Tensor):
        return False
    t = <Tensor>affine
    if t.nd != n or t.code != code:
        return False
    for i in range(n):
        if t.sizes[i] != x.sizes[x.nd - n + i]:
            return False
    return True


cdef Tensor make_output(Tensor x, char shape, int code, int first, int last):
    cdef int64_t sizes[MAXDIM]
    cdef int i, nd = 0
    if shape == b"f":
        return empty_tensor(code, x.nd, x.sizes)
    for i in range(x.nd):
        if (first <= i < last) == (shape == b"w"):
            sizes[nd] = x.sizes[i]
            nd += 1
        elif shape == b"R":
            sizes[nd] = 1
            nd += 1
    return empty_tensor(code, nd, sizes)


cdef inline void fill_strides(int64_t* args, char shape, int64_t item, int64_t n, int64_t b) noexcept:
    """Strides of a contiguous operand: along the row (two levels), then from row to row."""
    args[1] = 0
    if shape == b"f":
        args[0], args[2], args[3] = b * item, n * b * item, item
    elif shape == b"w":
        args[0], args[2], args[3] = item, 0, 0
    elif shape == b"0" or shape == b"s":
        args[0] = args[2] = args[3] = 0
    else:
        args[0], args[2], args[3] = 0, b * item, item


# ---- losses over classes --------------------------------------------------------------------------------------------

@cython.final
cdef class ClassLoss:
    """Cross entropy or negative log-likelihood of class numbers: a row-wise kernel and the sums after it.

    Args:
        rows: the kernel; its first two outputs are each row's loss and weight.
        total: the sum.
    """

    cdef Rowwise rows
    cdef Reducer total

    def __init__(self, Rowwise rows not None, Reducer total not None):
        self.rows, self.total = rows, total

    def run(self, input, target, weight, long ignore_index, str reduction):
        """The reduced loss, then the rest: each row's weight, further outputs of the kernel, the divisor."""
        cdef Tensor x, t, loss, weights, count
        cdef char* pointers[2]
        cdef int d, i
        cdef bint fits = isinstance(input, Tensor) and isinstance(target, Tensor)
        if fits:
            x, t = <Tensor>input, <Tensor>target
            d = 1 if x.nd > 1 else 0
            fits = x.nd > 0 and t.nd == x.nd - 1 and t.code == I64
            if fits:
                for i in range(t.nd):
                    if t.sizes[i] != x.sizes[i + (i >= d)]:
                        fits = False
            if fits and weight is not None:
                fits = isinstance(weight, Tensor) and (<Tensor>weight).nd == 1 \
                    and (<Tensor>weight).sizes[0] == x.sizes[d]
        if not fits:
            callbacks.class_loss_error(self.rows.name, input, target, weight)
        if x.sizes[d] == 0 and t.count:
            raise IndexError(f"{self.rows.name}(): targets are out of bounds: the input of shape {tuple(x.shape)} has "
                             f"no "
                             f"classes")
        cdef tuple made = self.rows.run(x, d, d + 1, (target, weight), None, <double>ignore_index, 0.0)
        loss, weights = <Tensor>made[0], <Tensor>made[1]
        count = weights
        if reduction != "none":
            loss = <Tensor>self.total.reduce(loss, None, False, None, 0.0, 0.0)
            if reduction == "mean":
                count = <Tensor>self.total.reduce(weights, None, False, None, 0.0, 0.0)
                pointers[0], pointers[1] = address_of(loss), address_of(count)
                run_kernel(of_dtype(DIVIDE, loss.code), pointers, 2, NULL, 0, 1, 1, True)
        if loss.code != x.code:
            loss = <Tensor>callbacks.grad_cast(loss, x.dtype)
        return (loss, *made[1:], count)
