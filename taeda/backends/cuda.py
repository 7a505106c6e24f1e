"""Choices among CUDA kernels: those for attention, which hold on the CPU as well, and how many plans cuFFT keeps."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import settings
from .._core.devices import accelerator
from ..ops.attention import ALLOWED

__all__ = [
    "cudnn_sdp_enabled", "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "is_built", "math_sdp_enabled", "matmul",
    "mem_efficient_sdp_enabled", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip


class _Products:
    """Reduced precision that the GPU may use in products: TF32 for ``float32``, where cuBLASLt computes them. Those of
    16 bits are summed in ``float32``, whatever is said here.
    """

    allow_fp16_reduced_precision_reduction = allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def fp32_precision(self) -> str:
        """``"tf32"`` allows it; ``"none"`` and ``"ieee"`` do not."""
        return settings.fp32_precision

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"Unknown precision: {value}; it is 'none', 'ieee' or 'tf32'")
        settings.fp32_precision = value

    @property
    def allow_tf32(self) -> bool:
        """Whether products of ``float32`` may round their operands to 10 bits behind the point."""
        return settings.fp32_precision == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        settings.matmul_precision, settings.fp32_precision = ("high", "tf32") if value else ("highest", "ieee")


matmul = _Products()


class PlanCache:
    """cuFFT's plans for one GPU. Beyond ``max_size`` of them, the one that was used longest ago goes."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = 4096
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many plans there are."""
        return len(self._plans)

    @size.setter
    def size(self, value: Any) -> None:
        raise RuntimeError("cufft_plan_cache.size cannot be set; set max_size")

    @property
    def max_size(self) -> int:
        """How many plans there may be."""
        return self._most

    @max_size.setter
    def max_size(self, value: int) -> None:
        if value < 0:
            raise RuntimeError(f"cufft_plan_cache.max_size must be non-negative, and is {value}")
        with self._lock:
            self._most = value
            self._shrink()

    def clear(self) -> None:
        """Drop all plans."""
        with self._lock:
            self._plans.clear()

    def _shrink(self) -> None:
        while len(self._plans) > self._most:
            self._plans.popitem(last=False)

    def find(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The plan for ``key``, made if there is none."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is None:
                plan = self._plans[key] = make()
            self._plans.move_to_end(key)
            self._shrink()
        return plan


class _PlanCaches:
    """The caches by device; attributes are those of the current device's cache."""

    def __init__(self) -> None:
        vars(self)["_caches"] = {}

    def __getitem__(self, device: Any) -> PlanCache:
        if device is not None and not isinstance(device, int):
            device = _core.device(device).index
        if device is None:
            found = accelerator()
            device = 0 if found is None else found.current
        if device < 0:
            raise RuntimeError(f"cufft_plan_cache: expected a device index from 0 on, but got {device}")
        return self._caches.setdefault(device, PlanCache())

    def __getattr__(self, name: str) -> Any:
        return getattr(self[None], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self[None], name, value)


cufft_plan_cache = _PlanCaches()


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
