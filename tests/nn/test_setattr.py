"""Attributes of modules that go round ``Module.__setattr__``, as programs do."""

import taeda
from taeda import nn


def test_objects_own_setattr_works_on_modules():
    layer = nn.Linear(2, 2)
    object.__setattr__(layer, "_hidden", nn.Linear(1, 1))
    assert layer._hidden.in_features == 1 and "_hidden" not in layer._modules
    object.__delattr__(layer, "_hidden")
    assert not hasattr(layer, "_hidden")


def test_a_subclass_may_set_attributes_its_own_way():
    class Upper(nn.Module):
        def __setattr__(self, name, value):
            super().__setattr__(name.upper() if name == "weight" else name, value)

    module = Upper()
    module.weight = nn.Parameter(taeda.ones(1))
    assert list(dict(module.named_parameters())) == ["WEIGHT"]
    del module.WEIGHT
    assert not list(module.parameters())


def test_statistics_may_move_between_two_forwards_and_the_derivative():
    norm = nn.BatchNorm1d(2)
    x = taeda.randn(4, 2)
    (norm(x) * norm(x + 1)).sum().backward()
    assert norm.weight.grad is not None
