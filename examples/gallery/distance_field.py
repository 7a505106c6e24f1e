"""A shape as a function: a network learns the distance to a star, and its zero line is the outline (Sitzmann 2020).

    python examples/gallery/distance_field.py [--short] [--picture distance_field.png]

Shows: layers of sines (SIREN), and a loss on the gradient by the input, which has length 1 for a distance.
Prints: the share of the plane whose inside and outside are right, and the mean error of the distance.
Time: 8 s of one processor, 4 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
from taeda import Tensor, nn


def star(points: int = 5) -> Tensor:
    """The corners (2 * points, 2) of a star, around 0."""
    angle = taeda.arange(2 * points) * (math.pi / points) + math.pi / 2
    radius = taeda.tensor([0.8, 0.35]).repeat(points)
    return radius[:, None] * taeda.stack([angle.cos(), angle.sin()], 1)


def distance(p: Tensor, corners: Tensor) -> Tensor:
    """Signed distance of ``p`` (n, 2) to the polygon: negative inside."""
    a, b = corners, corners.roll(-1, 0)
    edge, to = b - a, p[:, None] - a
    along = ((to * edge).sum(2) / (edge**2).sum(1)).clamp(0, 1)
    nearest = (to - along[..., None] * edge).norm(dim=2).min(1).values
    # A ray to the right crosses the outline an odd number of times from inside.
    above = (a[:, 1] > p[:, 1:]) != (b[:, 1] > p[:, 1:])
    left = p[:, :1] < a[:, 0] + (p[:, 1:] - a[:, 1]) * edge[:, 0] / edge[:, 1]
    return taeda.where((above & left).sum(1) % 2 == 1, -nearest, nearest)


class Sine(nn.Module):
    """A linear layer and a sine, with the weights that keep both in range (Sitzmann et al. 2020)."""

    def __init__(self, inputs: int, outputs: int, frequency: float, first: bool = False):
        super().__init__()
        self.frequency, self.linear = frequency, nn.Linear(inputs, outputs)
        bound = 1 / inputs if first else math.sqrt(6 / inputs) / frequency
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return taeda.sin(self.frequency * self.linear(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="distance_field.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    corners = star()
    model = nn.Sequential(Sine(2, 64, 10, first=True), Sine(64, 64, 10), Sine(64, 64, 10), nn.Linear(64, 1))
    steps = 200 if args.short else 1500
    optimizer = taeda.optim.Adam(model.parameters(), lr=1e-3)
    schedule = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        p = (2 * taeda.rand(512, 2) - 1).requires_grad_()
        out = model(p)[:, 0]
        (slope,) = taeda.autograd.grad(out.sum(), p, create_graph=True)
        error = (out - distance(p.detach(), corners)).abs().mean()
        loss = error + 0.02 * (slope.norm(dim=1) - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: mean error of the distance {error.item():.4f}")
    grid = taeda.linspace(-1, 1, 160)
    p = taeda.stack(taeda.meshgrid(grid, grid, indexing="xy"), 2).reshape(-1, 2)
    with taeda.no_grad():
        out, exact = model(p)[:, 0], distance(p, corners)
    right = ((out < 0) == (exact < 0)).float().mean().item()
    error = (out - exact).abs().mean().item()
    fig, axes = plt.subplots(1, 2, figsize=(10, 5))
    for ax, values, title in ((axes[0], exact, "distance"), (axes[1], out, "network")):
        picture = values.reshape(160, 160).numpy()
        ax.contourf(grid.numpy(), grid.numpy(), picture, 20, cmap="RdBu")
        ax.contour(grid.numpy(), grid.numpy(), picture, [0], colors="k")
        ax.set(title=title, aspect="equal")
    fig.savefig(args.picture, dpi=120)
    print(f"result: right {right:.4f} error {error:.4f}")


if __name__ == "__main__":
    main()
