"""``replace_pattern``: put one subgraph in the place of another, wherever it occurs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from taeda.nn import Module

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr
from .node import Node

if TYPE_CHECKING:
    from .passes.utils.matcher_utils import InternalMatch

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """An occurrence: its last Node, and a map from Nodes of the pattern to Nodes of the Graph."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """An occurrence that was replaced, and the Nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace every occurrence of ``pattern`` that does not share Nodes with one before it. ``gm`` is changed.

    Args:
        gm: the module.
        pattern: a function or module, which is traced. Its arguments stand for any value.
        replacement: a function or module with as many arguments.
    Returns:
        The occurrences.
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None, ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None, node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """:func:`replace_pattern` of the occurrences that all ``match_filters`` take.

    Args:
        gm: changed in place.
        pattern: what to look for.
        replacement: what takes its place.
        match_filters: called with the match, the Graph and the pattern's Graph.
        ignore_literals: numbers and the like need not be those of the pattern.
        replacement_callback: makes the replacement's Graph, of the same arguments.
        node_name_match: Nodes with this in their name match any.
    Returns:
        The matches.
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(program: Any) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Callable] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable | None = None, node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    from .passes.utils.matcher_utils import SubgraphMatcher

    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, remove_overlapping_matches=True, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accept(match, graph, pattern_graph) for accept in match_filters or ())
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or replacement callback")
    common = None if replacement is None else _graph_of(replacement)
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}
    for match in matches:
        new = replacement_callback(match, graph, pattern_graph) if replacement_callback else common
        if new is None:
            raise AssertionError("replacement_callback gave no Graph")
        done.append(_replace_one(graph, pattern_graph, match, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_one(
    graph: Graph, pattern: Graph, match: InternalMatch, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Put ``new`` in the place of one match."""
    arguments = [n for n in new.nodes if n.op == "placeholder"]
    if len(arguments) != len(match.placeholder_nodes):
        raise AssertionError(
            f"the pattern has {len(match.placeholder_nodes)} arguments, the replacement {len(arguments)}"
        )
    values: dict[Node, Any] = {}
    for i, (argument, held) in enumerate(zip(arguments, match.placeholder_nodes, strict=True)):
        if isinstance(held, Node):
            held = changed.get(held, held)
            match.placeholder_nodes[i] = held
        values[argument] = held
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        place = min(users)
    else:
        place = max(n for n in match.nodes_map.values() if isinstance(n, Node)).next
    with graph.inserting_before(place):
        result = graph.graph_copy(new, values)
    results = (result,) if isinstance(result, Node) else tuple(result)
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"the pattern has {len(match.returning_nodes)} results, the replacement {len(results)}")
    for old, made in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(made)
        changed[old] = made
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    kept = {id(n) for n in match.placeholder_nodes}
    made_nodes = [v for v in values.values() if isinstance(v, Node) and id(v) not in kept]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made_nodes)


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give ``gm`` the modules and attributes that the replacement names, and take away those that nothing names."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        owners = [owner for owner in (gm, replacement) if _find(owner, node.target) is not None]
        if not owners:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in either the original GraphModule `gm` or the replacement"
            )
        if owners[0] is gm:
            continue
        _assign_attr(copy.deepcopy(_find(replacement, node.target)), gm, node.target)
    gm.graph.lint()


def _find(owner: Any, path: str) -> Any:
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner
