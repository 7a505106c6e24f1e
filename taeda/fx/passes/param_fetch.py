"""Attributes of modules, noted on the Nodes that call them."""

from __future__ import annotations

from typing import Any

from ... import nn
from ..graph_module import GraphModule, _get_attr

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]

#: Attributes of a class of layer that a compiler of Graphs needs.
_WANTED: dict[type, list[str]] = {
    nn.Conv2d: ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"],
    nn.Linear: ["weight", "bias"], nn.BatchNorm2d: ["weight", "bias", "running_mean", "running_var", "eps"],
    nn.AdaptiveAvgPool2d: [], nn.ReLU: ["inplace"],
    nn.MaxPool2d: ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
}  # fmt: skip


def default_matching(name: str, target_version: int) -> str:
    """The name itself."""
    return name


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """A layer's class name and attributes.

    Args:
        mod: the layer.

    Returns:
        Values by name.

    Raises:
        RuntimeError: the layer is not one of those that are known.
    """
    wanted = _WANTED.get(type(mod))
    if wanted is None:
        raise RuntimeError(f"extract_attrs_for_lowering: nothing is known of {type(mod).__name__}")
    return {"name": f"{type(mod).__module__}.{type(mod).__name__}", **{name: getattr(mod, name) for name in wanted}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Set ``attrs_for_lowering`` of every Node that calls a layer."""
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            inner = _get_attr(fx_module, node.target)
            if isinstance(inner, GraphModule):
                lift_lowering_attrs_to_nodes(inner)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(inner)
