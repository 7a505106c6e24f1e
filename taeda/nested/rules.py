"""Rules for ops on nested tensors. An op runs part by part where a part can be taken by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from taeda.ops.table import is_pointwise

from .._core import dtype, strided
from .._typed import Tensor
from ..ops.creation import arange, empty
from ..ops.joining import cat, stack
from ..ops.matmul import matmul
from ..ops.parts import of_dense
from ..ops.views import transpose
from ..types import jagged
from .tensor import RULES, NestedTensor, RaggedSize, like, nest


def _is_jagged(x: Any) -> bool:
    return isinstance(x, NestedTensor) and x._layout is jagged


def _each(func: Any, *args: Any, **kwargs: Any) -> Any:
    """``func`` of the parts: nested arguments part by part, dense ones with as many rows row by row, the others
    whole."""
    nested = next((x for x in (*args, *kwargs.values()) if isinstance(x, NestedTensor)), None)
    if nested is None:
        raise NotImplementedError(f"{func.__name__}(): nested tensors in a list are not taken here")
    if func.__name__.endswith("_") and args and not isinstance(args[0], NestedTensor):
        raise RuntimeError(f"{func.__name__}(): a nested tensor cannot be written into one that is not nested")
    made = _made_of_parts(func, nested, args, kwargs)
    if made and isinstance(made[0], str):  # the name of the type
        return made[0]
    if not all(isinstance(x, Tensor) for x in made):
        raise NotImplementedError(
            f"{func.__name__}(): not of nested tensors in this form, which gives no tensor for a part"
        )
    in_place = all(x is y for x, y in zip(made, nested._parts, strict=True))
    return nested if in_place and made else like(nested, made)


def _made_of_parts(func: Any, nested: NestedTensor, args: Sequence, kwargs: dict) -> list:
    n = len(nested)

    def of_part(x: Any, i: int) -> Any:
        if isinstance(x, NestedTensor):
            return x._parts[i]
        if isinstance(x, Tensor) and x.dim() == nested.dim() and x.shape[0] in (1, n):
            return x[i if x.shape[0] == n else 0]
        return x

    for x in (*args, *kwargs.values()):
        if isinstance(x, NestedTensor):
            _expect_same_parts(func, nested, x)
    return [func(*(of_part(x, i) for x in args), **{k: of_part(x, i) for k, x in kwargs.items()}) for i in range(n)]


def _expect_same_parts(func: Any, a: NestedTensor, b: NestedTensor) -> None:
    if len(a) != len(b):
        raise RuntimeError(f"{func.__name__}: expected nested tensors of equally many parts, got {len(a)} and {len(b)}")
    if is_pointwise(func) and a._ends() != b._ends():
        raise RuntimeError(
            f"{func.__name__}: expected nested tensors whose parts have the same sizes, got "
            f"{[tuple(x.shape) for x in a._parts]} and {[tuple(x.shape) for x in b._parts]}"
        )


def _together(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """An op that draws numbers: for the elements of all parts in one row, each part in its order in memory."""
    orders = [sorted(range(x.dim()), key=x.stride, reverse=True) for x in input._parts]
    rows = [x.permute(order) for x, order in zip(input._parts, orders, strict=True)]
    flat = func(cat([x.reshape(-1) for x in rows]) if rows else empty(0, dtype=input.dtype), *args, **kwargs)
    pieces = flat.split([x.numel() for x in rows])
    made = [y.view(x.shape) for x, y in zip(rows, pieces, strict=True)]
    return like(
        input, [y.permute([order.index(d) for d in range(y.dim())]) for y, order in zip(made, orders, strict=True)]
    )


def _matmul(func: Any, input: Any, other: Any) -> Any:
    """Products of the parts: a tensor where the ragged dimension is summed over."""
    nested = input if isinstance(input, NestedTensor) else other
    made = _made_of_parts(matmul, nested, (input, other), {})
    rows = _is_jagged(input) and input._ragged_idx < input.dim() - 1
    columns = _is_jagged(other) and other._ragged_idx == other.dim() - 1
    if rows and columns:
        return nest(made, strided)
    if _is_jagged(nested) and not rows and not columns:
        return stack(made)
    return like(nested, made)


def _with_weights(func: Any, input: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """An op on rows: its other arguments belong to no part."""
    return like(input, [func(x, *args, **kwargs) for x in input._parts])


def _along(func: Any, input: NestedTensor, dim: int, *args: Any, **kwargs: Any) -> NestedTensor:
    """An op along a dimension of the parts."""
    return like(input, [func(x, _within(func, input, dim), *args, **kwargs) for x in input._parts])


def _within(func: Any, input: NestedTensor, dim: int, ragged: bool = True) -> int:
    """The dimension of the parts that is ``dim`` of the whole; not the one in which they differ, without ``ragged``."""
    d = input._dim(dim)
    if d == 0:
        kind = ValueError if _is_jagged(input) and func.__name__ == "transpose" else RuntimeError
        raise kind(f"{func.__name__}(): not of dimension 0 of a nested tensor, which counts its parts")
    if not ragged and _is_jagged(input) and d == input._ragged_idx:
        raise RuntimeError(f"{func.__name__}(): not of dimension {d}, in which the parts differ")
    return d - 1


# ---- reductions ------------------------------------------------------------------------------------------------------
def _reduce(func: Any, input: NestedTensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    if isinstance(dim, Tensor):  # the greater, or smaller, of two
        return _each(func, input, dim)
    if dim is None:
        return func(cat([x.reshape(-1) for x in input._parts]), **kwargs)
    several = isinstance(dim, (tuple, list))
    dims = sorted({input._dim(d) for d in (dim if several else [dim])})
    ragged = input._ragged_idx
    if 0 in dims:
        if not _is_jagged(input) or ragged not in dims:
            raise RuntimeError(
                f"{func.__name__}(): along dimension 0 of a nested tensor only together with the one in which its "
                f"parts differ"
            )
        made = func(input.values(), tuple(d - 1 for d in dims[1:]), keepdim, **kwargs)
        return made.unsqueeze(0) if keepdim else made
    within = tuple(d - 1 for d in dims)
    made = [func(x, within if several else within[0], keepdim, **kwargs) for x in input._parts]
    moved = ragged - (0 if keepdim else sum(d < ragged for d in dims))

    def whole(parts: Sequence[Tensor]) -> Tensor:
        return stack(list(parts)) if ragged in dims else like(input, parts, moved)

    return whole(made) if isinstance(made[0], Tensor) else type(made[0])([whole(x) for x in zip(*made, strict=True)])


# ---- views -----------------------------------------------------------------------------------------------------------
def _flatten(func: Any, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    first, last = _within(func, input, start_dim), _within(func, input, end_dim)
    ragged = input._ragged_idx - 1
    if _is_jagged(input) and first <= ragged <= last and first < last:
        raise RuntimeError(f"flatten(): not of dimension {ragged + 1}, in which the parts differ")
    moved = input._ragged_idx - (last - first if ragged > last else 0)
    return like(input, [x.flatten(first, last) for x in input._parts], moved)


def _unflatten(func: Any, input: NestedTensor, dim: int, sizes: Sequence[int]) -> NestedTensor:
    d = _within(func, input, dim, ragged=False)
    moved = input._ragged_idx + (len(sizes) - 1 if d < input._ragged_idx - 1 else 0)
    return like(input, [x.unflatten(d, sizes) for x in input._parts], moved)


def _view(func: Any, input: NestedTensor, *shape: Any) -> NestedTensor:
    """Other sizes behind the dimension in which the parts differ; -1 in a dimension of a strided one is its size."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0]) if isinstance(shape[0], (tuple, list)) else shape
    if shape and isinstance(shape[0], dtype):
        return like(input, [func(x, *shape) for x in input._parts])
    head = input._ragged_idx + 1 if _is_jagged(input) else 1
    own = [input._size(d) for d in range(head)]
    given = [a if a == b or (b == -1 and isinstance(a, RaggedSize)) else b for a, b in zip(own, shape, strict=False)]
    if given != own or len(shape) <= head - 1:
        raise RuntimeError(f"{func.__name__}(): cannot view shape {own} and further as {list(shape)}")
    made = []
    for x in input._parts:
        tail = [
            x.shape[d - 1] if n == -1 and head == 1 and d <= x.dim() else n
            for d, n in enumerate(shape[head:], start=head)
        ]
        made.append(func(x, (*x.shape[: head - 1], *tail)))
    return like(input, made)


def _transpose(func: Any, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = (_within(transpose, input, d) for d in (dim0, dim1))
    moved = {a + 1: b + 1, b + 1: a + 1}.get(input._ragged_idx)
    return like(input, [x.transpose(a, b) for x in input._parts], moved)


def _permute(func: Any, input: NestedTensor, *dims: Any) -> NestedTensor:
    order = [input._dim(d) for d in (dims[0] if isinstance(dims[0], (tuple, list)) else dims)]
    if order[:1] != [0] or sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute(): expected every dimension once, and 0 first, of a nested tensor, got {order}")
    parts = [x.permute([d - 1 for d in order[1:]]) for x in input._parts]
    return like(input, parts, order.index(input._ragged_idx))


def _unsqueeze(func: Any, input: NestedTensor, dim: int) -> NestedTensor:
    d = input._dim(dim, more=1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not in front of dimension 0 of a nested tensor, which counts its parts")
    moved = input._ragged_idx + (d <= input._ragged_idx)
    return like(input, [x.unsqueeze(d - 1) for x in input._parts], moved)


def _squeeze(func: Any, input: NestedTensor, dim: int | None = None) -> NestedTensor:
    if dim is None:
        raise RuntimeError("squeeze(): of a nested tensor only with a dim")
    d = _within(func, input, dim, ragged=False)
    if input._size(d + 1) != 1:
        return input
    return like(input, [x.squeeze(d) for x in input._parts], input._ragged_idx - (d + 1 < input._ragged_idx))


def _select(func: Any, input: NestedTensor, dim: int, index: int) -> Tensor:
    if input._dim(dim) == 0:
        return input._parts[index]
    d = _within(func, input, dim, ragged=False)
    return like(input, [x.select(d, index) for x in input._parts], input._ragged_idx - (d + 1 < input._ragged_idx))


def _narrow(func: Any, input: NestedTensor, dim: int, start: Any, length: int) -> NestedTensor:
    d = _within(func, input, dim, ragged=False)
    return like(input, [x.narrow(d, start, length) for x in input._parts])


def _index(input: NestedTensor, index: tuple) -> NestedTensor:
    """``x[:, ..., 1:]``: numbers, slices and None in the dimensions that all parts share."""
    if Ellipsis in index:
        at = index.index(Ellipsis)
        missing = input.dim() - sum(i is not None and i is not Ellipsis for i in index)
        index = (*index[:at], *[slice(None)] * missing, *index[at + 1 :])
    if not index or index[0] != slice(None) or not all(i is None or isinstance(i, (int, slice)) for i in index):
        raise NotImplementedError(
            "a nested tensor is indexed by the number of a part, by a slice of parts, or by x[:, ...] with numbers "
            "and slices"
        )
    d, moved = 1, 1
    for i in index[1:]:
        if d == input._ragged_idx and i is not None:
            if i != slice(None) and _is_jagged(input):
                raise RuntimeError(f"slice(): not of dimension {d}, in which the parts differ")
            d = input.dim()
        d += i is not None
        moved += d <= input._ragged_idx and not isinstance(i, int)
    return like(input, [x[index[1:]] for x in input._parts], moved)


def _pieces(func: Any, input: NestedTensor, how: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    if input._dim(dim) == 0:
        groups = func(arange(len(input)), how)
        return tuple(like(input, [input._parts[i] for i in g.tolist()], new=True) for g in groups)
    d = _within(func, input, dim, ragged=False)
    made = [func(x, how, d) for x in input._parts]
    if len({len(x) for x in made}) > 1:
        raise RuntimeError(
            f"{func.__name__}(): the parts differ in dimension {dim}, and give different numbers of pieces"
        )
    return tuple(like(input, x) for x in zip(*made, strict=True))


def _cat(func: Any, tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    if isinstance(tensors, Tensor) or not all(isinstance(x, NestedTensor) for x in tensors):
        raise TypeError("cat(): expected a list of nested tensors, or of tensors that are not nested")
    first = tensors[0]
    d = first._dim(dim)
    if d == 0:
        return like(first, list(itertools.chain(*(x.unbind() for x in tensors))), new=True)
    rows = zip(*(x.unbind() for x in tensors), strict=True)
    return like(first, [cat(row, d - 1) for row in rows], new=d == first._ragged_idx)


def _stack(func: Any, tensors: Sequence[NestedTensor], dim: int = 0) -> NestedTensor:
    if isinstance(tensors, Tensor) or not all(isinstance(x, NestedTensor) for x in tensors):
        raise TypeError("stack(): expected a list of nested tensors, or of tensors that are not nested")
    return _cat(cat, [_unsqueeze(func, x, dim) for x in tensors], dim)


def _expand(func: Any, input: NestedTensor, *sizes: Any) -> NestedTensor:
    """To other sizes in the dimensions that all parts share."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    own = [input._size(d) for d in range(input.dim())]
    fixed = [d for d in range(input.dim()) if d == 0 or not isinstance(own[d], int)]
    if len(sizes) != len(own) or any(sizes[d] is not own[d] and sizes[d] not in (-1, own[d]) for d in fixed):
        raise RuntimeError(f"expand(): cannot expand a nested tensor of sizes {own} to {list(sizes)}")
    return like(input, [x.expand([-1 if d in fixed else sizes[d] for d in range(1, len(own))]) for x in input._parts])


def _attention(
    func: Any, query: NestedTensor, key: NestedTensor, value: NestedTensor, *args: Any, **kwargs: Any
) -> Any:
    return like(
        query, [func(q, k, v, *args, **kwargs) for q, k, v in zip(query._parts, key._parts, value._parts, strict=True)]
    )


def _multi_head_attention(
    func: Any, query: NestedTensor, key: NestedTensor, value: NestedTensor, *args: Any, need_weights: bool = True,
    **kwargs: Any,
) -> Any:  # fmt: skip
    if need_weights:
        raise NotImplementedError(f"{func.__name__}(): of nested tensors, give need_weights=False")

    def output(*parts: Any, **kwargs: Any) -> Tensor:
        return func(*parts, *args, need_weights=False, **kwargs)[0]

    return _attention(output, query, key, value, **kwargs), None


def _plain(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Questions whose answer is that of any part: dtype, device and the like."""
    if not all(x._parts for x in args if isinstance(x, NestedTensor)):
        return of_dense(func, args, kwargs)
    return func(*(x._parts[0] if isinstance(x, NestedTensor) else x for x in args), **kwargs)


def _attribute(func: Any, input: NestedTensor, *args: Any) -> Any:
    found = _plain(func, input, *args)
    if not isinstance(found, Tensor):
        return found
    name = getattr(func.__self__, "fget", func.__self__).__name__
    if name not in ("data", "real", "imag"):
        raise NotImplementedError(f"{name}: not of nested tensors; ask its parts, x.unbind()")
    return like(input, [func(x, *args) for x in input._parts])


def _embedding_bag(
    func: Any, input: NestedTensor, weight: Tensor, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: Any = None,
) -> Tensor:  # fmt: skip
    """Each part is a bag."""
    if not _is_jagged(input):
        raise NotImplementedError("embedding_bag(): of nested tensors, input is a jagged one")
    if per_sample_weights is not None:
        if not isinstance(per_sample_weights, NestedTensor):
            raise ValueError("embedding_bag: If input is nested, then per_sample_weights must be nested if specified")
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
                f"same shape as the input ({input.shape})"
            )
        per_sample_weights = per_sample_weights.values()
    return func(
        input.values(), weight, input.offsets(), max_norm, norm_type, scale_grad_by_freq, mode, sparse,
        per_sample_weights, True, padding_idx,
    )  # fmt: skip


def _adjoint(func: Any, input: NestedTensor) -> NestedTensor:
    return input.mH


def _diff(func: Any, input: NestedTensor, n: int = 1, dim: int = -1, **kwargs: Any) -> NestedTensor:
    d = _within(func, input, dim, ragged=False)
    return like(input, [func(x, n, d, **kwargs) for x in input._parts])


def _several(func: Any, input: NestedTensor) -> Any:
    """An op that gives several tensors for each part."""
    made = [func(x) for x in input._parts]
    return type(made[0])([like(input, x) for x in zip(*made, strict=True)])


def _dim_order(func: Any, input: NestedTensor, **kwargs: Any) -> tuple[int, ...]:
    if not _is_jagged(input):
        raise RuntimeError("dim_order(): each part of a nested tensor has an order of its own; ask x.unbind()")
    return 0, *(d + 1 for d in func(input._parts[0], **kwargs))


def _contains(func: Any, input: NestedTensor, element: Any) -> bool:
    return any(func(x, element) for x in input._parts)


def _setitem(func: Any, input: NestedTensor, index: Any, value: Any) -> None:
    """``x[i] = value`` and ``x[i, ...] = value``, in the part ``i``."""
    number, *rest = index if isinstance(index, tuple) else (index,)
    if not isinstance(number, int):
        raise NotImplementedError("a nested tensor is written to by the number of a part, as in x[0] = 1.0")
    func(input._parts[number], tuple(rest) or ..., value)


def _reshape_as(func: Any, input: NestedTensor, other: NestedTensor) -> NestedTensor:
    return like(other, [func(x, y) for x, y in zip(input._parts, other._parts, strict=True)])


def _itself(func: Any, input: NestedTensor, *args: Any) -> NestedTensor:
    return input


def _new_tensor(func: Any, input: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy of ``data``, nested or not."""
    return data.detach().clone() if isinstance(data, NestedTensor) else func(input._parts[0], data, *args, **kwargs)


def _detach_(func: Any, input: NestedTensor) -> NestedTensor:
    return input._become(input._detached())


def _is_same_size(func: Any, input: NestedTensor, other: NestedTensor) -> bool:
    if _is_jagged(input) and _is_jagged(other):
        return input.shape == other.shape
    return [x.shape for x in input._parts] == [x.shape for x in other._parts]


for _name in ("pointwise", "detach", "requires_grad_", "contiguous", "copy_"):
    RULES[_name] = _each
for _name in ("clamp_", "clamp_min", "clamp_max", "clamp_min_", "clamp_max_", "polygamma", "type_as", "rremainder"):
    RULES[_name] = _each
for _name in ("conj_physical", "conj_physical_", "polygamma_", "positive", "resolve_conj", "resolve_neg", "rpow"):
    RULES[_name] = _each
for _name in ("dropout", "rand_like", "randn_like", "randint_like", "bernoulli"):
    RULES[_name] = _together
for _name in ("linear", "layer_norm", "rms_norm", "embedding"):
    RULES[_name] = _with_weights
for _name in ("softmax", "log_softmax"):
    RULES[_name] = _along
for _name in ("reduction", "max", "min"):
    RULES[_name] = _reduce
for _name in ("chunk", "split", "split_with_sizes", "tensor_split"):
    RULES[_name] = _pieces
for _name in ("view", "reshape"):
    RULES[_name] = _view
RULES.update(
    __get__=_attribute, matmul=_matmul, bmm=_matmul, flatten=_flatten, unflatten=_unflatten, transpose=_transpose,
    permute=_permute, unsqueeze=_unsqueeze, squeeze=_squeeze, select=_select, narrow=_narrow, index=_index, cat=_cat,
    stack=_stack, expand=_expand, is_same_size=_is_same_size, embedding_bag=_embedding_bag, adjoint=_adjoint,
    diff=_diff, frexp=_several, dim_order=_dim_order, detach_=_detach_, float_power=_each, new_tensor=_new_tensor,
    to_dense=_itself, reshape_as=_reshape_as,
    __contains__=_contains, __setitem__=_setitem, scaled_dot_product_attention=_attention,
    multi_head_attention_forward=_multi_head_attention,
)  # fmt: skip
