"""``ExportedProgram``: the graph of a model, its state, and what may be passed to it."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from taeda._core import Tensor
from taeda.fx import Graph, GraphModule, Node
from taeda.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from taeda.fx.node import map_arg
from taeda.fx.passes.infra.pass_base import PassResult
from taeda.nn import Module, Parameter

from .. import _core
from ._checks import Apart, Checks
from ._decompose import decomposed
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, OutputKind, TensorArgument

__all__ = ["CallSpec", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]


@dataclass
class CallSpec:
    """The nesting of arguments, ``(args, kwargs)``, and of the result."""

    in_spec: Any
    out_spec: Any


@dataclass
class ModuleCallSignature:
    """The inputs and outputs of a module's call, and how they nest.

    Args:
        inputs: the inputs, flat.
        outputs: the outputs, flat.
        in_spec: how ``(args, kwargs)`` nest.
        out_spec: how the result nests.
        forward_arg_names: names of the arguments, or None.

    Examples:
        >>> program = taeda.export.export(nn.Linear(3, 2), (taeda.randn(4, 3),))
        >>> len(program.module_call_graph[0].signature.inputs)
        1
    """

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module by its path, and its call.

    Args:
        fqn: the path; empty for the model itself.
        signature: its call, or None.

    Examples:
        >>> program = taeda.export.export(nn.Linear(3, 2), (taeda.randn(4, 3),))
        >>> program.module_call_graph[0].fqn
        ''
    """

    fqn: str
    signature: ModuleCallSignature | None = None


class _CodeGen(_PyTreeCodeGen):
    """A forward with the arguments' own names: those by position, then those by name."""

    def __init__(self, positional: list[str], named: list[str], in_spec: Any, out_spec: Any) -> None:
        super().__init__(_PyTreeInfo(["self", *positional, *named], in_spec, out_spec))
        self.positional, self.named = positional, named

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **options: Any) -> str:
        names = [re.split(r"[:=]", v)[0].strip() for v in free_vars]
        head = f"def forward({', '.join(['self', *self.positional, *self.named])}){maybe_return_annotation}:"
        given = "".join(f"{x}, " for x in self.positional)
        by_name = ", ".join(f"{x!r}: {x}" for x in self.named)
        left = "".join(f"{x}, " for x in names) or "_, *_ = *(), 0; _unused = "
        flat = f"fx_pytree.tree_flatten_spec((({given}), {{{by_name}}}), self._in_spec)"
        return f"{head}\n    {left}= {flat}" if names else f"{head}\n    {flat}"

    def check(self, args: tuple, kwargs: dict) -> None:
        """Whether these are the arguments that the program was made for; those by position may be named, too.

        Args:
            args: the arguments by position.
            kwargs: those by name.
        Raises:
            ValueError: one is missing or unknown.
        """
        by_name = [name for name in kwargs if name not in self.positional[len(args) :]]
        if set(by_name) != set(self.named):
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {by_name} but expected {self.named}"
            )
        given = len(args) + len(kwargs) - len(by_name)
        if given != len(self.positional):
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: expected {len(self.positional)} "
                f"arguments by position ({', '.join(self.positional)}), got {given}"
            )

    def process_inputs(self, *inputs: Any) -> Any:
        return self.pytree_info.in_spec.flatten_up_to((inputs, {}))


class _Program(GraphModule):
    """The module of an ExportedProgram. The grad mode is as before after a call. Arguments that do not fit the program
    are a ValueError, not the TypeError of a call.
    """

    def train(self, mode: bool = True) -> Any:
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> Any:
        raise NotImplementedError("Calling eval() is not supported yet.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.graph._codegen, _CodeGen):
            self.graph._codegen.check(args, kwargs)
        before = _core.is_grad_enabled()
        try:
            return super().__call__(*args, **kwargs)
        except TypeError:
            try:
                inspect.signature(self.forward).bind(*args, **kwargs)
            except TypeError as error:
                raise ValueError(f"the arguments do not fit the program: {error}") from None
            raise
        finally:
            _core.set_grad_enabled(before)


class ExportedProgram:
    """A model as a graph of ops. :func:`export` and :func:`load` make it.

    ``graph_module`` and ``graph`` are the graph. Its inputs are parameters, buffers, constants and then the leaves of
    the arguments. ``module()`` gives a module that runs it.

    Args:
        root: what the graph's attributes are looked up in.
        graph: the graph.
        graph_signature: what its inputs and outputs are.
        state_dict: parameters and persistent buffers by path, those of the model.
        range_constraints: from symbols of sizes to ranges.
        module_call_graph: the call of the model itself.
        example_inputs: ``(args, kwargs)`` of the example; None where the program was loaded without.
        constants: other buffers, and tensors that the program uses.
        checks: what is checked of the arguments in a call.
        call_spec: how arguments and result nest.
        argument_names: names of the arguments by position, and of those by name.
        dialect: ``"TRAINING"``, or another where the program was decomposed.

    Examples:
        >>> program = taeda.export.export(nn.Linear(3, 2), (taeda.randn(4, 3),))
        >>> [name for name, p in program.named_parameters()]
        ['weight', 'bias']
        >>> program.module()(taeda.randn(4, 3)).shape
        taeda.Size([4, 2])
    """

    def __init__(
        self, root: Module | dict, graph: Graph, graph_signature: ExportGraphSignature, state_dict: dict[str, Any],
        range_constraints: dict[str, Any], module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple, dict] | None = None, constants: dict[str, Any] | None = None, *, checks: Checks,
        call_spec: CallSpec, argument_names: tuple[list[str], list[str]], dialect: str = "TRAINING",
    ) -> None:  # fmt: skip
        self.graph_module = root if isinstance(root, GraphModule) else GraphModule(root, graph)
        self.graph_signature = graph_signature
        self.state_dict = state_dict
        self.range_constraints = range_constraints
        self.module_call_graph = module_call_graph
        self.example_inputs = example_inputs
        self.constants = constants or {}
        self.call_spec = call_spec
        self.dialect = dialect
        self._checks, self._argument_names = checks, argument_names

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.graph_module.graph

    @property
    def in_spec(self) -> Any:
        """The nesting of ``(args, kwargs)``."""
        return self.call_spec.in_spec

    @property
    def out_spec(self) -> Any:
        """The nesting of the result."""
        return self.call_spec.out_spec

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """``constants``."""
        return self.constants

    @property
    def constraints(self) -> list[str]:
        """Sentences that state the conditions on sizes of arguments."""
        return self._checks.constraints()

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters, by path."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for _, x in self.named_parameters():
            yield x

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers, by path."""
        for name in self.graph_signature.buffers:
            yield name, self._state(name)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, x in self.named_buffers():
            yield x

    def _state(self, path: str) -> Any:
        return self.state_dict[path] if path in self.state_dict else self.constants[path]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def validate(self) -> None:
        """Check that graph and signature fit each other.

        Raises:
            ValueError: they do not.
        """
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        if names != [s.arg.name for s in self.graph_signature.input_specs]:
            raise ValueError("ExportedProgram: the placeholders of the graph are not the inputs of the signature")
        values = next((n.args[0] for n in self.graph.nodes if n.op == "output"), None)
        if not isinstance(values, (tuple, list)) or len(values) != len(self.graph_signature.output_specs):
            raise ValueError("ExportedProgram: the outputs of the graph are not those of the signature")
        for spec in self.graph_signature.input_specs:
            if spec.kind == InputKind.USER_INPUT:
                continue
            constant = spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False
            held = self.constants if constant else self.state_dict
            if spec.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN) or spec.target not in held:
                raise ValueError(f"ExportedProgram: {spec.target} is neither in the state dict nor among the constants")

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The same program in fewer ops and without writes: new values of buffers and arguments become outputs.

        Args:
            decomp_table: from ops to functions that replace them. By default every op that is not canonical is replaced
                by its decomposition; with an empty dict, none.
            decompose_custom_triton_ops: accepted.

        Returns:
            The new program.
        """
        return decomposed(self, decomp_table)

    def module(self, check_guards: bool = True) -> Any:
        """A module that runs the program, with the same parameters and buffers: it can be trained, and changes buffers.

        A call raises a RuntimeError for arguments of sizes that the program was not made for, and a ValueError for
        arguments that are missing or too many.

        Args:
            check_guards: check the arguments.

        Returns:
            The module.
        """
        graph = Graph()
        values: dict[Node, Any] = {}
        root: dict[str, Any] = {}
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        specs = list(zip(placeholders, self.graph_signature.input_specs, strict=True))
        by_target = {}
        for node, spec in specs:
            if spec.kind == InputKind.USER_INPUT:
                values[node] = graph.placeholder(node.target)
                values[node].meta = dict(node.meta)
                by_target[node.name] = values[node]
        for node, spec in specs:
            if spec.kind != InputKind.USER_INPUT:
                path = str(spec.target)
                root[path] = self._state(path) if spec.kind != InputKind.CONSTANT_TENSOR else self.constants[path]
                values[node] = by_target[path] = graph.get_attr(path)
                values[node].meta = dict(node.meta)
        inputs = [values[n] for n, s in specs if s.kind == InputKind.USER_INPUT]
        if check_guards:
            root["_guards_fn"] = self._checks
            graph.call_module("_guards_fn", tuple(inputs))
            outputs = self.graph_signature.output_specs
            written = [by_target[str(s.target)] for s in outputs if s.kind != OutputKind.USER_OUTPUT]
            if written:
                tensors = list(dict.fromkeys((*inputs, *written)))
                root["_apart_fn"] = Apart([tensors.index(x) for x in written])
                graph.call_module("_apart_fn", tuple(tensors))
        for node in self.graph.nodes:
            if node.op == "get_attr":
                root[node.target] = copy.deepcopy(getattr(self.graph_module, node.target))
            if node.op not in ("placeholder", "output"):
                values[node] = graph.node_copy(node, lambda n: values[n])
        self._return(graph, values, by_target)
        graph._codegen = _CodeGen(*self._argument_names, self.in_spec, self.out_spec)
        # a module's parameters that the graph does not name are kept, as its state dict has them
        made = _Program(root, graph, "GraphModule")
        for path, x in self.state_dict.items():
            _fill(made, path, x, isinstance(x, Parameter))
        for spec in self.graph_signature.input_specs:
            if spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False:
                _fill(made, str(spec.target), self.constants[str(spec.target)], False, persistent=False)
        made.meta["dialect"] = self.dialect
        return made

    def _return(self, graph: Graph, values: dict[Node, Any], by_target: dict[str, Node]) -> None:
        """Write new values back to buffers and arguments, and return the rest."""
        results = []
        output = self.graph.output_node()
        for value, spec in zip(output.args[0], self.graph_signature.output_specs, strict=True):
            value = map_arg(value, lambda n: values[n])
            if spec.kind == OutputKind.USER_OUTPUT:
                results.append(value)
            else:
                graph.call_function(_core_copy(), (by_target[str(spec.target)], value))
        graph.output(tuple(results))

    def _update(self, graph_module: GraphModule, **changes: Any) -> ExportedProgram:
        """The program with another graph, and other attributes as given."""
        given = {
            "graph_signature": self.graph_signature, "state_dict": self.state_dict,
            "range_constraints": self.range_constraints, "module_call_graph": self.module_call_graph,
            "example_inputs": self.example_inputs, "constants": self.constants, "checks": self._checks,
            "call_spec": self.call_spec, "argument_names": self._argument_names, "dialect": self.dialect, **changes,
        }  # fmt: skip
        return ExportedProgram(graph_module, graph_module.graph, **given)

    def _transform_do_not_use(self, *passes: Callable) -> ExportedProgram:
        """The program after passes, functions of a GraphModule that give a ``PassResult`` or None."""
        module = copy.deepcopy(self.graph_module)
        for each in passes:
            result: PassResult | None = each(module)
            module = module if result is None else result.graph_module
        signature = copy.deepcopy(self.graph_signature)
        outputs = module.graph.output_node().args[0]
        for spec, value in zip(signature.output_specs, outputs, strict=True):
            if isinstance(value, Node):
                spec.arg = TensorArgument(value.name) if isinstance(spec.arg, ConstantArgument) else spec.arg
                spec.arg.name = value.name
        return self._update(module, graph_signature=signature)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\n"
            f"Range constraints: {{{', '.join(f'{k}: {v}' for k, v in self.range_constraints.items())}}}\n"
        )

    def _repr_html_(self) -> str:
        from taeda._html import fold, pre, table

        state = [
            (name, str(list(t.shape)), str(t.dtype).rpartition(".")[2])
            for name, t in (*self.named_parameters(), *self.named_buffers())
        ]
        nodes = sum(node.op == "call_function" for node in self.graph.nodes)
        parts = [
            fold("graph", pre(self.graph_module.print_readable(print_output=False)), True),
            fold("signature", pre(str(self.graph_signature))),
            fold("parameters and buffers", table(("Name", "Sizes", "Dtype"), state)),
        ]
        if self.range_constraints:
            parts.append(fold("sizes", pre("\n".join(f"{k}: {v}" for k, v in self.range_constraints.items()))))
        return fold(f"ExportedProgram · {nodes} ops", "".join(parts), True)


def _core_copy() -> Any:
    from taeda.ops.table import METHODS

    return METHODS["copy_"]


def _fill(module: Module, path: str, x: Any, parameter: bool, persistent: bool = True) -> None:
    *prefix, name = path.split(".")
    for part in prefix:
        if getattr(module, part, None) is None:
            setattr(module, part, Module())
        module = getattr(module, part)
    if parameter:
        if name not in module._parameters:
            module.__dict__.pop(name, None)
            module.register_parameter(name, x)
        return
    for held in (module._buffers, module._parameters, module.__dict__):  # a Parameter that no module has is a constant
        held.pop(name, None)
    module.register_buffer(name, x, persistent=persistent)
