"""Names of PyTorch's modules that taeda's modules of the same name do not have, in two tables.

Most are private: packages import them although they are nobody's interface. A module that only has such names is made of the
table. What cannot work here can be named and imported, and refuses when it is used.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from taeda._refuse import refused_class, refused_function

#: By PyTorch's module: the modules that have the names, and the names; ``theirs=ours`` where they differ. A home with a dot in
#: front is a module of this package, the others are modules of taeda.
NAMES: dict[str, dict[str, str]] = {
    "": {
        ".root": (
            "Tag _amp_update_scale_ _check_tensor_all _check_tensor_all_with _check_with "
            "_has_compatible_shallow_copy_type _nnpack_available classproperty "
            "compiled_with_cxx11_abi get_device_module get_file_path is_distributed is_vulkan_available "
            "legacy_contiguous_format sym_fresh_size thread_safe_generator"
        ),
        ".dtypes": (
            "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine "
            "per_tensor_symmetric qscheme"
        ),
        "utils.dlpack": "to_dlpack",
        "typing": "TYPE_CHECKING",
    },
    "_C": {".root": "PyTorchFileReader PyTorchFileWriter _current_graph_task_id _get_accelerator _get_default_device"},
    "_dynamo.config": {".utils": "patch=config_patch"},
    "_dynamo.eval_frame": {"standin.overlay._dynamo": "is_dynamo_supported"},
    "_guards": {".root": "TracingContext active_fake_mode detect_fake_mode"},
    "_inductor": {".utils": "cudagraph_mark_step_begin"},
    "_inductor.config": {".utils": "patch=config_patch"},
    "export._draft_export": {"export": "draft_export"},
    "_jit_internal": {"jit": "_copy_to_script_wrapper=unused"},
    "_subclasses.fake_tensor": {"contextlib": "unset_fake_temporarily=nullcontext"},
    "_tensor": {".utils": "_rebuild_from_type_v2"},
    "_vmap_internals": {".autograd": "_vmap", "func": "vmap"},
    "accelerator.memory": {"accelerator": "empty_cache max_memory_allocated memory_allocated"},
    "ao.nn.quantized": {".nn": "FXFloatFunctional FloatFunctional"},
    "autograd": {
        ".autograd": (
            "_disable_profiler _is_checkpoint_valid _profiler_enabled enforce_grad_layout_policy is_multithreading_enabled "
            "is_view_replay_enabled kineto_available set_multithreading_enabled"
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
            "_as_tuple _autograd_grad _construct_standard_basis_for _grad_postprocess _grad_preprocess _tuple_postprocess"
        )
    },
    "autograd.grad_mode": {".autograd": "enforce_grad_layout_policy set_multithreading_enabled"},
    "autograd.profiler_util": {
        "profiler.table": "_format_memory=format_memory _format_time=format_time _format_time_share=_share"
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
    "backends.cuda": {
        ".root": "SDPAParams can_use_cudnn_attention=_not_here can_use_efficient_attention=_not_here "
        "can_use_flash_attention=_not_here is_ck_sdpa_available=_not_here"
    },
    "cpu.amp.autocast_mode": {"cpu.amp": "autocast"},
    "cpu.amp.grad_scaler": {"cpu.amp": "GradScaler"},
    "cuda.amp.autocast_mode": {"cuda.amp": "autocast custom_bwd custom_fwd"},
    "cuda.amp.grad_scaler": {"cuda.amp": "GradScaler"},
    "masked._ops": {
        "masked": "amax amin argmax argmin cumprod cumsum log_softmax logsumexp mean norm prod softmax std sum var"
    },
    "nested._internal": {},
    "nested._internal.nested_tensor": {"nested": "NestedTensor"},
    "nn": {".nn": "factory_kwargs"},
    "nn.functional": {"nn._attention": "_mha_shape_check=check_shapes", ".nn": "_none_or_dtype"},
    "nn.quantized": {".nn": "FXFloatFunctional FloatFunctional"},
    "optim.lbfgs": {".optim": "_cubic_interpolate _strong_wolfe"},
    "optim.lr_scheduler": {"optim.schedule": "EPOCH_DEPRECATION_WARNING=_EPOCH"},
    "utils._foreach_utils": {
        ".optim": (
            "_device_has_foreach_support _get_foreach_kernels_supported_devices _get_fused_kernels_supported_devices "
            "_group_tensors_by_device_and_dtype _has_foreach_support"
        )
    },
    "optim.optimizer": {"typing": "ParamsT=Any StateDict=Any"},
    "profiler.profiler": {".utils": "_default_schedule_fn"},
    "serialization": {
        ".utils": (
            "LoadEndianness _is_zipfile _open_file_like check_module_version_greater_or_equal get_default_load_endianness "
            "get_default_mmap_options mkdtemp normalize_storage_type set_default_load_endianness storage_to_tensor_type"
        )
    },
    "signal.windows.windows": {
        "signal.windows": (
            "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall"
        )
    },
    "utils._device": {".utils": "DeviceContext set_device"},
    "utils._mode_utils": {"contextlib": "no_dispatch=nullcontext", ".autograd": "all_same_mode"},
    "utils._pytree": {".utils": "arg_tree_leaves is_structseq_instance treespec_leaf"},
    "utils._triton": {".root": "has_triton=_not_here has_triton_package=_not_here"},
    "utils.benchmark.utils": {},
    "utils.benchmark.utils.common": {"utils.benchmark": "Measurement"},
    "utils.benchmark.utils.compare": {"utils.benchmark": "Compare"},
    "utils.benchmark.utils.timer": {"utils.benchmark": "Timer timer"},
    "utils.checkpoint": {".utils": "DefaultDeviceType"},
    "utils.tensorboard.summary": {"utils.tensorboard.writer": "hparams"},
}

#: By PyTorch's module: why names cannot work, and the names. Those in lower case are functions.
REFUSED: dict[str, tuple[str, str]] = {
    "": (
        "there are no quantised tensors",
        "choose_qparams_optimized dequantize empty_quantized quantize_per_channel quantize_per_tensor "
        "quantize_per_tensor_dynamic",
    ),
    "_subclasses.functional_tensor": ("there are no functional tensors", "FunctionalTensor FunctionalTensorMode"),
    "cuda.memory": ("there is no GPU", "_dump_snapshot _record_memory_history _snapshot"),
    "cuda.profiler": ("there is no GPU; use taeda.profiler", "init profile start stop"),
    "mps": (
        "there is no such device",
        "compile_shader driver_allocated_memory get_rng_state recommended_max_memory seed set_per_process_memory_fraction "
        "set_rng_state",
    ),
    "xpu": (
        "there is no such device",
        "current_device current_stream device get_device_capability get_device_name get_device_properties get_rng_state "
        "get_rng_state_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved "
        "memory_stats reset_peak_memory_stats seed set_device set_rng_state set_rng_state_all set_stream stream",
    ),
}


def has_module(name: str) -> bool:
    """Whether the tables say what is in ``torch.<name>``."""
    return name in NAMES or name in REFUSED


def has_modules_in(name: str) -> bool:
    """Whether the tables have modules within ``torch.<name>``."""
    return any(module.startswith(f"{name}.") for module in (*NAMES, *REFUSED))


@cache
def _homes(module: str) -> dict[str, tuple[str, str]]:
    """The home of each name of a module, and what it is called there."""
    found = {}
    for home, names in NAMES.get(module, {}).items():
        for name in names.split():
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


def find(module: str, name: str) -> Any:
    """What ``torch.<module>`` has under ``name``.

    Raises:
        AttributeError: the tables do not have it.
    """
    at = _homes(module).get(name)
    if at is None:
        refused = _refused(module, name)
        if refused is None:
            raise AttributeError(name)
        return refused
    home, ours = at
    if home.startswith("."):
        return getattr(importlib.import_module(home, __name__), ours)
    return getattr(importlib.import_module(home if home in ("contextlib", "typing") else f"taeda.{home}"), ours)
