"""Softmax and norms of few long rows where there are no vectors: reductions, then a kernel for each chunk of a row.

On a GPU a row has a warp for each chunk. With one lane the CPU does the same, so that both have the same bits. A
:class:`~taeda._core.rowwise.Rowwise` calls the function of its name with its contiguous input, the number of rows, that
of their elements, the other operands and its first parameter.
"""

from __future__ import annotations

import math
from functools import partial

from .._core import ALL_DTYPES, empty, empty_like, float32, launch
from .._core.reduce import CHUNK, Reducer, chunks_of_columns
from ..kernels import normalize as norms
from ..kernels import scan as scans
from ..kernels import softmax as kernels

#: A number for each row is as exact as what kernels compute in.
_WORKING = tuple(
    (float32 if d.itemsize == 2 else d).code if d.is_floating_point and d.itemsize > 1 else -1 for d in ALL_DTYPES
)
_terms = Reducer("softmax", "softmax_terms", (_WORKING, _WORKING), states=2).run
_moments = Reducer("layer_norm", "var_mean", (_WORKING, _WORKING), states=3, nparams=1).moments
_squares = Reducer("rms_norm", "sumsq", (_WORKING,)).run


def _by_chunks(kernel, option, n, letters, *tensors):
    """Launch a kernel on all chunks of rows of ``n`` elements.

    ``letters`` say what a tensor has: ``f`` all elements, ``w`` a row for all rows, ``r`` a number for each row, ``c``
    one for each chunk, ``b`` one more for each row, which comes behind them, ``a`` one that comes before.
    """
    address = kernel(tuple(None if t is None else t.dtype.name for t in tensors), *option)
    whole, rest = divmod(n, CHUNK)
    rows = tensors[letters.index("f")].numel() // n
    for first, count, length in ((0, whole, CHUNK), (whole, 1, rest)):
        pointers, args = [], [length, 1, count]
        for t, letter in zip(tensors, letters, strict=True):
            item = 0 if t is None else t.itemsize
            along = item if letter in "fw" else 0
            chunks = whole + (rest > 0)
            row = {"f": n, "w": 0, "r": 1, "c": chunks, "b": chunks + 1, "a": chunks + 1}[letter] * item
            chunk = {"f": CHUNK, "w": CHUNK, "r": 0, "c": 1, "b": 1, "a": 1}[letter] * item
            pointers.append(0 if t is None else (t, first * chunk + (item if letter == "a" else 0)))
            args += along, 0, row, chunk
        if length:
            launch(address, tuple(pointers), tuple(args), rows * count, 1)


def softmax(x, rows, n, more, p, log=False):
    top, total = _terms(x.reshape(rows, n), 1)
    y = empty_like(x)
    _by_chunks(kernels.chunk_softmax, (log,), n, "ffrr", y, x, top, total)
    return y


def softmax_backward(g, rows, n, more, p, log=False):
    y = more[0].contiguous()
    parts, dx = empty((rows, -(-n // CHUNK)), float32 if g.itemsize == 2 else g.dtype), empty_like(g)
    _by_chunks(kernels.chunk_sum, (log,), n, "cff", parts, g, y)
    _by_chunks(kernels.chunk_softmax_backward, (log,), n, "fffr", dx, g, y, parts.sum(1))
    return dx


log_softmax, log_softmax_backward = partial(softmax, log=True), partial(softmax_backward, log=True)


def layer_norm(x, rows, n, more, eps):
    weight, bias = (t if t is None else t.contiguous() for t in more)
    variance, mean = _moments(x.reshape(rows, n), 1, 0.0, False)
    y = empty_like(x)
    _by_chunks(norms.chunk_normalize, ("w",), n, "ffrrww", y, x, mean, (variance + eps).rsqrt(), weight, bias)
    return y


def rms_norm(x, rows, n, more, eps):
    (weight,) = more
    y, square = empty_like(x), _squares(x.reshape(rows, n), 1)
    weight = weight if weight is None else weight.contiguous()
    _by_chunks(norms.chunk_normalize, ("w",), n, "ffrrww", y, x, None, (square / n + eps).rsqrt(), weight, None)
    return y


def group_norm(x, groups, weight, bias, eps):
    """Group norm of ``x``, contiguous, whose channels are rows of several chunks."""
    images, channels = x.shape[:2]
    rows = images * groups
    variance, mean = _moments(x.reshape(rows, -1), 1, 0.0, False)

    def of_channels(t):
        return t.reshape(images, groups, 1).expand(images, groups, channels // groups).reshape(-1)

    weight, bias = (t if t is None else t.expand(images, channels).reshape(-1) for t in (weight, bias))
    y = empty_like(x)
    n = x.numel() // (images * channels)
    rstd = (variance + eps).rsqrt()
    _by_chunks(norms.chunk_normalize, ("r",), n, "ffrrrr", y, x, of_channels(mean), of_channels(rstd), weight, bias)
    return y


def norm_backward(x, n, g, weight, affine, eps, centred):
    """Gradients of layer norm (``centred``) or RMS norm; those of weight and bias if ``affine``."""
    rows, square = x.numel() // n, x.reshape(-1, n)
    if centred:
        square, mean = _moments(square, 1, 0.0, False)
    else:
        square, mean = _squares(square, 1) / n, None
    rstd = (square + eps).rsqrt()
    weight = weight if weight is None else weight.contiguous()
    parts = [empty((rows, -(-n // CHUNK)), rstd.dtype) for _ in range(2)]
    _by_chunks(norms.chunk_products, (False, 1), n, "ccffrw", *parts, g, x, mean, weight)
    dot, total = (t.sum(1) for t in parts)
    slope, level = -dot * rstd.square() / n, -total / n if centred else None
    dx = empty_like(x)
    _by_chunks(
        norms.chunk_normalize_backward, ("w",), n, "fffrrrrw", dx, g, x, mean, rstd, slope, level, weight
    )  # fmt: skip
    if not affine:
        return dx, None, None
    dw, db = (empty((n,), rstd.dtype) for _ in range(2))
    mean = empty((rows,), rstd.dtype).zero_() if mean is None else mean
    address = norms.affine_backward(tuple(t.dtype.name for t in (dw, db, g, x, mean, rstd)), True, 1, "s")
    item, small = x.itemsize, rstd.itemsize
    out, every, moment = (0, 0, 0, small), (n * item, 0, 0, item), (small, 0, 0, 0)
    args = (rows, 1, n, *out, *out, *every, *every, *moment, *moment)
    launch(address, (dw, db, g, x, mean, rstd), args, n, 1)
    return dx, dw, db


def group_norm_backward(x, groups, g, weight, eps):
    """Gradients of :func:`group_norm`; of weight and bias those of each image."""
    images, channels = x.shape[:2]
    n, split = x.numel() // (images * channels), (images, groups, channels // groups)
    count = n * split[2]
    variance, mean = (t.reshape(images, groups, 1) for t in _moments(x.reshape(images * groups, -1), 1, 0.0, False))
    rstd = (variance + eps).rsqrt()

    def of_channels(t):
        return t.expand(split).reshape(-1)

    parts = [empty((images * channels, -(-n // CHUNK)), rstd.dtype) for _ in range(2)]
    _by_chunks(norms.chunk_products, (False, 1), n, "ccffrw", *parts, g, x, of_channels(mean), None)
    dot, total = (t.sum(1).reshape(split) for t in parts)
    weight = weight if weight is None else weight.to(rstd.dtype).reshape(1, *split[1:])
    sums = [(t if weight is None else t * weight).sum(2, True) / -count for t in (dot, total)]
    rows = mean, rstd, sums[0] * rstd.square(), sums[1]
    dx = empty_like(x)
    rows = [of_channels(t) for t in rows] + [None if weight is None else of_channels(weight)]
    _by_chunks(norms.chunk_normalize_backward, ("r",), n, "fffrrrrr", dx, g, x, *rows)
    return dx, *(t.reshape(images, channels) for t in (dot * rstd, total))


def scan(x, rows, n, more, p, op, identity, backward=False):
    """A scan of floats: each chunk's end, the scan of these, then each chunk from there."""
    if not x.is_floating_point():
        return None
    dtype = x.dtype
    working = scans.state_dtype(op, dtype.name, dtype.name)
    ends = empty((rows, 1 - -n // CHUNK), next(d for d in ALL_DTYPES if d.name == working)).fill_(identity)
    written, read = "ba" if backward else "ab"
    _by_chunks(scans.chunk_total, (op, dtype.name), n, written + "f", ends, x)
    ends = ends.flip(1) if backward else ends
    ends = getattr(ends, op)(1)
    ends = ends.flip(1) if backward else ends
    y = empty(x.shape, dtype)
    _by_chunks(scans.chunk_scan, (op, backward), n, "ff" + read, y, x, ends)
    return y


cumsum, reverse_cumsum = (partial(scan, op="cumsum", identity=0.0, backward=back) for back in (False, True))
logcumsumexp = partial(scan, op="logcumsumexp", identity=-math.inf)


def moments(x):
    """Mean and variance of each channel of a batch."""
    variance, mean = _moments(x, (0, *range(2, x.dim())), 0.0, False)
    return mean, variance


def products(g, x, mean):
    """Sums of ``g * (x - mean)`` and of ``g`` of each channel of a batch: of chunks, then over these."""
    n, channels = x.shape[:2]
    positions, item = x.numel() // (n * channels), x.itemsize
    image = channels * positions * item  # bytes
    if positions == 1:  # chunks take turns at the rows
        chunks = chunks_of_columns(n, channels, item)
        most, longer = divmod(n, chunks)
        cuts = ((0, longer, most + 1), (longer, chunks - longer, most))
        sizes, along, step = (lambda length: (length, 1)), (image * chunks, 0), image
    elif positions <= CHUNK:  # some images
        most = max(1, CHUNK // positions)
        whole, rest = divmod(n, most)
        chunks = whole + (rest > 0)
        cuts = ((0, whole, most), (whole, int(rest > 0), rest))
        sizes, along, step = (lambda length: (positions, length)), (item, image), image * most
    else:  # parts of an image, each with the mean of its channel
        of_images = mean.expand(n, channels).reshape(-1)
        parts = [empty((n * channels, -(-positions // CHUNK)), mean.dtype) for _ in range(2)]
        _by_chunks(norms.chunk_products, (False, 1), positions, "ccffrw", *parts, g, x, of_images, None)
        return tuple(t.reshape(n, channels, -1).sum((0, 2)) for t in parts)
    parts = [empty((chunks, channels), mean.dtype) for _ in range(2)]
    dtypes = (*(t.dtype.name for t in (*parts, g, x, mean)), None)
    address = norms.chunk_products(dtypes, positions == 1, 1 + (positions > 1))
    small = mean.itemsize
    for first, count, length in cuts:
        if count:
            every, part = (*along, step, positions * item), (0, 0, channels * small, small)
            args = (*sizes(length), channels, *part, *part, *every, *every, 0, 0, 0, small, 0, 0, 0, 0)
            at = first * channels * small, first * step
            pointers = (*((t, at[0]) for t in parts), (g, at[1]), (x, at[1]), mean, 0)
            launch(address, pointers, args, count * channels, 1)
    return tuple(t.sum(0) for t in parts)
