"""Keyword spotting: a small convolutional network tells six spoken-like words of tones apart, in noise.

    python examples/gallery/keywords.py [--short] [--picture keywords.png]

Shows: sound to spectrogram by `stft`, one-dimensional convolutions over time, augmentation by shift and noise.
Prints: accuracy on new recordings at three loudnesses of the noise.
Time: 11 s of one processor, 6 s with --short (AVX-512; imports included).
"""

import argparse
import math

import matplotlib.pyplot as plt

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

RATE, LENGTH = 4000, 2048  # samples a second, samples
WORDS = {  # the tones of a word in Hz, from its begin to its end
    "up": (400, 800), "down": (800, 400), "left": (500, 500, 900), "right": (900, 500, 500), "go": (650, 650),
    "stop": (900, 400, 900),
}  # fmt: skip


def recordings(n: int, noise: float) -> tuple[Tensor, Tensor]:
    """``n`` sounds (n, LENGTH) and which word each is: voices differ in pitch, speed, loudness and overtones."""
    labels = taeda.randint(len(WORDS), (n,))
    time = taeda.linspace(0, 1, LENGTH)
    knots = taeda.tensor([[tones[min(int(p * len(tones)), len(tones) - 1)] for p in (0, 0.4, 0.6, 0.99)]
                          for tones in WORDS.values()]).float()  # fmt: skip
    pitch = F.interpolate(knots[labels][:, None], size=LENGTH, mode="linear", align_corners=True)[:, 0]
    pitch = pitch * (1 + 0.15 * taeda.randn(n, 1)).clamp(0.7, 1.3)
    phase = 2 * math.pi * pitch.cumsum(1) / RATE
    begin, span = 0.3 * taeda.rand(n, 1), 0.4 + 0.3 * taeda.rand(n, 1)
    envelope = taeda.sigmoid(60 * (time - begin)) * taeda.sigmoid(60 * (begin + span - time))
    sound = sum(taeda.rand(n, 1) / k * taeda.sin(k * phase) for k in (1, 2)) + 0.3 * taeda.sin(phase)
    return envelope * sound + noise * taeda.randn(n, LENGTH), labels


def spectrogram(sound: Tensor) -> Tensor:
    """Logarithm of the power in 65 bands, every 64 samples: (n, 65, 33)."""
    z = taeda.stft(sound, 128, hop_length=64, window=taeda.hann_window(128), return_complex=True)
    return taeda.log(z.abs() ** 2 + 1e-2)


def network() -> nn.Module:
    """Scores of the words for (n, 65, times): bands are channels, and the end is the maximum over time."""
    return nn.Sequential(
        nn.BatchNorm1d(65), nn.Conv1d(65, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(32, 48, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(48, 48, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(48 * 8, len(WORDS)),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few seconds, for tests")
    parser.add_argument("--picture", default="keywords.png", help="the file that the picture goes to")
    args = parser.parse_args()
    taeda.manual_seed(0)
    model = network()
    steps = 120 if args.short else 600
    optimizer = taeda.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        sound, labels = recordings(64, noise=0.2)
        loss = F.cross_entropy(model(spectrogram(sound)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 5) == 0:
            print(f"step {step:4}: loss {loss.item():.3f}")
    model.eval()
    accuracy = {}
    for noise in (0.1, 0.2, 0.5):
        sound, labels = recordings(300, noise)
        with taeda.no_grad():
            accuracy[noise] = (model(spectrogram(sound)).argmax(1) == labels).float().mean().item()
        print(f"noise {noise}: {accuracy[noise]:.1%} right")
    fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, sharey=True)
    for i, (word, ax) in enumerate(zip(WORDS, axes.flat, strict=True)):
        picture = spectrogram(sound[labels == i][:1])[0]
        ax.imshow(picture.numpy(), origin="lower", aspect="auto", extent=(0, LENGTH / RATE, 0, RATE / 2))
        ax.set_title(word)
    fig.supxlabel("seconds")
    fig.supylabel("Hz")
    fig.savefig(args.picture, dpi=120)
    print(f"result: quiet {accuracy[0.1]:.3f} loud {accuracy[0.5]:.3f}")


if __name__ == "__main__":
    main()
