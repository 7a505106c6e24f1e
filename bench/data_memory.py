"""Resident memory of a DataLoader with two workers over many batches: ``python bench/data_memory.py [--batches n]``.

Printed are the resident sizes of the loader's process and of its workers after a first thousand batches and at the end,
and the growth in between. Some batches are held for a while, as programs do.
"""

from __future__ import annotations

import argparse
import gc
from collections import deque
from pathlib import Path

import taeda
from taeda.utils.data import DataLoader, Dataset


class Images(Dataset):
    """Made up images with labels, of slightly different costs."""

    def __init__(self, n: int):
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> dict:
        return {"image": taeda.full((3, 16, 16), float(i % 7)), "label": i % 10, "name": f"{i}.png"}


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def main() -> None:
    """Print the sizes and the growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    options = parser.parse_args()
    import os

    batches = iter(DataLoader(Images(32 * options.batches), 32, num_workers=2))
    pids = [os.getpid(), *(w.process.pid for w in batches._workers)]
    held: deque = deque(maxlen=20)
    sizes = []
    for number, batch in enumerate(batches, 1):
        held.append(batch)
        if number in (min(1000, options.batches // 2), options.batches - 8):
            gc.collect()
            sizes.append([resident(pid) for pid in pids])
    for name, first, last in zip(("loader", "worker 0", "worker 1"), *sizes, strict=True):
        print(f"{name:10s} {first / 2**20:8.1f} MB {last / 2**20:8.1f} MB {100 * (last - first) / first:+6.2f} %")
    first, last = map(sum, sizes)
    print(f"{'all':10s} {first / 2**20:8.1f} MB {last / 2**20:8.1f} MB {100 * (last - first) / first:+6.2f} %")


if __name__ == "__main__":
    main()
