"""``ONNXProgram``: a model that was written as ONNX, with its weights."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, cast

import numpy as np

from taeda.kernels.files import atomic_write, write_with_data
from taeda.utils import _pytree as pytree

from .._core import Size
from .._typed import Tensor
from ..ops.exchange import from_dlpack
from ..ops.views import view_as_complex, view_as_real
from .optimize import fold_normalization, shared, uses, without_dead
from .values import FLOAT8, from_array, to_array
from .writer import CODES

__all__ = ["ONNXProgram"]

#: Weights of more bytes than this are written to a file beside the model: a protobuf holds 2 GB.
LARGE = 1536 * 2**20
#: Tensors of fewer bytes stay in the model.
_SMALL = 256


class ONNXProgram:
    """A model as ONNX. :func:`taeda.onnx.export` makes it.

    Calling it runs onnxruntime: ``program(*args, **kwargs)``, with the arguments of the model, gives its tensors.

    Args:
        skeleton: the model without its weights.
        weights: tensors by name.
        exported_program: see the attribute.
        complex_outputs: which results are pairs of real numbers in the model.

    Attributes:
        exported_program: the program that it was made from, decomposed.
    """

    def __init__(
        self, skeleton: Any, weights: Mapping[str, Tensor], exported_program: Any, complex_outputs: Sequence[bool],
    ) -> None:  # fmt: skip
        self._skeleton = skeleton  # the model without the weights
        self._weights = dict(weights)
        self.exported_program = exported_program
        self._complex = list(complex_outputs)  # outputs whose last dimension holds the real and imaginary parts
        self._folded: set[str] = set()  # weights that are no longer the model's
        self._fixed = True  # the weights are in the model
        self._session: Any = None
        self._folder: Any = None
        self._ir: Any = None  # the model of onnx_ir that was given out, and may have been changed

    def __repr__(self) -> str:
        graph = self._skeleton.graph
        inputs, outputs = (", ".join(x.name for x in xs) for xs in (graph.input, graph.output))
        return f"ONNXProgram({len(graph.node)} nodes, {len(self._weights)} weights, inputs {inputs}, outputs {outputs})"

    # ---- the model ----

    @property
    def model_proto(self) -> Any:
        """The ``onnx.ModelProto``, with the weights in it."""
        return self._model()

    @property
    def model(self) -> Any:
        """The model as an ``onnx_ir.Model``. It may be changed: saving and calling use it."""
        if self._ir is None:
            try:
                import onnx_ir
            except ImportError as error:
                raise ImportError("ONNXProgram.model needs the package onnx-ir: pip install onnx-ir") from error
            self._ir = onnx_ir.from_proto(self._model())
        return self._ir

    @model.setter
    def model(self, value: Any) -> None:
        self._ir = value
        self.release()

    def _adopt(self) -> None:
        """Take over the changes in ``model``."""
        import onnx_ir
        from onnx import numpy_helper

        proto, weights = onnx_ir.to_proto(self._ir), dict[str, Tensor]()
        for i in reversed(range(len(proto.graph.initializer))):
            held = proto.graph.initializer[i]
            if held.name in self._weights:
                weights[held.name] = cast(Tensor, from_array(numpy_helper.to_array(held)))
                del proto.graph.initializer[i]
        self._skeleton, self._weights = proto, {n: weights[n] for n in self._weights if n in weights}

    def _model(
        self, include_initializers: bool = True, as_inputs: bool = False, data: tuple[str, list] | None = None
    ) -> Any:
        """A copy of the model with its weights: in it, or at places of a file that ``data`` names and collects."""
        import onnx
        from onnx import helper

        if self._ir is not None:
            self._adopt()
        model = onnx.ModelProto()
        model.CopyFrom(self._skeleton)
        place = 0
        for name, x in self._weights.items():
            if as_inputs:
                model.graph.input.append(helper.make_tensor_value_info(name, CODES[x.dtype], list(x.shape)))
            if not include_initializers:
                continue
            proto = model.graph.initializer.add(name=name, data_type=CODES[x.dtype], dims=list(x.shape))
            count = x.numel() * x.itemsize
            if data is None or count < _SMALL:
                proto.raw_data = _bytes(x)
                continue
            place = -(-place // 4096) * 4096  # pages, so that a file can be mapped
            proto.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", data[0]), ("offset", place), ("length", count)):
                proto.external_data.add(key=key, value=str(value))
            data[1].append((place, x))
            place += count
        return model

    def size(self) -> int:
        """The bytes of the weights."""
        return sum(x.numel() * x.itemsize for x in self._weights.values())

    def save(
        self, destination: Any, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the model to a file.

        Args:
            destination: a path, or a file that is open for bytes.
            include_initializers: write the weights.
            keep_initializers_as_inputs: let the weights be inputs too.
            external_data: write the weights to ``destination.data``. By default where they have more than 1.5 GB.
        Raises:
            TypeError: the weights go to a file of their own, and ``destination`` is no path.
        """
        external = bool(external_data) or self.size() > LARGE
        is_path = isinstance(destination, (str, os.PathLike))
        if external and include_initializers:
            if not is_path:
                raise TypeError("ONNXProgram.save: external_data=True needs destination to be a path")
            self._save_with_data(destination, keep_initializers_as_inputs)
            return
        text = self._model(include_initializers, keep_initializers_as_inputs).SerializeToString()
        if is_path:
            with atomic_write(destination) as file:
                file.write(text)
        else:
            destination.write(text)

    def _save_with_data(self, path: Any, as_inputs: bool) -> None:
        """Write the model, and the weights to a file beside it."""
        parts: list = []
        self._model(True, as_inputs, ("", parts))

        def data(file: BinaryIO) -> None:
            for place, x in parts:
                file.seek(place)
                file.write(_bytes(x))

        write_with_data(path, data, lambda name: self._model(True, as_inputs, (name, [])).SerializeToString())

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Use the tensors of ``state_dict`` for the weights of those names; others are left out, with a warning."""
        import warnings

        for name, x in state_dict.items():
            if name in self._folded:
                raise RuntimeError(
                    f"ONNXProgram.apply_weights: {name} has batch normalisation in it; export with optimize=False to "
                    "change weights"
                )
            if name not in self._weights:
                warnings.warn(f"ONNXProgram.apply_weights: the model has no weight {name}", stacklevel=2)
                continue
            old = self._weights[name]
            if x.shape != old.shape:
                raise ValueError(f"apply_weights: {name} has sizes {tuple(old.shape)}, got {tuple(x.shape)}")
            self._weights[name] = x.detach().to(old.dtype)
        self.release()

    def optimize(self) -> None:
        """Drop unused steps and merge equal ones, as ``export`` does by default.

        Batch normalisation goes into the layer before it, as far as weights are in the model.
        """
        if self._ir is not None:
            self._adopt()
            self._ir = None
        graph = self._skeleton.graph
        outputs = {x.name for x in graph.output}
        nodes = shared(list(graph.node), outputs)
        if self._fixed:
            self._folded |= fold_normalization(nodes, outputs, self._weights, self._constant)
        kept = without_dead(nodes, outputs)
        kept = [type(node).FromString(node.SerializeToString()) for node in kept]
        del graph.node[:]
        graph.node.extend(kept)
        needed = outputs.union(*(uses(n) for n in kept))
        self._weights = {n: x for n, x in self._weights.items() if n in needed}
        self.release()

    def _constant(self, name: str) -> Tensor | None:
        """The value of a weight, or of a constant."""
        if name in self._weights:
            return self._weights[name]
        found = next((x for x in self._skeleton.graph.initializer if x.name == name), None)
        if found is None:
            return None
        from onnx import numpy_helper

        return cast(Tensor, from_array(numpy_helper.to_array(found)))

    # ---- running it ----

    def initialize_inference_session(self, initializer: Callable[[str | bytes], Any] | None = None) -> None:
        """Make the session that calls use. ``initializer`` makes it from a path or the bytes of the model.

        Args:
            initializer: makes the session; that of onnxruntime by default.

        Raises:
            ImportError: onnxruntime is not installed.
        """
        initializer = initializer or _session
        if self.size() > LARGE:
            self._folder = tempfile.TemporaryDirectory()
            path = os.path.join(self._folder.name, "model.onnx")
            self.save(path, external_data=True)
            self._session = initializer(path)
        else:
            self._session = initializer(self._model().SerializeToString())

    def release(self) -> None:
        """Give up the session."""
        self._session = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple:
        if self._session is None:
            self.initialize_inference_session()
        made = _run(self._session, self._inputs(args, kwargs))
        return tuple(view_as_complex(x) if c else x for x, c in zip(made, self._complex, strict=True))

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple:
        """As a call, by the reference implementation of the package onnx: slow, and in Python."""
        from onnx.reference import ReferenceEvaluator

        made = ReferenceEvaluator(self._model()).run(None, self._inputs(args, kwargs))
        return tuple(from_array(np.asarray(x)) for x in made)

    def compute_values(self, value_names: Sequence[str], args: Sequence = (), kwargs: Any = None) -> tuple:
        """The values of these names inside the graph, for these arguments."""
        import onnx

        model = onnx.shape_inference.infer_shapes(self._model())
        known = {x.name: x for x in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
        missing = [n for n in value_names if n not in known]
        if missing:
            raise ValueError(f"compute_values: the model has no values {missing}")
        del model.graph.output[:]
        model.graph.output.extend(known[n] for n in value_names)
        return _run(_session(model.SerializeToString()), self._inputs(tuple(args), kwargs or {}))

    def _inputs(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """Arrays for the inputs of the graph, from arguments that nest as the model's do.

        Raises:
            TypeError: an argument is missing, or one too many.
            RuntimeError: a size or a number is another than the model was exported for.
        """
        names = [x.name for x in self._skeleton.graph.input if x.name not in self._weights]
        args, kwargs = pytree.tree_map(_plain, (args, kwargs))
        program = self.exported_program
        leaves = program.in_spec.flatten_up_to(self._ordered(args, kwargs))
        program._checks(*leaves)
        return {n: _array(x) for n, x in zip(names, (x for x in leaves if isinstance(x, Tensor)), strict=True)}

    def _ordered(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Arguments by position and by name as they were in the example."""
        positional, named = self.exported_program._argument_names
        if len(args) > len(positional) + len(named):
            raise TypeError(f"ONNXProgram: expected {len(positional) + len(named)} arguments, got {len(args)}")
        given = dict(zip([*positional, *named], args, strict=False))
        example = self.exported_program.example_inputs
        if example is not None:  # other values than tensors are fixed, and may be left out
            fixed = {**dict(zip(positional, example[0], strict=True)), **example[1]}
            left = [n for n in fixed if n not in given and n not in kwargs]
            kwargs = {
                **kwargs,
                **{n: fixed[n] for n in left if not any(isinstance(x, Tensor) for x in pytree.tree_leaves(fixed[n]))},
            }
        twice = [n for n in kwargs if n in given]
        given.update(kwargs)
        missing = [n for n in (*positional, *named) if n not in given]
        unknown = [n for n in given if n not in positional and n not in named]
        if missing or unknown or twice:
            raise TypeError(f"ONNXProgram: arguments missing: {missing}, not known: {unknown}, given twice: {twice}")
        return tuple(given[n] for n in positional), {n: given[n] for n in named}


def _plain(x: Any) -> Any:
    """Arrays as tensors, and sizes as tuples, as export takes them."""
    return from_array(x) if isinstance(x, np.ndarray) else tuple(x) if isinstance(x, Size) else x


def _array(x: Tensor) -> Any:
    return to_array(view_as_real(x.resolve_conj()) if x.is_complex() else x)


def _bytes(x: Tensor) -> bytes:
    return to_array(x.contiguous()).tobytes()


def _session(model: str | bytes) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError("calling an ONNXProgram needs the package onnxruntime: pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _run(session: Any, inputs: dict[str, Any]) -> tuple:
    """The outputs of a session, as tensors. Dtypes that NumPy lacks are passed as bits."""
    import onnxruntime

    values = {}
    for info in session.get_inputs():
        x = inputs[info.name]
        code = _BY_BITS.get(x.dtype.name)
        if code is None:
            values[info.name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(x, order="C"))
        else:
            bits = np.asarray(x, order="C").view(f"uint{8 * x.dtype.itemsize}")
            values[info.name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, code)
    made = session.run_with_ort_values(None, values)
    return tuple(_tensor(x) for x in made)


#: Element types that onnxruntime takes by their bits.
_BY_BITS = {name: code for code, name in {**FLOAT8, 16: "bfloat16"}.items()}


def _tensor(x: Any) -> Tensor:
    try:
        return cast(Tensor, from_array(np.asarray(x.numpy())))
    except RuntimeError:  # a type that NumPy does not have
        return from_dlpack(x._ortvalue.to_dlpack()).clone()
