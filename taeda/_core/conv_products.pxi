# Convolutions that are matrix products of operands in place: 1x1 kernels, and kernels as large as the image.

cdef enum:
    FEW_PIXELS = 256
    # Transposing images costs time by c + m and saves time by c * m, twice as much for gradients.
    TRANSPOSE_FORWARD = 200
    TRANSPOSE_BACK = 100
    SPREAD_ITEMS = 1 << 19


cdef bint even_pixels(Tensor x) noexcept:
    """Whether the pixels of an image are evenly spaced."""
    return (x.sizes[3] == 1 or x.strides[3] == x.sizes[4] * x.strides[4]) and (
        x.sizes[2] == 1 or x.strides[2] == x.sizes[3] * x.sizes[4] * x.strides[4])


cdef bint pointwise(Geometry* g, Tensor x, Tensor out, int64_t channels) noexcept:
    """Whether the convolution is a matrix product of operands in place."""
    if not reads_points(g) or channels == 1 or x.sizes[4] == 1 and g.pixels > 1:
        return False
    if not even_pixels(x) or not even_pixels(out):
        return False
    return (x.strides[4] == 1 or x.strides[1] == 1) and (out.strides[4] == 1 or out.strides[1] == 1)


cdef bint wastes_lanes(Geometry* g, Tensor x, Tensor out, int64_t m, int64_t c) except -1:
    """Whether one image's pixels leave vectors partly empty, all images' pixels would fill them, and copying pays."""
    if x.sizes[0] == 1 or x.code == BF16 or channels_last(x) or channels_last(out) or m * c < 128 * (m + c):
        return False
    cdef int64_t lanes = last_lanes(x.code)
    return 8 * g.pixels < 7 * lanes * ceil_div(g.pixels, lanes)


cdef Tensor image_rows(Tensor x, int64_t images):
    """A view ``[c, n, pixels]`` of images with contiguous pixels, also if they are in one row."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int64_t pixels = x.sizes[0] * x.sizes[2] * x.sizes[3] * x.sizes[4] // images
    sizes[0], sizes[1], sizes[2] = x.sizes[1], images, pixels
    strides[0], strides[1], strides[2] = x.strides[1], x.strides[0] if x.sizes[0] > 1 else pixels, 1
    return alias_tensor(x, 3, sizes, strides, 0)


cdef int pixels_together(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups,
                         bint transposed) except -1:
    """:func:`as_product` with the pixels of all images in one row, as if there were one image."""
    cdef Geometry row = g[0]
    cdef int64_t sizes[5]
    cdef int64_t images = x.sizes[0]
    row.pixels *= images
    row.i[0] = row.o[0] = 1
    row.i[1] = row.o[1] = images
    row.i[2] = row.o[2] = g.pixels
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = 1, x.sizes[1], 1, images, g.pixels
    cdef Tensor all_x = empty_tensor(x.code, 5, sizes)
    sizes[1] = out.sizes[1]
    cdef Tensor all_out = empty_tensor(out.code, 5, sizes)
    copy_into(image_rows(all_x, images), image_rows(x, images))
    as_product(&row, all_x, w, bias, all_out, groups, transposed)
    copy_into(image_rows(out, images), image_rows(all_out, images))
    return 0


cdef int as_product(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups,
                    bint transposed=False) except -1:
    """Weights by pixels, or pixels by weights if the result has channels last; ``transposed``: the weights are."""
    cdef Product p
    cdef Matrix pixels, weights
    cdef int64_t item = ITEMSIZE[x.code], images = x.sizes[0], pixel
    cdef int64_t m = w.sizes[2 if transposed else 1], c = w.sizes[1 if transposed else 2]
    cdef int64_t w_m = item if transposed else c * item, w_c = m * item if transposed else item
    if wastes_lanes(g, x, out, m, c):
        return pixels_together(g, x, w, bias, out, groups, transposed)
    pixel = x.strides[4] * item
    memset(&p, 0, sizeof(Product))
    memset(&pixels, 0, sizeof(Matrix))
    memset(&weights, 0, sizeof(Matrix))
    p.code, p.out, p.k, p.n1 = x.code, out.code, c, groups
    weights.ptr, weights.inner = address_of(w), m * c * item
    pixels.ptr, pixels.outer, pixels.inner = address_of(x), x.strides[0] * item, x.strides[1] * c * item
    p.c.ptr, p.c.outer, p.c.inner, p.c.columns = address_of(out), out.strides[0] * item, out.strides[1] * m * item, item
    if channels_last(out):
        p.m, p.n, p.n0 = g.pixels, m, images
        if pixels.outer == g.pixels * pixel and p.c.outer == g.pixels * out.strides[4] * item:
            p.m, p.n0 = p.m * images, 1
        weights.rows, weights.columns = w_c, w_m
        pixels.rows, pixels.columns = pixel, x.strides[1] * item
        p.a, p.b, p.c.rows = pixels, weights, out.strides[4] * item
    else:
        p.m, p.n, p.n0 = m, g.pixels, images
        weights.rows, weights.columns = w_m, w_c
        pixels.rows, pixels.columns = x.strides[1] * item, pixel
        p.a, p.b, p.c.rows = weights, pixels, g.pixels * item
    p.d = p.c
    if bias is not None:
        p.init, p.d.ptr, p.d.outer, p.d.inner = 1, address_of(bias), 0, m * item
        p.d.columns = item if channels_last(out) else 0
        p.d.rows = item - p.d.columns
    return multiply(&p)


cdef Tensor points_product(Convolution a):
    """:func:`as_product`; bfloat16 images of few pixels are transposed to channels last, where all of them are one
    product."""
    cdef bint transposed = a.w.transposed and a.w.whole.taps == 1
    cdef Tensor x = a.x, out = a.y, w = a.w.given if transposed else a.ordered(), whole = out
    if x.code == BF16 and 1 < a.g.pixels <= FEW_PIXELS and not channels_last(out) and a.c * a.m >= (
            TRANSPOSE_BACK if transposed else TRANSPOSE_FORWARD) * (a.c + a.m):
        whole, x = empty_last(out.code, 5, out.sizes), x if channels_last(x) else to_last(x)
    as_product(&a.g, x, w, a.bias, whole, a.groups, transposed)
    if whole is not out:
        copy_into(out, whole)


# ---- kernels as large as the image -----------------------------------------------------------------------------------

cdef bint whole_kernel(Geometry* g, int64_t channels, int64_t m) noexcept:
    """Whether there is one output position whose window is the whole image: a linear layer."""
    cdef int n
    if is_depthwise(channels, m):
        return False
    for n in range(3):
        if g.o[n] != 1 or g.p[n] != 0 or g.k[n] != g.i[n] or g.k[n] > 1 and g.d[n] != 1:
            return False
    return g.taps > 1


cdef Matrix as_rows(Tensor x, int64_t groups) except *:
    """A contiguous tensor ``[n, groups * ...]`` as one matrix per group, with ``n`` rows."""
    cdef Matrix rows
    cdef int64_t item = ITEMSIZE[x.code]
    rows.ptr, rows.outer, rows.columns = address_of(x), 0, item
    rows.rows = x.count // x.sizes[0] * item
    rows.inner = rows.rows // groups
    return rows


cdef Matrix transposed_matrix(Matrix a) noexcept:
    cdef Matrix b = a
    b.rows, b.columns = a.columns, a.rows
    return b


cdef Product no_product(int code, int64_t groups) noexcept:
    cdef Product p
    memset(&p, 0, sizeof(Product))
    p.code, p.out, p.n0, p.n1 = code, code, 1, groups
    return p


cdef Tensor whole_product(Convolution a):
    """Images by weights; the result has one pixel."""
    cdef Tensor x = contiguous_tensor(a.x), w = a.w.given
    cdef Product p = no_product(x.code, a.groups)
    cdef int64_t item = ITEMSIZE[x.code], k = w.sizes[2] * w.sizes[3]
    p.m, p.n, p.k = x.sizes[0], w.sizes[1], k
    p.a = as_rows(x, a.groups)
    p.b.ptr, p.b.rows, p.b.columns, p.b.inner = address_of(w), item, k * item, p.n * k * item
    p.c = as_rows(a.y, a.groups)
    p.d = p.c
    if a.bias is not None:
        p.init, p.d.ptr, p.d.rows = 1, address_of(a.bias), 0
    multiply(&p)


cdef Tensor whole_gradient(Convolution a):
    """The input's gradient, from one pixel."""
    cdef Tensor grad = contiguous_tensor(a.x), w = a.w.given
    cdef Product p = no_product(grad.code, a.groups)
    cdef int64_t item = ITEMSIZE[grad.code], m = w.sizes[1], k = w.sizes[2] * w.sizes[3]
    p.m, p.n, p.k = grad.sizes[0], k, m
    p.a = as_rows(grad, a.groups)
    p.b.ptr, p.b.rows, p.b.columns, p.b.inner = address_of(w), k * item, item, m * k * item
    p.c = as_rows(a.y, a.groups)
    p.d = p.c
    if a.bias is not None:
        fill(a.y, a.bias)
        p.init = 1
    multiply(&p)


cdef Tensor whole_weights(Convolution a):
    """The weights' gradient ``[1, group * m, c * taps]``."""
    cdef Tensor x = contiguous_tensor(a.x), y = contiguous_tensor(a.y)
    cdef Product p = no_product(x.code, a.groups)
    cdef int64_t sizes[3]
    sizes[0], sizes[1], sizes[2] = 1, y.sizes[1], a.c * a.g.taps
    cdef Tensor out = empty_tensor(x.code, 3, sizes)
    p.m, p.n, p.k = a.m, sizes[2], x.sizes[0]
    p.a = transposed_matrix(as_rows(y, a.groups))
    p.b = as_rows(x, a.groups)
    p.c.ptr, p.c.rows, p.c.columns = address_of(out), sizes[2] * ITEMSIZE[x.code], ITEMSIZE[x.code]
    p.c.inner = p.m * p.c.rows
    p.d = p.c
    multiply(&p)
    return out


# ---- 1x1 with a stride -----------------------------------------------------------------------------------------------

cdef bint strided_points(Geometry* g, int64_t channels, int64_t m) noexcept:
    """Whether this is a 1x1 convolution with a stride, of more than one channel."""
    return g.taps == 1 and g.s[0] * g.s[1] * g.s[2] > 1 and g.p[0] == g.p[1] == g.p[2] == 0 and channels > 1 and m > 1


cdef Tensor every_pixel(Geometry* g, Tensor x):
    """A copy of the pixels that :func:`strided_points` reads, in the format of ``x``; ``g`` then has stride 1."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n
    cdef bint last = channels_last(x)
    sizes[0], sizes[1], strides[0], strides[1] = x.sizes[0], x.sizes[1], x.strides[0], x.strides[1]
    for n in range(3):
        sizes[2 + n], strides[2 + n] = g.o[n], x.strides[2 + n] * g.s[n]
        g.i[n], g.s[n] = g.o[n], 1
    x = alias_tensor(x, 5, sizes, strides, 0)
    cdef Tensor out = empty_last(x.code, 5, sizes) if last else empty_tensor(x.code, 5, sizes)
    copy_into(out, x)
    return out


# ---- windows that do not overlap -------------------------------------------------------------------------------------

cdef bint meets_once(Geometry* g) noexcept:
    """Whether every input position is in the window of exactly one output."""
    cdef int n
    for n in range(3):
        if g.k[n] != g.s[n] or g.p[n] != 0 or g.i[n] != g.o[n] * g.s[n] or (g.k[n] > 1 and g.d[n] != 1):
            return False
    return g.taps > 1


cdef Tensor every_tap(Tensor bias, int64_t taps):
    """``bias`` with each number repeated ``taps`` times."""
    cdef int64_t sizes[2]
    cdef int64_t strides[2]
    sizes[0], sizes[1], strides[0], strides[1] = bias.sizes[0], taps, bias.strides[0], 0
    cdef Tensor out = empty_tensor(bias.code, 2, sizes)
    copy_into(out, alias_tensor(bias, 2, sizes, strides, 0))
    sizes[0] *= taps
    strides[0] = 1
    return alias_tensor(out, 1, sizes, strides, 0)


cdef Tensor spread_product(Convolution a):
    """The input's gradient if :func:`meets_once`: all taps of all channels by pixels, then moved to their places.

    A part of the pixels at a time, whose products stay in the cache.
    """
    cdef Geometry g
    cdef Geometry* whole = &a.g
    cdef Tensor grad = a.x, w = a.w.given, bias = a.bias, out = a.y
    cdef int64_t channels = out.sizes[1], n, d, most, at, start
    cdef int64_t sizes[8]
    cdef int64_t strides[8]
    cdef int64_t from_sizes[5]
    cdef int64_t count[5]
    cdef Tensor taps, part, place
    memcpy(sizes, w.sizes, 3 * 8)
    sizes[2], sizes[3] = w.sizes[2] * w.sizes[3], 1
    memcpy(strides, w.strides, 3 * 8)
    strides[2] = strides[3] = 1
    w = alias_tensor(w, 4, sizes, strides, 0)
    if not even_pixels(grad) or grad.strides[4] != 1:
        grad = contiguous_tensor(grad)
    if bias is not None:
        bias = every_tap(bias, whole.taps)
    memcpy(count, grad.sizes, 5 * 8)
    # Whole images, else parts of the first of their dimensions that can be cut.
    d, most = 0, max(SPREAD_ITEMS // (channels * whole.taps * whole.pixels), <int64_t>1)
    if channels * whole.taps * whole.pixels > SPREAD_ITEMS:
        d = 2 if grad.sizes[2] > 1 else 3 if grad.sizes[3] > 1 else 4
        most = max(SPREAD_ITEMS // (channels * whole.taps * (whole.pixels // grad.sizes[d])), <int64_t>1)
    most = even(grad.sizes[d], most)
    for at in range(0, grad.sizes[0], most if d == 0 else 1):
        for start in range(0, 1 if d == 0 else grad.sizes[d], most):
            count[0] = min(most, grad.sizes[0] - at) if d == 0 else 1
            if d:
                count[d] = min(most, grad.sizes[d] - start)
            memset(&g, 0, sizeof(Geometry))
            g.taps = g.pixels = 1
            for n in range(3):
                g.o[n] = g.i[n] = count[2 + n]
                g.k[n] = g.s[n] = g.d[n] = 1
                g.pixels *= g.o[n]
            memcpy(from_sizes, count, 5 * 8)
            from_sizes[1] = channels * whole.taps
            taps = empty_tensor(out.code, 5, from_sizes)
            part = alias_tensor(grad, 5, count, grad.strides,
                                at * grad.strides[0] + (start * grad.strides[d] if d else 0))
            as_product(&g, part, w, bias, taps, a.groups, True)
            spread_taps(whole, &g, taps, out, at, d, start)


cdef int spread_taps(Geometry* whole, Geometry* g, Tensor taps, Tensor out, int64_t image, int64_t d,
                     int64_t start) except -1:
    """Move ``taps [n, (c, taps), pixels]`` of the pixels of ``g`` to their places in ``out``, from ``start`` of
    dimension ``d`` on."""
    cdef int64_t sizes[8]
    cdef int64_t to[8]
    cdef int64_t source[8]
    cdef int64_t n, tap = g.pixels, pixel = 1
    sizes[0], sizes[1] = taps.sizes[0], out.sizes[1]
    to[0], to[1] = out.strides[0], out.strides[1]
    source[0], source[1] = taps.strides[0], whole.taps * g.pixels
    for n in range(2, -1, -1):  # a position is the output's position, then the tap
        sizes[2 + 2 * n], sizes[3 + 2 * n] = g.o[n], whole.k[n]
        to[2 + 2 * n], to[3 + 2 * n] = out.strides[2 + n] * whole.s[n], out.strides[2 + n]
        source[2 + 2 * n], source[3 + 2 * n] = pixel, tap
        pixel *= g.o[n]
        tap *= whole.k[n]
    cdef int64_t offset = image * out.strides[0] + (start * whole.s[d - 2] * out.strides[d] if d else 0)
    return copy_into(alias_tensor(out, 8, sizes, to, offset), alias_tensor(taps, 8, sizes, source, 0))
