"""Choices among CUDA kernels. There are none here; the choices for attention can still be set and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

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

_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """Whether this build knows CUDA: False."""
    return False


def _setting(kind: str) -> tuple[Any, Any]:
    def enabled() -> bool:
        return _sdp[kind]

    def enable(enabled: bool) -> None:
        _sdp[kind] = bool(enabled)

    enabled.__name__, enable.__name__ = f"{kind}_sdp_enabled", f"enable_{kind}_sdp"
    enabled.__doc__ = f"What ``enable_{kind}_sdp`` was last told: it says nothing about attention on the CPU."
    enable.__doc__ = f"Allow the {kind} kernel of attention on a GPU: kept, and otherwise without effect."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _setting("flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _setting("mem_efficient")
math_sdp_enabled, enable_math_sdp = _setting("math")
cudnn_sdp_enabled, enable_cudnn_sdp = _setting("cudnn")


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict]:
    """Within the block, these kernels of attention are allowed on a GPU."""
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        _sdp.update(before)


def is_flash_attention_available() -> bool:
    """Whether attention has a flash kernel on a GPU: False."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """The library for linear algebra on a GPU: "default", whatever is asked for."""
    return "default"


preferred_blas_library = preferred_linalg_library
