"""Train a small GPT, character by character, on the source of Python's own standard library.

    pip install '.[demo]' && python examples/char_gpt.py

Everything is in this file: the text, the model, the training loop, the sampling. It runs in under three minutes on two
cores, writes ``char_gpt.png`` and ends with the loss on files that it was not trained on.
"""

import time

START = time.perf_counter()

import argparse
import math
import sys
import sysconfig
from pathlib import Path

import numpy as np
from tqdm import tqdm

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

CONTEXT, WIDTH, HEADS, LAYERS = 64, 128, 4, 4
BATCH, PEAK_LR, WARMUP = 16, 3e-3, 100


def read_library(megabytes: float = 4.0) -> tuple[bytes, bytes]:
    """The library's modules as (training, held-out) text; every tenth file is held out, whole."""
    root = Path(sysconfig.get_path("stdlib"))
    skip = {"test", "tests", "idlelib", "site-packages", "dist-packages", "lib2to3", "pydoc_data", "encodings"}
    files = sorted(p for p in root.rglob("*.py") if not skip & set(p.relative_to(root).parts))
    printable = bytes(sorted({9, 10, *range(32, 127)}))
    unprintable = bytes(set(range(256)) - set(printable))
    train, held_out, size = [], [], 0
    for i, path in enumerate(files):
        text = path.read_bytes().translate(None, unprintable)
        (held_out if i % 10 == 9 else train).append(text)
        size += len(text)
        if size > megabytes * 1e6:
            break
    return b"\n".join(train), b"\n".join(held_out)


class Attention(nn.Module):
    """Causal self-attention with several heads."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, time_, width = x.shape
        qkv = self.qkv(x).view(batch, time_, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, time, width / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, time_, width))


class Block(nn.Module):
    """One layer of the network: attention, then a two-layer perceptron, each added to its input."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Characters in, for each position the logits of the next character out."""

    def __init__(self, vocabulary: int, context: int, width: int, heads: int, layers: int):
        super().__init__()
        self.context = context
        self.character = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:  # smaller on the branches that are added up, so that depth does not raise the variance
                branch = name.endswith(("out.weight", "mlp.2.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if branch else 0.02)

    def forward(self, x: Tensor) -> Tensor:
        places = taeda.arange(x.shape[1])
        h = self.character(x) + self.position(places)
        return self.head(self.norm(self.blocks(h)))

    @taeda.no_grad()
    def write(self, prompt: Tensor, characters: int, temperature: float = 0.8) -> Tensor:
        """Continue ``prompt`` (shape (1, n)) by drawing one character after another."""
        text = prompt
        for _ in range(characters):
            logits = self(text[:, -self.context :])[:, -1] / temperature
            drawn = taeda.multinomial(F.softmax(logits, -1), 1)
            text = taeda.cat([text, drawn], 1)
        return text[0]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean negative log likelihood per character, in nats."""
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1))


def draw_batch(data: Tensor, offsets: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """``batch`` random windows of the text, and the same windows one character later."""
    start = taeda.randint(0, len(data) - CONTEXT, (batch, 1))
    window = data[start + offsets]
    return window[:, :-1], window[:, 1:]


@taeda.no_grad()
def held_out_loss(model: GPT, data: Tensor, windows: int) -> float:
    """Mean loss over ``windows`` windows spread evenly over the held-out text."""
    start = taeda.linspace(0, len(data) - CONTEXT - 1, windows).long()[:, None]
    window = data[start + taeda.arange(CONTEXT + 1)]
    losses = [cross_entropy(model(part[:, :-1]), part[:, 1:]).item() for part in window.split(64)]
    return sum(losses) / len(losses)


def bigram_loss(train: Tensor, held_out: Tensor, vocabulary: int) -> float:
    """Held-out loss of a table of counts of which character follows which: the baseline."""
    pairs = train[:-1] * vocabulary + train[1:]
    counts = taeda.bincount(pairs, minlength=vocabulary**2).view(vocabulary, vocabulary) + 0.1
    log_p = taeda.log(counts / counts.sum(1, keepdim=True))
    return -log_p[held_out[:-1], held_out[1:]].mean().item()


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up, then half a cosine down to a twentieth of the peak."""
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    progress = (step - WARMUP) / max(1, steps - WARMUP)
    return PEAK_LR * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * progress)))


def train_model(model: GPT, train: Tensor, held_out: Tensor, steps: int) -> tuple[list[float], list[tuple[int, float]]]:
    """The training loop; returns the training loss of every step and (step, held-out loss) pairs."""
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = taeda.optim.AdamW(groups, lr=PEAK_LR, betas=(0.9, 0.99))
    offsets = taeda.arange(CONTEXT + 1)
    losses: list[float] = []
    held: list[tuple[int, float]] = []
    bar = tqdm(range(steps), unit="step", file=sys.stdout, mininterval=1.0)
    for step in bar:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        x, y = draw_batch(train, offsets, BATCH)
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step == 0:
            bar.write(f"first training step done {time.perf_counter() - START:.1f} s after the start")
        if step % 250 == 249 or step == steps - 1:
            held.append((step + 1, held_out_loss(model, held_out, 256)))
            bar.set_postfix(train=f"{sum(losses[-100:]) / len(losses[-100:]):.3f}", held_out=f"{held[-1][1]:.3f}")
    return losses, held


def plot(losses: list[float], held: list[tuple[int, float]], bigram: float, path: str) -> None:
    """The loss curve, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    mean = np.convolve(losses, np.ones(20) / 20, "valid") if len(losses) >= 20 else np.asarray(losses)
    plt.figure(figsize=(8, 4.5))
    plt.plot(np.arange(len(mean)) + len(losses) - len(mean), mean, lw=1, label="training (mean of 20 steps)")
    plt.plot(*zip(*held, strict=True), "o-", label="held-out files")
    plt.axhline(bigram, color="grey", ls="--", label="bigram table, held-out files")
    plt.xlabel("step")
    plt.ylabel("nats per character")
    plt.legend()
    plt.tight_layout()
    plt.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", default="char_gpt.png", help="where the loss curve goes")
    parser.add_argument("--device", default="cpu", help="where it runs: cpu, cuda")
    args = parser.parse_args()

    taeda.manual_seed(args.seed)
    taeda.set_default_device(args.device)
    train_text, held_out_text = read_library()
    characters = bytes(sorted({9, 10, *range(32, 127)}))
    code = np.zeros(256, np.int64)
    code[list(characters)] = np.arange(len(characters))
    train, held_out = (
        taeda.from_numpy(code[np.frombuffer(t, np.uint8)]).to(args.device) for t in (train_text, held_out_text)
    )
    model = GPT(len(characters), CONTEXT, WIDTH, HEADS, LAYERS)
    size = sum(p.numel() for p in model.parameters())
    print(f"{len(train):,} characters to train on, {len(held_out):,} held out, {size:,} parameters")

    losses, held = train_model(model, train, held_out, args.steps)
    bigram = bigram_loss(train, held_out, len(characters))
    prompt = b"def read_"
    sample = model.write(taeda.tensor([[int(code[c]) for c in prompt]]), 400)
    print("\n" + "-" * 80)
    print("".join(chr(characters[i]) for i in sample.tolist()))
    print("-" * 80)
    plot(losses, held, bigram, args.plot)
    print(f"loss curve: {args.plot}; {time.perf_counter() - START:.0f} s in all")
    print(f"held-out loss of a bigram table: {bigram:.2f} nats/char")
    print(f"held-out loss: {held_out_loss(model, held_out, 2048):.2f} nats/char")


if __name__ == "__main__":
    main()
