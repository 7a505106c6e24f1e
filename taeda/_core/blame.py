"""The function that the user called, for errors that an op raises within it. Imported once something has failed."""

from __future__ import annotations

import sys
from types import FrameType


def called(op: str) -> str:
    """The outermost public function of taeda around the failed call of ``op``; ``op`` itself if there is none.

    ``mse_loss(a, b)`` runs the op ``squared_error``: its user knows only the first name. A function counts where its
    module has it under its own name without an underscore, as an op or as a function written in ops.
    """
    name = op.lstrip("_")
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("taeda."):
        public = frame.f_code.co_name
        function = frame.f_globals.get(public)
        if not public.startswith("_") and getattr(function, "__code__", None) is frame.f_code:
            if type(function).__name__ == "Composite":
                name = public
        frame = frame.f_back
    return name
