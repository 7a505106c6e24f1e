"""``taeda.fx``: a program as a graph that Python can change.

:func:`symbolic_trace` runs a module on Proxies and records the calls as a :class:`Graph`; a :class:`GraphModule` is a
module again, with code that is written from the Graph. See ``docs/fx.md``.
"""

from __future__ import annotations

from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect",
    "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
