"""Inside the DataLoader: collating, fetching, worker processes and what passes between them.

``worker`` and ``channel`` are imported only where there are worker processes.
"""

from . import collate, fetch

__all__ = ["collate", "fetch"]
