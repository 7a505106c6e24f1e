"""Builds the Cython core. Everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("taeda/_core")
only = os.environ.get("TAEDA_BUILD_ONLY", "").split()  # build some modules alone while working on them
sources = sorted(p for p in CORE.glob("*.pyx") if not only or p.stem in only)
processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Build(build_ext):
    """Compiles the modules side by side, the longest first."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or processors
        self.extensions.sort(key=lambda extension: -os.path.getsize(extension.sources[0]))


#: Compiled with -O2: what every small call runs. A call of the other modules' takes 1 to 2 % longer with -O1, and the
#: compiler 0.6 of the time; with -O1 here, `a + b` would take 1.3 times as long.
HOT = (
    "engine fusion gemm guard indexing launching memory module passes plan planners pool random recorder reduce replay "
    "rowwise short_gemm tensor twins"
).split()


def extension(path: Path) -> Extension:
    level = "-O2" if path.stem in HOT else "-O1"
    # -g0: Python's own flags ask for debug information, which is four fifths of a library of Cython's
    flags = [level, "-g0", "-fno-strict-aliasing", "-fvisibility=hidden", "-Wno-unused-function"]
    linking = ["-pthread"]  # pthread_atfork: glibc before 2.34 has it in a library of its own
    flags, linking = ([], []) if sys.platform == "win32" else (flags, linking)
    return Extension(f"taeda._core.{path.stem}", [path.as_posix()], extra_compile_args=flags, extra_link_args=linking)


setup(
    cmdclass={"build_ext": Build},
    ext_modules=cythonize(
        [extension(path) for path in sources],
        nthreads=0 if sys.platform == "win32" else processors,
        compiler_directives={
            "language_level": "3",
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": False,
            "allow_none_for_extension_args": False,  # a function that reads a Tensor's fields is never given None
        },
    ),
)
