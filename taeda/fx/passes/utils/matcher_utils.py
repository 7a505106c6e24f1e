"""``SubgraphMatcher``: where a small Graph occurs in a large one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One occurrence.

    ``anchors`` are the last Nodes of the pattern, ``nodes_map`` leads from Nodes of the pattern to those of the Graph,
    ``placeholder_nodes`` are what the pattern's arguments are, ``returning_nodes`` what its results are.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes),
            dict(self.name_node_map),
        )  # fmt: skip


class SubgraphMatcher:
    """Finds a pattern.

    Args:
        pattern: the Graph to look for.
        match_output: the pattern's output must be the Graph's.
        match_placeholder: the pattern's arguments must be arguments of the Graph.
        remove_overlapping_matches: of matches that share Nodes, keep the first.
        ignore_literals: numbers and the like need not be equal.
    Raises:
        ValueError: the pattern has no Nodes but arguments, or some that nothing uses.
        AssertionError: the pattern has a Node that nothing uses.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors: list[Node] = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two attributes are of one class, and equal unless they are tensors."""
        owner, other = pn.graph.owning_module, gn.graph.owning_module
        if owner is None or other is None:
            return pn.target == gn.target
        mine, theirs = _get_attr(owner, pn.target), _get_attr(other, gn.target)
        return type(mine) is type(theirs) and (pn.target == gn.target or hasattr(mine, "shape"))

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether Nodes outside the match use only its results."""
        inside = {gn for pn, gn in nodes_map.items() if pn.op != "placeholder" and isinstance(gn, Node)}
        returned = {nodes_map[pn] for pn in self.pattern_returning_nodes if pn in nodes_map}
        return all(user in inside for gn in inside - returned if gn.op != "output" for user in gn.users)

    def _match_value(self, pattern: Any, value: Any, match: InternalMatch, name: str) -> bool:
        if isinstance(pattern, Node):
            if isinstance(value, Node):
                return self._match_nodes(pattern, value, match, name)
            if pattern.op == "placeholder" and not self.match_placeholder:
                if pattern in match.nodes_map:
                    return bool(match.nodes_map[pattern] == value)
                match.nodes_map[pattern] = value
                return True
            return False
        if isinstance(value, Node):
            return False
        if isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
            return len(pattern) == len(value) and all(
                self._match_value(a, b, match, name) for a, b in zip(pattern, value, strict=True)
            )
        if isinstance(pattern, dict) and isinstance(value, dict):
            return pattern.keys() == value.keys() and all(
                self._match_value(v, value[k], match, name) for k, v in pattern.items()
            )
        return self.ignore_literals or (type(pattern) is type(value) and pattern == value)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if (
            any(gn is held for key, held in match.nodes_map.items() if key.op != "placeholder")
            and pn.op != "placeholder"
        ):
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        saved = dict(match.nodes_map)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        mine, theirs = _arguments(pn, gn)
        if len(mine) == len(theirs) and self._match_value(mine, theirs, match, node_name_match):
            return True
        match.nodes_map.clear()
        match.nodes_map.update(saved)
        return False

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences of the pattern in ``graph``, in its order."""
        candidates = [
            [gn for gn in graph.nodes if gn.op != "placeholder" and self._nodes_are_equal(anchor, gn, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        found = []
        for chosen in product(*candidates):
            match = InternalMatch(self.pattern_anchors)
            if all(
                self._match_nodes(pn, gn, match, node_name_match)
                for pn, gn in zip(self.pattern_anchors, chosen, strict=True)
            ) and self._is_contained(match.nodes_map):
                match.placeholder_nodes = [match.nodes_map.get(pn) for pn in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
                found.append(match)
        return list(self._apart(found)) if self.remove_overlapping_matches else found

    def _apart(self, matches: list[InternalMatch]) -> Iterator[InternalMatch]:
        taken: set[Node] = set()
        for match in matches:
            inside = {
                gn
                for pn, gn in match.nodes_map.items()
                if pn.op not in ("placeholder", "output") and isinstance(gn, Node)
            }
            if taken.isdisjoint(inside):
                taken |= inside
                yield match


def _arguments(pn: Node, gn: Node) -> tuple[list, list]:
    """The arguments of both Nodes as lists: by name, where that makes them comparable."""
    if len(pn.args) == len(gn.args) and pn.kwargs.keys() == gn.kwargs.keys():
        return [*pn.args, *pn.kwargs.values()], [*gn.args, *(gn.kwargs[k] for k in pn.kwargs)]
    found = []
    for node in (pn, gn):
        owner = node.graph.owning_module
        named = (
            node.normalized_arguments(owner, normalize_to_only_use_kwargs=True)
            if owner or node.op == "call_function"
            else None
        )
        found.append(named)
    if found[0] is None or found[1] is None:
        return [*pn.args, pn.kwargs], [*gn.args, gn.kwargs]
    return [dict(found[0].kwargs)], [dict(found[1].kwargs)]
