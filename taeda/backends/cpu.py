"""The CPU's instruction set."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The vector instructions that kernels are compiled for: "AVX512", "AVX2" or "DEFAULT"."""
    from ..kernels.target import host

    return {64: "AVX512", 32: "AVX2"}.get(host().vector_bytes, "DEFAULT")
