# Launcher of kernels/depthwise.py: convolution with one input channel per group.

cdef enum:
    DEPTHWISE_ARGS = 39
    DEPTHWISE_SLACK = 64   # as in the kernels
    DEPTHWISE_MOST = 4     # output channels per group from which the product of matrices is as fast
    BUFFER = 1 << 16       # bytes of a band
    PIECES = 32            # at most, each with a buffer of its own

    LAST_ARGS = 23
    LAST_ROWS = 1 << 15    # outputs of a task
    SHORT_ROW = 16
    WIDE_KERNEL = 5
    TURNED_ITEMS = 1 << 18 # of the images that are turned at a time

cdef kernel_t _depthwise[NDTYPES]
cdef kernel_t _depthwise_weight[NDTYPES]
cdef kernel_t _depthwise_last[NDTYPES]
cdef kernel_t _depthwise_last_weight[NDTYPES]

cdef struct Band:          # how the buffer of one channel is laid out
    int64_t lo[3]
    int64_t phases[3]
    int64_t sizes[3]
    int64_t reach[3]       # output positions from the first tap to the last
    int64_t rows, count    # of a band, and of bands
    int64_t cell, stack    # items of an image in a phase, images at a time
    bint maps


cdef kernel_t find_depthwise(kernel_t* table, int code, str name) except NULL:
    from ..kernels import depthwise
    assert len(depthwise.ARGS) == DEPTHWISE_ARGS and depthwise.SLACK == DEPTHWISE_SLACK
    cdef size_t address = getattr(depthwise, name)(NAMES[code])
    table[code] = <kernel_t>address
    return table[code]


cdef Band bands(Geometry* g, int64_t images, int64_t item) noexcept:
    """Bands of as many rows as fit the buffer; a volume is done whole."""
    cdef Band b
    cdef int64_t span, phases = 1, most
    cdef int n
    for n in range(3):
        span = g.d[n] * (g.k[n] - 1)
        b.lo[n] = min(span, <int64_t>0) - g.p[n]
        span = abs(span)
        b.reach[n] = span // g.s[n]
        b.phases[n] = min(g.s[n], span + 1)
        b.sizes[n] = g.o[n] + b.reach[n]
        phases *= b.phases[n]
    b.rows = g.o[1]
    if g.o[0] == 1:
        most = max(BUFFER // (phases * b.sizes[0] * b.sizes[2] * item) - b.reach[1], 4 + b.reach[1])
        b.rows = even(g.o[1], most)
    b.sizes[1] = b.rows + b.reach[1]
    b.count = ceil_div(g.o[1], b.rows)
    b.cell = b.sizes[0] * b.sizes[1] * b.sizes[2]
    b.stack = 1
    if b.count == 1:
        b.stack = even(images, max(BUFFER // (b.cell * phases * item), 1))
    b.maps = b.count == 1 and b.cell < BUFFER and (g.o[2] <= 16 or g.s[2] != 1)
    return b


cdef Tensor distances(Geometry* g, Band* b, int64_t item):
    """For each tap its distance in the buffer in bytes; for each phase of a row its first and last column inside."""
    cdef int64_t size = g.taps + 2 * b.phases[2], x, y, z, i = 0, n, phase, at
    cdef int64_t e[3]
    cdef int64_t tap[3]
    cdef Tensor table = empty_tensor(I64, 1, &size)
    cdef int64_t* out = <int64_t*>table.ptr
    for z in range(g.k[0]):
        for y in range(g.k[1]):
            for x in range(g.k[2]):
                tap[0], tap[1], tap[2] = z, y, x
                phase = at = 0
                for n in range(3):
                    e[n] = tap[n] * g.d[n] - g.p[n] - b.lo[n]
                    phase = phase * b.phases[n] + e[n] % g.s[n]
                    at = at * b.sizes[n] + e[n] // g.s[n]
                out[i] = (phase * b.stack * b.cell + at) * item
                i += 1
    for n in range(b.phases[2]):
        x = -b.lo[2] - n
        out[i] = min(ceil_div(x, g.s[2]), b.sizes[2]) if x > 0 else 0
        x += g.i[2]
        out[i + 1] = min(ceil_div(x, g.s[2]), b.sizes[2]) if x > 0 else 0
        i += 2
    return table


cdef Tensor maps(Geometry* g, Band* b, Tensor x, Tensor y):
    """For each item of the buffer the byte of x and (first phase) of y it comes from, or -1; for each output its item."""
    cdef int64_t item = ITEMSIZE[x.code], phases = b.phases[0] * b.phases[1] * b.phases[2], phase, n, z, y1, x2, at
    cdef int64_t size = (phases + 1) * b.cell + g.pixels + DEPTHWISE_SLACK
    cdef int64_t p[3]
    cdef int64_t here[3]
    cdef int64_t first
    cdef Tensor made = empty_tensor(I32, 1, &size)
    cdef int32_t* out = <int32_t*>made.ptr
    for phase in range(phases):
        p[0], p[1], p[2] = phase // (b.phases[1] * b.phases[2]), phase // b.phases[2] % b.phases[1], phase % b.phases[2]
        for z in range(b.sizes[0]):
            here[0] = p[0] + z * g.s[0] + b.lo[0]
            for y1 in range(b.sizes[1]):
                here[1] = p[1] + y1 * g.s[1] + b.lo[1]
                here[2] = p[2] + b.lo[2]
                first = here[0] * x.strides[2] + here[1] * x.strides[3]
                for x2 in range(b.sizes[2]):
                    if 0 <= here[0] < g.i[0] and 0 <= here[1] < g.i[1] and 0 <= here[2] < g.i[2]:
                        out[0] = <int32_t>((first + here[2] * x.strides[4]) * item)
                    else:
                        out[0] = -1
                    out += 1
                    here[2] += g.s[2]
    for z in range(b.sizes[0]):
        for y1 in range(b.sizes[1]):
            for x2 in range(b.sizes[2]):
                at = (z * y.strides[2] + y1 * y.strides[3] + x2 * y.strides[4]) * item
                out[0] = <int32_t>at if z < g.o[0] and y1 < g.o[1] and x2 < g.o[2] else -1
                out += 1
    for z in range(g.o[0]):
        for y1 in range(g.o[1]):
            for x2 in range(g.o[2]):
                out[0] = <int32_t>(((z * b.sizes[1] + y1) * b.sizes[2] + x2) * item)
                out += 1
    memset(out, 0, DEPTHWISE_SLACK * 4)
    return made


cdef int depthwise_run(kernel_t fn, Geometry* g, Tensor x, Tensor y, int64_t groups, int64_t m, char** ptr,
                       bint bias, bint sums) except -1:
    """Launch either kernel, that of the weights' gradient with ``sums``; ``ptr`` has its first four."""
    cdef int64_t item = ITEMSIZE[x.code], grain, room, pieces, length, n, tasks = groups * m, images = x.sizes[0]
    cdef int64_t arg[DEPTHWISE_ARGS]
    cdef Band b = bands(g, images, item)
    cdef Tensor table = distances(g, &b, item), buffer, totals, places
    cdef double work = <double>images * groups * m * g.taps * g.pixels
    # Offsets within an image must fit 32 bits.
    for n in range(2, 5):
        if abs(x.strides[n]) * x.sizes[n] >= 1 << 26:
            b.maps = False
    if not sums:
        tasks = ceil_div(images, b.stack) * groups * b.count
    grain = max(grain_of(work, tasks), ceil_div(tasks, PIECES))
    pieces = ceil_div(tasks, grain)
    room = b.cell * b.stack * (b.phases[0] * b.phases[1] * b.phases[2] + 1) + 2 * DEPTHWISE_SLACK
    length = pieces * room
    buffer = empty_tensor(x.code, 1, &length)
    length = pieces * g.taps
    totals = empty_tensor(I64, 1, &length)
    ptr[4], ptr[5], ptr[6], ptr[7] = table.ptr, buffer.ptr, totals.ptr, NULL
    if b.maps:
        places = maps(g, &b, x, y)
        ptr[7] = places.ptr
    for n in range(3):
        arg[n], arg[3 + n], arg[6 + n], arg[9 + n] = g.o[n], g.i[n], b.sizes[n], g.s[n]
        arg[12 + n], arg[15 + n] = b.lo[n], b.phases[n]
    arg[18], arg[19], arg[20], arg[21], arg[22], arg[23] = b.rows, b.count, images, groups, m, g.taps
    arg[24], arg[25], arg[26], arg[27], arg[28] = bias, room * item, grain, b.stack, b.maps
    for n in range(5):
        arg[29 + n], arg[34 + n] = x.strides[n] * item, y.strides[n] * item
    run(fn, ptr, arg, tasks, grain, work)
    return 0


cdef inline bint is_depthwise(int64_t channels, int64_t m) noexcept:
    return channels == 1 and m <= DEPTHWISE_MOST


cdef int depthwise(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """:func:`convolve` for one input channel per group; ``out`` may have any strides."""
    cdef int code = x.code
    cdef char* ptr[8]
    cdef kernel_t fn = _depthwise[code]
    if fn == NULL:
        fn = find_depthwise(_depthwise, code, "depthwise")
    ptr[0], ptr[1], ptr[2], ptr[3] = out.ptr, x.ptr, w.ptr, out.ptr if bias is None else bias.ptr
    return depthwise_run(fn, g, x, out, groups, w.sizes[1], ptr, bias is not None, False)


cdef Tensor depthwise_weight_gradient(Geometry* g, Tensor x, Tensor y, int64_t groups, int64_t m):
    """``[1, group, m, tap]``; ``y`` is contiguous."""
    cdef int64_t sizes[4]
    cdef char* ptr[8]
    cdef int code = x.code
    cdef kernel_t fn = _depthwise_weight[code]
    if fn == NULL:
        fn = find_depthwise(_depthwise_weight, code, "depthwise_weight")
    sizes[0], sizes[1], sizes[2], sizes[3] = 1, groups, g.taps, m
    cdef Tensor out = empty_tensor(code, 4, sizes)
    ptr[0], ptr[1], ptr[2], ptr[3] = out.ptr, x.ptr, y.ptr, NULL
    depthwise_run(fn, g, x, y, groups, m, ptr, False, True)
    return turned_back(out)


# ---- channels last --------------------------------------------------------------------------------------------------------

cdef kernel_t find_last(kernel_t* table, int code, str name) except NULL:
    from ..kernels import depthwise_last
    cdef size_t address
    if table[code] == NULL:
        assert len(depthwise_last.LAST_ARGS) == LAST_ARGS
        address = getattr(depthwise_last, name)(NAMES[code])
        table[code] = <kernel_t>address
    return table[code]


cdef bint is_last_depthwise(Geometry* g, Tensor x, Tensor y, int64_t channels, int64_t m) noexcept:
    """Whether both lie with channels last, one output per channel, in an image."""
    return channels == 1 and m == 1 and x.strides[1] == 1 and y.strides[1] == 1 and x.sizes[1] >= 8 and (
        g.i[0] == 1 and g.o[0] == 1 and g.k[0] == 1 and g.p[0] == 0)


cdef bint turns_last(Geometry* g, Tensor x, int64_t channels, int64_t m, bint wide=False) noexcept:
    """Whether images with channels first are done sooner by turning them: rows are short, or taken by every other pixel.

    Or the kernel is ``wide``.
    """
    return channels == 1 and m == 1 and x.code == F32 and x.sizes[1] >= 16 and not channels_last(x) and (
        g.i[0] == 1 and g.o[0] == 1 and g.k[0] == 1 and g.p[0] == 0 and (wide or g.i[2] <= SHORT_ROW or g.s[2] > 1))


cdef bint is_wide(Geometry* g) noexcept:
    """Whether windows are so wide that neighbours share most of what they read, which channels last make use of."""
    return g.k[2] >= WIDE_KERNEL and g.k[2] <= 7 and abs(g.d[2]) == 1


cdef Tensor to_last(Tensor t):
    """A copy of ``t`` with channels last."""
    cdef Tensor moved = empty_last(t.code, t.nd, t.sizes)
    copy_into(moved, t)
    return moved


cdef void last_shape(Geometry* g, Tensor x, Tensor y, int64_t* arg) noexcept:
    cdef int64_t item = ITEMSIZE[x.code], n
    arg[0], arg[1] = x.sizes[0], x.sizes[1]
    for n in range(1, 3):
        arg[1 + n], arg[3 + n], arg[5 + n], arg[7 + n], arg[9 + n] = g.i[n], g.o[n], g.k[n], g.s[n], abs(g.d[n])
        # Where the dilation is negative, the taps are turned round.
        arg[11 + n] = g.p[n] + ((g.k[n] - 1) * -g.d[n] if g.d[n] < 0 else 0)
        arg[14 + n], arg[17 + n] = x.strides[2 + n] * item, y.strides[2 + n] * item
    arg[14], arg[17] = x.strides[0] * item, y.strides[0] * item
    arg[22] = x.sizes[1] * ITEMSIZE[compute_code(x.code)]


cdef Tensor taps_first(Geometry* g, Tensor w, int64_t channels):
    """Weights ``[channel, tap]`` as ``[tap, channel]``, turned round where the dilation is negative."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int64_t n, offset = 0, step = 1
    sizes[0], sizes[1], sizes[2] = g.k[1], g.k[2], channels
    for n in range(2, 0, -1):
        strides[n - 1] = -step if g.d[n] < 0 else step
        offset += (g.k[n] - 1) * step if g.d[n] < 0 else 0
        step *= g.k[n]
    strides[2] = g.taps
    cdef Tensor out = empty_tensor(w.code, 3, sizes)
    copy_into(out, alias_tensor(w, 3, sizes, strides, offset))
    return out


cdef int depthwise_last(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1:
    """:func:`depthwise` of images with channels last; of 16-bit floats, weights and bias are float32."""
    cdef int64_t arg[LAST_ARGS]
    cdef int64_t images = x.sizes[0], channels = x.sizes[1], tasks
    cdef double work = <double>out.count * g.taps
    cdef char* ptr[4]
    w = taps_first(g, w, channels)
    last_shape(g, x, out, arg)
    arg[20] = even(g.o[1], max(LAST_ROWS // (g.o[2] * channels), <int64_t>1))
    arg[21] = bias is not None
    tasks = images * ceil_div(g.o[1], arg[20])
    ptr[0], ptr[1], ptr[2], ptr[3] = out.ptr, x.ptr, w.ptr, w.ptr if bias is None else bias.ptr
    run(find_last(_depthwise_last, x.code, "depthwise_last"), ptr, arg, tasks, grain_of(work, tasks), work)
    return 0


cdef Tensor some_images(Tensor x, int64_t first, int64_t count):
    cdef int64_t sizes[5]
    memcpy(sizes, x.sizes, 5 * 8)
    sizes[0] = count
    return alias_tensor(x, 5, sizes, x.strides, first * x.strides[0])


cdef int depthwise_turned(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1:
    """:func:`depthwise_last` of images with channels first: a few at a time, whose copies stay in the caches."""
    cdef int64_t images = x.sizes[0], first, count
    cdef int64_t each = max(TURNED_ITEMS // (max(x.count, out.count) // images), <int64_t>1)
    cdef Tensor part, whole
    for first in range(0, images, each):
        count = min(each, images - first)
        part = some_images(out, first, count)
        whole = empty_last(out.code, 5, part.sizes)
        depthwise_last(g, to_last(some_images(x, first, count)), w, bias, whole)
        copy_into(part, whole)
    return 0


cdef Tensor depthwise_last_gradient(Geometry* g, Tensor x, Tensor y):
    """``[part, channel, tap]``, a view; of 16-bit floats in float32."""
    cdef int64_t arg[LAST_ARGS]
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int64_t images = x.sizes[0], channels = x.sizes[1], parts, tasks
    cdef double work = <double>y.count * g.taps
    cdef char* ptr[3]
    last_shape(g, x, y, arg)
    arg[20], arg[21] = even(images, 4), 0  # few numbers in one sum round better, and threads have something to do
    parts = ceil_div(images, arg[20])
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, g.taps, channels, 1
    cdef Tensor out = empty_tensor(compute_code(x.code), 4, sizes)
    ptr[0], ptr[1], ptr[2] = out.ptr, x.ptr, y.ptr
    tasks = parts * ceil_div(channels, last_lanes(out.code))
    run(find_last(_depthwise_last_weight, x.code, "depthwise_last_weight"), ptr, arg, tasks, grain_of(work, tasks), work)
    sizes[1], sizes[2] = channels, g.taps
    strides[0], strides[1], strides[2], strides[3] = g.taps * channels, 1, channels, 1
    return alias_tensor(out, 4, sizes, strides, 0)


cdef int64_t last_lanes(int code) except -1:
    """Channels in a register."""
    from ..kernels import target
    return max(<int64_t>(target.host().vector_bytes) // ITEMSIZE[code], <int64_t>1)
