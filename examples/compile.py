"""Train the small GPT of ``char_gpt.py`` compiled and eagerly, and compare times and losses.

    pip install '.[demo]' && python examples/compile.py

Both runs start from the same weights and see the same text. Their losses are equal, bit for bit: a compiled step
computes the same numbers with fewer passes over memory.
"""

import argparse
import time
from collections.abc import Callable

import char_gpt
import numpy as np

import taeda
from taeda import nn


def make_step(text: taeda.Tensor, vocabulary: int) -> Callable[[], taeda.Tensor]:
    """One training step of a new model: draw text, forward, backward, clip, update."""
    taeda.manual_seed(0)
    model = char_gpt.GPT(vocabulary, char_gpt.CONTEXT, char_gpt.WIDTH, char_gpt.HEADS, char_gpt.LAYERS)
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-3)
    offsets = taeda.arange(char_gpt.CONTEXT + 1)

    def step() -> taeda.Tensor:
        x, y = char_gpt.draw_batch(text, offsets, char_gpt.BATCH)
        loss = char_gpt.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def train(step: Callable[[], taeda.Tensor], steps: int) -> tuple[list[float], float, float]:
    """The loss of every step, the seconds of the first step, and those of a later one, the median."""
    losses, seconds = [], []
    for _ in range(steps):
        start = time.perf_counter()
        losses.append(step().item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds[0], float(np.median(seconds[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    training, _ = char_gpt.read_library(1.0)
    known = sorted(set(training))
    place = np.zeros(256, np.int64)
    place[known] = range(len(known))
    text = taeda.from_numpy(place[np.frombuffer(training, np.uint8)])

    runs = {}
    for name, wrap in (("eager", lambda step: step), ("compiled", taeda.compile)):
        runs[name] = train(wrap(make_step(text, len(known))), steps)
        losses, first, later = runs[name]
        print(f"{name:8}  first step {first * 1e3:7.1f} ms, later {later * 1e3:6.1f} ms, last loss {losses[-1]:.4f}")
    print(f"losses equal: {runs['eager'][0] == runs['compiled'][0]}")


if __name__ == "__main__":
    main()
