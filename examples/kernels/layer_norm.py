"""Layer norm with its gradient. The gradients of weight and bias are summed over blocks of rows, then over blocks."""

import taeda
from taeda import kernel

BLOCKS = 64


@kernel.grid(
    name="examples::layer_norm",
    out={"out": lambda x: x, "mean": lambda x: (x.shape[0],), "scale": lambda x: (x.shape[0],)},
)
def forward(x, weight, bias, out, mean, scale, eps=1e-5):
    row, j = kernel.tiles(x.shape[0], 1), kernel.whole(x.shape[1])
    n = x.shape[1]
    v = x[row, j]
    m = kernel.sum(v) / n
    d = kernel.where(j < n, v - m, 0.0)
    r = kernel.rsqrt(kernel.sum(d * d) / n + eps)
    out[row, j] = d * r * weight[j] + bias[j]
    mean[row], scale[row] = m, r


@kernel.grid(
    name="examples::layer_norm_backward",
    out={"gx": lambda x: x, "gw": lambda x: (BLOCKS, x.shape[1]), "gb": lambda x: (BLOCKS, x.shape[1])},
)
def backward(g, x, weight, mean, scale, gx, gw, gb):
    block, j = kernel.tiles(gw.shape[0], 1), kernel.whole(x.shape[1])
    n, rows = x.shape[1], kernel.cdiv(x.shape[0], BLOCKS)
    w = weight[j]
    sum_w, sum_b = kernel.zeros(j.shape, x.dtype), kernel.zeros(j.shape, x.dtype)
    for row in kernel.range(block * rows, kernel.minimum((block + 1) * rows, x.shape[0])):
        gj, h = g[row, j], (x[row, j] - mean[row]) * scale[row]
        h = kernel.where(j < n, h, 0.0)
        wg = w * gj
        gx[row, j] = (wg - kernel.sum(wg) / n - h * (kernel.sum(wg * h) / n)) * scale[row]
        sum_w += gj * h
        sum_b += gj
    gw[block, j], gb[block, j] = sum_w, sum_b


def setup_context(ctx, inputs, output):
    x, weight = inputs[:2]
    ctx.save_for_backward(x, weight, *output[1:])


def gradient(ctx, g, g_mean, g_scale):
    gx, gw, gb = backward(g, *ctx.saved_tensors)
    return gx, gw.sum(0), gb.sum(0), None


forward.register_autograd(gradient, setup_context=setup_context)


def layer_norm(x, weight, bias, eps=1e-5):
    return forward(x, weight, bias, eps)[0]


if __name__ == "__main__":
    x, weight, bias = taeda.randn(1151, 768, requires_grad=True), taeda.rand(768, requires_grad=True), taeda.randn(768)
    g = taeda.randn(1151, 768)
    own = taeda.autograd.grad(layer_norm(x, weight, bias), (x, weight), g)
    want = taeda.autograd.grad(taeda.nn.functional.layer_norm(x, (768,), weight, bias), (x, weight), g)
    print("largest difference:", max((a - b).abs().max().item() for a, b in zip(own, want, strict=True)))
