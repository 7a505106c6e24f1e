"""Scaled dot-product attention: whether the kernels cover a call, and the random states of dropout.

Tensors are ``[batch, heads, positions, head dimension]`` with any strides. ``ops/_attention.py`` has the launches.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy

from .devices cimport CPU_NUMBER, META_NUMBER, here, swap_place
from .dims cimport ceil_div
from .planners cimport known, new_owner, of_arguments, of_family
from .pool cimport kernel_t, launch
from .random cimport BERNOULLI, Generator, draw_by_counter, enter, fill_memory, is_draw_planned, leave, which
from .recorder cimport refuse_recording
from .tensor cimport (
    BF16, BOOL, F16, F32, F64, I32, I64, Tensor, address_of, empty_tensor, host_tensor, to_host, uploaded,
)

cdef enum:
    STATE = 624           # words of the generator's state
    QUERIES = 64          # queries in a block, as in the kernels

cdef uint64_t CHECKPOINTS = new_owner("random.checkpoints")
cdef int64_t AT_ADDRESS = -0x7FFFFFFFFFFFFFFF - 1   # for kernels/philox.py: seed and call are at an address


def fits(query, key, value, mask, double dropout, bint causal, bint gqa):
    """Whether the kernels cover a call on plain tensors of four dimensions; then its arguments are also valid."""
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
        for d in range(m.nd):  # last dimension first
            n = k.sizes[2] if d == 0 else q.sizes[3 - d]
            if m.sizes[m.nd - 1 - d] != n and m.sizes[m.nd - 1 - d] != 1:
                return False
    return q.sizes[3] > 0 and v.sizes[3] > 0


def draw(Tensor q, Tensor k):
    """Take dropout's random numbers for all weights from the default generator: its states at each block of queries of
    each head.

    As in ``bernoulli_``, a weight takes two words. Only the states are made here. The last number is the position of
    the first word in the first state. Where numbers are drawn by counters, it is the seed and the number of the call.
    """
    cdef Generator g = which(None)
    cdef int64_t two = 2
    cdef Tensor counter
    cdef char* at
    if g.by_counter and here() > META_NUMBER:
        refuse_recording(b"numbers are drawn by counters")
        counter = empty_tensor(I64, 1, &two)
        at = address_of(counter)
        draw_by_counter(g, "state", (), &at, 1, 1, 0, 0)
        return counter
    cdef int64_t heads = q.sizes[0] * q.sizes[1], blocks = ceil_div(q.sizes[2], QUERIES), s = k.sizes[2]
    cdef int64_t size = heads * blocks * STATE + 1
    cdef int64_t* arg = [blocks, 2 * QUERIES * s, 2 * q.sizes[2] * s, 2 * heads * q.sizes[2] * s, heads * blocks]
    cdef Tensor states = host_tensor(I32, 1, &size)
    cdef char* to = address_of(states)
    cdef int before
    if known(CHECKPOINTS, 0) == NULL:
        from ..kernels import attention

        assert attention.QUERIES == QUERIES and attention.STATE == STATE
    if here() > META_NUMBER:
        before = swap_place(CPU_NUMBER)
        try:
            take_states(to, arg)
        finally:
            swap_place(before)
        return uploaded(states)
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
    """The factors by which dropout multiplied the weights, from the states of :func:`draw`."""
    cdef Generator g = Generator()
    cdef int64_t* sizes = [query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]]
    cdef int code = F64 if query.code == F64 else F32
    cdef Tensor out = empty_tensor(code, 4, sizes)
    cdef double* p = [1.0 - dropout, 1.0 / (1.0 - dropout)]
    cdef char* to = address_of(out)
    cdef int64_t* arg = [(<int64_t*>p)[0], (<int64_t*>p)[1], 0, AT_ADDRESS]
    if states.code == I64:
        arg[2] = <int64_t>address_of(states)
        launch(of_arguments("philox.fill", ("bernoulli", "float64" if code == F64 else "float32")), &to, 1, arg, 4,
               out.count, 1 << 14, False)
        return out if code == query.code else out.to(query.dtype)
    if states.device_type > META_NUMBER:
        states = to_host(states)
    memcpy(g.state, address_of(states), STATE * 4)
    g.position, g.fresh = (<int32_t*>address_of(states))[states.count - 1] % STATE, False
    fill_memory(g, BERNOULLI, code, address_of(out), out.count, (<int64_t*>p)[0], (<int64_t*>p)[1])
    return out if code == query.code else out.to(query.dtype)
