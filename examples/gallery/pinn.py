"""A network solves the heat equation without data: its loss is the equation (Raissi, Perdikaris & Karniadakis 2019).

    python examples/gallery/pinn.py [--short] [--picture pinn.png]

Shows: derivatives of a model by its inputs inside a loss, first and second, by `autograd.grad` with `create_graph`.
Prints: the loss, and the error relative to the exact solution.
Time: 10 s of one processor, 5 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
from taeda import Tensor, nn

DIFFUSIVITY = 0.1


class Field(nn.Module):
    """``u(x, t)`` on [0, 1] x [0, 1]. The form makes it 0 at both ends, and ``sin(pi x)`` at time 0."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        start = taeda.sin(math.pi * x) + 0.5 * taeda.sin(2 * math.pi * x)
        return start + t * x * (1 - x) * self.net(taeda.cat([x, t], 1))


def exact(x: Tensor, t: Tensor) -> Tensor:
    rate = DIFFUSIVITY * math.pi**2
    slow = taeda.exp(-rate * t) * taeda.sin(math.pi * x)
    return slow + 0.5 * taeda.exp(-4 * rate * t) * taeda.sin(2 * math.pi * x)


def derivative(y: Tensor, x: Tensor) -> Tensor:
    """``dy/dx`` at each point, as a tensor that can be differentiated again."""
    return taeda.autograd.grad(y.sum(), x, create_graph=True)[0]


def residual(field: Field, x: Tensor, t: Tensor) -> Tensor:
    """``u_t - a u_xx``, which is 0 for a solution."""
    u = field(x, t)
    return derivative(u, t) - DIFFUSIVITY * derivative(derivative(u, x), x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="pinn.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    field = Field()
    steps = 500 if args.short else 3000
    optimizer = taeda.optim.Adam(field.parameters(), lr=1e-2)
    schedule = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        x, t = taeda.rand(256, 1, requires_grad=True), taeda.rand(256, 1, requires_grad=True)
        loss = (residual(field, x, t) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:5}: mean square of the residual {loss.item():.5f}")
    grid = taeda.linspace(0, 1, 101)
    x, t = (g.reshape(-1, 1) for g in taeda.meshgrid(grid, grid, indexing="ij"))
    with taeda.no_grad():
        u = field(x, t)
    error = (u - exact(x, t)).norm() / exact(x, t).norm()
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    axes[0].imshow(u.reshape(101, 101).numpy(), origin="lower", extent=(0, 1, 0, 1))
    axes[0].set(title="u(x, t) of the network", xlabel="t", ylabel="x")
    for time in (0, 20, 50, 100):
        axes[1].plot(grid.numpy(), u.reshape(101, 101)[:, time].numpy(), label=f"t = {time / 100}")
        axes[1].plot(grid.numpy(), exact(grid, grid[time]).numpy(), "k:", lw=1)
    axes[1].legend(title="dotted: exact")
    fig.savefig(args.picture, dpi=120)
    print(f"result: error {error.item():.5f}")


if __name__ == "__main__":
    main()
