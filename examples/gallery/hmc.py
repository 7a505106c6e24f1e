"""Bayesian regression: a whole family of networks that fit the data, drawn by Hamiltonian Monte Carlo (Neal 2011).

    python examples/gallery/hmc.py [--short] [--picture hmc.png]

Shows: `vmap(grad_and_value(...))` runs all chains side by side, with the parameters as one vector per chain.
Prints: the share of proposals accepted, and how sure the networks are where there is data and where there is none.
Time: 22 s of one processor, 5 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
from taeda import Tensor
from taeda.func import grad_and_value, vmap

WIDTH, NOISE = 12, 0.2
SIZE = 3 * WIDTH + 1


def predict(w: Tensor, x: Tensor) -> Tensor:
    """The network with weights ``w`` (SIZE) at ``x`` (n): one hidden layer of tanh."""
    inner, bias, outer, last = w.split([WIDTH, WIDTH, WIDTH, 1])
    return taeda.tanh(x[:, None] * inner * 2 + bias) @ outer + last


def potential(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Minus the logarithm of the posterior density, but for a constant: normal prior, normal noise."""
    return 0.5 * (w**2).sum() + 0.5 * ((predict(w, x) - y) ** 2).sum() / NOISE**2


def sample(w: Tensor, x: Tensor, y: Tensor, rounds: int, step: float, leaps: int) -> tuple[Tensor, Tensor]:
    """Chains from ``w`` (chains, SIZE) on: all states (rounds, chains, SIZE), and which proposals were accepted."""
    slope_and_value = vmap(grad_and_value(lambda w: potential(w, x, y)))
    states, accepted = [], []
    slope, energy = slope_and_value(w)
    for _ in range(rounds):
        momentum = taeda.randn_like(w)
        start = energy + 0.5 * (momentum**2).sum(1)
        new, force = w, slope
        for _ in range(leaps):  # leapfrog: keeps the volume, and the energy nearly
            momentum = momentum - step / 2 * force
            new = new + step * momentum
            force, value = slope_and_value(new)
            momentum = momentum - step / 2 * force
        end = value + 0.5 * (momentum**2).sum(1)
        take = taeda.rand(len(w)) < taeda.exp((start - end).clamp(max=0))
        w = taeda.where(take[:, None], new, w)
        slope, energy = taeda.where(take[:, None], force, slope), taeda.where(take, value, energy)
        states.append(w)
        accepted.append(take)
    return taeda.stack(states), taeda.stack(accepted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="hmc.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    x = taeda.cat([taeda.linspace(-2, -0.7, 12), taeda.linspace(0.7, 2, 12)])  # nothing in the middle, or outside
    y = taeda.sin(2 * x) + NOISE * taeda.randn(len(x))
    chains, rounds = (16, 60) if args.short else (32, 600)
    w = taeda.randn(chains, SIZE)
    # A plain descent first: far from the data's weights the force is large, and leaps would be thrown away.
    slopes = vmap(grad_and_value(lambda w: potential(w, x, y)))
    for _ in range(300):
        slope, energy = slopes(w)
        w = w - 1e-3 * slope / (1 + slope.norm(dim=1, keepdim=True) / 50)
    print(f"energy after the descent {energy.mean().item():.1f}")
    states, accepted = sample(w, x, y, rounds, step=0.012, leaps=15)
    kept = states[rounds // 3 :: 4].flatten(0, 1)
    line = taeda.linspace(-3.5, 3.5, 141)
    curves = vmap(lambda w: predict(w, line))(kept)
    mean, spread = curves.mean(0), curves.std(0)
    near = vmap(lambda w: predict(w, x))(kept).std(0).mean().item()
    far = spread[line.abs() > 3].mean().item()
    rate = accepted.float().mean().item()
    fit = (vmap(lambda w: predict(w, x))(kept).mean(0) - y).square().mean().sqrt().item()
    print(f"accepted {rate:.0%}; spread {near:.3f} at the data, {far:.3f} beyond; error of the mean {fit:.3f}")
    fig, ax = plt.subplots(figsize=(8, 4))
    ax.plot(line.numpy(), curves[:: max(len(curves) // 30, 1)].T.numpy(), "C0", lw=0.4)
    ax.fill_between(line.numpy(), (mean - 2 * spread).numpy(), (mean + 2 * spread).numpy(), alpha=0.2)
    ax.plot(line.numpy(), mean.numpy(), "C1", label="mean")
    ax.scatter(x.numpy(), y.numpy(), c="k", s=12, zorder=3, label="data")
    ax.set_ylim(-math.pi, math.pi)
    ax.legend()
    fig.savefig(args.picture, dpi=120)
    print(f"result: accepted {rate:.3f} near {near:.4f} far {far:.4f} fit {fit:.4f}")


if __name__ == "__main__":
    main()
