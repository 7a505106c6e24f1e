"""ONNX ops on images: resizing, sampling, regions, boxes."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

import taeda.nn.functional as F

from ..._core import bool_, int64
from ..._typed import Tensor
from ...ops import pointwise
from ...ops.creation import arange, zeros
from ...ops.exchange import from_numpy, tensor
from ...ops.extrema import clamp, maximum, minimum
from ...ops.indexing import where
from ...ops.joining import cat, stack
from ...ops.sorting import argsort
from ...types import iinfo
from ..table import op
from ..values import integers


# ---- resizing --------------------------------------------------------------------------------------------------------
def coordinates(mode: str, length: int, wanted: int, scale: float, region: tuple[float, float] = (0.0, 1.0)) -> Any:
    """Positions in the input of the places of the result, in the arithmetic of onnxruntime: one rounding to float32
    after each step, so that halves are rounded as there."""
    one, half, factor = np.float32(1), np.float32(0.5), np.float32(scale)
    i = np.arange(wanted, dtype=np.float32)
    if mode == "align_corners":
        return i * np.float32(length - 1) / np.float32(wanted - 1) if wanted > 1 else i * 0
    if mode == "asymmetric":
        return i / factor
    if mode == "tf_half_pixel_for_nn":
        return (i + half) / factor
    if mode == "tf_crop_and_resize":
        start, end = map(np.float32, region)
        if wanted == 1:
            return i * 0 + half * (start + end) * np.float32(length - 1)
        return start * np.float32(length - 1) + i * (end - start) * np.float32(length - 1) / np.float32(wanted - 1)
    if mode == "pytorch_half_pixel" and wanted == 1:
        return i * 0
    if mode == "half_pixel_symmetric":
        offset = np.float32(length) / 2 * (one - np.float32(wanted) / (factor * np.float32(length)))
        return offset + (i + half) / factor - half
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise NotImplementedError(f"expected a coordinate_transformation_mode that is known, got {mode!r}")
    return (i + half) / factor - half


def nearest_places(at: Any, rounding: str, length: int) -> Any:
    """The elements of a dimension that are nearest to the coordinates ``at``; for onnxruntime a millionth beside a half
    is a half."""
    down = np.floor(at)
    above = at - down - np.float32(0.5)
    tie = np.abs(above) < 1e-6
    made = {
        "round_prefer_floor": lambda: down + (~tie & (above > 0)),
        "round_prefer_ceil": lambda: down + (tie | (above > 0)),
        "floor": lambda: down,
        "ceil": lambda: np.ceil(at),
    }[rounding]()
    return np.clip(made, 0, length - 1).astype(np.int64)


def _filter(distance: Tensor, mode: str, a: float) -> Tensor:
    """The weight of a sample at a distance; cubic as by Keys (1981)."""
    d = distance.abs()
    if mode == "linear":
        return clamp(1 - d, min=0)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return where(d <= 1, near, where(d < 2, far, 0.0))


def _resampled(
    x: Tensor, dim: int, places: Any, scale: float, mode: str, nearest: str, a: float, exclude: int, antialias: int
) -> Tensor:
    """``x`` read at the coordinates ``places`` of one dimension."""
    length = x.shape[dim]
    if mode == "nearest":
        return x.index_select(dim, from_numpy(nearest_places(places, nearest, length)))
    at = from_numpy(places)
    stretch = min(scale, 1.0) if antialias else 1.0
    reach = math.ceil((1 if mode == "linear" else 2) / stretch)
    first = pointwise.floor(at) - reach + 1
    places = first.unsqueeze(1) + arange(2 * reach)
    weights = _filter((places - at.unsqueeze(1)) * stretch, mode, a)
    if exclude:
        weights = weights * ((places >= 0) & (places < length))
    if exclude or antialias:
        weights = weights / weights.sum(1, keepdim=True)
    places = places.clamp(0, length - 1).to(int64)
    sizes = [-1] + [1] * (x.ndim - 1 - dim)
    terms = [x.index_select(dim, places[:, k]) * weights[:, k].to(x.dtype).reshape(sizes) for k in range(2 * reach)]
    return sum(terms[1:], terms[0])


def _sizes(
    x: Tensor, dims: list[int], scales: Any, sizes: Any, policy: str, regions: list[tuple[float, float]], crop: bool
) -> tuple[list[float], list[int]]:
    """Scales and new sizes of the dimensions ``dims``."""
    lengths = [x.shape[dim] for dim in dims]
    if sizes is not None and sizes.numel():
        wanted = integers(sizes)
        factors = [w / n for w, n in zip(wanted, lengths, strict=True)]
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors, wanted = [factor] * len(dims), [math.floor(factor * n + 0.5) for n in lengths]
        return factors, wanted
    if scales is None or scales.numel() != len(dims):
        raise ValueError(f"expected scales or sizes for the dimensions {dims} of shape {list(x.shape)}")
    factors = [float(s) for s in scales.tolist()]
    spans = [end - start if crop else 1.0 for start, end in regions]
    return factors, [
        int(np.float32(n) * np.float32(span) * np.float32(f))
        for n, span, f in zip(lengths, spans, factors, strict=True)
    ]


@op("Resize", 11)
def resize(
    x: Tensor, roi: Tensor | None = None, scales: Tensor | None = None, sizes: Tensor | None = None, *,
    antialias: int = 0, axes: list[int] | None = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
) -> Tensor:  # fmt: skip
    """One dimension after the other; those that keep their size are left alone."""
    dims = [dim % x.ndim for dim in axes] if axes else list(range(x.ndim))
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    numbers = roi.tolist() if crop and roi is not None else [0.0] * len(dims) + [1.0] * len(dims)
    regions = list(zip(numbers[: len(dims)], numbers[len(dims) :], strict=True))
    factors, wanted = _sizes(x, dims, scales, sizes, keep_aspect_ratio_policy, regions, crop)
    if not crop and wanted == [x.shape[dim] for dim in dims]:
        return x  # as onnxruntime, whatever the scales are
    dtype, y = x.dtype, x if x.is_floating_point() or mode == "nearest" else x.float()
    outside = zeros([1] * x.ndim, dtype=bool_)
    for dim, factor, size, region in zip(dims, factors, wanted, regions, strict=True):
        length = x.shape[dim]
        if size == length and factor == 1 and region == (0.0, 1.0):
            continue
        at = coordinates(coordinate_transformation_mode, length, size, factor, region)
        if crop:
            shape = [-1 if i == dim else 1 for i in range(x.ndim)]
            outside = outside | from_numpy((at < 0) | (at > length - 1)).reshape(shape)
        y = _resampled(y, dim, at, factor, mode, nearest_mode, cubic_coeff_a, exclude_outside, antialias)
    y = where(outside, extrapolation_value, y) if crop else y
    if not dtype.is_floating_point and mode != "nearest":
        y = pointwise.round(y).clamp(iinfo(dtype).min, iinfo(dtype).max)
    return y.to(dtype)


@op("Resize", 10)
@op("Upsample", 9)
def resize_10(x: Tensor, scales: Tensor, *, mode: str = "nearest") -> Tensor:
    return resize(x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@op("Upsample", 1)
def upsample_1(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
    return resize_10(x, tensor([1.0, 1.0, height_scale, width_scale]), mode={"bilinear": "linear"}.get(mode, mode))


op("Upsample", 7)(lambda x, *, scales, mode="nearest": resize_10(x, tensor(scales), mode=mode))


# ---- sampling --------------------------------------------------------------------------------------------------------
@op("GridSample")
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return F.grid_sample(x, grid, mode, padding_mode, bool(align_corners))


op("AffineGrid")(lambda theta, size, *, align_corners=0: F.affine_grid(theta, integers(size), bool(align_corners)))


@op("RoiAlign", 10)
def roi_align_10(x: Tensor, rois: Tensor, images: Tensor, **attributes: Any) -> Tensor:
    return roi_align(x, rois, images, coordinate_transformation_mode="output_half_pixel", **attributes)


@op("RoiAlign", 16)
def roi_align(
    x: Tensor, rois: Tensor, images: Tensor, *, coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """Bilinear samples of each cell of a grid over each region, reduced (He et al. 2017)."""
    half = coordinate_transformation_mode == "half_pixel"
    results = []
    for image, box in zip(integers(images), (rois * spatial_scale - 0.5 * half).tolist(), strict=True):
        spans = [box[2] - box[0], box[3] - box[1]]
        width, height = spans if half else [max(span, 1.0) for span in spans]
        rows = _samples(box[1], height, output_height, sampling_ratio)
        columns = _samples(box[0], width, output_width, sampling_ratio)
        products = _bilinear(x[image], rows.reshape(-1), columns.reshape(-1))
        split = products.reshape(4, -1, *rows.shape, *columns.shape)
        if mode == "max":  # the maximum of the weighted corners, as in onnxruntime
            results.append(split.amax((0, 3, 5)))
        else:
            results.append(split.sum(0).mean((2, 4)))
    return stack(results) if results else x.new_zeros(0, x.shape[1], output_height, output_width)


def _samples(start: float, span: float, cells: int, ratio: int) -> Tensor:
    """Coordinates (cells, samples in a cell)."""
    count = ratio if ratio > 0 else max(math.ceil(span / cells), 1)
    size = span / cells
    return start + (arange(cells).unsqueeze(1) + (arange(count) + 0.5) / count) * size


def _bilinear(picture: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """The four weighted corners (4, channels, rows, columns) around each point; 0 more than a pixel outside."""

    def corners(at: Tensor, length: int) -> list[tuple[Tensor, Tensor]]:
        inside = (at >= -1) & (at <= length)
        at = at.clamp(0, length - 1)
        low = pointwise.floor(at).clamp(max=length - 1)
        share = at - low
        places = low.to(int64)
        return [(places, (1 - share) * inside), ((places + 1).clamp(max=length - 1), share * inside)]

    parts = []
    for i, row_weight in corners(y, picture.shape[1]):
        rows = picture.index_select(1, i) * row_weight.reshape(-1, 1).to(picture.dtype)
        for j, weight in corners(x, picture.shape[2]):
            parts.append(rows.index_select(2, j) * weight.to(picture.dtype))
    return stack(parts)


# ---- boxes -----------------------------------------------------------------------------------------------------------
@op("NonMaxSuppression")
def non_max_suppression(
    boxes: Tensor, scores: Tensor, most: Tensor | None = None, iou_threshold: Tensor | None = None,
    score_threshold: Tensor | None = None, *, center_point_box: int = 0,
) -> Tensor:  # fmt: skip
    """(image, class, box) of the best boxes that overlap with no better one by more than a share."""
    limit = int(most) if most is not None else 0
    overlap = float(iou_threshold) if iou_threshold is not None else 0.0
    chosen: list[list[int]] = []
    for image in range(boxes.shape[0]):
        corners = _corners(boxes[image], center_point_box)
        for kind in range(scores.shape[1]):
            score = scores[image, kind]
            order = argsort(score, descending=True, stable=True)
            if score_threshold is not None:
                order = order[score[order] > float(score_threshold)]
            count = 0
            while order.numel() and count < limit:
                best, order = order[0], order[1:]
                chosen.append([image, kind, int(best)])
                count += 1
                order = order[_overlap(corners[best], corners[order]) <= overlap]
    return tensor(chosen, dtype=int64).reshape(-1, 3)


def _corners(boxes: Tensor, centred: int) -> Tensor:
    """(low, low, high, high), of which corners may come in any order."""
    a, b = boxes[:, :2], boxes[:, 2:]
    if centred:
        a, b = a - b / 2, a + b / 2
    return cat([minimum(a, b), maximum(a, b)], 1)


def _overlap(box: Tensor, others: Tensor) -> Tensor:
    """The area that two boxes share, divided by the area of both."""
    shared = (minimum(box[2:], others[:, 2:]) - maximum(box[:2], others[:, :2])).clamp(min=0).prod(1)
    both = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - shared
    return shared / where(both > 0, both, 1)


@op("ImageDecoder")
def image_decoder(data: Tensor, *, pixel_format: str = "RGB") -> Tensor:
    """An image file's pixels (height, width, channels), decoded by Pillow."""
    try:
        from PIL import Image
    except ImportError as error:
        raise NotImplementedError("expected the package Pillow, which decodes images, got none") from error
    image = Image.open(io.BytesIO(data.numpy().tobytes()))
    pixels = np.array(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return from_numpy(pixels[:, :, ::-1].copy() if pixel_format == "BGR" else pixels)
