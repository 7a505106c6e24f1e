"""Check a machine's GPU: ``python -m taeda.cuda.check [--seconds S] [--out DIR]``.

Parts run one after the other, and each line is written to ``DIR/report.txt`` as it ends: what the machine has; the
results of kernels beside those of the CPU; training beside the CPU's; memory, streams, running out of memory; bandwidth
of kernels over that of a copy, the rate of products, and the cost of a launch. Without a GPU the report says that
nothing was run. On an emulated driver times are those of the emulation, and marked so.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import taeda
from taeda import cuda, nn
from taeda.nn import functional as F

from . import _contract, _driver

EMULATED = bool(os.environ.get("TAEDA_CUDA"))


class Report:
    """Lines to a file and the screen, with the number of what failed."""

    def __init__(self, folder: Path, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = open(folder / "report.txt", "w")  # noqa: SIM115
        self.end = time.monotonic() + seconds
        self.failed = 0

    def say(self, text: str) -> None:
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def part(self, title: str, share: float, lines: Callable[[], Iterator[tuple[bool, str]]]) -> None:
        """A part, with a share of the time that is left: ``(whether it is right, what)`` for each line."""
        self.say(f"\n{title}")
        now = time.monotonic()
        if now > self.end:
            self.say("  not run: the time was over")
            return
        end = now + share * (self.end - now)
        try:
            for right, text in lines():
                self.failed += not right
                self.say(f"  {'' if right else 'WRONG: '}{text}")
                if time.monotonic() > end:
                    self.say("  the rest was not run: the time was over")
                    return
        except Exception as error:
            self.failed += 1
            self.say(f"  WRONG: {type(error).__name__}: {str(error)[:400]}")


# ---- the parts -------------------------------------------------------------------------------------------------------


def machine() -> Iterator[tuple[bool, str]]:
    version = _driver.get(_driver.INT, "cuDriverGetVersion")
    yield True, f"driver for CUDA {version // 1000}.{version % 1000 // 10}{' (emulated)' if EMULATED else ''}"
    yield True, f"taeda {taeda.__version__}, Python {platform.python_version()}, {platform.platform()}"
    for index in range(cuda.device_count()):
        yield True, repr(cuda.get_device_properties(index))
    yield True, f"libraries: {', '.join(_contract.libraries())}"


def close(a: Any, b: Any) -> tuple[bool, str]:
    """Whether two tensors agree, and how."""
    a, b = a.detach().cpu(), b.detach().cpu()
    if a.dtype == b.dtype and a.shape == b.shape and a.equal(b):
        return True, "the same bits"
    if a.shape != b.shape or a.dtype != b.dtype:
        return False, f"{a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
    tolerance = {taeda.float16: 4e-3, taeda.bfloat16: 3e-2, taeda.float64: 1e-11}.get(a.dtype, 1e-4)
    far = ((a.double() - b.double()).abs() / (b.double().abs() + 1)).max().item()
    return far <= tolerance, f"within {far:.1e}"


def _forms() -> dict[str, Callable]:
    return {
        "add": lambda x, y: x + y,
        "exp, sin, erf": lambda x, y: x.exp() + y.sin() * x.erf(),
        "a strided sum": lambda x, y: x.t()[::2] + y.t()[::2],
        "sum, mean, var": lambda x, y: taeda.stack([x.sum(0), y.mean(0), x.var(0)]),
        "argmax": lambda x, y: x.argmax(1),
        "softmax": lambda x, y: x.softmax(-1),
        "layer_norm": lambda x, y: F.layer_norm(x, x.shape[-1:]),
        "cumsum": lambda x, y: x.cumsum(1),
        "matmul": lambda x, y: x @ y.t(),
        "aligned products": lambda x, y: x[:, :32].contiguous() @ y[:16, :32].contiguous().t(),
        "batched products": lambda x, y: x[None] @ y.t().expand(3, 33, 24),
        "dense layer": lambda x, y: F.linear(x, y, y[:, 0]),
        "gather": lambda x, y: x.gather(1, y.abs().long() % x.shape[1]),
        "index_add": lambda x, y: x.index_add(0, taeda.arange(x.shape[0], device=x.device).flip(0), y),
        "sort": lambda x, y: x.sort(1).values,
        "topk": lambda x, y: x.topk(3, 1).values,
        "where": lambda x, y: taeda.where(x > y, x, y),
        "cat": lambda x, y: taeda.cat([x, y], 1),
        "conv1d": lambda x, y: F.conv1d(x[None, None].flatten(2), y[:1, None, :5]),
        "attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None]),
        "cross_entropy": lambda x, y: F.cross_entropy(x, taeda.arange(x.shape[0], device=x.device) % x.shape[1]),
        "rfft": lambda x, y: taeda.fft.rfft(x.float()).abs(),
        "inverse": lambda x, y: taeda.linalg.inv(x[:16, :16].double() + 20 * taeda.eye(16, device=x.device)),
    }


def results() -> Iterator[tuple[bool, str]]:
    """Kernels on samples, forward and backward, beside the CPU's; twice, for the same bits."""
    for dtype in (taeda.float32, taeda.float16):
        taeda.manual_seed(0)
        given = [taeda.randn(24, 33, dtype=taeda.float32).to(dtype) for _ in range(2)]
        for name, form in _forms().items():
            if dtype is taeda.float16 and name in ("inverse", "index_add"):
                continue
            outcomes = []
            for device in ("cpu", "cuda", "cuda"):
                x, y = (t.to(device).requires_grad_() for t in given)
                made = form(x, y)
                found = [made]
                if made.requires_grad:
                    found += [
                        g for g in taeda.autograd.grad(made.float().sum(), (x, y), allow_unused=True) if g is not None
                    ]
                outcomes.append([t.cpu() for t in found])
            here, there, again = outcomes
            compared = [close(a, b) for a, b in zip(there, here, strict=True)]
            repeats = all(a.equal(b) for a, b in zip(there, again, strict=True))
            worst = max((text for _, text in compared), key=lambda text: text != "the same bits")
            right = all(ok for ok, _ in compared) and repeats
            yield right, f"{name}, {dtype}: {worst}{'' if repeats else ', and other bits the second time'}"


def training() -> Iterator[tuple[bool, str]]:
    """Losses of a few steps beside the CPU's."""

    def mlp() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def convolutions() -> nn.Module:
        return nn.Sequential(nn.Unflatten(1, (1, 2, 4)), nn.Conv2d(1, 8, 2), nn.ReLU(), nn.Flatten(), nn.Linear(24, 4))

    for make in (mlp, convolutions):
        losses = []
        for device in ("cpu", "cuda"):
            taeda.manual_seed(0)
            model, x, y = make(), taeda.randn(16, 8), taeda.arange(16) % 4
            model, x, y = model.to(device), x.to(device), y.to(device)
            optimizer, found = taeda.optim.AdamW(model.parameters(), lr=1e-2), []
            for _ in range(5):
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
            losses.append(found)
        here, there = losses
        right = all(abs(a - b) <= 1e-4 * abs(a) for a, b in zip(here, there, strict=True)) and there[-1] < there[0]
        yield right, f"{make.__name__}: {there[0]:.4f} to {there[-1]:.4f}, on the CPU {here[-1]:.4f}"


def memory() -> Iterator[tuple[bool, str]]:
    """The allocator, streams, pinned copies, and a program that ran out of memory."""
    before = cuda.memory_allocated()
    x = taeda.ones(1000, device="cuda")
    yield cuda.memory_allocated() - before == 4096, "memory is counted"
    stream = cuda.Stream()
    stream.wait_stream(cuda.current_stream())
    with cuda.stream(stream):
        y = x * 3
    x.record_stream(stream)
    del x
    z = taeda.full((1000,), 7.0, device="cuda")
    stream.synchronize()
    yield y.tolist() == [3.0] * 1000 and z.tolist() == [7.0] * 1000, "streams keep memory that they use"
    a = taeda.arange(1000.0).pin_memory()
    yield a.to("cuda", non_blocking=True).cpu().equal(a), "pinned memory is copied"
    try:
        taeda.empty(1 << 50, device="cuda")
        yield False, "2**50 elements were given"
    except cuda.OutOfMemoryError:
        yield (z + 1).tolist() == [8.0] * 1000, "the program goes on after it ran out of memory"
    g = taeda.Generator("cuda").manual_seed(0)
    drawn = taeda.rand(4, device="cuda", generator=g).tolist()
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # Philox of zeros, as published
    yield drawn == [(w & 0xFFFFFF) / 2**24 for w in words], "random numbers are Philox's"


def timed(function: Callable, times: int) -> float:
    """Median seconds of a call on the device."""
    function()
    found = []
    for _ in range(5):
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            function()
        cuda.synchronize()
        found.append((time.perf_counter() - start) / times)
    return statistics.median(found)


def speed() -> Iterator[tuple[bool, str]]:
    """Bytes a second of kernels over those of a copy of the same size, products, and the cost of a launch."""
    n, times = (1 << 14, 1) if EMULATED else (1 << 26, 20)
    note = " (time of the emulation)" if EMULATED else ""
    x, y, out = (taeda.ones(n, device="cuda") for _ in range(3))
    square = x.reshape(-1, 128 if EMULATED else 4096)
    copy = 8 * n / timed(lambda: out.copy_(x), times)
    yield True, f"copy: {copy / 1e9:.1f} GB/s{note}"
    for name, nbytes, function in (
        ("add", 12, lambda: taeda.add(x, y, out=out)),
        ("exp", 8, lambda: taeda.exp(x, out=out)),
        ("transposed copy", 8, lambda: square.t().contiguous()),
        ("sum of rows", 4, lambda: square.sum(1)),
        ("sum of columns", 4, lambda: square.sum(0)),
        ("softmax", 8, lambda: square.softmax(-1)),
        ("random numbers", 4, lambda: out.uniform_()),
    ):
        rate = nbytes * n / timed(function, times)
        yield True, f"{name}: {rate / 1e9:.1f} GB/s, {rate / copy:.2f} of a copy{note}"
    side = 64 if EMULATED else 4096
    for dtype in (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16):
        a = taeda.randn(side, side, device="cuda").to(dtype)
        rate = 2 * side**3 / timed(lambda a=a: a @ a.t(), times)
        yield True, f"product of {side} x {side}, {dtype}: {rate / 1e12:.3f} TFLOP/s{note}"
    small = taeda.ones(8, device="cuda")
    yield (
        True,
        f"a + b of 8 elements, one after the other: {timed(lambda: small + small, times * 50) * 1e6:.2f} us{note}",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=480, help="begin no new line after so many seconds")
    parser.add_argument("--out", type=Path, default=Path("cuda_check"), help="folder of the report")
    args = parser.parse_args()
    report = Report(args.out, args.seconds)
    report.say(f"taeda on CUDA, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC{', EMULATED' if EMULATED else ''}")
    if not cuda.is_available():
        report.say(f"not run: there is no GPU, as {_contract.why_none()}")
        return 2
    for title, share, lines in (
        ("Machine", 1.0, machine),
        ("Memory, streams, random numbers", 1.0, memory),
        ("Results beside the CPU's", 0.5, results),
        ("Training beside the CPU's", 0.6, training),
        ("Speed", 1.0, speed),
    ):
        report.part(title, share, lines)
    report.say(f"\n{report.failed} wrong")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
