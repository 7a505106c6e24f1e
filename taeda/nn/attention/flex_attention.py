"""Attention with scores changed by a function: on the CPU by plain ops, with the whole matrix of scores in memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda import Tensor

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128  # of the blocks in which PyTorch keeps a mask; here a mask is a function


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` is to give beside its result: the log-sum-exp of the scores, their maximum."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What it gave."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Any, head: Any, q_idx: Any, kv_idx: Any) -> Tensor:
    """Every query sees every key."""
    return taeda.ones((), dtype=taeda.bool)


def and_masks(*mask_mods: Callable) -> Callable:
    """Where all of the masks are true."""
    return lambda *i: functools.reduce(lambda a, b: a & b, [m(*i) for m in mask_mods])


def or_masks(*mask_mods: Callable) -> Callable:
    """Where one of the masks is true."""
    return lambda *i: functools.reduce(lambda a, b: a | b, [m(*i) for m in mask_mods])


def _places(b: int, h: int, q: int, k: int) -> tuple[Tensor, ...]:
    return (
        taeda.arange(b).view(b, 1, 1, 1),
        taeda.arange(h).view(1, h, 1, 1),
        taeda.arange(q).view(1, 1, q, 1),
        taeda.arange(k).view(1, 1, 1, k),
    )


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu") -> Tensor:
    """The bool mask ``(B, H, Q_LEN, KV_LEN)`` of ``mod_fn(batch, head, query, key)``."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_places(*shape)).expand(shape).clone()


class BlockMask:
    """A mask: ``mask_mod`` and the sizes that it is for."""

    def __init__(self, mask_mod: Callable, shape: tuple[int, ...]) -> None:
        self.mask_mod = mask_mod
        self.shape = shape

    def to_dense(self) -> Tensor:
        """The mask as a bool tensor."""
        return create_mask(self.mask_mod, *self.shape)


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = "cpu", **options: Any
) -> BlockMask:
    """A :class:`BlockMask` of ``mask_mod(batch, head, query, key)``."""
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN))


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, *,
    return_aux: AuxRequest | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Attention whose scores go through ``score_mod(score, batch, head, query, key)`` before the softmax.

    Args:
        query, key, value: ``(B, H, L, E)``, ``(B, Hk, S, E)``, ``(B, Hk, S, Ev)``.
        block_mask: where it is false, a key is not seen.
        enable_gqa: repeat the heads of key and value.
        return_lse: also give the log-sum-exp of the scores, ``(B, H, L)``.
        return_aux: also give an :class:`AuxOutput` with what this asks for.
    Returns:
        ``(B, H, L, Ev)``.
    """
    if enable_gqa:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    places = _places(*scores.shape)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*places), -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.unsqueeze(-1)).exp().nan_to_num(0.0)
    out = (weights @ value).to(query.dtype)
    if return_aux is not None:
        maxima = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, maxima)
    return (out, lse) if return_lse else out
