"""Programs as modules inside of modules."""

from __future__ import annotations

import copy

import pytest

import taeda
from taeda import nn
from taeda.export import FlatArgsAdapter, export, unflatten
from taeda.utils import _pytree as pytree

from .models import MODELS


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_values(name, decompose):
    module, args, kwargs, sizes = MODELS[name](taeda)
    program = export(module, args, kwargs, dynamic_shapes=sizes)
    program = program.run_decompositions() if decompose else program
    want = copy.deepcopy(module)(*copy.deepcopy(args), **kwargs)
    got = unflatten(program)(*copy.deepcopy(args), **kwargs)
    for x, y in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True):
        assert taeda.allclose(x, y, 1e-4, 1e-5) if isinstance(y, taeda.Tensor) else x == y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.two(self.one(x).relu()) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.out = Block(), nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.block(self.block(x) * 2))


def test_modules_and_parameters():
    model, x = Net(), taeda.randn(4, 3)
    made = unflatten(export(model, (x,)))
    assert {name for name, _ in made.named_parameters()} == {name for name, _ in model.named_parameters()}
    assert made.block.one.weight is model.block.one.weight
    assert taeda.allclose(made.block(x)[0], model.block(x))
    assert taeda.allclose(getattr(made, "block@1")(x)[0], model.block(x))
    assert taeda.allclose(made.out(x)[0], model.out(x))


class OfDict(FlatArgsAdapter):
    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        return input_args[: target_spec.num_leaves]


def test_other_arguments():
    model, x = Net(), taeda.randn(4, 3)
    made = unflatten(export(model, (x,)), OfDict())
    assert taeda.allclose(made({"x": x, "more": 3}), model(x))
    with pytest.raises(ValueError, match=r"mismatch"):
        unflatten(export(model, (x,)))(x, x)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, table, *, scale=1.0):
        return {"a": self.linear(table["x"]) * scale, "b": (table["x"], 3)}


class Outer(nn.Module):
    def __init__(self, one, two):
        super().__init__()
        self.one, self.two = one, two

    def forward(self, x):
        first = self.one({"x": x}, scale=2.0)
        second = self.two({"x": first["a"] + first["b"][0]})
        return second["a"] * second["b"][1]


class Plain(nn.Module):
    def forward(self, table, *, scale=1.0):
        return {"a": table["x"] * scale, "b": (table["x"], 3)}


def test_a_module_whose_signature_is_kept_can_be_replaced():
    model, x = Outer(Inner(), Inner()), taeda.randn(2, 3)
    program = export(model, (x,), preserve_module_call_signature=("one", "two"))
    assert [e.fqn for e in program.module_call_graph if e.signature] == ["", "one", "two"]
    modules = unflatten(program)
    assert taeda.equal(modules(x), model(x))
    modules.one, modules.two = Plain(), Plain()
    assert taeda.equal(modules(x), Outer(Plain(), Plain())(x))
