"""Convolution with one input channel per group, or few outputs, forward and its three gradients, against PyTorch."""

import random

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def compare(dims, images, channels, multiple, size, kernel, stride, padding, dilation, dtype, last=False, inputs=1):
    """``channels`` groups of so many ``inputs``, with ``multiple`` outputs each."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(images, channels * inputs, *size, dtype=dtype, generator=generator)
    w = torch.randn(channels * multiple, inputs, *kernel, dtype=dtype, generator=generator)
    b = torch.randn(channels * multiple, dtype=dtype, generator=generator)
    if last:
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)
    theirs = [t.requires_grad_() for t in (x, w, b)]
    ours = [taeda.from_numpy(t.detach().numpy()).requires_grad_() for t in theirs]
    geometry = (stride, padding, dilation, channels)
    y = getattr(torch.nn.functional, f"conv{dims}d")(*theirs, *geometry)
    z = getattr(taeda.nn.functional, f"conv{dims}d")(*ours, *geometry)
    g = torch.randn(y.shape, dtype=dtype, generator=generator)
    y.backward(g)
    z.backward(taeda.from_numpy(g.numpy()))
    tolerance = 1e-3 if dtype is torch.float32 else 1e-10
    for got, want in zip([z, *(t.grad for t in ours)], [y, *(t.grad for t in theirs)], strict=True):
        np.testing.assert_allclose(np.asarray(got.detach()), want.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(40))
def test_any_geometry(seed):
    choose = random.Random(seed)
    dims = choose.choice([1, 2, 2, 2, 3])
    kernel = [choose.randint(1, 5 if dims < 3 else 3) for _ in range(dims)]
    stride, dilation = ([choose.randint(1, most) for _ in range(dims)] for most in (3, 2))
    padding = [choose.randint(0, 3) for _ in range(dims)]
    size = [choose.randint(d * (k - 1) + 1, {1: 200, 2: 40, 3: 9}[dims]) for d, k in zip(dilation, kernel, strict=True)]
    images, channels, multiple = choose.randint(1, 3), choose.randint(1, 5), choose.choice([1, 1, 2, 3, 6])
    dtype = choose.choice([torch.float32, torch.float64])
    compare(dims, images, channels, multiple, size, kernel, stride, padding, dilation, dtype, choose.random() < 0.3)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [([300, 290], [7, 7], [1, 1], [3, 3]), ([300, 290], [7, 7], [2, 2], [3, 3]), ([30, 29], [11, 11], [2, 2], [3, 3])],
)
def test_bands_and_many_taps(size, kernel, stride, padding):
    compare(2, 2, 3, 1, size, kernel, stride, padding, [1, 1], torch.float32)


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 9), (3, 20), (20, 1), (17, 3), (4, 4)])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        ([33, 40], [3, 3], [1, 1], [1, 1]),
        ([16, 17], [5, 4], [2, 2], [2, 1]),
        ([14, 7], [3, 7], [2, 1], [0, 3]),
        ([5, 17, 5], [2, 3, 1], [3, 3, 3], [0, 1, 0]),  # more positions along the depth than the gradient has
        ([9, 5, 30], [3, 2, 3], [2, 1, 2], [1, 1, 1]),
        ([100], [9], [2], [4]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_few_channels(inputs, outputs, size, kernel, stride, padding, dtype):
    dims = len(size)
    for groups in (1, 3):
        compare(dims, 2, groups, outputs, size, kernel, stride, padding, [1] * dims, dtype, False, inputs)


def test_small_images_and_integers():
    compare(2, 70, 40, 1, [4, 4], [3, 3], [1, 1], [1, 1], [1, 1], torch.float32)
    x, w = torch.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5), torch.arange(27).reshape(3, 1, 3, 3)
    got = taeda.nn.functional.conv2d(taeda.from_numpy(x.numpy()), taeda.from_numpy(w.numpy()), padding=1, groups=3)
    np.testing.assert_array_equal(np.asarray(got), torch.nn.functional.conv2d(x, w, padding=1, groups=3).numpy())


def test_any_number_of_threads():
    x, w = taeda.randn(5, 33, 30, 31), taeda.randn(33, 1, 3, 3)
    results = []
    for threads in (1, 2, 5):
        taeda.set_num_threads(threads)
        inputs = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        y = taeda.nn.functional.conv2d(*inputs, None, 2, 1, 1, 33)
        y.square().sum().backward()
        results.append([np.asarray(t.detach()) for t in (y, *(i.grad for i in inputs))])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
