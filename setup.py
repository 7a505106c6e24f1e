"""Builds the Cython core. Everything else about the package is in pyproject.toml."""

import ast
import os
import shlex
import shutil
import sys
import sysconfig
import textwrap
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - pip checks it, setup.py is also run by itself
    raise SystemExit(f"taeda needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}.")

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("taeda/_core")
FOLDERS = (CORE, Path("taeda/cuda"), Path("taeda/standin/stable"))
only = os.environ.get("TAEDA_BUILD_ONLY", "").split()  # build some modules alone while working on them
sources = sorted(p for folder in FOLDERS for p in folder.glob("*.pyx") if not only or p.stem in only)
processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: The structs of ``kernel_args.pxd``, and the tuple in a module of ``taeda/kernels`` that names the fields of each.
KERNEL_ARGS = {
    "AlongArgs": "indexing.ALONG_ARGS",
    "ConvArgs": "conv.CONV_ARGS",
    "ConvGeometry": "conv.GEOMETRY",
    "ConvWeightArgs": "conv.WEIGHT_ARGS",
    "DepthwiseArgs": "depthwise.ARGS",
    "DepthwiseWeightArgs": "depthwise.WEIGHT_ARGS",
    "DotArgs": "dot.DOT_ARGS",
    "DotRowsArgs": "dot.ROWS_ARGS",
    "InterleaveArgs": "conv.INTERLEAVE_ARGS",
    "LastArgs": "depthwise_last.LAST_ARGS",
    "MatmulArgs": "gemm.MATMUL_ARGS",
    "PairArgs": "conv_windows.PAIR_ARGS",
    "PanelArgs": "conv_windows.PANEL_ARGS",
    "ProductArgs": "gemm.ELEMENT_ARGS",
    "RowArgs": "indexing.ROW_ARGS",
    "ShortArgs": "short_gemm.PRODUCT_ARGS",
    "ShortPackArgs": "short_gemm.PACK_ARGS",
    "TileArgs": "conv.TILE_ARGS",
    "TransposeArgs": "copy.TRANSPOSE_ARGS",
    "Volume": "conv_windows.VOLUME",
    "WindowsArgs": "conv_windows.WINDOWS_ARGS",
    "WindowsShape": "conv_windows.SHAPE",
    "WindowsWeightArgs": "conv_windows.WEIGHT_ARGS",
    "WinogradArgs": "winograd.WINOGRAD_ARGS",
    "WinogradShape": "winograd.SHAPE",
    "WinogradWeightArgs": "winograd.WEIGHT_ARGS",
}


def constants(path: Path) -> dict:
    """What a module of kernels assigns to names in capitals, as far as it takes no import to know."""
    known: dict = {}
    for step in ast.parse(path.read_text()).body:
        if isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Name) and step.targets[0].id.isupper():
            try:
                known[step.targets[0].id] = eval(compile(ast.Expression(step.value), path.name, "eval"), known)
            except NameError:  # of an import
                continue
    return known


def write_kernel_args() -> None:
    """The arguments of kernels as structs of the core: names and order are those that the kernels declare."""
    text = "# Written by setup.py: the arguments of kernels, as their modules declare them.\n"
    text += "from libc.stdint cimport int64_t\n"
    for struct, place in KERNEL_ARGS.items():
        module, _, name = place.partition(".")
        fields = textwrap.wrap(", ".join(constants(CORE.parent / "kernels" / f"{module}.py")[name]), 90)
        lines = "".join(f"    int64_t {line.rstrip(',')}\n" for line in fields)
        text += f"\ncdef struct {struct}:  # {place}\n{lines}"
    path = CORE / "kernel_args.pxd"
    if not path.exists() or path.read_text() != text:  # else all that uses it would be compiled again
        path.write_text(text)


def check_compiler() -> None:
    """Say so at once where there is no C compiler: what comes before the compiler takes a minute."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if sys.platform != "win32" and shutil.which(shlex.split(command)[0]) is None:
        raise SystemExit(
            f"taeda needs a C compiler to build, and there is no '{shlex.split(command)[0]}' here: install one (on "
            "Debian: apt install gcc libc6-dev), or name yours in the environment variable CC."
        )


class Build(build_ext):
    """Turns Cython into C, when that is to be compiled, and compiles the modules side by side, the longest first."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or processors

    def run(self):
        check_compiler()
        write_kernel_args()
        from Cython.Build import cythonize

        made = cythonize(
            self.extensions,
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
        )
        sources_by_name = {extension.name: extension.sources for extension in made}
        for extension in self.extensions:
            extension.sources = sources_by_name[extension.name]
        self.extensions.sort(key=lambda extension: -os.path.getsize(extension.sources[0]))
        super().run()


#: Compiled with -O2: what every small call runs. A call of the other modules' takes 1 to 2 % longer with -O1, and the
#: compiler 0.6 of the time; with -O1 here, `a + b` would take 1.3 times as long.
HOT = (
    "_native engine fusion gemm guard indexing launching memory module passes plan planners planning pool program "
    "random recorder reduce replay rowwise short_gemm tensor recompute"
).split()


def extension(path: Path) -> Extension:
    level = "-O2" if path.stem in HOT else "-O1"
    # -g0: Python's own flags ask for debug information, which is four fifths of a library of Cython's
    flags = [level, "-g0", "-fno-strict-aliasing", "-fvisibility=hidden", "-Wno-unused-function"]
    if sys.platform == "linux":
        flags.append("-fno-plt")  # calls of Python's functions take one jump
    linking = ["-pthread"]  # pthread_atfork: glibc before 2.34 has it in a library of its own
    if sys.platform == "linux":
        linking.append("-s")  # names of functions that no other library sees are a seventh of a library
    # libraries call its functions; a part is C++, and the module is left out where there is no compiler for that
    seen = path.parent.name == "stable"
    if seen:
        flags.remove("-fvisibility=hidden")
    flags, linking = ([], []) if sys.platform == "win32" else (flags, linking)
    name = ".".join(path.with_suffix("").parts)
    return Extension(name, [path.as_posix()], extra_compile_args=flags, extra_link_args=linking, optional=seen)


setup(cmdclass={"build_ext": Build}, ext_modules=[extension(path) for path in sources])
