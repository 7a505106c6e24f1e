"""The form of sparse tensors: views, pieces, sums over dimensions and joins of tensors in coordinate form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import Tensor, int64, wrapped_dim
from .creation import arange
from .joining import cat
from .sorting import searchsorted
from .sparse import RULES, SparseTensor, make, to_sparse
from .table import composite, expect_tensors
from .views import movedim


def rule(*names: str) -> Callable:
    """Decorator: the function implements the named ops for sparse tensors."""

    def note(function: Callable) -> Callable:
        for name in names:
            RULES[name] = function
        return function

    return note


def expanded(input: SparseTensor, size: Sequence[int]) -> SparseTensor:
    """``input`` repeated along dimensions of size 1, and along new ones in front."""
    for _ in range(len(size) - input.dim()):
        input = _unsqueeze(input, 0)
    n = input.sparse_dim()
    for d in [d for d in range(n) if input.shape[d] != size[d]]:
        number, entries = size[d], input._nnz()
        indices = input._i.repeat(1, number)
        indices[d] = arange(number, device=indices.device).repeat_interleave(entries)
        values = input._v.repeat(number, *(1,) * input.dense_dim())
        input = make(indices, values, (*input.shape[:d], number, *input.shape[d + 1 :]))
    return make(input._i, input._v.expand(-1, *size[n:]), size, input._coalesced)


@rule("t")
def _t(input: SparseTensor):
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {input.dim()}D")
    return input if input.dim() < 2 else _transpose(input, 0, 1)


@rule("transpose", "swapaxes", "swapdims")
def _transpose(input: SparseTensor, dim0, dim1):
    a, b = (wrapped_dim(d, input.dim(), "transpose") for d in (dim0, dim1))
    order = list(range(input.dim()))
    order[a], order[b] = order[b], order[a]
    return input if a == b else _permute(input, order)


@rule("adjoint")
def _adjoint(input: SparseTensor):
    return input.mH


def _in_place(name: str) -> Callable:
    """The rule of ``name`` with its result in ``input``."""

    def in_place(input: SparseTensor, *args: Any) -> SparseTensor:
        return input._overwrite(RULES[name](input, *args))

    return in_place


for _name in ("t", "transpose", "swapaxes", "swapdims"):
    RULES[_name + "_"] = _in_place(_name)
RULES["movedim"] = movedim.__wrapped__


@rule("permute")
def _permute(input: SparseTensor, *dims):
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    n, order = input.sparse_dim(), [wrapped_dim(d, input.dim(), "permute") for d in dims]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute(): expected every dimension once, got {list(dims)}")
    if any((d < n) != (i < n) for i, d in enumerate(order)):
        raise RuntimeError(
            f"permute(sparse): transpositions between sparse and dense dimensions are not allowed. Got order {order} "
            f"of {n} sparse dimensions and {input.dense_dim()} dense ones; convert with to_dense() first"
        )
    if order == sorted(order):
        return input
    values = input._v.permute(0, *(d - n + 1 for d in order[n:]))
    kept = input._coalesced and order[:n] == list(range(n))
    return make(input._i[order[:n]], values, [input.shape[d] for d in order], kept)


def _of_entries(input: SparseTensor, kept: Tensor, size: Sequence[int], indices: Tensor | None = None) -> SparseTensor:
    """The entries with the numbers ``kept``, in the order in which they are."""
    return make((input._i if indices is None else indices)[:, kept], input._v[kept], size, input._coalesced)


@rule("select")
def _select(input: SparseTensor, dim, index):
    d, n = wrapped_dim(dim, input.dim(), "select"), input.sparse_dim()
    index = int(index)
    if not -input.shape[d] <= index < input.shape[d]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    index %= input.shape[d]
    size = [s for i, s in enumerate(input.shape) if i != d]
    if d >= n:
        return make(input._i, input._v.select(d - n + 1, index), size, input._coalesced)
    kept = (input._i[d] == index).nonzero().flatten()
    if n == 1:
        return input._v[kept].sum(0, dtype=input.dtype)
    return _of_entries(input, kept, size, input._i[[i for i in range(n) if i != d]])


@rule("slice")
def _slice(input: SparseTensor, dim=0, start=None, end=None, step=1):
    d, n = wrapped_dim(dim, input.dim(), "slice"), input.sparse_dim()
    if step < 1:
        raise ValueError(f"slice step must be positive, got {step}")
    first, stop, step = slice(start, end, step).indices(input.shape[d])
    length = max(0, (stop - first + step - 1) // step)
    size = [length if i == d else s for i, s in enumerate(input.shape)]
    if d >= n:
        values = input._v.movedim(d - n + 1, 0)[first:stop:step].movedim(0, d - n + 1)
        return make(input._i, values, size, input._coalesced)
    place = input._i[d] - first
    kept = ((place >= 0) & (input._i[d] < stop) & (place % step == 0)).nonzero().flatten()
    indices = input._i.clone()
    indices[d] = place // step
    return _of_entries(input, kept, size, indices)


@rule("narrow", "narrow_copy")
def _narrow(input: SparseTensor, dim, start, length):
    size = input.shape[wrapped_dim(dim, input.dim(), "narrow")]
    first = int(start) + (size if start < 0 else 0)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not 0 <= first <= size:
        raise IndexError(f"narrow(): start {start} is out of range for a dimension of size {size}")
    if first + length > size:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    return _slice(input, dim, first, first + length)


@rule("__getitem__", "index")
def _index(input: SparseTensor, index):
    """Numbers, slices, None and one-dimensional indices, one dimension after the other."""
    items = list(index) if isinstance(index, tuple) else [index]
    at = next((i for i, x in enumerate(items) if x is Ellipsis), len(items))
    taken = sum(x is not None and x is not Ellipsis for x in items)
    if taken > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()}")
    items[at : at + 1] = [slice(None)] * (input.dim() - taken)
    made: Any = input
    dim, tensors = 0, 0
    for x in items:
        if x is None:
            made = _unsqueeze(made, dim)
        elif isinstance(x, slice):
            made = made if x == slice(None) else _slice(made, dim, x.start, x.stop, 1 if x.step is None else x.step)
        elif not isinstance(x, (bool, Tensor)) and hasattr(x, "__index__"):
            made = made.select(dim, int(x))
            continue
        elif isinstance(x, Tensor) and x.dim() == 1 and not tensors:
            tensors += 1
            made = made.index_select(dim, x.nonzero().flatten() if str(x.dtype).endswith("bool") else x)
        else:
            return to_sparse(input.to_dense()[index])
        dim += 1
    return made


@rule("index_select")
def _index_select(input: SparseTensor, dim, index):
    d, n = wrapped_dim(dim, input.dim(), "index_select"), input.sparse_dim()
    wanted = index.reshape(-1).long()
    size = [len(wanted) if i == d else s for i, s in enumerate(input.shape)]
    if wanted.numel() and not -input.shape[d] <= int(wanted.min()) <= int(wanted.max()) < input.shape[d]:
        raise IndexError(f"index_select(): index is out of range for a dimension of size {input.shape[d]}")
    wanted = wanted.where(wanted >= 0, wanted + input.shape[d])
    if d >= n:
        return make(input._i, input._v.index_select(d - n + 1, wanted), size, input._coalesced)
    order = input._i[d].argsort(stable=True)
    lines = input._i[d][order]
    first, last = searchsorted(lines, wanted), searchsorted(lines, wanted, right=True)
    counts = last - first
    which = arange(len(wanted), device=counts.device).repeat_interleave(counts)
    entry = order[arange(len(which), device=which.device) - (counts.cumsum(0) - counts - first)[which]]
    indices = input._i[:, entry]
    indices[d] = which
    return make(indices, input._v[entry], size)


@rule("unsqueeze")
def _unsqueeze(input: SparseTensor, dim):
    n = input.sparse_dim()
    dim = dim + input.dim() + 1 if dim < 0 else dim
    if not 0 <= dim <= input.dim():
        raise IndexError(f"unsqueeze: expected a dimension of 0 to {input.dim()}, got {dim}")
    size = (*input.shape[:dim], 1, *input.shape[dim:])
    if dim > n:
        return make(input._i, input._v.unsqueeze(dim - n + 1), size, input._coalesced)
    indices = cat([input._i[:dim], input._i.new_zeros((1, input._nnz())), input._i[dim:]])
    return make(indices, input._v, size, input._coalesced)


@rule("squeeze")
def _squeeze(input: SparseTensor, dim=None):
    given = range(input.dim()) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = sorted({wrapped_dim(d, input.dim(), "squeeze") for d in given}, reverse=True)
    made: Any = input
    for d in dims:
        made = made.select(d, 0) if made.shape[d] == 1 else made
    return made


@rule("reshape")
def _reshape(input: SparseTensor, *shape):
    made = input.to_dense().reshape(*shape)
    return to_sparse(made) if made.dim() else made


@rule("unbind")
def _unbind(input: SparseTensor, dim=0):
    return tuple(input.select(dim, i) for i in range(input.shape[dim]))


RULES["__iter__"] = lambda input: iter(_unbind(input))


@rule("sum")
def _sum(input: SparseTensor, dim=None, keepdim=False, *, dtype=None):
    """The sum of all elements, or along ``dim``, where it is sparse as long as a sparse dimension is left."""
    if dim is None or dim == ():
        return input._v.sum(dtype=dtype)
    given = [wrapped_dim(d, input.dim(), "sum") for d in ((dim,) if isinstance(dim, int) else dim)]
    if len(set(given)) < len(given):
        raise RuntimeError(f"sum: a dimension appears twice in {list(dim)}")
    n, dims = input.sparse_dim(), set(given)
    kept = [d for d in range(n) if d not in dims]
    dtype = dtype or (input.dtype if input.is_floating_point() or input.is_complex() else int64)
    values = input._v.to(dtype)
    inner = [d - n + 1 for d in dims if d >= n]
    values = values.sum(inner, dtype=dtype) if inner else values
    made: Any = values.sum(0, dtype=dtype)
    if kept:
        size = [s for d, s in enumerate(input.shape) if d not in dims]
        made = make(input._i[kept], values, size, len(kept) == n and input._coalesced).coalesce()
    for d in sorted(dims) if keepdim else ():
        made = made.unsqueeze(d)
    return made


@rule("cat", "concat", "concatenate")
def _cat(tensors, dim=0):
    """Entries side by side, moved along ``dim``; along a dense dimension, each with zeros for the other tensors."""
    tensors = [x.to_sparse_coo() for x in tensors]
    d, n = wrapped_dim(dim, tensors[0].dim(), "cat"), tensors[0].sparse_dim()
    size, indices, values, start = list(tensors[0].shape), [], [], 0
    size[d] = sum(x.shape[d] for x in tensors)
    for x in tensors:
        if x.sparse_dim() != n or [s for i, s in enumerate(x.shape) if i != d] != [
            s for i, s in enumerate(size) if i != d
        ]:
            raise RuntimeError(
                f"cat(): expected sizes equal but for dimension {dim}, and as many sparse dimensions, got "
                f"{[tuple(t.shape) for t in tensors]}"
            )
        moved, value = x._i, x._v
        if d < n:
            moved = moved.clone()
            moved[d] += start
        else:
            value = x._v.new_zeros((x._nnz(), *size[n:])).slice_scatter(value, d - n + 1, start, start + x.shape[d])
        indices.append(moved)
        values.append(value)
        start += x.shape[d]
    return make(cat(indices, 1), cat(values), size, False)


@rule("stack")
def _stack(tensors, dim=0):
    return _cat([_unsqueeze(x.to_sparse_coo(), dim) for x in tensors], dim)


@composite()
def resize_as_sparse_(input, the_template):
    """Gives the sparse tensor ``input`` the sizes of another, in place.

    Args:
        input: a sparse tensor.
        the_template: a sparse tensor of the same layout.
    Returns:
        ``input``.
    Examples:
        >>> x, y = taeda.eye(2).to_sparse(), taeda.eye(3).to_sparse()
        >>> taeda.resize_as_sparse_(x, y).shape
        taeda.Size([3, 3])
    """
    expect_tensors("resize_as_sparse_", input=input, the_template=the_template)
    if not isinstance(input, SparseTensor) or not isinstance(the_template, SparseTensor):
        raise RuntimeError(
            f"resize_as_sparse_: expected two sparse tensors of one layout, got {input.layout} and "
            f"{the_template.layout}"
        )
    return _sparse_resize_(input, the_template.shape, the_template.sparse_dim(), the_template.dense_dim())


@rule("sparse_resize_")
def _sparse_resize_(input: SparseTensor, size, sparse_dim, dense_dim):
    """Other sizes; a tensor with entries may not lose a place of one."""
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
        )
    n, grows = input.sparse_dim(), len(size) == input.dim()
    if input._nnz() and (sparse_dim != n or dense_dim != input.dense_dim()):
        raise RuntimeError(
            "changing the number of sparse or dense dimensions on a non-empty sparse tensor is not supported."
        )
    if input._nnz() and grows and any(a < b for a, b in zip(size, input.shape, strict=True)):
        raise RuntimeError("shrinking the size of dimensions on a non-empty sparse tensor is not supported.")
    return _resized(input, size, sparse_dim, input._nnz())


@rule("sparse_resize_and_clear_")
def _sparse_resize_and_clear_(input: SparseTensor, size, sparse_dim, dense_dim):
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
        )
    return _resized(input, size, sparse_dim, 0)


RULES["resize_as_sparse_"] = RULES["resize_as_"] = resize_as_sparse_.__wrapped__


def _resized(input: SparseTensor, size: Sequence[int], sparse_dim: int, entries: int) -> SparseTensor:
    """``input`` itself with other sizes and its first ``entries``, whose dense parts get zeros."""
    values = input._v.detach().new_zeros((entries, *size[sparse_dim:]))
    values[(slice(None), *map(slice, input._v.shape[1:]))[: values.dim()]] = input._v[:entries] if entries else 0
    indices = input._i[:, :entries] if entries else input._i.new_zeros((sparse_dim, 0))
    return input._become(make(indices, values, size, input._coalesced or not entries))
