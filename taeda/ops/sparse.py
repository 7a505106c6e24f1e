"""Sparse tensors in coordinate form, as ``sparse_coo_tensor`` makes them and sparse gradients of embeddings use them.

A :class:`SparseTensor` is a Tensor with the sizes and the dtype of the dense one and no memory of its own for it: its
indices and values are two dense tensors. It comes to its ops as any subclass does, by ``__torch_function__``; the ops
that it has are the table :data:`RULES`, which ``sparse_rules.py`` fills, and whatever is not there says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._print import sparse_repr
from .exchange import tensor
from .indexing import index_put, where
from .joining import cat
from .parts import QUERIES, OfParts, OfValues, expect_kind, into_out, of_dense
from .registry import name_of, op_of
from .scatter import index_add
from .sorting import searchsorted
from .table import OPS, composite, expect_tensors, is_pointwise, trait

#: Rules for ops with sparse arguments, by the op's name.
RULES: dict[str, Callable] = {}


def is_query(name: str) -> bool:
    """Whether ``name`` is a function or a method that asks for no element and has no rule."""
    return name in QUERIES and name not in RULES


def by_values(func: Any, name: str, args: Sequence, kwargs: dict) -> Any:
    """Apply a pointwise op that keeps 0 to the values of a sparse tensor."""
    x = args[0] if args else None
    if is_pointwise(func) in (None, "form") or not isinstance(x, OfParts):
        return NotImplemented
    if any(isinstance(y, Tensor) and y.dim() for y in (*args[1:], *kwargs.values())):
        return NotImplemented
    if name.endswith("_"):
        made = by_values(OPS[name[:-1]], name[:-1], args, kwargs)
        return made if made is NotImplemented else x._overwrite(made)
    (values,) = x._graph_parts()
    if bool(func(values.detach().new_zeros(()), *args[1:], **kwargs) != 0):
        return NotImplemented
    if isinstance(x, SparseTensor) and not trait(func, "additive"):
        x = x.coalesce()
        values = x._v
    made = func(values, *args[1:], **kwargs)
    return x if made is values else x._with(made)


class SparseTensor(OfValues):
    """A tensor of which only some elements are kept.

    The first dimensions, as many as ``_indices()`` has rows, are sparse. The others are dense, within ``_values()``.
    :func:`taeda.sparse_coo_tensor` and ``to_sparse()`` make such tensors.

    Examples:
        >>> x = taeda.tensor([[0.0, 5.0], [7.0, 0.0]]).to_sparse()
        >>> x.indices(), x.values()
        (tensor([[0, 1],
                [1, 0]]), tensor([5., 7.]))
    """

    _without_memory = "a sparse tensor (to_dense() gives one that has, values() what it keeps)"
    _i: Tensor
    _coalesced: bool

    _conversions = ("to_dense", "to_sparse", "to_sparse_coo")  #: functions that are methods of the classes

    @classmethod
    def __torch_function__(cls, func: Any, types: Sequence, args: Sequence = (), kwargs: dict | None = None) -> Any:
        func = op_of(func)
        if kwargs and kwargs.get("out") is not None:
            return into_out(cls, func, types, args, kwargs)
        name = name_of(func)
        rule = RULES.get(name)
        if is_query(name):
            return of_dense(func, args, kwargs or {})
        if rule is None:
            if name in SparseTensor._conversions and isinstance(args[0], SparseTensor):
                return vars(SparseTensor)[name](*args, **(kwargs or {}))
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

    def stride(self, dim: int | None = None) -> Any:
        """0 along every dimension."""
        return (0,) * self.dim() if dim is None else 0 * self.size(dim)

    @property
    def nbytes(self) -> int:
        """Raises an error: indices and values have a size in bytes each, the tensor has none.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "nbytes is not defined for sparse tensors. If you want the size of the constituent tensors, add the nbytes "
            "of the indices and values. If you want the size of the equivalent dense tensor, multiply numel() by "
            "element_size()"
        )

    def _part_gradients(self, g: Tensor) -> Sequence[Tensor]:
        return (values_at(g, self._i),) if self._dense is None else (g.to_dense(),)

    def _whole_gradient(self, grads: Sequence[Tensor | None]) -> Tensor:
        """Give each of several values at one place the gradient of their sum."""
        (g,) = grads
        assert g is not None
        if self._coalesced or self._nnz() < 2:
            return self._with(g)
        places = self._with(g.new_zeros(g.shape)).coalesce()
        _, inverse = linear_places(self._i, self.shape).unique(return_inverse=True)
        return places._with(places._v.index_put((inverse,), g))

    def _with(self, values: Tensor) -> SparseTensor:
        return make(self._i, values, self.shape, self._coalesced)

    def _become(self, new: SparseTensor) -> SparseTensor:
        if new.shape != self.shape or new.dtype != self.dtype:
            _core.set_data(self, new)
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

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Let :meth:`is_coalesced` say ``coalesced``, which is not checked."""
        self._coalesced = bool(coalesced)
        return self

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
        places, inverse = linear_places(self._i, self.shape).unique(return_inverse=True)
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
        dense = (
            index_put(dense, tuple(self._i.unbind(0)), self._v, True)
            if self.sparse_dim()
            else self._v.sum(0, dtype=self.dtype)
        )
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(
        self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
    ) -> Tensor:
        """Itself, or in another sparse layout.

        Raises:
            RuntimeError: another number of sparse dimensions is asked for.
        """
        if layout is not None and layout is not _core.sparse_coo:
            return _in_layout(self, layout, blocksize, dense_dim)
        if sparse_dim not in (None, self.sparse_dim()):
            raise RuntimeError(
                f"to_sparse: conversion from Sparse to Sparse with sparse_dim argument {sparse_dim} is not supported: "
                f"the tensor has {self.sparse_dim()}; convert with to_dense() first"
            )
        return self

    def to_sparse_coo(self) -> SparseTensor:
        """Itself."""
        return self

    def sparse_resize_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Itself in other sizes, with its entries, which must have a place there."""
        return RULES["sparse_resize_"](self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size: Sequence[int], sparse_dim: int, dense_dim: int) -> SparseTensor:
        """Itself without entries, in other sizes."""
        return RULES["sparse_resize_and_clear_"](self, size, sparse_dim, dense_dim)

    def __repr__(self, **kwargs: Any) -> str:
        return sparse_repr(self, True, indices=self._i, values=self._v)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

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
    t = t.to_sparse_coo() if isinstance(t, OfParts) else t
    if not isinstance(t, SparseTensor):
        return t[tuple(indices.unbind(0))] if indices.shape[0] else t.expand(indices.shape[1], *t.shape)
    if t._i is indices:
        return t._v
    if t.sparse_dim() != indices.shape[0]:
        return values_at(t.to_dense(), indices)
    t = t.coalesce()
    wanted = linear_places(indices, t.shape)
    if not t._nnz():
        return t._v.new_zeros((len(wanted), *t._v.shape[1:]))
    places = linear_places(t._i, t.shape)
    found = searchsorted(places, wanted).clamp(max=len(places) - 1)
    there = (places[found] == wanted).reshape(-1, *(1,) * t.dense_dim())
    return where(there, t._v[found], t._v.new_zeros(()))


def linear_places(indices: Tensor, size: Sequence[int]) -> Tensor:
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
    """A sparse tensor in coordinate form: element ``indices[:, i]`` is ``values[i]``, all others are 0.

    Args:
        indices: ``(sparse dimensions, entries)``, integers; without ``values``, the size of a tensor without entries.
        values: ``(entries, *dense dimensions)``; those of a place that occurs several times add up.
        size: of the whole. Default: the smallest that fits.
        dtype: of the values. Default: their own.
        layout: ``taeda.sparse_coo``.
        check_invariants: accepted: indices are always checked.
        is_coalesced: whether every place occurs once, in order. Default: for fewer than two entries.
    Returns:
        A sparse tensor.
    Raises:
        RuntimeError: the sizes do not fit, or an index is out of range.
    Examples:
        >>> indices = taeda.tensor([[0, 1], [2, 0]])  # rows, columns
        >>> taeda.sparse_coo_tensor(indices, taeda.tensor([5.0, 6.0]), (2, 3)).to_dense()
        tensor([[0., 0., 5.],
                [6., 0., 0.]])
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
    for d, row in enumerate(indices.unbind(0) if indices.numel() and not indices.is_meta else ()):
        low, high = int(row.min()), int(row.max())
        if low < 0 or high >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index "
                f"{low if low < 0 else high}"
            )
    values = values.detach().requires_grad_() if requires_grad else values
    return make(indices, values, size, indices.shape[1] < 2 if is_coalesced is None else bool(is_coalesced))


def legacy(*args: Any, dtype: Any, device: Any = None, **kwargs: Any) -> SparseTensor:
    """A tensor as ``torch.sparse.FloatTensor`` and ``sparse.new`` make it: of indices, values and a size, or of sizes.

    A tensor without entries has the dtype ``dtype``; others have that of their values.
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


#: Layouts of :mod:`.compressed`: by rows, by columns, and of blocks by rows and by columns.
LAYOUTS = tuple(map(_core.layout, "sparse_csr sparse_csc sparse_bsr sparse_bsc".split()))


def _in_layout(input: Tensor, layout: Any, blocksize: Any, dense_dim: Any) -> Tensor:
    """``input`` in a compressed layout."""
    if layout not in LAYOUTS:
        raise RuntimeError(f"to_sparse: expected layout sparse_coo, or one of {list(LAYOUTS)}, got {layout}")
    convert = getattr(input, "to_" + str(layout).rpartition(".")[2])
    if layout in LAYOUTS[:2]:
        return convert(dense_dim)
    if blocksize is None:
        raise RuntimeError(f"to_sparse for strided to {layout} conversion requires blocksize: (height, width)")
    return convert(blocksize, dense_dim)


@composite(meta="values")
def to_sparse(input, sparse_dim=None, *, layout: Any = None, blocksize=None, dense_dim=None):
    """``input`` as a sparse tensor of its elements that are not 0.

    Args:
        sparse_dim: how many of the first dimensions are sparse. Default: all.
        layout: which sparse layout. Default: ``taeda.sparse_coo``.
        blocksize: the sizes of blocks, for layouts of blocks.
        dense_dim: how many of the last dimensions are dense, for compressed layouts.
    Returns:
        A sparse tensor of the same sizes.
    Raises:
        RuntimeError: the arguments do not fit the layout.
    Examples:
        >>> taeda.tensor([[0.0, 5.0], [0.0, 0.0]]).to_sparse().indices()
        tensor([[0],
                [1]])
    """
    if layout is not None and layout is not _core.sparse_coo:
        return _in_layout(input, layout, blocksize, dense_dim)
    n = input.dim() if sparse_dim is None else int(sparse_dim)
    if not min(1, input.dim()) <= n <= input.dim():
        raise RuntimeError(f"to_sparse: expected sparse_dim between {min(1, input.dim())} and {input.dim()}, got {n}")
    mask = input != 0
    return entries_at(input, mask.flatten(n).any(-1) if n < input.dim() else mask)


def entries_at(input: Tensor, mask: Tensor) -> SparseTensor:
    """``input`` as a sparse tensor of its elements at the places of the first dimensions where ``mask`` is True."""
    rows = mask.nonzero().t()
    values = input[tuple(rows.unbind(0))] if rows.shape[0] else input.expand(rows.shape[1])
    made = make(rows.contiguous(), values, input.shape, True)
    made._dense = input if made._v.requires_grad else None
    return made


@composite()
def to_sparse_coo(input):
    """``input`` as a sparse tensor in coordinate form; see :func:`sparse_coo_tensor`.

    Returns:
        A sparse tensor of the same sizes.
    Examples:
        >>> taeda.eye(2).to_sparse_coo().layout
        taeda.sparse_coo
    """
    expect_tensors("to_sparse_coo", input=input)
    return to_sparse(input)


RULES["to_sparse_coo"] = lambda input: input.to_sparse_coo()


@composite()
def sparse_mask(input, mask):
    """The elements of ``input`` at the places that the sparse tensor ``mask`` has, as a sparse tensor.

    Args:
        mask: a sparse tensor of the same sizes.
    Returns:
        A sparse tensor of the sizes and the dtype of ``input``.
    Raises:
        RuntimeError: the sizes differ.
    Examples:
        >>> taeda.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(taeda.eye(2).to_sparse()).to_dense()
        tensor([[1., 0.],
                [0., 4.]])
    """
    expect_tensors("sparse_mask", input=input, mask=mask)
    mask = to_sparse_coo(mask).coalesce()
    if input.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return make(mask._i, values_at(input, mask._i), mask.shape, True)


def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions, which come first: 0 for a dense tensor.

    Examples:
        >>> taeda.eye(2).sparse_dim(), taeda.eye(2).to_sparse().sparse_dim()
        (0, 2)
    """
    own = _own_method(self, "sparse_dim")
    return 0 if own is None else own(self)


def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions, which come last: all for a dense tensor.

    Examples:
        >>> taeda.eye(2).dense_dim(), taeda.eye(2).to_sparse().dense_dim()
        (2, 0)
    """
    own = _own_method(self, "dense_dim")
    return self.dim() if own is None else own(self)


def _own_method(x: Tensor, name: str) -> Any:
    """The method ``name`` of the class of ``x``, for ``Tensor.<name>(x)``; None if it has none of its own."""
    kinds = type(x).__mro__ if isinstance(x, Tensor) else ()
    return next((vars(kind)[name] for kind in kinds if kind is not Tensor and name in vars(kind)), None)


def _of_layout(name: str, wanted: str) -> Callable:
    """The method ``name`` of tensors of other layouts: it raises an error that says which layouts it is for."""

    def refuse(self: Tensor, *args: Any) -> Any:
        if (own := _own_method(self, name)) is not None:
            return own(self, *args)
        given = "".join(part.capitalize() for part in str(self.layout).rpartition(".")[2].split("_"))
        error = NotImplementedError if name.startswith("_") else RuntimeError
        raise error(f"{name} expected {wanted} tensor layout but got {given.removesuffix('Coo')}")

    refuse.__name__ = name
    refuse.__doc__ = f"""An error, except for tensors in {wanted} layout: see their class.

    Raises:
        RuntimeError: the tensor has another layout.

    Examples:
        >>> x = taeda.tensor([[0.0, 5.0], [7.0, 0.0]])
        >>> of_places, of_rows, of_columns = x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()
        >>> of_places.is_coalesced(), of_places.coalesce().values(), of_places.indices().shape
        (True, tensor([5., 7.]), taeda.Size([2, 2]))
        >>> of_rows.crow_indices(), of_rows.col_indices()
        (tensor([0, 1, 2]), tensor([1, 0]))
        >>> of_columns.ccol_indices(), of_columns.row_indices()
        (tensor([0, 1, 2]), tensor([1, 0]))
    """
    return refuse


_core.install("sparse_dim", sparse_dim)
_core.install("dense_dim", dense_dim)
for _wanted, _names in {
    "sparse": "values _nnz",
    "sparse coordinate": "coalesce _coalesced_ is_coalesced indices _indices _values",
    "sparse row compressed": "crow_indices col_indices",
    "sparse column compressed": "ccol_indices row_indices",
}.items():
    for _name in _names.split():
        _core.install(_name, _of_layout(_name, _wanted))


@composite()
def to_dense(input, dtype=None, *, masked_grad=None):
    """``input`` with all its elements, the zeros too; of a dense tensor itself.

    Args:
        dtype: dtype of the result. Default: that of ``input``.
        masked_grad: accepted.
    Returns:
        A dense tensor of the same sizes.
    Examples:
        >>> taeda.eye(2).to_sparse().to_dense()
        tensor([[1., 0.],
                [0., 1.]])
    """
    return input if dtype is None else input.to(dtype)
