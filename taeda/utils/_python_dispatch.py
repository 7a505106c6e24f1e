"""``TorchDispatchMode``: a context manager that sees every op that runs, those of a backward pass too.

An op comes as ``torch.ops.aten.add.Tensor``, with the arguments of taeda's own op, which has the same parameters. What
PyTorch always takes apart is taken apart here too: ``linear`` and ``matmul`` come as products of matrices, layers of
convolution as ``convolution``. Gradients are recorded below the mode, of what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Op, Tensor
from ..ops.aten import SCALAR_OVERLOADS, OpOverload, OpOverloadPacket
from ..ops.table import OPS

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]

_TENSOR = frozenset("add sub mul div true_divide floor_divide rsub".split())
_REDUCTIONS = {
    "sum": "dim_IntList",
    "mean": "dim",
    "prod": "dim_int",
    "any": "dim",
    "all": "dim",
    "max": "dim",
    "min": "dim",
}
#: What PyTorch calls an op of another name here.
_NAMES = {
    "true_divide": "div",
    "transpose": "transpose.int",
    "relu_backward": "threshold_backward",
    "select": "select.int",
    "slice": "slice.Tensor",
}


def _overload_of(op: Any, args: tuple, kwargs: dict) -> OpOverload:
    """The op of PyTorch's library that a call of ``op`` is."""
    name = op.name
    plain = name.removesuffix("_") or name
    second = args[1] if len(args) > 1 else kwargs.get("other", kwargs.get("exponent"))
    known, _, overload = _NAMES.get(plain, plain).partition(".")
    if plain in SCALAR_OVERLOADS or plain == "fill":
        overload = "Tensor" if isinstance(second, Tensor) else "Scalar"
    elif plain in _TENSOR:
        overload = "Tensor"
    elif plain == "pow":
        overload = "Tensor_Tensor" if isinstance(second, Tensor) else "Tensor_Scalar"
    elif plain in _REDUCTIONS and (second is not None or kwargs.get("dim") is not None):
        overload = _REDUCTIONS[plain]
    return OpOverload(OpOverloadPacket("aten", known + name[len(plain) :], op), overload or "default")


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    rows = input.reshape(-1, input.shape[-1]) if input.dim() != 2 else input
    product = rows.mm(weight.t()) if bias is None else OPS["addmm"](bias, rows, weight.t())
    return product if input.dim() == 2 else product.reshape(*input.shape[:-1], weight.shape[0])


def _matmul(input: Tensor, other: Tensor, **out: Any) -> Tensor:
    ranks = input.dim(), other.dim()
    if out or min(ranks) == 0 or ranks == (1, 1):
        return NotImplemented
    if ranks == (2, 2):
        return input.mm(other)
    if ranks == (2, 1):
        return input.mv(other)
    if other.dim() == 2:  # all rows of a batch at once
        return input.reshape(-1, input.shape[-1]).mm(other).reshape(*input.shape[:-1], other.shape[1])
    if min(ranks) < 3:
        return NotImplemented
    batch = OPS["broadcast_shapes"](input.shape[:-2], other.shape[:-2]) if ranks != (3, 3) else input.shape[:1]
    left = input.expand(*batch, *input.shape[-2:]).reshape(-1, *input.shape[-2:])
    right = other.expand(*batch, *other.shape[-2:]).reshape(-1, *other.shape[-2:])
    return left.bmm(right).reshape(*batch, input.shape[-2], other.shape[-1])


def _convolution(size: int) -> Callable:
    def convolution(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        if isinstance(padding, str) or input.dim() != size + 2:
            return NotImplemented
        numbers = [[n] * size if isinstance(n, int) else list(n) for n in (stride, padding, dilation)]
        return OPS["convolution"](input, weight, bias, *numbers, False, [0] * size, groups)

    return convolution


_PARTS: dict[str, Callable] = {
    "linear": _linear,
    "matmul": _matmul,
    **{f"conv{n}d": _convolution(n) for n in (1, 2, 3)},
}
#: Functions written in ops that are seen whole, as pointwise ones are.
_WHOLE = frozenset(
    "arange convolution empty eye full linspace logspace normal ones rand randint randint_like randn randperm "
    "zeros".split()
)


class TorchDispatchMode:
    """Context manager whose ``__torch_dispatch__(func, types, args, kwargs)`` sees every op within it.

    While it runs, the mode is off, so that it may call ``func`` or other ops. ``types`` is empty.
    """

    composites = True

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._before: list[list] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__(func, types, args, kwargs)")

    def __enter__(self) -> Any:
        before = _core.mode_stack()
        self.__dict__.setdefault("_before", []).append(before)  # a subclass may not call __init__
        _core.set_mode_stack([*before, self])
        return self

    def __exit__(self, *exc: Any) -> None:
        _core.set_mode_stack(self._before.pop())

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        """Called by the core for every op."""
        if not (isinstance(op, Op) or op.name in _WHOLE or getattr(op, "pointwise", False)):
            with _within(self):
                return op.unwatched(args, kwargs)
        if any(
            not isinstance(mode, TorchDispatchMode) for mode in _core.mode_stack()
        ):  # autocast and the like come first
            return _core.pass_through(self, op, args, kwargs)
        if op.name in _PARTS:
            with _within(self):
                result = _PARTS[op.name](*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = self.__torch_dispatch__(_overload_of(op, args, kwargs), (), args, kwargs)
        if result is NotImplemented:
            raise TypeError(f"{type(self).__name__}.__torch_dispatch__ gave NotImplemented for {op.name}")
        return result


@contextmanager
def _within(*modes: TorchDispatchMode) -> Iterator[None]:
    before = _core.mode_stack()
    _core.set_mode_stack([*before, *modes])
    try:
        yield
    finally:
        _core.set_mode_stack(before)


@contextmanager
def _disable_current_modes() -> Iterator[list]:
    before = _core.mode_stack()
    _core.set_mode_stack([mode for mode in before if not isinstance(mode, TorchDispatchMode)])
    try:
        yield [mode for mode in before if isinstance(mode, TorchDispatchMode)]
    finally:
        _core.set_mode_stack(before)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    modes = [mode for mode in _core.mode_stack() if isinstance(mode, TorchDispatchMode)]
    return modes[-1] if modes else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode of this kind is on."""
    return _get_current_dispatch_mode() is not None


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether ``t`` wraps other tensors through ``__tensor_flatten__``."""
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )
