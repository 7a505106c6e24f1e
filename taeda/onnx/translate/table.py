"""The table of translators: which function writes an op of taeda as nodes of ONNX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from taeda.export._functions import table as known_functions

#: Translators by the names that :mod:`taeda.export._functions` gives functions; ``op.`` may be left out.
TRANSLATORS: dict[str, Callable] = {}


def translates(names: str) -> Callable:
    """Decorator: ``function(g, *args, **kwargs)`` writes calls of the ops ``names`` on the writer ``g``.

    Tensors, and sizes that are not fixed, come as values; other arguments come as they are. ``g.result`` has the form
    of the result. The returned value may have another dtype: it is cast. :class:`Unsupported` says that ONNX has no
    form of a call.
    """

    def register(function: Callable) -> Callable:
        for name in names.split():
            TRANSLATORS[name] = function
        return function

    return register


@functools.cache
def by_function() -> dict[Any, Callable]:
    """The translators by the functions of taeda that they are for."""
    known = known_functions()
    found = {}
    for name, translator in TRANSLATORS.items():
        function = known.get(f"op.{name}") or known.get(name)
        if function is None:
            raise LookupError(f"no op is called {name!r}")
        found[function] = translator
    return found
