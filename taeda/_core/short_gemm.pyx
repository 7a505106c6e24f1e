"""Launcher of products of bfloat16 and int8 (kernels/short_gemm.py): packs both operands, then multiplies."""

from libc.stdint cimport int64_t, uint64_t

from .devices cimport MOST_DEVICES, kernel_place
from .dims cimport ceil_div
from .gemm cimport Matrix, Product
from .kernel_args cimport ShortArgs, ShortPackArgs
from .memory cimport release_scratch, take_scratch
from .planners cimport build, known, new_owner
from .pool cimport grain_of, kernel_t, launch_work
from .tensor cimport ITEMSIZE, NDTYPES

from .tensor import DTYPE_NAMES

cdef tuple NAMES = DTYPE_NAMES

cdef enum:
    SIDE = 16             # side of a block, in words of 32 bits
    BLOCK = 1024          # bytes of a block
    SHORT_WORK = 1 << 15  # multiplications from which packing pays

cdef uint64_t SHORT_PACK = new_owner("short_gemm.pack"), SHORT_PRODUCT = new_owner("short_gemm.product")
cdef list _engines = [None] * (MOST_DEVICES * NDTYPES)   # by place and dtype


cdef str short_engine(int code):
    """The engine for a dtype in this thread's place, or ""."""
    cdef int at = kernel_place() * NDTYPES + code
    if _engines[at] is None:
        from ..kernels import short_gemm
        _engines[at] = short_gemm.engine(NAMES[code])
    return _engines[at]


cdef bint short_pays(int code, int64_t m, int64_t n, int64_t k) except -1:
    return <double>m * n * k >= SHORT_WORK and k >= SIDE and short_engine(code) != ""


cdef int short_pack(Product* p, Matrix* x, char* to, bint left, int64_t size, int64_t batches) except -1:
    """Pack one operand; ``x.rows`` is the stride along k for B."""
    cdef int64_t item = ITEMSIZE[p.code], x_o = x.rows if left else x.columns, x_k = x.columns if left else x.rows
    cdef int64_t pairs = ceil_div(ceil_div(size, SIDE), 2)
    cdef ShortPackArgs arg
    cdef char* ptr[2]
    cdef int key = p.code << 2 | left << 1 | (x_k == item)
    cdef kernel_t fn = known(SHORT_PACK, key)
    if fn == NULL:
        fn = build(SHORT_PACK, key, (NAMES[p.code], bool(left), x_k == item))
    ptr[0], ptr[1] = to, x.ptr
    arg.size, arg.k, arg.x_o, arg.x_k = size, p.k, x_o, x_k
    arg.n1, arg.x_b0, arg.x_b1 = p.n1 if batches > 1 else 1, x.outer, x.inner
    launch_work(fn, ptr, 2, <int64_t*>&arg, sizeof(arg) // 8, pairs * batches, ceil_div(1 << 15, 2 * SIDE * p.k),
                <double>size * p.k * batches)
    return 0


cdef int short_product(Product* p) except -1:
    """``c = a @ b + d`` for bfloat16 and int8, to ``p.out``. An operand without a batch is packed once.

    The engine ``dot`` reads A in place where its rows are whole words. It has wide tasks, as each sums its rows of A
    for the signs of int8. The tile registers read B again for every 32 rows: their tasks are square.
    """
    cdef str engine = short_engine(p.code)
    cdef bint dots = engine == "dot", packs = not dots or p.a.columns != ITEMSIZE[p.code] or p.k * ITEMSIZE[p.code] % 4
    cdef int64_t batch = p.n0 * p.n1, steps = ceil_div(p.k * ITEMSIZE[p.code], 4 * SIDE), size = p.m * p.n
    cdef int64_t down = 256 if size >= 1 << 20 else 128 if size >= 1 << 18 else 64, across = down
    if dots:
        down, across = (64, 256) if size >= 1 << 18 else (32, 128)
    cdef int64_t batch_a = batch if p.a.outer or p.a.inner else 1, batch_b = batch if p.b.outer or p.b.inner else 1
    cdef int64_t size_a = ceil_div(p.m, SIDE) * steps * BLOCK if packs else 0, size_b = ceil_div(p.n,
                                                                                                 SIDE) * steps * BLOCK
    cdef int64_t tasks = ceil_div(p.m, down) * ceil_div(p.n, across) * batch
    cdef double work = <double>p.m * p.n * p.k * batch
    cdef ShortArgs arg
    cdef char* ptr[4]
    cdef char* a = <char*>take_scratch(size_a * batch_a) if packs else p.a.ptr
    cdef char* b = <char*>take_scratch(size_b * batch_b)
    cdef Matrix left
    cdef int64_t words = steps * SIDE if packs else p.k * ITEMSIZE[p.code] // 4
    cdef kernel_t fn
    try:
        if a == NULL or b == NULL:
            raise MemoryError(f"matmul: cannot allocate {size_a * batch_a + size_b * batch_b} bytes to pack its "
                              f"operands")
        left = p.a
        left.columns = 4 * SIDE  # from block to block along k
        if packs:
            left.rows, left.columns, left.inner = 4 * SIDE, BLOCK, size_a if batch_a > 1 else 0
            left.outer = left.inner * p.n1
            short_pack(p, &p.a, a, True, p.m, batch_a)
        short_pack(p, &p.b, b, False, p.n, batch_b)
        fn = known(SHORT_PRODUCT, p.code * NDTYPES + p.out)
        if fn == NULL:
            fn = build(SHORT_PRODUCT, p.code * NDTYPES + p.out, (NAMES[p.code], NAMES[p.out], engine))
        ptr[0], ptr[1], ptr[2], ptr[3] = p.c.ptr, a, b, p.d.ptr
        arg.m, arg.n, arg.steps, arg.words, arg.init, arg.n1 = p.m, p.n, steps, words, p.init != 0, p.n1
        arg.a_m, arg.a_k, arg.a_tile = left.rows, left.columns, steps * BLOCK if packs else SIDE * left.rows
        arg.down, arg.across, arg.b_step = down, across, size_b if batch_b > 1 else 0
        arg.a_b0, arg.a_b1, arg.c_m, arg.c_b0, arg.c_b1 = left.outer, left.inner, p.c.rows, p.c.outer, p.c.inner
        arg.d_m, arg.d_n, arg.d_b0, arg.d_b1 = p.d.rows, p.d.columns, p.d.outer, p.d.inner
        launch_work(fn, ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks, grain_of(work / 16, tasks), work)
    finally:
        if a != NULL and packs:
            release_scratch(a, size_a * batch_a)
        if b != NULL:
            release_scratch(b, size_b * batch_b)
    return 0
