"""NumPy on first use: few calls need it, which is no reason to import it with taeda."""

from __future__ import annotations

from typing import Any

from ..kernels.forks import loading


class _NumPy:
    def __getattr__(self, name: str) -> Any:
        with loading:
            import numpy

        value = getattr(numpy, name)
        setattr(self, name, value)  # the next time it is found at once
        return value


np = _NumPy()
