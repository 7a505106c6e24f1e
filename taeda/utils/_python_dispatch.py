"""``TorchDispatchMode``: a context manager that sees every op that runs, also those of a backward pass.

An op comes as ``torch.ops.aten.add.Tensor``, with the arguments of taeda's own op, which has the same parameters. Ops
that PyTorch always decomposes are decomposed here too: ``linear`` and ``matmul`` come as products of matrices, layers
of convolution as ``convolution``. Gradients are recorded below the mode, for the ops that it calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Composite, Op, Tensor
from ..aten import OpOverload, OpOverloadPacket, packet
from ..aten.signatures import matched
from ..ops.table import OPS, asked_for, trait

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


def _overload_of(op: Any, args: tuple, kwargs: dict) -> OpOverload:
    """The op of PyTorch's library that a call of ``op`` is."""
    plain = op.name.removesuffix("_") or op.name
    params = op.params if isinstance(op, Op) else asked_for(op)
    given = dict(zip(params, args, strict=False)) | kwargs
    call = matched(plain, params, {name: x for name, x in given.items() if x is not None})
    known, _, overload = (plain if call is None else call[0].name.removeprefix("aten::")).partition(".")
    found = packet(known + op.name[len(plain) :])
    if (
        found.function is None
        or kwargs.get("inplace")
        or (isinstance(op, Composite) and args[-1:] and args[-1] is True)
    ):
        found = OpOverloadPacket("aten", found.__name__, op)
    return getattr(found, overload or "default")


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


def _single_steps(input: Tensor, index: Any) -> list[tuple[int, Any]]:
    """A basic index as steps on one dimension after the other; dimensions are those at that step."""
    items = list(index) if isinstance(index, tuple) else [index]
    for i, item in enumerate(items):
        if item is Ellipsis:
            items[i : i + 1] = [slice(None)] * (input.dim() - sum(x is not None for x in items) + 1)
            break
    steps, dim = [], 0
    for item in items:
        if not (isinstance(item, slice) and item == slice(None)):
            steps.append((dim, item))
        dim += item is None or isinstance(item, slice)
    return steps


def _basic_index(input: Tensor, index: Any) -> Tensor:
    steps = _single_steps(input, index)
    if len(steps) < 2:
        return NotImplemented
    for dim, item in steps:
        input = OPS["basic_index"](input, (slice(None),) * dim + (item,))
    return input


_PARTS: dict[str, Callable] = {
    "basic_index": _basic_index,
    "linear": _linear,
    "matmul": _matmul,
    **{f"conv{n}d": _convolution(n) for n in (1, 2, 3)},
}


def _index_call(x: Tensor, index: Any) -> tuple:
    steps = _single_steps(x, index)
    if not steps:
        return "alias.default", (x,)
    ((dim, item),) = steps
    if item is None:
        return "unsqueeze.default", (x, dim)
    if isinstance(item, slice):
        ends = (item.start or 0, sys.maxsize if item.stop is None else item.stop)
        return "slice.Tensor", (x, dim, *ends, *(() if item.step in (None, 1) else (item.step,)))
    return "select.int", (x, dim, item)


def _view_call(x: Tensor, *size: Any) -> tuple:
    if len(size) == 1 and isinstance(size[0], _core.dtype):
        return "view.dtype", (x, size[0])
    return "view.default", (x, list(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else list(size))


def _reshape_call(x: Tensor, *shape: Any) -> tuple:
    name, args = _view_call(x, *shape)
    return (name if x.is_contiguous() else "reshape.default"), args


def _conjugate(y: Any) -> Any:
    if isinstance(y, Tensor):
        return y.conj() if y.is_complex() else y
    return y.conjugate()


def _softmax_call(name: str) -> Callable:
    def call(x: Tensor, dim: int, dtype: Any = None) -> tuple:
        return f"{name}.default", (x if dtype is None else x.to(dtype), dim, False)

    return call


def _deviation_call(name: str) -> Callable:
    def call(x: Tensor, dim: Any, correction: Any, keepdim: bool = False) -> tuple:
        more = {"keepdim": True} if keepdim else {}
        return f"{name}.correction", (x, *(() if dim is None else (dim,))), {"correction": correction, **more}

    return call


#: Ops that PyTorch calls with other arguments: the name there, the arguments and perhaps the named ones. Other ops have
#: it as their trait ``native_call``.
_CALLS: dict[str, Callable] = {
    "_max_all": lambda x: ("max.default", (x,)),
    "_max_dim": lambda x, *more: ("max.dim", (x, *more)),
    "_min_all": lambda x: ("min.default", (x,)),
    "_min_dim": lambda x, *more: ("min.dim", (x, *more)),
    "_std": _deviation_call("std"),
    "_var": _deviation_call("var"),
    "basic_index": _index_call,
    "mul_conj": lambda x, y: ("mul.Tensor", (x, _conjugate(y))),
    "times_itself": lambda x: ("pow.Tensor_Scalar", (x, 2)),
    "transpose": lambda x, a, b: (
        ("t.default", (x,)) if _core.current_task() != -1 and x.dim() == 2 else ("transpose.int", (x, a, b))
    ),
    "argwhere": lambda x: ("nonzero.default", (x,)),
    "index": lambda x, indices: ("index.Tensor", (x, list(indices))),
    "log_softmax": _softmax_call("_log_softmax"),
    "masked_select": lambda x, mask: ("index.Tensor", (x, [mask])),
    "relu_backward": lambda g, out: ("threshold_backward.default", (g, out, 0)),
    "reshape": _reshape_call,
    "softmax": _softmax_call("_softmax"),
    "to_dtype": lambda x, dtype: ("_to_copy.default", (x,), {"dtype": dtype}),
    "view": _view_call,
    "where": lambda *args: ("where.self", args),
    "where_select": lambda *args: ("where.self", args),
}


#: Methods that take sizes or dimensions one by one, too.
_SPREAD = frozenset("expand flip new_empty new_ones new_zeros permute repeat".split())


def native_call(op: Any, args: tuple, kwargs: dict) -> tuple[OpOverload, tuple, dict]:
    """The call of PyTorch's library that a call of ``op`` is; named arguments that have a position get it."""
    if isinstance(op, Composite):  # an activation, whose native op writes to nothing
        args = args[:-1] if args[-1:] and args[-1] is False else args
        kwargs = {k: v for k, v in kwargs.items() if (k, v) != ("inplace", False)}
    kwargs = {k: v for k, v in kwargs.items() if k != "out" or v is not None}
    params = getattr(op, "params", ())[: getattr(op, "npositional", 0)]
    while len(args) < len(params) and params[len(args)] in kwargs:
        args, kwargs = (*args, kwargs[params[len(args)]]), {k: v for k, v in kwargs.items() if k != params[len(args)]}
    if trait(op, "meta", "") == "sizes" and args and all(isinstance(n, int) for n in args):
        args = (list(args),)  # sizes one by one
    if op.name in _SPREAD and len(args) > 1 and all(isinstance(n, int) for n in args[1:]):
        args = (args[0], list(args[1:]))
    call = _CALLS.get(op.name) or trait(op, "native_call", None)
    if call is None or kwargs:
        return _overload_of(op, args, kwargs), tuple(map(_as_list, args)), kwargs
    name, args, *named = call(*args)
    known, _, overload = name.partition(".")
    return getattr(packet(known), overload), tuple(map(_as_list, args)), named[0] if named else {}


def _as_list(x: Any) -> Any:
    """``x``; as a list if it is a tuple of numbers, which come as lists in PyTorch."""
    return list(x) if isinstance(x, tuple) and all(isinstance(n, int) for n in x) else x


def seen_whole(op: Any) -> bool:
    """Whether ``op`` is one that PyTorch's library has, not a function written in such ops."""
    return isinstance(op, Op) or trait(op, "native", False) or getattr(op, "pointwise", False)


def parts_of(op: Any, args: tuple, kwargs: dict) -> Any:
    """The result of ``op`` by the calls that PyTorch decomposes it into; NotImplemented if it does not."""
    return _PARTS[op.name](*args, **kwargs) if op.name in _PARTS else NotImplemented


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
        if not seen_whole(op):
            with _within(self):
                return op.unwatched(args, kwargs)
        if any(
            not isinstance(mode, TorchDispatchMode) for mode in _core.mode_stack()
        ):  # autocast and the like come first
            return _core.pass_through(self, op, args, kwargs)
        with _within(self):
            result = parts_of(op, args, kwargs)
        if result is not NotImplemented:
            return result
        func, args, kwargs = native_call(op, args, kwargs)
        result = self.__torch_dispatch__(func, (), args, kwargs)
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
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether ``t`` is the class of tensors that :func:`is_traceable_wrapper_subclass` is true of."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """The result of a ``__torch_dispatch__``: for an op that writes, the tensors it wrote to; else ``out``."""
    known = getattr(func, "signature", None)
    if known is None:
        return args[0] if getattr(func, "mutates", False) and args else out
    given = dict(zip([a.name for a in known.arguments], args, strict=False)) | kwargs
    written = {a.alias: given.get(a.name) for a in known.arguments if a.mutated}
    found = tuple(written[r.alias] for r in known.returns if r.alias in written)
    return (found if len(found) > 1 else found[0]) if found else out


def transform_subclass(t: Any, callback: Callable, outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A tensor of the class of ``t`` of ``callback(name, inner)`` in place of each tensor that it wraps."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    return type(t).__tensor_unflatten__(inner, context, size, t.stride() if outer_stride is None else outer_stride)
