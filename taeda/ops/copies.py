"""Copies: ``copy_``, ``clone``, conversions between dtypes, and the gradients of writes into views."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, formats
from .._core import tensor as core
from .._core.callbacks import callbacks
from .table import OPS, composite, pointwise, primitive
from .views import (
    _as_strided_backward,
    _overlaps,
    as_strided,
    real,
    reshape,
    sum_to,
    sum_to_size,
    view_as_complex,
    view_as_real,
    zeros,
)


@pointwise(method=False, inplace=False, float8=True)
def identity(input):
    """Every element as it is: the kernel of copies and casts."""
    return input


_core.bind_copy(identity)


@primitive(
    core.copy_from, mutates=True, method=False, name="copy", also={"other": "src"}, canonical=True, additive=True
)  # fmt: skip
def copy(input, src, non_blocking=False):
    """Write ``src``, broadcast and converted, into ``input``."""


copy.vjp(
    input=lambda g: g.new_zeros(g.shape),
    src=lambda g, src_shape, src_dtype: convert(sum_to_size(g, src_shape), src_dtype),
)
copy_ = copy.traits["inplace"]


@primitive(core.cloned, out=False, meta="cast", additive=True, canonical=True, moves=True)
def clone(input, *, memory_format=_core.preserve_format):
    """A copy of ``input`` in memory of its own. Gradients pass through it; ``input.detach().clone()`` leaves the graph.

    Returns:
        The sizes and the dtype of ``input``.

    Raises:
        RuntimeError: ``memory_format`` is one of tensors of another number of dimensions.

    Examples:
        >>> x = taeda.tensor([1.0, 2.0])
        >>> y = x.clone()
        >>> y[0] = 5.0
        >>> x, y
        (tensor([1., 2.]), tensor([5., 2.]))
    """


clone.vjp(input=lambda g: g)


contiguous = composite(additive=True, moves=True)(formats.contiguous)


@primitive(core.converted, method=False, out=False, node="ToCopy")
def to_dtype(input, dtype):
    """``input`` converted to ``dtype``."""


to_dtype.traits["lowering"] = lambda input, dtype: input.to(dtype)
to_dtype.traits["native_call"] = lambda input, dtype: ("_to_copy.default", (input,), {"dtype": dtype})
to_dtype.vjp(input=lambda g, input_dtype: convert(g, input_dtype))


def convert(input, dtype):
    """:func:`to_dtype`, giving ``input`` itself where nothing is to be done, and the real part of a complex gradient; a
    complex number is true if either part is."""
    if input.dtype is dtype:
        return input
    if input.is_complex() and not dtype.is_complex and dtype is not _core.bool_:
        input = real(input)
        if input.dtype is dtype:
            return input
    return to_dtype(input, dtype)


# ---- writes into views -----------------------------------------------------------------------------------------------
def _block_like(base, dtype, g):
    """An uninitialised tensor with the sizes and strides of ``base`` (a geometry), and the offset of its first element.

    Under ``vmap`` there is one for each example of ``g``.
    """
    sizes, strides = base[:2]
    batched = hasattr(g, "_spread")
    if not batched and all(st >= 0 for st in strides):
        return _core.empty_strided(sizes, strides, dtype), 0
    low = sum(min((n - 1) * st, 0) for n, st in zip(sizes, strides, strict=True))
    extent = sum(abs((n - 1) * st) for n, st in zip(sizes, strides, strict=True)) + 1
    room = g.new_empty((extent,), dtype=dtype) if batched else _core.empty((extent,), dtype)
    return as_strided(room, sizes, strides, -low), -low


def _window(block, shift, base, view_, name):
    """The part of ``block``, laid out as ``base``, that a view of geometry ``view_`` shows."""
    sizes, strides, offset, dtype, conjugated = view_
    if conjugated is None:
        raise RuntimeError(
            f"{name}: the derivative of a view that shows the memory of a conjugated view as it is, as {dtype}, is not "
            "defined"
        )
    if conjugated:
        return core.view_conjugated(_window(block, shift, base, (*view_[:4], False), name))
    if dtype is base[3]:
        return as_strided(block, sizes, strides, offset + shift)
    if dtype.is_complex and not base[3].is_complex and dtype.itemsize == 2 * base[3].itemsize:
        doubled = (*(2 * st for st in strides), 1)
        return view_as_complex(as_strided(block, (*sizes, 2), doubled, 2 * offset + shift))
    if base[3].is_complex and dtype.is_floating_point and base[3].itemsize == 2 * dtype.itemsize:
        return as_strided(view_as_real(block), sizes, strides, offset + 2 * shift)
    raise RuntimeError(
        f"{name}: the derivative of a view of {base[3]} as {dtype}, a reinterpretation of bits, is not defined"
    )


def _view_backward_geometry(g, base, view_):
    """The gradient of a base, from the gradient of a view and the sizes and strides of both."""
    if _overlaps(view_[0], view_[1]):
        return _overlapping_view_backward(g, base, view_)
    result, shift = _block_like(base, base[3], g)
    core.zero(result)
    _window(result, shift, base, view_, "view").copy_(g)
    return result


def _overlapping_view_backward(g, base, view_):
    """The same for a view whose elements share memory, where gradients add up; complex and real as pairs of reals."""
    sizes, strides, offset, dtype, conjugated = view_
    base_sizes, base_strides, _, base_dtype, _ = base
    if conjugated:
        g = g.conj_physical() if dtype.is_complex else -g
    if dtype.is_complex and not base_dtype.is_complex:
        g, sizes, strides, offset = view_as_real(g), (*sizes, 2), (*(2 * st for st in strides), 1), 2 * offset
    if base_dtype.is_complex and not dtype.is_complex:
        base_sizes, base_strides = (*base_sizes, 2), (*(2 * st for st in base_strides), 1)
        found = _as_strided_backward(g, base_sizes, sizes, strides, offset, base_strides, 0)
        return view_as_complex(found.contiguous())
    return _as_strided_backward(g, base_sizes, sizes, strides, offset, base_strides, 0)


def _copy_slices(g, base, view_, inner, position):
    """Differentiate an in-place op on a view: its part of the gradient goes through ``inner``, the rest passes."""
    result, shift = _block_like(base, g.dtype, g)
    result.copy_(g)
    place = _window(result, shift, base, view_, "in-place operation on a view")
    grads = _core.apply_inner(inner, [place.clone()])
    if grads[position] is None:
        place.zero_()
    else:
        place.copy_(grads[position])
    grads[position] = result
    return grads


def _assign(place, value):
    """Write ``value`` (a tensor or number) into a view, for ``x[index] = value``."""
    if isinstance(value, Tensor):
        lead = value.dim() - place.dim()
        if lead > 0 and all(n == 1 for n in value.shape[:lead]):
            value = reshape(value, value.shape[lead:])
        copy_(place, value)
    elif isinstance(value, (int, float, complex)):
        if not place.is_contiguous():
            core.refuse_repeated(copy_, place)
        place.fill_(OPS["scalar_tensor"](value, dtype=place.dtype) if core.is_infinite_in(place, value) else value)
    else:
        copy_(place, callbacks.operand_tensor(value, place))


callbacks.sum_to = sum_to
callbacks.grad_cast = convert
callbacks.clone = clone
callbacks.zeros = zeros
callbacks.real_part = core.view_real
callbacks.view_backward = _view_backward_geometry
callbacks.copy_slices = _copy_slices
callbacks.assign = _assign
