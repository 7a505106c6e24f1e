"""Dropout with a seed: which elements stay follows from the seed and the place, so no mask is kept for the gradient."""

import taeda
from taeda import kernel


@kernel.grid(name="examples::dropout", out=lambda x: x)
def dropout(x, p: float, seed: int, out, block=4096):
    i = kernel.tiles(out.shape[0], block)
    out[i] = kernel.where(kernel.rand(seed, i) >= p, x[i] / (1 - p), 0.0)


dropout.register_autograd(
    lambda ctx, g: (dropout(g, *ctx.numbers), None, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "numbers", inputs[1:3]),
)

if __name__ == "__main__":
    x = taeda.ones(100_000, requires_grad=True)
    y = dropout(x, 0.3, 123)
    y.sum().backward()
    kept = y != 0
    print("kept:", kept.float().mean().item(), " the gradient agrees:", taeda.equal(x.grad != 0, kept))
