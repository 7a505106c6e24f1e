"""Graphs of ONNX models that are ready to run: ops looked up in the table, values freed after their last use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from .operators import find
from .table import NodeError
from .values import describe


class Weight(NamedTuple):
    """The key of an initializer among the values of a run."""

    name: str


class Scope(dict):
    """The values of a graph by name. Missing names are looked up in the graph around it."""

    def __init__(self, outer: Scope | None = None):
        super().__init__()
        self.outer = outer
        self.root: Scope = self if outer is None else outer.root

    def __missing__(self, name: Any) -> Any:
        if self.outer is None:
            raise KeyError(name)
        return self.outer[name]

    @staticmethod
    def of(weights: dict[str, Any]) -> Scope:
        """The outermost scope of a run: the initializers, and an input that is left out."""
        root = Scope()
        root[""] = None
        for name, value in weights.items():
            root[Weight(name)] = value
        return root


class Node:
    """One call of an op: the function, names of inputs and outputs, attributes, and graphs among those."""

    def __init__(self, op: str, name: str, inputs: Sequence[str], outputs: Sequence[str]):
        self.op, self.name = op, name
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.run: Callable[..., Any] = _no_function
        self.entry: tuple[str, str, int] | None = None  # domain, op type and version where ``run`` is from the table
        self.attributes: dict[str, Any] = {}
        self.graphs: dict[str, Graph] = {}
        self.frees: tuple[str, ...] = ()

    def copy(self) -> Node:
        """The same call for another graph."""
        node = Node(self.op, self.name, self.inputs, self.outputs)
        node.run, node.entry, node.attributes, node.graphs = self.run, self.entry, self.attributes, self.graphs
        return node

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: functions of the table are looked up again."""
        return self.__dict__ | ({"run": None} if self.entry else {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.entry:
            found = find(*self.entry)
            assert found is not None
            self.run = found.run

    def reads(self) -> set[str]:
        """The names that this needs, its graphs' outer ones included."""
        return set(self.inputs).union(*(graph.captured for graph in self.graphs.values())) - {""}

    def __call__(self, scope: Scope) -> None:
        inputs = [scope[name] for name in self.inputs]
        attributes = self.attributes
        if self.graphs:
            attributes = attributes | {key: partial(graph, outer=scope) for key, graph in self.graphs.items()}
        try:
            results = self.run(*inputs, **attributes)
        except NodeError:
            raise  # the error of a node in an inner graph says more
        except Exception as error:
            came = ", ".join(map(describe, inputs)) or "nothing"
            raise NodeError(
                f"ONNX op {self.op} (node {self.name!r}) of {came}: {error or type(error).__name__}"
            ) from error
        results = results if isinstance(results, tuple) else (results,)
        if any(self.outputs[len(results) :]):
            wanted = len(self.outputs)
            raise NodeError(f"ONNX op {self.op} (node {self.name!r}): expected {wanted} outputs, got {len(results)}")
        for name, value in zip(self.outputs, results, strict=False):
            if name:
                scope[name] = value
        for name in self.frees:
            scope.pop(name, None)


def _no_function(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("the node has no function yet")


class Graph:
    """Nodes in order, run with values for the inputs; values of outer graphs are seen too.

    A ``closed`` graph, which is the body of a function, sees its inputs alone.
    """

    def __init__(
        self, inputs: Sequence[str], outputs: Sequence[str], nodes: list[Node],
        weights: dict[str, Weight] | None = None, closed: bool = False,
    ):  # fmt: skip
        self.inputs, self.outputs, self.nodes = tuple(inputs), tuple(outputs), nodes
        self.weights = weights = weights or {}
        self.closed = closed
        last: dict[str, Node] = {}
        own = {name for node in nodes for name in node.outputs} | set(inputs)
        for node in nodes:
            last.update(dict.fromkeys([*node.reads(), *filter(None, node.outputs)], node))
        for name in own - set(outputs):
            if name in last:
                last[name].frees += (name,)
        #: The names of outer values that this graph reads.
        self.captured = set() if closed else set(outputs).union(last) - own - set(weights) - {""}

    def __call__(self, *values: Any, outer: Scope) -> tuple[Any, ...]:
        """The outputs for the inputs ``values``, None for those at the end that are left out."""
        if len(values) > len(self.inputs):
            raise ValueError(f"expected at most {len(self.inputs)} inputs of the graph, got {len(values)}")
        scope = Scope(outer.root if self.closed else outer)
        for name, key in self.weights.items():
            scope[name] = scope[key]
        scope.update(dict.fromkeys(self.inputs))
        scope.update(zip(self.inputs, values, strict=False))
        for node in self.nodes:
            node(scope)
        return tuple(scope[name] for name in self.outputs)
