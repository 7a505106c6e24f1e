"""Sequences of different lengths: packing, padding and their inverses."""

from __future__ import annotations

import functools
import itertools
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from ... import _core
from ..._core import contiguous_format, float16, float32, float64, int8, int16, int32, int64, uint8
from ..._typed import Tensor
from ...ops.creation import arange, empty_like
from ...ops.exchange import tensor
from ...ops.joining import cat, stack
from ...ops.sorting import sort

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

_Packed = namedtuple(
    "PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"], defaults=(None, None, None)
)


class PackedSequence(_Packed):
    """Sequences of different lengths without their padding, step by step: what recurrent layers take.

    ``data`` holds the first elements of all sequences (longest first), then the second ones, and so on;
    ``batch_sizes[t]`` says how many sequences are longer than ``t``. ``sorted_indices`` and ``unsorted_indices`` order
    the batch by length and back; None where it was in order. :func:`pack_sequence` and :func:`pack_padded_sequence`
    make it.

    Args:
        data: the elements, ``(sum of lengths, *)``, any dtype.
        batch_sizes: ``(longest length,)``, int64, on the CPU.
        sorted_indices: ``(N,)``, int64, or None.
        unsorted_indices: ``(N,)``, int64, or None.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(
            self, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
            unsorted_indices: Tensor | None = None,
        ) -> None: ...  # fmt: skip

    def __new__(
        cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ):  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("PackedSequence: expected data and batch_sizes, or one pair of them")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                f"batch_sizes should always be on CPU. Got {batch_sizes.device}. Use pack_sequence or "
                "pack_padded_sequence rather than making a PackedSequence directly"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> Self:
        """A copy in pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """A copy whose data is moved or cast, the indices moved along; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        moved = [i if i is None else i.to(data.device, **kwargs) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """A copy on a GPU."""
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """A copy on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def double(self) -> Self:
        """The data as float64."""
        return self.to(dtype=float64)

    def float(self) -> Self:
        """The data as float32."""
        return self.to(dtype=float32)

    def half(self) -> Self:
        """The data as float16."""
        return self.to(dtype=float16)

    def long(self) -> Self:
        """The data as int64."""
        return self.to(dtype=int64)

    def int(self) -> Self:
        """The data as int32."""
        return self.to(dtype=int32)

    def short(self) -> Self:
        """The data as int16."""
        return self.to(dtype=int16)

    def char(self) -> Self:
        """The data as int8."""
        return self.to(dtype=int8)

    def byte(self) -> Self:
        """The data as uint8."""
        return self.to(dtype=uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def _kept_in_traces(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, recorded by a trace as one call, because its inside depends on the lengths."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        modes = _core.mode_stack() if _core.is_mode_active() else ()
        record = getattr(modes[0], "call_library", None) if modes else None
        return function(*args, **kwargs) if record is None else record(run, function, args, kwargs)

    return run


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another one.

    Args:
        permutation: the numbers from 0 to ``n - 1`` in some order, ``(n,)``, int64; or None.

    Returns:
        ``(n,)``, int64; None for None.

    Raises:
        RuntimeError: an element is out of range.

    Examples:
        >>> nn.utils.rnn.invert_permutation(taeda.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    output = empty_like(permutation, memory_format=contiguous_format)
    output.scatter_(0, permutation, arange(0, permutation.numel(), device=permutation.device))
    return output


@_kept_in_traces
def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch, so that recurrent layers do not compute on padding.

    Args:
        input: ``(T, N, *)``, or ``(N, T, *)`` if ``batch_first``. Any dtype.
        lengths: the length of each sequence: a list, or a tensor ``(N,)`` of integers on the CPU.
        batch_first: which of the two.
        enforce_sorted: the sequences come longest first; else they are sorted here.

    Returns:
        A :class:`PackedSequence`.

    Raises:
        RuntimeError: a length is not positive, or they are not in order though ``enforce_sorted``.

    Examples:
        >>> batch = taeda.tensor([[1, 2, 3], [4, 5, 0]])
        >>> packed = nn.utils.rnn.pack_padded_sequence(batch, [3, 2], batch_first=True)
        >>> packed.data
        tensor([1, 4, 2, 5, 3])
    """
    if isinstance(lengths, Tensor) and (lengths.dim() != 1 or lengths.device.type != "cpu"):
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} "
            f"{lengths.dtype} tensor"
        )
    sizes = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    sorted_indices = None
    if not enforce_sorted:
        ordered, sorted_indices = sort(tensor(sizes, dtype=int64), descending=True)
        sizes = ordered.tolist()
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    steps = input.transpose(0, 1) if batch_first else input
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != steps.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={steps.size(1)})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0: "
            f"{min(sizes)}"
        )
    if any(a < b for a, b in itertools.pairwise(sizes)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if sizes[0] > steps.size(0):
        raise RuntimeError(f"Expected `lengths` of at most {steps.size(0)}, the padded length, got {sizes[0]}")
    data, batch_sizes, start = [], [], 0
    for n in range(len(sizes), 0, -1):  # the n longest sequences share steps start..sizes[n-1]
        end = sizes[n - 1]
        if end > start:
            data.append(steps[start:end, :n].flatten(0, 1))
            batch_sizes += [n] * (end - start)
            start = end
    return PackedSequence(cat(data), tensor(batch_sizes, dtype=int64), sorted_indices, None)


@_kept_in_traces
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch of a packed one, and the lengths: the opposite of :func:`pack_padded_sequence`.

    Args:
        sequence: a :class:`PackedSequence`.
        batch_first: give ``(N, T, *)`` rather than ``(T, N, *)``.
        padding_value: fills the padding.
        total_length: pad to this length, at least that of the longest sequence.

    Returns:
        The batch, and the lengths ``(N,)``, int64.

    Raises:
        ValueError: ``total_length`` is less than the longest sequence.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])])
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    data, batch_sizes = sequence.data, sequence.batch_sizes
    length, batch, rest = batch_sizes.size(0), int(batch_sizes[0]), tuple(data.shape[1:])
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    there = arange(batch) < batch_sizes.unsqueeze(1)
    # Rows go to their places at once: as slices, one for each length, their gradients would be added up in full.
    filled = data.new_full((length * batch, *rest), padding_value)
    places = there.flatten().nonzero().flatten().to(data.device)
    padded = filled.index_copy(0, places, data).view(length, batch, *rest)
    lengths = there.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Tensor | Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Stack sequences of different lengths, padded to the longest.

    Args:
        sequences: tensors ``(L_i, *)``, any dtype.
        batch_first: give ``(N, T, *)`` rather than ``(T, N, *)``.
        padding_value: fills the padding.
        padding_side: ``"right"`` or ``"left"``.

    Returns:
        ``(T, N, *)`` or ``(N, T, *)``.

    Raises:
        RuntimeError: the side is unknown, or further sizes differ.

    Examples:
        >>> nn.utils.rnn.pad_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 5, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    if len({s.shape[1:] for s in sequences}) > 1:
        raise RuntimeError(
            "pad_sequence: expected sequences of equal sizes apart from the first, got shapes "
            f"{', '.join(str(list(s.shape)) for s in sequences[:4])}; the length of a sequence is its first size"
        )
    padded = []
    for s in sequences:
        if s.size(0) < longest:
            fill = s.new_full((longest - s.size(0), *s.shape[1:]), padding_value)
            s = cat([s, fill] if padding_side == "right" else [fill, s])
        padded.append(s)
    return stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each of its length: the opposite of :func:`pad_sequence`.

    Args:
        padded_sequences: ``(T, N, *)``, or ``(N, T, *)`` if ``batch_first``. Any dtype.
        lengths: ``(N,)``, integers.
        batch_first: which of the two.

    Returns:
        A list of tensors ``(L_i, *)``.

    Examples:
        >>> batch = taeda.tensor([[1, 2, 3], [4, 5, 0]])
        >>> nn.utils.rnn.unpad_sequence(batch, taeda.tensor([3, 2]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[: int(n)].clone() for s, n in zip(padded_sequences.unbind(0), lengths, strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences of different lengths.

    Args:
        sequences: tensors ``(L_i, *)``, any dtype.
        enforce_sorted: the sequences come longest first; else they are sorted here.

    Returns:
        A :class:`PackedSequence`.

    Raises:
        RuntimeError: a sequence is empty, or they are not in order though ``enforce_sorted``.

    Examples:
        >>> sequences = [taeda.randn(2, 3), taeda.randn(5, 3)]
        >>> packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
        >>> output, last = nn.RNN(3, 4)(packed)
        >>> last.shape  # of each sequence, after its last element
        taeda.Size([1, 2, 4])
    """
    lengths = tensor([s.size(0) for s in sequences], dtype=int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch: the opposite of :func:`pack_sequence`.

    Args:
        packed_sequences: a :class:`PackedSequence`.

    Returns:
        A list of tensors ``(L_i, *)``.

    Examples:
        >>> packed = nn.utils.rnn.pack_sequence([taeda.tensor([1, 2, 3]), taeda.tensor([4, 5])])
        >>> nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
