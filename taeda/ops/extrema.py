"""The larger and the smaller of two, and clamping, element by element."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, renamed
from ..kernels import scalar as s
from .conversion import operand
from .copies import convert
from .out import can_cast
from .pointwise import REAL, _as_tensor
from .table import composite, expect_tensors, pointwise


@pointwise(
    dtypes=("bool", "int", "float"), inplace=False, reference="maximum", tensors=("input", "other"), canonical=True
)
def maximum(input, other):
    """The larger of the two; NaN where either is NaN.

    Examples:
        >>> taeda.maximum(taeda.tensor([1, 5]), taeda.tensor([3, 2]))
        tensor([3, 5])
    """
    return s.maximum(input, other)


@pointwise(
    dtypes=("bool", "int", "float"), inplace=False, reference="minimum", tensors=("input", "other"), canonical=True
)
def minimum(input, other):
    """The smaller of the two; NaN where either is NaN.

    Examples:
        >>> taeda.minimum(taeda.tensor([1, 5]), taeda.tensor([3, 2]))
        tensor([1, 2])
    """
    return s.minimum(input, other)


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def larger_gradient(grad, input, other):
    """``grad`` where ``input`` is larger than ``other``, half of it where they are equal, else 0."""
    return s.select(input < other, s.like(grad, 0.0), s.select(input == other, grad * 0.5, grad))


larger_gradient.vjp(grad=lambda g, input, other: larger_gradient(g, input, other))
maximum.vjp(
    input=lambda g, input, other: larger_gradient(g, input, other),
    other=lambda g, input, other: larger_gradient(g, other, input),
)
minimum.vjp(
    input=lambda g, input, other: larger_gradient(g, other, input),
    other=lambda g, input, other: larger_gradient(g, input, other),
)


@pointwise(dtypes=("bool", "int", "float"), inplace=False, reference="fmax", tensors=("input", "other"))
def fmax(input, other):
    """The larger of the two; a number wins over NaN.

    Examples:
        >>> taeda.fmax(taeda.tensor([1.0, math.nan]), taeda.tensor([3.0, 2.0]))
        tensor([3., 2.])
    """
    return s.fmax(input, other)


@pointwise(dtypes=("bool", "int", "float"), inplace=False, reference="fmin", tensors=("input", "other"))
def fmin(input, other):
    """The smaller of the two; a number wins over NaN.

    Examples:
        >>> taeda.fmin(taeda.tensor([1.0, math.nan]), taeda.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    return s.fmin(input, other)


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def chosen_gradient(grad, input, chosen):
    """``grad`` where ``input`` was chosen or both were NaN, else 0."""
    return s.select(chosen == chosen, s.select(input == chosen, grad, s.like(grad, 0.0)), grad)


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def refused_gradient(grad, input, chosen):
    """``grad`` where ``input`` was not chosen, else 0."""
    return s.select(chosen == chosen, s.select(input == chosen, s.like(grad, 0.0), grad), s.like(grad, 0.0))


chosen_gradient.vjp(grad=lambda g, input, chosen: chosen_gradient(g, input, chosen))
refused_gradient.vjp(grad=lambda g, input, chosen: refused_gradient(g, input, chosen))
fmax.vjp(
    input=lambda g, input, other: chosen_gradient(g, input, fmax(input, other)),
    other=lambda g, input, other: refused_gradient(g, input, fmax(input, other)),
)
fmin.vjp(
    input=lambda g, input, other: chosen_gradient(g, input, fmin(input, other)),
    other=lambda g, input, other: refused_gradient(g, input, fmin(input, other)),
)


@pointwise(method=False, operands=1, dtypes=REAL, reference=lambda x: x, node="ClampBackward1", fits=True)
def clamp_between(input, min=None, max=None):
    """``input`` held between two numbers, either of which may be None; NaN stays."""
    if min is not None:
        input = s.at_least(input, min)
    return input if max is None else s.at_most(input, max)


clamp_between.traits["native_call"] = lambda input, min=None, max=None: (
    ("clamp.default", (input, min) if max is None else (input, min, max))
)


@pointwise(method=False, inplace=False, operands=2, dtypes=REAL, second=False)
def clamp_gradient(grad, input, min=None, max=None):
    """``grad`` where ``input`` lies within the bounds, else 0."""
    nothing = s.like(grad, 0)
    if min is not None:
        grad = s.select(input >= min, grad, nothing)
    return grad if max is None else s.select(input <= max, grad, nothing)


clamp_gradient.vjp(grad=lambda g, input, min, max: clamp_gradient(g, input, min, max))
_clamp_between_ = clamp_between.traits["inplace"]
clamp_between.vjp(input=lambda g, input, min, max: clamp_gradient(g, input, min, max))


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def gradient_from(grad, input, bound):
    """``grad`` where ``input >= bound``, else 0."""
    return s.select(input >= bound, grad, s.like(grad, 0.0))


@pointwise(method=False, inplace=False, dtypes=("float",), second=False, operands=3)
def gradient_below(grad, input, bound):
    """``grad`` where ``input < bound``, else 0."""
    return s.select(input < bound, grad, s.like(grad, 0.0))


gradient_from.vjp(grad=lambda g, input, bound: gradient_from(g, input, bound))
gradient_below.vjp(grad=lambda g, input, bound: gradient_below(g, input, bound))


@pointwise(method=False, dtypes=("bool", "int", "float"))
def at_least(input, bound):
    """``input`` where it is not below ``bound``, else ``bound``, which gets the gradient there alone."""
    return s.maximum(input, bound)


@pointwise(method=False, dtypes=("bool", "int", "float"))
def at_most(input, bound):
    """``input`` where it is not above ``bound``, else ``bound``, which gets the gradient there alone."""
    return s.minimum(input, bound)


at_least.traits["native_call"] = lambda input, bound: (
    "clamp_min.Tensor" if isinstance(bound, Tensor) else "clamp_min.default",
    (input, bound),
)
at_most.traits["native_call"] = lambda input, bound: (
    "clamp_max.Tensor" if isinstance(bound, Tensor) else "clamp_max.default",
    (input, bound),
)
at_least.vjp(
    input=lambda g, input, bound: gradient_from(g, input, bound),
    bound=lambda g, input, bound: gradient_below(g, input, bound),
)
at_most.vjp(
    input=lambda g, input, bound: gradient_from(g, bound, input),
    bound=lambda g, input, bound: gradient_below(g, bound, input),
)


@pointwise(method=False, inplace=False, dtypes=("bool", "int", "float"), node="ClampBackward0")
def clamp_within(input, min, max):
    """``input`` held between two tensors; the upper one wins where they cross."""
    return s.minimum(s.maximum(input, min), max)


clamp_within.vjp(
    input=lambda g, input, min, max: gradient_from(gradient_from(g, input, min), max, input),
    min=lambda g, input, min, max: gradient_below(gradient_below(g, input, min), min, max),
    max=lambda g, input, min, max: gradient_below(g, max, at_least(input, min)),
)


def _expect_fits(input, bound):
    """Raise where ``input``, held by ``bound``, has other sizes or a dtype that it cannot be cast from."""
    dtype, sizes = _core.result_type(input, bound), tuple(reversed(input.shape))
    fits = bound.dim() <= len(sizes) and all(b in (1, n) for b, n in zip(reversed(bound.shape), sizes, strict=False))
    if not fits or not can_cast(dtype, input.dtype):
        raise RuntimeError(
            f"clamp_(): expected a bound that fits {input.dtype} of sizes {list(input.shape)}, got {bound.dtype} of "
            f"{list(bound.shape)}"
        )


def _clamp_to_tensors(input, min, max, out, inplace):
    bounds = [(op, _as_tensor(b, input)) for op, b in ((at_least, min), (at_most, max)) if b is not None]
    if inplace:
        for _, bound in bounds:  # both fit before one is applied
            _expect_fits(input, bound)
        for op, bound in bounds:
            op.traits["inplace"](input, bound)
        return input
    if len(bounds) == 2 and out is None:
        return clamp_within(input, bounds[0][1], bounds[1][1])
    for op, bound in bounds[:-1]:
        input = op(input, bound)
    op, bound = bounds[-1]
    return op(input, bound) if out is None else op(input, bound, out=out)


#: Types of bounds that need no conversion; others may be NumPy's.
_BOUNDS = {float, int, type(None), Tensor}


def _bound(x):
    if isinstance(x, str):
        raise TypeError("clamp(): a bound must be a number or a Tensor, not str")
    found = None if isinstance(x, Tensor) else operand(x)
    return x if found is None else found


#: Types of the bounds of most calls.
_NUMBERS = frozenset((float, int, type(None)))


def _is_common(input, min, max):
    """Whether a call is of floats and of bounds that are plain numbers, which need no look at dtypes."""
    return (
        min.__class__ in _NUMBERS
        and max.__class__ in _NUMBERS
        and input.__class__ is Tensor
        and input.dtype.is_floating_point
        and min == min
        and max == max
        and (min is not None or max is not None)
    )


def _clamp(input, min, max, out, inplace, name="clamp"):
    if out is None and _is_common(input, min, max):
        return (_clamp_between_ if inplace else clamp_between)(input, min, max)
    if not isinstance(input, Tensor):
        expect_tensors(name, input=input)
    if type(min) not in _BOUNDS or type(max) not in _BOUNDS:
        min, max = (_bound(b) for b in (min, max))
    numbers = not (isinstance(min, Tensor) or isinstance(max, Tensor))
    if numbers and (min != min or max != max):  # NaN bounds give NaN, as tensors of them do
        min, max = (_as_tensor(b, input) if b != b else b for b in (min, max))
        return _clamp_to_tensors(input, min, max, out, inplace)
    if min is None and max is None:
        raise (ValueError if input.is_meta else RuntimeError)("clamp: At least one of 'min' or 'max' must not be None")
    if not numbers:
        return _clamp_to_tensors(input, min, max, out, inplace)
    if not inplace:
        for bound in (min, max):
            if bound is not None:
                input = convert(input, _core.result_type(input, bound))
    if inplace:
        for bound in (min, max):
            if bound is not None and not can_cast(_core.result_type(input, bound), input.dtype):
                raise RuntimeError(
                    f"{name}_: result type {_core.result_type(input, bound)} can't be cast to the desired output type "
                    f"{input.dtype}"
                )
        return _clamp_between_(input, min, max)
    return clamp_between(input, min, max) if out is None else clamp_between(input, min, max, out=out)


@composite(names=("clip",), pointwise=True, canonical=True)
def clamp(input, min=None, max=None, *, out=None):
    """``min(max(input, min), max)``: ``input`` held between two bounds. The gradient is 0 outside.

    Args:
        input: a tensor of any sizes, not complex.
        min: the lower bound, a number or a tensor; None for none.
        max: the upper bound, a number or a tensor; None for none. Where the bounds cross, ``max`` is the result.
    Returns:
        The sizes to which all broadcast. The dtype is ``taeda.result_type`` of them.
    Raises:
        RuntimeError: both bounds are None.
    Examples:
        >>> taeda.clamp(taeda.tensor([-2.0, 0.5, 3.0]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
    """
    return _clamp(input, min, max, out, False)


clip = renamed(clamp, "clip")


@composite(names=("clip_",), functional=clamp)
def clamp_(input, min=None, max=None):
    """In-place form of :func:`clamp`."""
    return _clamp(input, min, max, None, True)


clip_ = renamed(clamp_, "clip_")


@composite()
def clamp_min(input, min, *, out=None):
    """``max(input, min)``: ``input``, at least ``min``.

    Args:
        input: a tensor of any sizes, not complex.
        min: a number or a tensor; the two broadcast.
    Returns:
        The sizes to which both broadcast. The dtype is ``taeda.result_type`` of them.
    Examples:
        >>> taeda.clamp_min(taeda.tensor([-2.0, 0.5]), 0)
        tensor([0.0000, 0.5000])
    """
    return _clamp(input, min, None, out, False, "clamp_min")


@composite()
def clamp_max(input, max, *, out=None):
    """``min(input, max)``: ``input``, at most ``max``. The rest as of :func:`clamp_min`.

    Args:
        max: a number or a tensor; the two broadcast.
    Examples:
        >>> taeda.clamp_max(taeda.tensor([0.5, 3.0]), 1)
        tensor([0.5000, 1.0000])
    """
    return _clamp(input, None, max, out, False, "clamp_max")


@composite(functional=clamp_min)
def clamp_min_(input, min):
    """In-place form of :func:`clamp_min`."""
    return _clamp(input, min, None, None, True, "clamp_min_")


@composite(functional=clamp_max)
def clamp_max_(input, max):
    """In-place form of :func:`clamp_max`."""
    return _clamp(input, None, max, None, True, "clamp_max_")
