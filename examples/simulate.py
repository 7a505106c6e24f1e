"""How long would a step of a language model take on thousands of GPUs, and how much memory?

    python examples/simulate.py

Layers are made on device meta with the sizes that one GPU has of them under tensor parallelism with sharded
sequences, and planned; nothing is computed. First two runs that papers have published, to see how far off the
simulation is; then a model of 70 billion parameters on 8 to 16,384 GPUs. ``--drawing FILE.svg`` and ``--trace
FILE.json`` keep the schedule of the last.
"""

import argparse
from dataclasses import dataclass

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn
from taeda.distributed import simulate
from taeda.distributed.simulation import Device, Layer, Link, Network, Simulation, Step, Traffic

# Rates from data sheets: dense bfloat16, memory, NVLink and InfiniBand in one direction. The share of the arithmetic
# that products reach is chosen so that Llama 405B on 8,192 GPUs takes about what was published; all else
# follows.
EFFICIENCY = 0.56
A100 = Device(312e12, 2.0e12, 80e9, EFFICIENCY, overhead=3e-6)
H100 = Device(989e12, 3.35e12, 80e9, EFFICIENCY, overhead=3e-6)
A100_NETWORK = Network(Link(300e9, 5e-6), Link(25e9, 10e-6), size=8)
H100_NETWORK = Network(Link(450e9, 5e-6), Link(50e9, 10e-6), size=8)


@dataclass(frozen=True)
class Model:
    """Sizes of a decoder."""

    layers: int
    width: int
    inner: int
    heads: int
    groups: int  # heads of keys and values
    vocabulary: int
    gated: bool = True

    @property
    def parameters(self) -> int:
        """How many there are, norms aside."""
        kv = self.width * self.groups // self.heads
        block = 2 * self.width * (self.width + kv) + (3 if self.gated else 2) * self.width * self.inner
        return self.layers * block + 2 * self.vocabulary * self.width


GPT_76B = Model(60, 10240, 40960, 80, 80, 51200, gated=False)
LLAMA_70B = Model(80, 8192, 28672, 64, 8, 128256)
LLAMA_405B = Model(126, 16384, 53248, 128, 8, 128256)


class _GatheredLinear(taeda.autograd.Function):
    """A product with all positions, of which the own ones are kept: the backward pass gathers the others again."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, parts: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.parts = parts
        return F.linear(x.repeat(1, parts, 1), weight)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple:
        x, weight = ctx.saved_tensors
        whole = x.repeat(1, ctx.parts, 1)
        return (g @ weight).chunk(ctx.parts, 1)[0], g.flatten(0, -2).t() @ whole.flatten(0, -2), None


class Block(nn.Module):
    """A layer as one of ``parts`` GPUs has it: its heads, its part of the inner numbers, its part of the positions."""

    def __init__(self, model: Model, parts: int) -> None:
        super().__init__()
        self.parts, self.heads, self.groups = parts, model.heads // parts, max(1, model.groups // parts)
        size = model.width // model.heads
        self.before, self.between = nn.RMSNorm(model.width), nn.RMSNorm(model.width)
        self.qkv = nn.Linear(model.width, (self.heads + 2 * self.groups) * size, bias=False)
        self.out = nn.Linear(self.heads * size, model.width, bias=False)
        inner = model.inner // parts
        self.up = nn.Linear(model.width, inner * (2 if model.gated else 1), bias=False)
        self.down = nn.Linear(inner, model.width, bias=False)
        self.gated = model.gated

    def gathered(self, x: Tensor, layer: nn.Linear) -> Tensor:
        """``layer`` of the positions of all parts."""
        return _GatheredLinear.apply(x, layer.weight, self.parts)

    def scatter(self, x: Tensor) -> Tensor:
        """Of the size that a reduce-scatter gives."""
        return x.chunk(self.parts, 1)[0]

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, positions / parts, width]`` to the same."""
        qkv = self.gathered(self.before(x), self.qkv)
        q, k, v = qkv.unflatten(-1, (self.heads + 2 * self.groups, -1)).transpose(1, 2).split(
            [self.heads, self.groups, self.groups], 1
        )  # fmt: skip
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)
        x = x + self.scatter(self.out(a))
        h = self.gathered(self.between(x), self.up)
        if self.gated:
            gate, h = h.chunk(2, -1)
            h = F.silu(gate) * h
        else:
            h = F.gelu(h)
        return x + self.scatter(self.down(h))


class Head(nn.Module):
    """The last norm, the part of the vocabulary that one GPU has, and the loss."""

    def __init__(self, model: Model, parts: int) -> None:
        super().__init__()
        self.norm, self.parts = nn.RMSNorm(model.width), parts
        self.logits = nn.Linear(model.width, model.vocabulary // parts, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Logits' log-sum-exp, the costly part of the loss."""
        return _GatheredLinear.apply(self.norm(x), self.logits.weight, self.parts).float().logsumexp(-1).mean()


def layers(model: Model, parts: int, positions: int, batch: int, recompute: bool) -> list[Layer]:
    """The model as layers of a step, for microbatches of ``batch`` sequences."""
    with taeda.device("meta"):
        kind = {"dtype": taeda.bfloat16}
        x = taeda.zeros(batch, positions // parts, model.width, **kind)
        tokens = taeda.zeros(batch, positions // parts, dtype=taeda.int64)
        embedding = nn.Embedding(model.vocabulary // parts, model.width).to(**kind)
        block, head = Block(model, parts).to(**kind), Head(model, parts).to(**kind)
    nbytes = batch * positions * model.width * 2
    exchange = [
        Traffic(what, "tp", nbytes, backward)
        for backward in (False, True)
        for what in ("all_gather", "reduce_scatter") * 2
    ]
    exchange.append(Traffic("all_gather", "tp", 2 * nbytes, True, hidden=True))  # what _GatheredLinear gathers again
    return [
        Layer(embedding, (tokens,), traffic=(Traffic("reduce_scatter", "tp", nbytes),)),
        Layer(block, (x,), model.layers, tuple(exchange), recompute=recompute),
        Layer(head, (x,), traffic=(Traffic("all_gather", "tp", nbytes), Traffic("reduce_scatter", "tp", nbytes, True))),
    ]


def run(
    model: Model, mesh: dict, positions: int, sequences: int, network: Network, device: Device, batch: int = 1,
    interleave: int = 1, sharding: str | None = "optimizer", recompute: bool = False,
) -> Simulation:  # fmt: skip
    """A step of ``sequences`` sequences: gradients in float32, a float32 copy and two moments for each parameter."""
    step = Step(
        layers(model, mesh["tp"], positions, batch, recompute),
        microbatches=sequences // (mesh["dp"] * batch),
        schedule="interleaved" if interleave > 1 else "1f1b",
        interleave=interleave, sharding=sharding, state_bytes=12, grad_bytes=4,
    )  # fmt: skip
    return simulate(step, mesh, network, device)


def published() -> None:
    """Runs of which papers tell the rate."""
    found = run(GPT_76B, {"dp": 32, "pp": 4, "tp": 8}, 2048, 1792, A100_NETWORK, A100, 2, 5, None, recompute=True)
    # Narayanan et al. 2021 (arXiv 2104.04473), table 1: 140 TFLOP/s a GPU; their count has the recomputation in it
    # (equation 3)
    b, s, n, h, v = 1792, 2048, GPT_76B.layers, GPT_76B.width, GPT_76B.vocabulary
    theirs = 96 * b * s * n * h**2 * (1 + s / (6 * h) + v / (16 * n * h)) / (140e12 * 1024)
    print(f"GPT 76B, 1,024 A100: published {theirs:.1f} s a step, simulated {found.seconds:.1f} s "
          f"({found.seconds / theirs - 1:+.0%}); {found.peak_bytes / 1e9:.0f} GB")  # fmt: skip
    for gpus, rate in ((8192, 430), (16384, 400)):
        # Grattafiori et al. 2024, "The Llama 3 Herd of Models" (arXiv 2407.21783), table 4
        mesh = {"dp": gpus // 128, "pp": 16, "tp": 8}
        found = run(LLAMA_405B, mesh, 8192, 2048, H100_NETWORK, H100, 1, 8)
        print(f"Llama 405B, {gpus:,} H100: published {rate} TFLOP/s a GPU, simulated "
              f"{found.flops_per_second / 1e12:.0f} ({found.flops_per_second / rate / 1e12 - 1:+.0%}); "
              f"{found.peak_bytes / 1e9:.0f} GB")  # fmt: skip


def main() -> None:
    """Print what was published and simulated, then 70 billion parameters on more and more GPUs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--drawing", help="an SVG of the schedule on 1,024 GPUs")
    parser.add_argument("--trace", help="the same for https://ui.perfetto.dev")
    options = parser.parse_args()
    published()
    print(f"\n{LLAMA_70B.parameters / 1e9:.1f} billion parameters, sequences of 8,192 tokens, H100")
    print("  GPUs  data x pipeline x tensor  sequences  s/step  TFLOP/s  used   GB  tokens/s")
    for dp, pp, tp, interleave, sequences, sharding in (
        (1, 1, 8, 1, 16, "full"), (2, 4, 8, 4, 128, "optimizer"), (32, 4, 8, 4, 2048, "optimizer"),
        (256, 8, 8, 5, 2048, "optimizer"),
    ):  # fmt: skip
        mesh = {"dp": dp, "pp": pp, "tp": tp}
        found = run(LLAMA_70B, mesh, 8192, sequences, H100_NETWORK, H100, 1, interleave, sharding, pp == 1)
        shape, fits = f"{dp} x {pp} x {tp}", "" if found.fits else " (does not fit)"
        print(f"{found.processes:6,}  {shape:>24}  {sequences:9,}  {found.seconds:6.2f}  "
              f"{found.flops_per_second / 1e12:7.0f}  {found.utilization:4.0%}  {found.peak_bytes / 1e9:3.0f}  "
              f"{sequences * 8192 / found.seconds:8,.0f}{fits}")  # fmt: skip
        if found.processes == 1024:
            found.svg(options.drawing) if options.drawing else None
            found.trace(options.trace) if options.trace else None


if __name__ == "__main__":
    main()
