"""Graphs of functions: nodes with inputs, outputs and blocks, in PyTorch's form. They are made to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import ir
from .types import BOOL, INT, NONE, FunctionType, Type


class Value:
    """A result of a node: a name and a type."""

    def __init__(self, name: str, type: Type, node: Node | None) -> None:
        self._name, self._type, self._node = name, type, node

    def debugName(self) -> str:
        return self._name

    def type(self) -> Type:
        return self._type

    def node(self) -> Node | None:
        return self._node

    def __repr__(self) -> str:
        return f"%{self._name} : {self._type}"


class Node:
    """One step: its ``kind()``, its inputs and outputs, and the blocks of an ``if`` or a loop."""

    def __init__(self, kind: str, inputs: list[Value], attributes: dict[str, Any] | None = None) -> None:
        self._kind, self._inputs, self._attributes = kind, inputs, attributes or {}
        self._outputs: list[Value] = []
        self._blocks: list[Graph] = []

    def kind(self) -> str:
        """The op's name, such as ``aten::add``."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        return iter(self._outputs)

    def output(self) -> Value:
        """The one thing that it gives."""
        return self._outputs[0]

    def blocks(self) -> Iterator[Graph]:
        return iter(self._blocks)

    def attributeNames(self) -> list[str]:
        return list(self._attributes)

    def s(self, name: str) -> str:
        """An attribute that is text."""
        return self._attributes[name]

    def lines(self, indent: str) -> Iterator[str]:
        attributes = ", ".join(
            f"{k}={v!r}" if not isinstance(v, str) else f'{k}="{v}"' for k, v in self._attributes.items()
        )
        given = ", ".join(map(repr, self._outputs))
        taken = ", ".join(f"%{v.debugName()}" for v in self._inputs)
        head = f"{given} = " if given else ""
        yield f"{indent}{head}{self._kind}{f'[{attributes}]' if attributes else ''}({taken})"
        for i, block in enumerate(self._blocks):
            yield f"{indent}  block{i}():"
            for node in block.nodes():
                yield from node.lines(indent + "    ")

    def __repr__(self) -> str:
        return "\n".join(self.lines(""))


class Graph:
    """The nodes of a function, or of a block of it, in order."""

    def __init__(self) -> None:
        self._inputs: list[Value] = []
        self._nodes: list[Node] = []
        self._outputs: list[Value] = []

    def inputs(self) -> Iterator[Value]:
        return iter(self._inputs)

    def nodes(self) -> Iterator[Node]:
        return iter(self._nodes)

    def outputs(self) -> Iterator[Value]:
        """The returned values."""
        return iter(self._outputs)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """All nodes of a kind, those within blocks too."""
        found = []
        for node in self._nodes:
            if node.kind() == kind:
                found.append(node)
            for block in node.blocks() if recurse else ():
                found += block.findAllNodes(kind)
        return found

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def __str__(self) -> str:
        inputs = ",\n      ".join(map(repr, self._inputs))
        lines = [line for node in self._nodes for line in node.lines("  ")]
        returned = ", ".join(f"%{v.debugName()}" for v in self._outputs)
        return "\n".join([f"graph({inputs}):", *lines, f"  return ({returned})", ""])

    __repr__ = __str__


class _Builder:
    """Writes the statements of a function as nodes."""

    def __init__(self, inline: bool) -> None:
        self.inline = inline
        self.count = 0
        self.variables: list[dict[int, Value]] = [{}]
        self.graph = Graph()
        self.depth = 0

    def add(self, kind: str, inputs: list[Value], *types: Type, **attributes: Any) -> Value:
        """Append a node; its first output."""
        node = Node(kind, inputs, attributes)
        for t in types:
            node._outputs.append(Value(str(self.count), t, node))
            self.count += 1
        self.graph._nodes.append(node)
        return node._outputs[0] if node._outputs else Value("", NONE, node)

    def expression(self, e: Any) -> Value:
        if isinstance(e, ir.Var):
            return self.variables[-1].get(e.slot) or Value(e.name, e.type, None)
        if isinstance(e, ir.Const):
            if isinstance(e.type, FunctionType):
                return self.add("prim::Constant", [], e.type, name=e.type.function.name)
            return self.add("prim::Constant", [], e.type, **({} if e.value is None else {"value": e.value}))
        if isinstance(e, ir.GetAttr):
            return self.add("prim::GetAttr", [self.expression(e.object)], e.type, name=e.name)
        if isinstance(e, ir.Op):
            inputs = []
            for p, a in zip(e.schema.parameters, e.args, strict=True):
                inputs.append(self.expression(ir.Const(p.default, p.type) if a is None else a))
            inputs += [self.expression(a) for a in e.rest]
            return self.add(e.schema.qualified, inputs, *([] if e.type is NONE else [e.type]))
        if isinstance(e, ir.Call):
            return self._call(e)
        if isinstance(e, (ir.MakeTuple, ir.MakeList)):
            kind = "prim::TupleConstruct" if isinstance(e, ir.MakeTuple) else "prim::ListConstruct"
            return self.add(kind, [self.expression(i) for i in e.items], e.type)
        if isinstance(e, ir.MakeDict):
            pairs = [self.expression(x) for k, v in zip(e.keys, e.values, strict=True) for x in (k, v)]
            return self.add("prim::DictConstruct", pairs, e.type)
        if isinstance(e, ir.TupleItem):
            return self.add(
                "prim::TupleIndex", [self.expression(e.object), self.expression(ir.Const(e.index, INT))], e.type
            )
        if isinstance(e, ir.Cast):
            return (
                self.expression(e.value) if e.word != "uninitialized" else self.add("prim::Uninitialized", [], e.type)
            )
        if isinstance(e, ir.Both):
            return self._choose(
                e.a, e.b if e.is_and else ir.Const(True, BOOL), ir.Const(False, BOOL) if e.is_and else e.b, BOOL
            )
        if isinstance(e, ir.Choose):
            return self._choose(e.condition, e.a, e.b, e.type)
        return self._rare(e)

    def _rare(self, e: Any) -> Value:
        if isinstance(e, ir.Invoke):
            return self.add("prim::CallMethod", [self.expression(x) for x in (e.object, *e.args)], e.type, name=e.name)
        if isinstance(e, ir.New):
            made = self.add("prim::CreateObject", [], e.type)
            if e.init is not None:
                self.add("prim::CallMethod", [made, *map(self.expression, e.args)], name="__init__")
            return made
        if isinstance(e, ir.PythonCall):
            return self.add(f"^{e.name}", [self.expression(a) for a in e.args], e.type)
        if isinstance(e, ir.IsInstance):
            return self.add("prim::isinstance", [self.expression(e.value)], BOOL, types=str(e.types))
        if isinstance(e, ir.Iterate):
            return self.add(f"prim::{e.word or 'iterate'}", [self.expression(p) for p in e.parts], e.type)
        if isinstance(e, ir.Fork):
            node = self._with_blocks("prim::fork", [], [e.type], [[ir.Do(e.call)]])
            return node._outputs[0]
        if isinstance(e, ir.Block):
            self.statements(e.body)
            return self.expression(e.value)
        node = self._with_blocks("prim::Loop", [self.expression(e.over)], [e.type], [[ir.Do(e.value)]])
        return node._outputs[0]

    def _call(self, e: ir.Call) -> Value:
        inputs = [self.expression(a) for a in e.args]
        function = e.function
        if self.inline and self.depth < 64 and not any(_returns_early(s) for s in function.define().body[:-1]):
            self.depth += 1
            self.variables.append({i: v for i, v in enumerate(inputs)})
            *body, last = function.body or [ir.Return(ir.Const(None, NONE))]
            self.statements(body)
            if isinstance(last, ir.Return):
                value = self.expression(last.value)
            else:
                self.statements([last])
                value = Value("", NONE, None)
            self.variables.pop()
            self.depth -= 1
            return value
        types = [] if e.type is NONE else [e.type]
        if function.owner is not None:
            return self.add("prim::CallMethod", inputs, *types, name=function.name)
        called = self.add("prim::Constant", [], FunctionType(function), name=function.name)
        return self.add("prim::CallFunction", [called, *inputs], *types)

    def _choose(self, condition: Any, a: Any, b: Any, t: Type) -> Value:
        node = self._with_blocks("prim::If", [self.expression(condition)], [t], [[ir.Do(a)], [ir.Do(b)]])
        return node._outputs[0]

    def _with_blocks(self, kind: str, inputs: list[Value], types: list[Type], blocks: list[list[Any]]) -> Node:
        self.add(kind, inputs, *types)
        node = self.graph._nodes[-1]
        outer = self.graph
        for statements in blocks:
            self.graph = Graph()
            self.statements(statements)
            node._blocks.append(self.graph)
        self.graph = outer
        return node

    def statements(self, statements: list[Any]) -> None:
        for s in statements:
            self._statement(s)

    def _store(self, target: Any, value: Value) -> None:
        if isinstance(target, ir.Var):
            self.variables[-1][target.slot] = value

    def _statement(self, s: Any) -> None:
        if isinstance(s, ir.Assign):
            self._store(s.target, self.expression(s.value))
        elif isinstance(s, ir.Do):
            self.expression(s.value)
        elif isinstance(s, ir.Unpack):
            types = [t.type for t in s.targets if isinstance(t, ir.Var)]
            self.add("prim::TupleUnpack", [self.expression(s.value)], *types)
            for t, v in zip(
                [t for t in s.targets if isinstance(t, ir.Var)], self.graph._nodes[-1]._outputs, strict=True
            ):
                self._store(t, v)
        elif isinstance(s, ir.SetAttr):
            self.add("prim::SetAttr", [self.expression(s.object), self.expression(s.value)], name=s.name)
        elif isinstance(s, ir.If):
            self._with_blocks("prim::If", [self.expression(s.condition)], [], [s.then, s.other])
        elif isinstance(s, ir.While):
            self._with_blocks("prim::Loop", [self.expression(s.condition)], [], [s.body])
        elif isinstance(s, ir.For):
            self._with_blocks("prim::Loop", [self.expression(s.over)], [], [s.body])
        elif isinstance(s, ir.With):
            self.add("prim::Enter", [self.expression(s.value)])
            self.statements(s.body)
            self.add("prim::Exit", [])
        elif isinstance(s, ir.Raise):
            self.add("prim::RaiseException", [] if s.message is None else [self.expression(s.message)])
        elif isinstance(s, ir.Return):
            self.add("prim::Return", [self.expression(s.value)])
        else:
            self.add(f"prim::{s.word}", [])


def _returns_early(s: Any) -> bool:
    """Whether a statement may leave its function."""
    if isinstance(s, ir.Return):
        return True
    blocks = [s.then, s.other] if isinstance(s, ir.If) else [getattr(s, "body", [])]
    return any(_returns_early(inner) for block in blocks for inner in block)


def build(function: ir.Function, inline: bool = False) -> Graph:
    """The graph of a function; with ``inline`` functions and methods that it calls are in their places."""
    function.define()
    builder = _Builder(inline)
    graph = builder.graph
    for i, p in enumerate(function.parameters):
        value = Value(p.name, p.type, None)
        graph._inputs.append(value)
        builder.variables[-1][i] = value
    *body, last = function.body or [ir.Return(ir.Const(None, NONE))]
    builder.statements(body)
    if isinstance(last, ir.Return):
        graph._outputs.append(builder.expression(last.value))
    else:
        builder.statements([last])
    return graph
