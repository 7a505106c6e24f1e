"""Options of ``compile`` that PyTorch's compiler has. They are checked, but have no effect."""

from __future__ import annotations

import contextlib
from typing import Any

#: The options of each mode.
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {"fallback_by_default": True},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}

_FLAGS = (
    "aggressive_fusion allow_buffer_reuse benchmark_combo_kernel benchmark_fusion benchmark_kernel combo_kernels "
    "coordinate_descent_check_all_directions coordinate_descent_tuning cpp.enable_floating_point_contract_flag "
    "cpp_wrapper dce debug debug_fusion emulate_precision_casts epilogue_fusion epilogue_fusion_first "
    "fallback_by_default fallback_random force_fuse_int_mm_with_mul force_shape_pad freezing "
    "fx_graph_cache group_fusion implicit_fallbacks inplace_buffers joint_graph_constant_folding keep_output_stride "
    "layout_optimization loop_ordering_after_fusion max_autotune max_autotune_gemm max_autotune_pointwise "
    "memory_planning nan_asserts optimize_scatter_upon_const_tensor pattern_matcher permute_fusion pick_loop_orders "
    "prologue_fusion reorder_for_compute_comm_overlap reorder_for_locality reorder_for_peak_memory scalar_asserts "
    "shape_padding size_asserts split_cat_fx_passes split_reductions trace.enabled trace.graph_diagram "
    "triton.autotune_pointwise triton.cudagraph_skip_dynamic_graphs triton.cudagraph_trees triton.cudagraphs "
    "triton.dense_indexing triton.persistent_reductions triton.prefer_nd_tiling triton.unique_kernel_names "
    "verbose_progress"
)

#: The type of each option.
OPTIONS: dict[str, type] = {
    **dict.fromkeys(_FLAGS.split(), bool),
    "benchmark_epilogue_fusion": bool, "coordinate_descent_search_radius": int, "compile_threads": int,
    "cpp.min_chunk_size": int, "cpp.threads": int, "max_autotune_gemm_backends": str, "max_fusion_size": int,
    "max_autotune_gemm_search_space": str, "realize_opcount_threshold": int, "triton.max_tiles": int,
}  # fmt: skip


def check_mode(mode: str) -> None:
    """Raise an error for an unknown mode."""
    if mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")


def check_options(options: dict[str, Any]) -> None:
    """Raise an error for an unknown option, or a value of the wrong type."""
    for key, value in options.items():
        name = key.replace("-", "_")
        if name == "guard_filter_fn":
            continue
        if name not in OPTIONS:
            raise RuntimeError(f"Unexpected optimization option {key}, known options are {sorted(OPTIONS)}")
        if type(value) is not OPTIONS[name]:
            raise RuntimeError(
                f"Unexpected type of attr {key}, got {type(value).__name__} should be {OPTIONS[name].__name__}"
            )


class Patch(contextlib.ContextDecorator):
    """Settings for a block, or for calls of a function.

    Args:
        settings: the dict of all settings.
        arg: the name of a setting, or a dict of several.
        value: the value of that setting.
        changes: further settings.
    """

    def __init__(self, settings: dict[str, Any], arg: Any, value: Any, changes: dict[str, Any]) -> None:
        self.settings = settings
        self.changes = {**(arg if isinstance(arg, dict) else {} if arg is None else {arg: value}), **changes}

    def __enter__(self) -> None:
        self.before = {name: self.settings[name] for name in self.changes if name in self.settings}
        self.settings.update(self.changes)

    def __exit__(self, *exc: Any) -> None:
        for name in self.changes:
            del self.settings[name]
        self.settings.update(self.before)
