"""Programs made of exported programs: ``move_to_device_pass``."""

from __future__ import annotations

from typing import Any

from taeda._core import Tensor
from taeda.fx.node import map_aggregate
from taeda.nn import Parameter

from .. import _core
from ._values import FakeTensor, fake
from .exported_program import ExportedProgram

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep: ExportedProgram, location: Any) -> ExportedProgram:
    """The program with its state, its constants and the devices that its steps name on another device.

    Args:
        ep: the program; it is changed, as in PyTorch, and given back.
        location: a device, or a dict from devices to devices.
    Returns:
        ``ep``.
    """

    def moved(device: Any) -> Any:
        if isinstance(location, dict):
            return _core.device(location.get(str(device), location.get(device.type, device)))
        return _core.device(location)

    def argument(x: Any) -> Any:
        return moved(x) if isinstance(x, _core.device) else x

    def value(x: Any) -> Any:
        if isinstance(x, FakeTensor):
            return fake(x, x._sizes, moved(x.device))
        return type(x)(map(value, x)) if isinstance(x, (tuple, list)) else x

    def state(x: Any) -> Any:
        made = x.detach().to(moved(x.device))
        return Parameter(made, x.requires_grad) if isinstance(x, Parameter) else made

    for table in (ep.state_dict, ep.constants):
        table.update({name: state(x) for name, x in table.items() if isinstance(x, Tensor)})
    modules = [ep.graph_module, *(m for m in ep.graph_module.modules() if hasattr(m, "graph"))]
    for module in modules:
        for node in module.graph.nodes:
            node.args, node.kwargs = map_aggregate((node.args, node.kwargs), argument)
            if "val" in node.meta:
                node.meta["val"] = value(node.meta["val"])
        module.recompile()
    ep.validate()
    return ep
