"""``taeda.distributed.launcher``: what ``taeda.distributed.run`` does, called from a program."""

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
