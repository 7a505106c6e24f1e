# Launcher of kernels/conv_windows.py: convolution with channels along the vectors.

cdef enum:
    TABLES = 6
    PHASE_ITEMS = 13           # numbers in a phase's entry in the tables
    TABLE_ROWS = 24            # sums have room for a multiple of this, as in the kernels
    TILE_HEAD = 9              # the head of a tile, as in the kernels
    RUN_ITEMS = 4              # numbers in a run
    WIDEST_PANEL = 64
    ROUND_CHANNELS = 16        # more channels than this are rounded up to a multiple of it
    PLANAR_CHANNELS = 4        # with more channels per group, runs of one channel's taps would be too short
    MOST_VOLUME = 1 << 20      # bytes
    LONG_ROW = 512             # output positions; shorter rows are not cut
    SUMS = 1 << 16             # items of a task, about
    NARROW = 4                 # outputs of single pixels
    NARROW_PIXELS = 4096       # in one sum of their weights' gradient
    DIRECT_CHANNELS = 256      # channels of a task, where the image is read in place
    PIECE = 8192               # items of a row that are paired at a time

cdef uint64_t WINDOW_WEIGHTS = new_owner("conv_windows.window_weights")
cdef uint64_t CONV_WINDOWS = new_owner("conv_windows.conv_windows")
cdef uint64_t WINDOWS_GRADIENT = new_owner("conv_windows.windows_gradient")
cdef uint64_t PAIR_ROWS = new_owner("conv_windows.pair_rows")
cdef int64_t NOWHERE = <int64_t>1 << 40   # a place beyond all bounds
# By place, dtype and columns of a panel; 0 if not known yet.
cdef int64_t _tile_heights[MOST_DEVICES][NDTYPES][WIDEST_PANEL + 1]

cdef struct Windows:           # partition of the output into blocks: images, depth, rows, columns
    int64_t b[4]
    int64_t n[4]
    int64_t extent[4]          # extent of the input that a block reads
    int64_t blocks, cc, unit
    int64_t pixels, pixel_rows # output positions of a block, and rows of them
    int64_t rows, spare        # sums, in whole tiles; the first one without a position
    int64_t result[3]          # positions of a block's result, and how many there are for one of the block
    int64_t scale[3]
    int64_t bytes, transposed      # bytes of the volume, and of its transposed pixels
    bint planar                # channels one after the other, each with all its pixels
    Volume volume[2]           # for a whole panel of channels, and for the last
    int64_t channels[2]


cdef struct Part:              # a convolution of one block: the only one, or a phase of a gradient
    Geometry g
    int64_t at[3]              # the place of its first position in the result
    int64_t begin              # byte offset of its weights


cdef struct Place:             # a row of a tile: its position and byte offset in the volume, and the number of its sums
    int64_t at[3]
    int64_t byte, index


cdef kernel_t find_windows(uint64_t family, int code) except NULL:
    cdef kernel_t fn = known(family, code)
    if fn == NULL:
        from ..kernels import conv_windows
        assert len(conv_windows.PHASE) == PHASE_ITEMS
        assert (conv_windows.ROWS == TABLE_ROWS and len(conv_windows.TILE) == TILE_HEAD
                and len(conv_windows.RUN) == RUN_ITEMS)
        assert conv_windows.PIECE == PIECE
        fn = of_dtype(family, code)
    return fn


cdef int64_t tile_height(int code, int64_t columns) except -1:
    """Rows of the tile for a panel of so many columns."""
    cdef int64_t* known_height = &_tile_heights[kernel_place()][code][columns]
    if known_height[0] == 0:
        from ..kernels import conv_windows
        known_height[0] = conv_windows.height(NAMES[code], columns)
    return known_height[0]


# ---- sizes -----------------------------------------------------------------------------------------------------------

cdef inline int64_t size_of(Geometry* g, int64_t images, int n) noexcept:
    return images if n == 0 else g.o[n - 1]


cdef inline int64_t channel_unit(int64_t panel, int64_t c) noexcept:
    """The multiple to which input channels are rounded up, in volumes and in weights alike."""
    cdef int64_t unit = min(panel, <int64_t>ROUND_CHANNELS)
    return unit if c >= unit else 1


cdef Windows windows_of(Geometry* g, int64_t images, int64_t c, int64_t cc, int64_t item, int64_t panel,
                        int64_t pixels, bint planar, bint direct=False) noexcept:
    """Blocks of about so many ``pixels``, ``cc`` input channels at a time; with ``direct`` there is no volume."""
    cdef Windows w
    cdef int64_t left, whole, n, i
    w.cc, w.unit, w.planar = cc, channel_unit(panel, c), planar
    w.channels[1] = c - (ceil_div(c, cc) - 1) * cc
    w.channels[0] = cc if c > cc else w.channels[1]
    while True:
        left = max(pixels, <int64_t>1)
        for n in range(3, -1, -1):
            whole = size_of(g, images, n)
            if n == 3 and g.k[1] > 1 and whole <= LONG_ROW:  # cut pieces are transposed more than once
                left = max(left, whole)
            w.b[n] = even(whole, left)
            w.n[n] = ceil_div(whole, w.b[n])
            left = 1 if w.n[n] > 1 else left // whole
        w.extent[0] = w.b[0]
        for n in range(3):
            w.extent[1 + n] = (w.b[1 + n] - 1) * g.s[n] + (g.k[n] - 1) * abs(g.d[n]) + 1
        for i in range(2):
            w.volume[i].pitch = item if planar else ceil_div(w.channels[i], w.unit) * w.unit * item
            # A cache line more: power-of-two rows share cache sets.
            w.volume[i].row = ceil_div(w.extent[3] * w.volume[i].pitch, 64) * 64 + 64
            w.volume[i].slice = w.extent[2] * w.volume[i].row
            w.volume[i].plane = w.extent[1] * w.volume[i].slice
            w.volume[i].image = w.volume[i].plane * (w.channels[i] if planar else 1)
            w.volume[i].length = w.volume[i].pitch // item * run_taps(g)
        # A transposition into place writes up to a whole square.
        w.bytes = 0 if direct else w.b[0] * w.volume[0].image + 64 + 16 * 64
        if w.bytes <= MOST_VOLUME or pixels <= 24:
            break
        pixels = pixels // 2
    w.blocks = w.n[0] * w.n[1] * w.n[2] * w.n[3]
    w.pixel_rows = w.b[0] * w.b[1] * w.b[2]
    w.pixels = w.pixel_rows * w.b[3]
    whole = min(w.extent[2], g.i[1]) * (g.i[2] if w.n[3] == 1 or w.extent[2] > 1 else w.extent[3])
    w.transposed = 0 if planar or direct else (whole + 16) * panel * item
    return w


cdef inline int64_t run_taps(Geometry* g) noexcept:
    """Taps of a run: those along a row are contiguous unless they are dilated."""
    return g.k[2] if abs(g.d[2]) == 1 else 1


include "window_tables.pxi"


# ---- choice of the algorithm -----------------------------------------------------------------------------------------

cdef bint by_windows(Geometry* g, int64_t images, int64_t groups, int64_t c, int64_t m, bint alone=False) noexcept:
    """Whether there is enough work to repay the packing, and channels fill the vectors.

    The phases of a gradient (whose dilation is negative) are laid out one by one unless there is one ``alone``: few
    outputs do not repay that.
    """
    return m >= (5 if alone or g.d[2] > 0
                 else 8) and g.taps > 0 and images * g.pixels >= 16 and images * g.pixels * c * m * g.taps >= 1 << 18


cdef bint reads_points(Geometry* g) noexcept:
    """Whether this is a 1x1 convolution of every pixel: not so where a transposed one has padded its output."""
    cdef int n
    for n in range(3):
        if g.k[n] != 1 or g.s[n] != 1 or g.p[n] != 0 or g.o[n] != g.i[n]:
            return False
    return True


cdef bint channels_last(Tensor x) noexcept:
    """Whether channels are contiguous in memory, and rows of pixels follow one another. False for a single pixel."""
    if x.sizes[2] * x.sizes[3] * x.sizes[4] == 1:
        return False
    return x.strides[1] == 1 and x.sizes[1] > 1 and (x.sizes[3] == 1 or x.strides[3] == x.sizes[4] * x.strides[4]) and (
        x.strides[4] != 1 or x.sizes[4] == 1)


cdef bint is_planar(Tensor x, int64_t c) noexcept:
    """Whether an image has channels first, and so few (``c`` per group) that they are laid out in that order."""
    return c <= PLANAR_CHANNELS and not channels_last(x)


cdef Tensor in_rows(Tensor x):
    """``x``, copied unless the rows of its images are contiguous."""
    return x if channels_last(x) else whole_planes(x)


cdef void windows_shape(Geometry* g, Windows* w, Tensor x, Tensor y, int64_t groups,
                        WindowsShape* arg) noexcept:
    """The arguments that both kernels begin with, except offsets in the slot."""
    cdef int64_t item = ITEMSIZE[x.code], to_item = ITEMSIZE[y.code]
    arg.m, arg.c, arg.groups, arg.images = y.sizes[1] // groups, x.sizes[1] // groups, groups, x.sizes[0]
    arg.id, arg.ih, arg.iw = g.i[0], g.i[1], g.i[2]
    arg.od, arg.oh, arg.ow = g.o[0], g.o[1], g.o[2]
    arg.sz, arg.sy, arg.sx = g.s[0], g.s[1], g.s[2]
    # Output o meets tap k at o s - p + k d.
    arg.pz, arg.py, arg.px = before_first(g, 0), before_first(g, 1), before_first(g, 2)
    arg.fz, arg.fy, arg.fx = to_last_tap(g, 0), to_last_tap(g, 1), to_last_tap(g, 2)
    arg.bn, arg.bz, arg.by, arg.bx = w.b[0], w.b[1], w.b[2], w.b[3]
    arg.nz, arg.ny, arg.nx = w.n[1], w.n[2], w.n[3]
    arg.cc, arg.unit, arg.taps = w.cc, w.unit, g.taps
    arg.x_n, arg.x_c, arg.x_z = x.strides[0] * item, x.strides[1] * item, x.strides[2] * item
    arg.y_n, arg.y_c, arg.y_z = y.strides[0] * to_item, y.strides[1] * to_item, y.strides[2] * to_item
    arg.x_last, arg.y_last = channels_last(x), channels_last(y)
    arg.x_p, arg.y_p = item * (x.strides[4] if arg.x_last else 1), to_item * (y.strides[4] if arg.y_last else 1)
    arg.rows, arg.planar = w.rows, w.planar
    memcpy(&arg.pitch0, w.volume, sizeof(w.volume))


# ---- launches --------------------------------------------------------------------------------------------------------

cdef Tensor convolve_windows(Convolution a):
    cdef Part part
    cdef int64_t scale[3]
    part.g, part.begin = a.g, 0
    part.at[0] = part.at[1] = part.at[2] = 0
    scale[0] = scale[1] = scale[2] = 1
    in_windows(a, &a.g, &part, 1, scale, a.w.panels(a.number, is_planar(a.x, a.x.sizes[1] // a.groups)))


cdef int in_windows(Convolution a, Geometry* g, Part* parts, int64_t number, int64_t* scale, char* packed) except -1:
    """Convolutions of one volume, of geometry ``g``, whose results are interleaved at a stride of ``scale``
    positions, with the panels of :func:`packed_weights`."""
    cdef Tensor x = in_rows(a.x), bias = a.bias, out = a.y
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef WindowsArgs arg
    cdef int64_t groups = a.groups, images = x.sizes[0], c = x.sizes[1] // groups, m = out.sizes[1] // groups
    cdef int64_t item = ITEMSIZE[code], panels = ceil_div(m, b.panel), each, tasks, pixels, taps = 0, n
    cdef double work = 0
    cdef bint large
    cdef Slots slots
    cdef char* ptr[5]
    cdef Tensor tables, memory
    cdef Windows w
    for n in range(number):
        taps += parts[n].g.taps
        work += <double>m * c * parts[n].g.taps * images * g.pixels * groups
    large = m * c * taps * item > LARGE_WEIGHTS
    # Blocks whose sums fit the second-level cache, and enough of them. Large weights should meet more pixels at a time.
    pixels = min(max(SUMS // (m if large else m * number), 96 // number), <int64_t>768)
    pixels = max(min(pixels, images * g.pixels * groups // (2 if large else 8)), max(48 // number, <int64_t>8))
    w = windows_of(g, images, c, b.panel, item, b.panel, pixels, is_planar(x, c))
    for n in range(3):
        w.scale[n] = scale[n]
        w.result[n] = out.sizes[2 + n] if w.n[1 + n] == 1 else w.b[1 + n] * scale[n]
    tables = window_tables(g, &w, parts, number, code, images, m)
    each = panels
    if w.blocks * groups < FEW_BLOCKS:
        each = ceil_div(panels, ceil_div(<int64_t>FEW_BLOCKS, w.blocks * groups))
    tasks = w.blocks * groups * ceil_div(panels, each)
    windows_shape(g, &w, x, out, groups, <WindowsShape*>&arg)
    arg.panels, arg.at_sum = each, ceil_div(w.bytes, 64) * 64
    arg.at_pixels = arg.at_sum + (each * w.rows + 16) * b.panel * item
    arg.w_g, arg.bias, arg.phases, arg.phases_at = a.w.places.group, bias is not None, number, 0
    arg.uz, arg.uy, arg.ux = scale[0], scale[1], scale[2]
    arg.dz, arg.dy, arg.dx = out.sizes[2], out.sizes[3], out.sizes[4]
    arg.sum_z = w.result[1] * w.result[2]
    arg.sum_n, arg.sum_y = w.result[0] * arg.sum_z, w.result[2]
    memory = make_slots(&slots, arg.at_pixels + w.transposed, tasks)
    ptr[0], ptr[1], ptr[2], ptr[4] = address_of(out), address_of(x), packed, address_of(tables)
    ptr[3] = address_of(out) if bias is None else address_of(bias)
    run_in_slots(&slots, find_windows(CONV_WINDOWS, out.code), ptr, 5, <int64_t*>&arg, sizeof(arg) // 8, tasks, work)
    return 0


cdef bint fills_phases(Geometry* whole, Tensor x, int64_t groups, int64_t m, int64_t c) noexcept:
    """Whether all phases of the input's gradient, from ``m`` outputs to ``c`` inputs, have taps and can share a
    volume."""
    cdef int64_t n, k, phase, every
    cdef bint meets
    if whole.s[0] * whole.s[1] * whole.s[2] > PHASES or is_depthwise(m, c) or is_planar(x, x.sizes[1] // groups):
        return False
    for n in range(3):
        every = whole.s[n] // gcd(whole.s[n], whole.d[n])
        if every != whole.s[n] or whole.k[n] < every or whole.i[n] < whole.s[n]:
            return False
    return by_windows(whole, x.sizes[0], groups, m, c, True)


cdef Tensor convolve_phases(Convolution a):
    """The input's gradient of a convolution with a stride: its phases read one volume, and their sums are
    interleaved."""
    cdef Part parts[PHASES]
    cdef Phase phase
    cdef Geometry g
    cdef Geometry* whole = &a.g
    cdef int64_t number = whole.s[0] * whole.s[1] * whole.s[2], i, n, before, after
    cdef char* packed = a.w.panels(0, False)
    memset(&g, 0, sizeof(Geometry))
    g.taps = g.pixels = 1
    for i in range(number):
        phase_of(&phase, whole, a.x, i)
        parts[i].g, parts[i].begin = phase.g, a.w.places.begin[i]
        memcpy(parts[i].at, phase.at, 3 * 8)
    for n in range(3):
        before = after = -NOWHERE
        for i in range(number):
            before = max(before, before_first(&parts[i].g, n))
            after = max(after, (parts[i].g.k[n] - 1) * abs(parts[i].g.d[n]) - before_first(&parts[i].g, n))
        g.o[n], g.i[n], g.s[n], g.d[n] = ceil_div(whole.i[n], whole.s[n]), a.x.sizes[2 + n], 1, 1
        g.p[n], g.k[n] = before, before + after + 1
        g.taps *= g.k[n]
        g.pixels *= g.o[n]
    in_windows(a, &g, parts, number, whole.s, packed)


cdef Tensor in_one_row(Tensor x):
    """An image ``[n, c, 1, 1, pixels]``: a view, or a copy where its pixels are not evenly spaced."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    if not even_pixels(x):
        x = contiguous_tensor(x)
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = (x.sizes[0], x.sizes[1], 1, 1,
                                                        x.sizes[2] * x.sizes[3] * x.sizes[4])
    strides[0], strides[1], strides[4] = x.strides[0], x.strides[1], 1
    for n in range(4, 1, -1):
        if x.sizes[n] > 1:
            strides[4] = x.strides[n]
            break
    strides[2] = strides[3] = sizes[4] * strides[4]
    return alias_tensor(x, 5, sizes, strides, 0)


cdef bint narrow_points(Convolution a) except -1:
    """Whether so few outputs of a 1x1 convolution remain that their weights' gradient is a product along memory."""
    return a.groups == 1 and a.m <= NARROW and reads_points(&a.g) and not channels_last(a.x) and not channels_last(a.y)


cdef Tensor narrow_gradient(Convolution a):
    """Gradient of the weights ``[part, m, c, 1]`` if :func:`narrow_points`: parts of some pixels of an image."""
    cdef Geometry* g = &a.g
    cdef Tensor x = in_one_row(a.x), y = in_one_row(a.y)
    if g.pixels > 1 and (x.strides[4] != 1 or y.strides[4] != 1):
        x, y = contiguous_tensor(x), contiguous_tensor(y)
    cdef int code = x.code
    cdef Product p
    cdef int64_t sizes[4]
    cdef int64_t item = ITEMSIZE[code], images = x.sizes[0], c = x.sizes[1], m = y.sizes[1]
    cdef int64_t whole = g.pixels // NARROW_PIXELS, rest = g.pixels % NARROW_PIXELS, n
    cdef int64_t each = whole + (rest > 0)
    sizes[0], sizes[1], sizes[2], sizes[3] = images * each, m, c, 1
    cdef Tensor out = empty_tensor(code, 4, sizes)
    for n in range(2):
        p = no_product(code, whole if n == 0 else 1)
        p.n0, p.m, p.n, p.k = images, m, c, NARROW_PIXELS if n == 0 else rest
        if p.n1 == 0 or p.k == 0:
            continue
        p.a.ptr, p.a.outer, p.a.inner = address_of(y), y.strides[0] * item, NARROW_PIXELS * item
        p.a.rows, p.a.columns = y.strides[1] * item, item
        p.b.ptr, p.b.outer, p.b.inner = address_of(x), x.strides[0] * item, NARROW_PIXELS * item
        p.b.rows, p.b.columns = item, x.strides[1] * item
        p.c.ptr, p.c.outer, p.c.inner = address_of(out), each * m * c * item, m * c * item
        p.c.rows, p.c.columns = c * item, item
        if n == 1:
            p.a.ptr, p.b.ptr = p.a.ptr + whole * NARROW_PIXELS * item, p.b.ptr + whole * NARROW_PIXELS * item
            p.c.ptr += whole * m * c * item
        p.d = p.c
        multiply(&p)
    return out


cdef Tensor windows_gradient(Convolution a):
    """Gradient of the weights ``[part, group * m, c, tap]``; pairs give float32."""
    cdef Tensor x = image_pairs(a.x) if a.format == PAIRED else a.x
    cdef Tensor y = image_pairs(a.y) if a.format == PAIRED else a.y
    # Windows without padding need no volume: the pixels of a 1x1 kernel with stride 1 are one row.
    cdef bint points = reads_points(&a.g), direct = a.g.p[0] == a.g.p[1] == a.g.p[2] == 0
    cdef Geometry flat = a.g
    cdef Geometry* g = &flat
    if points:
        x, y = in_one_row(x), in_one_row(y)
        flat.i[0] = flat.i[1] = flat.o[0] = flat.o[1] = 1
        flat.i[2] = flat.o[2] = flat.pixels
    x, y = in_rows(x), in_rows(y)
    cdef int code = x.code
    cdef Blocks b = blocks(code)
    cdef WindowsWeightArgs arg
    cdef int64_t sizes[4]
    cdef int64_t item = ITEMSIZE[code], images = x.sizes[0], groups = a.groups, c = a.c, m = a.m
    cdef int64_t panels = ceil_div(m, b.panel), tasks, parts, each, cc, c_panels, step
    cdef double work = <double>m * c * g.taps * images * g.pixels * groups
    cdef Slots slots
    cdef char* ptr[4]
    # The sums of a task, (c, tap) by a panel, should fit the second-level cache.
    cc = even(c, DIRECT_CHANNELS) if points else min(max(1024 // g.taps // 16 * 16, <int64_t>16), b.panel)
    # 128 pixels at a time: the error of a sum of 256 in one register is 2.2 times PyTorch's.
    cdef Windows w = windows_of(g, images, c, cc, item, b.panel, 128, is_planar(x, c) and not direct, direct)
    cdef Tensor tables = gradient_tables(g, &w, code, m, x if direct else None, &arg.tiles00), memory
    c_panels = ceil_div(c, cc)
    # With few taps, a volume should meet more than one panel of the gradient if there are many.
    each = 1 if direct else even(panels, max(min(8 // g.taps, panels * c_panels * groups // 16), <int64_t>1))
    tasks = ceil_div(panels, each) * c_panels * groups
    parts = min(w.blocks, ceil_div(16, tasks))
    step = ceil_div(w.blocks, parts)
    parts = ceil_div(w.blocks, step)
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, groups * m, c, g.taps
    cdef Tensor out = empty_tensor(code, 4, sizes)
    windows_shape(g, &w, x, y, groups, <WindowsShape*>&arg)
    arg.panels, arg.at_sum = each, ceil_div(w.bytes, 64) * 64
    arg.at_pixels = arg.at_sum + (each * w.rows + 16) * b.panel * item
    arg.blocks, arg.run, arg.at_g = w.blocks, step, arg.at_pixels + w.transposed
    arg.c_p, arg.direct = out.strides[0] * item, direct
    memory = make_slots(&slots, arg.at_g + (w.pixels + 16) * b.panel * item, tasks * parts)
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(out), address_of(x), address_of(y), address_of(tables)
    run_in_slots(&slots, find_windows(WINDOWS_GRADIENT, a.code if a.format == PAIRED else code), ptr, 4, <int64_t*>&arg,
                 sizeof(arg) // 8, tasks * parts, work)
    return out
