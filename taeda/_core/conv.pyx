"""Launcher of convolutions: sizes, blocks and tasks. Three spatial dimensions cover one and two as well.

``forward``, ``input_gradient`` and ``weight_gradient`` take tensors of any strides. The gradient of the input with a
stride above one is computed phase by phase: the input positions that meet the same taps form a convolution of stride
one.

A ``Convolution`` is one call: its sizes and its tensors, in the ``Format`` that ``format_of`` chooses. The table of
algorithms says for each in which calls it is used, and runs it.
"""

cimport cython
from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from .devices cimport MOST_DEVICES, elsewhere, here, kernel_place
from .dims cimport ceil_div
from .gemm cimport Blocks, Matrix, Product, blocks, cast, compute_code, has_halves, multiply, one_lane
from .geometry cimport FEW_BLOCKS, LARGE_WEIGHTS, Geometry, cast_image, even, spatial, whole_planes
from .formats cimport empty_last, in_order, is_last
from .kernel_args cimport (
    DepthwiseArgs, DepthwiseWeightArgs, LastArgs, PairArgs, PanelArgs, Volume, WindowsArgs, WindowsShape,
    WindowsWeightArgs,
)
from .planners cimport TRANSPOSE_GROUPS, build, host_function, known, new_owner, of_dtype
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

from .devices import REGISTERED
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

cdef enum Role:
    FORWARD = 1          # a convolution, or a phase of its input's gradient
    INPUT = 2            # the input's gradient
    WEIGHTS = 4

cdef enum Format:        # of the tensors that kernels take
    SAME = 1             # all of the dtype of the sums
    SHORT = 2            # all of 16 bits
    WIDENED = 4          # images of 16 bits, weights of float32: kernels widen images in registers
    PAIRED = 8           # pairs of 16-bit floats: of channels, or of images for the weights' gradient
    CHANNELS_FIRST = 16  # of images that are contiguous

include "conv_weights.pxi"

@cython.final
@cython.freelist(4)
cdef class Convolution:
    """A convolution or gradient. ``c`` inputs and ``m`` outputs per group are those of the convolution that runs:
    exchanged for the input's gradient."""

    cdef Role role
    cdef Format format
    cdef int code            # of the caller's tensors
    cdef int64_t images, groups, c, m
    cdef Geometry g
    cdef Tensor x, y         # it reads x, and writes y; for the weights' gradient it reads both
    cdef Weights w
    cdef Tensor bias
    cdef Phase* phase        # of a gradient, with its number
    cdef int number
    cdef bint alone          # no phase, or the only one
    cdef bint last           # the result has channels last

    cdef Tensor ordered(self):
        """The weights ``[g, m, c, taps]`` of the phase."""
        return self.w.in_order(self.phase).given


include "depthwise.pxi"
include "windows.pxi"
include "bfloat16_pairs.pxi"
include "conv_products.pxi"


# ---- formats ---------------------------------------------------------------------------------------------------------


cdef Format format_of(Convolution a, int w_code) except *:
    """The format for ``w_code``, the dtype of the weights or, for their gradient, of the outputs' gradient."""
    cdef Geometry* g = &a.g
    if (ITEMSIZE[a.code] != 2 or w_code != a.code or compute_code(a.code) != F32 or a.c * g.taps == 0
            or a.images * g.pixels == 0):
        return SAME
    if has_halves():  # a device: depthwise convolutions and those of few outputs are of float32
        return SHORT if a.c > 1 and a.m > DEPTHWISE_MOST and g.taps <= FEW_TAPS else SAME
    if allowed(LAST_CHANNELS | FIRST_CHANNELS) and (
            short_depthwise(g, a.code, a.groups, a.c, a.m) and (a.c == 1 or a.role != WEIGHTS and a.c <= SHORT_GROUP)
            or a.role != WEIGHTS and a.m == 1 and few_outputs(g, a.m)):
        return WIDENED
    if short_engine(a.code) != "" and (allowed(WHOLE) and is_whole(a) or a.role != WEIGHTS and allowed(POINTS)
                                       and short_points(g, a.code, a.c, a.m)):
        return SHORT
    # For the weights' gradient, an image without a partner would be multiplied by zeros.
    if allowed(WINDOWS) and fills_pairs(g, a.code, a.images, a.groups, a.c, a.m) and (
            a.images > 1 if a.role == WEIGHTS else a.role == FORWARD or g.s[0] * g.s[1] * g.s[2] <= PHASES):
        return PAIRED
    return SAME


cdef inline int image_code(Convolution a):
    return compute_code(a.code) if a.format == SAME else a.code


cdef inline int weight_code(Convolution a):
    return compute_code(a.code) if a.format == WIDENED else image_code(a)


cdef bint transposes_groups(Convolution a) noexcept:
    """Whether 16-bit images with channels first are transposed for the kernels of small groups, which take channels
    last."""
    return a.format == WIDENED and a.c == a.m > 1


# ---- the algorithms --------------------------------------------------------------------------------------------------


cdef bint is_whole(Convolution a) except -1:
    return whole_kernel(&a.g, a.m, a.c) if a.role == INPUT else whole_kernel(&a.g, a.c, a.m)


cdef bint is_points(Convolution a) except -1:
    # Weights of one of many taps would have to be gathered.
    return pointwise(&a.g, a.x, a.y, a.c) and not (
        a.w.transposed and a.w.whole.taps > 1 and allowed(WINDOWS) and is_windows(a))


cdef bint is_last_channels(Convolution a) except -1:
    if a.format == WIDENED and a.role == FORWARD:
        return a.y.strides[1] == 1 and (a.c == 1 or a.m == a.c)
    # For the weights' gradient, windows share more loads in groups that fill a vector.
    return (a.role == FORWARD or a.c == 1 or a.c < last_lanes(compute_code(a.x.code))) and is_last_depthwise(
        &a.g, a.x, a.y, a.c, a.m)


cdef bint is_first_channels(Convolution a) except -1:
    if a.role == INPUT:
        return not a.last and is_depthwise(a.m, a.c) or few_outputs(&a.g, a.m) and not (a.last and a.c == a.m)
    return is_depthwise(a.c, a.m) or a.role == FORWARD and (a.format == WIDENED or few_outputs(&a.g, a.m))


cdef bint takes_winograd(Convolution a) except -1:
    return a.alone and not one_lane() and is_winograd(&a.g, a.x.code, a.images, a.groups, a.c, a.m)


cdef bint is_windows(Convolution a) except -1:
    cdef int64_t m = a.m
    if a.role == WEIGHTS and (m >= 3 or reads_points(&a.g)):  # here a laid-out volume pays for few outputs as well
        m = max(m, <int64_t>5)
    return a.format == PAIRED or not one_lane() and by_windows(&a.g, a.images, a.groups, a.c, m,
                                                               a.alone and a.role == FORWARD)


cdef bint is_side_by_side(Convolution a) except -1:
    return not one_lane() and goes_side_by_side(&a.g, a.x.code, a.images, a.c, a.m)


cdef bint is_spread(Convolution a) except -1:
    return meets_once(&a.g) and not a.last and not is_depthwise(a.c, a.m)


cdef bint is_together(Convolution a) except -1:
    return (a.g.s[0] * a.g.s[1] * a.g.s[2] > 1 and (a.format == PAIRED or not one_lane() and not is_last_depthwise(
        &a.g, a.x, a.y, a.c, a.m)) and fills_phases(&a.g, a.x, a.groups, a.c, a.m))


cdef Tensor run_winograd(Convolution a):
    convolve_winograd(&a.g, a.x, address_of(a.w.given), a.w.to_output(), a.w.to_input(), a.bias, a.y)


cdef Tensor run_winograd_gradient(Convolution a):
    return winograd_gradient(&a.g, a.x, a.y)


cdef Tensor run_side_by_side(Convolution a):
    side_by_side(&a.g, a.x, a.ordered(), a.bias, a.y)


cdef Tensor run_unfolded(Convolution a):
    convolve_unfolded(&a.g, a.x, a.ordered(), a.bias, a.y)


cdef Tensor run_unfolded_gradient(Convolution a):
    return unfolded_gradient(&a.g, a.x, contiguous_tensor(a.y), a.groups)


# A convolution is run by the first row whose role is its own, whose formats include its own, and whose predicate holds
# or is NULL. Names with a predicate may be left out.
ctypedef bint (*fits_t)(Convolution a) except -1
ctypedef Tensor (*run_t)(Convolution a)   # gives the weights' gradient

cdef struct Row:
    int64_t name         # a bit for each name
    Role role
    int formats
    fits_t fits
    run_t run

cdef Row[32] ROWS
cdef int nrows = 0
cdef int64_t LEFT_OUT = 0    # names, see `leave_out`
#: The names of the algorithms that may be left out.
NAMES_OF_ALGORITHMS = []


cdef int64_t add(str name, Role role, int formats, fits_t fits, run_t run):
    global nrows
    if fits != NULL and name not in NAMES_OF_ALGORITHMS:
        NAMES_OF_ALGORITHMS.append(name)
    cdef int64_t bit = 0 if fits == NULL else <int64_t>1 << <int>NAMES_OF_ALGORITHMS.index(name)
    ROWS[nrows] = Row(bit, role, formats, fits, run)
    nrows += 1
    return bit


cdef int64_t WHOLE = add("whole", FORWARD, SAME | SHORT, is_whole, whole_product)
cdef int64_t POINTS = add("points", FORWARD, SAME | SHORT, is_points, points_product)
cdef int64_t LAST_CHANNELS = add("last channels", FORWARD, SAME | WIDENED, is_last_channels, depthwise_last)
cdef int64_t FIRST_CHANNELS = add("first channels", FORWARD, SAME | WIDENED | CHANNELS_FIRST, is_first_channels,
                                  depthwise)
add("winograd", FORWARD, SAME | CHANNELS_FIRST, takes_winograd, run_winograd)
cdef int64_t WINDOWS = add("windows", FORWARD, SAME | PAIRED, is_windows, convolve_windows)
add("side by side", FORWARD, SAME | CHANNELS_FIRST, is_side_by_side, run_side_by_side)
add("unfolded", FORWARD, SAME | SHORT | CHANNELS_FIRST, NULL, run_unfolded)

add("whole", INPUT, SAME | SHORT | CHANNELS_FIRST, is_whole, whole_gradient)
add("spread", INPUT, SAME | SHORT, is_spread, spread_product)
add("first channels", INPUT, SAME | WIDENED | CHANNELS_FIRST, is_first_channels, depthwise_back)
add("together", INPUT, SAME | PAIRED, is_together, convolve_phases)
add("phase by phase", INPUT, SAME | SHORT | WIDENED | PAIRED, NULL, run_phases)

add("whole", WEIGHTS, SAME | SHORT, is_whole, whole_weights)
add("last channels", WEIGHTS, SAME | WIDENED, is_last_channels, depthwise_last_gradient)
add("first channels", WEIGHTS, SAME | WIDENED, is_first_channels, depthwise_weight_gradient)
add("narrow points", WEIGHTS, SAME, narrow_points, narrow_gradient)
add("winograd", WEIGHTS, SAME, takes_winograd, run_winograd_gradient)
add("windows", WEIGHTS, SAME | PAIRED, is_windows, windows_gradient)
add("unfolded", WEIGHTS, SAME | SHORT | CHANNELS_FIRST, NULL, run_unfolded_gradient)


cdef inline bint allowed(int64_t names) noexcept:
    return not LEFT_OUT & names


def leave_out(names):
    """From now on convolutions do without these algorithms (`NAMES_OF_ALGORITHMS`), of any thread. Gives the names that
    were left out before.

    Without all of them, everything is unfolded. Plans that ops have made already are not changed.
    """
    global LEFT_OUT
    before = tuple([name for i, name in enumerate(NAMES_OF_ALGORITHMS) if LEFT_OUT >> i & 1])
    LEFT_OUT = 0
    for name in names:
        if name not in NAMES_OF_ALGORITHMS:
            raise ValueError(f"leave_out: expected an algorithm that others can stand for, got {name!r}")
        LEFT_OUT |= <int64_t>1 << <int>NAMES_OF_ALGORITHMS.index(name)
    return before


cdef Tensor convolve(Convolution a):
    """Run ``a``. Gives the gradient of the weights; all else is written to ``a.y``."""
    cdef Tensor y = a.y
    cdef Row* row = ROWS
    if a.role != WEIGHTS:
        if y.count == 0:
            return None
        if a.role == FORWARD and a.c * a.g.taps == 0:
            fill(y, a.bias)
            return None
    while not (row.role == a.role and row.formats & a.format and allowed(row.name)
               and (row.fits == NULL or row.fits(a))):
        row += 1
    if row.formats & CHANNELS_FIRST:
        if channels_last(a.x):
            a.x = contiguous_tensor(a.x)
        if a.role != WEIGHTS and channels_last(y):
            a.y = empty_tensor(y.code, 5, y.sizes)
    cdef Tensor made = row.run(a)
    if a.y is not y:
        copy_into(y, a.y)
        a.y = y
    return made


cdef int fill(Tensor out, Tensor bias) except -1:
    """The result of an empty sum: zero, or the bias."""
    copy_into(out, zeros(out.code) if bias is None else each_channel(bias, out))
    return 0


cdef Tensor each_channel(Tensor bias, Tensor out):
    """``bias`` with the sizes of ``out``."""
    cdef int64_t[5] strides = [0, bias.strides[0], 0, 0, 0]
    return alias_tensor(bias, 5, out.sizes, strides, 0)


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


cdef Tensor by_library(Convolution a, Tensor x, Tensor w, Tensor y):
    """A large convolution by a library of this thread's device: that of the image, the weights and the output which is
    None, with three spatial dimensions. None: the device has no library, or it cannot."""
    cdef Geometry* g = &a.g
    cdef int64_t c = a.c, m = a.m
    cdef int64_t sizes[5]
    cdef bint last = False
    cdef Tensor t, made = None
    contract = REGISTERED[here()]
    if (contract is None
            or <double>(a.images * a.groups) * c * m * g.taps * g.pixels < <double>contract.convolves_from):
        return None
    for t in (x, w, y):
        if t is not None:
            if t.code != a.code:
                return None
            last |= is_last(t)
    if a.role == INPUT:
        c, m = m, c
    shapes, operands = [], []
    for t, leading, space in ((x, (a.images, a.groups * c), <object>g.i), (w, (a.groups * m, c), <object>g.k),
                              (y, (a.images, a.groups * m), <object>g.o)):
        shape = (*leading, *space)
        sizes = shape
        if t is None:
            made = t = empty_last(a.code, 5, sizes) if last else empty_tensor(a.code, 5, sizes)
        t = spatial(t, 2)
        operands.append(contiguous_tensor(in_order(t, True) if last else t))
        shapes.append(shape)
    role = "input" if a.role == INPUT else "weights" if a.role == WEIGHTS else "forward"
    addresses = [<size_t>address_of(t) for t in operands]
    return made if contract.convolve(role, NAMES[a.code], shapes, addresses, last, g.s, g.p, g.d) else None


# ---- the functions ---------------------------------------------------------------------------------------------------


cdef int read_tuple(object values, int64_t* to, int nd, int64_t missing) except -1:
    """A tuple of ``nd`` numbers, or the spatial sizes of a tensor, as three numbers."""
    cdef int n
    for n in range(3 - nd):
        to[n] = missing
    if isinstance(values, Tensor):
        memcpy(to + 3 - nd, (<Tensor>values).sizes + 2, nd * 8)
        return 0
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


cdef int read_geometry(Geometry* g, int nd, object i, object o, object k, tuple stride, tuple padding,
                       tuple dilation) except -1:
    """Fill in ``g`` from tuples, or from the tensors that have such spatial sizes."""
    read_tuple(i, g.i, nd, 1)
    read_tuple(o, g.o, nd, 1)
    read_tuple(k, g.k, nd, 1)
    read_tuple(stride, g.s, nd, 1)
    read_tuple(padding, g.p, nd, 0)
    read_tuple(dilation, g.d, nd, 1)
    return shorten_steps(g)


cdef void count(Geometry* g) noexcept:
    cdef int n
    g.taps = g.pixels = 1
    for n in range(3):
        g.taps *= g.k[n]
        g.pixels *= g.o[n]


def convolution(int nd, Tensor input, Tensor weight, object bias, object stride, object padding, object dilation,
                int64_t groups, object end=0):
    """A convolution of a batch of one real dtype, by numbers or tuples of them. Else, or if the arguments do not fit,
    None.

    Args:
        end: how many more zeros are put after each dimension than before it, of less than ``dilation`` times the
            kernel's size.
    """
    cdef Convolution a = Convolution.__new__(Convolution)
    cdef Geometry* g = &a.g
    cdef int64_t[3] more
    cdef int n
    if (input.nd != nd + 2 or weight.nd != nd + 2 or input.code != weight.code or KIND[input.code] == 3
        or input.code == BOOL):
        return None
    if groups < 1 or input.sizes[1] != weight.sizes[1] * groups or weight.sizes[0] % groups:
        return None
    if not (read_ints(stride, g.s, nd, 1) and read_ints(padding, g.p, nd, 0) and read_ints(dilation, g.d, nd, 1)
            and read_ints(end, more, nd, 0)):
        return None
    read_tuple(input, g.i, nd, 1)
    read_tuple(weight, g.k, nd, 1)
    for n in range(3):
        if g.s[n] < 1 or g.p[n] < 0 or g.d[n] < 1 or g.p[n] > MOST_STEP or g.d[n] > MOST_STEP and g.k[n] != 1:
            return None
        more[n] += g.i[n] + 2 * g.p[n] - (g.d[n] * (g.k[n] - 1) + 1)
        if more[n] < 0:
            return None
        g.o[n] = more[n] // g.s[n] + 1
    shorten_steps(g)
    if bias is not None and (not isinstance(bias, Tensor) or (<Tensor>bias).code != input.code
                             or (<Tensor>bias).nd != 1 or (<Tensor>bias).sizes[0] != weight.sizes[0]):
        return None
    a.role, a.groups = FORWARD, groups
    return run_whole_images(a, input, weight, bias)


cdef Tensor run_whole_images(Convolution a, Tensor input, Tensor weight, Tensor bias):
    """The result of a convolution or of its input's gradient, for ``role``, ``g`` and ``groups``."""
    cdef int64_t c = weight.sizes[1], m = weight.sizes[0] // a.groups
    cdef int64_t sizes[5]
    cdef bint last = is_last(input) or is_last(weight)
    count(&a.g)
    a.code, a.images, a.alone = input.code, input.sizes[0], True
    a.c, a.m = (c, m) if a.role == FORWARD else (m, c)
    if elsewhere:
        a.y = by_library(a, input if a.role == FORWARD else None, weight, input if a.role == INPUT else None)
        if a.y is not None:
            return back(a.y if bias is None else a.y.add_(each_channel(bias, a.y)), a.code, input.nd - 2)
    a.format = format_of(a, weight.code)
    a.x = channel_pairs(spatial(input, 2), a.groups) if a.format == PAIRED else spatial(
        cast_image(input, image_code(a)), 2)
    sizes[0], sizes[1] = a.images, a.groups * a.m
    memcpy(sizes + 2, &a.g.o[0] if a.role == FORWARD else &a.g.i[0], 3 * 8)
    a.last = last or transposes_groups(a)
    a.y = empty_last(image_code(a), 5, sizes) if a.last else empty_tensor(image_code(a), 5, sizes)
    if a.y.count:
        if a.role == FORWARD and a.format != PAIRED and a.x.count and strided_points(&a.g, c, m):
            a.x = every_pixel(&a.g, a.x)
        a.w = weights_of(grouped(cast_image(weight, weight_code(a)), a.groups), &a.g, a.role == INPUT)
        if bias is not None:
            a.bias = contiguous_tensor(cast(bias, a.code if a.format == SHORT else compute_code(a.code)))
        if a.format == SHORT and a.role == FORWARD and a.g.taps == 1 and not pointwise(&a.g, a.x, a.y, c):
            a.x = contiguous_tensor(a.x)
        if a.format == WIDENED and a.role == INPUT and a.last and a.x.strides[1] != 1:
            a.x = to_last(a.x)
        convolve(a)
    return back(a.y if last == a.last else contiguous_tensor(a.y), a.code, input.nd - 2)


def forward(Tensor input, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding, tuple dilation,
            int64_t groups):
    """Convolution of ``input [n, c, ...]`` with ``weight [m, c / groups, ...]`` to ``[n, m, *size]``."""
    cdef Convolution a = Convolution.__new__(Convolution)
    a.role, a.groups = FORWARD, groups
    read_geometry(&a.g, input.nd - 2, input, size, weight, stride, padding, dilation)
    return run_whole_images(a, input, weight, bias)


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


cdef Tensor run_phases(Convolution a):
    """The input's gradient, one phase at a time."""
    cdef Geometry* whole = &a.g
    cdef int64_t phases = whole.s[0] * whole.s[1] * whole.s[2], index
    cdef int64_t sizes[5]
    cdef Phase phase
    cdef Convolution one
    cdef Tensor columns = None
    cdef bint direct
    # Even and odd columns of the result are interleaved in one pass: one at a time they would be written item by item.
    cdef bint paired = whole.s[2] == 2 and whole.i[2] > 1 and not a.last
    if a.format == SHORT and not channels_last(a.x):
        a.x = contiguous_tensor(a.x)
    for index in range(phases):
        phase_of(&phase, whole, a.x, index)
        if phase.g.pixels == 0:
            continue
        # Channels last: also into every second pixel.
        direct = phases == 1 or phase.g.taps > 0 and a.last and not a.format & (PAIRED | SHORT) and (
            allowed(LAST_CHANNELS) and is_last_depthwise(&phase.g, a.x, a.y, a.c, a.m))
        one = Convolution.__new__(Convolution)
        one.role, one.format, one.images, one.groups, one.c, one.m = FORWARD, a.format, a.images, a.groups, a.c, a.m
        one.g, one.x, one.bias, one.alone = phase.g, a.x, a.bias, phases == 1
        if direct:
            one.y = a.y if phases == 1 else positions(a.y, whole, &phase, 0)
        else:
            memcpy(sizes, a.y.sizes, 2 * 8)
            memcpy(sizes + 2, phase.g.o, 3 * 8)
            one.y = empty_last(a.y.code, 5, sizes) if a.last else empty_tensor(a.y.code, 5, sizes)
        one.w, one.phase, one.number = a.w, &phase, index
        if phases > PHASES:
            one.w, one.phase, one.number = a.w.in_order(&phase), NULL, 0
        convolve(one)
        if paired and phase.at[2] == 0:
            columns = one.y
        elif paired:
            interleave(positions(a.y, whole, &phase, whole.i[2]), columns, one.y)
        elif not direct:
            copy_into(positions(a.y, whole, &phase, 0), one.y)


def input_gradient(Tensor grad, Tensor weight, Tensor bias or None, tuple size, tuple stride, tuple padding,
                   tuple dilation,
                   int64_t groups):
    """Gradient of the input, of spatial sizes ``size``, from that of the output; also the transposed convolution."""
    cdef Convolution a = Convolution.__new__(Convolution)
    a.role, a.groups = INPUT, groups
    read_geometry(&a.g, grad.nd - 2, size, grad, weight, stride, padding, dilation)
    return run_whole_images(a, grad, weight, bias)


def weight_gradient(Tensor input, Tensor grad, tuple kernel, tuple stride, tuple padding, tuple dilation,
                    int64_t groups):
    """Gradient of the weights ``[m, c / groups, *kernel]``, as partial sums ``[part, ...]`` of as many elements
    each."""
    cdef Convolution a = Convolution.__new__(Convolution)
    cdef int64_t sizes[4]
    cdef Tensor out
    read_geometry(&a.g, input.nd - 2, input, grad, kernel, stride, padding, dilation)
    count(&a.g)
    a.role, a.groups, a.code, a.images, a.alone = WEIGHTS, groups, input.code, input.sizes[0], True
    a.c, a.m = input.sizes[1] // groups, grad.sizes[1] // groups
    if elsewhere:
        out = by_library(a, input, None, grad)
        if out is not None:
            return (<object>out).unsqueeze(0)
    a.format = format_of(a, grad.code)
    a.x, a.y = spatial(cast_image(input, image_code(a)), 2), spatial(cast_image(grad, image_code(a)), 2)
    if a.x.count == 0 or a.y.count == 0 or a.g.taps == 0:
        sizes[0], sizes[1], sizes[2], sizes[3] = 1, groups, a.c * a.g.taps, a.m
        out = empty_tensor(image_code(a), 4, sizes)
        zero(out)
        return transposed_back(out)
    if strided_points(&a.g, a.c, a.m):
        a.x = every_pixel(&a.g, a.x)
    if a.c == 1 and a.m == 1 and (is_last(a.x) or is_last(a.y)):
        a.x, a.y = [t if (<Tensor>t).strides[1] == 1 else to_last(t) for t in (a.x, a.y)]
    return convolve(a)
