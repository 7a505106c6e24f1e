"""What NVIDIA's assembler says to the kernels in a folder of the kernel cache.

TAEDA_CACHE=FOLDER python program.py; python -m tests.cuda.ptxas FOLDER [ARCHITECTURE ...]

It takes ``ptxas`` from the path or from the package ``nvidia-cuda-nvcc``. No GPU is needed. A line for each architecture
says how many kernels it takes, how many spill registers, how many have memory of a thread (a stack), and the most
registers. The exit code is 1 if a kernel is refused.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from taeda.kernels.build import read_entry

#: Ampere, Hopper, and Blackwell for data centres and for desks.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")


class Report(NamedTuple):
    """Of one kernel: what was refused, bytes of the stack, bytes that are spilled, registers."""

    refused: str
    stack: int
    spilled: int
    registers: int


def find() -> str | None:
    """Where ``ptxas`` is; None: nowhere."""
    found = shutil.which("ptxas")
    spec = importlib.util.find_spec("nvidia")
    folders = [] if found or spec is None else list(spec.submodule_search_locations or ())
    return found or next((str(p) for f in folders for p in Path(f).glob("*/bin/ptxas")), None)


def assemble(ptxas: str, text: bytes, architecture: str) -> Report:
    """What ``ptxas`` says to one kernel."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            [ptxas, "-v", f"-arch={architecture}", file.name, "-o", "/dev/null"], capture_output=True, text=True
        )
    said = done.stdout + done.stderr
    if done.returncode:
        return Report(said.strip() or "no reason given", 0, 0, 0)
    stack, stores, loads = map(int, re.findall(r"(\d+) bytes (?:stack frame|spill)", said)[:3])
    return Report("", stack, stores + loads, max(map(int, re.findall(r"Used (\d+) registers", said))))


def kernels(folder: str | Path) -> dict[str, bytes]:
    """The PTX in a folder of the kernel cache, by the names of the entries."""
    texts = filter(None, map(read_entry, sorted(Path(folder).rglob("*.ptx"))))
    return {re.search(rb"\.entry (\w+)", text)[1].decode(): text for text in texts}  # type: ignore[index]


def main(folder: str, architectures: list[str]) -> int:
    ptxas, found, refused = find(), kernels(folder), 0
    if ptxas is None:
        sys.exit("ptxas was not found: pip install nvidia-cuda-nvcc")
    if not found:
        sys.exit(f"{folder} has no kernels for CUDA")
    for architecture in architectures:
        reports = {name: assemble(ptxas, text, architecture) for name, text in found.items()}
        for name, report in reports.items():
            if report.refused:
                print(f"{architecture} refuses {name}: {report.refused}")
        bad, spill, stack = (sum(x > 0 for x in column) for column in zip(
            *((len(r.refused), r.spilled, r.stack) for r in reports.values()), strict=True
        ))  # fmt: skip
        refused += bad
        most = max(r.registers for r in reports.values())
        print(f"{architecture}: {len(reports) - bad} of {len(reports)} kernels; {spill} spill, {stack} have a stack, at most "
              f"{most} registers")  # fmt: skip
    return min(refused, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] or list(ARCHITECTURES)))
