"""Sparse matrices in compressed form, by rows (CSR) or by columns (CSC).

A :class:`CompressedTensor` keeps where each row (or column) begins, the other index of each entry, and the values. What
it computes, it computes in coordinate form (:mod:`.sparse`): the two forms share the indices and the values, so a
product with a dense matrix costs one expansion of the row pointers more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor, wrapped_dim
from .._print import sparse_repr
from . import sparse_rules  # noqa: F401 (fills RULES)
from .creation import arange
from .exchange import tensor
from .joining import cat, stack
from .parts import OfValues, into_out
from .sparse import RULES, SparseTensor, by_values, is_shell, make, of_dense, sparse_csc, sparse_csr, values_at
from .sparse import to_sparse as to_coordinates
from .table import composite, expect_tensors


class CompressedTensor(OfValues):
    """A sparse matrix whose indices are compressed along one dimension.

    ``_starts`` has one element more than that dimension is long; the entries of row (column) ``i`` are
    ``_starts[i] : _starts[i + 1]``, and ``_others`` their indices in the other dimension.
    """

    _without_memory = SparseTensor._without_memory
    _starts: Tensor
    _others: Tensor
    _by_rows: bool

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        name = getattr(func, "name", None) or getattr(func, "__name__", str(func))
        kwargs = kwargs or {}
        if kwargs.get("out") is not None:
            return into_out(cls, func, types, args, kwargs)
        if is_shell(name):
            return of_dense(func, args, kwargs)
        first = args[0] if args else None
        if isinstance(first, CompressedTensor):
            if name == "t" and len(args) == 1:
                return first._transposed()
            if name in ("transpose", "swapaxes"):
                return first._swapped(*args[1:], **kwargs)
            if name in ("mul", "div", "true_divide") and not (isinstance(args[1], Tensor) and args[1].dim()):
                return first._with(getattr(first._v, name)(args[1], **kwargs))
            made = by_values(func, name, args, kwargs)
            if made is not NotImplemented:
                return made
        result = SparseTensor.__torch_function__(func, types, _coordinates(args), _coordinates(kwargs))
        return compress(result, _by_rows([*args, *kwargs.values()])) if isinstance(result, SparseTensor) else result

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it is compressed by rows."""
        return self._by_rows

    @property
    def layout(self) -> Any:
        """``taeda.sparse_csr`` or ``taeda.sparse_csc``."""
        return sparse_csr if self._by_rows else sparse_csc

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        return (values_at(g, self.to_sparse_coo()._i),) if self._dense is None else (g.to_dense(),)

    def _pointers(self, by_rows: bool, of_starts: bool, name: str) -> Tensor:
        if self._by_rows is not by_rows:
            raise RuntimeError(f"{name}: expected a tensor of layout {'CSR' if by_rows else 'CSC'}, got {self.layout}")
        return self._starts if of_starts else self._others

    def crow_indices(self) -> Tensor:
        """Where each row begins among the entries, and their number; of CSR only."""
        return self._pointers(True, True, "crow_indices")

    def col_indices(self) -> Tensor:
        """The column of each entry; of CSR only."""
        return self._pointers(True, False, "col_indices")

    def ccol_indices(self) -> Tensor:
        """Where each column begins among the entries, and their number; of CSC only."""
        return self._pointers(False, True, "ccol_indices")

    def row_indices(self) -> Tensor:
        """The row of each entry; of CSC only."""
        return self._pointers(False, False, "row_indices")

    def values(self) -> Tensor:
        """The value of each entry."""
        return self._v

    def _nnz(self) -> int:
        """Number of entries."""
        return self._v.shape[0]

    def sparse_dim(self) -> int:
        """2."""
        return 2

    def dense_dim(self) -> int:
        """0."""
        return 0

    def to_sparse_coo(self) -> SparseTensor:
        """The same in coordinate form."""
        lines = _expanded(self._starts)
        pair = (lines, self._others.long()) if self._by_rows else (self._others.long(), lines)
        return make(stack(pair), self._v, self.shape, self._by_rows)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense matrix; differentiable with respect to the values."""
        return self.to_sparse_coo().to_dense(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, **kwargs: Any) -> Any:
        """In another sparse layout; in coordinate form by default."""
        if layout in (sparse_csr, sparse_csc):
            return compress(self, layout is sparse_csr)
        return self.to_sparse_coo()

    def _become(self, new: CompressedTensor) -> CompressedTensor:
        self._starts, self._others, self._v = new._starts, new._others, new._v
        return self

    def _with(self, values: Tensor) -> CompressedTensor:
        return _make(self._starts, self._others, values, self.shape, self._by_rows)

    def _transposed(self) -> CompressedTensor:
        return _make(self._starts, self._others, self._v, self.shape[::-1], not self._by_rows)

    def _swapped(self, dim0: int, dim1: int) -> CompressedTensor:
        return self if wrapped_dim(dim0, 2, "transpose") == wrapped_dim(dim1, 2, "transpose") else self._transposed()

    @property
    def T(self) -> CompressedTensor:
        """Transposed: rows compressed become columns compressed."""
        return self._transposed()

    mT = T

    @property
    def H(self) -> CompressedTensor:
        """The conjugate transpose."""
        return self._transposed().conj()

    mH = H

    @property
    def data(self) -> CompressedTensor:
        """The same outside the graph."""
        return self._detached()

    def __repr__(self, **kwargs: Any) -> str:
        first, second = ("crow_indices", "col_indices") if self._by_rows else ("ccol_indices", "row_indices")
        return sparse_repr(self, False, **{first: self._starts, second: self._others}, values=self._v)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _make, (self._starts, self._others, self._v.detach(), tuple(self.shape), self._by_rows)

    def __deepcopy__(self, memo: dict) -> CompressedTensor:
        return _make(self._starts.clone(), self._others.clone(), self._v.clone(), self.shape, self._by_rows)


def _by_rows(x: Any) -> Any:
    """Whether the first compressed tensor in ``x`` is compressed by rows; None if there is none."""
    if isinstance(x, CompressedTensor):
        return x._by_rows
    found = (_by_rows(y) for y in x) if isinstance(x, (tuple, list)) else ()
    return next((by_rows for by_rows in found if by_rows is not None), None)


def _coordinates(x: Any) -> Any:
    """``x`` with what is compressed in it in coordinate form."""
    if isinstance(x, CompressedTensor):
        return x.to_sparse_coo()
    if isinstance(x, dict):
        return {k: _coordinates(v) for k, v in x.items()}
    return type(x)(map(_coordinates, x)) if type(x) in (tuple, list) else x


def _make(starts: Tensor, others: Tensor, values: Tensor, size: Sequence[int], by_rows: bool) -> CompressedTensor:
    made: CompressedTensor = Tensor._make_subclass(CompressedTensor, values.new_zeros(()).expand(tuple(size)))
    made._starts, made._others, made._v, made._by_rows = starts, others, values, by_rows
    return made


def _expanded(starts: Tensor) -> Tensor:
    """The row of each entry, from where the rows begin."""
    return arange(len(starts) - 1, dtype=_core.int64).repeat_interleave((starts[1:] - starts[:-1]).long())


def compress(input: Tensor, by_rows: bool) -> CompressedTensor:
    """A matrix, dense or sparse, in compressed form."""
    expect_tensors("to_sparse_csr" if by_rows else "to_sparse_csc", input=input)
    if isinstance(input, CompressedTensor):
        if input._by_rows is by_rows:
            return input
        input = input.to_sparse_coo()
    if input.dim() != 2:
        raise NotImplementedError(
            f"to_sparse_{'csr' if by_rows else 'csc'}(): expected a matrix, got sizes {tuple(input.shape)}; batches "
            "are not compressed here: compress each matrix, or use to_sparse()"
        )
    coo = (input if isinstance(input, SparseTensor) else to_coordinates(input)).coalesce()
    rows, columns = coo._i.unbind(0)
    values = coo._v
    lines, others = rows, columns
    if not by_rows:
        order = columns.argsort(stable=True)
        lines, others, values = columns[order], rows[order], values[order]
    starts = _convert_indices_from_coo_to_csr(lines, input.shape[0 if by_rows else 1])
    made = _make(starts, others, values, input.shape, by_rows)
    made._dense = coo._dense
    return made


def _compressed(
    name: str, starts: Any, others: Any, values: Any, size: Any, dtype: Any, device: Any, requires_grad: bool,
    by_rows: bool,
) -> CompressedTensor:  # fmt: skip
    """A CompressedTensor of parts that are checked here."""
    if device is not None:
        _core.require_device(device)
    starts, others = (x if isinstance(x, Tensor) else tensor(x) for x in (starts, others))
    values = values if isinstance(values, Tensor) else tensor(values)
    values = values if dtype is None else values.to(dtype)
    if starts.dim() != 1 or others.dim() != 1 or values.dim() != 1:
        raise NotImplementedError(
            f"{name}: expected indices and values of one dimension: batches and blocks are not here"
        )
    lines = len(starts) - 1
    if size is None:
        width = int(others.max()) + 1 if others.numel() else 0
        size = (lines, width) if by_rows else (width, lines)
    size = tuple(int(n) for n in size)
    length, width = size if by_rows else size[::-1]
    if len(others) != len(values):
        raise RuntimeError(f"{name}: expected as many indices as values, got {len(others)} and {len(values)}")
    if lines != length:
        raise RuntimeError(f"{name}: expected {length + 1} pointers for size {list(size)}, got {lines + 1}")
    steps = starts[1:] - starts[:-1]
    if int(starts[0]) != 0 or int(starts[-1]) != len(values) or (lines and int(steps.min()) < 0):
        raise RuntimeError(f"{name}: expected pointers that rise from 0 to the number of values, {len(values)}")
    if len(others) and (int(others.min()) < 0 or int(others.max()) >= width):
        raise RuntimeError(f"{name}: an index is out of range for size {list(size)}")
    values = values.detach().requires_grad_() if requires_grad else values
    return _make(starts, others, values, size, by_rows)


@composite(method=False)
def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """A sparse matrix compressed by rows.

    Args:
        crow_indices: ``(rows + 1,)``: where each row begins among the entries, and their number.
        col_indices: ``(entries,)``: their columns.
        values: ``(entries,)``.
        size: of the matrix; by default the smallest that fits.
        dtype: of the values.
        device, pin_memory, layout: as everywhere.
        requires_grad: whether operations on the values are recorded.
        check_invariants: accepted for compatibility: indices are always checked.
    Raises:
        RuntimeError: the parts do not fit together, or an index is out of range.
    """
    return _compressed(
        "sparse_csr_tensor", crow_indices, col_indices, values, size, dtype, device, requires_grad, by_rows=True
    )


@composite(method=False)
def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """A sparse matrix compressed by columns: :func:`sparse_csr_tensor` with rows and columns in each other's place."""
    return _compressed(
        "sparse_csc_tensor", ccol_indices, row_indices, values, size, dtype, device, requires_grad, by_rows=False
    )


@composite(method=False)
def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, layout=None, **kwargs):
    """:func:`sparse_csr_tensor` or :func:`sparse_csc_tensor`, as ``layout`` says."""
    if layout not in (sparse_csr, sparse_csc):
        raise NotImplementedError(f"sparse_compressed_tensor: expected layout sparse_csr or sparse_csc, got {layout}")
    make_it = sparse_csr_tensor if layout is sparse_csr else sparse_csc_tensor
    return make_it(compressed_indices, plain_indices, values, size, **kwargs)


@composite()
def to_sparse_csr(input, dense_dim=None):
    """A matrix compressed by rows, without its elements that are 0."""
    return compress(input, True)


@composite()
def to_sparse_csc(input, dense_dim=None):
    """A matrix compressed by columns, without its elements that are 0."""
    return compress(input, False)


def _form(by_rows: bool) -> Callable:
    return lambda input, dense_dim=None: compress(input, by_rows)


RULES["to_sparse_csr"], RULES["to_sparse_csc"] = _form(True), _form(False)


@composite(method=False)
def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """Where each of ``size`` rows begins among entries whose rows, in order, are ``input``; and their number."""
    counts = input.bincount(minlength=size)
    starts = cat((counts.new_zeros(1), counts.cumsum(0)))
    return starts.to(_core.int32) if out_int32 else starts


@composite(method=False)
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The row (first) and column of each entry of a matrix compressed by rows; of its transpose if so asked."""
    rows = _expanded(crow_indices)
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return stack(tuple(x.to(_core.int32 if out_int32 else _core.int64) for x in pair))
