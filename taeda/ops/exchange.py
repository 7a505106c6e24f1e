"""Tensors from Python numbers, NumPy arrays, buffers and other libraries: the public names of ``_core.exchange``."""

from .._core.dlpack import from_dlpack
from .._core.exchange import as_tensor, asarray, from_numpy, frombuffer, tensor
from .table import composite

for _function in (tensor, as_tensor, asarray, from_numpy, frombuffer, from_dlpack):
    composite(method=False)(_function)

__all__ = ["as_tensor", "asarray", "from_dlpack", "from_numpy", "frombuffer", "tensor"]
