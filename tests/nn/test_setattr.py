"""Attributes of modules that go round ``Module.__setattr__``, as programs do."""

import copy

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


def test_a_getattr_of_its_own_is_asked_for_parameters():
    class Noting(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.seen = []
            self.inner = inner
            self.scale = nn.Parameter(taeda.ones(1))

        def __getattr__(self, name):
            if name not in ("inner", "seen"):
                self.seen.append(name)
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    class Further(Noting):
        pass

    for kind in (Noting, Further):
        module = kind(nn.Linear(2, 3))
        del module.seen[:]
        assert module.scale.shape == (1,) and module.weight.shape == (3, 2) and module.training is True
        assert module.seen == ["scale", "weight"]


def test_compiling_in_place_changes_nothing():
    layer = nn.Linear(2, 2)
    before = layer(taeda.ones(2))
    assert layer.compile(mode="max-autotune") is None and taeda.equal(layer(taeda.ones(2)), before)


def test_a_mixin_behind_module_makes_the_objects():
    class Mixin:
        def __new__(cls, *args, **kwargs):
            made = super().__new__(cls)
            made.__dict__["made_with"] = args
            return made

    class Model(nn.Module, Mixin):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, width):
            super().__init__()
            self.layer = nn.Linear(width, 1)

    model = Model(3)
    assert model.made_with == (3,) and model.layer(taeda.ones(1, 3)).shape == (1, 1)
    assert copy.deepcopy(model).layer.weight.shape == (1, 3)
