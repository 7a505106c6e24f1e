"""``autocast``: a mode that gives each op its arguments in the precision that its trait ``autocast`` asks for.

On the CPU: products and convolutions in bfloat16 (or float16, ``"lower"``), losses and what needs range in float32,
joins in the widest dtype of their arguments (``"widest"``); ops without the trait, and calls with ``out=``, as they
come.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor, bfloat16, expect_bool, float16, float32, float64
from .._core.devices import is_registered
from ..ops.table import trait

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_state = threading.local()


def _get(name: str, default: Any) -> Any:
    return getattr(_state, name, default)


#: The half precision of each kind of device that has autocast in PyTorch, whether it is there or not.
_DTYPES = {
    **dict.fromkeys(("cpu", "hpu", "maia", "xla"), bfloat16),
    **dict.fromkeys(("cuda", "ipu", "mps", "mtia", "xpu"), float16),
}


def _dtypes() -> dict:
    return _state.__dict__.setdefault("dtypes", dict(_DTYPES))


def is_autocast_available(device_type: str) -> bool:
    """Whether :class:`autocast` works on that device: on "cpu", and on those that are registered.

    Args:
        device_type: the kind of device.
    Returns:
        True where it works.
    Raises:
        RuntimeError: there is no such kind of device.
    """
    _core.device(device_type)
    return device_type != "meta" and is_registered(device_type)


class _Autocast:
    """The mode: ops and composites by their trait ``autocast``."""

    composites = True

    def __init__(self, dtype: Any, cache: dict | None, device: str = "cpu") -> None:
        self.dtype = dtype
        self.device = device
        self.cache = cache

    def handle(self, op: Any, args: tuple, kwargs: dict) -> Any:
        wanted = None if kwargs.get("out") is not None else trait(op, "autocast")
        if callable(wanted):
            wanted = wanted(*args, **kwargs)
        if wanted is not None:
            dtype = {"lower": self.dtype, "float32": float32}.get(wanted) or self._widest((args, kwargs), None)
            return op(*self._cast(args, dtype), **self._cast(kwargs, dtype))
        if type(op) is _core.Composite:  # as it is, and its ops by their own traits
            _core.push_mode(self)
            try:
                return op.unwatched(args, kwargs)
            finally:
                _core.pop_mode()
        return op(*args, **kwargs)

    def _cast(self, x: Any, dtype: Any) -> Any:
        if isinstance(x, Tensor):
            if x.dtype is dtype or x.dtype is float64 or not x.is_floating_point():
                return x
            if x.device.type != self.device:
                return x
            if self.cache is None or dtype is float32 or not (x.requires_grad and x.is_leaf):
                return x.to(dtype)
            # One copy of a parameter serves the whole block; its gradients meet there.
            key = id(x)
            found = self.cache.get(key)
            if found is None or found[0] is not x or found[1] != x._version or found[2].dtype is not dtype:
                if not _core.is_grad_enabled():
                    return x.to(dtype)
                found = self.cache[key] = (x, x._version, x.to(dtype))
            return found[2]
        if isinstance(x, dict):
            return {key: self._cast(value, dtype) for key, value in x.items()}
        if type(x) in (tuple, list):
            return type(x)(self._cast(item, dtype) for item in x)
        return x

    def _widest(self, x: Any, found: Any) -> Any:
        if isinstance(x, Tensor):
            if not x.is_floating_point():
                return found
            return x.dtype if found is None else _core.promote_types(found, x.dtype)
        if isinstance(x, dict):
            x = list(x.values())
        if isinstance(x, (tuple, list)):
            for item in x:
                found = self._widest(item, found)
        return found


def _without(device: str) -> list:
    """The modes that are on, except for autocast on that device."""
    return [mode for mode in _core.mode_stack() if not isinstance(mode, _Autocast) or mode.device != device]


def converts(modes: list) -> bool:
    """Whether autocast is one of these modes, so that calls are converted by it."""
    return any(isinstance(mode, _Autocast) for mode in modes)


class autocast:
    """Within it, ops run in the precision that suits them: products and convolutions in half precision, what would lose
    too much there in ``float32``. A context manager and a decorator.

    Args:
        device_type: ``"cpu"``; for a device that is not there it warns and does nothing.
        dtype: the half precision, ``bfloat16`` (the default on the CPU) or ``float16``.
        enabled: with False, a part of an enclosing block runs as if outside it.
        cache_enabled: convert each parameter once in the outermost block.
    Raises:
        ValueError: ``device_type`` is no text.
    Examples:
        >>> x = taeda.ones(2, 2)
        >>> with taeda.autocast("cpu"):
        ...     print((x @ x).dtype, taeda.nn.functional.mse_loss(x @ x, x).dtype)
        taeda.bfloat16 taeda.float32
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"autocast: expected device_type to be a str, got {type(device_type).__name__}")
        kind = _core.device(device_type).type
        self.device = kind
        self.fast_dtype = get_autocast_dtype(kind) if dtype is None else dtype
        self._enabled = bool(enabled)
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        if not enabled:
            return
        if kind != "cpu" and (kind == "meta" or not is_registered(kind)):
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not available. Disabling",
                stacklevel=2,
            )
            self._enabled = False
        elif self.fast_dtype not in (bfloat16, float16):
            if self.fast_dtype is not float32:
                warnings.warn(
                    f"autocast: dtype {self.fast_dtype!r} is not supported on the CPU, which takes bfloat16 and "
                    "float16. Disabling",
                    stacklevel=2,
                )
            self._enabled = False

    def __enter__(self) -> autocast:
        stack = _core.mode_stack()
        entered = self.__dict__.setdefault("_entered", [])
        entered.append(
            (stack, get_autocast_dtype(self.device), is_autocast_enabled(self.device), is_autocast_cache_enabled())
        )
        set_autocast_cache_enabled(self._cache_enabled)
        _state.depth = _get("depth", 0) + 1
        _state.__dict__.setdefault("enabled", {})[self.device] = self._enabled
        _dtypes()[self.device] = self.fast_dtype
        if is_registered(self.device):
            rest = _without(self.device)
            if self._enabled:
                cache = _state.__dict__.setdefault("cache", {}) if self._cache_enabled else None
                rest.insert(0, _Autocast(self.fast_dtype, cache, self.device))
            _core.set_mode_stack(rest)
        return self

    def __exit__(self, *exc: Any) -> None:
        stack, dtype, enabled, cached = self._entered.pop()  # type: ignore[attr-defined]
        set_autocast_cache_enabled(cached)
        _state.depth -= 1
        if _state.depth == 0:
            clear_autocast_cache()
        _state.enabled[self.device] = enabled
        _dtypes()[self.device] = dtype
        if is_registered(self.device):
            _core.set_mode_stack(stack)

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return wrapped


# ---- the functions behind it -----------------------------------------------------------------------------------------


def _kind(name: str, device_type: Any) -> str:
    """The kind of device that a text names, for which there may be autocast."""
    if not isinstance(device_type, str):
        raise TypeError(f"{name}(): argument 'device_type' must be str, not {type(device_type).__name__}")
    kind = _core.device(device_type).type
    if kind == "meta":
        raise RuntimeError(f"{name}(): there is no autocast on device 'meta'")
    return kind


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether this runs under :class:`autocast`.

    Args:
        device_type: for which device. Default: a GPU, as in PyTorch.
    Returns:
        A bool.
    Examples:
        >>> with taeda.autocast("cpu"):
        ...     print(taeda.is_autocast_enabled("cpu"))
        True
    """
    kind = "cuda" if device_type is None else _kind("is_autocast_enabled", device_type)
    return _get("enabled", {}).get(kind, False)


def is_autocast_cpu_enabled() -> bool:
    """Whether this runs under :class:`autocast` of the CPU.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_autocast_cpu_enabled()
        False
    """
    return is_autocast_enabled("cpu")


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switches autocast for a device on or off.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` ...; may be left out for a GPU.
        enabled: on or off.
    Examples:
        >>> taeda.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    device_type = _kind("set_autocast_enabled", device_type)
    _state.__dict__.setdefault("enabled", {})[device_type] = expect_bool("set_autocast_enabled", "enabled", enabled)
    if is_registered(device_type):
        stack = _without(device_type)
        if enabled:
            stack.insert(0, _Autocast(get_autocast_dtype(device_type), None, device_type))
        _core.set_mode_stack(stack)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast for the CPU on or off.

    Args:
        enabled: on or off.
    Examples:
        >>> taeda.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def get_autocast_dtype(device_type: str) -> Any:
    """The half precision of autocast on a device.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` ...
    Returns:
        A dtype.
    Raises:
        RuntimeError: there is no autocast on that device.
    Examples:
        >>> taeda.get_autocast_dtype("cpu")
        taeda.bfloat16
    """
    dtypes, device_type = _dtypes(), _kind("get_autocast_dtype", device_type)
    if device_type not in dtypes and is_registered(device_type):
        return bfloat16
    if device_type not in dtypes:
        raise RuntimeError(f"get_autocast_dtype: there is no autocast on device '{device_type}'")
    return dtypes[device_type]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets the half precision of autocast on a device, from here on also in a block that is open.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` ...
        dtype: ``bfloat16`` or ``float16``.
    Examples:
        >>> taeda.set_autocast_dtype("cpu", taeda.bfloat16)
    """
    device_type = _kind("set_autocast_dtype", device_type)
    if not isinstance(dtype, _core.dtype):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' must be a dtype, not {type(dtype).__name__}")
    _dtypes()[device_type] = dtype
    for mode in _core.mode_stack():
        if isinstance(mode, _Autocast) and mode.device == device_type:
            mode.dtype = dtype


def get_autocast_cpu_dtype() -> Any:
    """The half precision of autocast on the CPU.

    Returns:
        A dtype.
    Examples:
        >>> taeda.get_autocast_cpu_dtype()
        taeda.bfloat16
    """
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Sets the half precision of autocast on the CPU.

    Args:
        dtype: ``bfloat16`` or ``float16``.
    Examples:
        >>> taeda.set_autocast_cpu_dtype(taeda.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """The half precision of autocast on a GPU.

    Returns:
        A dtype.
    Examples:
        >>> taeda.get_autocast_gpu_dtype()
        taeda.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Sets the half precision of autocast on a GPU.

    Args:
        dtype: ``bfloat16`` or ``float16``.
    Examples:
        >>> taeda.set_autocast_gpu_dtype(taeda.float16)
    """
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether blocks of :class:`autocast` convert each parameter once.

    Returns:
        A bool.
    Examples:
        >>> taeda.is_autocast_cache_enabled()
        True
    """
    return _get("cache_enabled", True)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether blocks of :class:`autocast` convert each parameter once.

    Args:
        enabled: on or off.
    Examples:
        >>> taeda.set_autocast_cache_enabled(True)
    """
    _state.cache_enabled = expect_bool("set_autocast_cache_enabled", "enabled", enabled)


def clear_autocast_cache() -> None:
    """Forgets the parameters that :class:`autocast` converted.

    Examples:
        >>> taeda.clear_autocast_cache()
    """
    _state.__dict__.setdefault("cache", {}).clear()


def autocast_increment_nesting() -> int:
    """Counts one block of autocast more.

    Returns:
        How many there are.
    Examples:
        >>> taeda.autocast_increment_nesting(), taeda.autocast_decrement_nesting()
        (1, 0)
    """
    _state.depth = _get("depth", 0) + 1
    return _state.depth


def autocast_decrement_nesting() -> int:
    """Counts one block of autocast less.

    Returns:
        How many there are.
    Examples:
        >>> taeda.autocast_increment_nesting(), taeda.autocast_decrement_nesting()
        (1, 0)
    """
    _state.depth = _get("depth", 0) - 1
    return _state.depth


# ---- custom functions ------------------------------------------------------------------------------------------------


@contextmanager
def _as(enabled: bool, kind: str, dtype: Any) -> Iterator[None]:
    with autocast(kind, enabled=enabled and kind == "cpu", dtype=dtype):
        yield


def cast_all(x: Any, kind: str, dtype: Any) -> Any:
    """``x``, or what it holds, with floating-point tensors of that kind of device in ``dtype``; float64 stays."""
    if isinstance(x, Tensor):
        return x.to(dtype) if x.is_floating_point() and x.device.type == kind and x.dtype is not float64 else x
    if isinstance(x, dict):
        return {cast_all(k, kind, dtype): cast_all(v, kind, dtype) for k, v in x.items()}
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(cast_all(item, kind, dtype) for item in x)
    return x


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None) -> Callable:
    """Decorator of the ``forward`` of an autograd Function that runs under autocast.

    Args:
        fwd: the function; without it, a decorator with the other arguments.
        device_type: the device whose autocast is meant.
        cast_inputs: convert floating-point tensors to this dtype, and run with autocast off.
    Returns:
        The function that takes its place.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*cast_all(args, device_type, cast_inputs), **cast_all(kwargs, device_type, cast_inputs))

    return wrapped


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorator of the ``backward`` of an autograd Function: it runs under the autocast of its ``forward``."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with _as(ctx._fwd_used_autocast, device_type, ctx._dtype):
            return bwd(*args, **kwargs)

    return wrapped
