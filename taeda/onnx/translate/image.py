"""Images: resizing and sampling."""

from __future__ import annotations

from typing import Any

from ..._core import float32, float64
from ...ops.creation import arange
from ..operators.image import coordinates, nearest_places
from ..writer import Unsupported, Value, Writer, is_static
from .pooling import _adaptive_avg
from .table import translates

_MODES = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


@translates("nn.functional.interpolate")
def interpolate(
    g: Writer, input: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None, recompute_scale_factor: Any = None, antialias: bool = False,
) -> Value:  # fmt: skip
    count = input.rank - 2
    if mode == "area":
        if not is_static(g.result.shape[2:]):
            raise Unsupported("interpolate(mode='area') to a size that is not fixed")
        return _adaptive_avg(g, input, [int(n) for n in g.result.shape[2:]])
    options: dict[str, Any] = {"mode": _MODES.get(mode, "nearest")}
    if mode == "nearest":
        options |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        options |= {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
    if mode == "bicubic":
        options["cubic_coeff_a"] = -0.5 if antialias else -0.75
    if antialias:
        if g.opset < 18:
            raise Unsupported("interpolate(antialias=True) is from opset 18 on; pass opset_version=18")
        options |= {"antialias": 1, "exclude_outside": 1}
    if options["mode"] == "nearest" and is_static(input.shape[2:]) and is_static(g.result.shape[2:]):
        places = _places(g, input, size, scale_factor, mode, recompute_scale_factor, options)
        if places is not None:
            for dim, index in enumerate(places, 2):
                input = g.Gather(input, g.ints(index), axis=dim)
            return input
    if size is None and not recompute_scale_factor:
        factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * count
        scales = g.constant([1.0, 1.0, *map(float, factors)], float32)
        return g.Resize(input, None, scales, **options)
    if is_static(g.result.shape[2:]):
        wanted: list[Any] = [int(n) for n in g.result.shape[2:]]
    elif size is not None:
        wanted = list(size) if isinstance(size, (tuple, list)) else [size] * count
    else:
        raise Unsupported("interpolate(recompute_scale_factor=True) of sizes that are not fixed; pass size")
    batch = g.slice(g.Shape(input), [0], [2], [0]) if not is_static(input.shape[:2]) else g.ints(input.shape[:2])
    return g.Resize(input, None, None, g.Concat(batch, g.ints(wanted), axis=0), **options)


def _places(
    g: Writer, input: Value, size: Any, scale_factor: Any, mode: str, recompute: Any, options: dict[str, Any]
) -> list[list[int]] | None:
    """The elements that each dimension keeps; None if Resize finds the same ones.

    PyTorch multiplies by the inverse of the scale, onnxruntime divides by it: where a coordinate is close to a whole
    number or a half, they round to two elements.
    """
    import taeda.nn.functional as F

    found, same = [], True
    for i, (length, wanted) in enumerate(zip(input.shape[2:], g.result.shape[2:], strict=True)):
        factor = scale_factor[i] if isinstance(scale_factor, (tuple, list)) else scale_factor
        given = {"size": int(wanted)} if size is not None else {"scale_factor": factor}
        row = arange(int(length), dtype=float64).reshape(1, 1, -1)
        index = [int(v) for v in F.interpolate(row, mode=mode, recompute_scale_factor=recompute, **given).flatten()]
        by_sizes = size is not None or recompute
        at = coordinates(
            options["coordinate_transformation_mode"], int(length), len(index), wanted / length if by_sizes else factor
        )
        same &= nearest_places(at, options["nearest_mode"], int(length)).tolist() == index
        found.append(index)
    return None if same else found


@translates("nn.functional.grid_sample")
def grid_sample(
    g: Writer, input: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Value:
    if input.rank == 5 and g.opset < 20:
        raise Unsupported("grid_sample of volumes is from opset 20 on; pass opset_version=20")
    if g.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return g.GridSample(input, grid, mode=mode, padding_mode=padding_mode, align_corners=int(bool(align_corners)))


@translates("grid_sampler_2d")
def grid_sampler_2d(
    g: Writer, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return grid_sample(g, input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)
