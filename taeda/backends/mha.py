"""The fast path of multi-head attention in inference. taeda has no separate one."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """The value set last by :func:`set_fastpath_enabled`."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow the fast path: kept, and otherwise without effect."""
    global _enabled
    _enabled = bool(value)
