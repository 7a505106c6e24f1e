"""What NVIDIA's assembler says to the kernels of a program.

TAEDA_CUDA=tests.cuda.emulator TAEDA_EMULATOR_KEEPS=FOLDER python program.py
python -m tests.cuda.ptxas FOLDER [ARCHITECTURE ...]

It takes ``ptxas`` from the path or from the package ``nvidia-cuda-nvcc``. No GPU is needed. A line for each architecture
says how many kernels it takes, how many spill registers, how many have memory of a thread (a stack), and the most
registers. The exit code is 1 if a kernel is refused.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from taeda.kernels.build import cache_dir, read_entry, write_entry

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


@functools.cache
def version(ptxas: str) -> str:
    return subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout


def assemble(ptxas: str, text: bytes, architecture: str) -> Report:
    """What ``ptxas`` says to one kernel. It is kept in the cache of taeda's kernels."""
    digest = hashlib.sha256(f"{version(ptxas)}\n{architecture}\n".encode() + text).hexdigest()[:32]
    path = cache_dir() / "ptxas" / digest[:2] / digest
    said = (read_entry(path) or b"").decode()
    if not said:
        with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
            file.write(text)
            file.flush()
            done = subprocess.run(
                [ptxas, "-v", f"-arch={architecture}", file.name, "-o", "/dev/null"], capture_output=True, text=True
            )
        said = done.stdout + done.stderr
        if done.returncode:
            return Report(said.strip() or "no reason given", 0, 0, 0)
        write_entry(path, said.encode())
    stack, stores, loads = map(int, re.findall(r"(\d+) bytes (?:stack frame|spill)", said)[:3])
    return Report("", stack, stores + loads, max(map(int, re.findall(r"Used (\d+) registers", said))))


def kernels(folder: str | Path) -> dict[str, bytes]:
    """The PTX in a folder, by the names of the entries."""
    texts = (path.read_bytes() for path in sorted(Path(folder).glob("*.ptx")))
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
