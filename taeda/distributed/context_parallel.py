"""Attention over a sequence that is spread over processes: keys and values go around in a ring.

Each process has the queries, keys and values of a part of the positions. It works on the keys and values at hand while
it passes them on, and merges the results by the rows' log-sum-exp (Liu et al. 2023, https://arxiv.org/abs/2310.01889).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from taeda.autograd import Function
from taeda.autograd.function import once_differentiable

from .._core import bfloat16, float16, float32, float64
from .._typed import Tensor
from ..nn.functional import scaled_dot_product_attention
from ..ops.attention import _attention, _attention_backward
from ..ops.creation import empty_like, ones_like, zeros_like
from ..ops.elementary import logaddexp
from ..ops.joining import cat
from ..overrides import TorchFunctionMode
from .collectives import P2POp, all_gather, batch_isend_irecv, irecv, isend
from .groups import get_rank, get_world_size

__all__ = [
    "context_parallel", "context_parallel_shard", "context_parallel_unshard", "ring_attention", "set_rotate_method",
]  # fmt: skip

_TAG = 30_001
_DTYPES = (float32, float64, float16, bfloat16)
_Block = tuple[slice, slice, bool]  # queries, keys, whether it is causal


def _block(rank: int, source: int, causal: bool, balanced: bool, half: int) -> _Block | None:
    """The block of keys of ``source`` that the queries of ``rank`` see; None if they see none.

    If balanced, rank ``r`` of ``n`` has the parts ``r`` and ``2 n - 1 - r`` of ``2 n``: all ranks do the same work.
    """
    whole = slice(None)
    if not causal or source == rank:
        return whole, whole, causal
    if balanced:
        return (whole, slice(half), False) if source < rank else (slice(half, None), whole, False)
    return (whole, whole, False) if source < rank else None


def _rotate(tensors: Sequence[Tensor], group: Any) -> tuple[list[Tensor], list]:
    """Send ``tensors`` to the next process. Returns the memory for those of the process before, and the works to wait
    for.
    """
    rank, size = get_rank(group), get_world_size(group)
    places = [empty_like(t) for t in tensors]
    ops = [P2POp(isend, t, None, group, _TAG, (rank + 1) % size) for t in tensors]
    ops += [P2POp(irecv, t, None, group, _TAG, (rank - 1) % size) for t in places]
    return places, batch_isend_irecv(ops)


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [t.float() if t.element_size() == 2 else t for t in tensors]


def _turns(here: list[Tensor], group: Any, causal: bool, balanced: bool, half: int) -> Iterator[tuple[Any, Any, Any]]:
    """The keys and values of each process in turn, cut to the block that is seen, while the next are under way."""
    rank, size = get_rank(group), get_world_size(group)
    for step in range(size):
        places, works = _rotate(here, group) if step < size - 1 else ([], [])
        block = _block(rank, (rank - step) % size, causal, balanced, half)
        k, v = (None, None) if block is None else _wide(*(x[:, :, block[1]] for x in here))
        yield block, k, v
        for work in works:
            work.wait()
        here = places


class _Ring(Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, causal: bool, balanced: bool, scale: float, group: Any
    ) -> Tensor:
        q, here = _wide(query)[0], [key.contiguous(), value.contiguous()]
        out: Any = None
        lse: Any = None
        for block, k, v in _turns(here, group, causal, balanced, query.shape[2] // 2):
            if block is not None:
                rows, _, masked = block
                part, sums = _attention(q[:, :, rows], k, v, None, masked, scale)
                part_lse = sums[..., :1] - sums[..., 1:].log()
                if out is None:
                    out, lse = part, part_lse
                else:
                    _merge(out[:, :, rows], lse[:, :, rows], part, part_lse)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.settings = causal, balanced, scale, group
        return out.to(query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple:
        query, key, value, out, lse = ctx.saved_tensors
        causal, balanced, scale, group = ctx.settings
        grad, q = _wide(grad, query)
        sums = cat([lse, ones_like(lse)], -1)  # exp(score - lse) are the weights of the whole row
        dq = zeros_like(q)
        here = [key.contiguous(), value.contiguous()]
        grads = [zeros_like(x) for x in _wide(*here)]
        for block, k, v in _turns(here, group, causal, balanced, query.shape[2] // 2):
            if block is not None:
                rows, columns, masked = block
                found = _attention_backward(
                    grad[:, :, rows], q[:, :, rows], k, v, None, out[:, :, rows], sums[:, :, rows].contiguous(), masked,
                    scale,
                )  # fmt: skip
                dq[:, :, rows] += found[0]
                for whole, part in zip(grads, found[1:], strict=True):
                    whole[:, :, columns] += part
            if get_world_size(group) > 1:  # the gradients follow their keys, one step behind, until they are at home
                grads, works = _rotate(grads, group)
                for work in works:
                    work.wait()
        dk, dv = (g.to(x.dtype) for g, x in zip(grads, (key, value), strict=True))
        return dq.to(query.dtype), dk, dv, None, None, None, None


def _merge(out: Tensor, lse: Tensor, part: Tensor, part_lse: Tensor) -> None:
    """Put attention over further keys into ``out`` and ``lse``, in place."""
    both = logaddexp(lse, part_lse)
    out.copy_(out * (lse - both).exp() + part * (part_lse - both).exp())
    lse.copy_(both)


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, *, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False, group: Any = None, load_balance: bool = True,
) -> Tensor:  # fmt: skip
    """:func:`scaled_dot_product_attention` of a sequence of which each process has a part. All processes call it.

    Args:
        query: ``[batch, heads, l, e]``: the positions of this process; float32, float64, float16 or bfloat16.
        key: ``[batch, heads, s, e]``, as many positions at each process.
        value: ``[batch, heads, s, ev]``.
        is_causal: a position sees those up to itself in the whole sequence.
        scale: of the scores, ``1 / sqrt(e)`` where not given.
        enable_gqa: ``key`` and ``value`` may have fewer heads.
        group: the processes, all by default.
        load_balance: the parts are those of :func:`context_parallel_shard`; otherwise each process has one stretch,
            in the order of ranks. It matters if ``is_causal``.
    Returns:
        ``[batch, heads, l, ev]``: the rows of this process. Differentiable once.
    Raises:
        ValueError: shapes or dtypes do not fit.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4 or x.dtype not in _DTYPES or x.dtype is not query.dtype:
            raise ValueError(
                f"ring_attention: expected {name} as [batch, heads, positions, numbers] in one floating dtype, got "
                f"{tuple(x.shape)} of {x.dtype}"
            )
    fit = query.shape[0] == key.shape[0] and query.shape[3] == key.shape[3] and key.shape[:3] == value.shape[:3]
    heads = query.shape[1] % key.shape[1] == 0 if enable_gqa else query.shape[1] == key.shape[1]
    if not fit or not heads or not query.numel() or not value.numel():
        raise ValueError(
            f"ring_attention: shapes do not go together: query {tuple(query.shape)}, key {tuple(key.shape)}, value "
            f"{tuple(value.shape)}, enable_gqa={enable_gqa}"
        )
    if is_causal and (query.shape[2] != key.shape[2] or (load_balance and query.shape[2] % 2)):
        raise ValueError(
            f"ring_attention: is_causal expects as many queries as keys{', an even number' * load_balance}, got "
            f"{query.shape[2]} and {key.shape[2]}"
        )
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    return _Ring.apply(query, key, value, is_causal, load_balance, scale, group)


# ---- the parts of a sequence --------------------------------------------------------------------------------


def _group_of(mesh: Any) -> Any:
    return mesh.get_group() if hasattr(mesh, "get_group") else mesh


def _cut(buffer: Tensor, dim: int, size: int) -> list[Tensor]:
    if buffer.shape[dim] % (2 * size):
        raise ValueError(
            f"context_parallel: expected dimension {dim} of a buffer {tuple(buffer.shape)} to be a multiple of twice "
            f"the number of processes, {2 * size}"
        )
    return list(buffer.chunk(2 * size, dim))


def context_parallel_shard(mesh: Any, buffers: Sequence[Tensor], seq_dims: Sequence[int]) -> list[Tensor]:
    """This process's part of each buffer: of ``2 n`` parts those numbered ``rank`` and ``2 n - 1 - rank``.

    Args:
        mesh: a one-dimensional DeviceMesh, or a group.
        buffers: the same at each process.
        seq_dims: the dimension of positions in each.
    Returns:
        A part of each buffer.
    Raises:
        ValueError: a sequence does not divide.
    """
    group = _group_of(mesh)
    rank, size = get_rank(group), get_world_size(group)
    found = []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        parts = _cut(buffer, dim, size)
        found.append(cat([parts[rank], parts[-1 - rank]], dim))
    return found


def context_parallel_unshard(
    mesh: Any, buffers: Sequence[Tensor], seq_dims: Sequence[int], load_balancer: Any = None
) -> list[Tensor]:
    """The whole of each buffer of which :func:`context_parallel_shard` gave the parts; without gradients.

    Args:
        mesh: a one-dimensional DeviceMesh, or a group.
        buffers: the parts at this process.
        seq_dims: the dimension of positions in each.
        load_balancer: None.
    Returns:
        The whole buffers.
    Raises:
        NotImplementedError: a ``load_balancer`` is given.
    """
    if load_balancer is not None:
        raise NotImplementedError("context_parallel_unshard: only the head and tail parts of context_parallel_shard")
    group = _group_of(mesh)
    whole = []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        slots = [empty_like(buffer.detach()) for _ in range(get_world_size(group))]
        all_gather(slots, buffer.detach().contiguous(), group)
        halves = [slot.chunk(2, dim) for slot in slots]
        whole.append(cat([h[0] for h in halves] + [h[1] for h in reversed(halves)], dim))
    return whole


def set_rotate_method(rotate_method: str) -> None:
    """Accepted: keys and values go around in a ring, whichever of PyTorch's ways is named; results are the same.

    Args:
        rotate_method: ``"allgather"`` or ``"alltoall"``.
    Raises:
        NotImplementedError: it is neither ``"allgather"`` nor ``"alltoall"``.
    """
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(f"set_rotate_method: expected 'allgather' or 'alltoall', got {rotate_method!r}")


class _RingMode(TorchFunctionMode):
    """Calls of ``scaled_dot_product_attention`` go around the ring."""

    _sees_ops_alone = True

    def __init__(self, group: Any) -> None:
        self.group = group

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is not scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        if attn_mask is not None or dropout_p > 0:
            raise NotImplementedError(
                "context_parallel: scaled_dot_product_attention takes no attn_mask and no dropout within it; use "
                "is_causal"
            )
        return ring_attention(
            query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa, group=self.group
        )


@contextlib.contextmanager
def context_parallel(
    mesh: Any, *, buffers: list[Tensor] | None = None, buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:  # fmt: skip
    """Within it, ``buffers`` are this process's part of them, and attention is that over the whole sequence.

    ::

        with context_parallel(mesh, buffers=[tokens, targets, positions], buffer_seq_dims=[1, 1, 0]):
            loss = F.cross_entropy(model(tokens, positions).flatten(0, 1), targets.flatten())
            loss.backward()

    Each process has the gradients of parameters for its own positions: add them up over the group.

    Args:
        mesh: a one-dimensional DeviceMesh, or a group.
        buffers: cut in place when it begins, whole again when it ends.
        buffer_seq_dims: the dimension of positions in each.
        no_restore_buffers: those that stay cut.
    Raises:
        ValueError: not as many dimensions as buffers, a sequence does not divide, or a buffer requires a gradient.
    """
    buffers, dims = buffers or [], buffer_seq_dims or []
    kept = no_restore_buffers or set()
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(b.requires_grad for b in buffers):
        raise ValueError("context_parallel: a buffer requires a gradient; use context_parallel_shard, which has one")
    if not all(any(b is k for b in buffers) for k in kept):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    group = _group_of(mesh)
    whole = [b.clone() if not any(b is k for k in kept) else None for b in buffers]
    for buffer, part in zip(buffers, context_parallel_shard(group, buffers, dims), strict=True):
        buffer.resize_(part.shape).copy_(part)
    try:
        with _RingMode(group):
            yield
    finally:
        for buffer, before in zip(buffers, whole, strict=True):
            if before is not None:
                buffer.resize_(before.shape).copy_(before)
