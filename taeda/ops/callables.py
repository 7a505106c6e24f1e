"""Python functions applied element by element, and further methods that only hand on to others."""

from __future__ import annotations

from numbers import Number

from .. import _core
from .._core import Tensor
from .._core.exchange import tensor
from .._core.tensor import refuse_recorded
from .indexing import index
from .table import composite


def is_distributed(self: Tensor) -> bool:
    """Always False: the parts of a tensor that several processes hold are tensors of their own (``DTensor``).

    Examples:
        >>> taeda.ones(2).is_distributed()
        False
    """
    return False


_core.install("index", index)
_core.install("const_data_ptr", Tensor.data_ptr)
_core.install("__rdiv__", lambda self, other: self.reciprocal() * other)  # Python 2's name of __rtruediv__
_core.install("is_distributed", is_distributed)
_core.install(
    "name",
    property(
        lambda self: None,
        doc="""Always None: leaves have no names.

    Examples:
        >>> taeda.ones(2).name is None
        True
    """,
    ),
)


def _written(input: Tensor, name: str, values: list) -> Tensor:
    refuse_recorded(f"{name}()")
    if input.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on a tensor that requires grad: use tensor.detach().{name}() instead, or tensor ops"
        )
    for value in values:
        if not isinstance(value, Number) and not hasattr(value, "__float__"):
            raise TypeError(f"{name}(): the function must give real numbers, not {type(value).__name__}")
    return input.copy_(tensor(values, dtype=input.dtype).reshape(input.shape))


def _elements(x: Tensor, like: Tensor, name: str) -> list:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): expected a Tensor, got {type(x).__name__}")
    if x.dtype is not like.dtype:
        raise TypeError(f"{name}(): expected a tensor of {like.dtype}, got {x.dtype}")
    if x.requires_grad:
        raise RuntimeError(f"Can't call {name}() on a tensor that requires grad: detach() it first, or use tensor ops")
    return x.detach().expand(like.shape).reshape(-1).tolist()


@composite(takes_classes=True)
def apply_(input, callable):
    """Every element becomes ``callable(element)``, in place. Slow: for what no op does, on the CPU.

    Args:
        input: a tensor that does not require grad.
        callable: a function of a Python number.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` requires grad.
    Examples:
        >>> taeda.tensor([1.0, 2.0]).apply_(lambda x: 10 * x)
        tensor([10., 20.])
    """
    return _written(input, "apply_", [callable(x) for x in input.detach().reshape(-1).tolist()])


@composite(takes_classes=True)
def map_(input, tensor, callable):
    """Every element becomes ``callable(element, element of tensor)``, in place. Slow: for what no op does, on the CPU.

    Args:
        input: a tensor that does not require grad.
        tensor: a tensor of the same dtype, which broadcasts to ``input``.
        callable: a function of two Python numbers.
    Returns:
        ``input``.
    Raises:
        RuntimeError: one of the tensors requires grad.
        TypeError: the dtypes differ.
    Examples:
        >>> taeda.tensor([1.0, 2.0]).map_(taeda.tensor([3.0, 4.0]), lambda x, y: x * y)
        tensor([3., 8.])
    """
    pairs = zip(_elements(input, input, "map_"), _elements(tensor, input, "map_"), strict=True)
    return _written(input, "map_", [callable(a, b) for a, b in pairs])


@composite(takes_classes=True)
def map2_(input, x, y, callable):
    """Every element becomes ``callable(element, element of x, element of y)``, in place. Slow: for what no op does, on
    the CPU.

    Args:
        input: a tensor that does not require grad.
        x: a tensor of the same dtype, which broadcasts to ``input``.
        y: another.
        callable: a function of three Python numbers.
    Returns:
        ``input``.
    Raises:
        RuntimeError: one of the tensors requires grad.
        TypeError: the dtypes differ.
    Examples:
        >>> a, b = taeda.tensor([1.0]), taeda.tensor([2.0])
        >>> taeda.tensor([3.0]).map2_(a, b, lambda x, y, z: x + y * z)
        tensor([5.])
    """
    triples = zip(*(_elements(t, input, "map2_") for t in (input, x, y)), strict=True)
    return _written(input, "map2_", [callable(*t) for t in triples])


@composite()
def _is_all_true(input):
    """Whether all elements of a bool tensor are true, as a tensor."""
    return input.all()


@composite()
def _is_any_true(input):
    """Whether any element of a bool tensor is true, as a tensor."""
    return input.any()


@composite(method=False, additive=True, canonical=True, moves=True)
def detach(input):
    """A view of the memory of ``input`` that is not part of the graph: no gradient flows through it.

    Returns:
        A view of the sizes of ``input`` that does not require grad.
    Examples:
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> (x * taeda.detach(x)).sum().backward()
        >>> x.grad  # the second factor counts as a constant
        tensor([2.])
    """
    return input.detach()


@composite(method=False)
def detach_(input):
    """Takes ``input`` out of the graph, in place: it becomes a leaf that does not require grad.

    Args:
        input: a tensor that is no view.
    Returns:
        ``input``.
    Raises:
        RuntimeError: ``input`` is a view.
    Examples:
        >>> x = taeda.tensor([2.0], requires_grad=True)
        >>> y = x * x
        >>> taeda.detach_(y).requires_grad
        False
    """
    return input.detach_()
