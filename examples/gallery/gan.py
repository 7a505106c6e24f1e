"""A generative adversarial network learns eight clusters of points on a ring (Goodfellow et al. 2014).

    python examples/gallery/gan.py [--short] [--picture gan.png]

Shows: two models and two optimisers in one loop, and `detach`, which keeps the step of one out of the other.
Prints: how many of the eight clusters the generator reaches, and the share of its points that lie in one.
Time: 20 s of one processor, 6 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

MODES, RADIUS, SPREAD = 8, 2.0, 0.1


def centers() -> Tensor:
    angle = taeda.arange(MODES) * (2 * math.pi / MODES)
    return RADIUS * taeda.stack([angle.cos(), angle.sin()], 1)


def real_points(n: int) -> Tensor:
    return centers()[taeda.randint(MODES, (n,))] + SPREAD * taeda.randn(n, 2)


def network(inputs: int, outputs: int, width: int = 128) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


def quality(points: Tensor) -> tuple[int, float]:
    """Clusters that have at least one point in fifty, and the share of points within five spreads of a center."""
    distance, nearest = taeda.cdist(points, centers()).min(1)
    inside = distance < 5 * SPREAD
    counts = taeda.bincount(nearest[inside], minlength=MODES)
    return int((counts > len(points) / 50).sum()), inside.float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="gan.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    generator, critic = network(16, 2), network(2, 1)
    by_generator = taeda.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    by_critic = taeda.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
    steps = 500 if args.short else 3000
    for step in range(1, steps + 1):
        real, fake = real_points(256), generator(taeda.randn(256, 16))
        # The critic learns to score real points above fake ones: a smooth hinge on the difference (Jolicoeur-Martineau
        # 2018), which does not go flat when the critic is sure.
        loss = F.softplus(-(critic(real) - critic(fake.detach()))).mean()
        real.requires_grad_()
        (slope,) = taeda.autograd.grad(critic(real).sum(), real, create_graph=True)
        penalty = (slope**2).sum(1).mean()  # keeps the critic smooth where the data is (Mescheder et al. 2018)
        by_critic.zero_grad()
        (loss + 0.1 * penalty).backward()
        by_critic.step()
        generator_loss = F.softplus(-(critic(fake) - critic(real.detach()))).mean()
        by_generator.zero_grad()
        generator_loss.backward()
        by_generator.step()
        if step % (steps // 5) == 0:
            with taeda.no_grad():
                found, inside = quality(generator(taeda.randn(1000, 16)))
            print(f"step {step:5}: critic {loss.item():.2f}, {found} clusters, {inside:.0%} of points in one")
    with taeda.no_grad():
        points = generator(taeda.randn(2000, 16))
    found, inside = quality(points)
    real = real_points(2000)
    fig, ax = plt.subplots(figsize=(5, 5))
    ax.scatter(*real.T.numpy(), s=3, alpha=0.3, label="data")
    ax.scatter(*points.T.numpy(), s=3, alpha=0.5, label="generated")
    ax.set_aspect("equal")
    ax.legend()
    fig.savefig(args.picture, dpi=120)
    print(f"result: clusters {found} inside {inside:.3f}")


if __name__ == "__main__":
    main()
