"""Digits sort themselves without labels: two views of a picture attract, others repel (SimCLR; Chen et al. 2020).

    python examples/gallery/contrastive.py [--short] [--picture contrastive.png]

Shows: augmentation by `grid_sample`, the contrastive loss as cross entropy, and a probe on what was learned.
Prints: accuracy of nearest neighbours by ten labelled pictures of each digit, by the pixels and by what was learned.
Time: 22 s of one processor, 8 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn


def view(x: Tensor) -> Tensor:
    """Pictures (n, 1, 8, 8), each turned, scaled, sheared and shifted a little, with noise and other contrast."""
    n = len(x)
    theta = taeda.eye(2, 3).repeat(n, 1, 1) + taeda.tensor([0.18, 0.18, 0.12]) * taeda.randn(n, 2, 3)
    x = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
    return x * (0.7 + 0.6 * taeda.rand(n, 1, 1, 1)) + 0.1 * taeda.randn(n, 1, 8, 8)


class Encoder(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.Flatten(),
            nn.Linear(2 * width * 16, 64),
        )  # fmt: skip
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))  # for the loss only: what lies before it is kept

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(self.head(self.body(x)), dim=1)


def contrastive_loss(a: Tensor, b: Tensor, temperature: float = 0.2) -> Tensor:
    """Each view must find its partner among all others of the batch: cross entropy over similarities."""
    both = taeda.cat([a, b])
    scores = both @ both.T / temperature
    scores = scores.masked_fill(taeda.eye(len(both), dtype=taeda.bool), -1e9)
    partner = taeda.arange(len(both)).roll(len(a))
    return F.cross_entropy(scores, partner)


def neighbours(features: Tensor, labels: Tensor, known: Tensor, others: Tensor) -> float:
    """The share of ``others`` whose nearest picture among ``known`` shows the same digit."""
    f = F.normalize(features - features.mean(0), dim=1)
    nearest = known[(f[others] @ f[known].T).argmax(1)]
    return (labels[nearest] == labels[others]).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="contrastive.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    digits = load_digits()
    pictures = taeda.from_numpy(digits.images).float()[:, None] / 16
    labels = taeda.from_numpy(digits.target)
    known = taeda.cat([(labels == d).nonzero()[:10, 0] for d in range(10)])
    others = taeda.ones(len(labels), dtype=taeda.bool).index_fill(0, known, False).nonzero()[:, 0]
    model = Encoder()
    steps = 60 if args.short else 600
    optimizer = taeda.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, steps + 1):
        x = pictures[taeda.randint(len(pictures), (128,))]
        loss = contrastive_loss(model(view(x)), model(view(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: loss {loss.item():.3f}")
    model.eval()
    with taeda.no_grad():
        learned = model.body(pictures)
    by_pixels = neighbours(pictures.flatten(1), labels, known, others)
    by_features = neighbours(learned, labels, known, others)
    print(f"nearest neighbours: {by_pixels:.1%} by pixels, {by_features:.1%} by features")
    fig, axes = plt.subplots(1, 2, figsize=(11, 5))
    for ax, f, title in ((axes[0], pictures.flatten(1), "pixels"), (axes[1], F.normalize(learned, dim=1), "features")):
        _, _, directions = taeda.linalg.svd(f - f.mean(0), full_matrices=False)
        places = (f - f.mean(0)) @ directions[:2].T
        ax.scatter(*places.T.numpy(), c=labels.numpy(), s=5, cmap="tab10")
        ax.set_title(f"{title}: two main directions, colour is the digit")
    fig.savefig(args.picture, dpi=120)
    print(f"result: pixels {by_pixels:.3f} features {by_features:.3f} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
