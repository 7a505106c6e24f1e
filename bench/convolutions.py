"""Convolution layers of well-known networks against PyTorch and against the machine, in one process, call by call in
turn.

    python bench/convolutions.py                         # all layers, forward and both gradients, one thread
    python bench/convolutions.py ResNet depthwise        # layers with one of these in their names
    python bench/convolutions.py --threads 2 --images 1  # batches of one image on two threads
    python bench/convolutions.py --channels-last --dtype bfloat16
    python bench/convolutions.py --memory                # what a call takes beyond its arguments and result, at most

``bench/run.py --convolutions`` is the same. Prints, for the forward pass and the gradients of input and weights, the
ratio taeda / torch of the fastest turns (below 1, taeda is faster; what disturbs can only add time) and how many per
cent of the rate of the product's inner tile (``taeda.profiler.measure_floors``) taeda reaches, counted as plain
convolution: Winograd's exceeds 100.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import taeda

KINDS = ("forward", "input", "weight")


@dataclass(frozen=True)
class Layer:
    """A layer of a network: numbers of images and channels, sizes of the input and the kernel."""

    name: str
    images: int
    channels: int
    outputs: int
    space: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False

    @property
    def label(self) -> str:
        parts = [f"{self.name}: {self.channels} to {self.outputs}, {'x'.join(map(str, self.kernel))}"]
        parts += [f"stride {self.stride}"] if self.stride > 1 else []
        parts += [f"dilation {self.dilation}"] if self.dilation > 1 else []
        parts += ["depthwise" if self.groups == self.channels else f"{self.groups} groups"] if self.groups > 1 else []
        parts += ["transposed"] if self.transposed else []
        return ", ".join(parts) + f" at {'x'.join(map(str, self.space))}"

    def make(self, T: Any, images: int, dtype: str, last: bool) -> tuple[Any, Any, Callable[[Any, Any], Any]]:
        """Input, weights and the function of them."""
        sides = (
            (self.channels, self.outputs // self.groups)
            if self.transposed
            else (self.outputs, self.channels // self.groups)
        )
        x, w = T.randn(images, self.channels, *self.space), T.randn(*sides, *self.kernel)
        if last and len(self.space) > 1:
            order = T.channels_last if len(self.space) == 2 else T.channels_last_3d
            x, w = x.to(memory_format=order), w.to(memory_format=order)
        x, w = (t.to(getattr(T, dtype)).requires_grad_(True) for t in (x, w))
        name = f"conv{'_transpose' * self.transposed}{len(self.space)}d"
        options = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}
        function = getattr(T.nn.functional, name)
        return x, w, lambda a, b: function(a, b, **options)

    def operations(self, out_shape: tuple[int, ...], images: int) -> int:
        """Multiplications and additions of each of the three."""
        pixels = math.prod(self.space) if self.transposed else math.prod(out_shape[2:])
        return 2 * images * pixels * self.channels * self.outputs // self.groups * math.prod(self.kernel)


def _square(name: str, images: int, c: int, m: int, side: int, kernel: int, stride: int = 1, padding: int | None = None,
            groups: int = 1, dilation: int = 1, transposed: bool = False, dims: int = 2) -> Layer:  # fmt: skip
    padding = dilation * (kernel // 2) if padding is None else padding
    return Layer(name, images, c, m, (side,) * dims, (kernel,) * dims, stride, padding, dilation, groups, transposed)


LAYERS = [
    _square("ResNet stem", 4, 3, 64, 224, 7, 2),
    _square("ResNet stem, 32 px", 32, 3, 64, 32, 3),
    _square("ResNet-18", 8, 64, 64, 56, 3),
    _square("ResNet-18", 8, 64, 128, 56, 3, 2),
    _square("ResNet-18", 8, 64, 128, 56, 1, 2),
    _square("ResNet-18", 8, 128, 128, 28, 3),
    _square("ResNet-18", 8, 128, 256, 28, 3, 2),
    _square("ResNet-18", 8, 256, 256, 14, 3),
    _square("ResNet-18", 8, 256, 512, 14, 3, 2),
    _square("ResNet-18", 8, 512, 512, 7, 3),
    _square("ResNet-50", 8, 64, 64, 56, 1),
    _square("ResNet-50", 8, 64, 256, 56, 1),
    _square("ResNet-50", 8, 256, 64, 56, 1),
    _square("ResNet-50", 8, 256, 512, 56, 1, 2),
    _square("ResNet-50", 8, 128, 128, 56, 3, 2),
    _square("ResNet-50", 8, 512, 128, 28, 1),
    _square("ResNet-50", 8, 256, 1024, 14, 1),
    _square("ResNet-50", 8, 1024, 2048, 14, 1, 2),
    _square("ResNet-50", 8, 2048, 512, 7, 1),
    _square("ResNet-50", 8, 512, 2048, 7, 1),
    _square("ResNet, 7 px", 16, 256, 512, 7, 1, 2),
    _square("VGG", 2, 3, 64, 224, 3),
    _square("VGG", 2, 64, 128, 112, 3),
    _square("VGG", 2, 256, 512, 28, 3),
    _square("MobileNet stem", 8, 3, 32, 224, 3, 2),
    _square("MobileNet stem", 8, 3, 16, 160, 3, 2),
    _square("MobileNet", 8, 32, 32, 112, 3, groups=32),
    _square("MobileNet", 8, 96, 96, 112, 3, 2, groups=96),
    _square("MobileNet", 8, 144, 144, 56, 3, groups=144),
    _square("MobileNet", 8, 144, 144, 56, 3, 2, groups=144),
    _square("MobileNet", 8, 384, 384, 14, 3, groups=384),
    _square("MobileNet", 8, 960, 960, 7, 3, groups=960),
    _square("MobileNet", 8, 16, 96, 112, 1),
    _square("MobileNet", 8, 144, 24, 56, 1),
    _square("MobileNet", 8, 32, 192, 28, 1),
    _square("MobileNet", 8, 384, 64, 14, 1),
    _square("MobileNet", 8, 160, 960, 7, 1),
    _square("MobileNet", 8, 320, 1280, 7, 1),
    _square("EfficientNet", 8, 144, 144, 56, 5, 2, groups=144),
    _square("EfficientNet", 8, 240, 240, 28, 5, groups=240),
    _square("EfficientNet", 8, 672, 672, 14, 5, groups=672),
    _square("EfficientNet", 8, 672, 672, 14, 5, 2, groups=672),
    _square("EfficientNet, squeezed", 8, 240, 10, 1, 1),
    _square("EfficientNet, excited", 8, 10, 240, 1, 1),
    _square("ConvNeXt stem", 8, 3, 96, 224, 4, 4, 0),
    _square("ConvNeXt", 8, 96, 96, 56, 7, groups=96),
    _square("ConvNeXt", 8, 192, 192, 28, 7, groups=192),
    _square("ConvNeXt", 8, 384, 384, 14, 7, groups=384),
    _square("ConvNeXt", 8, 768, 768, 7, 7, groups=768),
    _square("ConvNeXt", 8, 96, 192, 56, 2, 2, 0),
    _square("ViT stem", 8, 3, 192, 224, 16, 16, 0),
    _square("ViT stem", 8, 3, 768, 224, 16, 16, 0),
    _square("ViT stem, 32 px", 64, 3, 128, 32, 4, 4, 0),
    _square("ResNeXt", 8, 128, 128, 56, 3, groups=32),
    _square("ResNeXt", 8, 256, 256, 28, 3, groups=32),
    _square("ResNeXt", 8, 512, 512, 14, 3, groups=32),
    _square("ResNeXt", 8, 1024, 1024, 7, 3, groups=32),
    _square("ResNeXt", 8, 256, 256, 56, 3, 2, groups=32),
    _square("ResNeXt", 8, 1024, 1024, 14, 3, 2, groups=32),
    _square("DenseNet", 8, 128, 32, 56, 3),
    _square("DenseNet", 8, 512, 128, 14, 1),
    _square("DenseNet", 8, 128, 32, 14, 3),
    _square("U-Net", 1, 1, 64, 256, 3),
    _square("U-Net", 1, 64, 64, 256, 3),
    _square("U-Net", 1, 256, 128, 64, 3),
    _square("U-Net", 1, 64, 2, 256, 1),
    _square("U-Net", 1, 128, 64, 128, 2, 2, 0, transposed=True),
    _square("U-Net", 1, 512, 256, 32, 2, 2, 0, transposed=True),
    _square("DeepLab", 2, 256, 256, 28, 3, dilation=6),
    _square("DCGAN", 32, 100, 512, 1, 4, 1, 0, transposed=True),
    _square("DCGAN", 32, 512, 256, 4, 4, 2, 1, transposed=True),
    _square("DCGAN", 32, 128, 64, 16, 4, 2, 1, transposed=True),
    _square("DCGAN", 32, 64, 3, 32, 4, 2, 1, transposed=True),
    _square("DCGAN", 32, 3, 64, 64, 4, 2, 1),
    _square("DCGAN", 32, 128, 256, 16, 4, 2, 1),
    _square("DCGAN", 32, 512, 1, 4, 4, 1, 0),
    _square("VAE", 64, 1, 32, 28, 3, 2),
    _square("VAE", 64, 32, 64, 14, 3, 2),
    _square("LeNet", 64, 1, 6, 28, 5),
    _square("LeNet", 64, 6, 16, 14, 5, padding=0),
    _square("WaveNet", 2, 64, 128, 4096, 2, padding=0, dilation=1, dims=1),
    _square("WaveNet", 2, 64, 128, 4096, 2, padding=0, dilation=64, dims=1),
    _square("TCN", 8, 64, 64, 1000, 3, dims=1),
    _square("TCN", 8, 512, 512, 1000, 3, dims=1),
    _square("audio stem", 4, 1, 64, 16000, 400, 160, 0, dims=1),
    _square("wav2vec", 2, 512, 512, 3199, 3, 2, 0, dims=1),
    _square("Conformer", 8, 256, 256, 400, 31, groups=256, dims=1),
    _square("3-d ResNet", 2, 3, 64, 32, 3, dims=3),
    _square("3-d ResNet", 2, 32, 32, 32, 3, dims=3),
    _square("3-d ResNet", 2, 64, 64, 16, 3, dims=3),
    _square("3-d ResNet", 2, 64, 128, 16, 3, 2, dims=3),
    _square("3-d U-Net", 1, 64, 32, 16, 2, 2, 0, transposed=True, dims=3),
]  # fmt: skip


def calls(layer: Layer, images: int, dtype: str, last: bool) -> dict[str, tuple[list[Callable[[], Any]], int]]:
    """For each of :data:`KINDS` the calls of both frameworks and their operations."""
    found: dict[str, tuple[list[Callable[[], Any]], int]] = {kind: ([], 0) for kind in KINDS}
    for T in (taeda, torch):
        x, w, function = layer.make(T, images, dtype, last)
        out = function(x, w)
        grad = T.randn(*out.shape).to(out.dtype)
        if last and out.dim() > 3:
            grad = grad.to(memory_format=T.channels_last if out.dim() == 4 else T.channels_last_3d)
        plain = x.detach(), w.detach()
        work = layer.operations(tuple(out.shape), images)
        both: list[tuple[str, Callable[[], Any]]] = [("forward", lambda f=function, p=plain: f(*p))]
        for kind, of in (("input", x), ("weight", w)):
            both.append((kind, lambda T=T, o=out, t=of, g=grad: T.autograd.grad(o, t, g, retain_graph=True)))
        for kind, call in both:
            found[kind] = ([*found[kind][0], call], work)
    return found


def in_turns(
    pair: list[Callable[[], Any]], rounds: int, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds per call of each framework, of its fastest turn; a turn is about ``seconds`` long.

    The threads of the one are asleep before the other begins: PyTorch's spin for some milliseconds after a call, on a
    core that both want.
    """
    repeats, best = [], [math.inf, math.inf]
    for call in pair:
        call()
        start = clock()
        call()
        repeats.append(max(1, round(seconds / (clock() - start))))
    for _ in range(rounds):
        for i, (call, repeat) in enumerate(zip(pair, repeats, strict=True)):
            if torch.get_num_threads() > 1:
                until_idle()
                call()
            start = clock()
            for _ in range(repeat):
                call()
            best[i] = min(best[i], (clock() - start) / repeat)
    return best


def until_idle() -> None:
    """Wait until no thread of this process is running."""
    for _ in range(100):
        used = time.process_time()
        time.sleep(0.001)
        if time.process_time() - used < 0.0003:
            return


def peak_bytes(call: Callable[[], Any], of_torch: bool) -> int:
    """The most that a call had allocated at a time, its result included."""
    if of_torch:
        with torch.profiler.profile(profile_memory=True) as prof:
            call()
        events = [e for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
        sizes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
        level, most = 0, 0
        for size in sizes:
            level += size
            most = max(most, level)
        return most
    taeda.cpu.reset_peak_memory_stats()
    before = taeda.cpu.memory_allocated()
    call()
    return taeda.cpu.max_memory_allocated() - before


def main(arguments: list[str] | None = None) -> None:
    """Print a row for each layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of layers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--images", type=int, help="instead of each layer's own number")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.004, help="of a turn, about")
    parser.add_argument("--memory", action="store_true", help="peaks of memory instead of times")
    args = parser.parse_args(arguments)
    taeda.set_num_threads(args.threads)
    torch.set_num_threads(args.threads)
    # On one thread, what others take of the processor meanwhile does not count.
    clock = time.thread_time if args.threads == 1 else time.perf_counter
    peak = taeda.profiler.measure_floors().flops
    print(
        f"{'of torch, and per cent of ' + format(peak / 1e9, '.0f') + ' GFLOP/s':64s}"
        + "".join(f"{k:>14}" for k in KINDS)
    )
    ratios = []
    for layer in LAYERS:
        if args.names and not any(name in layer.label for name in args.names):
            continue
        cells = []
        for pair, work in calls(layer, args.images or layer.images, args.dtype, args.channels_last).values():
            if args.memory:
                taken = [peak_bytes(call, i == 1) / 2**20 for i, call in enumerate(pair)]
                cells.append(f"{taken[0]:6.1f} /{taken[1]:6.1f}")
            else:
                best, theirs = in_turns(pair, args.rounds, args.seconds, clock)
                ratios.append(best / theirs)
                cells.append(f"{best / theirs:7.2f} {100 * work / best / peak:5.0f}%")
        print(f"{layer.label:64s}" + "".join(f"{cell:>14}" for cell in cells), flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean over {len(ratios)}: {mean:.2f}; above 1: {sum(r > 1 for r in ratios)}")


if __name__ == "__main__":
    main()
