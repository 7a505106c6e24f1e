"""PowerSGD (Vogels et al. 2019): matrices of gradients are sent as products of two thin ones; the error is added next
time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._typed import Tensor
from ....futures import Future
from ....ops.creation import zeros_like
from ....ops.indexing import where
from ....ops.joining import cat
from ....ops.random import randn
from ....random import Generator
from ...collectives import all_reduce
from ...groups import ReduceOp
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The state that the hook keeps between iterations.

    Args:
        process_group: the processes, all for None.
        matrix_approximation_rank: columns of the thin matrices.
        start_powerSGD_iter: iterations before the first that compresses; they average as usual.
        min_compression_rate: matrices that would shrink by less are sent as they are.
        use_error_feedback: add what the last approximation lost.
        warm_start: begin from the last thin matrix.
        orthogonalization_epsilon: added to norms.
        random_seed: of the first thin matrices.
        compression_stats_logging_frequency: accepted.
        batch_tensors_with_same_shape: accepted.
    Raises:
        ValueError: ``start_powerSGD_iter`` is below 2, with ``use_error_feedback`` or ``warm_start``.
    """

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0


def _orthogonal(matrix: Tensor, epsilon: float) -> None:
    """Make the columns orthonormal, in place (Gram and Schmidt)."""
    for i in range(matrix.shape[1]):
        column = matrix[:, i]
        for j in range(i):
            column -= (matrix[:, j] * column).sum() * matrix[:, j]
        norm = column.norm() + epsilon
        column.copy_(where(norm > 0, column / norm, zeros_like(column)))


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The mean of a bucket, of whose matrices an approximation of low rank is sent.

    The work is done when it returns: its steps wait for each other.
    """
    return _compressed(state, bucket, _by_gradients)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:
    """The mean of a bucket, as the approximation of one square matrix of all its elements: less is sent, and more is
    lost."""
    return _compressed(state, bucket, _as_a_square)


def _compressed(state: PowerSGDState, bucket: Any, approximate: Callable) -> Future:
    """Replace the bucket's vector by ``approximate(state, bucket)``, with the errors of the last time added before."""
    if bucket.is_last():
        state.iter += 1
    started = state.iter - bucket.is_last() >= state.start_powerSGD_iter
    if not started:
        return allreduce_hook(state.process_group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        error = state.error_dict.setdefault(index, zeros_like(buffer))
        buffer += error
        whole = buffer.clone()
    approximate(state, bucket)
    if state.use_error_feedback:
        state.error_dict[index] = whole - buffer  # gradients that are sent whole lose nothing
    done = Future()
    done.set_result(buffer)
    return done


def _by_gradients(state: PowerSGDState, bucket: Any) -> None:
    matrices: list[Tensor] = []
    rest: list[Tensor] = []
    for g in bucket.gradients():
        matrix = g.reshape(g.shape[0], -1) if g.dim() > 1 else g
        fits = matrix.dim() == 2 and _shrinks(matrix, state)
        (matrices if fits else rest).append(matrix)
    _approximate(state, bucket.index(), matrices)
    if rest:
        flat = cat([m.reshape(-1) for m in rest])
        all_reduce(flat, ReduceOp.AVG, state.process_group)
        for matrix, part in zip(rest, flat.split([m.numel() for m in rest]), strict=True):
            matrix.copy_(part.reshape(matrix.shape))


def _as_a_square(state: PowerSGDState, bucket: Any) -> None:
    buffer = bucket.buffer()
    side = math.isqrt(buffer.numel() - 1) + 1
    square = buffer.new_zeros(side * side)
    square[: buffer.numel()] = buffer
    _approximate(state, bucket.index(), [square.view(side, side)])
    buffer.copy_(square[: buffer.numel()])


def _shrinks(matrix: Tensor, state: PowerSGDState) -> bool:
    rows, columns = matrix.shape
    rank = min(rows, columns, state.matrix_approximation_rank)
    return (rows + columns) * rank * state.min_compression_rate < rows * columns


def _approximate(state: PowerSGDState, index: int, matrices: list[Tensor]) -> None:
    """Write the mean of the processes' approximations to the matrices: one step of the power method."""
    if not matrices:
        return
    known = state.q_memory_dict.get(index)
    if known is None or not state.warm_start:
        known = []
        generator = Generator().manual_seed(state.rng.randint(1_000_000_000))
        for m in matrices:
            rank = min(*m.shape, state.matrix_approximation_rank)
            q = randn(m.shape[1], rank, generator=generator, dtype=m.dtype, device="cpu").to(m.device)
            _orthogonal(q, state.orthogonalization_epsilon)
            known.append(q)
    else:
        for q in known:
            _orthogonal(q, state.orthogonalization_epsilon)
    ps = _mean_of([m @ q for m, q in zip(matrices, known, strict=True)], state.process_group)
    for p in ps:
        _orthogonal(p, state.orthogonalization_epsilon)
    qs = _mean_of([m.t() @ p for m, p in zip(matrices, ps, strict=True)], state.process_group)
    state.q_memory_dict[index] = qs
    for m, p, q in zip(matrices, ps, qs, strict=True):
        m.copy_(p @ q.t())


def _mean_of(tensors: list[Tensor], group: Any) -> list[Tensor]:
    flat = cat([t.reshape(-1) for t in tensors])
    all_reduce(flat, ReduceOp.AVG, group)
    parts = flat.split([t.numel() for t in tensors])
    return [part.reshape(t.shape) for part, t in zip(parts, tensors, strict=True)]
