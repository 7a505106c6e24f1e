"""Models made faster for inference: batch norm in convolutions, no dropout."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from taeda.nn.utils.fusion import fuse_conv_bn_eval

from ... import nn
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference", "remove_dropout",
    "replace_node_module",
]  # fmt: skip

_CONV_BN = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))


def _parent_name(target: str) -> tuple[str, str]:
    """``a.b.c`` as ``("a.b", "c")``."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Whether ``node`` and its first input call modules of these two classes, exactly."""
    if not node.args:
        return False
    for expected, current in zip(pattern, (node.args[0], node), strict=False):
        if not isinstance(current, Node) or current.op != "call_module" or not isinstance(current.target, str):
            return False
        if current.target not in modules or type(modules[current.target]) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Let ``node`` call ``new_module``, at the path of the module that it called."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """``model`` with batch norms inside the convolutions before them. For inference.

    Args:
        model: in evaluation mode.
        inplace: change the modules of ``model`` itself.
        no_trace: ``model`` is a GraphModule already.
    Returns:
        The model, or a copy of it.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in _CONV_BN:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            conv, bn = modules[node.args[0].target], modules[node.target]
            if len(node.args[0].users) > 1 or not bn.track_running_stats:
                continue  # others use the convolution's result
            replace_node_module(node.args[0], modules, fuse_conv_bn_eval(conv, bn))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """``model`` without its dropout layers."""

    class DropoutRemover(Transformer):
        def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                if len(args) != 1:
                    raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
                return args[0]
            return super().call_module(target, args, kwargs)

    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of some Nodes.

    Args:
        orig_module: the module that they are from.
        nodes: the Nodes, in order.
        inputs: the values that they take from elsewhere.
        outputs: the values that they give.
    Returns:
        The module.
    """
    graph = Graph()
    values = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(
    model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: Any = None
) -> nn.Module:
    """``model`` with batch norms fused and dropout removed.

    Args:
        model: in evaluation mode.
        pass_config: ``{"conv_bn_fuse": False}`` and ``{"remove_dropout": False}`` leave a step out.
        tracer: accepted.
    Returns:
        The new module.
    """
    wanted = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if wanted["conv_bn_fuse"]:
        model = fuse(model)
    if wanted["remove_dropout"]:
        model = remove_dropout(model)
    return model
