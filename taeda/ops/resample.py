"""Resampling along dimensions, which interpolation and adaptive averages use.

Each output is a short weighted sum of inputs (``taeda/kernels/resample.py``): of the last two dimensions
at once, and of those before one at a time. The tables of weights depend on sizes alone and are kept.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from .. import _core
from .._core import Tensor
from .._core.formats import is_channels_last
from .._core.planners import kept
from ..kernels import resample as kernels
from ..kernels import target
from ._lazy import np
from .exchange import from_numpy
from .table import primitive


class Line(NamedTuple):
    """The resampling of one dimension. ``scale`` is the caller's factor, or 0; ``transposed`` is the gradient."""

    kind: str
    inputs: int
    outputs: int
    scale: float
    align_corners: bool
    antialias: bool
    double: bool = False  # positions in float64
    fixed: bool = False  # weights in fixed point
    transposed: bool = False


# ---- weights ---------------------------------------------------------------------------------------------------------


def _step(line: Line) -> float:
    """Distance in the input from one output to the next, in the precision in which PyTorch computes it."""
    real = _real(line)
    if line.align_corners:
        return float(real(line.inputs - 1) / real(line.outputs - 1)) if line.outputs > 1 else 0.0
    if line.scale > 0:
        return float(real(1.0 / line.scale))
    return float(real(line.inputs) / real(line.outputs))


def _real(line: Line):
    return np.float64 if line.double else np.float32


def _cubic(x, a: float):
    """Keys' kernel (1981) at distance ``x``."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _antialiased(line: Line):
    """Taps of a kernel widened to the step where that is above 1, normalised, as image libraries do."""
    step = _step(line)
    radius = 1.0 if line.kind == "linear" else 2.0
    stretch = max(step, 1.0)
    support = radius * stretch
    n = math.ceil(support) * 2 + 1
    center = step * (np.arange(line.outputs) + 0.5)
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)
    count = np.minimum((center + support + 0.5).astype(np.int64), line.inputs) - first
    j = np.arange(n)[:, None]
    x = (j + first - center + 0.5) / stretch
    w = np.maximum(1 - np.abs(x), 0) if line.kind == "linear" else _cubic(x, -0.5)
    w = np.where(j < np.minimum(count, n), w, 0.0)
    total = w.sum(0)
    w = w / np.where(total == 0, 1, total)
    return np.minimum(j + first, line.inputs - 1), w


def _plain(line: Line):
    """Taps of nearest, linear and cubic interpolation."""
    single = _real(line)
    step = single(_step(line))
    o = np.arange(line.outputs).astype(single)
    top = line.inputs - 1
    if line.kind == "nearest":
        return np.minimum((o * step).astype(np.int64), top)[None], np.ones((1, line.outputs))
    if line.kind == "nearest-exact":
        return np.minimum(((o + single(0.5)) * step).astype(np.int64), top)[None], np.ones((1, line.outputs))
    src = o * step if line.align_corners else step * (o + single(0.5)) - single(0.5)
    if line.kind == "linear":
        src = np.maximum(src, single(0))
        low = np.minimum(src.astype(np.int64), top)
        part = np.clip(src - low.astype(single), 0, 1).astype(np.float64)
        return np.array([low, np.minimum(low + 1, top)]), np.array([1 - part, part])
    base = np.floor(src)
    part = (src - base).astype(np.float64)
    taps = np.arange(-1, 3)[:, None]
    return np.clip(base.astype(np.int64) + taps, 0, top), _cubic(part - taps, -0.75)


def _fixed_point(index, weight):
    """Weights rounded to multiples of a power of 2, such that the largest takes 15 bits, as for images in 8 bits.
    Weights of several taps on one element are rounded together.
    """
    weight = weight.copy()
    for k in range(1, len(weight)):
        same = index[k] == index[k - 1]
        weight[k] += np.where(same, weight[k - 1], 0)
        weight[k - 1] = np.where(same, 0, weight[k - 1])
    unit = 1
    while int(0.5 + weight.max(initial=0) * 2 * unit) < 1 << 15 and unit < 1 << 22:
        unit *= 2
    return np.trunc(weight * unit + np.copysign(0.5, weight)) / unit


def _areas(line: Line):
    """Equal taps of the windows of adaptive averages.

    Windows may have a tap less than others. Their last element takes it then: infinity times 0 would be NaN.
    """
    o = np.arange(line.outputs)
    first, stop = o * line.inputs // line.outputs, -(-(o + 1) * line.inputs // line.outputs)
    size = stop - first
    taps = np.arange(size.max(initial=1))[:, None]
    if line.transposed:  # it leaves out taps of weight 0
        share = np.where(taps < size, 1.0, 0.0)
    else:
        share = np.where(taps < size - 1, 1.0, 1 / (len(taps) - size + 1))
    return np.minimum(first + taps, stop - 1), share / size


@functools.lru_cache(maxsize=256)
def _taps(line: Line):
    """Indices (int64) and weights (float64) of each tap of each output."""
    forward = line._replace(transposed=False)
    if line.kind == "area":
        index, weight = _areas(line)
    else:
        index, weight = (_antialiased if line.antialias else _plain)(forward)
    weight = _fixed_point(index, weight) if line.fixed else weight
    if line.transposed:  # for each input, the outputs it went to
        taps, outputs = index.shape
        i, o, w = index.ravel(), np.tile(np.arange(outputs), taps), weight.ravel()
        used = w != 0
        i, o, w = i[used], o[used], w[used]
        order = np.lexsort((o, i))
        i, o, w = i[order], o[order], w[order]
        counts = np.bincount(i, minlength=line.inputs)
        starts = np.cumsum(counts) - counts
        slot = np.arange(len(i)) - np.repeat(starts, counts)
        n = max(int(counts.max(initial=0)), 1)
        # An unused tap has weight 0 and the index of a used one: other elements must not turn a result into NaN.
        index = np.where(counts, o[np.minimum(starts, len(o) - 1)], 0) * np.ones((n, 1), np.int64)
        weight = np.zeros((n, line.inputs))
        index[slot, i], weight[slot, i] = o, w
    return np.ascontiguousarray(index, np.int64), np.ascontiguousarray(weight, np.float64)


@functools.lru_cache(maxsize=256)
def _table(line: Line, dtype: str = "float64") -> tuple[Tensor, Tensor, int]:
    """Indices and weights (of ``dtype``), tap-major, and the number of taps."""
    index, weight = _taps(line)
    return from_numpy(index), from_numpy(weight.astype(dtype)), index.shape[0]


class _Row(NamedTuple):
    """A row for :func:`kernels.plane`: its tables, the numbers of taps, of registers in a piece and of pieces.

    ``picks`` says which kernel it has.
    """

    tables: tuple[Tensor, ...]
    taps: int
    registers: int
    pieces: int
    picks: bool


def _piece(first, stop, room: int) -> int:
    """The number of registers in a piece whose inputs are at most ``room``: all, or as many as always fit, or none."""
    registers, count = len(first), 0
    if stop.max() - first.min() <= room:
        return registers
    while all(
        stop[i : i + count + 1].max() - first[i : i + count + 1].min() <= room for i in range(0, registers, count + 1)
    ):
        count += 1
    return count


@kept  # for each place: a register is the target's
def _row(line: Line, dtype: str, staged: bool) -> _Row | None:
    """The tables of a row of ``dtype``; None where one register of outputs has too many inputs to stage."""
    width, item = target.here().vector_bytes, np.dtype(dtype).itemsize
    lanes = max(width // item, 1)
    index, weight = _taps(line)
    taps, outputs = index.shape
    registers = -(-outputs // lanes)
    shown = np.minimum(np.arange(registers * lanes), outputs - 1)  # the last register repeats the last output
    index, weight = (x.take(shown, 1).reshape(taps, registers, lanes).transpose(1, 0, 2) for x in (index, weight))
    starts, ends = index.min(2), index.max(2) + 1
    places = index - starts[:, :, None]
    picks = width == 64 and bool((ends - starts).max() <= 2 * lanes)
    place_dtype = np.int64 if picks and item == 8 else np.int32
    first, stop = starts.min(1), ends.max(1)
    count = _piece(first, stop, kernels.STAGED // item) if staged else registers
    if not count:
        return None
    edges = range(0, registers, count)
    spans = np.array([np.minimum.reduceat(first, edges), np.maximum.reduceat(stop, edges)]).T
    arrays = (starts, (places if picks else places * item).astype(place_dtype), weight.astype(dtype), spans)
    return _Row(tuple(from_numpy(np.ascontiguousarray(x)) for x in arrays), taps, count, len(edges), picks)


_ONE = Line("nearest", 1, 1, 0.0, False, False)


@functools.lru_cache(maxsize=256)
def _is_choice(line: Line) -> bool:
    """Whether each output is one of the inputs."""
    _, weight = _taps(line)
    return len(weight) == 1 and bool((weight == 1).all())


def _sides(line: Line) -> tuple[int, int]:
    """The numbers of elements that go in and come out."""
    return (line.outputs, line.inputs) if line.transposed else (line.inputs, line.outputs)


def _dtype_of_weights(x: Tensor) -> str:
    return kernels.working(x.dtype.name)


@primitive(method=False, out=False, batch="along", planned=True)
def resample(input, dim, line):
    """One dimension of ``input`` resampled as ``line`` says."""
    dim = dim % input.dim()
    if is_channels_last(input) and dim > 1:  # the same along dimensions in the order of memory
        n = input.dim()
        return _along(input.permute(0, *range(2, n), 1), dim - 1, line).permute(0, n - 1, *range(1, n - 1))
    return _along(input, dim, line)


resample.vjp(input=lambda g, dim, line: resample(g, dim, line._replace(transposed=not line.transposed)))


def _along(input, dim, line):
    x = input.contiguous()
    sizes = list(x.shape)
    inner, before = math.prod(sizes[dim + 1 :]), math.prod(sizes[:dim])
    inputs, sizes[dim] = _sides(line)
    result = _core.empty(sizes, x.dtype)
    if result.numel() == 0 or not _core.kernels_run_on(result):  # no tables of weights are made for meta
        return result
    if inner == 1:
        return _of_planes(x.reshape(before, 1, inputs), _ONE, line).reshape(sizes)
    index, weight, taps = _table(line, _dtype_of_weights(x))
    rows, grain = before * sizes[dim], max(1, 16384 // (inner * taps))
    address = kernels.outer(x.dtype.name)
    _core.launch(address, (result, x, index, weight), (sizes[dim], inputs, inner, taps), rows, grain)
    return result


@primitive(method=False, out=False, batch="fold", planned=True)
def resample_plane(input, across, along):
    """Resample the last two dimensions of ``input``: ``across`` describes the rows, ``along`` the elements of a row."""
    if not is_channels_last(input):
        return _of_planes(input.contiguous(), across, along)
    n = input.dim()
    x = input.permute(0, *range(2, n), 1).contiguous()
    out = _of_pixels(x.reshape(-1, *x.shape[-3:]), across, along)
    return out.reshape(*x.shape[:-3], *out.shape[1:]).permute(0, n - 1, *range(1, n - 1))


resample_plane.vjp(
    input=lambda g, across, along: resample_plane(
        g, across._replace(transposed=not across.transposed), along._replace(transposed=not along.transposed)
    )
)


def _of_planes(x, across, along):
    """Contiguous planes."""
    (in_h, out_h), (in_w, out_w) = _sides(across), _sides(along)
    out = _core.empty((*x.shape[:-2], out_h, out_w), x.dtype)
    if out.numel() == 0 or not _core.kernels_run_on(out):  # no tables of weights are made for meta
        return out
    dtype = _dtype_of_weights(x)
    index, weight, taps = _table(across, dtype)
    staged = dtype != x.dtype.name or not _is_choice(across)
    row = _row(along, dtype, staged)
    if row is None:  # rows that are much longer than the result's
        if dtype != x.dtype.name:
            return _of_planes(x.to(_core.dtype_by_name(dtype)), across, along).to(x.dtype)
        return _of_planes(_along(x, x.dim() - 2, across), _ONE._replace(inputs=out_h, outputs=out_h), along)
    address = kernels.plane(x.dtype.name, staged, row.picks)
    args = (out_h, in_h, taps, out_w, in_w, row.taps, row.pieces, row.registers)
    rows, work = out.numel() // out_w, taps * in_w + row.taps * out_w
    _core.launch(address, (out, x, index, weight, *row.tables), args, rows, max(1, 32768 // work))
    return out


#: For windows with more taps, one dimension is resampled after the other.
FEW_TAPS = 16


def _of_pixels(x, across, along):
    """Contiguous images with channels last."""
    (in_h, out_h), (in_w, out_w) = _sides(across), _sides(along)
    channels, dtype = x.shape[3], _dtype_of_weights(x)
    out = _core.empty((x.shape[0], out_h, out_w, channels), x.dtype)
    if out.numel() == 0 or not _core.kernels_run_on(out):  # no tables of weights are made for meta
        return out
    index_h, weight_h, taps_h = _table(across, dtype)
    index_w, weight_w, taps_w = _table(along, dtype)
    if taps_h * taps_w > FEW_TAPS:
        return _along(_along(x, 1, across), 2, along)
    taps = (taps_h, taps_w) if taps_h * taps_w <= 4 else (0, 0)
    args = (out_h, in_h, taps_h, out_w, in_w, taps_w, channels)
    grain = max(1, 32768 // (out_w * channels * taps_h * taps_w))
    tensors = (out, x, index_h, weight_h, index_w, weight_w)
    _core.launch(kernels.plane_last(x.dtype.name, taps), tensors, args, x.shape[0] * out_h, grain)
    return out


def resampled(input: Tensor, lines: Sequence[Line | None]) -> Tensor:
    """The last dimensions of ``input`` resampled, each as its line describes; None leaves one as it is."""
    first = input.dim() - len(lines)
    if len(lines) > 1 and lines[-2] and lines[-1]:
        input, lines = resample_plane(input, lines[-2], lines[-1]), lines[:-2]
    for d, line in reversed([*enumerate(lines)]):
        input = resample(input, first + d, line) if line else input
    return input
