"""Communication hooks of DistributedDataParallel: how a bucket of gradients is averaged."""

from . import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
