"""Launcher of reductions over any dimensions.

This code runs once per call. From sizes and strides alone it decides the layout of a reduction: the kernel, the mapping
of rows and columns to memory, and the chunks of a long reduction.
"""

from .callbacks import callbacks
from .tensor import DTYPE_NAMES

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .devices cimport elsewhere, here, kernel_place
from .dims cimport distance, merge_dims
from .memory cimport Storage, compute_to_read, n_deferred, release_scratch, take_scratch
from .planners cimport build, known, known_key, new_owner, of_key
from .pool cimport kernel_t, launch as run_kernel, launch_work
from .program cimport prototype
from .deferred cimport (
    MOST_NUMBERS, Deferred, Later, Prologue, Source, begin, end, finish, holds_values, is_free, is_recording, same_form,
)
from .rows cimport compute_ended, prologue_of, prologue_parts, defer_whole, tell_prologue
from .tensor cimport (
    BOOL, DOMAIN, FLOAT8, INLINE, ITEMSIZE, KIND, MAXDIM, MOST_FUSED, NDTYPES, U8, Tensor, address_of,
    address_to_read, alias_tensor, contiguous_tensor, dtype, empty_tensor, wrap_dim,
)

cdef enum:
    ROW_CHUNK = 65536     # elements of a row reduction between two merges
    ACROSS = 512          # the same for a row of several runs, which are read in place
    COLUMN_CHUNK = 4096   # the same for a column reduction, whose every element is a vector; fewer of wide rows:
    COLUMN_ELEMENTS = 1 << 20
    COLUMN_LEAST = 64
    STATE_BYTES = 128     # of a column in a chunk, for each state and once more
    THREADS = 65536       # of the columns' chunks together, where there are no vectors,
    MOST_CHUNKS = 1024    # that one column has at most, while they are short enough
    COLUMNS_OF_BLOCK = 4  # whose chunks a block of a device joins: a sector has as many numbers of float64
    WIDEST = 1024         # units of the widest tile, LONG_TILES in kernels/rowwise.py

cdef tuple NAMES = DTYPE_NAMES


# ---- dimensions -----------------------------------------------------------------------------------------------------
cdef uint64_t dim_mask(object dim, int nd, str name) except? 0:
    """The dimensions to reduce as bits; None or an empty sequence means all."""
    cdef uint64_t mask = 0
    cdef int n = nd if nd > 0 else 1
    cdef long d
    cdef object item
    if dim is None:
        return (<uint64_t>1 << n) - 1 if n < 64 else ~<uint64_t>0
    if isinstance(dim, (tuple, list)):
        if not len(dim):
            return (<uint64_t>1 << n) - 1 if n < 64 else ~<uint64_t>0
        for item in dim:
            d = wrap_dim(item, n, name)
            if (mask >> d) & 1:
                raise RuntimeError(f"{name}(): dim {d} appears multiple times in the list of dims {tuple(dim)}")
            mask |= <uint64_t>1 << d
        return mask
    return <uint64_t>1 << wrap_dim(dim, n, name)


cdef int coalesce_leaves(Tensor x, const int* dims, int n, const Prologue* p, Group* groups,
                         int64_t (*steps)[MOST_FUSED]) noexcept:
    """Merge dimensions where ``x`` and all leaves allow it; ``steps`` are the leaves' strides. A count above 2 is
    returned as 3."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[1 + MOST_FUSED][MAXDIM]
    cdef int i, k
    for i in range(n):
        sizes[i], strides[0][i] = x.sizes[dims[i]], x.strides[dims[i]] * ITEMSIZE[x.code]
        for k in range(p.nleaves):
            strides[1 + k][i] = p.kernel.leaves[k].strides[dims[i]]
    n = merge_dims(sizes, strides[0], n, 1 + p.nleaves, MAXDIM, 1)
    for i in range(min(n, 2)):
        groups[i].size, groups[i].stride = sizes[i], strides[0][i]
        for k in range(p.nleaves):
            steps[i][k] = strides[1 + k][i]
    return min(n, 3)


cdef void sort_dims(Tensor x, int* dims, int n, bint positive) noexcept:
    """Sort by strides, outermost first, stably. With ``positive``, only if no stride is 0 or negative."""
    cdef int i, j, d
    if positive:
        for i in range(n):
            if x.strides[dims[i]] <= 0:
                return
    for i in range(1, n):
        d = dims[i]
        j = i - 1
        while j >= 0 and distance(x.strides[dims[j]]) < distance(x.strides[d]):
            dims[j + 1] = dims[j]
            j -= 1
        dims[j + 1] = d


cdef int host_vectors = -1


cdef int has_vectors() except -1:
    """Whether kernels of this thread's place have vectors."""
    global host_vectors
    if host_vectors >= 0 and not (elsewhere and kernel_place()):
        return host_vectors
    from ..kernels import target

    host_vectors = target.host().vector_bytes >= 16
    return target.here().vector_bytes >= 16


cdef bint are_few_and_long(int64_t rows, int64_t n) except -1:
    """Whether rows are processed in chunks, since threads share them and there are few."""
    return n >= 2 * WARP_CHUNK and rows < FEW_ROWS and not has_vectors()


cpdef int64_t chunks_of_columns(int64_t n, int64_t columns, int item, int states=1) except -1:
    """The number of chunks that take turns at ``n`` rows of so many columns, or 0: chunks are neighbouring rows.

    Without vectors each chunk of a column has a thread, and neighbouring threads read neighbouring elements. A chunk
    has enough bytes that its states are few beside them.
    """
    cdef int64_t least = (n + COLUMN_CHUNK - 1) // COLUMN_CHUNK, chunks = 1, most
    if n < 4 * COLUMN_LEAST or not columns or has_vectors():
        return 0
    most = max(least, min(n // max(COLUMN_LEAST, (1 + states) * STATE_BYTES // item), MOST_CHUNKS, THREADS // columns))
    while 2 * chunks <= most:  # a power of two, so that a row of chunks ends with a sector
        chunks *= 2
    return chunks if chunks > 1 else 0


CHUNK = WARP_CHUNK


def few_long_rows(rows, n):
    """Whether ``rows`` rows of ``n`` elements are processed in chunks (``ops/_long_rows.py``)."""
    return are_few_and_long(rows, n)


# ---- reductions -----------------------------------------------------------------------------------------------------
@cython.final
cdef class Reducer:
    """A reduction by name (see ``taeda/kernels/reduce.py``), callable on any tensor, dimensions and dtype.

    Args:
        name: of the op, for messages.
        op: of the declaration.
        rules: per output, the dtype code of the result for each input dtype's code; -1 where there is none.
        states: number of states between chunks.
        ordered: whether positions matter, so that dimensions keep their order.
        nparams: float parameters, at most two.
        identity: whether an empty reduction has a value.
        single: whether only one dimension can be reduced (or all).
    """

    def __init__(self, str name, str op, tuple rules, int states=1, bint ordered=False, int nparams=0,
                 bint identity=True, bint single=False):
        cdef int i, k
        self.name, self.op = name, op
        self.owner, self.merges = new_owner("reduce.reduce"), new_owner("reduce.merge")
        self.correction = "var" in op or "std" in op
        self.nouts, self.nstates = len(rules), states
        self.ordered, self.nparams, self.identity, self.single = ordered, nparams, identity, single
        for i in range(self.nouts):
            for k in range(NDTYPES):
                self.rules[i][k] = rules[i][k] if k < len(rules[i]) else -1

    def __call__(self, x, dim=None, bint keepdim=False, dtype=None, double p=0.0, double q=0.0):
        """Reduce ``x`` over ``dim`` (None: all of it); a tensor, or a tuple where there are several outputs."""
        return self.reduce(x, dim, keepdim, dtype, p, q)

    def run(self, x, dim=None, bint keepdim=False, dtype=None, double p=0.0, double q=0.0):
        """The same as a call; a method is faster to reach, and can be the body of an op."""
        return self.reduce(x, dim, keepdim, dtype, p, q)

    def truths(self, x, dim=None, bint keepdim=False):
        """:meth:`run` for any and all. With ``dim=()`` they reduce nothing, unlike the others, which read no float8
        either."""
        if isinstance(dim, (tuple, list)) and not dim:
            return x.ne(0) if (<Tensor?>x).code != U8 else x.ne(0).to(x.dtype)
        if DOMAIN[(<Tensor?>x).code] == FLOAT8:
            x = x.ne(0)
        return self.reduce(x, dim, keepdim, None, 0.0, 0.0)

    def moments(self, x, dim, double correction, bint keepdim):
        """:meth:`run` for an op of ``(input, dim, correction, keepdim)``."""
        return self.reduce(x, dim, keepdim, None, correction, 0.0)

    def norms(self, x, double ord, dim, bint keepdim):
        """:meth:`run` for an op of ``(input, ord, dim, keepdim)``."""
        return self.reduce(x, dim, keepdim, None, ord, 0.0)

    cdef object reduce(self, object input, object dim, bint keepdim, dtype out, double p, double q):
        if not isinstance(input, Tensor):
            from .mends import not_tensor
            raise not_tensor(f"{self.name}(): argument 'input' (position 1)", input)
        cdef Tensor x = <Tensor>input
        if out is not None:
            if self.rules[0][out.code] < 0:
                self.raise_out(out)
            if (KIND[out.code] == 3) != (KIND[x.code] == 3) or out.code == BOOL != x.code:
                x = <Tensor>callbacks.grad_cast(x, out)
        if self.single and isinstance(dim, (tuple, list)):
            raise TypeError(f"{self.name}(): argument 'dim' (position 2) must be int, not {type(dim).__name__}")
        cdef uint64_t mask = dim_mask(dim, x.nd, self.name)
        cdef int codes[2]
        cdef int i
        for i in range(self.nouts):
            codes[i] = self.rules[i][x.code] if out is None else out.code
            if codes[i] < 0:
                self.raise_dtype(x)
        cdef object first = None, second = None
        cdef Layout layout
        cdef Tensor source = x
        cdef int64_t shape[MAXDIM]
        cdef int64_t strides[MAXDIM]
        cdef int nd = 0
        cdef bint permuted = False
        source = self.arrange(x, dim, mask, keepdim, &layout, shape, strides, &nd, &permuted)
        for i in range(self.nouts):
            if permuted:
                made = strided(codes[i], nd, shape, strides)
            else:
                made = empty_tensor(codes[i], nd, shape)
            if i == 0:
                first = made
            else:
                second = made
        if self.correction and p >= <double>(layout.n0 * layout.n1) and x.count:
            callbacks.warn_freedom(self.name, x, dim, p)
        cdef int64_t values[2]
        memcpy(values, &p, 8)
        memcpy(values + 1, &q, 8)
        if (<Tensor>first).count and n_deferred and holds_values(source) and source.storage.deferred is not None:
            if self.may_wait(source, <Tensor>first):
                compute_ended()
                defer_whole(defer_total(self, source, mask, &layout, values), [source], <Tensor>first)
                return first
            begin()
            try:
                self.launch_into(source, &layout, <Tensor>first, <Tensor>second, values, mask)
            finally:
                end()
        elif (<Tensor>first).count:
            self.launch_into(source, &layout, <Tensor>first, <Tensor>second, values, mask)
        if permuted:  # rows were taken in the order of memory
            first = contiguous_tensor(first)
            second = contiguous_tensor(second) if second is not None else None
        if self.nouts == 1:
            return first
        return first, second

    cdef Tensor arrange(self, Tensor x, object dim, uint64_t mask, bint keepdim, Layout* layout, int64_t* shape,
                        int64_t* strides, int* nd, bint* permuted):
        """Sort the dimensions into rows and columns; return the tensor to read, a copy if the layout is too
        irregular."""
        cdef int kept[MAXDIM]
        cdef int reduced[MAXDIM]
        cdef Group outer[MAXDIM]
        cdef Group inner[MAXDIM]
        cdef int nk = 0, nr = 0, i, item = ITEMSIZE[x.code]
        cdef int64_t count = 1, rows = 1
        for i in range(x.nd):
            if (mask >> i) & 1:
                count *= x.sizes[i]
                if x.sizes[i] != 1:
                    reduced[nr] = i
                    nr += 1
                if keepdim:
                    shape[nd[0]] = 1
                    nd[0] += 1
            else:
                rows *= x.sizes[i]
                if x.sizes[i] != 1:
                    kept[nk] = i
                    nk += 1
                shape[nd[0]] = x.sizes[i]
                nd[0] += 1
        if count == 0 and not self.identity:
            self.raise_empty(x, dim)
        layout.n1 = layout.a = 1
        layout.s1 = layout.sa = 0
        layout.columns = layout.strided = False
        if count == 0 or rows == 0:
            layout.n0, layout.b = count, rows
            layout.s0, layout.sb = item, 0
            return x
        if not x.contiguous:
            if not self.ordered:
                sort_dims(x, reduced, nr, False)
            if nk > 1:
                sort_dims(x, kept, nk, True)
                permuted[0] = self.output_order(x, mask, keepdim, kept, nk, strides)
        for i in range(nk):
            outer[i].size, outer[i].stride = x.sizes[kept[i]], x.strides[kept[i]] * item
        for i in range(nr):
            inner[i].size, inner[i].stride = x.sizes[reduced[i]], x.strides[reduced[i]] * item
        cdef int groups_k = merge_dims(&outer[0].size, &outer[0].stride, nk, 1, 0, 2)
        cdef int groups_r = merge_dims(&inner[0].size, &inner[0].stride, nr, 1, 0, 2)
        if groups_k > 2 or groups_r > 2:
            layout.n0, layout.s0 = count, item
            layout.b, layout.sb = rows, count * item
            return copy_rows(x, kept, nk, reduced, nr)
        place(layout, outer, groups_k, inner, groups_r, item, self.ordered)
        return x

    cdef bint output_order(self, Tensor x, uint64_t mask, bint keepdim, int* kept, int nk, int64_t* strides):
        """Output strides in the order of ``kept``; whether that differs from the default order."""
        cdef int i, k = 0
        cdef int64_t step
        cdef int64_t found[MAXDIM]
        cdef bint plain = True
        for i in range(1, nk):
            if kept[i] < kept[i - 1]:
                plain = False
        if plain:
            return False
        step = 1
        for i in range(x.nd):
            found[i] = 1
        for i in range(nk - 1, -1, -1):
            found[kept[i]] = step
            step *= x.sizes[kept[i]]
        for i in range(x.nd):
            if not (mask >> i) & 1 or keepdim:
                strides[k] = found[i]
                k += 1
        return True

    cdef int raise_empty(self, Tensor x, object dim) except -1:
        """Raise for an empty reduction without an identity."""
        if dim is None or isinstance(dim, (tuple, list)) and not dim:
            raise (IndexError if self.op in ("argmax", "argmin") else RuntimeError)(
                f"{self.name}(): expected a tensor with elements, got shape {tuple(x.shape)}: {self.name} of nothing "
                "has no value. Give the dimensions to reduce as 'dim' if those have elements")
        raise IndexError(f"{self.name}(): expected the reduced dimensions (dim={dim}) to have elements, got shape "
                         f"{tuple(x.shape)}: {self.name} of nothing has no value")

    cdef int raise_out(self, dtype out) except -1:
        raise RuntimeError(f"{self.name}(): expected dtype to be one of {self.allowed()}, got dtype={NAMES[out.code]}")

    cdef str allowed(self):
        return ", ".join([name for name, code in zip(NAMES, [self.rules[0][k] for k in range(len(NAMES))])
                          if code >= 0])

    cdef int raise_dtype(self, Tensor x) except -1:
        kind = NotImplementedError if KIND[x.code] == 3 else RuntimeError
        raise kind(f"{self.name}(): not defined for a tensor of dtype {NAMES[x.code]} (shape {tuple(x.shape)}); "
                   f"expected one of {self.allowed()}. Convert it first, as in x.to(float32)")

    # ---- kernels -----------------------------------------------------------------------------------------------------
    cdef int key(self, int code, int out) noexcept:
        return code * NDTYPES + out

    cdef Kernel find(self, Tensor x, Tensor first, Tensor second, int variant) except *:
        """The kernel for these dtypes; ``variant`` is (columns, strided, levels - 1, part) as bits."""
        cdef int key = self.key(x.code, first.code)
        cdef Kernel found
        if elsewhere and kernel_place():
            return self.find_there(x, first, second, variant)
        found.fn = known(self.owner, key << 4 | variant)
        if found.fn == NULL:
            from ..kernels import reduce as family

            mode = ("c" if variant & 1 else "r") + ("v" if variant & 2 else "c")
            outs = self.out_names(first, second)
            self.lanes[key] = family.lanes(self.op, NAMES[x.code], outs)
            found.fn = build(self.owner, key << 4 | variant,
                             (self.op, NAMES[x.code], outs, mode, 2 if variant & 4 else 1, not variant & 8))
        found.lanes = self.lanes[key]
        return found

    cdef Kernel find_there(self, Tensor x, Tensor first, Tensor second, int variant) except *:
        """:meth:`find` for a device, whose vectors have another number of lanes than the processor's."""
        cdef int key = self.key(x.code, first.code)
        cdef Kernel found
        from ..kernels import reduce as family

        outs = self.out_names(first, second)
        found.lanes = family.lanes(self.op, NAMES[x.code], outs)
        found.fn = known(self.owner, key << 4 | variant)
        if found.fn == NULL:
            mode = ("c" if variant & 1 else "r") + ("v" if variant & 2 else "c")
            found.fn = build(self.owner, key << 4 | variant,
                             (self.op, NAMES[x.code], outs, mode, 2 if variant & 4 else 1, not variant & 8))
        return found

    cdef tuple out_names(self, Tensor first, Tensor second):
        return (NAMES[first.code],) if second is None else (NAMES[first.code], NAMES[second.code])

    cdef kernel_t find_merge(self, Tensor x, Tensor first, Tensor second, int together) except NULL:
        """``together``: of a device, rows of which a block joins one; 0: a thread joins the chunks of a row."""
        cdef int key = self.key(x.code, first.code)
        cdef int variant = 0 if together == 0 else 1 if together == 1 else 2
        cdef kernel_t fn = known(self.merges, key << 2 | variant)
        if fn == NULL:
            from ..kernels import reduce as family

            outs = self.out_names(first, second)
            for i, width in enumerate(family.state_bytes(self.op, NAMES[x.code], outs)):
                self.widths[key][i] = width
            fn = build(self.merges, key << 2 | variant,
                       (self.op, NAMES[x.code], outs) + ((together,) if together else ()))
        return fn

    # ---- launching ---------------------------------------------------------------------------------------------------
    cdef kernel_t find_fused(self, object key, Prologue* prologue, Tensor first, Tensor second,
                             int variant) except NULL:
        """The kernel with a prologue that computes its input."""
        cdef object full = (self.op, first.code, variant, key, (<char*>prologue.letters)[:prologue.nleaves])
        cdef kernel_t fn = known_key(full)
        if fn == NULL:
            nodes, leaves = prologue_parts(prologue)
            key = (self.op, nodes[len(nodes) - 1][3], self.out_names(first, second), "cc" if variant & 1 else "rc",
                   2 if variant & 4 else 1, not variant & 8)
            fn = of_key(full, callbacks.build_between, ((nodes, leaves), None, "reduce.reduce", key,
                                                         self.nstates if variant & 8 else self.nouts, 5, self.op))
        return fn

    cdef bint place_leaves(self, Tensor x, uint64_t mask, Prologue* p, const Layout* l, Layout* made) noexcept:
        """Set the leaves' strides of rows. Returns whether the sums and their order stay those of ``l``."""
        cdef int kept[MAXDIM]
        cdef int reduced[MAXDIM]
        cdef Group outer[2]
        cdef Group inner[2]
        cdef int64_t rows[2][MOST_FUSED]
        cdef int64_t along[2][MOST_FUSED]
        cdef int nk = 0, nr = 0, i, first
        cdef int64_t step
        for i in range(x.nd):
            if x.sizes[i] == 1:
                continue
            if (mask >> i) & 1:
                reduced[nr] = i
                nr += 1
            else:
                kept[nk] = i
                nk += 1
        if not x.contiguous:
            if not self.ordered:
                sort_dims(x, reduced, nr, False)
            sort_dims(x, kept, nk, True)
        nk, nr = coalesce_leaves(x, kept, nk, p, outer, rows), coalesce_leaves(x, reduced, nr, p, inner, along)
        if nk > 2 or nr > 2:
            return False
        made.n1 = made.a = 1
        made.s1 = made.sa = 0
        made.columns = made.strided = False
        place(made, outer, nk, inner, nr, ITEMSIZE[x.code], self.ordered)
        if made.strided or made.columns != l.columns or made.n0 != l.n0 or made.n1 != l.n1:
            return False
        first = 0 if nr == 2 and made.s0 == inner[0].stride else nr - 1
        for i in range(p.nleaves):
            p.steps[i][0] = along[first][i] if nr else 0
            p.steps[i][1] = along[1 - first][i] if nr == 2 else 0
            p.steps[i][2] = rows[0][i] if nk == 2 else 0
            p.steps[i][3] = rows[nk - 1][i] if nk else 0
            step = p.steps[i][3 if made.columns else 0]
            if step and step != ITEMSIZE[p.kernel.leaves[i].code]:
                return False
            p.letters[i] = b"c" if step else b"s"
        return True

    cdef bint may_wait(self, Tensor x, Tensor first) noexcept:
        """Whether the reduction of a whole deferred tensor is deferred too. One of these never waits for another."""
        return (is_recording() and first.count == 1 and x.count > 1 and self.nouts == 1 and first.nd <= INLINE
                and is_free(x) and not (elsewhere and here()) and same_form(<Deferred>x.storage.deferred, x, x))

    cdef int launch_into(self, Tensor x, Layout* l, Tensor first, Tensor second, int64_t* params,
                         uint64_t mask) except -1:
        cdef char** outs = [address_of(first), NULL]
        if second is not None:
            outs[1] = address_of(second)
        return self.launch(x, l, first, second, outs, params, mask)

    cdef int launch(self, Tensor x, Layout* l, Tensor first, Tensor second, char** results, int64_t* params,
                    uint64_t mask) except -1:
        cdef int64_t count = l.n0 * l.n1
        cdef int64_t limit = ROW_CHUNK
        cdef Prologue prologue
        cdef Layout made
        if not l.columns:
            if are_few_and_long(l.a * l.b, count):
                limit = WARP_CHUNK
        else:
            limit = min(COLUMN_CHUNK, max(COLUMN_LEAST, COLUMN_ELEMENTS // (l.b + (l.b == 0))))
        cdef int variant = l.columns | (l.strided << 1) | ((l.n1 > 1) << 2)
        cdef object key = prologue_of(x, &prologue) if n_deferred and not l.strided and x.count else None
        if key is not None and self.place_leaves(x, mask, &prologue, l, &made):
            l = &made
            tell_prologue(&prologue)
        else:
            key, prologue.nleaves, prologue.nnumbers = None, 0, 0
        cdef char* read = address_to_read(x) if key is None else prologue.pointers[0]
        cdef int64_t turns = 0
        if l.columns and not l.strided and l.n1 == 1 and not self.ordered:
            turns = chunks_of_columns(l.n0, l.a * l.b, ITEMSIZE[x.code], self.nstates)
        if turns or count >= 2 * limit:
            return self.launch_chunks(x, l, first, second, results, params, variant | 8, limit, turns, key, &prologue,
                                      read)
        cdef Kernel kernel = self.find(x, first, second, variant)
        cdef char* pointers[3 + MOST_FUSED]
        cdef int64_t args[32 + 4 * MOST_FUSED + 2 * MOST_NUMBERS]
        cdef int n = 3, outs = self.nouts
        if key is not None:
            kernel.fn = self.find_fused(key, &prologue, first, second, variant)
        args[0], args[1], args[2] = l.n0, l.n1, l.b
        pointers[0] = results[0]
        n = out_strides(args, n, l.b * ITEMSIZE[first.code], ITEMSIZE[first.code])
        if second is not None:
            pointers[1] = results[1]
            n = out_strides(args, n, l.b * ITEMSIZE[second.code], ITEMSIZE[second.code])
        pointers[outs] = read
        memcpy(pointers + outs + 1, prologue.pointers, prologue.nleaves * sizeof(char*))
        args[n], args[n + 1], args[n + 2], args[n + 3] = l.s0, l.s1, l.sa, l.sb
        memcpy(args + n + 4, prologue.steps, prologue.nleaves * sizeof(prologue.steps[0]))
        n += 4 + 4 * prologue.nleaves
        args[n], args[n + 1], args[n + 2] = 0, 0, count
        args[n + 3], args[n + 4] = params[0], params[1]
        memcpy(args + n + 5, prologue.numbers, prologue.nnumbers * sizeof(int64_t))
        launch_rows(kernel, pointers, outs + 1 + prologue.nleaves, args, n + 5 + prologue.nnumbers, l.a, l.b, count,
                    l.columns, l.a >= 16)
        return 0

    cdef int launch_chunks(self, Tensor x, Layout* l, Tensor first, Tensor second, char** results, int64_t* params,
                           int variant, int64_t limit, int64_t turns, object key, Prologue* prologue,
                           char* read) except -1:
        """One state per chunk and row, then the merge. ``turns``: so many chunks take turns at the elements."""
        cdef bint across = l.n1 > 1          # chunks of the row's outer loop, not of the inner one
        cdef int64_t length = l.n1 if across else l.n0
        cdef int64_t per = ACROSS // l.n0 if across else limit
        cdef int64_t count = l.n0 * l.n1, m = l.a * l.b
        if per < 1:
            per = 1
        cdef int64_t whole = length // per, last = length % per, chunks
        cdef int64_t between = per, skip = 1      # elements from one chunk to the next, and within a chunk
        if turns:
            per, whole, last, between, skip = (length + turns - 1) // turns, length % turns, length // turns, 1, turns
            whole = whole or turns
        chunks = turns or whole + (last != 0)
        cdef int64_t step = per * l.n0 if across else per      # positions per chunk
        cdef int64_t jump = between * (l.s1 if across else l.s0)    # bytes per chunk
        cdef Kernel kernel = self.find(x, first, second, variant)
        cdef int together = 0
        if elsewhere and kernel_place():
            together = 1 if not l.columns else COLUMNS_OF_BLOCK
        cdef kernel_t join = self.find_merge(x, first, second, together)
        if key is not None:
            kernel.fn = self.find_fused(key, prologue, first, second, variant)
        cdef int* widths = self.widths[self.key(x.code, first.code)]
        cdef char* states[MAXSTATES]
        cdef char* pointers[MAXSTATES + 3 + MOST_FUSED]
        cdef int64_t args[40 + 4 * MOST_FUSED + 2 * MOST_NUMBERS]
        cdef int64_t total = 0, a, rest, hop
        cdef int64_t* step_of
        cdef int i, n
        for i in range(self.nstates):
            total += (chunks * m * widths[i] + 63) & -64
        cdef char* block = <char*>take_scratch(total)
        if block == NULL:
            raise MemoryError()
        cdef char* free_ = block
        try:
            for i in range(self.nstates):
                states[i] = free_
                free_ += (chunks * m * widths[i] + 63) & -64
            for a in range(l.a):
                for rest in range(2):
                    if rest and chunks == whole or not rest and not whole:
                        continue
                    n = 3
                    args[0], args[1], args[2] = l.n0, l.n1, l.b
                    if across:
                        args[1] = last if rest else per
                    else:
                        args[0] = last if rest else per
                    for i in range(self.nstates):
                        pointers[i] = states[i] + (a * l.b + (whole * m if rest else 0)) * widths[i]
                        n = out_strides(args, n, m * widths[i], widths[i])
                    pointers[self.nstates] = read + a * l.sa + (whole * jump if rest else 0)
                    args[n], args[n + 1], args[n + 2], args[n + 3] = l.s0 * skip, l.s1, jump, l.sb
                    n += 4
                    for i in range(prologue.nleaves):
                        step_of = prologue.steps[i]
                        hop = between * step_of[1 if across else 0]
                        pointers[self.nstates + 1 + i] = prologue.pointers[i] + a * step_of[2]
                        if rest:
                            pointers[self.nstates + 1 + i] += whole * hop
                        args[n], args[n + 1], args[n + 2], args[n + 3] = step_of[0] * skip, step_of[1], hop, step_of[3]
                        n += 4
                    args[n], args[n + 1], args[n + 2] = whole * step if rest else 0, step, count
                    args[n + 3], args[n + 4] = params[0], params[1]
                    memcpy(args + n + 5, prologue.numbers, prologue.nnumbers * sizeof(int64_t))
                    launch_rows(kernel, pointers, self.nstates + 1 + prologue.nleaves, args, n + 5 + prologue.nnumbers,
                                chunks - whole if rest else whole, l.b, args[0] * args[1], l.columns, True)
            args[0], args[1], args[2], args[3], args[4] = chunks, m, count, params[0], params[1]
            for i in range(self.nouts):
                pointers[i] = results[i]
            for i in range(self.nstates):
                pointers[self.nouts + i] = states[i]
            if together > 1:
                m = (m + together - 1) // together
            run_kernel(join, pointers, self.nouts + self.nstates, args, 5, m, 1 + 16384 // chunks, False)
        finally:
            release_scratch(block, total)
        return 0


@cython.final
cdef class Total(Later):
    """A deferred reduction of a whole tensor. Often it is never read, as with a sum that is only differentiated."""

    cdef Reducer reducer
    cdef Tensor like             # of the form of the reduced tensor
    cdef uint64_t mask
    cdef Layout layout
    cdef int64_t params[2]

    cdef int run_alone(self, Deferred r) except -1:
        cdef Tensor x = alias_tensor(self.like, self.like.nd, self.like.sizes, self.like.strides, 0)
        cdef Tensor first = <Tensor>Tensor.__new__(Tensor)   # has the dtype of the result
        cdef Storage storage = <Storage>r.storage
        cdef Source* s = &r.sources[0]
        cdef Prologue prologue
        cdef Layout made
        cdef char** results = [r.data, NULL]
        first.code = r.code
        x.storage = <Storage>s.storage
        x.raw = (<Deferred>s.deferred).data if s.deferred != NULL else s.data
        if s.deferred != NULL and (prologue_of(x, &prologue) is None or not self.reducer.place_leaves(
                x, self.mask, &prologue, &self.layout, &made)):
            compute_to_read(x.storage)
            x.raw = s.data
        self.reducer.launch(x, &self.layout, first, None, results, self.params, self.mask)
        return finish(r, storage)


cdef Total defer_total(Reducer reducer, Tensor x, uint64_t mask, const Layout* layout, const int64_t* params):
    """The deferred reduction of all of ``x``."""
    cdef Total made = Total.__new__(Total)
    made.reducer, made.name, made.like, made.mask = reducer, reducer.name, prototype(x), mask
    made.layout, made.params, made.ends = layout[0], [params[0], params[1]], True
    return made


cdef inline int out_strides(int64_t* args, int n, int64_t a, int64_t b) noexcept:
    args[n] = args[n + 1] = 0
    args[n + 2], args[n + 3] = a, b
    return n + 4


cdef Tensor strided(int code, int nd, int64_t* shape, int64_t* strides):
    """An uninitialized dense tensor with these strides."""
    cdef Tensor base = empty_tensor(code, nd, shape)
    return alias_tensor(base, nd, shape, strides, 0)


cdef Tensor copy_rows(Tensor x, int* kept, int nk, int* reduced, int nr):
    """A contiguous copy with the reduced dimensions last."""
    cdef int64_t shape[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int i
    for i in range(nk):
        shape[i], strides[i] = x.sizes[kept[i]], x.strides[kept[i]]
    for i in range(nr):
        shape[nk + i], strides[nk + i] = x.sizes[reduced[i]], x.strides[reduced[i]]
    return contiguous_tensor(alias_tensor(x, nk + nr, shape, strides, 0))


cdef void place(Layout* l, Group* outer, int nk, Group* inner, int nr, int item, bint ordered) noexcept:
    """Rows from at most two kept and two reduced groups; vectors run along the contiguous one."""
    cdef int first = nr - 1   # the group that is the inner loop of the row
    l.n0, l.s0 = 1, item
    l.b, l.sb = 1, 0
    if nr:
        if not ordered and nr == 2 and inner[0].stride == item:
            first = 0
        l.n0, l.s0 = inner[first].size, inner[first].stride
        if nr == 2:
            l.n1, l.s1 = inner[1 - first].size, inner[1 - first].stride
    if nk:
        l.b, l.sb = outer[nk - 1].size, outer[nk - 1].stride
        if nk == 2:
            l.a, l.sa = outer[0].size, outer[0].stride
    cdef bint along = nr and l.s0 == item
    if along and not (l.n0 <= 16 and l.n1 == 1 and l.b >= 32):
        return
    if nk and l.sb == item and not along:
        l.columns = True
    else:
        l.strided = True
        l.columns = nk and l.b >= 16 and l.n0 <= 32


cdef int launch_rows(Kernel kernel, char** pointers, int npointers, int64_t* args, int nargs, int64_t a, int64_t b,
                     int64_t count, bint columns, bint fully) except -1:
    """Launch over ``a * b`` rows of ``count`` elements; with ``fully``, pieces of column mode have all ``b`` if
    possible."""
    cdef int64_t units, total, grain, work = a * b * count
    if columns:
        units = (b + kernel.lanes - 1) // kernel.lanes
        total = a * units
        grain = 1 + PIECE // (count * kernel.lanes + 1)
        if fully:
            grain = WIDEST if units > WIDEST else (grain + units - 1) // units * units
        elif grain < 64 and total > grain:  # enough for wide tiles
            grain = 64 if units >= 128 else 16 if units >= 16 else grain
    else:
        total = a * b
        grain = 1 + PIECE // (count + 1)
    return launch_work(kernel.fn, pointers, npointers, args, nargs, total, grain, work)
