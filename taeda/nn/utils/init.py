"""Modules without initialisation."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters and buffers are left uninitialised, so that no random number is drawn: to be loaded.

    It is made on device meta. Its constructor gives ``device`` to all that it makes.

    Args:
        module_cls: the class.
        *args: its arguments.
        **kwargs: its keyword arguments; ``device`` is where the module ends.

    Returns:
        The module.

    Raises:
        RuntimeError: the class is no module, or does not take ``device``.

    Examples:
        >>> layer = nn.utils.skip_init(nn.Linear, 3, 2)
        >>> layer.weight.shape
        taeda.Size([2, 3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
