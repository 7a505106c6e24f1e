"""Histograms of one and of several dimensions, with bins of equal widths or given edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._core import Tensor
from .creation import linspace
from .sorting import bincount, searchsorted
from .table import composite, is_index, no_derivative, primitive, result_type

Histogram = result_type("histogram", "hist", "bin_edges")
HistogramDD = result_type("histogramdd", "hist", "bin_edges")


def _limits(x, range_, d):
    """Smallest and largest edge of dimension ``d``, from ``range`` or the elements; apart where they are equal."""
    if range_ is not None:
        low, high = float(range_[2 * d]), float(range_[2 * d + 1])
    elif not x.numel():
        low, high = 0.0, 1.0
    else:
        low, high = float(x.min()), float(x.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(points, bins, range_):
    """Edges of every dimension's bins: given tensors, or ``linspace`` over the limits."""
    made = []
    for d, b in enumerate(bins):
        if isinstance(b, Tensor):
            if b.dim() != 1:
                raise RuntimeError(
                    f"histogramdd: bins tensor should have one dimension, but got {b.dim()} dimensions in the "
                    f"bins tensor for dimension {d}"
                )
            if b.numel() < 1:
                raise RuntimeError(
                    f"histogramdd: bins tensor should have at least 1 element, but got 0 for dimension {d}"
                )
            if b.dtype is not points.dtype:
                raise RuntimeError(
                    "histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                    f"dtype {points.dtype} and bins for dimension {d} with dtype {b.dtype}"
                )
            count = b.numel() - 1
        else:
            count = b
        if count <= 0:
            raise RuntimeError(f"histogramdd: bins must be > 0, but got {count} for dimension {d}")
        made.append(
            b if isinstance(b, Tensor) else linspace(*_limits(points[:, d], range_, d), b + 1, dtype=points.dtype)
        )
    return made


def _counted(input, bins, range_, weight, density):
    """The histogram of the last dimension's points, and its edges."""
    n = input.shape[-1]
    if input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{input.dtype}'; convert it to float32 or float64"
        )
    if range_ is not None and len(range_) != 2 * n:
        raise RuntimeError(
            f"histogramdd: for a {n}-dimensional histogram range should have {2 * n} elements, but got {len(range_)}"
        )
    if weight is not None:
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                "histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({input.dtype}), and weight({weight.dtype})"
            )
        if tuple(weight.shape) != tuple(input.shape[:-1]):
            raise RuntimeError(
                "histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with "
                f"shape {list(weight.shape)}"
            )
        weight = weight.detach().reshape(-1)
    points = input.detach().reshape(-1, n)
    edges = _edges(points, bins, range_)
    at, inside = None, None
    for d, e in enumerate(edges):
        x = points[:, d].contiguous()
        last = e.numel() - 2
        place = (searchsorted(e, x, right=True) - 1).clamp(max=last)  # the last bin has both its edges
        within = (x >= e[0]) & (x <= e[-1])
        at = place if at is None else at * (last + 1) + place
        inside = within if inside is None else inside & within
    sizes = [e.numel() - 1 for e in edges]
    at = at[inside]
    hist = bincount(at, None if weight is None else weight[inside].double(), math.prod(sizes)).reshape(sizes)
    if density:
        hist = hist.double() / hist.sum()
        for d, e in enumerate(edges):
            hist = hist / e.double().diff().reshape([-1 if i == d else 1 for i in range(n)])
    return hist.to(input.dtype), edges


@primitive(outputs=("hist", "bin_edges"), result_type=Histogram, out="same")
def histogram(input, bins=100, *, range=None, weight=None, density=False):
    """The number of elements in each bin, or the sum of their weights.

    Args:
        input: ``float32`` or ``float64``, any sizes.
        bins: how many of equal width, or a vector of ascending edges. A bin contains its left edge, the last one both.
        range: ``(low, high)`` for a number of bins. Default: the smallest and the largest element.
        weight: what each element counts, of the sizes of ``input``. Default: 1.
        density: divide by the sum and by the widths, so that the integral is 1.
    Returns:
        ``(hist, bin_edges)``, named: ``bins`` numbers and ``bins + 1`` edges, in the dtype of ``input``.
    Raises:
        RuntimeError: the dtype is another, or the sizes do not fit.
    Examples:
        >>> hist, edges = taeda.histogram(taeda.tensor([1.0, 2.0, 1.5, 4.0]), bins=3, range=(1.0, 4.0))
        >>> hist, edges
        (tensor([2., 1., 1.]), tensor([1., 2., 3., 4.]))
    """
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram(): range is for a number of bins, got a tensor of edges as well")
    elif not is_index(bins):
        raise TypeError(f"histogram(): argument 'bins' must be int or Tensor, not {type(bins).__name__}")
    else:
        bins = int(bins)
    if weight is not None and tuple(weight.shape) != tuple(input.shape):
        raise RuntimeError(
            f"histogram: expected a weight for each element of input, of shape {list(input.shape)}, got weight with "
            f"shape {list(weight.shape)}"
        )
    flat = None if weight is None else weight.reshape(-1)
    hist, edges = _counted(input.reshape(-1, 1), [bins], range, flat, density)
    return Histogram(hist, edges[0].clone() if edges[0] is bins else edges[0])


histogram.vjp(**{name: no_derivative("histogram", name) for name in ("input", "bins", "weight")})


@primitive(method=False, out=False)
def _histogramdd(input, weight, bins, range, density):
    hist, edges = _counted(input, bins, range, weight, density)
    return hist, *(e.clone() if any(e is b for b in bins) else e for e in edges)


_histogramdd.vjp(input=no_derivative("histogramdd", "input"), weight=no_derivative("histogramdd", "weight"))


@composite(method=False)
def histogramdd(input, bins, range=None, weight=None, density=False):
    """The number of points in each bin of several dimensions, or the sum of their weights.

    Args:
        input: points of ``n`` dimensions: ``(..., n)``, ``float32`` or ``float64``.
        bins: a number for all dimensions, or one per dimension, or a vector of edges per dimension.
        range: ``2 n`` numbers: low and high of each dimension. Default: those of the data.
        weight: what each point counts: ``(...)``. Default: 1.
        density: divide by the sum and by the volumes.
    Returns:
        ``(hist, bin_edges)``, named: a tensor with a dimension of bins for each of the ``n``, and a tuple of vectors.
    Raises:
        RuntimeError: the dtype is another, or the sizes do not fit.
    Examples:
        >>> points = taeda.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> taeda.histogramdd(points, bins=[2, 2]).hist
        tensor([[1., 0.],
                [1., 2.]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()} dimensions"
        )
    n = input.shape[-1]
    if is_index(bins):
        bins = [int(bins)] * n
    elif isinstance(bins, Tensor) or not isinstance(bins, Sequence):
        raise TypeError(
            f"histogramdd(): argument 'bins' must be int, or a list of int or of Tensor, not {type(bins).__name__}"
        )
    bins = [int(x) if is_index(x) else x for x in bins]
    if len(bins) != n:
        raise RuntimeError(
            f"histogramdd: The size of bins must be equal to the innermost dimension of the input, got {len(bins)} and "
            f"{n}"
        )
    hist, *edges = _histogramdd(input, weight, bins, range, density)
    return HistogramDD(hist, tuple(edges))
