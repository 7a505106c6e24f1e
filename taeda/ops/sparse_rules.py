"""Rules of ops for sparse tensors: the table :data:`taeda.ops.sparse.RULES`, by the op's name."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor, strided
from .conversion import pin_memory
from .indexing import index_put
from .joining import cat, stack
from .linalg import pca_lowrank, svd_lowrank, triangular_solve
from .out import can_cast
from .scatter import index_add
from .shape import repeat_interleave
from .sorting import searchsorted
from .sparse import RULES, SparseTensor, _dense, legacy, linear_places, make, sparse_mask, to_sparse, values_at
from .sparse_shapes import expanded, rule
from .table import composite, expect_tensors
from .views import broadcast_shapes


def _is_sparse(x: Any) -> bool:
    return isinstance(x, SparseTensor)


RULES["sparse_mask"] = sparse_mask.__wrapped__
RULES["pin_memory"] = pin_memory.__wrapped__
RULES["svd_lowrank"], RULES["pca_lowrank"] = svd_lowrank.__wrapped__, pca_lowrank.__wrapped__
RULES["new"] = lambda self, *args, **kwargs: legacy(*args, dtype=self.dtype, **kwargs)


@rule("type")
def _type(input: SparseTensor, dtype=None, non_blocking=False):
    """The type's name, or ``input`` with other values."""
    made = input._v.type(dtype)
    return made.replace("torch.", "torch.sparse.") if dtype is None else input._with(made)


@rule("add")
def _add(input, other, *, alpha=1, out=None):
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise RuntimeError(
            "add(): of a sparse tensor and a number: every element would be kept; call .to_dense() first"
        )
    if not _is_sparse(other):  # with a dense one the sum is dense
        return _sum(other if alpha == 1 else other * alpha, input, 1)
    if not _is_sparse(input):
        return _sum(input, other, alpha)
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: Expected 'self' and 'other' to have same sizes, but got {list(input.shape)} and {list(other.shape)}"
        )
    values = other._v if alpha == 1 else other._v * alpha
    if input.sparse_dim() != other.sparse_dim():
        raise RuntimeError("add: expected 'self' and 'other' to have same number of sparse dimensions")
    both = make(cat([input._i, other._i], 1), cat([input._v, values]), input.shape)
    return both.coalesce() if input._coalesced and other._coalesced else both


def _sum(dense: Tensor, sparse: SparseTensor, alpha: Any) -> Tensor:
    """``dense + alpha * sparse``, entry by entry."""
    dtype = _core.result_type(dense, sparse)
    values = sparse._v.to(dtype) if alpha == 1 else sparse._v.to(dtype) * alpha
    return index_put(dense.to(dtype).expand(sparse.shape), tuple(sparse._i.unbind(0)), values, True)


@rule("add_", "__iadd__")
def _add_(input, other, *, alpha=1):
    if _is_sparse(input):
        if not _is_sparse(other):
            raise RuntimeError("add_(): of a dense tensor to a sparse one, whose sum is dense; use add()")
        return input._overwrite(_add(input, other, alpha=alpha))
    if not can_cast(_core.result_type(input, other), input.dtype):
        raise RuntimeError(f"add_: result type {other.dtype} can't be cast to the desired output type {input.dtype}")
    values = other._v if alpha == 1 else other._v * alpha
    return input.index_put_(tuple(other._i.unbind(0)), values.to(input.dtype), True)


RULES["sub"] = lambda input, other, *, alpha=1: _add(input, other, alpha=-alpha)
RULES["rsub"] = lambda input, other, *, alpha=1: _add(other, input, alpha=-alpha)
RULES["sub_"] = lambda input, other, *, alpha=1: _add_(input, other, alpha=-alpha)


def _scaled(name: str) -> None:
    """``x * y`` and ``x / y``, and in place: with a number, or an operand whose values at the entries suffice."""

    def form(input: Any, other: Any, **kwargs: Any) -> SparseTensor:
        x, y = (input, other) if _is_sparse(input) or name == "div" else (other, input)
        if not _is_sparse(x):
            raise NotImplementedError("div(): by a sparse tensor, where every element but those it keeps is 0")
        if isinstance(y, Tensor) and (y.dim() or _is_sparse(y)):
            if name == "div" and _is_sparse(y):
                raise RuntimeError("div(): Sparse division requires a number or a dense divisor")
            size = broadcast_shapes(x.shape, y.shape)
            x, y = expanded(x, size), expanded(y, size) if _is_sparse(y) else y.expand(size)
            if _is_sparse(y) and x.sparse_dim() == y.sparse_dim():
                return _product(x.coalesce(), y.coalesce())
            x = x.coalesce() if _is_sparse(y) else x
            y = values_at(y, x._i)
        return x._with(getattr(x._v, name)(y, **kwargs))

    def in_place(input: Any, other: Any, **kwargs: Any) -> Any:
        if name == "mul" and not _is_sparse(input):
            return input.mul_(other.to_dense())
        return input._overwrite(form(input, other, **kwargs))

    RULES[name], RULES[name + "_"] = form, in_place


def _product(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """``x * y``, coalesced ones of equal sizes: where one has no entry, the product has none."""
    places, others = (linear_places(t._i, t.shape) for t in (x, y))
    found = searchsorted(others, places).clamp(max=max(len(others) - 1, 0))
    kept = (others[found] == places if len(others) else places.new_zeros(len(places))).nonzero().flatten()
    return make(x._i[:, kept], x._v[kept] * y._v[found[kept]], x.shape, True)


@rule("ldexp")
def _ldexp(input: SparseTensor, other):
    return RULES["mul"](input, 2.0**other)


@rule("ldexp_")
def _ldexp_(input: SparseTensor, other):
    return input._overwrite(_ldexp(input, other))


@rule("positive", "resolve_conj", "resolve_neg")
def _itself(input: SparseTensor):
    return input


@rule("conj_physical")
def _conj_physical(input: SparseTensor):
    return input._with(input._v.conj_physical())


@rule("conj_physical_")
def _conj_physical_(input: SparseTensor):
    return input._become(_conj_physical(input))


@rule("dist")
def _dist(input: SparseTensor, other: SparseTensor, p=2):
    return (input - other).norm(p)


@rule("numpy", "__array__", "tolist")
def _no_array(input: SparseTensor, *args, **kwargs):
    raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


@rule("mul_conj")
def _mul_conj(input, other):
    return RULES["mul"](input, other.conj() if isinstance(other, Tensor) else other.conjugate())


_scaled("mul")
_scaled("div")
RULES["true_divide"], RULES["true_divide_"] = RULES["div"], RULES["div_"]


@rule("contiguous")
def _contiguous(input: SparseTensor, memory_format=None):
    raise RuntimeError("unsupported memory format option Contiguous: a sparse tensor has no strides")


@rule("clone", "detach_copy")
def _clone(input: SparseTensor, **kwargs):
    return make(input._i.clone(), input._v.clone(), input.shape, input._coalesced)


@rule("detach")
def _detach(input: SparseTensor):
    return input._detached()


@rule("detach_")
def _detach_(input: SparseTensor):
    return input._become(input._detached())


@rule("new_tensor")
def _new_tensor(input, data, *args, **kwargs):
    return data.detach().clone() if _is_sparse(data) else input._v.new_tensor(data, *args, **kwargs)


@rule("zero_")
def _zero(input: SparseTensor):
    return input._become(make(input._i[:, :0], input._v[:0], input.shape, True))


@rule("copy_")
def _copy(input, src, non_blocking=False):
    if not _is_sparse(input) or not _is_sparse(src):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found: use to_dense() or to_sparse()"
        )
    return input._become(_clone(src.to(input.dtype)))


@rule("norm", "vector_norm", "linalg_vector_norm")
def _norm(input: SparseTensor, p="fro", dim=None, keepdim=False, dtype=None, ord=None):
    if dim is not None:
        return input.to_dense().norm(p, dim, keepdim, dtype=dtype)
    order = p if ord is None else ord
    return input.coalesce()._v.norm(2 if order == "fro" else order, dtype=dtype)


@rule("mv")
def _mv(input, vec):
    if vec.dim() != 1:
        raise RuntimeError(f"mv: expected a vector, got sizes {tuple(vec.shape)}")
    return _mm(input, vec)


@rule("mm", "matmul", "spmm")
def _mm(input, mat2, *, out=None):
    """``sparse @ dense``: each entry sends a multiple of a row."""
    expect_tensors("mm", input=input, mat2=mat2)
    if not _is_sparse(input):
        return _mm(RULES["t"](mat2), input.t() if input.dim() > 1 else input).t()
    if input.dim() != 2 or input.sparse_dim() != 2:
        raise RuntimeError(f"mm: expected a sparse matrix, got sizes {tuple(input.shape)}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{'x'.join(map(str, mat2.shape))})"
        )
    if _is_sparse(mat2) and mat2.sparse_dim() == 2:
        return _sparse_product(input, mat2.coalesce())
    result = _with_dense(input, _dense(mat2))
    return to_sparse(result) if _is_sparse(mat2) else result


#: Elements of the products of entries and rows that :func:`_mm` has in memory at a time.
_AT_ONCE = 1 << 24


def _with_dense(input: SparseTensor, right: Tensor) -> Tensor:
    """``input @ right`` for a dense ``right``: some entries after the others, so that their products take little
    memory."""
    scale = input._v.reshape(-1, *(1,) * (right.dim() - 1))
    some = max(_AT_ONCE // max(math.prod(right.shape[1:]), 1), 1)
    result = right.new_zeros((input.shape[0], *right.shape[1:]))
    for at in range(0, max(len(scale), 1), some):
        rows, columns = input._i[:, at : at + some].unbind(0)
        products = scale[at : at + some] * right[columns]
        result = result.index_add_(0, rows, products) if at else index_add(result, 0, rows, products)
    return result


def _sparse_product(left: SparseTensor, right: SparseTensor) -> SparseTensor:
    """``left @ right``: each entry of ``left`` meets the entries of its row of ``right``, which is coalesced.

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


@rule("rmatmul", "__rmatmul__")
def _rmatmul(input, other):
    return _mm(other, input)


@rule("linear")
def _linear_layer(input, weight, bias=None):
    rows = input.flatten(0, -2) if input.dim() > 2 else input
    result = _mm(rows, weight.t() if weight.dim() > 1 else weight)
    result = result.reshape(*input.shape[:-1], *weight.shape[:-1])
    return result if bias is None else result + bias


@rule("bmm")
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


@composite()
def smm(input, mat):
    """``input @ mat`` of a sparse and a dense matrix, as a sparse tensor.

    Args:
        input: a sparse matrix ``(m, k)``.
        mat: a dense matrix ``(k, n)``.
    Returns:
        A sparse matrix ``(m, n)``, of the dtype to which both promote.
    Raises:
        RuntimeError: the sizes do not fit.
        NotImplementedError: ``input`` is not sparse.
    Examples:
        >>> taeda.smm(taeda.eye(2).to_sparse(), taeda.tensor([[1.0, 2.0], [3.0, 4.0]])).to_dense()
        tensor([[1., 2.],
                [3., 4.]])
    """
    expect_tensors("smm", input=input, mat=mat)
    if not _is_sparse(input):
        raise NotImplementedError("smm: expected a sparse input; use taeda.mm, or input.to_sparse()")
    return to_sparse(_mm(input, mat))


@rule("addmm", "addmv")
def _addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    product = _mm(mat1, mat2) if _is_sparse(mat1) or _is_sparse(mat2) else mat1 @ mat2
    return input * beta + product * alpha


@rule("addmm_", "addmv_")
def _addmm_(input, mat1, mat2, *, beta=1, alpha=1):
    made = _addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return input._overwrite(made) if _is_sparse(input) else input.copy_(made)


@composite(method=False)
def hspmm(mat1, mat2):
    """``mat1 @ mat2`` of a sparse and a dense matrix, as a hybrid: one sparse dimension, of the rows that have entries.

    Args:
        mat1: a sparse matrix ``(m, k)``.
        mat2: a dense matrix ``(k, n)``.
    Returns:
        A sparse tensor ``(m, n)`` with one sparse and one dense dimension, of the dtype to which both promote.
    Raises:
        RuntimeError: ``mat1`` is not sparse.
    Examples:
        >>> taeda.hspmm(taeda.eye(2).to_sparse(), taeda.tensor([[1.0, 2.0], [3.0, 4.0]])).to_dense()
        tensor([[1., 2.],
                [3., 4.]])
    """
    expect_tensors("hspmm", mat1=mat1, mat2=mat2)
    if not _is_sparse(mat1) or _is_sparse(mat2):
        raise RuntimeError("hspmm: expected a sparse mat1 and a dense mat2; use taeda.mm for others")
    rows = mat1._i[0].unique()
    return make(rows.unsqueeze(0), _mm(mat1, mat2)[rows], (mat1.shape[0], mat2.shape[1]), True)


@composite()
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """``beta * input + alpha * (mat1 @ mat2)`` of sparse ``input`` and ``mat1`` and a dense ``mat2``.

    Args:
        input: a sparse matrix ``(m, n)``.
        mat1: a sparse matrix ``(m, k)``.
        mat2: a dense matrix ``(k, n)``.
        beta: a number.
        alpha: a number.
    Returns:
        A sparse matrix ``(m, n)``, of the dtype to which all promote.
    Raises:
        RuntimeError: the sizes do not fit.
    Examples:
        >>> sparse = taeda.eye(2).to_sparse()
        >>> taeda.sspaddmm(sparse, sparse, taeda.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    expect_tensors("sspaddmm", input=input, mat1=mat1, mat2=mat2)
    if not _is_sparse(mat1):
        raise RuntimeError("sspaddmm: Argument #2: should be a sparse tensor; use taeda.addmm for dense ones")
    return _add(input * beta, to_sparse(_mm(mat1, mat2)), alpha=alpha)


RULES["smm"], RULES["hspmm"], RULES["sspaddmm"] = smm.__wrapped__, hspmm.__wrapped__, sspaddmm.__wrapped__


@rule("triangular_solve")
def _triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    if not _is_sparse(A) or _is_sparse(input):
        raise NotImplementedError("triangular_solve(): expected a dense input and a sparse A; convert with .to_dense()")
    return triangular_solve(input, _dense(A), upper, transpose, unitriangular)


@rule("to", "type_as")
def _to(input, *args, **kwargs):
    """Convert to another dtype; the layout stays. The device can only be the present one."""
    if args and isinstance(args[0], Tensor):
        args = (args[0].dtype, *args[1:])
    if input.layout is strided:
        return input.to(*args, **kwargs)
    values = input._v.to(*args, **kwargs)
    return input if values is input._v else input._with(values)


@rule("numel")
def _numel(input):
    return math.prod(input.shape)


@rule("is_same_size")
def _same_size(input, other):
    expect_tensors("is_same_size", input=input, other=other)
    return input.shape == other.shape


@rule("zeros_like", "empty_like")
def _zeros_like(input: SparseTensor, *, dtype=None, requires_grad=False, **kwargs):
    made = make(input._i[:, :0], input._v.detach()[:0].to(dtype or input.dtype), input.shape, True)
    return made.requires_grad_(requires_grad)


@rule("any")
def _any(input: SparseTensor, dim=None, keepdim=False):
    if dim is not None:
        raise NotImplementedError("any(): of a sparse tensor only over all dimensions; use .to_dense()")
    return input.coalesce()._v.any()


@rule("equal")
def _equal(input, other):
    return bool(_is_sparse(input) and _is_sparse(other)) and input.to_dense().equal(other.to_dense())
