"""Forks and the end of a process.

A forked child has one thread, the one that forked. A lock that another thread held at that moment stays locked in the
child for ever.
"""

import atexit
import logging  # noqa: F401  # its hook is older than the one below and runs after it: what is imported may log
import os
import threading
import time
import weakref
from importlib import _bootstrap  # type: ignore[attr-defined]
from typing import Any

#: Held while something is imported on first use or a kernel is built: a fork waits until that is done.
loading = threading.RLock()
#: The packages that taeda imports on first use, itself included: a fork waits for threads that import parts of them.
_PACKAGES = {"taeda", "numpy", "llvmlite", "scipy", "scipy_openblas32", "opt_einsum"}
_PATIENCE = 60  # seconds: such an import may itself wait for something that the forking thread holds
_freed: weakref.WeakSet[Any] = weakref.WeakSet()
_module_locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})


def _others_import() -> bool:
    """Whether another thread imports a part of these packages."""
    held = [(name, ref()) for name, ref in list(_module_locks.items()) if name.partition(".")[0] in _PACKAGES]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for _, lock in held)


def _before_fork() -> None:
    end = time.monotonic() + _PATIENCE
    loading.acquire()
    while _others_import() and time.monotonic() < end:
        loading.release()
        time.sleep(0.001)
        loading.acquire()


def _after_fork_in_child() -> None:
    for lock in _freed:
        if not getattr(lock, "_is_owned", bool)():  # this thread, the only one
            lock._at_fork_reinit()
    loading.release()


# A daemon thread inside LLVM at exit would kill the process by a signal: wait for it, and let none begin again.
atexit.register(loading.acquire, timeout=_PATIENCE)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=loading.release, after_in_child=_after_fork_in_child)


def free_in_children(lock: Any) -> Any:
    """``lock``, free in a child whichever thread held it: for data that is consistent at any moment."""
    _freed.add(lock)
    return lock
