"""A product with an epilogue: ``gelu(a @ b + bias)`` in one kernel. The sizes of tiles are chosen by measurement."""

import taeda
from taeda import kernel

CHOICES = [{"bm": bm, "bn": bn, "bk": bk} for bm in (32, 64, 128) for bn in (64, 128) for bk in (64, 128)]


@kernel.tune(CHOICES)
@kernel.grid(name="examples::linear_gelu", out=lambda a, b: (a.shape[0], b.shape[1]))
def linear_gelu(a, b, bias, out, bm=64, bn=64, bk=64):
    i, j = kernel.tiles(out, (bm, bn))
    acc = kernel.zeros((bm, bn))
    for k in kernel.range(0, a.shape[1], bk):
        k = k + kernel.arange(bk)
        acc += kernel.dot(a[i, k], b[k, j])
    x = acc + bias[j]
    out[i, j] = 0.5 * x * (1 + kernel.erf(x * 0.5**0.5))


if __name__ == "__main__":
    a, b, bias = taeda.randn(300, 200), taeda.randn(200, 500), taeda.randn(500)
    want = taeda.nn.functional.gelu(a @ b + bias)
    print("largest difference:", (linear_gelu(a, b, bias) - want).abs().max().item())
