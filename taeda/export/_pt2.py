"""Programs that ``torch.export.save`` of PyTorch 2.13 wrote (``.pt2``): JSON and raw weights.

A step names an op of PyTorch's native library, ``torch.ops.aten.add.Tensor``, with its arguments in the order of that
library. ``_pt2_calls.py`` translates it.
"""

from __future__ import annotations

import ast
import io
import json
import math
import operator
from typing import Any

from taeda._core.exchange import copy_to_storage
from taeda.fx import Graph, GraphModule, Node
from taeda.fx.experimental.symbolic_shapes import Expr, SymInt, ValueRanges, int_oo
from taeda.io import checkpoint
from taeda.io.archive import ArchiveReader
from taeda.io.pickling import UnpicklingError
from taeda.nn import Parameter
from taeda.ops.meta import without_values
from taeda.utils import _pytree as pytree

from .. import _core
from . import _pt2_guards
from ._assemble import assemble, parse_json
from ._checks import Checks, InputCheck
from ._encoding import CLASSES, bad, decode_spec, identifier, items, path, whole
from ._pt2_calls import step_of
from ._values import fake
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2",
    31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
_FORMATS = {
    1: _core.contiguous_format, 2: _core.channels_last, 3: _core.channels_last_3d, 4: _core.preserve_format
}  # fmt: skip


def read(archive: ArchiveReader) -> Any:
    """The program in an archive.

    Raises:
        ValueError: it has something that is not known here: an op, a class, a subclass of Tensor.
    """
    if not archive.has("models/model.json"):
        raise bad("the archive has neither program.json nor models/model.json")
    if archive.has("byteorder") and bytes(archive.read("byteorder")) != b"little":
        raise bad("the weights are in big-endian byte order")
    model = _object(_json(archive, "models/model.json"))
    if _object(model.get("schema_version")).get("major") != 8:
        raise bad(f"its schema is of version {model.get('schema_version')!r:.80}; this reader knows 8, of PyTorch 2.13")
    return _Reader(archive, model).program()


def _json(archive: ArchiveReader, name: str) -> Any:
    return parse_json(archive.read(name))


def _object(x: Any) -> dict[str, Any]:
    if not isinstance(x, dict):
        raise bad(f"expected an object, got {x!r:.80}")
    return x


def _one(x: Any) -> tuple[str, Any]:
    """The kind and the value of a union."""
    if not isinstance(x, dict) or len(x) != 1:
        raise bad(f"expected one of several kinds, got {x!r:.80}")
    return next(iter(x.items()))


# ---- sizes -----------------------------------------------------------------------------------------------------------

_TREES = {"Mul": "mul", "Add": "add", "FloorDiv": "floordiv", "Mod": "mod", "PythonMod": "mod", "CleanDiv": "floordiv"}


def _parsed(text: Any) -> Any:
    """The expression of a size, written as sympy shows its trees; None if it has another form."""
    if not isinstance(text, str) or len(text) > 10_000:
        raise bad("an expression is no text, or too long")
    try:
        return _walked(ast.parse(text, mode="eval").body, 0)
    except (SyntaxError, ValueError):
        return None


def _walked(node: ast.AST, depth: int) -> Any:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or depth > 50:
        raise ValueError
    name, args = node.func.id, node.args
    if name in ("Symbol", "Integer") and args:
        value = args[0]
        if (
            isinstance(value, ast.UnaryOp)
            and isinstance(value.op, ast.USub)
            and isinstance(value.operand, ast.Constant)
        ):
            return -int(value.operand.value)  # type: ignore[arg-type]
        if not isinstance(value, ast.Constant):
            raise ValueError
        return Expr(identifier(value.value)) if name == "Symbol" else int(value.value)  # type: ignore[arg-type]
    if name not in _TREES or len(args) < 2:
        raise ValueError
    found = _walked(args[0], depth + 1)
    for other in args[1:]:
        found = Expr(_TREES[name], found, _walked(other, depth + 1))
    return found


class _Reader:
    """Reads one model."""

    def __init__(self, archive: ArchiveReader, model: dict[str, Any]) -> None:
        self.archive, self.model = archive, model
        self.symbols = 0

    def program(self) -> Any:
        module = _object(self.model.get("graph_module"))
        graph = _object(module.get("graph"))
        signature = _object(module.get("signature"))
        inputs = [self._input(s) for s in items(signature.get("input_specs"))]
        outputs = [self._output(s) for s in items(signature.get("output_specs"))]
        made = self._graph(graph, 0, [s.arg.name for s in inputs])
        entry = next((e for e in items(module.get("module_call_graph")) if _object(e).get("fqn") == ""), None)
        call = _object(_object(entry).get("signature"))
        in_spec, out_spec = (self._spec(call.get(name)) for name in ("in_spec", "out_spec"))
        first, second = [*in_spec.children_specs, in_spec, in_spec][:2]
        if in_spec.num_children != 2 or second.type is not dict:
            raise bad("the arguments are no tuple and dict")
        names = [identifier(n) for n in items(call.get("forward_arg_names") or [])]
        positional = names[: first.num_children]
        if len(positional) < first.num_children or len(names) != first.num_children + second.num_children:
            positional = [f"args_{i}" for i in range(first.num_children)]
        checks = self._checks(graph, inputs, positional, in_spec)
        return assemble(
            made, ExportGraphSignature(inputs, outputs), self._tensors("weights"), self._tensors("constants"), checks,
            in_spec, out_spec, (positional, [identifier(k) for k in second.context]), example=self._example(in_spec),
            dialect=str((self.model.get("verifiers") or ["TRAINING"])[0]),
        )  # fmt: skip

    # ---- tensors ----

    def _tensors(self, kind: str) -> dict[str, Any]:
        name = f"data/{kind}/model_{kind}_config.json"
        if not self.archive.has(name):
            return {}
        found: dict[str, Any] = {}
        made: dict[Any, Any] = {}
        for label, entry in _object(_object(_json(self.archive, name)).get("config")).items():
            entry = _object(entry)
            if entry.get("use_pickle"):
                raise bad(f"{label!r:.80} is stored as a pickle, which is not read: it is no plain tensor")
            key = json.dumps(entry, sort_keys=True)  # two names of one tensor
            if key not in made:
                data = self.archive.read(f"data/{kind}/{entry.get('path_name')}")
                made[key] = _tensor(data, _object(entry.get("tensor_meta")), entry.get("is_param") is True)
            found[path(label)] = made[key]
        return found

    # ---- signature ----

    def _input(self, x: Any) -> InputSpec:
        kind, value = _one(x)
        value = _object(value)
        named: dict[str, tuple[InputKind, str]] = {
            "parameter": (InputKind.PARAMETER, "parameter_name"), "buffer": (InputKind.BUFFER, "buffer_name"),
            "tensor_constant": (InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
        }  # fmt: skip
        if kind in named:
            what, key = named[kind]
            persistent = value.get("persistent") is True if kind == "buffer" else None
            argument = TensorArgument(identifier(_object(value.get("arg")).get("name")))
            return InputSpec(what, argument, path(value.get(key)), persistent)
        if kind == "constant_input":
            fixed = self._constant(value.get("value"))
            return InputSpec(InputKind.USER_INPUT, ConstantArgument(identifier(value.get("name")), fixed), None)
        if kind == "user_input":
            return InputSpec(InputKind.USER_INPUT, self._argument(value.get("arg")), None)
        raise bad(f"inputs of kind {kind!r:.80} are not known here")

    def _output(self, x: Any) -> OutputSpec:
        kind, value = _one(x)
        value = _object(value)
        if kind == "user_output":
            return OutputSpec(OutputKind.USER_OUTPUT, self._argument(value.get("arg")), None)
        known = {
            "buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"),
            "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
            "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name"),
        }
        if kind not in known:
            raise bad(f"outputs of kind {kind!r:.80} are not known here")
        what, key = known[kind]
        return OutputSpec(what, TensorArgument(identifier(_object(value.get("arg")).get("name"))), path(value.get(key)))

    def _argument(self, x: Any) -> Any:
        kind, value = _one(x)
        if kind == "as_tensor":
            return TensorArgument(identifier(_object(value).get("name")))
        if kind == "as_sym_int" and "as_name" in _object(value):
            return SymIntArgument(identifier(value["as_name"]))
        return ConstantArgument("", self._constant(x))

    def _constant(self, x: Any) -> Any:
        return self._value(x, {}, {})

    def _spec(self, text: Any) -> Any:
        if not isinstance(text, str):
            raise bad("a structure is no text")
        version, tree = items(json.loads(text), 2)
        if version != 1:
            raise bad(f"structures of version {version!r:.80} are not known here")
        return decode_spec(_spec_form(tree, 0))

    def _checks(self, graph: dict, inputs: list[InputSpec], positional: list[str], in_spec: Any) -> Checks:
        first, second = in_spec.children_specs
        values = _object(graph.get("tensor_values"))
        ranges: dict[str, ValueRanges] = {}
        for name, pair in _object(self.model.get("range_constraints") or {}).items():
            low, high = _object(pair).get("min_val"), _object(pair).get("max_val")
            ranges[identifier(name)] = ValueRanges(whole(low or 0, -(2**61)), int_oo if high is None else whole(high))
        places = [f"args[{i}]" for i, s in enumerate(first.children_specs) for _ in range(s.num_leaves)]
        places += [
            f"kwargs[{k!r}]"
            for k, s in zip(second.context, second.children_specs, strict=True)
            for _ in range(s.num_leaves)
        ]
        users = [s for s in inputs if s.kind == InputKind.USER_INPUT]
        found = []
        for place, spec in zip(places, users, strict=False):
            if isinstance(spec.arg, TensorArgument):
                sizes = items(_object(values.get(spec.arg.name)).get("sizes"))
                shown = [self._size(s, ranges)[0] for s in sizes]
                found.append(InputCheck(place, spec.arg.name, shown, None))
            elif isinstance(spec.arg, ConstantArgument):
                found.append(InputCheck(place, spec.arg.name, None, spec.arg.value))
            else:
                raise bad("numbers that may change are not known here as arguments")
        texts = [text for text in items(self.model.get("guards_code") or []) if isinstance(text, str)]
        return Checks(found, ranges, _pt2_guards.read(texts, found, _pt2_guards.places(in_spec, positional)))

    def _example(self, in_spec: Any) -> Any:
        """The example's arguments, if they are plain data: the pickle is read as data, and runs no code."""
        name = "data/sample_inputs/model.pt"
        data = bytes(self.archive.read(name)) if self.archive.has(name) else b""
        if not data:
            return None
        try:
            found = checkpoint.load(io.BytesIO(data), weights_only=True)
        except UnpicklingError:
            return None
        return found if pytree.tree_structure(found) == in_spec else None

    def _size(self, x: Any, ranges: dict[str, ValueRanges] | None = None) -> tuple[Any, int]:
        """A size, an Expr or an int, and its number in the example."""
        kind, value = _one(x)
        if kind == "as_int":
            return whole(value, -(2**61)), whole(value, -(2**61))
        value = _object(value)
        hint = value.get("hint")
        number = whole(_object(hint).get("as_int") if hint is not None else 2, 0)
        expr = _parsed(value.get("expr_str"))
        if isinstance(expr, int):
            return expr, expr
        linear = None if expr is None else expr.linear()
        if expr is None or (ranges is not None and (linear is None or len(linear[0]) != 1)):
            self.symbols += 1
            expr = Expr(f"u{self.symbols - 1}")
        for name in expr.symbols() if ranges is not None else ():
            ranges.setdefault(name, ValueRanges(0, int_oo))  # type: ignore[union-attr]
        return expr, number

    # ---- graphs ----

    def _graph(self, x: dict, depth: int, names: list[str] | None = None) -> GraphModule:
        if depth > 20:
            raise bad("graphs are too deep inside of each other")
        graph, nodes, modules = Graph(), dict[str, Node](), dict[str, GraphModule]()
        if names is None:
            names = [identifier(_object(_one(a)[1]).get("name")) for a in items(x.get("inputs"))]
        values, sizes = _object(x.get("tensor_values") or {}), _object(x.get("sym_int_values") or {})
        for name in names:
            if name in nodes:
                raise bad(f"two inputs are called {name}")
            nodes[name] = _call(graph, name)
        for entry in items(x.get("nodes")):
            self._step(_object(entry), graph, nodes, modules, depth)
        for name, node in nodes.items():
            if name in values:
                node.meta["val"] = self._form(_object(values[name]))
            elif name in sizes:
                expr, number = self._size(sizes[name])
                node.meta["val"] = SymInt(number)._become(expr, (number,)) if isinstance(expr, Expr) else expr
        result = tuple(self._value(a, nodes, modules) for a in items(x.get("outputs")))
        graph.output(result)
        return GraphModule(modules, graph, "GraphModule")

    def _form(self, meta: dict) -> Any:
        pairs = [self._size(s) for s in items(meta.get("sizes"))]
        hints = [max(n, 0) for _, n in pairs]
        if math.prod(max(n, 1) for n in hints) >= 2**55 or len(hints) > 64:
            raise bad("a tensor is too large")
        shown = [SymInt(n)._become(e, (n,)) if isinstance(e, Expr) else n for e, n in pairs]
        return fake(without_values(hints, None, _dtype(meta.get("dtype"))), shown, _core.device("cpu"))

    def _step(self, x: dict, graph: Graph, nodes: dict, modules: dict, depth: int) -> None:
        target = x.get("target")
        if not isinstance(target, str):
            raise bad("a step has no target")
        args, kwargs = [], {}
        for given in items(x.get("inputs")):
            given = _object(given)
            value = self._value(given.get("arg"), nodes, modules, graph, depth)
            if given.get("kind") == 2:
                kwargs[identifier(given.get("name"))] = value
            else:
                args.append(value)
        made = step_of(graph, target, args, kwargs, identifier(x.get("name") or "step"))
        if made is None:
            return
        _keep_origin(made, x.get("metadata"))
        outputs = items(x.get("outputs"))
        many = len(outputs) != 1 or (
            target.startswith("torch.ops.higher_order") and not x.get("is_hop_single_tensor_return")
        )
        position = 0
        for output in outputs:
            kind, value = _one(output)
            if kind in ("as_tensors",):
                listed = graph.call_function(operator.getitem, (made, position)) if many else made
                for i, part in enumerate(items(value)):
                    _keep(nodes, _object(part).get("name"), graph.call_function(operator.getitem, (listed, i)))
                position += 1
                continue
            name = _object(value).get("as_name") if kind.startswith("as_sym") else _object(value).get("name")
            if kind in ("as_none",) or name is None:
                position += 1
                continue
            _keep(nodes, name, graph.call_function(operator.getitem, (made, position)) if many else made)
            position += 1

    def _value(self, x: Any, nodes: dict, modules: dict, graph: Graph | None = None, depth: int = 0) -> Any:
        kind, v = _one(x)
        if kind in ("as_tensor", "as_optional_tensor"):
            if kind == "as_optional_tensor":
                inner, v = _one(v)
                if inner == "as_none":
                    return None
            return _known(nodes, _object(v).get("name"))
        if kind in ("as_tensors", "as_optional_tensors"):
            return [self._tensor_item(y, nodes) for y in items(v)]
        if kind == "as_none":
            return None
        if kind in ("as_bool", "as_string", "as_int"):
            if not isinstance(v, {"as_bool": bool, "as_string": str, "as_int": int}[kind]):
                raise bad(f"{v!r:.80} is no {kind[3:]}")
            return v
        if kind == "as_float":
            return _float(v)
        if kind in ("as_ints", "as_floats", "as_bools", "as_strings"):
            return [self._value({kind[:-1]: y}, nodes, modules) for y in items(v)]
        if kind in ("as_int_lists", "as_float_lists"):
            return [self._value({f"{kind[:-6]}s": y}, nodes, modules) for y in items(v)]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            inner, y = _one(v)
            return _known(nodes, y) if inner == "as_name" else self._value({inner: y}, nodes, modules)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._value({kind[:-1]: y}, nodes, modules) for y in items(v)]
        if kind == "as_scalar_type":
            return _dtype(v)
        if kind == "as_memory_format":
            if v not in _FORMATS:
                raise bad(f"memory format {v!r:.80} is not known here")
            return _FORMATS[v]
        if kind == "as_layout":
            if v != 7:
                raise bad(f"layout {v!r:.80} is not known here")
            return _core.strided
        if kind == "as_device":
            if _object(v).get("type") != "cpu":
                raise bad(f"the program computes on {v!r:.80}; export it for the CPU")
            return _core.device("cpu")
        if kind == "as_complex":
            return complex(_float(_object(v).get("real")), _float(v.get("imag")))
        if kind == "as_graph" and graph is not None:
            name = identifier(_object(v).get("name"))
            if name not in modules:
                modules[name] = self._graph(_object(v.get("graph")), depth + 1)
            return graph.create_node("get_attr", name, (), {}, name)
        raise bad(f"arguments of kind {kind!r:.80} are not known here")

    def _tensor_item(self, y: Any, nodes: dict) -> Any:
        if isinstance(y, dict) and "name" not in y:
            inner, value = _one(y)
            return None if inner == "as_none" else _known(nodes, _object(value).get("name"))
        return _known(nodes, _object(y).get("name"))


def _call(graph: Graph, name: str) -> Node:
    """A placeholder of exactly this name."""
    node = graph.placeholder(identifier(name))
    if node.name != name:
        node.name = name
        graph._graph_namespace._rename_object(node, name)
    return node


def _keep(nodes: dict[str, Node], name: Any, node: Node) -> None:
    if identifier(name) in nodes:
        raise bad(f"two steps are called {name}")
    if node.name != name:
        node.name = name
        node.graph._graph_namespace._rename_object(node, name)
    nodes[name] = node


def _keep_origin(node: Node, x: Any) -> None:
    """The line of a step, and the modules that it is in, from its metadata."""
    stack, modules = (x.get(key) if isinstance(x, dict) else None for key in ("stack_trace", "nn_module_stack"))
    if isinstance(stack, str):
        node.meta["stack_trace"] = stack
    if isinstance(modules, str):
        parts = [entry.split(",") for entry in modules.split(";")]
        node.meta["nn_module_stack"] = {p[-2]: (p[-2], p[-1]) for p in parts if len(p) == 3}


def _known(nodes: dict[str, Node], name: Any) -> Node:
    if not isinstance(name, str) or name not in nodes:
        raise bad(f"{name!r:.80} is used before it is made")
    return nodes[name]


def _float(v: Any) -> float:
    if isinstance(v, str) and v in ("Infinity", "-Infinity", "NaN"):
        return float(v)
    if not isinstance(v, (int, float)):
        raise bad(f"{v!r:.80} is no number")
    return float(v)


def _dtype(v: Any) -> Any:
    if not isinstance(v, int) or v not in _DTYPES:
        raise bad(f"dtype {v!r:.80} is not known here")
    return _core.dtype_by_name(_DTYPES[v])


def _tensor(data: Any, meta: dict, parameter: bool) -> Any:
    """A tensor over a copy of raw bytes."""
    dtype = _dtype(meta.get("dtype"))
    sizes, strides = ([whole(_one(n)[1]) for n in items(meta.get(k))] for k in ("sizes", "strides"))
    offset = whole(_one(meta.get("storage_offset", {"as_int": 0}))[1])
    if len(sizes) != len(strides) or len(sizes) > 64:
        raise bad("a tensor has as many strides as sizes")
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + 1
    view = memoryview(data).cast("B")
    if 0 not in sizes and last * dtype.itemsize > len(view):
        raise bad(f"a tensor of shape {sizes} has {len(view)} bytes")
    count = len(view) // dtype.itemsize
    if 0 in sizes:
        made = _core.empty(tuple(sizes), dtype)
    else:
        flat = _core.from_storage(copy_to_storage(view, 0, count * dtype.itemsize), dtype, (count,), (1,))
        made = flat.as_strided(sizes, strides, offset)
    grad = meta.get("requires_grad") is True and (made.is_floating_point() or made.is_complex())
    return Parameter(made, requires_grad=grad) if parameter else made


def _spec_form(x: Any, depth: int) -> Any:
    """A structure of PyTorch's in the form of this package's files."""
    x = _object(x)
    if depth > 100:
        raise bad("a structure is too deep")
    if x.get("type") is None:
        return "leaf"
    children = [_spec_form(c, depth + 1) for c in items(x.get("children_spec"))]
    kind, context = x["type"], x.get("context")
    known = {
        "builtins.tuple": "tuple", "builtins.list": "list", "builtins.dict": "dict",
        "collections.OrderedDict": "OrderedDict"
    }  # fmt: skip
    if not isinstance(kind, str):
        raise bad("a structure has no type")
    if kind in known:
        keys = (
            json.loads(context)
            if kind in ("builtins.dict", "collections.OrderedDict") and isinstance(context, str)
            else None
        )
        return {"kind": known[kind], "context": keys, "children": children}
    names = json.loads(context) if isinstance(context, str) else None
    if isinstance(names, list) and len(names) == 2 and isinstance(names[0], list):
        names = names[0]
    if kind not in CLASSES:
        raise bad(f"the class {kind!r:.80} is not registered; call export.register_dataclass before loading")
    return {"kind": "class", "context": [kind, *items(names)], "children": children}
