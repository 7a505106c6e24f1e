"""The Cython core: memory, threads, Tensor, the graph and the one call path of every op."""

try:
    from .interpreter import refuse_others

    refuse_others()  # before anything of the core is loaded
    from .memory import MetaValueError, OutOfMemoryError, Storage, empty_cache, memory_stats, reset_peak_memory_stats
except ModuleNotFoundError as error:  # a checkout on the path, not the installed package
    raise ImportError(
        f"taeda: the sources in {__path__[0]} are not built. To use an installed taeda, run Python from another folder "
        "than the checkout; to use the checkout, build it in place: pip install -e . or python setup.py build_ext "
        "--inplace"
    ) from error
from .engine import (
    apply_inner,
    at_end_of_task,
    current_task,
    depends_on_others,
    differentiate,
    leads_to,
    pass_tangents,
    passes_tangents,
    run_backward,
    task_is_partial,
    task_reaches,
    watch_nodes,
)
from .fusion import compute_now, compute_written, defer_ops
from .launching import (
    bump,
    copy_tensor,
    is_dense_tensor,
    kernels_run_on,
    label_node,
    launch,
    require_device,
    set_version,
    wrapped_dim,
    written_beside,
)
from .plan import Plan
from .planning import Planned, make_plan
from .pool import get_num_threads, set_num_threads
from .program import NoPlan
from .recorder import is_observing
from .settings import expect_bool, modes
from .tensor import (
    ALL_DTYPES,
    DISPATCHING,
    DTYPE_NAMES,
    OVERRIDING,
    PYTHON_TYPES,
    REQUIRED,
    AccumulateGrad,
    Composite,
    FunctionNode,
    HookHandle,
    Method,
    NoCudaError,
    Node,
    Op,
    Size,
    Tensor,
    adopt_settings,
    begin_transform,
    bind_copy,
    bind_getitem,
    bind_operator,
    change_overrides,
    channels_last,
    channels_last_3d,
    contiguous_format,
    count_tracers,
    current_mode,
    device,
    dtype,
    empty,
    empty_like,
    empty_strided,
    end_transform,
    enter_forward_mode,
    exit_forward_mode,
    fitting,
    forward_levels,
    frames_outside,
    from_storage,
    get_default_dtype,
    has_nan,
    install,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_mode_active,
    is_recorded,
    layout,
    mark_view_of_function,
    may_have_tangent,
    memory_format,
    memory_overlap,
    mode_stack,
    node_op,
    node_output_metas,
    pass_through,
    plain_sizes,
    pop_mode,
    pop_saved_hooks,
    preserve_format,
    promote_types,
    push_mode,
    push_saved_hooks,
    recall,
    record_again,
    record_custom,
    record_nothing,
    reinterpret,
    renamed,
    restore_grad_mode,
    result_type,
    run_function,
    same_edge,
    save,
    saved_hooks,
    saved_hooks_active,
    set_anomaly,
    set_data,
    set_default_dtype,
    set_grad_enabled,
    set_inference,
    set_mode_stack,
    set_namespace,
    sparse_coo,
    strided,
    strided_view,
    swap_tensors,
    thread_settings,
    unhooked,
    unsave,
    unsave_output,
    whole_numbers,
    zero,
)
from .tensor import _dtype_by_name as dtype_by_name

uint8, int8, int16, int32, int64, uint16, uint32, uint64 = map(
    dtype_by_name, ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
)
float16, bfloat16, float32, float64, complex32, complex64, complex128 = map(
    dtype_by_name, ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")
)
float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu = map(
    dtype_by_name, ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
)
float4_e2m1fn_x2 = dtype_by_name("float4_e2m1fn_x2")
bool_ = dtype_by_name("bool")
