"""Which film will she like? Tastes and films as vectors, learned from some of the ratings (Koren et al. 2009).

    python examples/gallery/recommender.py [--short] [--picture recommender.png]

Shows: `Embedding` with sparse gradients and `SparseAdam`: a step touches only the rows that the batch names.
Prints: the error on hidden ratings, beside that of the film's mean, and that of the noise, which nobody can beat.
Time: 8 s of one processor, 3 s with --short (AVX-512; imports included).
"""

import argparse

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

NOISE, TRAITS = 0.3, 2


def ratings(people: int, films: int, each: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Who (n), which film (n), the rating (n), and the hidden traits of the films (films, TRAITS)."""
    tastes, traits = taeda.randn(people, TRAITS), taeda.randn(films, TRAITS)
    quality = 3 + 0.5 * taeda.randn(films)
    who = taeda.arange(people).repeat_interleave(each)
    film = taeda.cat([taeda.randperm(films)[:each] for _ in range(people)])
    rating = quality[film] + 0.7 * (tastes[who] * traits[film]).sum(1) + NOISE * taeda.randn(len(who))
    return who, film, rating, traits


class Factors(nn.Module):
    """A rating is the film's level plus the product of two vectors, the person's and the film's."""

    def __init__(self, people: int, films: int, width: int = TRAITS):
        super().__init__()
        self.person, self.film = nn.Embedding(people, width, sparse=True), nn.Embedding(films, width, sparse=True)
        self.level = nn.Embedding(films, 1, sparse=True)
        nn.init.constant_(self.level.weight, 3.0)
        for embedding in (self.person, self.film):
            nn.init.normal_(embedding.weight, std=0.3)

    def forward(self, who: Tensor, film: Tensor) -> Tensor:
        return self.level(film)[:, 0] + (self.person(who) * self.film(film)).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="recommender.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    people, films, each = (300, 100, 30) if args.short else (2000, 400, 40)
    who, film, rating, traits = ratings(people, films, each)
    order = taeda.randperm(len(who))
    hidden, known = order[: len(order) // 5], order[len(order) // 5 :]
    model = Factors(people, films)
    optimizer = taeda.optim.SparseAdam(list(model.parameters()), lr=2e-2)
    epochs = 15
    for epoch in range(1, epochs + 1):
        total = 0.0
        for batch in known[taeda.randperm(len(known))].split(256):
            loss = F.mse_loss(model(who[batch], film[batch]), rating[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2}: mean square error {total / len(known):.3f}")
    with taeda.no_grad():
        guess = model(who[hidden], film[hidden])
    error = (guess - rating[hidden]).square().mean().sqrt().item()
    mean = taeda.zeros(films).index_add(0, film[known], rating[known]) / taeda.bincount(film[known], minlength=films)
    simple = (mean[film[hidden]] - rating[hidden]).square().mean().sqrt().item()
    print(f"error {error:.3f}, of the film's mean {simple:.3f}, of the noise {NOISE}")
    # Learned vectors are the hidden traits, but for a linear map, which least squares finds.
    learned = model.film.weight.detach()
    matched = learned @ taeda.linalg.lstsq(learned, traits).solution
    fig, axes = plt.subplots(1, 2, figsize=(9, 4))
    axes[0].scatter(rating[hidden].numpy(), guess.numpy(), s=3, alpha=0.4)
    axes[0].set(xlabel="hidden rating", ylabel="guess")
    axes[1].scatter(*traits.T.numpy(), s=14, label="traits of films")
    axes[1].scatter(*matched.T.numpy(), s=14, marker="x", label="found in the ratings")
    axes[1].legend()
    fig.savefig(args.picture, dpi=120)
    print(f"result: error {error:.4f} simple {simple:.4f}")


if __name__ == "__main__":
    main()
