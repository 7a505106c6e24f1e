"""Settings of ``torch._dynamo``: any may be set, and none has an effect."""

from __future__ import annotations

import sys
from typing import Any

from taeda.graph.options import Patch

suppress_errors = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
automatic_dynamic_shapes = assume_static_by_default = specialize_int = True
capture_scalar_outputs = capture_dynamic_output_shape_ops = False
verbose = disable = False


def patch(arg: Any = None, value: Any = None, **changes: Any) -> Patch:
    """Settings for a block, or for calls of a function: ``patch(name=value)``, ``patch("name", value)``,
    ``patch({...})``."""
    return Patch(vars(sys.modules[__name__]), arg, value, changes)
