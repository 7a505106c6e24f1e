"""``Proxy`` and what belongs to it; see :mod:`taeda.fx`."""

from . import Proxy, Tracer

__all__ = ["Proxy", "Tracer"]
