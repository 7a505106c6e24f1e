# Launchers of kernels/depthwise.py and depthwise_last.py: convolution with few channels per group.

cdef enum:
    DEPTHWISE_MOST = 4     # output channels per group from which the matrix product is as fast
    DEPTHWISE_TASKS = 16   # at least, if there are so many blocks
    MOST_LINES = 7
    VARIANTS = 8 * 3 * 32
    LONG_SUM = 512         # numbers in one lane of a sum
    PIECES = 32            # at most, each with a buffer of its own

    MOST_GROUP = 16        # most channels of a group that share a vector
    LAST_ROWS = 1 << 15    # outputs of a task

cdef uint64_t DEPTHWISE = new_owner("depthwise.depthwise"), DEPTHWISE_WEIGHT = new_owner("depthwise.depthwise_weight")
cdef uint64_t LAST = new_owner("depthwise_last.depthwise_last")
cdef uint64_t LAST_WEIGHT = new_owner("depthwise_last.depthwise_last_weight")
cdef int64_t _register_bytes[MOST_DEVICES]     # by place; 0: not known yet
cdef int64_t _depthwise_height[MOST_DEVICES]

# One dimension: output o meets tap k at at + o * s + k * d; items from a tap's weights to the next.
cdef struct Taps:
    int64_t o, i, k, s, d, at
    int64_t begin, step

cdef struct Variant:       # the kernel and its treatment of rows; see ARGS there
    int64_t lines, step, phases, lanes
    bint flat, half, single, spaced
    int64_t reach, apart, chunks, chunk, blocks


# ---- channels first: sizes -------------------------------------------------------------------------------------------

cdef Taps taps_of(Geometry* g, int n, int64_t step) noexcept:
    """Dimension ``n`` of a convolution; its taps are ``step`` items apart. Dilation becomes positive."""
    cdef Taps t
    t.o, t.i, t.k, t.s, t.d = g.o[n], g.i[n], g.k[n], g.s[n], abs(g.d[n])
    t.at = -before_first(g, n)
    t.begin = (t.k - 1) * step if g.d[n] < 0 else 0
    t.step = -step if g.d[n] < 0 else step
    return t


cdef Taps phase_taps(Geometry* g, int n, int64_t phase, int64_t step) noexcept:
    """Dimension ``n`` of the gradient of a convolution's input: positions ``phase``, ``phase + g.s`` and so on."""
    cdef Taps t
    cdef int64_t every = g.s[n] // gcd(g.s[n], g.d[n]), first = 0
    while first < min(every, g.k[n]) and (phase + g.p[n] - first * g.d[n]) % g.s[n]:
        first += 1
    t.o = max(ceil_div(g.i[n] - phase, g.s[n]), <int64_t>0) if g.i[n] > phase else 0
    t.i, t.s, t.d = g.o[n], 1, g.d[n] * every // g.s[n]
    t.k = ceil_div(g.k[n] - first, every) if first < min(every, g.k[n]) else 0
    # Tap first + j * every meets o + (phase + p - first * d) / s - j * d; taps are in reverse order.
    t.at = (phase + g.p[n] - first * g.d[n]) // g.s[n] - (t.k - 1) * t.d if t.k else 0
    t.begin, t.step = (first + (t.k - 1) * every) * step if t.k else 0, -every * step
    return t


cdef int know_registers(int at) except -1:
    from ..kernels import depthwise, target
    _depthwise_height[at] = depthwise.height(target.here().vector_bytes)
    _register_bytes[at] = target.here().vector_bytes
    return 0


cdef Variant variant_of(int code, Taps* t, int64_t q, int64_t phases, bint spaced) except *:
    """The variant for dimensions ``t``, ``q`` summed channels and ``phases`` of columns; ``spaced`` if results are
    at a stride."""
    cdef Variant v
    cdef Taps* rows = t + 1
    cdef Taps* columns = t + 2
    cdef int64_t width = ceil_div(columns.o, phases)
    cdef int at = kernel_place()
    if _register_bytes[at] == 0:
        know_registers(at)
    v.lanes = max(_register_bytes[at] // ITEMSIZE[compute_code(code)], <int64_t>1)
    v.step, v.phases, v.lines = columns.s if columns.s <= 2 else 0, phases, 1
    v.reach, v.apart, v.chunks, v.chunk = rows.s, 1, rows.k, rows.d
    v.flat = rows.o == 1 and rows.k == 1 and width > v.lanes
    v.half = not v.flat and v.lanes >= 8 and width <= v.lanes // 2
    if v.half:
        v.lanes //= 2
    if not v.flat and 1 < rows.k <= MOST_LINES and rows.k != 6:
        if v.step == 1 and rows.s == 1:
            v.lines, v.chunks, v.reach, v.apart = rows.k, 1, rows.d, rows.d
        elif v.step == 2 and rows.s == 2 and rows.d == 1 and rows.k % 2:
            v.lines, v.chunks, v.reach = rows.k, 1, 1
    v.single, v.spaced = q == v.chunks == t[0].k == t[0].i == t[0].o == 1 and t[0].at == 0, spaced
    if v.flat:
        v.blocks = ceil_div(width, v.lanes * _depthwise_height[at])
    else:
        v.blocks = ceil_div(ceil_div(rows.o, v.apart), _depthwise_height[at])
    return v


cdef kernel_t find_depthwise(int code, Variant* v, bint weight) except NULL:
    cdef uint64_t family = DEPTHWISE_WEIGHT if weight else DEPTHWISE
    cdef int64_t index = (v.lines * 3 + v.step) * 32 + (v.phases - 1) * 16
    index += v.flat * 8 + v.half * 4 + v.single * 2 + v.spaced
    cdef kernel_t fn = known(family, index << 8 | code)
    if fn == NULL:
        args = ((NAMES[code], v.lines, v.step, v.flat, v.half, v.single) if weight else
                (NAMES[code], v.lines, v.step, v.phases, v.flat, v.half, v.single, v.spaced))
        fn = build(family, index << 8 | code, args)
    return fn


cdef void describe_rows(Taps* t, Taps* odd, Variant* v, Tensor x, DepthwiseArgs* arg) noexcept:
    """The kernels' arguments for dimensions ``t``; ``odd`` is the last dimension of the second phase."""
    cdef int64_t item = ITEMSIZE[compute_code(x.code)], of_x = ITEMSIZE[x.code]
    arg.o0, arg.o1, arg.o2 = t[0].o, t[1].o, t[2].o
    arg.i0, arg.i1, arg.i2 = t[0].i, t[1].i, t[2].i
    arg.w_0, arg.w_1, arg.w_2 = t[0].step * item, t[1].step * item, t[2].step * item
    arg.x_n, arg.x_c, arg.x_0, arg.x_1 = (x.strides[0] * of_x, x.strides[1] * of_x, x.strides[2] * of_x,
                                          x.strides[3] * of_x)
    arg.k0, arg.s0, arg.d0, arg.p0 = t[0].k, t[0].s, t[0].d, -t[0].at
    arg.first, arg.step, arg.reach, arg.apart = t[1].at, t[1].s, v.reach, v.apart
    arg.chunks, arg.chunk, arg.s2, arg.d2 = v.chunks, v.chunk, t[2].s, t[2].d
    arg.w_even, arg.taps_even, arg.at_even = (t[0].begin + t[1].begin + t[2].begin) * item, t[2].k, t[2].at
    arg.w_odd, arg.taps_odd, arg.at_odd = (t[0].begin + t[1].begin + odd.begin) * item, odd.k, odd.at


cdef Tensor in_lines(Tensor x):
    """``x``, copied unless the pixels of a row are contiguous."""
    return x if x.strides[4] == 1 or x.sizes[4] == 1 else contiguous_tensor(x)


# ---- channels first: launches ----------------------------------------------------------------------------------------

cdef int depthwise_rows(Taps* t, Taps* odd, Tensor x, char* w, int64_t w_g, int64_t w_c, int64_t w_q, int64_t m,
                        int64_t q,
                        Tensor bias, char* out, int64_t* strides, int64_t images, int64_t channels) except -1:
    """``channels`` outputs, ``m`` per group with ``q`` inputs; strides of the weights by group, output and input in
    items."""
    cdef Variant v = variant_of(x.code, t, q, 1 if odd == NULL else 2, strides[4] != 1)
    cdef DepthwiseArgs arg
    cdef int64_t item = ITEMSIZE[compute_code(x.code)], of_x = ITEMSIZE[x.code], planes = images * channels, tasks
    cdef double work = <double>planes * t[0].o * t[1].o * t[2].o * q * max(t[0].k * t[1].k * t[2].k, <int64_t>1)
    cdef char* ptr[4]
    cdef int64_t band = even(v.blocks, max(v.blocks * planes // DEPTHWISE_TASKS,
                                           <int64_t>1)) if planes < DEPTHWISE_TASKS else v.blocks
    describe_rows(t, &t[2] if odd == NULL else odd, &v, x, &arg)
    arg.channels, arg.m, arg.q = channels, m, q
    arg.y_n, arg.y_c, arg.y_0 = strides[0] * of_x, strides[1] * of_x, strides[2] * of_x
    arg.y_1, arg.y_2 = strides[3] * of_x, strides[4] * of_x
    arg.w_g, arg.w_c, arg.w_q = w_g * item, w_c * item, w_q * item
    arg.bias, arg.band = bias is not None, max(band, <int64_t>1)
    arg.bands = max(ceil_div(v.blocks, arg.band), <int64_t>1)
    tasks = planes * arg.bands
    ptr[0], ptr[1], ptr[2], ptr[3] = out, address_of(x), w, w if bias is None else address_of(bias)
    launch_work(find_depthwise(x.code, &v, False), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks,
                grain_of(work, tasks), work)
    return 0


cdef inline bint is_depthwise(int64_t channels, int64_t m) noexcept:
    return channels == 1 and m <= DEPTHWISE_MOST


cdef bint few_outputs(Geometry* g, int64_t m) noexcept:
    """Whether a group has so few outputs, whose windows meet many of them, that the tile of products would be nearly
    empty."""
    return m <= DEPTHWISE_MOST and g.taps > 1 and g.s[0] <= 2 and g.s[1] <= 2 and g.s[2] <= 2 and g.o[2] > 1


cdef Tensor depthwise(Convolution a):
    """With channels first, for few channels per group; the result may have any strides.

    For 16-bit floats, weights and bias are float32.
    """
    cdef Taps t[3]
    cdef Geometry* g = &a.g
    t[0], t[1], t[2] = taps_of(g, 0, g.k[1] * g.k[2]), taps_of(g, 1, g.k[2]), taps_of(g, 2, 1)
    depthwise_rows(t, NULL, in_lines(a.x), address_of(a.ordered()), a.m * a.c * g.taps, a.c * g.taps, g.taps, a.m, a.c,
                   a.bias, address_of(a.y), a.y.strides, a.images, a.groups * a.m)


cdef Tensor depthwise_back(Convolution a):
    """The gradient of the input of a convolution with few channels per group."""
    cdef Taps t[3]
    cdef Taps odd
    cdef Geometry* g = &a.g
    cdef Tensor grad = in_lines(a.x), out = a.y
    cdef int64_t strides[5]
    cdef int64_t m = a.c, c = a.m, z, y, x, phases = 2 if g.s[2] == 2 else 1, n
    cdef char* place
    strides[0], strides[1] = out.strides[0], out.strides[1]
    for n in range(3):
        strides[2 + n] = out.strides[2 + n] * (g.s[n] if n < 2 or phases == 1 else 1)
    for z in range(min(g.s[0], g.i[0])):
        t[0] = phase_taps(g, 0, z, g.k[1] * g.k[2])
        for y in range(min(g.s[1], g.i[1])):
            t[1] = phase_taps(g, 1, y, g.k[2])
            for x in range(1 if phases == 2 else min(g.s[2], g.i[2])):
                t[2] = phase_taps(g, 2, x, 1)
                if phases == 2:
                    odd = phase_taps(g, 2, 1, 1)
                    t[2].o = g.i[2]
                place = address_of(out) + (z * out.strides[2] + y * out.strides[3] + x
                                           * out.strides[4]) * ITEMSIZE[out.code]
                depthwise_rows(t, &odd if phases == 2 else NULL, grad, address_of(a.w.given), m * c * g.taps, g.taps,
                               c * g.taps, c, m, a.bias, place, strides, a.images, a.groups * c)


cdef Tensor depthwise_weight_gradient(Convolution a):
    """``[1, group * m, 1, tap]``; for 16-bit floats in float32."""
    cdef Taps t[3]
    cdef DepthwiseWeightArgs arg
    cdef int64_t sizes[4]
    cdef Geometry* g = &a.g
    cdef Tensor y = in_lines(contiguous_tensor(a.y)), x = in_lines(a.x)
    cdef int64_t tasks = a.groups * a.m, item = ITEMSIZE[y.code], grain, room, pieces, columns
    cdef char* ptr[4]
    cdef double work = <double>y.count * g.taps
    t[0], t[1], t[2] = taps_of(g, 0, g.k[1] * g.k[2]), taps_of(g, 1, g.k[2]), taps_of(g, 2, 1)
    cdef Variant v = variant_of(x.code, t, 1, 1, False)
    memset(&arg, 0, sizeof(arg))  # this kernel does not use all of them
    sizes[0], sizes[1], sizes[2], sizes[3] = 1, tasks, 1, g.taps
    cdef Tensor out = empty_tensor(compute_code(x.code), 4, sizes), memory
    describe_rows(t, &t[2], &v, x, <DepthwiseArgs*>&arg)
    arg.channels, arg.m, arg.q = tasks, a.m, 1
    arg.y_n, arg.y_c, arg.y_0, arg.y_1 = (y.strides[0] * item, y.strides[1] * item, y.strides[2] * item,
                                          y.strides[3] * item)
    arg.taps, arg.k1, arg.k2, arg.images = g.taps, g.k[1], g.k[2], a.images
    columns = ceil_div(g.o[2], v.lanes)
    arg.every = max(LONG_SUM // max(g.o[0] * g.o[1] * columns, <int64_t>1), <int64_t>1)
    grain = max(grain_of(work, tasks), ceil_div(tasks, <int64_t>PIECES))
    pieces = ceil_div(tasks, grain)
    room = ceil_div(g.taps, 8) * 64 + ceil_div(g.taps * v.lanes * ITEMSIZE[out.code], 64) * 64
    arg.grain, arg.room = grain, room
    memory = working(room * pieces)
    ptr[0], ptr[1], ptr[2], ptr[3] = address_of(out), address_of(x), address_of(y), address_of(memory)
    launch_work(find_depthwise(x.code, &v, True), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks, grain, work)
    return out


# ---- channels last ---------------------------------------------------------------------------------------------------

cdef kernel_t find_last(uint64_t family, int code, int64_t channels) except NULL:
    cdef kernel_t fn = known(family, channels << 8 | code)
    if fn == NULL:
        from ..kernels import depthwise_last
        assert max(depthwise_last.GROUPS) == MOST_GROUP
        fn = build(family, channels << 8 | code, (NAMES[code], channels))
    return fn


cdef bint spreads_groups(Geometry* g, int code, int64_t channels, int64_t m) except *:
    """Whether groups have as many outputs as inputs, few enough to divide a vector, and a kernel that supports them."""
    if channels != m or channels & (channels - 1) or not 1 < channels <= min(MOST_GROUP,
                                                                             last_lanes(compute_code(code))):
        return False
    return abs(g.d[2]) == 1 and (g.s[2] == 1 and 1 <= g.k[2] <= 3 or g.s[2] == 2 and g.k[2] == 3)


cdef bint is_last_depthwise(Geometry* g, Tensor x, Tensor y, int64_t channels, int64_t m) except *:
    """Whether both are images with channels last, with one output per channel or small groups."""
    return x.strides[1] == 1 and y.strides[1] == 1 and x.sizes[1] >= 8 and (
        g.i[0] == 1 and g.o[0] == 1 and g.k[0] == 1 and g.p[0] == 0) and (
        channels == 1 and m == 1 or spreads_groups(g, x.code, channels, m))


cdef Tensor to_last(Tensor t):
    """A copy of ``t`` with channels last."""
    cdef Tensor moved = empty_last(t.code, t.nd, t.sizes)
    copy_into(moved, t)
    return moved


cdef void last_shape(Geometry* g, Tensor x, Tensor y, int64_t channels, LastArgs* arg) noexcept:
    cdef int64_t item = ITEMSIZE[x.code]
    arg.images, arg.c = x.sizes[0], x.sizes[1]
    arg.ih, arg.iw, arg.oh, arg.ow, arg.kh, arg.kw = g.i[1], g.i[2], g.o[1], g.o[2], g.k[1], g.k[2]
    arg.sh, arg.sw, arg.dh, arg.dw = g.s[1], g.s[2], abs(g.d[1]), abs(g.d[2])
    # Where the dilation is negative, the taps are reversed.
    arg.ph = g.p[1] + ((g.k[1] - 1) * -g.d[1] if g.d[1] < 0 else 0)
    arg.pw = g.p[2] + ((g.k[2] - 1) * -g.d[2] if g.d[2] < 0 else 0)
    arg.x_n, arg.x_h, arg.x_w = x.strides[0] * item, x.strides[3] * item, x.strides[4] * item
    arg.y_n, arg.y_h, arg.y_w = y.strides[0] * item, y.strides[3] * item, y.strides[4] * item
    arg.w_j = x.sizes[1] * ITEMSIZE[compute_code(x.code)]
    arg.w_t = channels * arg.w_j


cdef Tensor taps_first(Geometry* g, Tensor w):
    """Weights ``[group, m, c, tap]`` as ``[tap, c, group * m]``, reversed where the dilation is negative."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int64_t n, offset = 0, step = 1
    sizes[0], sizes[1], sizes[2], sizes[3] = g.k[1], g.k[2], w.sizes[2], w.sizes[0] * w.sizes[1]
    for n in range(2, 0, -1):
        strides[n - 1] = -step if g.d[n] < 0 else step
        offset += (g.k[n] - 1) * step if g.d[n] < 0 else 0
        step *= g.k[n]
    strides[2], strides[3] = g.taps, g.taps * w.sizes[2]
    cdef Tensor out = empty_tensor(w.code, 4, sizes)
    copy_into(out, alias_tensor(w, 4, sizes, strides, offset))
    return out


cdef Tensor depthwise_last(Convolution a):
    """:func:`depthwise` of images with channels last."""
    cdef LastArgs arg
    cdef Geometry* g = &a.g
    cdef Tensor x = a.x if a.x.strides[1] == 1 else to_last(a.x), w = taps_first(g, a.ordered())
    cdef int64_t tasks
    cdef double work = <double>a.y.count * g.taps * a.c
    cdef char* ptr[4]
    last_shape(g, x, a.y, a.c, &arg)
    arg.block = even(g.o[1], max(LAST_ROWS // (g.o[2] * x.sizes[1]), <int64_t>1))
    arg.bias = a.bias is not None
    tasks = a.images * ceil_div(g.o[1], arg.block)
    ptr[0], ptr[1], ptr[2], ptr[3] = (address_of(a.y), address_of(x), address_of(w), address_of(w) if a.bias is None
                                      else address_of(a.bias))
    launch_work(find_last(LAST, x.code, a.c), ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks, grain_of(work, tasks),
                work)


cdef Tensor depthwise_last_gradient(Convolution a):
    """``[part, channel, c, tap]``, a view; for 16-bit floats in float32."""
    cdef LastArgs arg
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef Geometry* g = &a.g
    cdef Tensor x = a.x, y = a.y
    cdef int64_t c = a.c, channels = x.sizes[1], parts, tasks
    cdef double work = <double>y.count * g.taps * c
    cdef char* ptr[3]
    last_shape(g, x, y, c, &arg)
    arg.block, arg.bias = even(a.images, 4), 0  # few numbers in one sum round better, and give the threads work
    parts = ceil_div(a.images, arg.block)
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, g.taps, c, channels
    cdef Tensor out = empty_tensor(compute_code(x.code), 4, sizes)
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(x), address_of(y)
    tasks = parts * ceil_div(channels, last_lanes(out.code))
    launch_work(find_last(LAST_WEIGHT, x.code, c), ptr, 3, <int64_t*>&arg, sizeof(arg) // 8, tasks,
                grain_of(work, tasks), work)
    sizes[1], sizes[2], sizes[3] = channels, c, g.taps
    strides[0], strides[1], strides[2], strides[3] = g.taps * c * channels, 1, channels, c * channels
    return alias_tensor(out, 4, sizes, strides, 0)


cdef int64_t last_lanes(int code) except -1:
    """Channels in a vector."""
    from ..kernels import target
    return max(<int64_t>(target.here().vector_bytes) // ITEMSIZE[code], <int64_t>1)
