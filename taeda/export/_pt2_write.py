"""Programs as files that ``torch.export.load`` of PyTorch 2.13 reads: its archive, its JSON, ATen's ops."""

from __future__ import annotations

import builtins
import io
import itertools
import json
import math
import operator
from collections import OrderedDict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from taeda._core import Composite, Tensor
from taeda.aten import OpOverload
from taeda.fx import GraphModule, Node, _names
from taeda.fx.experimental.symbolic_shapes import _FUNCTIONS, Expr, SymBool, SymFloat, SymInt, _Symbolic
from taeda.io import checkpoint
from taeda.nn import Parameter
from taeda.ops.table import OPS

from .. import _core, nn
from .._schema import parse_schema
from . import _control_flow, _pt2_guards, _steps
from ._decompose import default_decompositions
from ._encoding import CLASSES
from ._functions import name_of
from ._pt2_layers import CODES, Layers, constant
from ._pt2_ops import aten_call, call_of, refuse, results_of
from .exported_program import ExportedProgram
from .graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

__all__ = ["records_of"]

_TREES = {
    "add": "Add", "mul": "Mul", "max": "Max", "min": "Min", "eq": "Equality",
    "ne": "Unequality", "lt": "StrictLessThan", "le": "LessThan", "gt": "StrictGreaterThan", "ge": "GreaterThan",
    "and": "And", "or": "Or", "not": "Not",
}  # fmt: skip
#: Functions of whole numbers, and those of others; None where there is none.
_TREES_BY_KIND = {
    "truediv": ("IntTrueDiv", "FloatTrueDiv"), "pow": ("PowByNatural", "FloatPow"), "floordiv": ("FloorDiv", None),
    "mod": ("Mod", None),
}  # fmt: skip
_CONTROL = {
    _control_flow.cond: "cond", _control_flow.while_loop: "while_loop", _control_flow.map: "map_impl",
    _control_flow.scan: "scan",
}  # fmt: skip
#: Ops that stay as they are, because their decompositions are no ATen ops.
_KEPT = frozenset("lstm gru rnn_tanh rnn_relu square einsum".split())
_OPERATORS = {
    f: f"{f.__module__}.{f.__name__}"
    for f, _, _ in _FUNCTIONS.values()
    if f.__module__ in ("_operator", "math") and f is not operator.abs
}


def records_of(ep: ExportedProgram) -> dict[str, bytes]:
    """The files of the archive, by name.

    Raises:
        ValueError: PyTorch has no form for a part of the program.
    """
    whole = _written_whole(ep)
    rules = {
        f: rule
        for f, rule in default_decompositions().items()
        if f not in whole and getattr(f, "__name__", "") not in _KEPT
    }
    program = ep.run_decompositions(rules)
    _rename_written(program)
    return _Writer(program).records()


def _written_whole(ep: ExportedProgram) -> set[Any]:
    """The functions of ``nn.functional``, ``nn.lower`` and ``fft`` that ATen has with the arguments of each call."""
    known = {f for f, (space, _) in _names._functions().items() if space in ("nn.functional", "fft")}
    known |= {f for f in vars(nn.lower).values() if isinstance(f, Composite)}
    found: dict[Any, bool] = {}
    graphs = [module.graph for module in ep.graph_module.modules() if isinstance(module, GraphModule)]
    for node in (node for graph in graphs for node in graph.nodes if node.op == "call_function"):
        name_of(node.target)  # what files may not name is refused before it runs
        if node.target in known:
            found[node.target] = found.get(node.target, True) and aten_call(node) is not None
    return {function for function, fits in found.items() if fits}


def _rename_written(ep: ExportedProgram) -> None:
    """Give arguments that are written to names that PyTorch's reader finds again: it renames those of builtins."""
    written = {str(s.target) for s in ep.graph_signature.output_specs if s.kind == OutputKind.USER_INPUT_MUTATION}
    taken = {n.name for n in ep.graph.nodes}
    for node in ep.graph.nodes:
        if node.op != "placeholder" or node.name not in written or not hasattr(builtins, node.name):
            continue
        old = node.name
        node.name = next(name for i in itertools.count(1) if (name := f"{old}_{i}") not in taken)
        for spec in ep.graph_signature.input_specs:
            spec.arg.name = node.name if spec.arg.name == old else spec.arg.name
        for output in ep.graph_signature.output_specs:
            output.target = node.name if output.target == old else output.target


def _example(ep: ExportedProgram) -> bytes:
    """The example's arguments, as ``save`` writes them; nothing if they have objects of classes."""
    if ep.example_inputs is None or not _is_plain(ep.in_spec):
        return b""
    file = io.BytesIO()
    checkpoint.save(ep.example_inputs, file)
    return file.getvalue()


def _is_plain(spec: Any) -> bool:
    return spec.is_leaf() or (spec.type.__name__ in _SPECS and all(map(_is_plain, spec.children_specs)))


class _Writer(Layers):
    """Writes one program."""

    def __init__(self, ep: ExportedProgram) -> None:
        self.ep = ep
        self.nodes: list[dict] = []
        self.tensors: dict[str, dict] = {}
        self.numbers: dict[str, dict[str, dict]] = {"int": {}, "float": {}, "bool": {}}
        self.sizes_alone: set[str] = set()  # symbols of sizes that no expression says
        self.names = {name: f"s{i}" if not _found(name) else name for i, name in enumerate(ep.range_constraints)}

    def records(self) -> dict[str, bytes]:
        """The files of the archive."""
        ep = self.ep
        weights, first = self._stored("weight_", ep.state_dict)
        constants, second = self._stored("tensor_", ep.constants)
        signature = {
            "input_specs": [self._input(s) for s in ep.graph_signature.input_specs],
            "output_specs": [self._output(s) for s in ep.graph_signature.output_specs],
        }
        graph = self._graph(ep.graph_module)
        where = _pt2_guards.places(ep.in_spec, ep._argument_names[0])
        call = {
            "inputs": [], "outputs": [], "in_spec": _spec(ep.in_spec), "out_spec": _spec(ep.out_spec),
            "forward_arg_names": [*ep._argument_names[0], *ep._argument_names[1]],
        }  # fmt: skip
        module = {
            "graph": graph, "signature": signature, "module_call_graph": [{"fqn": "", "signature": call}],
            "metadata": {}, "treespec_namedtuple_fields": {},
        }  # fmt: skip
        model = {
            "graph_module": module, "opset_version": {"aten": 10}, "range_constraints": self._ranges(),
            "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.13.0",
            "guards_code": _pt2_guards.written(ep._checks.guards, ep._checks.inputs, where),
        }  # fmt: skip
        text: dict[str, Any] = {
            "models/model.json": model,
            "data/weights/model_weights_config.json": {"config": weights},
        }
        text["data/constants/model_constants_config.json"] = {"config": constants}
        return {
            "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little", ".data/version": b"6\n",
            **{f"data/weights/{k}": v for k, v in first.items()},
            **{f"data/constants/{k}": v for k, v in second.items()},
            **{k: json.dumps(v, allow_nan=False).encode() for k, v in text.items()},
            "data/sample_inputs/model.pt": _example(ep),
        }  # fmt: skip

    # ---- tensors, sizes ----

    def _stored(self, prefix: str, state: dict[str, Any]) -> tuple[dict, dict[str, bytes]]:
        config, data, known = dict[str, Any](), dict[str, bytes](), dict[int, str]()
        for path, x in state.items():
            if not isinstance(x, Tensor):
                raise ValueError(f"export.save: {path!r} is no tensor")
            dense = x.detach().contiguous()
            name = known.setdefault(id(x), f"{prefix}{len(data)}")
            if name not in data:
                flat = dense.reshape(-1).view(_core.uint8) if dense.numel() else dense
                data[name] = flat.cpu().numpy().tobytes() if dense.numel() else b""
            meta = self._meta(dense, bool(x.requires_grad))
            config[path] = {
                "path_name": name, "is_param": isinstance(x, Parameter), "use_pickle": False, "tensor_meta": meta
            }  # fmt: skip
        return config, data

    def _meta(self, x: Tensor, grad: bool = False) -> dict:
        if x.dtype.name not in CODES:
            raise ValueError(f"export.save: {x.dtype} has no form in files of PyTorch")
        sizes = [self._size(n) for n in x.shape]
        return {
            "dtype": CODES[x.dtype.name], "sizes": sizes, "requires_grad": grad,
            "device": {"type": "cpu", "index": None}, "strides": [self._size(n) for n in _strides(x)],
            "storage_offset": {"as_int": 0}, "layout": 7,
        }  # fmt: skip

    def _size(self, n: Any) -> dict:
        return {"as_expr": self._shown(n)} if isinstance(n, _Symbolic) else {"as_int": int(n)}

    def _shown(self, n: Any) -> dict:
        hint = None
        if not any(_found(name) for name in n.expr.symbols()) and isinstance(n, SymInt):
            hint = {"as_int": int(n.samples[0])}
        return {"expr_str": self._tree(n.expr), "hint": hint}

    def _tree(self, x: Any) -> str:
        if not isinstance(x, Expr):
            return f"Integer({x})" if isinstance(x, int) else f"Float('{x}', precision=53)"
        if not x.args:
            name = self.names.get(x.head, x.head)
            if x.head not in self.names:
                self.sizes_alone.add(name)
            kind = "real=True" if name.startswith("z") else "integer=True"
            return f"Symbol('{name}', {'' if _found(x.head) else 'positive=True, '}{kind})"
        parts = [self._tree(a) for a in x.args]
        if x.head == "sub":
            return f"Add({parts[0]}, Mul(Integer(-1), {parts[1]}))"
        if x.head == "neg":
            return f"Mul(Integer(-1), {parts[0]})"
        function, of_floats = _TREES_BY_KIND.get(x.head, (_TREES.get(x.head), None))
        if x.head in _TREES_BY_KIND and any(map(_is_float, x.args)):
            parts = [p if _is_float(a) else f"ToFloat({p})" for p, a in zip(parts, x.args, strict=True)]
            function = of_floats
        if function is None:
            raise ValueError(f"export.save: the size {x} has no form in files of PyTorch. Save with format='taeda'")
        return f"{function}({', '.join(parts)})"

    def _ranges(self) -> dict:
        found = {}
        for name, r in self.ep.range_constraints.items():
            low, high = (None if math.isinf(n) else int(n) for n in (r.lower, r.upper))
            found[self.names[name]] = {"min_val": low, "max_val": high}
        return found | {name: {"min_val": 0, "max_val": None} for name in sorted(self.sizes_alone)}

    # ---- signature ----

    def _input(self, spec: Any) -> dict:
        if spec.kind == InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument):
                if not isinstance(spec.arg.value, (bool, int, float, str, complex, type(None))):
                    raise ValueError(
                        f"export.save: the argument {spec.arg.name} is {spec.arg.value!r:.80}: no argument "
                        "of programs in PyTorch's files. Save with format='taeda'"
                    )
                return {"constant_input": {"name": spec.arg.name, "value": constant(spec.arg.value)}}
            return {"user_input": {"arg": _named(spec.arg)}}
        arg = {"arg": {"name": spec.arg.name}}
        if spec.kind == InputKind.PARAMETER:
            return {"parameter": {**arg, "parameter_name": spec.target}}
        if spec.kind == InputKind.BUFFER:
            return {"buffer": {**arg, "buffer_name": spec.target, "persistent": bool(spec.persistent)}}
        return {"tensor_constant": {**arg, "tensor_constant_name": spec.target}}

    def _output(self, spec: Any) -> dict:
        if isinstance(spec.arg, SymBoolArgument):
            raise ValueError("export.save: PyTorch's reader takes no condition as a result. Save with format='taeda'")
        if spec.kind == OutputKind.USER_OUTPUT:
            arg = constant(spec.arg.value) if isinstance(spec.arg, ConstantArgument) else _named(spec.arg)
            return {"user_output": {"arg": arg}}
        kinds = {
            OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
            OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
            OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name"),
        }
        kind, key = kinds[spec.kind]
        return {kind: {"arg": {"name": spec.arg.name}, key: spec.target}}

    # ---- the graph ----

    def _graph(self, module: GraphModule) -> dict:
        inputs = []
        self.module = module
        no_grad = False
        for node in module.graph.nodes:
            if node.op == "placeholder":
                value = node.meta.get("val")
                if isinstance(value, Tensor):
                    self.tensors[node.name] = self._meta(value)
                    inputs.append({"as_tensor": {"name": node.name}})
                else:
                    inputs.append(constant(value))
            elif node.op == "call_function":
                if node.target is _steps.set_grad_enabled:
                    no_grad = node.args[0] is False
                    continue
                if node.target is operator.getitem and isinstance(node.args[0].meta.get("val"), (tuple, list)):
                    continue  # written with the step
                self._step(node, no_grad)
        outputs = [
            self._argument(v) if isinstance(v, Node) else constant(v) for v in module.graph.output_node().args[0]
        ]
        return {
            "inputs": inputs, "outputs": outputs, "nodes": self.nodes, "tensor_values": self.tensors,
            "sym_int_values": self.numbers["int"], "sym_bool_values": self.numbers["bool"],
            "sym_float_values": self.numbers["float"], "is_single_tensor_return": False, "custom_obj_values": {},
        }  # fmt: skip

    def _inner(self, node: Node, single: bool = False) -> dict:
        """A graph inside of this one."""
        inner = _Writer(self.ep)
        inner.sizes_alone = self.sizes_alone
        graph = inner._graph(getattr(self.module, node.target))
        return {"as_graph": {"name": node.target, "graph": {**graph, "is_single_tensor_return": single}}}

    def _control(self, node: Node) -> None:
        """A step with graphs of its own."""
        name, args = _CONTROL[node.target], list(node.args)
        if name == "cond" and not isinstance(args[0].meta.get("val"), Tensor):
            raise refuse(node, "its condition is no tensor")
        if name == "scan":
            if args[3] != 0 or args[4]:
                raise refuse(node, "PyTorch's step goes along dimension 0, forwards")
            del args[3:5]
        inner = (args[1], args[2]) if name == "cond" else args[:2] if name == "while_loop" else args[:1]
        given = [
            self._inner(a, name == "while_loop" and a is args[0]) if a in inner else self._argument(a) for a in args
        ]
        given = [{"as_tensors": []} if x == {"as_ints": []} else x for x in given]
        self._raw(f"torch.ops.higher_order.{name}", [], node.name)
        inputs = [{"name": "", "arg": x, "kind": 1} for x in given]
        self.nodes[-1].update(inputs=inputs, outputs=self._results(node), is_hop_single_tensor_return=False)

    def _step(self, node: Node, no_grad: bool) -> None:
        if node.target is operator.getitem:
            self._index(node)
        elif node.target is operator.setitem:
            self._put(node)
        elif node.target in _CONTROL and not no_grad:
            self._control(node)
        elif node.target in (OPS["_recurrent_layer"], OPS["_recurrent_steps"]):
            self._recurrent(node)
        elif node.target is nn.functional.embedding_bag:
            self._bags(node)
        elif node.target in _OPERATORS:
            names = "abcdef"
            given = [(names[i], a, False) for i, a in enumerate(node.args)]
            self._add(node, _OPERATORS[node.target], given, [self._result(node, node.name, node.meta["val"])])
        elif isinstance(node.target, OpOverload):
            self._custom(node)
        elif node.target is _steps.batch_norm_functional:
            self._batch_norm(node)
        else:
            target, given = call_of(node)
            self._add(node, f"torch.ops.aten.{target}", given, self._results(node, target, given))
        if no_grad and node.target not in _OPERATORS:
            self._detach()

    def _batch_norm(self, node: Node) -> None:
        """Batch norm of copies of the running statistics: its derivative in PyTorch keeps what it was given, and the
        program writes to them at its end."""
        target, given = call_of(node)
        copies = {name: f"{node.name}_{name}" for name, _, _ in given if name.startswith("running_")}
        for name, value, _ in given:
            if name in copies:
                self.tensors[copies[name]] = self._meta(value.meta["val"])
                self._raw("torch.ops.aten.clone.default", [("self", self._argument(value))], copies[name])
        self._add(node, f"torch.ops.aten.{target}", given, self._results(node, target, given))
        for part in self.nodes[-1]["inputs"]:
            if part["name"] in copies:
                part["arg"] = {"as_tensor": {"name": copies[part["name"]]}}

    def _custom(self, node: Node) -> None:
        """An op of the program's own, which must be there when the file is loaded."""
        op = node.target.overloadpacket
        schema = parse_schema(f"{op._qualified_op_name}{op.function._schema}")
        given = [(a.name, v, False) for a, v in zip(schema.arguments, node.args, strict=False)]
        given += [(name, value, True) for name, value in node.kwargs.items()]
        outputs = self._results(node) if schema.returns else []
        if any(a.listed for a in schema.returns):
            if len(outputs) != len(node.meta["val"]) or len(schema.returns) > 1:
                raise refuse(node, "its results are lists of tensors beside others")
            outputs = [{"as_tensors": [o["as_tensor"] for o in outputs]}]
        self._add(node, f"torch.ops.{op.namespace}.{op.__name__}.default", given, outputs)

    def _detach(self) -> None:
        """Detach the results of a step that is not recorded for differentiation."""
        made = self.nodes[-1]
        results = [
            t for o in made["outputs"] for t in (o.get("as_tensors") or [o["as_tensor"]] if _of_tensors(o) else [])
        ]
        for t in results:
            name, inner = t["name"], f"{t['name']}_recorded"
            t["name"], self.tensors[inner] = inner, self.tensors[name]
            made["name"] = inner if made["name"] == name else made["name"]
            self._raw("torch.ops.aten.detach.default", [("self", {"as_tensor": {"name": inner}})], name)

    def _raw(self, target: str, inputs: list[tuple[str, dict]], name: str) -> None:
        given = [{"name": k, "arg": v, "kind": 1} for k, v in inputs]
        self.nodes.append({
            "target": target, "inputs": given, "outputs": [{"as_tensor": {"name": name}}], "metadata": {},
            "is_hop_single_tensor_return": None, "name": name,
        })  # fmt: skip

    def _add(self, node: Node, target: str, given: list[tuple[str, Any, bool]], outputs: list[dict]) -> None:
        inputs = [
            {"name": name, "arg": self._argument(value), "kind": 2 if keyword else 1} for name, value, keyword in given
        ]
        name = node.name  # tensors have names of their own beside a call of several results
        if len(outputs) > 1 and any(o.get("as_tensor", {}).get("name") == name for o in outputs):
            name = f"{name}_results"
        self.nodes.append({
            "target": target, "inputs": inputs, "outputs": outputs, "metadata": _metadata(node),
            "is_hop_single_tensor_return": None, "name": name,
        })  # fmt: skip

    def _results(self, node: Node, target: str = "", given: Sequence = ()) -> list[dict]:
        value: Any = node.meta.get("val")
        if node.target is _steps.assert_scalar:
            return []
        many = isinstance(value, (tuple, list))
        ours = list(value) if many else [value]
        parts = {n.args[1]: n.name for n in node.users if n.target is operator.getitem} if many else {0: node.name}
        if many and set(n.target for n in node.users) - {operator.getitem}:
            raise refuse(node, "all results are used as one")
        places = dict(enumerate(range(len(ours))))
        if node.target.__name__.startswith("unique"):  # ATen gives places and counts where they were not asked for, too
            asked = {name for name, wanted, _ in given if wanted}
            kept = [k for k, flag in enumerate(("", "return_inverse", "return_counts")) if not k or flag in asked]
            places = {k: i for i, k in enumerate(kept)}
        made = []
        for k in range(max(len(ours), results_of(target))):
            i = places.get(k)
            name = f"{node.name}_unused_{k}" if i is None else parts.get(i, f"{node.name}_unused_{k}")
            made.append(self._result(node, name, ours[i or 0]))
        if node.target.__name__ in ("split_with_sizes", "unbind", "split", "chunk"):
            return [{"as_tensors": [m["as_tensor"] for m in made]}]
        return made

    def _result(self, node: Node, name: str, value: Any) -> dict:
        if isinstance(value, Tensor):
            self.tensors[name] = self._meta(value)
            return {"as_tensor": {"name": name}}
        for kind, cls in (("bool", SymBool), ("float", SymFloat), ("int", SymInt)):
            if isinstance(value, cls):
                self.numbers[kind][name] = {"as_expr": self._shown(value)}
                return {f"as_sym_{kind}": {"as_name": name}}
        for kind, plain in (("bool", bool), ("float", float), ("int", int)):
            if isinstance(value, plain):
                self.numbers[kind][name] = {f"as_{kind}": value}
                return {f"as_sym_{kind}": {"as_name": name}}
        raise refuse(node, f"its result is a {type(value).__name__}")

    def _argument(self, x: Any) -> dict:
        if isinstance(x, Node):
            value = x.meta.get("val")
            for kind, cls in (("bool", (SymBool, bool)), ("float", (SymFloat, float)), ("int", (SymInt, int))):
                if isinstance(value, cls):
                    return {f"as_sym_{kind}": {"as_name": x.name}}
            return {"as_tensor": {"name": x.name}}
        if not isinstance(x, (tuple, list)):
            return constant(x)
        x = list(x)
        parts = [self._argument(v) for v in x]
        kinds = {next(iter(p)) for p in parts}
        if not x or kinds <= {"as_int"}:
            return {"as_ints": [int(v) for v in x]}
        if kinds <= {"as_tensor"}:
            return {"as_tensors": [p["as_tensor"] for p in parts]}
        if kinds <= {"as_tensor", "as_none"}:
            return {"as_optional_tensors": parts}
        if kinds <= {"as_int", "as_sym_int"}:
            return {"as_sym_ints": [p.get("as_sym_int", p) for p in parts]}
        if len(kinds) == 1 and kinds <= {"as_float", "as_bool", "as_string"}:
            return {f"{kinds.pop()}s": x}
        raise ValueError(f"export.save: {x!r:.80} has no form in files of PyTorch")

    # ---- indexing ----

    def _put(self, node: Node) -> None:
        """``x[index] = value``, with tensors among the index."""
        x, index, value = node.args
        parts = [None if p == slice(None) else p for p in (index if isinstance(index, tuple) else (index,))]
        if any(p is not None and (not isinstance(p, Node) or not isinstance(p.meta.get("val"), Tensor)) for p in parts):
            raise refuse(node, "its index has more than tensors and full slices")
        given = self._argument(value)
        if not (isinstance(value, Node) and isinstance(value.meta.get("val"), Tensor)):
            dtype = x.meta["val"].dtype
            given = {"as_tensor": {"name": f"{node.name}_value"}}
            self._raw("torch.ops.aten.scalar_tensor.default", [("s", self._argument(value))], f"{node.name}_value")
            self.nodes[-1]["inputs"].append({"name": "dtype", "arg": constant(dtype), "kind": 2})
            self.tensors[f"{node.name}_value"] = {**self._meta(x.meta["val"]), "sizes": [], "strides": []}
        self.tensors[node.name] = self._meta(x.meta["val"])
        put = [("self", self._argument(x)), ("indices", self._argument(parts)), ("values", given)]
        self._raw("torch.ops.aten.index_put_.default", put, node.name)

    def _index(self, node: Node) -> None:
        """``x[index]`` as selects, slices, new dimensions, and one index with tensors."""
        x, index = node.args
        parts = list(index) if isinstance(index, tuple) else [index]
        shape = list(x.meta["val"].shape)
        used = sum(self._takes(p) for p in parts)
        if Ellipsis in [p for p in parts if not isinstance(p, Node)]:
            at = next(i for i, p in enumerate(parts) if p is Ellipsis)
            parts[at : at + 1] = [slice(None)] * (len(shape) - used)
        steps: list[tuple[str, list[tuple[str, Any]]]] = []
        tensors: list[Any] = []
        dim = covered = 0  # ``tensors`` index the first ``covered`` dimensions, those with None not at all
        for part in parts:
            if part is None:
                steps.append(("unsqueeze.default", [("dim", dim)]))
            elif isinstance(part, slice):
                if (part.start, part.stop, part.step) != (None, None, None):
                    ends = [("dim", dim), ("start", part.start), ("end", part.stop)]
                    steps.append(("slice.Tensor", [*ends, ("step", 1 if part.step is None else part.step)]))
                    if isinstance(part.step, int) and part.step < 0:
                        raise refuse(node, "a negative step")
            elif isinstance(part, Node) and isinstance(part.meta.get("val"), Tensor):
                tensors += [None] * (dim - covered) + [part]
                covered = dim + self._takes(part)
                dim = covered - 1
            elif isinstance(part, (bool, list)):
                raise refuse(node, f"an index {part!r}")
            else:
                steps.append(("select.int", [("dim", dim), ("index", part)]))
                continue
            dim += 1
        if tensors:
            steps.append(("index.Tensor", [("indices", tensors)]))
        if not steps:
            steps.append(("alias.default", []))
        value, source = node.meta["val"], self._argument(x)
        forms = self._forms(x, steps, value)
        for i, (target, given) in enumerate(steps):
            name = node.name if i == len(steps) - 1 else f"{node.name}_part_{i}"
            self.tensors[name] = forms[i]
            inputs = [("self", source), *((k, self._argument(v)) for k, v in given)]
            self._raw(f"torch.ops.aten.{target}", inputs, name)
            source = {"as_tensor": {"name": name}}

    def _forms(self, x: Node, steps: list, value: Tensor) -> list[dict]:
        """The forms of parts of an index; only the last one is known exactly, and only the rank counts before."""
        made, rank = [], len(x.meta["val"].shape)
        for target, _ in steps[:-1]:
            rank += {"unsqueeze.default": 1, "select.int": -1}.get(target, 0)
            made.append({**self._meta(value), "sizes": [{"as_int": 1}] * rank, "strides": [{"as_int": 1}] * rank})
        return [*made, self._meta(value)]

    @staticmethod
    def _takes(p: Any) -> int:
        if p is None or p is Ellipsis:
            return 0
        value = p.meta.get("val") if isinstance(p, Node) else None
        return value.dim() if isinstance(value, Tensor) and value.dtype in (_core.bool_, _core.uint8) else 1


def _is_float(x: Any) -> bool:
    """Whether an expression of sizes has a result that is no whole number, or is not known as one."""
    return x.head == "truediv" or any(map(_is_float, x.args)) if isinstance(x, Expr) else isinstance(x, float)


def _metadata(node: Node) -> dict[str, str]:
    """Origin of a step: its line, and the modules that it is in."""
    found = {"stack_trace": node.meta["stack_trace"]} if node.meta.get("stack_trace") else {}
    modules = node.meta.get("nn_module_stack")
    if modules:
        found["nn_module_stack"] = ";".join(f"{key},{path},{kind}" for key, (path, kind) in modules.items())
    return found


def _of_tensors(output: dict) -> bool:
    return "as_tensor" in output or "as_tensors" in output


def _found(name: str) -> bool:
    """Whether a symbol stands for a number that a run finds."""
    return (name.startswith("u") and name[1:].isdigit()) or name.startswith("zuf")


def _strides(x: Tensor) -> list:
    """Strides in terms of the sizes, if they are a dense tensor's."""
    hints, shown = [int(n) for n in x.stride()], list(x.shape)
    if not any(isinstance(n, _Symbolic) for n in shown):
        return hints
    made: list[Any] = list(hints)
    step: Any = 1
    for d in sorted(range(len(hints)), key=lambda d: (hints[d], -d)):
        if hints[d] != int(step):
            return hints
        made[d] = step
        step = step * shown[d]
    return made


def _named(arg: Any) -> dict:
    if isinstance(arg, TensorArgument):
        return {"as_tensor": {"name": arg.name}}
    kinds = {SymIntArgument: "int", SymFloatArgument: "float", SymBoolArgument: "bool"}
    return {f"as_sym_{kinds[type(arg)]}": {"as_name": arg.name}}


_SPECS = {
    "tuple": "builtins.tuple",
    "list": "builtins.list",
    "dict": "builtins.dict",
    "OrderedDict": "collections.OrderedDict",
}


def _spec(spec: Any) -> str:
    return json.dumps([1, _spec_tree(spec)])


def _spec_tree(spec: Any) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name = spec.type.__name__
    children = [_spec_tree(s) for s in spec.children_specs]
    known = next((k for k, cls in CLASSES.items() if cls is spec.type), None)
    if known is not None:  # the names of fields, and of those that are None
        return {"type": known, "context": json.dumps([list(spec.context), []]), "children_spec": children}
    if (
        getattr(spec.context, "__module__", "") == "taeda.return_types"
    ):  # PyTorch's files have no form for its own either
        name, spec = "tuple", SimpleNamespace(type=tuple, context=None)
    elif spec.type not in (tuple, list, dict, OrderedDict):
        raise ValueError(
            f"export.save: {name} among arguments or results is not written for PyTorch; use tuple, list, dict, or a "
            "dataclass that is registered"
        )
    context = json.dumps(list(spec.context) if issubclass(spec.type, dict) else None)
    return {"type": _SPECS[name], "context": context, "children_spec": children}
