"""Data pipes: datasets that are chained, each a step of loading (``pipe.shuffle().map(read).batch(8)``).

PyTorch no longer develops them. They are here for programs that use them.
"""

from . import iter, map

__all__ = ["iter", "map"]
