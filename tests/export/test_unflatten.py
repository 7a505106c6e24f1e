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
