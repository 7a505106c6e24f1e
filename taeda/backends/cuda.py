"""Choices among CUDA kernels. There are none but those for attention, which hold on the CPU as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from ..ops.attention import ALLOWED

__all__ = [
    "cudnn_sdp_enabled", "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "is_built", "math_sdp_enabled", "matmul",
    "mem_efficient_sdp_enabled", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip

#: ``allow_tf32`` and its kin: reduced precision that the GPU may use in products.
matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False, fp32_precision="none",
)  # fmt: skip
cufft_plan_cache = SimpleNamespace(size=0, max_size=0, clear=lambda: None)


def is_built() -> bool:
    """Whether this build knows CUDA: False."""
    return False


def _setting(kind: str) -> tuple[Any, Any]:
    def enabled() -> bool:
        return ALLOWED[kind]

    def enable(enabled: bool) -> None:
        ALLOWED[kind] = bool(enabled)

    enabled.__name__, enable.__name__ = f"{kind}_sdp_enabled", f"enable_{kind}_sdp"
    enabled.__doc__ = f"Whether attention may use its {kind} kernel."
    enable.__doc__ = f"Let attention use its {kind} kernel, or not: see :func:`taeda.nn.attention.sdpa_kernel`."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _setting("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _setting("mem_efficient")
math_sdp_enabled, enable_math_sdp = _setting("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _setting("cudnn")


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict]:
    """Within the block attention may use these kernels: see :func:`taeda.nn.attention.sdpa_kernel`."""
    before = dict(ALLOWED)
    ALLOWED.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        ALLOWED.update(before)


def is_flash_attention_available() -> bool:
    """Whether attention has a flash kernel on a GPU: False."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """The library for linear algebra on a GPU: "default", whatever is asked for."""
    return "default"


preferred_blas_library = preferred_linalg_library
