"""A variational autoencoder of scikit-learn's digits (Kingma & Welling 2013), with samples drawn as text.

pip install '.[demo]' && python examples/vae.py
"""

import argparse

from sklearn.datasets import load_digits

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

LATENT = 8


class VAE(nn.Module):
    """Encoder to the mean and log variance of a Gaussian over ``LATENT`` numbers, and decoder back to 64 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        z = mean + (0.5 * log_variance).exp() * taeda.randn_like(mean)
        return self.decoder(z), mean, log_variance


def negative_elbo(x: Tensor, logits: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Reconstruction error and divergence from the standard normal, in nats a picture."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(x)


def draw(picture: Tensor) -> list[str]:
    """An 8 x 8 picture as eight lines of text."""
    return ["".join(" .:-=+*#%@"[min(9, int(10 * v))] * 2 for v in row) for row in picture.view(8, 8).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--device", default="cpu", help="where it runs: cpu, cuda")
    args = parser.parse_args()
    taeda.manual_seed(0)
    pictures = taeda.from_numpy(load_digits().data).float().to(args.device) / 16
    model = VAE().to(args.device)
    optimizer = taeda.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for index in taeda.randperm(len(pictures)).split(64):
            x = pictures[index]
            loss = negative_elbo(x, *model(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        if epoch % 10 == 0:
            print(f"epoch {epoch:3}: {total / len(pictures):.2f} nats a picture")
    with taeda.no_grad():
        samples = model.decoder(taeda.randn(5, LATENT, device=args.device)).sigmoid()
    for lines in zip(*(draw(s) for s in samples), strict=True):
        print("  ".join(lines))


if __name__ == "__main__":
    main()
