"""Warnings that are given once in a process, or at the line of the caller."""

from __future__ import annotations

import os
import sys
import warnings

_told: set[str] = set()
_PACKAGE = os.path.dirname(__file__) + os.sep


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Warn of ``text``, the first time; ``stacklevel`` 3 names the caller of the function that calls this."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, stacklevel=stacklevel)


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of ``text`` at the line that called into this package, however many of its functions lie between."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)
