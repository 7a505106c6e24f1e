"""Ring attention: the numbers of one process, forward and backward."""

import pytest

import taeda
from taeda.distributed.context_parallel import _block, context_parallel, ring_attention

from .launch import outputs

RING = """
import math
import torch_like as F
from taeda.distributed.context_parallel import (
    context_parallel, context_parallel_shard, context_parallel_unshard, ring_attention)
size = dist.get_world_size()
generator = taeda.Generator().manual_seed(0)
for dtype, kv_heads, causal, balanced in (
    (taeda.float32, 4, True, True), (taeda.float32, 4, False, True), (taeda.float64, 2, True, True),
    (taeda.float64, 4, True, False), (taeda.bfloat16, 2, True, True), (taeda.float32, 1, False, False)):
    shapes = (2, 4, 24, 8), (2, kv_heads, 24, 8), (2, kv_heads, 24, 5)
    whole = [taeda.randn(s, generator=generator).to(dtype).requires_grad_() for s in shapes]
    weight = taeda.randn((2, 4, 24, 5), generator=generator).to(dtype)
    expected = F.scaled_dot_product_attention(*whole, is_causal=causal, scale=0.7, enable_gqa=True)
    (expected * weight).sum().backward()
    def cut(x):
        return context_parallel_shard(None, [x], [2])[0] if balanced else x.chunk(size, 2)[rank]
    parts = [cut(x.detach()).requires_grad_() for x in whole]
    out = ring_attention(*parts, is_causal=causal, scale=0.7, enable_gqa=True, load_balance=balanced)
    (out * cut(weight)).sum().backward()
    tolerance = {taeda.float32: 2e-6, taeda.float64: 1e-13, taeda.bfloat16: 4e-2}[dtype]
    assert out.dtype is dtype and out.shape == (2, 4, 24 // size, 5)
    for name, a, b in zip("oqkv", [out] + [p.grad for p in parts], [expected] + [x.grad for x in whole]):
        a, b = a.double(), cut(b.detach()).double()
        assert (a - b).abs().max() <= tolerance * max(1, b.abs().max()), (name, dtype, causal, (a - b).abs().max())
"""

MODEL = """
mesh = dist.init_device_mesh("cpu", (size,))
taeda.manual_seed(0)
class Model(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.head = taeda.nn.Embedding(11, 8), taeda.nn.Linear(8, 24), taeda.nn.Linear(8, 11)
    def forward(self, ids, places):
        h = self.embed(ids) + places
        q, k, v = self.qkv(h).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return self.head(h + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
model = Model()
ids, target, places = taeda.randint(11, (2, 24)), taeda.randint(11, (2, 24)), taeda.randn(24, 8)
def loss_of():
    return F.cross_entropy(model(ids, places).flatten(0, 1), target.flatten(), reduction="sum") / 48
whole = loss_of(); whole.backward()
expected = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
before = ids.clone()
with context_parallel(mesh, buffers=[ids, target, places], buffer_seq_dims=[1, 1, 0], no_restore_buffers={target}):
    assert ids.shape == (2, 24 // size) and places.shape == (24 // size, 8)
    loss = loss_of()
    loss.backward()
    logits, = context_parallel_unshard(mesh, [model(ids, places)], [1])
    try:
        F.scaled_dot_product_attention(*[taeda.ones(1, 1, 2, 2)] * 3, attn_mask=taeda.ones(2, 2))
    except NotImplementedError as error:
        assert "no attn_mask" in str(error)
    else:
        raise AssertionError
assert ids.equal(before) and target.shape == (2, 24 // size)
assert taeda.allclose(logits, model(ids, places), atol=1e-5)
total = loss.detach().clone(); dist.all_reduce(total)
assert taeda.allclose(total, whole.detach())
for p, g in zip(model.parameters(), expected):
    dist.all_reduce(p.grad)
    assert taeda.allclose(p.grad, g, atol=1e-6)
"""


@pytest.mark.parametrize("size", [2, 3])
def test_parts_in_a_ring_are_the_whole(size):
    outputs((RING + MODEL).replace("import torch_like as F", "import taeda.nn.functional as F"), size)


@pytest.mark.parametrize("balanced", [True, False])
def test_blocks_cover_what_is_seen_once(balanced):
    for size in (1, 2, 3, 5):
        places = [
            [r * 2, r * 2 + 1] if not balanced else [r, 2 * size - 1 - r] for r in range(size)
        ]  # parts of 2 n, each of one position
        work = []
        for rank in range(size):
            seen = set()
            for source in range(size):
                block = _block(rank, source, True, balanced, 1)
                if block is not None:
                    rows, columns, causal = block
                    pairs = {(q, k) for q in places[rank][rows] for k in places[source][columns]}
                    pairs = {(q, k) for q, k in pairs if not causal or k <= q}
                    assert not pairs & seen
                    seen |= pairs
            assert seen == {(q, k) for q in places[rank] for k in range(q + 1)}
            work.append(len(seen))
        assert not balanced or len(set(work)) == 1


def test_what_does_not_fit_is_refused():
    q = taeda.ones(1, 2, 4, 4)
    with pytest.raises(ValueError, match="one floating dtype"):
        ring_attention(q, q.double(), q)
    with pytest.raises(ValueError, match="do not go together"):
        ring_attention(q, q[:, :1], q[:, :1])
    with pytest.raises(ValueError, match="an even number"):
        ring_attention(q[:, :, 1:], q[:, :, 1:], q[:, :, 1:], is_causal=True)
    with pytest.raises(ValueError, match="same number"), context_parallel(None, buffers=[q], buffer_seq_dims=[]):
        pass
