"""A tensor with a mask: masked elements take no part in computations, nor in gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import masked as functions
from ._core import Tensor, bool_, sparse_coo, strided
from .autograd import Function, enable_grad, grad
from .ops.compressed import sparse_csr, sparse_csr_tensor
from .ops.indexing import where
from .ops.sparse import sparse_coo_tensor
from .ops.table import is_pointwise, trait
from .utils._pytree import tree_map

#: Reductions, as methods and functions. All but ``all`` are functions of ``taeda.masked``.
_REDUCTIONS = frozenset("sum mean prod amax amin argmax argmin all std var".split())


def is_masked_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a :class:`MaskedTensor`."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A :class:`MaskedTensor` with a copy of ``data``, which is a leaf of the graph."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """``data`` with a mask, as part of the graph: the gradient of ``data`` has the mask too."""
    _check(data, mask)
    return _FromData.apply(*_alike(data, mask))


def _check(data: Any, mask: Any) -> None:
    for name, x in (("data", data), ("mask", mask)):
        if not isinstance(x, Tensor) or is_masked_tensor(x):
            raise TypeError(f"MaskedTensor: {name} must be a Tensor without a mask, not {type(x).__name__}")
    if mask.dtype is not bool_:
        raise TypeError(f"MaskedTensor: mask must have dtype bool, got {mask.dtype}")
    if data.shape != mask.shape:
        raise ValueError(
            f"MaskedTensor: data and mask must have the same shape, got {tuple(data.shape)} and {tuple(mask.shape)}"
        )
    if data.layout is not mask.layout:
        raise TypeError(f"MaskedTensor: data and mask must have the same layout, got {data.layout} and {mask.layout}")
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(f"MaskedTensor: expected the layout strided, sparse_coo or sparse_csr, got {data.layout}")


def _alike(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Data and mask with the mask's places, if they are sparse."""
    if data.layout is sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout is not strided and data._nnz() != mask._nnz():
        data = data.sparse_mask(mask)
    return data, mask


def _values(x: Any) -> Any:
    """The elements that a sparse tensor holds; dense tensors and other objects stay as they are."""
    return x.values() if isinstance(x, Tensor) and x.layout is not strided else x


def _with_values(x: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor with the places of ``x``."""
    if x.layout is sparse_coo:
        return sparse_coo_tensor(x.indices(), values, x.shape, is_coalesced=True)
    return sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


def _dense(x: Tensor) -> Tensor:
    return x if x.layout is strided else x.to_dense()


def _parts(x: Any) -> tuple[Any, Any]:
    """The data and the mask; for a value without a mask, ``x`` itself and None."""
    return (x._masked_data, x._masked_mask) if is_masked_tensor(x) else (x, None)


def _wrap(data: Tensor, mask: Tensor) -> MaskedTensor:
    made = Tensor._make_wrapper_subclass(MaskedTensor, data.shape, dtype=data.dtype)
    made._masked_data, made._masked_mask = data, mask
    return made


class MaskedTensor(Tensor):
    """A tensor whose elements count only where ``mask`` is true.

    Args:
        data: the elements, which are copied.
        mask: bool, of the same shape.
        requires_grad: record what is computed of it.
    Raises:
        TypeError: ``data`` is no tensor, or ``mask`` is not bool.
        ValueError: the shapes differ.
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None: ...

    @staticmethod
    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _check(data, mask)
        data, mask = _alike(data.detach(), mask.detach())
        return _wrap(data.clone(), mask.clone()).requires_grad_(requires_grad)

    def get_data(self) -> Tensor:
        """The elements, also those that are left out."""
        return _GetData.apply(self)

    def get_mask(self) -> Tensor:
        """The mask of the elements that count."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with ``value`` where elements are left out."""
        return _dense(self.get_data()).masked_fill(~_dense(self._masked_mask), value)

    def to_dense(self, *args: Any, **kwargs: Any) -> MaskedTensor:
        """Data and mask as dense tensors."""
        return _InLayout.apply(self, strided)

    def to_sparse_coo(self) -> MaskedTensor:
        """Data and mask as sparse tensors of the elements that count."""
        return _InLayout.apply(self, sparse_coo)

    to_sparse = to_sparse_coo

    def to_sparse_csr(self, *args: Any, **kwargs: Any) -> MaskedTensor:
        """The same, with compressed rows."""
        return _InLayout.apply(self, sparse_csr)

    @property
    def layout(self) -> Any:
        """The layout of data and mask: ``strided``, ``sparse_coo`` or ``sparse_csr``."""
        return self._masked_data.layout

    @property
    def is_sparse(self) -> bool:
        """Whether data and mask are sparse tensors."""
        return self.layout is not strided

    def is_sparse_coo(self) -> bool:
        """Whether they are sparse by coordinates."""
        return self.layout is sparse_coo

    def is_sparse_csr(self) -> bool:
        """Whether they have compressed rows."""
        return self.layout is sparse_csr

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        data, mask = _dense(self._masked_data).tolist(), _dense(self._masked_mask).tolist()
        if not self.dim():
            return f"MaskedTensor({_shown(data) if mask else '--'}, {mask})"
        return f"MaskedTensor(\n{_rows(data, mask, self.dim(), 2)}\n)"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _REDUCTIONS and args and is_masked_tensor(args[0]):
            return _Reduce.apply(args[0].to_dense(), name, args[1:], kwargs or {})
        if name == "where" and len(args) == 3 and not kwargs and not is_masked_tensor(args[0]):
            return _Where.apply(*args)
        return super().__torch_function__(func, types, args, kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name, op = func.overloadpacket.__name__, func.overloadpacket.function
        data, mask = (tree_map(lambda x, i=i: _parts(x)[i], args) for i in (0, 1))
        if name in _REDUCTIONS:
            return _wrap(*_reduced(name, data[0], mask[0], args[1:], kwargs))
        if op is not None and (getattr(op, "kind", "") == "view" or trait(op, "moves")):
            if isinstance(args[0], (list, tuple)) and not all(map(is_masked_tensor, args[0])):
                raise TypeError(f"{name}: expected MaskedTensors alone, got a Tensor without a mask among them")
            masks = tree_map(lambda x: x._masked_mask if is_masked_tensor(x) else x, args)
            moved, kept = func(*data, **kwargs), func(*masks)
            return _wrap(moved, kept) if isinstance(moved, Tensor) else [*map(_wrap, moved, kept)]
        masks = [m for m in mask if isinstance(m, Tensor)]
        if len({m.layout for m in masks}) > 1:
            raise ValueError(f"{name}: MaskedTensors must have the same layout, got {[m.layout for m in masks]}")
        if func.mutates and mask[0] is None:
            raise TypeError(f"{name}: expected a MaskedTensor to write to, got a Tensor; use to_tensor(value)")
        if any(m.shape != masks[0].shape or not _dense(m).equal(_dense(masks[0])) for m in masks[1:]):
            raise ValueError(f"{name}: the masks of MaskedTensors must be equal; use to_tensor(value) on one of them")
        if name in ("_softmax", "_softmax_backward", "_softmax_backward_data"):
            out_of_it = float("-inf") if name == "_softmax" else 0
            data = [x if m is None else x.masked_fill(~m, out_of_it) for x, m in zip(data, mask, strict=True)]
        elif op is None or not (is_pointwise(op) or trait(op, "moves") is False):
            return NotImplemented
        sparse = masks[0].layout is not strided
        if sparse and (func.mutates or any(isinstance(x, Tensor) and x.dim() and x.layout is strided for x in data)):
            raise ValueError(f"{name}: expected sparse MaskedTensors and numbers, and nothing to write to")
        result = func(*map(_values, data), **kwargs)
        if func.mutates:
            return args[0]
        if sparse:
            return _wrap(_with_values(masks[0], result), masks[0])
        return _wrap(result, masks[0].expand(result.shape))


def _reduced(name: str, data: Tensor, mask: Tensor, args: tuple, kwargs: dict) -> tuple[Tensor, Tensor]:
    """The reduction of the elements that count, and where there are any."""
    if name not in ("std", "var"):
        named = dict(zip(("dim", "keepdim", "dtype"), args, strict=False))
        args, kwargs = (), {**named, **{k: v for k, v in kwargs.items() if v is not None}}
    dim = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else None)
    kept = mask.any(functions._dims(dim, mask), kwargs.get("keepdim", False))
    if name == "all":
        return (data.bool() | ~mask).all(functions._dims(dim, data), kwargs.get("keepdim", False)), kept
    return getattr(functions, name)(data, *args, **kwargs, mask=mask), kept


class _FromData(Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> MaskedTensor:
        return _wrap(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


class _InLayout(Function):
    """Another layout. Gradients are dense."""

    @staticmethod
    def forward(ctx: Any, x: MaskedTensor, layout: Any) -> MaskedTensor:
        data, mask = _dense(x._masked_data), _dense(x._masked_mask)
        if layout is strided:
            return _wrap(data.detach(), mask)
        mask = mask.to_sparse() if layout is sparse_coo else mask.to_sparse_csr()
        return _wrap(data.sparse_mask(mask), mask)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.to_dense(), None


class _GetData(Function):
    @staticmethod
    def forward(ctx: Any, x: MaskedTensor) -> Tensor:
        ctx.mask = x._masked_mask
        return x._masked_data.detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g if is_masked_tensor(g) else _wrap(g, ctx.mask)


class _Reduce(Function):
    """A reduction; its derivative is the derivative of the function of ``taeda.masked``."""

    @staticmethod
    def forward(ctx: Any, x: MaskedTensor, name: str, args: tuple, kwargs: dict) -> MaskedTensor:
        ctx.of = name, x._masked_data, x._masked_mask, args, kwargs
        result = _wrap(*_reduced(*ctx.of))
        if not (result.is_floating_point() or result.is_complex()) or name.startswith("arg"):
            ctx.mark_non_differentiable(result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        name, data, mask, args, kwargs = ctx.of
        with enable_grad():
            leaf = data.detach().requires_grad_()
            total = _reduced(name, leaf, mask, args, kwargs)[0]
        return _wrap(grad(total, leaf, _parts(g)[0])[0], mask), None, None, None


class _Where(Function):
    """A choice. Values without a mask count everywhere. The derivative leaves out the elements that were not chosen."""

    @staticmethod
    def forward(ctx: Any, condition: Tensor, input: Any, other: Any) -> MaskedTensor:
        ctx.condition = condition
        (a, kept), (b, also) = _parts(input), _parts(other)
        return _wrap(
            where(condition, a, b), where(condition, True if kept is None else kept, True if also is None else also)
        )

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        data, mask = _parts(g)
        chosen = ctx.condition
        if mask is None:
            mask = chosen.new_ones(g.shape)
        return None, _wrap(where(chosen, data, 0), mask & chosen), _wrap(where(chosen, 0, data), mask & ~chosen)


def _shown(x: Any) -> str:
    return f"{x:8.4f}" if isinstance(x, (float, complex)) else str(x)


def _rows(data: Any, mask: Any, dims: int, indent: int) -> str:
    start = " " * indent
    if dims == 1:
        shown = (_shown(x) if kept else "      --" for x, kept in zip(data, mask, strict=True))
        return f"{start}[{', '.join(shown)}]"
    rows = ",\n".join(_rows(x, m, dims - 1, indent + 2) for x, m in zip(data, mask, strict=True))
    return f"{start}[\n{rows}\n{start}]"
