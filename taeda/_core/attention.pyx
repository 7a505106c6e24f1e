"""Launcher of scaled dot-product attention: what its kernels are told, and where their results lie.

Tensors are ``[batch, heads, positions, numbers]`` with any strides.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

from .gemm cimport cast, run, tiles
from .pool cimport kernel_t
from .tensor cimport (
    BF16, BOOL, F16, F32, F64, ITEMSIZE, Tensor, alias_tensor, contiguous_tensor, empty_tensor,
)

cdef enum:
    ARGS = 23
    BACKWARD_ARGS = 35
    QUERIES = 64          # of a block, as in the kernels
    PIECE = 1 << 20       # multiplications worth a piece of their own
    NONE = 0              # kinds of mask
    BOOLEAN = 1
    ADDED = 2

cdef list KINDS = ["none", "bool", "add"]
cdef kernel_t[3][2] _forward   # by kind of mask; float32, float64
cdef kernel_t[3][2] _backward
cdef int64_t _most = 0         # numbers of a head that the kernels take


cdef kernel_t find(kernel_t* table, int kind, int code, str name) except NULL:
    from ..kernels import attention
    assert len(attention.ATTENTION_ARGS) == ARGS and len(attention.BACKWARD_ARGS) == BACKWARD_ARGS
    assert attention.QUERIES == QUERIES
    cdef size_t address
    cdef int at = 2 * kind + (code == F64)
    if table[at] == NULL:
        address = getattr(attention, name)("float64" if code == F64 else "float32", KINDS[kind])
        table[at] = <kernel_t>address
    return table[at]


def fits(query, key, value, mask, double dropout, bint causal, bint gqa):
    """Whether the kernels cover a call on plain tensors of four dimensions; then its arguments are right, too."""
    global _most
    cdef Tensor q, k, v
    if not (type(query) is Tensor and type(key) is Tensor and type(value) is Tensor) or dropout > 0:
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
        if (<Tensor>mask).code != BOOL and (<Tensor>mask).code != q.code:
            return False
    if _most == 0:
        from ..kernels import attention
        _most = attention.MAX_HEAD
    return q.sizes[3] <= _most and v.sizes[3] <= _most


cdef Tensor along(Tensor t, int code):
    """``t`` in the kernels' dtype, its last dimension along memory."""
    t = cast(t, code)
    return t if t.strides[3] == 1 or t.sizes[3] == 1 else contiguous_tensor(t)


cdef Tensor positions_first(int code, int64_t b, int64_t h, int64_t n, int64_t e):
    """A new ``[b, h, n, e]`` whose memory is ``[b, n, h, e]``: heads are joined again without a copy."""
    cdef int64_t* sizes = [b, n, h, e]
    cdef int64_t* turned = [b, h, n, e]
    cdef int64_t* strides = [n * h * e, e, h * e, 1]
    return alias_tensor(empty_tensor(code, 4, sizes), 4, turned, strides, 0)


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


cdef int describe(int64_t* arg, Tensor q, Tensor k, Tensor v, Tensor out, Tensor mask, bint causal, double scale) noexcept:
    """The arguments of both kernels; gives the kind of mask."""
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
    return NONE if mask is None else BOOLEAN if mask.code == BOOL else ADDED


def attention(Tensor query, Tensor key, Tensor value, mask, bint causal, double scale):
    """Attention, and the logarithm of each row's sum of exponentials."""
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor q = along(query, code), k = along(key, code), v = along(value, code), m = None
    cdef int64_t n = q.sizes[2], rows = min(n, <int64_t>QUERIES), each
    cdef Tensor out = positions_first(code, q.sizes[0], q.sizes[1], n, v.sizes[3])
    cdef Tensor log = empty_tensor(code, 3, q.sizes)
    cdef int64_t arg[ARGS]
    cdef char* ptr[7]
    if mask is not None:
        m = spread(mask if (<Tensor?>mask).code == BOOL else cast(mask, code), q, k)
    cdef int kind = describe(arg, q, k, v, out, m, causal, scale)
    ptr[0], ptr[1], ptr[2], ptr[3], ptr[4] = out.ptr, log.ptr, q.ptr, k.ptr, v.ptr
    ptr[5], ptr[6] = NULL if m is None else m.ptr, tiles(code)
    each = rows * k.sizes[2] * (q.sizes[3] + v.sizes[3])
    cdef int64_t blocks = q.sizes[0] * q.sizes[1] * ((n + QUERIES - 1) // QUERIES)
    run(find(&_forward[0][0], kind, code, "attention"), ptr, arg, blocks, max(PIECE // each, <int64_t>1), <double>each * blocks)
    return (out if code == query.code else out.to(query.dtype)), log


cdef bint beside(Tensor q, Tensor k, Tensor v) noexcept:
    """Whether the three lie in one storage like the outputs of one layer, side by side at equal distances, and fill it."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int64_t distance = (k.ptr - q.ptr) // ITEMSIZE[q.code], expected = 1
    cdef int d, found, left = 5
    if q.storage is not k.storage or q.storage is not v.storage or k.ptr - q.ptr != v.ptr - k.ptr or distance <= 0:
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


def attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, mask, Tensor output, Tensor log, bint causal,
                       double scale):
    """Gradients of queries, keys and values.

    Where those are parts of one tensor, their gradients are parts of one in the same places, which a derivative that joins
    them finds done (see ``moves.adjoining``).
    """
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor g = along(grad, code), q = along(query, code), k = along(key, code), v = along(value, code), m = None
    cdef Tensor o = along(output, code), dq, dk, dv, room
    cdef int64_t b = q.sizes[0], h = q.sizes[1], n = q.sizes[2], e = q.sizes[3], s = k.sizes[2], kh = k.sizes[1]
    cdef int64_t ev = v.sizes[3], count = 3 * q.count, distance
    cdef int64_t arg[BACKWARD_ARGS]
    cdef char* ptr[12]
    if code == query.code and beside(q, k, v):
        distance = (k.ptr - q.ptr) // ITEMSIZE[code]
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
    if mask is not None:
        m = spread(mask if (<Tensor?>mask).code == BOOL else cast(mask, code), q, k)
    cdef int kind = describe(arg, q, k, v, o, m, causal, scale)
    put_strides(arg + 23, g)
    put_strides(arg + 26, dq)
    put_strides(arg + 29, dk)
    put_strides(arg + 32, dv)
    room = empty_tensor(code, 3, q.sizes)
    ptr[0], ptr[1], ptr[2], ptr[3], ptr[4], ptr[5], ptr[6] = dq.ptr, dk.ptr, dv.ptr, room.ptr, q.ptr, k.ptr, v.ptr
    ptr[7], ptr[8], ptr[9], ptr[10], ptr[11] = NULL if m is None else m.ptr, o.ptr, g.ptr, log.ptr, tiles(code)
    cdef int64_t each = n * s * (e + ev) * (h // kh)
    run(find(&_backward[0][0], kind, code, "attention_backward"), ptr, arg, b * kh, max(PIECE // each, <int64_t>1),
        <double>each * b * kh)
    if code == query.code:
        return dq, dk, dv
    return tuple([x.to(query.dtype) for x in (dq, dk, dv)])
