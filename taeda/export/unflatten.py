"""``unflatten``: an exported program as modules inside of modules again, one for each call of a module of the model."""

from __future__ import annotations

import abc
import copy
import operator
from typing import Any

from taeda._core import Tensor
from taeda.fx import Graph, GraphModule, Node
from taeda.fx.node import map_arg
from taeda.nn import Module, Parameter
from taeda.utils import _pytree as pytree

from ._steps import leaf
from .exported_program import ExportedProgram, ModuleCallSignature, _fill
from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = ["FlatArgsAdapter", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter(abc.ABC):
    """Makes arguments that nest in another way fit a program."""

    @abc.abstractmethod
    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: dict[str, Any] | None = None,
        obj: Any = None
    ) -> list[Any]:  # fmt: skip
        """The leaves that ``target_spec`` wants, of the leaves ``input_args``, which nest as ``input_spec``."""


class _Preserved(GraphModule):
    """A module that is called as the model calls it."""

    signature: ModuleCallSignature
    names: tuple[list[str], list[str]]  # inputs and outputs of the graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        taken, made = self.signature, self.names
        leaves = dict(zip((a.name for a in taken.inputs), taken.in_spec.flatten_up_to((args, kwargs)), strict=True))
        found = dict(leaves)
        found.update(zip(made[1], super().__call__(*(leaves[n] for n in made[0])), strict=True))
        results = [a.value if isinstance(a, ConstantArgument) else found.get(a.name) for a in taken.outputs]
        return pytree.tree_unflatten(results, taken.out_spec)


class UnflattenedModule(Module):
    """A program as modules: ``unflattened.encoder.layer1`` does what that module of the model does in a call.

    A module that is called again has a second graph, ``layer1@1``, with the same parameters.
    """

    def __init__(self, ep: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> None:
        super().__init__()
        self._program, self._adapter = ep, flat_args_adapter
        specs = ep.graph_signature.input_specs
        placeholders = [n for n in ep.graph.nodes if n.op == "placeholder"]
        self._targets: dict[Node, str] = {}
        for node, spec in zip(placeholders, specs, strict=True):
            if spec.kind != InputKind.USER_INPUT:
                self._targets[node] = str(spec.target)
        self._users = [n for n in placeholders if n not in self._targets]
        steps = [n for n in ep.graph.nodes if n.op not in ("placeholder", "output")]
        output = ep.graph.output_node()
        self._stacks = {n: _stack(n) for n in steps}
        self._named = {n.name: n for n in ep.graph.nodes}
        self._signatures = {e.fqn: e.signature for e in ep.module_call_graph if e.fqn and e.signature is not None}
        needed = [n for n in output.all_input_nodes]
        state = {n: t for n, t in self._targets.items() if any(n is m for m in needed)}
        graph, values, root = self._build(steps, "", self._users, set(needed))
        for node, target in state.items():
            if node not in values:
                root[target] = ep._state(target)
                values[node] = graph.get_attr(target)
        graph.output(map_arg(output.args[0], lambda n: values[n]))
        made = GraphModule(root, graph, type(self).__name__)
        self.graph = made.graph
        for table in ("_modules", "_parameters", "_buffers"):  # shared, so that a module that is put here is run
            self.__dict__[table] = made.__dict__[table]
        self.__dict__["_root"] = made
        for path, x in ep.state_dict.items():
            _fill(self, path, x, isinstance(x, Parameter))
        for spec in specs:
            if spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False:
                _fill(self, str(spec.target), ep.constants[str(spec.target)], False, persistent=False)

    def _build(
        self, steps: list[Node], path: str, inputs: list[Node], wanted: set[Node]
    ) -> tuple[Graph, dict[Node, Node], dict[str, Any]]:
        """The graph of the module at ``path``, without its output; values of nodes; what its paths stand for."""
        graph, root = Graph(), dict[str, Any]()
        values = {node: graph.placeholder(node.name) for node in inputs}
        groups: list[tuple[str | None, list[Node]]] = []
        for node in steps:
            child = self._child(node, path)
            if child is None or not groups or groups[-1][0] != child:
                groups.append((child, []))
            groups[-1][1].append(node)
        counts: dict[str, int] = {}
        for child, nodes in groups:
            if child is None:
                (node,) = nodes
                if node.op == "get_attr":
                    root[node.target] = copy.deepcopy(getattr(self._program.graph_module, node.target))
                values[node] = graph.node_copy(node, lambda n: self._value(n, path, graph, values, root))
                continue
            inside, later = set(nodes), {u for n in nodes for u in n.users} - set(nodes)
            given = [n for n in dict.fromkeys(m for node in nodes for m in node.all_input_nodes) if n not in inside]
            given = [n for n in given if n not in self._targets or not _under(self._targets[n], child)]
            results = [n for n in nodes if n in wanted or any(u in later for u in n.users)]
            signature = self._signature(child, given, results)
            inner, known, inner_root = self._build(nodes, child, given, set(results))
            inner.output(tuple(known[n] for n in results))
            number = counts.get(child, 0)
            counts[child] = number + 1
            name = child[len(path) + 1 if path else 0 :] + (f"@{number}" if number else "")
            if signature is not None:
                made = root[name] = _Preserved(inner_root, inner, "InterpreterModule")
                made.signature, made.names = signature, ([n.name for n in given], [n.name for n in results])
                leaves = [
                    a.value
                    if isinstance(a, ConstantArgument)
                    else self._value(self._named[a.name], path, graph, values, root)
                    for a in signature.inputs
                ]
                called = graph.call_module(name, *pytree.tree_unflatten(leaves, signature.in_spec))
                for i, argument in enumerate(signature.outputs):
                    if argument.name:
                        n = self._named[argument.name]
                        values[n] = graph.create_node("call_function", leaf, (called, i), {}, n.name)
                        values[n].meta = dict(n.meta)
                continue
            root[name] = GraphModule(inner_root, inner, "InterpreterModule")
            called = graph.call_module(name, tuple(self._value(n, path, graph, values, root) for n in given))
            for i, n in enumerate(results):
                values[n] = graph.create_node("call_function", operator.getitem, (called, i), {}, n.name)
                values[n].meta = dict(n.meta)
        return graph, values, root

    def _signature(self, child: str, given: list[Node], results: list[Node]) -> ModuleCallSignature | None:
        """The signature that is kept of a module, if it is called once and all that goes in and out is in it."""
        signature = self._signatures.pop(child, None)
        if signature is None:
            return None
        inputs, outputs = ({a.name for a in xs if a.name} for xs in (signature.inputs, signature.outputs))
        whole = {n.name for n in given} <= inputs and {n.name for n in results} <= outputs
        return signature if whole and inputs | outputs <= set(self._named) else None

    def _child(self, node: Node, path: str) -> str | None:
        """The path of the module inside the one at ``path`` that a step belongs to; None if the step is its own."""
        stack = self._stacks[node]
        deeper = [p for p in stack if p and p != path and _under(p, path)]
        return min(deeper, key=len) if deeper else None

    def _value(self, node: Node, path: str, graph: Graph, values: dict[Node, Node], root: dict[str, Any]) -> Node:
        if node not in values:
            target = self._targets[node]
            name = target[len(path) + 1 if path else 0 :]
            root[name] = self._program._state(target)
            values[node] = graph.get_attr(name)
        return values[node]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        wanted = self._program.in_spec
        if spec != wanted:
            if self._adapter is None:
                leaves = wanted.flatten_up_to((args, kwargs))
            else:
                leaves = self._adapter.adapt(wanted, spec, leaves)
                if len(leaves) != wanted.num_leaves:
                    raise TypeError(f"The adapter gave {len(leaves)} leaves; the program takes {wanted.num_leaves}")
        self._program._checks(*leaves)
        flat = self._root(*leaves)
        results = []
        state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        arguments = {n.name: x for n, x in zip(self._users, leaves, strict=True)}
        for x, output in zip(flat, self._program.graph_signature.output_specs, strict=True):
            if output.kind == OutputKind.USER_OUTPUT:
                results.append(x)
            else:
                into: Tensor = {**state, **arguments}[str(output.target)]
                into.copy_(x)
        return pytree.tree_unflatten(results, self._program.out_spec)


def _under(path: str, module: str) -> bool:
    return not module or path == module or path.startswith(f"{module}.")


def _stack(node: Node) -> list[str]:
    """The paths of the modules that a step is in. A graph inside is where it is used."""
    if "nn_module_stack" not in node.meta and node.users:
        return _stack(next(iter(node.users))) if node.op == "get_attr" else []
    return list(node.meta.get("nn_module_stack", {}))


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The program as modules inside of modules, as the model has them.

    Args:
        module: the program.
        flat_args_adapter: for arguments that nest in another way than the program's.
    Returns:
        The module.
    """
    return UnflattenedModule(module, flat_args_adapter)
