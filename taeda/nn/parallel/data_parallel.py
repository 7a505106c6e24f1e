"""DataParallel: the same program on one device or several; with one device it passes everything through."""

from __future__ import annotations

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls ``module``, whose inputs would be cut along ``dim`` among devices. With one device it is the module.

    For several processes take ``taeda.nn.parallel.DistributedDataParallel``.

    Args:
        module: what to run.
        device_ids: devices to run on; at most one here.
        output_device: where results go.
        dim: dimension of the batch.

    Shape:
        As of ``module``.

    Examples:
        >>> nn.DataParallel(nn.Linear(3, 2))(taeda.randn(8, 3)).shape
        taeda.Size([8, 2])
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0) -> None:
        super().__init__()
        ids = list(device_ids) if device_ids is not None else []
        if len({str(i) for i in ids}) > 1:
            raise ValueError(
                f"DataParallel: expected at most one device, got device_ids={ids}; run one process per device instead"
            )
        self.module = module
        self.device_ids = ids
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """``module(*inputs, **module_kwargs)`` as DataParallel runs it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
