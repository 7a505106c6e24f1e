"""What a layer's name says: ``MaxPool2d`` is of two dimensions and runs ``max_pool2d``."""

from __future__ import annotations

import re
from typing import Any

from .. import functional as F


class OfDimensions:
    """Base of layers for one, two and three dimensions.

    A class of this package whose name ends with ``1d``, ``2d`` or ``3d`` gets that number as ``_dims``. Where
    ``_functional`` is the start of a name, it gets the function of ``nn.functional`` of that name and number as
    ``_function``.
    """

    _dims = 0
    _functional = ""
    _function: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found = re.search(r"([123])d$", cls.__name__)
        if found and cls.__module__.startswith(__package__):
            cls._dims = int(found[1])
            if cls._functional:
                cls._function = staticmethod(getattr(F, cls._functional + found[0]))
