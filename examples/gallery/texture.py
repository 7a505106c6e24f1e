"""A texture is made that looks like another, by a convolution with random weights (Ustyuzhaninov et al. 2018).

    python examples/gallery/texture.py [--short] [--picture texture.png]

Shows: the pixels are what is optimised (by LBFGS), and the model stays as it is. The loss compares Gram matrices, as
style transfer does (Gatys, Ecker & Bethge 2015): which features occur together, wherever they are.
Prints: the loss, relative to that of the noise that it began with.
Time: 19 s of one processor, 4 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn


def bricks(size: int) -> Tensor:
    """A wall (3, size, size) in [0, 1]: rows of bricks of changing reds, with mortar between."""
    y, x = taeda.meshgrid(taeda.arange(size), taeda.arange(size), indexing="ij")
    row = y // 8
    column = (x + 8 * (row % 2)) // 16
    mortar = (y % 8 == 0) | ((x + 8 * (row % 2)) % 16 == 0)
    shade = taeda.rand(size, size)[row, column]
    colors = taeda.stack([0.5 + 0.3 * shade, 0.15 + 0.2 * shade, 0.1 + 0.1 * shade])
    return taeda.where(mortar, 0.8, colors)


class Features(nn.Module):
    """Random filters of several sizes on one layer; borders wrap around."""

    def __init__(self, filters: int):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(3, filters, k, padding=k // 2, padding_mode="circular") for k in (3, 7, 11)
        )
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> list[Tensor]:
        """A Gram matrix (filters, filters) for each size."""
        maps = [F.relu(conv(x[None] - 0.5))[0].flatten(1) for conv in self.convs]
        return [m @ m.T / m.shape[1] for m in maps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="texture.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    size, rounds = (32, 6) if args.short else (64, 40)
    wall = bricks(size)
    features = Features(16 if args.short else 48)
    wanted = features(wall)
    scale = [w.norm() for w in wanted]
    pixels = (0.5 + 0.1 * taeda.randn(3, size, size)).requires_grad_()
    noise = pixels.detach().clone()
    optimizer = taeda.optim.LBFGS([pixels], max_iter=10, history_size=20, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        grams = features(pixels)
        loss = sum(((g - w) / s).square().sum() for g, w, s in zip(grams, wanted, scale, strict=True))
        outside = (pixels - pixels.clamp(0, 1)).square().mean()
        (loss + 10 * outside).backward()
        return loss + 10 * outside

    first = closure().item()
    last = first
    for n in range(1, rounds + 1):
        optimizer.step(closure)
        last = closure().item()
        if n % max(rounds // 5, 1) == 0:
            print(f"round {n:3}: loss {last / first:.5f} of the noise's")
    fig, axes = plt.subplots(1, 3, figsize=(10, 4))
    for ax, picture, title in zip(axes, (wall, noise, pixels.detach()), ("given", "noise", "made"), strict=True):
        ax.imshow(picture.clamp(0, 1).permute(1, 2, 0).numpy())
        ax.set_title(title)
        ax.axis("off")
    fig.savefig(args.picture, dpi=120)
    print(f"result: ratio {last / first:.6f}")


if __name__ == "__main__":
    main()
