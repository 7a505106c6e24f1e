"""The older place of the names in ``taeda.distributed.tensor``."""

from .. import tensor
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import *  # noqa: F403

__all__ = [*tensor.__all__, "DeviceMesh", "init_device_mesh"]
