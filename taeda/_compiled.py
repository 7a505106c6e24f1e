"""The Module that ``compile`` returns for a Module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import nn


class OptimizedModule(nn.Module):
    """A Module that forwards everything to the one it was made from, ``_orig_mod``, and shares its parameters.

    Args:
        mod: the Module.
        make: returns a Module's compiled call; copies call it for their own.
    """

    def __init__(self, mod: nn.Module, make: Callable[[Any], Callable]) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self._make, self._call = make, make(mod)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_call"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._call = self._make(self._modules["_orig_mod"])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    @property
    def dynamo_ctx(self) -> Callable[[Any], Callable]:
        """Compiles another function, such as a method of the Module, with the same options."""
        return self._make

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in ("_orig_mod", "training") or name.startswith("_") or name in type(self).__dict__
        if own or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})
