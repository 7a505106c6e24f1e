"""``taeda.onnx``: models written as ONNX, and ONNX models read as modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._version import __version__ as producer_version
from . import errors, ops
from .errors import OnnxExporterError
from .modes import OperatorExportTypes, TrainingMode, is_in_onnx_export, select_model_mode_for_export
from .program import ONNXProgram
from .table import NodeError

if TYPE_CHECKING:
    from .loading import Model

producer_name = "taeda"

__all__ = [
    "NodeError", "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "dynamo_export", "errors",
    "export", "is_in_onnx_export", "load", "producer_name", "producer_version", "register_custom_op_symbolic",
    "select_model_mode_for_export", "unregister_custom_op_symbolic",
]  # fmt: skip


def export(
    model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None, verbose: bool | None = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Callable, Callable] | None = None, report: bool = False, optimize: bool = True,
    verify: bool = False, profile: bool = False, dump_exported_program: bool = False, artifacts_dir: Any = ".",
    export_params: bool = True, keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL, operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type] = False, autograd_inlining: bool = True,
) -> ONNXProgram | None:  # fmt: skip
    """Write a model as ONNX.

    The model is recorded by :func:`taeda.export.export`, decomposed, and translated op by op. The result is checked
    by the package onnx.

    Args:
        model: a Module, a function, or an ExportedProgram.
        args: example arguments: tensors, numbers, and trees of them. Numbers are fixed.
        f: a path, or a file that is open for bytes. Nothing is written where it is None.
        kwargs: example arguments by name.
        verbose: print what is done.
        input_names: names for the tensors among the arguments, in their order.
        output_names: names for the tensors among the results.
        opset_version: the version of ONNX's ops, 17 to 23; 20 by default.
        dynamo: give an ONNXProgram; with False None, and the model is exported in the mode that ``training`` says.
        external_data: write the weights to ``f.data``, where ``f`` is a path and ``dynamo`` holds. Without it they are
            in the model, but for more than 1.5 GB of them.
        dynamic_shapes: which sizes may change, as for :func:`taeda.export.export`; strings will do for Dims.
        custom_translation_table: from functions of taeda to functions ``(g, *args, **kwargs)`` that write their calls,
            or to functions of onnxscript. See ``docs/onnx.md``.
        report: write a report to ``artifacts_dir``.
        optimize: leave out steps that are there twice, and fold batch normalisation into the layers before it.
        verify: run onnxruntime on the example, and compare.
        profile: refused.
        dump_exported_program: save the program that the model becomes in ``artifacts_dir``.
        artifacts_dir: where reports and programs go.
        export_params: with False, the weights are inputs, and not written.
        keep_initializers_as_inputs: the weights are inputs as well.
        dynamic_axes: names of sizes that may change, by names of inputs.
        training: the mode of the model while it is exported, where ``dynamo`` is False.
        operator_export_type: must be ``ONNX``.
        do_constant_folding: accepted.
        custom_opsets: versions of domains that custom translations use.
        export_modules_as_functions: a set of classes of modules, or True for all: each call of such a module is one
            node, which calls a function of the model. Modules inside of ``cond`` and its like stay inlined.
        autograd_inlining: accepted.
    Returns:
        An :class:`ONNXProgram`; None where ``dynamo`` is False.
    Raises:
        ImportError: the package onnx is not installed.
        UnsupportedOperatorError: ONNX has no form of an op; the message has the user's line and what to use instead.
        OnnxExporterError: the model could not be written.
        NotImplementedError: ``profile``, or an ``operator_export_type`` other than ``ONNX``.
    """
    options = locals().copy()
    del options["model"], options["args"], options["f"]
    if profile:
        raise NotImplementedError("onnx.export: profile=True is not available; use taeda.profiler around the call")
    if operator_export_type is not OperatorExportTypes.ONNX:
        raise NotImplementedError("onnx.export: operator_export_type must be ONNX; see custom_translation_table")
    from . import exporting

    exporting.import_onnx()
    program = exporting.export(model, args, options)
    if f is not None:
        beside = external_data and dynamo and not hasattr(f, "write")
        as_inputs = keep_initializers_as_inputs or not export_params
        program.save(f, include_initializers=export_params, keep_initializers_as_inputs=as_inputs, external_data=beside)
    return program if dynamo else None


def dynamo_export(model: Any, /, *model_args: Any, export_options: Any = None, **model_kwargs: Any) -> ONNXProgram:
    """:func:`export` under its earlier name: arguments of the model follow it."""
    made = export(model, model_args, kwargs=model_kwargs)
    assert made is not None
    return made


def load(file: Any) -> Model:
    """Read an ONNX model as a :class:`taeda.nn.Module`.

    Floating-point initializers are its parameters (but for the statistics of BatchNormalization), the others its
    buffers. It is called with tensors in the order of the graph's inputs, or by their names, and gives a tensor, or a
    tuple in the order of the outputs. No code of the file is run.

    Args:
        file: a path, the bytes of a file, an open file, or an ``onnx.ModelProto``. Data in other files needs the path.
    Returns:
        The module.
    Raises:
        ImportError: the package ``onnx`` is not installed.
        ValueError: the model is broken: cut off, cyclic, of wrong types.
        NotImplementedError: it has an op or a type that taeda does not have; the message names the node.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("taeda.onnx.load needs the package onnx: pip install 'taeda[onnx]'") from error
    from . import loading

    return loading.load(file)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Let ``symbolic_fn(g, *args)`` write calls of an op where ``export`` has ``dynamo=False``.

    Args:
        symbolic_name: ``"aten::erfinv"``, or ``"library::op"`` of an op that ``taeda.library`` made.
        symbolic_fn: gets a writer with ``g.op("domain::Name", x, alpha_f=2.0)``, and the arguments of the call.
        opset_version: accepted; there is one translation for all opsets.
    """
    from .symbolic_helper import registered

    registered[symbolic_name] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undo :func:`register_custom_op_symbolic`."""
    from .symbolic_helper import registered

    registered.pop(symbolic_name, None)
