"""Making tensors: filled ones, sequences, the identity matrix."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

from .. import _core
from .._core import Tensor, factories, settings
from .._core import tensor as core
from .._core.callbacks import callbacks
from .._core.factories import finish, number, range_length
from .._core.mends import not_tensor
from .._core.nearest import nearest
from .._warn import warn_once
from .out import check_out
from .table import OPS, composite, is_index, pointwise, primitive, spread


def empty_in_format(shape, dtype, memory_format):
    """An uninitialised tensor whose strides follow ``memory_format``."""
    if memory_format in (_core.channels_last, _core.channels_last_3d):
        n = 4 if memory_format is _core.channels_last else 5
        if len(shape) != n:
            raise RuntimeError(f"required rank {n} tensor to use {memory_format} format, got shape {list(shape)}")
        inner = _core.empty([shape[0], *shape[2:], shape[1]], dtype)
        return core.view_permute(inner, (0, n - 1, *builtins.range(1, n - 1)))
    return _core.empty(shape, dtype)


def _checked(size: Any, name: str) -> Any:
    try:
        for i, n in enumerate((size.item(),) if isinstance(size, Tensor) else size):
            if n < 0:
                raise RuntimeError(f"{name}: Trying to create tensor with negative dimension {n}: {list(size)}")
            if _is_no_size(i, n):
                raise TypeError
    except (TypeError, RuntimeError) as error:
        sizes = size if isinstance(size, (tuple, list)) else ()
        odd = [i for i, n in enumerate(sizes) if not is_index(n) or _is_no_size(i, n)]
        if isinstance(error, RuntimeError) and not odd and not isinstance(size, Tensor):
            raise
        got = f"but found element of type {type(sizes[odd[0]]).__name__} at pos {odd[0]}" if odd else None
        got = got or f"not {type(size).__name__}"
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, {got}") from None
    return size


def contiguous_strides(size: Any) -> tuple[int, ...]:
    """The strides of a row-major tensor of these sizes.

    Raises:
        RuntimeError: one does not fit 64 bits.
    """
    strides, step = [], 1
    for n in reversed(tuple(size)):
        if step >= 1 << 63:
            raise RuntimeError(f"Stride calculation overflowed: sizes {list(size)}")
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _is_no_size(place: int, n: Any) -> bool:
    """Whether an integer is none as a size: one of more than 64 bits, and a bool that comes first."""
    return isinstance(n, int) and (n >= 1 << 63 or (place == 0 and isinstance(n, bool)))


def _written(result: Tensor, out: Tensor, name: str) -> Tensor:
    """``out`` with the sizes and elements of ``result``, which may be ``out`` itself."""
    if out is not result:
        _check_out(out, result.dtype)
        check_out(None, name, out, result)
        if out.shape != result.shape:
            out.resize_(result.shape)
        _core.copy_tensor(out, result)
    _core.bump(out)
    return out


def _finish_sequence(name: str, result: Tensor, out: Tensor | None, requires_grad: bool, device: Any) -> Tensor:
    """:func:`finish` where an ``out`` with as many elements keeps its sizes, and is filled in row-major order."""
    if out is not None and out.numel() == result.numel():
        result = core.view_reshape(result, out.shape)
    elif out is not None and out.numel() and name in ("arange", "range"):
        warnings.warn(
            f"{name}: the out tensor of shape {list(out.shape)} has not the {result.numel()} elements of the result. "
            f"It is resized to [{result.numel()}].",
            UserWarning,
            stacklevel=4,
        )
    return finish(result, out, requires_grad, device, name)


def _check_out(out: Any, dtype: Any) -> None:
    if not isinstance(out, Tensor):
        raise not_tensor("argument 'out'", out)
    if dtype is not None and out.dtype is not dtype:
        raise RuntimeError(f"dtype {dtype} does not match dtype of out parameter ({out.dtype})")
    if out.requires_grad and _core.is_grad_enabled():
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but out requires grad"
        )


def _empty(
    name: str, given: tuple, size: Any, dtype: Any, out: Tensor | None, device: Any, memory_format: Any = None
) -> Tensor:
    """A tensor to be filled: a new one, or ``out`` with these sizes."""
    size = _checked(spread(given, size), name)
    if device is not None:
        _core.require_device(device)  # before there is memory: on device meta there is none
    if out is not None:
        _check_out(out, dtype)
        size = tuple(size)
        return out if out.shape == size else out.resize_(size)
    if dtype is None:
        dtype = _core.get_default_dtype()
    return empty_in_format(tuple(size), dtype, memory_format)


callbacks.empty_in_format = empty_in_format
callbacks.new = _empty
callbacks.finish = _written


def _blank(result: Tensor) -> Tensor:
    """``result``, whose elements are undefined. In deterministic mode they are filled with a value that stands out."""
    if settings.filling():
        blank(result)
    return result


def blank(t: Tensor) -> None:
    """NaN, the largest integer, or True in every element."""
    d = t.dtype
    if d.is_floating_point or d.is_complex:
        t.fill_(math.nan)
    elif d.name == "bool":
        t.fill_(True)
    else:
        t.fill_((1 << (8 * d.itemsize - d.is_signed)) - 1)


# ---- filling ---------------------------------------------------------------------------------------------------------


@pointwise(operands=2, promote_from=(0,), one_value=True, fits=True, rounds="one", float8=True, canonical=True)
def fill(input, value):
    """A copy of ``input`` with ``value`` in every element. In place: ``input.fill_(value)``.

    Args:
        value: a number, or a tensor without dimensions, whose gradient is the sum of all of the result's.
    Examples:
        >>> taeda.fill(taeda.zeros(2, 2), 0.5)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    return value


fill.vjp(input=lambda g: g.new_zeros(g.shape), value=lambda g: g)


@primitive(mutates=True, method=False, one_value=True, additive=True)
def zero(input):
    """Zero in every element."""
    core.zero(input)


zero.vjp(input=lambda g: g.new_zeros(g.shape))


@composite(method=False, meta="sizes", canonical=True, native=True)
def empty(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
    memory_format=None,
):  # fmt: skip
    """A tensor of the given sizes whose elements are not set: whatever the memory held before.

    Use it where every element is written afterwards; :func:`zeros` otherwise.

    Args:
        args: the sizes, one by one or as one list or tuple.
        size: the same by name.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: a size is negative, or there is no memory.
    Examples:
        >>> x = taeda.empty(2, 3)
        >>> x.shape, x.dtype
        (taeda.Size([2, 3]), taeda.float32)
        >>> x.fill_(7.0)
        tensor([[7., 7., 7.],
                [7., 7., 7.]])
    """
    if memory_format is None or memory_format in (_core.contiguous_format, _core.preserve_format):
        result = factories.new("empty", args, size, dtype, out, device)
    else:
        result = _empty("empty", args, size, dtype, out, device, memory_format)
    if settings.deterministic:
        _blank(result)
    return finish(result, out, requires_grad, device)


@composite(method=False, meta="sizes", canonical=True)
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of the given sizes and strides whose elements are not set.

    Args:
        size: a list or tuple of sizes.
        stride: for each dimension how many elements lie between one index and the next.
    Returns:
        A tensor whose ``shape`` is ``size`` and whose ``stride()`` is ``stride``.
    Raises:
        RuntimeError: ``size`` and ``stride`` have different lengths, or one of their items is negative.
    Examples:
        >>> columns = taeda.empty_strided((2, 3), (1, 2))  # a matrix stored column by column
        >>> columns.stride(), columns.is_contiguous(), columns.t().is_contiguous()
        ((1, 2), False, True)
    """
    result = _blank(_core.empty_strided(size, stride, dtype or _core.get_default_dtype()))
    return finish(result, None, requires_grad, device)


@composite(method=False)
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor whose elements are not set and whose dimensions lie in memory in the order ``physical_layout``.

    Args:
        size: a list or tuple of sizes.
        physical_layout: the dimensions from the outermost in memory to the innermost, each once.
    Returns:
        A dense tensor of sizes ``size``.
    Raises:
        RuntimeError: ``physical_layout`` is not a permutation of the dimensions.
    Examples:
        >>> images = taeda.empty_permuted((8, 3, 32, 32), (0, 2, 3, 1))  # channels last
        >>> images.shape, images.stride()
        (taeda.Size([8, 3, 32, 32]), (3072, 1, 96, 3))
    """
    if sorted(physical_layout) != [i for i, _ in enumerate(size)]:
        raise RuntimeError(
            f"empty_permuted: {list(physical_layout)} is not a permutation of the {len(size)} dimensions"
        )
    strides = [0] * len(size)
    for d, step in zip(physical_layout, contiguous_strides([size[d] for d in physical_layout]), strict=True):
        strides[d] = step
    return empty_strided(size, strides, dtype=dtype, device=device, requires_grad=requires_grad)


@composite(method=False, meta="sizes", canonical=True, native=True)
def zeros(*args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of the given sizes filled with zeros.

    Args:
        args: the sizes, one by one or as one list or tuple. None at all make a tensor without dimensions.
        size: the same by name.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: a size is negative.
    Examples:
        >>> taeda.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
        >>> taeda.zeros(4, dtype=taeda.int64)
        tensor([0, 0, 0, 0])
    """
    result = factories.new("zeros", args, size, dtype, out, device)
    core.zero(result)
    return finish(result, out, requires_grad, device)


@composite(method=False, meta="sizes", canonical=True, native=True)
def ones(*args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of the given sizes filled with ones. The rest as of :func:`zeros`.

    Examples:
        >>> taeda.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    result = factories.new("ones", args, size, dtype, out, device)
    _fill(result, 1)
    return finish(result, out, requires_grad, device)


_fill = fill.traits["inplace"]


def _dtype_of(value: Any) -> Any:
    """The dtype that a fill value stands for."""
    if value.__class__ is float:
        return _core.get_default_dtype()
    if isinstance(value, Tensor):
        return value.dtype
    if hasattr(value, "dtype"):  # NumPy's scalars count as Python's numbers
        value = value.item()
    if isinstance(value, bool):
        return _core.bool_
    if is_index(value):
        return _core.int64
    if isinstance(value, complex):
        return _core.get_default_dtype().to_complex()
    return _core.get_default_dtype()


def require_number(name: str, argument: str, value: Any) -> None:
    """Refuse what is no number; a tensor unless it has no dimensions and requires no gradient.

    Raises:
        TypeError: it is a text or a list, has dimensions, or requires a gradient, which a number has not.
    """
    if value is None or isinstance(value, (str, bytes, list, tuple, dict)):
        raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type(value).__name__}")
    if isinstance(value, Tensor) and (value.dim() or value.requires_grad):
        why = f"of {value.dim()} dimensions" if value.dim() else "that requires a gradient; use .detach() or .item()"
        raise TypeError(f"{name}(): argument '{argument}' must be Number, not Tensor {why}")


@composite(method=False, meta="sizes", canonical=True, native=True)
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor of the given sizes filled with ``fill_value``.

    Args:
        size: a list or tuple of sizes.
        fill_value: a number.
        dtype: dtype of the result. Default: from ``fill_value``: ``bool``, ``int64``, the default floating-point dtype
            or the complex dtype that belongs to it.
    Returns:
        A tensor of sizes ``size``.
    Raises:
        RuntimeError: a size is negative, or the dtype cannot hold the value.
    Examples:
        >>> taeda.full((2, 3), 1.5)
        tensor([[1.5000, 1.5000, 1.5000],
                [1.5000, 1.5000, 1.5000]])
        >>> taeda.full((2,), True)
        tensor([True, True])
    """
    if size.__class__ is not tuple and (is_index(size) or isinstance(size, Tensor)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    require_number("full", "fill_value", fill_value)
    if dtype is None:
        dtype = out.dtype if out is not None else _dtype_of(fill_value)
    result = factories.new("full", (size,), None, dtype, out, device)
    _fill(result, fill_value)
    return finish(result, out, requires_grad, device)


def _like(input: Tensor, dtype: Any, device: Any, memory_format: Any) -> Tensor:
    if device is not None:
        _core.require_device(device)
    if memory_format is None or memory_format is _core.preserve_format or input._value_per_example:
        return _core.empty_like(input, dtype)
    return empty_in_format(input.shape, dtype or input.dtype, memory_format)


def _made_like(make: Any) -> Any:
    """The lowering of an op that makes a tensor like another one: ``make`` of its sizes, dtype and device."""
    return lambda input, dtype, device: make(
        input.shape, dtype=dtype or input.dtype, device=input.device if device is None else device
    )


@composite(method=False, pointwise="form", lowering=_made_like(empty))
def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
    memory_format=_core.preserve_format,
):  # fmt: skip
    """A tensor with the sizes, dtype and device of ``input`` whose elements are not set.

    Returns:
        A tensor of those sizes.
    Raises:
        TypeError: ``input`` is no tensor.
        RuntimeError: it has not the dimensions that ``memory_format`` is for.

    Examples:
        >>> x = taeda.zeros(2, 3, dtype=taeda.int64)
        >>> y = taeda.empty_like(x)
        >>> y.shape, y.dtype
        (taeda.Size([2, 3]), taeda.int64)
    """
    return finish(_blank(_like(input, dtype, device, memory_format)), None, requires_grad, device)


@composite(method=False, pointwise="form", lowering=lambda input, dtype, device: _in_full(input, 0, dtype, device))
def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
    memory_format=_core.preserve_format,
):  # fmt: skip
    """A tensor of zeros with the sizes, dtype and device of ``input``.

    Returns:
        A tensor of those sizes.
    Raises:
        TypeError: ``input`` is no tensor.
        RuntimeError: it has not the dimensions that ``memory_format`` is for.

    Examples:
        >>> taeda.zeros_like(taeda.tensor([[1, 2], [3, 4]]))
        tensor([[0, 0],
                [0, 0]])
    """
    result = _like(input, dtype, device, memory_format)
    core.zero(result)
    return finish(result, None, requires_grad, device)


def _in_full(input: Any, value: Any, dtype: Any, device: Any) -> Any:
    return full_like(input, value, dtype=dtype or input.dtype, device=device)


@composite(method=False, pointwise="form", lowering=lambda input, dtype, device: _in_full(input, 1, dtype, device))
def ones_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
    memory_format=_core.preserve_format,
):  # fmt: skip
    """A tensor of ones with the sizes, dtype and device of ``input``.

    Returns:
        A tensor of those sizes.
    Raises:
        TypeError: ``input`` is no tensor.
        RuntimeError: it has not the dimensions that ``memory_format`` is for.

    Examples:
        >>> taeda.ones_like(taeda.tensor([0.5, 2.5]))
        tensor([1., 1.])
    """
    result = _like(input, dtype, device, memory_format)
    _fill(result, 1)
    return finish(result, None, requires_grad, device)


@composite(method=False, pointwise="form", canonical=True)
def full_like(
    input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
    memory_format=_core.preserve_format,
):  # fmt: skip
    """A tensor with the sizes, dtype and device of ``input``, filled with ``fill_value``.

    Args:
        fill_value: a number.
    Returns:
        A tensor of those sizes.
    Raises:
        RuntimeError: the dtype cannot hold the value.
    Examples:
        >>> taeda.full_like(taeda.tensor([0.5, 2.5]), 7)
        tensor([7., 7.])
    """
    require_number("full_like", "fill_value", fill_value)
    result = _like(input, dtype, device, memory_format)
    _fill(result, fill_value)
    return finish(result, None, requires_grad, device)


@composite(method=False, canonical=True)
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The number ``s`` as a tensor without dimensions.

    Args:
        s: a number.
    Returns:
        A tensor of sizes ``()``. Unlike :func:`tensor`, whole numbers too have the default floating-point dtype.
    Raises:
        TypeError: ``s`` is no number.
    Examples:
        >>> taeda.scalar_tensor(3), taeda.tensor(3)
        (tensor(3.), tensor(3))
    """
    require_number("scalar_tensor", "s", s)
    return full((), s, dtype=dtype or _core.get_default_dtype(), device=device, requires_grad=requires_grad)


# ---- sequences -------------------------------------------------------------------------------------------------------


@primitive(factories.sequence, method=False, out=False)
def _sequence(start, step, n, dtype):
    """``n`` numbers from ``start``, ``step`` apart."""


@composite(method=False, meta="numbers", canonical=True, native=True)
def arange(*args, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **bounds):
    """Numbers from ``start`` to before ``end``, ``step`` apart: ``start + i * step``.

    ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``. With fractional steps rounding may add an
    element at the end; :func:`linspace` avoids that.

    Args:
        args: ``end``, or ``start`` (default 0), ``end`` and ``step`` (default 1), numbers.
        bounds: ``start``, ``end`` and ``step`` by name.
        dtype: dtype of the result. Default: ``int64`` where all of them are integers, else the default floating-point
            dtype.
    Returns:
        A vector of ``ceil((end - start) / step)`` elements.
    Raises:
        RuntimeError: ``step`` is 0, or it leads away from ``end``.
    Examples:
        >>> taeda.arange(5)
        tensor([0, 1, 2, 3, 4])
        >>> taeda.arange(1, 2, 0.25)
        tensor([1.0000, 1.2500, 1.5000, 1.7500])
        >>> taeda.arange(6, 0, -2)
        tensor([6, 4, 2])
    """
    if len(args) == 1 and args[0].__class__ is int and dtype is None and out is None and args[0] >= 0 and not bounds:
        return finish(_sequence(0, 1, args[0], _core.int64), None, requires_grad, device)  # the most common call
    start, end, step = _range_arguments("arange", args, bounds)
    if dtype is None:
        if out is not None:
            dtype = out.dtype
        else:
            whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
            dtype = _core.int64 if whole else _core.get_default_dtype()
    result = _sequence(start, step, range_length("arange", start, end, step, dtype is _core.int64), dtype)
    if out is None:
        return finish(result, None, requires_grad, device)
    return _finish_sequence("arange", result, out, requires_grad, device)


def _range_arguments(name: str, args: tuple, bounds: dict) -> tuple[Any, Any, Any]:
    for given in bounds:
        if given not in ("start", "end", "step"):
            known = ("start", "end", "step", *OPS[name].__kwdefaults__)
            raise TypeError(f"{name}() got an unexpected keyword argument '{given}'{nearest(given, known)}")
    if len(args) > 3:
        raise TypeError(f"{name}() takes at most 3 positional arguments, got {len(args)}")
    for value in (*args, *bounds.values()):
        require_number(name, "end", value)
    if not bounds and len(args) > 1:
        start, end, step = args if len(args) == 3 else (*args, 1)
        return number(start), number(end), number(step)
    given = dict(
        zip(("end",) if len(args) == 1 and "end" not in bounds else ("start", "end", "step"), args, strict=False)
    )
    given.update(bounds)
    if "end" not in given:
        raise TypeError(f"{name}() missing argument 'end'")
    return number(given.get("start", 0)), number(given["end"]), number(given.get("step", 1))


@composite(method=False, names=(), meta="numbers")
def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Numbers from ``start`` to ``end``, which is included, ``step`` apart. Deprecated: use :func:`arange`, which
    leaves ``end`` out as Python's ``range`` does.

    Args:
        start: the first number.
        end: the last number, if a whole number of steps leads there.
        step: the difference of neighbours.
    Returns:
        A vector of ``floor((end - start) / step) + 1`` elements.
    Raises:
        RuntimeError: ``step`` is 0, or it leads away from ``end``.
    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.range(1, 4)
        tensor([1., 2., 3., 4.])
    """
    package = _core.Size.__module__
    warn_once(
        f"{package}.range is deprecated and will be removed in a future release because its behavior is inconsistent "
        f"with Python's range builtin. Instead, use {package}.arange, which produces values in [start, end)."
    )
    start, end = (0, start) if end is None else (start, end)
    dtype = dtype or (_core.get_default_dtype() if out is None else out.dtype)
    range_length("range", start, end, step, False)
    n = int((end - start) / step) + 1
    return _finish_sequence("range", _sequence(start, step, n, dtype), out, requires_grad, device)


@composite(method=False, meta="numbers", native=True)
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included: ``start + i * (end - start) / (steps -
    1)``.

    Args:
        start: the first number, or a tensor without dimensions.
        end: the last one.
        steps: how many, 0 or more.
    Returns:
        A vector of ``steps`` elements.
    Raises:
        RuntimeError: ``steps`` is negative.
    Examples:
        >>> taeda.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
        >>> taeda.linspace(-10, 10, 5)
        tensor([-10.,  -5.,   0.,   5.,  10.])
    """
    if steps.__class__ is not int or steps < 0:
        steps = _steps("linspace", steps)
    if dtype is None:
        dtype = out.dtype if out is not None else _core.get_default_dtype()
        if not (start.__class__ in _REALS and end.__class__ in _REALS) and _are_complex(start, end):
            dtype = dtype if dtype.is_complex else dtype.to_complex()
    result = _spaced(start, end, steps, dtype)
    if out is None:
        return finish(result, None, requires_grad, device)
    return _finish_sequence("linspace", result, out, requires_grad, device)


_REALS = frozenset((float, int))


def _steps(name: str, steps: Any) -> int:
    steps = _core.whole_numbers(steps, name, "steps")
    if steps < 0:
        raise RuntimeError(f"{name}: number of steps must be non-negative, got {steps}")
    return steps


def _are_complex(*ends: Any) -> bool:
    return any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex) for x in ends)


def _end(name: str, x: Any) -> Any:
    if isinstance(x, Tensor) and x.dim():
        raise RuntimeError(
            f"linspace and logspace only support 0-dimensional start and end tensors, got {name} of {x.dim()}"
        )
    x = number(x)
    if not isinstance(x, (int, float, complex)):
        raise TypeError(f"linspace and logspace take numbers, got {name} of type {type(x).__name__}")
    return x


def _unsigned(x, dtype):
    """An end as a number of an unsigned dtype: a negative one wraps around, as in a cast."""
    x = _core.fitting(x, dtype)
    return x if dtype is _core.bool_ else x % (1 << 8 * dtype.itemsize)


@primitive(method=False, out=False)
def _spaced(start, end, steps, dtype):
    """``steps`` evenly spaced numbers of that dtype."""
    if start.__class__ in _REALS and end.__class__ in _REALS and steps != 1 and not dtype.is_complex:
        return factories.spaced(_core.fitting(start, dtype), _core.fitting(end, dtype), steps, dtype)
    if any(isinstance(x, Tensor) and x.is_meta for x in (start, end)):
        return _core.empty((steps,), dtype)
    start, end = _end("start", start), _end("end", end)
    if dtype.is_complex:
        start, end = complex(start), complex(end)
        real, imag = (
            _spaced(a, b, steps, dtype.to_real()) for a, b in ((start.real, end.real), (start.imag, end.imag))
        )
        result = _core.empty((steps,), dtype)
        _core.copy_tensor(core.view_real(result), real)
        _core.copy_tensor(core.view_imag(result), imag)
        return result
    if isinstance(start, complex) or isinstance(end, complex):
        raise RuntimeError(f"linspace: complex ends can't be safely cast to {dtype}")
    if steps == 1:  # as `full` writes it
        return full((1,), start, dtype=dtype)
    return factories.spaced(_core.fitting(start, dtype), _core.fitting(end, dtype), steps, dtype)


def _spaced_in_parts(start, end, steps, dtype):
    """By distances from the nearer end, so that both ends are exact."""
    if dtype.is_complex:
        return NotImplemented
    start, end = (x.to(_core.float64) if isinstance(x, Tensor) else x for x in (start, end))
    if not dtype.is_floating_point:
        fit = _core.fitting if dtype.is_signed else _unsigned
        start, end = (x.to(dtype).to(_core.float64) if isinstance(x, Tensor) else fit(x, dtype) for x in (start, end))
    at = arange(steps, dtype=_core.float64)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    made = OPS["where"](at < steps / 2, at * step + start, end - (steps - 1 - at) * step if steps > 1 else at + start)
    return made.to(dtype)


_spaced.traits["lowering"] = _spaced_in_parts


@composite(method=False, meta="numbers", native=True)
def logspace(
    start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False,
    pin_memory=False,
):  # fmt: skip
    """``base ** x`` for ``steps`` evenly spaced ``x`` from ``start`` to ``end``, both included.
    The rest as of :func:`linspace`.

    Args:
        start: the first exponent.
        base: what is raised to these powers.
    Examples:
        >>> taeda.logspace(0, 4, 5, base=2)
        tensor([ 1.,  2.,  4.,  8., 16.])
        >>> taeda.logspace(-2, 0, 3)  # learning rates to try
        tensor([0.0100, 0.1000, 1.0000])
    """
    if steps.__class__ is not int or steps < 0:
        steps = _steps("logspace", steps)
    if dtype is None:
        dtype = out.dtype if out is not None else _core.get_default_dtype()
    if steps != 1:  # of one number, the exponent is not made an integer
        fit = _core.fitting if dtype.is_signed else _unsigned
        start = start if isinstance(start, Tensor) else fit(start, dtype)
        end = end if isinstance(end, Tensor) else fit(end, dtype)
    reals = start.__class__ in _REALS and end.__class__ in _REALS and base.__class__ in _REALS
    work = _core.complex128 if dtype.is_complex or (not reals and _are_complex(start, end)) else _core.float64
    if not reals or steps == 1 or work.is_complex or _core.is_mode_active():
        result = (base ** _spaced(start, end, steps, work)).to(dtype)
    else:  # the commonest case
        result = OPS["power"](base, _spaced(start, end, steps, work))
        result = result if dtype is work else OPS["to_dtype"](result, dtype)
    if out is None:
        return finish(result, None, requires_grad, device)
    return _finish_sequence("logspace", result, out, requires_grad, device)


# ---- matrices --------------------------------------------------------------------------------------------------------


def _eye_by_comparison(n, m, dtype, device):
    dtype = _core.get_default_dtype() if dtype is None else dtype
    rows, columns = arange(n, device=device), arange(n if m is None else m, device=device)
    return (rows.unsqueeze(-1) == columns).to(dtype)


@primitive(factories.identity, method=False, out=False)
def _identity(n, m, dtype):
    """The identity matrix of ``n`` rows and ``m`` columns."""


@composite(method=False, meta="numbers", lowering=_eye_by_comparison, native=True)
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The identity matrix: ones on the diagonal, zeros elsewhere.

    Args:
        n: number of rows, 0 or more.
        m: number of columns. Default: ``n``.
    Returns:
        A matrix of sizes ``(n, m)``.
    Raises:
        RuntimeError: ``n`` or ``m`` is negative.
    Examples:
        >>> taeda.eye(3)
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])
        >>> labels = taeda.tensor([2, 0])
        >>> taeda.eye(3)[labels]  # one row per label: a one-hot code
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    m = n if m is None else m
    if not n.__class__ is int is m.__class__:
        n, m = (_core.whole_numbers(x, "eye", label) for x, label in ((n, "n"), (m, "m")))
    if n < 0 or m < 0:
        raise RuntimeError(f"eye: n and m must be greater or equal to 0, got {n} and {m}")
    if dtype is None:
        dtype = out.dtype if out is not None else _core.get_default_dtype()
    return finish(_identity(n, m, dtype), out, requires_grad, device, "eye")
