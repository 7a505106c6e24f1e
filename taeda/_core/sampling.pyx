"""Random tensors: distributions into tensors of any layout, permutations, samples. ``random.pyx`` makes the numbers."""

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_CheckExact
from cpython.tuple cimport PyTuple_Check
from libc.math cimport INFINITY, ceil, exp, fabs, floor, lgamma, log, log1p, pow, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from .devices cimport CPU_NUMBER, META_NUMBER, elsewhere, here, swap_place
from .memory cimport allocate, only_plans, release
from .planners cimport build, known, new_owner, of_arguments
from .pool cimport UNHEARD, Watch, heed, kernel_t, watch
from .random cimport (
    BERNOULLI, BLOCKS, INTEGERS, LIGHT, NORMAL, SOME, UNIFORM, WIDE_INTEGERS, Generator, enter, fill_memory, fill_pairs,
    draw_by_counter, find, is_draw_planned, leave, next_normal, next_unit, run_steps, shuffle, stream_of, which,
)
from .tensor cimport (
    DOMAIN, F32, F64, FLOAT8, I64, ITEMSIZE, MAXDIM, Tensor, address_of, alias_tensor, copy_into, dtype,
    empty_strided_like, empty_tensor, scalar_code, to_host,
)

from .machine import stream_bytes
from .random import DISTRIBUTIONS
from .tensor import DTYPE_NAMES

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1

cdef enum:
    NARROW = 1 << 28      # from this range on, an integer takes two words


# ---- places ----------------------------------------------------------------------------------------------------------
cdef bint drawn_elsewhere(function, Tensor out, tuple given) except -1:
    """Numbers that the host draws one by one: whether the call is done with, as this thread plans, or as ``out`` is on
    a device and was given what ``function(tensor, *given)`` put into a tensor on the CPU."""
    cdef Tensor made
    if here() <= META_NUMBER:
        return only_plans(b"numbers are drawn")
    cdef int number = swap_place(CPU_NUMBER)
    try:
        made = empty_tensor(out.code, out.nd, out.sizes)
        function(made, *[to_host(x) if isinstance(x, Tensor) else x for x in given])
        copy_into(out, made)
    finally:
        swap_place(number)
    return True


# ---- filling ---------------------------------------------------------------------------------------------------------
cdef Tensor in_memory_order(Tensor t):
    """A view with the dimensions sorted by stride, the largest first: the order in which PyTorch fills a tensor."""
    cdef int64_t sizes[MAXDIM]
    cdef int64_t strides[MAXDIM]
    cdef int i, k, n = t.nd
    if t.contiguous:
        return t
    for i in range(n):
        k = i
        while k > 0 and (strides[k - 1] < t.strides[i] or sizes[k - 1] == 1) and t.sizes[i] != 1:
            strides[k] = strides[k - 1]
            sizes[k] = sizes[k - 1]
            k -= 1
        strides[k] = t.strides[i]
        sizes[k] = t.sizes[i]
    return alias_tensor(t, n, sizes, strides, 0)


def memory_order(Tensor t):
    """The dimensions of ``t``, those with the largest strides first."""
    return tuple(sorted(range(t.nd), key=lambda i: (-t.strides[i], i)))


cdef inline int64_t bits_of(double x) noexcept:
    cdef int64_t bits
    memcpy(&bits, &x, 8)
    return bits


cdef int fill_tensor(Tensor t, int distribution, int64_t a, int64_t b, object generator) except -1:
    cdef Tensor view, block
    if t.contiguous:
        fill_memory(which(generator), distribution, t.code, address_of(t), t.count, a, b)
        return 0
    view = in_memory_order(t)
    block = view if view.contiguous else empty_tensor(t.code, view.nd, view.sizes)
    fill_memory(which(generator), distribution, t.code, address_of(block), block.count, a, b)
    if block is not view:
        copy_into(view, block)
    return 0


def fill(Tensor t, str name, a, b, generator=None):
    """Fill ``t`` with a distribution: the name and the two arguments of a kernel of ``kernels/random.py``."""
    if name == "integers" or name == "wide_integers":
        fill_tensor(t, DISTRIBUTIONS[name], a, b, generator)
    else:
        fill_tensor(t, DISTRIBUTIONS[name], bits_of(a), bits_of(b), generator)


def fill_normal(Tensor t, double mean, double std, generator=None, bint exponent=False):
    """Fill ``t`` with normal numbers, or with their exponentials.

    As in PyTorch, at least 16 contiguous elements are made in blocks in the precision of ``t``. All others are made in
    pairs in float64, and one of a pair may wait in the generator for the next call.
    """
    cdef Generator g = which(generator)
    cdef Tensor view, block
    cdef int code
    if DOMAIN[t.code] == FLOAT8:
        raise NotImplementedError(f"normal_: not implemented for {t.dtype}; fill a float32 tensor and convert it")
    if not exponent and t.contiguous and t.count >= 16:
        fill_memory(g, NORMAL, t.code, address_of(t), t.count, bits_of(mean), bits_of(std))
        return
    view = in_memory_order(t)
    code = F64 if t.code == F64 else F32
    block = view if view.contiguous and t.code == code else empty_tensor(code, view.nd, view.sizes)
    fill_pairs(g, code, address_of(block), block.count, mean, std, exponent)
    if block is not view:
        copy_into(view, block)


# ---- bodies of ops ---------------------------------------------------------------------------------------------------
#: Bodies in Python, by the op's name: they check everything and take every dtype and layout.
SLOW = {}


cdef inline bint plain_float(Tensor t) noexcept:
    return t.contiguous and (t.code == F32 or t.code == F64)


cdef inline bint is_real(object x) noexcept:
    return PyFloat_CheckExact(x) or PyLong_CheckExact(x)


def uniform_(Tensor input, from_, to, *, generator=None):
    """The common case of ``uniform_``."""
    cdef double low, high
    if plain_float(input) and is_real(from_) and is_real(to):
        low, high = from_, to
        if low <= high and high - low < 1e38:
            fill_memory(which(generator), UNIFORM, input.code, address_of(input), input.count, bits_of(low),
                        bits_of(high))
            return
    SLOW["uniform_"](input, from_, to, generator=generator)


def normal_(Tensor input, mean, std, *, generator=None):
    """The common case of ``normal_``."""
    if plain_float(input) and is_real(mean) and is_real(std) and std >= 0:
        fill_normal(input, mean, std, generator)
    else:
        SLOW["normal_"](input, mean, std, generator=generator)


def bernoulli_(Tensor input, p, *, generator=None):
    """The common case of ``bernoulli_``."""
    if plain_float(input) and PyFloat_CheckExact(p) and 0 <= PyFloat_AS_DOUBLE(p) <= 1:
        fill_memory(which(generator), BERNOULLI, input.code, address_of(input), input.count, bits_of(p), bits_of(1.0))
    else:
        SLOW["bernoulli_"](input, p, generator=generator)


def random_(Tensor input, from_, to, *, generator=None):
    """The common case of ``random_``: a range of int64, or a small one of floats."""
    cdef int64_t low, high
    cdef int overflow = 0
    cdef object first = 0 if to is ... else from_, last = from_ if to is ... else to
    cdef bint floats = input.code == F32 or input.code == F64
    if input.contiguous and (floats or input.code == I64) and PyLong_CheckExact(first) and PyLong_CheckExact(last):
        low = PyLong_AsLongLongAndOverflow(first, &overflow)
        if not overflow:
            high = PyLong_AsLongLongAndOverflow(last, &overflow)
        if not overflow and low < high:
            if low > -NARROW and high < NARROW and high - low < NARROW:
                fill_memory(which(generator), INTEGERS, input.code, address_of(input), input.count, low, high - low)
                return
            if not floats and <uint64_t>high - <uint64_t>low >= NARROW:
                fill_memory(which(generator), WIDE_INTEGERS, I64, address_of(input), input.count, low,
                            <int64_t>(<uint64_t>high - <uint64_t>low))
                return
    SLOW["random_"](input, from_, to, generator=generator)


cdef uint64_t DROPOUT = new_owner("random.dropout")
cdef int64_t STREAM_BYTES = stream_bytes()


cdef int draw_with(Generator g, kernel_t fn, char** base, int64_t* strides, int nptr, int64_t steps, int64_t* arg,
                   int64_t words) except -1:
    """Run ``fn`` on numbers of ``g``, of which each step takes so many ``words``."""
    cdef uint32_t* buffer = <uint32_t*>allocate((SOME + BLOCKS) * 4)
    if buffer == NULL:
        raise MemoryError()
    enter(g)
    try:
        with nogil:
            run_steps(g, fn, base, strides, nptr, steps, arg, words, LIGHT, buffer)
    finally:
        leave(g)
        release(buffer, (SOME + BLOCKS) * 4)
    return 0


def fill_bernoulli(Tensor t, Tensor p, generator=None):
    """Fill the contiguous ``t`` with ones and zeros; ``p``, contiguous and of the same sizes, has the probabilities.

    Raises:
        RuntimeError: one of them is not in [0, 1].
    """
    cdef Generator g = stream_of(which(generator))
    cdef str name = "float64" if p.code == F64 else "float32"
    cdef int64_t i, words = 2 if p.code == F64 else 1
    cdef double x
    cdef char** base = [address_of(t), NULL, address_of(p)]
    cdef int64_t* strides = [ITEMSIZE[t.code], 0, ITEMSIZE[p.code]]
    cdef kernel_t fn
    if elsewhere and drawn_elsewhere(fill_bernoulli, t, (p, g)):
        return
    key = (t.dtype.name, name)
    for i in range(p.count):
        x = (<double*>address_of(p))[i] if p.code == F64 else (<float*>address_of(p))[i]
        if not (x >= 0 and x <= 1):
            raise RuntimeError(f"bernoulli: expected every probability to be in [0, 1], got {x}; clamp or sigmoid them")
    fn = of_arguments("random.bernoulli_each", key)
    draw_with(g, fn, base, strides, 3, t.count, NULL, words)


cdef int dropped_there(Tensor out, Tensor mask, Tensor source, double p, double value) except -1:
    """:func:`dropout` on a device: the host draws."""
    cdef Tensor made, kept, given
    cdef int number = swap_place(CPU_NUMBER)
    try:
        made, kept = empty_strided_like(out.code, out), empty_strided_like(mask.code, mask)
        given = empty_strided_like(source.code, source)
        copy_into(given, source)
        dropout(made, kept, given, p, value)
        copy_into(out, made)
        copy_into(mask, kept)
    finally:
        swap_place(number)
    return 0


def dropout(Tensor out, Tensor mask, Tensor source, double p, double value):
    """``source``, each element times ``value`` with the chance ``p`` and else times 0, and a bool mask of those kept.

    The three fill their memory in one order, in which numbers are drawn.
    """
    cdef char* ptr[3]
    cdef Generator g = which(None)
    if elsewhere and here() > META_NUMBER and not g.by_counter:
        dropped_there(out, mask, source, p, value)
        return
    ptr[0], ptr[1], ptr[2] = address_of(out), address_of(mask), address_of(source)
    cdef int64_t* arg = [source.code, source.count, bits_of(p), bits_of(value)]
    if g.by_counter:
        draw_by_counter(g, "dropout", (DTYPE_NAMES[source.code],), ptr, 3, source.count, arg[2], arg[3])
    elif not is_draw_planned(g, draw_dropout, ptr, 3, arg, 4):
        drop(ptr, arg)


cdef void draw_dropout(char** ptr, const int64_t* arg, int64_t begin, int64_t end) noexcept nogil:
    with gil:
        drop(ptr, arg)


cdef int drop(char** ptr, const int64_t* arg) except -1:
    """The draw of :func:`dropout`."""
    cdef Generator g = which(None)
    cdef int code = <int>arg[0]
    cdef int64_t size = ITEMSIZE[code], count = arg[1]
    cdef int64_t[2] numbers
    cdef char** base = [ptr[0], NULL, ptr[1], ptr[2]]
    cdef int64_t* strides = [size, 0, 1, size]
    cdef kernel_t fn
    # past the cache where it would not stay, by whole lines from a line on
    cdef bint stream = size >= 4 and count >= LIGHT and 2 * size * count >= STREAM_BYTES and <size_t>ptr[0] % 64 == 0
    fn = known(DROPOUT, code << 1 | stream)
    if fn == NULL:
        find(BERNOULLI, code)  # the generator's own kernel, too
        fn = build(DROPOUT, code << 1 | stream, (DTYPE_NAMES[code], bool(stream)))
    numbers[0], numbers[1] = arg[2], arg[3]
    draw_with(g, fn, base, strides, 4, count, numbers, 2)
    return 0


def permutation(int64_t n, generator=None):
    """A random permutation of ``[0, n)`` as an int64 tensor."""
    cdef Tensor t = empty_tensor(I64, 1, &n)
    if n > 0:
        shuffle(which(generator), <int64_t*>address_of(t), n)
    return t


# ---- samples ---------------------------------------------------------------------------------------------------------
ctypedef fused real:
    float
    double


cdef int refuse_row(real* p, int64_t n, double total) except -1:
    cdef int64_t i
    for i in range(n):
        if not (p[i] >= 0 and p[i] <= 1.7976931348623157e308):
            raise RuntimeError("multinomial: probability tensor contains either `inf`, `nan` or element < 0")
    if not total > 0:
        raise RuntimeError("multinomial: invalid multinomial distribution (sum of probabilities <= 0)")
    return 0


cdef int cumulate(real* p, int64_t n, int64_t rows, real* out) except -1:
    """Running sums of rows of probabilities, in their own precision as PyTorch has them.

    Four rows at a time, as each addition waits for the one before.
    """
    cdef int64_t r, i
    cdef real a, b, c, d
    cdef int negative = 0
    for r in range(0, rows - 3, 4):
        a = b = c = d = 0
        for i in range(r * n, r * n + n):
            negative |= (p[i] < 0) | (p[i + n] < 0) | (p[i + 2 * n] < 0) | (p[i + 3 * n] < 0)
            a, b, c, d = a + p[i], b + p[i + n], c + p[i + 2 * n], d + p[i + 3 * n]
            out[i], out[i + n], out[i + 2 * n], out[i + 3 * n] = a, b, c, d
    for r in range(rows & -4, rows):
        a = 0
        for i in range(r * n, r * n + n):
            negative |= p[i] < 0
            a += p[i]
            out[i] = a
    for r in range(rows):
        a = out[r * n + n - 1]
        if negative or not (a > 0 and a <= 1.7976931348623157e308):
            refuse_row(p + r * n, n, a)
    return 0


cdef enum:
    ABREAST = 8  # searches that go on together: each waits for memory at every step


cdef int find_places(real* sums, int64_t n, real total, Generator g, int64_t* out, int64_t draws,
                     Watch* w) except -1 nogil:
    """For each draw the first of the ``n`` running sums that, over the total, is no less than a uniform number."""
    cdef double u[ABREAST]
    cdef int64_t low[ABREAST]
    cdef int64_t i, k = 0, some, half, rest
    cdef bint many = draws * 16 >= n  # then each sum is divided once, else those that are looked at
    for i in range(n if many else 0):
        sums[i] = sums[i] / total
    while k < draws:  # not a range: a step that is no literal makes it a Python object
        some = min(draws - k, <int64_t>ABREAST)
        for i in range(some):
            u[i], low[i] = next_unit(g), 0
        rest = n - 1  # the last sum counts as 1
        while rest > 0:
            half = (rest + 1) // 2
            for i in range(some):  # a product rather than an unpredictable branch
                if many:
                    low[i] += half * (sums[low[i] + half - 1] < u[i])
                else:
                    low[i] += half * (sums[low[i] + half - 1] / total < u[i])
            rest -= half
        for i in range(some):
            out[k + i] = low[i]
        k += some
        heed(w, some)
    return 0


cdef int draw_rows(real* p, int64_t n, int64_t rows, real* sums, int64_t group, Generator g, int64_t* out,
                   int64_t draws) except -1:
    """Draw from rows, ``group`` of them at a time: as many as ``sums`` has room for."""
    cdef int64_t first = 0, r, some
    cdef Watch w = watch(rows * max(n, draws))
    while first < rows:
        some = min(rows - first, group)
        cumulate(p + first * n, n, some, sums)
        for r in range(some):
            find_places(sums + r * n, n, sums[r * n + n - 1], g, out + (first + r) * draws, draws, &w)
        first += some
        heed(&w, some * n)
    return 0


def choose(Tensor p, Tensor out, generator=None):
    """Draw with replacement: for each row of ``p`` (float32 or float64, contiguous), or for ``p``, a row of ``out``
    (int64).

    Raises:
        RuntimeError: a row is no distribution.
    """
    cdef Generator g = stream_of(which(generator))
    cdef int64_t draws = out.sizes[out.nd - 1], n = p.sizes[p.nd - 1], rows = p.count // n
    cdef int64_t group = min(rows, 4 if n > 1024 else 4096 // n), room = group * n * ITEMSIZE[p.code]
    cdef int64_t* places
    cdef char* sums
    if elsewhere and drawn_elsewhere(choose_for, out, (p, g)):
        return
    sums, places = <char*>allocate(room), <int64_t*>address_of(out)
    if sums == NULL:
        raise MemoryError()
    enter(g)
    try:
        if p.code == F32:
            draw_rows[float](<float*>address_of(p), n, rows, <float*>sums, group, g, places, draws)
        else:
            draw_rows[double](<double*>address_of(p), n, rows, <double*>sums, group, g, places, draws)
    finally:
        leave(g)
        release(sums, room)


cdef double poisson(Generator g, double rate) noexcept nogil:
    """One Poisson number: Knuth's product of uniforms below 10, else Hoermann's transformed rejection (PTRS, 1993)."""
    cdef double u, v, s, k, x = 0, product = 1, limit, a, b, inverse_alpha, vr
    if rate == 0:
        return 0
    if rate < 10:
        limit = exp(-rate)
        while True:
            product *= next_unit(g)
            if product <= limit:
                return x
            x += 1
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = next_unit(g) - 0.5
        v = next_unit(g)
        s = 0.5 - fabs(u)
        k = floor((2 * a / s + b) * u + rate + 0.43)
        if s >= 0.07 and v <= vr:
            return k
        if k < 0 or (s < 0.013 and v > s):
            continue
        if log(v) + log(inverse_alpha) - log(a / (s * s) + b) <= -rate + k * log(rate) - lgamma(k + 1):
            return k


def choose_for(Tensor out, Tensor p, generator=None):
    """:func:`choose` with its arguments in the order of the others."""
    choose(p, out, generator)


def fill_poisson(Tensor out, Tensor rates, generator=None):
    """Poisson numbers of contiguous ``rates``, float32 or float64, into the contiguous ``out`` of the same dtype.

    Raises:
        RuntimeError: a rate is negative.
    """
    cdef Generator g = stream_of(which(generator))
    if elsewhere and drawn_elsewhere(fill_poisson, out, (rates, g)):
        return
    if rates.code == F32:
        draw_poisson(g, <float*>address_of(rates), <float*>address_of(out), out.count)
    else:
        draw_poisson(g, <double*>address_of(rates), <double*>address_of(out), out.count)


cdef int draw_poisson(Generator g, real* rates, real* out, int64_t n) except -1:
    cdef int64_t i
    cdef Watch w = watch(n)
    for i in range(n):
        if not rates[i] >= 0:
            raise RuntimeError(f"poisson: invalid Poisson rate, expected rate to be non-negative, got {rates[i]}")
    enter(g)
    try:
        with nogil:
            for i in range(n):
                out[i] = <real>poisson(g, rates[i])
                if i % UNHEARD == 0:
                    heed(&w)
    finally:
        leave(g)
    return 0


cdef double gamma(Generator g, double shape) noexcept nogil:
    """One gamma number of scale 1: Marsaglia and Tsang (2000), a shape below 1 by way of one above it.

    The constants are rounded to float32, as in PyTorch.
    """
    cdef double scale = 1, d, c, x, y, v, u
    if shape < 1:
        if shape == 0:
            return 0
        scale = pow(1 - next_unit(g), 1 / shape)
        shape += 1
    d = shape - <float>(1.0 / 3)
    c = 1 / sqrt(9 * d)
    while True:
        y = 0
        while not y > 0:
            x = next_normal(g)
            y = 1 + c * x
            if y != y:  # the shape was not a number
                return y
        v = y * y * y
        u = 1 - next_unit(g)
        x *= x
        if u < 1 - <float>0.0331 * x * x or log(u) < 0.5 * x + d * (1 - v + log(v)):
            return scale * d * v


def fill_gamma(Tensor out, Tensor shapes, double least, generator=None):
    """Gamma numbers, at least ``least``, of contiguous float64 ``shapes`` into the contiguous float64 ``out``."""
    cdef Generator g = stream_of(which(generator))
    cdef int64_t i
    cdef double x
    cdef Watch w = watch(out.count)
    if elsewhere and drawn_elsewhere(fill_gamma, out, (shapes, least, g)):
        return
    enter(g)
    try:
        with nogil:
            for i in range(out.count):
                x = gamma(g, (<double*>address_of(shapes))[i])
                (<double*>address_of(out))[i] = least if x < least else x
                if i % UNHEARD == 0:
                    heed(&w)
    finally:
        leave(g)


cdef inline double stirling_rest(double k) noexcept nogil:
    """``log(k!)`` minus Stirling's ``(k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2``."""
    cdef double k1 = k + 1
    if k < 10:
        return lgamma(k1) - ((k + 0.5) * log(k1) - k1 + 0.9189385332046727)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (k1 * k1)) / (k1 * k1)) / k1


cdef double binomial(Generator g, double n, double p) noexcept nogil:
    """One binomial number, ``p`` at most a half: the gaps between successes where few are expected, else Hoermann's
    transformed rejection with decomposition (BTRS, 1993)."""
    cdef double total = 0, successes = 0, log_q, spread, a, b, c, vr, r, alpha, m, u, v, s, k
    if n * p < 10:
        log_q = log1p(-p)
        while True:
            total += ceil(log(next_unit(g)) / log_q)
            if not total <= n:
                return successes
            successes += 1
    spread = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    vr = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = floor((n + 1) * p)
    while True:
        u = next_unit(g) - 0.5
        v = next_unit(g)
        s = 0.5 - fabs(u)
        k = floor((2 * a / s + b) * u + c)
        if s >= 0.07 and v <= vr:
            return k
        if k < 0 or k > n:
            continue
        if log(v * alpha / (a / (s * s) + b)) <= (
            (m + 0.5) * log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * log(r * (n - k + 1) / (k + 1))
            + stirling_rest(m) + stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k)
        ):
            return k


def fill_binomial(Tensor out, Tensor counts, Tensor chances, generator=None):
    """Binomial numbers into ``out``; all are contiguous, float64 and of the same sizes."""
    cdef Generator g = stream_of(which(generator))
    cdef int64_t i
    cdef double n, p
    cdef Watch w = watch(out.count)
    if elsewhere and drawn_elsewhere(fill_binomial, out, (counts, chances, g)):
        return
    enter(g)
    try:
        with nogil:
            for i in range(out.count):
                n, p = (<double*>address_of(counts))[i], (<double*>address_of(chances))[i]
                if n <= 0 or p <= 0:
                    n = 0
                elif n != n or n == INFINITY:  # no number of trials: the samplers would search for ever
                    pass
                elif p <= 0.5:
                    n = binomial(g, n, p)
                elif p < 1:
                    n -= binomial(g, n, 1 - p)
                elif p != p:
                    n = p
                (<double*>address_of(out))[i] = n
                if i % UNHEARD == 0:
                    heed(&w)
    finally:
        leave(g)
