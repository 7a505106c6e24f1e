"""Launcher of kernels/winograd.py: 3x3 convolution with stride 1, with fewer multiplications."""

from libc.stdint cimport int64_t, uint64_t

from .dims cimport ceil_div
from .gemm cimport Blocks, blocks, tiles as tile_kernel
from .geometry cimport FEW_BLOCKS, Geometry, even, whole_planes
from .kernel_args cimport WinogradArgs, WinogradShape, WinogradWeightArgs
from .planners cimport new_owner, of_dtype
from .pool cimport kernel_t, launch_work
from .recorder cimport note_prepared
from .slots cimport MOST_SLOT, Slots, make_slots, run_in_slots, working
from .tensor cimport F32, Tensor, address_of, empty_tensor

cdef enum:
    POSITIONS = 16
    LEAST_CHANNELS = 32    # with fewer of either the transforms cost as much as the products save
    BLOCK_TILES = 96       # tiles in a task
    DEPTH = 128            # channels summed at a time: more would round worse, and not fit the second-level cache
    WEIGHT_TILES = 48      # tiles in a block of the gradient's sum
    WEIGHT_ROWS = 64       # output channels of a task of the gradient
    INPUT_READY = 1
    WEIGHTS_READY = 2

cdef uint64_t WINOGRAD_TILES = new_owner("winograd.winograd")
cdef uint64_t WINOGRAD_WEIGHTS = new_owner("winograd.winograd_weights")
cdef uint64_t WINOGRAD_INPUT = new_owner("winograd.winograd_input")
cdef uint64_t WINOGRAD_GRADIENT = new_owner("winograd.winograd_gradient")

cdef struct Tiles:     # the partition of the images into tiles; sizes in bytes
    int64_t down, across, rows, block, blocks
    int64_t v_t, v_x, v_b, pixels


# ---- sizes -----------------------------------------------------------------------------------------------------------

cdef bint is_winograd(Geometry* g, int code, int64_t images, int64_t groups, int64_t c, int64_t m) noexcept:
    """Whether the transforms apply to a convolution, and it is large enough to repay them."""
    if code != F32 or groups != 1 or c < LEAST_CHANNELS or m < LEAST_CHANNELS:
        return False
    if g.k[0] != 1 or g.k[1] != 3 or g.k[2] != 3 or g.i[0] != 1 or g.o[0] != 1 or g.p[0] != 0:
        return False
    if g.s[1] != 1 or g.s[2] != 1 or g.d[1] != g.d[2] or abs(g.d[1]) != 1 or g.o[1] < 2 or g.o[2] < 2:
        return False
    return images * g.pixels >= 64 and c * (g.o[2] + 2) * POSITIONS * 4 < MOST_SLOT


cdef Tiles tiles_of(Geometry* g, int64_t images, int64_t channels, int64_t most, int64_t panel) noexcept:
    """Rows of 2x2 tiles, in equal blocks of about ``most`` tiles; V has ``channels`` of each."""
    cdef Tiles t
    t.down, t.across = ceil_div(g.o[1], 2), ceil_div(g.o[2], 2)
    t.rows = images * t.down
    t.block = even(t.rows, max(most // t.across, 1))
    t.blocks = ceil_div(t.rows, t.block)
    t.v_t = (ceil_div(channels, 16) * 16 + 16) * 4  # a cache line more: power-of-two rows share cache sets
    t.v_x = t.block * t.across * t.v_t
    t.v_b = POSITIONS * t.v_x
    # The transposed rows of pixels of one image, and the vector that a square may write past them.
    t.pixels = ((2 * min(t.block, t.down) + 2) * max(g.i[2], g.o[2]) + 16) * panel * 4
    return t


cdef void winograd_shape(Geometry* g, Tiles* t, Tensor x, Tensor y, int64_t w_m, int64_t w_c,
                         WinogradShape* arg) noexcept:
    """The arguments that all the kernels begin with: ``SHAPE``."""
    cdef bint flip = g.d[1] < 0
    arg.m, arg.c = y.sizes[1], x.sizes[1]
    arg.ih, arg.iw, arg.oh, arg.ow = g.i[1], g.i[2], g.o[1], g.o[2]
    # Output o meets tap k at o - p + k d; where d is -1 that is o - (p + 2) + (2 - k).
    arg.ph, arg.pw = g.p[1] + 2 * flip, g.p[2] + 2 * flip
    arg.th, arg.tw, arg.rows, arg.block = t.down, t.across, t.rows, t.block
    arg.x_n, arg.x_c, arg.y_n, arg.y_c = x.strides[0] * 4, x.strides[1] * 4, y.strides[0] * 4, y.strides[1] * 4
    arg.w_m, arg.w_c, arg.flip = w_m * 4, w_c * 4, flip
    arg.v_b, arg.v_x, arg.v_t = t.v_b, t.v_x, t.v_t


# ---- launches --------------------------------------------------------------------------------------------------------

cdef int convolve_winograd(Geometry* g, Tensor x, char* w, int64_t w_m, int64_t w_c, Tensor bias, Tensor out) except -1:
    """:func:`convolve` if :func:`is_winograd`; ``w_m, w_c`` are the strides of the weights' channels in items."""
    x = whole_planes(x)
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef WinogradArgs arg
    cdef int64_t c = x.sizes[1], m = out.sizes[1], panels = ceil_div(m, b.panel), c_panels, tasks, cc, ready
    cdef Tiles t = tiles_of(g, x.sizes[0], c, BLOCK_TILES, b.panel)
    cdef double work = <double>m * c * t.rows * t.across * POSITIONS
    cdef Slots slots
    cdef Tensor memory, u, v
    cdef char* ptr[5]
    ready = 0 if t.blocks >= FEW_BLOCKS else INPUT_READY
    if t.blocks > 2:  # otherwise each block would transform them again
        ready |= WEIGHTS_READY
    cc = even(c, DEPTH)
    winograd_shape(g, &t, x, out, w_m, w_c, <WinogradShape*>&arg)
    arg.panels, arg.cc, arg.bias, arg.ready = 1 if ready & INPUT_READY else panels, cc, bias is not None, ready
    arg.at_m = 0 if ready & INPUT_READY else t.v_b
    arg.at_u = arg.at_m + POSITIONS * t.block * t.across * b.panel * 4
    arg.at_pixels = arg.at_u + (0 if ready & WEIGHTS_READY else POSITIONS * cc * b.panel * 4)
    arg.at_out = arg.at_pixels + t.pixels
    tasks, c_panels = t.blocks * ceil_div(panels, arg.panels), ceil_div(c, b.panel)
    memory = make_slots(&slots, arg.at_out + t.pixels, max(tasks, t.blocks * c_panels))
    if ready & WEIGHTS_READY:
        u = working(POSITIONS * panels * c * b.panel * 4)
        note_prepared(address_of(u))
        ptr[0], ptr[1] = address_of(u), w
        launch_work(of_dtype(WINOGRAD_WEIGHTS, code), ptr, 2, <int64_t*>&arg, sizeof(arg) // 8, panels, 1, u.count)
        w = address_of(u)
    ptr[1] = address_of(x)
    if ready & INPUT_READY:
        v = working(t.blocks * t.v_b)
        ptr[0] = address_of(v)
        run_in_slots(&slots, of_dtype(WINOGRAD_INPUT, code), ptr, 2, <int64_t*>&arg, sizeof(arg) // 8,
                     t.blocks * c_panels, v.count)
        ptr[1] = address_of(v)
    ptr[0], ptr[2], ptr[3], ptr[4] = (address_of(out), w, address_of(out) if bias is None else address_of(bias),
                                      tile_kernel(code))
    run_in_slots(&slots, of_dtype(WINOGRAD_TILES, code), ptr, 5, <int64_t*>&arg, sizeof(arg) // 8, tasks, work)
    return 0


cdef Tensor winograd_gradient(Geometry* g, Tensor x, Tensor y):
    """Gradient of the weights ``[part, m, c, tap]``."""
    x, y = whole_planes(x), whole_planes(y)
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef WinogradWeightArgs arg
    cdef int64_t sizes[4]
    cdef int64_t c = x.sizes[1], m = y.sizes[1], mc = even(m, WEIGHT_ROWS), tasks, parts, each
    cdef Tiles t = tiles_of(g, x.sizes[0], b.panel, WEIGHT_TILES, b.panel)
    cdef double work = <double>m * c * t.rows * t.across * POSITIONS
    cdef Slots slots
    cdef char* ptr[4]
    cdef kernel_t fn = of_dtype(WINOGRAD_GRADIENT, code)
    tasks = ceil_div(m, mc) * ceil_div(c, b.panel)
    parts = min(t.blocks, ceil_div(16, tasks))
    each = ceil_div(t.blocks, parts)
    parts = ceil_div(t.blocks, each)
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, m, c, 9
    cdef Tensor out = empty_tensor(code, 4, sizes)
    winograd_shape(g, &t, x, y, c * 9, 9, <WinogradShape*>&arg)
    arg.run, arg.mc = each, mc
    arg.g_t = (ceil_div(mc, 16) * 16 + 16) * 4
    arg.g_x = t.block * t.across * arg.g_t
    arg.at_g = t.v_b
    arg.at_sum = arg.at_g + POSITIONS * arg.g_x
    arg.at_pixels = arg.at_sum + POSITIONS * mc * b.panel * 4
    cdef Tensor memory = make_slots(&slots, arg.at_pixels + t.pixels, tasks * parts)
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(out), address_of(x), address_of(y), tile_kernel(code)
    run_in_slots(&slots, fn, ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks * parts, work)
    return out
