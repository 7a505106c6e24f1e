"""Passes over Graphs."""

from . import graph_drawer, graph_manipulation, param_fetch, shape_prop, split_module, tools_common

__all__ = ["graph_drawer", "graph_manipulation", "param_fetch", "shape_prop", "split_module", "tools_common"]
