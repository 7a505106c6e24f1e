"""The ``_scatter`` forms of views: a copy of a tensor in which the elements of the view are replaced."""

from __future__ import annotations

from .table import composite, primitive
from .views import as_strided, diagonal, on_diagonal, select, slice_view


@primitive(method=False, out=False)
def clone_for(input, src):
    """A copy of ``input`` to write ``src`` into: under ``vmap`` there is one for each example of either."""
    strides = input.stride()
    if input.is_contiguous() or any(n > 1 and step <= 0 for n, step in zip(input.shape, strides, strict=True)):
        return input.clone()
    return input.new_empty_strided(input.shape, strides).copy_(input)  # gaps between the elements stay


clone_for.traits["native_call"] = lambda input, src: ("clone.default", (input,))
clone_for.vjp(input=lambda g: g)


def _scattered(name, input, src, view, *where):
    result = clone_for(input, src)
    place = view(result, *where)
    if src.shape != place.shape:
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(place.shape)}"
        )
    place.copy_(src)
    return result


@composite(out="same", lowering=lambda input, src, offset, dim1, dim2: on_diagonal(src, input, offset, dim1, dim2))
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of ``input`` with ``src`` on the diagonal that :func:`diagonal` would view.

    Args:
        input: a tensor of at least two dimensions.
        src: what goes on the diagonal, of its sizes.
        offset: which diagonal: 0 the main one, positive ones above it.
        dim1: the dimension of the rows.
        dim2: that of the columns.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``src`` has other sizes than the diagonal.
    Examples:
        >>> taeda.diagonal_scatter(taeda.zeros(3, 3), taeda.tensor([1.0, 2.0]), 1)
        tensor([[0., 1., 0.],
                [0., 0., 2.],
                [0., 0., 0.]])
    """
    return _scattered("diagonal_scatter", input, src, diagonal, offset, dim1, dim2)


@composite(out="same", canonical=True)
def select_scatter(input, src, dim, index: int):
    """A copy of ``input`` with ``src`` in the slice that :func:`select` would view.

    Args:
        input: a tensor of at least one dimension.
        src: what goes there, of the sizes of the slice.
        dim: the dimension that is indexed.
        index: an int; negative ones count from the end.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``src`` has other sizes than the slice.
        IndexError: there is no such dimension or index.
    Examples:
        >>> taeda.select_scatter(taeda.zeros(2, 3), taeda.tensor([5.0, 6.0]), 1, 0)
        tensor([[5., 0., 0.],
                [6., 0., 0.]])
    """
    return _scattered("select_scatter", input, src, select, dim, index)


@composite(out="same", canonical=True)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of ``input`` with ``src`` in a slice along ``dim``: ``out[start:end:step] = src`` for ``dim=0``.
    The rest as of :func:`select_scatter`.

    Args:
        dim: the dimension that is cut.
        start: the first index. Default: 0.
        end: the index before which the slice ends. Default: the size.
        step: the distance of neighbours.
    Raises:
        RuntimeError: ``src`` has other sizes than the slice.
    Examples:
        >>> taeda.slice_scatter(taeda.zeros(5), taeda.tensor([1.0, 2.0]), start=1, end=4, step=2)
        tensor([0., 1., 0., 2., 0.])
    """
    return _scattered("slice_scatter", input, src, slice_view, dim, start, end, step)


@composite(out="same", canonical=True)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look.

    Args:
        src: what goes there, of sizes ``size``.
        size: the sizes.
        stride: the strides, in elements.
        storage_offset: the first element. Default: that of ``input``.
    Returns:
        The sizes and the dtype of ``input``.
    Raises:
        RuntimeError: ``src`` has other sizes, or places outside of the memory of ``input`` are meant.
    Examples:
        >>> taeda.as_strided_scatter(taeda.zeros(2, 3), taeda.tensor([1.0, 2.0]), (2,), (4,))
        tensor([[1., 0., 0.],
                [0., 2., 0.]])
    """
    return _scattered("as_strided_scatter", input, src, as_strided, size, stride, storage_offset)
