"""Sparse tensors in coordinate form: what ``sparse_coo_tensor`` makes and what a sparse gradient of an embedding is.

A :class:`SparseTensor` is a Tensor with the sizes and the dtype of the dense one and no memory of its own for it: its
indices and values are two dense tensors. It comes to its ops as any subclass does, by ``__torch_function__``; the ops
that it has are the table :data:`RULES` below, and whatever is not there says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._print import sparse_repr
from .exchange import tensor
from .indexing import index_put, where
from .joining import cat, stack
from .parts import OfParts, OfValues, expect_kind, into_out
from .scatter import index_add
from .shape import repeat_interleave
from .sorting import searchsorted
from .table import OPS, composite, expect_tensors, is_pointwise, trait
from .views import _wrap

#: Methods, and access to attributes, that ask for no element.
SHELL = frozenset(
    """__get__ __set__ __delete__ size dim ndimension nelement is_floating_point is_complex is_contiguous get_device
    element_size __len__ register_hook retain_grad is_signed""".split()
)
_NO_SUBCLASSES = 4  # of change_overrides: subclasses are not asked

#: What an op does with sparse arguments, by the op's name.
RULES: dict[str, Callable] = {}


def is_shell(name: str) -> bool:
    """Whether ``name`` is a method that asks for no element and has no rule: sizes, dtype and the like."""
    return name in SHELL and name not in RULES


def of_dense(func: Any, args: Sequence, kwargs: dict) -> Any:
    """What ``func`` gives for a dense tensor of the same sizes and dtype."""
    before = _core.change_overrides(_NO_SUBCLASSES, 0)
    try:
        return func(*args, **kwargs)
    finally:
        if not before & _NO_SUBCLASSES:
            _core.change_overrides(0, _NO_SUBCLASSES)


class SparseTensor(OfValues):
    """A tensor of which only some elements are kept.

    Its first dimensions, as many as ``_indices()`` has rows, are sparse; the others are dense, within ``_values()``.
    """

    _without_memory = "a sparse tensor (to_dense() gives one that has, values() what it keeps)"
    _i: Tensor
    _coalesced: bool

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        if kwargs and kwargs.get("out") is not None:
            return into_out(cls, func, types, args, kwargs)
        name = getattr(func, "name", None) or getattr(func, "__name__", str(func))
        rule = RULES.get(name)
        if is_shell(name):
            return of_dense(func, args, kwargs or {})
        if rule is None:
            made = by_values(func, name, args, kwargs or {})
            if made is not NotImplemented:
                return made
            if _core.current_task() != -1:  # a derivative that is given a sparse gradient
                return func(*_dense(list(args)), **_dense(kwargs or {}))
            raise NotImplementedError(
                f"{name}(): not for sparse tensors; convert them first, as in x.to_dense(), or compute with x.values()"
            )
        expect_kind(name, rule, args, kwargs or {}, SparseTensor)
        return rule(*args, **(kwargs or {}))

    @property
    def is_sparse(self) -> bool:
        """True."""
        return True

    @property
    def layout(self) -> Any:
        """``taeda.sparse_coo``."""
        return _core.sparse_coo

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        return (values_at(g, self._i),) if self._dense is None else (g.to_dense(),)

    def _with(self, values: Tensor) -> SparseTensor:
        return make(self._i, values, self.shape, self._coalesced)

    def _become(self, new: SparseTensor) -> SparseTensor:
        self._i, self._v, self._coalesced = new._i, new._v, new._coalesced
        return self

    def _indices(self) -> Tensor:
        """``(sparse dimensions, entries)``, int64, as they are."""
        return self._i

    def _values(self) -> Tensor:
        """``(entries, *dense dimensions)``, as they are."""
        return self._v

    def _nnz(self) -> int:
        """Number of entries."""
        return self._i.shape[1]

    def is_coalesced(self) -> bool:
        """Whether every place occurs once and places are in order."""
        return self._coalesced

    def sparse_dim(self) -> int:
        """Number of sparse dimensions."""
        return self._i.shape[0]

    def dense_dim(self) -> int:
        """Number of dense dimensions."""
        return self._v.dim() - 1

    def indices(self) -> Tensor:
        """:meth:`_indices` of a coalesced tensor.

        Raises:
            RuntimeError: it is not coalesced.
        """
        self._require_coalesced("indices")
        return self._i

    def values(self) -> Tensor:
        """:meth:`_values` of a coalesced tensor.

        Raises:
            RuntimeError: it is not coalesced.
        """
        self._require_coalesced("values")
        return self._v

    def _require_coalesced(self, name: str) -> None:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first; _{name}() gives them as "
                "they are"
            )

    def coalesce(self) -> SparseTensor:
        """The same with every place once, in order, values of the same place added up."""
        if self._coalesced:
            return self
        places, inverse = _linear(self._i, self.shape).unique(return_inverse=True)
        values = self._v.new_zeros((places.shape[0], *self._v.shape[1:]))
        indices = []
        for size in reversed(self.shape[: self.sparse_dim()]):
            indices.append(places % size)
            places = places // size
        rows = cat([i.unsqueeze(0) for i in reversed(indices)]) if indices else self._i[:, : values.shape[0]]
        return make(rows, index_add(values, 0, inverse, self._v), self.shape, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor; differentiable with respect to the values."""
        dense = self._v.new_zeros(self.shape)
        dense = index_put(dense, tuple(self._i.unbind(0)), self._v, True) if self.sparse_dim() else self._v.sum(0)
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, **kwargs: Any) -> Tensor:
        """Itself, or in another sparse layout."""
        return self if layout is None or layout is _core.sparse_coo else _in_layout(self, layout)

    def to_sparse_coo(self) -> SparseTensor:
        """Itself."""
        return self

    def sparse_resize_and_clear_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Without entries, in other sizes."""
        raise NotImplementedError("sparse_resize_and_clear_: make a new one with sparse_coo_tensor")

    def __repr__(self, **kwargs: Any) -> str:
        return sparse_repr(self, True, indices=self._i, values=self._v)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    @property
    def data(self) -> SparseTensor:
        """The same outside the graph."""
        return self._detached()

    @property
    def T(self) -> SparseTensor:
        """Transposed."""
        return RULES["t"](self)

    @property
    def mT(self) -> SparseTensor:
        """The last two dimensions swapped."""
        return RULES["transpose"](self, -2, -1)

    @property
    def H(self) -> SparseTensor:
        """The conjugate transpose."""
        return RULES["t"](self).conj()

    @property
    def mH(self) -> SparseTensor:
        """The conjugate transpose of the last two dimensions."""
        return self.mT.conj()

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return sparse_coo_tensor, (self._i, self._v.detach(), tuple(self.shape))

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        return RULES["clone"](self)


def make(indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> SparseTensor:
    """A SparseTensor of checked parts."""
    made: SparseTensor = Tensor._make_subclass(SparseTensor, values.new_zeros(()).expand(tuple(size)))
    made._i, made._v, made._coalesced = indices, values, coalesced
    return made


def _dense(x: Any) -> Any:
    """``x`` with dense tensors in place of sparse ones."""
    if isinstance(x, SparseTensor):
        return x.to_dense()
    if isinstance(x, dict):
        return {k: _dense(v) for k, v in x.items()}
    return type(x)(map(_dense, x)) if type(x) in (tuple, list) else x


def values_at(t: Tensor, indices: Tensor) -> Tensor:
    """The elements of ``t``, dense or sparse, at the places ``indices``."""
    t = t if type(t) is Tensor else t.to_sparse_coo()
    if not isinstance(t, SparseTensor):
        return t[tuple(indices.unbind(0))] if indices.shape[0] else t.unsqueeze(0)
    if t._i is indices:
        return t._v
    if t.sparse_dim() != indices.shape[0]:
        return values_at(t.to_dense(), indices)
    t = t.coalesce()
    wanted = _linear(indices, t.shape)
    if not t._nnz():
        return t._v.new_zeros((len(wanted), *t._v.shape[1:]))
    places = _linear(t._i, t.shape)
    found = searchsorted(places, wanted).clamp(max=len(places) - 1)
    there = (places[found] == wanted).reshape(-1, *(1,) * t.dense_dim())
    return where(there, t._v[found], t._v.new_zeros(()))


def _linear(indices: Tensor, size: Sequence[int]) -> Tensor:
    """The places as single numbers."""
    places = indices.new_zeros((indices.shape[1],))
    for row, length in zip(indices.unbind(0) if indices.shape[0] else (), size, strict=False):
        places = places * length + row
    return places


@composite(method=False)
def sparse_coo_tensor(
    indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False,
    check_invariants=None, is_coalesced=None, layout=None,
):  # fmt: skip
    """A sparse tensor in coordinate form.

    Args:
        indices: ``(sparse dimensions, entries)``, integers; without ``values``, the size of a tensor without entries.
        values: ``(entries, *dense dimensions)``; those of a place that occurs several times add up.
        size: of the whole; the smallest that fits by default.
        dtype: of the values.
        device, pin_memory, layout: as everywhere.
        requires_grad: whether operations on the values are recorded.
        check_invariants: accepted for compatibility: indices are always checked.
        is_coalesced: that every place occurs once, in order.
    Raises:
        RuntimeError: the sizes do not fit, or an index is out of range.
    """
    if device is not None:
        _core.require_device(device)
    if values is None:
        size = _core.whole_numbers(indices if size is None else size, "sparse_coo_tensor", "size")
        indices, values = _core.empty((len(size), 0), _core.int64), _core.empty((0,), dtype)
    indices = indices if isinstance(indices, Tensor) else tensor(indices)
    indices = indices.to(_core.int64)
    values = values if isinstance(values, Tensor) else tensor(values)
    values = values if dtype is None else values.to(dtype)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.dim() == 0:
        values = values.expand((indices.shape[1],))
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"number of entries must be the same in indices and values, but got {indices.shape[1]} in indices of shape "
            f"{list(indices.shape)} and {values.shape[0]} in values of shape {list(values.shape)}"
        )
    if size is None:
        size = (*((indices.amax(1) + 1).tolist() if indices.numel() else [0] * len(indices)), *values.shape[1:])
    size = tuple(int(s) for s in size)
    if len(size) != indices.shape[0] + values.dim() - 1 or size[indices.shape[0] :] != tuple(values.shape[1:]):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({indices.shape[0]}) + dense_dim ({values.dim() - 1}), with "
            f"dense sizes {list(values.shape[1:])}, but got size {list(size)}"
        )
    for d, row in enumerate(indices.unbind(0) if indices.numel() else ()):
        low, high = int(row.min()), int(row.max())
        if low < 0 or high >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index "
                f"{low if low < 0 else high}"
            )
    values = values.detach().requires_grad_() if requires_grad else values
    return make(indices, values, size, bool(is_coalesced) or indices.shape[1] == 0)


def legacy(*args: Any, dtype: Any, device: Any = None, **kwargs: Any) -> SparseTensor:
    """What ``torch.sparse.FloatTensor`` and ``sparse.new`` make: of indices, values and a size, of sizes, or of
    nothing.

    ``dtype`` is that of a tensor without entries; else it is that of the values.
    """
    names = ("indices", "values", "size")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(given) > 1 and set(given) <= set(names) and all(isinstance(given.get(n), Tensor) for n in names[:2]):
        return sparse_coo_tensor(given["indices"], given["values"], given.get("size"), device=device)
    size = given.get("size", args[0] if len(args) == 1 and isinstance(args[0], _core.Size) else args)
    if (
        set(kwargs) - {"size"}
        or (args and kwargs)
        or any(isinstance(n, Tensor) or not hasattr(n, "__index__") for n in size)
    ):
        raise TypeError(
            "new() received an invalid combination of arguments: expected sizes, or indices, values and their size"
        )
    return sparse_coo_tensor(size or (0,), dtype=dtype, device=device)


#: Layouts of :mod:`.compressed`.
sparse_csr, sparse_csc = _core.layout("sparse_csr"), _core.layout("sparse_csc")


def _in_layout(input: Tensor, layout: Any) -> Tensor:
    """``input`` in a compressed layout."""
    if layout is sparse_csr:
        return input.to_sparse_csr()
    if layout is sparse_csc:
        return input.to_sparse_csc()
    raise NotImplementedError(f"to_sparse: expected layout sparse_coo, sparse_csr or sparse_csc, got {layout}")


@composite(meta="values")
def to_sparse(input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """``input`` as a sparse tensor of its elements that are not 0.

    Args:
        sparse_dim: how many dimensions are sparse (default: all); the others stay dense.
        layout: ``taeda.sparse_coo`` (the default), ``taeda.sparse_csr`` or ``taeda.sparse_csc``.
        blocksize, dense_dim: for layouts of blocks, which are not here.
    """
    if layout is not None and layout is not _core.sparse_coo:
        return _in_layout(input, layout)
    n = input.dim() if sparse_dim is None else int(sparse_dim)
    if not 0 < n <= input.dim():
        raise RuntimeError(f"to_sparse: expected sparse_dim between 1 and {input.dim()}, got {n}")
    mask = input != 0
    if n < input.dim():
        mask = mask.flatten(n).any(-1)
    rows = mask.nonzero().t()
    made = make(rows.contiguous(), input[tuple(rows.unbind(0))], input.shape, True)
    made._dense = input if made._v.requires_grad else None
    return made


@composite()
def to_sparse_coo(input):
    """``input`` as a sparse tensor in coordinate form."""
    expect_tensors("to_sparse_coo", input=input)
    return to_sparse(input)


RULES["to_sparse_coo"] = lambda input: input.to_sparse_coo()


@composite()
def sparse_mask(input, mask):
    """The elements of ``input`` at the places that the sparse tensor ``mask`` has, as a sparse tensor."""
    expect_tensors("sparse_mask", input=input, mask=mask)
    mask = to_sparse_coo(mask).coalesce()
    if input.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    values = to_dense(input)[tuple(mask._i.unbind(0))] if mask.sparse_dim() else to_dense(input)
    return make(mask._i, values, mask.shape, True)


def sparse_dim(self: Tensor) -> int:
    """How many of the first dimensions are sparse: 0 of a dense tensor."""
    return 0


def dense_dim(self: Tensor) -> int:
    """How many of the last dimensions are dense: all of a dense tensor."""
    return self.dim()


_core.install("sparse_dim", sparse_dim)
_core.install("dense_dim", dense_dim)


@composite()
def to_dense(input, dtype=None, *, masked_grad=None):
    """``input``, which is dense already (or in another dtype)."""
    return input if dtype is None else input.to(dtype)


# ---- what ops do -----------------------------------------------------------------------------------------------------


def _rule(*names: str) -> Callable:
    def note(function: Callable) -> Callable:
        for name in names:
            RULES[name] = function
        return function

    return note


def _is_sparse(x: Any) -> bool:
    return isinstance(x, SparseTensor)


RULES["sparse_mask"] = sparse_mask.__wrapped__
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


def by_values(func: Any, name: str, args: Sequence, kwargs: dict) -> Any:
    """What a pointwise op that keeps 0 makes of a sparse tensor and numbers: the same of its values."""
    x = args[0] if args else None
    if is_pointwise(func) in (None, "form") or not isinstance(x, OfParts):
        return NotImplemented
    if any(isinstance(y, Tensor) and y.dim() for y in (*args[1:], *kwargs.values())):
        return NotImplemented
    if name.endswith("_"):
        made = by_values(OPS[name[:-1]], name[:-1], args, kwargs)
        return made if made is NotImplemented else x._become(made)
    (values,) = x._graph_parts()
    if bool(func(values.detach().new_zeros(()), *args[1:], **kwargs) != 0):
        return NotImplemented
    if _is_sparse(x) and not trait(func, "additive"):
        x = x.coalesce()
        values = x._v
    made = func(values, *args[1:], **kwargs)
    return x if made is values else x._with(made)


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
    a, b = (_wrap(d, input.dim(), "transpose") for d in (dim0, dim1))
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


@_rule("zeros_like")
def _zeros_like(input: SparseTensor, **kwargs):
    return _zero(_clone(input))


@_rule("equal")
def _equal(input, other):
    return bool(_is_sparse(input) and _is_sparse(other)) and input.to_dense().equal(other.to_dense())
