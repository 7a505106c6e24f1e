"""Predicates for the Nodes that a backend can run: ``OperatorSupport`` and functions that combine predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from taeda.nn import Module

from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase:
    """Says of a Node whether it is supported."""

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether ``node`` is supported.

        Args:
            submodules: the modules of the program by path.
            node: the Node.
        Returns:
            True where it is.
        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__}.is_node_supported is not implemented")


class OperatorSupport(OperatorSupportBase):
    """Supports the names of a table, in ``get_node_target``'s form, with the dtypes that it lists.

    Args:
        support_dict: from names to None, or to the dtypes of arguments by position and by name: a pair
            ``(((float32,), None), {"other": (float32,)})``. None stands for any.
    """

    _support_dict: Mapping[str, Any] = {}

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or self._support_dict

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_position, by_name = wanted
        pairs = [(x, dtypes) for x, dtypes in zip(node.args, by_position or (), strict=False)]
        pairs += [(node.kwargs[name], dtypes) for name, dtypes in (by_name or {}).items() if name in node.kwargs]
        return all(dtypes is None or _dtype(x) is None or _dtype(x) in dtypes for x, dtypes in pairs)


def _dtype(x: Any) -> Any:
    meta = x.meta.get("tensor_meta") if isinstance(x, Node) else None
    return meta.dtype if isinstance(meta, TensorMetadata) else None


def create_op_support(is_node_supported: Callable[[Mapping[str, Module], Node], bool]) -> OperatorSupportBase:
    """An OperatorSupportBase of a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what all of these support."""
    return create_op_support(lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what one of these supports."""
    return create_op_support(lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support))


class OpSupports:
    """Conditions to :func:`chain` with others."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Refuse Nodes with an input of this dtype."""
        return create_op_support(lambda _, node: all(_dtype(x) is not dtype for x in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Refuse the Nodes of these names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
