"""Kernels: Python that writes LLVM IR. Knows nothing of tensors; imports nothing of taeda above itself.

``from taeda.kernels import softmax`` does not run that module: it is loaded when the first of its kernels is asked for.
Most programs need few of them, and ``import taeda`` none.
"""

import importlib.util
import sys
from types import ModuleType


def _deferred(name: str) -> ModuleType:
    """The submodule ``name``, which runs on the first access to one of its attributes."""
    full = f"{__name__}.{name}"
    spec = importlib.util.find_spec(full)
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module
    spec.loader.exec_module(module)
    return module


attention = _deferred("attention")
bags = _deferred("bags")
channel_norm = _deferred("channel_norm")
conv = _deferred("conv")
copy = _deferred("copy")
ctc = _deferred("ctc")
gemm = _deferred("gemm")
gridsample = _deferred("gridsample")
indexing = _deferred("indexing")
normalize = _deferred("normalize")
optim = _deferred("optim")
pool = _deferred("pool")
pool_last = _deferred("pool_last")
recurrent = _deferred("recurrent")
resample = _deferred("resample")
scalar = _deferred("scalar")
scan = _deferred("scan")
softmax = _deferred("softmax")
sort = _deferred("sort")
target = _deferred("target")
