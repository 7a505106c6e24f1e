"""Modules as functions of an ONNX model: each call of a module is one node, its body a function of the model.

Names are PyTorch's exporter's: a function has the name of the class, and the class's module as its domain. Two calls of
a class share one function. Numbers that differ between them are attributes of the call,
``inferred::LayerNormalization_epsilon``. Calls that differ in more have functions of their own, ``Sequential.1``.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from taeda.fx import Node

from .. import nn
from .optimize import _graphs, _rename, shared

#: Constants of more elements than this come to a function as inputs; the others are nodes of its body.
_LARGE = 256
#: The element types for which NumPy has its own dtype.
PLAIN = frozenset("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split())


def wanted_kinds(given: bool | Collection[type]) -> Collection[str] | None:
    """The names of the classes that become functions; None for all of them.

    Args:
        given: classes, or True for all of them.

    Returns:
        Names, or None.

    Raises:
        RuntimeError: the set has something else than classes.
    """
    if isinstance(given, bool):
        return None if given else ()
    for kind in given:
        if not isinstance(kind, type):
            raise RuntimeError(
                "onnx.export: export_modules_as_functions takes a set of classes of modules, got an element of type "
                f"{type(kind).__name__}"
            )
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in given}


def calls_of(node: Node) -> tuple:
    """The calls of modules that a step of a program is in, outermost first: path, class, and a number for each call."""
    return node.meta.get("module_calls") or tuple((*pair, 0) for pair in node.meta.get("nn_module_stack", {}).values())


def annotated(model: nn.Module | None, path: str) -> dict[str, Any]:
    """The numbers and texts that a module has under the names which its class annotates."""
    if model is None:
        return {}
    module = model.get_submodule(path)
    try:
        hints = typing.get_type_hints(type(module))
    except (NameError, TypeError):  # a name that exists for type checkers only
        return {}
    names = sorted(set(hints) - set(typing.get_type_hints(nn.Module)))
    values = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return {n: int(x) if isinstance(x, bool) else x for n, x in values.items() if isinstance(x, (int, float, str))}


class _Function:
    """Calls with bodies of one structure: the nodes of each body, and the node of each call."""

    def __init__(self, name: str, inputs: list[str], outputs: list[str]) -> None:
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self.attributes: dict[str, None] = {}
        self.bodies: list[list[Any]] = []
        self.calls: list[Any] = []

    def infer_attributes(self) -> None:
        """Let attributes that differ between the bodies be attributes of the calls."""
        for i, node in enumerate(self.bodies[0]):
            for attribute in node.attribute:
                found = [next(a for a in body[i].attribute if a.name == attribute.name) for body in self.bodies]
                if all(a == attribute for a in found):
                    continue
                wanted = f"inferred::{node.op_type}_{attribute.name}"
                names = itertools.chain([wanted], (f"{wanted}.{n}" for n in itertools.count(1)))
                name = next(n for n in names if n not in self.attributes)
                self.attributes[name] = None
                for call, value in zip(self.calls, found, strict=True):
                    call.attribute.add().CopyFrom(value)
                    call.attribute[-1].name = name
                own, kind = attribute.name, attribute.type
                attribute.Clear()
                attribute.name, attribute.type, attribute.ref_attr_name = own, kind, name


class Functions:
    """The functions of a model, and the nodes that call them.

    Args:
        calls: for the names of nodes the calls of modules that they are in, outermost first.
        constants: arrays that are no weights, by name.
        weights: names of the weights.
        kinds: the classes that become functions, None for all.
        attributes: gives the attributes of a call for the path of its module.
        name: makes names of nodes.
    """

    def __init__(
        self, calls: dict[str, tuple], constants: dict[str, Any], weights: Collection[str],
        kinds: Collection[str] | None, attributes: Callable[[str], dict[str, Any]], name: Callable[[str], str],
    ) -> None:  # fmt: skip
        self.constants, self.weights, self.attributes, self.name = constants, weights, attributes, name
        self.stacks = {n: [c for c in stack if kinds is None or c[1] in kinds] for n, stack in calls.items()}
        self.found: dict[Any, _Function] = {}  # by class and structure, inner ones first
        self.last_use: dict[str, int] = {}

    def folded(self, nodes: list[Any], outputs: Iterable[str]) -> list[Any]:
        """The nodes of the graph, with calls of functions in place of the nodes inside modules."""
        for i, node in enumerate(nodes):
            self.last_use.update(dict.fromkeys(_uses(node), i))
        self.last_use.update(dict.fromkeys(outputs, len(nodes)))
        made = self._folded([type(n).FromString(n.SerializeToString()) for n in nodes], 0, 0)
        for function in self.found.values():
            function.infer_attributes()
        return made

    def _folded(self, nodes: list[Any], start: int, depth: int) -> list[Any]:
        """``nodes``, the first of which is number ``start`` of the graph, are ``depth`` calls deep."""
        made: list[Any] = []

        def call_of(node: Any) -> Any:
            stack = self.stacks.get(node.name, ())
            return stack[depth] if len(stack) > depth else None

        for call, group in itertools.groupby(nodes, call_of):
            members = list(group)
            end = start + len(members)
            if call is None:
                made += members
            else:
                results = [x for n in members for x in n.output if self.last_use.get(x, -1) >= end]
                made.append(self._call(call, self._folded(members, start, depth + 1), results))
            start = end
        return made

    def _call(self, call: tuple[str, str, int], nodes: list[Any], outputs: list[str]) -> Any:
        from onnx import helper

        path, kind, _ = call
        domain, _, name = kind.rpartition(".")
        body = self._with_constants(nodes)
        own = {x for n in body for x in n.output}
        free = [x for x in dict.fromkeys(x for n in body for x in _uses(n)) if x not in own]
        known = {*self.weights, *self.constants}
        inputs = [x for x in free if x not in known] + [x for x in free if x in known]
        key = domain, name, _structure(body, inputs, outputs)
        function = self.found.get(key)
        if function is None:
            number = sum(k[:2] == key[:2] for k in self.found)
            function = _Function(f"{name}.{number}" if number else name, inputs, outputs)
            self.found[key] = function
        label = self.name("/".join(["", *filter(None, path.split(".")), function.name]))
        attributes = self.attributes(path)
        made = helper.make_node(function.name, inputs, outputs, label, domain=domain, **attributes)
        function.attributes.update(dict.fromkeys(attributes))
        function.bodies.append(body if function.bodies else self._local(body, inputs, path, function))
        function.calls.append(made)
        return made

    def _with_constants(self, nodes: list[Any]) -> list[Any]:
        """The nodes, each behind nodes for the small constants that it uses."""
        from onnx import helper, numpy_helper

        made = []
        for node in nodes:
            renamed = {}
            for x in _uses(node):
                array = self.constants.get(x)
                if array is None or array.size > _LARGE or array.dtype.name not in PLAIN:
                    continue
                renamed[x] = self.name("const")
                value = numpy_helper.from_array(array)
                made.append(helper.make_node("Constant", [], [renamed[x]], self.name("Constant"), value=value))
            _rename(node, renamed)
            made.append(node)
        return made

    def _local(self, body: list[Any], inputs: list[str], path: str, function: _Function) -> list[Any]:
        """``body`` with weights by their names inside of the module."""
        own = {x for n in body for x in n.output}
        renamed: dict[str, str] = {}
        for x in inputs:
            short = x[len(path) + 1 :] if path and x in self.weights and x.startswith(f"{path}.") else x
            taken = own.union(renamed.values())
            names = itertools.chain([short], (f"{short}.{n}" for n in itertools.count(1)))
            renamed[x] = next(n for n in names if n not in taken)
        for node in body:
            _rename(node, renamed)
        function.inputs = [renamed[x] for x in inputs]
        return body

    def protos(self, versions: dict[str, int], optimize: bool) -> list[Any]:
        """The functions as ``onnx.FunctionProto``. ``versions`` are the domains' versions, 1 if missing."""
        from onnx import helper

        made = []
        for (domain, _, _), function in self.found.items():
            nodes = function.bodies[0]
            if optimize:
                nodes = shared(nodes, set(function.outputs))
            domains = dict.fromkeys(["", *(d for n in nodes for d in _domains(n))])
            opsets = [helper.make_opsetid(d, versions.get(d, 1)) for d in domains]
            made.append(
                helper.make_function(
                    domain, function.name, function.inputs, function.outputs, nodes, opsets, list(function.attributes)
                )
            )
        return made


def _uses(node: Any) -> list[str]:
    """The names of outer values that a node and its graphs read, in a fixed order."""
    found = dict.fromkeys(filter(None, node.input))
    for graph in _graphs(node):
        own = {x.name for x in graph.input}.union(*(n.output for n in graph.node))
        reads = [*(x for n in graph.node for x in _uses(n)), *(x.name for x in graph.output)]
        found.update(dict.fromkeys(x for x in reads if x not in own))
    return list(found)


def _domains(node: Any) -> list[str]:
    return [node.domain, *(d for graph in _graphs(node) for inner in graph.node for d in _domains(inner))]


def _structure(body: Sequence[Any], inputs: list[str], outputs: list[str]) -> Any:
    """The parts that two calls must share: ops, their connections, and names of attributes, but all of inner graphs."""
    numbers = {name: i for i, name in enumerate(["", *inputs])}
    made = tuple(_form(node, numbers, False) for node in body)
    return len(inputs), made, tuple(numbers[x] for x in outputs)


def _form(node: Any, numbers: dict[str, int], exact: bool) -> Any:
    reads = [numbers.setdefault(x, len(numbers)) for x in node.input]
    attributes = []
    for a in sorted(node.attribute, key=lambda a: a.name):
        inner: Any = a.SerializeToString(deterministic=True) if exact else None
        if a.HasField("g"):
            inner = [numbers.setdefault(x.name, len(numbers)) for x in a.g.input]
            inner = (*inner, *(_form(n, numbers, True) for n in a.g.node), *(numbers[x.name] for x in a.g.output))
        attributes.append((a.name, a.type, inner))
    writes = tuple(numbers.setdefault(x, len(numbers)) for x in node.output)
    return node.domain, node.op_type, tuple(reads), tuple(attributes), writes
