"""Attention over a sequence that is cut over processes: keys and values go round a ring (Liu et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.ops.table import OPS
from taeda.overrides import TorchFunctionMode

from ..collectives import all_gather, recv, send
from ..device_mesh import DeviceMesh
from ..groups import ProcessGroup, resolve

__all__ = ["context_parallel", "context_parallel_unshard", "ring_attention"]

_TAG = 1 << 20  # of the messages of the ring


def _pass_on(tensors: tuple[Tensor, ...], group: ProcessGroup) -> tuple[Tensor, ...]:
    """Give tensors to the next process, and take those of the one before."""
    n, rank = group.size(), group.rank()
    for i, t in enumerate(tensors):
        send(t.contiguous(), group=group, group_dst=(rank + 1) % n, tag=_TAG + i)
    made = tuple(taeda.empty(t.shape, dtype=t.dtype) for t in tensors)
    for i, t in enumerate(made):
        recv(t, group=group, group_src=(rank - 1) % n, tag=_TAG + i)
    return made


def _weight(sums: Tensor, top: Tensor) -> Tensor:
    """The sum of exponentials of a part, over ``exp(top)``."""
    return (sums[..., 0] - top).exp() / sums[..., 1]


def _wide(x: Tensor) -> Any:
    """The dtype in which parts are added up."""
    return taeda.float32 if x.element_size() < 4 else x.dtype


class _Ring(Function):
    """Each process adds up what its queries find in the keys of all; backward, gradients of keys travel along with them."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, group: ProcessGroup) -> Tensor:
        n, rank = group.size(), group.rank()
        out: Any = None
        sums: Any = None
        keys, values = k, v
        for step in range(n):
            source = (rank - step) % n
            if not (causal and source > rank):  # all of these keys come later
                part, own = OPS["_attention"](q, keys, values, None, causal and source == rank, scale)[:2]
                part = part.to(_wide(q))
                out, sums = (part, own) if out is None else _merged(out, sums, part, own)
            if step < n - 1:
                keys, values = _pass_on((keys, values), group)
        out = out.to(q.dtype)
        ctx.save_for_backward(q, k, v, out, sums)
        ctx.options = causal, scale, group
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        q, k, v, out, sums = ctx.saved_tensors
        causal, scale, group = ctx.options
        n, rank = group.size(), group.rank()
        if taeda.is_grad_enabled():
            raise RuntimeError("ring_attention: second derivatives are not there; use attention of the whole sequence")
        dq, dk, dv = (taeda.zeros(x.shape, dtype=_wide(q)) for x in (q, k, v))
        keys, values = k, v
        for step in range(n):
            source = (rank - step) % n
            if not (causal and source > rank):
                own = causal and source == rank
                made = OPS["_attention_backward"](g, q, keys, values, None, out, sums, own, scale)
                dq, dk, dv = dq + made[0], dk + made[1], dv + made[2]
            if step < n - 1:
                keys, values, dk, dv = _pass_on((keys, values, dk, dv), group)
        dk, dv = _pass_on((dk, dv), group)  # home
        return dq.to(q.dtype), dk.to(q.dtype), dv.to(q.dtype), None, None, None


def _merged(out: Tensor, sums: Tensor, part: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    top = taeda.maximum(sums[..., 0], own[..., 0])
    a, b = _weight(sums, top), _weight(own, top)
    total = a + b
    made = out * (a / total).unsqueeze(-1) + part * (b / total).unsqueeze(-1)
    return made, taeda.stack([top, 1.0 / total], -1)


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False, scale: float | None = None, group: Any = None
) -> Tensor:
    """``scaled_dot_product_attention`` of a sequence of which each process has a part of equal length, in order of ranks.

    Args:
        query, key, value: ``[batch, heads, length / processes, features]``, floating point, of equal heads.
        is_causal: position ``i`` of the whole sees positions up to ``i`` only.
        scale: of the scores, ``1 / sqrt(features)`` by default.
        group: the processes, all by default.
    Returns:
        The part of the result that belongs to ``query``.
    Raises:
        ValueError: other sizes.
    """
    processes = resolve(group)
    if processes is None:
        raise ValueError("ring_attention: this process is not in the given group")
    if query.dim() != 4 or query.shape != key.shape or key.shape[:3] != value.shape[:3] or not query.numel():
        raise ValueError(
            f"ring_attention: expected query, key and value of sizes [batch, heads, length, features], got "
            f"{[tuple(x.shape) for x in (query, key, value)]}"
        )
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    return _Ring.apply(query, key, value, bool(is_causal), scale, processes)


class _AroundTheRing(TorchFunctionMode):
    def __init__(self, group: Any) -> None:
        super().__init__()
        self.group = group

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is not taeda.nn.functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return _in_place_of(self.group, *args, **(kwargs or {}))


def _in_place_of(
    group: Any, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if attn_mask is not None or dropout_p:
        raise NotImplementedError("context_parallel: attention with a mask or with dropout is not there")
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    return ring_attention(query, key, value, is_causal, scale, group)


@contextmanager
def context_parallel(
    mesh: DeviceMesh, *, buffers: list[Tensor] | None = None, buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:  # fmt: skip
    """Within it, ``buffers`` are this process's parts of sequences, and attention is :func:`ring_attention`.

    Args:
        mesh: the processes, a line.
        buffers: tensors with a sequence in a dimension that ``buffer_seq_dims`` names; its length divides by the processes.
        no_restore_buffers: those that stay parts afterwards.
    Raises:
        ValueError: a length does not divide.
    """
    buffers, dims = buffers or [], buffer_seq_dims or []
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    n, rank = mesh.size(), mesh.get_local_rank()
    kept = [b.data for b in buffers]
    for b, dim in zip(buffers, dims, strict=True):
        if b.shape[dim] % n:
            raise ValueError(f"context_parallel: a sequence of length {b.shape[dim]} does not divide by {n} processes")
        b.data = b.data.chunk(n, dim)[rank].clone()
    try:
        with _AroundTheRing(mesh.get_group()):
            yield
    finally:
        stay = {id(b) for b in no_restore_buffers or ()}
        for b, whole in zip(buffers, kept, strict=True):
            if id(b) not in stay:
                b.data = whole


def context_parallel_unshard(mesh: DeviceMesh, buffers: list[Tensor], seq_dims: list[int]) -> list[Tensor]:
    """The whole sequences of which ``buffers`` are the parts."""
    made = []
    for b, dim in zip(buffers, seq_dims, strict=True):
        parts = [taeda.empty_like(b) for _ in range(mesh.size())]
        all_gather(parts, b.detach().contiguous(), mesh.get_group())
        made.append(taeda.cat(parts, dim))
    return made
