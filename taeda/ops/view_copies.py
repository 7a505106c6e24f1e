"""The ``_copy`` forms of views: the same elements in memory of their own."""

from __future__ import annotations

from .. import _core
from . import joining, views
from .table import composite


def _copying(view, name, doc=None):
    """The form of ``view`` that copies; ``doc`` where the view's docstring does not say enough (``ops/docs.py``)."""

    def function(input, *args, **kwargs):
        made = view(input, *args, **kwargs)
        return tuple(_copy(x) for x in made) if isinstance(made, tuple) else _copy(made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc or f"A copy of what :func:`{name.removesuffix('_copy')}` views."
    return composite(method=False, out="same")(function)


def _copy(x):
    return x.clone(memory_format=_core.contiguous_format)


def _view(input, *size, **named):
    """The elements in other sizes, or as another dtype: a copy may have sizes that no view has."""
    given = size or tuple(named.values())
    return views.view_(input, *given) if isinstance(given[0], _core.dtype) else views.reshape(input, *given)


alias_copy = _copying(
    views.view_alias,
    "alias_copy",
    """A copy of ``input``, in memory of its own.

    Args:
        input: a tensor of any sizes.
        args: none.
    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.alias_copy(taeda.tensor([1, 2]))
        tensor([1, 2])
    """,
)
as_strided_copy = _copying(views.as_strided, "as_strided_copy")
diagonal_copy = _copying(views.diagonal, "diagonal_copy")
expand_copy = _copying(
    views.expand,
    "expand_copy",
    """A copy of what :meth:`Tensor.expand` views, in memory of its own: dimensions of size 1 are repeated.

    Args:
        input: a tensor of any sizes.
        args: the sizes of the result, a list or tuple; -1 keeps a size.
    Returns:
        A tensor of those sizes.
    Examples:
        >>> taeda.expand_copy(taeda.tensor([[1], [2]]), (2, 3))
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """,
)
permute_copy = _copying(views.permute, "permute_copy")
select_copy = _copying(views.select, "select_copy")
slice_copy = _copying(
    views.slice_view,
    "slice_copy",
    """A copy of a slice, ``input[start:end:step]`` along ``dim``, in memory of its own.

    Args:
        input: a tensor of at least one dimension.
        args: ``dim``, ``start``, ``end`` and ``step``, also by name.
    Returns:
        The slice.
    Examples:
        >>> taeda.slice_copy(taeda.arange(5), 0, 1, 4)
        tensor([1, 2, 3])
    """,
)
split_copy = _copying(
    joining.split,
    "split_copy",
    """A copy of the pieces that :func:`split` views, each in memory of its own.

    Args:
        input: a tensor of at least one dimension.
        args: the size of each piece, and ``dim``, also by name.
    Returns:
        A tuple of tensors.
    Examples:
        >>> taeda.split_copy(taeda.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """,
)
split_with_sizes_copy = _copying(joining.split_with_sizes, "split_with_sizes_copy")
squeeze_copy = _copying(views.squeeze, "squeeze_copy")
t_copy = _copying(views.t, "t_copy")
transpose_copy = _copying(views.transpose, "transpose_copy")
unbind_copy = _copying(joining.unbind, "unbind_copy")
unfold_copy = _copying(
    views.unfold,
    "unfold_copy",
    """A copy of what :meth:`Tensor.unfold` views, in memory of its own: windows along a dimension.

    Args:
        input: a tensor of at least one dimension.
        args: the dimension, the size of a window and the step, also by name.
    Returns:
        The windows, as the last dimension.
    Examples:
        >>> taeda.unfold_copy(taeda.arange(4), 0, 2, 1)
        tensor([[0, 1],
                [1, 2],
                [2, 3]])
    """,
)
unsqueeze_copy = _copying(views.unsqueeze, "unsqueeze_copy")
view_as_complex_copy = _copying(views.view_as_complex, "view_as_complex_copy")
view_as_real_copy = _copying(views.view_as_real, "view_as_real_copy")
view_copy = _copying(
    _view,
    "view_copy",
    """A copy of what :meth:`Tensor.view` views, in memory of its own. It may have sizes that no view has.

    Args:
        input: a tensor of any sizes.
        args: the sizes, or a dtype.
    Returns:
        A tensor of those sizes.
    Examples:
        >>> taeda.view_copy(taeda.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
    """,
)


@composite(out="same")
def narrow_copy(input, dim, start, length):
    """A copy of the result of :func:`narrow`, with its own memory.

    Args:
        input: a tensor of at least one dimension.
        dim: the dimension that is cut.
        start: the first index.
        length: how many.
    Returns:
        The sizes of ``input`` with ``length`` in ``dim``. The dtype is that of ``input``.
    Raises:
        RuntimeError: the range goes past the end, or ``dim`` is too large (an IndexError for :func:`narrow`).
    Examples:
        >>> taeda.narrow_copy(taeda.tensor([1, 2, 3, 4]), 0, 1, 2)
        tensor([2, 3])
    """
    if dim >= max(input.dim(), 1):
        raise RuntimeError(f"narrow_copy: expected dim below {input.dim()}, the number of dimensions, got {dim}")
    return _copy(views.narrow(input, dim, start, length))


@composite()
def detach_copy(input):
    """A copy of ``input``, in memory of its own, that is not part of the graph.

    Returns:
        The sizes and the dtype of ``input``.
    Examples:
        >>> taeda.detach_copy(taeda.tensor([2.0], requires_grad=True))
        tensor([2.])
    """
    return input.detach().clone()
