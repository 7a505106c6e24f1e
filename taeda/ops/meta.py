"""Device meta: tensors that have sizes, strides and a dtype but no values, to describe a model too large to be made
twice.

A call with such tensors is *planned*: its body runs as for any tensor, but its tensors are on device meta and its
kernels do not run. So shapes, the graph and gradients come from the same code as elsewhere. This module handles the
exceptions: calls that name the device, and calls that need values.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from .._core.devices import current_place, set_place
from .registry import is_in_place, name_of
from .table import trait

__all__ = ["place_of", "planning", "without_values"]

_META = _core.device("meta")
_META_NUMBER = 1


def place_of(x: Any) -> tuple | None:
    """The memory, dtype, form and sign that a tensor shows, a key by which recorders know it again; None if it has no
    memory of its own, or no elements."""
    if not isinstance(x, Tensor) or x._without_memory is not None or x.is_meta or not x.numel():
        return None
    address = x.untyped_storage()._address() + x.storage_offset() * x.element_size()
    return address, x.dtype, tuple(x.shape), x.stride(), x.is_conj() or x.is_neg()


def is_meta(device: Any) -> bool:
    """Whether ``device``, or the default one if it is None, is meta."""
    if device is None:
        if current_place():
            return False
        device = callbacks.default_device()
    return (device if isinstance(device, _core.device) else _core.device(device)).type == "meta"


class _Thread(threading.local):
    refuse: Callable[[], NoReturn] | None = None  #: raises for a call that needs values


_thread = _Thread()


@contextmanager
def planning(refuse: Callable[[], NoReturn] | None = None) -> Iterator[None]:
    """Plan on this thread: new tensors are on device meta, and kernels do not run.

    Args:
        refuse: raises for a call that needs values; PyTorch's error is raised without it.
    """
    before, outer = set_place(_META_NUMBER), _thread.refuse
    _thread.refuse = refuse or outer
    try:
        yield
    finally:
        set_place(before)
        _thread.refuse = outer


def _needs_values(error: Exception) -> Exception:
    return error if _thread.refuse is None else _thread.refuse()


callbacks.needs_values = _needs_values


def without_values(
    sizes: Sequence[int], strides: Sequence[int] | None, dtype: Any, requires_grad: bool = False
) -> Tensor:
    """A tensor on device meta of that form; contiguous if no strides are given."""
    sizes = tuple(sizes)
    if strides is None:
        strides = tuple(math.prod(max(n, 1) for n in sizes[d + 1 :]) for d in range(len(sizes)))
    with planning():
        return _core.empty_strided(sizes, tuple(strides), dtype).requires_grad_(requires_grad)


def make_on_meta(function: Callable, args: Sequence, kwargs: dict, run: Callable | None = None) -> Any:
    """The result of ``function`` on device meta; ``run`` calls it in another way."""
    kwargs = {k: v for k, v in kwargs.items() if not (k == "device" and _names_meta(v))}
    args = [a for i, a in enumerate(args) if not (i and name_of(function) == "to" and _names_meta(a))]
    with planning():
        made = (run or function)(*args, **kwargs)
        return made.clone() if name_of(function) in ("to", "as_tensor", "asarray") and made is args[0] else made


def check_meta(function: Callable, args: Sequence, kwargs: dict) -> Any:
    """Raise for a call with tensors on device meta that needs values, or tensors of two devices.

    NotImplemented where the call can be planned; else its result.
    """
    name, role = name_of(function), trait(function, "meta", "")
    if name in ("to", "cpu", "cuda") and _leaves(name, args, kwargs):
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Please use nn.Module.to_empty() instead of nn.Module.to() "
            "when moving a module from meta to a different device."
        )
    if kwargs.get("out") is not None:
        _check_out_device(name, args, kwargs)
    if name.startswith("new_") or name.endswith("_like"):
        if kwargs.get("device") is not None and not is_meta(kwargs["device"]):
            like = _core.empty_strided(args[0].shape, args[0].stride(), args[0].dtype)
            return function(like, *args[1:], **kwargs)
    if role == "shape" and not args[0].is_meta:  # it reads only the sizes of the others
        return function(args[0], *(_of_size(x) if isinstance(x, Tensor) else x for x in args[1:]), **kwargs)
    if name in ("to", "type_as") and not args[0].is_meta:
        like = next(_tensors([*args[1:], *kwargs.values()]))
        return args[0].to(dtype=like.dtype, device=_META)
    if is_in_place(function) and not args[0].is_meta:
        error = NotImplementedError if name == "copy_" else RuntimeError
        raise error(f"{name}(): Cannot copy out of meta tensor; no data! The tensor to write to is on {args[0].device}")
    if name != "copy_" and "mixed" not in role:
        check_all_on_meta(name, [*args, *kwargs.values()])
    return NotImplemented


def check_all_on_meta(name: str, args: Sequence) -> None:
    """Raise where a call with a tensor on meta is given elements as well.

    Raises:
        RuntimeError: a tensor of ``args`` that has dimensions is on another device.
    """
    other = next((t for t in _tensors(args) if not t.is_meta and t.dim()), None)  # not a number
    if other is None:
        return
    raise RuntimeError(
        f"{name}(): Expected all tensors to be on the same device, but found at least two devices, meta and "
        f"{other.device}! Make both on one device; one without data on meta is made from the other with .to('meta')"
    )


def makes(function: Any, kwargs: dict) -> bool:
    """Whether a call makes a tensor from numbers, on the default device."""
    asks = kwargs.get("device") is None and kwargs.get("out") is None and not current_place()
    return asks and trait(function, "meta", "") in ("sizes", "numbers")


callbacks.check_meta = check_meta


# ---- the device of a call --------------------------------------------------------------------------------------------


def _of_size(t: Tensor) -> Tensor:
    """A tensor on the CPU that has the sizes of ``t``, over one element."""
    return _core.strided_view(_core.empty((1,), t.dtype), t.shape, (0,) * t.dim())


def _names_meta(x: Any) -> bool:
    return isinstance(x, (str, _core.device)) and str(x).partition(":")[0] == "meta"


def _check_out_device(name: str, args: Sequence, kwargs: dict) -> None:
    """Refuse an ``out`` on another device than the result's: the inputs' device or, without inputs, ``device``. Where
    neither is given, the result is made where ``out`` is."""
    inputs = [*_tensors([*args, *(v for k, v in kwargs.items() if k != "out")])]
    on = any(t.is_meta for t in inputs) if inputs else is_meta(kwargs.get("device") or _META)
    for out in _tensors([kwargs["out"]]):
        if out.is_meta is not on:
            raise RuntimeError(
                f"{name}(): Expected out tensor to have device {'meta' if on else 'cpu'}, but got {out.device} instead"
            )


def _tensors(items: Sequence) -> Iterator[Tensor]:
    for x in items:
        if isinstance(x, Tensor):
            yield x
        elif isinstance(x, (tuple, list)):
            yield from _tensors(x)


def _leaves(name: str, args: Sequence, kwargs: dict) -> bool:
    """Whether ``to``, ``cpu`` or ``cuda`` asks a tensor on meta for values."""
    if not args[0].is_meta:
        return False
    if name != "to":
        return True
    wanted = [*args[1:], *kwargs.values()]
    return any(
        (type(x) in (int, str, _core.device) and not is_meta(x)) or (isinstance(x, Tensor) and not x.is_meta)
        for x in wanted
    )
