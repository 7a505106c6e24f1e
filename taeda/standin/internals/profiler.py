"""``torch.ops.profiler``: ranges that begin and end by calls of ops, as graphs that are traced have them."""

from __future__ import annotations

from taeda.library import CustomOpDef
from taeda.profiler.recording import enter_range, leave_range


class _Handle:
    """The argument of the op that ends a range."""

    def __init__(self, place: int | None) -> None:
        self.place = place


def _enter(name: str, args: str | None = None) -> _Handle:
    return _Handle(enter_range(name if args is None else f"{name}({args})"))


def _exit(handle: _Handle) -> None:
    leave_range(handle.place)


for _name, _function in (("enter", _enter), ("enter_new", _enter), ("exit", _exit)):
    CustomOpDef(f"profiler::_record_function_{_name}", _function, ()).register_fake(_function)
