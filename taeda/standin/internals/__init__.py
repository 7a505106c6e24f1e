"""Names of PyTorch's modules that taeda's modules of the same name do not have, in tables.

Most are private: packages import them although they are nobody's interface. A module that only has such names is made
of the table. What cannot work here can be named and imported, and refuses when it is used.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from taeda._refuse import refused_class, refused_function

#: Modules of Python that have names of PyTorch's modules.
_OF_PYTHON = ("builtins", "contextlib", "types", "typing")

#: By PyTorch's module: the modules that have the names, and the names; ``theirs=ours`` where they differ. A home with a
#: dot in front is a module of this package, the others are modules of taeda, or of Python.
NAMES: dict[str, dict[str, str]] = {
    "": {
        ".root": (
            "Tag _amp_update_scale_ _check_tensor_all _check_tensor_all_with _check_with "
            "_has_compatible_shallow_copy_type classproperty get_file_path legacy_contiguous_format "
            "sym_fresh_size"
        ),
        ".dtypes": (
            "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine "
            "per_tensor_symmetric qscheme"
        ),
        "storage": "StorageBase=UntypedStorage",
        "utils.dlpack": "to_dlpack",
        "typing": "TYPE_CHECKING",
    },
    "_C": {
        ".root": (
            "PyTorchFileReader PyTorchFileWriter _current_graph_task_id _get_accelerator _get_default_device "
            "_is_alias_of"
        ),
        "_core": "_set_grad_enabled=set_grad_enabled",
        "linalg": "_LinAlgError=LinAlgError",
        "standin.overlay": "_VariableFunctions=_VF",
    },
    "_C._profiler": {".utils": "_ExperimentalConfig"},
    "_classes": {"standin.overlay._ops": "classes"},
    "_custom_ops": {"library": "custom_op get_ctx impl impl_abstract=register_fake"},
    "_dynamo._trace_wrapped_higher_order_op": {"contextlib": "TransformGetItemToIndex=nullcontext"},
    "_dynamo.eval_frame": {"_compiled": "OptimizedModule", "standin.overlay._dynamo": "is_dynamo_supported"},
    "_dynamo.exc": {
        "export.dynamic_shapes": "UserError",
        "graph.backends": (
            "BackendCompilerFailed InternalTorchDynamoError InvalidBackend TorchDynamoException Unsupported"
        ),
    },
    "_guards": {".root": "TracingContext"},
    "_higher_order_ops": {"func.control_flow": "associative_scan cond foreach_map map scan while_loop"},
    **{
        f"_higher_order_ops.{name}": {"func.control_flow": name}
        for name in "associative_scan cond foreach_map map scan while_loop".split()
    },
    "_inductor": {".utils": "cudagraph_mark_step_begin"},
    "_inductor.utils": {".utils": "fresh_cache fresh_inductor_cache=fresh_cache"},
    "export._draft_export": {"export": "draft_export"},
    "_jit_internal": {"jit": "_copy_to_script_wrapper=unused"},
    "_library": {},
    "_library.effects": {"library": "EffectType"},
    "_library.fake_impl": {"library": "FakeImplCtx"},
    "_subclasses.fake_tensor": {"contextlib": "unset_fake_temporarily=nullcontext"},
    "_tensor": {"_core": "Tensor", ".utils": "_rebuild_from_type_v2"},
    "_vmap_internals": {".autograd": "_vmap", "func": "vmap"},
    "accelerator.memory": {"accelerator": "empty_cache max_memory_allocated memory_allocated"},
    "ao": {},
    "ao.nn": {},
    "ao.nn.quantized": {".nn": "FXFloatFunctional FloatFunctional"},
    "autograd": {
        ".autograd": (
            "_disable_profiler _is_checkpoint_valid _profiler_enabled enforce_grad_layout_policy "
            "is_multithreading_enabled set_multithreading_enabled"
        ),
        "profiler": "DeviceType ProfilerActivity",
    },
    "autograd._functions": {".autograd": "Resize Type"},
    "autograd._functions.tensor": {".autograd": "Resize Type"},
    "autograd._functions.utils": {".autograd": "maybe_unexpand maybe_view"},
    "autograd.forward_ad": {".autograd": "_current_level"},
    "autograd.function": {".autograd": "FunctionMeta InplaceFunction"},
    "autograd.functional": {
        ".autograd": (
            "_as_tuple _autograd_grad _construct_standard_basis_for _grad_postprocess _grad_preprocess "
            "_tuple_postprocess"
        )
    },
    "autograd.grad_mode": {".autograd": "enforce_grad_layout_policy set_multithreading_enabled"},
    "autograd.profiler_util": {
        "profiler.table": "_format_memory=format_memory _format_time=format_time _format_time_share=_share"
    },
    "distributed._shard": {},
    "distributed.checkpoint.hf_storage": {
        "distributed.checkpoint": "HuggingFaceStorageReader HuggingFaceStorageWriter"
    },
    "distributed.constants": {"distributed": "default_pg_timeout"},
    **{
        name: {
            ".distributed": "_get_process_group_name _rank_not_in_group" + extra,
            "distributed.collectives": (
                "_all_gather_base=all_gather_into_tensor _reduce_scatter_base=reduce_scatter_tensor"
            ),
        }
        for name, extra in (("distributed", ""), ("distributed.distributed_c10d", " _pg_map"))
    },
    "fx._symbolic_trace": {
        "fx._compatibility": "compatibility",
        "fx._patch": (
            "_Patcher=Patcher _autowrap_check=autowrap_in _orig_module_call=plain_call "
            "_orig_module_getattr=plain_getattr _patch_wrapped_functions=patch_wrapped functools"
        ),
        "fx.proxy": "Proxy",
        "standin.overlay._C": "ScriptObject",
        "types": "FunctionType",
    },
    "jit._recursive": {".nn": "concrete_type_store"},
    "jit._script": {"jit": "RecursiveScriptModule ScriptModule script"},
    "jit._trace": {"jit.tracing": "TopLevelTracedModule TracerWarning TracingCheckError _get_trace_graph trace"},
    "jit.annotations": {
        "standin.overlay._jit_internal": "BroadcastingList1 BroadcastingList2 BroadcastingList3",
        "typing": "Any Dict List Optional Tuple Union",
    },
    "nn.modules.module": {
        "nn.modules._hooks": (
            "_global_backward_hooks=backward_hooks _global_backward_pre_hooks=backward_pre_hooks "
            "_global_buffer_registration_hooks=buffer_registration_hooks _global_forward_hooks=forward_hooks "
            "_global_forward_hooks_always_called=forward_hooks_always "
            "_global_forward_hooks_with_kwargs=forward_hooks_with_kwargs _global_forward_pre_hooks=forward_pre_hooks "
            "_global_module_registration_hooks=module_registration_hooks "
            "_global_parameter_registration_hooks=parameter_registration_hooks"
        ),
        ".nn": "_global_is_full_backward_hook _has_any_global_hook",
    },
    "nn.modules.linear_cross_entropy_options": {"nn.modules": "LinearCrossEntropyOptions"},
    "nn.parallel._functions": {".nn": "Broadcast Gather ReduceAddCoalesced Scatter"},
    "nn.parallel.comm": {".nn": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"},
    "cuda.comm": {".nn": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter"},
    "backends.cuda": {".root": "SDPAParams"},
    "cpu.amp.autocast_mode": {"cpu.amp": "autocast"},
    "cpu.amp.grad_scaler": {"cpu.amp": "GradScaler"},
    "cuda.amp.autocast_mode": {"cuda.amp": "autocast custom_bwd custom_fwd"},
    "cuda.amp.common": {".root": "amp_definitely_not_available"},
    "cuda.amp.grad_scaler": {"cuda.amp": "GradScaler"},
    "masked._ops": {"masked": "*"},
    "nested._internal": {},
    "nested._internal.nested_tensor": {"nested": "NestedTensor"},
    "nn": {".nn": "factory_kwargs"},
    "nn.init": {
        "nn.init": (
            "_no_grad_fill_=constant_ _no_grad_normal_=normal_ _no_grad_trunc_normal_=trunc_normal_ "
            "_no_grad_uniform_=uniform_ _no_grad_zero_=zeros_"
        )
    },
    "nn.utils._named_member_accessor": {".nn": "_MISSING swap_tensor"},
    "nn.functional": {"nn._attention": "_mha_shape_check=check_shapes", ".nn": "_none_or_dtype"},
    "nn.quantized": {".nn": "FXFloatFunctional FloatFunctional"},
    "optim._functional": {
        "optim.adam": "adam adamw",
        **{f"optim.{name}": name for name in "adadelta adagrad adamax asgd nadam radam rmsprop rprop sgd".split()},
    },
    "optim.lbfgs": {".optim": "_cubic_interpolate _strong_wolfe"},
    "optim.lr_scheduler": {"optim.schedule": "EPOCH_DEPRECATION_WARNING=_EPOCH"},
    "func.vmap": {"utils._pytree": "_broadcast_to_and_flatten"},
    "_utils": {"_settings": "_get_device_module=get_device_module"},
    "utils.data._utils.worker": {"utils.data._utils.worker": "_generate_state=numpy_seed"},
    "utils._foreach_utils": {
        ".optim": ("_device_has_foreach_support _group_tensors_by_device_and_dtype _has_foreach_support")
    },
    "optim.optimizer": {
        "typing": "DeviceDict=Dict DeviceDtypeDict=Dict ParamsT=Any StateDict=Any",
        ".optim": (
            "_capturable_doc _default_to_fused_or_foreach _device_dtype_check_for_fused _differentiable_doc "
            "_disable_dynamo_if_unsupported _foreach_doc _fused_doc _get_capturable_supported_devices "
            "_get_scalar_dtype _get_value _maximize_doc _params_doc _stack_if_compiling _to_scalar "
            "_use_grad_for_differentiable _view_as_real"
        ),
    },
    "profiler.profiler": {".utils": "_default_schedule_fn"},
    "serialization": {
        ".utils": (
            "LoadEndianness _is_zipfile _open_file_like check_module_version_greater_or_equal "
            "get_default_load_endianness get_default_mmap_options mkdtemp normalize_storage_type "
            "set_default_load_endianness storage_to_tensor_type"
        )
    },
    "signal.windows.windows": {
        "signal.windows": (
            "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall"
        )
    },
    "utils._device": {".utils": "DeviceContext set_device"},
    "utils._mode_utils": {"overrides": "no_dispatch=DisableDispatch", ".autograd": "all_same_mode"},
    "utils._pytree": {".utils": "arg_tree_leaves is_structseq_instance treespec_leaf"},
    "utils._sympy": {},
    "utils._sympy.numbers": {"builtins": "IntInfinity=float", "fx.experimental.symbolic_shapes": "int_oo"},
    "utils._sympy.value_ranges": {"fx.experimental.symbolic_shapes": "ValueRanges"},
    "utils.benchmark.utils": {},
    "utils.benchmark.utils.common": {
        "utils.benchmark": "Measurement TaskSpec ordered_unique select_unit trim_sigfig unit_to_english"
    },
    "utils.benchmark.utils.compare": {"utils.benchmark": "Compare"},
    "utils.benchmark.utils.timer": {"utils.benchmark": "Timer timer"},
    "utils.checkpoint": {".utils": "DefaultDeviceType"},
    "utils.tensorboard.summary": {"utils.tensorboard.writer": "hparams"},
}

#: By PyTorch's module: functions that always give the same answer, and the answer.
ANSWERS: dict[str, str] = {
    "": (
        "_nnpack_available=False compiled_with_cxx11_abi=True is_distributed=False is_vulkan_available=False "
        "thread_safe_generator=None"
    ),
    "_C": (
        "_cuda_getDeviceCount=0 _cuda_isInBadFork=False _debug_set_autodiff_subgraph_inlining=False "
        "_get_tracing_state=None _is_tracing=False _jit_override_can_fuse_on_cpu=False "
        "_jit_override_can_fuse_on_gpu=False _jit_set_autocast_mode=False _jit_set_bailout_depth=False "
        "_jit_set_nvfuser_enabled=False "
        "_jit_set_profiling_executor=False _jit_set_profiling_mode=False _jit_set_texpr_fuser_enabled=False "
        "_log_api_usage_once=None _set_print_stack_traces_on_fatal_signal=False"
    ),
    "_guards": "active_fake_mode=None detect_fake_mode=None",
    "autograd": "is_view_replay_enabled=False kineto_available=True",
    "backends": "flags_frozen=False",
    "backends.cuda": (
        "can_use_cudnn_attention=False can_use_efficient_attention=False can_use_flash_attention=False "
        "is_ck_sdpa_available=False"
    ),
    "utils._foreach_utils": (
        "_get_foreach_kernels_supported_devices=['cuda'] _get_fused_kernels_supported_devices=['cuda','cpu']"
    ),
    "utils._triton": "has_triton=False has_triton_package=False",
}

_QUANTISATION = (
    "there are no quantised tensors. Use bfloat16, or compute in float32",
    "DeQuantStub FakeQuantize FakeQuantizeBase ObserverBase QConfig QuantStub convert fuse_modules get_default_qconfig "
    "prepare prepare_qat quantize quantize_dynamic",
)

_SHARDING = "taeda.distributed has no such part; see docs/sharding.md for what there is"

#: By PyTorch's module: why names cannot work, and the names. Lower-case names are functions.
REFUSED: dict[str, tuple[str, str]] = {
    "": (
        "there are no quantised tensors",
        "choose_qparams_optimized dequantize empty_quantized quantize_per_channel quantize_per_tensor "
        "quantize_per_tensor_dynamic",
    ),
    "_C._functorch": (
        "vmap has no tensors of a level; call torch.vmap",
        "_add_batch_dim _remove_batch_dim get_unwrapped",
    ),
    "func.vmap": ("vmap has no tensors of a level; call torch.vmap", "_get_name _maybe_remove_batch_dim"),
    "_subclasses.functional_tensor": ("there are no functional tensors", "FunctionalTensor FunctionalTensorMode"),
    "ao.quantization": _QUANTISATION,
    "cuda": ("there is no GPU", "_dump_snapshot _record_memory_history _snapshot"),
    **{
        f"distributed.{module}": (_SHARDING, names)
        for module, names in {
            "_shard.sharded_tensor": "ShardedTensor",
            "checkpoint": "HuggingFaceStorageReader HuggingFaceStorageWriter",
            "checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
            "checkpoint.format_utils": (
                "BroadcastingTorchSaveReader DynamicMetaLoadPlanner _EmptyStateDictLoadPlanner"
            ),
            "checkpoint.optimizer": "load_sharded_optimizer_state_dict",
            "checkpoint.state_dict_loader": "_load_state_dict",
            "fsdp": "FlatParameter",
            "fsdp._flat_param": "FlatParameter",
            "fsdp.wrap": "_or_policy _recursive_wrap",
            "optim": "DistributedOptimizer",
            "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
            "utils": "_sync_module_states",
        }.items()
    },
    "monitor": (
        "there is no event log; write to tensorboard's SummaryWriter or to a logger",
        "Aggregation Event Stat TensorboardEventHandler log_event register_event_handler unregister_event_handler",
    ),
    "mps": (
        "there is no such device",
        "compile_shader driver_allocated_memory get_rng_state recommended_max_memory seed "
        "set_per_process_memory_fraction set_rng_state",
    ),
    "quantization": _QUANTISATION,
    "xpu": (
        "there is no such device",
        "current_device current_stream device get_device_capability get_device_name get_device_properties "
        "get_rng_state get_rng_state_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated "
        "memory_reserved memory_stats reset_peak_memory_stats seed set_device set_rng_state set_rng_state_all "
        "set_stream stream",
    ),
}


def has_module(name: str) -> bool:
    """Whether the tables have an entry for ``torch.<name>``."""
    return any(name in table for table in (NAMES, ANSWERS, REFUSED))


def has_modules_in(name: str) -> bool:
    """Whether the tables have modules within ``torch.<name>``."""
    return any(module.startswith(f"{name}.") for module in (*NAMES, *ANSWERS, *REFUSED))


@cache
def _homes(module: str) -> dict[str, tuple[str, str]]:
    """The home of each name of a module, and what it is called there."""
    found = {}
    for home, names in NAMES.get(module, {}).items():
        all_names = importlib.import_module(f"taeda.{home}").__all__ if names == "*" else names.split()
        for name in all_names:
            theirs, _, ours = name.partition("=")
            found[theirs] = home, ours or theirs
    return found


@cache
def _refused(module: str, name: str) -> Any:
    why, names = REFUSED.get(module, ("", ""))
    if name not in names.split():
        return None
    make = refused_function if name.lstrip("_")[:1].islower() else refused_class
    return make(f"torch.{module}.{name}".replace("..", "."), why)


@cache
def _answers(module: str) -> dict[str, Any]:
    """The functions of a module that always give the same answer."""
    found = {}
    for entry in ANSWERS.get(module, "").split():
        name, _, answer = entry.partition("=")
        function = found[name] = eval(f"lambda *args, **kwargs: {answer}")
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"Always {answer}."
    return found


def has(module: str, name: str) -> bool:
    """Whether the tables have ``name`` in ``torch.<module>``."""
    return name in _homes(module)


def find(module: str, name: str) -> Any:
    """The object called ``name`` in ``torch.<module>``.

    Raises:
        AttributeError: the tables do not have it.
    """
    at = _homes(module).get(name)
    if at is None:
        found = _answers(module).get(name) or _refused(module, name)
        if found is None:
            raise AttributeError(name)
        return found
    home, ours = at
    if home.startswith("."):
        return getattr(importlib.import_module(home, __name__), ours)
    return getattr(importlib.import_module(home if home in _OF_PYTHON else f"taeda.{home}"), ours)
