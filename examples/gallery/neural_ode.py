"""A network is the right side of a differential equation, learned from one spiral (Chen et al. 2018).

    python examples/gallery/neural_ode.py [--short] [--picture neural_ode.png]

Shows: gradients through the steps of a Runge-Kutta solver, in a batch of pieces of one trajectory.
Prints: the loss, and the mean distance between the learned trajectory and the true one, from the start alone.
Time: 7 s of one processor, 5 s with --short (AVX-512; imports included).
"""

import argparse
from collections.abc import Callable

import matplotlib.pyplot as plt

import taeda
from taeda import Tensor, nn

TIMES, TICK = 200, 0.05
TURN = taeda.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def truth(x: Tensor) -> Tensor:
    """A spiral: ``dx/dt = A x**3``."""
    return x**3 @ TURN


def solve(f: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> Tensor:
    """The states from ``x`` on, (steps + 1, *x.shape), by the classical Runge-Kutta method of order 4."""
    states = [x]
    for _ in range(steps):
        a = f(x)
        b = f(x + TICK / 2 * a)
        c = f(x + TICK / 2 * b)
        d = f(x + TICK * c)
        x = x + TICK / 6 * (a + 2 * b + 2 * c + d)
        states.append(x)
    return taeda.stack(states)


class Field(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x**3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="neural_ode.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    whole = solve(truth, taeda.tensor([2.0, 0.0]), TIMES)
    field = Field()
    steps, piece = 250 if args.short else 1200, 10
    optimizer = taeda.optim.Adam(field.parameters(), lr=2e-2)
    schedule = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        start = taeda.randint(TIMES - piece, (32,))
        wanted = whole[start + taeda.arange(piece + 1)[:, None]]  # (piece + 1, 32, 2)
        loss = (solve(field, wanted[0], piece) - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: mean error over {piece} ticks {loss.item():.4f}")
    with taeda.no_grad():
        learned = solve(field, whole[0], TIMES)
        stupid = (whole - whole[0]).norm(dim=1).mean().item()
    apart = (learned - whole).norm(dim=1).mean().item()
    fig, axes = plt.subplots(1, 2, figsize=(10, 4))
    time = [TICK * i for i in range(TIMES + 1)]
    for axis, color in ((0, "C0"), (1, "C1")):
        axes[0].plot(time, whole[:, axis].numpy(), color, ls=":", label=f"x{axis}, true")
        axes[0].plot(time, learned[:, axis].numpy(), color, label=f"x{axis}, learned")
    axes[0].set_xlabel("time")
    axes[0].legend()
    grid = taeda.linspace(-2, 2, 20)
    x = taeda.stack(taeda.meshgrid(grid, grid, indexing="xy"), 2)
    with taeda.no_grad():
        arrows = field(x)
    axes[1].quiver(*x.unbind(2), *(arrows / (arrows.norm(dim=2, keepdim=True) + 1e-3)).unbind(2))
    axes[1].plot(*learned.T.numpy())
    fig.savefig(args.picture, dpi=120)
    print(f"result: apart {apart:.4f} standing {stupid:.4f}")


if __name__ == "__main__":
    main()
