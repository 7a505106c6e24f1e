# Convolutions that are products of matrices as they lie in memory: of single pixels, and of kernels as large as the image.

cdef enum:
    FEW_PIXELS = 256
    # Turning images takes time by c + m, and saves by c * m, for gradients twice as much.
    TURN_FORWARD = 200
    TURN_BACK = 100


cdef bint even_pixels(Tensor x) noexcept:
    """Whether the pixels of an image are all as far from each other."""
    return (x.sizes[3] == 1 or x.strides[3] == x.sizes[4] * x.strides[4]) and (
        x.sizes[2] == 1 or x.strides[2] == x.sizes[3] * x.sizes[4] * x.strides[4])


cdef bint pointwise(Geometry* g, Tensor x, Tensor out, int64_t channels) noexcept:
    """Whether the convolution is a product of matrices as they lie in memory: 1x1, without stride or padding."""
    cdef int n
    for n in range(3):
        if g.k[n] != 1 or g.s[n] != 1 or g.p[n] != 0 or g.o[n] != g.i[n]:
            return False
    if channels == 1 or x.sizes[4] == 1 and g.pixels > 1 or not even_pixels(x) or not even_pixels(out):
        return False
    return (x.strides[4] == 1 or x.strides[1] == 1) and (out.strides[4] == 1 or out.strides[1] == 1)


cdef bint wastes_lanes(Geometry* g, Tensor x, Tensor out, int64_t m, int64_t c) except -1:
    """Whether the pixels of one image leave registers empty that those of all images would fill, and copies are repaid."""
    if x.sizes[0] == 1 or x.code == BF16 or channels_last(x) or channels_last(out) or m * c < 128 * (m + c):
        return False
    cdef int64_t lanes = last_lanes(x.code)
    return 8 * g.pixels < 7 * lanes * ceil_div(g.pixels, lanes)


cdef Tensor image_rows(Tensor x, int64_t images):
    """A view ``[c, n, pixels]`` of images whose pixels follow one another, also where they are in one row."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int64_t pixels = x.sizes[0] * x.sizes[2] * x.sizes[3] * x.sizes[4] // images
    sizes[0], sizes[1], sizes[2] = x.sizes[1], images, pixels
    strides[0], strides[1], strides[2] = x.strides[1], x.strides[0] if x.sizes[0] > 1 else pixels, 1
    return alias_tensor(x, 3, sizes, strides, 0)


cdef int pixels_together(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups, bint turn) except -1:
    """:func:`as_product` with the pixels of all images in one row, as if there was one."""
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
    as_product(&row, all_x, w, bias, all_out, groups, turn)
    copy_into(image_rows(out, images), image_rows(all_out, images))
    return 0


cdef int as_product(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups, bint turn=False) except -1:
    """Weights by pixels, or pixels by weights where the result has channels last; ``turn`` transposes the weights."""
    cdef Product p
    cdef Matrix pixels, weights
    cdef int64_t item = ITEMSIZE[x.code], m = w.sizes[2 if turn else 1], c = w.sizes[1 if turn else 2], images = x.sizes[0], pixel
    cdef int64_t w_m = item if turn else c * item, w_c = m * item if turn else item
    if wastes_lanes(g, x, out, m, c):
        return pixels_together(g, x, w, bias, out, groups, turn)
    pixel = x.strides[4] * item
    memset(&p, 0, sizeof(Product))
    memset(&pixels, 0, sizeof(Matrix))
    memset(&weights, 0, sizeof(Matrix))
    p.code, p.out, p.k, p.n1 = x.code, out.code, c, groups
    weights.ptr, weights.inner = w.ptr, m * c * item
    pixels.ptr, pixels.outer, pixels.inner = x.ptr, x.strides[0] * item, x.strides[1] * c * item
    p.c.ptr, p.c.outer, p.c.inner, p.c.columns = out.ptr, out.strides[0] * item, out.strides[1] * m * item, item
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
        p.init, p.d.ptr, p.d.outer, p.d.inner = 1, bias.ptr, 0, m * item
        p.d.columns = item if channels_last(out) else 0
        p.d.rows = item - p.d.columns
    return multiply(&p)


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


# ---- kernels as large as the image --------------------------------------------------------------------------------------

cdef bint whole_kernel(Geometry* g, int64_t channels, int64_t m) noexcept:
    """Whether there is one output position, and its window is the whole image: a linear layer of it."""
    cdef int n
    if is_depthwise(channels, m):
        return False
    for n in range(3):
        if g.o[n] != 1 or g.p[n] != 0 or g.k[n] != g.i[n] or g.k[n] > 1 and g.d[n] != 1:
            return False
    return g.taps > 1


cdef Matrix as_rows(Tensor x, int64_t groups) noexcept:
    """A contiguous tensor ``[n, groups * ...]`` as a matrix for each group, with a row for each of ``n``."""
    cdef Matrix rows
    cdef int64_t item = ITEMSIZE[x.code]
    rows.ptr, rows.outer, rows.columns = x.ptr, 0, item
    rows.rows = x.count // x.sizes[0] * item
    rows.inner = rows.rows // groups
    return rows


cdef Matrix turned_matrix(Matrix a) noexcept:
    cdef Matrix b = a
    b.rows, b.columns = a.columns, a.rows
    return b


cdef Product no_product(int code, int64_t groups) noexcept:
    cdef Product p
    memset(&p, 0, sizeof(Product))
    p.code, p.out, p.n0, p.n1 = code, code, 1, groups
    return p


cdef int whole_product(Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """:func:`convolve` of a :func:`whole_kernel`: images by weights. ``out`` has one pixel."""
    x = contiguous_tensor(x)
    cdef Product p = no_product(x.code, groups)
    cdef int64_t item = ITEMSIZE[x.code], k = w.sizes[2] * w.sizes[3]
    p.m, p.n, p.k = x.sizes[0], w.sizes[1], k
    p.a = as_rows(x, groups)
    p.b.ptr, p.b.rows, p.b.columns, p.b.inner = w.ptr, item, k * item, p.n * k * item
    p.c = as_rows(out, groups)
    p.d = p.c
    if bias is not None:
        p.init, p.d.ptr, p.d.rows = 1, bias.ptr, 0
    return multiply(&p)


cdef int whole_gradient(Tensor grad, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """The input's gradient of a :func:`whole_kernel`, of one pixel: into ``out``, which is contiguous."""
    grad = contiguous_tensor(grad)
    cdef Product p = no_product(grad.code, groups)
    cdef int64_t item = ITEMSIZE[grad.code], m = w.sizes[1], k = w.sizes[2] * w.sizes[3]
    p.m, p.n, p.k = grad.sizes[0], k, m
    p.a = as_rows(grad, groups)
    p.b.ptr, p.b.rows, p.b.columns, p.b.inner = w.ptr, k * item, item, m * k * item
    p.c = as_rows(out, groups)
    p.d = p.c
    if bias is not None:
        fill(out, bias)
        p.init = 1
    return multiply(&p)


cdef Tensor whole_weights(Tensor x, Tensor y, int64_t groups):
    """The weights' gradient of a :func:`whole_kernel`: ``[1, group * m, c * taps]``."""
    x, y = contiguous_tensor(x), contiguous_tensor(y)
    cdef Product p = no_product(x.code, groups)
    cdef int64_t sizes[3]
    sizes[0], sizes[1], sizes[2] = 1, y.sizes[1], x.count // x.sizes[0] // groups
    cdef Tensor out = empty_tensor(x.code, 3, sizes)
    p.m, p.n, p.k = y.sizes[1] // groups, sizes[2], x.sizes[0]
    p.a = turned_matrix(as_rows(y, groups))
    p.b = as_rows(x, groups)
    p.c.ptr, p.c.rows, p.c.columns = out.ptr, sizes[2] * ITEMSIZE[x.code], ITEMSIZE[x.code]
    p.c.inner = p.m * p.c.rows
    p.d = p.c
    multiply(&p)
    return out


# ---- 1x1 with a stride --------------------------------------------------------------------------------------------------

cdef bint strided_points(Geometry* g, int64_t channels, int64_t m) noexcept:
    """Whether this is a 1x1 convolution of every so many pixels, of more than one channel."""
    return g.taps == 1 and g.s[0] * g.s[1] * g.s[2] > 1 and g.p[0] == g.p[1] == g.p[2] == 0 and channels > 1 and m > 1


cdef Tensor every_pixel(Geometry* g, Tensor x):
    """A copy of the pixels that :func:`strided_points` reads, in the format of ``x``; ``g`` is then without stride."""
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
