"""Convolution with channels along the vectors, on windows of an image that is laid out once.

A block of the input is laid out as a *volume* ``[image, depth, row, column, channel]``, zero-padded, for one panel of
input channels at a time. All output positions then have the same window, at different offsets: a few *runs* of
contiguous items. So nothing is unfolded: the tile takes its rows from a table of window offsets, and its sum from a
table of run offsets. The forward product is positions by (tap, c) times (tap, c) by output channels. The gradient of
the weights is (c, tap) by positions times positions by output channels, on the same volume with the two tables
exchanged. Images may be channels last in memory, or channels first. The latter are transposed in squares, or copied as
they are where there are few channels (*planar*: a run is then the taps of one channel).

A tile skips the parts that lie only in the padding: whole runs, and the beginning and end of each. If a block has
several images, positions are therefore sorted by their row. The tables give, for each row of a tile, where its sums
belong.

Three spatial dimensions cover one and two. A task works on memory in its *slot*, as in :mod:`taeda.kernels.winograd`.

bfloat16 is processed as pairs along the summed dimension: one instruction multiplies two pairs and adds both products
in float32 (the engine ``dot`` of :mod:`taeda.kernels.short_gemm`). Everything here that moves items moves such pairs as
if they were float32. Weights are paired where they are packed, images beforehand, by :func:`pair_rows`. The forward
product pairs channels and the weights' gradient pairs images, so pixels and paddings stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .build import kernel
from .images import row_bytes, to_channels, to_pixels
from .ir import F32, I64, PTR, TYPES, U16, U32, Function, Helper, Type, Value
from .pool import larger
from .short_gemm import dot, interleaved
from .target import here
from .tile import multiply_add, smaller, tile_shape, transpose

#: A volume's strides in bytes, from pixel to pixel, row to row and so on; steps of a run.
VOLUME = tuple("pitch row slice image length plane".split())
#: The common arguments. Channels are those of a group: ``m`` outputs from ``c`` inputs. By dimension (z, y, x): sizes
#: of input and output, stride, padding (some may be negative), and ``f``, the distance from the first tap to the last.
#: A block has at most ``b`` output positions along each dimension (``bn`` images); there are ``n`` blocks along each.
#: If a dimension is cut, all before it have one position per block. Input channels are processed ``cc`` at a time,
#: rounded up to ``unit``. Then byte strides of image, channel, depth and pixel; whether channels are last in memory;
#: ``panels`` of output channels per task; the offsets of sums and of transposed pixels in the slot, which begins with
#: the volume; ``rows``, for which the sums have room.
#: Last comes :data:`VOLUME` of a whole panel of channels, then of the last panel.
SHAPE = (
    *"m c groups images id ih iw od oh ow sz sy sx pz py px fz fy fx bn bz by bx nz ny nx cc unit "
    "x_n x_c x_z x_p y_n y_c y_z y_p x_last y_last taps panels at_sum at_pixels rows planar".split(),
    *(f"{x}{i}" for i in range(2) for x in VOLUME),
)
#: Offsets of the tables of tiles, for volumes of a whole panel of channels and of the last one, each for whole panels
#: of outputs and for the last one; offsets of the tables of runs.
TABLES = tuple("tiles00 tiles01 tiles10 tiles11 runs0 runs1".split())
#: One phase of a gradient (a convolution has one phase), in the tables: items of a run in volumes of a whole panel of
#: channels and of the last one; runs of a window, of which ``some`` are summed at a time; number of taps; byte offset
#: of its weights. ``count`` is the number of positions if they are sorted, else 0.
PHASE = (*TABLES, *"length0 length1 runs some count taps begin".split())

#: The head of a table of tiles, before the rows of each tile: the least and greatest place in the volume where its rows
#: begin, by dimension (beyond any bounds where that does not matter); the bytes from the first item of its runs that
#: meets the image to past the last; the bytes of the right operand before that item. A row is the byte offset where it
#: begins and that of its sums.
TILE = tuple("z_low z_high y_low y_high x_low x_high begin end skip".split())
#: An entry of the table of runs: the byte offset where it begins, and its place.
RUN = tuple("at z y x".split())
#: Bytes of a group's weights; whether there is a bias; the number of phases, and where their table begins. By
#: dimension: the result has ``u`` positions for one of a block, and ``d`` in all. ``sum_*``: sums from image to image,
#: slice to slice and row to row.
WINDOWS_ARGS = (*SHAPE, *"w_g bias phases phases_at uz uy ux dz dy dx sum_n sum_z sum_y".split())
#: The blocks are summed in ``parts`` of ``run``; the offset of the transposed gradient; items from part to part of the
#: result; whether the input is read in place (windows without padding).
WEIGHT_ARGS = (*SHAPE, "blocks", "run", "at_g", "c_p", "direct", *TABLES)

#: The arguments of ``window_weights``: channels of a group, byte strides of channels in the weights, whose taps are
#: contiguous; bytes of a group and of its panels. For bfloat16: ``c`` pairs, ``w_h`` bytes from one half to the other,
#: ``odd`` if the last pair lacks the second.
PANEL_ARGS = tuple("m c w_m w_c taps unit w_g p_g planar w_h odd".split())

#: The arguments of ``pair_rows``: items of a row, rows that are paired with each other, byte strides of groups of these
#: and of rows; pieces of a row, of :data:`PIECE` items.
PAIR_ARGS = tuple("size rows x_o x_r pieces".split())
PIECE = 8192


def tile_rows(vectors: int, vector_bytes: int, half: bool) -> int:
    """Rows of the register tile of that width: a narrow tile needs more rows, for enough independent sums."""
    whole = tile_shape(vector_bytes)
    return 12 if half else whole.rows if vectors == whole.vectors else 8


#: A window's steps are listed if its runs have at most ``SHORT`` steps, and all together at most ``LISTED``.
SHORT, LISTED = 16, 512

#: The sums have room for whole tiles; this is a multiple of every tile's height.
ROWS = 24


def _item(dtype: str) -> Type:
    """The type that is laid out and multiplied: pairs of bfloat16 count as float32."""
    return F32 if dtype == "bfloat16" else TYPES[dtype]


def _shapes(vector_bytes: int, lanes: int) -> list[tuple[int, int]]:
    """Vectors and lanes of the tiles, widest first."""
    shapes = [(v, lanes) for v in tile_shape(vector_bytes).widths]
    if vector_bytes == 64:  # half a vector: two may multiply in the time of a whole one; else nothing is lost
        shapes.append((1, lanes // 2))
    return shapes


def height(dtype: str, columns: int) -> int:
    """Rows of the tile for a panel of ``columns`` columns on this machine."""
    vector_bytes = here().vector_bytes
    lanes = max(vector_bytes // _item(dtype).bytes, 1)
    vectors, some = [shape for shape in _shapes(vector_bytes, lanes) if shape[0] * shape[1] >= columns][-1]
    return tile_rows(vectors, vector_bytes, some < lanes)


def _whole(channels: Value, unit: Value) -> Value:
    """``channels`` rounded up to units."""
    return (channels + unit - 1) / unit * unit


def _depth(f: Function, t: Type, c: Value, unit: Value) -> Value:
    """Channels that each panel of weights has room for."""
    width = f.i64(row_bytes(f) // t.bytes)
    return f.select(c > width, width, _whole(c, unit))


def _add_product(f: Function, dtype: str, acc: Value, a: Value, b: Value) -> Value:
    """``acc + a * b``; for bfloat16 pairs the sum of both products."""
    return dot(f, dtype, acc, a, b) if dtype == "bfloat16" else multiply_add(f, b, a, acc)


#: The smaller and the larger of two.
_ENDS = (smaller, larger)


def _outside(
    f: Function, least: Sequence[Value], most: Sequence[Value], lows: list[Value], highs: list[Value]
) -> Value:
    """Whether places from ``least`` to ``most`` are not all within ``lows`` and ``highs``, by dimension."""
    sign = f.i64(0)
    for first, last, low, high in zip(least, most, lows, highs, strict=True):
        sign = sign | (first - low) | (high - last)
    return sign < 0


# ---- the tile --------------------------------------------------------------------------------------------------------
def _tiles(f: Function, dtype: str, vectors: int, lanes: int) -> Helper:
    """``tiles(a, tiles, count, runs, some, bounds, length, a_k, b, b_run, c, d, d_m)``: ``count`` rows of sums,
    ``vectors`` wide.

    The left operand begins at ``a``. Its rows and its ``some`` runs, of ``length`` bytes in steps of ``a_k``, are
    listed in the tables (:data:`TILE`, :data:`RUN`). Runs that meet nothing within ``bounds``, the first and the last
    place of the image in the volume by dimension, are skipped. Rows of ``b`` and ``c`` follow each other by panels,
    runs of ``b`` every ``b_run`` bytes. Whole tiles are written.
    """
    t = _item(dtype)
    h = f.helper(f"tiles_{vectors}x{lanes}", PTR, PTR, I64, PTR, I64, PTR, I64, I64, PTR, I64, PTR, PTR, I64)
    a, table, count, runs, some, bounds, length, a_k, b, b_run, c, d, d_m = h.params
    pitch, rows = row_bytes(h), tile_rows(vectors, h.vector_bytes, lanes < h.lanes(t))
    zero = h.const(t, 0, lanes)
    limits = [h.load(h.offset(bounds, 8 * i), I64) for i in range(6)]
    apart = d_m != 0
    # The least and the greatest place of the runs, by dimension: a tile inside of the image with these is with all.
    with h.loop(0, some, carry=[h.i64(1 << 60), h.i64(-1 << 60)] * 3) as R:
        places = _numbers(h, h.offset(runs, R.index * (8 * len(RUN)) + 8), 3)
        R.carry = [pick(h, at, R.carry[2 * i + n]) for i, at in enumerate(places) for n, pick in enumerate(_ENDS)]
    ends = R.carry
    # Short runs one after another, as one run whose steps are listed: no bounds and no loop for each.
    steps = length / a_k
    listed = h.scratch(8 * LISTED)
    short = (b_run == steps * pitch) & (steps <= SHORT) & (some * steps <= LISTED) & (count > 2 * rows)
    together = h.select(short, some * steps, h.i64(0))
    with h.loop(0, h.select(short, some, h.i64(0))) as R:
        shift = h.load(h.offset(runs, R.index * (8 * len(RUN))), I64)
        with h.loop(0, steps) as K:
            h.store(h.offset(listed, (R.index * steps + K.index) * 8), shift + K.index * a_k)
    with h.loop(0, count, rows) as T:
        entry = h.offset(table, T.index / rows * (8 * (len(TILE) + 2 * rows)))
        tile = dict(zip(TILE, _numbers(h, entry, len(TILE)), strict=True))
        places = h.offset(entry, 8 * len(TILE))
        starts = [h.offset(a, h.load(h.offset(places, 16 * i), I64)) for i in range(rows)]
        lows = [limits[2 * i] - tile[n + "_high"] for i, n in enumerate("zyx")]
        highs = [limits[2 * i + 1] - tile[n + "_low"] for i, n in enumerate("zyx")]
        end = smaller(h, tile["end"], length)
        near = h.select(_outside(h, ends[::2], ends[1::2], lows, highs), h.i64(1), h.i64(0))
        sources = [h.opaque(start) for start in starts]  # kept in registers in the inner loops

        def add(acc: list[Value], at: Value, at_b: Value) -> list[Value]:
            row = [h.load(h.offset(at_b, v * lanes * t.bytes), t, lanes) for v in range(vectors)]
            column = [h.splat(h.load(h.offset(source, at), t), lanes) for source in sources]
            return [_add_product(h, dtype, acc[i], row[i % vectors], column[i // vectors]) for i in range(len(acc))]

        inside = (near == 0) & (tile["begin"] == 0) & (end == length) & (together > 0)
        number = h.select(inside, together, h.i64(0))
        first, carry = h.i64(0), (b, listed, *[zero] * (rows * vectors))
        for unrolled in (4, 1) if vectors == tile_shape(h.vector_bytes).vectors else (1,):
            with h.loop(first, number - (unrolled - 1), unrolled, carry=carry) as K:
                at_b, at, *acc = K.carry
                for u in range(unrolled):
                    acc = add(acc, h.load(h.offset(at, 8 * u), I64), h.offset(at_b, u * pitch))
                K.carry = [h.offset(at_b, unrolled * pitch), h.offset(at, 8 * unrolled), *acc]
            first, carry = K.index, K.carry
        with h.loop(0, h.select(inside, h.i64(0), some), carry=[runs, h.offset(b, tile["skip"]), *carry[2:]]) as R:
            run, at_b, *acc = R.carry
            shift = h.load(run, I64)
            with h.loop(0, near, carry=[end]) as N:  # at most once
                place = _numbers(h, h.offset(run, 8), 3)
                N.carry = [h.select(_outside(h, place, place, lows, highs), tile["begin"], end)]
            with h.loop(tile["begin"] + shift, N.carry[0] + shift, a_k, carry=[at_b, *acc]) as K:
                place_b, *acc = K.carry
                K.carry = [h.offset(place_b, pitch), *add(acc, K.index, place_b)]
            R.carry = [h.offset(run, 8 * len(RUN)), h.offset(at_b, b_run), *K.carry[1:]]
        for i in range(rows):
            to = h.load(h.offset(places, 16 * i + 8), I64)
            shift = h.select(apart, to, h.i64(0))
            for v in range(vectors):
                place_of = v * lanes * t.bytes
                before = h.load(h.offset(h.offset(d, shift), place_of), t, lanes)
                h.store(h.offset(h.offset(c, to), place_of), R.carry[2 + i * vectors + v] + before)
    return h


def _numbers(f: Function, pointer: Value, count: int) -> list[Value]:
    return [f.load(f.offset(pointer, 8 * i), I64) for i in range(count)]


class _Tiles:
    """The tiles for panels of all widths."""

    def __init__(self, f: Function, dtype: str):
        self.f, lanes = f, f.lanes(_item(dtype))
        self.helpers = [(v * some, _tiles(f, dtype, v, some)) for v, some in _shapes(f.vector_bytes, lanes)]

    def call(self, columns: Value, *args: Value) -> None:
        f, widths = self.f, [width for width, _ in self.helpers]
        for (width, helper), narrower in zip(self.helpers, [*widths[1:], 0], strict=True):
            with f.when((columns > narrower) & (columns <= width)):
                f.call(helper, *args)


# ---- blocks and volumes ---------------------------------------------------------------------------------------------
@dataclass
class _Place:
    """A block: where it begins and how many output positions it has, images first."""

    first: list[Value]
    count: list[Value]

    @property
    def plane(self) -> Value:
        return self.count[2] * self.count[3]

    @property
    def pixels(self) -> Value:
        return self.count[0] * self.count[1] * self.plane


def _place(f: Function, g: dict[str, Value], block: Value) -> _Place:
    steps, sizes = [g[b] for b in ("bn", "bz", "by", "bx")], [g[s] for s in ("images", "od", "oh", "ow")]
    x, block = block % g["nx"], block / g["nx"]
    y, block = block % g["ny"], block / g["ny"]
    places = [block / g["nz"], block % g["nz"], y, x]
    first = [p * s for p, s in zip(places, steps, strict=True)]
    return _Place(first, [smaller(f, n - p, s) for p, s, n in zip(first, steps, sizes, strict=True)])


class _Volume:
    """Lays out blocks of the input within a kernel."""

    def __init__(self, f: Function, t: Type, g: dict[str, Value], transposing: Helper):
        self.f, self.t, self.g, self.to_channels = f, t, g, transposing
        self.copy, self.narrow = self._copy(), self._narrow()
        self.limits = f.scratch(6 * 8)

    def bounds(self, p: _Place) -> Value:
        """The first and the last place of the volume that are in the image, by dimension."""
        f, g = self.f, self.g
        for i, n in enumerate("zyx"):
            first = g["p" + n] - p.first[1 + i] * g["s" + n]
            f.store(f.offset(self.limits, 16 * i), first)
            f.store(f.offset(self.limits, 16 * i + 8), first + g["i" + "dhw"[i]] - 1)
        return self.limits

    def _copy(self) -> Helper:
        """``copy(to, row, source, pitch, line, rows, low, high, size, first, last, channels, step)``: rows of columns.

        ``pitch`` and ``line`` are the source's bytes from column to column and row to row. ``source`` is its column 0;
        columns ``first`` to ``last`` exist, in rows ``low`` to ``high``. The volume has ``size`` columns of ``step``
        bytes. ``channels`` is negative where the source has as many channels as a column of the volume.
        """
        f, t = self.f, self.t
        h = f.helper("copy_rows", PTR, I64, PTR, I64, I64, I64, I64, I64, I64, I64, I64, I64, I64)
        to, row, source, pitch, line, all_rows, low, high, size, first, last, channels, step = h.params
        lanes = h.lanes(t)
        with h.loop(0, all_rows) as Y:
            exists = (Y.index >= low) & (Y.index < high)
            target, at = h.offset(to, Y.index * row), h.offset(source, (Y.index - low) * line)
            stop = h.select(exists, last, h.i64(0))
            with h.branch(channels < 0) as B:
                begin, end = first * step, stop * step
                with h.loop(0, size * step, h.vector_bytes) as V:
                    inside = h.first((end - V.index) / t.bytes, lanes) & ~h.first((begin - V.index) / t.bytes, lanes)
                    h.store(h.offset(target, V.index), h.load(h.offset(at, V.index), t, lanes, inside))
                B.otherwise()
                with h.loop(0, size, carry=[target, at]) as X:
                    into, place = X.carry
                    some = h.select((X.index >= first) & (X.index < stop), channels, h.i64(0))
                    with h.loop(0, step, h.vector_bytes) as V:
                        inside = h.first(some - V.index / t.bytes, lanes)
                        h.store(h.offset(into, V.index), h.load(h.offset(place, V.index), t, lanes, inside))
                    X.carry = [h.offset(into, step), h.offset(place, pitch)]
        return h

    def _narrow(self) -> Helper:
        """``narrow(to, row, source, x_c, line, rows, low, high, size, first, count, channels, step)``: transposed
        straight into place.

        At most one vector of ``channels``, in pixels of ``step`` bytes. Each pixel is written as a whole vector, and
        the next pixel overwrites its end. As for ``copy``, but the source is the first of ``count`` columns that exist.
        """
        f, t = self.f, self.t
        h = f.helper("narrow_rows", PTR, I64, PTR, I64, I64, I64, I64, I64, I64, I64, I64, I64, I64)
        to, row, source, x_c, line, rows, low, high, size, first, count, channels, step = h.params
        lanes, zero = h.lanes(t), h.const(t, 0, h.lanes(t))
        with h.loop(0, rows) as Y:
            target = h.offset(to, Y.index * row)
            with h.loop(0, size * step, h.vector_bytes) as V:
                h.store(h.offset(target, V.index), zero)
            with h.when((Y.index >= low) & (Y.index < high)):
                start = h.offset(source, (Y.index - low) * line)
                into = h.offset(target, first * step)
                with h.loop(0, count, lanes) as X:
                    inside = h.first(count - X.index, lanes)
                    none = h.const(inside.type, 0, lanes)
                    place = h.offset(start, X.index * t.bytes)
                    lines = [
                        h.load(h.offset(place, x_c * i), t, lanes, h.select(channels > i, inside, none))
                        for i in range(lanes)
                    ]
                    for i, pixel in enumerate(transpose(lines)):
                        h.store(h.offset(into, (X.index + i) * step), pixel)
        return h

    def lay(self, a: Value, pixels: Value, p: _Place, x: Value, channels: Value, v: dict[str, Value]) -> None:
        """Lay out the volume of ``channels`` from ``x`` on, for the block at ``p``; ``pixels`` is memory for transposed
        pixels."""
        f, g, t = self.f, self.g, self.t
        zero = f.i64(0)
        extent = [(p.count[i] - 1) * g["s" + n] + g["f" + n] + 1 for i, n in enumerate("zyx", 1)]
        front, top, left = (p.first[i] * g["s" + n] - g["p" + n] for i, n in enumerate("zyx", 1))
        whole = g["nx"] == 1
        from_x = f.select(whole, zero, smaller(f, larger(f, left, zero), g["iw"]))
        to_x = f.select(whole, g["iw"], larger(f, smaller(f, left + extent[2], g["iw"]), from_x))
        begin = smaller(f, larger(f, top, zero), g["ih"])
        end = larger(f, smaller(f, top + extent[1], g["ih"]), begin)
        planar = g["planar"] != 0
        transposed = (g["x_last"] == 0) & ~planar
        pitch = f.select(transposed, f.i64(row_bytes(f)), g["x_p"])
        first, last = larger(f, from_x - left, zero), smaller(f, to_x - left, extent[2])
        with (
            f.loop(0, p.count[0]) as N,
            f.loop(0, f.select(planar, channels, f.i64(1))) as C,
            f.loop(0, extent[0]) as Z,
        ):
            depth = front + Z.index
            stop = f.select((depth >= 0) & (depth < g["id"]), end, begin)
            image = f.offset(x, (p.first[0] + N.index) * g["x_n"] + C.index * g["x_c"])
            source = f.offset(image, depth * g["x_z"] + (begin * g["iw"] + from_x) * g["x_p"])
            narrow = transposed & (v["pitch"] <= f.vector_bytes) & (last - first >= f.lanes(t) // 2)
            with f.when(transposed & ~narrow & (stop > begin)):
                count = (stop - begin - 1) * g["iw"] + (to_x - from_x)
                f.call(self.to_channels, pixels, source, g["x_c"], count, channels)
            start = f.offset(f.select(transposed, pixels, source), (left - from_x) * pitch)
            # Whole pixels are copied where all their channels are: a transposition writes up to the end of a vector.
            there = f.select(transposed, _whole(channels, f.i64(f.lanes(t))), channels) * t.bytes
            together = planar | (pitch == v["pitch"]) & (there == pitch)
            target = f.offset(a, N.index * v["image"] + C.index * v["plane"] + Z.index * v["slice"])
            with f.branch(narrow) as B:
                inside = f.offset(source, larger(f, left - from_x, zero) * t.bytes)  # where padding is negative
                f.call(self.narrow, target, v["row"], inside, g["x_c"], g["iw"] * t.bytes, extent[1], begin - top,
                stop - top,
                       extent[2], first, last - first, channels, v["pitch"])  # fmt: skip
                B.otherwise()
                f.call(self.copy, target, v["row"], start, pitch, g["iw"] * pitch, extent[1], begin - top, stop - top,
                       extent[2], first, last, f.select(together, f.i64(-1), channels), v["pitch"])  # fmt: skip


def _volume(f: Function, g: dict[str, Value], last: Value) -> dict[str, Value]:
    return {x: f.select(last, g[x + "1"], g[x + "0"]) for x in VOLUME}


def _tables(f: Function, g: dict[str, Value], tables: Value, last: Value) -> tuple[Value, Value, Value]:
    """The tables of this panel's volume: tiles for whole panels of outputs and for the last one, and runs."""
    names = (("tiles00", "tiles10"), ("tiles01", "tiles11"), ("runs0", "runs1"))
    whole, narrow, runs = (f.offset(tables, f.select(last, g[b], g[a])) for a, b in names)
    return whole, narrow, runs


def _copy_pixels(f: Function, t: Type, to_type: Type) -> Helper:
    """``pixels(to, to_p, from, from_p, pixels, channels)``: copy pixels whose channels are contiguous on both sides."""
    h = f.helper("copy_pixels", PTR, I64, PTR, I64, I64, I64)
    to, to_p, source, from_p, pixels, channels = h.params
    lanes = h.lanes(t)
    with h.loop(0, channels, lanes) as V:
        inside, into = h.first(channels - V.index, lanes), h.offset(to, V.index * to_type.bytes)
        with h.loop(0, pixels, carry=[into, h.offset(source, V.index * t.bytes)]) as P:
            into, place = P.carry
            h.store(into, h.load(place, t, lanes, inside).to(to_type), inside)
            P.carry = [h.offset(into, to_p), h.offset(place, from_p)]
    return h


# ---- weights --------------------------------------------------------------------------------------------------------
def _panel(f: Function, dtype: str) -> Helper:
    """``panel(to, panel, places, w, w_m, w_c, m, c, taps, unit, deep, planar, w_h, halves)``: ``m`` by ``c``, see the
    kernel.

    The channels come in bfloat16 pairs, of which ``halves`` exist.
    """
    t = _item(dtype)
    h = f.helper("panel", PTR, I64, PTR, PTR, *[I64] * 10)
    to, panel, places, w, w_m, w_c, m, c, taps, unit, deep, planar, w_h, halves = h.params
    lanes, pitch, item = h.lanes(t), row_bytes(h), TYPES[dtype].bytes
    whole, none = _whole(c, unit), h.first(h.i64(0), lanes)

    def taps_of(row: Value, first: Value, second: Value) -> Value:
        if dtype != "bfloat16":
            return h.load(row, t, lanes, first)
        low, high = (h.load(*at).to(U32) for at in ((row, U16, lanes, first), (h.offset(row, w_h), U16, lanes, second)))
        return (low | high << 16).bits(F32)

    def place(channel: Value, tap: Value) -> Value:
        at = h.offset(places, tap * 24)
        base, count, index = (h.load(h.offset(at, 8 * n), I64) for n in range(3))
        inside = h.select(planar != 0, channel * count + index, index * whole + channel)
        return base + (panel * count * deep + inside) * pitch

    def by_taps() -> None:
        with h.loop(0, whole) as C, h.loop(0, m, lanes) as V, h.loop(0, taps, lanes) as K:
            source = h.offset(w, V.index * w_m + C.index * w_c + K.index * item)
            some = h.first(h.select(C.index < c, taps - K.index, h.i64(0)), lanes)
            others = h.first(h.select(C.index * 2 + 1 < halves, taps - K.index, h.i64(0)), lanes)
            rows = []
            for i in range(lanes):
                there = m - V.index > i
                row = h.offset(source, w_m * i)
                rows.append(taps_of(row, h.select(there, some, none), h.select(there, others, none)))
            for i, tap in enumerate(transpose(rows)):
                with h.when(taps - K.index > i):
                    h.store(h.offset(to, place(C.index, K.index + i) + V.index * t.bytes), tap)

    def together() -> None:
        """Whole squares, where channels and their taps are contiguous in memory."""
        with h.loop(0, m, lanes) as V:
            left, target = m - V.index, h.offset(to, V.index * t.bytes)
            with h.loop(0, c * taps, lanes, carry=[h.i64(0), h.i64(0)]) as K:
                channel, tap = K.carry
                some = h.first(c * taps - K.index, lanes)
                source = h.offset(w, V.index * w_m + K.index * t.bytes)
                rows = [
                    h.load(h.offset(source, w_m * i), t, lanes, h.select(left > i, some, none)) for i in range(lanes)
                ]
                for i, column in enumerate(transpose(rows)):
                    with h.when(c * taps - K.index > i):
                        h.store(h.offset(target, place(channel, tap)), column)
                    turns = tap + 1 == taps
                    channel, tap = h.select(turns, channel + 1, channel), h.select(turns, h.i64(0), tap + 1)
                K.carry = [channel, tap]
            with h.loop(c, whole) as C, h.loop(0, taps) as K:
                h.store(h.offset(target, place(C.index, K.index)), h.const(t, 0, lanes))

    if dtype == "bfloat16":
        by_taps()
        return h
    with h.branch((w_c == taps * t.bytes) & (c * taps >= lanes)) as B:
        together()
        B.otherwise()
        by_taps()
    return h


@kernel
def window_weights(f: Function, dtype: str) -> None:
    """Weights as panels ``[panel of m, panel of c, (tap, c), m]`` (planar: ``(c, tap)``), for one convolution or
    several that share the taps.

    Pointers: result, weights, and three int64 per tap: the byte offset of its convolution's panels, how many taps that
    convolution has, and which of these this one is. See :data:`PANEL_ARGS`. The range counts panels.
    """
    t = _item(dtype)
    helper, width = _panel(f, dtype), row_bytes(f) // t.bytes
    m, c, w_m, w_c, taps, unit, w_g, p_g, planar, w_h, odd = (f.size(i) for i in range(len(PANEL_ARGS)))
    across = (c + width - 1) / width
    panels = (m + width - 1) / width * across
    with f.loop(f.begin, f.end) as T:
        group, panel = T.index / panels, T.index % panels
        row, column = panel / across * width, panel % across * width
        w = f.offset(f.data(1), group * w_g + row * w_m + column * w_c)
        some, channels = smaller(f, m - row, width), smaller(f, c - column, width)
        to = f.offset(f.data(0), group * p_g)
        halves = channels * 2 - f.select(column + channels == c, odd, f.i64(0))
        depth = _depth(f, t, c, unit)
        f.call(helper, to, panel, f.data(2), w, w_m, w_c, some, channels, taps, unit, depth, planar, w_h, halves)


@kernel
def pair_rows(f: Function, dtype: str) -> None:
    """Pair rows of 16-bit items; the last row is paired with zeros if it is alone. See :data:`PAIR_ARGS`.

    Pointers: result, source. The range counts pieces of pairs.
    """
    assert TYPES[dtype].bytes == 2
    size, rows, x_o, x_r, pieces = (f.size(i) for i in range(len(PAIR_ARGS)))
    lanes, pairs = f.lanes(U16), (rows + 1) / 2
    none = f.first(f.i64(0), lanes)
    with f.loop(f.begin, f.end) as T:
        pair, start = T.index / pieces, T.index % pieces * PIECE
        row = pair % pairs * 2
        first = f.offset(f.data(1), pair / pairs * x_o + row * x_r)
        second, alone = f.offset(first, x_r), row + 1 >= rows
        to = f.offset(f.data(0), pair * size * 4)
        with f.loop(start, smaller(f, start + PIECE, size), lanes) as V:
            left = size - V.index
            inside = f.first(left, lanes)
            both = [f.load(f.offset(first, V.index * 2), U16, lanes, inside)]
            both.append(f.load(f.offset(second, V.index * 2), U16, lanes, f.select(alone, none, inside)))
            for i, pairs in enumerate(interleaved(both)):
                f.store(f.offset(to, V.index * 4 + i * 2 * lanes), pairs, f.first(left * 2 - i * lanes, lanes))


# ---- products -------------------------------------------------------------------------------------------------------
@kernel
def conv_windows(f: Function, dtype: str) -> None:
    """Output, or input's gradient; see :data:`WINDOWS_ARGS`. The range counts blocks, groups, ranges of panels of m.

    Pointers: output, input, weights of :func:`window_weights`, bias, tables, slot.
    """
    t, out = _item(dtype), TYPES[dtype]
    g = {name: f.size(i) for i, name in enumerate(WINDOWS_ARGS)}
    tiles, back, copy = _Tiles(f, dtype), to_pixels(f, t, out), _copy_pixels(f, t, out)
    volume = _Volume(f, t, g, to_channels(f, t))
    level, lanes = f.scratch(row_bytes(f)), f.lanes(t)
    pitch, width, zero = f.i64(row_bytes(f)), row_bytes(f) // t.bytes, f.i64(0)
    a = f.data(5)
    sums, pixels = f.offset(a, g["at_sum"]), f.offset(a, g["at_pixels"])
    size = g["rows"] * pitch
    c_panels, m_panels = (g["c"] + width - 1) / width, (g["m"] + width - 1) / width
    deep = _depth(f, t, g["c"], g["unit"])
    ranges = (m_panels + g["panels"] - 1) / g["panels"]
    with f.loop(f.begin, f.end) as T:
        rest, panel = T.index / ranges, T.index % ranges * g["panels"]
        block, group = rest / g["groups"], rest % g["groups"]
        p, last = _place(f, g, block), smaller(f, panel + g["panels"], m_panels)
        bounds = volume.bounds(p)
        x = f.offset(f.data(1), group * g["c"] * g["x_c"])
        w = f.offset(f.data(2), group * g["w_g"])
        bias = f.offset(f.data(3), group * g["m"] * t.bytes)
        with f.loop(0, c_panels) as C:
            channels = smaller(f, g["c"] - C.index * width, width)
            final = C.index + 1 == c_panels
            v = _volume(f, g, final)
            volume.lay(a, pixels, p, f.offset(x, C.index * width * g["x_c"]), channels, v)
            with f.loop(0, g["phases"]) as F:
                entry = f.offset(f.data(4), g["phases_at"] + F.index * (8 * len(PHASE)))
                phase = dict(zip(PHASE, _numbers(f, entry, len(PHASE)), strict=True))
                whole, narrow, runs = _tables(f, phase, f.data(4), final)
                count = f.select(phase["count"] != 0, phase["count"], p.pixels)
                length = f.select(final, phase["length1"], phase["length0"])
                with f.loop(0, phase["runs"], phase["some"]) as K, f.loop(panel, last) as P:
                    m = smaller(f, g["m"] - P.index * width, width)
                    for at in range(0, width, lanes):
                        given = f.first(f.select(g["bias"] != 0, m - at, zero), lanes)
                        values = f.load(f.offset(bias, (P.index * width + at) * t.bytes), t, lanes, given)
                        f.store(f.offset(level, at * t.bytes), values)
                    at_c = f.offset(sums, (P.index - panel) * size)
                    starts = (C.index == 0) & (K.index == 0)
                    d, d_m = f.select(starts, level, at_c), f.select(starts, zero, pitch)
                    before = (P.index * c_panels + C.index) * phase["taps"] * deep + K.index * length
                    b = f.offset(w, phase["begin"] + before * pitch)
                    some = smaller(f, phase["runs"] - K.index, phase["some"])
                    tiles.call(m, a, f.select(m < width, narrow, whole), count,
                    f.offset(runs, K.index * (8 * len(RUN))),
                               some, bounds, length * t.bytes, f.i64(t.bytes), b, length * pitch, at_c, d,
                               d_m)  # fmt: skip
        first = [p.first[i] * g["u" + n] for i, n in enumerate("zyx", 1)]
        sizes = [smaller(f, p.count[i] * g["u" + n], g["d" + n] - first[i - 1]) for i, n in enumerate("zyx", 1)]
        cut = g["nx"] > 1  # only then are rows not contiguous
        rows, plane = f.select(cut, sizes[1], f.i64(1)), f.select(cut, sizes[2], sizes[1] * sizes[2])
        y = f.offset(f.data(0), group * g["m"] * g["y_c"] + (first[1] * g["dx"] + first[2]) * g["y_p"])
        with f.loop(panel, last) as P, f.loop(0, p.count[0]) as N, f.loop(0, sizes[0]) as Z, f.loop(0, rows) as Y:
            m = smaller(f, g["m"] - P.index * width, width)
            sum_at = N.index * g["sum_n"] + Z.index * g["sum_z"] + Y.index * g["sum_y"]
            source = f.offset(sums, (P.index - panel) * size + sum_at * pitch)
            place = (p.first[0] + N.index) * g["y_n"] + (first[0] + Z.index) * g["y_z"] + Y.index * g["dx"] * g["y_p"]
            target = f.offset(y, place + P.index * width * g["y_c"])
            with f.branch(g["y_last"] != 0) as B:
                f.call(copy, target, g["y_p"], source, pitch, plane, m)
                B.otherwise()
                f.call(back, target, g["y_c"], source, pitch, plane, m)


@kernel
def windows_gradient(f: Function, dtype: str) -> None:
    """Gradient of the weights (of bfloat16 pairs in float32); see :data:`WEIGHT_ARGS`. The range counts parts, groups,
    ranges of panels of m, of ``cc``.

    Pointers: result ``[part, group, m, c, tap]``, input, output's gradient, tables, slot.
    """
    t = _item(dtype)
    g = {name: f.size(i) for i, name in enumerate(WEIGHT_ARGS)}
    transposing = to_channels(f, t)
    tiles, back, copy = _Tiles(f, dtype), to_pixels(f, t, t), _copy_pixels(f, t, t)
    volume = _Volume(f, t, g, transposing)
    none = f.scratch(row_bytes(f))
    for at in range(0, row_bytes(f), f.vector_bytes):
        f.store(f.offset(none, at), f.const(t, 0, f.lanes(t)))
    pitch, width, zero = f.i64(row_bytes(f)), row_bytes(f) // t.bytes, f.i64(0)
    a, taps, direct = f.data(4), g["taps"], g["direct"] != 0
    y, sums, pixels = (f.offset(a, g[name]) for name in ("at_g", "at_sum", "at_pixels"))
    c_panels, m_panels = (g["c"] + g["cc"] - 1) / g["cc"], (g["m"] + width - 1) / width
    ranges = (m_panels + g["panels"] - 1) / g["panels"]
    size = g["rows"] * pitch
    with f.loop(f.begin, f.end) as T:
        rest, final = T.index / c_panels, T.index % c_panels + 1 == c_panels
        c, rest, m = T.index % c_panels * g["cc"], rest / ranges, rest % ranges * g["panels"] * width
        part, group = rest / g["groups"], rest % g["groups"]
        channels, some = smaller(f, g["c"] - c, g["cc"]), smaller(f, g["m"] - m, g["panels"] * width)
        begin = part * g["run"]
        x = f.offset(f.data(1), (group * g["c"] + c) * g["x_c"])
        grad = f.offset(f.data(2), (group * g["m"] + m) * g["y_c"])
        v = _volume(f, g, final)
        whole, narrow, runs = _tables(f, g, f.data(3), final)
        with f.loop(begin, smaller(f, begin + g["run"], g["blocks"])) as R:
            p = _place(f, g, R.index)
            with f.when(~direct):
                volume.lay(a, pixels, p, x, channels, v)
            line = p.first[2] * g["sy"] * g["iw"] + p.first[3] * g["sx"]
            in_place = f.offset(x, p.first[0] * g["x_n"] + p.first[1] * g["sz"] * g["x_z"] + line * g["x_p"])
            at_x = f.select(direct, in_place, a)
            at_y = f.offset(grad, (p.first[2] * g["ow"] + p.first[3]) * g["y_p"])
            bounds = volume.bounds(p)
            with f.loop(0, some, width) as P:
                those = smaller(f, some - P.index, width)
                with f.loop(0, p.count[0]) as N, f.loop(0, p.count[1]) as Z:
                    place = (p.first[0] + N.index) * g["y_n"] + (p.first[1] + Z.index) * g["y_z"]
                    source = f.offset(at_y, place + P.index * g["y_c"])
                    target = f.offset(y, (N.index * p.count[1] + Z.index) * p.plane * pitch)
                    with f.branch(g["y_last"] != 0) as B:
                        f.call(copy, target, pitch, source, g["y_p"], p.plane, those)
                        B.otherwise()
                        f.call(transposing, target, source, g["y_c"], p.plane, those)
                at_c = f.offset(sums, P.index / width * size)
                d, d_m = f.select(R.index == begin, none, at_c), f.select(R.index == begin, zero, pitch)
                step = g["sx"] * f.select(direct, g["x_p"], v["pitch"])
                tiles.call(those, at_x, f.select(those < width, narrow, whole), channels * taps, runs,
                           p.count[0] * p.count[1] * p.count[2], bounds, p.count[3] * step, step, y, p.count[3] * pitch,
                           at_c, d, d_m)  # fmt: skip
        w_m = g["c"] * taps * t.bytes
        to = f.offset(f.data(0), part * g["c_p"] + (group * g["m"] + m) * w_m + c * taps * t.bytes)
        with f.loop(0, some, width) as P:
            source = f.offset(sums, P.index / width * size)
            f.call(
                back, f.offset(to, P.index * w_m), w_m, source, pitch, channels * taps,
                smaller(f, some - P.index, width),
            )  # fmt: skip
