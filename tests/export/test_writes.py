"""Writes in a forward: decomposed programs and ``.pt2`` files give what the model gives, and write what it writes."""

import io

import pytest

import taeda
from taeda import export, nn


class Forward(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def programs(model, args):
    """The model exported, decomposed, and read from a ``.pt2`` file, as modules."""
    made = export.export(model, tuple(x.clone() for x in args))
    yield made.module()
    yield made.run_decompositions().module()
    file = io.BytesIO()
    export.save(made, file, format="pt2")
    file.seek(0)
    yield export.load(file).module()


def agree(model, *args):
    """Each form gives the model's values and gradients, and leaves its arguments as the model does."""
    for program in (model, *programs(model, args)):
        given = [x.clone().requires_grad_() for x in args]
        inner = [x * 1 for x in given]
        result = program(*inner)
        result = result if isinstance(result, tuple) else (result,)
        parts = [x for x in result if x.requires_grad]
        grads = taeda.autograd.grad(sum((x * x.detach().cos()).sum() for x in parts), given) if parts else []
        found = [*result, *inner, *grads]
        if program is model:
            want = found
            continue
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            assert a.shape == b.shape
            taeda.testing.assert_close(a, b)


ACTIVATIONS = "LeakyReLU ReLU ReLU6 ELU Hardtanh SELU CELU SiLU Hardswish Hardsigmoid Mish RReLU Dropout".split()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_in_place(name):
    layer = getattr(nn, name)(inplace=True).eval()
    x = taeda.linspace(-4, 4, 12).reshape(3, 4)
    with taeda.no_grad():
        agree(layer, x)
        agree(Forward(lambda x: (layer(x), x * 2)), x)
    agree(Forward(lambda x: layer(x * 2) * 3), x)


@pytest.mark.parametrize(
    "kind", ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
)
def test_convolution_without_bias(kind):
    agree(getattr(nn, kind)(2, 4, 3, bias=False), taeda.randn(1, 2, *[5] * int(kind[-2])))


FORMS = {
    "div_": lambda x: x.div_(3.0, rounding_mode="floor"),
    "clamp_": lambda x: x.clamp_(-1, 1),
    "pow_": lambda x: x.pow_(2),
    "nan_to_num_": lambda x: x.nan_to_num_(1.0),
    "fill_diagonal_": lambda x: x.fill_diagonal_(3.0),
    "polygamma_": lambda x: x.abs_().add_(1).polygamma_(1),
    "threshold_": lambda x: nn.functional.threshold_(x, 0.1, 2.0),
}


@pytest.mark.parametrize("name", FORMS)
def test_in_place_form(name):
    agree(Forward(lambda x: FORMS[name](x.clone()) * 2), taeda.linspace(-4, 4, 12).reshape(3, 4))


SHAPES = {
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "squeeze_": lambda y: y[None].squeeze_(0),
    "transpose_": lambda y: y.transpose_(0, 1),
    "swapaxes_": lambda y: y.swapaxes_(0, 1),
    "t_": lambda y: y.t_(),
    "as_strided_": lambda y: y.as_strided_((4, 3), (1, 4)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_in_place_change_of_form(name):
    change, x = SHAPES[name], taeda.linspace(-4, 4, 12).reshape(3, 4)
    agree(Forward(lambda x: change(x * 1) * 2), x)

    def written_before_and_after(x):
        y = x * 1
        before = y[1]  # of the memory, in the form that it had
        z = change(y)
        z.mul_(2)
        z[0] = 7
        before.add_(1)
        change(z) if name != "squeeze_" else z
        return z, before, y

    agree(Forward(written_before_and_after), x)
