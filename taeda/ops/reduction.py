"""Reductions: sums, products, extremes, moments and norms over any dimensions."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

from .._core import (
    ALL_DTYPES,
    Tensor,
    bool_,
    expect_bool,
    get_default_dtype,
    indexing,
    int64,
    uint8,
    whole_numbers,
    wrapped_dim,
)  # fmt: skip
from .._core.callbacks import callbacks
from .._core.reduce import Reducer
from .._warn import warn_caller
from ._choices import choice, picked_one
from .table import OPS, Ints, composite, expect_tensors, primitive, result_type

# The result's dtype for each input dtype, by codes; -1 if the op is not defined for it.
_REAL = {d.code for d in ALL_DTYPES if d.is_floating_point and d.itemsize > 1}
_COMPLEX = {d.code for d in ALL_DTYPES if d.is_complex}
_CODES = [d.code for d in ALL_DTYPES if d.itemsize > 1 or not d.is_floating_point]  # all but float8
_INT, _FLOATING = int64.code, _REAL | _COMPLEX


def _rule(allowed, result=None):
    """``result`` (default: the input's own) for the dtypes in ``allowed``."""
    return tuple((d.code if result is None else result) if d.code in allowed else -1 for d in ALL_DTYPES)


_TOTAL = tuple(d.code if d.code in _FLOATING else _INT if d.code in _CODES else -1 for d in ALL_DTYPES)
_FLOAT = _rule(_FLOATING)
_FLOAT_REAL = tuple(d.to_real().code if d.code in _FLOATING else -1 for d in ALL_DTYPES)
_ORDERED = _rule(set(_CODES) - _COMPLEX)
_POSITION_ANY = _rule(set(_CODES) - _COMPLEX, _INT)
_POSITION = _rule(set(_CODES) - _COMPLEX - {bool_.code}, _INT)
_COUNT = _rule(_CODES, _INT)
_TRUTH = tuple(uint8.code if d is uint8 else bool_.code if d.code in _CODES else -1 for d in ALL_DTYPES)


def restore(g, shape, dim, keepdim):
    """``g``, of a reduction's result, as it was before the reduced dimensions of an input of sizes ``shape`` went."""
    return unreduce(g, shape, dim, keepdim).expand(shape)


def unreduce(x, shape, dim, keepdim):
    """``x`` with size 1 where a reduction over ``dim`` of sizes ``shape`` took a dimension away."""
    if keepdim or not shape:
        return x
    n = len(shape)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return x.reshape((1,) * n)
    dims = {d % n for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}
    return x.reshape([1 if i in dims else size for i, size in enumerate(shape)])


def reduced_count(shape, dim):
    """The number of elements that a reduction over ``dim`` of sizes ``shape`` joins."""
    n = len(shape)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return math.prod(shape)
    if not n:
        return 1
    return math.prod(shape[d] for d in {d % n for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})


# ---- sums -----------------------------------------------------------------------------------------------------------
def _over(name):
    """The name of a reduction in the graph: PyTorch counts that over given dimensions as another."""
    return lambda saved: name if saved.get("dim") in (None, ()) else name + "Backward1"


@primitive(
    Reducer("sum", "sum", (_TOTAL,)).run, batch="reduction", node=_over("Sum"), out="same", dtype_of_out=True,
    canonical=True,
)  # fmt: skip
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of the elements over ``dim``. It is computed in blocks, so that long sums stay accurate.

    Args:
        dim: a dimension, or several in a tuple. Default: all.
        dtype: of the computation and the result. Default: that of ``input``; ``int64`` for integers and bools.
    Returns:
        ``input`` without the dimensions ``dim``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> x = taeda.tensor([[1, 2, 3], [4, 5, 6]])
        >>> taeda.sum(x), taeda.sum(x, 0)
        (tensor(21), tensor([5, 7, 9]))
        >>> taeda.sum(x, 1, keepdim=True)
        tensor([[ 6],
                [15]])
    """


def _restored(g, shape, dim, keepdim, dtype, original):
    g = restore(g, shape, dim, keepdim)
    return g if dtype is None else g.to(original)


sum.vjp(
    input=lambda g, input_shape, input_dtype, dim, keepdim, dtype: _restored(
        g, input_shape, dim, keepdim, dtype, input_dtype
    )
)


_REAL_TOTAL = tuple(-1 if c in _COMPLEX else c for c in _TOTAL)


@primitive(Reducer("nansum", "nansum", (_REAL_TOTAL,)).run, batch="reduction", out="same", dtype_of_out=True)
def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of the elements over ``dim``, NaN counted as 0. Arguments as of :func:`sum`.

    Args:
        input: a tensor of any sizes, not complex.
    Returns:
        ``input`` without the dimensions ``dim``.
    Examples:
        >>> taeda.nansum(taeda.tensor([1.0, math.nan, 2.0]))
        tensor(3.)
    """


nansum.traits["lowering"] = lambda input, dim, keepdim, dtype: sum(
    OPS["where"](input.isnan(), 0, input) if input.is_floating_point() else input, dim, keepdim, dtype=dtype
)
nansum.vjp(
    input=lambda g, input, dim, keepdim: (
        restore(g, input.shape, dim, keepdim).to(input.dtype) * input.isnan().logical_not()
    )
)


@primitive(
    Reducer("mean", "mean", (_FLOAT,)).run, batch="reduction", node=_over("Mean"), out="same", dtype_of_out=True,
    canonical=True,
)  # fmt: skip
def mean(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of the elements over ``dim``, divided by their number.

    Args:
        input: floating point or complex, any sizes.
        dim: a dimension, or several in a tuple. Default: all.
        dtype: of the computation and the result. Default: that of ``input``.
    Returns:
        ``input`` without the dimensions ``dim``; NaN where there are no elements.
    Raises:
        RuntimeError: ``input``, or ``dtype``, is of integers.
    Examples:
        >>> x = taeda.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]])
        >>> taeda.mean(x), taeda.mean(x, 1)
        (tensor(4.), tensor([2., 6.]))
    """


mean.vjp(
    input=lambda g, input_shape, input_dtype, dim, keepdim, dtype: _restored(
        g / builtins.max(reduced_count(input_shape, dim), 1), input_shape, dim, keepdim, dtype, input_dtype
    )
)


@composite(out=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean over ``dim`` of the elements that are not NaN. Arguments as of :func:`mean`.

    Returns:
        ``input`` without the dimensions ``dim``; NaN where all elements are.
    Raises:
        RuntimeError: ``input`` is of integers.
    Examples:
        >>> taeda.nanmean(taeda.tensor([1.0, math.nan, 2.0]))
        tensor(1.5000)
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}")
    count = sum(input.isnan().logical_not(), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / count


@primitive(
    Reducer("prod", "prod", (_TOTAL,), single=True).run, batch="reduction", out="same", dtype_of_out=True,
    autocast="float32",
    canonical=True,
)  # fmt: skip
def prod(input, dim=None, keepdim=False, *, dtype=None):
    """The product of the elements over ``dim``.

    Args:
        dim: one dimension. Default: all.
        dtype: of the computation and the result. Default: that of ``input``; ``int64`` for integers and bools.
    Returns:
        ``input`` without the dimension ``dim``; 1 where there are no elements.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.prod(taeda.tensor([[1, 2], [3, 4]]), 1)
        tensor([ 2, 12])
    """


def _products_of_others(x, dim):
    """For each element, the product of the others along ``dim``, from products of those before and of those after."""
    ones = x.new_ones([1 if i == dim else n for i, n in enumerate(x.shape)])
    n = x.shape[dim]
    before = OPS["cat"]([ones, x.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = OPS["cat"]([ones, x.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after


@prod.vjp_all("input")
def _(g, input, out, dim, keepdim):
    dtype, input = input.dtype, input.to(out.dtype)
    if input.is_meta or (input.numel() > 1 and (input != 0).all()):
        return ((restore(g * out.conj_physical(), input.shape, dim, keepdim) / input.conj_physical()).to(dtype),)
    g = restore(g, input.shape, dim, keepdim)
    if input.numel() > 1:
        flat = dim is None or not input.dim()
        others = _products_of_others(input.reshape(-1) if flat else input, 0 if flat else dim % input.dim())
        g = g * others.reshape(input.shape).conj_physical()
    elif not input.numel():
        g = input * g
    return (g.to(dtype),)


# ---- truth ----------------------------------------------------------------------------------------------------------
_count_nonzero = Reducer("count_nonzero", "count_nonzero", (_COUNT,)).run


@primitive(Reducer("any", "any", (_TRUTH,)).truths, out=("bool", "uint8"), batch="reduction", canonical=True)
def any(input, dim=None, keepdim=False):
    """Whether any element along ``dim`` is true, which every number but 0 is. Arguments as of :func:`sum`.

    Returns:
        ``bool`` (``uint8`` for ``uint8``): ``input`` without the dimensions ``dim``; False where there are no elements.
    Examples:
        >>> taeda.any(taeda.tensor([[0, 0], [0, 3]]), 1)
        tensor([False,  True])
    """


@primitive(Reducer("all", "all", (_TRUTH,)).truths, out=("bool", "uint8"), batch="reduction")
def all(input, dim=None, keepdim=False):
    """Whether all elements along ``dim`` are true, which every number but 0 is. Arguments as of :func:`sum`.

    Returns:
        ``bool`` (``uint8`` for ``uint8``): ``input`` without the dimensions ``dim``; True where there are no elements.
    Examples:
        >>> taeda.all(taeda.tensor([[1, 2], [0, 3]]), 1)
        tensor([ True, False])
    """


def _all_by_any(input, dim, keepdim):
    made = any(input == 0, dim, keepdim).logical_not()
    return made if input.dtype is not uint8 else made.to(uint8)


all.traits["lowering"] = _all_by_any


@primitive(out=False, batch="reduction", spreads="dim")
def count_nonzero(input, dim=None):
    """The number of elements along ``dim`` that are not 0. Arguments as of :func:`sum`.

    Returns:
        ``int64``: ``input`` without the dimensions ``dim``.

    Raises:
        IndexError: there is no such dimension.

    Examples:
        >>> taeda.count_nonzero(taeda.tensor([[0, 1, 2], [0, 0, 3]]), 1)
        tensor([2, 1])
    """
    return _count_nonzero(input, dim, False)


count_nonzero.traits["lowering"] = lambda input, dim: sum(input != 0, dim)


# ---- extremes -------------------------------------------------------------------------------------------------------
_max_all = Reducer("max", "amax", (_ORDERED,), identity=False).run
_min_all = Reducer("min", "amin", (_ORDERED,), identity=False).run
_max = Reducer("max", "max", (_ORDERED, _POSITION_ANY), states=2, ordered=True, identity=False, single=True).run
_min = Reducer("min", "min", (_ORDERED, _POSITION_ANY), states=2, ordered=True, identity=False).run

AminmaxResult = result_type("aminmax", "min", "max")


def _share(g, out, input, dim, keepdim, nan=False):
    """A gradient spread evenly over the elements that are equal to the extreme; with ``nan``, NaN equals NaN."""
    chosen = input == unreduce(out, input.shape, dim, keepdim)
    chosen = (chosen | (out.isnan() & input.isnan()) if nan else chosen).to(input.dtype)
    return unreduce(g, input.shape, dim, keepdim) * chosen / sum(chosen, dim, True)


@primitive(Reducer("amax", "amax", (_ORDERED,), identity=False).run, out="same", batch="reduction", canonical=True)
def amax(input, dim=None, keepdim=False):
    """The largest element over ``dim``; NaN where there is one. The gradient is shared evenly between equal elements;
    see :func:`max` for positions. Arguments as of :func:`nansum`.

    Returns:
        ``input`` without the dimensions ``dim``, in its dtype.
    Raises:
        RuntimeError: ``input`` has no elements.
        IndexError: a dimension has none, or there is no such dimension.
    Examples:
        >>> x = taeda.tensor([[[1, 8], [3, 4]], [[5, 6], [7, 2]]])
        >>> taeda.amax(x, (1, 2))
        tensor([8, 7])
    """


amax.vjp(input=lambda g, out, input, dim, keepdim: _share(g, out, input, dim, keepdim))


@primitive(Reducer("amin", "amin", (_ORDERED,), identity=False).run, out="same", batch="reduction", canonical=True)
def amin(input, dim=None, keepdim=False):
    """The smallest element over ``dim``; NaN where there is one. The gradient is shared evenly between equal elements;
    see :func:`min` for positions. The rest as of :func:`amax`.

    Examples:
        >>> taeda.amin(taeda.tensor([[3, 1], [2, 5]]), 1)
        tensor([1, 2])
    """


amin.vjp(input=lambda g, out, input, dim, keepdim: _share(g, out, input, dim, keepdim))


@primitive(
    Reducer("aminmax", "aminmax", (_ORDERED, _ORDERED), states=2, identity=False, single=True).run,
    outputs=("min", "max"), result_type=AminmaxResult, out="same", batch="reduction",
)  # fmt: skip
def aminmax(input, *, dim=None, keepdim=False):
    """The smallest and the largest element over ``dim``, found in one pass.

    Args:
        input: a tensor of any sizes, not complex.
        dim: one dimension. Default: all.
    Returns:
        ``(min, max)``, named: each is ``input`` without the dimension ``dim``.
    Raises:
        RuntimeError: there are no elements to choose from.
    Examples:
        >>> low, high = taeda.aminmax(taeda.tensor([3.0, 1.0, 2.0]))
        >>> low, high
        (tensor(1.), tensor(3.))
    """


aminmax.traits["lowering"] = lambda input, dim, keepdim: (amin(input, dim, keepdim), amax(input, dim, keepdim))
aminmax.vjp(
    input=lambda g, min, max, input, dim, keepdim: (
        _share(g[0], min, input, dim, keepdim) + _share(g[1], max, input, dim, keepdim)
    )
)


@primitive(method=False, out=False, batch="check")
def extent(input):
    """The smallest and the largest element of a tensor that has one, as plain numbers: to tell whether arguments are
    valid."""
    found = None if input.is_meta else indexing.extent(input)
    if found is not None:
        return found
    low, high = aminmax.run_bound(input, None, False)
    return low.item(), high.item()


@primitive(_max_all, method=False, name="_max_all", node="MaxBackward1")
def _full_max(input):
    """The largest element."""


_full_max.traits["native_call"] = lambda input: ("max.default", (input,))
_full_max.vjp(input=lambda g, out, input: _share(g, out, input, None, False, nan=True))


@primitive(_min_all, method=False, name="_min_all", node="MinBackward1")
def _full_min(input):
    """The smallest element."""


_full_min.traits["native_call"] = lambda input: ("min.default", (input,))
_full_min.vjp(input=lambda g, out, input: _share(g, out, input, None, False, nan=True))


@choice(_max, "max", method=False, name="_max_dim", node="Max")
def _max_along(input, dim, keepdim=False):
    """The largest element along ``dim`` and where it is."""


_max_along.traits["native_call"] = lambda *given: ("max.dim", given)
_max_along.vjp(input=picked_one)


@choice(_min, "min", method=False, name="_min_dim", node="Min")
def _min_along(input, dim, keepdim=False):
    """The smallest element along ``dim`` and where it is."""


_min_along.traits["native_call"] = lambda *given: ("min.dim", given)
_min_along.vjp(input=picked_one)


def _extreme(name, full, along, pairwise, input, other, keepdim, dim, out):
    """The three meanings of max and min: of all elements, along a dimension, of two tensors."""
    expect_tensors(name, input=input)
    more = {} if out is None else {"out": out}
    if isinstance(other, Tensor) and keepdim is ... and dim is ... and not isinstance(out, (tuple, list)):
        return getattr(input, pairwise)(other) if out is None else OPS[pairwise](input, other, out=out)
    if other is not ...:
        if dim is not ...:
            raise TypeError(f"{name}(): expected a tensor, or a dimension, to go with the input, got both")
        dim = other
    if dim is ...:
        if keepdim is not ...:
            raise TypeError(f"{name}(): 'keepdim' goes with a 'dim', and there is none")
        return full(input, **more)
    number = not (dim.dim() or dim.dtype.is_floating_point) if isinstance(dim, Tensor) else hasattr(dim, "__index__")
    if not number or getattr(dim, "dtype", None) is bool_ or isinstance(dim, bool):
        raise TypeError(
            f"{name}(): argument 'dim' must be int, not {type(dim).__name__}; leave it out for all elements"
        )
    return along(input, operator.index(dim), keepdim is True, **more)


@composite(canonical=True)
def max(input, other: Any = ..., keepdim=..., *, dim: Any = ..., out=None):
    """The largest element of ``input``; along a dimension, with its position; or of two tensors, element by element.

    NaN counts as larger than any number. The gradient of ``max(input)`` is shared evenly between equal elements, that
    of ``max(input, dim)`` goes to the one chosen.

    Args:
        input: a tensor of any sizes, not complex.
        other: a tensor to compare with (see :func:`maximum`), or a dimension.
        dim: the dimension, by name.
    Returns:
        ``max(input)``: a tensor without dimensions. ``max(input, dim)``: ``(values, indices)``, named, each ``input``
        without that dimension; ``indices`` (``int64``) are those of the first occurrence.
    Raises:
        RuntimeError: ``input`` has no elements.
        IndexError: the dimension has none, or there is no such dimension.
    Examples:
        >>> scores = taeda.tensor([[0.25, 0.75], [0.5, 0.125]])
        >>> taeda.max(scores)
        tensor(0.7500)
        >>> values, indices = taeda.max(scores, 1)
        >>> values, indices
        (tensor([0.7500, 0.5000]), tensor([1, 0]))
    """
    if out is None and input.__class__ is Tensor and (dim is ... or other is ...):  # the common case, first
        at = dim if other is ... else other
        if at is keepdim is ...:
            return _full_max(input)
        if at.__class__ is int:
            return _max_along(input, at, keepdim is True)
    return _extreme("max", _full_max, _max_along, "maximum", input, other, keepdim, dim, out)


@composite(canonical=True)
def min(input, other: Any = ..., keepdim=..., *, dim: Any = ..., out=None):
    """The smallest element of ``input``; along a dimension, with its position; or of two tensors, element by element.

    NaN counts as smaller than any number. The gradient of ``min(input)`` is shared evenly between equal elements, that
    of ``min(input, dim)`` goes to the one chosen. The rest as of :func:`max`.

    Args:
        other: a tensor to compare with (see :func:`minimum`), or a dimension.
    Returns:
        ``min(input)``: a tensor without dimensions. ``min(input, dim)``: ``(values, indices)``, named, each ``input``
        without that dimension; ``indices`` (``int64``) are those of the first occurrence.
    Examples:
        >>> x = taeda.tensor([[4, 2], [3, 9]])
        >>> taeda.min(x)
        tensor(2)
        >>> taeda.min(x, 1).indices
        tensor([1, 0])
    """
    if out is None and input.__class__ is Tensor and (dim is ... or other is ...):  # the common case, first
        at = dim if other is ... else other
        if at is keepdim is ...:
            return _full_min(input)
        if at.__class__ is int:
            return _min_along(input, at, keepdim is True)
    return _extreme("min", _full_min, _min_along, "minimum", input, other, keepdim, dim, out)


def _position(name):
    return Reducer(name, name, (_POSITION,), states=2, ordered=True, identity=False, single=True).run


@primitive(_position("argmax"), out="same", batch="reduction", canonical=True)
def argmax(input, dim=None, keepdim=False):
    """The position of the first largest element along ``dim``. NaN counts as the largest.

    Args:
        input: a tensor of any sizes, not complex.
        dim: the dimension to search. Default: the position among all elements, in row-major order.
    Returns:
        ``int64``: ``input`` without the dimension ``dim``.
    Raises:
        IndexError: there are no elements to search, or there is no such dimension.
    Examples:
        >>> scores = taeda.tensor([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]])
        >>> taeda.argmax(scores, 1)  # the class that each row favours
        tensor([1, 0])
    """


@primitive(_position("argmin"), out="same", batch="reduction", canonical=True)
def argmin(input, dim=None, keepdim=False):
    """The position of the first smallest element along ``dim``. NaN counts as the smallest.
    The rest as of :func:`argmax`.

    Examples:
        >>> taeda.argmin(taeda.tensor([[4, 2], [3, 9]]), 1)
        tensor([1, 0])
    """


# ---- moments --------------------------------------------------------------------------------------------------------


def _arguments(name, dim, unbiased, correction):
    """``dim`` and the correction from the two spellings, ``(dim, unbiased)`` and ``(dim, *, correction)``."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}(): argument 'dim' must be int or a tuple of ints, not bool")
        dim, unbiased = None, dim
    dim = None if dim is None else whole_numbers(dim, name, "dim")
    if unbiased is not None:
        expect_bool(name, "unbiased", unbiased)
    if correction is None:
        return dim, 1.0 if unbiased is None else float(unbiased)
    if unbiased is not None:
        raise TypeError(f"{name}(): give either 'unbiased' or 'correction', not both")
    return dim, float(correction)


def _warn_freedom(name, input, dim, correction):
    warn_caller(
        f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
        f"(correction={correction:g}, shape {tuple(input.shape)}, dim={dim})."
    )


callbacks.warn_freedom = _warn_freedom


def _centred(input, dim, correction):
    """``(input - mean) / (n - correction)``, whose double is the derivative of the variance."""
    freedom = builtins.max(reduced_count(input.shape, dim) - correction, 0)
    difference = input - mean(input, dim, True)
    return difference / freedom if freedom else difference * math.inf


def _std_factor(g, deviation):
    """The gradient of a variance, from the gradient of its root; 0 where the deviation is 0."""
    return OPS["over_nonzero"](g, deviation * 2)


def _var_gradient(g, input, dim, correction, keepdim):
    return unreduce(g, input.shape, dim, keepdim) * 2 * _centred(input, dim, correction)


def _std_gradient(g, out, input, dim, correction, keepdim):
    return _var_gradient(_std_factor(g, out), input, dim, correction, keepdim)


def _with_mean(gradient, g, input, dim, keepdim):
    return gradient + restore(g / builtins.max(reduced_count(input.shape, dim), 1), input.shape, dim, keepdim)


@primitive(
    Reducer("var", "var", (_FLOAT_REAL,), states=3, nparams=1).moments, method=False, name="_var", batch="reduction"
)
def _variance(input, dim, correction, keepdim):
    """:func:`var` with every argument."""


_variance.vjp(input=lambda g, input, dim, correction, keepdim: _var_gradient(g, input, dim, correction, keepdim))


@primitive(
    Reducer("std", "std", (_FLOAT_REAL,), states=3, nparams=1).moments, method=False, name="_std", batch="reduction"
)
def _deviation(input, dim, correction, keepdim):
    """:func:`std` with every argument."""


_deviation.traits["lowering"] = lambda input, dim, correction, keepdim: var(
    input, dim, correction=correction, keepdim=keepdim
).sqrt()
_deviation.vjp(
    input=lambda g, out, input, dim, correction, keepdim: _std_gradient(g, out, input, dim, correction, keepdim)
)


@primitive(
    Reducer("var_mean", "var_mean", (_FLOAT_REAL, _FLOAT), states=3, nparams=1).moments, method=False,
    outputs=("var", "mean"), name="_var_mean", batch="reduction",
)  # fmt: skip
def _variance_mean(input, dim, correction, keepdim):
    """:func:`var_mean` with every argument."""


_variance_mean.traits["lowering"] = lambda input, dim, correction, keepdim: (
    var(input, dim, correction=correction, keepdim=keepdim),
    mean(input, dim, keepdim),
)
_variance_mean.vjp(
    input=lambda g, input, dim, correction, keepdim: _with_mean(
        _var_gradient(g[0], input, dim, correction, keepdim), g[1], input, dim, keepdim
    )
)


@primitive(
    Reducer("std_mean", "std_mean", (_FLOAT_REAL, _FLOAT), states=3, nparams=1).moments, method=False,
    outputs=("std", "mean"), name="_std_mean", batch="reduction",
)  # fmt: skip
def _deviation_mean(input, dim, correction, keepdim):
    """:func:`std_mean` with every argument."""


_deviation_mean.traits["lowering"] = lambda input, dim, correction, keepdim: (
    var(input, dim, correction=correction, keepdim=keepdim).sqrt(),
    mean(input, dim, keepdim),
)
_deviation_mean.vjp(
    input=lambda g, std, input, dim, correction, keepdim: _with_mean(
        _std_gradient(g[0], std, input, dim, correction, keepdim), g[1], input, dim, keepdim
    )
)


@composite(canonical=True)
def var(input, dim: Any = None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance over ``dim``: ``sum((input - mean) ** 2) / (n - correction)``. The rest as of :func:`nanmean`.

    Args:
        unbiased: older spelling: True is ``correction=1``, False is ``correction=0``.
        correction: what is taken from the number of elements. Default: 1 (Bessel's correction), for a sample of a
            larger whole; 0 for the whole.
    Returns:
        ``input`` without the dimensions ``dim``, real; NaN for a single element with ``correction=1``.
    Examples:
        >>> x = taeda.tensor([1.0, 2.0, 3.0, 4.0])
        >>> taeda.var(x), taeda.var(x, correction=0)
        (tensor(1.6667), tensor(1.2500))
    """
    dim, correction = _arguments("var", dim, unbiased, correction)
    if out is None:
        return _variance(input, dim, correction, keepdim)
    return _variance(input, dim, correction, keepdim, out=out)


@composite()
def std(input, dim: Any = None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation over ``dim``: the square root of :func:`var`. The rest as of :func:`nanmean`.

    Args:
        unbiased: older spelling: True is ``correction=1``, False is ``correction=0``.
        correction: what is taken from the number of elements. Default: 1.
    Returns:
        ``input`` without the dimensions ``dim``, real.
    Examples:
        >>> x = taeda.tensor([[1.0, 3.0], [2.0, 6.0]])
        >>> taeda.std(x, 1, correction=0)
        tensor([1., 2.])
    """
    dim, correction = _arguments("std", dim, unbiased, correction)
    if out is None:
        return _deviation(input, dim, correction, keepdim)
    return _deviation(input, dim, correction, keepdim, out=out)


@composite(method=False)
def var_mean(input, dim: Any = None, unbiased=None, keepdim=False, *, correction=None):
    """:func:`var` and :func:`mean` in one pass. The rest as of :func:`std`.

    Returns:
        ``(var, mean)``: each is ``input`` without the dimensions ``dim``.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex.
        IndexError: there is no such dimension.

    Examples:
        >>> taeda.var_mean(taeda.tensor([1.0, 3.0]), correction=0)
        (tensor(1.), tensor(2.))
    """
    return _variance_mean(input, *_arguments("var_mean", dim, unbiased, correction), keepdim)


@composite(method=False)
def std_mean(input, dim: Any = None, unbiased=None, keepdim=False, *, correction=None):
    """:func:`std` and :func:`mean` in one pass. The rest as of :func:`std`.

    Returns:
        ``(std, mean)``: each is ``input`` without the dimensions ``dim``.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex.
        IndexError: there is no such dimension.

    Examples:
        >>> taeda.std_mean(taeda.tensor([1.0, 3.0]), correction=0)
        (tensor(1.), tensor(2.))
    """
    return _deviation_mean(input, *_arguments("std_mean", dim, unbiased, correction), keepdim)


# ---- log-sum-exp ----------------------------------------------------------------------------------------------------
_logsumexp = Reducer("logsumexp", "logsumexp", (_rule(_REAL),), states=2).run


@primitive(_logsumexp, method=False, name="_logsumexp", batch="reduction")
def _log_sum_exp(input, dim, keepdim):
    """The logarithm of the sum of exponentials, of floats."""


_log_sum_exp.traits["native_call"] = lambda x, dim, keepdim: (
    "logsumexp.default", (x, [dim] if isinstance(dim, int) else list(dim), *([True] if keepdim else [])),
)  # fmt: skip


def _log_sum_exp_in_parts(input, dim, keepdim):
    if not input.dim():
        return input.clone()
    top = input.detach().amax(dim, True)
    top = top.masked_fill(top.abs() == math.inf, 0)
    made = sum((input - top).exp(), dim, keepdim).log()
    return made + (top if keepdim else top.reshape(made.shape))


_log_sum_exp.traits["lowering"] = _log_sum_exp_in_parts


@_log_sum_exp.vjp_all("input")
def _(g, out, input, dim, keepdim):
    shape = input.shape
    level = unreduce(out, shape, dim, keepdim)
    level = level.masked_fill(level == -math.inf, 0) if input.numel() else level
    return (unreduce(g, shape, dim, keepdim) * (input - level).exp(),)


@composite(out=True)
def logsumexp(input, dim: Ints, keepdim=False):
    """``log(sum(exp(input)))`` over ``dim``, without overflow: a smooth maximum.

    Args:
        input: a tensor of any sizes; integers count as the default floating-point dtype.
        dim: a dimension, or several in a tuple.
    Returns:
        ``input`` without the dimensions ``dim``.
    Raises:
        IndexError: there is no such dimension.
    Examples:
        >>> taeda.logsumexp(taeda.tensor([[0.0, 0.0], [100.0, 100.0]]), 1)
        tensor([  0.6931, 100.6931])
    """
    if input.dtype.is_complex:
        top = input.real.detach().amax(dim, True) if input.numel() else input.real.sum(dim, True)
        top = top.masked_fill(top.isinf(), 0)
        result = sum((input - top).exp(), dim, True).log() + top
        return result if keepdim else result.reshape(sum(top, dim).shape)
    if not input.dtype.is_floating_point:
        input = input.to(get_default_dtype())
    return _log_sum_exp(input, dim, keepdim)


# ---- norms ----------------------------------------------------------------------------------------------------------
def _norms(op):
    return Reducer("vector_norm", op, (_FLOAT_REAL,)).run


_NORM = {
    0.0: _norms("norm0"), 1.0: _norms("norm1"), 2.0: _norms("norm2"), math.inf: _norms("norminf"),
    -math.inf: _norms("normninf"),
}  # fmt: skip
_norm_any = Reducer("vector_norm", "normp", (_FLOAT_REAL,), nparams=1).run


@primitive(method=False, name="_vector_norm", batch="reduction", node="LinalgVectorNorm", out="same")
def _vector_norm(input, ord, dim, keepdim):
    reducer = _NORM.get(ord)
    return _norm_any(input, dim, keepdim, None, ord) if reducer is None else reducer(input, dim, keepdim)


_vector_norm.traits["native_call"] = lambda x, ord, dim, keepdim: (
    "linalg_vector_norm.default",
    (x, ord, None if dim is None else [dim] if isinstance(dim, int) else list(dim), keepdim),
)


@_vector_norm.vjp_all("input")
def _(g, out, input, ord, dim, keepdim):
    shape = input.shape
    g, norm_ = unreduce(g, shape, dim, keepdim), unreduce(out, shape, dim, keepdim)
    if ord == 0:
        return (input.new_zeros(shape),)
    if ord == 1:
        return (input.sgn() * g,)
    nothing = norm_ == 0
    if 1 < ord < math.inf:  # 0 / 0 would also give NaN as its own derivative
        norm_ = norm_.masked_fill(nothing, 1)
    if ord == 2:
        return (input * (g / norm_).masked_fill(nothing, 0),)
    if math.isinf(ord):
        chosen = ((input.abs() == norm_) | (norm_.isnan() & input.isnan())).to(g.dtype)
        return (input.sgn() * (chosen / sum(chosen, dim, True) * g),)
    size = input.abs()
    if ord < 1:
        slope = size.pow(ord - 1).masked_fill(size == 0, 0)
        return (input.sgn() * slope * g * norm_.pow(1 - ord),)
    slope = input.sgn() * size.pow(ord - 1) if ord < 2 else input * size.pow(ord - 2)
    return (slope * (g / norm_.pow(ord - 1)).masked_fill(nothing, 0),)


@composite(method=False)
def linalg_vector_norm(x: Tensor, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """``sum(|x| ** ord) ** (1 / ord)`` over ``dim``: the length of vectors, for ``ord`` 2.

    Args:
        x: floating point or complex, any sizes.
        ord: any number; 0 counts what is not 0, ``inf`` and ``-inf`` give the largest and the smallest magnitude.
        dim: a dimension, or several in a tuple. Default: all.
        dtype: what ``x`` is converted to first. Default: its own.
    Returns:
        ``x`` without the dimensions ``dim``, real.
    Raises:
        RuntimeError: ``x`` is of integers, or ``ord`` has no value over no elements.
    Examples:
        >>> x = taeda.tensor([[3.0, -4.0], [5.0, 12.0]])
        >>> taeda.linalg.vector_norm(x, dim=1)
        tensor([ 5., 13.])
        >>> taeda.linalg.vector_norm(x, 1, dim=1), taeda.linalg.vector_norm(x, math.inf)
        (tensor([ 7., 17.]), tensor(12.))
    """
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vector_norm: expected a floating point or complex tensor as input, got {x.dtype} of shape "
            f"{tuple(x.shape)}; convert it first, as in x.float()"
        )
    if isinstance(ord, str):
        raise TypeError(f"linalg.vector_norm: argument 'ord' must be a number, not str ({ord!r})")
    ord = float(ord)
    if dtype is not None and dtype != x.dtype:
        x = x.to(dtype)
    if (ord < 0 or ord == math.inf) and x.numel() == 0 and reduced_count(x.shape, dim) == 0:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm over the dimensions dim={dim} of a tensor of shape "
            f"{tuple(x.shape)}: they have no elements, and this norm of nothing has no value"
        )
    return _vector_norm(x, ord, dim, keepdim) if out is None else _vector_norm(x, ord, dim, keepdim, out=out)


vector_norm = linalg_vector_norm


@composite(out="same")
def norm(input, p: Any = "fro", dim=None, keepdim=False, dtype=None):
    """A norm over ``dim``: ``sum(|input| ** p) ** (1 / p)``. :func:`taeda.linalg.vector_norm` and
    :func:`taeda.linalg.matrix_norm` have clearer arguments. The rest as of :func:`std`.

    Args:
        p: a number, ``"fro"`` (the 2-norm of all elements) or ``"nuc"`` (the sum of the singular values of matrices).
        dtype: what ``input`` is converted to first. Default: its own.

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: ``input`` is neither floating point nor complex.

    Examples:
        >>> x = taeda.tensor([[3.0, -4.0], [5.0, 12.0]])
        >>> taeda.norm(x, dim=1), taeda.norm(x, p=1)
        (tensor([ 5., 13.]), tensor(24.))
    """
    if p == "nuc":
        if dim is None and input.dim() != 2:
            raise RuntimeError(f"norm(): p='nuc' expected dim to be a 2-tuple, got None for shape {tuple(input.shape)}")
        return OPS["linalg_matrix_norm"](input, "nuc", dim or (0, 1), keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm(): expected p to be a number, 'fro' or 'nuc', got {p!r}")
    return vector_norm(input, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@composite()
def dist(input, other, p=2):
    """The ``p``-norm of ``input - other``: their distance.

    Args:
        other: a tensor; the two broadcast.
        p: any number; 0 counts where they differ, ``inf`` gives the largest difference.
    Returns:
        A tensor without dimensions, real.
    Raises:
        RuntimeError: the inputs do not broadcast, or are neither floating point nor complex.
    Examples:
        >>> taeda.dist(taeda.tensor([1.0, 1.0]), taeda.tensor([4.0, 5.0]))
        tensor(5.)
    """
    return vector_norm(input - other, p)


@composite(inplace=True, out="same", out_aligned=("input",))
def renorm(input, p, dim, maxnorm):
    """``input`` with each slice along ``dim`` scaled down, where its ``p``-norm is above ``maxnorm``, to that norm.

    Args:
        input: floating point or complex, at least two dimensions.
        p: the norm, a positive number.
        dim: the dimension of the slices.
        maxnorm: the largest norm, not negative.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``p`` is not positive, ``maxnorm`` is negative, or ``input`` has fewer dimensions.
    Examples:
        >>> x = taeda.tensor([[3.0, 4.0], [30.0, 40.0]])
        >>> taeda.renorm(x, 2, 0, 5).round(decimals=2)  # rows of length 5 at most
        tensor([[3., 4.],
                [3., 4.]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} (shape {tuple(input.shape)})")
    if not p > 0:
        raise RuntimeError(f"renorm: expected p, the order of the norm, to be above 0, got {p}")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = wrapped_dim(dim, input.dim(), "renorm")
    dims = [d for d in range(input.dim()) if d != dim]
    size = vector_norm(input, p, dims, True)
    factor = (maxnorm / (size + 1e-7)).masked_fill(~(size > maxnorm), 1)
    return (input * factor.to(input.dtype)).contiguous()
