"""The machine that kernels are compiled for: triple, CPU, features and the width of a vector register."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .forks import loading


@dataclass(frozen=True)
class Target:
    """A compilation target. ``key`` names it in the cache; ``cpu`` and ``features`` are LLVM's spellings."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    #: For a target of another machine: takes a kernel's text and a function that writes it again, and gives a number.
    loads: Callable[[Any, Callable[[], Any]], int] | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        return f"{self.triple}|{self.cpu}|{self.features}"


X86_64_AVX2 = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "", 32)
X86_64_AVX512 = Target("x86_64-unknown-linux-gnu", "x86-64-v4", "", 64)
ARM64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 16)
PTX = Target("nvptx64-nvidia-cuda", "sm_90", "+ptx80", 4)


def _cpu_line(name: str) -> list[str]:
    """The words of a line of /proc/cpuinfo, if there is one; else nothing."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(name):
                    return line.split(":", 1)[1].split()
    except OSError:
        pass
    return []


def _cpu_flags() -> frozenset[str]:
    return frozenset(_cpu_line("flags"))


def vendor() -> str:
    """The maker of the processor, by its x86 name, where that is known."""
    return " ".join(_cpu_line("vendor_id"))


@functools.cache
def processor() -> str:
    """The maker's name of the processor, where that is known."""
    return " ".join(_cpu_line("model name")) or platform.processor()


@functools.cache
def host() -> Target:
    """The machine that this process runs on, at a published level (x86-64-v2, v3, v4) so that caches can be shared.

    ``TAEDA_TARGET`` (``avx2`` or ``avx512``) overrides the detected level, for tests. With ``arm64`` kernels are those
    of arm64, with 16-byte vectors, though they run here: libraries for arm64 are planned in this way. With ``lane``
    they have no vectors, as those of devices that compute an element per thread: their results are compared with these.
    Where the threads of a warp share a row, such kernels have vectors of as many lanes (``rowwise.py``).
    """
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin", "Windows": "pc-windows-msvc"}
    tail = system.get(platform.system(), "unknown-linux-gnu")
    if platform.machine().lower() in ("arm64", "aarch64"):
        return Target(f"aarch64-{tail}", "generic", "+neon", 16)
    triple = f"x86_64-{tail}"
    flags = _cpu_flags()
    if not flags:
        with loading:
            import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features()
        flags = frozenset(name.replace(".", "_") for name, on in features.items() if on)
    level = os.environ.get("TAEDA_TARGET", "")
    extra = [f"+{ours}" for ours, theirs in _EXTENSIONS if theirs in flags]
    v4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    if level == "arm64":
        return Target(triple, "x86-64-v3" if "avx2" in flags else "x86-64-v2", "", 16)
    if level == "lane":
        return _without_vectors(_detected(triple, flags, extra, v4))
    return _detected(triple, flags, extra, v4, level)


def _detected(triple: str, flags: frozenset[str], extra: list[str], v4: set[str], level: str = "") -> Target:
    if level != "avx2" and v4 <= flags:
        return Target(triple, "x86-64-v4", ",".join(["-prefer-256-bit", *extra]), 64)
    if {"avx2", "fma", "f16c"} <= flags:
        return Target(triple, "x86-64-v3", "", 32)
    return Target(triple, "x86-64-v2", "", 16)


def _without_vectors(target: Target) -> Target:
    """``target`` for kernels that compute one element at a time."""
    return Target(target.triple, target.cpu, target.features, 4)


def one_lane() -> Target:
    """This machine, for kernels that compute one element at a time."""
    return _without_vectors(host())


#: The targets of registered devices, by number.
DEVICE_TARGETS: dict[int, Target] = {}

#: The number of the device that this thread's kernels are built for; the core sets it with the first device.
place: Callable[[], int] = int


def _no_devices(number: int, name: str, args: tuple, compile: Callable[[], int]) -> int:
    raise NotImplementedError(f"{name}: there is no device number {number}")


#: The kernel of a device by the device's number; set likewise.
build_there: Callable[[int, str, tuple, Callable[[], int]], int] = _no_devices


def here() -> Target:
    """The target of kernels for this thread's place."""
    number = place()
    return DEVICE_TARGETS[number] if number else host()


#: Instruction sets beyond x86-64-v4 that kernels may use: LLVM's name and the kernel's.
_EXTENSIONS = (("avx512bf16", "avx512_bf16"), ("avx512vnni", "avx512_vnni"), ("avx512vbmi", "avx512vbmi"))


@functools.cache
def amx() -> frozenset[str]:
    """The AMX extensions (LLVM's names) that this process may use: Linux grants the tile registers on request."""
    level = os.environ.get("TAEDA_TARGET", "")
    found = {ours for ours, theirs in (("amx-bf16", "amx_bf16"), ("amx-int8", "amx_int8")) if theirs in _cpu_flags()}
    if not found or level or platform.system() != "Linux" or platform.machine() != "x86_64":
        return frozenset()
    import ctypes

    arch_prctl, request_permission, tile_data = 158, 0x1023, 18  # Documentation/arch/x86/xstate.rst in Linux
    refused = ctypes.CDLL(None).syscall(arch_prctl, request_permission, tile_data)
    return frozenset() if refused else frozenset(found)
