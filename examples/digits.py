"""Train a small convolutional network on scikit-learn's handwritten digits.

    pip install '.[demo]' && python examples/digits.py

1,797 pictures of 8 x 8 pixels come with scikit-learn; every fifth is held out. The last line is the accuracy on those.
"""

import argparse
import time

from sklearn.datasets import load_digits

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn
from taeda.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    """Two convolutions, one halving of the picture, two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.drop = nn.Dropout(0.25)
        self.hidden = nn.Linear(64 * 4 * 4, 128)
        self.out = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.hidden(self.drop(x.flatten(1))))
        return self.out(self.drop(x))


def load() -> tuple[TensorDataset, TensorDataset]:
    """The digits as (training, held-out): pictures in [0, 1], shape (n, 1, 8, 8), and labels."""
    digits = load_digits()
    pictures = taeda.from_numpy(digits.images).float()[:, None] / 16
    labels = taeda.from_numpy(digits.target).long()
    held_out = taeda.arange(len(labels)) % 5 == 4
    return TensorDataset(pictures[~held_out], labels[~held_out]), TensorDataset(pictures[held_out], labels[held_out])


def accuracy(model: Network, data: TensorDataset) -> float:
    """Share of ``data`` that ``model`` labels rightly."""
    pictures, labels = (t.to(model.out.weight.device) for t in data.tensors)
    model.eval()
    with taeda.no_grad():
        right = (model(pictures).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def fit(model: Network, train: TensorDataset, held_out: TensorDataset, epochs: int) -> None:
    """Train ``model`` and print a line an epoch."""
    optimizer, device = taeda.optim.AdamW(model.parameters(), lr=2e-3), model.out.weight.device
    for epoch in range(1, epochs + 1):
        total = 0.0
        for pictures, labels in DataLoader(train, batch_size=64, shuffle=True):
            loss = F.cross_entropy(model(pictures.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch:2}: loss {total / len(train):.4f}, held-out accuracy {accuracy(model, held_out):.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--device", default="cpu", help="where it runs: cpu, cuda")
    args = parser.parse_args()
    start = time.perf_counter()
    taeda.manual_seed(0)
    train, held_out = load()
    model = Network().to(args.device)
    fit(model, train, held_out, args.epochs)
    print(f"{time.perf_counter() - start:.1f} s")
    print(f"held-out accuracy: {accuracy(model, held_out):.2%}")


if __name__ == "__main__":
    main()
