"""Attention by tiles on the device: values beside the definition in float64 on the CPU, what accesses cost, dropout,
repeated runs, races. ``test_cuda.py`` runs these in a process of their own."""

import pytest

import taeda
from taeda import cuda
from taeda.nn import functional as F
from taeda.nn.attention import SDPBackend, sdpa_kernel

from .emulator import driver

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no CUDA device")

FUSED, DEFINITION = SDPBackend.FLASH_ATTENTION, SDPBackend.MATH
EXACT = {taeda.float64: 1e-14, taeda.float32: 3e-6, taeda.float16: 2e-3, taeda.bfloat16: 2e-2}


def operands(q, k, ev, dtype=taeda.float32):
    """Queries of shape ``q``, keys of shape ``k``, values of ``ev`` numbers, a gradient."""
    g = taeda.Generator().manual_seed(0)
    shapes = q, k, (*k[:-1], ev), (*q[:-1], ev)
    return [taeda.randn(*shape, generator=g).to(dtype) for shape in shapes]


def attended(given, device, backend, dtype=None, mask=None, **options):
    """The result and the three gradients."""
    q, k, v, grad = (t.to(device, dtype or t.dtype) for t in given)
    mask = mask if mask is None else mask.to(device, mask.dtype if mask.dtype is taeda.bool else q.dtype)
    xs = [t.detach().requires_grad_() for t in (q, k, v)]
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(*xs, attn_mask=mask, **options)
    out.backward(grad)
    return [out.detach(), *(x.grad for x in xs)]


def close(there, here, dtype):
    for a, b in zip(there, here, strict=True):
        assert a.is_cuda and a.dtype is dtype
        a, b = a.cpu().double(), b.cpu().double()
        assert (a - b).abs().max() <= EXACT[dtype] * (1 + b.abs().max())


BOOLS = taeda.rand(1, 1, 40, 50, generator=taeda.Generator().manual_seed(1)) > 0.3
BOOLS[0, 0, 5] = False  # a row that sees nothing
NUMBERS = taeda.randn(2, 1, 40, 1, generator=taeda.Generator().manual_seed(1))


def longer(*values):
    return pytest.param(*values, marks=pytest.mark.sweep)


@pytest.mark.parametrize("q, k, ev, dtype, options", [
    longer((1, 2, 40, 16), (1, 2, 50, 16), 24, taeda.float32, {"scale": 0.3}),
    ((1, 2, 50, 16), (1, 2, 40, 16), 24, taeda.float32, {"is_causal": True}),
    longer((1, 1, 70, 64), (1, 1, 70, 64), 64, taeda.float32, {"is_causal": True}),
    ((2, 4, 33, 48), (2, 2, 50, 48), 48, taeda.float32, {"enable_gqa": True, "is_causal": True}),
    ((2, 1, 40, 16), (2, 1, 50, 16), 16, taeda.float32, {"mask": BOOLS}),
    longer((2, 1, 40, 16), (2, 1, 50, 16), 16, taeda.float32, {"mask": NUMBERS}),
    longer((1, 1, 40, 30), (1, 1, 50, 30), 30, taeda.float16, {}),
    ((1, 1, 40, 30), (1, 1, 50, 30), 31, taeda.bfloat16, {"mask": NUMBERS[0]}),
    ((1, 1, 20, 30), (1, 1, 34, 30), 30, taeda.float64, {}),
    longer((1, 1, 20, 128), (1, 1, 34, 128), 128, taeda.float32, {}),
    longer((1, 1, 20, 200), (1, 1, 34, 200), 256, taeda.float32, {}),
    ((2, 1, 64), (2, 40, 64), 64, taeda.float32, {}),  # one query
    ((1, 1, 20, 300), (1, 1, 9, 300), 8, taeda.float32, {}),  # no room for a row: by the definition
])  # fmt: skip
def test_values_and_gradients_are_those_of_the_definition(q, k, ev, dtype, options):
    given = operands(q, k, ev, dtype)
    backend = FUSED if max(q[-1], ev) <= 256 else DEFINITION
    there = attended(given, "cuda", backend, **options)
    close(there, attended(given, "cpu", DEFINITION, taeda.float64, **options), dtype)
    again = attended(given, "cuda", backend, **options)
    assert all(a.equal(b) for a, b in zip(there, again, strict=True))


def test_what_is_not_contiguous():
    x = taeda.randn(2, 20, 3, 2, 16, generator=taeda.Generator().manual_seed(2))

    def parts(device):
        y = x.to(device).requires_grad_()
        q, k, v = y.permute(2, 0, 3, 1, 4).unbind(0)
        with sdpa_kernel(FUSED):
            out = F.scaled_dot_product_attention(q, k, v)
        out.transpose(1, 2).flatten(2).square().sum().backward()
        turned = F.scaled_dot_product_attention(q.transpose(2, 3), k.transpose(2, 3), v.transpose(2, 3))
        return [out.detach(), y.grad, turned.detach()]

    close(parts("cuda"), parts("cpu"), taeda.float32)


# ---- dropout ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, options", [longer(taeda.float32, {}), (taeda.float16, {"is_causal": True})])
def test_weights_that_are_dropped_are_those_of_the_definition(dtype, options):
    found = []
    for backend in (FUSED, DEFINITION):
        taeda.manual_seed(5)
        found.append(
            attended(operands((1, 2, 40, 16), (1, 2, 51, 16), 16, dtype), "cuda", backend, dropout_p=0.4, **options)
        )
    close(found[0], found[1], dtype)
    assert taeda.cuda.default_generators[0].get_offset() == 4


def test_second_derivatives_drop_the_same_weights():
    found = []
    for backend in (FUSED, DEFINITION):
        taeda.manual_seed(5)
        xs = [t.cuda().requires_grad_() for t in operands((1, 1, 6, 4), (1, 1, 5, 4), 4)[:3]]
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(*xs, dropout_p=0.4)
        first = taeda.autograd.grad(out.square().sum(), xs, create_graph=True)
        found.append(taeda.autograd.grad(sum(g.square().sum() for g in first), xs))
    close(found[0], found[1], taeda.float32)


def test_launches_of_a_graph_drop_other_weights_and_their_gradients_the_same():
    q, k, v, grad = (t.cuda() for t in operands((1, 2, 9, 8), (1, 2, 11, 8), 8))
    v.requires_grad_()

    def step():
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
        return out, taeda.autograd.grad(out, v, grad)[0]

    with sdpa_kernel(FUSED):
        step()
        graph = taeda.cuda.CUDAGraph()
        with taeda.cuda.graph(graph):
            out, dv = step()
    seen = []
    for _ in range(2):
        graph.replay()
        taeda.testing.assert_close((out * grad).sum(), (dv * v).sum())  # both are linear in the same weights
        seen.append(out.detach().clone())
    assert not seen[0].equal(seen[1])


# ---- cost ------------------------------------------------------------------------------------------------------------


def counted(run):
    driver().check("count")
    driver().counters.clear()
    try:
        run()
        taeda.cuda.synchronize()
    finally:
        driver().check("fast")
    return {name.rpartition("_")[0]: c for name, c in driver().counters.items()}


@pytest.mark.parametrize("dtype", [taeda.float32, pytest.param(taeda.float16, marks=pytest.mark.sweep)])
def test_scores_are_never_in_memory(dtype):
    q, k, v, grad = (t.cuda() for t in operands((1, 1, 64, 64), (1, 1, 64, 64), 64, dtype))
    xs = [t.requires_grad_() for t in (q, k, v)]
    with sdpa_kernel(FUSED):
        made = []
        found = counted(lambda: made.append(F.scaled_dot_product_attention(*xs)))
    assert set(found) == {"forward"} and found["forward"].launches == 1
    found |= counted(lambda: taeda.autograd.grad(made[0], xs, grad))
    assert set(found) == {"forward", "query_gradient", "key_gradients"}
    sums, means = 64 * 2 * 4, 64 * 4
    least = {
        # one tile of queries: each operand once
        "forward": (3 * q.nbytes, q.nbytes + sums),
        # queries, output and its gradient; keys and values for each of two tiles
        "query_gradient": (3 * q.nbytes + 4 * q.nbytes, q.nbytes + means),
        # keys and values; for each of two tiles gradients of the output, and queries twice
        "key_gradients": (2 * q.nbytes + 4 * q.nbytes + 2 * q.nbytes, 2 * q.nbytes),
    }
    for name, counters in found.items():
        load, store = counters.of("global", "load"), counters.of("global", "store")
        assert counters.of("local", "load").accesses == counters.of("local", "store").accesses == 0
        assert counters.of("shared", "load").conflicts == counters.of("shared", "store").conflicts == 0
        assert load.used > 0.9 and store.used > 0.85
        assert load.bytes <= 1.1 * least[name][0] and store.bytes <= 1.1 * least[name][1]


@pytest.mark.sweep
def test_tiles_are_without_races():
    given = operands((1, 2, 40, 40), (1, 1, 50, 40), 24)
    want = attended(given, "cuda", FUSED, enable_gqa=True, is_causal=True)
    driver().check("full", order=3)
    try:
        found = attended(given, "cuda", FUSED, enable_gqa=True, is_causal=True)
        taeda.cuda.synchronize()
        assert not driver().faults
    finally:
        driver().check("fast")
    assert all(a.equal(b) for a, b in zip(found, want, strict=True))
