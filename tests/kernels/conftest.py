"""Calls a compiled kernel on NumPy arrays, the way the core does on tensors."""

import ctypes
from itertools import pairwise

import numpy as np
import pytest

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def _run(address, arrays, args, total, pieces=1):
    """Run the kernel over ``[0, total)``, cut into ``pieces``, in reverse order: a result may not depend on the cut."""
    pointers = np.array([a.ctypes.data if isinstance(a, np.ndarray) else a for a in arrays], np.int64)
    values = np.array([np.float64(x).view(np.int64) if isinstance(x, float) else x for x in args] or [0], np.int64)
    cuts = [total * i // pieces for i in range(pieces + 1)]
    for begin, end in reversed(list(pairwise(cuts))):
        _SIGNATURE(address)(pointers.ctypes.data, values.ctypes.data, begin, end)


@pytest.fixture
def run():
    """``run(address, arrays, args, total, pieces)``."""
    return _run
