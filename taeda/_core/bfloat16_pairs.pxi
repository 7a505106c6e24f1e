# bfloat16 convolution by pairs of numbers, which one instruction multiplies and sums (kernels/conv_windows.py).

cdef enum:
    LEAST_OUTPUTS = 2   # outputs in a group
    SHORT_GROUP = 4     # channels of a group up to which pairs leave most of a register empty


cdef bint has_pairs(int code):
    """Whether this machine multiplies pairs of ``code`` in vector registers."""
    return code == BF16 and short_engine(code) == "dot"


cdef bint fills_pairs(Geometry* g, int code, int64_t images, int64_t groups, int64_t c, int64_t m):
    """Whether windows of pairs pay for ``m`` outputs from ``c`` channels: also for few, as the alternatives cast."""
    return has_pairs(code) and not is_depthwise(c, m) and m >= LEAST_OUTPUTS and by_windows(
        g, images, groups, c, max(m, <int64_t>8))


cdef bint short_points(Geometry* g, int code, int64_t channels, int64_t m):
    """Whether this is a 1x1 convolution, of any stride, for which a product of bfloat16 is fastest."""
    if g.taps != 1 or g.p[0] or g.p[1] or g.p[2] or (g.o[2] == 1 and g.pixels > 1):
        return False
    return (code == BF16 and short_engine(code) != "" and channels >= 16 and m >= 16
            and channels * m * g.pixels >= 1 << 15)


cdef bint short_depthwise(Geometry* g, int code, int64_t groups, int64_t channels, int64_t m) except *:
    """Whether the depthwise kernels read 16-bit images in place: one channel per group, or small groups."""
    if ITEMSIZE[code] != 2 or compute_code(code) != F32 or groups * channels < 16:
        return False
    return (channels == 1 and m == 1 or spreads_groups(g, code, channels, m)) and (
        g.i[0] == 1 and g.o[0] == 1 and g.k[0] == 1 and g.p[0] == 0)


cdef bint dense_last(Tensor x) noexcept:
    """Whether images have channels last, and pixels and images are contiguous."""
    return channels_last(x) and x.strides[4] == x.sizes[1] and (
        x.sizes[0] == 1 or x.strides[0] == x.sizes[1] * x.sizes[2] * x.sizes[3] * x.sizes[4])


cdef int pair(char* to, Tensor x, int64_t groups, int64_t rows, int64_t size) except -1:
    """Rows of ``size`` contiguous items; each two of the ``rows`` of a group are joined as pairs."""
    cdef PairArgs arg
    cdef char* ptr[2]
    ptr[0], ptr[1] = to, address_of(x)
    arg.size, arg.rows, arg.x_o, arg.x_r, arg.pieces = size, rows, 2 * rows * size, 2 * size, ceil_div(size, PIECE)
    launch_work(find_windows(PAIR_ROWS, x.code), ptr, 2, <int64_t*>&arg, sizeof(arg) // 8,
                groups * ceil_div(rows, 2) * arg.pieces, ceil_div(1 << 15, min(size, <int64_t>PIECE)), <double>x.count)
    return 0


cdef Tensor channel_pairs(Tensor x, int64_t groups):
    """Pairs of neighbouring channels of each group, as float32 ``[n, groups * pairs, ...]``; a view if possible."""
    cdef int64_t c = x.sizes[1] // groups, n
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef Tensor out
    memcpy(sizes, x.sizes, 5 * 8)
    sizes[1] = groups * ceil_div(c, 2)
    if (channels_last(x) and c % 2 == 0 and <size_t>address_of(x) % 4 == 0 and x.strides[4] % 2 == 0
        and x.strides[0] % 2 == 0):
        for n in range(5):
            strides[n] = 1 if n == 1 else x.strides[n] // 2
        out = alias_tensor(x, 5, sizes, strides, 0)
        out.code = F32
        return out
    x = contiguous_tensor(x)
    out = empty_tensor(F32, 5, sizes)
    pair(address_of(out), x, x.sizes[0] * groups, c, x.sizes[2] * x.sizes[3] * x.sizes[4])
    return out


cdef Tensor image_pairs(Tensor x):
    """Images joined in pairs, ``[pairs, channels, ...]``, in the format of ``x``."""
    cdef int64_t sizes[5]
    if not dense_last(x):
        x = contiguous_tensor(x)
    memcpy(sizes, x.sizes, 5 * 8)
    sizes[0] = ceil_div(x.sizes[0], 2)
    cdef Tensor out = empty_last(F32, 5, sizes) if channels_last(x) else empty_tensor(F32, 5, sizes)
    pair(address_of(out), x, 1, x.sizes[0], x.count // x.sizes[0])
    return out
