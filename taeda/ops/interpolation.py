"""Interpolation and sampling: interpolate, grid_sample, affine_grid."""

from __future__ import annotations

import itertools
import math
import warnings

from .. import _core
from .._core import Tensor
from .._core.formats import is_channels_last
from .._core.plan import once_per_form
from .._warn import warn_caller
from ..kernels import gridsample, target
from .creation import linspace, zeros
from .joining import stack
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .resample import Line, _table, resample, resampled
from .table import composite, expect_tensors, primitive

# ---- interpolate -----------------------------------------------------------------------------------------------------

_MODES = {"nearest": 0, "nearest-exact": 0, "linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "area": 0}
_KINDS = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


def _sizes(shape, size, scale_factor, recompute: bool | None) -> tuple[list[int], list[float]]:
    """Output sizes, and the factors to use in place of the sizes' ratio (0 for none)."""
    n = len(shape) - 2
    if size is not None:
        several = isinstance(size, (tuple, list))
        size = _core.whole_numbers(size if several else (size,) * n, "interpolate", "size")
    if (size is None) == (scale_factor is None):
        which = "only one of" if size is not None else "either"
        raise ValueError(f"interpolate: {which} size or scale_factor should be defined")
    given = size if size is not None else scale_factor
    if isinstance(given, str):
        raise TypeError(f"interpolate(): argument 'scale_factor' must be a number or a tuple of numbers, not {given!r}")
    name = "size" if size is not None else "scale_factor"
    if isinstance(given, (list, tuple)):
        if len(given) != n:
            raise ValueError(
                f"interpolate: Input and {name} must have the same number of spatial dimensions, but got input with "
                f"spatial dimensions of {list(shape[2:])} and {name} of {given}. Please provide input tensor in "
                f"(N, C, d1, d2, ...,dK) format and {name} in (o1, o2, ...,oK) format."
            )
        given = list(given)
    else:
        given = [given] * n
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [int(s) for s in given], [0.0] * n
    factors = [float(s) for s in given]
    exact = [shape[i + 2] * factors[i] for i in range(n)]
    if not recompute and not all(abs(x) < 2**63 for x in exact):
        raise RuntimeError(f"interpolate: the sizes {exact} cannot be converted to int64 without overflow")
    outputs = [math.floor(x) for x in exact]
    return outputs, [0.0] * n if recompute else factors


def _autocast(input, size=None, scale_factor=None, mode="nearest", *args, **kwargs):
    return "float32" if mode == "area" and input.dim() == 5 else None  # as of adaptive_avg_pool3d


@composite(method=False, canonical=True, autocast=_autocast)
def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
    antialias=False,
):  # fmt: skip
    """Resizes signals, images or volumes, to a size or by a factor.

    Args:
        input: ``(N, C, L)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``; floating-point.
        size: size of the result, one number or one for each dimension; or give ``scale_factor``.
        scale_factor: size of the result over that of ``input``.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (signals), ``"bilinear"``, ``"bicubic"`` (images),
            ``"trilinear"`` (volumes) or ``"area"``.
        align_corners: whether the centres of the corner pixels coincide, rather than their outer edges; not for nearest
            and area.
        recompute_scale_factor: use the ratio of the sizes rather than the given factor.
        antialias: widen the kernel when shrinking (``"bilinear"``, ``"bicubic"``).

    Returns:
        ``(N, C, *size)``; a size ``L`` becomes ``floor(L * scale_factor)``.

    Raises:
        ValueError: arguments do not go together.
        NotImplementedError: the mode is not for that many dimensions.

    Examples:
        >>> x = taeda.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> F.interpolate(x, scale_factor=2)
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.],
                  [3., 3., 4., 4.],
                  [3., 3., 4., 4.]]]])
        >>> F.interpolate(x, size=(2, 3), mode="bilinear", align_corners=True)
        tensor([[[[1.0000, 1.5000, 2.0000],
                  [3.0000, 3.5000, 4.0000]]]])
    """
    given = size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    outputs, lines = _resizing(input.shape, input.dtype, *given)
    if lines is None:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.dim() - 3](input, outputs)
    return _of_lines(input, lines)


@once_per_form
def _resizing(shape, dtype, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    """Checked sizes of the result, and the lines that give it; None for means of areas."""
    outputs, factors = _sizes(shape, size, scale_factor, recompute_scale_factor)
    if mode not in _MODES:
        raise NotImplementedError(
            "interpolate: expected mode to be one of nearest, nearest-exact, linear, bilinear, bicubic, trilinear, "
            f"area, got {mode!r}"
        )
    if dtype.is_complex:
        raise NotImplementedError(f"interpolate: not implemented for {dtype}; resample the real and imaginary parts")
    n = len(shape) - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    if n not in (1, 2, 3) or _MODES[mode] not in (0, n):
        raise NotImplementedError(
            f"interpolate: got {len(shape)}D input, but mode {mode!r} takes "
            f"{'3D, 4D or 5D' if _MODES[mode] == 0 else f'{_MODES[mode] + 2}D'} input (N, C, d1, ...): shape "
            f"{tuple(shape)}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if any(s <= 0 for s in (*shape[2:], *outputs)):
        raise RuntimeError(
            f"interpolate: Input and output sizes should be greater than 0, but got input {tuple(shape[2:])} "
            f"output {tuple(outputs)}"
        )
    if mode == "area":
        return outputs, None
    if 0 in shape[1:]:
        raise RuntimeError(
            f"interpolate: Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}"
        )
    return outputs, _lines(shape, dtype, outputs, factors, mode, bool(align_corners), bool(antialias))


def _lines(shape, dtype, outputs, factors, mode, align_corners, antialias) -> list[Line | None]:
    """How each spatial dimension is resampled; None where it stays as it is."""
    kind = _KINDS.get(mode, mode)
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if whole and (kind in ("linear", "cubic") and dtype is not _core.uint8):
        raise NotImplementedError(f"interpolate: mode {mode!r} not implemented for {dtype}; convert to floating point")
    fixed = whole and kind in ("linear", "cubic")  # then each dimension's result is rounded to 8 bits
    double = (dtype is _core.float64 or fixed) and not kind.startswith("nearest")
    return [
        None  # every kind is the identity where nothing changes
        if i == o and factor in (0.0, 1.0)
        else Line(kind, i, o, factor, align_corners, antialias, double, fixed)
        for i, o, factor in zip(shape[2:], outputs, factors, strict=True)
    ]


def to_size(input, outputs, factors, mode, align_corners, antialias):
    """``input`` interpolated to ``outputs``, whose steps are by ``factors`` where these are not 0."""
    return _of_lines(input, _lines(input.shape, input.dtype, outputs, factors, mode, align_corners, antialias))


def _of_lines(input, lines):
    if not any(lines):
        return input.clone()
    if input.dtype.is_floating_point or input.dtype.is_complex:
        return resampled(input, lines)
    fixed = any(line.fixed for line in lines if line)
    result = input.to(_core.float64) if fixed else input
    for d, line in reversed([*enumerate(lines, 2)]):
        if line and fixed:
            result = resample(result, d, line).add_(0.5).floor_().clamp_(0, 255)
        elif line:
            sizes = (*result.shape[:d], line.outputs, *result.shape[d + 1 :])
            chosen = result.new_empty(sizes) if result.is_meta else result.index_select(d, _table(line)[0].view(-1))
            result = chosen
    return result.to(input.dtype)


# ---- sampling --------------------------------------------------------------------------------------------------------

_TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}


def _tables(
    input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Index, weight and weight's derivatives of every tap of every point."""
    dims = input.dim() - 2
    n, points = grid.shape[0], math.prod(grid.shape[1:-1])
    taps = _TAPS[mode] ** dims
    if grid.dtype.name not in gridsample.WEIGHTS:
        raise NotImplementedError(f"grid_sampler: not implemented for {grid.dtype}; convert it with .to(dtype)")
    dtype = _core.dtype_by_name(gridsample.WEIGHTS[grid.dtype.name])
    index = _core.empty((n, taps, points), _core.int64)
    weight = _core.empty((n, taps, points), dtype)
    derivative = _core.empty((n, taps, dims, points), dtype)
    address = gridsample.table(grid.dtype.name, mode, padding_mode, align_corners, dims)
    vectors = n * -(-points // _vector(dtype))
    _core.launch(address, (index, weight, derivative, grid), (points, *input.shape[2:]), vectors, 256)
    return index, weight, derivative


def _vector(dtype) -> int:
    """Points of one vector, as the kernels have it."""
    width = target.here().vector_bytes
    return max(min(width // dtype.itemsize, 2 * (width // 8)), 1)


#: Channels from which registers hold those of one point: vectors are loaded, where points side by side are gathered.
MANY_CHANNELS = 4


def _pixels(x: Tensor) -> Tensor:
    """``x`` with channels last in memory, as ``(samples, pixels, channels)``."""
    n = x.dim()
    return x.permute(0, *range(2, n), 1).contiguous().reshape(x.shape[0], -1, x.shape[1])


def _image(x: Tensor, sizes) -> Tensor:
    """The inverse of :func:`_pixels`, as a view: an image of ``sizes``."""
    n = len(sizes) + 2
    return x.reshape(x.shape[0], *sizes, x.shape[2]).permute(0, n - 1, *range(1, n - 1))


@primitive(method=False, out=False, name="_grid_sampler", batch="fold", planned=True)
def grid_sampler(input, grid, mode, padding_mode, align_corners):
    """:func:`grid_sample` on checked arguments."""
    grid = grid.contiguous()
    n, c = input.shape[:2]
    points, plane = math.prod(grid.shape[1:-1]), math.prod(input.shape[2:])
    if n * c * points == 0:
        return _core.empty((n, c, *grid.shape[1:-1]), input.dtype)
    index, weight, _ = _tables(input, grid, mode, padding_mode, align_corners)
    taps = index.shape[1]
    if c >= MANY_CHANNELS:
        out = _core.empty((n, points, c), input.dtype)
        tensors, grain = (out, _pixels(input), index, weight), max(1, 32768 // (c * taps))
        _core.launch(gridsample.sample_last(input.dtype.name), tensors, (points, plane, taps, c), n * points, grain)
        return _image(out, grid.shape[1:-1]).contiguous()
    input, out = input.contiguous(), _core.empty((n, c, *grid.shape[1:-1]), input.dtype)
    grain = max(1, 16384 // (points * taps))
    _core.launch(
        gridsample.sample(input.dtype.name), (out, input, index, weight), (points, plane, taps, c), n * c, grain
    )
    return out


def _grid_gradient(grad, input, grid, mode, padding_mode, align_corners):
    """Taps are tensors ``(N, points)``."""
    n, c = input.shape[:2]
    sizes = input.shape[2:]
    flat, image = grad.flatten(2), input.flatten(2)
    points = [p.reshape(n, -1) for p in reversed(grid.unbind(-1))]
    axes = [_axis_in_ops(p, s, mode, padding_mode, align_corners) for p, s in zip(points, sizes, strict=True)]
    d_image, d_points = image.new_zeros(image.shape), [None] * len(sizes)
    for chosen in itertools.product(*axes):
        index, inside = None, None
        for (at, _, _), size in zip(chosen, sizes, strict=True):
            ok = (at >= 0) & (at <= size - 1)
            inside = ok if inside is None else inside & ok
            i = at.clamp(0, size - 1).to(_core.int64)
            index = i if index is None else index * size + i
        index = index.unsqueeze(1).expand(n, c, -1)
        weights = [w for _, w, _ in chosen]
        visible = inside.to(grad.dtype)
        d_image = d_image.scatter_add(
            2, index, flat * (math.prod(weights[1:], start=weights[0]) * visible).unsqueeze(1)
        )
        along = (image.gather(2, index) * flat).sum(1) * visible
        for k, (_, _, slope) in enumerate(chosen):
            term = along * slope
            for j, w in enumerate(weights):
                term = term * w if j != k else term
            d_points[k] = term if d_points[k] is None else d_points[k] + term
    return d_image.reshape(input.shape), stack(d_points[::-1], -1).reshape(grid.shape)


def _axis_in_ops(x, size, mode, padding_mode, align_corners):
    """(position, weight, derivative of the weight by the grid's coordinate) of each tap along one dimension."""
    scale = (size - 1) / 2 if align_corners else size / 2
    raw = (x + 1) * scale if align_corners else ((x + 1) * size - 1) / 2

    def padded(at):
        """Positions after padding, and the derivative of that."""
        if padding_mode == "zeros":
            return at, at * 0 + 1
        one, slope = at.detach() * 0 + 1, at.detach() * 0 + 1
        if padding_mode == "reflection":
            low, span = (0.0, size - 1) if align_corners else (-0.5, size)
            if span <= 0:
                return at * 0, one * 0
            slope = one.where(at >= low, -one)
            moved = (at - low).abs()
            flips = (moved.detach() / span).floor()
            rest, odd = moved - flips * span, flips.fmod(2) != 0
            at = (span - rest).where(odd, rest) + low
            slope = (-slope).where(odd, slope)
        inside = (at > 0) & (at < size - 1)
        return at.clamp(0, size - 1), slope * inside.to(slope.dtype)

    if mode == "bicubic":
        base = raw.detach().floor()
        p, a = raw - base, -0.75
        taps = []
        for k, (t, sign) in enumerate(((p + 1, 1), (p, 1), (1 - p, -1), (2 - p, -1))):
            if k in (1, 2):
                w, d = ((a + 2) * t - (a + 3)) * t * t + 1, (3 * (a + 2) * t - 2 * (a + 3)) * t
            else:
                w, d = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a, (3 * a * t - 10 * a) * t + 8 * a
            taps.append((padded(base + (k - 1))[0], w, sign * scale * d))
        return taps
    at, slope = padded(raw)
    if mode == "nearest":
        return [(at.detach().round(), at.detach() * 0 + 1, at.detach() * 0)]
    base = at.detach().floor()
    return [(base, 1 - (at - base), -scale * slope), (base + 1, at - base, scale * slope)]


@primitive(method=False, out=False, name="_grid_sampler_backward", decomposition=_grid_gradient, planned=True)
def grid_sampler_backward(grad, input, grid, mode, padding_mode, align_corners, needs):
    """The gradients of image and grid, None where not needed."""
    if grad.numel() == 0:
        return input.new_zeros(input.shape), grid.new_zeros(grid.shape)
    grid = grid.contiguous()
    n, c = input.shape[:2]
    points, plane, dims = math.prod(grid.shape[1:-1]), math.prod(input.shape[2:]), input.dim() - 2
    index, weight, derivative = _tables(input, grid, mode, padding_mode, align_corners)
    taps, name = index.shape[1], input.dtype.name
    args, d_input, d_grid = (points, plane, taps, c), None, None
    many, vector = c >= MANY_CHANNELS, _vector(weight.dtype)
    g = _pixels(grad) if many else grad.contiguous()
    if needs[0] and many:
        sums = _core.empty((n, plane, c), input.dtype)
        _core.zero(sums)
        registers = -(-c * weight.dtype.itemsize // target.here().vector_bytes)
        _core.launch(gridsample.scatter_last(name), (sums, g, index, weight), args, n * registers, 1)
        d_input = _image(sums, input.shape[2:])
        d_input = d_input if is_channels_last(input) else d_input.contiguous()
    elif needs[0]:
        d_input = _core.empty(input.shape, input.dtype)
        _core.zero(d_input)
        grain = max(1, 16384 // (points * taps))
        _core.launch(gridsample.scatter(name), (d_input, g, index, weight), args, n * c, grain)
    if needs[1]:
        d_grid = _core.empty(grid.shape, grid.dtype)
        tensors = (d_grid, _pixels(input) if many else input.contiguous(), g, index, derivative)
        if many:
            grain = max(1, 16384 // (c * taps))
            _core.launch(gridsample.slope_last(name, dims), tensors, args, n * points, grain)
        else:
            grain = max(1, 16384 // (c * taps * vector))
            _core.launch(gridsample.slope(name, dims), tensors, args, n * -(-points // vector), grain)
    return d_input, d_grid


grid_sampler.vjp_all("input", "grid")(
    lambda g, input, grid, mode, padding_mode, align_corners, needs: grid_sampler_backward(
        g, input, grid, mode, padding_mode, align_corners, needs
    )
)


def _check_grid(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if not input.is_floating_point():
        raise NotImplementedError(f"grid_sample(): expected input of a floating-point dtype, got {input.dtype}")
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    n = input.dim() - 2
    if n not in (2, 3) or grid.dim() != input.dim():
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has "
            f"{grid.dtype}"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if any(s <= 0 for s in input.shape[2:]):
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(input.shape)}"
        )


def _corners(align_corners: bool | None) -> bool:
    """Whether corners are aligned; False, with a warning, where the caller does not say."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=3,
        )
    return bool(align_corners)


@composite(method=False, autocast="float32", canonical=True)
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """An image read at given points, between pixels by interpolation: ``output[n, :, i, j] = input[n]`` at ``grid[n, i,
    j]``.

    With :func:`affine_grid` it turns, shifts and scales images, with gradients by both (Jaderberg et al. 2015, "Spatial
    Transformer Networks").

    Args:
        input: ``(N, C, H, W)`` or ``(N, C, D, H, W)``; floating-point.
        grid: ``(N, H', W', 2)`` or ``(N, D', H', W', 3)``: points ``(x, y)`` or ``(x, y, z)``, from -1 (left, top) to
            1.
        mode: ``"bilinear"`` (trilinear for volumes), ``"nearest"`` or ``"bicubic"`` (images).
        padding_mode: what is outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: whether -1 and 1 are the centres of the corner pixels rather than their outer edges.

    Returns:
        ``(N, C, H', W')`` or ``(N, C, D', H', W')``. The dtype of ``input``.

    Raises:
        ValueError: a mode is unknown.
        RuntimeError: the sizes or dtypes do not fit.

    Examples:
        >>> image = taeda.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> points = taeda.tensor([[[[-1.0, -1.0], [0.0, 0.0]]]])  # the corner, and the middle
        >>> F.grid_sample(image, points, align_corners=True)
        tensor([[[[1.0000, 2.5000]]]])
    """
    _check_grid(input, grid, mode, padding_mode)
    align_corners = _corners(align_corners)
    return grid_sampler(input, grid, mode, padding_mode, align_corners)


def _base(size: int, align_corners: bool, like: Tensor) -> Tensor:
    """Coordinates in [-1, 1] of ``size`` pixels."""
    if size <= 1:
        return zeros((size,), dtype=like.dtype)
    x = linspace(-1, 1, size, dtype=like.dtype)
    return x if align_corners else x * ((size - 1) / size)


@composite(method=False)
def affine_grid(theta, size, align_corners=None):
    """The points that :func:`grid_sample` reads to apply an affine map: ``theta @ (x, y, 1)`` for each pixel of the
    result.

    Args:
        theta: ``(N, 2, 3)`` or ``(N, 3, 4)``, maps from points of the result to points of the image; floating-point.
        size: sizes of the result: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        align_corners: as in :func:`grid_sample`.

    Returns:
        ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``. The dtype of ``theta``.

    Raises:
        ValueError: the sizes do not fit.

    Examples:
        >>> flip = taeda.tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])  # left and right change places
        >>> grid = F.affine_grid(flip, (1, 1, 1, 3), align_corners=False)
        >>> F.grid_sample(taeda.tensor([[[[1.0, 2.0, 3.0]]]]), grid, align_corners=False, mode="nearest")
        tensor([[[[3., 2., 1.]]]])
    """
    expect_tensors("affine_grid", theta=theta)
    align_corners = _corners(align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{tuple(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    size = _core.whole_numbers(size, "affine_grid", "size")
    if align_corners and min(size[2:]) == 1:
        warn_caller("affine_grid: with align_corners=True a dimension of size 1 has its point in the middle, at 0")
    axes = [_base(s, align_corners, theta) for s in size[2:]]
    columns = []
    for i in reversed(range(n)):  # x first
        shape = [1] * n
        shape[i] = size[i + 2]
        columns.append(axes[i].reshape(shape).expand(tuple(size[2:])))
    columns.append(columns[0].new_ones(()).expand(tuple(size[2:])))
    base = stack(columns, -1).reshape(-1, n + 1)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], n)
