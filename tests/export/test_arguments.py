"""Steps have PyTorch's names of arguments, whichever names the program uses."""

import pytest

import taeda
from taeda import nn
from taeda.export import export


class Numpys(nn.Module):
    def forward(self, x):
        y = taeda.cat([x, x], axis=1).sum(axis=1, keepdims=True)
        return taeda.add(x1=y, x2=x), taeda.transpose(x, axis0=0, axis1=1), x.std(axis=0), taeda.concat([x, x], axis=0)


def test_names_of_numpy_are_those_of_pytorch_in_steps():
    x = taeda.randn(2, 3)
    program = export(Numpys(), (x,))
    names = {name for node in program.graph.nodes for name in node.kwargs}
    assert names == {"dim", "keepdim", "input", "other", "dim0", "dim1"}
    for got, want in zip(program.module()(x), Numpys()(x), strict=True):
        assert taeda.equal(got, want)


class Shaped(nn.Module):
    def forward(self, x, size):
        return x.reshape(size)


def test_a_size_is_a_tuple():
    x = taeda.randn(2, 3)
    module = export(Shaped(), (x, taeda.Size([3, 2]))).module()
    assert module(x, (3, 2)).shape == module(x, taeda.Size([3, 2])).shape == (3, 2)


def test_arguments_that_a_program_was_not_made_for():
    class Model(nn.Module):
        def forward(self, x, y=None, *, scale):
            return x * scale

    program = export(Model(), (taeda.ones(2),), {"scale": taeda.tensor(2.0)}).module()
    assert program(taeda.ones(2), scale=taeda.tensor(3.0)).tolist() == [3.0, 3.0]
    scale = {"scale": taeda.tensor(2.0)}
    for args, kwargs in (
        ((taeda.ones(2),), {**scale, "other": 1}),
        ((taeda.ones(2),), {}),
        ((), scale),
        ((taeda.ones(2), taeda.ones(2)), scale),
        ((taeda.ones(2),), {**scale, "x": taeda.ones(2)}),
    ):
        with pytest.raises(ValueError, match=r"keyword mismatch|input tree spec"):
            program(*args, **kwargs)
