"""Parts of taeda that are imported when they are first named, so that ``import taeda`` stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

#: Modules of taeda.
MODULES = frozenset(
    "accelerator amp array_api backends compiler cpu cuda distributed distributions export fft func futures fx hub io "
    "jit kernel library masked mps multiprocessing nested nn onnx optim profiler quasirandom serialization signal "
    "sparse standin testing utils xpu".split()
)

#: Functions and classes that live in one of them, by public name.
NAMES = {
    name: module
    for module, names in {
        "taeda.amp": "autocast GradScaler",
        "taeda.amp.autocast_mode": (
            "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
            "get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled "
            "is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
            "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype"
        ),
        "taeda.autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
        "taeda._asserts": "_assert",
        "taeda.compiler": "compile",
        "taeda.func.control_flow": "cond while_loop",
        "taeda.func": "vmap",
        "taeda.nn.functional": (
            "adaptive_avg_pool1d avg_pool1d channel_shuffle cosine_similarity max_pool1d max_pool2d max_pool3d "
            "native_channel_shuffle pairwise_distance pixel_shuffle pixel_unshuffle"
        ),
        "taeda.nn.lower": (
            "_batch_norm_with_update _log_softmax _log_softmax_backward_data _native_batch_norm_legit "
            "_native_batch_norm_legit_no_training _safe_softmax _softmax _softmax_backward_data "
            "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _weight_norm adaptive_max_pool1d "
            "affine_grid_generator batch_norm binary_cross_entropy_with_logits convolution cosine_embedding_loss "
            "ctc_loss embedding_bag grid_sampler grid_sampler_2d grid_sampler_3d gru gru_cell "
            "hinge_embedding_loss instance_norm kl_div lstm lstm_cell margin_ranking_loss max_pool1d_with_indices "
            "native_batch_norm native_dropout native_group_norm poisson_nll_loss rnn_relu rnn_relu_cell rnn_tanh "
            "rnn_tanh_cell triplet_margin_loss"
        ),
        "taeda.overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
        "taeda.accelerator": "Event Stream",
        "taeda.serialization": "load save",
        "taeda.sparse": "dsmm hspmm resize_as_sparse_ smm spmm sspaddmm",
    }.items()
    for name in names.split()
}

#: Modules that a lower layer loads when a program asks for what they hold, and what it asks for. No other import leads
#: from a lower layer to a higher one.
ABOVE = {
    "_numpy": "NumPy's functions of tensors that require grad",
    "array_api": "`Tensor.__array_namespace__`",
    "aten": "`taeda.ops.aten`, PyTorch's name for it",
    "aten.spellings": "an op by ATen's name: the records need `nn`, the names of ops do not",
    "compiler": "`Module.compile`",
    "distributed": "`nn.parallel.DistributedDataParallel`, `utils.data.DistributedSampler`",
    "distributed.nn.functional": "`nn.SyncBatchNorm`",
    "profiler.events": "`autograd.profiler_util`, PyTorch's older name for it",
    "profiler.legacy": "`autograd.profiler`, PyTorch's older name for it",
    "utils._wrapper_subclass": "classes with a `__torch_dispatch__`",
}


def above(name: str) -> Any:
    """The module ``taeda.<name>`` of a higher layer, loaded now."""
    if name not in ABOVE:
        raise KeyError(f"taeda.{name}: a module of a higher layer is declared in taeda/_namespaces.py, ABOVE")
    return importlib.import_module(f"taeda.{name}")


def names_of(name: str, package: str, names: tuple[str, ...] | None = None) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``, PyTorch's path to public names of ``taeda.<name>``, which lies above it.

    Args:
        name: one of :data:`ABOVE`.
        package: the full name of the module that hands the names on.
        names: those that it hands on (default: all).
    """

    def handed_on(attribute: str) -> Any:
        if not attribute.startswith("__") and (names is None or attribute in names):
            found = getattr(above(name), attribute, None)
            if found is not None:
                return found
        raise AttributeError(f"module {package!r} has no attribute {attribute!r}", name=attribute)

    return handed_on


def lazy(name: str) -> Any:
    """The attribute ``name`` of taeda, imported now: the ``__getattr__`` of the package.

    Raises:
        AttributeError: there is no such thing.
    """
    if name.startswith("_foreach_"):
        foreach = vars(importlib.import_module("taeda._foreach"))
        if name not in foreach:
            raise missing(name)
        value = foreach[name]
    elif name in NAMES:
        value = getattr(importlib.import_module(NAMES[name]), name)
    elif name in MODULES:
        try:
            value = importlib.import_module(f"taeda.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"taeda.{name}":
                raise
            raise missing(name) from None
    else:
        raise missing(name)
    setattr(sys.modules["taeda"], name, value)
    return value


def parts(package: str, names: dict[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``, whose modules are imported when they, or names in them, are first asked for.

    Args:
        package: its full name.
        names: by module, the public names that live there.
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}

    def late(name: str) -> Any:
        if name not in homes and name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module = importlib.import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(module, name) if name in homes else module
        setattr(sys.modules[package], name, value)
        return value

    return late


def complete() -> dict[str, Any]:
    """The package's names with all of :data:`NAMES` imported, for code that looks for functions."""
    package = sys.modules["taeda"]
    for name in NAMES:
        getattr(package, name)
    return vars(package)


def listing() -> list[str]:
    """All names of taeda, those that are not imported yet included: the ``__dir__`` of the package."""
    return sorted({*vars(sys.modules["taeda"]), *MODULES, *NAMES})


def missing(name: str) -> AttributeError:
    """The error for a name that taeda does not have, with the nearest public one."""
    text = f"module 'taeda' has no attribute '{name}'"
    # Machinery asks for private names, often, and so does `from . import overrides` while taeda is being imported.
    if not name.startswith("_") and not getattr(sys.modules["taeda"].__spec__, "_initializing", False):
        from ._core.nearest import nearest

        text += nearest(name, [x for x in listing() if not x.startswith("_")])
    return AttributeError(text, name=name)
