"""NumPy on first use: ops name it in their references for tests, which is no reason to import it with taeda."""

from __future__ import annotations

from typing import Any


class _NumPy:
    def __getattr__(self, name: str) -> Any:
        import numpy

        return getattr(numpy, name)


np = _NumPy()
