"""A recurrent network forecasts two days of electricity load from the week before, with quantiles.

    python examples/gallery/forecasting.py [--short] [--picture forecasting.png]

Shows: a GRU, windows of a series, and the pinball loss, which teaches quantiles: how sure the forecast is.
Prints: mean error beside that of "as a week ago", and how often the truth lies in the band that should hold 80 %.
Time: 9 s of one processor, 4 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
from taeda import Tensor, nn

PAST, AHEAD = 168, 48  # hours
QUANTILES = taeda.tensor([0.1, 0.5, 0.9])


def load(hours: int) -> Tensor:
    """A made-up load in GW: days, weekends, seasons, weather that wanders, and noise."""
    t = taeda.arange(hours).float()
    day = -taeda.cos(2 * math.pi * (t - 4) / 24) + 0.4 * taeda.sin(4 * math.pi * t / 24)
    weekend = ((t // 24) % 7 >= 5).float()
    season = taeda.cos(2 * math.pi * t / (24 * 365))
    weather = taeda.zeros(hours)
    value = 0.0
    for i, shock in enumerate((0.08 * taeda.randn(hours)).tolist()):
        value = 0.99 * value + shock
        weather[i] = value
    return 10 + 2 * day * (1 - 0.4 * weekend) - 1.5 * weekend + season + weather + 0.15 * taeda.randn(hours)


def windows(series: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """The past (n, PAST) and the future (n, AHEAD) from the given hours on."""
    rows = series[starts[:, None] + taeda.arange(PAST + AHEAD)]
    return rows[:, :PAST], rows[:, PAST:]


class Forecaster(nn.Module):
    """The last two days and the same hours a week ago, read by a GRU in blocks of 12 hours; then all hours at once."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.read = nn.GRU(12, width, batch_first=True)
        self.out = nn.Linear(width + AHEAD, AHEAD * len(QUANTILES))

    def forward(self, past: Tensor) -> Tensor:
        """Quantiles (n, AHEAD, 3), as changes of what was a week before."""
        level, scale = past.mean(1, keepdim=True), past.std(1, keepdim=True)
        x = (past - level) / scale
        _, state = self.read(x.unflatten(1, (-1, 12)))
        week_ago = x[:, :AHEAD]
        change = self.out(taeda.cat([state[0], week_ago], 1)).unflatten(1, (AHEAD, -1))
        return (week_ago[..., None] + change) * scale[..., None] + level[..., None]


def pinball(forecast: Tensor, truth: Tensor) -> Tensor:
    """Least when ``forecast`` holds the ``QUANTILES`` of ``truth`` (Koenker & Bassett 1978)."""
    error = truth[..., None] - forecast
    return taeda.maximum(QUANTILES * error, (QUANTILES - 1) * error).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="forecasting.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    series = load(24 * 7 * (60 if args.short else 150))
    train_end = len(series) * 4 // 5
    model = Forecaster()
    steps = 250 if args.short else 1500
    optimizer = taeda.optim.Adam(model.parameters(), lr=3e-3)
    schedule = taeda.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        past, future = windows(series, taeda.randint(train_end - PAST - AHEAD, (64,)))
        loss = pinball(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: pinball loss {loss.item():.3f}")
    past, future = windows(series, taeda.arange(train_end, len(series) - PAST - AHEAD, 12))
    with taeda.no_grad():
        forecast = model(past)
    low, middle, high = forecast.unbind(2)
    error = (middle - future).abs().mean().item()
    simple = (past[:, :AHEAD] - future).abs().mean().item()
    inside = ((low <= future) & (future <= high)).float().mean().item()
    print(f"mean error {error:.3f} GW, as a week ago {simple:.3f} GW, {inside:.0%} in the band")
    fig, ax = plt.subplots(figsize=(9, 4))
    hours = range(AHEAD)
    ax.plot(range(-72, 0), past[0, -72:].numpy(), "k")
    ax.plot(hours, future[0].numpy(), "k:", label="truth")
    ax.plot(hours, middle[0].numpy(), label="median")
    ax.fill_between(hours, low[0].numpy(), high[0].numpy(), alpha=0.3, label="10 to 90 %")
    ax.set(xlabel="hours", ylabel="load in GW")
    ax.legend()
    fig.savefig(args.picture, dpi=120)
    print(f"result: error {error:.4f} simple {simple:.4f} inside {inside:.3f}")


if __name__ == "__main__":
    main()
