"""The Cython core: memory, threads, Tensor, the graph and the one call path of every op."""

from .memory import OutOfMemoryError, Storage, empty_cache, memory_stats, reset_peak_memory_stats
from .pool import get_num_threads, set_num_threads
from .tensor import (
    HELPERS,
    REQUIRED,
    HookHandle,
    Node,
    Op,
    Size,
    Tensor,
    apply_inner,
    at_end_of_task,
    bind_copy,
    bind_getitem,
    bind_operator,
    bump,
    channels_last,
    channels_last_3d,
    contiguous_format,
    copy_tensor,
    current_mode,
    current_task,
    device,
    dtype,
    empty,
    empty_like,
    empty_strided,
    from_storage,
    get_default_dtype,
    install,
    is_dense_tensor,
    is_grad_enabled,
    is_inference_mode_enabled,
    launch,
    layout,
    leaf_node,
    mark_view_of_function,
    memory_format,
    new_node,
    node_output_metas,
    pop_mode,
    pop_saved_hooks,
    preserve_format,
    promote_types,
    push_mode,
    push_saved_hooks,
    record_custom,
    record_function,
    reinterpret,
    require_device,
    result_type,
    run_backward,
    same_edge,
    save,
    saved_hooks_active,
    set_anomaly,
    set_data,
    set_default_dtype,
    set_grad_enabled,
    set_inference,
    set_version,
    strided,
    strided_view,
    task_reaches,
    unsave,
    unsave_output,
    zero,
)
from .tensor import _dtype_by_name as dtype_by_name

uint8, int8, int16, int32, int64, uint16, uint32, uint64 = map(
    dtype_by_name, ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
)
float16, bfloat16, float32, float64, complex64, complex128 = map(
    dtype_by_name, ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
)
bool_ = dtype_by_name("bool")
