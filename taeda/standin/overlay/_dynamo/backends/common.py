"""``torch._dynamo.backends.common``: backends that compile the graphs of a function and of its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...functorch.compile import aot_module_simplified

__all__ = ["aot_autograd"]


def aot_autograd(**options: Any) -> Callable:
    """A backend for ``compile`` of compilers: ``fw_compiler``, ``bw_compiler``, ``partition_fn``,
    ``decompositions``."""

    def backend(module: Any, example_inputs: Any, **kwargs: Any) -> Callable:
        return aot_module_simplified(module, example_inputs, **options)

    return backend
