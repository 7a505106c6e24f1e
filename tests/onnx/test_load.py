"""``taeda.onnx.load``: what comes in, what the module has, what it says of models that are broken."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")
from onnx import TensorProto, numpy_helper  # noqa: E402

import taeda  # noqa: E402
import taeda.onnx  # noqa: E402
from taeda import nn  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind=FLOAT, shape=("n",)):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=None, functions=(), opset=17, domains=()):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions)


def linear():
    """y = x @ fc.weight' + fc.bias, with an integer that is no parameter."""
    weights = {
        "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "fc.bias": np.ones(2, np.float32), "shape": np.array([-1, 2])
    }  # fmt: skip
    nodes = [
        helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], transB=1),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    return model(nodes, [value("x", shape=("n", 3))], [value("y", shape=("n", 2))], weights)


def one(op, *inputs, kinds=FLOAT, **attributes):
    node = helper.make_node(op, list(inputs), ["y"], name="middle", **attributes)
    return model([node], [value(name, kinds) for name in inputs], [value("y", kinds)])


def test_every_kind_of_file(tmp_path):
    proto = linear()
    data = proto.SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    x = taeda.ones(1, 3)
    for file in (proto, data, io.BytesIO(data), tmp_path / "m.onnx", str(tmp_path / "m.onnx")):
        assert taeda.onnx.load(file)(x).tolist() == [[4.0, 13.0]]


def test_data_in_another_file(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert taeda.onnx.load(path)(taeda.ones(1, 3)).tolist() == [[4.0, 13.0]]
    with pytest.raises(ValueError, match=r"fc\.weight.*another file.*path"):
        taeda.onnx.load(path.read_bytes())
    (tmp_path / "m.data").unlink()
    with pytest.raises((ValueError, OSError), match=r"m\.data"):
        taeda.onnx.load(path)


def test_parameters_and_buffers_have_the_names_of_the_file():
    module = taeda.onnx.load(linear())
    assert set(module.state_dict()) == {"fc.weight", "fc.bias", "shape"}
    assert [name for name, _ in module.named_parameters()] == ["fc.weight", "fc.bias"]
    assert module.input_names == ("x",) and module.output_names == ("y",)
    layer = nn.Linear(3, 2)
    module.load_state_dict({f"fc.{name}": tensor for name, tensor in layer.state_dict().items()}, strict=False)
    x = taeda.randn(4, 3)
    assert taeda.allclose(module(x), layer(x))


def test_names_that_modules_cannot_have():
    names = ["a", "a.b", "training", "", "w..b", "forward", "_graph"]
    nodes = [helper.make_node("Sum", ["x", *(name for name in names if name)], ["y"])]
    module = taeda.onnx.load(model(nodes, [value("x")], [value("y")], {n: np.ones(1, np.float32) for n in names if n}))
    assert module(taeda.zeros(1)).tolist() == [6.0]
    assert len(list(module.parameters())) == 6


def test_statistics_are_buffers():
    names = ["scale", "bias", "mean", "var"]
    node = helper.make_node("BatchNormalization", ["x", *names], ["y"])
    weights = {name: np.ones(2, np.float32) for name in names}
    module = taeda.onnx.load(model([node], [value("x", shape=(1, 2))], [value("y", shape=(1, 2))], weights))
    assert [name for name, _ in module.named_buffers()] == ["mean", "var"]


def test_copies_and_casts():
    module = taeda.onnx.load(linear())
    other = copy.deepcopy(module).double()
    with taeda.no_grad():
        other.fc.bias += 1
    assert other(taeda.ones(1, 3, dtype=taeda.float64)).tolist() == [[5.0, 14.0]]
    assert module(taeda.ones(1, 3)).tolist() == [[4.0, 13.0]]


def test_modules_are_pickled(tmp_path):
    module = taeda.onnx.load(linear())
    taeda.save(module, tmp_path / "module.pt")
    read = taeda.load(tmp_path / "module.pt", weights_only=False)
    assert read(taeda.ones(1, 3)).tolist() == [[4.0, 13.0]]


def test_weights_of_four_bits():
    """Blocks of two rows have a scale each."""
    weight = helper.make_tensor("w", TensorProto.INT4, [4, 2], [1, -2, 3, -4, 5, -6, 7, -8])
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=2),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    proto = model(
        nodes,
        [value("x", shape=(1, 4))],
        [value("y", shape=(1, 2))],
        {"s": np.array([[1, 1], [0.5, 2]], np.float32)},
        opset=21,
    )
    proto.graph.initializer.append(weight)
    proto.ir_version = 10
    assert taeda.onnx.load(proto)(taeda.ones(1, 4)).tolist() == [[10.0, -34.0]]


def test_arguments_by_position_and_by_name():
    module = taeda.onnx.load(one("Sub", "a", "b"))
    a, b = taeda.tensor([3.0]), taeda.tensor([1.0])
    assert module(a, b).tolist() == module(a, b=b).tolist() == module(b=b, a=a).tolist() == [2.0]
    assert module(np.array([3], np.float32), b).tolist() == [2.0]
    for args, names, word in [
        ((a,), {}, "missing: b"),
        ((a, b, a), {}, "3 by position"),
        ((a, b), {"c": a}, "c by name"),
    ]:
        with pytest.raises(TypeError, match=word):
            module(*args, **names)
    with pytest.raises(TypeError, match=r"input 'b': expected float32, got int64\[1\]"):
        module(a, taeda.tensor([1]))


def test_initializers_that_are_inputs_can_be_replaced():
    proto = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [value("x"), value("w")],
        [value("y")],
        {"w": np.ones(1, np.float32)},
    )
    module = taeda.onnx.load(proto)
    assert module.input_names == ("x",)
    assert module(taeda.zeros(1)).tolist() == [1.0]
    assert module(taeda.zeros(1), w=taeda.tensor([5.0])).tolist() == [5.0]


def test_graphs_see_the_values_around_them():
    """A Loop that adds an outer value, in the branch of an If."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "step"], ["t"]), helper.make_node("Identity", ["go"], ["again"])],
        "body", [value("i", INT64, ()), value("go", TensorProto.BOOL, ()), value("s")], [value("again", TensorProto.BOOL, ()), value("t")],
    )  # fmt: skip
    then = helper.make_graph([helper.make_node("Loop", ["n", "", "x"], ["a"], body=body)], "then", [], [value("a")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "else", [], [value("b")])
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["step"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    inputs = [value("x"), value("c", TensorProto.BOOL, ()), value("n", INT64, ())]
    module = taeda.onnx.load(model(nodes, inputs, [value("y")]))
    x = taeda.tensor([2.0])
    assert module(x, taeda.tensor(True), taeda.tensor(3)).tolist() == [14.0]
    assert module(x, taeda.tensor(False), taeda.tensor(3)).tolist() == [2.0]


def scaled(name, *nodes):
    return helper.make_function(
        "own", name, ["x"], ["y"], list(nodes), [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], ["by"]
    )


def test_functions_of_the_model_with_their_attributes():
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
    )
    function = scaled("Scale", constant, helper.make_node("Mul", ["x", "c"], ["y"]))
    nodes = [
        helper.make_node("Scale", ["x"], ["h"], domain="own", by=3.0),
        helper.make_node("Scale", ["h"], ["y"], domain="own", by=2.0),
    ]
    module = taeda.onnx.load(model(nodes, [value("x")], [value("y")], functions=[function], domains=["own"]))
    assert module(taeda.tensor([1.0])).tolist() == [6.0]


def test_a_sequence_with_a_number_in_it():
    """What the test loop16_seq_none of onnx cannot compare."""
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["y"])]
    output = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    result = taeda.onnx.load(model(nodes, [value("x", shape=())], [output]))(taeda.tensor(2.0))
    assert [item.item() for item in result] == [2.0, 2.0]


def test_maps():
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])
    words = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(FLOAT, ()))
    proto = model([node], [helper.make_value_info("x", words)], [value("y", shape=(1, 3))], domains=["ai.onnx.ml"])
    assert taeda.onnx.load(proto)({"c": 2.0, "a": 1.0}).tolist() == [[1.0, 0.0, 2.0]]


def test_values_go_after_their_last_use():
    import weakref

    nodes = [helper.make_node("Add", ["x", "x"], ["a"])] + [
        helper.make_node("Relu", [a], [b]) for a, b in [("a", "b"), ("b", "c"), ("c", "y")]
    ]
    module = taeda.onnx.load(model(nodes, [value("x")], [value("y")]))
    alive, refs, relu = [], [], module._graph.nodes[1].run

    def watched(x):
        result = relu(x)
        alive.append(sum(ref() is not None for ref in refs))
        refs.append(weakref.ref(result))
        return result

    for node in module._graph.nodes[1:]:
        node.run = watched
    with taeda.no_grad():
        module(taeda.ones(3))
    assert alive == [0, 1, 1]


def test_every_op_of_every_version_has_a_function_that_takes_its_attributes():
    from taeda.onnx.operators import find

    old = {"axis", "broadcast", "consumed_inputs"}  # how opsets before 7 broadcast
    for schema in onnx.defs.get_all_schemas_with_history():
        entry = find(schema.domain, schema.name, schema.since_version)
        if entry is None:
            assert schema.has_function or schema.has_context_dependent_function, schema.name
            continue
        with contextlib.suppress(ValueError):  # ops of the core that have no signature take no attributes
            parameters = inspect.signature(entry.run).parameters.values()
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                assert set(schema.attributes) - old <= {p.name for p in parameters}, (schema.name, schema.since_version)


# ---- models that are broken ----------------------------------------------------------------------------------------------
def test_data_that_is_no_model(tmp_path):
    data = linear().SerializeToString()
    for file in (b"", b"nothing of the kind", data[: len(data) // 2], data[:-3]):
        with pytest.raises(ValueError, match="ONNX model"):
            taeda.onnx.load(file)
    with pytest.raises(FileNotFoundError):
        taeda.onnx.load(tmp_path / "none.onnx")


def test_a_cycle():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(ValueError, match="topologically sorted"):
        taeda.onnx.load(model(nodes, [value("x")], [value("b")]))


def test_wrong_types():
    proto = model(
        [helper.make_node("Add", ["x", "i"], ["y"], name="middle")], [value("x"), value("i", INT64)], [value("y")]
    )
    with pytest.raises(ValueError, match=r"(?s)Add.*middle"):
        taeda.onnx.load(proto)
    with pytest.raises(ValueError, match="alhpa"):
        taeda.onnx.load(one("Elu", "x", alhpa=1.0))


def test_an_op_that_is_not_known():
    node = helper.make_node("Sparkle", ["x"], ["y"], name="middle", domain="own")
    with pytest.raises(NotImplementedError, match=r"ONNX op Sparkle \(node 'middle'\): .*got own\.Sparkle-1"):
        taeda.onnx.load(model([node], [value("x")], [value("y")], domains=["own"]))


def test_a_function_that_calls_itself():
    function = scaled("F", helper.make_node("F", ["x"], ["y"], domain="own"))
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    with pytest.raises(ValueError, match=r"calls itself|cycl|recurs"):
        taeda.onnx.load(model([node], [value("x")], [value("y")], functions=[function], domains=["own"]))


def test_functions_that_double_what_they_call():
    """40 of them would be 10**12 calls."""
    functions = [scaled("F0", helper.make_node("Relu", ["x"], ["y"]))]
    for i in range(1, 40):
        calls = [helper.make_node(f"F{i - 1}", [a], [b], domain="own") for a, b in ("xt", "ty")]
        functions.append(scaled(f"F{i}", *calls))
    node = helper.make_node("F39", ["x"], ["y"], domain="own")
    with pytest.raises(ValueError, match="at most 1000000 calls"):
        taeda.onnx.load(model([node], [value("x")], [value("y")], functions=functions, domains=["own"]))


def test_an_op_that_fails_names_itself():
    module = taeda.onnx.load(one("MatMul", "a", "b"))
    with pytest.raises(taeda.onnx.NodeError, match=r"MatMul \(node 'middle'\) of float32\[2\], float32\[3\]: "):
        module(taeda.ones(2), taeda.ones(3))


def test_import_leaves_onnx_alone(run_python):
    code = "import sys, taeda; taeda.onnx.load; print([m for m in sys.modules if m.split('.')[0] in ('onnx', 'ml_dtypes')])"
    assert run_python(code).strip() == "[]"


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"taeda\[onnx\]"):
        taeda.onnx.load(b"")
