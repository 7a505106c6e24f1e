"""``taeda._foreach_add`` and its like: an op on each tensor of a list, under the names that third-party optimisers use.

On the CPU they are loops: an op on a small tensor costs little there, and taeda's own optimisers go over all parameters
in one kernel. On a device they are one launch where all tensors have one floating-point dtype and are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda._core.optim import alike
from taeda.kernels import target
from taeda.ops.updates import apply_all, change_all, each_norm

from . import _core
from ._typed import Tensor

_UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal
round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc""".split()
_BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub".split()
_OP = {"clamp_max": "minimum", "clamp_min": "maximum"}  # for tensors; numbers go to the op of that name
_PLAIN = (Tensor, taeda.nn.Parameter)
_NAMES_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _each(other: Any, n: int, name: str) -> Sequence:
    """``other`` for each of ``n`` tensors: a number or tensor for all, or a list with one for each."""
    if not isinstance(other, (list, tuple)):
        return [other] * n
    if len(other) != n:
        raise RuntimeError(
            f"_foreach_{name}: Tensor lists must have the same number of tensors, got {n} and {len(other)}"
        )
    return other


_LARGEST = 6e4  # a number that is no larger fits each floating-point dtype


def _lists(given: Any, self: Sequence[Tensor]) -> tuple[str, list] | None:
    """The letter of an op's argument as :func:`apply_all` has it, and the argument for each tensor."""
    each = [given] * len(self) if not isinstance(given, (list, tuple)) else list(given)
    if len(each) != len(self):
        return None
    if all(type(x) in (int, float) for x in each):
        return ("n", each) if all(abs(x) <= _LARGEST for x in each) else None
    if not all(type(x) in _PLAIN for x in each):
        return None
    if all(x.shape == y.shape for x, y in zip(each, self, strict=True)):
        return "t", each
    return ("s", each) if all(x.dim() == 0 for x in each) else None


def _may_go_at_once(self: Any) -> bool:
    """Whether a launch costs more than looking at all tensors: not on a processor with vectors."""
    if not isinstance(self, (list, tuple)) or not self or type(self[0]) not in _PLAIN:
        return False
    kind = self[0].device.type
    return kind != "meta" and (kind != "cpu" or target.host().vector_bytes < 16) and _core.current_mode() is None


def _goes_at_once(self: Any, tensors: list) -> bool:
    """Whether one kernel can go over all tensors, of which ``self`` are some."""
    if not _may_go_at_once(self) or not alike(tensors) or not self[0].is_floating_point():
        return False
    if any(type(x) not in _PLAIN or x.device != self[0].device for x in tensors):
        return False
    return not (_core.is_recorded() and any(x.requires_grad for x in tensors))


def _at_once(name: str, self: Any, *given: Any, new: bool = True) -> tuple[Tensor, ...] | None:
    """The op of that name on all tensors, in one launch; in their place if not ``new``. None where that cannot be."""
    if not _may_go_at_once(self):
        return None
    op = taeda.true_divide if name == "div" else getattr(taeda, name)
    if not isinstance(op, _core.Op) or "pointwise" not in op.traits:
        return None
    found = [each for x in (self, *given) if (each := _lists(x, self)) is not None]
    if len(found) <= len(given):
        return None
    lists = [each for letter, each in found if letter != "n"]
    tensors = [x for each in lists for x in each]
    if not _goes_at_once(self, tensors):
        return None
    made = [taeda.empty_like(x) for x in self] if new else list(self)
    letters = "".join(letter for letter, _ in found)
    apply_all(made, op.name, letters, lists, [each for letter, each in found if letter == "n"])
    return tuple(made)


def _unary(name: str) -> None:
    def new(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
        made = _at_once(name, self)
        if made is not None:
            return made
        op = getattr(taeda, name)
        return tuple(op(x) for x in self)

    def inplace(self: Sequence[Tensor]) -> Sequence[Tensor]:
        if _at_once(name, self, new=False) is None:
            for x in self:
                getattr(x, name + "_")()
        return self

    _publish(name, new, inplace)


def _binary(name: str) -> None:
    def apply(x: Any, y: Any, suffix: str, **kwargs: Any) -> Any:
        if isinstance(y, Tensor) and isinstance(x, Tensor):
            method = _OP.get(name, name)
        else:
            method = _NAMES_OF_NUMBERS.get(name, name)
        if not isinstance(x, Tensor):  # only _foreach_pow has a number for its base
            return taeda.pow(x, y)
        if not suffix:
            return getattr(x, method)(y, **kwargs)
        if hasattr(x, method + "_"):
            return getattr(x, method + "_")(y, **kwargs)
        return x.copy_(getattr(x, method)(y))

    def new(self: Any, other: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        made = _at_once(name, self, other, *kwargs.values())
        if made is not None:
            return made
        if not isinstance(self, (list, tuple)):
            self = [self] * len(other)
        return tuple(apply(x, y, "", **kwargs) for x, y in zip(self, _each(other, len(self), name), strict=True))

    def inplace(self: Sequence[Tensor], other: Any, **kwargs: Any) -> Sequence[Tensor]:
        if _at_once(name, self, other, *kwargs.values(), new=False) is not None:
            return self
        others = _each(other, len(self), name)
        op = getattr(Tensor, name + "_", None)
        if op is not None and name not in _NAMES_OF_NUMBERS and name not in _OP:  # one op whatever the other is
            for x, y in zip(self, others, strict=True):
                op(x, y, **kwargs)
            return self
        for x, y in zip(self, others, strict=True):
            apply(x, y, "_", **kwargs)
        return self

    _publish(name, new, inplace)


def _ternary(name: str) -> None:
    def calls(self: Sequence[Tensor], first: Any, second: Any, value: Any, suffix: str) -> Sequence[Tensor]:
        n = len(self)
        values = value.tolist() if isinstance(value, Tensor) and value.dim() else value
        made = _at_once(name, self, first, second, *([] if values == 1 else [values]), new=not suffix)
        if made is not None:
            return made
        rows = zip(self, _each(first, n, name), _each(second, n, name), _each(values, n, name), strict=True)
        return [getattr(x, name + suffix)(a, b, value=v) for x, a, b, v in rows]

    def new(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> tuple[Tensor, ...]:
        return tuple(calls(self, tensor1, tensor2, value if scalars is None else scalars, ""))

    def inplace(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> Sequence[Tensor]:
        calls(self, tensor1, tensor2, value if scalars is None else scalars, "_")
        return self

    _publish(name, new, inplace)


def _publish(name: str, new: Callable, inplace: Callable | None = None) -> None:
    new.__doc__ = f"``{name}`` of each tensor of a list; a tuple."
    new.__name__ = new.__qualname__ = f"_foreach_{name}"
    globals()[new.__name__] = new
    if inplace is not None:
        inplace.__doc__ = f"``{name}_`` of each tensor of a list, which it returns."
        inplace.__name__ = inplace.__qualname__ = f"_foreach_{name}_"
        globals()[inplace.__name__] = inplace


for _name in _UNARY:
    _unary(_name)
for _name in _BINARY:
    _binary(_name)
for _name in ("addcdiv", "addcmul"):
    _ternary(_name)


def lerp_all(tensors: Sequence[Tensor], ends: Sequence[Tensor], weight: float) -> bool:
    """``lerp_`` of all at once, if one kernel can go over both lists. Returns whether it did. Nothing is recorded."""
    fit = (
        len(tensors) == len(ends)
        and alike([*tensors, *ends])
        and tensors[0].is_floating_point()
        and all(a.shape == b.shape for a, b in zip(tensors, ends, strict=True))
    )
    if fit:
        change_all(tensors, "lerp", weight, ends)
    return fit


def _lerps(
    self: Sequence[Tensor], tensors1: Sequence[Tensor], weights: Any, weight: Any, name: str
) -> Sequence[Tensor]:
    weights = weight if weights is None else weights
    made = _at_once("lerp", self, tensors1, weights, new=name == "lerp")
    if made is not None:
        return made
    op = getattr(Tensor, name)
    rows = zip(self, _each(tensors1, len(self), "lerp"), _each(weights, len(self), "lerp"), strict=True)
    return [op(x, y, w) for x, y, w in rows]


def _foreach_lerp(
    self: Sequence[Tensor], tensors1: Sequence[Tensor], weights: Any = None, *, weight: Any = None
) -> tuple[Tensor, ...]:
    """``lerp`` of each pair of tensors, with a number or a list of weights, by either name."""
    return tuple(_lerps(self, tensors1, weights, weight, "lerp"))


def _foreach_lerp_(
    self: Sequence[Tensor], tensors1: Sequence[Tensor], weights: Any = None, *, weight: Any = None
) -> Sequence[Tensor]:
    """``lerp_`` of each pair of tensors, with a number or a list of weights, by either name; the first list."""
    number = weight if weights is None else weights
    recorded = _core.is_recorded() and any(isinstance(x, Tensor) and x.requires_grad for x in [*self, *tensors1])
    if type(number) in (int, float) and self and not recorded and lerp_all(self, tensors1, number):
        return self
    _lerps(self, tensors1, weights, weight, "lerp_")
    return self


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The vector norm of each tensor of a list."""
    if ord in (1, 2, math.inf) and dtype is None and _goes_at_once(self, list(self)):
        return tuple(each_norm(list(self), float(ord)).unbind(0))
    return tuple(taeda.linalg.vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each tensor of a list."""
    return tuple(x.max() for x in self)


def _foreach_clone(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A copy of each tensor of a list."""
    return tuple(x.clone() for x in self)


def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The matrix product of each pair of tensors."""
    return tuple(taeda.mm(x, y) for x, y in zip(self, _each(mat2, len(self), "mm"), strict=True))


def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """``zero_`` of each tensor of a list, which it returns."""
    for x in self:
        x.zero_()
    return self


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Sequence[Tensor]:
    """Copy each tensor of ``src`` into its place in ``self``, which it returns."""
    for x, y in zip(self, _each(src, len(self), "copy_"), strict=True):
        x.copy_(y, non_blocking)
    return self
