"""A backward pass in two parts: gradients of a stage's inputs at once, gradients of its parameters later.

The nodes from which an input is reached are the *path*. Where an edge leaves the path, towards parameters alone, the
gradient that arrives at its node is kept. The second part goes on from there. No work is done twice, since a node
computes the gradients that are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from taeda.autograd.graph import GradientEdge

from ... import autograd
from ..._typed import Tensor

__all__ = ["SplitBackward"]

Leaves = dict[int, Tensor]  # by their ids


class SplitBackward:
    """The backward pass of a graph, in two parts. The constructor runs the first one.

    A parameter that is used in several places may be reached along the path too: the first part does it.

    Args:
        roots: tensors that want gradients.
        grads: those of the roots.
        inputs: leaves; their gradients are added to ``grad`` at once.
    """

    def __init__(self, roots: Sequence[Tensor], grads: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._later: list[tuple[list, list[Tensor], list[Tensor]]] = []
        self._inputs = {id(t) for t in inputs}
        self._path: set[Any] = set()
        self._find_path([t.grad_fn for t in roots if t.grad_fn is not None])
        cuts = {node: self._leaves([t for t in _targets(node) if t not in self._path]) for node in self._path}
        pairs = list(zip(roots, grads, strict=True))
        apart = [(t, g) for t, g in pairs if not (t.grad_fn in self._path or self._is_input(t))]
        alone = self._leaves([t.grad_fn for t, _ in apart if t.grad_fn is not None])
        alone.update({id(t): t for t, _ in apart if t.grad_fn is None})
        times = Counter(leaf for leaves in (*cuts.values(), alone) for leaf in leaves)
        everything = {key: leaf for leaves in (*cuts.values(), alone) for key, leaf in leaves.items()}
        now = [*inputs, *(everything[key] for key, count in times.items() if count > 1)]
        later = {node: [leaf for key, leaf in leaves.items() if times[key] == 1] for node, leaves in cuts.items()}
        if len(now) == len(inputs):
            pairs = [pair for pair in pairs if not any(pair[0] is t for t, _ in apart)]
        if now and pairs:
            self._at_once(pairs, now, {node: leaves for node, leaves in later.items() if leaves})
        self._add(apart, [leaf for key, leaf in alone.items() if times[key] == 1])

    def _at_once(self, pairs: list[tuple[Tensor, Tensor]], now: list[Tensor], cuts: dict[Any, list[Tensor]]) -> None:
        """Add the gradients of the leaves ``now``; keep what arrives at the nodes of ``cuts``."""
        kept: dict[Any, tuple] = {}
        handles = [node.register_prehook(lambda g, node=node: kept.__setitem__(node, g)) for node in cuts]
        roots, grads = zip(*pairs, strict=True)
        try:
            autograd.backward(list(roots), list(grads), retain_graph=True, inputs=now)
        finally:
            for handle in handles:
                handle.remove()
        for node, arrived in kept.items():
            self._add([(GradientEdge(node, i), g) for i, g in enumerate(arrived) if g is not None], cuts[node])

    def _add(self, pairs: list, leaves: list[Tensor]) -> None:
        if pairs and leaves:
            self._later.append(([t for t, _ in pairs], [g for _, g in pairs], leaves))

    def weights(self) -> None:
        """The second part: add the gradients of the parameters. The graph is free after it."""
        for roots, grads, leaves in self._later:
            autograd.backward(roots, grads, inputs=leaves)
        self._later.clear()

    def _is_input(self, leaf: Any) -> bool:
        return id(leaf) in self._inputs

    def _find_path(self, roots: list) -> None:
        """Graphs may be deep: no recursion."""
        seen: set[Any] = set()
        waiting = [(node, False) for node in roots]
        while waiting:
            node, below_is_known = waiting.pop()
            if below_is_known:
                if any(t in self._path or self._is_input(getattr(t, "variable", None)) for t in _targets(node)):
                    self._path.add(node)
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting += [(t, False) for t in _targets(node)]

    def _leaves(self, nodes: list) -> Leaves:
        """The leaves below nodes off the path, but the inputs."""
        found: Leaves = {}
        seen, waiting = set(), list(nodes)
        while waiting:
            node = waiting.pop()
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                if not self._is_input(leaf):
                    found[id(leaf)] = leaf
            elif node not in seen:
                seen.add(node)
                waiting += _targets(node)
        return found


def _targets(node: Any) -> list:
    return [target for target, _ in node.next_functions if target is not None]
