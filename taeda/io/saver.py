"""Writing tensors into a pickle: storages by number, under PyTorch's names."""

from __future__ import annotations

import itertools
import math
from typing import Any

from .. import _core
from .._core import Size, Tensor
from ..storage import TypedStorage, UntypedStorage
from .objects import STORAGE_NAMES
from .pickling import Writer


class Saver:
    """Collects the storages of the saved objects."""

    def __init__(self, legacy: bool = False) -> None:
        self.legacy = legacy  # the format before 1.6 says of each storage whether it is a view
        self.storages: dict[tuple[str, int, int, Any], tuple[str, Any, Any]] = {}
        self.alive: list[Any] = []

    def special(self, writer: Writer, x: Any) -> bool:
        """Write an object that is not a plain Python object."""
        if isinstance(x, Tensor):
            if type(x) is not Tensor and _has_no_shape(x):
                return False  # its class writes itself
            writer.alive.append(x)
            if getattr(x, "_is_param", False) or _is_parameter(x):
                self._parameter(writer, x)
            else:
                self._tensor(writer, x)
            writer.put(id(x))
        elif isinstance(x, (TypedStorage, UntypedStorage)):
            typed = isinstance(x, TypedStorage)
            writer.alive.append(x)
            self._memory(writer, x.untyped() if typed else x, x.dtype if typed else None)
            writer.put(id(x))
        elif isinstance(x, _core.dtype):
            writer.name("torch", x.name)
        elif isinstance(x, Size):
            writer.call("torch", "Size", tuple(x))
        elif isinstance(x, (_core.layout, _core.memory_format)):
            getter = "_get_layout" if isinstance(x, _core.layout) else "_get_memory_format"
            writer.call("torch.serialization", getter, str(x).replace("taeda.", "torch."))
        elif isinstance(x, _core.device):
            writer.call("torch", "device", *([x.type] if x.index is None else [x.type, x.index]))
        else:
            return False
        return True

    def _parameter(self, writer: Writer, x: Tensor) -> None:
        dense = x.layout is _core.strided and not x.is_nested  # the attributes of others are what they are made of
        state = {k: v for k, v in vars(x).items() if dense and k != "_is_param"}
        writer.name("torch._utils", "_rebuild_parameter_with_state" if state else "_rebuild_parameter")
        writer.out += b"("
        (self._plain if dense else self._tensor)(writer, x.detach())
        writer.write(x.requires_grad)
        writer.call("collections", "OrderedDict")
        if state:
            writer.write(state)
        writer.out += b"tR"

    def _tensor(self, writer: Writer, x: Tensor) -> None:
        """A tensor, with its class where that is the program's, and its attributes."""
        if x.is_nested:
            self._nested(writer, x)
            return
        if x.layout is not _core.strided:
            self._sparse(writer, x)
            return
        state = dict(vars(x))
        cls = Tensor if type(x).__module__.split(".")[0] == "taeda" else type(x)
        if cls is Tensor and not state:
            self._plain(writer, x)
            return
        writer.name("torch._tensor", "_rebuild_from_type_v2")
        writer.out += b"("
        plain = x if cls is Tensor else x.as_subclass(Tensor)
        self._function(writer, plain)
        if cls is Tensor:
            writer.name("torch", "Tensor")
        else:
            writer.write(cls)
        self._arguments(writer, plain)
        writer.write(state or None)
        writer.out += b"tR"

    def _sparse(self, writer: Writer, x: Tensor) -> None:
        """By its parts: indices and values; of a compressed one the starts, the other index and the values."""
        _, (index, other, *rest) = x.__reduce_ex__(2)
        if x.layout is _core.sparse_coo:
            parts = index, other, x.shape, x.is_coalesced()
        else:
            parts = index, other, rest[0], x.shape
        writer.call("torch._utils", "_rebuild_sparse_tensor", x.layout, parts)

    def _nested(self, writer: Writer, x: Any) -> None:
        """By the elements of all parts: with the sizes of each part or, of a jagged one, where each begins."""
        from ..ops.exchange import as_tensor

        values = x.detach().values()
        if x.layout is _core.strided:
            sizes = [list(y.shape) for y in x.unbind()]
            strides = [[math.prod(row[d + 1 :]) for d in range(len(row))] for row in sizes]
            offsets = [0, *itertools.accumulate(map(math.prod, sizes))][: len(sizes)]
            where = (as_tensor(rows, dtype=_core.int64) for rows in (sizes, strides, offsets))
            writer.call("torch._utils", "_rebuild_nested_tensor", values.requires_grad_(x.requires_grad), *where)
            return
        module = "torch.nested._internal.nested_tensor"
        writer.name("torch._tensor", "_rebuild_from_type_v2")
        writer.out += b"("
        writer.name(module, "_rebuild_njt")
        writer.name(module, "NestedTensor")
        arguments = {"values": values, "offsets": x.offsets(), "lengths": None, "_ragged_idx": x._ragged_idx}
        writer.write(({**arguments, "_metadata_cache": {}, "requires_grad": x.requires_grad},))
        writer.write({})
        writer.out += b"tR"

    def _plain(self, writer: Writer, x: Tensor) -> None:
        self._function(writer, x)
        self._arguments(writer, x)
        writer.out += b"R"

    def _function(self, writer: Writer, x: Tensor) -> None:
        if x.is_meta:
            writer.name("torch._utils", "_rebuild_meta_tensor_no_storage")
            return
        writer.name("torch._utils", "_rebuild_tensor_v2" if x.dtype.name in STORAGE_NAMES else "_rebuild_tensor_v3")

    def _arguments(self, writer: Writer, x: Tensor) -> None:
        """The tuple from which the function makes the tensor."""
        if x.is_meta:
            writer.write((x.dtype, tuple(x.shape), tuple(x.stride()), x.requires_grad))
            return
        requires_grad = x.requires_grad
        if x.grad_fn is not None:
            x = x.detach()
        if any(stride < 0 for stride in x.stride()):  # PyTorch has no such tensors
            x = x.detach().contiguous()
        self.alive.append(x)
        typed = x.dtype.name in STORAGE_NAMES
        writer.out += b"("
        self._storage(writer, x, typed)
        writer.write(x.storage_offset())
        writer.write(tuple(x.shape))
        writer.write(tuple(x.stride()))
        writer.write(requires_grad)
        writer.call("collections", "OrderedDict")
        if not typed:
            writer.name("torch", x.dtype.name)
        if x.is_conj() or x.is_neg():
            writer.write({"conj" if x.is_conj() else "neg": True})
        writer.out += b"t"

    def _storage(self, writer: Writer, x: Tensor, typed: bool) -> None:
        self._memory(writer, x.untyped_storage(), x.dtype if typed else None)

    def _memory(self, writer: Writer, storage: Any, dtype: Any) -> None:
        """A storage by number; without a dtype, as bytes."""
        key = (str(storage.device), storage._address(), storage.nbytes(), None if storage.nbytes() else dtype)
        name, known, _ = self.storages.setdefault(key, (str(len(self.storages)), dtype, storage))
        if known is not dtype:
            raise RuntimeError(
                "save: cannot save multiple tensors that view the same data as different types "
                f"({known} and {dtype}); clone one of them first"
            )
        writer.out += b"("
        writer.write("storage")
        if dtype is None:
            writer.name("torch.storage", "UntypedStorage")
        else:
            writer.name("torch", STORAGE_NAMES[dtype.name])
        writer.write(name)
        writer.write(str(storage.device))
        writer.write(storage.nbytes() // (1 if dtype is None else dtype.itemsize))
        writer.out += b"NtQ" if self.legacy else b"tQ"


def _has_no_shape(x: Tensor) -> bool:
    from ..nn.parameter import is_lazy

    return is_lazy(x)


def _is_parameter(x: Tensor) -> bool:
    if type(x) is Tensor:
        return False
    from ..nn import Parameter

    return isinstance(x, Parameter)
