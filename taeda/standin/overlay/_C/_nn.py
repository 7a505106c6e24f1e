"""``torch._C._nn``: functions of ``torch.nn.functional`` as the code of graphs names them."""

from typing import Any

from taeda.fx._names import COMPILED
from taeda.nn import functional
from taeda.nn.modules.module import _parse_to as _parse_to

_NAMES = {theirs: ours for ours, theirs in COMPILED.items()}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'", name=name)
    return getattr(functional, _NAMES[name])
