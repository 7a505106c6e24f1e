# Tables of windows, see kernels/conv_windows.py: offsets of the rows of tiles, and of the runs that are summed.

cdef inline int64_t before_first(Geometry* g, int n) noexcept:
    """Padding before the image, for taps in the order of their places: negative dilation reverses them."""
    return g.p[n] + (max(g.k[n] - 1, <int64_t>0) * -g.d[n] if g.d[n] < 0 else 0)


cdef inline int64_t to_last_tap(Geometry* g, int n) noexcept:
    """The distance from the first tap to the last."""
    return (g.k[n] - 1) * abs(g.d[n])


cdef inline void tap_at(Geometry* g, int64_t tap, int64_t* at) noexcept:
    """The place of a tap in its window."""
    at[0] = tap // (g.k[1] * g.k[2]) * abs(g.d[0])
    at[1] = tap // g.k[2] % g.k[1] * abs(g.d[1])
    at[2] = tap % g.k[2] * abs(g.d[2])


cdef inline int64_t volume_byte(Volume* v, const int64_t* at) noexcept:
    return at[0] * v.slice + at[1] * v.row + at[2] * v.pitch


cdef bint meets_padding(Geometry* g) noexcept:
    cdef int n
    for n in range(3):
        if before_first(g, n) > 0 or (g.o[n] - 1) * g.s[n] + to_last_tap(g, n) - before_first(g, n) >= g.i[n]:
            return True
    return False


cdef inline int64_t taps_outside(Geometry* g, int n, int64_t o, bint after) noexcept:
    """The number of a window's taps, in one dimension, that are before the image or after it."""
    cdef int64_t apart = max(abs(g.d[n]), <int64_t>1), first = o * g.s[n] - before_first(g, n)
    cdef int64_t before = ceil_div(max(-first, <int64_t>0), apart), last = ceil_div(max(g.i[n] - first, <int64_t>0),
                                                                                    apart)
    return g.k[n] - min(last, g.k[n]) if after else min(before, g.k[n])


cdef int64_t alike(Windows* w, Part* part, int n, int64_t o, int64_t most) noexcept:
    """The end of the output positions, from ``o`` on, whose windows lack the same taps in dimension ``n``; all if
    blocks are cut."""
    cdef Geometry* g = &part.g
    cdef int64_t before = taps_outside(g, n, o, False), after = taps_outside(g, n, o, True), end = o + 1
    if w.n[1 + n] > 1:
        return most
    while end < most and taps_outside(g, n, end, False) == before and taps_outside(g, n, end, True) == after:
        end += 1
    return end


cdef int64_t pixel_rows(Geometry* g, Windows* w, Part* part, Volume* v, bint sorted, int64_t height,
                        Place* out) noexcept:
    """Window offsets of a block's output positions. ``sorted``: positions that lack the same taps are adjacent."""
    cdef int64_t n, z, y, x, i, j, count = 0, images = w.b[0]
    cdef int64_t most[3]
    cdef int64_t at[3]
    cdef int64_t end[3]
    # With many images, those at the same place make a tile; with few, a row does.
    cdef bint place_first = images >= height
    for n in range(3):
        most[n] = min(w.b[1 + n], ceil_div(w.result[n] - part.at[n], w.scale[n]))
    if not sorted:
        for n in range(images):
            for z in range(most[0]):
                for y in range(most[1]):
                    for x in range(most[2]):
                        put_row(g, w, part, v, n, z, y, x, out)
                        out, count = out + 1, count + 1
        return count
    at[0] = 0
    while at[0] < most[0]:
        end[0], at[1] = alike(w, part, 0, at[0], most[0]), 0
        while at[1] < most[1]:
            end[1], at[2] = alike(w, part, 1, at[1], most[1]), 0
            while at[2] < most[2]:
                end[2] = alike(w, part, 2, at[2], most[2])
                for z in range(at[0], end[0]):
                    for y in range(at[1], end[1]):
                        for i in range(end[2] - at[2] if place_first else images):
                            for j in range(images if place_first else end[2] - at[2]):
                                n, x = (j, i) if place_first else (i, j)
                                put_row(g, w, part, v, n, z, y, at[2] + x, out)
                                out, count = out + 1, count + 1
                at[2] = end[2]
            at[1] = end[1]
        at[0] = end[0]
    return count


cdef inline void put_row(Geometry* g, Windows* w, Part* part, Volume* v, int64_t n, int64_t z, int64_t y, int64_t x,
                         Place* to) noexcept:
    """A position of a part; its windows begin later in the volume of ``g`` the less padding the part has."""
    cdef int64_t* at = part.at
    to.at[0] = z * g.s[0] + before_first(g, 0) - before_first(&part.g, 0)
    to.at[1] = y * g.s[1] + before_first(g, 1) - before_first(&part.g, 1)
    to.at[2] = x * g.s[2] + before_first(g, 2) - before_first(&part.g, 2)
    to.byte = volume_byte(v, to.at) + n * v.image
    to.index = ((n * w.result[0] + z * w.scale[0] + at[0]) * w.result[1] + y * w.scale[1] + at[1]) * w.result[2] \
        + x * w.scale[2] + at[2]


cdef bint repays_sorting(Geometry* g, Windows* w, int64_t images) noexcept:
    """Whether sorting pays: the taps that windows lack, in dimensions that no block cuts, must outweigh the unused
    positions, as sorted blocks are computed whole."""
    cdef int64_t n, o, lack
    cdef double whole = 1, done = <double>w.pixels * w.blocks
    if not meets_padding(g):
        return False
    if w.b[0] > 1:
        return True
    for n in range(3):
        lack = 0
        for o in range(g.o[n] if w.n[1 + n] == 1 else 0):
            lack += taps_outside(g, n, o, False) + taps_outside(g, n, o, True)
        whole *= 1 - <double>lack / (g.o[n] * g.k[n])
    return whole * done < <double>images * g.pixels


cdef int64_t tap_rows(Geometry* g, Windows* w, int64_t channels, Volume* v, int64_t item, Place* out) noexcept:
    """Offsets of ``(c, tap)``: for planar volumes in this order, else taps first, so that a tile has one tap."""
    cdef int64_t channel, tap, i, count = channels * g.taps
    for i in range(count):
        channel, tap = (i // g.taps, i % g.taps) if w.planar else (i % channels, i // channels)
        tap_at(g, tap, out.at)
        out.byte = volume_byte(v, out.at) + channel * (v.plane if w.planar else item)
        out.index = channel * g.taps + tap
        out += 1
    return count


cdef int64_t direct_rows(Geometry* g, int64_t channels, Tensor x, Place* out) noexcept:
    """Offsets of ``(c, tap)`` in an image that is read in place."""
    cdef int64_t item = ITEMSIZE[x.code], pixel = item * (x.strides[4] if channels_last(x) else 1), i
    cdef int64_t at[3]
    for i in range(channels * g.taps):
        tap_at(g, i % g.taps, at)
        out.byte = i // g.taps * x.strides[1] * item + at[0] * x.strides[2] * item + (at[1] * g.i[2] + at[2]) * pixel
        out.index = i
        out += 1
    return channels * g.taps


cdef int64_t* write_tiles(Geometry* g, Windows* w, const Place* rows, int64_t count, int64_t height, bint bounded,
                          int64_t sums,
                          int64_t items, int64_t every, int64_t step, int64_t skip, int64_t* out) noexcept:
    """Tiles of the first ``count`` of ``rows``; their runs have ``items``, ``every`` columns and ``step`` bytes apart.

    ``sums`` and ``skip`` are the bytes of a row of the sums, and of the right operand per item. Rows past the end
    repeat the tile's first. Unless ``bounded``, all runs are whole.
    """
    cdef int64_t start, i, n, low, high, first = before_first(g, 2)
    cdef const Place* row
    for start in range(0, count, height):
        for n in range(3):
            low = high = rows[start].at[n]
            for i in range(start + 1, min(start + height, count)):
                low, high = min(low, rows[i].at[n]), max(high, rows[i].at[n])
            # The columns of a run of several taps are given by its beginning and end.
            if not bounded or n == 2 and items != 1:
                out[2 * n], out[2 * n + 1] = -NOWHERE, NOWHERE
            else:
                out[2 * n], out[2 * n + 1] = low, high
        out[6], out[7], out[8] = 0, NOWHERE, 0
        if bounded and items > 1 and w.n[3] == 1:
            # Items i to n meet the image: high + i * every is at or past its first column, low + n * every past its
            # end.
            i = max(ceil_div(max(first - high, <int64_t>0), every), <int64_t>0)
            n = min(ceil_div(max(first + g.i[2] - low, <int64_t>0), every), items)
            i = min(i, n)
            out[6], out[7], out[8] = i * step, n * step, i * skip
        out += TILE_HEAD
        for i in range(start, start + height):
            row = rows + (i if i < count else start)
            out[0], out[1] = row.byte, (row.index if i < count else w.spare + i - count) * sums
            out += 2
    return out


cdef int64_t* write_runs(Geometry* g, Windows* w, int panel, int64_t* out) noexcept:
    """Offsets of the runs of a window's taps in the volume."""
    cdef Volume* v = &w.volume[panel]
    cdef int64_t channel, tap
    cdef int64_t at[3]
    for channel in range(w.channels[panel] if w.planar else 1):
        for tap in range(0, g.taps, run_taps(g)):
            tap_at(g, tap, at)
            out[0] = volume_byte(v, at) + channel * v.plane
            out[1], out[2], out[3] = at[0], at[1], at[2]
            out += RUN_ITEMS
    return out


cdef int64_t* write_lines(Geometry* g, Windows* w, int panel, Tensor direct, int64_t item, int64_t* out) noexcept:
    """Offsets of the rows of a block's output positions, in a volume or in the image ``direct``."""
    cdef Volume* v = &w.volume[panel]
    cdef int64_t n, z, y, line
    cdef int64_t at[3]
    for n in range(w.b[0]):
        for z in range(w.b[1]):
            for y in range(w.b[2]):
                at[0], at[1], at[2] = z * g.s[0], y * g.s[1], 0
                if direct is None:
                    out[0] = volume_byte(v, at) + n * v.image
                else:
                    line = g.i[2] * (direct.strides[4] if channels_last(direct) else 1)
                    out[0] = (n * direct.strides[0] + at[0] * direct.strides[2] + at[1] * line) * item
                out[1], out[2], out[3] = at[0], at[1], at[2]
                out += RUN_ITEMS
    return out


cdef int tile_heights(int code, int64_t m, int64_t* heights) except -1:
    """The tile heights for whole panels of ``m`` outputs, and for the last panel."""
    cdef int64_t panel = blocks(code).panel
    heights[0] = tile_height(code, min(m, panel))
    heights[1] = tile_height(code, m - (ceil_div(m, panel) - 1) * panel)
    return 0


cdef Tensor window_tables(Geometry* g, Windows* w, Part* parts, int64_t number, int code, int64_t images, int64_t m):
    """Tables of the parts, their tiles and runs, see kernels/conv_windows.py; ``g`` is the geometry of the volume.

    For whole panels of ``m`` outputs and for the last one, in volumes of a whole panel of inputs and of the last one;
    equal tables are stored once.
    """
    cdef Blocks b = blocks(code)
    cdef int64_t item = ITEMSIZE[code], sums = b.panel * item, panel, n, i, count, size, pitch, least, runs, taps
    cdef int64_t heights[2]
    cdef int64_t* out
    cdef int64_t* entry
    cdef Place* rows
    cdef Tensor places, table
    # Memory order is best where no tap is missing. The positions of phases never begin a block's result.
    cdef bint sorted = number > 1 or repays_sorting(g, w, images)
    tile_heights(code, m, heights)
    least = min(heights[0], heights[1])
    w.spare = w.b[0] * w.result[0] * w.result[1] * w.result[2]
    w.rows = ceil_div(w.spare + (TABLE_ROWS if number > 1 else 0), TABLE_ROWS) * TABLE_ROWS
    places = working_on_host(ceil_div(w.pixels, TABLE_ROWS) * TABLE_ROWS * sizeof(Place))
    rows = <Place*>address_of(places)
    size = number * PHASE_ITEMS
    for i in range(number):
        size += 2 * parts[i].g.taps * (w.channels[0] if w.planar else 1) * RUN_ITEMS
        size += 4 * (ceil_div(w.pixels, TABLE_ROWS) * TABLE_ROWS // least) * (TILE_HEAD + 2 * least)
    table = host_tensor(I64, 1, &size)
    entry = <int64_t*>address_of(table)
    out = entry + number * PHASE_ITEMS
    for i in range(number):
        taps = run_taps(&parts[i].g)
        runs = parts[i].g.taps // taps * (w.channels[0] if w.planar else 1)
        for panel in range(2):
            if panel == 1 and w.channels[1] == w.channels[0]:
                entry[2], entry[3], entry[5], entry[7] = entry[0], entry[1], entry[4], entry[6]
                break
            pitch = w.volume[panel].pitch
            entry[4 + panel], entry[6 + panel] = (out - <int64_t*>address_of(table)) * 8, pitch // item * taps
            out = write_runs(&parts[i].g, w, panel, out)
            for n in range(2):
                if n == 1 and heights[1] == heights[0]:
                    entry[2 * panel + 1] = entry[2 * panel]
                    break
                entry[2 * panel + n] = (out - <int64_t*>address_of(table)) * 8
                count = pixel_rows(g, w, &parts[i], &w.volume[panel], sorted, heights[n], rows)
                out = write_tiles(g, w, rows, count, heights[n], True, sums, taps, 1, pitch, pitch // item * sums, out)
        entry[8], entry[9], entry[10] = runs, max(3 * b.depth // entry[6], 1), count if sorted else 0
        entry[11], entry[12] = parts[i].g.taps, parts[i].begin
        entry += PHASE_ITEMS
    note_filled(address_of(places), CONSTANT)
    note_filled(address_of(table), CONSTANT)
    return uploaded(table)


cdef Tensor gradient_tables(Geometry* g, Windows* w, int code, int64_t m, Tensor direct, int64_t* tables):
    """The same for :func:`windows_gradient`; ``direct`` is an image that is read in place, or None. Fills in
    ``tables``, the offsets."""
    cdef int64_t item = ITEMSIZE[code], sums = blocks(code).panel * item, panel, n, count, size, pitch, least
    cdef int64_t heights[2]
    cdef int64_t* out
    cdef Place* rows
    cdef Tensor places, table
    tile_heights(code, m, heights)
    least = min(heights[0], heights[1])
    w.rows = ceil_div(w.channels[0] * g.taps, TABLE_ROWS) * TABLE_ROWS
    places = working_on_host(w.rows * sizeof(Place))
    rows = <Place*>address_of(places)
    size = 2 * w.pixel_rows * RUN_ITEMS + 4 * (w.rows // least) * (TILE_HEAD + 2 * least)
    table = host_tensor(I64, 1, &size)
    out = <int64_t*>address_of(table)
    for panel in range(2):
        if panel == 1 and w.channels[1] == w.channels[0]:
            tables[2], tables[3], tables[5] = tables[0], tables[1], tables[4]
            break
        pitch = w.volume[panel].pitch
        tables[4 + panel] = (out - <int64_t*>address_of(table)) * 8
        out = write_lines(g, w, panel, direct, item, out)
        for n in range(2):
            if n == 1 and heights[1] == heights[0]:
                tables[2 * panel + 1] = tables[2 * panel]
                break
            tables[2 * panel + n] = (out - <int64_t*>address_of(table)) * 8
            if direct is None:
                count = tap_rows(g, w, w.channels[panel], &w.volume[panel], item, rows)
            else:
                count = direct_rows(g, w.channels[panel], direct, rows)
            w.spare = count
            out = write_tiles(g, w, rows, count, heights[n], direct is None, sums, w.b[3], g.s[2], g.s[2] * pitch,
                              sums, out)
    note_filled(address_of(places), CONSTANT)
    note_filled(address_of(table), CONSTANT)
    return uploaded(table)
