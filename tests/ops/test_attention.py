"""Scaled dot-product attention against its definition."""

import numpy as np

import taeda
from taeda.autograd import gradcheck
from taeda.nn import functional as F


def rand(*shape):
    return taeda.rand(*shape, dtype=taeda.float64).sub_(0.5).requires_grad_()


def attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def test_attention():
    """Plain, causal, masked (a row that sees nothing gives 0), and with grouped heads; derivatives."""
    taeda.manual_seed(0)
    q, k, v = rand(2, 4, 5, 8), rand(2, 4, 6, 8), rand(2, 4, 6, 7)
    a, b, c = (x.detach().numpy() for x in (q, k, v))
    sdpa = F.scaled_dot_product_attention
    assert np.allclose(sdpa(q, k, v).detach().numpy(), attention(a, b, c))
    causal = np.tril(np.ones((5, 6), bool))
    assert np.allclose(sdpa(q, k, v, is_causal=True).detach().numpy(), attention(a, b, c, causal))
    mask = np.random.default_rng(0).random((5, 6)) > 0.4
    mask[2] = False
    assert np.allclose(sdpa(q, k, v, taeda.from_numpy(mask)).detach().numpy(), attention(a, b, c, mask))
    shared = sdpa(q, k[:, :2], v[:, :2], enable_gqa=True).detach().numpy()
    assert np.allclose(shared, attention(a, b[:, [0, 0, 1, 1]], c[:, [0, 0, 1, 1]]))
    for options in ({}, {"is_causal": True}, {"attn_mask": taeda.from_numpy(mask)}):
        assert gradcheck(lambda *x, options=options: sdpa(*x, **options), (q, k, v))
