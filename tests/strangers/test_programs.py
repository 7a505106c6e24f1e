"""Training programs on strangers' packages, run under the stand-in. They give the numbers that PyTorch gave.

The programs are in ``programs``, the numbers in ``expected``. ``python tests/strangers/test_programs.py`` writes them
anew; it has to run where PyTorch and the packages of ``requirements.txt`` are installed.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
LINE = re.compile(r"([A-Za-z][\w ]*):((?: -?[\d.]+(?:e[-+]\d+)?)+)")

#: The installed packages whose numbers a program prints, where its name does not begin with theirs.
PACKAGES = {
    "geometric": "torch-geometric", "sentence": "sentence-transformers", "xtransformers": "x-transformers",
}  # fmt: skip


def pinned():
    """The versions that the numbers are of."""
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return dict(line.split("#")[0].strip().split("==") for line in lines if "==" in line.split("#")[0])


def package_of(program):
    first = program.stem.partition("_")[0]
    return PACKAGES.get(first, first)


def run(program, *how):
    """The labelled lines of numbers that a program prints."""
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *how, str(program)], capture_output=True, text=True, env={**os.environ, **offline}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = (LINE.fullmatch(line.strip()) for line in done.stdout.splitlines())
    return [(line[1], [float(number) for number in line[2].split()]) for line in found if line]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_gives_the_numbers_of_pytorch(program):
    package = package_of(program)
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    lines = run(program, "-m", "taeda.standin")
    assert lines
    if version != pinned()[package]:
        return  # another version need not give the same numbers
    expected = (HERE / "expected" / f"{program.stem}.txt").read_text().splitlines()
    for line, (label, numbers) in zip(expected, lines, strict=True):
        theirs = LINE.fullmatch(line)
        assert label == theirs[1]
        assert numbers == pytest.approx([float(number) for number in theirs[2].split()], rel=1e-3, abs=1e-4), label


if __name__ == "__main__":
    (HERE / "expected").mkdir(exist_ok=True)
    for one in [p for p in PROGRAMS if not sys.argv[1:] or p.stem in sys.argv[1:]]:
        text = "".join(f"{label}: {' '.join(f'{n:.7g}' for n in numbers)}\n" for label, numbers in run(one))
        (HERE / "expected" / f"{one.stem}.txt").write_text(text)
        print(one.stem)
