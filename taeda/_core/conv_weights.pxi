# Weights of a convolution in the formats of its kernels.


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


cdef int64_t gcd(int64_t a, int64_t b) noexcept:
    while b:
        a, b = b, a % b
    return a


cdef Tensor packed_weights(int code, char* w, int64_t w_m, int64_t w_c, int64_t w_g, int64_t groups, int64_t m,
                           int64_t c,
                           Geometry* g, bint transposed, bint planar, Packed* to):
    """``w`` as panels, the taps of each phase together: those that ``g``, a convolution, meets at the same outputs.

    ``transposed`` reverses the order of the taps, for a gradient. In a ``planar`` volume channels come before taps. For
    bfloat16, ``c`` counts numbers and two channels are a pair.
    """
    cdef Blocks b = blocks(F32 if code == BF16 else code)
    cdef int64_t from_item = ITEMSIZE[code], half = w_c * from_item, odd = c % 2
    if code == BF16:
        c, w_c = ceil_div(c, 2), 2 * w_c
    cdef int64_t item = max(from_item, <int64_t>4), round_to = channel_unit(b.panel, c)
    # A panel of input channels has room for at most ``c`` channels.
    cdef int64_t deep = b.panel if c > b.panel else ceil_div(c, round_to) * round_to
    cdef int64_t unit = ceil_div(m, b.panel) * b.panel * ceil_div(c, b.panel) * deep * item
    cdef PanelArgs arg
    cdef int64_t n, k, tap, size = 3 * g.taps, at = 0, phase, count, index, every, first
    cdef int64_t counts[PHASES]
    cdef Tensor places = host_tensor(I64, 1, &size), packed = working(unit * g.taps * groups)
    cdef int64_t* place = <int64_t*>address_of(places)
    cdef char* ptr[3]
    memset(counts, 0, sizeof(counts))
    for tap in range(g.taps):
        phase, count, index = 0, 1, 0
        for n in range(3):
            k = tap // (g.k[1] * g.k[2]) if n == 0 else tap // g.k[2] % g.k[1] if n == 1 else tap % g.k[2]
            every = g.s[n] // gcd(g.s[n], abs(g.d[n]))
            first = ceil_div(g.k[n] - k % every, every)  # taps of this phase in this dimension
            phase = phase * g.s[n] + ((k * g.d[n] - g.p[n]) % g.s[n] + g.s[n]) % g.s[n]
            count, index = count * first, index * first + (first - 1 - k // every if transposed else k // every)
        counts[phase] = count
        place[3 * tap], place[3 * tap + 1], place[3 * tap + 2] = phase, count, index
    for phase in range(PHASES):
        to.begin[phase] = at
        at += counts[phase] * unit
    for tap in range(g.taps):
        place[3 * tap] = to.begin[place[3 * tap]]
    note_filled(place, CONSTANT)
    places = uploaded(places)
    to.group = unit * g.taps
    arg.m, arg.c, arg.w_m, arg.w_c, arg.taps = m, c, w_m * from_item, w_c * from_item, g.taps
    arg.unit, arg.w_g, arg.p_g = round_to, w_g * from_item, to.group
    arg.planar, arg.w_h, arg.odd = planar, half, odd
    note_prepared(address_of(packed))
    ptr[0], ptr[1], ptr[2] = address_of(packed), w, address_of(places)
    launch_work(find_windows(WINDOW_WEIGHTS, code), ptr, 3, <int64_t*>&arg, sizeof(arg) // 8,
                groups * ceil_div(m, b.panel) * ceil_div(c, b.panel), 1, packed.count)
    return packed


cdef int copy_taps(Tensor to, Tensor w, Geometry* whole, Phase* phase) except -1:
    """The taps of a phase from ``w [g, m, c, taps]`` into ``to [g, c, m, its taps]``."""
    cdef int64_t sizes[6]
    cdef int64_t strides[6]
    cdef int64_t from_strides[6]
    cdef int64_t n, step = 1, own = 1, offset = 0
    if to.count == 0:
        return 0
    for n in range(5, 2, -1):
        sizes[n], strides[n], from_strides[n] = phase.g.k[n - 3], own, step * phase.every[n - 3]
        offset += step * phase.first[n - 3]
        own *= phase.g.k[n - 3]
        step *= whole.k[n - 3]
    for n in range(3):
        sizes[n], strides[n] = to.sizes[n], to.strides[n]
    from_strides[0], from_strides[1], from_strides[2] = w.strides[0], w.strides[2], w.strides[1]
    return copy_into(alias_tensor(to, 6, sizes, strides, 0), alias_tensor(w, 6, sizes, from_strides, offset))


cdef class Weights:
    """Weights ``[g, m, c, taps]`` of a convolution, in the formats of its kernels and of the kernels of its input's
    gradient.
    """

    cdef Tensor given        # contiguous
    cdef Geometry whole      # the convolution's
    cdef bint transposed           # for the gradient: from m outputs to c inputs, taps in reverse order
    cdef int64_t groups, inputs, outputs
    cdef Tensor packed       # as panels, once they are needed
    cdef Packed places

    cdef int64_t to_output(self):
        """Items from an output's weights to the next one's."""
        return self.given.sizes[3] if self.transposed else self.given.sizes[2] * self.given.sizes[3]

    cdef int64_t to_input(self):
        return self.given.sizes[2] * self.given.sizes[3] if self.transposed else self.given.sizes[3]

    cdef char* panels(self, int phase, bint planar) except NULL:
        """The weights for :func:`convolve_windows`, of all phases at once; see ``places.group``."""
        if self.packed is None:
            self.packed = packed_weights(
                self.given.code, address_of(self.given), self.to_output(), self.to_input(),
                self.given.count // self.groups,
                self.groups, self.outputs, self.inputs, &self.whole, self.transposed or self.whole.d[2] < 0, planar,
                &self.places)
        return address_of(self.packed) + self.places.begin[phase]

    cdef Weights in_order(self, Phase* phase):
        """The weights of a phase as weights of a convolution: ``[g, outputs, inputs, its taps]``."""
        if not self.transposed:
            return self
        cdef Tensor w = self.given, transposed
        cdef int64_t sizes[4]
        cdef int64_t size = w.count // self.groups, kept
        cdef int64_t arg[17]
        cdef char* ptr[2]
        sizes[0], sizes[1], sizes[2], sizes[3] = self.groups, self.outputs, self.inputs, phase.g.taps
        transposed = empty_tensor(w.code, 4, sizes)
        if elsewhere:  # many threads copy it
            copy_taps(transposed, w, &self.whole, phase)
            return weights_of(transposed, &phase.g, False)
        kept = transposed.count // self.groups
        ptr[0], ptr[1] = address_of(transposed), address_of(w)
        arg[:] = [ITEMSIZE[w.code], kept, size, w.sizes[1], w.sizes[2], self.whole.k[0], self.whole.k[1],
                  self.whole.k[2], phase.first[0], phase.first[1], phase.first[2], phase.every[0], phase.every[1],
                  phase.every[2], phase.g.k[0], phase.g.k[1], phase.g.k[2]]
        launch_kernel(host_function(TRANSPOSE_GROUPS), ptr, 2, arg, 17, self.groups, 1, False)
        return weights_of(transposed, &phase.g, False)


cdef Weights weights_of(Tensor w, Geometry* g, bint transposed):
    """``w`` in the format of :func:`grouped`; ``g`` is its convolution, or the one whose gradient is computed."""
    cdef Weights self = Weights.__new__(Weights)
    self.given, self.groups, self.transposed, self.whole = w, w.sizes[0], transposed, g[0]
    self.outputs, self.inputs = w.sizes[2 if transposed else 1], w.sizes[1 if transposed else 2]
    if not transposed:
        self.whole.s[0] = self.whole.s[1] = self.whole.s[2] = 1  # all taps meet every output
    return self
