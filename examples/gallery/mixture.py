"""A mixture of experts splits a function among small networks, each called for its part only (Shazeer et al. 2017).

    python examples/gallery/mixture.py [--short] [--picture mixture.png]

Shows: a gate that chooses one expert for each input, dispatch by index, and a loss that keeps the experts busy.
Prints: the error beside that of one network that costs as much per input, and the share of inputs of each expert.
Time: 10 s of one processor, 4 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

EXPERTS = 8


def target(x: Tensor) -> Tensor:
    """Another wave in each quarter of the plane."""
    a, b = x.unbind(1)
    waves = taeda.stack([taeda.sin(4 * a), taeda.cos(4 * b), taeda.sin(3 * (a + b)), a * b * 2])
    quarter = (a > 0).long() + 2 * (b > 0).long()
    return waves.gather(0, quarter[None])[0]


def network(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


class Mixture(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, EXPERTS))
        self.experts = nn.ModuleList(network(width) for _ in range(EXPERTS))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values (n), which expert gave each, and how uneven the load is: 1 if even, EXPERTS if one does all."""
        scores = self.gate(x)
        if self.training:
            scores = scores + 0.3 * taeda.randn_like(scores)  # so that every expert is tried
        share, chosen = scores.softmax(1).max(1)
        out = taeda.zeros(len(x))
        for i, expert in enumerate(self.experts):
            mine = (chosen == i).nonzero()[:, 0]
            if len(mine):
                out = out.index_add(0, mine, expert(x[mine])[:, 0])
        out = out * share  # the gate learns through this factor: a choice alone has no gradient
        load = taeda.bincount(chosen, minlength=EXPERTS) / len(x)
        return out, chosen, EXPERTS * (load * scores.softmax(1).mean(0)).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="mixture.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    mixture, single = Mixture(24), network(24)
    steps = 400 if args.short else 2500
    optimizers = [taeda.optim.Adam(m.parameters(), lr=2e-2) for m in (mixture, single)]
    schedules = [taeda.optim.lr_scheduler.CosineAnnealingLR(o, steps) for o in optimizers]
    for step in range(1, steps + 1):
        x = 4 * taeda.rand(256, 2) - 2
        y = target(x)
        out, _, uneven = mixture(x)
        loss = F.mse_loss(out, y) + 0.01 * uneven
        other = F.mse_loss(single(x)[:, 0], y)
        for optimizer, schedule, value in zip(optimizers, schedules, (loss, other), strict=True):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: mixture {loss.item():.4f}, single {other.item():.4f}, uneven {uneven.item():.2f}")
    mixture.eval()
    grid = taeda.linspace(-2, 2, 150)
    x = taeda.stack(taeda.meshgrid(grid, grid, indexing="xy"), 2).reshape(-1, 2)
    with taeda.no_grad():
        out, chosen, _ = mixture(x)
        alone = single(x)[:, 0]
    error, other = F.mse_loss(out, target(x)).item(), F.mse_loss(alone, target(x)).item()
    load = taeda.bincount(chosen, minlength=EXPERTS) / len(x)
    print("share of each expert:", *(f"{share:.0%}" for share in load.tolist()))
    fig, axes = plt.subplots(1, 4, figsize=(15, 4))
    pictures = {"target": target(x), "mixture": out, "one network": alone, "which expert": chosen}
    for ax, (title, values) in zip(axes, pictures.items(), strict=True):
        kind = {"cmap": "tab10", "interpolation": "nearest"} if title == "which expert" else {}
        ax.imshow(values.reshape(150, 150).numpy(), origin="lower", extent=(-2, 2, -2, 2), **kind)
        ax.set_title(title)
    fig.savefig(args.picture, dpi=120)
    print(f"result: mixture {error:.5f} single {other:.5f} busiest {load.max().item():.3f}")


if __name__ == "__main__":
    main()
