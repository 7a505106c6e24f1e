"""Modules read from ONNX train as those that they were written from."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")
from onnx import TensorProto, numpy_helper  # noqa: E402

import taeda  # noqa: E402
import taeda.nn.functional as F  # noqa: E402
import taeda.onnx  # noqa: E402
from taeda import nn  # noqa: E402


def perceptron(module):
    """``module``, a Sequential of Linear, Tanh and Linear, as ONNX."""
    tensors = [numpy_helper.from_array(p.detach().numpy(), name) for name, p in module.named_parameters()]
    nodes = [
        helper.make_node("Gemm", ["x", "0.weight", "0.bias"], ["h"], transB=1),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Gemm", ["t", "2.weight", "2.bias"], ["y"], transB=1),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", None]) for name in "xy"]
    return helper.make_model(
        helper.make_graph(nodes, "g", infos[:1], infos[1:], tensors),
        ir_version=9,
        opset_imports=[helper.make_opsetid("", 17)],
    )


def trained(module, x, y):
    optimizer = taeda.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(10):
        optimizer.zero_grad()
        F.mse_loss(module(x), y).backward()
        optimizer.step()
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def test_a_perceptron_trains_as_its_source():
    taeda.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = taeda.randn(16, 4), taeda.randn(16, 2)
    read = taeda.onnx.load(perceptron(module).SerializeToString())
    wanted, got = trained(module, x, y), trained(read, x, y)
    assert wanted.keys() == got.keys()
    for name in wanted:
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-6, atol=1e-7)


def _one(op, inputs, weights, **attributes):
    tensors = [numpy_helper.from_array(w, name) for name, w in weights.items()]
    node = helper.make_node(op, [*inputs, *weights], ["y"], **attributes)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in [*inputs, "y"]]
    graph = helper.make_graph([node], "g", infos[:-1], infos[-1:], tensors)
    return taeda.onnx.load(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]))


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("Conv", [(1, 2, 5), (3, 2, 2)], {"pads": [1, 0]}),
        ("ConvTranspose", [(1, 2, 4), (2, 3, 2)], {"strides": [2]}),
        ("LSTM", [(3, 2, 2), (1, 12, 2), (1, 12, 3)], {"hidden_size": 3}),
        ("GRU", [(3, 2, 2), (1, 9, 2), (1, 9, 3)], {"hidden_size": 3}),
        ("LayerNormalization", [(2, 4), (4,)], {}),
        ("AveragePool", [(1, 1, 5)], {"kernel_shape": [2], "ceil_mode": 1, "strides": [2]}),
        ("ReduceL2", [(3, 4)], {"axes": [1]}),
    ],
)
def test_gradients_agree_with_finite_differences(op, shapes, attributes):
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(np.float32) for shape in shapes]
    module = _one(op, ["x"], {f"w{i}": a for i, a in enumerate(arrays[1:])}, **attributes).double()
    x = taeda.from_numpy(arrays[0]).double().requires_grad_()
    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    names = [name for name, _ in module.named_parameters()]

    def run(x, *weights):
        return taeda.func.functional_call(module, dict(zip(names, weights, strict=True)), (x,))

    assert taeda.autograd.gradcheck(run, (x, *weights))
