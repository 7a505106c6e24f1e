"""Builds the Cython core. Everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

CORE = Path("taeda/_core")
only = os.environ.get("TAEDA_BUILD_ONLY", "").split()  # build some modules alone while working on them
sources = sorted(p for p in CORE.glob("*.pyx") if not only or p.stem in only)

# -g0: Python's own flags ask for debug information, which is four fifths of a library of Cython's
flags = ["-O2", "-g0", "-fno-strict-aliasing", "-fvisibility=hidden", "-Wno-unused-function"]
flags = [] if sys.platform == "win32" else flags
extensions = [Extension(f"taeda._core.{path.stem}", [path.as_posix()], extra_compile_args=flags) for path in sources]
setup(
    ext_modules=cythonize(
        extensions,
        nthreads=0 if sys.platform == "win32" else os.cpu_count() or 1,
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": False,
            "allow_none_for_extension_args": False,  # a function that reads a Tensor's fields is never given None
        },
    )
)
