"""Facts about the machine for a bug report: ``python -m taeda.utils.collect_env``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import NamedTuple

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

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


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
