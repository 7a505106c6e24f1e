"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._typed import Tensor
from ...ops.joining import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters flattened and joined into one vector, as numerical optimisers want them.

    Args:
        parameters: tensors of any shapes, on one device.

    Returns:
        A vector ``(n,)`` with all elements, in order, of the dtype to which all promote. It has a gradient.

    Raises:
        ValueError: there are no parameters.

    Examples:
        >>> nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters()).shape
        taeda.Size([8])
    """
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give each parameter its piece of a vector, as a view: the opposite of :func:`parameters_to_vector`.

    Args:
        vec: a vector ``(n,)``.
        parameters: tensors of any shapes, whose data is replaced.

    Raises:
        TypeError: ``vec`` is no tensor.

    Examples:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(taeda.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.weight.data, layer.bias.data
        (tensor([[1., 2.]]), tensor([3.]))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected taeda.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[at : at + n].view(p.shape).detach()
        at += n
