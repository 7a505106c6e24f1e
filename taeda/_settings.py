"""Settings for the whole process: the default device and tensor type, determinism, precision, denormal numbers."""

from __future__ import annotations

import builtins
import importlib
import threading
import warnings
from typing import Any

from . import _core
from ._core import devices, settings
from ._core.callbacks import callbacks
from ._core.exchange import count_defaults_elsewhere
from ._core.pool import set_flush_denormal as _set_flush_denormal
from .ops.devices import number_of
from .ops.meta import makes
from .overrides import TorchFunctionMode, set_mode

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode", "get_device_module",
    "get_float32_matmul_precision", "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled", "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode",
    "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads", "set_warn_always",
    "use_deterministic_algorithms",
]  # fmt: skip

# ---- the default device ----------------------------------------------------------------------------------------------


class _Devices(threading.local):
    """Each thread's own: what :func:`set_default_device` set, and the devices whose ``with`` blocks are open."""

    def __init__(self) -> None:
        self.default = _core.device("cpu")
        self.entered: list[tuple[Any, Any]] = []
        self.counted = False  # whether the core counts this thread's default device as another than the CPU


_devices = _Devices()


def get_default_device() -> Any:
    """The device of new tensors for which none is named.

    Returns:
        A :class:`device`.
    Examples:
        >>> taeda.get_default_device()
        device(type='cpu')
    """
    return _devices.default


def get_device_module(device: Any = None) -> Any:
    """The module of a type of devices: ``taeda.cpu`` or ``taeda.cuda``.

    Args:
        device: a device or its name; None means the accelerator, or the CPU if there is none.
    Raises:
        RuntimeError: that type has no module, or ``device`` is no device.
    Examples:
        >>> taeda.get_device_module("cpu").__name__
        'taeda.cpu'
    """
    if device is not None and not isinstance(device, (str, _core.device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect taeda.device, str, or None")
    if device is None:
        device = "cpu" if devices.accelerator() is None else devices.ACCELERATOR
    name = _core.device(device).type
    try:
        return importlib.import_module(f"taeda.{name}")
    except ModuleNotFoundError:
        message = f"Device '{name}' does not have a corresponding module registered as 'taeda.{name}'."
        raise RuntimeError(message) from None


def set_default_device(device: Any) -> None:
    """Makes new tensors on ``device`` where none is named.

    Args:
        device: a device or its name; None stands for the CPU.
    Raises:
        RuntimeError: tensors cannot be on that device.
        NotImplementedError: tensors cannot be on that device yet.
    Examples:
        >>> taeda.set_default_device("meta")
        >>> taeda.zeros(1000, 1000).device  # sizes and dtype, without memory
        device(type='meta')
        >>> taeda.set_default_device(None)
    """
    device = _core.device("cpu" if device is None else device)
    number_of(device)
    _make_default(device)


def _make_default(device: Any) -> None:
    """Make ``device`` the default, whatever a call that Ctrl-C ended has left half done."""
    other = device.type != "cpu"
    if other and not _devices.counted:
        count_defaults_elsewhere(1)  # one too many is harmless, one too few is not
        _devices.counted = True
    set_mode(_MakeThere, _MakeThere(device) if other else None)
    _devices.default = device
    if not other and _devices.counted:
        _devices.counted = False
        count_defaults_elsewhere(-1)


class _MakeThere(TorchFunctionMode):
    """Makes tensors on another device than the CPU where none is named."""

    _sees_ops_alone = True

    def __init__(self, device: Any) -> None:
        super().__init__()
        self.named = device

    def __torch_function__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if makes(func, kwargs):
            kwargs = {**kwargs, "device": self.named}
        return func(*args, **kwargs)


def _enter_device(device: Any) -> Any:
    _devices.entered.append((device, _devices.default))
    set_default_device(device)
    return device


def _leave_devices(count: int) -> None:
    if len(_devices.entered) > count:
        _make_default(_devices.entered[count][1])
        del _devices.entered[count:]


callbacks.enter_device = _enter_device
callbacks.entered_devices = lambda: len(_devices.entered)
callbacks.leave_devices = _leave_devices
callbacks.default_device = get_default_device


def set_default_tensor_type(t: Any) -> None:
    """Deprecated: sets the default dtype (and device) to those of a tensor type. Use :func:`set_default_dtype`.

    Args:
        t: a tensor type or its name, such as ``"torch.DoubleTensor"``.
    Raises:
        TypeError: the type's elements are not floating-point numbers.
        AttributeError: no type has that name.
    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     taeda.set_default_tensor_type("torch.FloatTensor")
        >>> taeda.get_default_dtype()
        taeda.float32
    """
    from . import types

    warnings.warn(
        "set_default_tensor_type() is deprecated: use set_default_dtype() and set_default_device()",
        UserWarning,
        stacklevel=2,
    )
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        if hasattr(types, name) and module in ("torch.cuda", "taeda.cuda"):
            raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
        if not hasattr(types, name) or module not in ("torch", "taeda"):
            raise AttributeError(f"set_default_tensor_type: no tensor type is named {t!r}")
        t = getattr(types, name)
    dtype = getattr(t, "dtype", t)
    if not isinstance(dtype, _core.dtype):
        raise TypeError(f"set_default_tensor_type: expected a tensor type or its name, got {t!r}")
    _core.set_default_dtype(dtype)


# ---- determinism -----------------------------------------------------------------------------------------------------


def _need_bool(name: str, value: Any) -> builtins.bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be bool, not {type(value).__name__}")
    return value


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for ops whose result is the same every time. taeda's always are; what this changes is that memory which
    :func:`empty` and its kin give is filled (see ``taeda.utils.deterministic``).

    Args:
        mode: on or off.
        warn_only: whether an op that is not deterministic warns instead of raising (none is).

    Raises:
        TypeError: ``mode`` is no bool.

    Examples:
        >>> taeda.use_deterministic_algorithms(True)
        >>> taeda.empty(2)  # filled with NaN, which is easy to see
        tensor([nan, nan])
        >>> taeda.use_deterministic_algorithms(False)
    """
    settings.warn_only = _need_bool("use_deterministic_algorithms(): argument 'warn_only'", warn_only)
    settings.deterministic = _need_bool("use_deterministic_algorithms(): argument 'mode'", mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` is on.

    Returns:
        A bool.
    Examples:
        >>> taeda.are_deterministic_algorithms_enabled()
        False
    """
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` was asked for warnings only.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return settings.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """:func:`use_deterministic_algorithms` by one number or name.

    Args:
        debug_mode: 0 or ``"default"`` for off, 1 or ``"warn"`` for warnings, 2 or ``"error"`` for errors.
    Raises:
        RuntimeError: it is another.
    Examples:
        >>> taeda.set_deterministic_debug_mode("default")
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """The mode that :func:`set_deterministic_debug_mode` set.

    Returns:
        0, 1 or 2.
    Examples:
        >>> taeda.get_deterministic_debug_mode()
        0
    """
    return 0 if not settings.deterministic else 1 if settings.warn_only else 2


# ---- precision, threads, warnings ------------------------------------------------------------------------------------


class _State:
    """Settings that are stored and returned, without another effect."""

    interop_threads: int | None = None
    warn_always = False


def set_float32_matmul_precision(precision: str) -> None:
    """Allows products of ``float32`` a lower precision. On the CPU they are always exact ``float32``, which is what
    each of the three allows. On a GPU cuBLASLt takes TF32 unless it is ``"highest"``.

    Args:
        precision: ``"highest"``, ``"high"`` or ``"medium"``.
    Raises:
        RuntimeError: it is another.
    Examples:
        >>> taeda.set_float32_matmul_precision("high")
        >>> taeda.get_float32_matmul_precision()
        'high'
        >>> taeda.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"set_float32_matmul_precision: {precision!r} is not one of 'highest', 'high', 'medium'; nothing was "
            "changed",
            UserWarning,
            stacklevel=2,
        )
        return
    settings.matmul_precision, settings.fp32_precision = precision, "ieee" if precision == "highest" else "tf32"


def get_float32_matmul_precision() -> str:
    """The precision that :func:`set_float32_matmul_precision` set.

    Returns:
        A string.
    Examples:
        >>> taeda.get_float32_matmul_precision()
        'highest'
    """
    return settings.matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Takes denormal numbers (below ``finfo.tiny``) for zero in what this thread computes from now on, or stops doing
    so. They can be slow.

    Args:
        mode: on or off.
    Returns:
        Whether the processor can.
    Raises:
        RuntimeError: ``mode`` is no bool.
    Examples:
        >>> done = taeda.set_flush_denormal(False)
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return _set_flush_denormal(mode)


def get_num_interop_threads() -> int:
    """The number of threads for work between ops: kept for PyTorch programs, ops run one after the other.

    Returns:
        An int.
    Examples:
        >>> taeda.get_num_interop_threads() >= 1
        True
    """
    return _core.get_num_threads() if _State.interop_threads is None else _State.interop_threads


def set_num_interop_threads(count: int) -> None:
    """Sets what :func:`get_num_interop_threads` gives; as in PyTorch, once in a process.

    Args:
        count: a positive int.
    Raises:
        RuntimeError: ``count`` is not a positive int, or it was set before.
    Examples:
        >>> taeda.set_num_interop_threads(0)
        Traceback (most recent call last):
            ...
        RuntimeError: set_num_interop_threads expects a positive integer
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _State.interop_threads is not None:
        raise RuntimeError("set_num_interop_threads: the number was set before, which can be done only once")
    _State.interop_threads = count


def set_warn_always(b: bool) -> None:
    """Ask that a warning is given each time rather than once. taeda's go through Python's ``warnings``, whose filters
    decide; the setting is only stored.

    Args:
        b: on or off.
    Raises:
        RuntimeError: ``b`` is no bool.
    Examples:
        >>> taeda.set_warn_always(True)
        >>> taeda.is_warn_always_enabled()
        True
        >>> taeda.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _State.warn_always = b


def is_warn_always_enabled() -> bool:
    """The setting of :func:`set_warn_always`.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_warn_always_enabled()
        False
    """
    return _State.warn_always
