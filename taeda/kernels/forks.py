"""Forks: a child has one thread, the one that forked, and what others held at that moment is held in it for ever."""

import os
import threading
from typing import Any

#: Held by who imports something on first use or makes a kernel: a fork waits until that is done.
loading = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=loading.acquire, after_in_parent=loading.release, after_in_child=loading.release)


def free_in_children(lock: Any) -> Any:
    """``lock``, which a child finds free, whoever held it: for what is whole at any moment."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
