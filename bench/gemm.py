"""Times products, convolution, pooling and attention against PyTorch in one process, call by call in turn.

    python bench/gemm.py                      # everything, one thread
    python bench/gemm.py matmul conv --threads 2

Prints the median of the ratios taeda / torch (below 1, taeda is faster) and the ratio of the fastest calls, which is
the one to look at on a busy machine. ``bench/run.py`` has the cases that have bars; here is what they are made of.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch

import taeda

Pair = tuple[Callable[[], object], Callable[[], object]]
F, TF = taeda.nn.functional, torch.nn.functional


def both(*shape: int, requires_grad: bool = False) -> tuple[taeda.Tensor, torch.Tensor]:
    """The same normal numbers in both frameworks."""
    theirs = torch.randn(*shape)
    ours = taeda.from_numpy(theirs.clone().numpy()).clone()
    return ours.requires_grad_(requires_grad), theirs.requires_grad_(requires_grad)


def matmul() -> Iterator[tuple[str, float, Pair]]:
    """Square products, and those of an MLP and a small GPT, with either operand transposed."""
    shapes = [(n, n, n) for n in (8, 64, 128, 256, 512, 1024)]
    shapes += [(128, 512, 784), (128, 10, 512), (768, 384, 128), (768, 128, 512), (384, 128, 768), (512, 784, 128)]
    for m, n, k in shapes:
        (a, x), (at, xt) = both(m, k), both(k, m)
        (b, y), (bt, yt) = both(k, n), both(n, k)
        pairs = {
            "NN": (lambda a=a, b=b: a @ b, lambda x=x, y=y: x @ y),
            "NT": (lambda a=a, b=bt: a @ b.t(), lambda x=x, y=yt: x @ y.t()),
            "TN": (lambda a=at, b=b: a.t() @ b, lambda x=xt, y=y: x.t() @ y),
        }
        for name, pair in pairs.items():
            yield f"matmul {m}x{n}x{k} {name}", m * n * k, pair
    (a, x), (b, y) = both(64, 64, 64), both(64, 64, 64)
    yield "bmm 64x64x64x64", 64**4, (lambda: taeda.bmm(a, b), lambda: torch.bmm(x, y))


def linear() -> Iterator[tuple[str, float, Pair]]:
    """Layers from a single row up."""
    for m, n, k in ((1, 4, 4), (32, 64, 4), (8, 128, 32), (1, 512, 512), (128, 512, 784), (768, 512, 128)):
        (a, x), (w, y), (b, z) = both(m, k), both(n, k), both(n)
        yield (
            f"linear {m}x{n}x{k}",
            m * n * k,
            (lambda a=a, w=w, b=b: F.linear(a, w, b), lambda x=x, y=y, z=z: TF.linear(x, y, z)),
        )


def conv() -> Iterator[tuple[str, float, Pair]]:
    """Forward and each gradient of convolutions from tiny to ResNet's."""
    cases = [  # images, channels, output channels, groups, side, kernel, stride, padding
        (1, 8, 8, 1, 8, 3, 1, 1),
        (16, 64, 64, 1, 32, 3, 1, 1),
        (64, 1, 32, 1, 28, 3, 1, 0),
        (16, 3, 64, 1, 32, 3, 1, 1),
        (16, 128, 128, 1, 16, 3, 1, 1),
        (16, 256, 256, 1, 8, 3, 1, 1),
        (16, 512, 512, 1, 4, 3, 1, 1),
        (16, 64, 128, 1, 32, 3, 2, 1),
        (16, 64, 128, 1, 32, 1, 2, 0),
        (16, 96, 24, 1, 32, 1, 1, 0),
        (16, 96, 96, 96, 32, 3, 1, 1),
    ]
    for n, c, m, groups, side, kernel, stride, padding in cases:
        (a, x), (w, y) = (
            both(n, c, side, side, requires_grad=True),
            both(m, c // groups, kernel, kernel, requires_grad=True),
        )
        options = {"stride": stride, "padding": padding, "groups": groups}
        out, expected = F.conv2d(a, w, **options), TF.conv2d(x, y, **options)
        g, h = both(*expected.shape)
        label = f"conv2d {n}x{c}x{side}x{side} to {m}, {kernel}x{kernel}"
        label += f", stride {stride}" * (stride > 1) + ", depthwise" * (groups > 1)
        work = expected.numel() * c // groups * kernel * kernel
        ad, wd, xd, yd = a.detach(), w.detach(), x.detach(), y.detach()

        def forward(ad=ad, wd=wd, options=options):
            return F.conv2d(ad, wd, **options)

        def their_forward(xd=xd, yd=yd, options=options):
            return TF.conv2d(xd, yd, **options)

        yield label, work, (forward, their_forward)
        for what, ours, theirs in (("input", a, x), ("weight", w, y)):

            def gradient(out=out, t=ours, g=g):
                return taeda.autograd.grad(out, t, g, retain_graph=True)

            def their_gradient(out=expected, t=theirs, g=h):
                return torch.autograd.grad(out, t, g, retain_graph=True)

            yield f"{label}, {what} gradient", work, (gradient, their_gradient)


def pool() -> Iterator[tuple[str, float, Pair]]:
    """Windows of images."""
    a, x = both(16, 64, 32, 32)
    for name in ("max_pool2d", "avg_pool2d"):
        ours, theirs = getattr(F, name), getattr(TF, name)
        for kernel, stride, padding in ((2, 2, 0), (3, 2, 1), (3, 1, 1)):
            pair = (
                lambda f=ours, k=kernel, s=stride, p=padding: f(a, k, s, p),
                lambda f=theirs, k=kernel, s=stride, p=padding: f(x, k, s, p),
            )
            yield f"{name} {kernel}, stride {stride}", x.numel() * kernel * kernel / stride**2, pair
    yield (
        "adaptive_avg_pool2d 1",
        x.numel(),
        (lambda: F.adaptive_avg_pool2d(a, 1), lambda: TF.adaptive_avg_pool2d(x, 1)),
    )


def attention() -> Iterator[tuple[str, float, Pair]]:
    """Forward, and forward with gradients."""
    for b, h, n, e, causal in (
        (12, 4, 64, 32, True),
        (4, 8, 256, 64, True),
        (4, 8, 256, 64, False),
        (1, 8, 1024, 64, True),
    ):
        pairs = [both(b, h, n, e, requires_grad=True) for _ in range(3)]
        ours, theirs = [p[0] for p in pairs], [p[1] for p in pairs]
        g, k = both(b, h, n, e)
        label = f"attention {b}x{h}x{n}x{e}" + ", causal" * causal

        def forward(inputs=ours, causal=causal):
            with taeda.no_grad():
                return F.scaled_dot_product_attention(*inputs, is_causal=causal)

        def their_forward(inputs=theirs, causal=causal):
            with torch.no_grad():
                return TF.scaled_dot_product_attention(*inputs, is_causal=causal)

        def train(inputs=ours, causal=causal, g=g):
            return taeda.autograd.grad(F.scaled_dot_product_attention(*inputs, is_causal=causal), inputs, g)

        def their_train(inputs=theirs, causal=causal, g=k):
            return torch.autograd.grad(TF.scaled_dot_product_attention(*inputs, is_causal=causal), inputs, g)

        work = 2 * b * h * n * n * e
        yield label, work, (forward, their_forward)
        yield f"{label}, with gradients", 4 * work, (train, their_train)


GROUPS = {"matmul": matmul, "linear": linear, "conv": conv, "pool": pool, "attention": attention}


def compare(ours: Callable[[], object], theirs: Callable[[], object], work: float, rounds: int) -> tuple[list, list]:
    """Seconds per call of each, round by round; short calls are repeated within a round."""
    repeat = max(1, int(2e7 / (work + 1e4)))
    times: tuple[list, list] = ([], [])
    for function in (ours, theirs):
        function()
    for _ in range(rounds):
        for function, into in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            for _ in range(repeat):
                function()
            into.append((time.perf_counter() - start) / repeat)
    return times


def main() -> None:
    """Run the groups that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    if unknown := set(args.groups) - set(GROUPS):
        parser.error(f"no group called {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    taeda.set_num_threads(args.threads)
    torch.set_num_threads(args.threads)
    print(f"{'what':62s} {'taeda':>11s} {'torch':>11s} {'ratio':>6s} {'fastest':>8s}")
    for name in args.groups or GROUPS:
        for label, work, pair in GROUPS[name]():
            ours, theirs = compare(*pair, work, args.rounds)
            ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
            a, b = statistics.median(ours) * 1e6, statistics.median(theirs) * 1e6
            print(f"{label:62s} {a:8.1f} us {b:8.1f} us {ratio:6.2f} {min(ours) / min(theirs):8.2f}", flush=True)


if __name__ == "__main__":
    main()
