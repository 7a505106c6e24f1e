"""``torch._C``: PyTorch's compiled part, as far as Python programs name it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from taeda import Generator, Size, Tensor, device, dtype, layout, memory_format
from taeda.overrides import DisableDispatch as _DisableTorchDispatch
from taeda.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _disabled_torch_function_impl,
    _is_torch_function_enabled,
    _is_torch_function_mode_enabled,
)

TensorBase = _TensorBase = Tensor
_TensorMeta: Any = type(Tensor)

globals().update({
    name: type(name, (), {"__doc__": "A part of PyTorch's C++: nothing is one.", "__module__": "torch._C"})
    for name in (
        "Argument DeviceObjType DictType FunctionSchema Graph JitType ListType Node OperatorInfo ScriptFunction "
        "ScriptMethod ScriptModule ScriptObject TensorType Type Value"
    ).split()
})  # fmt: skip


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """The stages of PyTorch's dispatcher, by name; taeda has no such stages."""


class DispatchKeySet:
    """Several of them."""

    def __init__(self, *keys: Any) -> None:
        self.keys = set(keys)

    def has(self, key: Any) -> bool:
        """Whether ``key`` is among them."""
        return key in self.keys

    def __or__(self, other: Any) -> Any:
        return DispatchKeySet(*self.keys, *getattr(other, "keys", ()))

    def add(self, key: Any) -> Any:
        """These and ``key``."""
        return DispatchKeySet(*self.keys, key)


class _NoGuard:
    """A guard of the dispatcher: nothing."""

    def __init__(self, *args: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        pass


class _ExcludeDispatchKeyGuard:
    """Within it, autocast is off for the devices whose keys of autocast are in ``keys``; the other keys are none here.

    Args:
        keys: a DispatchKeySet, or one key.
    """

    def __init__(self, keys: Any) -> None:
        from taeda.amp import autocast

        names = sorted(getattr(keys, "keys", None) or {keys})
        kinds = [name.removeprefix("Autocast").lower() for name in names if name.startswith("Autocast")]
        self._off = [autocast(kind, enabled=False) for kind in kinds]

    def __enter__(self) -> None:
        for guard in self._off:
            guard.__enter__()

    def __exit__(self, *exc: Any) -> None:
        for guard in reversed(self._off):
            guard.__exit__(*exc)


class _DisableAutocast(_ExcludeDispatchKeyGuard):
    """Within it, autocast is off for every device."""

    def __init__(self) -> None:
        super().__init__(DispatchKeySet("AutocastCPU", "AutocastCUDA"))


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard
_IncludeDispatchKeyGuard = _AutoDispatchBelowAutograd = _NoGuard
_DisableFuncTorch = _AutoDispatchBelowADInplaceOrView = _NoGuard


__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator", "Size",
    "TensorBase", "device", "dtype", "layout", "memory_format",
]  # fmt: skip

#: Libraries PyTorch may be built with.
has_cuda = has_mps = has_mkl = has_mkldnn = has_openmp = _has_cuda = _has_mps = _has_mkldnn = _has_xpu = False
has_lapack = has_spectral = True


def _are_functorch_transforms_active() -> bool:
    from taeda._core import is_mode_active

    return is_mode_active()


def _get_cpu_capability() -> str:
    from taeda.backends.cpu import get_cpu_capability

    return get_cpu_capability()


def functions_of(space: str) -> Callable[[str], Any]:
    """A function that finds those of ``torch.<space>`` in ``torch._C._<space>``: ``inv`` is ``linalg_inv`` there."""

    def find(name: str) -> Any:
        inner = name.removeprefix(f"{space}_")
        found = None if inner == name else getattr(importlib.import_module(f"taeda.{space}"), inner, None)
        if not callable(found):
            raise AttributeError(f"module 'torch._C._{space}' has no attribute '{name}'", name=name)
        return found

    return find


def __getattr__(name: str) -> Any:
    """Functions that PyTorch gives at its top as well as here."""
    import taeda

    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(taeda.random, name) if name == "default_generator" else getattr(taeda, name, None)
    if not callable(found) and not isinstance(found, Generator):
        raise AttributeError(f"module 'torch._C' has no attribute '{name}'", name=name)
    return found
