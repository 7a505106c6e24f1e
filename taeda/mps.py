"""Apple's GPUs, of which there are none: questions are answered so, and work on one is refused."""

from __future__ import annotations

from ._no_device import *  # noqa: F403
from ._no_device import __all__ as __all__
from ._refuse import refused_class

Event = refused_class("mps.Event", "there is no such device")
Stream = refused_class("mps.Stream", "there is no such device")
