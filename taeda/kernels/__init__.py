"""Kernels: Python that writes LLVM IR. They know nothing of tensors and import nothing else of taeda.

``from taeda.kernels import softmax`` does not run that module. It runs when the first of its kernels is used: most
programs need few kernels, and ``import taeda`` needs none.
"""

import importlib.util
import sys
from types import ModuleType

from .forks import loading


class _Deferred(ModuleType):
    """A module that runs on the first access to an attribute. Other threads wait until all of it has run, since
    functions defined first may call later ones.
    """

    def __getattribute__(self, name: str):
        if not name.startswith("__"):
            _run(self)
        return ModuleType.__getattribute__(self, name)

    def __getattr__(self, name: str):  # a dunder name that exists only once the module has run
        _run(self)
        return ModuleType.__getattribute__(self, name)


def _run(module: ModuleType) -> None:
    with loading:
        if type(module) is not _Deferred:
            return
        assert module.__spec__ is not None and module.__spec__.loader is not None
        if module.__spec__.loader_state:  # it is already running, on this thread
            return
        module.__spec__.loader_state = True
        try:
            module.__spec__.loader.exec_module(module)
            module.__class__ = ModuleType
        finally:
            module.__spec__.loader_state = False


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
cross_entropy = _deferred("cross_entropy")
ctc = _deferred("ctc")
depthwise = _deferred("depthwise")
depthwise_last = _deferred("depthwise_last")
distances = _deferred("distances")
dot = _deferred("dot")
floor = _deferred("floor")
foreign = _deferred("foreign")
fused = _deferred("fused")
gemm = _deferred("gemm")
gridsample = _deferred("gridsample")
host_functions = _deferred("host_functions")
images = _deferred("images")
indexing = _deferred("indexing")
normalize = _deferred("normalize")
online = _deferred("online")
optim = _deferred("optim")
packing = _deferred("packing")
philox = _deferred("philox")
pipeline = _deferred("pipeline")
pointwise = _deferred("pointwise")
pool = _deferred("pool")
pool_last = _deferred("pool_last")
programs = _deferred("programs")
random = _deferred("random")
recurrent = _deferred("recurrent")
reduce = _deferred("reduce")
resample = _deferred("resample")
rows = _deferred("rows")
rowwise = _deferred("rowwise")
scalar = _deferred("scalar")
scan = _deferred("scan")
short_gemm = _deferred("short_gemm")
softmax = _deferred("softmax")
sort = _deferred("sort")
target = _deferred("target")
tile = _deferred("tile")
winograd = _deferred("winograd")
