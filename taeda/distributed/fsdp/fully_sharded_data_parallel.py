"""The older place of ``FullyShardedDataParallel`` and its options."""

from . import api
from .api import *  # noqa: F403
from .wrapper import FullyShardedDataParallel

__all__ = ["FullyShardedDataParallel", *api.__all__]
