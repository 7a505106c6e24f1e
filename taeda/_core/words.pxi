# bfloat16 convolution by words, pairs of numbers that one instruction multiplies and sums (kernels/conv_windows.py).

cdef enum:
    LEAST_OUTPUTS = 2   # of a group
    FEW_PIXELS = 256
    # Turning images takes time by c + m, and saves by c * m, for gradients twice as much.
    TURN_FORWARD = 200
    TURN_BACK = 100


cdef bint has_words(int code):
    """Whether this machine multiplies words of ``code`` in vector registers."""
    return code == BF16 and short_engine(code) == "dot"


cdef bint fills_words(Geometry* g, int code, int64_t images, int64_t groups, int64_t c, int64_t m):
    """Whether windows of words serve ``m`` outputs from ``c`` channels: for few of them too, the others being casts."""
    return has_words(code) and not is_depthwise(c, m) and m >= LEAST_OUTPUTS and by_windows(
        g, images, groups, c, max(m, <int64_t>8))


cdef bint short_points(Geometry* g, int code, int64_t channels, int64_t m):
    """Whether this is a 1x1 convolution, of some stride, that a product of bfloat16 does best."""
    if g.taps != 1 or g.p[0] or g.p[1] or g.p[2] or (g.o[2] == 1 and g.pixels > 1):
        return False
    return code == BF16 and short_engine(code) != "" and channels >= 16 and m >= 16 and channels * m * g.pixels >= 1 << 15


cdef int points_product(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups, bint turn) except -1:
    """:func:`as_product`; bfloat16 images of few pixels are turned to channels last, where all of them are one product."""
    cdef int64_t c = x.sizes[1] // groups, m = out.sizes[1] // groups
    cdef Tensor whole
    if x.code != BF16 or g.pixels == 1 or g.pixels > FEW_PIXELS or channels_last(out) or c * m < (
            TURN_BACK if turn else TURN_FORWARD) * (c + m):
        return as_product(g, x, w, bias, out, groups, turn)
    whole = empty_last(out.code, 5, out.sizes)
    as_product(g, x if channels_last(x) else to_last(x), w, bias, whole, groups, turn)
    copy_into(out, whole)
    return 0


cdef bint short_depthwise(Geometry* g, int code, int64_t groups, int64_t channels, int64_t m) noexcept:
    """Whether images of 16-bit floats go to the kernels for channels last as they are: turned there if need be."""
    return ITEMSIZE[code] == 2 and compute_code(code) == F32 and channels == 1 and m == 1 and groups >= 16 and (
        g.i[0] == 1 and g.o[0] == 1 and g.k[0] == 1 and g.p[0] == 0)


cdef bint dense_last(Tensor x) noexcept:
    """Whether images have channels last, and nothing lies between pixels or images."""
    return channels_last(x) and x.strides[4] == x.sizes[1] and (
        x.sizes[0] == 1 or x.strides[0] == x.sizes[1] * x.sizes[2] * x.sizes[3] * x.sizes[4])


cdef int pair(char* to, Tensor x, int64_t groups, int64_t rows, int64_t size) except -1:
    """Rows of ``size`` items in memory, two and two of the ``rows`` of each group as words."""
    cdef int64_t arg[5]
    cdef char* ptr[2]
    ptr[0], ptr[1] = to, x.ptr
    arg[0], arg[1], arg[2], arg[3], arg[4] = size, rows, 2 * rows * size, 2 * size, ceil_div(size, PIECE)
    run(find_windows(_pair_rows, x.code, "pair_rows"), ptr, arg, groups * ceil_div(rows, 2) * arg[4],
        ceil_div(1 << 15, min(size, <int64_t>PIECE)), <double>x.count)
    return 0


cdef Tensor channel_words(Tensor x, int64_t groups):
    """Pairs of channels of each group side by side, as float32 ``[n, groups * words, ...]``: where they lie so, a view."""
    cdef int64_t c = x.sizes[1] // groups, n
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef Tensor out
    memcpy(sizes, x.sizes, 5 * 8)
    sizes[1] = groups * ceil_div(c, 2)
    if channels_last(x) and c % 2 == 0 and <size_t>x.ptr % 4 == 0 and x.strides[4] % 2 == 0 and x.strides[0] % 2 == 0:
        for n in range(5):
            strides[n] = 1 if n == 1 else x.strides[n] // 2
        out = alias_tensor(x, 5, sizes, strides, 0)
        out.code = F32
        return out
    x = contiguous_tensor(x)
    out = empty_tensor(F32, 5, sizes)
    pair(out.ptr, x, x.sizes[0] * groups, c, x.sizes[2] * x.sizes[3] * x.sizes[4])
    return out


cdef Tensor image_words(Tensor x):
    """Pairs of images as one of words, ``[words, channels, ...]``, in the format of ``x``."""
    cdef int64_t sizes[5]
    if not dense_last(x):
        x = contiguous_tensor(x)
    memcpy(sizes, x.sizes, 5 * 8)
    sizes[0] = ceil_div(x.sizes[0], 2)
    cdef Tensor out = empty_last(F32, 5, sizes) if channels_last(x) else empty_tensor(F32, 5, sizes)
    pair(out.ptr, x, 1, x.sizes[0], x.count // x.sizes[0])
    return out


cdef Tensor word_outputs(Geometry* g, int nd, Tensor input, Tensor weight, Tensor bias, int64_t groups):
    """:func:`outputs` of 16-bit floats without casting what is convolved; None where that would not pay."""
    cdef Geometry steady = g[0]
    cdef int code = input.code
    cdef Tensor x = spatial(input, 2), w = grouped(weight, groups), out, packed
    cdef int64_t channels = w.sizes[2], m = w.sizes[1], k = channels * g.taps
    cdef int64_t sizes[5]
    cdef Packed places
    cdef bint whole = short_engine(code) != "" and whole_kernel(g, channels, m), points = short_points(g, code, channels, m)
    cdef bint deep = short_depthwise(g, code, groups, channels, m)
    if k == 0 or x.sizes[0] * g.pixels == 0:
        return None
    if not (whole or points or deep or fills_words(g, code, x.sizes[0], groups, channels, m)):
        return None
    if bias is not None:
        bias = contiguous_tensor(cast(bias, code if whole or points else F32))
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = x.sizes[0], weight.sizes[0], g.o[0], g.o[1], g.o[2]
    out = empty_last(code, 5, sizes) if is_last(input) or is_last(weight) else empty_tensor(code, 5, sizes)
    if deep:
        w = cast(w, F32)
        if out.strides[1] == 1:
            depthwise_last(g, x if x.strides[1] == 1 else to_last(x), w, bias, out)
        else:
            depthwise_turned(g, x, w, bias, out)
    elif whole:
        whole_product(x, w, bias, out, groups)
    elif points:
        if strided_points(g, channels, m):
            x = every_pixel(&steady, x)
        if not pointwise(&steady, x, out, channels):
            x = contiguous_tensor(x)
        points_product(&steady, x, w, bias, out, groups, False)
    else:
        x = channel_words(x, groups)
        steady.s[0] = steady.s[1] = steady.s[2] = 1  # all taps meet every output
        packed = packed_weights(code, w.ptr, k, g.taps, m * k, groups, m, channels, &steady, g.d[2] < 0,
                                is_planar(x, x.sizes[1] // groups), &places)
        convolve_windows(g, x, packed.ptr, places.group, bias, out, groups)
    return back(out, code, nd)


cdef bint words_back(Geometry* g, Tensor grad, int64_t groups, int64_t m, int64_t c):
    """Whether the input's gradient takes words, pairs of the ``m`` output channels of a group."""
    return g.s[0] * g.s[1] * g.s[2] <= PHASES and fills_words(g, grad.code, grad.sizes[0], groups, m, c)


cdef Tensor word_weights(Geometry* g, Tensor x, Tensor y, int64_t groups):
    """:func:`weight_gradient` of 16-bit floats as they are, in float32; None where that would not pay."""
    cdef int64_t channels = x.sizes[1] // groups, m = y.sizes[1] // groups
    if x.count == 0 or y.count == 0:
        return None
    if short_depthwise(g, x.code, groups, channels, m):
        return depthwise_last_gradient(g, x if x.strides[1] == 1 else to_last(x), y if y.strides[1] == 1 else to_last(y))
    if whole_kernel(g, channels, m) and short_engine(x.code) != "":
        return whole_weights(x, y, groups)
    # An image without another would be multiplied by zeros.
    if x.sizes[0] < 2 or not fills_words(g, x.code, x.sizes[0], groups, channels, m):
        return None
    if strided_points(g, channels, m):
        x = every_pixel(g, x)
    return windows_gradient(g, image_words(x), image_words(y), groups, True)
