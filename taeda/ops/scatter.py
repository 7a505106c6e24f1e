"""Reading and writing along one dimension by index: gather, scatter, and their kin for whole slices."""

from __future__ import annotations

from .. import _core
from .._core import Tensor, selection
from .._core import tensor as core
from .._core.mends import not_tensor
from .creation import arange
from .indexing import where_select
from .pointwise import mul_conj
from .table import composite, primitive
from .views import blank, broadcast_shapes, reshape, zeros

PUT, ADD, MULTIPLY, MINIMUM, MAXIMUM = 1, 2, 3, 4, 5  # actions of _core.indexing


def _bad_index(index: Tensor, size: int, dim: int) -> str:
    bad = next(i for i in index.reshape(-1).tolist() if not 0 <= i < size)
    return f"index {bad} is out of bounds for dimension {dim} with size {size}"


# ---- elements along a dimension --------------------------------------------------------------------------------------


def _explain_range(name, index, input, at):
    bad = _bad_index(index, input.shape[at] if input.dim() else 1, at)
    raise IndexError(f"{name}(): {bad}") if name == "index_copy_" else RuntimeError(bad)


def _explain_slices(index, input, at):
    from .._core.blame import called

    mend = ""
    if called("") == "embedding":
        rows = input.shape[at]
        mend = f"; the indices of {rows} rows are 0 to {rows - 1}"
        if int(index.max()) >= rows:
            mend += ": num_embeddings has to exceed the largest index"
    raise IndexError(f"index out of range in self: {_bad_index(index, input.shape[at], at)}{mend}") from None


def _explain_along(name, input, at, index, src):
    """Raise the error for wrong arguments of gather or scatter."""
    if index.dtype is not _core.int64 and index.dtype is not _core.int32:
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index, got {index.dtype}; convert it with index.long()"
        )
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype, got {input.dtype} and {src.dtype}")
    for kind, x in (("self", input), ("src", src)):
        if isinstance(x, Tensor) and max(index.dim(), 1) != max(x.dim(), 1):
            raise RuntimeError(
                f"{name}(): Index tensor must have the same number of dimensions as {kind} tensor, got index "
                f"{list(index.shape)} and {kind} {list(x.shape)}"
            )
    more = f" and to be no larger size than src {list(src.shape)}" if isinstance(src, Tensor) else ""
    limits = [list(input.shape)] + ([list(src.shape)] if isinstance(src, Tensor) else [])
    fits = [min(n, *(s[d] for s in limits[d == at :])) if limits[d == at :] else n for d, n in enumerate(index.shape)]
    cuts = ", ".join(f":{small}" if small < n else ":" for n, small in zip(index.shape, fits, strict=True))
    raise RuntimeError(
        f"{name}(): Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
        f"dimension {at}{more}; index[{cuts}] fits"
    )


def _expect_along(name, input, dim, index, src):
    """Check the arguments before the first of several writes."""
    at, n = _core.wrapped_dim(dim, input.dim(), name), max(input.dim(), 1)
    if not index.numel():
        return
    fits = src.dtype is input.dtype and max(index.dim(), 1) == max(src.dim(), 1) == n
    sizes = list(zip(index.shape, input.shape, src.shape, strict=False))
    if not fits or any(i > s or (d != at and i > m) for d, (i, m, s) in enumerate(sizes)):
        _explain_along(name, input, at, index, src)


@primitive(
    selection.gather, out_apart=("input",), out_aligned=("index",), out="same",
    samples=lambda m: [((m(3, 4), 0, m.index(2, 4, high=3)), {}), ((m(2, 3, 4), -1, m.index(2, 2, 6, high=4)), {})],
    batch="together", meta="mixed", canonical=True,
)  # fmt: skip
def gather(input, dim, index: Tensor, *, sparse_grad=False):
    """The elements at ``index`` along ``dim``; for ``dim=1``: ``out[i][j] = input[i][index[i][j]]``.

    Args:
        dim: the dimension that indices count along.
        index: ``int64`` or ``int32``, with as many dimensions as ``input``, in none but ``dim`` larger than it.
        sparse_grad: make the gradient of ``input`` a sparse tensor.
    Returns:
        The sizes of ``index``, in the dtype of ``input``.
    Raises:
        RuntimeError: an index is out of range (negative ones are), or the sizes do not fit.
    Examples:
        >>> probabilities = taeda.tensor([[0.1, 0.9], [0.7, 0.3]])
        >>> labels = taeda.tensor([1, 0])
        >>> taeda.gather(probabilities, 1, labels[:, None])  # that of each row's label
        tensor([[0.9000],
                [0.7000]])
    """


gather.vjp(input=lambda g, input_shape, dim, index: scatter_add(blank(g, input_shape), dim, index, g))


def _filled(shape, dtype, value):
    """A number as a tensor of that shape, without memory for more than one element."""
    one = _core.empty((), dtype)
    one.fill_(value)
    return core.view_expand(one, shape)


@primitive(
    selection.scatter, mutates=True, out="same",
    samples=lambda m: [((m(3, 4), 1, m.mask(3, 1).long(), m(3, 1)), {}), ((m(3, 4), 0, m.index(1, 4, high=3), 2), {})],
    batch="together", out_aligned=("input",), out_apart=("index", "src"), canonical=True,
)  # fmt: skip
def scatter(input, dim, index: Tensor, src=None, *, reduce=None, value=None):
    """A copy of ``input`` with ``src`` written at ``index`` along ``dim``; for ``dim=1``: ``out[i][index[i][j]] =
    src[i][j]``.

    Args:
        dim: the dimension that indices count along.
        index: ``int64`` or ``int32``, with as many dimensions as ``input``, no larger than ``src``.
        src: a tensor of the dtype of ``input``, or a number. Of several values for one place the last is what stays.
        reduce: ``"add"`` or ``"multiply"`` to combine with what is there.
        value: a number in place of ``src``.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: an index is out of range (nothing is written), or sizes or dtypes do not fit.
    Examples:
        >>> labels = taeda.tensor([[2], [0]])
        >>> taeda.zeros(2, 3).scatter(1, labels, 1.0)  # a one-hot code
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """


def _scatter_input(g, dim, index, reduce):
    if reduce == "multiply":
        raise RuntimeError("scatter(): the derivative of reduce='multiply' is not defined; use scatter_reduce")
    return g if reduce == "add" else scatter(g, dim, index, 0)


def _scatter_src(g, dim, index, reduce, src_shape):
    if reduce == "multiply":
        raise RuntimeError("scatter(): the derivative of reduce='multiply' is not defined; use scatter_reduce")
    return _onto(gather(g, dim, index), src_shape)


def _onto(g, shape):
    """A gradient for the part of ``src`` that the index covers, as one for all of it."""
    if tuple(g.shape) == tuple(shape):
        return g
    whole = g.new_zeros(shape)
    return whole.index_put(tuple(_ranges(g.shape)), g) if shape else reshape(g, ())


def _ranges(shape):
    n = len(shape)
    return [reshape(arange(size), (1,) * d + (size,) + (1,) * (n - d - 1)) for d, size in enumerate(shape)]


scatter.vjp(input=_scatter_input, src=_scatter_src)


@primitive(
    selection.scatter_add, mutates=True, out="same",
    samples=lambda m: [((m(3, 4), 1, m.index(3, 6, high=4), m(3, 6)), {})], batch="together", out_aligned=("input",),
    out_apart=("index", "src"), canonical=True,
)  # fmt: skip
def scatter_add(input, dim, index: Tensor, src: Tensor):
    """A copy of ``input`` with ``src`` added at ``index`` along ``dim``; for ``dim=0``: ``out[index[i][j]][j] +=
    src[i][j]``.

    The order of the additions is that of ``src``, whatever the number of threads, so the result is always the same.
    The rest as of :func:`scatter`.

    Args:
        src: a tensor of the dtype of ``input``.
    Examples:
        >>> groups = taeda.tensor([0, 1, 0])
        >>> taeda.zeros(2).scatter_add(0, groups, taeda.tensor([1.0, 2.0, 3.0]))  # a sum per group
        tensor([4., 2.])
    """


scatter_add.vjp(input=lambda g: g, src=lambda g, dim, index, src_shape: _onto(gather(g, dim, index), src_shape))

_REDUCE = {"sum": ADD, "prod": MULTIPLY, "mean": ADD, "amax": MAXIMUM, "amin": MINIMUM}


def _identity_of(reduce, dtype):
    """The neutral element of a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return float("-inf") if reduce == "amax" else float("inf")
    if dtype is _core.bool_:
        return reduce == "amin"
    bits = 8 * dtype.itemsize
    low = -(1 << (bits - 1)) if dtype.is_signed else 0
    high = (1 << (bits - 1)) - 1 if dtype.is_signed else (1 << bits) - 1
    return low if reduce == "amax" else high


def _check_reduce(reduce, dtype):
    if reduce not in _REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    _check_ordered("scatter_reduce", reduce, dtype)


def _check_ordered(name, reduce, dtype):
    if dtype.is_complex and reduce in ("amax", "amin"):
        raise NotImplementedError(f"{name}(): reduce='{reduce}' is not defined for {dtype}, which has no order")


def _divide_by_counts(input, counts):
    if input.is_floating_point() or input.is_complex():
        _core.copy_tensor(input, input / counts)
    else:
        _core.copy_tensor(input, input.div(counts, rounding_mode="floor"))


@primitive(
    mutates=True,
    out="same",
    samples=lambda m: [
        ((m(3, 4), 0, m.index(5, 4, high=3), m(5, 4), how), {"include_self": own})
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    batch="together",
    out_aligned=("input",),
    out_apart=("index", "src"),
    canonical=True,
)
def scatter_reduce(input, dim, index: Tensor, src, reduce, *, include_self=True):
    """A copy of ``input`` with ``src`` combined into it at ``index`` along ``dim``. The rest as of :func:`scatter`.

    Args:
        src: a tensor of the dtype of ``input``.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: whether what was there takes part; where nothing is written it stays in either case.
    Raises:
        RuntimeError: an index is out of range (nothing is written), sizes or dtypes do not fit, or ``reduce`` is
            another.
    Examples:
        >>> groups = taeda.tensor([0, 1, 0])
        >>> values = taeda.tensor([1.0, 2.0, 3.0])
        >>> taeda.zeros(2).scatter_reduce(0, groups, values, "amax")
        tensor([3., 2.])
    """
    if not isinstance(src, Tensor):
        raise not_tensor("scatter_reduce(): argument 'src' (position 4)", src)
    _check_reduce(reduce, input.dtype)
    if not include_self:
        _expect_along("scatter_reduce", input, dim, index, src)
        selection.write("scatter_reduce", input, dim, index, _identity_of(reduce, input.dtype), PUT)
    selection.write("scatter_reduce", input, dim, index, src, _REDUCE[reduce])
    if reduce == "mean":
        _divide_by_counts(input, _counts(input, dim, index, include_self))


def _counts(like, dim, index, include_self):
    """The number of items that went into each element, at least 1."""
    counts = _core.empty(like.shape, _core.int32 if index.numel() < 1 << 31 else _core.int64)
    counts.fill_(int(include_self))
    selection.write("scatter_reduce", counts, dim, index, 1, ADD)
    if not include_self:
        return counts.clamp(min=1)
    return counts


def _reduce_gradients(g, out, input, src, reduce, include_self, pick, place, counted, cover):
    """Gradients of ``input`` and ``src`` for one reduction.

    ``pick`` reads a tensor like ``input`` at the index, ``place`` adds a tensor like the covered part of ``src`` into
    zeros like ``input``, ``counted`` says how many items went into each element, ``cover`` zeroes what the index
    covers.
    """
    if reduce == "sum":
        mine, theirs = g, pick(g)
    elif reduce == "mean":
        share = g / counted().to(g.dtype)
        mine, theirs = share, pick(share)
    elif reduce == "prod":
        mine, theirs = _product_gradients(g, out, input, src, pick, place)
    else:
        own, other = (input == out).to(g.dtype), (src == pick(out)).to(g.dtype)
        if not include_self:
            own = cover(own)
        share = g / (own + place(other)).clamp(min=1)
        mine, theirs = own * share, other * pick(share)
    return (mine if include_self else cover(mine)), theirs


def _product_gradients(g, out, input, src, pick, place):
    """An item's gradient is the product of the others: the whole product with a one in its place, where it is zero."""
    own = where_select(input == 0, 1, input)
    mine = mul_conj(g, place.product(own, src) / own)
    zero = src == 0
    only = zero & (pick(place(zero.to(g.dtype))) == 1)
    others = place.product(input, where_select(only, 1, src))
    theirs = mul_conj(pick(g), where_select(only, pick(others), pick(out) / where_select(zero, 1, src)))
    return mine, theirs


class _Along:
    """The reading and writing that :func:`_reduce_gradients` needs, for an index along a dimension."""

    def __init__(self, like, dim, index, include_self, indexed):
        self.like, self.dim, self.index, self.include_self, self.indexed = like, dim, index, include_self, indexed

    def pick(self, x):
        return index_select(x, self.dim, self.index) if self.indexed else gather(x, self.dim, self.index)

    def __call__(self, x):
        zero = x.new_zeros(self.like.shape)
        if self.indexed:
            return index_add(zero, self.dim, self.index, x)
        return scatter_add(zero, self.dim, self.index, x)

    def product(self, x, src):
        if self.indexed:
            return index_reduce(x, self.dim, self.index, src, "prod", include_self=self.include_self)
        return scatter_reduce(x, self.dim, self.index, src, "prod", include_self=self.include_self)

    def cover(self, x):
        return index_fill(x, self.dim, self.index, 0) if self.indexed else scatter(x, self.dim, self.index, 0)

    def counted(self):
        ones = _filled(self.like.shape, _core.int64, int(self.include_self))
        shape = list(self.like.shape)
        if self.indexed:
            if shape:
                shape[self.dim] = self.index.numel()
            counts = index_add(ones, self.dim, self.index, ones.new_ones(shape))
        else:
            counts = scatter_add(ones, self.dim, self.index, ones.new_ones(self.index.shape))
        return counts.clamp(min=1)


def _covered(src, index):
    """The part of ``src`` that the index covers."""
    for d, size in enumerate(index.shape):
        if src.shape[d] != size:
            src = src.narrow(d, 0, size)
    return src


@scatter_reduce.vjp_all("input", "src")
def _scatter_reduce_backward(g, out, input, dim, index, src, reduce, include_self):
    a = _Along(input, _core.wrapped_dim(dim, input.dim(), "scatter_reduce"), index, include_self, False)
    part = _covered(src, index)
    mine, theirs = _reduce_gradients(g, out, input, part, reduce, include_self, a.pick, a, a.counted, a.cover)
    return mine, _onto(theirs, src.shape)


@composite(out="same", out_apart=("input",))
def take_along_dim(input, indices, dim=None):
    """:func:`gather` with ``indices`` broadcast against ``input``: takes what :func:`argsort` or :func:`argmax` found.

    Args:
        indices: ``int64``, with as many dimensions as ``input``.
        dim: the dimension that indices count along. Without it both are taken as one dimension.
    Returns:
        The sizes to which ``indices`` and ``input`` broadcast, but for ``dim``; the dtype of ``input``.
    Raises:
        RuntimeError: an index is out of range, or the sizes do not broadcast.
    Examples:
        >>> x = taeda.tensor([[3, 1, 2], [0, 5, 4]])
        >>> taeda.take_along_dim(x, x.argsort(1), 1)
        tensor([[1, 2, 3],
                [0, 4, 5]])
    """
    if dim is None and indices.dtype is _core.int32:
        indices = indices.long()
    if indices.dtype is not _core.int64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return take_along_dim(reshape(input, (-1,)), reshape(indices, (-1,)), 0)
    if input.dim() != indices.dim():
        raise RuntimeError(
            f"take_along_dim(): input and indices should have the same number of dimensions, but got {input.dim()} "
            f"dimensions for input, and {indices.dim()} dimensions for indices"
        )
    at = _core.wrapped_dim(dim, input.dim(), "take_along_dim")
    ours, theirs = list(input.shape), list(indices.shape)
    size, count = ours[at], theirs[at]
    ours[at] = theirs[at] = 1
    if ours != theirs:
        shape = list(broadcast_shapes(ours, theirs))
        input = input.expand([*shape[:at], size, *shape[at + 1 :]])
        indices = indices.expand([*shape[:at], count, *shape[at + 1 :]])
    return gather(input, at, where_select(indices < 0, indices + size, indices))


# ---- whole slices ----------------------------------------------------------------------------------------------------


@primitive(
    selection.index_select, out_apart=("input", "index"), out="same",
    samples=lambda m: [((m(3, 4), d, m.index(5, high=3)), {}) for d in (0, 1)], batch="indexed", meta="mixed",
    canonical=True, moves=True,
)  # fmt: skip
def index_select(input, dim, index: Tensor):
    """The slices of ``input`` at ``index`` along ``dim``: ``input[index]`` for ``dim=0``.

    Args:
        dim: the dimension that indices count along.
        index: a vector, ``int64`` or ``int32``; an index may occur several times.
    Returns:
        The sizes of ``input`` with ``len(index)`` in ``dim``. A copy.
    Raises:
        IndexError: an index is out of range (negative ones are).
    Examples:
        >>> x = taeda.tensor([[1, 2], [3, 4], [5, 6]])
        >>> taeda.index_select(x, 0, taeda.tensor([2, 0]))
        tensor([[5, 6],
                [1, 2]])
    """


index_select.vjp(input=lambda g, input_shape, dim, index: index_add(blank(g, input_shape), dim, index, g))


def _explain_source(name, input, at, index, source):
    if source.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): self ({input.dtype}) and source ({source.dtype}) must have the same scalar type")
    ours, theirs = list(input.shape), list(source.shape)
    if index.numel() != (theirs[at] if at < len(theirs) else 1):
        raise (IndexError if name == "index_copy_" else RuntimeError)(
            f"{name}(): Number of indices ({index.numel()}) should be equal to source.size(dim): "
            f"({theirs[at : at + 1]})"
        )
    ours.pop(at)
    theirs.pop(at)
    if ours != theirs:
        raise RuntimeError(
            f"{name}(): source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
        )
    return source


# ---- sums and products of 16-bit floats ------------------------------------------------------------------------------


def _write_slices_wide(name, target, dim, index, source, action):
    """Combine slices into ``target``, of 16-bit floats, in float32: it is rounded once. Complex products are those of
    elements.

    Where the index names few slices, only those are converted. One item of each group of equal indices stands for the
    group: the last one, by a table of items by index.
    """
    if target.is_complex():
        index = reshape(index, [-1 if d == dim else 1 for d in range(target.dim())]).expand(source.shape)
        selection.write(name, target, dim, index, source, action)
        return
    source = source.to(_core.float32)
    n = index.numel()
    if n >= target.shape[dim]:
        wide = target.to(_core.float32)
        selection.write_slices(name, wide, dim, index, source, action)
        _core.copy_tensor(target, wide)
        return
    table = _core.empty((target.shape[dim],), _core.int64)
    selection.index_copy(table, 0, index, arange(n))
    group = selection.index_select(table, 0, index)
    wide = selection.index_select(target, dim, index).to(_core.float32)
    selection.write_slices(name, wide, dim, group, source, action)
    selection.index_copy(target, dim, index, selection.index_select(wide, dim, group).to(target.dtype))


def _write_along_wide(name, target, dim, index, src, action):
    """:func:`_write_slices_wide` for elements, as :func:`scatter` writes them."""
    n = index.numel()
    for d, size in enumerate(index.shape):
        src = src if src.shape[d] == size else src.narrow(d, 0, size)
    if target.is_complex() and action == MULTIPLY:
        _core.copy_tensor(target, _complex_products(name, target, dim, index, reshape(src, (n,))))
        return
    src = src.to(_core.float32)
    if 4 * n >= target.numel():
        wide = target.to(_core.float32)
        selection.write(name, wide, dim, index, src, action)
        _core.copy_tensor(target, wide)
        return
    table = _core.empty(target.shape, _core.int64)
    selection.write(name, table, dim, index, reshape(arange(n), index.shape), PUT)
    group = reshape(selection.gather(table, dim, index), (n,))
    wide = reshape(selection.gather(target, dim, index), (n,)).to(_core.float32)
    selection.write(name, wide, 0, group, reshape(src, (n,)), action)
    total = reshape(selection.index_select(wide, 0, group), index.shape)
    selection.write(name, target, dim, index, total.to(target.dtype), PUT)


def _complex_products(name, target, dim, index, src):
    """``target`` times ``src``, a vector, at ``index``: in rounds, each of which writes to a place once."""
    size = target.numel()
    made, table = reshape(target.clone(), (size,)), _core.empty((size,), _core.int64)
    places = reshape(selection.gather(reshape(arange(size), target.shape), dim, index), src.shape)
    while n := places.numel():
        order = arange(n)
        selection.write(name, table, 0, places, order, PUT)
        last = selection.gather(table, 0, places) == order
        at, rest = places[last], last.logical_not()
        selection.write(name, made, 0, at, selection.gather(made, 0, at) * src[last], PUT)
        places, src = places[rest], src[rest]
    return reshape(made, target.shape)


selection.OPS.update(write_slices=_write_slices_wide, write_along=_write_along_wide)


@primitive(
    selection.index_add,
    mutates=True,
    out="same",
    samples=lambda m: [
        ((m(3, 4), 0, m.index(5, high=3), m(5, 4)), {"alpha": 2}),
        ((m(3, 4), 1, m.index(2, high=4), m(3, 2)), {}),
    ],
    batch="indexed",
    out_aligned=("input",),
    out_apart=("index", "source"),
)
def index_add(input, dim, index: Tensor, source: Tensor, *, alpha=1):
    """A copy of ``input`` with ``alpha`` times the slices of ``source`` added at ``index`` along ``dim``, in the order
    of the index.

    Args:
        dim: the dimension that indices count along.
        index: a vector, ``int64`` or ``int32``.
        source: the sizes of ``input`` with ``len(index)`` in ``dim``, of its dtype.
        alpha: a number.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: an index is out of range (nothing is written), or sizes or dtypes do not fit.
    Examples:
        >>> edges = taeda.tensor([0, 2, 0])
        >>> messages = taeda.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> taeda.zeros(3, 2).index_add(0, edges, messages)
        tensor([[4., 4.],
                [0., 0.],
                [2., 2.]])
    """


def _put_at(input, dim, index, source, accumulate):
    """``input`` with ``source`` at ``index`` along ``dim``, or added there."""
    if not input.dim():
        return reshape(_put_at(reshape(input, (1,)), 0, index, reshape(source, (-1,)), accumulate), ())
    at = _core.wrapped_dim(dim, input.dim(), "index_put")
    return input.index_put((None,) * at + (reshape(index, (-1,)),), source, accumulate)


index_add.traits["lowering"] = lambda input, dim, index, source, alpha: _put_at(
    input, dim, index, source if alpha == 1 else source * alpha, True
)


def _index_add_source(g, dim, index, alpha, source_shape):
    picked = index_select(g, dim, reshape(index, (-1,)))
    picked = reshape(picked, source_shape)
    return picked if alpha == 1 else picked * alpha


index_add.vjp(input=lambda g: g, source=_index_add_source)


@primitive(
    mutates=True,
    out="same",
    samples=lambda m: [
        ((m(3, 4), 0, m.index(5, high=3), m(5, 4), how), {}) for how in ("prod", "mean", "amax", "amin")
    ],
    batch="indexed",
    out_aligned=("input",),
    out_apart=("index", "source"),
)
def index_reduce(input, dim, index: Tensor, source, reduce, *, include_self=True):
    """A copy of ``input`` with the slices of ``source`` combined into it at ``index`` along ``dim``.
    The rest as of :func:`scatter_reduce`.

    Args:
        index: a vector, ``int64`` or ``int32``.
        source: the sizes of ``input`` with ``len(index)`` in ``dim``, of its dtype.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    Raises:
        RuntimeError: an index is out of range, sizes or dtypes do not fit, or ``reduce`` is another.
    Examples:
        >>> taeda.zeros(2).index_reduce(0, taeda.tensor([0, 0, 1]), taeda.tensor([1.0, 4.0, 2.0]), "amax")
        tensor([4., 2.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _check_ordered("index_reduce", reduce, input.dtype)
    if not include_self:
        if source.dtype is not input.dtype or source.dim() != input.dim():
            raise RuntimeError(
                f"index_reduce_(): expected source of dtype {input.dtype} and {input.dim()} dimensions, got "
                f"{source.dtype} of sizes {list(source.shape)}"
            )
        whole = index.to(_core.int64) if index.dtype is _core.int32 else index
        selection.index_fill(input, dim, whole, _identity_of(reduce, input.dtype))
    selection.write_slices("index_reduce_", input, dim, index, source, _REDUCE[reduce])
    if reduce == "mean":
        counts = _core.empty(input.shape, _core.int64)
        counts.fill_(int(include_self))
        ones = _filled(source.shape, _core.int64, 1)
        selection.write_slices("index_reduce_", counts, dim, index, ones, ADD)
        _divide_by_counts(input, counts if include_self else counts.clamp(min=1))


@index_reduce.vjp_all("input", "source")
def _index_reduce_backward(g, out, input, dim, index, source, reduce, include_self):
    a = _Along(input, _core.wrapped_dim(dim, input.dim(), "index_reduce"), index, include_self, True)
    return _reduce_gradients(g, out, input, source, reduce, include_self, a.pick, a, a.counted, a.cover)


@primitive(
    selection.index_copy, mutates=True, out="same",
    samples=lambda m: [((m(3, 4), 1, m.index(1, high=4), m(3, 1)), {})],
    batch="indexed", out_aligned=("input",), out_apart=("index", "source"), autocast="widest",
)  # fmt: skip
def index_copy(input, dim, index: Tensor, source):
    """A copy of ``input`` with the slices of ``source`` written at ``index`` along ``dim``.
    The rest as of :func:`index_add`.

    Args:
        index: a vector, ``int64`` or ``int32``. Of equal ones the last is what stays.
    Raises:
        IndexError: an index is out of range (nothing is written).
    Examples:
        >>> taeda.zeros(3, 2).index_copy(0, taeda.tensor([2, 0]), taeda.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [0., 0.],
                [1., 2.]])
    """


index_copy.traits["lowering"] = lambda input, dim, index, source: _put_at(input, dim, index, source, False)
index_copy.vjp(
    input=lambda g, dim, index: index_fill(g, dim, index, 0),
    source=lambda g, dim, index, source_shape: reshape(index_select(g, dim, reshape(index, (-1,))), source_shape),
)


@primitive(
    selection.index_fill, mutates=True, one_value="deprecated",
    samples=lambda m: [((m(3, 4), 1, m.index(2, high=4), 3), {})], batch="indexed", keeps_strides=True,
)  # fmt: skip
def index_fill(input, dim, index: Tensor, value):
    """A copy of ``input`` with ``value`` in the slices at ``index`` along ``dim``.

    Args:
        dim: the dimension that indices count along.
        index: a vector, ``int64`` or ``int32``; negative indices count from the end.
        value: a number, or a tensor without dimensions.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        IndexError: an index is out of range (nothing is written).
    Examples:
        >>> taeda.ones(2, 3).index_fill(1, taeda.tensor([0, 2]), 9)
        tensor([[9., 1., 9.],
                [9., 1., 9.]])
    """


def _fill_mask(like, dim, index):
    """A mask of the places that ``index_fill`` writes, which broadcasts to ``like``."""
    at = _core.wrapped_dim(dim, like.dim(), "index_fill")
    n = like.shape[at] if like.dim() else 1
    written = index_fill(zeros((n,), _core.bool_), 0, reshape(index, (-1,)), True)
    return reshape(written, [n if d == at else 1 for d in range(like.dim())])


def _index_fill_value(g, dim, index):
    return where_select(_fill_mask(g, dim, index), g, 0).sum()  # each place once


def _index_fill_lowered(input, dim, index, value):
    if isinstance(value, Tensor):  # its gradient has each place once
        return where_select(_fill_mask(input, dim, index), value.to(input.dtype), input)
    return _put_at(input, dim, index, input.new_full((), value), False)


index_fill.traits["lowering"] = _index_fill_lowered
index_fill.vjp(input=lambda g, dim, index: index_fill(g, dim, index, 0), value=_index_fill_value)

selection.EXPLAIN.update(along=_explain_along, range=_explain_range, slices=_explain_slices, source=_explain_source)
