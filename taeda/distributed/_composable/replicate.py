"""Copies of a module at all processes, as ``DistributedDataParallel``, without a wrapper around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...nn import Module
from ..data_parallel import DistributedDataParallel

__all__ = ["DDP", "replicate"]

_ddp_of = "_replicate_ddp"  # an attribute of the module's dictionary: no submodule


class DDP:
    """Methods that a module gets from :func:`replicate`."""

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether ``backward`` averages gradients, or adds them up at each process."""
        self.__dict__[_ddp_of].require_backward_grad_sync = requires_gradient_sync

    def register_comm_hook(self, *args: Any, **kwargs: Any) -> None:
        """See :meth:`DistributedDataParallel.register_comm_hook`."""
        self.__dict__[_ddp_of].register_comm_hook(*args, **kwargs)


def replicate(module: Module, ignored_modules: Iterable[Module] | None = None, **kwargs: Any) -> Module:
    """Copy the parameters of the first process's ``module`` to the others, and let ``backward`` average their
    gradients.

    Args:
        module: what to train. It stays as it is, with :class:`DDP` as a further base of its class.
        ignored_modules: whose parameters each process keeps for itself.
        kwargs: those of ``DistributedDataParallel``; ``device_id`` is accepted where it is None or the CPU.
    Raises:
        ValueError: a device is named by ``device_ids``, or is none of the module's.
        RuntimeError: the module is replicated already.
    """
    if "device_ids" in kwargs:
        raise ValueError("The supported device_id should be one of the module's; device_ids is not an argument")
    device = kwargs.pop("device_id", None)
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise ValueError(f"replicate: expected device_id to be None or the CPU, got {device!r}")
    if isinstance(module, DDP):
        raise RuntimeError("replicate should only be applied once on a module")
    ignored = {id(p) for m in ignored_modules or () for p in (*m.parameters(), *m.buffers())}
    own = [*module.named_parameters(), *module.named_buffers()]
    before = module.__dict__.get("_ddp_params_and_buffers_to_ignore")
    module.__dict__["_ddp_params_and_buffers_to_ignore"] = [*(before or ()), *(n for n, p in own if id(p) in ignored)]
    ddp = module.__dict__[_ddp_of] = DistributedDataParallel(module, **kwargs)
    module.register_forward_pre_hook(lambda _module, _inputs: ddp._before_forward())
    module.register_forward_hook(lambda _module, _inputs, outputs: ddp._after_forward(outputs))
    kind = type(module)
    module.__class__ = type(f"DDP{kind.__name__}", (kind, DDP), {})
    return module
