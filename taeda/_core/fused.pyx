"""Kernels of several pointwise ops: their nodes, their keys, and their launch."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from .callbacks import callbacks
from .devices cimport build_there, elsewhere, kernel_place
from .memory cimport Storage
from .pool cimport kernel_t
from .deferred cimport (
    AGAIN, CACHED, LEAF, MOST_NODES, MOST_NUMBERS, MOST_WORDS, NODE, NUMBER, Deferred, Kernel, Source, Taken, finish,
    is_held, is_undone_row, move_back, move_block, pending,
)
from .tensor cimport (
    ITEMSIZE, MOST_FUSED, PARAM, STREAM_GRAIN, STREAM_LEAST, Launch, Tensor, coalesce, layout_class, need_memory,
    run_elements, stores_stream,
)

from functools import partial

from .tensor import ALL_DTYPES

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef int generation = 0
cdef int walk = 0         # below 0: the mark, in `place`, of visited deferred ops that are in no kernel
cdef object WATCHER = None


cdef inline bint same_place(const Source* a, const Source* b, int nd) noexcept:
    return a.data == b.data and a.code == b.code and memcmp(a.strides, b.strides, nd * sizeof(int64_t)) == 0


cdef int leaf_of(Kernel* k, Source* s, int nd) noexcept:
    """The number of an operand's leaf; -1 if there is no room."""
    cdef int i
    for i in range(k.nleaves):
        if same_place(k.leaves[i], s, nd):
            return i
    if k.nleaves == MOST_FUSED:
        return -1
    k.leaves[k.nleaves] = s
    k.nleaves += 1
    return k.nleaves - 1


cdef bint are_alike(Deferred a, Deferred b, bint gathered) noexcept:
    """Whether two deferred ops of one form compute the same. ``gathered``: their operands have places in one kernel."""
    cdef int i
    cdef Source* s
    cdef Source* t
    if a is b:
        return True
    if a.op is not b.op or a.variant != b.variant or a.compute != b.compute or a.nsources != b.nsources:
        return False
    for i in range(a.nsources):
        s, t = &a.sources[i], &b.sources[i]
        if s.code != t.code:
            return False
        if s.code == PARAM:
            if s.slots[0] != t.slots[0] or s.slots[1] != t.slots[1]:
                return False
        elif pending(s) != NULL and pending(t) != NULL:
            if gathered and (<Deferred>s.deferred).place != (<Deferred>t.deferred).place:
                return False
            if not gathered and not are_alike(<Deferred>s.deferred, <Deferred>t.deferred, False):
                return False
        elif pending(s) != pending(t) or not same_place(s, t, a.nd):
            return False
    return True


cdef bint gather(Kernel* k, Deferred r) noexcept:
    """Append the deferred ops that ``r`` depends on, and ``r``; whether there was room. Recursive: at most MOST_NODES
    deep."""
    cdef int i
    cdef Source* s
    if r.mark == generation:
        return True
    r.mark = generation
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            k.nnumbers += 1
        elif pending(s) != NULL:
            if not gather(k, <Deferred>s.deferred):
                return False
        elif leaf_of(k, s, r.nd) < 0:
            return False
    for i in range(k.nnodes):  # equal deferred ops are computed once
        if are_alike(<Deferred>k.nodes[i], r, True):
            r.place = i
            return True
    if k.nnodes == MOST_NODES:
        return False
    r.place = k.nnodes
    k.nodes[k.nnodes] = <PyObject*>r
    k.nnodes += 1
    return True


cdef int start(Kernel* k) noexcept:
    global generation
    generation += 1
    k.nnodes = k.nouts = k.nleaves = k.nnumbers = k.ntaken = 0
    return 0


cdef int gather_all(Kernel* k, Deferred root) except -1:
    start(k)
    if not gather(k, root):  # `defer` prevents it
        raise RuntimeError("a deferred op is larger than a kernel may be")
    return 0


cdef int measure(Deferred r, PyObject** parts) except -1:
    """Set the exact counts of the kernel for ``r``, which is not in the list yet."""
    cdef Kernel k
    cdef int i
    cdef bint fits = True
    start(&k)
    for i in range(r.nsources):
        if parts[i] != NULL and not (<Deferred>parts[i]).is_row:
            fits = fits and gather(&k, <Deferred>parts[i])
    if fits:
        r.nodes, r.reads, r.numbers = k.nnodes + 1, r.own + k.nleaves, r.own_numbers + k.nnumbers
    return 0


cdef bint join(Kernel* k, Deferred r) except -1:
    """Add ``r`` to the results of a kernel; whether there was room. If not, the kernel is unusable."""
    if k.nouts + 1 > MOST_FUSED // 2 or not gather(k, r):
        return False
    k.outs[k.nouts] = <PyObject*>r
    k.nouts += 1
    return k.nouts + k.nleaves <= MOST_FUSED and k.nnumbers <= MOST_NUMBERS


cdef inline void begin_walk() noexcept:
    """Start a new walk, with a new mark. Without marks, shared operands would be visited an exponential number of
    times."""
    global walk
    walk = walk - 1 if walk > -(1 << 30) else -1


cdef uint64_t places_of(Deferred r) noexcept:
    """A bit for each place that a kernel for ``r`` reads; all bits if it reads none. Kernels without a common bit share
    nothing."""
    cdef uint64_t found
    begin_walk()
    found = places_below(r)
    return found if found else ~<uint64_t>0


cdef uint64_t places_below(Deferred r) noexcept:
    cdef uint64_t found = 0
    cdef int i
    cdef Source* s
    r.place = walk
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            continue
        if pending(s) == NULL:
            found |= <uint64_t>1 << (<uint64_t>s.data * <uint64_t>0x9E3779B97F4A7C15 >> 58)
        elif (<Deferred>s.deferred).place != walk:
            found |= places_below(<Deferred>s.deferred)
    return found


cdef bint shares(Kernel* k, Deferred r) noexcept:
    """Whether ``r`` depends on something that the kernel reads or computes."""
    begin_walk()
    return shares_below(k, r)


cdef bint shares_below(Kernel* k, Deferred r) noexcept:
    cdef int i, j
    cdef Source* s
    r.place = walk  # `r` is in no kernel
    for i in range(r.nsources):
        s = &r.sources[i]
        if s.code == PARAM:
            continue
        if pending(s) != NULL:
            if (<Deferred>s.deferred).mark == generation:
                return True
            if (<Deferred>s.deferred).place != walk and shares_below(k, <Deferred>s.deferred):
                return True
            continue
        for j in range(k.nleaves):
            if same_place(k.leaves[j], s, r.nd):
                return True
    return False


cdef int readings(Kernel* k, Deferred r) noexcept:
    """The number of operands of the kernel's nodes that are the result of ``r``."""
    cdef int i, j, n = 0
    for i in range(k.nnodes):
        for j in range((<Deferred>k.nodes[i]).nsources):
            n += (<Deferred>k.nodes[i]).sources[j].deferred == <PyObject*>r
    return n


cdef void write_along(Kernel* k) noexcept:
    """Add held results to the outputs: those that fit the cache, those of in-place ops, and enough of the others that
    no recomputation takes more than AGAIN ops.
    """
    cdef int i, j
    cdef int[MOST_NODES] cost
    cdef Deferred r
    cdef Source* s
    cdef bint chosen
    for i in range(k.nnodes):
        r = <Deferred>k.nodes[i]
        cost[i] = 1
        for j in range(r.nsources):
            s = &r.sources[j]
            if pending(s) != NULL:
                cost[i] = min(cost[i] + cost[(<Deferred>s.deferred).place], AGAIN + 1)
        chosen = False
        if r.superseded or r.storage == NULL:
            continue
        for j in range(k.nouts):
            chosen = chosen or k.outs[j] == k.nodes[i]
        if (not chosen and k.nouts + k.nleaves < MOST_FUSED
                and (r.inplace or cost[i] > AGAIN or r.count * ITEMSIZE[r.code] <= CACHED)
                and is_held(r)):
            k.outs[k.nouts] = k.nodes[i]
            k.nouts += 1
            chosen = True
        if chosen:
            cost[i] = 0


cdef int run(Kernel* kernel) except -1:
    """Run ``kernel``, which writes its results and the ones that `write_along` chose."""
    cdef Kernel k
    cdef Deferred r
    cdef int i
    write_along(kernel)
    k = kernel[0]
    for i in range(k.nnodes):  # the code below may release them
        Py_INCREF(<object>k.nodes[i])
    for i in range(k.nouts):
        k.storages[i] = (<Deferred>k.outs[i]).storage
        Py_INCREF(<object>k.storages[i])
    try:
        for i in range(k.nouts):
            if not take_over(&k, i):
                need_memory(<Storage>k.storages[i])
        launch(&k, None)
        end_taking(&k, True)
        for i in range(k.nouts):
            r = <Deferred>k.outs[i]
            if (<Storage>k.storages[i]).deferred is r:
                finish(r, <Storage>k.storages[i])
    except:
        end_taking(&k, False)
        raise
    finally:
        for i in range(k.nouts):
            Py_DECREF(<object>k.storages[i])
        for i in range(k.nnodes):
            Py_DECREF(<object>k.nodes[i])
    return 0


cdef bint take_over(Kernel* k, int which) except -1:
    """Give output ``which`` the memory of an operand that nothing reads afterwards; False if there is none."""
    cdef Deferred out = <Deferred>k.outs[which], r
    cdef Storage storage = <Storage>k.storages[which]
    cdef PyObject* old
    cdef int i, j, d, places, readers
    cdef bint same, ends = True
    if storage.late is None:
        return False
    for i in range(k.nnodes):  # no reader may outlive this launch
        r = <Deferred>k.nodes[i]
        same = False
        for j in range(k.nouts):
            same = same or k.outs[j] == k.nodes[i] and (<Storage>k.storages[j]).deferred is r
        ends = ends and (same or r.storage == NULL and r.readers == readings(k, r))
    for i in range(k.nleaves if ends else 0):
        old = k.leaves[i].storage
        if old == NULL or (<Storage>old).deferred is not None or k.leaves[i].data != (<Storage>old).data:
            continue
        places = readers = 0
        for j in range(k.nleaves):
            places += k.leaves[j].storage == old
        for j in range(k.nnodes):
            for d in range((<Deferred>k.nodes[j]).nsources):
                readers += (<Deferred>k.nodes[j]).sources[d].storage == old
        same = places == 1 and ITEMSIZE[k.leaves[i].code] == ITEMSIZE[out.code]
        for d in range(out.nd):
            same = same and k.leaves[i].strides[d] == out.strides[d] * ITEMSIZE[out.code]
        if same and readers == (<Storage>old).waits == Py_REFCNT(old) and take_block(k, <Storage>old, storage):
            return True
    return False


cdef bint take_block(Kernel* k, Storage old, Storage storage) except -1:
    cdef Taken* t = &k.taken[k.ntaken]
    cdef list late = storage.late
    t.old, t.storage, t.late, t.before = <PyObject*>old, <PyObject*>storage, <PyObject*>late, storage.data
    if not move_block(old, storage):
        return False
    Py_INCREF(late)
    k.ntaken += 1
    return True


cdef int end_taking(Kernel* k, bint computed) except -1:
    """End reuse of memory: after the kernel it is final. If the kernel did not run, operands get their memory back."""
    cdef Taken* t
    while k.ntaken:
        k.ntaken -= 1
        t = &k.taken[k.ntaken]
        if not computed:
            move_back(<Storage>t.old, <Storage>t.storage, t.before, <list>t.late)
        Py_DECREF(<object>t.late)
    return 0


cdef int launch(Kernel* k, Tensor target) except -1:
    """Run the kernel of these nodes; build it if it is new. The only output goes to ``target``, if given."""
    cdef Launch L
    cdef char classes[MOST_FUSED + 1]
    cdef int64_t words[MOST_WORDS]
    cdef Deferred root = <Deferred>k.outs[0], r
    cdef int i, d, n = 0, nslots
    cdef int64_t grain = 16384
    cdef void* address
    # addresses and strides
    L.nd, L.nmem = root.nd, k.nouts + k.nleaves
    memcpy(L.sizes, root.sizes, root.nd * sizeof(int64_t))
    for i in range(k.nouts):
        r = <Deferred>k.outs[i]
        L.ptr[i] = r.data
        for d in range(root.nd):
            L.strides[i][d] = r.strides[d] * ITEMSIZE[r.code]
    if target is not None:
        L.ptr[0] = target.raw
        for d in range(root.nd):
            L.strides[0][d] = target.strides[d] * ITEMSIZE[root.code]
    for i in range(k.nleaves):
        L.ptr[k.nouts + i] = k.leaves[i].data
        memcpy(L.strides[k.nouts + i], k.leaves[i].strides, root.nd * sizeof(int64_t))
    coalesce(&L)
    for i in range(L.nmem):
        classes[i] = layout_class(&L, i, ITEMSIZE[(<Deferred>k.outs[i]).code if i < k.nouts
                                                  else k.leaves[i - k.nouts].code])
    classes[L.nmem] = 0
    if root.count >= STREAM_LEAST and stores_stream(&L, k.nouts, classes, root.count):
        memset(classes, b"n", k.nouts)
        grain = STREAM_GRAIN
    # the kernel
    for i in range(L.nmem):
        words[i] = classes[i] << 8 | (k.leaves[i - k.nouts].code if i >= k.nouts else (<Deferred>k.outs[i]).place)
    if elsewhere:
        words[0] |= <int64_t>kernel_place() << 32
    n = describe(k, words + L.nmem) + L.nmem
    address = find(words, n)
    if address == NULL:
        given = (nodes_of(k), [(<Deferred>k.outs[i]).place for i in range(k.nouts)],
                 [ALL_DTYPES[k.leaves[i].code].name for i in range(k.nleaves)], (<bytes>classes).decode())
        if kernel_place():
            address = <void*><size_t>build_there(kernel_place(), "fused", given, partial(callbacks.build_fused, *given))
        else:
            address = <void*><size_t>callbacks.build_fused(*given)
        add(words, n, address)
    # its numbers
    L.kernel = <kernel_t>address
    L.arg[0] = L.sizes[L.nd - 1]
    for i in range(L.nmem):
        L.arg[2 + 2 * i] = L.strides[i][L.nd - 1]
        L.arg[3 + 2 * i] = L.strides[i][L.nd - 2] if L.nd > 1 else 0
    nslots = 2 + 2 * L.nmem
    L.narg = nslots + numbers_of(k, L.arg + nslots)
    done = [<Deferred>k.outs[i] for i in range(k.nouts)]
    if WATCHER is not None:
        tell(k, [(<Deferred>k.outs[i]).place for i in range(k.nouts)], root)
    run_elements(&L, root.count, grain)
    return 0


cdef struct Entry:
    uint64_t hash
    int64_t* words
    int n
    void* address

cdef Entry* table = NULL      # kernels by key; open addressing
cdef int table_size = 0, table_used = 0


cdef uint64_t hash_of(const int64_t* words, int n) noexcept:
    cdef uint64_t h = n
    cdef int i
    for i in range(n):
        h = (h ^ <uint64_t>words[i]) * <uint64_t>0x9E3779B97F4A7C15
        h ^= h >> 29
    return h | 1


cdef void* find(const int64_t* words, int n) noexcept:
    """The kernel of this key; NULL if there is none yet."""
    cdef uint64_t h = hash_of(words, n)
    cdef int i = <int>(h >> 20) & (table_size - 1)
    if table_size == 0:
        return NULL
    while table[i].hash:
        if table[i].hash == h and table[i].n == n and memcmp(table[i].words, words, n * sizeof(int64_t)) == 0:
            return table[i].address
        i = (i + 1) & (table_size - 1)
    return NULL


cdef int add(const int64_t* words, int n, void* address) except -1:
    """Add a kernel to the table."""
    global table, table_size, table_used
    cdef Entry* old = table
    cdef Entry* larger
    cdef int i, j, size = table_size
    cdef Entry made
    made.hash, made.n, made.address = hash_of(words, n), n, address
    if 2 * (table_used + 1) > size:
        size = max(2 * size, 64)
        larger = <Entry*>calloc(size, sizeof(Entry))
        if larger == NULL:
            raise MemoryError()
        for j in range(table_size):
            if old[j].hash:
                i = <int>(old[j].hash >> 20) & (size - 1)
                while larger[i].hash:
                    i = (i + 1) & (size - 1)
                larger[i] = old[j]
        table, table_size = larger, size
        free(old)
    made.words = <int64_t*>malloc(n * sizeof(int64_t))
    if made.words == NULL:
        raise MemoryError()
    memcpy(made.words, words, n * sizeof(int64_t))
    i = <int>(made.hash >> 20) & (size - 1)
    while table[i].hash:
        i = (i + 1) & (size - 1)
    table[i] = made
    table_used += 1
    return 0


def count_kernels():
    """The number of kernels of several ops that this process has built or loaded."""
    return table_used


def watch(function):
    """Call ``function(names of ops, numbers of the written ones, bytes read, bytes written, elements)`` for each kernel
    of this process that computes deferred ops, also as a prologue or epilogue. None stops that. Gives the old function.
    """
    global WATCHER
    before = WATCHER
    WATCHER = function
    return before


cdef bint is_watched() noexcept:
    return WATCHER is not None


cdef int tell_watcher(list names, int results, int64_t read, int64_t written, int64_t count) except -1:
    """Tell the watcher of a kernel that writes so many results."""
    WATCHER(names, list(range(results)), read, written, count)
    return 0


cdef int64_t bytes_read(Kernel* k, int nd, const int64_t* sizes) noexcept:
    """Bytes that a kernel reads from memory."""
    cdef int64_t n, read = 0
    cdef int i, d
    for i in range(k.nleaves):
        if is_undone_row(k.leaves[i]):
            continue
        n = ITEMSIZE[k.leaves[i].code]
        for d in range(nd):
            n *= sizes[d] if k.leaves[i].strides[d] else 1
        read += n
    return read


cdef list names_of(Kernel* k):
    return [(<Deferred>k.nodes[i]).op.name for i in range(k.nnodes)]


cdef int tell(Kernel* k, list outs, Deferred root) except -1:
    """Tell the watcher of a kernel."""
    cdef int64_t written = 0
    cdef int i
    for i in range(len(outs)):
        written += root.count * ITEMSIZE[(<Deferred>k.outs[i]).code]
    WATCHER(names_of(k), outs, bytes_read(k, root.nd, root.sizes), written, root.count)
    return 0


cdef int describe(Kernel* k, int64_t* words) noexcept:
    """Write the key of a kernel, its nodes and their operands as numbers; how many numbers."""
    cdef int i, j, n = 3
    cdef Deferred r
    cdef Source* s
    words[0], words[1], words[2] = k.nnodes, k.nouts, k.nleaves
    for i in range(k.nnodes):
        r = <Deferred>k.nodes[i]
        words[n] = <int64_t><void*>r.op
        words[n + 1] = r.variant << 16 | r.compute << 8 | r.code
        n += 2
        for j in range(r.nsources):
            s = &r.sources[j]
            if s.code == PARAM:
                words[n] = NUMBER
            elif pending(s) != NULL:
                words[n] = NODE | (<Deferred>s.deferred).place
            else:
                words[n] = LEAF | leaf_of(k, s, r.nd)
            n += 1
    return n


cdef int numbers_of(Kernel* k, int64_t* slots) noexcept:
    """Write the numbers that are arguments of the nodes, two words each; how many words."""
    cdef int i, j, n = 0
    cdef Deferred r
    for i in range(k.nnodes):
        r = <Deferred>k.nodes[i]
        for j in range(r.nsources):
            if r.sources[j].code == PARAM:
                slots[n], slots[n + 1] = r.sources[j].slots[0], r.sources[j].slots[1]
                n += 2
    return n


cdef int place_of(Kernel* k, PyObject* node) noexcept:
    """The number of a node. Its mark may belong to a kernel that was gathered later."""
    cdef int i
    for i in range(k.nnodes):
        if k.nodes[i] == node:
            return i
    for i in range(k.nnodes):
        if are_alike(<Deferred>k.nodes[i], <Deferred>node, False):
            return i
    return -1


cdef list nodes_of(Kernel* k):
    """The nodes of a kernel, for its builder (``ops/table.py``)."""
    cdef Deferred r
    cdef Source* s
    cdef int i, j
    cdef list nodes = []
    for i in range(k.nnodes):
        r = <Deferred>k.nodes[i]
        statics = r.op.defaults[r.op.noperands:]
        if r.variant:
            statics = [x for x, v in r.op.variants.items() if v == r.variant][0]
        sources = []
        for j in range(r.nsources):
            s = &r.sources[j]
            if s.code == PARAM:
                sources.append(None)
            elif pending(s) != NULL:
                sources.append(("node", place_of(k, s.deferred)))
            else:
                sources.append(("leaf", leaf_of(k, s, r.nd)))
        nodes.append((r.op, tuple(statics), ALL_DTYPES[r.compute].name, ALL_DTYPES[r.code].name, tuple(sources)))
    return nodes
