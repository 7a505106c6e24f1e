"""Sparse tensors in compressed form, by rows or by columns, of elements (CSR, CSC) or of blocks (BSR, BSC).

A :class:`CompressedTensor` keeps where each row (or column) begins, the other index of each entry, and the values. It
computes in coordinate form (:mod:`.sparse`). The two forms share the indices and the values, so a product with a dense
matrix costs only the expansion of the row pointers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor, wrapped_dim
from .._print import sparse_repr
from . import sparse_rules  # noqa: F401 (fills RULES)
from .creation import arange
from .exchange import tensor
from .indexing import index_put
from .joining import cat, stack
from .parts import OfValues, into_out, of_dense
from .registry import name_of, op_of
from .sparse import LAYOUTS, RULES, SparseTensor, by_values, entries_at, is_query, linear_places, make, values_at
from .sparse import to_sparse as to_coordinates
from .table import composite, expect_tensors, is_pointwise

#: Two flags for each layout: rows are compressed; it keeps blocks.
FORMS = dict(zip(LAYOUTS, [(True, False), (False, False), (True, True), (False, True)], strict=True))

#: Rules of ops that take a compressed first argument as it is, by the op's name. Other ops work on coordinates.
OWN_RULES: dict[str, Callable] = {}


class CompressedTensor(OfValues):
    """A sparse matrix, or a batch of them, whose indices are compressed along one dimension.

    ``_starts`` has one element more than that dimension has lines (rows or columns, of blocks if there are any); the
    entries of line ``i`` are ``_starts[..., i] : _starts[..., i + 1]``, and ``_others`` their indices in the other
    dimension. The dimensions of a batch come first in all parts. ``_v`` has the batch, the entries, the sizes of a
    block, and dense dimensions. :func:`taeda.sparse_csr_tensor` and ``to_sparse_csr()`` make one.

    Examples:
        >>> x = taeda.tensor([[0.0, 5.0], [0.0, 0.0], [7.0, 0.0]]).to_sparse_csr()
        >>> x.crow_indices(), x.col_indices(), x.values()
        (tensor([0, 1, 1, 2]), tensor([1, 0]), tensor([5., 7.]))
    """

    _without_memory = SparseTensor._without_memory
    _starts: Tensor
    _others: Tensor
    _by_rows: bool
    _block: tuple[int, ...]  #: height and width, () of elements
    _ordered: bool  #: whether each line's entries are in order, each place once

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        func = op_of(func)
        name = name_of(func)
        kwargs = kwargs or {}
        if kwargs.get("out") is not None:
            return into_out(cls, func, types, args, kwargs)
        if is_query(name):
            return of_dense(func, args, kwargs)
        first = args[0] if args else None
        if isinstance(first, CompressedTensor):
            if name in SparseTensor._conversions:
                return vars(CompressedTensor)[name](*args, **kwargs)
            made = _of_parts(func, name, args, kwargs)
            if made is not NotImplemented:
                return made
        result = SparseTensor.__torch_function__(func, types, _coordinates(args), _coordinates(kwargs))
        form = _first_compressed([*args, *kwargs.values()])
        if isinstance(result, SparseTensor) and form is not None and result.dim() == form.dim():
            result = compress(result, form.layout, form._block or None)
        in_place = name.endswith("_") and not name.endswith("__") and first is form
        return first._overwrite(result) if in_place else result  # type: ignore[union-attr]

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it is compressed by rows, and has no blocks."""
        return self._by_rows and not self._block

    @property
    def layout(self) -> Any:
        """``taeda.sparse_csr``, ``taeda.sparse_csc``, ``taeda.sparse_bsr`` or ``taeda.sparse_bsc``."""
        return next(layout for layout, form in FORMS.items() if form == (self._by_rows, bool(self._block)))

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        if self._dense is not None:
            return (g.to_dense(),)
        return (values_at(g, self.to_sparse_coo()._i).reshape(self._v.shape),)

    def _pointers(self, by_rows: bool, of_starts: bool, name: str) -> Tensor:
        if self._by_rows is not by_rows:
            lines = "row" if by_rows else "column"
            raise RuntimeError(f"{name} expected sparse {lines} compressed tensor layout but got {self.layout}")
        return self._starts if of_starts else self._others

    def crow_indices(self) -> Tensor:
        """The first entry of each row, and last the number of entries; of CSR and BSR only."""
        return self._pointers(True, True, "crow_indices")

    def col_indices(self) -> Tensor:
        """The column of each entry; of CSR and BSR only."""
        return self._pointers(True, False, "col_indices")

    def ccol_indices(self) -> Tensor:
        """The first entry of each column, and last the number of entries; of CSC and BSC only."""
        return self._pointers(False, True, "ccol_indices")

    def row_indices(self) -> Tensor:
        """The row of each entry; of CSC and BSC only."""
        return self._pointers(False, False, "row_indices")

    def values(self) -> Tensor:
        """The value of each entry."""
        return self._v

    def _nnz(self) -> int:
        """Number of entries, of each matrix in a batch."""
        return self._others.shape[-1]

    def sparse_dim(self) -> int:
        """2."""
        return 2

    def dense_dim(self) -> int:
        """Number of dense dimensions."""
        return self._v.dim() - self._starts.dim() - len(self._block)

    def _no_strides(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"Sparse {str(self.layout)[-3:].upper()} tensors do not have strides, nor is_contiguous")

    stride = is_contiguous = contiguous = _no_strides

    def to_sparse_coo(self) -> SparseTensor:
        """The same in coordinate form."""
        batch, n = self._starts.shape[:-1], self._nnz()
        count, lines = math.prod(batch), self._starts.shape[-1] - 1
        starts, there = self._starts.reshape(count, lines + 1).long(), self._starts.device
        line = arange(lines, device=there).repeat(count).repeat_interleave((starts[:, 1:] - starts[:, :-1]).flatten())
        other = self._others.reshape(count * n).long()
        pair = [line, other] if self._by_rows else [other, line]
        places, which = [], arange(count, device=there).repeat_interleave(n)
        for size in reversed(batch):
            places.insert(0, which % size)
            which = which // size
        values = self._v.reshape(count * n, *self._v.shape[len(batch) + 1 :])
        if self._block:
            height, width = self._block
            rows = pair[0][:, None, None] * height + arange(height, device=there)[:, None]
            columns = pair[1][:, None, None] * width + arange(width, device=there)
            pair = [x.expand(-1, height, width).flatten() for x in (rows, columns)]
            places = [x.repeat_interleave(height * width) for x in places]
            values = values.flatten(0, 2)
        return make(stack([*places, *pair]), values, self.shape, self._ordered and self.is_sparse_csr)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor; differentiable with respect to the values."""
        return self.to_sparse_coo().to_dense(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, **kwargs: Any) -> Any:
        """In another sparse layout; in coordinate form by default."""
        return self.to_sparse_coo() if layout in (None, _core.sparse_coo) else compress(self, layout, blocksize)

    def _become(self, new: CompressedTensor) -> CompressedTensor:
        if new.shape != self.shape or new.dtype != self.dtype:
            _core.set_data(self, new)
        self._starts, self._others, self._v, self._ordered = new._starts, new._others, new._v, new._ordered
        return self

    def _of(self, starts: Tensor, others: Tensor, values: Tensor, size: Sequence[int]) -> CompressedTensor:
        """A tensor of the same layout with other parts."""
        return compressed_of(starts, others, values, size, self._by_rows, self._block, self._ordered)

    def _with(self, values: Tensor) -> CompressedTensor:
        return self._of(self._starts, self._others, values, self.shape)

    @property
    def T(self) -> CompressedTensor:
        """Transposed: rows compressed become columns compressed."""
        return _transpose(self, 0, 1)

    @property
    def mT(self) -> CompressedTensor:
        """The last two dimensions swapped."""
        return _transpose(self, -2, -1)

    @property
    def H(self) -> CompressedTensor:
        """The conjugate transpose."""
        return self.T.conj()

    @property
    def mH(self) -> CompressedTensor:
        """The conjugate transpose of the last two dimensions."""
        return self.mT.conj()

    def __repr__(self, **kwargs: Any) -> str:
        first, second = ("crow_indices", "col_indices") if self._by_rows else ("ccol_indices", "row_indices")
        return sparse_repr(self, False, **{first: self._starts, second: self._others}, values=self._v)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        form = self._by_rows, self._block, self._ordered
        return compressed_of, (self._starts, self._others, self._v.detach(), tuple(self.shape), *form)


def _of_parts(func: Any, name: str, args: Sequence, kwargs: dict) -> Any:
    """The op applied to the parts of the first argument, without a change of layout."""
    if name in OWN_RULES:
        return OWN_RULES[name](*args, **kwargs)
    if is_pointwise(func) == "form":
        return args[0]._with(func(args[0]._v, *args[1:], **kwargs))
    return by_values(func, name, args, kwargs)


def _first_compressed(x: Any) -> Any:
    if isinstance(x, CompressedTensor):
        return x
    found = (_first_compressed(y) for y in x) if isinstance(x, (tuple, list)) else ()
    return next((y for y in found if y is not None), None)


def _coordinates(x: Any) -> Any:
    """``x`` with its compressed tensors in coordinate form."""
    if isinstance(x, CompressedTensor):
        return x.to_sparse_coo()
    if isinstance(x, dict):
        return {k: _coordinates(v) for k, v in x.items()}
    return type(x)(map(_coordinates, x)) if type(x) in (tuple, list) else x


def compressed_of(
    starts: Tensor, others: Tensor, values: Tensor, size: Sequence[int], by_rows: bool, block: Sequence[int] = (),
    ordered: bool = True,
) -> CompressedTensor:  # fmt: skip
    made: CompressedTensor = Tensor._make_subclass(CompressedTensor, values.new_zeros(()).expand(tuple(size)))
    made._starts, made._others, made._v = starts, others, values
    made._by_rows, made._block, made._ordered = by_rows, tuple(block), ordered
    return made


# ---- to compressed form ----------------------------------------------------------------------------------------------


def compress(input: Tensor, layout: Any, blocksize: Any = None, dense_dim: Any = None) -> CompressedTensor:
    """A matrix, or a batch of them, dense or sparse, in a compressed layout.

    Raises:
        RuntimeError: there are fewer than two dimensions to compress, the blocks do not fit, or the matrices of a batch
            have different numbers of entries.
    """
    name = f"to_{str(layout).rpartition('.')[2]}"
    expect_tensors(name, input=input)
    by_rows, blocked = FORMS[layout]
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    if isinstance(input, CompressedTensor):
        if layout is input.layout and (not blocked or blocksize is None or tuple(blocksize) == input._block):
            return input
        blocksize = input._block if blocked and blocksize is None and input._block else blocksize
        whole: Tensor = input.to_sparse_coo()
    else:
        whole = input
    if blocked and (blocksize is None or len(blocksize) != 2):
        raise RuntimeError(f"{name}: blocksize must be a tuple of two integers, got {blocksize}")
    block = tuple(int(n) for n in blocksize) if blocked else ()
    if not isinstance(whole, SparseTensor):
        n = whole.dim() - (dense_dim or 0)
        if not 2 <= n <= whole.dim():
            raise RuntimeError(
                f"{name}: expected two sparse dimensions or more, got sizes {tuple(whole.shape)} and {dense_dim or 0} "
                f"dense dimensions"
            )
        _expect_blocks(name, whole.shape[n - 2 : n], block)
        whole = entries_at(whole, _blocks_with_entries(whole, n, block)) if block else to_coordinates(whole, n)
    made = _compressed_entries(name, whole.coalesce(), by_rows, block)
    made._dense = whole._dense
    return made


def _expect_blocks(name: str, size: Sequence[int], block: tuple) -> None:
    """Raise where ``size`` is no multiple of the sizes of a block."""
    if any(b < 1 or n % b for n, b in zip(size, block, strict=False)):
        raise RuntimeError(f"{name}: tensor sparse size {tuple(size)} must be divisible by given blocksize {block}")


def _blocks_with_entries(input: Tensor, n: int, block: tuple) -> Tensor:
    """A mask of the elements of ``input``, with ``n`` sparse dimensions first, that are in a block with a non-zero."""
    height, width = block
    mask = input != 0
    mask = mask.flatten(n).any(-1) if n < input.dim() else mask
    if not mask.numel():
        return mask
    blocks = mask.unflatten(-1, (-1, width)).unflatten(-3, (-1, height))  # (..., rows, height, columns, width)
    return blocks.any(-1, keepdim=True).any(-3, keepdim=True).expand(blocks.shape).flatten(-4, -3).flatten(-2)


def _compressed_entries(name: str, coo: SparseTensor, by_rows: bool, block: tuple) -> CompressedTensor:
    """:func:`compress` of coalesced coordinates, the last two of which are rows and columns."""
    b = coo.sparse_dim() - 2
    if b < 0:
        raise RuntimeError(f"{name}: expected two sparse dimensions or more, got {coo.sparse_dim()}")
    batch, (height, width) = tuple(coo.shape[:b]), block or (1, 1)
    _expect_blocks(name, coo.shape[b : b + 2], block)
    place = [coo._i[b] // height, coo._i[b + 1] // width]
    sizes = [coo.shape[b] // height, coo.shape[b + 1] // width]
    (line, other), (lines, width_of_line) = (place, sizes) if by_rows else (place[::-1], sizes[::-1])
    keys = (linear_places(coo._i[:b], batch) * lines + line) * width_of_line + other
    if block:
        keys, which = keys.unique(return_inverse=True)
        values = coo._v.new_zeros((len(keys), height, width, *coo._v.shape[1:]))
        values = index_put(values, (which, coo._i[b] % height, coo._i[b + 1] % width), coo._v)
    else:
        order = None if by_rows else keys.argsort()
        keys, values = (keys, coo._v) if order is None else (keys[order], coo._v[order])
    count = math.prod(batch)
    in_line = keys // max(width_of_line, 1)
    counts = in_line.bincount(minlength=count * lines)[: count * lines].reshape(count, lines)
    entries = counts.sum(1)
    if count and bool((entries != entries[0]).any()):
        raise RuntimeError(f"{name}: Expect the same number of specified elements per batch.")
    n = int(entries[0]) if count else 0
    starts = cat([counts.new_zeros((count, 1)), counts.cumsum(1)], 1).reshape(*batch, lines + 1)
    others = (keys % max(width_of_line, 1)).reshape(*batch, n)
    return compressed_of(starts, others, values.reshape(*batch, n, *values.shape[1:]), coo.shape, by_rows, block)


sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = LAYOUTS


@composite()
def to_sparse_csr(input, dense_dim=None):
    """Matrices compressed by rows, without their elements that are 0; see :func:`sparse_csr_tensor`.

    Args:
        input: a tensor of at least two dimensions.
        dense_dim: how many of the last dimensions are dense. Default: none.
    Returns:
        A sparse tensor of the sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``input`` has fewer than two dimensions.
    Examples:
        >>> taeda.eye(2).to_sparse_csr().crow_indices()
        tensor([0, 1, 2])
    """
    return compress(input, sparse_csr, None, dense_dim)


@composite()
def to_sparse_csc(input, dense_dim=None):
    """Matrices compressed by columns, without their elements that are 0; see :func:`sparse_csc_tensor`.
    The rest as of :func:`Tensor.to_sparse_csr`.

    Returns:
        A sparse tensor of the sizes and the dtype of ``input``.

    Raises:
        RuntimeError: ``input`` has fewer than two dimensions.

    Examples:
        >>> taeda.eye(2).to_sparse_csc().ccol_indices()
        tensor([0, 1, 2])
    """
    return compress(input, sparse_csc, None, dense_dim)


@composite()
def to_sparse_bsr(input, blocksize, dense_dim=None):
    """Matrices compressed by rows of blocks, without blocks of zeros; see :func:`sparse_bsr_tensor`.

    Args:
        input: a tensor of at least two dimensions.
        blocksize: height and width of a block, or one number for both; they divide those of the matrices.
        dense_dim: how many of the last dimensions are dense. Default: none.
    Returns:
        A sparse tensor of the sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the blocks do not divide the matrices.
    Examples:
        >>> taeda.eye(4).to_sparse_bsr((2, 2)).values().shape
        taeda.Size([2, 2, 2])
    """
    return compress(input, sparse_bsr, blocksize, dense_dim)


@composite()
def to_sparse_bsc(input, blocksize, dense_dim=None):
    """Matrices compressed by columns of blocks, without blocks of zeros; see :func:`sparse_bsc_tensor`.
    Arguments as of :func:`Tensor.to_sparse_bsr`.

    Returns:
        A sparse tensor of the sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the blocks do not divide the matrices.
    Examples:
        >>> taeda.eye(4).to_sparse_bsc((2, 2)).values().shape
        taeda.Size([2, 2, 2])
    """
    return compress(input, sparse_bsc, blocksize, dense_dim)


for _function in (to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc):
    RULES[_function.name] = OWN_RULES[_function.name] = _function.__wrapped__


# ---- what is done with the parts -------------------------------------------------------------------------------------


def _rule(*names: str) -> Callable:
    def note(function: Callable) -> Callable:
        for name in names:
            OWN_RULES[name] = function
        return function

    return note


@_rule("transpose", "swapaxes", "swapdims")
def _transpose(input: CompressedTensor, dim0, dim1):
    a, b = sorted(wrapped_dim(d, input.dim(), "transpose") for d in (dim0, dim1))
    n, size = input._starts.dim() - 1, list(input.shape)
    size[a], size[b] = size[b], size[a]
    if a == b:
        return input
    if b < n:
        return input._of(*(x.transpose(a, b) for x in (input._starts, input._others, input._v)), size)
    if (a, b) != (n, n + 1):
        raise RuntimeError(
            f"transpose(): can only transpose the two sparse dimensions, or two of the batch, of a sparse compressed "
            f"tensor, got {dim0} and {dim1}"
        )
    if input.dense_dim():
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    values = input._v.transpose(-2, -1) if input._block else input._v
    return compressed_of(
        input._starts, input._others, values, size, not input._by_rows, input._block[::-1], input._ordered
    )


@_rule("t")
def _t(input: CompressedTensor):
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    return _transpose(input, 0, 1)


@_rule("adjoint")
def _adjoint(input: CompressedTensor):
    return input.mH


@_rule("select")
def _select(input: CompressedTensor, dim, index):
    n, d = input._starts.dim() - 1, wrapped_dim(dim, input.dim(), "select")
    size = [s for i, s in enumerate(input.shape) if i != d]
    if not -input.shape[d] <= index < input.shape[d]:
        raise IndexError(f"select(): index {index} out of range for size {list(input.shape)} at dimension {d}")
    if d < n:
        return input._of(*(x.select(d, index) for x in (input._starts, input._others, input._v)), size)
    if d >= n + 2:
        return input._of(input._starts, input._others, input._v.select(d - input.dim(), index), size)
    if n:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors; select a "
            "matrix first"
        )
    return input.to_sparse_coo().select(d, index)


@_rule("unbind")
def _unbind(input: CompressedTensor, dim=0):
    return tuple(_select(input, dim, i) for i in range(input.shape[dim]))


OWN_RULES["__iter__"] = lambda input: iter(_unbind(input))


@_rule("__getitem__", "index")
def _index(input: CompressedTensor, index):
    """Numbers select; a slice of all of a dimension leaves it."""
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (input.dim() - len(items) + 1)
    if not all(x == slice(None) or isinstance(x, int) for x in items) or len(items) > input.dim():
        return NotImplemented
    made, dim = input, 0
    for x in items:
        if isinstance(x, int):
            made = made.select(dim, x)
        else:
            dim += 1
    return made


@_rule("mm", "matmul")
def _mm(input: CompressedTensor, mat2, **kwargs):
    """The product of two is compressed by rows, unless both are by columns."""
    if not isinstance(mat2, CompressedTensor):
        return NotImplemented
    by_columns = not (input._by_rows or mat2._by_rows)
    return compress(RULES["mm"](*map(_coordinates, (input, mat2))), sparse_csc if by_columns else sparse_csr)


@_rule("resize_as_sparse_", "resize_as_")
def _resize_as_sparse_(input: CompressedTensor, the_template):
    if the_template.layout is not input.layout or the_template.dim() != input.dim():
        raise RuntimeError(
            f"resize_as_sparse_: expected a template of layout {input.layout} and {input.dim()} dimensions, got "
            f"{the_template.layout} and {the_template.dim()}"
        )
    values = input._v.detach().new_zeros(the_template._v.shape)
    kept = min(values.numel(), input._v.numel())  # as for dense tensors, elements stay in their order in memory
    values.view(-1)[:kept] = input._v.reshape(-1)[:kept]
    return input._become(
        input._of(the_template._starts.clone(), the_template._others.clone(), values, the_template.shape)
    )


@_rule("clone", "detach_copy")
def _clone(input: CompressedTensor, **kwargs):
    return input._of(input._starts.clone(), input._others.clone(), input._v.clone(), input.shape)


@_rule("copy_")
def _copy_(input: CompressedTensor, src, non_blocking=False):
    if not isinstance(src, CompressedTensor) or src.layout is not input.layout or src.shape != input.shape:
        raise RuntimeError(
            f"copy_(): expected a tensor of layout {input.layout} and sizes {tuple(input.shape)}, got "
            f"{getattr(src, 'layout', type(src).__name__)} and {tuple(getattr(src, 'shape', ()))}"
        )
    if src._nnz() != input._nnz():
        raise RuntimeError(f"copy_(): expected as many entries, {input._nnz()}, got {src._nnz()}")
    return input._become(_clone(src.to(input.dtype)))


@_rule("fill_")
def _fill_(input: CompressedTensor, value):
    return input._become(input._with(input._v.fill_(value)))


@_rule("zeros_like")
def _zeros_like(input: CompressedTensor, *, dtype=None, requires_grad=False, **kwargs):
    n = input._starts.dim() - 1
    values = input._v.detach().narrow(n, 0, 0).to(dtype or input.dtype).clone()
    made = input._of(input._starts.new_zeros(input._starts.shape), input._others.narrow(n, 0, 0), values, input.shape)
    return made.requires_grad_(requires_grad)


@_rule("empty_like")
def _empty_like(input: CompressedTensor, *, dtype=None, requires_grad=False, **kwargs):
    """The places of ``input``, with any values."""
    values = input._v.detach().new_empty(input._v.shape, dtype=dtype or input.dtype)
    made = input._of(input._starts.clone(), input._others.clone(), values, input.shape)
    return made.requires_grad_(requires_grad)


@_rule("zero_")
def _zero_(input: CompressedTensor):
    n = input._starts.dim() - 1
    starts = input._starts.new_zeros(input._starts.shape)
    return input._become(input._of(starts, input._others.narrow(n, 0, 0), input._v.narrow(n, 0, 0), input.shape))


# ---- of given parts --------------------------------------------------------------------------------------------------


def _compressed(
    name: str, starts: Any, others: Any, values: Any, size: Any, dtype: Any, device: Any, requires_grad: bool,
    layout: Any,
) -> CompressedTensor:  # fmt: skip
    """A CompressedTensor of parts that are checked here."""
    if device is not None:
        _core.require_device(device)
    by_rows, blocked = FORMS[layout]
    starts, others = (x if isinstance(x, Tensor) else tensor(x) for x in (starts, others))
    values = values if isinstance(values, Tensor) else tensor(values)
    values = values if dtype is None else values.to(dtype)
    n = starts.dim() - 1
    if n < 0 or others.dim() != n + 1 or values.dim() < n + 1 + 2 * blocked:
        raise RuntimeError(
            f"{name}: expected indices of one dimension after those of the batch, and values of {1 + 2 * blocked} or "
            f"more, got {starts.dim()}, {others.dim()} and {values.dim()} dimensions"
        )
    if not (starts.shape[:n] == others.shape[:n] == values.shape[:n]):
        raise RuntimeError(
            f"{name}: all batch dimensions of the indices and the values must be the same, got "
            f"{[tuple(x.shape[:n]) for x in (starts, others, values)]}"
        )
    block = tuple(values.shape[n + 1 : n + 3]) if blocked else ()
    lines, entries = starts.shape[n] - 1, others.shape[n]
    if size is None:
        width = int(others.max()) + 1 if others.numel() else 0
        pair = (lines, width) if by_rows else (width, lines)
        pair = tuple(a * b for a, b in zip(pair, block or (1, 1), strict=True))
        size = (*starts.shape[:n], *pair, *values.shape[n + 1 + len(block) :])
    size = tuple(int(s) for s in size)
    if size[:n] != tuple(starts.shape[:n]) or size[n + 2 :] != tuple(values.shape[n + 1 + len(block) :]):
        raise RuntimeError(f"{name}: the values have sizes {tuple(values.shape)}, which do not fit size {list(size)}")
    height, width = (a // b for a, b in zip(size[n : n + 2], block or (1, 1), strict=True))
    if block and any(a % b for a, b in zip(size[n : n + 2], block, strict=True)):
        raise RuntimeError(f"{name}: size {list(size)} must be divisible by the sizes of a block, {block}")
    length, width = (height, width) if by_rows else (width, height)
    if entries != values.shape[n]:
        raise RuntimeError(f"{name}: expected as many indices as values, got {entries} and {values.shape[n]}")
    if lines != length:
        raise RuntimeError(f"{name}: expected {length + 1} pointers for size {list(size)}, got {lines + 1}")
    values = values.detach().requires_grad_() if requires_grad else values
    if starts.is_meta:
        return compressed_of(starts, others, values, size, by_rows, block)
    steps = starts[..., 1:] - starts[..., :-1]
    if bool((starts[..., 0] != 0).any()) or bool((starts[..., -1] != entries).any()) or bool((steps < 0).any()):
        raise RuntimeError(f"{name}: expected pointers that rise from 0 to the number of values, {entries}")
    if others.numel() and (int(others.min()) < 0 or int(others.max()) >= width):
        raise RuntimeError(f"{name}: an index is out of range for size {list(size)}")
    return compressed_of(starts, others, values, size, by_rows, block, _is_ordered(starts, others))


def _is_ordered(starts: Tensor, others: Tensor) -> bool:
    """Whether the indices rise within each line."""
    count, entries = math.prod(starts.shape[:-1]), others.shape[-1]
    starts, others = starts.reshape(count, -1), others.reshape(count, entries)
    falls = others[:, 1:] <= others[:, :-1]
    begins = falls.new_zeros((count, entries + 1)).scatter(1, starts.long(), True)
    return not bool((falls & ~begins[:, 1:-1]).any()) if entries > 1 else True


@composite(method=False)
def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """Sparse matrices compressed by rows: the entries of row ``i`` are those from ``crow_indices[i]`` to before
    ``crow_indices[i + 1]``.

    Args:
        crow_indices: ``(*batch, rows + 1)``: where each row begins among the entries, and their number.
        col_indices: ``(*batch, entries)``: their columns.
        values: ``(*batch, entries, *dense)``.
        size: of the whole. Default: the smallest that fits.
        dtype: of the values. Default: their own.
        layout: ``taeda.sparse_csr``.
        check_invariants: accepted: indices are always checked.
    Returns:
        A sparse tensor of the sizes ``size``.
    Raises:
        RuntimeError: the parts do not fit together, or an index is out of range.
    Examples:
        >>> rows, columns = taeda.tensor([0, 1, 3]), taeda.tensor([2, 0, 1])
        >>> taeda.sparse_csr_tensor(rows, columns, taeda.tensor([5.0, 6.0, 7.0]), (2, 3)).to_dense()
        tensor([[0., 0., 5.],
                [6., 7., 0.]])
    """
    parts = crow_indices, col_indices, values, size
    return _compressed("sparse_csr_tensor", *parts, dtype, device, requires_grad, sparse_csr)


@composite(method=False)
def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """Sparse matrices compressed by columns: :func:`sparse_csr_tensor` with rows and columns in each other's place.
    The rest as of :func:`sparse_csr_tensor`.

    Args:
        ccol_indices: ``(*batch, columns + 1)``: where each column begins among the entries, and their number.
        row_indices: ``(*batch, entries)``: their rows.
        layout: ``taeda.sparse_csc``.

    Returns:
        A sparse tensor of the sizes ``size``.

    Raises:
        RuntimeError: the pointers do not rise from 0 to the number of values.

    Examples:
        >>> columns, rows = taeda.tensor([0, 1, 2]), taeda.tensor([1, 0])
        >>> taeda.sparse_csc_tensor(columns, rows, taeda.tensor([5.0, 6.0]), (2, 2)).to_dense()
        tensor([[0., 6.],
                [5., 0.]])
    """
    parts = ccol_indices, row_indices, values, size
    return _compressed("sparse_csc_tensor", *parts, dtype, device, requires_grad, sparse_csc)


@composite(method=False)
def sparse_bsr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """Sparse matrices of blocks, compressed by rows: as :func:`sparse_csr_tensor`, with indices that count blocks.
    The rest as of :func:`sparse_csr_tensor`.

    Args:
        crow_indices: ``(*batch, rows of blocks + 1)``: where each row of blocks begins, and their number.
        col_indices: ``(*batch, blocks)``: their columns.
        values: ``(*batch, blocks, height, width, *dense)``.
        layout: ``taeda.sparse_bsr``.

    Returns:
        A sparse tensor of the sizes ``size``.

    Examples:
        >>> block = taeda.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> taeda.sparse_bsr_tensor(taeda.tensor([0, 1]), taeda.tensor([1]), block, (2, 4)).to_dense()
        tensor([[0., 0., 1., 2.],
                [0., 0., 3., 4.]])
    """
    parts = crow_indices, col_indices, values, size
    return _compressed("sparse_bsr_tensor", *parts, dtype, device, requires_grad, sparse_bsr)


@composite(method=False)
def sparse_bsc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, layout=None,
):  # fmt: skip
    """Sparse matrices of blocks, compressed by columns: as :func:`sparse_csc_tensor`, with indices that count blocks.
    The rest as of :func:`sparse_csr_tensor`.

    Args:
        ccol_indices: ``(*batch, columns of blocks + 1)``: where each column of blocks begins, and their number.
        row_indices: ``(*batch, blocks)``: their rows.
        values: ``(*batch, blocks, height, width, *dense)``.
        layout: ``taeda.sparse_bsc``.

    Returns:
        A sparse tensor of the sizes ``size``.

    Examples:
        >>> block = taeda.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> taeda.sparse_bsc_tensor(taeda.tensor([0, 1]), taeda.tensor([1]), block, (4, 2)).to_dense()
        tensor([[0., 0.],
                [0., 0.],
                [1., 2.],
                [3., 4.]])
    """
    parts = ccol_indices, row_indices, values, size
    return _compressed("sparse_bsc_tensor", *parts, dtype, device, requires_grad, sparse_bsc)


#: The function that makes a tensor of each layout from its parts.
MAKERS = dict(zip(LAYOUTS, (sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor), strict=True))


@composite(method=False)
def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, layout: Any = None, **kwargs):
    """Sparse matrices in one of the compressed layouts: :func:`sparse_csr_tensor`, :func:`sparse_csc_tensor`,
    :func:`sparse_bsr_tensor` or :func:`sparse_bsc_tensor`.

    Args:
        compressed_indices: where each row (or column) begins among the entries, and their number.
        plain_indices: the columns (or rows) of the entries.
        values: the entries.
        size: of the whole. Default: the smallest that fits.
        layout: which one, such as ``taeda.sparse_csr``.
        kwargs: as of these functions.
    Returns:
        A sparse tensor of the sizes ``size``. The dtype is that of ``values``.
    Raises:
        RuntimeError: the parts do not fit together, or ``layout`` is another.
    Examples:
        >>> rows, columns, values = taeda.tensor([0, 1, 2]), taeda.tensor([1, 0]), taeda.tensor([5.0, 6.0])
        >>> taeda.sparse_compressed_tensor(rows, columns, values, (2, 2), layout=taeda.sparse_csr).to_dense()
        tensor([[0., 5.],
                [6., 0.]])
    """
    if layout not in MAKERS:
        raise RuntimeError(f"sparse_compressed_tensor: expected one of the layouts {list(MAKERS)}, got {layout}")
    return MAKERS[layout](compressed_indices, plain_indices, values, size, **kwargs)


@composite(method=False)
def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """The first entry of each of ``size`` rows, where ``input`` has the entries' rows in order; last their number."""
    counts = input.bincount(minlength=size)
    starts = cat((counts.new_zeros(1), counts.cumsum(0)))
    return starts.to(_core.int32) if out_int32 else starts


@composite(method=False)
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The row (first) and column of each entry of a matrix compressed by rows; of its transpose if so asked."""
    steps = (crow_indices[1:] - crow_indices[:-1]).long()
    rows = arange(len(steps), dtype=_core.int64, device=steps.device).repeat_interleave(steps)
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return stack(tuple(x.to(_core.int32 if out_int32 else _core.int64) for x in pair))
