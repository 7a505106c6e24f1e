"""Statistics and small composites of linear algebra: quantiles, covariance, distances, traces, windows of signals."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from .creation import arange, ones
from .indexing import where
from .joining import cat
from .matmul import matmul
from .sorting import sort
from .table import composite

# ---- matrices -----------------------------------------------------------------------------------------------------------


@composite()
def trace(input):
    """The sum of the diagonal of a matrix."""
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return input.diagonal().sum()


@composite(method=False)
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances in the p-norm between the rows of ``x1`` ``(..., P, M)`` and ``x2`` ``(..., R, M)``: ``(..., P, R)``."""
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    from .reduction import vector_norm

    return vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@composite(method=False)
def pdist(input, p=2.0):
    """Distances between every pair of rows, as a vector."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    n = input.shape[0]
    rows, columns = ones(n, n, dtype=_core.bool_).triu(1).nonzero(as_tuple=True)
    from .reduction import vector_norm

    return vector_norm(input[rows] - input[columns], p, -1)


@composite()
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of variables (rows) observed in columns."""
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    x = input.reshape(1, -1) if input.dim() < 2 else input
    weights = None
    for extra in (fweights, aweights):
        if extra is not None:
            weights = extra if weights is None else weights * extra
    if weights is None:
        count = x.shape[1] - correction
        centred = x - x.mean(1, keepdim=True)
        product = matmul(centred, centred.transpose(0, 1).conj())
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / total
        product = matmul(centred * weights, centred.transpose(0, 1).conj())
        count = total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)
    result = product / (count if isinstance(count, Tensor) else max(count, 0))
    return result.reshape(()) if result.numel() == 1 else result


@composite()
def corrcoef(input):
    """The matrix of Pearson's correlation coefficients of variables (rows)."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().real.sqrt() if c.is_complex() else c.diagonal().sqrt()
    result = c / deviation[:, None] / deviation
    return result if result.is_complex() else result.clamp(-1, 1)


# ---- quantiles ----------------------------------------------------------------------------------------------------------


def _quantile(input, q, dim, keepdim, interpolation, ignore_nan, name):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not input.is_floating_point() or input.dtype.itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, got {input.dtype}")
    if not isinstance(q, Tensor):
        q = input.new_tensor(q)
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, got {q.dim()}D")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    whole = dim is None
    x = input.reshape(-1) if whole else input.movedim(dim, -1)
    ordered = sort(x, -1)[0]
    n = x.shape[-1]
    missing = x.isnan()
    count = (~missing).sum(-1, keepdim=True) if ignore_nan else None
    rank = q.reshape(-1) * ((count - 1).clamp(min=0) if ignore_nan else n - 1)
    rank = rank.expand(*x.shape[:-1], q.numel())
    low = rank.floor()
    if interpolation == "lower":
        rank = low
    elif interpolation == "higher":
        rank = low = rank.ceil()
    elif interpolation == "nearest":
        rank = low = rank.round()
    below = ordered.gather(-1, low.long())
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, rank.ceil().long())
        fraction = (rank - low) if interpolation == "linear" else where(rank > low, 0.5, 0.0).to(x.dtype)
        below = below + (above - below) * fraction
    bad = missing.all(-1, keepdim=True) if ignore_nan else missing.any(-1, keepdim=True)
    result = below.masked_fill(bad, math.nan)
    if keepdim:
        shape = [1] * input.dim() if whole else [1 if d == dim % input.dim() else s for d, s in enumerate(input.shape)]
        result = result.movedim(-1, 0).reshape([q.numel(), *shape])
    else:
        result = result.movedim(-1, 0)
    return result if q.dim() else result.squeeze(0)


@composite()
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The ``q``-th quantiles along ``dim`` (of all elements where None); several ``q`` lead the result's sizes."""
    made = _quantile(input, q, dim, keepdim, interpolation, False, "quantile")
    return made if out is None else out.copy_(made)


@composite()
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """:func:`quantile` of the elements that are numbers."""
    made = _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")
    return made if out is None else out.copy_(made)


# ---- sets ---------------------------------------------------------------------------------------------------------------


@composite(method=False)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is one of ``test_elements``; either may be a number."""
    if not isinstance(elements, Tensor):
        elements = test_elements.new_tensor(elements)
    if not isinstance(test_elements, Tensor):
        test_elements = elements.new_tensor(test_elements)
    found = sort(test_elements.reshape(-1))[0]
    if found.numel() == 0:
        made = elements != elements
    else:
        from .sorting import searchsorted

        dtype = _core.result_type(elements, found)
        place = searchsorted(found.to(dtype), elements.to(dtype)).clamp(max=found.numel() - 1)
        made = found[place] == elements
    return ~made if invert else made


@composite(method=False)
def unravel_index(indices, shape):
    """Flat indices into an array of ``shape`` as one index tensor per dimension."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    made = []
    for n in reversed(shape):
        made.append(indices % n)
        indices = indices // n
    return tuple(reversed(made))


# ---- differences --------------------------------------------------------------------------------------------------------


@composite(method=False)
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Estimates of the derivative along each of ``dim`` by central differences, one-sided at the edges."""
    dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(dims)}, got {len(spacings)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, got {edge_order}")
    return [_slope(input, d, h, edge_order) for d, h in zip(dims, spacings, strict=True)]


def _slope(x, d, h, edge_order):
    n = x.shape[d]
    if n < edge_order + 1:
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    shape = [-1 if i == d % x.dim() else 1 for i in range(x.dim())]
    at = h.to(x.dtype) if isinstance(h, Tensor) and h.dim() else arange(n, dtype=x.dtype) * h
    gaps = (at[1:] - at[:-1]).reshape(shape)
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


# ---- windows ------------------------------------------------------------------------------------------------------------


def _window(name, text, values):
    def window(
        window_length,
        periodic=True,
        *extra,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        **options,
    ):
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        dtype = dtype or _core.get_default_dtype()
        if not dtype.is_floating_point:
            raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
        n = window_length + 1 if periodic else window_length
        if window_length < 2:
            return ones(window_length, dtype=dtype).requires_grad_(requires_grad)
        made = values(arange(n, dtype=_core.float64), n - 1, *extra, **options)
        return made[:window_length].to(dtype).requires_grad_(requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"{text} Periodic by default: one point more is computed and dropped."
    return composite(method=False)(window)


def _bessel_i0(x):
    """The modified Bessel function of order 0 by its power series, whose terms are all positive (float64)."""
    quarter = x * x / 4
    term = total = x * 0 + 1
    limit = 20 + int(float(x.max()))
    for k in range(1, limit + 20):
        term = term * quarter / (k * k)
        total = total + term
    return total


def _cosines(*coefficients):
    def values(k, n):
        return sum(c * (2 * math.pi * i * k / n).cos() for i, c in enumerate(coefficients))

    return values


hann_window = _window("hann_window", "Hann's window.", _cosines(0.5, -0.5))
blackman_window = _window("blackman_window", "Blackman's window.", _cosines(0.42, -0.5, 0.08))
hamming_window = _window(
    "hamming_window",
    "Hamming's window, ``alpha - beta cos``.",
    lambda k, n, alpha=0.54, beta=0.46: alpha - beta * (2 * math.pi * k / n).cos(),
)
bartlett_window = _window("bartlett_window", "Bartlett's triangular window.", lambda k, n: 1 - (2 * k / n - 1).abs())
kaiser_window = _window(
    "kaiser_window",
    "Kaiser's window of shape ``beta``.",
    lambda k, n, beta=12.0: (
        _bessel_i0(beta * (1 - (2 * k / n - 1) ** 2).clamp(min=0).sqrt()) / _bessel_i0(k.new_tensor(float(beta)))
    ),
)
