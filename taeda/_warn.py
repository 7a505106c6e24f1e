"""The line of the program that called into this package, and warnings there or once in a process."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

_told: set[str] = set()
#: The folder of the package, as its files are named in tracebacks.
PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_own(file: str) -> bool:
    """Whether code of this file is the package's or the importer's. Compiled modules name files by ``taeda/``."""
    return file.startswith((PACKAGE, "taeda/", "<frozen"))


def caller() -> FrameType | None:
    """The innermost running function outside of the package; None: there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def caller_line() -> str:
    """``file:line`` of the innermost running function outside of the package; ``?``: there is none."""
    frame = caller()
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Warn of ``text``, the first time; ``stacklevel`` 3 names the caller of the function that calls this."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, stacklevel=stacklevel)


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of ``text`` at the line that called into this package, however many of its functions lie between."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)
