"""Slots: memory that a thread has for the time of a piece, for kernels that lay out much (``_core/slots.pyx``)."""

from __future__ import annotations

from .. import _core
from .._core.planners import host_kernel
from .._core.tensor import HOST_FUNCTIONS

PIECE = 1 << 19  # multiplications worth a piece of their own


def launch_in_slots(address: int, tensors: tuple, args: tuple, slot: int, tasks: int, each: int) -> None:
    """Run a kernel over tasks of ``each`` multiplications, with ``slot`` bytes of memory as its last pointer."""
    count, size = min(_core.get_num_threads(), tasks), -(-slot // 4096) * 4096
    memory = _core.empty(
        (count * (size + 64),), _core.uint8
    )  # a line per slot that tells whether it is taken, then the slots
    _core.launch(HOST_FUNCTIONS["zero_piece"], (memory,), (), count * 64, count * 64)
    pieces = -(-tasks // (PIECE // max(each, 1) + 1))
    if 1 < pieces < 8:
        pieces += pieces & 1  # few pieces come in pairs of one size
    given, more = (address, memory, *tensors), (count, size, len(tensors), *args)
    _core.launch(host_kernel("in_slot"), given, more, tasks, -(-tasks // pieces))
