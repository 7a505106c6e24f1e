"""Launcher of matrix products: chooses, from sizes and strides, a kernel and the blocks that it runs over.

The number of blocks of C may depend on whether there is one thread. The blocks of k, and so every sum, do not.

The Python-visible functions take tensors of any strides and return new ones; they know nothing of gradients.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from .devices cimport CPU_NUMBER, META_NUMBER, MOST_DEVICES, devices, elsewhere, here, kernel_place
from .dims cimport ceil_div
from .kernel_args cimport DotArgs, DotRowsArgs, MatmulArgs, ProductArgs
from .memory cimport release_scratch, take_scratch
from .planners cimport build, known, new_owner, of_dtype, of_number
from .pool cimport TASK, grain_of, kernel_t, launch, launch_work, thread_count
from .short_gemm cimport is_short, short_product
from .tensor cimport (
    BF16, BOOL, C32, C64, F16, F32, F64, I8, I16, I32, I64, ITEMSIZE, KIND, MAXDIM, NDTYPES,
    REAL_OF, U8, U16, U32, U64, WORK, Tensor, address_of, address_to_read, alias_tensor, contiguous_tensor, copy_into,
    empty_tensor, make_size,
)

from .tensor import DTYPE_NAMES

cdef enum:
    PACK_B = 1            # flags of the kernel
    PACKED = 2
    PACK_A = 4
    TRANSPOSED = 8
    DOWN_FIRST = 16
    NEARBY = 32
    FAR = 1 << 16         # bytes from row to row
    LARGE = 1 << 19       # bytes of a matrix that does not fit the nearer caches
    ROWS = 6              # rows of a register tile
    FEW_ROWS = 12         # at most so many are multiplied along k, without packing B
    LONG = 128            # length of rows from which reducing each sum to one number hardly matters
    FEW_SHORT_ROWS = 4    # the same for bfloat16, where dot products repay the packing sooner
    FEW_COLUMNS = 1024    # most columns of a task that reads a row-major matrix
    READ = 8              # multiplications in the time of loading an item from memory
    SOME_ROWS = 264       # up to here tasks take all rows and pack B themselves
    MORE_ROWS = 480       # the same for panels of one cache line, where packing is little work and A is row-major
    IN_PLACE = 16         # rows that do not repay packing B, whatever its row stride
    NEAR = 3328           # row stride in bytes up to which caches hold blocks in place
    NEAR_BYTES = 1 << 20  # size of B up to which more rows than that use it in place
    AHEAD = 1 << 23       # most bytes of B that are packed before they are multiplied
    DEEP = 32             # of a tile of such a product
    HALVES = 16           # rows, columns and steps from which numbers of 16 bits are taken as they are
    WIDENED = 1 << 13     # complex numbers that are worth a task of their own to widen
    AHEAD_PANELS = 8      # panels from which a task should pack its rows of A
    MANY_COLUMNS = 384    # columns from which it should pack row-major ones, with panels of one cache line

cdef uint64_t MATMUL = new_owner("gemm.matmul"), PACK_LEFT = new_owner("packing.pack_a")
cdef uint64_t PACK_RIGHT = new_owner("packing.pack_b"), WIDEN = new_owner("packing.widen")
cdef uint64_t SPLIT = new_owner("packing.split_complex"), JOIN = new_owner("packing.join_complex")
cdef uint64_t SUM_NOTHING = new_owner("gemm.sum_nothing")
cdef uint64_t TILES = new_owner("gemm.panel_product")  # the other kernels call it for a panel
cdef uint64_t ALONG_MEMORY = new_owner("dot.matmul_dot"), FEW = new_owner("dot.matmul_rows")
cdef uint64_t BY_ELEMENTS = new_owner("gemm.product_elements")
cdef uint64_t INNER = new_owner("dot.dot"), INNER_COMPLEX = new_owner("dot.dot_complex")
cdef struct Cuts:                 # sizes of blocks, for the kernels of one device
    int64_t panel[NDTYPES]       # columns of a panel
    int64_t pitch                # items between one k and the next in packed A
    int64_t group                # tiles that pack_a packs at a time
    int64_t a_tiles[NDTYPES]     # most tiles of A that a task packs: in half of the second-level cache
    int64_t ahead                # bytes of B that are packed first: in half of the last cache
    int64_t near                 # bytes of packed B that are not prefetched: half of the second-level cache
    int64_t transposed_items     # most items of C that a task transposes
    int64_t k_block
    int64_t few_long             # FEW_ROWS for rows of LONG numbers and more
    int64_t chunk                # elements per sum of the inner product's kernel
    bint one_lane                # whether kernels have no vectors
    bint masks                   # whether the tiles may read a short last panel in place

cdef Cuts[MOST_DEVICES] CUTS   # by number of the device
cdef tuple NAMES = DTYPE_NAMES


cdef inline Cuts* cuts() noexcept:
    """The sizes of blocks in this thread's place."""
    return &CUTS[kernel_place() if elsewhere else CPU_NUMBER]


cdef inline int need_blocks(int code) except -1:
    """Make sure that the block sizes for a dtype are known."""
    return load(code) if cuts().panel[code] == 0 else 0


cdef int load(int code) except -1:
    """Load the block sizes for a dtype."""
    cdef Cuts* s = cuts()
    from ..kernels import dot, gemm, packing, target, tile
    from . import machine
    width = target.here().vector_bytes
    assert dot.MOST_ROWS == FEW_SHORT_ROWS and dot.MOST_COLUMNS == FEW_COLUMNS
    assert tile.tile_shape(width).rows == ROWS
    s.pitch = tile.tile_shape(width).pitch
    s.group, s.transposed_items, s.k_block = packing.PACK_GROUP, gemm.TRANSPOSED_ITEMS, gemm.K_BLOCK
    # Half of the cache is left to a neighbour on the same core or on others. How rows and columns are cut changes no
    # sum.
    caches = machine.caches()
    s.near = half = caches.get(2, caches[max(caches)]) // 2
    s.a_tiles[code] = max(4, min(gemm.A_TILES, half // (s.k_block * s.pitch * ITEMSIZE[code])))
    s.ahead = min(AHEAD, caches[max(caches)] // 2)
    s.chunk, s.few_long = dot.DOT_CHUNK, dot.few_long_rows(width)
    s.masks, s.one_lane = width > 16, width < 8
    s.panel[code] = tile.panel(NAMES[code], width)
    return 0


cdef Blocks blocks(int code) except *:
    cdef Blocks b
    need_blocks(code)
    b.panel, b.rows, b.pitch, b.depth = cuts().panel[code], ROWS, cuts().pitch, cuts().k_block
    return b


cdef char* tiles(int code) except NULL:
    return <char*>of_dtype(TILES, code)


cdef int64_t packed_size(int code, int64_t m, int64_t k) except -1:
    need_blocks(code)
    return ceil_div(m, ROWS) * k * cuts().pitch * ITEMSIZE[code]


cdef int pack_left(int code, char* to, char* a, int64_t m, int64_t k, int64_t a_m, int64_t a_k) except -1:
    cdef char* ptr[2]
    cdef int64_t arg[4]
    need_blocks(code)
    ptr[0], ptr[1] = to, a
    arg[0], arg[1], arg[2], arg[3] = m, k, a_m, a_k
    launch_work(of_dtype(PACK_LEFT, code), ptr, 2, arg, 4, ceil_div(m, ROWS * cuts().group),
                ceil_div(65536, k * ROWS * cuts().group), <double>m * k)
    return 0


cdef int multiply(Product* p) except -1:
    """Choose between sums along k and the blocked product, and between A by B and its transpose."""
    cdef int64_t item = ITEMSIZE[p.code]
    cdef bint along_a = p.a.columns == item or p.k == 1
    cdef bint along_b = p.b.rows == item or p.k == 1
    if p.k == 0 or p.m == 0 or p.n == 0 or p.n0 * p.n1 == 0:
        return empty_product(p)
    need_blocks(p.code)
    if is_half(p.code) and on_elements():
        return by_elements(p, ceil_div(even_blocks(p.k, cuts().k_block), DEEP) * DEEP, True)
    if p.code == BF16 and along_a and along_b and (p.m <= FEW_SHORT_ROWS or p.n <= FEW_SHORT_ROWS):
        return along_memory(p, p.n < p.m)
    if reads_rows(p):
        return few_rows(p)
    if p.code == BF16 or p.code == I8:
        return short_product(p)
    p.c.columns = item
    if along_a and along_b and (p.m <= (cuts().few_long if p.k >= LONG else FEW_ROWS) or p.n <= FEW_ROWS):
        return along_memory(p, p.n < p.m)
    if p.n == 1 and p.a.rows == item and p.c.rows == item and (not p.init or p.d.rows == item or p.d.rows == 0):
        swap(p)
    elif along_a and along_b and p.n0 * p.n1 == 1 and fills_panel(p.code, p.m) and p.n >= 2 * p.m and (
            not p.init or p.d.rows == 0):
        swap(p)
        return packed_first(p, TRANSPOSED)
    return blocked(p)


cdef bint fills_panel(int code, int64_t rows) noexcept:
    """Whether ``rows`` rows of A, taken as columns, nearly fill a panel or half of one."""
    cdef int64_t width = cuts().panel[code] // 2 if 2 * rows <= cuts().panel[code] else cuts().panel[code]
    return rows <= width and 8 * rows >= 7 * width and 2 * width >= cuts().panel[code]


cdef void swap(Product* p) noexcept:
    """Transpose the product; where C is a vector it stays the same."""
    cdef Matrix a = p.a
    p.a.ptr, p.a.rows, p.a.columns, p.a.outer, p.a.inner = p.b.ptr, p.b.columns, p.b.rows, p.b.outer, p.b.inner
    p.b.ptr, p.b.rows, p.b.columns, p.b.outer, p.b.inner = a.ptr, a.columns, a.rows, a.outer, a.inner
    p.c.rows, p.c.columns = p.c.columns, p.c.rows
    p.d.rows, p.d.columns = p.d.columns, p.d.rows
    p.m, p.n = p.n, p.m


cdef int empty_product(Product* p) except -1:
    """A sum over an empty dimension: zero, or D."""
    cdef char** ptr = [p.c.ptr, p.c.ptr]
    cdef int64_t* arg = [p.m, p.n1, p.n, p.init != 0, p.c.outer, p.c.inner, p.c.rows, p.d.outer,
                         p.d.inner, p.d.rows, p.d.columns]
    if p.init:
        ptr[1] = p.d.ptr
    launch(of_number(SUM_NOTHING, ITEMSIZE[p.code]), ptr, 2, arg, 11, p.m * p.n0 * p.n1 if p.n else 0, 1, True)
    return 0


cdef int along_memory(Product* p, bint transposed) except -1:
    """Few rows of A, or few columns of B (``transposed``), times all of the other operand."""
    cdef DotArgs arg
    cdef char* ptr[4]
    cdef int64_t tasks, few, many, block
    cdef double work = <double>p.m * p.n * p.k * p.n0 * p.n1
    if transposed:
        swap(p)
    if on_elements():
        return by_elements(p, min(p.k, cuts().k_block), False)
    few, many = p.m, p.n
    # Rows of a task: enough for the work of one task. Loading an item takes as long as READ multiplications.
    block = TASK // (max(few, <int64_t>READ) * p.k) // 8 * 8
    block = many if block >= many else (8 if block < 8 else block)
    tasks = ceil_div(many, block)
    ptr[0], ptr[1], ptr[2], ptr[3] = p.c.ptr, p.a.ptr, p.b.ptr, p.d.ptr
    arg.p, arg.q, arg.k, arg.init, arg.qc, arg.n1 = few, many, p.k, p.init != 0, block, p.n1
    arg.x_i, arg.x_b0, arg.x_b1 = p.a.rows, p.a.outer, p.a.inner
    arg.w_j, arg.w_b0, arg.w_b1 = p.b.columns, p.b.outer, p.b.inner
    arg.o_i, arg.o_j, arg.o_b0, arg.o_b1 = p.c.rows, p.c.columns, p.c.outer, p.c.inner
    arg.d_i, arg.d_j, arg.d_b0, arg.d_b1 = p.d.rows, p.d.columns, p.d.outer, p.d.inner
    tasks *= p.n0 * p.n1
    launch_work(of_dtype(ALONG_MEMORY, p.code), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks,
                grain_of(work * max(READ // few, <int64_t>1), tasks), work)
    return 0


cdef bint reads_rows(Product* p) noexcept:
    """Whether few rows multiply a row-major matrix so large that reading it dominates."""
    cdef int64_t item = ITEMSIZE[p.code]
    if p.b.columns != item or p.n < 64 or p.k < 32 or p.k * p.n * item < LARGE:
        return False
    if p.code == BF16:
        return p.m <= FEW_SHORT_ROWS
    # Rows at a large stride, such as channels of images, are read better as streams than by tiles, one cache line at a
    # time.
    return (p.code == F32 or p.code == F64) and (p.m <= 1 or p.m <= FEW_SHORT_ROWS and p.b.rows >= FAR)


cdef int few_rows(Product* p) except -1:
    """Few rows of A times all of B, which is read once, one strip of columns after the other."""
    cdef DotRowsArgs arg
    cdef char* ptr[4]
    cdef double work = <double>p.m * p.n * p.k * p.n0 * p.n1
    cdef int64_t columns, tasks
    if on_elements():
        return by_elements(p, min(p.k, cuts().k_block), False)
    # The rows of a strip should be long, and there should be enough strips for the threads.
    columns = ceil_div(p.n, max(p.n * p.k * READ // (4 * TASK), <int64_t>1))
    columns = min(max(ceil_div(columns, 256), <int64_t>1) * 256, <int64_t>FEW_COLUMNS)
    tasks = ceil_div(p.n, columns) * p.n0 * p.n1
    ptr[0], ptr[1], ptr[2], ptr[3] = p.c.ptr, p.a.ptr, p.b.ptr, p.d.ptr
    arg.p, arg.n, arg.k, arg.init, arg.nc, arg.n1 = p.m, p.n, p.k, p.init != 0, columns, p.n1
    arg.x_i, arg.x_k, arg.x_b0, arg.x_b1 = p.a.rows, p.a.columns, p.a.outer, p.a.inner
    arg.b_k, arg.b_b0, arg.b_b1 = p.b.rows, p.b.outer, p.b.inner
    arg.o_i, arg.o_b0, arg.o_b1 = p.c.rows, p.c.outer, p.c.inner
    arg.d_i, arg.d_j, arg.d_b0, arg.d_b1 = p.d.rows, p.d.columns, p.d.outer, p.d.inner
    launch_work(of_dtype(FEW, p.code), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks,
                grain_of(work * max(READ // p.m, <int64_t>1), tasks), work)
    return 0


cdef int blocked(Product* p) except -1:
    """The blocked product: each operand is used in place or packed by its task; B may also be packed beforehand."""
    cdef int64_t item = ITEMSIZE[p.code], panel = cuts().panel[p.code], i, j, flags = 0
    cdef bint b_by_rows = p.b.columns == item or p.n == 1
    cdef bint narrow = panel * item == 64  # one cache line of each row of B: caches hold such panels badly in place
    cdef Product q
    # Unaligned vectors take two loads each. (Above SOME_ROWS the algorithm decides how k is cut, and no sum may depend
    # on an address.)
    cdef bint whole_lines = (p.b.rows | (<int64_t>p.b.ptr if p.m <= SOME_ROWS else 0)) % 64 == 0
    # Use B in place where its row stride is small and few tiles read it, or very few rows do.
    if b_by_rows and (cuts().masks or p.n % panel == 0) and (p.m <= IN_PLACE or p.b.rows <= NEAR and (
            p.m <= 96 or not narrow and whole_lines and (
                p.m <= SOME_ROWS or p.a.columns == item and p.k * p.b.rows <= NEAR_BYTES))):
        return in_blocks(p, 0)
    if p.k < 32 or (p.n < 4 * panel and p.n0 * p.n1 > 1) or p.m <= (
            MORE_ROWS if narrow and p.a.columns == item else SOME_ROWS):
        return in_blocks(p, PACK_B)
    if (p.a.rows == item or p.a.columns == item) and (
            p.n >= MANY_COLUMNS or p.n >= AHEAD_PANELS * panel and p.a.columns != item if narrow else
            p.n >= AHEAD_PANELS * panel and p.k > cuts().k_block):
        flags = PACK_A
    if on_elements():
        return packed_first(p, flags)  # nothing is packed there, so all of a batch is one launch
    for i in range(p.n0):
        for j in range(p.n1):
            q = p[0]
            q.n0 = q.n1 = 1
            q.a.ptr += i * p.a.outer + j * p.a.inner
            q.b.ptr += i * p.b.outer + j * p.b.inner
            q.c.ptr += i * p.c.outer + j * p.c.inner
            q.d.ptr += i * p.d.outer + j * p.d.inner
            packed_first(&q, flags)
    return 0


cdef int packed_first(Product* p, int64_t flags) except -1:
    """Pack a part of B, multiply by it, and so on (for one product)."""
    cdef int64_t item = ITEMSIZE[p.code], panel = cuts().panel[p.code]
    cdef int64_t depth = p.k if p.n <= panel else even_blocks(p.k, 8 * cuts().k_block)
    cdef int64_t width = min(max(cuts().ahead // (depth * panel * item), 1), ceil_div(p.n, panel)) * panel
    cdef int64_t size = width * depth * item, at, start
    cdef Product q
    cdef char* packed
    if on_elements():
        width, size = p.n, 0
    packed = <char*>take_scratch(size)
    if packed == NULL:
        raise MemoryError(f"matmul: cannot allocate {size} bytes to pack an operand")
    try:
        for at in range(0, p.n, width):
            for start in range(0, p.k, depth):
                q = p[0]
                q.n, q.k = min(width, p.n - at), min(depth, p.k - start)
                q.a.ptr += start * p.a.columns
                q.b.ptr += start * p.b.rows + at * p.b.columns
                q.c.ptr += at * p.c.columns
                q.d.ptr += at * p.d.columns
                if start:  # the parts of k before are added to
                    q.init, q.d = 1, q.c
                if size:
                    pack_right(&q, packed)
                in_blocks(&q, flags | PACKED)
    finally:
        release_scratch(packed, size)
    return 0


cdef int pack_right(Product* p, char* to) except -1:
    """Pack B and replace it by the packed one."""
    cdef int64_t item = ITEMSIZE[p.code], panel = cuts().panel[p.code], panels = ceil_div(p.n, panel)
    cdef int64_t kc = even_blocks(p.k, cuts().k_block)
    cdef int64_t arg[5]
    cdef char* ptr[2]
    ptr[0], ptr[1] = to, p.b.ptr
    arg[0], arg[1], arg[2], arg[3], arg[4] = p.n, p.k, p.b.columns, p.b.rows, kc
    launch_work(of_dtype(PACK_RIGHT, p.code), ptr, 2, arg, 5, panels * ceil_div(p.k, kc), ceil_div(32768, kc * panel),
                <double>p.k * p.n)
    p.b.ptr, p.b.rows, p.b.columns = to, panels * panel * item, 0
    return 0


cdef inline int64_t even_blocks(int64_t k, int64_t most) noexcept nogil:
    """The depth of equal blocks of k."""
    return k if k <= most else min(ceil_div(ceil_div(k, ceil_div(k, most)), 16) * 16, most)


cdef inline bint on_elements() noexcept:
    """Whether this thread's place is a device that computes each element of a product by itself."""
    return elsewhere and here() > META_NUMBER and devices[here()].elements


cdef bint[MOST_DEVICES] takes_halves   # by number of the device


def take_halves(int number):
    """Products of a device whose kernels take float16 and bfloat16 as they are, not as copies in float32."""
    takes_halves[number] = True


cdef bint one_lane() except *:
    need_blocks(F32)
    return cuts().one_lane


cdef bint has_halves() noexcept:
    return on_elements() and takes_halves[here()]


cdef inline bint is_half(int code) noexcept:
    return code == F16 or code == BF16


cdef int by_elements(Product* p, int64_t depth, bint adds_zero) except -1:
    """A task for each element of C, for a device with more threads than registers for tiles. The sum over k has the
    order of the tiles; with ``adds_zero`` their first block is added to zero.
    """
    cdef ProductArgs arg
    cdef char* ptr[4]
    cdef int64_t tasks = p.m * p.n * p.n0 * p.n1
    ptr[0], ptr[1], ptr[2], ptr[3] = p.c.ptr, p.a.ptr, p.b.ptr, p.d.ptr
    arg.m, arg.n, arg.k, arg.kc, arg.n1 = p.m, p.n, p.k, max(depth, <int64_t>1), p.n1
    arg.init = 1 if p.init else 2 if adds_zero else 0
    arg.a_m, arg.a_k, arg.a_b0, arg.a_b1 = p.a.rows, p.a.columns, p.a.outer, p.a.inner
    arg.b_k, arg.b_n, arg.b_b0, arg.b_b1 = p.b.rows, p.b.columns, p.b.outer, p.b.inner
    arg.c_m, arg.c_n, arg.c_b0, arg.c_b1 = p.c.rows, p.c.columns, p.c.outer, p.c.inner
    arg.d_m, arg.d_n, arg.d_b0, arg.d_b1 = p.d.rows, p.d.columns, p.d.outer, p.d.inner
    launch(of_dtype(BY_ELEMENTS, p.code), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks, 1, False)
    return 0


cdef int in_blocks(Product* p, int64_t flags) except -1:
    """Cut C into tasks, k into blocks, and launch."""
    cdef int64_t panel = cuts().panel[p.code], batch = p.n0 * p.n1, item = ITEMSIZE[p.code]
    cdef int64_t panels = ceil_div(p.n, panel), strips = ceil_div(p.m, ROWS), down = 1, across = 1, wanted, init
    cdef int64_t depth = even_blocks(p.k, cuts().k_block)
    cdef double work = <double>p.m * p.n * p.k * batch
    cdef bint narrow = panel * item == 64
    cdef bint alone = narrow and thread_count() == 1  # how C is cut changes no sum
    cdef MatmulArgs arg
    cdef char* ptr[5]
    if on_elements():
        return by_elements(p, depth, True)
    wanted = ceil_div(<int64_t>(work / TASK) if work < 32.0 * TASK else 32, batch)
    if flags & TRANSPOSED:
        down = max(ceil_div(strips, cuts().transposed_items // panel // 16 * 16 // ROWS), min(wanted, strips // 8))
    elif flags & PACKED:
        down = ceil_div(strips, cuts().a_tiles[p.code])
        # A task packs its rows of A again for each of its groups of panels.
        wanted = 16 if not narrow or not flags & PACK_A else 1 if alone else min(16, 4 * thread_count())
        across = max(min(ceil_div(wanted, down), panels // (AHEAD_PANELS if flags & PACK_A else 2)), 1)
        if down * across < 8 and not alone:
            down = min(ceil_div(strips, cuts().a_tiles[p.code] // 2), ceil_div(8, across))
        if narrow and p.k * panels * panel * item <= cuts().near:
            flags |= NEARBY
    elif wanted > 1 and not flags and p.m >= 8 * 192:
        # Many rows: a task does all columns, so that A is loaded from memory once.
        down = min(wanted, p.m // 192)
        across = min(panels, ceil_div(wanted, down))
    elif wanted > 1:
        across = min(panels, wanted)
        # Every task packs its panels of B again, which costs as much as a dozen rows or two. In place, a few rows are
        # worth a task if there is little else to share.
        if not flags or p.m > MORE_ROWS or not alone:
            down = max(1, min(ceil_div(wanted, across), p.m // (192 if flags else 24 if across < 4 else 64)))
        if p.n > p.m:  # the larger operand is read once
            flags |= DOWN_FIRST
    init = p.init
    if init and p.n > 1 and p.d.columns == 0:
        init = 2
    ptr[0], ptr[1], ptr[2], ptr[3], ptr[4] = p.c.ptr, p.a.ptr, p.b.ptr, p.d.ptr, tiles(p.code)
    arg.m, arg.n, arg.k, arg.init, arg.n1 = p.m, p.n, p.k, init, p.n1
    arg.down, arg.across, arg.kc, arg.flags = down, across, depth, flags
    arg.a_m, arg.a_k, arg.a_b0, arg.a_b1 = p.a.rows, p.a.columns, p.a.outer, p.a.inner
    arg.b_k, arg.b_n, arg.b_b0, arg.b_b1 = p.b.rows, p.b.columns, p.b.outer, p.b.inner
    arg.c_m, arg.c_n, arg.c_b0, arg.c_b1 = p.c.rows, p.c.columns, p.c.outer, p.c.inner
    arg.d_m, arg.d_b0, arg.d_b1 = p.d.rows, p.d.outer, p.d.inner
    launch_work(of_dtype(MATMUL, p.code), ptr, 5, <int64_t*>&arg, sizeof(arg) // 8, down * across * batch,
                grain_of(work, down * across * batch), work)
    return 0


# ---- tensors ---------------------------------------------------------------------------------------------------------

cdef int compute_code(int code) noexcept:
    """The dtype in which products are computed: integers keep theirs and wrap, shorter floats are summed in float32."""
    if WORK[code] == F32:
        return F32
    if code == I8 or code == U8 or code == I16 or code == U16 or code == U32:
        return I32
    return I64 if code == U64 else code


cdef Tensor cast(Tensor t, int code):
    if t.code == code or ITEMSIZE[t.code] == ITEMSIZE[code] and KIND[t.code] == KIND[code]:
        return t
    cdef Tensor result = empty_tensor(code, t.nd, t.sizes)
    copy_into(result, t)
    return result


cdef struct Dim:         # a batch dimension; strides in bytes
    int64_t size, a, b, c, d


cdef int64_t step(Tensor t, int back, int64_t size) noexcept:
    """The byte stride of the dimension ``back`` from the end, as broadcast to ``size``."""
    cdef int d = t.nd - back
    if d < 0 or (t.sizes[d] == 1 and size != 1):
        return 0
    return t.strides[d] * ITEMSIZE[t.code]


cdef Tensor matrix_strides(Tensor t):
    """``t``, or a copy if neither of its last two dimensions is contiguous."""
    cdef int n = t.nd
    if n == 0 or t.strides[n - 1] == 1 or t.sizes[n - 1] == 1:
        return t
    if n > 1 and (t.strides[n - 2] == 1 or t.sizes[n - 2] == 1):
        return t
    return contiguous_tensor(t)


cdef int plan(Product* p, Dim* dims, int n) except -1:
    """Merge batch dimensions, fold them into m where B has none, and multiply once or in a loop over the outermost."""
    cdef int i, kept = 0
    cdef Dim* last
    # [..., m, k] @ [k, n] is one product of more rows where the rows are evenly spaced.
    while n and dims[n - 1].b == 0 and (p.m == 1 or dims[n - 1].a == p.m * p.a.rows) and (
            p.m == 1 or dims[n - 1].c == p.m * p.c.rows) and (
            not p.init or p.m == 1 or dims[n - 1].d == p.m * p.d.rows):
        n -= 1
        if p.m == 1:
            p.a.rows, p.c.rows, p.d.rows = dims[n].a, dims[n].c, dims[n].d
        p.m *= dims[n].size
    for i in range(n):
        if dims[i].size == 1:
            continue
        last = &dims[kept - 1]
        if kept and last.a == dims[i].size * dims[i].a and last.b == dims[i].size * dims[i].b and (
                last.c == dims[i].size * dims[i].c and (not p.init or last.d == dims[i].size * dims[i].d)):
            last.size *= dims[i].size
            last.a, last.b, last.c, last.d = dims[i].a, dims[i].b, dims[i].c, dims[i].d
        else:
            dims[kept] = dims[i]
            kept += 1
    return loop(p, dims, kept)


cdef int loop(Product* p, Dim* dims, int n) except -1:
    cdef Product q
    cdef int64_t i
    if n > 2:
        for i in range(dims[0].size):
            q = p[0]
            q.a.ptr += i * dims[0].a
            q.b.ptr += i * dims[0].b
            q.c.ptr += i * dims[0].c
            q.d.ptr += i * dims[0].d
            loop(&q, dims + 1, n - 1)
        return 0
    p.n0 = p.n1 = 1
    p.a.outer = p.a.inner = p.b.outer = p.b.inner = p.c.outer = p.c.inner = p.d.outer = p.d.inner = 0
    if n:
        p.n1 = dims[n - 1].size
        p.a.inner, p.b.inner, p.c.inner, p.d.inner = dims[n - 1].a, dims[n - 1].b, dims[n - 1].c, dims[n - 1].d
    if n == 2:
        p.n0 = dims[0].size
        p.a.outer, p.b.outer, p.c.outer, p.d.outer = dims[0].a, dims[0].b, dims[0].c, dims[0].d
    return multiply(p)


cdef Tensor product(Tensor a, Tensor b, Tensor d, bint transposed, int out=-1):
    """``a @ b + d`` by PyTorch's rules of rank; ``transposed``: ``b`` is. Shapes are already checked.

    ``d`` must be None if the product is complex. ``out`` is the result's dtype if it is not that of the operands.
    """
    cdef int code = a.code if out < 0 else out, inner = compute_code(a.code), kept, i, nd, nb, na = a.nd, nbd = b.nd
    cdef Product p
    cdef Dim dims[MAXDIM]
    cdef int64_t sizes[MAXDIM]
    cdef int64_t x, y, batch_stride
    if KIND[code] == 3:
        return complex_product(a, b, transposed)
    p.k = a.sizes[na - 1]
    x = a.sizes[na - 2] if na > 1 else 1
    y = 1 if nbd == 1 else b.sizes[nbd - 2] if transposed else b.sizes[nbd - 1]
    kept = inner
    if is_half(a.code) and on_elements() and takes_halves[here()] and min(x if nbd > 2 else a.count // max(p.k, 1), y,
                                                                          p.k) >= HALVES:
        inner, kept = a.code, code
    elif is_short(a.code, x if nbd > 2 else a.count // p.k if p.k else 0, y, p.k):
        inner, kept = a.code, code
    a, b = matrix_strides(cast(a, inner)), matrix_strides(cast(b, inner))
    cdef int64_t item = ITEMSIZE[inner], size = ITEMSIZE[kept]
    p.code, p.out = inner, kept
    p.a.columns = a.strides[na - 1] * item
    p.m, p.a.rows = 1, 0
    if na > 1:
        p.m, p.a.rows = a.sizes[na - 2], a.strides[na - 2] * item
    if nbd == 1:
        p.n, p.b.columns, p.b.rows = 1, item, b.strides[0] * item
    elif transposed:
        p.n, p.b.columns, p.b.rows = b.sizes[nbd - 2], b.strides[nbd - 2] * item, b.strides[nbd - 1] * item
    else:
        p.n, p.b.columns, p.b.rows = b.sizes[nbd - 1], b.strides[nbd - 1] * item, b.strides[nbd - 2] * item
    nb = max(na, nbd, 2) - 2
    for i in range(nb):
        x = a.sizes[na - nb - 2 + i] if na - nb - 2 + i >= 0 else 1
        y = b.sizes[nbd - nb - 2 + i] if nbd - nb - 2 + i >= 0 else 1
        sizes[i] = y if x == 1 else x
    nd = nb
    if na > 1:
        sizes[nd] = p.m
        nd += 1
    if nbd > 1:
        sizes[nd] = p.n
        nd += 1
    cdef Tensor c = empty_tensor(kept, nd, sizes)
    if c.count == 0:
        return c if kept == code else empty_tensor(code, nd, sizes)  # cast() treats integers of one width as the same
    p.c.rows, p.c.columns = p.n * size, size
    p.a.ptr, p.b.ptr, p.c.ptr, p.d.ptr, p.init = address_to_read(a), address_to_read(b), address_of(c), address_of(c), 0
    p.d.rows = p.d.columns = 0
    if d is not None:
        d = cast(d, inner)
        if d.nd and d.sizes[d.nd - 1] != 1 and d.strides[d.nd - 1] != 1:
            d = contiguous_tensor(d)
        p.init, p.d.ptr = 1, address_to_read(d)
        p.d.columns = step(d, 1, p.n)
        p.d.rows = step(d, 2, p.m)
    batch_stride = p.m * p.n * size
    for i in range(nb - 1, -1, -1):
        dims[i].size = sizes[i]
        dims[i].a, dims[i].b = step(a, nb - i + 2, sizes[i]), step(b, nb - i + 2, sizes[i])
        dims[i].d = step(d, nb - i + 2, sizes[i]) if d is not None else 0
        dims[i].c = batch_stride
        batch_stride *= sizes[i]
    # A dimension of one element has an arbitrary stride: give it a suitable one.
    if p.n == 1 and p.b.rows != item:
        p.b.columns = item
    if p.k == 1 and p.b.columns != item:
        p.b.rows = item
    plan(&p, dims, nb)
    if kept == code:
        return c
    if ITEMSIZE[inner] == item and KIND[inner] == KIND[code] and ITEMSIZE[code] == item:
        c.code = code
        return c
    return cast(c, code)


cdef Tensor real_view(Tensor t):
    """A contiguous complex tensor as a real one with twice as many columns."""
    cdef Tensor r = alias_tensor(t, t.nd, t.sizes, t.strides, 0)
    cdef int64_t size = 1
    cdef int i
    r.code = REAL_OF[t.code]
    r.sizes[t.nd - 1] *= 2
    r.count *= 2
    for i in range(t.nd - 1, -1, -1):  # a dimension of one element may have had any stride
        r.strides[i] = size
        size *= r.sizes[i]
    return r


cdef Tensor few_complex_rows(Tensor a, Tensor b):
    """A complex product of few rows: their real and imaginary parts times B in place, without a copy of it."""
    cdef int64_t k = b.sizes[0], n = b.sizes[1], m = a.count // k
    cdef int64_t* sizes = [2 * m, k]
    cdef Tensor parts = empty_tensor(REAL_OF[a.code], 2, sizes), both
    cdef Tensor out
    cdef int64_t shape_out[MAXDIM]
    memcpy(shape_out, a.sizes, a.nd * 8)
    shape_out[a.nd - 1] = n
    out = empty_tensor(a.code, a.nd, shape_out)
    move_parts(of_dtype(SPLIT, parts.code), address_of(parts), address_of(a), m * k)
    both = product(parts, real_view(b), None, False)
    move_parts(of_dtype(JOIN, both.code), address_of(out), address_of(both), m * n)
    return out


cdef Tensor complex_product(Tensor a, Tensor b, bint transposed):
    """A complex product as a real one: rows of A in place times (br, bi) over (-bi, br)."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int64_t i, j, r, batch = 1, k, n, item = ITEMSIZE[a.code] // 2
    cdef int nd
    cdef Tensor out, wide
    cdef kernel_t fn
    cdef char* ptr[2]
    cdef int64_t arg[1]
    if transposed:
        memcpy(sizes, b.sizes, b.nd * 8)
        memcpy(strides, b.strides, b.nd * 8)
        sizes[b.nd - 1], sizes[b.nd - 2] = sizes[b.nd - 2], sizes[b.nd - 1]
        strides[b.nd - 1], strides[b.nd - 2] = strides[b.nd - 2], strides[b.nd - 1]
        b = alias_tensor(b, b.nd, sizes, strides, 0)
    if a.code == C32:
        return cast(complex_product(cast(a, C64), cast(b, C64), False), C32)
    if b.nd == 1 and a.nd == 2 and a.strides[0] == 1 and a.strides[1] == a.sizes[0] and a.sizes[0] > 1:
        # A vector from the other side, times the matrix in place.
        sizes[0], sizes[1], strides[0], strides[1] = a.sizes[1], a.sizes[0], a.sizes[0], 1
        return complex_product(b, alias_tensor(a, 2, sizes, strides, 0), False)
    a, b = contiguous_tensor(a), contiguous_tensor(b)
    if b.nd == 2 and a.count <= FEW_ROWS * b.sizes[0] and b.sizes[1] > 1 and a.count:
        return few_complex_rows(a, b)
    k, n = b.sizes[0], 1
    if b.nd > 1:
        k, n = b.sizes[b.nd - 2], b.sizes[b.nd - 1]
    for i in range(b.nd - 2):
        batch *= b.sizes[i]
    nd = max(b.nd, 2)
    memcpy(sizes, b.sizes, b.nd * 8)
    sizes[nd - 2], sizes[nd - 1] = 2 * k, 2 * n
    wide = empty_tensor(REAL_OF[a.code], nd, sizes)
    ptr[0], ptr[1], arg[0] = address_of(wide), address_of(b), 2 * n
    launch_work(of_dtype(WIDEN, wide.code), ptr, 2, arg, 1, batch * k, ceil_div(WIDENED, max(n, <int64_t>1)),
                <double>batch * k * n)
    out = product(real_view(a), wide, None, False)
    # Back to complex: half as many columns; for a vector the one column is dropped.
    nd = out.nd
    memcpy(sizes, out.sizes, nd * 8)
    sizes[nd - 1] //= 2
    if b.nd == 1:
        nd -= 1
    r = 1
    for i in range(nd - 1, -1, -1):
        strides[i] = r
        r *= sizes[i]
    out = alias_tensor(out, nd, sizes, strides, 0)
    out.code = a.code
    out.contiguous = True
    return out


cdef int move_parts(kernel_t fn, char* to, char* source, int64_t count) except -1:
    """Run one of these two on ``count`` complex numbers."""
    cdef char** ptr = [to, source]
    return launch(fn, ptr, 2, &count, 1, 1, 1, True)


# ---- checks ----------------------------------------------------------------------------------------------------------

cdef str shape(Tensor t):
    return "x".join([str(t.sizes[i]) for i in range(t.nd)])


cdef str kind(Tensor t):
    return NAMES[t.code]


cdef int same_dtype(str name, Tensor a, Tensor b) except -1:
    if a.code != b.code:
        raise RuntimeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {kind(a)} != {kind(b)}; "
                           f"convert one with .to()")
    if a.code == BOOL:
        raise NotImplementedError(f'"{name}" not implemented for \'Bool\'; convert with .to(taeda.int64) or .float()')
    return 0


cdef int no_match(str name, Tensor a, Tensor b, int64_t got, int64_t want) except -1:
    if b.nd == 1:
        raise RuntimeError(f"{name}: size mismatch, got input ({a.sizes[a.nd - 2] if a.nd > 1 else 1}), mat "
                           f"({shape(a)}), "
                           f"vec ({shape(b)}): the matrix has {got} columns, the vector {want} elements")
    from .mends import for_product
    mend = for_product(make_size(a.nd, a.sizes), make_size(b.nd, b.sizes))
    raise RuntimeError(f"{name}: mat1 and mat2 shapes cannot be multiplied ({shape(a)} and {shape(b)}): "
                       f"mat1 has {got} columns, mat2 {want} rows{mend}")


cdef int check_product(str name, Tensor a, Tensor b) except -1:
    """Check dtype, inner sizes and batch sizes of ``a @ b``."""
    cdef int64_t k, x, y
    cdef int i
    same_dtype(name, a, b)
    if a.nd == 0 or b.nd == 0:
        raise RuntimeError(f"{name}: both arguments need to be at least 1D, but they are {a.nd}D and {b.nd}D")
    k = b.sizes[b.nd - 2] if b.nd > 1 else b.sizes[0]
    if a.sizes[a.nd - 1] != k:
        no_match(name, a, b, a.sizes[a.nd - 1], k)
    for i in range(3, min(a.nd, b.nd) + 1):
        x, y = a.sizes[a.nd - i], b.sizes[b.nd - i]
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"{name}: the batch sizes {make_size(a.nd - 2, a.sizes)} and "
                               f"{make_size(b.nd - 2, b.sizes)} "
                               f"cannot be broadcast: The size of tensor a ({x}) must match the size of tensor b ({y}) "
                               f"at "
                               f"non-singleton dimension {max(a.nd, b.nd) - i}")
    return 0


def matmul(Tensor a, Tensor b):
    """``a @ b`` for any ranks of at least 1."""
    check_product("matmul", a, b)
    return product(a, b, None, False)


cpdef int need_rank(str op, str name, object x, int rank) except -1:
    """Raise unless argument ``name`` is a tensor of ``rank`` dimensions."""
    if not isinstance(x, Tensor):
        from .mends import not_tensor
        raise not_tensor(f"{op}(): argument '{name}'", x)
    if (<Tensor>x).nd != rank:
        what = ("a vector", "a matrix", "a 3D tensor")[rank - 1]
        raise RuntimeError(f"{op}: {name} must be {what}, got a {(<Tensor>x).nd}-D tensor of shape "
                           f"{tuple(make_size((<Tensor>x).nd, (<Tensor>x).sizes))}")
    return 0


def mm(input, mat2):
    """``input @ mat2`` of two matrices."""
    need_rank("mm", "input", input, 2)
    need_rank("mm", "mat2", mat2, 2)
    check_product("mm", <Tensor>input, <Tensor>mat2)
    return product(<Tensor>input, <Tensor>mat2, None, False)


def mv(input, vec):
    """``input @ vec`` of a matrix and a vector."""
    need_rank("mv", "input", input, 2)
    need_rank("mv", "vec", vec, 1)
    check_product("mv", <Tensor>input, <Tensor>vec)
    return product(<Tensor>input, <Tensor>vec, None, False)


def broadcasts_to(Tensor x, tuple sizes):
    """Whether ``x`` broadcasts to ``sizes``."""
    cdef Py_ssize_t lead = len(sizes) - x.nd
    cdef int d
    if lead < 0:
        return False
    for d in range(x.nd):
        if x.sizes[d] != 1 and x.sizes[d] != <int64_t>sizes[lead + d]:
            return False
    return True


def check_dot(str name, Tensor a, Tensor b):
    """Raise unless ``a`` and ``b`` are vectors of numbers, of one dtype and size."""
    if a.nd != 1 or b.nd != 1:
        raise RuntimeError(f"{name}: 1D tensors expected, but got {a.nd}D and {b.nd}D tensors")
    if a.code != b.code:
        raise RuntimeError(f"{name} : expected both vectors to have same dtype, but found {kind(a)} and {kind(b)}")
    if KIND[a.code] == 0:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    if a.count != b.count:
        raise RuntimeError(
            f"{name}: inconsistent tensor size, expected tensor [{a.count}] and src [{b.count}] to have the same "
            f"number of elements, but got {a.count} and {b.count} elements respectively")


def multiply_bytes(Tensor a, Tensor b):
    """``a @ b`` of two int8 matrices, in int32."""
    return product(a, b, None, False, I32)


def multiply_add(str name, Tensor a, Tensor b, Tensor d):
    """``a @ b + d``, ``d`` broadcast to the result."""
    cdef int64_t m, n, size
    cdef int i
    check_product(name, a, b)
    return product(a, b, d, False)


def linear(Tensor input, Tensor weight, Tensor bias=None):
    """``input @ weight.T + bias`` for a weight of rank 1 or 2."""
    cdef int64_t k
    if weight.nd == 0 or weight.nd > 2:
        raise RuntimeError(f"linear: weight must have 1 or 2 dimensions [out_features, in_features], got {weight.nd} "
                           f"({shape(weight)})")
    if input.nd == 0:
        raise RuntimeError("linear: input needs at least one dimension [*, in_features], got a 0-dimensional tensor")
    same_dtype("linear", input, weight)
    k = weight.sizes[weight.nd - 1]
    if input.sizes[input.nd - 1] != k:
        from .mends import for_linear
        raise RuntimeError(
            f"linear: mat1 and mat2 shapes cannot be multiplied ({shape(input)} and "
            f"{k}x{weight.sizes[0] if weight.nd == 2 else 1}): input {tuple(make_size(input.nd, input.sizes))} has "
            f"{input.sizes[input.nd - 1]} features in its last dimension, weight "
            f"{tuple(make_size(weight.nd, weight.sizes))} expects {k}"
            f"{for_linear(make_size(input.nd, input.sizes), make_size(weight.nd, weight.sizes))}")
    if bias is not None:
        if bias.code != input.code:
            raise RuntimeError(f"linear: expected bias of dtype {kind(input)} like the input, got {kind(bias)}")
        if weight.nd == 2 and bias.nd > 0 and bias.sizes[bias.nd - 1] not in (weight.sizes[0], 1):
            raise RuntimeError(f"linear: bias of shape ({shape(bias)}) does not fit {weight.sizes[0]} output features; "
                               f"expected ({weight.sizes[0]})")
        if weight.nd == 1 and bias.nd > 0:
            raise RuntimeError(f"linear: expected a bias without dimensions beside a weight of one, got "
                               f"({shape(bias)})")
    if bias is not None and (KIND[input.code] == 3 or bias.nd > 1):  # one bias for each row
        return product(input, weight, None, weight.nd == 2).add_(bias)
    return product(input, weight, bias, weight.nd == 2)


def dot(Tensor a, Tensor b, bint conjugated=False):
    """Sums of chunks of the inner product of two vectors of one dtype and length; ``conjugated``: of complex ``a``."""
    cdef bint parts = KIND[a.code] == 3
    cdef int inner = compute_code(a.code)
    cdef int64_t n = a.count, chunks
    cdef int64_t arg[1]
    cdef char* ptr[3]
    cdef kernel_t fn
    if n == 0 or a.code == C32:
        return None
    a, b = contiguous_tensor(cast(a, inner)), contiguous_tensor(cast(b, inner))
    need_blocks(REAL_OF[inner] if parts else inner)
    arg[0] = 2 * n if parts else n
    chunks = ceil_div(arg[0], cuts().chunk)
    cdef Tensor out = empty_tensor(inner, 0 if chunks == 1 else 1, &chunks)
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(a), address_of(b)
    launch_work(inner_kernel(inner, conjugated), ptr, 3, arg, 1, chunks, 4, arg[0])
    return out


cdef kernel_t inner_kernel(int code, bint conjugated) except NULL:
    """The kernel of inner products."""
    cdef int key = code << 1 | conjugated
    if KIND[code] != 3:
        return of_dtype(INNER, code)
    cdef kernel_t fn = known(INNER_COMPLEX, key)
    return fn if fn != NULL else build(INNER_COMPLEX, key, (NAMES[REAL_OF[code]], bool(conjugated)))
