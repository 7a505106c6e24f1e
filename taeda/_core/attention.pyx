"""Launcher of scaled dot-product attention: what its kernels are told, and where their results lie.

Tensors are ``[batch, heads, positions, numbers]`` with any strides.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from .dims cimport ceil_div
from .gemm cimport cast, run, tiles
from .planners cimport build, known, new_owner, of_family
from .pool cimport kernel_t
from .slots cimport Slots, in_slot, make_slots, run_in_slots, zero_lines
from .random cimport BERNOULLI, Generator, enter, fill_memory, is_draw_planned, leave, which
from .tensor cimport (
    BF16, BOOL, F16, F32, F64, I32, ITEMSIZE, Tensor, address_of, alias_tensor, contiguous_tensor, empty_tensor,
)

cdef enum:
    ARGS = 28
    BACKWARD_ARGS = 42
    STATE = 624           # words of the generator's state
    QUERIES = 64          # of a block, as in the kernels
    STACKED = 256         # numbers of a head for which a packed block lies in the stack
    MARKS = 1 << 18       # bytes of a band's marks of what dropout keeps
    PIECE = 1 << 20       # multiplications worth a piece of their own
    NONE = 0              # kinds of mask
    BOOLEAN = 1
    ADDED = 2

cdef list KINDS = ["none", "bool", "add"]
cdef uint64_t FORWARD = new_owner("attention.attention"), BACKWARD = new_owner("attention.attention_backward")
cdef uint64_t CHECKPOINTS = new_owner("random.checkpoints")


cdef kernel_t find(uint64_t family, int kind, bint dropped, int code) except NULL:
    cdef uint64_t key = 4 * kind + 2 * dropped + (code == F64)
    cdef kernel_t fn = known(family, key)
    if fn == NULL:
        from ..kernels import attention
        assert len(attention.ATTENTION_ARGS) == ARGS and len(attention.BACKWARD_ARGS) == BACKWARD_ARGS
        assert attention.QUERIES == QUERIES and attention.MAX_HEAD == STACKED and attention.STATE == STATE
        fn = build(family, key, ("float64" if code == F64 else "float32", KINDS[kind], bool(dropped)))
    return fn




def fits(query, key, value, mask, double dropout, bint causal, bint gqa):
    """Whether the kernels cover a call on plain tensors of four dimensions; then its arguments are right, too."""
    cdef Tensor q, k, v, m
    cdef int d
    cdef int64_t n
    if not (type(query) is Tensor and type(key) is Tensor and type(value) is Tensor) or not (0 <= dropout < 1):
        return False
    q, k, v = <Tensor>query, <Tensor>key, <Tensor>value
    if q.nd != 4 or k.nd != 4 or v.nd != 4 or k.code != q.code or v.code != q.code:
        return False
    if q.code != F32 and q.code != F64 and q.code != F16 and q.code != BF16:
        return False
    if memcmp(k.sizes, v.sizes, 3 * sizeof(int64_t)) or q.sizes[0] != k.sizes[0] or q.sizes[3] != k.sizes[3]:
        return False
    if q.count == 0 or k.count == 0 or v.count == 0:
        return False
    if q.sizes[1] != k.sizes[1] and not (gqa and q.sizes[1] % k.sizes[1] == 0):
        return False
    if mask is not None:
        if type(mask) is not Tensor or causal or mask.requires_grad:
            return False
        m = <Tensor>mask
        if m.nd > 4 or (m.code != BOOL and m.code != q.code):
            return False
        for d in range(m.nd):  # from the last
            n = k.sizes[2] if d == 0 else q.sizes[3 - d]
            if m.sizes[m.nd - 1 - d] != n and m.sizes[m.nd - 1 - d] != 1:
                return False
    return q.sizes[3] > 0 and v.sizes[3] > 0


cdef Tensor along(Tensor t, int code):
    """``t`` in the kernels' dtype, its last dimension along memory."""
    t = cast(t, code)
    return t if t.strides[3] == 1 or t.sizes[3] == 1 else contiguous_tensor(t)


cdef Tensor positions_first(int code, int64_t b, int64_t h, int64_t n, int64_t e):
    """A new ``[b, h, n, e]`` whose memory is ``[b, n, h, e]``: heads are joined again without a copy."""
    cdef int64_t* sizes = [b, n, h, e]
    cdef int64_t* transposed = [b, h, n, e]
    cdef int64_t* strides = [n * h * e, e, h * e, 1]
    return alias_tensor(empty_tensor(code, 4, sizes), 4, transposed, strides, 0)


cdef void put_strides(int64_t* arg, Tensor t) noexcept:
    cdef int d, item = ITEMSIZE[t.code]
    for d in range(3):
        arg[d] = t.strides[d] * item


cdef Tensor spread(object mask, Tensor q, Tensor k):
    """The mask over every score, its last dimension along memory."""
    cdef Tensor t = <Tensor?>mask
    cdef int64_t s = k.sizes[2]
    if t.nd == 0 or t.sizes[t.nd - 1] != s or t.strides[t.nd - 1] != 1:
        t = contiguous_tensor(mask.expand((*mask.shape[:-1], s)))
    return t.expand((q.sizes[0], q.sizes[1], q.sizes[2], s))


cdef int describe(int64_t* arg, Tensor q, Tensor k, Tensor v, Tensor out, Tensor mask, bint causal, double scale,
                  double dropout, Tensor states, int64_t packed) except -1:
    """The arguments of both kernels; gives the kind of mask. ``packed``: bytes of packed keys and values in a slot."""
    cdef double chance = 1.0 - dropout, factor
    arg[0], arg[1], arg[2], arg[3] = q.sizes[2], k.sizes[2], q.sizes[3], v.sizes[3]
    arg[4], arg[5] = q.sizes[1], q.sizes[1] // k.sizes[1]
    put_strides(arg + 6, q)
    put_strides(arg + 9, k)
    put_strides(arg + 12, v)
    put_strides(arg + 15, out)
    if mask is not None:
        put_strides(arg + 18, mask)
    else:
        memset(arg + 18, 0, 3 * sizeof(int64_t))
    arg[21] = causal
    memcpy(arg + 22, &scale, sizeof(double))
    memset(arg + 23, 0, 5 * sizeof(int64_t))
    if states is not None:
        factor = 1.0 / chance
        arg[23] = (states.count - 1) * 4
        memcpy(arg + 24, &chance, sizeof(double))
        memcpy(arg + 25, &factor, sizeof(double))
        arg[26], arg[27] = packed, ceil_div(k.sizes[2] + 16, 64) * 64  # what is marked comes in registers
    return NONE if mask is None else BOOLEAN if mask.code == BOOL else ADDED


cdef Tensor draw(Tensor q, Tensor k):
    """Take what dropout needs for every weight from the default generator: its states at each block of queries of each
    head.

    Two words a weight, as ``bernoulli_`` takes them, of which only the state is made here. The last number is where in
    the first state the first word is.
    """
    cdef Generator g = which(None)
    cdef int64_t heads = q.sizes[0] * q.sizes[1], blocks = ceil_div(q.sizes[2], QUERIES), s = k.sizes[2]
    cdef int64_t size = heads * blocks * STATE + 1
    cdef int64_t* arg = [blocks, 2 * QUERIES * s, 2 * q.sizes[2] * s, 2 * heads * q.sizes[2] * s, heads * blocks]
    cdef Tensor states = empty_tensor(I32, 1, &size)
    cdef char* to = address_of(states)
    if not is_draw_planned(g, draw_states, &to, 1, arg, 5):
        take_states(to, arg)
    return states


cdef void draw_states(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    with gil:
        take_states(ptr[0], arg)


cdef int take_states(char* to, const int64_t* given) except -1:
    """The draw of :func:`draw`."""
    cdef Generator g = which(None)
    cdef char** ptr = [to, <char*>g.state]
    cdef int64_t arg[5]
    cdef kernel_t fn = of_family(CHECKPOINTS)
    enter(g)
    arg[0] = g.position
    memcpy(arg + 1, given, 4 * sizeof(int64_t))
    (<int32_t*>to)[given[4] * STATE] = <int32_t>g.position
    with nogil:
        fn(ptr, arg, 0, given[4])
    g.position, g.fresh = (arg[0] + arg[4] - 1) % STATE + 1, False
    leave(g)
    return 0


def kept(Tensor states, Tensor query, Tensor key, double dropout):
    """What dropout multiplied the weights by, from what :func:`draw` kept."""
    cdef Generator g = Generator()
    cdef int64_t* sizes = [query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]]
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor out = empty_tensor(code, 4, sizes)
    cdef double* p = [1.0 - dropout, 1.0 / (1.0 - dropout)]
    memcpy(g.state, address_of(states), STATE * 4)
    g.position, g.fresh = (<int32_t*>address_of(states))[states.count - 1] % STATE, False
    fill_memory(g, BERNOULLI, code, address_of(out), out.count, (<int64_t*>p)[0], (<int64_t*>p)[1])
    return out if code == query.code else out.to(query.dtype)


cdef int64_t packed_bytes(int code, int64_t depth) except -1:
    """Of a packed block of keys or values that does not lie in the stack."""
    from ..kernels import attention, target

    return attention.panel_bytes("float64" if code == F64 else "float32", depth, target.host().vector_bytes)


cdef int launch(kernel_t fn, char** ptr, int pointers, int64_t* arg, int args, int64_t slot, int64_t tasks,
                double work) except -1:
    """Run; each thread with ``slot`` bytes of memory if the kernel asks for some."""
    cdef Slots s
    cdef Tensor memory
    cdef int64_t each = <int64_t>(work / tasks)
    if slot == 0:
        run(fn, ptr, pointers, arg, args, tasks, max(PIECE // max(each, <int64_t>1), <int64_t>1), work)
        return 0
    memory = make_slots(&s, slot, tasks)
    run_in_slots(&s, fn, ptr, pointers, arg, args, tasks, work)
    return 0


def attention(Tensor query, Tensor key, Tensor value, mask, bint causal, double scale):
    """Attention, and each row's maximum with 1 over its sum of exponentials."""
    return forward(query, key, value, mask, causal, scale, 0, None)


def attention_dropout(Tensor query, Tensor key, Tensor value, mask, bint causal, double scale, double dropout):
    """The same with weights dropped; with what :func:`draw` gives."""
    cdef Tensor states = draw(query, key)
    return (*forward(query, key, value, mask, causal, scale, dropout, states), states)


cdef tuple forward(Tensor query, Tensor key, Tensor value, object mask, bint causal, double scale, double dropout,
                   Tensor states):
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor q = along(query, code), k = along(key, code), v = along(value, code), m = None
    cdef int64_t n = q.sizes[2], rows = min(n, <int64_t>QUERIES), each, slot
    cdef Tensor out = positions_first(code, q.sizes[0], q.sizes[1], n, v.sizes[3])
    cdef int64_t* two = [q.sizes[0], q.sizes[1], n, 2]
    cdef Tensor sums = empty_tensor(code, 4, two)
    cdef int64_t arg[ARGS]
    cdef char* ptr[9]
    if sums.count == 0:
        return (out if code == query.code else out.to(query.dtype)), sums
    if mask is not None:
        m = spread(mask if (<Tensor?>mask).code == BOOL else cast(mask, code), q, k)
    slot = packed_bytes(code, q.sizes[3]) if q.sizes[3] > STACKED else 0
    cdef int kind = describe(arg, q, k, v, out, m, causal, scale, dropout, states, slot)
    ptr[0], ptr[1], ptr[2], ptr[3], ptr[4] = (address_of(out), address_of(sums), address_of(q), address_of(k),
                                              address_of(v))
    ptr[5], ptr[6], ptr[7], ptr[8] = NULL if m is None else address_of(m), tiles(code), NULL, NULL
    if states is not None:
        ptr[7] = address_of(states)
        slot += QUERIES * arg[27]
    each = rows * k.sizes[2] * (q.sizes[3] + v.sizes[3])
    cdef int64_t blocks = q.sizes[0] * q.sizes[1] * ceil_div(n, QUERIES)
    launch(find(FORWARD, kind, states is not None, code), ptr, 8, arg, ARGS, slot, blocks,
           <double>each * blocks)
    return (out if code == query.code else out.to(query.dtype)), sums


cdef bint beside(Tensor q, Tensor k, Tensor v) noexcept:
    """Whether the three lie in one storage like the outputs of one layer, side by side at equal distances, and fill
    it."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int64_t distance = (k.raw - q.raw) // ITEMSIZE[q.code], expected = 1
    cdef int d, found, left = 5
    if q.storage is not k.storage or q.storage is not v.storage or k.raw - q.raw != v.raw - k.raw or distance <= 0:
        return False
    for d in range(4):
        if k.sizes[d] != q.sizes[d] or v.sizes[d] != q.sizes[d]:
            return False
        if k.strides[d] != q.strides[d] or v.strides[d] != q.strides[d]:
            return False
        sizes[d], strides[d] = q.sizes[d], q.strides[d]
    sizes[4], strides[4] = 3, distance
    while left:  # from the innermost dimension out, each begins where the last one ends
        found = -1
        for d in range(5):
            if sizes[d] == 1 or strides[d] == expected and sizes[d]:
                found = d
                break
        if found < 0:
            return False
        expected *= sizes[found]
        sizes[found], strides[found] = 0, 0
        left -= 1
    return True


def attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, mask, Tensor output, Tensor sums,
                       bint causal,
                       double scale, double dropout=0, Tensor states=None):
    """Gradients of queries, keys and values.

    Where those are parts of one tensor, their gradients are parts of one in the same places, which a derivative that
    joins them finds done (see ``moves.adjoining``).
    """
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor g = along(grad, code), q = along(query, code), k = along(key, code), v = along(value, code), m = None
    cdef Tensor o = along(output, code), dq, dk, dv, room
    cdef int64_t b = q.sizes[0], h = q.sizes[1], n = q.sizes[2], e = q.sizes[3], s = k.sizes[2], kh = k.sizes[1]
    cdef int64_t ev = v.sizes[3], count = 3 * q.count, distance, slot = 0
    cdef int64_t arg[BACKWARD_ARGS]
    cdef char* ptr[14]
    if code == query.code and beside(q, k, v):
        distance = (k.raw - q.raw) // ITEMSIZE[code]
        room = empty_tensor(code, 1, &count)
        dq = alias_tensor(room, 4, q.sizes, q.strides, 0)
        dk = alias_tensor(room, 4, q.sizes, q.strides, distance)
        dv = alias_tensor(room, 4, q.sizes, q.strides, 2 * distance)
    else:
        dq, dk = positions_first(code, b, h, n, e), positions_first(code, b, kh, s, e)
        dv = positions_first(code, b, kh, s, ev)
        if causal and s > n:  # keys that no query sees
            dk.zero_()
            dv.zero_()
    if sums.count == 0 or kh == 0:
        return tuple([x.zero_().to(query.dtype) for x in (dq, dk, dv)])
    if mask is not None:
        m = spread(mask if (<Tensor?>mask).code == BOOL else cast(mask, code), q, k)
    if e > STACKED or ev > STACKED:
        slot = packed_bytes(code, e) + packed_bytes(code, ev)
    cdef int kind = describe(arg, q, k, v, o, m, causal, scale, dropout, states, slot)
    put_strides(arg + 28, g)
    put_strides(arg + 31, dq)
    put_strides(arg + 34, dk)
    put_strides(arg + 37, dv)
    arg[40], arg[41] = n, h // kh
    room = empty_tensor(code, 3, q.sizes)
    ptr[0], ptr[1], ptr[2], ptr[3], ptr[4], ptr[5], ptr[6] = (address_of(dq), address_of(dk), address_of(dv),
                                                              address_of(room), address_of(q), address_of(k),
                                                              address_of(v))
    ptr[7], ptr[8], ptr[9], ptr[10], ptr[11] = (NULL if m is None else address_of(m), address_of(o), address_of(g),
                                                address_of(sums), tiles(code))
    ptr[12] = ptr[13] = NULL
    if states is not None:
        # Keys are packed once for each band, whose marks should stay near.
        arg[40], arg[41] = min(max(MARKS // (arg[27] * QUERIES), <int64_t>1) * QUERIES,
                               ceil_div(n, QUERIES) * QUERIES), 1
        ptr[12] = address_of(states)
        slot += arg[40] * arg[27]
    cdef int64_t each = n * s * (e + ev) * (h // kh)
    launch(find(BACKWARD, kind, states is not None, code), ptr, 13, arg, BACKWARD_ARGS, slot,
           b * kh,
           <double>each * b * kh)
    if code == query.code:
        return dq, dk, dv
    return tuple([x.to(query.dtype) for x in (dq, dk, dv)])


#: Functions of this module that launches run, and their addresses: `kernels/hosted.py` has each as a kernel.
HOSTED = {
    "zero_lines": <size_t><void*>zero_lines,
    "in_slot": <size_t><void*>in_slot,
}
