"""``torch.utils._python_dispatch``: overriding below autograd, which is refused."""

from __future__ import annotations

from typing import Any

from taeda import Tensor
from taeda._refuse import refuse

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]

_WHY = (
    "there is no dispatcher below autograd. TorchFunctionMode (taeda.overrides) sees every call of a function; a hook on a "
    "module or tensor sees values and gradients"
)


class TorchDispatchMode:
    """Refused when it is entered: see ``taeda.overrides.TorchFunctionMode``."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        refuse(f"{type(self).__name__} (a TorchDispatchMode)", _WHY)

    def __exit__(self, *exc: Any) -> None:
        pass


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether ``t`` wraps other tensors through ``__tensor_flatten__``."""
    return (
        isinstance(t, Tensor)
        and type(t) is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def _disable_current_modes() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def transform_subclass(t: Any, callback: Any, *args: Any) -> Any:
    """Refused."""
    refuse("transform_subclass", _WHY)
