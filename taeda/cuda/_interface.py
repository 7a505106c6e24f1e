"""Memory of a GPU shared with other libraries: ``__cuda_array_interface__`` and streams for DLPack.

The interface is written as version 2. A stream, as version 3 has it, is read.
"""

from __future__ import annotations

import math
from typing import Any

from .._core import Tensor, dtype_by_name, from_storage, install, strided
from .._core.memory import device_storage
from . import _contract, _native
from .streams import ExternalStream, current_stream, default_stream

_TYPES = {
    "complex64": "<c8", "complex128": "<c16", "bfloat16": "<V2", "float16": "<f2", "float32": "<f4", "float64": "<f8",
    "uint8": "|u1", "int8": "|i1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4", "int32": "<i4", "uint64": "<u8",
    "int64": "<i8", "bool": "|b1",
}  # fmt: skip
_DTYPES = {text: name for name, text in _TYPES.items() if text != "<V2"}


def interface(self: Tensor) -> dict[str, Any]:
    """The memory of a tensor on a GPU, for other libraries."""
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if self.layout is not strided:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on sparse type: {self.type()} Use Tensor.to_dense() to convert to a "
            "dense tensor first."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    if self.dtype.name not in _TYPES:
        raise AttributeError(f"__cuda_array_interface__ has no type for {self.dtype}")
    size = self.element_size()
    return {
        "typestr": _TYPES[self.dtype.name],
        "shape": tuple(self.shape),
        "strides": None if self.is_contiguous() else tuple(s * size for s in self.stride()),
        "data": (self.data_ptr() if self.numel() else 0, False),
        "version": 2,
    }


class _Interface:
    """The attribute: other libraries ask by ``hasattr``, so tensors elsewhere have none."""

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self if tensor is None else interface(tensor)


install("__cuda_array_interface__", _Interface())


def _dir(self: Tensor) -> list[str]:
    """The names that a tensor has; only one on a GPU shows its memory to other libraries."""
    found = object.__dir__(self)
    shown = self.is_cuda and not self.is_sparse
    return sorted(name for name in found if shown or name != "__cuda_array_interface__")


install("__dir__", _dir)


def _owner_of(address: int) -> int:
    """The index of the GPU on which memory is: that whose allocator gave it, else the current one."""
    return next((memory.index for memory in _native.MEMORIES if memory.holds(address)), _native.get_index())


def adopt(contract: Any, data: Any) -> Tensor | None:
    """Another library's array as a tensor over the same memory; None where it is on another GPU than this one."""
    given = data.__cuda_array_interface__
    address, _ = given["data"]
    device = getattr(getattr(data, "device", None), "id", None)
    if contract.index != (_owner_of(address) if device is None else device):
        return None
    name = _DTYPES.get(given["typestr"])
    if name is None:
        raise TypeError(f"as_tensor: no dtype is __cuda_array_interface__'s type {given['typestr']!r}")
    dtype = dtype_by_name(name)
    sizes, size = tuple(given["shape"]), dtype.itemsize
    strides = given.get("strides")
    if strides is None:
        strides = tuple(size * math.prod(sizes[d + 1 :]) for d in range(len(sizes)))
    if any(s < 0 or s % size for s in strides):
        raise ValueError(f"as_tensor: strides of {strides} bytes are not multiples of {size} bytes, from 0 on")
    if given.get("stream") is not None:  # what fills the array goes on there
        stream = (
            default_stream(contract.index) if given["stream"] == 1 else ExternalStream(given["stream"], contract.index)
        )
        current_stream(contract.index).wait_stream(stream)
    count = 0 if 0 in sizes else sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) // size + 1
    storage = device_storage(contract.number, address, count * size, data)
    return from_storage(storage, dtype, sizes, tuple(s // size for s in strides))


def show_to(index: int, stream: int | None) -> None:
    """Let the work of a stream that DLPack numbers wait for the current one."""
    if stream == 0:
        raise BufferError("__dlpack__: stream 0 may be either of two; give 1, the default one, or a handle")
    if stream == 2:
        raise BufferError("__dlpack__: per-thread default stream is not supported")
    other = default_stream(index) if stream in (None, 1) else ExternalStream(stream, index)
    here = current_stream(index)
    if other != here:
        other.wait_stream(here)


_contract.HOOKS |= {"adopt": adopt, "show_to": show_to}
