"""``torch._utils``: what packages take from it."""

from __future__ import annotations

from typing import Any

from taeda.io import objects

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors: Any) -> Any:
    """The elements of all tensors in one of one dimension."""
    from taeda import cat

    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple:
    """The inverse of :func:`_flatten_dense_tensors`: pieces of ``flat`` with the sizes of ``tensors``."""
    made, start = [], 0
    for t in tensors:
        made.append(flat[start : start + t.numel()].view_as(t))
        start += t.numel()
    return tuple(made)


def _get_available_device_type() -> str | None:
    return None


# ---- what pickled tensors name, for programs that use `pickle` itself ----
def _on_storage(rebuild: Any) -> Any:
    """``rebuild`` of a storage, which it takes as the reader of files has it."""

    def function(storage: Any, *rest: Any) -> Any:
        if not isinstance(storage, objects.Stored):
            untyped = getattr(storage, "_untyped_storage", storage)
            storage = objects.Stored(untyped, getattr(storage, "dtype", None))
        return rebuild(storage, *rest)

    return function


_rebuild_tensor = _on_storage(objects._rebuild_tensor)
_rebuild_tensor_v2 = _on_storage(objects._rebuild_tensor_v2)
_rebuild_tensor_v3 = _on_storage(objects._rebuild_tensor_v3)
_rebuild_parameter = objects._rebuild_parameter
_rebuild_parameter_with_state = objects._rebuild_parameter_with_state


class ExceptionWrapper:
    """An exception of another thread or process, kept to be raised here."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import sys
        import traceback

        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self) -> None:
        """Raise it, with the traceback of where it came from in its message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def _element_size(dtype: Any) -> int:
    """Bytes of an element."""
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device: -1 of the CPU where that is allowed."""
    from taeda import device as Device

    if isinstance(device, int):
        return device
    device = Device(device)
    if device.type == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    return -1 if device.index is None else device.index
