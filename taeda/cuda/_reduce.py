"""The chunks of long rows, joined by a block of threads, in the order in which one thread would join them."""

from __future__ import annotations

from ..kernels.build import kernel
from ..kernels.ir import I64, Function
from ..kernels.reduce import join_chunks
from ._blocks import THREADS, Block


@kernel
def merge(f: Function, op: str, dtype: str, outs: tuple[str, ...], together: int) -> None:
    """As :func:`taeda.kernels.reduce.merge`, so many neighbouring rows for each block."""
    block = Block(f)
    join_chunks(f, op, dtype, outs, block.thread.to(I64), THREADS, block.barrier, together)
