"""Older places of what cuts and copies modules without a wrapper."""

from ..fsdp import fully_shard
from .replicate import replicate

__all__ = ["fully_shard", "replicate"]
