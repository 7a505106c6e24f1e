"""Embedding and EmbeddingBag: learnt vectors looked up by index."""

from __future__ import annotations

from typing import Any, Self

from ..._typed import Tensor
from ...autograd import no_grad
from ...ops import creation
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .utils import _unless

__all__ = ["Embedding", "EmbeddingBag"]


def _normal_index(padding_idx: int | None, num_embeddings: int) -> int | None:
    """``padding_idx`` counted from the front, checked."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % num_embeddings


class _EmbeddingBase(Module):
    """The table of vectors: a standard normal draw, or given."""

    def _table(self, _weight, freeze: bool, device, dtype) -> None:
        if _weight is None:
            empty = creation.empty((self.num_embeddings, self.embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (self.num_embeddings, self.embedding_dim):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Initialise the vectors again."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_EmbeddingBase):
    """A table of vectors, looked up by integers: ``output[i] = weight[input[i]]``, as for words.

    Args:
        num_embeddings: number of rows of the table.
        embedding_dim: size of each vector.
        padding_idx: a row that starts at zero and gets no gradient.
        max_norm: rows whose norm is larger are scaled down, in place, when they are looked up.
        norm_type: ``p`` of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it occurs in the batch.
        sparse: the gradient is a sparse tensor of the rows that were looked up, as for :class:`taeda.optim.SparseAdam`.
        _weight: the table; None: a new one.
        _freeze: whether the table is not trained.
        device: of the table.
        dtype: of the table.

    Shape:
        input: ``(*)``, int32 or int64, in ``[0, num_embeddings)``.
        output: ``(*, embedding_dim)``.
        weight: ``(num_embeddings, embedding_dim)``, drawn from the standard normal distribution.

    Raises:
        AssertionError: ``padding_idx`` is out of range.
        IndexError: in a call, an index is out of range.

    Examples:
        >>> words = nn.Embedding(10, 3)
        >>> words(taeda.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
        taeda.Size([2, 4, 3])
    """

    __constants__ = (
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _normal_index(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._table(_weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += _unless(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return text + (", sparse=True" if self.sparse is not False else "")

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Self:  # fmt: skip
        """An Embedding over a given table; without gradient if ``freeze``."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        return cls(
            rows, cols, _weight=embeddings, _freeze=freeze, padding_idx=padding_idx, max_norm=max_norm,
            norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_EmbeddingBase):
    """Sums, means or maxima of bags of embeddings, without the embeddings themselves in memory.

    Args:
        num_embeddings: number of rows of the table.
        embedding_dim: size of each vector.
        max_norm: rows whose norm is larger are scaled down, in place, when they are looked up.
        norm_type: ``p`` of that norm.
        scale_grad_by_freq: divide a row's gradient by how often it occurs in the batch; not for ``"max"``.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: the gradient is a sparse tensor of the rows that were looked up.
        _weight: the table; None: a new one.
        include_last_offset: ``offsets`` has one more element, the end of the last bag.
        padding_idx: a row that bags leave out.
        device: of the table.
        dtype: of the table.

    Shape:
        input: ``(B, n)``, bags of ``n``; or ``(M,)`` with ``offsets``. int32 or int64.
        offsets: ``(B,)``, where each bag begins.
        per_sample_weights: the shape of the input: factors, for ``"sum"``.
        output: ``(B, embedding_dim)``; an empty bag is zero.
        weight: ``(num_embeddings, embedding_dim)``.

    Raises:
        ValueError: in a call, the shapes do not fit.
        RuntimeError: in a call, an index is out of range.

    Examples:
        >>> bags = nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(taeda.tensor([1, 2, 4, 5, 4]), offsets=taeda.tensor([0, 2])).shape  # (1, 2) and (4, 5, 4)
        taeda.Size([2, 3])
    """

    __constants__ = (
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse",
        "include_last_offset", "padding_idx",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _normal_index(padding_idx, num_embeddings)
        self._table(_weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += _unless(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return f"{text}, mode={self.mode!r}" + _unless(self, padding_idx=None)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:  # fmt: skip
        """An EmbeddingBag over a given table; without gradient if ``freeze``."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, cols = embeddings.shape
        bag = cls(
            rows, cols, _weight=embeddings, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse, include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )  # fmt: skip
        bag.weight.requires_grad = not freeze
        return bag
