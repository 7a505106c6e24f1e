"""The ``_scatter`` forms of views: a copy of a tensor in which what the view shows is replaced."""

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
    """A copy of ``input`` with ``src`` on a diagonal."""
    return _scattered("diagonal_scatter", input, src, diagonal, offset, dim1, dim2)


@composite(out="same", canonical=True)
def select_scatter(input, src, dim, index: int):
    """A copy of ``input`` with ``src`` at ``index`` along ``dim``."""
    return _scattered("select_scatter", input, src, select, dim, index)


@composite(out="same", canonical=True)
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of ``input`` with ``src`` in a slice along ``dim``."""
    return _scattered("slice_scatter", input, src, slice_view, dim, start, end, step)


@composite(out="same", canonical=True)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of ``input`` with ``src`` where :func:`as_strided` with the same arguments would look.

    Raises:
        RuntimeError: ``src`` is not of sizes ``size``, or places outside of the memory of ``input`` are meant.
    """
    return _scattered("as_strided_scatter", input, src, as_strided, size, stride, storage_offset)
