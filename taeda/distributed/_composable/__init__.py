"""Older places of the functions that cut and copy modules without a wrapper."""

from ..fsdp import fully_shard
from .replicate import replicate

__all__ = ["fully_shard", "replicate"]
