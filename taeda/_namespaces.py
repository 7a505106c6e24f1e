"""Parts of taeda that are imported when they are first named, so that ``import taeda`` stays quick."""

from __future__ import annotations

import importlib
import sys
from typing import Any

#: Modules of taeda.
MODULES = frozenset(
    "amp backends compiler cuda distributed distributions export futures fx hub jit library mps "
    "multiprocessing nested onnx profiler quasirandom sparse standin testing xpu accelerator".split()
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
        "taeda.overrides": "DisableTorchFunction DisableTorchFunctionSubclass",
        "taeda.accelerator": "Event Stream",
        "taeda.sparse": "dsmm hspmm resize_as_sparse_ smm spmm sspaddmm",
    }.items()
    for name in names.split()
}


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


def listing() -> list[str]:
    """All names of taeda, those that are not imported yet included: the ``__dir__`` of the package."""
    return sorted({*vars(sys.modules["taeda"]), *MODULES, *NAMES})


def missing(name: str) -> AttributeError:
    """The error for a name that taeda does not have, with the nearest public one."""
    text = f"module 'taeda' has no attribute '{name}'"
    if not name.startswith("_"):  # these are asked for by machinery, often, and caught
        from ._core.nearest import nearest

        text += nearest(name, [x for x in listing() if not x.startswith("_")])
    return AttributeError(text, name=name)
