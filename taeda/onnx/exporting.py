"""``taeda.onnx.export``: arguments, the program, its translation, checks, and files."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import taeda
from taeda.export import Dim, ExportedProgram, default_decompositions
from taeda.export import export as export_program
from taeda.export._decompose import decomposed
from taeda.export.dynamic_shapes import ConstraintsViolated, UserError
from taeda.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from taeda.utils import _pytree as pytree

from .. import nn
from .._typed import Tensor
from . import matrices, ops
from .errors import OnnxExporterError, TorchExportError
from .functions import PLAIN, Functions, annotated, wanted_kinds
from .modes import TrainingMode, exporting, select_model_mode_for_export
from .optimize import uses, without_dead
from .program import ONNXProgram
from .symbolic_helper import translations
from .translate import by_function
from .translate.complex import targets as complex_targets
from .translation import Translation
from .writer import CODES, Unsupported, dims

DEFAULT_OPSET = 20
OPSETS = range(17, 24)


def export(model: Any, args: Any, options: dict[str, Any]) -> ONNXProgram:
    """See :func:`taeda.onnx.export`, which has the defaults of ``options``."""
    opset = options["opset_version"] or DEFAULT_OPSET
    if opset not in OPSETS:
        raise ValueError(f"onnx.export: expected opset_version from {OPSETS[0]} to {OPSETS[-1]}, got {opset}")
    say = print if options["verbose"] else lambda *_: None
    with exporting():
        say("[taeda.onnx] Record the model...")
        program = _program(model, args, options)
        if options["dump_exported_program"]:
            Path(options["artifacts_dir"]).mkdir(parents=True, exist_ok=True)
            taeda.export.save(program, os.path.join(options["artifacts_dir"], "onnx_export.pt2"), format="taeda")
        say("[taeda.onnx] Decompose and translate it...")
        custom = custom_table(options["custom_translation_table"])
        custom = {**ops.translations(), **({} if options["dynamo"] else translations()), **custom}
        made = written(program, opset, custom, options, model if isinstance(model, nn.Module) else None)
    say("[taeda.onnx] Check it...")
    check(made)
    if options["verify"]:
        verify(made, program)
        say("[taeda.onnx] onnxruntime agrees with the model.")
    if options["report"]:
        _report(made, program, options["artifacts_dir"])
    return made


# ---- the program -----------------------------------------------------------------------------------------------------


def _program(model: Any, args: Any, options: dict[str, Any]) -> ExportedProgram:
    if isinstance(model, ExportedProgram):
        return model
    if not isinstance(model, nn.Module):
        if not callable(model):
            raise TypeError(f"onnx.export: expected a Module or an ExportedProgram, got {type(model).__name__}")
        model = _Function(model)
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(options["kwargs"] or {})
    if args and isinstance(args[-1], dict) and not options["dynamo"]:  # the old exporter's arguments by name
        args, kwargs = args[:-1], {**args[-1], **kwargs}
    shapes = options["dynamic_shapes"]
    if shapes is None and options["dynamic_axes"]:
        shapes = _of_axes(options["dynamic_axes"], options["input_names"] or (), model, args, kwargs)
    mode = TrainingMode.PRESERVE if options["dynamo"] else options["training"]
    with select_model_mode_for_export(model, mode), taeda.no_grad():
        try:
            return _recorded(model, args, kwargs, shapes)
        except (UserError, GuardOnDataDependentSymNode) as error:
            raise TorchExportError(f"onnx.export: the model cannot be recorded: {error}") from error


class _Function(nn.Module):
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _recorded(model: nn.Module, args: tuple, kwargs: dict, shapes: Any) -> ExportedProgram:
    """The program. Names of sizes that are strings need not be kept: where that fails, sizes are tied or fixed."""
    names: dict[str, Any] = {}
    exact = _named(shapes, lambda name: names.setdefault(name, Dim(name)))
    try:
        return export_program(model, args, kwargs, dynamic_shapes=exact)
    except ConstraintsViolated as error:
        if not names:
            raise
        warnings.warn(
            f"onnx.export: sizes named {', '.join(names)} are tied or fixed as the model needs: {error}", stacklevel=6
        )
        return export_program(model, args, kwargs, dynamic_shapes=_named(shapes, lambda _: Dim.AUTO))


def _named(shapes: Any, make: Callable[[str], Any]) -> Any:
    if isinstance(shapes, str):
        return make(shapes)
    if isinstance(shapes, Mapping):
        return {k: _named(v, make) for k, v in shapes.items()}
    return type(shapes)(_named(v, make) for v in shapes) if isinstance(shapes, (tuple, list)) else shapes


def _of_axes(axes: Mapping, input_names: Sequence[str], model: nn.Module, args: tuple, kwargs: dict) -> Any:
    """``dynamic_axes``, by names of inputs, as ``dynamic_shapes``."""
    from taeda.export._trace import named_arguments

    named = named_arguments(model, args, kwargs)
    leaves, spec = pytree.tree_flatten(named)
    own = _leaf_names(named)
    given = list(input_names)
    shapes: list[Any] = []
    for leaf, name in zip(leaves, own, strict=True):
        if not isinstance(leaf, Tensor):
            shapes.append(None)
            continue
        label = given.pop(0) if given else name
        wanted = axes.get(label, axes.get(name, {}))
        if not isinstance(wanted, Mapping):
            wanted = {d: f"{label}_dynamic_axes_{i + 1}" for i, d in enumerate(wanted)}
        shapes.append({d % leaf.dim(): _identifier(n) for d, n in wanted.items()} or None)
    return pytree.tree_unflatten(shapes, spec)


def _identifier(name: str) -> str:
    made = "".join(c if c.isalnum() or c == "_" else "_" for c in str(name))
    return made if made[:1].isalpha() or made[:1] == "_" else f"dim_{made}"


def _leaf_names(named: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in named.items():
        count = len(pytree.tree_leaves(value))
        found += [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
    return found


# ---- the model -------------------------------------------------------------------------------------------------------


def custom_table(given: Mapping[Any, Any] | None) -> dict[Any, Callable]:
    """The translations that the user gave: functions of a writer, or functions of onnxscript."""
    return {key: _of_script(f) if hasattr(f, "to_function_proto") else f for key, f in (given or {}).items()}


def _of_script(function: Any) -> Callable:
    """A call of a function of onnxscript as a node. Its inputs come first, then its attributes."""
    proto = function.to_function_proto()
    names = [*proto.input, *proto.attribute, *(a.name for a in proto.attribute_proto)]

    def translate(g: Any, *args: Any, **kwargs: Any) -> Any:
        g.root.functions[proto.domain, proto.name] = proto
        g.root.domains[proto.domain] = 1
        extra = [x for x in args[len(names) :] if x is not None and x is not False]
        if extra:
            raise Unsupported(f"{proto.name} of onnxscript takes {names}, got {extra} as well")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        inputs = [given.get(n) for n in proto.input]
        attributes = {n: x for n, x in given.items() if n in names and n not in proto.input}
        made = g.op(proto.name, *inputs, domain=proto.domain, outputs=len(proto.output), **attributes)
        forms = g.result if isinstance(g.result, tuple) else (g.result,)
        for x, form in zip(made if isinstance(made, tuple) else (made,), forms, strict=False):
            x.dtype = form.dtype
        return made

    return translate


def written(
    program: ExportedProgram, opset: int, custom: dict[Any, Callable], options: dict[str, Any],
    source: nn.Module | None = None,
) -> ONNXProgram:  # fmt: skip
    """The program as ONNX. ``source`` is the model that it was made from.

    Args:
        program: what to write.
        opset: the version of ONNX's ops.
        custom: the caller's translations, by functions of taeda.
        options: of :func:`taeda.onnx.export`.
        source: the model that it was made from.

    Returns:
        The model as ONNX.

    Raises:
        UnsupportedOperatorError: ONNX has no form of an op.
    """
    onnx = import_onnx()
    from onnx import helper

    rules, targets = {**default_decompositions(), **matrices.rules()}, {*by_function(), *custom}
    targets |= complex_targets()
    for function in targets:
        rules.pop(function, None)
    fewer = decomposed(program, rules, targets)
    made = Translation(fewer, opset, custom, options["input_names"] or (), options["output_names"] or ())
    g = made.writer
    inputs, outputs = (
        [helper.make_tensor_value_info(x.name, CODES[x.dtype], dims(x.shape)) for x in xs]
        for xs in (made.inputs, made.outputs)
    )
    versions = {"": opset, **g.domains, **dict(options["custom_opsets"] or {})}
    nodes = without_dead(g.nodes, {x.name for x in outputs})
    local: list[Any] = []
    kinds = wanted_kinds(options["export_modules_as_functions"])
    if kinds is None or kinds:
        functions = Functions(
            g.made_in, g.initializers, made.weights, kinds, functools.partial(annotated, source), g.name
        )
        nodes = functions.folded(nodes, [x.name for x in outputs])
        local = functions.protos(versions, options["optimize"])
        versions |= {proto.domain: 1 for proto in local}
    model = helper.make_model(helper.make_graph(nodes, "main_graph", inputs, outputs), producer_name="taeda")
    del model.opset_import[:]
    for domain, version in versions.items():
        model.opset_import.append(helper.make_opsetid(domain, version))
    for proto in [*g.functions.values(), *local]:
        model.functions.append(proto)
        for imported in proto.opset_import:
            if imported.domain not in {x.domain for x in model.opset_import}:
                model.opset_import.append(imported)
    model.ir_version = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(model.ir_version, 8)
    model.producer_version = taeda.__version__
    result = ONNXProgram(model, made.weights, fewer, made.complex_outputs)
    _prune(onnx, result, g)
    result._fixed = options["export_params"] and not options["keep_initializers_as_inputs"]
    if options["optimize"]:
        result.optimize()
    return result


def _prune(onnx: Any, result: ONNXProgram, g: Any) -> None:
    """Leave out constants and weights that nothing uses."""
    graph = result._skeleton.graph
    needed = {x.name for x in graph.output}.union(*(uses(n) for n in graph.node))
    result._weights = {n: x for n, x in result._weights.items() if n in needed}
    graph.initializer.extend(
        onnx.numpy_helper.from_array(x, n) if x.dtype.name in PLAIN else _tensor(onnx, x, n, g)
        for n, x in g.initializers.items()
        if n in needed
    )


def _tensor(onnx: Any, array: Any, name: str, g: Any) -> Any:
    dtype = next(v.dtype for v in g.constants.values() if v.name == name)
    return onnx.TensorProto(name=name, data_type=CODES[dtype], dims=array.shape, raw_data=array.tobytes())


def check(made: ONNXProgram) -> None:
    """Check the model by the package onnx, with the types and sizes of all values. Only the sizes of weights matter.

    Args:
        made: the model.

    Raises:
        OnnxExporterError: it is not valid; that is a fault of a translation.
    """
    onnx = import_onnx()
    model = made._model(include_initializers=False, as_inputs=True)
    try:
        known = {"", *(f.domain for f in model.functions)}
        onnx.checker.check_model(model, full_check=all(x.domain in known for x in model.opset_import))
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise OnnxExporterError(f"onnx.export: the package onnx finds the model not valid: {error}") from error


def verify(made: ONNXProgram, program: ExportedProgram) -> None:
    """Compare with the program's results for its example arguments.

    Args:
        made: the model.
        program: what it was made from.

    Raises:
        OnnxExporterError: a result differs by more than 1e-4 of the largest number in it.
        ValueError: the program has no example arguments.
    """
    if program.example_inputs is None:
        raise ValueError("onnx.export: verify=True needs example arguments")
    args, kwargs = program.example_inputs
    wanted = [x for x in pytree.tree_leaves(program.module()(*args, **kwargs)) if isinstance(x, Tensor)]
    for i, (x, y) in enumerate(zip(made(*args, **kwargs), wanted, strict=True)):
        scale = float(y.double().nan_to_num(0, 0, 0).abs().max()) if y.numel() else 0.0
        if x.shape != y.shape or not taeda.allclose(x.double(), y.double(), 1e-4, 1e-4 * scale + 1e-7, True):
            raise OnnxExporterError(f"onnx.export: output {i} of onnxruntime differs from the model's")


def _report(made: ONNXProgram, program: ExportedProgram, folder: Any) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"onnx_export_{time.strftime('%Y-%m-%d_%H-%M-%S')}.md"
    counts: dict[str, int] = {}
    for node in made._skeleton.graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    rows = "\n".join(f"| {kind} | {n} |" for kind, n in sorted(counts.items()))
    text = f"# ONNX export\n\n| node | number |\n|---|---|\n{rows}\n\n## Program\n\n```\n{program}\n```\n"
    path.write_text(text)


def import_onnx() -> Any:
    """The package onnx.

    Returns:
        The module.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
        import onnx.shape_inference
    except ImportError as error:
        raise ImportError("taeda.onnx needs the package onnx: pip install 'taeda[onnx]'") from error
    return onnx
