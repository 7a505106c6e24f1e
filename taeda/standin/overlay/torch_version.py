"""``torch.__version__``: a str that compares as a version."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..importer import _version

__all__ = ["TorchVersion"]


@functools.total_ordering
class TorchVersion(str):
    """A version that compares with strings, tuples and ``packaging.version.Version`` by its numbers."""

    def _numbers(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        def parts(x: Any) -> tuple[int, ...]:
            if isinstance(x, (tuple, list)):
                return tuple(int(n) for n in x)
            match = re.match(r"v?(\d+(?:\.\d+)*)", str(x))
            if match is None:
                raise ValueError(f"Invalid version: '{x}'")
            return tuple(map(int, match[1].split(".")))

        a, b = parts(self), parts(other)
        n = max(len(a), len(b))
        return a + (0,) * (n - len(a)), b + (0,) * (n - len(b))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and "+" in other:
            return str.__eq__(self, other)
        try:
            a, b = self._numbers(other)
        except (ValueError, TypeError):
            return False
        return a == b

    def __lt__(self, other: Any) -> bool:
        a, b = self._numbers(other)
        return a < b

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __le__(self, other: Any) -> bool:
        return self < other or self == other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    __hash__ = str.__hash__


__version__ = TorchVersion(_version())
