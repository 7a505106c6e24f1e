"""Kernels: Python that writes LLVM IR. Knows nothing of tensors; imports nothing of taeda above itself.

``from taeda.kernels import softmax`` does not run that module: it is loaded when the first of its kernels is asked for.
Most programs need few of them, and ``import taeda`` none.
"""

import importlib.util
import sys
from types import ModuleType

from .forks import loading


class _Deferred(ModuleType):
    """A module that runs when an attribute is asked for that it lacks. Other threads that ask meanwhile wait."""

    def __getattr__(self, name: str):
        with loading:
            if type(self) is _Deferred:
                assert self.__spec__ is not None and self.__spec__.loader is not None
                if self.__spec__.loader_state:  # it is running, on this thread
                    raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
                self.__spec__.loader_state = True
                try:
                    self.__spec__.loader.exec_module(self)
                    self.__class__ = ModuleType
                finally:
                    self.__spec__.loader_state = False
        return getattr(self, name)


def _deferred(name: str) -> ModuleType:
    """The submodule ``name``, which runs on the first access to one of its attributes."""
    full = f"{__name__}.{name}"
    spec = importlib.util.find_spec(full)
    assert spec is not None
    module = sys.modules[full] = importlib.util.module_from_spec(spec)
    module.__class__ = _Deferred
    return module


attention = _deferred("attention")
bags = _deferred("bags")
build = _deferred("build")
channel_norm = _deferred("channel_norm")
conv = _deferred("conv")
conv_windows = _deferred("conv_windows")
copy = _deferred("copy")
ctc = _deferred("ctc")
depthwise = _deferred("depthwise")
depthwise_last = _deferred("depthwise_last")
dot = _deferred("dot")
floor = _deferred("floor")
fused = _deferred("fused")
gemm = _deferred("gemm")
gridsample = _deferred("gridsample")
indexing = _deferred("indexing")
normalize = _deferred("normalize")
optim = _deferred("optim")
pointwise = _deferred("pointwise")
pool = _deferred("pool")
pool_last = _deferred("pool_last")
random = _deferred("random")
recurrent = _deferred("recurrent")
reduce = _deferred("reduce")
resample = _deferred("resample")
rowwise = _deferred("rowwise")
scalar = _deferred("scalar")
scan = _deferred("scan")
short_gemm = _deferred("short_gemm")
softmax = _deferred("softmax")
sort = _deferred("sort")
target = _deferred("target")
winograd = _deferred("winograd")
