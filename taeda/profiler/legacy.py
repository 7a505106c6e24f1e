"""``torch.autograd.profiler``: the older interface to the same recordings."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from .._refuse import refused_class
from .events import EventList, FunctionEvent, FunctionEventAvg
from .profiler import profile as _profile
from .recording import record_function

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]

ExecutionTraceObserver = refused_class(
    "torch.profiler.ExecutionTraceObserver", "the format is PyTorch's own; use profile.export_chrome_trace"
)


class profile(_profile):
    """Record what runs inside ``with profile() as prof:``; what :class:`taeda.profiler.profile` does, without steps.

    Args:
        enabled: if not, nothing is done.
        use_cuda: deprecated; there is no GPU to measure: a warning.
        use_device: likewise.
        record_shapes: keep the sizes of arguments.
        with_flops: count arithmetic.
        profile_memory: count the bytes that ops take and give back.
        with_stack: keep the lines of the program.
        with_modules: a range for every call of an ``nn.Module``.
        use_kineto: there is one way to record: no difference.
        use_cpu: must be true.
        options: of :class:`taeda.profiler.profile`.

    Raises:
        AssertionError: ``use_cpu`` is False.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        self.enabled = enabled
        if use_cuda or use_device not in (None, "cpu"):
            warnings.warn(f"{use_device or 'CUDA'} is not available, disabling its profiling", stacklevel=2)
        if not use_cpu:
            raise AssertionError("profile: only the CPU can be measured: leave use_cpu=True")
        self.entered = False
        super().__init__(
            record_shapes=record_shapes, with_flops=with_flops, profile_memory=profile_memory, with_stack=with_stack,
            with_modules=with_modules, **options,
        )  # fmt: skip

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = True
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self.stop()

    @property
    def function_events(self) -> EventList:
        """Every event."""
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds that were seen."""
        return self.function_events.self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Every event as text."""
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **options)

    def __str__(self) -> str:
        return "<unfinished profile>" if self._events is None else str(self.function_events)


class _Marks(contextlib.AbstractContextManager):
    """A vendor's profiler of every op. There is none, so entering raises unless it is disabled."""

    reader = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        if self.enabled:
            raise RuntimeError(
                f"{type(self).__name__}: {self.reader} is not there to be told; record with taeda.profiler.profile and "
                "open its trace in https://ui.perfetto.dev"
            )
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class emit_nvtx(_Marks):
    """Marks for NVIDIA's profilers: there are none, so entering is refused unless it is disabled.

    Args:
        enabled: must be False.
        record_shapes: accepted.

    Raises:
        NotImplementedError: it is entered enabled.

    Examples:
        >>> with taeda.profiler.emit_nvtx(enabled=False):
        ...     _ = taeda.ones(4) + 1
    """

    reader = "NVIDIA's profiler"


class emit_itt(_Marks):
    """Marks for Intel's profilers: there are none, so entering is refused unless it is disabled.

    Args:
        enabled: must be False.
        record_shapes: accepted.

    Raises:
        NotImplementedError: it is entered enabled.

    Examples:
        >>> with taeda.profiler.emit_itt(enabled=False):
        ...     _ = taeda.ones(4) + 1
    """

    reader = "Intel's profiler"
