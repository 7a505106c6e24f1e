"""Shared libraries of ``taeda.export.build`` against the same models compiled: time, size of the code, time to build.

    python bench/library.py                   # --threads 1, --rounds 10, --only ResNet, --cpu

Both run in one process, in turns: in each round as many calls of one, a pause, then of the other. The time is that of
the quickest call. Results must be the same bits. The code is the library without its weights.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import taeda
from taeda import nn
from taeda.export import build

BAR, CODE_BAR = 1.02, 3.0  # of the compiled model's time; MB


class Block(nn.Module):
    """Two convolutions and a way around them (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.around = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.around = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return taeda.relu(self.body(x) + self.around(x))


def resnet18() -> nn.Module:
    """ResNet-18 with 1000 classes."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(inputs, outputs, 1 if outputs == 64 else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def digits() -> nn.Module:
    """The layers of examples/digits.py."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "ResNet-18, 1 x 224 x 224": (resnet18, (1, 3, 224, 224)),
    "ResNet-18, 8 x 224 x 224": (resnet18, (8, 3, 224, 224)),
    "digits, 64 x 8 x 8": (digits, (64, 1, 8, 8)),
    "MLP 20-64-5, 1 row": (lambda: nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5)), (1, 20)),
    "encoder layer, 8 x 64 x 256": (lambda: nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), (8, 64, 256)),
}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


def _struct(x: np.ndarray) -> _Tensor:
    return _Tensor(x.ctypes.data, 1, x.ndim, (ctypes.c_int64 * x.ndim)(*x.shape))


def quickest(call: Callable[[], Any], seconds: float, clock: Callable[[], float]) -> float:
    """The time of the quickest call within so many seconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


def compare(name: str, threads: int, rounds: int, clock: Callable[[], float], folder: Path) -> str:
    """A row of the table."""
    make, sizes = CASES[name]
    taeda.manual_seed(0)
    model, x = make().eval(), taeda.randn(sizes)
    start = time.perf_counter()
    build(model, folder / "model.so", (x,), weights="beside")
    built = time.perf_counter() - start
    library = ctypes.CDLL(str(folder / "model.so"))
    assert library.model_load(bytes(folder / "model.weights")) == 0
    library.model_set_threads(ctypes.c_int64(threads))
    compiled = taeda.compile(model, mode="reduce-overhead")
    with taeda.no_grad():
        for _ in range(4):
            expected = compiled(x).numpy()
        out = np.zeros_like(expected)
        ins, outs, one = _struct(x.numpy()), _struct(out), ctypes.c_int64(1)
        ours = lambda: library.model_run(ctypes.byref(ins), one, ctypes.byref(outs), one)  # noqa: E731
        assert ours() == 0 and np.array_equal(out, expected), f"{name}: results differ"
        times = [float("inf"), float("inf")]
        for _ in range(rounds):
            for i, call in enumerate((ours, lambda: compiled(x))):
                time.sleep(0.01)  # threads of the other sleep by then
                times[i] = min(times[i], quickest(call, 0.3, clock))
    ratio, code = times[0] / times[1], (folder / "model.so").stat().st_size / 1e6
    mark = "" if ratio <= BAR and code <= CODE_BAR else ", no"
    numbers = f"{times[0] * 1e3:.3f} ms | {times[1] * 1e3:.3f} ms | {ratio:.3f} ({BAR}{mark})"
    return f"| {name} | {threads} | {numbers} | {code:.2f} MB | {built:.1f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=taeda.get_num_threads())
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu", action="store_true", help="time of the processor: for one thread on a busy machine")
    args = parser.parse_args()
    taeda.set_num_threads(args.threads)
    clock = time.process_time if args.cpu else time.perf_counter
    print(
        "| model | threads | library | compiled | ratio | code | build |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for name in CASES:
        if args.only in name:
            with tempfile.TemporaryDirectory() as folder:
                print(compare(name, args.threads, args.rounds, clock, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
