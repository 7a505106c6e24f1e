"""Vector addition: each program adds one tile of 4096 elements. Loads and stores past the end are masked."""

import taeda
from taeda import kernel


@kernel.grid(name="examples::add", out=lambda x: x)
def add(x, y, out, block=4096):
    i = kernel.tiles(out.shape[0], block)
    out[i] = x[i] + y[i]


if __name__ == "__main__":
    x, y = taeda.rand(98432), taeda.rand(98432)
    print("largest difference:", (add(x, y) - (x + y)).abs().max().item())
