"""Launcher of convolutions: sizes, blocks and tasks. Three spatial dimensions cover one and two as well.

``forward``, ``input_gradient`` and ``weight_gradient`` take tensors of any strides. The gradient of the input with a stride
above one is done phase by phase: the input positions that meet the same taps form a convolution of stride one.
"""

from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from . cimport atomics
from .gemm cimport Blocks, Matrix, Product, blocks, cast, compute_code, grain_of, multiply, pack_left, packed_size, run, short_engine, tiles as tile_kernel
from .memory cimport allocate, release
from .pool cimport kernel_t
from .tensor cimport (
    BF16, BOOL, F32, F64, I16, I32, I64, ITEMSIZE, KIND, MAXDIM, NDTYPES, U8, Tensor, alias_tensor, contiguous_tensor, copy_into, empty_tensor,
)

from .pool import get_num_threads
from .tensor import DTYPE_NAMES

cdef enum:
    GEOMETRY = 22
    CONV_ARGS = 43
    INTERLEAVE_ARGS = 6
    WEIGHT_ARGS = 40
    PACKED = 2
    TASK = 1 << 19
    LARGE_WEIGHTS = 1 << 20   # bytes: half of a second-level cache

cdef kernel_t _conv[NDTYPES]
cdef kernel_t _weight[NDTYPES]
cdef kernel_t _interleave[NDTYPES]
cdef int64_t _unfold_rows, _unfold_pixels
cdef tuple NAMES = DTYPE_NAMES

cdef struct Geometry:    # three of each: output, input, kernel, stride, dilation, padding
    int64_t o[3]
    int64_t i[3]
    int64_t k[3]
    int64_t s[3]
    int64_t d[3]
    int64_t p[3]
    int64_t taps, pixels


cdef kernel_t find(kernel_t* table, int code, str name) except NULL:
    global _unfold_rows, _unfold_pixels
    from ..kernels import conv
    assert len(conv.CONV_ARGS) == CONV_ARGS and len(conv.WEIGHT_ARGS) == WEIGHT_ARGS
    assert len(conv.INTERLEAVE_ARGS) == INTERLEAVE_ARGS
    _unfold_rows, _unfold_pixels = conv.UNFOLD_ROWS, conv.UNFOLD_PIXELS
    cdef size_t address = getattr(conv, name)(NAMES[code])
    table[code] = <kernel_t>address
    return table[code]


cdef inline int64_t ceil_div(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline int64_t even(int64_t size, int64_t most) noexcept nogil:
    """The size of equal parts of ``size`` that are at most ``most``."""
    return size if size <= most else ceil_div(size, ceil_div(size, most))


cdef void describe(Geometry* g, Tensor x, int64_t* arg) noexcept:
    """The geometry's part of the arguments, for an input ``x`` of three spatial dimensions."""
    cdef int64_t item = ITEMSIZE[x.code]
    cdef int n
    for n in range(3):
        arg[n], arg[3 + n], arg[6 + n] = g.o[n], g.i[n], g.k[n]
        arg[9 + n], arg[12 + n], arg[15 + n] = g.s[n], g.d[n], g.p[n]
    for n in range(4):
        arg[18 + n] = x.strides[1 + n] * item


cdef Tensor spatial(Tensor t, int lead):
    """``t`` with ``lead`` leading dimensions and its spatial ones made three."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n, missing = 3 - (t.nd - lead)
    if missing == 0:
        return t
    for n in range(lead):
        sizes[n], strides[n] = t.sizes[n], t.strides[n]
    for n in range(missing):
        sizes[lead + n], strides[lead + n] = 1, 0
    for n in range(lead + missing, lead + 3):
        sizes[n], strides[n] = t.sizes[n - missing], t.strides[n - missing]
    return alias_tensor(t, lead + 3, sizes, strides, 0)


cdef int convolve(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """``out[n, g * m + i, pixel]`` from ``x`` and ``w[g, m, channels, taps]``, which is contiguous; ``bias[g * m]``."""
    cdef int code = x.code
    cdef int64_t item = ITEMSIZE[code], images = x.sizes[0], channels = w.sizes[2], m = w.sizes[1]
    cdef int64_t arg[CONV_ARGS]
    cdef int64_t k = channels * g.taps, size = 0, group, mc, nc, cc, tt, wanted, tiles, tasks
    cdef double work = <double>images * groups * m * k * g.pixels
    cdef Blocks b = blocks(code)
    cdef Geometry steady
    cdef Packed places
    cdef Tensor packed
    cdef char* ptr[5]
    cdef char* a
    cdef kernel_t fn
    a = w.ptr
    if out.count == 0:
        return 0
    if k == 0:
        return fill(out, bias)
    if whole_kernel(g, channels, m):
        return whole_product(x, w, bias, out, groups)
    if strided_points(g, channels, m):
        steady = g[0]
        x = every_pixel(&steady, x)
        return convolve(&steady, x, w, bias, out, groups)
    if pointwise(g, x, out, channels):
        return as_product(g, x, w, bias, out, groups)
    if is_last_depthwise(g, x, out, channels, m):
        return depthwise_last(g, x, w, bias, out)
    if turns_last(g, x, channels, m, is_wide(g)):
        return depthwise_turned(g, x, w, bias, out)
    if not by_windows(g, images, groups, channels, m) or is_winograd(g, code, images, groups, channels, m):
        if channels_last(x):
            x = contiguous_tensor(x)
        if channels_last(out):
            return turned(g, x, w, bias, out, groups)
    if is_depthwise(channels, m):
        return depthwise(g, x, w, bias, out, groups)
    if is_winograd(g, code, images, groups, channels, m):
        return winograd(g, x, w.ptr, k, g.taps, bias, out)
    if by_windows(g, images, groups, channels, m):
        steady = g[0]
        steady.s[0] = steady.s[1] = steady.s[2] = 1  # all taps meet every output
        packed = packed_weights(code, w.ptr, k, g.taps, m * k, groups, m, channels, &steady, g.d[2] < 0,
                                is_planar(x, channels), &places)
        return convolve_windows(g, x, packed.ptr, places.group, bias, out, groups)
    # Weights that do not stay in the second-level cache should meet more than a panel or two at a time.
    if images > 1 and g.i[0] == 1 and g.k[0] == 1 and g.o[0] == 1 and g.p[0] == 0 and (
            g.pixels < b.panel or (m * k * item > 524288 and g.pixels < 8 * b.panel)):
        return side_by_side(g, x, w, bias, out, groups)
    fn = _conv[code]
    if fn == NULL:
        fn = find(_conv, code, "conv")
    cc = even(channels, max(b.depth // g.taps, 1))
    tt = even(g.taps, b.depth)
    wanted = <int64_t>(work / TASK) if work < 32.0 * TASK else 32
    # A task's part of C stays in the second-level cache while the blocks of k add to it.
    mc, nc = m, min(g.pixels, max(131072 // m // b.panel, 1) * b.panel)
    tiles = ceil_div(m, b.rows)
    if m * k * item > LARGE_WEIGHTS and images * groups == 1:
        # They come from the third-level cache, once for all pixels of a task: cut the channels rather than those.
        mc = even(tiles, max(tiles * ceil_div(g.pixels, nc) // 4, 22)) * b.rows
    elif images * groups * ceil_div(g.pixels, nc) < wanted:
        nc = even(ceil_div(g.pixels, b.panel), ceil_div(g.pixels, b.panel * ceil_div(wanted, images * groups))) * b.panel
        mc = even(tiles, max(tiles * images * groups * ceil_div(g.pixels, nc) // wanted, 22)) * b.rows
    tasks = images * groups * ceil_div(m, mc) * ceil_div(g.pixels, nc)
    ptr[0], ptr[1], ptr[3] = out.ptr, x.ptr, out.ptr if bias is None else bias.ptr
    ptr[4] = tile_kernel(code)
    describe(g, x, arg)
    arg[22], arg[23], arg[24], arg[25] = images, groups, m, channels
    arg[26], arg[27] = x.strides[0] * item, x.strides[1] * channels * item
    arg[28], arg[29], arg[30] = out.strides[0] * item, m * g.pixels * item, g.pixels * item
    arg[31], arg[32], arg[33], arg[34], arg[35] = m * k * item, k * item, item, 0, 0
    arg[36], arg[37], arg[38] = m * item, item, 0 if bias is None else 2
    arg[39], arg[40], arg[41], arg[42] = mc, nc, cc, tt
    try:
        if m >= 2 * b.rows and groups <= 8 and images * g.pixels >= 1024:
            size = packed_size(code, m, k)
            a = <char*>allocate(size * groups)
            if a == NULL:
                a, size = w.ptr, 0
            else:
                for group in range(groups):
                    pack_left(code, a + group * size, w.ptr + group * m * k * item, m, k, k * item, item)
                arg[31], arg[32], arg[33], arg[34], arg[35] = size, item, b.pitch * item, k * b.pitch * item, PACKED
        ptr[2] = a
        run(fn, ptr, arg, tasks, grain_of(work, tasks), work)
    finally:
        if size:
            release(a, size * groups)
    return 0


include "formats.pxi"
include "depthwise.pxi"
cdef Tensor whole_planes(Tensor x):
    """``x``, copied unless the rows of its images follow one another."""
    if (x.strides[4] == 1 or x.sizes[4] == 1) and (x.strides[3] == x.sizes[4] or x.sizes[3] == 1):
        return x
    return contiguous_tensor(x)


include "slots.pxi"
include "winograd.pxi"
include "windows.pxi"
include "words.pxi"


cdef Tensor cast_image(Tensor t, int code):
    """:func:`cast` that keeps the memory format."""
    if t.code != code and is_last(t):
        return in_order(cast(in_order(t, True), code), False)
    return cast(t, code)


cdef int side_by_side(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """Images too small to fill a panel become the slices of one deep image, whose result is put back in order."""
    cdef Geometry deep = g[0]
    cdef int64_t images = x.sizes[0], m = out.sizes[1]
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n
    for n in range(5):
        sizes[n], strides[n] = x.sizes[n], x.strides[n]
    sizes[0], sizes[2], strides[2] = 1, images, x.strides[0]
    x = alias_tensor(x, 5, sizes, strides, 0)
    deep.o[0] = deep.i[0] = images
    deep.s[0] = deep.d[0] = 1
    deep.p[0] = 0
    deep.pixels *= images
    sizes[1], sizes[3], sizes[4] = m, g.o[1], g.o[2]
    cdef Tensor whole = empty_tensor(x.code, 5, sizes)
    convolve(&deep, x, w, bias, whole, groups)
    sizes[0], sizes[1], sizes[2] = m, images, g.pixels
    strides[0], strides[1], strides[2] = out.strides[1], out.strides[0], 1
    out = alias_tensor(out, 3, sizes, strides, 0)
    strides[0], strides[1] = images * g.pixels, g.pixels
    copy_into(out, alias_tensor(whole, 3, sizes, strides, 0))
    return 0


cdef int turned(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out, int64_t groups) except -1:
    """What has kernels for channels first alone."""
    cdef Tensor whole = empty_tensor(out.code, 5, out.sizes)
    convolve(g, x, w, bias, whole, groups)
    copy_into(out, whole)
    return 0


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


cdef int fill(Tensor out, Tensor bias) except -1:
    """A sum over nothing: zero, or the bias."""
    cdef int64_t strides[5]
    cdef int n
    if bias is None:
        copy_into(out, zeros(out.code))
        return 0
    for n in range(5):
        strides[n] = bias.strides[0] if n == 1 else 0
    copy_into(out, alias_tensor(bias, 5, out.sizes, strides, 0))
    return 0


cdef Tensor zeros(int code):
    cdef int64_t none = 0
    cdef Tensor t = empty_tensor(code, 0, &none)
    memset(t.ptr, 0, ITEMSIZE[code])
    return t


cdef Tensor back(Tensor out, int code, int nd):
    """The result with its own number of dimensions and dtype."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int n, missing = 3 - nd
    if missing:
        for n in range(2):
            sizes[n], strides[n] = out.sizes[n], out.strides[n]
        for n in range(2, 2 + nd):
            sizes[n], strides[n] = out.sizes[n + missing], out.strides[n + missing]
        out = alias_tensor(out, 2 + nd, sizes, strides, 0)
    return cast_image(out, code)


cdef Tensor grouped(Tensor w, int64_t groups):
    """Contiguous weights ``[g * m, channels, ...]`` as ``[g, m, channels, taps]``."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int n
    w = contiguous_tensor(w)
    sizes[0], sizes[1], sizes[2], sizes[3] = groups, w.sizes[0] // groups, w.sizes[1], 1
    for n in range(2, w.nd):
        sizes[3] *= w.sizes[n]
    strides[3] = 1
    for n in range(2, -1, -1):
        strides[n] = strides[n + 1] * sizes[n + 1]
    return alias_tensor(w, 4, sizes, strides, 0)


cdef int take(object values, int64_t* to, int nd, int64_t missing) except -1:
    """A tuple of ``nd`` numbers as three."""
    cdef int n
    for n in range(3 - nd):
        to[n] = missing
    for n in range(nd):
        to[3 - nd + n] = values[n]
    return 0


cdef bint read(object value, int64_t* to, int nd, int64_t missing) except -1:
    """An int or a tuple of ``nd`` as three numbers; whether it was one of these."""
    cdef int64_t x
    cdef int n
    if PyLong_CheckExact(value):
        x = value
        for n in range(3):
            to[n] = x if n >= 3 - nd else missing
        return True
    if not PyTuple_CheckExact(value) or len(<tuple>value) != nd:
        return False
    for n in range(nd):
        if not PyLong_CheckExact((<tuple>value)[n]):
            return False
    take(value, to, nd, missing)
    return True


def convolution(int nd, Tensor input, Tensor weight, object bias, object stride, object padding, object dilation,
                object groups):
    """The common case of a convolution: a batch, one real dtype, numbers that fit. None where anything is otherwise."""
    cdef Geometry g
    cdef int n
    cdef int64_t parts
    if input.nd != nd + 2 or weight.nd != nd + 2 or input.code != weight.code or KIND[input.code] == 3 or input.code == BOOL:
        return None
    if not PyLong_CheckExact(groups):
        return None
    parts = groups
    if parts < 1 or input.sizes[1] != weight.sizes[1] * parts or weight.sizes[0] % parts:
        return None
    if not (read(stride, g.s, nd, 1) and read(padding, g.p, nd, 0) and read(dilation, g.d, nd, 1)):
        return None
    for n in range(3):
        g.i[n] = g.k[n] = g.o[n] = 1
        if n < 3 - nd:
            continue
        g.i[n], g.k[n] = input.sizes[2 + n - (3 - nd)], weight.sizes[2 + n - (3 - nd)]
        if g.s[n] < 1 or g.p[n] < 0 or g.d[n] < 1 or g.i[n] + 2 * g.p[n] < g.d[n] * (g.k[n] - 1) + 1:
            return None
        g.o[n] = (g.i[n] + 2 * g.p[n] - g.d[n] * (g.k[n] - 1) - 1) // g.s[n] + 1
    if bias is not None and (not isinstance(bias, Tensor) or (<Tensor>bias).code != input.code
                             or (<Tensor>bias).nd != 1 or (<Tensor>bias).sizes[0] != weight.sizes[0]):
        return None
    return outputs(&g, nd, input, weight, bias, parts)


cdef Tensor outputs(Geometry* g, int nd, Tensor input, Tensor weight, Tensor bias, int64_t groups):
    cdef int inner = compute_code(input.code), n
    cdef int64_t sizes[5]
    cdef Tensor x, w, out
    g.taps = g.pixels = 1
    for n in range(3):
        g.taps *= g.k[n]
        g.pixels *= g.o[n]
    if ITEMSIZE[input.code] == 2 and weight.code == input.code and inner == F32:
        out = word_outputs(g, nd, input, weight, bias, groups)
        if out is not None:
            return out
    x, w = spatial(cast_image(input, inner), 2), cast_image(weight, inner)
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = x.sizes[0], w.sizes[0], g.o[0], g.o[1], g.o[2]
    out = empty_last(inner, 5, sizes) if is_last(input) or is_last(weight) else empty_tensor(inner, 5, sizes)
    convolve(g, x, grouped(w, groups), None if bias is None else contiguous_tensor(cast(bias, inner)), out, groups)
    return back(out, input.code, nd)


def forward(Tensor input, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding, tuple dilation,
            int64_t groups):
    """Convolution of ``input [n, c, ...]`` with ``weight [m, c / groups, ...]`` to ``[n, m, *size]``."""
    cdef int nd = input.nd - 2, n
    cdef Geometry g
    take(size, g.o, nd, 1)
    take(stride, g.s, nd, 1)
    take(padding, g.p, nd, 0)
    take(dilation, g.d, nd, 1)
    for n in range(3):
        g.i[n] = g.k[n] = 1
        if n >= 3 - nd:
            g.i[n], g.k[n] = input.sizes[2 + n - (3 - nd)], weight.sizes[2 + n - (3 - nd)]
    return outputs(&g, nd, input, weight, bias, groups)


cdef int64_t gcd(int64_t a, int64_t b) noexcept:
    while b:
        a, b = b, a % b
    return a


ctypedef fused word:
    int32_t
    int64_t


cdef void turn_weights(word* to, const word* w, int64_t m, int64_t c, int64_t* kernel, int64_t* first, int64_t* every,
                       int64_t* count) noexcept nogil:
    """``to[c, m, chosen taps]`` from ``w[m, c, taps]``: every so many taps from the first on. By blocks, for the cache."""
    cdef int64_t i, j, bi, bj, x, y, z, taps = kernel[0] * kernel[1] * kernel[2], kept = count[0] * count[1] * count[2]
    cdef const word* row
    cdef word* target
    for bj in range(0, m, 16):
        for bi in range(0, c, 16):
            for i in range(bi, min(bi + 16, c)):
                for j in range(bj, min(bj + 16, m)):
                    row = w + (j * c + i) * taps
                    target = to + (i * m + j) * kept
                    if kept == taps:
                        if taps == 9:  # a size that the compiler knows needs no call
                            memcpy(target, row, 9 * sizeof(word))
                        else:
                            memcpy(target, row, taps * sizeof(word))
                        continue
                    for x in range(count[0]):
                        for y in range(count[1]):
                            for z in range(count[2]):
                                target[0] = row[((first[0] + x * every[0]) * kernel[1] + first[1] + y * every[1])
                                                * kernel[2] + first[2] + z * every[2]]
                                target += 1


def input_gradient(Tensor grad, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding, tuple dilation,
                   int64_t groups):
    """Gradient of the input, of spatial sizes ``size``, from that of the output; also the transposed convolution."""
    cdef int inner = compute_code(grad.code), kept, nd = grad.nd - 2, n
    cdef Geometry whole, g
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int64_t phase[3]
    cdef int64_t first[3]
    cdef int64_t every[3]
    cdef int64_t m = weight.sizes[0] // groups, c = weight.sizes[1], offset, k, phases = 1, index
    cdef Tensor x, w, out, part, turned, columns = None
    cdef Tensor w5 = spatial(weight, 2), packed = None
    cdef Packed places
    cdef bint words, shorts, paired, direct, last = is_last(grad) or is_last(weight), turned_in = False
    take(size, whole.i, nd, 1)
    take(stride, whole.s, nd, 1)
    take(padding, whole.p, nd, 0)
    take(dilation, whole.d, nd, 1)
    sizes[0], sizes[1] = grad.sizes[0], groups * c
    x = spatial(grad, 2)
    whole.taps = whole.pixels = 1
    for n in range(3):
        whole.k[n] = w5.sizes[2 + n]
        whole.taps *= whole.k[n]
        sizes[2 + n] = whole.i[n]
        phases *= whole.s[n]
        whole.o[n] = x.sizes[2 + n]
        whole.pixels *= whole.o[n]
    if short_points(&whole, x.code, m, c) and weight.code == BF16 or (
            weight.code == BF16 and whole_kernel(&whole, c, m) and short_engine(x.code) != ""):
        inner = BF16
        if whole.taps == 1 and not channels_last(x):
            x = contiguous_tensor(x)
    words = inner != BF16 and weight.code == BF16 and words_back(&whole, x, groups, m, c)
    shorts = weight.code == x.code and short_depthwise(&whole, x.code, groups, m, c)
    kept = x.code if words or shorts else inner
    if words:
        x = channel_words(x, groups)
    elif not shorts and inner != BF16:
        x = spatial(cast_image(grad, inner), 2)
    w = grouped(w5 if words else spatial(cast_image(weight, inner), 2), groups)
    if bias is not None:
        bias = contiguous_tensor(cast(bias, inner))
    out = empty_last(kept, 5, sizes) if last else empty_tensor(kept, 5, sizes)
    if out.count == 0:
        return back(out, grad.code, nd)
    if whole_kernel(&whole, c, m):
        part = empty_tensor(inner, 5, sizes)
        whole_gradient(x, w, bias, part, groups)
        if last:
            copy_into(out, part)
        return back(out if last else part, grad.code, nd)
    if shorts and last and x.strides[1] != 1:
        x = to_last(x)
    if phases > 1 and not last and not words and (shorts or turns_last(&whole, x, m, c)):  # the phases go straight to their places
        last = turned_in = True
        x, out = to_last(x), empty_last(kept, 5, sizes)
    # Even and odd columns of the result are put there together: alone they would be written one by one.
    paired = whole.s[2] == 2 and whole.i[2] > 1 and not last and not is_depthwise(m, c)
    for index in range(phases):
        phase[0] = index // (whole.s[1] * whole.s[2])
        phase[1], phase[2] = index // whole.s[2] % whole.s[1], index % whole.s[2]
        g.taps = g.pixels = 1
        offset = 0
        strides[0], strides[1] = out.strides[0], out.strides[1]
        for n in range(3):
            # Positions phase, phase + s, ... meet the taps k with (phase + p - k d) divisible by s.
            g.o[n] = ceil_div(whole.i[n] - phase[n], whole.s[n]) if whole.i[n] > phase[n] else 0
            every[n] = whole.s[n] // gcd(whole.s[n], whole.d[n])
            first[n] = -1
            for k in range(min(every[n], whole.k[n])):
                if (phase[n] + whole.p[n] - k * whole.d[n]) % whole.s[n] == 0:
                    first[n] = k
                    break
            g.i[n], g.s[n] = x.sizes[2 + n], 1
            g.k[n] = 0 if first[n] < 0 else ceil_div(whole.k[n] - first[n], every[n])
            g.d[n] = -(whole.d[n] * every[n] // whole.s[n])
            g.p[n] = 0 if first[n] < 0 else -((phase[n] + whole.p[n] - first[n] * whole.d[n]) // whole.s[n])
            g.taps *= g.k[n]
            g.pixels *= g.o[n]
            sizes[2 + n], strides[2 + n] = g.o[n], out.strides[2 + n] * whole.s[n]
            offset += phase[n] * out.strides[2 + n]
        if g.pixels == 0:
            continue
        part = out
        # Channels last: also into every other pixel.
        direct = phases == 1 or (is_depthwise(m, c) and g.taps > 0 and (not last or is_last_depthwise(&g, x, out, m, c)))
        if phases > 1:
            if direct:
                part = alias_tensor(out, 5, sizes, strides, offset)
            else:
                part = empty_last(kept, 5, sizes) if last else empty_tensor(kept, 5, sizes)
        if g.taps == 0:
            fill(part, bias)
        elif words:
            if packed is None:
                packed = packed_weights(BF16, w.ptr, whole.taps, c * whole.taps, m * c * whole.taps, groups, c, m, &whole, True,
                                        is_planar(x, x.sizes[1] // groups), &places)
            convolve_windows(&g, x, packed.ptr + places.begin[index], places.group, bias, part, groups)
        elif shorts:
            turned = turned_weights(w, inner, groups, m, c, &whole, first, every, &g)
            if last:
                depthwise_last(&g, x, turned, bias, part)
            else:
                depthwise_turned(&g, x, turned, bias, part)
        elif phases == 1 and not last and is_winograd(&g, inner, x.sizes[0], groups, m, c):
            winograd(&g, x, w.ptr, g.taps, c * g.taps, bias, part)
        elif phases == 1 and last and is_winograd(&g, inner, x.sizes[0], groups, m, c):
            part = empty_tensor(inner, 5, sizes)
            winograd(&g, contiguous_tensor(x), w.ptr, g.taps, c * g.taps, bias, part)
            copy_into(out, part)
        elif g.taps == 1 and whole.taps == 1 and pointwise(&g, x, part, m):
            points_product(&g, x, w, bias, part, groups, True)
        elif phases <= PHASES and not is_depthwise(m, c) and by_windows(&g, x.sizes[0], groups, m, c, phases == 1):
            if packed is None:
                packed = packed_weights(inner, w.ptr, whole.taps, c * whole.taps, m * c * whole.taps, groups, c, m, &whole, True,
                                        is_planar(x, m), &places)
            convolve_windows(&g, x, packed.ptr + places.begin[index], places.group, bias, part, groups)
        else:
            turned = turned_weights(w, inner, groups, m, c, &whole, first, every, &g)
            convolve(&g, x, turned, bias, part, groups)
        if paired and phase[2] == 0:
            columns = part
        elif paired:
            sizes[4], strides[4] = whole.i[2], out.strides[4]
            interleave(alias_tensor(out, 5, sizes, strides, offset - out.strides[4]), columns, part)
        elif not direct:
            copy_into(alias_tensor(out, 5, sizes, strides, offset), part)
    return back(contiguous_tensor(out) if turned_in else out, grad.code, nd)


cdef int interleave(Tensor out, Tensor even_columns, Tensor odd_columns) except -1:
    """Into ``out [n, c, z, y, x]``, whose rows may be apart, from its even columns and its odd ones, both contiguous."""
    cdef int code = F32 if ITEMSIZE[out.code] == 4 else F64 if ITEMSIZE[out.code] == 8 else I16
    cdef int64_t item = ITEMSIZE[code], planes = out.sizes[0] * out.sizes[1] * out.sizes[2]
    cdef int64_t arg[INTERLEAVE_ARGS]
    cdef char* ptr[3]
    cdef kernel_t fn = _interleave[code]
    if fn == NULL:
        fn = find(_interleave, code, "interleave")
    arg[0], arg[1], arg[2] = out.sizes[2], out.sizes[3], out.sizes[4]
    arg[3], arg[4], arg[5] = out.strides[1] * item, out.strides[2] * item, out.strides[3] * item
    ptr[0], ptr[1], ptr[2] = out.ptr, even_columns.ptr, odd_columns.ptr
    run(fn, ptr, arg, planes, grain_of(<double>out.count, planes), <double>out.count)
    return 0


cdef Tensor turned_weights(Tensor w, int code, int64_t groups, int64_t m, int64_t c, Geometry* whole, int64_t* first,
                           int64_t* every, Geometry* g):
    """The chosen taps with input and output channels exchanged: ``[g, c, m, taps]``."""
    cdef int64_t sizes[4]
    sizes[0], sizes[1], sizes[2], sizes[3] = groups, c, m, g.taps
    cdef Tensor turned = empty_tensor(code, 4, sizes)
    cdef int64_t i, size = m * c * whole.k[0] * whole.k[1] * whole.k[2], kept = m * c * g.taps
    with nogil:
        for i in range(groups):
            if ITEMSIZE[code] == 4:
                turn_weights(<int32_t*>turned.ptr + i * kept, <int32_t*>w.ptr + i * size, m, c, whole.k, first, every, g.k)
            else:
                turn_weights(<int64_t*>turned.ptr + i * kept, <int64_t*>w.ptr + i * size, m, c, whole.k, first, every, g.k)
    return turned


def weight_gradient(Tensor input, Tensor grad, tuple kernel, tuple stride, tuple padding, tuple dilation,
                    int64_t groups):
    """Gradient of the weights ``[m, c / groups, *kernel]``, as partial sums ``[part, ...]`` of that many elements each."""
    cdef int inner = compute_code(input.code), nd = input.nd - 2, n
    cdef Geometry g
    cdef int64_t sizes[4]
    cdef int64_t arg[WEIGHT_ARGS]
    cdef char* ptr[4]
    cdef Tensor x = spatial(input, 2), y = spatial(grad, 2), out
    cdef int64_t item = ITEMSIZE[inner], images = x.sizes[0], channels = x.sizes[1] // groups, m = y.sizes[1] // groups
    cdef int64_t cc, tt, nc, parts = 1, tasks, wanted, part_run
    cdef Blocks b = blocks(inner)
    cdef double work
    cdef kernel_t fn
    take(kernel, g.k, nd, 1)
    take(stride, g.s, nd, 1)
    take(padding, g.p, nd, 0)
    take(dilation, g.d, nd, 1)
    g.taps = g.pixels = 1
    for n in range(3):
        g.i[n], g.o[n] = x.sizes[2 + n], y.sizes[2 + n]
        g.taps *= g.k[n]
        g.pixels *= g.o[n]
    if ITEMSIZE[input.code] == 2 and grad.code == input.code and inner == F32:
        out = word_weights(&g, x, y, groups)
        if out is not None:
            return out
    x, y = spatial(cast_image(input, inner), 2), spatial(cast_image(grad, inner), 2)
    work = <double>images * groups * m * channels * g.taps * g.pixels
    sizes[0], sizes[1], sizes[2], sizes[3] = 1, groups, channels * g.taps, m
    if work == 0:
        out = empty_tensor(inner, 4, sizes)
        memset(out.ptr, 0, out.count * item)
        return turned_back(out)
    if whole_kernel(&g, channels, m):
        return whole_weights(x, y, groups)
    if strided_points(&g, channels, m):
        x = every_pixel(&g, x)
    if not is_depthwise(channels, m):
        if narrow_points(&g, x, y, groups):
            return narrow_gradient(&g, x, y)
        if is_winograd(&g, inner, images, groups, channels, m):
            return winograd_gradient(&g, x, y)
        # Here what is laid out serves few outputs as well.
        if by_windows(&g, images, groups, channels, max(m, <int64_t>5) if m >= 3 or reads_points(&g) else m):
            return windows_gradient(&g, x, y, groups)
    if turns_last(&g, x, channels, m):
        x, y = to_last(x), to_last(y)
    if is_last_depthwise(&g, x, y, channels, m):
        return depthwise_last_gradient(&g, x, y)
    y = contiguous_tensor(y)
    if channels_last(x):
        x = contiguous_tensor(x)
    if is_depthwise(channels, m):
        return depthwise_weight_gradient(&g, x, y, groups, m)
    fn = _weight[inner]
    if fn == NULL:
        fn = find(_weight, inner, "conv_weight")
    cc = even(channels, max(_unfold_rows // g.taps, 1))
    tt = even(g.taps, _unfold_rows)
    nc = m
    wanted = <int64_t>(work / TASK) if work < 16.0 * TASK else 16
    tasks = groups * ceil_div(channels, cc) * ceil_div(g.taps, tt)
    if tasks < wanted:
        nc = even(ceil_div(m, b.panel), max(ceil_div(m, b.panel) * tasks // wanted, 1)) * b.panel
        tasks *= ceil_div(m, nc)
    if tasks < wanted:  # few weights: the images are summed in parts
        parts = min(images, ceil_div(wanted, tasks))
    part_run = ceil_div(images, parts)
    parts = ceil_div(images, part_run)
    tasks *= parts
    sizes[0] = parts
    out = empty_tensor(inner, 4, sizes)
    ptr[0], ptr[1], ptr[2] = out.ptr, x.ptr, y.ptr
    ptr[3] = tile_kernel(inner)
    describe(&g, x, arg)
    arg[22], arg[23], arg[24], arg[25] = images, groups, m, channels
    arg[26], arg[27] = x.strides[0] * item, x.strides[1] * channels * item
    arg[28], arg[29], arg[30] = groups * m * g.pixels * item, m * g.pixels * item, g.pixels * item
    arg[31], arg[32], arg[33] = out.strides[0] * item, out.strides[1] * item, m * item
    arg[34], arg[35], arg[36], arg[37], arg[38] = parts, part_run, nc, cc, tt
    arg[39] = min(ceil_div(even(g.pixels, _unfold_pixels), 16) * 16, _unfold_pixels)
    run(fn, ptr, arg, tasks, grain_of(work, tasks), work)
    return turned_back(out)


cdef Tensor turned_back(Tensor sums):
    """``[part, group, (c, tap), m]`` with ``m`` before ``(c, tap)``: a view."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    memcpy(sizes, sums.sizes, 4 * 8)
    memcpy(strides, sums.strides, 4 * 8)
    sizes[2], sizes[3] = sizes[3], sizes[2]
    strides[2], strides[3] = strides[3], strides[2]
    return alias_tensor(sums, 4, sizes, strides, 0)
