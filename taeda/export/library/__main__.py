"""``python -m taeda.export.library program.pt2 model.so name target inside``: what `build` starts for another
machine."""

from __future__ import annotations

import sys
from pathlib import Path

from taeda.kernels.target import ARM64, host

from .._archive import load
from .write import write_library

if __name__ == "__main__":
    program, path, name, target, weights = sys.argv[1:]
    machine = ARM64 if target == "arm64" else host()
    write_library(load(program), Path(path), None, None, name, machine, weights == "beside")
