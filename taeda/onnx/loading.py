"""Reading ONNX files as modules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Error
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

import taeda

from .. import nn
from .._typed import Tensor
from .build import Builder
from .graph import Graph, Scope
from .values import DTYPES, NARROW, describe, from_array

_TOO_LARGE = 2**31 - 1  # bytes that a message may have
_MOST_CALLS = 10**6


class Model(nn.Module):
    """A module that runs an ONNX graph; :func:`taeda.onnx.load` makes it.

    Floating-point initializers are parameters; others, and the statistics of BatchNormalization, are buffers. They have
    their names in the file, where dots make a path of modules, as in a state dict.

    Args:
        proto: an ``onnx.ModelProto``.

    Attributes:
        input_names: the graph's inputs, in the order of the arguments.
        output_names: the graph's outputs.
    """

    def __init__(self, proto: ModelProto):
        super().__init__()
        self._places: dict[str, tuple[nn.Module, str]] = {}
        self._graph = Graph((), (), [])  # initializers get other names than the ones here
        self._types: dict[str, str] = {}
        self.input_names: tuple[str, ...] = ()
        self.output_names: tuple[str, ...] = ()
        opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in proto.opset_import}
        builder = Builder(proto.functions, self._add_weight)
        self._graph = builder.graph(proto.graph, opsets, {}, "")
        self._types = {value.name: _described(value.type) for value in proto.graph.input}
        self.input_names, self.output_names = self._graph.inputs, self._graph.outputs

    def _add_weight(self, name: str, value: Any, trained: bool) -> str:
        """Register an initializer, as a parameter if it can be ``trained``; gives the name under which a run has it."""
        while name in self._places:
            name += "_"
        owner, last = self._owner(name)
        if not isinstance(value, Tensor):
            setattr(owner, last, value)  # strings and narrow integers: no buffer can hold them
        elif trained and value.is_floating_point() and value.dtype.itemsize > 1:
            owner.register_parameter(last, nn.Parameter(value))
        else:
            owner.register_buffer(last, value)
        self._places[name] = (owner, last)
        return name

    def _owner(self, name: str) -> tuple[nn.Module, str]:
        """The module that an initializer belongs to, made on the way, and its name there."""
        owner: nn.Module = self
        *path, last = name.split(".")
        for part in path:
            child = owner._modules.get(part)
            if child is None:
                if not part or hasattr(owner, part):
                    break
                child = nn.Module()
                owner.add_module(part, child)
            owner = child
        else:
            if last and not hasattr(owner, last):
                return owner, last
        last = name.replace(".", "_") or "_"
        while hasattr(self, last):
            last += "_"
        return self, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The graph's outputs: one, or a tuple of them.

        Args:
            args: values of the graph's inputs in their order: tensors, NumPy arrays, lists for sequences.
            kwargs: values by the names of inputs. Names of initializers that the file lists as inputs replace them.

        Returns:
            A tensor, or a tuple of them.
        """
        values = self._arguments(args, kwargs)
        weights = {name: getattr(owner, last) for name, (owner, last) in self._places.items()}
        for name in kwargs.keys() & self._places.keys():
            weights[name] = _checked(name, kwargs[name], self._types[name])
        results = self._graph(*values, outer=Scope.of(weights))
        return results[0] if len(results) == 1 else results

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        names = self.input_names
        given = dict(zip(names, args, strict=False))
        twice, unknown = given.keys() & kwargs.keys(), kwargs.keys() - set(names) - self._types.keys()
        given.update((name, kwargs[name]) for name in names if name in kwargs)
        missing = [name for name in names if name not in given and not self._types[name].startswith("optional")]
        if len(args) > len(names) or twice or unknown or missing:
            raise TypeError(
                f"expected the inputs {', '.join(names) or '(none)'}; got {len(args)} by position"
                + (f" and {', '.join(kwargs)} by name" if kwargs else "")
                + (f"; missing: {', '.join(missing)}" if missing else "")
            )
        return [_checked(name, given.get(name), self._types[name]) for name in names]

    def extra_repr(self) -> str:
        inputs = ", ".join(f"{name}: {self._types[name]}" for name in self.input_names)
        return f"({inputs}) -> ({', '.join(self.output_names)}), {len(self._graph.nodes)} nodes"


def _described(proto: TypeProto) -> str:
    """A type as text: the dtype of a tensor, or the kind of value and its elements' type."""
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')} of {_described(getattr(proto, kind).elem_type)}"
    if kind != "tensor_type":
        return "dict" if kind == "map_type" else str(kind)
    code = proto.tensor_type.elem_type
    if code in DTYPES:
        return str(DTYPES[code]).removeprefix("taeda.")
    return NARROW.get(code) or onnx.TensorProto.DataType.Name(code).lower()


def _checked(name: str, value: Any, expected: str) -> Any:
    """An input as a run takes it."""
    kind = expected.partition(" ")[0]
    if kind == "optional":
        return None if value is None else _checked(name, value, expected.removeprefix("optional of "))
    if kind == "sequence" and isinstance(value, (list, tuple)):
        return [_checked(name, item, expected.removeprefix("sequence of ")) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        value = from_array(np.asarray(value))
    came = describe(value).partition("[")[0]
    dtype = getattr(taeda, kind, None)
    same = came == kind
    if isinstance(value, Tensor) and isinstance(dtype, taeda.dtype):
        same = same or (value.is_floating_point() and dtype.is_floating_point)
    if not same:
        raise TypeError(f"input {name!r}: expected {expected}, got {describe(value)}")
    return value


def load(file: Any) -> Model:
    """Read an ONNX model as a module. See :func:`taeda.onnx.load`."""
    path = os.fspath(file) if isinstance(file, (str, os.PathLike)) else None
    try:
        proto = _parsed(file)
        _check_text(proto)
        _check(proto, path)
        return Model(proto)
    except (DecodeError, Error) as error:
        raise ValueError(f"expected an ONNX model, got data that is cut off or of another format: {error}") from error
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ValueError(f"the ONNX model is not valid: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"expected an ONNX model, got names that are not UTF-8: {error}") from error
    except RecursionError as error:
        raise ValueError("expected an ONNX model, got functions or graphs nested too deeply") from error


def _parsed(file: Any) -> ModelProto:
    if isinstance(file, ModelProto):
        return file
    if isinstance(file, (str, os.PathLike)):
        return onnx.load(os.fspath(file))
    return ModelProto.FromString(bytes(file) if isinstance(file, (bytes, bytearray, memoryview)) else file.read())


def _check_text(message: Any) -> None:
    """Refuse a model with text that is not UTF-8, which protobuf gives as bytes."""
    for field, value in message.ListFields():
        repeated = field.type in (field.TYPE_MESSAGE, field.TYPE_STRING) and not isinstance(value, (str, bytes))
        for item in value if repeated and not hasattr(value, "ListFields") else (value,):
            if field.type == field.TYPE_MESSAGE:
                _check_text(item)
            elif field.type == field.TYPE_STRING and not isinstance(item, str):
                raise ValueError(f"expected an ONNX model, got a {field.name} that is not UTF-8: {item!r:.80}")


def _check(proto: ModelProto, path: str | None) -> None:
    """Check ``proto`` as the format's own library does, and the types of all values; what raises is its exception."""
    if not proto.HasField("graph") or not proto.opset_import:
        raise ValueError("expected an ONNX model with a graph and the versions of its opsets, got one without")
    for tensor in proto.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            raise ValueError(
                f"tensor {tensor.name!r} is in another file: give taeda.onnx.load the path of the ONNX model"
            )
    large = proto.ByteSize() > _TOO_LARGE
    onnx.checker.check_model(path if large and path else _checkable(proto))
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    if _calls(proto.graph.node, functions, {}) > _MOST_CALLS:
        raise ValueError(f"expected an ONNX model whose functions make at most {_MOST_CALLS} calls of ops, got more")
    if not large:
        onnx.shape_inference.infer_shapes(proto, check_type=True)


def _calls(nodes: Iterable[NodeProto], functions: dict[tuple, FunctionProto], known: dict[tuple, int]) -> int:
    """The number of calls of ops in ``nodes`` with all functions written out, which the inference of types does."""
    total = 0
    for node in nodes:
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            if key not in known:
                known[key] = _calls(functions[key].node, functions, known)
            total += known[key]
        total += 1 + sum(_calls(a.g.node, functions, known) for a in node.attribute if a.HasField("g"))
    return total


def _checkable(proto: ModelProto) -> ModelProto:
    """``proto``, or a copy without parts that the check refuses and other runtimes accept.

    These are inputs and outputs without a shape, and initializers that are no inputs in files from before 2019.
    """

    def lacks(value: ValueInfoProto) -> bool:
        kind = value.type.WhichOneof("value")
        return kind is None or (kind == "tensor_type" and not value.type.tensor_type.HasField("shape"))

    if proto.ir_version >= 4 and not any(map(lacks, [*proto.graph.input, *proto.graph.output])):
        return proto
    copied = ModelProto()
    copied.CopyFrom(proto)
    copied.ir_version = max(copied.ir_version, 4)
    for value in filter(lacks, [*copied.graph.input, *copied.graph.output]):
        value.type.tensor_type.elem_type = value.type.tensor_type.elem_type or 1
        value.type.tensor_type.shape.SetInParent()
    return copied
