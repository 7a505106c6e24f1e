"""Facts about the machine for a bug report: ``python -m taeda.utils.collect_env``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "SystemEnv", "get_cpu_info", "get_env_info", "get_gcc_version", "get_gpu_info", "get_nvidia_driver_version",
    "get_pretty_env_info", "main", "run",
]  # fmt: skip

#: Packages that taeda needs, and packages that it uses if they are installed.
_PACKAGES = ("numpy", "llvmlite", "scipy-openblas32", "scipy", "safetensors", "onnx", "tensorboard", "mpi4py", "torch")


class SystemEnv(NamedTuple):
    """The answers."""

    taeda_version: str
    python_version: str
    os: str
    cpu: str
    threads: int
    packages: dict[str, str]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def get_env_info() -> SystemEnv:
    """Versions, processor and threads."""
    from .._core import get_num_threads
    from .._version import __version__
    from ..kernels.target import processor

    packages = {name: _version(name) for name in _PACKAGES}
    return SystemEnv(
        __version__, sys.version.replace("\n", " "), platform.platform(),
        f"{processor()} ({os.cpu_count()} processors)", get_num_threads(), packages,
    )  # fmt: skip


def get_pretty_env_info() -> str:
    """:func:`get_env_info` as text."""
    info = get_env_info()
    lines = [
        f"taeda version: {info.taeda_version}", f"Python version: {info.python_version}", f"OS: {info.os}",
        f"CPU: {info.cpu}", f"Threads: {info.threads}",
        *(f"{name}: {version}" for name, version in info.packages.items()),
    ]  # fmt: skip
    return "\n".join(lines)


def run(command: str | list[str]) -> tuple[int, str, str]:
    """The exit status of a command, and what it printed; text is a line for the shell."""
    done = subprocess.run(command, capture_output=True, text=True, shell=isinstance(command, str))
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def _first_match(run_lambda: Callable, command: str, pattern: str) -> str | None:
    status, printed, _ = run_lambda(command)
    found = None if status else re.search(pattern, printed)
    return found[1] if found else None


def get_cpu_info(run_lambda: Callable) -> str:
    """Description of the processor by the system, by a function like :func:`run`."""
    status, printed, errors = run_lambda("sysctl -n machdep.cpu.brand_string" if sys.platform == "darwin" else "lscpu")
    return errors if status else printed


def get_gpu_info(run_lambda: Callable) -> str | None:
    """The GPUs of NVIDIA, one a line; None if there are none."""
    status, printed, _ = run_lambda("nvidia-smi -L")
    return None if status else re.sub(r" \(UUID: .+?\)", "", printed)


def get_nvidia_driver_version(run_lambda: Callable) -> str | None:
    """The version of NVIDIA's driver, or None."""
    return _first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_gcc_version(run_lambda: Callable) -> str | None:
    """Text of ``gcc --version`` after the name, or None."""
    return _first_match(run_lambda, "gcc --version", r"gcc (.*)")


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
