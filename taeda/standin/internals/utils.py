"""Names inside ``torch.utils``, ``torch.serialization`` and the compiler's settings that packages use."""

from __future__ import annotations

import contextlib
import enum
import functools
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import taeda
from taeda.io.options import Options
from taeda.utils import _pytree


def cudagraph_mark_step_begin() -> None:
    """Nothing: there is no GPU."""


@contextlib.contextmanager
def fresh_cache(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Nothing, for a block or a function: kernels are named by their content, so an old one is never wrong."""
    yield


class _ExperimentalConfig:
    """Settings of PyTorch's profiler, which are accepted and have no effect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        vars(self).update(kwargs)


# ---- tensors and trees -----------------------------------------------------------------------------------------------


def _rebuild_from_type_v2(func: Callable, new_type: type, args: tuple, state: Any) -> Any:
    """A tensor of a subclass, from a pickle."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    own = getattr(new_type, "__setstate__", None)
    if own is not None and own is not getattr(taeda.Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    state, slots = state if isinstance(state, tuple) else (state, None)
    for key, value in {**(state or {}), **(slots or {})}.items():
        setattr(made, key, value)
    return made


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list:
    """The leaves of all arguments."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in _pytree.tree_leaves(tree)]


def treespec_leaf() -> Any:
    """The structure of a leaf."""
    return _pytree.tree_structure(0)


def is_structseq_instance(obj: Any) -> bool:
    """Whether ``obj`` is a result with names, such as ``torch.return_types.max``."""
    return type(obj).__module__.endswith("return_types") and isinstance(obj, tuple)


def DeviceContext(device: Any) -> Any:
    """A context in which new tensors are on ``device``."""
    return taeda.device(device)


def set_device(device: Any) -> Callable:
    """A decorator: new tensors of the function are on ``device``."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with taeda.device(device):
                return function(*args, **kwargs)

        return within

    return decorate


class DefaultDeviceType:
    """The kind of device whose random state checkpoints keep, beside the CPU's."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that was set, or the CPU."""
        return DefaultDeviceType._default_device_type or "cpu"


def _default_schedule_fn(_: int) -> Any:
    """A schedule that records every step."""
    from taeda.profiler import ProfilerAction

    return ProfilerAction.RECORD


# ---- files -----------------------------------------------------------------------------------------------------------


class LoadEndianness(enum.Enum):
    """The order of bytes in files that do not say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_order: LoadEndianness | None = None


def get_default_load_endianness() -> LoadEndianness | None:
    """The order set by :func:`set_default_load_endianness`."""
    return _order


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """The order of bytes in archives that do not say it: the least significant first by default.

    Raises:
        TypeError: ``endianness`` is no LoadEndianness.
    """
    global _order
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _order = endianness
    order = endianness or LoadEndianness.LITTLE
    Options.byteorder = sys.byteorder if order is LoadEndianness.NATIVE else order.name.lower()


def get_default_mmap_options() -> int:
    """The way in which files are mapped into memory: ``mmap.MAP_PRIVATE``."""
    import mmap

    return mmap.MAP_PRIVATE


def _is_zipfile(f: Any) -> bool:
    """Whether a file begins as an archive does, from where it is."""
    start = f.tell()
    found = f.read(4)
    f.seek(start)
    return found == b"PK\x03\x04"


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file by its path, opened and closed; or one that is open, as it is."""
    if hasattr(name_or_buffer, "read") or hasattr(name_or_buffer, "write"):
        yield name_or_buffer
        if "w" in mode:
            name_or_buffer.flush()
        return
    with open(name_or_buffer, mode) as file:
        yield file


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that goes with the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages of that name."""
    return getattr(taeda, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The typed constructor for a storage: ``FloatTensor`` for a ``FloatStorage``."""
    return getattr(taeda, storage.pickle_storage_type().replace("Storage", "Tensor"))


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether the version of ``module`` is at least ``req_version_tuple``.

    Raises:
        RuntimeError: its version is no such tuple, and that is an error.
    """
    words = module.__version__.split(".")
    try:
        found = tuple(type(part)(word) for part, word in zip(req_version_tuple, words, strict=False))
        return found >= req_version_tuple if len(found) == len(req_version_tuple) else _malformed(module)
    except ValueError:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}': "
            f"expected {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from None
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def _malformed(module: Any) -> bool:
    raise ValueError(module.__version__)
