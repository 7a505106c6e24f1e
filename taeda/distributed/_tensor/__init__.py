"""The older place of what ``taeda.distributed.tensor`` has."""

from .. import tensor
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import *  # noqa: F403

__all__ = [*tensor.__all__, "DeviceMesh", "init_device_mesh"]
