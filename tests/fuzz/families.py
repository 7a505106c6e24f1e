"""The functions that are fuzzed: everything public that takes or makes tensors, in families by source file."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import taeda
from taeda._namespaces import NAMES
from taeda.ops.table import METHODS

#: Places where users find functions: the text before a name, and the namespace. The first place that has one counts.
HOMES: dict[str, Any] = {
    "": taeda,
    "linalg.": taeda.linalg,
    "fft.": taeda.fft,
    "special.": taeda.special,
    "nn.functional.": taeda.nn.functional,
    "signal.windows.": taeda.signal.windows,
    "sparse.": taeda.sparse,
    "masked.": taeda.masked,
    "nested.": taeda.nested,
    "Tensor.": taeda.Tensor,
}

#: The modules of the package that make a family, by the beginning of their names.
FAMILIES = {
    "pointwise": (
        "ops.pointwise", "ops.powers", "ops.extrema", "ops.conjugation", "ops.elementary", "ops.comparison", "ops.activation", "ops.special", "ops.bessel", "ops.orthogonal",
        "ops.inplace", "special.",
    ),
    "reduction": ("ops.reduction", "ops.statistics", "ops.scan", "ops.softmax", "ops.histogram", "masked"),
    "shape": ("ops.shape", "ops.joining", "ops.copies", "ops.views", "ops.view_copies", "ops.view_scatters", "_core.formats"),
    "indexing": ("ops.indexing", "items", "ops.sparse", "ops.compressed", "sparse", "nested"),
    "scatter": ("ops.scatter", "ops.segments"),
    "sort": ("ops.sorting",),
    "linalg": ("ops.linalg", "ops.matmul", "ops.einsum", "ops.contraction", "linalg"),
    "fft": ("ops.fft", "ops.spectrogram", "ops.windows", "fft"),
    "functional": (
        "ops.loss", "ops.cross_entropy", "ops.conv.", "ops.pooling", "ops.interpolation", "ops.normalization",
        "ops.batch_norm", "ops.attention", "ops.embedding", "ops.ctc", "ops.recurrent", "ops.quantization", "nn.",
        "_compiled",
    ),
    "creation": ("ops.creation", "ops.matrices", "ops.conversion", "ops.exchange", "_core.exchange"),
    "tensor": ("_core.tensor", "types", "storage", "ops.callables", "ops.out", "ops.table", "array_api", "_scalars", "overrides"),
    "random": ("ops.random", "ops.dropout", "ops.variates"),
}  # fmt: skip

_LEFT_OUT = {
    "reads or writes memory or a file that it is pointed to": "from_dlpack frombuffer Tensor.set_",
    "a setting of the process": (
        "set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_flush_denormal "
        "set_float32_matmul_precision set_num_interop_threads set_num_threads set_printoptions set_warn_always "
        "use_deterministic_algorithms set_rng_state seed manual_seed fork_rng printoptions"
    ),
    "asks for a setting": (
        "are_deterministic_algorithms_enabled get_default_device get_default_dtype get_deterministic_debug_mode "
        "get_device_module get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions get_rng_state initial_seed "
        "is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_warn_always_enabled"
    ),
    "takes functions": "Tensor.apply_ Tensor.map_ Tensor.map2_ Tensor.register_hook Tensor.register_post_accumulate_grad_hook",
    "moves storages between processes or devices": "Tensor.share_memory_ Tensor.pin_memory Tensor.cuda",
}
#: Public functions that are not called, with the reason.
LEFT_OUT = {name: why for why, names in _LEFT_OUT.items() for name in names.split()}


#: The methods of ``x[key]``.
ITEMS = ("__getitem__", "__setitem__", "__delitem__", "__contains__")

#: Functions that answer wrong arguments with an AssertionError, as in PyTorch.
ASSERTS = {"nn.functional.embedding", "nn.functional.multi_head_attention_forward", "sym_ite"}


@functools.cache
def public() -> dict[str, Callable]:
    """Every function and method that users can call with tensors, once, by the name under which they find it."""
    found: dict[str, Callable] = {}
    seen: set[tuple[int, str]] = set()
    for prefix, home in HOMES.items():
        for name in sorted(set(dir(home)) | (set(METHODS) if home is taeda.Tensor else set())):
            if name.startswith("_") and name not in ITEMS:
                continue
            if home is taeda and name in NAMES:  # another namespace's, here only once somebody has asked for it
                continue
            function = getattr(home, name, None)
            if not callable(function) or inspect.isclass(function) or module_of(function) is None:
                continue
            form = name.rpartition("_")[1:]  # in-place forms and copies of views share the function that declares them
            key = (id(inspect.unwrap(function)), "".join(form) if form[1] in ("", "copy") else "")
            if key not in seen:
                seen.add(key)
                found[prefix + name] = function
    return found


def module_of(function: Callable) -> str | None:
    """The module inside the package that defines ``function``, None for one of another package."""
    if getattr(function, "__name__", "") in ITEMS:
        return "items"
    if isinstance(function, types.MethodDescriptorType):  # a method of the core's classes does not name its module
        return "_core.tensor" if issubclass(function.__objclass__, taeda.Tensor) else None
    module = getattr(function, "__module__", None) or ""
    return module.removeprefix("taeda.") if module.startswith("taeda.") else None


@functools.cache
def members(family: str) -> tuple[str, ...]:
    """The names of a family's functions, in order."""
    begins = FAMILIES[family]
    return tuple(
        sorted(name for name, f in public().items() if name not in LEFT_OUT and f"{module_of(f)}.".startswith(begins))
    )
