"""Everyday calls on small inputs, at most half of PyTorch's time each: ``python bench/run.py --only everyday``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def inputs(T: Any) -> dict[str, Any]:
    """What the expressions name."""
    T.manual_seed(0)
    a, b = T.randn(8, 8), T.randn(8, 8)
    return {
        "T": T,
        "F": T.nn.functional,
        "a": a,
        "b": b,
        "c": a.abs() + 1,
        "m": a > 0,
        "w": T.randn(8, 8),
        "v": T.randn(100),
        "n": T.arange(100) % 8,
        "idx": T.tensor([3, 1, 7, 0]),
        "array": a.numpy().copy(),
        "images": T.randn(2, 3, 8, 8),
        "filters": T.randn(4, 3, 3, 3),
        "one": T.tensor(1.5),
        "g": T.randn(8, 8, requires_grad=True),
    }


CALLS = """
T.tensor([1.0, 2.0, 3.0]) | T.zeros(8, 8) | T.ones(8, 8) | T.full((8, 8), 2.0) | T.empty(8, 8) | T.arange(100)
T.linspace(0, 1, 100) | T.eye(8) | T.rand(8, 8) | T.randn(8, 8) | T.randint(0, 10, (8, 8)) | T.randperm(100)
T.zeros_like(a) | T.rand_like(a) | T.from_numpy(array) | T.as_tensor(array)
a.view(64) | a.reshape(4, 16) | a.T | a.permute(1, 0) | a.unsqueeze(0) | a.flatten() | a.expand(2, 8, 8)
a.t().contiguous() | a.clone() | a.detach() | a.double() | a.to(T.int64) | a[0] | a[:, 1:3] | a[m] | a[idx]
w.__setitem__(0, 1.0) | T.cat([a, b]) | T.stack([a, b]) | a.chunk(2) | a.split(2) | a.unbind() | a.repeat(2, 2)
a.roll(1, 0) | a.flip(0) | a.tril() | a.diag() | a.masked_fill(m, 0.0) | T.where(m, a, b) | v.gather(0, n)
a.index_select(0, idx)
a + b | a * 2.0 | a.exp() | a.clip(-1, 1) | a.clamp(min=0) | a.abs() | a.pow(2) | a.add(b, alpha=0.5)
w.add_(b, alpha=-1e-9) | w.addcmul_(a, b, value=1e-9) | w.addcdiv_(a, c, value=1e-9) | T.lerp(a, b, 0.1) | a.isnan()
a @ b | T.einsum("ij,jk->ik", a, b) | T.outer(v, v) | v.norm() | T.cosine_similarity(a, b) | T.cdist(a, b)
a.sum() | a.mean(1) | a.std() | a.max(1) | a.argmax(1) | a.cumsum(0) | m.any() | a.topk(2) | v.sort() | n.unique()
n.bincount() | T.allclose(a, b) | T.equal(a, b)
F.one_hot(n, 8) | F.relu(a) | F.gelu(a) | F.softmax(a, -1) | F.cross_entropy(a, n[:8]) | F.mse_loss(a, b)
F.dropout(a, 0.5) | F.linear(a, b) | F.layer_norm(a, (8,)) | F.embedding(n, a) | F.normalize(a) | F.pad(a, (1, 1))
F.conv2d(images, filters) | F.max_pool2d(images, 2) | F.interpolate(images, scale_factor=2)
one.item() | a.tolist() | a.numpy() | a.shape | float(one) | (g * a).sum().backward()
"""

EXPRESSIONS = [call.strip() for line in CALLS.splitlines() for call in line.split("|") if call.strip()]


def maker(expression: str) -> Callable[[Any], Callable[[], Any]]:
    """What makes the function that runs ``expression``."""

    def make(T: Any) -> Callable[[], Any]:
        return eval(f"lambda: {expression}", inputs(T))

    return make
