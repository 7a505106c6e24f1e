"""``Variable``: the name of a tensor with a gradient before PyTorch 0.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor

__all__ = ["Variable"]


class _TensorsAreVariables(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class _Engine:
    """The engine of backward passes, with the methods that programs call."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call ``callback()`` when the backward pass under way is over.

        Args:
            callback: what to call.

        Raises:
            RuntimeError: there is none.
        """
        if _core.current_task() == -1:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        _core.at_end_of_task(callback)


class Variable(metaclass=_TensorsAreVariables):
    """A tensor on the memory of ``data``, outside its graph: the name that tensors with gradients once had. Every
    tensor is one.

    Args:
        data: a tensor of any shape and dtype; none is one without elements.
        requires_grad: whether operations on it are recorded.
        volatile: what ``no_grad`` has replaced; accepted.

    Examples:
        >>> x = taeda.autograd.Variable(taeda.ones(2), requires_grad=True)
        >>> x
        tensor([1., 1.], requires_grad=True)
        >>> isinstance(taeda.ones(1), taeda.autograd.Variable)
        True
    """

    _execution_engine = _Engine()

    if TYPE_CHECKING:  # what documentation tools and editors read

        def __init__(self, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> None: ...

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
