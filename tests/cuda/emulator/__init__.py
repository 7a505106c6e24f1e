"""An emulated CUDA device: it runs the PTX that a driver would be sent, behind the driver's functions.

``table()`` gives the C address of each driver function by its name. What a kernel does wrong is kept in ``faults()``.
With TAEDA_EMULATOR_KEEPS=FOLDER the PTX of all modules is written there, for ``tests/cuda/ptxas.py``.
"""

from __future__ import annotations

import contextlib
import functools

from .driver import Driver
from .faults import Fault
from .ptx import Refused

__all__ = ["Driver", "Fault", "Refused", "driver", "faults", "no_faults", "reset", "table"]


@functools.cache
def driver() -> Driver:
    """The emulated driver of this process, with two devices."""
    return Driver(devices=2)


@contextlib.contextmanager
def no_faults():
    """Within it every access of kernels is checked."""
    driver().check("full")
    try:
        yield
        assert not driver().faults
    finally:
        driver().check("fast")


def table() -> dict[str, int]:
    """The C address of each function of the driver, by the name under which ``libcuda`` exports it."""
    return dict(driver().functions)


def faults() -> list[Fault]:
    """What kernels and copies did wrong since the last :func:`reset`."""
    return list(driver().faults)


def reset() -> None:
    """Forget all memory, modules, streams and faults, as in a new process."""
    driver().reset()
