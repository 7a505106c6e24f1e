"""``save`` and ``load``: programs as files, PyTorch's or those of ``docs/export-format.md``.

Loading runs no code of the file.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from typing import Any

from taeda._core import Tensor
from taeda.fx import Graph, GraphModule, Node
from taeda.io import safetensors
from taeda.io.archive import ArchiveReader, ArchiveWriter
from taeda.kernels.files import atomic_write
from taeda.nn import Parameter
from taeda.utils import _pytree as pytree

from . import _functions, _pt2, _pt2_write
from ._assemble import assemble, parse_json
from ._checks import Checks, InputCheck
from ._encoding import (
    bad,
    decode,
    decode_expr,
    decode_ranges,
    decode_spec,
    decode_value,
    encode,
    encode_expr,
    encode_ranges,
    encode_spec,
    encode_value,
    fields,
    identifier,
    items,
    path,
)
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

__all__ = ["load", "save"]

#: The version of the format. A reader takes files of its own version and of those before it.
VERSION = 1


def save(
    ep: ExportedProgram, f: str | os.PathLike | Any, *, extra_files: Mapping[str, Any] | None = None,
    opset_version: dict[str, int] | None = None, pickle_protocol: int = 2, format: str = "pt2",
) -> None:  # fmt: skip
    """Write a program to a file, by default one that ``torch.export.load`` of PyTorch 2.13 reads (``.pt2``).

    Such a file has the ops of PyTorch's library, ATen, and the program's own (``taeda.library``). What ATen has no op
    for is decomposed.

    Args:
        ep: the program.
        f: a path, which is replaced all at once, or an open binary file.
        extra_files: texts or bytes by name, which :func:`load` gives back.
        opset_version: accepted; files have one version.
        pickle_protocol: accepted; the example's arguments are written by protocol 2.
        format: ``"pt2"``, or ``"taeda"`` for a file of taeda's own format, which keeps every program as it is: all ops
            of taeda, and the names of dimensions.

    Raises:
        TypeError: ``ep`` is no ExportedProgram.
        ValueError: the program has something that the format cannot express; nothing is written.

    Examples:
        >>> import io
        >>> model, file = nn.Linear(3, 2), io.BytesIO()
        >>> taeda.export.save(taeda.export.export(model, (taeda.randn(4, 3),)), file)
        >>> _ = file.seek(0)
        >>> x = taeda.randn(4, 3)
        >>> bool((taeda.export.load(file).module()(x) == model(x)).all())
        True
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if format not in ("taeda", "pt2"):
        raise ValueError(f"export.save: expected format 'taeda' or 'pt2', got {format!r}")
    extra = {name: x.encode() if isinstance(x, str) else bytes(x) for name, x in (extra_files or {}).items()}
    if format == "pt2":
        records, top = _pt2_write.records_of(ep), "model"
    else:
        records, top = _records(ep), "program"
    records.update({f"extra/{name}": x for name, x in extra.items()})
    if isinstance(f, (str, os.PathLike)):
        with atomic_write(f) as file:
            _write(file, records, top)
    else:
        _write(f, records, top)


def _write(file: Any, records: dict[str, bytes], top: str) -> None:
    writer = ArchiveWriter(file, top)
    for name, data in records.items():
        writer.add(name, data)
    writer.close()


def load(
    f: str | os.PathLike | Any, *, extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:  # fmt: skip
    """Read a program from a file that :func:`save` wrote, or ``torch.export.save`` of PyTorch 2.13 (``.pt2``).

    No code of the file is run: it can name ops, and nothing else. The example's arguments are read as data.

    Args:
        f: a path or an open binary file.
        extra_files: its keys name texts to read; its values are set.
        expected_opset_version: accepted.

    Returns:
        An :class:`ExportedProgram`.

    Raises:
        ValueError: the file is damaged, of a newer version, or names what is not known.
        RuntimeError: likewise, in files of PyTorch.

    Examples:
        >>> taeda.export.save(taeda.export.export(nn.ReLU(), (taeda.ones(2),)), "relu.pt2")
        >>> taeda.export.load("relu.pt2").module()(taeda.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    data: Any
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    else:
        data = f.read()
    archive = ArchiveReader(data)
    try:
        if archive.has("program.json"):
            program = _read(archive)
        else:
            program = _pt2.read(archive)
    except (RecursionError, OverflowError, UnicodeDecodeError) as error:
        raise bad(f"the file is damaged ({type(error).__name__})") from None
    for name in extra_files or {}:
        extra_files[name] = bytes(archive.read(f"extra/{name}")).decode()  # type: ignore[index]
    return program


# ---- writing ---------------------------------------------------------------------------------------------------------


def _records(ep: ExportedProgram) -> dict[str, bytes]:
    tensors: dict[str, Tensor] = {}
    state = {name: _stored(x, tensors) for name, x in ep.state_dict.items()}
    constants = {name: _stored(x, tensors) for name, x in ep.constants.items()}
    example = None
    if ep.example_inputs is not None:
        leaves = pytree.tree_leaves(ep.example_inputs)
        example = [_stored(x, tensors) if isinstance(x, Tensor) else {"value": encode(x)} for x in leaves]
    positional, named = ep._argument_names
    program = {
        "version": VERSION,
        "dialect": ep.dialect,
        "graph": _encode_graph(ep.graph_module),
        "inputs": [{**_encode_spec(s), "persistent": s.persistent} for s in ep.graph_signature.input_specs],
        "outputs": [_encode_spec(s) for s in ep.graph_signature.output_specs],
        "arguments": {"positional": positional, "named": named},
        "in_spec": encode_spec(ep.in_spec),
        "out_spec": encode_spec(ep.out_spec),
        "ranges": encode_ranges(ep.range_constraints),
        "checks": [_encode_check(c) for c in ep._checks.inputs],
        "guards": [[encode_expr(e), outcome] for e, outcome in ep._checks.guards],
        "state": state,
        "constants": constants,
        "example": example,
    }
    text = json.dumps(program, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return {"program.json": text.encode(), "tensors.safetensors": safetensors.save(tensors)}


def _stored(x: Any, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The identity of a tensor: tensors that are one in the program are one in the file."""
    if not isinstance(x, Tensor):
        raise ValueError(f"export.save: expected a tensor, got {type(x).__name__}")
    kind = {**({"parameter": True} if isinstance(x, Parameter) else {}), "requires_grad": bool(x.requires_grad)}
    plain = x.detach()
    for key, other in tensors.items():
        if _form(other) == _form(plain) and plain.numel():
            return {"tensor": key, **kind}
    key = f"t{len(tensors)}"
    shares = any(other.untyped_storage()._address() == plain.untyped_storage()._address() for other in tensors.values())
    tensors[key] = plain.clone() if shares else plain
    return {"tensor": key, **kind}


def _form(x: Tensor) -> Any:
    return x.untyped_storage()._address(), x.storage_offset(), x.dtype, tuple(x.shape), tuple(x.stride())


def _encode_graph(module: GraphModule) -> dict[str, Any]:
    nodes, inner = [], {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            entry: dict[str, Any] = {"input": node.name}
        elif node.op == "get_attr":
            inner[node.target] = _encode_graph(getattr(module, node.target))
            entry = {"graph": node.target, "name": node.name}
        elif node.op == "output":
            entry = {"output": encode(node.args[0])}
        elif node.op == "call_function":
            entry = {"call": _functions.name_of(node.target), "name": node.name, "args": [encode(a) for a in node.args]}
            if node.kwargs:
                entry["kwargs"] = {k: encode(v) for k, v in node.kwargs.items()}
        else:
            raise ValueError(f"export.save: steps of kind {node.op} cannot be written to a file ({node.name})")
        value = encode_value(node.meta.get("val"))
        if value is not None and node.op != "output":
            entry["value"] = value
        if node.meta.get("stack_trace"):
            entry["stack"] = node.meta["stack_trace"]
        if node.meta.get("nn_module_stack"):
            entry["modules"] = [list(map(str, pair)) for pair in node.meta["nn_module_stack"].values()]
        nodes.append(entry)
    return {"nodes": nodes, "graphs": inner}


#: Keys in files for the numbers that a program finds.
_NUMBERS: dict[Any, str] = {SymIntArgument: "size", SymFloatArgument: "number", SymBoolArgument: "condition"}


def _encode_argument(arg: Any) -> dict[str, Any]:
    if isinstance(arg, TensorArgument):
        return {"tensor": arg.name}
    for kind, key in _NUMBERS.items():
        if isinstance(arg, kind):
            return {key: arg.name}
    return {"constant": arg.name, "value": encode(arg.value)}


def _encode_spec(spec: InputSpec | OutputSpec) -> dict[str, Any]:
    return {"kind": spec.kind.name, "arg": _encode_argument(spec.arg), "target": spec.target}


def _encode_check(check: InputCheck) -> dict[str, Any]:
    if check.sizes is None:
        return {"place": check.place, "name": check.name, "value": encode(check.value)}
    return {"place": check.place, "name": check.name, "sizes": [encode_expr(n) for n in check.sizes]}


# ---- reading ---------------------------------------------------------------------------------------------------------


_KEYS = "dialect graph inputs outputs arguments in_spec out_spec ranges checks guards state constants example".split()


def _read(archive: ArchiveReader) -> ExportedProgram:
    program = parse_json(archive.read("program.json"))
    if not isinstance(program, dict) or type(program.get("version")) is not int:
        raise bad("program.json has no version")
    if not 1 <= program["version"] <= VERSION:
        raise bad(f"the file is of version {program['version']}; this reader knows 1 to {VERSION}")
    dialect, graph, inputs, outputs, arguments, in_spec, out_spec, ranges, checks, guards, state, constants, example = (
        fields(program, "version", *_KEYS)[1:]
    )
    tensors = safetensors.parse(archive.read("tensors.safetensors"), False)
    module = _decode_graph(graph, 0)
    signature = ExportGraphSignature(
        [_decode_input(s) for s in items(inputs)], [_decode_output(s) for s in items(outputs)]
    )
    state_dict = _tensors_of(state, tensors)
    symbols = decode_ranges(ranges)
    shown = Checks(
        [_decode_check(c, symbols) for c in items(checks)], symbols, [_decode_guard(g, symbols) for g in items(guards)]
    )
    in_tree, out_tree = decode_spec(in_spec), decode_spec(out_spec)
    names = tuple([identifier(n) for n in items(part)] for part in fields(arguments, "positional", "named"))
    return assemble(
        module, signature, state_dict, _tensors_of(constants, tensors), shown, in_tree, out_tree, names,
        example=_example(example, tensors, in_tree), dialect=dialect if isinstance(dialect, str) else "TRAINING",
    )  # fmt: skip


def _tensors_of(x: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    if not isinstance(x, dict):
        raise bad("expected tensors by path")
    made: dict[Any, Tensor] = {}
    found = {}
    for name, entry in x.items():
        tensor, parameter, grad = fields(entry, "tensor", "parameter", "requires_grad")
        value = tensors.get(tensor) if isinstance(tensor, str) else None
        if value is None:
            raise bad(f"there is no tensor {tensor!r:.80}")
        key = tensor, parameter is True
        if key not in made:
            wants = grad is True and (value.is_floating_point() or value.is_complex())
            made[key] = Parameter(value, requires_grad=wants) if parameter is True else value
        found[path(name)] = made[key]
    return found


def _example(x: Any, tensors: dict[str, Tensor], spec: Any) -> Any:
    if x is None:
        return None
    leaves = []
    for entry in items(x, spec.num_leaves):
        tensor, _, _, value = fields(entry, "tensor", "parameter", "requires_grad", "value")
        if tensor is not None and (not isinstance(tensor, str) or tensor not in tensors):
            raise bad(f"there is no tensor {tensor!r:.80}")
        leaves.append(decode(value, {}) if tensor is None else tensors[tensor])
    return pytree.tree_unflatten(leaves, spec)


def _decode_graph(x: Any, depth: int) -> GraphModule:
    if depth > 20:
        raise bad("graphs are too deep inside of each other")
    entries, inner = fields(x, "nodes", "graphs")
    if not isinstance(inner, dict):
        raise bad("the graphs inside of a graph are no object")
    modules = {identifier(name): _decode_graph(g, depth + 1) for name, g in inner.items()}
    graph, nodes = Graph(), dict[str, Node]()
    ended = False
    for entry in items(entries):
        if ended:
            raise bad("a step follows the output")
        ended = _decode_step(entry, graph, nodes, modules)
    if not ended:
        raise bad("a graph has no output")
    try:
        return GraphModule(modules, graph, "GraphModule")
    except SyntaxError as error:  # an item of a number is set
        raise bad(f"its steps are no program: {error.msg}") from None


def _decode_step(entry: Any, graph: Graph, nodes: dict[str, Node], modules: dict[str, GraphModule]) -> bool:
    """Append a step; gives whether it was the output."""
    keys = "input graph output call name args kwargs value stack modules".split()
    source, inner, _, call, name, args, kwargs, value, stack, where = fields(entry, *keys)
    if "output" in entry:
        graph.output(decode(entry["output"], nodes))
        if not isinstance(graph.output_node().args[0], tuple):
            raise bad("the output of a graph is no tuple")
        return True
    label = identifier(source if source is not None else name)
    if label in nodes:
        raise bad(f"two steps are called {label}")
    if source is not None:
        if any(n.op != "placeholder" for n in graph.nodes):
            raise bad("an input follows a step")
        node = graph.placeholder(label)
    elif inner is not None:
        if not isinstance(inner, str) or inner not in modules:
            raise bad(f"there is no graph {inner!r:.80}")
        node = graph.create_node("get_attr", inner, (), {}, label)
    else:
        function = _functions.function_of(call)
        if function is None:
            raise bad(f"{call!r:.80} is no function that programs may call")
        values = tuple(decode(a, nodes) for a in items(args))
        if kwargs is not None and not isinstance(kwargs, dict):
            raise bad("arguments by name are no object")
        named = {identifier(k): decode(v, nodes) for k, v in (kwargs or {}).items()}
        _functions.check_call(str(call), function, values, named)
        node = graph.create_node("call_function", function, values, named, label)
    if node.name != label:
        node.name = label
        graph._graph_namespace._rename_object(node, label)
    nodes[label] = node
    if value is not None:
        node.meta["val"] = decode_value(value)
    if stack is not None:
        if not isinstance(stack, str):
            raise bad("a stack trace is no text")
        node.meta["stack_trace"] = stack
    if where is not None:
        pairs = [items(pair, 2) for pair in items(where)]
        node.meta["nn_module_stack"] = {str(p): (str(p), str(kind)) for p, kind in pairs}
    return False


def _decode_argument(x: Any) -> Any:
    tensor, constant, value, *numbers = fields(x, "tensor", "constant", "value", *_NUMBERS.values())
    if tensor is not None:
        return TensorArgument(identifier(tensor))
    for kind, name in zip(_NUMBERS, numbers, strict=True):
        if name is not None:
            return kind(identifier(name))
    if not isinstance(constant, str) or (constant and identifier(constant) != constant):
        raise bad("an argument has no name")
    return ConstantArgument(constant, decode(value, {}))


def _kind(kinds: Any, name: Any) -> Any:
    if not isinstance(name, str) or name not in kinds.__members__:
        raise bad(f"unknown kind {name!r:.80}")
    return kinds[name]


def _decode_input(x: Any) -> InputSpec:
    kind, arg, target, persistent = fields(x, "kind", "arg", "target", "persistent")
    if isinstance(persistent, bool) != (kind == "BUFFER") or not (persistent is None or isinstance(persistent, bool)):
        raise bad("'persistent' is true or false for buffers, and null for others")
    made = InputSpec(
        _kind(InputKind, kind), _decode_argument(arg), None if target is None else path(target), persistent
    )
    if (made.kind == InputKind.USER_INPUT) != (target is None):
        raise bad(f"an input of kind {kind} has the target {target!r:.80}")
    return made


def _decode_output(x: Any) -> OutputSpec:
    kind, arg, target = fields(x, "kind", "arg", "target")
    return OutputSpec(_kind(OutputKind, kind), _decode_argument(arg), None if target is None else path(target))


def _decode_check(x: Any, symbols: dict) -> InputCheck:
    place, name, sizes, value = fields(x, "place", "name", "sizes", "value")
    if not isinstance(place, str):
        raise bad("an argument has no place")
    if sizes is None:
        return InputCheck(place, identifier(name), None, decode(value, {}))
    return InputCheck(place, identifier(name), [_known(decode_expr(n), symbols) for n in items(sizes)], None)


def _decode_guard(x: Any, symbols: dict) -> tuple[Any, bool]:
    expr, outcome = items(x, 2)
    made = _known(decode_expr(expr), symbols)
    if not isinstance(outcome, bool) or isinstance(made, (int, float)):
        raise bad("a guard is a comparison and its outcome")
    return made, outcome


def _known(expr: Any, symbols: dict) -> Any:
    if not isinstance(expr, (int, float)) and not expr.symbols() <= set(symbols):
        raise bad(f"{expr} has symbols without a range")
    return expr
