"""``PassBase``: a change of a GraphModule, with checks before and after."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """Subclass it and define :meth:`call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Check, change, check."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The change."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the conditions before the pass; raises if one fails."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the conditions after the pass; raises if one fails."""
