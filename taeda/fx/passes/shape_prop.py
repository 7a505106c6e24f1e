"""``ShapeProp``: runs a Graph on real inputs and notes the shape and dtype of every value."""

from __future__ import annotations

from typing import Any, NamedTuple

from taeda._core import Tensor, channels_last, channels_last_3d, contiguous_format

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The properties of a tensor."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    layout = None
    if include_contiguity:
        for candidate in (contiguous_format, channels_last, channels_last_3d):
            ranks = {channels_last: 4, channels_last_3d: 5}
            if ranks.get(candidate, result.dim()) == result.dim() and result.is_contiguous(memory_format=candidate):
                layout = candidate
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, tuple(result.stride()), layout, False, {})


class ShapeProp(Interpreter):
    """After :meth:`propagate`, ``node.meta["tensor_meta"]`` is a TensorMetadata and ``node.meta["type"]`` the class of
    the value. Run it within ``no_grad`` if no derivatives are wanted.

    Args:
        gm: the module.
        fake_mode: must be None.
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = None
        self.fake_module = None
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """The value of a Node; its properties are noted.

        Args:
            n: the Node.

        Returns:
            Its value.

        Raises:
            RuntimeError: the Node could not be run.
        """
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def extract(x: Any) -> Any:
            nonlocal found
            if not isinstance(x, Tensor):
                return x
            found = True
            return _extract_tensor_metadata(x)

        meta = map_aggregate(result, extract)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module on ``args``; gives its result."""
        return super().run(*args)
