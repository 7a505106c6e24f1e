"""Calls with tensors on a device, or that name one.

A call runs in the *place* of its tensors: its body makes tensors on their device and launches kernels there
(``_core/devices.pxd``). This module handles the cases before that: a named device, and tensors on two devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor
from .._core.callbacks import callbacks
from .._core.devices import DEVICES, REGISTERED, accelerator, device_number, is_registered, set_place
from .._core.devices import current_place as current_place
from .meta import _tensors, make_on_meta
from .registry import is_in_place, name_of
from .table import primitive, trait

__all__ = ["at", "current_place", "number_of", "transfer"]

CPU, META = 0, 1


@contextmanager
def at(number: int) -> Iterator[None]:
    """This thread's calls run on the device of that number."""
    before = set_place(number)
    try:
        yield
    finally:
        set_place(before)


def number_of(device: Any) -> int:
    """The number of a device, given as one or by its name.

    Raises:
        RuntimeError, NotImplementedError: there is none.
    """
    device = device if isinstance(device, _core.device) else _core.device(device)
    if not is_registered(device.type):
        _core.require_device(device)  # says why there is none
    return device_number(device.type, device.index)


# ---- between devices -------------------------------------------------------------------------------------------------


def _transferred(input: Tensor, number: int, source: int) -> Tensor:
    with at(number):
        made = _core.empty_like(input)
    if number != META:
        _core.copy_tensor(made, input)
    return made


@primitive(_transferred, method=False, out=False, node="ToCopy", meta="cast mixed")
def to_device(input, number, source):
    """``input`` on the device of that number; ``source`` is the number of its present device."""


to_device.vjp(input=lambda g, number, source: to_device(g, source, number))


def _all_at(x: Any, number: int) -> Any:
    """``x`` with the tensors in it on the device of that number, outside the graph."""
    if isinstance(x, Tensor):
        return to_device(x, number, number_of(x.device))
    if isinstance(x, (tuple, list)):
        return type(x)(_all_at(y, number) for y in x)
    return x


def transfer(input: Tensor, device: Any, non_blocking: bool = False) -> Tensor:
    """``input`` on ``device``; itself if it is there. With ``non_blocking`` a copy may still be under way."""
    number, source = number_of(device), number_of(input.device)
    if number == source:
        return input
    if non_blocking and max(number, source) > META:
        with REGISTERED[max(number, source)].without_waiting():
            return to_device(input, number, source)
    return to_device(input, number, source)


# ---- calls that name a device ----------------------------------------------------------------------------------------


def _pinned(function: Callable, args: Sequence, kwargs: dict, run: Callable) -> Any:
    """The result of ``function`` when it is called with pinned memory."""
    if accelerator() is None:
        return NotImplemented  # the check of its arguments says so
    wants_grad = kwargs.get("requires_grad", False)
    made = run(*args, **{k: v for k, v in kwargs.items() if k not in ("pin_memory", "requires_grad")})
    if made.is_meta:
        return made.requires_grad_(wants_grad)
    if not made.is_cpu:
        raise RuntimeError(
            f"{name_of(function)}: only dense CPU tensors can be pinned, and this one is on {made.device}"
        )
    return made.pin_memory().requires_grad_(wants_grad)


def _is_on_device(x: Tensor) -> bool:
    return not x.is_cpu and not x.is_meta


def _is_tensor_of_cpu(x: Tensor) -> bool:
    return x.is_cpu


def make_there(function: Callable, args: Sequence, kwargs: dict, run: Callable | None = None) -> Any:
    """The result of ``function``, made on a device that is not this thread's; ``run`` calls it in another way."""
    name, run = name_of(function), run or function
    if kwargs.get("pin_memory") is True:
        return _pinned(function, args, kwargs, run)
    if name in ("pin_memory", "is_pinned"):  # for which accelerator: there is one kind
        return run(args[0])
    named = kwargs.get("device")
    if named is None:
        named = next((a for a in args[1:] if isinstance(a, (str, _core.device))), None)
    if named is None:  # a device among the arguments that is about something else
        return NotImplemented
    number = number_of(named)
    if number == META:
        args = [_moved(a, named, _is_on_device) for a in args]
        return make_on_meta(function, args, {k: _moved(v, named, _is_on_device) for k, v in kwargs.items()}, run)
    with at(number):
        if name in ("to", "cuda"):
            if "device" in kwargs:  # a name at its position is for the body to read
                rest = {k: v for k, v in kwargs.items() if k != "device"}
                return run(args[0], DEVICES[number], *args[1:], **rest)
            return run(*args, **kwargs)
        rest = {k: v for k, v in kwargs.items() if k != "device" and v is not None}
        if not name.endswith("_like"):  # these read the form alone, and `new_zeros` that of the first tensor
            first = 1 if name.startswith("new_") else 0
            args = [*args[:first], *(_moved(a, named, _is_tensor_of_cpu) for a in args[first:])]
            rest = {k: _moved(v, named, _is_tensor_of_cpu) for k, v in rest.items()}
        made = run(*args, **rest)
        return transfer(made, named)  # for tensor-like objects on other devices too


# ---- calls with tensors of two devices -------------------------------------------------------------------------------


def _moved(x: Any, device: Any, moves: Callable[[Tensor], bool]) -> Any:
    """``x`` with the tensors in it that ``moves`` chooses on ``device``."""
    if isinstance(x, Tensor):
        return transfer(x, device) if moves(x) else x
    if type(x) in (tuple, list):
        return type(x)(_moved(y, device, moves) for y in x)
    return x


#: Ops that take indices on the CPU for a tensor on a device, as PyTorch's do: name -> the parameters' positions.
_INDEX_OPS = frozenset("getitem setitem index index_put index_put_ _index_put_impl_ masked_select tensor_split".split())


def _copied(function: Callable, args: Sequence, kwargs: dict) -> Any:
    """``copy_`` from another device."""
    to, source = args[0], args[1] if len(args) > 1 else kwargs["src"]
    if source.is_meta and not to.is_meta:
        raise NotImplementedError(
            f"copy_(): Cannot copy out of meta tensor; no data! The tensor to write to is on {to.device}"
        )
    rest = {k: v for k, v in kwargs.items() if k != "src"}
    return function(to, transfer(source, to.device, bool(kwargs.get("non_blocking"))), *args[2:], **rest)


def bring_together(function: Callable, args: Sequence, kwargs: dict) -> Any:
    """A call that has tensors on a device, and on others or the CPU, among its arguments.

    A tensor of no dimensions on the CPU counts as a number and is moved. So are indices. Returns NotImplemented where
    the function takes tensors of two devices, else its result.

    Raises:
        RuntimeError: there is another tensor elsewhere.
        NotImplementedError: one that is written to would get the values of one on meta.
    """
    name, role = name_of(function), trait(function, "meta", "")
    if "cast" in role or ("mixed" in role and name not in _INDEX_OPS):  # it moves them itself
        return NotImplemented
    if name == "copy_":
        return _copied(function, args, kwargs)
    there = next(t for t in _tensors([*args, *kwargs.values()]) if not t.is_cpu)
    two = next((t for t in _tensors([*args, *kwargs.values()]) if not t.is_cpu and t.device != there.device), None)
    if two is not None:
        raise RuntimeError(
            f"{name}(): Expected all tensors to be on the same device, but found at least two devices, {there.device} "
            f"and {two.device}! Move one of them with .to()"
        )
    indices = name in _INDEX_OPS
    rest = {k: v for k, v in kwargs.items() if k != "out"}
    writes = is_in_place(function)

    if indices and args[0].is_cpu:
        raise RuntimeError(
            f"{name}(): indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )

    def moves(x: Tensor) -> bool:
        return x.is_cpu and (x.dim() == 0 or (indices and not (x.is_floating_point() or x.is_complex())))

    values = [a if writes and i == 0 else _moved(a, there.device, moves) for i, a in enumerate(args)]
    rest = {k: _moved(v, there.device, moves) for k, v in rest.items()}
    other = next((t for t in _tensors([*values, *rest.values(), kwargs.get("out")]) if t.is_cpu), None)
    if other is not None:
        if any(other is t for t in _tensors([kwargs.get("out")])):
            raise RuntimeError(
                f"{name}(): Expected out tensor to have device {there.device}, but got {other.device} instead"
            )
        raise RuntimeError(
            f"{name}(): Expected all tensors to be on the same device, but found at least two devices, {there.device} "
            f"and {other.device}! Move one of them with .to('{there.device}')"
        )
    return function(*values, **rest, **({"out": kwargs["out"]} if kwargs.get("out") is not None else {}))


# ---- ops whose bodies read elements on the processor -----------------------------------------------------------------


def run_on_host(op: _core.Op, number: int) -> _core.Op:
    """``op`` for tensors on the device of that number: itself, where the device has the routines of LAPACK that the
    body calls; else by a library of the device, if it has one that can. Else its body runs on the CPU on copies, and
    the results are moved to the device.

    The checks and the derivative around the body are the op's own.
    """
    device, routines = REGISTERED[number], op.traits["on_host"]
    if isinstance(routines, str) and device.lapack_routines.issuperset(routines.split()):
        return op
    library = device.library(op.name)

    def body(*args: Any, **kwargs: Any) -> Any:
        made = NotImplemented if library is None else library(*args, **kwargs)
        return on_host(op.body, number, *args, **kwargs) if made is NotImplemented else made

    return op.computed_by(body)


def on_host(function: Callable, number: int, *args: Any, **kwargs: Any) -> Any:
    """The result of ``function`` on copies of the tensors at the CPU, moved to the device of that number."""
    with at(CPU):
        made = function(*(_all_at(x, CPU) for x in args), **{k: _all_at(x, CPU) for k, x in kwargs.items()})
    return _all_at(made, number)


callbacks.make_there = make_there
callbacks.run_on_host = run_on_host
callbacks.bring_together = bring_together


def devices() -> list[str]:
    """The names of the devices that there are."""
    return list(DEVICES)
