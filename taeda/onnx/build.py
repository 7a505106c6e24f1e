"""From the format's messages to graphs that run: attributes, subgraphs, functions, the ops' bodies in the schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    defs,
    numpy_helper,
)

from .graph import Graph, Node, Scope, Weight
from .operators import find
from .table import TRAINING
from .values import code_of, from_array

#: Attributes of old opsets without effect.
_IDLE = frozenset(["consumed_inputs"])
#: How many bodies for different inputs a node keeps.
_KEPT = 32
_KIND = AttributeProto.AttributeType


def tensor_of(proto: TensorProto) -> Any:
    """The tensor that a message holds; an array of strings or narrow integers as it is."""
    if proto.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"tensor {proto.name!r} is in another file, which only tensors of the main graph can be")
    return from_array(numpy_helper.to_array(proto))


def dense_of(proto: SparseTensorProto) -> Any:
    """The dense tensor of a sparse one, whose places are flat or one for each dimension."""
    values, places = numpy_helper.to_array(proto.values), numpy_helper.to_array(proto.indices)
    dense = np.zeros(tuple(proto.dims), dtype=values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return from_array(dense)


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


class Builder:
    """Makes graphs of one model.

    Args:
        functions: those that the model defines.
        add_weight: takes the name of an initializer, its value and whether training may change it; gives the name under
            which a run has it.
    """

    def __init__(self, functions: Iterable[FunctionProto], add_weight: Callable[[str, Any, bool], str]):
        self.functions = {(_domain(f.domain), f.name, f.overload): f for f in functions}
        self.add_weight = add_weight
        self.made: dict[tuple, Graph] = {}
        self.unfinished: list[tuple] = []

    def graph(self, proto: GraphProto, opsets: dict[str, int], given: dict[str, AttributeProto], prefix: str) -> Graph:
        """The graph of ``proto``; ``given`` are the attributes of the function it is in, ``prefix`` its owner's
        name."""
        values = {tensor.name: tensor_of(tensor) for tensor in proto.initializer}
        values |= {sparse.values.name: dense_of(sparse) for sparse in proto.sparse_initializer}
        statistics = {name for node in proto.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
        weights = {
            name: Weight(self.add_weight(prefix + name, value, name not in statistics))
            for name, value in values.items()
        }
        nodes = self._nodes(proto.node, opsets, given, prefix)
        inputs = [value.name for value in proto.input if value.name not in weights]
        return Graph(inputs, [value.name for value in proto.output], nodes, weights)

    def _nodes(self, protos: Any, opsets: dict[str, int], given: dict[str, AttributeProto], prefix: str) -> list[Node]:
        nodes: list[Node] = []
        for proto in protos:
            label = proto.name or next(filter(None, proto.output), "")
            node = Node(proto.op_type, prefix + label, proto.input, proto.output)
            try:
                self._fill(node, proto, opsets, given)
            except (ValueError, TypeError, NotImplementedError) as error:
                if hasattr(error, "node"):
                    raise  # the error of a node in an inner graph
                kind = NotImplementedError if isinstance(error, NotImplementedError) else ValueError
                refusal: Any = kind(f"ONNX op {node.op} (node {node.name!r}): {error}")
                refusal.node = node.name
                raise refusal from error
            if proto.op_type == "Gradient" and proto.domain == TRAINING:
                node.graphs["body"] = _ancestors(nodes, node.attributes)
            nodes.append(node)
        return nodes

    def _fill(self, node: Node, proto: NodeProto, opsets: dict[str, int], given: dict[str, AttributeProto]) -> None:
        """Put the function, the attributes and the graphs into ``node``."""
        domain = _domain(proto.domain)
        named = {a.name: _resolved(a, given) for a in proto.attribute if a.name not in _IDLE}
        attributes = {name: a for name, a in named.items() if a is not None}
        key = (domain, proto.op_type, proto.overload)
        if key in self.functions:
            node.graphs["body"] = self._function(key, self.functions[key], attributes)
            node.run = _call
            return
        if domain not in opsets:
            raise ValueError(f"expected a version of the opset {domain!r} in the model, which imports {sorted(opsets)}")
        entry = find(domain, proto.op_type, opsets[domain])
        if entry is None:
            self._from_schema(node, proto, domain, opsets, attributes)
            return
        node.run, node.entry = entry.run, (domain, proto.op_type, opsets[domain])
        for name, attribute in attributes.items():
            if attribute.type == _KIND.GRAPH:
                node.graphs[name] = self.graph(attribute.g, opsets, given, f"{node.name}.")
            else:
                node.attributes[name] = _value(attribute)
        if entry.counts_outputs:
            node.attributes["outputs"] = len(proto.output)

    def _function(
        self, key: tuple, proto: FunctionProto, attributes: dict[str, AttributeProto],
        opsets: dict[str, int] | None = None,
    ) -> Graph:  # fmt: skip
        """The body of a function, called with ``attributes``: made once for each set of them.

        ``opsets`` are versions that it has where it names none.
        """
        for default in proto.attribute_proto:
            attributes.setdefault(default.name, default)
        key = (*key, *sorted((name, a.SerializeToString()) for name, a in attributes.items()))
        if key in self.unfinished:
            raise ValueError(f"function {proto.name!r} calls itself, which ONNX does not allow")
        if key not in self.made:
            self.unfinished.append(key)
            opsets = (opsets or {}) | {_domain(opset.domain): opset.version for opset in proto.opset_import}
            nodes = self._nodes(proto.node, opsets, attributes, f"{proto.name}.")
            self.unfinished.pop()
            self.made[key] = Graph(proto.input, proto.output, nodes, closed=True)
        return self.made[key]

    def _from_schema(
        self, node: Node, proto: NodeProto, domain: str, opsets: dict[str, int], attributes: dict[str, AttributeProto]
    ) -> None:
        """Run ``node`` by the body that the schema of its op has."""
        version = opsets[domain]
        schema: Any  # its stub lacks the functions for bodies
        try:
            schema = defs.get_schema(proto.op_type, version, domain)
        except defs.SchemaError:
            schema = None
        if schema is None or not (schema.has_function or schema.has_context_dependent_function):
            raise NotImplementedError(
                f"expected an op that taeda.onnx knows, got {domain or 'ai.onnx'}.{proto.op_type}-{version}"
            )
        if schema.has_function and not schema.has_context_dependent_function:
            body = _schema_body(schema, version)
            defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}
            node.graphs["body"] = self._function((domain, proto.op_type, version), body, defaults | attributes, opsets)
            node.run = _call
            return
        plain = NodeProto()
        plain.CopyFrom(proto)
        del plain.attribute[:]
        plain.attribute.extend(attributes.values())
        node.run = ByTypes(plain, domain, opsets)


def _schema_body(schema: Any, version: int) -> FunctionProto:
    """The body of an op in the version of the opset nearest to ``version`` from below."""
    versions = [v for v in schema.function_opset_versions if v <= version] or schema.function_opset_versions
    body = schema.get_function_with_opset_version(max(versions))
    return body if isinstance(body, FunctionProto) else FunctionProto.FromString(body)


class ByTypes:
    """An op whose body in the schema depends on the types and sizes of its inputs: made when they are known."""

    def __init__(self, proto: NodeProto, domain: str, opsets: dict[str, int]):
        self.proto, self.domain, self.opsets = proto, domain, opsets
        self.bodies: dict[tuple, Graph] = {}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        key = tuple(None if x is None else (code_of(x), tuple(x.shape)) for x in inputs)
        if key not in self.bodies:
            if len(self.bodies) >= _KEPT:
                self.bodies.clear()
            self.bodies[key] = self._body(key)
        return self.bodies[key](*inputs, outer=Scope.of({}))

    def _body(self, key: tuple) -> Graph:
        latest = self.opsets[self.domain]
        schema: Any = defs.get_schema(self.proto.op_type, latest, self.domain)
        versions = schema.context_dependent_function_opset_versions
        version = max([v for v in versions if v <= latest] or versions)
        types = [onnx.TypeProto() if k is None else onnx.helper.make_tensor_type_proto(*k) for k in key]
        text = schema.get_context_dependent_function_with_opset_version(
            version, self.proto.SerializeToString(), [t.SerializeToString() for t in types]
        )
        body = FunctionProto.FromString(text)
        if not body.output:
            raise NotImplementedError("expected inputs for which the op's schema has a body")
        attributes = {a.name: a for a in self.proto.attribute}
        return Builder([], _no_weight)._function((self.domain, body.name), body, attributes, self.opsets)


def _no_weight(name: str, value: Any, trained: bool) -> str:
    raise NotImplementedError("expected a body without initializers")


def _call(*inputs: Any, body: Callable) -> Any:
    return body(*inputs)


def _resolved(attribute: AttributeProto, given: dict[str, AttributeProto]) -> AttributeProto | None:
    """The attribute of the call that ``attribute`` refers to, under its own name; None if the call leaves it out."""
    if not attribute.ref_attr_name:
        return attribute
    if attribute.ref_attr_name not in given:
        return None
    copied = AttributeProto()
    copied.CopyFrom(given[attribute.ref_attr_name])
    copied.name = attribute.name
    return copied


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _value(a: AttributeProto) -> Any:
    """The Python value of an attribute."""
    plain = {_KIND.FLOAT: "f", _KIND.INT: "i", _KIND.TYPE_PROTO: "tp"}
    if a.type in plain:
        return getattr(a, plain[a.type])
    if a.type == _KIND.STRING:
        return _text(a.s)
    if a.type == _KIND.STRINGS:
        return [_text(s) for s in a.strings]
    if a.type in (_KIND.FLOATS, _KIND.INTS):
        return list(a.floats if a.type == _KIND.FLOATS else a.ints)
    if a.type == _KIND.TENSOR:
        return tensor_of(a.t)
    if a.type == _KIND.SPARSE_TENSOR:
        return dense_of(a.sparse_tensor)
    raise NotImplementedError(
        f"attribute {a.name!r}: expected a number, text, a tensor or a graph, got {_KIND.Name(a.type)}"
    )


def _ancestors(nodes: list[Node], attributes: dict[str, Any]) -> Graph:
    """The graph from the variables of a Gradient op to the value that is differentiated."""
    inputs = [*attributes["xs"], *attributes.get("zs", ())]
    wanted, chosen = {attributes["y"]}, []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs) - set(inputs):
            chosen.append(node)
            wanted |= node.reads()
    return Graph(inputs, [attributes["y"]], [node.copy() for node in reversed(chosen)])
