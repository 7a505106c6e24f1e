"""``fake_quantize_per_tensor_affine`` and ``fake_quantize_per_channel_affine`` against PyTorch's."""

import math

import pytest

import taeda

torch = pytest.importorskip("torch")

from .peer import ERRORS, close, compare, gradients, ours  # noqa: E402 - needs torch

torch.manual_seed(3)
X = torch.randn(3, 4) * 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("how", [(0.1, 0, -128, 127), (0.03, 10, 0, 255), (1.5, -3, -4, 3)])
def test_per_tensor(how, dtype):
    compare("numbers", lambda f, x: f.fake_quantize_per_tensor_affine(x, *how), X.to(dtype))
    scale, zero, low, high = how
    compare(
        "tensors",
        lambda f, x: f.fake_quantize_per_tensor_affine(
            x, f.tensor([scale]), f.tensor([zero], dtype=f.int32), low, high
        ),
        X.to(dtype),
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_per_channel(axis):
    scale = torch.rand(X.shape[axis]) * 0.1 + 0.01
    zero = torch.arange(X.shape[axis], dtype=torch.int32)

    def call(f, x, scale=scale, zero=zero):
        scale, zero = (scale, zero) if f is torch else (ours(scale), ours(zero))
        return f.fake_quantize_per_channel_affine(x, scale, zero, axis, 0, 255)

    compare("per channel", call, X)
    gradients("per channel", call, X.clone().requires_grad_())


def test_gradient_passes_where_nothing_is_cut_off():
    gradients(
        "per tensor", lambda f, x: f.fake_quantize_per_tensor_affine(x, 0.1, 0, -20, 20), X.clone().requires_grad_()
    )


def test_gradient_passes_at_the_first_and_the_last_integer():
    x = torch.tensor([math.nan, -3.6, -3.4, -3.0, -2.6, 0.0, 2.4, 3.0, 3.4, 3.6])
    gradients("bounds", lambda f, x: f.fake_quantize_per_tensor_affine(x, 1.0, 0, -3, 3), x.requires_grad_())
    x = torch.tensor([[-0.7, 0.1, 0.7], [2.0, -0.3, 1.1]])
    gradients(
        "channels",
        lambda f, x: f.fake_quantize_per_channel_affine(
            x, x.detach().abs().amax(1) / 127, f.zeros(2, dtype=f.int32), 0, -128, 127
        ),
        x.requires_grad_(),
    )


def test_special_values_and_halves():
    x = torch.tensor([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.25, 0.75, 1.25, -0.25, -0.75])
    compare("special", lambda f, x: f.fake_quantize_per_tensor_affine(x, 0.5, 1, -128, 127), x)


def test_under_vmap():
    batch = taeda.randn(5, 3, 4)
    got = taeda.vmap(lambda x: taeda.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127))(batch)
    close(
        got,
        torch.stack([torch.fake_quantize_per_tensor_affine(torch.from_dlpack(x), 0.1, 0, -128, 127) for x in batch]),
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.fake_quantize_per_tensor_affine(x, 0.1, 300, -128, 127),
        lambda f, x: f.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 1),
        lambda f, x: f.fake_quantize_per_tensor_affine(x.long(), 0.1, 0, 0, 255),
        lambda f, x: f.fake_quantize_per_channel_affine(x, f.ones(3), f.zeros(4, dtype=f.int32), 1, 0, 255),
        lambda f, x: f.fake_quantize_per_channel_affine(x, f.ones(4), f.full((4,), 999, dtype=f.int32), 1, 0, 255),
        lambda f, x: f.fake_quantize_per_channel_affine(x, f.ones(4), f.zeros(4, dtype=f.int32), -1, 0, 255),
    ],
)
def test_errors(call):
    compare("error", call, X, raises=ERRORS)
