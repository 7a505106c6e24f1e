"""A digit is changed so little that nobody minds, and the network reads another one (Goodfellow et al. 2015).

    python examples/gallery/adversarial.py [--short] [--picture adversarial.png]

Shows: the gradient by the picture instead of the weights, and training on attacked pictures, which helps.
Prints: accuracy on pictures as they are and on attacked ones, for a network trained as usual and for a hardened one.
Time: 23 s of one processor, 9 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

STRENGTH = 0.15  # the most that a pixel, in [0, 1], is changed


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def attack(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """``x`` (n, 1, 8, 8), each pixel changed by ``STRENGTH`` in the direction that makes the loss larger."""
    x = x.clone().requires_grad_()
    (slope,) = taeda.autograd.grad(F.cross_entropy(model(x), labels), x)
    return (x + STRENGTH * slope.sign()).clamp(0, 1).detach()


def train(x: Tensor, labels: Tensor, steps: int, hardened: bool) -> nn.Module:
    model = network()
    optimizer = taeda.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        pick = taeda.randint(len(x), (64,))
        batch, wanted = x[pick], labels[pick]
        if hardened:  # half of each batch as it is, half attacked with what the model is now
            batch = taeda.cat([batch[:32], attack(model, batch[32:], wanted[32:])])
        loss = F.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def accuracy(model: nn.Module, x: Tensor, labels: Tensor) -> float:
    with taeda.no_grad():
        return (model(x).argmax(1) == labels).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="adversarial.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    digits = load_digits()
    x = taeda.from_numpy(digits.images).float()[:, None] / 16
    labels = taeda.from_numpy(digits.target)
    held = taeda.arange(len(x)) % 5 == 0
    steps = 120 if args.short else 1500
    result = {}
    pictures = []
    for name in ("usual", "hardened"):
        model = train(x[~held], labels[~held], steps, name == "hardened")
        changed = attack(model, x[held], labels[held])
        result[name] = accuracy(model, x[held], labels[held]), accuracy(model, changed, labels[held])
        print(f"{name}: {result[name][0]:.1%} right, {result[name][1]:.1%} of attacked pictures")
        with taeda.no_grad():
            pictures.append((name, changed, model(changed).argmax(1)))
    fig, axes = plt.subplots(3, 8, figsize=(10, 4.5))
    for row, (name, images, read) in zip(axes, [("as it is", x[held], labels[held]), *pictures], strict=True):
        for ax, image, digit in zip(row, images, read.tolist(), strict=False):
            ax.imshow(image[0].numpy(), cmap="gray_r")
            ax.set_title(str(digit))
            ax.set_xticks([])
            ax.set_yticks([])
        row[0].set_ylabel(name)
    fig.savefig(args.picture, dpi=120)
    (clean, attacked), (_, hardened) = result["usual"], result["hardened"]
    print(f"result: clean {clean:.3f} attacked {attacked:.3f} hardened {hardened:.3f}")


if __name__ == "__main__":
    main()
