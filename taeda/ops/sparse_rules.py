"""What ops do with sparse tensors: the table :data:`taeda.ops.sparse.RULES`, by the op's name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._core import Tensor, wrapped_dim
from .indexing import index_put
from .joining import cat, stack
from .linalg import pca_lowrank, svd_lowrank
from .scatter import index_add
from .shape import repeat_interleave
from .sorting import searchsorted
from .sparse import RULES, SparseTensor, _dense, legacy, make, sparse_mask, to_sparse
from .table import expect_tensors


def _is_sparse(x: Any) -> bool:
    return isinstance(x, SparseTensor)


def _rule(*names: str) -> Callable:
    def note(function: Callable) -> Callable:
        for name in names:
            RULES[name] = function
        return function

    return note


RULES["sparse_mask"] = sparse_mask.__wrapped__
RULES["svd_lowrank"], RULES["pca_lowrank"] = svd_lowrank.__wrapped__, pca_lowrank.__wrapped__
RULES["new"] = lambda self, *args, **kwargs: legacy(*args, dtype=self.dtype, **kwargs)


@_rule("add")
def _add(input, other, *, alpha=1, out=None):
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise RuntimeError(
            "add(): of a sparse tensor and a number: every element would be kept; call .to_dense() first"
        )
    if not _is_sparse(other):  # with a dense one the sum is dense
        other = other if alpha == 1 else other * alpha
        return index_put(other.expand(input.shape), tuple(input._i.unbind(0)), input._v.to(other.dtype), True)
    if not _is_sparse(input):
        return index_put(input, tuple(other._i.unbind(0)), other._v * alpha, True)
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: Expected 'self' and 'other' to have same sizes, but got {list(input.shape)} and {list(other.shape)}"
        )
    values = other._v if alpha == 1 else other._v * alpha
    if input.sparse_dim() != other.sparse_dim():
        raise RuntimeError("add: expected 'self' and 'other' to have same number of sparse dimensions")
    both = make(cat([input._i, other._i], 1), cat([input._v, values]), input.shape)
    return both.coalesce() if input._coalesced and other._coalesced else both


def _add_into(dense: Tensor, sparse: SparseTensor, alpha: Any) -> Tensor:
    """``dense += alpha * sparse``, entry by entry."""
    values = sparse._v if alpha == 1 else sparse._v * alpha
    return dense.index_put_(tuple(sparse._i.unbind(0)), values.to(dense.dtype), True)


@_rule("add_", "__iadd__")
def _add_(input, other, *, alpha=1):
    if _is_sparse(input):
        if not _is_sparse(other):
            raise RuntimeError("add_(): of a dense tensor to a sparse one, whose sum is dense; use add()")
        return input._become(_add(input, other, alpha=alpha))
    return _add_into(input, other, alpha)


RULES["sub"] = lambda input, other, *, alpha=1: _add(input, other, alpha=-alpha)
RULES["rsub"] = lambda input, other, *, alpha=1: _add(other, input, alpha=-alpha)
RULES["sub_"] = lambda input, other, *, alpha=1: _add_(input, other, alpha=-alpha)


def _scaled(name: str) -> None:
    """``x * number`` and ``x / number``, and in place."""

    def form(input: Any, other: Any, **kwargs: Any) -> SparseTensor:
        x, number = (input, other) if _is_sparse(input) or name == "div" else (other, input)
        if not _is_sparse(x):
            raise NotImplementedError("div(): by a sparse tensor, where every element but those it keeps is 0")
        if name == "mul" and _is_sparse(number) and number.shape == x.shape:
            x, number = x.coalesce(), number.to_dense()  # where one of them has no entry, the product has none
        if isinstance(number, Tensor) and number.dim():
            if name == "mul" and not _is_sparse(number) and number.dim() <= x.dim():
                return x._with(x._v * number.expand(x.shape)[tuple(x._i.unbind(0))])
            raise NotImplementedError(
                f"{name}(): a sparse tensor and one of sizes {tuple(number.shape)}; use .to_dense()"
            )
        return x._with(getattr(x._v, name)(number, **kwargs))

    def in_place(input: SparseTensor, other: Any, **kwargs: Any) -> SparseTensor:
        return input._become(form(input, other, **kwargs))

    RULES[name], RULES[name + "_"] = form, in_place


@_rule("mul_conj")
def _mul_conj(input, other):
    return RULES["mul"](input, other.conj() if isinstance(other, Tensor) else other.conjugate())


_scaled("mul")
_scaled("div")
RULES["true_divide"], RULES["true_divide_"] = RULES["div"], RULES["div_"]


@_rule("clone", "contiguous", "detach_copy")
def _clone(input: SparseTensor, **kwargs):
    return make(input._i.clone(), input._v.clone(), input.shape, input._coalesced)


@_rule("detach", "detach_")
def _detach(input: SparseTensor):
    return input._detached()


@_rule("zero_")
def _zero(input: SparseTensor):
    return input._become(make(input._i[:, :0], input._v[:0], input.shape, True))


@_rule("copy_")
def _copy(input, src, non_blocking=False):
    if not _is_sparse(input) or not _is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found: use to_dense() or to_sparse()"
        )
    return input._become(_clone(src))


@_rule("sum")
def _sum(input: SparseTensor, dim=None, keepdim=False, *, dtype=None):
    if dim is None or dim == ():
        return input._v.sum(dtype=dtype)
    return to_sparse(input.to_dense().sum(dim, keepdim, dtype=dtype))


@_rule("norm", "vector_norm", "linalg_vector_norm")
def _norm(input: SparseTensor, p="fro", dim=None, keepdim=False, dtype=None, ord=None):
    if dim is not None:
        return input.to_dense().norm(p, dim, keepdim, dtype=dtype)
    order = p if ord is None else ord
    return input.coalesce()._v.norm(2 if order == "fro" else order, dtype=dtype)


@_rule("t")
def _t(input: SparseTensor):
    return _transpose(input, 0, 1)


@_rule("transpose", "swapaxes")
def _transpose(input: SparseTensor, dim0, dim1):
    n = input.sparse_dim()
    a, b = (wrapped_dim(d, input.dim(), "transpose") for d in (dim0, dim1))
    if max(a, b) >= n:
        raise RuntimeError(f"transpose: expected sparse dimensions (below {n}), got {dim0} and {dim1}")
    order, size = list(range(n)), list(input.shape)
    order[a], order[b] = order[b], order[a]
    size[a], size[b] = size[b], size[a]
    return make(input._i[order], input._v, size)


@_rule("mv")
def _mv(input, vec):
    if vec.dim() != 1:
        raise RuntimeError(f"mv: expected a vector, got sizes {tuple(vec.shape)}")
    return _mm(input, vec)


@_rule("mm", "matmul", "spmm")
def _mm(input, mat2, *, out=None):
    """``sparse @ dense``: each entry sends a multiple of a row."""
    expect_tensors("mm", input=input, mat2=mat2)
    if not _is_sparse(input):
        return _mm(_t(mat2), input.t() if input.dim() > 1 else input).t()
    if input.dim() != 2 or input.sparse_dim() != 2:
        raise RuntimeError(f"mm: expected a sparse matrix, got sizes {tuple(input.shape)}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{'x'.join(map(str, mat2.shape))})"
        )
    if _is_sparse(mat2) and mat2.sparse_dim() == 2:
        return _sparse_product(input, mat2.coalesce())
    right = _dense(mat2)
    rows, columns = input._i.unbind(0)
    scale = input._v.reshape(-1, *(1,) * (right.dim() - 1))
    result = index_add(right.new_zeros((input.shape[0], *right.shape[1:])), 0, rows, scale * right[columns])
    return to_sparse(result) if _is_sparse(mat2) else result


def _sparse_product(left: SparseTensor, right: SparseTensor) -> SparseTensor:
    """``left @ right``: each entry of ``left`` meets those of its row of ``right``, which is coalesced.

    Memory is needed for the products of entries, not for a dense result. Entries that are 0 are kept.
    """
    rows, columns = left._i.unbind(0)
    right_rows, right_columns = right._i.unbind(0)
    first = searchsorted(right_rows, columns)
    counts = searchsorted(right_rows, columns, right=True) - first
    entry = repeat_interleave(counts)
    place = (first - counts.cumsum(0) + counts)[entry] + counts.new_ones(len(entry)).cumsum(0) - 1
    values = left._v[entry] * right._v[place]
    return make(stack([rows[entry], right_columns[place]]), values, (left.shape[0], *right.shape[1:])).coalesce()


@_rule("rmatmul", "__rmatmul__")
def _rmatmul(input, other):
    return _mm(other, input)


@_rule("linear")
def _linear_layer(input, weight, bias=None):
    rows = input.flatten(0, -2) if input.dim() > 2 else input
    result = _mm(rows, weight.t() if weight.dim() > 1 else weight)
    result = result.reshape(*input.shape[:-1], *weight.shape[:-1])
    return result if bias is None else result + bias


@_rule("bmm")
def _bmm(input, mat2, *, out=None):
    """``sparse @ dense`` for each matrix: one product with a sparse matrix that has them along its diagonal."""
    if not _is_sparse(input) or _is_sparse(mat2):
        raise NotImplementedError(
            "bmm(): expected a sparse and a dense tensor, in this order; convert with .to_dense()"
        )
    if input.dim() != 3 or input.sparse_dim() != 3 or mat2.dim() != 3:
        raise RuntimeError(f"bmm: expected matrices in batches, got sizes {tuple(input.shape)} and {tuple(mat2.shape)}")
    b, n, m = input.shape
    if (b, m) != tuple(mat2.shape[:2]):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {m}] but got: "
            f"{list(mat2.shape[:2])}."
        )
    which, rows, columns = input._i.unbind(0)
    blocks = make(stack([which * n + rows, which * m + columns]), input._v, (b * n, b * m))
    return _mm(blocks, mat2.reshape(b * m, -1)).reshape(b, n, -1)


@_rule("smm")
def _smm(input, mat):
    return to_sparse(_mm(input, mat))


@_rule("cat", "concat", "concatenate")
def _cat(tensors, dim=0):
    """Entries side by side, moved along ``dim``."""
    tensors = [x.to_sparse_coo() for x in tensors]
    dim, n = dim % tensors[0].dim(), tensors[0].sparse_dim()
    size, indices, start = list(tensors[0].shape), [], 0
    if dim >= n:
        raise NotImplementedError(f"cat(): of sparse tensors along a dense dimension ({dim}); use .to_dense()")
    for x in tensors:
        moved = x._i.clone()
        moved[dim] += start
        indices.append(moved)
        start += x.shape[dim]
    size[dim] = start
    return make(cat(indices, 1), cat([x._v for x in tensors]), size, False)


def _by_dense(name: str) -> None:
    """An op that is rare enough to go by way of the dense tensor."""

    def form(input: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        result = getattr(input.to_dense(), name)(*args, **kwargs)
        return to_sparse(result, min(input.sparse_dim(), result.dim())) if result.dim() else result

    RULES[name] = form


for _name in (
    "select",
    "__getitem__",
    "index_select",
    "narrow",
    "narrow_copy",
    "squeeze",
    "permute",
    "reshape",
    "slice",
):
    _by_dense(_name)


@_rule("unsqueeze")
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


@_rule("unbind")
def _unbind(input, dim=0):
    return tuple(input.select(dim, i) for i in range(input.shape[dim]))


RULES["__iter__"] = lambda input: iter(_unbind(input))


@_rule("stack")
def _stack(tensors, dim=0):
    return _cat([_unsqueeze(x.to_sparse_coo(), dim) for x in tensors], dim)


@_rule("addmm")
def _addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    product = _mm(mat1, mat2) if _is_sparse(mat1) or _is_sparse(mat2) else mat1 @ mat2
    return input * beta + product * alpha


@_rule("numel")
def _numel(input):
    return math.prod(input.shape)


@_rule("is_same_size")
def _same_size(input, other):
    expect_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


@_rule("zeros_like", "empty_like")
def _zeros_like(input: SparseTensor, *, dtype=None, requires_grad=False, **kwargs):
    made = make(input._i[:, :0], input._v.detach()[:0].to(dtype or input.dtype), input.shape, True)
    return made.requires_grad_(requires_grad)


@_rule("any")
def _any(input: SparseTensor, dim=None, keepdim=False):
    if dim is not None:
        raise NotImplementedError("any(): of a sparse tensor only over all dimensions; use .to_dense()")
    return input.coalesce()._v.any()


@_rule("equal")
def _equal(input, other):
    return bool(_is_sparse(input) and _is_sparse(other)) and input.to_dense().equal(other.to_dense())
