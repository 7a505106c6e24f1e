"""``taeda.fx``: symbolic tracing, which taeda does not do. Its names exist for programs that only ask about them.

``wrap`` marks a function and leaves it as it is; ``isinstance(x, fx.Proxy)`` is False; tracing refuses.
"""

from __future__ import annotations

from typing import Any

from .. import nn
from .._refuse import refused_class, refused_function

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip

_WHY = "there is no symbolic tracing. To look inside a model use forward hooks (Module.register_forward_hook)"

CodeGen, Graph, Interpreter, Node, Proxy, Tracer, Transformer = (
    refused_class(f"fx.{name}", _WHY) for name in "CodeGen Graph Interpreter Node Proxy Tracer Transformer".split()
)
GraphModule = refused_class("fx.GraphModule", _WHY, (nn.Module,))
symbolic_trace = refused_function("fx.symbolic_trace", _WHY)
replace_pattern = refused_function("fx.replace_pattern", _WHY)


def wrap(fn_or_name: Any) -> Any:
    """Gives its argument back."""
    return fn_or_name
