"""Scans: running sums, products, extremes and log-sum-exps along a dimension, and differences."""

from __future__ import annotations

from .._core import Tensor, bool_, get_default_dtype, renamed, wrapped_dim
from .._core.rowwise import Rowwise
from ._choices import choice
from .softmax import _as_input
from .table import OPS, composite, primitive
from .views import blank


def _scan(name: str, outs: str, wide: bool = True, floating: bool = False, backward: bool = False):
    of, real = "reverse_" * backward + name, name in ("cummax", "cummin")
    chunks = name in ("cumsum", "logcumsumexp")  # a product of a chunk can be beyond the range of the whole row's
    return Rowwise(of, "scan.scan", outs, "f", floating, wide, (name, backward), real, chunks=chunks).along


_cumsum, _cumprod = _scan("cumsum", "fs"), _scan("cumprod", "fs")
_cumsum_back = _scan("cumsum", "fs", backward=True)
_cummax, _cummin = _scan("cummax", "fxfi"), _scan("cummin", "fxfi")
_logcumsumexp = _scan("logcumsumexp", "fx", wide=False, floating=True)


@primitive(method=False, out=False, batch="along")
def _reverse_cumsum(input, dim):
    """Sums of each element and all after it."""
    return _cumsum_back(input, dim)


_reverse_cumsum.vjp(input=lambda g, dim: cumsum(g, dim))


@primitive(inplace=True, out="same", batch="along", dtype_of_out=True, out_aligned=("input",), canonical=True)
def cumsum(input, dim, *, dtype=None):
    """The running sum along ``dim``: ``out[i] = input[0] + ... + input[i]``. ``float32`` is summed with the exactness
    of ``float64``.

    Args:
        dim: the dimension to sum along.
        dtype: of the computation and the result. Default: that of ``input``; ``int64`` for integers and bools.
    Returns:
        The sizes of ``input``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.cumsum(taeda.tensor([1, 2, 3, 4]), 0)
        tensor([ 1,  3,  6, 10])
        >>> lengths = taeda.tensor([2, 3, 1])
        >>> lengths.cumsum(0) - lengths  # where each piece begins
        tensor([0, 2, 5])
    """
    if dtype is not None and (input.dtype.is_complex != dtype.is_complex or dtype is bool_):
        input = input.to(dtype)
    return _cumsum(input, dim, (), dtype)


cumsum.vjp(input=lambda g, dim, dtype, input_dtype: _as_input(_reverse_cumsum(g, dim), dtype, input_dtype))


@primitive(inplace=True, out="same", batch="along", dtype_of_out=True, out_aligned=("input",))
def cumprod(input, dim, *, dtype=None):
    """The running product along ``dim``: ``out[i] = input[0] * ... * input[i]``.

    Args:
        dim: the dimension to multiply along.
        dtype: of the computation and the result. Default: that of ``input``; ``int64`` for integers and bools.
    Returns:
        The sizes of ``input``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.cumprod(taeda.tensor([1, 2, 3, 4]), 0)
        tensor([ 1,  2,  6, 24])
    """
    if dtype is not None and (input.dtype.is_complex != dtype.is_complex or dtype is bool_):
        input = input.to(dtype)
    return _cumprod(input, dim, (), dtype)


@cumprod.vjp_all("input")
def _(g, input, out, dim, dtype):
    x = input if dtype is None else input.to(dtype)
    if not x.dim() or not x.numel() or x.shape[dim] == 1:
        return (_as_input(g, dtype, input.dtype),)
    dim = dim % x.dim()
    if x.is_meta or (x != 0).all():
        grad = _reverse_cumsum(g * out.conj_physical(), dim) / x.conj_physical()
    else:
        grad = _cumprod_gradient_with_zeros(g, x, dim)
    return (_as_input(grad, dtype, input.dtype),)


def _cumprod_gradient_with_zeros(g, x, dim):
    """By the definition: for each ``k``, the sum over ``i >= k`` of ``g[i]`` times the product of ``x[j]``, ``j <= i``,
    ``j != k``."""
    grads = []
    for k in range(x.shape[dim]):
        before = x.narrow(dim, 0, k).prod(dim, True)
        after = x.narrow(dim, k + 1, x.shape[dim] - k - 1)
        ones = x.new_ones([1 if d == dim else n for d, n in enumerate(x.shape)])
        runs = before * OPS["cat"]([ones, after], dim).cumprod(dim)
        grads.append((g.narrow(dim, k, x.shape[dim] - k) * runs.conj_physical()).sum(dim, True))
    return OPS["cat"](grads, dim)


def _scatter_sum(g, indices, input_shape, dim):
    """Gradients added up where the running extremes came from."""
    return blank(g, input_shape).scatter_add(dim, indices, g) if input_shape else g


@choice(_cummax, "cummax")
def cummax(input, dim):
    """The running maximum along ``dim`` and where it was found.

    Args:
        input: a tensor of any sizes, not complex.
        dim: the dimension.
    Returns:
        ``(values, indices)``, named, of the sizes of ``input``. ``indices`` (``int64``) are those of the latest
        occurrence; once there was a NaN, it stays.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.cummax(taeda.tensor([1, 3, 2, 5]), 0).values
        tensor([1, 3, 3, 5])
    """


cummax.vjp(input=_scatter_sum)


@choice(_cummin, "cummin")
def cummin(input, dim):
    """The running minimum along ``dim`` and where it was found. The rest as of :func:`cummax`.

    Examples:
        >>> taeda.cummin(taeda.tensor([4, 3, 5, 1]), 0).values
        tensor([4, 3, 3, 1])
    """


cummin.vjp(input=_scatter_sum)


@primitive(method=False, name="_logcumsumexp", batch="along")
def _running_log_sum(input, dim):
    return _logcumsumexp(input, dim)


def _signed(x, then):
    """``then`` of the logarithms of the positive and of the negative part of ``x``, as a difference of exponentials."""
    size, minus = x.abs().log(), float("-inf")
    return then(size.masked_fill(x <= 0, minus)).exp() - then(size.masked_fill(x >= 0, minus)).exp()


@primitive(method=False, out=False, batch="together")
def _log_sum_pull(grad, input, out, dim):
    """``exp(x[k]) * sum over i >= k of g[i] * exp(-out[i])``, on a common scale so that nothing overflows."""
    return _signed(grad, lambda log: OPS["logcumsumexp"]((log - out).flip(dim), dim).flip(dim) + input)


@primitive(method=False, out=False, batch="together")
def _log_sum_push(tangent, input, out, dim):
    """``exp(-out[i]) * sum over k <= i of t[k] * exp(x[k])``, likewise."""
    return _signed(tangent, lambda log: OPS["logcumsumexp"](log + input, dim) - out)


_running_log_sum.vjp(
    input=lambda g, input, out, dim: _log_sum_pull(g, input, out, dim) if input.dim() and input.numel() else g
)
_log_sum_pull.vjp(
    grad=lambda g, input, out, dim: _log_sum_push(g, input, out, dim),
    input=lambda g, grad, input, out, dim: g * _log_sum_pull(grad, input, out, dim),
    out=lambda g, grad, input, out, dim: -grad * _log_sum_push(g, input, out, dim),
)
_log_sum_push.vjp(
    tangent=lambda g, input, out, dim: _log_sum_pull(g, input, out, dim),
    input=lambda g, tangent, input, out, dim: tangent * _log_sum_pull(g, input, out, dim),
    out=lambda g, tangent, input, out, dim: -g * _log_sum_push(tangent, input, out, dim),
)


def _complex_log_sums(x, dim):
    """One step after another, each on the scale of its larger part."""
    sums = []
    for item in x.split(1, dim):
        if sums:
            mine = sums[-1].real >= item.real
            more, less = OPS["where"](mine, sums[-1], item), OPS["where"](mine, item, sums[-1])
            gap = OPS["where"](more.real == float("-inf"), more, less - more)
            item = more + gap.exp().log1p()
        sums.append(item)
    return OPS["cat"](sums, dim)


@composite(out="same", out_aligned=("input",))
def logcumsumexp(input, dim):
    """``log(cumsum(exp(input)))`` along ``dim``, without overflow.

    Args:
        input: a tensor of any sizes; integers count as the default floating-point dtype.
        dim: the dimension.
    Returns:
        The sizes of ``input``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.logcumsumexp(taeda.tensor([0.0, 0.0, 0.0]), 0).exp().round()
        tensor([1., 2., 3.])
    """
    if input.dtype.is_complex:
        return _complex_log_sums(input, dim) if input.dim() and input.numel() else input.clone()
    if not input.dtype.is_floating_point:
        input = input.to(get_default_dtype())
    return _running_log_sum(input, dim)


@composite(out="same")
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The differences of neighbours along ``dim``, ``input[i + 1] - input[i]``, taken ``n`` times.

    Args:
        input: a tensor of at least one dimension; bools are differenced by exclusive or.
        n: how often, 0 or more.
        dim: the dimension.
        prepend: a tensor to put before ``input`` along ``dim`` first.
        append: one to put after it.
    Returns:
        The sizes of ``input``, less ``n`` in ``dim``.
    Raises:
        RuntimeError: ``input`` has no dimension, or ``n`` is negative.
    Examples:
        >>> taeda.diff(taeda.tensor([1, 4, 9, 16]))
        tensor([3, 5, 7])
        >>> taeda.diff(taeda.tensor([1, 4, 9, 16]), n=2)
        tensor([2, 2])
    """
    if not input.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return input.clone()
    if prepend is not None or append is not None:
        parts = [x for x in (prepend, input, append) if x is not None]
        input = OPS["cat"]([x if x.dim() else x.expand(_one_thick(input, dim)) for x in parts], dim)
    size = input.size(dim)
    for m in range(size - 1, max(size - n, 0) - 1, -1):
        later, earlier = input.narrow(dim, 1, m), input.narrow(dim, 0, m)
        input = later.logical_xor(earlier) if input.dtype is bool_ else later - earlier
    return input


def _one_thick(x: Tensor, dim: int) -> list[int]:
    shape = list(x.shape)
    shape[dim] = 1
    return shape


@composite(method=False)
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """The running integral of ``y`` along ``dim`` by the trapezoidal rule: sums of ``(y[i] + y[i + 1]) / 2 * (x[i + 1]
    - x[i])``.

    Args:
        y: the values, any sizes.
        x: where they are, of sizes that broadcast to ``y``. Default: ``dx`` apart.
        dx: the distance of neighbours, a number.
        dim: the dimension.
    Returns:
        The sizes of ``y``, less 1 in ``dim``. For integers the dtype is the default floating-point one.
    Raises:
        RuntimeError: ``x`` has not one value for each of ``y``.
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.cumulative_trapezoid(taeda.tensor([0.0, 1.0, 2.0, 3.0]))
        tensor([0.5000, 2.0000, 4.5000])
    """
    dim = _dim_of("cumulative_trapezoid", y, dim)
    pairs = _pairs(y, dim) if x is None else _trapezoids(y, x, dim)
    return pairs.cumsum(dim) * (dx / 2 if x is None else 0.5)


@composite(method=False, names=("trapz",))
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """The integral of ``y`` along ``dim`` by the trapezoidal rule: the sum of ``(y[i] + y[i + 1]) / 2 * (x[i + 1] -
    x[i])``. Arguments as of :func:`cumulative_trapezoid`.

    Returns:
        ``y`` without the dimension ``dim``. For integers the dtype is the default floating-point one.

    Raises:
        RuntimeError: ``x`` has not one value for each of ``y``.
        IndexError: there is no such dimension.

    Examples:
        >>> y = taeda.tensor([0.0, 1.0, 4.0])
        >>> taeda.trapezoid(y), taeda.trapezoid(y, taeda.tensor([0.0, 1.0, 3.0]))
        (tensor(3.), tensor(5.5000))
    """
    dim = _dim_of("trapezoid", y, dim)
    if x is not None:
        return _trapezoids(y, x, dim).sum(dim) / 2
    if y.shape[dim] == 0:
        return y.new_zeros([n for d, n in enumerate(y.shape) if d != dim])
    return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx


trapz = renamed(trapezoid, "trapz")


def _dim_of(name, y, dim):
    if not y.dim():
        raise IndexError(f"{name}: Dimension specified as {dim} but tensor has no dimensions")
    return wrapped_dim(dim, y.dim(), name)


def _pairs(y, dim):
    """Sums of neighbours."""
    n = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, min(1, y.shape[dim]), n) + y.narrow(dim, 0, n)


def _trapezoids(y, x, dim):
    """Twice the areas between neighbouring points."""
    if x.dim() == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(
                f"trapezoid: There must be one `x` value for each sample point (got {x.shape[0]} for "
                f"{y.shape[dim]} along dim {dim})"
            )
        steps = diff(x)
        return _pairs(y, dim) * steps.reshape([-1 if d == dim else 1 for d in range(y.dim())])
    return _pairs(y, dim) * diff(x, dim=dim)
