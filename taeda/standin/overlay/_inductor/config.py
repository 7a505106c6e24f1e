"""Settings of PyTorch's compiler: any may be set, and none has an effect."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from taeda.graph.options import Patch

coordinate_descent_tuning = False
fx_graph_cache = False
epilogue_fusion = True
max_autotune = max_autotune_gemm = freezing = fallback_random = debug = False
pre_grad_custom_pass = joint_custom_pre_pass = joint_custom_post_pass = None
post_grad_custom_pre_pass = post_grad_custom_post_pass = None
triton = SimpleNamespace(unique_kernel_names=False, cudagraphs=False)
cpp = SimpleNamespace(threads=-1)


def patch(arg: Any = None, value: Any = None, **changes: Any) -> Patch:
    """Settings for a block, or for calls of a function: ``patch(name=value)``, ``patch("name", value)``,
    ``patch({...})``."""
    return Patch(vars(sys.modules[__name__]), arg, value, changes)
