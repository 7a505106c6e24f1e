"""Modules that are kept as functions of the ONNX model."""

from __future__ import annotations

import io
import warnings

import pytest

import taeda
import taeda.onnx
from taeda import nn

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from .networks import NETWORKS  # noqa: E402
from .test_export import changed, compare, leaves  # noqa: E402


def models(torch):
    """Classes of a model, in taeda or in PyTorch: their differences are numbers."""

    class Clip(torch.nn.Module):
        low: float

        def __init__(self, low, scale, high):
            super().__init__()
            self.low, self.scale, self.high = low, scale, high

        def forward(self, x):
            leaky = torch.nn.functional.leaky_relu
            return leaky(leaky(x, self.low) * self.scale, self.high)

    class Two(torch.nn.Module):
        def forward(self, x, y):
            return x + y, (x * y, x)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.act, self.two = torch.nn.ReLU(), Two()
            self.c, self.d = Clip(0.1, 2.0, 0.3), Clip(0.2, 3.0, 0.4)

        def forward(self, x):
            x = self.second(self.act(self.act(self.first(x))))
            a, (b, c) = self.two(x, x.exp())
            return self.c(a) + self.d(b) + c

    return Net, {Clip, Two, torch.nn.ReLU}


def described(model):
    """The nodes of the graph, and of each function its name and ops; names of attributes that were inferred."""

    def of(node):
        inferred = {a.name for a in node.attribute if a.name.startswith("inferred")}
        return node.domain.replace("torch", "taeda"), node.op_type, inferred, len(node.output)

    functions = {
        (f.domain.replace("torch", "taeda"), f.name): (
            [of(n)[:2] for n in f.node], len(f.input), len(f.output), {a for a in f.attribute if a != "inplace"}
        )
        for f in model.functions
    }  # fmt: skip
    return [of(n) for n in model.graph.node], functions


def exported(torch, all_of_them=False):
    net, kinds = models(torch)
    file = io.BytesIO()
    kinds = True if all_of_them else kinds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net().eval(), (torch.ones(2, 3),), file, dynamo=False, opset_version=17, export_modules_as_functions=kinds
        )
    return onnx.load_from_string(file.getvalue())


def test_functions_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    assert described(exported(taeda)) == described(exported(torch))


def test_every_module_is_one_node_and_a_function():
    model = exported(taeda, all_of_them=True)
    assert [n.op_type for n in model.graph.node] == ["Net"]
    functions = {f.name: f for f in model.functions}
    assert sorted(functions) == ["Clip", "Linear", "Net", "ReLU", "Two"]
    assert [n.op_type for n in functions["Net"].node] == ["Linear", "ReLU", "ReLU", "Linear", "Exp", "Two", "Clip",
                                                          "Clip", "Add", "Add"]  # fmt: skip
    assert list(functions["Linear"].input)[1:] == ["weight", "bias"]
    assert list(functions["Linear"].attribute) == ["in_features", "out_features"]


@pytest.mark.parametrize("name", ["residual", "bert", "llama", "tagger"])
def test_networks(name):
    taeda.manual_seed(0)
    model, args, sizes = NETWORKS[name]()
    model.eval()
    program = taeda.onnx.export(model, args, dynamic_shapes=sizes, export_modules_as_functions=True, verify=True)
    assert len(program.model_proto.graph.node) == 1
    others = [changed(x, s) for x, s in zip(args, sizes, strict=True)] if name in ("residual", "bert") else args
    compare(program, model, *others)
    compare(lambda *args: taeda.onnx.load(program.model_proto)(*leaves(args)), model, *args)


class Block(nn.Module):
    def __init__(self, rows, weight=None):
        super().__init__()
        self.register_buffer("table", taeda.arange(rows * 4.0).reshape(rows, 4))
        self.linear = nn.Linear(4, 4)
        if weight is not None:
            self.linear.weight = weight

    def forward(self, x, scale: float = 1.0):
        if len(self.table) == 3:
            x = x.relu()
        return self.linear(x).reshape(-1, 4) * self.table.sum(0) * scale + taeda.arange(400.0)[-4:]


def test_other_structures_shared_weights_and_dead_ends():
    taeda.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = Block(2)
            self.b = Block(3, self.a.linear.weight)
            self.c = nn.Sequential(Block(2), nn.Identity(), nn.Dropout())
            self.rest = nn.Sequential(nn.ReLU(), nn.Softmax(-1))

        def forward(self, x):
            unused = self.rest(x)
            y = self.c(self.b(self.a(x), 2.0))
            return y, self.a(y, 3.0), x * unused.shape[0]

    model = Net().eval()
    x = taeda.randn(2, 4)
    for optimize in (True, False):
        kinds, sizes = {Block, nn.Sequential}, ({0: "n"},)
        program = taeda.onnx.export(
            model, (x,), export_modules_as_functions=kinds, dynamic_shapes=sizes, optimize=optimize
        )
        compare(program, model, taeda.randn(5, 4))
        names = sorted(f.name for f in program.model_proto.functions)
        assert names == ["Block", "Block.1", "Sequential", "Sequential.1"]


def test_branches_and_numbers_that_are_drawn():
    class Drawn(nn.Module):
        def forward(self, x):
            return x + taeda.rand(x.shape)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drawn, self.linear = Drawn(), nn.Linear(2, 2)

        def forward(self, x):
            y = taeda.cond(x.sum() > 0, lambda x: self.linear(x), lambda x: x - 1, (x,))
            return self.drawn(x) - self.drawn(x), y

    model = Net()
    program = taeda.onnx.export(model, (taeda.ones(3, 2),), export_modules_as_functions=True)
    (difference, y) = program(taeda.ones(3, 2))
    assert (difference != 0).all()  # two calls, not one
    assert taeda.allclose(y, model.linear(taeda.ones(3, 2)), atol=1e-6)
    assert taeda.equal(program(-taeda.ones(3, 2))[1], -2 * taeda.ones(3, 2))


def test_programs_that_were_saved(tmp_path):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)).eval()
    program = taeda.export.export(model, (taeda.ones(2, 3),))
    taeda.export.save(program, tmp_path / "model.pt2")
    made = taeda.onnx.export(taeda.export.load(tmp_path / "model.pt2"), export_modules_as_functions={nn.Linear})
    assert [n.op_type for n in made.model_proto.graph.node] == ["Linear", "Relu", "Linear"]
    compare(made, model, taeda.randn(2, 3))


def test_what_is_no_class_is_refused():
    with pytest.raises(RuntimeError, match="takes a set of classes"):
        taeda.onnx.export(nn.ReLU(), (taeda.ones(2),), export_modules_as_functions={nn.ReLU()})
