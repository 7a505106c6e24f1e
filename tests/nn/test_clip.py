"""Gradient clipping: one kernel over all gradients, and what it falls back on."""

import math

import numpy as np
import pytest

import taeda
from taeda import nn
from taeda.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm


def gradients(*shapes, dtype=taeda.float32, seed=0):
    rng = np.random.default_rng(seed)
    params = [taeda.zeros(s, dtype=dtype, requires_grad=True) for s in shapes]
    for p in params:
        p.grad = taeda.tensor(rng.standard_normal(tuple(p.shape)).tolist(), dtype=dtype).reshape(p.shape)
    return params


def reference(params, order):
    return np.linalg.norm(np.concatenate([p.grad.double().numpy().ravel() for p in params]), order)


@pytest.mark.parametrize("order", [1, 2, 3.5, math.inf])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16])
def test_norm_and_scaling(order, dtype):
    empty = () if order == math.inf else ((0,),)
    params = gradients((3, 5), (70,), (1,), (40000,), *empty, dtype=dtype)
    want = reference(params, order)
    before = [p.grad.double().numpy().copy() for p in params]
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype.name, 1e-6)
    total = clip_grad_norm_(params, 0.5, order)
    assert total.dtype is dtype and float(total) == pytest.approx(want, rel=tolerance)
    for p, old in zip(params, before, strict=True):
        np.testing.assert_allclose(p.grad.double().numpy(), old * 0.5 / want, rtol=2 * tolerance, atol=tolerance * 1e-2)


def test_small_gradients_stay():
    params = gradients((3,), (4,))
    before = [p.grad.tolist() for p in params]
    clip_grad_norm_(params, 1e6)
    assert [p.grad.tolist() for p in params] == before


def test_mixed_dtypes_and_layouts():
    params = gradients((3, 4)) + gradients((5,), dtype=taeda.float64, seed=1) + gradients((4, 3), seed=2)
    params[2].grad = params[2].grad.t().contiguous().t()
    want = reference(params, 2)
    assert float(clip_grad_norm_(params, 0.1)) == pytest.approx(want, rel=1e-5)
    assert reference(params, 2) == pytest.approx(0.1, rel=1e-4)


def test_not_finite():
    params = gradients((3,), (4,))
    params[0].grad[1] = math.nan
    for order in (1, 2, math.inf):
        assert math.isnan(float(get_total_norm([p.grad for p in params], order)))
    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    clip_grad_norm_(params, 1.0)
    assert bool(params[1].grad.isnan().all())
    params = gradients((3,))
    params[0].grad[0] = math.inf
    assert float(clip_grad_norm_(params, 1.0)) == math.inf
    assert params[0].grad.tolist()[1:] == [0.0, 0.0]


def test_threads_do_not_matter():
    results = []
    for threads in (1, 2, 3):
        taeda.set_num_threads(threads)
        params = gradients((100000,), (7,), (50000,))
        results.append((float(clip_grad_norm_(params, 1.0)), params[0].grad.numpy().tobytes()))
    assert results[0] == results[1] == results[2]


def test_nothing_to_clip():
    assert float(get_total_norm([])) == 0
    assert float(clip_grad_norm_([taeda.zeros(2, requires_grad=True)], 1.0)) == 0
    with pytest.warns(UserWarning, match="empty generator"):
        clip_grad_norm_((p for p in []), 1.0)


def test_values():
    params = gradients((50,))
    clip_grad_value_(params, 0.3)
    assert float(params[0].grad.abs().max()) == pytest.approx(0.3)
    assert isinstance(nn.utils.clip_grad_value_(params[0], 1), type(None))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_values_are_limited_in_one_kernel(dtype):
    """The same as ``clamp_`` of each gradient, NaN included, whatever their sizes."""
    params = [nn.Parameter(taeda.zeros(n, dtype=getattr(taeda, dtype))) for n in (1, 37, 0, 20000)]
    for p in params:
        p.grad = taeda.randn_like(p)
    params[1].grad[3] = float("nan")
    want = [p.grad.clone().clamp_(-0.3, 0.3) for p in params]
    versions = [p.grad._version for p in params]
    clip_grad_value_(params, 0.3)
    for p, w, version in zip(params, want, versions, strict=True):
        np.testing.assert_array_equal(p.grad.float().numpy(), w.float().numpy())
        assert p.grad._version > version


def test_averages_of_lists():
    """Lists of parameters go in one kernel, with what a loop over pairs gives."""
    from taeda.optim import swa_utils

    for decay in (0.25, 0.9):
        lists = swa_utils.get_ema_multi_avg_fn(decay)
        pair = swa_utils.get_ema_avg_fn(decay)
        averaged, current = ([taeda.randn(n) for n in (3, 40000, 17)] for _ in range(2))
        want = [pair(a, c, 5) for a, c in zip(averaged, current, strict=True)]
        lists(averaged, current, 5)
        for a, w in zip(averaged, want, strict=True):
            np.testing.assert_allclose(a.numpy(), w.numpy(), rtol=1e-6, atol=1e-6)


def test_gradients_of_several_dtypes_have_a_norm_of_the_wider_one():
    tensors = [taeda.ones(2, dtype=taeda.float16), taeda.full((2,), 1e6)]
    total = get_total_norm(tensors)
    assert total.dtype is taeda.float32 and total.item() == pytest.approx(2**0.5 * 1e6)
    params = [taeda.zeros(2, dtype=t.dtype, requires_grad=True) for t in tensors]
    for p, t in zip(params, tensors, strict=True):
        p.grad = t
    clip_grad_norm_(params, 1.0)
    assert params[1].grad.tolist() == pytest.approx([0.5**0.5] * 2)


def test_the_infinity_norm_needs_elements():
    with pytest.raises(RuntimeError, match="empty tensor"):
        get_total_norm([taeda.ones(2), taeda.ones(0)], math.inf)
    assert get_total_norm([taeda.ones(4), taeda.ones(0)]).item() == 2
