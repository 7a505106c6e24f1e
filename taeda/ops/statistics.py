"""Statistics and small composites of linear algebra: quantiles, covariance, distances, traces."""

from __future__ import annotations

import itertools
import math
import warnings

from .. import _core
from .._core import Tensor
from ..kernels import distances as kernels
from .creation import full_like, ones_like
from .indexing import where
from .joining import cat
from .matmul import matmul
from .matrices import triu_indices
from .pointwise import lerp
from .reduction import extent, vector_norm
from .sorting import searchsorted, sort
from .table import composite, primitive
from .views import broadcast_shapes

# ---- matrices --------------------------------------------------------------------------------------------------------


@composite(autocast="float32")
def trace(input):
    """The sum of the diagonal of a matrix.

    Args:
        input: a matrix.
    Returns:
        A tensor without dimensions; ``int64`` for integers.
    Raises:
        RuntimeError: ``input`` is no matrix.
    Examples:
        >>> taeda.trace(taeda.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return input.diagonal().sum()


@primitive(method=False, out=False, batch="leading", samples=lambda m: [((m(5, 3), m(4, 3)), {})])
def _euclidean(x1, x2):
    """Euclidean distances between rows by one product: ``|a|^2 + |b|^2 - 2 a b``, the squares as two more columns."""
    one, two = (x.square().sum(-1, True) for x in (x1, x2))
    left = cat((x1 * -2, one, ones_like(one)), -1)
    right = cat((x2, ones_like(two), two), -1)
    return matmul(left, right.transpose(-2, -1)).clamp_(min=0).sqrt_()


def _euclidean_by_matmul(x1, x2):
    one, two = (x.square().sum(-1, True) for x in (x1, x2))
    squares = one + two.transpose(-2, -1) - 2 * matmul(x1, x2.transpose(-2, -1))
    return squares.clamp(min=0).sqrt()


_euclidean.traits["lowering"] = _euclidean_by_matmul


@_euclidean.vjp_all("x1", "x2")
def _euclidean_backward(g, x1, x2, out):
    slope = (g / out).masked_fill(out == 0, 0)

    def pull(slope, x, other):
        return (x * slope.sum(-1, True) - matmul(slope, other)).sum_to_size(x.shape)

    return pull(slope, x1, x2), pull(slope.transpose(-2, -1), x2, x1)


_KINDS = {0.0: "0", 1.0: "1", 2.0: "2", math.inf: "inf"}


def _norms_of_differences(x1, x2, p):
    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@primitive(
    method=False, out=False, batch="leading", lowering=_norms_of_differences, planned=True,
    samples=lambda m: [((m(5, 3), m(4, 3), p), {}) for p in (0.0, 1.0, 1.5, 3.0, math.inf)],
)  # fmt: skip
def _distances(x1, x2, p):
    """Distances in the p-norm between rows, without their differences in memory."""
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    out = _core.empty((*batch, x1.shape[-2], x2.shape[-2]), x1.dtype)
    kind = _KINDS.get(p, "p")
    _launch_pairs(kernels.distances(x1.dtype.name, kind), (out,), (x1, x2.mT), (p, 1 / p if p else 0.0))
    return out


def _slopes_in_parts(x1, x2, weight, distance, p):
    d = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == 2:
        slope = d
    elif p == 1:
        slope = d.sign()
    elif p == math.inf:
        slope = d.sign() * (d.abs() == distance.unsqueeze(-1))
    else:
        slope = d.sign() * where(d == 0, 1, d.abs()) ** (p - 1)
    return (weight.unsqueeze(-1) * slope).sum(-2)


@primitive(method=False, out=False, batch="leading", decomposition=_slopes_in_parts, planned=True)
def _distance_pull(x1, x2, weight, distance, p):
    """The gradient of ``x1`` ``(..., P, M)`` through its distances to the rows of ``x2``.

    ``weight`` ``(..., P, R)`` has the gradient of each distance.
    """
    batch = broadcast_shapes(weight.shape[:-2], broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
    out = _core.empty((*batch, *x1.shape[-2:]), x1.dtype)
    kind = _KINDS.get(p, "p")
    address = kernels.distance_pull(x1.dtype.name, kind)
    _launch_pairs(address, (out,), (x1, x2.mT, weight, distance), (p - 1,))
    return out


def _launch_pairs(address, outs, operands, numbers):
    """Run a kernel on each matrix of a batch: ``(x1, x2 transposed, ...)``, which need not be expanded yet."""
    batch = outs[0].shape[:-2]
    operands = [x.expand((*batch, *x.shape[-2:])).contiguous() for x in operands]
    width, count = operands[1].shape[-2:]
    rows = operands[0].shape[-2]
    grain = max(1, _PAIRS // max(count * width, 1))
    for i in itertools.product(*map(range, batch)):
        matrices = tuple([x[i] for x in (*outs, *operands)])
        _core.launch(address, matrices, (count, width, *map(float, numbers)), rows, grain)


@_distances.vjp_all("x1", "x2")
def _distances_backward(g, x1, x2, p, out):
    if p == 0:
        return x1 * 0, x2 * 0
    weight = g if p in (1, math.inf) else where(out == 0, 0, g / where(out == 0, 1, out) ** (p - 1))
    first = _distance_pull(x1, x2, weight, out, p)
    second = _distance_pull(x2, x1, weight.mT, out.mT, p)
    return first.sum_to_size(x1.shape), second.sum_to_size(x2.shape)


#: Numbers of one task of a launch.
_PAIRS = 1 << 16
#: Rows from which on a product pays, as in PyTorch.
_BY_PRODUCT = 25


@composite(method=False, autocast="float32", canonical=True)
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The distances between every row of ``x1`` and every row of ``x2``: ``out[i, j] = sum(|x1[i] - x2[j]| ** p) ** (1
    / p)``.

    Args:
        x1: ``(..., P, M)``, floating point.
        x2: ``(..., R, M)``; batches broadcast.
        p: the norm, not negative.
        compute_mode: whether Euclidean distances are computed by a product of matrices, which is fast and less exact
            for rows that lie close together: ``"use_mm_for_euclid_dist"``, ``"donot_use_mm_for_euclid_dist"``, or by
            default where there are more than 25 rows on either side.
    Returns:
        ``(..., P, R)``.
    Raises:
        RuntimeError: the last sizes differ, or ``p`` is negative.
    Examples:
        >>> points = taeda.tensor([[0.0, 0.0], [3.0, 4.0]])
        >>> taeda.cdist(points, points)
        tensor([[0., 5.],
                [5., 0.]])
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode; expected one of {', '.join(modes)}")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"cdist: expected X1 and X2 of one dtype, got {x1.dtype} and {x2.dtype}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if p == 2 and compute_mode != modes[2] and x1.dtype.name in ("float32", "float64"):
        if compute_mode == modes[1] or max(x1.shape[-2], x2.shape[-2]) > _BY_PRODUCT:
            return _euclidean(x1, x2)
    if x1.dtype.name in ("float32", "float64"):
        return _distances(x1, x2, float(p))
    return _norms_of_differences(x1, x2, p)


@composite(method=False, canonical=True)
def pdist(input, p=2.0):
    """The distances between every pair of rows: the part of :func:`cdist` above the diagonal.

    Args:
        input: ``(n, m)``, floating point.
        p: the norm, not negative.
    Returns:
        A vector of ``n * (n - 1) / 2`` elements, for rows 0 and 1, 0 and 2, ..., 1 and 2, ...
    Raises:
        RuntimeError: ``input`` is no matrix, or ``p`` is negative.
    Examples:
        >>> taeda.pdist(taeda.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]), p=1)
        tensor([7., 1., 6.])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got {input.dtype}")
    if not p >= 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got {p}")
    n = input.shape[0]
    rows, columns = triu_indices(n, n, 1).unbind(0)
    if input.dtype.name in ("float32", "float64"):
        return _distances(input, input, float(p))[rows, columns]
    return vector_norm(input[rows] - input[columns], p, -1)


@composite()
def cov(input, *, correction: int = 1, fweights=None, aweights=None):
    """The covariance matrix: ``out[i, j] = sum((x_i - mean_i) * (x_j - mean_j)) / (n - correction)``.

    Args:
        input: a variable in each row, an observation in each column: ``(variables, n)`` or ``(n,)``.
        correction: what is taken from the number of observations.
        fweights: how often each observation occurred: a vector of integers.
        aweights: how much each observation counts: a vector of numbers.
    Returns:
        ``(variables, variables)``, or a tensor without dimensions for one variable.
    Raises:
        RuntimeError: ``input`` has more dimensions, or a weight is negative.
    Examples:
        >>> taeda.cov(taeda.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
        tensor([[ 1., -2.],
                [-2.,  4.]])
    """
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_core.get_default_dtype())
    weights = None
    for name, extra in (("fweights", fweights), ("aweights", aweights)):
        if extra is not None:
            _check_weights(name, extra, x.shape[1])
            weights = extra if weights is None else weights * extra
    if weights is None:
        count = x.shape[1] - correction
        centred = x - x.mean(1, keepdim=True)
        product = matmul(centred, centred.transpose(0, 1).conj_physical())
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / total
        product = matmul(centred * weights, centred.transpose(0, 1).conj_physical())
        count = total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)
    if (count if weights is None else 1 if count.is_meta else extent(count)[0]) <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0: fewer observations than the correction", UserWarning, stacklevel=2
        )
        count = count * 0 if weights is None else count.clamp(min=0)
    result = product / count
    return result.reshape(()) if result.numel() == 1 else result


def _check_weights(name, weights, n):
    """Weights of observations are a vector without negative numbers: integers for ``fweights``, else floats."""
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()}"
        )
    if weights.is_floating_point() != (name == "aweights") or weights.is_complex():
        kind = "floating point" if name == "aweights" else "integral"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {weights.dtype}")
    if weights.numel() != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations ({n}), got {weights.numel()}"
        )
    if n and not weights.is_meta and extent(weights)[0] < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite()
def corrcoef(input):
    """Pearson's correlation coefficients: ``cov[i, j] / sqrt(cov[i, i] * cov[j, j])``, in [-1, 1].

    Args:
        input: a variable in each row, an observation in each column: ``(variables, n)`` or ``(n,)``.
    Returns:
        ``(variables, variables)``, or a tensor without dimensions for one variable. For integers the dtype is the
        default floating-point one.
    Raises:
        RuntimeError: ``input`` has more dimensions.
    Examples:
        >>> taeda.corrcoef(taeda.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().real.sqrt() if c.is_complex() else c.diagonal().sqrt()
    result = c / deviation[:, None] / deviation
    return result if result.is_complex() else result.clamp(-1, 1)


# ---- quantiles -------------------------------------------------------------------------------------------------------


def _quantile(input, q, dim, keepdim, interpolation, ignore_nan, name):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not input.is_floating_point() or input.dtype.itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {input.dtype}")
    if not isinstance(q, Tensor):
        if isinstance(q, (list, tuple)):
            raise TypeError(f"{name}(): argument 'q' (position 2) must be float or Tensor, not {type(q).__name__}")
        q = input.new_tensor(q)
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got {q.dim()}D")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    low, high = extent(q) if q.numel() and not q.is_meta else (0, 1)
    if not 0 <= low <= high <= 1:
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    whole = dim is None or input.dim() == 0
    if input.dim() == 0 and dim not in (None, 0, -1):
        raise IndexError(f"{name}(): Dimension out of range (expected to be in range of [-1, 0], but got {dim})")
    x = input.reshape(-1) if whole else input.movedim(dim, -1)
    ordered = sort(x, -1)[0]
    n = x.shape[-1]
    missing = x.isnan()
    if ignore_nan:  # where all are NaN, the first of them
        rank = q.reshape(-1) * ((~missing).sum(-1, keepdim=True) - 1).clamp(min=0)
    else:  # the last is NaN where there is one
        rank = where(missing.any(-1, keepdim=True), float(n - 1), q.reshape(-1) * (n - 1))
    low = rank.floor()
    if interpolation == "lower":
        rank = low
    elif interpolation == "higher":
        rank = low = rank.ceil()
    elif interpolation == "nearest":
        rank = low = rank.round()
    result = ordered.gather(-1, low.long())
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, rank.ceil().long())
        result = lerp(result, above, (rank - low) if interpolation == "linear" else full_like(rank, 0.5))
    if keepdim:
        shape = [1] * input.dim() if whole else [1 if d == dim % input.dim() else s for d, s in enumerate(input.shape)]
        result = result.movedim(-1, 0).reshape([q.numel(), *shape])
        return result if q.dim() else result.squeeze(0)
    return result.movedim(-1, 0) if q.dim() else result.squeeze(-1)


@composite(out="same", autocast="float32")
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The value below which the share ``q`` of the elements lies, along ``dim``.

    Args:
        input: ``float32`` or ``float64``, any sizes.
        q: a number in [0, 1], or a vector of them, of the dtype of ``input``.
        dim: one dimension. Default: all elements.
        interpolation: what to do between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or
            ``"nearest"``.
    Returns:
        ``input`` without the dimension ``dim``; several ``q`` lead its sizes. NaN where there is one.
    Raises:
        RuntimeError: ``q`` is out of range, or of another dtype, or there are no elements.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, 3.0, 4.0, 10.0])
        >>> taeda.quantile(x, taeda.tensor([0.0, 0.25, 0.5, 1.0]))
        tensor([ 1.,  2.,  3., 10.])
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@composite(out="same", autocast="float32")
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """:func:`quantile` of the elements that are not NaN. The rest as of :func:`quantile`.

    Returns:
        ``input`` without the dimension ``dim``; several ``q`` lead its sizes.

    Raises:
        RuntimeError: ``q`` is not between 0 and 1 or of another dtype, or ``input`` is neither ``float32`` nor
            ``float64``.

    Examples:
        >>> taeda.nanquantile(taeda.tensor([1.0, math.nan, 3.0]), 0.5)
        tensor(2.)
    """
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


# ---- sets ------------------------------------------------------------------------------------------------------------


_FEW = 2048  # comparisons that are sooner made than a sort is


@composite(method=False, out="same", also={"element": "elements", "test_element": "test_elements"})
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is one of ``test_elements``.

    Args:
        elements: a tensor, or a number if the other is a tensor.
        test_elements: a tensor, or a number if the other is a tensor.
        assume_unique: neither has an element twice, which can be faster.
        invert: whether it is none of them.
    Returns:
        ``bool``, of the sizes of ``elements``.
    Raises:
        TypeError: neither is a tensor.
    Examples:
        >>> taeda.isin(taeda.tensor([1, 2, 3, 4]), taeda.tensor([2, 4]))
        tensor([False,  True, False,  True])
    """
    if not (isinstance(elements, Tensor) or isinstance(test_elements, Tensor)):
        raise TypeError(
            f"isin(): expected a tensor as elements, as test_elements or as both, got {type(elements).__name__} and "
            f"{type(test_elements).__name__}; make one a tensor with tensor(...)"
        )
    for x in (elements, test_elements):
        if x.dtype is _core.bool_ or x.is_complex() if isinstance(x, Tensor) else isinstance(x, (bool, complex)):
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
    if not (isinstance(elements, Tensor) and isinstance(test_elements, Tensor)):
        made = elements == test_elements
        made = made if isinstance(elements, Tensor) else made.any()
        return ~made if invert else made
    if elements.numel() * test_elements.numel() <= _FEW:
        made = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
        return ~made if invert else made
    found = sort(test_elements.reshape(-1))[0]
    if found.numel() == 0:
        made = elements != elements
    else:
        dtype = _core.result_type(elements, found)
        place = searchsorted(found.to(dtype), elements.to(dtype)).clamp(max=found.numel() - 1)
        made = found[place] == elements
    return ~made if invert else made


@composite(method=False)
def unravel_index(indices, shape):
    """Positions in row-major order as one index per dimension: ``x.reshape(-1)[i]`` is ``x[unravel_index(i,
    x.shape)]``.

    Args:
        indices: ``int64``, any sizes.
        shape: the sizes of the tensor that they count in.
    Returns:
        A tuple with one tensor of the sizes of ``indices`` per dimension. An index that is out of range is not noticed:
        every part of it is taken modulo the size.
    Raises:
        TypeError: ``indices`` are no integers.
        ValueError: a size is negative.
    Examples:
        >>> x = taeda.tensor([[3, 9], [7, 1]])
        >>> taeda.unravel_index(x.argmax(), x.shape)
        (tensor(0), tensor(1))
    """
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _core.bool_:
        raise TypeError(f"unravel_index(): expected indices of an integer dtype, got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(
            f"unravel_index(): expected shape to be an int or a sequence of ints, got {type(shape).__name__}"
        )
    shape = (shape,) if isinstance(shape, int) else _core.whole_numbers(tuple(shape), "unravel_index", "shape")
    if any(n < 0 for n in shape):
        raise ValueError(f"unravel_index(): sizes must not be negative, got {list(shape)}")
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    steps = indices.new_tensor(steps[::-1], dtype=_core.int64)
    sizes = indices.new_tensor(shape, dtype=_core.int64)
    return (indices.unsqueeze(-1).div(steps, rounding_mode="floor") % sizes).unbind(-1)


# ---- differences -----------------------------------------------------------------------------------------------------


@composite(method=False)
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Estimates of the derivative along each of ``dim``: ``(x[i + 1] - x[i - 1]) / 2`` inside, one-sided differences at
    the edges.

    Args:
        input: a tensor of at least one dimension.
        spacing: the distance of neighbours: a number, one per dimension, or vectors of coordinates.
        dim: a dimension, or several. Default: all.
        edge_order: 1 or 2, the order of the estimate at the edges.
    Returns:
        A tuple of tensors of the sizes of ``input``, one per dimension. For integers the dtype is the default
        floating-point one.
    Raises:
        RuntimeError: a dimension has too few elements, or ``spacing`` does not fit.
    Examples:
        >>> x = taeda.tensor([0.0, 1.0, 4.0, 9.0])
        >>> taeda.gradient(x)
        (tensor([1., 2., 4., 5.]),)
    """
    dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    spacing = 1 if spacing is None else spacing
    if len({d % max(input.dim(), 1) for d in dims}) != len(dims):
        raise RuntimeError(f"gradient: expected each dim to appear once, got {list(dims)}")
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"gradient: expected spacing to be unspecified, a scalar or a list of length {len(dims)}, got "
            f"{len(spacings)}"
        )
    if input.dtype is _core.uint8:
        raise RuntimeError("gradient: uint8 input is not supported: differences would wrap around; convert it first")
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: expected edge_order 1 or 2, got {edge_order}")
    return tuple(_slope(input, d, h, edge_order) for d, h in zip(dims, spacings, strict=True))


def _slope(x, d, h, edge_order):
    n = x.shape[d]
    if n < edge_order + 1:
        raise RuntimeError(
            f"gradient: expected at least edge_order + 1 = {edge_order + 1} elements along dimension {d}, got {n}"
        )
    if not isinstance(h, Tensor) or not h.dim():
        return _even_slope(x, d, h, edge_order)
    if h.dim() != 1 or h.shape[0] != n:
        raise RuntimeError(f"gradient: expected {n} coordinates along dimension {d}, got shape {list(h.shape)}")
    at = h if h.is_floating_point() or h.is_complex() else h.to(_core.get_default_dtype())
    x = x.to(_core.promote_types(x.dtype, at.dtype))  # differences of float32 numbers are not rounded before float64
    gaps = (at[1:] - at[:-1]).reshape([-1 if i == d % x.dim() else 1 for i in range(x.dim())])
    rise = (x.narrow(d, 1, n - 1) - x.narrow(d, 0, n - 1)) / gaps
    if n == 2:
        return cat((rise, rise), d)
    a, b = gaps.narrow(d, 0, n - 2), gaps.narrow(d, 1, n - 2)
    inner = (rise.narrow(d, 0, n - 2) * b + rise.narrow(d, 1, n - 2) * a) / (a + b)
    first, last = rise.narrow(d, 0, 1), rise.narrow(d, n - 2, 1)
    if edge_order == 2:
        first = first + (first - inner.narrow(d, 0, 1))
        last = last + (last - inner.narrow(d, n - 3, 1))
    return cat((first, inner, last), d)


def _even_slope(x, d, h, edge_order):
    """The same where all points are ``h`` apart."""
    n = x.shape[d]
    one, two, three = (x.narrow(d, k, 1) for k in (0, 1, min(2, n - 1)))
    last, second, third = (x.narrow(d, n - 1 - k, 1) for k in (0, 1, min(2, n - 1)))
    inner = (x.narrow(d, 2, n - 2) - x.narrow(d, 0, n - 2)) / (2 * h)
    if edge_order == 1:
        return cat(((two - one) / h, inner, (last - second) / h), d)
    return cat(((2 * two - 1.5 * one - 0.5 * three) / h, inner, (1.5 * last - 2 * second + 0.5 * third) / h), d)
