"""Every op, one stanza each, a file per family. Imports nothing above itself."""

from typing import Any

from .._namespaces import above


def __getattr__(name: str) -> Any:
    if name != "aten":
        raise AttributeError(f"module 'taeda.ops' has no attribute {name!r}", name=name)
    return above("aten")  # under PyTorch's name for it
