"""Warnings that are given once in a process."""

from __future__ import annotations

import warnings

_told: set[str] = set()


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Warn of ``text``, the first time; ``stacklevel`` 3 names the caller of the function that calls this."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, stacklevel=stacklevel)
