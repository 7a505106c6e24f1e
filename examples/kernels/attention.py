"""Attention without the matrix of weights (Dao et al., FlashAttention, 2022): sums are rescaled when the maximum grows.

Scores of a tile are in the cache alone.
"""

import taeda
from taeda import kernel


@kernel.grid(name="examples::attention", out=lambda q: q)
def attention(q, k, v, scale: float, out, causal=False, bm=64, bn=64):
    batch, head, i = kernel.tiles(q.shape[:3], (1, 1, bm))
    n, e = k.shape[2], kernel.whole(q.shape[3])
    top, total = kernel.full(bm, float("-inf")), kernel.zeros(bm)
    acc, query = kernel.zeros((bm, e.shape[0])), q[batch, head, i, e] * scale
    for j in kernel.range(0, kernel.minimum(n, kernel.max(i) + 1) if causal else n, bn):
        j = j + kernel.arange(bn)
        s = kernel.dot(query, k[batch, head, j, e].T)
        seen = (j[None, :] <= i[:, None]) & (j < n) if causal else j < n
        s = kernel.where(seen, s, float("-inf"))
        new = kernel.maximum(top, kernel.max(s, 1))
        p, shrink = kernel.exp(s - new[:, None]), kernel.exp(top - new)
        total = total * shrink + kernel.sum(p, 1)
        acc = acc * shrink[:, None] + kernel.dot(p, v[batch, head, j, e])
        top = new
    out[batch, head, i, e] = acc / total[:, None]


if __name__ == "__main__":
    q, k, v = (taeda.randn(2, 3, 200, 64) for _ in range(3))
    for causal in (False, True):
        want = taeda.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        print("largest difference:", (attention(q, k, v, 64**-0.5, causal) - want).abs().max().item())
