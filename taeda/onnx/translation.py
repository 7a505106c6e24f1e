"""A decomposed program as the nodes of an ONNX graph."""

from __future__ import annotations

import functools
import inspect
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import taeda
from taeda._core.tensor import ALIASES, FIRST
from taeda.export import ExportedProgram
from taeda.export.graph_signature import InputKind, OutputKind, TensorArgument
from taeda.fx import GraphModule, Node
from taeda.fx.node import map_aggregate

from .._typed import Tensor
from .errors import OnnxExporterError, UnsupportedOperatorError
from .functions import calls_of
from .translate import by_function
from .translate.complex import PARTS, Form, Pair, is_complex, joined, parted, translator_of
from .writer import Unsupported, Value, Writer

_HERE = str(Path(taeda.__file__).parent)
#: Replacements for ops that ONNX has no form of, by the beginnings of their names.
_NEAREST = {
    "linalg_": "compute it before export; real matrices have lu, cholesky, qr, svd, eigh and what rests on them",
    "unique": "its result's size depends on values", "nonzero": "use where, or masked_fill",
    "_ctc_loss": "export the model without its loss", "mode": "use one_hot(...).sum(0).argmax(-1)",
}  # fmt: skip


class Translation:
    """Nodes, inputs and outputs of a program. ``weights`` are the initializers that are the program's state."""

    def __init__(
        self, program: ExportedProgram, opset: int, custom: Mapping[Any, Callable],
        input_names: Sequence[str] = (), output_names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.program, self.custom = program, custom
        self.writer = Writer(opset)
        self.writer.run = self._run_graph
        self.weights: dict[str, Tensor] = {}
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.complex_outputs: list[bool] = []
        self._reserve(output_names)
        values = self._placeholders(input_names)
        output = program.graph.output_node()
        results = self._run(self.writer, program.graph_module, values)
        self.writer.module_calls = ()
        self._finish(output, results, output_names)

    def _reserve(self, names: Sequence[str]) -> None:
        for name in names:
            self.writer.names[name] = 0

    # ---- inputs and outputs ----

    def _placeholders(self, input_names: Sequence[str]) -> dict[Node, Any]:
        program, given = self.program, list(input_names)
        values: dict[Node, Any] = {}
        nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
        pairs = list(zip(nodes, program.graph_signature.input_specs, strict=True))
        for node, spec in pairs:
            if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
                name = self.writer.name(given.pop(0) if given else node.name)
                values[node] = self._input(name, node.meta["val"], self.inputs)
            elif spec.kind == InputKind.USER_INPUT:
                values[node] = node.meta.get("val")
        if given:
            raise ValueError(f"onnx.export: {len(given)} more input_names than tensors among the arguments: {given}")
        for node, spec in pairs:
            if spec.kind == InputKind.USER_INPUT:
                continue
            path = str(spec.target)
            constant = spec.kind == InputKind.CONSTANT_TENSOR
            x = program.constants[path] if constant else program._state(path)
            name = self.writer.name(path)
            values[node] = self._input(name, x, [])
            self.weights[name] = taeda.view_as_real(x.detach()) if is_complex(x) else x.detach()
        return values

    def _input(self, name: str, x: Tensor, inputs: list[Value]) -> Any:
        """A value from outside: of complex numbers the parts are its last dimension."""
        if not is_complex(x):
            inputs.append(Value(name, x.dtype, x.shape))
            return inputs[-1]
        inputs.append(Value(name, PARTS[x.dtype], (*x.shape, 2)))
        return parted(self.writer, inputs[-1])

    def _finish(self, output: Node, results: Sequence, output_names: Sequence[str]) -> None:
        specs = self.program.graph_signature.output_specs
        written = [str(s.target) for s in specs if s.kind != OutputKind.USER_OUTPUT]
        if written:
            warnings.warn(
                f"onnx.export: an ONNX model keeps no state; what is written to {', '.join(written)} is left out. Call "
                "model.eval() before export, or return the new values",
                stacklevel=5,
            )
        g, names = self.writer, list(output_names)
        user = [x for x, s in zip(results, specs, strict=True) if s.kind == OutputKind.USER_OUTPUT and x is not None]
        nodes = [n for n, s in zip(output.args[0], specs, strict=True) if s.kind == OutputKind.USER_OUTPUT]
        if len(names) > len(user):
            raise ValueError(f"onnx.export: {len(names)} output_names for {len(user)} outputs")
        labels = [n.name if isinstance(n, Node) else "output" for n in nodes if n is not None]
        for i, x in enumerate(user):
            self.complex_outputs.append(isinstance(x, Pair))
            value = joined(g, x) if isinstance(x, Pair) else g.scalar(x) if isinstance(x, Value) else g.constant(x)
            made = g.Identity(value, shape=value.shape)
            name = names[i] if i < len(names) else g.name(labels[i])
            g.nodes[-1].output[0] = made.name = name
            self.outputs.append(made)

    # ---- steps ----

    def _run_graph(self, g: Writer, module: GraphModule, inputs: Sequence) -> list:
        nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
        results = self._run(g, module, dict(zip(nodes, inputs, strict=True)))
        return [g.scalar(x) if isinstance(x, Value) else g.constant(x) for x in results]

    def _run(self, g: Writer, module: GraphModule, values: dict[Node, Any]) -> Sequence:
        for node in module.graph.nodes:
            if node.op == "get_attr":
                found = getattr(module, node.target)
                values[node] = g.constant(found) if isinstance(found, Tensor) else found
            elif node.op == "call_function" and (node.users or node.target is not operator.getitem):
                values[node] = self._call(g, node, values)
        return map_aggregate(module.graph.output_node().args[0], lambda x: _value(values, x))

    def _call(self, g: Any, node: Node, values: dict[Node, Any]) -> Any:
        function: Any = node.target
        args, kwargs = map_aggregate((node.args, dict(node.kwargs)), lambda x: _value(values, x))
        g.result, g.scope = node.meta.get("val"), _scope(node)
        if g is self.writer:
            g.module_calls = calls_of(node)
        try:
            translator = self.custom.get(function) or self._translator(g, function, (args, kwargs))
        except Unsupported as error:
            raise UnsupportedOperatorError(_refusal(node, str(error))) from None
        kwargs = {_spelled(translator, k): v for k, v in kwargs.items() if not (k == "out" and v is None)}
        try:
            made = translator(g, *args, **kwargs)
        except Unsupported as error:
            raise UnsupportedOperatorError(_refusal(node, str(error))) from None
        except OnnxExporterError:
            raise
        except (TypeError, ValueError, RuntimeError, IndexError, KeyError, AttributeError, AssertionError) as error:
            raise OnnxExporterError(_refusal(node, f"{type(error).__name__}: {error}")) from error
        g.result = node.meta.get("val")
        made = _formed(g, made, g.result)
        if isinstance(made, Value):
            g.root.calls[made.name] = translator, args
        return made

    def _translator(self, g: Writer, function: Any, given: Any) -> Callable:
        """The function that writes a call of ``function``."""
        forms = g.result if isinstance(g.result, tuple) else (g.result,)
        if any(isinstance(x, Pair) for x in given_leaves(given)) or any(map(is_complex, forms)):
            return translator_of(function)
        translator = by_function().get(function)
        if translator is None:
            raise Unsupported("there is no translation of it")
        return translator


def given_leaves(tree: Any) -> list:
    """The values of arguments: a pair is one."""
    if isinstance(tree, (Pair, Value)):
        return [tree]
    if isinstance(tree, dict):
        return given_leaves(list(tree.values()))
    return [x for item in tree for x in given_leaves(item)] if isinstance(tree, (tuple, list)) else [tree]


@functools.cache
def _parameters(translator: Callable) -> list[str]:
    return list(inspect.signature(translator).parameters)[1:]


def _spelled(translator: Callable, name: str) -> str:
    """The translator's name of an argument that a program may have by NumPy's name, or another of the first one's."""
    known = _parameters(translator)
    if name in known:
        return name
    found = ALIASES.get(name, name)
    return known[0] if found in FIRST and known and known[0] not in ("args", "given") else found


def _value(values: dict[Node, Any], x: Any) -> Any:
    return values[x] if isinstance(x, Node) else x


def _formed(g: Writer, made: Any, form: Any) -> Any:
    """The result of a translator, with the dtypes and sizes that the program has there."""
    if is_complex(form):
        if not isinstance(made, Pair):
            raise TypeError("expected a complex result")
        like = Form(tuple(form.shape), PARTS[form.dtype])
        return Pair(*(_real(g, part, like) for part in made))
    if isinstance(form, Tensor):
        return _real(g, made, form)
    if isinstance(form, tuple) and isinstance(made, tuple):
        parts = [
            x if x is None or not isinstance(f, Tensor) else _formed(g, x, f) for x, f in zip(made, form, strict=False)
        ]
        return tuple(parts)
    return made


def _real(g: Writer, made: Any, form: Any) -> Value:
    if isinstance(made, (tuple, list)):
        raise TypeError(f"expected one result, got {len(made)}")
    made = g.scalar(made) if isinstance(made, Value) else g.constant(made, form.dtype)
    made = g.cast(made, form.dtype)
    if made.shape is None or len(made.shape) != len(form.shape) or None in made.shape:
        made.shape = tuple(form.shape)
    return made


def _scope(node: Node) -> str:
    paths = list(node.meta.get("nn_module_stack", {}))
    return f"/{paths[-1].replace('.', '/')}/" if paths and paths[-1] else "/"


def _refusal(node: Node, why: str) -> str:
    name = getattr(node.target, "__name__", str(node.target))
    nearest = next((text for start, text in _NEAREST.items() if name.startswith(start)), None)
    nearest = nearest or "write it in other ops, or pass custom_translation_table={function: translation}"
    line = user_line(node)
    return f"onnx.export: {name} cannot be written as ONNX: {why}\n{line}\nNearest alternative: {nearest}."


def user_line(node: Node) -> str:
    """The innermost line of the user's program in which a step was recorded."""
    trace = node.meta.get("stack_trace") or ""
    steps = re.findall(r'  File "([^"]*)", line \d+, in .*\n.*', trace)
    whole = [m.group(0) for m in re.finditer(r'  File "[^"]*", line \d+, in .*\n.*', trace)]
    own = [text for file, text in zip(steps, whole, strict=True) if not file.startswith(_HERE)]
    return (own or whole or ["  (line not known)"])[-1]
