"""A network learns the rules of Conway's Game of Life from pictures of one step, and then plays it.

    python examples/gallery/automaton.py [--short] [--picture automaton.png]

Shows: a convolution with circular padding as a local rule; a model applied to its own output, many times.
Prints: the share of cells that are right after one step and after twenty, on boards that it has not seen.
Time: 5 s of one processor, 4 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

SIZE = 24
AROUND = taeda.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])[None, None]


def life(board: Tensor) -> Tensor:
    """The next boards (n, 1, size, size) of zeros and ones; borders wrap around."""
    neighbours = F.conv2d(F.pad(board, (1, 1, 1, 1), mode="circular"), AROUND)
    return ((neighbours == 3) | ((neighbours == 2) & (board == 1))).float()


def boards(n: int) -> Tensor:
    """Random boards, from nearly empty to half full."""
    return (taeda.rand(n, 1, SIZE, SIZE) < 0.1 + 0.4 * taeda.rand(n, 1, 1, 1)).float()


def network(width: int = 16) -> nn.Module:
    """Each cell sees its 3 x 3 cells only. What it makes of them is the same everywhere."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, padding_mode="circular"), nn.ReLU(),
        nn.Conv2d(width, width, 1), nn.ReLU(), nn.Conv2d(width, 1, 1),
    )  # fmt: skip


@taeda.no_grad()
def play(model: nn.Module, board: Tensor, steps: int) -> list[Tensor]:
    states = [board]
    for _ in range(steps):
        states.append((model(states[-1]) > 0).float())
    return states


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="automaton.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    model = network()
    steps = 250 if args.short else 1000
    optimizer = taeda.optim.Adam(model.parameters(), lr=1e-2)
    schedule = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        board = boards(16)
        loss = F.binary_cross_entropy_with_logits(model(board), life(board))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: loss {loss.item():.5f}")
    start = boards(20)
    truth = [start]
    for _ in range(20):
        truth.append(life(truth[-1]))
    played = play(model, start, 20)
    once, later = ((played[n] == truth[n]).float().mean().item() for n in (1, 20))
    print(f"right after one step {once:.3%}, after twenty {later:.3%}")
    fig, axes = plt.subplots(2, 5, figsize=(12, 5))
    for row, states, name in ((axes[0], truth, "rules"), (axes[1], played, "network")):
        for ax, n in zip(row, (0, 1, 5, 10, 20), strict=True):
            ax.imshow(states[n][0, 0].numpy(), cmap="gray_r")
            ax.set_title(f"step {n}")
            ax.set_xticks([])
            ax.set_yticks([])
        row[0].set_ylabel(name)
    fig.savefig(args.picture, dpi=120)
    print(f"result: once {once:.4f} later {later:.4f}")


if __name__ == "__main__":
    main()
