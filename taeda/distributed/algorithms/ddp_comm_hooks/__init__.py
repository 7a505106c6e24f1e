"""Communication hooks of DistributedDataParallel: how a bucket of gradients is averaged."""

from . import default_hooks, post_localSGD_hook, powerSGD_hook

__all__ = ["default_hooks", "post_localSGD_hook", "powerSGD_hook"]
