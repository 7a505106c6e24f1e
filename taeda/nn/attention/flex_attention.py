"""Attention with scores changed by a function: on the CPU by plain ops, with the whole matrix of scores in memory."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import nn
from ..._core import bool_, int8, int32, int64
from ..._typed import Tensor
from ...ops.creation import arange, ones, zeros

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """The extra results of :func:`flex_attention` to return: the log-sum-exp of the scores, their maximum."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The extra results."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Any, head: Any, q_idx: Any, kv_idx: Any) -> Tensor:
    """Every query sees every key."""
    return ones((), dtype=bool_)


def and_masks(*mask_mods: Callable) -> Callable:
    """A mask that is true where all of the masks are."""
    return lambda *i: functools.reduce(lambda a, b: a & b, [m(*i) for m in mask_mods])


def or_masks(*mask_mods: Callable) -> Callable:
    """A mask that is true where one of the masks is."""
    return lambda *i: functools.reduce(lambda a, b: a | b, [m(*i) for m in mask_mods])


def _places(shape: tuple[int, ...], device: Any) -> tuple[Tensor, ...]:
    b, h, q, k = shape
    return (
        arange(b, device=device).view(b, 1, 1, 1),
        arange(h, device=device).view(1, h, 1, 1),
        arange(q, device=device).view(1, 1, q, 1),
        arange(k, device=device).view(1, 1, 1, k),
    )


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The bool mask ``(B, H, Q_LEN, KV_LEN)`` of ``mod_fn(batch, head, query, key)``."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    return mod_fn(*_places(shape, device)).expand(shape).clone()


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The number of true blocks in each row, and the columns, in order, first of the true blocks."""
    columns = blocks.to(int8).argsort(-1, descending=True, stable=True)
    return blocks.sum(-1).to(int32), columns.to(int32)


def _unlisted(counts: Tensor, columns: Tensor, width: int) -> Tensor:
    """The bool matrix of blocks that :func:`_listed` lists."""
    there = arange(columns.shape[-1], device=columns.device) < counts.unsqueeze(-1)
    blocks = zeros(*columns.shape[:-1], width, dtype=int8, device=columns.device)
    return blocks.scatter_add(-1, columns.to(int64), there.to(int8)).bool()


class BlockMask:
    """A mask ``mask_mod(batch, head, query, key)`` and the blocks of it that are not empty, listed row by row.

    Args:
        seq_lengths: number of queries and of keys.
        kv_num_blocks: ``(B, H, rows)``, how many blocks of a row are neither empty nor full.
        kv_indices: ``(B, H, rows, columns)``, the columns of these blocks first, int32.
        full_kv_num_blocks: ``(B, H, rows)``, how many blocks of a row are full, so that ``mask_mod`` is not asked; None
            for none.
        full_kv_indices: ``(B, H, rows, columns)``, the columns of these blocks first, int32.
        BLOCK_SIZE: rows and columns of a block.
        mask_mod: the mask within blocks.
    """

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None, full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: tuple[int, int] = (128, 128), mask_mod: Callable = noop_mask,
    ) -> None:  # fmt: skip
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self._whole = False  # whether mask_mod is false in blocks that are not listed, and true in full ones
        self.q_num_blocks, self.q_indices = _listed(self._blocks(kv_num_blocks, kv_indices).mT)
        self.full_q_num_blocks = self.full_q_indices = None
        if full_kv_num_blocks is not None:
            full = self._blocks(full_kv_num_blocks, full_kv_indices)
            self.full_q_num_blocks, self.full_q_indices = _listed(full.mT)

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable | None = None, seq_lengths: tuple[int, int] | None = None, **options: Any,
    ) -> BlockMask:  # fmt: skip
        """A mask of listed blocks, as in the class; blocks that are not listed are masked.

        Args:
            kv_num_blocks: as in the class.
            kv_indices: as in the class.
            full_kv_num_blocks: as in the class.
            full_kv_indices: as in the class.
            BLOCK_SIZE: rows and columns of a block, or one number for both.
            mask_mod: the mask within blocks; None: every key there is seen.
            seq_lengths: number of queries and of keys; None: those of the blocks.
            **options: accepted.
        Returns:
            The mask.
        Raises:
            RuntimeError: ``kv_indices`` has less than two dimensions.
            AssertionError: one of the two arguments of full blocks is missing.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError(f"BlockMask must have at least 2 dimensions, got kv_indices of {kv_indices.dim()}")
        assert (full_kv_num_blocks is None) == (full_kv_indices is None), (
            "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
        )
        size: Any = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mask_mod or noop_mask)

    def _blocks(self, counts: Tensor, columns: Tensor | None) -> Tensor:
        assert columns is not None
        return _unlisted(counts, columns, -(-self.seq_lengths[1] // self.BLOCK_SIZE[1]))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(B, H, queries, keys)``."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of elements of the mask."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Whether each block is not empty: ``(B, H, rows, columns)``, int32."""
        blocks = self._blocks(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            blocks = blocks | self._blocks(self.full_kv_num_blocks, self.full_kv_indices)
        return blocks.to(int32)

    def sparsity(self) -> float:
        """The part of the mask that lies in empty blocks, in per cent."""
        return 100 * (1 - int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def elements(self, *places: Tensor) -> Tensor:
        """The mask at these places, as :func:`create_mask` gives it."""
        mask = self.mask_mod(*places)
        if self._whole:
            return mask
        _, _, q, k = places
        rows, columns = q.flatten() // self.BLOCK_SIZE[0], k.flatten() // self.BLOCK_SIZE[1]
        seen = self._blocks(self.kv_num_blocks, self.kv_indices)[..., rows, :][..., columns] & mask
        if self.full_kv_num_blocks is None:
            return seen
        return seen | self._blocks(self.full_kv_num_blocks, self.full_kv_indices)[..., rows, :][..., columns]

    def _with(self, change: Callable[[Tensor], Tensor]) -> BlockMask:
        lists = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        changed: Any = [None if x is None else change(x) for x in lists]
        return _made(self.seq_lengths, changed, self.BLOCK_SIZE, self.mask_mod, self._whole)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks; numbers keep their dimension."""
        items = index if isinstance(index, tuple) else (index,)
        kept = tuple(slice(i, None if i == -1 else i + 1) if isinstance(i, int) else i for i in items)
        return self._with(lambda x: x[kept])

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        dense = [self._blocks(self.kv_num_blocks, self.kv_indices)[..., :rows, :columns]]
        if self.full_kv_num_blocks is not None:
            dense.append(self._blocks(self.full_kv_num_blocks, self.full_kv_indices)[..., :rows, :columns])
        lists = [x for blocks in dense for x in _listed(blocks)]
        return _made((new_q_len, new_kv_len), lists, self.BLOCK_SIZE, self.mask_mod, self._whole)

    def to(self, device: Any) -> BlockMask:
        """The lists of blocks on ``device``."""
        return self._with(lambda x: x.to(device))

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _made(lengths: tuple[int, int], lists: Any, size: tuple[int, int], mask_mod: Callable, whole: bool) -> BlockMask:
    partial, full = lists[:2], lists[2:4] or (None, None)
    made = BlockMask(lengths, partial[0], partial[1], full[0], full[1], size, mask_mod)
    made._whole = whole
    return made


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128, _compile: bool = False, separate_full_blocks: bool = True, **options: Any,
) -> BlockMask:  # fmt: skip
    """A :class:`BlockMask` of ``mask_mod(batch, head, query, key)``.

    Args:
        mask_mod: the mask, of tensors of places.
        B: number of sequences; None for one that stands for all.
        H: number of heads; None for one that stands for all.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: of the mask.
        BLOCK_SIZE: rows and columns of a block.
        _compile: accepted.
        separate_full_blocks: list full blocks apart.
        **options: accepted.
    Returns:
        The mask.
    """
    size: Any = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = nn.functional.pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    counts = mask.unflatten(-1, (-1, size[1])).unflatten(-3, (-1, size[0])).sum((-3, -1))
    full = (counts == math.prod(size)) & separate_full_blocks
    lists: Any = _listed((counts > 0) & ~full) + (_listed(full) if separate_full_blocks else ())
    return _made((Q_LEN, KV_LEN), lists, size, mask_mod, True)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, *,
    return_aux: AuxRequest | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Attention whose scores go through ``score_mod(score, batch, head, query, key)`` before the softmax.

    Args:
        query: ``(B, H, L, E)``.
        key: ``(B, Hk, S, E)``.
        value: ``(B, Hk, S, Ev)``.
        score_mod: changes a score; None: nothing does.
        block_mask: where it is false, a key is not seen.
        scale: factor of the products; ``1 / sqrt(E)`` if None.
        enable_gqa: repeat the heads of key and value.
        return_lse: also give the log-sum-exp of the scores, ``(B, H, L)``.
        return_aux: also give an :class:`AuxOutput` with what this asks for.
        **options: accepted.
    Returns:
        ``(B, H, L, Ev)``.
    """
    if enable_gqa:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    places = _places(scores.shape, scores.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.elements(*places), -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.unsqueeze(-1)).exp().nan_to_num(0.0)
    out = (weights @ value).to(query.dtype)
    if return_aux is not None:
        maxima = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, maxima)
    return (out, lse) if return_lse else out
