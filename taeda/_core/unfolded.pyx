"""Launcher of kernels/conv.py, which unfolds one panel at a time.

It serves convolutions too small for the other kernels, which lay out whole images.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from .devices cimport MOST_DEVICES, elsewhere, here
from .dims cimport ceil_div
from .gemm cimport Blocks, blocks, cast, compute_code, one_lane, pack_left, packed_size, tiles as tile_kernel
from .geometry cimport LARGE_WEIGHTS, Geometry, even
from .kernel_args cimport ConvArgs, ConvGeometry, ConvWeightArgs, InterleaveArgs, ProductArgs, TileArgs
from .memory cimport release_scratch, take_scratch
from .planners cimport build, known, new_owner, of_dtype
from .pool cimport TASK, grain_of, kernel_t, launch, launch_work
from .tensor cimport (
    BF16, F16, F32, F64, I16, ITEMSIZE, Tensor, address_of, alias_tensor, copy_into, empty_tensor,
)

from .tensor import DTYPE_NAMES

cdef enum:
    PACKED = 2

cdef uint64_t CONV = new_owner("conv.conv"), CONV_WEIGHT = new_owner("conv.conv_weight")
cdef uint64_t INTERLEAVE = new_owner("conv.interleave")
cdef int64_t _unfold_rows, _unfold_pixels


cdef kernel_t find(uint64_t family, int code) except NULL:
    global _unfold_rows, _unfold_pixels
    if _unfold_rows == 0:
        from ..kernels import conv
        _unfold_rows, _unfold_pixels = conv.UNFOLD_ROWS, conv.UNFOLD_PIXELS
    return of_dtype(family, code)


cdef bint goes_side_by_side(Geometry* g, int code, int64_t images, int64_t c, int64_t m) except -1:
    """Whether weights that do not fit the second-level cache would meet only one or two panels of an image at a
    time."""
    cdef Blocks b = blocks(code)
    if images == 1 or g.i[0] != 1 or g.k[0] != 1 or g.o[0] != 1 or g.p[0] != 0:
        return False
    return g.pixels < b.panel or (m * c * g.taps * ITEMSIZE[code] > LARGE_WEIGHTS // 2 and g.pixels < 8 * b.panel)


cdef void describe(Geometry* g, Tensor x, ConvGeometry* arg) noexcept:
    """The geometry's arguments, for an input ``x`` of three spatial dimensions."""
    cdef int64_t item = ITEMSIZE[x.code]
    arg.od, arg.oh, arg.ow, arg.id, arg.ih, arg.iw = g.o[0], g.o[1], g.o[2], g.i[0], g.i[1], g.i[2]
    arg.kd, arg.kh, arg.kw, arg.sd, arg.sh, arg.sw = g.k[0], g.k[1], g.k[2], g.s[0], g.s[1], g.s[2]
    arg.dd, arg.dh, arg.dw, arg.pd, arg.ph, arg.pw = g.d[0], g.d[1], g.d[2], g.p[0], g.p[1], g.p[2]
    arg.x_c, arg.x_d, arg.x_h, arg.x_w = (x.strides[1] * item, x.strides[2] * item, x.strides[3] * item,
                                          x.strides[4] * item)


include "conv_tiles.pxi"


cdef int convolve_unfolded(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1:
    """:func:`convolve` of images with channels first; ``w`` is ``[g, m, channels, taps]``."""
    cdef int code = x.code
    cdef int64_t groups = w.sizes[0], m = w.sizes[1], channels = w.sizes[2], k = channels * g.taps
    cdef int64_t item = ITEMSIZE[code], images = x.sizes[0], size = 0, group, mc, nc, cc, tt, wanted, tiles, tasks
    cdef ConvArgs arg
    cdef double work = <double>images * groups * m * k * g.pixels
    cdef Blocks b = blocks(compute_code(code))
    cdef Tensor wide
    cdef char* ptr[5]
    cdef char* a
    cdef kernel_t fn
    cc = even(channels, max(b.depth // g.taps, 1))
    tt = even(g.taps, b.depth)
    if one_lane() and cc < channels and b.depth // g.taps >= 4:  # blocks of weights begin at 16 bytes
        cc = min(ceil_div(cc, 4), b.depth // g.taps // 4) * 4
    if tt == g.taps and out.contiguous and by_tiles(g, x, images, k):
        return convolve_tiles(g, x, w, bias, out, cc * tt)
    if code != compute_code(code):  # numbers of 16 bits are for tiles alone
        wide = empty_tensor(compute_code(code), 5, out.sizes)
        convolve_unfolded(g, cast(x, wide.code), cast(w, wide.code), None if bias is None else cast(bias, wide.code),
                          wide)
        return copy_into(out, wide)
    a, fn = address_of(w), find(CONV, code)
    wanted = <int64_t>(work / TASK) if work < 32.0 * TASK else 32
    # A task's part of C should stay in the second-level cache while the blocks of k are added to it.
    mc, nc = m, min(g.pixels, max(131072 // m // b.panel, 1) * b.panel)
    tiles = ceil_div(m, b.rows)
    if m * k * item > LARGE_WEIGHTS and images * groups == 1:
        # The weights come from the third-level cache, once for all pixels of a task: cut channels, not pixels.
        mc = even(tiles, max(tiles * ceil_div(g.pixels, nc) // 4, 22)) * b.rows
    elif images * groups * ceil_div(g.pixels, nc) < wanted:
        nc = even(ceil_div(g.pixels, b.panel), ceil_div(g.pixels, b.panel * ceil_div(wanted,
                                                                                     images * groups))) * b.panel
        mc = even(tiles, max(tiles * images * groups * ceil_div(g.pixels, nc) // wanted, 22)) * b.rows
    tasks = images * groups * ceil_div(m, mc) * ceil_div(g.pixels, nc)
    ptr[0], ptr[1], ptr[3] = address_of(out), address_of(x), address_of(out) if bias is None else address_of(bias)
    ptr[4] = tile_kernel(code)
    describe(g, x, <ConvGeometry*>&arg)
    arg.images, arg.groups, arg.m, arg.channels = images, groups, m, channels
    arg.x_n, arg.x_g = x.strides[0] * item, x.strides[1] * channels * item
    arg.c_n, arg.c_g, arg.c_m = out.strides[0] * item, m * g.pixels * item, g.pixels * item
    arg.a_g, arg.a_m, arg.a_k, arg.a_tile, arg.packed = m * k * item, k * item, item, 0, 0
    arg.d_g, arg.d_m, arg.init = m * item, item, 0 if bias is None else 2
    arg.mc, arg.nc, arg.cc, arg.tt = mc, nc, cc, tt
    try:
        if m >= 2 * b.rows and groups <= 8 and images * g.pixels >= 1024:
            size = packed_size(code, m, k)
            a = <char*>take_scratch(size * groups)
            if a == NULL:
                a, size = address_of(w), 0
            else:
                for group in range(groups):
                    pack_left(code, a + group * size, address_of(w) + group * m * k * item, m, k, k * item, item)
                arg.a_g, arg.a_m, arg.a_k = size, item, b.pitch * item
                arg.a_tile, arg.packed = k * b.pitch * item, PACKED
        ptr[2] = a
        launch_work(fn, ptr, 5, <int64_t*>&arg, sizeof(arg) // 8, tasks, grain_of(work, tasks), work)
    finally:
        if size:
            release_scratch(a, size * groups)
    return 0


cdef int side_by_side(Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1:
    """Join images too small to fill a panel as the slices of one deep image, then put the result back in order."""
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
    convolve_unfolded(&deep, x, w, bias, whole)
    sizes[0], sizes[1], sizes[2] = m, images, g.pixels
    strides[0], strides[1], strides[2] = out.strides[1], out.strides[0], 1
    out = alias_tensor(out, 3, sizes, strides, 0)
    strides[0], strides[1] = images * g.pixels, g.pixels
    copy_into(out, alias_tensor(whole, 3, sizes, strides, 0))
    return 0


cdef Tensor unfolded_gradient(Geometry* g, Tensor x, Tensor y, int64_t groups):
    """Gradient of the weights ``[part, g, m, (c, tap)]``, a view, for images with channels first; ``y`` is
    contiguous."""
    cdef int code = x.code
    cdef int64_t sizes[4]
    cdef ConvWeightArgs arg
    cdef char* ptr[4]
    cdef int64_t item = ITEMSIZE[code], images = x.sizes[0], channels = x.sizes[1] // groups, m = y.sizes[1] // groups
    cdef int64_t cc, tt, nc, parts = 1, tasks, wanted, part_run
    cdef double work = <double>images * groups * m * channels * g.taps * g.pixels
    cdef Blocks b = blocks(compute_code(code))
    cdef Tensor out
    cdef bint tiled = by_tiles(g, x, images, channels * g.taps) and y.contiguous
    cdef kernel_t fn = find(CONV_WEIGHT, compute_code(code))
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
    arg.pixels = min(ceil_div(even(g.pixels, _unfold_pixels), 16) * 16, _unfold_pixels)
    if tiled:
        return tiles_gradient(g, x, y, groups, parts, part_run, arg.pixels)
    if code != compute_code(code):
        return unfolded_gradient(g, cast(x, compute_code(code)), cast(y, compute_code(code)), groups)
    sizes[0], sizes[1], sizes[2], sizes[3] = parts, groups, channels * g.taps, m
    out = empty_tensor(code, 4, sizes)
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(x), address_of(y)
    ptr[3] = tile_kernel(code)
    describe(g, x, <ConvGeometry*>&arg)
    arg.images, arg.groups, arg.m, arg.channels = images, groups, m, channels
    arg.x_n, arg.x_g = x.strides[0] * item, x.strides[1] * channels * item
    arg.g_n, arg.g_g, arg.g_m = groups * m * g.pixels * item, m * g.pixels * item, g.pixels * item
    arg.c_p, arg.c_g, arg.c_r = out.strides[0] * item, out.strides[1] * item, m * item
    arg.parts, arg.run, arg.nc, arg.cc, arg.tt = parts, part_run, nc, cc, tt
    launch_work(fn, ptr, 4, <int64_t*>&arg, sizeof(arg) // 8, tasks, grain_of(work, tasks), work)
    return transposed_back(out)


cdef Tensor transposed_back(Tensor sums):
    """A view of ``[part, group, (c, tap), m]`` with ``m`` before ``(c, tap)``."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    memcpy(sizes, sums.sizes, 4 * 8)
    memcpy(strides, sums.strides, 4 * 8)
    sizes[2], sizes[3] = sizes[3], sizes[2]
    strides[2], strides[3] = strides[3], strides[2]
    return alias_tensor(sums, 4, sizes, strides, 0)


cdef int interleave(Tensor out, Tensor even_columns, Tensor odd_columns) except -1:
    """Interleave even and odd columns, both contiguous, into ``out [n, c, z, y, x]``, whose rows may be strided."""
    cdef int code = F32 if ITEMSIZE[out.code] == 4 else F64 if ITEMSIZE[out.code] == 8 else I16
    cdef int64_t item = ITEMSIZE[code], planes = out.sizes[0] * out.sizes[1] * out.sizes[2]
    cdef InterleaveArgs arg
    cdef char* ptr[3]
    cdef kernel_t fn = find(INTERLEAVE, code)
    arg.depth, arg.height, arg.width = out.sizes[2], out.sizes[3], out.sizes[4]
    arg.y_c, arg.y_d, arg.y_h = out.strides[1] * item, out.strides[2] * item, out.strides[3] * item
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(even_columns), address_of(odd_columns)
    launch_work(fn, ptr, 3, <int64_t*>&arg, sizeof(arg) // 8, planes, grain_of(<double>out.count, planes),
                <double>out.count)
    return 0
