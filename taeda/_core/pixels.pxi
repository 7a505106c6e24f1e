# Launcher of kernels/conv_pixels.py: convolution with channels along the registers.

cdef enum:
    PIXELS_ARGS = 26       # of either kernel
    FEW_CHANNELS = 16      # fewer leave the registers empty
    BLOCK_PIXELS = 64      # of a task
    PHASES = 64            # of a stride, at most

cdef kernel_t _pixels[NDTYPES]
cdef kernel_t _pixel_weights[NDTYPES]
cdef kernel_t _pixels_gradient[NDTYPES]

cdef struct Rows:      # how the output's rows of pixels fall into blocks; sizes in bytes
    int64_t all, block, blocks
    int64_t unfolded, panel, pixels    # from pixel to pixel unfolded, and of a panel; the turned input of a block


cdef kernel_t find_pixels(kernel_t* table, int code, str name) except NULL:
    from ..kernels import conv_pixels
    cdef size_t address
    assert len(conv_pixels.PIXELS_ARGS) == PIXELS_ARGS and len(conv_pixels.WEIGHT_ARGS) == PIXELS_ARGS
    if table[code] == NULL:
        address = getattr(conv_pixels, name)(NAMES[code])
        table[code] = <kernel_t>address
    return table[code]


cdef Rows rows_of(Geometry* g, int64_t images, int64_t channels, int64_t item, Blocks* b, int64_t pixels) noexcept:
    """Blocks of about so many ``pixels``."""
    cdef Rows r
    cdef int64_t most, panel = b.panel
    r.all = images * g.o[1]
    r.block = even(r.all, max(pixels // max(g.o[2], 1), 1))
    r.blocks = ceil_div(r.all, r.block)
    # A line more: rows of a power of two share cache sets.
    r.unfolded, r.panel = g.taps * min(ceil_div(channels, 16) * 16, panel) * item + 64, panel * item
    most = min((min(r.block, g.o[1]) - 1) * g.s[1] + (g.k[1] - 1) * abs(g.d[1]) + 1, g.i[1])
    r.pixels = (most * g.i[2] + 16) * r.panel
    return r


cdef bint by_pixels(Geometry* g, Rows* r, int64_t groups, int64_t c, int64_t m) noexcept:
    """Whether channels fill the registers better than neighbouring pixels do, and there are pixels to repay the packing."""
    if groups != 1 or c < FEW_CHANNELS or m < FEW_CHANNELS or g.i[0] != 1 or g.k[0] != 1 or g.o[0] != 1 or g.p[0] != 0:
        return False
    if r.all * g.o[2] < BLOCK_PIXELS or r.block * g.o[2] * (r.unfolded + (m // 16 + 1) * r.panel) + r.pixels > MOST_SLOT:
        return False
    # One tap without stride is a product of matrices, which wants columns more than it minds gathers.
    return g.s[1] > 1 or g.s[2] > 1 or (g.o[2] < 16 and (g.taps > 1 or g.pixels <= 16))


cdef void pixels_shape(Geometry* g, Rows* r, Tensor x, Tensor y, int64_t panels, int64_t sums, int64_t* arg) noexcept:
    """What both kernels begin with: ``SHAPE``. ``sums`` is their number of rows of a panel."""
    cdef int64_t item = ITEMSIZE[x.code]
    arg[0], arg[1] = y.sizes[1], x.sizes[1]
    arg[2], arg[3], arg[4], arg[5], arg[6], arg[7] = g.i[1], g.i[2], g.o[1], g.o[2], g.k[1], g.k[2]
    arg[8], arg[9], arg[10], arg[11], arg[12], arg[13] = g.s[1], g.s[2], g.d[1], g.d[2], g.p[1], g.p[2]
    arg[14], arg[15] = r.all, r.block
    arg[16], arg[17], arg[18], arg[19] = x.strides[0] * item, x.strides[1] * item, y.strides[0] * item, y.strides[1] * item
    arg[20], arg[21] = r.unfolded, panels
    arg[22] = r.block * g.o[2] * r.unfolded
    arg[23] = arg[22] + sums * r.panel


# ---- weights ------------------------------------------------------------------------------------------------------------

cdef struct Packed:        # weights for one convolution, or for each phase of a gradient
    int64_t begin[PHASES]  # byte where a phase's panels begin


cdef Tensor packed_weights(int code, char* w, int64_t w_m, int64_t w_c, int64_t m, int64_t c, Geometry* g, Packed* to):
    """``w`` as panels, the taps of each phase together: those that ``g``, a convolution, meets at the same outputs."""
    cdef Blocks b = blocks(code)
    cdef int64_t item = ITEMSIZE[code], unit = ceil_div(m, b.panel) * ceil_div(c, b.panel) * b.panel * b.panel * item
    cdef int64_t arg[5]
    cdef int64_t n, k, tap, size = 3 * g.taps, at = 0, phase, count, index, every, first
    cdef int64_t counts[PHASES]
    cdef Tensor places = empty_tensor(I64, 1, &size), packed = working(unit * g.taps)
    cdef int64_t* place = <int64_t*>places.ptr
    cdef char* ptr[3]
    memset(counts, 0, sizeof(counts))
    for tap in range(g.taps):
        phase, count, index = 0, 1, 0
        for n in range(1, 3):
            k = tap // g.k[2] if n == 1 else tap % g.k[2]
            every = g.s[n] // gcd(g.s[n], g.d[n])
            first = ceil_div(g.k[n] - k % every, every)  # taps of this phase in this dimension
            phase = phase * g.s[n] + ((k * g.d[n] - g.p[n]) % g.s[n] + g.s[n]) % g.s[n]
            count, index = count * first, index * first + k // every
        counts[phase] = count
        place[3 * tap], place[3 * tap + 1], place[3 * tap + 2] = phase, count, index
    for phase in range(PHASES):
        to.begin[phase] = at
        at += counts[phase] * unit
    for tap in range(g.taps):
        place[3 * tap] = to.begin[place[3 * tap]]
    arg[0], arg[1], arg[2], arg[3], arg[4] = m, c, w_m * item, w_c * item, g.taps
    ptr[0], ptr[1], ptr[2] = packed.ptr, w, places.ptr
    run(find_pixels(_pixel_weights, code, "pixel_weights"), ptr, arg, ceil_div(m, b.panel) * ceil_div(c, b.panel), 1, packed.count)
    return packed


# ---- launches -----------------------------------------------------------------------------------------------------------

cdef int convolve_pixels(Geometry* g, Rows* r, Tensor x, char* packed, Tensor bias, Tensor out) except -1:
    """:func:`convolve` for what goes :func:`by_pixels`, with the panels of :func:`packed_weights`."""
    x = whole_planes(x)
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef int64_t arg[PIXELS_ARGS]
    cdef int64_t c = x.sizes[1], m = out.sizes[1], panels = ceil_div(m, b.panel), tasks, each = panels
    cdef double work = <double>m * c * g.taps * r.all * g.o[2]
    cdef Slots slots
    cdef char* ptr[5]
    if r.blocks < FEW_BLOCKS:
        each = ceil_div(panels, ceil_div(FEW_BLOCKS, r.blocks))
    tasks = r.blocks * ceil_div(panels, each)
    pixels_shape(g, r, x, out, each, each * r.block * g.o[2] + 16, arg)
    arg[24], arg[25] = even(g.taps, max(b.depth // min(c, b.panel), 1)), bias is not None
    cdef Tensor memory = make_slots(&slots, arg[23] + r.pixels, tasks)
    ptr[0], ptr[1], ptr[2], ptr[4] = out.ptr, x.ptr, packed, tile_kernel(code)
    ptr[3] = out.ptr if bias is None else bias.ptr
    run_in_slots(&slots, find_pixels(_pixels, code, "conv_pixels"), ptr, 5, arg, PIXELS_ARGS, tasks, work)
    return 0


cdef Tensor pixels_gradient(Geometry* g, Rows* r, Tensor x, Tensor y):
    """Gradient of the weights ``[part, m, c, tap]``."""
    x, y = whole_planes(x), whole_planes(y)
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef int64_t arg[PIXELS_ARGS]
    cdef int64_t sizes[4]
    cdef int64_t c = x.sizes[1], m = y.sizes[1], panels = ceil_div(m, b.panel), tasks, parts, each
    cdef double work = <double>m * c * g.taps * r.all * g.o[2]
    cdef Slots slots
    cdef char* ptr[4]
    # Where there are few taps, what is unfolded should meet more than one panel of the gradient if these are many.
    each = even(panels, max(min(8 // g.taps, panels * ceil_div(c, b.panel) // 16), 1))
    tasks = ceil_div(panels, each) * ceil_div(c, b.panel)
    parts = min(r.blocks, ceil_div(16, tasks))
    parts = ceil_div(r.blocks, ceil_div(r.blocks, parts))
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, m, c, g.taps
    cdef Tensor out = empty_tensor(code, 4, sizes)
    pixels_shape(g, r, x, y, each, g.taps * each * b.panel, arg)
    arg[24], arg[25] = ceil_div(r.blocks, parts), arg[23] + r.pixels
    cdef Tensor memory = make_slots(&slots, arg[25] + (r.block * g.o[2] + 16) * r.panel, tasks * parts)
    ptr[0], ptr[1], ptr[2], ptr[3] = out.ptr, x.ptr, y.ptr, tile_kernel(code)
    run_in_slots(&slots, find_pixels(_pixels_gradient, code, "pixels_gradient"), ptr, 4, arg, PIXELS_ARGS, tasks * parts, work)
    return out
