# Convolutions on a device that computes them by tiles, with the sums of the kernels for one lane.

cdef enum:
    MOST_PLACE = 1 << 30       # places that kernels count with 32 bits
    MANY_TILES = 128           # so many large ones keep a device busy

cdef uint64_t CONV_TILES = new_owner("conv.convolve_tiles")
cdef bint[MOST_DEVICES] has_tiles   # by number of the device

cdef struct Tiled:             # what a launch is given
    ProductArgs p
    int64_t down, across       # tiles of a matrix of the result
    TileArgs t


def take_tiles(int number):
    """Convolutions of a device that has kernels for their tiles."""
    has_tiles[number] = True


cdef bint by_tiles(Geometry* g, Tensor x, int64_t images, int64_t k) noexcept:
    """Whether this thread's place computes a convolution by tiles, of which ``k`` numbers are summed."""
    cdef int64_t n, most = max(k, images * g.pixels)
    if not elsewhere or not has_tiles[here()] or x.code != F32 and x.code != F16 and x.code != BF16:
        return False
    for n in range(3):
        most = max(most, max(g.i[n], g.o[n] * g.s[n] + abs(g.p[n]) + g.k[n] * abs(g.d[n])))
        if max(g.s[n], max(abs(g.p[n]), abs(g.d[n]))) >= MOST_PLACE:
            return False
    return 0 < most < MOST_PLACE and x.count > 0


cdef inline bint aligned(int64_t bits) noexcept:
    return bits % 16 == 0


cdef void describe_tiles(Geometry* g, Tensor x, Tiled* arg) noexcept:
    memset(arg, 0, sizeof(Tiled))
    describe(g, x, <ConvGeometry*>&arg.t)
    arg.t.pixels = g.pixels


cdef int64_t dims_of(Geometry* g) noexcept:
    """How many dimensions of images a kernel goes through."""
    if g.i[0] > 1 or g.o[0] > 1 or g.k[0] > 1 or g.p[0] != 0:
        return 3
    return 2 if g.i[1] > 1 or g.o[1] > 1 or g.k[1] > 1 or g.p[1] != 0 else 1


cdef int launch_tiles(Geometry* g, int code, Tiled* arg, char** ptr, int64_t batch, int64_t form) except -1:
    """``form``: bits that say what is read and written by 16 bytes (A, B, C), whether there are several blocks of k,
    whether tiles are large, whether it is the weights' gradient, whether there is a bias; then the dimensions."""
    cdef int64_t height = 64 if form & 16 else 32
    cdef kernel_t fn
    arg.down, arg.across = ceil_div(arg.p.m, height), ceil_div(arg.p.n, 2 * height)
    form |= dims_of(g) << 7
    fn = known(CONV_TILES, form << 8 | code)
    if fn == NULL:
        fn = build(CONV_TILES, form << 8 | code, (DTYPE_NAMES[code], form))
    launch(fn, ptr, 4, <int64_t*>arg, sizeof(Tiled) // 8, arg.down * arg.across * batch, 1, False)
    return 0


cdef int convolve_tiles(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t depth) except -1:
    """:func:`convolve_unfolded` by tiles, with blocks of ``depth``: weights by the pixels of all images."""
    cdef Tiled arg
    cdef char* ptr[4]
    cdef int64_t groups = w.sizes[0], m = w.sizes[1], k = w.sizes[2] * g.taps, item = ITEMSIZE[x.code], form
    cdef int64_t images = x.sizes[0]
    describe_tiles(g, x, &arg)
    if item == 2:
        depth = k
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(w), address_of(x)
    ptr[3] = ptr[0] if bias is None else address_of(bias)
    arg.p.m, arg.p.n, arg.p.k, arg.p.kc, arg.p.n1 = m, images * g.pixels, k, depth, groups
    arg.p.a_m, arg.p.a_k, arg.p.a_b1 = k * item, item, m * k * item
    arg.p.b_b0, arg.p.b_b1 = x.strides[0] * item, x.strides[1] * w.sizes[2] * item
    arg.p.c_m, arg.p.c_n = g.pixels * item, item
    arg.p.c_b0, arg.p.c_b1 = out.strides[0] * item, m * g.pixels * item
    arg.p.d_m, arg.p.d_b1 = item, m * item
    arg.t.segment, arg.t.x_next = depth, depth // g.taps * arg.t.x_c
    form = aligned(<int64_t>ptr[1] | k * item | depth * item)
    form |= aligned(<int64_t>ptr[0] | g.pixels * item | arg.p.c_b0) << 2
    form |= (depth < k) << 3 | (bias is not None) << 6
    if ceil_div(m, 64) * ceil_div(arg.p.n, 128) * groups >= MANY_TILES and (
            item == 2 or form & 5 == 5 and (depth == k or dims_of(g) < 3)):  # others need more registers than there are
        form |= 16
    return launch_tiles(g, x.code, &arg, ptr, groups, form)


cdef Tensor tiles_gradient(Geometry* g, Tensor x, Tensor y, int64_t groups, int64_t parts, int64_t run, int64_t depth):
    """:func:`unfolded_gradient` by tiles: ``parts`` of ``run`` images, whose pixels are summed in blocks of ``depth``.
    Sums of numbers of 16 bits have 32."""
    cdef Tiled arg
    cdef char* ptr[4]
    cdef int64_t item = ITEMSIZE[x.code], channels = x.sizes[1] // groups, m = y.sizes[1] // groups, to = max(item, 4)
    cdef int64_t sizes[4]
    cdef int64_t form = 32
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, groups, channels * g.taps, m
    cdef Tensor out = empty_tensor(F32 if item == 2 else x.code, 4, sizes)
    describe_tiles(g, x, &arg)
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(x), address_of(y)
    ptr[3] = ptr[0]
    arg.p.m, arg.p.n, arg.p.k, arg.p.kc, arg.p.n1 = channels * g.taps, m, x.sizes[0] * g.pixels, depth, groups
    arg.p.a_b0, arg.p.a_b1 = run * x.strides[0] * item, x.strides[1] * channels * item
    arg.p.b_n, arg.p.b_k = g.pixels * item, item
    arg.p.b_b0, arg.p.b_b1 = run * y.strides[0] * item, m * g.pixels * item
    arg.p.c_m, arg.p.c_n = m * to, to
    arg.p.c_b0, arg.p.c_b1 = out.strides[0] * to, out.strides[1] * to
    arg.t.segment, arg.t.most = g.pixels, run * g.pixels
    arg.t.x_next, arg.t.y_next = x.strides[0] * item, y.strides[0] * item
    form |= aligned(<int64_t>ptr[2] | g.pixels * item) << 1
    form |= (item == 4 and aligned(<int64_t>ptr[0] | m * item)) << 2
    form |= (item == 4 and (run > 1 or depth < g.pixels)) << 3
    launch_tiles(g, x.code, &arg, ptr, parts * groups, form)
    return transposed_back(out)
