"""ONNX's sequences, which are lists of tensors. No op changes its input."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._typed import Tensor
from ...ops.creation import arange
from ...ops.exchange import tensor
from ...ops.joining import cat, stack
from ..table import op
from ..values import integers


def _place(sequence: list, position: Tensor, *, end: int) -> int:
    """A position that may count from the end, of ``end`` ones."""
    place = int(position)
    if not -len(sequence) <= place < end:
        raise IndexError(f"expected a position in a sequence of {len(sequence)}, got {place}")
    return place + len(sequence) if place < 0 else place


op("SequenceConstruct")(lambda *items: list(items))
op("SequenceEmpty")(lambda *, dtype=1: [])
op("SequenceLength")(lambda sequence: tensor(len(sequence)))
op("SequenceAt")(lambda sequence, position: sequence[_place(sequence, position, end=len(sequence))])


@op("SequenceErase")
def sequence_erase(sequence: list, position: Tensor | None = None) -> list:
    place = len(sequence) - 1 if position is None else _place(sequence, position, end=len(sequence))
    return sequence[:place] + sequence[place + 1 :]


@op("SequenceInsert")
def sequence_insert(sequence: list, item: Any, position: Tensor | None = None) -> list:
    place = len(sequence) if position is None else _place(sequence, position, end=len(sequence) + 1)
    return [*sequence[:place], item, *sequence[place:]]


@op("SplitToSequence")
def split_to_sequence(x: Any, sizes: Tensor | None = None, *, axis: int = 0, keepdims: int = 1) -> list:
    if isinstance(x, np.ndarray):
        places = split_to_sequence(arange(x.size).reshape(x.shape), sizes, axis=axis, keepdims=keepdims)
        return [x.reshape(-1)[part.numpy()] for part in places]
    if sizes is None:
        return [part if keepdims else part.squeeze(axis) for part in x.split(1, axis)]
    return list(x.split(int(sizes) if sizes.ndim == 0 else integers(sizes), axis))


@op("ConcatFromSequence")
def concat_from_sequence(sequence: list, *, axis: int, new_axis: int = 0) -> Any:
    if isinstance(sequence[0], np.ndarray):
        return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)
    return stack(sequence, axis) if new_axis else cat(sequence, axis)
