"""A network learns to learn: sine curves from five points (MAML; Finn, Abbeel & Levine 2017).

    python examples/gallery/maml.py [--short] [--picture maml.png]

Shows: `func.grad` inside the function that `backward` differentiates, under `vmap` over tasks. A model's parameters are
arguments: `func.functional_call`.
Prints: the error on new curves before and after one step of adaptation, and of an untrained network after it.
Time: 26 s of one processor, 6 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn
from taeda.func import functional_call, grad, vmap

RATE = 0.02  # of the inner step


def tasks(n: int, points: int) -> tuple[Tensor, Tensor]:
    """``n`` sine curves of random amplitude and phase: x and y, (n, points, 1)."""
    amplitude, phase = 0.1 + 4.9 * taeda.rand(n, 1, 1), math.pi * taeda.rand(n, 1, 1)
    x = 10 * taeda.rand(n, points, 1) - 5
    return x, amplitude * taeda.sin(x + phase)


def network(width: int = 40) -> nn.Module:
    return nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def adapt(model: nn.Module, parameters: dict[str, Tensor], x: Tensor, y: Tensor, steps: int = 1) -> dict[str, Tensor]:
    """``parameters`` after steps of gradient descent on one task."""

    def loss(p: dict[str, Tensor]) -> Tensor:
        return F.mse_loss(functional_call(model, p, (x,)), y)

    for _ in range(steps):
        slopes = grad(loss)(parameters)
        parameters = {name: p - RATE * slopes[name] for name, p in parameters.items()}
    return parameters


def error_after(model: nn.Module, parameters: dict[str, Tensor], x: Tensor, y: Tensor, steps: int = 1) -> Tensor:
    """For each task the error on its last points, after adapting to its first five."""

    def one(x: Tensor, y: Tensor) -> Tensor:
        adapted = adapt(model, parameters, x[:5], y[:5], steps)
        return F.mse_loss(functional_call(model, adapted, (x[5:],)), y[5:])

    return vmap(one)(x, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="maml.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    model, untrained = network(), network()
    parameters = dict(model.named_parameters())
    optimizer = taeda.optim.Adam(model.parameters(), lr=2e-3)
    steps = 300 if args.short else 3000
    for step in range(1, steps + 1):
        loss = error_after(model, parameters, *tasks(16, 15)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 5) == 0:
            print(f"step {step:5}: error after adaptation {loss.item():.2f}")
    x, y = tasks(200, 25)
    before = error_after(model, parameters, x, y, steps=0).mean().item()
    after = error_after(model, parameters, x, y).mean().item()
    other = error_after(untrained, dict(untrained.named_parameters()), x, y).mean().item()
    line = taeda.linspace(-5, 5, 200)[:, None]
    fig, ax = plt.subplots(figsize=(7, 4))
    points = 5 * taeda.rand(5, 1)
    values = 3 * taeda.sin(points + 1)
    ax.plot(line.numpy(), (3 * taeda.sin(line + 1)).numpy(), "k:", label="the curve")
    for n in (0, 1, 10):
        adapted = adapt(model, parameters, points, values, n)
        ax.plot(line.numpy(), functional_call(model, adapted, (line,)).detach().numpy(), label=f"after {n} steps")
    ax.scatter(points.numpy(), values.numpy(), c="k", label="what it was shown")
    ax.legend()
    fig.savefig(args.picture, dpi=120)
    print(f"result: before {before:.2f} after {after:.2f} untrained {other:.2f}")


if __name__ == "__main__":
    main()
