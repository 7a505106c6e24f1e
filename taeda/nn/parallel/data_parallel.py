"""DataParallel: the same program on one device or several, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from ..._core import device
from ..._core.devices import DEVICES, accelerator, device_count
from ..modules.module import Module
from .scatter_gather import gather, parallel_apply, replicate, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


T = TypeVar("T", bound=Module)


def _all_devices() -> list:
    """The accelerators; an empty list if there is only the CPU."""
    found = accelerator()
    if found is None:
        return []
    kind = DEVICES[found.number].partition(":")[0]
    return [device(kind, i) for i in range(device_count(kind))]


class DataParallel(Module, Generic[T]):
    """Calls copies of ``module`` on several devices with parts of its inputs, which are cut along ``dim``. Without
    accelerators it calls ``module`` itself.

    For several processes take ``taeda.nn.parallel.DistributedDataParallel``.

    Args:
        module: what to run; its parameters are on the first device.
        device_ids: devices to run on. Default: all accelerators.
        output_device: where results go. Default: the first device.
        dim: dimension of the batch.

    Shape:
        As of ``module``.

    Raises:
        ValueError: several devices are given, and there is no accelerator.

    Examples:
        >>> nn.DataParallel(nn.Linear(3, 2))(taeda.randn(8, 3)).shape
        taeda.Size([8, 2])
    """

    def __init__(
        self, module: T, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        there = _all_devices()
        if not there and len({str(i) for i in device_ids or ()}) > 1:
            raise ValueError(
                f"DataParallel: expected at most one device, got device_ids={device_ids}: there is no accelerator"
            )
        self.module = module
        self.dim = dim
        self.devices = [device(i) for i in (there if device_ids is None else device_ids)] if there else []
        self.device_ids = [d.index for d in self.devices] if there else device_ids
        self.output_device: Any = output_device
        if self.devices:
            self.output_device = device(output_device) if output_device is not None else self.devices[0]
            if len(self.devices) == 1:
                self.module.to(self.devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.devices:
            return self.module(*inputs, **kwargs)
        for t in chain(self.module.parameters(), self.module.buffers()):
            if t.device != self.devices[0]:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.devices[0]} (device_ids[0]) but "
                    f"found one of them on device: {t.device}"
                )
        parts, named = scatter_kwargs(inputs, kwargs, self.devices, self.dim)
        if len(self.devices) == 1:
            return self.module(*parts[0], **named[0])
        used = self.devices[: len(parts)]
        return gather(parallel_apply(replicate(self.module, used), parts, named), self.output_device, self.dim)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """``module(*inputs, **module_kwargs)`` as DataParallel runs it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
