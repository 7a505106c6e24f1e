"""A U-Net finds discs and squares in noise (Ronneberger, Fischer & Brox 2015).

    python examples/gallery/unet.py [--short] [--picture unet.png]

Shows: convolutions that go down in size and up again, with shortcuts between equal sizes; a class for every pixel.
Prints: the loss, and the overlap (intersection over union) of what is found with what was drawn, for each class.
Time: 16 s of one processor, 6 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

SIZE, CLASSES = 32, 3  # background, disc, square


def scenes(n: int) -> tuple[Tensor, Tensor]:
    """``n`` noisy pictures (n, 1, SIZE, SIZE) with a disc and a square of random grays, and the class of each pixel."""
    y, x = taeda.meshgrid(taeda.arange(SIZE), taeda.arange(SIZE), indexing="ij")
    labels = taeda.zeros(n, SIZE, SIZE, dtype=taeda.int64)
    pictures = 0.3 * taeda.randn(n, SIZE, SIZE)
    for kind in (1, 2):
        radius = 3 + 4 * taeda.rand(n, 1, 1)
        dx, dy = ((grid - (6 + (SIZE - 12) * taeda.rand(n, 1, 1))).abs() for grid in (x, y))
        inside = (dx**2 + dy**2).sqrt() < radius if kind == 1 else taeda.maximum(dx, dy) < radius
        gray = 0.5 + taeda.rand(n, 1, 1)
        pictures = taeda.where(inside, gray + 0.3 * taeda.randn(n, SIZE, SIZE), pictures)
        labels = taeda.where(inside, kind, labels)
    return pictures[:, None], labels


def block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.down1, self.down2, self.bottom = block(1, width), block(width, 2 * width), block(2 * width, 4 * width)
        self.widen2, self.widen1 = (
            nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
            nn.ConvTranspose2d(2 * width, width, 2, 2),
        )
        self.up2, self.up1 = block(4 * width, 2 * width), block(2 * width, width)
        self.out = nn.Conv2d(width, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = self.down1(x)
        middle = self.down2(F.max_pool2d(fine, 2))
        coarse = self.bottom(F.max_pool2d(middle, 2))
        middle = self.up2(taeda.cat([self.widen2(coarse), middle], 1))
        return self.out(self.up1(taeda.cat([self.widen1(middle), fine], 1)))


def overlap(found: Tensor, labels: Tensor, kind: int) -> float:
    """Pixels where both say ``kind``, relative to those where one does."""
    a, b = found == kind, labels == kind
    return ((a & b).sum() / (a | b).sum()).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="unet.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    model = UNet()
    steps = 100 if args.short else 400
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = taeda.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for step in range(1, steps + 1):
        x, labels = scenes(16)
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: loss {loss.item():.3f}")
    model.eval()
    x, labels = scenes(64)
    with taeda.no_grad():
        found = model(x).argmax(1)
    disc, square = overlap(found, labels, 1), overlap(found, labels, 2)
    fig, axes = plt.subplots(3, 6, figsize=(9, 5))
    for row, (pictures, name) in zip(axes, ((x[:, 0], "seen"), (labels, "drawn"), (found, "found")), strict=True):
        for ax, picture in zip(row, pictures, strict=False):
            ax.imshow(picture.numpy(), cmap="gray" if name == "seen" else "viridis")
            ax.set_xticks([])
            ax.set_yticks([])
        row[0].set_ylabel(name)
    fig.savefig(args.picture, dpi=120)
    print(f"result: disc {disc:.3f} square {square:.3f}")


if __name__ == "__main__":
    main()
