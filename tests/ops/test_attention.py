"""Scaled dot-product attention against its definition."""

import itertools

import numpy as np
import pytest

import taeda
from taeda._core import memory
from taeda.autograd import gradcheck
from taeda.nn import functional as F
from taeda.nn.attention import SDPBackend, sdpa_kernel
from taeda.ops.attention import _attention, _attention_backward


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


def test_gradients_by_a_mask_that_hides_a_row():
    """They are 0 for that row, and those of the rest are as without it."""
    taeda.manual_seed(0)
    q, k, v = rand(5, 8), rand(6, 8), rand(6, 7)
    mask = taeda.randn(5, 6, dtype=q.dtype)
    mask[2] = mask[0, 1] = float("-inf")
    mask.requires_grad_()
    found = taeda.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).sum(), (q, k, v, mask))
    rest = [0, 1, 3, 4]
    want = taeda.autograd.grad(F.scaled_dot_product_attention(q[rest], k, v, mask[rest]).sum(), (q, k, v, mask))
    for got, expected in zip(found, want, strict=True):
        assert np.allclose(got.numpy(), expected.numpy(), atol=1e-6)
    weights = taeda.ops.aten._safe_softmax(mask, -1)
    (got,) = taeda.autograd.grad((weights * v[:, 0]).sum(), mask)
    assert not weights[2].any() and not got[2].any() and got[[0, 1, 3, 4]].isfinite().all()


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 4, 2, 150, 100, 40, 24),
        (1, 2, 2, 70, 200, 64, 72),
        (2, 3, 3, 64, 64, 17, 130),
        (1, 2, 1, 1, 300, 8, 8),
        (1, 4, 2, 25, 25, 8, 8),
        (1, 2, 1, 40, 65, 8, 20),
        (1, 2, 2, 130, 40, 20, 8),
        (1, 2, 1, 70, 130, 300, 270),
    ],
)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "numbers"])
def test_blocks(dtype, sizes, kind, dropout):
    """Several blocks of queries and keys, and short last ones: the fused op against the same in public ops."""
    taeda.manual_seed(0)
    b, h, kh, n, s, e, ev = sizes
    q, k, v = (taeda.randn(b, *x, dtype=dtype).requires_grad_() for x in ((h, n, e), (kh, s, e), (kh, s, ev)))
    mask = None
    if kind == "bool":
        mask = taeda.rand(b, 1, n, s) > 0.7
        mask[0, 0, 0] = False
    elif kind == "numbers":
        mask = taeda.randn(n, s, dtype=dtype)
    causal = kind == "causal"
    taeda.manual_seed(1)
    out = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal, enable_gqa=True)
    wide_k, wide_v = (x.repeat_interleave(h // kh, 1) for x in (k, v))
    scores = q @ wide_k.mT / e**0.5
    if causal:
        scores = scores.masked_fill(taeda.ones(n, s, dtype=taeda.bool).triu(1), float("-inf"))
    elif mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if kind == "bool" else scores + mask
    weights = scores.softmax(-1)
    if kind == "bool":
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    taeda.manual_seed(1)
    want = F.dropout(weights, dropout) @ wide_v
    g = taeda.randn(*out.shape, dtype=dtype)
    tolerance = 1e-4 if dtype == taeda.float32 else 1e-10
    assert np.allclose(out.detach().numpy(), want.detach().numpy(), atol=tolerance)
    for got, reference in zip(
        taeda.autograd.grad(out, (q, k, v), g), taeda.autograd.grad(want, (q, k, v), g), strict=True
    ):
        assert np.allclose(got.numpy(), reference.numpy(), atol=10 * tolerance)


def test_layouts():
    """Heads cut out of one projection, and the joined result without a copy."""
    taeda.manual_seed(0)
    x = taeda.randn(2, 70, 3, 4, 16)
    q, k, v = (x[:, :, i].transpose(1, 2) for i in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    plain = F.scaled_dot_product_attention(*(t.contiguous() for t in (q, k, v)), is_causal=True)
    assert taeda.equal(out, plain)
    assert out.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("dtype", [taeda.float16, taeda.bfloat16])
def test_half_precision(dtype):
    """Computed in float32, rounded once."""
    taeda.manual_seed(0)
    q, k, v = (taeda.randn(1, 2, 80, 32).to(dtype) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    want = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
    assert out.dtype == dtype and np.allclose(out.float().numpy(), want.numpy(), atol=1e-2)


def test_unusual_ranks_and_dropout():
    """Two, three and five dimensions, broadcast batches; dropout of everything leaves nothing."""
    taeda.manual_seed(0)
    q = taeda.randn(2, 3, 4, 10, 8)
    whole = F.scaled_dot_product_attention(q, q, q)
    assert np.allclose(F.scaled_dot_product_attention(*[q[1, 2, 3]] * 3).numpy(), whole[1, 2, 3].numpy(), atol=1e-5)
    assert np.allclose(F.scaled_dot_product_attention(*[q[1, 2]] * 3).numpy(), whole[1, 2].numpy(), atol=1e-5)
    shared = F.scaled_dot_product_attention(q[0], q[0, :1], q[0, :1])
    assert shared.shape == (3, 4, 10, 8)
    assert not F.scaled_dot_product_attention(q, q, q, dropout_p=1.0).any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: F.scaled_dot_product_attention(x, x[..., :4], x), "same last dimension"),
        (lambda x: F.scaled_dot_product_attention(x, x, x[:, :, :3]), "differ in length"),
        (lambda x: F.scaled_dot_product_attention(x, x, x.double()), "same dtype"),
        (lambda x: F.scaled_dot_product_attention(x[0], x[0], x[0], x[0], is_causal=True), "is_causal"),
        (lambda x: F.scaled_dot_product_attention(x, x[:, :3], x[:, :3], enable_gqa=True), "must divide"),
    ],
)
def test_errors(call, says):
    """RuntimeError, with shapes."""
    with pytest.raises(RuntimeError, match=says):
        call(taeda.rand(2, 4, 6, 8))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_threads_do_not_change_a_bit(dropout):
    """Forward and gradients."""
    taeda.manual_seed(0)
    q, k, v = (taeda.randn(3, 4, 130, 32).requires_grad_() for _ in range(3))
    results = []
    for n in (1, 2, 3):
        taeda.set_num_threads(n)
        taeda.manual_seed(0)
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        results.append([out, *taeda.autograd.grad(out.sum(), (q, k, v))])
    for other in results[1:]:
        assert all(taeda.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("queries", [1, 3, 4, 5])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
def test_few_queries(queries, dtype):
    """A token after many, with the keys and values of a longer cache: no block of keys is packed for so few rows."""
    taeda.manual_seed(0)
    cache = taeda.randn(2, 2, 3, 200, 70, dtype=dtype)
    q, (k, v) = taeda.randn(2, 6, queries, 70, dtype=dtype), cache[:, :, :, :137]
    out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True).numpy()
    want = attention(q.double().numpy(), *(np.repeat(x.double().numpy(), 2, 1) for x in (k, v)))
    assert np.allclose(out, want, atol=1e-6 if dtype is taeda.float32 else 1e-12)


@pytest.mark.parametrize("layout", ["unbind", "split", "apart"])
def test_gradients_of_one_tensor(layout):
    """Queries, keys and values that are parts of one tensor get gradients that are parts of one: joined without a copy."""
    taeda.manual_seed(0)
    b, t, h, e = 3, 9, 2, 5
    x = taeda.randn(b, t, 3 * h * e, dtype=taeda.float64, requires_grad=True)
    g = taeda.randn(b, t, h, e, dtype=taeda.float64).transpose(1, 2)
    if layout == "unbind":
        q, k, v = x.view(b, t, 3, h, e).permute(2, 0, 3, 1, 4).unbind(0)
    elif layout == "split":
        q, k, v = (part.view(b, t, h, e).transpose(1, 2) for part in x.split(h * e, 2))
    else:
        q, k, v = (part.transpose(1, 2).clone() for part in x.view(b, t, 3, h, e).unbind(2))
    parts = []
    if layout != "apart":
        for part in (q, k, v):
            part.register_hook(parts.append)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    out.backward(g)
    assert len({part.untyped_storage().data_ptr() for part in parts}) == (layout != "apart")
    got, x.grad = x.grad, None
    a, c, d = (x.view(b, t, 3, h, e)[:, :, i].transpose(1, 2) for i in range(3))
    scores = (a @ c.mT / e**0.5).masked_fill(taeda.ones(t, t, dtype=taeda.bool).triu(1), float("-inf"))
    (scores.softmax(-1) @ d).backward(g)
    assert np.allclose(got.numpy(), x.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"is_causal": True},
        {},
        {"mask": True},
        {"dropout_p": 0.1},
        {"size": 260},
        {"lead": (2, 1)},
        {"enable_gqa": True},
    ],
)
def test_memory_is_linear_in_positions(options):
    """Forward and backward hold no matrix of scores: four times the positions take four times the memory."""

    def peak(n):
        taeda.manual_seed(0)
        lead, size = options.get("lead", (1,)), options.get("size", 16)
        heads = (2, 1, 1) if "enable_gqa" in options else (2, 2, 2)
        q, k, v = (taeda.randn(*lead, h, n, size).requires_grad_() for h in heads)
        mask = taeda.rand(n) > 0.5 if "mask" in options else None  # of the keys, the same for every query
        passed = {name: x for name, x in options.items() if name not in ("mask", "lead", "size")}
        before = memory.memory_stats()["allocated"]
        memory.reset_peak_memory_stats()
        F.scaled_dot_product_attention(q, k, v, mask, **passed).sum().backward()
        return memory.memory_stats()["peak_allocated"] - before

    peak(64)  # what is made once
    few, many = peak(512), peak(2048)
    assert many < 4.5 * few and many < 2048 * 2048 * 4 * max(options.get("size", 0) // 100, 1)


def test_the_op_takes_sizes_of_nothing():
    for batch, heads, queries, keys, size in itertools.product((0, 1), (0, 2), (0, 3), (0, 3), (0, 4)):
        q, k = taeda.randn(batch, heads, queries, size), taeda.randn(batch, heads, keys, size)
        for causal in (False, True):
            out, sums = _attention(q, k, k, None, causal, 0.5)
            assert out.shape == q.shape and sums.shape == (batch, heads, queries, 2)
            grads = _attention_backward(taeda.ones_like(out), q, k, k, None, out, sums, causal, 0.5)
            assert [g.shape for g in grads] == [q.shape, k.shape, k.shape]
            assert all(g.isfinite().all() for g in grads)


def test_gradients_of_a_row_that_is_masked_with_finite_numbers():
    """All its scores are the least number, and its weights equal."""
    lowest = taeda.finfo(taeda.float32).min
    q, k, v = (taeda.arange(12.0).add(i).sin().reshape(1, 1, 3, 4).requires_grad_() for i in range(3))
    mask = taeda.zeros(1, 1, 3, 3)
    mask[..., 1, :] = lowest
    grads = []
    for attend in (
        lambda: taeda.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        lambda: (q @ k.mT / 2 + mask).softmax(-1) @ v,
    ):
        grads.append(taeda.autograd.grad(attend().square().sum(), (q, k, v)))
    for got, want in zip(*grads, strict=True):
        taeda.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def kernels():
    """What attention may use, by PyTorch's getters."""
    said = taeda.backends.cuda
    return [kind for kind in ("cudnn", "flash", "mem_efficient", "math") if getattr(said, f"{kind}_sdp_enabled")()]


def test_the_definition_can_be_chosen():
    taeda.manual_seed(0)
    q, k, v = taeda.randn(3, 2, 4, 40, 16, requires_grad=True)
    sdpa, every = F.scaled_dot_product_attention, ["cudnn", "flash", "mem_efficient", "math"]
    fused = sdpa(q, k, v)
    assert kernels() == every and "Flash" in fused.grad_fn.name()
    with sdpa_kernel(SDPBackend.MATH):
        assert kernels() == ["math"]
        plain = sdpa(q, k, v)
        with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
            assert kernels() == ["flash", "math"] and "Flash" in sdpa(q, k, v).grad_fn.name()
        assert kernels() == ["math"]
    assert kernels() == every
    assert "Flash" not in plain.grad_fn.name() and taeda.allclose(fused, plain, atol=1e-6)
    assert taeda.equal(plain, ((q * 0.25) @ k.mT).softmax(-1) @ v)
    taeda.backends.cuda.enable_flash_sdp(False)
    try:
        assert "Flash" not in sdpa(q, k, v).grad_fn.name()
    finally:
        taeda.backends.cuda.enable_flash_sdp(True)


@pytest.mark.parametrize("chosen", [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.ERROR, []])
def test_without_a_kernel_that_is_there_attention_is_an_error(chosen):
    x = taeda.randn(1, 2, 5, 4)
    with sdpa_kernel(chosen), pytest.raises(RuntimeError, match=r"allow SDPBackend\.MATH"):
        F.scaled_dot_product_attention(x, x, x)
    with pytest.raises(AssertionError, match="expected an SDPBackend"), sdpa_kernel("math"):
        pass
