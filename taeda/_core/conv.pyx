"""Launcher of convolutions: sizes, blocks and tasks. Three spatial dimensions cover one and two as well.

``forward``, ``input_gradient`` and ``weight_gradient`` take tensors of any strides. The gradient of the input with a
stride above one is computed phase by phase: the input positions that meet the same taps form a convolution of stride
one.

Sizes, strides and dtypes decide a ``Plan`` (the casts) and an ``Algorithm`` for each convolution. ``convolve`` runs it,
in the forward pass and for each phase of a gradient.
"""

from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from .devices cimport MOST_DEVICES, elsewhere, kernel_place
from .dims cimport ceil_div
from .gemm cimport Blocks, Matrix, Product, blocks, cast, compute_code, has_halves, multiply, one_lane
from .geometry cimport FEW_BLOCKS, LARGE_WEIGHTS, Geometry, cast_image, even, spatial, whole_planes
from .formats cimport empty_last, in_order, is_last
from .kernel_args cimport (
    DepthwiseArgs, DepthwiseWeightArgs, LastArgs, PairArgs, PanelArgs, Volume, WindowsArgs, WindowsShape,
    WindowsWeightArgs,
)
from .planners cimport TRANSPOSE_GROUPS, build, hosted, known, new_owner, of_dtype
from .pool cimport grain_of, kernel_t, launch as launch_kernel, launch_work
from .recorder cimport CONSTANT, note_filled, note_prepared
from .short_gemm cimport short_engine
from .slots cimport Slots, make_slots, run_in_slots, working, working_on_host
from .tensor cimport (
    BF16, BOOL, F16, F32, I64, ITEMSIZE, KIND, NDTYPES, Tensor, address_of, alias_tensor,
    contiguous_tensor, copy_into, empty_tensor, host_tensor, uploaded, zero_bytes,
)
from .unfolded cimport (
    convolve_unfolded, goes_side_by_side, interleave, side_by_side, transposed_back, unfolded_gradient,
)
from .winograd cimport convolve_winograd, is_winograd, winograd_gradient

from .tensor import DTYPE_NAMES

cdef enum:
    PHASES = 64               # most phases whose weights are packed together
    FEW_TAPS = 256            # that a block of a sum has room for

cdef tuple NAMES = DTYPE_NAMES

cdef struct Packed:      # weights as panels, of one convolution or of each phase of a gradient
    int64_t begin[PHASES]  # byte offset of a phase's panels
    int64_t group          # bytes of a group

cdef struct Phase:       # of a gradient with a stride: input positions at, at + stride, ... meet the same taps
    Geometry g           # their convolution, of stride one
    int64_t at[3]
    int64_t first[3]     # of the taps, -1 if none
    int64_t every[3]

cdef enum Algorithm:           # of a convolution, or of a phase of its input's gradient
    NOTHING              # no output
    NO_TAPS              # empty sums
    WHOLE                # a kernel as large as the image: images by weights
    POINTS               # 1x1: weights by pixels
    WINDOWS
    LAST_CHANNELS        # depthwise or of small groups, with channels last
    LAST_OF_EITHER = LAST_CHANNELS   # the following ones have kernels for channels first only
    FIRST_CHANNELS       # depthwise, or of few outputs
    WINOGRAD
    SIDE_BY_SIDE
    UNFOLDED             # takes all that the others take
    SPREAD               # the input's gradient where every window has an input of its own
    TOGETHER             # the input's gradient, its phases in one launch
    NARROW_POINTS        # the weights' gradient of 1x1 with few channels

#: Their names.
NAMES_OF_ALGORITHMS = (
    "nothing", "no taps", "whole", "points", "windows", "last channels", "first channels", "winograd", "side by side",
    "unfolded", "spread", "together", "narrow points",
)
cdef int64_t LEFT_OUT = 0    # a bit for each algorithm that is not to be used, see `leave_out`


cdef inline bint allowed(Algorithm algorithm) noexcept:
    return not LEFT_OUT >> algorithm & 1


cdef enum Role:
    FORWARD
    INPUT                # the input's gradient
    WEIGHTS

cdef struct Plan:        # dtypes: of images and weights (different where kernels widen the images) and of the result
    int images, weights, result, bias
    int back             # of the returned tensor
    bint pairs           # pairs of 16-bit floats are multiplied: of channels, or of images for the weights' gradient


include "conv_weights.pxi"
include "depthwise.pxi"
include "windows.pxi"
include "bfloat16_pairs.pxi"
include "conv_products.pxi"


# ---- choice of the algorithm -----------------------------------------------------------------------------------------


cdef Plan plan_of(Role role, Geometry* g, int code, int w_code, int64_t images, int64_t groups, int64_t c, int64_t m):
    """The casts; ``w_code`` is the dtype of the weights or, for their gradient, of the outputs' gradient.

    ``c`` inputs and ``m`` outputs per group are those of the convolution that runs: exchanged for the input's gradient.
    """
    cdef Plan p
    p.images = p.weights = p.result = p.bias = compute_code(code)
    p.pairs = False
    p.back = code
    if ITEMSIZE[code] != 2 or w_code != code or p.images != F32 or c * g.taps == 0 or images * g.pixels == 0:
        return p
    if has_halves():  # a device: depthwise convolutions and those of few outputs are of float32
        if c > 1 and m > DEPTHWISE_MOST and g.taps <= FEW_TAPS:
            p.images = p.weights = p.result = p.bias = code
        return p
    if allowed(LAST_CHANNELS) and allowed(FIRST_CHANNELS) and (
            short_depthwise(g, code, groups, c, m) and (c == 1 or role != WEIGHTS and c <= SHORT_GROUP)
            or role != WEIGHTS and m == 1 and few_outputs(g, m)):  # widened in registers
        p.images = p.result = code
    elif short_engine(code) != "" and (allowed(WHOLE) and whole_kernel(g, c, m) or role != WEIGHTS and allowed(POINTS)
                                       and short_points(g, code, c, m)):
        p.images = p.weights = p.result = p.bias = code
    # For the weights' gradient, an image without a partner would be multiplied by zeros.
    elif allowed(WINDOWS) and fills_pairs(g, code, images, groups, c, m) and (images > 1 or role != WEIGHTS) and (
            role != INPUT or g.s[0] * g.s[1] * g.s[2] <= PHASES):
        p.pairs = True
        p.images = p.weights = p.result = code
    return p


cdef bint transposes_groups(Plan* p, int64_t c, int64_t m) noexcept:
    """Whether 16-bit images with channels first are transposed for the kernels of small groups, which take channels
    last."""
    return p.images != p.weights and c == m > 1


cdef inline bint is_half(int code) noexcept:
    return code == F16 or code == BF16


cdef Tensor in_plan_format(Tensor t, Plan* p, int64_t groups):
    """Images in the format of the plan's kernels, with three spatial dimensions."""
    if p.pairs:
        return channel_pairs(spatial(t, 2), groups)
    return spatial(cast_image(t, p.images), 2)


cdef Algorithm algorithm_of(Geometry* g, Plan* p, Tensor x, Tensor out, Weights w, bint alone) except *:
    """The algorithm for a convolution of ``x`` into ``out``: a phase, unless ``alone``."""
    cdef int64_t images = x.sizes[0], groups = w.groups, c = w.inputs, m = w.outputs
    cdef bint fits, product = p.images == p.weights
    if out.count == 0:
        return NOTHING
    if c * g.taps == 0:
        return NO_TAPS
    if p.pairs:
        return WINDOWS
    if not product:
        return LAST_CHANNELS if out.strides[1] == 1 and (c == 1 or w.outputs == c) else FIRST_CHANNELS
    if allowed(WHOLE) and whole_kernel(g, c, m):
        return WHOLE
    fits = allowed(WINDOWS) and not one_lane() and by_windows(g, images, groups, c, m, alone)
    # Weights of one of many taps would have to be gathered.
    if allowed(POINTS) and pointwise(g, x, out, c) and not (w.transposed and w.whole.taps > 1 and fits):
        return POINTS
    if is_half(p.weights):
        return UNFOLDED
    if allowed(LAST_CHANNELS) and is_last_depthwise(g, x, out, c, m):
        return LAST_CHANNELS
    if allowed(FIRST_CHANNELS) and (is_depthwise(c, m) or few_outputs(g, m)):
        return FIRST_CHANNELS
    if one_lane():
        return UNFOLDED
    if alone and allowed(WINOGRAD) and is_winograd(g, x.code, images, groups, c, m):
        return WINOGRAD
    if fits:
        return WINDOWS
    return SIDE_BY_SIDE if allowed(SIDE_BY_SIDE) and goes_side_by_side(g, x.code, images, c, m) else UNFOLDED


cdef int convolve(Algorithm algorithm, Geometry* g, Tensor x, Weights w, Tensor bias, Tensor out, Phase* phase,
                  int number) except -1:
    """``out[n, g * m + i, pixel]`` from ``x``, ``w`` and ``bias[g * m]``; for a gradient, ``phase`` has that
    ``number``."""
    cdef Tensor to = out
    if algorithm > LAST_OF_EITHER:
        if channels_last(x):
            x = contiguous_tensor(x)
        if channels_last(out):
            to = empty_tensor(out.code, 5, out.sizes)
    if algorithm == NO_TAPS:
        fill(out, bias)
    elif algorithm == WHOLE:
        whole_product(x, w.given, bias, out, w.groups)
    elif algorithm == WINDOWS:
        convolve_windows(g, x, w.panels(number, is_planar(x, x.sizes[1] // w.groups)), w.places.group, bias, out,
                         w.groups)
    elif algorithm == WINOGRAD:
        convolve_winograd(g, x, address_of(w.given), w.to_output(), w.to_input(), bias, to)
    elif algorithm == POINTS and w.whole.taps == 1:
        points_product(g, x, w.given, bias, out, w.groups, w.transposed)
    elif algorithm != NOTHING:
        convolve_in_order(algorithm, g, x, w.in_order(phase).given, bias, to)
    if to is not out:
        copy_into(out, to)
    return 0


cdef int convolve_in_order(Algorithm algorithm, Geometry* g, Tensor x, Tensor w, Tensor bias, Tensor out) except -1:
    """The algorithms whose kernels take weights ``[g, m, channels, taps]`` in place."""
    if algorithm == POINTS:
        return points_product(g, x, w, bias, out, w.sizes[0], False)
    if algorithm == LAST_CHANNELS:
        return depthwise_last(g, x if x.strides[1] == 1 else to_last(x), w, bias, out)
    if algorithm == FIRST_CHANNELS:
        return depthwise(g, x, w, bias, out)
    if algorithm == SIDE_BY_SIDE:
        return side_by_side(g, x, w, bias, out)
    return convolve_unfolded(g, x, w, bias, out)


cdef int fill(Tensor out, Tensor bias) except -1:
    """The result of an empty sum: zero, or the bias."""
    cdef int64_t strides[5]
    cdef int n
    if bias is None:
        copy_into(out, zeros(out.code))
        return 0
    for n in range(5):
        strides[n] = bias.strides[0] if n == 1 else 0
    copy_into(out, alias_tensor(bias, 5, out.sizes, strides, 0))
    return 0


cdef void zero(Tensor t) except *:
    """Clear a contiguous tensor."""
    zero_bytes(address_of(t), t.count * ITEMSIZE[t.code])


cdef Tensor zeros(int code):
    cdef int64_t none = 0
    cdef Tensor t = empty_tensor(code, 0, &none)
    zero(t)
    return t


cdef Tensor back(Tensor out, int code, int nd):
    """The result with the caller's number of dimensions and dtype."""
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


# ---- the functions ---------------------------------------------------------------------------------------------------


cdef int read_tuple(object values, int64_t* to, int nd, int64_t missing) except -1:
    """A tuple of ``nd`` numbers as three numbers."""
    cdef int n
    for n in range(3 - nd):
        to[n] = missing
    try:
        for n in range(nd):
            to[3 - nd + n] = values[n]
    except OverflowError:
        raise RuntimeError(f"convolution: expected numbers that fit 64 bits, got {values}") from None
    return 0


cdef bint read_ints(object value, int64_t* to, int nd, int64_t missing) except -1:
    """An int or a tuple of ``nd`` ints as three numbers; False for anything else."""
    cdef int64_t x
    cdef int n
    if PyLong_CheckExact(value):
        try:
            x = value
        except OverflowError:
            raise ValueError(f"convolution: expected a number that fits 64 bits, got {value}") from None
        for n in range(3):
            to[n] = x if n >= 3 - nd else missing
        return True
    if not PyTuple_CheckExact(value) or len(<tuple>value) != nd:
        return False
    for n in range(nd):
        if not PyLong_CheckExact((<tuple>value)[n]):
            return False
    read_tuple(value, to, nd, missing)
    return True


cdef enum:
    MOST_STEP = 0x7FFFFFFF  # strides, paddings and dilations that kernels can add and multiply


cdef int shorten_steps(Geometry* g) except -1:
    """Make all steps short enough for kernels.

    The distance from the only window, or the only tap, to the next one is of no interest: it becomes 1.
    """
    cdef int n
    for n in range(3):
        if max(g.s[n], g.p[n], g.d[n]) <= MOST_STEP:
            continue
        if g.o[n] == 1:
            g.s[n] = 1
        if g.k[n] == 1:
            g.d[n] = 1
        if max(g.s[n], g.p[n], g.d[n]) > MOST_STEP:
            raise RuntimeError(f"convolution: expected stride, padding and dilation of less than 2**31, got stride="
                               f"{g.s[n]}, padding={g.p[n]}, dilation={g.d[n]}")
    return 0


def convolution(int nd, Tensor input, Tensor weight, object bias, object stride, object padding, object dilation,
                object groups):
    """The common case of a convolution: a batch, one real dtype, numbers that fit. Else None."""
    cdef Geometry g
    cdef int n
    cdef int64_t parts
    if (input.nd != nd + 2 or weight.nd != nd + 2 or input.code != weight.code or KIND[input.code] == 3
        or input.code == BOOL):
        return None
    if not PyLong_CheckExact(groups):
        return None
    parts = groups
    if parts < 1 or input.sizes[1] != weight.sizes[1] * parts or weight.sizes[0] % parts:
        return None
    if not (read_ints(stride, g.s, nd, 1) and read_ints(padding, g.p, nd, 0) and read_ints(dilation, g.d, nd, 1)):
        return None
    for n in range(3):
        g.i[n] = g.k[n] = g.o[n] = 1
        if n < 3 - nd:
            continue
        g.i[n], g.k[n] = input.sizes[2 + n - (3 - nd)], weight.sizes[2 + n - (3 - nd)]
        if max(g.s[n], g.p[n], g.d[n]) > MOST_STEP:
            return None
        if g.s[n] < 1 or g.p[n] < 0 or g.d[n] < 1 or g.i[n] + 2 * g.p[n] < g.d[n] * (g.k[n] - 1) + 1:
            return None
        g.o[n] = (g.i[n] + 2 * g.p[n] - g.d[n] * (g.k[n] - 1) - 1) // g.s[n] + 1
    if bias is not None and (not isinstance(bias, Tensor) or (<Tensor>bias).code != input.code
                             or (<Tensor>bias).nd != 1 or (<Tensor>bias).sizes[0] != weight.sizes[0]):
        return None
    return outputs(&g, nd, input, weight, bias, parts)


cdef Tensor outputs(Geometry* g, int nd, Tensor input, Tensor weight, Tensor bias, int64_t groups):
    cdef int64_t c = weight.sizes[1], m = weight.sizes[0] // groups, n
    cdef int64_t sizes[5]
    cdef Plan p
    cdef Tensor x, out
    cdef Weights w
    cdef bint last, transposed
    g.taps = g.pixels = 1
    for n in range(3):
        g.taps *= g.k[n]
        g.pixels *= g.o[n]
    p = plan_of(FORWARD, g, input.code, weight.code, input.sizes[0], groups, c, m)
    x = in_plan_format(input, &p, groups)
    if not p.pairs and x.count and strided_points(g, c, m):
        x = every_pixel(g, x)
    w = weights_of(grouped(cast_image(weight, p.weights), groups), g, False)
    if bias is not None:
        bias = contiguous_tensor(cast(bias, p.bias))
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = x.sizes[0], weight.sizes[0], g.o[0], g.o[1], g.o[2]
    last = is_last(input) or is_last(weight)
    transposed = not last and transposes_groups(&p, c, m)
    out = empty_last(p.result, 5, sizes) if last or transposed else empty_tensor(p.result, 5, sizes)
    if p.images == BF16 and p.bias == BF16 and g.taps == 1 and not pointwise(g, x, out, c):
        x = contiguous_tensor(x)
    convolve(algorithm_of(g, &p, x, out, w, True), g, x, w, bias, out, NULL, 0)
    return back(contiguous_tensor(out) if transposed else out, p.back, nd)


def forward(Tensor input, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding, tuple dilation,
            int64_t groups):
    """Convolution of ``input [n, c, ...]`` with ``weight [m, c / groups, ...]`` to ``[n, m, *size]``."""
    cdef int nd = input.nd - 2, n
    cdef Geometry g
    read_tuple(size, g.o, nd, 1)
    read_tuple(stride, g.s, nd, 1)
    read_tuple(padding, g.p, nd, 0)
    read_tuple(dilation, g.d, nd, 1)
    for n in range(3):
        g.i[n] = g.k[n] = 1
        if n >= 3 - nd:
            g.i[n], g.k[n] = input.sizes[2 + n - (3 - nd)], weight.sizes[2 + n - (3 - nd)]
    shorten_steps(&g)
    return outputs(&g, nd, input, weight, bias, groups)


cdef void phase_of(Phase* to, Geometry* whole, Tensor x, int64_t index) noexcept:
    """Fill in phase ``index`` of the gradient of the input of ``whole`` from ``x``."""
    cdef Geometry* g = &to.g
    cdef int64_t n, k
    to.at[0] = index // (whole.s[1] * whole.s[2])
    to.at[1], to.at[2] = index // whole.s[2] % whole.s[1], index % whole.s[2]
    g.taps = g.pixels = 1
    for n in range(3):
        # Positions at, at + s, ... meet the taps k with (at + p - k d) divisible by s.
        g.o[n] = ceil_div(whole.i[n] - to.at[n], whole.s[n]) if whole.i[n] > to.at[n] else 0
        to.every[n] = whole.s[n] // gcd(whole.s[n], whole.d[n])
        to.first[n] = -1
        for k in range(min(to.every[n], whole.k[n])):
            if (to.at[n] + whole.p[n] - k * whole.d[n]) % whole.s[n] == 0:
                to.first[n] = k
                break
        g.i[n], g.s[n] = x.sizes[2 + n], 1
        g.k[n] = 0 if to.first[n] < 0 else ceil_div(whole.k[n] - to.first[n], to.every[n])
        g.d[n] = -(whole.d[n] * to.every[n] // whole.s[n])
        g.p[n] = 0 if to.first[n] < 0 else -((to.at[n] + whole.p[n] - to.first[n] * whole.d[n]) // whole.s[n])
        g.taps *= g.k[n]
        g.pixels *= g.o[n]


cdef Tensor positions(Tensor out, Geometry* whole, Phase* phase, int64_t columns):
    """The positions of a phase in ``out``, a view; if ``columns`` is not 0, all columns from the phase before on."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int64_t n, offset = 0
    for n in range(2):
        sizes[n], strides[n] = out.sizes[n], out.strides[n]
    for n in range(3):
        sizes[2 + n], strides[2 + n] = phase.g.o[n], out.strides[2 + n] * whole.s[n]
        offset += phase.at[n] * out.strides[2 + n]
    if columns:
        sizes[4], strides[4] = columns, out.strides[4]
        offset -= out.strides[4]
    return alias_tensor(out, 5, sizes, strides, offset)


def input_gradient(Tensor grad, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding,
                   tuple dilation,
                   int64_t groups):
    """Gradient of the input, of spatial sizes ``size``, from that of the output; also the transposed convolution."""
    cdef int64_t m = weight.sizes[0] // groups, c = weight.sizes[1], phases = 1, index, n, nd = grad.nd - 2
    cdef int64_t sizes[5]
    cdef Geometry whole
    cdef Phase phase
    cdef Plan p
    cdef Algorithm algorithm
    cdef Weights w
    cdef Tensor x = spatial(grad, 2), w5 = spatial(weight, 2), out, part, columns = None
    cdef bint paired, direct, last = is_last(grad) or is_last(weight), transposed
    read_tuple(size, whole.i, nd, 1)
    read_tuple(stride, whole.s, nd, 1)
    read_tuple(padding, whole.p, nd, 0)
    read_tuple(dilation, whole.d, nd, 1)
    sizes[0], sizes[1] = grad.sizes[0], groups * c
    whole.taps = whole.pixels = 1
    for n in range(3):
        whole.k[n], whole.o[n], sizes[2 + n] = w5.sizes[2 + n], x.sizes[2 + n], whole.i[n]
        whole.taps *= whole.k[n]
        whole.pixels *= whole.o[n]
    shorten_steps(&whole)
    for n in range(3):
        phases *= whole.s[n]
    p = plan_of(INPUT, &whole, grad.code, weight.code, grad.sizes[0], groups, m, c)
    x = in_plan_format(grad, &p, groups)
    if bias is not None:
        bias = contiguous_tensor(cast(bias, p.bias))
    transposed = not last and transposes_groups(&p, c, m)
    last = last or transposed
    out = empty_last(p.result, 5, sizes) if last else empty_tensor(p.result, 5, sizes)
    if out.count == 0:
        return back(out, p.back, nd)
    w = weights_of(grouped(cast_image(weight, p.weights), groups), &whole, True)
    if allowed(WHOLE) and whole_kernel(&whole, c, m):
        part = empty_tensor(p.result, 5, sizes)
        whole_gradient(x, w.given, bias, part, groups)
        if last:
            copy_into(out, part)
        return back(out if last else part, p.back, nd)
    if (allowed(SPREAD) and meets_once(&whole) and not last and not p.pairs and p.images == p.weights
            and not is_depthwise(m, c)):
        spread_product(&whole, x, w.given, bias, out)
        return back(out, p.back, nd)
    if p.images == BF16 and p.bias == BF16 and not channels_last(x):
        x = contiguous_tensor(x)
    if p.images != p.weights and last and x.strides[1] != 1:
        x = to_last(x)
    if allowed(FIRST_CHANNELS) and (not last and is_depthwise(c, m) or not p.pairs and few_outputs(&whole, c)
                                    and not (last and c == m)):
        part = empty_tensor(p.result, 5, sizes) if last else out
        depthwise_back(&whole, contiguous_tensor(x) if channels_last(x) else x, w.given, bias, part)
        if last:
            copy_into(out, part)
        return back(out, p.back, nd)
    if phases > 1 and allowed(TOGETHER) and (p.pairs or not one_lane()) and (p.pairs or p.images == p.weights
                       and not is_last_depthwise(&whole, x, out, m, c)) and fills_phases(
            &whole, x, groups, m, c):
        convolve_phases(&whole, x, w, bias, out)
        return back(out, p.back, nd)
    # Even and odd columns of the result are interleaved in one pass: one at a time they would be written item by item.
    paired = whole.s[2] == 2 and whole.i[2] > 1 and not last
    for index in range(phases):
        phase_of(&phase, &whole, x, index)
        if phase.g.pixels == 0:
            continue
        # Channels last: also into every second pixel.
        direct = phases == 1 or phase.g.taps > 0 and last and not p.pairs and not is_half(p.weights) and (
            allowed(LAST_CHANNELS) and is_last_depthwise(&phase.g, x, out, m, c))
        if direct:
            part = out if phases == 1 else positions(out, &whole, &phase, 0)
        else:
            for n in range(3):
                sizes[2 + n] = phase.g.o[n]
            part = empty_last(p.result, 5, sizes) if last else empty_tensor(p.result, 5, sizes)
        algorithm = algorithm_of(&phase.g, &p, x, part, w, phases == 1)
        if phases > PHASES:
            convolve(algorithm, &phase.g, x, w.in_order(&phase), bias, part, NULL, 0)
        else:
            convolve(algorithm, &phase.g, x, w, bias, part, &phase, index)
        if paired and phase.at[2] == 0:
            columns = part
        elif paired:
            interleave(positions(out, &whole, &phase, whole.i[2]), columns, part)
        elif not direct:
            copy_into(positions(out, &whole, &phase, 0), part)
    return back(contiguous_tensor(out) if transposed else out, p.back, nd)


def weight_gradient(Tensor input, Tensor grad, tuple kernel, tuple stride, tuple padding, tuple dilation,
                    int64_t groups):
    """Gradient of the weights ``[m, c / groups, *kernel]``, as partial sums ``[part, ...]`` of as many elements
    each."""
    cdef Geometry g
    cdef int64_t sizes[4]
    cdef int64_t images = input.sizes[0], c = input.sizes[1] // groups, m = grad.sizes[1] // groups, nd = input.nd - 2
    cdef int64_t n
    cdef Plan p
    cdef Tensor x = spatial(input, 2), y = spatial(grad, 2), out
    read_tuple(kernel, g.k, nd, 1)
    read_tuple(stride, g.s, nd, 1)
    read_tuple(padding, g.p, nd, 0)
    read_tuple(dilation, g.d, nd, 1)
    g.taps = g.pixels = 1
    for n in range(3):
        g.i[n], g.o[n] = x.sizes[2 + n], y.sizes[2 + n]
        g.taps *= g.k[n]
        g.pixels *= g.o[n]
    shorten_steps(&g)
    p = plan_of(WEIGHTS, &g, input.code, grad.code, images, groups, c, m)
    x, y = spatial(cast_image(input, p.images), 2), spatial(cast_image(grad, p.images), 2)
    if x.count == 0 or y.count == 0 or g.taps == 0:
        sizes[0], sizes[1], sizes[2], sizes[3] = 1, groups, c * g.taps, m
        out = empty_tensor(p.images, 4, sizes)
        zero(out)
        return transposed_back(out)
    if allowed(WHOLE) and whole_kernel(&g, c, m):
        return whole_weights(x, y, groups)
    if strided_points(&g, c, m):
        x = every_pixel(&g, x)
    if p.pairs:
        return windows_gradient(&g, image_pairs(x), image_pairs(y), groups, True)
    # Windows share more loads in groups that fill a vector.
    if allowed(LAST_CHANNELS) and 1 < c < last_lanes(compute_code(x.code)) and is_last_depthwise(&g, x, y, c, m):
        return depthwise_last_gradient(&g, x, y, c)
    if allowed(FIRST_CHANNELS) and is_depthwise(c, m):
        return depthwise_gradient(&g, x, y, groups, m)
    if allowed(NARROW_POINTS) and narrow_points(&g, x, y, groups):
        return narrow_gradient(&g, x, y)
    if one_lane() or is_half(x.code):
        return unfolded_gradient(&g, contiguous_tensor(x) if channels_last(x) else x, contiguous_tensor(y), groups)
    if allowed(WINOGRAD) and is_winograd(&g, x.code, images, groups, c, m):
        return winograd_gradient(&g, x, y)
    # Here a laid-out volume pays for few outputs as well.
    if allowed(WINDOWS) and by_windows(&g, images, groups, c, max(m, <int64_t>5) if m >= 3 or reads_points(&g) else m):
        return windows_gradient(&g, x, y, groups)
    return unfolded_gradient(&g, contiguous_tensor(x) if channels_last(x) else x, contiguous_tensor(y), groups)


cdef Tensor depthwise_gradient(Geometry* g, Tensor x, Tensor y, int64_t groups, int64_t m):
    """The weights' gradient with one input channel per group, in the memory format of x and y."""
    cdef bint last = m == 1 and (is_last(x) or is_last(y))
    if last:
        x, y = x if x.strides[1] == 1 else to_last(x), y if y.strides[1] == 1 else to_last(y)
    if allowed(LAST_CHANNELS) and is_last_depthwise(g, x, y, 1, m):
        return depthwise_last_gradient(g, x, y, 1)
    return depthwise_weight_gradient(g, x, contiguous_tensor(y), groups, m)


def leave_out(names):
    """From now on convolutions do without these algorithms (`NAMES_OF_ALGORITHMS`), of any thread. Gives the names that
    were left out before.

    Where all that may be left out are, everything is unfolded. Plans that ops have made already are not changed.
    """
    global LEFT_OUT
    before = tuple([name for i, name in enumerate(NAMES_OF_ALGORITHMS) if LEFT_OUT >> i & 1])
    LEFT_OUT = 0
    for name in names:
        if name in ("nothing", "no taps", "unfolded") or name not in NAMES_OF_ALGORITHMS:
            raise ValueError(f"leave_out: expected an algorithm that others can stand for, got {name!r}")
        LEFT_OUT |= <int64_t>1 << <int>NAMES_OF_ALGORITHMS.index(name)
    return before
