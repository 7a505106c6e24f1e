"""``taeda.distributed.algorithms``: communication hooks, and joining with uneven inputs."""

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
